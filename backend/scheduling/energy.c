// SPDX-License-Identifier: Apache-2.0
/* Energy accounts. A GPU's counter says how much energy was used; the reports of operations say
 * by whom.
 *
 * Each time the counter is read, what it has gained is split into idle energy (the device says
 * how much that is) and busy energy.
 *
 * Busy energy waits in `unmatched` until operations report what they took. Then each client gets
 * what its operations were charged. If there is not enough, the clients share what there is in
 * proportion to their claims, and the rest of each claim stands. A device may charge more than
 * it has counted, when it learns later that two operations ran side by side
 * (device/soft/timeline/timing.c, "Energy"); it charges less for the next operation. The reports
 * of a real GPU are estimates. Both only shift energy between clients: nobody is given energy
 * that was not counted, and all that was counted is given to somebody. The counters of real GPUs
 * lag behind the reports, so claims outlive operations, and even clients; when nothing has been
 * under way for a second they are forgotten. A counter that does not lag has counted all that a
 * client took by the time it goes, so what it still claims then was charged too much, and would
 * only be taken from others. Energy that is neither matched nor claimed while
 * nothing is under way is shared as idle energy is.
 *
 * Idle energy is shared by the clients that are connected and may use this GPU, in proportion to
 * the weights of their tasks. If nobody is connected it is the system's. Accounts are kept in
 * whole uJ; a smaller part is carried for each client until it makes one.
 *
 * Invariant: the equation of energy.h, after every function here. */
#include "backend/scheduling/energy.h"

#include <stdatomic.h>

#include "backend/backend.h"
#include "base/clock.h"

#define CLAIMS_NS WS_NS_PER_S

void ws_energy_charge(struct ws_client *c, uint32_t gpu, uint64_t uj)
{
    atomic_fetch_add_explicit(&c->energy.gpu[gpu].charged_uj, uj, memory_order_release);
}

/* A loop over all clients: those that are connected, then those that are going. */
#define FOR_EACH_CLIENT(c, s)                                                                      \
    for (struct ws_list *list_ = &(s)->clients.all; list_;                                         \
         list_ = list_ == &(s)->clients.all ? &(s)->clients.dying : NULL)                          \
        for (struct ws_list *n_ = list_->next;                                                     \
             n_ != list_ && (((c) = ws_list_entry(n_, struct ws_client, node)), true);             \
             n_ = n_->next)

/* ---- busy energy ---- */

static uint64_t take_charges(struct ws_server *s, uint32_t g, bool *ret_idle)
{
    struct ws_client *c;
    uint64_t sum = s->gpus[g].energy.former_pending_uj;
    FOR_EACH_CLIENT(c, s)
    {
        struct ws_energy_of *e = &c->energy.gpu[g];
        uint64_t charged = atomic_load_explicit(&e->charged_uj, memory_order_acquire);
        e->pending_uj += charged - e->taken_uj;
        e->taken_uj = charged;
        sum += e->pending_uj;
        *ret_idle &= !c->n_in_flight && !c->jobs.n_gated;
    }
    return sum;
}

static uint64_t portion(uint64_t have, uint64_t part, uint64_t all)
{
    return (uint64_t)((unsigned __int128)have * part / all);
}

/* Pays min(unmatched, @pending) of the @pending uJ that are claimed. Return: how much. */
static uint64_t pay(struct ws_server *s, uint32_t g, uint64_t pending)
{
    struct ws_gpu_energy *t = &s->gpus[g].energy;
    struct ws_client *c;
    uint64_t have = WS_MIN(t->unmatched_uj, pending), before = t->unmatched_uj;
    if (!have)
        return 0;
    uint64_t former = portion(have, t->former_pending_uj, pending);
    t->former_pending_uj -= former;
    t->former_uj += former;
    t->unmatched_uj -= former;
    FOR_EACH_CLIENT(c, s)
    {
        struct ws_energy_of *e = &c->energy.gpu[g];
        uint64_t uj = portion(have, e->pending_uj, pending);
        e->pending_uj -= uj;
        e->busy_uj += uj;
        t->unmatched_uj -= uj;
    }
    return before - t->unmatched_uj;
}

static void forget_claims(struct ws_server *s, uint32_t g)
{
    struct ws_client *c;
    s->gpus[g].energy.former_pending_uj = 0;
    FOR_EACH_CLIENT(c, s)
    c->energy.gpu[g].pending_uj = 0;
}

/* ---- idle energy ---- */

/* In thousandths: weights go down to 0.001. */
static uint64_t weight_of(const struct ws_client *c)
{
    double w = c->work.weight * 1000;
    return w >= 1 ? (uint64_t)(w < 1e12 ? w : 1e12) : 1;
}

