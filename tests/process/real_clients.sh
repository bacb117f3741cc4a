#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs programs that others wrote: numba-cuda, Triton and tinygrad from PyPI, Halide from Debian,
# NVIDIA's NVRTC and nvJitLink. Each compares its results with NumPy's, with its own CPU target's,
# or with exact arithmetic. It fails if a result is wrong or if no kernel ran on the software GPU.
# What cannot be had is skipped by name; if nothing can be had, the test is skipped.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
[ -z "$asan" ] || skip "Python and its libraries are not built for AddressSanitizer"
cuda_home=${CUDA_HOME:-/usr/local/cuda}
skipped=
without() { # without NAME WHY
    echo "skipped: $1: $2" >&2
    skipped="$skipped $1"
}
# A folder for what pip installs: kept in the build tree, so that only the first run downloads.
venv=$build/tests/clients/venv
python_packages() {
    [ ! -e "$venv/complete" ] || return 0
    rm -rf "$venv"
    python3 -m venv "$venv" >"$tmp/pip" 2>&1 || return 1
    timeout 300 "$venv/bin/pip" install --no-input --no-compile --retries 1 numpy numba-cuda cuda-core tinygrad triton >>"$tmp/pip" 2>&1 || return 1
    : >"$venv/complete"
}
# kernels NAME COMMAND…: runs it, and sees that it said PASS and that kernels ran.
kernels() {
    name=$1
    shift
    before=$(status_value n_kernels)
    r=0
    task=$name client "$@" >"$tmp/out" 2>&1 || r=$?
    [ "$r" != 77 ] || { without "$name" "$(grep SKIP "$tmp/out")"; return 0; }
    [ "$r" = 0 ] && grep -q '^PASS ' "$tmp/out" || { cat "$tmp/out" >&2; fail "$name (status $r)"; }
    [ "$(status_value n_kernels)" -gt "$before" ] || fail "$name ran no kernel here"
    ok "$(grep '^PASS ' "$tmp/out"), $(($(status_value n_kernels) - before)) kernels"
}
start_daemon --gpus rtx3070

if [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import halide' 2>/dev/null; then
    kernels halide /usr/bin/python3 "$src/tests/clients/halide_client.py"
else
    without halide "no python3-halide here"
fi

if [ -e "$cuda_home/lib64/libnvrtc.so" ] && [ -e "$cuda_home/lib64/libnvJitLink.so" ]; then
    gcc -O2 -I"$cuda_home/include" -o "$tmp/nvrtc" "$src/tests/clients/nvrtc_client.c" -L"$cuda_home/lib64" \
        -Wl,-rpath,"$cuda_home/lib64" -L"$cuda_home/lib64/stubs" -lnvrtc -lnvJitLink -lcuda
    for mode in cubin ptx link lto; do kernels "nvrtc-$mode" "$tmp/nvrtc" $mode; done
else
    without nvrtc "no libnvrtc and libnvJitLink in $cuda_home"
fi

if python_packages; then
    if [ -e "$cuda_home/nvvm/libdevice" ] && [ -e "$cuda_home/lib64/libnvvm.so" ]; then
        CUDA_HOME=$cuda_home NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS=0 NUMBA_CACHE_DIR=$tmp/numba \
            kernels numba "$venv/bin/python" "$src/tests/clients/numba_client.py"
    else
        without numba "no libnvvm in $cuda_home"
    fi
    if command -v gcc >/dev/null; then
        TRITON_CACHE_DIR=$tmp/triton kernels triton "$venv/bin/python" "$src/tests/clients/triton_client.py"
    else
        without triton "no gcc, with which it builds its launcher"
    fi
    # It looks for the driver's file itself, where the dynamic linker would.
    mkdir "$tmp/driver"
    ln -s "$build/frontend/libwattshare.so" "$tmp/driver/libcuda.so.1"
    if [ -e "$cuda_home/lib64/libnvrtc.so" ]; then
        LD_LIBRARY_PATH=$tmp/driver:$cuda_home/lib64 DEV=CUDA XDG_CACHE_HOME=$tmp/cache \
            kernels tinygrad "$venv/bin/python" "$src/tests/clients/tinygrad_client.py"
    else
        without tinygrad "no libnvrtc in $cuda_home"
    fi
else
    without "numba triton tinygrad" "PyPI gave no packages: $(tail -n 1 "$tmp/pip")"
fi
[ "$n_checks" != 0 ] || skip "none of them is here:$skipped"
wait_empty
ok "nothing is left"
