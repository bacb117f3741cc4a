// SPDX-License-Identifier: Apache-2.0
/* Flights: operations from submission until device time has come to their end.
 *
 * A flight is EXECUTING, then EXECUTED, then PRICED while its place in the timeline is looked for,
 * then WAITING in the clock. While it is cut, it is PRICED again and stops the clock again. The
 * thread that takes a flight out of the clock owns it: the clock's thread when the end has come or
 * to cancel it, the loop to cut it. Other threads can only mark a flight. The thread that prices a
 * flight looks at these marks, under the lock, before it lets the flight wait.
 *
 * Order. Flights are priced in the order of their submission, whichever was executed first, so
 * places in the timeline do not depend on the host. One thread at a time prices (d->pricing), for
 * all others. Pricing does not wait for a flight whose stall ran into the limit.
 *
 * The clock stands still from submission to pricing, so an operation is placed as if its execution
 * had taken no time. An operation whose stall ran into the limit (vclock.h) is placed where it
 * would have been, which may be in the past. Then it is done at once (an overrun). A launch that is
 * preempted and goes on has one limit for all its pieces: otherwise an endless grid would stop the
 * clock each time that it goes on. An operation that only waited in the meantime ends when it has
 * ended on the host; what it executed while waiting is not counted. A launch that faulted is done
 * at its priced end, one that was cancelled or has run for too long at once. */
#include "device/soft/timeline/flight.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "device/soft/soft_private.h"
#include "device/soft/timeline/follow.h"

enum flight_state { EXECUTING, EXECUTED, PRICED, WAITING };

struct ws_flight {
    struct ws_list link;  /* the device's, or that of the ended */
    struct ws_list order; /* the device's unpriced */
    struct ws_soft *device;
    struct ws_op *op;
    struct ws_vevent event;
    struct ws_vstall stall;
    /* flights_lock */
    enum flight_state state;
    bool preempt, cut, cancelled;
    bool idled; /* its blocks did nothing but wait, until the clock no longer minded */
    uint64_t preempt_ns;
    /* once priced */
    struct ws_reserved reserved;
    struct ws_meter_load load;
    bool loaded;
    /* of copies */
    enum ws_engine engine;
    uint64_t bytes;
    /* of launches */
    struct ws_executed_kernel x;
    struct ws_timing_kernel kernel;
    struct ws_priced priced;
    const struct ws_followed *followed; /* NULL: it is modelled */
    uint32_t *merged;
    double *left; /* of each unit, once cut */
};

static void fire(struct ws_vevent *e);
static void price_some(struct ws_soft *d);

static void stall_over(const void *device)
{
    price_some((struct ws_soft *)device);
}

/* NULL: it is no single user's, or the daemon's own. */
static const struct ws_payer *payer_of(const struct ws_op *op)
{
    return op->space ? ws_space_payer(op->space) : NULL;
}

bool ws_flight_begin(struct ws_soft *d, struct ws_op *op)
{
    struct ws_flight *f = ws_alloc(sizeof(*f));
    if (!f)
        return false;
    f->device = d;
    f->op = op;
    f->event = (struct ws_vevent){.seq = ws_vclock_seq(d->vclock), .fire = fire, .owner = f};
    const struct ws_soft_progress *p = ws_soft_progress_of(op);
    f->stall = (struct ws_vstall){.user = ws_vclock_enter(d->vclock, payer_of(op)),
                                  .stalled_host_ns = p ? p->stalled_host_ns : 0,
                                  .over = stall_over,
                                  .owner = d};
    ws_list_init(&f->link);
    ws_list_init(&f->order);
    pthread_mutex_lock(&d->flights_lock);
    uint64_t now = ws_vclock_stall(d->vclock, &f->stall), wake_ns = 0;
    if (!d->on) {
        d->on = true;
        wake_ns = d->options.wake_ns;
        ws_meter_set_on(d->meter, now, true);
    }
    op->ready_ns = WS_MAX(op->ready_ns, now + wake_ns);
    op->start_ns = op->end_ns = op->ready_ns;
    op->priv = f;
    ws_list_append(&d->flights, &f->link);
    d->n_flights++;
    ws_list_append(&d->unpriced, &f->order);
    pthread_mutex_unlock(&d->flights_lock);
    return true;
}

