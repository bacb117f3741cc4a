// SPDX-License-Identifier: Apache-2.0
/* Recomputes reference/sbeet: profiles, energy-optimal SM counts and rankings, allocations,
 * recorded decisions, event logs, simulated task sets, mean curves, and the paper's examples.
 * Counts must be equal. The energy of a run is printed with four digits after the point; it must
 * agree within half of the last digit and what summing 15,000 samples in another order makes. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "models/measured.h"
#include "policy/sbeet.h"
#include "papers/sets/gen_sbeet.h"
#include "papers/sets/sbeet_set.h"
#include "tests/reference/check.h"

#define ENERGY_J 6e-5
#define DIGITS_9 6e-9

/* "rtx12_t400", "tab9_rtx12x2_t400". */
static bool config_gpus(const char *config, struct ws_gpus *ret)
{
    char text[64], error[160];
    int limit = 0;
    if (sscanf(config, "tab9_rtx%dx2_t400", &limit) == 1)
        snprintf(text, sizeof(text), "rtx3070@%d,rtx3070@%d,t400", limit, limit);
    else if (sscanf(config, "rtx%d_t400", &limit) == 1)
        snprintf(text, sizeof(text), "rtx3070@%d,t400", limit);
    else
        return false;
    return !ws_gpus_parse(ret, text, error, sizeof(error));
}

/* Their name of a policy, ours. */
static const struct ws_policy_ops *find_policy(const char *theirs)
{
    static const char *const names[][2] = {
        {"ld", "load-dist"}, {"mg-offline", "sbeet-mg-offline"}, {"mg-jm", "sbeet-mg"}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(names); i++)
        if (!strcmp(names[i][0], theirs))
            return ws_policy_find(names[i][1]);
    return ws_policy_find(theirs);
}

/* Whether a variant has the T400's copy times as released, and the options of the policy. */
static bool variant_of(const char *variant, const char *policy, bool *ret_copies_asis,
                       const char *const **ret_options)
{
    static const char *const asis[] = {"variant=asis", NULL};
    *ret_copies_asis = !strstr(variant, "gdhfix");
    *ret_options = !strcmp(policy, "mg-jm") && !strstr(variant, "aliasfix") ? asis : NULL;
    return !strcmp(variant, "asis") || !strcmp(variant, "gdhfix") || !strcmp(variant, "aliasfix") ||
           !strcmp(variant, "gdhfix+aliasfix") || !strcmp(variant, "ext");
}

static bool run(struct ws_check *c, struct ws_sbeet_outcome *ret, const struct ws_sbeet_set *s,
                const char *policy, const char *const *options, double duration,
                void (*event)(void *arg, const struct ws_machine_event *e), void *arg)
{
    const struct ws_policy_ops *ops = find_policy(policy);
    struct ws_machine_options o = {.duration = duration, .tick = 1, .event = event, .arg = arg};
    if (!ops) {
        ws_check_fail(c, "no policy '%s'", policy);
        return false;
    }
    int r = ws_sbeet_set_run(ret, s, ops, options, &o);
    if (r)
        ws_check_fail(c, "%s: %s", policy, r < 0 ? strerror(-r) : ret->note);
    return !r;
}

/* ---- task sets with results ---- */

static bool match_sets(const char *head, struct ws_json_line *first)
{
    return ws_sbeet_set_is(first) &&
           ws_check_has(first, (const char *const[]){"results", "ref_sm", "tasks", NULL});
}

static void compare_list(struct ws_check *c, const char *text, const char *key,
                         const struct ws_json_at *ref, const uint64_t *ours, size_t n)
{
    struct ws_json_at a = ws_json_get(ref, key, true);
    if (!a.o)
        return;
    ws_check_integer(c, ws_check_where("%s.%s length", text, key), (int64_t)n,
                     (int64_t)ws_json_length(&a, 100000));
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at v = ws_json_item(&a, i);
        ws_check_integer(c, ws_check_where("%s.%s[%zu]", text, key, i), (int64_t)ours[i],
                         ws_json_integer_value(&v, 0, INT64_MAX / 2));
    }
}

