#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Asks the façades many questions from programs as gcc and nvcc build them: facade_driver.c through
# the driver, facade_runtime.cu in each way in which nvcc's code reaches the runtime. It fails if
# one of their checks fails. Without nvcc only the first one runs.
. "${srcdir:-.}/tests/process/lib.sh"
start_daemon --gpus rtx3070,t400
run() { # run DESCRIPTION COMMAND…
    what=$1
    shift
    client "$@" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$what: status $?"; }
    grep -q '^checks=[1-9][0-9]* failed=0$' "$tmp/out" || { cat "$tmp/out"; fail "$what"; }
    ok "$what: $(grep '^checks=' "$tmp/out")"
    wait_empty
}
run "driver by dlsym" "$build/tests/process/facade_driver"
# a kernel that copies by a tensor map, for which there must be a device of sm_90
LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 timeout 100 "$wattshare" run --private --gpus h200 -- "$cuda/drv_tensor" >"$tmp/out" 2>&1 ||
    { cat "$tmp/out"; fail "a tensor map"; }
ok "a tensor map"

if [ ! -x "$cuda/nv/facade_static" ]; then
    echo "no nvcc when this tree was configured: the runtime was not tested"
    exit 0
fi
# clusters, for which there must be such a device, too
client_on_h200() { LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 timeout 100 "$wattshare" run --private --gpus h200 -- "$@" >"$tmp/out" 2>&1; }
client_on_h200 "$cuda/nv/clusters_static" || { cat "$tmp/out"; fail "clusters"; }
grep -q "^PASS clusters" "$tmp/out" || { cat "$tmp/out"; fail "clusters say nothing"; }
client_on_h200 "$cuda/nv/launchattr_static" || { cat "$tmp/out"; fail "launch attributes where there are clusters"; }
ok "clusters"
for p in static shared per_thread older; do
    run "runtime, $p" "$cuda/nv/facade_$p"
done
