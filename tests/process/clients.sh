#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the C clients of the driver API alone and all at once, on two GPUs of different types. It
# fails if a result is wrong or if the daemon holds anything afterwards.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
start_daemon --gpus rtx3070,t400
# shellcheck disable=SC2046
alone $(drv_clients)
wait_empty
n=$(status_json | grep -c '"connected": *false')
want=$(drv_clients | wc -l)
[ "$n" = "$want" ] || fail "the status knows $n ended clients, not $want"
"$wattshare" status | grep -q 'drv/stencil' || fail "the status table does not name a task"
ok "the status names what ran"
# shellcheck disable=SC2046
together $(drv_clients)
alone drv/graph
wait_empty
ok "nothing is left"
