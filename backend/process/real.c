// SPDX-License-Identifier: Apache-2.0
#include "backend/process/real.h"

#include <stdlib.h>
#include <string.h>

#include "backend/process/config.h"
#include "base/log.h"
#include "device/cuda/cuda.h"
#include "device/worker/worker.h"
#include "protocol/protocol.h"

static struct {
    int ordinal;
    struct ws_device *device;
} open_gpus[WS_MAX_GPUS_CONFIGURED];
static uint32_t n_open;

bool ws_real_is(const char *name)
{
    return !strcmp(name, "cuda") || !strncmp(name, "cuda:", 5);
}

static void say(const struct ws_device *d)
{
    const struct ws_cuda_capabilities *c = ws_device_cuda_capabilities(d);
    ws_log(WS_INFO, "cuda: gpu=%u name=%s product=\"%s\" driver=%s cuda=%d.%d", d->index,
           d->spec.name, c->product, c->driver[0] ? c->driver : "unknown", c->cuda_version / 1000,
           c->cuda_version % 1000 / 10);
    for (uint32_t k = 0; k < c->n; k++)
        ws_log(WS_INFO, "cuda: gpu=%u %s: %s (%s)", d->index, c->v[k].name,
               c->v[k].yes ? "yes" : "no", c->v[k].how);
}

static struct ws_device *open_one(int ordinal, uint32_t index, const struct ws_real_choice *c,
                                  struct ws_diags *diags)
{
    struct ws_cuda_options o = {
        .preemptible = c->preemptible, .unfenced = c->unfenced, .cancel_ns = c->cancel_ns};
    if (c->worker) {
        o.host_va = WS_HOST_VA_FIRST;
        o.host_bytes = WS_HOST_VA_LAST - WS_HOST_VA_FIRST;
    }
    struct ws_device *d = NULL;
    for (uint32_t k = 0; k < n_open; k++)
        if (open_gpus[k].ordinal == ordinal)
            return open_gpus[k].device;
    if (n_open == WS_MAX_GPUS_CONFIGURED)
        return NULL;
    if (c->worker ? ws_device_open_worker(&d, ordinal, index, &o, diags)
                  : ws_device_open_cuda(&d, ordinal, index, &o, diags))
        return NULL;
    open_gpus[n_open].ordinal = ordinal;
    open_gpus[n_open++].device = d;
    say(d);
    return d;
}

uint32_t ws_real_open(const char *name, uint32_t first, const struct ws_real_choice *choice,
                      struct ws_device **ret, uint32_t max, struct ws_diags *diags)
{
    char *end = NULL;
    long from = 0, to;
    uint32_t n = 0;
    if (name[4] == ':') {
        from = strtol(name + 5, &end, 10);
        if (!name[5] || *end || from < 0 || from > 1023) {
            ws_diags_add(diags, "gpus", 0, 0, "\"%s\" is no GPU: use \"cuda\" or \"cuda:0\"", name);
            return 0;
        }
        to = from + 1;
    } else {
        to = (long)(choice->worker ? ws_worker_count(NULL, diags) : ws_cuda_count(NULL, diags));
        if (!to && diags && !diags->n)
            ws_diags_add(diags, "gpus", 0, 0, "\"cuda\": the driver has no GPU");
    }
    for (; from < to && n < max; from++) {
        ret[n] = open_one((int)from, first + n, choice, diags);
        if (!ret[n])
            return 0;
        n++;
    }
    return n;
}

void ws_real_close(void)
{
    while (n_open)
        ws_device_close(open_gpus[--n_open].device);
}
