# policy: one block per module.
EXTRA_DIST += tests/unit/policy/README.md
check_PROGRAMS += tests/unit/policy/test_consolidate
TESTS += tests/unit/policy/test_consolidate
tests_unit_policy_test_consolidate_SOURCES = tests/unit/policy/test_consolidate.c
tests_unit_policy_test_consolidate_LDADD = $(POLICY_LIBS) $(MODELS_LIBS) $(TEST_LDADD)

check_PROGRAMS += tests/unit/papers/test_analysis
TESTS += tests/unit/papers/test_analysis
tests_unit_papers_test_analysis_SOURCES = tests/unit/papers/test_analysis.c
tests_unit_papers_test_analysis_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_unit_papers_test_analysis_LDADD = $(PAPERS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/policy/test_sbeet
TESTS += tests/unit/policy/test_sbeet
tests_unit_policy_test_sbeet_SOURCES = tests/unit/policy/test_sbeet.c
tests_unit_policy_test_sbeet_LDADD = $(POLICY_LIBS) $(MODELS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/policy/test_wattshare
TESTS += tests/unit/policy/test_wattshare
tests_unit_policy_test_wattshare_SOURCES = tests/unit/policy/test_wattshare.c
tests_unit_policy_test_wattshare_LDADD = $(POLICY_LIBS) $(MODELS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/policy/test_move
TESTS += tests/unit/policy/test_move
tests_unit_policy_test_move_SOURCES = tests/unit/policy/test_move.c
tests_unit_policy_test_move_LDADD = $(POLICY_LIBS) $(MODELS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/policy/test_rt
TESTS += tests/unit/policy/test_rt
tests_unit_policy_test_rt_SOURCES = tests/unit/policy/test_rt.c
tests_unit_policy_test_rt_LDADD = $(POLICY_LIBS) $(MODELS_LIBS) $(TEST_LDADD)
