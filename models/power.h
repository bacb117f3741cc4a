// SPDX-License-Identifier: Apache-2.0
/* models/power.h - the power of a GPU from what it executes: static, thermal and dynamic, by linear
 * regression.
 *
 * Source: the consolidation paper (2011), VI, Eq. 10 to 12:
 *     P = P_static + P_T(dT) + P_dyn      P_T = k_T · dT      P_dyn = sum_i a_i · e_i + lambda
 * e_i: warp instructions of class i per SM and cycle. Two classes are enough: computation, and
 * access to global memory. Where SMs do different things, the formula gets the rates of a virtual
 * SM, the mean over all SMs (models/consolidate.c); evaluated for each SM and added up it would
 * count lambda and the chip's own power once per SM.
 * Units: W, K, J, s. Threads: any. Errors: base/error.h. */
#ifndef WS_MODELS_POWER_H
#define WS_MODELS_POWER_H

#include <stdbool.h>
#include <stddef.h>
#include "base/diag.h"
#include "base/macros.h"

/* One training kernel. */
struct ws_power_sample {
    double rate_comp, rate_gmem, delta_t_k;
    double power_w; /* above idle: P_sys - P_idle, which is P_T + P_dyn */
};
struct ws_power_model {
    double a_comp_w, a_gmem_w; /* per unit of rate */
    double k_t_w_per_k;        /* 0: fitted without temperature */
    double lambda_w;
    bool with_temperature;
    /* how well it fits its training */
    double rss, rms_w;
    size_t n_samples;
};

/* Ordinary least squares. Return: 0, -EINVAL with a diagnostic (fewer samples than unknowns, a
 * value that is no number, or a singular fit: the column that the others make up is named),
 * -ENOMEM. @ret: untouched unless 0. @diags: may be NULL. */
WS_MUST_CHECK int ws_power_fit(struct ws_power_model *ret, const struct ws_power_sample *samples,
                               size_t n, bool with_temperature, struct ws_diags *diags);
/* Power above idle; @delta_t_k is ignored by a model fitted without temperature. */
double ws_power_above_idle_w(const struct ws_power_model *p, double rate_comp, double rate_gmem,
                             double delta_t_k);

/* Energy above idle of a mix, from kernels measured alone, where no event rates are known: each
 * brings the dynamic energy that it took alone, lambda is there for as long as anything runs
 * [ours]. */
struct ws_power_alone {
    double above_idle_w, time_s; /* of one kernel alone */
    double n;                    /* instances in the mix */
};
double ws_power_mix_j(const struct ws_power_alone *parts, size_t n_parts, double lambda_w,
                      double mix_time_s);

#endif
