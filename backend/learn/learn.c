// SPDX-License-Identifier: Apache-2.0
/* The table of what was learned, and predictions from it.
 *
 * Two levels: a *known* kernel (its code on a kind of GPU) has what holds for all its launches:
 * its instruction mix, and how far the model is off for it. A *shape* of it (grid and block) has
 * times and powers for each number of SMs it ran on: a profile as the store has it. A prediction
 * rests on the best there is:
 *
 *   measured   the mean of the runs on as many SMs
 *   scaled     runs on other numbers of SMs: through the two nearest by time = a + b / SMs;
 *              beyond the outermost, as the model says time changes, but never better than in
 *              proportion and never worse with more SMs
 *   kernel     the model (models/mwp_cwp.h) with the mix that other shapes executed, times the
 *              kernel's exp(mean log(measured / modelled))
 *   cold       the model with the mix counted in the PTX, times the same factor over all
 *              kernels, once some are known
 *
 * Energy is power times time (learn_power.c). Neither is ever read off the device: the catalog's
 * numbers are what is expected before anything was measured.
 *
 * Invariants: a prediction is made, and its error noted, before the run that tests it is learned
 * from. Everything is bounded: shapes by kernel and in all; what comes beyond is predicted from
 * its kernel and not kept. One lock, held for moments, so any thread may ask. */
#include "backend/learn/learn_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/soft/timeline/occupancy.h"
#include "models/inputs.h"

enum { FEW_KERNELS = 4, WARP = 32 };
#define NS_PER_MS 1e6

static const char *basis_name(enum ws_learn_basis b)
{
    static const char *const names[_WS_LEARN_BASIS_N] = {"cold", "kernel", "scaled", "measured"};
    return (unsigned)b < _WS_LEARN_BASIS_N ? names[b] : "?";
}

/* ---- the table; under the lock ---- */

static void known_key(struct ws_learn_known_key *ret, const char *hash, const char *gpu)
{
    memset(ret, 0, sizeof(*ret));
    snprintf(ret->hash, sizeof(ret->hash), "%s", hash);
    snprintf(ret->gpu, sizeof(ret->gpu), "%s", gpu);
}

static struct ws_learn_known *known_find(const struct ws_learn *l, const char *hash,
                                         const char *gpu)
{
    struct ws_learn_known_key key;
    struct ws_learn_known *k;
    known_key(&key, hash, gpu);
    HASH_FIND(hh, l->known, &key, sizeof(key), k);
    return k;
}

static void shape_key(struct ws_learn_shape_key *ret, const struct ws_learn_known *k,
                      const uint32_t grid[3], const uint32_t block[3])
{
    memset(ret, 0, sizeof(*ret));
    ret->known = k;
    memcpy(ret->grid, grid, sizeof(ret->grid));
    memcpy(ret->block, block, sizeof(ret->block));
}

static struct ws_learn_shape *shape_find(const struct ws_learn *l, const struct ws_learn_known *k,
                                         const uint32_t grid[3], const uint32_t block[3])
{
    struct ws_learn_shape_key key;
    struct ws_learn_shape *s = NULL;
    if (!k)
        return NULL;
    shape_key(&key, k, grid, block);
    HASH_FIND(hh, l->shapes, &key, sizeof(key), s);
    return s;
}

static struct ws_learn_known *known_get(struct ws_learn *l, const char *hash, const char *gpu)
{
    struct ws_learn_known *k = known_find(l, hash, gpu);
    if (k || !(k = ws_alloc(sizeof(*k))))
        return k;
    known_key(&k->key, hash, gpu);
    HASH_ADD(hh, l->known, key, sizeof(k->key), k);
    return k;
}

/* NULL: no memory. */
static struct ws_learn_user *user_get(struct ws_learn *l, uint32_t uid)
{
    struct ws_learn_user *u;
    HASH_FIND(hh, l->users, &uid, sizeof(uid), u);
    if (u || !(u = ws_alloc(sizeof(*u))))
        return u;
    u->uid = uid;
    HASH_ADD(hh, l->users, uid, sizeof(u->uid), u);
    return u;
}

/* The share of a user, by the rule of backend/accounts. Shapes stay, so whoever comes first must
 * not have them all. */
