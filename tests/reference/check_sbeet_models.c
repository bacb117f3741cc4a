// SPDX-License-Identifier: Apache-2.0
/* Recomputes reference/sbeet: measured profiles, energy-optimal SM counts, rankings, utilisations,
 * the paper's worked examples and tables. The files have 6 to 9 digits after the point; results
 * must agree within half of the last one. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/measured.h"
#include "papers/sets/gpus.h"
#include "tests/reference/check.h"

#define DIGITS_6 6e-7
#define DIGITS_8 6e-9
#define WINDOW   500 /* ms, of the authors' column energy_in_window */

static double other_static_w(const char *gpu)
{
    double sum = 0;
    for (int i = 0; ws_measured_gpu(i); i++)
        if (strcmp(ws_measured_gpu(i)->name, gpu) != 0)
            sum += ws_measured_gpu(i)->power.static_w;
    return sum;
}

/* ---- profiles.csv ---- */

static bool match_profiles(const char *head, struct ws_json_line *first)
{
    (void)first;
    return !strncmp(head, "gpu,benchmark,app_id,sm,max_sm,kernel_wcet_ms,", 46);
}

static void profile_line(struct ws_check *c, char *line)
{
    enum { N = 18 };
    char *f[N], *save = NULL;
    int n = 0;
    for (char *p = strtok_r(line, ",\r\n", &save); p && n < N; p = strtok_r(NULL, ",\r\n", &save))
        f[n++] = p;
    const struct ws_measured_kernel *k = n == N ? ws_measured_find(f[0], f[1]) : NULL;
    int m = n == N ? atoi(f[3]) : 0;
    char text[80];
    if (!k || m < 1 || m > k->cost.n_sm) {
        ws_check_fail(c, "line %u: not measured here", (unsigned)c->n_lines + 1);
        return;
    }
    const struct ws_energy_gpu *g = &ws_measured_gpu_find(k->gpu)->power;
    snprintf(text, sizeof(text), "%s %s %d SMs", k->gpu, k->name, m);
    ws_check_integer(c, ws_check_where("%s app_id", text), k->app, atoi(f[2]));
    ws_check_integer(c, ws_check_where("%s max_sm", text), g->n_sm, atoi(f[4]));
    const struct {
        const char *name;
        double ours;
        int field;
        double apart;
    } rows[] = {
        {"kernel_wcet_ms", k->cost.wcet[m - 1], 5, 0},
        {"kernel_avg_ms", k->mean_ms[m - 1], 6, 0},
        {"kernel_min_ms", k->min_ms[m - 1], 7, 0},
        {"h2d_ms", k->cost.h2d, 8, 0},
        {"d2h_ms", k->cost.d2h, 9, 0},
        {"power_w", k->cost.power_w[m - 1], 11, 0},
        {"energy_J", k->cost.wcet[m - 1] * k->cost.power_w[m - 1] / 1000, 12, DIGITS_8},
        {"energy_in_window_J",
         ws_energy_in_window_mj(g, &k->cost, m, WINDOW, other_static_w(k->gpu)) / 1000, 13,
         DIGITS_8},
        {"p_dyn_per_sm_w", k->cost.dyn_w_per_sm, 14, 0},
        {"p_idle_per_sm_w", g->idle_w_per_sm, 15, 0},
        {"p_static_w", g->static_w, 16, 0},
        {"model_power_w", ws_energy_power_w(WS_ENERGY_CORRECTED, g, m * k->cost.dyn_w_per_sm, m),
         17, DIGITS_6},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++)
        ws_check_number(c, ws_check_where("%s %s", text, rows[i].name), rows[i].ours,
                        strtod(f[rows[i].field], NULL), 0, rows[i].apart);
    /* The simulator's slip, which --copies-asis has. */
    ws_check_number(c, ws_check_where("%s d2h_ms_simulator_bug", text),
                    strcmp(k->gpu, "t400") ? k->cost.d2h : k->cost.h2d, strtod(f[10], NULL), 0, 0);
}

