// SPDX-License-Identifier: Apache-2.0
/* Recomputes reference/edl/single, table3, fit and data: optima against the files' exhaustive
 * search, the worked example, and parameters fitted from the measured points. Tolerances are those
 * of the README: E 1e-7 relative (1e-6 is asked for), t 1e-6, clocks 1e-4. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "papers/fit/fit.h"
#include "papers/sets/csv.h"
#include "tests/reference/check_edl.h"

static const double e_share = 1e-7, t_share = 1e-6, clock_apart = 1e-4;

static bool interval_of(struct ws_check *c, const char *name, struct ws_dvfs_interval *ret)
{
    char error[128];
    if (name && !ws_dvfs_interval_parse(name, ret, error, sizeof(error)))
        return true;
    ws_check_fail(c, "interval '%s' is none of ours", name ? name : "");
    return false;
}

/* A point {V, fc, fm, t, P, E}. */
static void check_point(struct ws_check *c, const char *at, const struct ws_json_at *ref,
                        const struct ws_dvfs_point *p)
{
    ws_check_number(c, ws_check_where("%s E", at), p->e, ws_check_value(ref, "E"), e_share, 0);
    ws_check_number(c, ws_check_where("%s t", at), p->t, ws_check_value(ref, "t"), t_share, 1e-6);
    ws_check_number(c, ws_check_where("%s P", at), p->p, ws_check_value(ref, "P"), t_share, 1e-6);
    ws_check_number(c, ws_check_where("%s V", at), p->v, ws_check_value(ref, "V"), 0, clock_apart);
    ws_check_number(c, ws_check_where("%s fc", at), p->fc, ws_check_value(ref, "fc"), 0,
                    clock_apart);
    ws_check_number(c, ws_check_where("%s fm", at), p->fm, ws_check_value(ref, "fm"), 0,
                    clock_apart);
}

/* ---- single_task_cases.jsonl ---- */

static bool match_cases(const char *head, struct ws_json_line *first)
{
    (void)head;
    static const char *const keys[] = {"params", "interval", "unconstrained", "deadlines", NULL};
    return ws_check_has(first, keys);
}

static void check_case(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    (void)arg;
    struct ws_json_at root = ws_json_root(l), params = ws_json_get(&root, "params", false),
                      best = ws_json_get(&root, "unconstrained", false),
                      limits = ws_json_get(&root, "deadlines", false);
    struct ws_dvfs_task task = ws_dvfs_task_read(&params);
    struct ws_dvfs_interval iv;
    struct ws_dvfs_point p;
    if (l->bad || !interval_of(c, ws_json_string(&root, "interval", true), &iv))
        return;
    char at[64];
    snprintf(at, sizeof(at), "line %u", l->number);
    ws_check_number(c, ws_check_where("%s t_min", at), ws_dvfs_t_min(&task, &iv),
                    ws_check_value(&root, "t_min"), 1e-9, 0);
    if (ws_dvfs_optimum(&task, &iv, INFINITY, &p))
        ws_check_fail(c, "%s: no optimum", at);
    else
        check_point(c, ws_check_where("%s unconstrained", at), &best, &p);
    ws_check_number(c, ws_check_where("%s saving", at), 100 * (1 - p.e / ws_dvfs_default(&task).e),
                    ws_check_value(&root, "saving_pct"), 0, 1e-5);
    for (size_t i = 0; i < ws_json_length(&limits, 1000); i++) {
        struct ws_json_at row = ws_json_item(&limits, i);
        double limit = ws_check_value(&row, "T");
        bool feasible = ws_json_bool(&row, "feasible", true, false);
        int r = ws_dvfs_optimum(&task, &iv, limit, &p);
        ws_check_bool(c, ws_check_where("%s deadlines[%zu] feasible", at, i), !r, feasible);
        if (r || !feasible)
            continue;
        struct ws_json_at solution = ws_json_get(&row, "solution", false);
        check_point(c, ws_check_where("%s deadlines[%zu]", at, i), &solution, &p);
    }
}

static void run_cases(struct ws_check *c)
{
    ws_check_lines(c, check_case, NULL);
}

const struct ws_check_kind ws_check_kind_edl_cases = {"DVFS optima with time limits", match_cases,
                                                      run_cases};

/* ---- single_task_optimum.json ---- */

