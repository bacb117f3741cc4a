/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/timeline/readings.h - what a meter like that of NVML shows of a power that is known
 * exactly: a counter of energy that moves at intervals, in mJ, and a power averaged over the last
 * intervals; both with noise, which is the same in each run of the same work.
 * Threads: the owner's lock. */
#ifndef WS_DEVICE_SOFT_TIMELINE_READINGS_H
#define WS_DEVICE_SOFT_TIMELINE_READINGS_H

#include <stdint.h>

enum { WS_READINGS_WINDOW = 10 }; /* updates that the shown power is the mean of */

struct ws_readings {
    uint64_t update_ns; /* the counter moves when the clock is at a multiple of it */
    double noise;       /* standard deviation of each update's energy, as a share of it */
    uint64_t seed;
    uint64_t at_ns;                   /* what has passed */
    unsigned __int128 pj, counter_pj; /* since the last update, exact; until then, with noise */
    uint64_t n_updates;
    double window_mw[WS_READINGS_WINDOW]; /* of the last updates */
};

/* @update_ns: > 0. @noise: 0 to 0.2. @seed: of the noise. */
void ws_readings_init(struct ws_readings *r, uint64_t update_ns, double noise, uint64_t seed);
/* @ns pass at @mw. */
void ws_readings_pass(struct ws_readings *r, uint64_t ns, uint64_t mw);
/* Energy that belongs to time that has passed, but was not known then. */
void ws_readings_late(struct ws_readings *r, unsigned __int128 pj);
/* What the meter shows. */
uint64_t ws_readings_energy_uj(const struct ws_readings *r);
uint32_t ws_readings_power_mw(const struct ws_readings *r);

#endif
