// SPDX-License-Identifier: Apache-2.0
/* base/hurry.h - threads whose answer others wait for. */
#ifndef WS_BASE_HURRY_H
#define WS_BASE_HURRY_H
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

/* Lets the calling thread run at once when it has something to do, even if every processor is busy.
 * For threads that mostly sleep. Threads and processes that it makes later are ordinary ones.
 *
 * Only root may do so, or a process that has RLIMIT_RTPRIO. Elsewhere the thread only has the
 * greater part of a processor, where RLIMIT_NICE allows it (LimitNICE= of a service): with it, the
 * thread may still wait for a tick of the kernel's clock. Without either, nothing changes. */
static inline void ws_hurry(void)
{
    struct sched_param lowest = {.sched_priority = 1}, none = {0};
    if (!sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest))
        return;
    (void)sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none);
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), -10);
}
#endif
