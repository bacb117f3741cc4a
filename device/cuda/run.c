// SPDX-License-Identifier: Apache-2.0
/* Operations from their submission to their end. A run is an operation that the device knows.
 *
 * An operation gets a hardware queue (a stream, two events, a control line) for as long as it runs.
 * The caller has ordered it behind the operations that it depends on, so no queue waits for
 * another. The queues are made when the device is opened. Operations wait while there are as many
 * others as queues.
 *
 * Submitting starts the operation at once, on the caller's thread, unless that could block: then
 * the starter thread starts it. Operations whose code must be compiled first have a thread of their
 * own, the compiler thread, so that copies do not wait for compilations. The waiter thread asks the
 * driver about each queue's end event, oldest first, and calls op->done, which no other thread
 * does. It asks without pause while the youngest operation is young. Later it sleeps a small
 * fraction of that operation's age between two looks, so an end is noticed late by no more than
 * that fraction.
 *
 * Which thread owns a run. At any moment either one thread has it, starts or finishes it, and
 * shares it with no other thread; or it is on exactly one list: of runs that wait for a queue, for
 * the starter, for the compiler, for the GPU, or for the waiter to report them. Its state (enum
 * ws_cuda_state) says which, and changes together with the list, under the run lock, in put() and
 * take() only. A thread that has put a run on a list does not access it again, since another thread
 * may have freed it. The waiter owns the runs on the GPU, and asks the driver about them without
 * the lock; no other thread takes runs from that list. Only finish(), on the waiter thread, frees a
 * run, and only one that it has taken from the list of ended runs.
 *
 * All runs are also in d->runs, so that cancelling and preempting find them. Under the run lock,
 * they move a run that is on a list, and mark a run that a thread has; that thread checks the mark
 * before it puts the run on a list.
 *
 * Any thread may notice at any moment, without a lock, that the GPU is lost. So a decision must not
 * read d->lost twice. */
#include <assert.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/cuda/cuda_private.h"

enum {
    MAX_RUNNING = 64,
    SLEEP_FRACTION = 64, /* the end of a run is noticed late by this fraction of its age */
};
#define SPIN_NS      UINT64_C(100000)
#define SLEEP_MAX_NS UINT64_C(200000)

/* ---- hardware queues ---- */

/* Its stretches of the stock go with the stock. */
static void queue_free(struct ws_cuda *d, struct ws_cuda_queue *q)
{
    if (q->begin)
        (void)d->cu.cuEventDestroy(q->begin);
    if (q->end)
        (void)d->cu.cuEventDestroy(q->end);
    if (q->green)
        (void)d->cu.cuStreamDestroy(q->green);
    if (q->plain)
        (void)d->cu.cuStreamDestroy(q->plain);
    free(q);
}

static ws_cu_result queue_new(struct ws_cuda *d, struct ws_cuda_queue **ret)
{
    struct ws_cuda_queue *q = ws_alloc(sizeof(*q));
    if (!q)
        return WS_CU_OUT_OF_MEMORY;
    ws_cu_result r = WS_CU(d, cuStreamCreateWithPriority, &q->plain, WS_CU_STREAM_NON_BLOCKING, 0);
    q->stream = q->plain;
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuEventCreate, &q->begin, WS_CU_EVENT_DEFAULT);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuEventCreate, &q->end, WS_CU_EVENT_DEFAULT);
    uint64_t line =
        ws_cuda_stock_take(d, WS_CUDA_STOCK_PINNED, sizeof(*q->control) + sizeof(*q->fault));
    q->control = (void *)(uintptr_t)line;
    q->fault = line ? (void *)(q->control + 1) : NULL;
    q->control_va = ws_cuda_stock_take(d, WS_CUDA_STOCK_DEVICE, sizeof(*q->control));
    q->bounce =
        (void *)(uintptr_t)ws_cuda_stock_take(d, WS_CUDA_STOCK_PINNED, WS_CUDA_BOUNCE_BYTES);
    if (r == WS_CU_SUCCESS && (!line || !q->control_va || !q->bounce))
        r = WS_CU_OUT_OF_MEMORY;
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuMemsetD8Async, q->control_va, 0, sizeof(*q->control), d->memory_stream);
    if (r != WS_CU_SUCCESS) {
        queue_free(d, q);
        return r;
    }
    *ret = q;
    return WS_CU_SUCCESS;
}

