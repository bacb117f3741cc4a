// SPDX-License-Identifier: Apache-2.0
/* `wattshare sim` for real-time task sets on CPU cores with one GPU: one line in, one set simulated, once or in a hunt for long
 * response times; one row or JSON line out. Bounds are those that the line carries or that the analyses give. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/parallel.h"
#include "cli/sim_rt.h"
#include "cli/table.h"
#include "sim/rt_hunt.h"
#include "sim/rt_input.h"

enum { EXIT_EXCEEDED = 3 };

struct options {
    struct ws_rt_config config;
    const char *bounds, *allocation, *trace;
    struct ws_rt_hunt hunt;
    bool json;
    int n_jobs;
};

struct totals {
    const struct options *o;
    struct ws_table table;
    uint64_t n_sets, n_bad, n_unplaced, n_accepted, n_exceeded, n_jobs, n_missed;
    double worst;
    int status;
};

bool ws_sim_rt_knows(const char *policy)
{
    return ws_rt_policy_find(policy) >= 0;
}

/* ---- one line ---- */
static struct json_object *numbers(const int64_t *v, int n, double scale)
{
    struct json_object *a = json_object_new_array();
    for (int i = 0; i < n; i++)
        json_object_array_add(a, json_object_new_double((double)v[i] / scale));
    return a;
}

static struct json_object *number(double x)
{
    char text[32];
    snprintf(text, sizeof(text), "%.10g", x);
    return json_object_new_double_s(x, text);
}

static void add_exceeded(struct json_object *o, const struct ws_rt_set *set, const int64_t *bounds,
                         const struct ws_rt_prey *prey, double scale)
{
    struct json_object *list = json_object_new_array();
    for (int i = 0; i < set->n_tasks; i++)
        if (bounds[i] > 0 && prey->tasks[i].worst > bounds[i])
            json_object_array_add(list, json_object_new_int(i));
    bool any = json_object_array_length(list) > 0;
    json_object_object_add(o, "exceeded", list);
    if (!any)
        return;
    json_object_object_add(o, "offsets", numbers(prey->offsets, set->n_tasks, scale));
    json_object_object_add(o, "exec_permille", json_object_new_int(prey->scenario.exec_permille));
    json_object_object_add(o, "slack_permille", json_object_new_int(prey->scenario.slack_permille));
    json_object_object_add(o, "seed", json_object_new_int64((int64_t)(prey->scenario.seed >> 1)));
}

static struct json_object *result(const struct options *o, struct ws_json_line *l,
                                  const struct ws_rt_set *set, const int64_t *bounds, bool accepted,
                                  const struct ws_rt_prey *prey)
{
    struct json_object *j = json_object_new_object(), *id;
    double scale = ws_rt_kind(l) == WS_RT_GCAPS_LINE ? (double)set->per_ms : 1;
    if (json_object_object_get_ex(l->root, "id", &id))
        json_object_object_add(j, "id", json_object_get(id));
    else
        json_object_object_add(j, "id", json_object_new_int64(l->number));
    json_object_object_add(j, "policy",
                           json_object_new_string(ws_rt_policy_name(o->config.policy)));
    json_object_object_add(j, "mode", json_object_new_string(o->config.busy ? "busy" : "suspend"));
    if (o->config.policy == WS_RT_GCAPS)
        json_object_object_add(j, "hold", json_object_new_string(ws_rt_hold_name(o->config.hold)));
    json_object_object_add(j, "runs", json_object_new_int64((int64_t)prey->n_scanned));
    json_object_object_add(j, "jobs", json_object_new_int64((int64_t)prey->n_jobs));
    struct json_object *worst = json_object_new_array(), *missed = json_object_new_array();
    uint64_t n_missed = 0;
    for (int i = 0; i < set->n_tasks; i++) {
        json_object_array_add(worst, number((double)prey->tasks[i].worst / scale));
        json_object_array_add(missed, json_object_new_int64((int64_t)prey->tasks[i].n_missed));
        n_missed += set->tasks[i].best_effort ? 0 : prey->tasks[i].n_missed;
    }
    json_object_object_add(j, "worst", worst);
    json_object_object_add(j, "missed", missed);
    json_object_object_add(j, "n_missed", json_object_new_int64((int64_t)n_missed));
    json_object_object_add(j, "ratio", number(prey->ratio));
    json_object_object_add(j, "ratio_task", json_object_new_int(prey->task));
    if (o->bounds) {
        json_object_object_add(j, "bounds", json_object_new_string(o->bounds));
        json_object_object_add(j, "accepted", json_object_new_boolean(accepted));
        json_object_object_add(j, "bound", numbers(bounds, set->n_tasks, scale));
        if (accepted)
            add_exceeded(j, set, bounds, prey, scale);
    }
    return j;
}

