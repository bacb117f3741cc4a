// SPDX-License-Identifier: Apache-2.0
/* Places for headers on each device: chunks of them, and a queue of the free ones. One that is
 * given back goes to the end of the queue and keeps its content, because a kernel that is still
 * running reads it. Headers are written on a stream of their own that waits for no other stream, so
 * that an object can be made while all other streams are busy. */
#include <stdlib.h>

#include "base/alloc.h"
#include "frontend/errors.h"
#include "frontend/texture/texture.h"

enum { SLOT_BYTES = 704, CHUNK_SLOTS = 256 };
_Static_assert(SLOT_BYTES >= sizeof(struct ws_texture) && SLOT_BYTES % 64 == 0, "");

static struct places {
    uint64_t stream; /* 0: none yet */
    uint64_t *free;  /* a ring of @cap, which is at least all there are */
    size_t first, n, cap;
} places[WS_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void push(struct places *p, uint64_t address)
{
    p->free[(p->first + p->n++) % p->cap] = address;
}

static int more(int device, struct places *p)
{
    uint64_t chunk, *ring = ws_alloc_array(p->cap + CHUNK_SLOTS, sizeof(*ring));
    if (!ring)
        return CUDA_OUT_OF_MEMORY;
    ws_err e = ws_session_mem_alloc(device, (uint64_t)SLOT_BYTES * CHUNK_SLOTS, &chunk);
    if (e) {
        free(ring);
        return ws_drv_error(e);
    }
    for (size_t i = 0; i < p->n; i++)
        ring[i] = p->free[(p->first + i) % p->cap];
    free(p->free);
    p->free = ring;
    p->first = 0;
    p->cap += CHUNK_SLOTS;
    for (size_t i = 0; i < CHUNK_SLOTS; i++)
        push(p, chunk + i * SLOT_BYTES);
    return CUDA_OK;
}

int ws_header_new(int device, uint64_t *ret_address)
{
    struct places *p = &places[device];
    pthread_mutex_lock(&lock);
    int code = p->n ? CUDA_OK : more(device, p);
    if (!code) {
        *ret_address = p->free[p->first];
        p->first = (p->first + 1) % p->cap;
        p->n--;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

void ws_header_free(int device, uint64_t address)
{
    struct places *p = &places[device];
    pthread_mutex_lock(&lock);
    if (p->n < p->cap)
        push(p, address);
    pthread_mutex_unlock(&lock);
}

int ws_header_write(int device, uint64_t address, const void *data, size_t bytes)
{
    struct places *p = &places[device];
    ws_err e = WS__ERROR__OK;
    pthread_mutex_lock(&lock);
    if (!p->stream)
        e = ws_session_stream_create(device, true, 0, &p->stream);
    uint64_t stream = p->stream;
    pthread_mutex_unlock(&lock);
    if (!e)
        e = ws_session_copy(stream, (void *)(uintptr_t)address, data, bytes, WS_COPY_H2D, false);
    return ws_drv_error(e ? e : ws_session_stream_sync(stream));
}

void ws_header_reset_device(int device)
{
    pthread_mutex_lock(&lock);
    free(places[device].free);
    places[device] = (struct places){0};
    pthread_mutex_unlock(&lock);
}