/* The driver fills by kernels of its own, which it may load when they are first used, and then wait
 * for kernels that run. So each way of filling is used once before any kernel runs. */
static ws_cu_result try_fills(struct ws_cuda *d, ws_cu_ptr va)
{
    ws_cu_stream s = d->memory_stream;
    ws_cu_result r = WS_CU(d, cuMemsetD2D8Async, va, WS_CUDA_CONTROL_BYTES, 0, 1, 1, s);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuMemsetD2D16Async, va, WS_CUDA_CONTROL_BYTES, 0, 1, 1, s);
    return r == WS_CU_SUCCESS ? WS_CU(d, cuMemsetD2D32Async, va, WS_CUDA_CONTROL_BYTES, 0, 1, 1, s)
                              : r;
}

/* Makes all queues. It is enough if the driver makes one. */
static ws_cu_result queues_open(struct ws_cuda *d)
{
    ws_cu_result r = ws_cuda_result(d, ws_cuda_stock_open(d, d->options.max_running), "cuMemAlloc");
    while (r == WS_CU_SUCCESS && d->n_queues < d->options.max_running) {
        struct ws_cuda_queue *q = NULL;
        r = queue_new(d, &q);
        if (r != WS_CU_SUCCESS && d->n_queues && !ws_cuda_is_sticky(r)) {
            r = WS_CU_SUCCESS;
            break;
        }
        if (r != WS_CU_SUCCESS)
            return r;
        q->index = d->n_queues;
        q->next = d->free_queues;
        d->free_queues = d->queues[d->n_queues++] = q;
    }
    if (r == WS_CU_SUCCESS)
        r = try_fills(d, d->queues[0]->control_va);
    ws_cu_result e = ws_cuda_drain(d, d->memory_stream); /* before the memory is released */
    return r == WS_CU_SUCCESS ? e : r;
}

/* Run lock held. NULL: none is free. */
static struct ws_cuda_queue *queue_take(struct ws_cuda *d)
{
    struct ws_cuda_queue *q = d->free_queues;
    if (q)
        d->free_queues = q->next;
    return q;
}

uint64_t ws_cuda_stock_find(struct ws_cuda *d, enum ws_cuda_stock kind, uint64_t bytes,
                            bool may_block)
{
    uint64_t at = ws_cuda_stock_take(d, kind, bytes);
    if (at)
        return at;
    pthread_mutex_lock(&d->run_lock);
    for (struct ws_cuda_queue *q = d->free_queues; q; q = q->next) {
        ws_cuda_fence_free(d, q);
        ws_cuda_lib_free(d, q);
    }
    pthread_mutex_unlock(&d->run_lock);
    at = ws_cuda_stock_take(d, kind, bytes);
    if (!at && may_block &&
        ws_cuda_result(d, ws_cuda_stock_grow(d, kind, bytes), "cuMemAlloc") == WS_CU_SUCCESS)
        at = ws_cuda_stock_take(d, kind, bytes);
    return at;
}

/* ---- starting ---- */

/* Which kernel destroyed the context, as far as it can be told. Run lock held. Return: text that
 * does not change any more; "": the context is not lost. */
static const char *lost_text(struct ws_cuda *d)
{
    const char *name = "none was running";
    unsigned n = 0;
    char text[64];
    if (!d->lost || d->lost_text[0])
        return d->lost_text;
    ws_list_for_each (it, &d->runs) {
        const struct ws_cuda_run *r = ws_list_entry(it, struct ws_cuda_run, of_device);
        const struct ws_op *op = r->op;
        if (op->kind != WS_OPK_LAUNCH || !op->launch.instance ||
            op->launch.kernel >= op->launch.instance->module->info.n_kernels ||
            (r->state != WS_CUDA_IS_STARTING && r->state != WS_CUDA_IS_RUNNING))
            continue;
        if (!n++)
            name = op->launch.instance->module->info.kernels[op->launch.kernel].name;
    }
    ws_cu_result_name(d->lost, text, sizeof(text));
    if (n > 1)
        snprintf(d->lost_text, sizeof(d->lost_text), "%s; kernel %.60s or one of %u beside it",
                 text, name, n - 1);
    else
        snprintf(d->lost_text, sizeof(d->lost_text), "%s; kernel %.100s", text, name);
    return d->lost_text;
}

