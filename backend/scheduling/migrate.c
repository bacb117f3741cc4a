// SPDX-License-Identifier: Apache-2.0
/* Moving a context to another GPU: the program goes on there and knows nothing of it, since all
 * addresses stay.
 *
 * What the launches at the heads of its streams name in their parameters (and their modules'
 * variables) moves with it: new memory at the same address, filled by copies that stand in front
 * of the first launch. Everything else stays where it is and is reached from there as a peer's
 * memory; it moves when a launch names it. Until the copies are through, nothing else of the
 * context starts.
 *
 * Real GPUs: memory there is mapped by granules of 2 MiB, which small allocations share, and not
 * every GPU reaches another's memory. So all that the context has goes together, or the context
 * stays. The old memory is seen at twins of its addresses until it has been copied. Code that
 * calls functions by their addresses stays, since these are each GPU's own, and so does machine
 * code.
 *
 * Not moved: a batch job to a GPU that was not allotted to it, and a client with something in
 * flight or about to be unmapped, with physical memory that it maps itself, whose kernels call
 * malloc(), or whose launch would not fit there: it stays, and the policy's choice of a GPU counts
 * for nothing. Memory that others share stays as well. So does a client that has very many modules,
 * variables or streams, and on real GPUs allocations, since it is moved in one turn of the loop.
 * But who may use its other memory, of which it may have very much, is told in parts.
 *
 * Of what waits, so many words are looked at. What only further ones name stays where it is.
 *
 * What policies are told of it beforehand (ws_dispatch_price()) is the same: the copies of what
 * is named. Each goes through both GPUs' host links, so the slower one is counted, where the
 * software GPU's clock only knows the new GPU's. */
#include <math.h>
#include <string.h>

#include "backend/client/chore.h"
#include "backend/client/memory.h"
#include "backend/client/module.h"
#include "backend/client/object.h"
#include "backend/client/relaunch.h"
#include "backend/client/vmm.h"
#include "backend/scheduling/dispatch_private.h"
#include "base/alloc.h"

enum { MOST_WORDS = 2048, MOST_MODULES = 1024, MOST_VARIABLES = 65536, MOST_FAR = 1024 };
enum { MOST_STREAMS = 2048 };

/* Whether memory there is out of the host's reach, and shares granules of addresses: a real GPU. */
static bool is_far(const struct ws_gpu *g)
{
    return g->device->ops->map != NULL;
}

/* The launch that waits at the head of a stream, if that is what waits there. */
static const struct ws_command *waiting_launch(const struct ws_list *n)
{
    const struct ws_command *j = ws_list_entry(n, struct ws_stream, blocked)->head;
    return j && j->kind == WS_COMMAND_OP && j->op.kind == WS_OPK_LAUNCH ? j : NULL;
}

static void note(struct ws_dispatch *d, struct ws_allocation *a)
{
    void *v = d->named;
    if (a->noted == d->n_notings || ws_grow(&v, &d->cap_named, d->n_named + 1, sizeof(void *)))
        return; /* where there is no memory for it, it stays where it is */
    d->named = v;
    d->named[d->n_named++] = a;
    a->noted = d->n_notings;
}

static void note_launch(struct ws_dispatch *d, const struct ws_context *x,
                        const struct ws_command *j, uint32_t *n_words)
{
    const struct ws_module *m = j->module;
    if (m->variables && m->variables->context == x)
        note(d, m->variables);
    const uint8_t *p = j->op.launch.params;
    for (uint32_t at = 0; at + 8 <= j->op.launch.param_bytes; at += 8) {
        uint64_t v;
        struct ws_mapping in;
        struct ws_allocation *a = NULL;
        if (++*n_words > MOST_WORDS)
            return;
        memcpy(&v, p + at, sizeof(v));
        if (v >= WS_VA_FIRST && ws_space_find(x->client->memory.space, v, 1, &in))
            HASH_FIND(hh, x->client->memory.allocations, &in.va, sizeof(in.va), a);
        if (a && a->context == x && !a->internal)
            note(d, a);
    }
}

/* Fills d->named with what the launches that wait name, each once: their modules' variables, and
 * what their parameters point into; with all that the context has, where that goes together. */
static void find_named(struct ws_dispatch *d, const struct ws_context *x)
{
    struct ws_allocation *each, *after;
    d->n_named = 0;
    d->n_notings++;
    if (is_far(x->gpu)) {
        HASH_ITER (hh, x->client->memory.allocations, each, after)
            if (each->context == x)
                note(d, each);
        return;
    }
    uint32_t n_words = 0;
    ws_list_for_each (n, &x->job->held) {
        const struct ws_command *j = waiting_launch(n);
        if (++n_words > MOST_WORDS)
            return;
        if (j)
            note_launch(d, x, j, &n_words);
    }
}

