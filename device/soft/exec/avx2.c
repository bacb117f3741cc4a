// SPDX-License-Identifier: Apache-2.0
/* The vector core for AVX2 with FMA (compiled with -mavx2 -mfma). */
#include <stdbool.h>
static bool supported(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#define WS_ISA      ws_isa_avx2
#define WS_ISA_NAME "avx2"
#include "device/soft/exec/core.inc"
