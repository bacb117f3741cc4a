// SPDX-License-Identifier: Apache-2.0
#include "backend/process/zap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "base/log.h"

#define ENDPOINT "inproc://zeromq.zap.01"
enum { ZAP_VERSION, REQUEST, DOMAIN, ADDRESS, IDENTITY, MECHANISM, CREDENTIALS, N_FRAMES };
enum { FRAME_BYTES = 256 };

struct question {
    char frame[N_FRAMES][FRAME_BYTES];
    size_t n[N_FRAMES];
    unsigned n_frames;
};

/* Return: false: none there. */
static bool receive(void *socket, struct question *q)
{
    int more = 1;
    q->n_frames = 0;
    while (more) {
        char waste[FRAME_BYTES];
        bool fits = q->n_frames < N_FRAMES;
        int n = zmq_recv(socket, fits ? q->frame[q->n_frames] : waste, FRAME_BYTES - 1,
                         q->n_frames ? 0 : ZMQ_DONTWAIT);
        size_t size = sizeof(more);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        if (fits) {
            size_t bytes = n < FRAME_BYTES ? (size_t)n : FRAME_BYTES - 1;
            q->frame[q->n_frames][bytes] = 0;
            q->n[q->n_frames++] = bytes;
        }
        zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size);
    }
    return true;
}

static void answer(void *socket, const struct question *q, const char *status, const char *text,
                   const char *user)
{
    zmq_send(socket, "1.0", 3, ZMQ_SNDMORE);
    zmq_send(socket, q->frame[REQUEST], q->n_frames > REQUEST ? q->n[REQUEST] : 0, ZMQ_SNDMORE);
    zmq_send(socket, status, strlen(status), ZMQ_SNDMORE);
    zmq_send(socket, text, strlen(text), ZMQ_SNDMORE);
    zmq_send(socket, user, strlen(user), ZMQ_SNDMORE);
    zmq_send(socket, "", 0, 0);
}

void *ws_zap_open(void *zmq)
{
    void *socket = zmq_socket(zmq, ZMQ_REP);
    int linger = 0;
    if (!socket)
        return NULL;
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof(linger));
    if (!zmq_bind(socket, ENDPOINT))
        return socket;
    int e = errno;
    zmq_close(socket);
    errno = e;
    return NULL;
}

void ws_zap_answer(void *socket, const struct ws_access *access)
{
    struct question q;
    while (receive(socket, &q)) {
        const struct ws_allowed *w = NULL;
        char user[16];
        if (q.n_frames != N_FRAMES || strcmp(q.frame[ZAP_VERSION], "1.0") ||
            strcmp(q.frame[MECHANISM], "CURVE") || q.n[CREDENTIALS] != WS_CURVE_KEY_BYTES) {
            answer(socket, &q, "400", "CURVE is wanted", "");
            continue;
        }
        w = ws_access_allows(access, (const uint8_t *)q.frame[CREDENTIALS]);
        if (!w) {
            char text[WS_CURVE_TEXT_BYTES];
            zmq_z85_encode(text, (const uint8_t *)q.frame[CREDENTIALS], WS_CURVE_KEY_BYTES);
            ws_log(WS_WARN, "zap: refused address=%s key=%s: not in curve_clients",
                   q.frame[ADDRESS], text);
            answer(socket, &q, "400", "this key is not in the daemon's curve_clients", "");
            continue;
        }
        snprintf(user, sizeof(user), "%u", w->uid);
        answer(socket, &q, "200", "OK", user);
    }
}

int ws_zap_guard(void *router, const struct ws_curve_keys *keys)
{
    int on = 1;
    if (zmq_setsockopt(router, ZMQ_CURVE_SERVER, &on, sizeof(on)) ||
        zmq_setsockopt(router, ZMQ_CURVE_SECRETKEY, keys->secret_key, WS_CURVE_TEXT_BYTES) ||
        zmq_setsockopt(router, ZMQ_ZAP_DOMAIN, WS_ZAP_DOMAIN, strlen(WS_ZAP_DOMAIN)))
        return -errno;
    return 0;
}
