// SPDX-License-Identifier: Apache-2.0
/* Field values: several numbers with one call, each with a code of its own. With a process's number
 * as scope, the energy counter is that process's account: what its work took of the GPUs it uses,
 * and its share of their idle energy. This is the one place where NVML's interface has room for a
 * process's joules. */
#include <time.h>

#include "base/clock.h"
#include "base/macros.h"
#include "frontend/nvml/nvml.h"

enum nvml_field {
    FIELD_ENERGY = 83,
    FIELD_POWER_AVERAGE = 185,
    FIELD_POWER_INSTANT = 186,
    FIELD_POWER_LIMIT_DEFAULT = 189,
    FIELD_POWER_LIMIT = 190,
    FIELD_PCIE_SENT = 197, /* bytes */
    FIELD_PCIE_RECEIVED = 198,
};
enum value_type { TYPE_UNSIGNED = 1, TYPE_UNSIGNED_LONG_LONG = 3 };

struct field_value {
    uint32_t field, scope;
    int64_t time_us, latency_us;
    uint32_t type;
    int32_t code;
    union {
        double number;
        uint32_t u32;
        uint64_t u64;
    } value;
};

static int put(struct field_value *f, uint32_t type, uint64_t value)
{
    f->type = type;
    if (type == TYPE_UNSIGNED)
        f->value.u32 = (uint32_t)value;
    else
        f->value.u64 = value;
    return WS_NVML_SUCCESS;
}

static int put_energy(struct field_value *f, const struct ws_nvml_view *v)
{
    const Ws__ClientStatus *c;
    uint64_t uj = ws_nvml_energy_uj(v);
    bool found = !f->scope;
    for (size_t i = 0; f->scope && (c = ws_nvml_next_client(v, &i));)
        if (c->pid == f->scope) {
            uj = (found ? uj : 0) + c->busy_uj + c->idle_uj;
            found = true;
        }
    return found ? put(f, TYPE_UNSIGNED_LONG_LONG, uj / 1000) : WS_NVML_NOT_FOUND;
}

static int put_link(struct field_value *f, const Ws__GpuStatus *g)
{
    uint64_t bytes = f->field == FIELD_PCIE_SENT ? g->bytes_out : g->bytes_in;
    return g->pcie_generation ? put(f, TYPE_UNSIGNED_LONG_LONG, bytes) : WS_NVML_NOT_SUPPORTED;
}

static int answer(struct field_value *f, const struct ws_nvml_view *now,
                  const struct ws_monitored *m)
{
    /* A scope of power is a part of the GPU, of which the daemon knows nothing. */
    if (f->field != FIELD_ENERGY && f->scope)
        return WS_NVML_NOT_SUPPORTED;
    switch (f->field) {
    case FIELD_ENERGY:
        return put_energy(f, now);
    case FIELD_POWER_AVERAGE:
    case FIELD_POWER_INSTANT:
        return put(f, TYPE_UNSIGNED, ws_monitor_power_mw(m));
    case FIELD_POWER_LIMIT:
    case FIELD_POWER_LIMIT_DEFAULT:
        return now->gpu->limit_mw ? put(f, TYPE_UNSIGNED, now->gpu->limit_mw)
                                  : WS_NVML_NOT_SUPPORTED;
    case FIELD_PCIE_SENT:
    case FIELD_PCIE_RECEIVED:
        return put_link(f, now->gpu);
    default:
        return WS_NVML_NOT_SUPPORTED;
    }
}

WS_NVML_API int nvmlDeviceGetFieldValues(struct ws_nvml_device *d, int n, struct field_value *v)
{
    struct ws_nvml_view now, before = {NULL, NULL};
    struct timespec t;
    bool power = false;
    for (int i = 0; v && i < n; i++)
        power |= v[i].field == FIELD_POWER_AVERAGE || v[i].field == FIELD_POWER_INSTANT;
    int r = power ? ws_nvml_hold_two(d, v, &now, &before) : ws_nvml_hold_gpu(d, v, &now);
    if (r)
        return r;
    struct ws_monitored m = ws_nvml_two(&now, &before);
    clock_gettime(CLOCK_REALTIME, &t);
    for (int i = 0; i < n; i++) {
        v[i].time_us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
        v[i].latency_us = 0;
        v[i].code = answer(&v[i], &now, &m);
    }
    ws_nvml_release();
    return WS_NVML_SUCCESS;
}
