// SPDX-License-Identifier: Apache-2.0
/* The real-time papers' experiments with real processes: sBEET-mg's task sets on two GPUs, a
 * case study like that of GCAPS, STGM's sets of SMs, how soon a preemption takes effect, and how
 * exactly SMs divide a GPU.
 *
 * Live and simulated runs have the same tasks, the same policy object, and kernel times measured
 * on the same software GPU. They differ in everything between: processes, messages, the daemon,
 * the dispatcher, and the host's scheduler (whose delays the scaled clock divides by
 * time_scale). In the tables of live experiments, "paper" is the simulator's value. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "papers/experiments/experiment.h"
#include "papers/live/set.h"
#include "models/measured.h"
#include "papers/sets/gen_sbeet.h"

#define MISS_POINTS  2.0
#define ENERGY_SHARE 0.05

static double miss_percent(const struct ws_live_set_result *r)
{
    return r->released ? 100.0 * r->missed / r->released : 0;
}

/* ---- sBEET-mg ---- */

enum { SBEET_TASKS = 6 };

/* The eight kernels as ones of as many blocks as make the RTX 3070 busy twice over, which follow
 * what the authors measured on each number of SMs of both GPUs. */
static void sbeet_set(struct ws_live_set *s, const struct ws_sbeet_task *from, int n)
{
    enum { BLOCKS = 92 };
    s->n_tasks = n;
    for (int i = 0; i < n; i++) {
        const struct ws_measured_kernel *k = ws_measured_find("rtx3070", from[i].kernel);
        struct ws_live_task *t = &s->tasks[i];
        *t = (struct ws_live_task){.n_blocks = BLOCKS,
                                   .as = k->name,
                                   .period_ms = from[i].period,
                                   .deadline_ms = from[i].deadline,
                                   .offset_ms = from[i].offset,
                                   .priority = n - i};
        snprintf(t->name, sizeof(t->name), "%s%d", from[i].kernel, i);
    }
}

enum { SBEET_POLICIES_MAX = 4, SBEET_SETS = 4, SBEET_AGAIN = 2, TIMES_LONGER = 4 };
struct sbeet_design {
    const char *name;
    const char *policies[SBEET_POLICIES_MAX + 1];
    const double *utils;
    int n_utils, first_quick; /* --quick: from this one on */
};
struct sbeet_sum {
    int released[2], missed[2]; /* live, simulated */
    double mj[2];
    double late_percent; /* the largest */
    int n_left_out;
};

/* What is wrong in all runs of an experiment, as texts for the programs (papers/live/set.h). */
struct sbeet_trouble {
    int percents[5], n_percents;
    char usual[64], overrun[64];
};

static struct sbeet_trouble sbeet_trouble(const struct ws_experiment_run *x)
{
    struct sbeet_trouble t = {0};
    const int p = x->mispredict, spread[] = {100 - p, 100 - p / 2, 100 + p / 2, 100 + p};
    if (p > 0) {
        snprintf(t.usual, sizeof(t.usual), "%d,%d,100,%d,%d", spread[0], spread[1], spread[2],
                 spread[3]);
        memcpy(t.percents, spread, sizeof(spread));
        t.n_percents = WS_ARRAY_SIZE(spread);
    }
    if (x->overrun) {
        snprintf(t.overrun, sizeof(t.overrun), "100,100,100,%d", 100 * TIMES_LONGER);
        t.percents[t.n_percents++] = 100 * TIMES_LONGER;
    }
    return t;
}

static void make_trouble(const struct ws_experiment_run *x, const struct sbeet_trouble *t,
                         struct ws_live_set *s)
{
    for (int i = 0; i < s->n_tasks && *t->usual; i++)
        s->tasks[i].percents = t->usual;
    if (*t->overrun)
        s->tasks[0].percents = t->overrun;
    s->first_dies = x->death;
}

