// SPDX-License-Identifier: Apache-2.0
/* models/profile.c - a profile in memory: its columns, its points, what it learns.
 *
 * The table of columns is the one place that knows a profile's fields by name: the database's
 * schema and statements, the CSV's head and the checks are made from it. A new field is a line
 * here, a field in the struct, and a step of WS_STORE_SCHEMA. */
#include "models/store_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/error.h"

#define P(field, type, part, min, max)                                                             \
    {                                                                                              \
#field, type, offsetof(struct ws_profile, field), sizeof(((struct ws_profile *)0)->field), \
            part, min, max                                                                         \
    }
#define PN(name, field, type, part, min, max)                                                      \
    {                                                                                              \
        name, type, offsetof(struct ws_profile, field), sizeof(((struct ws_profile *)0)->field),   \
            part, min, max                                                                         \
    }
#define Q(field, type, min, max)                                                                   \
    {                                                                                              \
#field, type, offsetof(struct ws_profile_point, field),                                    \
            sizeof(((struct ws_profile_point *)0)->field), 0, min, max                             \
    }
#define BIG   1e15
#define COUNT 9e15 /* whole numbers that a double holds */

const struct ws_column ws_profile_columns[] = {
    PN("hash", key.hash, WS_COL_TEXT, 0, 0, 0),
    PN("gpu", key.gpu, WS_COL_TEXT, 0, 0, 0),
    PN("shape", key.shape, WS_COL_TEXT, 0, 0, 0),
    P(name, WS_COL_TEXT, 0, 0, 0),
    PN("threads_per_block", kernel.threads_per_block, WS_COL_U32, WS_PROFILE_MODEL, 1, 1024),
    PN("n_blocks", kernel.n_blocks, WS_COL_U64, WS_PROFILE_MODEL, 1, COUNT),
    PN("blocks_per_sm", kernel.active_blocks_per_sm, WS_COL_U32, WS_PROFILE_MODEL, 1, 1024),
    PN("comp_insts", kernel.comp_insts, WS_COL_DOUBLE, WS_PROFILE_MODEL, 0, BIG),
    PN("coal_insts", kernel.coal_insts, WS_COL_DOUBLE, WS_PROFILE_MODEL, 0, BIG),
    PN("uncoal_insts", kernel.uncoal_insts, WS_COL_DOUBLE, WS_PROFILE_MODEL, 0, BIG),
    PN("uncoal_per_mw", kernel.uncoal_per_mw, WS_COL_DOUBLE, WS_PROFILE_MODEL, 1, 1024),
    PN("synch_insts", kernel.synch_insts, WS_COL_DOUBLE, WS_PROFILE_MODEL, 0, BIG),
    P(h2d_ms, WS_COL_DOUBLE, WS_PROFILE_COPIES, 0, BIG),
    P(d2h_ms, WS_COL_DOUBLE, WS_PROFILE_COPIES, 0, BIG),
    P(in_bytes, WS_COL_U64, WS_PROFILE_COPIES, 0, COUNT),
    P(out_bytes, WS_COL_U64, WS_PROFILE_COPIES, 0, COUNT),
    PN("dvfs_p0_w", dvfs.p0, WS_COL_DOUBLE, WS_PROFILE_DVFS, 0, BIG),
    PN("dvfs_gamma_w", dvfs.gamma, WS_COL_DOUBLE, WS_PROFILE_DVFS, 0, BIG),
    PN("dvfs_c_w", dvfs.c, WS_COL_DOUBLE, WS_PROFILE_DVFS, 0, BIG),
    PN("dvfs_t0_ms", dvfs.t0, WS_COL_DOUBLE, WS_PROFILE_DVFS, 0, BIG),
    PN("dvfs_d_ms", dvfs.d, WS_COL_DOUBLE, WS_PROFILE_DVFS, 0, BIG),
    PN("dvfs_delta", dvfs.delta, WS_COL_DOUBLE, WS_PROFILE_DVFS, 0, 1),
    P(cpu_ms, WS_COL_DOUBLE, WS_PROFILE_CPU, 0, BIG),
    P(cpu_mj, WS_COL_DOUBLE, WS_PROFILE_CPU, 0, BIG),
    PN("time_error_n", time_error.n, WS_COL_U64, 0, 0, COUNT),
    PN("time_error_mean", time_error.mean, WS_COL_DOUBLE, 0, -BIG, BIG),
    PN("time_error_m2", time_error.m2, WS_COL_DOUBLE, 0, 0, BIG *BIG),
    PN("power_error_n", power_error.n, WS_COL_U64, 0, 0, COUNT),
    PN("power_error_mean", power_error.mean, WS_COL_DOUBLE, 0, -BIG, BIG),
    PN("power_error_m2", power_error.m2, WS_COL_DOUBLE, 0, 0, BIG *BIG),
    {0},
};
const struct ws_column ws_point_columns[] = {
    Q(n_sms, WS_COL_U32, 1, 4096),
    Q(n_runs, WS_COL_U64, 1, COUNT),
    Q(time_max_ms, WS_COL_DOUBLE, 0, BIG),
    Q(time_mean_ms, WS_COL_DOUBLE, 0, BIG),
    Q(time_min_ms, WS_COL_DOUBLE, 0, BIG),
    Q(time_m2, WS_COL_DOUBLE, 0, BIG *BIG),
    Q(n_powers, WS_COL_U64, 0, COUNT),
    Q(power_w, WS_COL_DOUBLE, 0, BIG),
    {0},
};

