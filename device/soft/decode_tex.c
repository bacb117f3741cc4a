// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode_tex.c - texture and surface instructions: one micro-op each, with a ws_texop that holds its rows.
 *
 * The IR keeps these instructions' modifiers as text (rows W of opcodes.def); here the words are read in the order in which the
 * PTX ISA has them. Forms that are not done are refused like any other opcode: multisample textures, offsets, depth compare. */
#include <string.h>

#include "device/soft/decode_priv.h"
#include "device/soft/exec_tex.h"

typedef const struct ws_ptx_insn *insn;
typedef enum ws_ptx_type type;

/* ---- words of the modifiers ---- */
struct words {
    const char *at; /* at a '.', or at the end */
};
static bool word(struct words *w, const char *want)
{
    size_t n = strlen(want);
    if (w->at[0] != '.' || strncmp(w->at + 1, want, n) != 0 ||
        (w->at[1 + n] != '.' && w->at[1 + n] != '\0'))
        return false;
    w->at += 1 + n;
    return true;
}
/* Index of the word that comes next, or -1. */
static int one_of(struct words *w, const char *const *names, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        if (word(w, names[k]))
            return (int)k;
    return -1;
}
static bool geometry(struct words *w, struct ws_texop *o)
{
    static const char *const names[] = {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};
    int k = one_of(w, names, WS_ARRAY_SIZE(names));
    o->geom = (uint8_t)k;
    return k >= 0;
}
static bool type_word(struct words *w, uint8_t *ret)
{
    static const struct {
        const char *name;
        uint8_t type;
    } names[] = {{"f32", WS_T_F32}, {"s32", WS_T_S32}, {"u32", WS_T_U32},     {"f16", WS_T_F16},
                 {"b32", WS_T_B32}, {"b8", WS_T_B8},   {"b16", WS_T_B16},     {"b64", WS_T_B64},
                 {"u64", WS_T_U64}, {"s64", WS_T_S64}, {"f16x2", WS_T_F16X2}, {"u8", WS_T_U8}};
    for (size_t k = 0; k < WS_ARRAY_SIZE(names); k++)
        if (word(w, names[k].name)) {
            *ret = names[k].type;
            return true;
        }
    return false;
}
static uint8_t vector(struct words *w)
{
    return word(w, "v2") ? 2 : word(w, "v4") ? 4 : 1;
}

/* ---- operands ---- */
static uint32_t handle_row(struct ws_dec *d, const struct ws_ptx_operand *o)
{
    struct ws_ptx_operand h = {
        .kind = o->reg >= 0 ? WS_OPD_REG : WS_OPD_SYM, .reg = o->reg, .sym = o->sym};
    return ws_dec_src(d, &h, WS_T_U64);
}

/* @n rows of type @t from a vector or, for one, a scalar; elements from @first on. */
static bool rows_of(struct ws_dec *d, const struct ws_ptx_operand *o, unsigned first, unsigned n,
                    type t, uint32_t *ret)
{
    if (o->kind != WS_OPD_VEC && first == 0 && n == 1) {
        ret[0] = ws_dec_src(d, o, t);
        return true;
    }
    if (o->kind != WS_OPD_VEC || o->n < first + n)
        return false;
    for (unsigned k = 0; k < n; k++)
        ret[k] = ws_dec_src(d, &o->v[first + k], t);
    return true;
}

static unsigned dimensions(const struct ws_texop *o)
{
    static const uint8_t n[] = {1, 2, 3, 1, 2, 3, 3};
    return n[o->geom];
}

/* [handle, {coordinates}] or [texture, sampler, {coordinates}]. */
static bool place(struct ws_dec *d, const struct ws_ptx_operand *a, struct ws_texop *o, bool tex)
{
    bool layered = o->geom == WS_GEOM_A1D || o->geom == WS_GEOM_A2D || o->geom == WS_GEOM_ACUBE;
    static const uint8_t elements[] = {1, 2, 4, 2, 4, 4, 4};
    if (a->kind != WS_OPD_ADDR || a->imm || (a->reg < 0 && a->sym < 0) || a->n < 1 ||
        a->n > (tex ? 2 : 1))
        return false;
    const struct ws_ptx_operand *at = &a->v[a->n - 1];
    /* four elements may always be written; those too many are not looked at */
    if (at->kind == WS_OPD_VEC && at->n != elements[o->geom] && !(tex && at->n == 4))
        return false;
    o->handle = handle_row(d, a);
    if (a->n == 2) {
        if (a->v[0].kind != WS_OPD_REG && a->v[0].kind != WS_OPD_SYM)
            return false;
        o->sampler = ws_dec_src(d, &a->v[0], WS_T_U64);
    }
    return (!layered || rows_of(d, at, 0, 1, WS_T_U32, &o->layer)) &&
           rows_of(d, at, layered, dimensions(o), (type)o->ctype, o->coord);
}

