// SPDX-License-Identifier: Apache-2.0
/* frontend/session/idtab.h - the ids that this client gives to streams and events. An id has a slot
 * in its low half and a generation in its high half, so that an id that was given up is recognised.
 * Entries never move: looking one up needs no lock. Threads: any. */
#ifndef WS_FRONTEND_SESSION_IDTAB_H
#define WS_FRONTEND_SESSION_IDTAB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WS_IDTAB_CHUNK = 256, WS_IDTAB_CHUNKS = 1024 };
struct ws_id {           /* first member of an entry */
    _Atomic uint64_t id; /* 0: free */
    uint32_t slot, generation;
    struct ws_id *next_free;
};
struct ws_idtab {
    pthread_mutex_t lock;
    size_t entry_bytes;
    uint32_t n_slots, n_live;
    struct ws_id *free;
    uint8_t *_Atomic chunks[WS_IDTAB_CHUNKS];
};
#define WS_IDTAB(type)                                                                             \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .entry_bytes = sizeof(type)                             \
    }

/* A zeroed entry with its id reserved but not yet findable; NULL if @limit (0: none) are live or
 * memory is short. */
struct ws_id *ws_idtab_take(struct ws_idtab *t, uint32_t limit);
/* Makes a taken entry findable. Return: its id. */
uint64_t ws_idtab_publish(struct ws_id *e);
void *ws_idtab_find(struct ws_idtab *t, uint64_t id);
/* Return: false if it was not live (then nothing happens). */
bool ws_idtab_give_back(struct ws_idtab *t, uint64_t id);

#endif
