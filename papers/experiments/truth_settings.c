// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "models/stat.h"
#include "papers/experiments/truth_settings.h"

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

struct settings_models {
    struct ws_event_power power;
    struct ws_event_time time;
    /* natural logarithms of the corrections of each setting */
    double slower[WS_TRUTH_SETTINGS_MAX], more[WS_TRUTH_SETTINGS_MAX];
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

/* The mean without the fifth of the values at either end. */
static double middle_mean(double *v, int n)
{
    enum { PART = 5 };
    double sum = 0;
    int cut = n / PART;
    qsort(v, (size_t)n, sizeof(*v), ws_stat_by_size);
    for (int i = cut; i < n - cut; i++)
        sum += v[i];
    return n ? sum / (n - 2 * cut) : 0;
}

/* How far the launches of one family are off at each setting, as natural logarithms. */
struct family_off {
    double slower[WS_TRUTH_SETTINGS_MAX], more[WS_TRUTH_SETTINGS_MAX];
    int n[WS_TRUTH_SETTINGS_MAX]; /* launches */
};

static void add_family(const struct ws_truth_gpu *g, const struct settings_models *m, int family,
                       struct family_off *ret)
{
    *ret = (struct family_off){.n = {0}};
    for (size_t i = 0; i < g->d.set.n; i++) {
        const struct ws_measured_launch *l = &g->d.set.v[i];
        int s = g->setting[i];
        double core_w, rest_w;
        if (l->family != family || isnan(l->power_w))
            continue;
        split_power(g, m, l, l->time_s, &core_w, &rest_w);
        ret->slower[s] += log(l->time_s / ws_event_time_s(&m->time, &g->d.gpu, &l->e, &l->clocks));
        ret->more[s] += log(fmax(l->power_w - rest_w, core_w / 4) / core_w);
        ret->n[s]++;
    }
}

/* Makes of the sums at each setting how far their mean is from that of all settings: how far the
 * model is off for a family as a whole says nothing of a setting. */
static void compare_settings(double *v, const int *count, int n_settings)
{
    double sum = 0, n = 0;
    for (int s = 0; s < n_settings; s++)
        if (count[s]) {
            v[s] /= count[s];
            sum += v[s];
            n++;
        }
    for (int s = 0; s < n_settings; s++)
        v[s] -= sum / fmax(n, 1);
}

/* What the families show of the settings that @count has. @off: [n_families]. */
static void correct(const struct ws_truth_gpu *g, const int *count, struct settings_models *m,
                    struct family_off *off, double *scratch)
{
    for (int f = 0; f < g->d.set.n_families; f++) {
        add_family(g, m, f, &off[f]);
        compare_settings(off[f].slower, off[f].n, g->n_settings);
        compare_settings(off[f].more, off[f].n, g->n_settings);
    }
    for (int s = 0; s < g->n_settings; s++) {
        int n = 0;
        for (int f = 0; f < g->d.set.n_families; f++)
            if (count[f] && off[f].n[s])
                scratch[n++] = off[f].slower[s];
        m->slower[s] = middle_mean(scratch, n);
        n = 0;
        for (int f = 0; f < g->d.set.n_families; f++)
            if (count[f] && off[f].n[s])
                scratch[n++] = off[f].more[s];
        m->more[s] = middle_mean(scratch, n);
    }
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
    return rest_w + core_w * exp(m->more[s]);
}

static struct ws_truth_predicted predict_launch(const struct ws_truth_gpu *g,
                                                const struct settings_models *m,
                                                const struct ws_measured_launch *l, int s)
{
    double time_s = ws_event_time_s(&m->time, &g->d.gpu, &l->e, &l->clocks) * exp(m->slower[s]);
    return (struct ws_truth_predicted){
        .time_s = time_s,
        .power_w = corrected_w(g, m, l, s, time_s),
        .known_time_w = corrected_w(g, m, l, s, l->time_s),
        .line_j = ws_calibrate_predict(&g->d.gpu, &m->power, &m->time, l).energy_j,
        .constant_j = time_s * constant_w(g, m, l),
    };
}

/* Room for predict_group(): [n_families]. */
struct family_scratch {
    int *count;
    struct family_off *off;
    double *values;
};

/* Predicts the launches of the families of @group for which it is @out, by models of the others. */
static int predict_group(struct ws_truth_gpu *g, const int *group, int out,
                         const struct family_scratch *scratch)
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
        correct(g, scratch->count, &m, scratch->off, scratch->values);
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
    struct family_scratch scratch = {.count = ws_alloc_array(n_families, sizeof(*scratch.count)),
                                     .off = ws_alloc_array(n_families, sizeof(*scratch.off)),
                                     .values = ws_alloc_array(n_families, sizeof(*scratch.values))};
    int r = group && scratch.count && scratch.off && scratch.values ? 0 : -ENOMEM;
    for (int out = 0; !r && out < n_groups; out++)
        r = predict_group(g, group, out, &scratch);
    free(group);
    free(scratch.count);
    free(scratch.off);
    free(scratch.values);
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
