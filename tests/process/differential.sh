#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs once more, and after each launch a digest of all device memory of its client: the same, bit for bit, whether the kernel
# ran as it is or rewritten. What differs between two runs as it is (clocks, order of atomics, several streams) shows nothing and is
# left out, and counted. One worker, so that it is little. Where the order of blocks or processes shows, programs are named in $order; they
# check their own results.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
not_in_distcheck
[ -z "$asan" ] || skip "with sanitizers rewritten.sh runs the same kernels; what memory holds after them is looked at without"
# ipcshare, sharing: memory that several processes write at once. deviceheap, objects: pointers to what blocks have allocated.
# multiprocessors: on which SMs blocks were. waiting: the host writes while kernels run.
order='^task=static/(ipcshare|sharing|deviceheap|objects|multiprocessors|waiting) '
clients=$(drv_clients)
! have_nvcc || clients="$clients $(nvcc_clients | tr ' ' '\n' | grep -vE '^shared/|/fillgpu$' | tr '\n' ' ')"
least=5
! have_nvcc || least=100
digests() { # digests KIND FILE CLIENTS…: "program|number|kernel digest" of each launch
    kind_=$1 file_=$2; shift 2
    { echo "rewrite = $kind_"; echo "workers = 1"; } >"$tmp/wattshared.conf"
    : >"$tmp/daemon.log"
    WS_DEBUG=launch,launch.memory start_daemon --config "$tmp/wattshared.conf" --gpus rtx3070,t400 --log-level debug
    alone "$@" >/dev/null
    wait_empty
    stop_daemon || fail "the daemon, rewriting as $kind_"
    # Of the first client of each program: some have several processes.
    awk '/client: hello/ { for (i = 1; i <= NF; i++) { if ($i ~ /^client=/) c = $i; if ($i ~ /^task=/) t[c] = $i }
             if (!(t[c] in first)) first[t[c]] = c }
         / launch: client=/ { for (i = 1; i <= NF; i++) { split($i, w, "="); v[w[1]] = w[2] }
             c = "client=" v["client"]; k = t[c]
             if (first[k] == c) printf "%s|%d|%s %s\n", k, n[k]++, v["kernel"], v["memory"] }' "$tmp/daemon.log" | sort >"$file_"
}
# shellcheck disable=SC2086
digests none "$tmp/first" $clients
# shellcheck disable=SC2086
digests none "$tmp/second" $clients
join "$tmp/first" "$tmp/second" | awk '$2 == $3 && $2 != "-" { print $1, $2 }' >"$tmp/same"
n=$(wc -l <"$tmp/same")
echo "$n of $(wc -l <"$tmp/first") launches leave the same memory each time"
[ "$n" -ge $least ] || fail "too few to compare"
# compare FILE: the launches of FILE that differ, by the first of each program: a digest is of all memory, so that what follows differs too.
compare() {
    join "$tmp/same" "$1" | awk '$3 != "-"' >"$tmp/both"
    awk '$2 != $3' "$tmp/both" | sort -t'|' -k1,1 -k2,2n | awk -F'[| ]' '!($1 in seen) { seen[$1] = 1; print $1, $3 }'
}
for kind in slice ticket persistent fence fence-ticket fence-persistent fuse fuse-same-block; do
    # shellcheck disable=SC2086
    digests $kind "$tmp/rewritten" $clients
    compare "$tmp/rewritten" >"$tmp/differ"
    compared=$(wc -l <"$tmp/both")
    echo "$kind: $compared launches compared, $(awk '$2 != $3' "$tmp/both" | wc -l) differ"
    [ "$compared" -ge $least ] || fail "$kind: too few to compare"
    grep -vE "$order" "$tmp/differ" >"$tmp/wrong" || true
    # What the program's host part does while a kernel runs shows too, if it comes earlier or later: only what differs each time is wrong.
    while read -r task kernel; do
        c=${task#task=} often=0
        for _ in 1 2 3; do
            digests $kind "$tmp/again" "$c"
            compare "$tmp/again" | grep -qF "$task $kernel" && often=$((often + 1))
        done
        echo "$kind: $task $kernel: differs, and in $often of 3 more runs"
        [ $often -lt 3 ] || fail "$kind: memory differs after $kernel of $task"
    done <"$tmp/wrong"
    ok "$kind"
done
