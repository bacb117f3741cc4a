// SPDX-License-Identifier: Apache-2.0
/* Reads the GPUs of a simulation. A type is found by its name, in the file or among the measured
 * ones. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "models/measured.h"
#include "papers/sets/gpus.h"

enum { MAX_SLOTS = 64, MAX_ENGINES = 16, MAX_KERNELS = 4096 };
#define MAX_MS 1e12
#define MAX_W  1e6

static int find_type(struct ws_gpus *g, const char *name, size_t n)
{
    for (int i = 0; i < g->n_types; i++)
        if (strlen(g->types[i].name) == n && !strncmp(g->types[i].name, name, n))
            return i;
    for (int i = 0; ws_measured_gpu(i); i++) {
        const struct ws_measured_gpu *m = ws_measured_gpu(i);
        if (strlen(m->name) != n || strncmp(m->name, name, n) != 0 || g->n_types == WS_GPUS_MAX)
            continue;
        g->types[g->n_types] = (struct ws_policy_gpu_type){.name = m->name,
                                                           .n_sm = m->power.n_sm,
                                                           .static_w = m->power.static_w,
                                                           .idle_w_per_sm = m->power.idle_w_per_sm};
        return g->n_types++;
    }
    return -1;
}

int ws_gpus_parse(struct ws_gpus *ret, const char *text, char *ret_error, size_t error_bytes)
{
    *ret = (struct ws_gpus){0};
    for (const char *p = text;; p++) {
        size_t n = strcspn(p, ",@");
        int type = n ? find_type(ret, p, n) : -1;
        if (type < 0) {
            snprintf(ret_error, error_bytes,
                     "'%.*s' is not a measured GPU (rtx3070, t400); a file can describe others",
                     (int)n, p);
            return -EINVAL;
        }
        long limit = ret->types[type].n_sm;
        p += n;
        if (*p == '@') {
            char *end;
            limit = strtol(p + 1, &end, 10);
            if (end == p + 1 || (*end && *end != ',') || limit < 1 ||
                limit > ret->types[type].n_sm) {
                snprintf(ret_error, error_bytes, "'%s': expected a limit from 1 to %d SMs", p,
                         ret->types[type].n_sm);
                return -EINVAL;
            }
            p = end;
        }
        if (ret->n_gpus == WS_GPUS_MAX) {
            snprintf(ret_error, error_bytes, "more than %d GPUs", WS_GPUS_MAX);
            return -EINVAL;
        }
        ret->gpus[ret->n_gpus++] = (struct ws_policy_gpu){
            .type = type, .sm_limit = (int)limit, .n_slots = WS_GPU_SLOTS, .server = -1};
        if (!*p)
            return 0;
    }
}

void ws_gpus_deinit(struct ws_gpus *g)
{
    for (size_t i = 0; i < g->n_kernels; i++) {
        free(g->kernels[i].gpu);
        free(g->kernels[i].name);
        free((void *)(uintptr_t)g->kernels[i].cost.wcet);
        free((void *)(uintptr_t)g->kernels[i].cost.power_w);
    }
    free(g->kernels);
    *g = (struct ws_gpus){0};
}

/* Borrows the name from the line, which must live as long; ws_gpus_read() has it copied by its
 * caller keeping the line. */
static void read_type(struct ws_gpus *g, const struct ws_json_at *at)
{
    const char *name = ws_json_string(at, "name", true);
    struct ws_policy_gpu_type t = {
        .name = name,
        .n_sm = (int)ws_json_integer(at, "n_sm", 1, WS_SM_MAX, true, 1),
        .static_w = ws_json_number(at, "static_w", 0, MAX_W, NAN),
        .idle_w_per_sm = ws_json_number(at, "idle_w_per_sm", 0, MAX_W, NAN),
        .switch_ms = ws_json_number(at, "switch_ms", 0, MAX_MS, 0),
        .update_ms = ws_json_number(at, "update_ms", 0, MAX_MS, 0),
        .preempts = ws_json_bool(at, "preempts", false, false),
    };
    if (!name)
        return;
    for (int i = 0; i < g->n_types; i++)
        if (!strcmp(g->types[i].name, name))
            ws_json_bad(at->line, at->path, "the type '%s' is given twice", name);
    g->types[g->n_types++] = t;
}

static void read_gpu(struct ws_gpus *g, const struct ws_json_at *at)
{
    const char *name = ws_json_string(at, "type", true);
    int type = name ? find_type(g, name, strlen(name)) : -1;
    if (name && type < 0)
        ws_json_bad(at->line, at->path, "'%s' is neither under \"types\" nor measured", name);
    if (type < 0)
        return;
    int n_sm = g->types[type].n_sm;
    g->gpus[g->n_gpus++] = (struct ws_policy_gpu){
        .type = type,
        .sm_limit = (int)ws_json_integer(at, "sm_limit", 1, n_sm, false, n_sm),
        .n_slots = (int)ws_json_integer(at, "slots", 1, MAX_SLOTS, false, WS_GPU_SLOTS),
        .n_copy_engines = (int)ws_json_integer(at, "copy_engines", 0, MAX_ENGINES, false, 0),
        .server = -1};
}

