# Reference data of the papers' authors, recomputed.
check_PROGRAMS += tests/reference/check
tests_reference_check_SOURCES = tests/reference/check.h tests/reference/check.c \
	tests/reference/kinds.def tests/reference/check_consolidation.c \
	tests/reference/check_edl.h tests/reference/check_edl.c tests/reference/check_edl_means.c \
	tests/reference/check_edl_sim.c
tests_reference_check_SOURCES += tests/reference/check_rta.h tests/reference/check_rta.c \
	tests/reference/check_rta_shares.c
tests_reference_check_SOURCES += tests/reference/check_traces.c
tests_reference_check_SOURCES += tests/reference/check_sbeet.c tests/reference/check_sbeet_models.c
tests_reference_check_CPPFLAGS = $(AM_CPPFLAGS) $(JSON_C_CFLAGS)
tests_reference_check_LDADD = $(PAPERS_LIBS)
dist_check_SCRIPTS += tests/reference/reference.sh
TESTS += tests/reference/reference.sh

# An error planted in any model is seen.
dist_check_SCRIPTS += tests/reference/planted.sh
EXTRA_DIST += tests/reference/planted.list
TESTS += tests/reference/planted.sh
planted_flags = WS_PLANTED_COMPILE='$(CC) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(JSON_C_CFLAGS) $(SQLITE_CFLAGS) $(AM_CFLAGS) $(CFLAGS)' \
	WS_PLANTED_LINK='$(CC) $(AM_CFLAGS) $(CFLAGS) -Wl,-S' \
	WS_PLANTED_OBJECTS='$(tests_reference_check_OBJECTS) $(tests_reference_check_LDADD) $(LIBS)'
if SANITIZE
planted_flags += WS_PLANTED_SKIP=yes
endif
AM_TESTS_ENVIRONMENT += $(planted_flags);export WS_PLANTED_COMPILE WS_PLANTED_LINK WS_PLANTED_OBJECTS WS_PLANTED_SKIP;