/* A column of numbers as a number, to be checked against its bounds. */
static double column_value(const struct ws_column *c, const void *of)
{
    const void *at = (const char *)of + c->offset;
    switch (c->type) {
    case WS_COL_U32:
        return *(const uint32_t *)at;
    case WS_COL_U64:
        return (double)*(const uint64_t *)at;
    case WS_COL_DOUBLE:
        return *(const double *)at;
    case WS_COL_TEXT:
        break;
    }
    return 0;
}

void ws_profile_deinit(struct ws_profile *p)
{
    free(p->points);
    *p = WS_PROFILE_NULL;
}

static bool key_letters(const char *s, const char *more)
{
    for (; *s; s++)
        if (!((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9') ||
              strchr(more, *s)))
            return false;
    return true;
}

static bool key_ok(const char *hash, const char *gpu, const char *shape)
{
    return *hash && *gpu && key_letters(hash, "._:-") && key_letters(gpu, "._-") &&
           key_letters(shape, "._:-/+,");
}

int ws_profile_key_set(struct ws_profile_key *k, const char *hash, const char *gpu,
                       const char *shape)
{
    if (strlen(hash) >= sizeof(k->hash) || strlen(gpu) >= sizeof(k->gpu) ||
        strlen(shape) >= sizeof(k->shape) || !key_ok(hash, gpu, shape))
        return ws_raise(-EINVAL);
    memset(k, 0, sizeof(*k));
    strcpy(k->hash, hash);
    strcpy(k->gpu, gpu);
    strcpy(k->shape, shape);
    return 0;
}

/* The first point with at least @n_sms; n_points: none. */
static uint32_t lower(const struct ws_profile *p, uint32_t n_sms)
{
    uint32_t first = 0, end = p->n_points;
    while (first < end) {
        uint32_t mid = first + (end - first) / 2;
        if (p->points[mid].n_sms < n_sms)
            first = mid + 1;
        else
            end = mid;
    }
    return first;
}

const struct ws_profile_point *ws_profile_at(const struct ws_profile *p, uint32_t n_sms)
{
    uint32_t i = lower(p, n_sms);
    return i < p->n_points && p->points[i].n_sms == n_sms ? &p->points[i] : NULL;
}

int ws_profile_put_point(struct ws_profile *p, const struct ws_profile_point *point)
{
    uint32_t i = lower(p, point->n_sms);
    if (i < p->n_points && p->points[i].n_sms == point->n_sms) {
        p->points[i] = *point;
        return 0;
    }
    int r =
        ws_grow((void **)&p->points, &p->cap_points, (size_t)p->n_points + 1, sizeof(*p->points));
    if (r)
        return ws_forward(r);
    memmove(p->points + i + 1, p->points + i, (p->n_points - i) * sizeof(*p->points));
    p->points[i] = *point;
    p->n_points++;
    return 0;
}

int ws_profile_add_run(struct ws_profile *p, uint32_t n_sms, double time_ms, double power_w)
{
    if (!n_sms || n_sms > 4096 || !(time_ms > 0) || !(time_ms < BIG) ||
        (!isnan(power_w) && !(power_w >= 0 && power_w < BIG)))
        return ws_raise(-EINVAL);
    const struct ws_profile_point *old = ws_profile_at(p, n_sms);
    struct ws_profile_point q = old ? *old : (struct ws_profile_point){.n_sms = n_sms};
    struct ws_stat time = {q.n_runs, q.time_mean_ms, q.time_m2};
    ws_stat_add(&time, time_ms);
    q.time_max_ms = q.n_runs ? fmax(q.time_max_ms, time_ms) : time_ms;
    q.time_min_ms = q.n_runs ? fmin(q.time_min_ms, time_ms) : time_ms;
    q.n_runs = time.n;
    /* The mean of equal times may leave them by a rounding. */
    q.time_mean_ms = fmin(fmax(time.mean, q.time_min_ms), q.time_max_ms);
    q.time_m2 = time.m2;
    if (!isnan(power_w))
        q.power_w += (power_w - q.power_w) / (double)++q.n_powers;
    int r = ws_profile_put_point(p, &q);
    return r ? ws_forward(r) : 0;
}

void ws_profile_add_error(struct ws_stat *error, double predicted, double measured)
{
    if (predicted > 0 && measured > 0 && isfinite(predicted) && isfinite(measured))
        ws_stat_add(error, (predicted - measured) / measured);
}

double ws_profile_correction(const struct ws_stat *error)
{
    if (!error->n)
        return 1;
    double factor = 1 / (1 + error->mean);
    return error->mean > -1 ? fmin(fmax(factor, 0.1), 10) : 10;
}

static int check_columns(const struct ws_column *c, const void *of, uint32_t has, const char *file,
                         uint32_t line, struct ws_diags *diags)
{
    int r = 0;
    for (; c->name; c++) {
        if (c->type == WS_COL_TEXT || (c->part && !(has & c->part)))
            continue;
        double v = column_value(c, of);
        if (v >= c->min && v <= c->max) /* false for NaN */
            continue;
        ws_diags_add(diags, file, line, 0, "%s is %g; it must be %g to %g", c->name, v, c->min,
                     c->max);
        r = -EINVAL;
    }
    return r;
}

static bool is_text(const char *s, size_t bytes)
{
    size_t n = strnlen(s, bytes);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 32 || s[i] == 127)
            return false;
    return n < bytes;
}

