#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench_truth with models that have not seen the program: for each family of programs, the numbers
# of the GPU are fitted to the measured launches of the other families, and the family's programs
# are run with these. Prints their rows, and the mean and the largest errors for each GPU.
#
# Usage, in a build tree: SRCDIR/bench/truth.sh FOLDER [GPU]   (FOLDER as for bench_truth --data)
set -eu
src=${srcdir:-$(dirname "$0")/..}
data=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for gpu in ${2:-v100 p100 gtx980 gtx1080ti}; do
    rows=$data/nvdvfs-nvprof/$gpu.csv
    awk -F, -v gpu="$gpu" '$1 == "nvdvfs-nvprof" && $2 == gpu { print $4 }' "$data/split.csv" | sort -u |
        while read -r family; do
            apps=$(awk -F, -v f="$family" -v gpu="$gpu" '$1 == "nvdvfs-nvprof" && $2 == gpu && $4 == f { print $3 }' "$data/split.csv")
            known=
            for app in $apps; do
                grep -q "{\"$app\"" "$src/bench/bench_truth.c" && known="$known $app"
            done
            [ -n "$known" ] || continue
            awk -F, -v apps="$apps" 'BEGIN { n = split(apps, v, "[ \n]+"); for (i = 1; i <= n; i++) out[v[i]] = 1 }
                NR == 1 || !($2 in out)' "$rows" >"$tmp/others.csv"
            cp "$src/conf/gpu.d/$gpu.conf" "$tmp/$gpu.conf"
            cli/wattshare fit --gpu "$gpu" --families "$data/split.csv" --entry "$tmp/$gpu.conf" \
                --source "without $family" "$tmp/others.csv" >"$tmp/fit.out" 2>&1 || { cat "$tmp/fit.out"; exit 1; }
            for app in $known; do
                bench/bench_truth --data "$data" --catalog "$tmp/$gpu.conf" "$gpu" "$app" | awk -v app="$app" '$2 == app'
            done
        done | tee "$tmp/rows"
    awk -v gpu="$gpu" '
        function size(x) { return x < 0 ? -x : x }
        { for (k = 0; k < 3; k++) { e = size($(NF - 2 + k)); sum[k] += e; if (e > worst[k]) worst[k] = e } }
        END { printf "%s, family left out: %d programs: mean error time %.1f %%, power %.1f %%, energy %.1f %%; worst %.0f, %.0f, %.0f %%\n",
            gpu, NR, sum[0] / NR, sum[1] / NR, sum[2] / NR, worst[0], worst[1], worst[2] }' "$tmp/rows"
done
