#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the programs again and takes a digest of all device memory of a client after each launch. It
# fails if the digest after a rewritten kernel differs in a bit from the one after the original
# kernel. Where there is nvcc, and so very many programs, each of them is run in two of the eight
# ways of rewriting. WS_TEST_ALL=yes runs each in all of them, which takes two or three times as
# long. Launches whose digest differs between two runs of the original (clocks, order of atomics,
# several streams) prove nothing; they are left out and counted. With one worker there are few of
# them.
#
# At the end an error of one bit is planted in a constant of a kernel, which the program's own check
# does not see; the test fails if the digests do not show it.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
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
kinds="slice ticket persistent fuse fence fence-ticket fence-persistent fuse-same-block"
n_shares=1
[ -n "${WS_TEST_ALL:-}" ] || ! have_nvcc || n_shares=4
least=5
! have_nvcc || least=100
# every_nth N WORDS…: the words whose number, divided by the number of shares, has the rest N
every_nth() {
    rest=$1; shift
    printf '%s\n' "$@" | awk -v r="$rest" -v n=$n_shares 'NR % n == r'
}
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
# same_of FILE CLIENTS…: the launches after which memory is the same in two runs of the original.
# The addresses that a client gets depend on those before it, and pointers in memory on them. So only
# runs of the same programs in the same order are compared.
same_of() {
    file=$1; shift
    digests none "$tmp/first" "$@"
    digests none "$tmp/second" "$@"
    join "$tmp/first" "$tmp/second" | awk '$2 == $3 && $2 != "-" { print $1, $2 }' >"$file"
}
# compare SAME FILE: the launches of FILE that differ, by the first of each program: a digest is of
# all memory, so that what follows differs too.
compare() {
    join "$1" "$2" | awk '$3 != "-"' >"$tmp/both"
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
    compare "$tmp/same" "$tmp/rewritten" >"$tmp/differ"
    cp "$tmp/both" "$tmp/compared"
    result=0
    while read -r task kernel; do
        c=${task#task=} often=0
        ! is_known "$c" "$kernel" || continue
        same_of "$tmp/same_alone" "$c"
        for _ in 1 2 3; do
            digests "$1" "$tmp/again" "$c"
            compare "$tmp/same_alone" "$tmp/again" | grep -qF "$task $kernel" && often=$((often + 1))
        done
        echo "$1: $task $kernel: differs, and in $often of 3 more runs"
        [ $often -lt 3 ] || result=1
    done <"$tmp/differ"
    return $result
}
n_same=0
for share in $(seq 0 $((n_shares - 1))); do
    # shellcheck disable=SC2046,SC2086
    set -- $(every_nth "$share" $clients)
    same_of "$tmp/same" "$@"
    echo "$(wc -l <"$tmp/same") of $(wc -l <"$tmp/first") launches leave the same memory each time"
    n_same=$((n_same + $(wc -l <"$tmp/same")))
    # shellcheck disable=SC2046,SC2086
    for kind in $(every_nth "$share" $kinds); do
        digests $kind "$tmp/rewritten" "$@"
        carried_out $kind
        wrong_in $kind || fail "$kind: memory differs"
        compared=$(wc -l <"$tmp/compared")
        echo "$kind: $compared launches compared, $(awk '$2 != $3' "$tmp/compared" | wc -l) differ"
        [ "$compared" -ge $((least / n_shares)) ] || fail "$kind: too few to compare"
        ok "$kind"
    done
done
[ "$n_same" -ge $least ] || fail "too few to compare"
mkdir "$tmp/ptx"
sed 's/0f3F317218/0f3F317219/' "$src/tests/cuda/ptx/blackscholes.ptx" >"$tmp/ptx/blackscholes.ptx" # ln 2
! cmp -s "$src/tests/cuda/ptx/blackscholes.ptx" "$tmp/ptx/blackscholes.ptx" || fail "no such constant"
same_of "$tmp/same" drv/blackscholes
export WATTSHARE_TEST_PTX="$tmp/ptx"
for kind in slice persistent fuse; do
    digests $kind "$tmp/rewritten" drv/blackscholes
    compare "$tmp/same" "$tmp/rewritten" | grep -q '^task=drv/blackscholes ' || fail "$kind: the planted error isn't found"
    ok "$kind: the planted error is found"
done
