/* SPDX-License-Identifier: Apache-2.0 */
/* tests/attack/connect.c - attacks by connecting, before any hello: rows 2 to 5 and 11. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/macros.h"
#include "protocol/handoff.h"
#include "tests/attack/attack.h"

/* ---- row 2: connections that say nothing ---- */

static const char *silent(const struct target *t, unsigned copy)
{
    for (unsigned i = 0; attack_goes_on(t); i++) {
        int fd = raw_dial(t->sock);
        if (fd >= 0)
            close(fd);
        else
            attack_sleep_ms(1);
    }
    (void)copy;
    return NULL;
}

/* Somebody on the network who has no key. */
static const char *silent_tcp(const struct target *t, unsigned copy)
{
    uint8_t greeting[RAW_GREETING_BYTES];
    for (unsigned i = 0; attack_goes_on(t); i++) {
        int fd = raw_dial_tcp(t->port);
        if (fd >= 0 && i % 2)
            raw_bytes(fd, greeting, raw_greeting(greeting));
        if (fd >= 0)
            close(fd);
        else
            attack_sleep_ms(1);
    }
    (void)copy;
    return NULL;
}

static const char *silent_greeted(const struct target *t, unsigned copy)
{
    while (attack_goes_on(t)) {
        int fd = raw_dial(t->sock);
        if (fd < 0 || raw_greet(fd, "", 0))
            attack_sleep_ms(1);
        if (fd >= 0)
            close(fd);
    }
    (void)copy;
    return NULL;
}

/* ---- row 3: descriptors ---- */

/* Keeps as many connections as it gets. */
static const char *hold(const struct target *t, unsigned copy)
{
    for (unsigned n = 0; attack_goes_on(t); n++) {
        int fd = n < 5000 ? raw_dial(t->sock) : -1;
        if (fd < 0)
            attack_sleep_ms(5);
        else if (copy % 2)
            (void)!raw_greet(fd, "", 0);
    }
    return NULL;
}

static const char *hold_tcp(const struct target *t, unsigned copy)
{
    for (unsigned n = 0; attack_goes_on(t); n++)
        if (n >= 5000 || raw_dial_tcp(t->port) < 0)
            attack_sleep_ms(5);
    (void)copy;
    return NULL;
}

/* Packets with many descriptors each. */
static const char *descriptors(const struct target *t, unsigned copy)
{
    enum { N = 8 };
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(N * sizeof(int))];
    } control;
    struct ws_handoff_request q = {.kind = WS_HANDOFF_STAGING + copy};
    struct iovec iov = {&q, sizeof(q)};
    int fds[N];
    for (int i = 0; i < N; i++)
        fds[i] = open("/dev/null", O_RDONLY);
    while (attack_goes_on(t)) {
        struct msghdr m = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof(control)};
        memset(&control, 0, sizeof(control));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(N * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
        int fd = ws_handoff_connect(t->side);
        for (int i = 0; fd >= 0 && i < 4; i++)
            (void)!sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (fd >= 0)
            close(fd);
    }
    return NULL;
}

/* ---- row 4: routing ids ---- */

/* Ids as libzmq makes them for connections that choose none: a zero byte and a number. */
static const char *ids(const struct target *t, unsigned copy)
{
    uint8_t id[5] = {0};
    for (uint32_t n = 0; attack_goes_on(t); n++) {
        uint32_t number = n * 1048576u + copy * 524288u;
        bool chosen = n < 2000;
        int fd = raw_dial(t->sock);
        memcpy(id + 1, &number, 4);
        if (fd >= 0)
            (void)!raw_greet(fd, id, chosen ? sizeof(id) : 0);
        else
            attack_sleep_ms(1);
        if (fd >= 0 && !chosen)
            close(fd);
    }
    return NULL;
}

/* Each hello is a line of the log. */
static const char *log_lines(const struct target *t, unsigned copy)
{
    /* 2,000 lines and 20 a second are about 450 KiB; without a limit it was 2.7 MB. */
    enum { LOG_BYTES = 1 << 20 };
    char path[96];
    struct stat st;
    struct raw r;
    (void)copy;
    while (attack_goes_on(t) && attack_open(&r, t))
        raw_close(&r);
    snprintf(path, sizeof(path), "%s/log", t->dir);
    if (stat(path, &st))
        return "the log cannot be looked at";
    return st.st_size > LOG_BYTES ? "a log of more than 1 MiB" : NULL;
}

/* Who takes an id must not take it from another. */
static const char *same_id(const struct target *t, unsigned copy)
{
    static const char id[] = "\0\1\2\3\4";
    int first = raw_dial(t->sock), second = raw_dial(t->sock);
    if (first < 0 || raw_greet(first, id, 5))
        return NULL; /* such an id is refused */
    attack_sleep_ms(100);
    if (second < 0 || raw_greet(second, id, 5))
        return NULL;
    Ws__ServerMessage *a = raw_status(second);
    struct pollfd p = {.fd = second, .events = POLLRDHUP};
    (void)copy;
    if (a || poll(&p, 1, 0) == 1)
        return NULL; /* each has its own answers; or the second one was refused */
    return "a connection that chose another's routing id gets neither an answer nor its end";
}