static int sbeet_one(struct ws_experiment_run *x, const struct sbeet_design *d,
                     const struct ws_live_set *s, double util, int set, FILE *f,
                     struct sbeet_sum *sums)
{
    for (int p = 0; d->policies[p]; p++) {
        struct ws_live_set_result r[2];
        if (ws_live_set_run(x, s, d->policies[p], NULL, &r[0]) ||
            ws_live_set_machine(s, d->policies[p], NULL, &r[1]))
            return -EIO;
        for (int i = 0; i < 2; i++) {
            if (s->first_dies) { /* only the others are compared */
                r[i].released -= r[i].tasks[0].released;
                r[i].missed -= r[i].tasks[0].missed;
            }
            sums[p].released[i] += r[i].released;
            sums[p].missed[i] += r[i].missed;
            sums[p].mj[i] += r[i].energy_mj;
        }
        sums[p].late_percent = fmax(sums[p].late_percent, r[0].late_percent);
        sums[p].n_left_out += r[0].n_left_out;
        fprintf(f, "%g,%d,%s,%d,%d,%.3f,%d,%d,%.3f,%.1f,%d\n", util, set, d->policies[p],
                r[0].released, r[0].missed, r[0].energy_mj / s->duration_ms, r[1].released,
                r[1].missed, r[1].energy_mj / s->duration_ms, r[0].late_percent, r[0].n_left_out);
        fflush(f);
    }
    return 0;
}

static void sbeet_compare(struct ws_experiment_run *x, const struct sbeet_design *d, double util,
                          const struct sbeet_sum *sums)
{
    for (int p = 0; d->policies[p]; p++) {
        char text[96], note[160];
        const struct sbeet_sum *s = &sums[p];
        double miss[2];
        for (int i = 0; i < 2; i++)
            miss[i] = 100.0 * s->missed[i] / WS_MAX(s->released[i], 1);
        snprintf(
            note, sizeof(note),
            "%d jobs live, %d simulated; the host was late for up to %.0f %%, %d runs left out",
            s->released[0], s->released[1], s->late_percent, s->n_left_out);
        snprintf(text, sizeof(text), "U = %g, %s: missed (%%)", util, d->policies[p]);
        ws_experiment_compare(x, text, miss[1], miss[0], MISS_POINTS, WS_SPREAD_ABSOLUTE, note);
        snprintf(text, sizeof(text), "U = %g, %s: energy (mJ)", util, d->policies[p]);
        ws_experiment_compare(x, text, x->death ? NAN : s->mj[1], s->mj[0], ENERGY_SHARE,
                              WS_SPREAD_RELATIVE, "");
    }
}

static int run_sbeet_design(struct ws_experiment_run *x, const struct sbeet_design *d)
{
    int n_sets = x->quick ? 1 : WS_MAX((int)lround(SBEET_SETS * x->scale), 1), r = 0;
    ws_experiment_gpus("rtx3070,t400");
    char store[4096];
    snprintf(store, sizeof(store), "%s/%s.db", x->folder, d->name);
    const struct sbeet_trouble trouble = sbeet_trouble(x);
    FILE *f = ws_live_measured_store(store, trouble.percents, trouble.n_percents) ||
                      ws_live_measured_profile(store)
                  ? NULL
                  : ws_experiment_csv(x, d->name);
    if (!f)
        return -EIO;
    puts("timing = measured: kernels take the times and powers that the authors measured");
    fprintf(f, "util,set,policy,live jobs,live missed,live (W),simulated jobs,simulated "
               "missed,simulated (W),host late (%%),runs left out\n");
    for (int u = x->quick ? d->first_quick : 0; u < d->n_utils && !r; u++) {
        struct sbeet_sum sums[SBEET_POLICIES_MAX] = {0};
        for (int k = 0; k < n_sets && !r; k++) {
            struct ws_sbeet_task tasks[SBEET_TASKS];
            struct ws_gen_sbeet g = {.seed = x->seed * 100 + (uint64_t)k,
                                     .n_tasks = SBEET_TASKS,
                                     .util = d->utils[u],
                                     .ref_sm = 24};
            struct ws_live_set s = {.gpus = "rtx3070,t400",
                                    .duration_ms = x->quick ? 400 : 1000,
                                    .time_scale = 30,
                                    .follow = store,
                                    .n_slots = 2,
                                    .n_again = x->quick ? 0 : SBEET_AGAIN};
            r = ws_gen_sbeet(&g, tasks);
            if (r)
                break;
            sbeet_set(&s, tasks, SBEET_TASKS);
            make_trouble(x, &trouble, &s);
            r = ws_live_set_measure(&s);
            if (!r)
                r = sbeet_one(x, d, &s, d->utils[u], k, f, sums);
        }
        if (!r)
            sbeet_compare(x, d, d->utils[u], sums);
    }
    if (fclose(f) && !r)
        r = -EIO;
    char plot[240];
    snprintf(plot, sizeof(plot),
             "set style data histograms\nset style fill solid 0.7\nset ylabel 'W'\n"
             "set xtics rotate by -45\nplot '%s.csv' using 6:xtic(3), '' using 9\n",
             d->name);
    if (!r)
        ws_experiment_plot(x, d->name, plot);
    return r < 0 ? -EIO : r;
}

