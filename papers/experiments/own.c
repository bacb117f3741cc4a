// SPDX-License-Identifier: Apache-2.0
/* own-sbeet: our own policy against every policy that can run task sets of sBEET-mg (RTSS 2022),
 * on GPUs as in its Figs. 7, 8 and 13, with its own generator.
 *
 * A setting is a choice of GPUs and of what jobs do. Each setting has the same task sets. Their
 * seeds begin at seed·10^9, so that with any --seed they are others than those with which the
 * policy was made (1000 to 1059). Times are exact: runs have the clock of events, not the ticks of
 * the authors' simulator, so that figures of sbeet-mg differ a little from those of sbeet-fig7.
 *
 * Bounds: papers/analysis/least.h. Jobs that are missed take no energy, so that the bound on energy
 * is one for policies that miss nothing. The simple bound on energy is where the search for it
 * begins: each job takes what it takes where its SMs and its share of an awake GPU cost least, and
 * the share is 1 / slots, since not more jobs than that are on a GPU at a time. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cli/cli.h"
#include "papers/analysis/least.h"
#include "papers/common/parallel.h"
#include "papers/experiments/experiment.h"
#include "papers/sets/gen_sbeet.h"
#include "papers/sets/sbeet_set.h"

enum { N_U = 11, N_SETS = 60, QUICK_SETS = 6, POLICIES_MAX = 40, ROUNDS = 200, QUICK_ROUNDS = 8 };
#define DURATION_MS  15000.0
#define LATEST_EARLY 0.5 /* jobs take from half of their time on, where they are early */
#define OFF          0.3 /* by which they take less or more, where predictions are wrong */

struct setting {
    const char *name, *gpus;
    double early, over;
    bool redrawn; /* all phases at random; else every second set has fixed ones */
};
static const struct setting settings[] = {
    {"24", "rtx3070@24,t400", 0, 0, false},
    {"12", "rtx3070@12,t400", 0, 0, false},
    {"6", "rtx3070@6,t400", 0, 0, false},
    {"three", "rtx3070@12,rtx3070@12,t400", 0, 0, false},
    {"early", "rtx3070@24,t400", LATEST_EARLY, 0, false},
    {"off", "rtx3070@24,t400", OFF, OFF, false},
    {"redrawn", "rtx3070@24,t400", 0, 0, true},
};
enum { N_PAPER = 3 }; /* the first settings, which are sBEET-mg's design on two GPUs */

/* A policy, and what is counted of it in a run. */
struct contender {
    const char *name;
    const struct ws_policy_ops *ops;
    const char *const *options;
};
struct point {
    double released, missed, on_time, joules;
    double worst; /* the longest response as a share of its deadline */
};
/* What no policy can fall below. */
struct bound {
    double missed, joules, simple_joules;
};

struct contest {
    const struct setting *setting;
    struct contender contenders[POLICIES_MAX];
    int n_contenders, n_sets, n_rounds;
    uint64_t seed;
    struct point *points; /* [N_U][n_sets][n_contenders] */
    struct bound *bounds; /* [N_U][n_sets] */
    _Atomic int failed;
};
/* Of all contenders: our own policy stands first in the table of policies. */
enum { OWN, GREEDY };

static double utilisation(int u)
{
    return 0.2 + 0.2 * u;
}

static struct point *at(const struct contest *c, int u, int set, int contender)
{
    return &c->points[((size_t)u * (size_t)c->n_sets + (size_t)set) * (size_t)c->n_contenders +
                      (size_t)contender];
}

/* ---- runs ---- */

/* @own: what our own policy reached. */
static int find_bound(const struct contest *c, const struct ws_policy_system *s,
                      const struct point *own, struct bound *ret)
{
    struct ws_least l = {DURATION_MS, 1 - c->setting->early, c->n_rounds, own->missed};
    struct ws_least simple = {DURATION_MS, 1 - c->setting->early, 1, 0};
    int r = 0;
    *ret = (struct bound){0};
    if (own->missed > 0)
        r = ws_least_missed(&ret->missed, s, &l);
    ret->missed = ceil(ret->missed - 1e-6);
    l.reached = own->joules * 1000;
    if (!r)
        r = ws_least_energy(&ret->joules, s, &l);
    if (!r)
        r = ws_least_energy(&ret->simple_joules, s, &simple);
    ret->joules /= 1000;
    ret->simple_joules /= 1000;
    return r;
}

