#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each workload, as each kind of client, alone, on two unlike GPUs: right results, and nothing left afterwards.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
start_daemon --gpus rtx3070,t400
for c in $(clients); do
    task=$c client "$(client_path "$c")" "$(small "$c")" 2 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$c"; }
    grep -q '^PASS ' "$tmp/out" || { cat "$tmp/out"; fail "$c did not say PASS"; }
    grep -v '^PASS ' "$tmp/out" && fail "$c said more than PASS"
    ok "$c"
done
wait_empty
n=$(status_json | grep -c '"connected": *false')
[ "$n" -ge 8 ] || fail "the status knows only $n ended clients"
"$wattshare" status | grep -q 'drv/stencil' || fail "the status table does not name a task"
ok "nothing is left"
