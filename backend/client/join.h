/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/join.h - joins: one action after all work that was given before it, on several
 * streams. join.c puts marks into the streams; the action runs in scheduling/join_act.c.
 * Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_JOIN_H
#define WS_BACKEND_CLIENT_JOIN_H

#include "backend/client/client.h"

struct ws_allocation;
struct ws_module;
struct ws_segment;

enum ws_join_kind {
    WS_JOIN_SYNC,
    WS_JOIN_FREE,
    WS_JOIN_UNLOAD,
    WS_JOIN_HOST_UNMAP,
    WS_JOIN_HOST_MAP,
    WS_JOIN_UNMAP,
    WS_JOIN_JOB,
    WS_JOIN_RESET
};
struct ws_join {
    /* client->joins.open, then joins.reached, then perhaps joins.quiescing */
    struct ws_list node;
    struct ws_client *client;
    enum ws_join_kind kind;
    uint64_t seq;
    bool replies;
    bool acting; /* a chore acts (scheduling/join_act.c) */
    uint32_t n_left;
    struct ws_context *context; /* SYNC, RESET */
    uint64_t end_ns;
    struct ws_list modules;     /* UNLOAD, RESET: a reference to each (ws_module.taken) */
    struct ws_list allocations; /* FREE, RESET: those that go (ws_allocation.taken) */
    struct ws_segment *segment; /* HOST_UNMAP */
    uint32_t segment_id;        /* HOST_MAP */
    uint64_t address, bytes;    /* HOST_MAP, UNMAP */
};

struct ws_client_joins {
    struct ws_list open;
    struct ws_list reached;   /* that are to act: ws_server_run_ready() */
    struct ws_list quiescing; /* joins that act once no device works for this client */
    struct ws_list held;      /* streams that wait for these */
};

/* NULL: the client has been dropped for want of memory. */
struct ws_join *ws_join_new(struct ws_client *c, enum ws_join_kind kind, uint64_t seq,
                            bool replies);
/* Starts @join (taken): a mark in each busy stream of @x, or of all contexts if NULL. */
void ws_join_start(struct ws_join *join, struct ws_context *x);
/* A mark of @join was reached, in a stream whose work had ended at @end_ns. After the last one
 * it is on client->joins.reached. */
void ws_join_mark_reached(struct ws_join *join, uint64_t end_ns);
/* The module's id is free from now on, and the module goes with the join, or with the last launch
 * that uses it. */
void ws_join_take_module(struct ws_join *join, struct ws_module *m);
/* The client can no longer name the allocation, which goes with the join. */
void ws_join_take_allocation(struct ws_join *join, struct ws_allocation *a);
/* Lets go of one thing that the join has taken. Return: false: it has no more. */
bool ws_join_free_one_taken(struct ws_join *join);
/* Of a client that is gone: one of its joins, or a thing that one has taken. Return: false: it has
 * none. */
bool ws_joins_free_one(struct ws_client *c);

#endif
