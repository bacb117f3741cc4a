# Reference data of the papers' authors, recomputed.
check_PROGRAMS += tests/reference/check
tests_reference_check_SOURCES = tests/reference/check.h tests/reference/check.c tests/reference/kinds.def
tests_reference_check_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_reference_check_LDADD = $(SIM_LIBS)
dist_check_SCRIPTS += tests/reference/reference.sh
TESTS += tests/reference/reference.sh
