// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/exec.c - schedules the lanes of a warp; barriers, calls, faults.
 *
 * A warp is a set of splits. A split is the lanes that stand at the same micro-op. One split runs
 * at a time in the vector core, and the others wait. The split that is deepest in calls runs
 * first, and among those the one at the lowest micro-op, because blocks are laid out so that lanes
 * that are behind then catch up (../decode/flow.c). A running split stops where another one stands
 * (ctx.limit), and splits at the same place become one. This order only matters for speed.
 * Progress does not depend on it: a split that has run long, or that does again and again what
 * waiting loops do, lets the split that waited longest run for a while. So a loop that waits for
 * another lane of the warp ends (forward progress of sm_70 and later).
 * Invariants: the masks of a warp's splits are disjoint and, with the running one, make up its
 * live lanes; all lanes of a split have the same call depth; each lane has its own return
 * addresses (ws_warp.rets). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/soft/decode/priv.h"
#include "device/soft/exec/tex.h"
#include "device/soft/inspect/inspect.h"
#include "device/soft/jit/jit.h"
#include "device/space.h"

enum {
    ROTATE = 1 << 15, /* instructions after which the split that waited longest gets a turn */
    /* Instructions of that turn. Calls and branches don't end it, so that a lane that holds a lock
     * gets to free it. */
    FAVOUR = 1 << 10,
    NEAR_BYTES = 1 << 20, /* from here on, that an address is off by so much says nothing */
};

/* ---- faults ---- */
static const char *fault_word(enum ws_dev_error e)
{
    switch (e) {
    case WS_DEV_E_ASSERT:
        return "assert";
    case WS_DEV_E_MISALIGNED:
        return "misaligned address";
    case WS_DEV_E_ILLEGAL_ADDRESS:
        return "illegal address";
    default:
        return "fault";
    }
}

/* Where in the client's memory an address lies that is not mapped. */
static bool find_near(const struct ws_blockrun *b, uint64_t va, struct ws_space_near *ret)
{
    return !WS_WINDOW_OF(va) &&
           ws_space_find_near(ws_exec_own_space(b), b->g->who ? b->g->who : WS_ACCESS_ALL, va, ret);
}