static void check_profiles(struct ws_check *c)
{
    FILE *f = fopen(c->path, "r");
    char *line = NULL;
    size_t cap = 0;
    if (!f) {
        ws_check_fail(c, "%s", strerror(errno));
        return;
    }
    for (bool head = true; getline(&line, &cap, f) > 0; head = false)
        if (!head) {
            profile_line(c, line);
            c->n_lines++;
        }
    free(line);
    fclose(f);
    ws_check_integer(c, "rows", (int64_t)c->n_lines, 8 * (46 + 6));
}

const struct ws_check_kind ws_check_kind_sbeet_profiles = {"sBEET-mg profiles", match_profiles,
                                                           check_profiles};

/* ---- unit_oracle.json ---- */

static bool match_oracle(const char *head, struct ws_json_line *first)
{
    (void)head;
    return ws_check_has(first, (const char *const[]){"m_opt_by_limit", "rankings", NULL});
}

static const struct ws_measured_kernel *kernel_at(struct ws_check *c, const char *gpu,
                                                  const char *kernel)
{
    const struct ws_measured_kernel *k = ws_measured_find(gpu, kernel);
    if (!k)
        ws_check_fail(c, "%s %s is not measured here", gpu, kernel);
    return k;
}

static void check_m_opt(struct ws_check *c, const struct ws_json_at *root)
{
    struct ws_json_at by_limit = ws_json_get(root, "m_opt_by_limit", false);
    json_object_object_foreach(by_limit.o, gpu, ignored)
    {
        struct ws_json_at at = ws_json_get(&by_limit, gpu, false);
        (void)ignored;
        json_object_object_foreach(at.o, kernel, list)
        {
            const struct ws_measured_kernel *k = kernel_at(c, gpu, kernel);
            const struct ws_measured_gpu *g = ws_measured_gpu_find(gpu);
            struct ws_json_at a = ws_json_get(&at, kernel, false);
            (void)list;
            for (size_t l = 0; k && l < ws_json_length(&a, WS_SM_MAX); l++) {
                struct ws_json_at v = ws_json_item(&a, l);
                ws_check_integer(c, ws_check_where("m_opt_by_limit.%s.%s[%zu]", gpu, kernel, l),
                                 ws_energy_optimal_sms(&g->power, &k->cost, (int)l + 1),
                                 ws_json_integer_value(&v, 1, WS_SM_MAX));
            }
        }
    }
}

/* With Eq. 2's power in place of the measured one. */
static void check_linear(struct ws_check *c, const struct ws_json_at *root)
{
    struct ws_json_at m_opt = ws_json_get(root, "m_opt_linear_model", false),
                      energy = ws_json_get(root, "active_energy_linear_model_J", false);
    json_object_object_foreach(m_opt.o, gpu, ignored)
    {
        struct ws_json_at m_gpu = ws_json_get(&m_opt, gpu, false),
                          e_gpu = ws_json_get(&energy, gpu, false);
        (void)ignored;
        json_object_object_foreach(m_gpu.o, kernel, limits)
        {
            const struct ws_measured_kernel *k = kernel_at(c, gpu, kernel);
            const struct ws_measured_gpu *g = ws_measured_gpu_find(gpu);
            if (!k)
                continue;
            struct ws_energy_kernel linear = k->cost;
            linear.power_w = NULL;
            struct ws_json_at m_at = ws_json_get(&m_gpu, kernel, false),
                              e_at = ws_json_get(&e_gpu, kernel, false);
            json_object_object_foreach(limits, limit, v)
            {
                int m = ws_energy_optimal_sms(&g->power, &linear, atoi(limit));
                (void)v;
                ws_check_integer(c,
                                 ws_check_where("m_opt_linear_model.%s.%s.%s", gpu, kernel, limit),
                                 m, ws_json_integer(&m_at, limit, 1, WS_SM_MAX, true, 1));
                ws_check_number(
                    c, ws_check_where("active_energy_linear_model_J.%s.%s.%s", gpu, kernel, limit),
                    ws_energy_active_mj(&g->power, &linear, m) / 1000, ws_check_value(&e_at, limit),
                    0, DIGITS_6);
            }
        }
    }
}

