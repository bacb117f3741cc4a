// SPDX-License-Identifier: Apache-2.0
/* backend/process/activation.h - listening sockets that a service manager opened for the daemon
 * (LISTEN_FDS, as in sd_listen_fds(3)). A socket is known by its type and path: ListenStream= at
 * the path of an ipc endpoint serves ZeroMQ; ListenSequentialPacket= at that path with ".side"
 * appended is the handoff socket. Threads: the loop, before it serves. */
#ifndef WS_BACKEND_PROCESS_ACTIVATION_H
#define WS_BACKEND_PROCESS_ACTIVATION_H

#include <stdbool.h>

enum { WS_ACTIVATION_MAX = 32 };
struct ws_activation {
    int n;
    struct {
        int fd; /* -1: taken */
        int type;
        char path[108];
    } v[WS_ACTIVATION_MAX];
};

/* Reads the environment, and takes its variables out of it. What is no Unix socket has the path
 * "". */
void ws_activation_read(struct ws_activation *a);
/* The descriptor of that type (SOCK_…) at @path, close-on-exec and non-blocking, now the
 * caller's; or -1. */
int ws_activation_take(struct ws_activation *a, int type, const char *path);
/* Closes what nobody took, with a line in the log for each. Return: how many. */
int ws_activation_end(struct ws_activation *a);

#endif
