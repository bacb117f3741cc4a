// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/mem.c - loads, stores and atomics (PTX ISA 9.7.9, 9.7.13).
 *
 * A micro-op moves up to 16 bytes of a lane, in up to four elements; wider vectors are several.
 * 128-bit values are two elements. Atomics on vectors are done element by element, which is all
 * that PTX promises of them. Cache operators, eviction priorities and prefetch sizes have nothing
 * to act on and are read over. */
#include "device/soft/decode/util.h"

/* ---- memory ---- */
struct address {
    uint32_t row;
    int64_t imm;
    bool a32;
    struct ws_var_store *store;
    const struct ws_ptx_var *var;
};

static bool address(struct ws_dec *d, insn i, const struct ws_ptx_operand *o, struct address *ret)
{
    *ret = (struct address){.imm = o->imm};
    if (o->kind != WS_OPD_ADDR || o->n)
        return no_such(d, i);
    if (o->reg >= 0) {
        struct ws_ptx_operand r = {.kind = WS_OPD_REG, .reg = o->reg, .sym = -1};
        ret->a32 = ws_ptx_type_bytes(d->df->f->regs[o->reg].type) == 4;
        ret->row = ws_dec_src(d, &r, ret->a32 ? WS_T_U32 : WS_T_U64);
        return true;
    }
    if (o->sym < 0) {
        ret->row = ws_dec_const(d, 8, 0);
        return true;
    }
    if (WS_PTX_SYM_KIND(o->sym) == WS_PTX_SYM_FUNC)
        return no_such(d, i);
    ret->var = ws_dec_symvar(d, o->sym, &ret->store);
    switch (ret->var->space) {
    case WS_SP_SHARED: {
        uint32_t off = ws_dec_shared_off(d, o->sym);
        ret->a32 = true;
        ret->row = off == ~0u ? ws_dec_dyn_row(d, 4) : ws_dec_const(d, 4, 0);
        ret->imm += off == ~0u ? 0 : off;
        return true;
    }
    case WS_SP_GLOBAL:
    case WS_SP_CONST:
        ret->row = ws_dec_var_row(d, 8, (uint32_t)WS_PTX_SYM_INDEX(o->sym), 0);
        return true;
    default:
        break;
    }
    if (ret->store->kind == WS_STORE_LOCAL) {
        ret->row = d->img->fp_off;
        ret->imm += ret->store->off;
        ret->a32 = true;
    }
    return true;
}

static uint32_t memory_flags(insn i, uint32_t space)
{
    uint32_t x = space;
    if (space == WS_SP_CONST || space == WS_SP_PARAM)
        x |= WS_X_NOCOUNT;
    if (i->sem != WS_SEM_NONE && i->sem != WS_SEM_WEAK)
        x |= WS_X_STRONG;
    if (i->sem == WS_SEM_ACQUIRE || i->sem == WS_SEM_ACQ_REL || i->sem == WS_SEM_SC)
        x |= WS_X_ACQUIRE;
    if (i->sem == WS_SEM_RELEASE || i->sem == WS_SEM_ACQ_REL || i->sem == WS_SEM_SC)
        x |= WS_X_RELEASE;
    if (i->sem == WS_SEM_SC)
        x |= WS_X_SC;
    return x;
}

/* Loads and stores whose place is known to be global or shared memory. */
static const struct {
    uint8_t n, size;     /* elements, and bytes of each */
    uint16_t handler[4]; /* by 2 * whether it loads + whether the place is global */
} plain_accesses[] = {
#define ALL_FOUR(name) WS_H_st_s_##name, WS_H_st_g_##name, WS_H_ld_s_##name, WS_H_ld_g_##name
    {1, 1, {ALL_FOUR(8)}},    {1, 2, {ALL_FOUR(16)}},   {1, 4, {ALL_FOUR(32)}},
    {1, 8, {ALL_FOUR(64)}},   {2, 4, {ALL_FOUR(32v2)}}, {4, 4, {ALL_FOUR(32v4)}},
    {2, 8, {ALL_FOUR(64v2)}},
#undef ALL_FOUR
};