static void check_ranking(struct ws_check *c, const char *config, const char *kernel,
                          const struct ws_json_at *list)
{
    int limit = 46, n = (int)ws_json_length(list, 3), order[3];
    double cost[3];
    const struct ws_measured_kernel *k[3];
    int m[3];
    if (sscanf(config, "tab9_rtx%d", &limit) != 1 && sscanf(config, "rtx%d", &limit) != 1) {
        ws_check_fail(c, "the configuration '%s' is unknown", config);
        return;
    }
    for (int i = 0; i < n; i++) { /* the T400 has the last id */
        const char *gpu = i == n - 1 ? "t400" : "rtx3070";
        const struct ws_energy_gpu *g = &ws_measured_gpu_find(gpu)->power;
        if (!(k[i] = kernel_at(c, gpu, kernel)))
            return;
        m[i] = ws_energy_optimal_sms(g, &k[i]->cost, i == n - 1 ? g->n_sm : limit);
        cost[i] = ws_energy_in_window_mj(g, &k[i]->cost, m[i], WINDOW, other_static_w(gpu));
    }
    ws_energy_rank(cost, n, order);
    for (int i = 0; i < n; i++) {
        struct ws_json_at at = ws_json_item(list, (size_t)i);
        const char *name = ws_json_string(&at, "name", true);
        char text[80];
        snprintf(text, sizeof(text), "rankings.%s.%s[%d]", config, kernel, i);
        ws_check_integer(c, ws_check_where("%s.gpu", text), order[i],
                         ws_json_integer(&at, "gpu", 0, 2, true, 0));
        ws_check_text(c, ws_check_where("%s.name", text), k[order[i]]->gpu, name ? name : "");
        ws_check_integer(c, ws_check_where("%s.mopt", text), m[order[i]],
                         ws_json_integer(&at, "mopt", 1, WS_SM_MAX, true, 1));
        ws_check_number(c, ws_check_where("%s.energy_in_window_J", text), cost[order[i]] / 1000,
                        ws_check_value(&at, "energy_in_window_J"), 0, DIGITS_8);
    }
}

static void check_rankings(struct ws_check *c, const struct ws_json_at *root)
{
    struct ws_json_at rankings = ws_json_get(root, "rankings", false);
    json_object_object_foreach(rankings.o, config, ignored)
    {
        struct ws_json_at at = ws_json_get(&rankings, config, false);
        (void)ignored;
        json_object_object_foreach(at.o, kernel, v)
        {
            struct ws_json_at list = ws_json_get(&at, kernel, false);
            (void)v;
            check_ranking(c, config, kernel, &list);
        }
    }
}

static void check_utilizations(struct ws_check *c, const struct ws_json_at *root)
{
    struct ws_json_at utils = ws_json_get(root, "util_numerator_ms", false),
                      reference = ws_json_get(root, "period_reference_ms", false);
    json_object_object_foreach(utils.o, key, value)
    {
        char gpu[32];
        const char *bar = strrchr(key, '_');
        if (!json_object_is_type(value, json_type_object) || !bar)
            continue;
        snprintf(gpu, sizeof(gpu), "%.*s", (int)(bar - key), key);
        int limit = atoi(bar + 1);
        struct ws_json_at at = ws_json_get(&utils, key, false);
        json_object_object_foreach(at.o, kernel, v)
        {
            const struct ws_measured_kernel *k = kernel_at(c, gpu, kernel);
            struct ws_json_at row = ws_json_get(&at, kernel, false);
            (void)v;
            if (!k)
                return;
            struct ws_energy_kernel slip = k->cost;
            if (!strcmp(gpu, "t400"))
                slip.d2h = slip.h2d;
            int m = ws_energy_optimal_sms(&ws_measured_gpu_find(gpu)->power, &k->cost, limit);
            const struct {
                const char *name;
                double ours;
            } rows[] = {{"avg", ws_energy_mean_utilization(&k->cost, limit, 1)},
                        {"avg_bug", ws_energy_mean_utilization(&slip, limit, 1)},
                        {"mopt", ws_energy_utilization(&k->cost, m, 1)},
                        {"mopt_bug", ws_energy_utilization(&slip, m, 1)}};
            for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++)
                ws_check_number(
                    c, ws_check_where("util_numerator_ms.%s.%s.%s", key, kernel, rows[i].name),
                    rows[i].ours, ws_check_value(&row, rows[i].name), 0, DIGITS_6);
        }
    }
    json_object_object_foreach(reference.o, kernel, v)
    {
        const struct ws_measured_kernel *k = kernel_at(c, "rtx3070", kernel);
        (void)v;
        if (k)
            ws_check_number(c, ws_check_where("period_reference_ms.%s", kernel),
                            ws_energy_mean_utilization(&k->cost, 24, 1),
                            ws_check_value(&reference, kernel), 0, DIGITS_6);
    }
}