static void flight_free(struct ws_flight *f)
{
    ws_vclock_exit(f->device->vclock, f->stall.user);
    free(f->x.units);
    free(f->x.costs);
    ws_bill_give(&f->x.bill);
    ws_soft_progress_free(f->x.progress);
    free(f->merged);
    free(f->left);
    free(f);
}

static void unlink_locked(struct ws_flight *f)
{
    ws_list_remove(&f->link);
    ws_list_remove(&f->order);
    f->op->priv = NULL;
    f->device->n_flights--;
}

static void unlink_flight(struct ws_flight *f)
{
    pthread_mutex_lock(&f->device->flights_lock);
    unlink_locked(f);
    pthread_mutex_unlock(&f->device->flights_lock);
}

void ws_flight_drop(struct ws_op *op)
{
    struct ws_flight *f = op->priv;
    struct ws_soft *d = f->device;
    unlink_flight(f);
    ws_vclock_unstall(d->vclock, &f->stall);
    flight_free(f);
    price_some(d); /* those behind it */
}

/* ---- the end; the flight is nobody else's any more ---- */

/* What a launch leaves, or nothing. */
static void settle_progress(struct ws_flight *f)
{
    struct ws_op *op = f->op;
    bool left = f->x.n_executed < f->x.n_blocks;
    for (uint32_t i = 0; f->left && !left && i < f->x.n_units; i++)
        left = f->left[i] > 0;
    if (op->error || !left)
        return;
    ws_soft_progress_set(f->x.progress, f->x.n_executed, f->x.units, f->x.n_units, f->left);
    f->x.progress->bill = f->x.bill;
    f->x.progress->stalled_host_ns = f->stall.stalled_host_ns;
    op->preempted = true;
    op->launch.progress = &f->x.progress->base;
    f->x.units = NULL;
    f->x.bill = (struct ws_bill){0};
    f->x.progress = NULL;
}

static void complete(struct ws_flight *f)
{
    struct ws_soft *d = f->device;
    struct ws_op *op = f->op;
    if (f->loaded) {
        op->energy_uj = ws_meter_end(d->meter, &f->load, &op->alone_uj);
        ws_timing_release(d->timing, &f->reserved);
        op->start_ns = f->reserved.start_ns;
        op->end_ns = f->reserved.end_ns;
        if (f->idled) /* until now it has waited */
            op->end_ns = WS_MAX(op->end_ns, ws_vclock_now_ns(d->vclock));
    }
    if (op->kind == WS_OPK_LAUNCH)
        settle_progress(f);
    flight_free(f);
    ws_soft_done(d, op);
}

static void fire(struct ws_vevent *e)
{
    struct ws_flight *f = WS_CONTAINER_OF(e, struct ws_flight, event);
    unlink_flight(f);
    complete(f);
}

static void complete_cancelled(struct ws_flight *f)
{
    struct ws_soft *d = f->device;
    if (f->op->error != WS_DEV_E_CANCELLED && f->op->error != WS_DEV_E_TIMEOUT)
        ws_soft_fail(f->op, WS_DEV_E_CANCELLED, "cancelled");
    if (f->loaded) {
        uint64_t now = ws_vclock_now_ns(d->vclock);
        ws_timing_break(d->timing, now, &f->reserved);
        ws_meter_change(d->meter, now, &f->load, f->reserved.end_ns, &f->load.sms);
    }
    ws_vclock_unstall(d->vclock, &f->stall);
    complete(f);
}

/* ---- pricing ---- */

static void cut(struct ws_flight *f, uint64_t at_ns)
{
    struct ws_soft *d = f->device;
    if (f->op->error || f->op->kind != WS_OPK_LAUNCH)
        return;
    f->left = ws_alloc_array(WS_MAX(f->x.n_units, 1), sizeof(f->left[0]));
    if (!f->x.progress)
        f->x.progress = ws_soft_progress_new(f->op);
    if (!f->left || !f->x.progress) { /* then it goes on to the end of what was executed */
        free(f->left);
        f->left = NULL;
        return;
    }
    ws_timing_cut(d->timing, &f->kernel, at_ns, &f->reserved, f->left);
    ws_meter_change(d->meter, at_ns, &f->load, f->reserved.end_ns, &f->reserved.sms);
}

