// SPDX-License-Identifier: Apache-2.0
/* Launches of several clients as one.
 *
 * The launch runs in a joint space of the members' spaces and one of ours (fused_arena.h), which
 * holds what the fences need: where each client's memory is, and a place for each to note a
 * fault. The fences keep clients out of it. The variables are the clients' own
 * (ws_device_instance_borrow()). Members stand in the template's order, not the caller's.
 *
 * Lifetime: each member's job is in flight (ws_client.n_in_flight) until the launch has ended,
 * so a dropped client's space stays until then; dropping it cancels its part. The launch itself
 * is a job that stands in no stream, and comes back to the loop as any.
 *
 * What the fences let pass: a client's ranges are the runs of addresses that the pool gave to it
 * and nobody else, and its pinned memory as mapped when the launch began. Holes in a run are
 * nobody's, so that going there is a fault of that part alone. */
#include "backend/scheduling/fused.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/client/module.h"
#include "backend/client/segment.h"
#include "backend/client/stream.h"
#include "backend/scheduling/finished.h"
#include "backend/scheduling/fused_arena.h"
#include "backend/scheduling/fused_cache.h"
#include "base/alloc.h"
#include "base/launch_check.h"
#include "device/payer.h"

struct fault { /* as ws$fence writes it */
    uint64_t is, address;
};

struct ws_fused {
    struct ws_command command; /* the launch */
    struct ws_server *server;
    struct ws_device *device;
    uint32_t n;
    struct ws_command *members[WS_FUSE_MAX]; /* in the template's order */
    const struct ws_fused_code *code;
    struct ws_space *joint;
    struct ws_fused_instance *instance;
    uint8_t *control, *params;
    uint64_t control_va, control_bytes, constants_va;
    struct ws_launch_parts *parts;
};

static struct ws_fused *fused_free(struct ws_fused *f)
{
    if (!f)
        return NULL;
    if (f->instance)
        ws_fused_cache_instance_put(f->code, f->instance);
    ws_space_free(f->joint);
    if (f->code)
        ws_fused_cache_put(f->code);
    ws_fused_arena_give(f->server, f->control, f->control_bytes);
    free(f->params);
    free(f->parts);
    free(f);
    return NULL;
}

/* ---- whether they go together ---- */

WS_PRINTF(3, 4)
static int refuse(char *why, size_t bytes, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, bytes, fmt, ap);
    va_end(ap);
    return WS_FUSED_E_REFUSED;
}

/* What the device would refuse is left to it, which says so in CUDA's words. */
static int check_member(const struct ws_command *j, const struct ws_gpu *gpu, char *why,
                        size_t bytes)
{
    const struct ws_gpu_spec *spec = &gpu->device->spec;
    if (j->kind != WS_COMMAND_OP || j->op.kind != WS_OPK_LAUNCH || j->stream->context->gpu != gpu)
        return refuse(why, bytes, "no launch on %s", spec->name);
    const struct ws_kernel_info *k =
        &j->module->code->info
             ->kernels[j->op.launch.kernel < j->module->code->n_kernels ? j->op.launch.kernel : 0];
    const uint32_t *g = j->op.launch.grid, *b = j->op.launch.block;
    if (j->client->errors.sticky || j->client->dropped)
        return refuse(why, bytes, "%s: its client's context is lost", j->kernel_name);
    if (j->relaunch || j->op.launch.progress)
        return refuse(why, bytes, "%s: a launch in parts", j->kernel_name);
    if (ws_op_is_together(&j->op))
        return refuse(why, bytes, "%s: a cooperative launch, or one of clusters", j->kernel_name);
    if (k->unsupported || k->uses_heap)
        return refuse(why, bytes, "%s: %s", k->name,
                      k->unsupported ? k->unsupported : "it calls malloc()");
    struct ws_launch_shape l = {
        .grid = {g[0], g[1], g[2]},
        .block = {b[0], b[1], b[2]},
        .static_shared_bytes = k->static_shared_bytes,
        .dynamic_shared_bytes = j->op.launch.shared_bytes,
        .max_threads_per_block = spec->max_threads_per_block,
        .max_shared_bytes = spec->shared_bytes_per_block_optin,
        .kernel_max_threads = k->max_threads_per_block,
    };
    if (ws_launch_check(&l) != WS_LAUNCH_VALID)
        return refuse(why, bytes, "%s: its launch is not a valid one", k->name);
    return 0;
}

