/* SPDX-License-Identifier: Apache-2.0 */
/* backend/backend.h - the daemon's state: the server, its GPUs and its clients, put together from the states of their parts, each of
 * which is explained in the part's own header. Everything here belongs to the loop thread; devices speak to it only through
 * ws_command_done() (scheduling/finished.h), which hands finished operations over a lock-free list.
 *
 * server - gpus, cache, clients - contexts (one per device the client sees) - streams - commands in order
 *                               - allocations, modules, events, segments, joins
 *
 * Lifetimes:
 *   1. A client may be dropped at any point (ws_client_drop()). From then on it takes no message and starts no work, and nobody
 *      finds it; all else of it stays as it is, so whoever is in the middle of something can finish.
 *   2. ws_clients_end_dropped() takes it out of every part. It runs between messages and between the parts of a turn, when no
 *      function holds anything of a client but the client itself.
 *   3. It is freed at the end of the turn in which no device works for it any more (ws_clients_reap()). So a pointer to a client
 *      stays good for the whole turn.
 *   4. A stream may be freed by ws_server_run_ready() (scheduling/run.h) and by nothing else but its client's end. */
#ifndef WS_BACKEND_BACKEND_H
#define WS_BACKEND_BACKEND_H

#include <pthread.h>
#include <uthash.h>
#include "backend/client/client.h"
#include "backend/client/ledger.h"
#include "backend/client/output.h"
#include "backend/client/stream.h"
#include "backend/client/va.h"
#include "backend/code/cache.h"
#include "backend/config/task.h"
#include "backend/process/config.h"
#include "backend/scheduling/dispatch.h"
#include "backend/scheduling/energy.h"
#include "backend/scheduling/fused.h"
#include "backend/scheduling/period.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "device/device.h"
#include "device/space.h"
#include "protocol/protocol.h"
#include "protocol/ring.h"

struct ws_account;
struct ws_alarms;
struct ws_client_ring;
struct ws_energy_log;
struct ws_event;
struct ws_event_state;
struct ws_export;
struct ws_fused_arena;
struct ws_fused_cache;
struct ws_gpu_task;
struct ws_handle;
struct ws_handoff_conn;
struct ws_learn;
struct ws_loader;
struct ws_object;
struct ws_allocation;
struct ws_reservation;
struct ws_segment;
struct ws_tracing;
struct ws_user;

struct ws_client {
    struct ws_server *server;
    uint32_t id;
    struct ws_peer peer;
    bool dropped;
    Ws__Error drop_error; /* why; OK: of its own accord */
    char drop_text[256];
    bool local;
    uint32_t pid, uid;
    struct ws_user *user;
    struct ws_limits limits; /* as it was told: those of the configuration when it came */
    bool told_memory;
    uint32_t sm_limit; /* its launches use the first so many SMs; 0: all */
    int srcfd;         /* the daemon's end of its connection; -1 unknown */
    char exe[256], task[64];
    struct ws_task work; /* which task it is */
    bool work_known;     /* by an entry of the configuration */
    struct ws_gpu_task *gpu_task;
    uint32_t n_gpu_jobs;
    bool gated;            /* a driver of its own: see gated.c */
    uint32_t n_gated_jobs; /* its segments that were let go and have not ended */
    struct ws_own_job own; /* what the program itself says of it */
    struct ws_energy energy;
    uint64_t start_ns; /* host clock */
    uint8_t token[WS_TOKEN_BYTES];
    struct ws_handoff_conn *handoff;
    bool had_handoff;
    struct ws_client_ring *ring; /* NULL: it has not asked for one */

    struct ws_space *space;
    struct ws_va va;
    struct ws_va_extent
        heap; /* of kernels' malloc(), on GPUs with real addresses; bytes 0: not placed */
    struct ws_context *contexts;
    uint32_t n_contexts;
    struct ws_stream *streams, *last_stream;
    struct ws_event *events;
    struct ws_host_function *host_functions;
    uint64_t *reached; /* host functions to tell of */
    size_t n_reached, cap_reached;
    struct ws_module *modules, *last_module;
    struct ws_allocation *allocations;
    struct ws_handle *handles;
    struct ws_reservation *reservations;
    uint64_t reserved_bytes;
    uint32_t n_exports;
    struct ws_segment *segments;
    uint32_t n_streams, n_events, n_segments_made, n_unmapping;
    struct ws_list joins;
    struct ws_list quiescing;   /* joins that act once no device works for this client */
    struct ws_list held;        /* streams that wait for them */
    struct ws_list event_syncs; /* replies due when events are done (record.c) */
    struct ws_list uploads;     /* newest last */
    struct ws_list loads;       /* modules that loader threads are working on */
    struct ws_output_fifo output;
    struct ws_ledger not_supported;
    uint32_t n_uploads;