/* The same in words; "" if it is far from everything. */
static void describe_place(const struct ws_blockrun *b, uint64_t va, char *ret, size_t size)
{
    struct ws_space_near at;
    if (find_near(b, va, &at) && at.distance < NEAR_BYTES)
        snprintf(ret, size, ", %" PRIu64 " bytes %s the %" PRIu64 " bytes at 0x%" PRIx64,
                 at.distance, at.behind ? "behind" : "before", at.m.bytes, at.m.va);
}

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
    if (ws_inspect_has(g->inspect, WS_INSPECT_MEMORY))
        ws_inspect_fault(c, u, e, lane, addr, what);
    if (atomic_exchange(part ? &part->fault_claimed : &g->fault_claimed, 1))
        return NULL;
    char *text = part ? part->text : g->text;
    const uint32_t *grid = part ? part->grid : g->grid, *block = part ? part->block : g->block;
    uint64_t number = part ? b->number : b->linear;
    const struct ws_ptx_module *m = g->code->m;
    const struct ws_srcref *s = &b->img->srcs[u->src];
    const struct ws_ptx_func *f = &m->funcs[s->func];
    uint32_t t = c->w->index * 32 + (lane & 31), bx = block[0], by = block[1];
    char insn[80] = "", near[96] = "", where[208];
    if (s->insn < f->n_insns)
        ws_ptx_insn_text(m, f, &f->insns[s->insn], insn, sizeof(insn));
    if (e == WS_DEV_E_ILLEGAL_ADDRESS && !what)
        describe_place(b, addr, near, sizeof(near));
    if (e == WS_DEV_E_ILLEGAL_ADDRESS || e == WS_DEV_E_MISALIGNED)
        snprintf(where, sizeof(where), "address 0x%" PRIx64 "%s%s%s%s", addr, what ? " (" : "",
                 what ? what : "", what ? ")" : "", near);
    else
        snprintf(where, sizeof(where), "%s", what ? what : ws_dev_error_name(e));
    int n = snprintf(text, sizeof(g->text),
                     "%s: kernel %.48s block (%u,%u,%u) thread (%u,%u,%u) %s, PTX line %u: %s",
                     fault_word(e), part ? part->kernel : m->funcs[b->img->func].name,
                     (uint32_t)(number % grid[0]), (uint32_t)(number / grid[0] % grid[1]),
                     (uint32_t)(number / grid[0] / grid[1]), t % bx, t / bx % by, t / bx / by,
                     what && e == WS_DEV_E_ASSERT ? what : where,
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

const uint8_t *ws_exec_margin(struct ws_core_ctx *c, uint64_t va, uint64_t bytes)
{
    static const uint8_t zeros[32] __attribute__((aligned(32)));
    uint64_t margin = ws_space_margin(ws_exec_own_space(c->b));
    struct ws_space_near at;
    return margin && bytes <= sizeof(zeros) && find_near(c->b, va, &at) && at.distance < margin
               ? zeros
               : NULL;
}

uint8_t *ws_exec_lane_try(struct ws_core_ctx *c, unsigned lane, unsigned space, uint64_t va,
                          uint64_t bytes, bool store)
{
    uint64_t window = WS_WINDOW_OF(va), off = va & ~WS_WINDOW_OF(UINT64_MAX);
    if (space == WS_SP_SHARED || (space == WS_SP_GENERIC && window == WS_WINDOW_SHARED))
        return (!window || window == WS_WINDOW_SHARED) && off < c->shared_bytes &&
                       c->shared_bytes - off >= bytes
                   ? c->shared + off
                   : NULL;
    if (space == WS_SP_GENERIC && window == WS_WINDOW_LOCAL)
        return off < c->local_stride && c->local_stride - off >= bytes
                   ? c->local + lane * c->local_stride + off
                   : NULL;
    const struct ws_mapping *m = ws_exec_map(c, va, bytes);
    return m && !(store && m->flags & WS_MAP_READONLY) ? m->host + (va - m->va) : NULL;
}

uint8_t *ws_exec_lane_ptr(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane,
                          unsigned space, uint64_t va, uint64_t bytes, bool store)
{
    uint8_t *p = ws_exec_lane_try(c, lane, space, va, bytes, store);
    if (!p)
        ws_exec_fault(c, u, WS_DEV_E_ILLEGAL_ADDRESS, lane, va, NULL);
    return p;
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
    } else { /* lanes that a warp lacks count as there: hardware counts whole warps */
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
            if (b->inspect)
                ws_inspect_pass(b, w->index, id);
            s->state = WS_SPLIT_RUN;
            s->u++;
            s->spent = 0;
        }
    }
    if (b->inspect)
        ws_inspect_open(b, id);
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
    if (!w->live && b->inspect)
        ws_inspect_exit(b, w->index);
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
    if (b->inspect)
        ws_inspect_arrive(b, w->index, id);
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

/* After a turn. A waiting loop may be longer than a turn, so that its looks are counted over several
 * turns; a turn without any ends that. */
static void note_turn(struct ws_warp *w, const struct ws_core_ctx *c)
{
    bool looked = c->spin != w->spin;
    w->waits = c->penalty || (w->waits && looked);
    w->spin = c->penalty || !looked ? 0 : c->spin;
}

/* One turn of a warp. *ret_n: warp instructions run. */
enum ws_warp_turn ws_exec_warp_turn(struct ws_blockrun *b, struct ws_warp *w, int64_t quantum,
                                    uint64_t *ret_n)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_split s;
    enum ws_warp_turn result = WS_TURN_NONE;
    c->w = w;
    c->regs = w->regs;
    c->local = b->local + (uint64_t)w->index * 32 * b->local_bytes;
    c->budget = quantum;
    c->penalty = 0;
    c->spin = w->spin;
    b->quantum_start = quantum;
    while (c->budget > 0 && w->live && pick(w, &s, &c->limit)) {
        int64_t before = c->budget;
        result = WS_TURN_RAN;
        c->active = s.mask;
        c->depth = s.depth;
        c->granted = s.granted;
        s.last_run = ++w->stamp;
        if (b->compiled)
            ws_jit_run(b->jit, c, s.u, s.enter);
        else
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
                return WS_TURN_FAULT;
            break;
        case WS_STOP_WARPSYNC:
            warpsync_arrive(w, &s);
            break;
        case WS_STOP_YIELD:
            s.spent = ROTATE;
            s.favour = 0;
            w->splits[w->n_splits++] = s;
            result = WS_TURN_WAITS;
            break;
        case WS_STOP_FAULT:
            return WS_TURN_FAULT;
        }
        if (result == WS_TURN_WAITS)
            break;
    }
    *ret_n = (uint64_t)(quantum - c->budget - c->penalty);
    note_turn(w, c);
    return result == WS_TURN_RAN && w->waits ? WS_TURN_WAITS : result;
}