struct member {
    struct ws_fused_kernel kernel;
    struct ws_command *job;
};

static int by_kernel(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    int c = ws_fused_kernel_cmp(&x->kernel, &y->kernel);
    return c ? c
             : (x->job->client->id > y->job->client->id) -
                   (x->job->client->id < y->job->client->id);
}

/* ---- fences ---- */

/* The client's addresses: those of each device, and reserved ones. NULL: there is no @k'th. */
static const struct ws_va *va_of(const struct ws_client *c, uint32_t k)
{
    return k < c->n_contexts ? &c->contexts[k].va : k == c->n_contexts ? &c->memory.va : NULL;
}

static size_t n_ranges(const struct ws_client *c)
{
    size_t n = 0;
    for (uint32_t k = 0; va_of(c, k); k++)
        n += va_of(c, k)->n_runs;
    for (const struct ws_segment *g = c->segments.by_id; g; g = g->hh.next)
        n += g->mapped_at != 0;
    return n;
}

static size_t ranges_bytes(const struct ws_client *c)
{
    return sizeof(struct ws_ptx_ranges) +
           n_ranges(c) * sizeof(((struct ws_ptx_ranges *)0)->range[0]);
}

static void set_fence(const struct ws_fused *f, const struct ws_client *c, size_t ranges_at,
                      size_t fault_at, struct ws_ptx_fence *ret)
{
    struct ws_ptx_ranges *r = (struct ws_ptx_ranges *)(void *)(f->control + ranges_at);
    uint64_t low = 0, bytes = 0;
    const struct ws_va *v;
    for (uint32_t i = 0; (v = va_of(c, i)); i++)
        for (size_t k = 0; k < v->n_runs; k++) {
            r->range[r->n].low = v->runs[k].va;
            r->range[r->n++].bytes = v->runs[k].bytes;
            if (v->runs[k].bytes > bytes) {
                low = v->runs[k].va;
                bytes = v->runs[k].bytes;
            }
        }
    for (const struct ws_segment *g = c->segments.by_id; g; g = g->hh.next)
        if (g->mapped_at) {
            r->range[r->n].low = g->mapped_at;
            r->range[r->n++].bytes = g->bytes;
        }
    *ret = (struct ws_ptx_fence){.low = low,
                                 .limit = bytes > WS_FENCE_SLACK ? bytes - WS_FENCE_SLACK : 0,
                                 .ranges = f->control_va + ranges_at,
                                 .fault = f->control_va + fault_at};
}

static size_t table_at(const struct ws_fused *f)
{
    return WS_ALIGN_UP(f->n * sizeof(struct fault), 16);
}

/* Faults first, then a leader's records, then the ranges of each client. */
static int make_control(struct ws_fused *f, struct ws_ptx_fence *fences)
{
    size_t bytes = table_at(f) + f->n * f->code->template->record_bytes, at = bytes;
    for (uint32_t k = 0; k < f->n; k++)
        bytes += ranges_bytes(f->members[k]->client);
    int r = ws_fused_arena_take(f->server, bytes, &f->control, &f->control_va);
    if (r)
        return ws_forward(r);
    f->control_bytes = bytes;
    for (uint32_t k = 0; k < f->n; k++) {
        set_fence(f, f->members[k]->client, at, k * sizeof(struct fault), &fences[k]);
        at += ranges_bytes(f->members[k]->client);
    }
    if (f->code->constants)
        r = ws_fused_cache_constants(f->server, f->code, &f->constants_va);
    return r ? ws_forward(r) : 0;
}

