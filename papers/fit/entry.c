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

enum { WIDE_BUS_BITS = 1024, WARP = 32 };

/* The catalog's keys: where in the entry, and how many of its units make one of the model's. */
#define WS_WATT_FIELD(key)      power_##key##_mw
#define WS_NANOJOULE_FIELD(key) energy_##key##_fj
#define TIME_FIELD(key)         time_##key##_milli
#define STRING_OF(x)            #x
#define STRING(x)               STRING_OF(x)
struct entry_key {
    const char *name;
    size_t at;
    double units;
};
#define FIELD(field, units)                                                                        \
    {                                                                                              \
        STRING(field), offsetof(struct ws_gpu_spec, field), units                                  \
    }
#define WS_WATT_UNITS      1e3
#define WS_NANOJOULE_UNITS 1e6
static const struct entry_key power_keys[WS_EVENT_POWER_N] = {
#define EVENT_POWER(NAME, key, title, unit, narrow, wide, spread)                                  \
    [WS_EVENT_POWER_##NAME] = FIELD(unit##_FIELD(key), unit##_UNITS),
#define EVENT_TIME(...)
#include "models/event_terms.def"
};
static const struct entry_key time_keys[WS_EVENT_TIME_N] = {
#define EVENT_POWER(...)
#define EVENT_TIME(NAME, key, title, sense, expected, spread)                                      \
    [WS_EVENT_TIME_##NAME] = FIELD(TIME_FIELD(key), 1e3),
#include "models/event_terms.def"
};
static const struct entry_key knee_key = FIELD(voltage_knee_milli, 1e3);
static const struct entry_key slope_key = FIELD(voltage_slope_milli, 1e3);

static double get(const struct ws_gpu_spec *spec, const struct entry_key *k)
{
    return *(const uint32_t *)((const char *)spec + k->at) / k->units;
}

struct ws_event_gpu ws_fit_entry_gpu(const struct ws_gpu_spec *s)
{
    return (struct ws_event_gpu){.n_sms = s->n_sms,
                                 .schedulers = s->schedulers_per_sm,
                                 .fp32_lanes = s->fp32_lanes_per_sm,
                                 .int_lanes = s->int_lanes_per_sm,
                                 .fp64_lanes = s->fp64_lanes_per_sm,
                                 .sfu_lanes = s->sfu_lanes_per_sm,
                                 .warps_per_sm = (int)(s->max_threads_per_sm / WARP),
                                 .reference = {s->core_mhz, s->memory_mhz},
                                 .memory_bytes_per_s = (double)s->memory_bytes_per_s,
                                 .limit_w = s->limit_mw / 1e3,
                                 .wide_memory = s->memory_bus_bits >= WIDE_BUS_BITS};
}

bool ws_fit_entry_models(const struct ws_gpu_spec *spec, struct ws_event_power *ret_power,
                         struct ws_event_time *ret_time)
{
    double sum = 0;
    ret_power->knee = get(spec, &knee_key);
    ret_power->slope = get(spec, &slope_key);
    for (int i = 0; i < WS_EVENT_POWER_N; i++)
        sum += ret_power->w[i] = get(spec, &power_keys[i]);
    ws_event_time_init(ret_time);
    for (int i = 0; i < WS_EVENT_TIME_N; i++)
        if (get(spec, &time_keys[i]) > 0)
            ret_time->v[i] = get(spec, &time_keys[i]);
    return sum > 0;
}

/* ---- the file ---- */

static void put(FILE *f, const struct entry_key *k, double v)
{
    fprintf(f, "    %s = %.0f\n", k->name, fmax(0, v * k->units));
}

static void put_numbers(FILE *f, const struct ws_event_power *power,
                        const struct ws_event_time *time, const char *calibrated)
{
    fprintf(f, "    calibrated = \"%s\"\n", calibrated);
    put(f, &knee_key, power->knee);
    put(f, &slope_key, power->slope);
    for (int i = 0; i < WS_EVENT_POWER_N; i++)
        put(f, &power_keys[i], power->w[i]);
    for (int i = 0; time && i < WS_EVENT_TIME_N; i++)
        put(f, &time_keys[i], time->v[i]);
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
    bool ours =
        is_key(line, "calibrated") || is_key(line, knee_key.name) || is_key(line, slope_key.name);
    for (int i = 0; i < WS_EVENT_POWER_N; i++)
        ours = ours || is_key(line, power_keys[i].name);
    for (int i = 0; i < WS_EVENT_TIME_N; i++)
        ours = ours || is_key(line, time_keys[i].name);
    return ours;
}

static bool begins(const char *line, const char *name)
{
    char word[40], brace[2];
    return sscanf(line, " gpu %39s %1[{]", word, brace) == 2 && !strcmp(word, name);
}

int ws_fit_entry_write(const char *path, const char *name, const struct ws_event_power *power,
                       const struct ws_event_time *time, const char *calibrated)
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
            put_numbers(out, power, time, calibrated);
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
