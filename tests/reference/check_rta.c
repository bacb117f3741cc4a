// SPDX-License-Identifier: Apache-2.0
/* Recomputes reference/gcaps and reference/stgm: analyses set by set (whole numbers against the
 * reference's: verdicts must be equal, bounds equal to 1e-6) and the case study. Percentages are in
 * check_rta_shares.c. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/reference/check_rta.h"

void ws_rta_out_of_memory(struct ws_check *c, int r)
{
    if (r)
        ws_check_fail(c, "%s", strerror(-r));
}

/* ---- GCAPS: sets ---- */

const struct ws_rta_method *ws_rta_reference_method(const char *name, bool released)
{
    char full[80];
    snprintf(full, sizeof(full), "%s%s", name, released ? "_ref" : "");
    return ws_rta_method_find(full);
}

static void compare_bounds(struct ws_check *c, const char *text, const struct ws_rta_set *s,
                           const struct ws_rta_result *r, const struct ws_json_at *ref)
{
    struct ws_json_at bounds = ws_json_get(ref, "R", false);
    size_t n = ws_json_length(&bounds, WS_RTA_TASKS_MAX);
    ws_check_integer(c, ws_check_where("%s.R length", text), s->n_tasks, (int64_t)n);
    for (size_t i = 0; i < n && i < (size_t)s->n_tasks; i++) {
        struct ws_json_at at = ws_json_item(&bounds, i);
        double ours = (double)r->bound[i];
        if (r->bound[i] > 0)
            ours /= (double)s->unit_per_ms;
        ws_check_number(c, ws_check_where("%s.R[%zu]", text, i), ours, ws_json_value(&at, -1, 1e12),
                        1e-6, 0);
    }
}

static void compare_priorities(struct ws_check *c, const char *text, const struct ws_rta_set *s,
                               const struct ws_rta_result *r, const struct ws_json_at *ref)
{
    struct ws_json_at given = ws_json_get(ref, "gprio", true);
    ws_check_bool(c, ws_check_where("%s.gprio there", text), r->gpu_priority != NULL,
                  given.o != NULL);
    if (!given.o || !r->gpu_priority)
        return;
    for (size_t i = 0; i < ws_json_length(&given, WS_RTA_TASKS_MAX) && i < (size_t)s->n_tasks;
         i++) {
        struct ws_json_at at = ws_json_item(&given, i);
        ws_check_integer(c, ws_check_where("%s.gprio[%zu]", text, i), r->gpu_priority[i],
                         ws_json_integer_value(&at, 0, WS_RTA_TASKS_MAX));
    }
}

/* One group of results, "ref" or "fix". Not @bounds: those of *_gprio are of another run. */
static void compare_group(struct ws_check *c, const char *text, const struct ws_rta_set *s,
                          struct ws_rta_work *w, const struct ws_json_at *group, bool released,
                          bool bounds)
{
    json_object_object_foreach(group->o, name, value)
    {
        (void)value;
        bool own_form = strstr(name, "_fix") || strstr(name, "_safe") || strstr(name, "_lit");
        const struct ws_rta_method *m = ws_rta_reference_method(name, released && !own_form);
        struct ws_json_at ref = ws_json_get(group, name, false);
        if (!m || m->stgm) {
            ws_check_fail(c, "%s: no method for %s", text, name);
            continue;
        }
        struct ws_rta_result r;
        char full[160];
        snprintf(full, sizeof(full), "%s.%s", text, name);
        ws_rta_out_of_memory(c, m->run(s, w, &r));
        ws_check_bool(c, ws_check_where("%s.ok", full), r.ok,
                      ws_json_bool(&ref, "ok", true, false));
        if (bounds || !strstr(name, "gprio"))
            compare_bounds(c, full, s, &r, &ref);
        if (bounds && strstr(name, "gprio"))
            compare_priorities(c, full, s, &r, &ref);
    }
}

static bool match_gcaps(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first, (const char *const[]){"overheads_ms", "tasks", "ref", NULL});
}

