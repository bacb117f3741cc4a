# Tests of the façades.
check_PROGRAMS += tests/process/facade_driver
tests_process_facade_driver_SOURCES = tests/process/facade_driver.c
tests_process_facade_driver_CFLAGS = $(CUDA_CFLAGS)
tests_process_facade_driver_LDFLAGS =
tests_process_facade_driver_LDADD = -ldl
EXTRA_DIST += tests/process/facade_runtime.cu tests/process/facade_runtime2.cu
dist_check_SCRIPTS += tests/process/facade.sh
TESTS += tests/process/facade.sh
