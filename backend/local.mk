# backend: wattshared. All but main.c is an archive, which tests link too.
noinst_LIBRARIES += backend/libbackend.a
backend_libbackend_a_SOURCES = \
	backend/accounts/account.c \
	backend/accounts/account.h \
	backend/accounts/recent.h \
	backend/accounts/system.c \
	backend/backend.h \
	backend/client/buffer.c \
	backend/client/buffer.h \
	backend/client/chore.c \
	backend/client/chore.h \
	backend/client/client.c \
	backend/client/client.h \
	backend/client/command.c \
	backend/client/command.h \
	backend/client/copy.c \
	backend/client/event.c \
	backend/client/event.h \
	backend/client/export.c \
	backend/client/gpus.c \
	backend/client/gpus.h \
	backend/client/host_function.c \
	backend/client/identity.c \
	backend/client/identity.h \
	backend/client/host_function.h \
	backend/client/instance.c \
	backend/client/instance.h \
	backend/client/join.c \
	backend/client/join.h \
	backend/client/launch.c \
	backend/client/ledger.c \
	backend/client/ledger.h \
	backend/client/memory.c \
	backend/client/memory.h \
	backend/client/module.c \
	backend/client/module.h \
	backend/client/object.c \
	backend/client/object.h \
	backend/client/output.c \
	backend/client/output.h \
	backend/client/record.c \
	backend/client/relaunch.c \
	backend/client/relaunch.h \
	backend/client/reply.c \
	backend/client/reply.h \
	backend/client/reset.c \
	backend/client/reset.h \
	backend/client/segment.c \
	backend/client/segment.h \
	backend/client/sender.h \
	backend/client/share.c \
	backend/client/sms.c \
	backend/client/sms.h \
	backend/client/step.c \
	backend/client/step.h \
	backend/client/stream.c \
	backend/client/stream.h \
	backend/client/submit.h \
	backend/client/transport.h \
	backend/client/upload.c \
	backend/client/upload.h \
	backend/client/user.c \
	backend/client/user.h \
	backend/client/va.c \
	backend/client/va.h \
	backend/client/value.c \
	backend/client/value.h \
	backend/client/viewer.c \
	backend/client/viewer.h \
	backend/client/vmm.c \
	backend/client/vmm.h \
	backend/code/cache.c \
	backend/code/cache.h \
	backend/code/discard.c \
	backend/code/discard.h \
	backend/code/kernels.c \
	backend/code/kernels.h \
	backend/code/load.c \
	backend/code/load.h \
	backend/code/loader.c \
	backend/code/loader.h \
	backend/code/rewrite.c \
	backend/code/rewrite.h \
	backend/config/access.c \
	backend/config/access.h \
	backend/config/task.c \
	backend/config/task.h \
	backend/learn/learn.c \
	backend/learn/learn.h \
	backend/learn/learn_code.c \
	backend/learn/learn_meter.c \
	backend/learn/learn_power.c \
	backend/learn/learn_private.h \
	backend/learn/learn_store.c \
	backend/process/activation.c \
	backend/process/announce.c \
	backend/process/announce.h \
	backend/process/activation.h \
	backend/process/clients.c \
	backend/process/clients.h \
	backend/process/config.c backend/process/follow.h backend/process/follow.c \
	backend/process/config.h \
	backend/process/config_key.c \
	backend/process/config_key.h \
	backend/process/config_keys.def \
	backend/process/config_task.c \
	backend/process/config_task.h \
	backend/process/config_words.def \
	backend/process/control.c \
	backend/process/control.h \
	backend/process/endpoint.c \
	backend/process/endpoint.h \
	backend/process/journal.c \
	backend/process/journal.h \
	backend/process/loop.c \
	backend/process/loop.h \
	backend/process/messages.c \
	backend/process/messages.h \
	backend/process/metrics.c \
	backend/process/metrics.h \
	backend/process/notify.c \
	backend/process/notify.h \
	backend/process/paths.c \
	backend/process/paths.h \
	backend/process/probe.c \
	backend/process/probe.h \
	backend/process/real.c \
	backend/process/real.h \
	backend/process/real_status.c \
	backend/process/reload.c \
	backend/process/reload.h \
	backend/process/server.c \
	backend/process/server.h \
	backend/process/status.c \
	backend/process/status.h \
	backend/process/tracing.c \
	backend/process/tracing.h \
	backend/scheduling/account.c \
	backend/scheduling/account.h \
	backend/scheduling/meters.c \
	backend/scheduling/meters.h \
	backend/scheduling/alarms.c \
	backend/scheduling/alarms.h \
	backend/scheduling/dispatch.c \
	backend/scheduling/dispatch.h \
	backend/scheduling/dispatch_check.c \
	backend/scheduling/dispatch_deadline.c \
	backend/scheduling/dispatch_decide.c \
	backend/scheduling/dispatch_explain.c \
	backend/scheduling/dispatch_fuse.c \
	backend/scheduling/dispatch_gate.c \
	backend/scheduling/dispatch_policy.c \
	backend/scheduling/dispatch_private.h \
	backend/scheduling/dispatch_system.c \
	backend/scheduling/dispatch_urge.c \
	backend/scheduling/energy.c \
	backend/scheduling/energy.h \
	backend/scheduling/energy_log.c \
	backend/scheduling/finished.c \
	backend/scheduling/finished.h \
	backend/scheduling/fused.c \
	backend/scheduling/fused.h \
	backend/scheduling/fused_arena.c \
	backend/scheduling/fused_arena.h \
	backend/scheduling/fused_cache.c \
	backend/scheduling/fused_cache.h \
	backend/scheduling/gated.c \
	backend/scheduling/gated.h \
	backend/scheduling/join_act.c \
	backend/scheduling/join_act.h \
	backend/scheduling/migrate.c \
	backend/scheduling/period.c \
	backend/scheduling/period.h \
	backend/scheduling/rapl.c \
	backend/scheduling/rapl.h \
	backend/scheduling/recognise.c \
	backend/scheduling/recognise.h \
	backend/scheduling/run.c \
	backend/scheduling/run.h \
	backend/scheduling/spans.c \
	backend/scheduling/spans.h \
	backend/scheduling/stuck.c \
	backend/scheduling/stuck.h \
	backend/steps/steps.c \
	backend/steps/steps.h \
	backend/wire/accept.c \
	backend/wire/accept.h \
	backend/wire/closer.c \
	backend/wire/closer.h \
	backend/wire/commands.c \
	backend/wire/commands.h \
	backend/wire/connection.c \
	backend/wire/connection.h \
	backend/wire/curve.c \
	backend/wire/curve.h \
	backend/wire/decode.c \
	backend/wire/decode.h \
	backend/wire/door.c \
	backend/wire/door.h \
	backend/wire/door_private.h \
	backend/wire/handoff.c \
	backend/wire/handoff.h \
	backend/wire/out.c \
	backend/wire/out.h \
	backend/wire/ring.c \
	backend/wire/ring.h \
	backend/wire/zmtp.c \
	backend/wire/zmtp.h
