#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs whole programs on the daemon's device for real GPUs, with the mock driver: alone, together,
# and while one of them destroys the context. It fails if a result is wrong, if a program that did
# nothing wrong gets an error where it should not, or if the mock notices a violation of the
# driver's rules.
. "${srcdir:-.}/tests/process/lib.sh"
# no driver, no such GPU: said, and no start
LD_LIBRARY_PATH=$tmp "$wattshared" --gpus cuda --check 2>"$tmp/err" && fail "no driver, and no error"
grep -q "libcuda.so.1" "$tmp/err" || { cat "$tmp/err"; fail "the missing driver was not named"; }
LD_LIBRARY_PATH=$mock "$wattshared" --gpus cuda:7 --check 2>"$tmp/err" && fail "cuda:7, and no error"
grep -q "cuda:7: the driver has 1 GPU" "$tmp/err" || { cat "$tmp/err"; fail "the missing GPU was not named"; }
LD_LIBRARY_PATH=$mock "$wattshared" --gpus cuda,rtx3070 --check 2>"$tmp/err" && fail "both kinds, and no error"
LD_LIBRARY_PATH=$mock "$wattshared" --gpus cuda:x --check 2>"$tmp/err" && fail "cuda:x, and no error"
LD_LIBRARY_PATH=$mock "$wattshared" --gpus cuda --check || fail "a good configuration"
echo 'gpu_worker = maybe' >"$tmp/conf"
LD_LIBRARY_PATH=$mock "$wattshared" --config "$tmp/conf" --gpus cuda --check 2>"$tmp/err" && fail "gpu_worker = maybe, and no error"
grep -q "gpu_worker" "$tmp/err" || { cat "$tmp/err"; fail "gpu_worker was not named"; }
WATTSHARE_GPU_WORKER=$tmp/none LD_LIBRARY_PATH=$mock "$wattshared" --gpus cuda --check 2>"$tmp/err" && fail "no worker's program, and no error"
grep -q "gpu_worker = no does without it" "$tmp/err" || { cat "$tmp/err"; fail "the missing program was not named"; }
echo 'rewrite = fence' >"$tmp/conf"
LD_LIBRARY_PATH=$mock "$wattshared" --config "$tmp/conf" --gpus cuda --check 2>"$tmp/err" && fail "rewrite on real GPUs, and no error"
grep -q "is for software GPUs" "$tmp/err" || { cat "$tmp/err"; fail "rewrite was not named"; }
ok "configuration"

# Here a limit on kernels is not what is tested, and sanitizers make the mock slow: the daemons have
# a limit that no kernel comes near.
limit="max_kernel_ms = 60000"
echo "$limit" >"$tmp/conf"
start_mock --config "$tmp/conf"
alone $(drv_clients)
if have_nvcc; then
    # With sanitizers those that do more than copy, launch and copy back.
    plain="saxpy reduce stencil histogram aes blackscholes"
    [ -z "$asan" ] || [ -n "${WS_TEST_ALL:-}" ] || plain=
    alone $(for w in $plain vmm hostregister memorypools streamorder graphjacobi statics; do echo "shared/$w"; done)
fi
together $(for w in matmul aes sort search histogram; do echo "drv/$w"; done)
"$wattshare" status >"$tmp/status"
grep -q "NVIDIA Mock 4, driver mock (CUDA 13.0)" "$tmp/status" || { cat "$tmp/status"; fail "status does not name the driver"; }
grep -q "SM sets: yes" "$tmp/status" || { cat "$tmp/status"; fail "status does not say what the GPU can"; }
grep -q "catalog entry" "$tmp/status" && fail "what a real GPU measures is said to be modelled"
"$wattshare" status --json | grep -q '"capabilities"' || fail "status --json does not say what the GPU can"
ok "status"

# A stream may wait for a value in the host's memory, not in the GPU's, where the daemon can't look:
# said, and nothing happens to anybody.
expect 1 "CUDA_ERROR_NOT_SUPPORTED" client "$cuda/drv_graph"
alone drv/matmul

# A policy decides, and may stop launches between blocks.
stop_daemon
daemon_pid=
printf '%s\n' 'policy = rr' "$limit" >"$tmp/conf"
start_mock --config "$tmp/conf"
together $(for w in matmul aes histogram stencil; do echo "drv/$w"; done)
ok "a policy"

# A policy that scales clocks asks wattshare-clocks; the GPU's own come back when the daemon ends.
stop_daemon
daemon_pid=
WS_MOCK_NVML_CLOCKS=$tmp/clocks.set "$build/backend/wattshare-clocks" --socket "$tmp/clocks" --state "$tmp/clocks.d" --nvml "$mock/libnvidia-ml.so.1" 2>"$tmp/clocks.log" &
helper_pid=$!
i=0
until [ -S "$tmp/clocks" ]; do
    i=$((i + 1))
    [ $i -lt 600 ] || { cat "$tmp/clocks.log"; fail "wattshare-clocks does not listen"; }
    sleep 0.1