static bool may_add(const struct ws_learn *l, const struct ws_learn_user *u)
{
    uint32_t others = l->n_shapes - u->n_shapes, n_others = HASH_COUNT(l->users) - 1;
    return l->n_shapes < WS_LEARN_SHAPES_MAX &&
           u->n_shapes < (WS_LEARN_SHAPES_MAX - others) / (n_others + 2);
}

/* @u: who has run it; NULL: it was learned earlier. NULL: no room for another. */
static struct ws_learn_shape *shape_get(struct ws_learn *l, struct ws_learn_user *u,
                                        const char *hash, const char *gpu, const uint32_t grid[3],
                                        const uint32_t block[3])
{
    struct ws_learn_known *k = known_find(l, hash, gpu);
    struct ws_learn_shape *s = shape_find(l, k, grid, block);
    if (s)
        return s;
    if (l->n_shapes >= WS_LEARN_SHAPES_MAX || (u && !may_add(l, u)) ||
        (k && k->n_shapes >= WS_LEARN_SHAPES_OF_KERNEL)) {
        if (!l->n_not_kept++)
            ws_log(WS_INFO,
                   "learn: more shapes of kernels than are kept (%d, of which each user has a "
                   "share, and %d of one kernel); further ones are predicted from their kernel",
                   WS_LEARN_SHAPES_MAX, WS_LEARN_SHAPES_OF_KERNEL);
        return NULL;
    }
    if (!k && !(k = known_get(l, hash, gpu)))
        return NULL;
    if (!(s = ws_alloc(sizeof(*s))))
        return NULL;
    char text[WS_PROFILE_SHAPE_BYTES * 2];
    snprintf(text, sizeof(text), "%ux%ux%u/%ux%ux%u", grid[0], grid[1], grid[2], block[0], block[1],
             block[2]);
    if (ws_profile_key_set(&s->profile.key, hash, gpu, text)) {
        free(s);
        return NULL;
    }
    shape_key(&s->key, k, grid, block);
    s->known = k;
    s->cold_error = NAN;
    ws_list_init(&s->node);
    ws_list_init(&s->recent);
    HASH_ADD(hh, l->shapes, key, sizeof(s->key), s);
    l->n_shapes++;
    k->n_shapes++;
    if (u)
        u->n_shapes++;
    return s;
}

/* "48x1x1/256x1x1". Return: false: none of ours. */
static bool shape_parse(const char *text, uint32_t g[3], uint32_t b[3])
{
    int n = 0;
    return sscanf(text, "%ux%ux%u/%ux%ux%u%n", &g[0], &g[1], &g[2], &b[0], &b[1], &b[2], &n) == 6 &&
           !text[n];
}

/* ---- the model ---- */

/* Each of @add's counts into the mean of @n before. */
static void mix_add(struct ws_mwp_kernel *mean, uint64_t *n, const struct ws_mwp_kernel *add)
{
    double part = 1.0 / (double)++*n;
    mean->threads_per_block = add->threads_per_block;
    mean->comp_insts += (add->comp_insts - mean->comp_insts) * part;
    mean->coal_insts += (add->coal_insts - mean->coal_insts) * part;
    mean->uncoal_insts += (add->uncoal_insts - mean->uncoal_insts) * part;
    mean->uncoal_per_mw += (add->uncoal_per_mw - mean->uncoal_per_mw) * part;
    mean->synch_insts += (add->synch_insts - mean->synch_insts) * part;
}

static uint64_t product(const uint32_t v[3])
{
    return (uint64_t)v[0] * v[1] * v[2];
}

static uint32_t occupancy(const struct ws_learn_key *key, const struct ws_gpu_spec *gpu)
{
    struct ws_fit fit = {0};
    uint64_t shared = (uint64_t)key->kernel->static_shared_bytes + key->shared_bytes;
    ws_occupancy_fit(gpu, (uint32_t)product(key->block), key->kernel->n_regs,
                     (uint32_t)WS_MIN(shared, UINT32_MAX), &fit);
    return WS_MAX(fit.blocks_per_sm, 1);
}

/* A launch for the model: with the mix of runs, or of the text. Return: false: nothing is known. */
static bool load_of(const struct ws_learn_known *k, const struct ws_learn_key *key,
                    const struct ws_gpu_spec *gpu, struct ws_mwp_kernel *ret)
{
    uint32_t threads = (uint32_t)product(key->block);
    uint64_t n_blocks = product(key->grid);
    if (k && k->n_mixes) {
        *ret = k->mix;
        ret->threads_per_block = threads;
        ret->n_blocks = n_blocks;
        ret->active_blocks_per_sm = occupancy(key, gpu);
        return true;
    }
    return key->kernel->counted && !ws_mwp_kernel_from_counts(ret, &key->kernel->counts, threads,
                                                              n_blocks, occupancy(key, gpu));
}

