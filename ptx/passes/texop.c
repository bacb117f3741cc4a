// SPDX-License-Identifier: Apache-2.0
/* The words are read in the order in which the PTX ISA has them. */
#include <string.h>

#include "base/alloc.h"
#include "ptx/passes/texop.h"

typedef const struct ws_ptx_insn *insn;
typedef enum ws_ptx_type type;

/* ---- words of the modifiers ---- */
struct texop_words {
    const char *at; /* at a '.', or at the end */
};
static bool word(struct texop_words *w, const char *want)
{
    size_t n = strlen(want);
    if (w->at[0] != '.' || strncmp(w->at + 1, want, n) != 0 ||
        (w->at[1 + n] != '.' && w->at[1 + n] != '\0'))
        return false;
    w->at += 1 + n;
    return true;
}
/* Index of the word that comes next, or -1. */
static int one_of(struct texop_words *w, const char *const *names, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        if (word(w, names[k]))
            return (int)k;
    return -1;
}
static bool geometry(struct texop_words *w, struct ws_ptx_texop *o)
{
    static const char *const names[] = {"1d", "2d", "3d", "a1d", "a2d", "cube", "acube"};
    int k = one_of(w, names, WS_ARRAY_SIZE(names));
    o->geom = (uint8_t)k;
    return k >= 0;
}
static bool type_word(struct texop_words *w, uint8_t *ret)
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
static uint8_t vector(struct texop_words *w)
{
    return word(w, "v2") ? 2 : word(w, "v4") ? 4 : 1;
}

/* ---- operands ---- */
/* @n of them from a vector or, for one, a scalar; elements from @first on. */
static bool elements(const struct ws_ptx_operand *o, unsigned first, unsigned n,
                     const struct ws_ptx_operand **ret)
{
    if (o->kind != WS_OPD_VEC && first == 0 && n == 1) {
        ret[0] = o;
        return true;
    }
    if (o->kind != WS_OPD_VEC || o->n < first + n)
        return false;
    for (unsigned k = 0; k < n; k++)
        ret[k] = &o->v[first + k];
    return true;
}

static unsigned dimensions(const struct ws_ptx_texop *o)
{
    static const uint8_t n[] = {1, 2, 3, 1, 2, 3, 3};
    return n[o->geom];
}

/* [handle, {coordinates}] or [texture, sampler, {coordinates}]. */
static bool place(const struct ws_ptx_operand *a, struct ws_ptx_texop *o, bool tex)
{
    bool layered = o->geom == WS_GEOM_A1D || o->geom == WS_GEOM_A2D || o->geom == WS_GEOM_ACUBE;
    static const uint8_t n[] = {1, 2, 4, 2, 4, 4, 4};
    if (a->kind != WS_OPD_ADDR || a->imm || (a->reg < 0 && a->sym < 0) || a->n < 1 ||
        a->n > (tex ? 2 : 1))
        return false;
    const struct ws_ptx_operand *at = &a->v[a->n - 1];
    /* four elements may always be written; those too many are not looked at */
    if (at->kind == WS_OPD_VEC && at->n != n[o->geom] && !(tex && at->n == 4))
        return false;
    o->handle = a;
    if (a->n == 2) {
        if (a->v[0].kind != WS_OPD_REG && a->v[0].kind != WS_OPD_SYM)
            return false;
        o->sampler = &a->v[0];
    }
    return (!layered || elements(at, 0, 1, &o->layer)) &&
           elements(at, layered, dimensions(o), o->coord);
}

static bool dests(const struct ws_ptx_operand *o, struct ws_ptx_texop *t)
{
    return (o->kind == WS_OPD_VEC ? o->n == t->n : t->n == 1) && elements(o, 0, t->n, t->d);
}

/* ---- textures ---- */
static bool result_type(const struct ws_ptx_texop *o)
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

