#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/boot.sh ROOT DEB: boots the Debian in the folder ROOT (made by tests/package.sh) with its
# own systemd in a container, installs the package there and uses the service as an administrator
# would. Needs root and systemd-nspawn, and BUILD (build/dev), a build tree whose test programs are
# run in there. ROOT is changed. Called by tests/package.sh.
set -eu
src=$(cd "$(dirname "$0")/.." && pwd)
root=$(cd "$1" && pwd)
deb=$2
build=$(cd "${BUILD:-$src/build/dev}" && pwd)
client=$build/tests/cuda/drv_matmul
log=$(mktemp "${TMPDIR:-/tmp}/wattshare-boot.XXXXXX")
say() { echo "boot: $*"; }
die() { echo "boot: FAIL: $*" >&2; exit 1; }
[ -x "$client" ] || die "no $client: make check builds it"
[ "$(id -u)" = 0 ] || die "this needs root"
rm -f "$root/usr/sbin/policy-rc.d" # services start in here
cp "$deb" "$root/root/wattshare.deb"
name=wattshare-boot-$$
systemd-nspawn -q -D "$root" --machine "$name" --register=no --keep-unit --boot --console=pipe --bind-ro="$src" --bind-ro="$build" </dev/null >"$log" 2>&1 &
nspawn=$!
init() { ps -o pid= --ppid "$nspawn" | head -n 1 | tr -d ' '; }
stop() {
    pid=$(init)
    [ -z "$pid" ] || kill -RTMIN+4 "$pid" 2>/dev/null || true # poweroff.target
    wait "$nspawn" 2>/dev/null || true
    rm -f "$log"
}
trap stop EXIT
in_it() { nsenter -t "$(init)" -a env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
until_true() { # until_true WHAT COMMAND…: within a minute
    what=$1
    shift
    i=0
    until "$@" >/dev/null 2>&1; do
        i=$((i + 1))
        [ $i -lt 600 ] || { in_it journalctl -u wattshared --no-pager -n 20 -o cat >&2 || true; die "$what"; }
        sleep 0.1
    done
}
is_up() { case $(in_it systemctl is-system-running) in running | degraded) true ;; *) false ;; esac; }
main_pid() { in_it systemctl show -P MainPID wattshared; }
until_true "systemd does not come up: $(tail -n 3 "$log")" is_up
say "systemd $(in_it systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p') is up"

# ---- install: socket and service run, nothing was said against it ----
in_it apt-get install -y -qq --no-install-recommends /root/wattshare.deb >"$log.apt" 2>&1 || { cat "$log.apt" >&2; die install; }
! grep -i -E 'could not|failed|error' "$log.apt" >&2 || die "installing has remarks"
rm -f "$log.apt"
in_it systemctl enable --now wattshared >/dev/null 2>&1 || die "enable --now"
[ "$(in_it systemctl is-active wattshared.socket wattshared.service | sort -u)" = active ] || die "socket and service do not both run"
in_it wattshare run -- "$client" | grep -q PASS || die "a client of the service"
in_it systemctl show -P StatusText wattshared | grep -q . || die "no status text"
[ "$(in_it systemctl show -P User wattshared)" = wattshare ] || die "not its own user"
say "installed; service and socket run; a client's result is right"

# ---- reload: a good file keeps the daemon, a bad one is refused whole ----
pid=$(main_pid)
in_it systemctl reload wattshared || die "reload"
in_it sh -c 'cp /etc/wattshare/wattshared.conf /root/good; echo "no_such_key = 1" >>/etc/wattshare/wattshared.conf'
! in_it systemctl reload wattshared 2>/dev/null || die "reload took a bad file"
in_it journalctl -u wattshared --no-pager -o cat | grep -q "wattshared.conf:[0-9]*: no such option" || die "the journal does not say what is wrong with the file"
in_it sh -c 'cat /root/good >/etc/wattshare/wattshared.conf'
in_it systemctl reload wattshared || die "reload, after the file was mended"
[ "$(main_pid)" = "$pid" ] || die "reload made another daemon"
say "reload: good file taken, bad one refused with its line, same daemon"

# ---- the journal has fields, not only text ----
in_it journalctl -u wattshared --no-pager -o json | grep -q '"WATTSHARE_TASK":"drv_matmul"' || die "no fields in the journal"

# ---- killed: comes back, on the same socket ----
in_it sh -c "kill -KILL $pid"
until_true "the daemon does not come back" in_it wattshare status
[ "$(main_pid)" != "$pid" ] || die "not killed"
in_it wattshare run -- "$client" | grep -q PASS || die "a client after the restart"
say "killed by SIGKILL: restarted, clients are served"

