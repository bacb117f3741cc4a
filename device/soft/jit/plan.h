/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/jit/plan.h - what the compiler knows of an image before it emits code: its rows, what
 * each micro-op reads and writes, which rows are live where, and which have a known shape.
 *
 * A row has a shape if lane i always holds the value of lane 0 plus a constant of lane i, while all
 * lanes of the warp run together. Constants of zero make a uniform row. Such a row is computed
 * once and not for each lane. Private to the compiler. */
#ifndef WS_DEVICE_SOFT_JIT_PLAN_H
#define WS_DEVICE_SOFT_JIT_PLAN_H

#include "base/alloc.h"
#include "device/soft/exec/priv.h"

enum {
    WS_JIT_MAX_MEETINGS = 1000,
    WS_JIT_MAX_ROWS = 4096,
    WS_JIT_MAX_UOPS = 2000,
    WS_JIT_MAX_TOUCHES = 12
};
enum ws_jit_shape { WS_SHAPE_NONE /* no value seen yet */, WS_SHAPE_KNOWN, WS_SHAPE_ANY };

struct ws_jit_row {
    uint32_t off;
    uint8_t width;                /* bytes of a lane; 0: a predicate word */
    uint8_t shape;                /* enum ws_jit_shape */
    bool written;                 /* by a micro-op */
    const struct ws_fill *fill;   /* NULL: it is a register */
    const struct ws_fill *copied; /* a constant of which it is a copy, and never anything else */
    int64_t apart[32];            /* of a known shape: distance of lane i from lane 0 */
};

/* One row that a micro-op reads or writes. */
struct ws_jit_touch {
    uint32_t row;
    bool write;
};

/* What a micro-op is to the compiler. */
struct ws_jit_op {
    uint16_t h; /* enum ws_handler */
    uint8_t n_touches;
    struct ws_jit_touch touch[WS_JIT_MAX_TOUCHES];
};

struct ws_jit_plan {
    const struct ws_exec_image *img;
    const struct ws_ptx_module *m;
    uint32_t block[3], n_warps;
    uint32_t lanes, full;    /* of a whole warp: how many, and their mask */
    struct ws_jit_row *rows; /* [n_rows] */
    uint32_t n_rows, n_words;
    uint32_t *row_at;              /* by offset / 64: row + 1; 0: none */
    struct ws_jit_op *ops;         /* [n_uops] */
    const struct ws_seg **returns; /* where functions may return to */
    uint32_t n_returns;
    uint64_t **live;     /* by segment: rows that are live where it begins */
    uint64_t **dirty;    /* by segment: rows that may differ from the register file there */
    uint64_t *ever_live; /* rows that are live where some segment begins */
    struct ws_arena arena;
    char why[96];   /* why the image is not taken */
    bool too_large; /* …which is its size */
};

/* Lanes of a warp that is whole, in blocks of this shape: fewer than 32 where a block has fewer. */
uint32_t ws_jit_lanes_of(const uint32_t block[3]);
/* Return: 0; 1: the image is not taken (why); -ENOMEM. ws_jit_plan_deinit() in any case. */
WS_MUST_CHECK int ws_jit_plan_init(struct ws_jit_plan *p, const struct ws_code *code,
                                   const struct ws_exec_image *img, const uint32_t block[3]);
void ws_jit_plan_deinit(struct ws_jit_plan *p);
/* Row number of an offset; the row must be one that the image's micro-ops use. */
static inline uint32_t ws_jit_row_of(const struct ws_jit_plan *p, uint32_t off)
{
    return p->row_at[off / 64] - 1;
}
/* Rows that are live before micro-op @k, into @set. */
void ws_jit_live_at(const struct ws_jit_plan *p, uint32_t k, uint64_t *set);
/* Rows that are live behind micro-op @k, the last one of a segment. */
void ws_jit_live_behind(const struct ws_jit_plan *p, uint32_t k, uint64_t *set);
/* The first micro-op behind segment @s. */
uint32_t ws_jit_seg_end(const struct ws_jit_plan *p, uint32_t s);
/* Whether nothing guards @u. */
static inline bool ws_jit_unguarded(const struct ws_jit_plan *p, const struct ws_uop *u)
{
    return u->guard == p->img->ones_off && u->gneg == 0;
}
/* Whether the core may be left at micro-op @k and entered there again, or behind it. */
bool ws_jit_waits(const struct ws_jit_plan *p, uint32_t k);
/* The constant that a row holds wherever it holds anything. Return: false: there is none. */
bool ws_jit_const(const struct ws_jit_plan *p, uint32_t row, uint64_t *ret);

static inline bool ws_jit_has(const uint64_t *set, uint32_t k)
{
    return set[k / 64] >> (k % 64) & 1;
}
static inline void ws_jit_add(uint64_t *set, uint32_t k)
{
    set[k / 64] |= UINT64_C(1) << (k % 64);
}
static inline void ws_jit_drop(uint64_t *set, uint32_t k)
{
    set[k / 64] &= ~(UINT64_C(1) << (k % 64));
}

#endif
