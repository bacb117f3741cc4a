#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Loses the GPU at each point of submitting; see lost.c.
exec timeout 300 tests/device/lost "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1"