/* In ms; NAN: the model can't say. */
static double model_ms(const struct ws_mwp_kernel *load, const struct ws_gpu_spec *gpu,
                       uint32_t n_sm)
{
    struct ws_mwp_gpu g;
    struct ws_mwp_result r;
    if (ws_mwp_gpu_derive(&g, gpu->name, n_sm, gpu->core_mhz, gpu->memory_bytes_per_s,
                          gpu->memory_latency_ns, gpu->fp32_lanes_per_sm, gpu->ldst_lanes_per_sm) ||
        ws_mwp_predict(&r, &g, load, WS_MWP_RECOMMENDED, NULL) || !(r.time_us > 0) ||
        !(r.time_us < 1e12))
        return NAN;
    return r.time_us / 1e3;
}

/* ---- predictions ---- */

/* The mean of the last runs. */
static double recent_ms(const struct ws_learn_shape *s, const struct ws_profile_point *p)
{
    const struct ws_learn_point *now = ws_learn_point_at(s, p->n_sms);
    return now && now->n_times ? now->ms : p->time_mean_ms;
}

/* Time on @n SMs by a line in 1 / SMs through two points. */
static double line_ms(const struct ws_learn_shape *s, const struct ws_profile_point *p,
                      const struct ws_profile_point *q, uint32_t n)
{
    double x0 = 1.0 / p->n_sms, x1 = 1.0 / q->n_sms, t0 = recent_ms(s, p), t1 = recent_ms(s, q);
    return t1 + (t0 - t1) * (1.0 / n - x1) / (x0 - x1);
}

/* How time goes from @from to @to SMs as far as whole blocks go: by the most that an SM has to
 * do. */
static double blocks_ratio(uint64_t n_blocks, uint32_t from, uint32_t to)
{
    uint64_t most_to = (n_blocks + to - 1) / to, most_from = (n_blocks + from - 1) / from;
    return (double)most_to / (double)most_from;
}

/* @s has points, none for @n_sm. @load: NULL: no model. */
static double scaled_ms(const struct ws_learn_shape *s, const struct ws_mwp_kernel *load,
                        const struct ws_gpu_spec *gpu, uint32_t n_sm, uint64_t *ret_n)
{
    const struct ws_profile_point *v = s->profile.points;
    uint32_t n = s->profile.n_points, i = 0; /* the first with more SMs */
    while (i < n && v[i].n_sms < n_sm)
        i++;
    if (i > 0 && i < n) {
        *ret_n = v[i - 1].n_runs + v[i].n_runs;
        return line_ms(s, &v[i - 1], &v[i], n_sm);
    }
    const struct ws_profile_point *from = i ? &v[n - 1] : &v[0];
    double t = recent_ms(s, from), all = t * from->n_sms / n_sm, guess;
    *ret_n = from->n_runs;
    if (n > 1) {
        guess = i ? line_ms(s, &v[n - 2], from, n_sm) : line_ms(s, from, &v[1], n_sm);
    } else {
        guess = t * blocks_ratio(product(s->key.grid), from->n_sms, n_sm);
        double ratio = load ? model_ms(load, gpu, n_sm) / model_ms(load, gpu, from->n_sms) : NAN;
        if (!isnan(ratio))
            guess = sqrt(guess * t * ratio);
    }
    return fmin(fmax(guess, fmin(t, all)), fmax(t, all));
}

static double error_of(const struct ws_learn *l, const struct ws_learn_known *k,
                       enum ws_learn_basis b)
{
    const struct ws_stat *s = k && k->squares[b].n ? &k->squares[b] : &l->squares[b];
    return s->n ? sqrt(s->mean) : 1;
}

struct guess {
    double ms, raw_ms; /* raw_ms: what the model alone says; NAN: nothing */
    struct ws_learn_watts watts;
    uint64_t n;
    enum ws_learn_basis basis;
};

