#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs two programs under each configuration of conf/examples. It fails if a policy has no example
# under its name, or if a program's result is wrong or it is not recognised as its task.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
client_timeout=60
"$wattshare" policy list | awk '{print $1}' >"$tmp/policies"
[ "$(wc -l <"$tmp/policies")" -gt 20 ] || fail "wattshare policy list is short"
n=0
for p in $(cat "$tmp/policies"); do
    f=$src/conf/examples/$p.conf
    [ -f "$f" ] || fail "$p has no example"
    # What is of this test's machine: its catalog, a log of its own.
    { echo "catalog = {\"$src/conf/gpu.d\"}"; sed "s|/tmp/wattshare-energy.csv|$tmp/energy.csv|" "$f"; } >"$tmp/conf"
    "$wattshared" --check -c "$tmp/conf" || fail "$f is wrong"
    n=$((n + 1))
    # With sanitizers, where this takes minutes, some of them, and none, whose log is looked at below.
    [ -z "$asan" ] || [ $((n % 4)) = 0 ] || [ $p = none ] || continue
    start_daemon -c "$tmp/conf"
    "$wattshare" policy show | head -n 1 | grep -q "^$p\b" || fail "$f does not give $p"
    tasks=$(sed -n 's/^task "\([^"]*\)".*/\1/p' "$f" | head -n 2)
    pids=
    for t in $tasks; do
        w=drv_matmul
        [ "$pids" ] || w=drv_aes
        (task=$t client "$cuda/$w" 16 5 >"$tmp/$t.out" 2>&1) &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid" || { cat "$tmp"/*.out; fail "a program under $p"; }
    done
    for t in $tasks; do
        "$wattshare" status --json | grep -q "\"task\":\"$t\"" || fail "nobody was task $t under $p"
    done
    stop_daemon
    ! grep "error:" "$tmp/daemon.log" || fail "$p: see above"
    # shellcheck disable=SC2086
    ok "$p:" $tasks
done
[ "$(find "$src/conf/examples" -name '*.conf' | wc -l)" = $n ] || fail "there are examples of no policy"
head -n 1 "$tmp/energy.csv" | grep -q '^unix_ms,' || fail "none.conf wrote no log"
ok "the log of energy"
