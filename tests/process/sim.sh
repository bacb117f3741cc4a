#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wattshare sim and gen --paper sbeet: results, tables, traces, and what is said of bad input while the good lines still run.
set -eu
w=${WATTSHARE:-cli/wattshare}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
fail() {
    echo "FAIL: $1"
    bad=1
}
expect() { # expect STATUS TEXT COMMAND…: the status, and the text in what it prints
    want=$1 text=$2
    shift 2
    status=0
    "$@" >"$dir/out" 2>&1 || status=$?
    [ "$status" = "$want" ] || { fail "$*: status $status, not $want"; head -n 5 "$dir/out"; }
    grep -qF -e "$text" "$dir/out" || { fail "$*: no '$text'"; head -n 5 "$dir/out"; }
}

# A set whose results under sBEET-mg's rules are known (u04_002 of its reference).
$w gen --paper sbeet --seed 400002 --u 0.4 --offsets stagger >"$dir/one"
expect 0 '"released":407,"missed":1,' $w sim --policy sbeet-mg --gpus rtx3070@6,t400 --compat --json "$dir/one"
expect 0 '"missed":16,' $w sim --policy sbeet-mg-offline --gpus rtx3070@6,t400 --compat --json "$dir/one"
expect 0 '"energy_J":997.9573' $w sim --policy sbeet-mg --gpus rtx3070@6,t400 --compat --copies-asis --option variant=asis --json "$dir/one"
expect 0 'load-dist' $w sim --policy sbeet-mg,load-dist "$dir/one"
# Input order is kept, whatever the number of threads, and results are the same.
$w gen --paper sbeet --u 1.2 --count 40 >"$dir/many"
$w sim --policy sbeet-mg,lcf --json --jobs 1 --duration 2 <"$dir/many" >"$dir/a"
$w sim --policy sbeet-mg,lcf --json --jobs 4 --duration 2 <"$dir/many" >"$dir/b"
cmp "$dir/a" "$dir/b" || fail "the number of threads changes results"
[ "$(wc -l <"$dir/a")" = 40 ] || fail "a line out for each line in"
# A file of GPUs with a type and kernels of its own.
cat >"$dir/gpus.json" <<EOF
{"types": [{"name": "toy", "n_sm": 4, "static_w": 5, "idle_w_per_sm": 0.5}],
 "gpus": [{"type": "toy", "slots": 3, "copy_engines": 1}, {"type": "t400"}],
 "kernels": [{"gpu": "toy", "name": "k", "wcet_ms": [8, 4, 3, 2], "h2d_ms": 1, "d2h_ms": 1, "dyn_w_per_sm": 2}]}
EOF
echo '{"id": "toy", "tasks": [{"benchmark": "k", "period_ms": 20}]}' >"$dir/toy"
expect 0 '"released":50,"missed":0,' $w sim --policy sbeet-mg --gpus "$dir/gpus.json" --duration 1 --json "$dir/toy"
# The trace is JSON with the kernel's parts.
expect 0 miss_ratio $w sim --policy sbeet-mg --gpus "$dir/gpus.json" --duration 1 --trace "$dir/trace.json" "$dir/toy"
grep -q '"name":"copy in"' "$dir/trace.json" || fail "no copies in the trace"
grep -q '"why":"its GPU is idle' "$dir/trace.json" || fail "no reasons in the trace"
tail -n 1 "$dir/trace.json" | grep -q '^]}$' || fail "the trace doesn't end"

# Bad lines are said with file, line, field; the others run.
{
    echo '{"tasks": ['
    echo '{"id": "neg", "tasks": [{"app": 1, "period_ms": -20}]}'
    cat "$dir/one"
    echo '{"id": "none", "tasks": [{"T": 3}]}'
    echo '{"id": "what", "tasks": [{"benchmark": "sort", "period_ms": 20}]}'
} >"$dir/mixed"
expect 1 '"id":"sbeet_0"' $w sim --policy lcf --json "$dir/mixed"
for text in "mixed:1: " "mixed:2: tasks[0].period_ms: -20" "mixed:4: " "mixed:5: tasks[0]: nothing is known of 'sort'"; do
    grep -qF -e "$text" "$dir/out" || { fail "no '$text'"; cat "$dir/out"; }
done
[ "$(grep -c '^{' "$dir/out")" = 1 ] || fail "one good line is wanted"
expect 1 'no task sets' $w sim --policy lcf /dev/null
expect 1 'No such file' $w sim --policy lcf "$dir/nothing"
expect 2 "no policy 'fastest'" $w sim --policy fastest "$dir/one"
expect 2 'usage' $w sim "$dir/one"
expect 2 'no option' $w sim --policy lcf --option variant=asis "$dir/one"
expect 2 'clean, asis or paper' $w sim --policy sbeet-mg --option variant=x "$dir/one"
expect 2 '--duration' $w sim --policy lcf --duration 0 "$dir/one"
expect 2 'is no GPU' $w sim --policy lcf --gpus titan "$dir/one"
expect 2 'from 1 to 6' $w sim --policy lcf --gpus t400@7 "$dir/one"
echo '{"gpus": [{"type": "t400", "sm_limit": 9}]}' >"$dir/bad.json"
expect 2 'gpus[0].sm_limit: 9' $w sim --policy lcf --gpus "$dir/bad.json" "$dir/one"
expect 1 '' $w sim --policy lcf --trace /nowhere/x "$dir/one"
expect 2 "no policy 'edl'" $w sim --policy edl "$dir/one"
expect 1 'has no part' $w sim --policy gcaps "$dir/one"
expect 2 'is wanted' $w gen --paper sbeet --u 9
expect 0 'sbeet-mg' $w sim --list
[ "$bad" = 0 ] && echo "wattshare sim: all as expected"
exit "$bad"
