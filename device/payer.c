// SPDX-License-Identifier: Apache-2.0
#include "device/payer.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"

static struct ws_payer own = {
    .n_refs = 1, .tenants = {&own.tenants, &own.tenants}, .in_ring = {&own.in_ring, &own.in_ring}};
/* Of all payers. A launch takes from it once or a few times, and holds the lock for a moment. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t pool = UINT64_MAX, pool_held; /* lock */
static uint64_t n_holders;                    /* lock */

struct ws_payer *ws_payer_new(void)
{
    struct ws_payer *p = ws_alloc(sizeof(*p));
    if (!p)
        return NULL;
    ws_list_init(&p->tenants);
    ws_list_init(&p->in_ring);
    return ws_payer_ref(p);
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

static uint64_t held_locked(const struct ws_payer *p)
{
    return p->for_blocks + p->for_records;
}

static uint64_t may_hold_locked(const struct ws_payer *p)
{
    uint64_t held = held_locked(p),
             share = pool == UINT64_MAX
                         ? UINT64_MAX
                         : ws_payer_share(pool, pool_held - held, n_holders - (held != 0));
    share = p->limit ? WS_MIN(share, p->limit) : share;
    return WS_MAX(share, (uint64_t)WS_PAYER_FLOOR);
}

/* @of: of @p. */
static void add_locked(struct ws_payer *p, uint64_t *of, uint64_t n)
{
    n_holders += n && !held_locked(p);
    *of += n;
    pool_held += n;
}

static void remove_locked(struct ws_payer *p, uint64_t *of, uint64_t n)
{
    *of -= n;
    pool_held -= n;
    n_holders -= n && !held_locked(p);
}

int ws_payer_take(struct ws_payer *p, uint64_t n)
{
    int r = 0;
    pthread_mutex_lock(&lock);
    uint64_t may = may_hold_locked(p);
    if (p->for_blocks <= may && n <= may - p->for_blocks) {
        add_locked(p, &p->for_blocks, n);
    } else {
        r = p->for_blocks ? WS_PAYER_E_LATER : -ENOMEM;
        p->n_refused++;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

void ws_payer_give(struct ws_payer *p, uint64_t n)
{
    pthread_mutex_lock(&lock);
    remove_locked(p, &p->for_blocks, n);
    pthread_mutex_unlock(&lock);
}

static uint64_t may_record_locked(const struct ws_payer *p)
{
    return may_hold_locked(p) / WS_PAYER_RECORDS_PART;
}

bool ws_bill_take(struct ws_bill *b, struct ws_payer *p, uint64_t needed, uint64_t wanted)
{
    pthread_mutex_lock(&lock);
    uint64_t may = may_record_locked(p), left = may - WS_MIN(may, p->for_records);
    bool ok = needed <= left;
    if (ok) {
        uint64_t n = needed + WS_MIN(wanted, (left - needed) / WS_PAYER_GRANT_PART);
        add_locked(p, &p->for_records, n);
        *b = (struct ws_bill){.payer = ws_payer_ref(p), .bytes = n};
    } else {
        p->n_refused++;
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

void ws_bill_give(struct ws_bill *b)
{
    if (!b->payer)
        return;
    pthread_mutex_lock(&lock);
    remove_locked(b->payer, &b->payer->for_records, b->bytes);
    pthread_mutex_unlock(&lock);
    ws_payer_unref(b->payer);
    *b = (struct ws_bill){0};
}

static uint64_t read_locked(const uint64_t *at)
{
    pthread_mutex_lock(&lock);
    uint64_t v = *at;
    pthread_mutex_unlock(&lock);
    return v;
}

uint64_t ws_payer_held_for_blocks(const struct ws_payer *p)
{
    return read_locked(&p->for_blocks);
}

uint64_t ws_payer_held(const struct ws_payer *p)
{
    pthread_mutex_lock(&lock);
    uint64_t n = held_locked(p);
    pthread_mutex_unlock(&lock);
    return n;
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

uint64_t ws_payer_may_record(const struct ws_payer *p)
{
    pthread_mutex_lock(&lock);
    uint64_t may = may_record_locked(p);
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
