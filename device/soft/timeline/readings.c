// SPDX-License-Identifier: Apache-2.0
/* A meter like NVML's: nvmlDeviceGetTotalEnergyConsumption() counts mJ and moves about every 100
 * ms, nvmlDeviceGetPowerUsage() is a mean over a second. Sensors are off by a few percent; here
 * each update is off by an amount of its own, drawn from its number and the seed. That a sensor
 * may always be off in one direction is left out: nobody who sees only the meter could tell. */
#include "device/soft/timeline/readings.h"

#include "base/macros.h"

#define PJ_PER_MJ 1000000000

void ws_readings_init(struct ws_readings *r, uint64_t update_ns, double noise, uint64_t seed)
{
    *r = (struct ws_readings){.update_ns = update_ns, .noise = noise, .seed = seed};
}

/* splitmix64 */
static uint64_t random_of(uint64_t state)
{
    uint64_t z = state * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Nearly normal, mean 0, variance 1, between -6 and 6: the sum of twelve numbers from 0 to 1. */
static double normal_of(uint64_t seed, uint64_t number)
{
    double sum = -6;
    for (uint64_t i = 0; i < 12; i++)
        sum += (double)(random_of((seed << 40) + number * 12 + i + 1) >> 11) * 0x1p-53;
    return sum;
}

static void update(struct ws_readings *r)
{
    double factor = WS_MAX(1 + r->noise * normal_of(r->seed, r->n_updates), 0);
    double pj = (double)r->pj * factor;
    r->counter_pj += (unsigned __int128)pj;
    r->window_mw[r->n_updates++ % WS_READINGS_WINDOW] = pj / (double)r->update_ns;
    r->pj = 0;
}

void ws_readings_pass(struct ws_readings *r, uint64_t ns, uint64_t mw)
{
    while (ns) {
        uint64_t left = r->update_ns - r->at_ns % r->update_ns, step = WS_MIN(left, ns);
        r->pj += (unsigned __int128)mw * step;
        r->at_ns += step;
        ns -= step;
        if (step == left)
            update(r);
    }
}

void ws_readings_late(struct ws_readings *r, unsigned __int128 pj)
{
    r->pj += pj;
}

uint64_t ws_readings_energy_uj(const struct ws_readings *r)
{
    return (uint64_t)(r->counter_pj / PJ_PER_MJ) * 1000;
}

uint32_t ws_readings_power_mw(const struct ws_readings *r)
{
    uint64_t n = WS_MIN(r->n_updates, (uint64_t)WS_READINGS_WINDOW);
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += r->window_mw[i];
    return n ? (uint32_t)(sum / (double)n) : 0;
}
