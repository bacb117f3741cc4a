// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/matrix.c - warp-wide matrix instructions: one micro-op each, with a
 * ws_matrixop that holds its rows.
 *
 * The modifiers come as text (rows W of opcodes.def). What is refused by name: sparse and
 * block-scaled products, tiles of 8-bit elements, and what only sm_100 and later have (tcgen05). */
#include <stdio.h>
#include <string.h>

#include "device/soft/decode/util.h"
#include "device/soft/exec/matrix.h"

struct modifier_words {
    const char *at;
};
static bool eat(struct modifier_words *w, const char *want)
{
    size_t n = strlen(want);
    if (w->at[0] != '.' || strncmp(w->at + 1, want, n) != 0 ||
        (w->at[1 + n] != '.' && w->at[1 + n] != ':' && w->at[1 + n] != '\0'))
        return false;
    w->at += 1 + n;
    return true;
}

static bool elem_word(struct modifier_words *w, uint8_t *ret)
{
    static const char *const names[_WS_ELEM_N] = {
        [WS_ELEM_F16] = "f16",   [WS_ELEM_BF16] = "bf16", [WS_ELEM_TF32] = "tf32",
        [WS_ELEM_F32] = "f32",   [WS_ELEM_F64] = "f64",   [WS_ELEM_E4M3] = "e4m3",
        [WS_ELEM_E5M2] = "e5m2", [WS_ELEM_S8] = "s8",     [WS_ELEM_U8] = "u8",
        [WS_ELEM_S4] = "s4",     [WS_ELEM_U4] = "u4",     [WS_ELEM_B1] = "b1",
        [WS_ELEM_S32] = "s32"};
    for (unsigned k = 0; k < _WS_ELEM_N; k++)
        if (eat(w, names[k])) {
            *ret = (uint8_t)k;
            return true;
        }
    return false;
}

static bool shape_word(struct modifier_words *w, struct ws_matrixop *o)
{
    static const struct {
        const char *name;
        uint16_t m, n, k;
    } shapes[] = {{"m16n16k16", 16, 16, 16}, {"m8n32k16", 8, 32, 16},   {"m32n8k16", 32, 8, 16},
                  {"m16n16k8", 16, 16, 8},   {"m8n8k4", 8, 8, 4},       {"m8n8k32", 8, 8, 32},
                  {"m8n8k128", 8, 8, 128},   {"m8n8k16", 8, 8, 16},     {"m16n8k4", 16, 8, 4},
                  {"m16n8k8", 16, 8, 8},     {"m16n8k16", 16, 8, 16},   {"m16n8k32", 16, 8, 32},
                  {"m16n8k64", 16, 8, 64},   {"m16n8k128", 16, 8, 128}, {"m16n8k256", 16, 8, 256}};
    for (size_t k = 0; k < WS_ARRAY_SIZE(shapes); k++)
        if (eat(w, shapes[k].name)) {
            o->m = shapes[k].m;
            o->n = shapes[k].n;
            o->k = shapes[k].k;
            return true;
        }
    return false;
}

static bool layout_word(struct modifier_words *w, bool *ret_col)
{
    *ret_col = eat(w, "col");
    return *ret_col || eat(w, "row");
}

static bool is_float(uint8_t e)
{
    return e < WS_ELEM_S8;
}

static uint32_t bits(uint8_t e)
{
    return ws_elem_bits((enum ws_elem)e);
}

/* Registers a lane has of a fragment; 0: there is no such fragment. */
static unsigned n_regs(const struct ws_matrixop *o, const struct ws_fragment *f)
{
    unsigned rows = f->which == WS_FRAG_B ? o->k : o->m, cols = f->which == WS_FRAG_A ? o->k : o->n;
    unsigned total = rows * cols * bits(f->elem), lane = f->elem == WS_ELEM_F64 ? 64 : 32;
    if (!o->wmma && o->k == 4 && f->elem == WS_ELEM_F16 && o->m == 8)
        return f->which == WS_FRAG_C ? 4 : 2; /* four products at once */
    if (!o->wmma && o->k == 4 && o->m == 8 && f->elem == WS_ELEM_F32)
        return 8;
    if (o->wmma && f->elem == WS_ELEM_F16)
        return f->which == WS_FRAG_C ? 4 : 8; /* A and B: elements twice or four times */
    unsigned n = total / 32 / lane;
    return total % (32 * lane) || n > WS_MATRIX_ROWS ? 0 : n;
}

