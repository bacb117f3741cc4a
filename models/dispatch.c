// SPDX-License-Identifier: Apache-2.0
/* models/dispatch.c - deals blocks to SMs and runs them on a virtual clock.
 *
 * Rates of an SM's blocks change only when one of them ends or begins, so an SM is brought up to
 * date then, and a step costs one look at each SM, not at each block. Where memory is a limit
 * (bounded), it slows all alike: SMs run in slowed time (x.tau), in which they are independent of
 * one another, and the clock (x.now) goes forward by more than it. Invariants:
 *  1. slot.left is right for run.at; run.next is the instant of the SM's next end, or infinity.
 *  2. An SM's list holds resident blocks, then queued ones (run.queue is the first of those), in
 *     the order given.
 *  3. Blocks that nobody has yet (redeal, greedy) are d->blocks[pool..n_blocks).
 * Ends within 1e-9 of (1 + t) are one instant, so that sums of decimal times that ought to tie
 * do. */
#include "models/dispatch.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

#define TIE      1e-9
#define CRITICAL 1e-7 /* of the makespan */

struct ws_dispatch_slot {
    double left,
        rate; /* of the block's time alone; per unit of slowed time, at least 1/occupancy */
    uint32_t block;
};
struct ws_dispatch_run {
    double at, next; /* slowed time */
    double memory;   /* what its blocks ask of the memory, of 1 */
    uint32_t n_resident, last, queue;
};

static const char *const policy_names[] = {"redeal", "rr", "rr_restart", "greedy"};
static const char *const model_names[] = {"additive", "overlap", "bounded"};

const char *ws_dispatch_policy_name(enum ws_dispatch_policy p)
{
    return (size_t)p < WS_ARRAY_SIZE(policy_names) ? policy_names[p] : "?";
}

const char *ws_dispatch_model_name(enum ws_dispatch_model m)
{
    return (size_t)m < WS_ARRAY_SIZE(model_names) ? model_names[m] : "?";
}

bool ws_dispatch_policy_find(const char *name, enum ws_dispatch_policy *ret)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(policy_names); i++)
        if (!strcmp(policy_names[i], name)) {
            *ret = (enum ws_dispatch_policy)i;
            return true;
        }
    return false;
}

bool ws_dispatch_model_find(const char *name, enum ws_dispatch_model *ret)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(model_names); i++)
        if (!strcmp(model_names[i], name)) {
            *ret = (enum ws_dispatch_model)i;
            return true;
        }
    return false;
}

void ws_dispatch_deinit(struct ws_block_schedule *d)
{
    free(d->sms);
    free(d->blocks);
    free(d->runs);
    free(d->slots);
    *d = WS_DISPATCH_NULL;
}

struct dealing {
    struct ws_block_schedule *d;
    const struct ws_dispatch_in *in;
    uint32_t pool; /* blocks from here on belong to no SM */
    double tau, now;
    double memory; /* what all SMs ask for, of 1 */
};

static int check(const struct ws_dispatch_in *in, struct ws_diags *diags, uint32_t *ret_n)
{
    uint64_t n = 0;
    if (!in->n_sms || in->n_sms > WS_DISPATCH_MAX_SMS) {
        ws_diags_add(diags, NULL, 0, 0, "dispatch: n_sm is %u; it must be 1 to %d", in->n_sms,
                     WS_DISPATCH_MAX_SMS);
        return ws_raise(-EINVAL);
    }
    if (!in->occupancy || in->occupancy > 1024) {
        ws_diags_add(diags, NULL, 0, 0, "dispatch: occupancy is %u; it must be 1 to 1024",
                     in->occupancy);
        return ws_raise(-EINVAL);
    }
    for (uint32_t k = 0; k < in->n_kernels; k++) {
        double t = in->kernels[k].block_time;
        if (!(t > 0) || !isfinite(t)) {
            ws_diags_add(diags, NULL, 0, 0,
                         "dispatch: block_time of kernel %u is %g; it must be above 0", k, t);
            return ws_raise(-EINVAL);
        }
        if (!(in->kernels[k].issue_time >= 0) || !(in->kernels[k].memory_time >= 0)) {
            ws_diags_add(
                diags, NULL, 0, 0,
                "dispatch: issue_time and memory_time of kernel %u are %g and %g; they must "
                "be 0 or above",
                k, in->kernels[k].issue_time, in->kernels[k].memory_time);
            return ws_raise(-EINVAL);
        }
        n += in->kernels[k].n_blocks;
    }
    if (n > WS_DISPATCH_MAX_BLOCKS) {
        ws_diags_add(diags, NULL, 0, 0, "dispatch: %" PRIu64 " blocks; at most %d can be dealt", n,
                     WS_DISPATCH_MAX_BLOCKS);
        return ws_raise(-EINVAL);
    }
    *ret_n = (uint32_t)n;
    return 0;
}

