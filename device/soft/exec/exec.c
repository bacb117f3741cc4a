// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/exec.c - runs blocks: warps in turn, diverged lanes of a warp, barriers, calls,
 * faults.
 *
 * A warp is a set of splits: lanes that stand at the same micro-op. One split runs at a time in the
 * vector core; the others wait. Which one: the deepest in calls, and there the one at the lowest
 * micro-op, because blocks are laid out so that the lanes that are behind catch up (decode_flow.c).
 * A running split stops where another one stands (ctx.limit), and splits at the same place become
 * one. Speed rests on this order, progress does not: a split that has run long, or that keeps doing
 * what waiting loops do, lets the one that waited longest run for a while, so a lane that spins on
 * another lane's doing ends (forward progress of sm_70 and later).
 * Invariants: masks of a warp's splits are disjoint and, with the running one, make up its live
 * lanes; all lanes of a split have the same call depth; a lane's return addresses are its own
 * (ws_warp.rets). Warps of a block take turns of QUANTUM micro-ops' worth of PTX instructions. A
 * block in which no warp can run, and not all have ended, is deadlocked: that is a fault. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/soft/decode/priv.h"
#include "device/soft/exec/tex.h"
#include "device/space.h"

enum {
    QUANTUM = 2048,   /* warp instructions of a turn */
    ROTATE = 1 << 15, /* instructions after which the split that waited longest gets a turn */
    /* Instructions of that turn. Calls and branches don't end it, so that a lane that holds a lock
     * gets to free it. */
    FAVOUR = 1 << 10,
    RECURSION_MAX = 8192,
    RECURSION_LOCAL_BYTES = 65536,
};

/* ---- vector builds ---- */
const struct ws_isa *ws_isa_pick(void)
{
    static const struct ws_isa *const all[] = {&ws_isa_avx512, &ws_isa_avx2, &ws_isa_sse2};
    const char *want = getenv("WS_SOFT_ISA");
    for (size_t k = 0; k < WS_ARRAY_SIZE(all); k++)
        if (want && strcmp(want, all[k]->name) == 0 && all[k]->supported())
            return all[k];
    for (size_t k = 0; k < WS_ARRAY_SIZE(all); k++)
        if (all[k]->supported())
            return all[k];
    return &ws_isa_sse2;
}

const char *ws_exec_isa(void)
{
    return ws_isa_pick()->name;
}

/* ---- code ---- */
/* A bound from below of what ptxas would use: the most registers live at once in the order of the
 * text, where a register that a loop reads is live in all of the loop. 32-bit units, predicates not
 * counted. An estimate: ptxas reorders and shares. */
static uint32_t estimate_regs(const struct ws_ptx_func *f)
{
    uint32_t *first = ws_alloc_array(f->n_regs + 1, sizeof(*first)),
             *last = ws_alloc_array(f->n_regs + 1, sizeof(*last));
    int32_t *delta = ws_alloc_array(f->n_insns + 2, sizeof(*delta));
    uint32_t max = 0;
    uint64_t steps = 0;
    if (!first || !last || !delta)
        goto out;
    memset(first, 0xff, (f->n_regs + 1) * sizeof(*first));
    for (uint32_t k = 0; k < f->n_insns; k++)
        for (unsigned n = 0; n < f->insns[k].n_operands; n++) {
            const struct ws_ptx_operand *o = &f->insns[k].operands[n];
            for (unsigned j = 0; j < (o->n ? o->n : 1u); j++) {
                int32_t r = o->n ? o->v[j].reg : o->reg;
                if (r < 0 || (uint32_t)r >= f->n_regs)
                    continue;
                first[r] = WS_MIN(first[r], k);
                last[r] = k;
            }
        }
    for (uint32_t k = 0; k < f->n_insns; k++) { /* loops */
        const struct ws_ptx_insn *i = &f->insns[k];
        if (i->op != WS_OP_BRA)
            continue;
        uint32_t head = f->labels[i->operands[0].label].insn;
        if ((steps += f->n_regs) > 100000000) /* a rougher estimate will do */
            break;
        for (uint32_t r = 0; head <= k && r < f->n_regs; r++)
            if (first[r] < head && last[r] >= head && last[r] < k)
                last[r] = k;
    }
    for (uint32_t r = 0; r < f->n_regs; r++) {
        if (first[r] == ~0u)
            continue;
        unsigned bytes = f->regs[r].type == WS_T_PRED ? 0 : ws_ptx_type_bytes(f->regs[r].type);
        delta[first[r]] += (int32_t)(bytes + 3) / 4;
        delta[last[r] + 1] -= (int32_t)(bytes + 3) / 4;
    }
    int32_t live = 0;
    for (uint32_t k = 0; k < f->n_insns; k++) {
        live += delta[k];
        max = WS_MAX(max, (uint32_t)live);
    }
out:
    free(first);
    free(last);
    free(delta);
    max = WS_ALIGN_UP(max + 8, 8u);
    if (f->maxnreg)
        max = WS_MIN(max, f->maxnreg);
    return WS_MIN(WS_MAX(max, 16u), 255u);
}

static uint32_t max_threads(const struct ws_ptx_func *f)
{
    const uint32_t *n = f->reqntid[0] ? f->reqntid : f->maxntid;
    if (!n[0])
        return 1024;
    uint64_t all = (uint64_t)n[0] * WS_MAX(n[1], 1u) * WS_MAX(n[2], 1u);
    return (uint32_t)WS_MIN(all, UINT64_C(1024));
}

