#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is killed in the middle of jobs, on a private Slurm cluster: slurmctld, a slurmd, the
# planner, a program of a job, a wattshared, and at last the script that runs the cluster. Accounts
# agree afterwards, no client and no process is left, and new jobs have the whole GPU again.
. "${srcdir:-$(dirname "$0")/../..}/tests/slurm/lib.sh"
cluster_plans <<EOF
gpu mixed { static_w = 20 dynamic_w = 150 }
EOF
cluster_start 1 4 <<EOF
gpus = {"rtx3070", "t400"}
catalog = {"$src/conf/gpu.d"}
learn = "off"
shard_sms = 2
shard_memory_bytes = 1048576
socket_mode = "0666"
only_steps = "yes"
EOF
programs
status() { "$wattshare" status --json --socket "ipc://$cluster/n1/sock" | tr -d ' \n'; }
hellos() { grep -c "client: hello" "$cluster/log/wattshared-n1.log" || true; }
clients_since() { [ "$(hellos)" -gt "$1" ]; }
in_ledger() { grep -q "^job $1, n1: " "$cluster/ledger"; }
is_in_state() { scontrol show job "$1" | grep -q "JobState=$2"; }

# begin: a job of one program after another, until $cluster/shared/end is there; sets $job
mkdir -m 0777 "$cluster/shared"
cat >"$cluster/job.sh" <<EOF
#!/bin/sh
while [ ! -e "$cluster/shared/end" ]; do $program || exit 1; done
EOF
begin() {
    rm -f "$cluster/shared/end"
    cluster_wait 300 "the node to register" as_user srun --test-only --gres=shard:4 true
    before=$(hellos)
    job=$(as_user sbatch --parsable -D / -o /dev/null --gres=shard:4 --wattshare "$cluster/job.sh")
    cluster_wait 300 "a client of job $job" clients_since "$before"
}
end() { # end STATE: the job comes to its end, with an account, and takes nothing with it
    touch "$cluster/shared/end"
    cluster_wait 600 "the end of job $job" is_in_state "$job" "$1"
    cluster_wait 300 "the account of job $job" in_ledger "$job"
    cluster_wait 300 "the clients of job $job to go" nobody_is_left n1
    cluster_wait 300 "the SMs of job $job to be free" no_sm_is_taken n1
    ok "job $job: $1"
}

# slurmctld is away for a while. What it has saved says that the job runs; with an older state Slurm
# would start it a second time.
begin
cluster_wait 300 "job $job to run" is_in_state "$job" RUNNING
touch "$tmp/runs"
scontrol update JobId="$job" Comment=running # a change, so that it saves
saved() { [ "$cluster/state/job_state" -nt "$tmp/runs" ]; }
cluster_wait 300 "slurmctld to save its state" saved
pid=$(cluster_pid "$cluster/run/slurmctld.pid")
kill -9 "$pid"
before=$(hellos)
cluster_wait 300 "the job to go on without slurmctld" clients_since "$before"
cluster_slurmctld
cluster_wait 300 "slurmctld" scontrol ping
end COMPLETED

# So with slurmd.
begin
kill -9 "$(cluster_pid "$cluster/run/slurmd-n1.pid")"
before=$(hellos)
cluster_wait 300 "the job to go on without slurmd" clients_since "$before"
cluster_slurmd n1
end COMPLETED

# And with the planner: what it has planned stands with the jobs.
begin
kill -9 "$(cluster_pid "$cluster/run/planner.pid")"
before=$(hellos)
cluster_wait 300 "the job to go on without the planner" clients_since "$before"
cluster_planner
end COMPLETED

# A program of the job is killed in its work: the job fails, and the others' accounts stay.
begin
# Between two programs of the job there is none that could be killed.
killed() { pkill -9 -f "^$program"; is_in_state "$job" FAILED; }
cluster_wait 300 "the job to fail" killed
end FAILED
sums_agree n1

# The daemon is killed: the job's program gets an error. The next daemon serves the next job, which
# has all its SMs and its memory.
begin
daemon=$(cluster_pid "$cluster/run/wattshared-n1.pid")
kill -9 "$daemon"
wait "$daemon" || true
cluster_wait 300 "the job to fail" is_in_state "$job" FAILED
: >"$cluster/ledger"
cluster_daemon n1
begin
end COMPLETED
sums_agree n1
grep "step: begun step=$job" "$cluster/log/wattshared-n1.log" | grep -q "sms=8 memory_bytes=4194304" || fail "job $job has not all it was allotted"
nobody_is_left n1 || fail "clients are left"

other=$(cluster_ports; echo "$cluster_port")
[ "$other" != "$cluster_port" ] || fail "another cluster would have the same ports"

# A script that runs a cluster is interrupted.
cat >"$tmp/day.sh" <<EOF
set -eu
build=$build
. $src/slurm/cluster/cluster.sh
cluster_ends
cluster_start 1 1 <$tmp/day.conf
echo "\$cluster" >$tmp/folder
srun sleep 600
EOF
echo 'gpus = {"t400", "t400"}' >"$tmp/day.conf"
setsid sh "$tmp/day.sh" >"$tmp/day.out" 2>&1 &
helper_pid=$!
cluster_wait 600 "the other cluster's job" sh -c "[ -s $tmp/folder ] && SLURM_CONF=\$(cat $tmp/folder)/etc/slurm.conf squeue -h | grep -q ' R '"
kill -TERM "-$helper_pid"
wait "$helper_pid" || true
helper_pid=
[ ! -e "$(cat "$tmp/folder")" ] || { cat "$tmp/day.out"; fail "the other cluster's folder is left"; }
# A process that has been killed may take a moment to be gone.
left() { grep -lsaFf "$tmp/folder" /proc/[0-9]*/environ /proc/[0-9]*/cmdline; }
none_left() { ! left; }
cluster_wait 300 "the other cluster's processes to go" none_left || { cat "$tmp/day.out"; fail "processes of the other cluster are left: $(left)"; }
ok "nothing is left of an interrupted cluster"
