// SPDX-License-Identifier: Apache-2.0
/* The channel's end of its lane (protocol/lane.h): opened after the hello on one machine, and done without where the daemon has
 * none. Batches that fit go there; replies come from there. All under the channel's lock, as the sockets are. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "frontend/channel/private.h"
#include "frontend/frontend.h"

static int get_descriptor(struct ws_channel *c, uint32_t kind)
{
    struct ws_side_reply reply;
    int fd, r = ws_channel_side_request(c, &(struct ws_side_request){.kind = kind}, &reply, &fd);
    if (!r && !reply.error && fd >= 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return r ? r : -EOPNOTSUPP;
}

void ws_channel_lane_open(struct ws_channel *c)
{
    struct stat st;
    if (c->side_fd < 0 || !ws_config()->lane)
        return;
    int fd = get_descriptor(c, WS_SIDE_LANE);
    if (fd < 0)
        return;
    /* It must be as long as it should be, or touching it would be a SIGBUS in the program. */
    int r = fstat(fd, &st) < 0 ? -errno
            : (uint64_t)st.st_size < sizeof(struct ws_lane_memory)
                ? -EPROTO
                : ws_lane_map(&c->lane, fd, true);
    close(fd);
    if (!r)
        c->lane.bell = r = get_descriptor(c, WS_SIDE_BELL);
    if (r < 0)
        ws_lane_end(&c->lane);
}

void ws_channel_lane_take(struct ws_channel *c)
{
    uint8_t message[WS_LANE_MESSAGE_BYTES];
    for (;;) {
        ssize_t n = ws_lane_take(&c->lane, message);
        if (n == -EAGAIN)
            return;
        ws_channel_take_message(c, message, n < 0 ? 0 : (size_t)n);
        if (n < 0)
            return;
    }
}
