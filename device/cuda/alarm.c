// SPDX-License-Identifier: Apache-2.0
/* Alarms: a thread that sleeps until the earliest. They are few (the policy's timers), so they are searched, not sorted. Alarms ring
 * without the lock, and may set others. */
#include <time.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/cuda/cuda_private.h"

/* Index of the earliest. There is one. */
static size_t earliest(const struct ws_cuda *d)
{
    size_t best = 0;
    for (size_t k = 1; k < d->n_alarms; k++)
        if (d->alarms[k]->at_ns < d->alarms[best]->at_ns)
            best = k;
    return best;
}

static void sleep_until(struct ws_cuda *d, uint64_t at_ns, uint64_t now_ns)
{
    uint64_t until = ws_cuda_host_ns() + WS_MIN(at_ns - now_ns, 3600 * WS_NS_PER_S);
    struct timespec t = {(time_t)(until / WS_NS_PER_S), (long)(until % WS_NS_PER_S)};
    pthread_cond_timedwait(&d->alarm_wake, &d->alarm_lock, &t);
}

static void *alarmer_main(void *arg)
{
    struct ws_cuda *d = arg;
    pthread_mutex_lock(&d->alarm_lock);
    while (d->n_alarms || !d->alarms_end) {
        if (!d->n_alarms) {
            pthread_cond_wait(&d->alarm_wake, &d->alarm_lock);
            continue;
        }
        size_t k = earliest(d);
        struct ws_alarm *a = d->alarms[k];
        uint64_t now = ws_cuda_now_ns(d);
        if (now < a->at_ns && !d->alarms_end) {
            sleep_until(d, a->at_ns, now);
            continue;
        }
        d->alarms[k] = d->alarms[--d->n_alarms];
        pthread_mutex_unlock(&d->alarm_lock);
        a->ring(a);
        pthread_mutex_lock(&d->alarm_lock);
    }
    pthread_mutex_unlock(&d->alarm_lock);
    return NULL;
}

int ws_cuda_alarm(struct ws_device *dev, struct ws_alarm *a)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    pthread_mutex_lock(&d->alarm_lock);
    int r = ws_grow((void **)&d->alarms, &d->cap_alarms, d->n_alarms + 1, sizeof *d->alarms);
    if (!r) {
        d->alarms[d->n_alarms++] = a;
        pthread_cond_signal(&d->alarm_wake);
    }
    pthread_mutex_unlock(&d->alarm_lock);
    return r ? ws_forward(r) : 0;
}

int ws_cuda_alarms_open(struct ws_cuda *d)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&d->alarm_wake, &a);
    pthread_condattr_destroy(&a);
    pthread_mutex_init(&d->alarm_lock, NULL);
    int r = pthread_create(&d->alarmer, NULL, alarmer_main, d);
    d->alarmer_on = !r;
    return r ? ws_raise(-EAGAIN) : 0;
}

void ws_cuda_alarms_close(struct ws_cuda *d)
{
    if (!d->alarmer_on)
        return;
    pthread_mutex_lock(&d->alarm_lock);
    d->alarms_end = true;
    pthread_cond_signal(&d->alarm_wake);
    pthread_mutex_unlock(&d->alarm_lock);
    pthread_join(d->alarmer, NULL);
    free(d->alarms);
    pthread_cond_destroy(&d->alarm_wake);
    pthread_mutex_destroy(&d->alarm_lock);
}
