// SPDX-License-Identifier: Apache-2.0
/* wattshare sim: simulates task sets, one a line, under one policy or several. Lines run on
 * several threads, and results come out in their order. For a bad line an error is printed and
 * the exit status is 1; the other lines run. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "cli/cli.h"
#include "cli/common/options.h"
#include "papers/common/parallel.h"
#include "papers/verbs/input.h"
#include "papers/verbs/sim.h"
#include "papers/verbs/sim_rt.h"
#include "cli/common/table.h"

static const struct ws_sim_kind *const kinds[] = {&ws_sim_kind_gpus, &ws_sim_kind_rt};

enum { MAX_POLICIES = 32, MAX_OPTIONS = 32, MAX_COLUMNS = 24 };
struct sim_column {
    char name[40];
    double sum[MAX_POLICIES], max[MAX_POLICIES];
    uint64_t n[MAX_POLICIES];
};
struct sim_verb {
    char *policies[MAX_POLICIES];
    int n_policies;
    const char *options[MAX_OPTIONS + 1]; /* as given */
    int n_options;
    /* of each policy: those that it has; none: NULL at once */
    const char *policy_options[MAX_POLICIES][MAX_OPTIONS + 1];
    struct ws_gpus gpus;
    struct ws_json_line gpus_line; /* names in gpus are borrowed from it */
    bool compat, copies_asis, json, list;
    double duration_s; /* 0: not given */
    struct ws_sim_rt_options rt;
    const char *policy_names, *gpu_names, *trace_path;
    int trace_line;
    int n_jobs;
    FILE *trace;
    struct ws_progress_bar *progress;
    /* results */
    struct sim_column columns[MAX_COLUMNS];
    int n_columns;
    uint64_t n_good, n_bad;
};

/* ---- one line ---- */

static const struct ws_sim_kind *kind_of(struct ws_json_line *l)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(kinds); i++)
        if (kinds[i]->is(l))
            return kinds[i];
    return NULL;
}

static struct json_object *line_id(const struct ws_json_line *l)
{
    struct json_object *id = NULL;
    if (json_object_object_get_ex(l->root, "id", &id))
        return json_object_get(id);
    return json_object_new_int64(l->number);
}

static void refuse_unknown(struct ws_json_line *l)
{
    if (json_object_object_get_ex(l->root, "t0", NULL))
        ws_json_bad(l, "",
                    "a task of a cluster, as gen --paper edl makes them; wattshare cluster "
                    "simulates these");
    else
        ws_json_bad(l, "tasks",
                    "an unknown kind of task set; those of sBEET-mg have \"benchmark\" or \"app\"");
}

