#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare sim` on real-time task sets: a schedule made by hand, hunts beside bounds, and
# traces. It fails if bad input is not reported or keeps the good lines from being simulated.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
w=$wattshare

# Task 1 is done with the GPU at 7, but task 0 has its core until 16. Task 2 gets the GPU back at 8
# if the daemon hands it on; if the program calls end, at 17.
tasks='"tasks":[{"prio":3,"cpu":0,"T":100,"C":10,"ges":[],"offset":6},{"prio":2,"cpu":0,"T":200,"C":0,"ges":[[2,0,2]],"offset":4},{"prio":1,"cpu":1,"T":300,"C":0,"ges":[[5,0,5]]}]'
echo "{\"id\":\"hand\",\"overheads_ms\":{\"L\":1,\"theta\":0.2,\"epsilon\":1},\"ncpu\":2,$tasks}" >"$tmp/hand"
expect 0 '"worst":[10,13,11]' $w sim --policy gcaps --periods 1 --json "$tmp/hand"
expect 0 '"worst":[10,13,20]' $w sim --policy gcaps --hold calls --periods 1 --json "$tmp/hand"
expect 0 '"worst":[10,3.2,5]' $w sim --policy rr --periods 1 --json "$tmp/hand"
expect 0 'n_jobs' $w sim --policy gcaps,rr,mpcp,fmlp+ "$tmp/hand"

# Bounds: broken where the list is held between the calls, kept where it is not. Threads don't
# change results.
$w gen --paper gcaps --seed 3 --axis util_per_cpu --x 0.3 --count 60 >"$tmp/sets"
for hold in work calls; do
    $w sim --policy gcaps --hold $hold --bounds gcaps_suspend_safe --hunt 20 --json --jobs 1 "$tmp/sets" >"$tmp/$hold.1"
    $w sim --policy gcaps --hold $hold --bounds gcaps_suspend_safe --hunt 20 --json --jobs 4 "$tmp/sets" >"$tmp/$hold.4"
    cmp "$tmp/$hold.1" "$tmp/$hold.4" || fail "the number of threads changes results"
done
grep -q '"n_accepted":1' "$tmp/work.1" || fail "no set is accepted"
grep -q '"n_exceeded":1' "$tmp/work.1" && fail "a bound that holds is exceeded"
grep -q '"n_exceeded":1' "$tmp/calls.1" || fail "a broken bound is not seen broken"
$w gen --paper stgm --seed 3 --count 40 >"$tmp/stgm"
for mode in suspend busy; do
    $w sim --policy stgm --mode $mode --bounds stgm_$mode --hunt 10 --json "$tmp/stgm" >"$tmp/out"
    grep -q '"n_accepted":1' "$tmp/out" || fail "stgm $mode: no set is accepted"
    grep -q '"n_exceeded":1' "$tmp/out" && fail "stgm $mode: a bound that holds is exceeded"
done
$w sim --policy gcaps --hunt 5 --seed 2 --json "$tmp/sets" >"$tmp/a"
$w sim --policy gcaps --hunt 5 --seed 3 --json "$tmp/sets" >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" && fail "the seed changes nothing"

# Waits for updates of others break the busy bound that doesn't count them. Task 0 waits twice 0.9
# for an update; task 1, released at 6.8 when the second wait ends, has the core from 10.8 to 20,
# when task 0 comes again for 9: 23, where C + e + one job of task 0 (9) = 20.
cat >"$tmp/wait" <<EOF
{"id":"wait","overheads_ms":{"L":1,"theta":0.2,"epsilon":1},"ncpu":3,"tasks":[{"prio":4,"cpu":0,"T":20,"C":3,"ces":[1,1,1],"ges":[[1,0,1],[1,0,1]]},{"prio":3,"cpu":0,"T":100,"C":10,"ges":[],"offset":6.8},{"prio":2,"cpu":2,"T":200,"C":5.8,"ces":[5.8,0],"ges":[[1,0,1]]},{"prio":1,"cpu":1,"T":300,"C":0.9,"ces":[0.9,0],"ges":[[50,0,50]]}]}
EOF
expect 0 '"exceeded":[1]' $w sim --policy gcaps --mode busy --bounds gcaps_busy_fix --periods 1 --json "$tmp/wait"
expect 0 ',23,' $w sim --policy gcaps --mode busy --bounds gcaps_busy_fix --periods 1 --json "$tmp/wait"
expect 0 '"exceeded":[]' $w sim --policy gcaps --mode busy --bounds gcaps_busy_safe --periods 1 --hunt 200 --json "$tmp/wait"

