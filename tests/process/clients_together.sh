#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Eight clients at once, of each kind that there is, and then eight of mixed kinds.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
start_daemon --gpus rtx3070,t400
together() { # together CLIENTS…
    pids=
    for c in "$@"; do
        log=$tmp/$(echo "$c" | tr / _)
        { task=$c client "$(client_path "$c")" "$(small "$c")" 8 >"$log" 2>&1 || echo "status $?" >>"$log"; } &
        pids="$pids $!"
    done
    for p in $pids; do wait "$p"; done
    for c in "$@"; do
        log=$tmp/$(echo "$c" | tr / _)
        grep -q '^PASS ' "$log" && ! grep -q '^status' "$log" || { cat "$log"; fail "$c among eight"; }
        ok "$c"
        rm -f "$log"
    done
}
kinds=drv
[ ! -x "$cuda/nv/matmul_static" ] || kinds="drv static shared"
for k in $kinds; do
    together $k/matmul $k/aes $k/sort $k/search $k/blackscholes $k/montecarlo $k/histogram $k/stencil
done
[ "$kinds" = drv ] ||
    together drv/matmul static/matmul shared/matmul static/reduce shared/saxpy drv/sort static/stencil shared/histogram
wait_empty
ok "nothing is left"