static void gcaps_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    struct ws_rta_work *w = arg;
    struct ws_rt_set set;
    int e = ws_rt_set_read(l, &set);
    if (!e && !l->bad && set.kind == WS_RT_GCAPS &&
        !(e = ws_rta_work_reserve(w, set.gcaps.n_tasks, set.gcaps.n_segments))) {
        static const char *const groups[] = {"ref", "fix", NULL};
        struct ws_json_at root = ws_json_root(l);
        for (size_t i = 0; groups[i]; i++) {
            struct ws_json_at group = ws_json_get(&root, groups[i], true);
            char text[64];
            snprintf(text, sizeof(text), "line %u %s", l->number, groups[i]);
            if (group.o)
                compare_group(c, text, &set.gcaps, w, &group, !i, true);
        }
    }
    ws_rta_out_of_memory(c, e);
    ws_rt_set_deinit(&set);
}

static void check_gcaps(struct ws_check *c)
{
    struct ws_rta_work w = WS_RTA_WORK_NULL;
    ws_check_lines(c, gcaps_line, &w);
    ws_rta_work_deinit(&w);
}

const struct ws_check_kind ws_check_kind_gcaps_sets = {"GCAPS task sets", match_gcaps, check_gcaps};

/* ---- STGM: sets ---- */

static bool match_stgm(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first, (const char *const[]){"nsm", "tasks", "res", NULL});
}

static void compare_allocation(struct ws_check *c, const char *text, const struct ws_stgm_set *s,
                               const struct ws_stgm_result *r, const struct ws_json_at *ref)
{
    struct ws_json_at n = ws_json_get(ref, "N", false), sms = ws_json_get(ref, "S", false),
                      cpu = ws_json_get(ref, "cpu", false), bound = ws_json_get(ref, "W", true);
    ws_check_bool(c, ws_check_where("%s.ok", text), r->ok, ws_json_bool(ref, "ok", true, false));
    ws_check_integer(c, ws_check_where("%s.rounds", text), r->rounds,
                     ws_json_integer(ref, "rounds", 0, INT32_MAX, true, 0));
    for (size_t i = 0; i < (size_t)s->n_tasks; i++) {
        struct ws_json_at at = ws_json_item(&n, i);
        ws_check_integer(c, ws_check_where("%s.N[%zu]", text, i), r->n_sms[i],
                         ws_json_integer_value(&at, 0, WS_SM_MAX));
        at = ws_json_item(&cpu, i);
        ws_check_integer(c, ws_check_where("%s.cpu[%zu]", text, i), r->cpu[i],
                         ws_json_integer_value(&at, -1, WS_RTA_CPUS_MAX));
        if (bound.o) { /* null where not all tasks fit */
            at = ws_json_item(&bound, i);
            ws_check_integer(c, ws_check_where("%s.W[%zu]", text, i), r->bound[i],
                             ws_json_integer_value(&at, -1, INT64_MAX));
        }
        at = ws_json_item(&sms, i);
        struct ws_sm_set theirs = {0};
        for (size_t k = 0; k < ws_json_length(&at, WS_SM_MAX); k++) {
            struct ws_json_at sm = ws_json_item(&at, k);
            ws_sm_set_add(&theirs, (unsigned)ws_json_integer_value(&sm, 0, WS_SM_MAX - 1));
        }
        ws_check_bool(c, ws_check_where("%s.S[%zu]", text, i),
                      !memcmp(theirs.bits, r->sms[i].bits, sizeof(theirs.bits)), true);
    }
}

struct stgm_arg {
    struct ws_stgm_work work;
    struct ws_stgm_whole whole;
};

static void compare_baselines(struct ws_check *c, uint32_t line, const struct ws_stgm_set *s,
                              struct stgm_arg *a, const struct ws_json_at *ref)
{
    json_object_object_foreach(ref->o, name, value)
    {
        (void)value;
        const struct ws_rta_method *m = ws_rta_reference_method(name, true);
        bool fits;
        struct ws_rta_result r = {0};
        if (!m) {
            ws_check_fail(c, "line %u: no method for %s", line, name);
            continue;
        }
        int e = ws_stgm_whole_gpu(s, &a->work, &a->whole, &fits);
        if (!e && fits)
            e = m->run(&a->whole.set, &a->work.rta, &r);
        ws_rta_out_of_memory(c, e);
        ws_check_bool(c, ws_check_where("line %u baseline.%s", line, name), fits && r.ok,
                      ws_json_bool(ref, name, true, false));
    }
}

