#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the devices' suite against the CUDA device on the mock driver: with plain launches, with
# launches that can be preempted, without isolation, and in a process of its own. The driver uses
# all freedoms that its documentation leaves it (tests/mock/freedoms.md). Where there is NVIDIA's
# assembler, each module that the device prints in the way "cuda-tickets" is assembled by it, and
# kernels need the registers that it says.
export WS_MOCK_WAITS=all WS_MOCK_QUEUES=all WS_MOCK_MOVES=1 WS_MOCK_SLOW=97
mock="$PWD/tests/mock/libcuda.so.1 $PWD/tests/mock/libnvidia-ml.so.1"
PATH=$PATH:/usr/local/cuda/bin
kinds="cuda cuda-tickets cuda-unfenced worker"
asan=
# With sanitizers, the process of its own is left to tests/device/worker, the way without isolation,
# which does less than the others, to tests/device/pair, and of the others there is the one that has
# more to do.
! nm tests/device/conformance 2>/dev/null | grep -q __asan_init || asan=1 kinds=cuda-tickets
# shellcheck disable=SC2086 # words
for kind in $kinds; do
    regs=
    [ -n "$asan" ] || [ $kind != cuda-tickets ] || ! command -v ptxas >/dev/null || regs=ptxas
    WS_MOCK_REGS=$regs timeout 300 tests/device/conformance $kind $mock 2>mock.$$ || { cat mock.$$; rm -f mock.$$; exit 1; }
    cat mock.$$
    ! grep -q VIOLATION mock.$$ || { rm -f mock.$$; exit 1; } # in a worker nobody else asks
    rm -f mock.$$
done
# A GPU with clusters.
# shellcheck disable=SC2086
WS_MOCK_CC=90 WS_SUITE_ONLY=test_clusters timeout 100 tests/device/conformance cuda-tickets $mock || exit 1
# shellcheck disable=SC2086
[ -n "$asan" ] || WS_MOCK_CC=90 WS_MOCK_SMALL_CLUSTERS=1 WS_SUITE_ONLY=test_clusters timeout 100 tests/device/conformance worker $mock || exit 1
# Faults, and a worker's end at any moment.
# shellcheck disable=SC2086
timeout 250 tests/device/worker worker $mock || exit 1
# Two GPUs.
# shellcheck disable=SC2086
for kind in cuda cuda-unfenced; do
    WS_MOCK_GPUS=2 timeout 250 tests/device/pair $kind $mock || exit 1
done
# shellcheck disable=SC2086
for kind in cuda worker; do
    WS_MOCK_GPUS=2 WS_MOCK_NO_PEERS=1 timeout 250 tests/device/pair $kind $mock || exit 1
done
# Memory that outlives its process.
# shellcheck disable=SC2086
timeout 250 tests/device/keep cuda $mock || exit 1
r=0
# shellcheck disable=SC2086
WS_MOCK_NO_EXPORT=1 timeout 250 tests/device/keep cuda $mock || r=$?
[ $r = 77 ]
