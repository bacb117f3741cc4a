#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The devices' suite against the CUDA device on the mock driver.
exec timeout 300 tests/device/conformance cuda "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1"
