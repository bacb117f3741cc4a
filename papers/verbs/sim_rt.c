// SPDX-License-Identifier: Apache-2.0
/* wattshare sim for real-time task sets on CPU cores with one GPU: simulates each set once, or
 * hunts for long response times, and compares them with the bounds of an analysis. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "papers/verbs/sim.h"
#include "papers/verbs/sim_rt.h"
#include "papers/sets/rtsim_set.h"
#include "base/trace_file.h"

/* ---- options ---- */
static int find_method(const char *option, const char *name, const struct ws_rta_method **ret)
{
    if (!name)
        return 0;
    *ret = ws_rta_method_find(name);
    if (*ret)
        return 0;
    ws_cli_error("--%s %s: no such method; wattshare analyze --list names them", option, name);
    return -ENOENT;
}

int ws_sim_rt_find_methods(struct ws_sim_rt_options *o)
{
    int r = find_method("bounds", o->bounds_name, &o->bounds);
    return r ? r : find_method("allocation", o->allocation_name, &o->allocation);
}

/* ---- results ---- */
static struct json_object *number(double x)
{
    char text[40];
    snprintf(text, sizeof(text), "%.10g", x);
    return json_object_new_double_s(x, text);
}

static struct json_object *times(const int64_t *v, int n, double scale)
{
    struct json_object *a = json_object_new_array();
    for (int i = 0; i < n; i++)
        json_object_array_add(a, number((double)v[i] / scale));
    return a;
}

static void add_count(struct json_object *o, const char *key, uint64_t n)
{
    json_object_object_add(o, key, json_object_new_int64((int64_t)n));
}

/* Who was seen above its bound, and in which run: enough to see it again. */
static void add_exceeded(struct json_object *o, const struct ws_rtsim_set *set,
                         const int64_t *bounds, const struct ws_rtsim_prey *prey, double scale)
{
    struct json_object *list = json_object_new_array();
    for (int i = 0; i < set->n_tasks; i++)
        if (bounds[i] > 0 && prey->tasks[i].worst > bounds[i])
            json_object_array_add(list, json_object_new_int(i));
    bool any = json_object_array_length(list) > 0;
    add_count(o, "n_exceeded", any);
    json_object_object_add(o, "exceeded", list);
    if (!any)
        return;
    struct json_object *run = json_object_new_object();
    json_object_object_add(run, "offsets", times(prey->offsets, set->n_tasks, scale));
    add_count(run, "exec_permille", (uint64_t)prey->scenario.exec_permille);
    add_count(run, "slack_permille", (uint64_t)prey->scenario.slack_permille);
    add_count(run, "seed", prey->scenario.seed & INT64_MAX);
    json_object_object_add(o, "run", run);
}

static void report(struct json_object *o, const struct ws_sim_rt_options *x, bool gcaps,
                   const struct ws_rtsim_set *set, const struct ws_rtsim_verdict *v,
                   const struct ws_rtsim_prey *prey, double scale)
{
    struct json_object *worst = json_object_new_array(), *missed = json_object_new_array();
    uint64_t n_missed = 0;
    for (int i = 0; i < set->n_tasks; i++) {
        json_object_array_add(worst, number((double)prey->tasks[i].worst / scale));
        json_object_array_add(missed, json_object_new_int64((int64_t)prey->tasks[i].n_missed));
        n_missed += set->tasks[i].best_effort ? 0 : prey->tasks[i].n_missed;
    }
    json_object_object_add(o, "mode", json_object_new_string(x->busy ? "busy" : "suspend"));
    if (gcaps)
        json_object_object_add(
            o, "hold", json_object_new_string(ws_rtsim_hold_name((enum ws_rtsim_hold)x->hold)));
    add_count(o, "n_sets", 1);
    add_count(o, "n_jobs", prey->n_jobs);
    add_count(o, "n_missed", n_missed);
    json_object_object_add(o, "worst", worst);
    json_object_object_add(o, "missed", missed);
    struct json_object *of = json_object_new_object();
    json_object_object_add(of, "task", json_object_new_int(prey->task));
    json_object_object_add(of, "ratio", number(prey->ratio));
    json_object_object_add(o, x->bounds ? "worst_of_bounds" : "worst_of_deadlines", of);
    if (!x->bounds) {
        json_object_object_add(o, "max_of_deadline", number(prey->ratio));
        return;
    }
    json_object_object_add(o, "bounds", json_object_new_string(x->bounds->name));
    add_count(o, "n_accepted", v->accepted);
    json_object_object_add(o, "bound", times(v->bounds, set->n_tasks, scale));
    if (!v->accepted)
        return;
    add_exceeded(o, set, v->bounds, prey, scale);
    json_object_object_add(o, "max_of_bound", number(prey->ratio));
}

