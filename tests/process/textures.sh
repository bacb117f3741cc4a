#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs programs about textures, surfaces and video instructions, which check themselves, on software
# GPUs and on the device for real GPUs with the mock driver, where the instructions are replaced;
# there also under a policy, where kernels take their blocks from a counter or are fused. It fails
# if one of their results is wrong.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
have_nvcc || skip "no nvcc here, so no programs built by it"
programs() { # programs PROGRAM…
    for p in "$@"; do
        client "$cuda/nv/$p" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out" "$tmp/err"; fail "$p"; }
        grep -q '^PASS' "$tmp/out" || { cat "$tmp/out" "$tmp/err"; fail "$p did not say PASS"; }
        ok "$p"
    done
    wait_empty
}
start_daemon --gpus rtx3070,t400
for k in static shared; do
    programs rotate_$k layers_$k surfaces_$k stereo_$k
done
ok "nothing is left"
stop_daemon
start_mock
"$wattshare" status | grep -q "textures and surfaces: yes" || fail "status does not say that there are textures"
programs rotate_static layers_static surfaces_static stereo_static texture2d_static texture3d_static texlinear_static \
    surface_static imagefilter_static
stop_daemon
echo 'policy = rr' >"$tmp/conf"
start_mock --config "$tmp/conf"
programs rotate_shared layers_shared surfaces_shared texture2d_shared surface_shared
stop_daemon
# Several at once, some of whose launches may become one.
printf 'policy = consolidate\npolicy_options = {"threshold=2","window=5","sharing=bounded","dispatch=greedy"}\n' >"$tmp/conf"
start_mock --config "$tmp/conf"
pids=
for k in 1 2; do
    for p in rotate layers; do
        task=$p$k client "$cuda/nv/${p}_static" >"$tmp/$p$k" 2>&1 &
        pids="$pids $!"
    done
done
for pid in $pids; do
    wait "$pid" || { cat "$tmp"/rotate? "$tmp"/layers?; fail "several at once"; }
done
wait_empty
ok "several at once"
stop_daemon
grep -q "VIOLATION" "$tmp/daemon.log" && fail "the driver was used wrongly"
ok "the mock driver"
