// SPDX-License-Identifier: Apache-2.0
/* frontend/session/private.h - what the session's files share. */
#ifndef WS_FRONTEND_SESSION_PRIVATE_H
#define WS_FRONTEND_SESSION_PRIVATE_H

#include "frontend/channel/channel.h"
#include "frontend/session/session.h"

/* The channel, connected at first use. The context's sticky error, if it has one, is returned and
 * *ret untouched. */
ws_err ws_session_enter(struct ws_channel **ret);
/* As above, but a lost context doesn't matter (reset). */
ws_err ws_session_enter_anyway(struct ws_channel **ret);
bool ws_session_is_open(void); /* connected, and exit has not begun */
void ws_session_open_log(void);
/* True after exit has begun: frees succeed without doing anything. */
bool ws_session_ended(void);
const Ws__Limits *ws_session_limits(void); /* only after enter */
bool ws_session_local(void);               /* shared memory; only after enter */
int ws_session_n_devices(void);            /* only after enter */
/* Counts resets of a device: what was made in an older epoch is gone. */
uint32_t ws_session_epoch(int device);

/* A command for ws_channel_post() and ws_channel_call(), as a compound literal. */
#define WS_COMMAND(which, member, ...)                                                             \
    &(Ws__Command)                                                                                 \
    {                                                                                              \
        .base = PROTOBUF_C_MESSAGE_INIT(&ws__command__descriptor),                                 \
        .c_case = WS__COMMAND__C_##which, .member = __VA_ARGS__                                    \
    }

/* ---- output of kernels (output.c) ---- */
void ws_session_note_prints(void);      /* from now on kernels may print */
void ws_session_tell_unsupported(void); /* the daemon, of what it does not know yet */

void ws_session_note_synced(ws_err r); /* a wait is over: see ws_session_synced */

/* ---- memory table (memory.c) ---- */
enum { WS_MEMTAB_READONLY = 1 }; /* tag of a region on a device */
ws_err ws_memtab_add(enum ws_mem_kind kind, uint64_t base, uint64_t bytes, int device,
                     uint64_t tag);
/* Removes the entry that starts at @base and is of @kind. Return: false if there is none. */
bool ws_memtab_remove(enum ws_mem_kind kind, uint64_t base, uint64_t *ret_tag, uint64_t *ret_bytes);
/* Removes all device memory and variables of a device. */
void ws_memtab_remove_device(int device);

/* ---- staging (staging.c): pageable host memory of local clients ---- */
ws_err ws_staging_write(struct ws_channel *c, uint64_t stream, const struct ws_copy_side *dst,
                        const struct ws_copy_side *src, const struct ws_copy_box *box);
ws_err ws_staging_read(struct ws_channel *c, uint64_t stream, const struct ws_copy_side *dst,
                       const struct ws_copy_side *src, const struct ws_copy_box *box);

/* ---- copies (copy.c): a command's fields for a piece, and its device side as destination or
 * source ---- */
struct ws_box_piece;
void ws_copy_to(Ws__Copy *m, uint64_t stream, const struct ws_copy_side *dst,
                const struct ws_box_piece *p);
void ws_copy_from(Ws__Copy *m, uint64_t stream, const struct ws_copy_side *src,
                  const struct ws_box_piece *p);

/* ---- streams (stream.c) ---- */
/* Return: the device, or -1 if there is no such stream. */
int ws_stream_device(uint64_t stream);

#endif