static enum ws_handler memory_handler(bool load, uint32_t x, unsigned size, unsigned n)
{
    uint32_t space = x & WS_X_SPACE_MASK;
    bool g = !(x & WS_X_A32) &&
             (space == WS_SP_GLOBAL || space == WS_SP_CONST || space == WS_SP_GENERIC),
         s = (x & WS_X_A32) && space == WS_SP_SHARED;
    if (!(x & WS_X_STRONG) && (g || s))
        for (size_t k = 0; k < WS_ARRAY_SIZE(plain_accesses); k++)
            if (plain_accesses[k].n == n && plain_accesses[k].size == size)
                return plain_accesses[k].handler[2 * load + g];
    return load ? WS_H_ld_x : WS_H_st_x;
}

/* A scalar parameter that lives in a row. */
static bool param_row(struct ws_dec *d, insn i, const struct address *a,
                      const struct ws_ptx_operand *value, bool load)
{
    type t = i->types[0];
    bool finish;
    if (!a->store || a->store->kind != WS_STORE_ROW)
        return false;
    if (load) {
        uint32_t dst = ws_dec_dst(d, value, t, &finish);
        ws_dec_mov(d, ws_dec_width(t), dst, a->store->off);
        if (finish)
            ws_dec_finish(d, value, t, dst);
    } else {
        ws_dec_mov(d, ws_dec_width(t), a->store->off, ws_dec_src(d, value, t));
    }
    return true;
}

/* Elements [first, first + n) of an access: n * size bytes, 16 at most. */
static void ld_st_part(struct ws_dec *d, insn i, bool load, const struct address *a, uint32_t space,
                       const uint32_t *rows, unsigned size, unsigned first, unsigned n)
{
    if (a->store && a->store->kind == WS_STORE_KPARAM) {
        uint64_t off = a->store->off + (uint64_t)a->imm + first * size;
        if (!load || off > d->df->f->param_bytes || d->df->f->param_bytes - off < n * size ||
            off % size) {
            no_such(d, i);
            return;
        }
        for (unsigned k = 0; k < n; k++) {
            struct ws_uop *u = ws_dec_emit3(d, WS_H_ld_p, rows[k], 0, 0);
            u->imm = (int64_t)(off + k * size);
            u->x = size << WS_X_SIZE_SHIFT;
        }
        return;
    }
    uint32_t x = memory_flags(i, space) | (a->a32 ? WS_X_A32 : 0) | size << WS_X_SIZE_SHIFT |
                 n << WS_X_VEC_SHIFT;
    struct ws_uop *u =
        ws_dec_emit3(d, memory_handler(load, x, size, n), rows[0], a->row, n > 1 ? rows[1] : 0);
    u->c = n > 2 ? (int32_t)rows[2] : 0;
    u->e = n > 3 ? (int32_t)rows[3] : 0;
    u->imm = a->imm + first * size;
    u->x = x;
}