/* @ms: of the launch, as it is predicted. */
static struct ws_learn_watts watts(struct ws_learn *l, const struct ws_learn_known *k,
                                   const struct ws_learn_shape *s, const struct ws_learn_key *key,
                                   const struct ws_gpu_spec *gpu, uint32_t n_sm, double ms)
{
    const struct ws_learn_gpu *g = k && k->gpu ? k->gpu : ws_learn_gpu_of(l, gpu);
    enum ws_learn_class class = k && k->gpu ? k->class : ws_learn_class_of(key->kernel);
    if (!g) /* no memory for it */
        return (struct ws_learn_watts){gpu->static_mw / 1e3, 0};
    struct ws_learn_load load = {product(key->grid), s ? s->own_j : ws_learn_own_j(g, key), ms};
    return ws_learn_watts_of(g, k, s, class, &load, n_sm);
}

static bool guess(struct ws_learn *l, const struct ws_learn_known *k,
                  const struct ws_learn_shape *s, const struct ws_learn_key *key,
                  const struct ws_gpu_spec *gpu, uint32_t n_sm, bool want_raw, struct guess *ret)
{
    struct ws_mwp_kernel load;
    const struct ws_profile_point *q = s ? ws_profile_at(&s->profile, n_sm) : NULL;
    bool modelled = (!q || want_raw) && load_of(k, key, gpu, &load);
    *ret = (struct guess){.raw_ms = NAN};
    if (modelled && (!s || !s->profile.n_points || want_raw))
        ret->raw_ms = model_ms(&load, gpu, n_sm);
    if (q) {
        ret->basis = WS_LEARN_MEASURED;
        ret->ms = recent_ms(s, q);
        ret->n = q->n_runs;
    } else if (s && s->profile.n_points) {
        ret->basis = WS_LEARN_SCALED;
        ret->ms = scaled_ms(s, modelled ? &load : NULL, gpu, n_sm, &ret->n);
    } else if (k && k->off.n) {
        ret->basis = WS_LEARN_KERNEL;
        ret->ms = ret->raw_ms * exp(k->off.mean);
        ret->n = k->off.n;
    } else {
        ret->basis = WS_LEARN_COLD;
        ret->ms = ret->raw_ms * (l->off.n >= FEW_KERNELS ? exp(l->off.mean) : 1);
    }
    ret->watts = watts(l, k, s, key, gpu, n_sm, ret->ms);
    return ret->ms > 0 && ret->ms < 1e12;
}

static int check(const struct ws_learn_key *key, const struct ws_gpu_spec *gpu, uint32_t *n_sm)
{
    if (!key->kernel)
        return -ENOENT;
    uint64_t threads = product(key->block);
    if (!product(key->grid) || !threads || threads > 1024 || *n_sm > gpu->n_sms)
        return ws_raise(-EINVAL);
    *n_sm = *n_sm ? *n_sm : gpu->n_sms;
    return 0;
}

int ws_learn_predict(struct ws_learn *l, const struct ws_learn_key *key,
                     const struct ws_gpu_spec *gpu, int n_sm, struct ws_prediction *ret)
{
    uint32_t n = n_sm < 0 ? UINT32_MAX : (uint32_t)n_sm;
    int r = check(key, gpu, &n);
    if (r)
        return r;
    struct guess g;
    pthread_mutex_lock(&l->lock);
    const struct ws_learn_known *k = known_find(l, key->kernel->hash, gpu->name);
    const struct ws_learn_shape *s = shape_find(l, k, key->grid, key->block);
    r = guess(l, k, s, key, gpu, n, false, &g) ? 0 : -ENOENT;
    double error = error_of(l, k, g.basis);
    pthread_mutex_unlock(&l->lock);
    if (r)
        return r;
    *ret = (struct ws_prediction){.time_ns = (uint64_t)fmax(g.ms * NS_PER_MS + 0.5, 1),
                                  .energy_uj = (uint64_t)(g.ms * g.watts.w * 1e3 + 0.5),
                                  .n = g.n,
                                  .basis = g.basis,
                                  .blocks_per_sm = occupancy(key, gpu),
                                  .error = error,
                                  .energy_error =
                                      hypot(error, sqrt(g.watts.var) / fmax(g.watts.w, 1e-9))};
    return 0;
}

