# wattshare coverage
check_PROGRAMS += tests/fuzz/fuzz_coverage
tests_fuzz_fuzz_coverage_SOURCES = tests/fuzz/fuzz_coverage.c tests/fuzz/driver.c
tests_fuzz_fuzz_coverage_LDADD = $(COVERAGE_LIBS)
dist_check_SCRIPTS += tests/process/coverage.sh
TESTS += tests/process/coverage.sh
EXTRA_DIST += tests/corpus/coverage
