// SPDX-License-Identifier: Apache-2.0
/* Gated clients: programs with a driver of their own (frontend/gate). None of their work runs
 * here. They ask when their launches may go, and say what these took.
 *
 * A job of a gated client is one of the dispatcher's jobs. It has its GPU alone from the moment
 * it is let go until GateEnd or the client's end. A client that never says that it is done must
 * not keep a GPU: gate_lease_ms after its job was let go, the dispatcher forgets the job and
 * starts others; the client is told, and has to ask again before it launches more. What it still
 * runs is then beside the others' work, and that is counted. Leases are times of the host's
 * clock, because the devices' clocks may stand still.
 *
 * Each GateBegin is answered, whatever the client sends: where there is nothing to decide, the
 * answer is that it may go. */
#include "backend/backend.h"
#include "backend/scheduling/gated.h"
#include "backend/client/reply.h"
#include "backend/scheduling/spans.h"
#include "device/cuda/cuda.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"

/* Without memory for it the client is not told, and waits as long as its patience lasts. */
static void tell(struct ws_client *c, uint64_t id)
{
    if (ws_client_tell_reached(c, id))
        ws_log(WS_WARN, "gate: out of memory client=%u", c->id);
}

static struct ws_context *context_of(struct ws_client *c, uint32_t device)
{
    return device < c->n_contexts ? &c->contexts[device] : NULL;
}

/* The lease of @h runs no more. */
static void lease_stop(struct ws_server *s, struct ws_gated_job *h)
{
    if (h->lease_end_ns)
        s->gated.n_leases--;
    h->lease_end_ns = 0;
}

static void hold_end(struct ws_client *c, struct ws_gated_job *h)
{
    lease_stop(c->server, h);
    if (h->since_ns)
        c->jobs.n_gated--;
    ws_list_remove(&h->go);
    *h = (struct ws_gated_job){0};
    ws_list_init(&h->go);
}

Ws__Error ws_gated_begin(struct ws_client *c, const Ws__GateBegin *m)
{
    struct ws_context *x = context_of(c, m->device);
    if (m->serial < WS_GATE_SERIAL_FIRST || m->serial > UINT64_MAX / 4)
        return WS__ERROR__INVALID_VALUE;
    if (!x || x->gated_job.serial) {
        tell(c, m->serial * 2);
        return x ? WS__ERROR__INVALID_VALUE : WS__ERROR__INVALID_DEVICE;
    }
    x->gated_job.serial = m->serial;
    if (!ws_dispatch_gate_begin(x))
        ws_gated_go(x);
    return WS__ERROR__OK;
}

void ws_gated_go(struct ws_context *x)
{
    struct ws_client *c = x->client;
    struct ws_server *s = c->server;
    struct ws_gated_job *h = &x->gated_job;
    if (!h->serial || h->since_ns)
        return;
    ws_energy_settle(s); /* what came before was others' */
    h->since_ns = ws_clock_ns();
    h->begin_ns = ws_device_now_ns(x->gpu->device);
    c->jobs.n_gated++;
    if (x->job) {
        h->lease_end_ns = h->since_ns + s->config->gate_lease_ms * WS_NS_PER_MS;
        s->gated.n_leases++;
    }
    tell(c, h->serial * 2);
}

/* Time and energy of what ran. The client is believed only as far as the time was there. */
static uint64_t account(struct ws_client *c, struct ws_context *x, const Ws__GateEnd *m)
{
    struct ws_client_stats *st = &c->stats;
    uint32_t gpu = x->gpu->device->index;
    uint64_t held_ns = ws_clock_ns() - x->gated_job.since_ns,
             ns = m->measured ? WS_MIN(m->device_ns, held_ns) : 0, uj = 0;
    st->n_kernels += m->n_launches;
    st->device_ns += ns;
    st->used_gpus |= UINT32_C(1) << gpu;
    st->first_start_ns = WS_MIN(st->first_start_ns, x->gated_job.begin_ns);
    st->last_end_ns = WS_MAX(st->last_end_ns, x->gated_job.begin_ns + ns);
    st->n_unmeasured += !m->measured;
    if (!ws_device_cuda_charge(x->gpu->device, ns, &uj))
        st->energy_unknown = true;
    st->energy_uj += uj;
    ws_energy_charge(c, gpu, uj);
    if (c->server->tracing && ns)
        ws_spans_add_gated(x, x->gated_job.begin_ns, x->gated_job.begin_ns + ns, uj, m->n_launches);
    return uj;
}

