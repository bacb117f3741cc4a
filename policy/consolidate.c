// SPDX-License-Identifier: Apache-2.0
/* policy/consolidate.c - merge waiting kernels into one launch where the models predict less
 * energy.
 *
 * Source: Li, Byna, Chakradhar, "Energy-Aware Workload Consolidation on GPU" (2011), IV and VII
 * (Fig. 6). On each event:
 *  1. Fewer kernels wait than threshold · GPUs: the oldest go to idle GPUs as they are, as if there
 *     were no framework. [ours: a window may hold them for a while, so that programs which start
 *     together meet.]
 *  2. Else, for an idle GPU, draw candidates: a template at random, and of its tasks waiting jobs
 *     at random, as many as it takes.
 *  3. Predict the merged launch (models/consolidate.h) and its power (models/power.h), the same
 *     kernels one after another, and take the CPU's energy from the profile. Copies count in all of
 *     them that copy.
 *  4. Merge if that takes less energy than both; ties reject.
 *  5. Otherwise the candidates run alone, each on the CPU or the GPU, whichever takes less, and
 *     others are drawn until the GPU has something to do or none are left.
 * Where a type of GPU has no model, or a kernel no instruction counts, measured profiles stand in
 * for both (ws_mix_measured() and the power by busy SMs). A kernel with counts and a measured time
 * has its modelled times scaled so that both agree.
 *
 * Choices are random but not arbitrary: the generator is seeded from the option and from what
 * waits, so the same snapshot gives the same answer whatever was asked before. Of idle GPUs that
 * are alike, those that wait get the one nearest to their data [ours]. GPUs serve one launch at a
 * time here, as the paper's did. Deadlines are not looked at. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/consolidate.h"
#include "models/power.h"
#include "policy/move.h"
#include "policy/policy.h"

static const struct ws_policy_option options[] = {
    {"threshold", "10", "waiting kernels per GPU from which merging is considered"},
    {"window", "0", "time for which fewer kernels than that are held back, waiting for more"},
    {"seed", "1", "of the random choice of candidates"},
    {"dispatch", "redeal", "where blocks go: redeal, rr, rr_restart or greedy"},
    {"sharing", "additive",
     "blocks on an SM share its time: additive, overlap, or bounded by issue slots"},
    {"rule", "recommended", "form of the MWP-CWP model: recommended or recalled"},
    {"source", "auto", "of predictions: model, profile (measured alone), or auto (model if there)"},
    {0},
};

enum price_source { SOURCE_AUTO, SOURCE_MODEL, SOURCE_PROFILE };

struct candidate {
    int job; /* index into snapshot.jobs */
    bool decided;
};
/* Time and energy of a choice; INFINITY: can't be predicted or done. */
struct price {
    double ms, mj;
};
struct draw { /* kernels that may be merged: indices into candidates */
    int *v;
    size_t n, cap;
};

struct consolidate {
    const struct ws_policy_system *system;
    double threshold, window;
    uint64_t seed;
    struct ws_mix_options mix;
    enum price_source source;
    /* workspace */
    struct candidate *candidates;
    size_t n_candidates, cap_candidates;
    struct draw draw;
    int *order;   /* of templates */
    bool *served; /* [n_gpus]: given something in this turn */
    size_t cap_order, cap_served;
    struct ws_mix mix_work;
    int group;
};

/* ---- randomness: splitmix64, seeded per snapshot ---- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint64_t seed_of(const struct consolidate *p, const struct ws_policy_snapshot *snap)
{
    uint64_t state = p->seed;
    for (size_t i = 0; i < p->n_candidates; i++) {
        state ^= snap->jobs[p->candidates[i].job].seq * UINT64_C(0xd6e8feb86659fd93);
        state = next_random(&state);
    }
    return state;
}

static size_t below(uint64_t *state, size_t n)
{
    return (size_t)((unsigned __int128)next_random(state) * n >> 64);
}

/* ---- prices ---- */

struct mix_part { /* of a mix: instances of one task */
    int task, n;
};

static const struct ws_policy_cost *cost_of(const struct consolidate *p, int task, int type)
{
    return &p->system->tasks[task].cost[type];
}

