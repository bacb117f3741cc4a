// SPDX-License-Identifier: Apache-2.0
/* Reading has two steps: getters check the range of every field, and then the checks of the
 * analyses are applied to the whole set, so that the analyses accept what this file accepts. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "papers/sets/rt_sets.h"

/* ---- profiles ---- */

static const struct {
    const char *name;
    int serial_percent, cap;
} profiles[WS_STGM_PROFILES] = {
    {"backprop", 20, 13},      {"b+tree", 15, 13}, {"hotspot", 8, 13},         {"kmeans", 10, 4},
    {"streamcluster", 25, 13}, {"mmul", 4, 13},    {"stereodisparity", 5, 13}, {"workzone", 12, 4},
};

static const char *stgm_profile_name(int profile)
{
    return profiles[profile].name;
}

int ws_stgm_profile_find(const char *name)
{
    for (int i = 0; i < WS_STGM_PROFILES; i++)
        if (!strcmp(name, profiles[i].name))
            return i;
    return -1;
}

int64_t ws_stgm_profile_share(int profile, int n_sm)
{
    int64_t serial = profiles[profile].serial_percent, m = WS_MIN(n_sm, profiles[profile].cap);
    int64_t times_m = 100 * serial * m + 100 * (100 - serial), whole = times_m / m;
    int64_t twice = 2 * (times_m - whole * m); /* of the rest; halves go to the even neighbour */
    return whole + (twice > m || (twice == m && whole % 2));
}

void ws_stgm_profile_fill(struct ws_stgm_set *s, int row, int profile, int64_t e)
{
    int64_t whole = ws_stgm_profile_share(profile, s->n_sm);
    for (int k = 1; k <= s->n_sm; k++) {
        __int128 t = ((__int128)e * ws_stgm_profile_share(profile, k) + whole - 1) / whole;
        s->kernels[(int64_t)row * s->n_sm + k - 1] =
            t > WS_RTA_TIME_MAX ? WS_RTA_TIME_MAX + 1 : (int64_t)t;
    }
}

/* ---- space ---- */

void ws_rt_set_deinit(struct ws_rt_set *s)
{
    free(s->gcaps.tasks);
    free(s->gcaps.segments);
    free(s->gcaps.cpu_segments);
    free(s->stgm.tasks);
    free(s->stgm.segments);
    free(s->stgm.kernels);
    *s = (struct ws_rt_set){0};
}

int ws_rt_set_init_gcaps(struct ws_rt_set *s, int n_tasks, int n_segments, int n_cpu_segments)
{
    *s = (struct ws_rt_set){.kind = WS_RT_GCAPS};
    struct ws_rta_set *g = &s->gcaps;
    g->tasks = ws_alloc_array((size_t)n_tasks + 1, sizeof(*g->tasks));
    g->segments = ws_alloc_array((size_t)n_segments + 1, sizeof(*g->segments));
    g->cpu_segments = ws_alloc_array((size_t)n_cpu_segments + 1, sizeof(*g->cpu_segments));
    if (!g->tasks || !g->segments || !g->cpu_segments) {
        ws_rt_set_deinit(s);
        return ws_raise(-ENOMEM);
    }
    g->n_tasks = n_tasks;
    g->n_segments = n_segments;
    g->n_cpu_segments = n_cpu_segments;
    g->unit_per_ms = WS_GCAPS_UNITS_PER_MS;
    g->slice = g->epsilon = WS_GCAPS_UNITS_PER_MS;
    g->theta = WS_GCAPS_UNITS_PER_MS / 5;
    return 0;
}

int ws_rt_set_init_stgm(struct ws_rt_set *s, int n_tasks, int n_segments, int n_sm)
{
    *s = (struct ws_rt_set){.kind = WS_RT_STGM};
    struct ws_stgm_set *g = &s->stgm;
    g->tasks = ws_alloc_array((size_t)n_tasks + 1, sizeof(*g->tasks));
    g->segments = ws_alloc_array((size_t)n_segments + 1, sizeof(*g->segments));
    g->kernels = ws_alloc_array((size_t)n_segments * (size_t)n_sm + 1, sizeof(*g->kernels));
    if (!g->tasks || !g->segments || !g->kernels) {
        ws_rt_set_deinit(s);
        return ws_raise(-ENOMEM);
    }
    g->n_tasks = n_tasks;
    g->n_segments = n_segments;
    g->n_sm = n_sm;
    return 0;
}

/* ---- reading ---- */

#define MS_MAX (INT64_C(1) << 43) /* in units; a sum of two stays below WS_RTA_TIME_MAX */