static void with_file(struct ws_check *c,
                      void (*work)(struct ws_check *c, const struct ws_json_at *root))
{
    struct ws_json_line l;
    int r = ws_json_file(c->path, &l);
    if (r) {
        ws_check_fail(c, "%s", strerror(-r));
        return;
    }
    c->n_lines = 1;
    if (!l.bad) {
        struct ws_json_at root = ws_json_root(&l);
        work(c, &root);
    }
    if (!ws_json_line_report(&l, stderr, "check"))
        c->failed = true;
    ws_json_line_deinit(&l);
}

static void oracle(struct ws_check *c, const struct ws_json_at *root)
{
    check_m_opt(c, root);
    check_linear(c, root);
    check_rankings(c, root);
    check_utilizations(c, root);
}

static void check_oracle(struct ws_check *c)
{
    with_file(c, oracle);
}

const struct ws_check_kind ws_check_kind_sbeet_oracle = {"sBEET-mg unit values", match_oracle,
                                                         check_oracle};

/* ---- paper_examples.json ---- */

static bool match_examples(const char *head, struct ws_json_line *first)
{
    (void)head;
    return ws_check_has(first, (const char *const[]){"examples", "table_II", "table_VI", NULL});
}

/* The paper's name of a kernel, the authors'. */
static const char *kernel_name(const char *paper)
{
    static const char *const names[][2] = {
        {"MatrixMul", "mmul"},  {"Stereodisparity", "stereodisparity"},
        {"Hotspot", "hotspot"}, {"DXTC", "dxtc"},
        {"BFS", "bfs"},         {"Histogram", "hist2"}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(names); i++)
        if (!strcmp(names[i][0], paper))
            return names[i][1];
    return paper;
}

enum { MAX_RUNS = 8, MAX_GPUS = 4 };
struct example {
    struct ws_energy_gpu gpus[MAX_GPUS];
    struct ws_energy_run runs[MAX_RUNS];
    int n_gpus, n_runs;
    double window;
};

static bool read_example(struct ws_check *c, const struct ws_json_at *at, struct example *ret)
{
    struct ws_json_at gpus = ws_json_get(at, "gpus", false), jobs = ws_json_get(at, "jobs", false);
    const char *names[MAX_GPUS];
    *ret = (struct example){.window = ws_check_value(at, "window_ms")};
    ret->n_gpus = (int)ws_json_length(&gpus, MAX_GPUS);
    ret->n_runs = (int)ws_json_length(&jobs, MAX_RUNS);
    for (int i = 0; i < ret->n_gpus; i++) {
        struct ws_json_at v = ws_json_item(&gpus, (size_t)i);
        names[i] = v.o ? json_object_get_string(v.o) : "";
        const struct ws_measured_gpu *g = ws_measured_gpu_find(names[i]);
        if (!g) {
            ws_check_fail(c, "'%s' is not measured here", names[i]);
            return false;
        }
        ret->gpus[i] = g->power;
    }
    for (int i = 0; i < ret->n_runs; i++) {
        struct ws_json_at j = ws_json_item(&jobs, (size_t)i);
        const char *name = ws_json_string(&j, "benchmark", true);
        int gpu = (int)ws_json_integer(&j, "gpu", 0, ret->n_gpus - 1, true, 0);
        const struct ws_measured_kernel *k =
            name && ret->n_gpus ? kernel_at(c, names[gpu], kernel_name(name)) : NULL;
        if (!k)
            return false;
        ret->runs[i] =
            (struct ws_energy_run){.gpu = gpu,
                                   .n_sm = (int)ws_json_integer(&j, "sm", 1, 46, true, 1),
                                   .dyn_w_per_sm = k->cost.dyn_w_per_sm,
                                   .start = ws_check_value(&j, "start_ms"),
                                   .end = ws_check_value(&j, "end_ms")};
    }
    return !at->line->bad;
}

