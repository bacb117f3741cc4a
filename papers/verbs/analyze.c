// SPDX-License-Identifier: Apache-2.0
/* wattshare analyze: says of each task set whether it is schedulable, by each of the given
 * methods. Sets are analysed on several threads and answered in order. For a set that cannot be
 * read or judged, an error names file, line and field; the others are analysed. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/common/options.h"
#include "papers/verbs/analyze_plan.h"
#include "papers/verbs/input.h"
#include "papers/common/parallel.h"
#include "cli/common/table.h"
#include "papers/sets/rt_sets.h"
#include "papers/sets/sbeet_set.h"

enum { METHODS_MAX = 64, ROWS_MAX = 40 };

struct analyze {
    const struct ws_rta_method *methods[METHODS_MAX]; /* NULL: wattshare_safe */
    const char *names[METHODS_MAX];                   /* as typed; keys of the results */
    int n_methods;
    bool all; /* those that don't apply are left out */
    bool table, list, failed;
    int n_jobs;
    const char *gpu_names;
    struct ws_gpus gpus;
    struct ws_json_line gpus_line; /* names in gpus are borrowed from it */
    struct ws_table rows;
    struct json_object *first; /* the only good answer so far, for its table */
    uint64_t n_sets, n_judged[METHODS_MAX], n_ok[METHODS_MAX];
};

/* ---- one set ---- */

struct space {
    struct ws_rta_work rta;
    struct ws_stgm_work stgm;
    struct ws_stgm_whole whole;
};

/* A bound in the unit of the input, without rounding. */
static struct json_object *json_time(int64_t v, int64_t units)
{
    if (v <= 0 || units == 1)
        return json_object_new_int64(v);
    char text[40];
    int n = snprintf(text, sizeof(text), "%" PRId64 ".%04" PRId64, v / units, v % units);
    while (text[n - 1] == '0')
        text[--n] = 0;
    if (text[n - 1] == '.')
        text[--n] = 0;
    return json_object_new_double_s((double)v / (double)units, text);
}

static struct json_object *json_integers(const int *v, int n)
{
    struct json_object *a = json_object_new_array();
    for (int i = 0; i < n; i++)
        json_object_array_add(a, json_object_new_int(v[i]));
    return a;
}

static struct json_object *answer_rta(const struct ws_rta_set *s, int64_t units,
                                      const struct ws_rta_method *m, struct ws_rta_work *w)
{
    struct ws_rta_result r;
    struct json_object *o = json_object_new_object(), *bounds = json_object_new_array();
    if (m->run(s, w, &r))
        r = (struct ws_rta_result){0};
    json_object_object_add(o, "ok", json_object_new_boolean(r.ok));
    for (int i = 0; r.bound && i < s->n_tasks; i++)
        json_object_array_add(bounds, json_time(r.bound[i], units));
    json_object_object_add(o, "R", bounds);
    if (strstr(m->name, "gprio"))
        json_object_object_add(o, "gprio",
                               r.gpu_priority ? json_integers(r.gpu_priority, s->n_tasks) : NULL);
    if (r.gave_up)
        json_object_object_add(o, "gave_up", json_object_new_boolean(true));
    return o;
}

static struct json_object *answer_stgm(const struct ws_stgm_set *s, const struct ws_rta_method *m,
                                       struct ws_stgm_work *w)
{
    struct ws_stgm_result r;
    struct json_object *o = json_object_new_object(), *bounds = json_object_new_array(),
                       *sets = json_object_new_array();
    ws_stgm_allocate(s, m->variant, w, &r);
    for (int i = 0; i < s->n_tasks; i++) {
        struct json_object *sms = json_object_new_array();
        for (unsigned sm = 0; sm < (unsigned)s->n_sm; sm++)
            if (ws_sm_set_has(&r.sms[i], sm))
                json_object_array_add(sms, json_object_new_int((int)sm));
        json_object_array_add(sets, sms);
        json_object_array_add(bounds, json_time(r.cpu[i] < 0 ? -1 : r.bound[i], 1));
    }
    json_object_object_add(o, "ok", json_object_new_boolean(r.ok));
    json_object_object_add(o, "R", bounds);
    json_object_object_add(o, "rounds", json_object_new_int(r.rounds));
    json_object_object_add(o, "N", json_integers(r.n_sms, s->n_tasks));
    json_object_object_add(o, "S", sets);
    json_object_object_add(o, "cpu", json_integers(r.cpu, s->n_tasks));
    if (r.gave_up)
        json_object_object_add(o, "gave_up", json_object_new_boolean(true));
    return o;
}

