#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the gate: programs with a driver of their own (the mock), whose launches wait for the
# daemon. It fails if a result changes, if two jobs overlap in time (by the mock's own records of
# kernels), if the more urgent job is not served first, or if a program or the daemon that ends in
# any way leaves the other one waiting.
#
# Nothing depends on how long anything takes: kernels last as long as WS_MOCK_SLEEP_US or
# WS_MOCK_UNTIL says, and leases are long except where they are tested.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
WATTSHARE_GATE_DRIVER=$mock/libcuda.so.1 WS_MOCK_PROGRAM=1
export WATTSHARE_GATE_DRIVER WS_MOCK_PROGRAM
export ASAN_OPTIONS=detect_leaks=0
clients=

# gated TASK COMMAND…: behind the gate.
gated() {
    task=$1
    shift
    LD_PRELOAD=$asan timeout -k 5 100 "$wattshare" run --gate --task "$task" -- "$@"
}
native() {
    LD_PRELOAD=$asan LD_LIBRARY_PATH=$mock timeout -k 5 100 "$@"
}
# begin NAME COMMAND…: in the background, output in $tmp/NAME; its process group's pid in $last.
begin() {
    name=$1
    shift
    gated "$name" "$@" >"$tmp/$name" 2>&1 &
    last=$!
    clients="$clients $last"
}
passes() { # passes NAME PID
    r=0
    wait "$2" || r=$?
    [ $r = 0 ] && grep -q '^PASS' "$tmp/$1" || { cat "$tmp/$1" >&2; fail "$1: status $r"; }
}
serve() { # serve POLICY [OPTIONS [LEASE_MS]]
    cat >"$tmp/conf" <<EOF
policy = "$1"
policy_options = {${2:-}}
gate_lease_ms = ${3:-600000}
task "high" { priority = 9 }
task "low" { priority = 1 }
EOF
    LD_LIBRARY_PATH=$mock start_daemon --config "$tmp/conf" --gpus cuda
    # The daemon asks each group of SMs by a kernel which ones it has.
    [ -z "${WS_MOCK_RECORD:-}" ] || rm -f "$WS_MOCK_RECORD"
}
# With a daemon killed there is nothing to stop.
killed() {
    kill -KILL "$daemon_pid"
    wait "$daemon_pid" 2>/dev/null || true
    daemon_pid=
    rm -f "$tmp/sock"
}
field() { # field TASK KEY: of the newest client of that task
    status_json | python3 -c 'import json, sys
v = [c for c in json.load(sys.stdin)["clients"] if c["task"] == sys.argv[1]]
v.sort(key=lambda c: c["client"])
print(v[-1].get(sys.argv[2]) if v else None)' "$1" "$2"
}
state_is() { # state_is TASK STATE: waits until it is so
    i=0
    while [ "$(field "$1" gate)" != "$2" ]; do
        i=$((i + 1))
        [ $i -lt 300 ] || { status_json >&2; fail "$1 is not $2 but $(field "$1" gate)"; }
        sleep 0.1
    done
}
# No two kernels of different processes at one time.
disjoint() {
    sort -n -k2 "$WS_MOCK_RECORD" | awk '
        NR > 1 && $1 != pid && $2 < end { print "process " $1 " begins at " $2 ", " pid " ends at " end; bad = 1 }
        $3 > end || NR == 1 { end = $3; pid = $1 }
        END { if (NR < '"$1"') print "only " NR " kernels"; exit bad || NR < '"$1"' }' >&2 || fail "$2: kernels overlap"
    [ "$(cut -d' ' -f1 "$WS_MOCK_RECORD" | sort -u | wc -l)" -ge 2 ] || fail "$2: one process only"
    ok "$2: $(wc -l <"$WS_MOCK_RECORD") kernels, none beside another's"
    rm -f "$WS_MOCK_RECORD"
}
# The program's own process below timeout and so on.
child_of() {
    p=$1
    while c=$(cat "/proc/$p/task/$p/children" 2>/dev/null) && [ -n "$c" ]; do p=${c%% *}; done
    echo "$p"
}

# What the library exports is the table's part of the driver, no more, no less; and what it hands
# on.
lib=$build/frontend/gate/libwattshare-gate.so
sed -n 's/^WS_DRV(\([A-Za-z0-9_]*\),.*/\1/p' "$src/frontend/interpose/entrypoints.def" | sort >"$tmp/table"
nm -D --defined-only "$lib" | awk '{print $3}' | grep '^cu' | sort >"$tmp/exported"
[ "$(wc -l <"$tmp/table")" -gt 500 ] || fail "the table has only $(wc -l <"$tmp/table") rows"
cmp "$tmp/table" "$tmp/exported" || fail "the library does not export what the table says"
ok "$(wc -l <"$tmp/table") functions"
WATTSHARE_SOCKET=ipc://$tmp/nobody timeout 300 "$build/tests/process/gate_calls" "$lib" "$WATTSHARE_GATE_DRIVER" >"$tmp/out" 2>&1 ||
    { cat "$tmp/out"; fail "gate_calls"; }