/* Starts on each GPU. Between GPUs of one kind and limit the energies of a choice are equal but for
 * the rounding of sums, and theirs breaks such ties by chance: what two such GPUs got together is
 * to be equal, what each got is within where it isn't. */
static void compare_starts(struct ws_check *c, const char *text, const struct ws_json_at *ref,
                           const struct ws_gpus *g, const uint64_t *ours, int64_t n_migrated)
{
    int64_t moved = 0;
    struct ws_json_at a = ws_json_get(ref, "disp", false);
    int64_t theirs[WS_GPUS_MAX] = {0};
    ws_check_integer(c, ws_check_where("%s.disp length", text), g->n_gpus,
                     (int64_t)ws_json_length(&a, WS_GPUS_MAX));
    for (int k = 0; k < g->n_gpus; k++) {
        struct ws_json_at v = ws_json_item(&a, (size_t)k);
        theirs[k] = ws_json_integer_value(&v, 0, INT64_MAX / 2);
    }
    for (int k = 0; k < g->n_gpus; k++) {
        int64_t sum = 0, their_sum = 0;
        bool first = true;
        for (int i = 0; i < g->n_gpus; i++)
            if (g->gpus[i].type == g->gpus[k].type && g->gpus[i].sm_limit == g->gpus[k].sm_limit) {
                first &= i >= k;
                sum += (int64_t)ours[i];
                their_sum += theirs[i];
            }
        if (first)
            ws_check_integer(c, ws_check_where("%s.disp[%d] and its twins", text, k), sum,
                             their_sum);
        if (sum == their_sum)
            ws_check_number(c, ws_check_where("%s.disp[%d]", text, k), (double)ours[k],
                            (double)theirs[k], 0, (double)sum);
        moved += llabs((int64_t)ours[k] - theirs[k]);
    }
    if (ws_json_has(ref, "migr")) /* a start on the twin of one's own GPU counts */
        ws_check_number(c, ws_check_where("%s.migr", text), (double)n_migrated,
                        ws_check_value(ref, "migr"), 0, (double)moved / 2);
}

static void compare_run(struct ws_check *c, const char *text, const struct ws_sbeet_outcome *o,
                        const struct ws_gpus *g, const struct ws_json_at *ref)
{
    const struct ws_machine_result *r = &o->r;
    uint64_t disp[WS_GPUS_MAX] = {0};
    for (int i = 0; i < r->n_tasks; i++)
        for (int k = 0; k < r->n_gpus; k++)
            disp[k] += r->started[i * r->n_gpus + k];
    const struct {
        const char *key;
        uint64_t ours;
    } counts[] = {{"rel", r->n_released},
                  {"miss", r->n_late + r->n_skipped},
                  {"late", r->n_late},
                  {"skip", r->n_skipped},
                  {"comp", r->n_on_time}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(counts); i++)
        if (ws_json_has(ref, counts[i].key))
            ws_check_integer(c, ws_check_where("%s.%s", text, counts[i].key),
                             (int64_t)counts[i].ours,
                             ws_json_integer(ref, counts[i].key, 0, INT64_MAX / 2, true, 0));
    ws_check_number(c, ws_check_where("%s.E_J", text), r->energy / 1000, ws_check_value(ref, "E_J"),
                    0, ENERGY_J);
    ws_check_number(c, ws_check_where("%s.avg_sm", text),
                    r->n_started ? (double)r->sum_sm / (double)r->n_started : 0,
                    ws_check_value(ref, "avg_sm"), 0, 6e-5);
    compare_starts(c, text, ref, g, disp, (int64_t)o->n_migrated);
    compare_list(c, text, "rel_t", ref, r->released, (size_t)r->n_tasks);
    compare_list(c, text, "miss_t", ref, r->missed, (size_t)r->n_tasks);
    if (ws_json_has(ref, "unfit"))
        ws_check_bool(c, ws_check_where("%s.unfit", text), o->n_unfit,
                      ws_json_integer(ref, "unfit", 0, 1000, true, 0) > 0);
}

