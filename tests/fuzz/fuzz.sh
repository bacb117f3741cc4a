#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs libFuzzer on targets that ./dev fuzz has built: tests/fuzz/fuzz.sh SECONDS NAME…
# As many run at a time as there are processors. Prints for each how many inputs a second it took,
# and how many edges of the code its inputs have reached in the beginning and in the end. Inputs
# that reach new code are kept in build/fuzz/corpus; one that finds an error is put into
# build/fuzz/found.
set -eu
cd "$(dirname "$0")/../.."
seconds=$1
shift
if [ $# -gt 1 ]; then
    printf '%s\n' "$@" | xargs -P"$(nproc)" -n1 tests/fuzz/fuzz.sh "$seconds"
    exit
fi

name=$1
target=build/fuzz/tests/fuzz/fuzz_$name kept=build/fuzz/corpus/$name log=build/fuzz/$name.log
mkdir -p "$kept" build/fuzz/found
seeds=tests/corpus/$name
[ "$name" != passes ] || seeds="tests/corpus/exec tests/corpus/ptx"
# Of what earlier runs have kept, the smallest inputs that reach all of it.
# shellcheck disable=SC2086
if [ -n "$(ls "$kept")" ]; then
    rm -rf "$kept.new"
    mkdir "$kept.new"
    "$target" -merge=1 "$kept.new" $seeds "$kept" >"$log" 2>&1 && rm -rf "$kept" && mv "$kept.new" "$kept"
fi
# -entropic=1, the default, spends more than half of the time on choosing what to change next.
set -- -entropic=0 -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 -artifact_prefix="build/fuzz/found/$name-"
case $name in
exec | link | ptx) set -- "$@" -dict=tests/fuzz/ptx.dict ;;
passes) set -- "$@" -dict=tests/fuzz/ptx.dict -max_len=600 ;;
session) set -- "$@" -max_len=512 ;;
config)
    sed -n 's/^KEY([a-z]*, \([a-z_]*\),.*/"\1"/p' backend/process/config_keys.def >build/fuzz/config.dict
    set -- "$@" -dict=build/fuzz/config.dict
    ;;
esac
r=0
# shellcheck disable=SC2086
"$target" "$@" -max_total_time="$seconds" "$kept" $seeds >"$log" 2>&1 || r=$?
edges() { sed -n "s/.*$1 *cov: \([0-9]*\) .*/\1/p" "$log" | tail -n 1; }
if [ $r = 0 ]; then
    printf 'fuzz_%-9s %7s inputs/s  %6s edges in the beginning, %6s in the end  ok\n' "$name" \
        "$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")" "$(edges INITED)" "$(edges DONE)"
else
    printf 'fuzz_%-9s found an error (see %s):\n' "$name" "$log"
    grep -n -A 30 -E 'ERROR:|runtime error|abort|left ' "$log" | head -n 60
fi
exit $r