/* One method on an STGM set that is not STGM's own: one kernel at a time on the whole GPU. */
static struct json_object *answer_whole(const struct ws_stgm_set *s, const struct ws_rta_method *m,
                                        struct space *x)
{
    bool fits;
    if (ws_stgm_whole_gpu(s, &x->stgm, &x->whole, &fits) ||
        ws_rta_work_reserve(&x->rta, s->n_tasks, s->n_segments))
        return NULL;
    struct json_object *o = answer_rta(&x->whole.set, 1, m, &x->rta);
    if (!fits)
        json_object_object_add(o, "ok", json_object_new_boolean(false));
    return o;
}

static struct json_object *answer(const struct analyze *a, struct ws_json_line *l,
                                  const struct ws_rt_set *set, struct space *x)
{
    struct json_object *results = json_object_new_object();
    for (int i = 0; i < a->n_methods; i++) {
        const struct ws_rta_method *m = a->methods[i];
        struct json_object *o;
        if (!m) {
            if (!a->all)
                ws_json_bad(l, "tasks", "%s needs a task set of sBEET-mg", a->names[i]);
            continue;
        }
        if (m->stgm && set->kind != WS_RT_STGM) {
            if (!a->all)
                ws_json_bad(l, "tasks",
                            "%s needs an STGM set: nsm, and segs with kernels by number of SMs",
                            a->names[i]);
            continue;
        }
        if (m->stgm)
            o = answer_stgm(&set->stgm, m, &x->stgm);
        else if (set->kind == WS_RT_STGM)
            o = answer_whole(&set->stgm, m, x);
        else
            o = answer_rta(&set->gcaps, set->gcaps.unit_per_ms, m, &x->rta);
        json_object_object_add(results, a->names[i], o);
    }
    return results;
}

/* A task set of sBEET-mg, for which there is one method. Return: its results; NULL: an error is in
 * the line. */
static struct json_object *analyze_gpus(const struct analyze *a, struct ws_json_line *l)
{
    struct json_object *results = json_object_new_object(), *o;
    int r = 0;
    for (int i = 0; i < a->n_methods && !r && !l->bad; i++) {
        if (a->methods[i]) {
            if (!a->all)
                ws_json_bad(l, "tasks", "%s needs a GCAPS or STGM set", a->names[i]);
            continue;
        }
        r = ws_analyze_plan(&o, &a->gpus, l);
        if (!r)
            json_object_object_add(results, a->names[i], o);
    }
    if (r && !l->bad)
        ws_json_bad(l, "tasks", "%s", strerror(-r));
    return results;
}

static struct json_object *analyze_cores(const struct analyze *a, struct ws_json_line *l)
{
    struct ws_rt_set set;
    struct space x = {.rta = WS_RTA_WORK_NULL, .stgm = WS_STGM_WORK_NULL};
    struct json_object *results = NULL;
    int r = ws_rt_set_read(l, &set);
    if (!r)
        ws_rt_set_refuse_jitter(l, &set);
    if (!r && !l->bad && set.kind == WS_RT_GCAPS)
        r = ws_rta_work_reserve(&x.rta, set.gcaps.n_tasks, set.gcaps.n_segments);
    if (!r && !l->bad && set.kind == WS_RT_STGM)
        r = ws_stgm_work_reserve(&x.stgm, set.stgm.n_tasks);
    if (!r && !l->bad)
        results = answer(a, l, &set, &x);
    if (r)
        ws_json_bad(l, "tasks", "%s", strerror(-r));
    ws_rt_set_deinit(&set);
    ws_rta_work_deinit(&x.rta);
    ws_stgm_work_deinit(&x.stgm);
    ws_stgm_whole_deinit(&x.whole);
    return results;
}