static bool match_optimum(const char *head, struct ws_json_line *first)
{
    (void)head;
    static const char *const keys[] = {"intervals", "averages", "apps", NULL};
    return ws_check_has(first, keys);
}

enum { N_CASES = 4 };
static const struct {
    const char *name, *interval;
    double divisor; /* of P0 and gamma: how the authors' release draws its bars */
} single_cases[N_CASES] = {{"Wide", "wide", 1},
                           {"Narrow", "narrow", 1},
                           {"Wide_P0_gamma_div13", "wide", 13},
                           {"Narrow_P0_gamma_div13", "narrow", 13}};

/* Returns our saving in percent. */
static double check_single(struct ws_check *c, const char *at, const struct ws_json_at *app, int k)
{
    struct ws_json_at params = ws_json_get(app, "params", false),
                      cases = ws_json_get(app, "cases", false),
                      ref = ws_json_get(&cases, single_cases[k].name, false),
                      brute = ws_json_get(&ref, "brute", false);
    struct ws_dvfs_task task = ws_dvfs_task_read(&params);
    struct ws_dvfs_interval iv;
    struct ws_dvfs_point p;
    if (app->line->bad || !interval_of(c, single_cases[k].interval, &iv))
        return NAN;
    task.p0 /= single_cases[k].divisor;
    task.gamma /= single_cases[k].divisor;
    struct ws_dvfs_point d = ws_dvfs_default(&task);
    if (ws_dvfs_optimum(&task, &iv, INFINITY, &p)) {
        ws_check_fail(c, "%s: no optimum", at);
        return NAN;
    }
    ws_check_number(c, ws_check_where("%s E_default", at), d.e, ws_check_value(&ref, "E_default"),
                    e_share, 1e-6);
    /* The clocks of a flat optimum are not determined well by an exhaustive search; its energy is
     * what counts. */
    ws_check_number(c, ws_check_where("%s E", at), p.e, ws_check_value(&brute, "E"), e_share, 1e-6);
    struct ws_json_at analytic = ws_json_get(&ref, "analytic", false);
    ws_check_number(c, ws_check_where("%s t", at), p.t, ws_check_value(&analytic, "t"), 2e-6, 1e-6);
    ws_check_number(c, ws_check_where("%s fc", at), p.fc, ws_check_value(&analytic, "fc"), 0,
                    clock_apart);
    ws_check_number(c, ws_check_where("%s fm", at), p.fm, ws_check_value(&analytic, "fm"), 0,
                    clock_apart);
    double saving = 100 * (1 - p.e / d.e);
    ws_check_number(c, ws_check_where("%s saving", at), saving,
                    ws_check_value(&ref, "saving_pct_brute"), 0, 1e-4);
    return saving;
}

static void check_averages(struct ws_check *c, const struct ws_json_at *root,
                           const struct ws_json_at *apps, const char *gpu)
{
    double sum[N_CASES] = {0}, n = 0;
    for (size_t i = 0; i < ws_json_length(apps, 10000); i++) {
        struct ws_json_at app = ws_json_item(apps, i);
        const char *g = ws_json_string(&app, "gpu", true);
        if (!g || strcmp(g, gpu))
            continue;
        n++;
        for (int k = 0; k < N_CASES; k++)
            sum[k] +=
                check_single(c,
                             ws_check_where("%s %s %s", gpu, ws_json_string(&app, "app", true),
                                            single_cases[k].name),
                             &app, k);
    }
    struct ws_json_at averages = ws_json_get(root, "averages", false),
                      all = ws_json_get(&averages, ws_check_where("%s/all", gpu), false);
    ws_check_integer(c, ws_check_where("%s n_apps", gpu), (int64_t)n,
                     ws_json_integer(&all, "n_apps", 0, 10000, true, 0));
    for (int k = 0; k < N_CASES; k++) {
        struct ws_json_at a = ws_json_get(&all, single_cases[k].name, false);
        ws_check_number(c, ws_check_where("%s %s mean saving", gpu, single_cases[k].name),
                        sum[k] / n, ws_check_value(&a, "mean_saving_pct_brute"), 0, 1e-4);
    }
}

static void run_optimum(struct ws_check *c)
{
    struct ws_json_line l;
    if (!open_json(c, c->path, &l))
        return;
    struct ws_json_at root = ws_json_root(&l), apps = ws_json_get(&root, "apps", false);
    check_averages(c, &root, &apps, "GTX1080Ti");
    check_averages(c, &root, &apps, "RTX2070S");
    close_json(c, &l);
}

