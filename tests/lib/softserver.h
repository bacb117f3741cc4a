// SPDX-License-Identifier: Apache-2.0
/* tests/lib/softserver.h - the server core without sockets, with one software GPU that runs what
 * it is given; clients by number, whose launches can be held at the heads of their streams, as
 * the dispatcher holds them. For tests and benchmarks of fused launches. */
#ifndef WS_TESTS_SOFTSERVER_H
#define WS_TESTS_SOFTSERVER_H

#include "backend/backend.h"
#include "backend/process/server.h"
#include "device/catalog.h"

enum { SOFTS_CLIENTS = 16, SOFTS_REPLIES = 256 };
struct softs_client {
    struct ws_client *client; /* NULL once it is gone */
    uint64_t next_seq;
    unsigned n_replies;
    Ws__Error notice_error; /* the newest */
    char text[512];
    struct {
        uint64_t seq, value;
        Ws__Error error;
        char text[256];
    } replies[SOFTS_REPLIES]; /* the newest */
};
struct softs {
    struct ws_config config;
    struct ws_catalog catalog;
    struct ws_device *device;
    struct ws_server *server;
    struct ws_list hold[SOFTS_CLIENTS];
    struct softs_client clients[SOFTS_CLIENTS];
};
struct softs_launch {
    uint64_t stream; /* 0: the default one */
    uint64_t module;
    uint32_t kernel, grid[3], block[3], shared_bytes; /* 0: 1 */
    const void *params;
    size_t param_bytes;
};

/* directory of templates made by hand, for servers made from now on; or NULL */
extern const char *softs_templates;
/* policy of servers made from now on; NULL: none */
extern const char *softs_policy;
/* how time passes for servers made from now on */
extern enum ws_device_clock softs_clock;
/* @gpu: of the catalog. @n_loaders: threads; 0: modules and templates are made at once. Aborts
 *   where it can't. */
struct softs *softs_new(const char *gpu, uint32_t n_loaders, uint64_t max_kernel_insns);
void softs_free(struct softs *s);
/* A client's hello; its default stream and its device are numbers 0. */
void softs_hello(struct softs *s, unsigned c);
void softs_drop(struct softs *s, unsigned c);
uint64_t softs_alloc(struct softs *s, unsigned c, uint64_t bytes);
/* Return: what the client would be told. */
Ws__Error softs_load(struct softs *s, unsigned c, uint64_t module, const char *ptx);
/* Asks for a module whose image the server has. Return: the number of the command. */
uint64_t softs_load_begin(struct softs *s, unsigned c, uint64_t module, const char *ptx);
void softs_launch(struct softs *s, unsigned c, const struct softs_launch *l);
/* Waits for the client's device. Return: its error. */
Ws__Error softs_sync(struct softs *s, unsigned c);
/* Sends commands in one message. Return: the number of the first. */
uint64_t softs_send(struct softs *s, unsigned c, Ws__Command **commands, size_t n);
/* Waits for the answer to a command. Return: its error. */
Ws__Error softs_answer(struct softs *s, unsigned c, uint64_t seq);
/* From now on the client's operations stay at the heads of their streams; until let go, which
 * must be before any of its work ends. What is let go starts in the next turn. */
void softs_hold(struct softs *s, unsigned c);
void softs_let_go(struct softs *s, unsigned c);
/* The job at the head of a stream. */
struct ws_command *softs_head(struct softs *s, unsigned c, uint64_t stream);
/* Host memory of the client's at @va. */
void *softs_host(struct softs *s, unsigned c, uint64_t va, uint64_t bytes);
/* One turn, after a millisecond if nothing happens. */
void softs_turn(struct softs *s);

#endif