static type reg_type(uint8_t elem, bool c)
{
    if (elem == WS_ELEM_F64)
        return WS_T_F64;
    return elem == WS_ELEM_F32 && c ? WS_T_F32 : WS_T_B32;
}

static bool sources(struct ws_dec *d, const struct ws_ptx_operand *v, struct ws_fragment *f)
{
    type t = reg_type(f->elem, f->which == WS_FRAG_C);
    if (v->kind == WS_OPD_VEC ? v->n != f->n : f->n != 1)
        return false;
    for (unsigned k = 0; k < f->n; k++)
        f->row[k] = ws_dec_src(d, v->kind == WS_OPD_VEC ? &v->v[k] : v, t);
    return true;
}

struct dests {
    const struct ws_ptx_operand *o[WS_MATRIX_ROWS];
    bool finish[WS_MATRIX_ROWS];
};
static bool dests(struct ws_dec *d, const struct ws_ptx_operand *v, struct ws_fragment *f,
                  struct dests *ret)
{
    type t = reg_type(f->elem, f->which == WS_FRAG_C);
    if (v->kind == WS_OPD_VEC ? v->n != f->n : f->n != 1)
        return false;
    for (unsigned k = 0; k < f->n; k++) {
        ret->o[k] = v->kind == WS_OPD_VEC ? &v->v[k] : v;
        f->row[k] = ws_dec_dst(d, ret->o[k], t, &ret->finish[k]);
    }
    return true;
}

static void emit(struct ws_dec *d, const struct ws_matrixop *o, const struct dests *to)
{
    struct ws_matrixop *kept = ws_arena_alloc(&d->code->arena, sizeof(*kept));
    if (!kept) {
        d->oom = true;
        return;
    }
    *kept = *o;
    if (ws_matrix_plan(kept, &d->code->arena) < 0) {
        d->oom = true;
        return;
    }
    ws_dec_emit(d, WS_H_bar_warp)->e = (int32_t)ws_dec_const(d, 4, UINT32_MAX);
    ws_dec_emit(d, WS_H_matrix)->imm = (int64_t)(uintptr_t)kept;
    type t = reg_type(o->d.elem, o->d.which == WS_FRAG_C);
    for (unsigned k = 0; to && k < o->d.n; k++)
        if (to->finish[k])
            ws_dec_finish(d, to->o[k], t, o->d.row[k]);
}

/* [register + offset] or [shared variable + offset]. */
static bool address(struct ws_dec *d, const struct ws_ptx_operand *a, struct ws_matrixop *o)
{
    if (a->kind != WS_OPD_ADDR || (a->reg < 0 && a->sym < 0))
        return false;
    struct ws_ptx_operand base = {
        .kind = a->reg >= 0 ? WS_OPD_REG : WS_OPD_SYM, .reg = a->reg, .sym = a->sym};
    o->a32 = a->reg >= 0 && ws_ptx_type_bytes((type)d->df->f->regs[a->reg].type) == 4;
    o->address = ws_dec_src(d, &base, o->a32 ? WS_T_U32 : WS_T_U64);
    o->offset = a->imm;
    return true;
}

static uint8_t space_word(struct modifier_words *w)
{
    if (eat(w, "global"))
        return WS_SP_GLOBAL;
    if (!eat(w, "shared"))
        return WS_SP_GENERIC;
    if (strncmp(w->at, "::cta", 5) == 0)
        w->at += 5;
    return WS_SP_SHARED;
}

/* ---- wmma.load, wmma.store ---- */
static bool wmma_memory(struct ws_dec *d, insn i, struct modifier_words *w, bool store)
{
    struct ws_matrixop o = {.wmma = true};
    struct dests to;
    o.what = store ? WS_MATRIX_STORE : WS_MATRIX_LOAD;
    if (store ? !eat(w, "d") : false)
        return false;
    o.d.which = store || eat(w, "c") ? WS_FRAG_C : eat(w, "a") ? WS_FRAG_A : WS_FRAG_B;
    if (o.d.which == WS_FRAG_B && !eat(w, "b"))
        return false;
    eat(w, "sync");
    eat(w, "aligned");
    if (!layout_word(w, &o.d.col) || !shape_word(w, &o))
        return false;
    o.space = space_word(w);
    if (!elem_word(w, &o.d.elem) || *w->at)
        return false;
    o.d.n = (uint8_t)n_regs(&o, &o.d);
    if (!o.d.n || i->n_operands < 2 || i->n_operands > 3)
        return false;
    const struct ws_ptx_operand *place = &i->operands[store ? 0 : 1];
    if (!address(d, place, &o))
        return false;
    if (i->n_operands == 3)
        o.stride = ws_dec_src(d, &i->operands[2], WS_T_U32);
    if (!(store ? sources(d, &i->operands[1], &o.d) : dests(d, &i->operands[0], &o.d, &to)))
        return false;
    emit(d, &o, store ? NULL : &to);
    return true;
}

