#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What each rewriting of kernels costs: thread instructions of each kernel of tests/cuda, rewritten (cut, stopped and gone on with as
# in tests/process/rewritten.sh), over those of the original, kernel by kernel; the geometric mean, and the worst ones.
# Run in a build tree: bench/passes.sh (make bench-passes).
. "${srcdir:-$(dirname "$0")/..}/tests/process/lib.sh"
clients=$(drv_clients)
! have_nvcc || clients="$clients $(nvcc_clients | tr ' ' '\n' | grep -v '^shared/' | tr '\n' ' ')"
count() { # count KIND FILE: "kernel instructions" of all launches
    echo "rewrite = $1" >"$tmp/wattshared.conf"
    : >"$tmp/daemon.log"
    WS_DEBUG=launch start_daemon --config "$tmp/wattshared.conf" --gpus rtx3070,t400 --log-level debug
    # shellcheck disable=SC2086
    alone $clients >/dev/null
    stop_daemon
    # By program too: kernels of one name are different ones in different programs.
    awk '/client: hello/ { for (i = 1; i <= NF; i++) { if ($i ~ /^client=/) c = $i; if ($i ~ /^task=/) t[c] = $i } }
         / launch: client=/ { c = k = n = ""; for (i = 1; i <= NF; i++) { if ($i ~ /^client=/) c = $i; if ($i ~ /^kernel=/) k = $i
             if ($i ~ /^insns=/) n = substr($i, 7) } sum[t[c] "|" k] += n }
         END { for (k in sum) printf "%s %.0f\n", k, sum[k] }' "$tmp/daemon.log" | sort >"$2"
    sed -n 's/.*rewrite: kernel=\([^ ]*\) stays.*/\1/p' "$tmp/daemon.log" | sort -u >"$2.refused"
}
count none "$tmp/none"
echo "kernel counts: $(wc -l <"$tmp/none") kernels of $(echo "$clients" | wc -w) programs"
for kind in slice ticket persistent fence fence-ticket; do
    count $kind "$tmp/$kind"
    join "$tmp/none" "$tmp/$kind" | awk -v kind=$kind -v refused="$tmp/$kind.refused" '
        BEGIN { while ((getline line < refused) > 0) no["kernel=" line] = 1 }
        { split($1, w, "|"); if (w[2] in no) { n_no++; next }
          r = $3 / $2; if ($2 > 0) { n++; s += log(r); a += $2; b += $3; if (r > worst) { worst = r; name = $1 } } }
        END { printf "%-13s geometric mean %.3f x, all together %.3f x, worst %.2f x (%s); %d kernels, %d stay as they are\n", kind,
              exp(s / n), b / a, worst, name, n, n_no }'
    n_checks=1
done
