#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs unmodified programs with the scaled clock, on which device time passes. It fails if a result
# is wrong, alone or together, if events contradict the device's time, or if an idle GPU takes no
# energy.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
printf 'clock = scaled\ntime_scale = 10\n' >"$tmp/conf"
start_daemon --config "$tmp/conf" --gpus rtx3070,t400
# With sanitizers, together alone: the other clock runs each of them by itself too.
# shellcheck disable=SC2046
[ -n "$asan" ] && [ -z "${WS_TEST_ALL:-}" ] || alone $(drv_clients)
# shellcheck disable=SC2046
together $(drv_clients)
if have_nvcc; then
    alone static/eventtimes shared/eventtimes static/spinclock shared/spinclock static/queryorder shared/queryorder
    # the last three have kernels that wait for the program: they cost little time, and no device
    # time that would have to pass
    alone shared/hostfunc static/coopgroups static/graphparallel static/streamorder static/perthread
    together static/queryorder shared/eventtimes static/matmul shared/sort
fi
wait_empty
ok "nothing is left"
energy() {
    status_json | sed -n 's/.*"energy_uj": *\([0-9]*\).*/\1/p' | head -n 1
}
before=$(energy)
sleep 1
after=$(energy)
[ "$after" -gt "$before" ] || fail "an idle GPU takes no energy: $before uJ, a second later $after uJ"
ok "an idle GPU takes energy"
