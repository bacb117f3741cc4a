#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests `wattshare profiles`: makes a store from CSV, looks at it, and carries it to another file
# and back. It fails if anything differs afterwards or if a mistake in the input is not reported.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
verb=profiles
s=$tmp/store.db
head="version,hash,gpu,shape,name,threads_per_block,n_blocks,blocks_per_sm,comp_insts,coal_insts,uncoal_insts,uncoal_per_mw,synch_insts,h2d_ms,d2h_ms,in_bytes,out_bytes,dvfs_p0_w,dvfs_gamma_w,dvfs_c_w,dvfs_t0_ms,dvfs_d_ms,dvfs_delta,cpu_ms,cpu_mj,time_error_n,time_error_mean,time_error_m2,power_error_n,power_error_mean,power_error_m2,n_sms,n_runs,time_max_ms,time_mean_ms,time_min_ms,time_m2,n_powers,power_w"
cat >"$tmp/good.csv" <<END
$head
1,abcd1234,rtx3070,,"add, mul",256,48,4,120,8,2,16,2,0.5,0.25,1024,512,,,,,,,,,3,-0.02,0.001,,,,1,10,4.5,4.25,4,0.1,0,0
1,abcd1234,rtx3070,,"add, mul",256,48,4,120,8,2,16,2,0.5,0.25,1024,512,,,,,,,,,3,-0.02,0.001,,,,46,10,0.3,0.2,0.1,0.01,10,61.5
1,ef00,t400,6x1x1/128x1x1,sort,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,
END
run 2 'and a store'
run 2 "expected list, show" frob "$s"
run 2 'and a store' list
run 1 "No such file" list "$s"
run 0 "2 profiles with 2 points taken, 0 bad lines" import "$s" "$tmp/good.csv"
run 0 'abcd1234 *rtx3070 *any *add, mul *2 *20 *0.3 *mc-- *-2.0' list "$s"
run 0 'ef00 *t400 *6x1x1/128x1x1 *sort *0 *0 *- *---- *-' list "$s"
run 0 'time_max_ms": *4.5' list --json "$s"
run 0 '46 *10 *0.3 *0.2 *0.1 *61.5' show "$s" abcd rtx3070
run 1 "no profile of ffff" show "$s" ffff
run 0 "" export "$s" "$tmp/a.csv"
run 0 "" import "$tmp/b.db" "$tmp/a.csv"
run 0 "" export "$tmp/b.db" "$tmp/b.csv"
cmp "$tmp/a.csv" "$tmp/b.csv" || fail "export, import, export is not the same"
ok "round trip"
sed 's/,4.5,4.25,4,/,4.5,much,4,/' "$tmp/good.csv" >"$tmp/bad.csv"
run 1 "bad.csv:2:35: time_mean_ms is 'much'" import "$tmp/c.db" "$tmp/bad.csv"
run 0 "ef00" list "$tmp/c.db"
if grep -q abcd "$tmp/out"; then fail "half a profile was taken"; fi
sed 's/^1,/2,/' "$tmp/good.csv" >"$tmp/newer.csv"
run 1 "newer wattshare" import "$tmp/c.db" "$tmp/newer.csv"
run 1 "a.csv: not a store" list "$tmp/a.csv"
head -c 5000 "$s" >"$tmp/cut.db"
run 1 "damaged" list "$tmp/cut.db"
run 1 "" export "$tmp/cut.db" "$tmp/a.csv"
cmp "$tmp/a.csv" "$tmp/b.csv" || fail "a failed export spoilt the file that was there"
run 1 "nowhere" export "$s" "$tmp/nowhere/a.csv"
run 0 "1 profiles removed" remove "$s" abcd
run 1 "no profile" remove "$s" abcd
run 0 "1 profiles" remove "$s" ef00 t400
run 0 "holds no profiles" list "$s"
[ -z "$(find "$tmp" -name '*.csv.*')" ] || fail "a part of a file was left"