const struct ws_check_kind ws_check_kind_edl_optimum = {"DVFS optima of applications",
                                                        match_optimum, run_optimum};

/* ---- table3.json ---- */

static bool match_table3(const char *head, struct ws_json_line *first)
{
    (void)head;
    static const char *const keys[] = {"table", "theta_0_9", "theta_1", NULL};
    return ws_check_has(first, keys);
}

enum { TABLE3_N = 5 };

static void check_table3_runs(struct ws_check *c, const struct ws_json_at *root,
                              const struct ws_cluster_task tasks[TABLE3_N], const char *key)
{
    struct ws_json_at ref = ws_json_get(root, key, false),
                      pairs = ws_json_get(&ref, "pairs", false);
    char theta[48], error[256] = "";
    snprintf(theta, sizeof(theta), "theta=%.17g", ws_check_value(&ref, "theta"));
    const char *options[] = {theta, "rho=0", "slot=0", NULL};
    const struct ws_cluster cluster = {.n_pairs = 10, .pairs_per_server = 2, .idle_w = 30};
    struct ws_cluster_job jobs[TABLE3_N];
    struct ws_cluster_result r;
    int e = ws_cluster_run(&cluster, tasks, TABLE3_N, &ws_policy_edl, options, jobs, &r, error,
                           sizeof(error));
    if (e) {
        ws_check_fail(c, "%s: %s", key, e > 0 ? error : strerror(-e));
        return;
    }
    ws_check_number(c, ws_check_where("%s E_run", key), r.e_run, ws_check_value(&ref, "E_run"),
                    1e-7, 0);
    ws_check_number(c, ws_check_where("%s E_idle_alg3_counting_unused_slot", key), r.e_idle,
                    ws_check_value(&ref, "E_idle_alg3_counting_unused_slot"), 1e-6, 0);
    ws_check_number(c, ws_check_where("%s E_idle_alg3_ignoring_unused_slot", key), r.e_idle_used,
                    ws_check_value(&ref, "E_idle_alg3_ignoring_unused_slot"), 1e-5, 0);
    ws_check_number(c, ws_check_where("%s E_total_alg3", key), r.e_total,
                    ws_check_value(&ref, "E_total_alg3"), 1e-7, 0);
    for (size_t i = 0; i < ws_json_length(&pairs, 10); i++) {
        struct ws_json_at pair = ws_json_item(&pairs, i), list = ws_json_get(&pair, "jobs", false);
        int first = -1;
        for (size_t k = 0; k < ws_json_length(&list, TABLE3_N); k++) {
            struct ws_json_at job = ws_json_item(&list, k);
            const char *name = ws_json_string(&job, "task", true);
            int t = name && name[0] == 'J' ? name[1] - '1' : -1;
            if (t < 0 || t >= TABLE3_N) {
                ws_check_fail(c, "%s: task '%s'", key, name ? name : "");
                return;
            }
            first = first < 0 ? jobs[t].pair : first;
            ws_check_integer(c, ws_check_where("%s %s pair", key, name), jobs[t].pair, first);
            ws_check_number(c, ws_check_where("%s %s start", key, name), jobs[t].start,
                            ws_check_value(&job, "start"), 1e-8, 0);
            ws_check_number(c, ws_check_where("%s %s t", key, name), jobs[t].point.t,
                            ws_check_value(&job, "t"), 1e-7, 0);
            ws_check_number(c, ws_check_where("%s %s P", key, name), jobs[t].point.p,
                            ws_check_value(&job, "P"), 1e-7, 0);
        }
    }
}

