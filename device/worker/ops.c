// SPDX-License-Identifier: Apache-2.0
/* Operations on their way to a worker and back.
 *
 * An operation is in the list, in the order of submission, until it ends. Once it is sent, a
 * message says when it has ended. If the worker ends first, an operation that it had not begun is
 * sent to the next worker. So are copies and fills that it had begun, once: repeating them does no
 * harm. Launches that it had begun end with an error.
 *
 * An operation waits for what was posted for its space before it (post.c), and is sent then.
 *
 * Host memory in registered regions is named by region and offset. Other host memory travels with
 * the operation, without the gaps between its rows: in the message if it is short, else in shared
 * memory of its own. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "base/packet.h"
#include "device/worker/proxy.h"
#include "ptx/analysis/reach.h"

/* ---- host memory that travels with a copy ---- */

static void pack(uint8_t *to, const struct ws_op *op)
{
    const uint8_t *from = op->copy.src_host;
    uint64_t n = op->copy.bytes;
    for (uint64_t z = 0; z < WS_MAX(op->copy.depth, UINT64_C(1)); z++)
        for (uint64_t y = 0; y < WS_MAX(op->copy.height, UINT64_C(1)); y++, to += n)
            memcpy(to, from + z * op->copy.src.slice + y * op->copy.src.row, n);
}

static void unpack(const struct ws_op *op, const uint8_t *from)
{
    uint8_t *to = op->copy.dst_host;
    uint64_t n = op->copy.bytes;
    for (uint64_t z = 0; z < WS_MAX(op->copy.depth, UINT64_C(1)); z++)
        for (uint64_t y = 0; y < WS_MAX(op->copy.height, UINT64_C(1)); y++, from += n)
            memcpy(to + z * op->copy.dst.slice + y * op->copy.dst.row, from, n);
}

static uint64_t reach(const struct ws_op *op, const struct ws_pitches *pitch)
{
    return op->copy.bytes + (op->copy.height > 1 ? (op->copy.height - 1) * pitch->row : 0) +
           (op->copy.depth > 1 ? (op->copy.depth - 1) * pitch->slice : 0);
}

/* Says in *ret where one side of a copy is, for the worker. Return: whether its bytes travel with
 * the operation. */
static bool set_place(struct ws_proxy *p, const struct ws_op *op, const void *host, uint64_t va,
                      const struct ws_pitches *pitch, struct ws_wire_place *ret)
{
    *ret = (struct ws_wire_place){.side = WS_WIRE_VA, .at = va, .pitch = *pitch};
    if (!host)
        return false;
    ret->side = WS_WIRE_REGION;
    if (ws_proxy_region_find(p, host, reach(op, pitch), &ret->region, &ret->at))
        return false;
    ret->side = WS_WIRE_BLOB;
    ret->at = 0;
    ret->pitch.row = op->copy.bytes;
    ret->pitch.slice = op->copy.bytes * WS_MAX(op->copy.height, UINT64_C(1));
    return true;
}

/* @bytes: of the copy. */
static int set_copy(struct ws_proxy *p, struct ws_proxy_op *o, uint64_t bytes)
{
    const struct ws_op *op = o->op;
    struct ws_wire_submit *s = &o->wire;
    bool to = set_place(p, op, op->copy.dst_host, op->copy.dst_va, &op->copy.dst, &s->copy.dst);
    bool from = set_place(p, op, op->copy.src_host, op->copy.src_va, &op->copy.src, &s->copy.src);
    s->copy.bytes = op->copy.bytes;
    s->copy.height = op->copy.height;
    s->copy.depth = op->copy.depth;
    s->copy.blob_out = from ? bytes : 0;
    s->copy.dst.at = to ? s->copy.blob_out : s->copy.dst.at;
    if (to && __builtin_add_overflow(s->copy.blob_out, bytes, &s->copy.blob_bytes))
        return ws_raise(-ENOMEM);
    if (!to)
        s->copy.blob_bytes = s->copy.blob_out;
    if (!s->copy.blob_bytes)
        return 0;
    if (s->copy.blob_bytes <= WS_WIRE_BLOB_INLINE) {
        o->blob = ws_alloc(s->copy.blob_bytes);
        if (!o->blob)
            return ws_raise(-ENOMEM);
    } else {
        o->blob_fd = ws_packet_memfd("wattshare-copy", s->copy.blob_bytes);
        void *m = o->blob_fd < 0 ? MAP_FAILED
                                 : mmap(NULL, s->copy.blob_bytes, PROT_READ | PROT_WRITE,
                                        MAP_SHARED, o->blob_fd, 0);
        if (m == MAP_FAILED)
            return ws_raise(-ENOMEM);
        o->blob = m;
        s->blob_is_memory = 1;
    }
    if (from)
        pack(o->blob, op);
    return 0;
}

