/* SPDX-License-Identifier: Apache-2.0 */
/* backend/scheduling/meters.h - looks at the GPUs' counters of energy now and then, for the learner
 * (learn/learn.h). Threads: the loop. */
#ifndef WS_BACKEND_SCHEDULING_METERS_H
#define WS_BACKEND_SCHEDULING_METERS_H

#include <stdint.h>

struct ws_server;

struct ws_meters {
    uint64_t next_ns; /* host time of the next look */
    uint32_t n_quiet; /* looks since anything ran */
};

/* Looks if it is time. Return: ms until the next look; -1: none is needed. */
int ws_meters_turn(struct ws_server *s);

#endif
