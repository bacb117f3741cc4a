#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails if the library exports a symbol that neither its table nor wattshare.h names, or does not
# export one that they name.
set -eu
src=${srcdir:-.}
lib=${top_builddir:-.}/frontend/libwattshare.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
{
    sed -n 's/^WS_[A-Z]*(\([A-Za-z0-9_]*\),.*/\1/p' "$src/frontend/interpose/entrypoints.def"
    sed -n 's/^[a-z0-9_]* \(wattshare_[a-z_]*\)(.*;$/\1/p' "$src/frontend/wattshare.h"
} | sort >"$tmp/table"
# Functions of libc are wrapped, not stood in for. A sanitized build has names of its own.
nm -D --defined-only "$lib" | awk '{print $3}' | grep -Ev '^(dlopen|dlsym|execve?|posix_spawnp?|(__x)?stat(64)?|__asan_.*|__odr_asan.*|__ubsan_.*|_init|_fini)$' | sort >"$tmp/exported"
[ "$(wc -l <"$tmp/table")" -gt 1000 ] || { echo "FAIL: the table has only $(wc -l <"$tmp/table") rows"; exit 1; }
diff "$tmp/table" "$tmp/exported" || { echo "FAIL: < in the table only, > exported only"; exit 1; }
echo "ok: $(wc -l <"$tmp/table") entry points"
