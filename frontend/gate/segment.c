// SPDX-License-Identifier: Apache-2.0
/* Segments: from a launch on an idle GPU until all that was launched since is done.
 *
 * One per GPU of the daemon's. IDLE: the next launch asks (one thread does, others wait for the
 * same answer). OPEN: launches go; behind each an event of ours is recorded in its stream, before
 * the first of each stream another. The segment is over when the last event of every stream is
 * done: looked at after each of the program's own waits, and by a thread of ours each POLL_MS for
 * programs that don't wait. Then the daemon is told how long the GPU was at it: from the first
 * event to the last that is done.
 *
 * The lease: told that it is over, launches wait until what was launched is done (at most as long
 * as a lease), end the segment, and ask anew.
 *
 * Never in the way: a stream that is captured is not touched; an error of any call of ours makes
 * the segment unmeasured, not the program fail; without a daemon, or when it has not answered for
 * WATTSHARE_GATE_PATIENCE_MS (a minute), launches go. The lock is not held while the driver may
 * wait for the GPU, since what it waits for may be another thread's launch. */
#include "frontend/gate/gate.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "protocol/protocol.h"

enum {
    MAX_DEVICES = WS_MAX_DEVICES,
    MAX_STREAMS = 256, /* of one segment; what is launched on more is not measured */
    POLL_MS = 1,
    DRAIN_POLL_NS = 200000,
    PATIENCE_MS = 60000,
    NOT_READY = 600,
};
#define PER_THREAD_STREAM ((void *)2)

struct ws_gate_stream {
    const void *key, *thread; /* thread: of a per-thread default stream */
    void *context;
    void *first, *last;  /* events */
    bool begun;          /* first was recorded, or is about to be */
    uint32_t n_recorded; /* launches with last behind them */
};
struct ws_gate_job {
    enum { IDLE, ASKING, OPEN } state;
    uint64_t serial, asked_ns, n_launches;
    bool granted, lease_over, unmeasured;
    uint32_t n_entering; /* launches under way: nothing ends */
    struct ws_gate_stream *streams[MAX_STREAMS];
    uint32_t n_streams;
    int device; /* the driver's */
};

_Atomic int ws_gate_state = WS_GATE_UNKNOWN;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER, opened = PTHREAD_COND_INITIALIZER;
static pthread_once_t connect_once = PTHREAD_ONCE_INIT;
static struct ws_gate_job segments[MAX_DEVICES];
static _Atomic uint32_t n_open; /* segments in OPEN */
/* Contexts that ended: what is known of their addresses is no longer true. */
static _Atomic uint32_t n_forgotten;
static bool watching;
static uint64_t serials = WS_GATE_SERIAL_FIRST;

/* ---- the daemon's word ---- */

static void told_of_segment(uint64_t id)
{
    for (int i = 0; i < MAX_DEVICES; i++) {
        struct ws_gate_job *g = &segments[i];
        if (g->state == IDLE || g->serial != id / 2)
            continue;
        if (id & 1)
            g->lease_over = true;
        else
            g->granted = true;
    }
}

void ws_gate_told(uint64_t id)
{
    pthread_mutex_lock(&lock);
    if (id == WS_GATE_POLICY_ON)
        ws_gate_state = WS_GATE_POLICY;
    else if (id <= WS_GATE_POLICY_OFF)
        ws_gate_state = WS_GATE_OPEN;
    else
        told_of_segment(id);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void ws_gate_forked(void)
{
    pthread_mutex_init(&lock, NULL); /* who held it is not here */
    ws_gate_state = WS_GATE_OPEN;    /* CUDA can't be used here; were it, nobody is asked */
    n_open = 0;
    memset(segments, 0, sizeof(segments));
}

/* ---- the end ---- */

/* How long the GPU was at it. Return: false: not known. */
static bool measure(const struct ws_gate_job *g, uint64_t *ret_ns)
{
    const struct ws_gate_own *cu = ws_gate_own();
    const struct ws_gate_stream *first = g->n_streams ? g->streams[0] : NULL;
    double longest = -1;
    for (uint32_t i = 0; i < g->n_streams; i++) {
        const struct ws_gate_stream *s = g->streams[i];
        float ms;
        if (!s->n_recorded)
            continue;
        void *from = first->begun && first->context == s->context ? first->first : s->first;
        if (cu->event_elapsed(&ms, from, s->last))
            return false;
        longest = ms > longest ? ms : longest;
    }
    *ret_ns = longest > 0 ? (uint64_t)(longest * 1e6) : 0;
    return longest >= 0;
}

/* Lock held. */
static void end(struct ws_gate_job *g, bool measured)
{
    uint64_t ns = 0;
    measured = measured && !g->unmeasured && g->n_launches && measure(g, &ns);
    for (uint32_t i = 0; i < g->n_streams; i++) {
        g->streams[i]->begun = false;
        g->streams[i]->n_recorded = 0;
    }
    ws_gate_end((uint32_t)(g - segments), g->serial, g->n_launches, ns, measured || !g->n_launches);
    g->state = IDLE;
    g->granted = g->lease_over = g->unmeasured = false;
    g->n_launches = 0;
    n_open--;
    pthread_cond_broadcast(&changed);
}

/* Ends the segment if all of it is done. Lock held. */
static void end_if_done(struct ws_gate_job *g)
{
    const struct ws_gate_own *cu = ws_gate_own();
    bool known = true;
    if (g->state != OPEN || g->n_entering)
        return;
    for (uint32_t i = 0; i < g->n_streams; i++) {
        int r = g->streams[i]->n_recorded ? cu->event_query(g->streams[i]->last) : 0;
        if (r == NOT_READY)
            return;
        known &= !r; /* the context is lost, or gone: so is what it did */
    }
    end(g, known);
}

void ws_gate_waited_slowly(void)
{
    if (!n_open)
        return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_DEVICES; i++)
        end_if_done(&segments[i]);
    pthread_mutex_unlock(&lock);
}

