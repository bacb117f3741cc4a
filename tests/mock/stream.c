// SPDX-License-Identifier: Apache-2.0
/* Streams, events, copies, launches. A stream is a thread that does one item after
 * another; kernels and copies are operations of the software GPU. A fault of a kernel becomes the
 * context's sticky error. Copies with memory that is not pinned are done before the call returns,
 * as the real driver may do. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/launch_check.h"
#include "tests/mock/mock.h"

struct item {
    struct ws_list node;
    struct ws_op op; /* kind of: below */
    bool is_op;
    struct mock_module *module;
    uint8_t *params;
    struct mock_event *event, *wait_for;
    uint64_t write_va;
    uint32_t write_value;
    bool done;
    pthread_mutex_t *lock;
    pthread_cond_t *changed;
};

#define STREAM(s)                                                                                  \
    struct mock_stream *st = (s) || !mock_program ? mock_object_of((s), MOCK_STREAM, __func__)     \
                                                  : mock_default_stream(__func__);                 \
    if (!st)                                                                                       \
    return WS_CU_INVALID_HANDLE
#define EVENT(e)                                                                                   \
    struct mock_event *ev = mock_object_of((e), MOCK_EVENT, __func__);                             \
    if (!ev)                                                                                       \
    return WS_CU_INVALID_HANDLE

bool mock_program;
static struct mock_stream
    *streams[MOCK_MAX_STREAMS]; /* of programs: what cuCtxSynchronize waits for */
static uint32_t n_streams;

static int sticky_of(enum ws_dev_error e)
{
    switch (e) {
    case WS_DEV_E_ILLEGAL_ADDRESS:
        return WS_CU_ILLEGAL_ADDRESS;
    case WS_DEV_E_MISALIGNED:
        return WS_CU_MISALIGNED_ADDRESS;
    case WS_DEV_E_ASSERT:
        return WS_CU_ASSERT;
    case WS_DEV_E_TIMEOUT:
        return WS_CU_LAUNCH_TIMEOUT;
    case WS_DEV_E_ILLEGAL_INSTRUCTION:
        return WS_CU_ILLEGAL_INSTRUCTION;
    case WS_DEV_E_STACK_OVERFLOW:
        return WS_CU_HARDWARE_STACK_ERROR;
    default:
        return WS_CU_LAUNCH_FAILED;
    }
}

static void op_done(struct ws_op *op)
{
    struct item *i = op->owner;
    pthread_mutex_lock(i->lock);
    i->done = true;
    pthread_cond_broadcast(i->changed);
    pthread_mutex_unlock(i->lock);
}

/* ---- what the GPU does ---- */

EXPORT void ws_mock_hold(bool on);
EXPORT void ws_mock_hold_modules(bool on);

static pthread_mutex_t gpu_lock = PTHREAD_MUTEX_INITIALIZER; /* of all GPUs; for: */
static pthread_cond_t gpu_changed = PTHREAD_COND_INITIALIZER;
static bool held;

void ws_mock_hold(bool on)
{
    pthread_mutex_lock(&gpu_lock);
    held = on;
    pthread_cond_broadcast(&gpu_changed);
    pthread_mutex_unlock(&gpu_lock);
}

static bool held_modules;

/* Modules that are being loaded stay so until it is taken back. */
void ws_mock_hold_modules(bool on)
{
    pthread_mutex_lock(&gpu_lock);
    held_modules = on;
    pthread_cond_broadcast(&gpu_changed);
    pthread_mutex_unlock(&gpu_lock);
}

void mock_wait_for_modules(void)
{
    pthread_mutex_lock(&gpu_lock);
    while (held_modules)
        pthread_cond_wait(&gpu_changed, &gpu_lock);
    pthread_mutex_unlock(&gpu_lock);
}

static bool held_copies;

/* Copies between the host and a GPU stay in the queues of its copy engines until it is taken
 * back. */
EXPORT void ws_mock_hold_copies(bool on);
void ws_mock_hold_copies(bool on)
{
    pthread_mutex_lock(&gpu_lock);
    held_copies = on;
    pthread_cond_broadcast(&gpu_changed);
    pthread_mutex_unlock(&gpu_lock);
}