static double energy_j(const struct example *e, enum ws_energy_form form)
{
    return ws_energy_window_mj(form, e->gpus, e->n_gpus, e->runs, (size_t)e->n_runs, 0, e->window) /
           1000;
}

/* As the authors' programs sum: the power at whole ms up to @last. */
static double sampled_j(const struct example *e, double last)
{
    double sum = 0;
    for (double t = 0; t <= last; t++)
        for (int k = 0; k < e->n_gpus; k++) {
            double w = 0;
            int busy = 0;
            for (int i = 0; i < e->n_runs; i++)
                if (e->runs[i].gpu == k && e->runs[i].start <= t && t < e->runs[i].end) {
                    w += e->runs[i].n_sm * e->runs[i].dyn_w_per_sm;
                    busy += e->runs[i].n_sm;
                }
            sum += ws_energy_power_w(WS_ENERGY_CORRECTED, &e->gpus[k], w, busy);
        }
    return sum / 1000;
}

static void check_example(struct ws_check *c, const struct ws_json_at *at)
{
    struct example e;
    const char *name = ws_json_string(at, "name", true);
    if (!name || !read_example(c, at, &e))
        return;
    const struct {
        const char *key;
        double ours, apart;
    } rows[] = {
        {"recomputed_J", energy_j(&e, WS_ENERGY_CORRECTED), DIGITS_6},
        {"literal_eq2_as_printed_J", energy_j(&e, WS_ENERGY_EQ2_PRINTED), DIGITS_6},
        {"eq3_without_power_gating_J", energy_j(&e, WS_ENERGY_EQ3_PRINTED), DIGITS_6},
        {"ref_sampled_0_to_win_inclusive_J", sampled_j(&e, e.window), DIGITS_6},
        {"ref_sampled_half_open_J", sampled_j(&e, e.window - 1), DIGITS_6},
        {"paper_J", energy_j(&e, WS_ENERGY_CORRECTED), 0.0025 * ws_check_value(at, "paper_J")},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++)
        ws_check_number(c, ws_check_where("%s %s", name, rows[i].key), rows[i].ours,
                        ws_check_value(at, rows[i].key), 0, rows[i].apart);
    struct ws_json_at each = ws_json_get(at, "recomputed_per_gpu_J", false);
    for (int k = 0; k < e.n_gpus; k++) {
        struct ws_json_at v = ws_json_item(&each, (size_t)k);
        struct example one = e;
        one.gpus[0] = e.gpus[k];
        one.n_gpus = 1;
        one.n_runs = 0;
        for (int i = 0; i < e.n_runs; i++)
            if (e.runs[i].gpu == k) {
                one.runs[one.n_runs] = e.runs[i];
                one.runs[one.n_runs++].gpu = 0;
            }
        ws_check_number(c, ws_check_where("%s recomputed_per_gpu_J[%d]", name, k),
                        energy_j(&one, WS_ENERGY_CORRECTED), ws_json_value(&v, 0, 1e9), 0,
                        DIGITS_6);
    }
}

