// SPDX-License-Identifier: Apache-2.0
/* Launches.
 *
 * A launch that may use the whole GPU is made as it is. A launch that is kept to a set of SMs, or
 * that resumes an earlier one, uses the kernel's rewritten form: each block looks on which SM it
 * runs and whether it is to stop, and takes its number from a counter in the queue's control line.
 * Blocks on SMs outside the set end at once and so use up part of the grid. The blocks that are
 * left are launched again, with the same counter, until it has passed the last block
 * (ws_cuda_launch_again()). Where a green context has exactly the set, the launch runs there, and
 * no block ends in vain. A kernel without such a form gets a green context, or all SMs, which is
 * logged once. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/cuda/cuda_private.h"

enum { WORKERS_MAX = 1 << 20 }; /* blocks of a launch that is kept to SMs, at most */

static const struct ws_kernel_info *info_of(const struct ws_op *op)
{
    return &op->launch.instance->module->info.kernels[op->launch.kernel];
}

static bool check(struct ws_cuda *d, struct ws_op *op)
{
    const struct ws_dinstance *inst = op->launch.instance;
    if (!ws_check_launch(op, &d->base.spec, inst ? &inst->module->info : NULL,
                         inst ? inst->space : NULL))
        return false;
    if (inst->device != d)
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE, "%s: the module belongs to another GPU",
                      info_of(op)->name);
    return !op->error;
}

/* How many blocks of @op an SM can hold in this form of its code; 0: unknown. The driver is asked
 * where a kernel's configuration changes only, since the thread that asks stops kernels, too. */
static uint32_t blocks_per_sm(struct ws_cuda *d, const struct ws_op *op, struct ws_cuda_image *i)
{
    const uint32_t *b = op->launch.block;
    uint32_t threads = b[0] * b[1] * b[2], k = op->launch.kernel;
    uint64_t key = (uint64_t)op->launch.shared_bytes << 32 | (uint64_t)threads << 16,
             known = atomic_load(&i->fits[k]);
    int n = 0;
    if ((known & ~UINT64_C(0xffff)) == key && known & 0xffff)
        return (uint32_t)(known & 0xffff);
    if (WS_CU(d, cuOccupancyMaxActiveBlocksPerMultiprocessor, &n, i->functions[k], (int)threads,
              op->launch.shared_bytes) != WS_CU_SUCCESS)
        return 0;
    if (n > 0 && n <= 0xffff && threads <= 0xffff)
        atomic_store(&i->fits[k], key | (uint64_t)n);
    return (uint32_t)WS_MAX(n, 0);
}

static ws_cu_result launch(struct ws_cuda *d, struct ws_cuda_run *r, ws_cu_function f,
                           const uint32_t grid[3], const void *params, size_t bytes)
{
    const struct ws_op *op = r->op;
    const uint32_t *cluster = op->launch.cluster;
    struct ws_cu_launch_attribute attrs[2];
    unsigned n = 0;
    if (op->launch.flags & WS_LAUNCH_COOPERATIVE)
        attrs[n++] = (struct ws_cu_launch_attribute){.id = WS_CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                                     .value = {.cooperative = 1}};
    if (cluster[0])
        attrs[n++] = (struct ws_cu_launch_attribute){
            .id = WS_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            .value = {.cluster = {cluster[0], cluster[1], cluster[2]}}};
    struct ws_cu_launch_config c = {
        .grid = {grid[0], grid[1], grid[2]},
        .block = {op->launch.block[0], op->launch.block[1], op->launch.block[2]},
        .shared_bytes = op->launch.shared_bytes,
        .stream = r->queue->stream,
        .attrs = attrs,
        .n_attrs = n};
    void *extra[] = {WS_CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)params,
                     WS_CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, WS_CU_LAUNCH_PARAM_END};
    ws_cu_result e = WS_CU(d, cuLaunchKernelEx, &c, f, NULL, bytes ? extra : NULL);
    return e == WS_CU_SUCCESS ? ws_cuda_lib_behind(d, r) : e;
}

static enum ws_cuda_start started(struct ws_cuda *d, struct ws_cuda_run *r, ws_cu_result e)
{
    if (e == WS_CU_NOT_READY) /* of prepare_params(): it begins anew, in the starter thread */
        return WS_CUDA_BLOCKS;
    if (e != WS_CU_SUCCESS)
        ws_cuda_fail(d, r->op, e, info_of(r->op)->name);
    /* What was queued before the call that failed runs: only the end of the stream's work tells. */
    return WS_CUDA_STARTED;
}