static bool has_model(const struct consolidate *p, int task, int type)
{
    return p->system->types[type].mwp && cost_of(p, task, type)->model;
}

static bool has_profile(const struct consolidate *p, int task, int type)
{
    const struct ws_policy_cost *c = cost_of(p, task, type);
    return c->n_sm > 0 && c->wcet && c->n_blocks > 0;
}

static double alone_ms(const struct ws_policy_cost *c, int n_sm)
{
    return c->wcet[WS_MIN(n_sm, c->n_sm) - 1];
}

static double copies_ms(const struct consolidate *p, int task, int type)
{
    const struct ws_policy_cost *c = cost_of(p, task, type);
    const struct ws_policy_task *t = &p->system->tasks[task];
    double link = p->system->types[type].link_bytes_per_ms;
    if (c->h2d > 0 || c->d2h > 0 || !(link > 0))
        return c->h2d + c->d2h;
    return (t->in_bytes + t->out_bytes) / link;
}

/* The kernel's blocks resident on an SM: those of the merged kernel are no more than of any part of
 * it. */
static uint32_t occupancy_of(const struct consolidate *p, const struct mix_part *parts, int n_parts,
                             int type)
{
    uint32_t least = UINT32_MAX;
    for (int i = 0; i < n_parts; i++) {
        const struct ws_mwp_kernel *k = cost_of(p, parts[i].task, type)->model;
        least = WS_MIN(least, k && k->active_blocks_per_sm ? k->active_blocks_per_sm : 1);
    }
    return least;
}

/* Above-idle power by SMs that are busy: each takes the kernel's dynamic power, the others the idle
 * share. */
static double busy_sms_mj(const struct ws_policy_gpu_type *t, double dyn_mj, double busy_sm_ms,
                          int n_sm, double ms)
{
    return t->static_w * ms + dyn_mj + t->idle_w_per_sm * fmax(0, n_sm * ms - busy_sm_ms);
}

static struct price price_by_model(struct consolidate *p, const struct mix_part *parts, int n_parts,
                                   int type, int n_sm)
{
    const struct ws_policy_gpu_type *t = &p->system->types[type];
    struct ws_mix_part v[WS_MIX_MAX_PARTS] = {0};
    struct ws_mwp_gpu gpu = *t->mwp;
    gpu.n_sms = (uint32_t)n_sm;
    double dyn_w = 0, blocks = 0;
    for (int i = 0; i < n_parts; i++) {
        const struct ws_policy_cost *c = cost_of(p, parts[i].task, type);
        v[i] = (struct ws_mix_part){.kernel = *c->model};
        if (has_profile(p, parts[i].task, type)) {
            struct ws_mwp_result alone;
            if (!ws_mwp_predict(&alone, &gpu, c->model, p->mix.rule, NULL))
                v[i].correction = alone_ms(c, n_sm) / (alone.time_us / 1e3);
        }
        v[i].kernel.n_blocks *= (uint64_t)parts[i].n;
        dyn_w += c->dyn_w_per_sm * (double)v[i].kernel.n_blocks;
        blocks += (double)v[i].kernel.n_blocks;
    }
    struct ws_mix_options o = p->mix;
    o.occupancy = occupancy_of(p, parts, n_parts, type);
    struct ws_mix *m = &p->mix_work;
    if (ws_mix_predict(m, &gpu, v, (uint32_t)n_parts, &o, NULL))
        return (struct price){INFINITY, INFINITY};
    struct price r = {.ms = m->time_us / 1e3};
    if (t->power)
        r.mj =
            (t->static_w + ws_power_above_idle_w(t->power, m->rate_comp, m->rate_gmem, 0)) * r.ms;
    else
        r.mj =
            busy_sms_mj(t, dyn_w / blocks * m->active_sms * r.ms, m->active_sms * r.ms, n_sm, r.ms);
    return r;
}