static int run_sbeet(struct ws_experiment_run *x)
{
    static const double utils[] = {1.4, 2.2};
    static const struct sbeet_design design = {
        "live-sbeet", {"sbeet-mg", "lcf", "bcf", "load-dist"}, utils, WS_ARRAY_SIZE(utils), 1};
    return run_sbeet_design(x, &design);
}

const struct ws_experiment ws_experiment_live_sbeet = {
    "live-sbeet", "sBEET-mg, Fig. 7",
    "task sets on an RTX 3070 and a T400: misses and power, live and simulated", run_sbeet};

/* Our own policy, on the same sets. */
static int run_own(struct ws_experiment_run *x)
{
    static const double utils[] = {0.6, 1.0, 1.4, 1.8, 2.2};
    static const struct sbeet_design design = {
        "live-own", {"wattshare", "sbeet-mg"}, utils, WS_ARRAY_SIZE(utils), 4};
    return run_sbeet_design(x, &design);
}

const struct ws_experiment ws_experiment_live_own = {
    "live-own", "our own, on sBEET-mg's task sets",
    "wattshare and sbeet-mg: misses and power, live and simulated", run_own};

/* ---- GCAPS ---- */

/* The case study of Table 5 (see gcaps-table5), less its task without GPU work: CPU part, GPU
 * part, period. */
static const struct {
    double cpu_ms, gpu_ms, period_ms,
        offset_ms; /* the best-effort one is under way when the others come */
} case_tasks[] = {{2, 10, 100, 20},
                  {4, 12, 150, 15},
                  {13.5, 13.5, 300, 10},
                  {2.5, 15.5, 400, 5},
                  {8, 44, 200, 0}};
enum { CASE_TASKS = WS_ARRAY_SIZE(case_tasks), CASE_BEST_EFFORT = CASE_TASKS - 1 };

struct how {
    const char *label, *policy, *options;
    enum ws_rtsim_policy sim;
    double slice_ms;
};
static const struct how case_hows[] = {
    {"gcaps", "gcaps", NULL, WS_RTSIM_GCAPS, 1},
    {"by priority, not preempted", "fifo", "\"order=priority\"", WS_RTSIM_MPCP, 1},
    {"rr", "rr", "\"slice=1\"", WS_RTSIM_RR, 1},
    {"fifo", "fifo", NULL, WS_RTSIM_FMLP, 1},
};
enum { CASE_HOWS = WS_ARRAY_SIZE(case_hows) };

/* Puts what came out into the table of the experiment and @f. @slack_ms: what live and simulated
 * worst responses may differ by. */
