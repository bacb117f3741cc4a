#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs tests/gpu/run itself with the mock driver. It fails if a part fails. The script starts
# programs as users do, without a sanitizer's runtime, which a sanitized library would need first;
# its parts run with sanitizers in tests/device and tests/process/cuda.sh.
src=$(cd "$(dirname "$0")" && pwd)
if nm -D backend/wattshared 2>/dev/null | grep -q __asan_init; then
    echo "SKIP: programs are started without AddressSanitizer's runtime here"
    exit 77
fi
exec sh "$src/run" --mock --short --seconds 540
