# device: device.h and its implementations. device/soft/local.mk and device/soft/exec.mk add to the archive.
noinst_LIBRARIES += device/libdevice.a
device_libdevice_a_SOURCES = device/device.h
device_libdevice_a_CPPFLAGS = $(AM_CPPFLAGS)
include device/soft/exec.mk
include device/soft/soft.mk
