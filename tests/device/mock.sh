#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The devices' suite against the CUDA device on the mock driver, with plain launches and with launches that can be stopped.
for kind in cuda cuda-tickets; do
    timeout 300 tests/device/conformance $kind "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
done
