# backend tests
EXTRA_DIST += tests/lib/README.md tests/unit/backend/README.md tests/unit/templates/README.md
noinst_LIBRARIES += tests/libwsclient.a
tests_libwsclient_a_SOURCES = tests/lib/wsclient.h tests/lib/wsclient.c
tests_libwsclient_a_CPPFLAGS = $(AM_CPPFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(LIBMD_CFLAGS)
WSCLIENT_LDADD = tests/libwsclient.a protocol/libprotocol.a base/libbase.a $(ZMQ_LIBS) \
	$(PROTOBUF_C_LIBS) $(LIBMD_LIBS)

check_PROGRAMS += tests/unit/backend/test_daemon
tests_unit_backend_test_daemon_SOURCES = tests/unit/backend/test_daemon.c
tests_unit_backend_test_daemon_LDADD = $(WSCLIENT_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_daemon

# The core without sockets, with fake devices; the archive's ws_dmodule_info() is fakedev.c's, so it
# stands first.
noinst_LIBRARIES += tests/libwsserver.a
tests_libwsserver_a_SOURCES = tests/lib/fakedev.h tests/lib/fakedev.c tests/lib/wsserver.h \
	tests/lib/wsserver.c
tests_libwsserver_a_CPPFLAGS = $(AM_CPPFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(LIBMD_CFLAGS)
WSSERVER_LDADD = tests/libwsserver.a $(BACKEND_LDADD)

check_PROGRAMS += tests/unit/backend/test_stream
tests_unit_backend_test_stream_SOURCES = tests/unit/backend/test_stream.c
tests_unit_backend_test_stream_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_stream
check_PROGRAMS += tests/unit/backend/test_dispatch
tests_unit_backend_test_dispatch_SOURCES = tests/unit/backend/test_dispatch.c
tests_unit_backend_test_dispatch_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_dispatch
check_PROGRAMS += tests/unit/backend/test_rapl
tests_unit_backend_test_rapl_SOURCES = tests/unit/backend/test_rapl.c
tests_unit_backend_test_rapl_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_rapl
check_PROGRAMS += tests/unit/backend/test_memory
tests_unit_backend_test_memory_SOURCES = tests/unit/backend/test_memory.c
tests_unit_backend_test_memory_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_memory
check_PROGRAMS += tests/unit/backend/test_gate
tests_unit_backend_test_gate_SOURCES = tests/unit/backend/test_gate.c
tests_unit_backend_test_gate_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_gate

check_PROGRAMS += tests/unit/backend/test_steps
tests_unit_backend_test_steps_SOURCES = tests/unit/backend/test_steps.c
tests_unit_backend_test_steps_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_steps
check_PROGRAMS += tests/unit/backend/test_accounts
tests_unit_backend_test_accounts_SOURCES = tests/unit/backend/test_accounts.c
tests_unit_backend_test_accounts_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_accounts

check_PROGRAMS += tests/unit/backend/test_stuck
tests_unit_backend_test_stuck_SOURCES = tests/unit/backend/test_stuck.c
tests_unit_backend_test_stuck_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_stuck
check_PROGRAMS += tests/unit/backend/test_users
tests_unit_backend_test_users_SOURCES = tests/unit/backend/test_users.c
tests_unit_backend_test_users_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=munmap
tests_unit_backend_test_users_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_users

check_PROGRAMS += tests/unit/backend/test_leaving
tests_unit_backend_test_leaving_SOURCES = tests/unit/backend/test_leaving.c
tests_unit_backend_test_leaving_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_leaving

check_PROGRAMS += tests/unit/backend/test_messages
tests_unit_backend_test_messages_SOURCES = tests/unit/backend/test_messages.c
tests_unit_backend_test_messages_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_messages

check_PROGRAMS += tests/unit/backend/test_ended
tests_unit_backend_test_ended_SOURCES = tests/unit/backend/test_ended.c
tests_unit_backend_test_ended_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_ended

check_PROGRAMS += tests/unit/backend/test_decode
tests_unit_backend_test_decode_SOURCES = tests/unit/backend/test_decode.c
tests_unit_backend_test_decode_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_decode

check_PROGRAMS += tests/unit/backend/test_zmtp
tests_unit_backend_test_zmtp_SOURCES = tests/unit/backend/test_zmtp.c tests/lib/curve_client.h \
	tests/lib/curve_client.c
tests_unit_backend_test_zmtp_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
tests_unit_backend_test_zmtp_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_zmtp

check_PROGRAMS += tests/unit/backend/test_door
tests_unit_backend_test_door_SOURCES = tests/unit/backend/test_door.c
tests_unit_backend_test_door_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
tests_unit_backend_test_door_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_door

check_PROGRAMS += tests/unit/backend/test_loader
tests_unit_backend_test_loader_SOURCES = tests/unit/backend/test_loader.c
tests_unit_backend_test_loader_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_loader

check_PROGRAMS += tests/unit/backend/test_server tests/unit/backend/test_config tests/unit/backend/test_va
tests_unit_backend_test_server_SOURCES = tests/unit/backend/test_server.c
tests_unit_backend_test_server_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
tests_unit_backend_test_config_SOURCES = tests/unit/backend/test_config.c
tests_unit_backend_test_config_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
tests_unit_backend_test_va_SOURCES = tests/unit/backend/test_va.c
tests_unit_backend_test_va_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_server tests/unit/backend/test_config tests/unit/backend/test_va


check_PROGRAMS += tests/unit/backend/test_tasks
tests_unit_backend_test_tasks_SOURCES = tests/unit/backend/test_tasks.c
tests_unit_backend_test_tasks_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_tasks

check_PROGRAMS += tests/unit/backend/test_learn
tests_unit_backend_test_learn_SOURCES = tests/unit/backend/test_learn.c
tests_unit_backend_test_learn_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_learn

check_PROGRAMS += tests/unit/backend/test_learn_meter
tests_unit_backend_test_learn_meter_SOURCES = tests/unit/backend/test_learn_meter.c
tests_unit_backend_test_learn_meter_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_learn_meter

check_PROGRAMS += tests/unit/backend/test_energy
tests_unit_backend_test_energy_SOURCES = tests/unit/backend/test_energy.c
tests_unit_backend_test_energy_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_energy

# The core without sockets, with a software GPU: fused launches.
noinst_LIBRARIES += tests/libsoftserver.a
tests_libsoftserver_a_SOURCES = tests/lib/softserver.h tests/lib/softserver.c
tests_libsoftserver_a_CPPFLAGS = $(AM_CPPFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(LIBMD_CFLAGS)
check_PROGRAMS += tests/unit/backend/test_fused
tests_unit_backend_test_fused_SOURCES = tests/unit/backend/test_fused.c
tests_unit_backend_test_fused_LDADD = tests/libsoftserver.a $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_fused
check_PROGRAMS += tests/unit/backend/test_endless
tests_unit_backend_test_endless_SOURCES = tests/unit/backend/test_endless.c
tests_unit_backend_test_endless_LDADD = tests/libsoftserver.a $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_endless
check_PROGRAMS += tests/unit/backend/test_instance
tests_unit_backend_test_instance_SOURCES = tests/unit/backend/test_instance.c
tests_unit_backend_test_instance_LDADD = tests/libsoftserver.a $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_instance

check_PROGRAMS += tests/unit/backend/test_reset
tests_unit_backend_test_reset_SOURCES = tests/unit/backend/test_reset.c
tests_unit_backend_test_reset_LDADD = tests/libsoftserver.a $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_reset
check_PROGRAMS += tests/unit/backend/test_charged
tests_unit_backend_test_charged_SOURCES = tests/unit/backend/test_charged.c
tests_unit_backend_test_charged_LDADD = tests/libsoftserver.a $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_charged
check_PROGRAMS += tests/unit/templates/test_templates
tests_unit_templates_test_templates_SOURCES = tests/unit/templates/test_templates.c
tests_unit_templates_test_templates_LDADD = templates/libtemplates.a ptx/libptx.a base/libbase.a \
	$(LZ4_LIBS) $(ZSTD_LIBS) $(TEST_LDADD)
TESTS += tests/unit/templates/test_templates
check_PROGRAMS += tests/unit/backend/test_hard_text
tests_unit_backend_test_hard_text_SOURCES = tests/unit/backend/test_hard_text.c \
	tests/lib/hard_text.h tests/lib/hard_text.c
tests_unit_backend_test_hard_text_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_hard_text
check_PROGRAMS += tests/unit/backend/test_turns
tests_unit_backend_test_turns_SOURCES = tests/unit/backend/test_turns.c
tests_unit_backend_test_turns_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_turns
check_PROGRAMS += tests/unit/backend/test_compile
tests_unit_backend_test_compile_SOURCES = tests/unit/backend/test_compile.c tests/lib/hard_text.h \
	tests/lib/hard_text.c
tests_unit_backend_test_compile_LDADD = $(WSCLIENT_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_compile
