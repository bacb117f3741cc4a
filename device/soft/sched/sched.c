// SPDX-License-Identifier: Apache-2.0
/* Worker threads and turns.
 *
 * A worker holds the lock only to take the work of one turn and to give back its results. A turn
 * lasts about a millisecond, or as long as a few short blocks take. Fairness: the ring gives each
 * user one turn at a time, however many clients it has, and each client of the user one after the
 * other, however much work it has.
 *
 * Waking: adding work wakes one sleeping worker. A worker that took a turn and left more work in
 * the ring wakes the next worker. So one added block costs one wake-up, and many spread by
 * themselves. */
#include "device/soft/sched/sched.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/payer.h"
#include "device/soft/soft_private.h"

enum { CANCEL_AT_ONCE = 32, REAP_NS = 200000 }; /* 32 kernels, blocks or copies */

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ws_sched *the_sched; /* the_lock */

static bool has_work(const struct ws_tenant *t)
{
    return !t->cancelled && (ws_copy_has_work_locked(t) || ws_launch_has_work_locked(t));
}

static void ring_add(struct ws_sched *s, struct ws_tenant *t)
{
    if (t->in_ring || !has_work(t))
        return;
    t->in_ring = true;
    ws_list_append(&t->payer->tenants, &t->ring);
    if (ws_list_empty(&t->payer->in_ring))
        ws_list_append(&s->ring, &t->payer->in_ring);
}

static void ring_remove(struct ws_tenant *t)
{
    t->in_ring = false;
    ws_list_remove(&t->ring);
    if (ws_list_empty(&t->payer->tenants))
        ws_list_remove(&t->payer->in_ring);
}

/* The tenant whose turn it is; its payer goes behind the others. NULL: nobody has work. */
static struct ws_tenant *ring_pop(struct ws_sched *s)
{
    struct ws_list *first = ws_list_pop(&s->ring);
    if (!first)
        return NULL;
    struct ws_payer *p = ws_list_entry(first, struct ws_payer, in_ring);
    struct ws_tenant *t = ws_list_entry(p->tenants.next, struct ws_tenant, ring);
    ws_list_append(&s->ring, &p->in_ring);
    ring_remove(t);
    return t;
}

static bool has_ended(const struct ws_sched *s)
{
    return !ws_list_empty(&s->dead) || !ws_list_empty(&s->to_cancel) || !ws_list_empty(&s->runs) ||
           !ws_list_empty(&s->xfers);
}

/* Wakes a worker, if there is something to do. */
static void wake_locked(struct ws_sched *s)
{
    if (s->n_idle && (!ws_list_empty(&s->ring) || has_ended(s)))
        pthread_cond_signal(&s->work);
}

/* Frees states of blocks for about as long as a short turn takes: a client may have very many. */
static void reap_some(struct ws_sched *s)
{
    uint64_t until_ns = 0, now;
    while (ws_sched_reap(s)) {
        now = ws_clock_ns();
        until_ns = until_ns ? until_ns : now + REAP_NS;
        if (now >= until_ns)
            return;
    }
}

/* One operation less for each that has ended. */
static void put_ended(struct ws_tenant *t, const struct ws_list *ended)
{
    ws_list_for_each (l, ended)
        ws_tenant_put_locked(t);
}

/* Ends a few kernels and copies of a cancelled tenant. */
static void cancel_some(struct ws_sched *s)
{
    struct ws_list runs, xfers, *l = ws_list_pop(&s->to_cancel);
    if (!l)
        return;
    struct ws_tenant *t = ws_list_entry(l, struct ws_tenant, to_cancel);
    ws_list_init(&runs);
    ws_list_init(&xfers);
    bool more = ws_launch_cancel_some_locked(s, t, CANCEL_AT_ONCE, &runs);
    more |= ws_copy_cancel_some_locked(t, CANCEL_AT_ONCE, &xfers);
    if (more)
        ws_list_append(&s->to_cancel, &t->to_cancel);
    put_ended(t, &runs);
    put_ended(t, &xfers);
    while ((l = ws_list_pop(&runs)))
        ws_list_append(&s->runs, l);
    while ((l = ws_list_pop(&xfers)))
        ws_list_append(&s->xfers, l);
}

