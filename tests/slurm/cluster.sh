#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs under the plugin on a private Slurm cluster of two nodes, as root's and as another user's.
. "${srcdir:-$(dirname "$0")/../..}/tests/slurm/lib.sh"
cluster_start 2 4 <<EOF
gpus = {"rtx3070", "t400"}
catalog = {"$src/conf/gpu.d"}
learn = "off"
shard_sms = 2
shard_memory_bytes = 1048576
socket_mode = "0666"
only_steps = "yes"
EOF
programs

# Words at submission.
expect 255 "--watt-deadline=soon: expected milliseconds, such as 40 or 16.7" srun --wattshare --watt-deadline=soon "$program"
expect 255 "--watt-sms=0: expected a number of SMs, 1 to 1024" srun --wattshare --watt-sms=0 "$program"
expect 255 "--watt-memory=2X: expected a size, such as 512M or 2G" srun --wattshare --watt-memory=2X "$program"
expect 255 "--watt-priority=-1: expected a number, 0 to 1000000" srun --wattshare --watt-priority=-1 "$program"
expect 1 "--watt-period goes with --wattshare: give that too" srun --watt-period=40 "$program"
expect 1 "give a deadline of at most the period" srun --wattshare --watt-period=40 --watt-deadline=50 "$program"
expect 255 "expected milliseconds" sbatch --wattshare --watt-period=0 --wrap true

# Words on the node, where Slurm's allotment and the daemon's configuration are known. What the
# user's environment says of shards counts for nothing.
expect 1 "submit it with --gres=shard:N, or with --gres=gpu:N" as_user env SLURM_SHARDS_ON_NODE=4 CUDA_VISIBLE_DEVICES=0 \
    srun --wattshare "$program"
expect 1 "--watt-priority=3 is more than users may ask for here, which is 0" as_user \
    srun --wattshare --gres=shard:1 --watt-priority=3 "$program"

# A job has what it was allotted, in all its programs on both nodes. Memory for one shard is too
# little.
expect 0 "PASS drv_matmul" as_user srun -w n1 --wattshare --gres=shard:4 "$program"
grep -q "step: begun step=.* gpus=0x1 sms=8 memory_bytes=4194304" "$cluster/log/wattshared-n1.log" || fail "not eight SMs and 4 MiB"
expect 0 "PASS drv_matmul" as_user srun -N2 -n4 --wattshare --gres=gpu:1 "$program"
expect 1 "OUT_OF_MEMORY" as_user srun -w n1 --wattshare --gres=shard:1 "$program"

# A program that leaves its session and its parent is of the step still; one in none is not served.
cat >"$cluster/orphan.sh" <<EOF
#!/bin/sh
(setsid sh -c "sleep 0.2; $program; touch $cluster/shared/done" &)
while [ ! -e "$cluster/shared/done" ]; do sleep 0.1; done
EOF
mkdir -m 0777 "$cluster/shared"
expect 0 "PASS drv_matmul" as_user srun -w n2 --wattshare --gres=shard:4 sh "$cluster/orphan.sh"
expect 126 "" as_user env LD_PRELOAD="$build/frontend/libwattshare.so" WATTSHARE_SOCKET="ipc://$cluster/n1/sock" \
    sh -c "$program || exit 126"
grep -q "client: refused: this daemon serves the jobs of a batch scheduler only" "$cluster/log/wattshared-n1.log" ||
    fail "a program outside of a job was served"
expect 3 "only root and the daemon's user may announce steps" as_user "$cluster/bin/wattshare" step begin \
    --socket "ipc://$cluster/n1/sock" --job 99 --step 0 --uid 65534 --pid $$ --gpus 0

# A batch job with a step in it is one job on the account.
cat >"$cluster/job.sh" <<EOF
#!/bin/sh
$program && srun --wattshare $program
EOF
as_user sbatch -D / -o /dev/null --gres=shard:4 --wattshare "$cluster/job.sh" >"$tmp/out"
job=$(sed -n 's/^Submitted batch job //p' "$tmp/out")
cluster_wait 300 "a batch job" grep -q "^job $job, " "$cluster/ledger"
scontrol show job "$job" >"$tmp/job"
grep -q 'AdminComment=n[12]: [0-9.]* J (.* 2 kernels, 2 programs' "$tmp/job" || { cat "$tmp/job"; fail "no joules in job $job"; }
ok "AdminComment"

# Killed in the middle of its work: by Slurm, and with slurmstepd from outside.
cat >"$cluster/long.sh" <<EOF
#!/bin/sh
while :; do $program; done
EOF
# long NODE: submits it there, and waits for its first client
long() {
    before=$(grep -c "client: hello" "$cluster/log/wattshared-$1.log" || true)
    as_user sbatch -w "$1" -D / -o /dev/null --gres=shard:4 --wattshare "$cluster/long.sh" >"$tmp/out"
    job=$(sed -n 's/^Submitted batch job //p' "$tmp/out")
    cluster_wait 300 "a client on $1" sh -c "[ \$(grep -c 'client: hello' $cluster/log/wattshared-$1.log) -gt $before ]"
}
long n1
scancel "$job"
cluster_wait 300 "the account of a cancelled job" grep -q "^job $job, n1: " "$cluster/ledger"
nobody_is_left n1 || fail "a client is left of a cancelled job"
ok "scancel"
long n2
stepd=$(sed -n 's/.*step: begun step='"$job"'\.batch .* pid=\([0-9]*\) .*/\1/p' "$cluster/log/wattshared-n2.log")
kill -9 "$stepd"
cluster_wait 300 "the step's end" grep -q "step: ended step=$job" "$cluster/log/wattshared-n2.log"
pkill -9 -f "^/bin/sh $cluster/|$cluster/spool/n2/job" || true
cluster_wait 300 "the step's clients to go" nobody_is_left n2
ok "kill -9 of slurmstepd"
scancel "$job"
cluster_wait 300 "the account of a killed job" grep -q "^job $job, n2: " "$cluster/ledger"

sums_agree n1 n2
