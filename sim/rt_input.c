// SPDX-License-Identifier: Apache-2.0
/* Reading of real-time task sets. The sums C and G of a task are what its analysis counts as its own demand; the rounded parts
 * may add up to a unit more, so the longest part gives way: the simulated task never asks for more than the analysed one. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/rt_input.h"

enum { GCAPS_PER_MS = 10000, STGM_PER_MS = 1000 };

static struct ws_json_at under(const struct ws_json_at *at, const char *key)
{
    return ws_json_get(at, key, true);
}

enum ws_rt_kind ws_rt_kind(struct ws_json_line *l)
{
    if (!l->root)
        return WS_RT_NEITHER;
    struct ws_json_at root = ws_json_root(l);
    if (!ws_json_has(&root, "tasks"))
        return WS_RT_NEITHER;
    struct json_object *tasks, *first;
    if (!json_object_object_get_ex(l->root, "tasks", &tasks) ||
        !json_object_is_type(tasks, json_type_array) || !json_object_array_length(tasks))
        return WS_RT_NEITHER;
    first = json_object_array_get_idx(tasks, 0);
    if (!json_object_is_type(first, json_type_object))
        return WS_RT_NEITHER;
    if (json_object_object_get_ex(first, "ges", NULL))
        return WS_RT_GCAPS_LINE;
    return json_object_object_get_ex(first, "segs", NULL) ? WS_RT_STGM_LINE : WS_RT_NEITHER;
}

/* Takes what is over @total away from the longest of @v. */
static void trim(int64_t *v, int n, size_t stride, int64_t total)
{
    int64_t sum = 0, *longest = NULL;
    for (int i = 0; i < n; i++) {
        int64_t *p = (int64_t *)((char *)v + (size_t)i * stride);
        sum += *p;
        if (!longest || *p > *longest)
            longest = p;
    }
    if (longest && sum > total)
        *longest -= WS_MIN(sum - total, *longest);
}

/* @total over @n equal parts, what is left to the first. */
static void deal(int64_t *v, int n, int64_t total)
{
    for (int i = 0; i < n; i++)
        v[i] = total / n + (i == 0 ? total % n : 0);
}

static void read_common(const struct ws_json_at *at, struct ws_rt_task *t, int64_t scale, int i)
{
    t->id = (int)ws_json_integer(at, "id", 0, INT32_MAX, false, i);
    t->best_effort = ws_json_bool(at, "be", false, false);
    t->priority = (int)ws_json_integer(at, "prio", -1, INT32_MAX - 2, false, INT32_MAX - 2 - i);
    t->period = ws_json_scaled(at, "T", scale, WS_RT_TIME_MAX, true, scale);
    if (t->period <= 0)
        ws_json_bad(at->line, at->path, "T must be above 0");
    t->deadline = ws_json_scaled(at, "D", scale, WS_RT_TIME_MAX, false, t->period);
    if (t->deadline > t->period)
        ws_json_bad(at->line, at->path, "D is %g, above T %g", (double)t->deadline / (double)scale,
                    (double)t->period / (double)scale);
    t->offset = ws_json_scaled(at, "offset", scale, WS_RT_TIME_MAX, false, 0);
    t->jitter = ws_json_scaled(at, "jitter", scale, WS_RT_TIME_MAX, false, 0);
}

/* Segments with nothing in them (rounded away by the generator) make no calls; the CPU parts around them follow each other. */
static void drop_empty(struct ws_rt_task *t)
{
    int n = 0;
    for (int k = 0; k < t->n_segments; k++) {
        struct ws_rt_segment *g = &t->segments[k];
        if (g->before || g->kernel || g->after) {
            t->segments[n] = *g;
            t->cpu[++n] = t->cpu[k + 1];
        } else {
            t->cpu[n] += t->cpu[k + 1];
        }
    }
    t->n_segments = n;
}

