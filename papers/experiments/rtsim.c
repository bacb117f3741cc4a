// SPDX-License-Identifier: Apache-2.0
/* Experiments of the real-time simulator: bounds compared with the longest responses that a hunt
 * finds (rt-bounds), and the case study of GCAPS simulated and compared with its table
 * (gcaps-observed).
 *
 * rt-bounds tests of every published bound whether simulations exceed it. The sets are drawn as
 * the papers draw them, but from light to heavy load, so that enough of them are accepted. If a
 * bound must hold, a single response above it is a bug. If a bound is known to be broken, the
 * hunt must find a response above it; otherwise the hunt is too weak. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "papers/experiments/experiment.h"
#include "papers/common/parallel.h"
#include "papers/sets/gen_gcaps.h"
#include "papers/sets/gen_stgm.h"
#include "papers/sim/rtsim_hunt.h"
#include "papers/sets/rtsim_set.h"

enum { SETS = 1000, RUNS = 10, CASE_RUNS = 4000 };

enum expected { HOLDS, BROKEN, OPEN }; /* OPEN: neither is claimed */
struct bound_row {
    const char *method;
    enum ws_rtsim_policy policy;
    bool busy;
    enum ws_rtsim_hold hold;
    enum expected expected;
    const char *note;
};
#define CALLS   "open from begin to end, as published"
#define COMMAND "open from the first GPU command to end"
#define WORK    "open while there is GPU work"
static const struct bound_row rows[] = {
    {"gcaps_suspend_fix", WS_RTSIM_GCAPS, false, WS_RTSIM_HOLD_CALLS, BROKEN, CALLS},
    {"gcaps_suspend_fix", WS_RTSIM_GCAPS, false, WS_RTSIM_HOLD_COMMAND, BROKEN, COMMAND},
    {"gcaps_suspend_fix", WS_RTSIM_GCAPS, false, WS_RTSIM_HOLD_WORK, HOLDS, WORK},
    {"gcaps_suspend_safe", WS_RTSIM_GCAPS, false, WS_RTSIM_HOLD_WORK, HOLDS, WORK},
    {"gcaps_busy_fix", WS_RTSIM_GCAPS, true, WS_RTSIM_HOLD_CALLS, BROKEN, CALLS},
    {"gcaps_busy_fix", WS_RTSIM_GCAPS, true, WS_RTSIM_HOLD_COMMAND, BROKEN, COMMAND},
    {"gcaps_busy_fix", WS_RTSIM_GCAPS, true, WS_RTSIM_HOLD_WORK, OPEN, "all but waits for updates"},
    {"gcaps_busy_safe", WS_RTSIM_GCAPS, true, WS_RTSIM_HOLD_WORK, HOLDS, WORK},
    {"gcaps_busy_lit", WS_RTSIM_GCAPS, true, WS_RTSIM_HOLD_WORK, BROKEN,
     "Lemmas 10-12 to the letter"},
    {"tsg_rr_suspend_fix", WS_RTSIM_RR, false, WS_RTSIM_HOLD_WORK, OPEN,
     "no switch to the own context"},
    {"tsg_rr_suspend_safe", WS_RTSIM_RR, false, WS_RTSIM_HOLD_WORK, HOLDS, ""},
    {"tsg_rr_busy_ref", WS_RTSIM_RR, true, WS_RTSIM_HOLD_WORK, BROKEN,
     "tasks without GPU work left out"},
    {"tsg_rr_busy_fix", WS_RTSIM_RR, true, WS_RTSIM_HOLD_WORK, OPEN,
     "no switch to the own context"},
    {"tsg_rr_busy_safe", WS_RTSIM_RR, true, WS_RTSIM_HOLD_WORK, HOLDS, ""},
    {"mpcp_suspend_ref", WS_RTSIM_MPCP, false, WS_RTSIM_HOLD_WORK, OPEN, "as released"},
    {"mpcp_suspend_safe", WS_RTSIM_MPCP, false, WS_RTSIM_HOLD_WORK, HOLDS, ""},
    {"mpcp_busy_ref", WS_RTSIM_MPCP, true, WS_RTSIM_HOLD_WORK, BROKEN,
     "a spinning holder counts Gm only"},
    {"mpcp_busy_safe", WS_RTSIM_MPCP, true, WS_RTSIM_HOLD_WORK, HOLDS, ""},
    {"fmlp_suspend_ref", WS_RTSIM_FMLP, false, WS_RTSIM_HOLD_WORK, BROKEN,
     "core-mates request while the task sleeps in its kernel"},
    {"fmlp_suspend_safe", WS_RTSIM_FMLP, false, WS_RTSIM_HOLD_WORK, HOLDS, ""},
    {"fmlp_busy_ref", WS_RTSIM_FMLP, true, WS_RTSIM_HOLD_WORK, OPEN, "as released"},
    {"fmlp_busy_safe", WS_RTSIM_FMLP, true, WS_RTSIM_HOLD_WORK, HOLDS, ""},
    {"stgm_suspend_paper", WS_RTSIM_STGM, false, WS_RTSIM_HOLD_WORK, BROKEN,
     "chains; copy out of a core-mate"},
    {"stgm_suspend_safe", WS_RTSIM_STGM, false, WS_RTSIM_HOLD_WORK, HOLDS, ""},
    {"stgm_busy_paper", WS_RTSIM_STGM, true, WS_RTSIM_HOLD_WORK, BROKEN,
     "chains; waiting of a boosted core-mate"},
    {"stgm_busy_safe", WS_RTSIM_STGM, true, WS_RTSIM_HOLD_WORK, HOLDS, ""},
};