/* WS_MOCK_COPIES_WAIT=FILE: they also stay there while the file exists. */
static bool copies_wait(void)
{
    const char *e = getenv("WS_MOCK_COPIES_WAIT");
    return held_copies || (e && !access(e, F_OK));
}

enum { NO_ENGINE = -1, TO_GPU, FROM_GPU };
/* The copy engine that does the operation. */
static int engine_of(const struct ws_op *op)
{
    if (op->kind != WS_OPK_COPY || !op->copy.src_host == !op->copy.dst_host)
        return NO_ENGINE;
    return op->copy.src_host ? TO_GPU : FROM_GPU;
}

/* WS_MOCK_FULL: each kernel takes all the room that the GPU has. gpu_lock held. */
static bool has_no_room(const struct mock_gpu *g, const struct item *i)
{
    return i->op.kind == WS_OPK_LAUNCH && g->n_kernels && getenv("WS_MOCK_FULL");
}

/* Whether the GPU can't begin the operation yet. gpu_lock held. */
static bool must_queue(const struct mock_stream *s, const struct item *i)
{
    const struct mock_gpu *g = s->o.gpu;
    int engine = engine_of(&i->op);
    if (i->module)
        return (held && !s->waited_for) || has_no_room(g, i);
    if (engine != NO_ENGINE)
        return copies_wait() || (mock_named("WS_MOCK_QUEUES", "copies") && g->engine_busy[engine]);
    return i->op.kind == WS_OPK_FILL && mock_named("WS_MOCK_QUEUES", "fills") && g->n_kernels;
}

/* gpu_lock held. No operation is begun in a context that is lost, so those there are when it is are
 * all that need stopping. */
static void lose(struct mock_gpu *g, int code)
{
    int none = 0;
    atomic_compare_exchange_strong(&g->sticky, &none, code);
    if (g->soft)
        ws_device_cancel(g->soft, g->space);
    pthread_cond_broadcast(&gpu_changed);
}

void mock_lose(struct mock_gpu *g, int code)
{
    pthread_mutex_lock(&gpu_lock);
    lose(g, code);
    pthread_mutex_unlock(&gpu_lock);
}

int mock_sticky(struct mock_gpu *g)
{
    pthread_mutex_lock(&gpu_lock);
    while (g->sticky && g->n_doing)
        pthread_cond_wait(&gpu_changed, &gpu_lock);
    pthread_mutex_unlock(&gpu_lock);
    return g->sticky;
}

/* For a program a kernel that cannot begin, because it is held, is like one that does not end. */
bool mock_wait_idle(struct mock_gpu *g)
{
    enum { PATIENCE_S = 20 };
    struct timespec until;
    int r = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&gpu_lock);
    while (!g->sticky && (g->n_doing || g->n_waiting) && !r)
        r = pthread_cond_timedwait(&gpu_changed, &gpu_lock, &until);
    pthread_mutex_unlock(&gpu_lock);
    return !r;
}

