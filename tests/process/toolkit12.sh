#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs programs built with a toolkit before CUDA 13, and before CUDA 12. It fails if a function
# whose parameters have changed since is not read in its older form. The shared runtime is never
# loaded (there is none of that name), and the static one never runs.
. "${srcdir:-$(dirname "$0")/../..}/tests/process/lib.sh"
start_daemon --gpus rtx3070
mkdir "$tmp/lib"
ln -s "$build/tests/cuda/rt12_stub.so" "$tmp/lib/libcudart.so.12"
for program in rt12_shared rt12_static rt11_static; do
    LD_LIBRARY_PATH=$tmp/lib task=$program client "$build/tests/cuda/$program" >"$tmp/out" 2>&1 || { cat "$tmp/out" >&2; fail "$program"; }
    grep -q "^PASS ${program%_*}" "$tmp/out" || fail "$program said no PASS"
    ok "$program: $(cat "$tmp/out")"
done
wait_empty
ok "nothing is left"
