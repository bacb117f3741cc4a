#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks the configurations that are installed as examples. It fails if a key is missing in
# wattshared.conf or in its manual page, if wattshared.conf or a value that it shows is wrong, if a
# policy has no example under its name in conf/examples, or if of two programs that run under an
# example one has a wrong result or is not recognised as its task.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
client_timeout=60

# ---- wattshared.conf, which is made from the table of keys, as the manual page is ----
sed -n 's/^KEY(\([a-z]*\), \([a-z_0-9]*\),.*/\1 \2/p' "$src/backend/process/config_keys.def" >"$tmp/keys"
[ "$(wc -l <"$tmp/keys")" -gt 60 ] || fail "the table of keys is short"
conf=$build/conf/wattshared.conf
sed 's/\\//g' "$build/man/wattshared.conf.5" >"$tmp/page"
while read -r section key; do
    grep -q "^fB$key" "$tmp/page" || fail "wattshared.conf(5) has no key $key ($section)"
    if [ "$section" = top ]; then in_file="#$key = "; else in_file="#    $key = "; fi
    grep -q "^$in_file" "$conf" || fail "$conf has no key $key ($section)"
done <"$tmp/keys"
sed -n 's/^GPU_[A-Z]*(\([a-z_0-9]*\),.*/\1/p' "$src/device/catalog_keys.def" >"$tmp/gpu_keys"
[ "$(wc -l <"$tmp/gpu_keys")" -gt 30 ] || fail "the table of the catalog's keys is short"
while read -r key; do
    grep -q "^fB$key" "$tmp/page" || fail "wattshared.conf(5) has no key $key (gpu)"
    grep -q "^    $key = " "$src"/conf/gpu.d/*.conf || fail "no GPU of the catalog has $key"
done <"$tmp/gpu_keys"
# As it is installed; then with the # taken away from each key. Three lines are changed: the place
# of the catalog, one of two keys that exclude each other, and the policy, which must be the one
# whose options are the example.
"$wattshared" --check -c "$conf" --catalog "$src/conf/gpu.d" || fail "$conf is wrong"
sed -e 's/^#    #/#/' -e 's/^#\( *[a-z_0-9]* = \)/\1/' -e 's/^#\(}\|task\|user\|limits\)/\1/' "$conf" >"$tmp/all"
while read -r section key; do
    grep -q "^ *$key = " "$tmp/all" || fail "not every key was uncommented: $key ($section)"
done <"$tmp/keys"
sed -i -e '/^ *max_sms = /d' -e 's/^policy = .*/policy = "edl"/' -e "s|^catalog = .*|catalog = {\"$src/conf/gpu.d\"}|" "$tmp/all"
"$wattshared" --check -c "$tmp/all" || fail "the examples of $conf are wrong"
ok "wattshared.conf: $(wc -l <"$tmp/keys") keys"

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
    # With sanitizers, where this takes minutes, some of them, and none, whose log is looked at
    # below.
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
