// SPDX-License-Identifier: Apache-2.0
/* Lists of what kernels start. Each entry is counted for its space as long as it exists. */
#include "device/started.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/space.h"

struct chain {
    struct ws_start *first, **end;
};

struct ws_started {
    struct ws_space *space;
    pthread_mutex_t lock;
    struct chain fresh, tails;        /* of the launch that runs; under the lock */
    struct ws_start *waiting, *begun; /* of those before it; the one that ws_started_next() gave */
};

static void chain_init(struct chain *c)
{
    c->first = NULL;
    c->end = &c->first;
}

/* Puts a chain before what is at @at, and empties it. */
static void prepend(struct chain *c, struct ws_start **at)
{
    *c->end = *at;
    *at = c->first;
    chain_init(c);
}

/* With what the allocator takes for itself. */
static uint64_t bytes_of(uint32_t param_bytes)
{
    return sizeof(struct ws_start) + param_bytes + 16;
}

static void start_free(struct ws_started *l, struct ws_start *w)
{
    ws_space_started_give(l->space, bytes_of(w->param_bytes));
    free(w);
}

struct ws_started *ws_started_new(struct ws_space *s)
{
    struct ws_started *l = ws_alloc(sizeof(*l));
    if (!l)
        return NULL;
    l->space = s;
    pthread_mutex_init(&l->lock, NULL);
    chain_init(&l->fresh);
    chain_init(&l->tails);
    return l;
}

struct ws_started *ws_started_free(struct ws_started *l)
{
    if (!l)
        return NULL;
    while (ws_started_next(l))
        ;
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}

enum ws_started_added ws_started_add(struct ws_started *l, const struct ws_start *what,
                                     const void *params)
{
    uint32_t depth = (l->begun ? l->begun->depth : 0) + !what->tail;
    if (depth > WS_STARTED_DEPTH_MAX)
        return WS_STARTED_DEEP;
    if (!ws_space_started_take(l->space, bytes_of(what->param_bytes), WS_STARTED_BYTES_MAX))
        return WS_STARTED_MANY;
    struct ws_start *w = malloc(sizeof(*w) + what->param_bytes);
    if (!w) {
        ws_space_started_give(l->space, bytes_of(what->param_bytes));
        return WS_STARTED_MANY;
    }
    *w = *what;
    w->next = NULL;
    w->depth = depth;
    if (what->param_bytes)
        memcpy(w->params, params, what->param_bytes);
    pthread_mutex_lock(&l->lock);
    struct chain *c = w->tail ? &l->tails : &l->fresh;
    *c->end = w;
    c->end = &w->next;
    pthread_mutex_unlock(&l->lock);
    return WS_STARTED_OK;
}

bool ws_started_any(const struct ws_started *l)
{
    return l && (l->fresh.first || l->tails.first || l->waiting);
}

const struct ws_start *ws_started_next(struct ws_started *l)
{
    if (!l)
        return NULL;
    if (l->begun)
        start_free(l, l->begun);
    prepend(&l->tails, &l->waiting);
    prepend(&l->fresh, &l->waiting);
    l->begun = l->waiting;
    if (l->begun)
        l->waiting = l->begun->next;
    return l->begun;
}
