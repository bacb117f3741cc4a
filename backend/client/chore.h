/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/chore.h - work of one client that may be long, such as freeing all that it has on
 * a device. It is done in parts, between the messages of others. As long as a client has a chore
 * none of its messages is handled, so that for the client its commands happen one by one. Joins of
 * work that was given earlier may act meanwhile, and loads may end. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_CHORE_H
#define WS_BACKEND_CLIENT_CHORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/list.h"

struct ws_client;
struct ws_server;

struct ws_chore { /* at the beginning of what it needs to know */
    struct ws_list node;
    /* Does a part, until @until_ns or a little longer. It may drop the client. Return: whether it
     * has come to its end. */
    bool (*go_on)(struct ws_client *c, struct ws_chore *h, uint64_t until_ns);
};

struct ws_client_chores {
    struct ws_list list;    /* the first one has begun */
    struct ws_list waiting; /* server->queues.chores: those whose sender is to be told */
};

/* For each step of a chore: whether it is time to stop. The clock is read now and then. */
static inline bool ws_chore_stops(unsigned *n_steps, uint64_t until_ns)
{
    enum { CLOCK_EVERY = 16 };
    return ++*n_steps % CLOCK_EVERY == 0 && ws_clock_ns() >= until_ns;
}

void ws_chores_init(struct ws_client *c);
/* A chore of @bytes, all 0 but the struct ws_chore. NULL: the client has been dropped for want of
 * memory. */
void *ws_chore_new(struct ws_client *c, size_t bytes,
                   bool (*go_on)(struct ws_client *c, struct ws_chore *h, uint64_t until_ns));
/* Begins it (taken), or has it wait for the chores before it. A small one has come to its end when
 * this returns, and is freed. */
void ws_chore_begin(struct ws_client *c, struct ws_chore *h);
/* Goes on until @until_ns or a little longer. Return: whether the client has no chore left. */
bool ws_chores_go_on(struct ws_client *c, uint64_t until_ns);
/* Clients whose chores have begun since the last time, one by one; NULL: none. */
struct ws_client *ws_chores_next(struct ws_server *s);
/* The client goes. */
void ws_chores_forget(struct ws_client *c);

#endif
