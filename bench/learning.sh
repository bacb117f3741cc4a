#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures how well the daemon predicts the times of launches. The programs of tests/cuda run on
# more and more SMs of one GPU, and every launch is compared with what would have been predicted for
# it. For each basis (backend/learn/learn.h) the relative error |predicted - measured| /
# measured is printed.
#
# Usage, in a build tree: bench/learning.sh [SMS] (make bench-learning)
. "${srcdir:-$(dirname "$0")/..}/tests/process/lib.sh"
clients=$(drv_clients)
! have_nvcc || clients="$clients $(nvcc_clients | tr ' ' '\n' | grep '^static/' | tr '\n' ' ')"
# Times of threads that wait for one another's locks say nothing.
clients=$(echo "$clients" | tr ' ' '\n' | grep -v '/locks$' | tr '\n' ' ')
client_timeout=30
sms=${1:-1 2 4 8 16 32 46}
WS_DEBUG=learn start_daemon --gpus rtx3070 --log-level debug
n=0
for c in $clients; do
    [ -x "$(client_path "$c")" ] || continue
    n=$((n + 1))
    for k in $sms; do
        # shellcheck disable=SC2046
        WATTSHARE_SMS=$k client "$(client_path "$c")" $(small "$c") >"$tmp/out" 2>&1 || echo "$c on $k SMs: status $?" >&2
    done
done
stop_daemon
echo "$n programs on $sms SMs"
sed -n 's/.*learn: kernel=\([^ ]*\) blocks=[0-9]* sms=\([0-9]*\) basis=\([a-z]*\) predicted_ms=\([^ ]*\) ms=\([^ ]*\) .*/\3 \1 \2 \4 \5/p' "$tmp/daemon.log" |
    awk '{e = ($4 - $5) / $5; print $1, (e < 0 ? -e : e), e, $2, $3}' | sort -k1,1 -k2,2g |
    awk 'function out() { if (n) printf "%-9s %8d launches  mean %9.2f %%  median %7.2f %%  p90 %9.2f %%  bias %+8.2f %%  worst %s on %s SMs\n", b, n, 100 * s / n,
             100 * v[int((n + 1) / 2)], 100 * v[int((9 * n + 9) / 10)], 100 * t / n, name, sm }
         $1 != b {out(); b = $1; n = s = t = 0} {v[++n] = $2; s += $2; t += $3; name = $4; sm = $5} END {out()}'
n_checks=1
