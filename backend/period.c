// SPDX-License-Identifier: Apache-2.0
/* Jobs as programs mark them, and periods.
 *
 * Releases lie on a grid: the first is when the program first waits, the k-th k periods later, however late the program is. One that
 * has missed releases gets them at once, one after another, as an overloaded periodic task does. Times are those of the clock of the
 * GPU that the program's device 0 is on; where that clock passes only with work, waiting moves it on.
 *
 * A job's response time is counted from its release if the program waited for one, else from its beginning, to the device time at
 * which the last of its operations was done.
 *
 * An alarm rings on a device's thread, perhaps when its client or even the server is gone, and can't be taken back: it is an object
 * of its own that knows its client by number only. */
#include "backend/backend.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/period.h"
#include "base/alloc.h"

struct release { /* an alarm */
    struct ws_alarm alarm;
    struct ws_period_hub *hub;
    struct release *next; /* in hub->rung */
    uint32_t client;
    uint64_t seq;
};

struct ws_period_hub {
    _Atomic unsigned n_refs;
    _Atomic bool gone;
    _Atomic(struct release *) rung; /* newest first */
    int wake_fd;
};

int ws_period_hub_new(struct ws_period_hub **ret, int wake_fd)
{
    struct ws_period_hub *h = ws_alloc(sizeof *h);
    if (!h)
        return ws_raise(-ENOMEM);
    h->n_refs = 1;
    h->wake_fd = dup(wake_fd);
    if (h->wake_fd < 0) {
        free(h);
        return ws_raise(-errno);
    }
    *ret = h;
    return 0;
}

static void unref(struct ws_period_hub *h)
{
    if (atomic_fetch_sub(&h->n_refs, 1) != 1)
        return;
    for (struct release *r = h->rung, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    close(h->wake_fd);
    free(h);
}

void ws_period_hub_leave(struct ws_period_hub *h)
{
    if (!h)
        return;
    atomic_store(&h->gone, true);
    unref(h);
}

static void ring(struct ws_alarm *a)
{
    struct release *r = WS_CONTAINER_OF(a, struct release, alarm);
    struct ws_period_hub *h = r->hub;
    struct release *head = atomic_load(&h->rung);
    do {
        r->next = head;
    } while (!atomic_compare_exchange_weak(&h->rung, &head, r));
    if (!atomic_load(&h->gone)) {
        uint64_t one = 1;
        ssize_t ignored = write(h->wake_fd, &one, sizeof one);
        (void)ignored; /* full means that it is readable already */
    }
    unref(h);
}

static struct ws_device *clock_of(struct ws_client *c)
{
    return c->contexts[0].gpu->device;
}

/* ---- jobs ---- */

Ws__Error ws_own_begin(struct ws_client *c, uint64_t deadline_ns, char *ret_text, size_t size)
{
    struct ws_own_job *o = &c->own;
    if (!c->n_contexts)
        return WS__ERROR__INVALID_DEVICE;
    if (o->open || !ws_dispatch_segment_begin(c, deadline_ns)) {
        snprintf(ret_text, size, "a segment is open already: end it first");
        return WS__ERROR__NOT_READY;
    }
    o->open = true;
    o->begin_ns = ws_device_now_ns(clock_of(c));
    o->release_ns = o->has_release ? o->period_release_ns : o->begin_ns;
    o->has_release = false;
    o->deadline_ns = deadline_ns ? deadline_ns : (uint64_t)(c->work.deadline_ms * 1e6);
    o->begin_uj = c->stats.energy_uj;
    c->own_release_ms -= (double)(o->begin_ns - o->release_ns) / 1e6;
    return WS__ERROR__OK;
}

Ws__Error ws_own_end(struct ws_client *c, uint64_t seq, char *ret_text, size_t size)
{
    struct ws_own_job *o = &c->own;
    if (!o->open || o->ending) {
        snprintf(ret_text, size, "no segment is open: begin one first");
        return WS__ERROR__INVALID_VALUE;
    }
    struct ws_join *j = ws_join_new(c, WS_JOIN_SEGMENT, seq, true);
    if (!j)
        return WS__ERROR__OK; /* dropped */
    o->ending = true;
    ws_join_start(j, NULL);
    return WS__ERROR__OK;
}

void ws_own_ended(struct ws_join *join)
{
    struct ws_client *c = join->client;
    struct ws_own_job *o = &c->own;
    Ws__Reply r = WS__REPLY__INIT;
    Ws__SegmentStats t = WS__SEGMENT_STATS__INIT;
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
    (void)ws_dispatch_segment_end(c); /* one that a reset has ended is gone already */
    r.seq = join->seq;
    r.error = ws_client_take_error(c);
    r.text = r.error ? c->error_text : (char *)"";
    r.segment = &t;
    ws_client_reply(c, &r);
}

/* ---- periods ---- */

static void answer(struct ws_client *c, uint64_t release_ns)
{
    struct ws_own_job *o = &c->own;
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
    struct ws_period_hub *h = c->server->periods;
    struct release *r = ws_alloc(sizeof *r);
    if (!r)
        return -ENOMEM;
    r->alarm.at_ns = at_ns;
    r->alarm.ring = ring;
    r->hub = h;
    r->client = c->id;
    r->seq = c->own.wait_seq;
    atomic_fetch_add(&h->n_refs, 1);
    int e = ws_device_alarm(clock_of(c), &r->alarm);
    if (e) {
        unref(h);
        free(r);
    }
    return e;
}

Ws__Error ws_own_wait(struct ws_client *c, uint64_t seq, char *ret_text, size_t size)
{
    struct ws_own_job *o = &c->own;
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
    ws_list_for_each (n, &s->clients) {
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
    if (WS_LIKELY(!atomic_load_explicit(&s->periods->rung, memory_order_relaxed)))
        return;
    for (struct release *r = atomic_exchange(&s->periods->rung, NULL), *next; r; r = next) {
        struct ws_client *c = client_of(s, r->client);
        next = r->next;
        if (c && c->own.wait_seq == r->seq)
            rang(c, r->alarm.at_ns);
        free(r);
    }
}