/* ---- products ---- */
/* Which formats go together (9.7.14, table of shapes and types). */
static bool fit(const struct ws_matrixop *o)
{
    uint8_t a = o->a.elem, b = o->b.elem, c = o->c.elem, r = o->d.elem;
    bool eight = a == WS_ELEM_S8 || a == WS_ELEM_U8, four = a == WS_ELEM_S4 || a == WS_ELEM_U4;
    if (!is_float(a))
        return r == WS_ELEM_S32 && c == WS_ELEM_S32 && !is_float(b) && bits(a) == bits(b) &&
               (a == WS_ELEM_B1 || eight || four);
    if (a == WS_ELEM_E4M3 || a == WS_ELEM_E5M2)
        return (b == WS_ELEM_E4M3 || b == WS_ELEM_E5M2) && (r == WS_ELEM_F32 || r == WS_ELEM_F16) &&
               c == r && !o->wmma;
    if (a != b)
        return false;
    if (a == WS_ELEM_F16)
        return (r == WS_ELEM_F16 || r == WS_ELEM_F32) && (c == WS_ELEM_F16 || c == WS_ELEM_F32);
    if (a == WS_ELEM_F64)
        return r == WS_ELEM_F64 && c == WS_ELEM_F64;
    return (a == WS_ELEM_BF16 || a == WS_ELEM_TF32) && r == WS_ELEM_F32 && c == WS_ELEM_F32;
}

static bool popc_word(struct modifier_words *w, struct ws_matrixop *o)
{
    o->xor_popc = eat(w, "xor");
    o->and_popc = !o->xor_popc && eat(w, "and");
    return (o->xor_popc || o->and_popc) && eat(w, "popc");
}

static bool multiply(struct ws_dec *d, insn i, struct modifier_words *w, bool wmma)
{
    struct ws_matrixop o = {.what = WS_MATRIX_MULTIPLY, .wmma = wmma};
    struct dests to;
    uint8_t types[4];
    unsigned n = 0;
    bool bit = wmma && popc_word(w, &o);
    o.b.which = WS_FRAG_B;
    o.c.which = o.d.which = WS_FRAG_C;
    eat(w, "sync");
    eat(w, "aligned");
    if (wmma && (!layout_word(w, &o.a.col) || !layout_word(w, &o.b.col)))
        return false;
    if (!shape_word(w, &o))
        return false;
    if (!wmma && (!layout_word(w, &o.a.col) || !layout_word(w, &o.b.col)))
        return false;
    eat(w, "kind::f8f6f4");
    eat(w, "rn"); /* of f64: the only rounding that is done */
    o.satfinite = eat(w, "satfinite");
    while (n < 4 && elem_word(w, &types[n]))
        n++;
    eat(w, "rn");
    o.satfinite |= eat(w, "satfinite");
    if (!wmma && n == 4 && types[1] == WS_ELEM_B1)
        bit = popc_word(w, &o);
    if (*w->at || i->n_operands != 4 || !(n == 4 || (n == 2 && wmma)))
        return false;
    o.d.elem = types[0];
    o.c.elem = types[n - 1];
    o.a.elem = n == 4 ? types[1] : WS_ELEM_F16;
    o.b.elem = n == 4 ? types[2] : WS_ELEM_F16;
    if (!fit(&o) || bit != (o.a.elem == WS_ELEM_B1))
        return false;
    bool quads = !wmma && o.a.elem == WS_ELEM_F16 && o.m == 8;
    if (!wmma && !quads && (o.a.col || !o.b.col))
        return false; /* only row times col */
    struct ws_fragment *f[] = {&o.a, &o.b, &o.c, &o.d};
    for (unsigned k = 0; k < 4; k++)
        if (!(f[k]->n = (uint8_t)n_regs(&o, f[k])))
            return false;
    if (!sources(d, &i->operands[1], &o.a) || !sources(d, &i->operands[2], &o.b) ||
        !sources(d, &i->operands[3], &o.c) || !dests(d, &i->operands[0], &o.d, &to))
        return false;
    emit(d, &o, &to);
    return true;
}

