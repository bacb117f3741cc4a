#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A program that forks before it uses CUDA, on the device for real GPUs: all children have the same
# addresses, and all have pinned memory and memory of the GPU at the same time. It fails if one
# child fails. The argument says how many there are.
. "${srcdir:-.}/tests/process/lib.sh"
n=${1:-100}
printf 'limits {\n max_clients = 4096\n}\n' >"$tmp/conf"
start_mock --config "$tmp/conf"
export WATTSHARE_TIMEOUT_MS=600000 # that they all say hello at once is not what is tried
task=prefork client_timeout=900 client "$cuda/drv_prefork" "$n" >"$tmp/out" 2>&1 ||
    { tail -n 20 "$tmp/out"; fail "of $n children, some failed"; }
wait_empty
"$wattshare" status >"$tmp/status"
! grep -q LOST "$tmp/status" || { cat "$tmp/status"; fail "the GPU is lost"; }
stop_daemon
daemon_pid=
ok "$n children with pinned memory"
