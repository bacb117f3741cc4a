// SPDX-License-Identifier: Apache-2.0
/* A day of EDL's tasks (Mei et al., Section 4), scaled down, on a private Slurm cluster of this
 * machine, beside the simulator with the same tasks. slurm/cluster/edl.sh runs a day.
 *
 * Two programs are measured alone on a GPU of the cluster at three settings of the clocks. Their
 * models (models/dvfs.h) are what the planner and the simulator know of them. The simulator starts
 * jobs and switches servers on in no time; Slurm does not, so the planner is told to allow for
 * that, and deadlines leave room for it. What the idle GPUs of a node take until it runs its first
 * job is what the simulator counts for switching it on: the live day says how long that is. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "papers/experiments/experiment.h"
#include "papers/live/slurm.h"
#include "papers/sets/random.h"
#include "papers/sim/cluster.h"

enum { NODES = 4, PER_NODE = 2, PROGRAMS = 2, CLOCKS = 3, TASKS_MAX = 64 };
#define SCALE        100000 /* seconds of the host for one of device time */
#define MARGIN_S     3.0    /* of a job: Slurm, and the program's start */
#define TURN_ON_S    10.0   /* from the order to switch a node on until it runs a job, at most */
#define BREAK_EVEN_S 25.0
#define THETA        "0.9"

static const char *const programs[PROGRAMS] = {"core", "memory"};
static const char *const ways[] = {"edl", "edf-bf", "backfill"};
enum { EDL, EDF_BF, BACKFILL, WAYS };

struct day_task {
    int program, n_launches;
    struct ws_cluster_task v;
    double length; /* at the default clocks */
};
struct day {
    struct ws_dvfs_task launch[PROGRAMS]; /* the model of one */
    double idle_w;
    struct day_task tasks[TASKS_MAX];
    int n;
};
struct day_outcome {
    double j, idle_j;
    int turn_ons, pairs, missed;
    double on_s; /* of a live day: from the order to switch a node on to its first job */
};

/* ---- the programs ---- */

/* From the time and the energy of a launch at the clocks (V, core, memory) of edl.sh: (1, 1, 1),
 * (0.8, 0.7, 1), (1, 1, 0.7). */
static struct ws_dvfs_task model_of(const double s[CLOCKS], const double j[CLOCKS])
{
    const double slower = 1 / 0.7 - 1, less_core = 1 - 0.8 * 0.8 * 0.7, less_memory = 1 - 0.7;
    double core_s = fmax(s[1] - s[0], 0) / slower, memory_s = fmax(s[2] - s[0], 0) / slower,
           w[CLOCKS];
    for (int i = 0; i < CLOCKS; i++)
        w[i] = j[i] / s[i];
    struct ws_dvfs_task t = {.d = fmin(core_s + memory_s, s[0]),
                             .delta = core_s / (core_s + memory_s),
                             .gamma = fmax(w[0] - w[2], 0) / less_memory,
                             .c = fmax(w[0] - w[1], 0) / less_core};
    t.t0 = s[0] - t.d;
    t.p0 = w[0] - t.gamma - t.c;
    return t;
}

static int measure(struct day *d)
{
    FILE *f = ws_slurm_script("edl.sh", "profile %d", SCALE);
    if (!f)
        return -EIO;
    bool ok = true;
    for (int i = 0; i < PROGRAMS && ok; i++) {
        double s[CLOCKS], j[CLOCKS];
        for (int k = 0; k < CLOCKS && ok; k++)
            ok = fscanf(f, "%*s %*f %*f %*f %lf %lf", &s[k], &j[k]) == 2;
        if (ok)
            d->launch[i] = model_of(s, j);
    }
    ok = ok && fscanf(f, " idle %lf", &d->idle_w) == 1;
    int r = ws_slurm_script_end(f);
    return ok ? r : -EIO;
}

/* ---- the tasks ---- */

static int by_arrival(const void *a, const void *b)
{
    const struct day_task *x = a, *y = b;
    return (x->v.arrival > y->v.arrival) - (x->v.arrival < y->v.arrival);
}

/* As in the paper, a deadline is the arrival and the length divided by a utilisation that is drawn;
 * here with what Slurm takes. */
