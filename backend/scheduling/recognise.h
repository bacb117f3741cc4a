// SPDX-License-Identifier: Apache-2.0
/* backend/scheduling/recognise.h - the task of a client, and which GPUs it may use. Threads: the
 * loop's. */
#ifndef WS_BACKEND_SCHEDULING_RECOGNISE_H
#define WS_BACKEND_SCHEDULING_RECOGNISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "backend/config/task.h"
#include "protocol/protocol.h"

struct ws_client;
struct ws_server;
struct ws_batch_step;

enum { WS_ENV_NAMES_MAX = 64 };
/* Whether tasks are told by variables that this hello does not have yet; then their names are in
 * @ret. */
bool ws_hello_needs_env(struct ws_server *s, const Ws__Hello *h, Ws__HelloReply *ret);
/* Who says hello, before he is a client. */
struct ws_newcomer {
    int fd;        /* of its connection; -1: it has none */
    bool has_cred; /* pid is the kernel's word */
    bool local;
    uint32_t pid, uid;       /* uid UINT32_MAX: not known */
    char exe[256], name[64]; /* clean texts; name: the task he says he is */
    bool exe_known;          /* exe is the kernel's word */
    struct ws_task work;     /* set by ws_newcomer_recognise(), as is exe where /proc tells it */
    bool work_known;
    struct ws_batch_step *step; /* as work; NULL: none */
};
/* Whether this user could change the configuration as well. */
bool ws_is_trusted(uint32_t uid);
void ws_newcomer_recognise(struct ws_server *s, const Ws__Hello *h, struct ws_newcomer *n);
/* The program names its task itself. Return: OK; NOT_FOUND, DENIED, INVALID_VALUE with
 * @ret_text, nothing changed. */
Ws__Error ws_client_set_task(struct ws_client *c, const char *name, char *ret_text, size_t size);
/* Keeps those of order[n] that the task may use. Return: how many. */
uint32_t ws_task_gpus(const struct ws_server *s, const struct ws_task *t, uint32_t *order,
                      uint32_t n);

#endif