static void run_table3(struct ws_check *c)
{
    struct ws_json_line l;
    if (!open_json(c, c->path, &l))
        return;
    struct ws_json_at root = ws_json_root(&l), table = ws_json_get(&root, "table", false);
    struct ws_cluster_task tasks[TABLE3_N];
    for (int i = 0; i < TABLE3_N; i++) {
        struct ws_json_at row = ws_json_get(&table, ws_check_where("J%d", i + 1), false),
                          params = ws_json_get(&row, "params", false),
                          best = ws_json_get(&row, "unconstrained", false);
        tasks[i] = (struct ws_cluster_task){
            .id = i + 1, .deadline = ws_check_value(&row, "d"), .dvfs = ws_dvfs_task_read(&params)};
        struct ws_dvfs_point p, q;
        if (l.bad || ws_dvfs_optimum(&tasks[i].dvfs, &ws_dvfs_wide, INFINITY, &p) ||
            ws_dvfs_optimum(&tasks[i].dvfs, &ws_dvfs_wide, tasks[i].deadline, &q)) {
            ws_check_fail(c, "J%d has no optimum", i + 1);
            break;
        }
        char at[16];
        snprintf(at, sizeof(at), "J%d", i + 1);
        check_point(c, ws_check_where("%s unconstrained", at), &best, &p);
        ws_check_number(c, ws_check_where("%s E_hat", at), q.e, ws_check_value(&row, "brute_E"),
                        e_share, 0);
        ws_check_number(c, ws_check_where("%s P_hat", at), q.p, ws_check_value(&row, "P_hat"),
                        t_share, 0);
        ws_check_number(c, ws_check_where("%s t_hat", at), q.t, ws_check_value(&row, "t_hat"),
                        t_share, 0);
        ws_check_number(c, ws_check_where("%s t_min", at),
                        ws_dvfs_t_min(&tasks[i].dvfs, &ws_dvfs_wide), ws_check_value(&row, "t_min"),
                        1e-8, 0);
        ws_check_bool(c, ws_check_where("%s deadline_prior", at), p.t > tasks[i].deadline,
                      ws_json_bool(&row, "deadline_prior", true, false));
    }
    if (!c->failed && !l.bad) {
        check_table3_runs(c, &root, tasks, "theta_0_9");
        check_table3_runs(c, &root, tasks, "theta_1");
    }
    close_json(c, &l);
}

const struct ws_check_kind ws_check_kind_edl_table3 = {"EDL worked example", match_table3,
                                                       run_table3};

/* ---- measured points ---- */

enum { APP_SAMPLES_MAX = 64, NAME_MAX_BYTES = 64 };
struct app {
    char gpu[NAME_MAX_BYTES], name[NAME_MAX_BYTES];
    struct ws_fit_sample s[APP_SAMPLES_MAX];
    int n;
};
struct apps {
    struct app *v;
    size_t n, cap;
};

static const struct {
    const char *gpu;
    double core_mhz, mem_mhz; /* factory default */
} gpus[] = {{"GTX1080Ti", 1800, 5000}, {"RTX2070S", 1880, 6300}};

static int column(struct ws_check *c, const struct ws_csv *t, const char *name)
{
    const char *const names[] = {name, NULL};
    int i = ws_csv_column(t, names);
    if (i < 0)
        ws_check_fail(c, "column %s is missing", name);
    return i;
}

static struct app *find_app(struct apps *a, const char *gpu, const char *name, bool add)
{
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->v[i].gpu, gpu) && !strcmp(a->v[i].name, name))
            return &a->v[i];
    void *v = a->v;
    if (!add || ws_grow(&v, &a->cap, a->n + 1, sizeof(*a->v)) < 0)
        return NULL;
    a->v = v;
    struct app *p = &a->v[a->n++];
    *p = (struct app){0};
    snprintf(p->gpu, sizeof(p->gpu), "%s", gpu);
    snprintf(p->name, sizeof(p->name), "%s", name);
    return p;
}

/* One row of measurements: its derived columns, and the sample into @a. */
static void add_row(struct ws_check *c, const struct ws_csv *t, const int col[11], struct apps *a)
{
    double v[11];
    for (int i = 2; i < 11; i++)
        v[i] = ws_csv_number(t, col[i], 0, 1e12, NULL);
    const char *gpu = t->cells[col[0]];
    struct app *app = find_app(a, gpu, t->cells[col[1]], true);
    size_t g = 0;
    while (g < WS_ARRAY_SIZE(gpus) && strcmp(gpus[g].gpu, gpu))
        g++;
    if (!app || app->n == APP_SAMPLES_MAX || g == WS_ARRAY_SIZE(gpus)) {
        ws_check_fail(c, "line %u: GPU or application is not as expected", t->number);
        return;
    }
    /* core_mhz mem_mhz fc fm v time power energy */
    double fc = v[2] / gpus[g].core_mhz, fm = v[3] / gpus[g].mem_mhz;
    ws_check_number(c, ws_check_where("line %u fc_norm", t->number), fc, v[4], 0, 6e-7);
    ws_check_number(c, ws_check_where("line %u fm_norm", t->number), fm, v[5], 0, 6e-7);
    ws_check_number(c, ws_check_where("line %u v_norm_assumed", t->number), ws_dvfs_g1_inverse(fc),
                    v[6], 0, 6e-7);
    ws_check_number(c, ws_check_where("line %u energy_mJ", t->number), v[7] * v[8], v[9], 1e-6,
                    1e-5);
    app->s[app->n++] =
        (struct ws_fit_sample){.fc = fc, .fm = fm, .v = NAN, .time = v[7], .power = v[8]};
}

