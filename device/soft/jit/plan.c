// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/plan.c - rows, liveness and shapes of an image.
 *
 * A lane's registers are live by what the lane itself will do. While all lanes of a warp stand at
 * one place, what is live there is all that the warp needs. Rows of lanes that have parted are
 * always in the register file. */
#include "device/soft/jit/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "base/error.h"
#include "device/soft/jit/shape.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

/* Widths of the rows of an operation on lanes; NO: it has no such operand. */
enum { NO = 255 };
struct form {
    uint8_t known, d, a, b, c, e;
};
#define OP(name, d, a, b, c, e)     [WS_H_##name] = {1, d, a, b, c, e},
#define A1(name, TD, TA, x)         OP(name, sizeof(TD), sizeof(TA), NO, NO, NO)
#define A2(name, TD, TA, TB, x)     OP(name, sizeof(TD), sizeof(TA), sizeof(TB), NO, NO)
#define A3(name, TD, TA, TB, TC, x) OP(name, sizeof(TD), sizeof(TA), sizeof(TB), sizeof(TC), NO)
#define A4(name, TD, TA, TB, TC, TE, x)                                                            \
    OP(name, sizeof(TD), sizeof(TA), sizeof(TB), sizeof(TC), sizeof(TE))
#define F1(name, T, x)       OP(name, sizeof(T), sizeof(T), NO, NO, NO)
#define F2(name, T, x)       OP(name, sizeof(T), sizeof(T), sizeof(T), NO, NO)
#define F3(name, T, x)       OP(name, sizeof(T), sizeof(T), sizeof(T), sizeof(T), NO)
#define FC(name, TD, TA, x)  OP(name, sizeof(TD), sizeof(TA), NO, NO, NO)
#define FC2(name, TD, TA, x) OP(name, sizeof(TD), sizeof(TA), sizeof(TA), NO, NO)
#define FC3(name, TD, TA, x) OP(name, sizeof(TD), sizeof(TA), sizeof(TA), sizeof(TA), NO)
#define S2(name, T, x)       OP(name, 0, sizeof(T), sizeof(T), NO, NO)
/* clang-format would indent each row further than the one before. */
/* clang-format off */
static const struct form forms[_WS_H_N] = {
#include "device/soft/exec/ops.inc"
    OP(selp_16, 2, 2, 2, 0, NO) OP(selp_32, 4, 4, 4, 0, NO) OP(selp_64, 8, 8, 8, 0, NO)
    OP(slct_16, 2, 2, 2, 4, NO) OP(slct_32, 4, 4, 4, 4, NO) OP(slct_64, 8, 8, 8, 4, NO)
    OP(p_and, 0, 0, 0, NO, NO) OP(p_or, 0, 0, 0, NO, NO) OP(p_xor, 0, 0, 0, NO, NO)
    OP(p_mov, 0, 0, NO, NO, NO) OP(p_set, 0, 4, NO, NO, NO) OP(testp_f32, 0, 4, NO, NO, NO)
    OP(testp_f64, 0, 8, NO, NO, NO) OP(lop3, 4, 4, 4, 4, NO) OP(isspacep, 0, 8, NO, NO, NO)
    OP(cvta, 8, 8, NO, NO, NO) OP(cvta_to, 8, 8, NO, NO, NO) OP(mapa_32, 4, 4, 4, NO, NO)
    OP(mapa_64, 8, 8, 4, NO, NO) OP(rank_32, 4, 4, NO, NO, NO) OP(rank_64, 4, 8, NO, NO, NO)
    OP(lea_local, 8, 4, NO, NO, NO) OP(clock, 4, NO, NO, NO, NO) OP(clock_hi, 4, NO, NO, NO, NO)
    OP(clock64, 8, NO, NO, NO, NO) OP(globaltimer, 8, NO, NO, NO, NO)
    OP(activemask, 4, NO, NO, NO, NO) OP(membar, NO, NO, NO, NO, NO) OP(nop, NO, NO, NO, NO, NO)
    OP(bra, NO, NO, NO, NO, NO) OP(goto_, NO, NO, NO, NO, NO) OP(exit_, NO, NO, NO, NO, NO)
    OP(trap, NO, NO, NO, NO, NO) OP(nanosleep, NO, NO, NO, NO, NO) OP(vprintf, 4, 8, 8, NO, NO)
    OP(brx, NO, 4, NO, NO, NO)
};
/* clang-format on */

