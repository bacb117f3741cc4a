/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/pace.h - calls at a steady pace, and how late each of them ended. A call counts from
 * the moment at which it was due, so that one long stall makes all calls late that were due in it:
 * if only calls that were begun counted, a stall of two seconds would be one late call of a
 * thousand. Threads: none. */
#ifndef WS_TESTS_ATTACK_PACE_H
#define WS_TESTS_ATTACK_PACE_H

#include <stdint.h>

enum { PACE_MOST = 1 << 16 };
struct pace {
    uint64_t period_ns, due_ns; /* due_ns: of the next call; 0: begin now */
    unsigned n;                 /* calls that ended, at most PACE_MOST */
    uint32_t late_us[PACE_MOST];
};
/* Sleeps until the next call is due. */
void pace_wait(struct pace *p);
/* The call has ended. */
void pace_done(struct pace *p);
/* Counts the calls that are due and were not made, and sorts. Once, at the end. */
void pace_end(struct pace *p);
/* After pace_end(): the time within which so many thousandths of the calls ended, in us. */
uint32_t pace_permille(const struct pace *p, unsigned permille);

#endif
