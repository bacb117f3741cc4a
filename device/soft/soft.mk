# the software GPU: device.h
device_libdevice_a_SOURCES += \
    device/soft/soft_private.h device/soft/soft.c \
    device/soft/sched.h device/soft/sched.c device/soft/launch.c device/soft/copy.c \
    device/soft/mem.h device/soft/mem.c \
    device/soft/timing.h device/soft/timing.c device/soft/cost.c \
    device/soft/vclock.h device/soft/vclock.c device/soft/meter.h device/soft/meter.c \
    device/soft/progress.h device/soft/progress.c device/soft/flight.h device/soft/flight.c \
    device/soft/power.h device/soft/occupancy.h device/soft/occupancy.c
