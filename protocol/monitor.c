// SPDX-License-Identifier: Apache-2.0
/* Power and energy in the host's time. See protocol/monitor.h. */
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"
#include "protocol/monitor.h"

static bool is_software(const Ws__GpuStatus *g)
{
    return !strcmp(g->kind, "soft");
}

uint64_t ws_monitor_energy_uj(const Ws__StatusReply *s, const Ws__GpuStatus *g)
{
    if (!is_software(g) || s->uptime_ns <= g->device_ns)
        return g->energy_uj;
    double idle_s = (double)(s->uptime_ns - g->device_ns) / 1e9;
    return g->energy_uj + (uint64_t)(idle_s * g->idle_mw * 1e3);
}

uint32_t ws_monitor_power_mw(const struct ws_monitored *m)
{
    if (!is_software(m->now))
        return m->now->power_mw;
    if (!m->before || m->status->uptime_ns <= m->was->uptime_ns)
        return m->now->idle_mw;
    uint64_t now_uj = ws_monitor_energy_uj(m->status, m->now),
             before_uj = ws_monitor_energy_uj(m->was, m->before);
    if (now_uj <= before_uj)
        return 0;
    double ns = (double)(m->status->uptime_ns - m->was->uptime_ns);
    return (uint32_t)((double)(now_uj - before_uj) * 1e6 / ns + 0.5);
}

unsigned ws_monitor_busy_percent(const struct ws_monitored *m)
{
    const Ws__GpuStatus *g = m->now, *b = m->before;
    if (!b || g->device_ns <= b->device_ns || g->busy_ns <= b->busy_ns)
        return 0;
    double share = (double)(g->busy_ns - b->busy_ns) / (double)(g->device_ns - b->device_ns);
    return (unsigned)(100 * WS_MIN(share, 1) + 0.5);
}

uint64_t ws_monitor_link_bytes_per_s(const struct ws_monitored *m, bool out)
{
    if (!m->before || m->status->uptime_ns <= m->was->uptime_ns)
        return 0;
    uint64_t now = out ? m->now->bytes_out : m->now->bytes_in,
             before = out ? m->before->bytes_out : m->before->bytes_in;
    double ns = (double)(m->status->uptime_ns - m->was->uptime_ns);
    return now > before ? (uint64_t)((double)(now - before) * 1e9 / ns + 0.5) : 0;
}
