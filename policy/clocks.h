/* SPDX-License-Identifier: Apache-2.0 */
/* policy/clocks.h - what a job takes where a GPU's voltage and clocks are not the default ones, by
 * the models of models/dvfs.h, and the settings that are worth considering for it.
 *
 * A job's cost gives time and power at the default clocks, for each number of SMs. Its ws_dvfs_task
 * is that of all SMs of the GPU. On fewer of them the time changes by the same factor, and the
 * power by the share of the SMs. A cost without one does not depend on the clocks.
 *
 * Units: as policy.h. Pure. Threads: any. */
#ifndef WS_POLICY_CLOCKS_H
#define WS_POLICY_CLOCKS_H

#include "models/dvfs.h"
#include "policy/policy.h"

/* Shares of the default: 1 is the default. */
struct ws_policy_clocks {
    double volt, core, memory;
};
#define WS_POLICY_CLOCKS_DEFAULT ((struct ws_policy_clocks){1, 1, 1})

bool ws_policy_clocks_same(const struct ws_policy_clocks *a, const struct ws_policy_clocks *b);
/* The lowest that are not below @a nor below @b. */
struct ws_policy_clocks ws_policy_clocks_join(const struct ws_policy_clocks *a,
                                              const struct ws_policy_clocks *b);
/* By what factor a kernel takes longer than at the default. */
double ws_policy_clocks_stretch(const struct ws_policy_cost *c, const struct ws_policy_clocks *at);
/* By how much a busy SM takes more power than at the default, of a GPU with @n_sm SMs. It takes no
 * less than nothing. */
double ws_policy_clocks_extra_w(const struct ws_policy_cost *c, int n_sm,
                                const struct ws_policy_clocks *at);

enum { WS_POLICY_CLOCKS_MAX = 4 };
/* The settings of @iv that are worth considering for a job that may take all @n_sm SMs of a GPU,
 * beside the default: the fastest, that of least energy, and some between that and the default.
 * Return: how many; 0 where the cost does not depend on the clocks. */
int ws_policy_clocks_choose(struct ws_policy_clocks ret[WS_POLICY_CLOCKS_MAX],
                            const struct ws_policy_cost *c, int n_sm,
                            const struct ws_dvfs_interval *iv);

/* For make(): reads the options "dvfs", yes or no, and "interval" (models/dvfs.h). Return: 0 or
 * WS_POLICY_E_OPTION with @ret_error. */
int ws_policy_clocks_options(const struct ws_policy_option *table, const char *const *options,
                             bool *ret_dvfs, struct ws_dvfs_interval *ret, char *ret_error,
                             size_t error_bytes);

#endif
