// SPDX-License-Identifier: Apache-2.0
/* Recomputes reference/edl/sim and table3: task sets, results and schedules of the cluster
 * simulator (mode P, the paper's text), the worked example, and the means over ten full-size sets.
 * Rows of the modes R_pub and R_head are what the authors' released program prints; they are
 * stated, not recomputed. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "tests/reference/check_edl.h"

/* Results have three decimals and tasks six digits behind the point; energies are to agree to 1e-6.
 * An idle energy is a small difference of large numbers, so it is held to the idle power for a
 * millionth of all pairs' time. */
static const double energy_share = 1e-6;

/* ---- tasks ---- */

struct task_list {
    struct ws_cluster_task *v;
    size_t n, cap;
};

static void add_task(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    static const struct ws_cluster_limits limits = {.interval = {0.5, 1.2, 0.5, 0.5, 1.2},
                                                    .dvfs = true};
    struct task_list *list = arg;
    struct ws_cluster_task t = ws_cluster_task_read(l, &limits);
    void *v = list->v;
    if (l->bad || ws_grow(&v, &list->cap, list->n + 1, sizeof(t)) < 0) {
        c->failed = true;
        return;
    }
    list->v = v;
    list->v[list->n++] = t;
}

struct ws_cluster_task *read_tasks(struct ws_check *c, const char *path, size_t *ret_n)
{
    struct task_list list = {0};
    struct ws_check own = {.path = path, .folder = c->folder};
    ws_check_lines(&own, add_task, &list);
    *ret_n = list.n;
    if (own.failed || !list.n) {
        ws_check_fail(c, "%s: its tasks can't be read", path);
        free(list.v);
        return NULL;
    }
    return list.v;
}

/* The file beside @c's with another ending. */
static bool sibling(struct ws_check *c, const char *ending, const char *other, char ret[PATH_MAX])
{
    size_t n = strlen(c->path), e = strlen(ending);
    if (n <= e || strcmp(c->path + n - e, ending) ||
        (size_t)snprintf(ret, PATH_MAX, "%.*s%s", (int)(n - e), c->path, other) >= PATH_MAX) {
        ws_check_fail(c, "its name doesn't end in %s, so its tasks can't be found", ending);
        return false;
    }
    return true;
}

static bool match_tasks(const char *head, struct ws_json_line *first)
{
    (void)head;
    static const char *const keys[] = {"P0", "gamma", "delta", "t_star", "u", "d", NULL};
    return ws_check_has(first, keys);
}

static void check_task(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    (void)arg;
    static const struct ws_cluster_limits limits = {.interval = {0.5, 1.2, 0.5, 0.5, 1.2},
                                                    .dvfs = true};
    struct ws_cluster_task t = ws_cluster_task_read(l, &limits);
    struct ws_json_at at = ws_json_root(l);
    if (l->bad)
        return;
    struct ws_dvfs_point p = ws_dvfs_default(&t.dvfs);
    ws_check_number(c, ws_check_where("line %u t_star", l->number), p.t,
                    ws_check_value(&at, "t_star"), 0, 2e-6);
    ws_check_number(c, ws_check_where("line %u P_star", l->number), p.p,
                    ws_check_value(&at, "P_star"), 0, 2e-6);
    ws_check_number(c, ws_check_where("line %u d", l->number),
                    t.arrival + p.t / ws_check_value(&at, "u"), t.deadline, 1e-5, 0);
}

static void run_tasks(struct ws_check *c)
{
    ws_check_lines(c, check_task, NULL);
}

const struct ws_check_kind ws_check_kind_edl_tasks = {"EDL tasks", match_tasks, run_tasks};

/* ---- one run as a row or schedule of a file says ---- */

struct run {
    const struct ws_policy_ops *ops;
    struct ws_cluster cluster;
    char options[5][64];
    const char *argv[6];
};

/* False: said. @offline: servers go off when their last pair ends, and being switched on costs
 * nothing. */