/* Whether it can lie elsewhere: it is nobody else's too. */
static bool is_movable(const struct ws_allocation *a)
{
    const struct ws_object *o = a->ref.object;
    return o->refs.next == &a->ref.node && o->refs.prev == &a->ref.node &&
           ws_list_empty(&o->exports) && !o->is_shared && !a->freeing;
}

/* Whether what waits could run there: a cooperative grid, or a cluster, was sized for the GPU that
 * the program knows, a block may be too large. Looks at all streams, of which who may leave has not
 * many. */
static bool fits(const struct ws_context *x, const struct ws_gpu *to)
{
    ws_list_for_each (n, &x->job->held) {
        const struct ws_command *j = waiting_launch(n);
        struct ws_occupancy o;
        if (!j)
            continue;
        const struct ws_module *m = j->module;
        const uint32_t *b = j->op.launch.block;
        if (ws_op_is_together(&j->op) ||
            ws_device_occupancy(to->device, m->code->dmodule, j->op.launch.kernel,
                                b[0] * b[1] * b[2], j->op.launch.shared_bytes, &o) ||
            !o.blocks_per_sm)
            return false;
    }
    return true;
}

/* Whether a batch scheduler lets the client use that GPU. */
static bool is_allotted(const struct ws_client *c, const struct ws_gpu *to)
{
    return !c->step || c->step->batch->may.gpus >> to->device->index & 1;
}

/* Whether the context can go anywhere at all, when nothing of it is in flight. */
static bool may_leave(const struct ws_context *x)
{
    const struct ws_client *c = x->client;
    uint32_t n_modules = 0, n_streams = 0;
    uint64_t n_variables = 0;
    if (c->memory.handles || c->memory.reservations.n)
        return false;
    ws_list_for_each (n, &x->modules) {
        const struct ws_module *m = ws_list_entry(n, struct ws_module, node);
        n_variables += m->code->info->n_vars;
        if (m->code->uses_heap || ++n_modules > MOST_MODULES || n_variables > MOST_VARIABLES)
            return false;
    }
    ws_list_for_each (n, &x->streams)
        if (++n_streams > MOST_STREAMS)
            return false;
    struct ws_allocation *a, *after;
    if (is_far(x->gpu)) {
        if (HASH_COUNT(c->memory.allocations) > MOST_FAR)
            return false;
        HASH_ITER (hh, c->memory.allocations, a, after)
            if (a->context == x && (!is_movable(a) || a->ref.object->gpu != x->gpu))
                return false;
        ws_list_for_each (n, &x->modules)
            if (ws_list_entry(n, struct ws_module, node)->code->bound)
                return false;
    }
    return true;
}

/* Has the module's code run on the context's GPU; its variables are where they were. */
static bool instance_remake(struct ws_module *m, struct ws_device *from)
{
    struct ws_dinstance *fresh;
    struct ws_device *d = m->context->gpu->device;
    if (ws_device_instance_borrow(d, m->code->dmodule, m->context->client->memory.space, m->var_va,
                                  &fresh))
        return false;
    struct ws_dinstance *old = m->instance;
    m->instance = fresh;
    ws_device_instance_free(from, old);
    return true;
}

/* New memory under @a on its context's GPU, and the copy that fills it, for the head of @s.
 * NULL: it stays where it is. */
static struct ws_command *reseat(struct ws_allocation *a, struct ws_stream *s)
{
    struct ws_client *c = a->context->client;
    struct ws_gpu *gpu = a->context->gpu;
    struct ws_object *o = a->ref.object;
    struct ws_memory *fresh;
    struct ws_mapping was;
    if (o->gpu == gpu || !is_movable(a) || !ws_space_find(c->memory.space, a->va, a->bytes, &was) ||
        ws_device_memory_new(gpu->device, a->bytes, &fresh))
        return NULL;
    struct ws_command *j = ws_command_new(c, WS_COMMAND_OP);
    if (!j || ws_space_unmap(c->memory.space, a->va)) {
        ws_memory_unref(fresh);
        if (j)
            ws_command_free(j);
        return NULL;
    }
    if (ws_space_map_memory(c->memory.space, a->va, a->bytes, fresh, 0, was.readers, was.writers)) {
        ws_memory_unref(fresh);
        ws_command_free(j);
        if (ws_space_map_memory(c->memory.space, a->va, a->bytes, o->memory, 0, was.readers,
                                was.writers))
            ws_client_drop(c, WS__ERROR__INTERNAL, "the daemon is out of memory");
        return NULL;
    }
    j->moved_from = o->memory;
    o->memory = fresh;
    o->gpu = gpu;
    j->is_command = false;
    j->stream = s;
    j->op.kind = WS_OPK_COPY;
    memset(&j->op.copy, 0, sizeof(j->op.copy));
    j->op.copy.dst_va = a->va;
    j->op.copy.src_host = was.host;
    j->op.copy.bytes = a->bytes;
    return j;
}