static void compare_responses(struct ws_experiment_run *x, const struct ws_live_set *s,
                              const char *label, const struct ws_live_set_result *live,
                              const struct ws_live_set_result *sim, double slack_ms, FILE *f)
{
    for (int i = 0; i < s->n_tasks; i++) {
        char text[96], note[96];
        const struct ws_live_task_result *a = &live->tasks[i], *b = &sim->tasks[i];
        snprintf(text, sizeof(text), "%s, %s: longest response (ms)", label, s->tasks[i].name);
        snprintf(note, sizeof(note), "mean %.2f, simulated %.2f; %d jobs", a->mean_ms, b->mean_ms,
                 a->released);
        ws_experiment_compare(x, text, b->worst_ms, a->worst_ms, slack_ms, WS_SPREAD_ABSOLUTE,
                              note);
        fprintf(f, "\"%s, %s\",%.4f,%.4f,%.4f,%.4f,%d,%d\n", label, s->tasks[i].name, a->worst_ms,
                a->mean_ms, b->worst_ms, b->mean_ms, a->missed, b->missed);
    }
    ws_experiment_compare(x, "missed (%)", miss_percent(sim), miss_percent(live), MISS_POINTS,
                          WS_SPREAD_ABSOLUTE, label);
    fflush(f);
}

#define RESPONSE_HEADS                                                                             \
    "task,live longest,live mean,simulated longest,simulated mean,live missed,simulated missed\n"

static void plot_responses(struct ws_experiment_run *x, const char *name)
{
    char commands[512];
    snprintf(commands, sizeof(commands),
             "set style data histograms\nset style fill solid 0.7\nset xtics rotate by -60\nset "
             "ylabel 'ms'\nplot '%s.csv' using 2:xtic(1), '' using 4\n",
             name);
    ws_experiment_plot(x, name, commands);
}

static int run_gcaps(struct ws_experiment_run *x)
{
    enum { SMS = 8 }; /* of the Xavier */
    const double block_ms = 0.5;
    struct ws_live_set s = {.gpus = "xavier",
                            .n_tasks = CASE_TASKS,
                            .duration_ms = x->quick ? 300 : 1200,
                            .time_scale = x->quick ? 15 : 30};
    for (int i = 0; i < CASE_TASKS; i++) {
        struct ws_live_task *t = &s.tasks[i];
        *t = (struct ws_live_task){.n_blocks = SMS * (int)lround(case_tasks[i].gpu_ms / block_ms),
                                   .block_ms = block_ms,
                                   .period_ms = case_tasks[i].period_ms,
                                   .offset_ms = case_tasks[i].offset_ms,
                                   .cpu_ms = case_tasks[i].cpu_ms,
                                   .priority = i == CASE_BEST_EFFORT ? 0 : 10 * (CASE_TASKS - i)};
        t->deadline_ms = i == CASE_BEST_EFFORT ? 0 : t->period_ms;
        snprintf(t->name, sizeof(t->name), i == CASE_BEST_EFFORT ? "besteffort" : "task%d", i + 1);
    }
    ws_experiment_gpus(s.gpus);
    FILE *f = ws_experiment_csv(x, "live-gcaps");
    if (!f)
        return -EIO;
    fprintf(f, RESPONSE_HEADS);
    struct ws_live_set_result live[CASE_HOWS], sim;
    int r = ws_live_set_measure(&s), n = x->quick ? 2 : CASE_HOWS;
    for (int k = 0; k < n && !r; k++) {
        const struct how *h = &case_hows[k];
        r = ws_live_set_run(x, &s, h->policy, h->options, &live[k]);
        if (!r)
            r = ws_live_set_rtsim(&s, h->sim, h->slice_ms, &sim);
        if (!r)
            compare_responses(x, &s, h->label, &live[k], &sim, 2 * block_ms, f);
    }
    if (fclose(f) && !r)
        r = -EIO;
    if (r)
        return -EIO;
    char note[96];
    snprintf(note, sizeof(note), "%.2f against %.2f ms", live[0].tasks[0].worst_ms,
             live[1].tasks[0].worst_ms);
    ws_experiment_claim(x, "preemption shortens the longest response of the most urgent task",
                        live[0].tasks[0].worst_ms < live[1].tasks[0].worst_ms, note);
    plot_responses(x, "live-gcaps");
    return 0;
}

