# backend tests
noinst_LIBRARIES += tests/libwsclient.a
tests_libwsclient_a_SOURCES = tests/lib/wsclient.h tests/lib/wsclient.c
tests_libwsclient_a_CPPFLAGS = $(AM_CPPFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(LIBMD_CFLAGS)
WSCLIENT_LDADD = tests/libwsclient.a protocol/libprotocol.a base/libbase.a $(ZMQ_LIBS) $(PROTOBUF_C_LIBS) $(LIBMD_LIBS)

check_PROGRAMS += tests/unit/test_backend_daemon
tests_unit_test_backend_daemon_SOURCES = tests/unit/test_backend_daemon.c
tests_unit_test_backend_daemon_LDADD = $(WSCLIENT_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_daemon

# The core without sockets, with fake devices; the archive's ws_dmodule_info() is fakedev.c's, so it stands first.
noinst_LIBRARIES += tests/libwsserver.a
tests_libwsserver_a_SOURCES = tests/lib/fakedev.h tests/lib/fakedev.c tests/lib/wsserver.h tests/lib/wsserver.c
tests_libwsserver_a_CPPFLAGS = $(AM_CPPFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(LIBMD_CFLAGS)
WSSERVER_LDADD = tests/libwsserver.a $(BACKEND_LDADD)

check_PROGRAMS += tests/unit/test_backend_stream
tests_unit_test_backend_stream_SOURCES = tests/unit/test_backend_stream.c
tests_unit_test_backend_stream_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_stream
check_PROGRAMS += tests/unit/test_backend_dispatch
tests_unit_test_backend_dispatch_SOURCES = tests/unit/test_backend_dispatch.c
tests_unit_test_backend_dispatch_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_dispatch
check_PROGRAMS += tests/unit/test_backend_rapl
tests_unit_test_backend_rapl_SOURCES = tests/unit/test_backend_rapl.c
tests_unit_test_backend_rapl_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_rapl
check_PROGRAMS += tests/unit/test_backend_memory
tests_unit_test_backend_memory_SOURCES = tests/unit/test_backend_memory.c
tests_unit_test_backend_memory_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_memory
check_PROGRAMS += tests/unit/test_backend_gate
tests_unit_test_backend_gate_SOURCES = tests/unit/test_backend_gate.c
tests_unit_test_backend_gate_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_gate

check_PROGRAMS += tests/unit/test_backend_loader
tests_unit_test_backend_loader_SOURCES = tests/unit/test_backend_loader.c
tests_unit_test_backend_loader_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_loader

check_PROGRAMS += tests/unit/test_backend_server tests/unit/test_backend_config tests/unit/test_backend_va
tests_unit_test_backend_server_SOURCES = tests/unit/test_backend_server.c
tests_unit_test_backend_server_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
tests_unit_test_backend_config_SOURCES = tests/unit/test_backend_config.c
tests_unit_test_backend_config_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
tests_unit_test_backend_va_SOURCES = tests/unit/test_backend_va.c
tests_unit_test_backend_va_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_server tests/unit/test_backend_config tests/unit/test_backend_va

# The fuzz target over its corpus; to fuzz: clang -fsanitize=fuzzer,address with fuzz_protocol.c in place of driver.c.
check_PROGRAMS += tests/fuzz/fuzz_protocol
tests_fuzz_fuzz_protocol_SOURCES = tests/fuzz/fuzz_protocol.c tests/fuzz/driver.c
tests_fuzz_fuzz_protocol_LDADD = $(WSSERVER_LDADD)
dist_check_SCRIPTS += tests/fuzz/protocol.sh
TESTS += tests/fuzz/protocol.sh
EXTRA_DIST += tests/corpus/protocol

check_PROGRAMS += tests/unit/test_backend_tasks
tests_unit_test_backend_tasks_SOURCES = tests/unit/test_backend_tasks.c
tests_unit_test_backend_tasks_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_tasks

check_PROGRAMS += tests/unit/test_backend_learn
tests_unit_test_backend_learn_SOURCES = tests/unit/test_backend_learn.c
tests_unit_test_backend_learn_LDADD = $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_learn

check_PROGRAMS += tests/unit/test_backend_energy
tests_unit_test_backend_energy_SOURCES = tests/unit/test_backend_energy.c
tests_unit_test_backend_energy_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_energy

# The core without sockets, with a software GPU: fused launches.
noinst_LIBRARIES += tests/libsoftserver.a
tests_libsoftserver_a_SOURCES = tests/lib/softserver.h tests/lib/softserver.c
tests_libsoftserver_a_CPPFLAGS = $(AM_CPPFLAGS) $(ZMQ_CFLAGS) $(PROTOBUF_C_CFLAGS) $(LIBMD_CFLAGS)
check_PROGRAMS += tests/unit/test_backend_fused
tests_unit_test_backend_fused_SOURCES = tests/unit/test_backend_fused.c
tests_unit_test_backend_fused_LDADD = tests/libsoftserver.a $(BACKEND_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_fused
check_PROGRAMS += tests/unit/test_templates
tests_unit_test_templates_SOURCES = tests/unit/test_templates.c
tests_unit_test_templates_LDADD = templates/libtemplates.a ptx/libptx.a base/libbase.a $(LZ4_LIBS) $(ZSTD_LIBS) $(TEST_LDADD)
TESTS += tests/unit/test_templates
