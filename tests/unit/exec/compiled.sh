#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The interpreter's tests again, with their kernels compiled (device/soft/jit) where they can be.
# A few random programs run, too, cut short (WS_RANDOM_FIRST, WS_RANDOM_COUNT, WS_RANDOM_CUT).
# WS_COMPILED=all: also those that take long.
# Skipped where LLVM's library is not installed: nothing was compiled then.
set -eu
n=0
tests="tests/unit/exec/test_memory tests/unit/exec/test_random tests/unit/exec/test_cluster"
[ "${WS_COMPILED:-}" != all ] ||
    tests="$tests tests/unit/exec/test_flow tests/unit/exec/test_access tests/unit/exec/test_nvcc"
for t in $tests; do
    [ -x "$t" ] || continue
    WS_SOFT_JIT=always WS_SOFT_JIT_SAY=1 WS_RANDOM_COUNT=${WS_RANDOM_COUNT:-3} \
        WS_RANDOM_CUT=${WS_RANDOM_CUT:-2} timeout 300 "$t" >compiled.out 2>&1 ||
        {
            echo "$t:"
            grep -vE '  OK|RUN|^jit:' compiled.out | tail -n 40
            rm -f compiled.out
            exit 1
        }
    n=$((n + $(grep -c 'jit: .*: compiled' compiled.out || true)))
    rm -f compiled.out
done
echo "$n kernels were compiled"
[ "$n" -gt 0 ] || exit 77
[ "$n" -ge 15 ] || { echo "too few: were they taken at all?"; exit 1; }
