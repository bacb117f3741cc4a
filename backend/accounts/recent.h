/* SPDX-License-Identifier: Apache-2.0 */
/* backend/accounts/recent.h - an amount of time that forgets: it halves with each period that
 * passes, so that what was used long ago does not count. Threads: none. */
#ifndef WS_BACKEND_ACCOUNTS_RECENT_H
#define WS_BACKEND_ACCOUNTS_RECENT_H

#include <stdint.h>

enum { WS_RECENT_SHIFT = 26 }; /* a period is 2^26 ns, 67 ms */
struct ws_recent {             /* all 0: nothing was used */
    uint64_t ns;     /* what is left of it at the period's beginning, and what was added */
    uint64_t period; /* of the clock */
};

static inline uint64_t ws_recent_ns(const struct ws_recent *u, uint64_t now_ns)
{
    uint64_t passed = (now_ns >> WS_RECENT_SHIFT) - u->period;
    return passed < 64 ? u->ns >> passed : 0;
}
static inline void ws_recent_add(struct ws_recent *u, uint64_t now_ns, uint64_t ns)
{
    u->ns = ws_recent_ns(u, now_ns) + ns;
    u->period = now_ns >> WS_RECENT_SHIFT;
}

#endif
