// SPDX-License-Identifier: Apache-2.0
/* backend/backend.h - the daemon's state, as its files share it. Everything here belongs to the loop thread; devices speak to
 * it only through ws_command_done(), which hands finished jobs over a lock-free list.
 *
 * server ─ gpus, cache, clients ─ contexts (one per device the client sees) ─ streams ─ jobs in order
 *                                └ allocations, modules, events, segments, joins
 *
 * Lifetime: a client is *dropped* at any point (ws_client_drop()): from then on it takes no message and starts no work; it is
 * *freed* by the reaper at the end of the turn in which no device knows any of its jobs any more. So a pointer to a client
 * stays good for the whole turn. */
#ifndef WS_BACKEND_BACKEND_H
#define WS_BACKEND_BACKEND_H

#include <pthread.h>
#include <uthash.h>
#include <zmq.h>
#include "backend/code/rewrite.h"
#include "backend/code/cache.h"
#include "backend/process/config.h"
#include "backend/scheduling/dispatch.h"
#include "backend/scheduling/energy.h"
#include "backend/scheduling/fused.h"
#include "backend/scheduling/learn.h"
#include "backend/process/ledger.h"
#include "backend/client/output.h"
#include "backend/scheduling/period.h"
#include "backend/scheduling/recognise.h"
#include "backend/wire/server.h"
#include "backend/scheduling/task.h"
#include "backend/client/va.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/list.h"
#include "base/log.h"
#include "device/device.h"
#include "protocol/ring.h"
#include "protocol/protocol.h"

struct ws_client;
struct ws_stream;
struct ws_context;
struct ws_handoff_conn;
struct ws_gpu_job;
struct ws_gpu_task;
struct ws_loader;
struct ws_fused;
struct ws_fused_cache;

/* ---- jobs: what stands in a stream ---- */
enum ws_command_kind {
    WS_COMMAND_OP,            /* copy, fill or launch: op goes to the device */
    WS_COMMAND_RECORD,        /* an event's record is done here */
    WS_COMMAND_WAIT,          /* nothing behind it starts before a record is done */
    WS_COMMAND_SYNC,          /* a reply is sent here */
    WS_COMMAND_MARK,          /* one of a join's streams has come this far */
    WS_COMMAND_HOST_FUNCTION, /* nothing behind it starts before the client says so */
    WS_COMMAND_VALUE,         /* …before a word in memory has a value */
};
enum { WS_COMMAND_INLINE_BYTES = 256 };

/* Work between two changes from the legacy default stream to the other blocking streams or back; see stream.c. */
struct ws_epoch {
    struct ws_epoch *next;
    uint64_t n_commands;
};

struct ws_command {
    struct ws_op op;         /* kind OP */
    struct ws_command *next; /* in its stream, the pool or the list of finished ones */
    struct ws_client *client;
    struct ws_stream *stream; /* NULL: waits for a record only */
    struct ws_epoch *epoch;   /* NULL: of a non-blocking stream */
    uint64_t seq;
    uint64_t floor_ns; /* device time that the client had seen when it gave this job */
    enum ws_command_kind kind;
    bool replies;                     /* one Reply with seq */
    bool is_command;                  /* counts as a command that retires */
    bool submitting, finished_inline; /* set around ws_device_submit(), loop thread only */
    bool has_frame;
    bool in_job;              /* counted in its context's segment (dispatch.c) */
    bool fused;               /* part of a launch of several clients */
    struct ws_fused *carries; /* it is that launch itself, and stands in no stream (fused.c) */
    struct ws_memory
        *moved_from;   /* OP: fills memory anew that was here: a reference (dispatch_move.c) */
    uint64_t moved_va; /* …which is mapped here meanwhile; 0: the host sees it */
    uint8_t bulk;      /* Ws__Copy__Bulk */
    uint32_t chunk;    /* STAGED_*: index of the chunk */
    struct ws_segment *segment;             /* STAGED_* : reference */
    struct ws_record *record;               /* RECORD, WAIT, SYNC on an event: reference */
    struct ws_join *join;                   /* MARK */
    struct ws_host_function *host_function; /* HOST_FUNCTION: owned */
    struct ws_module *module;               /* OP: of a launch; while it is in its stream */
    const char *kernel_name;                /* OP: of a launch; while its module is loaded */
    const struct ws_learn_kernel *learn;    /* …the same; NULL: nothing is learned from it */
    struct ws_relaunch *relaunch;           /* OP: a launch carried out in parts; owned */
    struct {
        uint64_t va, value;
        uint8_t bytes, compare;
        bool write;
    } value;         /* VALUE */
    uint8_t *buffer; /* malloc'ed: parameters, inline data, data of the reply */
    zmq_msg_t frame; /* FRAME_SRC: keeps the data */
    _Alignas(16) uint8_t inline_bytes[WS_COMMAND_INLINE_BYTES];
};

