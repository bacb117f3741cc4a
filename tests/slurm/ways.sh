#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The ways in which Slurm's users run jobs, on a private Slurm cluster of two nodes: each is
# accounted, and nothing of it is left. Arrays of many jobs are many.sh's subject.
. "${srcdir:-$(dirname "$0")/../..}/tests/slurm/lib.sh"
cluster_start 2 4 <<EOF
gpus = {"rtx3070", "t400"}
catalog = {"$src/conf/gpu.d"}
learn = "off"
shard_sms = 2
shard_memory_bytes = 16777216
socket_mode = "0666"
only_steps = "yes"
EOF
programs
mkdir -m 0777 "$cluster/shared"
cd "$cluster/shared" # where another user may be
forever=$cluster/bin/forever
printf '#!/bin/sh\nwhile [ ! -e "$1" ]; do %s || exit 1; sleep 0.1; done\n' "$program" >"$forever"
chmod 0755 "$forever"
submit() { as_user sbatch --parsable -D / -o /dev/null --gres=shard:1 --wattshare "$@"; }
in_state() { scontrol show job "$1" | grep -q "JobState=$2"; }
lines() { grep -c "^job $1, " "$cluster/ledger" 2>/dev/null || true; } # lines JOB: in the ledger
has_lines() { [ "$(lines "$1")" = "$2" ]; }
ended() { # ended JOB STATE LINES: within 60 s
    cluster_wait 600 "job $1 to be $2" in_state "$1" "$2"
    cluster_wait 300 "the account of job $1" has_lines "$1" "$3"
}
kernels() { sed -n "s/^job $1, .* ms, \([0-9]*\) kernels.*/\1/p" "$cluster/ledger" | awk '{ s += $1 } END { print s + 0 }'; }
runs() { # runs JOB NODE: waits until a program of it has run
    cluster_wait 300 "a program of job $1" sh -c "grep -q 'step: begun step=$1\.' '$cluster/log/wattshared-$2.log'"
    hellos=$(grep -c "client: hello" "$cluster/log/wattshared-$2.log" || true)
    cluster_wait 300 "another program of job $1" sh -c "[ \$(grep -c 'client: hello' '$cluster/log/wattshared-$2.log') -gt $hellos ]"
}

# Over its time. Slurm looks for such jobs every 30 s, so the others run meanwhile.
late=$(submit -w n2 --wrap "$forever none")
runs "$late" n2
scontrol update JobId="$late" EndTime="$(date -d '+2 seconds' +%FT%T)"

# One after another, and one that is cancelled before it begins.
first=$(submit -w n1 --wrap "$program")
second=$(submit -w n1 --dependency="afterok:$first" --wrap "$program && $program")
never=$(submit -H --wrap "$program")
scancel "$never"
ended "$second" COMPLETED 1
[ "$(kernels "$first") $(kernels "$second") $(lines "$never")" = "1 2 0" ] || { cat "$cluster/ledger"; fail "dependency"; }
ok "--dependency"

# What a job has used before it is requeued stays on the account.
job=$(submit -w n1 --requeue --wrap "$forever $cluster/shared/requeued")
runs "$job" n1
scontrol requeue "$job"
cluster_wait 300 "the account of the first run" has_lines "$job" 1
cluster_wait 300 "the clients of the first run to go" nobody_is_left n1
# A slurmd starts no job in the second in which it has killed that job.
scontrol update JobId="$job" StartTime="$(date -d '+3 seconds' +%FT%T)"
cluster_wait 1500 "job $job to run again" in_state "$job" RUNNING
touch "$cluster/shared/requeued"
ended "$job" COMPLETED 2
ok "requeue"

# The components of a heterogeneous job are a job each, with an allotment each.
expect 0 "PASS drv_matmul" as_user srun -w n1 --gres=shard:1 --wattshare "$program" : -w n2 --gres=shard:2 --wattshare "$program"
[ "$(grep -c "PASS drv_matmul" "$tmp/out")" = 2 ] || { cat "$tmp/out"; fail "one component only has run"; }
grep "step: begun" "$cluster/log/wattshared-n2.log" | tail -n 1 | grep -q "sms=4 memory_bytes=33554432" ||
    { grep "step: begun" "$cluster/log/wattshared-n2.log"; fail "the second component has not its own shards"; }

# An allocation with many steps, one after another and at the same time, and one that is cancelled.
cat >"$cluster/shared/steps.sh" <<EOF
#!/bin/sh
for i in 1 2 3; do srun --wattshare $program || exit 1; done
srun --overlap --wattshare $program &
srun --overlap --wattshare $program &
srun --overlap --wattshare $forever none &
until squeue -h -s -j \$SLURM_JOB_ID | grep -q forever; do sleep 0.1; done
sleep 0.5
scancel \$(squeue -h -s -j \$SLURM_JOB_ID -o '%i %j' | sed -n 's/ forever$//p')
wait
srun --wattshare $program
EOF
expect 0 "PASS drv_matmul" as_user salloc -w n1 --gres=shard:2 sh "$cluster/shared/steps.sh"
job=$(sed -n 's/^salloc: Granted job allocation //p' "$tmp/out")
ended "$job" COMPLETED 1
[ "$(kernels "$job")" -ge 6 ] || { cat "$cluster/ledger"; fail "not all steps of job $job are accounted"; }
[ "$(grep -c "PASS drv_matmul" "$tmp/out")" -ge 6 ] || { cat "$tmp/out"; fail "a step was lost"; }
ok "salloc, srun, scancel of a step"

# A suspended job keeps what it has, and another one goes on beside it.
job=$(submit -w n1 --wrap "$forever $cluster/shared/resumed")
runs "$job" n1
scontrol suspend "$job"
expect 0 "PASS drv_matmul" as_user srun -w n1 --gres=shard:1 --wattshare "$program"
in_state "$job" SUSPENDED || fail "job $job is not suspended"
scontrol resume "$job"
touch "$cluster/shared/resumed"
ended "$job" COMPLETED 1
ok "suspend, resume"

ended "$late" TIMEOUT 1
ok "time limit"
for node in n1 n2; do
    cluster_wait 300 "the clients of $node to go" nobody_is_left $node
    cluster_wait 300 "the SMs of $node to be free" no_sm_is_taken $node
done
sums_agree n1 n2