/* A kernel and a copy of those that were cancelled or preempted. Return: there was one, and the
 * lock was given away meanwhile. */
static bool finish_some(struct ws_sched *s)
{
    struct ws_list *run = ws_list_pop(&s->runs), *xfer = ws_list_pop(&s->xfers), runs, xfers;
    if (!run && !xfer)
        return false;
    ws_list_init(&runs);
    ws_list_init(&xfers);
    if (run)
        ws_list_append(&runs, run);
    if (xfer)
        ws_list_append(&xfers, xfer);
    wake_locked(s);
    pthread_mutex_unlock(&s->lock);
    ws_launch_finish(&runs);
    ws_copy_finish(&xfers);
    pthread_mutex_lock(&s->lock);
    return true;
}

void ws_sched_ready_locked(struct ws_sched *s, struct ws_tenant *t)
{
    ring_add(s, t);
    wake_locked(s);
}

/* Kernels and copies alternate; what there is none of passes. */
static bool tenant_take(struct ws_sched *s, struct ws_tenant *t, struct ws_turn *turn)
{
    turn->xfer = NULL;
    turn->refused = NULL;
    turn->n = 0;
    turn->tenant = t;
    if (t->cancelled)
        return false;
    if (t->n_turns++ & 1)
        return ws_launch_take_locked(s, t, turn) || ws_copy_take_locked(t, turn);
    return ws_copy_take_locked(t, turn) || ws_launch_take_locked(s, t, turn);
}

static bool pick(struct ws_sched *s, struct ws_turn *turn)
{
    struct ws_tenant *t;
    while ((t = ring_pop(s))) {
        bool got = tenant_take(s, t, turn);
        ring_add(s, t);
        if (got)
            return true;
    }
    return false;
}

static void *worker(void *arg)
{
    struct ws_sched *s = arg;
    struct ws_turn turn;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        reap_some(s);
        cancel_some(s);
        bool finished = finish_some(s);
        if (!pick(s, &turn)) {
            if (finished || has_ended(s) || s->stop) /* the lock was given away meanwhile */
                continue;
            s->n_idle++;
            pthread_cond_wait(&s->work, &s->lock);
            s->n_idle--;
            continue;
        }
        wake_locked(s);
        pthread_mutex_unlock(&s->lock);
        if (turn.xfer)
            ws_copy_turn(&turn);
        else
            ws_launch_turn(&turn);
        pthread_mutex_lock(&s->lock);
        struct ws_list runs, xfers;
        ws_list_init(&runs);
        ws_list_init(&xfers);
        if (turn.xfer)
            ws_copy_give_back_locked(&turn, &xfers);
        else
            ws_launch_give_back_locked(s, &turn, &runs);
        ring_add(s, turn.tenant);
        if (ws_list_empty(&runs) && ws_list_empty(&xfers))
            continue;
        put_ended(turn.tenant, &runs);
        put_ended(turn.tenant, &xfers);
        wake_locked(s);
        pthread_mutex_unlock(&s->lock);
        ws_launch_finish(&runs);
        ws_copy_finish(&xfers);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void sched_stop(struct ws_sched *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->n_threads; i++)
        pthread_join(s->threads[i], NULL);
    pthread_mutex_lock(&s->lock);
    while (ws_sched_reap(s))
        ;
    pthread_mutex_unlock(&s->lock);
    ws_list_for_each_safe (l, &s->free_blocks)
        free(ws_list_entry(l, struct ws_dealt_block, link));
    pthread_cond_destroy(&s->work);
    pthread_mutex_destroy(&s->lock);
    free(s->threads);
    free(s);
}

