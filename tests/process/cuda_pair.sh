#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the daemon with two real GPUs, played by the mock driver, which can or cannot reach each
# other's memory. Programs use both GPUs, share memory by handles, and are moved from one to the
# other by policies while they run. It fails if a result is wrong or if an unreachable mapping is
# not refused.
. "${srcdir:-.}/tests/process/lib.sh"
start_pair() { # start_pair [ARGUMENTS…]
    WS_MOCK_GPUS=2 LD_LIBRARY_PATH=$mock start_daemon --gpus cuda "$@"
}
stop_pair() {
    wait_empty
    stop_daemon
    daemon_pid=
    ! grep "VIOLATION" "$tmp/daemon.log" || fail "the driver was used wrongly"
}

# placement = fixed: device 0 is the same GPU for all, as with NVIDIA's driver
# no_peers: the GPUs don't reach each other's memory: as WS_MOCK_NO_PEERS, or each in a worker of
# its own. With sanitizers, where a daemon takes seconds to start, the way that has most to do.
ways="peers apart workers"
[ -z "$asan" ] || ways=workers
for how in $ways; do
    no_peers=1 what=", $how"
    [ $how != peers ] || no_peers= what=
    [ $how != apart ] || export WS_MOCK_NO_PEERS=1
    printf 'placement = fixed\ngpu_worker = %s\n' "$([ $how = workers ] && echo yes || echo no)" >"$tmp/fixed"
    start_pair --config "$tmp/fixed"
    alone drv/matmul drv/histogram
    if have_nvcc; then
        # shellcheck disable=SC2046
        alone $(for w in devices ipcshare sharing vmm ${no_peers:-memorypools}; do [ $w = 1 ] || echo "shared/$w"; done)
    fi
    stop_pair
    ok "two GPUs$what"

    # Two programs that want the first GPU; their kernels last until the second one has been moved.
    # One that has a copy under way when its turn comes is not moved: then they try again.
    { cat "$tmp/fixed" && printf 'policy = fifo\nlog_level = debug\n'; } >"$tmp/conf"
    moved="dispatch: client=.* moves from GPU 0 to GPU 1" attempts=0
    : >"$tmp/daemon.log"
    while ! grep -q "$moved" "$tmp/daemon.log"; do
        attempts=$((attempts + 1))
        [ $attempts -le 10 ] || fail "nobody was moved$what"
        : >"$tmp/daemon.log"
        : >"$tmp/go"
        export WS_MOCK_UNTIL="$tmp/go"
        start_pair --config "$tmp/conf"
        unset WS_MOCK_UNTIL
        rm "$tmp/go"
        {
            tries=0
            until grep -q -e "$moved" -e "can't be moved" "$tmp/daemon.log" || [ $tries = 600 ]; do
                tries=$((tries + 1))
                sleep 0.1
            done
            : >"$tmp/go"
        } &
        watch=$!
        together drv/aes drv/histogram
        wait $watch
        stop_pair
    done
    ok "moved after $attempts attempts$what"

    # More of them and another policy: how often they are moved depends on time.
    for policy in gcaps consolidate; do
        [ $policy = gcaps ] || [ $how = peers ] || continue
        { cat "$tmp/fixed" && echo "policy = $policy"; } >"$tmp/conf"
        : >"$tmp/daemon.log"
        start_pair --config "$tmp/conf"
        together drv/matmul drv/aes drv/histogram drv/stencil
        stop_pair
        ok "$policy: $(sed -n 's/.*dispatch: policy=.* moves=\([0-9]*\) .*/\1/p' "$tmp/daemon.log") moves$what"
    done
done
