#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A daemon that is started again does not compile kernels that one before it has compiled. It keeps
# nothing in a folder that others may use, says so, and works. Skipped where LLVM's library is not
# installed: nothing is compiled then.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
mkdir -m 0700 "$tmp/code"
printf 'compile = always\ncode_cache = "%s"\n' "$tmp/code" >"$tmp/conf"
unset WS_SOFT_JIT

# codes MADE FOUND: a daemon runs a program, and compiles and finds so many kernels
codes() {
    start_daemon --config "$tmp/conf" --gpus t400
    alone drv/matmul
    [ "$(status_value n_kernels_unsupported)" = 0 ] || fail "the kernel is not taken"
    made=$(status_value n_codes_made) found=$(status_value n_codes_found)
    [ "$made $found" != "0 0" ] || skip "LLVM's library is not installed"
    [ "$made $found" = "$1 $2" ] || fail "compiled $made and found $found kernels, not $1 and $2"
    "$wattshare" status | grep -q '^kernels: 1 compiled$' || fail "the status does not say so"
    ok "compiled $made and found $found kernels"
    stop_daemon
}
codes 1 0
codes 0 1
[ "$(stat -c %a "$tmp"/code/*)" = 600 ] || fail "others may read what is kept"
printf x | dd of="$(echo "$tmp"/code/*)" bs=1 seek=1000 conv=notrunc 2>"$tmp/dd"
codes 1 0
codes 0 1
chmod 0755 "$tmp/code"
codes 1 0
grep -q "code_cache.*must be the daemon's own" "$tmp/daemon.log" || fail "the log does not say why nothing is kept"
ok "nothing is kept where others may read it"
