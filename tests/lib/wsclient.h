// SPDX-License-Identifier: Apache-2.0
/* tests/lib/wsclient.h - a daemon process and raw clients of it, without the frontend: what a
 * test wants to send, it sends, right or wrong. Threads: none (one client per thread is fine).
 * Failures of the machinery itself end the program. */
#ifndef WS_TESTS_WSCLIENT_H
#define WS_TESTS_WSCLIENT_H

#include <stdbool.h>
#include <sys/types.h>
#include <zmq.h>
#include "protocol/ring.h"
#include "protocol/protocol.h"
#include "protocol/handoff.h"

/* ---- a daemon on private endpoints ---- */
struct wst_daemon {
    pid_t pid;
    char dir[64], ipc[96], tcp[64], log[96];
    char args[16][128]; /* up to an empty one */
};
/* @extra: further arguments, NULL-terminated, or NULL. @conf: text of a configuration file; @ipc
 *   and @tcp may stand in it as %IPC% and %TCP%; NULL: --socket with the ipc endpoint only. */
void wst_daemon_start(struct wst_daemon *d, const char *conf, const char *const *extra);
/* Again, with the same arguments and place, after the test has ended the process itself. */
void wst_daemon_restart(struct wst_daemon *d);
/* SIGTERM, then waits. Return: exit status, 256 + signal if killed by one. */
int wst_daemon_stop(struct wst_daemon *d);
long wst_daemon_rss_kib(const struct wst_daemon *d); /* all; shared memory included */
long wst_daemon_rss_anon_kib(const struct wst_daemon *d);
int wst_daemon_n_fds(const struct wst_daemon *d);
bool wst_daemon_log_has(const struct wst_daemon *d, const char *text);

/* ---- a client ---- */
struct wst_client {
    void *ctx, *sock;
    int side; /* -1: none */
    struct ws_ring ring;
    enum { WST_RING_NEVER, WST_RING_SOMETIMES, WST_RING_ALWAYS } ring_use;
    zmq_msg_t came; /* from ZeroMQ, waiting for what is in the ring */
    bool has_come;
    Ws__ServerMessage *hello_message;
    const Ws__HelloReply *hello;
    uint64_t next_seq, retired;
    Ws__Notice last_notice; /* text borrowed from notice_text */
    char notice_text[512];
    bool dropped;
    uint8_t batch[1 << 20];
    size_t n_batch;
    uint32_t n_batch_commands;
    uint64_t batch_seq;
    Ws__ServerMessage *held[64]; /* messages with replies nobody has asked for yet */
    unsigned n_held;
};
/* A socket without hello. @ctx: shared ZeroMQ context, or NULL for one of its own. */
void wst_connect(struct wst_client *c, void *ctx, const char *endpoint);
/* Hello (and the side socket where offered and @local). Return: HelloReply.error. */
extern const char *wst_task; /* the task that clients say they are; "" at first */
int wst_hello(struct wst_client *c, bool local, const char *visible);
/* Connect and hello that must succeed. */
void wst_open(struct wst_client *c, void *ctx, const char *endpoint, bool local);
void wst_close(struct wst_client *c, bool goodbye);

void wst_send_raw(struct wst_client *c, const void *p, size_t n, bool more);
void wst_send_message(struct wst_client *c, Ws__ClientMessage *m);
/* Appends to the batch. Return: its seq. */
uint64_t wst_post(struct wst_client *c, Ws__Command__CCase which, void *sub);
void wst_flush(struct wst_client *c);
/* The reply of @seq, or NULL after @timeout_ms or when dropped. Good until the next call with
 * this client. */
const Ws__Reply *wst_wait(struct wst_client *c, uint64_t seq, int timeout_ms);
const Ws__Reply *wst_call(struct wst_client *c, Ws__Command__CCase which, void *sub);
/* Reads what there is for up to @timeout_ms or until dropped. */
void wst_pump(struct wst_client *c, int timeout_ms);
/* Waits for one message and takes all that is there; replies are forgotten. */
void wst_pump_some(struct wst_client *c);
bool wst_wait_dropped(struct wst_client *c, int timeout_ms);
Ws__StatusReply *wst_status(
    const char
        *endpoint); /* caller: ws__status_reply__free_unpacked() is for its parent; see below */
void wst_status_free(Ws__StatusReply *s);

/* ---- shorthands; they return the reply's error, -1 when there was none ---- */
int wst_alloc(struct wst_client *c, uint32_t device, uint64_t bytes, uint64_t *ret);
int wst_free(struct wst_client *c, uint64_t va);
int wst_sync_device(struct wst_client *c, uint32_t device);
int wst_sync_stream(struct wst_client *c, uint64_t stream);
int wst_load_ptx(struct wst_client *c, uint64_t module, uint32_t device,
                 const char *ptx); /* uploads it if needed */
/* The same, without waiting for the code to be made. Return: the seq of the reply. Only of an image
 * that the daemon does not know yet. */
uint64_t wst_load_begin(struct wst_client *c, uint64_t module, uint32_t device, const char *ptx);
int wst_kernel_index(struct wst_client *c, const char *name); /* in the module loaded last */
uint64_t wst_variable(struct wst_client *c, const char *name);
void wst_launch(struct wst_client *c, uint64_t stream, uint64_t module, uint32_t kernel,
                uint32_t grid, uint32_t block, const void *params, size_t n);
int wst_write(struct wst_client *c, uint64_t stream, uint64_t va, const void *p,
              size_t n); /* inline */
int wst_read(struct wst_client *c, uint64_t stream, uint64_t va, void *p,
             size_t n); /* in the reply */
/* Return: Ws__Error. */
int wst_segment(struct wst_client *c, uint32_t kind, uint64_t bytes, uint32_t chunk_bytes,
                uint32_t *ret_id, uint8_t **ret_map, uint64_t *ret_data_offset);

/* Asks for the ring and opens it. Return: Ws__Error. */
int wst_ring_open(struct wst_client *c);
/* A request on the side socket, with our token. Return: its answer's error, the descriptor in
 * *ret_fd or -1. */
int wst_side_request(struct wst_client *c, uint32_t kind, int *ret_fd);

extern const char wst_ptx[]; /* kernels used by the tests: fill, add, spin, oob */

#endif
