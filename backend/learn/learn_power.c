// SPDX-License-Identifier: Apache-2.0
/* What power is known of kernels, and how surely.
 *
 * A *point* is one shape of a kernel on one number of SMs, and has the power of the whole GPU while
 * it runs. What is not measured there is taken from the nearest that is:
 *
 *   points of the same shape   above idle power, in the proportion that the catalog's model gives
 *   the kernel's other shapes  the catalog's model, times how far it was off for them
 *   kernels of its class       the same; a class is what most of a kernel's instructions do
 *   the catalog's model        of what the text executes (models/event_power.h), where the
 *                              catalog has one; else what it declares: Eq. 2 of sBEET-mg
 *
 * Logarithms of (measured / model) are taken to be normal at each level, so each level is the next
 * one's expectation, weighed by how many were measured and how far they are apart. The model is the
 * catalog's, as the daemon was told it: if the GPU is another one, only measurements show it.
 *
 * Measurements are windows: over a time T a GPU took the energy E, and points ran for times t_i of
 * it. A launch that had the GPU to itself, whose energy the device knows, is such a window; so is
 * what passes between two movements of a counter that moves now and then. With the idle power P_0,
 *
 *     E = P_0·(T - Σ t_i) + Σ P_i·t_i + noise,
 *
 * where points that ran side by side share the idle power: then T - Σ t_i is less than 0. Each
 * window moves the powers in it by what was not expected, in proportion to how unsure each was (a
 * Kalman filter whose covariances are left out). Before each window a power becomes a little less
 * sure, so that the filter follows a GPU that changes; if a window is far from all that was
 * expected, all kernels in it become unsure at once, or the idle power, if nothing ran. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/learn/learn_private.h"
#include "base/alloc.h"

/* Relative standard errors. */
#define DECLARED  0.40 /* of the catalog's power above idle, declared, */
#define FITTED    0.35 /* or fitted: most of this is that a text is not what runs */
#define IDLE      0.30 /* of its idle power */
#define KERNELS   0.25 /* between kernels of a class, */
#define SHAPES    0.15 /* shapes of a kernel, */
#define DOUBLING  0.10 /* and twice as many SMs */
#define LAUNCH    0.02 /* between launches of one shape */
#define COUNTER   0.03 /* of a counter's window */
#define SIDE      0.25 /* of the part of a window in which several ran */
#define DRIFT     0.01 /* for each window */
#define SURE      0.30 /* less sure powers say nothing of other kernels */
#define STORED    0.05 /* of a power that comes from the store */
#define SURPRISE  9.0  /* squared standard deviations */
#define COUNTER_J 0.001
#define MISSES    0.5 /* of the sectors that a cache is asked for, as long as nobody counted */
#define SLACK     0.8 /* of the two ends of a window together: sqrt(2/3) */

enum { WARP = 32, SECTORS = 4 };

static double square(double x)
{
    return x * x;
}

/* ---- classes ---- */

enum ws_learn_class ws_learn_class_of(const struct ws_learn_kernel *k)
{
    const struct ws_ptx_counts *c = &k->counts;
    if (!k->counted || !(c->total > 0))
        return WS_LEARN_CLASS_OTHER;
    if (c->mix[WS_MIX_TENSOR] > 0)
        return WS_LEARN_CLASS_TENSOR;
    if (c->mix[WS_MIX_FP64] > 0.1 * c->total)
        return WS_LEARN_CLASS_FP64;
    if (c->coal + c->uncoal > 0.1 * c->total)
        return WS_LEARN_CLASS_MEMORY;
    if (c->mix[WS_MIX_SFU] > 0.05 * c->total)
        return WS_LEARN_CLASS_SPECIAL;
    return c->mix[WS_MIX_FP32] > 0.2 * c->total ? WS_LEARN_CLASS_FP32 : WS_LEARN_CLASS_INT;
}

/* ---- what is expected ---- */

