#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the devices' suite against the software GPU.
timeout 120 tests/device/conformance soft || exit 1
exec timeout 300 tests/device/pair soft
