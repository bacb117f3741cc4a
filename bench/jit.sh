#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What compiling kernels brings: the rows of bench_interp, interpreted, compiled and by tiers, each
# as times over the same work in C; and compiled ones over pocl's time for the same kernel in the
# same run, where pocl is installed. Usage: jit.sh [seconds of each]; run it in the build tree.
set -eu
s=${1:-0.1}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
WS_SOFT_JIT=never bench/bench_interp "$s" >"$dir/never"
WS_SOFT_JIT=always WS_SOFT_JIT_SAY=1 bench/bench_interp --pocl "$s" >"$dir/always" 2>"$dir/say"
# Before it is measured a row runs until the tiers have judged it.
WS_SOFT_JIT=tiers WS_BENCH_WARM=${WS_BENCH_WARM:-2} bench/bench_interp "$s" >"$dir/tiers"
grep '^bench_interp: ' "$dir/say" || true # pocl is not there
echo "| kernel | interpreted, × C | compiled, × C | by tiers, × C | compiled, × pocl |"
echo "|---|---|---|---|---|"
# Rows without a C function have no such figure.
grep -v '^geometric' "$dir/always" >"$dir/rows"
paste -d '\n' "$dir/never" "$dir/rows" "$dir/tiers" | awk '
    function times(line, whose) {
        if (!match(line, "[0-9.]+ x the time of " whose)) return ""
        split(substr(line, RSTART), part, " ")
        return part[1]
    }
    NR % 3 == 1 { name = substr($0, 1, 16); sub(/ +$/, "", name) }
    NR % 3 == 2 { peer = times($0, "pocl") }
    { t[NR % 3] = times($0, "C") }
    NR % 3 == 0 && t[1] != "" {
        printf "| %s | %s | %s | %s | %s |\n", name, t[1], t[2], t[0], peer
        n++
        for (k in t) sum[k] += log(t[k])
        if (peer != "") { n_peer++; sum_peer += log(peer) }
    }
    END {
        if (!n) exit
        printf "| geometric mean of %d | %.2f | %.2f | %.2f | ", n, exp(sum[1] / n), exp(sum[2] / n), exp(sum[0] / n)
        if (n_peer) printf "%.2f (of %d) |\n", exp(sum_peer / n_peer), n_peer
        else print "|"
    }'
echo
awk '/: compiled,/ {
        n++; sum += $(NF - 3); size += $(NF - 1)
        if ($(NF - 3) > most) { most = $(NF - 3); which = $2 }
    }
    /: not taken:/ { left = left " " $2 " (" $5 ")" }
    END {
        printf "%d kernels compiled in %.0f ms each, at most %.0f ms (%s), ", n, sum / n / 1000, most / 1000, which
        printf "%.0f KiB each\nnot taken:%s\n", size / n / 1024, left
    }' "$dir/say"