static int64_t read_units(const struct ws_json_at *at, const char *key, bool required,
                          int64_t fallback)
{
    return ws_json_scaled(at, key, WS_GCAPS_UNITS_PER_MS, MS_MAX, required, fallback);
}

static void read_times(const struct ws_json_at *at, int64_t scale, int64_t *ret_period,
                       int64_t *ret_deadline)
{
    *ret_period = ws_json_scaled(at, "T", scale, MS_MAX, true, -1);
    *ret_deadline = ws_json_scaled(at, "D", scale, MS_MAX, false, WS_MAX(*ret_period, 0));
    char path[128];
    if (at->o && !at->line->bad && !*ret_period) {
        snprintf(path, sizeof(path), "%s.T", at->path);
        ws_json_bad(at->line, path, "a period must be above 0");
    }
    if (at->o && *ret_period > 0 && *ret_deadline > *ret_period) {
        snprintf(path, sizeof(path), "%s.D", at->path);
        ws_json_bad(at->line, path, "a deadline later than the period; expected D ≤ T");
    }
    if (at->o && *ret_deadline <= 0 && *ret_period > 0) {
        snprintf(path, sizeof(path), "%s.D", at->path);
        ws_json_bad(at->line, path, "a deadline must be above 0");
    }
}

/* Priorities fall from task to task; without them the order is what counts. */
static void read_priority(const struct ws_json_at *at, int64_t *last, bool *ret_best_effort)
{
    bool given = ws_json_has(at, "prio");
    int64_t prio = ws_json_integer(at, "prio", -1, INT32_MAX, false, 0);
    *ret_best_effort = ws_json_bool(at, "be", false, given && prio < 0);
    if (!given || *ret_best_effort)
        return;
    if (prio >= *last) {
        char path[128];
        snprintf(path, sizeof(path), "%s.prio", at->path);
        ws_json_bad(at->line, path,
                    "%" PRId64
                    " is not below that of the task before; tasks are ordered by priority, "
                    "highest first, no two the same",
                    prio);
    }
    *last = prio;
}

static size_t count_items(const struct ws_json_at *tasks, size_t n_tasks, const char *key)
{
    size_t n = 0;
    for (size_t i = 0; i < n_tasks; i++) {
        struct ws_json_at at = ws_json_item(tasks, i), list = ws_json_get(&at, key, true);
        n += list.o ? ws_json_length(&list, WS_RTA_SEGMENTS_MAX) : 0;
    }
    return n;
}

/* @n parts make up @total, but for rounding to 0.01 ms. */
static void check_parts(const struct ws_json_at *at, const char *key, const char *of, int64_t sum,
                        int64_t total, size_t n)
{
    char path[128];
    if (at->line->bad || sum <= total + (int64_t)n * WS_GCAPS_UNITS_PER_MS / 100)
        return;
    snprintf(path, sizeof(path), "%s%s%s", at->path, *key ? "." : "", key);
    ws_json_bad(at->line, path, "its parts are %g ms together, more than %s, %g ms",
                (double)sum / WS_GCAPS_UNITS_PER_MS, of, (double)total / WS_GCAPS_UNITS_PER_MS);
}

static void read_gcaps_segments(const struct ws_json_at *at, struct ws_rta_set *s,
                                struct ws_rta_task *t, int *n_segments)
{
    struct ws_json_at list = ws_json_get(at, "ges", true);
    size_t n = list.o ? ws_json_length(&list, WS_RTA_SEGMENTS_MAX) : 0;
    int64_t sum = 0;
    t->first_segment = *n_segments;
    for (size_t k = 0; k < n; k++) {
        struct ws_json_at item = ws_json_item(&list, k);
        if (ws_json_length(&item, 3) != 3) {
            ws_json_bad(at->line, item.path, "expected a GPU segment [G, Gm, Ge]");
            continue;
        }
        int64_t v[3];
        for (size_t j = 0; j < 3; j++) {
            struct ws_json_at value = ws_json_item(&item, j);
            v[j] = ws_json_scaled_value(&value, WS_GCAPS_UNITS_PER_MS, MS_MAX);
        }
        check_parts(&item, "", "G", v[1] + v[2], v[0], 1);
        s->segments[(*n_segments)++] = (struct ws_rta_segment){v[0], v[1], v[2]};
        t->n_segments++;
        sum += v[0];
        t->gm += v[1];
        t->ge += v[2];
    }
    t->g = read_units(at, "G", false, sum);
    check_parts(at, "ges", "G", WS_MAX(sum, t->gm + t->ge), t->g, n);
    if (!list.o && t->g > 0) {
        char path[128];
        snprintf(path, sizeof(path), "%s.ges", at->path);
        ws_json_bad(at->line, path, "missing, though G is above 0; expected a list of [G, Gm, Ge]");
    }
}