done
printf '%s\n' 'policy = edl' "$limit" "clock_helper = \"$tmp/clocks\"" 'task "easy" {' ' deadline_ms = 100000' ' wcet_ms = 100' '}' >"$tmp/conf"
start_mock --config "$tmp/conf"
task=easy client "$cuda/drv_matmul" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "a client at other clocks"; }
grep -q '^core [0-9]* [0-9]*$' "$tmp/clocks.set" || fail "no clocks were set for a job with much time"
"$wattshare" status | grep -q "clocks: yes" || fail "status does not say who sets the clocks"
stop_daemon
daemon_pid=
i=0
until [ "$(tail -n 1 "$tmp/clocks.set")" = "core own" ]; do
    i=$((i + 1))
    [ $i -lt 600 ] || { cat "$tmp/clocks.set"; fail "the GPU did not get its own clocks back"; }
    sleep 0.1
done
kill "$helper_pid"
wait "$helper_pid" || fail "wattshare-clocks ended badly"
helper_pid=
ok "clocks"
printf '%s\n' 'policy = rr' "$limit" >"$tmp/conf"
start_mock --config "$tmp/conf"

# One goes outside its memory: its own error is CUDA's, and nobody else's.
"$wattshare" status | grep -q "isolation: yes" || fail "status does not say that clients are isolated"
task=bad client "$cuda/drv_fault" outside >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "the illegal address is not CUDA's"; }
# With others beside it.
task=steady client "$cuda/drv_stencil" 96 3 >"$tmp/steady" 2>&1 &
steady=$!
for i in 1 2 3; do
    task=bad client "$cuda/drv_fault" outside >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "fault $i is not CUDA's"; }
done
wait $steady || { cat "$tmp/steady"; fail "a client beside one that faults has wrong results"; }
"$wattshare" status | grep -q LOST && fail "the GPU is lost by an access that was checked"
alone drv/matmul
ok "isolation"

# Without isolation: the context is lost, and another worker has the next one; status says who it
# was.
stop_daemon
daemon_pid=
printf '%s\n' 'isolation = none' "$limit" >"$tmp/conf"
start_mock --config "$tmp/conf"
r=0
task=bad client "$cuda/drv_fault" outside >"$tmp/out" 2>&1 || r=$?
alone drv/matmul
"$wattshare" status >"$tmp/status"
grep -q "worker: pid [1-9][0-9]*, restarted 1 time, last in [0-9]* ms: ILLEGAL_ADDRESS (700)" "$tmp/status" || { cat "$tmp/out" "$tmp/status"; fail "the restart is not said"; }
grep -q "LOST" "$tmp/status" && fail "the GPU is lost"
ok "a worker's restart"

# The worker is killed while clients work: each is right, or told by CUDA's error; what comes after
# is served.
pids=
for w in matmul aes histogram stencil; do
    task=$w client "$cuda/drv_$w" >"$tmp/kill.$w" 2>&1 &
    pids="$pids $!:$w"
done
for i in 1 2 3; do
    pid=$("$wattshare" status --json | sed -n 's/.*"worker_pid":[^0-9]*\([0-9]*\).*/\1/p')
    [ "${pid:-0}" = 0 ] || kill -9 "$pid" 2>/dev/null || true
    sleep 0.1
done
n_right=0 n_told=0
for p in $pids; do
    w=${p#*:}
    if wait "${p%:*}"; then
        n_right=$((n_right + 1))
    else
        grep -q -e 719 -e LAUNCH_FAILED -e "launch failure" "$tmp/kill.$w" || { cat "$tmp/kill.$w"; fail "$w was neither right nor told"; }
        n_told=$((n_told + 1))
    fi
done
alone drv/matmul
"$wattshare" status | grep -q "worker: pid [1-9].*signal 9" || fail "status does not say why the worker was restarted"
ok "a worker that is killed: $n_right clients right, $n_told told"

# The same without a worker: the daemon lives, the others are told, and status says who it was.
stop_daemon
daemon_pid=
printf '%s\n' 'isolation = none' 'gpu_worker = no' "$limit" >"$tmp/conf"
start_mock --config "$tmp/conf"
"$wattshare" status | grep -q "isolation: no" || fail "status does not say that clients are not isolated"
r=0
task=bad client "$cuda/drv_fault" outside >"$tmp/out" 2>&1 || r=$?
"$wattshare" status >"$tmp/status"
grep -q "LOST: ILLEGAL_ADDRESS (700)" "$tmp/status" || { cat "$tmp/out" "$tmp/status"; fail "the loss is not said"; }
task=after client "$cuda/drv_matmul" >"$tmp/out" 2>&1 && fail "a client on a lost GPU came to an end"
ok "a lost context"
stop_daemon
daemon_pid=
grep -q "VIOLATION" "$tmp/daemon.log" && fail "the driver was used wrongly"
ok "the driver was used as it wants"
