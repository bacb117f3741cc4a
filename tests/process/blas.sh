#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests cuBLAS of `wattshare run` (frontend/blas). It fails if a product, an update, an equation or
# a reduction is not what BLAS defines, if NVIDIA's library exports a function that ours lacks, if
# ours exports anything else, or if the kernels' text is not of their source.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
user=$build/tests/process/blas_user
library=$build/frontend/libwattshare-blas.so
[ "$(nm -D --defined-only "$library" | grep -cv ' T cublas')" = 0 ] || fail "the library exports more than cuBLAS's functions"
stamp=$(cd "$src" && cat frontend/blas/kernels.cu frontend/blas/kernels.h | sha256sum | cut -d' ' -f1)
grep -q "$stamp" "$src/frontend/blas/kernels.inc" || fail "frontend/blas/kernels.inc is not of its sources as they are: tools/blas.py nvcc"
ok "exports and the kernels' text"

for gpu in h200 gtx980; do
    LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 "$wattshare" run --private --gpus $gpu -- "$user" >"$tmp/said" 2>&1 ||
        { cat "$tmp/said" >&2; fail "blas_user on $gpu: status $?"; }
    grep -q '^[0-9]* checks, 0 failed' "$tmp/said" || fail "blas_user says nothing"
    grep -q 'not supported: cublasSgetrfBatched' "$tmp/said" || fail "nobody is told what is not supported"
    ok "$gpu: $(tail -n 1 "$tmp/said")"
done

# A program may keep NVIDIA's.
WATTSHARE_BLAS='' LD_PRELOAD=$asan "$wattshare" run --private --gpus t400 -- sh -c 'echo "$LD_PRELOAD"' >"$tmp/said" 2>&1 || fail "without ours: status $?"
! grep -q blas "$tmp/said" || fail "WATTSHARE_BLAS= does not leave ours out"
ok "without ours"

# The names of NVIDIA's libraries, where they are. Those that only cuBLAS calls count, too.
nvidia=$(find /usr/local/cuda/lib64/ -name 'libcublas*.so' 2>/dev/null || true)
[ -n "$nvidia" ] || { echo "NVIDIA's cuBLAS is not here: names are not compared"; exit 0; }
names() { # names FILE…
    nm -D --defined-only "$@" | sed -n 's/^.* T \(cublas[A-Za-z0-9_]*\).*/\1/p' | sort -u
}
names "$library" >"$tmp/ours"
# shellcheck disable=SC2086
names $nvidia | comm -23 - "$tmp/ours" >"$tmp/lacking"
[ ! -s "$tmp/lacking" ] || { head "$tmp/lacking" >&2; fail "names that NVIDIA's libraries have"; }
ok "$(wc -l <"$tmp/ours") names"