ok "$(grep -c '^ok' "$tmp/out") ways of asking"

# Without a policy, and without a gate: the same.
serve none
for w in matmul aes sort search; do
    native "$cuda/drv_$w" 8 >"$tmp/native" 2>"$tmp/err" || { cat "$tmp/native" "$tmp/err" >&2; fail "drv_$w on the mock"; }
    gated "$w" "$cuda/drv_$w" 8 >"$tmp/gated" 2>"$tmp/err" || { cat "$tmp/gated" "$tmp/err" >&2; fail "drv_$w behind the gate"; }
    cmp "$tmp/native" "$tmp/gated" || fail "drv_$w says something else behind the gate"
    ok "drv_$w"
done
[ "$(field matmul n_jobs)" = 0 ] || fail "jobs without a policy"
[ "$(field matmul gate)" = ended ] || fail "the status does not say that it was gated"
LD_PRELOAD=$asan "$wattshare" policy set gcaps >"$tmp/out"
gated quiet "$cuda/drv_gate" 3 20 quiet >"$tmp/gated" 2>&1 || { cat "$tmp/gated"; fail "quiet"; }
WS_MOCK_CAPTURING=1 gated capture "$cuda/drv_gate" 2 4 own >"$tmp/gated" 2>&1 || { cat "$tmp/gated"; fail "capture"; }
[ "$(field capture n_jobs)" = 0 ] || fail "streams that are captured were gated"
LD_PRELOAD=$asan "$wattshare" trace --out "$tmp/trace.json" --duration 60 2>"$tmp/trace.err" &
trace_pid=$!
i=0
until [ -s "$tmp/trace.json" ]; do i=$((i + 1)); [ $i -lt 600 ] || fail "no trace"; sleep 0.1; done
gated own "$cuda/drv_gate" 5 4 own >"$tmp/gated" 2>&1 || { cat "$tmp/gated"; fail "own"; }
[ "$(field own n_jobs)" -ge 1 ] && [ "$(field own n_kernels)" = 20 ] && [ "$(field own device_ns)" -gt 0 ] &&
    [ "$(field own n_unmeasured)" = 0 ] && [ "$(field own energy_known)" = True ] || { status_json; fail "own was not accounted for"; }
kill -INT "$trace_pid"
wait "$trace_pid" || { cat "$tmp/trace.err" >&2; fail "trace did not end well"; }
[ "$(grep -c '"gated: [0-9]* launches"' "$tmp/trace.json")" = "$(field own n_jobs)" ] || { cat "$tmp/trace.json"; fail "the trace does not show the jobs"; }
ok "a policy that comes later holds; kernels and device time are accounted for"
LD_PRELOAD=$asan "$wattshare" explain >"$tmp/out"
grep -q '(own): start on GPU 0 (mock-4), 8 SMs' "$tmp/out" || { cat "$tmp/out"; fail "explain"; }
ok "$(head -n 1 "$tmp/out")"
gated threads "$cuda/drv_gate" 20 3 threads >"$tmp/gated" 2>&1 || { cat "$tmp/gated"; fail "threads"; }
! grep -q VIOLATION "$tmp/gated" || { cat "$tmp/gated"; fail "threads: the driver was misused"; }
[ "$(field threads n_kernels)" = 300 ] && [ "$(field threads n_unmeasured)" = 0 ] || { status_json; fail "threads were not accounted for"; }
ok "threads, and children that are forked"
stop_daemon

WS_MOCK_RECORD=$tmp/record
export WS_MOCK_RECORD
for p in rr gcaps fifo 'rr "slice=0"'; do
    # shellcheck disable=SC2086
    set -- $p
    WS_MOCK_SLEEP_US=1000 serve "$@"
    export WS_MOCK_SLEEP_US=1000
    begin one "$cuda/drv_gate" 10 3
    one=$last
    begin two "$cuda/drv_gate" 10 3 own
    two=$last
    passes one "$one"
    passes two "$two"
    disjoint 60 "$p"
    # One that is proxied beside one that is gated.
    begin one "$cuda/drv_gate" 10 3
    one=$last
    LD_PRELOAD=$asan timeout 100 "$wattshare" run --task proxied -- "$cuda/drv_matmul" 32 10 >"$tmp/proxied" 2>&1 || { cat "$tmp/proxied"; fail "proxied"; }
    passes one "$one"
    disjoint 40 "$p, one of them proxied"
    unset WS_MOCK_SLEEP_US
    stop_daemon
