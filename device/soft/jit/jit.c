// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/jit.c - which code there is of a module's kernels, and how it is entered. */
#include "device/soft/jit/jit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/compiled.h"
#include "device/payer.h"
#include "device/soft/exec/reuse.h"
#include "device/soft/jit/code.h"
#include "device/soft/jit/emit.h"
#include "device/soft/jit/plan.h"
#include "device/soft/jit/store.h"

/* Memory for the code of a module: what its kernels take in one shape or two, but not so much
 * that a library of thousands of kernels, of which a program uses some, takes its user's share. */
enum { UOP_BYTES = 2400, KERNEL_BYTES = 64 << 10, MODULE_BYTES = 64 << 20 };

enum {
    LANES = 32,
    MX_DEFAULT = 0x1f80,
    /* Turns after which compiled code is left, because its counts have 32 bits: each is of no more
     * than TURN, WS_OVERRUN and WS_JIT_MAX_UOPS warp instructions. */
    SOME = 1 << 13,
};
#define COME_BACK (UINT32_C(1) << 31)

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

uint64_t ws_jit_call_function(struct ws_core_ctx *c, const struct ws_uop *u)
{
    return ws_exec_call(c, u, u->to, u->fall);
}

uint64_t ws_jit_return(struct ws_core_ctx *c, const struct ws_uop *u, uint64_t m)
{
    const struct ws_seg *to = ws_exec_ret(c, u, (uint32_t)m);
    return to ? (uint64_t)(to - c->b->img->segs) + 1 : 0;
}

/* As note_look() of the handlers (../exec/mem.inc), which is part of the vector builds. */
void ws_jit_look(struct ws_core_ctx *c, uint64_t host)
{
    ws_exec_note_look(c, (const uint8_t *)(uintptr_t)host);
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

static void touch(struct ws_core_ctx *c, uint64_t line, uint32_t sectors, bool store)
{
    if (ws_reuse_hash(line) < c->record_below)
        ws_reuse_touch(c, line, sectors, store);
}

/* In the order of the handlers: that of the lines where these are near, else of the lanes. */
void ws_jit_note_two(struct ws_core_ctx *c, uint64_t a, uint64_t b, uint64_t store)
{
    uint64_t low = WS_MIN(a, b), high = WS_MAX(a, b);
    uint64_t first = (high >> 5) - (low >> 7 << 2) < 64 ? low : a, second = a + b - first;
    uint32_t of_first = 1u << (first >> 5 & 3), of_second = 1u << (second >> 5 & 3);
    if (first >> 7 == second >> 7) {
        touch(c, first >> 7, of_first | of_second, store);
        return;
    }
    touch(c, first >> 7, of_first, store);
    touch(c, second >> 7, of_second, store);
}

/* As BEST_LOOP of ../exec/atom.inc. */
#define IMPROVE(U, S)                                                                              \
    for (uint32_t m = (uint32_t)lanes; m; m &= m - 1) {                                            \
        unsigned i = (unsigned)__builtin_ctz(m);                                                   \
        U *at = (U *)(uintptr_t)hosts[i], v = ((const U *)values)[i];                              \
        U old = __atomic_load_n(at, __ATOMIC_RELAXED);                                             \
        while (                                                                                    \
            (how >> 9 & 1 ? (S)v > (S)old : (S)v < (S)old) &&                                      \
            !__atomic_compare_exchange_n(at, &old, v, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))   \
            ;                                                                                      \
    }
void ws_jit_improve(const uint64_t *hosts, const void *values, uint64_t lanes, uint64_t how)
{
    bool wide = (how & 0xff) == 8, is_signed = how >> 8 & 1;
    if (wide && is_signed)
        IMPROVE(uint64_t, int64_t)
    else if (wide)
        IMPROVE(uint64_t, uint64_t)
    else if (is_signed)
        IMPROVE(uint32_t, int32_t)
    else
        IMPROVE(uint32_t, uint32_t)
}

/* ---- running ---- */
/* Loops that the compiler makes vectors of: this is asked at every entry of a whole warp. */
#define HOLDS(T)                                                                                   \
    {                                                                                              \
        const T *v = (const T *)(const void *)row;                                                 \
        T differ = 0;                                                                              \
        for (int i = 0; full == ~0u && i < LANES; i++)                                             \
            differ |= v[i] ^ (T)(v[0] + (T)k->apart[i]);                                           \
        for (int i = 0; full >> i & 1 && full != ~0u; i++)                                         \
            differ |= v[i] ^ (T)(v[0] + (T)k->apart[i]);                                           \
        return differ == 0;                                                                        \
    }
static bool holds(const struct ws_core_ctx *c, const struct ws_jit_claim *k, uint32_t full)
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
        uint32_t word = *(const uint32_t *)(const void *)row & full;
        return word == 0 || word == full;
    }
    }
}

