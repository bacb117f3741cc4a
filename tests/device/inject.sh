#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every call of the driver fails once: see inject.c.
exec timeout 500 tests/device/inject "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1"
