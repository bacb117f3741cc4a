// SPDX-License-Identifier: Apache-2.0
/* Operations that do not end. A kernel that waits for ever cannot be stopped on a real GPU; it
 * holds its SMs and its client's memory, and others wait for them. So its worker is ended, as if
 * the kernel had destroyed the context: patience_ns after it was cancelled, or when others have
 * waited for it for twice max_kernel_ms, of which it was asked to stop in the second half. Other
 * clients' launches on the GPU end with the worker. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
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

/* ops_lock held. */
WS_PRINTF(2, 3) static void end_worker(struct ws_proxy *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->page->lost_text, sizeof(p->page->lost_text), fmt, ap);
    va_end(ap);
    p->page->lost = 1;
    kill(p->pid, SIGKILL);
}

static const char *name_of(const struct ws_op *op)
{
    return op->kind == WS_OPK_LAUNCH
               ? ws_dmodule_info(op->launch.instance->module)->kernels[op->launch.kernel].name
               : "a copy";
}

/* ops_lock held. */
static bool is_running(const struct ws_proxy *p)
{
    return p->state == WS_PROXY_RUNNING && !p->closing && p->pid > 0;
}

static void look(struct ws_alarm *a)
{
    struct hang_watch *w = WS_CONTAINER_OF(a, struct hang_watch, alarm);
    struct ws_proxy *p = w->proxy;
    pthread_mutex_lock(&p->ops_lock);
    const struct ws_op *op = is_running(p) ? hung(p) : NULL;
    if (op)
        end_worker(p, "%.100s, whose client has gone, did not end within %.1f s", name_of(op),
                   (double)p->patience_ns / 1e9);
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

int ws_proxy_urge(struct ws_device *d, struct ws_op *op, uint64_t limit_ns)
{
    struct ws_proxy *p = ws_proxy_of(d);
    struct ws_proxy_op *o = NULL;
    uint64_t now = ws_proxy_host_ns();
    if (op->launch.parts) /* nobody knows whose part it is that does not end */
        return -ENOTSUP;
    pthread_mutex_lock(&p->ops_lock);
    ws_list_for_each (it, &p->ops)
        if (ws_list_entry(it, struct ws_proxy_op, node)->op == op)
            o = ws_list_entry(it, struct ws_proxy_op, node);
    if (o && o->urged_at_ns)
        o->urged_ns += now - o->urged_at_ns;
    if (o)
        o->urged_at_ns = limit_ns && o->sent ? now : 0;
    if (o && o->urged_at_ns && o->urged_ns >= 2 * limit_ns && is_running(p) && !o->timed_out) {
        o->timed_out = p->urged = true;
        end_worker(p, "%.100s did not end while others waited for %.1f s", name_of(op),
                   (double)o->urged_ns / 1e9);
    }
    pthread_mutex_unlock(&p->ops_lock);
    return o ? 0 : WS_DEVICE_EXECUTED;
}
