#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/gpu/run itself, with the mock driver.
src=$(cd "$(dirname "$0")" && pwd)
exec timeout 200 sh "$src/run" --mock --short
