#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Jobs on a private Slurm cluster of eight nodes on this machine: 8 jobs with deadlines, which the
# planner places, arrive one after another, and 24 CUDA programs. One more job asks for what no plan
# can give. Ends with a table of jobs, and status 1 if one failed or the sums differ; on a slow
# machine, deadlines may be missed. Needs root. The top of a build tree is the working directory,
# $srcdir the source.
set -eu
build=$PWD
. "$srcdir/slurm/cluster/cluster.sh"
cluster_ends
cluster_kinds="rtx3070 t400"
cluster_plans <<EOF
margin_s = 2
gpu rtx3070 { static_w = 20 dynamic_w = 150 }
gpu t400 { static_w = 8 dynamic_w = 16 }
EOF
cluster_start 8 3 <<EOF
catalog = {"$(cd "$srcdir" && pwd)/conf/gpu.d"}
learn = "off"
shard_sms = 2
shard_memory_bytes = 67108864
only_steps = "yes"
policy = "wattshare"
EOF
mkdir "$cluster/out"
submit() { # submit NAME SHARDS COMMAND [OPTION…]
    name=$1 shards=$2 command=$3
    shift 3
    sbatch -Q -D / -J "$name" -o "$cluster/out/%j" --gres="shard:$shards" --wattshare="$name" "$@" --wrap "$command" >/dev/null
}
# A plan's own time limit is a minute here, which a busy machine may need to start all these jobs.
plan() { # plan NAME LENGTH FINISH COMMAND [OPTION…]
    name=$1 length=$2 finish=$3 command=$4
    shift 4
    sbatch -Q -D / -J "$name" -o "$cluster/out/%j" --time=10 --wattshare="$name" --watt-length="$length" --watt-finish="$finish" "$@" \
        --wrap "$command" >/dev/null
}
show() {
    sinfo -h -o '%D nodes %T' | tr '\n' ' '
    echo "| $(squeue -h | wc -l) jobs, $(awk '{ s += $4 } END { printf "%.6f", s }' "$cluster/ledger" 2>/dev/null || echo 0) J"
}
for i in 1 2 3 4 5 6 7 8; do
    plan "edl$i" 3 $((30 + 3 * i)) "$build/demo/sample 30 $((500 * i)) 0" --watt-period=100 --watt-deadline=$((20 + 10 * i))
    for p in $(echo matmul aes sort search blackscholes montecarlo histogram stencil | cut -d' ' -f"$i"); do
        for n in 1 2 3; do submit "$p$n" 1 "$build/tests/cuda/drv_$p"; done
    done
    sleep 1
    show
done
! plan late 600 60 true || { echo "cluster: a job of 600 s that must end in 60 s has a plan" >&2; exit 1; }
cluster_wait 6000 "the jobs" sh -c '[ -z "$(squeue -h)" ]'
cluster_wait 300 "the ledger" sh -c "[ \$(wc -l <$cluster/ledger) = 32 ]"
show
echo
scontrol show job -d | awk -v RS='' 'BEGIN { printf "%-5s %-14s %-10s %-8s %s\n", "JOB", "NAME", "STATE", "GRES", "NODE: USED" } {
    match($0, /AdminComment=[^\n]*/); used = substr($0, RSTART + 13, RLENGTH - 13); sub(/plan: [^;]*; /, "", used)
    split($1, id, "="); split($2, name, "="); match($0, /JobState=[A-Z]*/); state = substr($0, RSTART + 9, RLENGTH - 9)
    match($0, /JOB_GRES=[a-z]*:[0-9]*/); printf "%-5s %-14s %-10s %-8s %s\n", id[2], name[2], state, substr($0, RSTART + 9, RLENGTH - 9), used
    bad += state != "COMPLETED" || used == "" } END { if (bad) print bad " jobs failed"; exit bad > 0 }'
# When each planned job ended, by Slurm, and when it had to.
planned=$(scontrol show job -d | sed -n 's/^ *StartTime=.* EndTime=\([^ ]*\) .*/end \1/p; s/.*AdminComment=.*plan: .* deadline \([0-9]*\)\..*/plan \1/p' |
    while read -r what value; do
        case $what in
        end) end=$(date -d "$value" +%s) ;;
        plan) if [ "$end" -le "$value" ]; then echo met; else echo missed; fi ;;
        esac
    done)
echo "deadlines: $(echo "$planned" | wc -l) planned, $(echo "$planned" | grep -c met || true) met; 1 job refused"
clients=$(for i in 1 2 3 4 5 6 7 8; do "$build/cli/wattshare" status --json --socket "ipc://$cluster/n$i/sock"; done |
    tr -d ' ' | tr ',{}' '\n\n\n' | awk -F: '/^"clients":/ { on = 1 } on && /^"(busy|idle)_uj":/ { s += $2 } /^"version"/ { on = 0 } END { printf "%d\n", s }')
jobs=$(awk '{ sub(/\./, "", $4); s += $4 } END { printf "%d\n", s }' "$cluster/ledger")
echo "jobs: $jobs uJ, the daemons' accounts of their clients: $clients uJ"
[ "$jobs" = "$clients" ] || { echo "cluster: the sums differ" >&2; exit 1; }
