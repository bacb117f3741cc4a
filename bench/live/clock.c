// SPDX-License-Identifier: Apache-2.0
// The device's time passes more slowly than the host's, and stands still while kernels are
// executed. A program that waits for a moment of the device's time asks again and again. In between
// it sleeps for a part of what is left, at the pace seen so far.
#include "clock.h"

#include "frontend/wattshare.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t host_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t live_now_ns(void)
{
    return wattshare_now_ns();
}

void live_wait_until(uint64_t at_ns)
{
    enum { LEAST_NS = 50000, MOST_NS = 20000000 };
    uint64_t first = live_now_ns(), host_first = host_ns();
    double pace = 1; /* host time for a unit of device time */
    for (uint64_t t = first; t < at_ns; t = live_now_ns()) {
        if (t > first)
            pace = (double)(host_ns() - host_first) / (double)(t - first);
        double sleep_ns = 0.8 * pace * (double)(at_ns - t);
        sleep_ns = sleep_ns < LEAST_NS ? LEAST_NS : sleep_ns > MOST_NS ? MOST_NS : sleep_ns;
        nanosleep(&(struct timespec){.tv_nsec = (long)sleep_ns}, NULL);
    }
}

static void must(int r, const char *what)
{
    if (r && r != WATTSHARE_ABSENT) {
        printf("{\"error\": \"%s gave %d\"}\n", what, r);
        exit(1);
    }
}

void live_job_begin(uint64_t deadline_ns)
{
    must(wattshare_job_begin(deadline_ns), "wattshare_job_begin");
}

uint64_t live_job_end(void)
{
    struct wattshare_job j;
    must(wattshare_job_end(), "wattshare_job_end");
    return wattshare_job_stats(&j) == WATTSHARE_OK && j.end_ns ? j.end_ns : live_now_ns();
}