const struct ws_experiment ws_experiment_live_gcaps = {
    "live-gcaps", "GCAPS, Table 5",
    "five tasks with priorities: response times with and without preemption, rr and fifo",
    run_gcaps};

/* ---- STGM ---- */

static int run_stgm(struct ws_experiment_run *x)
{
    static const struct {
        const char *label;
        int first[4], n[4];
    } ways[] = {{"exclusive sets", {0, 2, 4, 6}, {2, 2, 2, 2}},
                {"two pairs that share", {0, 0, 4, 4}, {4, 4, 4, 4}},
                {"all on the whole GPU", {0, 0, 0, 0}, {8, 8, 8, 8}}};
    static const struct {
        int n_blocks;
        double block_ms, period_ms;
    } tasks[4] = {{16, 0.5, 40}, {32, 0.5, 60}, {32, 1, 120}, {64, 1, 200}};
    struct ws_live_set s = {
        .gpus = "xavier", .n_tasks = 4, .duration_ms = x->quick ? 250 : 600, .time_scale = 20};
    for (int i = 0; i < 4; i++) {
        s.tasks[i] = (struct ws_live_task){.n_blocks = tasks[i].n_blocks,
                                           .block_ms = tasks[i].block_ms,
                                           .period_ms = tasks[i].period_ms,
                                           .deadline_ms = tasks[i].period_ms,
                                           .offset_ms = i, /* arrivals have an order */
                                           .priority = 40 - 10 * i};
        snprintf(s.tasks[i].name, sizeof(s.tasks[i].name), "task%d", i + 1);
    }
    ws_experiment_gpus(s.gpus);
    FILE *f = ws_experiment_csv(x, "live-stgm");
    if (!f)
        return -EIO;
    fprintf(f, RESPONSE_HEADS);
    int r = ws_live_set_measure(&s);
    for (size_t k = 0; k < WS_ARRAY_SIZE(ways) && !r; k++) {
        struct ws_live_set_result live, sim;
        for (int i = 0; i < 4; i++) {
            s.tasks[i].first_sm = ways[k].first[i];
            s.tasks[i].n_sms = ways[k].n[i];
        }
        r = ws_live_set_run(x, &s, "stgm", NULL, &live);
        if (!r)
            r = ws_live_set_rtsim(&s, WS_RTSIM_STGM, 1, &sim);
        if (!r)
            compare_responses(x, &s, ways[k].label, &live, &sim, 1, f);
    }
    if (fclose(f) && !r)
        r = -EIO;
    if (!r)
        plot_responses(x, "live-stgm");
    return r ? -EIO : 0;
}

const struct ws_experiment ws_experiment_live_stgm = {
    "live-stgm", "STGM", "four tasks with sets of SMs of their own, shared by two, shared by all",
    run_stgm};

/* ---- how soon a preemption takes effect ---- */

static int run_preempt(struct ws_experiment_run *x)
{
    enum { SMS = 8 };
    const double block_ms = 2, urgent_ms = 1;
    struct ws_live_set s = {
        .gpus = "xavier",
        .n_tasks = 2,
        .duration_ms = x->quick ? 200 : 2000,
        .time_scale = 30,
        .tasks = {{"urgent", SMS, 1, 23, 23, 5, 0, 10, 0, 0},
                  {"long", SMS * 50, 2, 110, 0, 0, 0, 0, 0, 0}},
    };
    ws_experiment_gpus(s.gpus);
    FILE *f = ws_experiment_csv(x, "live-preempt");
    if (!f)
        return -EIO;
    fprintf(f, RESPONSE_HEADS);
    struct ws_live_set_result live, sim;
    int r = ws_live_set_measure(&s);
    if (!r)
        r = ws_live_set_run(x, &s, "gcaps", NULL, &live);
    if (!r)
        r = ws_live_set_rtsim(&s, WS_RTSIM_GCAPS, 1, &sim);
    if (!r) {
        compare_responses(x, &s, "gcaps", &live, &sim, 1.1 * block_ms, f);
        char note[160];
        const struct ws_live_task_result *u = &live.tasks[0];
        snprintf(note, sizeof(note),
                 "95 %% of %d within %.3f ms, the longest %.3f, copies and the host's delays "
                 "included; blocks of %.3f ms",
                 u->released, u->most_run_ms - urgent_ms, u->worst_run_ms - urgent_ms,
                 s.tasks[1].block_ms);
        ws_experiment_claim(x, "an urgent job starts within one block of the running kernel",
                            u->most_run_ms - urgent_ms <= 1.05 * s.tasks[1].block_ms, note);
    }
    if (fclose(f) && !r)
        r = -EIO;
    return r ? -EIO : 0;
}

