/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/passes/fence.h - what the two halves of the fence share: which accesses a function makes
 * (fence_check.c), and the checks that are written before them (fence.c). Not for other rooms. */
#ifndef WS_PTX_PASSES_FENCE_H
#define WS_PTX_PASSES_FENCE_H

#include "ptx/ptx.h"

enum ws_fence_kind {
    WS_FENCE_NONE,    /* no access, or one that goes nowhere else */
    WS_FENCE_ACCESS,  /* of so many bytes */
    WS_FENCE_MATRIX,  /* of lines at a distance that a register may hold: wmma.load, wmma.store */
    WS_FENCE_REFUSED, /* can't be checked */
};
struct ws_fence_access {
    int32_t reg; /* of the address; -1: none, that is, an absolute or a variable's address */
    int32_t sym; /* variable, or -1 */
    int64_t offset;
    bool generic;
    uint64_t bytes;                      /* ACCESS */
    uint32_t lines, length, bits;        /* MATRIX: lines of so many elements of so many bits */
    const struct ws_ptx_operand *stride; /* MATRIX: from line to line, in elements; NULL: length */
};
enum ws_fence_kind ws_fence_classify(const struct ws_ptx_insn *i, struct ws_fence_access *ret);

/* Marks the functions with accesses that need checks, and those that call such, among all those
 * that @func may call.
 * @needs: [m->n_funcs], false. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_fence_needs(const struct ws_ptx_module *m, uint32_t func, bool *needs);

/* Which registers of @f hold an address in the launch's own page (%envreg) and nothing else. @ret:
 * [f->n_regs]. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_fence_env(const struct ws_ptx_func *f, bool *ret);
/* Whether an access through a register needs no check for that reason. */
bool ws_fence_env_access(const bool *env, const struct ws_fence_access *a);

#endif
