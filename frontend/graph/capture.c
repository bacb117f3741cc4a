// SPDX-License-Identifier: Apache-2.0
/* Stream capture. A capture has a graph and the streams that take part in it. For each stream it
 * has the nodes that the stream's next work will depend on. An event that is recorded in such a
 * stream remembers those nodes. Another stream that waits for the event gets them too, and so takes
 * part in the capture. Nothing of this reaches the session. A stream other than the first may be
 * destroyed before the capture ends; what it did must be joined all the same.
 *
 * What a program may not do meanwhile stands in the CUDA C++ Programming Guide, "Stream Capture",
 * and the error codes in the CUDA Runtime API, cudaError. A capture is invalidated if what is
 * captured is synchronised or queried, if the legacy stream is used beside a capture on a blocking
 * stream, if captures are mixed, if a captured stream waits for an event from outside, and, unless
 * its mode is relaxed, by calls that may do such things themselves. An invalidated capture answers
 * INVALIDATED to everything until it is ended.
 *
 * There is one lock for all captures. ws_work_watch counts their streams, so that nobody takes the
 * lock while nothing is captured. */
#include "frontend/graph/capture.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/table.h"
#include "frontend/context/context.h"

_Atomic unsigned ws_work_watch, ws_work_marked;

struct deps {
    struct ws_node **nodes;
    struct cuda_edge_data *data;
    size_t n, cap_nodes, cap_data;
};
struct capture {
    uint64_t id, origin; /* origin: stream */
    struct ws_graph *graph;
    bool given; /* the graph is the program's */
    bool invalid;
    int mode;
    const void *thread;
    struct deps orphans; /* the last nodes of streams that were destroyed meanwhile */
    struct capture *next;
};
struct cap_stream {
    uint64_t stream;
    struct capture *capture;
    struct deps deps;
    int device;
    bool non_blocking;
    UT_hash_handle hh;
};
struct cap_event {
    uint64_t event;
    struct capture *capture; /* NULL: has ended */
    struct deps deps;
    UT_hash_handle hh;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct capture *captures;
static struct cap_stream *streams;
static struct cap_event *events;
static uint64_t next_id = 1;

/* ---- sets of nodes ---- */

static int deps_add(struct deps *d, struct ws_node *n, const struct cuda_edge_data *data)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->nodes[i] == n)
            return CUDA_OK;
    if (ws_grow((void **)&d->nodes, &d->cap_nodes, d->n + 1, sizeof(*d->nodes)) ||
        ws_grow((void **)&d->data, &d->cap_data, d->n + 1, sizeof(*d->data)))
        return CUDA_OUT_OF_MEMORY;
    d->nodes[d->n] = n;
    d->data[d->n++] = data ? *data : (struct cuda_edge_data){0};
    return CUDA_OK;
}

static int deps_add_all(struct deps *to, const struct deps *from)
{
    int code = CUDA_OK;
    for (size_t i = 0; !code && i < from->n; i++)
        code = deps_add(to, from->nodes[i], &from->data[i]);
    return code;
}

static void deps_free(struct deps *d)
{
    free(d->nodes);
    free(d->data);
    *d = (struct deps){0};
}

/* ---- streams and events. Lock held ---- */

static struct cap_stream *find_stream(uint64_t stream)
{
    struct cap_stream *s;
    HASH_FIND(hh, streams, &stream, sizeof(stream), s);
    return s;
}

static struct cap_event *find_event(uint64_t event)
{
    struct cap_event *e;
    HASH_FIND(hh, events, &event, sizeof(event), e);
    return e;
}

static int stream_join(uint64_t stream, struct capture *c, struct cap_stream **ret)
{
    struct cap_stream *s = ws_alloc(sizeof(*s));
    if (!s)
        return CUDA_OUT_OF_MEMORY;
    ws_err e = ws_session_stream_info(stream, &s->device, &s->non_blocking, NULL);
    if (e) {
        free(s);
        return ws_drv_error(e);
    }
    s->stream = stream;
    s->capture = c;
    HASH_ADD(hh, streams, stream, sizeof(s->stream), s);
    ws_work_watch++;
    *ret = s;
    return CUDA_OK;
}

static void stream_leave(struct cap_stream *s)
{
    HASH_DEL(streams, s);
    ws_work_watch--;
    deps_free(&s->deps);
    free(s);
}