static const struct ws_ptx_operand *split_pred(const struct ws_ptx_operand *o,
                                               struct ws_ptx_texop *t)
{
    if (o->kind != WS_OPD_PAIR)
        return o;
    if (o->v[1].kind != WS_OPD_SINK)
        t->pred = &o->v[1];
    return &o->v[0];
}

static enum ws_tex_lod lod_word(struct texop_words *w)
{
    if (word(w, "base"))
        return WS_LOD_BASE;
    if (word(w, "level"))
        return WS_LOD_LEVEL;
    return word(w, "grad") ? WS_LOD_GRAD : WS_LOD_NONE;
}

static bool tex(struct ws_ptx_texop *o, insn i, struct texop_words w)
{
    unsigned n = 2;
    o->lod = lod_word(&w);
    if (!geometry(&w, o))
        return false;
    o->n = vector(&w);
    if (!type_word(&w, &o->dtype) || !type_word(&w, &o->ctype) || *w.at || !result_type(o) ||
        (o->ctype != WS_T_F32 && (o->ctype != WS_T_S32 || o->geom >= WS_GEOM_CUBE)))
        return false;
    n += o->lod == WS_LOD_LEVEL ? 1 : o->lod == WS_LOD_GRAD ? 2 : 0;
    if (i->n_operands != n || (o->lod == WS_LOD_GRAD && o->ctype != WS_T_F32) ||
        !place(&i->operands[1], o, true))
        return false;
    if (o->lod == WS_LOD_LEVEL)
        o->level = &i->operands[2];
    if (o->lod == WS_LOD_GRAD && (!elements(&i->operands[2], 0, dimensions(o), o->gx) ||
                                  !elements(&i->operands[3], 0, dimensions(o), o->gy)))
        return false;
    return dests(split_pred(&i->operands[0], o), o);
}

static bool tld4(struct ws_ptx_texop *o, insn i, struct texop_words w)
{
    static const char *const comps[] = {"r", "g", "b", "a"};
    int comp = one_of(&w, comps, 4);
    o->comp = (uint8_t)comp;
    if (comp < 0 || !geometry(&w, o) || o->geom == WS_GEOM_1D || o->geom == WS_GEOM_3D ||
        o->geom == WS_GEOM_A1D)
        return false;
    o->n = vector(&w);
    return type_word(&w, &o->dtype) && type_word(&w, &o->ctype) && !*w.at && o->n == 4 &&
           result_type(o) && o->dtype != WS_T_F16 && o->ctype == WS_T_F32 && i->n_operands == 2 &&
           place(&i->operands[1], o, true) && dests(split_pred(&i->operands[0], o), o);
}

/* ---- surfaces ---- */
static bool surf_mode(struct texop_words *w, struct ws_ptx_texop *o)
{
    static const char *const names[] = {"trap", "clamp", "zero"};
    int k = one_of(w, names, 3);
    o->mode = (uint8_t)k;
    return k >= 0 && !*w->at;
}

static bool surf_geometry(struct texop_words *w, struct ws_ptx_texop *o)
{
    o->ctype = WS_T_S32;
    return geometry(w, o) && o->geom < WS_GEOM_CUBE;
}

/* sul.b geom cop vec type mode */
static bool sul_sust_words(struct texop_words *w, struct ws_ptx_texop *o, bool load)
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

static bool suld(struct ws_ptx_texop *o, insn i, struct texop_words w)
{
    return sul_sust_words(&w, o, true) && i->n_operands == 2 && place(&i->operands[1], o, false) &&
           dests(&i->operands[0], o);
}

static bool sust(struct ws_ptx_texop *o, insn i, struct texop_words w)
{
    return sul_sust_words(&w, o, false) && i->n_operands == 2 && place(&i->operands[0], o, false) &&
           dests(&i->operands[1], o);
}