/* ---- GCAPS ---- */
static int read_gcaps_task(const struct ws_json_at *at, struct ws_rt_set *s, int i)
{
    struct ws_rt_task *t = &s->tasks[i];
    int64_t scale = GCAPS_PER_MS;
    read_common(at, t, scale, i);
    t->core = (int)ws_json_integer(at, "cpu", 0, WS_RT_CORES_MAX - 1, true, 0);
    struct ws_json_at ges = ws_json_get(at, "ges", false), ces = under(at, "ces");
    int n = (int)ws_json_length(&ges, WS_RT_SEGMENTS_MAX);
    int n_ces = ces.o ? (int)ws_json_length(&ces, WS_RT_SEGMENTS_MAX + 1) : 0;
    int r = ws_rt_set_segments(s, i, n);
    if (r)
        return r;
    int64_t cpu = ws_json_scaled(at, "C", scale, WS_RT_TIME_MAX, n_ces == 0, INT64_MAX);
    int64_t gpu = ws_json_scaled(at, "G", scale, WS_RT_TIME_MAX, false, INT64_MAX);
    if (n_ces && n_ces != n + 1)
        ws_json_bad(at->line, at->path, "ces: %d CPU parts; with %d GPU segments %d are wanted",
                    n_ces, n, n + 1);
    for (int k = 0; k < n_ces && k <= n; k++) {
        struct ws_json_at one = ws_json_item(&ces, (size_t)k);
        t->cpu[k] = ws_json_scaled_value(&one, scale, WS_RT_TIME_MAX);
    }
    if (n_ces == 0 && cpu != INT64_MAX)
        deal(t->cpu, n + 1, cpu);
    int64_t before = 0;
    for (int k = 0; k < n; k++) {
        struct ws_json_at one = ws_json_item(&ges, (size_t)k);
        if (ws_json_length(&one, 3) != 3) {
            ws_json_bad(at->line, one.path, "a GPU segment is [G, Gm, Ge]");
            continue;
        }
        struct ws_json_at gm = ws_json_item(&one, 1), ge = ws_json_item(&one, 2);
        t->segments[k].before = ws_json_scaled_value(&gm, scale, WS_RT_TIME_MAX);
        t->segments[k].kernel = ws_json_scaled_value(&ge, scale, WS_RT_TIME_MAX);
        before += t->segments[k].before;
    }
    drop_empty(t);
    if (cpu != INT64_MAX)
        trim(t->cpu, t->n_segments + 1, sizeof(*t->cpu), cpu);
    if (t->n_segments && gpu != INT64_MAX && gpu >= before)
        trim(&t->segments[0].kernel, t->n_segments, sizeof(*t->segments), gpu - before);
    return 0;
}

static int read_gcaps(struct ws_json_line *l, const char *variant, struct ws_rt_set *s)
{
    struct ws_json_at root = ws_json_root(l);
    struct ws_json_at tasks = ws_json_get(&root, "tasks", false);
    struct ws_json_at costs = ws_json_get(&root, "overheads_ms", true);
    int n = (int)ws_json_length(&tasks, WS_RT_TASKS_MAX), r = ws_rt_set_init(s, n);
    s->per_ms = GCAPS_PER_MS;
    int64_t max = WS_RT_TIME_MAX;
    s->slice = GCAPS_PER_MS;
    s->theta = GCAPS_PER_MS / 5;
    s->epsilon = GCAPS_PER_MS;
    if (costs.o) {
        s->slice = ws_json_scaled(&costs, "L", GCAPS_PER_MS, max, false, s->slice);
        s->theta = ws_json_scaled(&costs, "theta", GCAPS_PER_MS, max, false, s->theta);
        s->epsilon = ws_json_scaled(&costs, "epsilon", GCAPS_PER_MS, max, false, s->epsilon);
        if (s->slice <= 0)
            ws_json_bad(l, "overheads_ms.L", "the slice must be above 0");
    }
    for (int i = 0; i < n && !r; i++) {
        struct ws_json_at one = ws_json_item(&tasks, (size_t)i);
        if (!one.o || !json_object_is_type(one.o, json_type_object))
            ws_json_bad(l, one.path, "a task is an object");
        r = read_gcaps_task(&one, s, i);
        s->n_cores = WS_MAX(s->n_cores, s->tasks[i].core + 1);
    }
    int64_t n_cores = ws_json_integer(&root, "ncpu", 1, WS_RT_CORES_MAX, false, s->n_cores);
    if (n_cores < s->n_cores)
        ws_json_bad(l, "ncpu", "%" PRId64 " cores, but a task is on core %d", n_cores,
                    s->n_cores - 1);
    else
        s->n_cores = (int)n_cores;
    struct json_object *group, *method, *gprio;
    static const char *const groups[] = {"ref", "fix"};
    for (size_t g = 0; variant && g < WS_ARRAY_SIZE(groups); g++)
        if (json_object_object_get_ex(l->root, groups[g], &group) &&
            json_object_object_get_ex(group, variant, &method) &&
            json_object_object_get_ex(method, "gprio", &gprio) &&
            json_object_is_type(gprio, json_type_array))
            for (int i = 0; i < n && i < (int)json_object_array_length(gprio); i++)
                s->tasks[i].gpu_priority =
                    json_object_get_int(json_object_array_get_idx(gprio, (size_t)i));
    return r;
}

