#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles kernels.cu again, as tests/unit/exec/test_nvcc.c needs it. Needs nvcc 13. The PTX is kept
# so that the test runs without nvcc.
set -e
cd "$(dirname "$0")"
build() { # name, options
    name=$1
    shift
    "${NVCC:-nvcc}" -ptx "$@" kernels.cu -o "$name.tmp"
    { echo "// SPDX-License-Identifier: Apache-2.0"; echo "// kernels.cu, compiled with $*"; grep -v '^//\|^[[:space:]]*//\|^$' "$name.tmp" | sed '/^\t*\.section/,/^\t}/d'; } >"kernels.$name.ptx"
    rm "$name.tmp"
}
build o3 -arch=compute_75
build debug -arch=compute_75 -Xcicc -O0
build fast -arch=compute_75 -use_fast_math
