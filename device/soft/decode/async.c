// SPDX-License-Identifier: Apache-2.0
/* device/soft/decode/async.c - mbarriers, asynchronous copies, stores and reductions, tensor maps,
 * and clusters. An address in another block's shared memory is one in shared memory to all who use
 * it (exec/cluster.c). Refused by name: copies by im2col and of rows that are gathered. */
#include <string.h>

#include "device/soft/decode/util.h"
#include "device/soft/exec/async.h"

static bool has(insn i, const char *modifier)
{
    const char *at = i->ext ? strstr(i->ext, modifier) : NULL;
    size_t n = strlen(modifier);
    return at && (at[n] == '\0' || at[n] == '.' || at[n] == ':');
}

static bool place(struct ws_dec *d, const struct ws_ptx_operand *a, unsigned space,
                  struct ws_async_place *ret)
{
    if (a->kind != WS_OPD_ADDR || a->n || (a->reg < 0 && a->sym < 0))
        return false;
    struct ws_ptx_operand base = {
        .kind = a->reg >= 0 ? WS_OPD_REG : WS_OPD_SYM, .reg = a->reg, .sym = a->sym};
    ret->a32 = a->reg >= 0 && ws_ptx_type_bytes((type)d->df->f->regs[a->reg].type) == 4;
    ret->row = ws_dec_src(d, &base, ret->a32 ? WS_T_U32 : WS_T_U64);
    ret->space = (uint8_t)space;
    ret->offset = a->imm;
    return true;
}

static void emit(struct ws_dec *d, const struct ws_asyncop *o)
{
    struct ws_asyncop *kept = ws_arena_alloc(&d->code->arena, sizeof(*kept));
    if (!kept) {
        d->oom = true;
        return;
    }
    *kept = *o;
    ws_dec_emit(d, WS_H_async)->imm = (int64_t)(uintptr_t)kept;
}

/* ---- mbarriers ---- */
static bool mbarrier(struct ws_dec *d, insn i, enum ws_async_what what)
{
    struct ws_asyncop o = {.what = (uint8_t)what};
    if (i->n_operands < 1 || !place(d, &i->operands[0], i->space, &o.mbar))
        return false;
    if (i->n_operands > 1)
        o.count = ws_dec_src(d, &i->operands[1], WS_T_U32);
    emit(d, &o);
    return true;
}

/* [state,] [address] {, count}: a count of arrivals, or of bytes expected. */
static bool arrive(struct ws_dec *d, insn i, enum ws_async_what what)
{
    struct ws_asyncop o = {.what = (uint8_t)what};
    bool expect = has(i, ".expect_tx"), finish = false;
    const struct ws_ptx_operand *state = &i->operands[0];
    unsigned at = state->kind == WS_OPD_ADDR ? 0 : 1;
    if (i->n_operands <= at || i->n_operands > at + 2 || (expect && i->n_operands < at + 2) ||
        !place(d, &i->operands[at], i->space, &o.mbar))
        return false;
    if (i->n_operands == at + 2)
        *(expect ? &o.tx : &o.count) = ws_dec_src(d, &i->operands[at + 1], WS_T_U32);
    if (at && state->kind != WS_OPD_SINK)
        o.d = ws_dec_dst(d, state, WS_T_B64, &finish);
    emit(d, &o);
    if (finish)
        ws_dec_finish(d, state, WS_T_B64, o.d);
    return true;
}

static bool test(struct ws_dec *d, insn i)
{
    struct ws_asyncop o = {.what = has(i, ".parity") ? WS_MBAR_TEST_PARITY : WS_MBAR_TEST};
    if (i->n_operands < 3 || !place(d, &i->operands[1], i->space, &o.mbar))
        return false;
    if (o.what == WS_MBAR_TEST)
        o.state = ws_dec_src(d, &i->operands[2], WS_T_B64);
    else
        o.count = ws_dec_src(d, &i->operands[2], WS_T_U32);
    o.d = ws_dec_pred_dst(d, &i->operands[0]);
    emit(d, &o);
    return true;
}

