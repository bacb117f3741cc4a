#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Preloads the library into programs of many kinds, without a daemon. It fails if a program that
# uses CUDA is not redirected, if another program is not left alone, or if a message is missing or
# wrong.
set -eu
top=$(cd "${top_builddir:-.}" && pwd)
lib=$top/frontend/libwattshare.so
here=$top/tests/process
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
export WATTSHARE_SOCKET=ipc://$tmp/none
sanitized=
if nm -D "$lib" | grep -q __asan_init; then # the sanitizer must come first
    lib=$(gcc -print-file-name=libasan.so):$lib
    export ASAN_OPTIONS=detect_leaks=0
    sanitized=1 # its own dlopen() stands before ours and hides the caller
fi
fails=0
check() { # check DESCRIPTION COMMAND…
    what=$1
    shift
    if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; fails=$((fails + 1)); fi
}
with() { LD_PRELOAD=$lib timeout 100 "$@" >"$tmp/out" 2>"$tmp/err"; }
lacks() { ! grep -q "$1" "$2"; }
exits() { want=$1; shift; set +e; with "$@"; got=$?; set -e; [ $got -eq $want ]; }

# The lookalikes work as they should without us, else nothing below means anything.
"$here/lookalike_program" "$here/lookalike_library.so" >"$tmp/out"
check "a lookalike alone runs its own runtime" grep -q 'NATIVE __cudaRegisterFatBinary' "$tmp/out"

check "static runtime: runs" with "$here/lookalike_program" "$here/lookalike_library.so"
check "static runtime: nothing native in program or library, nor in their constructors" lacks NATIVE "$tmp/out"
check "static runtime: the program's calls return an error" grep -Eq '^program [1-9]' "$tmp/out"
check "static runtime: a library's calls return an error" grep -Eq '^library [1-9]' "$tmp/out"
check "static runtime: a library does not see the program's last error" \
    grep -q "^error before the library's call 0\$" "$tmp/out"
check "static runtime: each has its own last error" grep -Eq '^errors afterwards [1-9][0-9]* [1-9]' "$tmp/out"
check "static runtime: the last error is cleared" grep -q '^errors at last 0$' "$tmp/out"
check "static runtime: a library loaded again" grep -Eq '^library again [1-9]' "$tmp/out"
check "no daemon: one line that names the endpoint and the cure" \
    sh -c "[ \$(grep -c . '$tmp/err') -eq 1 ] && grep -q 'no daemon at ipc://$tmp/none.*wattshare run' '$tmp/err'"

check "WATTSHARE_LOG takes the line" sh -c "WATTSHARE_LOG='$tmp/log' LD_PRELOAD='$lib' '$here/lookalike_program' >/dev/null 2>'$tmp/err'
    grep -q 'no daemon' '$tmp/log' && [ ! -s '$tmp/err' ]"

if command -v strip >/dev/null; then
    strip -o "$tmp/stripped" "$here/lookalike_program"
    check "stripped program: refused" exits 126 "$tmp/stripped"
    check "stripped program: named, with the cure" grep -q "$tmp/stripped.*-cudart shared" "$tmp/err"
    strip -o "$tmp/lib.so" "$here/lookalike_library.so"
    check "stripped library: the program runs" with "$here/driver_user" stranger "$tmp/lib.so"
    [ "$sanitized" ] || check "stripped library: its runtime gets no driver" grep -q 'stranger 0' "$tmp/out"
    [ "$sanitized" ] || check "stripped library: named" grep -q "$tmp/lib.so.*-cudart shared" "$tmp/err"
fi

# A real one, where nvcc is.
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if [ -x "$nvcc" ]; then
    cat >"$tmp/k.cu" <<'CU'
