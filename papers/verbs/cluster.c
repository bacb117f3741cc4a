// SPDX-License-Identifier: Apache-2.0
/* wattshare cluster: simulates tasks with deadlines on a cluster of CPU-GPU pairs, once for each
 * combination of what the options list. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/common/options.h"
#include "papers/verbs/input.h"
#include "papers/common/parallel.h"
#include "cli/common/table.h"
#include "papers/sim/cluster.h"
#include "base/trace_file.h"

enum { LIST_MAX = 32, OPTIONS_MAX = 9, TEXT_MAX = 96, INTERVAL_TEXT_MAX = 80 };

struct cluster_run {
    const struct ws_policy_ops *ops;
    bool dvfs;
    double theta;
    struct ws_cluster cluster;
    char text[OPTIONS_MAX][TEXT_MAX];
    struct ws_cluster_result result;
    int r;
    char error[256];
};

struct cluster {
    const struct ws_policy_ops *policies[LIST_MAX];
    double thetas[LIST_MAX], ls[LIST_MAX];
    int n_policies, n_thetas, n_ls;
    bool dvfs[2]; /* no, yes: to be run */
    const char *interval, *servers;
    int n_pairs;
    double idle_w, turn_on_j, rho, slot;
    bool offline, online; /* as asked for; neither: offline where all tasks arrive at 0 */
    bool schedule, json;
    const char *trace;
    int n_jobs;
    struct ws_cluster_limits limits;
    struct ws_cluster_task *tasks;
    size_t n, cap;
    bool failed;
    struct cluster_run *runs;
    size_t n_runs;
};

/* ---- in ---- */

static int read_input(void *arg, FILE *f, const char *name)
{
    struct cluster *x = arg;
    struct ws_jsonl r;
    struct ws_json_line l;
    int e;
    ws_jsonl_init(&r, f, name);
    while (!(e = ws_jsonl_next(&r, &l))) {
        struct ws_cluster_task t = {0};
        if (!l.bad)
            t = ws_cluster_task_read(&l, &x->limits);
        void *v = x->tasks;
        bool good = ws_json_line_report(&l, stderr, "wattshare");
        ws_json_line_deinit(&l);
        x->failed = x->failed || !good;
        if (!good)
            continue;
        if ((e = ws_grow(&v, &x->cap, x->n + 1, sizeof(*x->tasks))) < 0)
            break;
        x->tasks = v;
        x->tasks[x->n++] = t;
    }
    ws_jsonl_deinit(&r);
    return e < 0 ? e : 0;
}

/* ---- runs ---- */

static void add_run(struct cluster *x, const struct ws_policy_ops *ops, bool dvfs, double theta,
                    int l)
{
    struct cluster_run *r = &x->runs[x->n_runs++];
    int n = 0;
    *r = (struct cluster_run){.ops = ops, .dvfs = dvfs, .theta = theta};
    r->cluster = (struct ws_cluster){.n_pairs = x->n_pairs,
                                     .pairs_per_server = l,
                                     .idle_w = x->idle_w,
                                     .turn_on_j = x->offline ? 0 : x->turn_on_j};
    snprintf(r->text[n++], TEXT_MAX, "dvfs=%s", dvfs ? "yes" : "no");
    snprintf(r->text[n++], TEXT_MAX, "rho=%.17g", x->offline ? 0 : x->rho);
    snprintf(r->text[n++], TEXT_MAX, "slot=%.17g", x->offline ? 0 : x->slot);
    snprintf(r->text[n++], TEXT_MAX, "interval=%.80s", x->interval);
    snprintf(r->text[n++], TEXT_MAX, "servers=%s", x->servers);
    if (!isnan(theta))
        snprintf(r->text[n++], TEXT_MAX, "theta=%.17g", theta);
}

