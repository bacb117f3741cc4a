/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/analysis/reach.h - the functions that a function may call, itself or through others. A call
 * through a register may come to every function of the program, but to none that a pass has added.
 * Threads: any; the module is only read. */
#ifndef WS_PTX_ANALYSIS_REACH_H
#define WS_PTX_ANALYSIS_REACH_H

#include "base/macros.h"
#include "ptx/ir.h"

/* For many searches in one module, which must not gain functions meanwhile. A search takes time in
 * proportion to what it finds. */
struct ws_ptx_reach {
    const struct ws_ptx_module *m;
    uint32_t n, *found;     /* of the last search, in any order */
    uint32_t search, *seen; /* private to reach.c */
    bool all;
};
/* Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_reach_init(struct ws_ptx_reach *r, const struct ws_ptx_module *m);
void ws_ptx_reach_deinit(struct ws_ptx_reach *r);
/* Finds what @f may call. */
void ws_ptx_reach_find(struct ws_ptx_reach *r, const struct ws_ptx_func *f);
/* Adds what @f may call to what was found. */
void ws_ptx_reach_add(struct ws_ptx_reach *r, const struct ws_ptx_func *f);

/* What a kernel, or a function that it may call, does with addresses of functions, as bits: it
 * calls through a register; it has code that names a function other than to call it. */
enum { WS_PTX_CALLS_ADDRESSES = 1, WS_PTX_TAKES_ADDRESSES = 2 };
/* @ret: for each kernel with a body, in the module's order. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_ptx_function_addresses(const struct ws_ptx_module *m, uint8_t *ret);

#endif
