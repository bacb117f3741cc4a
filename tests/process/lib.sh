# SPDX-License-Identifier: Apache-2.0
# What the process tests share. Tests source it with sh while the top of the build tree is the
# working directory, as automake's check does.
#
# A test gets a temporary directory $tmp and must leave no process behind. The exit trap ends what
# start_daemon started and fails the test if the daemon did not end well (under AddressSanitizer
# also if it leaked).
set -eu
build=$PWD
src=${srcdir:-$(dirname "$0")/../..}
src=$(cd "$src" && pwd)
wattshare=$build/cli/wattshare
# The build tree of the daemon, its workers and the mock driver. ./dev tsan names one of its own:
# ThreadSanitizer's runtime cannot be preloaded into programs that were built without it.
daemon_build=${WS_DAEMON_BUILD:-$build}
wattshared=$daemon_build/backend/wattshared
cuda=$build/tests/cuda
tmp=$(mktemp -d "${TMPDIR:-/tmp}/wattshare-test.XXXXXX")
daemon_pid= helper_pid= # of the daemon, and of what else a test starts beside it
n_checks=0
# What a sanitized build needs: the preloaded library wants the runtime first; the programs' own
# leaks are theirs.
asan=
if nm -D "$wattshared" 2>/dev/null | grep -q __asan_init; then
    asan=$(gcc -print-file-name=libasan.so)
    export UBSAN_OPTIONS=print_stacktrace=1
fi
unset LD_PRELOAD WATTSHARE_SOCKET WATTSHARE_PRIVATE WATTSHARE_TASK CUDA_VISIBLE_DEVICES

fail() {
    echo "FAIL: $*" >&2
    exit 1
}
skip() {
    echo "SKIP: $*" >&2
    exit 77
}
ok() {
    n_checks=$((n_checks + 1))
    echo "ok: $*"
}

# run WANTED-STATUS PATTERN ARGUMENTS…: wattshare $verb ARGUMENTS (verb is unset: any), at most 300
# s; the pattern must be in what it prints ($tmp/out).
run() {
    want=$1 pattern=$2
    shift 2
    r=0
    # shellcheck disable=SC2086
    LD_PRELOAD=${run_preload:-} timeout -k 5 300 "$wattshare" ${verb:-} "$@" >"$tmp/out" 2>&1 || r=$?
    [ $r = "$want" ] || { cat "$tmp/out"; fail "${verb:-wattshare} $*: status $r, not $want"; }
    [ -z "$pattern" ] || grep -q -e "$pattern" "$tmp/out" || { cat "$tmp/out"; fail "${verb:-wattshare} $*: no '$pattern'"; }
    ok "${verb:-wattshare} $*"
}

# expect STATUS TEXT COMMAND…: the status, and the text (no pattern) in what it prints ($tmp/out).
expect() {
    want=$1 text=$2
    shift 2
    r=0
    "$@" >"$tmp/out" 2>&1 || r=$?
    [ "$r" = "$want" ] || { head -n 5 "$tmp/out"; fail "$*: status $r, not $want"; }
    grep -qF -e "$text" "$tmp/out" || { head -n 5 "$tmp/out"; fail "$*: no '$text'"; }
    ok "$*"
}

