// SPDX-License-Identifier: Apache-2.0
/* device/soft/jit/counts.c - how many kernels are compiled, and why others are not. */
#include <pthread.h>

#include "device/compiled.h"
#include "device/soft/jit/code.h"
#include "device/soft/jit/store.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ws_jit_totals totals; /* this and below: under the lock */
static uint64_t n_at[_WS_JIT_TIERS], n_not[_WS_COMPILED_NOT];

struct ws_jit_totals ws_jit_totals(void)
{
    pthread_mutex_lock(&lock);
    struct ws_jit_totals t = totals;
    pthread_mutex_unlock(&lock);
    return t;
}

void ws_jit_add_totals(const struct ws_jit_totals *more)
{
    pthread_mutex_lock(&lock);
    totals.n_compiled += more->n_compiled;
    totals.n_loaded += more->n_loaded;
    totals.n_refused += more->n_refused;
    totals.compile_ns += more->compile_ns;
    pthread_mutex_unlock(&lock);
}

/* Lock held. */
static void count(const struct ws_jit_code *j, int tier, uint64_t n)
{
    n_at[tier] += n;
    if (tier == WS_JIT_INTERPRETED)
        n_not[j->why_not] += n;
}

void ws_jit_count(const struct ws_jit_code *j, bool is_there)
{
    pthread_mutex_lock(&lock);
    count(j, atomic_load(&j->tier), is_there ? 1 : UINT64_MAX);
    pthread_mutex_unlock(&lock);
}

void ws_jit_set_tier(struct ws_jit_code *j, enum ws_jit_tier tier)
{
    pthread_mutex_lock(&lock);
    count(j, atomic_load(&j->tier), UINT64_MAX);
    count(j, tier, 1);
    atomic_store_explicit(&j->tier, (int)tier, memory_order_release);
    pthread_mutex_unlock(&lock);
}

struct ws_compiled_counts ws_compiled_counts(void)
{
    uint64_t n_damaged = ws_jit_store_counts().n_damaged;
    pthread_mutex_lock(&lock);
    struct ws_compiled_counts c = {.n_cold = n_at[WS_JIT_COLD],
                                   .n_waiting = n_at[WS_JIT_QUEUED],
                                   .n_compiled = n_at[WS_JIT_TRIED] + n_at[WS_JIT_COMPILED],
                                   .n_made = totals.n_compiled,
                                   .n_found = totals.n_loaded,
                                   .n_damaged = n_damaged};
    for (int k = 0; k < _WS_COMPILED_NOT; k++)
        c.n_not[k] = n_not[k];
    pthread_mutex_unlock(&lock);
    return c;
}