/* Destinations are written under their own names; those of another width through temporaries. */
struct dests {
    const struct ws_ptx_operand *o[4];
    bool finish[4];
};
static bool dests(struct ws_dec *d, const struct ws_ptx_operand *o, struct ws_texop *t,
                  struct dests *ret)
{
    if (o->kind == WS_OPD_VEC ? o->n != t->n : t->n != 1)
        return false;
    for (unsigned k = 0; k < t->n; k++) {
        ret->o[k] = o->kind == WS_OPD_VEC ? &o->v[k] : o;
        t->d[k] = ws_dec_dst(d, ret->o[k], (type)t->dtype, &ret->finish[k]);
    }
    return true;
}
static void finish(struct ws_dec *d, const struct ws_texop *t, const struct dests *s)
{
    for (unsigned k = 0; k < t->n; k++)
        if (s->finish[k])
            ws_dec_finish(d, s->o[k], (type)t->dtype, t->d[k]);
}

static void emit(struct ws_dec *d, enum ws_handler h, const struct ws_texop *o, uint32_t x)
{
    struct ws_texop *kept = ws_arena_alloc(&d->code->arena, sizeof *kept);
    if (!kept) {
        d->oom = true;
        return;
    }
    *kept = *o;
    struct ws_uop *u = ws_dec_emit(d, h);
    u->imm = (int64_t)(uintptr_t)kept;
    u->x = x;
}

/* ---- textures ---- */
static bool result_type(struct ws_texop *o)
{
    switch (o->dtype) {
    case WS_T_U32:
    case WS_T_S32:
    case WS_T_F32:
    case WS_T_F16:
        return o->n == 4;
    case WS_T_F16X2:
        return o->n == 2;
    default:
        return false;
    }
}

static const struct ws_ptx_operand *split_pred(struct ws_dec *d, const struct ws_ptx_operand *o,
                                               struct ws_texop *t)
{
    if (o->kind != WS_OPD_PAIR)
        return o;
    if (o->v[1].kind != WS_OPD_SINK)
        t->pred = ws_dec_pred_dst(d, &o->v[1]);
    return &o->v[0];
}

static bool tex(struct ws_dec *d, insn i)
{
    struct words w = {i->ext ? i->ext : ""};
    struct ws_texop o = {0};
    struct dests to;
    unsigned n = 2;
    o.lod = word(&w, "base")    ? WS_LOD_BASE
            : word(&w, "level") ? WS_LOD_LEVEL
            : word(&w, "grad")  ? WS_LOD_GRAD
                                : WS_LOD_NONE;
    if (!geometry(&w, &o))
        return false;
    o.n = vector(&w);
    if (!type_word(&w, &o.dtype) || !type_word(&w, &o.ctype) || *w.at || !result_type(&o) ||
        (o.ctype != WS_T_F32 && (o.ctype != WS_T_S32 || o.geom >= WS_GEOM_CUBE)))
        return false;
    n += o.lod == WS_LOD_LEVEL ? 1 : o.lod == WS_LOD_GRAD ? 2 : 0;
    if (i->n_operands != n || (o.lod == WS_LOD_GRAD && o.ctype != WS_T_F32) ||
        !place(d, &i->operands[1], &o, true))
        return false;
    if (o.lod == WS_LOD_LEVEL)
        o.level = ws_dec_src(d, &i->operands[2], (type)o.ctype);
    if (o.lod == WS_LOD_GRAD && (!rows_of(d, &i->operands[2], 0, dimensions(&o), WS_T_F32, o.gx) ||
                                 !rows_of(d, &i->operands[3], 0, dimensions(&o), WS_T_F32, o.gy)))
        return false;
    if (!dests(d, split_pred(d, &i->operands[0], &o), &o, &to))
        return false;
    emit(d, WS_H_tex, &o, 0);
    finish(d, &o, &to);
    return true;
}

