#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the daemon under a service manager: readiness and watchdog, passed sockets, reloading under
# load, users' limits, and keys for TCP. It also fails if systemd's own tools find fault with the
# units.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
notify_socket=$build/tests/process/notify_socket
client=$cuda/drv_matmul

wait_for() { # wait_for TEXT FILE: at most 2 minutes
    i=0
    until grep -q -- "$1" "$2" 2>/dev/null; do
        i=$((i + 1))
        [ $i -lt 1200 ] || { cat "$2" >&2; fail "no \"$1\" in $2"; }
        sleep 0.1
    done
}

# ---- units ----
if command -v systemd-analyze >/dev/null; then
    mkdir -p "$tmp/units" "$tmp/bin"
    # The unit must name programs that are there; where they will be installed is not known here.
    for u in wattshared.service wattshare@.service wattshare-clocks.service wattshare-planner.service; do
        sed -e "s|^ExecStart=[^ ]*/wattshared|ExecStart=$wattshared|" -e "s|^ExecReload=[^ ]*/wattshared|ExecReload=$wattshared|" \
            -e "s|^ExecStart=[^ ]*/wattshare |ExecStart=$wattshare |" -e "s|=[^ ]*/wattshare-planner\$|=/bin/true|" -e "s|=[^ ]*/wattshare-clocks|=$build/backend/wattshare-clocks|" "$build/conf/systemd/$u" >"$tmp/units/$u"
    done
    cp "$src/conf/systemd/wattshared.socket" "$src/conf/systemd/wattshare-clocks.socket" "$tmp/units/"
    mkdir "$tmp/units/some.service.d"
    cp "$build/conf/systemd/preload.conf" "$tmp/units/some.service.d/wattshare.conf"
    printf '[Service]\nExecStart=/bin/true\n' >"$tmp/units/some.service"
    cp "$tmp/units/wattshare@.service" "$tmp/units/wattshare@task.service"
    # Manual pages of what is not installed yet are no fault of the unit.
    systemd-analyze verify --man=no "$tmp/units/wattshared.service" "$tmp/units/wattshared.socket" "$tmp/units/wattshare-clocks.service" "$tmp/units/wattshare-clocks.socket" \
        "$tmp/units/wattshare-planner.service" "$tmp/units/wattshare@task.service" "$tmp/units/some.service" >"$tmp/verify" 2>&1 || { cat "$tmp/verify" >&2; fail "systemd-analyze verify"; }
    ! grep -E 'wattshare|some\.service' "$tmp/verify" || fail "systemd-analyze verify has remarks"
    ok "systemd-analyze verify"
    # In tenths, as systemd 252 counts. What is not protected has its reason in the unit.
    for limit in wattshared=16 wattshare-clocks=17 wattshare-planner=14; do
        u=${limit%=*}.service
        systemd-analyze security --offline=true --threshold="${limit#*=}" --no-pager "$tmp/units/$u" >"$tmp/security" 2>&1 ||
            { tail -n 3 "$tmp/security" >&2; fail "the exposure of $u is above ${limit#*=} tenths"; }
        ok "systemd-analyze security: $u $(sed -n "s/.*level for $u: \([0-9.]*\).*/\1/p" "$tmp/security")"
        for key in MemoryMax OOMPolicy TasksMax LimitNOFILE RestartSec; do
            grep -q "^$key=" "$tmp/units/$u" || fail "$u has no $key="
        done
    done
    ok "units: limits of memory, tasks and files"
fi

# ---- readiness, watchdog, end ----
"$notify_socket" "$tmp/notify" >"$tmp/notify.out" &
notify_pid=$!
wait_for listening "$tmp/notify.out"
NOTIFY_SOCKET=$tmp/notify WATCHDOG_USEC=200000 start_daemon --gpus rtx3070
wait_for READY=1 "$tmp/notify.out"
wait_for WATCHDOG=1 "$tmp/notify.out"
n=$(grep -c WATCHDOG=1 "$tmp/notify.out")
begin=$(date +%s%3N)
i=0
until [ "$(grep -c WATCHDOG=1 "$tmp/notify.out")" -ge $((n + 10)) ]; do
    i=$((i + 1))
    [ $i -lt 1200 ] || fail "the watchdog is not fed"
    sleep 0.05
