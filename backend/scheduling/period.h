// SPDX-License-Identifier: Apache-2.0
/* backend/scheduling/period.h - what programs say of their jobs themselves
 * (frontend/wattshare.h): where one begins and ends, and that they wait for the next period.
 * Threads: the loop's. */
#ifndef WS_BACKEND_SCHEDULING_PERIOD_H
#define WS_BACKEND_SCHEDULING_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/list.h"
#include "base/macros.h"
#include "protocol/protocol.h"

struct ws_client;
struct ws_join;
struct ws_server;

struct ws_own_job {
    bool open;                                            /* between JobBegin and JobEnd */
    bool ending;                                          /* JobEnd waits for the work */
    uint64_t release_ns, deadline_ns, begin_ns, begin_uj; /* of the open one */
    bool has_base,
        has_release; /* wait_period has been called; it answered and no job began since */
    uint64_t base_ns, period_release_ns;
    uint64_t n_releases;
    uint64_t wait_seq; /* of the wait_period under way; 0: none */
};

Ws__Error ws_own_begin(struct ws_client *c, uint64_t deadline_ns, char *ret_text, size_t size);
/* Return: OK, and JobEnd @seq is answered and retired when the work is done; or an error, and it
 * is the caller's. */
Ws__Error ws_own_end(struct ws_client *c, uint64_t seq, char *ret_text, size_t size);
void ws_own_ended(struct ws_join *join); /* the join's end: answers */
/* OK: answered and retired at the next release. */
Ws__Error ws_own_wait(struct ws_client *c, uint64_t seq, char *ret_text, size_t size);
/* Answers those whose time has come. Once a turn. */
void ws_periods_turn(struct ws_server *s);

#endif