static bool pending(struct ws_dec *d, insn i)
{
    struct ws_asyncop o = {.what = WS_MBAR_PENDING};
    bool finish;
    o.state = ws_dec_src(d, &i->operands[1], WS_T_B64);
    o.d = ws_dec_dst(d, &i->operands[0], WS_T_U32, &finish);
    emit(d, &o);
    if (finish)
        ws_dec_finish(d, &i->operands[0], WS_T_U32, o.d);
    return true;
}

/* ---- copies ---- */
/* cp.async with a source size, or a predicate that ignores the source; a cache policy may follow
 * and changes nothing. */
static bool copy(struct ws_dec *d, insn i)
{
    struct ws_asyncop o = {.what = WS_ASYNC_COPY};
    if (i->n_operands < 4 || i->operands[2].kind != WS_OPD_IMM ||
        (i->operands[2].imm != 4 && i->operands[2].imm != 8 && i->operands[2].imm != 16))
        return false;
    o.size_bytes = (uint32_t)i->operands[2].imm;
    const struct ws_ptx_operand *more = &i->operands[3];
    bool pred = more->kind == WS_OPD_REG && d->df->f->regs[more->reg].type == WS_T_PRED;
    bool policy = more->kind == WS_OPD_REG && !pred &&
                  ws_ptx_type_bytes((type)d->df->f->regs[more->reg].type) == 8;
    if (pred)
        o.ignore = ws_dec_pred(d, more, &o.ignore_neg);
    else if (!policy)
        o.src_bytes = ws_dec_src(d, more, WS_T_U32);
    if (!place(d, &i->operands[0], WS_SP_SHARED, &o.dst) ||
        !place(d, &i->operands[1], WS_SP_GLOBAL, &o.src))
        return false;
    emit(d, &o);
    return true;
}

/* The operation among the words of a reduction. */
static uint8_t reduction(insn i)
{
    static const struct {
        const char *word;
        enum ws_ptx_sub sub;
    } words[] = {{".add", WS_SUB_ADD}, {".min", WS_SUB_MIN}, {".max", WS_SUB_MAX},
                 {".and", WS_SUB_AND}, {".or", WS_SUB_OR},   {".xor", WS_SUB_XOR},
                 {".inc", WS_SUB_INC}, {".dec", WS_SUB_DEC}};
    for (size_t k = 0; k < WS_ARRAY_SIZE(words); k++)
        if (has(i, words[k].word))
            return (uint8_t)words[k].sub;
    return WS_SUB_NONE;
}

/* ---- tensors ---- */
/* [map, {coordinates}] */
static bool box(struct ws_dec *d, const struct ws_ptx_operand *a, struct ws_asyncop *o)
{
    struct ws_ptx_operand bare = *a;
    const struct ws_ptx_operand *at = a->v; /* the braces */
    bare.n = 0;
    if (a->kind != WS_OPD_ADDR || a->n != 1 || at->kind != WS_OPD_VEC ||
        at->n > WS_ARRAY_SIZE(o->at) || !place(d, &bare, WS_SP_GENERIC, &o->map))
        return false;
    for (unsigned k = 0; k < at->n; k++)
        o->at[k] = ws_dec_src(d, &at->v[k], WS_T_B32);
    o->n_at = at->n;
    return true;
}

/* The mask of the blocks that get a copy, at operand @at, if the copy is one for several. */
static bool multicast(struct ws_dec *d, insn i, unsigned at, struct ws_asyncop *o)
{
    if (!has(i, ".multicast"))
        return true;
    if (i->n_operands <= at)
        return false;
    o->mask = ws_dec_src(d, &i->operands[at], WS_T_B16);
    return true;
}

