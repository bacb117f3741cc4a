// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/exec.c - what the vector cores ask for: faults, mappings, calls, barriers. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/soft/decode/priv.h"
#include "device/soft/exec/shared.h"
#include "device/soft/exec/tex.h"
#include "device/soft/inspect/inspect.h"
#include "device/soft/jit/jit.h"
#include "device/space.h"

enum {
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
    char insn[80] = "", place[64] = "PTX line 0", near[96] = "", where[208];
    if (s->insn < f->n_insns) {
        ws_ptx_insn_text(m, f, &f->insns[s->insn], insn, sizeof(insn));
        ws_ptx_insn_place(&f->insns[s->insn], place, sizeof(place));
    }
    if (e == WS_DEV_E_ILLEGAL_ADDRESS && !what)
        describe_place(b, addr, near, sizeof(near));
    if (e == WS_DEV_E_ILLEGAL_ADDRESS || e == WS_DEV_E_MISALIGNED)
        snprintf(where, sizeof(where), "address 0x%" PRIx64 "%s%s%s%s", addr, what ? " (" : "",
                 what ? what : "", what ? ")" : "", near);
    else
        snprintf(where, sizeof(where), "%s", what ? what : ws_dev_error_name(e));
    int n = snprintf(text, sizeof(g->text),
                     "%s: kernel %.48s block (%u,%u,%u) thread (%u,%u,%u) %s, %s: %s",
                     fault_word(e), part ? part->kernel : m->funcs[b->img->func].name,
                     (uint32_t)(number % grid[0]), (uint32_t)(number / grid[0] % grid[1]),
                     (uint32_t)(number / grid[0] / grid[1]), t % bx, t / bx % by, t / bx / by,
                     what && e == WS_DEV_E_ASSERT ? what : where, place, insn);
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
        return !window || window == WS_WINDOW_SHARED ? ws_exec_shared(c, off, bytes) : NULL;
    if (space == WS_SP_GENERIC && window == WS_WINDOW_LOCAL)
        return off < c->local_stride && c->local_stride - off >= bytes
                   ? c->local + lane * c->local_stride + off
                   : NULL;
    if (space == WS_SP_GENERIC && window == WS_WINDOW_PARAM)
        return !store && !c->b->part && off < c->param_bytes && c->param_bytes - off >= bytes
                   ? (uint8_t *)(uintptr_t)c->params + off
                   : NULL; /* where parts are merged, other clients' parameters are there, too */
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
/* Mostly the first ones or none; counting is a call where the processor may lack the instruction.
 */
static inline uint32_t n_lanes(uint32_t mask)
{
    if (mask & (mask + 1))
        return (uint32_t)__builtin_popcount(mask);
    return mask ? 32 - (uint32_t)__builtin_clz(mask) : 0;
}

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

/* Whether all that the barrier waits for are there. */
static inline bool bar_is_complete(const struct ws_blockrun *b, const struct ws_barrier *bar)
{
    if (!bar->warps)
        return false;
    if (bar->expected == 0)
        return bar->arrived >= b->n_live;
    /* lanes that a warp lacks count as there: hardware counts whole warps */
    uint32_t n = bar->arrived;
    for (uint32_t k = bar->warps; k; k &= k - 1) {
        uint32_t w = (uint32_t)__builtin_ctz(k);
        n += (uint32_t)__builtin_popcount(~b->warps[w].live & ~bar->lanes[w]);
    }
    return n >= bar->expected;
}

void ws_exec_bar_open(struct ws_blockrun *b, uint32_t id)
{
    struct ws_barrier *bar = &b->bars[id];
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
    for (uint32_t k = bar->warps; k; k &= k - 1)
        bar->lanes[__builtin_ctz(k)] = 0;
    bar->arrived = bar->expected = bar->warps = bar->red_popc = 0;
    bar->red_and = true;
    bar->red_or = false;
    b->bars_used &= ~(1u << id);
}

static inline void bar_check(struct ws_blockrun *b, uint32_t id)
{
    if (bar_is_complete(b, &b->bars[id]))
        ws_exec_bar_open(b, id);
}

void ws_exec_exit(struct ws_core_ctx *c, uint32_t mask)
{
    struct ws_warp *w = c->w;
    struct ws_blockrun *b = c->b;
    w->live &= ~mask;
    b->n_live -= n_lanes(mask);
    if (!w->live)
        b->n_done_warps++;
    if (!w->live && b->inspect)
        ws_inspect_exit(b, w->index);
    for (uint32_t k = 0; k < w->n_splits; k++) /* who waits for these lanes need not any more */
        if (w->splits[k].state == WS_SPLIT_WARPSYNC)
            w->splits[k].state = WS_SPLIT_RUN;
    for (uint32_t k = b->bars_used & ((1u << WS_N_BARRIERS) - 1); k; k &= k - 1)
        bar_check(b, (uint32_t)__builtin_ctz(k));
    if (b->cluster->n_arrived)
        ws_exec_cluster_exit(b, w, mask);
}

void ws_exec_bar_count(struct ws_blockrun *b, struct ws_warp *w, const struct ws_uop *u,
                       uint32_t id, uint32_t lanes)
{
    struct ws_barrier *bar = &b->bars[id];
    uint32_t p =
        (*(const uint32_t *)(const void *)(w->regs + u->c) ^ (u->x >> 10 & 1 ? ~0u : 0)) & lanes;
    b->bars_used |= 1u << id;
    bar->warps |= 1u << w->index;
    bar->lanes[w->index] |= lanes;
    bar->arrived += n_lanes(lanes);
    bar->red_popc += n_lanes(p);
    bar->red_and &= p == lanes;
    bar->red_or |= p != 0;
    b->ctx.work->n_barriers++;
}

bool ws_exec_bar_arrive(struct ws_blockrun *b, struct ws_split *s)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_warp *w = c->w;
    const struct ws_uop *u = s->u;
    unsigned lane = (unsigned)__builtin_ctz(s->mask);
    const uint32_t *ids = (const uint32_t *)(const void *)(w->regs + u->a);
    bool plain = u->x & WS_X_PLAIN;
    if (u->x & WS_X_CLUSTER)
        return ws_exec_cluster_bar(b, s);
    uint32_t id = ids[lane],
             count = u->b ? ((const uint32_t *)(const void *)(w->regs + u->b))[lane] : 0,
             others = 0, differ = 0;
    if (id >= WS_N_BARRIERS || (u->b && (count == 0 || count % 32 || count > 32 * b->n_warps))) {
        ws_exec_fault(c, u, WS_DEV_E_ILLEGAL_INSTRUCTION, lane, 0,
                      "barrier number or thread count out of range");
        return false;
    }
    for (unsigned i = 0; i < 32 && !plain; i++)
        differ |= ids[i] ^ id;
    for (uint32_t m = differ ? s->mask : 0; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        others |= (uint32_t)(ids[i] != id) << i;
    }
    struct ws_barrier *bar = &b->bars[id];
    if (others) { /* they come here again by themselves */
        s[1] = *s;
        s->mask = others;
        w->n_splits++;
        (++s)->mask &= ~others;
    }
    ws_exec_bar_count(b, w, u, id, s->mask);
    bar->expected = WS_MAX(bar->expected, count);
    if (b->inspect)
        ws_inspect_arrive(b, w->index, id);
    if (u->x >> 8 & 1) {
        s->u++;
    } else {
        s->state = WS_SPLIT_BAR;
        s->bar_id = (uint8_t)id;
    }
    w->n_splits++;
    bar_check(b, id);
    return true;
}
