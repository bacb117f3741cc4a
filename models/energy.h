// SPDX-License-Identifier: Apache-2.0
/* models/energy.h - energy of GPUs that are either awake as a whole or gated as a whole: idle SMs
 * of a GPU at work cost, too.
 *
 * Source: sBEET-mg (RTSS 2022), III-B and V, Eq. 1 to 5. The power of GPU k at t is
 *     P_k(t) = Ps_k                                              while nothing runs on it (gated),
 *     P_k(t) = Ps_k + sum_j m_j·pd_k(j) + (M_k - sum_j m_j)·pi_k  else;
 * the energy of a window is its integral, added up over all GPUs. The paper prints Eq. 2 with its
 * two cases exchanged and leaves out the gating in Eq. 3; its own examples come out right only with
 * both put right (0.25 %; as printed -18…+4 % and +13…+28 %). Idle SMs are counted against the
 * physical M_k, whatever the limit on those given out. Units: ms, W, mJ (= W·ms) unless a name says
 * otherwise. Pure. Threads: any. */
#ifndef WS_MODELS_ENERGY_H
#define WS_MODELS_ENERGY_H

#include <stdbool.h>
#include <stddef.h>

enum ws_energy_form {
    WS_ENERGY_CORRECTED,   /* as above; the default everywhere */
    WS_ENERGY_EQ2_PRINTED, /* Ps_k while something runs, the sum while nothing does */
    WS_ENERGY_EQ3_PRINTED, /* never gated: Eq. 3 as printed, and Eq. 1's sum */
};

struct ws_energy_gpu {
    int n_sm; /* physical */
    double static_w, idle_w_per_sm;
};
/* A kernel that runs on @n_sm SMs from @start to @end. */
struct ws_energy_run {
    int gpu;
    int n_sm;
    double dyn_w_per_sm;
    double start, end;
};

/* Eq. 2: power while kernels with sum m·pd = @dyn_w run on @n_busy_sm SMs (0 and 0: nothing
 * runs). */
double ws_energy_power_w(enum ws_energy_form form, const struct ws_energy_gpu *g, double dyn_w,
                         int n_busy_sm);
/* Eq. 3, 4: energy of all GPUs in [@from, @to], integrated exactly between the starts and ends of
 * the @runs. */
double ws_energy_window_mj(enum ws_energy_form form, const struct ws_energy_gpu *gpus, int n_gpus,
                           const struct ws_energy_run *runs, size_t n_runs, double from, double to);

/* What one kernel costs on one kind of GPU; arrays are indexed by SM count - 1. */
struct ws_energy_kernel {
    int n_sm; /* length of the arrays */
    const double *wcet;
    /* Measured, of the whole GPU; NULL: Eq. 2 with @dyn_w_per_sm stands for it */
    const double *power_w;
    double h2d, d2h;
    double dyn_w_per_sm;
};
/* Energy of one kernel on @m SMs (1…n_sm) above that of the gated GPU: W(m)·(P(m) - Ps). What
 * differs between SM counts and between GPUs in any window that holds all of the kernel (delta of
 * Def. 1 and Eq. 5). */
double ws_energy_active_mj(const struct ws_energy_gpu *g, const struct ws_energy_kernel *k, int m);
/* The same with the static power of all GPUs in a window of @window ms: the authors' column
 * energy_in_window (500 ms; @other_static_w: of the other GPUs of the system). */
double ws_energy_in_window_mj(const struct ws_energy_gpu *g, const struct ws_energy_kernel *k,
                              int m, double window, double other_static_w);
/* Def. 1: the SM count in 1…@limit that costs least, the smallest of equals; at most k->n_sm. 0
 * where @limit or k->n_sm is 0. */
int ws_energy_optimal_sms(const struct ws_energy_gpu *g, const struct ws_energy_kernel *k,
                          int limit);
/* III: utilisation of a task with this kernel: (W + copies) / @period, W averaged over 1…@limit
 * SMs, or on @m SMs. */
double ws_energy_mean_utilization(const struct ws_energy_kernel *k, int limit, double period);
double ws_energy_utilization(const struct ws_energy_kernel *k, int m, double period);
/* Def. 2: fills @ret with 0…@n-1 by increasing @cost, equal ones in order; INFINITY stands last. */
void ws_energy_rank(const double *cost, int n, int *ret);

#endif
