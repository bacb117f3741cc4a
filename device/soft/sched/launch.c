// SPDX-License-Identifier: Apache-2.0
/* Submission of a kernel: the checks, and who begins it.
 *
 * A small kernel that has taken little time so far (or is new) is begun by the submitting thread
 * itself, which costs less than waking a worker. When it turns out to be longer, workers continue
 * it where it stands. Where to read on: deal.c gives blocks to virtual SMs, turn.c executes them,
 * run.c completes the kernel. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/check.h"
#include "device/soft/sched/run.h"

enum { INLINE_INSNS = 1 << 11, INLINE_BLOCKS = 32, INLINE_BLOCKS_NEW = 4 };

/* ---- checks ---- */

static bool parts_ok(const struct ws_launch_parts *p)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->n; k++)
        sum += p->part[k].share;
    return sum && sum == p->round;
}

/* Return: whether the launch may begin, with *ret_fit; else op->error and op->text say why not. */
static bool check(struct ws_soft *d, struct ws_op *op, const struct ws_soft_progress *progress,
                  struct ws_fit *ret_fit)
{
    const struct ws_gpu_spec *spec = &d->base.spec;
    const struct ws_dinstance *inst = op->launch.instance;
    if (!ws_check_launch(op, spec, inst ? &inst->module->info : NULL, inst ? inst->space : NULL))
        return false;
    const struct ws_kernel_info *k = &inst->module->info.kernels[op->launch.kernel];
    const uint32_t *g = op->launch.grid, *b = op->launch.block;
    if (progress && !ws_soft_progress_fits(progress, op))
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE,
                      "%s: it cannot be resumed: what was preempted was another launch", k->name);
    else if (op->launch.parts && !parts_ok(op->launch.parts))
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE,
                      "%s: the shares of its parts do not add up to a round", k->name);
    if (op->error)
        return false;
    ws_occupancy_fit(spec, b[0] * b[1] * b[2], k->n_regs,
                     k->static_shared_bytes + op->launch.shared_bytes, ret_fit);
    uint64_t n_sms = op->launch.sms.n ? op->launch.sms.n : spec->n_sms,
             n_blocks = (uint64_t)g[0] * g[1] * g[2], n_resident = n_sms * ret_fit->blocks_per_sm;
    if (op->launch.flags & WS_LAUNCH_COOPERATIVE && n_blocks > n_resident) {
        ws_check_fail(op, WS_DEV_E_COOPERATIVE_TOO_LARGE,
                      "%s: cooperative grid of %llu blocks, %llu can be resident", k->name,
                      (unsigned long long)n_blocks, (unsigned long long)n_resident);
        return false;
    }
    const uint32_t *c = op->launch.cluster;
    uint64_t n_cluster = (uint64_t)c[0] * c[1] * c[2];
    if (n_cluster > n_resident) {
        ws_check_fail(op, WS_DEV_E_INVALID_CLUSTER,
                      "%s: a cluster of %llu blocks, %llu can be resident", k->name,
                      (unsigned long long)n_cluster, (unsigned long long)n_resident);
        return false;
    }
    return true;
}

/* ---- submission ---- */

/* Hands a kernel to the workers. @started: its first block, already at work, or NULL. */
static void run_queue(struct ws_run *r, struct ws_dealt_block *started)
{
    struct ws_sched *s = r->device->sched;
    pthread_mutex_lock(&s->lock);
    struct ws_tenant *t = ws_tenant_get_locked(r->device, r->op->space);
    if (!t) {
        pthread_mutex_unlock(&s->lock);
        ws_run_stop(r, WS_DEV_E_NO_MEMORY, "%s: the host has no memory to run it", ws_run_name(r));
        if (started) {
            ws_state_free(r, started->state);
            free(started);
        }
        ws_run_finish(r);
        return;
    }
    r->tenant = t;
    ws_list_append(&t->runs, &r->link);
    r->op->run = r;
    if (r->grid.parts)
        ws_list_append(&r->device->parted, &r->parted);
    /* On an SM that may be full already: then nobody else gets in until there is room again. */
    if (started) {
        started->slot = ws_run_occupy_locked(r, &t->sms[started->sm]);
        ws_list_append(started->waits ? &t->rotated : &t->front, &started->link);
    }
    if (r->n_dealt < r->n_blocks) {
        ws_list_append(&t->dealing, &r->deal_link);
        t->deal_blocked = false;
    }
    ws_sched_ready_locked(s, t);
    pthread_mutex_unlock(&s->lock);
}

