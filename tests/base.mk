# base tests
check_PROGRAMS += tests/unit/test_base
tests_unit_test_base_SOURCES = tests/unit/test_base.c
tests_unit_test_base_LDADD = base/libbase.a $(TEST_LDADD)
TESTS += tests/unit/test_base
