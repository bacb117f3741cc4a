// SPDX-License-Identifier: Apache-2.0
/* Dealing: which blocks get an SM next. It follows the hardware: the kernels of a client in order
 * of submission, the blocks of each round-robin over the SMs of its set, as many as fit
 * (timeline/occupancy.c). A kernel whose blocks are all dealt, or of which no block fits, lets the
 * next one fill what is left. No more than 128 kernels are looked at, as hardware does not run more
 * at a time either. A block that ends makes room.
 *
 * Dealing is lazy: a block gets its SM when a worker takes it, and memory for its state when it
 * first runs. So a grid of a million blocks costs as much memory as the blocks that are running.
 * Every block that was dealt is resident and will run. The blocks of a cluster are dealt together.
 * A cooperative kernel is dealt as a whole, and until it fits nothing behind it is dealt.
 *
 * The scheduler's lock is held in all functions. */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/launch_check.h"
#include "device/soft/sched/run.h"

enum { ROTATED_EVERY = 5, WAITING_BLOCKS = 4, KERNELS_AT_A_TIME = 128 };

/* ---- dealing; the scheduler's lock is held ---- */

static bool sm_fits(const struct ws_run *r, const struct ws_sm_use *u)
{
    const struct ws_gpu_spec *s = &r->device->base.spec;
    const struct ws_need *n = &r->fit.need;
    return (uint32_t)__builtin_popcount(u->slots) < s->max_blocks_per_sm &&
           u->warps + n->warps <= s->max_threads_per_sm / 32 &&
           u->regs + n->regs <= s->regs_per_sm &&
           u->shared_bytes + n->shared_bytes <= s->shared_bytes_per_sm;
}

uint32_t ws_run_occupy_locked(const struct ws_run *r, struct ws_sm_use *u)
{
    uint32_t slot = u->slots == UINT32_MAX ? 31 : (uint32_t)__builtin_ctz(~u->slots);
    u->slots |= 1u << slot;
    u->warps += r->fit.need.warps;
    u->regs += r->fit.need.regs;
    u->shared_bytes += r->fit.need.shared_bytes;
    return slot;
}

void ws_run_vacate_locked(const struct ws_run *r, struct ws_sm_use *u, uint32_t slot)
{
    u->slots &= ~(1u << slot);
    u->warps -= r->fit.need.warps;
    u->regs -= r->fit.need.regs;
    u->shared_bytes -= r->fit.need.shared_bytes;
}

bool ws_run_allows_sm(const struct ws_run *r, uint32_t sm)
{
    const struct ws_sm_set *set = &r->op->launch.sms;
    return !set->n || set->bits[sm / 64] >> (sm % 64) & 1;
}

/* The next SM, round-robin, with room for a block of @r. Return: false if there is none. */
static bool sm_find(struct ws_tenant *t, const struct ws_run *r, uint32_t *ret_sm)
{
    uint32_t n = r->device->base.spec.n_sms, sm = t->cursor;
    for (uint32_t i = 0; i < n; i++, sm = sm + 1 == n ? 0 : sm + 1) {
        if (!ws_run_allows_sm(r, sm) || !sm_fits(r, &t->sms[sm]))
            continue;
        t->cursor = sm + 1 == n ? 0 : sm + 1;
        *ret_sm = sm;
        return true;
    }
    return false;
}

/* Room for so many blocks at once, or none is taken. */
static bool place_all(struct ws_tenant *t, const struct ws_run *r, uint64_t n_blocks,
                      struct ws_coop_place *at)
{
    uint64_t n = 0;
    uint32_t sm;
    struct ws_sm_use *use = t->sms;
    while (n < n_blocks && sm_find(t, r, &sm)) {
        uint32_t slot = ws_run_occupy_locked(r, &use[sm]);
        at[n++] = (struct ws_coop_place){(uint16_t)sm, (uint16_t)slot};
    }
    bool ok = n == n_blocks;
    /* They are taken again when the blocks are dealt. */
    while (n--)
        ws_run_vacate_locked(r, &use[at[n].sm], at[n].slot);
    return ok;
}

/* Room for the next block, or for all of the next cluster. */
static bool place_next(struct ws_tenant *t, const struct ws_run *r, struct ws_coop_place *at)
{
    uint32_t sm;
    if (r->n_cluster > 1)
        return place_all(t, r, r->n_cluster, at);
    if (!sm_find(t, r, &sm))
        return false;
    at->sm = (uint16_t)sm;
    return true;
}

static struct ws_dealt_block *block_get(struct ws_sched *s)
{
    struct ws_list *l = ws_list_pop(&s->free_blocks);
    struct ws_dealt_block *b =
        l ? ws_list_entry(l, struct ws_dealt_block, link) : ws_alloc(sizeof(*b));
    if (!b)
        return NULL;
    memset(b, 0, sizeof(*b));
    ws_list_init(&b->link);
    return b;
}

/* A block, or those of a cluster. NULL: there is no memory for so many. */
static struct ws_dealt_block *blocks_get(struct ws_sched *s, uint32_t n)
{
    struct ws_dealt_block *first = NULL;
    for (; n; n--) {
        struct ws_dealt_block *b = block_get(s);
        if (!b)
            break;
        b->mate = first;
        first = b;
    }
    for (struct ws_dealt_block *next; n && first; first = next) {
        next = first->mate;
        ws_list_append(&s->free_blocks, &first->link);
    }
    return first;
}