struct ws_learn_gpu *ws_learn_gpu_of(struct ws_learn *l, const struct ws_gpu_spec *spec)
{
    struct ws_learn_gpu *g;
    HASH_FIND_STR(l->gpus, spec->name, g);
    if (g || !(g = ws_alloc(sizeof(*g))))
        return g;
    memcpy(g->name, spec->name, sizeof(spec->name));
    g->spec = *spec;
    ws_fitted_of(spec, &g->fitted);
    const double *w = g->fitted.power.w;
    double idle_w =
        g->fitted.has_power
            ? w[WS_EVENT_POWER_STATIC] + w[WS_EVENT_POWER_MEMORY_CLOCK] + w[WS_EVENT_POWER_CLOCK]
            : spec->static_mw / 1e3;
    g->idle = (struct ws_learn_watts){idle_w, square(IDLE * idle_w)};
    HASH_ADD_STR(l->gpus, name, g);
    return g;
}

double ws_learn_own_j(const struct ws_learn_gpu *g, const struct ws_learn_key *key)
{
    const struct ws_ptx_counts *c = &key->kernel->counts;
    if (!g->fitted.has_power || !key->kernel->counted)
        return 0;
    const double *mix = c->mix, *e = g->fitted.power.w;
    double threads = (double)key->block[0] * key->block[1] * key->block[2], blocks = 1;
    for (int d = 0; d < 3; d++)
        blocks *= key->grid[d];
    double warps = ceil(threads / WARP), sectors = c->coal * SECTORS + c->uncoal * c->uncoal_per_mw,
           shared = fmax(mix[WS_MIX_LDST] - c->coal - c->uncoal, 0);
    double of_thread = (mix[WS_MIX_INT] + mix[WS_MIX_MOVE]) * e[WS_EVENT_POWER_INT] +
                       (mix[WS_MIX_FP32] + mix[WS_MIX_FP16]) * e[WS_EVENT_POWER_FP32] +
                       mix[WS_MIX_FP64] * e[WS_EVENT_POWER_FP64] +
                       mix[WS_MIX_SFU] * e[WS_EVENT_POWER_SFU],
           of_warp = c->total * e[WS_EVENT_POWER_ISSUE] + shared * e[WS_EVENT_POWER_SHARED] +
                     sectors * (e[WS_EVENT_POWER_L1] + MISSES * e[WS_EVENT_POWER_L2] +
                                MISSES * MISSES * e[WS_EVENT_POWER_DRAM]);
    return blocks * (threads * of_thread + warps * of_warp) * 1e-9;
}

/* Power above idle by the catalog's model: the fitted one (models/event_power.h), or Eq. 2 of
 * sBEET-mg. */
static double model_w(const struct ws_learn_gpu *g, const struct ws_learn_load *load, uint32_t n_sm)
{
    const struct ws_gpu_spec *gpu = &g->spec;
    double active = (double)WS_MIN((uint64_t)n_sm, load->n_blocks);
    if (load->own_j > 0 && load->ms > 0) {
        const double *w = g->fitted.power.w;
        return (w[WS_EVENT_POWER_ACTIVE] + w[WS_EVENT_POWER_BUSY]) * active / gpu->n_sms +
               load->own_j / (load->ms / 1e3);
    }
    return (active * gpu->dynamic_mw_per_sm + (gpu->n_sms - active) * gpu->idle_mw_per_sm) / 1e3;
}

/* Adds @n observations with mean @mean, each off by @spread, to what is expected of a logarithm;
 * and the spread of the one to come. */
static struct ws_learn_watts observed(struct ws_learn_watts before, double n, double mean,
                                      double spread)
{
    if (!(n > 0))
        return before;
    double old = 1 / before.var, more = n / square(spread);
    return (struct ws_learn_watts){(before.w * old + mean * more) / (old + more),
                                   1 / (old + more) + square(spread)};
}

/* Power above idle from the model. */
static struct ws_learn_watts modelled(const struct ws_learn_gpu *g, const struct ws_learn_known *k,
                                      enum ws_learn_class class, double expected_w)
{
    struct ws_learn_watts log_off = {0, square(g->fitted.has_power ? FITTED : DECLARED)};
    const struct ws_learn_rating *c = &g->classes[class];
    log_off = observed(log_off, c->n, c->n ? c->sum / c->n : 0, KERNELS);
    if (k)
        log_off =
            observed(log_off, k->rating.n, k->rating.n ? k->rating.sum / k->rating.n : 0, SHAPES);
    double w = expected_w * exp(log_off.w);
    return (struct ws_learn_watts){w, square(w) * log_off.var};
}