static void describe(const struct ws_ptx_module *m, const struct ws_ptx_func *f,
                     const struct ws_exec_image *img, struct ws_kernel_info *ret)
{
    *ret = ws_kernel_info_of(m, f);
    ret->static_shared_bytes = img->shared_bytes;
    ret->local_bytes = img->local_bytes;
    ret->n_regs = estimate_regs(f);
    ret->max_threads_per_block = max_threads(f);
    ret->uses_heap = img->uses_heap;
    for (uint32_t k = 0; k < m->n_vars; k++)
        if (m->vars[k].space == WS_SP_CONST)
            ret->const_bytes += (uint32_t)m->vars[k].size_bytes;
}

/* A kernel that can't run: its name and parameters, and why. */
static int describe_unsupported(struct ws_code *c, const struct ws_ptx_func *f, int code,
                                const char *reason, struct ws_kernel_info *ret)
{
    char *why = ws_arena_strndup(&c->arena, reason, strlen(reason));
    if (!why)
        return ws_raise(-ENOMEM);
    *ret = ws_kernel_info_of(c->m, f);
    ret->unsupported = why;
    ret->unsupported_code = code;
    return 0;
}

static int decode(struct ws_code **ret, const struct ws_ptx_module *m, struct ws_diags *diags,
                  const struct ws_audit *audit)
{
    struct ws_code *c = ws_alloc(sizeof(*c));
    char reason[256];
    int r = 0;
    if (!c)
        return ws_raise(-ENOMEM);
    c->m = m;
    c->isa = ws_isa_pick();
    c->audit = audit;
    c->infos = ws_arena_array(&c->arena, m->n_funcs + 1, sizeof(*c->infos));
    c->images = ws_arena_array(&c->arena, m->n_funcs + 1, sizeof(*c->images));
    if (!c->infos || !c->images) {
        ws_code_free(c);
        return ws_raise(-ENOMEM);
    }
    for (uint32_t k = 0; k < m->n_funcs; k++) {
        const struct ws_ptx_func *f = &m->funcs[k];
        if (!f->is_entry || f->is_decl)
            continue;
        r = ws_dec_image(c, k, diags, &c->images[c->n_kernels], reason);
        if (r > 0)
            r = describe_unsupported(c, f, r, reason, &c->infos[c->n_kernels]);
        else if (r == 0)
            describe(m, f, c->images[c->n_kernels], &c->infos[c->n_kernels]);
        if (r < 0)
            break;
        c->n_kernels++;
    }
    if (r != 0) {
        ws_code_free(c);
        return ws_forward(r);
    }
    *ret = c;
    return 0;
}

int ws_code_new(struct ws_code **ret, const struct ws_ptx_module *m, struct ws_diags *diags)
{
    return decode(ret, m, diags, NULL);
}

int ws_code_audit(const struct ws_ptx_module *m, ws_code_lack *each, void *arg)
{
    const struct ws_audit audit = {each, arg};
    struct ws_code *c = NULL;
    int r = decode(&c, m, NULL, &audit);
    ws_code_free(c);
    return WS_MIN(r, 0);
}

struct ws_code *ws_code_free(struct ws_code *c)
{
    if (c) {
        ws_arena_deinit(&c->arena);
        free(c);
    }
    return NULL;
}

const struct ws_kernel_info *ws_code_kernels(const struct ws_code *c, uint32_t *ret_n)
{
    *ret_n = c->n_kernels;
    return c->infos;
}

/* ---- faults ---- */
const struct ws_uop *ws_exec_fault(struct ws_core_ctx *c, const struct ws_uop *u,
                                   enum ws_dev_error e, unsigned lane, uint64_t addr,
                                   const char *what)
{
    struct ws_blockrun *b = c->b;
    struct ws_grid *g = b->g;
    c->stop = WS_STOP_FAULT;
    c->u = u;
    c->enter = NULL;
    struct ws_grid_part *part = b->part;
    if (atomic_exchange(part ? &part->fault_claimed : &g->fault_claimed, 1))
        return NULL;
    char *text = part ? part->text : g->text;
    const uint32_t *grid = part ? part->grid : g->grid, *block = part ? part->block : g->block;
    uint64_t number = part ? b->number : b->linear;
    const struct ws_ptx_module *m = g->code->m;
    const struct ws_srcref *s = &b->img->srcs[u->src];
    const struct ws_ptx_func *f = &m->funcs[s->func];
    uint32_t t = c->w->index * 32 + (lane & 31), bx = block[0], by = block[1];
    char insn[80] = "", where[112];
    if (s->insn < f->n_insns)
        ws_ptx_insn_text(m, f, &f->insns[s->insn], insn, sizeof(insn));
    if (e == WS_DEV_E_ILLEGAL_ADDRESS || e == WS_DEV_E_MISALIGNED)
        snprintf(where, sizeof(where), "address 0x%" PRIx64 "%s%s%s", addr, what ? " (" : "",
                 what ? what : "", what ? ")" : "");
    else
        snprintf(where, sizeof(where), "%s", what ? what : ws_dev_error_name(e));
    int n =
        snprintf(text, sizeof(g->text),
                 "%s: kernel %.48s block (%u,%u,%u) thread (%u,%u,%u) %s, PTX line %u: %s",
                 e == WS_DEV_E_ASSERT            ? "assert"
                 : e == WS_DEV_E_MISALIGNED      ? "misaligned address"
                 : e == WS_DEV_E_ILLEGAL_ADDRESS ? "illegal address"
                                                 : "fault",
                 part ? part->kernel : m->funcs[b->img->func].name, (uint32_t)(number % grid[0]),
                 (uint32_t)(number / grid[0] % grid[1]), (uint32_t)(number / grid[0] / grid[1]),
                 t % bx, t / bx % by, t / bx / by, what && e == WS_DEV_E_ASSERT ? what : where,
                 s->insn < f->n_insns ? f->insns[s->insn].line : 0, insn);
    if (n < 0)
        text[0] = 0;
    int none = 0;
    atomic_compare_exchange_strong(part ? &part->stop : &g->stop, &none, (int)e);
    return NULL;
}

