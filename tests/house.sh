#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sees each measure of tools/house.py count what was planted.
set -eu
command -v python3 >/dev/null || { echo "house.sh: python3 is missing"; exit 77; }
command -v cc >/dev/null || { echo "house.sh: cc is missing"; exit 77; }
exec python3 "${srcdir:-$(dirname "$0")/..}/tools/house.py" --self-test