static bool describe(struct ws_check *c, const struct ws_json_at *row, const struct ws_json_at *top,
                     bool offline, size_t n_tasks, struct run *ret)
{
    static const char *const names[][2] = {{"EDL", "edl"},
                                           {"EDF-BF", "edf-bf"},
                                           {"EDF-WF", "edf-wf"},
                                           {"LPT-FF", "lpt-ff"},
                                           {"BIN", "bin-packing"}};
    const char *algo = ws_json_string(row, "algo", true);
    *ret = (struct run){0};
    for (size_t i = 0; algo && i < WS_ARRAY_SIZE(names); i++)
        if (!strcmp(algo, names[i][0]))
            ret->ops = ws_policy_find(names[i][1]);
    if (!ret->ops) {
        ws_check_fail(c, "algorithm '%s' is none of ours", algo ? algo : "");
        return false;
    }
    int l = (int)ws_json_integer(row, "l", 1, 4096, false, 1), n = 0;
    ret->cluster = (struct ws_cluster){.n_pairs = ws_cluster_pairs_for(n_tasks, l),
                                       .pairs_per_server = l,
                                       .idle_w = ws_check_value(top, "P_idle"),
                                       .turn_on_j = offline ? 0 : ws_check_value(top, "Delta")};
    snprintf(ret->options[n++], 64, "dvfs=%s",
             ws_json_bool(row, "dvfs", true, false) ? "yes" : "no");
    snprintf(ret->options[n++], 64, "rho=%g", offline ? 0 : ws_check_value(top, "rho"));
    snprintf(ret->options[n++], 64, "slot=%d", offline ? 0 : 1);
    snprintf(ret->options[n++], 64, "interval=%s", ws_json_string(top, "interval", true));
    if (!strcmp(algo, "EDL"))
        snprintf(ret->options[n++], 64, "theta=%.17g", ws_check_value(row, "theta"));
    for (int i = 0; i < n; i++)
        ret->argv[i] = ret->options[i];
    return !row->line->bad;
}

static bool run(struct ws_check *c, const struct run *d, const struct ws_cluster_task *tasks,
                size_t n, struct ws_cluster_job *jobs, struct ws_cluster_result *ret)
{
    char error[256] = "";
    int r = ws_cluster_run(&d->cluster, tasks, n, d->ops, d->argv, jobs, ret, error, sizeof(error));
    if (r)
        ws_check_fail(c, "%s: %s", d->ops->name, r > 0 ? error : strerror(-r));
    return !r;
}

static void check_count(struct ws_check *c, const char *at, const struct ws_json_at *row,
                        const char *key, uint64_t ours)
{
    if (ws_json_has(row, key))
        ws_check_integer(c, ws_check_where("%s %s", at, key), (int64_t)ours,
                         ws_json_integer(row, key, 0, INT64_MAX, true, 0));
}

/* ---- results ---- */

static bool match_results(const char *head, struct ws_json_line *first)
{
    (void)head;
    static const char *const keys[] = {"results", "P_idle", "Delta", "rho", "interval", NULL};
    return ws_check_has(first, keys);
}

static void check_result(struct ws_check *c, const char *at, const struct ws_json_at *row,
                         bool offline, const struct ws_cluster_result *r)
{
    double idle = energy_share * r->e_total;
    ws_check_number(c, ws_check_where("%s E_run", at), r->e_run, ws_check_value(row, "E_run"),
                    energy_share, 0);
    ws_check_number(c, ws_check_where("%s E_idle", at), r->e_idle, ws_check_value(row, "E_idle"),
                    energy_share, idle);
    ws_check_number(c, ws_check_where("%s E_total", at), r->e_total, ws_check_value(row, "E_total"),
                    energy_share, 0);
    if (offline) {
        ws_check_number(c, ws_check_where("%s E_idle_ignoring_unused_slots", at), r->e_idle_used,
                        ws_check_value(row, "E_idle_ignoring_unused_slots"), energy_share, idle);
        check_count(c, at, row, "deadline_prior", r->counts.n_deadline_prior);
        check_count(c, at, row, "pairs", (uint64_t)r->n_pairs_used);
        check_count(c, at, row, "servers", r->n_servers_on);
    } else {
        ws_check_number(c, ws_check_where("%s E_overhead", at), r->e_turn_on,
                        ws_check_value(row, "E_overhead"), energy_share, 0);
        check_count(c, at, row, "turn_on_pairs", r->n_pairs_on);
        check_count(c, at, row, "turn_on_servers", r->n_servers_on);
        check_count(c, at, row, "max_servers_on", (uint64_t)r->max_servers_on);
        check_count(c, at, row, "pairs_used", (uint64_t)r->n_pairs_used);
    }
    check_count(c, at, row, "readjusted", r->counts.n_readjusted);
    check_count(c, at, row, "deadline_misses", r->n_missed);
}

