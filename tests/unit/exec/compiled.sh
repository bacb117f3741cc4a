#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The interpreter's tests again, with their kernels compiled (device/soft/jit) where they can be.
# Skipped where LLVM's library is not installed: then nothing says that it was compiled.
set -eu
n=0
for t in tests/unit/exec/test_flow tests/unit/exec/test_memory tests/unit/exec/test_random; do
    [ -x "$t" ] || continue
    WS_SOFT_JIT=always WS_SOFT_JIT_SAY=1 WS_RANDOM_FIRST=3 WS_RANDOM_COUNT=1 "$t" >compiled.out 2>&1 ||
        { echo "$t:"; grep -vE '  OK|RUN|^jit:' compiled.out | tail -n 40; rm -f compiled.out; exit 1; }
    n=$((n + $(grep -c 'jit: .*: compiled' compiled.out || true)))
    rm -f compiled.out
done
echo "$n kernels were compiled"
[ "$n" -gt 0 ] || exit 77
[ "$n" -ge 100 ] || { echo "too few: were they taken at all?"; exit 1; }
