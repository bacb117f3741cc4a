// SPDX-License-Identifier: Apache-2.0
#include "backend/process/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

void ws_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(a.sun_path))
        return;
    size_t n = strlen(path);
    memcpy(a.sun_path, path, n);
    if (path[0] == '@')
        a.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    ssize_t ignored = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&a,
                             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n));
    (void)ignored; /* the manager is gone: nobody to tell */
    close(fd);
}

void ws_notify_reloading(void)
{
    char text[80];
    snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, ws_clock_ns() / 1000);
    ws_notify(text);
}

uint64_t ws_notify_watchdog_ns(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    char *end;
    if (!usec || !usec[0] || (pid && strtol(pid, NULL, 10) != getpid()))
        return 0;
    uint64_t v = strtoull(usec, &end, 10);
    return *end || v > UINT64_MAX / 1000 ? 0 : v * 1000 / 2;
}