/* ---- wgmma ---- */
/* The shape is m64, any n that is a multiple of 8, and k of 32 bytes. */
static bool wide_shape(struct modifier_words *w, struct ws_wgmmaop *o)
{
    unsigned n, k;
    int used = 0;
    if (sscanf(w->at, ".m64n%3uk%3u%n", &n, &k, &used) != 2 || n % 8 || !n ||
        n / 8 > WS_WGMMA_TILES)
        return false;
    w->at += used;
    o->n_tiles = (uint8_t)(n / 8);
    o->tile.m = 16;
    o->tile.n = 8;
    o->tile.k = (uint16_t)k;
    return true;
}

/* The sums' registers are read and written: those of eight columns, then of the next eight. */
static bool wide_sums(struct ws_dec *d, const struct ws_ptx_operand *v, struct ws_wgmmaop *o)
{
    type t = reg_type(o->tile.d.elem, true);
    unsigned n = o->n_tiles * o->tile.d.n;
    if (v->kind != WS_OPD_VEC || v->n != n)
        return false;
    for (unsigned k = 0; k < n; k++) {
        bool finish;
        if (v->v[k].kind != WS_OPD_REG)
            return false;
        o->rows[k] = ws_dec_dst(d, &v->v[k], t, &finish);
        if (finish) /* not a row of its own: its width is another */
            return false;
    }
    return true;
}

/* An immediate factor of 1 or -1, and whether a matrix is transposed in memory. */
static bool immediate(insn i, unsigned at, int64_t a, int64_t b, int64_t *ret)
{
    if (at >= i->n_operands || i->operands[at].kind != WS_OPD_IMM)
        return false;
    *ret = i->operands[at].imm;
    return *ret == a || *ret == b;
}

static bool wide_modifiers(struct modifier_words *w, struct ws_wgmmaop *o)
{
    struct ws_matrixop *t = &o->tile;
    if (!eat(w, "sync") || !eat(w, "aligned") || !wide_shape(w, o) || !elem_word(w, &t->d.elem) ||
        !elem_word(w, &t->a.elem) || !elem_word(w, &t->b.elem))
        return false;
    if (t->a.elem == WS_ELEM_B1 && (!eat(w, "and") || !eat(w, "popc")))
        return false;
    t->and_popc = t->a.elem == WS_ELEM_B1;
    t->satfinite = eat(w, "satfinite");
    t->c.elem = t->d.elem;
    t->b.which = WS_FRAG_B;
    t->c.which = t->d.which = WS_FRAG_C;
    return !*w->at && fit(t) && bits(t->a.elem) * t->k == 8 * WS_WGMMA_K_BYTES &&
           t->a.elem != WS_ELEM_F64 && t->a.elem != WS_ELEM_S4 && t->a.elem != WS_ELEM_U4;
}

/* The factors of A and B, and of halves, which of the matrices in memory are transposed. */
static bool wide_factors(insn i, struct ws_wgmmaop *o)
{
    int64_t v[4] = {1, 1, 0, 0};
    uint8_t e = o->tile.a.elem;
    unsigned at = 4;
    bool halves = e == WS_ELEM_F16 || e == WS_ELEM_BF16;
    if (is_float(e) && (!immediate(i, at, 1, -1, &v[0]) || !immediate(i, at + 1, 1, -1, &v[1])))
        return false;
    at += is_float(e) ? 2 : 0;
    if (halves && !o->a_in_registers && !immediate(i, at++, 0, 1, &v[2]))
        return false;
    if (halves && !immediate(i, at++, 0, 1, &v[3]))
        return false;
    o->minus_a = v[0] < 0;
    o->minus_b = v[1] < 0;
    o->a_by_rows = v[2];
    o->b_by_rows = v[3];
    return at == i->n_operands;
}

