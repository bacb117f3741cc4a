// SPDX-License-Identifier: Apache-2.0
/* Host functions. Each has a place in its stream, at which the stream stops until the function is
 * done. Two threads serve these places; they start with the first one. The dispatcher waits for the
 * places that streams reach, and runs internal tasks itself. It hands the program's functions to
 * the worker, in the order in which the streams reached them. So a function of the program that
 * waits for something never delays what graphs need.
 *
 * A function is not called once the context is lost; a callback is called with the error (CUDA
 * Runtime API, cudaLaunchHostFunc and cudaStreamAddCallback). In both cases the stream goes on. */
#include "frontend/stream/host.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "base/alloc.h"
#include "base/table.h"
#include "frontend/context/context.h"

struct host_task {
    uint64_t gate;
    struct ws_stream_work work; /* HOST, CALLBACK; EMPTY: internal */
    void (*run)(void *arg, uint64_t gate);
    void *arg;
    struct host_task *next; /* of the worker's queue */
    UT_hash_handle hh;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static struct host_task *tasks;        /* in streams */
static struct host_task *first, *last; /* for the worker */
static uint64_t next_gate = 1;
static bool started;

static void run_user(const struct host_task *t)
{
    ws_err e = t->gate ? ws_session_lost() : WS__ERROR__DISCONNECTED;
    const struct ws_stream_work *w = &t->work;
    ws_session_output(); /* what the kernels before it printed */
    ws_thread.in_callback = true;
    if (w->kind == WS_WORK_CALLBACK)
        w->host.callback(w->host.stream, w->host.runtime ? ws_rt_error(e) : ws_drv_error(e),
                         w->host.data);
    else if (!e)
        w->host.fn(w->host.data);
    ws_thread.in_callback = false;
}

static void *worker(void *unused)
{
    prctl(PR_SET_NAME, "ws-hostfunc");
    ws_session_serve_gates();
    for (;;) {
        pthread_mutex_lock(&lock);
        while (!first)
            pthread_cond_wait(&cond, &lock);
        struct host_task *t = first;
        first = t->next;
        pthread_mutex_unlock(&lock);
        run_user(t);
        ws_host_open(t->gate);
        free(t);
    }
    return NULL;
}

static void to_worker(struct host_task *t)
{
    t->next = NULL;
    if (first)
        last->next = t;
    else
        first = t;
    last = t;
    pthread_cond_signal(&cond);
}

/* The daemon is gone: callbacks and internal tasks are called with the error, the program's
 * functions are not called. */
static void end_all(void)
{
    struct host_task *t, *next, *internal = NULL;
    if (ws_session_lost() == WS__ERROR__DISCONNECTED)
        return; /* exit has begun */
    pthread_mutex_lock(&lock);
    HASH_ITER (hh, tasks, t, next) {
        HASH_DEL(tasks, t);
        t->gate = 0;
        if (t->work.kind == WS_WORK_CALLBACK) {
            to_worker(t);
        } else if (t->work.kind == WS_WORK_EMPTY) {
            t->next = internal;
            internal = t;
        } else {
            free(t);
        }
    }
    pthread_mutex_unlock(&lock);
    for (t = internal; t; t = next) {
        next = t->next;
        t->run(t->arg, 0);
        free(t);
    }
}

static void *dispatcher(void *unused)
{
    uint64_t gate;
    prctl(PR_SET_NAME, "ws-hostdisp");
    ws_session_serve_gates();
    while (!ws_session_gate_next(&gate)) {
        struct host_task *t;
        pthread_mutex_lock(&lock);
        HASH_FIND(hh, tasks, &gate, sizeof(gate), t);
        if (t)
            HASH_DEL(tasks, t);
        bool internal = t && t->work.kind == WS_WORK_EMPTY;
        if (t && !internal)
            to_worker(t);
        pthread_mutex_unlock(&lock);
        if (internal) {
            t->run(t->arg, gate);
            free(t);
        }
    }
    end_all();
    return NULL;
}

/* Lock held. */
static bool start(void)
{
    pthread_t a, b;
    sigset_t all, old;
    if (started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* the program's signals are not for our threads */
    started = !pthread_create(&a, NULL, dispatcher, NULL);
    if (started) {
        pthread_detach(a);
        if (!pthread_create(&b, NULL, worker, NULL))
            pthread_detach(b);
        else
            started = false;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return started;
}

static ws_err put(uint64_t stream, struct host_task *t)
{
    pthread_mutex_lock(&lock);
    if (!start()) {
        pthread_mutex_unlock(&lock);
        free(t);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    uint64_t gate = t->gate = next_gate++;
    HASH_ADD(hh, tasks, gate, sizeof(t->gate), t);
    pthread_mutex_unlock(&lock);
    ws_err r = ws_session_gate_put(stream, gate);
    if (r) {
        pthread_mutex_lock(&lock);
        HASH_FIND(hh, tasks, &gate, sizeof(gate), t);
        if (t)
            HASH_DEL(tasks, t);
        pthread_mutex_unlock(&lock);
        free(t);
    }
    return r;
}

ws_err ws_host_put(uint64_t stream, const struct ws_stream_work *w)
{
    struct host_task *t = ws_alloc(sizeof(*t));
    if (!t)
        return WS__ERROR__OUT_OF_MEMORY;
    t->work = *w;
    return put(stream, t);
}

ws_err ws_host_put_internal(uint64_t stream, void (*run)(void *arg, uint64_t gate), void *arg)
{
    struct host_task *t = ws_alloc(sizeof(*t));
    if (!t)
        return WS__ERROR__OUT_OF_MEMORY;
    t->run = run;
    t->arg = arg;
    return put(stream, t);
}

void ws_host_open(uint64_t gate)
{
    if (gate)
        (void)ws_session_gate_open(gate); /* fails only when the stream is gone */
}

/* Used by the dispatcher alone. */
uint64_t ws_host_stream(int device)
{
    static uint64_t streams[WS_MAX_DEVICES];
    if (ws_session_stream_info(streams[device], NULL, NULL, NULL) &&
        ws_session_stream_create(device, true, 0, &streams[device]))
        return 0;
    return streams[device];
}
