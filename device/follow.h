/* SPDX-License-Identifier: Apache-2.0 */
/* device/follow.h - measured kernels that a software GPU follows instead of its models. */
#ifndef WS_DEVICE_FOLLOW_H
#define WS_DEVICE_FOLLOW_H

#include <stdint.h>

/* A kernel by its name; arrays are indexed by the number of SMs less one. */
struct ws_followed {
    const char *kernel;
    uint32_t n_sms;         /* that were measured, from 1 on */
    const double *time_ns;  /* 0: not measured */
    const double *power_mw; /* of the whole GPU; 0: not measured */
};

#endif
