// SPDX-License-Identifier: Apache-2.0
/* A kernel's life on a software GPU: what is kept of it, how it is stopped, counted, priced and
 * completed.
 *
 * A kernel ends when all its blocks have ended, or when it was stopped (by a fault, a limit or a
 * cancellation) and no worker runs a block of it any more. Whoever finds it ended prices and
 * completes it, without locks. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/payer.h"
#include "device/soft/exec/reuse.h"
#include "device/soft/inspect/inspect.h"
#include "device/soft/sched/run.h"

enum { UNITS_MAX = 1 << 14, STACK_PART = 8, LEAST_STACK = 4096 };

/* Memory of a cooperative kernel's grid barrier (cooperative groups read its address from %envreg1
 * and 2: a word with the size, a word that counts arrivals). Mapped outside the addresses that any
 * host or device allocation can have. */
#define WORKSPACE_VA (UINT64_C(0x7f) << 48)
enum { WORKSPACE_BYTES = WS_DEVICE_PAGE_BYTES };

/* ---- a kernel's life ---- */

/* Advances with the host's time while a kernel is executed, so it may be ahead of the device's. A
 * later launch never sees an earlier time than one before it saw. */
static uint64_t grid_globaltimer(void *arg)
{
    const struct ws_run *r = arg;
    uint64_t now = r->started_device_ns + (ws_clock_ns() - r->started_host_ns),
             seen = atomic_load_explicit(&r->device->seen_ns, memory_order_relaxed);
    while (seen < now && !atomic_compare_exchange_weak(&r->device->seen_ns, &seen, now))
        ;
    return now;
}

static uint64_t grid_clock(void *arg)
{
    const struct ws_run *r = arg;
    return r->started_device_ns * r->device->base.spec.core_mhz / 1000;
}

void ws_run_stop(struct ws_run *r, enum ws_dev_error e, const char *fmt, ...)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&r->grid.fault_claimed, &none, 1))
        return; /* whoever was first says what happened */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->grid.text, sizeof(r->grid.text), fmt, ap);
    va_end(ap);
    none = 0;
    atomic_compare_exchange_strong(&r->grid.stop, &none, (int)e);
}

/* As ws_run_stop(), of one part. */
void ws_run_stop_part(struct ws_grid_part *p, enum ws_dev_error e, const char *fmt, ...)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&p->fault_claimed, &none, 1))
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->text, sizeof(p->text), fmt, ap);
    va_end(ap);
    none = 0;
    atomic_compare_exchange_strong(&p->stop, &none, (int)e);
}

const char *ws_run_name(const struct ws_run *r)
{
    return r->op->launch.instance->module->info.kernels[r->op->launch.kernel].name;
}

bool ws_run_stopped(const struct ws_run *r)
{
    return atomic_load_explicit(&r->grid.stop, memory_order_acquire) != 0;
}

int ws_run_map_barrier(struct ws_run *r)
{
    uint64_t va = WORKSPACE_VA + (r->grid.grid_id % (UINT64_C(1) << 30)) * WORKSPACE_BYTES;
    int e = ws_device_mem_alloc(&r->device->base, r->op->space, va, WORKSPACE_BYTES);
    if (e)
        return e;
    uint8_t *host;
    uint64_t bytes;
    uint32_t flags;
    struct ws_device *device;
    if (ws_space_resolve(r->op->space, va, &host, &bytes, &flags, &device)) {
        *(uint32_t *)host = WORKSPACE_BYTES;
        if (r->device->inspect)
            ws_inspect_memory_written(host, WORKSPACE_BYTES);
    }
    r->grid.envreg12 = va;
    return 0;
}

/* Tells those who wait for memory that all that the kernel had has come back. */
static void run_paid(struct ws_run *r)
{
    struct ws_sched *s = r->device->sched;
    ws_payer_give(r->payer, r->coop_bytes);
    if (!atomic_load(&r->payer->n_waiting))
        return;
    pthread_mutex_lock(&s->lock);
    ws_sched_feed_locked(s, r->payer);
    pthread_mutex_unlock(&s->lock);
}

