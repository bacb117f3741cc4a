# The gate (doc/gate.md).
dist_check_SCRIPTS += tests/process/gate.sh
TESTS += tests/process/gate.sh
tests/process/gate.log: tests/mock/libcuda.so.1 tests/mock/libnvidia-ml.so.1 tests/cuda/drv_gate
