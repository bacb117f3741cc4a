// SPDX-License-Identifier: Apache-2.0
/* Jobs as programs mark them, and periods.
 *
 * Releases lie on a grid: the first is when the program first waits, the k-th k periods later,
 * however late the program is. One that has missed releases gets them at once, one after
 * another, as an overloaded periodic task does. Times are those of the clock of the GPU that the
 * program's device 0 is on; where that clock passes only with work, waiting moves it on.
 *
 * A job's response time is counted from its release if the program waited for one, else from its
 * beginning, to the device time at which the last of its operations was done. */
#include "backend/backend.h"
#include "backend/client/join.h"
#include "backend/client/reply.h"

#include <stdio.h>
#include <stdlib.h>

#include "backend/scheduling/alarms.h"
#include "backend/scheduling/period.h"

static struct ws_device *clock_of(struct ws_client *c)
{
    return c->contexts[0].gpu->device;
}

/* ---- jobs ---- */

Ws__Error ws_own_begin(struct ws_client *c, uint64_t deadline_ns, char *ret_text, size_t size)
{
    struct ws_own_job *o = &c->jobs.own;
    if (!c->n_contexts)
        return WS__ERROR__INVALID_DEVICE;
    if (o->open) {
        snprintf(ret_text, size, "a job is open already: end it first");
        return WS__ERROR__NOT_READY;
    }
    ws_dispatch_waits(c); /* what was before is not part of it */
    o->open = true;
    o->begin_ns = ws_device_now_ns(clock_of(c));
    o->release_ns = o->has_release ? o->period_release_ns : o->begin_ns;
    o->has_release = false;
    o->deadline_ns = deadline_ns ? deadline_ns : (uint64_t)(c->work.deadline_ms * 1e6);
    o->begin_uj = c->stats.energy_uj;
    return WS__ERROR__OK;
}

Ws__Error ws_own_end(struct ws_client *c, uint64_t seq, char *ret_text, size_t size)
{
    struct ws_own_job *o = &c->jobs.own;
    if (!o->open || o->ending) {
        snprintf(ret_text, size, "no job is open: begin one first");
        return WS__ERROR__INVALID_VALUE;
    }
    struct ws_join *j = ws_join_new(c, WS_JOIN_JOB, seq, true);
    if (!j)
        return WS__ERROR__OK; /* dropped */
    o->ending = true;
    ws_join_start(j, NULL);
    return WS__ERROR__OK;
}

void ws_own_ended(struct ws_join *join)
{
    struct ws_client *c = join->client;
    struct ws_own_job *o = &c->jobs.own;
    Ws__Reply r = WS__REPLY__INIT;
    Ws__JobStats t = WS__JOB_STATS__INIT;
    t.release_ns = o->release_ns;
    t.end_ns = WS_MAX(join->end_ns, o->begin_ns); /* nothing done since: it ends where it began */
    t.response_ns = t.end_ns - t.release_ns;
    t.deadline_ns = o->deadline_ns;
    t.met = !t.deadline_ns || t.response_ns <= t.deadline_ns;
    t.energy_uj = c->stats.energy_uj - o->begin_uj;
    o->open = o->ending = false;
    for (uint32_t i = 0; i < c->n_contexts; i++)
        c->contexts[i].seen_ns =
            WS_MAX(c->contexts[i].seen_ns,
                   WS_MIN(join->end_ns, ws_device_now_ns(c->contexts[i].gpu->device)));
    ws_dispatch_waits(c);
    r.seq = join->seq;
    r.error = ws_client_take_error(c);
    r.text = r.error ? c->errors.text : (char *)"";
    r.job = &t;
    ws_client_reply(c, &r);
}

/* ---- periods ---- */

static void answer(struct ws_client *c, uint64_t release_ns)
{
    struct ws_own_job *o = &c->jobs.own;
    Ws__Reply r = WS__REPLY__INIT;
    r.seq = o->wait_seq;
    r.value = release_ns;
    o->wait_seq = 0;
    o->has_release = true;
    o->period_release_ns = release_ns;
    for (uint32_t i = 0; i < c->n_contexts; i++) /* work it gives now can't have begun before */
        if (c->contexts[i].gpu->device == clock_of(c))
            c->contexts[i].seen_ns = WS_MAX(c->contexts[i].seen_ns, release_ns);
    ws_client_reply(c, &r);
    ws_client_retire(c, 1);
}

static int set_alarm(struct ws_client *c, uint64_t at_ns)
{
    return ws_alarms_set(c->server->periods, clock_of(c), at_ns, c->id, c->jobs.own.wait_seq);
}

Ws__Error ws_own_wait(struct ws_client *c, uint64_t seq, char *ret_text, size_t size)
{
    struct ws_own_job *o = &c->jobs.own;
    if (!c->n_contexts)
        return WS__ERROR__INVALID_DEVICE;
    if (!(c->work.period_ms > 0)) {
        snprintf(ret_text, size, "task %s has no period_ms in wattshared.conf", c->work.name);
        return WS__ERROR__INVALID_VALUE;
    }
    if (o->wait_seq) {
        snprintf(ret_text, size, "another thread waits for the task's period");
        return WS__ERROR__NOT_READY;
    }
    uint64_t now = ws_device_now_ns(clock_of(c));
    if (!o->has_base) {
        o->has_base = true;
        o->base_ns = now;
    } else {
        o->n_releases++;
    }
    uint64_t at = o->base_ns + (uint64_t)((double)o->n_releases * c->work.period_ms * 1e6);
    o->wait_seq = seq;
    if (at <= now) {
        answer(c, at);
        return WS__ERROR__OK;
    }
    o->period_release_ns = at;
    if (!set_alarm(c, at))
        return WS__ERROR__OK;
    o->wait_seq = 0;
    o->n_releases--;
    snprintf(ret_text, size, "no alarm can be set on the device's clock");
    return WS__ERROR__INTERNAL;
}

static struct ws_client *client_of(struct ws_server *s, uint32_t id)
{
    ws_list_for_each (n, &s->clients.all) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        if (c->id == id)
            return c;
    }
    return NULL;
}

/* Too early: once more. A device without alarms rings at once, whatever its clock says. */
static void rang(struct ws_client *c, uint64_t at_ns)
{
    struct ws_device *d = clock_of(c);
    if (!d->ops->alarm || ws_device_now_ns(d) >= at_ns || set_alarm(c, at_ns))
        answer(c, at_ns);
}

void ws_periods_turn(struct ws_server *s)
{
    for (struct ws_rung *r = ws_alarms_take(s->periods), *next; r; r = next) {
        struct ws_client *c = client_of(s, r->who);
        next = r->next;
        if (c && c->jobs.own.wait_seq == r->what)
            rang(c, r->alarm.at_ns);
        free(r);
    }
}
