// SPDX-License-Identifier: Apache-2.0
/* Real GPUs on which nothing ends.
 *
 * Without a policy the operations of all clients are with the device at the same time. Software
 * GPUs run blocks in turn, so a kernel without an end keeps nobody from anything. A real GPU runs
 * blocks to their end, and nobody can see whether an operation that the driver has runs or waits
 * for room. So what counts is whether operations end. Of each GPU the launch that it has had
 * longest is the suspect while another client has an operation there that came later and no
 * operation of other clients ends. After max_kernel_ms the suspect is urged, and the device ends
 * it after as long again (device/worker/hang.c).
 *
 * GPUs are looked at every LOOKS_PER_LIMIT'th part of max_kernel_ms, and only while one has more
 * than one operation. */
#include "backend/scheduling/stuck.h"

#include "backend/backend.h"
#include "base/clock.h"

enum { LOOKS_PER_LIMIT = 8 };

struct look {
    struct ws_command *oldest; /* launch */
    bool waited_for;           /* another client has something that came later */
};

/* Shows each operation that the GPU has to @see. */
static void each_operation(const struct ws_gpu *g,
                           void (*see)(struct look *l, struct ws_command *j), struct look *l)
{
    ws_list_for_each (n, &g->server->clients.all) {
        struct ws_client *c = ws_list_entry(n, struct ws_client, node);
        for (uint32_t i = 0; c->n_in_flight && i < c->n_contexts; i++) {
            if (c->contexts[i].gpu != g)
                continue;
            ws_list_for_each (m, &c->contexts[i].streams) {
                struct ws_command *j = ws_list_entry(m, struct ws_stream, node)->running;
                if (j)
                    see(l, j);
            }
        }
    }
}

static void find_oldest(struct look *l, struct ws_command *j)
{
    if (j->op.kind == WS_OPK_LAUNCH && !j->fused && (!l->oldest || j->begun < l->oldest->begun))
        l->oldest = j;
}

static void find_waiting(struct look *l, struct ws_command *j)
{
    l->waited_for |= j->client != l->oldest->client && j->begun > l->oldest->begun;
}

static struct look look_through(const struct ws_gpu *g)
{
    struct look l = {0};
    each_operation(g, find_oldest, &l);
    if (l.oldest)
        each_operation(g, find_waiting, &l);
    return l;
}

/* Return: false: the device cannot end it. */
static bool urge(const struct ws_gpu *g, struct ws_command *j, uint64_t limit_ns)
{
    return ws_device_urge(g->device, &j->op, limit_ns) >= 0;
}

static void look_at(struct ws_gpu *g, uint64_t limit_ns, uint64_t now_ns)
{
    struct look l = look_through(g);
    struct ws_gpu_stuck *t = &g->stuck;
    struct ws_command *j = l.oldest;
    uint64_t others = j ? g->n_ended - j->stream->context->n_ended : 0;
    if (!l.waited_for || t->suspect != j->begun || t->others_ended != others) {
        if (t->urged && j && t->suspect == j->begun)
            (void)urge(g, j, 0);
        *t = (struct ws_gpu_stuck){
            .suspect = l.waited_for ? j->begun : 0, .since_ns = now_ns, .others_ended = others};
    } else if (now_ns - t->since_ns >= limit_ns) {
        /* The device lets it run for twice what it is told. */
        t->urged = urge(g, j, limit_ns / 2);
    }
}

static bool is_needed(const struct ws_gpu *g)
{
    return g->device->ops->real && (g->n_begun - g->n_ended > 1 || g->stuck.suspect);
}

int ws_stuck_turn(struct ws_server *s)
{
    uint64_t limit_ns = s->config->max_kernel_ms * WS_NS_PER_MS, now;
    bool any = false;
    for (uint32_t i = 0; i < s->n_gpus; i++)
        any |= is_needed(&s->gpus[i]);
    if (WS_LIKELY(!any) || !limit_ns || ws_dispatch_is_on(s))
        return -1;
    if ((now = ws_clock_ns()) >= s->stuck_next_ns) {
        for (uint32_t i = 0; i < s->n_gpus; i++)
            if (is_needed(&s->gpus[i]))
                look_at(&s->gpus[i], limit_ns, now);
        s->stuck_next_ns = now + WS_MAX(limit_ns / LOOKS_PER_LIMIT, WS_NS_PER_MS);
    }
    return ws_timeout_until(s->stuck_next_ns);
}