/* ---- row 5: messages that never end ---- */

static const char *endless(const struct target *t, unsigned copy)
{
    enum { FRAME = 3, N = 16384 };
    uint8_t *p = malloc(N * FRAME);
    int fd = -1;
    for (int i = 0; p && i < N; i++) {
        raw_head(p + (size_t)i * FRAME, 1, true);
        p[(size_t)i * FRAME + 2] = 'x';
    }
    while (p && attack_goes_on(t)) {
        if (fd < 0 && (fd = raw_dial(t->sock)) >= 0 && raw_greet(fd, "", 0)) {
            close(fd);
            fd = -1;
        }
        if (fd < 0) {
            attack_sleep_ms(1);
        } else if (raw_bytes(fd, p, (size_t)N * FRAME)) {
            close(fd);
            fd = -1;
        }
    }
    (void)copy;
    return NULL;
}

/* One frame that announces more than it may have, on many connections. */
static const char *large(const struct target *t, unsigned copy)
{
    uint8_t head[9];
    char *p = calloc(1, 1 << 20);
    for (unsigned n = 0; p && attack_goes_on(t); n++) {
        int fd = n < 500 ? raw_dial(t->sock) : -1;
        if (fd < 0 || raw_greet(fd, "", 0)) {
            attack_sleep_ms(5);
            continue;
        }
        raw_bytes(fd, head, raw_head(head, copy % 2 ? UINT64_MAX / 2 : 4 << 20, false));
        for (int i = 0; i < 3 && !raw_bytes(fd, p, 1 << 20); i++)
            ;
    }
    return NULL;
}

/* ---- row 11: the handoff socket ---- */

static const char *side(const struct target *t, unsigned copy)
{
    int fds[64] = {0};
    for (unsigned n = 0; attack_goes_on(t); n++) {
        int *fd = &fds[n % WS_ARRAY_SIZE(fds)];
        if (*fd > 0)
            close(*fd);
        *fd = ws_handoff_connect(t->side);
    }
    (void)copy;
    return NULL;
}

static const char *side_hold(const struct target *t, unsigned copy)
{
    for (unsigned n = 0; attack_goes_on(t); n++)
        if (n >= 2000 || ws_handoff_connect(t->side) < 0)
            attack_sleep_ms(1);
    (void)copy;
    return NULL;
}

/* ---- beyond the rows ---- */

/* Each connection stops at another place of the greeting, of READY or of the hello. */
static const char *half_open(const struct target *t, unsigned copy)
{
    uint8_t p[RAW_GREETING_BYTES + RAW_READY_BYTES + 16];
    size_t n = raw_greeting(p);
    n += raw_ready(p + n, "", 0);
    n += raw_head(p + n, 100, false);
    for (size_t i = 0; attack_goes_on(t); i++) {
        int fd = i < 1000 ? raw_dial(t->sock) : -1;
        if (fd < 0 || raw_bytes(fd, p, i % n))
            attack_sleep_ms(5);
    }
    (void)copy;
    return NULL;
}

/* A whole conversation of single bytes is a conversation. */
static const char *single_bytes(const struct target *t, unsigned copy)
{
    uint8_t p[RAW_GREETING_BYTES + RAW_READY_BYTES + 32], status[16];
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest q = WS__STATUS_REQUEST__INIT;
    q.version = WS_PROTOCOL_VERSION;
    m.status = &q;
    (void)copy;
    while (attack_goes_on(t)) {
        int fd = raw_dial(t->sock);
        size_t n = raw_greeting(p);
        n += raw_ready(p + n, "", 0);
        size_t n_status = ws__client_message__pack(&m, status);
        n += raw_head(p + n, n_status, false);
        memcpy(p + n, status, n_status);
        n += n_status;
        for (size_t i = 0; i < n; i++)
            if (raw_bytes(fd, p + i, 1))
                return "a message of single bytes was refused";
            else if (i % 4 == 0)
                attack_sleep_ms(1);
        char answer[RAW_GREETING_BYTES + 2];
        if (recv(fd, answer, sizeof(answer), MSG_WAITALL) != sizeof(answer))
            return "a message of single bytes got no answer";
        close(fd);
    }
    return NULL;
}

/* Asks and does not read. */
static const char *deaf(const struct target *t, unsigned copy)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest q = WS__STATUS_REQUEST__INIT;
    q.version = WS_PROTOCOL_VERSION;
    m.status = &q;
    for (unsigned n = 0; attack_goes_on(t); n++) {
        int fd = n < 200 ? raw_dial(t->sock) : -1;
        if (fd < 0 || raw_greet(fd, "", 0)) {
            attack_sleep_ms(5);
            continue;
        }
        fcntl(fd, F_SETFL, O_NONBLOCK);
        for (int i = 0; i < 5000 && !raw_message(fd, &m); i++)
            ;
    }
    (void)copy;
    return NULL;
}

