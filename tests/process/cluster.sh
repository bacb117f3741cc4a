#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare cluster`, `optimum`, `fit` and `gen`. It fails if bad input is not reported by
# file, line and field, if the rest of the input is not processed, or if the exit status does not
# say that something was wrong.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
run() { # run WANTED-STATUS PATTERN ARGUMENTS…: standard input is $tmp/in; the pattern must be in the output
    want=$1 pattern=$2
    shift 2
    r=0
    timeout -k 5 300 "$wattshare" "$@" <"$tmp/in" >"$tmp/out" 2>"$tmp/err" || r=$?
    [ $r = "$want" ] || { cat "$tmp/out" "$tmp/err"; fail "wattshare $*: status $r, not $want"; }
    cat "$tmp/out" "$tmp/err" >"$tmp/both"
    grep -q -e "$pattern" "$tmp/both" || { cat "$tmp/both"; fail "wattshare $*: no '$pattern'"; }
    ok "wattshare $* ($pattern)"
}
has() { grep -q -e "$1" "$tmp/both" || { cat "$tmp/both"; fail "no '$1'"; }; }
task() { # task ID A D: a task of 30 at the default clocks
    printf '{"id":%s,"a":%s,"d":%s,"P0":100,"gamma":50,"c":150,"D":25,"delta":0.5,"t0":5}\n' "$@"
}

# cluster
{ task 1 0 60; task 2 0 100; task 3 5 90; } >"$tmp/good"
cp "$tmp/good" "$tmp/in"
run 0 'edl *yes *1 *1 ' cluster --policy edl
run 0 '"deadline_misses": 0' cluster --policy wattshare-servers,edl,edf-bf,edf-wf,lpt-ff,bin-packing --dvfs yes,no --l 1,2 --theta 1,0.9 --json
[ "$(wc -l <"$tmp/out")" = 26 ] || fail "26 runs are wanted: 6 policies, 2 settings, 2 sizes, 2 thetas of edl with DVFS"
run 0 '^ *3 ' cluster --policy edl --schedule
run 0 edl cluster --policy edl --trace "$tmp/trace"
python3 -c 'import json, sys; t = json.load(open(sys.argv[1]))["traceEvents"]; assert sum(e["ph"] == "X" for e in t) == 3' "$tmp/trace" || fail "the trace is no JSON with 3 tasks"
{
    echo '{"id":1,'
    cat "$tmp/good"
    echo
    task 4 -1 50
    task 5 0 3
    echo '{"id":6,"d":50,"P0":-100,"gamma":50,"c":150,"D":25,"delta":1.5}'
    echo '[1,2]'
    task 7 9 8
} >"$tmp/in"
run 1 'standard input:1: column' cluster --policy edl
has 'standard input:6: a: -1'
has 'standard input:7: d: 3 leaves 3'
has 'standard input:8: P0: -100'
has 'standard input:8: delta: 1.5'
has 'standard input:8: t0: missing'
has 'standard input:9: '
has 'standard input:10: d: 8 is not after'
has '^edl '
run 1 '"tasks": 3' cluster --policy edl --json
run 1 'No such file' cluster --policy edl "$tmp/good" "$tmp/none"
has '^edl '
: >"$tmp/in"
run 1 'no tasks' cluster --policy edl
task 1 0 60 >"$tmp/in"
run 2 '--policy is missing' cluster
run 2 'edl, edf-bf' cluster --policy fifo
run 2 '--theta 2' cluster --policy edl --theta 2
run 2 '--l 1.5' cluster --policy edl --l 1.5
run 2 'yes, no or yes,no' cluster --policy edl --dvfs maybe
run 2 'FC_MIN: 1.2 is above g1' cluster --policy edl --interval 0.5:1.2,1.2,0.5:1.2
run 2 'V_MIN' cluster --policy edl --interval 0.3:1.2,0.5,0.5:1.2
run 2 'grouped or whole' cluster --policy edl --servers half
run 2 'a single run' cluster --policy edl --l 1,2 --schedule
{ task 1 0 40; task 2 0 40; task 3 0 40; } >"$tmp/in"
run 0 '2 tasks found no pair' cluster --policy edl --pairs 1 --l 1
has '"deadline_misses": 2\| 2$'

# optimum
{ task 1 0 60; task 2 0 6; echo '{"P0":1}'; task 3 0 40; } >"$tmp/in"
run 1 'standard input:2: d: 6 is too short' optimum
has 'standard input:3: gamma: missing'
has '^ *3 .*40 '
run 1 '"feasible": false' optimum --json
task 1 0 60 >"$tmp/in"
run 0 '"E": 6499.05' optimum --json
run 2 'V_MAX' optimum --interval 1:9,0.5,0.5:1.2
run 2 'wide, narrow' optimum --interval wider
printf '{"interval":"1:0.9,0.5,1:1","P0":1,"gamma":1,"c":1,"D":1,"delta":0,"t0":1}\n' >"$tmp/in"
run 1 'standard input:1: interval: V_MIN: 1 is above' optimum

# fit: P = 100 + 50 fm + 150 V² fc, t = 5 + 25 (0.5/fc + 0.5/fm)
awk 'BEGIN { print "app,fc,fm,time,power"; for (c = 0.9; c < 1.11; c += 0.1) for (m = 0.8; m < 1.11; m += 0.1) {
    v = 0.5 + 2 * (c - 0.5) * (c - 0.5); printf "x,%.3f,%.3f,%.9f,%.9f\n", c, m, 5 + 12.5 / c + 12.5 / m, 100 + 50 * m + 150 * v * v * c } }' >"$tmp/samples"
cp "$tmp/samples" "$tmp/in"
run 0 ' x .*100.0000 .*50.0000 *150.0000 *5.0000 *25.0000 *0.5000' fit
run 0 '"P_star": 300' fit --json
{ cat "$tmp/samples"; echo 'x,1,1,-3,100'; echo 'x,1,1'; echo 'x,one,1,3,100'; } >"$tmp/in"
run 1 'standard input:14: time: -3' fit
has 'standard input:15: 3 cells'
has 'standard input:16: fc: "one" is not a number'
has '100.0000'
head -n 3 "$tmp/samples" >"$tmp/in"
run 1 'x: 2 samples; expected at least 3' fit
grep -e app -e '^x,0.900,' "$tmp/samples" >"$tmp/in"
run 1 'core clock 0.9' fit
echo 'a,b' >"$tmp/in"
run 1 'column fc' fit
: >"$tmp/in"
run 1 'names of the columns' fit
run 2 'nnls, nnls_rel' fit --method best

# gen
run 0 '"P_star"' gen --paper edl --base 4 --online
"$wattshare" gen --paper edl --base 4 --seed 7 >"$tmp/a"
"$wattshare" gen --seed=7 --paper=edl --base 4 >"$tmp/b"
cmp -s "$tmp/a" "$tmp/b" || fail "the same seed gives the same set"
run 2 'no such generator' gen --paper nobody
run 2 '--paper is missing' gen
run 2 '--seed -1' gen --paper edl --seed -1
run 2 '0 ≤ LOW' gen --paper edl --u-dist 2:3
echo "$n_checks checks"