/* ---- joins: one action after all work before it, on several streams ---- */
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
    struct ws_list node; /* client->joins, then server->reached, then perhaps client->quiescing */
    struct ws_client *client;
    enum ws_join_kind kind;
    uint64_t seq;
    bool replies;
    uint32_t n_left;
    struct ws_context *context; /* SYNC, RESET */
    uint64_t end_ns;
    struct ws_allocation *allocation; /* FREE */
    struct ws_module *module;         /* UNLOAD */
    struct ws_segment *segment;       /* HOST_UNMAP */
    uint32_t segment_id;              /* HOST_MAP */
    uint64_t address, bytes;          /* HOST_MAP, UNMAP */
};

/* ---- events ---- */
struct ws_record { /* one EventRecord that was not done at once */
    uint32_t n_refs;
    bool done;
    uint64_t end_ns;
    struct ws_context *context;
    struct ws_list streams;   /* blocked in a WAIT for this: ws_stream.blocked */
    struct ws_command *syncs; /* replies due */
};
struct ws_event_state { /* what an event remembers; more than one client may have it as an event */
    uint32_t n_refs;
    struct ws_record
        *latest; /* NULL: the most recent record was done at once, at end_ns on context */
    struct ws_context *context; /* NULL: of a client that is gone, or never recorded */
    uint64_t end_ns;
    uint8_t handle[WS_SHARE_BYTES]; /* if is_shared: in server->shared_events */
    bool is_shared, recorded;
    UT_hash_handle hh;
};
struct ws_event {
    uint64_t id;
    struct ws_event_state *state;
    UT_hash_handle hh;
};

/* ---- host functions ---- */
struct ws_host_function { /* its place in a stream */
    uint64_t id;
    struct ws_stream *stream;
    bool reached, open;
    UT_hash_handle hh;
};

/* ---- streams and contexts ---- */
struct ws_stream {
    uint64_t id;
    struct ws_context *context;
    struct ws_command *head, *tail; /* not started */
    struct ws_command *running;     /* the device has it; at most one, so order is kept */
    struct ws_epoch *tail_epoch;    /* of the newest job; valid while the stream is busy */
    uint64_t end_ns;                /* of the newest finished job */
    bool legacy, non_blocking;
    bool destroyed; /* has no id any more; freed when idle */
    bool ready_linked;
    struct ws_list blocked; /* in context->epoch_waiters or record->streams */
    struct ws_list ready;   /* in server->ready */
    struct ws_list node;    /* in context->streams */
    UT_hash_handle hh;
};