static void compare_alloc(struct ws_check *c, const char *text, const struct ws_json_at *ref,
                          const int *home, const int *m_opt, int n)
{
    ws_check_integer(c, ws_check_where("%s length", text), n, (int64_t)ws_json_length(ref, 100000));
    for (int i = 0; i < n; i++) {
        struct ws_json_at pair = ws_json_item(ref, (size_t)i), gpu = ws_json_item(&pair, 0),
                          m = ws_json_item(&pair, 1);
        ws_check_integer(c, ws_check_where("%s[%d] GPU", text, i), home[i],
                         ws_json_integer_value(&gpu, -1, WS_GPUS_MAX));
        if (home[i] >= 0)
            ws_check_integer(c, ws_check_where("%s[%d] SMs", text, i), m_opt[i],
                             ws_json_integer_value(&m, 0, WS_SM_MAX));
    }
}

/* Their bin packers sort by utilisation before they sort by period, so that among equal periods the
 * larger task comes first. */
static void order_as_packed(struct ws_sbeet_set *s)
{
    struct ws_policy_task *t = s->tasks;
    for (int i = 1; i < s->system.n_tasks; i++)
        for (int k = i;
             k && t[k].priority == t[k - 1].priority && t[k].utilization > t[k - 1].utilization;
             k--) {
            struct ws_policy_task x = t[k];
            t[k] = t[k - 1];
            t[k - 1] = x;
        }
    for (int i = 0; i < s->system.n_tasks; i++)
        t[i].id = i;
}

static void check_variant(struct ws_check *c, struct ws_json_line *l, const struct ws_gpus *g,
                          const char *config, const char *variant, const struct ws_json_at *ref,
                          const struct ws_json_at *config_at)
{
    json_object_object_foreach(ref->o, policy, ignored)
    {
        const char *const *options;
        bool copies_asis;
        char text[120];
        struct ws_sbeet_set s;
        struct ws_sbeet_outcome o = {0};
        (void)ignored;
        if (!variant_of(variant, policy, &copies_asis, &options)) {
            ws_check_fail(c, "line %u: the variant '%s' is unknown", l->number, variant);
            return;
        }
        snprintf(text, sizeof(text), "line %u %s %s %s", l->number, config, variant, policy);
        struct ws_json_at result = ws_json_get(ref, policy, false);
        int r = ws_sbeet_set_read(&s, g, copies_asis, l);
        if (!r && strstr(policy, "fd-sbeet"))
            order_as_packed(&s);
        if (!r && run(c, &o, &s, policy, options, s.duration, NULL, NULL)) {
            compare_run(c, text, &o, g, &result);
            if (!strcmp(policy, "mg-offline")) {
                const char *key = copies_asis ? "alloc" : "alloc_gdhfix";
                struct ws_json_at alloc = ws_json_get(config_at, key, false);
                snprintf(text, sizeof(text), "line %u %s %s", l->number, config, key);
                compare_alloc(c, text, &alloc, o.home, o.m_opt, s.system.n_tasks);
            }
        }
        ws_sbeet_outcome_deinit(&o);
        ws_sbeet_set_deinit(&s);
    }
}