static void put_first(struct ws_stream *s, struct ws_command *j)
{
    j->next = s->head;
    s->head = j;
    if (!s->tail)
        s->tail = j;
    s->context->n_moving++;
}

/* ---- real GPUs: everything at once ---- */

struct moving {
    struct ws_allocation *allocation;
    struct ws_memory *fresh;
    struct ws_command *job;
    uint64_t old_va; /* where the old memory is seen as well */
};

static void far_undo(struct ws_context *x, struct moving *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ws_memory_unref(v[i].fresh);
        if (v[i].job)
            ws_command_free(v[i].job);
        if (v[i].old_va && ws_space_unmap(x->client->memory.space, v[i].old_va))
            ws_log(WS_ERROR, "dispatch: moved memory is still mapped client=%u", x->client->id);
    }
    free(v);
}

/* Has all that the context has ready to be moved to @to: memory there, and the old memory seen a
 * second time, where its addresses have their twins. Return: NULL: not to be had, nothing has
 * changed. */
static struct moving *far_begin(struct ws_context *x, const struct ws_gpu *to, size_t *ret_n)
{
    struct ws_client *c = x->client;
    struct ws_dispatch *d = c->server->dispatch;
    uint32_t own = UINT32_C(1) << x->gpu->device->index;
    find_named(d, x);
    size_t n = 0;
    struct ws_allocation *a, *after;
    HASH_ITER (hh, c->memory.allocations, a, after)
        n += a->context == x;
    if (d->n_named != n) /* no memory to note them in */
        return NULL;
    struct moving *v = ws_alloc_array(d->n_named + 1, sizeof(*v));
    ws_va_deinit(&x->move_va); /* nothing is in flight: what was seen there is gone */
    if (!v || ws_va_mirror(&x->va, &x->move_va)) {
        free(v);
        return NULL;
    }
    for (size_t i = 0; i < d->n_named; i++) {
        struct moving *m = &v[i];
        a = d->named[i];
        uint64_t at = ws_va_mirrored(&x->va, &x->move_va, a->va);
        m->allocation = a;
        m->job = ws_command_new(c, WS_COMMAND_OP);
        if (!m->job || ws_device_memory_new(to->device, a->bytes, &m->fresh) ||
            ws_space_map_memory(c->memory.space, at, a->bytes, a->ref.object->memory, 0, own,
                                own)) {
            far_undo(x, v, i + 1);
            return NULL;
        }
        m->old_va = at;
    }
    *ret_n = d->n_named;
    return v;
}

/* The context is on its new GPU. Return: whether its memory is there, too; else the client has
 * been dropped. */
static bool far_end(struct ws_context *x, struct moving *v, size_t n, struct ws_stream *s)
{
    struct ws_client *c = x->client;
    uint32_t own = UINT32_C(1) << x->gpu->device->index;
    bool ok = true;
    for (size_t i = 0; i < n; i++)
        ok &= !ws_space_unmap(c->memory.space, v[i].allocation->va);
    for (size_t i = 0; ok && i < n; i++)
        ok = !ws_space_map_memory(c->memory.space, v[i].allocation->va, v[i].allocation->bytes,
                                  v[i].fresh, 0, own, own);
    if (!ok) {
        ws_client_drop(c, WS__ERROR__INTERNAL, "its memory can't be moved to another GPU");
        far_undo(x, v, n);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        struct ws_object *o = v[i].allocation->ref.object;
        struct ws_command *j = v[i].job;
        j->moved_from = o->memory;
        j->moved_va = v[i].old_va;
        o->memory = v[i].fresh;
        o->gpu = x->gpu;
        j->is_command = false;
        j->stream = s;
        j->op.kind = WS_OPK_COPY;
        memset(&j->op.copy, 0, sizeof(j->op.copy));
        j->op.copy.dst_va = v[i].allocation->va;
        j->op.copy.src_va = v[i].old_va;
        j->op.copy.bytes = v[i].allocation->bytes;
        put_first(s, j);
    }
    free(v);
    return true;
}

/* ---- who may use its memory ---- */

struct access_chore {
    struct ws_chore chore;
    struct ws_context *context;
    bool begun;
};

