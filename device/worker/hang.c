// SPDX-License-Identifier: Apache-2.0
/* Cancelled operations that do not end. A kernel that waits for ever cannot be stopped on a real
 * GPU; it holds its SMs and its client's memory, and others wait for them. So after patience_ns its
 * worker is ended, as if the kernel had destroyed the context. Other clients' launches on the GPU
 * end with the worker, so patience_ns is long. */
#include <signal.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "device/worker/proxy.h"

struct hang_watch {
    struct ws_alarm alarm;
    struct ws_proxy *proxy;
};

/* ops_lock held. Return: an operation that was cancelled patience_ns ago and is still on the GPU;
 * NULL: there is none. */
static const struct ws_op *hung(struct ws_proxy *p)
{
    uint64_t now = ws_proxy_host_ns();
    ws_list_for_each (it, &p->ops) {
        const struct ws_proxy_op *o = ws_list_entry(it, struct ws_proxy_op, node);
        if (o->cancelled && o->sent && now - o->cancelled_ns >= p->patience_ns)
            return o->op;
    }
    return NULL;
}

static void look(struct ws_alarm *a)
{
    struct hang_watch *w = WS_CONTAINER_OF(a, struct hang_watch, alarm);
    struct ws_proxy *p = w->proxy;
    pthread_mutex_lock(&p->ops_lock);
    const struct ws_op *op =
        p->state == WS_PROXY_RUNNING && !p->closing && p->pid > 0 ? hung(p) : NULL;
    if (op) {
        const char *kernel =
            op->kind == WS_OPK_LAUNCH
                ? ws_dmodule_info(op->launch.instance->module)->kernels[op->launch.kernel].name
                : "a copy";
        snprintf(p->page->lost_text, sizeof(p->page->lost_text),
                 "%.100s, whose client has gone, did not end within %.1f s", kernel,
                 (double)p->patience_ns / 1e9);
        p->page->lost = 1;
        kill(p->pid, SIGKILL);
    }
    pthread_mutex_unlock(&p->ops_lock);
    free(w);
}

void ws_proxy_watch(struct ws_proxy *p)
{
    struct hang_watch *w = p->patience_ns ? ws_alloc(sizeof(*w)) : NULL;
    if (!w)
        return;
    w->proxy = p;
    w->alarm.at_ns = ws_device_now_ns(&p->base) + p->patience_ns + 1000;
    w->alarm.ring = look;
    if (ws_alarms_add(&p->alarms, &w->alarm)) {
        ws_log(WS_WARN, "worker: gpu=%u a cancelled operation is not watched: out of memory",
               p->base.index);
        free(w);
    }
}