static struct ws_learn_watts sum(struct ws_learn_watts a, struct ws_learn_watts b)
{
    return (struct ws_learn_watts){a.w + b.w, a.var + b.var};
}

/* Between two points that were measured, by the number of SMs; or from one of them, as the model
 * goes. */
static struct ws_learn_watts from_points(const struct ws_learn_gpu *g,
                                         const struct ws_learn_point *low,
                                         const struct ws_learn_point *high,
                                         const struct ws_learn_load *load, uint32_t n_sm)
{
    if (low && high) {
        double part = (double)(n_sm - low->n_sms) / (high->n_sms - low->n_sms);
        return (struct ws_learn_watts){low->watts.w + (high->watts.w - low->watts.w) * part,
                                       fmax(low->watts.var, high->watts.var)};
    }
    const struct ws_learn_point *q = low ? low : high;
    struct ws_learn_load from = {load->n_blocks, load->ms > 0 ? load->own_j : 0, q->ms};
    double from_w = model_w(g, &from, q->n_sms),
           ratio = from_w > 0 ? model_w(g, load, n_sm) / from_w : 1,
           w = fmax(q->watts.w - g->idle.w, 0) * ratio, steps = fabs(log2((double)n_sm / q->n_sms));
    struct ws_learn_watts above = {w, q->watts.var * square(ratio) + square(w * DOUBLING * steps)};
    return (struct ws_learn_watts){g->idle.w + above.w, above.var};
}

struct ws_learn_watts ws_learn_watts_of(const struct ws_learn_gpu *g,
                                        const struct ws_learn_known *k,
                                        const struct ws_learn_shape *s, enum ws_learn_class class,
                                        const struct ws_learn_load *load, uint32_t n_sm)
{
    const struct ws_learn_point *low = NULL, *high = NULL;
    for (uint32_t i = 0; s && i < s->n_now; i++) {
        const struct ws_learn_point *q = &s->now[i];
        if (!(q->watts.var > 0))
            continue;
        if (q->n_sms == n_sm)
            return q->watts;
        if (q->n_sms < n_sm)
            low = q;
        else if (!high)
            high = q;
    }
    struct ws_learn_watts r = low || high
                                  ? from_points(g, low, high, load, n_sm)
                                  : sum(g->idle, modelled(g, k, class, model_w(g, load, n_sm)));
    r.w = fmax(r.w, g->idle.w);
    return r;
}

/* ---- points ---- */

struct ws_learn_point *ws_learn_point_at(const struct ws_learn_shape *s, uint32_t n_sms)
{
    for (uint32_t i = 0; i < s->n_now; i++)
        if (s->now[i].n_sms == n_sms)
            return &s->now[i];
    return NULL;
}

struct ws_learn_point *ws_learn_point_get(struct ws_learn_shape *s, uint32_t n_sms)
{
    struct ws_learn_point *p = ws_learn_point_at(s, n_sms);
    void *v = s->now;
    if (p)
        return p;
    int r = ws_grow(&v, &s->cap_now, s->n_now + 1, sizeof(*s->now));
    s->now = v;
    if (r)
        return NULL;
    uint32_t i = s->n_now++;
    for (; i && s->now[i - 1].n_sms > n_sms; i--)
        s->now[i] = s->now[i - 1];
    s->now[i] = (struct ws_learn_point){.n_sms = n_sms};
    const struct ws_profile_point *old = ws_profile_at(&s->profile, n_sms);
    if (old) {
        s->now[i].ms = old->time_mean_ms;
        s->now[i].n_times = (uint32_t)WS_MIN(old->n_runs, (uint64_t)WS_LEARN_RECENT);
        if (old->n_powers)
            s->now[i].watts = (struct ws_learn_watts){old->power_w, square(STORED * old->power_w)};
    }
    return &s->now[i];
}

