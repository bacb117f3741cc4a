// SPDX-License-Identifier: Apache-2.0
/* backend/scheduling/dispatch.h - the dispatcher stands between streams, which know in what order
 * one client's work goes, and the policy, which knows which client's work goes when, where and on
 * which SMs.
 *
 * The policy decides on *jobs*. A job is what a client gives its GPU from its first launch until it
 * waits with all of it done; or, where the program says so, from JobBegin to JobEnd
 * (client->jobs.own). While a client's job is not running, the launches at the heads of its streams
 * are held. When the job starts they go to the device with the job's SM set. When it is preempted
 * they are stopped at a block boundary and held again. With `policy = none` there are no jobs, and
 * nothing is held.
 *
 * Threads: the loop's. */
#ifndef WS_BACKEND_SCHEDULING_DISPATCH_H
#define WS_BACKEND_SCHEDULING_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/scheduling/period.h"
#include "base/macros.h"
#include "protocol/protocol.h"

enum { WS_TRACED_DECISIONS_MAX = 128 };

struct ws_client;
struct ws_context;
struct ws_config;
struct ws_command;
struct ws_server;
struct ws_viewer;
struct ws_stream;
struct ws_dispatch;
struct ws_gpu_task;

struct ws_client_jobs {
    struct ws_gpu_task *task; /* NULL: it has had no job yet */
    uint32_t n_open;
    struct ws_own_job own;  /* what the program itself says of its job */
    struct ws_list waiting; /* server->queues.waiting */
    bool gated;             /* it has a driver of its own: see gated.c */
    uint32_t n_gated;       /* its gated jobs that were let go and have not ended */
};

/* Return: 0; WS_CONFIG_E_INVALID (no such policy, or option: @ret_error); negative. With policy
 * "none": 0 and *ret NULL. */
WS_MUST_CHECK int ws_dispatch_new(struct ws_dispatch **ret, struct ws_server *s, char *ret_error,
                                  size_t error_bytes);
struct ws_dispatch *ws_dispatch_free(struct ws_dispatch *d); /* NULL ok; clients are gone */
/* The name of the policy in force, "none" where there is none; *ret_options: its options as they
 * were given, with blanks between them. Borrowed until the next policy. */
const char *ws_dispatch_policy(const struct ws_server *s, const char **ret_options);
/* Another policy from now on, for what waits too; "none": nothing waits any more. @options:
 * "name=value" strings, NULL at the end.
 * Return: 0, or as ws_dispatch_new() with everything as it was. */
WS_MUST_CHECK int ws_dispatch_set_policy(struct ws_server *s, const char *name,
                                         const char *const *options, char *ret_error,
                                         size_t error_bytes);

/* The launch (or, where the task's copies count, copy) at the head of @s may go now; if so it
 * has its SM set and @s its GPU. Else @s is listed and will be woken. */
bool ws_dispatch_pass(struct ws_stream *s, struct ws_command *j);
/* An operation of the client's has ended on its device (or was stopped there). */
void ws_dispatch_op_ended(struct ws_command *j);
/* The client waits, and all it has given before is done. ws_client_reply() puts those that have a
 * job open on server->queues.waiting; this takes it off there. */
void ws_dispatch_waits(struct ws_client *c);
/* It is being dropped: its jobs end here. */
void ws_dispatch_forget(struct ws_client *c);

struct ws_dispatch_counts { /* since the policy was set */
    uint64_t n_jobs, n_preemptions;
    uint64_t n_merged; /* launches made of several clients' */
    uint64_t n_moves;  /* of clients' memory between GPUs */
};
struct ws_dispatch_counts ws_dispatch_counts(const struct ws_server *s);

/* Whether the client has a job with a deadline open; ms that are left of the nearest one,
 * negative if it is late. */
bool ws_dispatch_deadline(const struct ws_client *c, double *ret_left_ms);

/* What was considered, predicted and chosen for job @id (0: the newest that @viewer may see), as
 * text with a line for each decision. Return: a malloc'ed text, or NULL: not known (any more), not
 * for @viewer, or out of memory. */
char *ws_dispatch_explain(struct ws_server *s, uint64_t id, const struct ws_viewer *viewer);
struct ws_traced_decisions {
    /* the messages and what they name: of the arena */
    Ws__TraceDecision *v[WS_TRACED_DECISIONS_MAX];
    size_t n;
    uint64_t seen, last; /* serial numbers, from 1: looked at, newest there is */
};
/* The decisions after number @after that @viewer may see, as many as there is room for. Return: 0
 * or -ENOMEM. */
WS_MUST_CHECK int ws_dispatch_traced(struct ws_server *s, uint64_t after,
                                     const struct ws_viewer *viewer,
                                     struct ws_traced_decisions *ret);
/* The job that the context has open, 0: none. */
uint64_t ws_dispatch_job_of(const struct ws_context *x);
/* Gated clients (gated.c): such a job has its client's GPU as a whole, alone; it can't be
 * preempted, migrated or merged. It ends by ws_dispatch_gate_end(), after which the client may
 * have @device_ns (0: not known) of its GPU. */
bool ws_dispatch_is_on(const struct ws_server *s); /* there is a policy */
bool ws_dispatch_gate_begin(struct ws_context *x);
void ws_dispatch_gate_end(struct ws_context *x, uint64_t n_launches, uint64_t device_ns,
                          uint64_t energy_uj);
/* Rings due alarms, and looks after jobs that others wait for; called each turn. */
void ws_dispatch_turn(struct ws_server *s);
/* At the end of a turn: ms until it wants to be called again; -1: when something happens. */
int ws_dispatch_left_ms(const struct ws_server *s);

#endif
