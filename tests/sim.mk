# sim and the tools of the command: one block per module.
EXTRA_DIST += tests/unit/papers/README.md
check_PROGRAMS += tests/unit/papers/test_input
TESTS += tests/unit/papers/test_input
tests_unit_papers_test_input_SOURCES = tests/unit/papers/test_input.c tests/unit/papers/json_text.h
tests_unit_papers_test_input_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_unit_papers_test_input_LDADD = cli/libtools.a $(PAPERS_LIBS) -lpthread $(TEST_LDADD)
check_PROGRAMS += tests/unit/papers/test_rtsim
TESTS += tests/unit/papers/test_rtsim
tests_unit_papers_test_rtsim_SOURCES = tests/unit/papers/test_rtsim.c
tests_unit_papers_test_rtsim_LDADD = $(PAPERS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/papers/test_cluster
TESTS += tests/unit/papers/test_cluster
tests_unit_papers_test_cluster_SOURCES = tests/unit/papers/test_cluster.c tests/unit/papers/json_text.h
tests_unit_papers_test_cluster_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_unit_papers_test_cluster_LDADD = $(PAPERS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/papers/test_machine
TESTS += tests/unit/papers/test_machine
tests_unit_papers_test_machine_SOURCES = tests/unit/papers/test_machine.c tests/unit/papers/json_text.h
tests_unit_papers_test_machine_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS) $(SQLITE_CFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
tests_unit_papers_test_machine_LDADD = $(PAPERS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/papers/test_calibrate
TESTS += tests/unit/papers/test_calibrate
tests_unit_papers_test_calibrate_SOURCES = tests/unit/papers/test_calibrate.c
tests_unit_papers_test_calibrate_LDADD = $(PAPERS_LIBS) $(TEST_LDADD)