/* Numbers, each in (0, max]. NULL: none or wrong. */
static double *read_numbers(const struct ws_json_at *at, const char *key, bool required, double max,
                            int *ret_n)
{
    struct ws_json_at a = ws_json_get(at, key, !required);
    if (!a.o)
        return NULL;
    size_t n = ws_json_length(&a, WS_SM_MAX);
    if (!n) {
        ws_json_bad(at->line, a.path, "expected a number for each SM count from 1");
        return NULL;
    }
    double *v = ws_alloc_array(n, sizeof(*v));
    for (size_t i = 0; i < n && v; i++) {
        struct ws_json_at item = ws_json_item(&a, i);
        v[i] = ws_json_value(&item, 0, max);
    }
    *ret_n = (int)n;
    return v;
}

static int read_kernel(struct ws_gpus *g, const struct ws_json_at *at)
{
    const char *gpu = ws_json_string(at, "gpu", true), *name = ws_json_string(at, "name", true);
    void *v = g->kernels;
    if (ws_grow(&v, &g->cap_kernels, g->n_kernels + 1, sizeof(*g->kernels)))
        return ws_raise(-ENOMEM);
    g->kernels = v;
    struct ws_gpu_kernel *k = &g->kernels[g->n_kernels++];
    int n_power = 0;
    *k = (struct ws_gpu_kernel){0};
    k->cost.wcet = read_numbers(at, "wcet_ms", true, MAX_MS, &k->cost.n_sm);
    k->cost.power_w = read_numbers(at, "power_w", false, MAX_W, &n_power);
    k->cost.h2d = ws_json_number(at, "h2d_ms", 0, MAX_MS, 0);
    k->cost.d2h = ws_json_number(at, "d2h_ms", 0, MAX_MS, 0);
    k->cost.dyn_w_per_sm = ws_json_number(at, "dyn_w_per_sm", 0, MAX_W, NAN);
    if (k->cost.power_w && n_power != k->cost.n_sm)
        ws_json_bad(at->line, at->path, "power_w has %d numbers, wcet_ms %d", n_power,
                    k->cost.n_sm);
    for (int i = 0; k->cost.wcet && i < k->cost.n_sm; i++)
        if (!(k->cost.wcet[i] > 0))
            ws_json_bad(at->line, at->path, "wcet_ms[%d]: %g; expected a number above 0", i,
                        k->cost.wcet[i]);
    if (!gpu || !name || at->line->bad)
        return 0;
    k->gpu = ws_strdup(gpu);
    k->name = ws_strdup(name);
    return k->gpu && k->name ? 0 : ws_raise(-ENOMEM);
}

int ws_gpus_read(struct ws_gpus *ret, struct ws_json_line *l)
{
    *ret = (struct ws_gpus){0};
    struct ws_json_at root = ws_json_root(l), types = ws_json_get(&root, "types", true),
                      gpus = ws_json_get(&root, "gpus", false),
                      kernels = ws_json_get(&root, "kernels", true);
    size_t n = types.o ? ws_json_length(&types, WS_GPUS_MAX - WS_MEASURED_GPUS) : 0;
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at at = ws_json_item(&types, i);
        read_type(ret, &at);
    }
    n = ws_json_length(&gpus, WS_GPUS_MAX);
    if (!n && !l->bad)
        ws_json_bad(l, "gpus", "expected at least one GPU");
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at at = ws_json_item(&gpus, i);
        read_gpu(ret, &at);
    }
    n = kernels.o ? ws_json_length(&kernels, MAX_KERNELS) : 0;
    for (size_t i = 0; i < n; i++) {
        struct ws_json_at at = ws_json_item(&kernels, i);
        int r = read_kernel(ret, &at);
        if (r)
            return r;
    }
    return l->bad ? -EINVAL : 0;
}

bool ws_gpus_cost(const struct ws_gpus *g, int type, const char *kernel, int app,
                  struct ws_policy_cost *ret)
{
    const char *gpu = g->types[type].name;
    for (size_t i = 0; kernel && i < g->n_kernels; i++)
        if (!strcmp(g->kernels[i].gpu, gpu) && !strcmp(g->kernels[i].name, kernel)) {
            *ret = g->kernels[i].cost;
            return true;
        }
    const struct ws_measured_kernel *m =
        kernel ? ws_measured_find(gpu, kernel) : ws_measured_app(gpu, app);
    if (!m)
        return false;
    *ret = (struct ws_policy_cost){.n_sm = m->cost.n_sm,
                                   .wcet = m->cost.wcet,
                                   .power_w = m->cost.power_w,
                                   .h2d = m->cost.h2d,
                                   .d2h = m->cost.d2h,
                                   .dyn_w_per_sm = m->cost.dyn_w_per_sm};
    return true;
}