/* ---- what a micro-op reads and writes ---- */
static bool add_row(struct ws_jit_plan *p, uint32_t off, uint8_t width, uint32_t *ret)
{
    if (off % 64 || off >= p->img->regs_bytes) {
        snprintf(p->why, sizeof(p->why), "a row at an odd place");
        return false;
    }
    if (!p->row_at[off / 64]) {
        if (p->n_rows == WS_JIT_MAX_ROWS) {
            p->too_large = true;
            snprintf(p->why, sizeof(p->why), "more than %d registers", WS_JIT_MAX_ROWS);
            return false;
        }
        p->rows[p->n_rows] = (struct ws_jit_row){.off = off, .width = width};
        p->row_at[off / 64] = ++p->n_rows;
    }
    *ret = p->row_at[off / 64] - 1;
    if (p->rows[*ret].width != width) {
        snprintf(p->why, sizeof(p->why), "a register of two widths");
        return false;
    }
    return true;
}

static bool touch(struct ws_jit_plan *p, struct ws_jit_op *op, int64_t off, uint8_t width,
                  bool write)
{
    uint32_t row;
    if (width == NO)
        return true;
    if (off < 0 || !add_row(p, (uint32_t)off, width, &row))
        return false;
    if (op->n_touches == WS_JIT_MAX_TOUCHES)
        return false;
    op->touch[op->n_touches++] = (struct ws_jit_touch){row, write};
    p->rows[row].written |= write;
    return true;
}

static bool touch_memory(struct ws_jit_plan *p, struct ws_jit_op *op, const struct ws_uop *u,
                         uint8_t width, uint32_t n, bool narrow, bool load)
{
    const int32_t rows[4] = {u->d, u->b, u->c, u->e};
    bool ok = touch(p, op, u->a, narrow ? 4 : 8, false);
    for (uint32_t k = 0; k < n && k < 4; k++)
        ok = ok && touch(p, op, rows[k], width, load);
    return ok;
}

static bool touch_atomic(struct ws_jit_plan *p, struct ws_jit_op *op, const struct ws_uop *u,
                         uint8_t width)
{
    return touch(p, op, u->a, u->x & WS_X_A32 ? 4 : 8, false) && touch(p, op, u->b, width, false) &&
           touch(p, op, u->c, u->c > 0 ? width : NO, false) &&
           touch(p, op, u->d, u->d >= 0 ? width : NO, true);
}

/* With the carry flag, a word. */
static bool touch_carry(struct ws_jit_plan *p, struct ws_jit_op *op, const struct ws_uop *u,
                        uint8_t width)
{
    bool adds = op->h == WS_H_madc_32 || op->h == WS_H_madc_64;
    return touch(p, op, u->a, width, false) && touch(p, op, u->b, width, false) &&
           touch(p, op, u->c, adds ? width : NO, false) && touch(p, op, u->e, 0, false) &&
           touch(p, op, u->e, 0, true) && touch(p, op, u->d, width, true);
}

static bool touch_barrier(struct ws_jit_plan *p, struct ws_jit_op *op, const struct ws_uop *u)
{
    bool reduces = (u->x & 0xff) != WS_SUB_NONE;
    return touch(p, op, u->a, 4, false) && touch(p, op, u->b, u->b ? 4 : NO, false) &&
           touch(p, op, u->c, 0, false) &&
           touch(p, op, u->d, reduces ? (u->x >> 9 & 1 ? 0 : 4) : NO, true);
}

static bool touch_lanes(struct ws_jit_plan *p, struct ws_jit_op *op, const struct ws_uop *u)
{
    uint8_t masks = u->e ? 4 : NO;
    switch (op->h) {
    case WS_H_bar_warp:
        return touch(p, op, u->e, 4, false);
    case WS_H_shfl:
        return touch(p, op, u->a, 4, false) && touch(p, op, u->b, 4, false) &&
               touch(p, op, u->c, 4, false) && touch(p, op, u->e, masks, false) &&
               touch(p, op, u->d, 4, true) && touch(p, op, u->imm, 0, true);
    case WS_H_vote:
        return touch(p, op, u->a, 0, false) && touch(p, op, u->e, masks, false) &&
               touch(p, op, u->d, (u->x & 0xff) == WS_SUB_BALLOT ? 4 : 0, true);
    case WS_H_match:
        return touch(p, op, u->a, u->x & 0x100 ? 8 : 4, false) && touch(p, op, u->e, 4, false) &&
               touch(p, op, u->d, 4, true) && touch(p, op, u->imm, 0, true);
    case WS_H_redux:
        return touch(p, op, u->a, 4, false) && touch(p, op, u->e, 4, false) &&
               touch(p, op, u->d, 4, true);
    case WS_H_elect:
        return touch(p, op, u->e, 4, false) && touch(p, op, u->d, 4, true) &&
               touch(p, op, u->imm, 0, true);
    default:
        return false;
    }
}