/* @quiet: another file is checked, these are only its inputs. */
static bool read_measurements(struct ws_check *c, const char *path, struct apps *ret)
{
    static const char *const names[] = {"gpu",     "app",      "core_mhz",       "mem_mhz",
                                        "fc_norm", "fm_norm",  "v_norm_assumed", "time_ms",
                                        "power_W", "energy_mJ"};
    FILE *f = fopen(path, "r");
    if (!f) {
        ws_check_fail(c, "%s: %s", path, strerror(errno));
        return false;
    }
    struct ws_csv t;
    int col[11] = {0}, r = ws_csv_open(&t, f, path, NULL);
    if (r)
        ws_check_fail(c, "%s: it has no columns", path);
    for (size_t i = 0; i < WS_ARRAY_SIZE(names) && !c->failed; i++)
        col[i] = column(c, &t, names[i]);
    col[10] = col[9];
    while (!c->failed && !(r = ws_csv_next(&t, NULL)))
        add_row(c, &t, col, ret);
    if (!c->failed && r != WS_CSV_END)
        ws_check_fail(c, "%s:%u: it can't be read", path, t.number);
    ws_csv_deinit(&t);
    fclose(f);
    return !c->failed;
}

static bool starts_with(const char *s, const char *prefix)
{
    return !strncmp(s, prefix, strlen(prefix));
}

static bool match_data(const char *head, struct ws_json_line *first)
{
    (void)first;
    return starts_with(head, "gpu,app,kernel,core_mhz,mem_mhz");
}

/* What the issue asks of the fit: at most 1 % mean error in time, power and energy over all
 * measured points. */
static void check_figure(struct ws_check *c, const struct apps *a)
{
    double e[3] = {0}, n = 0;
    char error[160];
    for (size_t i = 0; i < a->n; i++) {
        struct ws_dvfs_task task;
        if (ws_fit(a->v[i].s, a->v[i].n, WS_FIT_NNLS, &task, error, sizeof(error))) {
            ws_check_fail(c, "%s: %s", a->v[i].name, error);
            return;
        }
        struct ws_fit_error err = ws_fit_error(&task, a->v[i].s, a->v[i].n);
        e[0] += err.mape_time * err.n;
        e[1] += err.mape_power * err.n;
        e[2] += err.mape_energy * err.n;
        n += err.n;
    }
    static const char *const names[] = {"time", "power", "energy"};
    for (int i = 0; i < 3; i++) {
        printf("  fit of %g points: MAPE of %s %.3f %%\n", n, names[i], e[i] / n);
        ws_check_bool(c, ws_check_where("MAPE of %s at most 1 %%", names[i]), e[i] / n <= 1, true);
    }
}

static void run_data(struct ws_check *c)
{
    struct apps a = {0};
    if (read_measurements(c, c->path, &a))
        check_figure(c, &a);
    free(a.v);
}

const struct ws_check_kind ws_check_kind_edl_measurements = {"DVFS measurements", match_data,
                                                             run_data};

/* ---- fitted parameters ---- */

/* The measured points of the set this file belongs to. */
static bool read_set(struct ws_check *c, struct apps *ret)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%.*s/../data/dvfs_measurements.csv", PATH_MAX - 40, c->folder);
    struct ws_check own = {.path = path, .folder = c->folder};
    bool good = read_measurements(&own, path, ret);
    c->failed = c->failed || !good;
    return good;
}

static int method_of(const char *name)
{
    return starts_with(name, "lasso_pos") ? (int)WS_FIT_LASSO_POS : ws_fit_method_parse(name);
}

static bool match_fit(const char *head, struct ws_json_line *first)
{
    (void)first;
    return starts_with(head, "gpu,app,method,n,t0_ms,D_ms,delta");
}

