// SPDX-License-Identifier: Apache-2.0
/* Recomputes reference/gcaps/runlist_traces.jsonl: the run list after each call, by the rule of
 * policy `gcaps` and by the two printed forms; and reference/stgm/fifo_traces.jsonl: start and end
 * of every copy and kernel of closed-loop clients, by the real-time simulator with policy `stgm`,
 * with each client on a core of its own. Both must be equal. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"
#include "policy/runlist.h"
#include "papers/sim/rtsim.h"
#include "tests/reference/check.h"

static bool has(struct ws_json_line *l, const char *key)
{
    return l->root && json_object_object_get_ex(l->root, key, NULL);
}

/* ---- run lists ---- */
enum { TASKS_MAX = 64 };
struct replay {
    struct ws_policy *policy;
    struct ws_policy_gpu_type type;
    struct ws_policy_gpu gpu;
    struct ws_policy_task tasks[TASKS_MAX];
    struct ws_policy_system system;
    struct ws_policy_job jobs[TASKS_MAX];
    int n_jobs;
    uint64_t seq;
    struct ws_policy_decisions decisions;
    struct ws_runlist alg1, driver;
    uint64_t run; /* the list as it was */
};

static int job_of(const struct replay *x, int task)
{
    for (int j = 0; j < x->n_jobs; j++)
        if (x->jobs[j].task == task)
            return j;
    return -1;
}

/* The call @begin or end of @task, as the daemon would carry out what the policy decides. */
static void call(struct ws_check *c, struct replay *x, bool begin, int task)
{
    struct ws_policy_event e = {.kind = begin ? WS_EVENT_ARRIVAL : WS_EVENT_COMPLETION,
                                .job = begin ? x->n_jobs : -1,
                                .task = task,
                                .gpu = 0};
    int j = job_of(x, task);
    if (begin == (j >= 0)) {
        ws_check_fail(c, "task %d: %s", task, begin ? "begins twice" : "ends what is not open");
        return;
    }
    if (begin) {
        x->jobs[x->n_jobs++] =
            (struct ws_policy_job){.id = ++x->seq, .seq = x->seq, .task = task, .gpu = -1};
    } else {
        memmove(&x->jobs[j], &x->jobs[j + 1], sizeof(x->jobs[0]) * (size_t)(x->n_jobs - j - 1));
        x->n_jobs--;
    }
    struct ws_policy_gpu_state state = {0};
    struct ws_policy_snapshot s = {.system = &x->system,
                                   .gpus = &state,
                                   .jobs = x->jobs,
                                   .n_jobs = x->n_jobs,
                                   .explain = true};
    x->decisions.n = 0;
    if (ws_policy_find("gcaps")->decide(x->policy, &s, &e, &x->decisions))
        ws_check_fail(c, "the policy failed");
    for (size_t i = 0; i < x->decisions.n; i++) {
        const struct ws_policy_decision *d = &x->decisions.v[i];
        if (d->kind == WS_DECIDE_START || d->kind == WS_DECIDE_RESUME)
            x->jobs[d->job].state = WS_JOB_RUNNING;
        else if (d->kind == WS_DECIDE_PREEMPT)
            x->jobs[d->job].state = WS_JOB_PREEMPTED;
        if (!d->why[0])
            ws_check_fail(c, "a decision without an explanation");
    }
    (begin ? ws_runlist_begin : ws_runlist_end)(&x->alg1, task);
    (begin ? ws_runlist_begin : ws_runlist_end)(&x->driver, task);
}

static uint64_t list_of(const struct replay *x, bool running)
{
    uint64_t set = 0;
    for (int j = 0; j < x->n_jobs; j++)
        if ((x->jobs[j].state == WS_JOB_RUNNING) == running)
            set |= UINT64_C(1) << x->jobs[j].task;
    return set;
}

