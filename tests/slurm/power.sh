#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Power saving on a private Slurm cluster of two nodes: those without jobs are switched off, a job
# with a deadline switches one on, and its plan allows for the time that this takes. The break-even
# time is that of the model.
. "${srcdir:-$(dirname "$0")/../..}/tests/slurm/lib.sh"
cluster_kinds="rtx3070 t400"
cluster_plans <<EOF
margin_s = 1
turn_on_s = 20
turn_on_j = 90
gpu rtx3070 { static_w = 20 dynamic_w = 150 idle_w = 37 }
gpu t400 { static_w = 8 dynamic_w = 16 idle_w = 10 }
EOF
cluster_power_saving 3
cluster_start 2 4 <<EOF
catalog = {"$src/conf/gpu.d"}
learn = "off"
shard_sms = 2
shard_memory_bytes = 1048576
socket_mode = "0666"
only_steps = "yes"
policy = "fifo"
clock = scaled
EOF
programs
planner=$build/slurm/planner/wattshare-planner

# 90 J are 2.4 s of 37 W, and 9 s of 10 W; a cluster has one time, so it is the longer one.
expect 0 "# rtx3070: break-even after 2.4 s" "$planner" --power-saving --config "$cluster/etc/planner.conf"
expect 0 "SuspendTime=9" "$planner" --power-saving --config "$cluster/etc/planner.conf"
echo 'gpu t400 { static_w = 8 dynamic_w = 16 }' >"$tmp/planner.conf"
expect 1 "expected turn_on_j, and idle_w in section" "$planner" --power-saving --config "$tmp/planner.conf"

gone() { ! cluster_pid "$cluster/run/wattshared-$1.pid" >/dev/null && ! cluster_pid "$cluster/run/slurmd-$1.pid" >/dev/null; }
both_off() { [ "$(sinfo -h -N -o %T | grep -c 'idle~')" = 2 ] && gone n1 && gone n2; }
cluster_wait 600 "both nodes to be switched off" both_off
grep -q "^off n1 [1-9][0-9]* [0-9]*$" "$cluster/power" || { cat "$cluster/power"; fail "no energy of n1"; }
ok "off: $(tr '\n' ' ' <"$cluster/power")"

# 3 s of work and 1 s of margin take 20 s more until a node is on.
cluster_wait 300 "the planner to know that they are off" sh -c "'$planner' --ask --socket '$cluster/planner' any 3 15 | grep -q ^no"
expect 1 "no plan makes this job in time; as the cluster is now, it takes --watt-finish=2" as_user \
    srun --wattshare=any --watt-length=3 --watt-finish=15 "$program"
expect 0 "PASS drv_matmul" as_user srun --wattshare=any --watt-length=3 --watt-finish=600 "$program"
grep -q "^on n2 " "$cluster/power" || { cat "$cluster/power"; fail "the frugal node was not switched on"; }
! grep -q "^on n1 " "$cluster/power" || fail "the other node was switched on, too"
# It waited for the node and not for Slurm, which looks only every 30 s whether a node has come up.
last() { scontrol show job -d | awk -v RS= 'END { print " " $0 }' >"$tmp/job"; }
seconds() { date -d "$(sed -n "s/.* $1=\([^ ]*\).*/\1/p" "$tmp/job" | head -n 1)" +%s; }
last
grep -q "plan: .*waits for its node" "$tmp/job" || { cat "$tmp/job"; fail "the plan does not wait for a node"; }
waited=$(($(seconds StartTime) - $(seconds SubmitTime)))
[ $waited -lt 40 ] || fail "the job began after $waited s, when Slurm lets it begin without the planner"
# While the node is on, a job is possible within the time in which none was.
cluster_wait 300 "the planner to know that a node is on" sh -c "'$planner' --ask --socket '$cluster/planner' any 3 15 | grep -q '^yes n2'"
cluster_wait 600 "the node to be switched off again" both_off
# slurmctld blocks signals, and this slurmd was started by a program of slurmctld.
[ "$(grep -c "Slurmd shutdown completing" "$cluster/log/slurmd-n2.log")" = 2 ] || fail "a slurmd that was switched on does not end by SIGTERM"
ok "on and off again"

# Where nobody lets the job begin, Slurm does, when the node would be taken for down. This planner's
# slurmctld refuses what the planner orders.
kill -9 "$(cat "$cluster/run/planner.pid")"
wait "$(cat "$cluster/run/planner.pid")" || true
mkdir "$tmp/bin"
printf '#!/bin/sh\n[ "$1" != update ] || exit 1\nexec %s "$@"\n' "$(command -v scontrol)" >"$tmp/bin/scontrol"
chmod 0755 "$tmp/bin/scontrol"
PATH=$tmp/bin:$PATH cluster_planner
cluster_wait 300 "the planner to know that they are off" sh -c "'$planner' --ask --socket '$cluster/planner' any 3 15 | grep -q ^no"
expect 0 "PASS drv_matmul" as_user srun --wattshare=any --watt-length=3 --watt-finish=600 "$program"
last
waited=$(($(seconds StartTime) - $(seconds SubmitTime)))
[ $waited -ge 60 ] || { cat "$tmp/job"; fail "the job began after $waited s, and nobody had switched its node on"; }
ok "without the planner's orders"
