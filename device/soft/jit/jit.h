/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/jit.h - kernels of the software GPU as machine code.
 *
 * An image is compiled for one shape of blocks, into a function with the contract of the vector
 * core (struct ws_isa, run), with the same results, faults and counts. But when the core would be
 * left it continues with what comes next (ws_exec_next()), which may be another warp. Blocks that
 * were begun in the interpreter stay there.
 * Threads: any. */
#ifndef WS_DEVICE_SOFT_JIT_JIT_H
#define WS_DEVICE_SOFT_JIT_JIT_H

#include "device/device.h"
#include "device/soft/exec/image.h"

/* Each block that begins looks through the shapes of its module, which users may share. So there
 * are so many of a kernel and of a module; blocks of others are interpreted. */
enum { WS_JIT_KERNEL_SHAPES = 16, WS_JIT_MODULE_SHAPES = 1024 };

struct ws_payer;
struct ws_jit_code;   /* of a kernel for a shape of blocks */
struct ws_jit_images; /* what was compiled of a module */

/* For modules that are loaded from now on. WS_SOFT_JIT=never|always|tiers in the environment
 * counts before it. */
void ws_jit_set_mode(enum ws_device_compile mode);

/* Return: NULL: kernels are not compiled, or no memory. */
struct ws_jit_images *ws_jit_images_new(struct ws_code *of);
/* Bounds the code that there may come to be of the module, whose kernels have @n_uops micro-ops:
 * once, before the first kernel runs. What exceeds it is interpreted. @i: NULL ok. */
void ws_jit_images_reserve(struct ws_jit_images *i, uint64_t n_uops);
/* The bound, in bytes; 0: there is none to come. @i: NULL ok. */
uint64_t ws_jit_images_reserved(const struct ws_jit_images *i);
/* No kernel of the module runs. NULL ok. Never waits for the compiler. */
struct ws_jit_images *ws_jit_images_free(struct ws_jit_images *i);

/* What there is of the module's kernel for a shape of blocks; with WS_COMPILE_ALWAYS it is compiled
 * here. NULL: kernels are not compiled, the compiler's library is not installed, or there are too
 * many shapes. Lives as long as @code. @payer: who runs it; NULL: nobody. */
struct ws_jit_code *ws_jit_of(const struct ws_code *code, uint32_t kernel, const uint32_t block[3],
                              struct ws_payer *payer);
/* Whether a block that begins now is to run compiled. @block: its number. */
bool ws_jit_choose(struct ws_jit_code *j, uint64_t block);
/* Whether both answers, this and the next one, stay as they are for all blocks to come. */
bool ws_jit_is_settled(const struct ws_jit_code *j);
/* Whether ws_jit_ran() is wanted of a block that begins now. */
bool ws_jit_is_open(const struct ws_jit_code *j);
/* A block of @payer (NULL: nobody) has ended: so many warp instructions in so many ticks of the
 * processor's clock. */
void ws_jit_ran(struct ws_jit_code *j, struct ws_payer *payer, bool compiled, uint64_t n_insns,
                uint64_t ticks);
/* Runs what is to be run (ws_exec_next()) and whatever comes next, as long as compiled code has a
 * place where it begins, then up to where the core is left or to the end of the step. */
void ws_jit_run(const struct ws_jit_code *j, struct ws_core_ctx *c);
/* For benchmarks. Of all that was compiled in this process. */
struct ws_jit_totals {
    uint64_t n_compiled, n_loaded, n_refused, compile_ns;
};
struct ws_jit_totals ws_jit_totals(void);

#endif