# Removes files older tests can't have removed; ends the daemon. The test's own status wins.
finish() {
    status=$?
    trap - EXIT INT TERM
    [ -z "$helper_pid" ] || kill "$helper_pid" 2>/dev/null || true
    if [ -n "$daemon_pid" ]; then
        stop_daemon || status=1
    fi
    if grep -A 60 'WARNING: ThreadSanitizer' "$tmp/daemon.log" >&2 2>/dev/null; then
        echo "FAIL: ThreadSanitizer's reports about the daemon or its workers" >&2
        status=1
    fi
    if [ "$status" != 0 ] && [ -f "$tmp/daemon.log" ]; then
        echo "--- the daemon's log" >&2
        tail -n 40 "$tmp/daemon.log" >&2
    fi
    if [ "$status" = 0 ] && [ "$n_checks" = 0 ]; then
        echo "FAIL: nothing was checked" >&2
        status=1
    fi
    rm -rf "$tmp"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

# start_daemon [ARGUMENTS…]: wattshared on a socket of its own; sets daemon_pid and
# WATTSHARE_SOCKET. With POLICY (and perhaps POLICY_OPTIONS, CLOCK) in the environment it has that
# policy: so any test may be run under one.
start_daemon() {
    if [ -n "${POLICY:-}" ]; then
        printf 'policy = "%s"\npolicy_options = {%s}\nclock = "%s"\ntime_scale = 20\n' \
            "$POLICY" "${POLICY_OPTIONS:-}" "${CLOCK:-scaled}" >"$tmp/policy.conf"
        set -- --config "$tmp/policy.conf" "$@"
    fi
    WATTSHARE_SOCKET=${endpoint:-ipc://$tmp/sock}
    export WATTSHARE_SOCKET
    mkfifo "$tmp/ready"
    ASAN_OPTIONS=detect_leaks=1:exitcode=23 "$wattshared" --socket "$WATTSHARE_SOCKET" --ready-fd 9 "$@" \
        9>"$tmp/ready" >>"$tmp/daemon.log" 2>&1 &
    daemon_pid=$!
    byte=$(timeout 100 head -c1 "$tmp/ready" | od -An -tx1)
    rm -f "$tmp/ready"
    if [ -z "$byte" ]; then
        wait "$daemon_pid" || true
        daemon_pid=
        fail "the daemon did not start"
    fi
}

# Whether a process runs; a zombie does not.
alive() {
    [ -n "$(sed -n '/^State:\t[^ZX]/p' "/proc/$1/status" 2>/dev/null)" ]
}

# start_mock [ARGUMENTS…]: the daemon with a real GPU's device, the driver being the mock.
mock=$daemon_build/tests/mock
start_mock() {
    if [ -n "$asan" ]; then
        ASAN_OPTIONS=detect_leaks=1 LD_LIBRARY_PATH=$mock start_daemon --gpus cuda "$@"
    else
        LD_LIBRARY_PATH=$mock start_daemon --gpus cuda "$@"
    fi
}

# Ends it by SIGTERM: within 100 s, with status 0, leaving no socket.
stop_daemon() {
    pid=$daemon_pid
    daemon_pid=
    kill -TERM "$pid" 2>/dev/null || { echo "FAIL: the daemon was gone before its end" >&2; wait "$pid" || echo "its status: $?" >&2; return 1; }
    i=0
    while alive "$pid"; do
        i=$((i + 1))
        [ $i != 2000 ] || { echo "FAIL: the daemon does not end" >&2; kill -KILL "$pid"; }
        sleep 0.05
    done
    r=0
    wait "$pid" || r=$?
    [ "$r" = 0 ] || { echo "FAIL: the daemon ended with status $r" >&2; return 1; }
    [ ! -e "$tmp/sock" ] || { echo "FAIL: the daemon left its socket" >&2; return 1; }
}

# client PROGRAM ARGUMENTS…: as `wattshare run`, at most 120 s. In a subshell or the background the
# environment stays here.
client() {
    LD_PRELOAD=$asan ASAN_OPTIONS=detect_leaks=0 timeout -k 5 "${client_timeout:-120}" "$wattshare" run ${task:+--task "$task"} -- "$@"
}

# Clients are named "kind/workload"; kinds: drv, and static and shared where nvcc built them.
drv_clients() {
    for w in matmul aes sort search blackscholes montecarlo histogram stencil texref; do echo "drv/$w"; done
}
# Those that go on for as many rounds as they are told to.
nvcc_looping() {
    for w in matmul aes sort search blackscholes montecarlo histogram stencil reduce saxpy; do echo "static/$w shared/$w"; done
}
nvcc_clients() {
    nvcc_looping
    for w in $(sed -n 's/^\t\([a-z0-9_]*\).*/\1/p' "$src/tests/cuda/programs.mk"); do echo "static/$w shared/$w"; done
}
have_nvcc() {
    [ -x "$cuda/nv/matmul_static" ]
}
looping_clients() {
    drv_clients
    ! have_nvcc || nvcc_looping
}
# alone CLIENTS…: one after another, right and quiet.
alone() {
    for c in "$@"; do
        task=$c client "$(client_path "$c")" "$(small "$c")" 2 >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$c"; }
        grep -q '^PASS ' "$tmp/out" || { cat "$tmp/out"; fail "$c did not say PASS"; }
        ! grep -v '^PASS ' "$tmp/out" || fail "$c said more than PASS"
        ok "$c"
    done
}
# carried_out KIND: whether the log of the daemon that ended last says that it rewrote launches as
# KIND.
carried_out() {
    parts=$(sed -n 's/.*rewrite: launches=\([0-9]*\) parts=\([0-9]*\).*/\1 \2/p' "$tmp/daemon.log" | tail -n 1)
    [ -n "$parts" ] || fail "the daemon does not say how many launches it carried out in parts"
    echo "$1: ${parts% *} launches in ${parts#* } parts"
    [ "${parts% *}" -ge 100 ] || fail "$1: too few launches were rewritten"
    case $1 in
    fence | fuse*) ;; # carried out whole
    *) [ "${parts#* }" -gt "${parts% *}" ] || fail "$1: no launch was cut" ;;
    esac
}
# together CLIENTS…: all at once, several rounds each.
together() {
    pids=
    for c in "$@"; do
        log=$tmp/$(echo "$c" | tr / _)
        { task=$c client "$(client_path "$c")" "$(small "$c")" 8 >"$log" 2>&1 || echo "status $?" >>"$log"; } &
        pids="$pids $!"
    done
    for p in $pids; do wait "$p"; done
    for c in "$@"; do
        log=$tmp/$(echo "$c" | tr / _)
        grep -q '^PASS ' "$log" && ! grep -q '^status' "$log" || { cat "$log"; fail "$c among $#"; }
        ok "$c among $#"
        rm -f "$log"
    done
}
client_path() { # drv/matmul -> its program
    case $1 in
    drv/*) echo "$cuda/drv_${1#*/}" ;;
    *) echo "$cuda/nv/${1#*/}_${1%/*}" ;;
    esac
}
# A size that takes a software GPU some hundredths of a second.
small() {
    case $1 in
    */matmul) echo 96 ;;
    */aes) echo 64 ;;
    */sort) echo 12 ;;
    */search) echo 128 ;;
    */blackscholes) echo 32 ;;
    */montecarlo) echo 1 ;;
    */histogram) echo 512 ;;
    */stencil) echo 100 ;;
    */reduce) echo 64 ;;
    */saxpy | */multiprocessors) echo 64 ;;
    */periodic) echo 4 ;;
    */mathf | */mathd) echo 2000 ;;
    */intmath) echo 4000 ;;
    */halves) echo 65536 ;;
    */thrusting | */cubs) echo 20000 ;;
    */arraycopy | */texture* | */surface | */imagefilter) echo 40 ;;
    */texlinear | */texref) echo 1 ;;
    */shapes) echo 1 ;;
    */fillgpu) echo 20000 ;;
    */warmup) echo 100 ;;
    */graphjacobi) echo 64 ;;
    */graph* | */hostfunc | */streamorder | */perthread) echo 8 ;;
    esac
}

# status_value KEY: the first number with that key in `wattshare status --json`.
status_json() {
    "$wattshare" status --json
}
status_value() {
    status_json | sed -n "s/^ *\"$1\": *\([0-9]*\),\{0,1\}\$/\1/p" | head -n 1
}
# How many clients are connected now, and what memory of GPUs is used now.
n_connected() {
    status_json | grep -c '"connected": *true' || true
}
memory_used() {
    status_json | sed -n 's/^ *"memory_used_bytes": *\([0-9]*\),\{0,1\}$/\1/p' | awk '{s += $1} END {print s + 0}'
}
# Waits until nobody is connected and no memory is used, at most 10 s.
wait_empty() {
    i=0
    while [ "$(n_connected)" != 0 ] || [ "$(memory_used)" != 0 ]; do
        i=$((i + 1))
        [ $i -lt 100 ] || { status_json >&2; fail "clients or memory are left: $(n_connected), $(memory_used) bytes"; }
        sleep 0.1
    done
}
