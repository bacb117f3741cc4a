// SPDX-License-Identifier: Apache-2.0
/* base/clock.h - host time. All times are monotonic nanoseconds in uint64_t. */
#ifndef WS_BASE_CLOCK_H
#define WS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t ws_clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#endif
