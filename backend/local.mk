# backend: wattshared. All but main.c is an archive, which tests link too.
noinst_LIBRARIES += backend/libbackend.a
backend_libbackend_a_SOURCES = backend/backend.h backend/wire/server.h backend/wire/server.c backend/wire/decode.h backend/wire/decode.c \
	backend/client/gate.c backend/scheduling/gated.c backend/scheduling/dispatch_gate.c backend/wire/ring.c \
	backend/client/client.c backend/process/control.c backend/wire/peer.c backend/wire/peer.h backend/wire/out.c backend/client/stream.c backend/client/command.c backend/client/join.c backend/client/event.c backend/client/memory.c \
	backend/client/object.c backend/client/vmm.c backend/client/export.c backend/client/share.c \
	backend/client/va.h backend/client/va.c backend/wire/segment.c backend/client/copy.c backend/scheduling/fused.h backend/scheduling/fused.c backend/scheduling/fused_arena.h backend/scheduling/fused_arena.c backend/scheduling/fused_cache.h backend/scheduling/fused_cache.c backend/client/launch.c backend/code/rewrite.h backend/code/rewrite.c backend/code/module.c backend/code/cache.h backend/code/cache.c backend/code/loader.c backend/client/output.h backend/client/output.c \
	backend/process/ledger.h backend/process/ledger.c backend/scheduling/learn.h backend/scheduling/learn_private.h backend/scheduling/learn.c backend/scheduling/learn_code.c backend/scheduling/learn_store.c \
	backend/client/gpus.c backend/process/real.h backend/process/real.c backend/process/real_status.c backend/process/status.h backend/process/status.c backend/wire/handoff.c backend/process/config.h backend/process/config.c backend/process/config_key.h backend/process/config_key.c backend/process/config_keys.def backend/process/config_words.def backend/process/config_task.h backend/process/config_task.c backend/scheduling/alarms.h backend/scheduling/alarms.c backend/scheduling/energy.h backend/scheduling/energy.c backend/scheduling/energy_log.c backend/scheduling/period.h backend/scheduling/period.c backend/scheduling/recognise.h backend/scheduling/recognise.c backend/scheduling/task.c backend/scheduling/task.h backend/scheduling/dispatch.h backend/scheduling/dispatch.c backend/scheduling/dispatch_private.h backend/scheduling/dispatch_system.c backend/scheduling/dispatch_check.c backend/scheduling/dispatch_explain.c backend/scheduling/dispatch_move.c backend/scheduling/rapl.h backend/scheduling/rapl.c backend/scheduling/dispatch_fuse.c backend/process/paths.h backend/process/paths.c \
	backend/process/access.h backend/process/access.c backend/process/zap.h backend/process/zap.c backend/process/reload.h backend/process/reload.c \
	backend/process/activation.h backend/process/activation.c backend/process/journal.h backend/process/journal.c backend/process/metrics.h backend/process/metrics.c backend/process/tracing.h backend/process/tracing.c backend/scheduling/dispatch_deadline.c \
	backend/process/notify.h backend/process/notify.c backend/process/loop.h backend/process/loop.c
backend_libbackend_a_CPPFLAGS = $(AM_CPPFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(CONFUSE_CFLAGS) $(LIBMD_CFLAGS) \
	-DSYSCONFDIR='"$(sysconfdir)"' -DSBINDIR='"$(sbindir)"'
BACKEND_LDADD = backend/libbackend.a templates/libtemplates.a policy/libpolicy.a models/libmodels.a device/libdevice.a ptx/libptx.a protocol/libprotocol.a base/libbase.a \
	$(ZMQ_LIBS) $(PROTOBUF_C_LIBS) $(CONFUSE_LIBS) $(LIBMD_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) $(SQLITE_LIBS) -lpthread -lm

sbin_PROGRAMS += backend/wattshared
backend_wattshared_SOURCES = backend/process/main.c
backend_wattshared_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR='"$(sysconfdir)"'
backend_wattshared_LDADD = $(BACKEND_LDADD)
# Sets clocks, with rights that the daemon has not.
sbin_PROGRAMS += backend/wattshare-clocks
backend_wattshare_clocks_SOURCES = backend/process/clocks_main.c
backend_wattshare_clocks_LDADD = $(BACKEND_LDADD)
# Writes the manual page's list of keys and the example file from the table of keys.
noinst_PROGRAMS += backend/config_doc
backend_config_doc_SOURCES = backend/process/config_doc.c backend/process/config_keys.def backend/process/config_words.def
backend_config_doc_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR='"$(sysconfdir)"'
EXTRA_DIST += backend/README.md backend/process/README.md
