// SPDX-License-Identifier: Apache-2.0
/* Calls to the worker, which wait for their answers one at a time, and notices, which have none.
 *
 * Whoever makes a call holds calls_lock from before the call until its result is in the tables, so
 * that the next worker is told of it entirely or not at all. Notices come from any thread. The
 * reader is one of them, and must not wait for calls_lock, whose holder may be waiting for the
 * reader. So notices are queued; whoever holds calls_lock, or gets it next, sends them before
 * anything else. Whoever only tells something does not wait for a worker that takes no messages
 * because its driver waits for the GPU: then the sender's thread sends what is left. */
#include <assert.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/worker/proxy.h"

/* NULL: there is none. */
static struct ws_proxy_notice *first_notice(struct ws_proxy *p)
{
    pthread_mutex_lock(&p->notices_lock);
    struct ws_list *n = ws_list_empty(&p->notices) ? NULL : p->notices.next;
    pthread_mutex_unlock(&p->notices_lock);
    return n ? ws_list_entry(n, struct ws_proxy_notice, node) : NULL;
}

/* calls_lock held, without which no notice is taken off the list. @flags: of the message;
 * MSG_DONTWAIT: those that cannot be sent now stay. Return: whether none is left. */
static bool send_notices(struct ws_proxy *p, int flags)
{
    struct ws_proxy_notice *t;
    while ((t = first_notice(p))) {
        /* A worker that has ended keeps nothing, and the next one has nothing to be told of. */
        if (p->calls_fd >= 0 &&
            ws_wire_send(p->calls_fd, t->head, WS_PART(t->map), WS_PART_NONE, -1, flags) == -EAGAIN)
            return false;
        pthread_mutex_lock(&p->notices_lock);
        ws_list_remove(&t->node);
        pthread_mutex_unlock(&p->notices_lock);
        free(t);
    }
    return true;
}

struct ws_proxy_notice *ws_proxy_notice_new(struct ws_proxy *p, struct ws_wire_head head,
                                            const struct ws_wire_map *map)
{
    struct ws_proxy_notice *t = ws_alloc(sizeof(*t));
    if (!t) {
        ws_log(WS_ERROR, "worker: gpu=%u the notice %s was not sent: out of memory", p->base.index,
               ws_wire_name(head.type));
        return NULL;
    }
    t->head = head;
    if (map)
        t->map = *map;
    return t;
}

void ws_proxy_notices_free(struct ws_list *notices)
{
    struct ws_list *n;
    while ((n = ws_list_pop(notices)))
        free(ws_list_entry(n, struct ws_proxy_notice, node));
}

void ws_proxy_forget_notices(struct ws_proxy *p)
{
    pthread_mutex_lock(&p->notices_lock);
    ws_proxy_notices_free(&p->notices);
    pthread_mutex_unlock(&p->notices_lock);
}

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
    (void)send_notices(p, 0);
    return 0;
}

void ws_proxy_calls_end(struct ws_proxy *p)
{
    bool all;
    do {
        all = send_notices(p, MSG_DONTWAIT);
        pthread_mutex_unlock(&p->calls_lock);
    } while (all && first_notice(p) && !pthread_mutex_trylock(&p->calls_lock));
    if (all)
        return;
    pthread_mutex_lock(&p->ops_lock);
    p->notices_left = true;
    pthread_cond_signal(&p->sender_wake);
    pthread_mutex_unlock(&p->ops_lock);
}

void ws_proxy_send_left(struct ws_proxy *p)
{
    if (!pthread_mutex_trylock(&p->calls_lock))
        ws_proxy_calls_end(p); /* else whoever has it sends them */
}

void ws_proxy_tell(struct ws_proxy *p, struct ws_wire_head head, const struct ws_wire_map *map)
{
    struct ws_proxy_notice *t = ws_proxy_notice_new(p, head, map);
    if (!t)
        return;
    pthread_mutex_lock(&p->notices_lock);
    ws_list_append(&p->notices, &t->node);
    pthread_mutex_unlock(&p->notices_lock);
    if (!pthread_mutex_trylock(&p->calls_lock))
        ws_proxy_calls_end(p);
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