static bool tld4(struct ws_dec *d, insn i)
{
    static const char *const comps[] = {"r", "g", "b", "a"};
    struct words w = {i->ext ? i->ext : ""};
    struct ws_texop o = {0};
    struct dests to;
    int comp = one_of(&w, comps, 4);
    o.comp = (uint8_t)comp;
    if (comp < 0 || !geometry(&w, &o) || o.geom == WS_GEOM_1D || o.geom == WS_GEOM_3D ||
        o.geom == WS_GEOM_A1D)
        return false;
    o.n = vector(&w);
    if (!type_word(&w, &o.dtype) || !type_word(&w, &o.ctype) || *w.at || o.n != 4 ||
        !result_type(&o) || o.dtype == WS_T_F16 || o.ctype != WS_T_F32 || i->n_operands != 2 ||
        !place(d, &i->operands[1], &o, true) ||
        !dests(d, split_pred(d, &i->operands[0], &o), &o, &to))
        return false;
    emit(d, WS_H_tld4, &o, 0);
    finish(d, &o, &to);
    return true;
}

/* ---- surfaces ---- */
static bool surf_mode(struct words *w, struct ws_texop *o)
{
    static const char *const names[] = {"trap", "clamp", "zero"};
    int k = one_of(w, names, 3);
    o->mode = (uint8_t)k;
    return k >= 0 && !*w->at;
}

static bool surf_geometry(struct words *w, struct ws_texop *o)
{
    o->ctype = WS_T_S32;
    return geometry(w, o) && o->geom < WS_GEOM_CUBE;
}

/* sul.b geom cop vec type mode */
static bool sul_sust_words(struct words *w, struct ws_texop *o, bool load)
{
    static const char *const cops[] = {"ca", "cg", "cs", "cv", "wb", "wt"};
    o->formatted = !load && word(w, "p");
    if ((!o->formatted && !word(w, "b")) || !surf_geometry(w, o))
        return false;
    (void)one_of(w, cops, 6);
    o->n = vector(w);
    if (!type_word(w, &o->dtype) || !surf_mode(w, o))
        return false;
    o->size = (uint8_t)ws_ptx_type_bytes((type)o->dtype);
    if (o->formatted)
        return o->dtype == WS_T_B32 || o->dtype == WS_T_U32 || o->dtype == WS_T_S32 ||
               o->dtype == WS_T_F32;
    return (o->dtype == WS_T_B8 || o->dtype == WS_T_B16 || o->dtype == WS_T_B32 ||
            o->dtype == WS_T_B64) &&
           o->size * o->n <= 16;
}

static bool suld(struct ws_dec *d, insn i)
{
    struct words w = {i->ext ? i->ext : ""};
    struct ws_texop o = {0};
    struct dests to;
    if (!sul_sust_words(&w, &o, true) || i->n_operands != 2 ||
        !place(d, &i->operands[1], &o, false) || !dests(d, &i->operands[0], &o, &to))
        return false;
    emit(d, WS_H_suld, &o, 0);
    finish(d, &o, &to);
    return true;
}

static bool sust(struct ws_dec *d, insn i)
{
    struct words w = {i->ext ? i->ext : ""};
    struct ws_texop o = {0};
    if (!sul_sust_words(&w, &o, false) || i->n_operands != 2 ||
        !place(d, &i->operands[0], &o, false))
        return false;
    const struct ws_ptx_operand *v = &i->operands[1];
    if ((v->kind == WS_OPD_VEC ? v->n : 1) != o.n || !rows_of(d, v, 0, o.n, (type)o.dtype, o.d))
        return false;
    if (o.formatted)
        o.size = 1; /* the surface's format says how far texels are aligned */
    emit(d, WS_H_sust, &o, 0);
    return true;
}

static bool sured(struct ws_dec *d, insn i)
{
    static const char *const names[] = {"add", "min", "max", "and", "or"};
    static const uint8_t subs[] = {WS_SUB_ADD, WS_SUB_MIN, WS_SUB_MAX, WS_SUB_AND, WS_SUB_OR};
    struct words w = {i->ext ? i->ext : ""};
    struct ws_texop o = {.n = 1};
    o.formatted = word(&w, "p");
    if (!o.formatted && !word(&w, "b"))
        return false;
    int op = one_of(&w, names, 5);
    if (op < 0 || !surf_geometry(&w, &o) || !type_word(&w, &o.dtype) || !surf_mode(&w, &o))
        return false;
    o.op = subs[op];
    o.size = (uint8_t)ws_ptx_type_bytes((type)o.dtype);
    bool bits = o.dtype == WS_T_B32 || o.dtype == WS_T_B64, logic = op >= 3;
    if (o.size < 4 || o.dtype == WS_T_F32 || o.dtype == WS_T_F16X2 || (o.formatted && !bits) ||
        (!o.formatted && (o.dtype == WS_T_B64 || logic != bits)) || i->n_operands != 2 ||
        !place(d, &i->operands[0], &o, false) ||
        !rows_of(d, &i->operands[1], 0, 1, (type)o.dtype, o.d))
        return false;
    emit(d, WS_H_sured, &o, 0);
    return true;
}

