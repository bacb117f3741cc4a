// SPDX-License-Identifier: Apache-2.0
/* Moving a context to another GPU: the program goes on there and knows nothing of it, since all addresses stay.
 *
 * What the launches at the heads of its streams name in their parameters (and their modules' variables) moves with it: new memory
 * at the same address, filled by copies that stand in front of the first launch. Everything else stays where it is and is reached
 * from there as a peer's memory; it moves when a launch names it. Until the copies are through, nothing else of the context starts.
 *
 * Not moved: a client with something in flight or about to be unmapped, with physical memory that it maps itself, whose kernels
 * call malloc(), or whose launch would not fit there: it stays, and the policy's choice of a GPU counts for nothing. Memory that others share stays as well.
 * A copy is priced as one over the new GPU's host link. */
#include <string.h>

#include "backend/dispatch_private.h"
#include "base/alloc.h"

static bool names(const struct ws_job *j, const struct ws_allocation *a)
{
    const uint8_t *p = j->op.launch.params;
    for (uint32_t at = 0; at + 8 <= j->op.launch.param_bytes; at += 8) {
        uint64_t v;
        memcpy(&v, p + at, sizeof v);
        if (v >= a->va && v - a->va < a->bytes)
            return true;
    }
    return false;
}

static const struct ws_module *module_of(const struct ws_context *x, const struct ws_job *j)
{
    struct ws_module *m, *next;
    HASH_ITER (hh, x->client->modules, m, next)
        if (m->instance == j->op.launch.instance)
            return m;
    return NULL;
}

/* The launch that waits at the head of a stream, if that is what waits there. */
static const struct ws_job *waiting_launch(const struct ws_list *n)
{
    const struct ws_job *j = ws_list_entry(n, struct ws_stream, blocked)->head;
    return j && j->kind == WS_JOB_OP && j->op.kind == WS_OPK_LAUNCH ? j : NULL;
}

static bool needed(const struct ws_context *x, const struct ws_allocation *a)
{
    ws_list_for_each (n, &x->segment->held) {
        const struct ws_job *j = waiting_launch(n);
        if (!j)
            continue;
        const struct ws_module *m = a->internal ? module_of(x, j) : NULL;
        if (a->internal ? m && m->variables == a : names(j, a))
            return true;
    }
    return false;
}

/* Whether what waits could run there: a cooperative grid was sized for the GPU that the program knows, a block may be too large. */
static bool fits(const struct ws_context *x, const struct ws_gpu *to)
{
    ws_list_for_each (n, &x->segment->held) {
        const struct ws_job *j = waiting_launch(n);
        struct ws_occupancy o;
        if (!j)
            continue;
        const struct ws_module *m = module_of(x, j);
        const uint32_t *b = j->op.launch.block;
        if (j->op.launch.flags & WS_LAUNCH_COOPERATIVE || !m ||
            ws_device_occupancy(to->device, m->code->dmodule, j->op.launch.kernel,
                                b[0] * b[1] * b[2], j->op.launch.shared_bytes, &o) ||
            !o.blocks_per_sm)
            return false;
    }
    return true;
}

static bool may_move(const struct ws_context *x, const struct ws_gpu *to)
{
    const struct ws_client *c = x->client;
    if (!fits(x, to))
        return false;
    if (c->n_in_flight || !ws_list_empty(&c->quiescing) || c->handles || c->reservations)
        return false;
    struct ws_module *m, *next;
    HASH_ITER (hh, c->modules, m, next)
        for (uint32_t i = 0; m->context == x && i < m->code->info->n_kernels; i++)
            if (m->code->info->kernels[i].uses_heap)
                return false;
    return true;
}

/* Has the module's code run on the context's GPU; its variables are where they were. */
static bool instance_remake(struct ws_module *m, struct ws_device *from)
{
    struct ws_dinstance *fresh;
    struct ws_device *d = m->context->gpu->device;
    if (ws_device_instance_borrow(d, m->code->dmodule, m->context->client->space, m->var_va,
                                  &fresh))
        return false;
    struct ws_dinstance *old = m->instance;
    ws_list_for_each (n, &m->context->streams)
        for (struct ws_job *j = ws_list_entry(n, struct ws_stream, node)->head; j; j = j->next)
            if (j->kind == WS_JOB_OP && j->op.kind == WS_OPK_LAUNCH && j->op.launch.instance == old)
                j->op.launch.instance = fresh;
    m->instance = fresh;
    ws_device_instance_free(from, old);
    return true;
}

