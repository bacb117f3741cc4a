// SPDX-License-Identifier: Apache-2.0
/* Turns: workers execute the blocks that were dealt, and give them back.
 *
 * A worker takes one block that is in the middle of something, or as many short blocks as make a
 * turn (by what blocks of this kernel took before). A block continues over several turns until its
 * slice is used up. Then it goes behind the client's other blocks, because programs may wait
 * between co-resident blocks, and an endless block must not keep out its neighbours. A block that
 * waits (the interpreter saw that all its warps spin, and returned early) loses its turn at once
 * and gets short turns until it does something else. A block that might wait (loads or atomics,
 * arithmetic on integers, nothing written) has a slice of one turn. While no block is in the middle
 * of its slice, new blocks go before rotated ones four times out of five: a grid-wide barrier soon
 * has all its blocks, and no block starves.
 *
 * The blocks of a cluster are one to all this: a worker runs them by turns, each for a step, so
 * that what they do to each other's shared memory needs no atomic operations of the host.
 *
 * Preemption: no more blocks are dealt, and those that were dealt run to their end. So what was
 * executed is always the first blocks of the grid, and a launch that is resumed begins with the
 * next one. If all dealt blocks (seem to) wait for something, dealing goes on instead.
 *
 * Urging: while other clients wait for what a kernel has, its blocks' own time is counted, and one
 * that runs for too long ends the kernel, or its client's part of it. Where the kernel is to stop
 * as well, its blocks are finished one after another: then no block waits for all the others
 * before it ends, and one that has no end is found soon. Blocks that seem to wait still take
 * turns. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/launch_check.h"
#include "device/soft/sched/run.h"

/* ---- execution; no locks held ---- */

static uint64_t insns_of(const struct ws_exec_work *w)
{
    uint64_t n = 0;
    for (int c = 0; c < _WS_WORK_N; c++)
        n += w->n_warp_insns[c];
    return n;
}

static bool may_be_waiting(const struct ws_exec_work *w, uint64_t n_insns)
{
    return !w->n_global_stores && !w->n_shared_accesses && !w->n_barriers &&
           !w->n_warp_insns[WS_WORK_FP32] && !w->n_warp_insns[WS_WORK_FP64] &&
           !w->n_warp_insns[WS_WORK_SFU] && !w->n_warp_insns[WS_WORK_HALF] &&
           (w->n_global_loads + w->n_atomics) * 64 >= n_insns;
}

/* Whether a block whose warps all spin did nothing but that: it wrote nothing, and looked only
 * where it had looked before. */
static bool only_polls(struct ws_dealt_block *b, const struct ws_exec_work *w)
{
    uint64_t n_looked = ws_blockrun_n_looked(b->state);
    bool again = n_looked && n_looked == b->n_looked;
    b->n_looked = n_looked;
    return again && !w->n_global_stores && !w->n_shared_accesses && !w->n_barriers && !w->n_atomics;
}

/* Adds to what the block's part has done. Return: that is over the limit, and it must stop. */
static bool part_spent(struct ws_run *r, uint64_t linear, uint64_t n, uint64_t limit, bool more)
{
    uint64_t number;
    struct ws_grid_part *p = ws_grid_part_of(&r->grid, linear, &number);
    uint64_t total = atomic_fetch_add(&p->n_thread_insns, n) + n;
    if (!more || !limit || total <= limit)
        return false;
    ws_run_stop_part(p, WS_DEV_E_TIMEOUT,
                     "%s: not finished after %llu thread instructions (limit: max_kernel_insns)",
                     p->kernel, (unsigned long long)limit);
    return true;
}

