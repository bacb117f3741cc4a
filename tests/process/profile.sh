#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare profile` and the daemon's learning. It fails if programs do not run on each
# number of SMs, if the store does not say so afterwards, if a daemon does not find what an earlier
# one learned, if WATTSHARE_SMS does not keep kernels to their SMs, or if bad options and keys are
# accepted.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
run_preload=$asan
export ASAN_OPTIONS=detect_leaks=0
s=$tmp/p.db
# points KERNEL: "SMs runs ms watts" of each line of `profiles show` for that kernel's profiles.
points() {
    "$wattshare" profiles show "$s" | awk -v k=": $1\$" '/, shape / {on = $0 ~ k} on && $1 ~ /^[0-9]+$/ {print $1, $2, $4, $6}'
}

run 2 "needs a program" profile
run 2 "from 1 to 256" profile --sms 1,x -- true
run 2 "from 1 to 1000" profile --runs 0 -- true
run 127 "not found" profile --store "$s" -- no-such-program-at-all
run 1 "nowhere" profile --store /nowhere/p.db -- true
echo "this is no store" >"$tmp/notes"
run 1 "notes: not a store" profile --store "$tmp/notes" -- true
run 1 "no kernel" profile --store "$s" -- true
run 1 "status 3 on 1 SMs" profile --store "$s" -- sh -c 'exit 3'
run 2 "t400 has only 6 SMs" profile --store "$s" --gpus t400 --sms 7 -- "$cuda/drv_matmul" 96 1
run 69 "" profile --store "$s" --gpus frob -- "$cuda/drv_matmul" 96 1

# All numbers of SMs: times don't grow by more than the loads that two blocks of an SM no longer
# share, the first doublings halve it (36 blocks), power grows; two launches each.
run 0 'per thread [0-9.]* compute' profile --store "$s" -- "$cuda/drv_matmul" 96 2
grep -q '^PASS drv_matmul' "$tmp/out" || fail "the program's own output is not shown"
[ "$(points matmul | cut -d' ' -f1,2 | tr '\n' ';')" = "1 2;2 2;4 2;8 2;16 2;32 2;46 2;" ] || { points matmul; fail "not all numbers of SMs"; }
points matmul | awk 'NR > 1 && ($3 > t * 1.01 || $4 < w) {bad = 1} NR == 2 && ($3 < t * .49 || $3 > t * .51) {bad = 1} {t = $3; w = $4} END {exit bad}' ||
    { points matmul; fail "times or powers can't be"; }
ok "times fall and power rises with SMs"
grep -q '^catalog entry rtx3070: power [0-9.]* %, 4 applications' "$tmp/out" || fail "it is not said how far the software GPU can be trusted"
# What a kernel draws depends on what it does, also on the same SMs.
run 0 'matmul' profile --store "$tmp/kinds.db" --sms 46 -- "$cuda/drv_matmul" 256 1
run 0 'montecarlo' profile --store "$tmp/kinds.db" --sms 46 -- "$cuda/drv_montecarlo" 1
"$wattshare" profiles show "$tmp/kinds.db" >"$tmp/kinds"
awk '/^ *46 / { w[++n] = $6 } END { exit !(n == 2 && (w[1] > w[2] * 1.05 || w[2] > w[1] * 1.05)) }' "$tmp/kinds" ||
    { cat "$tmp/kinds"; fail "two kernels that do different things draw the same"; }
first=$(points matmul | head -n 1)
LD_PRELOAD=$asan "$wattshare" profile --json --store "$s" --sms 1 -- "$cuda/drv_matmul" 96 2 >"$tmp/json" 2>"$tmp/out" || { cat "$tmp/out"; fail "profile --json"; }
python3 -c 'import json,sys; v=json.load(open(sys.argv[1])); assert len(v)==1 and v[0]["name"]=="matmul" and len(v[0]["sms"])==7 and v[0]["sms"][0]["n_runs"]==4, v' "$tmp/json" ||
    fail "no such JSON"
