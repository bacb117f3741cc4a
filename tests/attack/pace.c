/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/attack/pace.h"

#include <stdlib.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void pace_wait(struct pace *p)
{
    uint64_t now = now_ns();
    if (!p->due_ns)
        p->due_ns = now;
    if (now < p->due_ns) {
        struct timespec until = {(time_t)(p->due_ns / 1000000000), (long)(p->due_ns % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
}

void pace_done(struct pace *p)
{
    if (p->n < PACE_MOST)
        p->late_us[p->n++] = (uint32_t)((now_ns() - p->due_ns) / 1000);
    p->due_ns += p->period_ns;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void pace_end(struct pace *p)
{
    while (p->due_ns && p->due_ns < now_ns() && p->n < PACE_MOST)
        pace_done(p);
    qsort(p->late_us, p->n, sizeof(p->late_us[0]), compare);
}

uint32_t pace_permille(const struct pace *p, unsigned permille)
{
    if (!p->n)
        return 0;
    unsigned at = (unsigned)((uint64_t)p->n * permille / 1000);
    return p->late_us[at < p->n ? at : p->n - 1];
}
