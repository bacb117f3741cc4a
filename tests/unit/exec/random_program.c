// SPDX-License-Identifier: Apache-2.0
/* random_program.h: a tree of statements and expressions, a printer, an evaluator.
 *
 * What a program may do is chosen so that its result is one and the same in whatever order threads
 * run: memory is a thread's own, or read between barriers, or changed by operations that commute;
 * warp-wide operations name the lanes that reach them. The mask of those lanes is kept by the
 * program itself (a vote before each branch, as careful CUDA code has it): a region with a mask may
 * hold warp-wide operations, one without may not, and barriers stand only where all threads of the
 * block come by. */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/exec/random_program.h"

enum { NR = 8, NW = 4, NF = 4, NO_MASK = -1, N_FUNCS = 2 };

enum type { T_I, T_W, T_F };
enum op {
    E_REG,
    E_IMM,
    /* 32 bits */
    E_ADD,
    E_SUB,
    E_MUL,
    E_MULHI_U,
    E_MULHI_S,
    E_MAD,
    E_AND,
    E_OR,
    E_XOR,
    E_NOT,
    E_NEG,
    E_ABS,
    E_SHL,
    E_SHR_U,
    E_SHR_S,
    E_MIN_U,
    E_MIN_S,
    E_MAX_U,
    E_MAX_S,
    E_POPC,
    E_CLZ,
    E_BREV,
    E_BFE_U,
    E_BFE_S,
    E_BFI,
    E_PRMT,
    E_LOP3,
    E_SELP,
    E_DIV_U,
    E_REM_U,
    E_SAD,
    E_SHF,
    E_DP4A,
    E_MUL24,
    E_U8,
    E_S8,
    E_U16,
    E_S16,
    E_ADD16,
    E_WIDE16,
    E_SET,
    E_SLCT,
    E_LO,
    E_HI,
    E_BITS,
    E_TRUNC,
    E_LAST_I = E_TRUNC,
    /* 64 bits */
    E_ADD64,
    E_SUB64,
    E_MUL64,
    E_MULHI64,
    E_XOR64,
    E_AND64,
    E_SHL64,
    E_SHR64_U,
    E_SHR64_S,
    E_FROM_U,
    E_FROM_S,
    E_WIDE_U,
    E_WIDE_S,
    E_MADWIDE,
    E_SELP64,
    E_MIN64_S,
    E_CARRY,
    E_LAST_W = E_CARRY,
    /* f32 */
    E_FADD,
    E_FSUB,
    E_FMUL,
    E_FMA,
    E_FMIN,
    E_FMAX,
    E_F_U,
    E_F_S,
    E_FBITS,
    E_LAST_F = E_FBITS,
};
struct expr {
    enum op op;
    enum type type;
    unsigned reg;
    uint64_t imm;
    struct expr *k[3];
};
struct cond {
    unsigned how; /* 0-5 unsigned, 6-11 signed: eq ne lt le gt ge */
    struct expr *a, *b;
};

enum what {
    S_SET,
    S_IF,
    S_LOOP,
    S_BREAK,
    S_SWITCH,
    S_EXIT,
    S_LOAD,
    S_LOAD_WIDE,
    S_LOAD_PAIR,
    S_STORE,
    S_OWN,
    S_OWN_ATOM,
    S_LOCAL_STORE,
    S_LOCAL_LOAD,
    S_RED_SHARED,
    S_RED_GLOBAL,
    S_SLOT, /* the thread's own word of shared memory, by a generic address */
    S_OWN_LOAD_WIDE,
    S_OWN_STORE_WIDE,
    S_OWN_ATOM_WIDE,
    S_CALL,
    S_FREE_LAST = S_CALL, /* may stand anywhere */
    S_SHFL,
    S_VOTE,
    S_MATCH,
    S_REDUX,
    S_CALL_WARP, /* from both arms of a branch */
    S_WARP_BAR,
    S_WARP_LAST = S_WARP_BAR, /* want a mask */
    S_SHARED,
    S_SHARED_BYTE,
    S_READ_SUMS,
    S_BAR_RED,
    S_CALL_BAR,
    S_BLOCK_LAST = S_CALL_BAR /* want all threads of the block */
};
struct stmt {
    enum what what;
    unsigned sub, reg, reg2;
    enum type type;
    bool guarded, masked;
    struct cond c;
    struct expr *a, *b;
    struct stmt *body[4], *next;
};

struct rnd_program {
    uint64_t state;
    struct stmt *body, *func[N_FUNCS];
    void **nodes;
    size_t n_nodes, cap_nodes;
    /* printing */
    char *text;
    size_t len, cap;
    unsigned n_t, n_x, n_g, n_h, n_p, n_l, n_m;
};

uint64_t rnd_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- making ---- */
static unsigned pick(struct rnd_program *p, unsigned n)
{
    return (unsigned)(rnd_next(&p->state) % n);
}
static void *node(struct rnd_program *p, size_t bytes)
{
    if (p->n_nodes == p->cap_nodes) {
        p->cap_nodes = p->cap_nodes ? 2 * p->cap_nodes : 256;
        p->nodes = realloc(p->nodes, p->cap_nodes * sizeof(*p->nodes));
    }
    void *n = calloc(1, bytes);
    if (!p->nodes || !n)
        abort();
    return p->nodes[p->n_nodes++] = n;
}

/* Types of an operation's operands; 0xf: none. */
static unsigned operands(enum op op, enum type *t)
{
    t[0] = t[1] = t[2] = op <= E_LAST_I ? T_I : op <= E_LAST_W ? T_W : T_F;
    switch (op) {
    case E_REG:
    case E_IMM:
        return 0;
    case E_NOT:
    case E_NEG:
    case E_ABS:
    case E_POPC:
    case E_CLZ:
    case E_BREV:
    case E_U8:
    case E_S8:
    case E_U16:
    case E_S16:
        return 1;
    case E_LO:
    case E_HI:
        t[0] = T_W;
        return 1;
    case E_BITS:
    case E_TRUNC:
        t[0] = T_F;
        return 1;
    case E_FROM_U:
    case E_FROM_S:
    case E_F_U:
    case E_F_S:
    case E_FBITS:
        t[0] = T_I;
        return 1;
    case E_SHL64:
    case E_SHR64_U:
    case E_SHR64_S:
        t[1] = T_I;
        return 2;
    case E_WIDE_U:
    case E_WIDE_S:
        t[0] = t[1] = T_I;
        return 2;
    case E_MADWIDE:
    case E_SELP64:
        t[0] = T_I;
        t[1] = op == E_MADWIDE ? T_I : T_W;
        return 3;
    case E_MAD:
    case E_BFE_U:
    case E_BFE_S:
    case E_BFI:
    case E_PRMT:
    case E_LOP3:
    case E_SELP:
    case E_SAD:
    case E_SHF:
    case E_DP4A:
    case E_SLCT:
    case E_FMA:
        return 3;
    default:
        return 2;
    }
}

static uint64_t number(struct rnd_program *p)
{
    static const uint32_t edges[] = {
        0, 1, 2, 3, 7, 31, 32, 33, 0x7f, 0x80, 0xff, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff};
    return pick(p, 2) ? edges[pick(p, sizeof(edges) / sizeof(*edges))]
                      : (uint32_t)rnd_next(&p->state);
}

static struct expr *expression(struct rnd_program *p, enum type type, unsigned depth)
{
    struct expr *e = node(p, sizeof(*e));
    enum type t[3];
    e->type = type;
    if (depth == 0 || pick(p, 5) == 0) {
        e->op = pick(p, 3) || type == T_F ? E_REG : E_IMM;
        e->reg = pick(p, type == T_I ? NR : NW);
        e->imm = type == T_W && pick(p, 2) ? rnd_next(&p->state) : number(p);
        return e;
    }
    e->op = type == T_I   ? E_ADD + pick(p, E_LAST_I - E_ADD + 1)
            : type == T_W ? E_ADD64 + pick(p, E_LAST_W - E_ADD64 + 1)
                          : E_FADD + pick(p, E_LAST_F - E_FADD + 1);
    e->imm = number(p);
    unsigned n = operands(e->op, t);
    for (unsigned k = 0; k < n; k++)
        e->k[k] = expression(p, t[k], depth - 1);
    return e;
}

static struct cond condition(struct rnd_program *p)
{
    struct cond c = {.how = pick(p, 12), .a = expression(p, T_I, 1), .b = expression(p, T_I, 1)};
    if (pick(p, 3) == 0) { /* more often by halves than equality of random numbers is */
        c.how = pick(p, 2);
        struct expr *e = node(p, sizeof(*e)), *one = node(p, sizeof(*one)),
                    *zero = node(p, sizeof(*zero));
        *one = (struct expr){.op = E_IMM, .imm = 1u << pick(p, 3)};
        *zero = (struct expr){.op = E_IMM};
        *e = (struct expr){.op = E_AND, .k = {c.a, one}};
        c.a = e;
        c.b = zero;
    }
    return c;
}