static void run_free(struct ws_run *r)
{
    run_paid(r);
    if (r->units != r->few_units) {
        free(r->units);
        free(r->costs);
    }
    ws_soft_progress_free(r->progress);
    free(r->coop_at);
    free(r->grid.parts);
    free(r->grid.reuse);
    ws_inspect_launch_free(r->grid.inspect_launch);
    ws_bill_give(&r->bill);
    free(r);
}

/* Pays for all that the launch keeps until its end, some launches having none. The user's memory
 * decides how many units there are for the blocks to come. Return: false: there is no memory. */
static bool run_pay(struct ws_run *r)
{
    const struct ws_soft *d = r->device;
    const struct ws_launch_parts *parts = r->op->launch.parts;
    uint64_t n_blocks = r->n_all - r->n_before, few = WS_MIN(n_blocks, (uint64_t)WS_RUN_FEW_UNITS),
             many = WS_MIN(n_blocks, (uint64_t)UNITS_MAX), each, needed;
    if (r->progress) {
        r->n_owed = r->progress->n_owed;
        ws_bill_give(&r->progress->bill); /* what is owed moves to here */
    }
    each = sizeof(r->units[0]) + sizeof(r->costs[0]) + (d->vclock ? WS_FLIGHT_UNIT_BYTES : 0);
    needed = sizeof(*r) + (r->n_owed + few) * each +
             (d->fitted.has_power ? sizeof(*r->grid.reuse) : 0) +
             (r->coop ? r->n_blocks * sizeof(r->coop_at[0]) : 0) +
             (parts ? parts->n * sizeof(r->grid.parts[0]) : 0);
    if (!ws_bill_take(&r->bill, r->payer, needed, (many - few) * each)) {
        ws_soft_fail(r->op, WS_DEV_E_NO_MEMORY,
                     "%s: its record takes %llu bytes of the daemon's memory until it ends, but "
                     "this user may have %llu for launches that run (1/%d of max_block_bytes)",
                     ws_run_name(r), (unsigned long long)needed,
                     (unsigned long long)ws_payer_may_record(r->payer), WS_PAYER_RECORDS_PART);
        return false;
    }
    many = WS_MAX(few + (r->bill.bytes - needed) / each, UINT64_C(1));
    r->blocks_per_unit = WS_MAX((n_blocks + many - 1) / many, UINT64_C(1));
    return true;
}

/* Room for the units that are owed and those of the blocks to come. */
static bool units_new(struct ws_run *r)
{
    uint64_t n_blocks = r->n_all - r->n_before;
    uint64_t n = r->n_owed + (n_blocks + r->blocks_per_unit - 1) / r->blocks_per_unit;
    if (n <= WS_RUN_FEW_UNITS && !r->device->vclock) { /* a flight keeps them */
        r->units = r->few_units;
        r->costs = r->few_costs;
    } else {
        r->units = ws_alloc_array(WS_MAX(n, UINT64_C(1)), sizeof(r->units[0]));
        r->costs = ws_alloc_array(WS_MAX(n, UINT64_C(1)), sizeof(r->costs[0]));
    }
    if (!r->units || !r->costs)
        return false;
    if (r->n_owed) {
        memcpy(r->units, r->progress->owed, r->n_owed * sizeof(r->units[0]));
        ws_soft_progress_pay(r->progress);
    }
    return true;
}

/* Return: false: no memory. */
static bool parts_new(struct ws_run *r, const struct ws_launch_parts *p)
{
    struct ws_grid_part *v = p ? ws_alloc_array(p->n, sizeof(*v)) : NULL;
    for (uint32_t k = 0; v && k < p->n; k++) {
        v[k].space = p->part[k].space;
        v[k].kernel = p->part[k].kernel;
        v[k].share = p->part[k].share;
        memcpy(v[k].grid, p->part[k].grid, sizeof(v[k].grid));
        memcpy(v[k].block, p->part[k].block, sizeof(v[k].block));
        if (r->progress && p->part[k].error) { /* what ended in an earlier piece stays ended */
            v[k].fault_claimed = 1;
            v[k].stop = (int)p->part[k].error;
            memcpy(v[k].text, p->part[k].text, sizeof(v[k].text));
        }
    }
    r->grid.parts = v;
    r->grid.common = p ? p->common : NULL;
    r->grid.n_parts = v ? p->n : 0;
    r->grid.round = v ? p->round : 0;
    return v || !p;
}

