// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "papers/fit/entry.h"

struct ws_event_gpu ws_fit_entry_gpu(const struct ws_gpu_spec *spec)
{
    struct ws_fitted f;
    ws_fitted_of(spec, &f);
    return f.gpu;
}

bool ws_fit_entry_models(const struct ws_gpu_spec *spec, struct ws_event_power *ret_power,
                         struct ws_event_time *ret_time)
{
    struct ws_fitted f;
    ws_fitted_of(spec, &f);
    *ret_power = f.power;
    *ret_time = f.time;
    return f.has_power;
}

static double idle_w(const struct ws_event_power *p, const double x[WS_EVENT_POWER_N])
{
    static const enum ws_event_power_term terms[] = {
        WS_EVENT_POWER_STATIC, WS_EVENT_POWER_MEMORY_CLOCK, WS_EVENT_POWER_CLOCK};
    double w = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(terms); i++)
        w += p->w[terms[i]] * x[terms[i]];
    return w;
}

struct ws_fit_plain ws_fit_entry_plain(const struct ws_event_gpu *gpu,
                                       const struct ws_event_power *power,
                                       const struct ws_measured_launch *v, size_t n)
{
    double x[WS_EVENT_POWER_N], above_w = 0, sms = 0;
    for (size_t i = 0; i < n; i++) {
        const struct ws_measured_launch *l = &v[i];
        if (isnan(l->power_w))
            continue;
        double volt = ws_event_power_voltage(power, gpu, &l->clocks);
        ws_event_power_terms(gpu, volt, &l->e, &l->clocks, l->rate_time_s, x);
        above_w += fmax(0, l->power_w - idle_w(power, x));
        sms += x[WS_EVENT_POWER_ACTIVE] * gpu->n_sms; /* by their clock and voltage */
    }
    ws_event_power_terms(gpu, 1, &(struct ws_events){0}, &gpu->reference, 1, x);
    return (struct ws_fit_plain){idle_w(power, x), sms > 0 ? above_w / sms : 0};
}

/* ---- the file ---- */

static void put(FILE *f, const struct ws_fitted_key *k, double v)
{
    fprintf(f, "    %s = %.0f\n", k->name, fmax(0, v * k->units));
}

static const char *const plain_keys[] = {"static_mw", "idle_mw_per_sm", "dynamic_mw_per_sm"};

static void put_numbers(FILE *f, const struct ws_fit_plain *plain,
                        const struct ws_event_power *power, const struct ws_event_time *time,
                        const char *calibrated)
{
    double plain_w[] = {plain->static_w, 0, plain->dynamic_w_per_sm};
    fprintf(f, "    calibrated = \"%s\"\n", calibrated);
    for (size_t i = 0; i < WS_ARRAY_SIZE(plain_keys); i++)
        fprintf(f, "    %s = %.0f\n", plain_keys[i], fmax(0, plain_w[i] * 1e3));
    put(f, &ws_fitted_knee_key, power->knee);
    put(f, &ws_fitted_slope_key, power->slope);
    for (int i = 0; i < WS_EVENT_POWER_N; i++)
        put(f, &ws_fitted_power_keys[i], power->w[i]);
    for (int i = 0; time && i < WS_EVENT_TIME_N; i++)
        put(f, &ws_fitted_time_keys[i], time->v[i]);
}

static bool is_key(const char *line, const char *name)
{
    line += strspn(line, " \t");
    size_t n = strlen(name);
    return !strncmp(line, name, n) && strchr(" \t=", line[n]) && line[n];
}

/* Whether @line is one of those that put_numbers() writes. */
static bool is_ours(const char *line)
{
    bool ours = is_key(line, "calibrated") || is_key(line, "uncalibrated") ||
                is_key(line, ws_fitted_knee_key.name) || is_key(line, ws_fitted_slope_key.name);
    for (size_t i = 0; i < WS_ARRAY_SIZE(plain_keys); i++)
        ours = ours || is_key(line, plain_keys[i]);
    for (int i = 0; i < WS_EVENT_POWER_N; i++)
        ours = ours || is_key(line, ws_fitted_power_keys[i].name);
    for (int i = 0; i < WS_EVENT_TIME_N; i++)
        ours = ours || is_key(line, ws_fitted_time_keys[i].name);
    return ours;
}

static bool begins(const char *line, const char *name)
{
    char word[40], brace[2];
    return sscanf(line, " gpu %39s %1[{]", word, brace) == 2 && !strcmp(word, name);
}

int ws_fit_entry_write(const char *path, const char *name, const struct ws_fit_plain *plain,
                       const struct ws_event_power *power, const struct ws_event_time *time,
                       const char *calibrated)
{
    char *line = NULL, *next = NULL;
    size_t cap = 0;
    enum { BEFORE, IN, AFTER } where = BEFORE;
    FILE *in = fopen(path, "re");
    if (!in)
        return ws_raise(-errno);
    FILE *out = asprintf(&next, "%s.new", path) > 0 ? fopen(next, "we") : NULL;
    int r = out ? 0 : ws_raise(-errno);
    while (!r && getline(&line, &cap, in) > 0) {
        if (where == IN && line[strspn(line, " \t")] == '}') {
            put_numbers(out, plain, power, time, calibrated);
            where = AFTER;
        }
        if (where != IN || !is_ours(line))
            fputs(line, out);
        if (where == BEFORE && begins(line, name))
            where = IN;
    }
    if (!r && where != AFTER)
        r = where == BEFORE ? -ENOENT : -EINVAL;
    bool failed = ferror(in);
    fclose(in);
    if (out && (fclose(out) || failed) && !r)
        r = ws_raise(-EIO);
    if (!r && rename(next, path))
        r = ws_raise(-errno);
    if (r && next)
        (void)unlink(next);
    free(line);
    free(next);
    return r;
}