struct ws_gated_job { /* a gated client's segment, from GateBegin to GateEnd (gated.c) */
    uint64_t serial;  /* 0: none is open */
    uint64_t since_ns, lease_end_ns; /* host clock; since: it was let go; 0: it waits */
    uint64_t begin_ns;               /* device clock at since_ns */
    bool over_lease;                 /* the dispatcher has forgotten it */
};
struct ws_context { /* of a client on one of its devices */
    struct ws_client *client;
    struct ws_gpu *gpu;
    struct ws_gpu *home; /* what the client was told it is; a policy may move it elsewhere */
    uint32_t index;      /* as the client numbers it */
    bool used;
    struct ws_stream legacy;
    struct ws_list streams;
    struct ws_epoch *open, *last; /* oldest with unfinished jobs … newest; never NULL */
    bool last_is_legacy;
    uint64_t n_epoch_commands;
    uint32_t peers; /* its devices whose memory this one may use, as the client numbers them */
    struct ws_list epoch_waiters;            /* streams whose head is of a later epoch */
    uint64_t closed_end_ns, blocking_end_ns; /* latest end in closed epochs; in all */
    uint32_t n_moving;                       /* copies that move its memory to another GPU */
    struct ws_va va;      /* its allocations' addresses: real GPUs have no granule in common */
    struct ws_va move_va; /* where memory of it is seen while it moves */
    struct ws_gated_job gated_job; /* of a gated client */
    struct ws_gpu_job *job;        /* what the policy decides on; NULL: none is open */
    uint64_t seen_ns;          /* device time up to which the client knows its work to be done */
    struct ws_sm_set task_sms; /* of its task: its kernels run there; n == 0: everywhere */
    struct ws_sm_set sms;      /* …and no more of them than the client asked for (Hello.sms) */
    bool no_sms;               /* its task's SMs are none of this GPU's */
    struct ws_gpu *sms_of;     /* the GPU that these were made for */
};

/* ---- memory, segments, modules ---- */
struct ws_export;
struct ws_object { /* physical memory, shared by those that hold it */
    struct ws_memory *memory;
    struct ws_gpu *gpu;
    uint64_t bytes;
    struct ws_client *charged; /* one of those that hold it; NULL: only descriptors do */
    struct ws_list refs;
    struct ws_list exports;         /* descriptors given out */
    uint8_t handle[WS_SHARE_BYTES]; /* if is_shared: in server->shared_memory */
    bool is_shared;
    UT_hash_handle hh;
};
struct ws_object_ref { /* a reference to an object, inside what has it */
    struct ws_object *object;
    struct ws_client *client;
    struct ws_list node; /* object->refs */
};
struct ws_allocation { /* an object mapped whole */
    uint64_t va, bytes, raw_va, raw_bytes;
    struct ws_context *context;
    struct ws_object_ref ref;
    uint32_t more_readers, more_writers; /* own_access: besides its GPU */
    bool own_access;
    bool internal; /* a module's variables: MemFree does not know it */
    bool freeing;
    uint64_t noted; /* the dispatcher's number for the last time it looked */
    UT_hash_handle hh;
};
struct ws_handle { /* an object that the client has an id for */
    uint64_t id;
    struct ws_object_ref ref;
    UT_hash_handle hh;
};
struct ws_vmapping { /* in a reservation */
    uint64_t va, bytes, offset;
    struct ws_object_ref ref;
    uint32_t readers, writers; /* 0, 0: not in the client's space */
    bool unmapping;
};
struct ws_reservation {
    uint64_t va, bytes, raw_va, raw_bytes;
    struct ws_vmapping **v; /* by address */
    size_t n, cap;
    UT_hash_handle hh;
};
enum { WS_MAX_RESERVATIONS = 65536, WS_MAX_EXPORTS = 1024 };
#define WS_MAX_RESERVED_BYTES (UINT64_C(4) << 40) /* of one client */

struct ws_segment {
    uint32_t id;
    uint32_t kind; /* WS_HANDOFF_STAGING, WS_HANDOFF_PINNED */
    int fd;
    uint8_t *map, *data;
    uint64_t map_bytes, bytes;
    uint32_t chunk_bytes, n_chunks;
    uint64_t mapped_at; /* PINNED: the client's address, 0 if it has not told */
    uint32_t n_copies;  /* under way */
    bool unmapping;     /* a HostUnmap is under way */
    bool released;      /* the client has freed it; goes when the last use ends */
    UT_hash_handle hh;
};

