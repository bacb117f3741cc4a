// SPDX-License-Identifier: Apache-2.0
/* From counted work to time on an SM where the catalog has the numbers of models/event_time.h.
 *
 * That model says how long a launch takes that has the GPU to itself:
 *
 *     T = (Σ q_k^p)^(1/p)
 *
 * with the times that each unit needs. timing.c wants them for each block, so that it can place
 * blocks on some SMs and beside others, and takes the longest instead of the norm. So each block
 * gets its own three: the longest of those of the SM's units as issue_ns, what its warps wait for
 * as latency_ns, and its bytes, which the memory moves at the share of its bandwidth that was
 * fitted. All three are stretched by how far the norm is above the longest for the launch as a
 * whole. The model's time of a launch is the catalog's launch_overhead_ns here. */
#include <math.h>

#include "device/soft/timeline/events.h"
#include "device/soft/timeline/power.h"

enum { SECTOR_BYTES = 32 };

struct units_time {
    double issue_s, latency_s, memory_s;
};

static struct units_time time_of(const struct ws_fitted *f, const struct ws_event_need *n)
{
    const double *x = n->x, *v = f->time.v;
    struct units_time t = {0};
    for (int i = 0; i < WS_EVENT_TIME_DRAM; i++)
        t.issue_s = fmax(t.issue_s, x[i] / v[i]);
    for (int i = WS_EVENT_TIME_FLOW; i <= WS_EVENT_TIME_DISPATCH; i++)
        t.issue_s = fmax(t.issue_s, x[i] * v[i]);
    t.latency_s = x[WS_EVENT_TIME_LATENCY] * v[WS_EVENT_TIME_LATENCY] +
                  x[WS_EVENT_TIME_LOAD] * v[WS_EVENT_TIME_LOAD] +
                  x[WS_EVENT_TIME_SHARED_LOAD] * v[WS_EVENT_TIME_SHARED_LOAD];
    t.memory_s = fmax(x[WS_EVENT_TIME_DRAM] / v[WS_EVENT_TIME_DRAM],
                      x[WS_EVENT_TIME_PATH] / v[WS_EVENT_TIME_PATH]);
    return t;
}

/* How many bytes the memory moves at its full bandwidth in the time that @sectors need. */
static double full_pace_bytes(const struct ws_event_need *n, const struct units_time *t,
                              double sectors)
{
    double full_s = n->x[WS_EVENT_TIME_DRAM];
    return full_s > 0 ? sectors * SECTOR_BYTES * t->memory_s / full_s : 0;
}

/* How far the norm is above the longest time of the launch. */
static double stretch_of(const struct ws_fitted *f, const struct ws_events *e,
                         const struct ws_event_clocks *clocks)
{
    struct ws_event_need need = {0};
    ws_event_time_need(&f->gpu, e, clocks, &need);
    need.x[WS_EVENT_TIME_LAUNCH] = 0;
    struct units_time t = time_of(f, &need);
    double longest = fmax(fmax(t.issue_s, t.latency_s), t.memory_s);
    return longest > 0 ? ws_event_time_of_need(&f->time, &need, NULL) / longest : 1;
}

void ws_units_fitted_cost(const struct ws_fitted *f, const struct ws_power_clocks *shares,
                          const struct ws_gpu_spec *spec, const struct ws_need *block,
                          uint32_t blocks_per_sm, const struct ws_unit *units, uint32_t n_units,
                          struct ws_cost *ret)
{
    struct ws_event_clocks clocks = {f->gpu.reference.core_mhz * shares->core,
                                     f->gpu.reference.memory_mhz * shares->memory};
    struct ws_events e;
    ws_units_events(spec, block, blocks_per_sm, units, n_units, &e);
    double stretch = stretch_of(f, &e, &clocks), places = e.atomic_places,
           n_sms = fmax(fmin(e.blocks, spec->n_sms), 1);
    for (uint32_t i = 0; i < n_units; i++) {
        struct ws_event_need need = {0};
        ws_units_events(spec, block, blocks_per_sm, &units[i], 1, &e);
        double blocks = e.blocks;
        e.blocks = 1; /* all of it is on one SM, */
        e.warps_per_sm = block->warps;
        e.atomic_places = places; /* of the launch, whose SMs have a part each of what L2 can do */
        e.atomic_sectors *= n_sms;
        ws_event_time_need(&f->gpu, &e, &clocks, &need);
        need.x[WS_EVENT_TIME_BLOCK] *= blocks;            /* one block after another */
        need.x[WS_EVENT_TIME_DISPATCH] *= blocks * n_sms; /* in turn with those of other SMs */
        struct units_time t = time_of(f, &need);
        ret[i] = (struct ws_cost){
            .issue_ns = t.issue_s * stretch * 1e9,
            .latency_ns = t.latency_s * stretch * 1e9,
            .bytes = full_pace_bytes(&need, &t, e.dram_sectors) * stretch,
        };
    }
}
