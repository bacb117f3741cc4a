#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does what kills.sh does under policies that hold work back, share SMs out, preempt, move programs
# between GPUs, and merge launches. It fails if a survivor's result is wrong. KILLS=200 kills more.
set -eu
dir=${srcdir:-$(dirname "$0")/../..}/tests/process
for p in gcaps rr sbeet-mg stgm edf-bf consolidate wattshare; do
    options=
    [ $p != consolidate ] || options='"threshold=2","window=5","sharing=bounded","dispatch=greedy","source=profile"'
    KILLS=${KILLS:-15} POLICY=$p POLICY_OPTIONS=$options sh "$dir/kills.sh" || exit 1
done
