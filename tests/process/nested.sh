#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the device for real GPUs on a driver that its authors did not write for it: our own frontend,
# as libcuda.so.1, over a second daemon with a software GPU. It fails if the devices' suite fails in
# one of its ways, if a whole program is wrong, or if the daemon's loop or the stopping of kernels
# waits for the GPU. With "long", more programs run.
. "${srcdir:-.}/tests/process/lib.sh"
[ -z "$asan" ] || skip "the frontend as a driver would need AddressSanitizer's runtime in every program"
driver=$build/frontend/wattshare-driver
export WATTSHARE_TIMEOUT_MS=60000 # on a busy machine a hello takes a while, and each worker says one

# The inner daemon is the GPU. Its programs get addresses that begin behind those which the outer
# daemon asks for.
endpoint=ipc://$tmp/inner
start_daemon --gpus rtx3070
inner_pid=$daemon_pid inner=$WATTSHARE_SOCKET
helper_pid=$inner_pid daemon_pid=
"$build/tests/process/far_addresses" "$driver/libcuda.so.1" || fail "the inner daemon gives no addresses"

kinds="cuda cuda-tickets cuda-unfenced worker"
suite() { # suite PROGRAM KIND SECONDS
    timeout "$3" "$build/tests/device/$1" "$2" "$driver/libcuda.so.1" "$mock/libnvidia-ml.so.1" >"$tmp/out" 2>&1 ||
        { grep -v -e 'OK ' -e 'RUN ' "$tmp/out"; fail "$1 $2"; }
    ok "$1 $2: $(sed -n 's/^\[  PASSED  \] //p' "$tmp/out" | tail -n 1)"
}
for kind in $kinds; do
    suite conformance "$kind" 100
done
[ "${1:-}" != long ] || suite worker worker 200 # faults, and a worker's end at any moment

cat >"$tmp/outer" <<S
#!/bin/sh
[ -z "\${WAITED:-}" ] || export LD_PRELOAD=$build/tests/process/libwaited.so
WATTSHARE_SOCKET=$inner LD_LIBRARY_PATH=$driver:$mock exec "$wattshared" "\$@"
S
chmod 755 "$tmp/outer"
wattshared=$tmp/outer endpoint=ipc://$tmp/sock
one_by_one="drv/matmul drv/sort drv/histogram"
[ "${1:-}" != long ] || one_by_one=$(looping_clients)
for conf in '' 'policy = rr' 'gpu_worker = no'; do
    [ "$conf" != 'gpu_worker = no' ] || [ "${1:-}" = long ] || continue
    echo "$conf" >"$tmp/conf"
    start_daemon --gpus cuda --config "$tmp/conf"
    # shellcheck disable=SC2086 # words
    alone $one_by_one
    together drv/matmul drv/aes drv/stencil
    "$wattshare" status >"$tmp/status"
    ! grep -q LOST "$tmp/status" || { cat "$tmp/status"; fail "the GPU is lost"; }
    wait_empty
    stop_daemon
    ok "programs with: ${conf:-the default}"
done

# How long the daemon's loop takes for a turn, and how long it takes to ask the GPU to stop a
# kernel, while five programs run and two copy all the time. What a thread did and waited for
# counts, not the time for which the machine gave it no processor; a lock that somebody without a
# processor holds counts too, so a few may be late.
WAITED=$tmp/waited
export WAITED
"$build/tests/process/waited" "$WAITED"
echo 'policy = rr' >"$tmp/conf"
start_daemon --gpus cuda --config "$tmp/conf"
copiers=
for i in 1 2; do
    (while [ ! -e "$tmp/enough" ]; do client "$cuda/drv_rates" 64 2 || exit 1; done) >"$tmp/copier.$i" 2>&1 &
    copiers="$copiers $!"
done
five="drv/matmul drv/aes drv/stencil drv/sort drv/histogram"
# shellcheck disable=SC2086 # words
together $five
# shellcheck disable=SC2086 # words
[ "${1:-}" != long ] || for i in 1 2 3 4; do together $five; done
touch "$tmp/enough"
for i in $copiers; do wait "$i" || { cat "$tmp"/copier.*; fail "a program that copies"; }; done
"$wattshare" status --json | grep -e worker_longest
stop_daemon
"$build/tests/process/waited" "$WAITED" 1024 30 16384 1 || fail "the daemon waits for the GPU"
ok "nothing waits for the GPU"
kill -TERM "$inner_pid"
wait "$inner_pid" || fail "the inner daemon ended with status $?"
helper_pid=