const char *ws_cuda_lost_text(struct ws_cuda *d)
{
    pthread_mutex_lock(&d->run_lock);
    const char *text = lost_text(d);
    pthread_mutex_unlock(&d->run_lock);
    return *text ? text : NULL;
}

/* ---- which thread owns a run. Run lock held here ---- */

static struct ws_cuda_starter *starter_of(struct ws_cuda *d, enum ws_cuda_state state)
{
    return &d->starters[state == WS_CUDA_IS_COMPILING ? WS_CUDA_COMPILER : WS_CUDA_STARTER];
}

/* Puts a run that this thread has on the list of @state, and so gives it to the thread that serves
 * that list. */
static void put(struct ws_cuda *d, struct ws_cuda_run *r, enum ws_cuda_state state)
{
    assert(r->state == WS_CUDA_IS_STARTING && ws_list_empty(&r->node));
    r->state = state;
    ws_list_append(&d->in[state], &r->node);
    if (state == WS_CUDA_IS_BLOCKING || state == WS_CUDA_IS_COMPILING)
        pthread_cond_signal(&starter_of(d, state)->wake);
    else if (state != WS_CUDA_IS_WAITING)
        pthread_cond_signal(&d->waiter_wake);
}

/* Takes a run off its list: this thread has it now. */
static struct ws_cuda_run *take(struct ws_cuda_run *r)
{
    ws_list_remove(&r->node);
    r->state = WS_CUDA_IS_STARTING;
    return r;
}

/* Takes the run that has been on the list longest; NULL: the list is empty. */
static struct ws_cuda_run *take_first(struct ws_cuda *d, enum ws_cuda_state state)
{
    struct ws_list *l = &d->in[state];
    return ws_list_empty(l) ? NULL : take(ws_list_entry(l->next, struct ws_cuda_run, node));
}

/* Asks a kernel to stop: blocks that have begun run to their end, and no others begin. It may not
 * have begun itself. */
static void raise_flag(struct ws_cuda *d, struct ws_cuda_run *r)
{
    struct ws_cuda_queue *q = r->queue;
    if (!r->rewritten || !d->flag_stream)
        return;
    q->raised = true;
    uint64_t flag = q->control_va + offsetof(struct ws_cuda_control, flag[q->flag]);
    if (WS_CU(d, cuStreamWriteValue32, d->flag_stream, flag, 1, 0) != WS_CU_SUCCESS ||
        WS_CU(d, cuEventRecord, d->flag_event, d->flag_stream) != WS_CU_SUCCESS)
        ws_log(WS_WARN, "cuda: gpu=%u a running kernel could not be asked to stop", d->base.index);
}

/* The run did not reach the GPU, because the GPU is lost or because of @e. */
static void fail_untouched(struct ws_cuda *d, struct ws_cuda_run *r, ws_cu_result e)
{
    r->untouched = d->lost;
    if (r->untouched)
        ws_check_fail(r->op, WS_DEV_E_LAUNCH_FAILURE, "the GPU is lost: %s", lost_text(d));
    else
        ws_cuda_fail(d, r->op, e, "stream");
}

static char untouched;

bool ws_cuda_untouched(const struct ws_op *op)
{
    return op->priv == &untouched;
}

