#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz target for whole sessions over its corpus. It fails if the daemon's core or the
# software GPUs crash, keep something of a client that has ended or, with sanitizers, do what C leaves
# undefined.
set -eu
srcdir=${srcdir:-.}
timeout 120 tests/fuzz/fuzz_session "$srcdir/tests/corpus/session"
