#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures what each rewriting of kernels costs: the dynamic instructions of each kernel of
# tests/cuda, rewritten (but not cut and preempted), over those of the original, kernel by kernel. A
# pass adds a constant number of instructions to each thread, so its cost depends on how long
# threads are, and most kernels of the tests are tiny. Therefore it prints geometric means of all
# kernels and of those with at least 100 and 1000 instructions in each thread, and, as the median,
# how many instructions are added to a thread. Counts are of threads and of warps: what one thread
# of a block does for all counts once in the former and for its whole warp in the latter.
#
# persistent: one block for each SM of a small GPU. fuse: as one of three members, of which the
# others have no work.
#
# Usage, in a build tree: bench/passes.sh (make bench-passes)
. "${srcdir:-$(dirname "$0")/..}/tests/process/lib.sh"
clients=$(drv_clients)
! have_nvcc || clients="$clients $(nvcc_clients | tr ' ' '\n' | grep -v '^shared/' | tr '\n' ' ')"
kernels=${WS_PASSES_OUT:-$tmp} # a folder of one's own keeps the counts of each kernel
count() { # count KIND: "program|kernel insns warp_insns threads" of all launches
    echo "rewrite = $1" >"$tmp/wattshared.conf"
    : >"$tmp/daemon.log"
    WS_DEBUG=launch start_daemon --config "$tmp/wattshared.conf" --gpus $gpus --log-level debug
    # shellcheck disable=SC2086
    alone $clients >/dev/null
    stop_daemon
    # By program too: kernels of one name are different ones in different programs.
    awk '/client: hello/ { for (i = 1; i <= NF; i++) { if ($i ~ /^client=/) c = $i; if ($i ~ /^task=/) t[c] = $i } }
         / launch: client=/ { for (i = 1; i <= NF; i++) { split($i, w, "="); v[w[1]] = w[2] }
             k = t["client=" v["client"]] "|" v["kernel"]; a[k] += v["insns"]; b[k] += v["warp_insns"]; n[k] += v["threads"] }
         END { for (k in a) printf "%s %.0f %.0f %.0f\n", k, a[k], b[k], n[k] }' "$tmp/daemon.log" | sort >"$kernels/$1"
    sed -n 's/.*rewrite: kernel=\([^ ]*\) stays.*/\1/p' "$tmp/daemon.log" | sort -u >"$kernels/$1.refused"
}
# What differs from GPU to GPU, since it waits for others in loops or goes by the number of SMs,
# can't be compared.
gpus=rtx3070,t400
count none
gpus=t400,rtx3070
mv "$kernels/none" "$kernels/none.first"
count none
join "$kernels/none.first" "$kernels/none" | awk '$2 == $5 && $3 == $6 { print $1, $2, $3, $4 }' >"$kernels/same"
mv "$kernels/same" "$kernels/none"
echo "$(wc -l <"$kernels/none") kernels of $(echo "$clients" | wc -w) programs; load $(cut -d' ' -f1 /proc/loadavg)"
echo "pass                    kernels     all   >=100  >=1000   added  | warps: all   >=100  >=1000  | worst of >=100"
for kind in slice-whole ticket-whole persistent-whole fence fence-ticket-whole fuse fuse-same-block; do
    count $kind
    join "$kernels/none" "$kernels/$kind" | awk -v refused="$kernels/$kind.refused" '{
            split($1, w, "|"); r = $5 / $2; q = $6 / $3; size = $2 / $4
            if ($2 > 0 && !(w[2] in no)) printf "%.6f %.6f %.3f %.3f %s\n", r, q, size, ($5 - $2) / $4, $1 }
        BEGIN { while ((getline line < refused) > 0) no[line] = 1 }' | sort -g -k4 | awk -v kind=$kind '
        { n++; added[n] = $4; s[1] += log($1); t[1] += log($2)
          if ($3 >= 100) { m++; s[2] += log($1); t[2] += log($2); if ($1 > worst) { worst = $1; name = $5 } }
          if ($3 >= 1000) { l++; s[3] += log($1); t[3] += log($2) } }
        END { m += !m; l += !l
              printf "%-20s %4d/%d/%d  %.3f   %.3f   %.3f  %5.1f   |      %.3f   %.3f   %.3f   | %.2f %s\n", kind, n, m, l, exp(s[1] / n), exp(s[2] / m),
              exp(s[3] / l), added[int((n + 1) / 2)], exp(t[1] / n), exp(t[2] / m), exp(t[3] / l), worst, name }'
    n_checks=1
done
