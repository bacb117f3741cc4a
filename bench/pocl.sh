#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiled kernels of the software GPU beside pocl: the table of README.md, with AVX2 and with SSE2.
# Each figure is the kernel's time over pocl's for the same one, which runs in turns with it, and
# has what the processor has in both columns. Usage: pocl.sh [seconds of each row]; run it in the
# build tree.
set -eu
s=${1:-0.1}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for isa in avx2 sse2; do
    WS_SOFT_ISA=$isa WS_SOFT_JIT=always bench/bench_interp --pocl "$s" >"$dir/$isa"
    grep -q "^[a-z].* $isa " "$dir/$isa" || echo "pocl.sh: this processor does not have $isa" >&2
done
# Two kernels a line; the mean of all is the last line of each file.
awk -v isas="avx2 sse2" '
    BEGIN { split(isas, isa) }
    FNR == 1 { file++ }
    / x the time of pocl/ {
        match($0, /[0-9.]+ x the time of pocl/)
        split(substr($0, RSTART), part, " ")
        name = substr($0, 1, 16)
        sub(/ +$/, "", name)
        if (/^geometric mean/) { mean[file] = part[1]; next }
        if (file == 1) names[++n] = name
        times[name, file] = part[1]
    }
    function cells(k) {
        return k > n ? " | | |" : " " names[k] " | " times[names[k], 1] " | " times[names[k], 2] " |"
    }
    END {
        if (!n) { print "no pocl here" > "/dev/stderr"; exit 1 }
        print "| kernel | AVX2 | SSE2 | kernel | AVX2 | SSE2 |"
        print "|---|---|---|---|---|---|"
        half = int((n + 1) / 2)
        for (k = 1; k <= half; k++) print "|" cells(k) cells(half + k)
        printf "| **geometric mean of %d** | **%s** | **%s** | | | |\n", n, mean[1], mean[2]
    }' "$dir/avx2" "$dir/sse2"
