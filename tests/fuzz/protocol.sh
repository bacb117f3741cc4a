#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the protocol's fuzz target over its corpus, each input also cut short and with bytes changed,
# in the same way every time. It fails if the daemon's core crashes or, with sanitizers, does what C
# leaves undefined.
set -eu
top=${srcdir:-$(dirname "$0")/../..}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
for f in "$top"/tests/corpus/protocol/*; do
    n=$(wc -c <"$f")
    name=${f##*/}
    cp "$f" "$tmp/$name"
    for k in 1 2 3 4 5 6 7; do
        head -c $((n * k / 8)) "$f" >"$tmp/$name.cut$k"
    done
    # awk's rand is seeded: 8 variants with about one byte in 60 replaced
    od -An -v -tu1 -w1 "$f" | awk -v out="$tmp/$name" -v n="$n" '
        { b[NR] = $1 }
        END { srand(n); for (v = 0; v < 8; v++) { line = ""
            for (i = 1; i <= NR; i++) line = line sprintf("\\%03o", rand() < 1 / 60 ? int(rand() * 256) : b[i])
            print line > (out ".var" v ".esc") } }'
    for e in "$tmp/$name".var*.esc; do
        printf "$(cat "$e")" >"${e%.esc}"
        rm "$e"
    done
done
timeout 120 tests/fuzz/fuzz_protocol "$tmp"