static void event_unmark(uint64_t event)
{
    struct cap_event *e = find_event(event);
    if (!e)
        return;
    HASH_DEL(events, e);
    ws_work_marked--;
    deps_free(&e->deps);
    free(e);
}

static int event_mark(uint64_t event, const struct cap_stream *s)
{
    event_unmark(event);
    struct cap_event *e = ws_alloc(sizeof(*e));
    if (!e)
        return CUDA_OUT_OF_MEMORY;
    e->event = event;
    e->capture = s->capture;
    HASH_ADD(hh, events, event, sizeof(e->event), e);
    ws_work_marked++;
    return deps_add_all(&e->deps, &s->deps);
}

/* Takes the capture apart; its graph stays. */
static void capture_close(struct capture *c)
{
    struct cap_stream *s, *next;
    struct cap_event *e, *next_event;
    HASH_ITER (hh, streams, s, next)
        if (s->capture == c)
            stream_leave(s);
    HASH_ITER (hh, events, e, next_event)
        if (e->capture == c) {
            e->capture = NULL;
            deps_free(&e->deps);
        }
    for (struct capture **p = &captures; *p; p = &(*p)->next)
        if (*p == c) {
            *p = c->next;
            break;
        }
    deps_free(&c->orphans);
    free(c);
}

/* ---- what is not allowed. Lock held ---- */

static int invalidate(struct capture *c, int code)
{
    c->invalid = true;
    return code;
}

static bool is_legacy(uint64_t stream)
{
    return stream < WS_STREAM_FIRST;
}

/* The legacy stream waits for blocking streams, and they for it. */
static int check_legacy(uint64_t stream, bool spoils)
{
    struct cap_stream *s, *next;
    int device, code = CUDA_OK;
    if (!is_legacy(stream) || ws_session_stream_info(stream, &device, NULL, NULL))
        return CUDA_OK;
    HASH_ITER (hh, streams, s, next)
        if (s->device == device && !s->non_blocking) {
            code = CUDA_CAPTURE_IMPLICIT;
            if (spoils)
                invalidate(s->capture, code);
        }
    return code;
}

static int check_unsafe(void)
{
    int code = CUDA_OK;
    if (ws_thread.capture_mode == WS_CAPTURE_RELAXED)
        return CUDA_OK;
    for (struct capture *c = captures; c; c = c->next) {
        bool mine = c->thread == &ws_thread && c->mode != WS_CAPTURE_RELAXED;
        bool others = c->mode == WS_CAPTURE_GLOBAL && ws_thread.capture_mode == WS_CAPTURE_GLOBAL;
        if (mine || others)
            code = invalidate(c, CUDA_CAPTURE_UNSUPPORTED);
    }
    return code;
}