static void parts_finish(const struct ws_run *r, struct ws_launch_parts *p)
{
    for (uint32_t k = 0; p && k < p->n; k++) {
        const struct ws_grid_part *from = &r->grid.parts[k];
        struct ws_launch_part *to = &p->part[k];
        to->error = (enum ws_dev_error)atomic_load(&from->stop);
        to->text[0] = 0;
        if (to->error)
            memcpy(to->text, from->text, sizeof(to->text));
        to->text[sizeof(to->text) - 1] = 0;
        to->n_thread_insns = atomic_load(&from->n_thread_insns);
    }
}

static struct ws_reuse_cache cache_of(const struct ws_run *r)
{
    const struct ws_gpu_spec *spec = &r->device->base.spec;
    return (struct ws_reuse_cache){.l1_bytes = spec->l1_bytes,
                                   .l2_bytes = spec->l2_bytes,
                                   .n_sms = spec->n_sms,
                                   .blocks_per_sm = r->fit.blocks_per_sm};
}

/* Says how much of what the new units loaded and stored got past the caches. */
static void settle_traffic(struct ws_run *r, uint32_t n_units)
{
    struct ws_exec_work sum = {.n_thread_insns = 0};
    if (!r->grid.reuse)
        return;
    for (uint32_t i = r->n_owed; i < n_units; i++)
        ws_work_add(&sum, &r->units[i].work);
    struct ws_reuse_cache cache = cache_of(r);
    struct ws_reuse_shares shares = ws_reuse_shares(r->grid.reuse, &cache, &sum);
    for (uint32_t i = r->n_owed; i < n_units; i++)
        ws_reuse_settle(&shares, &r->units[i].work);
}

/* What a block takes. Kernels that recurse or call alloca() do not say how much stack they need:
 * they get all that a thread may have, but no block of theirs gets more than a part of the pool. */
static void fit_stack(struct ws_run *r)
{
    struct ws_grid *g = &r->grid;
    const uint32_t *n = g->block;
    uint64_t most = ws_payers_pool() / STACK_PART;
    g->local_bytes_max = r->device->options.local_bytes_per_thread_max;
    for (;; g->local_bytes_max /= 2) {
        r->state_bytes = ws_code_block_bytes(g->code, g->kernel, n[0] * n[1] * n[2],
                                             g->dyn_shared_bytes, g->sm, g->local_bytes_max);
        if (r->state_bytes <= most || g->local_bytes_max < 2 * LEAST_STACK)
            return;
    }
}

static struct ws_run *run_refuse(struct ws_run *r, struct ws_op *op)
{
    if (!op->error)
        ws_soft_fail(op, WS_DEV_E_NO_MEMORY, "launch: the host has no memory to run a kernel");
    if (r) {
        r->progress = NULL; /* the caller's */
        run_free(r);
    }
    return NULL;
}

