# sim and the tools of the command: one block per module.
check_PROGRAMS += tests/unit/test_sim_input
TESTS += tests/unit/test_sim_input
tests_unit_test_sim_input_SOURCES = tests/unit/test_sim_input.c
tests_unit_test_sim_input_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_unit_test_sim_input_LDADD = cli/libtools.a $(SIM_LIBS) -lpthread $(TEST_LDADD)
check_PROGRAMS += tests/unit/test_sim_cluster
TESTS += tests/unit/test_sim_cluster
tests_unit_test_sim_cluster_SOURCES = tests/unit/test_sim_cluster.c
tests_unit_test_sim_cluster_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_unit_test_sim_cluster_LDADD = $(SIM_LIBS) $(TEST_LDADD)