static uint64_t form_list(const struct ws_runlist *l, bool running)
{
    uint64_t set = 0;
    for (int i = 0; i < l->n_tasks; i++)
        if (running ? l->tasks[i].running : l->tasks[i].pending)
            set |= UINT64_C(1) << i;
    return set;
}

static uint64_t read_list(const struct ws_json_at *at, const char *key)
{
    struct ws_json_at list = ws_json_get(at, key, false);
    size_t n = ws_json_length(&list, TASKS_MAX);
    uint64_t set = 0;
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at one = ws_json_item(&list, i);
        set |= UINT64_C(1) << ws_json_integer_value(&one, 0, TASKS_MAX - 1);
    }
    return set;
}

static void compare_lists(struct ws_check *c, const struct ws_json_at *event, const char *form,
                          const char *where, uint64_t run, uint64_t pending)
{
    char place[160];
    struct ws_json_at state = ws_json_get(event, form, false);
    snprintf(place, sizeof(place), "%s.%s.run", where, form);
    ws_check_integer(c, place, (int64_t)run, (int64_t)read_list(&state, "run"));
    snprintf(place, sizeof(place), "%s.%s.pend", where, form);
    ws_check_integer(c, place, (int64_t)pending, (int64_t)read_list(&state, "pend"));
}

static void compare_divergence(struct ws_check *c, struct ws_json_line *l, const char *form,
                               int ours)
{
    struct ws_json_at root = ws_json_root(l), all = ws_json_get(&root, "first_divergence", false);
    char place[96];
    snprintf(place, sizeof(place), "line %" PRIu32 " first_divergence.%s", l->number, form);
    struct json_object *v = NULL;
    json_object_object_get_ex(all.o, form, &v);
    ws_check_integer(c, place, ours, v ? json_object_get_int(v) : -1);
}

static bool setup(struct ws_check *c, struct replay *x, struct ws_json_line *l)
{
    struct ws_json_at root = ws_json_root(l), prio = ws_json_get(&root, "prio", false);
    int n = (int)ws_json_length(&prio, TASKS_MAX);
    for (int i = 0; i < n; i++) {
        struct ws_json_at one = ws_json_item(&prio, (size_t)i);
        x->tasks[i].id = i;
        x->tasks[i].priority = (int)ws_json_integer_value(&one, 0, 99);
        x->tasks[i].best_effort = x->tasks[i].priority == 0;
    }
    x->gpu.sm_limit = x->type.n_sm = 1;
    x->system = (struct ws_policy_system){.types = &x->type,
                                          .gpus = &x->gpu,
                                          .tasks = x->tasks,
                                          .n_types = 1,
                                          .n_gpus = 1,
                                          .n_tasks = n};
    char error[64];
    if (ws_policy_find("gcaps")->make(&x->policy, NULL, error, sizeof(error)) ||
        ws_runlist_init(&x->alg1, WS_RUNLIST_ALG1, n) ||
        ws_runlist_init(&x->driver, WS_RUNLIST_DRIVER, n)) {
        ws_check_fail(c, "no memory");
        return false;
    }
    for (int i = 0; i < n; i++)
        x->alg1.tasks[i].priority = x->driver.tasks[i].priority = x->tasks[i].priority;
    return true;
}