static char *work(void *arg, struct ws_json_line *l)
{
    const struct sim_verb *s = arg;
    const struct ws_sim_kind *kind = kind_of(l);
    if (!kind) {
        refuse_unknown(l);
        return NULL;
    }
    struct json_object *o = json_object_new_object(), *results = json_object_new_object();
    json_object_object_add(o, "id", line_id(l));
    json_object_object_add(o, "results", results);
    int r = 0;
    for (int i = 0; i < s->n_policies && !r; i++) {
        struct ws_sim_run run = {.policy = s->policies[i],
                                 .options = *s->policy_options[i] ? s->policy_options[i] : NULL,
                                 .gpus = s->gpu_names ? &s->gpus : NULL,
                                 .duration_ms = s->duration_s * 1000,
                                 .compat = s->compat,
                                 .copies_asis = s->copies_asis,
                                 .rt = &s->rt,
                                 .trace =
                                     l->number == (uint32_t)s->trace_line && !i ? s->trace : NULL};
        struct json_object *one = json_object_new_object();
        json_object_object_add(results, s->policies[i], one);
        if (!kind->knows(s->policies[i])) {
            ws_json_bad(l, "", "%s cannot run task sets of this kind (%s). Policies that can: %s",
                        s->policies[i], kind->name, kind->takes);
            r = -EINVAL;
        } else {
            r = kind->run(&run, l, one);
        }
    }
    if (r < 0 && !l->bad)
        ws_json_bad(l, "", "%s", strerror(-r));
    char *text = l->bad ? NULL
                        : ws_strdup(json_object_to_json_string_ext(
                              o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
    return text;
}

/* ---- all lines ---- */

static struct sim_column *column_of(struct sim_verb *s, const char *name)
{
    for (int i = 0; i < s->n_columns; i++)
        if (!strcmp(s->columns[i].name, name))
            return &s->columns[i];
    if (s->n_columns == MAX_COLUMNS || strlen(name) >= sizeof(s->columns[0].name))
        return NULL;
    struct sim_column *c = &s->columns[s->n_columns++];
    snprintf(c->name, sizeof(c->name), "%s", name);
    return c;
}

static void tally(struct sim_verb *s, const char *text)
{
    struct json_object *o = json_tokener_parse(text), *results = NULL, *one;
    if (!o || !json_object_object_get_ex(o, "results", &results)) {
        json_object_put(o);
        return;
    }
    for (int i = 0; i < s->n_policies; i++) {
        if (!json_object_object_get_ex(results, s->policies[i], &one))
            continue;
        json_object_object_foreach(one, key, v)
        {
            struct sim_column *c = NULL;
            if (json_object_is_type(v, json_type_int) || json_object_is_type(v, json_type_double))
                c = column_of(s, key);
            if (c) {
                double x = json_object_get_double(v);
                c->sum[i] += x;
                c->max[i] = c->n[i] ? fmax(c->max[i], x) : x;
                c->n[i]++;
            }
        }
    }
    json_object_put(o);
}

static void sink(void *arg, struct ws_json_line *l, const char *text)
{
    struct sim_verb *s = arg;
    ws_json_line_report(l, stderr, "wattshare");
    if (l->bad || !text) {
        s->n_bad++;
        return;
    }
    s->n_good++;
    if (s->json)
        puts(text);
    else
        tally(s, text);
}

static int print_table(const struct sim_verb *s)
{
    const char *heads[MAX_COLUMNS + 2] = {"policy"};
    for (int i = 0; i < s->n_columns; i++)
        heads[1 + i] = s->columns[i].name;
    struct ws_table t;
    ws_table_init(&t, heads);
    for (int i = 0; i < s->n_policies; i++) {
        ws_table_add(&t, "%s", s->policies[i]);
        for (int k = 0; k < s->n_columns; k++) {
            const struct sim_column *c = &s->columns[k];
            if (c->n[i] && !strncmp(c->name, "n_", 2))
                ws_table_add(&t, "%.0f", c->sum[i]);
            else if (c->n[i] && !strncmp(c->name, "max_", 4))
                ws_table_add(&t, "%.6g", c->max[i]);
            else if (c->n[i])
                ws_table_add(&t, "%.6g", c->sum[i] / (double)c->n[i]);
            else
                ws_table_add(&t, "-");
        }
        ws_table_end_row(&t);
    }
    int r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    if (s->n_good > 1)
        printf("means over %llu task sets\n", (unsigned long long)s->n_good);
    return r;
}

/* ---- arguments ---- */

static bool is_known(const char *policy)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(kinds); i++)
        if (kinds[i]->knows(policy))
            return true;
    return false;
}

