#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs work that has no end beside a program that computes, under each policy. It fails if the
# program does not get on or its results are wrong, if work that can't be stopped is not ended with
# CUDA's error for a launch timeout, or if a kernel whose blocks end is ended.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"

# begin POLICY CLOCK MAX-KERNEL-MS [OPTIONS]
begin() {
    what="$1, $2 clock"
    cat >"$tmp/conf" <<C
policy = "$1"
policy_options = {${4:-}}
clock = "$2"
time_scale = 2
max_kernel_ms = $3
C
    start_daemon --config "$tmp/conf" --gpus t400
}

# The program that must get on.
bystander() {
    client_timeout=30 client "$cuda/drv_matmul" 32 $rounds >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$what: beside $kinds: it did not end well"; }
    grep -q '^PASS ' "$tmp/out" || fail "$what: beside $kinds: it did not say PASS"
}

hellos() { grep -c 'client: hello' "$tmp/daemon.log" || true; }

# beside KIND…: these, and the program beside them. Those that can't be stopped must end.
beside() {
    kinds=$* n=0 seen=$(hellos)
    for k in "$@"; do
        n=$((n + 1))
        LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 "$wattshare" run -- "$cuda/drv_endless" "$k" >"$tmp/endless$n" 2>&1 &
        eval "pid$n=$!"
    done
    i=0
    while [ "$(hellos)" -lt $((seen + n)) ]; do
        i=$((i + 1))
        [ $i != 400 ] || fail "$what: $kinds did not begin"
        sleep 0.05
    done
    bystander
    n=0
    for k in "$@"; do
        n=$((n + 1))
        eval "pid=\$pid$n"
        case $k:$must_end in
        grid:* | jobs:* | *:no)
            alive "$pid" || [ $must_end = no ] || { cat "$tmp/endless$n"; fail "$what: $k was ended"; }
            kill -KILL "$pid" 2>/dev/null || true
            wait "$pid" 2>/dev/null || true
            ;;
        *)
            i=0
            while alive "$pid"; do
                i=$((i + 1))
                [ $i != 200 ] || fail "$what: $k is not ended" # a busy host takes its time
                bystander # somebody has to wait for it
            done
            wait "$pid" || { cat "$tmp/endless$n"; fail "$what: $k did not end well"; }
            ;;
        esac
    done
    ok "$what: beside $kinds"
}

merged='"threshold=2","window=5","sharing=bounded","dispatch=greedy","source=profile"'
rounds=20
kinds_all="block blocks wait twice grid jobs"
policies="fifo edl stgm consolidate rr gcaps sbeet-mg wattshare none"
# With sanitizers one of each sort: that stops nothing, merges, shares time out, preempts, holds
# nothing back.
[ -z "$asan" ] || [ -n "${WS_TEST_ALL:-}" ] || policies="fifo consolidate rr gcaps none"
# Where a policy lets both run side by side, nobody waits, and nothing is ended.
for p in ${POLICIES:-$policies}; do
    options= must_end=yes
    [ $p != consolidate ] || options=$merged
    case $p in gcaps | sbeet-mg | wattshare | none) must_end=no ;; esac
    begin $p "${CLOCK:-functional}" 150 "$options"
    for k in $kinds_all; do beside $k; done
    beside block wait grid
    stop_daemon || fail "$what: the daemon's end"
done
# While a kernel is executed the scaled clock stands, for 2 s at most. If it did so each time that
# the grid goes on, the program would take 40 s.
must_end=yes
begin fifo scaled 150
beside block
beside grid
stop_daemon || fail "$what: the daemon's end"
begin fifo functional 3000 # the default
beside block
