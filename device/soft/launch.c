// SPDX-License-Identifier: Apache-2.0
/* Kernels: checks, dealing of blocks to virtual SMs, execution in turns.
 *
 * Dealing follows the hardware: kernels of a client in order of submission, the blocks of each round-robin over the SMs of its
 * set, as many as fit (occupancy.c); a kernel that is dealt out, or does not fit, lets the next one fill what is left; a block
 * that ends makes room. It is lazy: a block gets its SM when a worker takes it, and state when it first runs, so a grid of a
 * million blocks costs as much memory as the blocks that are running. Every dealt block is resident and will run. A cooperative
 * kernel is dealt as a whole, and until it fits nothing behind it is dealt.
 *
 * Turns. A worker takes one block that is in the middle of something, or as many short ones as make a turn (by what blocks of
 * this kernel took before). A block runs on over several turns until its slice is used up, then it goes behind the
 * client's other blocks: programs may wait between co-resident blocks, and an endless block must not keep out its neighbours.
 * A block that waits (the interpreter saw all its warps spin and came back early) loses its turn at once and gets short ones
 * until it does something else; one that might wait (loads or atomics and arithmetic on integers, no result written) has a
 * slice of one turn. While no block is in the middle of its slice, new blocks go before rotated ones four
 * times out of five: that gets a grid-wide barrier all its blocks soon, and starves none.
 *
 * A kernel's end: all blocks ended, or it was stopped (fault, limit, cancel) and nobody runs a block of it any more. It is
 * priced and completed without locks by whoever found it ended.
 *
 * Preemption. No more blocks are dealt, those that are run to their end: what was executed is always the first blocks of the grid, so a
 * launch that goes on begins with the next. Unless all that
 * were dealt (seem to) wait for something: then dealing goes on.
 *
 * Short cut: a small kernel that has taken little time so far (or is new) is begun by the submitting thread itself, which
 * costs less than waking a worker. When it turns out longer, workers take over where it stands. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "device/soft/soft_private.h"

enum { /* in warp instructions */
       TURN_INSNS = 1 << 15,
       STEP_INSNS = 1 << 11,    /* between two looks at what the block does */
       WAITING_INSNS = 1 << 10, /* turn of a block that waits */
       SLICE_INSNS = 1 << 20,
       INLINE_INSNS = 1 << 11,
};
enum {
    INLINE_BLOCKS = 32,
    INLINE_BLOCKS_NEW = 4,
    FEW_UNITS = 4,
    UNITS_MAX = 1 << 14,
    SPARE_MAX = 8,
    ROTATED_EVERY = 5,
    WAITING_BLOCKS = 4
};

/* Memory of a cooperative kernel's grid barrier (cooperative groups read its address from %envreg1 and 2: a word with the size,
 * a word that counts arrivals). Mapped outside the addresses that any host or device allocation can have. */
#define WORKSPACE_VA (UINT64_C(0x7f) << 48)
enum { WORKSPACE_BYTES = WS_DEVICE_PAGE_BYTES };

struct ws_run {
    struct ws_list link;      /* tenant's runs; when ended: the list of the ended */
    struct ws_list deal_link; /* tenant's dealing, while blocks are left */
    struct ws_soft *device;
    struct ws_tenant *tenant; /* NULL while the submitting thread runs it alone */
    struct ws_op *op;
    struct ws_dkernel *stats;
    struct ws_fit fit;
    unsigned epoch; /* of the space */
    uint64_t started_host_ns, started_device_ns;
    _Atomic uint64_t n_thread_insns;
    struct ws_grid grid;
    /* under the scheduler's lock, once there is a tenant */
    uint64_t n_blocks, n_dealt,
        n_live;                 /* n_blocks: to be dealt: all, or, stopped, those that are */
    uint64_t n_ended;           /* blocks */
    struct ws_op_counts counts; /* of ended blocks */
    bool coop, aborted;
    bool stopping;                 /* preempted */
    uint64_t n_waiting, n_polling; /* of its live blocks, as they were when they were given back */
    bool idle;                     /* the clock knows that all of them poll */
    struct ws_soft_progress *
        progress; /* of a launch that goes on, or one to be filled when it is preempted; else NULL */
    uint16_t *coop_sm; /* [n_blocks], once a cooperative kernel is placed */
    struct ws_blockrun *spare[SPARE_MAX];
    uint32_t n_spare;
    uint64_t n_all, n_before; /* blocks of the grid; executed before it was preempted */
    uint64_t blocks_per_unit; /* neighbours priced as one, for grids of many blocks */
    uint32_t n_owed;          /* the first units: executed before, but not paid with time */
    struct ws_unit *units;    /* [n_owed + n_units] */
    struct ws_cost *costs;    /* as many */
    struct ws_unit few_units[FEW_UNITS];
    struct ws_cost few_costs[FEW_UNITS];
};

/* ---- checks ---- */

static bool sms_ok(const struct ws_gpu_spec *spec, const struct ws_sm_set *sms)
{
    if (!sms->n)
        return true;
    uint32_t n = 0;
    for (uint32_t w = 0; w < WS_ARRAY_SIZE(sms->bits); w++) {
        uint64_t may = spec->n_sms >= 64 * (w + 1) ? UINT64_MAX
                       : spec->n_sms <= 64 * w     ? 0
                                                   : (UINT64_C(1) << (spec->n_sms % 64)) - 1;
        if (sms->bits[w] & ~may)
            return false;
        n += (uint32_t)__builtin_popcountll(sms->bits[w]);
    }
    return n == sms->n;
}

