# A real GPU in a process of its own: the daemon's side is in libdevice, the other is a program.
device_libdevice_a_SOURCES += device/worker/worker.h device/worker/calls.def device/worker/wire.h \
	device/worker/wire.c device/worker/proxy.h device/worker/post.h device/worker/state.h \
	device/worker/proxy.c device/worker/call.c device/worker/post.c device/worker/ops.c \
	device/worker/tables.c device/worker/host.c device/worker/module.c device/worker/machine.c \
	device/worker/life.c device/worker/hang.c device/worker/peer.c
pkglibexec_PROGRAMS += device/worker/wattshare-gpu-worker
device_worker_wattshare_gpu_worker_SOURCES = device/worker/process/process.h \
	device/worker/process/main.c device/worker/process/objects.c \
	device/worker/process/report.c device/worker/process/ops.c device/worker/process/calls.c \
	device/worker/process/modules.c device/worker/process/later.c
device_worker_wattshare_gpu_worker_LDADD = device/libdevice.a ptx/libptx.a base/libbase.a \
	$(CONFUSE_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) $(LIBMD_LIBS) -lpthread -lm -ldl
EXTRA_DIST += device/worker/README.md device/worker/process/README.md
