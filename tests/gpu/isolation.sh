#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Lets programs go outside their memory while another one computes. With isolation only they get an
# error, and the GPU's context lives. Without isolation the context is lost, and the worker's
# restart, whose duration is printed, serves who comes next.
. "$(dirname "$0")/lib.sh"
rounds=20
[ -z "$short" ] || rounds=3
echo "what,value,unit"
serve 'isolation = fence'
WATTSHARE_TASK=steady timeout -k 2 60 cli/wattshare run -- tests/cuda/drv_stencil 96 $rounds >"$tmp/steady" 2>&1 &
steady=$!
for i in 1 2 3; do
    proxied "fault-$i" tests/cuda/drv_fault outside || { show "fault-$i"; fail "fault $i did not give CUDA's error"; }
done
wait $steady || { show steady; fail "a client beside those that fault is wrong"; }
! cli/wattshare status | grep -q -e LOST -e 'restarted [1-9]' || fail "an access that was checked cost the GPU's context"
echo "faults beside another client,3,"
unserve

serve 'isolation = none'
timeout -k 2 60 cli/wattshare run -- tests/cuda/drv_fault outside >"$tmp/lost" 2>&1
proxied after tests/cuda/drv_matmul || { show after; fail "after the context was lost nobody is served"; }
cli/wattshare status >"$tmp/status"
restart=$(sed -n 's/.*restarted [0-9]* times*, last in \([0-9]*\) ms.*/\1/p' "$tmp/status" | head -n 1)
[ -n "$restart" ] || { cat "$tmp/status" >&2; fail "the worker was not restarted"; }
echo "restart of the worker,$restart,ms"
unserve
