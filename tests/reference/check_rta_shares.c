// SPDX-License-Identifier: Apache-2.0
/* Recomputes the shares of schedulable sets in reference/gcaps and reference/stgm. There are two
 * kinds. Some are over sets of which a part is in the reference: each count must fit what these
 * sets say. Others are over sets that are not there, or are the paper's own figure: then sets of
 * our own generator must give the same share within sampling spread, which is five standard
 * deviations of the difference of the two samples and half a point for the rounding of what is
 * printed. (Fig. 8 is read off a drawing and was made from another generator's seeds: a point and a
 * half.) */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "papers/sets/gen_gcaps.h"
#include "tests/reference/check_rta.h"

enum { METHODS_MAX = 40, OWN_SETS = 300, SEED = 20240709 };

/* ---- shares over sets that are partly there ---- */

static bool match_summary(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first, (const char *const[]){"per_point", "total", "percent", NULL});
}

struct tally {
    const char *axis, *x, *method;
    int n, n_ok; /* sets there, and schedulable ones by us */
    struct ws_rta_work rta;
    struct ws_stgm_work stgm;
    struct ws_stgm_whole whole;
};

/* Verdict on one set. Return: 0 or negative. */
static int judge(struct tally *t, const struct ws_rt_set *set, bool *ret_ok)
{
    const struct ws_rta_method *m = ws_rta_reference_method(t->method, true);
    struct ws_rta_result r = {0};
    if (!m)
        m = ws_rta_method_find(t->method);
    *ret_ok = false;
    if (!m)
        return 0;
    if (set->kind == WS_RT_GCAPS) {
        int e = ws_rta_work_reserve(&t->rta, set->gcaps.n_tasks, set->gcaps.n_segments);
        if (e || (e = m->run(&set->gcaps, &t->rta, &r)))
            return e;
        *ret_ok = r.ok;
        return 0;
    }
    int e = ws_stgm_work_reserve(&t->stgm, set->stgm.n_tasks);
    if (e)
        return e;
    if (m->stgm) {
        struct ws_stgm_result result;
        ws_stgm_allocate(&set->stgm, m->variant, &t->stgm, &result);
        *ret_ok = result.ok;
        return 0;
    }
    bool fits;
    if ((e = ws_stgm_whole_gpu(&set->stgm, &t->stgm, &t->whole, &fits)) ||
        (e = ws_rta_work_reserve(&t->rta, set->stgm.n_tasks, set->stgm.n_segments)) ||
        (e = m->run(&t->whole.set, &t->rta, &r)))
        return e;
    *ret_ok = fits && r.ok;
    return 0;
}

struct sets {
    struct ws_rt_set *v;
    char (*axis)[32];
    double *x;
    size_t n, cap;
};

static void keep_set(struct ws_check *c, struct ws_json_line *l, void *arg)
{
    struct sets *s = arg;
    struct ws_json_at root = ws_json_root(l);
    const char *axis = ws_json_string(&root, "axis", true);
    double x = ws_json_number(&root, "x", -1e9, 1e9, NAN);
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 1024;
        s->v = realloc(s->v, s->cap * sizeof(*s->v));
        s->axis = realloc(s->axis, s->cap * sizeof(*s->axis));
        s->x = realloc(s->x, s->cap * sizeof(*s->x));
        if (!s->v || !s->axis || !s->x)
            abort();
    }
    ws_rta_out_of_memory(c, ws_rt_set_read(l, &s->v[s->n]));
    snprintf(s->axis[s->n], sizeof(s->axis[0]), "%s", axis ? axis : "");
    s->x[s->n++] = x;
}

static void summary_cell(struct ws_check *c, struct tally *t, const struct sets *sets,
                         int per_point, double percent)
{
    t->n = t->n_ok = 0;
    for (size_t i = 0; i < sets->n; i++) {
        bool ok;
        if (strcmp(sets->axis[i], t->axis) || fabs(sets->x[i] - atof(t->x)) > 1e-9)
            continue;
        ws_rta_out_of_memory(c, judge(t, &sets->v[i], &ok));
        t->n++;
        t->n_ok += ok;
    }
    if (!t->n)
        return;
    int all_ok = (int)lround(percent * per_point / 100);
    bool fits = t->n_ok <= all_ok && all_ok <= t->n_ok + per_point - t->n;
    if (!fits)
        printf("  %d of the %d sets there pass, %d of all %d by the reference\n", t->n_ok, t->n,
               all_ok, per_point);
    ws_check_bool(c, ws_check_where("percent.%s.%s.%s fits", t->axis, t->x, t->method), fits, true);
}

