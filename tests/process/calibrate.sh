#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare fit --gpu` and `--check`, and the experiments that need measurements. It fails if
# a power that is made by a formula is not found again, if bad rows are not reported by file and
# line, or if what is written into an entry is not what a check then uses. Where the measurements of
# real GPUs are at hand, it holds the fits at what doc/models.md says of them.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
verb=fit

# 20 kernels on the RTX 8000 at three clocks: 60 W static, 80 W for all SMs at 1770 MHz, 2 nJ for 32
# bytes of 672 GB/s, the voltage always the same.
awk 'BEGIN {
    print "gpu,app,core_mhz,mem_mhz,time_s,power_w,sm_active,fp32_active,fp64_active,dram_active"
    for (i = 0; i < 20; i++)
        for (f = 900; f <= 1770; f += 290) {
            active = (i * 7 % 20 + 1) / 20
            dram = (i * 3 % 11) / 11
            power = 60 + 80 * active * f / 1770 + dram * 2e-9 * 672e9 / 32
            printf "RTX8000,app%d,%d,7001,0.01,%.6f,%g,0,0,%.6f\n", i, f, power, active, dram
        }
}' >"$tmp/in.csv"
printf 'app,family\napp0,both\napp1,both\n' >"$tmp/families.csv"
cp "$src/conf/gpu.d/rtx8000.conf" "$tmp/rtx8000.conf"
run 0 'power, family left out  *80  *[0-2]\.[0-9]' --gpu rtx8000 --families "$tmp/families.csv" --entry "$tmp/rtx8000.conf" --source 'a formula' "$tmp/in.csv"
for text in 'app0  *both ' 'app2  *app2 ' 'DRAM  *\(1\.[5-9]\|2\)[.0-9]*  *nJ'; do
    grep -q -e "$text" "$tmp/out" || { cat "$tmp/out"; fail "no '$text'"; }
done
grep -q '^    calibrated = "power .* %, 20 applications, family left out; a formula"$' "$tmp/rtx8000.conf" || fail "the entry does not say what it was calibrated with"
grep -q '^    sms = 72$' "$tmp/rtx8000.conf" || fail "the entry lost a key"
"$wattshared" --check --catalog "$tmp/rtx8000.conf" --gpus rtx8000 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "the daemon does not take the entry"; }
ok "the entry is written and is read again"
run 0 'rtx8000, Quadro RTX 8000: power' --check "$tmp/in.csv"
run 0 '^power  *80 ' --check --gpu rtx8000 "$tmp/in.csv"
run 1 'rtx2070s is uncalibrated' --check --gpu rtx2070s "$tmp/in.csv"
run 1 'no GPU none in the catalog' --check --gpu none "$tmp/in.csv"
run 1 'has no section gpu rtx8000' --gpu rtx8000 --entry "$src/conf/gpu.d/t400.conf" "$tmp/in.csv"
{
    cat "$tmp/in.csv"
    echo 'RTX8000,app3,1770,7001,0.01,much,1,0,0,0'
} >"$tmp/bad.csv"
run 1 "bad.csv:82: power_w: \"much\" is not a number" --check "$tmp/bad.csv"
grep -q '^power  *80 ' "$tmp/out" || fail "the good rows were not used"
cut -d, -f1-6 "$tmp/in.csv" >"$tmp/none.csv"
run 1 'none.csv:1: no counters' --check "$tmp/none.csv"
run 1 '--gpu is missing' --check "$tmp/families.csv"
head -n 1 "$tmp/in.csv" >"$tmp/head.csv"
run 1 'head.csv: no launches of rtx8000 with events to predict' --check --gpu rtx8000 "$tmp/head.csv"