void ws_learn_gpu_power(struct ws_learn *l, const struct ws_gpu_spec *gpu,
                        struct ws_learn_gpu_power *ret)
{
    struct ws_learn_watts idle = {gpu->static_mw / 1e3, 0};
    double off = 0, n = 0;
    pthread_mutex_lock(&l->lock);
    const struct ws_learn_gpu *g = ws_learn_gpu_of(l, gpu);
    for (int i = 0; g && i < _WS_LEARN_CLASS_N; i++) {
        off += g->classes[i].sum;
        n += g->classes[i].n;
    }
    idle = g ? g->idle : idle;
    pthread_mutex_unlock(&l->lock);
    *ret = (struct ws_learn_gpu_power){.idle_w = idle.w,
                                       .idle_error = sqrt(idle.var) / fmax(idle.w, 1e-9),
                                       .idle_w_per_sm =
                                           gpu->idle_mw_per_sm / 1e3 * exp(n > 0 ? off / n : 0)};
}

/* ---- learning ---- */

enum beside { ALONE, ON_OTHER_SMS, ON_ITS_SMS };

/* Whether launches that ended before ran beside this one; notes it for those to come. */
static enum beside note_span(struct ws_learn *l, const struct ws_learn_run *run, uint32_t n_sms)
{
    struct ws_learn_span *v = l->spans[run->gpu % WS_LEARN_GPUS];
    bool all = !run->sms.n || run->sms.n >= n_sms;
    enum beside beside = ALONE;
    for (int i = 0; i < WS_LEARN_SPANS; i++) {
        if (v[i].end_ns <= run->start_ns || v[i].start_ns >= run->end_ns)
            continue;
        bool meet = all || v[i].all || ws_sm_set_meet(&v[i].sms, &run->sms);
        beside = meet ? ON_ITS_SMS : WS_MAX(beside, ON_OTHER_SMS);
        if (meet)
            break;
    }
    uint32_t *next = &l->next_span[run->gpu % WS_LEARN_GPUS];
    v[*next] = (struct ws_learn_span){run->start_ns, run->end_ns, run->sms, all};
    *next = (*next + 1) % WS_LEARN_SPANS;
    return beside;
}

static void note_error(struct ws_learn *l, struct ws_learn_known *k, struct ws_learn_shape *s,
                       const struct guess *g, double ms, double w)
{
    double e = (g->ms - ms) / ms;
    ws_stat_add(&l->squares[g->basis], e * e);
    if (k)
        ws_stat_add(&k->squares[g->basis], e * e);
    if (!s)
        return;
    if (g->basis == WS_LEARN_COLD)
        s->cold_error = e;
    else
        ws_profile_add_error(&s->profile.time_error, g->ms, ms);
    if (!isnan(w) && g->basis != WS_LEARN_COLD)
        ws_profile_add_error(&s->profile.power_error, g->watts.w, w);
}

/* The mean of the last runs, and the power, if nothing else ran. */
static void learn_point(struct ws_learn_shape *s, uint32_t n_sm, double ms, double w)
{
    struct ws_learn_point *p = ws_learn_point_at(s, n_sm);
    if (!p || !s->known->gpu)
        return;
    p->n_times = WS_MIN(p->n_times + 1, (uint32_t)WS_LEARN_RECENT);
    p->ms += (ms - p->ms) / p->n_times;
    if (isnan(w))
        return;
    struct ws_learn_window alone = {.s = ms / 1e3,
                                    .j = w * ms / 1e3,
                                    .is_launch = true,
                                    .n_parts = 1,
                                    .parts = {{.shape = s, .n_sms = n_sm, .s = ms / 1e3}}};
    ws_learn_window_take(s->known->gpu, &alone);
}