static void run_policy(struct contest *c, const struct ws_sbeet_set *s, const struct contender *who,
                       uint64_t seed, struct point *ret)
{
    struct ws_machine_options o = {.duration = DURATION_MS,
                                   .early = c->setting->early,
                                   .over = c->setting->over,
                                   .seed = seed};
    struct ws_sbeet_outcome r;
    if (ws_sbeet_set_run(&r, s, who->ops, who->options, &o)) {
        c->failed = 1;
    } else {
        *ret = (struct point){.released = (double)r.r.n_released,
                              .missed = (double)(r.r.n_late + r.r.n_skipped),
                              .on_time = (double)r.r.n_on_time,
                              .joules = r.r.energy / 1000};
        for (int i = 0; i < r.r.n_tasks; i++)
            ret->worst = fmax(ret->worst, r.r.worst_response[i] / s->system.tasks[i].deadline);
    }
    ws_sbeet_outcome_deinit(&r);
}

static void run_set(void *arg, size_t i)
{
    struct contest *c = arg;
    int u = (int)(i / (size_t)c->n_sets), set = (int)(i % (size_t)c->n_sets);
    struct ws_gen_sbeet g = ws_gen_sbeet_reference(utilisation(u), set);
    struct ws_sbeet_task tasks[WS_GEN_SBEET_MAX];
    struct ws_sbeet_set s = {0};
    struct ws_gpus gpus;
    char error[160];
    g.seed += c->seed * UINT64_C(1000000000);
    g.random_offsets |= c->setting->redrawn;
    if (ws_gpus_parse(&gpus, c->setting->gpus, error, sizeof(error)) || ws_gen_sbeet(&g, tasks) ||
        ws_sbeet_set_make(&s, &gpus, tasks, g.n_tasks, false, error, sizeof(error))) {
        c->failed = 1;
        return;
    }
    for (int p = 0; p < c->n_contenders; p++)
        run_policy(c, &s, &c->contenders[p], g.seed, at(c, u, set, p));
    if (find_bound(c, &s.system, at(c, u, set, OWN), &c->bounds[i]))
        c->failed = 1;
    ws_sbeet_set_deinit(&s);
    ws_gpus_deinit(&gpus);
}

static void add_contender(struct contest *c, const char *name, const struct ws_policy_ops *ops,
                          const char *const *options)
{
    if (c->n_contenders < POLICIES_MAX)
        c->contenders[c->n_contenders++] = (struct contender){name, ops, options};
}

static void gather(struct contest *c)
{
    static const char *const without_rollouts[] = {"budget=0", NULL};
    size_t n;
    const struct ws_policy_ops *const *all = ws_policy_all(&n);
    add_contender(c, "wattshare", ws_policy_find("wattshare"), NULL);
    add_contender(c, "wattshare budget=0", ws_policy_find("wattshare"), without_rollouts);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i]->name, "wattshare") && ws_sbeet_set_knows(all[i]))
            add_contender(c, all[i]->name, all[i], NULL);
}

static int run_contest(struct ws_experiment_run *x, struct contest *c, const struct setting *s)
{
    struct ws_progress_bar progress;
    *c = (struct contest){.setting = s, .seed = x->seed};
    c->n_rounds = x->quick ? QUICK_ROUNDS : ROUNDS;
    c->n_sets = x->quick ? QUICK_SETS : WS_MAX((int)lrint(N_SETS * x->scale), 4);
    gather(c);
    size_t n = (size_t)N_U * (size_t)c->n_sets;
    c->points = ws_alloc_array(n * (size_t)c->n_contenders, sizeof(*c->points));
    c->bounds = ws_alloc_array(n, sizeof(*c->bounds));
    if (!c->points || !c->bounds)
        return ws_raise(-ENOMEM);
    ws_progress_bar_start(&progress, s->gpus, n);
    ws_parallel_for(n, x->n_jobs, run_set, c, &progress);
    ws_progress_bar_end(&progress);
    return c->failed ? ws_raise(-EINVAL) : 0;
}