[ "$(points matmul | head -n 1 | cut -d' ' -f3,4)" = "$(echo "$first" | cut -d' ' -f3,4)" ] || fail "the same run again gives another mean"
ok "the store goes on from run to run"
run 0 "sort_merge" profile --store "$s" --gpus t400,rtx3070 --sms 1,3 --runs 2 -- "$cuda/drv_sort" 12 1
[ "$(points sort_tiles | cut -d' ' -f1 | tr '\n' ' ')" = "1 3 1 3 " ] || { points sort_tiles; fail "not on both GPUs"; }
"$wattshare" profiles export "$s" "$tmp/a.csv" && "$wattshare" profiles import "$tmp/b.db" "$tmp/a.csv" >"$tmp/out" || fail "no exchange"
ok "what is learned can be carried elsewhere"
if have_nvcc; then
    run 0 "saxpy" profile --store "$tmp/nv.db" --sms 1,46 -- "$cuda/nv/saxpy_static" 64 1
    run 0 "saxpy" profile --store "$tmp/nv.db" --sms 2 -- "$cuda/nv/saxpy_shared" 64 1
fi

# On line: a daemon learns from whoever runs, shows it, keeps it, and knows it when it comes again.
start_daemon --gpus rtx3070 --profiles "$tmp/d.db"
task=m client "$cuda/drv_matmul" 96 3 >"$tmp/out" || fail "drv_matmul"
run 0 '^matmul  *rtx3070  *6x6x1/16x16x1  *3  *46 .*+0.0 ± 0.0 %' status
run 0 '"n_runs": *3' status --json
stop_daemon
run 0 'matmul *1 *3 ' profiles list "$tmp/d.db"
start_daemon --gpus rtx3070 --profiles "$tmp/d.db"
task=m client "$cuda/drv_matmul" 96 1 >"$tmp/out" || fail "drv_matmul"
run 0 '^matmul .* 4  *46 .* -$' status
WATTSHARE_SMS=5 client "$cuda/drv_smids" 5 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "drv_smids on 5"; }
WATTSHARE_SMS=46 client "$cuda/drv_smids" 46 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "drv_smids on 46"; }
WATTSHARE_SMS=1000 client "$cuda/drv_smids" 46 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "drv_smids on all"; }
for v in 0 -1 x '' 5x; do
    WATTSHARE_SMS=$v client "$cuda/drv_smids" 46 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "drv_smids with '$v'"; }
done
ok "kernels are kept to the SMs that are given"
if have_nvcc; then
    WATTSHARE_SMS=1 client "$cuda/nv/coopgroups_static" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "a cooperative launch on fewer SMs than it counted"; }
    ok "cooperative launches have the SMs that the program counts"
fi
stop_daemon
# What a program asks for itself never gives it more than its task may have.
printf 'endpoints = {"ipc://%s/sock"}\ngpus = {"rtx3070"}\ntask small { max_sms = 4 }\ntask fixed { sms = "0-2" }\n' "$tmp" >"$tmp/conf"
start_daemon --config "$tmp/conf"
for n in 4 5 45; do
    task=small WATTSHARE_SMS=$n client "$cuda/drv_smids" 4 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "max_sms = 4, $n asked for"; }
    task=fixed WATTSHARE_SMS=$n client "$cuda/drv_smids" 3 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "sms = 0-2, $n asked for"; }
done
task=fixed WATTSHARE_SMS=2 client "$cuda/drv_smids" 2 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "2 of the task's 3"; }
ok "and to those of their task"
stop_daemon

# conf
printf 'learn = off\nendpoints = {"ipc://%s/sock"}\ngpus = {"t400"}\n' "$tmp" >"$tmp/conf"
start_daemon --config "$tmp/conf"
client "$cuda/drv_matmul" 96 1 >"$tmp/out" || fail "drv_matmul"
if "$wattshare" status | grep -q '^matmul'; then fail "learned although it is off"; fi
ok "learn = off"
stop_daemon
printf 'learn = maybe\n' >"$tmp/conf"
expect 1 "conf:1: learn = \"maybe\" is not known: use off or on" "$wattshared" --config "$tmp/conf" --check
printf 'profiles = "%s"\n' "$tmp/c.db" >"$tmp/conf"
start_daemon --config "$tmp/conf" --gpus t400
client "$cuda/drv_matmul" 96 1 >"$tmp/out" || fail "drv_matmul"
stop_daemon
run 0 matmul profiles list "$tmp/c.db"
expect 1 "is empty" "$wattshared" --profiles "" --check

# A store that is somebody else's file is left alone; the daemon serves without it.
start_daemon --gpus t400 --profiles "$tmp/notes"
client "$cuda/drv_matmul" 96 1 >"$tmp/out" || fail "drv_matmul without a store"
stop_daemon
grep -q "store can't be used.*notes" "$tmp/daemon.log" || fail "a bad store is not said"
[ "$(cat "$tmp/notes")" = "this is no store" ] || fail "somebody's file was changed"
ok "a bad store is said, and left alone"
