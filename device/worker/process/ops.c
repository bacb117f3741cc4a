// SPDX-License-Identifier: Apache-2.0
/* Operations that the daemon has submitted, until their end is reported.
 *
 * An operation is in the table worker.ops from its submission until it ends, so that it can be
 * preempted. What it needs of the host travels with it or lies in a region that the daemon has
 * registered. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/packet.h"
#include "device/worker/process/process.h"

struct worker_op {
    struct worker_object known;
    struct ws_op op;
    uint8_t *blob; /* a copy's own bytes: allocated, or mapped */
    uint64_t blob_bytes, blob_out;
    bool blob_is_memory;
    uint8_t params[]; /* of a launch */
};

static void op_free(struct worker_op *o)
{
    if (o->blob && o->blob_is_memory)
        munmap(o->blob, o->blob_bytes);
    else
        free(o->blob);
    free(o);
}

static void on_done(struct ws_op *op)
{
    struct worker_op *o = op->owner;
    struct ws_wire_done d = {.error = op->error,
                             .preempted = op->preempted,
                             .start_ns = op->start_ns,
                             .end_ns = op->end_ns,
                             .energy_uj = op->energy_uj,
                             .n_thread_insns = op->n_thread_insns,
                             .counts = op->counts};
    struct ws_wire_part back = WS_PART_NONE;
    const char *lost = ws_device_cuda_lost(worker.device);
    snprintf(d.text, sizeof(d.text), "%s", op->text);
    d.in_loss = lost && op->error;
    d.untouched = ws_cuda_untouched(op);
    if (op->kind == WS_OPK_LAUNCH && op->launch.progress) {
        d.has_progress = 1;
        d.progress = ws_cuda_progress_read(op->launch.progress);
        op->launch.progress = ws_progress_free(op->launch.progress);
    }
    if (o->blob && !o->blob_is_memory && !op->error)
        back = (struct ws_wire_part){o->blob + o->blob_out, o->blob_bytes - o->blob_out};
    uint64_t id = o->known.id;
    pthread_mutex_lock(&worker.lock); /* from here on it cannot be preempted */
    struct worker_object *t = worker_find(worker.ops, id);
    if (t)
        HASH_DEL(worker.ops, t);
    pthread_mutex_unlock(&worker.lock);
    worker_write_page();
    worker_send(ws_wire_head_of(WS_WIRE_DONE, id), WS_PART(d), back, -1);
    op_free(o);
    worker.n_running--;
    worker_end_if_lost();
}

/* Finds one side of a copy, of which @reach bytes are used. Return: false: it is not in what this
 * process has. */
static bool place(struct worker_op *o, const struct ws_wire_place *p, uint64_t reach,
                  uint64_t *ret_va, uint8_t **ret_host, struct ws_pitches *ret_pitch)
{
    struct worker_object t;
    *ret_pitch = p->pitch;
    *ret_va = 0;
    *ret_host = NULL;
    switch (p->side) {
    case WS_WIRE_VA:
        *ret_va = p->at;
        return true;
    case WS_WIRE_REGION:
        if (!worker_known(&worker.regions, p->region, &t) || p->at > t.region.bytes ||
            reach > t.region.bytes - p->at)
            return false;
        *ret_host = t.region.map + p->at;
        return true;
    default:
        if (!o->blob || p->at > o->blob_bytes || reach > o->blob_bytes - p->at)
            return false;
        *ret_host = o->blob + p->at;
        return true;
    }
}

static uint64_t reach_of(const struct ws_wire_submit *s, const struct ws_pitches *p)
{
    return s->copy.bytes + (s->copy.height > 1 ? (s->copy.height - 1) * p->row : 0) +
           (s->copy.depth > 1 ? (s->copy.depth - 1) * p->slice : 0);
}