struct tally {
    const struct bound_row *row;
    const struct ws_rta_method *method;
    uint64_t seed;
    double *ratios; /* of each set: 0 where it is not accepted */
    _Atomic int failed;
};

static int draw(uint64_t seed, size_t i, bool stgm, struct ws_rt_set *ret)
{
    struct ws_random r;
    ws_random_init_part(&r, seed, i);
    if (stgm)
        return ws_gen_stgm(&ws_gen_stgm_default, &r, ret);
    struct ws_gen_gcaps g = ws_gen_gcaps_default;
    g.n_cpus = (int)ws_random_integer(&r, 1, 4);
    g.util_min = g.util_max = (double)ws_random_integer(&r, 10, 60) / 100;
    return ws_gen_gcaps(&g, &r, ret);
}

/* Hunts in one set. @bounds: NULL: those of the analysis, if it accepts the set; else these,
 * whether it does or not. *ret_ratio: highest response by bound, 0 where the set was left out. */
static int hunt_set(const struct bound_row *row, const struct ws_rta_method *m,
                    const struct ws_rt_set *from, const int64_t *bounds,
                    const struct ws_rtsim_hunt *hunt, double *ret_ratio, struct ws_rtsim_prey *prey)
{
    struct ws_rtsim_space space = WS_RTSIM_SPACE_NULL;
    struct ws_rtsim_set set;
    struct ws_rtsim_verdict v;
    struct ws_rtsim *rt = NULL;
    struct ws_rtsim_config config = {.policy = row->policy, .hold = row->hold, .busy = row->busy};
    *ret_ratio = 0;
    int r = ws_rtsim_set_make(from, m, &space, &set, &v);
    if (!r && v.placed && (v.accepted || bounds)) {
        struct ws_rtsim_task_result *own = NULL;
        if (!prey->tasks)
            prey->tasks = own = ws_alloc_array((size_t)set.n_tasks, sizeof(*own));
        r = prey->tasks ? ws_rtsim_new(&rt, &set, &config) : -ENOMEM;
        if (!r)
            r = ws_rtsim_hunt(rt, &set, bounds ? bounds : v.bounds, hunt, prey);
        *ret_ratio = r ? 0 : prey->ratio;
        ws_rtsim_free(rt);
        free(own);
    }
    free(v.bounds);
    ws_rtsim_set_deinit(&set);
    ws_rtsim_space_deinit(&space);
    return r;
}

static void one_set(void *arg, size_t i)
{
    struct tally *t = arg;
    struct ws_rt_set from;
    struct ws_rtsim_hunt hunt = {.n_runs = RUNS, .seed = t->seed + i, .n_periods = 4};
    struct ws_rtsim_prey prey = {0};
    int r = draw(t->seed, i, t->method->stgm, &from);
    if (!r)
        r = hunt_set(t->row, t->method, &from, NULL, &hunt, &t->ratios[i], &prey);
    if (r)
        t->failed = r;
    ws_rt_set_deinit(&from);
}