/* Runs a block for at most about @budget. */
enum ws_step ws_block_run(struct ws_dealt_block *b, uint64_t budget, uint64_t *ret_used)
{
    struct ws_run *r = b->run;
    uint64_t limit = r->device->options.max_kernel_insns;
    enum ws_step step = WS_STEP_MORE;
    *ret_used = 0;
    while (step == WS_STEP_MORE && *ret_used < budget) {
        struct ws_exec_work w = {0};
        uint64_t ask = WS_MIN(WS_STEP_INSNS, budget - *ret_used);
        step = ws_blockrun_step(b->state, ask, &w);
        uint64_t n = insns_of(&w),
                 total = atomic_fetch_add(&r->n_thread_insns, w.n_thread_insns) + w.n_thread_insns;
        *ret_used += WS_MAX(n, 1);
        b->waits = step == WS_STEP_MORE && n < ask / 2;
        b->polls = only_polls(b, &w) && b->waits;
        ws_work_add(b->polls ? &b->polled : &b->work, &w);
        if (WS_UNLIKELY(r->grid.parts != NULL) &&
            part_spent(r, b->linear, w.n_thread_insns, limit, step == WS_STEP_MORE))
            return WS_STEP_STOPPED;
        if (!r->grid.parts && limit && total > limit && step == WS_STEP_MORE) {
            ws_run_stop(r, WS_DEV_E_TIMEOUT,
                        "%s: not finished after %llu thread instructions (limit: max_kernel_insns)",
                        ws_run_name(r), (unsigned long long)limit);
            return WS_STEP_STOPPED;
        }
        if (b->waits)
            break;
        b->may_wait = may_be_waiting(&w, n);
        if (b->may_wait)
            b->slice_insns += WS_SLICE_INSNS / (WS_TURN_INSNS / WS_STEP_INSNS);
    }
    b->slice_insns += *ret_used;
    return step;
}

/* Each block of a cluster that has not ended runs for a step; adds what they took. What the
 * scheduler wants to know of the cluster is then said of its first block. */
static enum ws_step cluster_round(struct ws_dealt_block *first, uint64_t *used)
{
    bool waits = true, may_wait = true, looks = false, only_looks = true;
    uint64_t n_opened = ws_blockrun_n_opened(first->state);
    struct ws_dealt_block *b, *live = NULL, *able = NULL;
    for (b = first; b; b = b->mate) {
        uint64_t n;
        if (b->ended)
            continue;
        enum ws_step step = ws_block_run(b, WS_STEP_INSNS, &n);
        if (step == WS_STEP_STOPPED)
            return step;
        *used += n;
        first->slice_insns += b == first ? 0 : n;
        b->ended = step == WS_STEP_DONE;
        if (b->ended)
            continue;
        live = b;
        waits &= b->waits;
        may_wait &= b->may_wait;
        looks |= b->polls;
        only_looks &= b->polls || ws_blockrun_is_stuck(b->state);
    }
    for (b = first; b && !able; b = b->mate)
        able = b->ended || ws_blockrun_is_stuck(b->state) ? NULL : b;
    if (live && !able)
        ws_blockrun_deadlock(live->state);
    first->waits = waits && n_opened == ws_blockrun_n_opened(first->state);
    first->may_wait = may_wait;
    first->polls = looks && only_looks;
    return !live ? WS_STEP_DONE : able ? WS_STEP_MORE : WS_STEP_STOPPED;
}

/* Runs a block, or the blocks of a cluster by turns, for at most about @budget. */
static enum ws_step run(struct ws_dealt_block *b, uint64_t budget, uint64_t *ret_used)
{
    if (!b->mate)
        return ws_block_run(b, budget, ret_used);
    enum ws_step step;
    *ret_used = 0;
    do
        step = cluster_round(b, ret_used);
    while (step == WS_STEP_MORE && *ret_used < budget && !b->waits);
    return step;
}

static struct ws_grid_part *part_of(const struct ws_dealt_block *b)
{
    uint64_t number;
    return ws_grid_part_of(&b->run->grid, b->linear, &number);
}

/* It keeps others waiting, and there is no end to be seen. */
static void time_out(const struct ws_dealt_block *b, uint64_t limit_ns)
{
    unsigned long long ms = limit_ns / WS_NS_PER_MS;
    struct ws_grid_part *p = part_of(b);
    if (p)
        ws_run_stop_part(p, WS_DEV_E_TIMEOUT,
                         "%s: a block ran for %llu ms while other clients waited (limit: "
                         "max_kernel_ms)",
                         p->kernel, ms);
    else
        ws_run_stop(b->run, WS_DEV_E_TIMEOUT,
                    "%s: a block ran for %llu ms while other clients waited (limit: "
                    "max_kernel_ms)",
                    ws_run_name(b->run), ms);
}

