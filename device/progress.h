/* SPDX-License-Identifier: Apache-2.0 */
/* device/progress.h - what a device's own record of a preempted launch begins with; for files of
 * device/. */
#ifndef WS_DEVICE_PROGRESS_H
#define WS_DEVICE_PROGRESS_H

#include "device/device.h"

struct ws_progress {
    void (*free)(struct ws_progress *p);
    double part; /* of the work, in device time: 0…1 */
};

#endif
