#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare sim` and `wattshare gen --paper sbeet`: results, tables and traces. It fails if
# bad input is not reported or keeps the good lines from being simulated.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
w=$wattshare

# A set whose results under sBEET-mg's rules are known (u04_002 of its reference).
$w gen --paper sbeet --seed 400002 --u 0.4 --offsets stagger >"$tmp/one"
expect 0 '"released":407,"missed":1,' $w sim --policy sbeet-mg --gpus rtx3070@6,t400 --compat --json "$tmp/one"
expect 0 '"missed":16,' $w sim --policy sbeet-mg-offline --gpus rtx3070@6,t400 --compat --json "$tmp/one"
expect 0 '"energy_J":997.9573' $w sim --policy sbeet-mg --gpus rtx3070@6,t400 --compat --copies-asis --option variant=asis --json "$tmp/one"
expect 0 'load-dist' $w sim --policy sbeet-mg,load-dist "$tmp/one"
# Input order is kept, whatever the number of threads, and results are the same.
$w gen --paper sbeet --u 1.2 --count 40 >"$tmp/many"
$w sim --policy sbeet-mg,lcf --json --jobs 1 --duration 2 <"$tmp/many" >"$tmp/a"
$w sim --policy sbeet-mg,lcf --json --jobs 4 --duration 2 <"$tmp/many" >"$tmp/b"
cmp "$tmp/a" "$tmp/b" || fail "the number of threads changes results"
[ "$(wc -l <"$tmp/a")" = 40 ] || fail "a line out for each line in"
# A file of GPUs with a type and kernels of its own.
cat >"$tmp/gpus.json" <<EOF
{"types": [{"name": "toy", "n_sm": 4, "static_w": 5, "idle_w_per_sm": 0.5}],
 "gpus": [{"type": "toy", "slots": 3, "copy_engines": 1}, {"type": "t400"}],
 "kernels": [{"gpu": "toy", "name": "k", "wcet_ms": [8, 4, 3, 2], "h2d_ms": 1, "d2h_ms": 1, "dyn_w_per_sm": 2}]}
EOF
echo '{"id": "toy", "tasks": [{"benchmark": "k", "period_ms": 20}]}' >"$tmp/toy"
expect 0 '"released":50,"missed":0,' $w sim --policy sbeet-mg --gpus "$tmp/gpus.json" --duration 1 --json "$tmp/toy"
# The trace is JSON with the kernel's parts.
expect 0 miss_ratio $w sim --policy sbeet-mg --gpus "$tmp/gpus.json" --duration 1 --trace "$tmp/trace.json" "$tmp/toy"
grep -q '"name":"copy in"' "$tmp/trace.json" || fail "no copies in the trace"
grep -q '"why":"its GPU is idle' "$tmp/trace.json" || fail "no reasons in the trace"
tail -n 1 "$tmp/trace.json" | grep -q '^]}$' || fail "the trace doesn't end"

# Bad lines are said with file, line, field; the others run.
{
    echo '{"tasks": ['
    echo '{"id": "neg", "tasks": [{"app": 1, "period_ms": -20}]}'
    cat "$tmp/one"
    echo '{"id": "none", "tasks": [{"T": 3}]}'
    echo '{"id": "what", "tasks": [{"benchmark": "sort", "period_ms": 20}]}'
} >"$tmp/mixed"
expect 1 '"id":"sbeet_0"' $w sim --policy lcf --json "$tmp/mixed"
for text in "mixed:1: " "mixed:2: tasks[0].period_ms: -20" "mixed:4: " "mixed:5: tasks[0]: the kernel 'sort' is not known"; do
    grep -qF -e "$text" "$tmp/out" || { cat "$tmp/out"; fail "no '$text'"; }
done
[ "$(grep -c '^{' "$tmp/out")" = 1 ] || fail "one good line is wanted"
expect 1 'no task sets' $w sim --policy lcf /dev/null
expect 1 'No such file' $w sim --policy lcf "$tmp/nothing"
expect 2 "no policy 'fastest'" $w sim --policy fastest "$tmp/one"
expect 2 'policy is missing' $w sim "$tmp/one"
expect 2 "none of the policies has an option 'variant=asis'" $w sim --policy lcf --option variant=asis "$tmp/one"
expect 0 '"lcf":{"released"' $w sim --policy sbeet-mg,lcf --gpus rtx3070@6,t400 --compat --copies-asis --option variant=asis --json "$tmp/one"
expect 2 'clean, asis or paper' $w sim --policy sbeet-mg --option variant=x "$tmp/one"
expect 2 '--duration' $w sim --policy lcf --duration 0 "$tmp/one"
expect 2 'is not a measured GPU' $w sim --policy lcf --gpus titan "$tmp/one"
expect 2 'from 1 to 6' $w sim --policy lcf --gpus t400@7 "$tmp/one"
echo '{"gpus": [{"type": "t400", "sm_limit": 9}]}' >"$tmp/bad.json"
expect 2 'gpus[0].sm_limit: 9' $w sim --policy lcf --gpus "$tmp/bad.json" "$tmp/one"
expect 1 '' $w sim --policy lcf --trace /nowhere/x "$tmp/one"
expect 2 "no policy 'edl'" $w sim --policy edl "$tmp/one"
expect 1 'cannot run task sets of this kind (sBEET-mg). Policies that can: those that share out SMs' $w sim --policy gcaps "$tmp/one"
$w gen --paper gcaps --count 1 >"$tmp/other"
expect 1 'Policies that can: gcaps, rr' $w sim --policy wattshare "$tmp/other"
$w gen --paper edl | head -n 1 >"$tmp/other"
expect 1 'wattshare cluster simulates these' $w sim --policy wattshare "$tmp/other"
expect 2 'expected 0.09 to 2.85' $w gen --paper sbeet --u 9
expect 0 'sbeet-mg' $w sim --list
! grep -q '^edl ' "$tmp/out" || fail "--list names edl, which --policy does not take"
# --policy takes what --list names, and nothing else.
for p in $(sed '/ --option /d; 1d; s/ .*//' "$tmp/out") wattshare fmlp+; do
    expect 1 'no task sets' $w sim --policy "$p" /dev/null