/* Energy of what the last ws_mix_measured() dealt. */
static double measured_mj(const struct consolidate *p, const struct mix_part *parts, int n_parts,
                          int type, int n_sm)
{
    const struct ws_policy_gpu_type *t = &p->system->types[type];
    const struct ws_block_schedule *d = &p->mix_work.dispatch;
    struct ws_power_alone alone[WS_MIX_MAX_PARTS] = {0};
    bool measured = true;
    double dyn_mj = 0, busy = 0;
    for (int i = 0; i < n_parts; i++) {
        const struct ws_policy_cost *c = cost_of(p, parts[i].task, type);
        int m = WS_MIN(n_sm, c->n_sm);
        measured = measured && c->power_w;
        if (!measured)
            break;
        alone[i] = (struct ws_power_alone){.above_idle_w = c->power_w[m - 1] - t->static_w,
                                           .time_s = alone_ms(c, n_sm),
                                           .n = parts[i].n};
    }
    if (measured)
        return t->static_w * d->makespan + ws_power_mix_j(alone, (size_t)n_parts, 0, d->makespan);
    for (uint32_t sm = 0; sm < d->n_sms; sm++) {
        /* An SM's blocks may overlap, and then take turns at its dynamic power. */
        double at = 0, work = 0, w = 0;
        for (uint32_t b = d->sms[sm].first; b != WS_DISPATCH_NONE; b = d->blocks[b].next) {
            double length = d->blocks[b].end - d->blocks[b].start;
            work += length;
            w += length * cost_of(p, parts[d->blocks[b].kernel].task, type)->dyn_w_per_sm;
            at = fmax(at, d->blocks[b].end);
        }
        if (work > 0)
            dyn_mj += w / work * at;
        busy += at;
    }
    return busy_sms_mj(t, dyn_mj, busy, n_sm, d->makespan);
}

/* What one block of a task keeps busy, for the bounded model; left alone where counts or the
 * machine are not known. */
static void find_needs(const struct consolidate *p, int task, int type, struct ws_mix_measured *k)
{
    const struct ws_mwp_gpu *gpu = p->system->types[type].mwp;
    if (!has_model(p, task, type))
        return;
    double ms_per_cycle = 1 / (gpu->freq_ghz * 1e6);
    k->issue_time = ws_mix_issue_cycles(gpu, cost_of(p, task, type)->model) * ms_per_cycle;
    k->memory_time = ws_mix_memory_cycles(gpu, cost_of(p, task, type)->model) * ms_per_cycle;
}

static struct price price_by_profile(struct consolidate *p, const struct mix_part *parts,
                                     int n_parts, int type, int n_sm)
{
    struct ws_mix_measured v[WS_MIX_MAX_PARTS] = {0};
    for (int i = 0; i < n_parts; i++) {
        const struct ws_policy_cost *c = cost_of(p, parts[i].task, type);
        v[i] = (struct ws_mix_measured){.alone_time = alone_ms(c, n_sm),
                                        .alone_blocks = (uint32_t)c->n_blocks,
                                        .n_blocks = (uint32_t)(c->n_blocks * parts[i].n)};
        find_needs(p, parts[i].task, type, &v[i]);
    }
    struct ws_mix_options o = p->mix;
    o.occupancy = occupancy_of(p, parts, n_parts, type);
    if (ws_mix_measured(&p->mix_work, (uint32_t)n_sm, v, (uint32_t)n_parts, &o, NULL))
        return (struct price){INFINITY, INFINITY};
    return (struct price){p->mix_work.dispatch.makespan,
                          measured_mj(p, parts, n_parts, type, n_sm)};
}

/* A launch of these parts on a GPU, with its copies. */
static struct price price_of(struct consolidate *p, const struct mix_part *parts, int n_parts,
                             int gpu)
{
    int type = p->system->gpus[gpu].type, n_sm = p->system->gpus[gpu].sm_limit;
    bool model = p->source != SOURCE_PROFILE, profile = p->source != SOURCE_MODEL;
    double copies = 0;
    for (int i = 0; i < n_parts; i++) {
        model = model && has_model(p, parts[i].task, type);
        profile = profile && has_profile(p, parts[i].task, type);
        copies += parts[i].n * copies_ms(p, parts[i].task, type);
    }
    struct price r = {INFINITY, INFINITY};
    if (model)
        r = price_by_model(p, parts, n_parts, type, n_sm);
    else if (profile)
        r = price_by_profile(p, parts, n_parts, type, n_sm);
    r.ms += copies;
    r.mj += copies * p->system->types[type].static_w;
    return r;
}

