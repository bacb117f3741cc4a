// SPDX-License-Identifier: Apache-2.0
/* Task sets of sBEET-mg: reading, making and running them. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "policy/sbeet.h"
#include "papers/sets/sbeet_set.h"

enum { MAX_TASKS = 10000, MAX_APP = 1000 };
#define MAX_MS 1e12

void ws_sbeet_set_deinit(struct ws_sbeet_set *s)
{
    free(s->tasks);
    free(s->costs);
    *s = (struct ws_sbeet_set){0};
}

static int by_period(const void *a, const void *b)
{
    const struct ws_policy_task *x = a, *y = b;
    if (x->period < y->period || x->period > y->period)
        return x->period < y->period ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

int ws_sbeet_set_make(struct ws_sbeet_set *ret, const struct ws_gpus *g,
                      const struct ws_sbeet_task *tasks, int n, bool copies_asis, char *ret_error,
                      size_t error_bytes)
{
    *ret = (struct ws_sbeet_set){.util = NAN};
    size_t n_costs = (size_t)WS_MAX(n, 1) * (size_t)WS_MAX(g->n_types, 1);
    ret->tasks = ws_alloc_array((size_t)WS_MAX(n, 1), sizeof(*ret->tasks));
    ret->costs = ws_alloc_array(n_costs, sizeof(*ret->costs));
    if (!ret->tasks || !ret->costs)
        return ws_raise(-ENOMEM);
    for (int i = 0; i < n; i++) {
        struct ws_policy_cost *cost = &ret->costs[(size_t)i * (size_t)g->n_types];
        bool known = false;
        for (int k = 0; k < g->n_types; k++) {
            if (!ws_gpus_cost(g, k, tasks[i].kernel, tasks[i].app, &cost[k]))
                continue;
            known = true;
            if (copies_asis && !strcmp(g->types[k].name, "t400"))
                cost[k].d2h = cost[k].h2d;
        }
        if (!known) {
            if (tasks[i].kernel)
                snprintf(ret_error, error_bytes,
                         "tasks[%d]: the kernel '%s' is not known on any of these GPUs", i,
                         tasks[i].kernel);
            else
                snprintf(ret_error, error_bytes, "tasks[%d]: app %d is not one of 0 to %d", i,
                         tasks[i].app, 7);
            return -EINVAL;
        }
        ret->tasks[i] = (struct ws_policy_task){.id = i,
                                                .name = tasks[i].kernel,
                                                .period = tasks[i].period,
                                                .deadline = tasks[i].deadline,
                                                .offset = tasks[i].offset,
                                                .jitter = tasks[i].jitter,
                                                .weight = 1,
                                                .utilization = tasks[i].utilization,
                                                .cost = cost};
    }
    qsort(ret->tasks, (size_t)n, sizeof(*ret->tasks), by_period);
    for (int i = n - 1, priority = 0; i >= 0; i--) {
        if (i == n - 1 || ret->tasks[i].period < ret->tasks[i + 1].period)
            priority++;
        ret->tasks[i].priority = ret->tasks[i].gpu_priority = priority;
        ret->tasks[i].id = i;
    }
    ret->system = (struct ws_policy_system){.types = g->types,
                                            .gpus = g->gpus,
                                            .tasks = ret->tasks,
                                            .n_types = g->n_types,
                                            .n_gpus = g->n_gpus,
                                            .n_tasks = n};
    return 0;
}

bool ws_sbeet_set_is(struct ws_json_line *l)
{
    if (l->bad || !l->root)
        return false;
    struct ws_json_at root = ws_json_root(l);
    struct json_object *tasks = NULL, *first;
    if (!json_object_object_get_ex(root.o, "tasks", &tasks) ||
        !json_object_is_type(tasks, json_type_array))
        return false;
    first = json_object_array_get_idx(tasks, 0);
    return first && json_object_is_type(first, json_type_object) &&
           (json_object_object_get_ex(first, "app", NULL) ||
            json_object_object_get_ex(first, "benchmark", NULL));
}

static struct ws_sbeet_task read_task(const struct ws_json_at *at, double factor)
{
    bool named = ws_json_has(at, "benchmark");
    struct ws_sbeet_task t = {
        .kernel = named ? ws_json_string(at, "benchmark", true) : NULL,
        .app = named ? 0 : (int)ws_json_integer(at, "app", 0, MAX_APP, true, 0),
        .period = ws_json_number(at, "period_ms", 1e-6, MAX_MS, NAN),
        .offset = ws_json_number(at, "phi_ms", 0, MAX_MS, 0),
        .jitter = ws_json_number(at, "jitter_ms", 0, MAX_MS, 0),
        .utilization = ws_json_number(at, "ref_util", 0, 1e6, 0),
    };
    t.deadline = ws_json_number(at, "deadline_ms", 1e-6, MAX_MS, factor * t.period);
    return t;
}

int ws_sbeet_set_read(struct ws_sbeet_set *ret, const struct ws_gpus *g, bool copies_asis,
                      struct ws_json_line *l)
{
    *ret = (struct ws_sbeet_set){.util = NAN};
    struct ws_json_at root = ws_json_root(l), list = ws_json_get(&root, "tasks", false);
    size_t n = ws_json_length(&list, MAX_TASKS);
    double factor = ws_json_number(&root, "deadline_factor", 1e-6, 1e6, 0.5);
    double util = ws_json_number(&root, "util", 0, 1e6, -1);
    double duration = ws_json_number(&root, "duration_ms", 0, MAX_MS, 0);
    struct json_object *id = NULL;
    char error[160];
    if (!n && !l->bad)
        ws_json_bad(l, "tasks", "expected at least one task");
    if (l->bad)
        return -EINVAL;
    struct ws_sbeet_task *tasks = ws_alloc_array(n, sizeof(*tasks));
    if (!tasks)
        return ws_raise(-ENOMEM);
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at at = ws_json_item(&list, i);
        tasks[i] = read_task(&at, factor);
    }
    int r = l->bad ? -EINVAL : 0;
    if (!r)
        r = ws_sbeet_set_make(ret, g, tasks, (int)n, copies_asis, error, sizeof(error));
    if (r == -EINVAL && !l->bad)
        ws_json_bad(l, "", "%s", error);
    free(tasks);
    ret->util = util < 0 ? NAN : util;
    ret->duration = duration;
    if (json_object_object_get_ex(root.o, "id", &id))
        snprintf(ret->id, sizeof(ret->id), "%s", json_object_get_string(id));
    else
        snprintf(ret->id, sizeof(ret->id), "line %u", l->number);
    return r;
}

bool ws_sbeet_set_knows(const struct ws_policy_ops *ops)
{
    static const char *const others[] = {"consolidate", "fifo", "stgm", "wattshare"};
    for (size_t i = 0; i < WS_ARRAY_SIZE(others); i++)
        if (!strcmp(others[i], ops->name))
            return true;
    return ws_sbeet_is(ops);
}

void ws_sbeet_outcome_deinit(struct ws_sbeet_outcome *o)
{
    ws_machine_result_deinit(&o->r);
    free(o->home);
    free(o->m_opt);
    *o = (struct ws_sbeet_outcome){0};
}

static void count_migrations(struct ws_sbeet_outcome *ret, const struct ws_sbeet_set *s,
                             const struct ws_policy *p)
{
    for (int i = 0; i < s->system.n_tasks; i++) {
        ret->home[i] = ws_sbeet_home(p, i);
        if (ret->home[i] < 0)
            continue;
        ret->m_opt[i] = ws_sbeet_optimal_sms(p, i, ret->home[i]);
        for (int k = 0; k < s->system.n_gpus; k++)
            if (k != ret->home[i])
                ret->n_migrated += ret->r.started[(size_t)i * (size_t)s->system.n_gpus + (size_t)k];
    }
}

int ws_sbeet_set_run(struct ws_sbeet_outcome *ret, const struct ws_sbeet_set *s,
                     const struct ws_policy_ops *ops, const char *const *policy_options,
                     const struct ws_machine_options *options)
{
    *ret = (struct ws_sbeet_outcome){0};
    size_t n = (size_t)WS_MAX(s->system.n_tasks, 1);
    ret->home = ws_alloc_array(n, sizeof(int));
    ret->m_opt = ws_alloc_array(n, sizeof(int));
    if (!ret->home || !ret->m_opt)
        return ws_raise(-ENOMEM);
    memset(ret->home, -1, n * sizeof(int));
    struct ws_policy *p = NULL;
    int r = ops->make(&p, policy_options, ret->note, sizeof(ret->note));
    if (r)
        return r;
    if (ops->prepare)
        r = ops->prepare(p, &s->system, ret->note, sizeof(ret->note));
    if (r > 0) { /* said in .note; deciding works all the same */
        ret->n_unfit = r == WS_POLICY_E_UNFIT;
        r = 0;
    }
    if (!r)
        r = ws_machine_run(&ret->r, &s->system, ops, p, options);
    if (r == WS_MACHINE_E_POLICY)
        snprintf(ret->note, sizeof(ret->note), "%s", ret->r.error);
    if (!r && ws_sbeet_is(ops))
        count_migrations(ret, s, p);
    ops->free(p);
    return r;
}
