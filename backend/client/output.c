// SPDX-License-Identifier: Apache-2.0
#include "backend/client/output.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { RECORD_MAX = (1 << 24) - 1, BLOCK_BYTES = 16 << 10 };

struct ws_output_block {
    struct ws_output_block *next; /* newer */
    uint8_t bytes[BLOCK_BYTES];
};

void ws_output_init(struct ws_output_fifo *f)
{
    *f = (struct ws_output_fifo){.limit_bytes = WS_OUTPUT_DEFAULT_BYTES};
    pthread_mutex_init(&f->lock, NULL);
}

static void clear(struct ws_output_fifo *f)
{
    while (f->oldest) {
        struct ws_output_block *next = f->oldest->next;
        free(f->oldest);
        f->oldest = next;
    }
    f->at_end = f->newest = NULL;
    f->room = f->first = f->n = 0;
}

void ws_output_deinit(struct ws_output_fifo *f)
{
    clear(f);
    pthread_mutex_destroy(&f->lock);
}

/* There is room. */
static void copy_in(struct ws_output_fifo *f, const void *p, size_t n)
{
    for (const uint8_t *from = p; n;) {
        size_t at = (f->first + f->n) % BLOCK_BYTES, k = WS_MIN(n, BLOCK_BYTES - at);
        if (!at && f->n)
            f->at_end = f->at_end->next;
        memcpy(f->at_end->bytes + at, from, k);
        from += k;
        n -= k;
        f->n += k;
        f->room -= k;
    }
}

/* The oldest @n bytes. */
static void copy_out(const struct ws_output_fifo *f, void *p, size_t n)
{
    const struct ws_output_block *b = f->oldest;
    size_t at = f->first;
    for (uint8_t *to = p; n; b = b->next) {
        size_t k = WS_MIN(n, BLOCK_BYTES - at);
        memcpy(to, b->bytes + at, k);
        to += k;
        n -= k;
        at = 0;
    }
}

static size_t record_text(const struct ws_output_fifo *f)
{
    uint8_t h[WS_OUTPUT_HEAD_BYTES];
    copy_out(f, h, sizeof(h));
    return h[1] | (size_t)h[2] << 8 | (size_t)h[3] << 16;
}

/* The oldest @n bytes. */
static void drop(struct ws_output_fifo *f, size_t n)
{
    f->first += n;
    f->n -= n;
    if (!f->n)
        clear(f);
    for (; f->first >= BLOCK_BYTES; f->first -= BLOCK_BYTES) {
        struct ws_output_block *b = f->oldest;
        f->oldest = b->next;
        free(b);
    }
}

uint64_t ws_output_most(const struct ws_output_fifo *f)
{
    return f->limit_bytes * WS_OUTPUT_ROOM;
}

/* Makes room for @n more bytes, as far as the limit allows; lock held. Return: whether there is. */
static bool make_room(struct ws_output_fifo *f, size_t n)
{
    if (n > ws_output_most(f))
        return false;
    while (f->n + n > ws_output_most(f)) {
        drop(f, WS_OUTPUT_HEAD_BYTES + record_text(f));
        f->n_lost++;
    }
    while (f->room < n) {
        struct ws_output_block *b = malloc(sizeof(*b));
        if (!b)
            return false;
        b->next = NULL;
        *(f->newest ? &f->newest->next : &f->oldest) = b;
        f->newest = b;
        f->at_end = f->at_end ? f->at_end : b;
        f->room += BLOCK_BYTES;
    }
    return true;
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
        copy_out(f, data + done, take);
        if (take < n) { /* the only record, and too large */
            size_t text = take - WS_OUTPUT_HEAD_BYTES;
            for (int i = 0; i < 3; i++)
                data[done + 1 + i] = (uint8_t)(text >> 8 * i);
        }
        done += take;
        drop(f, n);
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
    if (f->n > ws_output_most(f))
        clear(f);
    pthread_mutex_unlock(&f->lock);
}