static char *simulate(const struct options *o, struct ws_json_line *l, const struct ws_rt_set *set)
{
    size_t n = (size_t)set->n_tasks;
    int64_t *bounds = calloc(n, sizeof(*bounds)), *offsets = calloc(n, sizeof(*offsets));
    struct ws_rt_task_result *tasks = calloc(n, sizeof(*tasks));
    struct ws_rt *rt = NULL;
    char *text = NULL;
    int r = bounds && offsets && tasks ? ws_rt_new(&rt, set, &o->config) : -ENOMEM;
    if (!r) {
        bool accepted = o->bounds && ws_rt_read_bounds(l, o->bounds, set, bounds);
        struct ws_rt_hunt hunt = o->hunt;
        hunt.seed += (uint64_t)l->number * UINT64_C(0x9e3779b97f4a7c15);
        struct ws_rt_prey prey = {.tasks = tasks, .offsets = offsets};
        r = ws_rt_hunt(rt, set, accepted ? bounds : NULL, &hunt, &prey);
        if (!r) {
            struct json_object *j = result(o, l, set, bounds, accepted, &prey);
            text = strdup(json_object_to_json_string_ext(j, JSON_C_TO_STRING_PLAIN));
            json_object_put(j);
        }
    }
    if (r)
        ws_json_bad(l, "", "cannot be simulated: %s", strerror(-r));
    ws_rt_free(rt);
    free(bounds);
    free(offsets);
    free(tasks);
    return text;
}

static char *work(void *arg, struct ws_json_line *l)
{
    const struct options *o = ((const struct totals *)arg)->o;
    struct ws_rt_set set;
    char *text = NULL;
    int r = ws_rt_read(l, o->allocation, &set);
    if (!r)
        text = simulate(o, l, &set);
    else if (r == WS_RT_UNPLACED)
        text = strdup("");
    else if (r < 0)
        ws_json_bad(l, "", "%s", strerror(-r));
    ws_rt_set_deinit(&set);
    return text;
}

/* ---- what comes out ---- */
static int64_t int_of(struct json_object *j, const char *key)
{
    struct json_object *v;
    return json_object_object_get_ex(j, key, &v) ? json_object_get_int64(v) : 0;
}

static double double_of(struct json_object *j, const char *key)
{
    struct json_object *v;
    return json_object_object_get_ex(j, key, &v) ? json_object_get_double(v) : 0;
}

static void add_row(struct totals *t, struct json_object *j)
{
    struct json_object *id, *worst, *v;
    json_object_object_get_ex(j, "id", &id);
    json_object_object_get_ex(j, "worst", &worst);
    bool accepted = json_object_object_get_ex(j, "accepted", &v) && json_object_get_boolean(v);
    int n_over =
        json_object_object_get_ex(j, "exceeded", &v) ? (int)json_object_array_length(v) : 0;
    t->n_accepted += accepted;
    t->n_exceeded += n_over > 0;
    t->n_jobs += (uint64_t)int_of(j, "jobs");
    t->n_missed += (uint64_t)int_of(j, "n_missed");
    double ratio = double_of(j, "ratio");
    if (ratio > t->worst && (accepted || !t->o->bounds))
        t->worst = ratio;
    if (t->o->json)
        return;
    ws_table_add(&t->table, "%s", json_object_get_string(id));
    ws_table_add(&t->table, "%zu", json_object_array_length(worst));
    ws_table_add(&t->table, "%" PRId64, int_of(j, "jobs"));
    ws_table_add(&t->table, "%" PRId64, int_of(j, "n_missed"));
    ws_table_add(&t->table, "%.3f", ratio);
    ws_table_add(&t->table, "%" PRId64, int_of(j, "ratio_task"));
    if (t->o->bounds) {
        ws_table_add(&t->table, "%s", accepted ? "yes" : "no");
        ws_table_add(&t->table, "%d", n_over);
    }
    ws_table_end_row(&t->table);
}

