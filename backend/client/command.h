/* SPDX-License-Identifier: Apache-2.0 */
/* backend/client/command.h - commands, which stand in streams until the device or something else
 * has done them. They come from a pool of the server. Threads: the loop, but for what
 * scheduling/finished.h says. */
#ifndef WS_BACKEND_CLIENT_COMMAND_H
#define WS_BACKEND_CLIENT_COMMAND_H

#include <pthread.h>
#include "backend/client/client.h"
#include "device/device.h"

struct ws_epoch;
struct ws_fused;
struct ws_host_function;
struct ws_join;
struct ws_learn_kernel;
struct ws_module;
struct ws_record;
struct ws_relaunch;
struct ws_segment;
struct ws_started;
struct ws_stream;

enum ws_command_kind {
    WS_COMMAND_OP,     /* a copy, fill or launch: op goes to the device */
    WS_COMMAND_RECORD, /* an event's record is done here */
    WS_COMMAND_WAIT,   /* nothing behind it starts before a record is done */
    WS_COMMAND_SYNC,   /* a reply is sent here */
    WS_COMMAND_MARK,   /* one of a join's streams has come this far */
    /* nothing behind it starts before the client says that the function has returned */
    WS_COMMAND_HOST_FUNCTION,
    WS_COMMAND_VALUE, /* nothing behind it starts before a word in memory has a value */
};
enum { WS_COMMAND_INLINE_BYTES = 256 };

struct ws_command {
    struct ws_command *next; /* in its stream, the pool or the list of finished ones */
    struct ws_client *client;
    struct ws_stream *stream; /* NULL: it stands in none */
    struct ws_epoch *epoch;   /* NULL: of a non-blocking stream */
    uint64_t seq;
    uint64_t floor_ns; /* device time that the client had seen when it gave this command */
    uint64_t begun;    /* OP: its number among all that its GPU was given; from 1 */
    uint64_t held_ns;  /* OP, in a trace: when it, or what is left of it, first waited; 0: never */
    uint32_t meter_mark; /* of ws_learn_submitted(), while a device knows it */
    uint64_t n_resets;   /* of its context, that were accepted before it was given */
    enum ws_command_kind kind;
    bool replies;                     /* one Reply with seq */
    bool is_command;                  /* counts as a command that retires */
    bool submitting, finished_inline; /* set around ws_device_submit(), loop thread only */
    bool in_job;                      /* counted in its context's job (dispatch.c) */
    /* it is the merged launch itself, and stands in no stream (fused.c) */
    struct ws_fused *carries;
    struct ws_fused *fused;       /* the merged launch that it is part of; NULL: none */
    struct ws_memory *moved_from; /* OP: fills memory anew that was here: a reference (migrate.c) */
    uint64_t moved_va;            /* …which is mapped here meanwhile; 0: the host sees it */
    uint8_t bulk;                 /* Ws__Copy__Bulk */
    uint32_t chunk;               /* STAGED_*: index of the chunk */
    struct ws_segment *segment;   /* STAGED_*: reference */
    struct ws_record *record;     /* RECORD, WAIT: reference */
    struct ws_join *join;         /* MARK */
    struct ws_host_function *host_function; /* HOST_FUNCTION: owned */
    struct ws_module *module;               /* OP: of a launch: reference; else NULL */
    const char *kernel_name;                /* OP: of a launch: the module's */
    const struct ws_learn_kernel *learn;    /* …the same; NULL: nothing is learned from it */
    struct ws_relaunch *relaunch;           /* OP: a launch carried out in parts; owned */
    /* OP: what the launch starts, which the command does next; owned. NULL: it can start nothing */
    struct ws_started *started;
    struct {
        uint64_t va, value;
        uint8_t bytes, compare;
        bool write;
    } value;                 /* VALUE */
    uint8_t *buffer;         /* malloc'ed: parameters, inline data, data of the reply */
    struct ws_buffer *frame; /* FRAME_SRC: keeps the data; reference */
    uint64_t charged_bytes;  /* of what it keeps */
    struct ws_op op;         /* kind OP; a MARK ends behind op.kind, for there may be very many */
    _Alignas(16) uint8_t inline_bytes[WS_COMMAND_INLINE_BYTES];
};

struct ws_client_commands { /* memory of the commands that there are */
    uint64_t bytes, charged_bytes;
};

struct ws_server_commands {
    struct ws_command *pool; /* free ones */
    size_t n_pool;
    _Atomic(struct ws_command *) finished; /* newest first; written by device threads */
    _Atomic uint32_t n_waking;             /* device threads inside ws_command_done() */
    int wake_fd;
    pthread_t thread; /* the loop's */
};

/* NULL: the client has been dropped, for want of memory or as its user may have no more commands
 * that wait. */
struct ws_command *ws_command_new(struct ws_client *c, enum ws_command_kind kind);
void ws_command_free(struct ws_command *j); /* gives back all it holds */
/* Charges its client's user with @n bytes that wait with the command, until it is freed. Return:
 * OK or OUT_OF_MEMORY. */
Ws__Error ws_command_charge(struct ws_command *j, uint64_t n);
/* Room for @n bytes, once for each command: small ones inside it, others in its buffer, charged.
 * NULL: no memory, or its user may have no more. */
uint8_t *ws_command_bytes(struct ws_command *j, uint64_t n);
void ws_command_pool_free(struct ws_server *s);
Ws__Error ws_error_of_device(enum ws_dev_error e);

#endif
