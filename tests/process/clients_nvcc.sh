#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Does what clients.sh does for programs that nvcc built with the static and with the shared
# runtime, and for eight programs of mixed kinds. Skipped without nvcc.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
have_nvcc || skip "no nvcc here, so no programs built by it"
start_daemon --gpus rtx3070,t400
clients=$(nvcc_clients)
kinds="static shared"
# With sanitizers every other program, each with one of the two runtimes.
[ -z "$asan" ] || [ -n "${WS_TEST_ALL:-}" ] || {
    clients=$(echo "$clients" | tr ' ' '\n' | awk 'NR % 8 == 0 || NR % 8 == 3')
    kinds=static
}
# shellcheck disable=SC2086
alone $clients
for k in $kinds; do
    together $k/matmul $k/aes $k/sort $k/search $k/blackscholes $k/montecarlo $k/histogram $k/stencil
done
together drv/matmul static/matmul shared/matmul static/reduce shared/saxpy drv/sort static/stencil shared/histogram
wait_empty
ok "nothing is left"
