#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program of machine code without PTX. It fails if the program's result without isolation
# differs from the native one, or if it is not refused with isolation.
. "$(dirname "$0")/lib.sh"
p=tests/cuda/nv/sassonly_static
[ -x $p ] || not_here "sassonly was not built: no nvcc"
[ -z "$mock" ] || export WS_MOCK_MACHINE_CODE="$PWD/tests/cuda/nv"
echo "program,how,ms"
if [ -z "$mock" ]; then
    native native $p || { show native; not_here "it does not run natively: is there machine code in it for this GPU?"; }
    echo "sassonly,native,$ms"
fi
serve 'isolation = none
gpu_worker = no'
proxied proxied $p || { show proxied; fail "machine code, proxied"; }
echo "sassonly,wattshare,$ms"
cli/wattshare status | grep 'machine code without PTX: yes' >&2 || fail "status does not say that machine code is taken"
unserve
serve 'isolation = fence'
! proxied refused $p || fail "machine code was taken with isolation"
grep -q 'isolation = none' "$tmp/daemon.log" "$tmp/refused" || { show refused; fail "it is not said what would be right"; }
unserve
