# The gate (doc/gate.md).
dist_check_SCRIPTS += tests/process/gate.sh
TESTS += tests/process/gate.sh
tests/process/gate.log: tests/mock/libcuda.so.1 tests/mock/libnvidia-ml.so.1 tests/cuda/drv_gate
check_PROGRAMS += tests/unit/backend/test_gated
tests_unit_backend_test_gated_SOURCES = tests/unit/backend/test_gated.c
tests_unit_backend_test_gated_LDADD = $(WSSERVER_LDADD) $(TEST_LDADD)
TESTS += tests/unit/backend/test_gated
check_PROGRAMS += tests/process/gate_calls
tests_process_gate_calls_SOURCES = tests/process/gate_calls.c
tests_process_gate_calls_LDADD = -ldl