static bool all_hold(const struct ws_core_ctx *c, const struct ws_jit_claim *k, uint32_t full)
{
    for (; k->width != WS_JIT_END; k++)
        if (!holds(c, k, full))
            return false;
    return true;
}

static unsigned first_of_group(uint32_t lanes)
{
    return (unsigned)__builtin_ctz(lanes) / WS_JIT_GROUP * WS_JIT_GROUP;
}

/* Where compiled code takes up what is to run. Return: 0: nowhere. */
static uint32_t find_entry(const struct ws_jit_code *j, struct ws_core_ctx *c)
{
    uint32_t k = (uint32_t)(c->u - j->img->uops);
    const struct ws_jit_claim *claims = j->claims[k];
    bool trusted = c->w->shaped;
    c->w->shaped = false;
    if (!claims)
        return 0;
    bool whole = c->active == j->full && !c->granted && claims->width != WS_JIT_NEVER &&
                 (trusted || all_hold(c, claims, j->full));
    if (whole)
        return ws_jit_entry(k, WS_JIT_WHOLE);
    if (j->has_lone && !(c->active & (c->active - 1)))
        return ws_jit_entry(k, WS_JIT_LONE);
    bool few = j->has_narrow && c->active >> first_of_group(c->active) < 1u << WS_JIT_GROUP;
    return ws_jit_entry(k, few ? WS_JIT_NARROW : WS_JIT_MASKED);
}

/* The entry where the code goes on, as ws_jit_next() returns it. */
static uint32_t enter_now(struct ws_core_ctx *c)
{
    uint32_t entry = find_entry(c->b->jit, c);
    if (!entry || ++c->n_entered < SOME)
        return entry;
    c->n_entered = 0;
    return entry | COME_BACK;
}

uint32_t ws_jit_next(struct ws_core_ctx *c, uint64_t whole)
{
    c->w->shaped = whole != 0;
    c->work_before = c->work;
    if (!ws_exec_next(c->b)) {
        uint32_t first = ws_exec_next_block(c->b) ? find_entry(c->b->jit, c) : 0;
        return first ? first | COME_BACK : 0;
    }
    return enter_now(c);
}

uint64_t ws_jit_wait(struct ws_core_ctx *c, const struct ws_uop *u, uint64_t budget)
{
    struct ws_warp *w = c->w;
    enum ws_bar_way way = ws_exec_bar_whole(c, u, (int64_t)budget);
    if (way != WS_BAR_PASSED)
        return way;
    w->shaped = true;
    c->work_before = c->work;
    return WS_BAR_PASSED + (uint64_t)enter_now(c);
}

void ws_jit_run(const struct ws_jit_code *j, struct ws_core_ctx *c)
{
    ws_exec_forget_rows(c->b);
    for (uint32_t entry = find_entry(j, c); entry; entry &= ~COME_BACK)
        entry = j->run(c, entry);
    if (c->b->round.over)
        return;
    ws_exec_fill_rows(c->b);
    c->b->g->code->isa->run(c, c->u, c->enter);
}

