#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz targets for PTX, fat binaries, the linker and the passes over their corpora and over
# the fixtures. It fails if one of them crashes or, with sanitizers, does what C leaves undefined.
set -eu
srcdir=${srcdir:-.}
timeout 120 tests/fuzz/fuzz_ptx "$srcdir/tests/corpus/ptx" "$srcdir"/tests/ptx/*.ptx "$srcdir/tests/ptx/err"
timeout 120 tests/fuzz/fuzz_fatbin "$srcdir/tests/corpus/fatbin"
timeout 120 tests/fuzz/fuzz_cubin "$srcdir/tests/corpus/cubin" "$srcdir/tests/corpus/fatbin"
timeout 120 tests/fuzz/fuzz_link "$srcdir/tests/corpus/link" "$srcdir/tests/corpus/ptx" "$srcdir/tests/corpus/fatbin"
timeout 120 tests/fuzz/fuzz_passes "$srcdir/tests/corpus/exec" "$srcdir/tests/corpus/ptx" "$srcdir"/tests/ptx/*.ptx
