#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run by `make bundle`. Makes a relocatable archive of programs, their shared libraries and the
# script that runs them on a machine with a GPU. Usage, in the top of the build tree: bundle.sh
# NAME; makes NAME.tar.xz of at most 40 MiB.
set -eu
name=$1
src=$(cd "${srcdir:-.}" && pwd)
limit_bytes=$((40 << 20))
rm -rf "$name" "$name.tar.xz"
mkdir -p "$name/lib/gcc" "$name/cli" "$name/backend" "$name/frontend/wattshare-driver" "$name/tests/device" "$name/tests/gpu" "$name/tests/cuda/nv" "$name/device/worker" "$name/bench"
# Whether the C library brings it: the other machine has its own, which fits its other parts.
of_c_library() {
    case ${1##*/} in
    ld-linux* | libc.so* | libm.so* | libmvec.so* | libdl.so* | libpthread.so* | librt.so* | libresolv.so* | libutil.so* | libanl.so* | libnsl.so* | libnss_*) return 0 ;;
    esac
    return 1
}
# bring LIBRARY: into lib/; GCC's own into lib/gcc, for systems that have none. Where there is one
# it may be newer, and the system's other libraries may need that.
bring() {
    to=$name/lib
    case ${1##*/} in
    libcuda* | libnvidia*) return ;;
    libstdc++.so* | libgcc_s.so*) to=$name/lib/gcc ;;
    esac
    of_c_library "$1" || [ -e "$to/${1##*/}" ] || cp -L "$1" "$to/"
}
put() { # put FILE…: stripped, at the same place
    for f in "$@"; do
        cp "$f" "$name/$f"
        strip --strip-unneeded "$name/$f" 2>/dev/null || true
    done
}
mkdir -p "$name/tests/mock"
put tests/mock/libcuda.so.1 tests/mock/libnvidia-ml.so.1
put device/worker/wattshare-gpu-worker tests/device/worker bench/bench_worker cli/wattshare backend/wattshared frontend/libwattshare.so tests/device/conformance tests/device/keep tests/device/pair tests/gpu/probe tests/gpu/cublas
mkdir -p "$name/frontend/gate/wattshare-gate"
put frontend/gate/libwattshare-gate.so
for l in libcuda.so.1 libcuda.so; do ln -s ../libwattshare-gate.so "$name/frontend/gate/wattshare-gate/$l"; done
for l in libcuda.so.1 libcuda.so; do ln -s ../libwattshare.so "$name/frontend/wattshare-driver/$l"; done
for p in tests/cuda/drv_*; do
    case $p in *.*) ;; *) [ ! -x "$p" ] || put "$p" ;; esac
done
cp -r "$src/tests/cuda/ptx" "$name/tests/cuda/ptx"
# With their symbols: a static runtime is found by them.
for p in tests/cuda/nv/*_static; do
    [ -x "$p" ] || continue
    cp "$p" "$name/$p"
    strip --strip-debug "$name/$p" 2>/dev/null || true
done
[ ! -f tests/cuda/nv/sassonly.ptx ] || cp tests/cuda/nv/sassonly.ptx "$name/tests/cuda/nv/"
cp "$src/tests/gpu/run" "$src/tests/gpu/plan.md" "$src"/tests/gpu/*.sh "$name/tests/gpu/"
rm -f "$name/tests/gpu/bundle.sh" "$name/tests/gpu/mock.sh" "$name/tests/gpu/rehearse.sh"
mkdir -p "$name/conf"
cp -r "$src/conf/gpu.d" "$name/conf/gpu.d"
cp "$src/LICENSE" "$name/"
# What they load, but for the C library's own parts and the driver's.
for p in device/worker/wattshare-gpu-worker cli/wattshare backend/wattshared frontend/libwattshare.so tests/device/conformance tests/gpu/probe; do
    ldd "$p" | sed -n 's/.* => \(\/[^ ]*\).*/\1/p'
done | sort -u | while read -r lib; do
    bring "$lib"
done
# libzmq is loaded by the client library at run time.
for d in /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib; do
    [ ! -e "$d/libzmq.so.5" ] || { cp -L "$d/libzmq.so.5" "$name/lib/"; break; }
done
ldd "$name/lib/libzmq.so.5" 2>/dev/null | sed -n 's/.* => \(\/[^ ]*\).*/\1/p' | while read -r lib; do
    bring "$lib"
done
cat >"$name/README" <<'END'
Unpack, change into this directory, and run:   sh tests/gpu/run -o DIRECTORY
It takes less than five minutes, sets nothing on the GPU, and leaves results.tar.gz and summary.txt in
DIRECTORY. Run again, it goes on where it stopped. tests/gpu/plan.md says what each part is for.
END
XZ_OPT=-9 tar -cJf "$name.tar.xz" "$name" # the runtime is in each of the programs: a large window
bytes=$(stat -c %s "$name.tar.xz")
rm -rf "$name"
echo "$name.tar.xz: $((bytes >> 10)) KiB"
[ "$bytes" -le "$limit_bytes" ] || { echo "bundle: larger than 40 MiB" >&2; exit 1; }
