// SPDX-License-Identifier: Apache-2.0
/* ptx/analysis/count.c - counts what a thread executes, from the text.
 *
 * How often. A basic block weighs the product of the trips of the loops around it. A loop is a
 * header with all blocks that reach one of its back edges without passing the header. Its trips
 * are known where a counter begins with a constant, changes by a constant, and is compared with a
 * constant.
 *
 * How memory is accessed. Each register is described as k + sum c_i * t_i over the thread's
 * coordinates (tid.x, tid.y, tid.z, laneid). A coefficient is a number, or unknown but the same
 * for all lanes (a parameter times tid.y). What cannot be described like this is "anything". A
 * register has one description for the whole function, the join of all its definitions: compilers
 * emit nearly SSA, and what a loop adds to a pointer on each trip changes k only. Descriptions
 * only become less exact, so repeating this until nothing changes ends. From the description of an
 * address follow the 32-byte sectors that the lanes of a warp touch.
 *
 * A client's kernel cannot keep the daemon busy: rounds and the search for loops are bounded, and
 * each function is counted once. What lies beyond the bounds is guessed. */
#include "ptx/analysis/count.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/budget.h"
#include "base/error.h"

enum {
    N_COORDS = 4, /* tid.x, .y, .z, laneid */
    LANES = 32,
    SECTOR_BYTES = 32, /* the least that memory is asked for */
    MAX_ROUNDS = 32,
};
#define GUESSED_TRIPS 16.0
#define MAX_WEIGHT    1e15
/* Blocks and instructions looked at in search of loops: for each instruction, for any function, and
 * at most. */
#define MARKS_OF_INSN 500
#define MARKS_ANYWAY  100000
#define MARKS_MAX     20000000

/* ---- what a register holds ---- */

enum lane_value_kind { NOTHING_YET, AFFINE, ANYTHING };
struct lane_value {
    enum lane_value_kind kind;
    bool known;      /* k is the constant part */
    uint8_t unknown; /* bit i: c[i] is not 0, but the same unknown number for all lanes */
    int64_t k, c[N_COORDS];
};

static const struct lane_value nothing_yet = {.kind = NOTHING_YET};
static const struct lane_value anything = {.kind = ANYTHING};
static const struct lane_value uniform = {.kind = AFFINE};

static struct lane_value constant(int64_t k)
{
    return (struct lane_value){.kind = AFFINE, .known = true, .k = k};
}

static bool is_uniform(const struct lane_value *v)
{
    if (v->kind != AFFINE || v->unknown)
        return false;
    for (int i = 0; i < N_COORDS; i++)
        if (v->c[i])
            return false;
    return true;
}

static struct lane_value join(struct lane_value a, struct lane_value b)
{
    if (a.kind == NOTHING_YET || b.kind == ANYTHING)
        return b;
    if (b.kind == NOTHING_YET || a.kind == ANYTHING)
        return a;
    if (a.unknown != b.unknown || memcmp(a.c, b.c, sizeof(a.c)))
        return anything;
    if (!a.known || !b.known || a.k != b.k) {
        a.known = false;
        a.k = 0;
    }
    return a;
}

static bool same(const struct lane_value *a, const struct lane_value *b)
{
    return a->kind == b->kind && a->known == b->known && a->unknown == b->unknown && a->k == b->k &&
           !memcmp(a->c, b->c, sizeof(a->c));
}

/* a + sign·b, wrapping as the machine does */
static struct lane_value add(struct lane_value a, struct lane_value b, int sign)
{
    if (a.kind != AFFINE || b.kind != AFFINE)
        return a.kind == NOTHING_YET || b.kind == NOTHING_YET ? nothing_yet : anything;
    struct lane_value r = {.kind = AFFINE, .known = a.known && b.known};
    r.unknown = a.unknown | b.unknown;
    r.k = r.known ? (int64_t)((uint64_t)a.k + (uint64_t)sign * (uint64_t)b.k) : 0;
    for (int i = 0; i < N_COORDS; i++)
        r.c[i] = r.unknown >> i & 1
                     ? 0
                     : (int64_t)((uint64_t)a.c[i] + (uint64_t)sign * (uint64_t)b.c[i]);
    return r;
}

static struct lane_value scale(struct lane_value v, int64_t by)
{
    v.k = (int64_t)((uint64_t)v.k * (uint64_t)by);
    for (int i = 0; i < N_COORDS; i++)
        v.c[i] = (int64_t)((uint64_t)v.c[i] * (uint64_t)by);
    if (!by)
        v.unknown = 0;
    return v;
}

