// SPDX-License-Identifier: Apache-2.0
/* own-dvfs: what our own policy saves where it may choose voltage and clocks, too, on a GTX 1080 Ti
 * and an RTX 2070 SUPER, by the models of Mei et al.
 *
 * A set has six tasks. In one half of the study their parameters are drawn from the ranges that the
 * paper prints, and are the same on both GPUs. In the other each task is an application that was
 * measured on both GPUs (edl_apps.def); there the power follows the clocks much less. A task is
 * repeated until it takes 5 to 50 ms on the GTX 1080 Ti. As in own-sbeet, utilisations are drawn by
 * UUniFast, the period is that time divided by the utilisation, and the deadline is half of the
 * period.
 *
 * The models are of whole GPUs. What they do not say is assumed:
 * - On m of M SMs, the part of the time that follows the core clock takes M/m times as long. The
 *   part that follows the memory clock needs half of the SMs, and takes longer only on fewer.
 * - A GPU on which nothing runs takes 37 W, as in their paper. One that is awake takes at least
 *   what the application takes that has the least power that does not follow the clocks. The rest
 *   of an application's power is divided equally among its SMs. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/common/parallel.h"
#include "papers/experiments/experiment.h"
#include "papers/sets/edl_apps.h"
#include "papers/sets/gen_edl.h"
#include "papers/sets/random.h"
#include "papers/sets/sbeet_set.h"

enum { GPUS = 2, TASKS = 6, SMS = 40, N_U = 7, SETS = 60, QUICK_SETS = 1 };
#define DURATION_MS 15000.0
#define GATED_W     37.0

static const struct {
    const char *name;
    int n_sm;
} gpus[GPUS] = {[WS_EDL_GTX1080TI] = {"gtx1080ti", 28}, [WS_EDL_RTX2070S] = {"rtx2070s", SMS}};

enum way { FIXED, WIDE, NARROW, _WAY_N };
static const struct {
    const char *label, *options[3];
} ways[_WAY_N] = {[FIXED] = {"default clocks", {NULL}},
                  [WIDE] = {"wide interval", {"dvfs=yes", "interval=wide", NULL}},
                  [NARROW] = {"narrow interval", {"dvfs=yes", "interval=narrow", NULL}}};

struct clocked_set {
    struct ws_policy_gpu_type types[GPUS];
    struct ws_policy_gpu gpus[GPUS];
    struct ws_dvfs_task dvfs[TASKS][GPUS];
    double wcet[TASKS][GPUS][SMS];
    struct ws_policy_cost costs[TASKS][GPUS];
    struct ws_policy_task tasks[TASKS];
    struct ws_sbeet_set set;
};
struct clocked_point {
    double missed, released, joules;
    double least; /* J below which nobody stays who misses no more than at the default clocks */
};
struct clocked_study {
    const char *name; /* "ranges" or "measured" */
    bool measured;
    uint64_t seed;
    int n_sets;
    struct clocked_point *points; /* [N_U][n_sets][_WAY_N] */
    _Atomic int failed;
};

static double utilisation(int u)
{
    return 0.2 + 0.2 * u;
}

static double static_w(void)
{
    return GPUS * GATED_W;
}

/* ---- sets ---- */

static const struct ws_edl_app *find_app(enum ws_edl_gpu gpu, const char *name)
{
    for (int i = 0; i < ws_edl_n_apps; i++)
        if (ws_edl_apps[i].gpu == gpu && !strcmp(ws_edl_apps[i].name, name))
            return &ws_edl_apps[i];
    return NULL;
}

/* What one job of an application takes on each GPU. Return: its name. */
static const char *draw_app(struct ws_random *r, bool measured, struct ws_dvfs_task ret[GPUS])
{
    for (;;) {
        if (!measured) {
            ret[0] = ret[1] = ws_gen_edl_task(&ws_gen_edl_offline, r);
            return "drawn";
        }
        const char *name = ws_edl_apps[ws_random_integer(r, 0, ws_edl_n_apps - 1)].name;
        const struct ws_edl_app *a = find_app(0, name), *b = find_app(1, name);
        if (a && b) {
            ret[0] = a->dvfs;
            ret[1] = b->dvfs;
            return name;
        }
    }
}

