// SPDX-License-Identifier: Apache-2.0
/* Division by a number that is known before the kernel runs. With s = ceil(log2 n) and magic =
 * ceil(2^(31+s) / n), which is below 2^32, a * magic / 2^(31+s) rounded down is a / n for all a
 * below 2^31 (Granlund and Montgomery, 1994, theorem 4.2: the error of magic, below n, must be at
 * most 2^s). */
#include "ptx/passes/pass.h"

static void divide_by(uint32_t n, uint32_t *ret_magic, uint32_t *ret_shift)
{
    uint32_t s = 0;
    while ((UINT64_C(1) << s) < n)
        s++;
    *ret_magic = (uint32_t)(((UINT64_C(1) << (31 + s)) + n - 1) / n);
    *ret_shift = s;
}

bool ws_ptx_shape_set(struct ws_ptx_shape *s, const uint32_t n[3])
{
    uint64_t total = (uint64_t)n[0] * n[1];
    total = total <= INT32_MAX ? total * n[2] : UINT64_MAX;
    *s = (struct ws_ptx_shape){.n = {n[0], n[1], n[2]}};
    if (!total || total > INT32_MAX)
        return false;
    s->total = (uint32_t)total;
    for (int d = 0; d < 2; d++)
        divide_by(n[d], &s->by[d].magic, &s->by[d].shift);
    return true;
}