/* The set itself can be made again from its seed. */
static void check_generated(struct ws_check *c, struct ws_json_line *l,
                            const struct ws_json_at *root)
{
    struct ws_json_at tasks = ws_json_get(root, "tasks", false);
    const char *rule = ws_json_string(root, "phi_rule", true);
    struct ws_gen_sbeet g = {.seed =
                                 (uint64_t)ws_json_integer(root, "seed", 0, INT64_MAX / 2, true, 0),
                             .n_tasks = (int)ws_json_length(&tasks, WS_GEN_SBEET_MAX),
                             .util = ws_check_value(root, "util"),
                             .ref_sm = (int)ws_json_integer(root, "ref_sm", 1, 46, true, 24),
                             .random_offsets = rule && !strcmp(rule, "random")};
    struct ws_sbeet_task t[WS_GEN_SBEET_MAX];
    if (ws_gen_sbeet(&g, t)) {
        ws_check_fail(c, "line %u: can't be generated", l->number);
        return;
    }
    for (int i = 0; i < g.n_tasks; i++) {
        struct ws_json_at at = ws_json_item(&tasks, (size_t)i);
        ws_check_integer(c, ws_check_where("line %u tasks[%d].app", l->number, i), t[i].app,
                         ws_json_integer(&at, "app", 0, 100, true, 0));
        ws_check_number(c, ws_check_where("line %u tasks[%d].period_ms", l->number, i), t[i].period,
                        ws_check_value(&at, "period_ms"), 0, 0);
        ws_check_number(c, ws_check_where("line %u tasks[%d].phi_ms", l->number, i), t[i].offset,
                        ws_check_value(&at, "phi_ms"), 0, 0);
        ws_check_number(c, ws_check_where("line %u tasks[%d].ref_util", l->number, i),
                        t[i].utilization, ws_check_value(&at, "ref_util"), 0, 1e-9);
    }
}

static void set_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    struct ws_json_at root = ws_json_root(l), results = ws_json_get(&root, "results", false);
    (void)arg;
    if (l->bad)
        return;
    check_generated(c, l, &root);
    json_object_object_foreach(results.o, config, ignored)
    {
        (void)ignored;
        struct ws_gpus g;
        struct ws_json_at at = ws_json_get(&results, config, false);
        if (!config_gpus(config, &g)) {
            ws_check_fail(c, "line %u: the configuration '%s' is unknown", l->number, config);
            continue;
        }
        json_object_object_foreach(at.o, variant, value)
        {
            if (!json_object_is_type(value, json_type_object))
                continue; /* alloc, alloc_gdhfix: with the runs */
            struct ws_json_at ref = ws_json_get(&at, variant, false);
            check_variant(c, l, &g, config, variant, &ref, &at);
        }
        ws_gpus_deinit(&g);
    }
}

static void check_sets(struct ws_check *c)
{
    ws_check_lines(c, set_line, NULL);
}

const struct ws_check_kind ws_check_kind_sbeet_sets = {"sBEET-mg task sets", match_sets,
                                                       check_sets};

/* ---- event logs ---- */

static bool match_traces(const char *head, struct ws_json_line *first)
{
    return ws_sbeet_set_is(first) &&
           ws_check_has(first, (const char *const[]){"events", "policy", "released", NULL});
}

struct trace {
    struct ws_check *c;
    struct ws_json_line *l;
    struct ws_json_at events;
    size_t n, i;
};

/* One event as the file writes it. */
static struct json_object *event_json(const struct ws_machine_event *e)
{
    struct json_object *a = json_object_new_array();
    json_object_array_add(a, json_object_new_double(e->t));
    json_object_array_add(a, json_object_new_string(ws_machine_event_name(e->kind)));
    json_object_array_add(a, json_object_new_int(e->task));
    if (e->kind == WS_MACHINE_START) {
        json_object_array_add(a, json_object_new_int(e->gpu));
        json_object_array_add(a, json_object_new_int(e->run->n_sm));
        json_object_array_add(a, json_object_new_double(e->run->gpu_start));
        json_object_array_add(a, json_object_new_double(e->run->gpu_end));
        json_object_array_add(a, json_object_new_double(e->run->end));
    } else if (e->kind == WS_MACHINE_DONE || e->kind == WS_MACHINE_LATE) {
        json_object_array_add(a, json_object_new_int(e->gpu));
        json_object_array_add(a, json_object_new_int(e->slot));
    } else if (e->kind == WS_MACHINE_SKIP) {
        json_object_array_add(a, json_object_new_double(e->release));
    }
    return a;
}