static void stgm_line(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    struct stgm_arg *a = arg;
    struct ws_rt_set set;
    int e = ws_rt_set_read(l, &set);
    if (!e && !l->bad && set.kind == WS_RT_STGM &&
        !(e = ws_stgm_work_reserve(&a->work, set.stgm.n_tasks)) &&
        !(e = ws_rta_work_reserve(&a->work.rta, set.stgm.n_tasks, set.stgm.n_segments))) {
        struct ws_json_at root = ws_json_root(l), res = ws_json_get(&root, "res", false),
                          base = ws_json_get(&root, "baseline", true);
        json_object_object_foreach(res.o, name, value)
        {
            (void)value;
            const struct ws_rta_method *m = ws_rta_method_find(name);
            struct ws_json_at ref = ws_json_get(&res, name, false);
            if (!m || !m->stgm) {
                ws_check_fail(c, "line %u: no method %s", l->number, name);
                continue;
            }
            struct ws_stgm_result r;
            char text[100];
            ws_stgm_allocate(&set.stgm, m->variant, &a->work, &r);
            snprintf(text, sizeof(text), "line %u res.%s", l->number, name);
            compare_allocation(c, text, &set.stgm, &r, &ref);
        }
        if (base.o)
            compare_baselines(c, l->number, &set.stgm, a, &base);
    }
    ws_rta_out_of_memory(c, e);
    ws_rt_set_deinit(&set);
}

static void check_stgm(struct ws_check *c)
{
    struct stgm_arg a = {.work = WS_STGM_WORK_NULL};
    ws_check_lines(c, stgm_line, &a);
    ws_stgm_work_deinit(&a.work);
    ws_stgm_whole_deinit(&a.whole);
}

const struct ws_check_kind ws_check_kind_stgm_sets = {"STGM task sets", match_stgm, check_stgm};

/* ---- the case study ---- */

static bool match_case_study(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first,
                        (const char *const[]){"table5", "back_solved", "reproduction", NULL});
}

/* Runs @work on the task set of the object at @at. */
static void with_set(struct ws_check *c, const struct ws_json_at *at, const struct ws_json_at *arg,
                     void (*work)(struct ws_check *c, const struct ws_rta_set *s,
                                  struct ws_rta_work *w, const struct ws_json_at *arg))
{
    struct ws_rta_work w = WS_RTA_WORK_NULL;
    struct ws_rt_set set = {0};
    int e = ws_rt_set_read_at(at, &set);
    if (!e && !at->line->bad && set.kind == WS_RT_GCAPS &&
        !(e = ws_rta_work_reserve(&w, set.gcaps.n_tasks, set.gcaps.n_segments)))
        work(c, &set.gcaps, &w, arg);
    ws_rta_out_of_memory(c, e);
    ws_rt_set_deinit(&set);
    ws_rta_work_deinit(&w);
}

static void plain_group(struct ws_check *c, const struct ws_rta_set *s, struct ws_rta_work *w,
                        const struct ws_json_at *group)
{
    compare_group(c, group->path, s, w, group, true, false);
}

static void whole_group(struct ws_check *c, const struct ws_rta_set *s, struct ws_rta_work *w,
                        const struct ws_json_at *group)
{
    compare_group(c, group->path, s, w, group, true, true);
}

