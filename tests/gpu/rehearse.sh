#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rehearses tests/gpu/run: on another system, from the bundle alone, with a driver that the device's
# authors did not write for it. The system is a root directory as debootstrap makes it. The driver
# is our own client library, over a second daemon with a software GPU; it listens to a variable of
# its own, since the programs' library has WATTSHARE_SOCKET. It takes root.
# Usage, in the top of a build tree after `make bundle`: rehearse.sh ROOT ARGUMENTS-OF-RUN…
# (--short: a software GPU is slow.) The results are in ROOT/root/results.
set -eu
root=${1:-}
[ -d "$root/usr/lib/x86_64-linux-gnu" ] || { sed -n '3,9s/^# //p' "$0" >&2; exit 2; }
shift
for archive in *-gpu.tar.xz; do :; done
[ -f "$archive" ] || { echo "rehearse: there is no bundle here; run make bundle" >&2; exit 2; }
lib=$root/usr/lib/x86_64-linux-gnu
rm -rf "$root/root/bundle" "$root/root/results"
mkdir -p "$root/root/bundle"
tar -C "$root/root/bundle" --strip-components=1 -xJf "$archive"
sed 's/WATTSHARE_SOCKET/WATTSHARE_DRIVER/g' "$root/root/bundle/frontend/libwattshare.so" >"$lib/libcuda.so.1"
ln -sf libcuda.so.1 "$lib/libcuda.so"
cp "$root/root/bundle/tests/mock/libnvidia-ml.so.1" "$lib/"
cp tests/process/far_addresses "$root/root/"
mounted=
finish() {
    for m in $mounted; do umount "$root/$m"; done
}
trap finish EXIT
trap 'exit 130' INT TERM
for m in proc dev; do
    mountpoint -q "$root/$m" || { mount --bind "/$m" "$root/$m" && mounted="$mounted $m"; }
done
chroot "$root" /bin/sh -s -- "$@" <<'S'
cd /root/bundle
ldconfig
socket=ipc:///root/inner
rm -f /root/inner
libs=$PWD/lib
ldconfig -p | grep -q 'libstdc++\.so\.6' || libs=$libs:$PWD/lib/gcc
LD_LIBRARY_PATH=$libs backend/wattshared --catalog conf/gpu.d --socket $socket --gpus rtx3070 >/root/inner.log 2>&1 &
inner=$!
i=0
while [ ! -S /root/inner ] && [ $i -lt 100 ]; do i=$((i + 1)); sleep 0.1; done
export WATTSHARE_DRIVER=$socket WATTSHARE_TIMEOUT_MS=60000
# The programs of the inner daemon get addresses behind those which the outer one asks for.
LD_LIBRARY_PATH=$libs /root/far_addresses /usr/lib/x86_64-linux-gnu/libcuda.so.1 || exit 1
r=0
sh tests/gpu/run -o /root/results "$@" || r=$?
kill $inner
wait $inner
exit $r
S