static bool parts_ok(const struct ws_launch_parts *p)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->n; k++)
        sum += p->part[k].share;
    return sum && sum == p->round;
}

/* Return: whether the launch may go on, with *ret_fit; else op->error says why not. */
static bool check(struct ws_soft *d, struct ws_op *op, const struct ws_soft_progress *progress,
                  struct ws_fit *ret_fit)
{
    const struct ws_gpu_spec *spec = &d->base.spec;
    const struct ws_dinstance *inst = op->launch.instance;
    if (!inst || op->launch.kernel >= inst->module->info.n_kernels) {
        ws_soft_fail(op, WS_DEV_E_INVALID_VALUE, "launch: no such kernel");
        return false;
    }
    const struct ws_kernel_info *k = &inst->module->info.kernels[op->launch.kernel];
    const uint32_t *g = op->launch.grid, *b = op->launch.block;
    uint64_t threads = (uint64_t)b[0] * b[1] * b[2],
             shared = (uint64_t)k->static_shared_bytes + op->launch.shared_bytes;
    if (k->unsupported)
        ws_soft_fail(op, WS_DEV_E_INVALID_VALUE, "%s can't run: %s", k->name, k->unsupported);
    else if (!g[0] || !g[1] || !g[2] || g[0] > INT32_MAX || g[1] > 65535 || g[2] > 65535)
        ws_soft_fail(op, WS_DEV_E_INVALID_CONFIGURATION,
                     "%s: grid %ux%ux%u; 1 to 2147483647 x 65535 x 65535 is possible", k->name,
                     g[0], g[1], g[2]);
    else if (!b[0] || !b[1] || !b[2] || b[0] > 1024 || b[1] > 1024 || b[2] > 64 ||
             threads > spec->max_threads_per_block)
        ws_soft_fail(op, WS_DEV_E_INVALID_CONFIGURATION,
                     "%s: block %ux%ux%u; up to 1024x1024x64 and %u threads is possible", k->name,
                     b[0], b[1], b[2], spec->max_threads_per_block);
    else if (k->max_threads_per_block && threads > k->max_threads_per_block)
        ws_soft_fail(op, WS_DEV_E_RESOURCES,
                     "%s: %u threads per block, the kernel was compiled for at most %u", k->name,
                     (unsigned)threads, k->max_threads_per_block);
    else if (shared > spec->shared_bytes_per_block_optin)
        ws_soft_fail(op, WS_DEV_E_INVALID_VALUE,
                     "%s: %llu bytes of shared memory per block (%u static), %u is possible",
                     k->name, (unsigned long long)shared, k->static_shared_bytes,
                     spec->shared_bytes_per_block_optin);
    else if (op->launch.param_bytes < k->param_bytes || (k->param_bytes && !op->launch.params))
        ws_soft_fail(op, WS_DEV_E_INVALID_VALUE, "%s: %u bytes of parameters, the kernel takes %u",
                     k->name, op->launch.param_bytes, k->param_bytes);
    else if (!op->space || ws_op_code_space(op) != inst->space)
        ws_soft_fail(op, WS_DEV_E_INVALID_VALUE, "%s: the module belongs to another address space",
                     k->name);
    else if (progress && !ws_soft_progress_fits(progress, op))
        ws_soft_fail(op, WS_DEV_E_INVALID_VALUE,
                     "%s: it is to go on, but what was preempted was another launch", k->name);
    else if (!sms_ok(spec, &op->launch.sms))
        ws_soft_fail(op, WS_DEV_E_INVALID_VALUE, "%s: the set of SMs does not fit a GPU of %u SMs",
                     k->name, spec->n_sms);
    else if (op->launch.parts && !parts_ok(op->launch.parts))
        ws_soft_fail(op, WS_DEV_E_INVALID_VALUE, "%s: the parts' shares make no round", k->name);
    if (op->error)
        return false;
    ws_occupancy_fit(spec, (uint32_t)threads, k->n_regs, (uint32_t)shared, ret_fit);
    uint64_t n_sms = op->launch.sms.n ? op->launch.sms.n : spec->n_sms,
             n_blocks = (uint64_t)g[0] * g[1] * g[2];
    if (op->launch.flags & WS_LAUNCH_COOPERATIVE && n_blocks > n_sms * ret_fit->blocks_per_sm) {
        ws_soft_fail(op, WS_DEV_E_COOPERATIVE_TOO_LARGE,
                     "%s: cooperative grid of %llu blocks, %llu can be resident", k->name,
                     (unsigned long long)n_blocks,
                     (unsigned long long)n_sms * ret_fit->blocks_per_sm);
        return false;
    }
    return true;
}

/* ---- a kernel's life ---- */

/* Goes on with the host's time while a kernel is executed, which may be ahead of the device's: what one launch saw, a later one does not
 * see less of. */
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

static void grid_stop(struct ws_run *r, enum ws_dev_error e, const char *fmt, ...)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&r->grid.fault_claimed, &none, 1))
        return; /* whoever was first says what happened */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->grid.text, sizeof r->grid.text, fmt, ap);
    va_end(ap);
    none = 0;
    atomic_compare_exchange_strong(&r->grid.stop, &none, (int)e);
}

