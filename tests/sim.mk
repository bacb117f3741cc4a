# sim and the tools of the command: one block per module.
check_PROGRAMS += tests/unit/test_sim_input
TESTS += tests/unit/test_sim_input
tests_unit_test_sim_input_SOURCES = tests/unit/test_sim_input.c tests/unit/json_text.h
tests_unit_test_sim_input_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_unit_test_sim_input_LDADD = cli/libtools.a $(SIM_LIBS) -lpthread $(TEST_LDADD)
check_PROGRAMS += tests/unit/test_sim_rtsim
TESTS += tests/unit/test_sim_rtsim
tests_unit_test_sim_rtsim_SOURCES = tests/unit/test_sim_rtsim.c
tests_unit_test_sim_rtsim_LDADD = $(SIM_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/test_sim_cluster
TESTS += tests/unit/test_sim_cluster
tests_unit_test_sim_cluster_SOURCES = tests/unit/test_sim_cluster.c tests/unit/json_text.h
tests_unit_test_sim_cluster_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_unit_test_sim_cluster_LDADD = $(SIM_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/test_sim_machine
TESTS += tests/unit/test_sim_machine
tests_unit_test_sim_machine_SOURCES = tests/unit/test_sim_machine.c tests/unit/json_text.h
tests_unit_test_sim_machine_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS) $(SQLITE_CFLAGS) -DWS_SRCDIR='"$(abs_top_srcdir)"'
tests_unit_test_sim_machine_LDADD = $(SIM_LIBS) $(TEST_LDADD)
