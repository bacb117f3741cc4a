#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The interpreter's tests again, with their kernels rewritten in each way (ptx/passes/pass.h) and
# stopped and resumed at random: the results must be those of the originals. With sanitizers two
# ways are taken, which have the others' code in them.
set -eu
n=0
kinds="slice ticket persistent fence fence-ticket fence-persistent fuse"
! nm -D tests/unit/exec/test_flow | grep -q '__[at]san_init' || kinds="fence-persistent fuse"
for kind in $kinds; do
    for t in tests/unit/exec/test_nvcc tests/unit/exec/test_flow tests/unit/exec/test_async tests/unit/exec/test_matrix; do
        [ -x "$t" ] || continue
        WS_FIX_REWRITE=$kind "$t" >rewritten.out 2>&1 || { echo "$kind $t:"; grep -vE '  OK|RUN' rewritten.out | tail -n 40; rm -f rewritten.out; exit 1; }
        n=$((n + $(grep -c '^rewritten: [1-9]' rewritten.out || true)))
        rm -f rewritten.out
    done
done
echo "$n tests ran rewritten kernels"
[ "$n" -ge 150 ] || { echo "too few: were they rewritten at all?"; exit 1; }