/* The launch's own parameters, with those that rewritten kernels have behind them. @ctl: NULL: the
 * launch is made whole. Leaves r->params NULL where the launch's own parameters will do. */
static ws_cu_result prepare_params(struct ws_cuda *d, struct ws_cuda_run *r,
                                   const struct ws_cuda_image *i, const struct ws_ptx_ctl *ctl)
{
    const struct ws_op *op = r->op;
    uint32_t k = op->launch.kernel;
    struct ws_ptx_fence fence;
    uint64_t lib = 0;
    bool fenced = !d->options.unfenced && !op->launch.instance->module->ptx->fenced;
    uint64_t bytes = i->lib_at[k] + sizeof(lib);
    if (fenced)
        bytes = i->fence_at[k] + sizeof(fence);
    if (ctl)
        bytes = i->ctl_at[k] + sizeof(*ctl);
    r->params_bytes = info_of(op)->param_bytes;
    if (!fenced && !ctl && !i->lib_uses[k])
        return WS_CU_SUCCESS;
    ws_cu_result e = i->lib_uses[k] ? ws_cuda_lib(d, r, i->lib_uses[k], &lib) : WS_CU_SUCCESS;
    if (e == WS_CU_SUCCESS && fenced)
        e = ws_cuda_fence(d, r, &fence);
    if (e == WS_CU_SUCCESS && !(r->params = ws_alloc(bytes)))
        e = WS_CU_OUT_OF_MEMORY;
    if (e != WS_CU_SUCCESS)
        return e;
    if (r->params_bytes)
        memcpy(r->params, op->launch.params, r->params_bytes);
    if (i->lib_uses[k])
        memcpy(r->params + i->lib_at[k], &lib, sizeof(lib));
    if (fenced)
        memcpy(r->params + i->fence_at[k], &fence, sizeof(fence));
    if (ctl)
        memcpy(r->params + i->ctl_at[k], ctl, sizeof(*ctl));
    r->params_bytes = (uint32_t)bytes;
    return WS_CU_SUCCESS;
}

/* ---- whole ---- */

/* @n_sms: of the queue's stream. */
static enum ws_cuda_start launch_whole(struct ws_cuda *d, struct ws_cuda_run *r,
                                       struct ws_cuda_image *i, uint32_t n_sms)
{
    struct ws_op *op = r->op;
    uint32_t k = op->launch.kernel;
    const uint32_t *g = op->launch.grid;
    if (op->launch.flags & WS_LAUNCH_COOPERATIVE) {
        uint64_t room = (uint64_t)blocks_per_sm(d, op, i) * n_sms,
                 blocks = (uint64_t)g[0] * g[1] * g[2];
        if (blocks > room) {
            ws_check_fail(op, WS_DEV_E_COOPERATIVE_TOO_LARGE,
                          "%s: cooperative grid of %llu blocks, %llu can be resident",
                          info_of(op)->name, (unsigned long long)blocks, (unsigned long long)room);
            return WS_CUDA_DONE;
        }
    }
    ws_cu_result e = prepare_params(d, r, i, NULL);
    if (e == WS_CU_SUCCESS)
        e = WS_CU(d, cuEventRecord, r->queue->begin, r->queue->stream);
    if (e == WS_CU_SUCCESS)
        e = launch(d, r, i->functions[k], g, r->params ? r->params : op->launch.params,
                   r->params_bytes);
    r->n_sms = (uint32_t)WS_MIN((uint64_t)g[0] * g[1] * g[2], n_sms);
    return started(d, r, e);
}

/* ---- by tickets ---- */

/* What a stopped launch leaves: how many blocks are done. */
struct progress {
    struct ws_progress base;
    struct ws_cuda_progress is;
};

static void progress_free(struct ws_progress *p)
{
    free(WS_CONTAINER_OF(p, struct progress, base));
}

struct ws_cuda_progress ws_cuda_progress_read(const struct ws_progress *p)
{
    return WS_CONTAINER_OF(p, const struct progress, base)->is;
}

struct ws_progress *ws_cuda_progress_new(struct ws_cuda_progress is)
{
    struct progress *p = ws_alloc(sizeof(*p));
    if (!p)
        return NULL;
    p->base.free = progress_free;
    p->is = is;
    p->base.part = is.total ? (double)is.done / is.total : 0;
    return &p->base;
}