/* Whether both are the same but for 1e-6 in numbers. */
static bool same_event(struct json_object *a, struct json_object *b)
{
    size_t n = json_object_array_length(a);
    if (!json_object_is_type(b, json_type_array) || json_object_array_length(b) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct json_object *x = json_object_array_get_idx(a, i),
                           *y = json_object_array_get_idx(b, i);
        if (json_object_is_type(x, json_type_string)
                ? strcmp(json_object_get_string(x), json_object_get_string(y)) != 0
                : !(fabs(json_object_get_double(x) - json_object_get_double(y)) <= 1e-6))
            return false;
    }
    return true;
}

static void trace_event(void *arg, const struct ws_machine_event *e)
{
    struct trace *t = arg;
    if (e->kind == WS_MACHINE_POWER)
        return;
    size_t i = t->i++;
    struct json_object *ours = event_json(e),
                       *ref = i < t->n ? json_object_array_get_idx(t->events.o, i) : NULL;
    if (ref && same_event(ours, ref))
        t->c->n_equal++;
    else
        ws_check_text(t->c, ws_check_where("line %u events[%zu]", t->l->number, i),
                      json_object_to_json_string(ours),
                      ref ? json_object_to_json_string(ref) : "none");
    json_object_put(ours);
}

static void trace_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    struct ws_json_at root = ws_json_root(l), alloc = ws_json_get(&root, "alloc", true);
    struct trace t = {.c = c, .l = l, .events = ws_json_get(&root, "events", false)};
    const char *config = ws_json_string(&root, "config", true),
               *policy = ws_json_string(&root, "policy", true);
    struct ws_gpus g;
    struct ws_sbeet_set s;
    struct ws_sbeet_outcome o = {0};
    const char *const *options;
    bool copies_asis;
    (void)arg;
    t.n = ws_json_length(&t.events, 1000000);
    if (l->bad || !config_gpus(config, &g)) {
        ws_check_fail(c, "line %u: the configuration is unknown", l->number);
        return;
    }
    variant_of("asis", policy, &copies_asis, &options);
    if (!ws_sbeet_set_read(&s, &g, copies_asis, l) &&
        run(c, &o, &s, policy, options, s.duration, trace_event, &t)) {
        char text[64];
        snprintf(text, sizeof(text), "line %u", l->number);
        ws_check_integer(c, ws_check_where("%s number of events", text), (int64_t)t.i,
                         (int64_t)t.n);
        ws_check_integer(c, ws_check_where("%s released", text), (int64_t)o.r.n_released,
                         ws_json_integer(&root, "released", 0, INT64_MAX / 2, true, 0));
        ws_check_integer(c, ws_check_where("%s missed", text),
                         (int64_t)(o.r.n_late + o.r.n_skipped),
                         ws_json_integer(&root, "missed", 0, INT64_MAX / 2, true, 0));
        ws_check_integer(c, ws_check_where("%s late", text), (int64_t)o.r.n_late,
                         ws_json_integer(&root, "late", 0, INT64_MAX / 2, true, 0));
        ws_check_integer(c, ws_check_where("%s skipped", text), (int64_t)o.r.n_skipped,
                         ws_json_integer(&root, "skipped", 0, INT64_MAX / 2, true, 0));
        ws_check_number(c, ws_check_where("%s energy_J", text), o.r.energy / 1000,
                        ws_check_value(&root, "energy_J"), 0, 1e-6);
        snprintf(text, sizeof(text), "line %u alloc", l->number);
        if (alloc.o)
            compare_alloc(c, text, &alloc, o.home, o.m_opt, s.system.n_tasks);
    }
    ws_sbeet_outcome_deinit(&o);
    ws_sbeet_set_deinit(&s);
    ws_gpus_deinit(&g);
}

