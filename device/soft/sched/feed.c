// SPDX-License-Identifier: Apache-2.0
/* Memory for the state of blocks: registers, local and shared memory.
 *
 * Whoever runs a kernel pays for the blocks that have begun and have not ended, and for states that
 * are kept for later blocks (device/payer.h). A block that is refused waits in its tenant's list of
 * starved blocks, its kernel gets no more blocks dealt, and nothing is kept for later while a
 * tenant of this payer waits. Each time that memory of the payer comes back, all its waiting
 * tenants try again. So nobody waits for ever: a payer that is refused holds something, and what it
 * holds is of blocks that run, which release it when they end. If it holds nothing, the kernel
 * fails. What the payer holds for records of launches (run.c) is counted apart, because it comes
 * back only when launches end.
 *
 * A cooperative kernel takes the memory of all its blocks at once, since none of them may end
 * before all have begun; any other that of the blocks of a cluster.
 *
 * States are freed by workers without the lock: unmapping hundreds of MiB takes a while. */
#include <errno.h>
#include <stdlib.h>

#include "base/list.h"
#include "device/payer.h"
#include "device/soft/sched/run.h"

/* ---- taking ---- */

/* No memory for @bytes; @e as of ws_payer_take(). Return: whether the kernel may wait for it. */
static bool may_wait(struct ws_run *r, uint64_t bytes, int e)
{
    bool urged = atomic_load_explicit(&r->limit_ns, memory_order_relaxed);
    if (e == WS_PAYER_E_LATER && !urged)
        return true;
    ws_run_stop(
        r, WS_DEV_E_NO_MEMORY,
        "%s: its blocks take %llu bytes of the daemon's memory at a time, but this user may "
        "have %llu (max_block_bytes)%s",
        ws_run_name(r), (unsigned long long)bytes, (unsigned long long)ws_payer_may_hold(r->payer),
        urged ? ", and other clients wait for the GPU" : "");
    return false;
}

int ws_state_new(struct ws_dealt_block *b)
{
    struct ws_run *r = b->run;
    uint64_t lacking = r->n_cluster;
    int e = r->coop ? 0 : ws_payer_take(r->payer, lacking * r->state_bytes);
    if (e)
        return may_wait(r, lacking * r->state_bytes, e) ? WS_PAYER_E_LATER : -ENOMEM;
    for (; b && !ws_blockrun_new(&b->state, &r->grid); b = b->mate)
        lacking--;
    if (!b)
        return 0;
    b->state = NULL;
    if (!r->coop)
        ws_payer_give(r->payer, lacking * r->state_bytes);
    ws_run_stop(r, WS_DEV_E_NO_MEMORY, "%s: the host has no memory for a block", ws_run_name(r));
    return -ENOMEM;
}

bool ws_run_take_all_locked(struct ws_run *r)
{
    uint64_t bytes = r->n_blocks * r->state_bytes;
    int e = ws_payer_take(r->payer, bytes);
    if (!e)
        r->coop_bytes = bytes;
    return !e || !may_wait(r, bytes, e);
}

/* ---- giving back ---- */

void ws_state_free(const struct ws_run *r, struct ws_blockrun *state)
{
    ws_blockrun_free(state);
    if (state)
        ws_payer_give(r->payer, r->state_bytes);
}

static void bury(struct ws_sched *s, struct ws_run *r, struct ws_dealt_block *b)
{
    b->payer = ws_payer_ref(r->payer);
    b->bytes = r->state_bytes;
    if (r->coop)
        r->coop_bytes -= b->bytes;
    ws_list_append(&s->dead, &b->link);
}

void ws_block_put_locked(struct ws_sched *s, struct ws_run *r, struct ws_dealt_block *b)
{
    if (!b->state) {
        ws_list_append(&s->free_blocks, &b->link);
    } else if (r->n_spare < WS_RUN_SPARE_MAX && !atomic_load(&r->payer->n_waiting)) {
        ws_list_append(&r->spares, &b->link);
        if (!r->n_spare++)
            ws_list_append(&r->tenant->spared, &r->spared);
    } else {
        bury(s, r, b);
    }
}

struct ws_blockrun *ws_run_spare_locked(struct ws_sched *s, struct ws_run *r)
{
    struct ws_list *l = ws_list_pop(&r->spares);
    if (!l)
        return NULL;
    struct ws_dealt_block *b = ws_list_entry(l, struct ws_dealt_block, link);
    if (!--r->n_spare)
        ws_list_remove(&r->spared);
    ws_list_append(&s->free_blocks, &b->link);
    return b->state;
}

void ws_run_bury_spares_locked(struct ws_sched *s, struct ws_run *r)
{
    struct ws_list *l;
    while ((l = ws_list_pop(&r->spares)))
        bury(s, r, ws_list_entry(l, struct ws_dealt_block, link));
    r->n_spare = 0;
    ws_list_remove(&r->spared);
}

bool ws_sched_reap(struct ws_sched *s)
{
    if (ws_list_empty(&s->dead))
        return false;
    struct ws_list *l = ws_list_pop(&s->dead);
    struct ws_dealt_block *b = ws_list_entry(l, struct ws_dealt_block, link);
    pthread_mutex_unlock(&s->lock);
    ws_blockrun_free(b->state);
    ws_payer_give(b->payer, b->bytes);
    pthread_mutex_lock(&s->lock);
    ws_sched_feed_locked(s, b->payer);
    ws_payer_unref(b->payer);
    ws_list_append(&s->free_blocks, &b->link);
    return true;
}

/* ---- waiting ---- */

bool ws_run_starves_locked(const struct ws_run *r)
{
    return r->starved_at == r->tenant->n_feeds;
}

/* Its kernels may be very many: none is looked at. */
static void tenant_feed(struct ws_sched *s, struct ws_tenant *t)
{
    struct ws_list *l;
    ws_tenant_not_hungry_locked(t);
    t->n_feeds++;
    while ((l = ws_list_pop(&t->starved)))
        ws_list_append(&t->front, l);
    t->deal_blocked = false;
    ws_sched_ready_locked(s, t);
}

void ws_sched_feed_locked(struct ws_sched *s, struct ws_payer *p)
{
    if (!atomic_load(&p->n_waiting))
        return;
    ws_list_for_each (it, &s->tenants) {
        struct ws_tenant *t = ws_list_entry(it, struct ws_tenant, all);
        if (t->hungry && t->payer == p)
            tenant_feed(s, t);
    }
}

/* What is kept for blocks to come, of all kernels of @p. */
static void bury_all_spares(struct ws_sched *s, const struct ws_payer *p)
{
    ws_list_for_each (it, &s->tenants) {
        struct ws_tenant *t = ws_list_entry(it, struct ws_tenant, all);
        if (t->payer == p)
            ws_list_for_each_safe (at, &t->spared)
                ws_run_bury_spares_locked(s, ws_list_entry(at, struct ws_run, spared));
    }
}

void ws_tenant_starve_locked(struct ws_sched *s, struct ws_tenant *t, struct ws_run *r)
{
    struct ws_payer *p = t->payer;
    r->starved_at = t->n_feeds;
    if (!t->hungry)
        atomic_fetch_add(&p->n_waiting, 1);
    t->hungry = true;
    bury_all_spares(s, p);
    /* From now on whoever releases something sees that this tenant waits. It may have been the last
     * one before. */
    if (!ws_payer_held_for_blocks(p))
        tenant_feed(s, t);
}

void ws_tenant_not_hungry_locked(struct ws_tenant *t)
{
    if (t->hungry)
        atomic_fetch_sub(&t->payer->n_waiting, 1);
    t->hungry = false;
}