#define MEMORY(name, width, n, narrow)                                                             \
    case WS_H_ld_##name:                                                                           \
        return touch_memory(p, op, u, width, n, narrow, true);                                     \
    case WS_H_st_##name:                                                                           \
        return touch_memory(p, op, u, width, n, narrow, false);
static bool touch_others(struct ws_jit_plan *p, struct ws_jit_op *op, const struct ws_uop *u)
{
    uint8_t size = u->x >> WS_X_SIZE_SHIFT & 15;
    switch (op->h) {
        MEMORY(g_8, 1, 1, false)
        MEMORY(g_16, 2, 1, false)
        MEMORY(g_32, 4, 1, false)
        MEMORY(g_64, 8, 1, false)
        MEMORY(s_8, 1, 1, true)
        MEMORY(s_16, 2, 1, true)
        MEMORY(s_32, 4, 1, true)
        MEMORY(s_64, 8, 1, true)
        MEMORY(g_32v2, 4, 2, false)
        MEMORY(g_32v4, 4, 4, false)
        MEMORY(g_64v2, 8, 2, false)
        MEMORY(s_32v2, 4, 2, true)
        MEMORY(s_32v4, 4, 4, true)
        MEMORY(s_64v2, 8, 2, true)
        MEMORY(x, size, u->x >> WS_X_VEC_SHIFT & 7, (u->x & WS_X_A32) != 0)
    case WS_H_ld_p:
        return touch(p, op, u->d, size, true);
    case WS_H_addc_32:
    case WS_H_subc_32:
    case WS_H_madc_32:
        return touch_carry(p, op, u, 4);
    case WS_H_addc_64:
    case WS_H_subc_64:
    case WS_H_madc_64:
        return touch_carry(p, op, u, 8);
    case WS_H_atom_16:
        return touch_atomic(p, op, u, 2);
    case WS_H_atom_32:
        return touch_atomic(p, op, u, 4);
    case WS_H_atom_64:
        return touch_atomic(p, op, u, 8);
    case WS_H_bar:
        return touch_barrier(p, op, u);
    case WS_H_call: /* the lanes' frames */
    case WS_H_ret:
        return touch(p, op, (int64_t)p->img->fp_off, 4, false) &&
               touch(p, op, (int64_t)p->img->fp_off, 4, true);
    case WS_H_copy_local:
        return touch(p, op, (int64_t)p->img->fp_off, 4, false);
    default:
        return touch_lanes(p, op, u);
    }
}

static uint16_t handler_of(const struct ws_isa *isa, const struct ws_uop *u)
{
    uint16_t h = 0;
    while (h < _WS_H_N && isa->handlers[h] != u->fn)
        h++;
    return h;
}

static bool describe(struct ws_jit_plan *p, struct ws_jit_op *op, const struct ws_uop *u)
{
    static const char *const names[] = {
#define X(name) #name,
#undef A1
#undef A2
#undef A3
#undef A4
#undef F1
#undef F2
#undef F3
#undef FC
#undef FC2
#undef FC3
#undef S2
#include "device/soft/exec/list.inc"
#undef X
    };
    if (op->h == _WS_H_N)
        return false;
    const struct form *f = &forms[op->h];
    snprintf(p->why, sizeof(p->why), "%s", names[op->h]);
    if (!touch(p, op, u->guard, 0, false))
        return false;
    if (!f->known)
        return touch_others(p, op, u);
    return touch(p, op, u->a, f->a, false) && touch(p, op, u->b, f->b, false) &&
           touch(p, op, u->c, f->c, false) && touch(p, op, u->e, f->e, false) &&
           touch(p, op, u->d, f->d, true);
}