static int hunt_row(struct ws_experiment_run *x, const struct bound_row *row, size_t n_sets,
                    FILE *csv)
{
    struct tally t = {.row = row,
                      .method = ws_rta_method_find(row->method),
                      .seed = x->seed,
                      .ratios = ws_alloc_array(n_sets, sizeof(*t.ratios))};
    if (!t.ratios || !t.method) {
        free(t.ratios);
        return t.method ? -ENOMEM : -ENOENT;
    }
    struct ws_progress_bar p;
    ws_progress_bar_start(&p, row->method, n_sets);
    ws_parallel_for(n_sets, x->n_jobs, one_set, &t, &p);
    ws_progress_bar_end(&p);
    int n_accepted = 0, n_exceeded = 0;
    double worst = 0;
    for (size_t i = 0; i < n_sets; i++) {
        n_accepted += t.ratios[i] > 0;
        n_exceeded += t.ratios[i] > 1;
        worst = fmax(worst, t.ratios[i]);
    }
    free(t.ratios);
    if (t.failed)
        return t.failed;
    const char *hold = row->policy == WS_RTSIM_GCAPS ? ws_rtsim_hold_name(row->hold) : "";
    char what[160], note[200];
    snprintf(what, sizeof(what), "%s%s%s %s", row->method, *hold ? ", hold " : "", hold,
             row->expected == HOLDS ? "is never exceeded" : "is exceeded");
    snprintf(note, sizeof(note), "%d of %d accepted sets above it, up to %.4f of it%s%s",
             n_exceeded, n_accepted, worst, *row->note ? "; " : "", row->note);
    if (row->expected == OPEN)
        ws_experiment_compare(x, what, NAN, n_exceeded, 0, WS_SPREAD_ABSOLUTE, note);
    else
        ws_experiment_claim(x, what, n_accepted && (n_exceeded == 0) == (row->expected == HOLDS),
                            note);
    fprintf(csv, "\"%s%s%s\",%s,%s,%d,%d,%.6f,%.6f\n", row->method, *hold ? " " : "", hold,
            ws_rtsim_policy_name(row->policy), row->busy ? "busy" : "suspend", n_accepted,
            n_exceeded, n_accepted ? (double)n_exceeded / n_accepted : 0, worst);
    return 0;
}

static int run_bounds(struct ws_experiment_run *x)
{
    FILE *csv = ws_experiment_csv(x, "rt-bounds");
    if (!csv)
        return -EIO;
    size_t n_sets = (size_t)fmax(SETS * x->scale, 50);
    fprintf(csv, "bound,policy,mode,accepted,exceeded,share,worst\n");
    int r = 0;
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows) && !r; i++)
        r = hunt_row(x, &rows[i], n_sets, csv);
    if (fclose(csv) && !r)
        r = -EIO;
    if (!r)
        ws_experiment_plot(x, "rt-bounds",
                           "set style fill solid; set boxwidth 0.7; set xtics rotate by -60; "
                           "set ylabel 'highest response / bound'; set logscale y; set key off\n"
                           "plot 'rt-bounds.csv' using 0:7:xtic(1) with boxes, 1 with lines lw 2");
    else
        ws_cli_error("rt-bounds: %s", strerror(-r));
    return r;
}

const struct ws_experiment ws_experiment_rt_bounds = {
    "rt-bounds", "GCAPS and STGM, all bounds",
    "hunted response times against published and safe bounds: which are broken, which are not",
    run_bounds};

/* ---- the case study of GCAPS ---- */

/* Inputs solved back from the 19 numbers of Table 5 that they give (Table 4 doesn't give them). */
static const char case_study[] =
    "{\"overheads_ms\":{\"L\":1,\"theta\":0.2,\"epsilon\":1},\"ncpu\":3,\"tasks\":["
    "{\"prio\":5,\"cpu\":0,\"T\":100,\"C\":1,\"G\":11,\"ges\":[[11,1,10]]},"
    "{\"prio\":4,\"cpu\":1,\"T\":150,\"C\":2,\"G\":14,\"ges\":[[14,2,12]]},"
    "{\"prio\":3,\"cpu\":1,\"T\":200,\"C\":68,\"G\":0,\"ges\":[]},"
    "{\"prio\":2,\"cpu\":0,\"T\":300,\"C\":12,\"G\":15,\"ges\":[[15,1.5,13.5]]},"
    "{\"prio\":1,\"cpu\":0,\"T\":400,\"C\":2,\"G\":16,\"ges\":[[16,0.5,15.5]]},"
    "{\"be\":true,\"prio\":-1,\"cpu\":2,\"T\":200,\"C\":4,\"G\":48,\"ges\":[[48,4,44]]}]}";

