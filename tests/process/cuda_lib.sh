#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests what kernels print, assert and allocate on the device for real GPUs, with the mock driver,
# with and without isolation and under a policy that has kernels rewritten. It fails if a text does
# not reach the program whose kernel wrote it, or if an assertion or a trap affects another program.
. "${srcdir:-.}/tests/process/lib.sh"
printed() { # printed static|shared
    client "$cuda/nv/printing_$1" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "printing"; }
    sort "$src/tests/cuda/printing.out" >"$tmp/want" # blocks run in any order
    sort "$tmp/out" | diff "$tmp/want" - || fail "$1/printing: another text"
    ok "$1/printing"
}
asserted() {
    client "$cuda/nv/asserting_$1" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out" "$tmp/err"; fail "asserting"; }
    grep -q '^PASS' "$tmp/out" || fail "asserting did not say PASS"
    for t in 28 29 30 31; do
        grep -q "asserting.cu:[0-9]*: void testKernel(int): block: \[1,0,0\], thread: \[$t,0,0\] Assertion \`gtid < n\` failed.\$" "$tmp/err" ||
            { cat "$tmp/err"; fail "no message of thread $t"; }
    done
    [ "$(grep -c 'void testKernel(int): block:' "$tmp/err")" = 4 ] || { cat "$tmp/err"; fail "more than four messages"; }
    ok "$1/asserting"
}
stopped() { # stopped PROGRAM: a trap and an assertion, and nobody else notices
    for f in trap assert; do
        client "$1" $f >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$(basename "$1") $f"; }
        grep -q '^PASS ' "$tmp/out" || { cat "$tmp/out"; fail "$(basename "$1") $f did not say PASS"; }
        grep -q 'block (4,0,0) thread (0,0,0)' "$tmp/out" || { cat "$tmp/out"; fail "the thread is not named"; }
        ok "$(basename "$1") $f"
    done
}

for conf in '' 'isolation = none' 'policy = rr'; do
    # With sanitizers, where this takes long, those ways that have more to do.
    [ -z "$asan" ] || [ "$conf" != 'isolation = none' ] || continue
    echo "$conf" >"$tmp/conf"
    start_mock --config "$tmp/conf"
    task=steady client "$cuda/drv_stencil" 96 3 >"$tmp/steady" 2>&1 &
    steady=$!
    stopped "$cuda/drv_fault"
    if have_nvcc; then
        printed static
        asserted shared
        alone shared/deviceheap shared/warpedges
    fi
    wait $steady || { cat "$tmp/steady"; fail "a client beside them has wrong results"; }
    "$wattshare" status >"$tmp/status"
    grep -q "printf, assert, trap, malloc: yes" "$tmp/status" || { cat "$tmp/status"; fail "status does not say who prints"; }
    grep -q LOST "$tmp/status" && fail "the GPU is lost by a thread that stopped"
    if [ -z "$conf" ] && have_nvcc; then
        together static/deviceheap shared/deviceheap # each has a heap of its own
        stopped "$cuda/nv/fault_static"
        # A buffer of 1 MiB holds 40000 lines.
        client "$cuda/nv/overflow_static" 1024 40000 >"$tmp/out" 2>&1
        [ "$(grep -c '^line' "$tmp/out")" = 40000 ] || fail "a buffer of 1 MiB lost lines"
        ok "the printf buffer's size"
    fi
    stop_daemon
    daemon_pid=
    grep -q "VIOLATION" "$tmp/daemon.log" && fail "the driver was used wrongly"
    grep -q "^line \|Assertion .* failed" "$tmp/daemon.log" && fail "a kernel's text went to the daemon's output"
    ok "with: ${conf:-isolation}"
done
