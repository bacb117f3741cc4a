#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Measures what a gated launch costs on the mock driver: the same program without a gate, behind a
# gate without a policy to ask, and under fifo; in turns, medians of seven. The mock's own launch
# costs about as much as a real one's, but it says nothing about a real driver.
#
# Usage, in the build tree: bench/gate.sh (make bench-gate)
set -eu
build=$PWD
tmp=$(mktemp -d)
trap 'kill $pid 2>/dev/null; wait $pid 2>/dev/null; rm -rf "$tmp"' EXIT
export WS_MOCK_PROGRAM=1 WATTSHARE_GATE_DRIVER="$build/tests/mock/libcuda.so.1" WATTSHARE_SOCKET="ipc://$tmp/sock"
printf 'policy = "none"\ngate_lease_ms = 60000\n' >"$tmp/conf"
LD_LIBRARY_PATH=$build/tests/mock backend/wattshared --config "$tmp/conf" --socket "$WATTSHARE_SOCKET" --gpus cuda >"$tmp/log" 2>&1 &
pid=$!
until cli/wattshare status >/dev/null 2>&1; do sleep 0.1; done
one() { # one NAME BURSTS LAUNCHES
    case $1 in
    native) LD_LIBRARY_PATH=$build/tests/mock tests/cuda/drv_gate "$2" "$3" ;;
    *) cli/wattshare run --gate -- tests/cuda/drv_gate "$2" "$3" ;;
    esac | sed -n 's/^\([0-9]*\) ns for .* \([0-9]*\) for each burst/\1 \2/p' >>"$tmp/$1.$3"
}
for shape in "20 500" "2000 1"; do
    # shellcheck disable=SC2086
    set -- $shape
    for _ in 1 2 3 4 5 6 7; do
        one native "$@"
        cli/wattshare policy set none >/dev/null
        one none "$@"
        cli/wattshare policy set fifo >/dev/null
        one fifo "$@"
    done
    for n in native none fifo; do
        launch=$(cut -d' ' -f1 "$tmp/$n.$2" | sort -n | sed -n 4p)
        burst=$(cut -d' ' -f2 "$tmp/$n.$2" | sort -n | sed -n 4p)
        [ $n != native ] || { launch0=$launch burst0=$burst; }
        printf '%-7s bursts of %3s: launch %7s ns (x %s)  burst with its wait %9s ns (x %s)\n' $n "$2" "$launch" \
            "$(echo "$launch $launch0" | awk '{printf "%.2f", $1 / $2}')" "$burst" "$(echo "$burst $burst0" | awk '{printf "%.2f", $1 / $2}')"
    done
done