/* What was executed is placed in the timeline: lets it wait for its end, unless something was
 * wanted of it meanwhile. */
static void let_wait(struct ws_flight *f)
{
    struct ws_soft *d = f->device;
    pthread_mutex_lock(&d->flights_lock);
    while (!f->cancelled) {
        if (f->preempt && !f->cut) {
            f->cut = true;
            pthread_mutex_unlock(&d->flights_lock);
            cut(f, f->preempt_ns);
            pthread_mutex_lock(&d->flights_lock);
            continue;
        }
        uint64_t end_ns = f->reserved.end_ns;
        f->event.at_ns = end_ns;
        f->state = WAITING;
        if (ws_vclock_add(d->vclock, &f->event, &f->stall) > end_ns)
            d->n_overruns++;
        pthread_mutex_unlock(&d->flights_lock);
        return;
    }
    unlink_locked(f);
    pthread_mutex_unlock(&d->flights_lock);
    complete_cancelled(f);
}

/* @spec: of a kernel; NULL: a copy. */
static void priced(struct ws_flight *f, int r, const struct ws_gpu_spec *spec)
{
    struct ws_soft *d = f->device;
    if (r) {
        ws_soft_fail(f->op, WS_DEV_E_NO_MEMORY, "the host has no memory for its place in time");
        ws_soft_done(d, f->op);
        return;
    }
    f->load = (struct ws_meter_load){.start_ns = f->reserved.start_ns,
                                     .owner = f->op->space ? ws_space_id(f->op->space) : 0,
                                     .end_ns = f->reserved.end_ns,
                                     .sms = f->reserved.sms,
                                     .dynamic_mw_per_sm = spec ? spec->dynamic_mw_per_sm : 0,
                                     .own_mw = (int32_t)f->reserved.own_mw,
                                     .issue = f->reserved.issue};
    if (f->followed && ws_follow_own_mw(f->followed, spec, f->load.sms.n, &f->load.own_mw))
        f->load.issue = (struct ws_issue){0};
    f->loaded = true;
    ws_meter_begin(d->meter, ws_vclock_now_ns(d->vclock), &f->load);
    let_wait(f);
}

static int merge(struct ws_flight *f)
{
    bool any = false;
    for (uint32_t i = 0; i < f->x.n_units; i++)
        any |= f->x.units[i].n_blocks > 1;
    if (!any)
        return 0;
    f->merged = ws_alloc_array(f->x.n_units, sizeof(f->merged[0]));
    if (!f->merged)
        return -1;
    for (uint32_t i = 0; i < f->x.n_units; i++)
        f->merged[i] = WS_MAX(f->x.units[i].n_blocks, 1);
    return 0;
}

/* Takes measured times where the kernel has them, at the clocks that they were measured at.
 * *ret_own_mw: how much it was measured to draw above Eq. 2. Return: whether that is known. */
static bool follow(struct ws_flight *f, const struct ws_gpu_spec *spec, int32_t *ret_own_mw)
{
    struct ws_soft *d = f->device;
    const struct ws_executed_kernel *x = &f->x;
    const uint32_t *g = f->op->launch.grid;
    const struct ws_dmodule *m = f->op->launch.instance->module;
    uint64_t n_blocks = (uint64_t)g[0] * g[1] * g[2];
    uint32_t n_sms = f->op->launch.sms.n ? f->op->launch.sms.n : spec->n_sms;
    n_sms = (uint32_t)WS_MIN(n_sms, n_blocks);
    f->followed = ws_follow_find(d->options.followed, d->options.n_followed,
                                 m->info.kernels[f->op->launch.kernel].name);
    if (f->followed && (spec->core_mhz != d->base.spec.core_mhz ||
                        !ws_follow_price(f->followed, spec, n_sms, n_blocks, x->blocks_per_sm,
                                         x->units, x->n_units, x->costs)))
        f->followed = NULL;
    return f->followed && ws_follow_own_mw(f->followed, spec, n_sms, ret_own_mw);
}