static struct price price_on_cpu(const struct consolidate *p, int task)
{
    const struct ws_policy_task *t = &p->system->tasks[task];
    return t->cpu_ms > 0 ? (struct price){t->cpu_ms, t->cpu_mj}
                         : (struct price){INFINITY, INFINITY};
}

/* ---- decisions ---- */

struct mix_pass { /* one decide() */
    struct consolidate *p;
    const struct ws_policy_snapshot *snap;
    struct ws_policy_decisions *ret;
    uint64_t random;
    size_t n_left; /* candidates not decided */
};

static struct ws_policy_decision *decide_job(struct mix_pass *x, enum ws_decision_kind kind,
                                             size_t candidate, int gpu, const struct price *price)
{
    struct candidate *c = &x->p->candidates[candidate];
    struct ws_policy_decision *d = ws_policy_decide(x->ret, kind, c->job, gpu);
    if (!d)
        return NULL;
    c->decided = true;
    x->n_left--;
    d->at = d->gpu_start = x->snap->now;
    if (kind == WS_DECIDE_START || kind == WS_DECIDE_FUSE) {
        static const struct ws_sm_set none;
        d->n_sm = (int)ws_sm_set_take(&d->sms, &none, (unsigned)x->p->system->gpus[gpu].sm_limit,
                                      (unsigned)x->p->system->gpus[gpu].sm_limit);
        x->p->served[gpu] = true;
    }
    if (price && isfinite(price->ms)) {
        d->gpu_end = d->end = x->snap->now + price->ms;
        d->energy = price->mj;
    }
    return d;
}

static int task_of(const struct mix_pass *x, size_t candidate)
{
    return x->snap->jobs[x->p->candidates[candidate].job].task;
}

/* "12.3 mJ in 4.5 ms", or that it isn't known. */
static const char *price_text(const struct price *price, char *buf, size_t size)
{
    if (isfinite(price->mj))
        snprintf(buf, size, "%.4g mJ in %.4g ms", price->mj, price->ms);
    else
        snprintf(buf, size, "unknown");
    return buf;
}

/* One job by itself, on the GPU or the CPU, whichever takes less energy. Return: 1: the GPU has
 * work now, 0: not, or negative. */
static int run_alone(struct mix_pass *x, size_t candidate, int gpu, bool gpu_is_free,
                     const char *because)
{
    struct mix_part part = {task_of(x, candidate), 1};
    struct price on_gpu = price_of(x->p, &part, 1, gpu), on_cpu = price_on_cpu(x->p, part.task);
    enum ws_decision_kind kind = WS_DECIDE_START;
    if (on_cpu.mj < on_gpu.mj && isfinite(on_gpu.mj))
        kind = WS_DECIDE_RUN_CPU;
    else if (!gpu_is_free)
        kind = WS_DECIDE_WAIT;
    bool cpu = kind == WS_DECIDE_RUN_CPU;
    struct ws_policy_decision *d =
        decide_job(x, kind, candidate, cpu ? -1 : gpu, cpu ? &on_cpu : &on_gpu);
    if (!d)
        return ws_raise(-ENOMEM);
    if (x->snap->explain) {
        char g[48], c[48];
        ws_policy_explain(x->snap, d, "alone on the %s: GPU %s, CPU %s; %s",
                          cpu                      ? "CPU"
                          : kind == WS_DECIDE_WAIT ? "GPU when it is free"
                                                   : "GPU",
                          price_text(&on_gpu, g, sizeof(g)), price_text(&on_cpu, c, sizeof(c)),
                          because);
    }
    return kind == WS_DECIDE_START;
}

static int n_wanted(const struct ws_policy_template *t, int task)
{
    for (int i = 0; i < t->n_tasks; i++)
        if (t->tasks[i] == task)
            return t->n_max[i];
    return 0;
}

static bool can_run(const struct mix_pass *x, size_t candidate, int gpu)
{
    return ws_policy_can_run(&x->snap->jobs[x->p->candidates[candidate].job], gpu);
}