/* @s: NULL: there is no room for it. */
static void learn(struct ws_learn *l, struct ws_learn_shape *s, const struct ws_learn_key *key,
                  const struct ws_gpu_spec *gpu, const struct ws_learn_run *run, uint32_t n_sm,
                  bool alone)
{
    double ms = (double)(run->end_ns - run->start_ns) / NS_PER_MS,
           w = alone && run->alone_uj ? (double)run->alone_uj / ms / 1e3 : NAN;
    const struct ws_learn_kernel *code = key->kernel;
    const struct ws_run_counts executed = {run->counts.n_warp_insns, run->counts.n_global_accesses,
                                           run->counts.n_sectors, run->counts.n_barriers};
    struct ws_learn_known *k = s ? s->known : known_find(l, code->hash, gpu->name);
    struct guess g;
    if (guess(l, k, s, key, gpu, n_sm, true, &g))
        note_error(l, k, s, &g, ms, w);
    if (WS_UNLIKELY(l->log))
        ws_log(WS_DEBUG,
               "learn: kernel=%s blocks=%" PRIu64 " sms=%u basis=%s predicted_ms=%g ms=%g "
               "predicted_w=%g w=%g model_ms=%g",
               code->name, product(key->grid), n_sm, basis_name(g.basis), g.ms, ms, g.watts.w, w,
               g.raw_ms);
    if (!k)
        return;
    struct ws_mwp_kernel mix;
    if (run->counts.n_warp_insns &&
        !ws_mwp_kernel_from_run(&mix, &executed, (uint32_t)product(key->block), product(key->grid),
                                occupancy(key, gpu))) {
        bool first = !k->n_mixes;
        mix_add(&k->mix, &k->n_mixes, &mix);
        if (s) {
            s->profile.kernel = mix;
            s->profile.has |= WS_PROFILE_MODEL;
        }
        if (first) /* how far the model is off is asked of the mix that will be used from now on */
            (void)guess(l, k, NULL, key, gpu, n_sm, true, &g);
    }
    if (!isnan(g.raw_ms)) {
        double off = log(ms / g.raw_ms);
        if (!k->off.n)
            ws_stat_add(&l->off, off);
        ws_stat_add(&k->off, off);
    }
    if (!s || ws_profile_add_run(&s->profile, n_sm, ms, NAN))
        return;
    learn_point(s, n_sm, ms, w);
    memcpy(s->profile.name, code->name, sizeof(s->profile.name));
    ws_list_remove(&s->recent);
    ws_list_append(&l->recent, &s->recent);
    if (!s->dirty && l->writer) {
        s->dirty = true;
        ws_list_append(&l->dirty, &s->node);
        ws_learn_writer_wake(l);
    }
}

void ws_learn_ran(struct ws_learn *l, const struct ws_learn_key *key, const struct ws_gpu_spec *gpu,
                  const struct ws_learn_run *run)
{
    uint32_t n_sm = run->sms.n;
    if (run->end_ns <= run->start_ns)
        return;
    bool known = !check(key, gpu, &n_sm) && !run->other;
    struct ws_learn_shape *s = NULL;
    pthread_mutex_lock(&l->lock);
    struct ws_learn_user *u = known ? user_get(l, run->uid) : NULL;
    if (u) {
        s = shape_get(l, u, key->kernel->hash, gpu->name, key->grid, key->block);
        if (s && !s->known->gpu) {
            s->known->class = ws_learn_class_of(key->kernel);
            s->known->gpu = ws_learn_gpu_of(l, gpu);
        }
        if (s && s->known->gpu && !(s->own_j > 0))
            s->own_j = ws_learn_own_j(s->known->gpu, key);
        if (s && !ws_learn_point_get(s, n_sm))
            s = NULL;
    }
    ws_learn_meter_ran(l, run, s, n_sm);
    enum beside beside = note_span(l, run, gpu->n_sms);
    if (beside != ON_ITS_SMS && known)
        learn(l, s, key, gpu, run, n_sm, beside == ALONE);
    pthread_mutex_unlock(&l->lock);
}

/* ---- the store's side ---- */

void ws_learn_adopt(struct ws_learn *l, struct ws_profile *p)
{
    uint32_t grid[3], block[3];
    if (strlen(p->key.hash) != WS_PROFILE_HASH_BYTES - 1 || !p->n_points ||
        !shape_parse(p->key.shape, grid, block))
        return;
    pthread_mutex_lock(&l->lock);
    struct ws_learn_shape *s = shape_get(l, NULL, p->key.hash, p->key.gpu, grid, block);
    if (s && !s->profile.n_points) {
        struct ws_learn_known *k = s->known;
        s->profile = *p;
        p->points = NULL;
        p->n_points = 0;
        p->cap_points = 0;
        if (s->profile.has & WS_PROFILE_MODEL)
            mix_add(&k->mix, &k->n_mixes, &s->profile.kernel);
        const struct ws_stat *e = &s->profile.time_error;
        if (e->n && !k->squares[WS_LEARN_MEASURED].n)
            k->squares[WS_LEARN_MEASURED] =
                (struct ws_stat){1, e->mean * e->mean + e->m2 / (double)e->n, 0};
        for (uint32_t i = 0; i < s->profile.n_points; i++)
            (void)ws_learn_point_get(s, s->profile.points[i].n_sms); /* without it: from the rest */
    }
    pthread_mutex_unlock(&l->lock);
}

