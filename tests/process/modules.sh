#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs programs about linking, kernels' output, properties and launches. They check themselves; it
# also fails if what they print differs from what is expected.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
start_daemon --gpus rtx3070,t400

# passes NAME PROGRAM…: says PASS and nothing else on stdout
passes() {
    name=$1
    shift
    client "$@" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out" "$tmp/err"; fail "$name"; }
    [ "$(grep -c '^PASS ' "$tmp/out")" = 1 ] || { cat "$tmp/out" "$tmp/err"; fail "$name did not say PASS"; }
    ! grep -v '^PASS ' "$tmp/out" || fail "$name said more than PASS"
    ok "$name"
}

passes drv_link "$cuda/drv_link"
[ ! -s "$tmp/err" ] || { cat "$tmp/err"; fail "drv_link is not quiet"; }
passes drv_partial "$cuda/drv_partial"
for what in "calls_gone.*line 10.*unresolved external function gone" "reads_lost.*unresolved external variable lost" \
    "starts_kernels.*__cudaCDP2DeviceSynchronize"; do
    grep -q "$what" "$tmp/err" || { cat "$tmp/err"; fail "not said: $what"; }
done
passes drv_starts "$cuda/drv_starts"
"$wattshare" status --json >"$tmp/status"
grep -q '"kernel calls_gone: .*": *1' "$tmp/status" || { cat "$tmp/status"; fail "the status does not name what was not supported"; }
ok "status names what was not supported"

have_nvcc || exit 0
for k in static shared; do
    for p in rdc statics devices occupancy launchattr; do
        passes "$k/$p" "$cuda/nv/${p}_$k"
    done
    client "$cuda/nv/printing_$k" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "printing"; }
    diff "$src/tests/cuda/printing.out" "$tmp/out" || fail "$k/printing: another order or text"
    ok "$k/printing"
    client "$cuda/nv/asserting_$k" >"$tmp/out" 2>"$tmp/err" || { cat "$tmp/out" "$tmp/err"; fail "asserting"; }
    grep -q '^PASS' "$tmp/out" || fail "asserting did not say PASS"
    for t in 28 29 30 31; do
        grep -q "asserting.cu:[0-9]*: void testKernel(int): block: \[1,0,0\], thread: \[$t,0,0\] Assertion \`gtid < n\` failed.\$" "$tmp/err" ||
            { cat "$tmp/err"; fail "no message of thread $t"; }
    done
    [ "$(grep -c 'Assertion' "$tmp/err")" = 4 ] || { cat "$tmp/err"; fail "more than four messages"; }
    ok "$k/asserting"
done
for f in o a; do passes "drv_linkfile .$f" "$cuda/drv_linkfile" "$cuda/nv/rdc_part.$f"; done
passes rdc_lib "$cuda/nv/rdc_lib_static"
passes logs "$cuda/nv/logs_static"
passes cdp "$cuda/nv/cdp_static"
grep -q "call of __cudaCDP2DeviceGetAttribute" "$tmp/err" || { cat "$tmp/err"; fail "the device runtime's function is not named"; }
passes "cdp that does not ask for the error" "$cuda/nv/cdp_static" blind
grep -q "were refused (1), and the program never asked" "$tmp/err" || { cat "$tmp/err"; fail "the refused launch is not told at the end"; }

# A buffer of 64 KiB holds the last lines, in order and whole; 1 MiB holds all of 40000.
client "$cuda/nv/overflow_static" 64 100000 >"$tmp/out" 2>&1
grep '^line' "$tmp/out" >"$tmp/lines"
n=$(wc -l <"$tmp/lines")
[ "$n" -ge 5000 ] && [ "$n" -lt 100000 ] || fail "a buffer of 64 KiB held $n lines of 13 bytes"
seq -f 'line %07.0f' $((100000 - n)) 99999 | cmp - "$tmp/lines" || fail "not the last lines"
client "$cuda/nv/overflow_static" 1024 40000 >"$tmp/out" 2>&1
[ "$(grep -c '^line' "$tmp/out")" = 40000 ] || fail "a buffer of 1 MiB lost lines"
ok "the printf buffer's size"

# Programs of NVRTC and nvJitLink need their libraries at run time; a toolkit without them left the
# programs unbuilt.
for p in nvrtc jitlto; do
    if [ ! -e "$cuda/nv/${p}_static" ]; then
        echo "skipped: $p: its library is not beside nvcc" >&2
        continue
    fi
    if ldd "$cuda/nv/${p}_static" | grep -q 'libnv.*not found'; then
        LD_LIBRARY_PATH=$(dirname "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")/../lib64
        export LD_LIBRARY_PATH
    fi
    passes $p "$cuda/nv/${p}_static"
done
