#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures what the plugin adds to a job on a private Slurm cluster of one node: the same srun with
# --wattshare and without it, in turns. "start" is the time from srun to the task's first command,
# "whole" that to srun's end. Ends with status 1 if a job starts more than 30 ms later.
#
# Usage, in the build tree, as root: bench/slurm.sh [PAIRS] (make bench-slurm)
set -eu
build=$PWD
pairs=${1:-41}
. "$srcdir/slurm/cluster/cluster.sh"
cluster_ends
cluster_start 1 4 <<EOF
gpus = {"rtx3070", "t400"}
catalog = {"$(cd "$srcdir" && pwd)/conf/gpu.d"}
learn = "off"
shard_sms = 2
shard_memory_bytes = 16777216
EOF
one() { # one NAME OPTION…: a line with both times, in us
    name=$1
    shift
    a=$(date +%s%N)
    b=$(srun -D / --gres=shard:1 "$@" date +%s%N)
    c=$(date +%s%N)
    echo "$(((b - a) / 1000)) $(((c - a) / 1000))" >>"$cluster/$name"
}
for i in $(seq "$pairs"); do
    one without
    one with --wattshare
done
median() { cut -d' ' -f"$2" "$cluster/$1" | sort -n | sed -n "$(((pairs + 1) / 2))p"; }
for i in 1 2; do
    echo "$(echo start whole | cut -d' ' -f$i): without $(median without $i) us, with --wattshare $(median with $i) us, medians of $pairs"
done
late=$(($(median with 1) - $(median without 1)))
echo "a job under the plugin starts $late us later (30000 allowed)"
[ "$late" -le 30000 ]
