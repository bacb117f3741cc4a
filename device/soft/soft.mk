# the software GPU: device.h
device_libdevice_a_SOURCES += device/soft/soft_private.h device/soft/soft.c \
	device/soft/sched/sched.h device/soft/sched/sched.c device/soft/sched/run.h \
	device/soft/sched/run.c device/soft/sched/deal.c device/soft/sched/turn.c \
	device/soft/sched/launch.c device/soft/sched/feed.c device/soft/sched/copy.c \
	device/soft/mem.h device/soft/mem.c \
	device/soft/timeline/timing.h device/soft/timeline/timing.c device/soft/timeline/cost.c \
	device/soft/timeline/standing.h device/soft/timeline/standing.c \
	device/soft/timeline/vclock.h device/soft/timeline/vclock.c device/soft/timeline/meter.h \
	device/soft/timeline/meter.c device/soft/timeline/readings.h \
	device/soft/timeline/readings.c device/follow.h device/soft/timeline/follow.h \
	device/soft/timeline/follow.c device/soft/timeline/crowd.h device/soft/timeline/crowd.c \
	device/soft/timeline/sms.h device/soft/timeline/sms.c device/soft/timeline/progress.h \
	device/soft/timeline/progress.c device/soft/timeline/flight.h \
	device/soft/timeline/flight.c device/soft/timeline/power.h device/soft/timeline/power.c \
	device/soft/timeline/events.h device/soft/timeline/events.c \
	device/soft/timeline/fitted_cost.c device/soft/timeline/occupancy.h \
	device/soft/timeline/occupancy.c
device_libdevice_a_SOURCES += device/soft/inspect/inspect.h device/soft/inspect/private.h \
	device/soft/inspect/inspect.c device/soft/inspect/finding.c device/soft/inspect/lanes.c \
	device/soft/inspect/shared.c device/soft/inspect/global.c \
	device/soft/inspect/race.c
EXTRA_DIST += device/soft/README.md device/soft/inspect/README.md device/soft/decode/README.md \
	device/soft/exec/README.md device/soft/jit/README.md device/soft/sched/README.md \
	device/soft/timeline/README.md
