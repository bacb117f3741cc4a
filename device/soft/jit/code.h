/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/code.h - the code of one kernel for one shape of blocks. Private to the room. */
#ifndef WS_DEVICE_SOFT_JIT_CODE_H
#define WS_DEVICE_SOFT_JIT_CODE_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "device/compiled.h"
#include "device/soft/jit/jit.h"
#include "device/soft/jit/link.h"
#include "device/soft/jit/llvm.h"

/* A row of known shape that is live at an entry. The last one of an entry has the width END; NEVER:
 * the entry is of the masked version only. */
enum { WS_JIT_NEVER = 254, WS_JIT_END = 255 };
struct ws_jit_claim {
    uint32_t off;
    uint8_t width;
    const int64_t *apart; /* of each lane from lane 0 */
};

/* How far a kernel is, with tiers (tiers.c). */
enum ws_jit_tier {
    WS_JIT_COLD,        /* has not run for long */
    WS_JIT_QUEUED,      /* for the thread that compiles, or in its hands */
    WS_JIT_TRIED,       /* compiled; blocks run both ways, to see which is faster */
    WS_JIT_COMPILED,    /* runs compiled from now on */
    WS_JIT_INTERPRETED, /* stays in the interpreter */
    _WS_JIT_TIERS
};

/* Time for each warp instruction, of the best block that ran in one way. */
struct ws_jit_score {
    double best; /* ticks of the processor's clock */
    unsigned n;  /* blocks */
};

struct ws_jit_code {
    struct ws_code *of; /* until the second step of compiling begins */
    const struct ws_exec_image *img;
    uint32_t block[3], full; /* full: mask of a whole warp */
    uint32_t (*run)(struct ws_core_ctx *c,
                    uint32_t entry);    /* NULL: not taken; as ws_jit_next() returns */
    const struct ws_jit_claim **claims; /* by micro-op; NULL: no entry */
    llvm_context cx; /* this and the next two: between the two steps of compiling */
    llvm_module module;
    struct ws_jit_names names;
    bool has_narrow, has_lone;  /* its code has these versions */
    struct ws_jit_pages *pages; /* of its code */
    struct ws_arena arena;
    char name[64]; /* of the kernel, as far as there is room */
    uint64_t compile_ns;
    struct ws_jit_images *images;
    struct ws_jit_code *next; /* of the module */

    enum ws_compiled_not why_not; /* set before it stays in the interpreter */
    _Atomic int tier; /* enum ws_jit_tier: what was written before it was set can be read after */
    _Atomic uint64_t cold_ticks;
    struct ws_jit_score score[2]; /* [compiled]; this and below: under the lock of tiers.c */
    struct ws_jit_code *next_queued;
    struct ws_payer *payer; /* who has it compiled: a reference while it is queued; may be NULL */
    bool orphaned;          /* its module was unloaded while it was compiled */
};

/* ---- compile.c ---- */
/* The first step makes LLVM's form of the kernel, in some milliseconds, and spends the thread's
 * budget; it reads the code that the kernel is of. The second makes machine code of that form,
 * which takes most of the time, and needs nothing but @j. Return: 0: done; 1: the kernel is not
 * taken; -ENOMEM. */
WS_MUST_CHECK int ws_jit_compile_begin(struct ws_jit_code *j);
WS_MUST_CHECK int ws_jit_compile_finish(struct ws_jit_code *j);
/* What it holds. 0: it is not compiled. */
uint64_t ws_jit_code_bytes(const struct ws_jit_code *j);
/* Takes away all that was made of it: it is interpreted. */
void ws_jit_code_drop(struct ws_jit_code *j);
void ws_jit_code_free(struct ws_jit_code *j);

/* ---- counts.c ---- */
void ws_jit_set_tier(struct ws_jit_code *j, enum ws_jit_tier tier);
/* The kernel is there from now on, or goes. */
void ws_jit_count(const struct ws_jit_code *j, bool is_there);
void ws_jit_add_totals(const struct ws_jit_totals *more);

/* ---- jit.c ---- */
/* Code was made of one of the module's kernels. What the module may not hold is dropped. Return:
 * whether the kernel can run compiled. */
bool ws_jit_keep(struct ws_jit_code *j);

/* ---- tiers.c ---- */
/* LLVM calls this when it can't go on, and ends the process if it returns. On the thread that
 * compiles it never returns: kernels that have no code by now are interpreted. Otherwise the
 * process ends. */
void ws_jit_failed(const char *why) __attribute__((noreturn));
/* @j is not counted any more, and the thread that compiles knows it no more, or frees it when it
 * has finished with it. Return: whether it is the caller's to free. */
bool ws_jit_tiers_leave(struct ws_jit_code *j);

#endif
