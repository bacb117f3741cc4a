/* SPDX-License-Identifier: Apache-2.0 */
/* device/alarms.h - alarms of a device whose clock passes by itself: a thread that sleeps until the
 * earliest. */
#ifndef WS_DEVICE_ALARMS_H
#define WS_DEVICE_ALARMS_H

#include <pthread.h>
#include "device/device.h"

struct ws_alarms {
    struct ws_device *device; /* whose clock it is */
    pthread_t thread;
    bool on, end;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct ws_alarm **v; /* in no order */
    size_t n, cap;
};
/* Zeroed before. Return: 0 or -EAGAIN. */
WS_MUST_CHECK int ws_alarms_open(struct ws_alarms *a, struct ws_device *d);
/* Rings what is left. On one that was never opened: nothing. */
void ws_alarms_close(struct ws_alarms *a);
/* As ws_device_alarm(). */
WS_MUST_CHECK int ws_alarms_add(struct ws_alarms *a, struct ws_alarm *alarm);

#endif