/* New memory under @a on its context's GPU, and the copy that fills it, for the head of @s. NULL: it stays where it is. */
static struct ws_job *reseat(struct ws_allocation *a, struct ws_stream *s)
{
    struct ws_client *c = a->context->client;
    struct ws_gpu *gpu = a->context->gpu;
    struct ws_object *o = a->hold.object;
    struct ws_memory *fresh;
    struct ws_mapping was;
    bool alone = o->holds.next == &a->hold.node && o->holds.prev == &a->hold.node &&
                 ws_list_empty(&o->exports) && !o->is_shared;
    if (!alone || o->gpu == gpu || a->freeing || !ws_space_find(c->space, a->va, a->bytes, &was) ||
        ws_device_memory_new(gpu->device, a->bytes, &fresh))
        return NULL;
    struct ws_job *j = ws_job_new(c, WS_JOB_OP);
    if (!j || ws_space_unmap(c->space, a->va)) {
        ws_memory_unref(fresh);
        if (j)
            ws_job_free(j);
        return NULL;
    }
    if (ws_space_map_memory(c->space, a->va, a->bytes, fresh, 0, was.readers, was.writers)) {
        ws_memory_unref(fresh);
        ws_job_free(j);
        if (ws_space_map_memory(c->space, a->va, a->bytes, o->memory, 0, was.readers, was.writers))
            ws_client_drop(c, WS__ERROR__INTERNAL, "the daemon is out of memory");
        return NULL;
    }
    j->moved_from = o->memory;
    o->memory = fresh;
    o->gpu = gpu;
    j->is_command = false;
    j->stream = s;
    j->op.kind = WS_OPK_COPY;
    memset(&j->op.copy, 0, sizeof j->op.copy);
    j->op.copy.dst_va = a->va;
    j->op.copy.src_host = was.host;
    j->op.copy.bytes = a->bytes;
    return j;
}

static void put_first(struct ws_stream *s, struct ws_job *j)
{
    j->next = s->head;
    s->head = j;
    if (!s->tail)
        s->tail = j;
    s->context->n_moving++;
}

bool ws_context_move(struct ws_context *x, uint32_t gpu)
{
    struct ws_client *c = x->client;
    struct ws_server *s = c->server;
    struct ws_gpu *from = x->gpu, *to = &s->gpus[gpu];
    if (x->gpu->device->index != gpu) {
        if (!may_move(x, to))
            return false;
        x->gpu = to;
        struct ws_module *m, *next;
        HASH_ITER (hh, c->modules, m, next)
            if (m->context == x && !instance_remake(m, from->device)) {
                ws_client_drop(c, WS__ERROR__INTERNAL, "the daemon is out of memory");
                return false;
            }
        if (x->index == 0) {
            from->n_home--;
            to->n_home++;
        }
        c->stats.used_gpus |= 1u << to->device->index;
        if (s->config->clock != WS_CLOCK_SCALED) /* each GPU has a clock of its own */
            ws_list_for_each (n, &x->streams)
                ws_list_entry(n, struct ws_stream, node)->end_ns = ws_device_now_ns(to->device);
        struct ws_allocation *a, *after;
        HASH_ITER (hh, c->allocations, a, after)
            ws_memory_set_access(a);
        s->dispatch->n_migrations++;
        ws_log(WS_DEBUG, "dispatch: client=%u moves from GPU %u to GPU %u", c->id,
               from->device->index, to->device->index);
    }
    if (c->n_in_flight || ws_list_empty(&x->segment->held))
        return true;
    struct ws_stream *first = ws_list_entry(x->segment->held.next, struct ws_stream, blocked);
    struct ws_allocation *a, *after;
    HASH_ITER (hh, c->allocations, a, after) {
        struct ws_job *j =
            a->context == x && a->hold.object->gpu != to && needed(x, a) ? reseat(a, first) : NULL;
        if (j)
            put_first(first, j);
    }
    return !c->dropped;
}
