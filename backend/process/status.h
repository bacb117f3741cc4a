// SPDX-License-Identifier: Apache-2.0
/* backend/process/status.h - the daemon's counters as the messages of `wattshare status`, without
 * lists: what a request is answered with, and what the metrics are printed from. Threads: the
 * loop. */
#ifndef WS_BACKEND_PROCESS_STATUS_H
#define WS_BACKEND_PROCESS_STATUS_H

#include "backend/client/client.h"
#include "backend/client/ledger.h"
#include "backend/config/task.h"
#include "backend/scheduling/energy.h"

struct ws_task_sum;

struct ws_ended { /* a client that is gone, for the status */
    uint32_t id, pid, uid;
    char exe[256], task[64], step[48], error_text[256];
    struct ws_task work;
    struct ws_energy_sum energy;
    bool gated;
    Ws__Error error;
    uint64_t start_ns;
    struct ws_client_stats stats;
    struct ws_ledger not_supported;
};
enum { WS_ENDED_MAX = 64 };
struct ws_server_stats {
    uint64_t start_ns, n_messages, n_commands;
    struct ws_ended ended[WS_ENDED_MAX]; /* ring */
    uint32_t n_ended;                    /* ever */
    struct ws_task_sum *task_sums;       /* metrics.c */
    struct ws_ledger not_supported;      /* of all clients */
};

struct ws_gpu;

/* The counters of the daemon and its policy. */
void ws_status_daemon(struct ws_server *s, Ws__StatusReply *r);
/* Initialises @o; its texts are the device's. Energy is as when the accounts were settled last
 * (ws_energy_settle()). */
void ws_status_gpu(struct ws_gpu *g, uint32_t index, Ws__GpuStatus *o);
/* What a client has used. */
void ws_status_used(const struct ws_client_stats *t, const struct ws_energy_sum *e,
                    Ws__ClientStatus *o);

/* Answers with what the sender may see: its own user's clients, and the others as a sum. */
void ws_status_reply(struct ws_server *s, const struct ws_message *msg);
void ws_status_ended(struct ws_client *c);
void ws_status_forget(struct ws_client *c); /* its last energy is known: it is freed */

#endif
