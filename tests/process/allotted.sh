#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs of a batch job stay on the GPUs that the scheduler allotted to it, whatever the policy
# decides: two of them are allotted the second GPU, and the first one is free.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
program=$build/bench/live/program
both() { # both COMMAND…: two at the same time, each GPU's kernels in $kernels
    "$@" >"$tmp/one" 2>&1 &
    one=$!
    "$@" >"$tmp/two" 2>&1 || { cat "$tmp/two"; fail "$*"; }
    wait $one || { cat "$tmp/one"; fail "$*"; }
    kernels=$("$wattshare" status --json | tr -d ' \n' | sed 's/"clients":.*//; s/"n_kernels":/\n&/g' | sed -n 's/^"n_kernels":\([0-9]*\).*/\1/p' | tr '\n' ' ')
}
in_step() {
    sh -c '"$0" step begin --job "$1" --step 0 --uid "$(id -u)" --pid $$ --gpus 1 >/dev/null && shift && LD_PRELOAD='"$asan"' "$0" run -- "$@"' \
        "$wattshare" "$@"
}
for policy in fifo consolidate; do
    printf 'policy = "%s"\nclock = scaled\ntime_scale = 20\n' $policy >"$tmp/conf"
    start_daemon --config "$tmp/conf" --gpus t400,t400 --log-level debug
    both in_step 7 "$program" montecarlo --length 4000 --jobs 8
    [ "$kernels" = "0 16" ] || fail "$policy: the GPUs ran $kernels kernels, not 0 and 16"
    ! grep -q "moves from" "$tmp/daemon.log" || fail "$policy: a program was moved"
    ok "$policy: $kernels"
    # Without a batch job, the same programs are spread over both.
    both client "$program" montecarlo --length 4000 --jobs 8
    [ "${kernels%% *}" -gt 0 ] || fail "$policy: the first GPU is never used"
    stop_daemon
done
