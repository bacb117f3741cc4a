/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/client.h - what every part of a client may need of it: finding it, its errors,
 * and the end of it.
 *
 * A client that has lost one of its connections on the side leaves first (ws_client_leave()): its
 * last messages may be on their way to us still, and are handled like any others. The server
 * (process/server.c) drops it when the connection ends that they come by, or after a bounded time.
 *
 * Ending a client takes two steps. ws_client_drop() may be called anywhere; it cuts the client
 * off (nobody finds it any more, it takes no message and starts no work) and puts it on
 * server->clients.dropped. ws_clients_settle() (process/clients.h) empties that list when
 * no other function is in the middle of something: it tells the peer and takes the client out of
 * every part. Threads: the loop. */
#ifndef WS_BACKEND_CLIENT_CLIENT_H
#define WS_BACKEND_CLIENT_CLIENT_H

#include "backend/client/transport.h"
#include "backend/config/task.h"
#include "base/list.h"
#include "base/macros.h"
#include "protocol/protocol.h"

struct ws_account;
struct ws_client;
struct ws_context;
struct ws_server;

struct ws_client_stats {
    uint64_t memory_bytes, peak_memory_bytes, segment_bytes;
    uint64_t n_kernels, n_copies, bytes_in, bytes_out, device_ns, energy_uj;
    uint64_t first_start_ns, last_end_ns; /* first_start_ns UINT64_MAX: none yet */
    uint64_t n_commands, n_retired;
    uint32_t used_gpus; /* bit per GPU */
    uint64_t n_jobs, n_missed, last_job, last_response_ns, last_job_uj;
    bool last_missed;
    uint64_t n_over_lease, n_unmeasured; /* of a gated client */
    bool energy_unknown;
};

struct ws_client_who { /* the program */
    uint32_t pid, uid;
    bool local;
    bool has_cred; /* pid is the kernel's word */
    /* Bit per enum ws_resource, and _WS_RESOURCE_N for its own quota of memory: that it may have no
     * more of it is in the log. */
    uint32_t told_refused;
    bool work_known;            /* the task is by an entry of the configuration */
    uint32_t sm_limit;          /* its launches use the first so many SMs; 0: all */
    uint64_t start_ns;          /* host clock */
    struct ws_account *account; /* of its user */
    char exe[256], task[64];    /* task: as it named itself */
};
struct ws_client_errors {
    Ws__Error sticky; /* OK, or the error that lost the context */
    struct ws_context *sticky_context;
    Ws__Error async; /* for the next Sync */
    char text[256];  /* of the latest of either */
    Ws__Error drop;  /* why the client was dropped; OK: of its own accord */
    char drop_text[256];
};

struct ws_client_leaving {
    struct ws_list node; /* server->clients.leaving; in no list: it stays */
    uint64_t until_ns;   /* when it is dropped at the latest */
    const char *why;
};

enum { WS_FORGOTTEN_MAX = 256 };
struct ws_server_clients {
    struct ws_client *by_peer, *last; /* last: that was found */
    struct ws_list all, dropped,
        dying;              /* ws_client.node; dropped: yet to be taken out of every part */
    struct ws_list leaving; /* of those in all */
    uint32_t n, next_id;
    bool draining, had_any;
    uint64_t forgotten[WS_FORGOTTEN_MAX]; /* ids of peers that were told once */
    uint32_t n_forgotten;
    uint64_t told_tasks[WS_TASKS_MAX / 64 + 1]; /* bit per entry: that it was not confirmed */
};

/* The client that speaks from there; NULL: none, or it was dropped. */
struct ws_client *ws_client_find(struct ws_server *s, const struct ws_peer *peer);
/* Drops a client. @error: OK where it ended of its own accord; else the peer is told, and it is
 * logged. Does nothing the second time. */
void ws_client_drop(struct ws_client *c, Ws__Error error, const char *fmt, ...) WS_PRINTF(3, 4);
/* The same, for want of memory. Return: INTERNAL, for callers that return it. */
Ws__Error ws_client_drop_no_memory(struct ws_client *c);
/* A connection on the side of @c has ended, which ends shortly before or after the one that its
 * messages come by. @why: for the log; borrowed for good. Does nothing if @c leaves already. */
void ws_client_leave(struct ws_client *c, const char *why);

/* An error of work without a reply. A sticky one loses the context. @x: where it happened, or
 * NULL. */
void ws_client_async_error(struct ws_client *c, struct ws_context *x, Ws__Error e, const char *fmt,
                           ...) WS_PRINTF(4, 5);
/* For the reply to a Sync: the sticky error, or else the asynchronous one, which is then
 * forgotten. */
Ws__Error ws_client_take_error(struct ws_client *c);
static inline bool ws_error_is_sticky(Ws__Error e)
{
    return e >= 32 && e < 64;
}

/* @n more commands are done. */
void ws_client_retire(struct ws_client *c, uint64_t n);
/* A stream of the client may go on, a join may act, or an operation has ended: it is on
 * server->queues.ready, which scheduling/run.h empties. */
void ws_client_runs(struct ws_client *c);
/* One of its client->n_in_flight has ended on a thread of the daemon's: joins that wait for all of
 * them look again. */
void ws_client_landed(struct ws_client *c);
/* There is something to tell the client: it is on server->out.dirty, which the turn's end empties
 * (wire/out.h). */
void ws_client_touch(struct ws_client *c);

#endif