/* Kernels that call malloc() or printf() or start others take longer than their instructions tell.
 */
static bool may_inline(const struct ws_run *r)
{
    const struct ws_op *op = r->op;
    const struct ws_kernel_info *k = &op->launch.instance->module->info.kernels[op->launch.kernel];
    uint64_t mean = r->stats->block_insns;
    uint64_t n = r->n_blocks - r->n_dealt;
    return !r->coop && r->n_cluster == 1 && !k->uses_heap && !k->prints &&
           n <= (mean ? INLINE_BLOCKS : INLINE_BLOCKS_NEW) && mean * n <= INLINE_INSNS;
}

/* Runs a small kernel here as far as the budget goes. */
static void run_inline(struct ws_run *r)
{
    struct ws_dealt_block *b = ws_alloc(sizeof(*b));
    uint64_t left = INLINE_INSNS;
    uint32_t sm = 0;
    while (b && r->n_dealt < r->n_blocks) {
        while (!ws_run_allows_sm(r, sm))
            sm = (sm + 1) % r->device->base.spec.n_sms;
        struct ws_blockrun *state = b->state;
        *b = (struct ws_dealt_block){.run = r, .state = state, .linear = r->n_dealt, .sm = sm};
        int e = ws_block_begin(b);
        if (e > 0) { /* the workers begin it later */
            free(b);
            run_queue(r, NULL);
            return;
        }
        if (e)
            break;
        r->n_dealt++;
        uint64_t used;
        enum ws_step step = ws_block_run(b, WS_MAX(left, 1), &used);
        if (step == WS_STEP_MORE) {
            r->n_live = 1;
            ws_list_init(&b->link);
            run_queue(r, b);
            return;
        }
        ws_run_count(r, b);
        if (ws_run_stopped(r))
            break;
        left -= WS_MIN(left, used);
        sm = (sm + 1) % r->device->base.spec.n_sms;
    }
    if (!b)
        ws_run_stop(r, WS_DEV_E_NO_MEMORY, "%s: the host has no memory for a block",
                    ws_run_name(r));
    else
        ws_state_free(r, b->state);
    free(b);
    ws_run_finish(r);
}

void ws_soft_launch(struct ws_soft *d, struct ws_op *op)
{
    struct ws_fit fit;
    bool ok;
    struct ws_soft_progress *progress = ws_soft_progress_take(op, &ok);
    if (!ok)
        ws_soft_fail(op, WS_DEV_E_INVALID_VALUE,
                     "launch: it cannot be resumed from what another kind of GPU left");
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
    struct ws_run *r = ws_run_new(d, op, &fit, progress);
    if (!r) {
        ws_soft_progress_free(progress);
        ws_soft_done(d, op);
        return;
    }
    int e = r->coop ? ws_run_map_barrier(r) : 0;
    if (!e && op->launch.instance->module->info.kernels[op->launch.kernel].uses_heap)
        e = ws_space_open_heap(op->space, &d->base);
    if (e) {
        ws_run_stop(r, WS_DEV_E_NO_MEMORY, "%s: no memory for the grid's barrier or malloc()",
                    ws_run_name(r));
        ws_run_finish(r);
    } else if (may_inline(r)) {
        run_inline(r);
    } else {
        run_queue(r, NULL);
    }
}