backend_libbackend_a_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS) $(PROTOBUF_C_CFLAGS) $(CONFUSE_CFLAGS) $(LIBMD_CFLAGS) \
	-DSYSCONFDIR='"$(sysconfdir)"' -DSBINDIR='"$(sbindir)"'
BACKEND_LDADD = backend/libbackend.a templates/libtemplates.a policy/libpolicy.a \
	models/libmodels.a device/libdevice.a ptx/libptx.a protocol/libprotocol.a base/libbase.a \
	$(SODIUM_LIBS) $(PROTOBUF_C_LIBS) $(CONFUSE_LIBS) $(LIBMD_LIBS) $(LZ4_LIBS) $(ZSTD_LIBS) \
	$(SQLITE_LIBS) -lpthread -lm

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
backend_config_doc_SOURCES = backend/process/config_doc.c backend/process/config_keys.def \
	backend/process/config_words.def
backend_config_doc_CPPFLAGS = $(AM_CPPFLAGS) -DSYSCONFDIR='"$(sysconfdir)"'
EXTRA_DIST += backend/README.md backend/accounts/README.md backend/client/README.md \
	backend/code/README.md backend/config/README.md backend/learn/README.md tools/circles.py \
	backend/process/README.md backend/scheduling/README.md backend/steps/README.md \
	backend/wire/README.md