/* Puts the operation and an event for its end into its queue. */
static enum ws_cuda_start enqueue(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block)
{
    struct ws_op *op = r->op;
    enum ws_cuda_start s =
        op->kind == WS_OPK_LAUNCH ? ws_cuda_launch(d, r, may_block) : ws_cuda_copy(d, r, may_block);
    if (s != WS_CUDA_STARTED)
        return s;
    r->timed = !op->error;
    r->started_ns = ws_cuda_host_ns();
    if (op->kind == WS_OPK_LAUNCH)
        d->n_kernels++;
    else
        d->n_copies++;
    /* a copy of another GPU may have left that one's context current */
    ws_cu_result e = ws_cuda_enter(d);
    if (e == WS_CU_SUCCESS)
        e = WS_CU(d, cuEventRecord, r->queue->end, r->queue->stream);
    if (e == WS_CU_SUCCESS)
        return s;
    /* Without the event its end cannot be noticed: wait for it here. */
    (void)ws_cuda_drain(d, r->queue->stream);
    if (!op->error)
        ws_cuda_fail(d, op, e, "cuEventRecord");
    r->timed = false;
    return WS_CUDA_DONE;
}

/* No lock held. This thread has @r, which has a queue; afterwards it is on a list. */
static void start(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block)
{
    ws_cuda_green_leave(r->queue);
    ws_cu_result e = d->lost ? d->lost : ws_cuda_enter(d);
    enum ws_cuda_start s = e == WS_CU_SUCCESS ? enqueue(d, r, may_block) : WS_CUDA_DONE;
    pthread_mutex_lock(&d->run_lock);
    (void)lost_text(d); /* while the runs that are being started are known */
    bool stops = r->cancelled || r->preempt;
    if (e != WS_CU_SUCCESS)
        fail_untouched(d, r, e);
    if (s == WS_CUDA_STARTED) {
        if (stops)
            raise_flag(d, r);
        put(d, r, WS_CUDA_IS_RUNNING);
    } else if (s == WS_CUDA_DONE || stops) {
        put(d, r, WS_CUDA_IS_ENDED);
    } else {
        put(d, r, s == WS_CUDA_COMPILES ? WS_CUDA_IS_COMPILING : WS_CUDA_IS_BLOCKING);
    }
    pthread_mutex_unlock(&d->run_lock);
}

void ws_cuda_submit(struct ws_device *dev, struct ws_op *op)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    struct ws_cuda_run *r = ws_alloc(sizeof(*r));
    d->n_running++;
    if (!r) { /* the only operation that ends on this thread */
        ws_check_fail(op, WS_DEV_E_NO_MEMORY, "the host has no memory to run it");
        d->n_running--;
        op->done(op);
        return;
    }
    r->op = op;
    r->first_ns = UINT64_MAX;
    op->priv = r;
    ws_list_init(&r->node);
    if (op->space) {
        r->epoch = ws_space_enter(op->space);
        r->entered = true;
    }
    ws_cu_result e = d->lost ? d->lost : ws_cuda_enter(d);
    pthread_mutex_lock(&d->run_lock);
    (void)lost_text(d);
    ws_list_append(&d->runs, &r->of_device);
    if (e == WS_CU_SUCCESS)
        r->queue = queue_take(d);
    bool has_queue = r->queue != NULL;
    if (!has_queue && e == WS_CU_SUCCESS) {
        put(d, r, WS_CUDA_IS_WAITING);
    } else if (!has_queue) {
        fail_untouched(d, r, e);
        put(d, r, WS_CUDA_IS_ENDED);
    }
    pthread_mutex_unlock(&d->run_lock);
    if (has_queue)
        start(d, r, false);
}

static void *starter_main(void *arg)
{
    struct ws_cuda_starter *t = arg;
    struct ws_cuda *d = t->device;
    pthread_mutex_lock(&d->run_lock);
    for (;;) {
        struct ws_cuda_run *r = take_first(d, t->state);
        struct ws_dinstance *ahead =
            !r && t->state == WS_CUDA_IS_COMPILING ? ws_cuda_preload_next(d) : NULL;
        if (ahead) {
            pthread_mutex_unlock(&d->run_lock);
            ws_cuda_preload_compile(ahead);
            pthread_mutex_lock(&d->run_lock);
            ws_cuda_preload_done(d);
            continue;
        }
        if (!r && d->stop)
            break;
        if (!r) {
            pthread_cond_wait(&t->wake, &d->run_lock);
            continue;
        }
        pthread_mutex_unlock(&d->run_lock);
        start(d, r, true);
        pthread_mutex_lock(&d->run_lock);
    }
    pthread_mutex_unlock(&d->run_lock);
    return NULL;
}