/* Fills p->draw with candidates for one template that can run on @gpu, at random, as many as it
 * takes. Return: whether there are two. */
static bool draw_for(struct mix_pass *x, const struct ws_policy_template *t, int gpu)
{
    struct consolidate *p = x->p;
    p->draw.n = 0;
    for (size_t i = 0; i < p->n_candidates; i++)
        if (!p->candidates[i].decided && n_wanted(t, task_of(x, i)) > 0 && can_run(x, i, gpu))
            p->draw.v[p->draw.n++] = (int)i;
    for (size_t i = p->draw.n; i > 1; i--) {
        size_t k = below(&x->random, i);
        int swap = p->draw.v[i - 1];
        p->draw.v[i - 1] = p->draw.v[k];
        p->draw.v[k] = swap;
    }
    size_t kept = 0;
    for (size_t i = 0; i < p->draw.n; i++) {
        int task = task_of(x, (size_t)p->draw.v[i]), have = 0;
        for (size_t k = 0; k < kept; k++)
            have += task_of(x, (size_t)p->draw.v[k]) == task;
        if (have < n_wanted(t, task))
            p->draw.v[kept++] = p->draw.v[i];
    }
    p->draw.n = kept;
    return kept >= 2;
}

/* Draws candidates of some template for @gpu, templates in random order. Return: the template, or
 * NULL: none has two. */
static const struct ws_policy_template *draw(struct mix_pass *x, int gpu)
{
    struct consolidate *p = x->p;
    int n = p->system->n_templates;
    for (int i = 0; i < n; i++)
        p->order[i] = i;
    for (int i = 0; i < n; i++) {
        size_t k = (size_t)i + below(&x->random, (size_t)(n - i));
        int t = p->order[k];
        p->order[k] = p->order[i];
        if (draw_for(x, &p->system->templates[t], gpu))
            return &p->system->templates[t];
    }
    return NULL;
}

/* The drawn candidates as parts, in the template's order of tasks. Return: how many parts; 0: more
 * than the models take. */
static int parts_of(const struct mix_pass *x, const struct ws_policy_template *t,
                    struct mix_part *parts)
{
    int n_parts = 0;
    for (int i = 0; i < t->n_tasks; i++) {
        struct mix_part part = {t->tasks[i], 0};
        for (size_t k = 0; k < x->p->draw.n; k++)
            part.n += task_of(x, (size_t)x->p->draw.v[k]) == part.task;
        if (!part.n)
            continue;
        if (n_parts == WS_MIX_MAX_PARTS)
            return 0;
        parts[n_parts++] = part;
    }
    return n_parts;
}

/* What the same parts take one after another, and on the CPU. */
static void price_apart(struct mix_pass *x, const struct mix_part *parts, int n_parts, int gpu,
                        struct price *ret_gpu, struct price *ret_cpu)
{
    *ret_gpu = *ret_cpu = (struct price){0};
    for (int i = 0; i < n_parts; i++) {
        struct mix_part one = {parts[i].task, 1};
        struct price g = price_of(x->p, &one, 1, gpu), c = price_on_cpu(x->p, one.task);
        ret_gpu->ms += parts[i].n * g.ms;
        ret_gpu->mj += parts[i].n * g.mj;
        ret_cpu->ms += parts[i].n * c.ms;
        ret_cpu->mj += parts[i].n * c.mj;
    }
}

/* By arrival, so that of those that run alone the first to come runs first. */
static void sort_draw(struct draw *draw)
{
    for (size_t i = 1; i < draw->n; i++)
        for (size_t k = i; k && draw->v[k - 1] > draw->v[k]; k--) {
            int swap = draw->v[k];
            draw->v[k] = draw->v[k - 1];
            draw->v[k - 1] = swap;
        }
}

/* The drawn become one launch. */
static int merge(struct mix_pass *x, int gpu, const struct price *mix, const char *because)
{
    for (size_t i = 0; i < x->p->draw.n; i++) {
        struct ws_policy_decision *d =
            decide_job(x, WS_DECIDE_FUSE, (size_t)x->p->draw.v[i], gpu, mix);
        if (!d)
            return ws_raise(-ENOMEM);
        d->group = x->p->group;
        d->energy = mix->mj / (double)x->p->draw.n; /* of the launch, an equal share */
        ws_policy_explain(x->snap, d, "merged: %s", because);
    }
    x->p->group++;
    return 1;
}

