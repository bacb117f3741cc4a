// SPDX-License-Identifier: Apache-2.0
/* The vector core for AVX-512 (F, BW, DQ, VL). */
#include <stdbool.h>
static bool supported(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma");
}
#define WS_ISA      ws_isa_avx512
#define WS_ISA_NAME "avx512"
#include "device/soft/exec/core.inc"