static int plan(struct cluster *x)
{
    x->runs = ws_alloc_array((size_t)x->n_policies * 2 * (size_t)x->n_thetas * (size_t)x->n_ls,
                             sizeof(*x->runs));
    if (!x->runs)
        return -ENOMEM;
    for (int p = 0; p < x->n_policies; p++)
        for (int d = 0; d < 2; d++)
            for (int t = 0; t < x->n_thetas; t++)
                for (int l = 0; l < x->n_ls; l++) {
                    /* Without clocks to choose there is nothing to readjust. */
                    bool theta = x->policies[p] == &ws_policy_edl && d;
                    if (x->dvfs[d] && (theta || !t))
                        add_run(x, x->policies[p], d, theta ? x->thetas[t] : NAN, (int)x->ls[l]);
                }
    return 0;
}

static int simulate(const struct cluster *x, struct cluster_run *r, struct ws_cluster_job *jobs)
{
    const char *argv[OPTIONS_MAX + 1] = {0};
    for (int i = 0, n = 0; i < OPTIONS_MAX; i++)
        if (*r->text[i])
            argv[n++] = r->text[i];
    return ws_cluster_run(&r->cluster, x->tasks, x->n, r->ops, argv, jobs, &r->result, r->error,
                          sizeof(r->error));
}

static void run_one(void *arg, size_t i)
{
    struct cluster *x = arg;
    x->runs[i].r = simulate(x, &x->runs[i], NULL);
}

static bool run_failed(const struct cluster_run *r)
{
    if (r->r)
        ws_cli_error("%s: %s", r->ops->name, r->r > 0 ? r->error : strerror(-r->r));
    return r->r;
}

/* ---- out: energies ---- */

static void put_json(const struct cluster_run *r)
{
    const struct ws_cluster_result *v = &r->result;
    printf("{\"policy\": \"%s\", \"dvfs\": %s, ", r->ops->name, r->dvfs ? "true" : "false");
    if (!isnan(r->theta))
        printf("\"theta\": %g, ", r->theta);
    printf("\"l\": %d, \"tasks\": %" PRIu64 ", \"E_run\": %.12g, \"E_idle\": %.12g, "
           "\"E_idle_ignoring_unused_slots\": %.12g, \"E_overhead\": %.12g, \"E_total\": %.12g, ",
           r->cluster.pairs_per_server, v->n_jobs, v->e_run, v->e_idle, v->e_idle_used,
           v->e_turn_on, v->e_total);
    printf("\"pairs\": %d, \"turn_on_pairs\": %" PRIu64 ", \"turn_on_servers\": %" PRIu64
           ", \"max_servers_on\": %d, \"deadline_prior\": %" PRIu64 ", \"readjusted\": %" PRIu64
           ", \"dropped\": %" PRIu64 ", \"deadline_misses\": %" PRIu64 ", \"end\": %.12g}\n",
           v->n_pairs_used, v->n_pairs_on, v->n_servers_on, v->max_servers_on,
           v->counts.n_deadline_prior, v->counts.n_readjusted, v->n_dropped, v->n_missed, v->end);
}

static void put_row(struct ws_table *t, const struct cluster_run *r)
{
    const struct ws_cluster_result *v = &r->result;
    ws_table_add(t, "%s", r->ops->name);
    ws_table_add(t, "%s", r->dvfs ? "yes" : "no");
    if (isnan(r->theta))
        ws_table_add(t, "-");
    else
        ws_table_add(t, "%g", r->theta);
    ws_table_add(t, "%d", r->cluster.pairs_per_server);
    ws_table_add(t, "%.1f", v->e_run);
    ws_table_add(t, "%.1f", v->e_idle);
    ws_table_add(t, "%.1f", v->e_turn_on);
    ws_table_add(t, "%.1f", v->e_total);
    ws_table_add(t, "%d", v->n_pairs_used);
    ws_table_add(t, "%" PRIu64, v->n_servers_on);
    ws_table_add(t, "%d", v->max_servers_on);
    ws_table_add(t, "%" PRIu64, v->counts.n_deadline_prior);
    ws_table_add(t, "%" PRIu64, v->counts.n_readjusted);
    ws_table_add(t, "%" PRIu64, v->n_missed);
}