/* As long as it lasts, nothing of the context starts. */
static bool access_go_on(struct ws_client *c, struct ws_chore *h, uint64_t until_ns)
{
    struct access_chore *w = WS_CONTAINER_OF(h, struct access_chore, chore);
    struct ws_context *x = w->context;
    bool at_once = !w->begun; /* nothing waits for it yet */
    if (at_once)
        ws_memory_walk_begin(c);
    w->begun = true;
    if (!ws_memory_walk_access(c, NULL, until_ns))
        return false;
    if (!--x->n_moving && !at_once && x->job)
        ws_dispatch_wake_held(x->job);
    return true;
}

/* Return: false: the client has been dropped. */
static bool tell_access(struct ws_context *x)
{
    struct access_chore *w = ws_chore_new(x->client, sizeof(*w), access_go_on);
    if (!w)
        return false;
    w->context = x;
    x->n_moving++;
    ws_chore_begin(x->client, &w->chore);
    return true;
}

bool ws_context_move(struct ws_context *x, uint32_t gpu)
{
    struct ws_client *c = x->client;
    struct ws_server *s = c->server;
    struct ws_gpu *from = x->gpu, *to = &s->gpus[gpu];
    bool far = is_far(from), waits = !ws_list_empty(&x->job->held);
    struct moving *moving = NULL;
    size_t n_moving = 0;
    if (x->gpu->device->index != gpu) {
        if (c->n_in_flight || !ws_list_empty(&c->joins.quiescing) ||
            !ws_list_empty(&c->chores.list) || !is_allotted(c, to) || !may_leave(x) ||
            !fits(x, to) || far != is_far(to))
            return false;
        if (far && (!waits || !(moving = far_begin(x, to, &n_moving))))
            return false;
        x->gpu = to;
        ws_list_for_each (n, &x->modules)
            if (!instance_remake(ws_list_entry(n, struct ws_module, node), from->device)) {
                ws_client_drop(c, WS__ERROR__INTERNAL, "the daemon is out of memory");
                far_undo(x, moving, n_moving);
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
        struct ws_stream *first =
            waits ? ws_list_entry(x->job->held.next, struct ws_stream, blocked) : NULL;
        if (far && !far_end(x, moving, n_moving, first))
            return false;
        if (!tell_access(x))
            return false;
        s->dispatch->n_migrations++;
        ws_log(WS_DEBUG, "dispatch: client=%u moves from GPU %u to GPU %u", c->id,
               from->device->index, to->device->index);
    }
    if (c->n_in_flight || !waits || far)
        return true;
    struct ws_stream *first = ws_list_entry(x->job->held.next, struct ws_stream, blocked);
    find_named(s->dispatch, x);
    for (size_t i = 0; i < s->dispatch->n_named; i++) {
        struct ws_command *j = reseat(s->dispatch->named[i], first);
        if (j)
            put_first(first, j);
    }
    return !c->dropped;
}

/* ---- prices ---- */

/* One copy: through the slower of both host links; meanwhile the new GPU takes what it takes
 * while it computes nothing. */
static void add_copy(struct ws_policy_move *m, const struct ws_gpu_spec *from,
                     const struct ws_gpu_spec *to, uint64_t bytes)
{
    double per_s = (double)WS_MIN(from->copy_bytes_per_s, to->copy_bytes_per_s);
    m->bytes += (double)bytes;
    m->ms += WS_MAX(from->copy_latency_ns, to->copy_latency_ns) / 1e6;
    m->ms += per_s > 0 ? (double)bytes * 1e3 / per_s : 0;
}

void ws_dispatch_price(struct ws_dispatch *d, struct ws_gpu_job *g)
{
    const struct ws_context *x = g->context;
    uint32_t n = d->server->n_visible;
    if (n < 2 || (!g->moves && !(g->moves = ws_alloc_array(n, sizeof(*g->moves)))))
        return;
    bool leaves = !g->gated && may_leave(x);
    find_named(d, x);
    for (uint32_t i = 0; i < n; i++) {
        const struct ws_gpu *to = &d->server->gpus[i];
        const struct ws_gpu_spec *spec = &to->device->spec;
        struct ws_policy_move m = {.here = x->gpu == to};
        for (size_t k = 0; k < d->n_named; k++) {
            const struct ws_object *o = d->named[k]->ref.object;
            if (o->gpu != to && is_movable(d->named[k]))
                add_copy(&m, &o->gpu->device->spec, spec, o->bytes);
        }
        const struct ws_policy_gpu_type *type = &d->types[d->gpus[i].type];
        m.mj = m.ms * (type->static_w + (double)spec->n_sms * type->idle_w_per_sm);
        if (!m.here && (!leaves || !is_allotted(x->client, to) || !fits(x, to)))
            m.ms = m.mj = INFINITY;
        g->moves[i] = m;
    }
    g->is_priced = true;
}