/* ---- segments ---- */
static bool ends_segment(uint16_t h)
{
    return h == WS_H_bra || h == WS_H_goto_ || h == WS_H_exit_ || h == WS_H_call || h == WS_H_ret ||
           h == WS_H_brx;
}

bool ws_jit_waits(const struct ws_jit_plan *p, uint32_t k)
{
    const struct ws_uop *u = &p->img->uops[k];
    switch (p->ops[k].h) {
    case WS_H_bar_warp:
    case WS_H_match:
    case WS_H_redux:
    case WS_H_elect:
    case WS_H_bar:
    case WS_H_nanosleep:
        return true;
    case WS_H_shfl:
    case WS_H_vote:
        return u->e != 0;
    default:
        return false;
    }
}

uint32_t ws_jit_seg_end(const struct ws_jit_plan *p, uint32_t s)
{
    uint32_t k = (uint32_t)(p->img->segs[s].first - p->img->uops);
    while (k < p->img->n_uops && !ends_segment(p->ops[k].h))
        k++;
    return k + 1;
}

/* ---- liveness ---- */
static void live_before(const struct ws_jit_plan *p, uint32_t k, uint64_t *set)
{
    const struct ws_jit_op *op = &p->ops[k];
    if (ws_jit_unguarded(p, &p->img->uops[k]))
        for (uint32_t n = 0; n < op->n_touches; n++)
            if (op->touch[n].write)
                ws_jit_drop(set, op->touch[n].row);
    for (uint32_t n = 0; n < op->n_touches; n++)
        if (!op->touch[n].write)
            ws_jit_add(set, op->touch[n].row);
}

/* Behind calls lanes go on where the function returns. */
static bool returns_to(const struct ws_jit_plan *p, const struct ws_seg *s)
{
    for (uint32_t k = 0; k < p->img->n_uops; k++)
        if (p->ops[k].h == WS_H_call && p->img->uops[k].fall == s)
            return true;
    return false;
}

static int list_returns(struct ws_jit_plan *p)
{
    p->returns = ws_arena_array(&p->arena, p->img->n_segs + (size_t)1, sizeof(*p->returns));
    if (!p->returns)
        return ws_raise(-ENOMEM);
    for (uint32_t s = 0; s < p->img->n_segs && ws_budget_spend(p->img->n_uops / 64); s++)
        if (returns_to(p, &p->img->segs[s]))
            p->returns[p->n_returns++] = &p->img->segs[s];
    return 0;
}

/* Where lanes may go on behind the last micro-op of a segment: the two ways of a branch, and a list
 * of others. Return: how many there are. */
static uint32_t find_next(const struct ws_jit_plan *p, uint32_t k, const struct ws_seg *two[2],
                          const struct ws_seg *const **ret_others)
{
    const struct ws_uop *u = &p->img->uops[k];
    uint16_t h = p->ops[k].h;
    two[0] = h == WS_H_exit_ || h == WS_H_ret || h == WS_H_brx ? NULL : u->to;
    two[1] = (ws_jit_unguarded(p, u) && h != WS_H_brx) || h == WS_H_call ? NULL : u->fall;
    *ret_others = p->returns;
    if (h == WS_H_ret)
        return p->n_returns;
    if (h != WS_H_brx)
        return 0;
    *ret_others = (const struct ws_seg *const *)(uintptr_t)u->imm;
    return (uint32_t)u->b;
}

static bool add_all(uint64_t *to, const uint64_t *more, uint32_t n_words)
{
    bool changed = false;
    for (uint32_t w = 0; w < n_words; w++) {
        changed |= (more[w] & ~to[w]) != 0;
        to[w] |= more[w];
    }
    return changed;
}

/* Adding so many sets. The lists of a kernel may be very long. Return: false: stop. */
static bool spend_sets(const struct ws_jit_plan *p, uint64_t n)
{
    return ws_budget_spend(1 + n * p->n_words / 64);
}

void ws_jit_live_behind(const struct ws_jit_plan *p, uint32_t k, uint64_t *set)
{
    const struct ws_seg *two[2], *const *others;
    uint32_t n_others = find_next(p, k, two, &others);
    (void)spend_sets(p, n_others);
    memset(set, 0, p->n_words * sizeof(*set));
    for (uint32_t n = 0; n < n_others + 2; n++) {
        const struct ws_seg *s = n < 2 ? two[n] : others[n - 2];
        if (s)
            (void)add_all(set, p->live[s - p->img->segs], p->n_words);
    }
}

