// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/warp.c - shuffles, votes and barriers of a whole warp.
 *
 * While all lanes of a warp run together they have met already, whichever lanes they name, as long
 * as all name the same ones (meet() of ../exec/core.inc). */
#include "device/soft/decode/priv.h"
#include "device/soft/jit/emit.h"
#include "device/soft/jit/shape.h"

#define L ws_llvm
enum { LANES = 32 };

/* Of lane @i: the lane that it asks. Return: false: there is none, and it keeps its own. */
static bool find_source(uint32_t mode, int i, uint32_t b, uint32_t c, int *ret)
{
    int by = (int)(b & 31), segment = (int)(c >> 8 & 31);
    int most = (i & segment) | ((int)(c & 31) & ~segment), from;
    switch (mode) {
    case WS_SUB_UP:
        from = i - by;
        break;
    case WS_SUB_DOWN:
        from = i + by;
        break;
    case WS_SUB_BFLY:
        from = i ^ by;
        break;
    default:
        from = (i & segment) | (by & ~segment);
    }
    bool in = mode == WS_SUB_UP ? from >= most : from <= most;
    *ret = in ? from & 31 : i;
    return in;
}

/* Where which lane asks which is known now. */
static bool emit_shuffle(struct ws_jit_emit *e, const struct ws_uop *u)
{
    uint64_t b, c;
    uint32_t p = 0;
    int64_t from[LANES];
    if (!ws_jit_const(e->p, ws_jit_row_of(e->p, (uint32_t)u->b), &b) ||
        !ws_jit_const(e->p, ws_jit_row_of(e->p, (uint32_t)u->c), &c))
        return false;
    for (int i = 0; i < LANES; i++) {
        int lane;
        p |= (uint32_t)find_source(u->x, i, (uint32_t)b, (uint32_t)c, &lane) << i;
        from[i] = e->p->full >> lane & 1 ? lane : LANES; /* no such lane: 0 */
    }
    llvm_value v = ws_jit_vector(e, ws_jit_row_of(e->p, (uint32_t)u->a));
    v = L.BuildShuffleVector(e->b, v, L.ConstNull(L.TypeOf(v)),
                             ws_jit_constants(e, e->i32, from, LANES), "");
    ws_jit_set(e, ws_jit_row_of(e->p, (uint32_t)u->d), v);
    ws_jit_set_word(e, ws_jit_row_of(e->p, (uint32_t)u->imm), ws_jit_int(e, e->i32, p));
    return true;
}

static void emit_vote(struct ws_jit_emit *e, const struct ws_uop *u)
{
    uint64_t names = UINT32_MAX;
    if (u->e)
        (void)ws_jit_const(e->p, ws_jit_row_of(e->p, (uint32_t)u->e), &names);
    llvm_value asked = ws_jit_int(e, e->i32, (uint32_t)names & e->p->full);
    llvm_value none = ws_jit_int(e, e->i32, 0);
    llvm_value p = ws_jit_word(e, ws_jit_row_of(e->p, (uint32_t)u->a));
    uint32_t d = ws_jit_row_of(e->p, (uint32_t)u->d);
    p = L.BuildAnd(e->b, u->x >> 8 & 1 ? L.BuildNot(e->b, p, "") : p, asked, "");
    if ((u->x & 0xff) == WS_SUB_BALLOT) {
        ws_jit_set(e, d, ws_jit_is_scalar(e, d) ? p : ws_jit_splat(e, p, LANES));
        return;
    }
    llvm_value all = L.BuildICmp(e->b, LLVM_EQ, p, asked, "");
    llvm_value any = L.BuildICmp(e->b, LLVM_NE, p, none, ""), r;
    if ((u->x & 0xff) == WS_SUB_ALL)
        r = all;
    else if ((u->x & 0xff) == WS_SUB_ANY)
        r = any;
    else
        r = L.BuildOr(e->b, all, L.BuildNot(e->b, any, ""), "");
    ws_jit_set_word(e, d, L.BuildSExt(e->b, r, e->i32, ""));
}

bool ws_jit_emit_warp(struct ws_jit_emit *e)
{
    const struct ws_uop *u = &e->p->img->uops[e->k];
    uint16_t h = e->p->ops[e->k].h;
    if (e->v != WS_JIT_WHOLE || !ws_jit_unguarded(e->p, u))
        return false;
    if (h == WS_H_vote) {
        if (ws_jit_is_even_vote(e->p, e->k)) {
            emit_vote(e, u);
            return true;
        }
        return false;
    }
    if (u->e && !ws_jit_uniform(&e->p->rows[ws_jit_row_of(e->p, (uint32_t)u->e)]))
        return false;
    return h == WS_H_bar_warp || (h == WS_H_shfl && emit_shuffle(e, u));
}
