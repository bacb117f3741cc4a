# base tests
EXTRA_DIST += tests/unit/base/README.md
check_PROGRAMS += tests/unit/base/test_base
tests_unit_base_test_base_SOURCES = tests/unit/base/test_base.c
tests_unit_base_test_base_LDADD = base/libbase.a $(TEST_LDADD)
TESTS += tests/unit/base/test_base
check_PROGRAMS += tests/unit/base/test_packet
tests_unit_base_test_packet_SOURCES = tests/unit/base/test_packet.c
tests_unit_base_test_packet_LDADD = base/libbase.a $(TEST_LDADD)
TESTS += tests/unit/base/test_packet
check_PROGRAMS += tests/unit/base/test_file
tests_unit_base_test_file_SOURCES = tests/unit/base/test_file.c
tests_unit_base_test_file_LDADD = base/libbase.a $(TEST_LDADD)
TESTS += tests/unit/base/test_file
check_PROGRAMS += tests/unit/base/test_table
tests_unit_base_test_table_SOURCES = tests/unit/base/test_table.c
tests_unit_base_test_table_LDADD = base/libbase.a $(TEST_LDADD)
tests_unit_base_test_table_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc
TESTS += tests/unit/base/test_table
# protocol tests
check_PROGRAMS += tests/unit/frontend/test_ring
tests_unit_frontend_test_ring_SOURCES = tests/unit/frontend/test_ring.c
tests_unit_frontend_test_ring_LDADD = protocol/libprotocol.a base/libbase.a $(TEST_LDADD) -lpthread
TESTS += tests/unit/frontend/test_ring
check_PROGRAMS += tests/unit/frontend/test_monitor
tests_unit_frontend_test_monitor_SOURCES = tests/unit/frontend/test_monitor.c
tests_unit_frontend_test_monitor_CPPFLAGS = $(AM_CPPFLAGS) $(PROTOBUF_C_CFLAGS)
tests_unit_frontend_test_monitor_LDADD = protocol/libprotocol.a base/libbase.a $(TEST_LDADD) \
	$(PROTOBUF_C_LIBS)
TESTS += tests/unit/frontend/test_monitor
check_PROGRAMS += tests/unit/base/test_launch_check
tests_unit_base_test_launch_check_SOURCES = tests/unit/base/test_launch_check.c
tests_unit_base_test_launch_check_LDADD = base/libbase.a $(TEST_LDADD)
TESTS += tests/unit/base/test_launch_check
