#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lets every call of the driver fail once; see inject.c. With sanitizers, which make this take
# minutes, every call fails in one way; otherwise in every way there is.
some=
! nm -D tests/device/inject | grep -q '__[at]san_init' || some=some
# Each scenario has its own alarm; the limit of all is for a busy machine.
exec timeout 3000 tests/device/inject "$PWD/tests/mock/libcuda.so.1" "$PWD/tests/mock/libnvidia-ml.so.1" $some
