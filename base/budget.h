/* SPDX-License-Identifier: Apache-2.0 */
/* base/budget.h - how much processor time and memory a piece of work may take.
 *
 * A thread works under one budget, or under none. While it has one, memory of arenas and growing
 * arrays counts (base/arena.h, base/alloc.h), and loops that may run for long spend steps. When the
 * budget is used up, or another thread has stopped it, ws_budget_spend() says no, and every
 * allocation fails: so the work ends soon, by the ways that it has for missing memory. Whoever gave
 * the thread the budget asks afterwards how it ended. What the work has made is of no use then,
 * even if it says that it succeeded.
 *
 * Threads: the thread that works calls everything but ws_budget_stop(). */
#ifndef WS_BASE_BUDGET_H
#define WS_BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

enum ws_budget_end { WS_BUDGET_LEFT, WS_BUDGET_TIME, WS_BUDGET_BYTES, WS_BUDGET_STOPPED };

/* Zero is a budget without limits. */
struct ws_budget {
    uint64_t max_ns;               /* of the thread's processor time; 0: no limit */
    uint64_t max_bytes, max_steps; /* likewise */
    /* Called about every millisecond of work, by ws_budget_spend() alone; may keep the thread
     * waiting. NULL: not. */
    void (*pause)(struct ws_budget *b);
    _Atomic bool stop;
    enum ws_budget_end end;
    uint64_t ns, bytes, steps;  /* taken so far; bytes: now */
    uint64_t look_at, began_ns; /* private */
};

extern _Thread_local struct ws_budget *ws_budget_now;     /* private */
bool ws_budget_look(struct ws_budget *b);                 /* private */
bool ws_budget_take(struct ws_budget *b, uint64_t bytes); /* private */

/* The thread works under @b until ws_budget_leave(), which gives it back the budget before. */
struct ws_budget *ws_budget_enter(struct ws_budget *b);
void ws_budget_leave(struct ws_budget *before);
/* Any thread. */
void ws_budget_stop(struct ws_budget *b);

/* Counts @steps of work: about as many instructions or names looked at. Not while a lock is held:
 * the thread may be kept waiting. Return: false: stop. */
static inline bool ws_budget_spend(uint64_t steps)
{
    struct ws_budget *b = ws_budget_now;
    if (WS_LIKELY(!b))
        return true;
    b->steps += steps;
    return WS_LIKELY(b->steps < b->look_at) || ws_budget_look(b);
}

/* The same without a look at the time: also where locks are held. */
static inline bool ws_budget_count(uint64_t steps)
{
    struct ws_budget *b = ws_budget_now;
    if (WS_LIKELY(!b))
        return true;
    b->steps += steps;
    return !b->end;
}

/* Counts @bytes more that are held. Return: false: they must not be taken, and are not counted. */
static inline bool ws_budget_charge(uint64_t bytes)
{
    return WS_LIKELY(!ws_budget_now) || ws_budget_take(ws_budget_now, bytes);
}

/* Bytes are no longer held. */
static inline void ws_budget_give_back(uint64_t bytes)
{
    struct ws_budget *b = ws_budget_now;
    if (b)
        b->bytes -= WS_MIN(bytes, b->bytes);
}

/* What the thread's work holds, as far as it counts. */
static inline uint64_t ws_budget_held(void)
{
    return ws_budget_now ? ws_budget_now->bytes : 0;
}

#endif