struct place { /* what may stand here */
    bool block, masked, in_loop /* that may be left */, in_func;
    unsigned depth;
};

static struct stmt *statements(struct rnd_program *p, unsigned n, struct place at);

static struct stmt *statement(struct rnd_program *p, struct place at)
{
    struct stmt *s = node(p, sizeof(*s));
    unsigned r = pick(p, 100);
    s->what = at.in_func            ? (r < 60   ? S_SET
                                       : r < 80 ? S_IF
                                                : S_LOOP)
              : at.block && r < 15  ? S_SHARED + pick(p, S_BLOCK_LAST - S_SHARED + 1)
              : at.masked && r < 35 ? S_SHFL + pick(p, S_WARP_LAST - S_SHFL + 1)
              : r < 55              ? S_SET
              : r < 80              ? S_IF + pick(p, S_SWITCH - S_IF + 1)
                                    : S_EXIT + pick(p, S_FREE_LAST - S_EXIT + 1);
    if ((s->what == S_BREAK && !at.in_loop) || (s->what == S_EXIT && pick(p, 3)) ||
        ((s->what == S_IF || s->what == S_LOOP || s->what == S_SWITCH) && at.depth == 0))
        s->what = S_SET;
    s->sub = pick(p, 12);
    s->reg = pick(p, NR);
    s->reg2 = (s->reg + 1 + pick(p, NR - 1)) % NR;
    s->guarded = pick(p, 4) == 0;
    s->type = s->what == S_SET ? (enum type)(pick(p, 4) % 3) : T_I;
    if (s->type != T_I)
        s->reg %= NW;
    s->c = condition(p);
    s->a = expression(p, s->type, 2 + pick(p, 2));
    s->b = expression(p, T_I, 1);
    s->masked = at.masked && pick(p, 2);
    struct place in = at;
    in.depth--;
    in.masked = s->masked;
    in.block = false;
    if (s->what == S_IF) {
        s->body[0] = statements(p, 1 + pick(p, 4), in);
        s->body[1] = pick(p, 2) ? statements(p, 1 + pick(p, 3), in) : NULL;
    } else if (s->what == S_LOOP) {
        s->guarded = pick(p, 3) == 0; /* here: as often for all threads */
        in.block = at.block && s->guarded;
        in.masked = in.block ? at.masked : s->masked;
        s->masked = in.masked;
        in.in_loop = !in.masked;
        s->body[0] = statements(p, 1 + pick(p, 4), in);
    } else if (s->what == S_SWITCH) {
        in.masked = s->masked = false;
        for (unsigned k = 0; k < 4; k++)
            s->body[k] = statements(p, pick(p, 3), in);
    }
    return s;
}

static struct stmt *statements(struct rnd_program *p, unsigned n, struct place at)
{
    struct stmt *first = NULL, **to = &first;
    while (n--) {
        *to = statement(p, at);
        to = &(*to)->next;
    }
    return first;
}

struct rnd_program *rnd_new(uint64_t seed)
{
    struct rnd_program *p = calloc(1, sizeof(*p));
    if (!p)
        abort();
    p->state = seed;
    for (unsigned k = 0; k < N_FUNCS; k++)
        p->func[k] = statements(p, 2 + pick(p, 3), (struct place){.in_func = true, .depth = 2});
    p->body =
        statements(p, 5 + pick(p, 10), (struct place){.block = true, .masked = true, .depth = 3});
    const char *cut = getenv("WS_RANDOM_CUT"); /* to find the statement that fails */
    struct stmt **end = &p->body;
    for (int k = cut ? atoi(cut) : 1000; *end && k > 0; k--)
        end = &(*end)->next;
    *end = NULL;
    return p;
}

struct rnd_program *rnd_free(struct rnd_program *p)
{
    for (size_t k = 0; p && k < p->n_nodes; k++)
        free(p->nodes[k]);
    if (p) {
        free(p->nodes);
        free(p->text);
        free(p);
    }
    return NULL;
}

/* ---- printing ---- */
static void put(struct rnd_program *p, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    size_t need = p->len + (size_t)vsnprintf(NULL, 0, format, ap) + 1;
    va_end(ap);
    if (need > p->cap) {
        p->cap = 2 * need;
        p->text = realloc(p->text, p->cap);
        if (!p->text)
            abort();
    }
    va_start(ap, format);
    p->len += (size_t)vsnprintf(p->text + p->len, p->cap - p->len, format, ap);
    va_end(ap);
}

struct name {
    char s[32];
};
static struct name name(const char *prefix, unsigned n)
{
    struct name r;
    snprintf(r.s, sizeof(r.s), "%%%s%u", prefix, n);
    return r;
}
static struct name temp(struct rnd_program *p, enum type t)
{
    return t == T_I ? name("t", p->n_t++) : t == T_W ? name("x", p->n_x++) : name("g", p->n_g++);
}
static struct name reg(enum type t, unsigned n)
{
    return name(t == T_I ? "r" : t == T_W ? "w" : "f", n);
}

static struct name print_expr(struct rnd_program *p, const struct expr *e);

static const char *const formats[] = {
    [E_ADD] = "add.u32 D, A, B",
    [E_SUB] = "sub.u32 D, A, B",
    [E_MUL] = "mul.lo.u32 D, A, B",
    [E_MULHI_U] = "mul.hi.u32 D, A, B",
    [E_MULHI_S] = "mul.hi.s32 D, A, B",
    [E_MAD] = "mad.lo.u32 D, A, B, C",
    [E_AND] = "and.b32 D, A, B",
    [E_OR] = "or.b32 D, A, B",
    [E_XOR] = "xor.b32 D, A, B",
    [E_NOT] = "not.b32 D, A",
    [E_NEG] = "neg.s32 D, A",
    [E_ABS] = "abs.s32 D, A",
    [E_SHL] = "shl.b32 D, A, B",
    [E_SHR_U] = "shr.u32 D, A, B",
    [E_SHR_S] = "shr.s32 D, A, B",
    [E_MIN_U] = "min.u32 D, A, B",
    [E_MIN_S] = "min.s32 D, A, B",
    [E_MAX_U] = "max.u32 D, A, B",
    [E_MAX_S] = "max.s32 D, A, B",
    [E_POPC] = "popc.b32 D, A",
    [E_CLZ] = "clz.b32 D, A",
    [E_BREV] = "brev.b32 D, A",
    [E_BFE_U] = "bfe.u32 D, A, B, C",
    [E_BFE_S] = "bfe.s32 D, A, B, C",
    [E_BFI] = "bfi.b32 D, A, B, C, 9",
    [E_PRMT] = "prmt.b32 D, A, B, C",
    [E_LOP3] = "lop3.b32 D, A, B, C, I",
    [E_SELP] = "setp.lt.s32 P, C, 0; selp.b32 D, A, B, P",
    [E_DIV_U] = "or.b32 T, B, 1; div.u32 D, A, T",
    [E_REM_U] = "or.b32 T, B, 1; rem.u32 D, A, T",
    [E_SAD] = "sad.u32 D, A, B, C",
    [E_SHF] = "shf.l.wrap.b32 D, A, B, C",
    [E_DP4A] = "dp4a.s32.u32 D, A, B, C",
    [E_MUL24] = "mul24.lo.u32 D, A, B",
    [E_U8] = "cvt.u32.u8 D, A",
    [E_S8] = "cvt.s32.s8 D, A",
    [E_U16] = "cvt.u32.u16 D, A",
    [E_S16] = "cvt.s32.s16 D, A",
    [E_ADD16] = "cvt.u16.u32 H, A; cvt.u16.u32 J, B; sub.s16 H, H, J; cvt.u32.u16 D, H",
    [E_WIDE16] = "cvt.u16.u32 H, A; cvt.u16.u32 J, B; mul.wide.s16 D, H, J",
    [E_SET] = "set.lt.u32.s32 D, A, B",
    [E_SLCT] = "slct.u32.s32 D, A, B, C",
    [E_LO] = "cvt.u32.u64 D, A",
    [E_HI] = "mov.b64 {T, D}, A",
    [E_BITS] = "mov.b32 D, A",
    [E_TRUNC] = "cvt.rzi.s32.f32 D, A",
    [E_ADD64] = "add.s64 D, A, B",
    [E_SUB64] = "sub.s64 D, A, B",
    [E_MUL64] = "mul.lo.u64 D, A, B",
    [E_MULHI64] = "mul.hi.u64 D, A, B",
    [E_XOR64] = "xor.b64 D, A, B",
    [E_AND64] = "and.b64 D, A, B",
    [E_SHL64] = "shl.b64 D, A, B",
    [E_SHR64_U] = "shr.u64 D, A, B",
    [E_SHR64_S] = "shr.s64 D, A, B",
    [E_FROM_U] = "cvt.u64.u32 D, A",
    [E_FROM_S] = "cvt.s64.s32 D, A",
    [E_WIDE_U] = "mul.wide.u32 D, A, B",
    [E_WIDE_S] = "mul.wide.s32 D, A, B",
    [E_MADWIDE] = "mad.wide.u32 D, A, B, C",
    [E_SELP64] = "setp.ne.u32 P, A, 0; selp.b64 D, B, C, P",
    [E_MIN64_S] = "min.s64 D, A, B",
    [E_CARRY] = "mov.b64 {T, U}, A; mov.b64 {V, W}, B; add.cc.u32 T, T, V; addc.u32 U, W, U; "
                "mov.b64 D, {U, T}",
    [E_FADD] = "add.rn.f32 D, A, B",
    [E_FSUB] = "sub.rz.f32 D, A, B",
    [E_FMUL] = "mul.rn.f32 D, A, B",
    [E_FMA] = "fma.rn.f32 D, A, B, C",
    [E_FMIN] = "min.f32 D, A, B",
    [E_FMAX] = "max.f32 D, A, B",
    [E_F_U] = "cvt.rn.f32.u32 D, A",
    [E_F_S] = "cvt.rn.f32.s32 D, A",
    [E_FBITS] = "mov.b32 D, A",
};