void ws_cuda_launch_stopped(struct ws_cuda_run *r)
{
    struct ws_op *op = r->op;
    const uint32_t *g = op->launch.grid;
    struct ws_progress *p;
    if (r->timed && (!r->rewritten || r->queue->control->ticket >= r->ctl.grid.total))
        return; /* it had ended before */
    if (!r->timed && op->launch.progress) {
        op->preempted = true; /* it was taken back before it was started */
        return;
    }
    p = ws_cuda_progress_new((struct ws_cuda_progress){r->rewritten ? r->queue->control->ticket : 0,
                                                       g[0] * g[1] * g[2]});
    if (!p) {
        ws_check_fail(op, WS_DEV_E_NO_MEMORY, "the host has no memory to keep how far it came");
        return;
    }
    ws_progress_free(op->launch.progress);
    op->launch.progress = p;
    op->preempted = true;
}

/* The next block's number goes to the GPU, without a copy: copies wait for those of others. */
static ws_cu_result set_ticket(struct ws_cuda *d, struct ws_cuda_queue *q)
{
    uint64_t ticket = q->control_va + offsetof(struct ws_cuda_control, ticket);
    if (d->flag_stream)
        return WS_CU(d, cuStreamWriteValue32, q->stream, ticket, q->control->ticket, 0);
    /* The ticket itself changes before this has arrived. */
    q->control->first = q->control->ticket;
    return WS_CUDA_NOTED(d, ws_cuda_carry(d, q->stream, ticket, (uintptr_t)&q->control->first,
                                          sizeof(q->control->first)));
}

/* The counter comes back behind the launch that is in the queue. */
static ws_cu_result read_ticket(struct ws_cuda *d, struct ws_cuda_queue *q)
{
    return WS_CUDA_NOTED(d, ws_cuda_carry(d, q->stream, (uintptr_t)&q->control->ticket,
                                          q->control_va + offsetof(struct ws_cuda_control, ticket),
                                          sizeof(q->control->ticket)));
}

/* The same after the launch has stopped. */
static ws_cu_result read_last_ticket(struct ws_cuda *d, struct ws_cuda_queue *q)
{
    return WS_CUDA_NOTED(
        d, ws_cuda_carry_first(d, q->stream, (uintptr_t)&q->control->ticket,
                               q->control_va + offsetof(struct ws_cuda_control, ticket),
                               sizeof(q->control->ticket)));
}

/* Lowers the flag of the queue's last launch if it was raised, and takes the other one. */
static ws_cu_result take_flag(struct ws_cuda *d, struct ws_cuda_queue *q)
{
    uint64_t flag = q->control_va + offsetof(struct ws_cuda_control, flag[q->flag]);
    if (!q->raised)
        return WS_CU_SUCCESS;
    q->flag ^= 1;
    q->raised = false;
    ws_cu_result e = WS_CU(d, cuStreamWaitEvent, q->stream, d->flag_event, 0);
    return e == WS_CU_SUCCESS ? WS_CU(d, cuStreamWriteValue32, q->stream, flag, 0, 0) : e;
}

/* All on the queue's stream. Where SMs are chosen, the number of the next block comes back. */
static ws_cu_result launch_part(struct ws_cuda *d, struct ws_cuda_run *r)
{
    struct ws_cuda_queue *q = r->queue;
    uint32_t left = r->ctl.grid.total - WS_MIN(q->control->ticket, r->ctl.grid.total);
    /* Where SMs are chosen, as many blocks as fill all SMs: one alone might go to the same wrong SM
     * each time. */
    uint32_t blocks = left;
    if (r->kept)
        blocks = WS_MAX(r->loops ? 1 : left, r->workers);
    else if (r->loops)
        blocks = WS_MIN(left, r->workers);
    uint32_t grid[3] = {blocks, 1, 1};
    ws_cu_result e = set_ticket(d, q);
    if (e == WS_CU_SUCCESS && r->kept)
        e = WS_CUDA_NOTED(d, ws_cuda_carry(d, q->stream, r->ctl.mask, (uintptr_t)q->control->mask,
                                           sizeof(q->control->mask)));
    if (e == WS_CU_SUCCESS)
        e = WS_CU(d, cuEventRecord, q->begin, q->stream);
    if (e == WS_CU_SUCCESS)
        e = launch(d, r, r->function, grid, r->params, r->params_bytes);
    if (e == WS_CU_SUCCESS && r->kept)
        return read_ticket(d, q);
    /* Unless it is stopped, all blocks take their numbers. */
    q->control->ticket = r->ctl.grid.total;
    return e;
}

