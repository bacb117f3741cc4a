// SPDX-License-Identifier: Apache-2.0
/* Between the default and the setting of least energy lie those that take the least energy for a
 * given time; the times are chosen in equal proportions. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/minmax.h"
#include "policy/clocks.h"

enum { BETWEEN = 2 };
/* Settings that differ by less in time are one. */
#define APART 1.02

static bool same(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

bool ws_policy_clocks_same(const struct ws_policy_clocks *a, const struct ws_policy_clocks *b)
{
    return same(a->volt, b->volt) && same(a->core, b->core) && same(a->memory, b->memory);
}

struct ws_policy_clocks ws_policy_clocks_join(const struct ws_policy_clocks *a,
                                              const struct ws_policy_clocks *b)
{
    return (struct ws_policy_clocks){.volt = ws_greater(a->volt, b->volt),
                                     .core = ws_greater(a->core, b->core),
                                     .memory = ws_greater(a->memory, b->memory)};
}

double ws_policy_clocks_stretch(const struct ws_policy_cost *c, const struct ws_policy_clocks *at)
{
    if (!c->dvfs)
        return 1;
    return ws_dvfs_time(c->dvfs, at->core, at->memory) / ws_dvfs_time(c->dvfs, 1, 1);
}

double ws_policy_clocks_extra_w(const struct ws_policy_cost *c, int n_sm,
                                const struct ws_policy_clocks *at)
{
    if (!c->dvfs)
        return 0;
    double all =
        ws_dvfs_power(c->dvfs, at->volt, at->core, at->memory) - ws_dvfs_power(c->dvfs, 1, 1, 1);
    return ws_greater(all / n_sm, -c->dyn_w_per_sm);
}

static struct ws_policy_clocks clocks_of(const struct ws_dvfs_point *p)
{
    return (struct ws_policy_clocks){p->v, p->fc, p->fm};
}

int ws_policy_clocks_choose(struct ws_policy_clocks ret[WS_POLICY_CLOCKS_MAX],
                            const struct ws_policy_cost *c, int n_sm,
                            const struct ws_dvfs_interval *iv)
{
    struct ws_dvfs_point p, best;
    int n = 0;
    if (!c->dvfs)
        return 0;
    /* Static power is drawn whatever is decided. What else does not follow the clocks stays. */
    struct ws_dvfs_task own = *c->dvfs;
    own.p0 = ws_greater(c->dyn_w_per_sm * n_sm - own.gamma - own.c, 0);
    double normal = ws_dvfs_time(&own, 1, 1), least = ws_dvfs_t_min(&own, iv);
    if (least * APART < normal && !ws_dvfs_optimum(&own, iv, least, &p))
        ret[n++] = clocks_of(&p);
    if (ws_dvfs_optimum(&own, iv, INFINITY, &best))
        return n;
    for (int i = 1; i <= BETWEEN && best.t > normal * APART; i++) {
        double limit = normal * pow(best.t / normal, i / (BETWEEN + 1.0));
        if (!ws_dvfs_optimum(&own, iv, limit, &p))
            ret[n++] = clocks_of(&p);
    }
    ret[n++] = clocks_of(&best);
    return n;
}

int ws_policy_clocks_options(const struct ws_policy_option *table, const char *const *options,
                             bool *ret_dvfs, struct ws_dvfs_interval *ret, char *ret_error,
                             size_t error_bytes)
{
    const char *dvfs = ws_policy_option_text(table, options, "dvfs");
    *ret_dvfs = !strcmp(dvfs, "yes");
    if (!*ret_dvfs && strcmp(dvfs, "no")) {
        snprintf(ret_error, error_bytes, "dvfs=%s: yes or no is wanted", dvfs);
        return WS_POLICY_E_OPTION;
    }
    const char *interval = ws_policy_option_text(table, options, "interval");
    return ws_dvfs_interval_parse(interval, ret, ret_error, error_bytes) ? WS_POLICY_E_OPTION : 0;
}
