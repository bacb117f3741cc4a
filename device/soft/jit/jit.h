/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/jit.h - kernels of the software GPU as machine code.
 *
 * An image is compiled for one shape of blocks, into a function with the contract of the vector
 * core (struct ws_isa, run): it executes one split of a warp, from where it is until the core must
 * be left, with the same results, faults and counts. Blocks that were begun in the interpreter stay there.
 * Threads: any. */
#ifndef WS_DEVICE_SOFT_JIT_JIT_H
#define WS_DEVICE_SOFT_JIT_JIT_H

#include "device/soft/exec/image.h"

struct ws_jit_code;
struct ws_jit_images; /* what was compiled of a module */

/* Whether kernels are compiled at all: WS_SOFT_JIT=never|always. */
bool ws_jit_wanted(void);
/* The code of the grid's kernel for its shape of blocks, compiled now if it was not yet. NULL: it
 * is not taken, or the compiler's library is not installed. Lives as long as @code. */
const struct ws_jit_code *ws_jit_get(const struct ws_code *code, uint32_t kernel,
                                     const uint32_t block[3]);
struct ws_jit_images *ws_jit_images_new(void); /* NULL: no memory */
struct ws_jit_images *ws_jit_images_free(struct ws_jit_images *i);
/* As struct ws_isa's run. */
void ws_jit_run(const struct ws_jit_code *j, struct ws_core_ctx *c, const struct ws_uop *u,
                const struct ws_seg *enter);
/* For benchmarks. Of all that was compiled in this process. */
struct ws_jit_totals {
    uint64_t n_compiled, n_refused, compile_ns;
};
struct ws_jit_totals ws_jit_totals(void);

#endif
