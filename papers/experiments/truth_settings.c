// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "papers/experiments/truth_settings.h"
#include "papers/fit/effects.h"

/* The same programs, measured twice on a V100 by the same group, are this far apart in time and in
 * power: larger errors count by their size, not its square. */
#define TIME_NOISE  0.038
#define POWER_NOISE 0.049

static int find_settings(struct ws_truth_gpu *g)
{
    for (size_t i = 0; i < g->d.set.n; i++) {
        const struct ws_event_clocks *c = &g->d.set.v[i].clocks;
        int k = 0;
        while (k < g->n_settings && (g->settings[k].core_mhz != c->core_mhz ||
                                     g->settings[k].memory_mhz != c->memory_mhz))
            k++;
        if (k == WS_TRUTH_SETTINGS_MAX)
            return -E2BIG;
        if (k == g->n_settings)
            g->settings[g->n_settings++] = *c;
        g->setting[i] = k;
    }
    return 0;
}

/* What a setting does, of which programs depend on either in another measure. */
enum { CORE, MEMORY };
struct settings_models {
    struct ws_event_power power;
    struct ws_event_time time;
    /* Natural logarithms of what the other families show of each setting: in the time that waits
     * for the memory, and in the rest. */
    double slower[WS_EFFECTS][WS_TRUTH_SETTINGS_MAX];
    /* The same of the power that goes with the core's voltage. For the rest: what is added, in
     * shares of the power with nothing running. */
    double more[WS_EFFECTS][WS_TRUTH_SETTINGS_MAX];
};

/* The power that goes with the core's voltage, and the rest. */
static void split_power(const struct ws_truth_gpu *g, const struct settings_models *m,
                        const struct ws_measured_launch *l, double time_s, double *ret_core_w,
                        double *ret_rest_w)
{
    double x[WS_EVENT_POWER_N];
    double v = ws_event_power_voltage(&m->power, &g->d.gpu, &l->clocks);
    ws_event_power_terms(&g->d.gpu, v, &l->e, &l->clocks, time_s, x);
    *ret_core_w = *ret_rest_w = 0;
    for (int i = 0; i < WS_EVENT_POWER_N; i++) {
        bool rest = i == WS_EVENT_POWER_STATIC || i == WS_EVENT_POWER_MEMORY_CLOCK ||
                    i == WS_EVENT_POWER_DRAM;
        *(rest ? ret_rest_w : ret_core_w) += x[i] * m->power.w[i];
    }
}

/* The share of its time in which a launch waits for the memory. */
static double memory_share(const struct ws_truth_gpu *g, const struct settings_models *m,
                           const struct ws_measured_launch *l)
{
    double gradient[WS_EVENT_TIME_N];
    struct ws_event_need need = {0};
    ws_event_time_need(&g->d.gpu, &l->e, &l->clocks, &need);
    double time_s = ws_event_time_of_need(&m->time, &need, gradient);
    return -(gradient[WS_EVENT_TIME_DRAM] + gradient[WS_EVENT_TIME_PATH]) / time_s;
}

/* Room for predict_group(). */
struct group_scratch {
    int *count;                       /* [n_families] */
    double *rows;                     /* [n_families] */
    struct ws_effects_launch *off[2]; /* [n]: in time and in power */
};

/* What the families show of the settings that @scratch counts. */
static int correct(const struct ws_truth_gpu *g, const struct group_scratch *scratch,
                   struct settings_models *m)
{
    const struct ws_measured_set *set = &g->d.set;
    double idle_w = ws_event_power_idle_w(&g->d.gpu), core_w, rest_w;
    size_t n = 0;
    memset(scratch->rows, 0, (size_t)set->n_families * sizeof(*scratch->rows));
    for (size_t i = 0; i < set->n; i++)
        scratch->rows[set->v[i].family]++;
    for (size_t i = 0; i < set->n; i++) {
        const struct ws_measured_launch *l = &set->v[i];
        if (!scratch->count[l->family] || isnan(l->power_w))
            continue;
        struct ws_effects_launch off = {.weight = g->n_settings / scratch->rows[l->family],
                                        .family = l->family,
                                        .setting = g->setting[i]};
        off.x[MEMORY] = memory_share(g, m, l);
        off.x[CORE] = 1 - off.x[MEMORY];
        off.off = log(l->time_s / ws_event_time_s(&m->time, &g->d.gpu, &l->e, &l->clocks));
        scratch->off[0][n] = off;
        split_power(g, m, l, l->time_s, &core_w, &rest_w);
        off.x[CORE] = core_w / (core_w + rest_w);
        off.x[MEMORY] = idle_w / (core_w + rest_w);
        off.off = log(l->power_w / (core_w + rest_w));
        scratch->off[1][n++] = off;
    }
    int r = ws_effects_find(scratch->off[0], n, set->n_families, g->n_settings, TIME_NOISE,
                            (double *const[]){m->slower[CORE], m->slower[MEMORY]});
    return r ? r
             : ws_effects_find(scratch->off[1], n, set->n_families, g->n_settings, POWER_NOISE,
                               (double *const[]){m->more[CORE], m->more[MEMORY]});
}

static double constant_w(const struct ws_truth_gpu *g, const struct settings_models *m,
                         const struct ws_measured_launch *l)
{
    const struct ws_gpu_spec *spec = &g->d.spec;
    double f = l->clocks.core_mhz / g->d.gpu.reference.core_mhz;
    double v = ws_event_voltage(m->power.knee, m->power.slope, f);
    double n = fmin(spec->n_sms, l->e.blocks);
    return (spec->static_mw + n * spec->dynamic_mw_per_sm * v * v * f +
            (spec->n_sms - n) * spec->idle_mw_per_sm) /
           1e3;
}