/* ---- ending ---- */

static void account(struct ws_cuda *d, struct ws_cuda_run *r)
{
    struct ws_op *op = r->op;
    uint64_t took = 0, end = 0, now = ws_cuda_now_ns(d);
    if (!r->timed || d->lost || !ws_cuda_span_ns(d, r->queue->begin, r->queue->end, &took) ||
        !ws_cuda_event_ns(d, r->queue->end, &end)) {
        op->start_ns = WS_MAX(op->ready_ns, WS_MIN(now, r->first_ns));
        op->end_ns = WS_MAX(op->start_ns, now);
        return;
    }
    end = WS_MIN(end, now);
    uint64_t begin = WS_MIN(end - WS_MIN(took, end), r->first_ns);
    op->start_ns = WS_MAX(op->ready_ns, begin);
    /* If the reference was taken late, both events seem too early; the time between them is
     * right. */
    op->end_ns = WS_MAX(op->start_ns, WS_MIN(op->start_ns + (end - begin), now));
    uint64_t ns = op->end_ns - op->start_ns;
    op->energy_uj = ws_cuda_energy_share(d, ns, d->n_running);
    pthread_mutex_lock(&d->run_lock);
    uint64_t from = WS_MAX(op->start_ns, d->busy_until_ns);
    if (op->kind == WS_OPK_LAUNCH) {
        d->busy_ns += op->end_ns > from ? op->end_ns - from : 0;
        d->busy_until_ns = WS_MAX(d->busy_until_ns, op->end_ns);
        d->sm_busy_ns += ns * r->n_sms;
    }
    pthread_mutex_unlock(&d->run_lock);
}

/* No lock held. @r has ended and this thread has it. Frees it. */
static void finish(struct ws_cuda *d, struct ws_cuda_run *r)
{
    struct ws_op *op = r->op;
    account(d, r);
    if (!op->error && r->bounce_bytes)
        memcpy(r->bounce_to, r->queue->bounce, r->bounce_bytes);
    pthread_mutex_lock(&d->run_lock);
    ws_list_remove(&r->of_device); /* from here on it cannot be cancelled */
    bool cancelled = r->cancelled;
    pthread_mutex_unlock(&d->run_lock);
    if (!op->error && cancelled)
        ws_check_fail(op, WS_DEV_E_CANCELLED, "cancelled");
    if (!op->error && r->preempt)
        ws_cuda_launch_stopped(r);
    if (op->kind == WS_OPK_LAUNCH && !op->preempted)
        op->launch.progress = ws_progress_free(op->launch.progress);
    pthread_mutex_lock(&d->run_lock);
    struct ws_cuda_run *w = r->queue ? take_first(d, WS_CUDA_IS_WAITING) : NULL;
    if (w) {
        w->queue = r->queue;
    } else if (r->queue) {
        r->queue->next = d->free_queues;
        d->free_queues = r->queue;
    }
    pthread_mutex_unlock(&d->run_lock);
    ws_cuda_lib_done(r);
    if (r->entered)
        ws_space_leave(op->space, r->epoch);
    op->priv = r->untouched ? &untouched : NULL;
    free(r->params);
    free(r);
    d->n_running--;
    op->done(op);
    if (w)
        start(d, w, false);
}