int ws_profile_check(const struct ws_profile *p, const char *file, uint32_t line,
                     struct ws_diags *diags)
{
    int r = 0;
    if (!is_text(p->key.hash, sizeof(p->key.hash)) || !is_text(p->key.gpu, sizeof(p->key.gpu)) ||
        !is_text(p->key.shape, sizeof(p->key.shape)) ||
        !key_ok(p->key.hash, p->key.gpu, p->key.shape)) {
        ws_diags_add(diags, file, line, 0,
                     "hash and gpu must be there, and hash, gpu and shape made of letters, digits "
                     "and '.', '_', '-' (hash also ':', shape also '/', ':', ',', '+')");
        r = -EINVAL;
    }
    if (!is_text(p->name, sizeof(p->name))) {
        ws_diags_add(diags, file, line, 0, "name has control characters or more than %zu bytes",
                     sizeof(p->name) - 1);
        r = -EINVAL;
    }
    if (check_columns(ws_profile_columns, p, p->has, file, line, diags))
        r = -EINVAL;
    for (uint32_t i = 0; i < p->n_points; i++) {
        const struct ws_profile_point *q = &p->points[i];
        if (check_columns(ws_point_columns, q, 0, file, line, diags))
            r = -EINVAL;
        else if (!(q->time_min_ms <= q->time_mean_ms && q->time_mean_ms <= q->time_max_ms)) {
            ws_diags_add(diags, file, line, 0,
                         "on %u SMs: time_min_ms ≤ time_mean_ms ≤ time_max_ms must hold; they are "
                         "%g, %g, %g",
                         q->n_sms, q->time_min_ms, q->time_mean_ms, q->time_max_ms);
            r = -EINVAL;
        }
        if (i && q->n_sms <= p->points[i - 1].n_sms) {
            ws_diags_add(diags, file, line, 0, "n_sms %u stands there twice", q->n_sms);
            r = -EINVAL;
        }
    }
    return r;
}
