# SPDX-License-Identifier: Apache-2.0
# What the shell scripts behind tests/gpu/run share. They source it with sh in the top of a build
# tree or bundle. tests/gpu/run sets:
#
#     WS_GPU_MOCK, WS_GPU_SHORT   not empty if --mock, --short were given
#     WS_GPU_DAEMON_PATH          the daemon's LD_LIBRARY_PATH
#
# Exit status 77 means that it cannot be tried here; the last line on standard error says why.
set -u
mock=${WS_GPU_MOCK:-} short=${WS_GPU_SHORT:-}
own_path=${LD_LIBRARY_PATH:-}
tmp=$(mktemp -d "${TMPDIR:-/tmp}/wattshare-gpu-part.XXXXXX")
daemon_pid=
# shellcheck disable=SC2317 # by the trap
finish() {
    [ -z "$daemon_pid" ] || kill "$daemon_pid" 2>/dev/null
    [ -z "$daemon_pid" ] || wait "$daemon_pid" 2>/dev/null
    rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 130' INT TERM
fail() {
    echo "FAIL: $*" >&2
    exit 1
}
not_here() {
    echo "$*" >&2
    exit 77
}
# serve CONF-LINES: a daemon of our own with the first GPU.
serve() {
    WATTSHARE_SOCKET=ipc://$tmp/sock
    export WATTSHARE_SOCKET
    printf '%s\n' "$1" >"$tmp/conf"
    LD_LIBRARY_PATH=${WS_GPU_DAEMON_PATH:-} backend/wattshared --config "$tmp/conf" --socket "$WATTSHARE_SOCKET" --gpus cuda:0 >>"$tmp/daemon.log" 2>&1 &
    daemon_pid=$!
    i=0
    while ! cli/wattshare status >/dev/null 2>&1; do
        i=$((i + 1))
        [ $i -lt 100 ] && kill -0 "$daemon_pid" 2>/dev/null || { cat "$tmp/daemon.log" >&2; fail "the daemon did not start"; }
        sleep 0.1
    done
}
unserve() {
    kill "$daemon_pid"
    wait "$daemon_pid" || { tail -n 5 "$tmp/daemon.log" >&2; fail "the daemon ended with status $?"; }
    daemon_pid=
}
now_ms() { date +%s%3N; }
# native, proxied, gated NAME COMMAND…: what it prints to $tmp/NAME; fails unless it ends well and
# says PASS. Milliseconds in $ms.
attempt() {
    name=$1
    shift
    t=$(now_ms)
    timeout -k 2 30 "$@" >"$tmp/$name" 2>&1 && grep -q '^PASS' "$tmp/$name"
    r=$?
    [ $r != 124 ] || echo "it had not ended after 30 s" >>"$tmp/$name"
    ms=$(($(now_ms) - t))
    return $r
}
native() {
    name=$1
    shift
    if [ -z "$mock" ]; then attempt "$name" "$@"; else
        attempt "$name" env WS_MOCK_PROGRAM=1 LD_LIBRARY_PATH="$PWD/tests/mock${own_path:+:$own_path}" "$@"
    fi
}
proxied() {
    name=$1
    shift
    attempt "$name" cli/wattshare run -- "$@"
}
gated() { # the task has the result's name
    name=$1
    shift
    if [ -z "$mock" ]; then attempt "$name" cli/wattshare run --gate --task "$name" -- "$@"; else
        attempt "$name" env WS_MOCK_PROGRAM=1 WATTSHARE_GATE_DRIVER="$PWD/tests/mock/libcuda.so.1" cli/wattshare run --gate --task "$name" -- "$@"
    fi
}
show() { tail -n 3 "$tmp/$1" >&2; }
ratio() { awk "BEGIN { if ($2 > 0) printf \"%.3f\", $1 / $2; else printf \"-\" }"; }