/* Prints what computes @e into @to, its last instruction under @guard. */
static void print_to(struct rnd_program *p, const struct expr *e, const char *to, const char *guard)
{
    if (e->op <= E_IMM) {
        struct name n = print_expr(p, e);
        put(p, "    %s mov.%s %s, %s;\n", guard,
            e->type == T_I   ? "b32"
            : e->type == T_W ? "b64"
                             : "f32",
            to, n.s);
        return;
    }
    enum type t[3];
    struct name k[3], tmp[4], h[2], pr = name("p", p->n_p++);
    unsigned n = operands(e->op, t);
    for (unsigned i = 0; i < n; i++)
        k[i] = print_expr(p, e->k[i]);
    for (unsigned i = 0; i < 4; i++)
        tmp[i] = temp(p, T_I);
    for (unsigned i = 0; i < 2; i++)
        h[i] = name("h", p->n_h++);
    const char *f = formats[e->op], *last = strrchr(f, ';');
    put(p, "    %s", last ? "" : guard);
    for (const char *c = f; *c; c++) {
        bool word = c == f || c[-1] == ' ' || c[-1] == '{';
        bool alone = word && (c[1] == ',' || c[1] == '\0' || c[1] == ';' || c[1] == '}');
        if (c == last)
            put(p, ";\n    %s", guard);
        else if (!alone)
            put(p, "%c", *c);
        else if (*c == 'D')
            put(p, "%s", to);
        else if (*c >= 'A' && *c <= 'C')
            put(p, "%s", k[*c - 'A'].s);
        else if (*c >= 'T' && *c <= 'W')
            put(p, "%s", tmp[*c - 'T'].s);
        else if (*c == 'H' || *c == 'J')
            put(p, "%s", h[*c == 'J'].s);
        else if (*c == 'P')
            put(p, "%s", pr.s);
        else if (*c == 'I')
            put(p, "%u", (unsigned)(e->imm & 0xff));
        else
            put(p, "%c", *c);
    }
    put(p, ";\n");
}

static struct name print_expr(struct rnd_program *p, const struct expr *e)
{
    struct name n;
    if (e->op == E_REG)
        return reg(e->type, e->reg);
    if (e->op == E_IMM) {
        snprintf(n.s, sizeof(n.s), "0x%llx", (unsigned long long)e->imm);
        return n;
    }
    n = temp(p, e->type);
    print_to(p, e, n.s, "");
    return n;
}