static void check_rows(struct ws_check *c, const struct ws_json_at *top,
                       const struct ws_cluster_task *tasks, size_t n)
{
    const char *kind = ws_json_string(top, "kind", true);
    bool offline = kind && !strcmp(kind, "offline");
    struct ws_json_at rows = ws_json_get(top, "results", false);
    size_t n_rows = ws_json_length(&rows, 100000), n_other = 0;
    ws_check_integer(c, "n_tasks", (int64_t)n,
                     ws_json_integer(top, "n_tasks", 0, INT64_MAX, true, 0));
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ws_dvfs_default(&tasks[i].dvfs).e;
    ws_check_number(c, "sum_E_star", sum, ws_check_value(top, "sum_E_star"), energy_share, 0);
    for (size_t i = 0; i < n_rows && !c->failed; i++) {
        struct ws_json_at row = ws_json_item(&rows, i);
        const char *mode = ws_json_string(&row, "mode", true);
        struct run d;
        struct ws_cluster_result r;
        if (!mode || strcmp(mode, "P")) {
            n_other++;
            continue;
        }
        if (!describe(c, &row, top, offline, n, &d) || !run(c, &d, tasks, n, NULL, &r))
            break;
        check_result(c,
                     ws_check_where("results[%zu] %s dvfs %s l %d", i, d.ops->name, d.argv[0] + 5,
                                    d.cluster.pairs_per_server),
                     &row, offline, &r);
        c->n_lines++;
    }
    if (n_other)
        printf("  %zu rows of the authors' released program (modes R_*) are not recomputed\n",
               n_other);
}

static void run_results(struct ws_check *c)
{
    struct ws_json_line l;
    char path[PATH_MAX];
    size_t n = 0;
    if (!sibling(c, ".results.json", ".tasks.jsonl", path) || !open_json(c, c->path, &l))
        return;
    struct ws_cluster_task *tasks = read_tasks(c, path, &n);
    if (tasks) {
        struct ws_json_at top = ws_json_root(&l);
        check_rows(c, &top, tasks, n);
    }
    free(tasks);
    close_json(c, &l);
}

const struct ws_check_kind ws_check_kind_edl_results = {"EDL results", match_results, run_results};

/* ---- schedules ---- */

static bool match_traces(const char *head, struct ws_json_line *first)
{
    (void)head;
    static const char *const keys[] = {"traces", "note", "name", NULL};
    return ws_check_has(first, keys);
}

static size_t find_task(const struct ws_cluster_task *tasks, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (tasks[i].id == id)
            return i;
    return n;
}