static void set_launch(struct ws_proxy_op *o)
{
    const struct ws_op *op = o->op;
    struct ws_wire_submit *s = &o->wire;
    s->launch.instance = op->launch.instance->id;
    s->launch.kernel = op->launch.kernel;
    memcpy(s->launch.grid, op->launch.grid, sizeof(s->launch.grid));
    memcpy(s->launch.block, op->launch.block, sizeof(s->launch.block));
    memcpy(s->launch.cluster, op->launch.cluster, sizeof(s->launch.cluster));
    s->launch.shared_bytes = op->launch.shared_bytes;
    s->launch.flags = op->launch.flags;
    s->launch.param_bytes = op->launch.params ? op->launch.param_bytes : 0;
    s->launch.sms = op->launch.sms;
    s->launch.has_progress = op->launch.progress != NULL;
    struct ws_space *space = ws_op_code_space(op);
    s->launch.print_bytes = ws_space_print_bytes(space);
    s->launch.stack_bytes = ws_space_stack_bytes(space);
    if (!ws_space_heap(space, &s->launch.heap_va, &s->launch.heap_bytes))
        s->launch.heap_va = 0;
    if (op->launch.progress)
        s->launch.progress = ws_cuda_progress_read(op->launch.progress);
}

static void set_fill(struct ws_proxy_op *o)
{
    const struct ws_op *op = o->op;
    o->wire.fill.va = op->fill.va;
    o->wire.fill.width_bytes = op->fill.width_bytes;
    o->wire.fill.height = op->fill.height;
    o->wire.fill.pitch_bytes = op->fill.pitch_bytes;
    o->wire.fill.value = op->fill.value;
    o->wire.fill.value_bytes = op->fill.value_bytes;
}

/* ---- ends ---- */

static void op_free(struct ws_proxy_op *o)
{
    if (o->wire.blob_is_memory && o->blob)
        munmap(o->blob, o->wire.copy.blob_bytes);
    else
        free(o->blob);
    if (o->blob_fd >= 0)
        close(o->blob_fd);
    free(o);
}

/* No lock held; @o is in no list any more. */
static void finish(struct ws_proxy *p, struct ws_proxy_op *o)
{
    struct ws_op *op = o->op;
    if (op->kind == WS_OPK_LAUNCH && !op->preempted)
        op->launch.progress = ws_progress_free(op->launch.progress);
    if (o->entered)
        ws_space_leave(op->space, o->epoch);
    op_free(o);
    p->n_running--;
    op->priv = NULL;
    op->done(op);
}

static void finish_all(struct ws_proxy *p, struct ws_list *list)
{
    struct ws_list *n;
    while ((n = ws_list_pop(list))) {
        struct ws_proxy_op *o = ws_list_entry(n, struct ws_proxy_op, node);
        struct ws_op *op = o->op;
        op->start_ns = op->end_ns = WS_MAX(op->ready_ns, ws_device_now_ns(&p->base));
        finish(p, o);
    }
}

/* ops_lock held. */
static void forget(struct ws_proxy *p, struct ws_proxy_op *o)
{
    ws_list_remove(&o->node);
    HASH_DEL(p->by_id, o);
    p->n_held -= o->after != 0;
    p->n_unsent -= !o->sent && !o->after;
}

/* ---- sending. ops_lock held ---- */

static int send_one(struct ws_proxy *p, struct ws_proxy_op *o)
{
    const struct ws_op *op = o->op;
    struct ws_wire_part more = WS_PART_NONE;
    uint64_t ready = op->ready_ns + p->epoch_ns;
    o->wire.ready_ns = ready > p->worker_ns ? ready - p->worker_ns : 0;
    if (op->kind == WS_OPK_LAUNCH)
        more = (struct ws_wire_part){op->launch.params, o->wire.launch.param_bytes};
    else if (o->blob && !o->wire.blob_is_memory)
        more = (struct ws_wire_part){o->blob, o->wire.copy.blob_out};
    int r = ws_wire_send(p->ops_fd, ws_wire_head_of(WS_WIRE_SUBMIT, o->id), WS_PART(o->wire), more,
                         o->blob_fd, MSG_DONTWAIT);
    if (r)
        return r;
    o->sent = true;
    p->n_unsent--;
    return 0;
}