enum { CASE_TASKS = 6, CASE_RT = 5 };
static const struct {
    struct bound_row row;
    const char *name;
    double bound[CASE_RT],
        observed[CASE_RT]; /* of the paper: WCRT and longest measured; NAN: failed */
} cases[] = {
    {{"tsg_rr_suspend_safe", WS_RTSIM_RR, false, WS_RTSIM_HOLD_WORK, HOLDS, ""},
     "tsg_rr_suspend",
     {60, 73.6, 76, 98.2, 127.8},
     {45.33, 66.97, 71.84, 86.5, 86.62}},
    {{"tsg_rr_busy_safe", WS_RTSIM_RR, true, WS_RTSIM_HOLD_WORK, HOLDS, ""},
     "tsg_rr_busy",
     {60, 73.6, 129.2, 192.2, NAN},
     {26.13, 44.47, 109.14, 75.64, 117.68}},
    {{"gcaps_suspend_fix", WS_RTSIM_GCAPS, false, WS_RTSIM_HOLD_WORK, HOLDS, ""},
     "gcaps_suspend",
     {16, 32, 75, 59, 79},
     {10.15, 22.36, 67.39, 43.17, 49.24}},
    {{"gcaps_busy_fix", WS_RTSIM_GCAPS, true, WS_RTSIM_HOLD_WORK, HOLDS, ""},
     "gcaps_busy",
     {16, 32, 111, 59, 79},
     {9.68, 23.28, 85.01, 44.91, 57.93}},
};

static int observe(struct ws_experiment_run *x, size_t k, const struct ws_rt_set *from, FILE *csv)
{
    struct ws_rtsim_task_result worst[CASE_TASKS] = {{0}};
    struct ws_rtsim_prey prey = {.tasks = worst};
    struct ws_rtsim_hunt hunt = {
        .n_runs = (int)fmax(CASE_RUNS * x->scale, 100), .seed = x->seed, .n_periods = 5};
    struct ws_rtsim_space space = WS_RTSIM_SPACE_NULL;
    struct ws_rta_result a;
    const struct ws_rta_method *m = ws_rta_method_find(cases[k].row.method);
    int64_t bounds[CASE_TASKS] = {0};
    double ratio;
    int r = ws_rta_work_reserve(&space.rta, from->gcaps.n_tasks, from->gcaps.n_segments);
    if (!r)
        r = m->run(&from->gcaps, &space.rta, &a);
    for (int i = 0; i < CASE_RT && !r; i++)
        bounds[i] = WS_MAX(a.bound[i], 0);
    ws_rtsim_space_deinit(&space);
    if (!r)
        r = hunt_set(&cases[k].row, m, from, bounds, &hunt, &ratio, &prey);
    for (int i = 0; i < CASE_RT && !r; i++) {
        double seen = (double)worst[i].worst / WS_GCAPS_UNITS_PER_MS;
        double bound = (double)bounds[i] / WS_GCAPS_UNITS_PER_MS;
        char what[80], note[160];
        snprintf(what, sizeof(what), "%s, task %d: %s", cases[k].name, i + 1,
                 bounds[i] ? "within our bound" : "longest response (ms)");
        snprintf(note, sizeof(note), "observed %g, bound %g; paper: measured %g, bound %g%s", seen,
                 bounds[i] ? bound : NAN, cases[k].observed[i], cases[k].bound[i],
                 seen > cases[k].bound[i] ? ", which is exceeded" : "");
        if (bounds[i])
            ws_experiment_claim(x, what, seen > 0 && seen <= bound, note);
        else
            ws_experiment_compare(x, what, NAN, seen, 0, WS_SPREAD_ABSOLUTE, note);
        fprintf(csv, "\"%s %d\",%g,%g,%g,%g\n", cases[k].name, i + 1, seen, bound,
                cases[k].observed[i], cases[k].bound[i]);
    }
    return r;
}

static int run_case(struct ws_experiment_run *x)
{
    FILE *csv = ws_experiment_csv(x, "gcaps-observed");
    if (!csv)
        return -EIO;
    fprintf(csv, "task,observed,bound,\"measured, paper\",\"bound, paper\"\n");
    struct ws_json_line l = {
        .file = "case study", .number = 1, .root = json_tokener_parse(case_study)};
    struct ws_rt_set from;
    int r = ws_rt_set_read(&l, &from);
    if (!r && !ws_json_line_report(&l, stderr, "wattshare"))
        r = -EINVAL;
    for (size_t k = 0; k < WS_ARRAY_SIZE(cases) && !r; k++)
        r = observe(x, k, &from, csv);
    ws_rt_set_deinit(&from);
    ws_json_line_deinit(&l);
    if (fclose(csv) && !r)
        r = -EIO;
    if (!r)
        ws_experiment_plot(
            x, "gcaps-observed",
            "set style data histogram; set style fill solid; set xtics rotate by -60; "
            "set ylabel 'response time, ms'\n"
            "plot for [i=2:5] 'gcaps-observed.csv' using i:xtic(1)");
    else
        ws_cli_error("gcaps-observed: %s", strerror(-r));
    return r;
}

const struct ws_experiment ws_experiment_gcaps_observed = {
    "gcaps-observed", "GCAPS, Table 5",
    "longest response times of the case study, simulated, beside bounds and the paper's "
    "measurements",
    run_case};
