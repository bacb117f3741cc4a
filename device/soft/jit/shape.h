/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/shape.h - which rows have a known shape (plan.h). Private to the compiler. */
#ifndef WS_DEVICE_SOFT_JIT_SHAPE_H
#define WS_DEVICE_SOFT_JIT_SHAPE_H

#include "device/soft/jit/plan.h"

/* Sets shape and apart of all rows of @p. */
void ws_jit_find_shapes(struct ws_jit_plan *p);
/* Whether all lanes of a row of known shape hold the same. */
bool ws_jit_uniform(const struct ws_jit_row *r);
/* Whether @k is a vote of which all lanes of a whole warp get the same. */
bool ws_jit_is_even_vote(const struct ws_jit_plan *p, uint32_t k);
/* Whether a branch may part the lanes of a whole warp. */
bool ws_jit_may_part(const struct ws_jit_plan *p);
/* Micro-op @k may widen its first operand (cvt, mul.wide, mad.wide). Distances between lanes then
 * stay only where no lane's value wraps. Return: whether that must be looked at when it runs;
 * *ret_row: the operand; *is_signed: how it is widened. */
bool ws_jit_may_wrap(const struct ws_jit_plan *p, uint32_t k, uint32_t *ret_row, bool *is_signed);

#endif