static int join_spaces(struct ws_fused *f)
{
    struct ws_space *spaces[WS_FUSE_MAX + 1];
    for (uint32_t k = 0; k < f->n; k++)
        spaces[k] = f->members[k]->client->memory.space;
    spaces[f->n] = ws_fused_arena_space(f->server);
    return ws_space_join(&f->joint, spaces, f->n + 1);
}

/* Of variable @v of member @k's kernel. */
static uint64_t address_of(const struct ws_fused *f, uint32_t k, uint32_t v)
{
    const struct ws_fused_bind *b = f->code->bind[k];
    const uint64_t *own = f->members[k]->module->var_va;
    if (!b)
        return own[v];
    return b[v].own >= 0 ? own[b[v].own] : f->constants_va + b[v].at;
}

static int make_instance(struct ws_fused *f)
{
    const struct ws_template *t = f->code->template;
    uint64_t *va = ws_alloc_array((size_t)t->ptx->n_vars + 1, sizeof(*va));
    if (!va)
        return ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < f->n && !t->leader; k++) /* a leader's are in its records */
        for (uint32_t v = 0; v < t->member[k].n_vars; v++)
            if (t->member[k].var[v] >= 0)
                va[t->member[k].var[v]] = address_of(f, k, v);
    int r = ws_fused_cache_instance(f->server, f->code, va, &f->instance);
    free(va);
    return r;
}

/* ---- the launch ---- */

static void set_parts(struct ws_fused *f)
{
    const struct ws_ptx_fused *k = &f->code->template->fused;
    bool leader = f->code->template->leader;
    const struct ws_ptx_fuse *h = (const struct ws_ptx_fuse *)(const void *)(f->params + k->header);
    f->parts->common = ws_fused_arena_space(f->server);
    f->parts->n = f->n;
    f->parts->round = leader ? f->command.op.launch.grid[0] * f->command.op.launch.grid[1] *
                                   f->command.op.launch.grid[2]
                             : h->round;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct ws_command *j = f->members[i];
        struct ws_launch_part *p = &f->parts->part[i];
        p->space = j->client->memory.space;
        p->share = leader ? f->parts->round / f->n : h->member[i].share;
        p->kernel = j->kernel_name;
        memcpy(p->grid, j->op.launch.grid, sizeof(p->grid));
        memcpy(p->block, j->op.launch.block, sizeof(p->block));
    }
}

static int lead(struct ws_fused *f, const struct ws_template_work *work,
                struct ws_ptx_fuse_launch *ret)
{
    const uint64_t *var_va[WS_FUSE_MAX];
    for (uint32_t k = 0; k < f->n; k++) /* a replacement never leads (fused_cache.c) */
        var_va[k] = f->members[k]->module->var_va;
    return ws_template_lead(f->code->template, work, var_va, f->n, f->control + table_at(f),
                            f->control_va + table_at(f), f->params, ret);
}