static void stream_free(struct ws_gate_stream *s, bool destroy)
{
    const struct ws_gate_own *cu = ws_gate_own();
    if (destroy && s->first)
        cu->event_destroy(s->first);
    if (destroy && s->last)
        cu->event_destroy(s->last);
    free(s);
}

static bool is_of(const struct ws_gate_job *g, const void *context)
{
    for (uint32_t i = 0; context && i < g->n_streams; i++)
        if (g->streams[i]->context == context)
            return true;
    return !context;
}

/* Lock held. @destroy: the events are there still. */
static void forget(struct ws_gate_job *g, bool destroy)
{
    if (g->n_entering)
        return; /* the program's own race */
    if (g->state == OPEN)
        end(g, false);
    while (g->state == IDLE && g->n_streams)
        stream_free(g->streams[--g->n_streams], destroy);
    n_forgotten++;
}

void ws_gate_ending(void *context, bool sure)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_DEVICES; i++) {
        struct ws_gate_job *g = &segments[i];
        end_if_done(g);
        if (g->state == IDLE || (sure && is_of(g, context)))
            forget(g, true); /* of an idle one it is but memory */
    }
    pthread_mutex_unlock(&lock);
}

void ws_gate_ended(int device)
{
    const struct ws_gate_own *cu = ws_gate_own();
    unsigned flags;
    int active = 0;
    if (!cu->primary_state || cu->primary_state(device, &flags, &active) || active)
        return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_DEVICES; i++)
        if (segments[i].device == device)
            forget(&segments[i], false);
    pthread_mutex_unlock(&lock);
}

/* ---- for programs that do not wait ---- */

static void *watch_main(void *arg)
{
    const struct ws_gate_own *cu = ws_gate_own();
    int relaxed =
        2; /* CU_STREAM_CAPTURE_MODE_RELAXED: captures of others don't forbid us to look */
    (void)arg;
    if (cu->capture_mode)
        cu->capture_mode(&relaxed);
    pthread_mutex_lock(&lock);
    for (;;) {
        void *context = NULL;
        while (!n_open)
            pthread_cond_wait(&opened, &lock);
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000}, NULL);
        pthread_mutex_lock(&lock);
        for (int i = 0; i < MAX_DEVICES; i++) {
            struct ws_gate_job *g = &segments[i];
            if (g->state != OPEN || !g->n_streams)
                continue;
            if (context != g->streams[0]->context)
                cu->ctx_set(context = g->streams[0]->context);
            end_if_done(g);
        }
    }
    return NULL;
}

/* Lock held. */
static void watch(void)
{
    sigset_t all, old;
    pthread_t t;
    if (!watching) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        watching = !pthread_create(&t, NULL, watch_main, NULL);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        if (watching)
            pthread_detach(t);
    }
    pthread_cond_signal(&opened);
}

/* ---- the beginning ---- */

/* The daemon's GPU that the current context is on; NULL: it is on none of them. */
static struct ws_gate_job *segment_of(void *context)
{
    static _Thread_local void *known_context;
    static _Thread_local struct ws_gate_job *known;
    static _Thread_local uint32_t known_since;
    static bool said;
    const struct ws_gate_own *cu = ws_gate_own();
    uint8_t uuid[16];
    int device;
    uint32_t since = n_forgotten;
    if (known && context == known_context && since == known_since)
        return known;
    if (cu->ctx_device(&device) || cu->uuid(uuid, device))
        return NULL;
    int i = ws_gate_device(uuid);
    if (i < 0 || i >= MAX_DEVICES) {
        ws_gate_say(&said,
                    "the daemon drives no GPU with the uuid of the driver's device %d: launches on "
                    "it just go",
                    device);
        return NULL;
    }
    known_context = context;
    known_since = since;
    segments[i].device = device;
    return known = &segments[i];
}

static uint64_t patience_ns(void)
{
    const char *e = getenv("WATTSHARE_GATE_PATIENCE_MS");
    long ms = e ? strtol(e, NULL, 10) : 0;
    return (uint64_t)(ms > 0 && ms <= 86400000 ? ms : PATIENCE_MS) * WS_NS_PER_MS;
}

