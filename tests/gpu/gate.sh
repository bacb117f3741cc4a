#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs programs on a driver of their own behind the gate (doc/gate.md) and without it: a C client of
# the driver, programs that nvcc built with the static runtime, and cuBLAS. It fails if one ends
# differently behind the gate or if its launches are not accounted for. It prints what the gate
# costs.
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2086 # $1 of `both` is words
[ -d frontend/gate/wattshare-gate ] || not_here "no gate was built"
serve 'policy = fifo
gate_lease_ms = 60000'
echo "program,how,ms,ratio to native,launches accounted"
launches() { # launches TASK: of all its clients
    cli/wattshare status | awk -v t="$1" '$1 ~ /^[0-9]+$/ && $3 == t { n += $8 } END { print n + 0 }'
}
# both NAME COMMAND…: natively, then behind the gate. What it prints beside PASS is figures of its
# own.
both() {
    what=$1
    shift
    native "native-$what" "$@" || { show "native-$what"; return 77; }
    native_ms=$ms
    echo "$what,native,$native_ms,1,-"
    gated "gate-$what" "$@" || { show "gate-$what"; fail "$what behind the gate"; }
    [ "$(grep '^PASS' "$tmp/native-$what")" = "$(grep '^PASS' "$tmp/gate-$what")" ] || fail "$what: another result"
    ! grep -q '^wattshare' "$tmp/gate-$what" || { show "gate-$what"; fail "$what: the gate had something to say"; }
    n=$(launches "gate-$what")
    echo "$what,gate,$ms,$(ratio "$ms" "$native_ms"),$n"
    [ "$n" -gt 0 ] || fail "$what: no launch was accounted for"
}
ns_of() { sed -n 's/^\([0-9]*\) ns for .* \([0-9]*\) for each burst/\'"$2"'/p' "$tmp/$1"; }
for shape in "20 500" "500 1"; do
    [ -z "$short" ] || shape="5 5"
    bursts=${shape% *} each=${shape#* }
    both "client-$each" tests/cuda/drv_gate "$bursts" "$each" || fail "the driver's C client fails without a gate"
    for f in 1:launch 2:burst; do
        a=$(ns_of "native-client-$each" "${f%:*}") b=$(ns_of "gate-client-$each" "${f%:*}")
        echo "client-$each: ns for a ${f#*:},gate,$b,$(ratio "$b" "$a"),-"
    done
    [ -z "$short" ] || break
done
if [ -n "$mock" ]; then
    unserve
    not_here "the C client passed; NVIDIA's runtime and cuBLAS need a real driver"
fi
missing=
for p in saxpy matmul histogram thrusting graphjacobi; do
    if [ ! -x tests/cuda/nv/${p}_static ]; then missing="$missing $p (not built)"; else
        both "$p" tests/cuda/nv/${p}_static || missing="$missing $p (fails without a gate)"
    fi
done
if tests/gpu/cublas find >"$tmp/cublas" 2>&1; then
    both cublas tests/gpu/cublas || missing="$missing cublas (fails without a gate)"
else
    missing="$missing cublas ($(tail -n 1 "$tmp/cublas"))"
fi
cli/wattshare status >&2
unserve
# What went, went well; what could not be tried is named.
[ -z "$missing" ] || not_here "the rest passed, but not tried:$missing"