/* What a point says of how far the model is off for its kernel, and the kernel of its class. */
static void rate(struct ws_learn_gpu *g, struct ws_learn_shape *s, struct ws_learn_point *p)
{
    struct ws_learn_known *k = s->known;
    struct ws_learn_rating *class = &g->classes[k->class];
    struct ws_learn_load load = {ws_learn_blocks(s), s->own_j, p->ms};
    double above = p->watts.w - g->idle.w, expected = model_w(g, &load, p->n_sms);
    if (!(above > 0) || !(expected > 0) || p->watts.var > square(SURE * above))
        return;
    double off = log(above / expected), before = k->rating.n ? k->rating.sum / k->rating.n : 0;
    class->n += !k->rating.n;
    k->rating.n += !p->rated;
    k->rating.sum += off - p->off;
    p->rated = true;
    p->off = off;
    class->sum += k->rating.sum / k->rating.n - before;
}

/* ---- windows ---- */

/* It is written to the store with the next launch of the shape. */
static void keep(struct ws_learn_shape *s, const struct ws_learn_point *p)
{
    const struct ws_profile_point *old = ws_profile_at(&s->profile, p->n_sms);
    if (!old) /* its time has never been measured: there is no row for it */
        return;
    struct ws_profile_point q = *old;
    q.power_w = p->watts.w;
    q.n_powers++;
    int r = ws_profile_put_point(&s->profile, &q);
    (void)r; /* it replaces one that is there, which takes no memory */
}

static struct ws_learn_watts unmeasured(const struct ws_learn_gpu *g,
                                        const struct ws_learn_part *part,
                                        const struct ws_learn_point *p)
{
    const struct ws_learn_shape *s = part->shape;
    struct ws_learn_load load = {ws_learn_blocks(s), s->own_j, p->ms};
    return ws_learn_watts_of(g, s->known, s, s->known->class, &load, part->n_sms);
}

void ws_learn_window_take(struct ws_learn_gpu *g, struct ws_learn_window *w)
{
    double noise = w->is_launch ? LAUNCH : COUNTER, busy_s = 0, expected, idle_var = 0, var = 0;
    struct ws_learn_point *p[WS_LEARN_PARTS] = {NULL};
    for (uint32_t i = 0; i < w->n_parts; i++) {
        struct ws_learn_part *part = &w->parts[i];
        p[i] = ws_learn_point_at(part->shape, part->n_sms);
        busy_s += part->s;
        if (p[i]->watts.var > 0)
            p[i]->watts.var += square(DRIFT * p[i]->watts.w);
        else if (w->is_launch) /* the first that was measured by itself: nothing was known */
            p[i]->watts = (struct ws_learn_watts){w->j / w->s, square(1e3 * w->j / w->s)};
        else
            p[i]->watts = unmeasured(g, part, p[i]);
    }
    double idle_s = w->s - busy_s, side_s = fmax(-idle_s, 0);
    bool shows_idle = idle_s > 0.05 * w->s;
    expected = g->idle.w * idle_s;
    if (shows_idle) {
        g->idle.var += square(DRIFT * g->idle.w);
        idle_var = g->idle.var * square(idle_s);
    }
    for (uint32_t i = 0; i < w->n_parts; i++) {
        expected += p[i]->watts.w * w->parts[i].s;
        var += p[i]->watts.var * square(w->parts[i].s);
    }
    double off = w->j - expected,
           r = square(noise * w->j) + square(SLACK * w->slack_s * w->j / w->s) +
               square(SIDE * side_s * w->j / w->s) + (w->is_launch ? 0 : square(COUNTER_J)),
           surprise = square(off) / (idle_var + var + r),
           wider = surprise > SURPRISE ? surprise : 1, idle_wider = w->n_parts ? 1 : wider;
    double all = idle_var * idle_wider + var * wider + r;
    if (shows_idle) {
        double gain = g->idle.var * idle_wider * idle_s / all;
        g->idle.w = fmax(g->idle.w + gain * off, 0);
        g->idle.var = g->idle.var * idle_wider * (1 - gain * idle_s);
    }
    for (uint32_t i = 0; i < w->n_parts; i++) {
        double s = w->parts[i].s, v = p[i]->watts.var * wider, gain = v * s / all;
        p[i]->watts = (struct ws_learn_watts){fmax(p[i]->watts.w + gain * off, g->idle.w),
                                              fmax(v * (1 - gain * s), 1e-12)};
        rate(g, w->parts[i].shape, p[i]);
        keep(w->parts[i].shape, p[i]);
    }
}
