# wattshare coverage
dist_check_SCRIPTS += tests/process/coverage.sh
TESTS += tests/process/coverage.sh
