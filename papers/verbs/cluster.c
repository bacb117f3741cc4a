// SPDX-License-Identifier: Apache-2.0
/* `wattshare cluster`: tasks with deadlines on a simulated cluster of CPU-GPU pairs, one run for each combination of what the options
 * list. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "papers/verbs/input.h"
#include "cli/common/parallel.h"
#include "cli/common/table.h"
#include "papers/sim/cluster.h"
#include "papers/sim/trace.h"

static const char help[] =
    "usage: wattshare cluster --policy P[,P…] [--theta X[,X…]] [--l N[,N…]] [--dvfs "
    "yes|no|yes,no]\n"
    "                         [--interval wide|narrow|V0:V1,FC0,FM0:FM1] [--pairs N] [--idle-w W]\n"
    "                         [--turn-on-j J] [--rho N] [--slot S] [--servers grouped|whole] "
    "[--offline | --online]\n"
    "                         [--schedule | --trace FILE] [--json] [--jobs N] [FILE…]\n"
    "Tasks with deadlines on servers of CPU-GPU pairs; one run for each combination of the lists.\n"
    "  policies: edl, edf-bf, edf-wf, lpt-ff, bin-packing\n"
    "  --theta X      of edl: shortest length after readjustment, as a share of the best (1: "
    "none)\n"
    "  --l N          pairs in a server (1)\n"
    "  --dvfs         choose voltage and clocks for each task (yes), or the default ones (no)\n"
    "  --servers      grouped: Algorithm 3 makes servers of the first tasks' pairs; whole: as the "
    "authors' program,\n"
    "                 a server is turned on whole where no pair fits\n"
    "  --pairs N      in the cluster (4096)\n"
    "  --idle-w, --turn-on-j, --rho, --slot  37 W and 90 J a pair; servers sleep after 2 idle "
    "slots "
    "of 1\n"
    "  --offline      servers go off when their last task ends, and turning on costs nothing: the "
    "default\n"
    "                 where all tasks are there at 0\n"
    "  --schedule     where and when each task ran (of a single run); --trace: the same for "
    "Perfetto\n"
    "Tasks: {\"id\",\"a\",\"d\",\"P0\",\"gamma\",\"c\",\"D\",\"delta\",\"t0\"}, one a line. Energy "
    "is in W "
    "times the unit of time.\n";

enum { LIST_MAX = 32, OPTIONS_MAX = 9, TEXT_MAX = 96 };

struct run {
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
    double pairs, idle_w, turn_on_j, rho, slot;
    int offline; /* -1: where all arrive at 0 */
    bool schedule, json;
    const char *trace;
    int n_jobs;
    struct ws_cluster_limits limits;
    struct ws_cluster_task *tasks;
    size_t n, cap;
    bool failed;
    struct run *runs;
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
    struct run *r = &x->runs[x->n_runs++];
    int n = 0;
    *r = (struct run){.ops = ops, .dvfs = dvfs, .theta = theta};
    r->cluster = (struct ws_cluster){.n_pairs = (int)x->pairs,
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

static int simulate(const struct cluster *x, struct run *r, struct ws_cluster_job *jobs)
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

static bool run_failed(const struct run *r)
{
    if (r->r)
        ws_cli_error("%s: %s", r->ops->name, r->r > 0 ? r->error : strerror(-r->r));
    return r->r;
}

/* ---- out: energies ---- */

static void put_json(const struct run *r)
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

static void put_row(struct ws_table *t, const struct run *r)
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
        ws_cli_error("%" PRIu64 " tasks found no pair (counted as missed); --pairs gives more",
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
        ws_cli_error("%s: it can't be written", x->trace);
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

static bool parse_policies(struct cluster *x, char *text)
{
    for (char *save, *s = strtok_r(text, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        const struct ws_policy_ops *ops = ws_policy_find(s);
        if (!ops || !ws_edl_is(ops) || x->n_policies == LIST_MAX) {
            ws_cli_error("--policy %s: edl, edf-bf, edf-wf, lpt-ff or bin-packing is wanted", s);
            return false;
        }
        x->policies[x->n_policies++] = ops;
    }
    return x->n_policies;
}

static bool parse_dvfs(struct cluster *x, char *text)
{
    x->dvfs[0] = x->dvfs[1] = false;
    for (char *save, *s = strtok_r(text, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        bool yes = !strcmp(s, "yes");
        if (!yes && strcmp(s, "no")) {
            ws_cli_error("--dvfs %s: yes, no or yes,no is wanted", s);
            return false;
        }
        x->dvfs[yes] = true;
    }
    return x->dvfs[0] || x->dvfs[1];
}

/* A number option by its letter; false: said. */
static bool parse_number(struct cluster *x, int c, const char *text)
{
    switch (c) {
    case 'P':
        return !ws_cli_number("pairs", text, 1, 1 << 24, &x->pairs);
    case 'w':
        return !ws_cli_number("idle-w", text, 0, 1e9, &x->idle_w);
    case 'u':
        return !ws_cli_number("turn-on-j", text, 0, 1e12, &x->turn_on_j);
    case 'r':
        return !ws_cli_number("rho", text, 0, 1e12, &x->rho);
    case 's':
        return !ws_cli_number("slot", text, 0, 1e12, &x->slot);
    case 't':
        x->n_thetas = ws_cli_numbers("theta", text, 0, 1, x->thetas, LIST_MAX);
        return x->n_thetas;
    default:
        x->n_ls = ws_cli_numbers("l", text, 1, 1 << 20, x->ls, LIST_MAX);
        for (int i = 0; i < x->n_ls; i++)
            if (x->ls[i] != floor(x->ls[i])) {
                ws_cli_error("--l %s: whole numbers are wanted", text);
                return false;
            }
        return x->n_ls;
    }
}

/* -1: go on; else the exit status. */
static int parse(struct cluster *x, int argc, char **argv)
{
    static const struct option options[] = {{"policy", required_argument, NULL, 'p'},
                                            {"theta", required_argument, NULL, 't'},
                                            {"l", required_argument, NULL, 'l'},
                                            {"dvfs", required_argument, NULL, 'd'},
                                            {"interval", required_argument, NULL, 'i'},
                                            {"pairs", required_argument, NULL, 'P'},
                                            {"idle-w", required_argument, NULL, 'w'},
                                            {"turn-on-j", required_argument, NULL, 'u'},
                                            {"servers", required_argument, NULL, 'v'},
                                            {"rho", required_argument, NULL, 'r'},
                                            {"slot", required_argument, NULL, 's'},
                                            {"offline", no_argument, NULL, 'o'},
                                            {"online", no_argument, NULL, 'O'},
                                            {"schedule", no_argument, NULL, 'S'},
                                            {"trace", required_argument, NULL, 'T'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"jobs", required_argument, NULL, 'n'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    char error[200];
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        bool good = true;
        switch (c) {
        case 'p':
            good = parse_policies(x, optarg);
            break;
        case 'd':
            good = parse_dvfs(x, optarg);
            break;
        case 'i':
            x->interval = optarg;
            if (strlen(optarg) > 80 ||
                ws_dvfs_interval_parse(optarg, &x->limits.interval, error, sizeof(error))) {
                ws_cli_error("--interval: %s", strlen(optarg) > 80 ? "too long" : error);
                good = false;
            }
            break;
        case 'v':
            x->servers = optarg;
            good = !strcmp(optarg, "grouped") || !strcmp(optarg, "whole");
            if (!good)
                ws_cli_error("--servers %s: grouped or whole is wanted", optarg);
            break;
        case 'o':
        case 'O':
            x->offline = c == 'o';
            break;
        case 'S':
            x->schedule = true;
            break;
        case 'T':
            x->trace = optarg;
            break;
        case 'j':
            x->json = true;
            break;
        case 'n':
            good = !ws_cli_jobs(optarg, &x->n_jobs);
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        case '?':
            fputs(help, stderr);
            return WS_EXIT_USAGE;
        default:
            good = parse_number(x, c, optarg);
        }
        if (!good)
            return WS_EXIT_USAGE;
    }
    if (!x->n_policies) {
        ws_cli_error("--policy is missing: edl, edf-bf, edf-wf, lpt-ff or bin-packing");
        return WS_EXIT_USAGE;
    }
    return -1;
}

int ws_cli_cluster(int argc, char **argv)
{
    struct cluster x = {.thetas = {1},
                        .ls = {1},
                        .n_thetas = 1,
                        .n_ls = 1,
                        .dvfs = {false, true},
                        .interval = "wide",
                        .servers = "grouped",
                        .pairs = 4096,
                        .idle_w = ws_cluster_paper.idle_w,
                        .turn_on_j = ws_cluster_paper.turn_on_j,
                        .rho = 2,
                        .slot = 1,
                        .offline = -1,
                        .limits = {.interval = ws_dvfs_wide}};
    int status = parse(&x, argc, argv);
    if (status >= 0)
        return status;
    x.limits.dvfs = !x.dvfs[0]; /* the default clocks must do where they are compared with */
    int r = ws_cli_each_input(argv + optind, read_input, &x);
    if (r > 0) { /* one of several files: the others still run */
        x.failed = true;
        r = 0;
    }
    bool at_zero = true;
    for (size_t i = 0; i < x.n; i++)
        at_zero = at_zero && x.tasks[i].arrival == 0;
    x.offline = x.offline < 0 ? at_zero : x.offline;
    if (!r && !x.n) {
        ws_cli_error("no tasks");
        r = 1;
    }
    if (!r && plan(&x))
        r = -ENOMEM;
    bool single = x.schedule || x.trace;
    if (!r && single && x.n_runs != 1) {
        ws_cli_error("--schedule and --trace show a single run; the lists make %zu", x.n_runs);
        r = WS_EXIT_USAGE;
    } else if (!r && single) {
        r = run_single(&x);
    } else if (!r) {
        struct ws_progress progress;
        ws_progress_start(&progress, "simulating", x.n_runs);
        ws_parallel_for(x.n_runs, x.n_jobs, run_one, &x, &progress);
        ws_progress_end(&progress);
        r = put_results(&x);
    }
    free(x.runs);
    free(x.tasks);
    if (r == WS_EXIT_USAGE)
        return r;
    return r || x.failed || fflush(stdout) ? 1 : 0;
}
