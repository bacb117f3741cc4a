// SPDX-License-Identifier: Apache-2.0
/* backend/process/probe.h - the daemon as its own client: a connection to its own socket, by which
 * it asks for its status now and then. That is how the watchdog knows that messages go through, and
 * not just that the loop turns. Nothing here waits. Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_PROBE_H
#define WS_BACKEND_PROCESS_PROBE_H

#include <stdbool.h>
#include <stddef.h>

struct ws_probe {
    const char *path; /* of the Unix socket; NULL: there is none, and nothing is asked */
    int fd; /* kept for the next time: when it is needed there may be no descriptor left */
    bool asked;
    size_t n_came;
};

/* @path: borrowed; NULL ok. */
void ws_probe_init(struct ws_probe *p, const char *path);
void ws_probe_deinit(struct ws_probe *p);
/* Asks, unless an answer is awaited. Return: 0, or negative errno: nobody can connect now. */
int ws_probe_ask(struct ws_probe *p);
/* Readable when ws_probe_answered() is to be called; -1: nothing was asked. */
int ws_probe_fd(const struct ws_probe *p);
/* Whether the answer is there. To be turned away is an answer too: the door does its work. */
bool ws_probe_answered(struct ws_probe *p);

#endif