# The trace is JSON with updates and reasons.
expect 0 '' $w sim --policy gcaps --trace "$tmp/trace.json" "$tmp/hand"
grep -q 'task 1 update' "$tmp/trace.json" || fail "no updates in the trace"
grep -q 'leaves the run list' "$tmp/trace.json" || fail "no reasons in the trace"
tail -n 1 "$tmp/trace.json" | grep -q '^]}$' || fail "the trace doesn't end"

# Bad lines are said with file, line, field; the others run.
{
    echo '{"tasks": ['
    echo '{"id":"neg","ncpu":1,"tasks":[{"prio":1,"cpu":0,"T":-5,"C":1,"ges":[]}]}'
    cat "$tmp/hand"
    echo '{"id":"core","ncpu":1,"tasks":[{"prio":1,"cpu":3,"T":5,"C":1,"ges":[]}]}'
    echo '{"id":"late","ncpu":1,"tasks":[{"prio":1,"cpu":0,"T":5,"D":6,"C":1,"ges":[]}]}'
    echo '{"id":"off","ncpu":1,"tasks":[{"prio":1,"cpu":0,"T":5,"C":1,"ges":[],"offset":-1}]}'
    echo '{"id":"seg","ncpu":1,"tasks":[{"prio":1,"cpu":0,"T":5,"C":1,"ges":[[1,2]]}]}'
    echo '{"id":"nothing","ncpu":1,"tasks":[{"prio":1,"cpu":0,"T":5,"C":0,"ges":[]}]}'
    echo '{"id":"sms","ncpu":1,"nsm":0,"tasks":[{"T":5000,"C":1,"segs":[]}]}'
} >"$tmp/mixed"
expect 1 '"id":"hand"' $w sim --policy gcaps --json "$tmp/mixed"
for text in "mixed:1: " "mixed:2: tasks[0].T: -5" "mixed:4: tasks[0]" "mixed:5: tasks[0]" "mixed:6: tasks[0].offset" "mixed:7: tasks[0].ges[0]" \
    "mixed:8: " "mixed:9: nsm"; do
    grep -qF -e "$text" "$tmp/out" || { cat "$tmp/out"; fail "no '$text'"; }
done
[ "$(grep -c '^{' "$tmp/out")" = 1 ] || fail "one good line is wanted"
expect 2 'suspend or busy' $w sim --policy gcaps --mode lazy "$tmp/hand"
expect 2 'work, command or calls' $w sim --policy gcaps --hold on "$tmp/hand"
echo '{"tasks":[{"T":100,"C":5,"jitter":3,"ges":[[6,2,4]]}]}' >"$tmp/jitter"
expect 0 '"n_missed":0' $w sim --policy gcaps --json "$tmp/jitter"
expect 1 'tasks[0].jitter: the bounds are for jobs' $w sim --policy gcaps --bounds gcaps_suspend "$tmp/jitter"
expect 2 'no such method' $w sim --policy gcaps --bounds best "$tmp/hand"
expect 2 'a whole number from 1' $w sim --policy gcaps --hunt 0 "$tmp/hand"
expect 2 'a whole number' $w sim --policy gcaps --periods x "$tmp/hand"
expect 2 'a whole number' $w sim --policy gcaps --seed -1 "$tmp/hand"
expect 1 'needs an STGM set' $w sim --policy stgm --bounds stgm_busy "$tmp/hand"