/* @fit: blocks that an SM holds. @n_sms: of the queue's stream. @kept: to the set by its mask. */
static enum ws_cuda_start launch_tickets(struct ws_cuda *d, struct ws_cuda_run *r,
                                         struct ws_cuda_image *i, uint32_t fit, uint32_t n_sms,
                                         bool kept)
{
    struct ws_op *op = r->op;
    struct ws_cuda_queue *q = r->queue;
    uint32_t k = op->launch.kernel;
    ws_cu_result e = take_flag(d, q);
    memset(q->control, 0, sizeof(*q->control));
    if (op->launch.progress)
        q->control->ticket = ws_cuda_progress_read(op->launch.progress).done;
    for (unsigned sm = 0; kept && sm < d->base.spec.n_sms; sm++)
        if (ws_sm_set_has(&op->launch.sms, sm))
            q->control->mask[sm / 32] |= UINT32_C(1) << sm % 32;
    r->rewritten = true;
    r->kept = kept;
    r->last_ticket = q->control->ticket;
    r->function = i->functions[k];
    r->ctl = (struct ws_ptx_ctl){
        .ticket = q->control_va + offsetof(struct ws_cuda_control, ticket),
        .flag = q->control_va + offsetof(struct ws_cuda_control, flag[q->flag]),
        .mask = kept ? q->control_va + offsetof(struct ws_cuda_control, mask) : 0};
    /* it succeeds, since fits() has tried it */
    (void)ws_ptx_shape_set(&r->ctl.grid, op->launch.grid);
    r->loops = i->kinds[k] == WS_REWRITE_PERSISTENT;
    r->workers = fit * n_sms;
    r->n_sms = WS_MIN(r->ctl.grid.total, kept ? op->launch.sms.n : n_sms);
    if (e == WS_CU_SUCCESS)
        e = prepare_params(d, r, i, &r->ctl);
    if (e == WS_CU_SUCCESS)
        e = launch_part(d, r);
    return started(d, r, e);
}

bool ws_cuda_launch_again(struct ws_cuda *d, struct ws_cuda_run *r)
{
    struct ws_cuda_queue *q = r->queue;
    bool reads = r->preempt && !r->kept && !r->reads_ticket;
    if (!r->rewritten || r->op->error || r->cancelled ||
        (!reads && (r->preempt || q->control->ticket >= r->ctl.grid.total)))
        return false;
    if (reads) { /* how far it came */
        r->reads_ticket = true;
        (void)started(d, r, read_last_ticket(d, q));
        return true;
    }
    if (q->control->ticket == r->last_ticket && r->workers < WORKERS_MAX)
        r->workers *= 2; /* no block came to an SM of the set: the next ones must reach more SMs */
    r->last_ticket = q->control->ticket;
    (void)started(d, r, launch_part(d, r));
    return true;
}

/* How many blocks an SM holds if the launch goes by tickets in @i; 0: it cannot. */
static uint32_t fits(struct ws_cuda *d, const struct ws_op *op, struct ws_cuda_image *i)
{
    const uint32_t *g = op->launch.grid, *b = op->launch.block;
    uint32_t k = op->launch.kernel;
    struct ws_ptx_shape shape;
    bool may = i && i->functions[k] && ws_ptx_shape_set(&shape, g) && !op->launch.flags &&
               !(i->flat[k] && (b[1] > 1 || b[2] > 1));
    return may ? blocks_per_sm(d, op, i) : 0;
}

static uint32_t threads_of(const struct ws_op *op)
{
    const uint32_t *b = op->launch.block;
    return b[0] * b[1] * b[2];
}

/* The form @form of the launch's code, or its wide form if the block is too large for it.
 * *ret: NULL: it cannot be made. Return: false: it has to be compiled, and @may_block is false. */
static bool find_image(const struct ws_op *op, unsigned form, bool may_block,
                       struct ws_cuda_image **ret)
{
    struct ws_dinstance *inst = op->launch.instance;
    uint32_t k = op->launch.kernel;
    *ret = NULL;
    if (!may_block && !ws_cuda_image_ready(inst, form))
        return false;
    struct ws_cuda_image *i = ws_cuda_image_of(inst, form);
    if (i && i->functions[k] && i->max_threads[k] && threads_of(op) > i->max_threads[k]) {
        form |= WS_CUDA_WIDE;
        if (!may_block && !ws_cuda_image_ready(inst, form))
            return false;
        i = ws_cuda_image_of(inst, form);
    }
    *ret = i;
    return true;
}

