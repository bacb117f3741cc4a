// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include <time.h>

enum { STEPS_A_LOOK = 4096 }; /* about a millisecond */

_Thread_local struct ws_budget *ws_budget_now;

static uint64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

struct ws_budget *ws_budget_enter(struct ws_budget *b)
{
    struct ws_budget *before = ws_budget_now;
    ws_budget_now = b;
    if (b) {
        b->began_ns = cpu_ns() - b->ns;
        (void)ws_budget_look(b);
    }
    return before;
}

void ws_budget_leave(struct ws_budget *before)
{
    struct ws_budget *b = ws_budget_now;
    if (b)
        b->ns = cpu_ns() - b->began_ns;
    ws_budget_now = before;
}

void ws_budget_stop(struct ws_budget *b)
{
    atomic_store_explicit(&b->stop, true, memory_order_relaxed);
}

bool ws_budget_look(struct ws_budget *b)
{
    b->ns = cpu_ns() - b->began_ns;
    if (b->end)
        return false;
    if (b->pause)
        b->pause(b);
    if (atomic_load_explicit(&b->stop, memory_order_relaxed))
        b->end = WS_BUDGET_STOPPED;
    else if ((b->max_ns && b->ns > b->max_ns) || (b->max_steps && b->steps > b->max_steps))
        b->end = WS_BUDGET_TIME;
    b->look_at = b->end ? 0 : b->steps + STEPS_A_LOOK;
    if (!b->end && b->max_steps)
        b->look_at = WS_MIN(b->look_at, b->max_steps + 1);
    return !b->end;
}

bool ws_budget_take(struct ws_budget *b, uint64_t bytes)
{
    if (!b->end && b->max_bytes && (bytes > b->max_bytes || b->bytes > b->max_bytes - bytes)) {
        b->end = WS_BUDGET_BYTES;
        b->look_at = 0;
    }
    if (b->end)
        return false;
    b->bytes += bytes;
    /* Taking memory is work too. */
    return ws_budget_count(bytes / 64);
}
