// SPDX-License-Identifier: Apache-2.0
/* While work is under way the counters are looked at often, so that it is known when they move;
 * and for a while after it, because idle power is learned from what comes then. Where the time of
 * the GPU does not pass by itself (clock = functional) a counter says nothing that the launches do
 * not. */
#include "backend/scheduling/meters.h"

#include "backend/backend.h"
#include "backend/learn/learn.h"
#include "base/clock.h"

#define BUSY_NS  (5 * WS_NS_PER_MS)
#define QUIET_NS (100 * WS_NS_PER_MS)
enum { QUIET_LOOKS = 50 };

/* Return: something runs there. */
static bool look(struct ws_server *s, struct ws_gpu *g)
{
    struct ws_device_telemetry t;
    struct ws_device *d = g->device;
    ws_device_telemetry(d, &t);
    struct ws_learn_reading r = {.at_ns = t.now_ns,
                                 .energy_uj = t.energy_uj,
                                 .update_ns = d->meter_update_ns,
                                 .other = d->clocked || s->gated.n};
    (void)ws_learn_read(s->learn, d->index, &d->spec, &r);
    return t.n_running > 0;
}

int ws_meters_turn(struct ws_server *s)
{
    struct ws_meters *m = &s->meters;
    if (!s->learn || s->config->clock == WS_CLOCK_FUNCTIONAL)
        return -1;
    uint64_t now = ws_clock_ns();
    if (now < m->next_ns)
        return (int)((m->next_ns - now) / WS_NS_PER_MS) + 1;
    bool busy = false;
    for (uint32_t i = 0; i < s->n_visible; i++)
        busy |= look(s, &s->gpus[i]);
    m->n_quiet = busy ? 0 : m->n_quiet + 1;
    m->next_ns = now + (busy ? BUSY_NS : QUIET_NS);
    /* Whoever works wakes the loop, and the next turn looks again. */
    return m->n_quiet < QUIET_LOOKS ? (int)((m->next_ns - now) / WS_NS_PER_MS) : -1;
}