/* Or for a file that appears or goes. gpu_lock held. */
static void wait_for_change(void)
{
    struct timespec until;
    if (!getenv("WS_MOCK_COPIES_WAIT")) {
        pthread_cond_wait(&gpu_changed, &gpu_lock);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    until.tv_sec += until.tv_nsec / (long)WS_NS_PER_S;
    until.tv_nsec %= (long)WS_NS_PER_S;
    pthread_cond_timedwait(&gpu_changed, &gpu_lock, &until);
}

/* Return: false: the context is lost. */
static bool begin(struct mock_stream *s, struct item *i)
{
    struct mock_gpu *g = s->o.gpu;
    pthread_mutex_lock(&gpu_lock);
    g->n_waiting += i->op.kind == WS_OPK_LAUNCH;
    while (must_queue(s, i) && !g->sticky)
        wait_for_change();
    g->n_waiting -= i->op.kind == WS_OPK_LAUNCH;
    bool good = !g->sticky;
    if (good) {
        g->n_doing++;
        g->n_kernels += i->op.kind == WS_OPK_LAUNCH;
        if (engine_of(&i->op) != NO_ENGINE)
            g->engine_busy[engine_of(&i->op)]++;
        ws_device_submit(g->soft, &i->op);
    }
    pthread_mutex_unlock(&gpu_lock);
    return good;
}

/* WS_MOCK_UNTIL=FILE: each kernel lasts until that is there. FILE.began appears when the first one
 * waits for it. */
static void wait_until_file(const char *until)
{
    char began[PATH_MAX];
    snprintf(began, sizeof(began), "%s.began", until);
    if (access(until, F_OK))
        close(open(began, O_WRONLY | O_CREAT, 0666)); /* who waits for that sees it */
    while (access(until, F_OK))
        usleep(1000);
}

/* WS_MOCK_RECORD=FILE gets a line for each kernel: pid, start and end in ns; WS_MOCK_SLEEP_US makes
 * each one last. */
static void record_kernel(uint64_t start_ns)
{
    const char *sleep_us = getenv("WS_MOCK_SLEEP_US"), *path = getenv("WS_MOCK_RECORD");
    const char *until = getenv("WS_MOCK_UNTIL");
    char text[96];
    if (until)
        wait_until_file(until);
    if (sleep_us)
        usleep((useconds_t)strtoul(sleep_us, NULL, 10));
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;
    if (fd < 0)
        return;
    int n = snprintf(text, sizeof(text), "%d %llu %llu\n", (int)getpid(),
                     (unsigned long long)start_ns, (unsigned long long)mock_now_ns());
    if (write(fd, text, (size_t)n) != n)
        mock_violation("WS_MOCK_RECORD: can't be written");
    close(fd);
}

static void do_op(struct mock_stream *s, struct item *i)
{
    uint64_t start_ns = mock_now_ns();
    struct mock_gpu *g = s->o.gpu;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    i->lock = &lock;
    i->changed = &changed;
    i->op.owner = i;
    i->op.done = op_done;
    i->op.space = g->space;
    if (!begin(s, i))
        return;
    pthread_mutex_lock(&lock);
    while (!i->done)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (i->op.kind == WS_OPK_LAUNCH)
        record_kernel(start_ns);
    pthread_mutex_lock(&gpu_lock);
    g->n_doing--;
    g->n_kernels -= i->op.kind == WS_OPK_LAUNCH;
    if (engine_of(&i->op) != NO_ENGINE)
        g->engine_busy[engine_of(&i->op)]--;
    if (i->op.error && i->op.error != WS_DEV_E_CANCELLED) {
        if (i->op.kind != WS_OPK_LAUNCH && !g->sticky)
            mock_violation("copy or fill of memory that is not there: %s", i->op.text);
        lose(g, sticky_of(i->op.error));
    }
    pthread_cond_broadcast(&gpu_changed);
    pthread_mutex_unlock(&gpu_lock);
}

static void do_item(struct mock_stream *s, struct item *i)
{
    if (i->is_op)
        do_op(s, i);
    if (i->module)
        i->module->n_running--;
    if (i->wait_for) {
        pthread_mutex_lock(&i->wait_for->lock);
        while (i->wait_for->n_pending)
            pthread_cond_wait(&i->wait_for->changed, &i->wait_for->lock);
        pthread_mutex_unlock(&i->wait_for->lock);
    }
    if (i->write_va) {
        uint8_t *p = mock_host_of(i->write_va, 4);
        if (p)
            __atomic_store_n((uint32_t *)(void *)p, i->write_value, __ATOMIC_RELEASE);
        else
            mock_violation("cuStreamWriteValue32: 0x%llx is not mapped",
                           (unsigned long long)i->write_va);
    }
}

/* Stream locked. */
static void end_item(struct item *i)
{
    if (i->event) {
        pthread_mutex_lock(&i->event->lock);
        i->event->ns = mock_gpu_ns();
        i->event->recorded = true;
        i->event->n_pending--;
        pthread_cond_broadcast(&i->event->changed);
        pthread_mutex_unlock(&i->event->lock);
    }
    free(i->params);
    free(i);
}

static void *stream_main(void *arg)
{
    struct mock_stream *s = arg;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        struct ws_list *n = ws_list_pop(&s->items);
        if (!n && s->stop)
            break;
        if (!n) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        struct item *i = ws_list_entry(n, struct item, node);
        do_item(s, i);
        pthread_mutex_lock(&s->lock);
        end_item(i); /* who waited for its event finds the stream without it */
        s->n_items--;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static ws_cu_result push(struct mock_stream *s, struct item *i)
{
    pthread_mutex_lock(&s->lock);
    ws_list_append(&s->items, &i->node);
    s->n_items++;
    if (!s->started) {
        s->started = !pthread_create(&s->thread, NULL, stream_main, s);
        if (!s->started) {
            perror("mock: no thread");
            abort();
        }
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return WS_CU_SUCCESS;
}

static void let_go(struct mock_stream *s)
{
    pthread_mutex_lock(&gpu_lock);
    s->waited_for = true;
    pthread_cond_broadcast(&gpu_changed);
    pthread_mutex_unlock(&gpu_lock);
}

static void drain(struct mock_stream *s)
{
    let_go(s);
    pthread_mutex_lock(&s->lock);
    while (s->n_items)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    s->waited_for = false;
}

static struct item *item_new(void)
{
    struct item *i = ws_alloc(sizeof(*i));
    if (!i)
        abort();
    ws_list_init(&i->node);
    return i;
}

/* ---- streams ---- */

struct mock_stream *mock_stream_new(struct mock_gpu *g)
{
    struct mock_stream *st = ws_alloc(sizeof(*st));
    if (!st)
        return NULL;
    pthread_mutex_init(&st->lock, NULL);
    pthread_cond_init(&st->changed, NULL);
    ws_list_init(&st->items);
    pthread_mutex_lock(&mock_lock);
    mock_object_add(&st->o, MOCK_STREAM, g);
    pthread_mutex_unlock(&mock_lock);
    return st;
}

static struct mock_stream *program_stream(void)
{
    struct mock_stream *st = mock_stream_new(mock_current());
    pthread_mutex_lock(&mock_lock);
    if (st && n_streams < MOCK_MAX_STREAMS)
        streams[n_streams++] = st;
    pthread_mutex_unlock(&mock_lock);
    return st;
}

struct mock_stream *mock_default_stream(const char *call)
{
    static struct mock_stream *of[MOCK_MAX_GPUS];
    struct mock_gpu *g = mock_current();
    if (!g) {
        mock_violation("%s: no context is current", call);
        return NULL;
    }
    if (!of[g->ordinal]) {
        of[g->ordinal] = program_stream();
        if (of[g->ordinal])
            of[g->ordinal]->o.kind = MOCK_DEFAULT_STREAM; /* nobody's to destroy */
    }
    return of[g->ordinal];
}

void mock_drain_all(void)
{
    for (uint32_t i = 0; i < n_streams; i++)
        if (streams[i]->o.gpu == mock_current())
            drain(streams[i]);
}

ws_cu_result mock_program_stream(ws_cu_stream *s)
{
    struct mock_stream *st = program_stream();
    *s = (ws_cu_stream)(void *)st;
    return st ? WS_CU_SUCCESS : WS_CU_OUT_OF_MEMORY;
}

EXPORT ws_cu_result cuStreamQuery(ws_cu_stream s);
ws_cu_result cuStreamQuery(ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    STREAM(s);
    pthread_mutex_lock(&st->lock);
    bool busy = st->n_items > 0;
    pthread_mutex_unlock(&st->lock);
    return busy ? WS_CU_NOT_READY : mock_sticky(st->o.gpu);
}

ws_cu_result cuStreamCreateWithPriority(ws_cu_stream *s, unsigned flags, int priority)
{
    ENTER(MOCK_CTX);
    if (flags != WS_CU_STREAM_NON_BLOCKING)
        mock_violation("a stream that waits for the NULL stream");
    struct mock_stream *st = mock_stream_new(mock_current());
    *s = (ws_cu_stream)(void *)st;
    return st ? WS_CU_SUCCESS : WS_CU_OUT_OF_MEMORY;
}

static void stream_end(struct mock_stream *st)
{
    pthread_mutex_lock(&st->lock);
    st->stop = true;
    pthread_cond_broadcast(&st->changed);
    bool started = st->started;
    st->started = false;
    pthread_mutex_unlock(&st->lock);
    if (started)
        pthread_join(st->thread, NULL);
}

ws_cu_result cuStreamDestroy(ws_cu_stream s)
{
    int r = mock_enter(__func__, MOCK_CTX);
    STREAM(s);
    pthread_mutex_lock(&st->lock);
    uint32_t n = st->n_items;
    pthread_mutex_unlock(&st->lock);
    if (n && !r)
        mock_violation("cuStreamDestroy: %u items are still in it", n);
    pthread_mutex_lock(&mock_lock);
    st->o.alive = false;
    pthread_mutex_unlock(&mock_lock);
    if (st->green)
        st->green->n_streams--;
    let_go(st);
    stream_end(st);
    return r;
}

void mock_streams_end(struct mock_gpu *g)
{
    mock_lose(g, WS_CU_CONTEXT_IS_DESTROYED);
    (void)mock_sticky(g);
}

ws_cu_result cuStreamSynchronize(ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    STREAM(s);
    drain(st);
    return mock_sticky(st->o.gpu);
}

ws_cu_result cuStreamWaitEvent(ws_cu_stream s, ws_cu_event e, unsigned flags)
{
    ENTER(MOCK_CTX);
    STREAM(s);
    EVENT(e);
    struct item *i = item_new();
    i->wait_for = ev;
    return push(st, i);
}

ws_cu_result cuStreamWriteValue32(ws_cu_stream s, ws_cu_ptr va, uint32_t value, unsigned flags)
{
    ENTER(MOCK_CTX);
    STREAM(s);
    if (mock_named("WS_MOCK_REFUSES", "values"))
        return WS_CU_NOT_SUPPORTED;
    struct item *i = item_new();
    i->write_va = va;
    i->write_value = value;
    return push(st, i);
}

/* ---- events ---- */

ws_cu_result cuEventCreate(ws_cu_event *e, unsigned flags)
{
    ENTER(MOCK_CTX);
    struct mock_event *ev = ws_alloc(sizeof(*ev));
    if (!ev)
        return WS_CU_OUT_OF_MEMORY;
    pthread_mutex_init(&ev->lock, NULL);
    pthread_cond_init(&ev->changed, NULL);
    pthread_mutex_lock(&mock_lock);
    mock_object_add(&ev->o, MOCK_EVENT, mock_current());
    pthread_mutex_unlock(&mock_lock);
    *e = (ws_cu_event)(void *)ev;
    return WS_CU_SUCCESS;
}

ws_cu_result cuEventDestroy(ws_cu_event e)
{
    int r = mock_enter(__func__, MOCK_CTX);
    EVENT(e);
    pthread_mutex_lock(&mock_lock);
    ev->o.alive = false;
    pthread_mutex_unlock(&mock_lock);
    return r;
}

ws_cu_result cuEventRecord(ws_cu_event e, ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    EVENT(e);
    STREAM(s);
    if (st->green && mock_named("WS_MOCK_REFUSES", "events"))
        return WS_CU_INVALID_HANDLE;
    pthread_mutex_lock(&ev->lock);
    ev->n_pending++;
    pthread_mutex_unlock(&ev->lock);
    struct item *i = item_new();
    i->event = ev;
    return push(st, i);
}

ws_cu_result cuEventQuery(ws_cu_event e)
{
    ENTER(MOCK_CTX);
    EVENT(e);
    pthread_mutex_lock(&ev->lock);
    bool pending = ev->n_pending > 0;
    pthread_mutex_unlock(&ev->lock);
    int lost = mock_sticky(ev->o.gpu);
    return lost ? lost : pending ? WS_CU_NOT_READY : WS_CU_SUCCESS;
}

ws_cu_result cuEventSynchronize(ws_cu_event e)
{
    ENTER(MOCK_CTX);
    EVENT(e);
    pthread_mutex_lock(&ev->lock);
    while (ev->n_pending)
        pthread_cond_wait(&ev->changed, &ev->lock);
    pthread_mutex_unlock(&ev->lock);
    return mock_sticky(ev->o.gpu);
}

ws_cu_result cuEventElapsedTime(float *ms, ws_cu_event from, ws_cu_event to)
{
    ENTER(MOCK_CTX);
    struct mock_event *a = mock_object_of(from, MOCK_EVENT, __func__),
                      *b = mock_object_of(to, MOCK_EVENT, __func__);
    if (!a || !b)
        return WS_CU_INVALID_HANDLE;
    if (!a->recorded || !b->recorded) {
        mock_violation("cuEventElapsedTime: an event was never recorded");
        return WS_CU_INVALID_HANDLE;
    }
    if (a->n_pending || b->n_pending)
        return WS_CU_NOT_READY;
    *ms = (float)((double)((int64_t)b->ns - (int64_t)a->ns) / 1e6);
    return WS_CU_SUCCESS;
}

/* ---- copies ---- */

/* Copies and fills of a context use what is mapped for its GPU; between GPUs there is
 * cuMemcpyPeerAsync. */
static bool is_reached(const struct mock_stream *st, const struct ws_op *op)
{
    uint64_t n = op->copy.bytes;
    if (op->kind == WS_OPK_FILL)
        return mock_reaches(st->o.gpu, op->fill.va, op->fill.width_bytes);
    return (op->copy.dst_host || mock_reaches(st->o.gpu, op->copy.dst_va, n)) &&
           (op->copy.src_host || mock_reaches(st->o.gpu, op->copy.src_va, n));
}

/* @host: the one that must be pinned for the call to return at once, or NULL. */
static ws_cu_result push_op(struct mock_stream *st, struct ws_op op, const void *host,
                            uint64_t host_bytes)
{
    if (!is_reached(st, &op)) {
        mock_violation("a copy or a fill uses memory that is not mapped for its GPU");
        return WS_CU_INVALID_VALUE;
    }
    struct item *i = item_new();
    i->op = op;
    i->is_op = true;
    push(st, i);
    if (host && !mock_is_pinned(host, host_bytes))
        drain(st);
    return mock_sticky(st->o.gpu);
}

static struct ws_op copy_op(uint64_t dst, void *dst_host, uint64_t src, const void *src_host,
                            uint64_t bytes)
{
    return (struct ws_op){.kind = WS_OPK_COPY,
                          .copy = {.dst_va = dst,
                                   .dst_host = dst_host,
                                   .src_va = src,
                                   .src_host = src_host,
                                   .bytes = bytes}};
}

ws_cu_result cuMemcpyHtoDAsync(ws_cu_ptr dst, const void *src, size_t bytes, ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    STREAM(s);
    return push_op(st, copy_op(dst, NULL, 0, src, bytes), src, bytes);
}

ws_cu_result cuMemcpyDtoHAsync(void *dst, ws_cu_ptr src, size_t bytes, ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    STREAM(s);
    return push_op(st, copy_op(0, dst, src, NULL, bytes), dst, bytes);
}

ws_cu_result cuMemcpyDtoDAsync(ws_cu_ptr dst, ws_cu_ptr src, size_t bytes, ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    STREAM(s);
    return push_op(st, copy_op(dst, NULL, src, NULL, bytes), NULL, 0);
}

ws_cu_result cuMemcpyPeerAsync(ws_cu_ptr dst, ws_cu_ctx dst_ctx, ws_cu_ptr src, ws_cu_ctx src_ctx,
                               size_t bytes, ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    STREAM(s);
    const struct mock_gpu *to = (void *)dst_ctx, *from = (void *)src_ctx;
    if (!to->n_retained || !from->n_retained || !mock_reaches(to, dst, bytes) ||
        !mock_reaches(from, src, bytes)) {
        mock_violation("%s: memory that is not of the GPU named with it", __func__);
        return WS_CU_INVALID_VALUE;
    }
    struct item *i = item_new();
    i->op = copy_op(dst, NULL, src, NULL, bytes);
    i->is_op = true;
    push(st, i);
    return mock_sticky(st->o.gpu);
}

static ws_cu_result at_once(const char *call, uint64_t va, void *to, const void *from, size_t bytes)
{
    uint8_t *p = mock_host_of(va, bytes);
    if (!p) {
        mock_violation("%s: 0x%llx, %zu bytes are not mapped", call, (unsigned long long)va, bytes);
        return WS_CU_INVALID_VALUE;
    }
    memcpy(to ? to : p, to ? p : from, bytes);
    return WS_CU_SUCCESS;
}

ws_cu_result cuMemcpyHtoD(ws_cu_ptr dst, const void *src, size_t bytes)
{
    ENTER(MOCK_CTX);
    return at_once(__func__, dst, NULL, src, bytes);
}

ws_cu_result cuMemcpyDtoH(void *dst, ws_cu_ptr src, size_t bytes)
{
    ENTER(MOCK_CTX);
    return at_once(__func__, src, dst, NULL, bytes);
}

ws_cu_result cuMemcpy3DAsync(const struct ws_cu_copy3d *c, ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    STREAM(s);
    if (c->src_pitch < c->width_bytes || c->dst_pitch < c->width_bytes || c->reserved0 ||
        c->reserved1 || (c->depth > 1 && (c->src_height < c->height || c->dst_height < c->height)))
        return WS_CU_INVALID_VALUE;
    struct ws_op op = {.kind = WS_OPK_COPY,
                       .copy = {.bytes = c->width_bytes,
                                .height = c->height,
                                .depth = c->depth,
                                .dst = {c->dst_pitch, c->dst_pitch * c->dst_height},
                                .src = {c->src_pitch, c->src_pitch * c->src_height}}};
    const void *host = NULL;
    uint64_t reach = 0;
    if (c->src_type == WS_CU_MEMORYTYPE_HOST) {
        host = op.copy.src_host = c->src_host;
        reach = op.copy.src.slice * (c->depth - 1) + c->src_pitch * (c->height - 1);
    } else {
        op.copy.src_va = c->src_device;
    }
    if (c->dst_type == WS_CU_MEMORYTYPE_HOST) {
        host = op.copy.dst_host = c->dst_host;
        reach = op.copy.dst.slice * (c->depth - 1) + c->dst_pitch * (c->height - 1);
    } else {
        op.copy.dst_va = c->dst_device;
    }
    return push_op(st, op, host, reach + c->width_bytes);
}

static ws_cu_result fill(ws_cu_stream s, const char *call, uint64_t va, uint64_t pitch, uint32_t v,
                         uint32_t unit, uint64_t width, uint64_t height)
{
    struct mock_stream *st =
        s || !mock_program ? mock_object_of(s, MOCK_STREAM, call) : mock_default_stream(call);
    if (!st)
        return WS_CU_INVALID_HANDLE;
    if (va % unit || (height > 1 && (pitch < width * unit || pitch % unit)))
        return WS_CU_INVALID_VALUE;
    return push_op(st,
                   (struct ws_op){.kind = WS_OPK_FILL,
                                  .fill = {.va = va,
                                           .width_bytes = width * unit,
                                           .height = height,
                                           .pitch_bytes = pitch,
                                           .value = v,
                                           .value_bytes = unit}},
                   NULL, 0);
}

ws_cu_result cuMemsetD8Async(ws_cu_ptr va, unsigned char v, size_t n, ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    return fill(s, __func__, va, n, v, 1, n, 1);
}
ws_cu_result cuMemsetD2D8Async(ws_cu_ptr va, size_t pitch, unsigned char v, size_t width,
                               size_t height, ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    return fill(s, __func__, va, pitch, v, 1, width, height);
}
ws_cu_result cuMemsetD2D16Async(ws_cu_ptr va, size_t pitch, unsigned short v, size_t width,
                                size_t height, ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    return fill(s, __func__, va, pitch, v, 2, width, height);
}
ws_cu_result cuMemsetD2D32Async(ws_cu_ptr va, size_t pitch, unsigned v, size_t width, size_t height,
                                ws_cu_stream s)
{
    ENTER(MOCK_CTX);
    return fill(s, __func__, va, pitch, v, 4, width, height);
}

/* ---- launches ---- */

/* Blocks of a cluster of the last launch. */
static _Atomic unsigned cluster_blocks;
EXPORT uint64_t ws_mock_cluster_blocks(const char *unused);
uint64_t ws_mock_cluster_blocks(const char *unused)
{
    (void)unused;
    return cluster_blocks;
}

ws_cu_result cuLaunchKernelEx(const struct ws_cu_launch_config *c, ws_cu_function h, void **params,
                              void **extra)
{
    ENTER(MOCK_CTX);
    STREAM(c->stream);
    struct mock_function *f;
    const struct ws_kernel_info *k = mock_function_of(h, __func__, &f);
    const uint8_t *buffer = NULL;
    size_t bytes = 0;
    if (!k)
        return WS_CU_INVALID_HANDLE;
    for (; extra && *extra != WS_CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == WS_CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        if (*extra == WS_CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = *(size_t *)extra[1];
    }
    if (params || bytes < k->param_bytes) {
        mock_violation("cuLaunchKernelEx: %zu bytes of parameters, %s takes %u", bytes, k->name,
                       k->param_bytes);
        return WS_CU_INVALID_VALUE;
    }
    uint64_t threads = (uint64_t)c->block[0] * c->block[1] * c->block[2];
    if (!threads || !c->grid[0] || !c->grid[1] || !c->grid[2] || threads > 1024 || k->unsupported ||
        c->shared_bytes + k->static_shared_bytes >
            WS_MAX(f->o.gpu->soft->spec.shared_bytes_per_block,
                   (uint32_t)f->dynamic_bytes + k->static_shared_bytes))
        return WS_CU_INVALID_VALUE;
    if (threads > mock_threads_by_regs(f, k))
        return WS_CU_LAUNCH_OUT_OF_RESOURCES;
    const char *loading = getenv("CUDA_MODULE_LOADING");
    if (!atomic_exchange(&f->launched, true) && mock_may_wait("first") &&
        !(loading && !strcmp(loading, "EAGER")))
        mock_wait_in("the first cuLaunchKernelEx of a function");
    struct item *i = item_new();
    i->params = malloc(WS_MAX(bytes, (size_t)1));
    if (!i->params)
        abort();
    if (bytes)
        memcpy(i->params, buffer, bytes);
    bool coop = false;
    const unsigned *cluster = (const unsigned[3]){0};
    for (unsigned n = 0; n < c->n_attrs; n++) {
        const struct ws_cu_launch_attribute *a = &c->attrs[n];
        coop |= a->id == WS_CU_LAUNCH_ATTRIBUTE_COOPERATIVE && a->value.cooperative;
        cluster = a->id == WS_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION ? a->value.cluster : cluster;
    }
    bool large = f->large_clusters && !getenv("WS_MOCK_SMALL_CLUSTERS");
    if (cluster[0] * cluster[1] * cluster[2] > WS_CLUSTER_PORTABLE_MAX && !large)
        return WS_CU_INVALID_CLUSTER_SIZE;
    cluster_blocks = cluster[0] * cluster[1] * cluster[2];
    i->is_op = true;
    i->module = f->module;
    f->module->n_running++;
    i->op = (struct ws_op){.kind = WS_OPK_LAUNCH,
                           .launch = {.instance = f->module->instance,
                                      .kernel = f->kernel,
                                      .grid = {c->grid[0], c->grid[1], c->grid[2]},
                                      .block = {c->block[0], c->block[1], c->block[2]},
                                      .shared_bytes = c->shared_bytes,
                                      .cluster = {cluster[0], cluster[1], cluster[2]},
                                      .sms = st->green ? st->green->sms : (struct ws_sm_set){0},
                                      .flags = coop ? WS_LAUNCH_COOPERATIVE : 0,
                                      .params = i->params,
                                      .param_bytes = (uint32_t)bytes}};
    return push(st, i);
}