static void read_cpu_segments(const struct ws_json_at *at, struct ws_rta_set *s,
                              struct ws_rta_task *t, int *n_cpu_segments)
{
    struct ws_json_at list = ws_json_get(at, "ces", true);
    size_t n = list.o ? ws_json_length(&list, WS_RTA_SEGMENTS_MAX) : 0;
    int64_t sum = 0;
    t->first_cpu_segment = *n_cpu_segments;
    t->n_cpu_segments = (int)n;
    for (size_t k = 0; k < n; k++) {
        struct ws_json_at value = ws_json_item(&list, k);
        int64_t part = ws_json_scaled_value(&value, WS_GCAPS_UNITS_PER_MS, MS_MAX);
        s->cpu_segments[(*n_cpu_segments)++] = part;
        sum += part;
    }
    check_parts(at, "ces", "C", sum, t->c, n);
}

static int read_gcaps(const struct ws_json_at *root, struct ws_rt_set *ret)
{
    struct ws_json_at tasks = ws_json_get(root, "tasks", false);
    size_t n = ws_json_length(&tasks, WS_RTA_TASKS_MAX);
    if (!n || root->line->bad)
        return 0;
    int r = ws_rt_set_init_gcaps(ret, (int)n, (int)count_items(&tasks, n, "ges"),
                                 (int)count_items(&tasks, n, "ces"));
    if (r)
        return ws_forward(r);
    struct ws_rta_set *s = &ret->gcaps;
    struct ws_json_at over = ws_json_get(root, "overheads_ms", true);
    if (over.o) {
        s->slice = read_units(&over, "L", false, s->slice);
        s->theta = read_units(&over, "theta", false, s->theta);
        s->epsilon = read_units(&over, "epsilon", false, s->epsilon);
        if (s->slice <= 0)
            ws_json_bad(root->line, "overheads_ms.L", "a slice must be above 0");
    }
    int n_segments = 0, n_cpu_segments = 0, cpus = 1;
    int64_t last = INT64_MAX;
    int64_t n_cpus = ws_json_integer(root, "ncpu", 1, WS_RTA_CPUS_MAX, false, 0);
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at at = ws_json_item(&tasks, i);
        struct ws_rta_task *t = &s->tasks[i];
        read_times(&at, WS_GCAPS_UNITS_PER_MS, &t->period, &t->deadline);
        t->c = read_units(&at, "C", true, 0);
        t->cpu =
            (int)ws_json_integer(&at, "cpu", 0, (n_cpus ? n_cpus : WS_RTA_CPUS_MAX) - 1, false, 0);
        cpus = WS_MAX(cpus, t->cpu + 1);
        read_priority(&at, &last, &t->best_effort);
        read_gcaps_segments(&at, s, t, &n_segments);
        read_cpu_segments(&at, s, t, &n_cpu_segments);
    }
    s->n_cpus = n_cpus ? (int)n_cpus : cpus;
    return 0;
}

static void read_kernel(const struct ws_json_at *at, struct ws_stgm_set *s,
                        struct ws_stgm_segment *g)
{
    struct ws_json_at e = ws_json_get(at, "e", false);
    if (e.o && json_object_is_type(e.o, json_type_array)) {
        if (ws_json_length(&e, (size_t)s->n_sm) != (size_t)s->n_sm) {
            ws_json_bad(at->line, e.path, "expected times on 1, 2, … %d SMs", s->n_sm);
            return;
        }
        g->profile = -1;
        for (int k = 0; k < s->n_sm; k++) {
            struct ws_json_at value = ws_json_item(&e, (size_t)k);
            s->kernels[(int64_t)g->kernel * s->n_sm + k] = ws_json_integer_value(&value, 0, MS_MAX);
        }
        return;
    }
    const char *name = ws_json_string(at, "prof", true);
    g->profile = name ? ws_stgm_profile_find(name) : 0;
    if (g->profile < 0) {
        char path[128];
        snprintf(path, sizeof(path), "%s.prof", at->path);
        ws_json_bad(at->line, path,
                    "no profile \"%s\"; expected backprop, b+tree, hotspot, kmeans, "
                    "streamcluster, mmul, stereodisparity or workzone; or give e as an array",
                    name);
        g->profile = 0;
    }
    ws_stgm_profile_fill(s, g->kernel, g->profile, ws_json_integer(at, "e", 0, MS_MAX, true, 0));
}

