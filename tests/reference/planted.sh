#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shows that the check of reference data can fail. Each row of planted.list plants one error in one
# source file, links the check with it, and expects differences in the reference file that the row
# names. The test fails if the planted error does not change the source or is not noticed. The
# Makefile says by WS_PLANTED_* how to compile one file and how to link the check.
set -eu
here=${srcdir:-.}
reference=${WATTSHARE_REFERENCE:-$here/../shared/reference}
[ -d "$reference" ] || { echo "no reference data at $reference (WATTSHARE_REFERENCE names another place)"; exit 77; }
[ "${WS_PLANTED_SKIP:-no}" = no ] || { echo "left to the build without sanitizers"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0 n=0
while IFS='|' read -r source expr data; do
    case $source in '' | '#'*) continue ;; esac
    n=$((n + 1))
    sed "$expr" "$here/$source" >"$dir/planted.c"
    if cmp -s "$here/$source" "$dir/planted.c"; then
        echo "$source: '$expr' changes nothing"
        bad=1
        continue
    fi
    $WS_PLANTED_COMPILE -I"$here/$(dirname "$source")" -w -c "$dir/planted.c" -o "$dir/planted.o"
    # The planted object stands before the archives, so that theirs isn't taken.
    $WS_PLANTED_LINK -o "$dir/check" "$dir/planted.o" $WS_PLANTED_OBJECTS
    if timeout 120 "$dir/check" --first "$reference/$data" >"$dir/out" 2>&1; then
        echo "$source: '$expr' was not seen in $data:"
        tail -n 3 "$dir/out"
        bad=1
    else
        grep -q ' [1-9][0-9]* different' "$dir/out" || { echo "$source: '$expr' on $data failed otherwise:"; tail -n 5 "$dir/out"; bad=1; }
    fi
done <"$here/tests/reference/planted.list"
echo "$n planted errors"
[ "$n" -gt 0 ] || bad=1
exit "$bad"