/* Waits for `changed`, at most 100 ms. Lock held. */
static void wait_changed(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 100000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&changed, &lock, &t);
}

/* Asks, and waits for the answer. Lock held. */
static void ask(struct ws_gate_job *g)
{
    static bool said;
    g->state = ASKING;
    g->serial = ++serials;
    g->granted = g->lease_over = false;
    g->asked_ns = ws_clock_ns();
    uint64_t patience = patience_ns();
    if (!ws_gate_begin((uint32_t)(g - segments), g->serial))
        ws_gate_state = WS_GATE_OPEN;
    while (!g->granted && ws_gate_state == WS_GATE_POLICY) {
        if (ws_clock_ns() - g->asked_ns > patience) {
            ws_gate_say(
                &said,
                "the daemon has not allowed a launch for %llu ms: launching anyway (reported once)",
                (unsigned long long)(patience / WS_NS_PER_MS));
            break;
        }
        wait_changed();
    }
    g->state = OPEN;
    n_open++;
    watch();
    pthread_cond_broadcast(&changed);
}

/* The lease is over: ends the segment when it is done, or resumes it if that takes too long.
 * Lock held. */
static void drain(struct ws_gate_job *g)
{
    uint64_t serial = g->serial, until = ws_clock_ns() + ws_gate_lease_ms() * WS_NS_PER_MS;
    while (g->state == OPEN && g->serial == serial && g->lease_over) {
        end_if_done(g);
        if (g->state != OPEN)
            return;
        if (ws_clock_ns() > until) { /* perhaps it waits for the very launch that we hold up */
            g->lease_over = false;
            return;
        }
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = DRAIN_POLL_NS}, NULL);
        pthread_mutex_lock(&lock);
    }
}

/* The stream's place in the segment; NULL: not measured. Lock held. */
static struct ws_gate_stream *stream_of(struct ws_gate_job *g, void *context, const void *stream,
                                        const void *thread)
{
    const struct ws_gate_own *cu = ws_gate_own();
    struct ws_gate_stream *idle = NULL;
    for (uint32_t i = 0; i < g->n_streams; i++) {
        struct ws_gate_stream *s = g->streams[i];
        if (s->context == context && s->key == stream && s->thread == thread)
            return s;
        if (s->context == context && !s->begun)
            idle = s;
    }
    if (idle) { /* of a stream that is not used in this segment */
        idle->key = stream;
        idle->thread = thread;
        return idle;
    }
    struct ws_gate_stream *s = g->n_streams < MAX_STREAMS ? ws_alloc(sizeof(*s)) : NULL;
    if (!s)
        return NULL;
    *s = (struct ws_gate_stream){.key = stream, .thread = thread, .context = context};
    if (cu->event_create(&s->first, 0) || cu->event_create(&s->last, 0)) {
        stream_free(s, true);
        return NULL;
    }
    return g->streams[g->n_streams++] = s;
}

static bool captured(void *stream)
{
    const struct ws_gate_own *cu = ws_gate_own();
    int status = 0;
    return cu->capturing && (cu->capturing(stream, &status) || status);
}

void ws_gate_enter_slowly(struct ws_gate_pass *p, void *stream, bool per_thread)
{
    static _Thread_local char own_thread;
    const struct ws_gate_own *cu = ws_gate_own();
    void *context = NULL;
    pthread_once(&connect_once, ws_gate_connect);
    if (per_thread && !stream)
        stream = PER_THREAD_STREAM;
    if (ws_gate_state != WS_GATE_POLICY || !cu->complete || cu->ctx_current(&context) || !context ||
        captured(stream))
        return;
    struct ws_gate_job *g = segment_of(context);
    if (!g)
        return;
    pthread_mutex_lock(&lock);
    while (ws_gate_state == WS_GATE_POLICY && (g->state != OPEN || g->lease_over)) {
        if (g->state == IDLE)
            ask(g);
        else if (g->state == OPEN)
            drain(g);
        else
            wait_changed();
    }
    bool first = false;
    if (g->state == OPEN) {
        p->segment = g;
        p->stream = stream_of(g, context, stream, stream == PER_THREAD_STREAM ? &own_thread : NULL);
        g->n_entering++;
        g->unmeasured |= !p->stream;
        first = p->stream && !p->stream->begun;
        if (first)
            p->stream->begun = true;
    }
    pthread_mutex_unlock(&lock);
    if (first && cu->event_record(p->stream->first, stream))
        g->unmeasured = true;
}

void ws_gate_leave_slowly(struct ws_gate_pass *p, bool launched)
{
    const struct ws_gate_own *cu = ws_gate_own();
    struct ws_gate_job *g = p->segment;
    struct ws_gate_stream *s = launched ? p->stream : NULL;
    bool recorded = s && !cu->event_record(s->last, (void *)(uintptr_t)s->key);
    pthread_mutex_lock(&lock);
    g->n_launches += launched;
    g->unmeasured |= launched && !recorded;
    if (recorded)
        s->n_recorded++;
    g->n_entering--;
    pthread_mutex_unlock(&lock);
}
