#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Asks the façades many questions from programs as gcc and nvcc build them: facade_driver.c through
# the driver, facade_runtime.cu in each way in which nvcc's code reaches the runtime. It fails if
# one of their checks fails. Without nvcc only the first one runs.
. "${srcdir:-.}/tests/process/lib.sh"
start_daemon --gpus rtx3070,t400
run() { # run DESCRIPTION COMMAND…
    what=$1
    shift
    client "$@" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "$what: status $?"; }
    grep -q '^checks=[1-9][0-9]* failed=0$' "$tmp/out" || { cat "$tmp/out"; fail "$what"; }
    ok "$what: $(grep '^checks=' "$tmp/out")"
    wait_empty
}
run "driver by dlsym" "$build/tests/process/facade_driver"

nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
if [ ! -x "$nvcc" ]; then
    echo "no nvcc: the runtime was not tested"
    exit 0
fi
compile() { # compile NAME OPTIONS…
    name=$1
    shift
    for u in facade_runtime facade_runtime2; do
        "$nvcc" -w -O1 "$@" -c -o "$tmp/$name.$u.o" "$src/tests/process/$u.cu" || fail "nvcc: $*"
    done
}
link() { # link PROGRAM NAME OPTIONS…
    program=$1 name=$2
    shift 2
    "$nvcc" "$@" -o "$tmp/$program" "$tmp/$name.facade_runtime.o" "$tmp/$name.facade_runtime2.o" || fail "nvcc: $*"
}
compile plain
link static plain -cudart static
link shared plain -cudart shared
compile ptsz -default-stream per-thread
link per_thread ptsz -cudart shared
compile legacy -D__NV_LEGACY_LAUNCH -Xcompiler -D__NV_LEGACY_LAUNCH
link older legacy
for p in static shared per_thread older; do
    run "runtime, $p" "$tmp/$p"
done
