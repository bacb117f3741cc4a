# device: device.h and its implementations. device/soft/soft.mk and device/soft/exec.mk add to the
# archive.
noinst_LIBRARIES += device/libdevice.a
device_libdevice_a_SOURCES = device/device.h device/mapping.h device/op.h device/spec.h \
	device/progress.h device/compiled.h device/payer.h device/payer.c \
	device/started.h device/started.c \
	device/device.c device/space.h device/space.c device/space_table.h \
	device/space_table.c device/memory.c device/check.h device/check.c device/alarms.h \
	device/alarms.c device/heap.h device/heap.c device/text.h device/text.c device/catalog.h \
	device/catalog.c device/catalog_keys.def device/fitted.h device/fitted.c
# the models that software GPUs follow, so that not all who open a device must link models/ too
device_libdevice_a_SOURCES += models/event_limit.c models/event_power.c \
	models/event_time.c
device_libdevice_a_CPPFLAGS = $(AM_CPPFLAGS) $(CONFUSE_CFLAGS) $(LIBMD_CFLAGS) -DWS_SBINDIR='"$(sbindir)"' -DWS_PKGLIBEXECDIR='"$(pkglibexecdir)"'
EXTRA_DIST += device/README.md
include device/soft/exec.mk
include device/soft/soft.mk
include device/cuda/cuda.mk
include device/worker/local.mk
