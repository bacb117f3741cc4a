#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The devices' suite against the CUDA device on the mock driver, with plain launches, with launches that can be stopped,
# and without isolation.
for kind in cuda cuda-tickets cuda-unfenced; do
    timeout 300 tests/device/conformance $kind "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
done