/* What --policy takes. */
static int list(void)
{
    static const char *const heads[] = {"policy", "what it does", NULL};
    /* Of the simulator alone: policy/ has them as options of fifo. */
    static const char *const locks[][2] = {
        {"mpcp", "one lock for the GPU, waiters by priority"},
        {"fmlp+", "one lock for the GPU, waiters in order of arrival"}};
    struct ws_table t;
    size_t n;
    const struct ws_policy_ops *const *all = ws_policy_all(&n);
    ws_table_init(&t, heads);
    for (size_t i = 0; i < n; i++)
        if (is_known(all[i]->name)) {
            ws_table_add(&t, "%s", all[i]->name);
            ws_table_add(&t, "%s", all[i]->summary);
        }
    for (size_t i = 0; i < WS_ARRAY_SIZE(locks); i++) {
        ws_table_add(&t, "%s", locks[i][0]);
        ws_table_add(&t, "%s", locks[i][1]);
    }
    int r = ws_table_print(&t, stdout);
    ws_table_deinit(&t);
    for (size_t i = 0; i < n; i++)
        for (const struct ws_policy_option *o = all[i]->options;
             is_known(all[i]->name) && o && o->name; o++)
            printf("%s --option %s=%s  %s\n", all[i]->name, o->name, o->fallback, o->help);
    return r ? 1 : 0;
}

static bool has_option(const struct ws_policy_ops *ops, const char *text)
{
    const char *const one[] = {text, NULL};
    char error[256];
    return ops && !ws_policy_options_check(ops->options, one, error, sizeof(error));
}

/* Gives policy @i the options that it has, and looks whether they are right. */
static int give_options(struct sim_verb *s, int i)
{
    const struct ws_policy_ops *ops = ws_policy_find(s->policies[i]);
    struct ws_policy *made = NULL;
    char error[256];
    int n = 0;
    for (int k = 0; k < s->n_options; k++)
        if (has_option(ops, s->options[k]))
            s->policy_options[i][n++] = s->options[k];
    if (!ops)
        return 0;
    int r = ops->make(&made, s->policy_options[i], error, sizeof(error));
    if (r)
        ws_cli_error("--option for %s: %s", s->policies[i], error);
    ops->free(made);
    return r ? -EINVAL : 0;
}

/* Each option must be one of some policy that was named. */
static int check_options(const struct sim_verb *s)
{
    for (int k = 0; k < s->n_options; k++) {
        bool taken = false;
        for (int i = 0; i < s->n_policies; i++)
            taken |= has_option(ws_policy_find(s->policies[i]), s->options[k]);
        if (!taken) {
            ws_cli_error("--option: none of the policies has an option '%s'; see wattshare sim "
                         "--list",
                         s->options[k]);
            return -EINVAL;
        }
    }
    return 0;
}

static int read_policies(struct sim_verb *s, const char *text)
{
    char *copy = ws_strdup(text), *save = NULL;
    int r = copy ? 0 : -ENOMEM;
    for (char *p = copy ? strtok_r(copy, ",", &save) : NULL; p && !r;
         p = strtok_r(NULL, ",", &save)) {
        if (!is_known(p)) {
            ws_cli_error("no policy '%s'; see wattshare sim --list", p);
            r = -EINVAL;
        } else if (s->n_policies == MAX_POLICIES) {
            ws_cli_error("--policy: more than %d", MAX_POLICIES);
            r = -EINVAL;
        } else if (!(s->policies[s->n_policies++] = ws_strdup(p))) {
            r = -ENOMEM;
        } else {
            r = give_options(s, s->n_policies - 1);
        }
    }
    free(copy);
    if (!r && !s->n_policies) {
        ws_cli_error("--policy needs a name; wattshare sim --list names the policies");
        r = -EINVAL;
    }
    return r ? r : check_options(s);
}

static int add_option(void *values, char *text)
{
    struct sim_verb *s = values;
    if (s->n_options == MAX_OPTIONS) {
        ws_cli_error("--option: more than %d", MAX_OPTIONS);
        return -E2BIG;
    }
    s->options[s->n_options++] = text;
    return 0;
}