/* Calls @work for each percent.AXIS.X.METHOD. */
static void each_cell(const struct ws_json_at *axes,
                      void (*work)(void *arg, const char *axis, const char *x,
                                   const struct ws_json_at *methods),
                      void *arg)
{
    json_object_object_foreach(axes->o, axis, points)
    {
        (void)points;
        struct ws_json_at by_axis = ws_json_get(axes, axis, false);
        json_object_object_foreach(by_axis.o, x, methods)
        {
            (void)methods;
            struct ws_json_at by_x = ws_json_get(&by_axis, x, false);
            work(arg, axis, x, &by_x);
        }
    }
}

struct summary {
    struct ws_check *c;
    struct tally tally;
    struct sets sets;
    int per_point;
};

static void summary_point(void *arg, const char *axis, const char *x,
                          const struct ws_json_at *methods)
{
    struct summary *s = arg;
    s->tally.axis = axis;
    s->tally.x = x;
    json_object_object_foreach(methods->o, method, value)
    {
        (void)value;
        s->tally.method = method;
        summary_cell(s->c, &s->tally, &s->sets, s->per_point,
                     ws_json_number(methods, method, 0, 100, NAN));
    }
}

static void check_summary(struct ws_check *c)
{
    struct ws_json_line l;
    struct summary s = {.c = c};
    char path[4096];
    if (ws_json_file(c->path, &l)) {
        ws_check_fail(c, "can't be read");
        return;
    }
    snprintf(path, sizeof(path), "%s/shared.jsonl", c->folder);
    struct ws_check below = {.path = path, .folder = c->folder};
    ws_check_lines(&below, keep_set, &s.sets);
    if (below.failed)
        ws_check_fail(c, "the sets it is about, %s, can't be read", path);
    struct ws_json_at root = ws_json_root(&l), percent = ws_json_get(&root, "percent", false);
    s.per_point = (int)ws_json_integer(&root, "per_point", 1, 100000, true, 1);
    if (!l.bad && !c->failed)
        each_cell(&percent, summary_point, &s);
    if (!ws_json_line_report(&l, stderr, "check"))
        c->failed = true;
    for (size_t i = 0; i < s.sets.n; i++)
        ws_rt_set_deinit(&s.sets.v[i]);
    free(s.sets.v);
    free(s.sets.axis);
    free(s.sets.x);
    ws_rta_work_deinit(&s.tally.rta);
    ws_stgm_work_deinit(&s.tally.stgm);
    ws_stgm_whole_deinit(&s.tally.whole);
    ws_json_line_deinit(&l);
}

const struct ws_check_kind ws_check_kind_rta_summary = {"schedulable shares of its sets",
                                                        match_summary, check_summary};

/* ---- shares over sets of our own ---- */

/* How many of OWN_SETS pass each method at one point. */
static int own_shares(const char *axis, double x, const struct ws_rta_method *const *methods, int n,
                      int *ret_n_ok)
{
    struct ws_gen_gcaps g = ws_gen_gcaps_default;
    struct ws_rta_work w = WS_RTA_WORK_NULL;
    int e = strcmp(axis, "default") ? ws_gen_gcaps_axis(&g, axis, x) : 0;
    memset(ret_n_ok, 0, (size_t)n * sizeof(*ret_n_ok));
    for (int i = 0; !e && i < OWN_SETS; i++) {
        struct ws_random r;
        struct ws_rt_set set;
        ws_random_init_part(&r, SEED, (uint64_t)i);
        e = ws_gen_gcaps(&g, &r, &set);
        if (!e)
            e = ws_rta_work_reserve(&w, set.gcaps.n_tasks, set.gcaps.n_segments);
        for (int k = 0; !e && k < n; k++) {
            struct ws_rta_result result;
            e = methods[k]->run(&set.gcaps, &w, &result);
            ret_n_ok[k] += result.ok;
        }
        ws_rt_set_deinit(&set);
    }
    ws_rta_work_deinit(&w);
    return e;
}

/* @n_sets: how many the reference drew. */
static void compare_share(struct ws_check *c, const char *where, int n_ok, double percent,
                          int n_sets, double margin)
{
    double ours = 100.0 * n_ok / OWN_SETS;
    double p = (n_ok + percent / 100 * n_sets + 1) / (OWN_SETS + n_sets + 2);
    double spread = 500 * sqrt(p * (1 - p) * (1.0 / OWN_SETS + 1.0 / n_sets)) + margin;
    ws_check_number(c, where, ours, percent, 0, spread);
}

struct percent {
    struct ws_check *c;
    int n_sets;
};

