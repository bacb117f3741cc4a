#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs programs under `wattshare check`. It fails if a planted mistake is not found, or not with the
# right words and the right place, or if something is found in a program without a mistake.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"

# check STATUS OPTIONS -- PROGRAM…: what it prints is in $tmp/out.
check() {
    want=$1
    shift
    r=0
    LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 timeout -k 5 120 "$wattshare" check "$@" >"$tmp/out" 2>&1 || r=$?
    [ "$r" = "$want" ] || { cat "$tmp/out"; fail "check $*: status $r, not $want"; }
}
# says TEXT…: each is in what was printed.
says() {
    for text in "$@"; do
        grep -qF -e "$text" "$tmp/out" || { cat "$tmp/out"; fail "it does not say '$text'"; }
    done
}
# finds MISTAKE TEXT…: one error in the program with that mistake, told with these texts.
finds() {
    mistake=$1
    shift
    check 1 --tool "$tool" -- "$cuda/drv_check" "$mistake"
    says "wattshare check: 1 error" "$@"
    ok "$mistake"
}

tool=memcheck
finds behind "invalid write of 4 bytes in kernel copy" "by thread (0,0,0) of block (0,0,0)" "at PTX line 9: st.global.u32 [%rd2], %r1;" \
    "0 bytes behind the allocation of 100 bytes" "allocated by" "main+0x"
finds freed "invalid read of 4 bytes in kernel copy" "4 bytes into the freed allocation of 100 bytes" "freed by"
finds misaligned "misaligned write of 4 bytes in kernel copy" "2 bytes into the allocation of 100 bytes"
tool=racecheck
finds race "race in shared memory (write after read) in kernel race" "after a read of 4 bytes by thread (31,0,0)" \
    "with no barrier between the two" "at /src/exchange.cu:14 (PTX line" "ld.shared.u32 %r6, [%r5];" \
    "at /src/exchange.cu:12 (PTX line" "st.shared.u32 [%r3], %r1;"
finds flagrace "race in shared memory (read after write) in kernel flagrace" "ld.shared.u32 %r4, [%r2+4];"
finds globalrace "race in global memory (" "in kernel globalrace" "with no barrier between the two" "bytes into the allocation of 4096 bytes"
finds lastrace "race in global memory (read after write) in kernel lastrace" "after a write of 4 bytes by thread (0,0,0)" "ld.global.u32 %r7" \
    "in the same launch, whose blocks run in any order"
finds wordrace "race in global memory (write after write) in kernel wordrace" "0 bytes into the allocation of 4096 bytes"
tool=initcheck-shared
finds empty "read of 4 bytes that no thread has written in kernel empty" "at shared memory + 8"
tool=all
finds unwritten "read of 4 bytes that nobody has written in kernel copy" "8 bytes into the allocation of 100 bytes"

check 1 --leak-check -- "$cuda/drv_check" leak
says "leak of 100 bytes at 0x" "main+0x" "wattshare check: 0 errors, 1 leak"
ok "a leak"
check 0 -- "$cuda/drv_check" leak
says "wattshare check: 0 errors"
ok "leaks are looked for when asked"

# blocks of a cluster meet at its barrier, and by mbarriers
! have_nvcc || {
    check 0 --gpu h200 --tool racecheck -- "$cuda/nv/clusters_static"
    says "PASS clusters" "wattshare check: 0 errors"
    check 0 --gpu h200 --tool initcheck-shared -- "$cuda/nv/clusters_static"
    says "PASS clusters" "wattshare check: 0 errors"
    ok "clusters"
}

# only what the tool is for
check 0 --tool memcheck -- "$cuda/drv_check" race
check 0 --tool initcheck -- "$cuda/drv_check" race
check 1 --tool racecheck -- "$cuda/drv_check" race
check 0 --tool racecheck -- "$cuda/drv_check" unwritten
ok "--tool"
check 7 --error-exitcode 7 -- "$cuda/drv_check" race
check 0 --error-exitcode 0 -- "$cuda/drv_check" race
says "wattshare check: 1 error"
ok "--error-exitcode"

# what is right is right
check 0 --leak-check -- "$cuda/drv_check" right
says "PASS drv_check" "wattshare check: 0 errors, 0 leaks"
check 0 -- "$cuda/drv_matmul" 64
says "wattshare check: 0 errors"
check 0 -- "$cuda/drv_sort" 8
says "wattshare check: 0 errors"
ok "programs without a mistake"

verb=check
run 2 "--tool is memcheck" --tool nothing -- true
run 2 "number from 0 to 125" --error-exitcode 300 -- true
