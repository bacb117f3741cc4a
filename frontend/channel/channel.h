// SPDX-License-Identifier: Apache-2.0
/* frontend/channel/channel.h - how the session talks to the daemon. The channel hides what carries
 * the messages: ZeroMQ, the ring and the handoff socket. Threads: any. Errors: Ws__Error;
 * DISCONNECTED when the daemon is gone, and always from then on. */
#ifndef WS_FRONTEND_CHANNEL_CHANNEL_H
#define WS_FRONTEND_CHANNEL_CHANNEL_H

#include <stdbool.h>
#include "protocol/protocol.h"

struct ws_channel;

/* Loads libzmq, connects to @endpoint and says hello, within @timeout_ms; the answer is
 * ws_channel_hello()'s. On failure one line on stderr says what, and what would be right. */
int ws_channel_open(struct ws_channel **ret, const char *endpoint, const Ws__Hello *hello,
                    int timeout_ms);
void ws_channel_close(struct ws_channel *c, bool say_goodbye);
/* What the log says when the daemon is gone. The default is "every CUDA call fails from here on".
 * @text: borrowed. */
void ws_channel_set_loss(struct ws_channel *c, const char *text);
/* Forgets everything in a forked child, without a sign to the other ends of the sockets. */
void ws_channel_abandon(struct ws_channel *c);
const Ws__HelloReply *ws_channel_hello(const struct ws_channel *c);

/* Appends a command to the batch and gives it the next sequence number; flushes when the batch is
 * full or when the daemon has been idle (so that asynchronous work starts without a synchronising
 * call). Waits while max_outstanding is reached. */
int ws_channel_post(struct ws_channel *c, const Ws__Command *cmd);
/* Hot path of a launch: as ws_channel_post() with a Launch command, packed without an intermediate
 * copy. */
int ws_channel_post_launch(struct ws_channel *c, const Ws__Launch *l);
/* Posts, flushes and waits for the reply. @ret_reply (may be NULL): freed with
 * ws_channel_reply_free(). Returns the reply's error. */
int ws_channel_call(struct ws_channel *c, const Ws__Command *cmd, Ws__Reply **ret_reply);
void ws_channel_reply_free(Ws__Reply *r);
int ws_channel_flush(struct ws_channel *c);
/* Posts a command with bulk data in a frame of its own (tcp). @cmd->copy->frame is set by the
 * channel. */
int ws_channel_post_bulk(struct ws_channel *c, Ws__Command *cmd, const void *data, size_t bytes);
/* This thread may fill the last part of the window, which other threads leave free: its commands
 * end what they wait for. */
void ws_channel_use_reserve(void);
/* Waits until a stream has got to a gate (Notice.reached) that no call has returned yet. Return: 0
 * or DISCONNECTED. */
int ws_channel_next_gate(struct ws_channel *c, uint64_t *ret_gate);
/* The sticky or asynchronous error that the daemon has reported and nobody has taken yet; OK if
 * there is none. */
int ws_channel_async_error(struct ws_channel *c, bool take);

/* ---- shared memory (local clients) ---- */
struct ws_channel_segment {
    uint32_t id;
    void *map;
    uint64_t map_bytes;
    uint8_t *data;
    uint64_t bytes;
};
int ws_channel_segment_new(struct ws_channel *c,
                           uint32_t kind /* WS_HANDOFF_STAGING, WS_HANDOFF_PINNED */,
                           uint64_t bytes, uint32_t chunk_bytes, struct ws_channel_segment *ret);
/* WS_HANDOFF_SHARED: the daemon is to map the first @bytes of @fd, too. */
int ws_channel_segment_share(struct ws_channel *c, int fd, uint64_t bytes, uint32_t *ret_id);
void ws_channel_segment_free(struct ws_channel *c, struct ws_channel_segment *s);
/* Descriptors that stand for objects (WS_HANDOFF_EXPORT, WS_HANDOFF_IMPORT). The caller owns
 * *ret_fd. */
int ws_channel_export(struct ws_channel *c, uint64_t object, int *ret_fd);
int ws_channel_import(struct ws_channel *c, int fd, uint64_t object, uint32_t *ret_device,
                      uint64_t *ret_bytes);
/* True while the daemon lives. For waits on a futex. */
bool ws_channel_alive(struct ws_channel *c);

#endif
