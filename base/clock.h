// SPDX-License-Identifier: Apache-2.0
/* base/clock.h - host time. All times are monotonic nanoseconds in uint64_t. */
#ifndef WS_BASE_CLOCK_H
#define WS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "base/macros.h"

static inline uint64_t ws_clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- milliseconds for poll(): -1 is never ---- */

/* From now until @at_ns, rounded up, an hour at most; 0 if it is past. */
static inline int ws_timeout_until(uint64_t at_ns)
{
    enum { MOST_MS = 3600000 };
    int64_t left = (int64_t)(at_ns - ws_clock_ns());
    int64_t ms = (left + (int64_t)WS_NS_PER_MS - 1) / (int64_t)WS_NS_PER_MS;
    return (int)WS_MIN(WS_MAX(ms, (int64_t)0), (int64_t)MOST_MS);
}

static inline int ws_timeout_sooner(int a_ms, int b_ms)
{
    return a_ms < 0 ? b_ms : b_ms < 0 ? a_ms : WS_MIN(a_ms, b_ms);
}

#endif
