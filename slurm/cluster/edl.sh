#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `wattshare experiment slurm-edl` runs, on a private cluster whose nodes have two software
# GPUs of one kind and are switched off when they are idle. A second of the host is 1/SCALE s of
# device time, so that programs last for seconds and the host has next to nothing to execute. All
# that is printed is in seconds of the host, and in W times these.
#
#   edl.sh profile SCALE
#       Each program alone on a GPU at several clocks: lines "NAME V CORE MEMORY SECONDS JOULES" for
#       one launch. The last line is "idle WATTS" of a GPU.
#   edl.sh day SCALE WAY NODES BREAK-EVEN-S FOLDER
#       The tasks of FOLDER/tasks, lines "ARRIVAL NAME LAUNCHES LENGTH DEADLINE", under the planner
#       with the policy WAY and FOLDER/planner.conf, or under Slurm's own scheduling ("backfill").
#       Prints "JOULES IDLE-JOULES SWITCHED-ON PAIRS MISSED ON-S": energy of all nodes while they
#       were on, how often a node was switched on, how many GPUs had work, tasks that were late or
#       refused, and how long a node that was switched on took until it ran a job.
#
# Needs root; the working directory is the top of a build tree.
set -eu
what=$1 scale=$2
build=$PWD
src=$(cd "$(dirname "$0")/../.." && pwd)
. "$src/slurm/cluster/cluster.sh"
cluster_needed slurm-edl
cluster_kinds=rtx3070
start() { # start N-NODES
    cluster_start "$1" 4 <<EOF
catalog = {"$src/conf/gpu.d"}
learn = "off"
clock = scaled
time_scale = $scale
policy = "fifo"
EOF
}
# Time goes with the core clock, or with the memory clock.
command_of() { # command_of NAME LAUNCHES
    case $1 in
    core) echo "$build/bench/live/program montecarlo --blocks 46 --length 3000 --jobs $2" ;;
    memory) echo "$build/bench/live/program steps --blocks 46 --length 600 --jobs $2" ;;
    esac
}

profile() {
    start 1 >&2
    job=1000000
    for name in core memory; do
        for clocks in 1:1:1 0.8:0.7:1 1:1:0.7; do
            job=$((job + 1))
            # shellcheck disable=SC2016,SC2046 # the inner shell's; words
            WATTSHARE_SOCKET=ipc://$cluster/n1/sock sh -c '
                "$0" step begin --job "$1" --step 0 --uid 0 --pid $$ --gpus 0 --clocks "$2" >/dev/null && shift 2 && "$0" run -- "$@"' \
                "$build/cli/wattshare" $job $clocks $(command_of $name 2) >/dev/null
            "$build/cli/wattshare" step collect --socket "ipc://$cluster/n1/sock" --job $job --step 0 |
                tr -d '(,' | awk -v n=$name -v c=$clocks -v s="$scale" '{ gsub(/:/, " ", c); print n, c, $6 * s / 2e3, ($1 - $3) * s / 2 }' |
                sed 's/  */ /g'
        done
    done
    cluster_status n1 | tr -d ' \n' | grep -o '"power_mw":[0-9]*' | head -n 1 | tr -dc '0-9' | awk '{ print "idle", $1 / 1e3 }'
}

of() { awk "BEGIN { printf \"%.6f\\n\", $* }"; } # of EXPRESSION
now() { of "$(date +%s.%N) - $begin"; }
all_off() { [ "$(sinfo -h -N -o %T | grep -c 'idle~')" = "$n_nodes" ] && [ "$(grep -c ^off "$cluster/power")" -ge "$n_off" ]; }
submit() { # submit NUMBER NAME LAUNCHES LENGTH DEADLINE
    set -- "$@" "$(of "$5 - $(now)")"
    case $way in
    backfill) options="--gres=gpu:1 --time=5" ;;
    *) options="--watt-length=$4 --watt-finish=$6" ;;
    esac
    # shellcheck disable=SC2086 # words
    sbatch -Q -D / -o "$cluster/end/$1.out" --wattshare="$2" $options \
        --wrap "$(command_of "$2" "$3") && date +%s.%N >$cluster/end/$1 && echo \$SLURMD_NODENAME \$SLURM_JOB_GPUS >>$cluster/end/gpus" \
        >/dev/null 2>>"$cluster/log/refused" || true
}

day() {
    way=$1 nodes=$2 break_even=$3 folder=$4 n_off=$2
    [ "$way" = backfill ] || cluster_plans <"$folder/planner.conf"
    cluster_power_saving "$break_even"
    cluster_more="${cluster_more:-}
SlurmctldParameters=power_save_interval=1"
    start "$nodes" >&2
    mkdir "$cluster/end"
    cluster_wait 900 "all nodes to be off" all_off
    : >"$cluster/power"
    begin=$(date +%s.%N) i=0
    while read -r arrival name launches length deadline; do
        i=$((i + 1))
        early=$(of "$arrival - $(now)")
        case $early in -*) ;; *) sleep "$early" ;; esac
        submit $i "$name" "$launches" "$length" "$deadline"
    done <"$folder/tasks"
    cluster_wait 6000 "the jobs" sh -c '[ -z "$(squeue -h)" ]'
    n_off=$(grep -c ^on "$cluster/power")
    cluster_wait 900 "all nodes to be off" all_off
    i=0 missed=0
    while read -r arrival name launches length deadline; do
        i=$((i + 1))
        end=$(cat "$cluster/end/$i" 2>/dev/null || echo "$begin + 1000000")
        late=$(of "$end - $begin - $deadline")
        case $late in -*) ;; *) missed=$((missed + 1)) && echo "slurm-edl: $way: task $i ($name) was late by $late s" >&2 ;; esac
    done <"$folder/tasks"
    pairs=$(sort -u "$cluster/end/gpus" | wc -l)
    ! [ -s "$cluster/log/refused" ] || sort "$cluster/log/refused" | uniq -c >&2
    SLURM_TIME_FORMAT=%s squeue -h -t all -O StartTime:16,NodeList:64 | sort -n >"$cluster/starts"
    on_s=$(awk 'NR == FNR { t[NR] = $1; node[NR] = $2; n = NR; next }
        /^on/ { for (i = 1; i <= n && (node[i] != $2 || t[i] < $3); i++); if (i <= n) { s += t[i] - $3; k++ } }
        END { print s / (k ? k : 1) }' "$cluster/starts" "$cluster/power")
    awk -v s="$scale" -v on="$(grep -c ^on "$cluster/power")" -v p="$pairs" -v m=$missed -v b="$on_s" \
        '/^off/ { e += $3; i += $4 } END { printf "%.3f %.3f %d %d %d %.2f\n", e * s / 1e6, i * s / 1e6, on, p, m, b }' "$cluster/power"
}

shift 2
case $what in
profile) profile ;;
day) day "$@" ;;
*) echo "slurm-edl: $what: expected profile or day" >&2; exit 2 ;;
esac