static bool may_use(const struct ws_client *c, const struct ws_gpu *g)
{
    for (uint32_t i = 0; i < c->n_contexts; i++)
        if (c->contexts[i].gpu == g)
            return true;
    return false;
}

/* Whole uJ of @pool * weight / sum, with what was left over from before. */
static uint64_t part_of(struct ws_energy_of *e, uint64_t pool, uint64_t weight,
                        unsigned __int128 sum)
{
    unsigned __int128 whole = (unsigned __int128)pool * weight;
    uint64_t uj = (uint64_t)(whole / sum),
             rest = (uint64_t)(((whole % sum) << 32) / sum) + e->fraction;
    e->fraction = (uint32_t)rest;
    return uj + (rest >> 32);
}

static void share_idle(struct ws_server *s, uint32_t g, uint64_t uj)
{
    struct ws_gpu_energy *t = &s->gpus[g].energy;
    unsigned __int128 sum = 0;
    uint64_t n_members = 0;
    ws_list_for_each (n, &s->clients.all) {
        const struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        bool member = may_use(c, &s->gpus[g]);
        n_members += member;
        sum += member ? weight_of(c) : 0;
    }
    t->carry_uj += uj;
    if (!n_members) {
        t->system_uj += t->carry_uj;
        t->carry_uj = 0;
        return;
    }
    if (t->carry_uj > uj + n_members) /* fractions of those that have gone */
        uj = t->carry_uj - n_members;
    ws_list_for_each (n, &s->clients.all) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        if (!may_use(c, &s->gpus[g]))
            continue;
        uint64_t part = part_of(&c->energy.gpu[g], uj, weight_of(c), sum);
        c->energy.gpu[g].idle_uj += part;
        t->carry_uj -= part;
    }
}

/* ---- a GPU ---- */

/* What a counter gained; one that went back was reset, and began from 0. */
static uint64_t gained(uint64_t *raw, uint64_t now)
{
    uint64_t d = now >= *raw ? now - *raw : now;
    *raw = now;
    return d;
}

/* Nothing is under way there. */
static void quiet(struct ws_server *s, uint32_t g)
{
    struct ws_gpu_energy *t = &s->gpus[g].energy;
    uint64_t now = ws_clock_ns();
    if (!t->quiet_since_ns)
        t->quiet_since_ns = now;
    else if (now - t->quiet_since_ns > CLAIMS_NS)
        forget_claims(s, g);
}

static void settle(struct ws_server *s, uint32_t g)
{
    struct ws_gpu_energy *t = &s->gpus[g].energy;
    struct ws_device_telemetry m;
    bool nothing_under_way = true;
    ws_device_telemetry(s->gpus[g].device, &m);
    uint64_t all = gained(&t->raw_uj, m.energy_uj),
             idle = gained(&t->raw_idle_uj, m.idle_energy_uj);
    idle = WS_MIN(idle, all);
    t->counter_uj += all;
    t->idle_uj += idle;
    t->unmatched_uj += all - idle;
    uint64_t pending = take_charges(s, g, &nothing_under_way);
    uint64_t paid = pay(s, g, pending);
    if (!nothing_under_way) {
        t->quiet_since_ns = 0;
    } else if (t->unmatched_uj && pending <= paid) {
        idle += t->unmatched_uj;
        t->unmatched_uj = 0;
    }
    if (nothing_under_way)
        quiet(s, g);
    if (idle)
        share_idle(s, g, idle);
}

void ws_energy_settle(struct ws_server *s)
{
    for (uint32_t g = 0; g < s->n_gpus; g++)
        settle(s, g);
}

struct ws_energy_sum ws_energy_of_client(const struct ws_client *c)
{
    struct ws_energy_sum r = {0};
    for (uint32_t g = 0; g < c->server->n_gpus; g++) {
        r.busy_uj += c->energy.gpu[g].busy_uj;
        r.idle_uj += c->energy.gpu[g].idle_uj;
    }
    return r;
}

void ws_energy_forget(struct ws_client *c)
{
    struct ws_server *s = c->server;
    for (uint32_t g = 0; g < s->n_gpus; g++) {
        struct ws_energy_of *e = &c->energy.gpu[g];
        s->gpus[g].energy.former_uj += e->busy_uj + e->idle_uj;
        if (s->gpus[g].device->meter_update_ns)
            s->gpus[g].energy.former_pending_uj += e->pending_uj;
        e->pending_uj = 0;
        e->busy_uj = e->idle_uj = 0;
    }
}