static void check_traces(struct ws_check *c)
{
    ws_check_lines(c, trace_line, NULL);
}

const struct ws_check_kind ws_check_kind_sbeet_traces = {"sBEET-mg event logs", match_traces,
                                                         check_traces};

/* ---- decisions ---- */

static bool match_decisions(const char *head, struct ws_json_line *first)
{
    return ws_sbeet_set_is(first) &&
           ws_check_has(first, (const char *const[]){"decisions", "alloc", "config", NULL});
}

struct state {
    struct ws_policy_job jobs[1 + 64];
    struct ws_policy_run runs[64];
    struct ws_policy_gpu_state gpus[WS_GPUS_MAX];
    int n_jobs;
};

/* The job to decide on is jobs[0]. */
static void read_state(const struct ws_json_at *at, const struct ws_sbeet_set *s, struct state *ret)
{
    struct ws_json_at job = ws_json_get(at, "job", false), state = ws_json_get(at, "state", false);
    int n_tasks = s->system.n_tasks, n_runs = 0;
    ret->jobs[0] =
        (struct ws_policy_job){.task = (int)ws_json_integer(&job, "task", 0, n_tasks - 1, true, 0),
                               .state = WS_JOB_WAITING,
                               .release = ws_check_value(&job, "rel"),
                               .deadline = ws_check_value(&job, "dl"),
                               .gpu = -1};
    ret->n_jobs = 1;
    ws_json_length(&state, (size_t)s->system.n_gpus);
    for (int k = 0; k < s->system.n_gpus; k++) {
        struct ws_json_at slots = ws_json_item(&state, (size_t)k);
        size_t n = ws_json_length(&slots, 2);
        ret->gpus[k] = (struct ws_policy_gpu_state){
            .slots = &ret->runs[n_runs], .n_slots = (int)n, .power = WS_GPU_ON};
        for (size_t i = 0; i < n; i++) {
            struct ws_json_at slot = ws_json_item(&slots, i);
            struct ws_policy_run *r = &ret->runs[n_runs++];
            *r = (struct ws_policy_run){.job = -1, .task = -1};
            if (!slot.o)
                continue;
            *r = (struct ws_policy_run){
                .job = ret->n_jobs,
                .task = (int)ws_json_integer(&slot, "task", 0, n_tasks - 1, true, 0),
                .n_sm = (int)ws_json_integer(&slot, "sm", 1, WS_SM_MAX, true, 1),
                .start = ws_check_value(&slot, "start"),
                .gpu_start = ws_check_value(&slot, "gpu_start"),
                .gpu_end = ws_check_value(&slot, "gpu_end"),
                .end = ws_check_value(&slot, "end")};
            ret->jobs[ret->n_jobs] = (struct ws_policy_job){
                .task = r->task, .state = WS_JOB_RUNNING, .seq = (uint64_t)ret->n_jobs, .gpu = k};
            ret->n_jobs++;
            ret->gpus[k].n_running++;
        }
    }
}

static void check_decision(struct ws_check *c, const char *text, const struct ws_json_at *at,
                           const struct ws_sbeet_set *s, const struct ws_policy_ops *ops,
                           struct ws_policy *p)
{
    struct state st;
    char ours[32] = "wait", theirs[32] = "wait";
    struct ws_policy_decisions d = WS_POLICY_DECISIONS_NULL;
    struct ws_policy_event event = {.kind = WS_EVENT_ARRIVAL};
    read_state(at, s, &st);
    struct ws_policy_snapshot snap = {.system = &s->system,
                                      .now = ws_check_value(at, "now"),
                                      .gpus = st.gpus,
                                      .jobs = st.jobs,
                                      .n_jobs = st.n_jobs};
    struct ws_json_at out = ws_json_get(at, "out", true);
    if (at->line->bad)
        return;
    if (ops->decide(p, &snap, &event, &d))
        ws_check_fail(c, "%s: the decision failed", text);
    if (d.n)
        snprintf(ours, sizeof(ours), "GPU %d, %d SMs", d.v[0].gpu, d.v[0].n_sm);
    if (out.o)
        snprintf(theirs, sizeof(theirs), "GPU %d, %d SMs",
                 (int)ws_json_integer(&out, "gpu", 0, 64, true, 0),
                 (int)ws_json_integer(&out, "sm", 0, 256, true, 0));
    ws_check_text(c, text, ours, theirs);
    ws_policy_decisions_deinit(&d);
}