static struct name print_cond(struct rnd_program *p, const struct cond *c)
{
    static const char *const words[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    struct name a = print_expr(p, c->a), b = print_expr(p, c->b), r = name("p", p->n_p++);
    put(p, "    setp.%s.%s %s, %s, %s;\n", words[c->how % 6], c->how < 6 ? "u32" : "s32", r.s, a.s,
        b.s);
    return r;
}

/* Address base + (b & mask). */
static struct name print_address(struct rnd_program *p, const struct expr *b, unsigned mask,
                                 const char *base)
{
    struct name t = temp(p, T_I), x = temp(p, T_W), y = temp(p, T_W), n = print_expr(p, b);
    put(p, "    and.b32 %s, %s, %u;\n    cvt.u64.u32 %s, %s;\n    add.s64 %s, %s, %s;\n", t.s, n.s,
        mask, x.s, t.s, y.s, base, x.s);
    return y;
}

static void print_body(struct rnd_program *p, const struct stmt *s, int mask, unsigned end);

static void print_if(struct rnd_program *p, const struct stmt *s, int mask, unsigned loop_end)
{
    struct name c = print_cond(p, &s->c);
    unsigned other = p->n_l++, end = p->n_l++;
    int then_mask = NO_MASK, else_mask = NO_MASK;
    if (s->masked) {
        then_mask = (int)p->n_m++;
        else_mask = (int)p->n_m++;
        struct name t = temp(p, T_I);
        put(p, "    vote.sync.ballot.b32 %%m%d, %s, %%m%d;\n", then_mask, c.s, mask);
        put(p, "    not.b32 %s, %%m%d;\n    and.b32 %%m%d, %%m%d, %s;\n", t.s, then_mask, else_mask,
            mask, t.s);
    }
    put(p, "    @!%s bra $L%u;\n", c.s, other);
    print_body(p, s->body[0], then_mask, loop_end);
    if (s->body[1])
        put(p, "    bra $L%u;\n", end);
    put(p, "$L%u:\n", other);
    print_body(p, s->body[1], else_mask, loop_end);
    put(p, "$L%u:\n", end);
}

static void print_loop(struct rnd_program *p, const struct stmt *s, int mask)
{
    struct name n = temp(p, T_I), c = name("p", p->n_p++);
    unsigned head = p->n_l++, end = p->n_l++;
    int in = NO_MASK;
    if (s->guarded) {
        put(p, "    mov.u32 %s, %u;\n", n.s, s->sub % 4);
    } else {
        struct name v = print_expr(p, s->b);
        put(p, "    and.b32 %s, %s, 7;\n", n.s, v.s);
    }
    if (s->masked) {
        in = (int)p->n_m++;
        put(p, "    mov.b32 %%m%d, %%m%d;\n", in, mask);
    }
    put(p, "$L%u:\n    setp.eq.u32 %s, %s, 0;\n", head, c.s, n.s);
    if (s->masked)
        put(p, "    vote.sync.ballot.b32 %%m%d, !%s, %%m%d;\n", in, c.s, in);
    put(p, "    @%s bra $L%u;\n", c.s, end);
    print_body(p, s->body[0], in, end);
    put(p, "    sub.u32 %s, %s, 1;\n    bra $L%u;\n$L%u:\n", n.s, n.s, head, end);
}

static void print_switch(struct rnd_program *p, const struct stmt *s, unsigned loop_end)
{
    struct name n = print_expr(p, s->b), t = temp(p, T_I);
    unsigned first = p->n_l, end = first + 4, table = first + 5;
    p->n_l += 6;
    put(p, "    and.b32 %s, %s, 3;\n", t.s, n.s);
    put(p, "$L%u: .branchtargets $L%u, $L%u, $L%u, $L%u;\n    brx.idx %s, $L%u;\n", table, first,
        first + 1, first + 2, first + 3, t.s, table);
    for (unsigned k = 0; k < 4; k++) {
        put(p, "$L%u:\n", first + k);
        print_body(p, s->body[k], NO_MASK, loop_end);
        put(p, "    bra $L%u;\n", end);
    }
    put(p, "$L%u:\n", end);
}

static const struct {
    const char *type;
    unsigned bytes;
    bool is_signed;
} loads[] = {{"u8", 1, false}, {"s8", 1, true},   {"u16", 2, false},
             {"s16", 2, true}, {"u32", 4, false}, {"b32", 4, false}};
static const char *const reds[] = {"add.u32", "xor.b32", "min.u32", "max.s32"};
static const char *const own_atoms[] = {"add.u32", "exch.b32", "max.s32", "inc.u32"};
static const char *const wide_atoms[] = {"add.u64", "exch.b64", "max.s64", "cas.b64"};
static const char *const shuffles[] = {"idx", "bfly", "up", "down"};
static const char *const reduxes[] = {"add.s32", "min.u32", "max.s32", "xor.b32"};

/* d = source's a, if that lane is here, else this lane's own. */
static void print_shuffle(struct rnd_program *p, const struct stmt *s, int mask)
{
    unsigned mode = s->sub % 4;
    struct name a = print_expr(p, s->a), b = print_expr(p, s->b), t[8], q = name("p", p->n_p++),
                ok = name("p", p->n_p++);
    for (unsigned k = 0; k < 8; k++)
        t[k] = temp(p, T_I);
    put(p, "    mov.b32 %s, %s;\n    and.b32 %s, %s, 31;\n", t[0].s, a.s, t[1].s, b.s);
    put(p, "    vote.sync.ballot.b32 %s, 1, %%m%d;\n", t[2].s, mask);
    put(p, "    shfl.sync.%s.b32 %s|%s, %s, %s, %d, %%m%d;\n", shuffles[mode], t[3].s, q.s, t[0].s,
        t[1].s, mode == 2 ? 0 : 31, mask);
    put(p, "    mov.u32 %s, %%laneid;\n", t[4].s);
    put(p,
        mode == 0   ? "    mov.b32 %s, %s;\n"
        : mode == 1 ? "    xor.b32 %s, %s, %s;\n"
        : mode == 2 ? "    sub.s32 %s, %s, %s;\n"
                    : "    add.s32 %s, %s, %s;\n",
        t[5].s, mode == 0 ? t[1].s : t[4].s, t[1].s);
    put(p, "    selp.b32 %s, %s, %s, %s;\n", t[6].s, t[5].s, t[4].s, q.s);
    put(p, "    shr.u32 %s, %s, %s;\n    and.b32 %s, %s, 1;\n    setp.ne.u32 %s, %s, 0;\n", t[7].s,
        t[2].s, t[6].s, t[7].s, t[7].s, ok.s, t[7].s);
    put(p, "    selp.b32 %%r%u, %s, %s, %s;\n", s->reg, t[3].s, t[0].s, ok.s);
}

/* The same function from both arms, so that lanes come one after the other to the place where all
 * must meet. */
static void print_two_calls(struct rnd_program *p, const struct stmt *s, int mask)
{
    struct name c = print_cond(p, &s->c), a = print_expr(p, s->a), b = print_expr(p, s->b);
    unsigned other = p->n_l++, end = p->n_l++;
    put(p, "    @!%s bra $L%u;\n", c.s, other);
    for (unsigned k = 0; k < 2; k++) {
        put(p,
            "    {\n    .param .b32 q0, q1, q2, q3;\n    st.param.b32 [q0], %s;\n    st.param.b32 "
            "[q1], %s;\n",
            k ? b.s : a.s, k ? a.s : b.s);
        if (mask != NO_MASK)
            put(p, "    st.param.b32 [q2], %%m%d;\n    call (q3), warpfunc, (q0, q1, q2);\n", mask);
        else
            put(p, "    call (q3), barfunc, (q0, q1);\n");
        put(p, "    ld.param.b32 %%r%u, [q3];\n    }\n", s->reg);
        if (k == 0)
            put(p, "    bra $L%u;\n$L%u:\n", end, other);
    }
    put(p, "$L%u:\n", end);
}

/* What %t3 and %t4 are made from has changed when the lanes meet: they must have been kept. */
static const char meeting_functions[] =
    ".func (.param .b32 ret) warpfunc(.param .b32 a, .param .b32 b, .param .b32 m)\n{\n"
    "    .reg .b32 %t<13>;\n    .reg .pred %p<2>;\n"
    "    ld.param.b32 %t0, [a];\n    ld.param.b32 %t1, [b];\n    ld.param.b32 %t2, [m];\n$START:\n"
    "    mad.lo.u32 %t3, %t0, 3, 1;\n    xor.b32 %t4, %t3, %t1;\n    and.b32 %t5, %t4, 1;\n"
    "    xor.b32 %t0, %t0, 0x55;\n    setp.ne.u32 %p0, %t5, 0;\n    redux.sync.add.s32 %t6, %t3, "
    "%t2;\n"
    "    shl.b32 %t7, %t4, 1;\n    vote.sync.ballot.b32 %t8, %p0, %t2;\n    xor.b32 %t9, %t6, "
    "%t7;\n"
    "    add.u32 %t10, %t9, %t8;\n    add.u32 %t11, %t10, %t3;\n    add.u32 %t12, %t11, %t0;\n"
    "    st.param.b32 [ret], %t12;\n    ret;\n}\n"
    ".func (.param .b32 ret) barfunc(.param .b32 a, .param .b32 b)\n{\n"
    "    .reg .b32 %t<9>;\n    .reg .pred %p<2>;\n"
    "    ld.param.b32 %t0, [a];\n    ld.param.b32 %t1, [b];\n$START:\n    mad.lo.u32 %t2, %t0, 5, "
    "%t1;\n"
    "    xor.b32 %t3, %t2, %t0;\n    xor.b32 %t0, %t0, 0x55;\n    and.b32 %t4, %t2, 1;\n"
    "    setp.ne.u32 %p0, %t4, 0;\n    barrier.red.popc.u32 %t5, 0, %p0;\n    add.u32 %t6, %t5, "
    "%t3;\n"
    "    add.u32 %t7, %t6, %t0;\n    st.param.b32 [ret], %t7;\n    ret;\n}\n";
static uint32_t warp_word(uint32_t a)
{
    return a * 3 + 1;
}
static uint32_t bar_word(uint32_t a, uint32_t b)
{
    return a * 5 + b;
}

static void print_stmt(struct rnd_program *p, const struct stmt *s, int mask, unsigned loop_end)
{
    struct name a, b, x, c;
    const char *load = loads[s->sub % 6].type;
    unsigned bytes = loads[s->sub % 6].bytes;
    switch (s->what) {
    case S_SET: {
        char guard[40] = "";
        if (s->guarded) {
            c = print_cond(p, &s->c);
            snprintf(guard, sizeof(guard), "@%s%s ", s->sub & 1 ? "!" : "", c.s);
        }
        print_to(p, s->a, reg(s->type, s->reg).s, guard);
        break;
    }
    case S_IF:
        print_if(p, s, mask, loop_end);
        break;
    case S_LOOP:
        print_loop(p, s, mask);
        break;
    case S_BREAK:
        c = print_cond(p, &s->c);
        put(p, "    @%s bra $L%u;\n", c.s, loop_end);
        break;
    case S_SWITCH:
        print_switch(p, s, loop_end);
        break;
    case S_EXIT:
        c = print_cond(p, &s->c);
        put(p, "    @%s bra $OUT;\n", c.s);
        break;
    case S_LOAD:
        x = print_address(p, s->b, (RND_IN_BYTES - 1) & ~(bytes - 1), "%in");
        put(p, "    ld%s.%s %%r%u, [%s];\n", s->guarded ? "" : ".global", load, s->reg, x.s);
        break;
    case S_LOAD_WIDE:
        x = print_address(p, s->b, (RND_IN_BYTES - 1) & ~7u, "%in");
        put(p, "    ld.global.u64 %%w%u, [%s];\n", s->reg % NW, x.s);
        break;
    case S_LOAD_PAIR:
        x = print_address(p, s->b, (RND_IN_BYTES - 1) & ~15u, "%in");
        put(p, "    ld.global.v2.u32 {%%r%u, %%r%u}, [%s+8];\n", s->reg, s->reg2, x.s);
        break;
    case S_STORE:
        a = print_expr(p, s->a);
        x = print_address(p, s->b, (RND_OWN_BYTES - 1) & ~(bytes - 1), "%own");
        b = temp(p, T_I);
        put(p, "    mov.b32 %s, %s;\n    st%s.%c%u [%s], %s;\n", b.s, a.s,
            s->guarded ? ".volatile.global" : ".global", 'b', 8 * bytes, x.s, b.s);
        break;
    case S_OWN:
        x = print_address(p, s->b, (RND_OWN_BYTES - 1) & ~(bytes - 1), "%own");
        put(p, "    ld.%s.%s %%r%u, [%s];\n", s->guarded ? "volatile.global" : "global", load,
            s->reg, x.s);
        break;
    case S_OWN_ATOM:
        a = print_expr(p, s->a);
        x = print_address(p, s->b, RND_OWN_BYTES - 4, "%own");
        put(p, "    atom%s.%s %%r%u, [%s], %s;\n", s->guarded ? "" : ".global",
            own_atoms[s->sub % 4], s->reg, x.s, a.s);
        break;
    case S_LOCAL_STORE:
        a = print_expr(p, s->a);
        x = print_address(p, s->b, 63 & ~(bytes - 1), s->guarded ? "%locg" : "%loc");
        b = temp(p, T_I);
        put(p, "    mov.b32 %s, %s;\n    st%s.b%u [%s], %s;\n", b.s, a.s,
            s->guarded ? "" : ".local", 8 * bytes, x.s, b.s);
        break;
    case S_LOCAL_LOAD:
        x = print_address(p, s->b, 63 & ~(bytes - 1), s->guarded ? "%locg" : "%loc");
        put(p, "    ld%s.%s %%r%u, [%s];\n", s->guarded ? "" : ".local", load, s->reg, x.s);
        break;
    case S_SLOT:
        a = print_expr(p, s->a);
        b = temp(p, T_I);
        put(p, "    mov.b32 %s, %s;\n    ld%s.u32 %%r%u, [%%slotg];\n    st.u32 [%%slotg], %s;\n",
            b.s, a.s, s->guarded ? ".volatile" : "", s->reg, b.s);
        break;
    case S_OWN_LOAD_WIDE:
        x = print_address(p, s->b, RND_OWN_BYTES - 16, "%own");
        put(p, "    ld%s.v2.u64 {%%w%u, %%w%u}, [%s];\n", s->guarded ? "" : ".global", s->reg % NW,
            (s->reg + 1) % NW, x.s);
        break;
    case S_OWN_STORE_WIDE:
        x = print_address(p, s->b, RND_OWN_BYTES - 16, "%own");
        put(p, "    st%s.v4.u32 [%s], {%%r%u, %%r%u, %%r0, %%r7};\n", s->guarded ? "" : ".global",
            x.s, s->reg, s->reg2);
        break;
    case S_OWN_ATOM_WIDE:
        x = print_address(p, s->b, RND_OWN_BYTES - 8, "%own");
        put(p, "    atom%s.%s %%w%u, [%s], %%w%u%s;\n", s->guarded ? "" : ".global",
            wide_atoms[s->sub % 4], s->reg % NW, x.s, s->reg2 % NW, s->sub % 4 == 3 ? ", %w0" : "");
        break;
    case S_RED_SHARED:
        a = print_expr(p, s->a);
        b = print_expr(p, s->b);
        x = temp(p, T_I);
        c = temp(p, T_I);
        put(p,
            "    and.b32 %s, %s, 60;\n    mov.u32 %s, SUMS;\n    add.u32 %s, %s, %s;\n    "
            "red.shared.add.u32 [%s], %s;\n",
            x.s, b.s, c.s, x.s, x.s, c.s, x.s, a.s);
        break;
    case S_RED_GLOBAL: {
        unsigned k = s->sub % 4;
        a = print_expr(p, s->a);
        x = print_address(p, s->b, 60, "%cells");
        if (s->guarded)
            put(p, "    atom.global.%s %s, [%s+%u], %s;\n", reds[k], temp(p, T_I).s, x.s, 64 * k,
                a.s);
        else
            put(p, "    red.global.%s [%s+%u], %s;\n", reds[k], x.s, 64 * k, a.s);
        break;
    }
    case S_CALL:
        a = print_expr(p, s->a);
        b = print_expr(p, s->b);
        put(p,
            "    {\n    .param .b32 q0, q1, q2;\n    st.param.b32 [q0], %s;\n    st.param.b32 "
            "[q1], %s;\n",
            a.s, b.s);
        put(p, "    call.uni (q2), func%u, (q0, q1);\n    ld.param.b32 %%r%u, [q2];\n    }\n",
            s->sub % N_FUNCS, s->reg);
        break;
    case S_SHFL:
        print_shuffle(p, s, mask);
        break;
    case S_VOTE: {
        c = print_cond(p, &s->c);
        struct name q = name("p", p->n_p++);
        if (s->sub % 3 == 0)
            put(p, "    vote.sync.ballot.b32 %%r%u, %s, %%m%d;\n", s->reg, c.s, mask);
        else
            put(p, "    vote.sync.%s.pred %s, %s, %%m%d;\n    selp.u32 %%r%u, 1, 0, %s;\n",
                s->sub % 3 == 1 ? "any" : "all", q.s, c.s, mask, s->reg, q.s);
        break;
    }
    case S_MATCH:
        a = print_expr(p, s->a);
        b = temp(p, T_I);
        put(p, "    and.b32 %s, %s, 3;\n    match.any.sync.b32 %%r%u, %s, %%m%d;\n", b.s, a.s,
            s->reg, b.s, mask);
        break;
    case S_REDUX:
        a = print_expr(p, s->a);
        b = temp(p, T_I);
        put(p, "    mov.b32 %s, %s;\n    redux.sync.%s %%r%u, %s, %%m%d;\n", b.s, a.s,
            reduxes[s->sub % 4], s->reg, b.s, mask);
        break;
    case S_WARP_BAR:
        put(p, "    bar.warp.sync %%m%d;\n", mask);
        break;
    case S_SHARED:
    case S_SHARED_BYTE: {
        bool byte = s->what == S_SHARED_BYTE;
        a = print_expr(p, s->a);
        b = print_expr(p, s->b);
        x = temp(p, T_I);
        c = temp(p, T_I);
        put(p, "    mov.u32 %s, SLOTS;\n    and.b32 %s, %s, %u;\n    add.u32 %s, %s, %s;\n", c.s,
            x.s, b.s, byte ? 511 : 508, x.s, x.s, c.s);
        put(p, "    st.shared.u32 [%%slot], %s;\n    bar.sync 0;\n", a.s);
        put(p, "    ld.shared.%s %%r%u, [%s];\n    bar.sync 0;\n", byte ? "s8" : "u32", s->reg,
            x.s);
        break;
    }
    case S_READ_SUMS:
        b = print_expr(p, s->b);
        x = temp(p, T_I);
        c = temp(p, T_I);
        put(p,
            "    bar.sync 0;\n    mov.u32 %s, SUMS;\n    and.b32 %s, %s, 60;\n    add.u32 %s, %s, "
            "%s;\n    ld.shared.u32 %%r%u, [%s];\n    bar.sync 0;\n",
            c.s, x.s, b.s, x.s, x.s, c.s, s->reg, x.s);
        break;
    case S_BAR_RED:
        c = print_cond(p, &s->c);
        put(p, "    bar.red.popc.u32 %%r%u, 0, %s;\n", s->reg, c.s);
        break;
    case S_CALL_WARP:
        print_two_calls(p, s, mask);
        break;
    case S_CALL_BAR:
        print_two_calls(p, s, NO_MASK);
        break;
    default:
        abort();
    }
}

static void print_body(struct rnd_program *p, const struct stmt *s, int mask, unsigned loop_end)
{
    for (; s; s = s->next)
        print_stmt(p, s, mask, loop_end);
}

static void print_regs(struct rnd_program *p)
{
    put(p, "    .reg .pred %%p<%u>;\n    .reg .b32 %%r<%d>, %%t<%u>, %%m<%u>, %%slot;\n",
        p->n_p + 1, NR, p->n_t + 1, p->n_m + 1);
    put(p, "    .reg .b64 %%w<%d>, %%x<%u>, %%in, %%own, %%out, %%cells, %%loc, %%locg, %%slotg;\n",
        NW, p->n_x + 1);
    put(p, "    .reg .f32 %%f<%d>, %%g<%u>;\n    .reg .b16 %%h<%u>;\n", NF, p->n_g + 1, p->n_h + 1);
}

/* Declarations come before what is printed with them: the body is printed first and moved
 * behind. */
static void print_around(struct rnd_program *p, size_t from, const char *head, const char *prologue,
                         const char *tail)
{
    size_t n = p->len - from;
    char *body = malloc(n + 1);
    if (!body)
        abort();
    memcpy(body, p->text + from, n);
    body[n] = '\0';
    p->len = from;
    put(p, "%s{\n", head);
    print_regs(p);
    put(p, "%s", prologue);
    put(p, "%s%s}\n", body, tail);
    free(body);
}

const char *rnd_ptx(struct rnd_program *p)
{
    if (p->text)
        return p->text;
    put(p, ".version 8.0\n.target sm_80\n.address_size 64\n%s", meeting_functions);
    for (unsigned k = 0; k < N_FUNCS; k++) {
        char head[128];
        size_t from = p->len;
        print_body(p, p->func[k], NO_MASK, 0);
        snprintf(head, sizeof(head),
                 ".func (.param .b32 ret) func%u(.param .b32 a, .param .b32 b)\n", k);
        print_around(p, from, head,
                     "    ld.param.b32 %r0, [a];\n    ld.param.b32 %r1, [b];\n    mov.b32 %r2, "
                     "5;\n    mov.b32 %r3, %r0;\n    mov.b32 %r4, 0;\n"
                     "    mov.b32 %r5, %r1;\n    mov.b32 %r6, 77;\n    mov.b32 %r7, -1;\n"
                     "    mov.b64 %w0, 1;\n    mov.b64 %w1, 2;\n    mov.b64 %w2, -3;\n    "
                     "cvt.u64.u32 %w3, %r0;\n"
                     "    mov.f32 %f0, 0f3F800000;\n    mov.f32 %f1, 0f40490FDB;\n    mov.f32 %f2, "
                     "0fC2C80000;\n    cvt.rn.f32.u32 %f3, %r1;\n",
                     "    cvt.u32.u64 %r1, %w0;\n    xor.b32 %r0, %r0, %r1;\n    mov.b32 %r1, "
                     "%f0;\n    add.u32 %r0, %r0, %r1;\n    xor.b32 %r0, %r0, %r4;\n"
                     "    st.param.b32 [ret], %r0;\n    ret;\n");
    }
    size_t from = p->len;
    p->n_m = 1;
    print_body(p, p->body, 0, 0);
    print_around(
        p, from,
        ".visible .entry k(.param .u64 p_out, .param .u64 p_own, .param .u64 p_in, .param .u64 "
        "p_cells)\n",
        "    .shared .align 4 .b8 SLOTS[512];\n    .shared .align 4 .b8 SUMS[64];\n    .local "
        ".align 8 .b8 LOC[64];\n"
        "    .reg .b32 %i<8>;\n    .reg .b64 %j<4>;\n"
        "    mov.u32 %i0, %tid.x;\n    mov.u32 %i1, %ctaid.x;\n    mov.u32 %i2, %ntid.x;\n    "
        "mad.lo.u32 %i3, %i1, %i2, %i0;\n"
        "    ld.param.u64 %out, [p_out];\n    ld.param.u64 %own, [p_own];\n    ld.param.u64 %in, "
        "[p_in];\n    ld.param.u64 %cells, [p_cells];\n"
        "    mad.wide.u32 %out, %i3, 80, %out;\n    mad.wide.u32 %own, %i3, 64, %own;\n    mov.u64 "
        "%loc, LOC;\n    cvta.local.u64 %locg, %loc;\n"
        "    mov.u64 %j0, 0;\n    st.local.v2.u64 [LOC], {%j0, %j0};\n    st.local.v2.u64 "
        "[LOC+16], {%j0, %j0};\n"
        "    st.local.v2.u64 [LOC+32], {%j0, %j0};\n    st.local.v2.u64 [LOC+48], {%j0, %j0};\n"
        "    mov.u32 %i4, SLOTS;\n    shl.b32 %i5, %i0, 2;\n    add.u32 %slot, %i4, %i5;\n    "
        "cvt.u64.u32 %slotg, %slot;\n    cvta.shared.u64 %slotg, %slotg;\n    "
        "and.b32 %i6, %i5, 124;\n    add.u32 %i6, %i6, %i4;\n"
        "    mov.u32 %i7, 0;\n    st.shared.u32 [%i6], %i7;\n    st.shared.u32 [%i6+128], %i7;\n   "
        " st.shared.u32 [%i6+256], %i7;\n"
        "    st.shared.u32 [%i6+384], %i7;\n    and.b32 %i6, %i5, 60;\n    mov.u32 %i4, SUMS;\n    "
        "add.u32 %i6, %i6, %i4;\n    st.shared.u32 [%i6], %i7;\n    bar.sync 0;\n"
        "    activemask.b32 %m0;\n"
        "    mov.b32 %r0, %i0;\n    mov.b32 %r1, %i1;\n    mul.lo.u32 %r2, %i3, 0x9e3779b1;\n    "
        "and.b32 %r3, %i0, 31;\n"
        "    mad.wide.u32 %j1, %i0, 16, %in;\n    ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%j1];\n"
        "    cvt.u64.u32 %w0, %r2;\n    mov.b64 %w1, {%r4, %r5};\n    mov.b64 %w2, "
        "0x123456789abcdef;\n    cvt.s64.s32 %w3, %r6;\n"
        "    cvt.rn.f32.u32 %f0, %r0;\n    cvt.rn.f32.s32 %f1, %r7;\n    mov.f32 %f2, "
        "0f3F000000;\n    mov.b32 %f3, %r5;\n",
        "$OUT:\n"
        "    st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};\n    st.global.v4.u32 [%out+16], {%r4, "
        "%r5, %r6, %r7};\n"
        "    st.global.v2.u64 [%out+32], {%w0, %w1};\n    st.global.v2.u64 [%out+48], {%w2, "
        "%w3};\n    st.global.v4.f32 [%out+64], {%f0, %f1, %f2, %f3};\n"
        "    ret;\n");
    return p->text;
}

/* ---- evaluating ---- */
struct thread {
    uint32_t r[NR];
    uint64_t w[NW];
    uint32_t f[NF];
    uint8_t local[64], *own;
    bool left /* the loop */, done;
};
struct block {
    const struct rnd_program *p;
    unsigned n;
    struct thread *t;
    uint8_t slots[512];
    uint32_t sums[16];
    const struct rnd_memory *m;
};

static float as_float(uint32_t v)
{
    float f;
    memcpy(&f, &v, 4);
    return f;
}
static uint32_t float_bits(float f)
{
    uint32_t v;
    if (f != f)
        return 0x7fffffff;
    memcpy(&v, &f, 4);
    return v;
}
/* a - b towards zero: what is nearest is moved where it went too far. */
static uint32_t sub_rz(float a, float b)
{
    double exact = (double)a - (double)b;
    volatile float r = (float)exact;
    if (r != r || isinf(a) || isinf(b))
        return float_bits(r);
    double back = (double)r, rest;
    if (back != exact) {
        if (fabs(back) > fabs(exact))
            return float_bits(nextafterf(r, 0));
        return float_bits(r);
    }
    /* the difference of doubles may itself have been rounded; Knuth's sum tells which way */
    double bb = exact - (double)a, err = ((double)a - (exact - bb)) + (-(double)b - bb);
    rest = err;
    if ((rest > 0 && exact < 0) || (rest < 0 && exact > 0))
        return float_bits(nextafterf(r, 0));
    return float_bits(r);
}
static uint32_t least(uint32_t a, uint32_t b, bool most)
{
    float x = as_float(a), y = as_float(b);
    if (x != x && y != y)
        return 0x7fffffff;
    if (x != x)
        return b;
    if (y != y)
        return a;
    if (x == y) /* zeros of two signs */
        return most ? a & b : a | b;
    return (x < y) != most ? a : b;
}

static uint64_t eval(const struct thread *t, const struct expr *e)
{
    uint64_t k[3] = {0};
    enum type ty[3];
    if (e->op == E_REG)
        return e->type == T_I ? t->r[e->reg] : e->type == T_W ? t->w[e->reg] : t->f[e->reg];
    if (e->op == E_IMM)
        return e->imm;
    unsigned n = operands(e->op, ty);
    for (unsigned i = 0; i < n; i++)
        k[i] = eval(t, e->k[i]);
    uint32_t a = (uint32_t)k[0], b = (uint32_t)k[1], c = (uint32_t)k[2], r = 0;
    int32_t sa = (int32_t)a, sb = (int32_t)b, sc = (int32_t)c;
    uint64_t wa = k[0], wb = k[1], wc = k[2];
    float fa = as_float(a), fb = as_float(b), fc = as_float(c);
    switch (e->op) {
    case E_ADD:
        return (uint32_t)(a + b);
    case E_SUB:
        return (uint32_t)(a - b);
    case E_MUL:
        return (uint32_t)(a * b);
    case E_MULHI_U:
        return (uint64_t)a * b >> 32;
    case E_MULHI_S:
        return (uint32_t)((uint64_t)((int64_t)sa * sb) >> 32);
    case E_MAD:
        return (uint32_t)(a * b + c);
    case E_AND:
        return a & b;
    case E_OR:
        return a | b;
    case E_XOR:
        return a ^ b;
    case E_NOT:
        return (uint32_t)~a;
    case E_NEG:
        return (uint32_t)(0 - a);
    case E_ABS:
        return sa < 0 ? (uint32_t)(0 - a) : a;
    case E_SHL:
        return b > 31 ? 0 : (uint32_t)(a << b);
    case E_SHR_U:
        return b > 31 ? 0 : a >> b;
    case E_SHR_S:
        return (uint32_t)(sa >> (b > 31 ? 31 : b));
    case E_MIN_U:
        return a < b ? a : b;
    case E_MIN_S:
        return sa < sb ? a : b;
    case E_MAX_U:
        return a > b ? a : b;
    case E_MAX_S:
        return sa > sb ? a : b;
    case E_POPC:
        return (uint32_t)__builtin_popcount(a);
    case E_CLZ:
        return a ? (uint32_t)__builtin_clz(a) : 32;
    case E_BREV:
        for (unsigned i = 0; i < 32; i++)
            r |= (a >> i & 1) << (31 - i);
        return r;
    case E_BFE_U:
    case E_BFE_S: {
        unsigned pos = b & 255, len = c & 255, msb = 31;
        uint32_t sign =
            e->op == E_BFE_U || len == 0 ? 0 : a >> (pos + len - 1 < msb ? pos + len - 1 : msb) & 1;
        for (unsigned i = 0; i < 32; i++)
            r |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sign) << i;
        return r;
    }
    case E_BFI: {
        unsigned pos = c & 255;
        r = b;
        for (unsigned i = 0; i < 9 && pos + i < 32; i++)
            r = (r & ~(1u << (pos + i))) | (a >> i & 1) << (pos + i);
        return r;
    }
    case E_PRMT: {
        uint64_t both = (uint64_t)b << 32 | a;
        for (unsigned i = 0; i < 4; i++) {
            unsigned s = c >> (4 * i) & 15;
            uint32_t v = (uint32_t)(both >> (8 * (s & 7))) & 0xff;
            if (s & 8)
                v = v & 0x80 ? 0xff : 0;
            r |= v << (8 * i);
        }
        return r;
    }
    case E_LOP3:
        for (unsigned i = 0; i < 32; i++)
            r |= (uint32_t)(e->imm >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1)
                 << i;
        return r;
    case E_SELP:
        return sc < 0 ? a : b;
    case E_DIV_U:
        return a / (b | 1);
    case E_REM_U:
        return a % (b | 1);
    case E_SAD:
        return (uint32_t)(c + (a < b ? b - a : a - b));
    case E_SHF:
        return (uint32_t)(((uint64_t)b << 32 | a) << (c & 31) >> 32);
    case E_DP4A:
        for (unsigned i = 0; i < 4; i++)
            c += (uint32_t)((int8_t)(a >> (8 * i)) * (int32_t)(uint8_t)(b >> (8 * i)));
        return c;
    case E_MUL24:
        return (uint32_t)((uint64_t)(a & 0xffffff) * (b & 0xffffff));
    case E_U8:
        return (uint8_t)a;
    case E_S8:
        return (uint32_t)(int8_t)a;
    case E_U16:
        return (uint16_t)a;
    case E_S16:
        return (uint32_t)(int16_t)a;
    case E_ADD16:
        return (uint16_t)(a - b);
    case E_WIDE16:
        return (uint32_t)((int32_t)(int16_t)a * (int16_t)b);
    case E_SET:
        return sa < sb ? 0xffffffffu : 0;
    case E_SLCT:
        return sc >= 0 ? a : b;
    case E_LO:
        return (uint32_t)wa;
    case E_HI:
        return wa >> 32;
    case E_BITS:
        return a;
    case E_TRUNC:
        return fa != fa        ? 0
               : fa >= 0x1p31f ? 0x7fffffff
               : fa < -0x1p31f ? 0x80000000u
                               : (uint32_t)(int32_t)fa;
    case E_ADD64:
        return wa + wb;
    case E_SUB64:
        return wa - wb;
    case E_MUL64:
        return wa * wb;
    case E_MULHI64:
        return (uint64_t)((unsigned __int128)wa * wb >> 64);
    case E_XOR64:
        return wa ^ wb;
    case E_AND64:
        return wa & wb;
    case E_SHL64:
        return b > 63 ? 0 : wa << b;
    case E_SHR64_U:
        return b > 63 ? 0 : wa >> b;
    case E_SHR64_S:
        return (uint64_t)((int64_t)wa >> (b > 63 ? 63 : b));
    case E_FROM_U:
        return a;
    case E_FROM_S:
        return (uint64_t)(int64_t)sa;
    case E_WIDE_U:
        return (uint64_t)a * b;
    case E_WIDE_S:
        return (uint64_t)((int64_t)sa * sb);
    case E_MADWIDE:
        return (uint64_t)a * b + wc;
    case E_SELP64:
        return a ? wb : wc;
    case E_MIN64_S:
        return (int64_t)wa < (int64_t)wb ? wa : wb;
    /* the sum of the low words and the high words with its carry, changing places */
    case E_CARRY: {
        uint64_t low = (uint64_t)(uint32_t)wa + (uint32_t)wb;
        uint32_t high = (uint32_t)(wa >> 32) + (uint32_t)(wb >> 32) + (uint32_t)(low >> 32);
        return low << 32 | high;
    }
    case E_FADD: {
        volatile float s = fa + fb;
        return float_bits(s);
    }
    case E_FSUB:
        return sub_rz(fa, fb);
    case E_FMUL: {
        volatile float s = fa * fb;
        return float_bits(s);
    }
    case E_FMA:
        return float_bits(fmaf(fa, fb, fc));
    case E_FMIN:
        return least(a, b, false);
    case E_FMAX:
        return least(a, b, true);
    case E_F_U:
        return float_bits((float)a);
    case E_F_S:
        return float_bits((float)sa);
    case E_FBITS:
        return a;
    default:
        abort();
    }
}