static void draw(struct day *d, uint64_t seed, int n, double day_s)
{
    struct ws_random random;
    ws_random_init(&random, seed);
    d->n = n;
    for (int i = 0; i < n; i++) {
        struct day_task *t = &d->tasks[i];
        t->program = (int)ws_random_integer(&random, 0, PROGRAMS - 1);
        t->n_launches = (int)ws_random_integer(&random, 2, 7);
        t->v.dvfs = d->launch[t->program];
        t->v.dvfs.d *= t->n_launches;
        t->v.dvfs.t0 *= t->n_launches;
        t->length = t->v.dvfs.d + t->v.dvfs.t0;
        t->v.arrival = ws_random_uniform(&random, 0, day_s);
        t->v.deadline =
            t->v.arrival + MARGIN_S + TURN_ON_S + t->length / ws_random_uniform(&random, 0.3, 0.9);
    }
    qsort(d->tasks, (size_t)n, sizeof(d->tasks[0]), by_arrival);
    for (int i = 0; i < n; i++)
        d->tasks[i].v.id = i;
}

static FILE *open_in(const struct ws_experiment_run *x, const char *name)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/%s", x->folder, name);
    FILE *f = fopen(path, "w");
    if (!f)
        fprintf(stderr, "wattshare: %s: %s\n", path, strerror(errno));
    return f;
}

static int write_tasks(const struct ws_experiment_run *x, const struct day *d)
{
    FILE *f = open_in(x, "tasks");
    for (int i = 0; f && i < d->n; i++) {
        const struct day_task *t = &d->tasks[i];
        fprintf(f, "%.3f %s %d %.3f %.3f\n", t->v.arrival, programs[t->program], t->n_launches,
                t->length, t->v.deadline);
    }
    return f && !fclose(f) ? 0 : -EIO;
}

static int write_planner(const struct ws_experiment_run *x, const struct day *d, const char *policy)
{
    FILE *f = open_in(x, "planner.conf");
    if (!f)
        return -EIO;
    fprintf(f,
            "policy = \"%s\"\ntheta = " THETA "\nmargin_s = %g\nturn_on_s = %g\nturn_on_j = %.3f\n"
            "gpu rtx3070 { static_w = %.3f dynamic_w = 75 idle_w = %.3f }\n",
            policy, MARGIN_S, TURN_ON_S, BREAK_EVEN_S * d->idle_w, d->idle_w, d->idle_w);
    for (int i = 0; i < PROGRAMS; i++) {
        const struct ws_dvfs_task *t = &d->launch[i];
        fprintf(f,
                "model { task = \"%s\" gpu = \"rtx3070\" p0 = %.4f gamma = %.4f c = %.4f t0 = %.5f "
                "d = %.5f delta = %.5f }\n",
                programs[i], t->p0, t->gamma, t->c, t->t0, t->d, t->delta);
    }
    return fclose(f) ? -EIO : 0;
}

/* ---- a day ---- */

static int simulate(const struct day *d, const char *policy, double on_s, struct day_outcome *ret)
{
    struct ws_cluster_task tasks[TASKS_MAX];
    const struct ws_cluster c = {.n_pairs = NODES * PER_NODE,
                                 .pairs_per_server = PER_NODE,
                                 .idle_w = d->idle_w,
                                 .turn_on_j = on_s * d->idle_w};
    struct ws_cluster_result result;
    char rho[32], error[256] = "";
    const char *options[] = {"interval=wide", "slot=0", rho,
                             strcmp(policy, "edl") ? NULL : "theta=" THETA, NULL};
    for (int i = 0; i < d->n; i++)
        tasks[i] = d->tasks[i].v;
    snprintf(rho, sizeof(rho), "rho=%g", BREAK_EVEN_S);
    int r = ws_cluster_run(&c, tasks, (size_t)d->n, ws_policy_find(policy), options, NULL, &result,
                           error, sizeof(error));
    if (r) {
        fprintf(stderr, "wattshare: %s: %s\n", policy, error);
        return -EIO;
    }
    *ret = (struct day_outcome){.j = result.e_total,
                                .idle_j = result.e_idle + result.e_turn_on,
                                .turn_ons = (int)result.n_servers_on,
                                .pairs = result.n_pairs_used,
                                .missed = (int)result.n_missed};
    return 0;
}

static int run_day(const struct ws_experiment_run *x, const char *way, struct day_outcome *ret)
{
    /* The script works in another folder, and the name may hold any characters. */
    char *folder = realpath(x->folder, NULL);
    FILE *f = NULL;
    if (!folder || setenv("WATTSHARE_FOLDER", folder, 1))
        fprintf(stderr, "wattshare: %s: %s\n", x->folder, strerror(errno));
    else
        f = ws_slurm_script("edl.sh", "day %d %s %d %g \"$WATTSHARE_FOLDER\"", SCALE, way, NODES,
                            BREAK_EVEN_S);
    free(folder);
    if (!f)
        return -EIO;
    int n = fscanf(f, "%lf %lf %d %d %d %lf", &ret->j, &ret->idle_j, &ret->turn_ons, &ret->pairs,
                   &ret->missed, &ret->on_s);
    int r = ws_slurm_script_end(f);
    return n == 6 ? r : -EIO;
}