void ws_jit_live_at(const struct ws_jit_plan *p, uint32_t k, uint64_t *set)
{
    uint32_t last = k;
    if (k >= p->img->n_uops) { /* a segment that nothing is in */
        memset(set, 0, p->n_words * sizeof(*set));
        return;
    }
    while (!ends_segment(p->ops[last].h))
        last++;
    ws_jit_live_behind(p, last, set);
    for (uint32_t n = last + 1; n > k; n--)
        live_before(p, n - 1, set);
}

static bool find_live(struct ws_jit_plan *p, uint64_t *set)
{
    const struct ws_exec_image *img = p->img;
    bool changed = false;
    for (uint32_t s = img->n_segs; s-- > 0 && ws_budget_spend(1);) {
        ws_jit_live_at(p, (uint32_t)(img->segs[s].first - img->uops), set);
        changed |= memcmp(set, p->live[s], p->n_words * sizeof(*set)) != 0;
        memcpy(p->live[s], set, p->n_words * sizeof(*set));
    }
    return changed;
}

/* What is written on the way from where the code is entered. */
static bool find_dirty(struct ws_jit_plan *p, uint64_t *set)
{
    const struct ws_exec_image *img = p->img;
    bool changed = false;
    for (uint32_t s = 0; s < img->n_segs; s++) {
        uint32_t k = (uint32_t)(img->segs[s].first - img->uops);
        if (k >= img->n_uops)
            continue;
        memcpy(set, p->dirty[s], p->n_words * sizeof(*set));
        for (;; k++) {
            const struct ws_jit_op *op = &p->ops[k];
            for (uint32_t n = 0; n < op->n_touches; n++)
                if (op->touch[n].write)
                    ws_jit_add(set, op->touch[n].row);
            if (ends_segment(op->h))
                break;
        }
        const struct ws_seg *two[2], *const *others;
        uint32_t n_others = find_next(p, k, two, &others);
        if (!spend_sets(p, n_others))
            return false;
        for (uint32_t n = 0; n < n_others + 2; n++) {
            const struct ws_seg *to = n < 2 ? two[n] : others[n - 2];
            if (to)
                changed |= add_all(p->dirty[to - img->segs], set, p->n_words);
        }
    }
    return changed;
}

static int find_flow(struct ws_jit_plan *p)
{
    const struct ws_exec_image *img = p->img;
    p->n_words = (p->n_rows + 63) / 64;
    uint64_t *set = ws_arena_array(&p->arena, p->n_words + (size_t)1, sizeof(*set));
    p->ever_live = ws_arena_array(&p->arena, p->n_words + (size_t)1, sizeof(*set));
    p->live = ws_arena_array(&p->arena, img->n_segs + (size_t)1, sizeof(*p->live));
    p->dirty = ws_arena_array(&p->arena, img->n_segs + (size_t)1, sizeof(*p->dirty));
    if (!set || !p->ever_live || !p->live || !p->dirty)
        return ws_raise(-ENOMEM);
    for (uint32_t s = 0; s < img->n_segs; s++) {
        p->live[s] = ws_arena_array(&p->arena, p->n_words + (size_t)1, sizeof(*set));
        p->dirty[s] = ws_arena_array(&p->arena, p->n_words + (size_t)1, sizeof(*set));
        if (!p->live[s] || !p->dirty[s])
            return ws_raise(-ENOMEM);
    }
    while (find_live(p, set) && ws_budget_spend(0))
        ;
    while (find_dirty(p, set))
        ;
    for (uint32_t s = 0; s < img->n_segs; s++)
        for (uint32_t w = 0; w < p->n_words; w++)
            p->ever_live[w] |= p->live[s][w];
    return 0;
}

