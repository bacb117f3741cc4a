#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the devices' suite against the CUDA device on the mock driver: with plain launches, with
# launches that can be preempted, without isolation, and in a process of its own.
# Calls that may wait for the GPU do so (tests/mock/README.md).
export WS_MOCK_WAITS=all WS_MOCK_QUEUES=all
kinds="cuda cuda-tickets cuda-unfenced worker"
# With sanitizers, that of its own is left to tests/device/worker: seconds.
! nm tests/device/conformance 2>/dev/null | grep -q __asan_init || kinds="cuda cuda-tickets cuda-unfenced"
for kind in $kinds; do
    timeout 300 tests/device/conformance $kind "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" 2>mock.$$ || { cat mock.$$; rm -f mock.$$; exit 1; }
    cat mock.$$
    ! grep -q VIOLATION mock.$$ || { rm -f mock.$$; exit 1; } # in a worker nobody else asks
    rm -f mock.$$
done
# Faults, and a worker's end at any moment.
timeout 100 tests/device/worker worker "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
# Two GPUs.
for kind in cuda cuda-unfenced; do
    WS_MOCK_GPUS=2 timeout 100 tests/device/pair $kind "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
done
for kind in cuda worker; do
    WS_MOCK_GPUS=2 WS_MOCK_NO_PEERS=1 timeout 100 tests/device/pair $kind "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
done
# Memory that outlives its process.
timeout 100 tests/device/keep cuda "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
r=0
WS_MOCK_NO_EXPORT=1 timeout 100 tests/device/keep cuda "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || r=$?
[ $r = 77 ]