/* ---- services for the cores ---- */
uint64_t ws_exec_clock(struct ws_core_ctx *c)
{
    struct ws_blockrun *b = c->b;
    /* instructions are counted when their segment is entered; each reading counts again, so two of
     * them differ */
    uint64_t own =
        b->n_insns + (uint64_t)(b->quantum_start - c->budget - c->penalty) + ++b->n_clock_reads;
    return own + (b->g->clock ? b->g->clock(b->g->clock_arg) : 0);
}

uint64_t ws_exec_globaltimer(struct ws_core_ctx *c)
{
    const struct ws_grid *g = c->b->g;
    return g->globaltimer ? g->globaltimer(g->clock_arg) : ws_clock_ns();
}

const struct ws_mapping *ws_exec_map(struct ws_core_ctx *c, uint64_t va, uint64_t bytes)
{
    struct ws_mapping m;
    if (WS_WINDOW_OF(va))
        return NULL;
    for (uint32_t k = 0; k < WS_N_MAPS; k++)
        if (va - c->maps[k].va < c->maps[k].bytes &&
            c->maps[k].bytes - (va - c->maps[k].va) >= bytes)
            return &c->maps[k];
    uint32_t who = c->b->g->who;
    who = who ? who : WS_ACCESS_ALL;
    if (!ws_space_find_as(ws_exec_own_space(c->b), who, va, bytes, &m) &&
        !(c->b->part && c->b->g->common && ws_space_find_as(c->b->g->common, who, va, bytes, &m)))
        return NULL;
    struct ws_mapping *slot = &c->maps[c->n_maps++ & (WS_N_MAPS - 1)];
    *slot = m;
    return slot;
}

uint8_t *ws_exec_lane_ptr(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane,
                          unsigned space, uint64_t va, uint64_t bytes, bool store)
{
    uint64_t window = WS_WINDOW_OF(va), off = va & ~WS_WINDOW_OF(UINT64_MAX);
    if (space == WS_SP_SHARED || (space == WS_SP_GENERIC && window == WS_WINDOW_SHARED)) {
        if ((!window || window == WS_WINDOW_SHARED) && off < c->shared_bytes &&
            c->shared_bytes - off >= bytes)
            return c->shared + off;
    } else if (space == WS_SP_GENERIC && window == WS_WINDOW_LOCAL) {
        if (off < c->local_stride && c->local_stride - off >= bytes)
            return c->local + lane * c->local_stride + off;
    } else {
        const struct ws_mapping *m = ws_exec_map(c, va, bytes);
        if (m && !(store && m->flags & WS_MAP_READONLY))
            return m->host + (va - m->va);
    }
    ws_exec_fault(c, u, WS_DEV_E_ILLEGAL_ADDRESS, lane, va, NULL);
    return NULL;
}

void ws_exec_split(struct ws_core_ctx *c, uint32_t mask, const struct ws_seg *seg, uint32_t depth)
{
    struct ws_warp *w = c->w;
    if (mask == 0)
        return;
    w->splits[w->n_splits++] = (struct ws_split){
        .u = seg->first, .enter = seg, .mask = mask, .depth = depth, .last_run = w->stamp};
    if (depth == c->depth && seg->first < c->limit)
        c->limit = seg->first;
}

bool ws_exec_call(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_seg *to,
                  const struct ws_seg *cont)
{
    struct ws_blockrun *b = c->b;
    uint32_t *fp = (uint32_t *)(void *)(c->regs + b->img->fp_off), frame = (uint32_t)u->e;
    const uint32_t *sp =
        b->img->sp_off ? (const uint32_t *)(const void *)(c->regs + b->img->sp_off) : NULL;
    if (c->depth + 1 >= b->depth_max) {
        ws_exec_fault(c, u, WS_DEV_E_STACK_OVERFLOW, (unsigned)__builtin_ctz(c->active), 0,
                      "call too deep");
        return false;
    }
    struct ws_retaddr *r = &c->w->rets[(size_t)c->depth * 32];
    for (uint32_t m = c->active; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        if ((uint64_t)fp[i] + frame + u->x > (sp ? sp[i] : c->local_stride)) {
            ws_exec_fault(c, u, WS_DEV_E_STACK_OVERFLOW, i, 0, "no local memory left for a call");
            return false;
        }
        r[i] = (struct ws_retaddr){.to = cont, .frame_bytes = frame};
        fp[i] += frame;
    }
    c->depth++;
    if (c->w->n_splits == 0)
        return true;
    c->stop = WS_STOP_RESCHED;
    c->u = to->first;
    c->enter = to;
    return false;
}

