// SPDX-License-Identifier: Apache-2.0
/* Where the parts of wattshare are, and how to ask a daemon. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "cli/cli.h"
#include "protocol/curve.h"

const char *ws_cli_endpoint(const char *option)
{
    const char *env = getenv(WS_ENV_SOCKET);
    if (option)
        return option;
    return env && *env ? env : WS_DEFAULT_SOCKET;
}

char *ws_cli_find_part(const char *env, const char *build_path, const char *installed_path)
{
    const char *given = getenv(env);
    char exe[PATH_MAX], *path = NULL;
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (given && *given) {
        if (!access(given, R_OK))
            return ws_strdup(given);
        ws_cli_error("%s names '%s': %s", env, given, strerror(errno));
        return NULL;
    }
    if (n > 0) {
        exe[n] = 0;
        *strrchr(exe, '/') = 0;
        if (asprintf(&path, "%s/../%s", exe, build_path) >= 0 && !access(path, R_OK)) {
            char *real = realpath(path, NULL);
            free(path);
            return real;
        }
        free(path);
    }
    if (!access(installed_path, R_OK))
        return ws_strdup(installed_path);
    ws_cli_error("'%s' is missing: install wattshare, or name it in %s", installed_path, env);
    return NULL;
}

/* The version that an answer is of; 0: it is none. */
static uint32_t answer_version(const Ws__ServerMessage *m)
{
    return m->status    ? m->status->version
           : m->policy  ? m->policy->version
           : m->explain ? m->explain->version
                        : 0;
}

static int receive(void *socket, int timeout_ms, Ws__ServerMessage **ret)
{
    uint64_t end_ns = ws_clock_ns() + (uint64_t)timeout_ms * WS_NS_PER_MS;
    for (;;) {
        uint64_t now_ns = ws_clock_ns();
        zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};
        if (now_ns >= end_ns ||
            zmq_poll(&item, 1, (long)((end_ns - now_ns) / WS_NS_PER_MS) + 1) == 0)
            return -ETIMEDOUT;
        zmq_msg_t msg;
        zmq_msg_init(&msg);
        if (zmq_msg_recv(&msg, socket, ZMQ_DONTWAIT) >= 0) {
            Ws__ServerMessage *m =
                ws__server_message__unpack(NULL, zmq_msg_size(&msg), zmq_msg_data(&msg));
            zmq_msg_close(&msg);
            if (!m)
                return -EPROTO;
            uint32_t version = answer_version(m);
            if (version == WS_PROTOCOL_VERSION) {
                *ret = m;
                return 0;
            }
            ws__server_message__free_unpacked(m, NULL);
            if (version)
                return -EPROTONOSUPPORT;
        } else {
            zmq_msg_close(&msg);
            if (errno != EAGAIN && errno != EINTR)
                return -errno;
        }
    }
}

/* A Unix socket tells at once that nobody listens; ZeroMQ would go on trying. */
static int probe_ipc(const char *endpoint)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strncmp(endpoint, "ipc://", 6) || strlen(endpoint + 6) >= sizeof a.sun_path ||
        endpoint[6] != '/')
        return 0;
    strcpy(a.sun_path, endpoint + 6);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

int ws_cli_set_keys(void *socket, const char *endpoint)
{
    struct ws_curve_client k;
    char text[512];
    if (strncmp(endpoint, "tcp://", 6))
        return 0;
    const char *wrong = ws_curve_client(&k, text, sizeof text);
    if (wrong) {
        ws_cli_error("%s", wrong);
        return -EPERM;
    }
    int r =
        zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, k.server, WS_CURVE_TEXT_BYTES) ||
                zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, k.own.public_key,
                               WS_CURVE_TEXT_BYTES) ||
                zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, k.own.secret_key, WS_CURVE_TEXT_BYTES)
            ? -errno
            : 0;
    explicit_bzero(&k, sizeof k);
    return r;
}

int ws_cli_ask(const char *endpoint, int timeout_ms, const Ws__ClientMessage *request,
               Ws__ServerMessage **ret)
{
    size_t n = ws__client_message__get_packed_size(request);
    int linger = 0, r = probe_ipc(endpoint);
    if (r)
        return r;
    uint8_t *bytes = ws_alloc(n + 1);
    if (!bytes)
        return -ENOMEM;
    ws__client_message__pack(request, bytes);
    void *ctx = zmq_ctx_new(), *socket = ctx ? zmq_socket(ctx, ZMQ_DEALER) : NULL;
    if (!socket) {
        r = -ENOMEM;
    } else {
        zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
        r = ws_cli_set_keys(socket, endpoint);
        if (!r)
            r = zmq_connect(socket, endpoint) || zmq_send(socket, bytes, n, 0) < 0 ? -errno : 0;
        if (!r)
            r = receive(socket, timeout_ms, ret);
        zmq_close(socket);
    }
    if (ctx)
        zmq_ctx_term(ctx);
    free(bytes);
    return r;
}

int ws_cli_ask_status(const char *endpoint, int timeout_ms, Ws__ServerMessage **ret)
{
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__StatusRequest q = WS__STATUS_REQUEST__INIT;
    q.version = WS_PROTOCOL_VERSION;
    m.status = &q;
    return ws_cli_ask(endpoint, timeout_ms, &m, ret);
}

int ws_cli_no_answer(const char *endpoint, int r)
{
    ws_cli_error("no answer from a daemon at %s (%s); start one: systemctl start wattshared, "
                 "or wattshared --socket %s",
                 endpoint, strerror(-r), endpoint);
    return WS_EXIT_UNAVAILABLE;
}
