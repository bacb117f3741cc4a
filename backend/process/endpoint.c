// SPDX-License-Identifier: Apache-2.0
#include "backend/process/endpoint.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

enum { BACKLOG = 1024, TYPE = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK };

static int close_with(int fd, int r)
{
    close(fd);
    return ws_raise(r);
}

static int listen_at(const struct addrinfo *i)
{
    int on = 1, off = 0, fd = socket(i->ai_family, TYPE, 0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (i->ai_family == AF_INET6) /* "*" is IPv4 as well */
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    return bind(fd, i->ai_addr, i->ai_addrlen) || listen(fd, BACKLOG) ? close_with(fd, -errno) : fd;
}

/* IPv6 is tried first, since it can stand for both. */
static int listen_at_one(const struct addrinfo *list)
{
    static const int families[] = {AF_INET6, AF_INET};
    int fd = -EADDRNOTAVAIL;
    for (size_t f = 0; f < WS_ARRAY_SIZE(families); f++)
        for (const struct addrinfo *i = list; i && fd < 0; i = i->ai_next)
            if (i->ai_family == families[f])
                fd = listen_at(i);
    return fd;
}

int ws_endpoint_listen_tcp(const char *address, const char **ret_why)
{
    char host[256];
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM},
                    *list;
    const char *colon = strrchr(address, ':');
    *ret_why = NULL;
    if (!colon || (size_t)(colon - address) >= sizeof(host))
        return ws_raise(-EINVAL);
    size_t n = (size_t)(colon - address);
    bool brackets = n >= 2 && address[0] == '[' && address[n - 1] == ']';
    snprintf(host, sizeof(host), "%.*s", (int)(brackets ? n - 2 : n), address + brackets);
    int r = getaddrinfo(strcmp(host, "*") ? host : NULL, colon + 1, &hints, &list);
    if (r) {
        *ret_why = gai_strerror(r);
        return ws_raise(-EADDRNOTAVAIL);
    }
    int fd = listen_at_one(list);
    freeaddrinfo(list);
    return fd;
}