/* ---- the whole ---- */
/* Operands of many instructions must be registers, so constants are moved to them. */
static void find_copies(struct ws_jit_plan *p, uint8_t *n_writes)
{
    for (uint32_t k = 0; k < p->img->n_uops; k++)
        for (uint32_t n = 0; n < p->ops[k].n_touches; n++)
            if (p->ops[k].touch[n].write && n_writes[p->ops[k].touch[n].row] < 2)
                n_writes[p->ops[k].touch[n].row]++;
    for (uint32_t k = 0; k < p->img->n_uops; k++) {
        const struct ws_uop *u = &p->img->uops[k];
        uint16_t h = p->ops[k].h;
        if ((h != WS_H_mov_16 && h != WS_H_mov_32 && h != WS_H_mov_64) || !ws_jit_unguarded(p, u))
            continue;
        struct ws_jit_row *to = &p->rows[ws_jit_row_of(p, (uint32_t)u->d)];
        const struct ws_fill *f = p->rows[ws_jit_row_of(p, (uint32_t)u->a)].fill;
        if (f && f->kind == WS_FILL_CONST && n_writes[to - p->rows] == 1)
            to->copied = f;
    }
}

static int describe_all(struct ws_jit_plan *p, const struct ws_code *code)
{
    const struct ws_exec_image *img = p->img;
    bool ended = false;
    for (uint32_t k = 0; k < img->n_uops; k++) {
        p->ops[k].h = handler_of(code->isa, &img->uops[k]);
        if (!describe(p, &p->ops[k], &img->uops[k]))
            return 1;
        ended = ends_segment(p->ops[k].h);
    }
    if (!ended)
        return 1; /* the last segment runs off its end */
    for (uint32_t n = 0; n < img->n_fills; n++) {
        const struct ws_fill *f = &img->fills[n];
        uint32_t at = p->row_at[f->off / 64];
        if (at && p->rows[at - 1].width == f->width && !p->rows[at - 1].written)
            p->rows[at - 1].fill = f;
        else if (at)
            return 1;
    }
    return 0;
}

/* What LLVM takes grows with the places at which rows come from memory and meet. */
static bool is_costly(struct ws_jit_plan *p)
{
    uint64_t rows = 0;
    for (uint32_t w = 0; w < p->n_words; w++)
        rows += (uint64_t)__builtin_popcountll(p->ever_live[w]);
    const char *most = getenv("WS_SOFT_JIT_MEETINGS");
    if (rows * p->img->n_segs <= (most ? strtoull(most, NULL, 0) : WS_JIT_MAX_MEETINGS))
        return false;
    p->too_large = true;
    snprintf(p->why, sizeof(p->why), "%llu meetings", (unsigned long long)rows * p->img->n_segs);
    return true;
}

uint32_t ws_jit_lanes_of(const uint32_t block[3])
{
    uint32_t n = block[0] * block[1] * block[2];
    return n == 4 || n == 8 || n == 16 ? n : 32;
}

int ws_jit_plan_init(struct ws_jit_plan *p, const struct ws_code *code,
                     const struct ws_exec_image *img, const uint32_t block[3])
{
    *p = (struct ws_jit_plan){.img = img, .m = code->m, .lanes = ws_jit_lanes_of(block)};
    p->full = UINT32_MAX >> (32 - p->lanes);
    memcpy(p->block, block, sizeof(p->block));
    p->n_warps = (block[0] * block[1] * block[2] + 31) / 32;
    p->too_large = img->n_uops > WS_JIT_MAX_UOPS;
    snprintf(p->why, sizeof(p->why), "too large");
    if (img->n_uops > WS_JIT_MAX_UOPS || img->recursive || img->sp_off)
        return 1;
    p->rows = ws_arena_array(&p->arena, WS_JIT_MAX_ROWS, sizeof(*p->rows));
    p->row_at = ws_arena_array(&p->arena, img->regs_bytes / 64 + (size_t)1, sizeof(*p->row_at));
    p->ops = ws_arena_array(&p->arena, img->n_uops + (size_t)1, sizeof(*p->ops));
    if (!p->rows || !p->row_at || !p->ops)
        return ws_raise(-ENOMEM);
    int r = describe_all(p, code);
    uint8_t *n_writes = ws_arena_array(&p->arena, p->n_rows + (size_t)1, sizeof(*n_writes));
    if (!n_writes)
        return ws_raise(-ENOMEM);
    if (r == 0)
        find_copies(p, n_writes);
    if (r == 0)
        r = list_returns(p);
    if (r == 0)
        r = find_flow(p);
    if (r == 0 && is_costly(p))
        return 1;
    if (r == 0)
        ws_jit_find_shapes(p);
    return r;
}

void ws_jit_plan_deinit(struct ws_jit_plan *p)
{
    ws_arena_deinit(&p->arena);
}