static int put_results(struct cluster *x)
{
    static const char *const heads[] = {"policy",  "dvfs",    "theta",      "l",      "run",
                                        "idle",    "turn-on", "total",      "pairs",  "turned on",
                                        "most on", "hurried", "readjusted", "missed", NULL};
    struct ws_table t;
    ws_table_init(&t, heads);
    uint64_t n_dropped = 0;
    for (size_t i = 0; i < x->n_runs; i++) {
        if (run_failed(&x->runs[i])) {
            x->failed = true;
            continue;
        }
        n_dropped += x->runs[i].result.n_dropped;
        if (x->json)
            put_json(&x->runs[i]);
        else
            put_row(&t, &x->runs[i]);
    }
    int r = x->json ? 0 : ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    if (n_dropped)
        ws_cli_error("%" PRIu64 " tasks found no pair and count as missed; give more with --pairs",
                     n_dropped);
    return r;
}

/* ---- out: where each task ran ---- */

static void put_job(const struct cluster *x, struct ws_table *t, size_t i,
                    const struct ws_cluster_job *j)
{
    const struct ws_cluster_task *task = &x->tasks[i];
    if (x->json) {
        printf("{\"id\": %" PRId64 ", \"pair\": %d, ", task->id, j->pair);
        if (j->pair >= 0)
            printf("\"server\": %d, \"start\": %.12g, \"t\": %.12g, \"P\": %.12g, \"E\": %.12g, "
                   "\"V\": %.10g, \"fc\": %.10g, \"fm\": %.10g, ",
                   j->pair / (int)x->ls[0], j->start, j->point.t, j->point.p, j->point.e,
                   j->point.v, j->point.fc, j->point.fm);
        printf("\"a\": %.12g, \"d\": %.15g}\n", task->arrival, task->deadline);
        return;
    }
    ws_table_add(t, "%" PRId64, task->id);
    ws_table_add(t, "%g", task->arrival);
    ws_table_add(t, "%.3f", task->deadline);
    if (j->pair < 0) {
        ws_table_add(t, "-");
        ws_table_end_row(t);
        return;
    }
    ws_table_add(t, "%d", j->pair / (int)x->ls[0]);
    ws_table_add(t, "%d", j->pair);
    ws_table_add(t, "%.3f", j->start);
    ws_table_add(t, "%.3f", j->start + j->point.t);
    ws_table_add(t, "%.4f", j->point.v);
    ws_table_add(t, "%.4f", j->point.fc);
    ws_table_add(t, "%.4f", j->point.fm);
    ws_table_add(t, "%.2f", j->point.p);
    ws_table_add(t, "%.1f", j->point.e);
}

static int put_schedule(const struct cluster *x, const struct ws_cluster_job *jobs)
{
    static const char *const heads[] = {"task",  "arrival", "deadline", "server", "pair",
                                        "start", "end",     "V",        "fc",     "fm",
                                        "W",     "energy",  NULL};
    struct ws_table t;
    ws_table_init(&t, heads);
    for (size_t i = 0; i < x->n; i++)
        put_job(x, &t, i, &jobs[i]);
    int r = x->json ? 0 : ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    return r;
}

/* A unit of time is shown as a minute, the paper's slot. */
static const double trace_ms = 60e3;

struct change {
    double at, watts;
};

