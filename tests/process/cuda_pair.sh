#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The daemon with two real GPUs' devices, the driver being the mock: programs that use both, share memory by handles, and are moved
# from one to the other by policies while they run; where the GPUs reach each other's memory, and where they don't.
. "${srcdir:-.}/tests/process/lib.sh"
mock=$build/tests/mock
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
# no_peers: the GPUs don't reach each other's memory: as WS_MOCK_NO_PEERS, or each in a worker of its own.
for how in peers apart workers; do
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

    # Programs that all want the first GPU; how often they meet there depends on time, so they try again.
    for policy in gcaps fifo consolidate; do
        [ "$policy" = gcaps ] || [ -z "$no_peers" ] || continue
        { cat "$tmp/fixed" && echo "policy = $policy"; } >"$tmp/conf"
        moves=0
        for attempt in 1 2 3 4 5 6; do
            : >"$tmp/daemon.log"
            start_pair --config "$tmp/conf"
            together drv/matmul drv/aes drv/histogram drv/stencil
            stop_pair
            moves=$(sed -n 's/.*dispatch: policy=.* moves=\([0-9]*\) .*/\1/p' "$tmp/daemon.log")
            [ "${moves:-0}" = 0 ] || break
        done
        [ "${moves:-0}" != 0 ] || fail "nobody moved in $attempt attempts with $policy$what"
        ok "$policy: $moves moves$what"
    done
done