static void price_kernel(struct ws_flight *f)
{
    struct ws_soft *d = f->device;
    struct ws_op *op = f->op;
    const struct ws_executed_kernel *x = &f->x;
    struct ws_gpu_spec spec;
    ws_timing_spec(d->timing, &spec);
    ws_soft_price(d, &spec, op,
                  &(struct ws_fit){.need = x->need, .blocks_per_sm = x->blocks_per_sm}, x->units,
                  x->n_units, x->costs, &f->priced);
    int32_t own_mw = 0;
    bool measured = follow(f, &spec, &own_mw);
    int r = merge(f);
    f->kernel = (struct ws_timing_kernel){
        .ready_ns = op->ready_ns,
        .need = x->need,
        .blocks_per_sm = x->blocks_per_sm,
        .sms = op->launch.sms,
        .n_blocks = x->n_units,
        .blocks = x->costs,
        .dram_share = f->priced.dram_share,
        .draw = measured ? NULL : &f->priced.draw,
        .own_mw = (uint32_t)WS_MAX(own_mw, 0),
        .merged = f->merged,
        .memory_bytes_per_s = spec.memory_bytes_per_s,
    };
    if (!r)
        r = ws_timing_reserve_kernel(d->timing, &f->kernel, &f->reserved);
    priced(f, r, &spec);
}

static void price(struct ws_flight *f)
{
    if (f->op->kind == WS_OPK_LAUNCH) {
        price_kernel(f);
        return;
    }
    priced(f,
           ws_timing_reserve_copy(f->device->timing, f->engine, f->op->ready_ns, f->bytes,
                                  &f->reserved),
           NULL);
}

/* The next in order that can be priced, or NULL. Those for which nobody waits any more leave the
 * order, so that each is passed once. */
static struct ws_flight *next_executed(struct ws_soft *d)
{
    struct ws_flight *f;
    while (!ws_list_empty(&d->unpriced)) {
        f = ws_list_entry(d->unpriced.next, struct ws_flight, order);
        if (f->state == EXECUTING && ws_vclock_stalls(d->vclock, &f->stall))
            return NULL;
        ws_list_remove(&f->order);
        if (f->state == EXECUTED)
            return f;
    }
    return NULL;
}

/* flights_lock is held, but not while one is priced. */
static void price_some_locked(struct ws_soft *d)
{
    struct ws_flight *f;
    if (!d->pricing) { /* else whoever is at it sees to it */
        d->pricing = true;
        while ((f = next_executed(d))) {
            f->state = PRICED;
            pthread_mutex_unlock(&d->flights_lock);
            price(f);
            pthread_mutex_lock(&d->flights_lock);
        }
        d->pricing = false;
    }
}

static void price_some(struct ws_soft *d)
{
    pthread_mutex_lock(&d->flights_lock);
    price_some_locked(d);
    pthread_mutex_unlock(&d->flights_lock);
}

bool ws_flight_has_idled(const struct ws_op *op)
{
    struct ws_flight *f = op->priv;
    return f->idled && !ws_vclock_stalls(f->device->vclock, &f->stall);
}

static void executed(struct ws_flight *f)
{
    struct ws_soft *d = f->device;
    pthread_mutex_lock(&d->flights_lock);
    f->state = EXECUTED;
    if (ws_list_empty(&f->order)) /* it was passed: its turn is long over */
        ws_list_append(d->unpriced.next, &f->order);
    f->cancelled |= f->op->error == WS_DEV_E_TIMEOUT; /* others have waited long enough */
    f->idled = ws_flight_has_idled(f->op);
    ws_vclock_executed(d->vclock, &f->stall); /* it may have to wait for one that waits */
    d->n_inside++;                            /* once f is gone the device may be closed */
    price_some_locked(d);
    if (!--d->n_inside)
        pthread_cond_broadcast(&d->left);
    pthread_mutex_unlock(&d->flights_lock);
}