/* As grid_stop(), of one part. */
static void part_stop(struct ws_grid_part *p, enum ws_dev_error e, const char *fmt, ...)
{
    int none = 0;
    if (!atomic_compare_exchange_strong(&p->fault_claimed, &none, 1))
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->text, sizeof p->text, fmt, ap);
    va_end(ap);
    none = 0;
    atomic_compare_exchange_strong(&p->stop, &none, (int)e);
}

static const char *run_name(const struct ws_run *r)
{
    return r->op->launch.instance->module->info.kernels[r->op->launch.kernel].name;
}

static bool run_stopped(const struct ws_run *r)
{
    return atomic_load_explicit(&r->grid.stop, memory_order_acquire) != 0;
}

static int workspace_map(struct ws_run *r)
{
    uint64_t va = WORKSPACE_VA + (r->grid.grid_id % (UINT64_C(1) << 30)) * WORKSPACE_BYTES;
    int e = ws_device_mem_alloc(&r->device->base, r->op->space, va, WORKSPACE_BYTES);
    if (e)
        return e;
    uint8_t *host;
    uint64_t bytes;
    uint32_t flags;
    struct ws_device *device;
    if (ws_space_resolve(r->op->space, va, &host, &bytes, &flags, &device))
        *(uint32_t *)host = WORKSPACE_BYTES;
    r->grid.envreg12 = va;
    return 0;
}

static void run_free(struct ws_run *r)
{
    for (uint32_t i = 0; i < r->n_spare; i++)
        ws_blockrun_free(r->spare[i]);
    if (r->units != r->few_units) {
        free(r->units);
        free(r->costs);
    }
    ws_soft_progress_free(r->progress);
    free(r->coop_sm);
    free(r->grid.parts);
    free(r);
}

/* Room for the units that are owed and those of the blocks to come. */
static bool units_new(struct ws_run *r)
{
    uint64_t n_blocks = r->n_all - r->n_before;
    r->blocks_per_unit = WS_MAX((n_blocks + UNITS_MAX - 1) / UNITS_MAX, UINT64_C(1));
    r->n_owed = r->progress ? r->progress->n_owed : 0;
    uint64_t n = r->n_owed + (n_blocks + r->blocks_per_unit - 1) / r->blocks_per_unit;
    if (n <= FEW_UNITS && !r->device->vclock) { /* a flight keeps them */
        r->units = r->few_units;
        r->costs = r->few_costs;
    } else {
        r->units = ws_alloc_array(WS_MAX(n, UINT64_C(1)), sizeof r->units[0]);
        r->costs = ws_alloc_array(WS_MAX(n, UINT64_C(1)), sizeof r->costs[0]);
    }
    if (!r->units || !r->costs)
        return false;
    if (r->n_owed)
        memcpy(r->units, r->progress->owed, r->n_owed * sizeof r->units[0]);
    return true;
}

