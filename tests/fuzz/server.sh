#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the fuzz targets for what the daemon reads, but for messages (protocol.sh), over their
# corpora: its configuration, single messages, ZeroMQ's protocol, the handoff socket and rings, and
# whole sessions on software GPUs. It fails if one crashes, keeps something of a client that has
# ended or, with sanitizers, does what C leaves undefined.
set -eu
srcdir=${srcdir:-.}
for name in config decode session side zmtp; do
    timeout 120 "tests/fuzz/fuzz_$name" "$srcdir/tests/corpus/$name"
done
