// SPDX-License-Identifier: Apache-2.0
/* Invariant: an alarm that rings is in the list before it gives its reference back, so
 * ws_alarms_pending() never misses it. */
#include "backend/scheduling/alarms.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"

struct ws_alarm_queue {
    _Atomic unsigned n_refs;
    _Atomic bool gone;
    _Atomic(struct ws_rung *) rung; /* newest first */
    int wake_fd;
};

int ws_alarms_new(struct ws_alarm_queue **ret, int wake_fd)
{
    struct ws_alarm_queue *a = ws_alloc(sizeof(*a));
    if (!a)
        return ws_raise(-ENOMEM);
    a->n_refs = 1;
    a->wake_fd = dup(wake_fd);
    if (a->wake_fd < 0) {
        free(a);
        return ws_raise(-errno);
    }
    *ret = a;
    return 0;
}

static void unref(struct ws_alarm_queue *a)
{
    if (atomic_fetch_sub(&a->n_refs, 1) != 1)
        return;
    for (struct ws_rung *r = a->rung, *next; r; r = next) {
        next = r->next;
        free(r);
    }
    close(a->wake_fd);
    free(a);
}

void ws_alarms_leave(struct ws_alarm_queue *a)
{
    if (!a)
        return;
    atomic_store(&a->gone, true);
    unref(a);
}

static void ring(struct ws_alarm *alarm)
{
    struct ws_rung *r = WS_CONTAINER_OF(alarm, struct ws_rung, alarm);
    struct ws_alarm_queue *a = r->of;
    struct ws_rung *head = atomic_load(&a->rung);
    do {
        r->next = head;
    } while (!atomic_compare_exchange_weak(&a->rung, &head, r));
    if (!atomic_load(&a->gone)) {
        uint64_t one = 1;
        ssize_t ignored = write(a->wake_fd, &one, sizeof(one));
        (void)ignored; /* full means that it is readable already */
    }
    unref(a);
}

int ws_alarms_set(struct ws_alarm_queue *a, struct ws_device *device, uint64_t at_ns, uint32_t who,
                  uint64_t what)
{
    struct ws_rung *r = ws_alloc(sizeof(*r));
    if (!r)
        return ws_raise(-ENOMEM);
    *r = (struct ws_rung){
        .alarm = {.at_ns = at_ns, .ring = ring}, .of = a, .who = who, .what = what};
    atomic_fetch_add(&a->n_refs, 1);
    int e = ws_device_alarm(device, &r->alarm);
    if (e) {
        unref(a);
        free(r);
    }
    return e;
}

bool ws_alarms_pending(const struct ws_alarm_queue *a)
{
    return atomic_load(&a->n_refs) > 1 || atomic_load(&a->rung);
}

struct ws_rung *ws_alarms_take(struct ws_alarm_queue *a)
{
    return atomic_load_explicit(&a->rung, memory_order_relaxed) ? atomic_exchange(&a->rung, NULL)
                                                                : NULL;
}
