#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares with a CUDA toolkit, where there is one. It fails if the toolkit has a name that our
# table lacks, or if a layout or an error code differs from ours.
set -eu
src=${srcdir:-.}
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -f "$cuda/include/cuda_runtime_api.h" ] || { echo "SKIP: no CUDA toolkit at $cuda"; exit 77; }
command -v python3 >/dev/null || { echo "SKIP: no python3"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
python3 "$src/tools/entrypoints.py" "$cuda" >"$tmp/def"
diff "$src/frontend/interpose/entrypoints.def" "$tmp/def" || { echo "FAIL: < committed, > from $cuda: run tools/entrypoints.py"; exit 1; }
echo "ok: names of the toolkit"
${CC:-cc} -std=gnu11 -Wall -Werror -D_GNU_SOURCE -I"$src" -I"${top_builddir:-.}" -isystem "$cuda/include" -fsyntax-only \
    "$src/tests/process/facade_types.c" || { echo "FAIL: layouts or codes differ from the toolkit's"; exit 1; }
echo "ok: layouts and codes"