int ws_work_unsafe_slow(void)
{
    pthread_mutex_lock(&lock);
    int code = check_unsafe();
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_work_wait_stream_slow(uint64_t stream)
{
    pthread_mutex_lock(&lock);
    struct cap_stream *s = find_stream(stream);
    int code = s ? invalidate(s->capture, CUDA_CAPTURE_UNSUPPORTED) : check_legacy(stream, true);
    if (!code)
        code = check_unsafe();
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_work_wait_event_slow(uint64_t event)
{
    pthread_mutex_lock(&lock);
    struct cap_event *e = find_event(event);
    int code = e ? CUDA_CAPTURED_EVENT : CUDA_OK;
    if (e && e->capture)
        invalidate(e->capture, code);
    if (!code)
        code = check_unsafe();
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_work_wait_device_slow(int device)
{
    struct cap_stream *s, *next;
    pthread_mutex_lock(&lock);
    int code = check_unsafe();
    HASH_ITER (hh, streams, s, next)
        if (s->device == device)
            code = invalidate(s->capture, CUDA_CAPTURE_UNSUPPORTED);
    pthread_mutex_unlock(&lock);
    return code;
}

bool ws_work_capturing_slow(uint64_t stream)
{
    pthread_mutex_lock(&lock);
    bool found = find_stream(stream) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

void ws_work_forget_stream_slow(uint64_t stream)
{
    struct ws_graph *unused = NULL;
    pthread_mutex_lock(&lock);
    struct cap_stream *s = find_stream(stream);
    if (s && s->capture->origin == stream) {
        unused = s->capture->given ? NULL : s->capture->graph;
        capture_close(s->capture);
    } else if (s) {
        if (deps_add_all(&s->capture->orphans, &s->deps))
            invalidate(s->capture, CUDA_OUT_OF_MEMORY);
        stream_leave(s);
    }
    pthread_mutex_unlock(&lock);
    ws_graph_free(unused);
}

void ws_work_forget_device(int device)
{
    struct cap_stream *s, *next;
    bool found;
    do {
        struct ws_graph *unused = NULL;
        found = false;
        pthread_mutex_lock(&lock);
        HASH_ITER (hh, streams, s, next)
            if (!found && s->device == device) {
                found = true;
                unused = s->capture->given ? NULL : s->capture->graph;
                capture_close(s->capture);
                break;
            }
        pthread_mutex_unlock(&lock);
        ws_graph_free(unused);
    } while (found);
}

void ws_work_forget_event_slow(uint64_t event)
{
    pthread_mutex_lock(&lock);
    event_unmark(event);
    pthread_mutex_unlock(&lock);
}

/* ---- work ---- */

static enum ws_node_type type_of(enum ws_work_kind kind)
{
    switch (kind) {
    case WS_WORK_LAUNCH:
        return WS_NODE_KERNEL;
    case WS_WORK_COPY:
        return WS_NODE_MEMCPY;
    case WS_WORK_FILL:
        return WS_NODE_MEMSET;
    case WS_WORK_RECORD:
        return WS_NODE_EVENT_RECORD;
    case WS_WORK_WAIT:
        return WS_NODE_WAIT_EVENT;
    case WS_WORK_HOST:
        return WS_NODE_HOST;
    case WS_WORK_VALUES:
        return WS_NODE_BATCH_MEM_OP;
    case WS_WORK_ALLOC:
        return WS_NODE_MEM_ALLOC;
    case WS_WORK_FREE:
        return WS_NODE_MEM_FREE;
    case WS_WORK_CHILD:
        return WS_NODE_GRAPH;
    default:
        return WS_NODE_EMPTY;
    }
}

static ws_err set_content(struct ws_node *n, const struct ws_stream_work *w)
{
    int code = CUDA_OK;
    if (w->kind == WS_WORK_CHILD) {
        n->work.kind = w->kind;
        return WS_ERR_CUDA(ws_node_set_child(n, (struct ws_graph *)w->graph, false));
    }
    ws_err r = ws_node_set_work(n, w);
    if (!r && w->kind == WS_WORK_ALLOC)
        code = ws_node_set_alloc(n, w->memory.device, w->memory.bytes);
    if (!r && !code && w->kind == WS_WORK_ALLOC)
        *w->memory.ret_address = n->work.memory.address;
    if (!r && w->kind == WS_WORK_FREE) {
        struct ws_graph_block *b = ws_block_find(w->memory.address);
        if (b)
            n->block = ws_block_ref(b);
        else
            code = CUDA_INVALID_VALUE; /* what a graph frees a graph has allocated */
    }
    n->graph->has_memory |= n->block != NULL;
    return r ? r : WS_ERR_CUDA(code);
}

static ws_err add_node(struct cap_stream *s, const struct ws_stream_work *w)
{
    struct ws_node *n;
    int code = ws_graph_add(s->capture->graph, type_of(w->kind), s->deps.nodes, s->deps.data,
                            s->deps.n, &n);
    ws_err r = code ? WS_ERR_CUDA(code) : set_content(n, w);
    if (r) {
        if (!code)
            ws_node_free(n);
        return r;
    }
    s->deps.n = 0;
    return WS_ERR_CUDA(deps_add(&s->deps, n, NULL));
}

/* A wait for an event of a capture draws the stream in. */
static int wait_captured(uint64_t stream, struct cap_stream *s, const struct cap_event *e)
{
    if (!e)
        return invalidate(s->capture, CUDA_CAPTURE_ISOLATION);
    if (!e->capture)
        return s ? invalidate(s->capture, CUDA_CAPTURE_ISOLATION) : CUDA_CAPTURED_EVENT;
    if (s && s->capture != e->capture) {
        invalidate(e->capture, 0);
        return invalidate(s->capture, CUDA_CAPTURE_MERGE);
    }
    if (e->capture->invalid)
        return CUDA_CAPTURE_INVALIDATED;
    if (is_legacy(stream))
        return invalidate(e->capture, CUDA_CAPTURE_IMPLICIT);
    int code = s ? CUDA_OK : stream_join(stream, e->capture, &s);
    return code ? code : deps_add_all(&s->deps, &e->deps);
}

/* On a stream that is not being captured. */
static ws_err outside(uint64_t stream, const struct ws_stream_work *w, bool async, bool *ret_taken)
{
    int code = async ? CUDA_OK : check_unsafe();
    struct cap_event *e;
    if (!code)
        code = check_legacy(stream, true);
    if (!code && (w->kind == WS_WORK_RECORD || w->kind == WS_WORK_WAIT) && w->event.external)
        code = CUDA_INVALID_VALUE; /* has no meaning outside of captures */
    if (!code && w->kind == WS_WORK_RECORD)
        event_unmark(w->event.event);
    if (!code && w->kind == WS_WORK_WAIT && (e = find_event(w->event.event))) {
        *ret_taken = true;
        code = wait_captured(stream, NULL, e);
    }
    return WS_ERR_CUDA(code);
}

static ws_err inside(struct cap_stream *s, const struct ws_stream_work *w, bool async)
{
    if (s->capture->invalid)
        return WS_ERR_CUDA(CUDA_CAPTURE_INVALIDATED);
    if (!async || w->kind == WS_WORK_CALLBACK)
        return WS_ERR_CUDA(invalidate(s->capture, CUDA_CAPTURE_UNSUPPORTED));
    if (w->kind == WS_WORK_RECORD && !w->event.external)
        return ws_session_event_device(w->event.event) < 0
                   ? WS__ERROR__INVALID_HANDLE
                   : WS_ERR_CUDA(event_mark(w->event.event, s));
    if (w->kind == WS_WORK_WAIT && !w->event.external)
        return ws_session_event_device(w->event.event) < 0
                   ? WS__ERROR__INVALID_HANDLE
                   : WS_ERR_CUDA(wait_captured(s->stream, s, find_event(w->event.event)));
    return add_node(s, w);
}

ws_err ws_work_capture(uint64_t stream, const struct ws_stream_work *w, bool async, bool *ret_taken)
{
    pthread_mutex_lock(&lock);
    struct cap_stream *s = find_stream(stream);
    *ret_taken = s != NULL;
    ws_err r = s ? inside(s, w, async) : outside(stream, w, async, ret_taken);
    pthread_mutex_unlock(&lock);
    return r;
}

/* ---- the life of a capture ---- */

static int begin(uint64_t stream, struct capture *c, struct ws_node *const *deps,
                 const struct cuda_edge_data *data, size_t n_deps)
{
    struct cap_stream *s;
    int code = stream_join(stream, c, &s);
    for (size_t i = 0; !code && i < n_deps; i++) {
        code = ws_node_valid(deps[i]) && deps[i]->graph == c->graph ? CUDA_OK : CUDA_INVALID_VALUE;
        if (!code)
            code = deps_add(&s->deps, deps[i], data ? &data[i] : NULL);
    }
    return code;
}

int ws_capture_begin(uint64_t stream, int mode, struct ws_graph *graph, struct ws_node *const *deps,
                     const struct cuda_edge_data *data, size_t n_deps)
{
    ws_err e = ws_session_stream_info(stream, NULL, NULL, NULL);
    if (e)
        return ws_drv_error(e);
    if (mode < WS_CAPTURE_GLOBAL || mode > WS_CAPTURE_RELAXED || (n_deps && !deps) ||
        (graph && !ws_graph_valid(graph)))
        return CUDA_INVALID_VALUE;
    if (is_legacy(stream))
        return CUDA_CAPTURE_UNSUPPORTED;
    struct capture *c = ws_alloc(sizeof(*c));
    if (!c)
        return CUDA_OUT_OF_MEMORY;
    c->origin = stream;
    c->mode = mode;
    c->thread = &ws_thread;
    c->given = graph != NULL;
    c->graph = graph ? graph : ws_graph_new();
    pthread_mutex_lock(&lock);
    c->id = next_id++;
    c->next = captures;
    captures = c;
    int code = !c->graph             ? CUDA_OUT_OF_MEMORY
               : find_stream(stream) ? CUDA_ILLEGAL_STATE
                                     : begin(stream, c, deps, data, n_deps);
    graph = code && !c->given ? c->graph : NULL;
    if (code)
        capture_close(c);
    pthread_mutex_unlock(&lock);
    ws_graph_free(graph);
    return code;
}

static bool before(const struct capture *c, const struct deps *d, const struct cap_stream *origin)
{
    return ws_graph_before(c->graph, d->nodes, d->n, origin->deps.nodes, origin->deps.n);
}

/* True if all that other streams did comes before the origin's next work. */
static bool joined(const struct capture *c, const struct cap_stream *origin)
{
    struct cap_stream *s, *next;
    HASH_ITER (hh, streams, s, next)
        if (s->capture == c && s != origin && !before(c, &s->deps, origin))
            return false;
    return before(c, &c->orphans, origin);
}

int ws_capture_end(uint64_t stream, struct ws_graph **ret)
{
    struct ws_graph *unused = NULL;
    int code = CUDA_OK;
    if (ret)
        *ret = NULL;
    ws_err e = ws_session_stream_info(stream, NULL, NULL, NULL);
    if (e)
        return ws_drv_error(e);
    pthread_mutex_lock(&lock);
    struct cap_stream *s = find_stream(stream);
    struct capture *c = s ? s->capture : NULL;
    if (!ret && !(c && c->given)) {
        code = CUDA_INVALID_VALUE; /* nobody would have the graph */
    } else if (!c) {
        code = CUDA_ILLEGAL_STATE;
    } else if (c->mode != WS_CAPTURE_RELAXED && c->thread != &ws_thread) {
        code = CUDA_CAPTURE_WRONG_THREAD;
    } else if (c->origin != stream) {
        code = invalidate(c, CUDA_CAPTURE_UNMATCHED);
    } else {
        code = c->invalid      ? CUDA_CAPTURE_INVALIDATED
               : !joined(c, s) ? CUDA_CAPTURE_UNJOINED
                               : CUDA_OK;
        if (ret)
            *ret = code ? NULL : c->graph;
        unused = code && !c->given ? c->graph : NULL;
        capture_close(c);
    }
    pthread_mutex_unlock(&lock);
    ws_graph_free(unused);
    return code;
}

int ws_capture_info(uint64_t stream, struct ws_capture_info *ret)
{
    *ret = (struct ws_capture_info){.status = WS_CAPTURE_NONE};
    ws_err e = ws_session_stream_info(stream, NULL, NULL, NULL);
    if (e || !ws_work_watched())
        return ws_drv_error(e);
    pthread_mutex_lock(&lock);
    struct cap_stream *s = find_stream(stream);
    int code = s ? CUDA_OK : check_legacy(stream, false);
    if (s)
        *ret = (struct ws_capture_info){.status = s->capture->invalid ? WS_CAPTURE_INVALIDATED
                                                                      : WS_CAPTURE_ACTIVE,
                                        .id = s->capture->id,
                                        .graph = s->capture->graph,
                                        .deps = s->deps.nodes,
                                        .data = s->deps.data,
                                        .n_deps = s->deps.n};
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_capture_update(uint64_t stream, struct ws_node *const *deps,
                      const struct cuda_edge_data *data, size_t n_deps, unsigned flags)
{
    if (flags > WS_CAPTURE_SET_DEPS || (n_deps && !deps))
        return CUDA_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    struct cap_stream *s = find_stream(stream);
    int code = !s ? CUDA_ILLEGAL_STATE : s->capture->invalid ? CUDA_CAPTURE_INVALIDATED : CUDA_OK;
    for (size_t i = 0; !code && i < n_deps; i++)
        if (!ws_node_valid(deps[i]) || deps[i]->graph != s->capture->graph)
            code = CUDA_INVALID_VALUE;
    if (!code && flags == WS_CAPTURE_SET_DEPS)
        s->deps.n = 0;
    for (size_t i = 0; !code && i < n_deps; i++)
        code = deps_add(&s->deps, deps[i], data ? &data[i] : NULL);
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_capture_exchange_mode(int *mode)
{
    if (!mode || *mode < WS_CAPTURE_GLOBAL || *mode > WS_CAPTURE_RELAXED)
        return CUDA_INVALID_VALUE;
    int old = ws_thread.capture_mode;
    ws_thread.capture_mode = *mode;
    *mode = old;
    return CUDA_OK;
}