/* ---- STGM ---- */

/* Kernel time on k SMs relative to one, in 1/10000: a serial share, and up to cap SMs for the rest. These curves stand in for the
 * paper's Fig. 3a, whose numbers are not printed. */
static const struct profile {
    const char *name;
    int serial_percent, cap;
} profiles[] = {{"kmeans", 10, 4},          {"workzone", 12, 4},      {"mmul", 4, 13},
                {"stereodisparity", 5, 13}, {"hotspot", 8, 13},       {"b+tree", 15, 13},
                {"backprop", 20, 13},       {"streamcluster", 25, 13}};

static int64_t profile_at(const struct profile *p, int k)
{
    int64_t n = WS_MIN(k, p->cap),
            parts = p->serial_percent * 100 * n + (100 - p->serial_percent) * 100;
    return (2 * parts + n) / (2 * n); /* rounded */
}

static int64_t kernel_time(int64_t e, const struct profile *p, int k, int n_sms)
{
    int64_t all = profile_at(p, n_sms);
    return (e * profile_at(p, k) + all - 1) / all;
}

static const struct profile *read_profile(const struct ws_json_at *at)
{
    const char *name = ws_json_string(at, "prof", false);
    if (!name)
        return NULL;
    for (size_t i = 0; i < WS_ARRAY_SIZE(profiles); i++)
        if (!strcmp(profiles[i].name, name))
            return &profiles[i];
    ws_json_bad(at->line, at->path, "no profile '%s'", name);
    return NULL;
}

static void read_sms(const struct ws_json_at *sms, int n_sms, struct ws_sm_set *ret)
{
    size_t n = ws_json_length(sms, WS_SM_MAX);
    for (size_t k = 0; k < n; k++) {
        struct ws_json_at one = ws_json_item(sms, k);
        int64_t sm = ws_json_integer_value(&one, 0, n_sms - 1);
        if (sm >= 0 && sm < n_sms)
            ws_sm_set_add(ret, (unsigned)sm);
    }
}

static int read_stgm_task(const struct ws_json_at *at, const struct ws_json_at *placed,
                          struct ws_rt_set *s, int i)
{
    struct ws_rt_task *t = &s->tasks[i];
    read_common(at, t, 1, i);
    struct ws_json_at segs = ws_json_get(at, "segs", false);
    int n = (int)ws_json_length(&segs, WS_RT_SEGMENTS_MAX), r = ws_rt_set_segments(s, i, n);
    if (r)
        return r;
    int64_t cpu = ws_json_integer(at, "C", 0, WS_RT_TIME_MAX, true, 0);
    deal(t->cpu, n + 1, cpu);
    if (placed->o) {
        struct ws_json_at cores = ws_json_get(placed, "cpu", false),
                          sets = ws_json_get(placed, "S", false);
        struct ws_json_at core = ws_json_item(&cores, (size_t)i),
                          set = ws_json_item(&sets, (size_t)i);
        t->core = (int)ws_json_integer_value(&core, -1, WS_RT_CORES_MAX - 1);
        read_sms(&set, s->n_sms, &t->sms);
    } else {
        t->core = (int)ws_json_integer(at, "cpu", 0, WS_RT_CORES_MAX - 1, true, 0);
        struct ws_json_at set = ws_json_get(at, "sms", n == 0);
        if (set.o)
            read_sms(&set, s->n_sms, &t->sms);
    }
    int k_sms = t->sms.n ? (int)t->sms.n : s->n_sms;
    for (int k = 0; k < n; k++) {
        struct ws_json_at one = ws_json_item(&segs, (size_t)k);
        int64_t e = ws_json_integer(&one, "e", 0, WS_RT_TIME_MAX / 20000, true, 0);
        const struct profile *p = read_profile(&one);
        t->segments[k] = (struct ws_rt_segment){
            .before = ws_json_integer(&one, "mhd", 0, WS_RT_TIME_MAX, true, 0),
            .kernel = p ? kernel_time(e, p, k_sms, s->n_sms) : e,
            .after = ws_json_integer(&one, "mdh", 0, WS_RT_TIME_MAX, true, 0)};
    }
    return 0;
}