done
m=$(grep -c WATCHDOG=1 "$tmp/notify.out")
ms=$(($(date +%s%3N) - begin))
# every 100 ms; on a busy machine less often, never more (two may be in the file late)
[ $(((m - n) * 100)) -le $((ms + 200)) ] || fail "the watchdog was fed $((m - n)) times in $ms ms"
kill -HUP "$daemon_pid"
wait_for RELOADING=1 "$tmp/notify.out"
wait_for MONOTONIC_USEC= "$tmp/notify.out"
stop_daemon
wait_for STOPPING=1 "$tmp/notify.out"
kill "$notify_pid"
wait "$notify_pid" 2>/dev/null || true
[ "$(grep -c READY=1 "$tmp/notify.out")" = 2 ] || fail "READY=1 was not said twice: once at the start, once after reloading"
ok "notify: ready, watchdog, reloading, stopping"

# ---- socket activation ----
if command -v systemd-socket-activate >/dev/null; then
    s=$tmp/passed.sock
    # The tool opens sockets of one type in one run: an outer run passes the side socket on to the
    # inner one.
    cat >"$tmp/inner" <<EOF
#!/bin/sh
exec "$wattshared" --socket "ipc://$s" --gpus rtx3070 --exit-when-idle
EOF
    chmod +x "$tmp/inner"
    ASAN_OPTIONS=detect_leaks=1:exitcode=23 "$build/tests/process/listen_fds" stream "$s" seqpacket "$s.side" -- "$tmp/inner" >"$tmp/daemon.log" 2>&1 &
    pid=$!
    i=0
    until [ -S "$s" ] && [ -S "$s.side" ]; do i=$((i + 1)); [ $i -lt 1200 ] || fail "no sockets"; sleep 0.05; done
    WATTSHARE_SOCKET=ipc://$s
    export WATTSHARE_SOCKET
    client "$client" >"$tmp/out" || { cat "$tmp/out" >&2; fail "a client through passed sockets"; }
    r=0
    wait "$pid" || r=$?
    [ $r = 0 ] || { cat "$tmp/daemon.log" >&2; fail "the activated daemon ended with status $r"; }
    [ -S "$s" ] && [ -S "$s.side" ] || fail "the daemon removed sockets that are the manager's"
    ok "passed sockets: stream and side"
    rm -f "$s" "$s.side"

    # systemd's own tool, which passes the first kind; the daemon makes the side socket itself.
    systemd-socket-activate -l "$s" "$tmp/inner" >"$tmp/activate.log" 2>&1 &
    pid=$!
    i=0
    until [ -S "$s" ]; do i=$((i + 1)); [ $i -lt 1200 ] || fail "no socket of systemd-socket-activate"; sleep 0.05; done
    client "$client" >"$tmp/out" || { cat "$tmp/out" "$tmp/activate.log" >&2; fail "a client through systemd-socket-activate"; }
    r=0
    wait "$pid" || r=$?
    [ $r = 0 ] || { cat "$tmp/activate.log" >&2; fail "under systemd-socket-activate the daemon ended with status $r"; }
    ok "systemd-socket-activate"
    rm -f "$s" "$s.side"
    r=0
    "$build/tests/process/listen_fds" stream "$tmp/other" -- "$tmp/inner" >"$tmp/daemon.log" 2>&1 & pid=$!
    i=0
    until [ -S "$tmp/other" ]; do i=$((i + 1)); [ $i -lt 1200 ] || fail "no socket"; sleep 0.05; done
    WATTSHARE_SOCKET=ipc://$tmp/other timeout 1 "$wattshare" status >/dev/null 2>&1 || true
    wait "$pid" || r=$?
    [ $r = 1 ] || fail "a socket that is no endpoint was taken: status $r"
    grep -q "passed at $tmp/other" "$tmp/daemon.log" || fail "nothing said about the socket that is no endpoint"
    ok "a passed socket that is no endpoint is refused by name"
    unset WATTSHARE_SOCKET
fi

# ---- reload ----
conf=$tmp/reload.conf
echo 'log_level = info' >"$conf"
: >"$tmp/daemon.log"
start_daemon --gpus rtx3070 --config "$conf"
"$build/tests/process/session_client" sync >"$tmp/out" 2>"$tmp/err" & pid=$!
wait_for ready "$tmp/out"
printf 'log_level = info\nlimits {\n    max_streams = 0\n}\n' >"$conf"
kill -HUP "$daemon_pid"
wait_for "not reloaded" "$tmp/daemon.log"
grep -q "$conf:3: max_streams = 0 is out of range" "$tmp/daemon.log" || { cat "$tmp/daemon.log" >&2; fail "a bad file is not named with its line"; }
printf 'log_level = info\ngpus = {"t400"}\nheartbeat_s = 7\nuser "%s" {\n    max_clients = 2\n    memory_bytes = 104857600\n}\n' "$(id -u)" >"$conf"
kill -HUP "$daemon_pid"
wait_for "config: reloaded" "$tmp/daemon.log"
grep -q "waits for the next start: heartbeat_s" "$tmp/daemon.log" || fail "what waits for the next start is not said"
alive "$pid" || fail "a client was lost by reloading"
[ "$(n_connected)" = 1 ] || fail "a client was dropped by reloading"
ok "SIGHUP: a bad file changes nothing, a good one keeps clients"

