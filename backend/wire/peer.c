// SPDX-License-Identifier: Apache-2.0
#include "backend/wire/peer.h"

#include <poll.h>
#include <sys/socket.h>

bool ws_peer_gone(int fd, uint32_t pid)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    struct ucred cred;
    socklen_t n = sizeof(cred);
    if (fd < 0)
        return false;
    if (poll(&p, 1, 0) > 0) /* POLLNVAL: closed */
        return true;
    return pid && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) || (uint32_t)cred.pid != pid);
}