static int set_launch(struct ws_fused *f, const struct ws_ptx_fence *fences, char *why,
                      size_t why_bytes)
{
    const struct ws_template *t = f->code->template;
    struct ws_template_work work[WS_FUSE_MAX];
    struct ws_ptx_fuse_launch l;
    struct ws_occupancy fits;
    memset(work, 0, sizeof(work)); /* members beyond the launches have no work */
    f->params = ws_alloc(t->fused.param_bytes + 1);
    f->parts = ws_alloc(sizeof(*f->parts) + f->n * sizeof(f->parts->part[0]));
    if (!f->params || !f->parts)
        return ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < f->n; k++) {
        const struct ws_op *op = &f->members[k]->op;
        work[k] = (struct ws_template_work){.shared_bytes = op->launch.shared_bytes,
                                            .params = op->launch.params,
                                            .fence = fences[k]};
        memcpy(work[k].grid, op->launch.grid, sizeof(work[k].grid));
        memcpy(work[k].block, op->launch.block, sizeof(work[k].block));
    }
    int r = t->leader ? lead(f, work, &l) : ws_template_launch(t, work, f->params, &l);
    if (r)
        return r < 0 ? ws_forward(r)
                     : refuse(why, why_bytes, "their grids or blocks don't go together");
    r = ws_device_occupancy(f->device, f->code->dmodule, f->code->kernel,
                            l.block[0] * l.block[1] * l.block[2], l.shared_bytes, &fits);
    if (r < 0)
        return ws_forward(r);
    if (!fits.blocks_per_sm)
        return refuse(why, why_bytes, "together they need too much of an SM (%s)", fits.limit);
    /* What is never refused: no member is to fail because another one needs much. */
    if (fits.block_bytes > WS_PAYER_FLOOR)
        return refuse(why, why_bytes,
                      "a block of theirs takes too much of the daemon's memory (%llu bytes)",
                      (unsigned long long)fits.block_bytes);
    struct ws_op *op = &f->command.op;
    op->kind = WS_OPK_LAUNCH;
    op->launch.instance = f->instance->instance;
    op->launch.kernel = f->code->kernel;
    memcpy(op->launch.grid, l.grid, sizeof(l.grid));
    memcpy(op->launch.block, l.block, sizeof(l.block));
    op->launch.shared_bytes = l.shared_bytes;
    op->launch.params = f->params;
    op->launch.param_bytes = (uint32_t)t->fused.param_bytes;
    op->launch.parts = f->parts;
    set_parts(f);
    return 0;
}

static int build(struct ws_fused *f, char *why, size_t why_bytes)
{
    struct ws_ptx_fence fences[WS_FUSE_MAX];
    int r = make_control(f, fences);
    if (!r)
        r = join_spaces(f);
    if (r == -EEXIST)
        return refuse(why, why_bytes, "two clients have memory at one address");
    if (!r)
        r = make_instance(f);
    if (!r)
        r = set_launch(f, fences, why, why_bytes);
    return r < 0 ? ws_forward(r) : r;
}

/* As few SMs as do not lengthen a launch of equal blocks: the busiest has ceil(blocks / SMs) of
 * them in any case, and no fewer are needed where each has as many. What is left idle takes no
 * dynamic power, or is free for others. */
static void set_sms(struct ws_fused *f, const struct ws_sm_set *sms, bool equal_blocks)
{
    struct ws_op *op = &f->command.op;
    struct ws_sm_set all = {0};
    uint64_t blocks = 0;
    if (sms)
        op->launch.sms = *sms;
    if (!equal_blocks || f->device->spec.n_sms > WS_SM_MAX)
        return;
    if (!sms || !sms->n)
        ws_sm_set_take(&all, &(const struct ws_sm_set){0}, f->device->spec.n_sms,
                       f->device->spec.n_sms);
    else
        all = *sms;
    for (uint32_t k = 0; k < f->n; k++) {
        const uint32_t *g = f->members[k]->op.launch.grid;
        blocks += (uint64_t)g[0] * g[1] * g[2];
    }
    if (!blocks || !all.n)
        return;
    uint64_t each = (blocks + all.n - 1) / all.n, want = (blocks + each - 1) / each;
    struct ws_sm_set few = {0};
    for (unsigned sm = 0; sm < WS_SM_MAX && few.n < want; sm++)
        if (ws_sm_set_has(&all, sm))
            ws_sm_set_add(&few, sm);
    if (few.n < all.n)
        op->launch.sms = few;
}