/* ---- figures ---- */

enum figure { MISS, JOULES, JOULES_PER_JOB, WORST, _WHAT_N };
static const char *const whats[_WHAT_N] = {"missed deadlines, %", "J in 15 s",
                                           "J for each job in time",
                                           "longest response as a share of its deadline"};

static double value(const struct point *p, enum figure what)
{
    switch (what) {
    case MISS:
        return 100 * p->missed / p->released;
    case JOULES:
        return p->joules;
    case JOULES_PER_JOB:
        return p->joules / fmax(p->on_time, 1);
    default:
        return p->worst;
    }
}

static double mean(const struct contest *c, int u, int contender, enum figure what)
{
    double sum = 0;
    for (int i = 0; i < c->n_sets; i++)
        sum += value(at(c, u, i, contender), what);
    return sum / c->n_sets;
}

/* Half of the 95 % confidence interval of the mean. */
static double half_interval(const struct contest *c, int u, int contender, enum figure what)
{
    double m = mean(c, u, contender, what), sum2 = 0;
    for (int i = 0; i < c->n_sets; i++)
        sum2 += pow(value(at(c, u, i, contender), what) - m, 2);
    return ws_experiment_half_interval(sum2, c->n_sets);
}

static double mean_bound(const struct contest *c, int u, enum figure what)
{
    double sum = 0;
    for (int i = 0; i < c->n_sets; i++) {
        const struct bound *b = &c->bounds[u * c->n_sets + i];
        sum += what == MISS ? 100 * b->missed / at(c, u, i, OWN)->released : b->joules;
    }
    return sum / c->n_sets;
}

static double mean_simple_bound(const struct contest *c, int u)
{
    double sum = 0;
    for (int i = 0; i < c->n_sets; i++)
        sum += c->bounds[u * c->n_sets + i].simple_joules;
    return sum / c->n_sets;
}

static int find(const struct contest *c, const char *name)
{
    for (int p = 0; p < c->n_contenders; p++)
        if (!strcmp(c->contenders[p].name, name))
            return p;
    return OWN;
}

static int write_all(struct ws_experiment_run *x, const struct contest *c)
{
    char file[80];
    snprintf(file, sizeof(file), "own-sbeet-%s", c->setting->name);
    FILE *f = ws_experiment_csv(x, file);
    if (!f)
        return -EIO;
    fprintf(f,
            "U,policy,missed_percent,missed_ci95,joules,joules_ci95,joules_per_job_in_time,"
            "worst_response_of_deadline,bound_missed_percent,bound_joules,simple_bound_joules\n");
    for (int u = 0; u < N_U; u++)
        for (int p = 0; p < c->n_contenders; p++)
            fprintf(f, "%.1f,%s,%.4f,%.4f,%.3f,%.3f,%.5f,%.4f,%.4f,%.3f,%.3f\n", utilisation(u),
                    c->contenders[p].name, mean(c, u, p, MISS), half_interval(c, u, p, MISS),
                    mean(c, u, p, JOULES), half_interval(c, u, p, JOULES),
                    mean(c, u, p, JOULES_PER_JOB), mean(c, u, p, WORST), mean_bound(c, u, MISS),
                    mean_bound(c, u, JOULES), mean_simple_bound(c, u));
    return fclose(f) ? -EIO : 0;
}

