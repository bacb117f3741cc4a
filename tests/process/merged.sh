#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs whole programs whose launches a policy merges into one: on a software GPU, and on the device
# for real GPUs with the mock driver, in the daemon and in a worker process. The programs check
# their own results. It fails if a result is wrong or if no launch was ever merged. The first
# launches are for learning, and making the template takes time, so the programs run until some
# launches were merged.
. "${srcdir:-.}/tests/process/lib.sh"
program=$build/bench/live/program
[ -x "$program" ] || fail "$program is not there"
n=4

merged() { "$wattshare" status --json | sed -n 's/.*"n_merged": *\([0-9]*\).*/\1/p'; }

all() { # all KIND: n programs at once, each with jobs enough to meet the others
    i=0 pids=
    while [ $i -lt $n ]; do
        i=$((i + 1))
        task=$1 client "$program" "$1" --length 4 --jobs 3 --seed $i >"$tmp/out.$i" 2>&1 &
        pids="$pids $!"
    done
    for p in $pids; do wait "$p" || { cat "$tmp"/out.*; fail "$1"; }; done
    [ "$(grep -l '"wrong": 0,' "$tmp"/out.* | wc -l)" = $n ] || { cat "$tmp"/out.*; fail "$1: wrong results"; }
}

check() { # check WHAT KIND
    tries=0
    until [ "$(merged)" -gt 0 ]; do
        tries=$((tries + 1))
        [ $tries -le 60 ] || fail "$1: launches of $2 were never merged"
        all "$2"
    done
    all "$2" # once more with the template there
    ok "$1: $2, merged $(merged) times"
    stop_daemon
    daemon_pid=
}

conf() { # conf MORE: who comes first waits until all are there, or for long
    printf 'policy = consolidate\npolicy_options = {"threshold=%d", "window=%d"}\nplacement = fixed\n%s\ntask encryption {\n wcet_ms = 10\n}\ntask search {\n wcet_ms = 10\n}\n' \
        $n 20000 "$1" >"$tmp/conf"
}

conf 'clock = scaled
time_scale = 2'
start_daemon --config "$tmp/conf" --gpus tesla-c1060
check "software GPU" encryption
for worker in yes no; do
    conf "gpu_worker = $worker"
    start_mock --config "$tmp/conf"
    check "real GPU, gpu_worker = $worker" encryption
done
conf ''
start_mock --config "$tmp/conf"
check "real GPU" search
