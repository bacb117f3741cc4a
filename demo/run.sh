#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Eight CUDA programs share a software RTX 3070 and a software T400: first one after another, then
# all at once. Run by `./quickstart demo` in a build tree (its top is the working directory; $srcdir
# is the source tree).
set -eu
build=$PWD
tmp=$(mktemp -d "${TMPDIR:-/tmp}/wattshare-demo.XXXXXX")
daemon=
stop() {
    [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null && wait "$daemon" || true; }
    daemon=
}
trap 'stop; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
unset LD_PRELOAD WATTSHARE_PRIVATE CUDA_VISIBLE_DEVICES WATTSHARE_LIB WATTSHARED
export WATTSHARE_SOCKET="ipc://$tmp/sock"

# program, the GPU it shall see, how it is built where nvcc is found
programs='matmul rtx3070 static
aes rtx3070 shared
sort t400 static
search t400 shared
blackscholes rtx3070 static
montecarlo rtx3070 driver
histogram t400 shared
stencil rtx3070 driver'

start() {
    mkfifo "$tmp/ready"
    "$build/backend/wattshared" --socket "$WATTSHARE_SOCKET" --gpus rtx3070,t400 --ready-fd 9 9>"$tmp/ready" 2>"$tmp/log" &
    daemon=$!
    head -c1 "$tmp/ready" >/dev/null
    rm "$tmp/ready"
    kill -0 "$daemon" 2>/dev/null || { cat "$tmp/log" >&2; exit 1; }
}

one() { # one PHASE NAME GPU KIND: runs it, leaves "NAME KIND right|wrong" in $tmp/PHASE.NAME
    path=$build/tests/cuda/nv/${2}_$4
    kind=$4
    if [ "$4" = driver ] || [ ! -x "$path" ]; then
        path=$build/tests/cuda/drv_$2
        kind=driver
    fi
    verdict=right
    CUDA_VISIBLE_DEVICES=$3 timeout 120 "$build/cli/wattshare" run --task "$2" -- "$path" >"$tmp/out.$1.$2" 2>&1 || verdict=wrong
    echo "$2 $kind $verdict" >"$tmp/$1.$2"
}

wall() { # seconds since $1, from /proc/uptime: no fractions in date everywhere
    awk -v a="$1" '{printf "%.2f", $1 - a}' /proc/uptime
}
now() {
    cut -d' ' -f1 /proc/uptime
}

phase() { # phase NAME AT-ONCE: all programs on a fresh daemon
    start
    begin=$(now) pids=
    echo "$programs" >"$tmp/list"
    while read -r name gpu kind; do
        if [ "$2" = yes ]; then
            one "$1" "$name" "$gpu" "$kind" &
            pids="$pids $!"
        else
            one "$1" "$name" "$gpu" "$kind"
        fi
    done <"$tmp/list"
    for p in $pids; do wait "$p"; done
    wall "$begin" >"$tmp/$1.wall"
    while read -r name gpu kind; do cat "$tmp/$1.$name"; done <"$tmp/list" >"$tmp/$1.results"
    "$build/cli/wattshare" status --json >"$tmp/$1.json"
    stop
}

echo "wattshare: eight CUDA programs, two software GPUs (rtx3070: 46 SMs, t400: 6 SMs)"
[ -x "$build/tests/cuda/nv/matmul_static" ] || echo "(no nvcc here: the kernels come as PTX, the programs use the driver API)"
echo "running them one after another …"
phase alone no
echo "running them together …"
phase together yes
grep -l wrong "$tmp"/alone.results "$tmp"/together.results >/dev/null && cat "$tmp"/out.*
"$build/demo/table" "$tmp/alone" "$tmp/together"
