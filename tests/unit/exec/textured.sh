#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The interpreter's tests of textures and surfaces again, with these instructions replaced by what
# they compute (ptx/passes/texture.c), alone and with what a real GPU's device puts around them
# (with sanitizers only so). The tests' references are formulas in C; beside them each launch is
# compared with the original's, bit for bit.
set -eu
src=${srcdir:-$(dirname "$0")/../..}
n=0
kinds="none fence fence-persistent" least=300
! nm -D tests/unit/exec/test_tex | grep -q '__[at]san_init' || kinds=fence-persistent least=100
for kind in $kinds; do
    for t in tests/unit/exec/test_tex tests/unit/exec/test_surf; do
        if [ $kind = none ]; then unset WS_FIX_REWRITE; else export WS_FIX_REWRITE=$kind; fi
        [ $kind != fence ] || [ $t = tests/unit/exec/test_surf ] || continue
        WS_FIX_TEXTURE=1 "$t" >textured.out 2>&1 || { echo "$kind $t:"; grep -vE '  OK|RUN' textured.out | tail -n 40; rm -f textured.out; exit 1; }
        n=$((n + $(sed -n 's/^compared: \([0-9]*\) launches/\1/p' textured.out | awk '{ s += $1 } END { print s + 0 }')))
        rm -f textured.out
    done
done
echo "$n launches left the same memory"
[ "$n" -ge $least ] || { echo "too few: were they replaced at all?"; exit 1; }
# The text of the functions is made of their source by a compiler that isn't everywhere: of the
# source as it stands?
stamp=$(cd "$src" && cat ptx/passes/sampler.cu ptx/passes/sampler.h base/texture.h | sha256sum | cut -d' ' -f1)
grep -q "$stamp" "$src/ptx/passes/sampler.inc" || { echo "ptx/passes/sampler.inc is not of its sources as they are: tools/sampler.py nvcc"; exit 1; }
# A real assembler, where there is one, takes it.
if command -v ptxas >/dev/null; then
    tests/unit/ptx/test_texture print >textured.ptx
    ptxas -arch=sm_75 -o /dev/null textured.ptx || { echo "ptxas refuses what was made"; exit 1; }
    rm -f textured.ptx
fi
