#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The papers' and authors' own results, recomputed: WATTSHARE_REFERENCE, or ../shared/reference beside the source tree. Without
# them: skipped.
set -eu
reference=${WATTSHARE_REFERENCE:-${srcdir:-.}/../shared/reference}
[ -d "$reference" ] || { echo "no reference data at $reference (WATTSHARE_REFERENCE names another place)"; exit 77; }
exec tests/reference/check "$reference"