void ws_flight_quiesce(struct ws_soft *d)
{
    pthread_mutex_lock(&d->flights_lock);
    while (d->n_inside)
        pthread_cond_wait(&d->left, &d->flights_lock);
    pthread_mutex_unlock(&d->flights_lock);
}

void ws_flight_kernel(struct ws_op *op, const struct ws_executed_kernel *x)
{
    struct ws_flight *f = op->priv;
    f->x = *x;
    executed(f);
}

void ws_flight_copy(struct ws_op *op, enum ws_engine e, uint64_t bytes)
{
    struct ws_flight *f = op->priv;
    f->engine = e;
    f->bytes = bytes;
    executed(f);
}

void ws_flight_idle(const struct ws_op *op, bool idle)
{
    struct ws_flight *f = op->priv;
    f->idled |= idle;
    ws_vclock_idle(f->device->vclock, &f->stall, idle);
}

/* ---- what the loop wants of it ---- */

void ws_flight_preempt(struct ws_soft *d, const struct ws_op *op)
{
    pthread_mutex_lock(&d->flights_lock);
    struct ws_flight *f = op->priv;
    if (!f || f->preempt) {
        pthread_mutex_unlock(&d->flights_lock);
        return;
    }
    bool ours = false;
    uint64_t now;
    if (f->state != WAITING)
        now = ws_vclock_now_ns(d->vclock);
    else if ((ours = ws_vclock_take(d->vclock, &f->event, &f->stall, &now)))
        f->state = PRICED;
    f->preempt = true;
    f->preempt_ns = now;
    pthread_mutex_unlock(&d->flights_lock);
    if (ours)
        let_wait(f);
}

/* Flights of a space that began before something happened are to be cancelled. */
struct cancelling {
    struct ws_vevent event;
    struct ws_soft *device;
    uint64_t space; /* ws_space_id() */
};

/* Looks at the next few of the device's. Those that wait for their end go to @ended. */
static void cancel_some(const struct cancelling *c, uint32_t n, struct ws_list *ended)
{
    struct ws_soft *d = c->device;
    struct ws_list *l;
    pthread_mutex_lock(&d->flights_lock);
    while (n-- && (l = ws_list_pop(&d->flights))) {
        struct ws_flight *f = ws_list_entry(l, struct ws_flight, link);
        uint64_t now;
        ws_list_append(&d->flights, l);
        if (!f->op->space || ws_space_id(f->op->space) != c->space || f->event.seq > c->event.seq)
            continue;
        f->cancelled = true;
        if (f->state == WAITING && ws_vclock_take(d->vclock, &f->event, NULL, &now)) {
            unlink_locked(f);
            ws_list_append(ended, &f->link);
        }
    }
    pthread_mutex_unlock(&d->flights_lock);
}

/* On the clock's thread: nobody else changes the order of the flights. */
static void cancel_all(struct ws_vevent *e)
{
    enum { AT_ONCE = 64 };
    struct cancelling *c = WS_CONTAINER_OF(e, struct cancelling, event);
    struct ws_list ended, *l;
    pthread_mutex_lock(&c->device->flights_lock);
    uint32_t left = c->device->n_flights;
    pthread_mutex_unlock(&c->device->flights_lock);
    ws_list_init(&ended);
    while (left) {
        uint32_t n = WS_MIN(left, (uint32_t)AT_ONCE);
        left -= n;
        cancel_some(c, n, &ended);
        while ((l = ws_list_pop(&ended)))
            complete_cancelled(ws_list_entry(l, struct ws_flight, link));
    }
    free(c);
}

void ws_flight_cancel(struct ws_soft *d, const struct ws_space *space)
{
    struct cancelling *c = ws_alloc(sizeof(*c));
    if (!c) /* then they end in their time */
        return;
    *c = (struct cancelling){.event = {.at_ns = ws_vclock_now_ns(d->vclock),
                                       .seq = ws_vclock_seq(d->vclock),
                                       .fire = cancel_all,
                                       .owner = d},
                             .device = d,
                             .space = ws_space_id(space)};
    (void)ws_vclock_add(d->vclock, &c->event, NULL);
}