done

# Whoever has the GPU and is killed leaves it at once, and the higher priority has it next, though
# it came last.
serve gcaps
WS_MOCK_UNTIL=$tmp/never begin holder "$cuda/drv_gate" 1 1 hold
holder=$last
state_is holder gate-holds
begin low "$cuda/drv_gate" 1 3
low=$last
state_is low gate-waits
begin high "$cuda/drv_gate" 1 3
high=$last
state_is high gate-waits
LD_PRELOAD=$asan "$wattshare" status | grep -q 'gate-waits' || fail "the status table does not show who waits"
LD_PRELOAD=$asan "$wattshare" top --batch --count 1 >"$tmp/out" || fail "top"
grep -q 'gate: waits' "$tmp/out" || { cat "$tmp/out"; fail "top does not show who waits"; }
[ ! -s "$WS_MOCK_RECORD" ] || fail "somebody ran beside the holder"
kill -KILL "$(child_of "$holder")"
wait "$holder" || true
passes low "$low"
passes high "$high"
[ "$(sort -n -k2 "$WS_MOCK_RECORD" | cut -d' ' -f1 | uniq | wc -l)" = 2 ] || fail "segments were mixed"
first=$(sort -n -k2 "$WS_MOCK_RECORD" | head -n 1 | cut -d' ' -f1)
[ "$first" = "$(field high pid)" ] || fail "the lower priority went first"
ok "a killed holder lets go, priority goes first"
rm -f "$WS_MOCK_RECORD"
stop_daemon

# One that never says it is done: after its lease others run, and it is said.
serve fifo '' 200
WS_MOCK_UNTIL=$tmp/never begin holder "$cuda/drv_gate" 1 1 hold
holder=$last
state_is holder gate-over
begin other "$cuda/drv_gate" 2 2
passes other "$last"
[ "$(field holder n_over_lease)" = 1 ] || fail "n_over_lease"
grep -q 'gate: client [0-9]* (holder) kept GPU 0 for more than 200 ms' "$tmp/daemon.log" || fail "the log does not tell of the lease"
kill -KILL "$(child_of "$holder")"
wait "$holder" || true
# Who goes on launching past a lease drains and asks again, and is right in the end. (On a host that
# stalls it may have nothing to launch beyond, or give up draining: then one of the two is less.)
WS_MOCK_SLEEP_US=30000 begin long "$cuda/drv_gate" 1 40 paced
passes long "$last"
[ "$(field long n_kernels)" = 40 ] && [ $(($(field long n_jobs) + $(field long n_over_lease))) -ge 2 ] ||
    { status_json; fail "a long burst did not ask again"; }
ok "leases end"
rm -f "$WS_MOCK_RECORD"

# The daemon goes: everybody goes on, and says so once.
WS_MOCK_UNTIL=$tmp/never begin holder "$cuda/drv_gate" 1 1 hold
holder=$last
state_is holder gate-over
stop_daemon
serve fifo
kill -KILL "$(child_of "$holder")"
wait "$holder" || true
WS_MOCK_UNTIL=$tmp/go begin one "$cuda/drv_gate" 20 3
one=$last
state_is one gate-holds
WS_MOCK_UNTIL=$tmp/go begin two "$cuda/drv_gate" 20 3
two=$last
state_is two gate-waits
killed
: >"$tmp/go"
passes one "$one"
passes two "$two"
for n in one two; do
    [ "$(grep -c 'lost the daemon' "$tmp/$n")" = 1 ] || { cat "$tmp/$n"; fail "$n did not say it once"; }
done
ok "the daemon killed: both finish"
WATTSHARE_SOCKET=ipc://$tmp/nobody LD_PRELOAD=${asan:+$asan:}$build/frontend/gate/libwattshare-gate.so timeout 300 "$cuda/drv_gate" 2 2 >"$tmp/out" 2>&1 ||
    { cat "$tmp/out"; fail "without a daemon"; }
grep -q 'the gate is open' "$tmp/out" || fail "without a daemon nothing is said"
ok "no daemon at all"
expect 2 'a private daemon has software GPUs' "$wattshare" run --gate --private -- true
WATTSHARE_GATE_DRIVER=$build/frontend/gate/libwattshare-gate.so LD_PRELOAD=${asan:+$asan:}$build/frontend/gate/libwattshare-gate.so \
    timeout 20 "$cuda/drv_gate" >"$tmp/out" 2>&1 && fail "a gate before itself"
grep -q 'is not an NVIDIA driver library' "$tmp/out" || { cat "$tmp/out"; fail "a gate before itself: nothing is said"; }
ok "no driver: an error, and why"
