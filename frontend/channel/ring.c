// SPDX-License-Identifier: Apache-2.0
/* The channel's end of its ring (protocol/ring.h). It is opened after the hello if the daemon is on
 * the same machine and has one; without it everything goes through ZeroMQ. Batches that fit go into
 * the ring, and their replies come from there. All functions are called with the channel's lock
 * held, as those of the sockets are. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "frontend/channel/private.h"
#include "frontend/config.h"

static int get_descriptor(struct ws_channel *c, uint32_t kind)
{
    struct ws_handoff_reply reply;
    int fd,
        r = ws_channel_handoff_request(c, &(struct ws_handoff_request){.kind = kind}, &reply, &fd);
    if (!r && !reply.error && fd >= 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return r ? r : -EOPNOTSUPP;
}

void ws_channel_ring_open(struct ws_channel *c)
{
    struct stat st;
    if (c->handoff_fd < 0 || !ws_frontend_config()->ring)
        return;
    int fd = get_descriptor(c, WS_HANDOFF_RING);
    if (fd < 0)
        return;
    /* It must be as long as it should be, or touching it would be a SIGBUS in the program. */
    int r = fstat(fd, &st) < 0 ? -errno
            : (uint64_t)st.st_size < sizeof(struct ws_ring_memory)
                ? -EPROTO
                : ws_ring_map(&c->ring, fd, true);
    close(fd);
    if (!r)
        c->ring.doorbell = r = get_descriptor(c, WS_HANDOFF_DOORBELL);
    if (r < 0)
        ws_ring_end(&c->ring);
}

void ws_channel_ring_take(struct ws_channel *c)
{
    uint8_t message[WS_RING_MESSAGE_BYTES];
    for (;;) {
        ssize_t n = ws_ring_take(&c->ring, message);
        if (n == -EAGAIN)
            return;
        ws_channel_take_message(c, message, n < 0 ? 0 : (size_t)n);
        if (n < 0)
            return;
    }
}