static struct lane_value multiply(struct lane_value a, struct lane_value b)
{
    if (a.kind != AFFINE || b.kind != AFFINE)
        return a.kind == NOTHING_YET || b.kind == NOTHING_YET ? nothing_yet : anything;
    if (is_uniform(&b) && b.known)
        return scale(a, b.k);
    if (is_uniform(&a) && a.known)
        return scale(b, a.k);
    if (!is_uniform(&a) && !is_uniform(&b))
        return anything;
    struct lane_value *varies = is_uniform(&a) ? &b : &a;
    struct lane_value r = uniform;
    for (int i = 0; i < N_COORDS; i++)
        if (varies->c[i] || varies->unknown >> i & 1)
            r.unknown |= (uint8_t)(1u << i);
    return r;
}

/* ---- one function ---- */

enum count_state { NOT_BEGUN, UNDER_WAY, DONE };
struct ws_ptx_counter {
    const struct ws_ptx_module *m;
    struct ws_ptx_count_options o;
    struct ws_ptx_counts *done; /* [n_funcs] */
    uint8_t *state;             /* [n_funcs]: enum count_state */
    struct call_at {
        uint32_t func, insn; /* which of its instructions is looked at next */
    } * path;                /* [n_funcs]: from the function that was asked for */
    uint32_t n_path;
};
/* The function being counted. */
struct one {
    struct ws_ptx_counter *x;
    const struct ws_ptx_func *f;
    struct ws_ptx_cfg cfg;
    struct ws_arena arena;
    struct lane_value *regs;
    double *weight; /* of each block */
    uint32_t ntid[3];
    uint32_t n_guessed;
};

static struct lane_value sreg_value(const struct one *x, const struct ws_ptx_operand *o)
{
    struct lane_value v = uniform;
    switch (o->sreg) {
    case WS_SR_TID:
        if (o->sreg_dim > 2)
            return anything;
        v.known = true;
        v.c[o->sreg_dim] = 1;
        return v;
    case WS_SR_LANEID:
        v.known = true;
        v.c[3] = 1;
        return v;
    case WS_SR_NTID:
        if (o->sreg_dim < 3 && x->ntid[o->sreg_dim])
            return constant(x->ntid[o->sreg_dim]);
        return uniform;
    case WS_SR_WARPSZ:
        return constant(LANES);
    case WS_SR_CTAID:
    case WS_SR_NCTAID:
    case WS_SR_WARPID:
    case WS_SR_NWARPID:
    case WS_SR_SMID:
    case WS_SR_NSMID:
    case WS_SR_GRIDID:
        return uniform;
    default:
        return anything;
    }
}

static struct lane_value operand_value(const struct one *x, const struct ws_ptx_operand *o)
{
    switch (o->kind) {
    case WS_OPD_REG:
        if (o->reg < 0 || (uint32_t)o->reg >= x->f->n_regs)
            return anything;
        return o->part && x->regs[o->reg].kind == AFFINE && !is_uniform(&x->regs[o->reg])
                   ? anything
                   : x->regs[o->reg];
    case WS_OPD_IMM:
        return o->imm_kind == WS_IMM_INT ? constant(o->imm) : uniform;
    case WS_OPD_SREG:
        return sreg_value(x, o);
    case WS_OPD_SYM:
        return uniform;
    case WS_OPD_ADDR:
        if (o->reg >= 0 && (uint32_t)o->reg < x->f->n_regs)
            return add(x->regs[o->reg], constant(o->imm), 1);
        return uniform;
    case WS_OPD_VEC:
    case WS_OPD_PAIR: {
        struct lane_value v = {0};
        for (uint32_t i = 0; i < o->n; i++)
            v = join(v, operand_value(x, &o->v[i]));
        return is_uniform(&v) ? uniform : v.kind == NOTHING_YET ? v : anything;
    }
    default:
        return uniform;
    }
}

static bool set(struct one *x, const struct ws_ptx_operand *o, struct lane_value v)
{
    if (o->kind == WS_OPD_VEC || o->kind == WS_OPD_PAIR) {
        bool changed = false;
        struct lane_value each = is_uniform(&v) ? uniform : v.kind == NOTHING_YET ? v : anything;
        for (uint32_t i = 0; i < o->n; i++)
            changed |= set(x, &o->v[i], each);
        return changed;
    }
    if (o->kind != WS_OPD_REG || o->reg < 0 || (uint32_t)o->reg >= x->f->n_regs)
        return false;
    struct lane_value *r = &x->regs[o->reg], now = join(*r, v);
    if (same(r, &now))
        return false;
    *r = now;
    return true;
}

