/* SPDX-License-Identifier: Apache-2.0 */
/* backend/backend.h - the daemon's state: the server, its GPUs and its clients, put together
 * from the states of their parts, each of which is explained in the part's own header.
 * Everything here belongs to the loop thread; devices speak to it only through ws_command_done()
 * (scheduling/finished.h), which hands finished operations over a lock-free list.
 *
 *   server: GPUs, cache of code, clients
 *   client: contexts (one for each device that it sees), allocations, modules, events, segments
 *   context: streams; stream: commands in order
 *
 * Lifetimes:
 *   1. A client may be dropped at any point (ws_client_drop()). From then on it takes no message
 *      and starts no work, and nobody finds it; all else of it stays as it is, so whoever is in
 *      the middle of something can finish.
 *   2. ws_clients_settle() takes it out of every part. It runs between messages and between
 *      the parts of a turn, when no function holds anything of a client but the client itself.
 *   3. It is freed at the end of a turn in which no device works for it any more
 *      (ws_clients_reap()); one that has very much, in parts at the ends of several turns. So a
 *      pointer to a client stays good for the whole turn.
 *   4. A stream may be freed by ws_server_run_ready() (scheduling/run.h) and by nothing else but
 *      its client's end. */
#ifndef WS_BACKEND_BACKEND_H
#define WS_BACKEND_BACKEND_H

#include "backend/accounts/account.h"
#include "backend/client/chore.h"
#include "backend/client/client.h"
#include "backend/client/command.h"
#include "backend/client/event.h"
#include "backend/client/host_function.h"
#include "backend/client/join.h"
#include "backend/client/ledger.h"
#include "backend/client/memory.h"
#include "backend/client/module.h"
#include "backend/client/output.h"
#include "backend/client/relaunch.h"
#include "backend/client/reply.h"
#include "backend/client/segment.h"
#include "backend/client/sender.h"
#include "backend/client/stream.h"
#include "backend/code/cache.h"
#include "backend/code/discard.h"
#include "backend/code/load.h"
#include "backend/config/task.h"
#include "backend/process/config.h"
#include "backend/process/status.h"
#include "backend/scheduling/dispatch.h"
#include "backend/scheduling/energy.h"
#include "backend/scheduling/fused.h"
#include "backend/scheduling/gated.h"
#include "backend/scheduling/meters.h"
#include "backend/scheduling/stuck.h"
#include "backend/steps/steps.h"
#include "backend/wire/handoff.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "device/device.h"
#include "device/space.h"
#include "protocol/protocol.h"

struct ws_alarm_queue;
struct ws_energy_log;
struct ws_learn;
struct ws_tracing;

struct ws_client {
    struct ws_server *server;
    uint32_t id;
    struct ws_peer peer;
    bool dropped, freeing;   /* freeing: part of it is freed already */
    struct ws_limits limits; /* as it was told: those of the configuration when it came */
    struct ws_client_who who;
    struct ws_task work;        /* which task it is */
    struct ws_batch_step *step; /* of a batch scheduler; NULL: none */
    struct ws_client_stats stats;
    struct ws_energy energy;
    struct ws_client_errors errors;

    struct ws_client_memory memory;
    struct ws_context *contexts;
    uint32_t n_contexts;
    struct ws_client_streams streams;
    struct ws_client_commands commands;
    uint64_t n_in_flight; /* operations that a device knows */
    uint64_t n_objects;   /* that are charged; what its end finds goes with it */
    struct ws_client_events events;
    struct ws_host_function *host_functions; /* by id */
    struct ws_client_modules modules;
    struct ws_client_segments segments;
    struct ws_client_joins joins;
    struct ws_client_chores chores;
    struct ws_output_fifo output;
    struct ws_ledger not_supported;

    struct ws_client_jobs jobs;
    struct ws_client_out out;
    struct ws_client_wire wire;
    struct ws_sender sender;
    struct ws_client_leaving leaving;
    struct ws_list node; /* in one of the lists of server->clients */
    UT_hash_handle hh;   /* by peer */
};

struct ws_gpu {
    struct ws_server *server;
    struct ws_device *device;
    uint32_t n_home; /* clients whose device 0 this is */
    struct ws_gpu_energy energy;
    uint64_t n_begun, n_ended; /* operations that it was given; of these, those that have ended */
    uint64_t bytes_in, bytes_out; /* copied from the host, to the host */
    struct ws_gpu_stuck stuck;
    uint8_t uuid[16];
};

struct ws_server {
    const struct ws_config *config;
    struct ws_transport transport;
    struct ws_gpu gpus[WS_MAX_GPUS_CONFIGURED];
    uint32_t n_gpus;
    /* the host's own processor, if it is among them, is the last and not visible */
    uint32_t n_visible;
    struct ws_arena arena; /* of the message in hand */
    bool log_launches;     /* WS_DEBUG=launch */

    struct ws_cache cache;
    struct ws_loader *loader;
    struct ws_discards discards;
    struct ws_loads loads;
    struct ws_learn *learn; /* NULL: off */
    struct ws_server_clients clients;
    struct ws_steps steps;
    struct ws_accounts *accounts;
    uint64_t system_pool[_WS_RESOURCE_N]; /* of those that the configuration leaves open */
    struct ws_server_messages messages;
    struct ws_server_memory memory;
    struct ws_list uploads; /* ws_upload.waiting: the one that moved last is the last */
    struct ws_event_state *shared_events; /* by handle */
    struct ws_server_commands commands;
    struct ws_server_queues queues;
    struct ws_server_relaunch relaunch;

    struct ws_dispatch *dispatch; /* NULL: no policy */
    struct ws_server_fused fused;
    struct ws_server_gated gated;
    uint64_t stuck_next_ns; /* host clock: the next look at GPUs on which nothing ends */
    struct ws_alarm_queue *periods;
    struct ws_meters meters;
    struct ws_energy_log *energy_log; /* NULL: none */
    struct ws_tracing *tracing;       /* NULL: nobody asks */
    struct ws_server_out out;
    struct ws_server_handoff handoff;
    struct ws_closer *closer; /* borrowed; NULL: what comes is closed at once */
    struct ws_server_stats stats;
};

#endif