static void percent_point(void *arg, const char *axis, const char *x,
                          const struct ws_json_at *methods)
{
    const struct percent *p = arg;
    const struct ws_rta_method *list[METHODS_MAX] = {0};
    const char *names[METHODS_MAX] = {0};
    int n_ok[METHODS_MAX], n = 0;
    json_object_object_foreach(methods->o, name, value)
    {
        (void)value;
        list[n] = ws_rta_reference_method(name, true);
        if (!list[n])
            list[n] = ws_rta_method_find(name);
        names[n] = name;
        if (list[n] && !list[n]->stgm && n < METHODS_MAX - 1)
            n++;
        else
            ws_check_fail(p->c, "no method for %s", name);
    }
    int e = own_shares(axis, atof(x), list, n, n_ok);
    if (e) {
        ws_check_fail(p->c, "axes.%s.%s: %s", axis, x, strerror(-e));
        return;
    }
    for (int k = 0; k < n; k++)
        compare_share(p->c, ws_check_where("axes.%s.%s.%s", axis, x, names[k]), n_ok[k],
                      ws_json_number(methods, names[k], 0, 100, NAN), p->n_sets, 0.5);
}

static bool match_percent(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first, (const char *const[]){"n_per_point", "axes", NULL});
}

static void check_percent(struct ws_check *c)
{
    struct ws_json_line l;
    if (ws_json_file(c->path, &l)) {
        ws_check_fail(c, "can't be read");
        return;
    }
    struct ws_json_at root = ws_json_root(&l), axes = ws_json_get(&root, "axes", false);
    struct percent p = {c, (int)ws_json_integer(&root, "n_per_point", 1, 1000000, true, 1)};
    if (!l.bad)
        each_cell(&axes, percent_point, &p);
    if (!ws_json_line_report(&l, stderr, "check"))
        c->failed = true;
    ws_json_line_deinit(&l);
}

const struct ws_check_kind ws_check_kind_gcaps_percent = {"GCAPS schedulable shares", match_percent,
                                                          check_percent};

/* ---- Fig. 8 ---- */

static bool match_fig8(const char *head, struct ws_json_line *first)
{
    return ws_check_has(first,
                        (const char *const[]){"a_num_tasks", "b_util_per_cpu", "c_num_cpus", NULL});
}

/* The axes of panels e and f are labelled wrongly: they were run with half the ratio, and with 0.1
 * less. */
static double true_x(char panel, double x)
{
    return panel == 'e' ? x / 2 : panel == 'f' ? x - 0.1 : x;
}

static void fig8_panel(struct ws_check *c, const char *panel, const struct ws_json_at *at)
{
    struct ws_json_at xs = ws_json_get(at, "x", false), curves = ws_json_get(at, "curves", false);
    const struct ws_rta_method *list[METHODS_MAX] = {0};
    const char *names[METHODS_MAX] = {0};
    int n = 0;
    json_object_object_foreach(curves.o, name, value)
    {
        (void)value;
        char full[64]; /* GCAPS stands there with GPU priorities */
        snprintf(full, sizeof(full), "%s%s_ref", name, strncmp(name, "gcaps", 5) ? "" : "_gprio");
        list[n] = ws_rta_method_find(full);
        names[n] = name;
        if (list[n] && n < METHODS_MAX - 1)
            n++;
        else
            ws_check_fail(c, "no method for the curve %s", name);
    }
    for (size_t i = 0; i < ws_json_length(&xs, 100); i++) {
        struct ws_json_at x = ws_json_item(&xs, i);
        int n_ok[METHODS_MAX];
        int e = own_shares(panel + 2, fmax(true_x(*panel, ws_json_value(&x, 0, 1000)), 0), list, n,
                           n_ok);
        if (e) {
            ws_check_fail(c, "%s: %s", panel, strerror(-e));
            return;
        }
        for (int k = 0; k < n; k++) {
            struct ws_json_at points = ws_json_get(&curves, names[k], false),
                              point = ws_json_item(&points, i);
            compare_share(c, ws_check_where("%s.%s[%zu]", panel, names[k], i), n_ok[k],
                          fmax(ws_json_value(&point, -1, 101), 0), 1000, 1.5);
        }
    }
}

static void check_fig8(struct ws_check *c)
{
    struct ws_json_line l;
    if (ws_json_file(c->path, &l)) {
        ws_check_fail(c, "can't be read");
        return;
    }
    struct ws_json_at root = ws_json_root(&l);
    json_object_object_foreach(root.o, panel, value)
    {
        struct ws_json_at at = ws_json_get(&root, panel, false);
        if (json_object_is_type(value, json_type_object) && ws_json_has(&at, "curves"))
            fig8_panel(c, panel, &at);
    }
    if (!ws_json_line_report(&l, stderr, "check"))
        c->failed = true;
    ws_json_line_deinit(&l);
}

const struct ws_check_kind ws_check_kind_gcaps_fig8 = {"GCAPS Fig. 8", match_fig8, check_fig8};
