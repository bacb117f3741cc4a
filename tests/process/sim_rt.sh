#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# wattshare sim on real-time task sets: a schedule known by hand, hunts beside bounds, traces, and what is said of bad input while
# the good lines still run.
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

# Task 1 is done with the GPU at 7, but task 0 has its core until 16. Task 2 gets the GPU back at 8 if the daemon hands it on; if the
# program calls end, at 17.
tasks='"tasks":[{"prio":3,"cpu":0,"T":100,"C":10,"ges":[],"offset":6},{"prio":2,"cpu":0,"T":200,"C":0,"ges":[[2,0,2]],"offset":4},{"prio":1,"cpu":1,"T":300,"C":0,"ges":[[5,0,5]]}]'
echo "{\"id\":\"hand\",\"overheads_ms\":{\"L\":1,\"theta\":0.2,\"epsilon\":1},\"ncpu\":2,$tasks}" >"$dir/hand"
expect 0 '"worst":[10,13,11]' $w sim --policy gcaps --periods 1 --json "$dir/hand"
expect 0 '"worst":[10,13,20]' $w sim --policy gcaps --hold calls --periods 1 --json "$dir/hand"
expect 0 '"worst":[10,3.2,5]' $w sim --policy rr --periods 1 --json "$dir/hand"
expect 0 'n_jobs' $w sim --policy gcaps,rr,mpcp,fmlp+ "$dir/hand"

# Bounds: broken where the list is held between the calls, kept where it is not. Threads don't change results.
$w gen --paper gcaps --seed 3 --axis util_per_cpu --x 0.3 --count 60 >"$dir/sets"
for hold in work calls; do
    $w sim --policy gcaps --hold $hold --bounds gcaps_suspend_safe --hunt 20 --json --jobs 1 "$dir/sets" >"$dir/$hold.1"
    $w sim --policy gcaps --hold $hold --bounds gcaps_suspend_safe --hunt 20 --json --jobs 4 "$dir/sets" >"$dir/$hold.4"
    cmp "$dir/$hold.1" "$dir/$hold.4" || fail "the number of threads changes results"
done
grep -q '"n_accepted":1' "$dir/work.1" || fail "no set is accepted"
grep -q '"n_exceeded":1' "$dir/work.1" && fail "a bound that holds is exceeded"
grep -q '"n_exceeded":1' "$dir/calls.1" || fail "a broken bound is not seen broken"
$w gen --paper stgm --seed 3 --count 40 >"$dir/stgm"
for mode in suspend busy; do
    $w sim --policy stgm --mode $mode --bounds stgm_$mode --hunt 10 --json "$dir/stgm" >"$dir/out"
    grep -q '"n_accepted":1' "$dir/out" || fail "stgm $mode: no set is accepted"
    grep -q '"n_exceeded":1' "$dir/out" && fail "stgm $mode: a bound that holds is exceeded"
done
$w sim --policy gcaps --hunt 5 --seed 2 --json "$dir/sets" >"$dir/a"
$w sim --policy gcaps --hunt 5 --seed 3 --json "$dir/sets" >"$dir/b"
cmp -s "$dir/a" "$dir/b" && fail "the seed changes nothing"

# Waits for updates of others break the busy bound that doesn't count them. Task 0 waits twice 0.9 for an update; task 1, released at 6.8
# when the second wait ends, has the core from 10.8 to 20, when task 0 comes again for 9: 23, where C + e + one job of task 0 (9) = 20.
cat >"$dir/wait" <<EOF
{"id":"wait","overheads_ms":{"L":1,"theta":0.2,"epsilon":1},"ncpu":3,"tasks":[{"prio":4,"cpu":0,"T":20,"C":3,"ces":[1,1,1],"ges":[[1,0,1],[1,0,1]]},{"prio":3,"cpu":0,"T":100,"C":10,"ges":[],"offset":6.8},{"prio":2,"cpu":2,"T":200,"C":5.8,"ces":[5.8,0],"ges":[[1,0,1]]},{"prio":1,"cpu":1,"T":300,"C":0.9,"ces":[0.9,0],"ges":[[50,0,50]]}]}
EOF
expect 0 '"exceeded":[1]' $w sim --policy gcaps --mode busy --bounds gcaps_busy_fix --periods 1 --json "$dir/wait"
expect 0 ',23,' $w sim --policy gcaps --mode busy --bounds gcaps_busy_fix --periods 1 --json "$dir/wait"
expect 0 '"exceeded":[]' $w sim --policy gcaps --mode busy --bounds gcaps_busy_safe --periods 1 --hunt 200 --json "$dir/wait"

# The trace is JSON with updates and reasons.
expect 0 '' $w sim --policy gcaps --trace "$dir/trace.json" "$dir/hand"
grep -q 'task 1 update' "$dir/trace.json" || fail "no updates in the trace"
grep -q 'leaves the run list' "$dir/trace.json" || fail "no reasons in the trace"
tail -n 1 "$dir/trace.json" | grep -q '^]}$' || fail "the trace doesn't end"

# Bad lines are said with file, line, field; the others run.
{
    echo '{"tasks": ['
    echo '{"id":"neg","ncpu":1,"tasks":[{"prio":1,"cpu":0,"T":-5,"C":1,"ges":[]}]}'
    cat "$dir/hand"
    echo '{"id":"core","ncpu":1,"tasks":[{"prio":1,"cpu":3,"T":5,"C":1,"ges":[]}]}'
    echo '{"id":"late","ncpu":1,"tasks":[{"prio":1,"cpu":0,"T":5,"D":6,"C":1,"ges":[]}]}'
    echo '{"id":"off","ncpu":1,"tasks":[{"prio":1,"cpu":0,"T":5,"C":1,"ges":[],"offset":-1}]}'
    echo '{"id":"seg","ncpu":1,"tasks":[{"prio":1,"cpu":0,"T":5,"C":1,"ges":[[1,2]]}]}'
    echo '{"id":"nothing","ncpu":1,"tasks":[{"prio":1,"cpu":0,"T":5,"C":0,"ges":[]}]}'
    echo '{"id":"sms","ncpu":1,"nsm":0,"tasks":[{"T":5000,"C":1,"segs":[]}]}'
} >"$dir/mixed"
expect 1 '"id":"hand"' $w sim --policy gcaps --json "$dir/mixed"
for text in "mixed:1: " "mixed:2: tasks[0].T: -5" "mixed:4: tasks[0]" "mixed:5: tasks[0]" "mixed:6: tasks[0].offset" "mixed:7: tasks[0].ges[0]" \
    "mixed:8: " "mixed:9: nsm"; do
    grep -qF -e "$text" "$dir/out" || { fail "no '$text'"; cat "$dir/out"; }
done
[ "$(grep -c '^{' "$dir/out")" = 1 ] || fail "one good line is wanted"
expect 2 'suspend or busy' $w sim --policy gcaps --mode lazy "$dir/hand"
expect 2 'work, command or calls' $w sim --policy gcaps --hold on "$dir/hand"
expect 2 'no such method' $w sim --policy gcaps --bounds best "$dir/hand"
expect 2 'a whole number' $w sim --policy gcaps --hunt 0 "$dir/hand"
expect 2 'a whole number' $w sim --policy gcaps --periods x "$dir/hand"
expect 2 'a whole number' $w sim --policy gcaps --seed -1 "$dir/hand"
expect 1 'wants an STGM set' $w sim --policy stgm --bounds stgm_busy "$dir/hand"
[ "$bad" = 0 ] && echo "wattshare sim, real-time sets: all as expected"
exit "$bad"
