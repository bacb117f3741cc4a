#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Kills the daemon while clients wait for it in every way there is. It fails if a client hangs or
# does not get an error soon.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
client=$build/tests/process/session_client

conf=
kill_under() { # kill_under DESCRIPTION MODE
    # shellcheck disable=SC2086
    start_daemon --gpus rtx3070 $conf
    for i in 1 2; do
        timeout 100 "$client" "$2" >"$tmp/out.$i" 2>"$tmp/err.$i" &
        eval "client_$i=$!"
    done
    i=0
    while [ "$(cat "$tmp"/out.? | grep -c ready)" != 2 ]; do
        i=$((i + 1))
        [ $i -lt 600 ] || { cat "$tmp"/err.?; fail "$1: the clients did not begin"; }
        sleep 0.1
    done
    sleep 0.2
    kill -KILL "$daemon_pid"
    wait "$daemon_pid" 2>/dev/null || true
    daemon_pid=
    for i in 1 2; do
        eval "pid=\$client_$i"
        r=0
        wait "$pid" || r=$?
        [ $r = 0 ] || { cat "$tmp/out.$i" "$tmp/err.$i" >&2; fail "$1: client ended with status $r"; }
        [ "$(grep -c 'lost the daemon' "$tmp/err.$i")" = 1 ] || fail "$1: not said once: $(cat "$tmp/err.$i")"
    done
    rm -f "$tmp"/out.? "$tmp"/err.? "$tmp/sock"
    ok "$1"
}
kill_under "killed under a synchronising call" sync
kill_under "killed under allocation" alloc
kill_under "killed under asynchronous launches" launch
kill_under "killed under a copy to the device" write
kill_under "killed under a wait for gates" gate
kill_under "killed under a copy from the device" read
"$wattshare" keygen "$tmp/server" >"$tmp/server.text"
"$wattshare" keygen "$tmp/client" >"$tmp/client.text"
echo "$(id -u) $(cat "$tmp/client.text") # this user" >"$tmp/clients"
printf 'curve_key = "%s"\ncurve_clients = "%s"\n' "$tmp/server" "$tmp/clients" >"$tmp/tcp.conf"
export WATTSHARE_KEY="$tmp/client" WATTSHARE_SERVER_KEY="$tmp/server.pub"
conf="--config $tmp/tcp.conf"
endpoint=tcp://127.0.0.1:$((20000 + $$ % 20000))
kill_under "killed under a synchronising call, tcp" sync
kill_under "killed under a copy from the device, tcp" read
