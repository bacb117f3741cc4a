// SPDX-License-Identifier: Apache-2.0
/* frontend/context/slab.h - objects that programs hold by address: contexts, modules, functions,
 * libraries, kernels. A program may pass a wrong address; a slab says whether an address is that of
 * a live object without reading what it points to. Objects never move, and their memory is never
 * given back; the object that was freed last is reused last. Threads: any; ws_slab_has() takes no
 * lock. */
#ifndef WS_FRONTEND_CONTEXT_SLAB_H
#define WS_FRONTEND_CONTEXT_SLAB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WS_SLAB_FIRST = 64, WS_SLAB_CHUNKS = 20 }; /* chunk i has 64 << i objects */
struct ws_slot {                                  /* first member of an object */
    _Atomic bool live;
    struct ws_slot *next_free;
};
struct ws_slab {
    pthread_mutex_t lock;
    size_t object_bytes;
    size_t n_used; /* ever taken from chunks */
    struct ws_slot *first_free, *last_free;
    uint8_t *_Atomic chunks[WS_SLAB_CHUNKS];
};
#define WS_SLAB(type)                                                                              \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .object_bytes = sizeof(type)                            \
    }

/* A zeroed live object, or NULL if memory is short. */
void *ws_slab_new(struct ws_slab *s);
void ws_slab_free(struct ws_slab *s, void *object);
bool ws_slab_has(const struct ws_slab *s, const void *p);
/* Calls @fn for every live object; it may free that one. */
void ws_slab_each(struct ws_slab *s, void (*fn)(void *object, void *arg), void *arg);

#endif
