// SPDX-License-Identifier: Apache-2.0
#include "backend/client/output.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { RECORD_MAX = (1 << 24) - 1 };

void ws_output_init(struct ws_output_fifo *f)
{
    *f = (struct ws_output_fifo){.limit_bytes = WS_OUTPUT_DEFAULT_BYTES};
    pthread_mutex_init(&f->lock, NULL);
}

void ws_output_deinit(struct ws_output_fifo *f)
{
    free(f->ring);
    pthread_mutex_destroy(&f->lock);
}

static void copy_in(struct ws_output_fifo *f, const void *p, size_t n)
{
    size_t at = (f->first + f->n) % f->cap, head = WS_MIN(n, f->cap - at);
    memcpy(f->ring + at, p, head);
    memcpy(f->ring, (const uint8_t *)p + head, n - head);
    f->n += n;
}

static void copy_out(const struct ws_output_fifo *f, void *p, size_t offset, size_t n)
{
    size_t at = (f->first + offset) % f->cap, head = WS_MIN(n, f->cap - at);
    memcpy(p, f->ring + at, head);
    memcpy((uint8_t *)p + head, f->ring, n - head);
}

static size_t record_text(const struct ws_output_fifo *f)
{
    uint8_t h[WS_OUTPUT_HEAD_BYTES];
    copy_out(f, h, 0, sizeof(h));
    return h[1] | (size_t)h[2] << 8 | (size_t)h[3] << 16;
}

static void drop(struct ws_output_fifo *f, size_t n)
{
    f->first = (f->first + n) % f->cap;
    f->n -= n;
}

uint64_t ws_output_most(const struct ws_output_fifo *f)
{
    return f->limit_bytes * WS_OUTPUT_ROOM;
}

/* Grows by doubling, up to what the limit allows; lock held. Return: whether @n more bytes can
 * fit at all. */
static bool make_room(struct ws_output_fifo *f, size_t n)
{
    size_t most = ws_output_most(f), want = WS_MAX(f->cap, (size_t)4096);
    if (n > most)
        return false;
    while (want < f->n + n)
        want *= 2;
    want = WS_MIN(want, most);
    if (want > f->cap) {
        uint8_t *ring = malloc(want);
        if (ring) {
            if (f->n)
                copy_out(f, ring, 0, f->n);
            free(f->ring);
            f->ring = ring;
            f->cap = want;
            f->first = 0;
        }
    }
    while (f->n && f->n + n > f->cap) {
        drop(f, WS_OUTPUT_HEAD_BYTES + record_text(f));
        f->n_lost++;
    }
    return n <= f->cap;
}

void ws_output_add(void *fifo, enum ws_output to, const char *text, size_t n)
{
    struct ws_output_fifo *f = fifo;
    n = WS_MIN(n, (size_t)RECORD_MAX);
    const uint8_t h[WS_OUTPUT_HEAD_BYTES] = {(uint8_t)to, (uint8_t)n, (uint8_t)(n >> 8),
                                             (uint8_t)(n >> 16)};
    pthread_mutex_lock(&f->lock);
    if (make_room(f, sizeof(h) + n)) {
        copy_in(f, h, sizeof(h));
        copy_in(f, text, n);
    } else {
        f->n_lost++;
    }
    pthread_mutex_unlock(&f->lock);
}

size_t ws_output_take(struct ws_output_fifo *f, uint8_t *data, size_t max, uint64_t *ret_left,
                      uint64_t *ret_lost)
{
    size_t done = 0;
    pthread_mutex_lock(&f->lock);
    while (f->n && max >= WS_OUTPUT_HEAD_BYTES) {
        size_t n = WS_OUTPUT_HEAD_BYTES + record_text(f), take = WS_MIN(n, max);
        if (done + take > max)
            break;
        copy_out(f, data + done, 0, take);
        if (take < n) { /* the only record, and too large */
            size_t text = take - WS_OUTPUT_HEAD_BYTES;
            for (int i = 0; i < 3; i++)
                data[done + 1 + i] = (uint8_t)(text >> 8 * i);
        }
        done += take;
        drop(f, n);
    }
    if (!f->n && f->cap > 65536) { /* a burst is over */
        free(f->ring);
        f->ring = NULL;
        f->cap = f->first = 0;
    }
    *ret_left = f->n;
    *ret_lost = f->n_lost;
    f->n_lost = 0;
    pthread_mutex_unlock(&f->lock);
    return done;
}

void ws_output_limit(struct ws_output_fifo *f, uint64_t bytes)
{
    assert(bytes <= WS_OUTPUT_MAX_BYTES);
    pthread_mutex_lock(&f->lock);
    f->limit_bytes = WS_MAX(bytes, UINT64_C(1024));
    if (f->cap > ws_output_most(f)) {
        free(f->ring);
        f->ring = NULL;
        f->cap = f->first = f->n = 0;
    }
    pthread_mutex_unlock(&f->lock);
}