static void decisions_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    static const char *const options[] = {"variant=asis", NULL};
    struct ws_json_at root = ws_json_root(l), list = ws_json_get(&root, "decisions", false),
                      alloc = ws_json_get(&root, "alloc", false);
    const char *config = ws_json_string(&root, "config", true);
    const struct ws_policy_ops *ops = ws_policy_find("sbeet-mg");
    struct ws_gpus g;
    struct ws_sbeet_set s;
    struct ws_policy *p = NULL;
    char error[160], text[64];
    (void)arg;
    size_t n = ws_json_length(&list, 1000000);
    if (l->bad || !config_gpus(config, &g)) {
        ws_check_fail(c, "line %u: the configuration is unknown", l->number);
        return;
    }
    if (!ws_sbeet_set_read(&s, &g, true, l) && !ops->make(&p, options, error, sizeof(error)) &&
        !ops->prepare(p, &s.system, error, sizeof(error))) {
        int home[64], m_opt[64], n_tasks = WS_MIN(s.system.n_tasks, 64);
        for (int i = 0; i < n_tasks; i++) {
            home[i] = ws_sbeet_home(p, i);
            m_opt[i] = ws_sbeet_optimal_sms(p, i, home[i]);
        }
        snprintf(text, sizeof(text), "line %u alloc", l->number);
        compare_alloc(c, text, &alloc, home, m_opt, n_tasks);
        for (size_t i = 0; i < n; i++) {
            struct ws_json_at at = ws_json_item(&list, i);
            snprintf(text, sizeof(text), "line %u decisions[%zu]", l->number, i);
            check_decision(c, text, &at, &s, ops, p);
        }
    } else {
        ws_check_fail(c, "line %u: the policy can't be made", l->number);
    }
    ops->free(p);
    ws_sbeet_set_deinit(&s);
    ws_gpus_deinit(&g);
}

static void check_decisions(struct ws_check *c)
{
    ws_check_lines(c, decisions_line, NULL);
}

const struct ws_check_kind ws_check_kind_sbeet_decisions = {"sBEET-mg decisions", match_decisions,
                                                            check_decisions};

/* ---- curves ---- */

static bool match_curves(const char *head, struct ws_json_line *first)
{
    (void)first;
    return !strncmp(head, "config,variant,policy,util,n,mean_miss_ratio,sd,", 48);
}

struct curve {
    int n;
    double ratio, ratio2, released, missed, energy, late, skipped, migrated;
};