/* ---- questions ---- */
static bool query(struct ws_dec *d, insn i, bool surface)
{
    static const char *const names[_WS_TXQ_N] = {
        [WS_TXQ_WIDTH] = "width",
        [WS_TXQ_HEIGHT] = "height",
        [WS_TXQ_DEPTH] = "depth",
        [WS_TXQ_CHANNEL_DATA_TYPE] = "channel_data_type",
        [WS_TXQ_CHANNEL_ORDER] = "channel_order",
        [WS_TXQ_NORMALIZED_COORDS] = "normalized_coords",
        [WS_TXQ_ARRAY_SIZE] = "array_size",
        [WS_TXQ_NUM_MIPMAP_LEVELS] = "num_mipmap_levels",
        [WS_TXQ_NUM_SAMPLES] = "num_samples",
        [WS_TXQ_FORCE_UNNORMALIZED_COORDS] = "force_unnormalized_coords",
        [WS_TXQ_FILTER_MODE] = "filter_mode",
        [WS_TXQ_ADDR_MODE_0] = "addr_mode_0",
        [WS_TXQ_ADDR_MODE_1] = "addr_mode_1",
        [WS_TXQ_ADDR_MODE_2] = "addr_mode_2",
        [WS_TXQ_MEMORY_LAYOUT] = "memory_layout",
    };
    struct words w = {i->ext ? i->ext : ""};
    struct ws_texop o = {.n = 1, .dtype = WS_T_B32};
    struct dests to;
    bool level = !surface && word(&w, "level");
    int q = one_of(&w, names, _WS_TXQ_N);
    bool asks_surface =
        q <= WS_TXQ_CHANNEL_ORDER || q == WS_TXQ_ARRAY_SIZE || q == WS_TXQ_MEMORY_LAYOUT;
    o.query = (uint8_t)q;
    if (q < 0 || !word(&w, "b32") || *w.at || (level && q > WS_TXQ_DEPTH) ||
        (surface ? !asks_surface : q == WS_TXQ_MEMORY_LAYOUT) || i->n_operands != (level ? 3 : 2))
        return false;
    const struct ws_ptx_operand *a = &i->operands[1];
    if (a->kind != WS_OPD_ADDR || a->imm || a->n || (a->reg < 0 && a->sym < 0))
        return false;
    o.handle = handle_row(d, a);
    if (level)
        o.level = ws_dec_src(d, &i->operands[2], WS_T_U32);
    if (!dests(d, &i->operands[0], &o, &to))
        return false;
    emit(d, WS_H_txq, &o, surface ? WS_SURFACE_MAGIC : WS_TEXTURE_MAGIC);
    finish(d, &o, &to);
    return true;
}

static bool istypep(struct ws_dec *d, insn i)
{
    struct words w = {i->ext ? i->ext : ""};
    uint8_t t = word(&w, "texref")       ? WS_T_TEXREF
                : word(&w, "samplerref") ? WS_T_SAMPLERREF
                : word(&w, "surfref")    ? WS_T_SURFREF
                                         : WS_T_NONE;
    if (!t || *w.at || i->n_operands != 2)
        return false;
    uint32_t a = ws_dec_src(d, &i->operands[1], WS_T_U64);
    ws_dec_emit3(d, WS_H_istypep, ws_dec_pred_dst(d, &i->operands[0]), a, 0)->x = t;
    return true;
}

bool ws_dec_tex(struct ws_dec *d, insn i)
{
    bool ok;
    switch (i->op) {
    case WS_OP_TEX:
        ok = tex(d, i);
        break;
    case WS_OP_TLD4:
        ok = tld4(d, i);
        break;
    case WS_OP_TXQ:
        ok = query(d, i, false);
        break;
    case WS_OP_SUQ:
        ok = query(d, i, true);
        break;
    case WS_OP_SULD:
        ok = suld(d, i);
        break;
    case WS_OP_SUST:
        ok = sust(d, i);
        break;
    case WS_OP_SURED:
        ok = sured(d, i);
        break;
    case WS_OP_ISTYPEP:
        ok = istypep(d, i);
        break;
    default:
        return false;
    }
    if (!ok && !d->oom)
        ws_dec_no_such(d, i);
    return true;
}
