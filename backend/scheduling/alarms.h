// SPDX-License-Identifier: Apache-2.0
/* backend/scheduling/alarms.h - alarms on devices' clocks, for the loop. An alarm can't be taken
 * back, and it rings on a thread of the device, perhaps when whoever set it, or even the server,
 * is gone. So an alarm touches only an object of its own, which the last one that needs it
 * frees, and numbers say what it stands for. Threads: the loop's. */
#ifndef WS_BACKEND_SCHEDULING_ALARMS_H
#define WS_BACKEND_SCHEDULING_ALARMS_H

#include <stdbool.h>
#include <stdint.h>
#include "base/macros.h"
#include "device/device.h"

struct ws_alarm_queue;
struct ws_rung { /* one that has rung */
    struct ws_alarm alarm;
    struct ws_alarm_queue *of;
    struct ws_rung *next;
    uint32_t who;
    uint64_t what;
};

/* @wake_fd: written to when one rings; duplicated. Return: 0 or negative. */
WS_MUST_CHECK int ws_alarms_new(struct ws_alarm_queue **ret, int wake_fd);
void ws_alarms_leave(struct ws_alarm_queue *a); /* goes with the last alarm; NULL ok */
/* One more, at @at_ns of @device's clock. Return: 0 or negative. */
WS_MUST_CHECK int ws_alarms_set(struct ws_alarm_queue *a, struct ws_device *device, uint64_t at_ns,
                                uint32_t who, uint64_t what);
/* Some are still to ring, or have rung and were not taken. */
bool ws_alarms_pending(const struct ws_alarm_queue *a);
/* All that have rung since the last asking, the newest first; NULL: none. Each is the caller's,
 * to free(). */
struct ws_rung *ws_alarms_take(struct ws_alarm_queue *a);

#endif