static const struct ws_option options[] = {
    {"policy", "P[,P...]", "The policies; --list names them, with their options.",
     WS_TEXT(struct sim_verb, policy_names), .required = true},
    {"gpus", "LIST|FILE",
     "GPUs in the order of their ids, with a limit on the SMs given out, or a file of JSON "
     "(rtx3070@24,t400).",
     .more =
         "A name with a dot or slash is a file. It has \"gpus\": [{\"type\", \"sm_limit\", "
         "\"slots\" (jobs side by side, 2), \"copy_engines\" (0: copies never wait)}]; \"types\": "
         "[{\"name\", \"n_sm\", \"static_w\", \"idle_w_per_sm\", \"switch_ms\", \"update_ms\", "
         "\"preempts\" (false)}]; "
         "\"kernels\": [{\"gpu\", \"name\", \"wcet_ms\": [time on 1 SM, on 2, ...], \"power_w\": "
         "[of "
         "the whole GPU], \"h2d_ms\", \"d2h_ms\", \"dyn_w_per_sm\"}].",
     WS_TEXT(struct sim_verb, gpu_names)},
    {"duration", "S", "The seconds to simulate (the line's duration_ms, else 15).",
     WS_NUMBER(struct sim_verb, duration_s, 1e-3, 1e7)},
    {"compat", NULL,
     "Follow the rules of the sBEET-mg authors' simulator, with ticks of 1 ms; without it times "
     "are exact.",
     WS_FLAG(struct sim_verb, compat)},
    {"copies-asis", NULL,
     "Copies out of a T400 take as long as copies in, which is a slip of that simulator.",
     WS_FLAG(struct sim_verb, copies_asis)},
    {"option", "NAME=VALUE", "An option of each of the policies that has it.", WS_PARSE(add_option),
     .repeats = true},
    {"trace", "OUT",
     "Write what happens on one line under the first policy as a Chrome trace, for "
     "https://ui.perfetto.dev.",
     .more = "It has the tasks with releases and misses, the jobs on each GPU's slots and SMs with "
             "the policy's reason, and the power.",
     WS_TEXT(struct sim_verb, trace_path)},
    {"trace-line", "N", "The line that --trace shows (1).",
     WS_INT(struct sim_verb, trace_line, 1, INT_MAX)},
    WS_OPTION_JOBS(struct sim_verb, n_jobs),
    {"json", NULL, "Print a line for each line read: {\"id\", \"results\": {POLICY: {...}}}.",
     WS_FLAG(struct sim_verb, json)},
    {"list", NULL, "Print the policies, and the options of each.", WS_FLAG(struct sim_verb, list),
     .alone = true},
    {"mode", NULL, "How a job waits for the GPU: asleep, or spinning on its core (suspend).",
     .words = "suspend|busy", .group = "Real-time task sets (gcaps, rr, stgm, mpcp, fmlp+)",
     WS_CHOICE(struct sim_verb, rt.busy)},
    {"hold", NULL,
     "gcaps: a segment is open while it has GPU work (work), from its first command until its end "
     "is called (command), or from begin to end (calls).",
     .more = "The default is work, which alone is what the bounds assume.",
     .words = "work|command|calls", WS_CHOICE(struct sim_verb, rt.hold)},
    {"bounds", "METHOD",
     "Compare responses with these bounds; wattshare analyze --list names them.",
     .more = "For STGM sets the method also chooses cores and SMs.",
     WS_TEXT(struct sim_verb, rt.bounds_name)},
    {"allocation", "METHOD",
     "STGM sets: the method that chooses cores and SMs, without comparing (that of --bounds, else "
     "stgm_MODE_safe).",
     WS_TEXT(struct sim_verb, rt.allocation_name)},
    {"hunt", "N",
     "Simulate each set N times with other releases and execution times, to find long responses "
     "(1).",
     .more = "For task sets of sBEET-mg, results are sums over all runs.",
     WS_INT(struct sim_verb, rt.hunt.n_runs, 1, 100000000)},
    {"periods", "N", "Each run lasts N of the longest period, unless --duration is given (4).",
     WS_INT(struct sim_verb, rt.hunt.n_periods, 1, 1000000)},
    {"seed", "N", "The seed of the hunt (1).", WS_UINT64(struct sim_verb, rt.hunt.seed)},
    {0}};
