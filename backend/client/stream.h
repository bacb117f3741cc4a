/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/stream.h - streams and contexts as queues: what stands in them, and in what
 * order it may start. What starts when is decided in scheduling/run.c; here streams are only
 * filled, and put on client->streams.ready when something they waited for has happened. Threads:
 * the loop. */
#ifndef WS_BACKEND_CLIENT_STREAM_H
#define WS_BACKEND_CLIENT_STREAM_H

#include "backend/client/command.h"
#include "backend/client/va.h"
#include "base/sm_set.h"
#include "base/table.h"

struct ws_gpu;
struct ws_gpu_job;

/* Work between two changes from the legacy default stream to the other blocking streams or back;
 * see stream.c. */
struct ws_epoch {
    struct ws_epoch *next;
    uint64_t n_commands;
};

struct ws_stream {
    uint64_t id;
    struct ws_context *context;
    struct ws_command *head, *tail; /* not started */
    struct ws_command *running;     /* the device has it; at most one, so order is kept */
    struct ws_epoch *tail_epoch;    /* of the newest command; valid while the stream is busy */
    uint64_t end_ns;                /* of the newest finished command */
    bool legacy, non_blocking;
    bool destroyed;         /* has no id any more; freed when idle */
    struct ws_list blocked; /* in the list of what it waits for */
    struct ws_list ready;   /* in client->streams.ready */
    struct ws_list node;    /* in context->streams */
    UT_hash_handle hh;
};

struct ws_gated_job {                /* a gated client's job, from GateBegin to GateEnd (gated.c) */
    uint64_t serial;                 /* 0: none is open */
    uint64_t since_ns, lease_end_ns; /* host clock; since: it was let go; 0: it waits */
    uint64_t begin_ns;               /* device clock at since_ns */
    bool over_lease;                 /* the dispatcher has forgotten it */
    struct ws_list go; /* in server->queues.gated_go: it has been started, and is to be let go */
};

struct ws_context { /* of a client on one of its devices */
    struct ws_client *client;
    struct ws_gpu *gpu;
    struct ws_gpu *home; /* what the client was told it is; a policy may move it elsewhere */
    uint32_t index;      /* as the client numbers it */
    struct ws_stream legacy;
    struct ws_list streams;
    struct ws_list modules;           /* all there are, those without an id too */
    uint64_t n_resets, n_resets_done; /* accepted; acted */
    struct ws_epoch *open, *last;     /* oldest with unfinished commands … newest; never NULL */
    bool last_is_legacy;
    uint64_t n_epoch_commands;
    uint32_t peers; /* its devices whose memory this one may use, as the client numbers them */
    struct ws_list shared_states; /* of events that others have too: ws_event_state.of_context */
    struct ws_list epoch_waiters; /* streams whose head is of a later epoch */
    uint64_t closed_end_ns, blocking_end_ns; /* latest end in closed epochs; in all */
    uint32_t n_moving;                       /* copies that move its memory to another GPU */
    struct ws_va va;      /* its allocations' addresses: real GPUs have no granule in common */
    struct ws_va move_va; /* where memory of it is seen while it moves */
    struct ws_gated_job gated_job; /* of a gated client */
    struct ws_gpu_job *job;        /* what the policy decides on; NULL: none is open */
    uint64_t n_ended;              /* operations of it that devices have ended */
    uint64_t seen_ns;          /* device time up to which the client knows its work to be done */
    struct ws_sm_set task_sms; /* of its task: its kernels run there; n == 0: everywhere */
    struct ws_sm_set sms;      /* …and no more of them than the client asked for (Hello.sms) */
    bool no_sms;               /* none of its task's SMs is on this GPU */
    struct ws_gpu *sms_of;     /* the GPU that these were made for */
};

struct ws_client_streams {
    struct ws_stream *by_id, *last; /* last: that was found */
    uint32_t n;
    struct ws_list ready; /* those that may go on: ws_stream.ready */
    struct ws_list runs;  /* server->queues.ready, by its account */
    /* operations that devices have ended, and what follows is yet to be done; oldest first */
    struct ws_command *ended, *last_ended;
    struct ws_list polling; /* those whose head waits for a value: ws_stream.blocked */
    struct ws_list polls;   /* server->queues.polling, while there are any, or a little longer */
};
struct ws_server_queues { /* what ws_server_run_ready() empties, and polling */
    /* accounts of clients with operations that have ended, streams that may go on, or
     * joins.reached */
    struct ws_list ready;
    struct ws_list waiting;  /* clients that wait, which the dispatcher is yet to be told */
    struct ws_list gated_go; /* contexts whose gated job is to be let go */
    struct ws_list records;  /* done, and some do not know yet: ws_record.telling */
    struct ws_list polling;  /* clients with streams whose head waits for a value */
    struct ws_list chores;   /* clients whose chores have begun: ws_client_chores.waiting */
    /* of this turn of the loop: when its time for these began, 0: not yet; that it is over; and
     * what was done since the clock was read */
    uint64_t begun_ns;
    bool over;
    unsigned n_run;
};

WS_MUST_CHECK int ws_context_init(struct ws_context *x, struct ws_client *c, struct ws_gpu *gpu,
                                  uint32_t index); /* 0, -ENOMEM */
void ws_context_deinit(struct ws_context *x);

struct ws_stream *ws_stream_find(struct ws_client *c, uint64_t id);
Ws__Error ws_stream_create(struct ws_client *c, const Ws__StreamCreate *m);
Ws__Error ws_stream_destroy(struct ws_client *c, uint64_t id);
static inline bool ws_stream_busy(const struct ws_stream *s)
{
    return s->head || s->running;
}
/* As CUDA sees it: the legacy stream also waits for the others. */
bool ws_stream_query_busy(const struct ws_stream *s);

/* Takes @j, behind what is there. */
void ws_stream_push(struct ws_stream *s, struct ws_command *j);
/* The same for a mark, which starts no new epoch. The stream must be busy. */
void ws_stream_push_mark(struct ws_stream *s, struct ws_command *j);
/* Puts @j before what is there: an operation that was preempted, or one that the waiting ones
 * need. */
void ws_stream_push_front(struct ws_stream *s, struct ws_command *j);
/* Something that the stream waited for has happened: ws_server_run_ready() will look at it. */
void ws_stream_wake(struct ws_stream *s);
/* Takes the head away. */
struct ws_command *ws_stream_pop(struct ws_stream *s);
/* Makes an operation, which was the head of @s, the stream's running one. When it has ended,
 * ws_client_op_ended() is told. */
void ws_stream_run(struct ws_stream *s, struct ws_command *j);
/* When @j, at the head of its stream, could start at the earliest: device time. */
uint64_t ws_stream_ready_ns(const struct ws_command *j);
/* The command is done: its epoch, and retirement. Frees @j. */
void ws_stream_leave(struct ws_command *j);

/* A device has ended @j: ws_server_run_ready() will do what follows. */
void ws_client_op_ended(struct ws_command *j);
/* The oldest of those; NULL: there is none. */
struct ws_command *ws_client_take_ended(struct ws_client *c);

/* Of a client that is gone: nothing wakes the stream any more. */
void ws_stream_stop(struct ws_stream *s);
/* Of a client that is gone, when no device works for it: frees a command, or an empty stream but
 * the contexts' own. Return: false: there is none. */
bool ws_streams_free_one(struct ws_client *c);
void ws_stream_free(struct ws_stream *s); /* one that is not busy */
/* Frees a stream that is not busy, or has it freed when it is idle. */
void ws_stream_let_go(struct ws_stream *s);

#endif