/* ---- what there is of a module ---- */
struct ws_jit_images {
    struct ws_code *of;
    enum ws_device_compile mode;
    pthread_mutex_t lock;
    struct ws_jit_code *first; /* under the lock */
    uint64_t max_bytes;        /* of code */
    _Atomic uint64_t bytes;
};

static _Atomic int default_mode = WS_COMPILE_NEVER;

void ws_jit_set_mode(enum ws_device_compile mode)
{
    atomic_store(&default_mode, (int)mode);
}

int ws_compiled_keep_in(const char *folder, uint64_t max_bytes)
{
    return ws_jit_store_open(folder, max_bytes);
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

bool ws_jit_keep(struct ws_jit_code *j)
{
    uint64_t bytes = ws_jit_code_bytes(j);
    if (atomic_fetch_add(&j->images->bytes, bytes) + bytes <= j->images->max_bytes)
        return j->run != NULL;
    atomic_fetch_sub(&j->images->bytes, bytes);
    ws_jit_code_drop(j);
    j->why_not = WS_NOT_ROOM;
    return false;
}

static void compile_here(struct ws_jit_code *j, struct ws_payer *payer)
{
    bool ok = ws_jit_compile_begin(j) == 0 && ws_jit_compile_finish(j) == 0 && ws_jit_keep(j);
    ws_jit_set_tier(j, ok ? WS_JIT_COMPILED : WS_JIT_INTERPRETED);
    if (payer)
        atomic_fetch_add(&payer->work_ns, j->compile_ns);
}

static struct ws_jit_code *code_new(struct ws_jit_images *all, const struct ws_exec_image *img,
                                    const uint32_t block[3])
{
    struct ws_jit_code *j = ws_alloc(sizeof(*j));
    if (!j)
        return NULL;
    j->of = all->of;
    j->img = img;
    snprintf(j->name, sizeof(j->name), "%s", all->of->m->funcs[img->func].name);
    memcpy(j->block, block, sizeof(j->block));
    j->full = UINT32_MAX >> (32 - ws_jit_lanes_of(block));
    j->images = all;
    j->next = all->first;
    all->first = j;
    ws_jit_count(j, true);
    return j;
}

struct ws_jit_code *ws_jit_of(const struct ws_code *code, uint32_t kernel, const uint32_t block[3],
                              struct ws_payer *payer)
{
    struct ws_jit_images *all = code->jit;
    const struct ws_exec_image *img = code->images[kernel];
    if (!all || (all->mode == WS_COMPILE_ALWAYS && !ws_llvm_open()))
        return NULL;
    pthread_mutex_lock(&all->lock);
    struct ws_jit_code *j = all->first;
    uint32_t n = 0, n_shapes = 0;
    for (; j && (j->img != img || memcmp(j->block, block, sizeof(j->block)) != 0); j = j->next) {
        n++;
        n_shapes += j->img == img;
    }
    bool is_new = !j && n < WS_JIT_MODULE_SHAPES && n_shapes < WS_JIT_KERNEL_SHAPES;
    if (is_new)
        j = code_new(all, img, block);
    if (is_new && j && all->mode == WS_COMPILE_ALWAYS)
        compile_here(j, payer);
    pthread_mutex_unlock(&all->lock);
    return j;
}

struct ws_jit_images *ws_jit_images_new(struct ws_code *of)
{
    enum ws_device_compile mode = mode_now();
    struct ws_jit_images *all = mode == WS_COMPILE_NEVER ? NULL : ws_alloc(sizeof(*all));
    if (all) {
        all->of = of;
        all->mode = mode;
        pthread_mutex_init(&all->lock, NULL);
    }
    return all;
}

void ws_jit_images_reserve(struct ws_jit_images *all, uint64_t n_uops)
{
    if (all && !ws_llvm_is_missing())
        all->max_bytes = WS_MIN(n_uops * UOP_BYTES + KERNEL_BYTES, (uint64_t)MODULE_BYTES);
}

uint64_t ws_jit_images_reserved(const struct ws_jit_images *all)
{
    return all ? all->max_bytes : 0;
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