static void ld_st(struct ws_dec *d, insn i, bool load)
{
    const struct ws_ptx_operand *value = &i->operands[load ? 0 : 1], *v = value;
    type t = i->types[0];
    unsigned n = i->vec > 1 ? i->vec : 1, size = ws_ptx_type_bytes(t);
    struct address a;
    uint32_t rows[8] = {0}, space = i->space;
    bool finish[8] = {false};
    if (i->n_operands < 2 || n > 8 || size > 16 || n * size > 32 || (size == 16 && n > 1)) {
        no_such(d, i);
        return;
    }
    if (!address(d, i, &i->operands[load ? 1 : 0], &a))
        return;
    if (n > 1) {
        if (value->kind != WS_OPD_VEC || value->n != n) {
            no_such(d, i);
            return;
        }
        v = value->v;
    }
    if (n == 1 && size <= 8 && param_row(d, i, &a, v, load))
        return;
    if (a.var && a.store->kind == WS_STORE_LOCAL)
        space = WS_SP_LOCAL;
    if (a.var && space == WS_SP_GENERIC && a.var->space != WS_SP_PARAM)
        space = a.var->space; /* [variable] without a space */
    if (size == 16) {
        rows[0] = load ? ws_dec_dst128(d, v) : ws_dec_src128(d, v);
        rows[1] = rows[0] + WS_DEC_HIGH_HALF;
        ld_st_part(d, i, load, &a, space, rows, 8, 0, 2);
        return;
    }
    for (unsigned k = 0; k < n; k++)
        rows[k] = load ? ws_dec_dst(d, &v[k], t, &finish[k]) : ws_dec_src(d, &v[k], t);
    if (n * size == 32 || n == 8) {
        uint32_t w = a.a32 ? 4 : 8;
        if (load && a.row) /* the first half may overwrite the address */
            a.row = ws_dec_mov(d, w, ws_dec_temp(d, w), a.row);
        ld_st_part(d, i, load, &a, space, rows, size, 0, n / 2);
        ld_st_part(d, i, load, &a, space, rows + n / 2, size, n / 2, n / 2);
    } else {
        ld_st_part(d, i, load, &a, space, rows, size, 0, n);
    }
    for (unsigned k = 0; load && k < n; k++)
        if (finish[k])
            ws_dec_finish(d, &v[k], t, rows[k]);
}

void ws_dec_load(struct ws_dec *d, insn i)
{
    ld_st(d, i, true);
}

void ws_dec_store(struct ws_dec *d, insn i)
{
    ld_st(d, i, false);
}

/* What an atomic may do with floats. */
static bool float_atomic_ok(insn i, type t)
{
    switch (i->sub) {
    case WS_SUB_ADD:
    case WS_SUB_EXCH:
        return true;
    case WS_SUB_MIN:
    case WS_SUB_MAX:
        return is_half(t);
    default:
        return false;
    }
}

static enum ws_handler atom_handler(unsigned bytes)
{
    switch (bytes) {
    case 2:
        return WS_H_atom_16;
    case 4:
        return WS_H_atom_32;
    case 8:
        return WS_H_atom_64;
    default:
        return WS_H_atom_128;
    }
}

/* One element. @dst: destination, or NULL for red. */
static void atom_one(struct ws_dec *d, insn i, const struct address *a, uint32_t space,
                     int64_t more, const struct ws_ptx_operand *dst, const struct ws_ptx_operand *b,
                     const struct ws_ptx_operand *c)
{
    type t = i->types[0];
    unsigned size = ws_ptx_type_bytes(t);
    bool finish = false;
    if ((t == WS_T_F32 || t == WS_T_F64 || is_half(t)) && i->sub == WS_SUB_EXCH)
        t = size == 4 ? WS_T_B32 : size == 8 ? WS_T_B64 : WS_T_B16;
    uint32_t rb, rc, rd = 0;
    if (size == 16) {
        rb = ws_dec_src128(d, b);
        rc = c ? ws_dec_src128(d, c) : rb;
        rd = ws_dec_dst128(d, dst ? dst : &(struct ws_ptx_operand){.kind = WS_OPD_SINK});
    } else {
        rb = ws_dec_src(d, b, t);
        rc = c ? ws_dec_src(d, c, t) : rb;
        if (dst)
            rd = ws_dec_dst(d, dst, t, &finish);
    }
    struct ws_uop *u = ws_dec_emit3(d, atom_handler(size), rd, a->row, rb);
    u->c = (int32_t)rc;
    if (!dst && size < 16)
        u->d = -1;
    u->imm = a->imm + more;
    u->x = space | (a->a32 ? WS_X_A32 : 0) | WS_X_NOCOUNT | size << WS_X_SIZE_SHIFT |
           1u << WS_X_VEC_SHIFT;
    u->mx = i->sub | (uint32_t)t << 8;
    if (finish)
        ws_dec_finish(d, dst, t, rd);
}

