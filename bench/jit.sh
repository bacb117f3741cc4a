#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What compiling kernels brings: the rows of bench_interp, interpreted and compiled, each as times
# over the same work in C. Usage: jit.sh [seconds of each]; run it in the build tree.
set -eu
s=${1:-0.1}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
WS_SOFT_JIT=never bench/bench_interp "$s" >"$dir/never"
WS_SOFT_JIT=always WS_SOFT_JIT_SAY=1 bench/bench_interp "$s" >"$dir/always" 2>"$dir/say"
echo "| kernel | interpreted, × C | compiled, × C |"
echo "|---|---|---|"
# Rows without a C function have no such figure.
paste -d '\n' "$dir/never" "$dir/always" | awk '
    function times(line) { return match(line, /[0-9.]+ x the time/) ? substr(line, RSTART, RLENGTH - 11) : "" }
    NR % 2 { name = substr($0, 1, 16); sub(/ +$/, "", name); first = times($0); next }
    first != "" { printf "| %s | %s | %s |\n", name, first, times($0); n++; a += log(first); b += log(times($0)) }
    END { if (n) printf "| geometric mean of %d | %.2f | %.2f |\n", n, exp(a / n), exp(b / n) }'
echo
awk '/: compiled,/ { n++; sum += $(NF - 1); if ($(NF - 1) > most) { most = $(NF - 1); which = $2 } }
    /: not taken:/ { left = left " " $2 " (" $5 ")" }
    END { printf "%d kernels compiled in %.0f ms each, at most %.0f ms (%s)\nnot taken:%s\n", n, sum / n / 1000, most / 1000, which, left }' "$dir/say"