static bool is_integer(const struct ws_ptx_insn *i)
{
    switch (i->n_types ? i->types[0] : WS_T_NONE) {
    case WS_T_B16:
    case WS_T_B32:
    case WS_T_B64:
    case WS_T_U16:
    case WS_T_U32:
    case WS_T_U64:
    case WS_T_S16:
    case WS_T_S32:
    case WS_T_S64:
        return true;
    default:
        return false;
    }
}

static struct lane_value load_value(const struct one *x, const struct ws_ptx_insn *i)
{
    const struct ws_ptx_operand *a = &i->operands[1];
    struct lane_value at = operand_value(x, a);
    if (i->space == WS_SP_PARAM && x->f->is_entry) {
        bool own = a->sym >= 0 && WS_PTX_SYM_KIND(a->sym) == WS_PTX_SYM_LOCALVAR &&
                   (uint32_t)WS_PTX_SYM_INDEX(a->sym) < x->f->n_params;
        return own || (a->reg >= 0 && is_uniform(&at)) ? uniform
                                                       : anything; /* what a call returned */
    }
    if (at.kind == NOTHING_YET)
        return at;
    return is_uniform(&at) && i->space != WS_SP_LOCAL ? uniform : anything;
}

/* The value an instruction gives its destination. */
static struct lane_value result(const struct one *x, const struct ws_ptx_insn *i)
{
    const struct ws_ptx_operand *o = i->operands;
    struct lane_value a = i->n_operands > 1 ? operand_value(x, &o[1]) : uniform;
    struct lane_value b = i->n_operands > 2 ? operand_value(x, &o[2]) : uniform;
    bool integer = is_integer(i), high = i->sub == WS_SUB_HI;
    switch (i->op) {
    case WS_OP_LD:
    case WS_OP_LDU:
        return load_value(x, i);
    case WS_OP_MOV:
    case WS_OP_CVTA:
        return a;
    case WS_OP_CVT:
        if (integer && i->n_types > 1 && !i->rnd)
            return a;
        break;
    case WS_OP_ADD:
        if (integer)
            return add(a, b, 1);
        break;
    case WS_OP_SUB:
        if (integer)
            return add(a, b, -1);
        break;
    case WS_OP_MUL:
    case WS_OP_MUL24:
        if (integer && !high)
            return multiply(a, b);
        break;
    case WS_OP_MAD:
    case WS_OP_MAD24:
        if (integer && !high && i->n_operands > 3)
            return add(multiply(a, b), operand_value(x, &o[3]), 1);
        break;
    case WS_OP_SHL:
        if (is_uniform(&b) && b.known && b.k >= 0 && b.k < 63)
            return multiply(a, constant(INT64_C(1) << b.k));
        break;
    case WS_OP_SELP: {
        struct lane_value p = i->n_operands > 3 ? operand_value(x, &o[3]) : uniform, v = join(a, b);
        return is_uniform(&p) || v.kind != AFFINE || v.known ? v : anything;
    }
    default:
        break;
    }
    /* Anything else: the same in all lanes if all it reads is, else who knows. */
    enum ws_ptx_effect effect = (enum ws_ptx_effect)ws_ptx_ops[i->op].effect;
    if (effect == WS_EFFECT_ATOMIC || effect == WS_EFFECT_WARP)
        return anything;
    for (uint32_t k = 1; k < i->n_operands; k++) {
        struct lane_value v = operand_value(x, &o[k]);
        if (v.kind == NOTHING_YET)
            return v;
        if (!is_uniform(&v))
            return anything;
    }
    return uniform;
}

static void describe_registers(struct one *x)
{
    for (int round = 0; round < 2 * MAX_ROUNDS; round++) {
        bool changed = false;
        for (uint32_t k = 0; k < x->f->n_insns && ws_budget_spend(1); k++) {
            const struct ws_ptx_insn *i = &x->f->insns[k];
            if (!ws_ptx_writes_first(i))
                continue;
            /* Late in the day, what still moves is given up. */
            bool moved = set(x, &i->operands[0], result(x, i));
            if (moved && round >= MAX_ROUNDS)
                set(x, &i->operands[0], anything);
            changed |= moved;
        }
        if (!changed)
            return;
    }
    for (uint32_t k = 0; k < x->f->n_regs; k++)
        x->regs[k] = anything;
}

