#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/package.sh [FOLDER]: builds the Debian package from what is committed, has lintian read it,
# and installs, uses and purges it in a clean Debian made by debootstrap; then boots that with its
# own systemd (tests/boot.sh). Needs root, the packages debootstrap, lintian, debhelper and those of
# quickstart, and a Debian mirror; takes some minutes. FOLDER keeps the packages and the Debian for
# the next run. Not part of `make check`.
set -eu
src=$(cd "$(dirname "$0")/.." && pwd)
work=${1:-$(mktemp -d "${TMPDIR:-/tmp}/wattshare-package.XXXXXX")}
mkdir -p "$work"
work=$(cd "$work" && pwd)
root=$work/root
mirror=${MIRROR:-http://deb.debian.org/debian}
say() { echo "package: $*"; }
die() { echo "package: FAIL: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || die "this needs root, for debootstrap and chroot"
cleanup() {
    [ ! -d "$root/proc/self" ] || umount "$root/proc" 2>/dev/null || true
    [ $# != 0 ] || [ -n "${keep:-}" ] || rm -rf "$work"
}
keep=${1:-}
trap cleanup EXIT

# ---- build; with REUSE=1 the packages that are in FOLDER are taken ----
if [ -z "${REUSE:-}" ]; then
    rm -rf "$work/wattshare"
    mkdir "$work/wattshare"
    git -C "$src" archive HEAD | tar -x -C "$work/wattshare"
    say "dpkg-buildpackage"
    (cd "$work/wattshare" && DEB_BUILD_OPTIONS="parallel=${JOBS:-2} ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage -b -us -uc >"$work/build.log" 2>&1) ||
        { tail -n 40 "$work/build.log" >&2; die "dpkg-buildpackage"; }
fi
deb=$(ls "$work"/wattshare_*_amd64.deb)
say "$(basename "$deb"): $(du -k "$deb" | cut -f1) KiB"
slurm=$(ls "$work"/wattshare-slurm_*_amd64.deb)
dpkg-deb -c "$slurm" | awk '{ print $6 }' >"$work/slurm.files"
for f in slurm/wattshare.so slurm/job_submit.lua slurm/wattshare-node sbin/wattshare-planner sbin/wattshare-suspend sbin/wattshare-resume \
    system/wattshare-planner.service man8/wattshare-slurm.8.gz man8/wattshare-planner.8.gz man8/wattshare-suspend.8.gz \
    man8/wattshare-resume.8.gz; do
    grep -q "/$f\$" "$work/slurm.files" || die "$(basename "$slurm") has no $f"
done
! dpkg-deb -c "$deb" | grep -E 'planner|slurm(/|\.8)' || die "$(basename "$deb") has what belongs to $(basename "$slurm")"

# ---- lintian ----
lintian --tag-display-limit 0 "$work"/wattshare_*.changes >"$work/lintian.log" 2>&1 || true
cat "$work/lintian.log"
! grep -q '^E:' "$work/lintian.log" || die "lintian has errors"
say "lintian: no errors, $(grep -c '^W:' "$work/lintian.log" || true) warnings"

# ---- a clean Debian ----
if [ ! -d "$root/etc" ]; then
    say "debootstrap"
    debootstrap --variant=minbase bookworm "$root" "$mirror" >"$work/debootstrap.log" 2>&1 || { tail -n 20 "$work/debootstrap.log" >&2; die "debootstrap"; }
fi
in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # no service starts in here
chmod +x "$root/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
[ ! -f /etc/apt/apt.conf.d/99proxy ] || cp /etc/apt/apt.conf.d/99proxy "$root/etc/apt/apt.conf.d/"
mount -t proc proc "$root/proc" 2>/dev/null || say "no /proc in the new root"
in_root apt-get update -qq >"$work/apt.log" 2>&1 || { tail -n 5 "$work/apt.log" >&2; die "apt-get update"; }
# What the package needs is installed first: then what it leaves can be told.
in_root apt-get install -y -qq --no-install-recommends systemd $(dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed 's/(.*//; s/|.*//' | tr '\n' ' ') >>"$work/apt.log" 2>&1 ||
    { tail -n 10 "$work/apt.log" >&2; die "what the package needs can't be had"; }
files() { (cd "$root" && find . -xdev -path ./proc -prune -o -path ./var/log -prune -o -path ./var/cache -prune -o -path ./tmp -prune -o -print | sort); }
in_root dpkg --purge wattshare >/dev/null 2>&1 || true
files >"$work/before"

# ---- install, use ----
cp "$deb" "$root/tmp/wattshare.deb"
in_root apt-get install -y -qq --no-install-recommends /tmp/wattshare.deb >"$work/install.log" 2>&1 || { cat "$work/install.log" >&2; die "install"; }
in_root getent passwd wattshare >/dev/null || die "no user wattshare"
in_root getent group wattshare >/dev/null || die "no group wattshare"
in_root wattshared --check || die "the shipped configuration is wrong"
in_root systemd-analyze verify --man=no /lib/systemd/system/wattshared.service /lib/systemd/system/wattshared.socket >"$work/verify.log" 2>&1 || { cat "$work/verify.log" >&2; die "systemd-analyze verify"; }
[ -L "$root/etc/systemd/system/sockets.target.wants/wattshared.socket" ] || die "wattshared.socket is not enabled"
[ -L "$root/etc/systemd/system/multi-user.target.wants/wattshared.service" ] || die "wattshared.service is not enabled"
# The daemon as its user, a client through the library, and the commands.
in_root sh -eu -c '
    install -d -o wattshare -g wattshare /run/wattshare
    setpriv --reuid wattshare --regid wattshare --clear-groups wattshared >/tmp/daemon.log 2>&1 & pid=$!
    i=0
    until wattshare status >/tmp/status 2>/dev/null; do i=$((i + 1)); [ $i -lt 50 ] || { cat /tmp/daemon.log; exit 1; }; sleep 0.1; done
    [ "$(stat -c %G:%a /run/wattshare/wattshared.sock)" = wattshare:660 ] || { echo "the socket is $(stat -c %U:%G:%a /run/wattshare/wattshared.sock)"; exit 1; }
    wattshare top --batch --count 1 >/dev/null
    wattshare run -- true
    setpriv --reuid nobody --regid nogroup --clear-groups wattshare status 2>/tmp/denied && { echo "nobody was let in"; exit 1; }
    grep -q "Permission denied" /tmp/denied
    setpriv --reuid nobody --regid nogroup --groups wattshare wattshare status >/dev/null || { echo "the group is not let in"; exit 1; }
    kill -TERM $pid
    wait $pid
    rm -rf /run/wattshare' || die "the installed daemon"
[ -x "$root/usr/libexec/wattshare/wattshare-gpu-worker" ] || die "no wattshare-gpu-worker"
for page in wattshare.1 wattshare-top.1 wattshare-run.1 wattshared.8 wattshared.conf.5; do
    [ -n "$(find "$root/usr/share/man" -name "$page.gz")" ] || die "no manual page $page"
done
say "installed, used"

# ---- purge ----
in_root apt-get purge -y -qq wattshare >"$work/purge.log" 2>&1 || { cat "$work/purge.log" >&2; die "purge"; }
rm -f "$root"/tmp/wattshare.deb
files >"$work/after"
# The user stays, as Debian has it; so may its state.
diff "$work/before" "$work/after" | grep '^>' | grep -v -E '/var/lib/(dpkg|apt|systemd)|/run/systemd/systemd-units-load|/etc/(passwd|group|shadow|gshadow|subuid|subgid|\.pwd)|^---' >"$work/left" || true
[ ! -s "$work/left" ] || { cat "$work/left" >&2; die "purging leaves these"; }
say "purged; nothing is left but the user"

# ---- the same under a real systemd, where one can be booted ----
if [ -n "${BUILD:-}" ] && command -v systemd-nspawn >/dev/null; then
    umount "$root/proc" 2>/dev/null || true # the container has one of its own
    BUILD=$BUILD sh "$src/tests/boot.sh" "$root" "$deb"
else
    say "SKIPPED: no systemd was booted: that needs systemd-nspawn, and BUILD, a build tree with make check's programs"
fi
say "PASS"