static void check_runlist_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    (void)arg;
    struct replay *x = calloc(1, sizeof(*x));
    struct ws_json_at root = ws_json_root(l), events = ws_json_get(&root, "events", false);
    size_t n = ws_json_length(&events, 1000000);
    int alg1 = -1, driver = -1;
    if (x && setup(c, x, l))
        for (size_t i = 0; i < n && !l->bad && !c->failed; i++) {
            struct ws_json_at e = ws_json_item(&events, i);
            const char *op = ws_json_string(&e, "op", true);
            int64_t task = ws_json_integer(&e, "task", 0, x->system.n_tasks - 1, true, 0);
            char where[96];
            snprintf(where, sizeof(where), "line %" PRIu32 " events[%zu]", l->number, i);
            call(c, x, op && !strcmp(op, "begin"), (int)task);
            uint64_t run = list_of(x, true);
            compare_lists(c, &e, "fix", where, run, list_of(x, false));
            compare_lists(c, &e, "alg1", where, form_list(&x->alg1, true),
                          form_list(&x->alg1, false));
            compare_lists(c, &e, "driver", where, form_list(&x->driver, true),
                          form_list(&x->driver, false));
            ws_check_bool(c, where, run != x->run, ws_json_bool(&e, "update_needed", true, false));
            x->run = run;
            if (alg1 < 0 && form_list(&x->alg1, true) != run)
                alg1 = (int)i;
            if (driver < 0 && form_list(&x->driver, true) != run)
                driver = (int)i;
        }
    if (x) {
        compare_divergence(c, l, "alg1", alg1);
        compare_divergence(c, l, "driver", driver);
        ws_policy_find("gcaps")->free(x->policy);
        ws_runlist_deinit(&x->alg1);
        ws_runlist_deinit(&x->driver);
        ws_policy_decisions_deinit(&x->decisions);
    }
    free(x);
}

static bool match_runlist(const char *head, struct ws_json_line *first)
{
    (void)head;
    return has(first, "events") && has(first, "prio") && has(first, "first_divergence");
}

static void check_runlist(struct ws_check *c)
{
    ws_check_lines(c, check_runlist_line, NULL);
}

const struct ws_check_kind ws_check_kind_gcaps_runlists = {"gcaps run lists", match_runlist,
                                                           check_runlist};

/* ---- copies and kernels in order ---- */
enum { PARTS = 3, CLIENTS_MAX = 128 };
struct op {
    bool done;
    int64_t come, start, end;
};
struct ops {
    struct op *v; /* [client][segment][part] */
    int n_segments;
};

static struct op *op_of(const struct ops *x, int client, int segment, int part)
{
    return &x->v[((size_t)client * (size_t)x->n_segments + (size_t)segment) * PARTS + (size_t)part];
}

static void note(void *arg, int task, int segment, int part, int64_t come, int64_t start,
                 int64_t end)
{
    *op_of(arg, task, segment, part) = (struct op){true, come, start, end};
}

static int read_client(const struct ws_json_at *at, struct ws_rtsim_set *s, int i, int64_t *offset)
{
    struct ws_rtsim_task *t = &s->tasks[i];
    int64_t mask = ws_json_integer(at, "mask", 1, (INT64_C(1) << s->n_sms) - 1, true, 1);
    struct ws_json_at segs = ws_json_get(at, "segs", false);
    int n = (int)ws_json_length(&segs, WS_RTSIM_SEGMENTS_MAX);
    if (ws_rtsim_set_segments(s, i, n))
        return -1;
    t->id = t->core = i;
    t->priority = s->n_tasks - i;
    t->period = t->deadline = WS_RTSIM_TIME_MAX;
    *offset = ws_json_integer(at, "offset", 0, 1000000000, true, 0);
    for (int sm = 0; sm < s->n_sms; sm++)
        if (mask >> sm & 1)
            ws_sm_set_add(&t->sms, (unsigned)sm);
    for (int k = 0; k < n; k++) {
        struct ws_json_at seg = ws_json_item(&segs, (size_t)k);
        int64_t v[4] = {0};
        for (size_t p = 0; p < 4; p++) {
            struct ws_json_at one = ws_json_item(&seg, p);
            v[p] = ws_json_integer_value(&one, 0, 1000000000);
        }
        t->cpu[k] = v[0];
        t->segments[k] = (struct ws_rtsim_segment){.before = v[1], .kernel = v[2], .after = v[3]};
    }
    return n;
}

