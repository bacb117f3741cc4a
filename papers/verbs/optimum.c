// SPDX-License-Identifier: Apache-2.0
/* wattshare optimum: finds the voltage and clocks of least energy for each task. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "papers/verbs/input.h"
#include "papers/common/parallel.h"
#include "cli/common/table.h"
#include "papers/sim/cluster.h"

struct optimum {
    struct ws_dvfs_interval interval;
    double limit;
    int n_jobs;
    bool json;
    struct ws_table table;
    bool failed;
};

/* Text that grows; NULL once memory is short. */
struct text {
    char *s;
    size_t n;
    FILE *f;
};

static void put_point(FILE *f, const struct ws_dvfs_point *p)
{
    fprintf(
        f, "{\"V\": %.10g, \"fc\": %.10g, \"fm\": %.10g, \"t\": %.12g, \"P\": %.12g, \"E\": %.12g}",
        p->v, p->fc, p->fm, p->t, p->p, p->e);
}

static void put_row(FILE *f, const char *name, const char *limit, const struct ws_dvfs_point *d,
                    const struct ws_dvfs_point *p)
{
    if (p)
        fprintf(f, "%s\t%s\t%.4f\t%.4f\t%.4f\t%.6g\t%.6g\t%.6g\t%.2f\n", name, limit, p->v, p->fc,
                p->fm, p->t, p->p, p->e, d->e > 0 ? 100 * (1 - p->e / d->e) : 0);
    else
        fprintf(f, "%s\t%s\t-\t-\t-\ttoo short\t-\t-\t-\n", name, limit);
}

/* One time limit of a task; false: no setting meets it. */
static bool limited(const struct optimum *o, FILE *f, const char *name, const char *field,
                    struct ws_json_line *l, const struct ws_dvfs_task *task,
                    const struct ws_dvfs_interval *iv, double limit)
{
    struct ws_dvfs_point p, best, d = ws_dvfs_default(task);
    int r = ws_dvfs_optimum(task, iv, limit, &p);
    bool prior = ws_dvfs_optimum(task, iv, INFINITY, &best) || best.t > limit;
    char text[32];
    snprintf(text, sizeof(text), "%.6g", limit);
    if (o->json) {
        fprintf(f, "{\"T\": %.12g, \"feasible\": %s", limit, r ? "false" : "true");
        if (!r) {
            fprintf(f, ", \"deadline_prior\": %s, \"solution\": ", prior ? "true" : "false");
            put_point(f, &p);
        }
        fputc('}', f);
    } else {
        put_row(f, name, text, &d, r ? NULL : &p);
    }
    if (r)
        ws_json_bad(l, field, "%g is too short; the task takes at least %g in this interval", limit,
                    ws_dvfs_t_min(task, iv));
    return !r;
}

/* All limits of a line; JSON between brackets. */
static void limits(const struct optimum *o, FILE *f, const char *name, struct ws_json_line *l,
                   const struct ws_json_at *at, const struct ws_dvfs_task *task,
                   const struct ws_dvfs_interval *iv)
{
    struct ws_json_at list = ws_json_get(at, "deadlines", true);
    size_t n = list.o ? ws_json_length(&list, 100000) : 0;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at one = ws_json_item(&list, i);
        double t = ws_json_number(&one, "T", 0, 1e15, NAN);
        char field[48];
        if (isnan(t))
            continue;
        snprintf(field, sizeof(field), "deadlines[%zu].T", i);
        if (any && o->json)
            fputs(", ", f);
        any = true;
        limited(o, f, name, field, l, task, iv, t);
    }
    double t = ws_json_number(at, "T", 0, 1e15, INFINITY);
    const char *field = "T";
    if (ws_json_has(at, "d")) {
        t = ws_json_number(at, "d", 0, 1e15, NAN) - ws_json_number(at, "a", 0, 1e15, 0);
        field = "d";
    }
    if (o->limit < INFINITY) {
        t = o->limit;
        field = "--limit";
    }
    if (t < INFINITY) {
        if (any && o->json)
            fputs(", ", f);
        limited(o, f, name, field, l, task, iv, t);
    }
}

static bool interval_of(const struct optimum *o, struct ws_json_line *l,
                        const struct ws_json_at *at, struct ws_dvfs_interval *ret)
{
    char error[200];
    const char *text = ws_json_string(at, "interval", false);
    *ret = o->interval;
    if (text && ws_dvfs_interval_parse(text, ret, error, sizeof(error)))
        ws_json_bad(l, "interval", "%s", error);
    return !l->bad;
}

