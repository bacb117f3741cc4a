#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the table "Ten figures that matter" of README.md as this build tree measures it: from what
# `make bench` left in bench/*.out, and from the live experiments, truth-fit and bench-passes, which
# it runs (some minutes). A row whose program was not run, or that cannot be measured here, says so.
# truth-fit needs measurements of real GPUs: WATTSHARE_MEASURED, or ../shared/measured beside the
# sources.
#
# Usage, in a build tree: make bench, or make bench-readme
src=${srcdir:-$(dirname "$0")/..}
measured=${WATTSHARE_MEASURED:-$src/../shared/measured}
out=bench/readme.out
rm -rf "$out" && mkdir -p "$out" || exit 1
failed=

row() { # row WHAT FIGURE PRINTED-BY
    echo "| $1 | ${2:-not measured} | $3 |"
    [ -n "$2" ] || failed=1
}
# range CONDITION FIELD FILE: the least and the most of a field, of the lines for which it holds
range() {
    awk -v f="$2" "$1"' { gsub(/[^0-9.]/, "", $f); if (!n++ || $f < a) a = $f; if ($f > b) b = $f }
        END { if (n) print (a == b ? a : a " to " b) }' "$3" 2>/dev/null
}
with() { # with FIGURE UNIT: both, or nothing
    [ -z "$1" ] || echo "$1$2"
}
experiment() { # experiment NAME OPTION...
    cli/wattshare experiment "$@" --no-plot --out "$out" >"$out/$1.txt" 2>"$out/$1.err" || cat "$out/$1.err" >&2
}
# said NAME TEXT: the column "ours" of the row of an experiment's summary
said() {
    awk -F'","' -v t="$2" 'index($1, t) { printf "%.3g\n", $3 }' "$out/$1-summary.csv" 2>/dev/null
}
# errors QUANTITY: the least and the most mean error of truth-fit's GPUs
errors() {
    awk -F'","' -v t=": $1, mean error" 'index($1, t) { v = $3 + 0; if (!n++ || v < a) a = v; if (v > b) b = v } END { if (n) print a " to " b }' \
        "$out/truth-fit-summary.csv" 2>/dev/null
}

experiment live-consolidation
experiment live-preempt
[ ! -d "$measured" ] || experiment truth-fit --data "$measured"
"$src/bench/passes.sh" >"$out/passes.txt" 2>&1 || cat "$out/passes.txt" >&2

echo "| what | measured | printed by |"
echo "|---|---|---|"
row "time that an asynchronous kernel launch costs its program" \
    "$(with "$(range '/^asynchronous launch, amortised/' 4 bench/bench_client.out)" ' ns')" '`bench/bench_client`'
row "synchronising call, of a bare ZeroMQ round trip" \
    "$(with "$(range '/^synchronising call, with ring/' 8 bench/bench_client.out)" ' ×')" '`bench/bench_client waits`'
row '16 MiB copy from pinned memory, of the speed of `memcpy`' \
    "$(with "$(range '/16 MiB pinned to device/' 9 bench/bench_client.out)" ' %')" '`bench/bench_client`'
row "software GPU, naive matrix product, million instructions/s of one core" \
    "$(range '/^matmul naive/' 4 bench/bench_interp.out)" '`bench/bench_interp`'
row "time that a policy adds to a launch" \
    "$(with "$(range '$2 == "0" && $1 != "none"' 5 bench/bench_dispatch.out)" ' µs')" '`bench/bench_dispatch`'
row "memory of the service with 1,000 idle programs" \
    "$(with "$(range '/^resident memory of the daemon/' 6 bench/bench_service.out)" ' MiB')" '`bench/bench_service`'
row "time, energy of 12 programs merged into one launch, of one by one" \
    "$(said live-consolidation '12 x encryption: dynamic by serial, time'), $(said live-consolidation '12 x encryption: dynamic by serial, energy')" \
    'E `live-consolidation`'
row "error of power, time, energy of applications left out of the fit, on six real GPUs (power) and four (time, energy)" \
    "$(e=$(errors energy) && with "$e" "" | sed "s|^|$(errors power), $(errors time), |; s|\$| %|")" 'E `truth-fit`'
row "an urgent job's wait for blocks of 2.0 ms: 95 %, longest" \
    "$(sed -n 's/.*within \([0-9.]*\) ms, the longest \([0-9.]*\),.*/\1, \2 ms/p' "$out/live-preempt.txt" 2>/dev/null)" 'E `live-preempt`'
row "instructions of a kernel fenced to its own memory, of the original's" \
    "$(with "$(awk '$1 == "fence" { print $3 }' "$out/passes.txt")" ' ×')" '`make bench-passes`'
[ -z "$failed" ]