static char *analyze_line(void *arg, struct ws_json_line *l)
{
    struct analyze *a = arg;
    struct json_object *line = json_object_new_object(), *id = NULL;
    struct json_object *results = ws_sbeet_set_is(l) ? analyze_gpus(a, l) : analyze_cores(a, l);
    char *text = NULL;
    if (l->root)
        json_object_object_get_ex(l->root, "id", &id);
    json_object_object_add(line, "id", id ? json_object_get(id) : json_object_new_int64(l->number));
    json_object_object_add(line, "results", results);
    if (!l->bad)
        text = strdup(json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN |
                                                               JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(line);
    return text;
}

/* ---- out ---- */

static void table_row(struct analyze *a, struct json_object *line)
{
    struct json_object *results, *id, *o, *ok;
    json_object_object_get_ex(line, "id", &id);
    json_object_object_get_ex(line, "results", &results);
    bool shown = a->n_sets++ < ROWS_MAX;
    if (shown)
        ws_table_add(&a->rows, "%s", json_object_get_string(id));
    for (int i = 0; i < a->n_methods; i++) {
        bool there = json_object_object_get_ex(results, a->names[i], &o) &&
                     json_object_object_get_ex(o, "ok", &ok);
        bool good = there && json_object_get_boolean(ok);
        a->n_judged[i] += there;
        a->n_ok[i] += good;
        if (shown && !there)
            ws_table_add(&a->rows, "-");
        else if (shown)
            ws_table_add(&a->rows, "%s", good ? "yes" : "no");
    }
    if (shown)
        ws_table_end_row(&a->rows);
}

static void sink(void *arg, struct ws_json_line *l, const char *text)
{
    struct analyze *a = arg;
    if (!ws_json_line_report(l, stderr, "wattshare"))
        a->failed = true;
    if (!text || l->bad)
        return;
    if (!a->table) {
        puts(text);
        return;
    }
    struct json_object *line = json_tokener_parse(text);
    if (!line)
        return;
    table_row(a, line);
    if (a->n_sets == 1)
        a->first = json_object_get(line);
    json_object_put(line);
}

/* The bounds of a single set, task by task. */
static int print_bounds(const struct analyze *a)
{
    struct ws_table t;
    const char *heads[METHODS_MAX + 2] = {"task"};
    struct json_object *results, *o, *bounds;
    size_t n_tasks = 0;
    json_object_object_get_ex(a->first, "results", &results);
    for (int i = 0; i < a->n_methods; i++) {
        heads[i + 1] = a->names[i];
        if (json_object_object_get_ex(results, a->names[i], &o) &&
            json_object_object_get_ex(o, "R", &bounds))
            n_tasks = WS_MAX(n_tasks, json_object_array_length(bounds));
    }
    ws_table_init(&t, heads);
    for (size_t k = 0; k < n_tasks; k++) {
        ws_table_add(&t, "%zu", k);
        for (int i = 0; i < a->n_methods; i++) {
            struct json_object *v = NULL;
            if (json_object_object_get_ex(results, a->names[i], &o) &&
                json_object_object_get_ex(o, "R", &bounds))
                v = json_object_array_get_idx(bounds, k);
            double bound = v ? json_object_get_double(v) : 0;
            if (bound > 0)
                ws_table_add(&t, "%s", json_object_get_string(v));
            else
                ws_table_add(&t, "%s", bound < 0 ? "misses" : "-");
        }
        ws_table_end_row(&t);
    }
    int r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    return r;
}

static int print_tables(struct analyze *a)
{
    int r = 0;
    if (a->n_sets > ROWS_MAX) {
        ws_table_add(&a->rows, "… %" PRIu64 " more", a->n_sets - ROWS_MAX);
        ws_table_end_row(&a->rows);
    }
    if (a->n_sets > 1) {
        ws_table_add(&a->rows, "schedulable %%");
        for (int i = 0; i < a->n_methods; i++) {
            if (a->n_judged[i])
                ws_table_add(&a->rows, "%.1f", 100.0 * (double)a->n_ok[i] / (double)a->n_judged[i]);
            else
                ws_table_add(&a->rows, "-");
        }
        ws_table_end_row(&a->rows);
    }
    if (a->n_sets == 1)
        r = print_bounds(a);
    if (a->n_sets)
        r = ws_table_print(&a->rows, stdout) ? -ENOMEM : r;
    return r;
}

static int read_input(void *arg, FILE *f, const char *name)
{
    struct analyze *a = arg;
    struct ws_jsonl r;
    struct ws_progress_bar p;
    ws_jsonl_init(&r, f, name);
    ws_progress_bar_start(&p, "sets", 0);
    int e = ws_parallel_lines(&r, a->n_jobs, analyze_line, sink, a, &p);
    ws_progress_bar_end(&p);
    ws_jsonl_deinit(&r);
    return e;
}

/* ---- options ---- */

static int list(void)
{
    static const char *const heads[] = {"method", "form", "bound", "gives", NULL};
    struct ws_table t;
    size_t n;
    const char *plain, *target;
    const struct ws_rta_method *m = ws_rta_methods(&n);
    ws_table_init(&t, heads);
    for (size_t i = 0; i < n; i++) {
        ws_table_add(&t, "%s", m[i].name);
        ws_table_add(&t, "%s", m[i].form);
        ws_table_add(&t, "%s", m[i].is_bound ? "yes" : "no");
        ws_table_add(&t, "%s", m[i].gives);
        ws_table_end_row(&t);
    }
    ws_table_add(&t, WS_ANALYZE_PLAN);
    ws_table_add(&t, "safe");
    ws_table_add(&t, "yes");
    ws_table_add(&t, "policy wattshare with guarantee=1 misses nothing (sets of sBEET-mg)");
    ws_table_end_row(&t);
    for (size_t i = 0; (plain = ws_rta_alias(i, &target)); i++) {
        ws_table_add(&t, "%s", plain);
        ws_table_add(&t, "%s", "plain");
        ws_table_add(&t, "%s", ws_rta_method_find(plain)->is_bound ? "yes" : "no");
        ws_table_add(&t, "the same as %s", target);
        ws_table_end_row(&t);
    }
    int r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    printf("bound: never exceeded in simulation, where what it rests on holds (see "
           "doc/analysis.md)\n");
    return r ? 1 : 0;
}

static int add_method(struct analyze *a, const char *name)
{
    const struct ws_rta_method *m = ws_rta_method_find(name);
    if (!m && strcmp(name, WS_ANALYZE_PLAN) != 0) {
        ws_cli_error("--method: there is no \"%s\"; see wattshare analyze --list", name);
        return -ENOENT;
    }
    for (int i = 0; i < a->n_methods; i++)
        if (!strcmp(a->names[i], name))
            return 0;
    if (a->n_methods == METHODS_MAX) {
        ws_cli_error("--method: at most %d methods at once", METHODS_MAX);
        return -E2BIG;
    }
    a->names[a->n_methods] = name;
    a->methods[a->n_methods++] = m;
    return 0;
}

/* @text is cut at its commas and stays in use. */
static int add_methods(void *values, char *text)
{
    struct analyze *a = values;
    if (!strcmp(text, "all")) {
        size_t n;
        const struct ws_rta_method *m = ws_rta_methods(&n);
        a->all = true;
        for (size_t i = 0; i < n; i++)
            if (add_method(a, m[i].name))
                return -E2BIG;
        return add_method(a, WS_ANALYZE_PLAN);
    }
    for (char *save, *name = strtok_r(text, ",", &save); name; name = strtok_r(NULL, ",", &save))
        if (add_method(a, name))
            return -ENOENT;
    return 0;
}

static const struct ws_option options[] = {
    {"method", "M[,M...]", "Methods by name, or all: every one that applies to a set.",
     WS_PARSE(add_methods), .required = true},
    {"gpus", "LIST|FILE",
     "For wattshare_safe: GPUs, as of wattshare sim (" WS_ANALYZE_PLAN_GPUS ").",
     WS_TEXT(struct analyze, gpu_names)},
    {"json", NULL,
     "Print a line for each line read; the default where standard output is not a terminal.",
     .more =
         "The line is {\"id\", \"results\": {\"M\": {\"ok\", \"R\": [...]}}}. R is in the unit of "
         "the set: a bound; -1 for the first task that misses its deadline; 0 for tasks that "
         "were not analysed (best effort, or after it). With GPU priorities there is also "
         "\"gprio\" (larger is higher; null: the CPU's); for STGM \"rounds\", \"N\" (number of "
         "SMs), \"S\" (SMs) and \"cpu\"; for wattshare_safe there are \"homes\" (GPU and SMs) and "
         "\"home\" (of each task) instead of R. \"gave_up\": the analysis took too many steps; "
         "then "
         "\"ok\" is false.",
     WS_CLEAR(struct analyze, table)},
    {"table", NULL,
     "Print verdicts and shares, and of a single set its tasks' bounds; the default on a terminal.",
     WS_FLAG(struct analyze, table)},
    WS_OPTION_JOBS(struct analyze, n_jobs),
    {"list", NULL, "Print the methods, and say of each what it gives and whether it is a bound.",
     WS_FLAG(struct analyze, list), .alone = true},
    {0}};
static const char *const arguments[] = {"[FILE...]", NULL};
static const char *const examples[] = {
    "wattshare gen --paper gcaps --seed 7 --count 100 | wattshare analyze --method "
    "gcaps_busy,mpcp_busy --table",
    "wattshare analyze --method all sets.jsonl", NULL};

static int analyze(int argc, char **argv);

const struct ws_verb ws_verb_analyze = {
    .name = "analyze",
    .purpose = "bound the response times of real-time tasks that share a GPU",
    .about =
        "Reads task sets, one JSON object a line, as wattshare gen prints them for gcaps, stgm "
        "and sbeet, from each FILE or from standard input.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .max_arguments = WS_ARGUMENTS_ANY,
    .run = analyze,
};

static int run(struct analyze *a, char **files)
{
    const char *heads[METHODS_MAX + 2] = {"set"};
    memcpy(heads + 1, a->names, (size_t)a->n_methods * sizeof(*heads));
    ws_table_init(&a->rows, heads);
    int r = ws_cli_each_input(files, read_input, a);
    if (a->table && print_tables(a))
        a->failed = true;
    json_object_put(a->first);
    ws_table_deinit(&a->rows);
    if (fflush(stdout) || ferror(stdout)) {
        ws_cli_error("standard output: %s", strerror(errno));
        return 1;
    }
    return r || a->failed ? 1 : 0;
}

static int analyze(int argc, char **argv)
{
    struct analyze a = {.table = isatty(STDOUT_FILENO)};
    char **files;
    int status = ws_verb_parse(&ws_verb_analyze, argc, argv, &a, &files);
    if (status >= 0)
        return status;
    if (a.list)
        return list();
    if (!a.n_methods)
        return ws_verb_wrong(&ws_verb_analyze,
                             "--method is missing; wattshare analyze --list names the methods");
    status = ws_cli_gpus(&a.gpus, &a.gpus_line, a.gpu_names ? a.gpu_names : WS_ANALYZE_PLAN_GPUS)
                 ? WS_EXIT_USAGE
                 : run(&a, files);
    ws_gpus_deinit(&a.gpus);
    ws_json_line_deinit(&a.gpus_line);
    return status;
}
