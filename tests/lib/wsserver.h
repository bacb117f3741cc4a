// SPDX-License-Identifier: Apache-2.0
/* tests/lib/wsserver.h - the server core without sockets: two fake devices, and peers by number
 * whose answers are kept. */
#ifndef WS_TESTS_WSSERVER_H
#define WS_TESTS_WSSERVER_H

#include "backend/backend.h"
#include "backend/process/server.h"
#include "tests/lib/fakedev.h"

enum { WSS_PEERS = 8, WSS_REPLIES = 512, WSS_GATES = 64 };
struct wss_reply {
    uint64_t seq, value, value2;
    Ws__Error error;
    char text[256];
    unsigned n_kernels;
    uint8_t data[64];
    size_t n_data;
};
struct wss_peer {
    struct ws_peer peer;
    uint64_t next_seq, retired;
    bool said_hello, dropped, stuck, gone;
    bool ended;   /* it has closed its connection; what it sent before may not be handled yet */
    uint32_t uid; /* 1000 at first */
    uint32_t pid; /* the test's own at first; 0: the kernel does not tell it */
    Ws__Error hello_error, notice_error, dropped_error;
    char text[512];
    unsigned n_notices, n_replies, n_status, n_messages;
    struct wss_reply *replies; /* [WSS_REPLIES]; NULL: none has come */
    uint32_t n_devices, gpus[8];
    struct { /* what the latest answers showed */
        unsigned n_clients, n_others, n_accounts, n_learned, n_spans;
        bool has_others;         /* n_accounts: of those that have clients */
        uint32_t uid, sm_client; /* of the first client; of the first SM of GPU 0 */
        uint64_t seen;
        Ws__Error policy_error;
        char explain[512];
    } saw;
    uint64_t gates[WSS_GATES]; /* told of, in order */
    unsigned n_gates;
};
struct wss {
    struct ws_config config;
    struct fakedev dev[3];
    struct ws_server *server;
    struct wss_peer peers[WSS_PEERS];
    bool queued; /* messages of connections that have ended are not all handled yet */
};
/* Messages are not cut into slices of time, until the test says otherwise
 * (server->messages.slice_ns).
 * @n_devices: 1 … 3, named "big", "small", "big". */
struct wss *wss_new(uint32_t n_devices);
/* The same with a policy. @options: "name=value", NULL at the end; NULL: none. */
struct wss *wss_new_with_policy(uint32_t n_devices, const char *policy, const char *const *options);
/* Checks that nothing is left with the devices. */
void wss_free(struct wss *w);
/* As the loop: tells of the connections that have ended, unless @queued, and takes a turn. */
void wss_turn(struct wss *w);

void wss_hello(struct wss *w, unsigned peer, const char *visible);
void wss_raw(struct wss *w, unsigned peer, const void *p, size_t n);
void wss_message(struct wss *w, unsigned peer, Ws__ClientMessage *m);
/* Sends one command and takes a turn. Return: its seq. */
uint64_t wss_do(struct wss *w, unsigned peer, Ws__Command__CCase which, void *sub);
bool wss_replied(struct wss *w, unsigned peer, uint64_t seq);
Ws__Error wss_error(struct wss *w, unsigned peer, uint64_t seq); /* aborts if there is no reply */
uint64_t wss_value(struct wss *w, unsigned peer, uint64_t seq);

uint64_t wss_alloc(struct wss *w, unsigned peer, uint32_t device, uint64_t bytes); /* 0: refused */
void wss_stream(struct wss *w, unsigned peer, uint64_t id, uint32_t device, bool non_blocking);
uint64_t wss_fill(struct wss *w, unsigned peer, uint64_t stream, uint64_t va, uint64_t bytes,
                  uint8_t value);
uint64_t wss_record(struct wss *w, unsigned peer, uint64_t event, uint64_t stream);
uint64_t wss_wait(struct wss *w, unsigned peer, uint64_t stream, uint64_t event);
uint64_t wss_sync_stream(struct wss *w, unsigned peer, uint64_t stream);
uint64_t wss_sync_event(struct wss *w, unsigned peer, uint64_t event);
uint64_t wss_sync_device(struct wss *w, unsigned peer, uint32_t device);
uint64_t wss_query_event(struct wss *w, unsigned peer, uint64_t event);
uint64_t wss_query_stream(struct wss *w, unsigned peer, uint64_t stream);
uint64_t wss_free_mem(struct wss *w, unsigned peer, uint64_t va);
void wss_sha256(const void *p, size_t n, uint8_t *ret);
/* ModuleLoad; if the image is not known, uploads it and tries again. wss_load_try(): only the
 * first. */
uint64_t wss_load(struct wss *w, unsigned peer, uint64_t module, uint32_t device, const void *image,
                  size_t n);
uint64_t wss_load_try(struct wss *w, unsigned peer, uint64_t module, uint32_t device,
                      const void *image, size_t n);
uint64_t wss_launch(struct wss *w, unsigned peer, uint64_t stream, uint64_t function,
                    const void *params, size_t n);

#endif