/* A column for each policy, and one for the bound. */
static int draw(struct ws_experiment_run *x, const struct contest *c, enum figure what)
{
    char file[80], plot[500];
    snprintf(file, sizeof(file), "own-sbeet-%s-%s", c->setting->name, what == MISS ? "miss" : "J");
    FILE *f = ws_experiment_csv(x, file);
    if (!f)
        return -EIO;
    fprintf(f, "U");
    for (int p = 0; p < c->n_contenders; p++)
        fprintf(f, ",%s", c->contenders[p].name);
    fputs(",lower bound", f);
    for (int u = 0; u < N_U; u++) {
        fprintf(f, "\n%.1f", utilisation(u));
        for (int p = 0; p < c->n_contenders; p++)
            fprintf(f, ",%.4f", mean(c, u, p, what));
        fprintf(f, ",%.4f", mean_bound(c, u, what));
    }
    fputc('\n', f);
    if (fclose(f))
        return -EIO;
    snprintf(plot, sizeof(plot),
             "set xlabel 'utilisation of the task set'\nset ylabel '%s'\n"
             "set title '%s, %d task sets each' noenhanced\n"
             "plot '%s.csv' using 1:2 with linespoints linewidth 3, "
             "for [c=3:%d] '' using 1:c with linespoints",
             whats[what], c->setting->gpus, c->n_sets, file, c->n_contenders + 2);
    ws_experiment_plot(x, file, plot);
    return 0;
}

/* Missed % / J of each policy, for people. */
static int print(const struct contest *c)
{
    const char *heads[N_U + 2] = {"policy"};
    char text[N_U][16];
    struct ws_table t;
    for (int u = 0; u < N_U; u++) {
        snprintf(text[u], sizeof(text[u]), "U = %.1f", utilisation(u));
        heads[u + 1] = text[u];
    }
    printf("\n%s", c->setting->gpus);
    if (c->setting->early > 0)
        printf(", jobs take %.0f to %.0f %% of their time", 100 - 100 * c->setting->early,
               100 + 100 * c->setting->over);
    printf("%s: missed deadlines in %% / J in 15 s, %d task sets each\n",
           c->setting->redrawn ? ", all phases at random" : "", c->n_sets);
    ws_table_init(&t, heads);
    for (int p = 0; p < c->n_contenders; p++) {
        ws_table_add(&t, "%s", c->contenders[p].name);
        for (int u = 0; u < N_U; u++)
            ws_table_add(&t, "%.2f / %.0f", mean(c, u, p, MISS), mean(c, u, p, JOULES));
    }
    ws_table_add(&t, "lower bound");
    for (int u = 0; u < N_U; u++)
        ws_table_add(&t, "%.2f / %.0f", mean_bound(c, u, MISS), mean_bound(c, u, JOULES));
    int r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    return r;
}

/* ---- what was wanted ---- */

static double total_missed(const struct contest *c, int contender)
{
    double sum = 0;
    for (int u = 0; u < N_U; u++)
        for (int i = 0; i < c->n_sets; i++)
            sum += at(c, u, i, contender)->missed;
    return sum;
}

/* Misses of all sets of a setting. */
struct totals {
    double own, theirs; /* sbeet-mg's */
    double least;       /* no policy avoids them */
};

static struct totals totals_of(const struct contest *c)
{
    struct totals t = {total_missed(c, OWN), total_missed(c, find(c, "sbeet-mg")), 0};
    for (int i = 0; i < N_U * c->n_sets; i++)
        t.least += c->bounds[i].missed;
    return t;
}

/* What any policy could reach of what is wanted. */
static void compare_bound(struct ws_experiment_run *x, const char *setting, const struct totals *t)
{
    char what[120], note[160];
    snprintf(what, sizeof(what), "%s: misses that no policy avoids, %% of sbeet-mg's", setting);
    snprintf(note, sizeof(note), "at least %.0f of %.0f; we miss %.0f", t->least, t->theirs,
             t->own);
    ws_experiment_compare(x, what, NAN, t->theirs > 0 ? 100 * t->least / t->theirs : 0, 0,
                          WS_SPREAD_ABSOLUTE, note);
}

static void compare_misses(struct ws_experiment_run *x, const char *setting, const struct totals *t)
{
    char what[120], note[160];
    snprintf(what, sizeof(what), "%s: misses, %% of sbeet-mg's", setting);
    snprintf(note, sizeof(note), "%.0f of %.0f", t->own, t->theirs);
    ws_experiment_at_most(x, what, 100.0 / 6, t->theirs > 0 ? 100 * t->own / t->theirs : 0, note);
    compare_bound(x, setting, t);
}