const struct ws_seg *ws_exec_ret(struct ws_core_ctx *c, const struct ws_uop *u, uint32_t m)
{
    uint32_t *fp = (uint32_t *)(void *)(c->regs + c->b->img->fp_off), rest = c->active & ~m,
             keep = 0;
    const struct ws_retaddr *r = &c->w->rets[(size_t)(c->depth - 1) * 32];
    const struct ws_seg *to = r[__builtin_ctz(m)].to;
    if (rest)
        ws_exec_split(c, rest, u->fall, c->depth);
    c->depth--;
    for (bool first = true; m; first = false) {
        const struct ws_seg *t = r[__builtin_ctz(m)].to;
        uint32_t same = 0;
        for (uint32_t k = m; k; k &= k - 1) {
            unsigned i = (unsigned)__builtin_ctz(k);
            if (r[i].to != t)
                continue;
            same |= 1u << i;
            fp[i] -= r[i].frame_bytes;
        }
        m &= ~same;
        if (first)
            keep = same;
        else
            ws_exec_split(c, same, t, c->depth);
    }
    c->active = keep;
    if (c->w->n_splits == 0)
        return to;
    c->stop = WS_STOP_RESCHED;
    c->u = to->first;
    c->enter = to;
    return NULL;
}

/* ---- barriers ---- */
static void bar_result(struct ws_blockrun *b, struct ws_warp *w, const struct ws_split *s,
                       const struct ws_barrier *bar)
{
    uint32_t sub = s->u->x & 0xff, *d = (uint32_t *)(void *)(w->regs + s->u->d);
    if (sub == WS_SUB_NONE)
        return;
    if (s->u->x >> 9 & 1) {
        bool v = sub == WS_SUB_AND ? bar->red_and : bar->red_or;
        *d = (*d & ~s->mask) | (v ? s->mask : 0);
        return;
    }
    for (uint32_t m = s->mask; m; m &= m - 1)
        d[__builtin_ctz(m)] = bar->red_popc;
}

/* Opens barrier id if all it waits for are there. */
static void bar_check(struct ws_blockrun *b, uint32_t id)
{
    struct ws_barrier *bar = &b->bars[id];
    if (!bar->warps)
        return;
    if (bar->expected == 0) {
        if (bar->arrived < b->n_live)
            return;
    } else { /* lanes that a warp does not have count as there, as the hardware counts whole warps */
        uint32_t n = bar->arrived;
        for (uint32_t k = bar->warps; k; k &= k - 1) {
            uint32_t w = (uint32_t)__builtin_ctz(k);
            n += (uint32_t)__builtin_popcount(~b->warps[w].live & ~bar->lanes[w]);
        }
        if (n < bar->expected)
            return;
    }
    for (uint32_t k = bar->warps; k; k &= k - 1) {
        struct ws_warp *w = &b->warps[__builtin_ctz(k)];
        for (uint32_t n = 0; n < w->n_splits; n++) {
            struct ws_split *s = &w->splits[n];
            if (s->state != WS_SPLIT_BAR || s->bar_id != id)
                continue;
            bar_result(b, w, s, bar);
            s->state = WS_SPLIT_RUN;
            s->u++;
            s->spent = 0;
        }
    }
    *bar = (struct ws_barrier){.red_and = true};
    b->bars_used &= ~(1u << id);
}

void ws_exec_exit(struct ws_core_ctx *c, uint32_t mask)
{
    struct ws_warp *w = c->w;
    struct ws_blockrun *b = c->b;
    w->live &= ~mask;
    b->n_live -= (uint32_t)__builtin_popcount(mask);
    if (!w->live)
        b->n_done_warps++;
    for (uint32_t k = 0; k < w->n_splits; k++) /* who waits for these lanes need not any more */
        if (w->splits[k].state == WS_SPLIT_WARPSYNC)
            w->splits[k].state = WS_SPLIT_RUN;
    for (uint32_t k = b->bars_used; k; k &= k - 1)
        bar_check(b, (uint32_t)__builtin_ctz(k));
}

/* The split stands at a barrier micro-op. Return: false after a fault. */
static bool bar_arrive(struct ws_blockrun *b, struct ws_split *s)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_warp *w = c->w;
    const struct ws_uop *u = s->u;
    unsigned lane = (unsigned)__builtin_ctz(s->mask);
    const uint32_t *ids = (const uint32_t *)(const void *)(w->regs + u->a);
    uint32_t id = ids[lane],
             count = u->b ? ((const uint32_t *)(const void *)(w->regs + u->b))[lane] : 0,
             others = 0, differ = 0;
    if (id >= WS_N_BARRIERS - (u->x & WS_X_CLUSTER ? 0u : 1u) ||
        (u->b && (count == 0 || count % 32 || count > 32 * b->n_warps))) {
        ws_exec_fault(c, u, WS_DEV_E_ILLEGAL_INSTRUCTION, lane, 0,
                      "barrier number or thread count out of range");
        return false;
    }
    for (unsigned i = 0; i < 32; i++)
        differ |= ids[i] ^ id;
    for (uint32_t m = differ ? s->mask : 0; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        others |= (uint32_t)(ids[i] != id) << i;
    }
    struct ws_barrier *bar = &b->bars[id];
    if (others) { /* they come here again by themselves */
        w->splits[w->n_splits] = *s;
        w->splits[w->n_splits++].mask = others;
        s->mask &= ~others;
    }
    uint32_t p =
        (*(const uint32_t *)(const void *)(w->regs + u->c) ^ (u->x >> 10 & 1 ? ~0u : 0)) & s->mask;
    b->bars_used |= 1u << id;
    bar->warps |= 1u << w->index;
    bar->lanes[w->index] |= s->mask;
    bar->arrived += (uint32_t)__builtin_popcount(s->mask);
    bar->expected = WS_MAX(bar->expected, count);
    bar->red_popc += (uint32_t)__builtin_popcount(p);
    bar->red_and &= p == s->mask;
    bar->red_or |= p != 0;
    c->work->n_barriers++;
    if (u->x >> 8 & 1) {
        s->u++;
    } else {
        s->state = WS_SPLIT_BAR;
        s->bar_id = (uint8_t)id;
    }
    w->splits[w->n_splits++] = *s;
    bar_check(b, id);
    return true;
}