/* Of the host's processor: a busy host does not make a block look longer than it is. */
static uint64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* run(), where other clients wait. */
static enum ws_step run_timed(struct ws_dealt_block *b, uint64_t budget, uint64_t limit_ns,
                              uint64_t *ret_used)
{
    uint64_t before = thread_ns();
    enum ws_step step = run(b, budget, ret_used);
    b->turn_ns = thread_ns() - before;
    b->host_ns += b->turn_ns;
    if (step == WS_STEP_MORE && b->host_ns >= limit_ns * b->run->n_cluster)
        time_out(b, limit_ns);
    return step;
}

int ws_block_begin(struct ws_dealt_block *b)
{
    int e = b->state ? 0 : ws_state_new(b);
    if (e)
        return e;
    struct ws_blockrun *all[WS_CLUSTER_MAX];
    uint32_t n = 0;
    for (; b; b = b->mate) {
        ws_blockrun_start(b->state, ws_grid_in_clusters(&b->run->grid, b->linear), b->sm, b->slot);
        b->started = true;
        all[n++] = b->state;
    }
    if (n > 1)
        ws_blockrun_join(all, n);
    return 0;
}

/* Runs blocks of the turn, from @first on, that have not begun, for a step each, in the state that
 * the first one has: so they cost little beside what they do. What a block waits for is only seen
 * in the steps behind. Return: how many have begun; all but the last one have ended. */
static uint32_t run_several(struct ws_turn *turn, uint32_t first, uint64_t *used)
{
    enum { SEVERAL = 32 };
    struct ws_block_ask asks[SEVERAL];
    struct ws_dealt_block *const *b = turn->blocks + first;
    struct ws_run *r = b[0]->run;
    uint32_t n = 0;
    uint64_t n_thread_insns = 0, left = WS_TURN_INSNS - WS_MIN(*used, (uint64_t)WS_TURN_INSNS);
    if (r->grid.parts || r->n_cluster > 1 ||
        atomic_load_explicit(&r->limit_ns, memory_order_relaxed))
        return 0;
    for (; n < SEVERAL && first + n < turn->n && b[n]->run == r && !b[n]->started; n++)
        asks[n] = (struct ws_block_ask){
            .linear = b[n]->linear, .smid = b[n]->sm, .slot = b[n]->slot, .work = &b[n]->work};
    n = n < 2 ? 0 : ws_blockrun_run(b[0]->state, asks, n, WS_STEP_INSNS, left);
    for (uint32_t k = 0; k < n; k++) {
        b[k]->started = true;
        b[k]->starved = false;
        b[k]->slice_insns = insns_of(&b[k]->work);
        turn->outcome[first + k] = (uint8_t)asks[k].step;
        *used += b[k]->slice_insns;
        n_thread_insns += b[k]->work.n_thread_insns;
    }
    if (n_thread_insns)
        atomic_fetch_add(&r->n_thread_insns, n_thread_insns);
    if (n > 1) { /* the last one may be in the middle of something */
        struct ws_blockrun *own = b[n - 1]->state;
        b[n - 1]->state = b[0]->state;
        b[0]->state = own;
    }
    return n;
}

void ws_launch_turn(struct ws_turn *turn)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < turn->n; i++) {
        struct ws_dealt_block *b = turn->blocks[i], *before = i ? turn->blocks[i - 1] : NULL;
        turn->outcome[i] = WS_STEP_MORE;
        b->starved = false;
        if (!b->started) {
            if (used > WS_TURN_INSNS)
                continue; /* earlier ones took longer than expected: back to the queue */
            if (!b->state && !b->mate && before && before->run == b->run &&
                turn->outcome[i - 1] == WS_STEP_DONE) {
                b->state = before->state;
                before->state = NULL;
            }
            int e = ws_run_stopped(b->run) ? -ECANCELED : b->state ? 0 : ws_state_new(b);
            b->starved = e > 0;
            if (e < 0)
                turn->outcome[i] = WS_STEP_STOPPED;
            if (e)
                continue;
            uint32_t several = run_several(turn, i, &used);
            i += several ? several - 1 : 0;
            b = turn->blocks[i];
            if (several && turn->outcome[i] != WS_STEP_MORE)
                continue;
            if (!several)
                (void)ws_block_begin(b);
        }
        uint64_t n, budget = b->waits ? WS_WAITING_INSNS : WS_TURN_INSNS,
                    limit_ns = atomic_load_explicit(&b->run->limit_ns, memory_order_relaxed);
        turn->outcome[i] = (uint8_t)(WS_UNLIKELY(limit_ns) ? run_timed(b, budget, limit_ns, &n)
                                                           : run(b, budget, &n));
        used += n;
    }
}

