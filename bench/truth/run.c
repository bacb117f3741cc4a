// SPDX-License-Identifier: Apache-2.0
#include "bench/truth/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "device/space.h"
#include "ptx/ptx.h"

#define VA(k) ((uint64_t)(k) << 32)
enum { MAX_PARAMS = 64, MIB = 1 << 20 };

void truth_must(int r, const char *what)
{
    if (!r)
        return;
    fprintf(stderr, "%s: %s failed: %d\n", program_invocation_short_name, what, r);
    exit(2);
}

double truth_number(const struct ws_csv *t, const char *name)
{
    const char *const names[] = {name, NULL};
    int column = ws_csv_column(t, names);
    double v = column < 0 ? NAN : ws_csv_number(t, column, 0, HUGE_VAL, NULL);
    return isnan(v) ? 0 : v;
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t cap = 0;
    if (!f || getdelim(&text, &cap, 0, f) <= 0) {
        perror(path);
        exit(2);
    }
    fclose(f);
    return text;
}

static void fill(uint8_t *host, uint64_t bytes, enum truth_contents contents)
{
    uint32_t *v = (uint32_t *)(void *)host, x = 12345;
    for (uint64_t i = 0; contents != ZERO && i < bytes / 4; i++) {
        x = x * 1664525u + 1013904223u;
        float f = 0.5f + (float)(x >> 8) / (1 << 24);
        v[i] = x ^ x >> 15;
        if (contents == SMALL_FLOATS)
            memcpy(&v[i], &f, 4);
    }
}

/* Margins of a MiB before the first buffer and behind each: a block may look beside its image. */
static uint32_t place(const struct truth_runner *r, struct ws_space *space,
                      const struct truth_program *p, uint8_t params[MAX_PARAMS])
{
    uint32_t n_buffers = 0, n_numbers = 0, at = 0;
    for (const char *c = p->layout; *c; c++) {
        if (*c == 'p') {
            uint64_t va = VA(n_buffers + 1), length;
            uint64_t bytes = (p->buffers[n_buffers].mib + 2) * MIB;
            uint8_t *host;
            uint32_t flags;
            struct ws_device *device;
            truth_must(ws_device_mem_alloc(r->device, space, va, bytes), "memory");
            if (ws_space_resolve(space, va, &host, &length, &flags, &device))
                fill(host, bytes, p->buffers[n_buffers].contents);
            at = WS_ALIGN_UP(at, 8u);
            va += MIB;
            memcpy(params + at, &va, 8);
            at += 8;
            n_buffers++;
            continue;
        }
        double v = p->numbers[n_numbers++];
        float f = (float)v;
        int32_t i = (int32_t)v;
        memcpy(params + at, *c == 'f' ? (void *)&f : (void *)&i, 4);
        at += 4;
    }
    return at;
}

static void on_done(struct ws_op *op)
{
    struct truth_runner *r = op->owner;
    pthread_mutex_lock(&r->lock);
    r->done = true;
    pthread_cond_signal(&r->cond);
    pthread_mutex_unlock(&r->lock);
}

struct truth_result truth_run(struct truth_runner *r, const struct truth_program *p)
{
    struct ws_space *space;
    struct ws_dinstance *instance;
    uint8_t params[MAX_PARAMS] = {0};
    const struct ws_dmodule_info *info = ws_dmodule_info(r->module);
    uint64_t *vars = ws_alloc_array(info->n_vars + 1, sizeof(*vars));
    truth_must(!vars, "memory");
    truth_must(ws_space_new(&space), "space");
    for (uint32_t k = 0; k < info->n_vars; k++) {
        vars[k] = VA(64 + k);
        truth_must(ws_device_mem_alloc(r->device, space, vars[k], 65536), "memory");
    }
    truth_must(ws_device_instance_new(r->device, r->module, space, vars, &instance), "instance");
    struct ws_op op = {.kind = WS_OPK_LAUNCH,
                       .space = space,
                       .done = on_done,
                       .owner = r,
                       .ready_ns = ws_device_now_ns(r->device)};
    op.launch.instance = instance;
    while (op.launch.kernel < info->n_kernels &&
           strcmp(info->kernels[op.launch.kernel].name, p->kernel) != 0)
        op.launch.kernel++;
    truth_must(op.launch.kernel == info->n_kernels, p->kernel);
    memcpy(op.launch.grid, p->grid, sizeof(p->grid));
    memcpy(op.launch.block, p->block, sizeof(p->block));
    op.launch.param_bytes = place(r, space, p, params);
    op.launch.params = params;
    r->done = false;
    ws_device_submit(r->device, &op);
    pthread_mutex_lock(&r->lock);
    while (!r->done)
        pthread_cond_wait(&r->cond, &r->lock);
    pthread_mutex_unlock(&r->lock);
    if (op.error) {
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, p->app, op.text);
        exit(2);
    }
    ws_device_instance_free(r->device, instance);
    ws_space_free(space);
    free(vars);
    double s = (double)(op.end_ns - op.start_ns) / 1e9;
    return (struct truth_result){s / p->part, (double)op.energy_uj / 1e6 / s, r->events};
}

void truth_open(struct truth_runner *r, const struct ws_gpu_spec *spec, const char *name)
{
    struct ws_diags diags = WS_DIAGS_NULL;
    struct ws_device_options options = {.clock = WS_CLOCK_FUNCTIONAL, .ret_events = &r->events};
    char path[512];
    *r = (struct truth_runner){.spec = *spec, .clocks = {1, 1, 1}};
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->cond, NULL);
    snprintf(path, sizeof(path), WS_SRCDIR "/bench/truth/%s", name);
    r->text = read_file(path);
    truth_must(ws_ptx_parse(&r->ptx, r->text, strlen(r->text), name, &diags), "parse");
    truth_must(ws_device_open_soft(&r->device, &r->spec, 0, &options, &diags), "open");
    truth_must(ws_device_module_load(r->device, r->ptx, &r->module, &diags), "module");
}

void truth_close(struct truth_runner *r)
{
    ws_device_module_unload(r->device, r->module);
    ws_device_close(r->device);
    ws_ptx_module_free(r->ptx);
    pthread_cond_destroy(&r->cond);
    pthread_mutex_destroy(&r->lock);
    free(r->text);
}