/* [task id, (pair,) start, t, P] of a schedule. @pair -1: the second number. */
static void check_job(struct ws_check *c, const char *at, const struct ws_json_at *job, int pair,
                      const struct ws_cluster_task *tasks, size_t n,
                      const struct ws_cluster_job *ours)
{
    struct ws_json_at v[5];
    int first = pair < 0 ? 2 : 1;
    for (int i = 0; i < first + 3; i++)
        v[i] = ws_json_item(job, (size_t)i);
    int64_t id = ws_json_integer_value(&v[0], 0, INT64_MAX);
    size_t k = find_task(tasks, n, id);
    if (k == n) {
        ws_check_fail(c, "%s: there is no task %lld", at, (long long)id);
        return;
    }
    ws_check_integer(c, ws_check_where("%s task %lld pair", at, (long long)id), ours[k].pair,
                     pair < 0 ? ws_json_integer_value(&v[1], 0, INT32_MAX) : pair);
    ws_check_number(c, ws_check_where("%s task %lld start", at, (long long)id), ours[k].start,
                    ws_json_value(&v[first], 0, 1e15), 1e-6, 2e-6);
    ws_check_number(c, ws_check_where("%s task %lld t", at, (long long)id), ours[k].point.t,
                    ws_json_value(&v[first + 1], 0, 1e15), 1e-6, 2e-6);
    ws_check_number(c, ws_check_where("%s task %lld P", at, (long long)id), ours[k].point.p,
                    ws_json_value(&v[first + 2], 0, 1e15), 1e-6, 2e-6);
}

static void check_schedule(struct ws_check *c, size_t i, const struct ws_json_at *trace,
                           const struct ws_json_at *top, const struct ws_cluster_task *tasks,
                           size_t n, struct ws_cluster_job *jobs)
{
    bool offline = ws_json_has(trace, "pairs");
    struct run d;
    struct ws_cluster_result r;
    if (!describe(c, trace, top, offline, n, &d) || !run(c, &d, tasks, n, jobs, &r))
        return;
    char at[100];
    snprintf(at, sizeof(at), "traces[%zu] %s dvfs %s l %d", i, d.ops->name, d.argv[0] + 5,
             d.cluster.pairs_per_server);
    struct ws_json_at list = ws_json_get(trace, offline ? "pairs" : "jobs", false);
    size_t n_listed = ws_json_length(&list, 1000000), n_tasks = 0;
    for (size_t k = 0; k < n_listed; k++) {
        struct ws_json_at item = ws_json_item(&list, k);
        if (!offline) {
            check_job(c, at, &item, -1, tasks, n, jobs);
            n_tasks++;
            continue;
        }
        /* Pairs stand as opened; Algorithm 3 gives ours other numbers, so all of one pair are to be
         * where its first one is. */
        size_t n_jobs = ws_json_length(&item, 1000000);
        struct ws_json_at one = ws_json_item(&item, 0), id = ws_json_item(&one, 0);
        size_t first = find_task(tasks, n, ws_json_integer_value(&id, 0, INT64_MAX));
        for (size_t m = 0; m < n_jobs && first < n; m++, n_tasks++) {
            one = ws_json_item(&item, m);
            check_job(c, at, &one, jobs[first].pair, tasks, n, jobs);
        }
    }
    ws_check_integer(c, ws_check_where("%s tasks", at), (int64_t)n, (int64_t)n_tasks);
    if (offline)
        ws_check_integer(c, ws_check_where("%s pairs", at), r.n_pairs_used, (int64_t)n_listed);
}

static void run_traces(struct ws_check *c)
{
    struct ws_json_line l, results;
    char path[PATH_MAX], results_path[PATH_MAX];
    size_t n = 0;
    if (!sibling(c, ".traces.json", ".tasks.jsonl", path) ||
        !sibling(c, ".traces.json", ".results.json", results_path) || !open_json(c, c->path, &l))
        return;
    struct ws_cluster_task *tasks = read_tasks(c, path, &n);
    struct ws_cluster_job *jobs = ws_alloc_array(n + 1, sizeof(*jobs));
    if (tasks && jobs && open_json(c, results_path, &results)) {
        struct ws_json_at root = ws_json_root(&l), top = ws_json_root(&results),
                          traces = ws_json_get(&root, "traces", false);
        size_t n_traces = ws_json_length(&traces, 100000);
        for (size_t i = 0; i < n_traces && !c->failed; i++) {
            struct ws_json_at trace = ws_json_item(&traces, i);
            check_schedule(c, i, &trace, &top, tasks, n, jobs);
        }
        close_json(c, &results);
    }
    free(jobs);
    free(tasks);
    close_json(c, &l);
}

const struct ws_check_kind ws_check_kind_edl_traces = {"EDL schedules", match_traces, run_traces};
