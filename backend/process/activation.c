// SPDX-License-Identifier: Apache-2.0
#include "backend/process/activation.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/macros.h"

enum { FIRST_FD = 3 };

static void add(struct ws_activation *a, int fd)
{
    struct sockaddr_un name = {0};
    socklen_t n = sizeof(name), size = sizeof(int);
    int i = a->n++;
    a->v[i].fd = fd;
    a->v[i].type = 0;
    a->v[i].path[0] = 0;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &a->v[i].type, &size) ||
        getsockname(fd, (struct sockaddr *)&name, &n) || name.sun_family != AF_UNIX)
        return;
    size_t length = n - offsetof(struct sockaddr_un, sun_path);
    snprintf(a->v[i].path, sizeof(a->v[i].path), "%.*s", (int)length, name.sun_path);
}

void ws_activation_read(struct ws_activation *a)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    a->n = 0;
    if (pid && fds && strtol(pid, NULL, 10) == getpid()) {
        long n = strtol(fds, NULL, 10);
        for (int fd = FIRST_FD; fd < FIRST_FD + WS_MIN(n, (long)WS_ACTIVATION_MAX); fd++)
            add(a, fd);
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
}

int ws_activation_take(struct ws_activation *a, int type, const char *path)
{
    for (int i = 0; i < a->n; i++) {
        int fd = a->v[i].fd;
        if (fd < 0 || a->v[i].type != type || strcmp(a->v[i].path, path))
            continue;
        a->v[i].fd = -1;
        return fd;
    }
    return -1;
}

int ws_activation_end(struct ws_activation *a)
{
    int n = 0;
    for (int i = 0; i < a->n; i++) {
        if (a->v[i].fd < 0)
            continue;
        ws_log(WS_ERROR,
               "activation: the socket that was passed at %s is no endpoint of this configuration: "
               "use ListenStream=PATH of an ipc endpoint, and ListenSequentialPacket=PATH.side",
               a->v[i].path[0] ? a->v[i].path : "(no Unix path)");
        close(a->v[i].fd);
        n++;
    }
    a->n = 0;
    return n;
}