/* Return: false: no memory. */
static bool parts_new(struct ws_run *r, const struct ws_launch_parts *p)
{
    struct ws_grid_part *v = p ? ws_alloc_array(p->n, sizeof *v) : NULL;
    for (uint32_t k = 0; v && k < p->n; k++) {
        v[k].space = p->part[k].space;
        v[k].kernel = p->part[k].kernel;
        v[k].share = p->part[k].share;
        memcpy(v[k].grid, p->part[k].grid, sizeof v[k].grid);
        memcpy(v[k].block, p->part[k].block, sizeof v[k].block);
        if (r->progress && p->part[k].error) { /* what ended in an earlier piece stays ended */
            v[k].fault_claimed = 1;
            v[k].stop = (int)p->part[k].error;
            memcpy(v[k].text, p->part[k].text, sizeof v[k].text);
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
            memcpy(to->text, from->text, sizeof to->text);
        to->text[sizeof to->text - 1] = 0;
        to->n_thread_insns = atomic_load(&from->n_thread_insns);
    }
}

/* Takes @progress, if it succeeds. */
static struct ws_run *run_new(struct ws_soft *d, struct ws_op *op, const struct ws_fit *fit,
                              struct ws_soft_progress *progress)
{
    struct ws_dinstance *inst = op->launch.instance;
    struct ws_run *r = ws_alloc(sizeof *r);
    if (!r)
        return NULL;
    r->progress = progress;
    r->device = d;
    r->op = op;
    r->stats = &inst->module->kernels[op->launch.kernel];
    r->fit = *fit;
    r->n_all = (uint64_t)op->launch.grid[0] * op->launch.grid[1] * op->launch.grid[2];
    r->n_blocks = r->n_all;
    r->n_before = r->n_dealt = progress ? progress->n_executed : 0;
    bool ok = units_new(r);
    r->coop = op->launch.flags & WS_LAUNCH_COOPERATIVE;
    if (r->coop)
        r->coop_sm = ws_alloc_array(r->n_blocks, sizeof r->coop_sm[0]);
    if (!ok || (r->coop && !r->coop_sm) || !parts_new(r, op->launch.parts)) {
        r->progress = NULL;
        run_free(r);
        return NULL;
    }
    ws_list_init(&r->link);
    ws_list_init(&r->deal_link);
    struct ws_grid *g = &r->grid;
    g->code = inst->module->code;
    g->kernel = op->launch.kernel;
    memcpy(g->grid, op->launch.grid, sizeof g->grid);
    memcpy(g->block, op->launch.block, sizeof g->block);
    g->dyn_shared_bytes = op->launch.shared_bytes;
    g->params = op->launch.params;
    g->space = op->space;
    g->who = d->base.index < WS_ACCESS_DEVICES ? UINT32_C(1) << d->base.index : 0;
    g->var_va = inst->var_va;
    g->n_sms = d->base.spec.n_sms;
    g->sm = d->base.spec.cc_major * 10 + d->base.spec.cc_minor;
    g->grid_id = atomic_fetch_add(&d->grid_id, 1) + 1;
    g->clock = grid_clock;
    g->globaltimer = grid_globaltimer;
    g->clock_arg = r;
    g->local_bytes_max = d->options.local_bytes_per_thread_max;
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
    double bytes = ws_units_cost(spec, r->fit.need.warps, r->units, n_units, r->costs);
    struct ws_timing_kernel k = {
        /* an account that will be used again: what it has in store is given back with later operations */
        .owner = ws_space_id(r->grid.parts ? r->grid.parts[0].space : op->space),
        .ready_ns = op->ready_ns,
        .need = r->fit.need,
        .blocks_per_sm = r->fit.blocks_per_sm,
        .sms = op->launch.sms,
        .n_blocks = n_units,
        .blocks = r->costs,
        .dram_share = ws_cost_dram_share(spec, bytes, (double)ws_space_device_bytes(op->space)),
    };
    struct ws_timed timed;
    ws_timing_kernel(d->timing, &k, &timed);
    op->start_ns = timed.start_ns;
    op->end_ns = timed.end_ns;
    op->energy_uj = timed.energy_uj;
    if (!op->error && r->n_dealt < r->n_all) {
        struct ws_unit *units = r->units != r->few_units ? r->units : NULL;
        ws_soft_progress_set(r->progress, r->n_dealt, r->units, n_units, NULL);
        if (!units) { /* not allocated; nothing is owed */
            r->progress->owed = NULL;
        } else {
            r->units = r->few_units;
            free(r->costs);
        }
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
    struct ws_executed x = {
        .need = r->fit.need,
        .blocks_per_sm = r->fit.blocks_per_sm,
        .units = r->units,
        .costs = r->costs,
        .n_units = n_units,
        .n_executed = r->n_dealt,
        .n_blocks = r->n_all,
        .progress = r->progress,
    };
    r->units = r->few_units;
    r->progress = NULL;
    run_free(r);
    ws_flight_kernel(op, &x);
}

/* Ended, no block left, no locks held. */
static void run_finish(struct ws_run *r)
{
    struct ws_soft *d = r->device;
    struct ws_op *op = r->op;
    op->error = (enum ws_dev_error)atomic_load(&r->grid.stop);
    if (op->error)
        memcpy(op->text, r->grid.text, sizeof op->text);
    op->text[sizeof op->text - 1] = 0;
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
    if (d->vclock)
        run_fly(r, n_units);
    else
        run_price(r, n_units);
}

void ws_launch_finish(struct ws_list *ended)
{
    struct ws_list *l;
    while ((l = ws_list_pop(ended)))
        run_finish(ws_list_entry(l, struct ws_run, link));
}

static void work_add(struct ws_work *sum, const struct ws_work *w)
{
    for (int c = 0; c < _WS_WORK_N; c++)
        sum->n_warp_insns[c] += w->n_warp_insns[c];
    sum->n_thread_insns += w->n_thread_insns;
    sum->n_global_loads += w->n_global_loads;
    sum->n_global_stores += w->n_global_stores;
    sum->n_load_sectors += w->n_load_sectors;
    sum->n_store_sectors += w->n_store_sectors;
    sum->n_shared_accesses += w->n_shared_accesses;
    sum->n_atomics += w->n_atomics;
    sum->n_barriers += w->n_barriers;
}

/* What a block did while it polled counts like all it did, unless the kernel was in truth waiting: then how often it looked is up to
 * the host. */
static void block_count(struct ws_run *r, struct ws_block *b)
{
    if (b->polled.n_thread_insns && !(r->device->vclock && ws_flight_has_idled(r->op)))
        work_add(&b->work, &b->polled);
    struct ws_unit *u = &r->units[r->n_owed + (b->linear - r->n_before) / r->blocks_per_unit];
    u->n_blocks++;
    work_add(&u->work, &b->work);
    r->n_ended++;
    for (int i = 0; i < _WS_WORK_N; i++)
        r->counts.n_warp_insns += b->work.n_warp_insns[i];
    r->counts.n_global_accesses += b->work.n_global_loads + b->work.n_global_stores;
    r->counts.n_sectors += b->work.n_load_sectors + b->work.n_store_sectors;
    r->counts.n_barriers += b->work.n_barriers;
}

/* ---- dealing; the scheduler's lock is held ---- */

static bool sm_fits(const struct ws_run *r, const struct ws_sm_use *u)
{
    const struct ws_gpu_spec *s = &r->device->base.spec;
    const struct ws_need *n = &r->fit.need;
    return (uint32_t)__builtin_popcount(u->slots) < s->max_blocks_per_sm &&
           u->warps + n->warps <= s->max_threads_per_sm / 32 &&
           u->regs + n->regs <= s->regs_per_sm &&
           u->shared_bytes + n->shared_bytes <= s->shared_bytes_per_sm;
}

static uint32_t sm_occupy(const struct ws_run *r, struct ws_sm_use *u)
{
    uint32_t slot = u->slots == UINT32_MAX ? 31 : (uint32_t)__builtin_ctz(~u->slots);
    u->slots |= 1u << slot;
    u->warps += r->fit.need.warps;
    u->regs += r->fit.need.regs;
    u->shared_bytes += r->fit.need.shared_bytes;
    return slot;
}

static void sm_vacate(const struct ws_run *r, struct ws_sm_use *u, uint32_t slot)
{
    u->slots &= ~(1u << slot);
    u->warps -= r->fit.need.warps;
    u->regs -= r->fit.need.regs;
    u->shared_bytes -= r->fit.need.shared_bytes;
}

static bool sm_allowed(const struct ws_run *r, uint32_t sm)
{
    const struct ws_sm_set *set = &r->op->launch.sms;
    return !set->n || set->bits[sm / 64] >> (sm % 64) & 1;
}

/* The next SM, round-robin, with room for a block of @r. Return: false if there is none. */
static bool sm_find(struct ws_tenant *t, const struct ws_run *r, uint32_t *ret_sm)
{
    uint32_t n = r->device->base.spec.n_sms, sm = t->cursor;
    for (uint32_t i = 0; i < n; i++, sm = sm + 1 == n ? 0 : sm + 1) {
        if (!sm_allowed(r, sm) || !sm_fits(r, &t->sms[sm]))
            continue;
        t->cursor = sm + 1 == n ? 0 : sm + 1;
        *ret_sm = sm;
        return true;
    }
    return false;
}

/* Room for all blocks of a cooperative kernel at once, or none is taken. */
static bool coop_place(struct ws_tenant *t, struct ws_run *r)
{
    uint64_t n = 0;
    uint32_t sm;
    struct ws_sm_use *use = t->sms;
    while (n < r->n_blocks && sm_find(t, r, &sm)) {
        (void)sm_occupy(r, &use[sm]); /* the slot is chosen again when the block is dealt */
        r->coop_sm[n++] = (uint16_t)sm;
    }
    bool ok = n == r->n_blocks;
    /* slots are given from the lowest free one up, so they are given back from the highest down */
    while (n--) {
        struct ws_sm_use *u = &use[r->coop_sm[n]];
        sm_vacate(r, u, 31 - (uint32_t)__builtin_clz(u->slots));
    }
    return ok;
}

static struct ws_block *block_get(struct ws_sched *s)
{
    struct ws_list *l = ws_list_pop(&s->free_blocks);
    struct ws_block *b = l ? ws_list_entry(l, struct ws_block, link) : ws_alloc(sizeof *b);
    if (!b)
        return NULL;
    memset(b, 0, sizeof *b);
    ws_list_init(&b->link);
    return b;
}

static struct ws_block *deal_to(struct ws_sched *s, struct ws_tenant *t, struct ws_run *r,
                                uint32_t sm)
{
    struct ws_block *b = block_get(s);
    if (!b)
        return NULL;
    b->run = r;
    b->linear = r->n_dealt++;
    b->sm = sm;
    b->slot = sm_occupy(r, &t->sms[sm]);
    r->n_live++;
    if (r->n_dealt == r->n_blocks)
        ws_list_remove(&r->deal_link);
    return b;
}

/* How many new blocks of @r make a turn. */
static uint32_t batch_of(const struct ws_sched *s, const struct ws_run *r)
{
    uint64_t mean = r->n_ended ? r->counts.n_warp_insns / r->n_ended : r->stats->block_insns;
    uint64_t n = mean ? TURN_INSNS / WS_MAX(mean, 1) : 1, left = r->n_blocks - r->n_dealt;
    n = WS_MIN(n, (left + s->n_threads - 1) / s->n_threads);
    return (uint32_t)WS_MIN(WS_MAX(n, 1), WS_TURN_BLOCKS_MAX);
}

/* All blocks of a cooperative kernel become resident together; they wait in front. */
static void coop_deal(struct ws_sched *s, struct ws_tenant *t, struct ws_run *r)
{
    for (uint64_t i = 0; i < r->n_blocks; i++) {
        struct ws_block *b = deal_to(s, t, r, r->coop_sm[i]);
        if (!b) {
            grid_stop(r, WS_DEV_E_NO_MEMORY, "%s: the host has no memory for its blocks",
                      run_name(r));
            return;
        }
        ws_list_append(&t->front, &b->link);
    }
}

static void deal(struct ws_sched *s, struct ws_tenant *t, struct ws_turn *turn)
{
    ws_list_for_each_safe (it, &t->dealing) {
        struct ws_run *r = ws_list_entry(it, struct ws_run, deal_link);
        if (r->coop) {
            if (!coop_place(t, r))
                break; /* nobody overtakes it */
            coop_deal(s, t, r);
            return;
        }
        uint32_t n = batch_of(s, r), sm;
        while (turn->n < n && r->n_dealt < r->n_blocks && sm_find(t, r, &sm)) {
            struct ws_block *b = deal_to(s, t, r, sm);
            if (!b)
                break;
            turn->blocks[turn->n++] = b;
        }
        if (turn->n)
            return;
    }
    t->deal_blocked = true;
}

bool ws_launch_has_work_locked(const struct ws_tenant *t)
{
    return !ws_list_empty(&t->front) || !ws_list_empty(&t->rotated) ||
           (!ws_list_empty(&t->dealing) && !t->deal_blocked);
}

/* Takes blocks off a queue: one that is at work, or several that wait, or that were dealt and never ran. */
static void take_from(struct ws_list *queue, uint32_t n_max, struct ws_turn *turn)
{
    struct ws_list *l;
    while (turn->n < n_max && (l = ws_list_pop(queue))) {
        struct ws_block *b = ws_list_entry(l, struct ws_block, link);
        turn->blocks[turn->n++] = b;
        if (b->started && !b->waits)
            break;
    }
}

bool ws_launch_take_locked(struct ws_sched *s, struct ws_tenant *t, struct ws_turn *turn)
{
    bool may_deal = !ws_list_empty(&t->dealing) && !t->deal_blocked;
    if (ws_list_empty(&t->front) && may_deal &&
        (ws_list_empty(&t->rotated) || ++t->n_choices % ROTATED_EVERY))
        deal(s, t, turn);
    if (!turn->n && !ws_list_empty(&t->front)) {
        const struct ws_block *b = ws_list_entry(t->front.next, struct ws_block, link);
        take_from(&t->front, b->started ? 1 : batch_of(s, b->run), turn);
    }
    if (!turn->n)
        take_from(&t->rotated, WAITING_BLOCKS, turn);
    for (uint32_t i = 0; i < turn->n; i++) {
        struct ws_block *b = turn->blocks[i];
        if (!b->state && b->run->n_spare)
            b->state = b->run->spare[--b->run->n_spare];
    }
    return turn->n > 0;
}

/* ---- execution; no locks held ---- */

static uint64_t insns_of(const struct ws_work *w)
{
    uint64_t n = 0;
    for (int c = 0; c < _WS_WORK_N; c++)
        n += w->n_warp_insns[c];
    return n;
}

static bool may_be_waiting(const struct ws_work *w, uint64_t n_insns)
{
    return !w->n_global_stores && !w->n_shared_accesses && !w->n_barriers &&
           !w->n_warp_insns[WS_WORK_FP32] && !w->n_warp_insns[WS_WORK_FP64] &&
           !w->n_warp_insns[WS_WORK_SFU] && !w->n_warp_insns[WS_WORK_HALF] &&
           (w->n_global_loads + w->n_atomics) * 64 >= n_insns;
}

/* Whether a block whose warps all spin did nothing but that: it wrote nothing, and looked only where it had looked before. */
static bool only_polls(struct ws_block *b, const struct ws_work *w)
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
    part_stop(p, WS_DEV_E_TIMEOUT,
              "%s: not finished after %llu thread instructions (limit: max_kernel_insns)",
              p->kernel, (unsigned long long)limit);
    return true;
}

/* Runs a block for at most about @budget. */
static enum ws_step block_run(struct ws_block *b, uint64_t budget, uint64_t *ret_used)
{
    struct ws_run *r = b->run;
    uint64_t limit = r->device->options.max_kernel_insns;
    enum ws_step step = WS_STEP_MORE;
    *ret_used = 0;
    while (step == WS_STEP_MORE && *ret_used < budget) {
        struct ws_work w = {0};
        uint64_t ask = WS_MIN(STEP_INSNS, budget - *ret_used);
        step = ws_blockrun_step(b->state, ask, &w);
        uint64_t n = insns_of(&w),
                 total = atomic_fetch_add(&r->n_thread_insns, w.n_thread_insns) + w.n_thread_insns;
        *ret_used += WS_MAX(n, 1);
        b->waits = step == WS_STEP_MORE && n < ask / 2;
        b->polls = only_polls(b, &w) && b->waits;
        work_add(b->polls ? &b->polled : &b->work, &w);
        if (WS_UNLIKELY(r->grid.parts != NULL) &&
            part_spent(r, b->linear, w.n_thread_insns, limit, step == WS_STEP_MORE))
            return WS_STEP_STOPPED;
        if (!r->grid.parts && limit && total > limit && step == WS_STEP_MORE) {
            grid_stop(r, WS_DEV_E_TIMEOUT,
                      "%s: not finished after %llu thread instructions (limit: max_kernel_insns)",
                      run_name(r), (unsigned long long)limit);
            return WS_STEP_STOPPED;
        }
        if (b->waits)
            break;
        b->may_wait = may_be_waiting(&w, n);
        if (b->may_wait)
            b->slice_insns += SLICE_INSNS / (TURN_INSNS / STEP_INSNS);
    }
    b->slice_insns += *ret_used;
    return step;
}

static bool block_begin(struct ws_block *b)
{
    struct ws_run *r = b->run;
    if (!b->state && ws_blockrun_new(&b->state, &r->grid) < 0) {
        b->state = NULL;
        grid_stop(r, WS_DEV_E_NO_MEMORY, "%s: the host has no memory for a block", run_name(r));
        return false;
    }
    ws_blockrun_start(b->state, b->linear, b->sm, b->slot);
    b->started = true;
    return true;
}

void ws_launch_turn(struct ws_turn *turn)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < turn->n; i++) {
        struct ws_block *b = turn->blocks[i], *before = i ? turn->blocks[i - 1] : NULL;
        turn->outcome[i] = WS_STEP_MORE;
        if (!b->started) {
            if (used > TURN_INSNS)
                continue; /* earlier ones took longer than expected: back to the queue */
            if (!b->state && before && before->run == b->run &&
                turn->outcome[i - 1] == WS_STEP_DONE) {
                b->state = before->state;
                before->state = NULL;
            }
            if (!block_begin(b)) {
                turn->outcome[i] = WS_STEP_STOPPED;
                continue;
            }
        }
        uint64_t n;
        turn->outcome[i] = (uint8_t)block_run(b, b->waits ? WAITING_INSNS : TURN_INSNS, &n);
        used += n;
    }
}