static bool set_copy(struct worker_op *o, const struct ws_wire_submit *s, struct ws_wire_message *m)
{
    struct ws_op *op = &o->op;
    uint8_t *to, *from;
    o->blob_bytes = s->copy.blob_bytes;
    o->blob_out = WS_MIN(s->copy.blob_out, s->copy.blob_bytes);
    o->blob_is_memory = s->blob_is_memory;
    if (o->blob_is_memory) {
        if (!ws_packet_memfd_ok(m->fd, o->blob_bytes))
            return false;
        void *p = mmap(NULL, o->blob_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
        o->blob = p == MAP_FAILED ? NULL : p;
    } else if (o->blob_bytes) {
        o->blob = malloc(o->blob_bytes);
        if (o->blob && m->head.bytes - sizeof(*s) >= o->blob_out && o->blob_out)
            memcpy(o->blob, m->body + sizeof(*s), o->blob_out);
    }
    op->copy.bytes = s->copy.bytes;
    op->copy.height = s->copy.height;
    op->copy.depth = s->copy.depth;
    bool ok = (!o->blob_bytes || o->blob) &&
              place(o, &s->copy.dst, reach_of(s, &s->copy.dst.pitch), &op->copy.dst_va, &to,
                    &op->copy.dst) &&
              place(o, &s->copy.src, reach_of(s, &s->copy.src.pitch), &op->copy.src_va, &from,
                    &op->copy.src);
    op->copy.dst_host = ok ? to : NULL;
    op->copy.src_host = ok ? from : NULL;
    return ok;
}

static bool set_launch(struct worker_op *o, const struct ws_wire_submit *s,
                       const struct ws_wire_message *m)
{
    struct ws_op *op = &o->op;
    struct worker_object t = {0};
    if (m->head.bytes - sizeof(*s) < s->launch.param_bytes ||
        !worker_known(&worker.instances, s->launch.instance, &t))
        return false;
    if (s->launch.param_bytes)
        memcpy(o->params, m->body + sizeof(*s), s->launch.param_bytes);
    op->launch.instance = t.instance;
    op->launch.kernel = s->launch.kernel;
    memcpy(op->launch.grid, s->launch.grid, sizeof(op->launch.grid));
    memcpy(op->launch.block, s->launch.block, sizeof(op->launch.block));
    memcpy(op->launch.cluster, s->launch.cluster, sizeof(op->launch.cluster));
    op->launch.shared_bytes = s->launch.shared_bytes;
    op->launch.flags = s->launch.flags;
    op->launch.params = o->params;
    op->launch.param_bytes = s->launch.param_bytes;
    op->launch.sms = s->launch.sms;
    if (!op->space || (s->launch.heap_va &&
                       ws_space_tell_heap(op->space, s->launch.heap_va, s->launch.heap_bytes)))
        return false;
    ws_space_set_print_bytes(op->space, s->launch.print_bytes);
    ws_space_set_stack_bytes(op->space, s->launch.stack_bytes);
    if (s->launch.has_progress)
        op->launch.progress = ws_cuda_progress_new(s->launch.progress);
    return !s->launch.has_progress || op->launch.progress;
}

static void set_fill(struct ws_op *op, const struct ws_wire_submit *s)
{
    op->fill.va = s->fill.va;
    op->fill.width_bytes = s->fill.width_bytes;
    op->fill.height = s->fill.height;
    op->fill.pitch_bytes = s->fill.pitch_bytes;
    op->fill.value = s->fill.value;
    op->fill.value_bytes = s->fill.value_bytes;
}

/* Return: false: the operation needs something that is not there. */
static bool set_op(struct worker_op *o, const struct ws_wire_submit *s, struct ws_wire_message *m)
{
    switch (s->kind) {
    case WS_OPK_COPY:
        return set_copy(o, s, m);
    case WS_OPK_FILL:
        set_fill(&o->op, s);
        return true;
    default:
        return set_launch(o, s, m);
    }
}

static struct worker_op *op_new(uint64_t id, const struct ws_wire_submit *s)
{
    uint64_t params = s->kind == WS_OPK_LAUNCH ? s->launch.param_bytes : 0;
    struct worker_op *o = ws_alloc(sizeof(*o) + params);
    if (!o) {
        ws_log(WS_ERROR, "worker: out of memory");
        _exit(1);
    }
    o->known.id = id;
    o->known.op = o;
    o->op = (struct ws_op){.kind = (enum ws_op_kind)s->kind,
                           .space = worker_space(s->space),
                           .ready_ns = s->ready_ns,
                           .done = on_done,
                           .owner = o};
    return o;
}

void worker_on_submit(struct ws_wire_message *m)
{
    struct ws_wire_submit s;
    uint64_t id = m->head.id;
    memcpy(&s, m->body, sizeof(s));
    struct worker_op *o = op_new(id, &s);
    bool ok = set_op(o, &s, m);
    worker.n_running++;
    pthread_mutex_lock(&worker.lock);
    HASH_ADD(hh, worker.ops, id, sizeof(id), &o->known);
    pthread_mutex_unlock(&worker.lock);
    atomic_store(&worker.page->taken, id);
    if (ok) {
        ws_device_submit(worker.device, &o->op);
    } else {
        snprintf(o->op.text, sizeof(o->op.text),
                 "the GPU's worker has no memory, or lacks something that the operation names");
        o->op.error = WS_DEV_E_LAUNCH_FAILURE;
        on_done(&o->op);
    }
}

/* ---- what is asked of operations ---- */

/* Notes how long that took. Lock held, so that it is noted before the launch's end is reported. */
static void note_preempt(uint64_t asked_ns)
{
    uint64_t ns = ws_clock_ns() - asked_ns;
    worker.page->preempt_ns = ns;
    if (ns > worker.page->longest_preempt_ns)
        worker.page->longest_preempt_ns = ns;
}

/* A launch that cannot be stopped runs to its end. */
void worker_on_preempt(struct ws_wire_message *m)
{
    pthread_mutex_lock(&worker.lock); /* so that on_done() does not free it meanwhile */
    const struct worker_object *o = worker_find(worker.ops, m->head.id);
    if (o && !ws_device_preempt(worker.device, &o->op->op))
        note_preempt((uint64_t)m->head.value);
    pthread_mutex_unlock(&worker.lock);
}

void worker_on_cancel(struct ws_wire_message *m)
{
    struct ws_wire_map q;
    struct worker_object o;
    memcpy(&q, m->body, sizeof(q));
    if (worker_known(&worker.spaces, q.space, &o))
        ws_device_cancel(worker.device, o.space);
}