# ---- hung: the watchdog ends it ----
in_it sh -c 'mkdir -p /run/systemd/system/wattshared.service.d; printf "[Service]\nWatchdogSec=2\nWatchdogSignal=SIGKILL\nRestart=always\nRestartSec=0\n" >/run/systemd/system/wattshared.service.d/watchdog.conf
    systemctl daemon-reload; systemctl restart wattshared'
pid=$(main_pid)
in_it sh -c "kill -STOP $pid"
until_true "the watchdog does not bite" in_it sh -c '[ "$(systemctl show -P NRestarts wattshared)" -ge 1 ] && wattshare status'
[ "$(main_pid)" != "$pid" ] || die "the watchdog did not bite"
in_it sh -c 'rm -r /run/systemd/system/wattshared.service.d; systemctl daemon-reload'
say "stopped by SIGSTOP: the watchdog restarted it"

# ---- socket activation ----
in_it systemctl stop wattshared.service wattshared.socket
in_it systemctl start wattshared.socket
[ "$(in_it systemctl is-active wattshared.service)" = inactive ] || die "the service runs before its first client"
in_it wattshare run -- "$client" | grep -q PASS || die "the client that starts the daemon"
[ "$(in_it systemctl is-active wattshared.service)" = active ] || die "the socket did not start the service"
say "socket activation: the first client starts the daemon"

# ---- the helper that sets clocks: not on by itself; starts, and ends well ----
[ "$(in_it systemctl is-enabled wattshare-clocks.socket 2>/dev/null || true)" = disabled ] || die "the package has enabled wattshare-clocks"
in_it systemctl start wattshare-clocks.socket wattshare-clocks.service || die "wattshare-clocks does not start"
[ "$(in_it stat -c %U:%a /run/wattshare-clocks/socket)" = wattshare:600 ] || die "the clocks' socket is not wattshare's alone"
in_it systemctl stop wattshare-clocks.socket wattshare-clocks.service || die "wattshare-clocks does not stop"
[ "$(in_it systemctl show -P Result wattshare-clocks.service)" = success ] || die "wattshare-clocks did not end well"
say "wattshare-clocks: off until wanted, starts, ends well"

# ---- a service that is preloaded by a drop-in; wattshare@.service ----
unit=$(in_it find /usr/share/doc/wattshare /usr/lib/systemd /lib/systemd -name 'wattshare@.service*' | head -n 1)
[ -n "$unit" ] || die "no wattshare@.service in the package"
preload=$(in_it find /usr/share/doc/wattshare /usr/lib/systemd /usr/share/wattshare -name 'preload.conf*' | head -n 1)
[ -n "$preload" ] || die "no preload.conf in the package"
in_it sh -euc '
    client=$1 unit=$2 preload=$3
    take() { case $1 in *.gz) gzip -dc "$1" ;; *) cat "$1" ;; esac; }
    mkdir -p /etc/systemd/system/some.service.d /etc/wattshare/tasks
    printf "[Service]\nType=oneshot\nDynamicUser=yes\nExecStart=%s\n" "$client" >/etc/systemd/system/some.service
    take "$preload" >/etc/systemd/system/some.service.d/wattshare.conf
    case $unit in */systemd/system/wattshare@.service) ;; *) take "$unit" >/etc/systemd/system/wattshare@.service ;; esac
    printf "PROGRAM=%s\nARGS=\n" "$client" >/etc/wattshare/tasks/mine
    systemctl daemon-reload
    systemctl start some.service' sh "$client" "$unit" "$preload" || { in_it journalctl -u some.service --no-pager -n 10 -o cat >&2; die "a service with the drop-in"; }
in_it journalctl -u some.service --no-pager -o cat | grep -q PASS || die "the service with the drop-in did not run"
in_it journalctl -u wattshared --no-pager -o cat | grep -q "task=some " || die "the service's client did not come under its name"
in_it systemctl start wattshare@mine.service || die "wattshare@mine"
mine_done() { in_it journalctl -u wattshare@mine.service --no-pager -o cat | grep -q PASS; }
until_true "wattshare@mine.service does not run its program" mine_done
say "a preloaded service and wattshare@.service: right"

# ---- purge ----
in_it apt-get purge -y -qq wattshare >/dev/null 2>&1 || die purge
[ "$(in_it systemctl is-active wattshared.service)" != active ] || die "purged, and still runs"
! in_it sh -c 'ls -d /var/lib/wattshare /var/cache/wattshare /etc/wattshare/wattshared.conf /run/wattshare/wattshared.sock 2>/dev/null' || die "purging leaves these"
[ -z "$(in_it systemctl list-units --failed --no-legend --plain | grep -i watt || true)" ] || die "a unit failed"
say PASS