/* ---- splits ---- */
/* Two splits at the same place are one. */
static void merge(struct ws_warp *w)
{
    for (uint32_t k = 0; k < w->n_splits; k++) {
        struct ws_split *s = &w->splits[k];
        for (uint32_t n = k + 1; n < w->n_splits && s->state == WS_SPLIT_RUN;) {
            struct ws_split *t = &w->splits[n];
            if (t->state != WS_SPLIT_RUN || t->u != s->u || t->depth != s->depth) {
                n++;
                continue;
            }
            if (!t->enter) /* counted already; let it be counted once */
                s->enter = NULL;
            s->mask |= t->mask;
            s->spent = WS_MIN(s->spent, t->spent);
            s->favour = WS_MIN(s->favour, t->favour);
            s->granted &= t->granted;
            *t = w->splits[--w->n_splits];
        }
    }
}

/* Waiting for lanes that can't come (they wait for these in another place): all go on with whom
 * they have. */
static bool grant(struct ws_warp *w)
{
    uint32_t here = 0;
    bool any = false;
    for (uint32_t k = 0; k < w->n_splits; k++)
        if (w->splits[k].state == WS_SPLIT_WARPSYNC)
            here |= w->splits[k].mask;
    for (uint32_t k = 0; k < w->n_splits; k++) {
        struct ws_split *s = &w->splits[k];
        if (s->state != WS_SPLIT_WARPSYNC)
            continue;
        const uint32_t *masks = (const uint32_t *)(const void *)(w->regs + s->u->e);
        uint32_t want = 0;
        for (uint32_t m = s->mask; m; m &= m - 1)
            want |= masks[__builtin_ctz(m)];
        if (want & w->live & ~here)
            continue;
        s->state = WS_SPLIT_RUN;
        s->granted = true;
        any = true;
    }
    return any;
}

/* The split to run next, taken out of the warp. Return: false: none can. */
static bool pick(struct ws_warp *w, struct ws_split *ret, const struct ws_uop **ret_limit)
{
    static const struct ws_uop *const no_limit = (const struct ws_uop *)UINTPTR_MAX;
    *ret_limit = no_limit;
    if (w->n_splits == 1 && w->splits[0].state == WS_SPLIT_RUN) {
        *ret = w->splits[0];
        w->n_splits = 0;
        return true;
    }
    merge(w);
    uint32_t best = UINT32_MAX, oldest = UINT32_MAX, favoured = UINT32_MAX, n = 0;
    for (uint32_t k = 0; k < w->n_splits; k++) {
        const struct ws_split *s = &w->splits[k], *t = best == UINT32_MAX ? NULL : &w->splits[best];
        if (s->state != WS_SPLIT_RUN)
            continue;
        n++;
        if (s->favour > 0)
            favoured = k;
        if (!t || s->depth > t->depth || (s->depth == t->depth && s->u < t->u))
            best = k;
        if (oldest == UINT32_MAX || (int32_t)(s->last_run - w->splits[oldest].last_run) < 0)
            oldest = k;
    }
    if (n == 0)
        return grant(w) && pick(w, ret, ret_limit);
    if (favoured != UINT32_MAX) {
        best = favoured;
    } else if (n > 1 && w->splits[best].spent >= ROTATE) {
        w->splits[best].spent = 0;
        if (oldest == best) /* it ran last, so another one is older, unless stamps are equal */
            for (uint32_t k = 0; k < w->n_splits; k++)
                if (k != best && w->splits[k].state == WS_SPLIT_RUN)
                    oldest = k;
        best = oldest;
        w->splits[best].favour = FAVOUR;
    }
    *ret = w->splits[best];
    w->splits[best] = w->splits[--w->n_splits];
    for (uint32_t k = 0; k < w->n_splits; k++) {
        const struct ws_split *s = &w->splits[k];
        if (s->state == WS_SPLIT_RUN && s->depth == ret->depth && s->u > ret->u &&
            s->u < *ret_limit)
            *ret_limit = s->u;
    }
    return true;
}

/* Waits for its lanes, or takes up those that wait at the same place and tries again. */
static void warpsync_arrive(struct ws_warp *w, struct ws_split *s)
{
    bool met = false;
    for (uint32_t k = 0; k < w->n_splits;) {
        struct ws_split *t = &w->splits[k];
        if (t->state != WS_SPLIT_WARPSYNC || t->u != s->u || t->depth != s->depth) {
            k++;
            continue;
        }
        s->mask |= t->mask;
        met = true;
        *t = w->splits[--w->n_splits];
    }
    s->state = met ? WS_SPLIT_RUN : WS_SPLIT_WARPSYNC;
    w->splits[w->n_splits++] = *s;
}

enum turn {
    TURN_NONE /* could not run */,
    TURN_RAN,
    TURN_WAITS /* ran, and is waiting for something */,
    TURN_FAULT
};

uint64_t ws_blockrun_n_looked(const struct ws_blockrun *b)
{
    return b->ctx.n_looked;
}

