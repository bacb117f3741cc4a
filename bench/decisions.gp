# SPDX-License-Identifier: Apache-2.0
# bench/bench_policy decisions.csv && gnuplot bench/decisions.gp: decisions.svg, 8 GPUs
set terminal svg size 900,560
set output 'decisions.svg'
set datafile separator ','
set logscale xy
set grid
set key left top
set xlabel 'tasks'
set ylabel 'one decision of sbeet-mg on 8 GPUs, µs'
plot 'decisions.csv' using ($1==8?$2:1/0):3 with linespoints title 'mean over random states', \
     '' using ($1==8?$2:1/0):6 with linespoints title 'worst: own GPU full, all others tried', \
     '' using ($1==8?$2:1/0):7 with lines dashtype 2 title 'n log n through 100 tasks', \
     20 with lines dashtype 3 title '20 µs'
