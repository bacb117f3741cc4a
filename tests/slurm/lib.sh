# SPDX-License-Identifier: Apache-2.0
# What the tests with Slurm share. A test sources it, sets what cluster.sh lets it set, and calls
# cluster_start. The cluster ends with the test.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
. "$src/slurm/cluster/cluster.sh"
[ "$(id -u)" = 0 ] || skip "only root can start slurmd"
[ -z "$asan" ] || skip "Slurm's programs load the plugin, and have no sanitizer's runtime"
[ -z "$(cluster_missing)" ] || skip "not installed: $(cluster_missing)(slurmctld slurmd slurm-client munge)"
[ -e "$build/slurm/spank/wattshare.so" ] || skip "the plugin is not built: libslurm-dev is missing"

on_exit() {
    status=$?
    if [ "$status" != 0 ]; then tail -n 15 "$cluster"/log/* >&2 || true; fi
    cluster_stop
    (exit "$status")
    finish
}
trap on_exit EXIT

# programs: sets $program, in a folder where another user may read it
programs() {
    mkdir -m 0755 "$cluster/bin"
    cp "$cuda/drv_matmul" "$build/cli/wattshare" "$cluster/bin"
    program=$cluster/bin/drv_matmul
}
as_user() { runuser -u nobody -- env SLURM_CONF="$SLURM_CONF" "$@"; }
nobody_is_left() { # nobody_is_left NODE
    "$wattshare" status --json --socket "ipc://$cluster/$1/sock" | tr -d ' \n' | grep -q '"connected":true' && return 1
    true
}

# no_sm_is_taken NODE: no SM of its GPUs is anybody's
no_sm_is_taken() {
    cluster_status "$1" | tr -d ' \n' >"$tmp/sms"
    grep -q '"sms":\[\|"sm_clients":\[' "$tmp/sms" || return 1
    ! grep -q '"\(sms\|sm_clients\)":\[[^]]*[1-9]' "$tmp/sms"
}

# sums_agree NODE…: the jobs' joules are those of the accounts of their clients, to the microjoule
sums_agree() {
    for node in "$@"; do
        clients=$("$wattshare" status --json --socket "ipc://$cluster/$node/sock" | tr -d ' ' | tr ',{}' '\n\n\n' |
            awk -F: '/^"clients":/ { on = 1 } on && /^"(busy|idle)_uj":/ { s += $2 } END { printf "%d\n", s }')
        jobs=$(sed -n "s/^job .*, $node: \([0-9]*\)\.\([0-9]*\) J .*/\1\2/p" "$cluster/ledger" |
            awk '{ s += $1 } END { printf "%d\n", s }')
        [ "$clients" = "$jobs" ] && [ "$jobs" -gt 0 ] || { cat "$cluster/ledger"; fail "$node: clients have $clients uJ, jobs $jobs uJ"; }
        ok "$node: $jobs uJ"
    done
}
