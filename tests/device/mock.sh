#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The devices' suite against the CUDA device on the mock driver, with plain launches, with launches that can be stopped,
# and without isolation.
for kind in cuda cuda-tickets cuda-unfenced; do
    timeout 300 tests/device/conformance $kind "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
done
# Two GPUs.
for kind in cuda cuda-unfenced; do
    WS_MOCK_GPUS=2 timeout 100 tests/device/pair $kind "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
done
WS_MOCK_GPUS=2 WS_MOCK_NO_PEERS=1 timeout 100 tests/device/pair cuda "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
# Memory that outlives its process.
timeout 100 tests/device/keep cuda "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
r=0
WS_MOCK_NO_EXPORT=1 timeout 100 tests/device/keep cuda "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || r=$?
[ $r = 77 ]