#include <cstdio>
__global__ void k(int *p) { *p = 1; }
int main() { int n = 7; cudaError_t e = cudaGetDeviceCount(&n); k<<<1, 1>>>(0); printf("error %d launch %d\n", e, cudaGetLastError()); }
CU
    "$nvcc" -c -o "$tmp/k.o" "$tmp/k.cu" >/dev/null # once: it takes longer than all the checks
    "$nvcc" -o "$tmp/k" "$tmp/k.o" >/dev/null
    check "nvcc's static runtime: runs" with "$tmp/k"
    check "nvcc's static runtime: asked for our daemon" grep -q "no daemon at ipc://$tmp/none" "$tmp/err"
    check "nvcc's static runtime: got CUDA's error" grep -Eq 'error [1-9]' "$tmp/out"
    "$nvcc" -Xlinker -s -o "$tmp/ks" "$tmp/k.o" >/dev/null
    # The lookalike program above is one whose runtime is not known.
    check "nvcc's static runtime, stripped: runs" with "$tmp/ks"
    check "nvcc's static runtime, stripped: asked for our daemon" grep -q "no daemon at ipc://$tmp/none" "$tmp/err"
    check "nvcc's static runtime, stripped: got CUDA's error" grep -Eq 'error [1-9].* launch [1-9]' "$tmp/out"
    entry_points() { WS_DEBUG=redirect with "$1" && grep -o 'entry_points=[0-9]*' "$tmp/err"; }
    check "nvcc's static runtime, stripped: as many entry points as with symbols" \
        [ "$(entry_points "$tmp/k")" = "$(entry_points "$tmp/ks")" ]
    cat >"$tmp/h.cpp" <<'CPP'
#include <cstdio>
#include <cuda_runtime.h>
int main() { int n; printf("error %d\n", cudaGetDeviceCount(&n)); }
CPP
    "$nvcc" -c -o "$tmp/h.o" "$tmp/h.cpp" >/dev/null
    # not linked by nvcc, which would add what kernels need
    ${CXX:-g++} -s -o "$tmp/hs" "$tmp/h.o" "$(dirname "$nvcc")/../lib64/libcudart_static.a" -ldl -lrt -lpthread
    check "nvcc's static runtime, stripped, without kernels: runs" with "$tmp/hs"
    check "nvcc's static runtime, stripped, without kernels: asked for our daemon" \
        grep -q "no daemon at ipc://$tmp/none" "$tmp/err"
    "$nvcc" -cudart shared -o "$tmp/kd" "$tmp/k.o" >/dev/null
    LD_LIBRARY_PATH=$(dirname "$nvcc")/../lib64 check "nvcc's shared runtime: runs" with "$tmp/kd"
    check "nvcc's shared runtime: asked for our daemon" grep -q "no daemon at ipc://$tmp/none" "$tmp/err"
    "$nvcc" -shared -Xcompiler -fPIC -o "$tmp/libk.so" "$tmp/k.cu" -x cu - >/dev/null <<'CU'
extern "C" int library_call() { int n; volatile int code = cudaGetDeviceCount(&n); return code; }
extern "C" int library_error() { volatile int code = cudaGetLastError(); return code; }
CU
    check "nvcc's library, loaded later: runs" with "$here/lookalike_program" "$tmp/libk.so"
    check "nvcc's library, loaded later: got our error" grep -Eq '^library [1-9]' "$tmp/out"
    check "nvcc's library, loaded later: each has its own last error" \
        grep -Eq '^errors afterwards [1-9][0-9]* [1-9]' "$tmp/out"
    check "nvcc's library, loaded later: in time" lacks 'debugger' "$tmp/err"
else
    echo "no nvcc: its programs are not tried"
fi

check "driver by linking, none installed" with "$here/driver_user"
check "driver by linking: our cuInit" grep -q cuInit "$tmp/out"
for name in libcuda.so libcuda.so.1 /usr/lib/nowhere/libcuda.so.1 libcudart.so.13; do
    check "driver by dlopen $name" with "$here/driver_user" dlopen $name
done
check "a library whose variables have the driver's names: runs" \
    with "$here/driver_user" stranger "$here/own_variables.so"
check "a library whose variables have the driver's names: calls our cuInit" grep -q 'stranger 1' "$tmp/out"
[ "$sanitized" ] || check "dlopen keeps the caller's RUNPATH" with "$here/runpath_main"

# Programs that have nothing to do with CUDA.
check "sh" with sh -c 'echo hello; ls / >/dev/null; exec cat /dev/null'
check "sh: stdout is its own" sh -c "[ \"\$(cat '$tmp/out')\" = hello ]"
check "sh: nothing said" sh -c "[ ! -s '$tmp/err' ]"
check "no descriptor is left open" sh -c "[ \"\$(LD_PRELOAD=$lib ls /proc/self/fd)\" = \"\$(ls /proc/self/fd)\" ]"
check "no environment at all" env -i LD_PRELOAD="$lib" /bin/true
exit $((fails > 0))