/* ---- memory ---- */

/* Sectors that a warp touches with an access of @bytes at each lane's address. */
static unsigned sectors(const struct one *x, const struct lane_value *at, unsigned bytes)
{
    unsigned each = (bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
    if (at->kind != AFFINE)
        return LANES * each;
    uint64_t nx = x->ntid[0] ? x->ntid[0] : LANES, ny = x->ntid[1] ? x->ntid[1] : 1;
    uint64_t nz = x->ntid[2] ? x->ntid[2] : 1;
    unsigned lanes = (unsigned)WS_MIN((uint64_t)LANES, nx * ny * nz), n = 0;
    struct {
        uint64_t sector;
        uint64_t where; /* coordinates with unknown coefficients: other values, other sectors */
    } seen[LANES * 4];
    for (unsigned lane = 0; lane < lanes; lane++) {
        const uint64_t t[N_COORDS] = {lane % nx, lane / nx % ny, lane / (nx * ny), lane};
        uint64_t address = at->known ? (uint64_t)at->k : 0, where = 0;
        for (int i = 0; i < N_COORDS; i++) {
            address += (uint64_t)at->c[i] * t[i];
            if (at->unknown >> i & 1)
                where = where * 64 + t[i] + 1;
        }
        uint64_t first = address / SECTOR_BYTES, last = (address + bytes - 1) / SECTOR_BYTES;
        for (uint64_t s = first; s != last + 1 && s - first < 4; s++) {
            unsigned k = 0;
            while (k < n && (seen[k].sector != s || seen[k].where != where))
                k++;
            if (k == n && n < WS_ARRAY_SIZE(seen)) {
                seen[n].sector = s;
                seen[n++].where = where;
            }
        }
    }
    return n;
}

static unsigned access_bytes(const struct ws_ptx_insn *i)
{
    unsigned type = ws_ptx_type_bytes(i->n_types ? i->types[i->n_types - 1] : WS_T_B32);
    return WS_MAX(type, 1u) * WS_MAX(i->vec, 1u);
}

/* Which operand is the global address, or -1: not an access to global memory. */
static int global_address(const struct ws_ptx_insn *i)
{
    bool global = i->space == WS_SP_GLOBAL || i->space == WS_SP_GENERIC;
    if (i->op == WS_OP_CP_ASYNC)
        return i->n_operands > 1 ? 1 : -1;
    if (!global || !ws_ptx_does(i, WS_DOES_LOAD | WS_DOES_STORE | WS_DOES_UPDATE))
        return -1;
    int at = ws_ptx_writes_first(i); /* the address stands behind a destination */
    return i->n_operands > at ? at : -1;
}

/* Memory that has an address of its own for each lane, laid out so that a warp's are neighbours, or
 * that goes through a cache made for it. */
static bool always_coalesced(const struct ws_ptx_insn *i)
{
    bool local = i->space == WS_SP_LOCAL && ws_ptx_does(i, WS_DOES_LOAD | WS_DOES_STORE);
    return local || ws_ptx_insn_mix(i) == WS_MIX_TEX || ws_ptx_does(i, WS_DOES_BULK);
}

/* ---- loops ---- */

struct counted_loop {
    uint32_t header;
    uint32_t *body; /* block numbers */
    uint32_t n;
    double trips;
};

static bool in_loop(const uint32_t *mark, const struct one *x, uint32_t insn, uint32_t stamp)
{
    return mark[x->cfg.block_of[insn]] == stamp;
}

static bool defines(const struct ws_ptx_insn *i, int32_t reg)
{
    if (!ws_ptx_writes_first(i))
        return false;
    const struct ws_ptx_operand *o = &i->operands[0];
    if (o->kind == WS_OPD_REG)
        return o->reg == reg;
    for (uint32_t k = 0; (o->kind == WS_OPD_VEC || o->kind == WS_OPD_PAIR) && k < o->n; k++)
        if (o->v[k].kind == WS_OPD_REG && o->v[k].reg == reg)
            return true;
    return false;
}

/* The one definition of @reg inside (or outside) the loop; NULL: none, or several. */
static const struct ws_ptx_insn *only_definition(const struct one *x, const uint32_t *mark,
                                                 uint32_t stamp, int32_t reg, bool inside)
{
    const struct ws_ptx_insn *found = NULL;
    for (uint32_t k = 0; k < x->f->n_insns; k++) {
        if (!defines(&x->f->insns[k], reg) || in_loop(mark, x, k, stamp) != inside)
            continue;
        if (found)
            return NULL;
        found = &x->f->insns[k];
    }
    return found;
}

static bool known_number(const struct one *x, const struct ws_ptx_operand *o, int64_t *ret)
{
    struct lane_value v = operand_value(x, o);
    *ret = v.k;
    return is_uniform(&v) && v.known;
}

/* i = first; do { … i += step; } while (i cmp bound): how often? 0: not known. */
static double count_trips(int64_t first, int64_t step, int64_t bound, unsigned cmp, bool stays_if)
{
    double distance = (double)bound - (double)first, n;
    if (!step)
        return 0;
    switch (cmp) {
    case WS_CMP_EQ: /* leaves when equal */
    case WS_CMP_NE:
        n = distance / (double)step;
        if ((cmp == WS_CMP_NE) != stays_if || n < 1 || n != floor(n))
            return 0;
        return n;
    case WS_CMP_LT:
    case WS_CMP_GE:
    case WS_CMP_LO:
    case WS_CMP_HS:
    case WS_CMP_GT:
    case WS_CMP_LE:
    case WS_CMP_HI:
    case WS_CMP_LS:
        n = distance / (double)step;
        if (n < 0)
            return 0;
        if (cmp == WS_CMP_LE || cmp == WS_CMP_GE || cmp == WS_CMP_LS || cmp == WS_CMP_HS)
            return fmax(1, stays_if ? floor(n) + 1 : ceil(n));
        return fmax(1, stays_if ? ceil(n) : floor(n) + 1);
    default:
        return 0;
    }
}

/* Trips by one comparison that decides whether the loop continues; 0: not known. */
static double trips_of(const struct one *x, const uint32_t *mark, uint32_t stamp,
                       const struct ws_ptx_insn *setp, bool stays_if)
{
    int64_t bound, first, step;
    if (setp->op != WS_OP_SETP || setp->n_operands < 3 || setp->operands[1].kind != WS_OPD_REG ||
        !known_number(x, &setp->operands[2], &bound))
        return 0;
    int32_t counter = setp->operands[1].reg;
    const struct ws_ptx_insn *next = only_definition(x, mark, stamp, counter, true);
    /* Where the comparison is of the old value, the step is behind a move: i1 = i + 1; …; i = i1.
     */
    if (next && next->op == WS_OP_MOV && next->operands[1].kind == WS_OPD_REG)
        next = only_definition(x, mark, stamp, next->operands[1].reg, true);
    if (!next || (next->op != WS_OP_ADD && next->op != WS_OP_SUB) || next->n_operands < 3 ||
        next->operands[1].kind != WS_OPD_REG || !known_number(x, &next->operands[2], &step))
        return 0;
    if (next->op == WS_OP_SUB)
        step = -step;
    int32_t carried = next->operands[1].reg;
    if (carried != counter && carried != next->operands[0].reg) {
        const struct ws_ptx_insn *back = only_definition(x, mark, stamp, carried, true);
        if (!back || back->op != WS_OP_MOV || back->operands[1].kind != WS_OPD_REG ||
            (back->operands[1].reg != counter && back->operands[1].reg != next->operands[0].reg))
            return 0;
    }
    const struct ws_ptx_insn *start = only_definition(x, mark, stamp, carried, false);
    if (!start || start->op != WS_OP_MOV || !known_number(x, &start->operands[1], &first))
        return 0;
    return count_trips(first, step, bound, setp->cmp, stays_if);
}

/* The smallest number of trips that a branch out of the loop tells; 0: none does. */
static double loop_trips(const struct one *x, const struct counted_loop *l, const uint32_t *mark,
                         uint32_t stamp)
{
    double least = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct ws_ptx_block *b = &x->cfg.blocks[l->body[i]];
        const struct ws_ptx_insn *last = &x->f->insns[b->first + b->n - 1];
        if (last->op != WS_OP_BRA || last->guard < 0 || b->succ[0] < 0 || b->succ[1] < 0)
            continue;
        bool falls_in = mark[b->succ[0]] == stamp, jumps_in = mark[b->succ[1]] == stamp;
        if (falls_in == jumps_in)
            continue;
        const struct ws_ptx_insn *setp = only_definition(x, mark, stamp, last->guard, true);
        if (!setp)
            continue;
        double n = trips_of(x, mark, stamp, setp, jumps_in != (bool)last->guard_neg);
        if (n > 0 && (!least || n < least))
            least = n;
    }
    return least;
}