/* What the sender is to send when the worker takes messages again. */
struct late_notice {
    struct ws_list node;
    struct ws_wire_head head;
    struct ws_wire_map map;
};

static void asks_free(struct ws_list *asks)
{
    struct ws_list *n;
    while ((n = ws_list_pop(asks)))
        free(ws_list_entry(n, struct late_notice, node));
}

/* Sends a notice about submissions that were sent before; where the loop would have to wait, the
 * sender does it. */
static void tell(struct ws_proxy *p, struct ws_wire_head head, struct ws_wire_map map)
{
    struct ws_wire_part body = head.type == WS_WIRE_CANCEL ? WS_PART(map) : WS_PART_NONE;
    if (ws_list_empty(&p->asks) &&
        ws_wire_send(p->ops_fd, head, body, WS_PART_NONE, -1, MSG_DONTWAIT) != -EAGAIN)
        return; /* if the worker has ended, there is nobody to be told */
    struct late_notice *t = ws_alloc(sizeof(*t));
    if (!t) {
        ws_log(WS_ERROR, "worker: gpu=%u the notice %s was not sent: out of memory", p->base.index,
               ws_wire_name(head.type));
        return;
    }
    t->head = head;
    t->map = map;
    ws_list_append(&p->asks, &t->node);
    pthread_cond_signal(&p->sender_wake);
}

/* Sends the notices that tell() could not send. Return: 0 or -EAGAIN. */
static int send_asks(struct ws_proxy *p)
{
    while (!ws_list_empty(&p->asks)) {
        struct late_notice *t = ws_list_entry(p->asks.next, struct late_notice, node);
        struct ws_wire_part body = t->head.type == WS_WIRE_CANCEL ? WS_PART(t->map) : WS_PART_NONE;
        if (ws_wire_send(p->ops_fd, t->head, body, WS_PART_NONE, -1, MSG_DONTWAIT) == -EAGAIN)
            return -EAGAIN;
        ws_list_remove(&t->node);
        free(t);
    }
    return 0;
}

void *ws_proxy_sender_main(void *arg)
{
    struct ws_proxy *p = arg;
    pthread_mutex_lock(&p->ops_lock);
    while (!p->closing) {
        if ((!p->n_unsent && ws_list_empty(&p->asks)) || p->state != WS_PROXY_RUNNING) {
            pthread_cond_wait(&p->sender_wake, &p->ops_lock);
            continue;
        }
        int r = send_asks(p);
        ws_list_for_each (it, &p->ops) {
            struct ws_proxy_op *o = ws_list_entry(it, struct ws_proxy_op, node);
            if (r || (!o->sent && !o->after && (r = send_one(p, o))))
                break;
        }
        if (!r)
            continue;
        struct pollfd f = {p->ops_fd, POLLOUT, 0};
        pthread_mutex_unlock(&p->ops_lock);
        (void)poll(&f, 1, 20);
        if (r != -EAGAIN)
            usleep(1000); /* the worker has ended, which the reader notices */
        pthread_mutex_lock(&p->ops_lock);
    }
    asks_free(&p->asks);
    pthread_mutex_unlock(&p->ops_lock);
    return NULL;
}

/* ---- what an operation needs of its space ---- */

static const struct ws_proxy_broken *is_broken(const struct ws_proxy *p, const struct ws_space *s)
{
    for (size_t k = 0; k < p->n_broken; k++)
        if (p->broken[k].space == ws_space_id(s))
            return &p->broken[k];
    return NULL;
}