/* Asks the driver about a run; *ret_ended: it has ended. Waiter thread only. */
static void look(struct ws_cuda *d, struct ws_cuda_run *r, bool *ret_ended)
{
    ws_cu_result e = d->lost ? d->lost : ws_cuda_end_of(d, r->queue->end);
    *ret_ended = e != WS_CU_NOT_READY;
    if (*ret_ended && e != WS_CU_SUCCESS && !d->lost)
        (void)ws_cuda_drain(d, r->queue->stream); /* others will use the queue and the memory */
    if (*ret_ended && e != WS_CU_SUCCESS && !r->op->error) {
        const char *lost = ws_cuda_lost_text(d);
        bool suspect = r->op->kind == WS_OPK_LAUNCH;
        ws_check_fail(r->op, suspect ? ws_cuda_error(e) : WS_DEV_E_LAUNCH_FAILURE, "%.150s",
                      lost ? lost : "cuEventQuery failed");
    }
    if (e != WS_CU_SUCCESS)
        return;
    uint64_t begin;
    (void)ws_cuda_fence_hit(r);
    ws_cuda_lib_end(r);
    if (r->rewritten && r->timed && ws_cuda_event_ns(d, r->queue->begin, &begin))
        r->first_ns = WS_MIN(r->first_ns, WS_MIN(begin, ws_cuda_now_ns(d)));
    pthread_mutex_lock(&d->run_lock);
    if (ws_cuda_launch_again(d, r)) {
        e = WS_CU(d, cuEventRecord, r->queue->end, r->queue->stream);
        *ret_ended = e != WS_CU_SUCCESS;
    }
    pthread_mutex_unlock(&d->run_lock);
    if (e != WS_CU_SUCCESS) {
        (void)ws_cuda_drain(d, r->queue->stream);
        if (!r->op->error)
            ws_cuda_fail(d, r->op, e, "cuEventRecord");
    }
}

/* How long to sleep before the next look: nothing while the youngest run is young, then a fraction
 * of its age. */
static uint64_t pause_ns(struct ws_cuda *d)
{
    uint64_t now = ws_cuda_host_ns(), youngest = 0;
    ws_list_for_each (it, &d->in[WS_CUDA_IS_RUNNING])
        youngest = WS_MAX(youngest, ws_list_entry(it, struct ws_cuda_run, node)->started_ns);
    uint64_t age = now > youngest ? now - youngest : 0;
    return age < d->options.spin_ns ? 0 : WS_MIN(age / SLEEP_FRACTION, SLEEP_MAX_NS);
}

/* Makes the context current, without which the driver cannot be asked. Waiter thread only. */
static void enter_for_sure(struct ws_cuda *d)
{
    while (ws_cuda_enter(d) != WS_CU_SUCCESS && !d->lost)
        usleep(1000);
}

static void *waiter_main(void *arg)
{
    struct ws_cuda *d = arg;
    enter_for_sure(d);
    struct ws_list *running = &d->in[WS_CUDA_IS_RUNNING], *ended = &d->in[WS_CUDA_IS_ENDED];
    pthread_mutex_lock(&d->run_lock);
    for (;;) {
        /* its state stays ENDED, since nothing can be stopped any more */
        struct ws_list *n = ws_list_pop(ended);
        if (n) {
            pthread_mutex_unlock(&d->run_lock);
            finish(d, ws_list_entry(n, struct ws_cuda_run, node));
            /* another GPU's context may be current if memory there was released */
            enter_for_sure(d);
            pthread_mutex_lock(&d->run_lock);
            continue;
        }
        if (ws_list_empty(running)) {
            if (d->stop)
                break;
            pthread_cond_wait(&d->waiter_wake, &d->run_lock);
            continue;
        }
        pthread_mutex_unlock(&d->run_lock);
        ws_cuda_clock_renew(d);
        pthread_mutex_lock(&d->run_lock);
        /* Only this thread takes from the list, so a node stays in it while the lock is not
         * held. */
        bool any = false;
        for (struct ws_list *it = running->next; it != running;) {
            struct ws_cuda_run *r = ws_list_entry(it, struct ws_cuda_run, node);
            bool through;
            pthread_mutex_unlock(&d->run_lock);
            look(d, r, &through);
            pthread_mutex_lock(&d->run_lock);
            it = it->next;
            if (through) {
                put(d, take(r), WS_CUDA_IS_ENDED);
                any = true;
            }
        }
        uint64_t ns = any ? 0 : pause_ns(d);
        if (any)
            continue;
        struct timespec t = {0, (long)ns};
        pthread_mutex_unlock(&d->run_lock);
        if (ns)
            nanosleep(&t, NULL);
        else
            sched_yield();
        pthread_mutex_lock(&d->run_lock);
    }
    pthread_mutex_unlock(&d->run_lock);
    return NULL;
}