enum { N_FIT = 18 };
static const char *const fit_names[N_FIT] = {"t0_ms",
                                             "D_ms",
                                             "delta",
                                             "P0_W",
                                             "gamma_W",
                                             "c_W",
                                             "t_star_ms",
                                             "P_star_W",
                                             "P0_over_Pstar",
                                             "gamma_over_Pstar",
                                             "c_over_Pstar",
                                             "mape_time_pct",
                                             "mape_power_pct",
                                             "mape_energy_pct",
                                             "max_ape_time_pct",
                                             "max_ape_power_pct",
                                             "max_ape_energy_pct",
                                             "rmse_time_ms"};

static void fit_values(const struct ws_dvfs_task *t, const struct ws_fit_error *e, double v[N_FIT])
{
    struct ws_dvfs_point d = ws_dvfs_default(t);
    const double values[N_FIT] = {t->t0,         t->d,           t->delta,    t->p0,
                                  t->gamma,      t->c,           d.t,         d.p,
                                  t->p0 / d.p,   t->gamma / d.p, t->c / d.p,  e->mape_time,
                                  e->mape_power, e->mape_energy, e->max_time, e->max_power,
                                  e->max_energy, e->rmse_time};
    memcpy(v, values, sizeof(values));
}

static void check_fit_row(struct ws_check *c, const struct ws_csv *t, const int col[N_FIT],
                          struct apps *a)
{
    struct app *app = find_app(a, t->cells[0], t->cells[1], false);
    int method = method_of(t->cells[2]);
    struct ws_dvfs_task task;
    char error[160];
    if (!app || method < 0) {
        ws_check_fail(c, "line %u: no such application or method", t->number);
        return;
    }
    if (ws_fit(app->s, app->n, (enum ws_fit_method)method, &task, error, sizeof(error))) {
        ws_check_fail(c, "line %u: %s", t->number, error);
        return;
    }
    struct ws_fit_error e = ws_fit_error(&task, app->s, app->n);
    double v[N_FIT];
    fit_values(&task, &e, v);
    for (int i = 0; i < N_FIT; i++)
        ws_check_number(
            c, ws_check_where("line %u %s %s %s", t->number, app->name, t->cells[2], fit_names[i]),
            v[i], ws_csv_number(t, col[i], -1e12, 1e12, NULL), 1e-6, 1.5e-6);
}

static void run_fit(struct ws_check *c)
{
    struct apps a = {0};
    FILE *f = fopen(c->path, "r");
    struct ws_csv t = {0};
    int r = f ? ws_csv_open(&t, f, c->path, NULL) : -errno, col[N_FIT] = {0};
    if (r)
        ws_check_fail(c, "it can't be read");
    for (int i = 0; i < N_FIT && !c->failed; i++)
        col[i] = column(c, &t, fit_names[i]);
    if (!c->failed && read_set(c, &a))
        while (!c->failed && !(r = ws_csv_next(&t, NULL)))
            check_fit_row(c, &t, col, &a);
    if (!c->failed && r != WS_CSV_END)
        ws_check_fail(c, "line %u can't be read", t.number);
    ws_csv_deinit(&t);
    if (f)
        fclose(f);
    free(a.v);
}

const struct ws_check_kind ws_check_kind_edl_fit = {"DVFS fits", match_fit, run_fit};

/* ---- fit_summary.json: "GPU/method/all" or "…/first20_alphabetical" ---- */