static int reserve(struct ws_block_schedule *d, const struct ws_dispatch_in *in, uint32_t n)
{
    if (d->cap_sms < in->n_sms) {
        free(d->sms);
        free(d->runs);
        d->cap_sms = 0;
        d->sms = ws_alloc_array(in->n_sms, sizeof(*d->sms));
        d->runs = ws_alloc_array(in->n_sms, sizeof(*d->runs));
        if (!d->sms || !d->runs)
            return ws_raise(-ENOMEM);
        d->cap_sms = in->n_sms;
    }
    int r = ws_grow((void **)&d->blocks, &d->cap_blocks, WS_MAX(n, 1u), sizeof(*d->blocks));
    if (r)
        return ws_forward(r);
    r = ws_grow((void **)&d->slots, &d->cap_slots, (size_t)in->n_sms * in->occupancy,
                sizeof(*d->slots));
    return r ? ws_forward(r) : 0;
}

/* Puts a block at the end of an SM's list; it waits there until begin(). */
static void give(struct ws_block_schedule *d, uint32_t sm, uint32_t block)
{
    struct ws_dispatch_sm *s = &d->sms[sm];
    struct ws_dispatch_run *run = &d->runs[sm];
    d->blocks[block].sm = sm;
    d->blocks[block].next = WS_DISPATCH_NONE;
    if (s->n_blocks++)
        d->blocks[run->last].next = block;
    else
        s->first = block;
    run->last = block;
    if (run->queue == WS_DISPATCH_NONE)
        run->queue = block;
}

static double rate(const struct ws_dispatch_in *in, const struct ws_dispatch_kernel *k,
                   uint32_t n_resident)
{
    double issue = k->issue_time > 0 ? fmin(k->issue_time, k->block_time) : k->block_time;
    switch (in->model) {
    case WS_DISPATCH_OVERLAP:
        return 1;
    case WS_DISPATCH_BOUNDED:
        return fmin(1, k->block_time / (n_resident * issue));
    case WS_DISPATCH_ADDITIVE:
        break;
    }
    return 1.0 / n_resident;
}

/* Begins queued blocks while there are free slots, and finds the SM's new rates and next end. */
static void begin(struct dealing *x, uint32_t sm)
{
    struct ws_dispatch_run *run = &x->d->runs[sm];
    struct ws_dispatch_slot *slots = x->d->slots + (size_t)sm * x->in->occupancy;
    while (run->n_resident < x->in->occupancy && run->queue != WS_DISPATCH_NONE) {
        struct ws_dispatch_block *b = &x->d->blocks[run->queue];
        b->start = x->now;
        slots[run->n_resident++] = (struct ws_dispatch_slot){
            .block = run->queue, .left = x->in->kernels[b->kernel].block_time};
        run->queue = b->next;
    }
    run->at = x->tau;
    run->next = INFINITY;
    double memory = 0;
    for (uint32_t i = 0; i < run->n_resident; i++) {
        const struct ws_dispatch_kernel *k = &x->in->kernels[x->d->blocks[slots[i].block].kernel];
        slots[i].rate = rate(x->in, k, run->n_resident);
        run->next = fmin(run->next, x->tau + slots[i].left / slots[i].rate);
        memory += slots[i].rate * k->memory_time / k->block_time;
    }
    x->memory += memory - run->memory;
    run->memory = memory;
}

/* Ends what ends on an SM at x->now. Return: whether anything did. */
static bool finish(struct dealing *x, uint32_t sm)
{
    struct ws_dispatch_run *run = &x->d->runs[sm];
    struct ws_dispatch_slot *slots = x->d->slots + (size_t)sm * x->in->occupancy;
    double slack = TIE * (1 + x->tau), passed = x->tau - run->at;
    /* A tie of the instant must be a tie of the work too, whatever the rate. */
    if (!(run->next <= x->tau + slack * x->in->occupancy))
        return false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < run->n_resident; i++) {
        slots[i].left -= passed * slots[i].rate;
        if (slots[i].left <= slack)
            x->d->blocks[slots[i].block].end = x->now;
        else
            slots[kept++] = slots[i];
    }
    run->at = x->tau;
    bool any = kept < run->n_resident;
    run->n_resident = kept;
    if (any)
        x->d->sms[sm].finish = x->now;
    return any;
}