/* Takes @progress, if it succeeds. */
struct ws_run *ws_run_new(struct ws_soft *d, struct ws_op *op, const struct ws_fit *fit,
                          struct ws_soft_progress *progress)
{
    struct ws_dinstance *inst = op->launch.instance;
    struct ws_run *r = ws_alloc(sizeof(*r));
    if (!r)
        return run_refuse(NULL, op);
    r->progress = progress;
    r->device = d;
    r->op = op;
    r->payer = ws_payer_or_own(ws_space_payer(op->space));
    ws_list_init(&r->link);
    ws_list_init(&r->deal_link);
    ws_list_init(&r->parted);
    ws_list_init(&r->spares);
    ws_list_init(&r->spared);
    r->stats = &inst->module->kernels[op->launch.kernel];
    r->fit = *fit;
    r->n_all = (uint64_t)op->launch.grid[0] * op->launch.grid[1] * op->launch.grid[2];
    r->n_blocks = r->n_all;
    r->n_before = r->n_dealt = progress ? progress->n_executed : 0;
    r->coop = op->launch.flags & WS_LAUNCH_COOPERATIVE;
    memcpy(r->grid.cluster, op->launch.cluster, sizeof(r->grid.cluster));
    r->n_cluster = ws_grid_cluster_blocks(&r->grid);
    if (!run_pay(r))
        return run_refuse(r, op);
    bool ok = units_new(r);
    if (d->fitted.has_power) {
        struct ws_reuse_cache cache = cache_of(r);
        r->grid.reuse = ws_reuse_new(&cache, r->n_blocks);
        ok &= r->grid.reuse != NULL;
    }
    if (r->coop)
        r->coop_at = ws_alloc_array(r->n_blocks, sizeof(r->coop_at[0]));
    ok &= !d->inspect || !ws_inspect_launch_new(&r->grid.inspect_launch, d->inspect, r->n_all);
    if (!ok || (r->coop && !r->coop_at) || !parts_new(r, op->launch.parts))
        return run_refuse(r, op);
    struct ws_grid *g = &r->grid;
    g->code = inst->module->code;
    g->kernel = op->launch.kernel;
    memcpy(g->grid, op->launch.grid, sizeof(g->grid));
    memcpy(g->block, op->launch.block, sizeof(g->block));
    g->explicit_cluster = op->launch.cluster[0] != 0;
    g->dyn_shared_bytes = op->launch.shared_bytes;
    g->params = op->launch.params;
    g->space = op->space;
    g->started = op->launch.started;
    g->who = d->base.index < WS_ACCESS_DEVICES ? UINT32_C(1) << d->base.index : 0;
    g->var_va = inst->var_va;
    g->n_sms = d->base.spec.n_sms;
    g->sm = d->base.spec.cc_major * 10 + d->base.spec.cc_minor;
    g->inspect = d->inspect;
    g->grid_id = atomic_fetch_add(&d->grid_id, 1) + 1;
    g->clock = grid_clock;
    g->globaltimer = grid_globaltimer;
    g->clock_arg = r;
    fit_stack(r);
    r->started_device_ns =
        d->vclock ? op->ready_ns : WS_MAX(op->ready_ns, ws_timing_now_ns(d->timing));
    r->started_device_ns = WS_MAX(r->started_device_ns, atomic_load(&d->seen_ns));
    r->started_host_ns = ws_clock_ns();
    r->epoch = ws_space_enter(op->space);
    return r;
}

/* Prices it and is done with it. */
static void run_price(struct ws_run *r, uint32_t n_units)
{
    struct ws_soft *d = r->device;
    struct ws_op *op = r->op;
    struct ws_gpu_spec changed;
    const struct ws_gpu_spec *spec = &d->base.spec;
    if (atomic_load_explicit(&d->clocks_changed, memory_order_acquire)) {
        ws_timing_spec(d->timing, &changed);
        spec = &changed;
    }
    struct ws_priced priced;
    ws_soft_price(d, spec, op, &r->fit, r->units, n_units, r->costs, &priced);
    struct ws_timing_kernel k = {
        /* an account that will be used again: what it has in store is given back with later
         * operations */
        .owner = ws_space_id(r->grid.parts ? r->grid.parts[0].space : op->space),
        .ready_ns = op->ready_ns,
        .need = r->fit.need,
        .blocks_per_sm = r->fit.blocks_per_sm,
        .sms = op->launch.sms,
        .n_blocks = n_units,
        .blocks = r->costs,
        .dram_share = priced.dram_share,
        .draw = &priced.draw,
    };
    struct ws_timed timed;
    ws_timing_kernel(d->timing, &k, &timed);
    op->start_ns = timed.start_ns;
    op->end_ns = timed.end_ns;
    op->energy_uj = timed.energy_uj;
    op->alone_uj = timed.alone_uj;
    if (!op->error && r->n_dealt < r->n_all) {
        ws_soft_progress_set(r->progress, r->n_dealt, r->units, n_units, NULL);
        r->progress->owed = NULL; /* nothing is: the units stay here */
        op->launch.progress = &r->progress->base;
        op->preempted = true;
        r->progress = NULL;
    }
    run_free(r);
    ws_soft_done(d, op);
}

/* Where device time passes it is done when its time has come. */
static void run_fly(struct ws_run *r, uint32_t n_units)
{
    struct ws_op *op = r->op;
    struct ws_executed_kernel x = {
        .need = r->fit.need,
        .blocks_per_sm = r->fit.blocks_per_sm,
        .units = r->units,
        .costs = r->costs,
        .bill = r->bill,
        .n_units = n_units,
        .n_executed = r->n_dealt,
        .n_blocks = r->n_all,
        .progress = r->progress,
    };
    r->units = r->few_units;
    r->bill = (struct ws_bill){0};
    r->progress = NULL;
    run_free(r);
    ws_flight_kernel(op, &x);
}

