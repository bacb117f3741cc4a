#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# PTX as nvcc makes it today must parse, print and parse again to the same; where ptxas is found it
# must accept what is printed. The programs are chosen for what they make the compiler emit. What
# nvcc has made stays in tests/ptx/nv, where a build with sanitizers finds it; ptxas is asked in the
# build without. Skipped (77) where nvcc is not found.
set -u
srcdir=${srcdir:-.}
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
[ -x "$nvcc" ] || { echo "nvcc not found"; exit 77; }
ptxas=$(dirname "$nvcc")/ptxas
! nm tests/ptx/roundtrip | grep -q __asan_init || ptxas=
made=tests/ptx/nv
mkdir -p $made
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT INT TERM
fails=0

check() { # FILE ARCH
    timeout 60 tests/ptx/roundtrip "$dir/out-" "$1" || { fails=$((fails + 1)); return; }
    [ -x "$ptxas" ] || return
    timeout 120 "$ptxas" -c -arch="$2" "$dir/out-$(basename "$1")" -o "$dir/x.cubin" >"$dir/log" 2>&1 && return
    timeout 120 "$ptxas" -c -arch="$2" "$1" -o "$dir/x.cubin" >/dev/null 2>&1 || return 0 # nor the original
    echo "ptxas rejects what is printed of $1:"; head -5 "$dir/log"
    fails=$((fails + 1))
}

n=0
compile() { # SOURCE ARCH NVCC-OPTIONS…
    src=$1 arch=$2; shift 2
    n=$((n + 1))
    out=$made/$n-$(basename "$src" .cu)-$arch
    if [ "$out.ptx" -nt "$srcdir/tests/ptx/cu/$src" ]; then
        check "$out.ptx" "sm_$arch"
        return
    fi
    if ! timeout 300 "$nvcc" -std=c++17 -w "$@" -arch="compute_$arch" -ptx -o "$dir/made.ptx" "$srcdir/tests/ptx/cu/$src" 2>"$dir/log"; then
        # A toolkit that has dropped an architecture or lacks a header is not the parser's fault,
        # but say so.
        echo "nvcc does not compile $src for $arch:"; head -2 "$dir/log"
        skipped=$((skipped + 1))
        return
    fi
    mv "$dir/made.ptx" "$out.ptx"
    check "$out.ptx" "sm_$arch"
}

skipped=0
for arch in 75 90; do
    compile basics.cu $arch
    compile objects.cu $arch -rdc=true
done
compile basics.cu 75 -G
compile basics.cu 80 -lineinfo
compile objects.cu 80 -G -rdc=true
compile tensor.cu 80
compile tensor.cu 90
compile tensor.cu 100

for mode in default speed none size; do
    if timeout 120 "$nvcc" -w -fatbin -arch=sm_75 -compress-mode=$mode -o "$dir/$mode.fatbin" "$srcdir/tests/ptx/cu/small.cu"; then
        timeout 60 tests/ptx/roundtrip "$dir/out-" "$dir/$mode.fatbin" || fails=$((fails + 1))
    else
        skipped=$((skipped + 1))
    fi
done
echo "$fails failed, $skipped not compiled"
[ $fails -eq 0 ] && [ $skipped -lt 6 ]
