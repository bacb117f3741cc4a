// SPDX-License-Identifier: Apache-2.0
/* What a real GPU and its driver can and can't do, and whether its context is lost, as status
 * says it. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "backend/process/real.h"
#include "device/cuda/clocks.h"
#include "device/cuda/cuda.h"
#include "device/worker/worker.h"

static char *text_of(struct ws_server *s, const char *fmt, ...) WS_PRINTF(2, 3);
static char *text_of(struct ws_server *s, const char *fmt, ...)
{
    char text[320];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return ws_arena_strndup(&s->arena, text, (size_t)WS_MIN(n, (int)sizeof(text) - 1));
}

bool ws_real_status(struct ws_server *s, struct ws_device *d, Ws__GpuStatus *o)
{
    struct ws_worker_status w;
    const struct ws_cuda_capabilities *c = ws_device_cuda_capabilities(d);
    if (!c)
        return true;
    const char *lost = ws_device_cuda_lost(d);
    o->driver = text_of(s, "%s (CUDA %d.%d)", c->driver, c->cuda_version / 1000,
                        c->cuda_version % 1000 / 10);
    o->lost = lost ? text_of(s, "%s", lost) : o->lost;
    o->capabilities = ws_arena_array(&s->arena, c->n + (size_t)1, sizeof(*o->capabilities));
    if (ws_device_worker_status(d, &w)) {
        o->worker_pid = (uint32_t)w.pid;
        o->worker_restarts = w.n_restarts;
        o->worker_last_ns = w.last_ns;
        o->worker_longest_wait_ns = w.longest_wait_ns;
        o->worker_longest_preempt_ns = w.longest_preempt_ns;
        o->worker_last = text_of(s, "%s", w.last);
    }
    if (!o->driver || !o->lost || !o->capabilities || !o->worker_last)
        return false;
    for (uint32_t k = 0; k < c->n; k++) {
        const struct ws_cuda_capability *v = &c->v[k];
        bool clocks = d->clocks && !strcmp(v->name, "clocks"); /* not the device's own doing */
        char *one = text_of(s, "%s: %s (%s)", v->name, v->yes || clocks ? "yes" : "no",
                            clocks ? ws_clocks_text(d->clocks) : v->how);
        if (!one)
            return false;
        o->capabilities[o->n_capabilities++] = one;
    }
    return true;
}
