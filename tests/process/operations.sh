#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests what an operator looks at: `wattshare top`, `wattshare trace`, and the status as JSON. It
# fails if a trace lacks an operation or does not count what was lost, if top prints no proper pages
# in a terminal or with --batch, if the map of SMs is wrong, or if wrong options are accepted.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"

start_daemon --gpus rtx3070,t400

# ---- trace ----
"$wattshare" trace --out "$tmp/trace.json" 2>"$tmp/trace.err" &
trace_pid=$!
begun() { # begun FILE: it is written when the daemon has answered for the first time
    i=0
    until [ -s "$1" ]; do
        i=$((i + 1))
        [ $i -lt 600 ] || fail "the trace does not begin"
        sleep 0.1
    done
}
begun "$tmp/trace.json"
task=alpha client "$cuda/drv_matmul" 64 200 >"$tmp/out.1" 2>&1 &
p1=$!
task='be"ta' client "$cuda/drv_matmul" 64 300 >"$tmp/out.2" 2>&1 &
p2=$!
wait "$p1" && wait "$p2" || { cat "$tmp"/out.? >&2; fail "a client"; }
kill -INT "$trace_pid"
wait "$trace_pid" || { cat "$tmp/trace.err" >&2; fail "trace did not end well"; }
"$build/tests/process/trace_check" "$tmp/trace.json" >"$tmp/counts" || fail "the trace is no good trace"
read -r slices kernels waits <"$tmp/counts"
[ "$kernels" = 500 ] || fail "$kernels kernels are in the trace, 500 ran"
# What the accounts say in all is what the slices say: every copy and fill is there too.
want=$(status_json | sed -n 's/^ *"n_\(kernels\|copies\)": *\([0-9]*\),$/\2/p' | awk 'NR <= 4 {s += $1} END {print s}')
[ "$slices" = "$want" ] || fail "$slices operations are in the trace, the GPUs did $want"
grep -q '"alpha, client ' "$tmp/trace.json" && grep -q 'be\\"ta, client ' "$tmp/trace.json" || fail "the tasks are not named"
ok "trace: $slices operations, all of them"
for counter in "power (W)" SMs "memory (MiB)"; do
    grep -qF "\"$counter\"" "$tmp/trace.json" || fail "the trace has no counter '$counter'"
done
n=$(grep -c '"waited_us":[0-9]' "$tmp/trace.json")
[ "$n" -gt 0 ] || fail "nobody waited for the GPU in the trace"
[ "$waits" = "$n" ] || fail "$n operations waited, and $waits arrows lead to such"
grep -q '"default stream waits for GPU 0"' "$tmp/trace.json" || fail "a client's waiting is not named"
ok "trace: counters, for how long operations waited, and arrows to them"

# A trace of one who does not fetch: what is lost is counted, and said.
"$wattshare" trace --out "$tmp/lost.json" --duration 60 2>"$tmp/lost.err" &
trace_pid=$!
begun "$tmp/lost.json"
kill -STOP "$trace_pid"
client "$cuda/drv_matmul" 16 20000 >"$tmp/out.1" 2>&1 || fail "a client"
kill -CONT "$trace_pid"
kill -INT "$trace_pid"
wait "$trace_pid" || { cat "$tmp/lost.err" >&2; fail "trace did not end well"; }
n=$(sed -n 's/.*operations, \([0-9]*\) lost.*/\1/p' "$tmp/lost.err")
# Each iteration is a kernel and four copies and fills.
# shellcheck disable=SC2046
set -- $("$build/tests/process/trace_check" "$tmp/lost.json")
[ -n "$n" ] && [ "$n" -gt 0 ] && [ $(($1 + n)) = 100000 ] || { cat "$tmp/lost.err" >&2; fail "$1 operations and $n lost are not all"; }
grep -q 'operations before this were lost' "$tmp/lost.json" || fail "lost operations are not marked"
ok "trace: what is lost is counted"

# ---- top ----
WATTSHARE_TASK=gamma "$build/tests/process/session_client" sync >"$tmp/out.3" 2>&1 & p3=$!
i=0
until grep -q ready "$tmp/out.3"; do i=$((i + 1)); [ $i -lt 600 ] || fail "no client"; sleep 0.1; done
"$wattshare" top --batch --count 4 --interval 0.3 >"$tmp/top" || fail "top"
[ "$(grep -c '^wattshared pid' "$tmp/top")" = 4 ] || fail "top --batch --count 4 has not 4 pages"
grep -q '^GPU 0  rtx3070 ' "$tmp/top" && grep -q '^GPU 1  t400 ' "$tmp/top" || fail "a GPU is missing"
grep -q '^[a-z] [0-9]* .* \(gamma\|session_client\) .* 32.0 MiB' "$tmp/top" || { cat "$tmp/top" >&2; fail "the client is missing"; }
r=0
"$wattshare" top >/dev/null 2>"$tmp/err" || r=$?
[ $r = 2 ] && grep -q -- --batch "$tmp/err" || fail "top without a terminal does not say what to do"
if ! script -qec true /dev/null >/dev/null 2>&1; then
    echo "not tried: top in a terminal: no pseudo-terminal can be had here"
else
    # In a terminal: it draws, takes keys, and leaves at q.
    (sleep 1; printf k; sleep 0.5; printf q) | TERM=xterm timeout 100 script -qec "'$wattshare' top --interval 0.2" /dev/null >"$tmp/screen" || fail "top in a terminal"
    grep -q rtx3070 "$tmp/screen" && grep -q 'q quit' "$tmp/screen" || fail "top draws nothing"
    ok "top in a terminal"
fi
"$wattshare" top --batch --count 1 --interval 0.3 >"$tmp/top" || fail "top --count 1"
grep -q ' [1-9][0-9.]* commands/s' "$tmp/top" || { cat "$tmp/top"; fail "top --count 1 has no rates"; }
LC_ALL=C.UTF-8 "$wattshare" top --batch --count 3 --interval 0.2 >"$tmp/top.strips" || fail "top with strips"
grep -q '^ *W |.*| 0 to [0-9]* W    SMs |.*| 0 to 100 %$' "$tmp/top.strips" || { cat "$tmp/top.strips"; fail "top has no strips"; }
ok "top --batch"
kill "$p3"
wait "$p3" 2>/dev/null || true
wait_empty

# ---- the SM map ----
status_json | sed -n '/"sm_clients"/,/]/p' | grep -c '^ *0,\{0,1\}$' >"$tmp/n"
[ "$(cat "$tmp/n")" = 52 ] || fail "idle SMs are not shown as idle: $(cat "$tmp/n") of 52"
ok "status: SM map"
for bad in "top --interval 0" "top --count 3" "trace --duration x" "trace more" "top more"; do
    r=0
    # shellcheck disable=SC2086
    "$wattshare" $bad >/dev/null 2>&1 || r=$?
    [ $r = 2 ] || fail "wattshare $bad: status $r instead of 2"
done
ok "wrong options"
