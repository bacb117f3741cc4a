// SPDX-License-Identifier: Apache-2.0
/* Staging: bulk copies between pageable memory and the devices of this machine, through a segment
 * of chunks that is shared with the daemon (states in protocol.h). On the way to a device, the
 * daemon empties chunk i while this process fills chunk i + 1; on the way back, the daemon fills
 * the next chunks while this process empties the oldest. A thread uses few chunks, and the same
 * ones again and again, so that they stay in the cache that both processes share.
 *
 * A chunk belongs to the thread that moved it from FREE to BUSY. A thread that holds chunks never
 * waits for a free one: it first empties its own oldest one. So threads cannot wait for each other
 * in a circle. Every wait ends if the daemon dies. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/macros.h"
#include "base/packet.h"
#include "frontend/session/box.h"
#include "frontend/session/private.h"

enum { CHUNK_BYTES = 2048 * 1024, N_CHUNKS = 8, AHEAD = 6, RESCAN_NS = 2 * 1000 * 1000 };
#define ALIVE_NS (100 * WS_NS_PER_MS)

static struct staging {
    pthread_mutex_t lock; /* for making it */
    _Atomic bool made;
    struct ws_channel_segment segment;
    struct ws_staging_control *control;
    uint32_t n_chunks, chunk_bytes;
    _Atomic uint32_t next;
} staging = {.lock = PTHREAD_MUTEX_INITIALIZER};

static ws_err make(struct ws_channel *c)
{
    struct staging *s = &staging;
    uint64_t limit = ws_session_limits()->max_segment_bytes, chunk = CHUNK_BYTES;
    ws_err r = WS__ERROR__OK;
    if (s->made)
        return WS__ERROR__OK;
    pthread_mutex_lock(&s->lock);
    if (!s->made) {
        while (limit && chunk * N_CHUNKS > limit && chunk > 4096)
            chunk /= 2;
        r = ws_channel_segment_new(c, WS_HANDOFF_STAGING, chunk * N_CHUNKS, chunk, &s->segment);
        if (!r) {
            s->control = s->segment.map;
            s->chunk_bytes = chunk;
            s->n_chunks = N_CHUNKS;
            if (s->segment.data < (uint8_t *)(s->control + 1)) {
                ws_channel_segment_free(c, &s->segment);
                r = WS__ERROR__INTERNAL;
            } else {
                s->made = true;
            }
        }
    }
    pthread_mutex_unlock(&s->lock);
    return r;
}

static void futex_wait(struct staging *s, _Atomic uint32_t *word, uint32_t value,
                       uint64_t timeout_ns)
{
    atomic_fetch_add(&s->control->n_waiting, 1);
    ws_futex_wait(word, value, timeout_ns);
    atomic_fetch_sub(&s->control->n_waiting, 1);
}

static void release(struct staging *s, uint32_t i)
{
    atomic_store(&s->control->state[i], WS_CHUNK_FREE);
    if (atomic_load(&s->control->n_waiting))
        ws_futex_wake_all(&s->control->state[i]);
}

/* The first free chunk, so that few are used and stay in the cache; -1 if none is free. */
static int try_acquire(struct staging *s)
{
    for (uint32_t i = 0; i < s->n_chunks; i++)
        if (atomic_compare_exchange_strong(&s->control->state[i], &(uint32_t){WS_CHUNK_FREE},
                                           WS_CHUNK_BUSY))
            return (int)i;
    return -1;
}

/* Waits for a free chunk. The caller holds none that only it can free. */
static ws_err acquire(struct ws_channel *c, struct staging *s, uint32_t *ret)
{
    uint64_t check_ns = 0;
    for (;;) {
        int i = try_acquire(s);
        if (i >= 0) {
            *ret = (uint32_t)i;
            return WS__ERROR__OK;
        }
        uint64_t now = ws_clock_ns();
        if (!check_ns) { /* what would free them may still lie in the batch */
            ws_err r = ws_channel_flush(c);
            if (r)
                return r;
            check_ns = now + ALIVE_NS;
        } else if (now >= check_ns) {
            if (!ws_channel_alive(c))
                return WS__ERROR__DISCONNECTED;
            check_ns = now + ALIVE_NS;
        }
        _Atomic uint32_t *word = &s->control->state[s->next++ % s->n_chunks];
        uint32_t v = atomic_load(word);
        if (v != WS_CHUNK_FREE)
            futex_wait(s, word, v,
                       RESCAN_NS); /* another one may become free first: look again soon */
    }
}

/* Waits until the daemon has filled chunk @i. */
static ws_err wait_ready(struct ws_channel *c, struct staging *s, uint32_t i)
{
    for (;;) {
        uint32_t v = atomic_load(&s->control->state[i]);
        if (v == WS_CHUNK_READY)
            return WS__ERROR__OK;
        if (v != WS_CHUNK_BUSY)
            return WS__ERROR__LAUNCH_FAILURE;
        uint64_t before = ws_clock_ns();
        futex_wait(s, &s->control->state[i], v, ALIVE_NS);
        if (ws_clock_ns() - before >= ALIVE_NS && !ws_channel_alive(c))
            return WS__ERROR__DISCONNECTED;
    }
}

