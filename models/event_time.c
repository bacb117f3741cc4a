// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <math.h>
#include <string.h>

#include "models/event_time.h"

enum { SECTOR_BYTES = 32, QUAD = 4, L1_SECTORS_PER_CLOCK = 4, L2_SECTORS_PER_CLOCK = 2 };
enum { L1_CLOCKS = 100, L2_CLOCKS = 150, DRAM_CLOCKS = 250 }; /* latencies, each beyond the last */
enum sense { WS_SHARE, WS_COST };

static const struct {
    const char *title, *key;
    enum sense sense;
    double expected, spread;
} numbers[WS_EVENT_TIME_N] = {
#define EVENT_POWER(...)
#define EVENT_TIME(name, key, title, sense, expected, spread)                                      \
    [WS_EVENT_TIME_##name] = {title, #key, sense, expected, spread},
#include "models/event_terms.def"
};

struct ws_event_time_prior ws_event_time_prior(enum ws_event_time_number number)
{
    return (struct ws_event_time_prior){numbers[number].title, numbers[number].key,
                                        numbers[number].expected, numbers[number].spread};
}

void ws_event_time_init(struct ws_event_time *ret)
{
    for (int i = 0; i < WS_EVENT_TIME_N; i++)
        ret->v[i] = numbers[i].expected;
}

void ws_event_time_need(const struct ws_event_gpu *gpu, const struct ws_events *e,
                        const struct ws_event_clocks *clocks, struct ws_event_need *ret)
{
    double sms = e->blocks > 0 ? fmin(gpu->n_sms, e->blocks) : gpu->n_sms;
    double clock = 1 / (sms * clocks->core_mhz * 1e6); /* seconds for one clock of all SMs */
    double wait = clock / fmax(e->warps_per_sm, 1);    /* of one warp, shared by all of its SM */
    double bandwidth = gpu->memory_bytes_per_s * clocks->memory_mhz / gpu->reference.memory_mhz;
    double *x = ret->x;
    x[WS_EVENT_TIME_ISSUE] = e->warp_instructions / gpu->schedulers * clock;
    x[WS_EVENT_TIME_FLOW] =
        gpu->flow_units > 0 ? e->flow_instructions / gpu->flow_units * clock : 0;
    x[WS_EVENT_TIME_ALU] = (e->fp32_ops / gpu->fp32_lanes + e->int_ops / gpu->int_lanes) * clock;
    x[WS_EVENT_TIME_FP64] = e->fp64_ops / gpu->fp64_lanes * clock;
    x[WS_EVENT_TIME_SFU] = e->sfu_ops / gpu->sfu_lanes * clock;
    x[WS_EVENT_TIME_SHARED] = e->shared_transactions * clock;
    x[WS_EVENT_TIME_L1] = e->l1_sectors / L1_SECTORS_PER_CLOCK * clock;
    x[WS_EVENT_TIME_L2] = e->l2_sectors / L2_SECTORS_PER_CLOCK * clock;
    x[WS_EVENT_TIME_TEXTURE] = QUAD * e->texture_quads / fmax(gpu->texture_units, 1) * clock;
    double slices = fmax(fmin(e->atomic_places, gpu->l2_slices), 1);
    x[WS_EVENT_TIME_ATOMIC] = e->atomic_sectors / (slices * clocks->core_mhz * 1e6);
    x[WS_EVENT_TIME_DRAM] = e->dram_sectors * SECTOR_BYTES / bandwidth;
    x[WS_EVENT_TIME_PATH] = e->dram_sectors / (fmax(gpu->l2_slices, 1) * clocks->core_mhz * 1e6);
    x[WS_EVENT_TIME_BLOCK] = e->blocks * clock;
    x[WS_EVENT_TIME_DISPATCH] = e->blocks / (clocks->core_mhz * 1e6);
    x[WS_EVENT_TIME_LATENCY] = e->warp_instructions * wait;
    /* The memory's own latency does not follow the core's clock. */
    double dram_clocks = DRAM_CLOCKS * clocks->core_mhz / gpu->reference.core_mhz;
    x[WS_EVENT_TIME_LOAD] = e->load_requests * wait *
                            (L1_CLOCKS + e->l2_share * (L2_CLOCKS + e->dram_share * dram_clocks));
    x[WS_EVENT_TIME_SHARED_LOAD] = e->shared_requests * wait;
    x[WS_EVENT_TIME_NORM] = 0;
    x[WS_EVENT_TIME_LAUNCH] = 1e-6;
}

/* The three latencies are waited for one after another: they add up to one of the times. */
static bool is_latency(int i)
{
    return i == WS_EVENT_TIME_LATENCY || i == WS_EVENT_TIME_LOAD || i == WS_EVENT_TIME_SHARED_LOAD;
}

/* The same bytes, or blocks, pass both units, one behind the other: the slower sets the pace. */
static void slower_counts(double *q, enum ws_event_time_number a, enum ws_event_time_number b)
{
    q[q[a] < q[b] ? a : b] = 0;
}

double ws_event_time_of_need(const struct ws_event_time *t, const struct ws_event_need *need,
                             double *ret_gradient)
{
    double q[WS_EVENT_TIME_N], latency = 0, longest = 0;
    double p = t->v[WS_EVENT_TIME_NORM];
    for (int i = 0; i < WS_EVENT_TIME_NORM; i++) {
        q[i] = numbers[i].sense == WS_SHARE ? need->x[i] / fmin(t->v[i], 1) : need->x[i] * t->v[i];
        if (is_latency(i))
            latency += q[i];
        else
            longest = fmax(longest, q[i]);
    }
    slower_counts(q, WS_EVENT_TIME_DRAM, WS_EVENT_TIME_PATH);
    slower_counts(q, WS_EVENT_TIME_BLOCK, WS_EVENT_TIME_DISPATCH);
    longest = fmax(longest, latency);
    double launch = need->x[WS_EVENT_TIME_LAUNCH] * t->v[WS_EVENT_TIME_LAUNCH];
    if (ret_gradient) {
        memset(ret_gradient, 0, WS_EVENT_TIME_N * sizeof(*ret_gradient));
        ret_gradient[WS_EVENT_TIME_LAUNCH] = launch;
    }
    if (longest <= 0)
        return launch;
    /* All times as shares of the longest, so that no power overflows. */
    double sum = 0, sum_log = 0, power[WS_EVENT_TIME_N] = {0};
    for (int i = 0; i < WS_EVENT_TIME_NORM; i++) {
        double share = (is_latency(i) ? 0 : q[i]) / longest;
        power[i] = share > 0 ? pow(share, p) : 0;
        sum += power[i];
        sum_log += share > 0 ? power[i] * log(share) : 0;
    }
    double wait = latency > 0 ? pow(latency / longest, p) : 0;
    sum += wait;
    sum_log += latency > 0 ? wait * log(latency / longest) : 0;
    double norm = longest * pow(sum, 1 / p);
    if (ret_gradient) {
        for (int i = 0; i < WS_EVENT_TIME_NORM; i++) {
            double part = is_latency(i) ? (latency > 0 ? wait * q[i] / latency : 0) : power[i];
            bool is_share = numbers[i].sense == WS_SHARE;
            if (!is_share || t->v[i] <= 1) /* beyond its peak a unit gets no faster */
                ret_gradient[i] = norm * part / sum * (is_share ? -1 : 1);
        }
        ret_gradient[WS_EVENT_TIME_NORM] = norm * (sum_log / sum - log(sum) / p);
    }
    return launch + norm;
}

double ws_event_time_s(const struct ws_event_time *t, const struct ws_event_gpu *gpu,
                       const struct ws_events *e, const struct ws_event_clocks *clocks)
{
    struct ws_event_need need = {0};
    ws_event_time_need(gpu, e, clocks, &need);
    return ws_event_time_of_need(t, &need, NULL);
}