static void deal(struct dealing *x)
{
    struct ws_block_schedule *d = x->d;
    uint32_t n_sms = x->in->n_sms, b = 0;
    bool pooled = x->in->policy == WS_DISPATCH_REDEAL || x->in->policy == WS_DISPATCH_GREEDY;
    for (uint32_t k = 0; k < x->in->n_kernels; k++)
        for (uint32_t i = 0; i < x->in->kernels[k].n_blocks; i++, b++) {
            d->blocks[b] = (struct ws_dispatch_block){
                .kernel = k, .sm = WS_DISPATCH_NONE, .next = WS_DISPATCH_NONE};
            if (!pooled)
                give(d, (x->in->policy == WS_DISPATCH_RR_RESTART ? i : b) % n_sms, b);
            else if (b < (uint64_t)n_sms * x->in->occupancy)
                give(d, b % n_sms, b);
        }
    x->pool = pooled ? (uint32_t)WS_MIN((uint64_t)b, (uint64_t)n_sms * x->in->occupancy) : b;
}

/* Deals the pool over the SMs that finished a block just now (marked redealt). */
static void redeal(struct dealing *x)
{
    struct ws_block_schedule *d = x->d;
    d->did_redeal = true;
    d->redealt_at = x->now;
    for (uint32_t sm = 0; x->pool < d->n_blocks; sm = sm + 1 < d->n_sms ? sm + 1 : 0)
        if (d->sms[sm].redealt)
            give(d, sm, x->pool++);
}

/* Gives the next blocks to free slots, one per SM and pass. */
static void refill(struct dealing *x)
{
    struct ws_block_schedule *d = x->d;
    for (bool any = true; any && x->pool < d->n_blocks;) {
        any = false;
        for (uint32_t sm = 0; sm < d->n_sms && x->pool < d->n_blocks; sm++) {
            /* Only SMs where something ended have room: all others are full as long as there is a
             * pool. */
            if (d->runs[sm].n_resident == x->in->occupancy)
                continue;
            give(d, sm, x->pool++);
            begin(x, sm);
            any = true;
        }
    }
}

/* One instant. Return: false when nothing runs any more. */
static bool step(struct dealing *x)
{
    struct ws_block_schedule *d = x->d;
    double next = INFINITY;
    for (uint32_t sm = 0; sm < d->n_sms; sm++)
        next = fmin(next, d->runs[sm].next);
    if (isinf(next))
        return false;
    double slow = x->in->model == WS_DISPATCH_BOUNDED ? fmax(1, x->memory) : 1;
    x->now = slow > 1 || x->now != x->tau ? x->now + (next - x->tau) * slow : next;
    x->tau = next;
    bool redealing = x->in->policy == WS_DISPATCH_REDEAL && x->pool < d->n_blocks;
    for (uint32_t sm = 0; sm < d->n_sms; sm++)
        if (finish(x, sm)) {
            d->sms[sm].redealt |= redealing;
            begin(x, sm);
        }
    if (redealing) {
        redeal(x);
        for (uint32_t sm = 0; sm < d->n_sms; sm++)
            if (d->sms[sm].redealt)
                begin(x, sm);
    } else if (x->pool < d->n_blocks) {
        refill(x);
    }
    return true;
}

int ws_dispatch_run(struct ws_block_schedule *d, const struct ws_dispatch_in *in,
                    struct ws_diags *diags)
{
    uint32_t n = 0;
    int r = check(in, diags, &n);
    if (!r)
        r = reserve(d, in, n);
    if (r)
        return ws_forward(r);
    d->n_sms = in->n_sms;
    d->n_blocks = n;
    d->n_critical = 0;
    d->makespan = 0;
    d->did_redeal = false;
    d->redealt_at = 0;
    for (uint32_t sm = 0; sm < in->n_sms; sm++) {
        d->sms[sm] = (struct ws_dispatch_sm){.first = WS_DISPATCH_NONE};
        d->runs[sm] = (struct ws_dispatch_run){.queue = WS_DISPATCH_NONE, .last = WS_DISPATCH_NONE};
    }
    struct dealing x = {.d = d, .in = in};
    deal(&x);
    for (uint32_t sm = 0; sm < in->n_sms; sm++)
        begin(&x, sm);
    while (step(&x))
        ;
    for (uint32_t sm = 0; sm < in->n_sms; sm++)
        d->makespan = fmax(d->makespan, d->sms[sm].finish);
    for (uint32_t sm = 0; sm < in->n_sms; sm++) {
        d->sms[sm].critical = d->makespan > 0 && d->sms[sm].finish >= d->makespan * (1 - CRITICAL);
        d->n_critical += d->sms[sm].critical;
    }
    return 0;
}