/* ---- results; the scheduler's lock is held ---- */

/* A block, or all of a cluster. */
static void block_end(struct ws_sched *s, struct ws_tenant *t, struct ws_dealt_block *b)
{
    struct ws_run *r = b->run;
    const struct ws_grid_part *p = part_of(b);
    if (WS_UNLIKELY(p && atomic_load(&p->stop) == WS_DEV_E_TIMEOUT)) /* the others don't wait for */
        b->work = b->polled = (struct ws_exec_work){0};              /* the time it would take */
    r->n_live--;
    r->n_waiting -= b->waiting;
    r->n_polling -= b->polling;
    t->deal_blocked = false;
    for (struct ws_dealt_block *next; b; b = next) {
        next = b->mate;
        if (b->started)
            ws_run_count(r, b);
        ws_run_vacate_locked(r, &t->sms[b->sm], b->slot);
        ws_block_put_locked(s, r, b);
    }
}

/* Ends the blocks of @r that are not in a worker's hands. */
static void blocks_drop(struct ws_sched *s, struct ws_tenant *t, const struct ws_run *r)
{
    struct ws_list *queues[] = {&t->starved, &t->front, &t->rotated};
    for (unsigned i = 0; i < WS_ARRAY_SIZE(queues); i++)
        ws_list_for_each_safe (it, queues[i]) {
            struct ws_dealt_block *b = ws_list_entry(it, struct ws_dealt_block, link);
            if (b->run != r)
                continue;
            ws_list_remove(&b->link);
            block_end(s, t, b);
        }
}

/* Forgets what of a stopped kernel is not in a worker's hands. */
static void run_abort(struct ws_sched *s, struct ws_run *r)
{
    if (r->aborted)
        return;
    r->aborted = true;
    ws_list_remove(&r->deal_link);
    r->n_blocks = r->n_dealt;
    blocks_drop(s, r->tenant, r);
    r->tenant->deal_blocked = false;
}

static void run_settle(struct ws_sched *s, struct ws_run *r, struct ws_list *ended)
{
    if (ws_run_stopped(r))
        run_abort(s, r);
    if (r->n_dealt < r->n_blocks || r->n_live)
        return;
    ws_run_bury_spares_locked(s, r);
    ws_list_remove(&r->parted);
    ws_list_remove(&r->link);
    r->op->run = NULL;
    ws_list_append(ended, &r->link);
}

static void block_waiting(struct ws_dealt_block *b, bool waiting)
{
    if (b->waiting != waiting)
        b->run->n_waiting += waiting ? 1 : -1;
    b->waiting = waiting;
}

/* While all of a kernel's blocks poll, its clock may go on (vclock.h). */
static void block_polling(struct ws_dealt_block *b, bool polling)
{
    struct ws_run *r = b->run;
    if (b->polling != polling)
        r->n_polling += polling ? 1 : -1;
    b->polling = polling;
    bool idle = r->n_polling == r->n_live;
    if (r->device->vclock && r->idle != idle)
        ws_flight_idle(r->op, idle);
    r->idle = idle;
}

/* A preempted kernel all of whose blocks wait may wait for some that were not dealt: then it has to
 * go on. */
static void run_unblock(struct ws_run *r)
{
    if (!r->stopping || r->n_waiting < r->n_live)
        return;
    r->stopping = false;
    r->n_blocks = r->n_all;
    ws_list_append(&r->tenant->dealing, &r->deal_link);
    r->tenant->deal_blocked = false;
}

/* While others wait: a kernel all of whose blocks wait has the time of one block. */
static void run_waits(struct ws_run *r, const struct ws_dealt_block *b)
{
    uint64_t limit_ns = r->limit_ns;
    if (!limit_ns)
        return;
    if (r->n_waiting < r->n_live)
        r->waits_ns = 0;
    else if ((r->waits_ns += b->turn_ns) >= limit_ns)
        time_out(b, limit_ns);
}