static void sink(void *arg, struct ws_json_line *l, const char *text)
{
    struct totals *t = arg;
    t->n_sets++;
    if (!ws_json_line_report(l, stderr, "wattshare")) {
        t->n_bad++;
        return;
    }
    if (!text || !*text) {
        t->n_unplaced++;
        return;
    }
    struct json_object *j = json_tokener_parse(text);
    if (j)
        add_row(t, j);
    json_object_put(j);
    if (t->o->json)
        puts(text);
}

static void print_totals(struct totals *t)
{
    printf("%" PRIu64 " sets, %" PRIu64 " jobs, %" PRIu64 " deadlines missed", t->n_sets - t->n_bad,
           t->n_jobs, t->n_missed);
    if (t->n_unplaced)
        printf("; %" PRIu64 " sets have no allocation", t->n_unplaced);
    if (t->o->bounds)
        printf("; bound %s exceeded in %" PRIu64 " of %" PRIu64
               " accepted sets, highest response %.4f of it",
               t->o->bounds, t->n_exceeded, t->n_accepted, t->worst);
    putchar('\n');
}

static void run_file(struct totals *t, FILE *f, const char *name)
{
    struct ws_jsonl r;
    ws_jsonl_init(&r, f, name);
    struct ws_progress progress;
    ws_progress_start(&progress, "sim", 0);
    int e = ws_parallel_lines(&r, t->o->n_jobs, work, sink, t, &progress);
    ws_progress_end(&progress);
    if (e < 0) {
        ws_cli_error("%s: %s", name, strerror(-e));
        t->status = 1;
    }
    ws_jsonl_deinit(&r);
}

static const char help[] =
    "usage: wattshare sim --policy gcaps|rr|stgm|mpcp|fmlp+ [OPTION…] [FILE…] < tasksets.jsonl\n"
    "Simulates real-time task sets on CPU cores that share one GPU.\n"
    "  --mode suspend|busy  how a job waits for the GPU (suspend)\n"
    "  --hold work|command|calls  gcaps: a segment is open while it has GPU work (work), from its "
    "first\n"
    "                       command until end is called (command), from begin to end (calls)\n"
    "  --bounds METHOD      compare with these bounds\n"
    "  --allocation METHOD  STGM: whose cores and SMs (as --bounds, else stgm_MODE_safe)\n"
    "  --hunt N             N runs with other releases and execution times (1)\n"
    "  --periods N          each run lasts N of the longest period (4)\n"
    "  --seed N             1\n"
    "  --json               a JSON line for each set\n"
    "  --jobs N             threads (all cores)\n"
    "Exit status: 0; 1 some line was bad; 2 usage; 3 a bound was exceeded.\n";

static int usage(const char *fmt, const char *what)
{
    if (fmt)
        ws_cli_error(fmt, what);
    else
        fputs(help, stderr);
    return WS_EXIT_USAGE;
}

static int whole(const char *option, const char *text, int64_t low, int64_t high, int64_t *ret)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < low || v > high) {
        ws_cli_error("%s %s: a whole number from %" PRId64 " to %" PRId64 " is wanted", option,
                     text, low, high);
        return -EINVAL;
    }
    *ret = v;
    return 0;
}

