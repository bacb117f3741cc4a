// SPDX-License-Identifier: Apache-2.0
/* The handoff socket: over it the daemon passes the descriptors of shared memory. There is one
 * request at a time, and the daemon answers each one at once. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/packet.h"
#include "frontend/channel/private.h"

enum { HANDOFF_TIMEOUT_S = 10 };

/* Asks the daemon. @q: the token is filled in here. @pass_fd: a descriptor that goes along, or -1.
 * @ret_fd: the descriptor that came along, or -1. Return: 0 with the daemon's answer in *ret, or
 * -errno. */
static int handoff(struct ws_channel *c, struct ws_handoff_request *q, int pass_fd,
                   struct ws_handoff_reply *ret, int *ret_fd)
{
    *ret_fd = -1;
    *ret = (struct ws_handoff_reply){.error = WS__ERROR__INTERNAL};
    memcpy(q->token, c->hello->token.data, WS_TOKEN_BYTES);
    pthread_mutex_lock(&c->handoff_lock);
    ssize_t n = ws_packet_send(c->handoff_fd, q, sizeof(*q), pass_fd, 0);
    if (!n)
        n = ws_packet_recv(c->handoff_fd, ret, sizeof(*ret), ret_fd, 0);
    pthread_mutex_unlock(&c->handoff_lock);
    if (n < 0)
        return n == -EMSGSIZE ? -EPROTO : (int)n;
    if (n == sizeof(*ret))
        return 0;
    if (*ret_fd >= 0)
        close(*ret_fd);
    *ret_fd = -1;
    return n == 0 ? -ECONNRESET : -EPROTO;
}

int ws_channel_handoff_request(struct ws_channel *c, struct ws_handoff_request *q,
                               struct ws_handoff_reply *ret, int *ret_fd)
{
    return handoff(c, q, -1, ret, ret_fd);
}

int ws_channel_handoff_open(struct ws_channel *c)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    struct ws_handoff_request q = {.kind = WS_HANDOFF_HELLO};
    struct ws_handoff_reply reply = {.error = WS__ERROR__INTERNAL};
    int fd = -1, r = -ENAMETOOLONG;
    const char *path = c->hello->handoff_socket;
    if (c->hello->token.len == WS_TOKEN_BYTES && strlen(path) < sizeof(a.sun_path)) {
        strcpy(a.sun_path, path);
        c->handoff_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        struct timeval t = {.tv_sec = HANDOFF_TIMEOUT_S};
        setsockopt(c->handoff_fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
        setsockopt(c->handoff_fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
        r = connect(c->handoff_fd, (struct sockaddr *)&a, sizeof(a)) < 0
                ? -errno
                : handoff(c, &q, -1, &reply, &fd);
    }
    if (!r && fd >= 0)
        close(fd);
    if (!r && reply.error == WS__ERROR__OK)
        return WS__ERROR__OK;
    ws_log(WS_ERROR, "channel: the daemon's handoff socket %s fails: %s", path,
           r ? strerrordesc_np(-r) : "access denied");
    return r ? WS__ERROR__DISCONNECTED : WS__ERROR__DENIED;
}

int ws_channel_segment_new(struct ws_channel *c, uint32_t kind, uint64_t bytes,
                           uint32_t chunk_bytes, struct ws_channel_segment *ret)
{
    struct ws_handoff_request q = {.kind = kind, .bytes = bytes, .chunk_bytes = chunk_bytes};
    struct ws_handoff_reply reply;
    struct stat st;
    int fd;
    if (c->handoff_fd < 0)
        return WS__ERROR__NOT_SUPPORTED;
    int r = handoff(c, &q, -1, &reply, &fd);
    if (r)
        return ws_channel_alive(c) ? WS__ERROR__INTERNAL : WS__ERROR__DISCONNECTED;
    if (reply.error != WS__ERROR__OK || fd < 0) {
        if (fd >= 0)
            close(fd);
        return reply.error ? (int)reply.error : WS__ERROR__INTERNAL;
    }
    uint64_t map_bytes = reply.data_offset + reply.bytes;
    void *map = MAP_FAILED;
    /* The file must really be as long as the daemon says, or touching it would be a SIGBUS in the
     * program. */
    if (reply.bytes >= bytes && map_bytes >= bytes && fstat(fd, &st) == 0 &&
        (uint64_t)st.st_size >= map_bytes)
        map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    *ret = (struct ws_channel_segment){
        .id = reply.segment, .map = map, .map_bytes = map_bytes, .bytes = reply.bytes};
    if (map == MAP_FAILED) {
        ret->map = NULL;
        ws_channel_segment_free(c, ret);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    ret->data = (uint8_t *)map + reply.data_offset;
    return WS__ERROR__OK;
}

int ws_channel_segment_share(struct ws_channel *c, int fd, uint64_t bytes, uint32_t *ret_id)
{
    struct ws_handoff_request q = {.kind = WS_HANDOFF_SHARED, .bytes = bytes};
    struct ws_handoff_reply reply;
    int came = -1;
    if (c->handoff_fd < 0)
        return WS__ERROR__NOT_SUPPORTED;
    int r = handoff(c, &q, fd, &reply, &came);
    if (came >= 0)
        close(came);
    if (r)
        return ws_channel_alive(c) ? WS__ERROR__INTERNAL : WS__ERROR__DISCONNECTED;
    *ret_id = reply.segment;
    return (int)reply.error;
}

void ws_channel_segment_free(struct ws_channel *c, struct ws_channel_segment *s)
{
    struct ws_handoff_request q = {.kind = WS_HANDOFF_FREE, .segment = s->id};
    struct ws_handoff_reply reply;
    int fd;
    if (s->map)
        munmap(s->map, s->map_bytes);
    handoff(c, &q, -1, &reply, &fd);
    if (fd >= 0)
        close(fd);
    *s = (struct ws_channel_segment){0};
}

/* Return: a Ws__Error. */
static int object_request(struct ws_channel *c, uint32_t kind, uint64_t object, int pass_fd,
                          struct ws_handoff_reply *ret, int *ret_fd)
{
    struct ws_handoff_request q = {.kind = kind, .bytes = object};
    *ret_fd = -1;
    if (c->handoff_fd < 0)
        return WS__ERROR__NOT_SUPPORTED;
    int r = handoff(c, &q, pass_fd, ret, ret_fd);
    if (r == -EBADF && pass_fd >= 0)
        return WS__ERROR__INVALID_VALUE;
    if (r)
        return ws_channel_alive(c) ? WS__ERROR__INTERNAL : WS__ERROR__DISCONNECTED;
    return (int)ret->error;
}

int ws_channel_export(struct ws_channel *c, uint64_t object, int *ret_fd)
{
    struct ws_handoff_reply reply;
    int fd, r = object_request(c, WS_HANDOFF_EXPORT, object, -1, &reply, &fd);
    if (!r && fd < 0)
        r = WS__ERROR__INTERNAL;
    if (r && fd >= 0)
        close(fd);
    if (!r)
        *ret_fd = fd;
    return r;
}

int ws_channel_import(struct ws_channel *c, int fd, uint64_t object, uint32_t *ret_device,
                      uint64_t *ret_bytes)
{
    struct ws_handoff_reply reply;
    int came, r = object_request(c, WS_HANDOFF_IMPORT, object, fd, &reply, &came);
    if (came >= 0)
        close(came);
    if (!r) {
        *ret_device = reply.segment;
        *ret_bytes = reply.bytes;
    }
    return r;
}