static const char *const arguments[] = {"[FILE]", NULL};
static const char *const examples[] = {
    "wattshare gen --paper sbeet --u 1.6 --count 100 | wattshare sim --policy "
    "sbeet-mg,bcf,load-dist",
    "wattshare gen --paper gcaps --count 100 | wattshare sim --policy gcaps --hold calls --bounds "
    "gcaps_suspend --hunt 50",
    NULL};

static int sim(int argc, char **argv);

const struct ws_verb ws_verb_sim = {
    .name = "sim",
    .purpose = "simulate task sets on GPUs under scheduling policies",
    .about = "Reads task sets, one JSON object a line, from FILE or standard input.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .max_arguments = 1,
    .run = sim,
};

/* Return: -1: continue; else the exit status. */
static int read_arguments(struct sim_verb *s, int argc, char **argv, const char **ret_file)
{
    char **rest;
    int status = ws_verb_parse(&ws_verb_sim, argc, argv, s, &rest);
    if (status >= 0)
        return status;
    if (s->list)
        return list();
    if (!s->policy_names)
        return ws_verb_wrong(&ws_verb_sim, "--policy is missing; wattshare sim --list names the "
                                           "policies");
    *ret_file = *rest ? *rest : "-";
    if (ws_sim_rt_find_methods(&s->rt) || read_policies(s, s->policy_names) ||
        (s->gpu_names && ws_cli_gpus(&s->gpus, &s->gpus_line, s->gpu_names)))
        return WS_EXIT_USAGE;
    return -1;
}

static int run_all(struct sim_verb *s, const char *file)
{
    bool in = !strcmp(file, "-");
    FILE *f = in ? stdin : fopen(file, "r");
    if (!f) {
        ws_cli_error("%s: %s", file, strerror(errno));
        return 1;
    }
    if (s->trace_path && !(s->trace = fopen(s->trace_path, "w"))) {
        ws_cli_error("%s: %s", s->trace_path, strerror(errno));
        if (!in)
            fclose(f);
        return 1;
    }
    struct ws_jsonl r;
    struct ws_progress_bar progress;
    ws_jsonl_init(&r, f, file);
    ws_progress_bar_start(&progress, "task sets", 0);
    int e = ws_parallel_lines(&r, s->n_jobs, work, sink, s, &progress);
    ws_progress_bar_end(&progress);
    ws_jsonl_deinit(&r);
    if (!in)
        fclose(f);
    if (e)
        ws_cli_error("%s: %s", file, strerror(-e));
    if (!e && !s->json && s->n_good)
        e = print_table(s);
    if (s->trace && fclose(s->trace) && !e) {
        ws_cli_error("%s: %s", s->trace_path, strerror(errno));
        e = -EIO;
    }
    if (fflush(stdout)) {
        ws_cli_error("the results could not be written: %s", strerror(errno));
        e = -EIO;
    }
    if (!e && !s->n_good && !s->n_bad)
        ws_cli_error("%s: no task sets", in ? "standard input" : file);
    return e || s->n_bad || !s->n_good;
}

static int sim(int argc, char **argv)
{
    struct sim_verb *s = ws_alloc(sizeof(*s));
    const char *file = "-";
    if (!s) {
        ws_cli_error("out of memory");
        return 1;
    }
    s->trace_line = 1;
    s->rt = WS_SIM_RT_OPTIONS_DEFAULT;
    int status = read_arguments(s, argc, argv, &file);
    if (status < 0)
        status = run_all(s, file);
    for (int i = 0; i < s->n_policies; i++)
        free(s->policies[i]);
    ws_gpus_deinit(&s->gpus);
    ws_json_line_deinit(&s->gpus_line);
    free(s);
    return status;
}