static int read_stgm(struct ws_json_line *l, const char *variant, struct ws_rt_set *s)
{
    struct ws_json_at root = ws_json_root(l);
    struct ws_json_at tasks = ws_json_get(&root, "tasks", false);
    int n = (int)ws_json_length(&tasks, WS_RT_TASKS_MAX), r = ws_rt_set_init(s, n);
    s->per_ms = STGM_PER_MS;
    s->slice = STGM_PER_MS;
    s->theta = STGM_PER_MS / 5;
    s->epsilon = STGM_PER_MS;
    s->n_cores = (int)ws_json_integer(&root, "ncpu", 1, WS_RT_CORES_MAX, true, 1);
    s->n_sms = (int)ws_json_integer(&root, "nsm", 1, WS_SM_MAX, true, 1);
    struct ws_json_at placed = {.line = l};
    struct ws_json_at res = ws_json_get(&root, "res", true);
    if (variant && res.o)
        placed = ws_json_get(&res, variant, false);
    bool unplaced = placed.o && !ws_json_bool(&placed, "ok", true, false);
    for (int i = 0; i < n && !r; i++) {
        struct ws_json_at one = ws_json_item(&tasks, (size_t)i);
        r = read_stgm_task(&one, &placed, s, i);
        if (!r && s->tasks[i].core >= s->n_cores)
            ws_json_bad(l, one.path, "core %d, but there are %d cores", s->tasks[i].core,
                        s->n_cores);
    }
    return r || l->bad || !unplaced ? r : WS_RT_UNPLACED;
}

int ws_rt_read(struct ws_json_line *l, const char *variant, struct ws_rt_set *ret)
{
    *ret = WS_RT_SET_NULL;
    enum ws_rt_kind kind = ws_rt_kind(l);
    if (kind == WS_RT_NEITHER) {
        ws_json_bad(l, "tasks",
                    "an array of tasks with ces and ges (GCAPS) or segs (STGM) is wanted");
        return WS_RT_BAD;
    }
    int r = kind == WS_RT_GCAPS_LINE ? read_gcaps(l, variant, ret) : read_stgm(l, variant, ret);
    if (r < 0)
        return r;
    char why[128];
    if (!l->bad && r == 0 && ws_rt_check(ret, why, sizeof(why)))
        ws_json_bad(l, "", "%s", why);
    return l->bad ? WS_RT_BAD : r;
}

bool ws_rt_read_bounds(struct ws_json_line *l, const char *method, const struct ws_rt_set *set,
                       int64_t *ret)
{
    static const char *const groups[] = {"ref", "fix", "res"};
    memset(ret, 0, (size_t)set->n_tasks * sizeof(*ret));
    struct json_object *group, *m, *v;
    for (size_t g = 0; g < WS_ARRAY_SIZE(groups); g++) {
        if (!json_object_object_get_ex(l->root, groups[g], &group) ||
            !json_object_object_get_ex(group, method, &m))
            continue;
        if (!json_object_object_get_ex(m, "ok", &v) || !json_object_get_boolean(v))
            return false;
        if (!json_object_object_get_ex(m, "R", &v) && !json_object_object_get_ex(m, "W", &v))
            return false;
        double scale = json_object_object_get_ex(m, "W", NULL) ? 1 : (double)set->per_ms;
        for (int i = 0; i < set->n_tasks && i < (int)json_object_array_length(v); i++) {
            double x = json_object_get_double(json_object_array_get_idx(v, (size_t)i));
            ret[i] = x > 0 && !set->tasks[i].best_effort ? (int64_t)(x * scale + 0.5) : 0;
        }
        return true;
    }
    return false;
}