static char *work(void *arg, struct ws_json_line *l)
{
    const struct optimum *o = arg;
    struct ws_json_at root = ws_json_root(l);
    struct ws_json_at at =
        ws_json_has(&root, "params") ? ws_json_get(&root, "params", false) : root;
    struct ws_dvfs_task task = ws_dvfs_task_read(&at);
    struct ws_dvfs_interval iv;
    if (l->bad || !interval_of(o, l, &root, &iv))
        return NULL;
    struct ws_dvfs_point p, d = ws_dvfs_default(&task);
    if (ws_dvfs_optimum(&task, &iv, INFINITY, &p))
        return NULL; /* can't be: without a limit every interval has one */
    struct text t = {0};
    t.f = open_memstream(&t.s, &t.n);
    if (!t.f)
        return NULL;
    struct json_object *id = NULL;
    json_object_object_get_ex(l->root, "id", &id);
    char name[32];
    snprintf(name, sizeof(name), "%.31s", id ? json_object_get_string(id) : "");
    for (char *s = name; *s; s++) /* cells are cut at tabs, and nothing may steer a terminal */
        *s = (unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s;
    if (!*name)
        snprintf(name, sizeof(name), "%u", l->number);
    if (o->json) {
        fprintf(t.f, "{\"id\": %s, \"t_star\": %.12g, \"P_star\": %.12g, \"E_star\": %.12g, ",
                id ? json_object_to_json_string_ext(id, JSON_C_TO_STRING_PLAIN) : name, d.t, d.p,
                d.e);
        fprintf(t.f, "\"t_min\": %.12g, \"unconstrained\": ", ws_dvfs_t_min(&task, &iv));
        put_point(t.f, &p);
        fprintf(t.f, ", \"saving_pct\": %.8g, \"limits\": [", d.e > 0 ? 100 * (1 - p.e / d.e) : 0);
    } else {
        put_row(t.f, name, "-", &d, &p);
    }
    limits(o, t.f, name, l, &root, &task, &iv);
    if (o->json)
        fputs("]}", t.f);
    fclose(t.f);
    return t.s;
}

static void sink(void *arg, struct ws_json_line *l, const char *text)
{
    struct optimum *o = arg;
    o->failed = !ws_json_line_report(l, stderr, "wattshare") || o->failed;
    if (text && o->json)
        puts(text);
    while (text && !o->json && *text) {
        size_t n = strcspn(text, "\t\n");
        ws_table_add(&o->table, "%.*s", (int)n, text);
        text += n + 1;
    }
}

static int read_input(void *arg, FILE *f, const char *name)
{
    struct optimum *o = arg;
    struct ws_jsonl r;
    ws_jsonl_init(&r, f, name);
    int e = ws_parallel_lines(&r, o->n_jobs, work, sink, o, NULL);
    ws_jsonl_deinit(&r);
    return e;
}

static int parse_interval(void *values, char *text)
{
    struct optimum *o = values;
    char error[200];
    if (!ws_dvfs_interval_parse(text, &o->interval, error, sizeof(error)))
        return 0;
    ws_cli_error("--interval: %s", error);
    return -EINVAL;
}

static const struct ws_option options[] = {
    {"interval", "INTERVAL",
     "The voltages and clocks: wide, narrow, or V_MIN:V_MAX,FC_MIN,FM_MIN:FM_MAX (wide).",
     .more = "A line may have an \"interval\" of its own.", WS_PARSE(parse_interval)},
    {"limit", "T", "A time limit for each task.",
     .more = "A line may have limits of its own: \"T\", or \"d\" (less the arrival \"a\"), or "
             "\"deadlines\": [{\"T\"}...].",
     WS_NUMBER(struct optimum, limit, 0, 1e15)},
    {"json", NULL, "Print one JSON object a line.", WS_FLAG(struct optimum, json)},
    WS_OPTION_JOBS(struct optimum, n_jobs),
    {0}};
static const char *const arguments[] = {"[FILE...]", NULL};
static const char *const examples[] = {"wattshare optimum --interval narrow --limit 30 tasks.jsonl",
                                       NULL};

static int optimum(int argc, char **argv);

const struct ws_verb ws_verb_optimum = {
    .name = "optimum",
    .purpose = "find the voltage and clocks of least energy for tasks",
    .about = "Tasks are {\"P0\",\"gamma\",\"c\",\"D\",\"delta\",\"t0\"}, one a line. Clocks and "
             "voltage are shares of the factory default.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .max_arguments = WS_ARGUMENTS_ANY,
    .run = optimum,
};

static int optimum(int argc, char **argv)
{
    static const char *const heads[] = {"task", "limit", "V",      "fc",      "fm",
                                        "time", "W",     "energy", "saved %", NULL};
    struct optimum o = {.interval = ws_dvfs_wide, .limit = INFINITY};
    char **files;
    int r = ws_verb_parse(&ws_verb_optimum, argc, argv, &o, &files);
    if (r >= 0)
        return r;
    ws_table_init(&o.table, heads);
    r = ws_cli_each_input(files, read_input, &o);
    if (!o.json && ws_table_print(&o.table, stdout))
        r = -ENOMEM;
    ws_table_deinit(&o.table);
    return r || o.failed || fflush(stdout) ? 1 : 0;
}
