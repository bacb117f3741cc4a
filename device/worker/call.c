// SPDX-License-Identifier: Apache-2.0
/* Calls to the worker, which wait for their answers one at a time.
 *
 * Whoever makes a call holds calls_lock from before the call until its result is in the tables, so
 * that the next worker is told of it entirely or not at all. The driver may answer a call only
 * when the GPU has nothing to do, so the daemon's loop posts what it wants (post.c) and does not
 * wait. */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/worker/proxy.h"

int ws_proxy_calls_begin(struct ws_proxy *p)
{
    for (;;) {
        pthread_mutex_lock(&p->calls_lock);
        pthread_mutex_lock(&p->ops_lock);
        enum ws_proxy_state state = p->state;
        if (state == WS_PROXY_STARTING) {
            pthread_mutex_unlock(&p->calls_lock);
            while (p->state == WS_PROXY_STARTING)
                pthread_cond_wait(&p->changed, &p->ops_lock);
            pthread_mutex_unlock(&p->ops_lock);
            continue;
        }
        pthread_mutex_unlock(&p->ops_lock);
        if (state != WS_PROXY_LOST && state != WS_PROXY_CLOSED)
            break;
        pthread_mutex_unlock(&p->calls_lock);
        return -EIO;
    }
    return 0;
}

void ws_proxy_calls_end(struct ws_proxy *p)
{
    pthread_mutex_unlock(&p->calls_lock);
}

int64_t ws_proxy_call_now(struct ws_proxy *p, struct ws_wire_head head, struct ws_wire_part body,
                          struct ws_wire_part more, int fd)
{
    if (p->calls_fd < 0)
        return WS_PROXY_ENDED;
    int r = ws_wire_send(p->calls_fd, head, body, more, fd, 0);
    if (!r)
        r = ws_wire_recv(p->calls_fd, p->answer);
    if (!r && p->answer->head.type == head.type)
        return p->answer->head.value;
    if (!r) { /* the worker has gone wrong: it is ended */
        ws_wire_done_with(p->answer);
        ws_log(WS_ERROR, "worker: gpu=%u answered %s with %s", p->base.index,
               ws_wire_name(head.type), ws_wire_name(p->answer->head.type));
    }
    shutdown(p->calls_fd, SHUT_RDWR);
    shutdown(p->ops_fd, SHUT_RDWR);
    return WS_PROXY_ENDED;
}

bool ws_proxy_await(struct ws_proxy *p, uint32_t generation)
{
    pthread_mutex_lock(&p->ops_lock);
    while (p->state != WS_PROXY_LOST && p->state != WS_PROXY_CLOSED &&
           (p->generation == generation || p->state == WS_PROXY_STARTING))
        pthread_cond_wait(&p->changed, &p->ops_lock);
    bool on = p->state != WS_PROXY_LOST && p->state != WS_PROXY_CLOSED;
    pthread_mutex_unlock(&p->ops_lock);
    return on;
}

int64_t ws_proxy_call(struct ws_proxy *p, struct ws_wire_head head, struct ws_wire_part body,
                      struct ws_wire_part more, int fd)
{
    enum ws_wire_end end = ws_wire_rows[head.type].end;
    assert(end == WS_WIRE_AGAIN || end == WS_WIRE_REPLAYED);
    for (;;) {
        uint32_t generation = p->generation;
        int64_t r = ws_proxy_call_now(p, head, body, more, fd);
        if (r != WS_PROXY_ENDED)
            return r;
        pthread_mutex_unlock(&p->calls_lock);
        bool on = ws_proxy_await(p, generation);
        pthread_mutex_lock(&p->calls_lock);
        if (!on)
            return -EIO;
    }
}
