#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Decodes and runs what is in the parser's and the interpreter's corpora. It fails if the decoder or
# the interpreter crashes or, with sanitizers, does what C leaves undefined.
set -eu
srcdir=${srcdir:-.}
timeout 120 tests/fuzz/fuzz_exec "$srcdir/tests/corpus/ptx" "$srcdir/tests/corpus/exec" "$srcdir"/tests/ptx_run/*.ptx
