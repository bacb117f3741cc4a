// SPDX-License-Identifier: Apache-2.0
/* The vector core for any x86-64. */
#include <stdbool.h>
static bool supported(void)
{
    return true;
}
#define WS_ISA      ws_isa_sse2
#define WS_ISA_NAME "sse2"
#include "device/soft/exec/core.inc"
