#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs kernels that go wrong and PTX with errors. It fails if a fault does not become CUDA's error
# for its client, if another client is affected, or if an error in PTX is not named in the log of
# the just-in-time compiler.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
cat >"$tmp/conf" <<C
max_kernel_insns = 30000000
C
start_daemon --config "$tmp/conf" --gpus t400,t400
programs=$cuda/drv_fault
[ ! -x "$cuda/nv/fault_static" ] || programs="$programs $cuda/nv/fault_static $cuda/nv/fault_shared"
: >"$tmp/go"
{
    while [ -e "$tmp/go" ]; do
        client "$cuda/drv_sort" 10 5 >"$tmp/other" 2>&1 || { mv "$tmp/other" "$tmp/wrong"; break; }
    done
} &
other=$!
for p in $programs; do
    for f in none outside misaligned trap assert endless null foreign; do
        client "$p" $f >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$(basename "$p") $f"; }
        grep -q '^PASS ' "$tmp/out" || fail "$(basename "$p") $f did not say PASS"
        ok "$(basename "$p") $f"
    done
done
# memory that a kernel may only read, or may not reach any more
if [ -x "$cuda/nv/vmm_static" ]; then
    for p in allocas_static vmm_static vmm_shared memorypools_static memorypools_shared; do
        client "$cuda/nv/$p" fault >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$p fault"; }
        grep -q '^PASS ' "$tmp/out" || fail "$p fault did not say PASS"
        ok "$p fault"
    done
fi
# a read a little too far is as on hardware; further away, and a write, are faults
for what in "" far write; do
    client "$cuda/drv_overrun" $what >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "drv_overrun $what"; }
    ok "drv_overrun $what"
done
client "$cuda/drv_badptx" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "bad PTX"; }
[ "$(grep -c 'module: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: .*frobnicate' "$tmp/out")" = 1 ] || { cat "$tmp/out"; fail "bad PTX is not said once"; }
ok "bad PTX"
rm "$tmp/go"
wait $other || true
[ ! -e "$tmp/wrong" ] || { cat "$tmp/wrong"; fail "another client was hurt"; }
wait_empty
ok "other clients were not hurt, nothing is left"

# with strict_bounds, a read a little too far is a fault, which says how far from what it was
stop_daemon
daemon_pid=
echo 'strict_bounds = yes' >"$tmp/conf"
start_daemon --config "$tmp/conf" --gpus t400
client "$cuda/drv_overrun" strict >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "drv_overrun strict"; }
grep -q 'kernel peek .* 30720 bytes behind the 4096 bytes at 0x' "$tmp/out" "$tmp/daemon.log" || { cat "$tmp/out"; fail "the distance is not said"; }
ok "strict_bounds"
