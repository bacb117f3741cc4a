#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the inputs of fuzz targets reach, room by room: tests/fuzz/coverage.sh NAME…
# The targets are those that ./dev fuzz has built, their inputs the corpora and what earlier runs
# have kept. For each room it prints how many functions and how many edges of the code inputs
# reach, of those that are linked into the targets. A function counts as the target that reaches
# most of it has it. build/fuzz/coverage has the same for each file and each function.
set -eu
cd "$(dirname "$0")/../.."
command -v llvm-symbolizer >/dev/null || { echo "coverage: skipped: this needs llvm-symbolizer, which tells functions' files" >&2; exit 77; }
mkdir -p build/fuzz/coverage
for name; do
    seeds=tests/corpus/$name
    [ "$name" != passes ] || seeds="tests/corpus/exec tests/corpus/ptx"
    mkdir -p "build/fuzz/corpus/$name"
    # shellcheck disable=SC2086
    "build/fuzz/tests/fuzz/fuzz_$name" -runs=0 -print_coverage=1 "build/fuzz/corpus/$name" $seeds 2>&1 |
        sed -n 's|^[UN]*COVERED_FUNC: hits: [0-9]* edges: \([0-9]*\)/\([0-9]*\) \([^ ]*\) .*/build/fuzz/\.\./\.\./\([^:]*\):[0-9]*$|\4 \3 \1 \2|p' \
            >"build/fuzz/coverage/$name"
done
# Of each function the most that a target reaches: file, function, edges reached, edges.
cd build/fuzz/coverage
awk '{ f = $1 " " $2; if ($3 >= reached[f]) reached[f] = $3; all[f] = $4 }
    END { for (f in all) print f, reached[f] + 0, all[f] }' "$@" | sort >functions
sums() { # sums FIELD: by what the awk expression makes of a file
    awk "{ k = $1 }"'
        { n[k]++; hit[k] += $3 > 0; reached[k] += $3; all[k] += $4 }
        END { for (k in n) printf "%-28s %5d of %5d functions  %6d of %6d edges  %3d %%\n", k, hit[k], n[k],
                  reached[k], all[k], all[k] ? 100 * reached[k] / all[k] : 100 }' functions | sort
}
# shellcheck disable=SC2016
sums '$1' >files
# shellcheck disable=SC2016
sums 'substr($1, 1, match($1, "/[^/]*$") - 1)'
sums '"all"'
