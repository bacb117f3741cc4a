# The gate (doc/gate.md).
dist_check_SCRIPTS += tests/process/gate.sh
TESTS += tests/process/gate.sh
tests/process/gate.log: tests/mock/libcuda.so.1 tests/mock/libnvidia-ml.so.1 tests/cuda/drv_gate
check_PROGRAMS += tests/unit/test_backend_gated
tests_unit_test_backend_gated_SOURCES = tests/unit/test_backend_gated.c
tests_unit_test_backend_gated_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/test_backend_gated
check_PROGRAMS += tests/process/gate_calls
tests_process_gate_calls_SOURCES = tests/process/gate_calls.c
tests_process_gate_calls_LDADD = -ldl