/* One turn of a warp. *ret_n: warp instructions run. */
static enum turn warp_turn(struct ws_blockrun *b, struct ws_warp *w, int64_t quantum,
                           uint64_t *ret_n)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_split s;
    enum turn result = TURN_NONE;
    c->w = w;
    c->regs = w->regs;
    c->local = b->local + (uint64_t)w->index * 32 * b->local_bytes;
    c->budget = quantum;
    c->penalty = 0;
    b->quantum_start = quantum;
    while (c->budget > 0 && w->live && pick(w, &s, &c->limit)) {
        int64_t before = c->budget;
        result = TURN_RAN;
        c->active = s.mask;
        c->depth = s.depth;
        c->granted = s.granted;
        c->spin = 0;
        s.last_run = ++w->stamp;
        b->g->code->isa->run(c, s.u, s.enter);
        int64_t ran = before - c->budget; /* with the penalty, if it spins */
        s = (struct ws_split){.u = c->u,
                              .enter = c->enter,
                              .mask = c->active,
                              .depth = c->depth,
                              .last_run = s.last_run,
                              .spent = s.spent + (uint32_t)WS_MIN(ran, (int64_t)ROTATE),
                              .favour = s.favour > ran ? s.favour - (int32_t)ran : 0};
        switch (c->stop) {
        case WS_STOP_RESCHED:
            w->splits[w->n_splits++] = s;
            break;
        case WS_STOP_EXIT:
            break;
        case WS_STOP_BAR:
            if (!bar_arrive(b, &s))
                return TURN_FAULT;
            break;
        case WS_STOP_WARPSYNC:
            warpsync_arrive(w, &s);
            break;
        case WS_STOP_YIELD:
            s.spent = ROTATE;
            s.favour = 0;
            w->splits[w->n_splits++] = s;
            result = TURN_WAITS;
            break;
        case WS_STOP_FAULT:
            return TURN_FAULT;
        }
        if (result == TURN_WAITS)
            break;
    }
    *ret_n = (uint64_t)(quantum - c->budget - c->penalty);
    return result == TURN_RAN && c->penalty ? TURN_WAITS : result;
}

/* ---- blocks ---- */
static uint64_t sreg_value(const struct ws_blockrun *b, const struct ws_fill *f, uint32_t warp,
                           uint32_t lane)
{
    const struct ws_grid *g = b->g;
    uint32_t t = warp * 32 + lane, dim = f->dim > 2 ? 0 : f->dim;
    switch (f->sreg) {
    case WS_SR_TID:
        return dim == 0   ? t % g->block[0]
               : dim == 1 ? t / g->block[0] % g->block[1]
                          : t / g->block[0] / g->block[1];
    case WS_SR_NTID:
        return g->block[dim];
    case WS_SR_CTAID:
        return b->ctaid[dim];
    case WS_SR_NCTAID:
        return g->grid[dim];
    case WS_SR_LANEID:
        return lane;
    case WS_SR_WARPID:
        return warp;
    case WS_SR_NWARPID:
        return 32;
    case WS_SR_SMID:
        return b->smid;
    case WS_SR_NSMID:
        return g->n_sms;
    case WS_SR_GRIDID:
        return g->grid_id;
    case WS_SR_LANEMASK_EQ:
        return 1u << lane;
    case WS_SR_LANEMASK_LE:
        return (2u << lane) - 1;
    case WS_SR_LANEMASK_LT:
        return (1u << lane) - 1;
    case WS_SR_LANEMASK_GE:
        return ~((1u << lane) - 1);
    case WS_SR_LANEMASK_GT:
        return ~((2u << lane) - 1);
    case WS_SR_ENVREG:
        return f->dim == 1   ? (uint32_t)(g->envreg12 >> 32)
               : f->dim == 2 ? (uint32_t)g->envreg12
                             : 0;
    case WS_SR_DYNAMIC_SMEM_SIZE:
        return g->dyn_shared_bytes;
    case WS_SR_TOTAL_SMEM_SIZE:
        return b->user_shared_bytes;
    case WS_SR_AGGR_SMEM_SIZE:
        return b->ctx.shared_bytes;
    case WS_SR_RESERVED_SMEM_OFFSET: {
        uint64_t begin = b->ctx.shared_bytes - WS_RESERVED_SHARED_BYTES;
        const uint64_t values[] = {begin, begin + WS_RESERVED_SHARED_BYTES / 4, begin,
                                   begin + WS_RESERVED_SHARED_BYTES, WS_RESERVED_SHARED_BYTES};
        return f->dim < WS_ARRAY_SIZE(values) ? values[f->dim] : 0;
    }
    case WS_SR_WARPSZ:
        return 32;
    /* without clusters, each block is one of its own */
    case WS_SR_CLUSTERID:
        return b->ctaid[dim];
    case WS_SR_NCLUSTERID:
        return g->grid[dim];
    case WS_SR_CLUSTER_NCTAID:
    case WS_SR_CLUSTER_NCTARANK:
        return 1;
    default:
        return 0;
    }
}

static bool sreg_is_lanewise(uint32_t sreg)
{
    return sreg == WS_SR_TID || sreg == WS_SR_LANEID ||
           (sreg >= WS_SR_LANEMASK_EQ && sreg <= WS_SR_LANEMASK_GT);
}

static bool per_block(const struct ws_fill *f)
{
    return f->kind == WS_FILL_SREG &&
           (f->sreg == WS_SR_CTAID || f->sreg == WS_SR_SMID || f->sreg == WS_SR_CLUSTERID);
}