static struct ws_policy_gpu_type type_of(enum ws_edl_gpu gpu, bool measured)
{
    double least = measured ? INFINITY : GATED_W;
    for (int i = 0; i < ws_edl_n_apps && measured; i++)
        if (ws_edl_apps[i].gpu == gpu)
            least = fmin(least, ws_edl_apps[i].dvfs.p0);
    return (struct ws_policy_gpu_type){.name = gpus[gpu].name,
                                       .n_sm = gpus[gpu].n_sm,
                                       .static_w = GATED_W,
                                       .idle_w_per_sm = (least - GATED_W) / gpus[gpu].n_sm};
}

static void set_cost(struct clocked_set *s, int task, enum ws_edl_gpu gpu, double repeats)
{
    const int n = gpus[gpu].n_sm;
    struct ws_dvfs_task *d = &s->dvfs[task][gpu];
    d->t0 *= repeats;
    d->d *= repeats;
    for (int m = 1; m <= n; m++) {
        double core = (double)n / m, memory = fmax(1, core / 2);
        s->wcet[task][gpu][m - 1] = d->t0 + d->d * (d->delta * core + (1 - d->delta) * memory);
    }
    s->costs[task][gpu] =
        (struct ws_policy_cost){.n_sm = n,
                                .wcet = s->wcet[task][gpu],
                                .dyn_w_per_sm = (d->p0 + d->gamma + d->c - GATED_W) / n,
                                .dvfs = d};
}

static double unit(void *arg)
{
    return ws_random_unit(arg);
}

static void draw_set(struct ws_random *r, bool measured, double util, struct clocked_set *s)
{
    double u[TASKS];
    *s = (struct clocked_set){0};
    ws_uunifast(util, TASKS, u, unit, r);
    for (int k = 0; k < GPUS; k++) {
        s->types[k] = type_of(k, measured);
        s->gpus[k] = (struct ws_policy_gpu){
            .type = k, .sm_limit = gpus[k].n_sm, .n_slots = WS_GPU_SLOTS, .server = -1};
    }
    for (int i = 0; i < TASKS; i++) {
        const char *name = draw_app(r, measured, s->dvfs[i]);
        const double once = ws_dvfs_default(&s->dvfs[i][WS_EDL_GTX1080TI]).t;
        double ms = ws_random_uniform(r, 5, 50), period = ms / fmax(u[i], 0.01);
        for (int k = 0; k < GPUS; k++)
            set_cost(s, i, k, ms / once);
        s->tasks[i] = (struct ws_policy_task){.id = i,
                                              .name = name,
                                              .period = period,
                                              .deadline = period / 2,
                                              .offset = ws_random_uniform(r, 0, period),
                                              .weight = 1,
                                              .cost = s->costs[i]};
    }
    s->set.system = (struct ws_policy_system){.types = s->types,
                                              .gpus = s->gpus,
                                              .tasks = s->tasks,
                                              .n_types = GPUS,
                                              .n_gpus = GPUS,
                                              .n_tasks = TASKS};
}

/* ---- runs ---- */

static struct clocked_point *at(const struct clocked_study *t, int u, int set, enum way way)
{
    return &t->points[(u * t->n_sets + set) * _WAY_N + (int)way];
}

/* The least that a job of @t takes on @m SMs of the GPU, above static power, if it is in time. Its
 * kernel shares an awake GPU with as many others as fit there, and all clocks are as it likes them.
 * INFINITY: it is never in time. */
static double least_of_job(const struct ws_policy_task *t, const struct clocked_set *s, int gpu,
                           int m, const struct ws_dvfs_interval *iv)
{
    const struct ws_policy_cost *c = &t->cost[gpu];
    const double n = gpus[gpu].n_sm, idle = s->types[gpu].idle_w_per_sm, part = m / n;
    const double longer = c->wcet[m - 1] / ws_dvfs_time(c->dvfs, 1, 1);
    struct ws_dvfs_task d = *c->dvfs;
    struct ws_dvfs_point p;
    d.p0 = part * fmax(c->dyn_w_per_sm * n - d.gamma - d.c - n * idle, 0) + n * idle / WS_GPU_SLOTS;
    d.gamma *= part;
    d.c *= part;
    d.t0 *= longer;
    d.d *= longer;
    return ws_dvfs_optimum(&d, iv, t->deadline, &p) ? INFINITY : p.e;
}