static bool is_idle(const struct mix_pass *x, int gpu)
{
    return x->snap->gpus[gpu].power == WS_GPU_ON && !x->snap->gpus[gpu].n_running &&
           !x->p->served[gpu];
}

struct mix_moves { /* of several jobs, one after another */
    double ms;
    size_t n;
};

static struct mix_moves moves_to(const struct mix_pass *x, const int *v, size_t n, int gpu)
{
    struct mix_moves m = {0};
    for (size_t i = 0; i < n; i++) {
        struct ws_policy_move one = ws_policy_move(&x->snap->jobs[x->p->candidates[v[i]].job], gpu);
        m.ms += one.ms;
        m.n += !one.here;
    }
    return m;
}

/* The idle GPU like @gpu that is nearest to the data of the candidates @v. */
static int nearest(const struct mix_pass *x, const int *v, size_t n, int gpu)
{
    int best = gpu;
    struct mix_moves least = moves_to(x, v, n, gpu);
    for (int k = 0; k < x->p->system->n_gpus; k++) {
        if (k == gpu || !is_idle(x, k) || !ws_policy_alike(x->p->system, k, gpu))
            continue;
        struct mix_moves m = moves_to(x, v, n, k);
        if (m.ms < least.ms || (m.ms == least.ms && m.n < least.n)) {
            best = k;
            least = m;
        }
    }
    return best;
}

/* Draws once for an idle GPU, or one like it, and decides what is to become of the drawn. Return:
 * 1: it has work, 0: draw again, -ENODATA: nothing to draw, or another negative. */
static int consider(struct mix_pass *x, int gpu)
{
    struct mix_part parts[WS_MIX_MAX_PARTS] = {0};
    const struct ws_policy_template *t = draw(x, gpu);
    if (!t)
        return -ENODATA;
    int n_parts = parts_of(x, t, parts);
    gpu = nearest(x, x->p->draw.v, x->p->draw.n, gpu);
    struct price mix = {INFINITY, INFINITY}, apart, cpu;
    if (n_parts)
        mix = price_of(x->p, parts, n_parts, gpu);
    price_apart(x, parts, n_parts, gpu, &apart, &cpu);
    char because[224] = "";
    if (x->snap->explain) {
        char m[48], a[48], c[48];
        snprintf(because, sizeof(because), "%zu together %s, one by one %s, CPU %s", x->p->draw.n,
                 price_text(&mix, m, sizeof(m)), price_text(&apart, a, sizeof(a)),
                 price_text(&cpu, c, sizeof(c)));
    }
    sort_draw(&x->p->draw);
    if (n_parts && ws_mix_saves(mix.mj, apart.mj, cpu.mj))
        return merge(x, gpu, &mix, because);
    bool busy = false;
    for (size_t i = 0; i < x->p->draw.n; i++) {
        int r = run_alone(x, (size_t)x->p->draw.v[i], gpu, !busy, because);
        if (r < 0)
            return ws_forward(r);
        busy |= r;
    }
    return busy;
}

/* The oldest that waits and can run there, as it is, on @gpu or one like it. Return: 1, 0 (there is
 * none), or negative. */
static int launch_oldest(struct mix_pass *x, int gpu, const char *because)
{
    for (size_t i = 0; i < x->p->n_candidates; i++) {
        if (x->p->candidates[i].decided)
            continue;
        int one = (int)i, near = nearest(x, &one, 1, gpu);
        if (!can_run(x, i, near))
            continue;
        gpu = near;
        struct mix_part part = {task_of(x, i), 1};
        struct price price = price_of(x->p, &part, 1, gpu);
        struct ws_policy_decision *d = decide_job(x, WS_DECIDE_START, i, gpu, &price);
        if (!d)
            return ws_raise(-ENOMEM);
        ws_policy_explain(x->snap, d, "%s", because);
        return 1;
    }
    return 0;
}

/* Gives one idle GPU, or one like it, something to do. Return: 1, 0 (nothing that waits can run
 * there), or negative. */