# ---- users ----
"$build/tests/process/session_client" sync >"$tmp/out2" 2>"$tmp/err2" & pid2=$!
wait_for ready "$tmp/out2"
if client "$cuda/drv_matmul" >"$tmp/out3" 2>&1; then fail "a third client of a user with two was let in"; fi
grep -q "user $(id -u) has 2 clients and asks for 1 more, but may have 2 by the section for this user" "$tmp/out3" || { cat "$tmp/out3" >&2; fail "the refusal does not say why"; }
kill "$pid" "$pid2"
wait "$pid" "$pid2" 2>/dev/null || true
wait_empty
printf 'user "*" {\n    memory_bytes = 1048576\n}\n' >"$conf"
kill -HUP "$daemon_pid"
i=0
until [ "$(grep -c 'config: reloaded' "$tmp/daemon.log")" = 2 ]; do i=$((i + 1)); [ $i -lt 1200 ] || fail "not reloaded"; sleep 0.1; done
if client "$cuda/drv_matmul" >"$tmp/out3" 2>&1; then fail "a user got more memory than his limit"; fi
wait_for "refused client=.* user=$(id -u): .* bytes of device memory" "$tmp/daemon.log"
ok "limits of a user: clients, memory"
stop_daemon

# ---- keys ----
"$wattshare" keygen "$tmp/server" >"$tmp/server.text"
"$wattshare" keygen "$tmp/friend" >"$tmp/friend.text"
"$wattshare" keygen "$tmp/stranger" >"$tmp/stranger.text"
if "$wattshare" keygen "$tmp/friend" >/dev/null 2>&1; then fail "keygen overwrote a key"; fi
[ "$(stat -c %a "$tmp/friend")" = 600 ] || fail "the secret key is not for its owner alone"
port=$((20000 + $$ % 20000))
echo "endpoints = {\"ipc://$tmp/sock\", \"tcp://127.0.0.1:$port\"}" >"$conf"
r=0
"$wattshared" --check --config "$conf" 2>"$tmp/err" || r=$?
[ $r = 1 ] && grep -q 'curve_key' "$tmp/err" || { cat "$tmp/err" >&2; fail "tcp without keys was not refused"; }
printf 'curve_key = "%s"\ncurve_clients = "%s"\n' "$tmp/server" "$tmp/clients" >>"$conf"
echo "nosuchuser $(cat "$tmp/friend.text")" >"$tmp/clients"
r=0
"$wattshared" --check --config "$conf" 2>"$tmp/err" || r=$?
[ $r = 1 ] && grep -q "$tmp/clients:1: there is no user" "$tmp/err" || { cat "$tmp/err" >&2; fail "a wrong list of keys"; }
echo "$(id -u) $(cat "$tmp/friend.text")" >"$tmp/clients"
mkfifo "$tmp/ready"
ASAN_OPTIONS=detect_leaks=1:exitcode=23 "$wattshared" --config "$conf" --gpus rtx3070 --ready-fd 9 9>"$tmp/ready" >"$tmp/daemon.log" 2>&1 &
daemon_pid=$!
head -c1 "$tmp/ready" >/dev/null
rm "$tmp/ready"
WATTSHARE_SERVER_KEY=$tmp/server.pub
export WATTSHARE_SERVER_KEY
WATTSHARE_KEY=$tmp/friend "$wattshare" status --socket "tcp://127.0.0.1:$port" >"$tmp/out" || { cat "$tmp/daemon.log" >&2; fail "an allowed key was refused"; }
(WATTSHARE_SOCKET=tcp://127.0.0.1:$port WATTSHARE_KEY=$tmp/friend; export WATTSHARE_SOCKET WATTSHARE_KEY
 client "$client" >"$tmp/out" 2>&1) || { cat "$tmp/out" "$tmp/daemon.log" >&2; fail "a program over tcp with an allowed key"; }