/* ---- cancelling ---- */

/* Run lock held. */
static void stop(struct ws_cuda *d, struct ws_cuda_run *r)
{
    switch (r->state) {
    case WS_CUDA_IS_WAITING:
    case WS_CUDA_IS_BLOCKING:
    case WS_CUDA_IS_COMPILING:
        put(d, take(r), WS_CUDA_IS_ENDED);
        return;
    case WS_CUDA_IS_RUNNING:
        raise_flag(d, r);
        return;
    default: /* a thread has it and will see the mark, or it has ended */
        return;
    }
}

void ws_cuda_cancel(struct ws_device *dev, struct ws_space *space)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    (void)ws_cuda_enter(d);
    pthread_mutex_lock(&d->run_lock);
    ws_list_for_each (it, &d->runs) {
        struct ws_cuda_run *r = ws_list_entry(it, struct ws_cuda_run, of_device);
        if (r->op->space != space || r->cancelled)
            continue;
        r->cancelled = true;
        stop(d, r);
    }
    pthread_mutex_unlock(&d->run_lock);
}

int ws_cuda_preempt(struct ws_device *dev, struct ws_op *op)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    int ret = 0;
    (void)ws_cuda_enter(d);
    pthread_mutex_lock(&d->run_lock);
    struct ws_cuda_run *r = NULL;
    ws_list_for_each (it, &d->runs)
        if (ws_list_entry(it, struct ws_cuda_run, of_device)->op == op)
            r = ws_list_entry(it, struct ws_cuda_run, of_device);
    /* A run that is not started can be taken back, if it can be started from a counter later. */
    bool can = r && d->flag_stream && !op->launch.flags &&
               (r->state != WS_CUDA_IS_RUNNING || r->rewritten);
    if (!can)
        ret = -ENOTSUP;
    else if (!r->preempt && r->state != WS_CUDA_IS_ENDED) {
        r->preempt = true;
        stop(d, r);
    }
    pthread_mutex_unlock(&d->run_lock);
    return ret;
}

/* ---- opening and closing ---- */

/* What asks kernels to stop. A driver that has the call may refuse it, as one does that shares the
 * GPU with virtual machines: then no kernel is asked, and launches send their tickets by copies.
 * *ret_why: changed if it refuses. Return: an error: the device cannot be opened. */
static ws_cu_result flags_open(struct ws_cuda *d, int priority, const char **ret_why)
{
    uint64_t flag = d->queues[0]->control_va + offsetof(struct ws_cuda_control, flag);
    ws_cu_result r =
        WS_CU(d, cuStreamCreateWithPriority, &d->flag_stream, WS_CU_STREAM_NON_BLOCKING, priority);
    if (r == WS_CU_SUCCESS)
        r = WS_CU(d, cuEventCreate, &d->flag_event, WS_CU_EVENT_DEFAULT);
    if (r != WS_CU_SUCCESS)
        return r;
    if (WS_CU(d, cuStreamWriteValue32, d->flag_stream, flag, 0, 0) == WS_CU_SUCCESS)
        return ws_cuda_drain(d, d->flag_stream);
    (void)WS_CU(d, cuStreamDestroy, d->flag_stream);
    d->flag_stream = NULL;
    *ret_why = "the driver refuses cuStreamWriteValue32";
    return d->lost;
}