/* Fails the operation if a space of it is broken. ops_lock held. */
static void check_memory(const struct ws_proxy *p, struct ws_op *op)
{
    const struct ws_launch_parts *parts = op->kind == WS_OPK_LAUNCH ? op->launch.parts : NULL;
    const struct ws_proxy_broken *b = is_broken(p, op->space);
    for (uint32_t k = 0; !b && parts && k < parts->n; k++)
        b = is_broken(p, parts->part[k].space);
    if (b && b->in_restart)
        ws_check_fail(op, WS_DEV_E_LAUNCH_FAILURE,
                      "memory was lost when the GPU's worker was restarted: %.100s",
                      p->status.last);
    else if (b)
        ws_check_fail(op, WS_DEV_E_NO_MEMORY,
                      "the driver refused memory that had been promised to the program");
}

/* The post that the operation must wait for; 0: none. */
static uint64_t awaited(struct ws_proxy *p, const struct ws_proxy_op *o)
{
    const struct ws_op *op = o->op;
    bool joint = op->kind == WS_OPK_LAUNCH && op->launch.parts;
    return op->space ? ws_proxy_pending(p, joint ? 0 : o->wire.space) : 0;
}

/* It gets a new number, since those behind it may have been sent: the worker tells by numbers what
 * it has begun. ops_lock held. */
static void release(struct ws_proxy *p, struct ws_proxy_op *o)
{
    ws_list_remove(&o->node);
    HASH_DEL(p->by_id, o);
    o->after = 0;
    o->id = ++p->last_id;
    ws_list_append(&p->ops, &o->node);
    HASH_ADD(hh, p->by_id, id, sizeof(o->id), o);
    p->n_held--;
    p->n_unsent++;
}

void ws_proxy_ops_posted(struct ws_proxy *p, uint64_t number)
{
    struct ws_list ended;
    ws_list_init(&ended);
    pthread_mutex_lock(&p->ops_lock);
    uint32_t n = p->n_held;
    ws_list_for_each_safe (it, &p->ops) {
        struct ws_proxy_op *o = ws_list_entry(it, struct ws_proxy_op, node);
        if (!n)
            break;
        if (!o->after)
            continue;
        n--;
        if (o->after > number)
            continue;
        if (p->n_broken)
            check_memory(p, o->op);
        if (o->op->error) {
            forget(p, o);
            ws_list_append(&ended, &o->node);
        } else {
            release(p, o);
        }
    }
    pthread_cond_signal(&p->sender_wake);
    pthread_mutex_unlock(&p->ops_lock);
    finish_all(p, &ended);
}

/* ---- device.h ---- */

/* Checks an operation and finds the GPUs whose memory it is about: @ret_to, @ret_from: of both
 * sides of a copy, or NULL. Return: whether the operation can be carried out; else op->error is
 * set. */
static bool check(struct ws_proxy *p, struct ws_op *op, struct ws_device **ret_to,
                  struct ws_device **ret_from, uint64_t *ret_bytes)
{
    *ret_to = *ret_from = NULL;
    *ret_bytes = 1;
    if (op->kind == WS_OPK_COPY)
        return ws_check_copy(op, ret_to, ret_from, ret_bytes);
    if (op->kind == WS_OPK_FILL) {
        uint8_t *host;
        uint64_t n;
        uint32_t flags;
        bool ok = ws_check_fill(op, ret_bytes);
        if (ok && *ret_bytes)
            (void)ws_space_resolve(op->space, op->fill.va, &host, &n, &flags, ret_to);
        return ok;
    }
    if (op->launch.parts && op->launch.instance && !op->launch.instance->module->fenced)
        ws_check_fail(
            op, WS_DEV_E_INVALID_VALUE,
            "a GPU's worker refuses a merged launch whose code does not check its accesses");
    else if (!op->launch.instance || op->launch.instance->proxy != p || !op->space ||
             op->launch.instance->space != ws_space_id(ws_op_code_space(op)))
        ws_check_fail(op, WS_DEV_E_INVALID_VALUE,
                      "launch: the module belongs to another address space or GPU");
    else if (op->launch.kernel < op->launch.instance->module->info.n_kernels &&
             op->launch.instance->is_restored &&
             op->launch.instance->module->addresses[op->launch.kernel] & WS_PTX_CALLS_ADDRESSES)
        ws_check_fail(op, WS_DEV_E_LAUNCH_FAILURE,
                      "%.60s calls functions by addresses in memory, which were another worker's: "
                      "the GPU's worker was restarted",
                      op->launch.instance->module->kernels[op->launch.kernel].name);
    /* The heap is memory of the client like any other. It is made here, so that the next worker
     * gets it, too. */
    else if (op->launch.kernel < op->launch.instance->module->info.n_kernels &&
             op->launch.instance->module->kernels[op->launch.kernel].uses_heap &&
             ws_space_open_heap(op->space, &p->base))
        ws_check_fail(op, WS_DEV_E_NO_MEMORY, "launch: no memory for malloc()");
    return !op->error;
}