/* As many as it can, among programs that compute. */
static const char *crowd(const struct target *t, unsigned copy)
{
    for (unsigned n = 0; attack_goes_on(t); n++) {
        int fd = n < 2500 ? raw_dial(t->sock) : -1;
        if (fd >= 0)
            (void)!raw_greet(fd, "", 0);
        else
            attack_sleep_ms(5);
        if (fd >= 0 && n % 2)
            close(fd);
    }
    (void)copy;
    return NULL;
}

/* Asks for the metrics as fast as it can, on many connections at once, and reads no answer. */
static const char *scrapes(const struct target *t, unsigned copy)
{
    enum { AT_ONCE = 64 };
    static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
    int fd[AT_ONCE];
    (void)copy;
    memset(fd, -1, sizeof(fd));
    for (unsigned i = 0; attack_goes_on(t); i = (i + 1) % AT_ONCE) {
        if (fd[i] >= 0)
            close(fd[i]);
        fd[i] = raw_dial_tcp(t->port);
        if (fd[i] >= 0)
            raw_bytes(fd[i], request, sizeof(request) - 1);
    }
    return NULL;
}

/* Whether a page of the metrics comes within two seconds, asked for from another address. */
static bool page_comes(unsigned port)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\n\r\n";
    char text[16] = "";
    int fd = raw_dial_tcp_from("127.0.0.2", port);
    bool came = fd >= 0 && !raw_bytes(fd, request, sizeof(request) - 1) &&
                recv(fd, text, sizeof(text) - 1, MSG_WAITALL) == sizeof(text) - 1 &&
                !strncmp(text, "HTTP/1.1 200", 12);
    if (fd >= 0)
        close(fd);
    return came;
}

/* The other copies say what is no request, say one that never ends, and ask without reading, on as
 * many connections as they get. */
static const char *metrics_noise(const struct target *t, unsigned copy)
{
    enum { AT_ONCE = 64 };
    static const char question[] = "GET /metrics HTTP/1.1\r\n\r\n",
                      begun[] = "GET /metrics HTTP/1.1\r\n";
    static char noise[64 << 10];
    int fd[AT_ONCE];
    memset(fd, -1, sizeof(fd));
    memset(noise, 0xa5, sizeof(noise));
    for (unsigned i = 0; attack_goes_on(t); i = (i + 1) % AT_ONCE) {
        if (!copy) {
            if (!page_comes(t->port))
                return "who asks for the metrics from another address gets no page";
            attack_sleep_ms(50);
            continue;
        }
        if (fd[i] >= 0 && copy == 2 && !raw_bytes(fd[i], "x", 1))
            continue; /* one byte more */
        if (fd[i] >= 0)
            close(fd[i]);
        fd[i] = raw_dial_tcp(t->port);
        if (fd[i] >= 0)
            raw_bytes(fd[i],
                      copy == 1   ? noise
                      : copy == 2 ? begun
                                  : question,
                      copy == 1   ? sizeof(noise)
                      : copy == 2 ? sizeof(begun) - 1
                                  : sizeof(question) - 1);
    }
    return NULL;
}

const struct attack attacks_connect[] = {
    {"2", "silent", "connections that end without a word", silent, .copies = 2, .first = true},
    {"10", "log-lines", "a line of the log for each hello", log_lines, .copies = 4, .ms = 3000},
    {"2", "silent-greeted", "the same, after the greeting", silent_greeted, .copies = 2,
     .first = true},
    {"2", "silent-tcp", "the same over tcp, without a key", silent_tcp, .copies = 2, .tcp = true,
     .first = true},
    {"3", "hold", "20,000 connections that stay", hold, .copies = 4, .n_files = 4096},
    {"3", "hold-tcp", "10,000 connections over tcp that stay", hold_tcp, .copies = 2,
     .n_files = 4096, .tcp = true},
    {"3", "descriptors", "packets with eight descriptors each", descriptors, .copies = 2,
     .n_files = 2048},
    {"4", "ids", "routing ids like the daemon's own", ids, .copies = 2},
    {"4", "same-id", "another's routing id", same_id, .copies = 1},
    {"5", "endless", "a message that never ends", endless, .ms = 3000, .max_mib = 256},
    {"5", "large", "messages of 4 MiB that never end", large, .copies = 2, .max_mib = 256},
    {"11", "side", "two who flood the handoff socket", side, .copies = 2},
    {"11", "side-hold", "4,000 connections to the handoff socket", side_hold, .copies = 2},
    {"+", "half-open", "connections that stop at each byte", half_open, .copies = 1},
    {"+", "single-bytes", "messages of single bytes", single_bytes, .copies = 2},
    {"+", "deaf", "many questions, no answer read", deaf, .max_mib = 256},
    {"+", "crowd", "5,000 connects beside 12 programs", crowd, .copies = 2, .n_programs = 12},
    {"3", "scrapes", "asks for the metrics again and again", scrapes, .copies = 4,
     .conf = "metrics = \"127.0.0.1:%PORT%\"\n"},
    {"3", "metrics-noise", "asks for the metrics without sense, end or reading", metrics_noise,
     .copies = 4, .conf = "metrics = \"127.0.0.1:%PORT%\"\n"},
    {0}};