/* Predecessors of all blocks, one behind another. */
struct predecessors {
    uint32_t *at, *from;
};

static int find_predecessors(struct one *x, struct predecessors *e)
{
    uint32_t n = x->cfg.n_blocks;
    e->at = ws_arena_array(&x->arena, (size_t)n + 2, sizeof(*e->at));
    e->from = ws_arena_array(&x->arena, 2 * (size_t)n + 1, sizeof(*e->from));
    if (!e->at || !e->from)
        return ws_raise(-ENOMEM);
    for (uint32_t b = 0; b < n; b++)
        for (int k = 0; k < 2; k++)
            if (x->cfg.blocks[b].succ[k] >= 0)
                e->at[x->cfg.blocks[b].succ[k] + 2]++;
    for (uint32_t b = 0; b < n; b++)
        e->at[b + 2] += e->at[b + 1];
    for (uint32_t b = 0; b < n; b++)
        for (int k = 0; k < 2; k++)
            if (x->cfg.blocks[b].succ[k] >= 0)
                e->from[e->at[x->cfg.blocks[b].succ[k] + 1]++] = b;
    return 0;
}

/* Which edges go back: by depth-first search with a stack of its own. back[b] bit k: succ[k] is b's
 * ancestor. */
static int find_back_edges(struct one *x, uint8_t *back)
{
    uint32_t n = x->cfg.n_blocks, top = 0;
    uint32_t *stack = ws_arena_array(&x->arena, (size_t)n + 1, sizeof(*stack));
    uint8_t *next =
        ws_arena_array(&x->arena, (size_t)n + 1, 1); /* 0 new, 1 and 2 under way, 3 done */
    if (!stack || !next)
        return ws_raise(-ENOMEM);
    stack[top++] = 0;
    while (top) {
        uint32_t b = stack[top - 1];
        if (next[b] == 3 || next[b] == 2) {
            next[b] = 3;
            top--;
            continue;
        }
        int k = next[b]++;
        int32_t to = x->cfg.blocks[b].succ[k];
        if (to < 0)
            continue;
        if (next[to] == 0) {
            stack[top++] = (uint32_t)to;
        } else if (next[to] != 3) {
            back[b] |= (uint8_t)(1u << k);
        }
    }
    return 0;
}