/* Each cell "method/taskN": the released code's value, and whether it is what Table 5 prints. */
static void table5_cells(struct ws_check *c, const struct ws_rta_set *s, struct ws_rta_work *w,
                         const struct ws_json_at *cells)
{
    json_object_object_foreach(cells->o, key, value)
    {
        (void)value;
        struct ws_json_at cell = ws_json_get(cells, key, false);
        char name[64];
        int task;
        if (sscanf(key, "%63[^/]/task%d", name, &task) != 2 || task < 1 || task > s->n_tasks) {
            ws_check_fail(c, "%s: not a cell", key);
            continue;
        }
        struct ws_rta_result r;
        const struct ws_rta_method *m = ws_rta_reference_method(name, true);
        if (!m || m->stgm || m->run(s, w, &r)) {
            ws_check_fail(c, "%s: no such method", key);
            continue;
        }
        double ours = (double)r.bound[task - 1] / (double)s->unit_per_ms;
        ws_check_number(c, ws_check_where("%s code", key), ours,
                        ws_json_number(&cell, "code", -1, 1e9, NAN), 1e-6, 0);
        struct json_object *printed = json_object_object_get(cell.o, "table");
        bool match = json_object_is_type(printed, json_type_string)
                         ? r.bound[task - 1] < 0
                         : fabs(ours - json_object_get_double(printed)) < 1e-6;
        ws_check_bool(c, ws_check_where("%s as printed", key), match,
                      ws_json_bool(&cell, "match", true, false));
    }
}

static void check_case_study(struct ws_check *c)
{
    struct ws_json_line l;
    if (ws_json_file(c->path, &l)) {
        ws_check_fail(c, "can't be read");
        return;
    }
    struct ws_json_at root = ws_json_root(&l);
    struct ws_json_at solved = ws_json_get(&root, "back_solved", false),
                      reproduction = ws_json_get(&root, "reproduction", false),
                      cells = ws_json_get(&reproduction, "cells", false),
                      all = ws_json_get(&root, "all_methods_on_back_solved", false),
                      table4 = ws_json_get(&root, "all_methods_on_table4_with_Gm_10pct", false),
                      table4_res = ws_json_get(&table4, "res", false),
                      example = ws_json_get(&root, "example2_table2", false),
                      example_res = ws_json_get(&example, "res", false),
                      example_gprio = ws_json_get(&example, "gprio", false);
    if (!l.bad) {
        with_set(c, &solved, &cells, table5_cells);
        with_set(c, &solved, &all, plain_group);
        with_set(c, &table4, &table4_res, plain_group);
        with_set(c, &example, &example_res, plain_group);
        with_set(c, &example, &example_gprio, whole_group);
    }
    if (!ws_json_line_report(&l, stderr, "check"))
        c->failed = true;
    ws_json_line_deinit(&l);
}

const struct ws_check_kind ws_check_kind_gcaps_case_study = {"GCAPS case study", match_case_study,
                                                             check_case_study};

/* ---- kernels of STGM by number of SMs ---- */

static bool match_profiles(const char *head, struct ws_json_line *first)
{
    if (!ws_check_has(first, (const char *const[]){"rule", NULL}))
        return false;
    struct ws_json_at root = ws_json_root(first), rule = ws_json_get(&root, "rule", false);
    return ws_json_has(&rule, "backprop");
}

static void check_profiles(struct ws_check *c)
{
    struct ws_json_line l;
    if (ws_json_file(c->path, &l)) {
        ws_check_fail(c, "can't be read");
        return;
    }
    struct ws_json_at root = ws_json_root(&l), rule = ws_json_get(&root, "rule", false);
    json_object_object_foreach(rule.o, name, value)
    {
        (void)value;
        struct ws_json_at at = ws_json_get(&rule, name, false);
        double s = ws_json_number(&at, "s", 0, 1, NAN),
               cap = ws_json_number(&at, "cap", 1, 256, NAN);
        int profile = ws_stgm_profile_find(name);
        if (profile < 0) {
            ws_check_fail(c, "no kernel %s", name);
            continue;
        }
        for (int k = 1; k <= 13;
             k++) /* rint() takes halves to the even neighbour, as the README's round() */
            ws_check_integer(c, ws_check_where("%s on %d SMs", name, k),
                             ws_stgm_profile_share(profile, k),
                             (int64_t)rint(10000 * (s + (1 - s) / fmin(k, cap))));
    }
    if (!ws_json_line_report(&l, stderr, "check"))
        c->failed = true;
    ws_json_line_deinit(&l);
}

const struct ws_check_kind ws_check_kind_stgm_profiles = {"kernels by number of SMs",
                                                          match_profiles, check_profiles};
