#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the programs of clients.sh and clients_nvcc.sh again with a daemon that carries out each
# launch by rewritten kernels (`rewrite` in wattshared.conf): in pieces that are cut, stopped and
# resumed at random, with each access checked, or as a member of a fused kernel. It fails if a
# result differs.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
# Not fillgpu, which checks times: those of launches in pieces are what they are.
clients=$(drv_clients)
! have_nvcc || clients="$clients $(nvcc_clients | tr ' ' '\n' | grep -vE '^shared/|/fillgpu$' | tr '\n' ' ')"
# The code of the other kinds is in these two. differential.sh runs all kinds, each program in two
# of them, with one worker and without sanitizers.
kinds="fence-persistent fuse"
# With sanitizers a quarter of the programs is rewritten in the one way, another in the other: the
# passes' own tests run with sanitizers too.
n_shares=1 share=0
[ -z "$asan" ] || [ -n "${WS_TEST_ALL:-}" ] || ! have_nvcc || n_shares=4
for kind in $kinds; do
    some=$(echo "$clients" | tr ' ' '\n' | awk -v n=$n_shares -v r=$share 'NF && NR % n == r % n')
    share=$((share + 1))
    echo "rewrite = $kind" >"$tmp/wattshared.conf"
    : >"$tmp/daemon.log"
    start_daemon --config "$tmp/wattshared.conf" --gpus rtx3070,t400 --log-level debug
    # shellcheck disable=SC2086
    alone $some
    wait_empty
    stop_daemon || fail "the daemon, rewriting as $kind"
    carried_out "$kind"
    ok "$kind"
    have_nvcc || continue
    # Launches of clusters are left as they are.
    start_daemon --config "$tmp/wattshared.conf" --gpus h200
    client "$cuda/nv/clusters_static" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "clusters, rewriting as $kind"; }
    stop_daemon || fail "the daemon, rewriting clusters as $kind"
    ok "clusters, $kind"
done