/* cp.async.bulk.tensor and cp.reduce.async.bulk.tensor. A cache policy changes nothing. */
static bool tensor(struct ws_dec *d, insn i, bool reduce)
{
    bool loads = has(i, ".mbarrier"), group = has(i, ".bulk_group");
    struct ws_asyncop o = {.what = loads    ? WS_TENSOR_LOAD
                                   : reduce ? WS_TENSOR_REDUCE
                                            : WS_TENSOR_STORE,
                           .op = reduce ? reduction(i) : WS_SUB_NONE};
    const struct ws_ptx_operand *at = i->operands;
    if (has(i, ".im2col") || has(i, ".im2col_no_offs") || has(i, ".tile::gather4") ||
        has(i, ".tile::scatter4") || loads == group || (reduce && (loads || !o.op)) ||
        i->n_operands < (loads ? 3u : 2u))
        return false;
    if (loads ? !place(d, &at[0], WS_SP_SHARED, &o.dst) || !box(d, &at[1], &o) ||
                    !place(d, &at[2], WS_SP_SHARED, &o.mbar) || !multicast(d, i, 3, &o)
              : !box(d, &at[0], &o) || !place(d, &at[1], WS_SP_SHARED, &o.src))
        return false;
    emit(d, &o);
    return true;
}

/* tensormap.replace: [map] {, dimension}, value; tensormap.cp_fenceproxy: [to], [from], 128. */
static bool tensor_map(struct ws_dec *d, insn i)
{
    static const char *const fields[_WS_TENSOR_FIELD_N] = {
        ".global_address", ".rank",           ".box_dim",          ".global_dim",
        ".global_stride",  ".element_stride", ".elemtype",         ".interleave_layout",
        ".swizzle_mode",   ".fill_mode",      ".swizzle_atomicity"};
    struct ws_asyncop o = {.what = has(i, ".replace") ? WS_TENSOR_MAP_REPLACE : WS_TENSOR_MAP_COPY};
    unsigned last = i->n_operands - 1u;
    if (o.what == WS_TENSOR_MAP_COPY) {
        if (i->n_operands != 3 || !place(d, &i->operands[0], WS_SP_GLOBAL, &o.dst) ||
            !place(d, &i->operands[1], WS_SP_SHARED, &o.src))
            return false;
        emit(d, &o);
        return true;
    }
    while (o.op < _WS_TENSOR_FIELD_N && !has(i, fields[o.op]))
        o.op++;
    bool many = o.op >= WS_TENSOR_BOX && o.op <= WS_TENSOR_STEP, wide = has(i, ".b64");
    if (o.op == _WS_TENSOR_FIELD_N || i->n_operands != (many ? 3 : 2) ||
        wide != (o.op == WS_TENSOR_ADDRESS || o.op == WS_TENSOR_STRIDE) ||
        !place(d, &i->operands[0], has(i, ".shared") ? WS_SP_SHARED : WS_SP_GLOBAL, &o.dst))
        return false;
    if (many) {
        if (i->operands[1].kind != WS_OPD_IMM || i->operands[1].imm < 0 ||
            i->operands[1].imm >= (int64_t)WS_ARRAY_SIZE(o.at) - (o.op == WS_TENSOR_STRIDE))
            return false;
        o.size_bytes = (uint32_t)i->operands[1].imm;
    }
    *(wide ? &o.state : &o.count) = ws_dec_src(d, &i->operands[last], wide ? WS_T_B64 : WS_T_B32);
    emit(d, &o);
    return true;
}