static void check_table2(struct ws_check *c, const struct ws_json_at *root)
{
    struct ws_json_at table = ws_json_get(root, "table_II", false),
                      dynamic = ws_json_get(&table, "dynamic_w_per_sm", false),
                      fixed = ws_json_get(&table, "static_w", false),
                      idle = ws_json_get(&table, "idle_w_per_sm", false);
    json_object_object_foreach(dynamic.o, kernel, v)
    {
        struct ws_json_at row = ws_json_get(&dynamic, kernel, false);
        (void)v;
        for (int i = 0; ws_measured_gpu(i); i++) {
            const char *gpu = ws_measured_gpu(i)->name;
            const struct ws_measured_kernel *k = kernel_at(c, gpu, kernel_name(kernel));
            if (k)
                ws_check_number(c, ws_check_where("table_II %s %s", kernel, gpu),
                                k->cost.dyn_w_per_sm, ws_check_value(&row, gpu), 0, 0);
        }
    }
    for (int i = 0; ws_measured_gpu(i); i++) {
        const struct ws_measured_gpu *g = ws_measured_gpu(i);
        ws_check_number(c, ws_check_where("table_II static %s", g->name), g->power.static_w,
                        ws_check_value(&fixed, g->name), 0, 0);
        ws_check_number(c, ws_check_where("table_II idle %s", g->name), g->power.idle_w_per_sm,
                        ws_check_value(&idle, g->name), 0, 0);
    }
}

/* Times that the paper prints, rounded; its 63.724 is a slip for 63.734. */
static void check_times(struct ws_check *c, const struct ws_json_at *root)
{
    struct ws_json_at three = ws_json_get(root, "table_III", false),
                      ge = ws_json_get(&three, "G_e_ms", false),
                      csv = ws_json_get(&three, "csv_hist2_max_ms", false),
                      four = ws_json_get(root, "table_IV", false);
    const struct ws_measured_kernel *k = kernel_at(c, "t400", "hist2");
    json_object_object_foreach(ge.o, sms, v)
    {
        (void)v;
        ws_check_number(c, ws_check_where("table_III csv %s SMs", sms), k->cost.wcet[atoi(sms) - 1],
                        ws_check_value(&csv, sms), 0, 0);
        ws_check_number(c, ws_check_where("table_III %s SMs", sms), k->cost.wcet[atoi(sms) - 1],
                        ws_check_value(&ge, sms), 0, 0.0101);
    }
    json_object_object_foreach(four.o, kernel, ignored)
    {
        struct ws_json_at gpus = ws_json_get(&four, kernel, false);
        (void)ignored;
        if (!strcmp(kernel, "csv_max_ms") || !strcmp(kernel, "note"))
            continue;
        json_object_object_foreach(gpus.o, gpu, counts)
        {
            struct ws_json_at at = ws_json_get(&gpus, gpu, false);
            k = kernel_at(c, gpu, kernel_name(kernel));
            json_object_object_foreach(counts, count, w)
            {
                (void)w;
                if (k)
                    ws_check_number(c, ws_check_where("table_IV %s %s %s SMs", kernel, gpu, count),
                                    k->cost.wcet[atoi(count) - 1], ws_check_value(&at, count), 0,
                                    0.0051);
            }
        }
    }
}

static void check_table6(struct ws_check *c, const struct ws_json_at *root)
{
    struct ws_json_at rows = ws_json_get(root, "table_VI", false),
                      mean = ws_json_get(root, "table_VI_mean_MAE_W", false);
    size_t n = ws_json_length(&rows, 100);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at at = ws_json_item(&rows, i), d = ws_json_get(&at, "derived", false);
        sum += ws_check_value(&at, "MAE_power_W");
        ws_check_number(c, ws_check_where("table_VI[%zu] mean predicted power", i),
                        ws_check_value(&at, "E_pred_kJ") / 0.3,
                        ws_check_value(&d, "mean_pred_power_W"), 0, 0.0051);
    }
    ws_check_number(c, "table_VI mean of the errors", sum / (double)n,
                    ws_check_value(&mean, "recomputed"), 0, 6e-5);
}

static void examples(struct ws_check *c, const struct ws_json_at *root)
{
    struct ws_json_at list = ws_json_get(root, "examples", false);
    for (size_t i = 0; i < ws_json_length(&list, 100); i++) {
        struct ws_json_at at = ws_json_item(&list, i);
        check_example(c, &at);
    }
    check_table2(c, root);
    check_times(c, root);
    check_table6(c, root);
}

static void check_examples(struct ws_check *c)
{
    with_file(c, examples);
}

const struct ws_check_kind ws_check_kind_sbeet_examples = {"sBEET-mg examples and tables",
                                                           match_examples, check_examples};
