// SPDX-License-Identifier: Apache-2.0
/* Alarms are few (the policy's timers), so they are searched, not sorted. They ring without the
 * lock, and may set others. */
#include "device/alarms.h"

#include <time.h>

#include "base/alloc.h"
#include "base/error.h"

/* Index of the earliest. There is one. */
static size_t earliest(const struct ws_alarms *a)
{
    size_t best = 0;
    for (size_t k = 1; k < a->n; k++)
        if (a->v[k]->at_ns < a->v[best]->at_ns)
            best = k;
    return best;
}

static void sleep_until(struct ws_alarms *a, uint64_t at_ns, uint64_t now_ns)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t until = (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec +
                     WS_MIN(at_ns - now_ns, 3600 * WS_NS_PER_S);
    t = (struct timespec){(time_t)(until / WS_NS_PER_S), (long)(until % WS_NS_PER_S)};
    pthread_cond_timedwait(&a->wake, &a->lock, &t);
}

static void *alarms_main(void *arg)
{
    struct ws_alarms *a = arg;
    pthread_mutex_lock(&a->lock);
    while (a->n || !a->end) {
        if (!a->n) {
            pthread_cond_wait(&a->wake, &a->lock);
            continue;
        }
        size_t k = earliest(a);
        struct ws_alarm *one = a->v[k];
        uint64_t now = ws_device_now_ns(a->device);
        if (now < one->at_ns && !a->end) {
            sleep_until(a, one->at_ns, now);
            continue;
        }
        a->v[k] = a->v[--a->n];
        pthread_mutex_unlock(&a->lock);
        one->ring(one);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

int ws_alarms_add(struct ws_alarms *a, struct ws_alarm *alarm)
{
    pthread_mutex_lock(&a->lock);
    int r = ws_grow((void **)&a->v, &a->cap, a->n + 1, sizeof(*a->v));
    if (!r) {
        a->v[a->n++] = alarm;
        pthread_cond_signal(&a->wake);
    }
    pthread_mutex_unlock(&a->lock);
    return r ? ws_forward(r) : 0;
}

int ws_alarms_open(struct ws_alarms *a, struct ws_device *d)
{
    pthread_condattr_t attr;
    a->device = d;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&a->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&a->lock, NULL);
    int r = pthread_create(&a->thread, NULL, alarms_main, a);
    a->on = !r;
    return r ? ws_raise(-EAGAIN) : 0;
}

void ws_alarms_close(struct ws_alarms *a)
{
    if (!a->on)
        return;
    pthread_mutex_lock(&a->lock);
    a->end = true;
    pthread_cond_signal(&a->wake);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    free(a->v);
    pthread_cond_destroy(&a->wake);
    pthread_mutex_destroy(&a->lock);
}
