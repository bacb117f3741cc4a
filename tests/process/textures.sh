#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Textures, surfaces and video instructions: programs that check themselves.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
have_nvcc || skip "no nvcc here, so no programs built by it"
start_daemon --gpus rtx3070,t400
for k in static shared; do
    for p in rotate layers surfaces stereo; do
        client "$cuda/nv/${p}_$k" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out" "$tmp/err"; fail "$k/$p"; }
        grep -q '^PASS' "$tmp/out" || { cat "$tmp/out" "$tmp/err"; fail "$k/$p did not say PASS"; }
        ok "$k/$p"
    done
done
wait_empty
ok "nothing is left"