static int read_stgm(const struct ws_json_at *root, struct ws_rt_set *ret)
{
    int n_sm = (int)ws_json_integer(root, "nsm", 1, WS_SM_MAX, true, 1);
    int n_cpus = (int)ws_json_integer(root, "ncpu", 1, WS_RTA_CPUS_MAX, true, 1);
    const char *unit = ws_json_string(root, "unit", false);
    if (unit && strcmp(unit, "us"))
        ws_json_bad(root->line, "unit", "\"%s\"; STGM sets have times in \"us\"", unit);
    struct ws_json_at tasks = ws_json_get(root, "tasks", false);
    size_t n = ws_json_length(&tasks, WS_RTA_TASKS_MAX);
    if (!n || root->line->bad)
        return 0;
    int r = ws_rt_set_init_stgm(ret, (int)n, (int)count_items(&tasks, n, "segs"), n_sm);
    if (r)
        return ws_forward(r);
    struct ws_stgm_set *s = &ret->stgm;
    s->n_cpus = n_cpus;
    int n_segments = 0;
    int64_t last = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at at = ws_json_item(&tasks, i);
        struct ws_stgm_task *t = &s->tasks[i];
        read_times(&at, 1, &t->period, &t->deadline);
        t->c = ws_json_scaled(&at, "C", 1, MS_MAX, true, 0);
        bool best_effort;
        read_priority(&at, &last, &best_effort);
        if (best_effort)
            ws_json_bad(at.line, at.path, "STGM has no best-effort tasks");
        struct ws_json_at segs = ws_json_get(&at, "segs", true);
        t->n_segments = segs.o ? (int)ws_json_length(&segs, WS_RTA_SEGMENTS_MAX) : 0;
        t->n_cpu_segments =
            (int)ws_json_integer(&at, "theta", 1, WS_RTA_SEGMENTS_MAX, false, t->n_segments + 1);
        t->first_segment = n_segments;
        for (int k = 0; k < t->n_segments; k++, n_segments++) {
            struct ws_json_at item = ws_json_item(&segs, (size_t)k);
            struct ws_stgm_segment *g = &s->segments[n_segments];
            g->kernel = n_segments;
            g->hd = ws_json_scaled(&item, "mhd", 1, MS_MAX, true, 0);
            g->dh = ws_json_scaled(&item, "mdh", 1, MS_MAX, true, 0);
            read_kernel(&item, s, g);
        }
    }
    return 0;
}

int ws_rt_set_read_at(const struct ws_json_at *at, struct ws_rt_set *ret)
{
    struct ws_json_line *l = at->line;
    *ret = (struct ws_rt_set){0};
    struct ws_json_at tasks = ws_json_get(at, "tasks", false);
    size_t n = ws_json_length(&tasks, WS_RTA_TASKS_MAX);
    if (tasks.o && !n)
        ws_json_bad(l, "tasks", "empty; a set has at least one task");
    if (l->bad)
        return 0;
    bool stgm = ws_json_has(at, "nsm");
    for (size_t i = 0; !stgm && i < n; i++) {
        struct ws_json_at task = ws_json_item(&tasks, i);
        stgm = ws_json_has(&task, "segs");
    }
    int r = stgm ? read_stgm(at, ret) : read_gcaps(at, ret);
    if (r || l->bad)
        return r;
    for (size_t i = n; i-- > 0;) {
        struct ws_json_at task = ws_json_item(&tasks, i);
        if (ws_json_scaled(&task, "jitter", WS_GCAPS_UNITS_PER_MS, INT64_MAX, false, 0) > 0)
            ret->jittered = (int)i + 1;
    }
    int task;
    const char *wrong = ret->kind == WS_RT_STGM ? ws_stgm_set_check(&ret->stgm, &task)
                                                : ws_rta_set_check(&ret->gcaps, &task);
    char path[32] = "tasks";
    if (wrong && task >= 0)
        snprintf(path, sizeof(path), "tasks[%d]", task);
    if (wrong)
        ws_json_bad(l, path, "%s", wrong);
    return 0;
}

void ws_rt_set_refuse_jitter(struct ws_json_line *l, const struct ws_rt_set *s)
{
    char path[40];
    if (l->bad || !s->jittered)
        return;
    snprintf(path, sizeof(path), "tasks[%d].jitter", s->jittered - 1);
    ws_json_bad(l, path, "the bounds are for jobs that are ready when they are released");
}

int ws_rt_set_read(struct ws_json_line *l, struct ws_rt_set *ret)
{
    struct ws_json_at root = ws_json_root(l);
    return ws_rt_set_read_at(&root, ret);
}

