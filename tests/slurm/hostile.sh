#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Users who want more than their share of a node, on a private Slurm cluster: what they write into
# options, names and the environment, and what they try to take.
. "${srcdir:-$(dirname "$0")/../..}/tests/slurm/lib.sh"
cluster_start 1 4 <<EOF
gpus = {"rtx3070", "t400"}
catalog = {"$src/conf/gpu.d"}
learn = "off"
shard_sms = 2
shard_memory_bytes = 8388608
socket_mode = "0666"
only_steps = "yes"
EOF
programs
cp "$build/tests/slurm/hold" "$cluster/bin"
mkdir -m 0777 "$cluster/shared"
sock=ipc://$cluster/n1/sock
long=$(printf '%300s' x | tr ' ' x)

# Options that are no numbers, or none that can be meant.
for option in --watt-deadline=nan --watt-deadline=inf --watt-deadline=0x10 --watt-period=1e5 --watt-period=1e300 --watt-period=-1 \
    --watt-deadline=0 --watt-sms=1e3 --watt-sms=99999999999999999999 --watt-sms= --watt-memory=99999999999999G --watt-memory=-1 \
    --watt-memory=0 --watt-priority=4294967297 "--watt-priority=1 2" "--watt-finish=1;id" "--watt-length=$long" "--wattshare=$long" \
    "--wattshare=$(printf 'a\nb')"; do
    expect 255 "expected " srun --wattshare "$option" true
done
# A task that wattshared.conf does not have is a name and no more, whatever is in it.
expect 0 "PASS drv_matmul" as_user srun --gres=shard:1 "--wattshare=%s%n" "$program"

# What the job's environment says of its allotment, its daemon and its task counts for nothing. A
# user's own libraries stay preloaded, and lines of the environment do not become others.
expect 0 "PASS drv_matmul" as_user env SLURM_SHARDS_ON_NODE=8 SLURM_JOB_GPUS=0,1 CUDA_VISIBLE_DEVICES=0,1 SLURM_STEP_ID=7 \
    WATTSHARE_SOCKET=tcp://192.0.2.1:1 WATTSHARE_TASK=other SLURMD_NODENAME=n9 _SLURM_SPANK_OPTION_wattshare_watt-sms=-7 \
    srun --gres=shard:1 --wattshare "$program"
# A step has what its options say, and no more than the job was allotted.
grep "step: begun" "$cluster/log/wattshared-n1.log" | tail -n 1 | grep -q "gpus=0x1 sms=2 memory_bytes=8388608" ||
    { grep "step: begun" "$cluster/log/wattshared-n1.log"; fail "not one shard"; }
expect 0 "none" as_user env "LD_LIBRARY_PATH=$(printf '/a\nwatt_evil=1')" srun --gres=shard:1 --wattshare sh -c 'echo "${watt_evil:-none}"'
expect 0 "PASS drv_matmul" as_user env "LD_PRELOAD=$(printf '%9000s' x | tr ' ' x)" srun --gres=shard:1 --wattshare "$program"

# A name with a line feed is in no line of the ledger, which has one for each of the four jobs before
# once they have all been collected.
cluster_wait 300 "four lines of the ledger" sh -c "[ \$(wc -l <$cluster/ledger) -ge 4 ]"
lines=$(wc -l <"$cluster/ledger")
as_user srun -J "$(printf 'a\njob 1, n1: 9.000000 J')" --gres=shard:1 --wattshare "$program" >/dev/null
cluster_wait 300 "the ledger" sh -c "[ \$(wc -l <$cluster/ledger) -gt $lines ]"
[ "$(wc -l <"$cluster/ledger")" = $((lines + 1)) ] && ! grep -q " 9.000000 J" "$cluster/ledger" || { cat "$cluster/ledger"; fail "the ledger"; }

# A shard has 8 MiB. What one program of a job holds, another of the same job cannot have, in
# whichever step; a job beside it has its own.
cat >"$cluster/hold.sh" <<EOF
#!/bin/sh
srun --overlap --wattshare $cluster/bin/hold 6000 $cluster/shared/go >$cluster/shared/first &
until [ -s $cluster/shared/first ]; do sleep 0.05; done
srun --overlap --wattshare $cluster/bin/hold 6000 $cluster/shared/first >$cluster/shared/second
setsid $cluster/bin/hold 6000 $cluster/shared/first >$cluster/shared/third
wait
EOF
job=$(as_user sbatch --parsable -D / -o /dev/null --gres=shard:1 --wattshare "$cluster/hold.sh")
cluster_wait 300 "the third program" test -s "$cluster/shared/third"
expect 0 "held" as_user srun --gres=shard:1 --wattshare "$cluster/bin/hold" 6000 "$cluster/shared/first"
[ "$(cat "$cluster/shared/first" "$cluster/shared/second" "$cluster/shared/third" | tr '\n' ' ')" = "held refused refused " ] ||
    { head "$cluster/shared"/*; fail "a job has more memory than its shard"; }
ok "a job has the memory of its shard, and no other's"

# While that job runs, nobody but root asks for it, ends it or writes into its record.
expect 3 "only root and the daemon's user may" as_user "$cluster/bin/wattshare" step collect --socket "$sock" --job "$job" --step 0
expect 3 "only root and the daemon's user may" as_user "$cluster/bin/wattshare" step begin --socket "$sock" --job "$job" --step 9 \
    --uid 65534 --pid $$ --gpus 0,1
expect 1 "" as_user scontrol update "JobId=$job" "AdminComment=plan: made 1.0"
touch "$cluster/shared/go"
cluster_wait 300 "the job's account" grep -q "^job $job, n1: " "$cluster/ledger"
nobody_is_left n1 || fail "clients are left"
sums_agree n1