static void put(FILE *f, const char *way, const char *how, const struct day_outcome *o)
{
    fprintf(f, "%s %s,%.1f,%.1f,%d,%d,%d\n", way, how, o->j, o->idle_j, o->turn_ons, o->pairs,
            o->missed);
    fflush(f);
}

static void compare(struct ws_experiment_run *x, const struct day *d, const char *way,
                    const struct day_outcome *simulated, const struct day_outcome *live)
{
    char text[64], note[128];
    snprintf(text, sizeof(text), "%s: energy, J", way);
    snprintf(note, sizeof(note),
             "\"paper\": the simulator; idle %.0f and %.0f J; a node comes up in %.1f s",
             simulated->idle_j, live->idle_j, live->on_s);
    ws_experiment_compare(x, text, simulated->j, live->j, 0.05, WS_SPREAD_RELATIVE, note);
    snprintf(text, sizeof(text), "%s: missed, %%", way);
    ws_experiment_compare(x, text, 100.0 * simulated->missed / d->n, 100.0 * live->missed / d->n, 2,
                          WS_SPREAD_ABSOLUTE, "late or refused");
    snprintf(text, sizeof(text), "%s: servers switched on", way);
    ws_experiment_compare(x, text, simulated->turn_ons, live->turn_ons, 1, WS_SPREAD_ABSOLUTE, "");
    snprintf(text, sizeof(text), "%s: GPUs with work", way);
    ws_experiment_compare(x, text, simulated->pairs, live->pairs, 1, WS_SPREAD_ABSOLUTE, "");
}

static void compare_ways(struct ws_experiment_run *x, const struct day *d,
                         const struct day_outcome live[WAYS])
{
    ws_experiment_compare(x, "backfill: missed, %", NAN, 100.0 * live[BACKFILL].missed / d->n, 0,
                          WS_SPREAD_ABSOLUTE, "Slurm's own scheduling, which knows no deadlines");
    for (int i = 1; i < WAYS; i++) {
        char text[64];
        snprintf(text, sizeof(text), "EDL saves of the energy of %s, %%", ways[i]);
        ws_experiment_compare(x, text, NAN, 100 * (1 - live[EDL].j / live[i].j), 0,
                              WS_SPREAD_ABSOLUTE, "live");
    }
    ws_experiment_claim(x, "EDL takes less energy than Slurm's backfill",
                        live[EDL].j < live[BACKFILL].j, "live");
}

static int run_all(struct ws_experiment_run *x, struct day *d, FILE *f)
{
    struct day_outcome simulated[WAYS], live[WAYS];
    for (int i = 0; i < WAYS; i++) {
        int r = i == BACKFILL ? 0 : write_planner(x, d, ways[i]);
        if (!r)
            r = run_day(x, ways[i], &live[i]);
        if (!r && i != BACKFILL)
            r = simulate(d, ways[i], live[i].on_s, &simulated[i]);
        if (r)
            return r;
        put(f, ways[i], "live", &live[i]);
        if (i == BACKFILL)
            continue;
        put(f, ways[i], "simulated", &simulated[i]);
        compare(x, d, ways[i], &simulated[i], &live[i]);
    }
    compare_ways(x, d, live);
    return 0;
}

static int run_edl(struct ws_experiment_run *x)
{
    struct day d = {0};
    ws_experiment_gpus("rtx3070");
    int r = measure(&d);
    if (r)
        return r;
    draw(&d, x->seed, x->quick ? 6 : 24, x->quick ? 60 : 240);
    FILE *f = ws_experiment_csv(x, "slurm-edl");
    r = f ? write_tasks(x, &d) : -EIO;
    if (f)
        fprintf(f, "way,energy (J),idle (J),servers on,GPUs with work,missed\n");
    if (!r)
        r = run_all(x, &d, f);
    if (f && fclose(f) && !r)
        r = -EIO;
    if (!r)
        ws_experiment_plot(x, "slurm-edl",
                           "set style data histograms\nset style fill solid 0.7\nset ylabel "
                           "'J'\nset yrange [0:*]\nset xtics rotate by -20\nplot 'slurm-edl.csv' "
                           "using 2:xtic(1), '' using 3");
    return r;
}

const struct ws_experiment ws_experiment_slurm_edl = {
    "slurm-edl", "Mei et al., Section 4, under Slurm",
    "a day of tasks with deadlines on a private Slurm cluster: EDL, EDF-BF, Slurm's backfill",
    run_edl};
