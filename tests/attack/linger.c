/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/linger.c - descriptors whose last close() waits. A TCP socket with SO_LINGER, whose
 * other end does not read, makes whoever closes it last wait for ten minutes. So the attackers send
 * such sockets to the daemon on each of its sockets, and close their own descriptors. The daemon
 * closes them when it reads the message, or when it closes a connection that it has not read. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/packet.h"
#include "protocol/handoff.h"
#include "tests/attack/attack.h"

enum { AT_ONCE = 8, BUSY = 64, LINGER_S = 600 };

/* A socket that listens on an address of this machine, and has little room for what comes. */
static int listener(struct sockaddr_in *ret_at)
{
    socklen_t n = sizeof(*ret_at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), little = 1;
    *ret_at =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little));
    if (bind(fd, (struct sockaddr *)ret_at, n) || listen(fd, 4096) ||
        getsockname(fd, (struct sockaddr *)ret_at, &n))
        abort();
    return fd;
}

/* A socket with more to send than its other end, which nobody accepts, has room for. Return: -1:
 * there are too many already. */
static int lingering(const struct sockaddr_in *to)
{
    static const char bytes[64 << 10];
    const struct linger l = {.l_onoff = 1, .l_linger = LINGER_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
    if (!connect(fd, (const struct sockaddr *)to, sizeof(*to)) &&
        send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        return fd;
    close(fd);
    return -1;
}

/* A socket in whose queue such a socket lies, which goes when this one is closed. */
static int nested(const struct sockaddr_in *to)
{
    int pair[2], inner = lingering(to);
    if (inner < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return -1;
    (void)!ws_packet_send(pair[0], "", 1, inner, MSG_DONTWAIT);
    close(inner);
    close(pair[0]);
    return pair[1];
}

/* Sends as many packets as there are lingering sockets, each with one. @first: NULL, or what comes
 * before them so often that the daemon is still busy with it when the last one is sent. */
static void send_lingering(int fd, const void *p, size_t n, const void *first,
                           const struct sockaddr_in *to)
{
    int passed[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++)
        passed[i] = i % 2 ? nested(to) : lingering(to);
    for (int i = 0; first && i < BUSY; i++)
        (void)!ws_packet_send(fd, first, n, -1, MSG_DONTWAIT);
    for (int i = 0; i < AT_ONCE; i++)
        if (passed[i] >= 0 && ws_packet_send(fd, p, n, passed[i], MSG_DONTWAIT))
            break; /* it lets no descriptors in, or is closed already */
}

/* As an introduction that is none. */
static void to_main_socket(const struct target *t, const struct sockaddr_in *to)
{
    uint8_t greeting[RAW_GREETING_BYTES];
    int fd = raw_dial(t->sock);
    if (fd >= 0)
        send_lingering(fd, greeting, raw_greeting(greeting), NULL, to);
}

/* As requests of nobody. */
static void to_handoff_socket(const struct target *t, const struct sockaddr_in *to)
{
    struct ws_handoff_request q = {.kind = WS_HANDOFF_SHARED};
    int fd = ws_handoff_connect(t->side);
    if (fd >= 0)
        send_lingering(fd, &q, sizeof(q), NULL, to);
}

/* On the doorbell of its ring, and as requests of a client: with its token, which are answered, or
 * without, so that the first one ends the connection and the others are not read. */
static void as_client(const struct target *t, const struct sockaddr_in *to, bool token)
{
    struct ws_handoff_request q = {.kind = WS_HANDOFF_SHARED, .bytes = 4096},
                              free_none = {.kind = WS_HANDOFF_FREE};
    struct raw r;
    if (raw_open(&r, t->sock, NULL) || raw_open_side(&r, t->side) || raw_open_ring(&r))
        return;
    memcpy(free_none.token, r.token, sizeof(free_none.token));
    if (token)
        memcpy(q.token, r.token, sizeof(q.token));
    send_lingering(r.ring.doorbell, "", 1, NULL, to);
    send_lingering(r.side, &q, sizeof(q), &free_none, to);
}

static void try_way(const struct target *t, const struct sockaddr_in *to, unsigned way)
{
    if (way == 0)
        to_main_socket(t, to);
    else if (way == 1)
        to_handoff_socket(t, to);
    else
        as_client(t, to, way == 2);
}

/* Each try is a process of its own, for the end of a process does not wait for its sockets. */
static const char *linger(const struct target *t, unsigned copy)
{
    enum { WAYS = 4 };
    struct sockaddr_in to;
    (void)listener(&to);
    for (unsigned i = copy; attack_goes_on(t); i++) {
        pid_t pid = fork();
        if (!pid) {
            try_way(t, &to, i % WAYS);
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    return NULL;
}

const struct attack attacks_linger[] = {
    {"3", "linger", "descriptors that take ten minutes to close", linger, .copies = 4}, {0}};