/* cp.async.bulk: the words in their order say where to, where from, and how completion is told. */
static bool bulk(struct ws_dec *d, insn i)
{
    struct ws_asyncop o = {.what = WS_ASYNC_BULK};
    if (has(i, ".prefetch")) {
        ws_dec_emit(d, WS_H_nop);
        return true;
    }
    if (has(i, ".tensor"))
        return tensor(d, i, false);
    bool from_global = has(i, ".global.mbarrier") || (has(i, ".mbarrier") && has(i, ".global"));
    bool to_global = has(i, ".bulk_group"), tells = has(i, ".mbarrier");
    if (tells == to_global || i->n_operands < (tells ? 4u : 3u) || has(i, ".cp_mask") ||
        !place(d, &i->operands[0], to_global ? WS_SP_GLOBAL : WS_SP_SHARED, &o.dst) ||
        !place(d, &i->operands[1], from_global ? WS_SP_GLOBAL : WS_SP_SHARED, &o.src) ||
        (tells && !place(d, &i->operands[3], WS_SP_SHARED, &o.mbar)) || !multicast(d, i, 4, &o))
        return false;
    o.bytes = ws_dec_src(d, &i->operands[2], WS_T_U32);
    emit(d, &o);
    return true;
}

static bool bulk_reduce(struct ws_dec *d, insn i)
{
    if (has(i, ".tensor"))
        return tensor(d, i, true);
    struct ws_asyncop o = {.what = WS_ASYNC_REDUCE, .op = reduction(i), .type = i->types[0]};
    bool tells = has(i, ".mbarrier"), group = has(i, ".bulk_group");
    bool half = is_half((type)o.type), real = half || o.type == WS_T_F32 || o.type == WS_T_F64;
    if (tells == group || i->n_types != 1 || i->n_operands < (tells ? 4u : 3u) || (real && tells) ||
        ws_ptx_type_bytes((type)o.type) < 2 || o.type == WS_T_F16X2 || o.type == WS_T_BF16X2)
        return false;
    switch (o.op) {
    case WS_SUB_ADD:
        break;
    case WS_SUB_MIN:
    case WS_SUB_MAX:
        if (real && !half)
            return false;
        break;
    case WS_SUB_AND:
    case WS_SUB_OR:
    case WS_SUB_XOR:
    case WS_SUB_INC:
    case WS_SUB_DEC:
        if (real)
            return false;
        break;
    default:
        return false;
    }
    if (!place(d, &i->operands[0], group ? WS_SP_GLOBAL : WS_SP_SHARED, &o.dst) ||
        !place(d, &i->operands[1], WS_SP_SHARED, &o.src) ||
        (tells && !place(d, &i->operands[3], WS_SP_SHARED, &o.mbar)))
        return false;
    o.bytes = ws_dec_src(d, &i->operands[2], WS_T_U32);
    emit(d, &o);
    return true;
}

/* st.async, red.async: the store or reduction, and what the mbarrier is told when it is done. */
static bool told_store(struct ws_dec *d, insn i, bool reduce)
{
    struct ws_asyncop o = {.what = WS_MBAR_COMPLETE};
    unsigned n = i->vec > 1 ? i->vec : 1;
    if (i->n_operands != 3 || i->n_types != 1 || !has(i, ".mbarrier") ||
        !place(d, &i->operands[2], WS_SP_SHARED, &o.mbar))
        return false;
    struct ws_ptx_insn plain = *i;
    plain.op = reduce ? WS_OP_RED : WS_OP_ST;
    plain.space = WS_SP_SHARED;
    plain.sem = WS_SEM_NONE;
    plain.n_operands = 2;
    plain.sub = reduce ? reduction(i) : i->sub;
    if (reduce)
        ws_dec_red(d, &plain);
    else
        ws_dec_store(d, &plain);
    o.count = ws_dec_const(d, 4, n * ws_ptx_type_bytes((type)i->types[0]));
    emit(d, &o);
    return true;
}

/* ---- clusters ---- */
static bool address_there(struct ws_dec *d, insn i)
{
    bool finish, wide = ws_dec_width(i->types[0]) == 8;
    uint32_t a = ws_dec_src(d, &i->operands[1], i->types[0]),
             rank = ws_dec_src(d, &i->operands[2], WS_T_U32);
    uint32_t row = ws_dec_dst(d, &i->operands[0], i->types[0], &finish);
    ws_dec_emit3(d, wide ? WS_H_mapa_64 : WS_H_mapa_32, row, a, rank);
    if (finish)
        ws_dec_finish(d, &i->operands[0], i->types[0], row);
    return true;
}