int ws_cuda_run_open(struct ws_cuda *d)
{
    int least = 0, greatest = 0;
    if (!d->options.max_running)
        d->options.max_running = MAX_RUNNING;
    if (!d->options.spin_ns)
        d->options.spin_ns = SPIN_NS;
    ws_list_init(&d->runs);
    ws_list_init(&d->preloads);
    pthread_cond_init(&d->preloaded, NULL);
    for (int k = 0; k < _WS_CUDA_STATES; k++)
        ws_list_init(&d->in[k]);
    pthread_cond_init(&d->waiter_wake, NULL);
    for (int k = 0; k < _WS_CUDA_STARTERS; k++) {
        d->starters[k].device = d;
        pthread_cond_init(&d->starters[k].wake, NULL);
    }
    d->starters[WS_CUDA_STARTER].state = WS_CUDA_IS_BLOCKING;
    d->starters[WS_CUDA_COMPILER].state = WS_CUDA_IS_COMPILING;
    d->queues = ws_alloc_array(d->options.max_running, sizeof(struct ws_cuda_queue *));
    if (!d->queues)
        return ws_raise(-ENOMEM);
    if (queues_open(d) != WS_CU_SUCCESS ||
        WS_CU(d, cuCtxGetStreamPriorityRange, &least, &greatest) != WS_CU_SUCCESS ||
        WS_CUDA_NOTED(d, ws_cuda_carry_open(d, greatest)) != WS_CU_SUCCESS)
        return WS_CUDA_E_MISSING;
    const char *no_flags = "the driver has no cuStreamWriteValue32";
    if (d->cu.cuStreamWriteValue32 && flags_open(d, greatest, &no_flags) != WS_CU_SUCCESS)
        return WS_CUDA_E_MISSING;
    ws_cuda_say(d, "stop between blocks", d->flag_stream != NULL, "%s",
                d->flag_stream ? "of kernels rewritten to take their blocks from a counter"
                               : no_flags);
    ws_cuda_say(d, "SM sets", true,
                "of kernels rewritten to look at their SM; others by green contexts, else all SMs");
    ws_cuda_say(d, "kernel parameters checked", d->cu.cuFuncGetParamInfo != NULL,
                "cuFuncGetParamInfo");
    ws_cuda_say(d, "textures and surfaces", true,
                "computed by instructions in the kernels, not by the GPU's texture units: slower");
    ws_cuda_say(d, "machine code without PTX", d->options.unfenced, "%s",
                d->options.unfenced ? "runs to its end, on SMs by green contexts"
                                    : "cannot be isolated; isolation = none accepts it");
    ws_cuda_say(
        d, "printf, assert, trap, malloc", true,
        "of kernels, separate for each client; not of functions that are called by address");
    ws_cuda_say(d, "isolation", !d->options.unfenced, "%s",
                d->options.unfenced
                    ? "by configuration: one context, and kernels reach all clients' memory"
                    : "kernels check their addresses; those that cannot be made to are refused. "
                      "One context: other faults end all clients' work");
    int r = pthread_create(&d->waiter, NULL, waiter_main, d);
    d->waiter_on = !r;
    for (int k = 0; !r && k < _WS_CUDA_STARTERS; k++) {
        struct ws_cuda_starter *t = &d->starters[k];
        r = pthread_create(&t->thread, NULL, starter_main, t);
        t->on = !r;
    }
    return r ? ws_raise(-EAGAIN) : 0;
}

void ws_cuda_run_close(struct ws_cuda *d)
{
    pthread_mutex_lock(&d->run_lock);
    d->stop = true;
    if (d->waiter_on) {
        pthread_cond_broadcast(&d->waiter_wake);
        for (int k = 0; k < _WS_CUDA_STARTERS; k++)
            pthread_cond_broadcast(&d->starters[k].wake);
    }
    pthread_mutex_unlock(&d->run_lock);
    if (d->waiter_on)
        pthread_join(d->waiter, NULL);
    for (int k = 0; k < _WS_CUDA_STARTERS; k++)
        if (d->starters[k].on)
            pthread_join(d->starters[k].thread, NULL);
    if (d->flag_stream) { /* flags of launches that have ended may still be on their way */
        (void)ws_cuda_drain(d, d->flag_stream);
        (void)d->cu.cuStreamDestroy(d->flag_stream);
    }
    if (d->flag_event)
        (void)d->cu.cuEventDestroy(d->flag_event);
    ws_cuda_carry_close(d);
    for (uint32_t k = 0; k < d->n_queues; k++)
        queue_free(d, d->queues[k]);
    free(d->queues);
    ws_cuda_stock_close(d);
}
