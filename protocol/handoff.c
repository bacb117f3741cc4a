// SPDX-License-Identifier: Apache-2.0
#include "protocol/handoff.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

static const char ipc_prefix[] = "ipc://";
static const char handoff_suffix[] = ".side";

int ws_handoff_path(const char *endpoint, char *buf, size_t size)
{
    if (strncmp(endpoint, ipc_prefix, strlen(ipc_prefix)))
        return -EINVAL;
    const char *path = endpoint + strlen(ipc_prefix);
    if (!path[0] || path[0] == '@' || path[0] == '*')
        return -EINVAL;
    size_t n = strlen(path) + strlen(handoff_suffix) + 1;
    if (n > size || n > sizeof((struct sockaddr_un *)0)->sun_path)
        return -ENAMETOOLONG;
    snprintf(buf, size, "%s%s", path, handoff_suffix);
    return 0;
}

static int address(const char *path, struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(ret->sun_path))
        return ws_raise(-ENAMETOOLONG);
    memcpy(ret->sun_path, path, strlen(path));
    return 0;
}

static int close_with(int fd, int r)
{
    close(fd);
    return ws_raise(r);
}

int ws_unix_listen(const char *path, int type, mode_t mode)
{
    enum { BACKLOG = 1024 };
    struct sockaddr_un a;
    int r = address(path, &a);
    if (r)
        return ws_forward(r);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return ws_raise(-errno);
    mode_t old = umask(~mode & 0777);
    r = bind(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
    umask(old);
    if (r || listen(fd, BACKLOG))
        return close_with(fd, r ? r : -errno);
    return fd;
}

int ws_handoff_listen(const char *path, mode_t mode)
{
    unlink(path);
    int fd = ws_unix_listen(path, SOCK_SEQPACKET, mode);
    return fd < 0 ? ws_forward(fd) : fd;
}

int ws_handoff_connect(const char *path)
{
    struct sockaddr_un a;
    int r = address(path, &a);
    if (r)
        return ws_forward(r);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return ws_raise(-errno);
    if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
        return close_with(fd, -errno);
    return fd;
}