static bool wide_multiply(struct ws_dec *d, insn i, struct modifier_words *w)
{
    struct ws_wgmmaop *o = ws_arena_alloc(&d->code->arena, sizeof(*o));
    if (!o) {
        d->oom = true;
        return true;
    }
    struct ws_matrixop *t = &o->tile;
    t->what = WS_MATRIX_MULTIPLY;
    if (!wide_modifiers(w, o) || i->n_operands < 4)
        return false;
    t->a.n = (uint8_t)n_regs(t, &t->a);
    t->b.n = (uint8_t)n_regs(t, &t->b);
    t->c.n = t->d.n = (uint8_t)n_regs(t, &t->d);
    o->a_in_registers = i->operands[1].kind == WS_OPD_VEC;
    if (o->a_in_registers ? !sources(d, &i->operands[1], &t->a)
                          : !(o->a = ws_dec_src(d, &i->operands[1], WS_T_B64)))
        return false;
    o->b = ws_dec_src(d, &i->operands[2], WS_T_B64);
    o->adds = ws_dec_pred(d, &i->operands[3], &o->adds_not);
    if (!wide_factors(i, o) || !wide_sums(d, &i->operands[0], o))
        return false;
    if (ws_matrix_plan(t, &d->code->arena) < 0)
        d->oom = true;
    ws_dec_emit(d, WS_H_bar_warp)->e = (int32_t)ws_dec_const(d, 4, UINT32_MAX);
    ws_dec_emit(d, WS_H_wgmma)->imm = (int64_t)(uintptr_t)o;
    return true;
}

/* Products are done at once, so that fences, groups and waiting for them have nothing to do. */
static bool wgmma(struct ws_dec *d, insn i, struct modifier_words *w)
{
    if (eat(w, "mma_async"))
        return wide_multiply(d, i, w);
    if (!eat(w, "fence") && !eat(w, "commit_group") && !eat(w, "wait_group"))
        return false;
    ws_dec_emit(d, WS_H_nop);
    return true;
}

/* ---- tiles of 8 x 8 halves ---- */
static unsigned tile_count(struct modifier_words *w)
{
    if (eat(w, "x1"))
        return 1;
    if (eat(w, "x2"))
        return 2;
    return eat(w, "x4") ? 4 : 0;
}

static bool tiles(struct ws_dec *d, insn i, struct modifier_words *w, bool store)
{
    struct ws_matrixop o = {.d = {.elem = WS_ELEM_S32}}; /* registers of 32 bits */
    struct dests to;
    o.what = store ? WS_MATRIX_STMATRIX : WS_MATRIX_LDMATRIX;
    eat(w, "sync");
    eat(w, "aligned");
    bool known = false;
    for (const char *before = NULL; before != w->at;) { /* in any order, as ptxas takes them */
        before = w->at;
        known |= eat(w, "m8n8");
        o.trans |= eat(w, "trans");
        if (!o.n_tiles)
            o.n_tiles = tile_count(w);
    }
    o.space = space_word(w);
    if (!known || !o.n_tiles || !eat(w, "b16") || *w->at || i->n_operands != 2)
        return false;
    o.d.n = o.n_tiles;
    if (!address(d, &i->operands[store ? 0 : 1], &o) ||
        !(store ? sources(d, &i->operands[1], &o.d) : dests(d, &i->operands[0], &o.d, &to)))
        return false;
    emit(d, &o, store ? NULL : &to);
    return true;
}

static bool movmatrix(struct ws_dec *d, insn i, struct modifier_words *w)
{
    struct ws_matrixop o = {.what = WS_MATRIX_MOVMATRIX,
                            .a = {.elem = WS_ELEM_S32, .n = 1},
                            .d = {.elem = WS_ELEM_S32, .n = 1}};
    struct dests to;
    eat(w, "sync");
    eat(w, "aligned");
    if (!eat(w, "m8n8") || !eat(w, "trans") || !eat(w, "b16") || *w->at || i->n_operands != 2 ||
        !sources(d, &i->operands[1], &o.a) || !dests(d, &i->operands[0], &o.d, &to))
        return false;
    emit(d, &o, &to);
    return true;
}

void ws_dec_matrix(struct ws_dec *d, insn i)
{
    struct modifier_words w = {i->ext ? i->ext : ""};
    bool ok;
    switch (i->op) {
    case WS_OP_WMMA:
        ok = eat(&w, "load")    ? wmma_memory(d, i, &w, false)
             : eat(&w, "store") ? wmma_memory(d, i, &w, true)
                                : eat(&w, "mma") && multiply(d, i, &w, true);
        break;
    case WS_OP_MMA:
        ok = multiply(d, i, &w, false);
        break;
    case WS_OP_WGMMA:
        ok = wgmma(d, i, &w);
        break;
    case WS_OP_LDMATRIX:
    case WS_OP_STMATRIX:
        ok = tiles(d, i, &w, i->op == WS_OP_STMATRIX);
        break;
    case WS_OP_MOVMATRIX:
        ok = movmatrix(d, i, &w);
        break;
    default:
        ok = false;
        break;
    }
    if (!ok)
        ws_dec_no_such(d, i);
}
