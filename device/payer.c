// SPDX-License-Identifier: Apache-2.0
#include "device/payer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"

static struct ws_payer own = {.n_refs = 1};
/* Of all payers. A launch takes from it once or a few times, and holds the lock for a moment. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t pool = UINT64_MAX, pool_held; /* lock */
static uint64_t n_holders;                    /* lock */

struct ws_payer *ws_payer_new(void)
{
    return ws_payer_ref(ws_alloc(sizeof(struct ws_payer)));
}

struct ws_payer *ws_payer_ref(struct ws_payer *p)
{
    if (p)
        atomic_fetch_add_explicit(&p->n_refs, 1, memory_order_relaxed);
    return p;
}

struct ws_payer *ws_payer_unref(struct ws_payer *p)
{
    if (p && atomic_fetch_sub(&p->n_refs, 1) == 1)
        free(p);
    return NULL;
}

struct ws_payer *ws_payer_or_own(struct ws_payer *p)
{
    return p ? p : &own;
}

static uint64_t may_hold_locked(const struct ws_payer *p)
{
    uint64_t share = pool == UINT64_MAX
                         ? UINT64_MAX
                         : ws_payer_share(pool, pool_held - p->held, n_holders - (p->held != 0));
    share = p->limit ? WS_MIN(share, p->limit) : share;
    return WS_MAX(share, (uint64_t)WS_PAYER_FLOOR);
}

int ws_payer_take(struct ws_payer *p, uint64_t n)
{
    int r = 0;
    pthread_mutex_lock(&lock);
    uint64_t may = may_hold_locked(p);
    if (p->held <= may && n <= may - p->held) {
        n_holders += n && !p->held;
        p->held += n;
        pool_held += n;
    } else {
        r = p->held ? WS_PAYER_E_LATER : -ENOMEM;
        p->n_refused++;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

void ws_payer_give(struct ws_payer *p, uint64_t n)
{
    pthread_mutex_lock(&lock);
    p->held -= n;
    pool_held -= n;
    n_holders -= n && !p->held;
    pthread_mutex_unlock(&lock);
}

static uint64_t read_locked(const uint64_t *at)
{
    pthread_mutex_lock(&lock);
    uint64_t v = *at;
    pthread_mutex_unlock(&lock);
    return v;
}

uint64_t ws_payer_held(const struct ws_payer *p)
{
    return read_locked(&p->held);
}

uint64_t ws_payer_n_refused(const struct ws_payer *p)
{
    return read_locked(&p->n_refused);
}

uint64_t ws_payers_pool(void)
{
    return read_locked(&pool);
}

uint64_t ws_payers_held(void)
{
    return read_locked(&pool_held);
}

uint64_t ws_payer_may_hold(const struct ws_payer *p)
{
    pthread_mutex_lock(&lock);
    uint64_t may = may_hold_locked(p);
    pthread_mutex_unlock(&lock);
    return may;
}

void ws_payer_set_limit(struct ws_payer *p, uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    p->limit = bytes;
    pthread_mutex_unlock(&lock);
}

void ws_payers_set_pool(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    pool = bytes;
    pthread_mutex_unlock(&lock);
}