static bool holds(const struct thread *t, const struct cond *c)
{
    uint32_t a = (uint32_t)eval(t, c->a), b = (uint32_t)eval(t, c->b);
    int64_t x = c->how < 6 ? (int64_t)a : (int32_t)a, y = c->how < 6 ? (int64_t)b : (int32_t)b;
    switch (c->how % 6) {
    case 0:
        return x == y;
    case 1:
        return x != y;
    case 2:
        return x < y;
    case 3:
        return x <= y;
    case 4:
        return x > y;
    default:
        return x >= y;
    }
}

static void run(struct block *b, const struct stmt *s, const bool *here);

static uint32_t call(const struct rnd_program *p, unsigned f, uint32_t x, uint32_t y)
{
    struct thread t = {.r = {x, y, 5, x, 0, y, 77, 0xffffffff},
                       .w = {1, 2, (uint64_t)-3, x},
                       .f = {0x3f800000, 0x40490fdb, 0xc2c80000, float_bits((float)y)}};
    struct block b = {.p = p, .n = 1, .t = &t};
    bool here[RND_MAX_THREADS] = {true};
    run(&b, p->func[f], here);
    return ((t.r[0] ^ (uint32_t)t.w[0]) + t.f[0]) ^ t.r[4];
}

static uint32_t load(const uint8_t *from, unsigned sub)
{
    uint32_t v = 0;
    memcpy(&v, from, loads[sub % 6].bytes);
    if (loads[sub % 6].is_signed)
        v = loads[sub % 6].bytes == 1 ? (uint32_t)(int8_t)v : (uint32_t)(int16_t)v;
    return v;
}

