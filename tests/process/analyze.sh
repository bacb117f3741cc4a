#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare analyze` and `wattshare gen`. It fails if the answers' order depends on the
# number of threads, if a bad line is not reported with file, line and field or keeps the other
# lines from being analysed, or if analyze cannot read what gen writes.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
run 2 "method is missing" analyze
run 2 'no "frob"' analyze --method frob
run 0 "tsg_rr_busy_ref .*not a bound" analyze --list
run 1 "No such file" analyze --method gcaps_busy "$tmp/none"
run 2 "expected num_tasks, " gen --paper gcaps --axis frob --x 1
run 2 "go together" gen --paper stgm --axis num_sm
run 2 "out of the range" gen --paper stgm --axis num_sm --x 1.5

# The GCAPS paper's Table 2: task 4 misses, and passes with GPU priorities t1 > t2 > t4 > t3.
cat >"$tmp/table2" <<'END'
{"id":"table 2","ncpu":2,"tasks":[{"T":80,"C":9,"cpu":0,"ges":[[6,2,4],[4,2,2]]},{"T":150,"C":40,"cpu":0,"ges":[]},{"T":190,"C":34,"cpu":1,"ges":[[85,5,80]]},{"T":200,"C":18,"cpu":0,"ges":[[12,2,10]]}]}
END
run 0 '"id":"table 2","results":{"gcaps_busy":{"ok":false,"R":\[26,64,153,-1\]}' analyze --method gcaps_busy "$tmp/table2"
run 0 '"gcaps_busy_gprio":{"ok":true,"R":\[26,64,187,120\],"gprio":\[4,3,1,2\]}' analyze --method gcaps_busy_gprio "$tmp/table2"
run 0 '^ *3 *misses *120' analyze --table --method gcaps_busy,gcaps_busy_gprio "$tmp/table2"

cat >"$tmp/bad" <<'END'
{"tasks":[{"T":-3,"C":1}]}
nonsense
{"tasks":[{"T":10,"C":1},{"T":20,"D":30,"C":1}]}
{"id":4,"tasks":[{"T":10,"C":2}]}
{"nsm":0,"ncpu":1,"tasks":[{"T":1,"C":0}]}
{"tasks":[{"T":1e300,"C":2}]}
{"tasks":[]}
{"tasks":[{"C":2}]}
{"tasks":[{"T":10,"C":2,"prio":1},{"T":10,"C":2,"prio":2}]}
{"tasks":[{"T":10,"C":2,"ges":[[1,2]]}]}
{"tasks":[{"T":10,"C":2,"be":true},{"T":10,"C":2}]}
{"nsm":2,"ncpu":1,"tasks":[{"T":9,"C":1,"segs":[{"mhd":1,"mdh":1,"e":[5,6]}]}]}
{"nsm":2,"ncpu":1,"tasks":[{"T":9,"C":1,"segs":[{"mhd":1,"mdh":1,"e":5,"prof":"frob"}]}]}
{"tasks":[{"T":10,"C":2,"cpu":-1}]}
{"tasks":[{"T":10,"C":2},{"T":100,"C":5,"jitter":3}]}
{"tasks":[{"T":100,"C":5,"ges":[[6,2,40]]}]}
{"tasks":[{"T":100,"C":5,"ces":[50]}]}
{"tasks":[{"T":100,"C":5,"G":5,"ges":[[6,2,4]]}]}
END
for want in '1: tasks\[0\].T: -3 is negative' '2: column 2: not JSON' '3: tasks\[1\].D: a deadline later' '5: nsm: 0 is out of range' \
    '6: tasks\[0\].T: 1e+300 is too large' '7: tasks: empty' '8: tasks\[0\].T: missing' '9: tasks\[1\].prio' '10: tasks\[0\].ges\[0\]' \
    '11: tasks\[1\]: best-effort' '12: tasks\[0\]: a kernel may not take longer' '13: tasks\[0\].segs\[0\].prof: no profile "frob"' \
    '14: tasks\[0\].cpu: -1' '15: tasks\[1\].jitter: the bounds' '16: tasks\[0\].ges\[0\]: its parts are 42 ms' \
    '17: tasks\[0\].ces: its parts are 50 ms' '18: tasks\[0\].ges: its parts are 6 ms'; do
    run 1 "bad:$want" analyze --method gcaps_busy "$tmp/bad"