static void end_now(struct ws_proxy *p, struct ws_op *op)
{
    op->start_ns = op->end_ns = WS_MAX(op->ready_ns, ws_device_now_ns(&p->base));
    if (op->kind == WS_OPK_LAUNCH)
        op->launch.progress = ws_progress_free(op->launch.progress);
    op->done(op);
}

/* Puts the operation into the list, and sends it if there is a worker and no other waits before it.
 * Return: false: it is not in the list; op->error says why. */
static bool queue(struct ws_proxy *p, struct ws_proxy_op *o)
{
    struct ws_op *op = o->op;
    pthread_mutex_lock(&p->ops_lock);
    if (p->state == WS_PROXY_LOST)
        ws_check_fail(op, WS_DEV_E_LAUNCH_FAILURE, "the GPU is lost: %.150s", p->lost_text);
    else if (op->space && p->n_broken)
        check_memory(p, op);
    if (!op->error) {
        o->id = ++p->last_id;
        o->after = awaited(p, o);
        ws_list_append(&p->ops, &o->node);
        HASH_ADD(hh, p->by_id, id, sizeof(o->id), o);
        if (o->after)
            p->n_held++;
        else if (p->n_unsent++ || p->state != WS_PROXY_RUNNING || send_one(p, o))
            pthread_cond_signal(&p->sender_wake);
    }
    bool ok = !op->error;
    pthread_mutex_unlock(&p->ops_lock);
    return ok;
}

void ws_proxy_submit(struct ws_device *d, struct ws_op *op)
{
    struct ws_proxy *p = ws_proxy_of(d);
    struct ws_device *to, *from;
    uint64_t bytes;
    if (!check(p, op, &to, &from, &bytes) || !bytes) {
        end_now(p, op);
        return;
    }
    if (to && from && to != from) {
        ws_proxy_peer_copy(op, to, from);
        return;
    }
    if (to || from) /* the GPU that has the memory does it, whichever was asked */
        p = ws_proxy_of(to ? to : from);
    struct ws_proxy_op *o = ws_alloc(sizeof(*o));
    if (!o) {
        ws_check_fail(op, WS_DEV_E_NO_MEMORY, "the host has no memory to run it");
        end_now(p, op);
        return;
    }
    o->op = op;
    o->blob_fd = -1;
    o->wire.kind = op->kind;
    /* The code of a merged launch keeps each client to its own memory: the worker need not know of
     * them. */
    bool joint = op->kind == WS_OPK_LAUNCH && op->launch.parts;
    o->wire.space = op->space ? ws_space_id(joint ? ws_op_code_space(op) : op->space) : 0;
    ws_list_init(&o->node);
    op->priv = o;
    p->n_running++;
    if (op->space) {
        o->epoch = ws_space_enter(op->space);
        o->entered = true;
    }
    if (op->kind == WS_OPK_LAUNCH)
        set_launch(o);
    else if (op->kind == WS_OPK_FILL)
        set_fill(o);
    else if (set_copy(p, o, bytes))
        ws_check_fail(op, WS_DEV_E_NO_MEMORY, "the host has no memory to pass the copy on");
    if (op->error || !queue(p, o)) {
        op->start_ns = op->end_ns = WS_MAX(op->ready_ns, ws_device_now_ns(d));
        finish(p, o);
    }
}

void ws_proxy_cancel(struct ws_device *d, struct ws_space *s)
{
    struct ws_proxy *p = ws_proxy_of(d);
    struct ws_list ended;
    bool any = false;
    ws_list_init(&ended);
    pthread_mutex_lock(&p->ops_lock);
    ws_list_for_each_safe (it, &p->ops) {
        struct ws_proxy_op *o = ws_list_entry(it, struct ws_proxy_op, node);
        if (o->op->space != s)
            continue;
        o->cancelled_ns = o->cancelled ? o->cancelled_ns : ws_proxy_host_ns();
        o->cancelled = true;
        any |= o->sent;
        if (!o->sent) {
            forget(p, o);
            ws_check_fail(o->op, WS_DEV_E_CANCELLED, "cancelled");
            ws_list_append(&ended, &o->node);
        }
    }
    if (any)
        tell(p, ws_wire_head_of(WS_WIRE_CANCEL, 0), (struct ws_wire_map){.space = ws_space_id(s)});
    pthread_mutex_unlock(&p->ops_lock);
    if (any)
        ws_proxy_watch(p);
    finish_all(p, &ended);
}