/* From here on nothing can go wrong but on the device. */
static void submit(struct ws_fused *f)
{
    struct ws_op *op = &f->command.op;
    for (uint32_t k = 0; k < f->n; k++) {
        struct ws_command *j = f->members[k];
        if (ws_stream_pop(j->stream) != j)
            ws_log(WS_ERROR, "fused: the launch was not at the head of its stream");
        ws_stream_run(j->stream, j);
        j->fused = f;
        j->learn = NULL; /* what it takes here is not what it takes alone */
        op->ready_ns = WS_MAX(op->ready_ns, j->op.ready_ns);
    }
    op->space = f->joint;
    op->done = ws_command_done;
    f->command.client = f->members[0]->client;
    f->command.carries = f;
    f->command.kind = WS_COMMAND_OP;
    f->server->fused.n_running++;
    f->server->fused.counts.n_launches++;
    f->server->fused.counts.n_members += f->n;
    ws_device_submit(f->device, op);
}

/* Of one kernel alone, templates are made for a few numbers of members, so that a client more or
 * less makes no new one. */
static uint32_t padded(uint32_t n)
{
    static const uint32_t sizes[] = {1, 2, 4, 8, 12, 16, 24};
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++)
        if (n <= sizes[k])
            return sizes[k];
    return WS_FUSE_MAX;
}

static int start(struct ws_server *s, struct ws_gpu *gpu, const struct ws_sm_set *sms,
                 const struct member *m, uint32_t n, char *why, size_t why_bytes)
{
    struct ws_fused_kernel kernels[WS_FUSE_MAX];
    const struct ws_fused_code *code;
    const char *refused;
    bool same_block = true, same_kernel = true, same_grid = true;
    for (uint32_t k = 0; k < n; k++) {
        kernels[k] = m[k].kernel;
        same_block &= !memcmp(m[k].job->op.launch.block, m[0].job->op.launch.block,
                              sizeof(m[k].job->op.launch.block));
        same_kernel &= !ws_fused_kernel_cmp(&m[k].kernel, &m[0].kernel);
        same_grid &= !memcmp(m[k].job->op.launch.grid, m[0].job->op.launch.grid,
                             sizeof(m[k].job->op.launch.grid));
    }
    int r = WS_FUSED_E_REFUSED;
    if (s->config->fused_leader && n > 1 && same_kernel && same_block && same_grid)
        r = ws_fused_cache_get(s, gpu->device, kernels, 1, WS_FUSED_LEADER, &code, &refused);
    enum ws_fused_how how = same_block ? WS_FUSED_SAME_BLOCK : WS_FUSED_ANY;
    if (r == WS_FUSED_E_REFUSED && same_kernel && padded(n) > n) {
        for (uint32_t k = n; k < padded(n); k++)
            kernels[k] = kernels[0];
        r = ws_fused_cache_get(s, gpu->device, kernels, padded(n), how, &code, &refused);
    }
    if (r == WS_FUSED_E_REFUSED)
        r = ws_fused_cache_get(s, gpu->device, kernels, n, how, &code, &refused);
    if (r > 0)
        return refuse(why, why_bytes, "%s", refused);
    if (r)
        return r == -EAGAIN ? r : ws_forward(r);
    struct ws_fused *f = ws_alloc(sizeof(*f));
    if (!f) {
        ws_fused_cache_put(code);
        return ws_raise(-ENOMEM);
    }
    f->server = s;
    f->device = gpu->device;
    f->code = code;
    f->n = n;
    for (uint32_t k = 0; k < n; k++)
        f->members[k] = m[k].job;
    r = build(f, why, why_bytes);
    if (r) {
        fused_free(f);
        return r < 0 ? ws_forward(r) : r;
    }
    set_sms(f, sms, same_kernel && same_block);
    submit(f);
    return 0;
}