static void fill_row(struct ws_blockrun *b, struct ws_warp *w, const struct ws_fill *f)
{
    uint8_t *row = w->regs + f->off;
    uint64_t v = f->kind == WS_FILL_VAR ? b->g->var_va[f->var] + f->value : f->value;
    if (f->width == 0) {
        memcpy(row, &v, 4);
        return;
    }
    if (f->kind == WS_FILL_SREG && sreg_is_lanewise(f->sreg)) {
        for (uint32_t i = 0; i < 32; i++) {
            v = sreg_value(b, f, w->index, i);
            memcpy(row + i * f->width, &v, f->width);
        }
        return;
    }
    if (f->kind == WS_FILL_SREG)
        v = sreg_value(b, f, w->index, 0);
    if (f->width == 4)
        for (uint32_t i = 0; i < 32; i++)
            ((uint32_t *)(void *)row)[i] = (uint32_t)v;
    else
        for (uint32_t i = 0; i < 32; i++)
            memcpy(row + i * f->width, &v, f->width);
}

int ws_blockrun_new(struct ws_blockrun **ret, struct ws_grid *g)
{
    const struct ws_exec_image *img = g->code->images[g->kernel];
    uint64_t threads = (uint64_t)g->block[0] * g->block[1] * g->block[2];
    if (threads == 0 || threads > 1024)
        return ws_raise(-EINVAL);
    struct ws_blockrun *b = ws_alloc(sizeof(*b));
    if (!b)
        return ws_raise(-ENOMEM);
    b->g = g;
    b->img = img;
    b->n_threads = (uint32_t)threads;
    b->n_warps = (b->n_threads + 31) / 32;
    b->local_bytes = img->local_bytes;
    b->depth_max = img->depth_max;
    if (img->recursive) {
        b->local_bytes = WS_MAX((uint64_t)img->frame_bytes,
                                g->local_bytes_max ? g->local_bytes_max : RECURSION_LOCAL_BYTES);
        b->depth_max =
            (uint32_t)WS_MIN((uint64_t)RECURSION_MAX, WS_MAX(UINT64_C(64), b->local_bytes / 32));
    }
    if (img->sp_off && !img->recursive)
        b->local_bytes += g->local_bytes_max ? g->local_bytes_max : RECURSION_LOCAL_BYTES;
    b->local_bytes = WS_ALIGN_UP(b->local_bytes, UINT64_C(16));
    struct ws_core_ctx *c = &b->ctx;
    c->b = b;
    c->mx = 0x1f80;
    c->shared_bytes = (g->dyn_shared_bytes ? WS_ALIGN_UP((uint64_t)img->shared_bytes, UINT64_C(16))
                                           : img->shared_bytes) +
                      g->dyn_shared_bytes;
    b->user_shared_bytes = c->shared_bytes;
    if (img->uses_reserved_shared)
        c->shared_bytes = WS_ALIGN_UP(c->shared_bytes, UINT64_C(16)) + WS_RESERVED_SHARED_BYTES;
    c->local_stride = b->local_bytes;
    c->params = g->params;
    c->param_bytes = g->code->m->funcs[img->func].param_bytes;
    b->warps = ws_alloc_array(b->n_warps, sizeof(*b->warps));
    b->block_fills = ws_alloc_array(img->n_fills + 1, sizeof(*b->block_fills));
    b->bars_used = (1u << WS_N_BARRIERS) - 1;
    b->regs = ws_alloc((size_t)b->n_warps * img->regs_bytes + 64);
    b->local = ws_alloc((size_t)b->local_bytes * 32 * b->n_warps + 64);
    b->shared_alloc = ws_alloc(c->shared_bytes + 128);
    b->rets = ws_alloc_array((size_t)b->depth_max * 32 * b->n_warps + 1, sizeof(*b->rets));
    b->saves =
        ws_alloc((size_t)(img->recursive ? b->depth_max : 0) * img->save_bytes * b->n_warps + 64);
    if (!b->block_fills || !b->warps || !b->regs || !b->local || !b->shared_alloc || !b->rets ||
        !b->saves) {
        ws_blockrun_free(b);
        return ws_raise(-ENOMEM);
    }
    for (uint32_t n = 0; n < img->n_fills; n++)
        if (per_block(&img->fills[n]))
            b->block_fills[b->n_block_fills++] = n;
    c->shared = b->shared_alloc + (-(uintptr_t)b->shared_alloc & 127);
    uint8_t *regs = b->regs + (-(uintptr_t)b->regs & 63);
    for (uint32_t k = 0; k < b->n_warps; k++) {
        struct ws_warp *w = &b->warps[k];
        w->index = k;
        w->regs = regs + (size_t)k * img->regs_bytes;
        w->rets = b->rets + (size_t)k * b->depth_max * 32;
        w->saves = b->saves + (img->recursive ? (size_t)k * b->depth_max * img->save_bytes : 0);
        w->exists = b->n_threads - k * 32 >= 32 ? ~0u : (1u << (b->n_threads - k * 32)) - 1;
        for (uint32_t n = 0; n < img->n_fills; n++)
            if (!per_block(&img->fills[n]))
                fill_row(b, w, &img->fills[n]);
    }
    *ret = b;
    return 0;
}

struct ws_blockrun *ws_blockrun_free(struct ws_blockrun *b)
{
    if (b) {
        free(b->warps);
        free(b->block_fills);
        free(b->regs);
        free(b->local);
        free(b->shared_alloc);
        free(b->rets);
        free(b->saves);
        free(b->ctx.tex);
        free(b);
    }
    return NULL;
}

/* What PTX leaves undefined may be what the block before has left, but not if it was another
 * client's. Registers and local variables are each member's own in a fused kernel; shared memory
 * and the stack are not. */