static bool match_summary(const char *head, struct ws_json_line *first)
{
    (void)head;
    static const char *const keys[] = {"sets", "note", NULL};
    if (!ws_check_has(first, keys))
        return false;
    struct ws_json_at root = ws_json_root(first), sets = ws_json_get(&root, "sets", true);
    return ws_json_has(&sets, "GTX1080Ti/nnls/all");
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int by_name(const void *a, const void *b)
{
    const struct app *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void check_statistics(struct ws_check *c, const char *at, const struct ws_json_at *ref,
                             double *v, int n)
{
    double sum = 0, square = 0;
    qsort(v, (size_t)n, sizeof(*v), by_value);
    for (int i = 0; i < n; i++)
        sum += v[i];
    double mean = sum / n;
    for (int i = 0; i < n; i++)
        square += (v[i] - mean) * (v[i] - mean);
    double half = 1.96 * sqrt(square / (n - 1)) / sqrt(n);
    ws_check_number(c, ws_check_where("%s min", at), v[0], ws_check_value(ref, "min"), 0, 6e-5);
    ws_check_number(c, ws_check_where("%s max", at), v[n - 1], ws_check_value(ref, "max"), 0, 6e-5);
    ws_check_number(c, ws_check_where("%s median", at), (v[n / 2] + v[(n - 1) / 2]) / 2,
                    ws_check_value(ref, "median"), 0, 6e-5);
    ws_check_number(c, ws_check_where("%s mean", at), mean, ws_check_value(ref, "mean"), 0, 6e-5);
    struct ws_json_at ci = ws_json_get(ref, "ci95_of_mean", false), lo = ws_json_item(&ci, 0),
                      hi = ws_json_item(&ci, 1);
    ws_check_number(c, ws_check_where("%s ci95 low", at), mean - half,
                    ws_json_value(&lo, -1e12, 1e12), 0, 6e-5);
    ws_check_number(c, ws_check_where("%s ci95 high", at), mean + half,
                    ws_json_value(&hi, -1e12, 1e12), 0, 6e-5);
}

static void check_set(struct ws_check *c, const char *key, const struct ws_json_at *set,
                      struct apps *a)
{
    enum { MAX = 64 };
    char gpu[NAME_MAX_BYTES], method[NAME_MAX_BYTES], which[NAME_MAX_BYTES], error[160];
    const struct app *chosen[MAX];
    static double v[N_FIT][MAX];
    int n = 0, m;
    if (sscanf(key, "%63[^/]/%63[^/]/%63s", gpu, method, which) != 3 ||
        (m = method_of(method)) < 0) {
        ws_check_fail(c, "set '%s' is not as expected", key);
        return;
    }
    for (size_t i = 0; i < a->n && n < MAX; i++)
        if (!strcmp(a->v[i].gpu, gpu))
            chosen[n++] = &a->v[i];
    qsort(chosen, (size_t)n, sizeof(*chosen), by_name);
    if (starts_with(which, "first20"))
        n = WS_MIN(n, 20);
    for (int i = 0; i < n; i++) {
        struct ws_dvfs_task task;
        double one[N_FIT];
        if (ws_fit(chosen[i]->s, chosen[i]->n, (enum ws_fit_method)m, &task, error,
                   sizeof(error))) {
            ws_check_fail(c, "%s: %s", chosen[i]->name, error);
            return;
        }
        struct ws_fit_error e = ws_fit_error(&task, chosen[i]->s, chosen[i]->n);
        fit_values(&task, &e, one);
        for (int k = 0; k < N_FIT; k++)
            v[k][i] = one[k];
    }
    ws_check_integer(c, ws_check_where("%s n_apps", key), n,
                     ws_json_integer(set, "n_apps", 0, 1000, true, 0));
    struct ws_json_at params = ws_json_get(set, "params", false);
    for (int k = 0; k < N_FIT; k++) {
        const char *mean = ws_check_where("mean_%s", fit_names[k]);
        double sum = 0;
        for (int i = 0; i < n; i++)
            sum += v[k][i];
        if (ws_json_has(set, mean))
            ws_check_number(c, ws_check_where("%s %s", key, mean), sum / n,
                            ws_check_value(set, mean), 0, 6e-5);
        if (ws_json_has(&params, fit_names[k])) {
            struct ws_json_at ref = ws_json_get(&params, fit_names[k], false);
            check_statistics(c, ws_check_where("%s %s", key, fit_names[k]), &ref, v[k], n);
        }
    }
}

static void run_summary(struct ws_check *c)
{
    struct apps a = {0};
    struct ws_json_line l;
    if (!read_set(c, &a) || !open_json(c, c->path, &l)) {
        free(a.v);
        return;
    }
    struct ws_json_at root = ws_json_root(&l), sets = ws_json_get(&root, "sets", false);
    json_object_object_foreach(sets.o, key, value)
    {
        (void)value;
        struct ws_json_at set = ws_json_get(&sets, key, false);
        check_set(c, key, &set, &a);
    }
    close_json(c, &l);
    free(a.v);
}

const struct ws_check_kind ws_check_kind_edl_fit_summary = {"DVFS fits, statistics", match_summary,
                                                            run_summary};
