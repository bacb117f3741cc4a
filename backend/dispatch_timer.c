// SPDX-License-Identifier: Apache-2.0
/* Alarms of the device's clock, for the loop. An alarm can't be taken back and rings on a thread of the device, perhaps when the
 * dispatcher is gone: so all it touches is an object of its own, which the last of them frees. */
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/dispatch_private.h"
#include "base/alloc.h"

struct ws_dispatch_timer {
    _Atomic unsigned n_refs;
    _Atomic bool rang, gone;
    int wake_fd;
};

struct alarm_of {
    struct ws_alarm alarm;
    struct ws_dispatch_timer *timer;
};

int ws_dispatch_timer_new(struct ws_dispatch_timer **ret, int wake_fd)
{
    struct ws_dispatch_timer *t = ws_alloc(sizeof *t);
    if (!t)
        return ws_raise(-ENOMEM);
    t->n_refs = 1;
    t->wake_fd = dup(wake_fd);
    if (t->wake_fd < 0) {
        free(t);
        return ws_raise(-errno);
    }
    *ret = t;
    return 0;
}

static void unref(struct ws_dispatch_timer *t)
{
    if (atomic_fetch_sub(&t->n_refs, 1) != 1)
        return;
    close(t->wake_fd);
    free(t);
}

void ws_dispatch_timer_leave(struct ws_dispatch_timer *t)
{
    if (!t)
        return;
    atomic_store(&t->gone, true);
    unref(t);
}

static void ring(struct ws_alarm *a)
{
    struct alarm_of *o = WS_CONTAINER_OF(a, struct alarm_of, alarm);
    struct ws_dispatch_timer *t = o->timer;
    atomic_store(&t->rang, true);
    if (!atomic_load(&t->gone)) {
        uint64_t one = 1;
        ssize_t ignored = write(t->wake_fd, &one, sizeof one);
        (void)ignored; /* full means that it is readable already */
    }
    unref(t);
    free(o);
}

int ws_dispatch_timer_set(struct ws_dispatch_timer *t, struct ws_device *device, uint64_t at_ns)
{
    struct alarm_of *o = ws_alloc(sizeof *o);
    if (!o)
        return ws_raise(-ENOMEM);
    o->alarm.at_ns = at_ns;
    o->alarm.ring = ring;
    o->timer = t;
    atomic_fetch_add(&t->n_refs, 1);
    int r = ws_device_alarm(device, &o->alarm);
    if (r) {
        unref(t);
        free(o);
    }
    return r;
}

bool ws_dispatch_timer_pending(struct ws_dispatch_timer *t)
{
    return atomic_load(&t->n_refs) > 1 || atomic_load(&t->rang);
}

bool ws_dispatch_timer_rang(struct ws_dispatch_timer *t)
{
    return atomic_load_explicit(&t->rang, memory_order_relaxed) && atomic_exchange(&t->rang, false);
}
