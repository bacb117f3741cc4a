// SPDX-License-Identifier: Apache-2.0
#include "frontend/session/idtab.h"

#include <string.h>
#include "base/alloc.h"
#include "protocol/protocol.h"

static struct ws_id *at(struct ws_idtab *t, uint32_t slot)
{
    uint32_t i = slot / WS_IDTAB_CHUNK;
    uint8_t *chunk = i < WS_IDTAB_CHUNKS ? t->chunks[i] : NULL;
    return chunk ? (struct ws_id *)(chunk + slot % WS_IDTAB_CHUNK * t->entry_bytes) : NULL;
}

struct ws_id *ws_idtab_take(struct ws_idtab *t, uint32_t limit)
{
    struct ws_id *e = NULL;
    pthread_mutex_lock(&t->lock);
    if (limit && t->n_live >= limit)
        goto out;
    if ((e = t->free)) {
        t->free = e->next_free;
    } else {
        uint32_t i = t->n_slots / WS_IDTAB_CHUNK;
        if (i >= WS_IDTAB_CHUNKS)
            goto out;
        if (!t->chunks[i])
            t->chunks[i] = ws_alloc_array(WS_IDTAB_CHUNK, t->entry_bytes);
        if (!(e = at(t, t->n_slots)))
            goto out;
        e->slot = t->n_slots++;
    }
    t->n_live++;
    uint32_t slot = e->slot, generation = e->generation;
    memset(e + 1, 0, t->entry_bytes - sizeof(*e));
    e->slot = slot;
    e->generation = generation;
out:
    pthread_mutex_unlock(&t->lock);
    return e;
}

uint64_t ws_idtab_publish(struct ws_id *e)
{
    uint64_t id = ((uint64_t)e->generation << 32) + WS_STREAM_FIRST + e->slot;
    atomic_store(&e->id, id);
    return id;
}

void *ws_idtab_find(struct ws_idtab *t, uint64_t id)
{
    uint32_t low = (uint32_t)id;
    struct ws_id *e = low >= WS_STREAM_FIRST ? at(t, low - WS_STREAM_FIRST) : NULL;
    return e && e->id == id ? e : NULL;
}

bool ws_idtab_give_back(struct ws_idtab *t, uint64_t id)
{
    struct ws_id *e = ws_idtab_find(t, id);
    if (!e || !atomic_compare_exchange_strong(&e->id, &(uint64_t){id}, 0))
        return false;
    pthread_mutex_lock(&t->lock);
    e->generation++;
    e->next_free = t->free;
    t->free = e;
    t->n_live--;
    pthread_mutex_unlock(&t->lock);
    return true;
}
