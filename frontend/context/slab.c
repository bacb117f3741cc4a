// SPDX-License-Identifier: Apache-2.0
#include "frontend/context/slab.h"

#include <string.h>

#include "base/alloc.h"

static struct ws_slot *from_chunks(struct ws_slab *s)
{
    size_t at = s->n_used, i = 0;
    while (i < WS_SLAB_CHUNKS && at >= (size_t)WS_SLAB_FIRST << i)
        at -= (size_t)WS_SLAB_FIRST << i++;
    if (i == WS_SLAB_CHUNKS)
        return NULL;
    if (!s->chunks[i])
        s->chunks[i] = ws_alloc_array((size_t)WS_SLAB_FIRST << i, s->object_bytes);
    if (!s->chunks[i])
        return NULL;
    s->n_used++;
    return (struct ws_slot *)(s->chunks[i] + at * s->object_bytes);
}

void *ws_slab_new(struct ws_slab *s)
{
    pthread_mutex_lock(&s->lock);
    struct ws_slot *o = s->first_free;
    if (o) {
        s->first_free = o->next_free;
        if (!s->first_free)
            s->last_free = NULL;
        memset((void *)o, 0, s->object_bytes);
    } else {
        o = from_chunks(s);
    }
    if (o)
        o->live = true;
    pthread_mutex_unlock(&s->lock);
    return o;
}

void ws_slab_free(struct ws_slab *s, void *object)
{
    struct ws_slot *o = object;
    pthread_mutex_lock(&s->lock);
    o->live = false;
    o->next_free = NULL;
    if (s->last_free)
        s->last_free->next_free = o;
    else
        s->first_free = o;
    s->last_free = o;
    pthread_mutex_unlock(&s->lock);
}

bool ws_slab_has(const struct ws_slab *s, const void *p)
{
    for (size_t i = 0; i < WS_SLAB_CHUNKS; i++) {
        const uint8_t *c = s->chunks[i];
        if (!c)
            return false;
        size_t at = (uintptr_t)p - (uintptr_t)c;
        if (at < ((size_t)WS_SLAB_FIRST << i) * s->object_bytes)
            return at % s->object_bytes == 0 && ((const struct ws_slot *)p)->live;
    }
    return false;
}

void ws_slab_each(struct ws_slab *s, void (*fn)(void *object, void *arg), void *arg)
{
    for (size_t i = 0; i < WS_SLAB_CHUNKS && s->chunks[i]; i++) {
        for (size_t j = 0; j < (size_t)WS_SLAB_FIRST << i; j++) {
            struct ws_slot *o = (struct ws_slot *)(s->chunks[i] + j * s->object_bytes);
            if (o->live)
                fn(o, arg);
        }
    }
}