done
run 1 '"id":4,"results":{"gcaps_busy":{"ok":true,"R":\[3\]}}' analyze --method gcaps_busy "$tmp/bad"
run 1 'stgm_busy needs an STGM set' analyze --method stgm_busy "$tmp/table2"

for paper in gcaps stgm; do
    "$wattshare" gen --paper $paper --seed 5 --count 40 >"$tmp/$paper"
    "$wattshare" gen --paper $paper --seed 5 --count 40 | cmp - "$tmp/$paper" || fail "gen $paper: not the same twice"
    [ "$(wc -l <"$tmp/$paper")" = 40 ] || fail "gen $paper: not 40 sets"
    timeout 300 "$wattshare" analyze --method all --jobs 1 <"$tmp/$paper" >"$tmp/one"
    timeout 300 "$wattshare" analyze --method all --jobs 4 <"$tmp/$paper" >"$tmp/four"
    cmp "$tmp/one" "$tmp/four" || fail "analyze $paper: threads change the answers"
    [ "$(grep -c '"mpcp_busy_safe":{"ok":true' "$tmp/one")" -gt 0 ] || fail "analyze $paper: nothing passes"
    [ "$(grep -c '"mpcp_busy_safe":{"ok":false' "$tmp/one")" -gt 0 ] || fail "analyze $paper: everything passes"
    ok "gen $paper, analyze"
done
"$wattshare" gen --paper gcaps --seed 6 | cmp -s - "$tmp/gcaps" && fail "gen: the seed changes nothing"
ok "seeds differ"

# Task sets of sBEET-mg: the guarantee of policy wattshare. A task that takes its GPU for 60 ms is
# in the way of one with a deadline of 20 ms where there is one slot, and not where there are two.
cat >"$tmp/gpus.json" <<END
{"types": [{"name": "toy", "n_sm": 4, "static_w": 5, "idle_w_per_sm": 0.5}],
 "gpus": [{"type": "toy", "slots": SLOTS}],
 "kernels": [{"gpu": "toy", "name": "short", "wcet_ms": [8, 4, 4, 4], "dyn_w_per_sm": 2},
             {"gpu": "toy", "name": "long", "wcet_ms": [60, 60, 60, 60], "dyn_w_per_sm": 2}]}
END
sed 's/SLOTS/1/' "$tmp/gpus.json" >"$tmp/one.json"
sed 's/SLOTS/2/' "$tmp/gpus.json" >"$tmp/two.json"
cat >"$tmp/toy" <<END
{"id": "toy", "tasks": [{"benchmark": "short", "period_ms": 20, "deadline_ms": 20}, {"benchmark": "long", "period_ms": 200}]}
END
run 0 '"id":"toy","results":{"wattshare_safe":{"ok":false}}' analyze --method wattshare_safe --gpus "$tmp/one.json" "$tmp/toy"
run 0 '"wattshare_safe":{"ok":true,"homes":\[\[0,[1-3]\],\[0,[1-3]\]\],"home":\[[01],[01]\]}' analyze --method all --gpus "$tmp/two.json" "$tmp/toy"
sed 's/"deadline_ms": 20/"deadline_ms": 20, "jitter_ms": 17/' "$tmp/toy" >"$tmp/late" # 3 ms apart, and each takes 4
run 0 '{"ok":false}' analyze --method wattshare_safe --gpus "$tmp/two.json" "$tmp/late"
run 1 "gcaps_busy needs a GCAPS or STGM set" analyze --method gcaps_busy "$tmp/toy"
run 1 "wattshare_safe needs a task set of sBEET-mg" analyze --method wattshare_safe "$tmp/table2"
run 2 "no such\|frob" analyze --method wattshare_safe --gpus frob "$tmp/toy"
run 0 "wattshare_safe *safe *yes" analyze --list