int ws_fused_start(struct ws_server *s, struct ws_gpu *gpu, const struct ws_sm_set *sms,
                   struct ws_command *const *members, uint32_t n, char *ret_why, size_t why_bytes)
{
    struct member m[WS_FUSE_MAX];
    int r = 0;
    if (!n || n > WS_FUSE_MAX)
        r = refuse(ret_why, why_bytes, "%u launches; 1 to %d go together", n, WS_FUSE_MAX);
    for (uint32_t k = 0; !r && k < n; k++) {
        r = check_member(members[k], gpu, ret_why, why_bytes);
        if (!r)
            m[k] = (struct member){{members[k]->module, members[k]->op.launch.kernel}, members[k]};
    }
    if (!r) {
        qsort(m, n, sizeof(m[0]), by_kernel);
        r = start(s, gpu, sms, m, n, ret_why, why_bytes);
    }
    s->fused.counts.n_waited += r == -EAGAIN;
    s->fused.counts.n_refused += r == WS_FUSED_E_REFUSED;
    return r;
}

/* ---- the end ---- */

/* A weight for each member's share of the energy: its instructions; where the device can't tell,
 * its threads. */
static uint64_t weight(const struct ws_fused *f, uint32_t k, bool counted)
{
    const struct ws_launch_part *p = &f->parts->part[k];
    uint64_t threads = (uint64_t)p->block[0] * p->block[1] * p->block[2] * p->grid[0];
    return counted ? p->n_thread_insns : threads * p->grid[1] * p->grid[2];
}

/* What the first members get together, whose parts sum to @sum of @total. Shares are differences of
 * these, so they sum to @all. */
static uint64_t portion(uint64_t all, unsigned __int128 sum, unsigned __int128 total)
{
    return total ? (uint64_t)((unsigned __int128)all * sum / total) : 0;
}

static void share_energy(const struct ws_fused *f, uint64_t *ret)
{
    unsigned __int128 total = 0, sum = 0;
    bool counted = false;
    for (uint32_t k = 0; k < f->n; k++)
        counted |= f->parts->part[k].n_thread_insns != 0;
    for (uint32_t k = 0; k < f->n; k++)
        total += weight(f, k, counted);
    for (uint32_t k = 0; k < f->n; k++) {
        uint64_t before = portion(f->command.op.energy_uj, sum, total);
        sum += weight(f, k, counted);
        ret[k] = portion(f->command.op.energy_uj, sum, total) - before;
    }
}

static void set_result(const struct ws_fused *f, uint32_t k, uint64_t energy_uj)
{
    struct ws_op *to = &f->members[k]->op;
    const struct ws_op *all = &f->command.op;
    const struct ws_launch_part *p = &f->parts->part[k];
    const struct fault *fault = (const struct fault *)(const void *)f->control + k;
    to->error = all->error ? all->error : p->error;
    snprintf(to->text, sizeof(to->text), "%s", all->error ? all->text : p->text);
    if (fault->is && to->error != WS_DEV_E_CANCELLED) {
        to->error = WS_DEV_E_ILLEGAL_ADDRESS;
        snprintf(to->text, sizeof(to->text),
                 "illegal address: kernel %.48s address 0x%" PRIx64
                 " (outside of its client's memory)",
                 p->kernel, fault->address);
    }
    to->start_ns = all->start_ns;
    to->end_ns = all->end_ns;
    to->energy_uj = energy_uj;
    ws_energy_charge(f->members[k]->client, f->device->index, energy_uj);
    to->n_thread_insns = p->n_thread_insns;
    to->counts = (struct ws_op_counts){0};
    to->preempted = false;
}

struct ws_op *ws_fused_op(struct ws_fused *f)
{
    return &f->command.op;
}

uint32_t ws_fused_ended(struct ws_fused *f, struct ws_command **ret)
{
    uint64_t energy_uj[WS_FUSE_MAX];
    uint32_t n = f->n;
    f->server->fused.n_running--;
    share_energy(f, energy_uj);
    for (uint32_t k = 0; k < n; k++) {
        set_result(f, k, energy_uj[k]);
        ret[k] = f->members[k];
    }
    fused_free(f);
    return n;
}

void ws_fused_counts(const struct ws_server *s, struct ws_fused_counts *ret)
{
    *ret = s->fused.counts;
    ws_fused_cache_counts(s, ret);
}