int ws_proxy_preempt(struct ws_device *d, struct ws_op *op)
{
    struct ws_proxy *p = ws_proxy_of(d);
    struct ws_list back;
    const uint32_t *g = op->launch.grid;
    ws_list_init(&back);
    pthread_mutex_lock(&p->ops_lock);
    struct ws_proxy_op *o = NULL;
    ws_list_for_each (it, &p->ops) /* op->priv is not safe to read: it may be ending just now */
        if (ws_list_entry(it, struct ws_proxy_op, node)->op == op)
            o = ws_list_entry(it, struct ws_proxy_op, node);
    if (o && !o->sent && !op->launch.flags) { /* it can be taken back, since none of it has run */
        struct ws_progress *left =
            op->launch.progress
                ? op->launch.progress
                : ws_cuda_progress_new((struct ws_cuda_progress){0, g[0] * g[1] * g[2]});
        if (left) {
            forget(p, o);
            op->launch.progress = left;
            op->preempted = true;
            ws_list_append(&back, &o->node);
        }
    } else if (o && !op->launch.flags) {
        tell(p,
             (struct ws_wire_head){
                 .type = WS_WIRE_PREEMPT, .id = o->id, .value = (int64_t)ws_proxy_host_ns()},
             (struct ws_wire_map){0});
    }
    bool may = o && !op->launch.flags;
    pthread_mutex_unlock(&p->ops_lock);
    finish_all(p, &back);
    return may ? 0 : -ENOTSUP;
}

/* ---- messages from the worker ---- */

/* ops_lock held. */
static struct ws_proxy_op *find(struct ws_proxy *p, uint64_t id)
{
    struct ws_proxy_op *o;
    HASH_FIND(hh, p->by_id, &id, sizeof(id), o);
    return o;
}

/* The device time that the worker's time @ns is. */
static uint64_t our_ns(const struct ws_proxy *p, uint64_t ns)
{
    ns += p->worker_ns;
    return ns > p->epoch_ns ? ns - p->epoch_ns : 0;
}

static void set_result(struct ws_proxy *p, struct ws_proxy_op *o, const struct ws_wire_done *d,
                       const struct ws_wire_message *m)
{
    struct ws_op *op = o->op;
    op->error = d->error < _WS_DEV_E_N ? (enum ws_dev_error)d->error : WS_DEV_E_LAUNCH_FAILURE;
    memcpy(op->text, d->text, sizeof(op->text));
    op->text[sizeof(op->text) - 1] = 0;
    op->start_ns = WS_MAX(our_ns(p, d->start_ns), op->ready_ns);
    op->end_ns = WS_MAX(our_ns(p, d->end_ns), op->start_ns);
    ws_proxy_not_before(p, op->end_ns);
    op->energy_uj = d->energy_uj;
    op->n_thread_insns = d->n_thread_insns;
    op->counts = d->counts;
    op->preempted = d->preempted && op->kind == WS_OPK_LAUNCH;
    if (op->preempted) {
        struct ws_progress *left = d->has_progress ? ws_cuda_progress_new(d->progress) : NULL;
        if (left) {
            ws_progress_free(op->launch.progress);
            op->launch.progress = left;
        } else {
            op->preempted = false;
            ws_check_fail(op, WS_DEV_E_NO_MEMORY, "the host has no memory to keep how far it came");
        }
    }
    if (op->kind != WS_OPK_COPY || op->error || o->wire.copy.dst.side != WS_WIRE_BLOB)
        return;
    const uint8_t *from = o->blob + o->wire.copy.blob_out;
    uint64_t bytes = o->wire.copy.blob_bytes - o->wire.copy.blob_out;
    if (!o->wire.blob_is_memory && m->head.bytes - sizeof(*d) < bytes)
        ws_check_fail(op, WS_DEV_E_LAUNCH_FAILURE, "the GPU's worker sent too little");
    else
        unpack(op, o->wire.blob_is_memory ? from : m->body + sizeof(*d));
}