/* All blocks that reach one of the header's back edges without passing the header. */
static void collect_loop(struct one *x, struct counted_loop *l, const struct predecessors *e,
                         const uint8_t *back, uint32_t *mark, uint32_t stamp, uint64_t *budget)
{
    l->n = 0;
    mark[l->header] = stamp;
    l->body[l->n++] = l->header;
    for (uint32_t done = 0; done < l->n; done++) {
        uint32_t b = l->body[done];
        for (uint32_t i = e->at[b]; i < e->at[b + 1]; i++) {
            uint32_t from = e->from[i];
            bool is_back = (back[from] & 1 && x->cfg.blocks[from].succ[0] == (int32_t)b) ||
                           (back[from] & 2 && x->cfg.blocks[from].succ[1] == (int32_t)b);
            if ((b == l->header && !is_back) || mark[from] == stamp)
                continue;
            mark[from] = stamp;
            l->body[l->n++] = from;
            *budget -= *budget > 0;
            (void)ws_budget_spend(1);
        }
    }
}

static int weigh_blocks(struct one *x)
{
    uint32_t n = x->cfg.n_blocks;
    struct predecessors e;
    uint8_t *back = ws_arena_array(&x->arena, (size_t)n + 1, 1);
    uint32_t *mark = ws_arena_array(&x->arena, (size_t)n + 1, sizeof(*mark));
    struct counted_loop l = {.body = ws_arena_array(&x->arena, (size_t)n + 1, sizeof(*l.body))};
    x->weight = ws_arena_array(&x->arena, (size_t)n + 1, sizeof(*x->weight));
    if (!back || !mark || !l.body || !x->weight)
        return ws_raise(-ENOMEM);
    for (uint32_t b = 0; b < n; b++)
        x->weight[b] = 1;
    int r = n ? find_predecessors(x, &e) : 0;
    if (!r && n)
        r = find_back_edges(x, back);
    if (r || !n)
        return r ? ws_forward(r) : 0;
    double guess = x->x->o.loop_trips > 0 ? x->x->o.loop_trips : GUESSED_TRIPS;
    uint64_t budget =
        WS_MIN((uint64_t)MARKS_MAX, MARKS_ANYWAY + MARKS_OF_INSN * (uint64_t)x->f->n_insns);
    for (uint32_t h = 0; h < n && budget && ws_budget_spend(1); h++) {
        bool is_header = false;
        for (uint32_t i = e.at[h]; i < e.at[h + 1]; i++) {
            uint32_t from = e.from[i];
            is_header |= (back[from] & 1 && x->cfg.blocks[from].succ[0] == (int32_t)h) ||
                         (back[from] & 2 && x->cfg.blocks[from].succ[1] == (int32_t)h);
        }
        if (!is_header)
            continue;
        l.header = h;
        collect_loop(x, &l, &e, back, mark, h + 1, &budget);
        /* Reading trips off goes over the whole text a few times. */
        uint64_t cost = (uint64_t)x->f->n_insns * 4;
        l.trips = budget > cost ? loop_trips(x, &l, mark, h + 1) : 0;
        budget -= WS_MIN(budget, cost);
        (void)ws_budget_spend(WS_MIN(budget, cost) / 16); /* most instructions are passed over */
        if (!(l.trips > 0)) {
            l.trips = guess;
            x->n_guessed++;
        }
        for (uint32_t i = 0; i < l.n; i++)
            x->weight[l.body[i]] = fmin(x->weight[l.body[i]] * l.trips, MAX_WEIGHT);
    }
    return 0;
}