/* ---- traces ---- */
enum { TRACE_CORES = 1, TRACE_GPU = 2, TRACE_TASKS = 3 };
struct tracer {
    struct ws_trace *t;
    const struct ws_rtsim_set *set;
};

static double ms(const struct tracer *t, int64_t at)
{
    return (double)at / (double)t->set->per_ms;
}

static void trace_span(void *arg, enum ws_rtsim_span what, int core, int task, int64_t start,
                       int64_t end)
{
    static const char *const names[] = {"runs", "spins", "update", "copies", "kernel", "switch"};
    const struct tracer *t = arg;
    char name[64];
    bool gpu = core < 0;
    snprintf(name, sizeof(name), "task %d%s%s", task, what == WS_RTSIM_SPAN_CPU ? "" : " ",
             what == WS_RTSIM_SPAN_CPU ? "" : names[what]);
    ws_trace_slice(t->t, gpu ? TRACE_GPU : TRACE_CORES, gpu ? task + 1 : core + 1, name,
                   ms(t, start), ms(t, end), NULL);
}

static void trace_job(void *arg, int task, int64_t release, int64_t end)
{
    const struct tracer *t = arg;
    char name[48];
    bool late = end - release > t->set->tasks[task].deadline;
    snprintf(name, sizeof(name), "job%s", late ? ", late" : "");
    ws_trace_slice(t->t, TRACE_TASKS, task + 1, name, ms(t, release), ms(t, end), NULL);
}

static void trace_why(void *arg, int64_t now, const char *decision, const char *why)
{
    const struct tracer *t = arg;
    char name[224];
    snprintf(name, sizeof(name), "%s: %s", decision, why);
    ws_trace_mark(t->t, TRACE_GPU, t->set->n_tasks + 1, name, ms(t, now), NULL);
}

static void trace_names(const struct tracer *t)
{
    char name[48];
    ws_trace_name(t->t, TRACE_CORES, 0, "cores", NULL);
    for (int c = 0; c < t->set->n_cores; c++) {
        snprintf(name, sizeof(name), "core %d", c);
        ws_trace_name(t->t, TRACE_CORES, c + 1, NULL, name);
    }
    ws_trace_name(t->t, TRACE_GPU, 0, "GPU", NULL);
    ws_trace_name(t->t, TRACE_TASKS, 0, "tasks", NULL);
    for (int i = 0; i < t->set->n_tasks; i++) {
        snprintf(name, sizeof(name), "task %d", i);
        ws_trace_name(t->t, TRACE_GPU, i + 1, NULL, name);
        ws_trace_name(t->t, TRACE_TASKS, i + 1, NULL, name);
    }
    ws_trace_name(t->t, TRACE_GPU, t->set->n_tasks + 1, NULL, "decisions");
}

/* One run for the eye: the one with the longest response that the hunt found. */
static int trace(struct ws_rtsim *rt, const struct ws_rtsim_set *set,
                 const struct ws_rtsim_prey *prey, FILE *f)
{
    struct ws_trace t;
    struct tracer tracer = {&t, set};
    struct ws_rtsim_observer o = {
        .arg = &tracer, .span = trace_span, .job = trace_job, .why = trace_why};
    struct ws_rtsim_result result;
    ws_trace_begin(&t, f);
    trace_names(&tracer);
    int r = ws_rtsim_run(rt, &prey->scenario, &o, &result);
    int e = ws_trace_end(&t);
    return r ? r : e;
}

/* ---- one line ---- */
/* The method that says where tasks are: NULL where the set says so itself. */
static const struct ws_rta_method *placing(const struct ws_sim_rt_options *x, bool stgm_set,
                                           enum ws_rtsim_policy policy)
{
    if (x->bounds)
        return x->bounds;
    if (x->allocation || !stgm_set)
        return x->allocation;
    static const char *const names[_WS_RTSIM_POLICY_N][2] = {
        [WS_RTSIM_RR] = {"tsg_rr_suspend", "tsg_rr_busy"},
        [WS_RTSIM_GCAPS] = {"gcaps_suspend", "gcaps_busy"},
        [WS_RTSIM_STGM] = {"stgm_suspend", "stgm_busy"},
        [WS_RTSIM_MPCP] = {"mpcp_suspend", "mpcp_busy"},
        [WS_RTSIM_FMLP] = {"fmlp_suspend", "fmlp_busy"}};
    return ws_rta_method_find(names[policy][x->busy]);
}

