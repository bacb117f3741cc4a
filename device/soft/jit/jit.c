// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/jit.c - which code there is of a module's kernels, and how it is entered. */
#include "device/soft/jit/jit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/exec/reuse.h"
#include "device/soft/jit/code.h"
#include "device/soft/jit/emit.h"

enum { LANES = 32, MX_DEFAULT = 0x1f80 };

/* ---- called by compiled code ---- */
const struct ws_uop *ws_jit_handler(struct ws_core_ctx *c, const struct ws_uop *u)
{
    const struct ws_uop *next = u->fn(c, u);
    if (c->mx != MX_DEFAULT) {
        c->mx = MX_DEFAULT;
        __builtin_ia32_ldmxcsr(MX_DEFAULT);
    }
    return next;
}

void ws_jit_note(struct ws_core_ctx *c, uint64_t first, uint64_t last, uint64_t store)
{
    for (uint64_t line = first >> 7; line <= last >> 7; line++)
        if (ws_reuse_hash(line) < c->record_below) {
            uint32_t low = line == first >> 7 ? first >> 5 & 3 : 0;
            uint32_t high = line == last >> 7 ? last >> 5 & 3 : 3;
            ws_reuse_touch(c, line, (2u << high) - (1u << low), store);
        }
}

/* ---- running ---- */
/* Loops that the compiler makes vectors of: this is asked at every entry of a whole warp. */
#define HOLDS(T)                                                                                   \
    {                                                                                              \
        const T *v = (const T *)(const void *)row;                                                 \
        T differ = 0;                                                                              \
        for (int i = 0; i < LANES; i++)                                                            \
            differ |= v[i] ^ (T)(v[0] + (T)k->apart[i]);                                           \
        return differ == 0;                                                                        \
    }
static bool holds(const struct ws_core_ctx *c, const struct ws_jit_claim *k)
{
    const uint8_t *row = c->regs + k->off;
    switch (k->width) {
    case 1:
        HOLDS(uint8_t)
    case 2:
        HOLDS(uint16_t)
    case 4:
        HOLDS(uint32_t)
    case 8:
        HOLDS(uint64_t)
    default: {
        uint32_t word = *(const uint32_t *)(const void *)row;
        return word == 0 || word == ~0u;
    }
    }
}

static bool all_hold(const struct ws_core_ctx *c, const struct ws_jit_claim *k)
{
    for (; k->width != 255; k++)
        if (!holds(c, k))
            return false;
    return true;
}

/* As go() of the vector core. */
static bool enter_segment(struct ws_core_ctx *c, const struct ws_seg *seg)
{
    uint32_t lanes = (uint32_t)__builtin_popcount(c->active);
    if (seg->first >= c->limit || c->budget <= 0) {
        c->stop = WS_STOP_RESCHED;
        c->u = seg->first;
        c->enter = seg;
        return false;
    }
    c->budget -= seg->n_insns;
    for (int k = 0; k < 8; k++)
        c->cls[k] += seg->cls[k];
    for (int k = 0; k < 4; k++)
        c->unit[k] += seg->unit[k] * lanes;
    c->n_thread_insns += (uint64_t)seg->n_insns * lanes;
    return true;
}

void ws_jit_run(const struct ws_jit_code *j, struct ws_core_ctx *c, const struct ws_uop *u,
                const struct ws_seg *enter)
{
    const struct ws_jit_claim *claims = j->claims[u - j->img->uops];
    bool trusted = c->w->shaped;
    c->w->shaped = false;
    if (!claims) {
        c->b->g->code->isa->run(c, u, enter);
        return;
    }
    if (enter && !enter_segment(c, enter))
        return;
    bool whole = c->active == ~0u && (trusted || all_hold(c, claims));
    uint32_t k = (uint32_t)(u - j->img->uops);
    c->w->shaped = j->run(c, ws_jit_entry(k, whole ? WS_JIT_WHOLE : WS_JIT_MASKED)) != 0;
}

/* ---- what there is of a module ---- */
struct ws_jit_images {
    enum ws_device_compile mode;
    pthread_mutex_t lock;
    struct ws_jit_code *first; /* under the lock */
};

static _Atomic int default_mode = WS_COMPILE_NEVER;

void ws_jit_set_mode(enum ws_device_compile mode)
{
    atomic_store(&default_mode, (int)mode);
}

static enum ws_device_compile mode_now(void)
{
    const char *how = getenv("WS_SOFT_JIT");
    if (!how)
        return (enum ws_device_compile)atomic_load(&default_mode);
    if (strcmp(how, "always") == 0)
        return WS_COMPILE_ALWAYS;
    return strcmp(how, "tiers") == 0 ? WS_COMPILE_TIERS : WS_COMPILE_NEVER;
}

static struct ws_jit_code *code_new(struct ws_jit_images *all, const struct ws_code *code,
                                    const struct ws_exec_image *img, const uint32_t block[3])
{
    struct ws_jit_code *j = ws_alloc(sizeof(*j));
    if (!j)
        return NULL;
    j->of = code;
    j->img = img;
    memcpy(j->block, block, sizeof(j->block));
    j->next = all->first;
    all->first = j;
    if (all->mode == WS_COMPILE_ALWAYS) {
        bool ok = ws_jit_compile_begin(j) == 0 && ws_jit_compile_finish(j) == 0;
        atomic_store(&j->tier, ok ? WS_JIT_COMPILED : WS_JIT_INTERPRETED);
    }
    return j;
}

struct ws_jit_code *ws_jit_of(const struct ws_code *code, uint32_t kernel, const uint32_t block[3])
{
    struct ws_jit_images *all = code->jit;
    const struct ws_exec_image *img = code->images[kernel];
    if (!all || !ws_llvm_open())
        return NULL;
    pthread_mutex_lock(&all->lock);
    struct ws_jit_code *j = all->first;
    uint32_t n = 0, n_shapes = 0;
    for (; j && (j->img != img || memcmp(j->block, block, sizeof(j->block)) != 0); j = j->next) {
        n++;
        n_shapes += j->img == img;
    }
    if (!j && n < WS_JIT_MODULE_SHAPES && n_shapes < WS_JIT_KERNEL_SHAPES)
        j = code_new(all, code, img, block);
    pthread_mutex_unlock(&all->lock);
    return j;
}

struct ws_jit_images *ws_jit_images_new(void)
{
    enum ws_device_compile mode = mode_now();
    struct ws_jit_images *all = mode == WS_COMPILE_NEVER ? NULL : ws_alloc(sizeof(*all));
    if (all) {
        all->mode = mode;
        pthread_mutex_init(&all->lock, NULL);
    }
    return all;
}

struct ws_jit_images *ws_jit_images_free(struct ws_jit_images *all)
{
    struct ws_jit_code *j = all ? all->first : NULL, *next;
    for (; j; j = next) {
        next = j->next;
        if (ws_jit_tiers_leave(j))
            ws_jit_code_free(j);
    }
    if (all)
        pthread_mutex_destroy(&all->lock);
    free(all);
    return NULL;
}