static uint32_t own_atom(unsigned sub, uint32_t old, uint32_t v)
{
    switch (sub % 4) {
    case 0:
        return old + v;
    case 1:
        return v;
    case 2:
        return (int32_t)old > (int32_t)v ? old : v;
    default:
        return old >= v ? 0 : old + 1;
    }
}

static void run_thread(struct block *b, struct thread *t, const struct stmt *s)
{
    unsigned bytes = loads[s->sub % 6].bytes;
    uint32_t at = (uint32_t)eval(t, s->b), a = s->a ? (uint32_t)eval(t, s->a) : 0, old;
    switch (s->what) {
    case S_SET:
        if (s->guarded && holds(t, &s->c) == (s->sub & 1))
            break;
        if (s->type == T_I)
            t->r[s->reg] = a;
        else if (s->type == T_W)
            t->w[s->reg] = eval(t, s->a);
        else
            t->f[s->reg] = a;
        break;
    case S_BREAK:
        t->left = holds(t, &s->c);
        break;
    case S_EXIT:
        t->done = holds(t, &s->c);
        break;
    case S_LOAD:
        t->r[s->reg] = load(b->m->in + (at & (RND_IN_BYTES - 1) & ~(bytes - 1)), s->sub);
        break;
    case S_LOAD_WIDE:
        memcpy(&t->w[s->reg % NW], b->m->in + (at & (RND_IN_BYTES - 8)), 8);
        break;
    case S_LOAD_PAIR:
        at = (at & (RND_IN_BYTES - 16)) + 8;
        memcpy(&t->r[s->reg], b->m->in + at, 4);
        memcpy(&t->r[s->reg2], b->m->in + at + 4, 4);
        break;
    case S_STORE:
        memcpy(t->own + (at & (RND_OWN_BYTES - 1) & ~(bytes - 1)), &a, bytes);
        break;
    case S_OWN:
        t->r[s->reg] = load(t->own + (at & (RND_OWN_BYTES - 1) & ~(bytes - 1)), s->sub);
        break;
    case S_OWN_ATOM:
        at &= RND_OWN_BYTES - 4;
        memcpy(&old, t->own + at, 4);
        a = own_atom(s->sub, old, a);
        memcpy(t->own + at, &a, 4);
        t->r[s->reg] = old;
        break;
    case S_LOCAL_STORE:
        memcpy(t->local + (at & 63 & ~(bytes - 1)), &a, bytes);
        break;
    case S_LOCAL_LOAD:
        t->r[s->reg] = load(t->local + (at & 63 & ~(bytes - 1)), s->sub);
        break;
    case S_SLOT: {
        uint8_t *slot = b->slots + 4 * (t - b->t);
        memcpy(&t->r[s->reg], slot, 4);
        memcpy(slot, &a, 4);
        break;
    }
    case S_OWN_LOAD_WIDE:
        memcpy(&t->w[s->reg % NW], t->own + (at & (RND_OWN_BYTES - 16)), 8);
        memcpy(&t->w[(s->reg + 1) % NW], t->own + (at & (RND_OWN_BYTES - 16)) + 8, 8);
        break;
    case S_OWN_STORE_WIDE: {
        uint32_t v[4] = {t->r[s->reg], t->r[s->reg2], t->r[0], t->r[7]};
        memcpy(t->own + (at & (RND_OWN_BYTES - 16)), v, 16);
        break;
    }
    case S_OWN_ATOM_WIDE: {
        uint64_t was, v = t->w[s->reg2 % NW], now;
        memcpy(&was, t->own + (at & (RND_OWN_BYTES - 8)), 8);
        now = s->sub % 4 == 0   ? was + v
              : s->sub % 4 == 1 ? v
              : s->sub % 4 == 2 ? ((int64_t)was > (int64_t)v ? was : v)
              : was == v        ? t->w[0]
                                : was;
        memcpy(t->own + (at & (RND_OWN_BYTES - 8)), &now, 8);
        t->w[s->reg % NW] = was;
        break;
    }
    case S_RED_SHARED:
        b->sums[(at & 60) / 4] += a;
        break;
    case S_RED_GLOBAL: {
        uint32_t *cell = &b->m->cells[16 * (s->sub % 4) + (at & 60) / 4];
        switch (s->sub % 4) {
        case 0:
            *cell += a;
            break;
        case 1:
            *cell ^= a;
            break;
        case 2:
            *cell = a < *cell ? a : *cell;
            break;
        default:
            *cell = (int32_t)a > (int32_t)*cell ? a : *cell;
            break;
        }
        break;
    }
    case S_CALL:
        t->r[s->reg] = call(b->p, s->sub % N_FUNCS, a, at);
        break;
    default:
        abort();
    }
}

