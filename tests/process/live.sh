#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the live experiments in their short form: processes, daemon, policy and scaled clock
# together, beside the simulators. Then it kills programs at random moments under each policy, while
# they wait, run, are preempted, or are in a launch of several programs. It fails if an experiment
# fails, if a surviving program's result is wrong, or if anything of a killed one is left. KILLS=200
# (or --kills 200) kills that many under each policy.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
kills=${KILLS:-10}
[ "${1:-}" != --kills ] || kills=$2
program=$build/bench/live/program
out=$tmp/experiments

# experiment NAME CLAIM…: runs it; each claim (a pattern) must be in the table, and hold. A host
# that is busy with other things shows in response times: then once more, and a third time.
experiment() {
    name=$1
    shift
    for try in 1 2 3; do
        r=0 missing=
        LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 timeout -k 5 100 "$wattshare" experiment "$name" --quick --no-plot --out "$out" >"$tmp/table" 2>&1 || r=$?
        [ $r = 0 ] || { cat "$tmp/table" "$out"/*.log; fail "experiment $name: status $r"; }
        for claim in "$@"; do
            grep -F -e "$claim" "$tmp/table" | grep -q reproduces || missing=$claim
        done
        [ -n "$missing" ] || break
    done
    [ -z "$missing" ] || { cat "$tmp/table"; fail "$name: $missing"; }
    grep -q '^catalog entry .*: \(uncalibrated: .\|power [0-9.]* %\)' "$tmp/table" || { cat "$tmp/table"; fail "$name does not say how far its joules can be trusted"; }
    ok "experiment $name"
}
if [ "$kills" -le 10 ] && [ -z "$asan" ]; then # with sanitizers the kills alone
    experiment live-consolidation 'makespan at most 1/5' 'energy at most 1/3'
    experiment live-preempt 'an urgent job starts within one block'
    experiment live-measured 'rtx3070: time' 'rtx3070: power' 't400: time' 't400: power'
    experiment live-share 'share of 3 of 30 SMs'
    experiment live-stgm 'missed (%)'
    experiment live-gcaps 'preemption shortens the longest response'
fi

# Under policy $1, with two programs that go on and are checked.
steady() { # until the file is gone: each round is a whole program
    n=0
    while [ -e "$tmp/go" ]; do
        # shellcheck disable=SC2086
        task=steady$1 client "$program" $2 >"$tmp/steady.$1" 2>&1 || { cp "$tmp/steady.$1" "$tmp/wrong.$1"; return; }
        n=$((n + 1))
    done
    echo $n >"$tmp/rounds.$1"
}
kill_under() {
    policy=$1
    cat >"$tmp/live.conf" <<END
gpus = {"rtx3070", "t400"}
clock = scaled
time_scale = 1
policy = $policy
policy_options = {$2}
task steady1 { priority = 1 sms = "0-2" }
task steady2 { sms = "3-5" }
task victim1 { priority = 3 sms = "0-2" }
task victim2 { priority = 0 sms = "1-4" }
END
    start_daemon --config "$tmp/live.conf" --log-level warning
    : >"$tmp/go"
    steady 1 "encryption --length 6 --jobs 12" &
    s1=$!
    steady 2 "steps --blocks 24 --length 640 --jobs 12" &
    s2=$!
    awk -v n="$kills" 'BEGIN { srand(11); for (i = 0; i < n; i++) printf "%d %.3f\n", int(rand() * 1000), 0.02 + 0.3 * rand() * rand() }' >"$tmp/plan"
    killed=0
    while read -r which after; do
        case $((which % 4)) in
        0) args="encryption --length 20" ;;
        1) args="steps --blocks 200 --length 640" ;;
        2) args="sorting --length 8" ;;
        3) args="montecarlo --blocks 20 --length 200" ;;
        esac
        # the program itself, without timeout and wattshare around it: the kill must hit it
        # shellcheck disable=SC2086
        LD_PRELOAD="${asan:+$asan:}$build/frontend/libwattshare.so" ASAN_OPTIONS=detect_leaks=0 WATTSHARE_TASK=victim$((which % 2 + 1)) \
            "$program" $args --jobs 1000000 >"$tmp/victim" 2>&1 &
        p=$!
        sleep "$after"
        if kill -KILL $p 2>/dev/null; then killed=$((killed + 1)); else cat "$tmp/victim"; fi
        wait $p 2>/dev/null || true
        [ ! -e "$tmp/wrong.1" ] && [ ! -e "$tmp/wrong.2" ] || break
    done <"$tmp/plan"
    rm "$tmp/go"
    wait $s1 || true
    wait $s2 || true
    for i in 1 2; do
        [ ! -e "$tmp/wrong.$i" ] || { cat "$tmp/wrong.$i"; fail "$policy: a steady program went wrong after $killed kills"; }
        [ "$(cat "$tmp/rounds.$i")" -ge 1 ] || fail "$policy: steady program $i did not finish a round"
    done
    [ "$killed" = "$kills" ] || fail "$policy: $killed of $kills programs were killed, the others had ended"
    wait_empty
    ok "$policy: $killed kills; the steady programs ran $(cat "$tmp/rounds.1") and $(cat "$tmp/rounds.2") times"
    stop_daemon || fail "$policy: the daemon"
}
kill_under consolidate '"threshold=2", "window=5"'
kill_under gcaps ''
kill_under rr '"slice=1"'
kill_under stgm ''
kill_under sbeet-mg ''
