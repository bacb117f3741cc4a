# slurm: what its rooms do without Slurm. tests/slurm/ runs them with it (slurm/local.mk).
EXTRA_DIST += tests/unit/slurm/README.md
check_PROGRAMS += tests/unit/slurm/test_plan
TESTS += tests/unit/slurm/test_plan
tests_unit_slurm_test_plan_SOURCES = tests/unit/slurm/test_plan.c
tests_unit_slurm_test_plan_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_unit_slurm_test_plan_LDADD = slurm/planner/libplan.a $(PAPERS_LIBS) $(TEST_LDADD)
check_PROGRAMS += tests/unit/slurm/test_hosts
TESTS += tests/unit/slurm/test_hosts
tests_unit_slurm_test_hosts_SOURCES = tests/unit/slurm/test_hosts.c
tests_unit_slurm_test_hosts_LDADD = slurm/planner/libplan.a base/libbase.a $(TEST_LDADD)