static int serve(struct mix_pass *x, int gpu)
{
    int r;
    while (!(r = consider(x, gpu)))
        ;
    if (r != -ENODATA)
        return r < 0 ? ws_forward(r) : r;
    for (size_t i = 0; i < x->p->n_candidates; i++) {
        int one = (int)i, near = nearest(x, &one, 1, gpu);
        if (x->p->candidates[i].decided || !can_run(x, i, near))
            continue;
        r = run_alone(x, i, near, true, "no template for it and another that waits");
        if (r)
            return r < 0 ? ws_forward(r) : r;
    }
    return 0;
}

/* Fewer than the threshold wait. Those younger than the window are held, with a timer for the
 * oldest of them. */
static int below_threshold(struct mix_pass *x, double wanted)
{
    struct consolidate *p = x->p;
    char because[96];
    snprintf(because, sizeof(because), "%zu wait, fewer than %g: launched as it is",
             p->n_candidates, wanted);
    double oldest = INFINITY;
    for (size_t i = 0; i < p->n_candidates; i++)
        oldest = fmin(oldest, x->snap->jobs[p->candidates[i].job].release);
    if (p->window > 0 && x->snap->now < oldest + p->window) {
        struct ws_policy_decision *d = ws_policy_decide(x->ret, WS_DECIDE_TIMER, -1, -1);
        if (!d)
            return ws_raise(-ENOMEM);
        d->at = oldest + p->window;
        ws_policy_explain(x->snap, d, "%zu wait, fewer than %g: held for others to come",
                          p->n_candidates, wanted);
        return 0;
    }
    for (int gpu = 0; gpu < p->system->n_gpus && x->n_left; gpu++) {
        int r = 1;
        while (r && is_idle(x, gpu) && x->n_left) {
            r = launch_oldest(x, gpu, because);
            if (r < 0)
                return ws_forward(r);
        }
    }
    return 0;
}

static int collect(struct consolidate *p, const struct ws_policy_snapshot *snap)
{
    int r = ws_grow((void **)&p->candidates, &p->cap_candidates, (size_t)snap->n_jobs + 1,
                    sizeof(*p->candidates));
    if (!r)
        r = ws_grow((void **)&p->draw.v, &p->draw.cap, (size_t)snap->n_jobs + 1,
                    sizeof(*p->draw.v));
    if (!r)
        r = ws_grow((void **)&p->order, &p->cap_order, (size_t)p->system->n_templates + 1,
                    sizeof(*p->order));
    if (!r)
        r = ws_grow((void **)&p->served, &p->cap_served, (size_t)snap->system->n_gpus + 1,
                    sizeof(*p->served));
    if (r)
        return ws_forward(r);
    memset(p->served, 0, (size_t)snap->system->n_gpus * sizeof(*p->served));
    p->n_candidates = 0;
    for (int i = 0; i < snap->n_jobs; i++)
        if (snap->jobs[i].state == WS_JOB_WAITING)
            p->candidates[p->n_candidates++] = (struct candidate){.job = i};
    return 0;
}

static int consolidate_decide(struct ws_policy *base, const struct ws_policy_snapshot *snap,
                              const struct ws_policy_event *event, struct ws_policy_decisions *ret)
{
    struct consolidate *p = (struct consolidate *)base;
    p->system = snap->system;
    int r = collect(p, snap);
    if (r)
        return ws_forward(r);
    if (!p->n_candidates)
        return 0;
    p->group = 0;
    struct mix_pass x = {
        .p = p, .snap = snap, .ret = ret, .random = seed_of(p, snap), .n_left = p->n_candidates};
    double wanted = p->threshold * p->system->n_gpus;
    if ((double)p->n_candidates < wanted)
        return below_threshold(&x, wanted);
    for (int gpu = 0; gpu < p->system->n_gpus && x.n_left; gpu++) {
        r = 1;
        while (r && is_idle(&x, gpu) && x.n_left) {
            r = serve(&x, gpu);
            if (r < 0)
                return ws_forward(r);
        }
    }
    return 0;
}

/* ---- making ---- */

