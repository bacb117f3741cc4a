# backend: wattshared. All but main.c is an archive, which tests link too.
noinst_LIBRARIES += backend/libbackend.a
backend_libbackend_a_SOURCES = backend/backend.h backend/server.h backend/server.c backend/decode.h backend/decode.c \
	backend/gate.c backend/gated.c backend/dispatch_gate.c backend/lane.c \
	backend/client.c backend/control.c backend/peer.c backend/peer.h backend/out.c backend/stream.c backend/job.c backend/join.c backend/event.c backend/memory.c \
	backend/object.c backend/vmm.c backend/export.c backend/share.c \
	backend/va.h backend/va.c backend/segment.c backend/copy.c backend/fused.h backend/fused.c backend/fused_arena.h backend/fused_arena.c backend/fused_cache.h backend/fused_cache.c backend/launch.c backend/rewrite.h backend/rewrite.c backend/module.c backend/cache.h backend/cache.c backend/loader.c backend/output.h backend/output.c \
	backend/ledger.h backend/ledger.c backend/learn.h backend/learn_private.h backend/learn.c backend/learn_code.c backend/learn_store.c \
	backend/gpus.c backend/real.h backend/real.c backend/real_status.c backend/status.c backend/side.c backend/config.h backend/config.c backend/config_task.h backend/config_task.c backend/alarms.h backend/alarms.c backend/energy.h backend/energy.c backend/energy_log.c backend/period.h backend/period.c backend/recognise.h backend/recognise.c backend/task.c backend/task.h backend/dispatch.h backend/dispatch.c backend/dispatch_private.h backend/dispatch_system.c backend/dispatch_check.c backend/dispatch_explain.c backend/dispatch_move.c backend/rapl.h backend/rapl.c backend/dispatch_fuse.c backend/paths.h backend/paths.c \
	backend/access.h backend/access.c backend/zap.h backend/zap.c backend/reload.h backend/reload.c \
	backend/activation.h backend/activation.c backend/journal.h backend/journal.c backend/metrics.h backend/metrics.c backend/tracing.h backend/tracing.c backend/dispatch_deadline.c \
	backend/notify.h backend/notify.c backend/loop.h backend/loop.c
backend_libbackend_a_CPPFLAGS = $(AM_CPPFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(CONFUSE_CFLAGS) $(LIBMD_CFLAGS) \
	-DSYSCONFDIR='"$(sysconfdir)"' -DSBINDIR='"$(sbindir)"'
BACKEND_LDADD = backend/libbackend.a templates/libtemplates.a policy/libpolicy.a models/libmodels.a device/libdevice.a ptx/libptx.a protocol/libprotocol.a base/libbase.a \
	$(ZMQ_LIBS) $(PROTOBUF_C_LIBS) $(CONFUSE_LIBS) $(LIBMD_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) $(SQLITE_LIBS) -lpthread -lm

sbin_PROGRAMS += backend/wattshared
backend_wattshared_SOURCES = backend/main.c
backend_wattshared_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR='"$(sysconfdir)"'
backend_wattshared_LDADD = $(BACKEND_LDADD)
# Sets clocks, with rights that the daemon has not.
sbin_PROGRAMS += backend/wattshare-clocks
backend_wattshare_clocks_SOURCES = backend/clocks_main.c
backend_wattshare_clocks_LDADD = $(BACKEND_LDADD)
EXTRA_DIST += backend/README.md