/* The next block, or cluster, at these places. */
static struct ws_dealt_block *deal_to(struct ws_sched *s, struct ws_tenant *t, struct ws_run *r,
                                      const struct ws_coop_place *at)
{
    struct ws_dealt_block *first = blocks_get(s, r->n_cluster);
    if (!first)
        return NULL;
    for (struct ws_dealt_block *b = first; b; b = b->mate, at++) {
        b->run = r;
        b->linear = r->n_dealt++;
        b->sm = at->sm;
        b->slot = ws_run_occupy_locked(r, &t->sms[at->sm]);
    }
    r->n_live++;
    if (r->n_dealt == r->n_blocks)
        ws_list_remove(&r->deal_link);
    return first;
}

/* How many new blocks, or clusters, of @r make a turn. */
static uint32_t batch_of(const struct ws_sched *s, const struct ws_run *r)
{
    uint64_t mean = r->n_ended ? r->counts.n_warp_insns / r->n_ended : r->stats->block_insns;
    uint64_t n = mean ? WS_TURN_INSNS / WS_MAX(mean, 1) : 1, left = r->n_blocks - r->n_dealt;
    n = WS_MIN(n, (left + s->n_threads - 1) / s->n_threads) / r->n_cluster;
    return (uint32_t)WS_MIN(WS_MAX(n, 1), WS_TURN_BLOCKS_MAX);
}

/* Nothing of the kernel is at work whose end could bring memory: it has to end. Until the turn is
 * given back, nobody else ends it. */
static void refuse(struct ws_turn *turn, struct ws_run *r)
{
    ws_run_stop(r, WS_DEV_E_NO_MEMORY, "%s: the host has no memory for its blocks", ws_run_name(r));
    r->n_live++;
    turn->refused = r;
}

/* All blocks of a cooperative kernel become resident together; they wait in front. */
static void coop_deal(struct ws_sched *s, struct ws_tenant *t, struct ws_turn *turn,
                      struct ws_run *r)
{
    for (uint64_t i = 0; i < r->n_blocks; i += r->n_cluster) {
        struct ws_dealt_block *b = deal_to(s, t, r, &r->coop_at[i]);
        if (!b) {
            refuse(turn, r);
            return;
        }
        ws_list_append(&t->front, &b->link);
    }
}

static void deal(struct ws_sched *s, struct ws_tenant *t, struct ws_turn *turn)
{
    uint32_t n_looked = 0;
    ws_list_for_each_safe (it, &t->dealing) {
        struct ws_run *r = ws_list_entry(it, struct ws_run, deal_link);
        if (n_looked++ == KERNELS_AT_A_TIME)
            break;
        if (r->coop) {
            if (ws_run_starves_locked(r) || !place_all(t, r, r->n_blocks, r->coop_at))
                break; /* nobody overtakes it */
            if (!ws_run_take_all_locked(r)) {
                t->deal_blocked = true;
                ws_tenant_starve_locked(s, t, r);
                return;
            }
            coop_deal(s, t, turn, r);
            return;
        }
        if (ws_run_starves_locked(r))
            continue;
        uint32_t n = batch_of(s, r);
        struct ws_coop_place at[WS_CLUSTER_MAX];
        while (turn->n < n && r->n_dealt < r->n_blocks && place_next(t, r, at)) {
            struct ws_dealt_block *b = deal_to(s, t, r, at);
            if (!b) {
                if (!r->n_live)
                    refuse(turn, r);
                break;
            }
            turn->blocks[turn->n++] = b;
        }
        if (turn->n || turn->refused)
            return;
    }
    t->deal_blocked = true;
}

bool ws_launch_has_work_locked(const struct ws_tenant *t)
{
    return !ws_list_empty(&t->front) || !ws_list_empty(&t->rotated) ||
           (!ws_list_empty(&t->dealing) && !t->deal_blocked);
}

/* Takes blocks off a queue: one that is at work, or several that wait, or that were dealt and never
 * ran. */
static void take_from(struct ws_list *queue, uint32_t n_max, struct ws_turn *turn)
{
    struct ws_list *l;
    while (turn->n < n_max && (l = ws_list_pop(queue))) {
        struct ws_dealt_block *b = ws_list_entry(l, struct ws_dealt_block, link);
        turn->blocks[turn->n++] = b;
        if (b->started && !b->waits)
            break;
    }
}

bool ws_launch_take_locked(struct ws_sched *s, struct ws_tenant *t, struct ws_turn *turn)
{
    bool may_deal = !ws_list_empty(&t->dealing) && !t->deal_blocked;
    if (ws_list_empty(&t->front) && may_deal &&
        (ws_list_empty(&t->rotated) || ++t->n_choices % ROTATED_EVERY))
        deal(s, t, turn);
    if (turn->refused)
        return true;
    if (!turn->n && !ws_list_empty(&t->front)) {
        const struct ws_dealt_block *b = ws_list_entry(t->front.next, struct ws_dealt_block, link);
        take_from(&t->front, b->started ? 1 : batch_of(s, b->run), turn);
    }
    if (!turn->n)
        take_from(&t->rotated, WAITING_BLOCKS, turn);
    /* A cluster gets all its states so, or none: what waits for memory must not hold any. */
    for (uint32_t i = 0; i < turn->n; i++) {
        struct ws_dealt_block *b = turn->blocks[i];
        bool enough = !b->state && b->run->n_spare >= b->run->n_cluster;
        for (; enough && b; b = b->mate)
            b->state = ws_run_spare_locked(s, b->run);
    }
    return turn->n > 0;
}