done

# Our own policy beside the others: it misses far less than sbeet-mg, and more in no set.
$w gen --paper sbeet --u 0.6 --count 4 >"$tmp/hunted"
$w sim --policy wattshare --option guarantee=1 --hunt 10 --json "$tmp/hunted" >"$tmp/a"
$w analyze --method wattshare_safe "$tmp/hunted" >"$tmp/b"
for i in 1 2 3 4; do
    sed -n "${i}p" "$tmp/b" | grep -q '"ok":true' || continue
    sed -n "${i}p" "$tmp/a" | grep -q '"missed":0,' || fail "sim --hunt: a set that passes misses"
done
grep -q '"ok":true' "$tmp/b" || fail "analyze: no set passes wattshare_safe"
once=$($w sim --policy wattshare --periods 4 --hunt 2 --json "$tmp/hunted" | sed -n '1s/.*"released":\([0-9]*\).*/\1/p')
often=$(sed -n '1s/.*"released":\([0-9]*\).*/\1/p' "$tmp/a")
[ "$often" -gt $((once * 3)) ] || fail "sim --hunt 10: $often jobs, and $once of two runs"

# Sanitizers do not change the figures of experiments; the simulator and the policies have run.
[ -z "$asan" ] || [ -n "${WS_TEST_ALL:-}" ] || { echo "SKIP (in part): make check without sanitizers runs the experiments"; exit 0; }
expect 0 '24: sets with more misses than with sbeet-mg' $w experiment own-sbeet --quick --no-plot --out "$tmp/own"
for claim in "24: misses, % of sbeet-mg's " '24: sets with more misses' '24: less energy than sbeet-mg'; do
    grep -F -e "$claim" "$tmp/out" | grep -q ' reproduces ' || { cat "$tmp/out"; fail "$claim: it does not hold"; }
done
[ "$(grep -c ',wattshare,' "$tmp/own/own-sbeet-24.csv")" = 11 ] || fail "own-sbeet: a row for each utilisation is wanted"

# Sets that pass the test miss nothing with the guarantee, and would without it.
expect 0 'guarantee=1: jobs missed in sets that pass' $w experiment own-safe --quick --no-plot --out "$tmp/safe"
grep 'guarantee=1: jobs missed' "$tmp/out" | grep -q ' 0\.0 .*reproduces' || fail "own-safe: jobs are missed"
grep -q 'guarantee=0: jobs missed in the same sets *– *[1-9]' "$tmp/out" || fail "own-safe: its sets are too easy"
expect 0 'guarantee=1: jobs missed in sets that pass' $w experiment own-hunt --quick --no-plot --out "$tmp/hunt"
grep 'guarantee=1: jobs missed' "$tmp/out" | grep -q ' 0\.0 .*reproduces.* sets pass the test, .* [1-9][0-9]* jobs' ||
    fail "own-hunt: jobs are missed"
expect 0 'U = 0.8: missed deadlines (%), gcaps and ours' $w experiment own-gcaps --quick --no-plot --out "$tmp/gcaps"
expect 0 'tasks = 16: missed deadlines (%), mpcp and ours' $w experiment own-stgm --quick --no-plot --out "$tmp/stgm"
grep 'tasks = [0-9]*: missed deadlines' "$tmp/out" | grep -qv reproduces && { cat "$tmp/out"; fail "own-stgm: more is missed than under another policy"; }
grep -q '^16,fmlp+,4,[0-9.]*[1-9]' "$tmp/stgm/own-stgm.csv" || fail "own-stgm: its sets are too easy"
# Where it may choose clocks it takes less.
expect 0 'ranges, wide interval: sets with more misses' $w experiment own-dvfs --quick --no-plot --out "$tmp/dvfs"
grep -F 'ranges, U = 1.0, wide interval: J' "$tmp/out" | grep -q ' reproduces ' || { cat "$tmp/out"; fail "own-dvfs: clocks save less than a tenth"; }
# A hunt: more runs of the same set, with other releases; sums over all.