/* What lanes of one warp do together; here: of the 32. */
static void run_warp(const struct stmt *s, struct thread *t, unsigned n, const bool *here)
{
    uint32_t a[32], at[32], members = 0, yes = 0, sum = 0, result[32], last[32] = {0};
    for (unsigned i = 0; i < n; i++) {
        if (!here[i])
            continue;
        a[i] = (uint32_t)eval(&t[i], s->a);
        at[i] = (uint32_t)eval(&t[i], s->b);
        members |= 1u << i;
        bool holds_here = holds(&t[i], &s->c);
        if (s->what == S_CALL_WARP) {
            uint32_t x = holds_here ? a[i] : at[i], y = holds_here ? at[i] : a[i];
            a[i] = warp_word(x);
            at[i] = a[i] ^ y;
            sum += a[i];
            last[i] = x ^ 0x55;
            holds_here = at[i] & 1;
        }
        yes |= (uint32_t)holds_here << i;
    }
    for (unsigned i = 0; i < n; i++) {
        if (!here[i])
            continue;
        int from;
        uint32_t v;
        switch (s->what) {
        case S_SHFL:
            v = at[i] & 31;
            from = s->sub % 4 == 0   ? (int)v
                   : s->sub % 4 == 1 ? (int)(i ^ v)
                   : s->sub % 4 == 2 ? (int)i - (int)v
                                     : (int)(i + v);
            result[i] = from >= 0 && from < 32 && (members >> from & 1) ? a[from] : a[i];
            break;
        case S_VOTE:
            result[i] = s->sub % 3 == 0 ? yes : s->sub % 3 == 1 ? yes != 0 : yes == members;
            break;
        case S_CALL_WARP:
            result[i] = (sum ^ at[i] << 1) + yes + a[i] + last[i];
            break;
        case S_MATCH:
            result[i] = 0;
            for (unsigned j = 0; j < n; j++)
                if ((members >> j & 1) && ((a[j] ^ a[i]) & 3) == 0)
                    result[i] |= 1u << j;
            break;
        default:
            v = s->sub % 4 == 0 || s->sub % 4 == 3 ? 0 : s->sub % 4 == 1 ? 0xffffffff : 0x80000000;
            for (unsigned j = 0; j < n; j++) {
                if (!(members >> j & 1))
                    continue;
                switch (s->sub % 4) {
                case 0:
                    v += a[j];
                    break;
                case 1:
                    v = a[j] < v ? a[j] : v;
                    break;
                case 2:
                    v = (int32_t)a[j] > (int32_t)v ? a[j] : v;
                    break;
                default:
                    v ^= a[j];
                    break;
                }
            }
            result[i] = v;
        }
    }
    for (unsigned i = 0; i < n; i++)
        if (here[i] && s->what != S_WARP_BAR)
            t[i].r[s->reg] = result[i];
}