/* Return: 0, or an exit status; *ret_done: nothing is left to do. */
static int parse(int argc, char **argv, struct options *o, bool *ret_done)
{
    static const struct option names[] = {{"policy", required_argument, NULL, 'p'},
                                          {"mode", required_argument, NULL, 'm'},
                                          {"hold", required_argument, NULL, 'H'},
                                          {"bounds", required_argument, NULL, 'b'},
                                          {"allocation", required_argument, NULL, 'a'},
                                          {"hunt", required_argument, NULL, 'n'},
                                          {"periods", required_argument, NULL, 'P'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"json", no_argument, NULL, 'j'},
                                          {"jobs", required_argument, NULL, 'J'},
                                          {"trace", required_argument, NULL, 't'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int policy = -1, hold, r = 0;
    int64_t v;
    optind = 1;
    for (int c; !r && (c = getopt_long(argc, argv, "", names, NULL)) != -1;)
        switch (c) {
        case 'p':
            if ((policy = ws_rt_policy_find(optarg)) < 0)
                return usage("--policy %s: gcaps, rr, stgm, mpcp or fmlp+ is wanted", optarg);
            break;
        case 'm':
            if (strcmp(optarg, "suspend") && strcmp(optarg, "busy"))
                return usage("--mode %s: suspend or busy is wanted", optarg);
            o->config.busy = !strcmp(optarg, "busy");
            break;
        case 'H':
            if ((hold = ws_rt_hold_find(optarg)) < 0)
                return usage("--hold %s: work, command or calls is wanted", optarg);
            o->config.hold = (enum ws_rt_hold)hold;
            break;
        case 'b':
            o->bounds = optarg;
            break;
        case 'a':
            o->allocation = optarg;
            break;
        case 'n':
            r = whole("--hunt", optarg, 1, 100000000, &v);
            o->hunt.n_runs = (int)v;
            break;
        case 'P':
            r = whole("--periods", optarg, 1, 1000000, &v);
            o->hunt.n_periods = (int)v;
            break;
        case 's':
            r = whole("--seed", optarg, 0, INT64_MAX, &v);
            o->hunt.seed = (uint64_t)v;
            break;
        case 'j':
            o->json = true;
            break;
        case 'J':
            r = ws_cli_jobs(optarg, &o->n_jobs);
            break;
        case 't':
            o->trace = optarg;
            break;
        case 'h':
            fputs(help, stdout);
            *ret_done = true;
            return 0;
        default:
            return usage(NULL, NULL);
        }
    if (r)
        return WS_EXIT_USAGE;
    if (policy < 0)
        return usage(NULL, NULL);
    o->config.policy = (enum ws_rt_policy)policy;
    return 0;
}

int ws_cli_sim_rt(int argc, char **argv)
{
    struct options o = {.hunt = {.n_runs = 1, .seed = 1, .n_periods = 4}};
    bool done = false;
    int r = parse(argc, argv, &o, &done);
    if (r || done)
        return r;
    if (o.config.policy == WS_RT_STGM && !o.allocation)
        o.allocation = o.bounds ? o.bounds : o.config.busy ? "stgm_busy_safe" : "stgm_suspend_safe";
    else if (!o.allocation)
        o.allocation = o.bounds; /* GPU priorities, if the method assigned some */
    struct totals t = {.o = &o};
    static const char *const heads[] = {"set",      "tasks",          "jobs",
                                        "missed",   "response/bound", "of task",
                                        "accepted", "exceeded",       NULL},
                             *const plain[] = {
                                 "set",     "tasks", "jobs", "missed", "response/deadline",
                                 "of task", NULL};
    ws_table_init(&t.table, o.bounds ? heads : plain);
    if (optind == argc)
        run_file(&t, stdin, "-");
    for (int i = optind; i < argc; i++) {
        FILE *f = fopen(argv[i], "r");
        if (!f) {
            ws_cli_error("%s: %s", argv[i], strerror(errno));
            t.status = 1;
            continue;
        }
        run_file(&t, f, argv[i]);
        fclose(f);
    }
    if (!o.json) {
        if (ws_table_print(&t.table, stdout))
            t.status = 1;
        print_totals(&t);
    }
    ws_table_deinit(&t.table);
    return t.status || t.n_bad ? 1 : t.n_exceeded ? EXIT_EXCEEDED : 0;
}
