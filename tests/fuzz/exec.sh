#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Decodes and runs what the corpus of the parser holds, and the interpreter's own.
set -eu
srcdir=${srcdir:-.}
timeout 120 tests/fuzz/fuzz_exec "$srcdir/tests/corpus/ptx" "$srcdir/tests/corpus/exec" "$srcdir"/tests/ptx_run/*.ptx
