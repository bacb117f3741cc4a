#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Kills 200 clients at random moments while two steady clients compute and check. The killed ones
# compute, wait, or use memory that one of them had exported and another had imported; sometimes the
# exporter is killed, sometimes the importer. It fails if a steady client's result is wrong or if
# the daemon still holds anything of a killed client. A daemon built with AddressSanitizer reports
# leaks at its end, which fails the test too.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
kills=${KILLS:-200}
start_daemon --gpus rtx3070,t400
steady() { # until the file is gone: each round is a whole program
    n=0
    while [ -e "$tmp/go" ]; do
        client "$(client_path "$1")" "$(small "$1")" 3 >"$tmp/steady.$2" 2>&1 || { cp "$tmp/steady.$2" "$tmp/wrong.$2"; return; }
        n=$((n + 1))
    done
    echo $n >"$tmp/rounds.$2"
}
: >"$tmp/go"
steady drv/matmul 1 &
s1=$!
steady drv/stencil 2 &
s2=$!
# awk's rand is seeded: the same moments each time, as far as the machine allows
awk -v n="$kills" 'BEGIN { srand(7); for (i = 0; i < n; i++) printf "%d %.3f\n", int(rand() * 1000), 0.001 + 0.12 * rand() * rand() }' >"$tmp/plan"
set -- $(looping_clients)
if have_nvcc; then # these more often
    for i in 1 2 3; do set -- "$@" static/waiting shared/waiting static/sharing shared/sharing; done
fi
n_clients=$#
killed=0
finished=0
while read -r which after; do
    i=$((which % n_clients + 1))
    eval "c=\${$i}"
    # the program itself, without timeout and wattshare around it: the kill must hit it
    LD_PRELOAD="${asan:+$asan:}$build/frontend/libwattshare.so" ASAN_OPTIONS=detect_leaks=0 \
        "$(client_path "$c")" "$(small "$c")" 100000 >"$tmp/victim" 2>&1 &
    p=$!
    sleep "$after"
    if kill -KILL $p 2>/dev/null; then killed=$((killed + 1)); else finished=$((finished + 1)); cat "$tmp/victim"; fi
    wait $p 2>/dev/null || true
    [ ! -e "$tmp/wrong.1" ] && [ ! -e "$tmp/wrong.2" ] || break
done <"$tmp/plan"
rm "$tmp/go"
wait $s1 || true
wait $s2 || true
for i in 1 2; do
    [ ! -e "$tmp/wrong.$i" ] || { cat "$tmp/wrong.$i"; fail "a steady client went wrong after $killed kills"; }
    [ "$(cat "$tmp/rounds.$i")" -ge 1 ] || fail "steady client $i did not finish a round"
done
[ "$killed" = "$kills" ] || fail "$killed of $kills clients were killed; $finished had ended before"
wait_empty
ok "${POLICY:-} $killed kills; the steady clients ran $(cat "$tmp/rounds.1") and $(cat "$tmp/rounds.2") times"