/* ---- results; the scheduler's lock is held ---- */

static void state_spare(struct ws_run *r, struct ws_blockrun *state)
{
    if (!state)
        return;
    if (r->n_spare < SPARE_MAX)
        r->spare[r->n_spare++] = state;
    else
        ws_blockrun_free(state);
}

static void block_end(struct ws_sched *s, struct ws_tenant *t, struct ws_block *b)
{
    struct ws_run *r = b->run;
    if (b->started)
        block_count(r, b);
    state_spare(r, b->state);
    sm_vacate(r, &t->sms[b->sm], b->slot);
    r->n_live--;
    r->n_waiting -= b->waiting;
    r->n_polling -= b->polling;
    t->deal_blocked = false;
    ws_list_append(&s->free_blocks, &b->link);
}

static void queue_drop(struct ws_sched *s, struct ws_tenant *t, struct ws_list *queue,
                       struct ws_run *r)
{
    ws_list_for_each_safe (it, queue) {
        struct ws_block *b = ws_list_entry(it, struct ws_block, link);
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
    queue_drop(s, r->tenant, &r->tenant->front, r);
    queue_drop(s, r->tenant, &r->tenant->rotated, r);
    r->tenant->deal_blocked = false;
}

static void run_settle(struct ws_sched *s, struct ws_run *r, struct ws_list *ended)
{
    if (run_stopped(r))
        run_abort(s, r);
    if (r->n_dealt < r->n_blocks || r->n_live)
        return;
    ws_list_remove(&r->link);
    ws_list_append(ended, &r->link);
}

static void block_waiting(struct ws_block *b, bool waiting)
{
    if (b->waiting != waiting)
        b->run->n_waiting += waiting ? 1 : -1;
    b->waiting = waiting;
}

/* While all of a kernel's blocks poll, its clock may go on (vclock.h). */
static void block_polling(struct ws_block *b, bool polling)
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

/* A preempted kernel all of whose blocks wait may wait for some that were not dealt: then it has to go on. */
static void run_unblock(struct ws_run *r)
{
    if (!r->stopping || r->n_waiting < r->n_live)
        return;
    r->stopping = false;
    r->n_blocks = r->n_all;
    ws_list_append(&r->tenant->dealing, &r->deal_link);
    r->tenant->deal_blocked = false;
}

bool ws_launch_preempt_locked(struct ws_sched *s, struct ws_soft *d, const struct ws_op *op,
                              struct ws_list *ended)
{
    for (struct ws_tenant *t = d->tenants; t; t = t->next)
        ws_list_for_each (it, &t->runs) {
            struct ws_run *r = ws_list_entry(it, struct ws_run, link);
            if (r->op != op)
                continue;
            if (r->n_dealt == r->n_blocks ||
                (!r->progress && !(r->progress = ws_soft_progress_new(op))))
                return false;
            r->stopping = true;
            r->n_blocks = r->n_dealt;
            ws_list_remove(&r->deal_link);
            t->deal_blocked = false;
            run_settle(s, r, ended);
            if (ws_list_empty(ended)) {
                ws_sched_ready_locked(s, t); /* who stood behind it */
                return false;
            }
            ws_tenant_put_locked(t);
            return true;
        }
    return false;
}

void ws_launch_give_back_locked(struct ws_sched *s, struct ws_turn *turn, struct ws_list *ended)
{
    struct ws_tenant *t = turn->tenant;
    for (uint32_t i = 0; i < turn->n; i++) {
        struct ws_block *b = turn->blocks[i];
        struct ws_run *r = b->run;
        if (turn->outcome[i] == WS_STEP_MORE && !run_stopped(r)) {
            bool rotate = b->started && (b->waits || b->slice_insns >= SLICE_INSNS);
            if (rotate)
                b->slice_insns = 0;
            ws_list_append(rotate ? &t->rotated : &t->front, &b->link);
            block_waiting(b, rotate && (b->waits || b->may_wait));
            block_polling(b, b->polls);
            run_unblock(r);
            continue;
        }
        block_end(s, t, b);
        run_settle(s, r, ended);
    }
}

void ws_launch_cancel_parts_locked(struct ws_tenant *t, const struct ws_space *space)
{
    ws_list_for_each (it, &t->runs) {
        struct ws_run *r = ws_list_entry(it, struct ws_run, link);
        for (uint32_t k = 0; k < r->grid.n_parts; k++)
            if (r->grid.parts[k].space == space)
                part_stop(&r->grid.parts[k], WS_DEV_E_CANCELLED, "%s: cancelled",
                          r->grid.parts[k].kernel);
    }
}

void ws_launch_cancel_locked(struct ws_sched *s, struct ws_tenant *t, struct ws_list *ended)
{
    ws_list_for_each_safe (it, &t->runs) {
        struct ws_run *r = ws_list_entry(it, struct ws_run, link);
        grid_stop(r, WS_DEV_E_CANCELLED, "%s: cancelled", run_name(r));
        run_settle(s, r, ended);
    }
}

/* ---- submission ---- */

/* Hands a kernel to the workers. @started: its first block, already at work, or NULL. */
static void run_queue(struct ws_run *r, struct ws_block *started)
{
    struct ws_sched *s = r->device->sched;
    pthread_mutex_lock(&s->lock);
    struct ws_tenant *t = ws_tenant_get_locked(r->device, r->op->space);
    if (!t) {
        pthread_mutex_unlock(&s->lock);
        grid_stop(r, WS_DEV_E_NO_MEMORY, "%s: the host has no memory to run it", run_name(r));
        if (started) {
            ws_blockrun_free(started->state);
            free(started);
        }
        run_finish(r);
        return;
    }
    r->tenant = t;
    ws_list_append(&t->runs, &r->link);
    if (started) { /* on an SM that may be full already: then nobody else gets in until there is room again */
        started->slot = sm_occupy(r, &t->sms[started->sm]);
        ws_list_append(started->waits ? &t->rotated : &t->front, &started->link);
    }
    if (r->n_dealt < r->n_blocks) {
        ws_list_append(&t->dealing, &r->deal_link);
        t->deal_blocked = false;
    }
    ws_sched_ready_locked(s, t);
    pthread_mutex_unlock(&s->lock);
}

static bool may_inline(const struct ws_run *r)
{
    uint64_t mean = r->stats->block_insns;
    uint64_t n = r->n_blocks - r->n_dealt;
    return !r->coop && n <= (mean ? INLINE_BLOCKS : INLINE_BLOCKS_NEW) && mean * n <= INLINE_INSNS;
}

/* Runs a small kernel here as far as the budget goes. */
static void run_inline(struct ws_run *r)
{
    struct ws_block *b = ws_alloc(sizeof *b);
    uint64_t left = INLINE_INSNS;
    uint32_t sm = 0;
    while (b && r->n_dealt < r->n_blocks) {
        while (!sm_allowed(r, sm))
            sm = (sm + 1) % r->device->base.spec.n_sms;
        struct ws_blockrun *state = b->state;
        *b = (struct ws_block){.run = r, .state = state, .linear = r->n_dealt, .sm = sm};
        if (!block_begin(b))
            break;
        r->n_dealt++;
        uint64_t used;
        enum ws_step step = block_run(b, WS_MAX(left, 1), &used);
        if (step == WS_STEP_MORE) {
            r->n_live = 1;
            ws_list_init(&b->link);
            run_queue(r, b);
            return;
        }
        block_count(r, b);
        if (run_stopped(r))
            break;
        left -= WS_MIN(left, used);
        sm = (sm + 1) % r->device->base.spec.n_sms;
    }
    if (!b)
        grid_stop(r, WS_DEV_E_NO_MEMORY, "%s: the host has no memory for a block", run_name(r));
    else if (b->state)
        ws_blockrun_free(b->state);
    free(b);
    run_finish(r);
}

void ws_soft_launch(struct ws_soft *d, struct ws_op *op)
{
    struct ws_fit fit;
    bool ok;
    struct ws_soft_progress *progress = ws_soft_progress_take(op, &ok);
    if (!ok)
        ws_soft_fail(op, WS_DEV_E_INVALID_VALUE,
                     "launch: to go on from what another kind of GPU left");
    if (!ok || !check(d, op, progress, &fit)) {
        ws_soft_progress_free(progress);
        ws_soft_done(d, op);
        return;
    }
    atomic_fetch_add_explicit(&d->n_kernels, 1, memory_order_relaxed);
    if (d->options.clock == WS_CLOCK_SKIP) {
        op->end_ns = op->start_ns = op->ready_ns + d->base.spec.launch_overhead_ns;
        ws_timing_touch(d->timing, op->end_ns);
        ws_soft_progress_free(progress);
        ws_soft_done(d, op);
        return;
    }
    struct ws_run *r = run_new(d, op, &fit, progress);
    if (!r) {
        ws_soft_progress_free(progress);
        ws_soft_fail(op, WS_DEV_E_NO_MEMORY, "launch: the host has no memory to run a kernel");
        ws_soft_done(d, op);
        return;
    }
    int e = r->coop ? workspace_map(r) : 0;
    if (!e && op->launch.instance->module->info.kernels[op->launch.kernel].uses_heap)
        e = ws_space_open_heap(op->space, &d->base);
    if (e) {
        grid_stop(r, WS_DEV_E_NO_MEMORY, "%s: no memory for the grid's barrier or malloc()",
                  run_name(r));
        run_finish(r);
    } else if (may_inline(r)) {
        run_inline(r);
    } else {
        run_queue(r, NULL);
    }
}
