#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the energy accounts of real processes. Clients come, work and are killed at random moments,
# on a clock that passes, under a policy that preempts. It fails if in any entry of the log, or in
# any status, the accounts do not add up to the GPUs' counters to the microjoule, or if a status
# does not say what the joules of a software GPU were held against.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
kills=${KILLS:-$([ -n "$asan" ] && echo 20 || echo 30)}
cat >"$tmp/conf" <<EOF
gpus = {"rtx3070", "t400"}
catalog = {"$src/conf/gpu.d"}
clock = scaled
policy = gcaps
energy_log = "$tmp/energy.csv"
energy_log_ms = 20
task "urgent" { priority = 9  weight = 0.3  max_sms = 20 }
task "batch" { weight = 0.7 }
EOF
start_daemon -c "$tmp/conf"
check_status() {
    "$wattshare" status --json | python3 -c '
import json, sys
s = json.load(sys.stdin)
for g in s["gpus"]:
    parts = g["clients_uj"] + g["system_uj"] + g["under_way_uj"]
    assert parts == g["energy_uj"], (parts, g)
    assert g["idle_uj"] <= g["energy_uj"], g
live = sum(c["busy_uj"] + c["idle_uj"] for c in s["clients"])
assert live <= sum(g["clients_uj"] for g in s["gpus"]), s' || fail "a status that does not add up"
}
awk -v n="$kills" 'BEGIN { srand(11); for (i = 0; i < n; i++) printf "%d %.3f\n", int(rand() * 1000), 0.01 + 0.12 * rand() * rand() }' >"$tmp/plan"
set -- drv_matmul drv_aes drv_histogram drv_search
killed=0
while read -r which after; do
    i=$((which % $# + 1))
    eval "w=\${$i}"
    task=batch
    [ $((which % 3)) != 0 ] || task=urgent
    for t in $task batch; do
        LD_PRELOAD="${asan:+$asan:}$build/frontend/libwattshare.so" ASAN_OPTIONS=detect_leaks=0 WATTSHARE_TASK=$t \
            "$cuda/$w" 16 100000 >"$tmp/victim.$t" 2>&1 &
        eval "p_$t=$!"
        [ $task != batch ] || break
    done
    sleep "$after"
    check_status
    for t in $task batch; do
        eval "kill -KILL \$p_$t" 2>/dev/null && killed=$((killed + 1))
        eval "wait \$p_$t" 2>/dev/null || true
        [ $task != batch ] || break
    done
done <"$tmp/plan"
[ $killed -ge "$kills" ] || { cat "$tmp"/victim.*; fail "only $killed of $kills clients could be killed"; }
wait_empty
ok "$killed clients killed, each status adds up"
client "$cuda/drv_matmul" 16 3 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "a program after the kills"; }
check_status
"$wattshare" status | grep -q '^GPU 0: catalog entry rtx3070: power [0-9.]* %, 4 applications, ' || fail "status does not say how far the GPU's model is off"
stop_daemon
awk -F, 'NR > 1 && $2 == "counter" { n++; if (sum != $9) { print "line " NR ": " sum " is not " $9; bad = 1 } sum = 0; next }
    NR > 1 { sum += $9; if ($2 == "client") clients++ } $2 == "client" && $7 + $8 != $9 { print; bad = 1 }
    END { if (n < 20 || !clients) { print n " entries, " clients " of clients"; bad = 1 } exit bad }' "$tmp/energy.csv" || fail "a log that does not add up"
tail -n 3 "$tmp/energy.csv" | grep -q ',under_way,.*,0$' || { tail -n 4 "$tmp/energy.csv"; fail "something is under way at the end"; }
[ "$(awk -F, '$2 == "former" { f = $9 } END { print (f > 0) }' "$tmp/energy.csv")" = 1 ] || fail "those who are gone took nothing"
ok "$(grep -c ,counter, "$tmp/energy.csv") entries of the log add up"