static void wipe(struct ws_blockrun *b)
{
    memset(b->ctx.shared, 0, b->ctx.shared_bytes);
    if (b->img->sp_off || b->img->recursive)
        memset(b->local, 0, (size_t)b->local_bytes * 32 * b->n_warps);
}

void ws_blockrun_start(struct ws_blockrun *b, uint64_t linear, uint32_t smid, uint32_t slot)
{
    const struct ws_grid *g = b->g;
    const struct ws_exec_image *img = b->img;
    const struct ws_grid_part *before = b->part;
    b->linear = linear;
    b->part = ws_grid_part_of(g, linear, &b->number);
    if (before && before->space != b->part->space)
        wipe(b);
    b->smid = smid;
    b->slot = slot;
    b->ctaid[0] = (uint32_t)(linear % g->grid[0]);
    b->ctaid[1] = (uint32_t)(linear / g->grid[0] % g->grid[1]);
    b->ctaid[2] = (uint32_t)(linear / g->grid[0] / g->grid[1]);
    b->n_live = b->n_threads;
    b->n_done_warps = 0;
    b->next_warp = 0;
    b->n_insns = 0;
    b->n_clock_reads = 0;
    if (b->ctx.n_looked)
        memset(b->ctx.looked, 0, sizeof(b->ctx.looked));
    b->ctx.n_looked = 0;
    for (uint32_t k = b->bars_used; k; k &= k - 1)
        b->bars[__builtin_ctz(k)] = (struct ws_barrier){.red_and = true};
    b->bars_used = 0;
    if (img->uses_reserved_shared)
        memset(b->ctx.shared + b->ctx.shared_bytes - WS_RESERVED_SHARED_BYTES, 0,
               WS_RESERVED_SHARED_BYTES);
    for (uint32_t k = 0; k < b->n_warps; k++) {
        struct ws_warp *w = &b->warps[k];
        w->live = w->exists;
        w->stamp = 0;
        w->n_splits = 1;
        w->splits[0] =
            (struct ws_split){.u = img->entry->first, .enter = img->entry, .mask = w->exists};
        memset(w->regs + img->fp_off, 0, 128);
        for (uint32_t n = 0; img->sp_off && n < 32; n++)
            ((uint32_t *)(void *)(w->regs + img->sp_off))[n] = (uint32_t)b->local_bytes;
        for (uint32_t n = 0; n < b->n_block_fills; n++)
            fill_row(b, w, &img->fills[b->block_fills[n]]);
    }
}

static void flush_work(struct ws_core_ctx *c)
{
    for (int k = 0; k < _WS_WORK_N; k++)
        c->work->n_warp_insns[k] += c->cls[k];
    memset(c->cls, 0, sizeof(c->cls));
    c->work->n_thread_insns += c->n_thread_insns;
    c->n_thread_insns = 0;
}

/* No warp can run and not all have ended. */
static void deadlock(struct ws_blockrun *b)
{
    for (uint32_t k = 0; k < b->n_warps; k++) {
        struct ws_warp *w = &b->warps[k];
        if (w->n_splits == 0)
            continue;
        b->ctx.w = w;
        ws_exec_fault(&b->ctx, w->splits[0].u, WS_DEV_E_LAUNCH_FAILURE,
                      (unsigned)__builtin_ctz(w->splits[0].mask), 0,
                      "deadlock: waits for threads that wait elsewhere");
        return;
    }
}

enum ws_step ws_blockrun_step(struct ws_blockrun *b, uint64_t max_warp_insns,
                              struct ws_exec_work *work)
{
    struct ws_grid *g = b->g;
    struct ws_core_ctx *c = &b->ctx;
    int64_t left = (int64_t)WS_MIN(max_warp_insns, (uint64_t)INT64_MAX / 2);
    c->work = work;
    c->n_maps = 0;
    memset(c->maps, 0, sizeof(c->maps)); /* mappings may have changed between steps */
    ws_exec_tex_forget(c);
    while (b->n_done_warps < b->n_warps) {
        bool ran = false, all_wait = true;
        uint32_t first = b->next_warp;
        for (uint32_t k = 0; k < b->n_warps; k++) {
            uint32_t at = first + k < b->n_warps ? first + k : first + k - b->n_warps;
            struct ws_warp *w = &b->warps[at];
            uint64_t n = 0;
            if (atomic_load_explicit(&g->stop, memory_order_relaxed) ||
                (b->part && atomic_load_explicit(&b->part->stop, memory_order_relaxed)))
                return WS_STEP_STOPPED;
            if (!w->live)
                continue;
            enum turn t = warp_turn(b, w, WS_MIN(left, QUANTUM), &n);
            flush_work(c);
            b->n_insns += n;
            b->quantum_start = 0;
            c->budget = c->penalty = 0;
            left -= (int64_t)n;
            if (t == TURN_FAULT)
                return WS_STEP_STOPPED;
            ran |= t != TURN_NONE;
            all_wait &= t != TURN_RAN;
            if (left <= 0 && b->n_done_warps < b->n_warps) {
                b->next_warp = at + 1 < b->n_warps ? at + 1 : 0;
                return WS_STEP_MORE;
            }
        }
        if (!ran && b->n_done_warps < b->n_warps) {
            deadlock(b);
            return WS_STEP_STOPPED;
        }
        if (all_wait && b->n_done_warps < b->n_warps)
            return WS_STEP_MORE; /* all spin or sleep: what they wait for is in another block */
    }
    return WS_STEP_DONE;
}
