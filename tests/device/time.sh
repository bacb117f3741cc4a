#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Times of operations on a GPU that is never idle; see time.c.
exec timeout 100 tests/device/time "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1"
