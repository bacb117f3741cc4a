#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No call that may wait for the GPU while a kernel runs; see waits.c. Also with a driver that makes
# no memory which can be exported.
timeout 100 tests/device/waits "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" || exit 1
WS_MOCK_REFUSE_EXPORT=1 exec timeout 100 tests/device/waits "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1"