Ws__Error ws_gated_end(struct ws_client *c, const Ws__GateEnd *m)
{
    struct ws_context *x = context_of(c, m->device);
    if (!x || !m->serial || x->gated_job.serial != m->serial || !x->gated_job.since_ns)
        return WS__ERROR__INVALID_VALUE;
    uint64_t uj = account(c, x, m);
    bool over = x->gated_job.over_lease;
    hold_end(c, &x->gated_job);
    if (!over)
        ws_dispatch_gate_end(x, m->n_launches, m->measured ? m->device_ns : 0, uj);
    ws_energy_settle(c->server);
    return WS__ERROR__OK;
}

void ws_gated_forget(struct ws_client *c)
{
    if (!c->jobs.gated)
        return;
    c->server->gated.n--;
    for (uint32_t i = 0; i < c->n_contexts; i++)
        if (c->contexts[i].gated_job.serial)
            hold_end(c, &c->contexts[i].gated_job);
}

static void lease_over(struct ws_context *x)
{
    struct ws_client *c = x->client;
    lease_stop(c->server, &x->gated_job);
    x->gated_job.over_lease = true;
    if (!c->stats.n_over_lease++)
        ws_log(WS_WARN,
               "gate: client %u (%s) kept GPU %u for more than %u ms; others may run beside it "
               "(said once)",
               c->id, c->work.name, x->gpu->device->index, c->server->config->gate_lease_ms);
    tell(c, x->gated_job.serial * 2 + 1);
    ws_dispatch_gate_end(x, 0, 0, 0);
}

/* Ends what is due; ns until the next lease ends, UINT64_MAX: none runs. */
static uint64_t leases(struct ws_server *s)
{
    uint64_t now = ws_clock_ns(), next = UINT64_MAX;
    ws_list_for_each_safe (n, &s->clients.all) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        for (uint32_t i = 0; c->jobs.gated && !c->dropped && i < c->n_contexts; i++) {
            struct ws_gated_job *h = &c->contexts[i].gated_job;
            if (!h->lease_end_ns)
                continue;
            if (h->lease_end_ns <= now)
                lease_over(&c->contexts[i]);
            else
                next = WS_MIN(next, h->lease_end_ns - now);
        }
    }
    return next;
}

int ws_gated_turn(struct ws_server *s)
{
    bool on = ws_dispatch_is_on(s);
    if (on != s->gated.told) {
        s->gated.told = on;
        ws_list_for_each_safe (n, &s->clients.all) {
            struct ws_client *c = ws_list_entry(n, struct ws_client, node);
            if (c->jobs.gated)
                tell(c, on ? WS_GATE_POLICY_ON : WS_GATE_POLICY_OFF);
        }
    }
    if (!s->gated.n_leases)
        return -1;
    uint64_t ns = leases(s);
    return s->gated.n_leases ? (int)(WS_MIN(ns, WS_NS_PER_S) / WS_NS_PER_MS) + 1 : -1;
}

static Ws__ClientStatus__Gate job_state(const struct ws_gated_job *h)
{
    if (!h->serial)
        return WS__CLIENT_STATUS__GATE__GATE_IDLE;
    if (!h->since_ns)
        return WS__CLIENT_STATUS__GATE__GATE_WAITS;
    return h->over_lease ? WS__CLIENT_STATUS__GATE__GATE_OVER_LEASE
                         : WS__CLIENT_STATUS__GATE__GATE_HOLDS;
}

Ws__ClientStatus__Gate ws_gated_state(const struct ws_client *c)
{
    Ws__ClientStatus__Gate r = WS__CLIENT_STATUS__GATE__GATE_IDLE;
    if (!c->jobs.gated)
        return WS__CLIENT_STATUS__GATE__NOT_GATED;
    for (uint32_t i = 0; i < c->n_contexts; i++) {
        Ws__ClientStatus__Gate is = job_state(&c->contexts[i].gated_job);
        r = WS_MAX(r, is);
    }
    return r;
}