WATTSHARE_SOCKET=ipc://$tmp/sock
export WATTSHARE_SOCKET
[ "$(status_value uid)" = "$(id -u)" ] || fail "over tcp the user is not who the key says"
if WATTSHARE_KEY=$tmp/stranger "$wattshare" status --socket "tcp://127.0.0.1:$port" >/dev/null 2>&1; then fail "a stranger's key was let in"; fi
wait_for "door: refused" "$tmp/daemon.log"
grep "door: refused" "$tmp/daemon.log" | grep -qF "key=$(cat "$tmp/stranger.text"):" || fail "who was refused is not in the log"
if "$wattshare" status --socket "tcp://127.0.0.1:$port" >/dev/null 2>"$tmp/err"; then fail "no key was let in"; fi
grep -q WATTSHARE_KEY "$tmp/err" || fail "what a client without a key lacks is not said"
echo "$(id -u) $(cat "$tmp/stranger.text")" >>"$tmp/clients"
kill -HUP "$daemon_pid"
wait_for "config: reloaded" "$tmp/daemon.log"
WATTSHARE_KEY=$tmp/stranger "$wattshare" status --socket "tcp://127.0.0.1:$port" >/dev/null || fail "a key added by reloading was refused"
chmod 644 "$tmp/friend"
if WATTSHARE_KEY=$tmp/friend "$wattshare" status --socket "tcp://127.0.0.1:$port" >/dev/null 2>"$tmp/err"; then fail "a secret key that all may read was used"; fi
ok "tcp: keys, the list of allowed ones, reloading it"
stop_daemon

# ---- metrics ----
port=$((20000 + ($$ + 7) % 20000))
printf 'gpus = {"t400"}\nmetrics = "127.0.0.1:%s"\ncatalog = {"%s/conf/gpu.d"}\n' "$port" "$src" >"$tmp/metrics.conf"
start_daemon --config "$tmp/metrics.conf"
"$build/tests/process/http_get" "$port" /metrics >"$tmp/page" || fail "the metrics of a configuration are dropped where --socket is given"
ok "metrics of a configuration beside --socket"
stop_daemon
start_daemon --gpus rtx3070,t400 --metrics "127.0.0.1:$port"
task='a "task"' client "$client" >"$tmp/out"
wait_empty
"$build/tests/process/http_get" "$port" /metrics >"$tmp/page" || fail "no page of metrics"
grep -q '^wattshare_task_kernels_total{user="'"$(id -u)"'",task="a \\"task\\""} [1-9]' "$tmp/page" || { cat "$tmp/page" >&2; fail "the task is not in the metrics"; }
grep -q '^wattshare_gpu_energy_joules_total{gpu="0"} [0-9]*\.[0-9]' "$tmp/page" || fail "no energy in the metrics"
if command -v promtool >/dev/null; then
    promtool check metrics <"$tmp/page" >"$tmp/promtool" 2>&1 || { cat "$tmp/promtool" >&2; fail "promtool check metrics"; }
    [ ! -s "$tmp/promtool" ] || { cat "$tmp/promtool" >&2; fail "promtool has remarks"; }
    ok "promtool check metrics"
fi
# The dashboard asks for metrics that there are, in queries that Prometheus can read.
python3 - "$src/conf/grafana/wattshare.json" "$tmp" <<'EOF' || fail "the dashboard for Grafana"
import json, re, sys
page = open(sys.argv[2] + "/page").read()
served = set(re.findall(r"^# TYPE (\w+) ", page, re.M))
queries = [t["expr"] for p in json.load(open(sys.argv[1]))["panels"] for t in p["targets"]]
asked = {name for q in queries for name in re.findall(r"\bwattshare_\w+", q)}
assert len(queries) > 10 and served, queries
assert asked <= served, asked - served
rules = [{"record": "q:%d" % i, "expr": q.replace("$__rate_interval", "1m")} for i, q in enumerate(queries)]
json.dump({"groups": [{"name": "dashboard", "rules": rules}]}, open(sys.argv[2] + "/rules.json", "w"))
EOF
ok "the dashboard's metrics"
if command -v promtool >/dev/null; then
    promtool check rules "$tmp/rules.json" >"$tmp/promtool" 2>&1 || { cat "$tmp/promtool" >&2; fail "a query of the dashboard"; }
    ok "the dashboard's queries: $(grep -o '[0-9]* rules found' "$tmp/promtool")"
fi
if "$build/tests/process/http_get" "$port" /other >/dev/null 2>"$tmp/err"; then fail "another path was served"; fi
grep -q "404" "$tmp/err" || fail "another path is not answered by 404"
# Those who connect and say nothing, or go before their answer, hold up nobody.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do "$build/tests/process/http_get" "$port" & pids="${pids:-} $!"; done
sleep 0.3
"$build/tests/process/http_get" "$port" /metrics >"$tmp/page" || fail "no page of metrics beside silent connections"
# shellcheck disable=SC2086
kill $pids 2>/dev/null || true
stop_daemon
ok "metrics over HTTP"