/* Runs the @n task sets of the row, made again from their seeds. */
static bool run_curve(struct ws_check *c, const char *config, const char *variant,
                      const char *policy, double util, int n, struct curve *ret)
{
    struct ws_gpus g;
    const char *const *options;
    bool copies_asis, ok = true;
    char error[160];
    *ret = (struct curve){.n = n};
    if (!config_gpus(config, &g) || !variant_of(variant, policy, &copies_asis, &options)) {
        ws_check_fail(c, "%s %s is unknown", config, variant);
        return false;
    }
    for (int i = 0; i < n && ok; i++) {
        struct ws_gen_sbeet gen = ws_gen_sbeet_reference(util, i);
        struct ws_sbeet_task tasks[WS_GEN_SBEET_MAX];
        struct ws_sbeet_set s = {0};
        struct ws_sbeet_outcome o = {0};
        ok = !ws_gen_sbeet(&gen, tasks);
        for (int t = 0; t < gen.n_tasks && ok;
             t++) /* as their files have it; it decides what fits where U is 1 */
            tasks[t].utilization = rint(tasks[t].utilization * 1e9) / 1e9;
        ok =
            ok && !ws_sbeet_set_make(&s, &g, tasks, gen.n_tasks, copies_asis, error, sizeof(error));
        if (ok && strstr(policy, "fd-sbeet"))
            order_as_packed(&s);
        ok = ok && run(c, &o, &s, policy, options, 15000, NULL, NULL);
        if (ok) {
            double missed = (double)(o.r.n_late + o.r.n_skipped),
                   ratio = missed / (double)o.r.n_released;
            ret->ratio += ratio;
            ret->ratio2 += ratio * ratio;
            ret->released += (double)o.r.n_released;
            ret->missed += missed;
            ret->energy += o.r.energy / 1000;
            ret->late += (double)o.r.n_late;
            ret->skipped += (double)o.r.n_skipped;
            ret->migrated += (double)o.n_migrated;
        }
        ws_sbeet_outcome_deinit(&o);
        ws_sbeet_set_deinit(&s);
    }
    ws_gpus_deinit(&g);
    return ok;
}

static void curve_line(struct ws_check *c, char *line)
{
    enum { N = 14 };
    char *f[N] = {0}, text[120];
    int n = 0;
    for (char *p = line; p && n < N; n++) {
        f[n] = strsep(&p, ",");
        f[n][strcspn(f[n], "\r\n")] = 0;
    }
    struct curve r;
    if (n < 13) {
        ws_check_fail(c, "line %u: %d fields", (unsigned)c->n_lines + 1, n);
        return;
    }
    int sets = atoi(f[4]);
    if (sets < 2 || !run_curve(c, f[0], f[1], f[2], strtod(f[3], NULL), sets, &r))
        return;
    double k = r.n;
    snprintf(text, sizeof(text), "%s %s %s %s", f[0], f[1], f[2], f[3]);
    const struct {
        const char *name;
        double ours;
        int field;
        double apart;
    } rows[] = {
        {"mean_miss_ratio", r.ratio / k, 5, 6e-7},
        {"sd", sqrt(fmax(0, (r.ratio2 - r.ratio * r.ratio / k) / (k - 1))), 6, 2e-6},
        {"pooled_miss_ratio", r.missed / r.released, 7, 6e-7},
        {"mean_energy_J", r.energy / k, 8, 6e-5},
        {"mean_power_W", r.energy / k / 15, 9, 6e-6},
        {"mean_released", r.released / k, 10, 6e-7},
        {"mean_late", r.late / k, 11, 6e-7},
        {"mean_skip", r.skipped / k, 12, 6e-7},
        /* Ties between equal GPUs: compare_starts(). Now and then one changes what becomes of a
         * later job. */
        {"mean_migr", r.migrated / k, 13, strncmp(f[0], "tab9", 4) ? 6e-7 : 0.5},
    };
    bool ties = !strncmp(f[0], "tab9", 4) && !strcmp(f[2], "mg-jm");
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++)
        if (rows[i].field < n && *f[rows[i].field])
            ws_check_number(c, ws_check_where("%s %s", text, rows[i].name), rows[i].ours,
                            strtod(f[rows[i].field], NULL), ties ? 1e-3 : 0, rows[i].apart);
}

static void check_curves(struct ws_check *c)
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
            curve_line(c, line);
            c->n_lines++;
        }
    free(line);
    fclose(f);
}

const struct ws_check_kind ws_check_kind_sbeet_curves = {"sBEET-mg mean curves", match_curves,
                                                         check_curves};
