#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One run of `wattshare experiment slurm-share`: JOBS small jobs on a private cluster of one node
# with one kind of GPU, in one of three ways: "gpu", each has a GPU to itself; "shard", four share a
# GPU by shards; "consolidate", four share it, and the policy makes one launch of theirs. Prints a
# line "makespan ms, energy uJ, busy ms, jobs uJ", by the clock and the counters of the GPUs, from
# before the first job is submitted until the last one has ended. Needs root.
#
# Usage: share.sh WAY JOBS LAUNCHES; the working directory is the top of a build tree
set -eu
way=$1 jobs=$2 launches=$3
build=$PWD
src=$(cd "$(dirname "$0")/../.." && pwd)
. "$src/slurm/cluster/cluster.sh"
cluster_needed slurm-share
case $way in
gpu) gres=gpu:1 sms=7 more= ;;
shard) gres=shard:1 sms=7 more= ;;
consolidate) gres=shard:1 sms=28 more='policy = "consolidate"
policy_options = {"threshold=4", "window=20"}' ;;
*) echo "slurm-share: $way: expected gpu, shard or consolidate" >&2; exit 2 ;;
esac
cluster_start 1 4 <<EOF
gpus = {"gtx1080ti", "gtx1080ti"}
catalog = {"$src/conf/gpu.d"}
clock = scaled
time_scale = 100
shard_sms = $sms
shard_memory_bytes = 268435456
$more
EOF
look() { # look: device time of both GPUs, energy, busy time
    status=$(cluster_status n1)
    for field in device_ns energy_uj busy_ns; do echo "$status" | cluster_sum $field; done | paste -sd' ' -
}
before=$(look)
for i in $(seq "$jobs"); do
    sbatch -Q -D / -o "$cluster/out-%j" --gres="$gres" --wattshare \
        --wrap "exec $build/bench/live/program montecarlo --blocks 7 --length 10000 --seed $i --jobs $launches" >/dev/null
done
cluster_wait 3000 "the jobs" sh -c '[ -z "$(squeue -h)" ]'
after=$(look)
cluster_wait 300 "the ledger" sh -c "[ \$(wc -l <$cluster/ledger) -ge $jobs ]"
bad=$(scontrol show job | grep -c "JobState=" || true)
bad=$((bad - $(scontrol show job | grep -c "JobState=COMPLETED" || true)))
[ "$bad" = 0 ] || { tail -n 5 "$cluster"/out-* >&2; echo "slurm-share: $bad jobs failed" >&2; exit 1; }
of_jobs=$(awk '{ sub(/\./, "", $4); s += $4 } END { printf "%d\n", s }' "$cluster/ledger")
echo "$before $after $of_jobs" | awk '{ printf "%.6f %d %.6f %d\n", ($4 - $1) / 2e6, $5 - $2, ($6 - $3) / 1e6, $7 }'