bool ws_launch_urge_locked(struct ws_sched *s, const struct ws_op *op, uint64_t limit_ns)
{
    struct ws_run *r = op->run;
    if (!r)
        return false;
    r->limit_ns = limit_ns;
    if (ws_run_starves_locked(r)) /* it may not wait any longer */
        ws_sched_feed_locked(s, r->payer);
    return true;
}

/* Where a block that is not through waits for its next turn. */
static void block_queue(struct ws_tenant *t, struct ws_dealt_block *b)
{
    const struct ws_run *r = b->run;
    bool waits = b->waits || b->may_wait, one_by_one = r->stopping && r->limit_ns,
         used_up = b->slice_insns >= WS_SLICE_INSNS;
    bool rotate = b->started && (b->waits || (used_up && (waits || !one_by_one)));
    if (rotate)
        b->slice_insns = 0;
    ws_list_append(rotate       ? &t->rotated
                   : one_by_one ? t->front.next /* before it: the first */
                                : &t->front,
                   &b->link);
    block_waiting(b, rotate && waits);
}

void ws_launch_preempt_locked(struct ws_sched *s, const struct ws_op *op)
{
    struct ws_run *r = op->run;
    if (!r || r->n_dealt == r->n_blocks ||
        (!r->progress && !(r->progress = ws_soft_progress_new(op))))
        return;
    struct ws_tenant *t = r->tenant;
    r->stopping = true;
    r->n_blocks = r->n_dealt;
    ws_list_remove(&r->deal_link);
    t->deal_blocked = false;
    run_settle(s, r, &s->runs);
    ws_sched_ready_locked(s, t); /* who stood behind it */
    if (!op->run)
        ws_tenant_put_locked(t);
}

void ws_launch_give_back_locked(struct ws_sched *s, struct ws_turn *turn, struct ws_list *ended)
{
    struct ws_tenant *t = turn->tenant;
    if (WS_UNLIKELY(turn->refused != NULL)) {
        turn->refused->n_live--;
        run_settle(s, turn->refused, ended);
    }
    for (uint32_t i = 0; i < turn->n; i++) {
        struct ws_dealt_block *b = turn->blocks[i];
        struct ws_run *r = b->run;
        if (turn->outcome[i] == WS_STEP_MORE && !ws_run_stopped(r) && b->starved) {
            ws_list_append(&t->starved, &b->link);
            ws_tenant_starve_locked(s, t, r);
            continue;
        }
        if (turn->outcome[i] == WS_STEP_MORE && !ws_run_stopped(r)) {
            block_queue(t, b);
            block_polling(b, b->polls);
            run_waits(r, b);
            run_unblock(r);
            continue;
        }
        block_end(s, t, b);
        run_settle(s, r, ended);
    }
}

void ws_launch_cancel_parts_locked(struct ws_soft *d, const struct ws_space *space)
{
    ws_list_for_each (it, &d->parted) {
        struct ws_run *r = ws_list_entry(it, struct ws_run, parted);
        for (uint32_t k = 0; k < r->grid.n_parts; k++)
            if (r->grid.parts[k].space == space)
                ws_run_stop_part(&r->grid.parts[k], WS_DEV_E_CANCELLED, "%s: cancelled",
                                 r->grid.parts[k].kernel);
    }
}

static void run_cancel(struct ws_run *r)
{
    ws_run_stop(r, WS_DEV_E_CANCELLED, "%s: cancelled", ws_run_name(r));
}

/* Blocks first: then no kernel has to look for its own among those of all. */
bool ws_launch_cancel_some_locked(struct ws_sched *s, struct ws_tenant *t, unsigned n,
                                  struct ws_list *ended)
{
    struct ws_list *queues[] = {&t->starved, &t->front, &t->rotated}, *l;
    for (unsigned i = 0; i < WS_ARRAY_SIZE(queues); i++)
        while ((l = n ? ws_list_pop(queues[i]) : NULL)) {
            struct ws_dealt_block *b = ws_list_entry(l, struct ws_dealt_block, link);
            run_cancel(b->run);
            block_end(s, t, b);
            n--;
        }
    ws_list_for_each_safe (it, &t->runs) {
        struct ws_run *r = ws_list_entry(it, struct ws_run, link);
        if (r->aborted) /* workers have some of its blocks, and end it when they give them back */
            continue;
        if (!n)
            return true;
        n--;
        run_cancel(r);
        run_settle(s, r, ended);
    }
    return false;
}