/* A set of SMs for a kernel that cannot look on which SM it runs: by a green context, or not at
 * all. */
static enum ws_cuda_start launch_green(struct ws_cuda *d, struct ws_cuda_run *r,
                                       struct ws_cuda_image *i, bool may_block)
{
    const struct ws_op *op = r->op;
    const uint32_t *g = op->launch.grid;
    uint32_t n;
    if (!ws_cuda_green_enter(d, r->queue, &op->launch.sms, false, may_block, &n))
        return WS_CUDA_BLOCKS;
    if (n && op->launch.flags & WS_LAUNCH_COOPERATIVE &&
        (uint64_t)g[0] * g[1] * g[2] > (uint64_t)blocks_per_sm(d, op, i) * n) {
        ws_cuda_green_leave(r->queue); /* its program was told that all of the GPU is available */
        n = 0;
    }
    static _Atomic bool said;
    if (!n && !atomic_exchange(&said, true))
        ws_log(WS_INFO, "cuda: kernel=%s cannot be kept to its SMs: it gets all of them",
               info_of(op)->name);
    return launch_whole(d, r, i, n ? n : d->base.spec.n_sms);
}

/* The stack belongs to the context, so it is as large as the largest that a client has asked for.
 * To change it, the driver may wait for kernels. Return: as ws_cuda_fence_prepare(). */
static enum ws_cuda_start prepare_stack(struct ws_cuda *d, struct ws_op *op, bool may_block)
{
    uint64_t bytes = ws_space_stack_bytes(op->space);
    ws_cu_result e = WS_CU_SUCCESS;
    if (bytes <= d->stack_bytes)
        return WS_CUDA_STARTED;
    if (!may_block)
        return WS_CUDA_BLOCKS;
    pthread_mutex_lock(&d->memory_lock); /* of two threads the smaller one must not come last */
    if (bytes > d->stack_bytes)
        e = WS_CU(d, cuCtxSetLimit, WS_CU_LIMIT_STACK_SIZE, bytes);
    if (e == WS_CU_SUCCESS)
        d->stack_bytes = WS_MAX(bytes, d->stack_bytes);
    pthread_mutex_unlock(&d->memory_lock);
    if (e == WS_CU_SUCCESS)
        return WS_CUDA_STARTED;
    ws_cuda_fail(d, op, e, "stack of each thread");
    return WS_CUDA_DONE;
}

enum ws_cuda_start ws_cuda_launch(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block)
{
    struct ws_op *op = r->op;
    struct ws_cuda_image *i;
    if (!check(d, op))
        return WS_CUDA_DONE;
    if (ws_cuda_awaits_clearing(d, may_block))
        return WS_CUDA_BLOCKS;
    enum ws_cuda_start ready = prepare_stack(d, op, may_block);
    if (ready == WS_CUDA_STARTED)
        ready = ws_cuda_lib_prepare(d, r, may_block);
    if (ready == WS_CUDA_STARTED)
        ready = ws_cuda_fence_prepare(d, r, may_block);
    if (ready != WS_CUDA_STARTED)
        return ready;
    bool kept = op->launch.sms.n && op->launch.sms.n < d->base.spec.n_sms;
    bool whole = ws_op_is_together(op); /* blocks that take tickets are in no cluster */
    if (!whole && (kept || op->launch.progress || d->options.preemptible)) {
        if (!find_image(op, WS_CUDA_TICKETS, may_block, &i))
            return WS_CUDA_COMPILES;
        uint32_t fit = fits(d, op, i), n = 0;
        if (fit && kept && !ws_cuda_green_enter(d, r->queue, &op->launch.sms, true, may_block, &n))
            return WS_CUDA_BLOCKS;
        if (fit)
            return launch_tickets(d, r, i, fit, n ? n : d->base.spec.n_sms, kept && !n);
    }
    if (op->launch.progress && ws_progress_part(op->launch.progress) > 0) {
        ws_check_fail(op, WS_DEV_E_LAUNCH_FAILURE, "%s: it has no form that can be resumed",
                      info_of(op)->name);
        return WS_CUDA_DONE;
    }
    if (!find_image(op, 0, may_block, &i))
        return WS_CUDA_COMPILES;
    if (!i) {
        ws_check_fail(op, WS_DEV_E_NO_MEMORY,
                      "%s: the driver did not compile it for the addresses of its variables",
                      info_of(op)->name);
        return WS_CUDA_DONE;
    }
    return kept ? launch_green(d, r, i, may_block) : launch_whole(d, r, i, d->base.spec.n_sms);
}