/* Power at setting @s of a launch that takes @time_s. */
static double corrected_w(const struct ws_truth_gpu *g, const struct settings_models *m,
                          const struct ws_measured_launch *l, int s, double time_s)
{
    double core_w, rest_w;
    split_power(g, m, l, time_s, &core_w, &rest_w);
    return rest_w + ws_event_power_idle_w(&g->d.gpu) * m->more[MEMORY][s] +
           core_w * exp(m->more[CORE][s]);
}

static struct ws_truth_predicted predict_launch(const struct ws_truth_gpu *g,
                                                const struct settings_models *m,
                                                const struct ws_measured_launch *l, int s)
{
    double memory = memory_share(g, m, l);
    double time_s = ws_event_time_s(&m->time, &g->d.gpu, &l->e, &l->clocks) *
                    exp((1 - memory) * m->slower[CORE][s] + memory * m->slower[MEMORY][s]);
    return (struct ws_truth_predicted){
        .time_s = time_s,
        .power_w = corrected_w(g, m, l, s, time_s),
        .known_time_w = corrected_w(g, m, l, s, l->time_s),
        .line_j = ws_calibrate_predict(&g->d.gpu, &m->power, &m->time, l).energy_j,
        .constant_j = time_s * constant_w(g, m, l),
    };
}

/* Predicts the launches of the families of @group for which it is @out, by models of the others. */
static int predict_group(struct ws_truth_gpu *g, const int *group, int out,
                         const struct group_scratch *scratch)
{
    struct ws_calibrate c = ws_truth_calibrate(&g->d);
    struct settings_models m;
    bool any = false;
    for (size_t i = 0; i < g->d.set.n; i++)
        any |= group[g->d.set.v[i].family] == out;
    if (!any)
        return 0;
    for (int i = 0; i < g->d.set.n_families; i++)
        scratch->count[i] = group[i] != out;
    int r = ws_calibrate_power(&c, scratch->count, &m.power);
    if (!r)
        r = ws_calibrate_time(&c, scratch->count, &m.time);
    if (!r)
        r = correct(g, scratch, &m);
    for (size_t i = 0; !r && i < g->d.set.n; i++) {
        const struct ws_measured_launch *l = &g->d.set.v[i];
        if (group[l->family] == out)
            g->predicted[i] = predict_launch(g, &m, l, g->setting[i]);
    }
    return r;
}

double ws_truth_gpu_distance(const struct ws_truth_gpu *g, size_t i)
{
    const struct ws_event_clocks *c = &g->d.set.v[i].clocks, *r = &g->d.gpu.reference;
    return fabs(log(c->core_mhz / r->core_mhz)) + fabs(log(c->memory_mhz / r->memory_mhz));
}

/* Who chooses the clocks of an application has counted its events once, at clocks near the
 * catalog's. So all launches of an application get the events of that one. */
static void count_once(struct ws_truth_gpu *g)
{
    struct ws_measured_launch *v = g->d.set.v;
    for (size_t i = 0; i < g->d.set.n; i++) {
        size_t nearest = i;
        for (size_t k = 0; k < g->d.set.n; k++)
            if (v[k].app == v[i].app &&
                ws_truth_gpu_distance(g, k) < ws_truth_gpu_distance(g, nearest))
                nearest = k;
        v[i].e = v[nearest].e;
    }
}

int ws_truth_gpu_predict(struct ws_truth_gpu *g, int n_groups, uint32_t shuffle)
{
    size_t n_families = (size_t)g->d.set.n_families + 1;
    int *group = ws_calibrate_groups(g->d.set.n_families, n_groups, shuffle);
    struct group_scratch scratch = {.count = ws_alloc_array(n_families, sizeof(*scratch.count)),
                                    .rows = ws_alloc_array(n_families, sizeof(*scratch.rows))};
    bool all = group && scratch.count && scratch.rows;
    for (int i = 0; i < 2; i++)
        all &= !!(scratch.off[i] = ws_alloc_array(g->d.set.n + 1, sizeof(*scratch.off[i])));
    int r = all ? 0 : -ENOMEM;
    for (int out = 0; !r && out < n_groups; out++)
        r = predict_group(g, group, out, &scratch);
    free(group);
    free(scratch.count);
    free(scratch.rows);
    free(scratch.off[0]);
    free(scratch.off[1]);
    return r;
}

int ws_truth_gpu_read(struct ws_experiment_run *x, const struct ws_truth_source *source,
                      struct ws_truth_gpu *g)
{
    int r = ws_truth_read(x, source, &g->d);
    g->setting = ws_alloc_array(g->d.set.n + 1, sizeof(*g->setting));
    g->predicted = ws_alloc_array(g->d.set.n + 1, sizeof(*g->predicted));
    if (!r && (!g->setting || !g->predicted))
        r = -ENOMEM;
    if (!r)
        r = find_settings(g);
    if (!r)
        count_once(g);
    return r ? r : ws_truth_gpu_predict(g, g->d.set.n_families, 0);
}

void ws_truth_gpu_deinit(struct ws_truth_gpu *g)
{
    free(g->setting);
    free(g->predicted);
    ws_truth_deinit(&g->d);
}