static int by_time(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* The power of all that runs, whenever it changes. */
static int trace_power(struct ws_trace *t, const struct cluster *x,
                       const struct ws_cluster_job *jobs)
{
    struct change *c = ws_alloc_array(2 * x->n + 1, sizeof(*c));
    size_t n = 0;
    double watts = 0;
    if (!c)
        return -ENOMEM;
    for (size_t i = 0; i < x->n; i++)
        if (jobs[i].pair >= 0) {
            c[n++] = (struct change){jobs[i].start, jobs[i].point.p};
            c[n++] = (struct change){jobs[i].start + jobs[i].point.t, -jobs[i].point.p};
        }
    qsort(c, n, sizeof(*c), by_time);
    for (size_t i = 0; i < n; i++) {
        watts += c[i].watts;
        if (i + 1 == n || c[i + 1].at > c[i].at)
            ws_trace_counter(t, 1, "running, W", c[i].at * trace_ms, fmax(watts, 0));
    }
    free(c);
    return 0;
}

/* A server is a process, a pair a thread of it; process 1 is the cluster. */
static void trace_job(struct ws_trace *t, int l, const struct ws_cluster_task *task,
                      const struct ws_cluster_job *j, bool first_of_pair)
{
    char name[64], args[256], server[40], pair[40];
    snprintf(name, sizeof(name), "task %" PRId64, task->id);
    snprintf(server, sizeof(server), "server %d", j->pair / l);
    snprintf(pair, sizeof(pair), "pair %d", j->pair);
    snprintf(args, sizeof(args),
             "\"W\": %.6g, \"V\": %.6g, \"fc\": %.6g, \"fm\": %.6g, \"energy\": %.9g, \"arrival\": "
             "%.9g, \"deadline\": %.9g",
             j->point.p, j->point.v, j->point.fc, j->point.fm, j->point.e, task->arrival,
             task->deadline);
    if (first_of_pair)
        ws_trace_name(t, j->pair / l + 2, j->pair % l + 1, server, pair);
    ws_trace_slice(t, j->pair / l + 2, j->pair % l + 1, name, j->start * trace_ms,
                   (j->start + j->point.t) * trace_ms, args);
}

static int put_trace(const struct cluster *x, const struct ws_cluster_job *jobs)
{
    FILE *f = fopen(x->trace, "w");
    if (!f) {
        ws_cli_error("%s: %s", x->trace, strerror(errno));
        return 1;
    }
    struct ws_trace t;
    ws_trace_begin(&t, f);
    ws_trace_name(&t, 1, 1, "cluster", NULL);
    int r = trace_power(&t, x, jobs), last = 0;
    for (size_t i = 0; i < x->n; i++)
        last = WS_MAX(last, jobs[i].pair);
    bool *named = ws_alloc_array((size_t)last + 1, sizeof(*named));
    r = named ? r : -ENOMEM;
    for (size_t i = 0; i < x->n && named; i++)
        if (jobs[i].pair >= 0) {
            trace_job(&t, (int)x->ls[0], &x->tasks[i], &jobs[i], !named[jobs[i].pair]);
            named[jobs[i].pair] = true;
        }
    free(named);
    int e = ws_trace_end(&t);
    if (fclose(f) || e) {
        ws_cli_error("%s: cannot be written", x->trace);
        r = 1;
    }
    return r;
}

static int run_single(struct cluster *x)
{
    struct ws_cluster_job *jobs = ws_alloc_array(x->n + 1, sizeof(*jobs));
    if (!jobs)
        return -ENOMEM;
    x->runs[0].r = simulate(x, &x->runs[0], jobs);
    int r = run_failed(&x->runs[0]);
    if (!r && x->trace)
        r = put_trace(x, jobs);
    if (!r)
        r = x->schedule ? put_schedule(x, jobs) : put_results(x);
    free(jobs);
    return r;
}

/* ---- options ---- */

static int parse_policies(void *values, char *text)
{
    struct cluster *x = values;
    for (char *save, *s = strtok_r(text, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        const struct ws_policy_ops *ops = ws_policy_find(s);
        if (!ops || !ws_edl_is(ops) || x->n_policies == LIST_MAX) {
            ws_cli_error("--policy %s: expected " WS_EDL_POLICIES, s);
            return -EINVAL;
        }
        x->policies[x->n_policies++] = ops;
    }
    return x->n_policies ? 0 : -EINVAL;
}

static int parse_dvfs(void *values, char *text)
{
    struct cluster *x = values;
    x->dvfs[0] = x->dvfs[1] = false;
    for (char *save, *s = strtok_r(text, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        bool yes = !strcmp(s, "yes");
        if (!yes && strcmp(s, "no")) {
            ws_cli_error("--dvfs %s: expected yes, no or yes,no", s);
            return -EINVAL;
        }
        x->dvfs[yes] = true;
    }
    return x->dvfs[0] || x->dvfs[1] ? 0 : -EINVAL;
}

static int parse_thetas(void *values, char *text)
{
    struct cluster *x = values;
    x->n_thetas = ws_cli_numbers("theta", text, 0, 1, x->thetas, LIST_MAX);
    return x->n_thetas ? 0 : -EINVAL;
}

static int parse_ls(void *values, char *text)
{
    struct cluster *x = values;
    x->n_ls = ws_cli_numbers("l", text, 1, 1 << 20, x->ls, LIST_MAX);
    for (int i = 0; i < x->n_ls; i++)
        if (x->ls[i] != floor(x->ls[i])) {
            ws_cli_error("--l %s: expected whole numbers", text);
            return -EINVAL;
        }
    return x->n_ls ? 0 : -EINVAL;
}

static int parse_interval(void *values, char *text)
{
    struct cluster *x = values;
    char error[200];
    bool is_long = strlen(text) > INTERVAL_TEXT_MAX;
    x->interval = text;
    if (!is_long && !ws_dvfs_interval_parse(text, &x->limits.interval, error, sizeof(error)))
        return 0;
    ws_cli_error("--interval: %s", is_long ? "too long" : error);
    return -EINVAL;
}

static const struct ws_option options[] = {
    {"policy", "P[,P...]", "The policies: " WS_EDL_POLICIES ".",
     .more = "edl: earliest deadline first, on the pair that is free first. edf-bf, edf-wf: the "
             "pair with the largest or the smallest load. lpt-ff: longest first, on the first pair "
             "that fits. bin-packing: by utilisation, later first fit. wattshare-servers: where "
             "it adds the least energy.",
     WS_PARSE(parse_policies), .required = true},
    {"theta", "X[,X...]",
     "edl may shorten a task to the room that is left on a pair, but not below this share of its "
     "best length (1: never).",
     WS_PARSE(parse_thetas)},
    {"l", "N[,N...]", "The pairs in a server; servers are switched off as a whole (1).",
     WS_PARSE(parse_ls)},
    {"dvfs", NULL,
     "yes: each task runs with its setting of least energy within its deadline; no: with the "
     "default clocks (yes).",
     .words = "yes|no|yes,no", WS_PARSE(parse_dvfs)},
    {"interval", "INTERVAL",
     "The voltages and clocks: wide, narrow, or V_MIN:V_MAX,FC_MIN,FM_MIN:FM_MAX (wide).",
     .more = "wide is 0.5:1.2,0.5,0.5:1.2.", WS_PARSE(parse_interval)},
    {"servers", NULL,
     "grouped: the first tasks' pairs become servers by decreasing finish; whole: a server is "
     "turned on as a whole where no pair fits (grouped).",
     .more = "whole is what the authors' program does.", .words = "grouped|whole",
     WS_TEXT(struct cluster, servers)},
    {"pairs", "N", "The pairs in the cluster (4096).",
     .more = "Tasks that find none are dropped and counted as missed.",
     WS_INT(struct cluster, n_pairs, 1, 1 << 24)},
    {"idle-w", "W", "The power of an idle pair, in W (37).",
     WS_NUMBER(struct cluster, idle_w, 0, 1e9)},
    {"turn-on-j", "J", "The energy for each pair of a server that is turned on, in J (90).",
     WS_NUMBER(struct cluster, turn_on_j, 0, 1e12)},
    {"rho", "N", "A server sleeps once all its pairs have been idle for so many slots (2).",
     WS_NUMBER(struct cluster, rho, 0, 1e12)},
    {"slot", "S", "The length of a slot; 0: there are no slots, and --rho is a time (1).",
     WS_NUMBER(struct cluster, slot, 0, 1e12)},
    {"offline", NULL,
     "A server goes off when its last task ends, and turning on costs nothing; the default where "
     "all tasks arrive at 0.",
     WS_FLAG(struct cluster, offline)},
    {"online", NULL, "Servers sleep by --rho and --slot, and turning on costs energy.",
     WS_FLAG(struct cluster, online)},
    {"schedule", NULL, "Print where, when and with which setting each task ran, of a single run.",
     WS_FLAG(struct cluster, schedule)},
    {"trace", "FILE",
     "Write the schedule of a single run as a Chrome trace, for Perfetto; a unit of time is shown "
     "as a minute.",
     WS_TEXT(struct cluster, trace)},
    {"json", NULL, "Print one JSON object a line.", WS_FLAG(struct cluster, json)},
    WS_OPTION_JOBS(struct cluster, n_jobs),
    {0}};
static const char *const arguments[] = {"[FILE...]", NULL};
static const char *const examples[] = {
    "wattshare gen --paper edl --online --seed 3 >day.jsonl",
    "wattshare cluster --policy edl,bin-packing --theta 1,0.9 --l 1,16 --dvfs yes,no day.jsonl",
    "wattshare cluster --policy edl --theta 0.9 --l 4 --trace day.trace.json day.jsonl", NULL};

static int cluster(int argc, char **argv);

const struct ws_verb ws_verb_cluster = {
    .name = "cluster",
    .purpose = "simulate tasks with deadlines on servers of CPU-GPU pairs",
    .about =
        "Runs the tasks once for each combination of what the options list. Tasks are "
        "{\"id\",\"a\",\"d\",\"P0\",\"gamma\",\"c\",\"D\",\"delta\",\"t0\"}, one a line. Energy "
        "is in W times the unit of time.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .max_arguments = WS_ARGUMENTS_ANY,
    .run = cluster,
};

static int parse(struct cluster *x, int argc, char **argv, char ***files)
{
    int status = ws_verb_parse(&ws_verb_cluster, argc, argv, x, files);
    if (status >= 0)
        return status;
    if (!x->n_policies)
        return ws_verb_wrong(&ws_verb_cluster, "--policy is missing: " WS_EDL_POLICIES);
    if (x->offline && x->online)
        return ws_verb_wrong(&ws_verb_cluster, "give only one of --offline and --online");
    return -1;
}

static int cluster(int argc, char **argv)
{
    struct cluster x = {.thetas = {1},
                        .ls = {1},
                        .n_thetas = 1,
                        .n_ls = 1,
                        .dvfs = {false, true},
                        .interval = "wide",
                        .servers = "grouped",
                        .n_pairs = 4096,
                        .idle_w = ws_cluster_paper.idle_w,
                        .turn_on_j = ws_cluster_paper.turn_on_j,
                        .rho = 2,
                        .slot = 1,
                        .limits = {.interval = ws_dvfs_wide}};
    char **files;
    int status = parse(&x, argc, argv, &files);
    if (status >= 0)
        return status;
    x.limits.dvfs = !x.dvfs[0]; /* the default clocks must do where they are compared with */
    int r = ws_cli_each_input(files, read_input, &x);
    if (r > 0) { /* one of several files: the others still run */
        x.failed = true;
        r = 0;
    }
    bool at_zero = true;
    for (size_t i = 0; i < x.n; i++)
        at_zero = at_zero && x.tasks[i].arrival == 0;
    x.offline = x.offline || (at_zero && !x.online);
    if (!r && !x.n) {
        ws_cli_error("no tasks");
        r = 1;
    }
    if (!r && plan(&x))
        r = -ENOMEM;
    bool single = x.schedule || x.trace;
    if (!r && single && x.n_runs != 1) {
        ws_cli_error("--schedule and --trace show a single run, but the options list %zu",
                     x.n_runs);
        r = WS_EXIT_USAGE;
    } else if (!r && single) {
        r = run_single(&x);
    } else if (!r) {
        struct ws_progress_bar progress;
        ws_progress_bar_start(&progress, "simulating", x.n_runs);
        ws_parallel_for(x.n_runs, x.n_jobs, run_one, &x, &progress);
        ws_progress_bar_end(&progress);
        r = put_results(&x);
    }
    free(x.runs);
    free(x.tasks);
    if (r == WS_EXIT_USAGE)
        return r;
    return r || x.failed || fflush(stdout) ? 1 : 0;
}