static bool rank(struct ws_dec *d, insn i)
{
    bool finish, wide = ws_dec_width(i->types[0]) == 8;
    uint32_t a = ws_dec_src(d, &i->operands[1], i->types[0]);
    uint32_t row = ws_dec_dst(d, &i->operands[0], WS_T_U32, &finish);
    ws_dec_emit3(d, wide ? WS_H_rank_64 : WS_H_rank_32, row, a, 0);
    if (finish)
        ws_dec_finish(d, &i->operands[0], WS_T_U32, row);
    return true;
}

static bool cluster_barrier(struct ws_dec *d, bool arrive)
{
    ws_dec_emit3(d, WS_H_bar, 0, ws_dec_const(d, 4, WS_CLUSTER_BARRIER), 0)->x =
        WS_X_CLUSTER | WS_X_PLAIN | (arrive ? 1u << 8 : 0);
    return true;
}

void ws_dec_async(struct ws_dec *d, insn i)
{
    bool ok;
    switch (i->op) {
    case WS_OP_MBARRIER_INIT:
        ok = mbarrier(d, i, WS_MBAR_INIT);
        break;
    case WS_OP_MBARRIER_INVAL:
        ok = mbarrier(d, i, WS_MBAR_INVAL);
        break;
    case WS_OP_MBARRIER_EXPECT_TX:
        ok = mbarrier(d, i, WS_MBAR_EXPECT);
        break;
    case WS_OP_MBARRIER_COMPLETE_TX:
        ok = mbarrier(d, i, WS_MBAR_COMPLETE);
        break;
    case WS_OP_CP_ASYNC_MBARRIER_ARRIVE:
        ok = mbarrier(d, i, i->flags & WS_F_NOINC ? WS_MBAR_COPIES_NOINC : WS_MBAR_COPIES);
        break;
    case WS_OP_MBARRIER_ARRIVE:
        ok = arrive(d, i, WS_MBAR_ARRIVE);
        break;
    case WS_OP_MBARRIER_ARRIVE_DROP:
        ok = arrive(d, i, WS_MBAR_ARRIVE_DROP);
        break;
    case WS_OP_MBARRIER_TEST_WAIT:
    case WS_OP_MBARRIER_TRY_WAIT:
        ok = test(d, i);
        break;
    case WS_OP_MBARRIER_PENDING_COUNT:
        ok = pending(d, i);
        break;
    case WS_OP_CP_ASYNC:
        if (i->n_operands == 3) { /* all of it, from the source */
            ws_dec_cp_async(d, i);
            return;
        }
        ok = copy(d, i);
        break;
    case WS_OP_CP_ASYNC_BULK:
        ok = bulk(d, i);
        break;
    case WS_OP_CP_REDUCE_ASYNC_BULK:
        ok = bulk_reduce(d, i);
        break;
    case WS_OP_TENSORMAP:
        ok = tensor_map(d, i);
        break;
    case WS_OP_ST_ASYNC:
    case WS_OP_RED_ASYNC:
        ok = told_store(d, i, i->op == WS_OP_RED_ASYNC);
        break;
    case WS_OP_BARRIER_CLUSTER_ARRIVE:
    case WS_OP_BARRIER_CLUSTER_WAIT:
        ok = cluster_barrier(d, i->op == WS_OP_BARRIER_CLUSTER_ARRIVE);
        break;
    case WS_OP_MAPA:
        ok = address_there(d, i);
        break;
    case WS_OP_GETCTARANK:
        ok = rank(d, i);
        break;
    default:
        ok = false;
        break;
    }
    if (!ok)
        ws_dec_no_such(d, i);
}