static int bad_word(const char *option, const char *value, const char *right, char *ret_error,
                    size_t error_bytes)
{
    snprintf(ret_error, error_bytes, "option %s: '%s' is not one of %s", option, value, right);
    return WS_POLICY_E_OPTION;
}

static int read_words(struct consolidate *p, const char *const *given, char *ret_error,
                      size_t error_bytes)
{
    const char *v = ws_policy_option_text(options, given, "dispatch");
    if (!ws_dispatch_policy_find(v, &p->mix.policy))
        return bad_word("dispatch", v, "redeal, rr, rr_restart, greedy", ret_error, error_bytes);
    v = ws_policy_option_text(options, given, "sharing");
    if (!ws_dispatch_model_find(v, &p->mix.model))
        return bad_word("sharing", v, "additive, overlap, bounded", ret_error, error_bytes);
    v = ws_policy_option_text(options, given, "rule");
    if (!strcmp(v, "recalled"))
        p->mix.rule = WS_MWP_RECALLED;
    else if (strcmp(v, "recommended"))
        return bad_word("rule", v, "recommended, recalled", ret_error, error_bytes);
    v = ws_policy_option_text(options, given, "source");
    if (!strcmp(v, "model"))
        p->source = SOURCE_MODEL;
    else if (!strcmp(v, "profile"))
        p->source = SOURCE_PROFILE;
    else if (strcmp(v, "auto"))
        return bad_word("source", v, "auto, model, profile", ret_error, error_bytes);
    return 0;
}

static void consolidate_free(struct ws_policy *base)
{
    struct consolidate *p = (struct consolidate *)base;
    if (!p)
        return;
    free(p->candidates);
    free(p->draw.v);
    free(p->order);
    free(p->served);
    ws_mix_deinit(&p->mix_work);
    free(p);
}

static int consolidate_make(struct ws_policy **ret, const char *const *given, char *ret_error,
                            size_t error_bytes)
{
    struct consolidate *p = ws_alloc(sizeof(*p));
    if (!p)
        return ws_raise(-ENOMEM);
    double seed = 0;
    int r = ws_policy_options_check(options, given, ret_error, error_bytes);
    if (!r)
        r = ws_policy_option_number(options, given, "threshold", 0, 1e6, &p->threshold, ret_error,
                                    error_bytes);
    if (!r)
        r = ws_policy_option_number(options, given, "window", 0, 1e9, &p->window, ret_error,
                                    error_bytes);
    if (!r)
        r = ws_policy_option_number(options, given, "seed", 0, 9e15, &seed, ret_error, error_bytes);
    if (!r)
        r = read_words(p, given, ret_error, error_bytes);
    if (r) {
        consolidate_free((struct ws_policy *)p);
        return r;
    }
    p->seed = (uint64_t)seed;
    *ret = (struct ws_policy *)p;
    return 0;
}

/* Costs are looked up as they are needed; only what can never be decided is said here. */
static int consolidate_prepare(struct ws_policy *base, const struct ws_policy_system *system,
                               char *ret_error, size_t error_bytes)
{
    struct consolidate *p = (struct consolidate *)base;
    p->system = system;
    for (int i = 0; i < system->n_templates; i++)
        for (int k = 0; k < system->templates[i].n_tasks; k++) {
            int task = system->templates[i].tasks[k];
            bool any = false;
            for (int g = 0; g < system->n_gpus; g++)
                any |= has_model(p, task, system->gpus[g].type) ||
                       has_profile(p, task, system->gpus[g].type);
            if (any)
                continue;
            snprintf(
                ret_error, error_bytes,
                "task %s is in a template, but has neither instruction counts nor a profile on "
                "any GPU: it will run alone",
                system->tasks[task].name ? system->tasks[task].name : "?");
            return WS_POLICY_E_COST;
        }
    return 0;
}

const struct ws_policy_ops ws_policy_consolidate = {
    .name = "consolidate",
    .summary = "merge waiting kernels where models predict less energy (Li, Byna, Chakradhar 2011)",
    .options = options,
    .make = consolidate_make,
    .free = consolidate_free,
    .prepare = consolidate_prepare,
    .decide = consolidate_decide,
    .fuses = true,
};
