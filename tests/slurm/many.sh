#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Many short jobs on a private Slurm cluster: none is lost, none is without an account, and the
# joules of the jobs and of the nodes themselves are what the GPUs' counters show. 50 jobs on two
# nodes; JOBS=1000 NODES=16 (./dev jobs) is the long form.
. "${srcdir:-$(dirname "$0")/../..}/tests/slurm/lib.sh"
jobs=${JOBS:-50} nodes=${NODES:-2}
cluster_start "$nodes" 4 <<EOF
gpus = {"rtx3070", "t400"}
catalog = {"$src/conf/gpu.d"}
clock = scaled
learn = "off"
shard_sms = 2
shard_memory_bytes = 16777216
socket_mode = "0666"
only_steps = "yes"
EOF
programs
begin=$(date +%s)
as_user sbatch -Q -D / -o /dev/null --array="1-$jobs" --gres=shard:1 --wattshare --wrap "$program" >/dev/null
cluster_wait "$((300 + 40 * jobs))" "the jobs" sh -c '[ -z "$(squeue -h)" ]'
ended() { [ "$(wc -l <"$cluster/ledger")" -ge "$jobs" ]; }
cluster_wait 300 "the accounts" ended
took=$(($(date +%s) - begin))

scontrol show job >"$tmp/jobs"
n=$(grep -c "JobState=COMPLETED" "$tmp/jobs" || true)
[ "$n" = "$jobs" ] || { grep JobState "$tmp/jobs" | sort | uniq -c; fail "$n of $jobs jobs completed"; }
n=$(sed -n 's/^job \([0-9]*\), n[0-9]*: [0-9]*\.[0-9]* J (.*, 1 programs\{0,1\}.*/\1/p' "$cluster/ledger" | sort -u | wc -l)
[ "$n" = "$jobs" ] && [ "$(wc -l <"$cluster/ledger")" = "$jobs" ] || { tail -n 5 "$cluster/ledger"; fail "$n of $jobs jobs have an account"; }
n=$(grep -c "AdminComment=n[0-9]*: [0-9.]* J" "$tmp/jobs" || true)
[ "$n" = "$jobs" ] || fail "$n of $jobs jobs have their joules in Slurm's record"
ok "$jobs jobs on $nodes nodes in $took s"

of_gpus() { cluster_sum "$2" <"$tmp/status.$1"; } # of_gpus NODE FIELD
for i in $(seq "$nodes"); do
    cluster_status "n$i" >"$tmp/status.n$i"
    of_jobs=$(sed -n "s/^job .*, n$i: \([0-9]*\)\.\([0-9]*\) J .*/\1\2/p" "$cluster/ledger" | awk '{ s += $1 } END { printf "%d\n", s }')
    of_system=$(($(of_gpus "n$i" system_uj) + $(of_gpus "n$i" under_way_uj)))
    [ "$((of_jobs + of_system))" = "$(of_gpus "n$i" energy_uj)" ] && [ "$of_jobs" -gt 0 ] ||
        fail "n$i: jobs $of_jobs uJ, nobody's $of_system uJ, the GPUs' counters $(of_gpus "n$i" energy_uj) uJ"
    nobody_is_left "n$i" || fail "n$i: clients are left"
    no_sm_is_taken "n$i" || fail "n$i: SMs are taken still"
done
ok "the joules of all jobs are what the GPUs' counters show"