/* ---- writing ---- */

/* Milliseconds with at most 4 decimals. */
static void put_ms(FILE *f, int64_t units)
{
    fprintf(f, "%" PRId64, units / WS_GCAPS_UNITS_PER_MS);
    int64_t rest = units % WS_GCAPS_UNITS_PER_MS;
    if (!rest)
        return;
    int digits = 4;
    for (; rest % 10 == 0; rest /= 10)
        digits--;
    fprintf(f, ".%0*" PRId64, digits, rest);
}

static void put_field(FILE *f, const char *key, int64_t units)
{
    fprintf(f, ", \"%s\": ", key);
    put_ms(f, units);
}

static void write_gcaps(const struct ws_rta_set *s, FILE *f)
{
    int n_real_time = 0;
    while (n_real_time < s->n_tasks && !s->tasks[n_real_time].best_effort)
        n_real_time++;
    fprintf(f, "\"overheads_ms\": {\"L\": ");
    put_ms(f, s->slice);
    put_field(f, "theta", s->theta);
    put_field(f, "epsilon", s->epsilon);
    fprintf(f, "}, \"ncpu\": %d, \"tasks\": [", s->n_cpus);
    for (int i = 0; i < s->n_tasks; i++) {
        const struct ws_rta_task *t = &s->tasks[i];
        fprintf(f, "%s{\"id\": %d, \"be\": %s, \"prio\": %d, \"cpu\": %d", i ? ", " : "", i,
                t->best_effort ? "true" : "false", t->best_effort ? -1 : n_real_time - i, t->cpu);
        put_field(f, "T", t->period);
        if (t->deadline != t->period)
            put_field(f, "D", t->deadline);
        put_field(f, "C", t->c);
        put_field(f, "G", t->g);
        put_field(f, "Gm", t->gm);
        put_field(f, "Ge", t->ge);
        fprintf(f, ", \"ces\": [");
        for (int k = 0; k < t->n_cpu_segments; k++) {
            fputs(k ? ", " : "", f);
            put_ms(f, s->cpu_segments[t->first_cpu_segment + k]);
        }
        fprintf(f, "], \"ges\": [");
        for (int k = 0; k < t->n_segments; k++) {
            const struct ws_rta_segment *g = &s->segments[t->first_segment + k];
            fputs(k ? ", [" : "[", f);
            put_ms(f, g->g);
            fputs(", ", f);
            put_ms(f, g->gm);
            fputs(", ", f);
            put_ms(f, g->ge);
            fputc(']', f);
        }
        fprintf(f, "]}");
    }
    fputc(']', f);
}

static void write_stgm(const struct ws_stgm_set *s, FILE *f)
{
    fprintf(f, "\"ncpu\": %d, \"nsm\": %d, \"unit\": \"us\", \"tasks\": [", s->n_cpus, s->n_sm);
    for (int i = 0; i < s->n_tasks; i++) {
        const struct ws_stgm_task *t = &s->tasks[i];
        fprintf(f, "%s{\"id\": %d, \"prio\": %d, \"T\": %" PRId64, i ? ", " : "", i, s->n_tasks - i,
                t->period);
        if (t->deadline != t->period)
            fprintf(f, ", \"D\": %" PRId64, t->deadline);
        fprintf(f, ", \"C\": %" PRId64 ", \"theta\": %d, \"segs\": [", t->c, t->n_cpu_segments);
        for (int k = 0; k < t->n_segments; k++) {
            const struct ws_stgm_segment *g = &s->segments[t->first_segment + k];
            const int64_t *e = &s->kernels[(int64_t)g->kernel * s->n_sm];
            fprintf(f, "%s{\"mhd\": %" PRId64 ", \"mdh\": %" PRId64, k ? ", " : "", g->hd, g->dh);
            if (g->profile >= 0)
                fprintf(f, ", \"e\": %" PRId64 ", \"prof\": \"%s\"}", e[s->n_sm - 1],
                        stgm_profile_name(g->profile));
            else {
                fprintf(f, ", \"e\": [");
                for (int m = 0; m < s->n_sm; m++)
                    fprintf(f, "%s%" PRId64, m ? ", " : "", e[m]);
                fprintf(f, "]}");
            }
        }
        fprintf(f, "]}");
    }
    fputc(']', f);
}

void ws_rt_set_write(const struct ws_rt_set *s, FILE *f)
{
    if (s->kind == WS_RT_STGM)
        write_stgm(&s->stgm, f);
    else
        write_gcaps(&s->gcaps, f);
}