static void wait_once(struct staging *s, uint32_t i)
{
    if (atomic_load(&s->control->state[i]) == WS_CHUNK_BUSY)
        futex_wait(s, &s->control->state[i], WS_CHUNK_BUSY, RESCAN_NS);
}

static uint64_t chunk_offset(const struct staging *s, uint32_t i)
{
    return (uint64_t)i * s->chunk_bytes;
}

ws_err ws_staging_write(struct ws_channel *c, uint64_t stream, const struct ws_copy_side *dst,
                        const struct ws_copy_side *src, const struct ws_copy_box *box)
{
    struct staging *s = &staging;
    struct ws_box_cursor at = {.box = *box};
    struct ws_box_piece p;
    uint32_t used[AHEAD], n = 0, i;
    ws_err r = make(c);
    for (; !r && ws_box_next(&at, s->chunk_bytes, &p); n++) {
        Ws__Copy copy = WS__COPY__INIT;
        /* Leave chunks to other threads. If one has taken that chunk since, the wait is short. */
        if (n >= AHEAD)
            wait_once(s, used[n % AHEAD]);
        if ((r = acquire(c, s, &i)))
            break;
        used[n % AHEAD] = i;
        ws_copy_to(&copy, stream, dst, &p);
        copy.bulk = WS__COPY__BULK__STAGED_SRC;
        copy.segment = s->segment.id;
        copy.segment_offset = chunk_offset(s, i);
        ws_box_pack(s->segment.data + copy.segment_offset, src, &p);
        if ((r = ws_channel_post(c, WS_COMMAND(COPY, copy, &copy)))) {
            release(s, i);
            break;
        }
        r = ws_channel_flush(c);
    }
    return r;
}

struct flight { /* chunks that the daemon is filling for us, oldest first */
    struct {
        uint32_t chunk;
        struct ws_box_piece piece;
    } v[AHEAD];
    uint32_t first, n;
};

static bool at_end(const struct ws_box_cursor *c)
{
    return c->z == c->box.depth;
}

static ws_err read_ahead(struct ws_channel *c, struct staging *s, struct flight *f, uint64_t stream,
                         const struct ws_copy_side *src, struct ws_box_cursor *at)
{
    bool posted = false;
    while (!at_end(at) && f->n < AHEAD) {
        Ws__Copy copy = WS__COPY__INIT;
        ws_err r;
        uint32_t chunk;
        int i = try_acquire(s);
        if (i < 0 && f->n)
            break; /* first empty our own */
        chunk = (uint32_t)i;
        if (i < 0 && (r = acquire(c, s, &chunk)))
            return r;
        __typeof__(f->v[0]) *v = &f->v[(f->first + f->n) % AHEAD];
        v->chunk = chunk;
        ws_box_next(at, s->chunk_bytes, &v->piece);
        ws_copy_from(&copy, stream, src, &v->piece);
        copy.bulk = WS__COPY__BULK__STAGED_DST;
        copy.segment = s->segment.id;
        copy.segment_offset = chunk_offset(s, chunk);
        if ((r = ws_channel_post(c, WS_COMMAND(COPY, copy, &copy)))) {
            release(s, chunk);
            return r;
        }
        f->n++;
        posted = true;
    }
    return posted ? ws_channel_flush(c) : WS__ERROR__OK;
}

ws_err ws_staging_read(struct ws_channel *c, uint64_t stream, const struct ws_copy_side *dst,
                       const struct ws_copy_side *src, const struct ws_copy_box *box)
{
    struct staging *s = &staging;
    struct flight f = {0};
    struct ws_box_cursor at = {.box = *box};
    ws_err r = make(c);
    if (r)
        return r;
    do {
        if (!r)
            r = read_ahead(c, s, &f, stream, src, &at);
        if (!f.n)
            break;
        /* After an error, still take what is under way: the daemon still writes there. */
        __typeof__(f.v[0]) *v = &f.v[f.first % AHEAD];
        ws_err w = wait_ready(c, s, v->chunk);
        if (w == WS__ERROR__DISCONNECTED)
            return w;
        if (!w && !r)
            ws_box_unpack(dst, s->segment.data + chunk_offset(s, v->chunk), &v->piece);
        release(s, v->chunk);
        f.first++;
        f.n--;
        if (!r)
            r = w;
    } while (f.n || (!r && !at_end(&at)));
    if (r == WS__ERROR__LAUNCH_FAILURE) { /* the chunk says only that it failed: ask why */
        ws_err why = ws_session_stream_sync(stream);
        if (why)
            r = why;
    }
    return r;
}