/* Ended, no block left, no locks held. */
void ws_run_finish(struct ws_run *r)
{
    struct ws_soft *d = r->device;
    struct ws_op *op = r->op;
    op->error = (enum ws_dev_error)atomic_load(&r->grid.stop);
    if (op->error)
        memcpy(op->text, r->grid.text, sizeof(op->text));
    op->text[sizeof(op->text) - 1] = 0;
    op->n_thread_insns = r->n_thread_insns;
    parts_finish(r, op->launch.parts);
    op->counts = r->counts;
    if (r->n_ended) {
        uint64_t mean = r->counts.n_warp_insns / r->n_ended, old = r->stats->block_insns;
        mean = old ? (3 * old + mean) / 4 : mean;
        r->stats->block_insns = (uint32_t)WS_MIN(WS_MAX(mean, 1), UINT32_MAX);
    }
    if (r->grid.envreg12)
        if (ws_space_unmap(op->space, r->grid.envreg12) < 0)
            ws_soft_fail(
                op, WS_DEV_E_LAUNCH_FAILURE,
                "the barrier memory is gone"); /* cannot be: no client knows the address range */
    ws_space_leave(op->space, r->epoch);
    uint64_t n_new = r->n_dealt - r->n_before;
    uint32_t n_units =
        r->n_owed + (uint32_t)((n_new + r->blocks_per_unit - 1) / r->blocks_per_unit);
    settle_traffic(r, n_units);
    if (d->vclock)
        run_fly(r, n_units);
    else
        run_price(r, n_units);
}

void ws_launch_finish(struct ws_list *ended)
{
    struct ws_list *l;
    while ((l = ws_list_pop(ended)))
        ws_run_finish(ws_list_entry(l, struct ws_run, link));
}

void ws_work_add(struct ws_exec_work *sum, const struct ws_exec_work *w)
{
    for (int c = 0; c < _WS_WORK_N; c++)
        sum->n_warp_insns[c] += w->n_warp_insns[c];
    for (int k = 0; k < _WS_UNIT_N; k++)
        sum->n_unit_ops[k] += w->n_unit_ops[k];
    sum->n_machine_insns += w->n_machine_insns;
    sum->n_thread_insns += w->n_thread_insns;
    sum->n_global_loads += w->n_global_loads;
    sum->n_global_stores += w->n_global_stores;
    sum->n_load_sectors += w->n_load_sectors;
    sum->n_store_sectors += w->n_store_sectors;
    sum->n_texture_quads += w->n_texture_quads;
    sum->n_shared_accesses += w->n_shared_accesses;
    sum->n_shared_loads += w->n_shared_loads;
    sum->n_shared_transactions += w->n_shared_transactions;
    sum->n_watched_sectors += w->n_watched_sectors;
    sum->n_missed_sectors += w->n_missed_sectors;
    sum->n_l2_sectors += w->n_l2_sectors;
    sum->n_dram_sectors += w->n_dram_sectors;
    sum->n_atomics += w->n_atomics;
    sum->n_atomic_sectors += w->n_atomic_sectors;
    sum->atomic_places |= w->atomic_places;
    sum->n_barriers += w->n_barriers;
}

/* What a block did while it polled counts like all it did, unless the kernel was in truth waiting:
 * then how often it looked is up to the host. */
void ws_run_count(struct ws_run *r, struct ws_dealt_block *b)
{
    if (b->polled.n_thread_insns && !(r->device->vclock && ws_flight_has_idled(r->op)))
        ws_work_add(&b->work, &b->polled);
    struct ws_unit *u = &r->units[r->n_owed + (b->linear - r->n_before) / r->blocks_per_unit];
    u->n_blocks++;
    ws_work_add(&u->work, &b->work);
    r->n_ended++;
    for (int i = 0; i < _WS_WORK_N; i++)
        r->counts.n_warp_insns += b->work.n_warp_insns[i];
    r->counts.n_global_accesses += b->work.n_global_loads + b->work.n_global_stores;
    r->counts.n_sectors += b->work.n_load_sectors + b->work.n_store_sectors;
    r->counts.n_barriers += b->work.n_barriers;
}