const struct ws_experiment ws_experiment_live_preempt = {
    "live-preempt", "GCAPS, run-time overhead",
    "how long an urgent job waits for the kernel it preempts", run_preempt};

/* ---- shares ---- */

static int run_share(struct ws_experiment_run *x)
{
    enum { SMS = 30, SMALL = 3, BLOCKS = 54 };
    const double window_ms = x->quick ? 100 : 400;
    struct ws_live_set s = {
        .gpus = "tesla-c1060",
        .n_tasks = 2,
        .duration_ms = window_ms,
        .time_scale = 20,
        .tasks = {{"tenth", BLOCKS, 0.5, 0, 0, 0, 0, 0, 0, SMALL},
                  {"rest", BLOCKS, 0.5, 0, 0, 0, 0, 0, SMALL, SMS - SMALL}},
    };
    struct ws_live l;
    char log[4096];
    snprintf(log, sizeof(log), "%s/%s.log", x->folder, x->name);
    ws_experiment_gpus(s.gpus);
    FILE *f = ws_experiment_csv(x, "live-share");
    if (!f)
        return -EIO;
    fprintf(f, "window (ms),tenth (SM ms),rest (SM ms),share (%%)\n");
    int r = ws_live_set_measure(&s);
    struct ws_live_wish wish = {
        .gpus = s.gpus,
        .policy = "stgm",
        .tasks = "task tenth {\n sms = \"0-2\"\n}\ntask rest {\n sms = \"3-29\"\n}\n",
        .time_scale = s.time_scale,
        .log = log};
    if (!r) {
        r = ws_live_start(&l, &wish);
        for (int i = 0; i < 2 && !r; i++)
            r = ws_live_addf(&l, s.tasks[i].name,
                             "steps --blocks %d --length %d --warm 1 --for-ms %g", BLOCKS,
                             s.length[i], window_ms + 50) < 0;
        if (!r)
            r = ws_live_run(&l, 120);
        /* Time on the device in windows of 100 ms: of each job, what lies in it. */
        for (double from = l.base_ms + 10; !r && from + 100 <= l.base_ms + window_ms + 10;
             from += 100) {
            double sm_ms[2] = {0};
            for (int i = 0; i < 2; i++)
                for (int k = 0; k < l.programs[i].n_jobs; k++) {
                    const struct ws_live_job *j = &l.programs[i].jobs[k];
                    double in = fmin(j->end_ms, from + 100) - fmax(j->start_ms, from);
                    if (in > 0)
                        sm_ms[i] += in / (j->end_ms - j->start_ms) * BLOCKS * s.tasks[i].block_ms;
                }
            double share = 100 * sm_ms[0] / (sm_ms[0] + sm_ms[1]);
            fprintf(f, "%g,%.3f,%.3f,%.3f\n", from - l.base_ms, sm_ms[0], sm_ms[1], share);
            ws_experiment_compare(x, "share of 3 of 30 SMs in 100 ms (%)", 10, share, 2,
                                  WS_SPREAD_ABSOLUTE, "\"paper\" is what the SMs should give");
        }
        ws_live_stop(&l);
    }
    if (fclose(f) && !r)
        r = -EIO;
    return r ? -EIO : 0;
}

const struct ws_experiment ws_experiment_live_share = {
    "live-share", "STGM", "two programs on 3 and 27 SMs: their shares of the device's time",
    run_share};