static void compare_ops(struct ws_check *c, struct ws_json_line *l, const struct ops *x,
                        int n_tasks)
{
    static const char *const parts[PARTS] = {"kernel", "copy_in", "copy_out"};
    struct ws_json_at root = ws_json_root(l), ops = ws_json_get(&root, "ops", false);
    size_t n = ws_json_length(&ops, 1000000);
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at o = ws_json_item(&ops, i);
        int client = (int)ws_json_integer(&o, "client", 0, n_tasks - 1, true, 0);
        int segment = (int)ws_json_integer(&o, "seg", 0, x->n_segments - 1, true, 0);
        const char *name = ws_json_string(&o, "op", true);
        int part = 0;
        while (part < PARTS && name && strcmp(name, parts[part]))
            part++;
        if (l->bad || part == PARTS) {
            ws_check_fail(c, "line %" PRIu32 " ops[%zu]: not as promised", l->number, i);
            return;
        }
        const struct op *ours = op_of(x, client, segment, part);
        char where[96];
        snprintf(where, sizeof(where), "line %" PRIu32 " ops[%zu] done", l->number, i);
        ws_check_bool(c, where, ours->done, true);
        snprintf(where, sizeof(where), "line %" PRIu32 " ops[%zu].req", l->number, i);
        ws_check_integer(c, where, ours->come, ws_json_integer(&o, "req", 0, INT64_MAX, true, 0));
        snprintf(where, sizeof(where), "line %" PRIu32 " ops[%zu].start", l->number, i);
        ws_check_integer(c, where, ours->start,
                         ws_json_integer(&o, "start", 0, INT64_MAX, true, 0));
        snprintf(where, sizeof(where), "line %" PRIu32 " ops[%zu].end", l->number, i);
        ws_check_integer(c, where, ours->end, ws_json_integer(&o, "end", 0, INT64_MAX, true, 0));
    }
}

static void check_fifo_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    (void)arg;
    struct ws_json_at root = ws_json_root(l), clients = ws_json_get(&root, "clients", false);
    int n = (int)ws_json_length(&clients, CLIENTS_MAX);
    struct ws_rtsim_set s;
    struct ops x = {0};
    struct ws_rtsim *rt = NULL;
    struct ws_rtsim_config config = {.policy = WS_RTSIM_STGM};
    struct ws_rtsim_observer observer = {.arg = &x, .request = note};
    struct ws_rtsim_result result;
    int64_t offsets[CLIENTS_MAX] = {0};
    int r = ws_rtsim_set_init(&s, n);
    s.n_cores = WS_MAX(n, 1);
    s.n_sms = (int)ws_json_integer(&root, "nsm", 1, 62, true, 1);
    s.slice = 1;
    for (int i = 0; i < n && !r; i++) {
        struct ws_json_at one = ws_json_item(&clients, (size_t)i);
        int k = read_client(&one, &s, i, &offsets[i]);
        x.n_segments = WS_MAX(x.n_segments, k);
        r = k < 0 ? -1 : 0;
    }
    if (!r && !l->bad) {
        x.v = calloc((size_t)n * (size_t)x.n_segments * PARTS + 1, sizeof(*x.v));
        struct ws_rtsim_scenario once = {
            .offsets = offsets, .horizon = WS_RTSIM_TIME_MAX, .exec_permille = 1000};
        r = x.v ? ws_rtsim_new(&rt, &s, &config) : -1;
        if (!r)
            r = ws_rtsim_run(rt, &once, &observer, &result);
        if (!r)
            compare_ops(c, l, &x, n);
    }
    if (r)
        ws_check_fail(c, "line %" PRIu32 ": could not be simulated", l->number);
    ws_rtsim_free(rt);
    ws_rtsim_set_deinit(&s);
    free(x.v);
}

static bool match_fifo(const char *head, struct ws_json_line *first)
{
    (void)head;
    return has(first, "clients") && has(first, "ops") && has(first, "nsm");
}

static void check_fifo(struct ws_check *c)
{
    ws_check_lines(c, check_fifo_line, NULL);
}

const struct ws_check_kind ws_check_kind_stgm_queues = {"stgm queues", match_fifo, check_fifo};
