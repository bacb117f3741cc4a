#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs with deadlines on a private Slurm cluster of two nodes, of two kinds of GPU: where the
# planner puts them, at which clocks, what it refuses, and that Slurm works on without it.
. "${srcdir:-$(dirname "$0")/../..}/tests/slurm/lib.sh"
cluster_kinds="rtx3070 t400"
cluster_plans <<EOF
margin_s = 1
gpu rtx3070 { static_w = 20 dynamic_w = 150 }
gpu t400 { static_w = 8 dynamic_w = 16 }
model { task = "matmul" gpu = "rtx3070" p0 = 20 gamma = 15 c = 130 d = 10 delta = 0.9 }
model { task = "matmul" gpu = "t400" p0 = 8 gamma = 2 c = 14 d = 400 delta = 0.9 }
EOF
cluster_start 2 4 <<EOF
catalog = {"$src/conf/gpu.d"}
learn = "off"
shard_sms = 2
shard_memory_bytes = 1048576
socket_mode = "0666"
only_steps = "yes"
policy = "fifo"
EOF
programs
planner=$build/slurm/planner/wattshare-planner
ask() { "$planner" --ask --socket "$cluster/planner" -- "$@"; }
last() { scontrol show job -d | awk -v RS= 'END { print }' >"$tmp/job"; }
kill_planner() {
    kill -9 "$(cat "$cluster/run/planner.pid")"
    wait "$(cat "$cluster/run/planner.pid")" || true
}

# The frugal GPU where the deadline allows it, else the quick one; and words for what can't be.
expect 0 "PASS drv_matmul" as_user srun --wattshare=any --watt-length=3 --watt-finish=600 "$program"
last
grep -q "ReqNodeList=n2" "$tmp/job" || { cat "$tmp/job"; fail "not on the frugal GPU"; }
grep -q "TimeLimit=00:01:00" "$tmp/job" || { cat "$tmp/job"; fail "no time limit"; }
expect 0 "PASS drv_matmul" as_user srun --wattshare=matmul --watt-finish=120 "$program"
last
grep -q "ReqNodeList=n1" "$tmp/job" || { cat "$tmp/job"; fail "not on the quick GPU"; }
expect 1 "--watt-finish=5: no plan makes this job in time; as the cluster is now, it takes --watt-finish=" as_user \
    srun --wattshare=matmul --watt-finish=5 "$program"
expect 1 "nothing is known of task 'other': give its length with --watt-length=SECONDS" as_user \
    srun --wattshare=other --watt-finish=100 "$program"
expect 1 "a job with --watt-finish has a GPU to itself: submit it with --gres=gpu:1" as_user \
    srun --gres=shard:1 --wattshare=any --watt-length=3 --watt-finish=100 "$program"
expect 255 "--watt-finish=soon: expected seconds, such as 600 or 0.5" srun --wattshare --watt-finish=soon "$program"
expect 1 "--watt-length goes with --watt-finish" srun --wattshare --watt-length=3 "$program"

# The node works at the clocks of the plan: slower than without one, and for fewer joules.
expect 0 "PASS drv_matmul" as_user srun -w n1 --gres=gpu:1 --wattshare "$program"
used() { sed -n "s/^job $1, n1: \([0-9.]*\) J (.*), \([0-9.]*\) ms.*/\1 \2/p" "$cluster/ledger"; }
cluster_wait 300 "the ledger" sh -c "[ \$(wc -l <$cluster/ledger) -ge 3 ]"
planned=$(used 2) usual=$(used 3)
echo "$planned $usual" | awk '{ exit !($1 < 0.95 * $3 && $2 > 1.05 * $4) }' ||
    { cat "$cluster/ledger"; fail "planned: J, ms: $planned; at the default clocks: $usual"; }
ok "clocks: $planned (J, ms), by default $usual"

# What a user writes reaches the shell as one word, and the planner as a name.
expect 1 "nothing is known of task" as_user srun "--wattshare=a';touch\$IFS$cluster/shot;'" --watt-finish=9 "$program"
expect 1 "nothing is known of task" as_user srun "--wattshare=\$(touch\$IFS$cluster/shot)" --watt-finish=9 "$program"
[ ! -e "$cluster/shot" ] || fail "a task's name was run by the shell"
for words in "a 1 -1" "a nan 5" "a 1 inf" "a 1 5x" "$(printf '%900s' x | tr ' ' x) 1 5"; do
    # shellcheck disable=SC2086 # words
    expect 0 "no " ask $words
done
expect 2 "usage: wattshare-planner" "$planner" --ask too few
! runuser -u nobody -- "$planner" --ask --socket "$cluster/planner" x 1 5 2>/dev/null || fail "another user may ask the planner"

# Without the planner a job is Slurm's alone.
kill_planner
expect 0 "PASS drv_matmul" as_user srun --wattshare=any --watt-length=3 --watt-finish=600 "$program"
last
grep -q "ReqNodeList=(null)" "$tmp/job" || { cat "$tmp/job"; fail "planned by nobody"; }

# All four GPUs are taken, so one more job has no place. A planner that was killed learns of them
# from slurmctld, and a job that is cancelled makes room.
cluster_planner
cluster_wait 300 "the planner to know the nodes" sh -c "'$planner' --ask --socket '$cluster/planner' x 0.1 100 | grep -q ^yes"
for _ in 1 2 3 4; do
    as_user sbatch --parsable -D / -o /dev/null --wattshare=any --watt-length=500 --watt-finish=900 --wrap "sleep 900" >>"$tmp/held"
done
full() { ask any 500 900 | grep -q '^no .*no plan makes this job in time'; }
full || { cat "$cluster/log/planner.log"; fail "a fifth job of 500 s has a place on four GPUs"; }
[ "$(scontrol show job -d | grep -c 'ReqNodeList=n1')" -gt 1 ] || fail "the quick GPUs are not used"
kill_planner
cluster_planner
cluster_wait 300 "the planner to know the jobs" full
scancel "$(head -n 1 "$tmp/held")"
room() { ask any 500 900 | grep -q '^yes '; }
cluster_wait 300 "room for a job" room
ok "the planner knows what slurmctld has"