struct ws_module {
    uint64_t id;
    struct ws_context *context;
    struct ws_image *image; /* reference */
    struct ws_code_entry *code;
    struct ws_dinstance *instance;
    uint64_t *var_va;
    struct ws_allocation *variables; /* NULL: none */
    bool launched;                   /* a kernel of it has been given */
    UT_hash_handle hh;
};

struct ws_upload { /* an image on its way */
    struct ws_list node;
    uint8_t sha256[WS_SHA256_BYTES]; /* as claimed */
    uint8_t *data;
    uint64_t bytes, received;
    struct ws_image *image; /* complete: held until the ModuleLoad that follows */
};
enum { WS_MAX_UPLOADS = 4 };

/* ---- clients ---- */
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

struct ws_client {
    struct ws_server *server;
    uint32_t id;
    struct ws_peer peer;
    bool dropped;
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
    struct ws_list quiescing; /* joins that act once no device works for this client */
    struct ws_list held;      /* streams that wait for them */
    struct ws_list uploads;   /* newest last */
    struct ws_list loads;     /* modules that loader threads are working on */
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
    struct ws_list node;  /* server->clients or server->dying */
    struct ws_list dirty; /* server->dirty: something to send */
    UT_hash_handle hh;    /* by peer */
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

/* ---- server ---- */
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
    struct ws_user *users;       /* who have clients */
    struct ws_account *accounts; /* metrics.c */
    struct ws_tracing *tracing;  /* NULL: nobody asks */
    struct ws_list clients, dying, dirty;
    struct ws_list ready, reached; /* streams that may go on; joins whose marks are all through */
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

/* job.c */
struct ws_command *ws_command_new(
    struct ws_client *c,
    enum ws_command_kind kind); /* NULL: the client has been dropped for want of memory */
void ws_command_free(struct ws_command *j); /* gives back all it holds */
void ws_command_done(struct ws_op *op);     /* ws_op.done */
void ws_server_take_finished(struct ws_server *s);
Ws__Error ws_error_of_device(enum ws_dev_error e);

/* stream.c */
int ws_context_init(struct ws_context *x, struct ws_client *c, struct ws_gpu *gpu, uint32_t index);
void ws_context_deinit(struct ws_context *x);
struct ws_stream *ws_stream_find(struct ws_client *c, uint64_t id);
Ws__Error ws_stream_create(struct ws_client *c, const Ws__StreamCreate *m);
Ws__Error ws_stream_destroy(struct ws_client *c, uint64_t id);
static inline bool ws_stream_busy(const struct ws_stream *s)
{
    return s->head || s->running;
}
bool ws_stream_query_busy(
    const struct ws_stream *s); /* as CUDA sees it: the legacy stream also waits for the others */
/* Takes @j. It runs at once if nothing stands before it. @j may be gone on return. */
void ws_stream_push(struct ws_stream *s, struct ws_command *j);
/* A mark takes its place behind what is there without starting a new epoch. The stream must be busy. */
void ws_stream_push_mark(struct ws_stream *s, struct ws_command *j);
void ws_stream_wake(struct ws_stream *s); /* something it waited for has happened */
void ws_server_run_ready(struct ws_server *s);
/* Frees what is queued, without running it. */
void ws_stream_clear(struct ws_stream *s);
/* Frees a stream that is not busy (and of which nothing is running), or lets it go when it is idle. */
void ws_stream_let_go(struct ws_stream *s);
void ws_stream_finished(struct ws_command *j); /* the device is done with it */
/* Takes the launch at the head of @s, which the dispatcher has held and now lets go, as if it had been submitted; the caller submits
 * it its own way and calls ws_stream_finished(). */
struct ws_command *ws_stream_take(struct ws_stream *s);
/* join.c */
struct ws_join *ws_join_new(struct ws_client *c, enum ws_join_kind kind, uint64_t seq,
                            bool replies); /* NULL: client dropped */
/* Starts @join (taken): a mark in each busy stream of @x, or of all contexts if NULL. Its action may run at once. */
void ws_join_start(struct ws_join *join, struct ws_context *x);
void ws_join_finish(struct ws_join *join);
void ws_joins_free(struct ws_client *c);
/* Runs the joins in c->quiescing if no device works for the client; until then no operation starts. */
void ws_client_quiesce(struct ws_client *c);

/* event.c */
Ws__Error ws_event_record(struct ws_client *c, const Ws__EventRecord *m, uint64_t seq,
                          bool *ret_queued);
Ws__Error ws_event_wait(struct ws_client *c, const Ws__StreamWait *m, uint64_t seq,
                        bool *ret_queued);
void ws_event_destroy(struct ws_client *c, uint64_t id);
struct ws_event *ws_event_find(struct ws_client *c, uint64_t id);
bool ws_event_done(const struct ws_event *e, uint64_t *ret_end_ns);
void ws_record_finish(struct ws_record *r, uint64_t end_ns);
void ws_record_unref(struct ws_record *r);
void ws_events_forget_context(struct ws_client *c, struct ws_context *x);
void ws_events_free(struct ws_client *c);
/* An event of the client's, made if need be. */
Ws__Error ws_event_get(struct ws_client *c, uint64_t id, struct ws_event **ret);
/* Makes the event of id @id stand for @state as well. */
Ws__Error ws_event_import(struct ws_client *c, uint64_t id, struct ws_event_state *state);

/* gate.c. Pass: true if the job at the head of its stream may leave; a gate's first asking tells the client. */
Ws__Error ws_host_function_submit(struct ws_client *c, const Ws__HostFunction *m, uint64_t seq,
                                  bool *ret_queued);
bool ws_host_function_pass(struct ws_command *j);
Ws__Error ws_host_function_done(struct ws_client *c, uint64_t id);
void ws_host_function_free(struct ws_client *c, struct ws_host_function *g);
enum { WS_VALUE_GEQ, WS_VALUE_EQ, WS_VALUE_AND, WS_VALUE_NOR };
Ws__Error ws_value_submit(struct ws_client *c, const Ws__StreamValue *m, uint64_t seq,
                          bool *ret_queued);
bool ws_value_pass(struct ws_command *j);
/* Looks at all words that streams wait for. Return: ms after which to look again; -1: none. */
int ws_server_poll_values(struct ws_server *s);

/* object.c */
/* A new object of @bytes (a multiple of WS_DEVICE_PAGE_BYTES) on the context's GPU, charged to its client. @ret: a first hold. */
Ws__Error ws_object_new(struct ws_context *x, uint64_t bytes, struct ws_object_ref *ret);
void ws_object_ref_take(struct ws_object_ref *h, struct ws_object *o, struct ws_client *c);
void ws_object_ref_drop(struct ws_object_ref *h); /* one that holds nothing: does nothing */
/* Nothing holds it any more: gone. Else: whose memory it counts as. */
void ws_object_settle(struct ws_object *o);
/* Makes @handle, at first. Return: false: no random numbers. */
bool ws_object_share(struct ws_server *s, struct ws_object *o);
struct ws_object *ws_object_find(struct ws_server *s, ProtobufCBinaryData handle);
/* The client's context on the object's GPU, or NULL. */
struct ws_context *ws_object_context(struct ws_client *c, const struct ws_object *o);

/* export.c: descriptors that stand for objects */
Ws__Error ws_export_new(struct ws_client *c, uint64_t handle, int *ret_fd);
Ws__Error ws_export_import(struct ws_client *c, int fd, uint64_t handle,
                           struct ws_handoff_reply *ret);
void ws_export_closed(struct ws_export *e); /* nobody has the descriptor any more */
void ws_exports_forget(struct ws_client *c);
void ws_exports_free(struct ws_server *s);

/* vmm.c */
Ws__Error ws_handle_create(struct ws_client *c, const Ws__MemCreate *m);
Ws__Error ws_handle_add(struct ws_client *c, uint64_t id, struct ws_object *o);
struct ws_handle *ws_handle_find(struct ws_client *c, uint64_t id);
Ws__Error ws_handle_release(struct ws_client *c, uint64_t id);
Ws__Error ws_va_reserve(struct ws_client *c, const Ws__VaReserve *m, uint64_t *ret_va);
Ws__Error ws_va_unreserve(struct ws_client *c, uint64_t va);
Ws__Error ws_vmm_map(struct ws_client *c, const Ws__MemMap *m);
/* Checks, and marks what is to go; then ws_vmm_unmap() does it. */
Ws__Error ws_vmm_unmap_begin(struct ws_client *c, uint64_t va, uint64_t bytes);
void ws_vmm_unmap(struct ws_client *c, uint64_t va, uint64_t bytes);
Ws__Error ws_vmm_access(struct ws_client *c, const Ws__MemAccess *m);
void ws_vmm_reset(struct ws_context *x);
void ws_vmm_free(struct ws_client *c); /* the client's space is gone already */

/* share.c */
Ws__Error ws_share(struct ws_client *c, const Ws__Share *m, Ws__Reply *ret);
Ws__Error ws_peer_access(struct ws_client *c, const Ws__PeerAccess *m);
void ws_peers_forget(struct ws_context *x); /* in both directions */

/* memory.c */
enum { WS_MEMORY_INTERNAL = 1, WS_MEMORY_OWN_ACCESS = 2 };
Ws__Error ws_memory_alloc(struct ws_context *x, uint64_t bytes, unsigned flags,
                          struct ws_allocation **ret);
/* Gives the client's heap of kernels a place, where the GPU needs one that no other client has: before a kernel that uses it. */
Ws__Error ws_memory_place_heap(struct ws_context *x);
/* Gives it back, with what it holds, if it is in memory of the context's GPU. */
void ws_memory_drop_heap(struct ws_context *x);
/* Maps an object of another client. @more: a mask of GPUs that may use it, besides its own. */
Ws__Error ws_memory_import(struct ws_context *x, struct ws_object *o, uint32_t more,
                           struct ws_allocation **ret);
/* Who may use it now. */
void ws_memory_set_access(struct ws_allocation *a);
struct ws_allocation *ws_memory_find(struct ws_client *c, uint64_t va);
void ws_memory_free(struct ws_allocation *a);
void ws_memory_info(struct ws_context *x, uint64_t *ret_free, uint64_t *ret_total);
/* Device memory that the client may have; 0: no limit but the GPU's. */
uint64_t ws_memory_quota(const struct ws_client *c);

/* segment.c */
Ws__Error ws_segment_new(struct ws_client *c, const struct ws_handoff_request *q,
                         struct ws_segment **ret);
struct ws_segment *ws_segment_find(struct ws_client *c, uint32_t id);
Ws__Error ws_segment_host_map(struct ws_client *c, uint32_t id, uint64_t address);
void ws_segment_release(struct ws_segment *g,
                        struct ws_client *c); /* the client wants it no more */
void ws_segment_unmapped(
    struct ws_segment *g,
    struct ws_client *c); /* a HostUnmap is through: the client wants it no more */
void ws_segment_put(struct ws_segment *g, struct ws_client *c); /* a copy is through */
void ws_segment_chunk_done(struct ws_segment *g, uint32_t chunk, uint32_t state);
void ws_segments_free(struct ws_client *c);

/* copy.c, launch.c: *ret_queued: the job retires the command (and replies); else the caller does */
Ws__Error ws_copy_submit(struct ws_client *c, const Ws__Copy *m, uint64_t seq, bool replies,
                         const struct ws_message *msg, bool *ret_queued);
Ws__Error ws_fill_submit(struct ws_client *c, const Ws__Fill *m, uint64_t seq, bool *ret_queued);
Ws__Error ws_launch_submit(struct ws_client *c, const Ws__Launch *m, uint64_t seq,
                           bool *ret_queued);
/* Learns from a launch that has ended; j->learn is set. */
void ws_launch_learn(struct ws_command *j);
/* A staged copy that will not run: tells the chunk. */
void ws_copy_refuse(struct ws_client *c, const Ws__Copy *m);

/* module.c */
Ws__Error ws_error_of_kernel(const struct ws_kernel_info *k); /* of one that can't run */
void ws_module_load(struct ws_client *c, const Ws__ModuleLoad *m, uint64_t seq);
/* Moves a module's managed variables to the client's mapped memory. Nothing of it has run. */
Ws__Error ws_module_place(struct ws_client *c, const Ws__ModulePlace *m);
Ws__Error ws_module_image(struct ws_client *c, const Ws__ModuleImage *m);
struct ws_module *ws_module_find(struct ws_client *c, uint64_t id);
void ws_module_unlink(struct ws_client *c,
                      struct ws_module *m); /* its id is free; launches under way still use it */
void ws_module_free(struct ws_module *m);
Ws__Error ws_module_occupancy(struct ws_client *c, const Ws__Occupancy *m, uint32_t *ret_blocks);
void ws_modules_free(struct ws_client *c);
void ws_uploads_free(struct ws_client *c);

/* What became of an image: for ws_module_loaded(). */
struct ws_load_answer {
    struct ws_context *context;
    uint64_t seq, module;
    struct ws_image *image;     /* the callee takes a reference of its own */
    struct ws_code_entry *code; /* if r is 0 */
    int r;                      /* 0, WS_PTX_E_…, -ENOMEM */
    const struct ws_diags *diags;
};
/* Makes the module, answers and retires the ModuleLoad. */
void ws_module_loaded(const struct ws_load_answer *a);

/* loader.c */
WS_MUST_CHECK int ws_loader_new(struct ws_server *s); /* 0, -ENOMEM */
void ws_loader_free(struct ws_server *s);             /* before the cache; clients are gone */
/* Has the image's code made, and then calls ws_module_loaded(). Return: false: out of memory. */
bool ws_loader_start(struct ws_context *x, struct ws_image *image, const char *name, uint64_t seq,
                     uint64_t module);
bool ws_loader_has(struct ws_client *c, uint64_t module);
/* Takes the client's waiting loads away; those of @x are answered with an error, without @x nobody is told. */
void ws_loader_forget(struct ws_client *c, struct ws_context *x);
void ws_loader_take_done(struct ws_server *s);

/* Other work for these threads. The caller's until @done, which comes even where @work has never been called (the daemon ends). */
struct ws_loader_work {
    struct ws_loader_work *next;
    void (*work)(
        struct ws_loader_work *job); /* on a loader's thread; without any, inside ws_loader_run() */
    void (*done)(struct ws_loader_work *job); /* on the loop's; the same */
};
void ws_loader_run(struct ws_loader *l, struct ws_loader_work *job);

/* client.c */
struct ws_client *ws_client_find(struct ws_server *s, const struct ws_peer *peer);
void ws_client_hello(struct ws_server *s, const struct ws_message *msg, const Ws__Hello *h);
/* Ends a client. @error: OK when it ended of its own accord, else told to it as a Notice and logged. */
void ws_client_drop(struct ws_client *c, Ws__Error error, const char *fmt, ...) WS_PRINTF(3, 4);
void ws_server_reap(struct ws_server *s);
/* An error of work without a reply; sticky ones lose the context. */
void ws_client_async_error(struct ws_client *c, struct ws_context *x, Ws__Error e, const char *fmt,
                           ...) WS_PRINTF(4, 5);
Ws__Error ws_client_take_error(
    struct ws_client
        *c); /* for a Sync: the sticky or else the asynchronous error, which is taken */
void ws_client_retire(struct ws_client *c, uint64_t n);
static inline bool ws_error_is_sticky(Ws__Error e)
{
    return e >= 32 && e < 64;
}

/* out.c */
void ws_client_reply(struct ws_client *c, const Ws__Reply *r);
void ws_client_reply_error(struct ws_client *c, uint64_t seq, Ws__Error e, const char *text);
void ws_client_touch(struct ws_client *c);
bool ws_client_flush(struct ws_client *c);
void ws_server_flush(struct ws_server *s);
int ws_server_send(struct ws_server *s, const struct ws_peer *to, const Ws__ServerMessage *m);

/* server.c: whatever this peer still sends is not answered any more */
void ws_server_forget_peer(struct ws_server *s, const struct ws_peer *peer);
/* …and: handles a message that is due, without a look into its client's ring */
void ws_server_handle_next(struct ws_server *s, const struct ws_message *msg);

/* side.c: what an event of its epoll descriptor points at begins with this */
enum ws_handoff_source { WS_HANDOFF_SOURCE_CONN, WS_HANDOFF_SOURCE_EXPORT, WS_HANDOFF_SOURCE_RING };
void ws_handoff_close(struct ws_server *s, struct ws_handoff_conn *k);
void ws_handoff_end(struct ws_server *s);

/* ring.c: short cuts for small messages of local clients */
Ws__Error ws_client_ring_new(struct ws_client *c, int *ret_fd);
Ws__Error ws_client_ring_doorbell(struct ws_client *c, int *ret_fd); /* from here on it is open */
void ws_client_ring_close(struct ws_client *c);
void ws_client_ring_free(struct ws_client *c);
/* Return: false: send it through ZeroMQ, and then say so with passed_by(). */
bool ws_client_ring_send(struct ws_client *c, const void *data, size_t n);
void ws_client_ring_passed_by(struct ws_client *c);
/* Handles the messages that are due. @passed_by: after one that came through ZeroMQ. The client may be dropped on return. */
void ws_client_ring_take(struct ws_client *c, bool passed_by);
void ws_client_ring_signalled(struct ws_client_ring *l);
void ws_server_take_rings(struct ws_server *s); /* those that rang */

/* gpus.c: the client's devices in its order, as indices of server->gpus. Return: how many */
uint32_t ws_gpus_order(const struct ws_server *s, const Ws__Hello *h,
                       uint32_t order[WS_MAX_DEVICES]);

/* control.c */
struct ws_bytes;
void ws_control_policy(struct ws_server *s, const struct ws_message *msg, struct ws_bytes request);
void ws_control_explain(struct ws_server *s, const struct ws_message *msg, struct ws_bytes request);

/* gated.c: clients with a driver of their own */
Ws__Error ws_gated_begin(struct ws_client *c, const Ws__GateBegin *m);
Ws__Error ws_gated_end(struct ws_client *c, const Ws__GateEnd *m);
/* The dispatcher lets the segment of @x go. */
void ws_gated_go(struct ws_context *x);
void ws_gated_forget(struct ws_client *c); /* it is being dropped */
/* Tells of policies that come or go, and ends leases. Return: ms until the next lease ends; -1: none runs. */
int ws_gated_turn(struct ws_server *s);
Ws__ClientStatus__Gate ws_gated_state(const struct ws_client *c);

/* status.c */
void ws_status_reply(struct ws_server *s, const struct ws_peer *to);
void ws_status_ended(struct ws_client *c);
void ws_status_forget(struct ws_client *c); /* its last energy is known: it is freed */

#endif