# An entry has one idle power: what single kernels add is added to what nothing running takes.
for conf in "$src"/conf/gpu.d/*.conf; do
    awk '$1 == "static_mw" { is = $3 }
        $1 == "power_static_mw" || $1 == "power_memory_clock_mw" || $1 == "power_clock_mw" { sum += $3; fitted = 1 }
        END { exit fitted && (is - sum > 2 || sum - is > 2) }' "$conf" || fail "$conf: static_mw is not the sum of the fitted powers while nothing runs"
done
ok "entries have one idle power"

# What strangers do: another spelling of the GPU, the mark that spreadsheets put first, another
# GPU's file, too few applications, times that are not in seconds.
run 0 'rtx8000, Quadro RTX 8000: power' --check --gpu 'Quadro RTX 8000' "$tmp/in.csv"
(printf '\357\273\277' && cat "$tmp/in.csv") >"$tmp/bom.csv"
run 0 '^power  *80 ' --check "$tmp/bom.csv"
run 1 'warning: RTX8000 was measured, but --gpu says v100' --check --gpu v100 "$tmp/in.csv"
sed 's/RTX8000/NVIDIA Quadro RTX 8000 48GB/' "$tmp/in.csv" >"$tmp/long.csv"
run 0 'rtx8000, Quadro RTX 8000: power' --check "$tmp/long.csv"
# Rows of several GPUs in one file: those of the GPU that is asked for.
awk 'NR == 1 { print; next } { print; sub(/^RTX8000/, "GTX1080Ti"); print }' "$tmp/in.csv" >"$tmp/both.csv"
run 0 '^power  *80 ' --check --gpu rtx8000 "$tmp/both.csv"
run 0 '80 launches of other GPUs than GTX1080Ti are left out' --check --gpu gtx1080ti "$tmp/both.csv"
grep -e '^gpu' -e ',app[012],' "$tmp/in.csv" >"$tmp/few.csv"
run 1 'measurements of 3 families of applications are too few' --gpu rtx8000 "$tmp/few.csv"
columns=app,time_s,power_w,inst_executed,inst_integer,inst_fp_32,inst_fp_64,flop_count_sp_special,shared_load_transactions,shared_store_transactions,shared_load_transactions_per_request,gld_transactions,gld_transactions_per_request,gst_transactions,l2_read_transactions,l2_write_transactions,dram_read_transactions,dram_write_transactions,grid_blocks,sm_efficiency,achieved_occupancy
printf '%s\na,0.8,100,1e6,1e7,1e7,0,0,0,0,1,1e5,4,1e5,1e5,1e5,1e5,1e5,4000,0.9,0.5\n' $columns >"$tmp/ms.csv"
run 0 'is the time in the unit that its column says, and of one launch' --check --gpu v100 "$tmp/ms.csv"

# The tutorial's table, commands and message are what it says.
page="$src/doc/tutorial-fit.md"
sed -n '/^```csv$/,/^```$/{/^```/!p}' "$page" >"$tmp/mine.csv"
[ "$(wc -l <"$tmp/mine.csv")" -ge 3 ] || fail "the tutorial has no table"
grep -q '^    wattshare fit --check --gpu v100 /tmp/mine.csv$' "$page" || fail "the tutorial has another command"
run 0 '^matmul  *matmul  *1 ' --check --gpu v100 "$tmp/mine.csv"
sed -i '1s/time_ms/time/' "$tmp/mine.csv"
run 1 "mine.csv:1: $(sed -n 's/^    wattshare: .*mine\.csv:1: //p' "$page")" --check --gpu v100 "$tmp/mine.csv"

verb=experiment
for name in truth-fit truth-choice truth-curves; do
    run 1 "$name: --data must name" --out "$tmp/experiments" --no-plot $name
done
run 1 'nowhere/split.csv' --out "$tmp/experiments" --no-plot --data /nowhere truth-choice
verb=fit

# The errors of the fits are figures that sanitizers don't change; the code that computes them has
# run.
[ -z "$asan" ] || { echo "SKIP (in part): make check without sanitizers compares with the measurements"; exit 0; }
measured=${WATTSHARE_MEASURED:-$src/../shared/measured}
[ -d "$measured" ] || { echo "SKIP (in part): no measurements of real GPUs in $measured"; exit 0; }
# below GPU QUANTITY MEAN WORST-APPLICATION FILE: with the entry that ships (fitted to them)
below() {
    run 0 "^$2 " --check --gpu "$1" "$measured/$5"
    awk -v q="$2" -v mean="$3" -v worst="$4" '$1 == q { found = 1; if ($3 > mean || $6 > worst) bad = 1 } END { exit bad || !found }' "$tmp/out" ||
        { cat "$tmp/out"; fail "$1: $2 is off by more than $3 % on average or $4 % for an application"; }
}
for gpu in v100 p100 gtx980 gtx1080ti; do
    below $gpu power 10 35 nvdvfs-nvprof/$gpu.csv
    below $gpu time 13 50 nvdvfs-nvprof/$gpu.csv
    below $gpu energy 13 55 nvdvfs-nvprof/$gpu.csv
done
below rtx8000 power 10 35 nvdvfs-dcgm/rtx8000-real.csv
below gv100 power 10 35 accelwattch/quadrogv100.csv

# What doc/models.md says of choices and of curves.
verb=experiment
run 0 '^all choices: mean regret (%).*reproduces' --out "$tmp/experiments" --no-plot --data "$measured" truth-choice
awk '/ GPU: mean regret/ { n += /reproduces/ ? 1 : 99 } END { exit n != 3 }' "$tmp/out" || { cat "$tmp/out"; fail "the model does not choose the GPU"; }
for text in 'judged by a second measurement: mean regret' 'judged by a second measurement: worst regret'; do
    grep -q "^V100: clocks $text.*reproduces" "$tmp/out" || { cat "$tmp/out"; fail "the model does not choose the V100's clocks"; }
done
for gpu in V100 P100 'GTX 980' 'GTX 1080 Ti'; do
    grep -q "^$gpu: clocks: mean regret.*reproduces" "$tmp/out" || { cat "$tmp/out"; fail "the model does not choose the $gpu's clocks"; }
done
awk -F, 'NR > 1 && $6 > 20 && $7 < $6 { print; bad = 1 } END { exit bad || NR < 200 }' "$tmp/experiments/truth-choice.csv" || fail "the constant chooses better"
run 0 '10 of 10 reproduce' --out "$tmp/experiments" --no-plot --data "$measured" truth-curves