/* offset and jitter are of the simulator alone. */
static void read_releases(struct ws_json_line *l, struct ws_rtsim_set *set, int64_t scale)
{
    struct ws_json_at root = ws_json_root(l), tasks = ws_json_get(&root, "tasks", false);
    for (int i = 0; i < set->n_tasks; i++) {
        struct ws_json_at t = ws_json_item(&tasks, (size_t)i);
        int64_t max = WS_RTSIM_TIME_MAX;
        set->tasks[i].offset = ws_json_scaled(&t, "offset", scale, max, false, 0);
        set->tasks[i].jitter = ws_json_scaled(&t, "jitter", scale, max, false, 0);
    }
}

static int simulate(const struct ws_sim_run *run, struct ws_json_line *l,
                    const struct ws_rtsim_set *set, const struct ws_rtsim_verdict *v,
                    struct json_object *ret)
{
    const struct ws_sim_rt_options *x = run->rt;
    struct ws_rtsim_config config = {.policy =
                                         (enum ws_rtsim_policy)ws_rtsim_policy_find(run->policy),
                                     .hold = (enum ws_rtsim_hold)x->hold,
                                     .busy = x->busy,
                                     .policy_options = run->options};
    size_t n = (size_t)set->n_tasks;
    struct ws_rtsim_hunt hunt = x->hunt;
    hunt.seed += (uint64_t)l->number * UINT64_C(0x9e3779b97f4a7c15);
    if (run->duration_ms > 0)
        hunt.horizon = (int64_t)(run->duration_ms * (double)set->per_ms);
    struct ws_rtsim_prey prey = {.tasks = ws_alloc_array(n, sizeof(*prey.tasks)),
                                 .offsets = ws_alloc_array(n, sizeof(*prey.offsets))};
    struct ws_rtsim *rt = NULL;
    int r = prey.tasks && prey.offsets ? ws_rtsim_new(&rt, set, &config) : -ENOMEM;
    if (!r)
        r = ws_rtsim_hunt(rt, set, v->accepted ? v->bounds : NULL, &hunt, &prey);
    if (!r)
        report(ret, x, config.policy == WS_RTSIM_GCAPS, set, v, &prey,
               l->root && set->per_ms == WS_GCAPS_UNITS_PER_MS ? (double)set->per_ms : 1);
    if (!r && run->trace)
        r = trace(rt, set, &prey, run->trace);
    ws_rtsim_free(rt);
    free(prey.tasks);
    free(prey.offsets);
    return r;
}

static int run_line(const struct ws_sim_run *run, struct ws_json_line *l, struct json_object *ret)
{
    struct ws_rt_set from;
    struct ws_rtsim_space space = WS_RTSIM_SPACE_NULL;
    struct ws_rtsim_set set = WS_RTSIM_SET_NULL;
    struct ws_rtsim_verdict v = {0};
    int r = ws_rt_set_read(l, &from);
    if (!r && run->rt->bounds)
        ws_rt_set_refuse_jitter(l, &from);
    if (!r && !l->bad) {
        bool stgm = from.kind == WS_RT_STGM;
        const struct ws_rta_method *m =
            placing(run->rt, stgm, (enum ws_rtsim_policy)ws_rtsim_policy_find(run->policy));
        if (m && m->stgm && !stgm)
            ws_json_bad(l, "", "%s needs an STGM set, and this is a GCAPS set", m->name);
        else
            r = ws_rtsim_set_make(&from, m, &space, &set, &v);
        char why[160];
        if (!r && !l->bad) {
            read_releases(l, &set, stgm ? 1 : WS_GCAPS_UNITS_PER_MS);
            if (ws_rtsim_check(&set, why, sizeof(why)))
                ws_json_bad(l, "", "%s", why);
        }
        if (!r && !l->bad && !v.placed)
            add_count(ret, "n_unplaced", 1);
        else if (!r && !l->bad)
            r = simulate(run, l, &set, &v, ret);
    }
    ws_rtsim_space_deinit(&space);
    ws_rtsim_set_deinit(&set);
    ws_rt_set_deinit(&from);
    free(v.bounds);
    return r;
}

static bool is_ours(struct ws_json_line *l)
{
    struct json_object *tasks, *first, *nsm;
    if (!json_object_object_get_ex(l->root, "tasks", &tasks) ||
        !json_object_is_type(tasks, json_type_array) || !json_object_array_length(tasks))
        return false;
    first = json_object_array_get_idx(tasks, 0);
    return json_object_is_type(first, json_type_object) &&
           (json_object_object_get_ex(first, "ges", NULL) ||
            json_object_object_get_ex(first, "segs", NULL) ||
            json_object_object_get_ex(l->root, "nsm", &nsm));
}

static bool knows(const char *policy)
{
    return ws_rtsim_policy_find(policy) >= 0;
}

const struct ws_sim_kind ws_sim_kind_rt = {"GCAPS and STGM", "gcaps, rr, stgm, mpcp and fmlp+",
                                           is_ours, run_line, knows};