static int sched_start(struct ws_sched **ret, uint32_t n_workers)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = n_workers ? n_workers : n_cores > 0 ? (uint32_t)n_cores : 1;
    struct ws_sched *s = ws_alloc(sizeof(*s));
    pthread_t *threads = ws_alloc_array(n, sizeof(*threads));
    if (!s || !threads) {
        free(s);
        free(threads);
        return ws_raise(-ENOMEM);
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    ws_list_init(&s->ring);
    ws_list_init(&s->tenants);
    ws_list_init(&s->free_blocks);
    ws_list_init(&s->dead);
    ws_list_init(&s->to_cancel);
    ws_list_init(&s->runs);
    ws_list_init(&s->xfers);
    s->threads = threads;
    sigset_t all, old; /* signals are the daemon loop's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = 0;
    while (!r && s->n_threads < n) {
        r = pthread_create(&s->threads[s->n_threads], NULL, worker, s);
        s->n_threads += !r;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r) {
        sched_stop(s);
        return ws_raise(-EAGAIN);
    }
    *ret = s;
    return 0;
}

int ws_sched_join(struct ws_sched **ret, uint32_t n_workers)
{
    pthread_mutex_lock(&the_lock);
    int r = the_sched ? 0 : sched_start(&the_sched, n_workers);
    if (!r) {
        the_sched->n_devices++;
        *ret = the_sched;
    }
    pthread_mutex_unlock(&the_lock);
    return r;
}

void ws_sched_leave(struct ws_sched *s)
{
    pthread_mutex_lock(&the_lock);
    bool last = !--s->n_devices;
    if (last)
        the_sched = NULL;
    pthread_mutex_unlock(&the_lock);
    if (last)
        sched_stop(s);
}

struct ws_tenant *ws_tenant_get_locked(struct ws_soft *d, struct ws_space *space)
{
    struct ws_tenant *t = d->tenants; /* those with work in flight: few */
    while (t && (t->space != space || t->cancelled))
        t = t->next;
    if (t) {
        t->n_ops++;
        return t;
    }
    uint32_t n_sms = d->base.spec.n_sms;
    t = d->free_tenants;
    if (t)
        d->free_tenants = t->next;
    else if (!(t = ws_alloc(sizeof(*t) + n_sms * sizeof(t->sms[0]))))
        return NULL;
    memset(t, 0, sizeof(*t) + n_sms * sizeof(t->sms[0]));
    t->space = space;
    t->payer = ws_payer_ref(ws_payer_or_own(space ? ws_space_payer(space) : NULL));
    t->device = d;
    t->n_ops = 1;
    t->n_feeds = 1;
    struct ws_list *lists[] = {&t->ring,    &t->runs,   &t->dealing, &t->front,    &t->rotated,
                               &t->starved, &t->spared, &t->xfers,   &t->to_cancel};
    for (unsigned i = 0; i < WS_ARRAY_SIZE(lists); i++)
        ws_list_init(lists[i]);
    t->next = d->tenants;
    d->tenants = t;
    ws_list_append(&d->sched->tenants, &t->all);
    return t;
}

void ws_tenant_put_locked(struct ws_tenant *t)
{
    if (--t->n_ops)
        return;
    struct ws_soft *d = t->device;
    ws_tenant_not_hungry_locked(t);
    ws_list_remove(&t->all);
    ws_list_remove(&t->to_cancel);
    if (t->in_ring)
        ring_remove(t);
    t->payer = ws_payer_unref(t->payer);
    struct ws_tenant **at = &d->tenants;
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->next = d->free_tenants;
    d->free_tenants = t;
}

void ws_tenant_cancel_locked(struct ws_sched *s, struct ws_tenant *t)
{
    if (t->cancelled)
        return;
    t->cancelled = true;
    ws_list_append(&s->to_cancel, &t->to_cancel);
    wake_locked(s);
}