static bool sured(struct ws_ptx_texop *o, insn i, struct texop_words w)
{
    static const char *const names[] = {"add", "min", "max", "and", "or"};
    static const uint8_t subs[] = {WS_SUB_ADD, WS_SUB_MIN, WS_SUB_MAX, WS_SUB_AND, WS_SUB_OR};
    o->n = 1;
    o->formatted = word(&w, "p");
    if (!o->formatted && !word(&w, "b"))
        return false;
    int op = one_of(&w, names, 5);
    if (op < 0 || !surf_geometry(&w, o) || !type_word(&w, &o->dtype) || !surf_mode(&w, o))
        return false;
    o->op = subs[op];
    o->size = (uint8_t)ws_ptx_type_bytes((type)o->dtype);
    bool bits = o->dtype == WS_T_B32 || o->dtype == WS_T_B64, logic = op >= 3;
    return o->size >= 4 && o->dtype != WS_T_F32 && o->dtype != WS_T_F16X2 &&
           !(o->formatted && !bits) &&
           !(!o->formatted && (o->dtype == WS_T_B64 || logic != bits)) && i->n_operands == 2 &&
           place(&i->operands[0], o, false) && elements(&i->operands[1], 0, 1, o->d);
}

/* ---- questions ---- */
static bool query(struct ws_ptx_texop *o, insn i, struct texop_words w, bool surface)
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
    o->n = 1;
    o->dtype = WS_T_B32;
    bool level = !surface && word(&w, "level");
    int q = one_of(&w, names, _WS_TXQ_N);
    bool asks_surface =
        q <= WS_TXQ_CHANNEL_ORDER || q == WS_TXQ_ARRAY_SIZE || q == WS_TXQ_MEMORY_LAYOUT;
    o->query = (uint8_t)q;
    if (q < 0 || !word(&w, "b32") || *w.at || (level && q > WS_TXQ_DEPTH) ||
        (surface ? !asks_surface : q == WS_TXQ_MEMORY_LAYOUT) || i->n_operands != (level ? 3 : 2))
        return false;
    const struct ws_ptx_operand *a = &i->operands[1];
    if (a->kind != WS_OPD_ADDR || a->imm || a->n || (a->reg < 0 && a->sym < 0))
        return false;
    o->handle = a;
    if (level)
        o->level = &i->operands[2];
    return dests(&i->operands[0], o);
}

static enum ws_ptx_type reference_word(struct texop_words *w)
{
    if (word(w, "texref"))
        return WS_T_TEXREF;
    if (word(w, "samplerref"))
        return WS_T_SAMPLERREF;
    return word(w, "surfref") ? WS_T_SURFREF : WS_T_NONE;
}

static bool istypep(struct ws_ptx_texop *o, insn i, struct texop_words w)
{
    o->ref = reference_word(&w);
    if (!o->ref || *w.at || i->n_operands != 2)
        return false;
    o->pred = &i->operands[0];
    o->handle = &i->operands[1];
    return true;
}

bool ws_ptx_is_texop(enum ws_ptx_op op)
{
    switch (op) {
    case WS_OP_TEX:
    case WS_OP_TLD4:
    case WS_OP_TXQ:
    case WS_OP_SUQ:
    case WS_OP_SULD:
    case WS_OP_SUST:
    case WS_OP_SURED:
    case WS_OP_ISTYPEP:
        return true;
    default:
        return false;
    }
}

bool ws_ptx_texop_read(struct ws_ptx_texop *ret, insn i)
{
    struct texop_words w = {i->ext ? i->ext : ""};
    *ret = (struct ws_ptx_texop){.dtype = WS_T_NONE};
    switch (i->op) {
    case WS_OP_TEX:
        return tex(ret, i, w);
    case WS_OP_TLD4:
        return tld4(ret, i, w);
    case WS_OP_TXQ:
        return query(ret, i, w, false);
    case WS_OP_SUQ:
        return query(ret, i, w, true);
    case WS_OP_SULD:
        return suld(ret, i, w);
    case WS_OP_SUST:
        return sust(ret, i, w);
    case WS_OP_SURED:
        return sured(ret, i, w);
    case WS_OP_ISTYPEP:
        return istypep(ret, i, w);
    default:
        return false;
    }
}