    uint64_t next_seq;
    bool seq_known;
    uint64_t n_in_flight; /* jobs that a device knows */
    uint64_t n_retired_told;

    Ws__Error sticky; /* OK, or the error that lost the context */
    struct ws_context *sticky_context;
    Ws__Error async_error; /* for the next Sync */
    char error_text[256];  /* of the latest of either */

    uint8_t *out; /* ServerMessage so far, packed */
    size_t n_out, cap_out;
    Ws__Error notice_error;
    char notice_text[256];
    uint32_t notice_device;
    uint64_t stuck_since_ns; /* 0: the peer takes what we send */

    struct ws_client_stats stats;
    struct ws_list node;    /* server->clients or server->dying */
    struct ws_list waiting; /* server->waiting */
    struct ws_list dirty;   /* server->dirty: something to send */
    UT_hash_handle hh;      /* by peer */
};

struct ws_ended { /* a client that is gone, for the status */
    uint32_t id, pid, uid;
    char exe[256], task[64], error_text[256];
    struct ws_task work;
    struct ws_energy_sum energy;
    bool gated;
    Ws__Error error;
    uint64_t start_ns;
    struct ws_client_stats stats;
    struct ws_ledger not_supported;
};
enum { WS_ENDED_MAX = 64, WS_FORGOTTEN_MAX = 256 };

struct ws_gpu {
    struct ws_server *server;
    struct ws_device *device;
    uint32_t n_home; /* clients whose device 0 this is */
    struct ws_gpu_energy energy;
    uint8_t uuid[16];
};

enum { WS_RELAUNCH_PAGES = 4096 };
struct ws_server {
    const struct ws_config *config;
    struct ws_transport transport;
    pthread_t thread;
    struct ws_gpu gpus[WS_MAX_GPUS_CONFIGURED];
    uint32_t n_gpus,
        n_visible; /* the host's own processor, if it is among them, is the last and not visible */
    struct ws_cache cache;
    struct ws_loader *loader;
    struct ws_alarms *periods;
    struct ws_energy_log *energy_log; /* NULL: none */
    struct ws_dispatch *dispatch;     /* NULL: no policy */
    struct ws_fused_cache *fused_cache;
    struct ws_fused_arena *fused_arena; /* NULL: nothing was merged yet */
    struct ws_fused_counts fused;
    struct ws_learn *learn;         /* NULL: off */
    struct ws_ledger not_supported; /* of all clients */
    struct ws_va_pool va_pool;
    struct ws_object *shared_memory;
    struct ws_event_state *shared_events;
    struct ws_export *exports;
    struct ws_client *by_peer, *last_client;
    struct ws_user *users;                         /* who have clients */
    struct ws_account *accounts;                   /* metrics.c */
    struct ws_tracing *tracing;                    /* NULL: nobody asks */
    struct ws_list clients, dropped, dying, dirty; /* dropped: yet to be taken out of every part */
    struct ws_list ready, reached; /* streams that may go on; joins whose marks are all through */
    struct ws_list waiting;        /* clients that wait, which the dispatcher is yet to be told */
    struct ws_list gated_go;       /* contexts whose gated job is to be let go */
    struct ws_list polling;        /* streams whose head waits for a value: ws_stream.blocked */
    uint32_t n_clients, next_client;
    bool draining, had_client;
    uint32_t n_gated, n_gate_leases;      /* clients; their segments with a lease that runs */
    bool gate_told;                       /* what they know of the policy: there is one */
    uint64_t forgotten[WS_FORGOTTEN_MAX]; /* hashes of peers that were told once */
    uint32_t n_forgotten;
    struct ws_ended ended[WS_ENDED_MAX];
    uint32_t n_ended; /* ever */
    struct ws_command *pool;
    size_t n_pool;
    _Atomic(struct ws_command *) finished; /* newest first; written by device threads */
    _Atomic uint32_t n_waking;             /* device threads inside ws_command_done() */
    int wake_fd;
    struct ws_list relaunches;
    uint64_t relaunch_pages[WS_RELAUNCH_PAGES / 64], random, n_relaunches, n_parts; /* rewrite.c */
    bool log_launches;     /* WS_DEBUG=launch */
    struct ws_arena arena; /* of the message in hand */
    struct ws_list handoff_conns;
    struct ws_list rung; /* rings */
    uint8_t ring_message[WS_RING_MESSAGE_BYTES];
    int handoff_fd, epoll_fd;
    bool handoff_passed; /* the service manager's: its file is not ours to remove */
    char handoff_path[108];
    uint64_t start_ns, n_messages, n_commands;
    uint32_t n_congested;
};

#endif