void ws_proxy_on_done(struct ws_proxy *p, struct ws_wire_message *m)
{
    struct ws_wire_done d;
    if (!ws_wire_take(m, &d, sizeof(d)))
        return;
    pthread_mutex_lock(&p->ops_lock);
    struct ws_proxy_op *o = find(p, m->head.id);
    if (d.in_loss && p->state == WS_PROXY_RUNNING)
        p->state = WS_PROXY_LOSING;
    if (!o || !o->sent) {
        pthread_mutex_unlock(&p->ops_lock);
        return;
    }
    bool again = d.untouched || (d.in_loss && o->op->kind != WS_OPK_LAUNCH && !o->replayed);
    if (again && !o->cancelled) {
        o->replayed |= !d.untouched;
        o->sent = false;
        p->n_unsent++;
        pthread_mutex_unlock(&p->ops_lock);
        return;
    }
    forget(p, o);
    pthread_mutex_unlock(&p->ops_lock);
    set_result(p, o, &d, m);
    if (o->cancelled && again)
        ws_check_fail(o->op, WS_DEV_E_CANCELLED, "cancelled");
    else if (d.in_loss)
        snprintf(o->op->text + strlen(o->op->text), sizeof(o->op->text) - strlen(o->op->text), "%s",
                 "; the GPU's worker is restarted");
    finish(p, o);
}

void ws_proxy_on_print(struct ws_proxy *p, struct ws_wire_message *m)
{
    struct ws_space *s = NULL;
    pthread_mutex_lock(&p->ops_lock);
    /* an operation that prints has not ended, so its space is there */
    ws_list_for_each (it, &p->ops) {
        const struct ws_proxy_op *o = ws_list_entry(it, struct ws_proxy_op, node);
        if (o->wire.space == m->head.id)
            s = o->op->space;
    }
    pthread_mutex_unlock(&p->ops_lock);
    if (s && (m->head.value == WS_OUTPUT_PRINTF || m->head.value == WS_OUTPUT_ASSERT))
        ws_space_print(s, (enum ws_output)m->head.value, (const char *)m->body, m->head.bytes);
}

void ws_proxy_ops_worker_ended(struct ws_proxy *p, const char *why)
{
    struct ws_list ended;
    uint64_t taken = atomic_load(&p->page->taken);
    ws_list_init(&ended);
    pthread_mutex_lock(&p->ops_lock);
    ws_list_for_each_safe (it, &p->ops) {
        struct ws_proxy_op *o = ws_list_entry(it, struct ws_proxy_op, node);
        struct ws_op *op = o->op;
        if (!o->sent)
            continue;
        bool begun = o->id <= taken;
        bool again = !begun || (op->kind != WS_OPK_LAUNCH && !o->replayed);
        if (again && !o->cancelled) {
            o->replayed |= begun;
            o->sent = false;
            p->n_unsent++;
            continue;
        }
        if (o->cancelled)
            ws_check_fail(op, WS_DEV_E_CANCELLED, "cancelled");
        else if (o->timed_out)
            ws_check_fail(op, WS_DEV_E_TIMEOUT, "%.150s (limit: max_kernel_ms)", why);
        else
            ws_check_fail(op, WS_DEV_E_LAUNCH_FAILURE, "the GPU's worker was restarted: %.140s",
                          why);
        forget(p, o);
        ws_list_append(&ended, &o->node);
    }
    asks_free(&p->asks);
    pthread_mutex_unlock(&p->ops_lock);
    finish_all(p, &ended);
}

void ws_proxy_ops_lost(struct ws_proxy *p)
{
    struct ws_list ended;
    ws_list_init(&ended);
    pthread_mutex_lock(&p->ops_lock);
    ws_list_for_each_safe (it, &p->ops) {
        struct ws_proxy_op *o = ws_list_entry(it, struct ws_proxy_op, node);
        ws_check_fail(o->op, WS_DEV_E_LAUNCH_FAILURE, "the GPU is lost: %.150s", p->lost_text);
        forget(p, o);
        ws_list_append(&ended, &o->node);
    }
    pthread_mutex_unlock(&p->ops_lock);
    finish_all(p, &ended);
}
