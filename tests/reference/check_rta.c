// SPDX-License-Identifier: Apache-2.0
/* reference/gcaps and reference/stgm: analyses set by set (exact integers against the reference's: verdicts equal, bounds to 1e-6),
 * the percentages by generators of our own, the case study and Fig. 8. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "policy/analysis/stgm.h"
#include "sim/rt_sets.h"
#include "tests/reference/check.h"

static char where_text[200];
static const char *where(const char *fmt, ...) WS_PRINTF(1, 2);
static const char *where(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(where_text, sizeof(where_text), fmt, ap);
    va_end(ap);
    return where_text;
}

static bool first_has(struct ws_json_line *first, const char *const *keys)
{
    if (first->bad || !first->root)
        return false;
    struct ws_json_at root = ws_json_root(first);
    for (; *keys; keys++)
        if (!ws_json_has(&root, *keys))
            return false;
    return true;
}

static void out_of_memory(struct ws_check *c, int r)
{
    if (r)
        ws_check_fail(c, "%s", strerror(-r));
}

/* ---- GCAPS: sets ---- */

/* The method that a name of the reference means: its `ref` group holds plain names. */
static const struct ws_rta_method *method_of(const char *name, bool released)
{
    char full[64];
    snprintf(full, sizeof(full), "%s%s", name, released ? "_ref" : "");
    return ws_rta_method_find(full);
}

static void compare_bounds(struct ws_check *c, const char *text, const struct ws_rta_set *s,
                           const struct ws_rta_result *r, const struct ws_json_at *ref)
{
    struct ws_json_at bounds = ws_json_get(ref, "R", false);
    size_t n = ws_json_length(&bounds, WS_RTA_TASKS_MAX);
    ws_check_integer(c, where("%s.R length", text), s->n_tasks, (int64_t)n);
    for (size_t i = 0; i < n && i < (size_t)s->n_tasks; i++) {
        struct ws_json_at at = ws_json_item(&bounds, i);
        double ours = (double)r->bound[i];
        if (r->bound[i] > 0)
            ours /= (double)s->unit_per_ms;
        ws_check_number(c, where("%s.R[%zu]", text, i), ours, ws_json_value(&at, -1, 1e12), 1e-6, 0);
    }
}

static void compare_priorities(struct ws_check *c, const char *text, const struct ws_rta_set *s,
                               const struct ws_rta_result *r, const struct ws_json_at *ref)
{
    struct ws_json_at given = ws_json_get(ref, "gprio", true);
    ws_check_bool(c, where("%s.gprio there", text), r->gpu_priority != NULL, given.o != NULL);
    if (!given.o || !r->gpu_priority)
        return;
    for (size_t i = 0; i < ws_json_length(&given, WS_RTA_TASKS_MAX) && i < (size_t)s->n_tasks; i++) {
        struct ws_json_at at = ws_json_item(&given, i);
        ws_check_integer(c, where("%s.gprio[%zu]", text, i), r->gpu_priority[i],
                         ws_json_integer_value(&at, 0, WS_RTA_TASKS_MAX));
    }
}

/* One group of results, "ref" or "fix". @plain_bounds: bounds of *_gprio are those of the plain run. */
static void compare_group(struct ws_check *c, const char *text, const struct ws_rta_set *s,
                          struct ws_rta_work *w, const struct ws_json_at *group, bool released,
                          bool bounds)
{
    json_object_object_foreach(group->o, name, value)
    {
        (void)value;
        bool own_form = strstr(name, "_fix") || strstr(name, "_safe") || strstr(name, "_lit");
        const struct ws_rta_method *m = method_of(name, released && !own_form);
        struct ws_json_at ref = ws_json_get(group, name, false);
        if (!m || m->stgm) {
            ws_check_fail(c, "%s: no method for %s", text, name);
            continue;
        }
        struct ws_rta_result r;
        char full[160];
        snprintf(full, sizeof(full), "%s.%s", text, name);
        out_of_memory(c, m->run(s, w, &r));
        ws_check_bool(c, where("%s.ok", full), r.ok, ws_json_bool(&ref, "ok", true, false));
        if (bounds || !strstr(name, "gprio"))
            compare_bounds(c, full, s, &r, &ref);
        if (bounds && strstr(name, "gprio"))
            compare_priorities(c, full, s, &r, &ref);
    }
}

static bool match_gcaps(const char *head, struct ws_json_line *first)
{
    return first_has(first, (const char *const[]){"overheads_ms", "tasks", "ref", NULL});
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
    out_of_memory(c, e);
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
    return first_has(first, (const char *const[]){"nsm", "tasks", "res", NULL});
}

static void compare_allocation(struct ws_check *c, const char *text, const struct ws_stgm_set *s,
                               const struct ws_stgm_result *r, const struct ws_json_at *ref)
{
    struct ws_json_at n = ws_json_get(ref, "N", false), sms = ws_json_get(ref, "S", false),
                      cpu = ws_json_get(ref, "cpu", false), bound = ws_json_get(ref, "W", true);
    ws_check_bool(c, where("%s.ok", text), r->ok, ws_json_bool(ref, "ok", true, false));
    ws_check_integer(c, where("%s.rounds", text), r->rounds,
                     ws_json_integer(ref, "rounds", 0, INT32_MAX, true, 0));
    for (size_t i = 0; i < (size_t)s->n_tasks; i++) {
        struct ws_json_at at = ws_json_item(&n, i);
        ws_check_integer(c, where("%s.N[%zu]", text, i), r->n_sms[i],
                         ws_json_integer_value(&at, 0, WS_SM_MAX));
        at = ws_json_item(&cpu, i);
        ws_check_integer(c, where("%s.cpu[%zu]", text, i), r->cpu[i],
                         ws_json_integer_value(&at, -1, WS_RTA_CPUS_MAX));
        if (bound.o) { /* null where not all tasks fit */
            at = ws_json_item(&bound, i);
            ws_check_integer(c, where("%s.W[%zu]", text, i), r->bound[i],
                             ws_json_integer_value(&at, -1, INT64_MAX));
        }
        at = ws_json_item(&sms, i);
        struct ws_sm_set theirs = {0};
        for (size_t k = 0; k < ws_json_length(&at, WS_SM_MAX); k++) {
            struct ws_json_at sm = ws_json_item(&at, k);
            ws_sm_set_add(&theirs, (unsigned)ws_json_integer_value(&sm, 0, WS_SM_MAX - 1));
        }
        ws_check_bool(c, where("%s.S[%zu]", text, i),
                      !memcmp(&theirs, &r->sms[i], sizeof(theirs)), true);
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
        const struct ws_rta_method *m = method_of(name, true);
        bool fits;
        struct ws_rta_result r = {0};
        if (!m) {
            ws_check_fail(c, "line %u: no method for %s", line, name);
            continue;
        }
        int e = ws_stgm_whole_gpu(s, &a->work, &a->whole, &fits);
        if (!e && fits)
            e = m->run(&a->whole.set, &a->work.rta, &r);
        out_of_memory(c, e);
        ws_check_bool(c, where("line %u baseline.%s", line, name), fits && r.ok,
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
    out_of_memory(c, e);
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