static int copy_profile(struct ws_profile *to, const struct ws_profile *from)
{
    *to = *from;
    to->points = ws_alloc_array(from->n_points ? from->n_points : 1, sizeof(*to->points));
    to->cap_points = from->n_points;
    if (!to->points)
        return -ENOMEM;
    memcpy(to->points, from->points, from->n_points * sizeof(*to->points));
    return 0;
}

uint32_t ws_learn_take_dirty(struct ws_learn *l, struct ws_profile *ret, uint32_t max)
{
    uint32_t n = 0;
    pthread_mutex_lock(&l->lock);
    while (n < max && !ws_list_empty(&l->dirty)) {
        struct ws_learn_shape *s = ws_list_entry(l->dirty.next, struct ws_learn_shape, node);
        if (copy_profile(&ret[n], &s->profile))
            break;
        n++;
        ws_list_remove(&s->node);
        s->dirty = false;
    }
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* ---- to be shown ---- */

static struct ws_learn_shown show(const struct ws_learn_shape *s)
{
    const struct ws_profile *p = &s->profile;
    const struct ws_profile_point *top = &p->points[p->n_points - 1];
    struct ws_learn_shown r = {.name = p->name,
                               .gpu = p->key.gpu,
                               .shape = p->key.shape,
                               .n_points = p->n_points,
                               .n_sm = top->n_sms,
                               .time_ms = top->time_mean_ms,
                               .power_w = top->n_powers ? top->power_w : NAN,
                               .error = p->time_error,
                               .cold_error = s->cold_error};
    for (uint32_t k = 0; k < p->n_points; k++)
        r.n_runs += p->points[k].n_runs;
    return r;
}

uint32_t ws_learn_show(struct ws_learn *l, struct ws_arena *a, uint32_t max,
                       struct ws_learn_shown **ret)
{
    uint32_t n = 0;
    *ret = ws_arena_array(a, max + 1, sizeof(**ret));
    if (!*ret)
        return 0;
    pthread_mutex_lock(&l->lock);
    for (const struct ws_list *it = l->recent.prev; it != &l->recent && n < max; it = it->prev)
        (*ret)[n++] = show(ws_list_entry(it, struct ws_learn_shape, recent));
    pthread_mutex_unlock(&l->lock);
    return n;
}

/* ---- start and end ---- */

int ws_learn_new(struct ws_learn **ret, const char *path)
{
    struct ws_learn *l = ws_alloc(sizeof(*l));
    if (!l)
        return ws_raise(-ENOMEM);
    pthread_mutex_init(&l->lock, NULL);
    ws_list_init(&l->dirty);
    ws_list_init(&l->recent);
    l->log = ws_debug_on("learn");
    if (path) {
        struct ws_diags diags = WS_DIAGS_NULL;
        int r = ws_learn_writer_new(l, path, &diags);
        if (r) {
            char *text = ws_diags_text(&diags);
            ws_log(WS_ERROR, "learn: the profile store can't be used, nothing will be kept: %s",
                   text && *text ? text : strerror(r < 0 ? -r : EIO));
            free(text);
        }
        ws_diags_deinit(&diags);
    }
    *ret = l;
    return 0;
}

struct ws_learn *ws_learn_free(struct ws_learn *l)
{
    if (!l)
        return NULL;
    ws_learn_writer_free(l);
    struct ws_learn_shape *s, *next_shape;
    HASH_ITER (hh, l->shapes, s, next_shape) {
        HASH_DEL(l->shapes, s);
        ws_profile_deinit(&s->profile);
        free(s->now);
        free(s);
    }
    struct ws_learn_gpu *g, *next_gpu;
    HASH_ITER (hh, l->gpus, g, next_gpu) {
        HASH_DEL(l->gpus, g);
        free(g);
    }
    struct ws_learn_user *u, *next_user;
    HASH_ITER (hh, l->users, u, next_user) {
        HASH_DEL(l->users, u);
        free(u);
    }
    struct ws_learn_known *k, *next_known;
    HASH_ITER (hh, l->known, k, next_known) {
        HASH_DEL(l->known, k);
        free(k);
    }
    pthread_mutex_destroy(&l->lock);
    free(l);
    return NULL;
}