/* Adds up what jobs take at least whose deadlines are within the run. @missed of them, those that
 * take most, are left out. */
static double least_joules(const struct clocked_set *s, const struct ws_dvfs_interval *iv,
                           double missed)
{
    double each[TASKS], jobs[TASKS], sum = static_w() * DURATION_MS;
    for (int i = 0; i < TASKS; i++) {
        const struct ws_policy_task *t = &s->tasks[i];
        each[i] = INFINITY;
        for (int k = 0; k < GPUS; k++)
            for (int m = 1; m <= gpus[k].n_sm; m++)
                each[i] = fmin(each[i], least_of_job(t, s, k, m, iv));
        jobs[i] = fmax(floor((DURATION_MS - t->deadline - t->offset) / t->period) + 1, 0);
        if (isinf(each[i]))
            each[i] = 0;
        sum += each[i] * jobs[i];
    }
    for (int n = 0; n < TASKS && missed > 0; n++) {
        int most = 0;
        for (int i = 1; i < TASKS; i++)
            if (each[i] > each[most])
                most = i;
        double left_out = fmin(missed, jobs[most]);
        sum -= each[most] * left_out;
        missed -= left_out;
        each[most] = 0;
    }
    return sum / 1000;
}

static void run_set(void *arg, size_t i)
{
    struct clocked_study *t = arg;
    const struct ws_policy_ops *ops = ws_policy_find("wattshare");
    int u = (int)i / t->n_sets, set = (int)i % t->n_sets;
    struct ws_random random;
    struct clocked_set s;
    ws_random_init_part(&random, t->seed, i);
    draw_set(&random, t->measured, utilisation(u), &s);
    for (enum way w = 0; w < _WAY_N; w++) {
        struct ws_machine_options o = {.duration = DURATION_MS};
        struct ws_sbeet_outcome out;
        if (ws_sbeet_set_run(&out, &s.set, ops, ways[w].options, &o))
            t->failed = 1;
        else
            *at(t, u, set, w) =
                (struct clocked_point){(double)(out.r.n_late + out.r.n_skipped),
                                       (double)out.r.n_released, out.r.energy / 1000, 0};
        ws_sbeet_outcome_deinit(&out);
    }
    const double missed = at(t, u, set, FIXED)->missed;
    at(t, u, set, WIDE)->least = least_joules(&s, &ws_dvfs_wide, missed);
    at(t, u, set, NARROW)->least = least_joules(&s, &ws_dvfs_narrow, missed);
}

/* ---- figures ---- */

static struct clocked_point sum(const struct clocked_study *t, int u, enum way w)
{
    struct clocked_point all = {0};
    for (int i = 0; i < t->n_sets; i++) {
        const struct clocked_point *p = at(t, u, i, w);
        all.missed += p->missed;
        all.released += p->released;
        all.joules += p->joules;
        all.least += p->least;
    }
    return all;
}

static int write_all(struct ws_experiment_run *x, const struct clocked_study *t)
{
    char file[80], plot[300];
    snprintf(file, sizeof(file), "own-dvfs-%s", t->name);
    FILE *f = ws_experiment_csv(x, file);
    if (!f)
        return -EIO;
    fputs("U", f);
    for (enum way w = 0; w < _WAY_N; w++)
        fprintf(f, ",%s: J,%s: missed %%", ways[w].label, ways[w].label);
    for (int u = 0; u < N_U; u++) {
        fprintf(f, "\n%.1f", utilisation(u));
        for (enum way w = 0; w < _WAY_N; w++) {
            struct clocked_point p = sum(t, u, w);
            fprintf(f, ",%.3f,%.4f", p.joules / t->n_sets, 100 * p.missed / p.released);
        }
    }
    fputc('\n', f);
    if (fclose(f))
        return -EIO;
    snprintf(plot, sizeof(plot),
             "set xlabel 'utilisation of the task set'\nset ylabel 'J in 15 s'\n"
             "plot for [c=2:6:2] '%s.csv' using 1:c with linespoints",
             file);
    ws_experiment_plot(x, file, plot);
    return 0;
}