/* ---- adding up ---- */

static void add_access(struct ws_ptx_counts *c, double weight, unsigned n, unsigned bytes)
{
    if (n <= WS_MAX(LANES * bytes / SECTOR_BYTES, 1u)) {
        c->coal += weight;
    } else {
        c->uncoal += weight;
        c->uncoal_per_mw += weight * WS_MIN(n, (unsigned)LANES); /* a sum until finish_counts() */
    }
}

static void add_counts(struct ws_ptx_counts *c, const struct ws_ptx_counts *callee, double weight)
{
    c->total += weight * callee->total;
    c->comp += weight * callee->comp;
    c->coal += weight * callee->coal;
    c->uncoal += weight * callee->uncoal;
    c->uncoal_per_mw += weight * callee->uncoal_per_mw;
    c->synch += weight * callee->synch;
    for (int i = 0; i < _WS_MIX_N; i++)
        c->mix[i] += weight * callee->mix[i];
    c->n_loops_guessed += callee->n_loops_guessed;
    c->opaque |= callee->opaque;
}

/* The function that is called by its name; -1: a call through a register. */
static int64_t callee_of(const struct ws_ptx_insn *i)
{
    int32_t sym = i->call ? i->call->callee.sym : -1;
    if (!i->call || i->call->callee.kind != WS_OPD_SYM || sym < 0 ||
        WS_PTX_SYM_KIND(sym) != WS_PTX_SYM_FUNC)
        return -1;
    return WS_PTX_SYM_INDEX(sym);
}

static void add_call(struct one *x, struct ws_ptx_counts *c, const struct ws_ptx_insn *i,
                     double weight)
{
    int64_t index = callee_of(i);
    const struct ws_ptx_func *callee = index >= 0 ? &x->x->m->funcs[index] : NULL;
    if (callee && callee->is_decl) /* the machine's own: printf, malloc */
        c->opaque |= !ws_ptx_is_system_func(callee->name);
    else if (callee && x->x->state[index] == DONE)
        add_counts(c, &x->x->done[index], weight);
    else /* a register, or recursion */
        c->opaque = true;
}

static void count_insn(struct one *x, struct ws_ptx_counts *c, const struct ws_ptx_insn *i,
                       double weight)
{
    c->total += weight;
    c->mix[ws_ptx_insn_mix(i)] += weight;
    int at = global_address(i);
    if (at >= 0) {
        struct lane_value v = operand_value(x, &i->operands[at]);
        unsigned bytes = i->op == WS_OP_CP_ASYNC ? 16 : access_bytes(i);
        add_access(c, weight, sectors(x, &v, bytes), bytes);
    } else if (always_coalesced(i)) {
        c->coal += weight;
    } else if (ws_ptx_does(i, WS_DOES_SYNC_BLOCK)) {
        c->synch += weight;
    } else {
        c->comp += weight;
    }
    if (i->op == WS_OP_CALL)
        add_call(x, c, i, weight);
}

static void find_block_size(struct one *x)
{
    const struct ws_ptx_count_options *o = &x->x->o;
    for (int i = 0; i < 3; i++) {
        if (o->ntid[0])
            x->ntid[i] = WS_MAX(o->ntid[i], 1u);
        else if (x->f->reqntid[0])
            x->ntid[i] = WS_MAX(x->f->reqntid[i], 1u);
        /* .maxntid is only a limit, but a block of fewer than 32 threads in x shows there, too */
        else if (x->f->maxntid[0])
            x->ntid[i] = WS_MAX(x->f->maxntid[i], 1u);
    }
}