static void run_block(struct block *b, const struct stmt *s, const bool *here)
{
    uint32_t yes = 0, at[RND_MAX_THREADS];
    for (unsigned i = 0; i < b->n; i++) {
        if (!here[i])
            continue;
        at[i] = (uint32_t)eval(&b->t[i], s->b);
        bool holds_here = holds(&b->t[i], &s->c);
        uint32_t a = (uint32_t)eval(&b->t[i], s->a);
        if (s->what == S_CALL_BAR) {
            uint32_t x = holds_here ? a : at[i], y = holds_here ? at[i] : a;
            at[i] = (bar_word(x, y) ^ x) + (x ^ 0x55);
            holds_here = bar_word(x, y) & 1;
        }
        yes += holds_here;
        if (s->what == S_SHARED || s->what == S_SHARED_BYTE)
            memcpy(b->slots + 4 * i, &a, 4);
    }
    for (unsigned i = 0; i < b->n; i++) {
        if (!here[i])
            continue;
        uint32_t *r = &b->t[i].r[s->reg];
        switch (s->what) {
        case S_SHARED:
            memcpy(r, b->slots + (at[i] & 508), 4);
            break;
        case S_SHARED_BYTE:
            *r = (uint32_t)(int8_t)b->slots[at[i] & 511];
            break;
        case S_READ_SUMS:
            *r = b->sums[(at[i] & 60) / 4];
            break;
        case S_CALL_BAR:
            *r = yes + at[i];
            break;
        default:
            *r = yes;
            break;
        }
    }
}

static bool still(const struct block *b, const bool *here, bool *ret)
{
    bool any = false;
    for (unsigned i = 0; i < b->n; i++)
        any |= ret[i] = here[i] && !b->t[i].left && !b->t[i].done;
    return any;
}

static void run_loop(struct block *b, const struct stmt *s, const bool *here)
{
    unsigned times[RND_MAX_THREADS] = {0};
    bool in[RND_MAX_THREADS];
    for (unsigned i = 0; i < b->n; i++)
        if (here[i])
            times[i] = s->guarded ? s->sub % 4 : (unsigned)eval(&b->t[i], s->b) & 7;
    for (unsigned k = 0; still(b, here, in); k++) {
        bool any = false;
        for (unsigned i = 0; i < b->n; i++)
            any |= in[i] = in[i] && k < times[i];
        if (!any)
            break;
        run(b, s->body[0], in);
    }
    for (unsigned i = 0; i < b->n; i++)
        if (here[i])
            b->t[i].left = false;
}

static void run(struct block *b, const struct stmt *s, const bool *start)
{
    bool here[RND_MAX_THREADS], in[4][RND_MAX_THREADS];
    for (; s; s = s->next) {
        if (!still(b, start, here))
            return;
        if (s->what == S_LOOP) {
            run_loop(b, s, here);
        } else if (s->what == S_IF || s->what == S_SWITCH) {
            unsigned n = s->what == S_IF ? 2 : 4;
            for (unsigned i = 0; i < b->n; i++) {
                unsigned way = !here[i] ? 4
                               : n == 2 ? !holds(&b->t[i], &s->c)
                                        : (unsigned)eval(&b->t[i], s->b) & 3;
                for (unsigned k = 0; k < n; k++)
                    in[k][i] = k == way;
            }
            for (unsigned k = 0; k < n; k++)
                run(b, s->body[k], in[k]);
        } else if (s->what <= S_FREE_LAST) {
            for (unsigned i = 0; i < b->n; i++)
                if (here[i])
                    run_thread(b, &b->t[i], s);
        } else if (s->what <= S_WARP_LAST) {
            for (unsigned w = 0; w < b->n; w += 32)
                run_warp(s, b->t + w, b->n - w < 32 ? b->n - w : 32, here + w);
        } else {
            run_block(b, s, here);
        }
    }
}

void rnd_evaluate(const struct rnd_program *p, unsigned blocks, unsigned threads,
                  const struct rnd_memory *m)
{
    struct thread *t = calloc(threads, sizeof(*t));
    if (!t)
        abort();
    for (unsigned c = 0; c < blocks; c++) {
        struct block b = {.p = p, .n = threads, .t = t, .m = m};
        bool here[RND_MAX_THREADS];
        for (unsigned i = 0; i < threads; i++) {
            uint32_t g = c * threads + i, in[4];
            memcpy(in, m->in + 16 * i, 16);
            t[i] = (struct thread){
                .r = {i, c, g * 0x9e3779b1u, i & 31, in[0], in[1], in[2], in[3]},
                .w = {g * 0x9e3779b1u, in[0] | (uint64_t)in[1] << 32, 0x123456789abcdef,
                      (uint64_t)(int64_t)(int32_t)in[2]},
                .f = {float_bits((float)i), float_bits((float)(int32_t)in[3]), 0x3f000000, in[1]},
                .own = m->own + (size_t)g * RND_OWN_BYTES};
            here[i] = true;
        }
        run(&b, p->body, here);
        for (unsigned i = 0; i < threads; i++) {
            uint8_t *out = m->out + (size_t)(c * threads + i) * RND_OUT_BYTES;
            memcpy(out, t[i].r, 32);
            memcpy(out + 32, t[i].w, 32);
            memcpy(out + 64, t[i].f, 16);
        }
    }
    free(t);
}
