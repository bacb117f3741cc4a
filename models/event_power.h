// SPDX-License-Identifier: Apache-2.0
/* models/event_power.h - the power and the energy of a launch from what it did.
 *
 *     E = T·(P_static + P_memory·m + f·V²·(P_clock + P_active·a + P_busy·b)) + V²·Σ N_i·e_i
 *
 * T time; f, m core and memory clock, as shares of the reference clocks; a the share of SMs that
 * have a warp; b the share of SMs and clocks in which one is issued, a·(1 - exp(-2·i/a)) for i warp
 * instructions per SM and clock; N_i the number of events of class i and e_i the energy of one.
 * DRAM has a voltage of its own: V is left out there. V is the core's voltage as a share of that at
 * the reference clock: a line over f with a floor, which begins at the knee; the knee of a GPU that
 * is made for higher clocks than the reference is above 1,
 *
 *     V = 1 + slope·(max(f, knee) - max(1, knee)).
 *
 * The form is that of Guerreiro et al. (HPCA 2018: static, clock and utilisation, with V²) with
 * energies of events in place of utilisation as in AccelWattch (MICRO 2021); b is ours. Temperature
 * is left out: no source of data gives it with its powers; what a board leaks more when it is hot
 * is in P_static. Idle SMs draw P_clock's share and nothing of P_active.
 * Units: W, nJ, s. Pure. Threads: any. */
#ifndef WS_MODELS_EVENT_POWER_H
#define WS_MODELS_EVENT_POWER_H

#include "models/events.h"

#define EVENT_POWER(name, key, title, unit, narrow, wide, spread) WS_EVENT_POWER_##name,
#define EVENT_TIME(...)
enum ws_event_power_term {
#include "models/event_terms.def"
    WS_EVENT_POWER_N
};

struct ws_event_power {
    double knee, slope;         /* of the voltage */
    double w[WS_EVENT_POWER_N]; /* W, or nJ for each event */
};

/* What a fit expects of a term before it has data. */
struct ws_event_power_prior {
    const char *title, *key;
    bool is_energy;
    double expected; /* W or nJ; 0: nothing is expected */
    double spread;   /* as a share of @expected */
};
struct ws_event_power_prior ws_event_power_prior(const struct ws_event_gpu *gpu,
                                                 enum ws_event_power_term term);
/* The power of a board at its reference clocks with nothing running, which a fit expects: 0.3 of
 * its limit, or 0.2 with a wide memory (as the TITAN Xp, GTX TITAN X and K40c, and the TITAN V,
 * were measured by Guerreiro et al.). 0: the limit is not known. */
double ws_event_power_idle_w(const struct ws_event_gpu *gpu);

double ws_event_voltage(double knee, double slope, double f);
/* The same at @clocks. */
double ws_event_power_voltage(const struct ws_event_power *p, const struct ws_event_gpu *gpu,
                              const struct ws_event_clocks *clocks);
/**
 * ws_event_power_terms() - the factor of each of the numbers w: P = Σ ret[i]·w[i]
 * @voltage: of the core, as a share of that at the reference clock
 * @time_s: of the launch; more than 0
 */
void ws_event_power_terms(const struct ws_event_gpu *gpu, double voltage, const struct ws_events *e,
                          const struct ws_event_clocks *clocks, double time_s,
                          double ret[WS_EVENT_POWER_N]);
/* Mean power during the launch. */
double ws_event_power_w(const struct ws_event_power *p, const struct ws_event_gpu *gpu,
                        const struct ws_events *e, const struct ws_event_clocks *clocks,
                        double time_s);
/* The same where the core's voltage is not that of the model's curve. */
double ws_event_power_at_w(const struct ws_event_power *p, const struct ws_event_gpu *gpu,
                           double voltage, const struct ws_events *e,
                           const struct ws_event_clocks *clocks, double time_s);
/* What the board draws at most, whatever runs (event_limit.h). INFINITY: that is not known. */
double ws_event_power_most_w(const struct ws_event_gpu *gpu);

#endif