static void compare(struct ws_experiment_run *x, const struct clocked_study *t, int u, enum way w)
{
    char what[120], note[200];
    struct clocked_point fixed = sum(t, u, FIXED), p = sum(t, u, w);
    double above = static_w() * DURATION_MS / 1000 * t->n_sets;
    snprintf(what, sizeof(what), "%s, U = %.1f, %s: J, %% of those at the default clocks", t->name,
             utilisation(u), ways[w].label);
    snprintf(note, sizeof(note),
             "%.0f of %.0f J in 15 s; above static power %.0f %%; missed %.0f, "
             "before %.0f, of %.0f",
             p.joules / t->n_sets, fixed.joules / t->n_sets,
             100 * (p.joules - above) / (fixed.joules - above), p.missed, fixed.missed, p.released);
    if (utilisation(u) < 1.1 && w == WIDE && !t->measured)
        ws_experiment_at_most(x, what, 90, 100 * p.joules / fixed.joules, note);
    else
        ws_experiment_compare(x, what, NAN, 100 * p.joules / fixed.joules, 0, WS_SPREAD_ABSOLUTE,
                              note);
    snprintf(what, sizeof(what), "%s, U = %.1f, %s: J, %%, below which nobody stays", t->name,
             utilisation(u), ways[w].label);
    ws_experiment_compare(x, what, NAN, 100 * p.least / fixed.joules, 0, WS_SPREAD_ABSOLUTE,
                          "who misses no more than at the default clocks");
}

static void compare_misses(struct ws_experiment_run *x, const struct clocked_study *t, enum way w)
{
    char what[120], note[120];
    double more = 0, most = 0;
    for (int i = 0; i < N_U * t->n_sets; i++) {
        int u = i / t->n_sets, set = i % t->n_sets;
        double d = at(t, u, set, w)->missed - at(t, u, set, FIXED)->missed;
        more += d > 0;
        most = fmax(most, d);
    }
    snprintf(what, sizeof(what), "%s, %s: sets with more misses than at the default clocks",
             t->name, ways[w].label);
    snprintf(note, sizeof(note), "of %d; at most %.0f jobs more", N_U * t->n_sets, most);
    ws_experiment_at_most(x, what, 0, more, note);
}

static int run_study(struct ws_experiment_run *x, bool measured)
{
    struct clocked_study t = {
        .name = measured ? "measured" : "ranges", .measured = measured, .seed = x->seed};
    struct ws_progress_bar progress;
    t.n_sets = x->quick ? QUICK_SETS : WS_MAX((int)lrint(SETS * x->scale), 1);
    size_t n = (size_t)N_U * (size_t)t.n_sets;
    t.points = ws_alloc_array(n * _WAY_N, sizeof(*t.points));
    if (!t.points)
        return ws_raise(-ENOMEM);
    ws_progress_bar_start(&progress, t.name, n);
    ws_parallel_for(n, x->n_jobs, run_set, &t, &progress);
    ws_progress_bar_end(&progress);
    int r = t.failed ? ws_raise(-EINVAL) : write_all(x, &t);
    for (enum way w = WIDE; w < _WAY_N && !r; w++) {
        for (int u = 0; u < N_U; u++)
            compare(x, &t, u, w);
        compare_misses(x, &t, w);
    }
    free(t.points);
    return r;
}

static int run_own_dvfs(struct ws_experiment_run *x)
{
    int r = run_study(x, false);
    return r || x->quick ? r : run_study(x, true);
}

const struct ws_experiment ws_experiment_own_dvfs = {
    "own-dvfs", "our own, where it may choose clocks",
    "energy and misses with DVFS and without, on a GTX 1080 Ti and an RTX 2070 SUPER",
    run_own_dvfs};
