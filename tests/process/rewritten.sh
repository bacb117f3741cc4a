#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the programs of clients.sh and clients_nvcc.sh again with a daemon that carries out each
# launch by rewritten kernels (`rewrite` in wattshared.conf): in pieces that are cut, stopped and
# resumed at random, with each access checked, or as a member of a fused kernel. It fails if a
# result differs.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
not_in_distcheck
# Not fillgpu, which checks times: those of launches in pieces are what they are.
clients=$(drv_clients)
! have_nvcc || clients="$clients $(nvcc_clients | tr ' ' '\n' | grep -vE '^shared/|/fillgpu$' | tr '\n' ' ')"
kinds="slice ticket persistent fence fence-ticket fence-persistent fuse fuse-same-block"
[ -z "$asan" ] || kinds="fence-persistent fuse" # minutes each: the others' code is in these
for kind in $kinds; do
    echo "rewrite = $kind" >"$tmp/wattshared.conf"
    : >"$tmp/daemon.log"
    start_daemon --config "$tmp/wattshared.conf" --gpus rtx3070,t400 --log-level debug
    # shellcheck disable=SC2086
    alone $clients
    wait_empty
    stop_daemon || fail "the daemon, rewriting as $kind"
    parts=$(sed -n 's/.*rewrite: launches=\([0-9]*\) parts=\([0-9]*\).*/\1 \2/p' "$tmp/daemon.log" | tail -n 1)
    [ -n "$parts" ] || fail "the daemon does not say how many launches it carried out in parts"
    # shellcheck disable=SC2086
    set -- $parts
    echo "$kind: $1 launches in $2 parts"
    [ "$1" -ge 100 ] || fail "$kind: too few launches were rewritten"
    case $kind in
    fence | fuse*) ;; # carried out whole
    *) [ "$2" -gt "$1" ] || fail "$kind: no launch was cut" ;;
    esac
    ok "$kind"
done
