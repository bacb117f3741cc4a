# policy: one block per module.
check_PROGRAMS += tests/unit/test_policy_consolidate
TESTS += tests/unit/test_policy_consolidate
tests_unit_test_policy_consolidate_SOURCES = tests/unit/test_policy_consolidate.c
tests_unit_test_policy_consolidate_LDADD = $(POLICY_LIBS) $(MODELS_LIBS) $(TEST_LDADD)

check_PROGRAMS += tests/unit/test_policy_analysis
TESTS += tests/unit/test_policy_analysis
tests_unit_test_policy_analysis_SOURCES = tests/unit/test_policy_analysis.c
tests_unit_test_policy_analysis_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_unit_test_policy_analysis_LDADD = $(SIM_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/test_policy_sbeet
TESTS += tests/unit/test_policy_sbeet
tests_unit_test_policy_sbeet_SOURCES = tests/unit/test_policy_sbeet.c
tests_unit_test_policy_sbeet_LDADD = $(POLICY_LIBS) $(MODELS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/test_policy_move
TESTS += tests/unit/test_policy_move
tests_unit_test_policy_move_SOURCES = tests/unit/test_policy_move.c
tests_unit_test_policy_move_LDADD = $(POLICY_LIBS) $(MODELS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/test_policy_rt
TESTS += tests/unit/test_policy_rt
tests_unit_test_policy_rt_SOURCES = tests/unit/test_policy_rt.c
tests_unit_test_policy_rt_LDADD = $(POLICY_LIBS) $(MODELS_LIBS) $(TEST_LDADD)
