#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The devices' suite against the software GPU.
exec timeout 120 tests/device/conformance soft
