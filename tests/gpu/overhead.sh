#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures what a program sees of launches and copies when it is proxied, as a ratio to native
# (tests/cuda/drv_rates), with isolation and without.
. "$(dirname "$0")/lib.sh"
size=768 rounds=200
[ -z "$short" ] || { size=16 rounds=3; }
[ -n "$mock" ] || native native tests/cuda/drv_rates $size $rounds || { show native; fail "natively"; }
echo "what,unit,native,isolated,ratio,not isolated,ratio"
for isolation in fence none; do
    serve "isolation = $isolation"
    proxied "$isolation" tests/cuda/drv_rates $size $rounds || { show "$isolation"; fail "proxied, isolation = $isolation"; }
    unserve
done
[ -f "$tmp/native" ] || : >"$tmp/native"
awk -F, 'FILENAME != last { n++; last = FILENAME }
    NF == 3 { name = $1 "," $2; if (!(name in seen)) { seen[name] = 1; order[++k] = name } v[name, FILENAME] = $3 }
    function over(a, b) { return a != "" && b > 0 ? sprintf("%.3f", a / b) : "-" }
    END { for (i = 1; i <= k; i++) { name = order[i]; a = v[name, "'"$tmp"'/native"]; b = v[name, "'"$tmp"'/fence"]; c = v[name, "'"$tmp"'/none"]
        print name "," (a == "" ? "-" : a) "," b "," over(b, a) "," c "," over(c, a) } }' "$tmp/native" "$tmp/fence" "$tmp/none"
