#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Recomputes the papers' and their authors' own results, found by WATTSHARE_REFERENCE or in
# ../shared/reference beside the source tree. It fails if one differs. Without this data it is
# skipped.
set -eu
reference=${WATTSHARE_REFERENCE:-${srcdir:-.}/../shared/reference}
[ -d "$reference" ] || { echo "no reference data at $reference (WATTSHARE_REFERENCE names another place)"; exit 77; }
# Unit tests run the same code with sanitizers. The long files would take minutes.
if [ "${WS_PLANTED_SKIP:-no}" = yes ]; then
    [ -n "${WS_TEST_ALL:-}" ] || { echo "left to the build without sanitizers"; exit 77; }
    # shellcheck disable=SC2046
    exec tests/reference/check $(find "$reference" -type f ! -name '*.md' ! -name curves.csv ! -name 'percent*.json' \
        ! -name 'aggregate_*' ! -name headline.json ! -path '*/sbeet/shared.jsonl' ! -path '*/gcaps/shared.jsonl' | sort)
fi
if [ -z "${WS_TEST_ALL:-}" ]; then
    # Half of the time goes into means of many sets. Other files have single sets of the same kinds.
    echo "left out, unless WS_TEST_ALL=yes: sbeet/curves.csv and edl/sim/aggregate_offline.csv"
    # shellcheck disable=SC2046
    exec tests/reference/check --all-known $(find "$reference" -type f ! -name '*.md' ! -path '*/sbeet/curves.csv' \
        ! -path '*/edl/sim/aggregate_offline.csv' | sort)
fi
exec tests/reference/check --all-known "$reference"