/* What it calls was counted before. */
static int count_function(struct ws_ptx_counter *x, uint32_t index)
{
    struct one one = {.x = x, .f = &x->m->funcs[index], .arena = WS_ARENA_NULL};
    struct ws_ptx_counts *c = &x->done[index];
    find_block_size(&one);
    int r = -ENOMEM;
    one.regs = ws_arena_array(&one.arena, (size_t)one.f->n_regs + 1, sizeof(*one.regs));
    if (one.regs)
        r = ws_ptx_cfg_build(&one.cfg, one.f, &one.arena);
    if (!r) {
        describe_registers(&one);
        r = weigh_blocks(&one);
    }
    for (uint32_t k = 0; k < one.f->n_insns && !r && ws_budget_spend(1); k++)
        count_insn(&one, c, &one.f->insns[k], one.weight[one.cfg.block_of[k]]);
    c->n_loops_guessed += one.n_guessed;
    ws_arena_deinit(&one.arena);
    return r ? ws_forward(r) : 0;
}

static void begin(struct ws_ptx_counter *x, uint32_t func)
{
    x->state[func] = UNDER_WAY;
    x->path[x->n_path++] = (struct call_at){.func = func};
}

/* The next function that the last one of the path calls and that is not counted; -1: none. */
static int64_t next_callee(const struct ws_ptx_counter *x, struct call_at *at)
{
    const struct ws_ptx_func *f = &x->m->funcs[at->func];
    while (at->insn < f->n_insns) {
        const struct ws_ptx_insn *i = &f->insns[at->insn++];
        int64_t callee = i->op == WS_OP_CALL ? callee_of(i) : -1;
        if (callee >= 0 && x->state[callee] == NOT_BEGUN && !x->m->funcs[callee].is_decl)
            return callee;
    }
    return -1;
}

int ws_ptx_counter_new(struct ws_ptx_counter **ret, const struct ws_ptx_module *m,
                       const struct ws_ptx_count_options *o)
{
    struct ws_ptx_counter *x = ws_alloc(sizeof(*x));
    if (!x)
        return ws_raise(-ENOMEM);
    x->m = m;
    x->o = o ? *o : (struct ws_ptx_count_options){0};
    x->done = ws_alloc_array(m->n_funcs, sizeof(*x->done));
    x->state = ws_alloc_array(m->n_funcs, 1);
    x->path = ws_alloc_array(m->n_funcs, sizeof(*x->path));
    if (!x->done || !x->state || !x->path) {
        ws_ptx_counter_free(x);
        return ws_raise(-ENOMEM);
    }
    *ret = x;
    return 0;
}

struct ws_ptx_counter *ws_ptx_counter_free(struct ws_ptx_counter *x)
{
    if (x) {
        free(x->done);
        free(x->state);
        free(x->path);
    }
    free(x);
    return NULL;
}

int ws_ptx_counter_count(struct ws_ptx_counter *x, const struct ws_ptx_func *f,
                         struct ws_ptx_counts *ret)
{
    uint32_t index = (uint32_t)(f - x->m->funcs);
    int r = 0;
    if (f->is_decl)
        return ws_raise(-EINVAL);
    x->n_path = 0;
    if (x->state[index] == NOT_BEGUN)
        begin(x, index);
    while (!r && x->n_path) {
        struct call_at *at = &x->path[x->n_path - 1];
        int64_t callee = next_callee(x, at);
        if (callee >= 0) {
            begin(x, (uint32_t)callee);
            continue;
        }
        r = count_function(x, at->func);
        x->state[at->func] = DONE;
        x->n_path--;
    }
    if (r)
        return ws_forward(r);
    *ret = x->done[index];
    ret->uncoal_per_mw = ret->uncoal > 0 ? ret->uncoal_per_mw / ret->uncoal : 1;
    return 0;
}

int ws_ptx_count(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                 const struct ws_ptx_count_options *o, struct ws_ptx_counts *ret)
{
    struct ws_ptx_counter *x;
    int r = ws_ptx_counter_new(&x, m, o);
    if (r)
        return ws_forward(r);
    r = ws_ptx_counter_count(x, f, ret);
    ws_ptx_counter_free(x);
    return r ? ws_forward(r) : 0;
}
