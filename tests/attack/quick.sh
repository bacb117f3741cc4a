#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A short form of those attacks that take no more than two seconds each: that the daemon lives and
# ends, that no result of others is lost or wrong, and that its memory is bounded. ./dev attack runs
# all of them, and measures.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
[ -z "$asan" ] || skip "attacks are for a build without sanitizers"
[ "$(id -u)" = 0 ] || skip "this needs root, to be several users"
unset WATTSHARE_SOCKET
for a in silent silent-tcp same-id endless single-bytes queries lies stop-ring ring-noise reset \
    doubling seats another-exe changing worker-kills; do
    tests/attack/attack -q $a >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; fail "$a"; }
    ok "$(sed -n 's/ held .* [0-9]*  / /p' "$tmp/out")"
done