static void compare_sets(struct ws_experiment_run *x, const struct contest *c)
{
    int mg = find(c, "sbeet-mg"), n_more = 0;
    char what[120], note[160];
    double most = 0;
    for (int u = 0; u < N_U; u++)
        for (int i = 0; i < c->n_sets; i++) {
            double more = at(c, u, i, OWN)->missed - at(c, u, i, mg)->missed;
            n_more += more > 0;
            most = fmax(most, more);
        }
    snprintf(what, sizeof(what), "%s: sets with more misses than with sbeet-mg", c->setting->name);
    snprintf(note, sizeof(note), "of %d; at most %.0f jobs more", N_U * c->n_sets, most);
    ws_experiment_at_most(x, what, 0, n_more, note);
}

/* How much of what lies between sbeet-mg and the bounds is saved. */
static void compare_ways(struct ws_experiment_run *x, const struct contest *c, int mg)
{
    char what[120];
    double way = 0, simple_way = 0;
    int n = 0;
    for (int u = 0; utilisation(u) < 1.1; u++, n++) {
        double theirs = mean(c, u, mg, JOULES), saved = theirs - mean(c, u, OWN, JOULES);
        way += saved / (theirs - mean_bound(c, u, JOULES));
        simple_way += saved / (theirs - mean_simple_bound(c, u));
    }
    snprintf(what, sizeof(what), "%s: of the way from sbeet-mg to the lower bound, %%, U ≤ 1.0",
             c->setting->name);
    ws_experiment_compare(x, what, NAN, 100 * way / n, 0, WS_SPREAD_ABSOLUTE, "wanted: 50");
    snprintf(what, sizeof(what), "%s: of the way to the simple bound, %%, U ≤ 1.0",
             c->setting->name);
    ws_experiment_compare(x, what, NAN, 100 * simple_way / n, 0, WS_SPREAD_ABSOLUTE,
                          "wanted: 50; this bound lets all jobs share an awake GPU");
}

static void compare_energy(struct ws_experiment_run *x, const struct contest *c)
{
    static const char *const others[] = {"sbeet-mg", "mg-sbeet", "wattshare budget=0"};
    int mg = find(c, "sbeet-mg");
    char what[120], note[160];
    for (size_t k = 0; k < WS_ARRAY_SIZE(others); k++) {
        int p = find(c, others[k]), n = 0;
        double most = -INFINITY, where = 0;
        for (int u = 0; u < N_U; u++) {
            double more = mean(c, u, OWN, JOULES) - mean(c, u, p, JOULES);
            n += more < 0;
            if (more > most) {
                most = more;
                where = utilisation(u);
            }
        }
        snprintf(what, sizeof(what), "%s: less energy than %s", c->setting->name, others[k]);
        snprintf(note, sizeof(note),
                 "at %d of %d utilisations; the largest difference is %+.1f J, "
                 "at U = %.1f",
                 n, N_U, most, where);
        ws_experiment_claim(x, what, n == N_U, note);
    }
    compare_ways(x, c, mg);
}

static int run_own_sbeet(struct ws_experiment_run *x)
{
    struct totals paper = {0};
    int r = 0;
    for (size_t i = 0; i < (x->quick ? 1 : WS_ARRAY_SIZE(settings)) && !r; i++) {
        struct contest c;
        r = run_contest(x, &c, &settings[i]);
        if (!r)
            r = write_all(x, &c);
        if (!r)
            r = draw(x, &c, MISS);
        if (!r)
            r = draw(x, &c, JOULES);
        if (!r)
            r = print(&c);
        if (!r) {
            struct totals t = totals_of(&c);
            compare_misses(x, settings[i].name, &t);
            compare_sets(x, &c);
            compare_energy(x, &c);
            if (i < N_PAPER)
                paper = (struct totals){paper.own + t.own, paper.theirs + t.theirs,
                                        paper.least + t.least};
        }
        free(c.points);
        free(c.bounds);
    }
    if (!r && !x->quick)
        compare_misses(x, "24, 12 and 6", &paper);
    putchar('\n');
    return r;
}

const struct ws_experiment ws_experiment_own_sbeet = {
    "own-sbeet", "our own, on sBEET-mg's design",
    "misses and energy of wattshare and of every policy for several GPUs", run_own_sbeet};
