# base tests
check_PROGRAMS += tests/unit/test_base
tests_unit_test_base_SOURCES = tests/unit/test_base.c
tests_unit_test_base_LDADD = base/libbase.a $(TEST_LDADD)
TESTS += tests/unit/test_base
# protocol tests
check_PROGRAMS += tests/unit/test_lane
tests_unit_test_lane_SOURCES = tests/unit/test_lane.c
tests_unit_test_lane_LDADD = protocol/libprotocol.a base/libbase.a $(TEST_LDADD) -lpthread
TESTS += tests/unit/test_lane