static void atomic(struct ws_dec *d, insn i, bool red)
{
    type t = i->types[0];
    unsigned size = ws_ptx_type_bytes(t), at = red ? 0 : 1, n = i->vec > 1 ? i->vec : 1;
    struct address a;
    bool f = t == WS_T_F32 || t == WS_T_F64 || is_half(t), has_c = i->sub == WS_SUB_CAS;
    const struct ws_ptx_operand *o = i->operands, *dst = red ? NULL : &o[0], *b = &o[at + 1];
    if (i->n_operands < at + 2 + has_c || t == WS_T_F32X2 || (f && !float_atomic_ok(i, t)) ||
        (size == 2 && i->sub != WS_SUB_CAS && !f) ||
        (size == 16 && i->sub != WS_SUB_CAS && i->sub != WS_SUB_EXCH) ||
        (n > 1 &&
         (has_c || b->kind != WS_OPD_VEC || b->n != n ||
          (dst && dst->kind != WS_OPD_SINK && (dst->kind != WS_OPD_VEC || dst->n != n))))) {
        no_such(d, i);
        return;
    }
    if (!address(d, i, &o[at], &a))
        return;
    uint32_t space = i->space;
    if (a.var && space == WS_SP_GENERIC)
        space = a.var->space;
    if (n == 1) {
        atom_one(d, i, &a, space, 0, dst, b, has_c ? &o[at + 2] : NULL);
        return;
    }
    for (unsigned k = 0; k < n; k++)
        atom_one(d, i, &a, space, (int64_t)k * size,
                 dst && dst->kind == WS_OPD_VEC ? &dst->v[k] : NULL, &b->v[k], NULL);
}

void ws_dec_atom(struct ws_dec *d, insn i)
{
    atomic(d, i, false);
}

void ws_dec_red(struct ws_dec *d, insn i)
{
    atomic(d, i, true);
}

/* Copies that complete at once: waiting for them has nothing to wait for. */
void ws_dec_cp_async(struct ws_dec *d, insn i)
{
    struct address to, from;
    uint32_t rows[4];
    if (i->n_operands != 3 || i->operands[2].kind != WS_OPD_IMM ||
        (i->operands[2].imm != 4 && i->operands[2].imm != 8 && i->operands[2].imm != 16)) {
        no_such(d, i);
        return;
    }
    if (!address(d, i, &i->operands[0], &to) || !address(d, i, &i->operands[1], &from))
        return;
    unsigned n = (unsigned)i->operands[2].imm / 4;
    for (unsigned k = 0; k < 4; k++)
        rows[k] = ws_dec_temp(d, 4);
    for (unsigned k = 0; k < 2; k++) {
        const struct address *a = k ? &to : &from;
        struct ws_uop *u = ws_dec_emit3(d, k ? WS_H_st_x : WS_H_ld_x, rows[0], a->row, rows[1]);
        u->c = (int32_t)rows[2];
        u->e = (int32_t)rows[3];
        u->imm = a->imm;
        u->x = (k ? WS_SP_SHARED : WS_SP_GLOBAL) | (a->a32 ? WS_X_A32 : 0) | 4u << WS_X_SIZE_SHIFT |
               n << WS_X_VEC_SHIFT;
    }
}

void ws_dec_cvta(struct ws_dec *d, insn i)
{
    type t = i->types[0];
    bool finish, narrow = ws_ptx_type_bytes(t) == 4, to = i->sub == WS_SUB_TO;
    if (i->n_operands < 2) {
        no_such(d, i);
        return;
    }
    uint32_t src = ws_dec_src(d, &i->operands[1], t);
    uint32_t dst = ws_dec_dst(d, &i->operands[0], t, &finish);
    if (i->space == WS_SP_GLOBAL || i->space == WS_SP_CONST || i->space == WS_SP_GENERIC)
        ws_dec_mov(d, ws_dec_width(t), dst, src);
    else if (narrow)
        no_such(d, i);
    else if (to)
        ws_dec_emit3(d, WS_H_cvta_to, dst, src, 0);
    else
        ws_dec_emit3(d, WS_H_cvta, dst, src, 0)->x = i->space;
    if (finish)
        ws_dec_finish(d, &i->operands[0], t, dst);
}
