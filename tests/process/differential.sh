#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the programs again and takes a digest of all device memory of a client after each launch. It
# fails if the digest after a rewritten kernel differs in a bit from the one after the original
# kernel. Launches whose digest differs between two runs of the original (clocks, order of atomics,
# several streams) prove nothing; they are left out and counted. With one worker there are few of
# them.
#
# At the end an error of one bit is planted in a constant of a kernel, which the program's own check
# does not see; the test fails if the digests do not show it.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
not_in_distcheck
[ -z "$asan" ] || skip "with sanitizers rewritten.sh runs the same kernels; what memory holds after them is looked at without"
# Programs whose memory the order of blocks or of streams shows in, with the kernel that shows it
# first and why. Any other kernel of theirs that is first to differ is wrong. They check their own
# results.
known='drv/search search         places in the list of finds are given by an atomic counter, in the order of blocks
static/search search      the same
static/lockfree _Z6insert places in the table, in the order of blocks
static/lockfree _Z4push   links of the lists, in the order of blocks
static/deviceheap _Z4push pointers to what malloc() gave, in the order of blocks
static/objects _Z4make    pointers to what new gave, in the order of blocks
static/multiprocessors _Z10persistent  a set of the SMs that blocks were on
static/surface _Z8write_2d  where textures are described: the program makes one while this and the next kernel run
static/surface _Z5twice   the same
static/sharing _Z3add     another process writes to the memory meanwhile, with nothing between the two but the end
static/hostthreads _Z9increment  threads launch it, each in a stream of its own: whose is the n-th is up to the host
static/waiting _Z4turn    four threads launch it, each in a stream of its own: whose is the n-th, and which of the others have ended by
  then, is up to the host (the number of instructions of each launch tells the threads apart)'
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
    # Of the client of each program that is first to launch: some have several processes, any of
    # which may be first to say hello.
    awk '/client: hello/ { for (i = 1; i <= NF; i++) { if ($i ~ /^client=/) c = $i; if ($i ~ /^task=/) t[c] = $i } }
         / launch: client=/ { for (i = 1; i <= NF; i++) { split($i, w, "="); v[w[1]] = w[2] }
             c = "client=" v["client"]; k = t[c]
             if (!(k in first)) first[k] = c
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
# compare FILE: the launches of FILE that differ, by the first of each program: a digest is of all
# memory, so that what follows differs too.
compare() {
    join "$tmp/same" "$1" | awk '$3 != "-"' >"$tmp/both"
    awk '$2 != $3' "$tmp/both" | sort -t'|' -k1,1 -k2,2n | awk -F'[| ]' '!($1 in seen) { seen[$1] = 1; print $1, $3 }'
}
# known TASK KERNEL: whether that is one of those above.
is_known() {
    echo "$known" | awk -v t="$1" -v k="$2" '$1 == t && index(k, $2) == 1 { found = 1 } END { exit !found }'
}
# wrong_in KIND: says what differs in $tmp/rewritten, is not known to, and does so each time: 1 if
# there is any. What the program's host part does while a kernel runs shows too, if it comes earlier
# or later: only what differs each time is wrong.
wrong_in() {
    compare "$tmp/rewritten" >"$tmp/differ"
    cp "$tmp/both" "$tmp/compared"
    result=0
    while read -r task kernel; do
        c=${task#task=} often=0
        ! is_known "$c" "$kernel" || continue
        for _ in 1 2 3; do
            digests "$1" "$tmp/again" "$c"
            compare "$tmp/again" | grep -qF "$task $kernel" && often=$((often + 1))
        done
        echo "$1: $task $kernel: differs, and in $often of 3 more runs"
        [ $often -lt 3 ] || result=1
    done <"$tmp/differ"
    return $result
}
for kind in slice ticket persistent fence fence-ticket fence-persistent fuse fuse-same-block; do
    # shellcheck disable=SC2086
    digests $kind "$tmp/rewritten" $clients
    carried_out $kind
    wrong_in $kind || fail "$kind: memory differs"
    compared=$(wc -l <"$tmp/compared")
    echo "$kind: $compared launches compared, $(awk '$2 != $3' "$tmp/compared" | wc -l) differ"
    [ "$compared" -ge $least ] || fail "$kind: too few to compare"
    ok "$kind"
done
mkdir "$tmp/ptx"
sed 's/0f3F317218/0f3F317219/' "$src/tests/cuda/ptx/blackscholes.ptx" >"$tmp/ptx/blackscholes.ptx" # ln 2
! cmp -s "$src/tests/cuda/ptx/blackscholes.ptx" "$tmp/ptx/blackscholes.ptx" || fail "no such constant"
export WATTSHARE_TEST_PTX="$tmp/ptx"
for kind in slice persistent fuse; do
    digests $kind "$tmp/rewritten" drv/blackscholes
    ! wrong_in $kind || fail "$kind: the planted error isn't found"
    ok "$kind: the planted error is found"
done
