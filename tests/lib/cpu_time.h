// SPDX-License-Identifier: Apache-2.0
/* tests/lib/cpu_time.h - what work costs the processor, for tests that bound it: other work of
 * the machine is not in it. */
#ifndef WS_TESTS_CPU_TIME_H
#define WS_TESTS_CPU_TIME_H

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

static inline uint64_t cpu_clock_ns(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Of this thread. */
static inline uint64_t cpu_ns(void)
{
    return cpu_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Of all threads of a process that is there. */
static inline uint64_t cpu_ns_of(pid_t pid)
{
    clockid_t clock;
    return clock_getcpuclockid(pid, &clock) ? 0 : cpu_clock_ns(clock);
}

#endif
