// SPDX-License-Identifier: Apache-2.0
/* Loading modules, and questions: each connection that the daemon opens for them has a thread, so
 * that several modules are compiled at once, and a question waits for none of them. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/worker/process/process.h"
#include "ptx/images/cubin.h"

static void put_kernel(FILE *f, const struct ws_kernel_info *i)
{
    const char *why = i->unsupported ? i->unsupported : "";
    struct ws_wire_kernel q = {.static_shared_bytes = i->static_shared_bytes,
                               .local_bytes = i->local_bytes,
                               .n_regs = i->n_regs,
                               .max_threads_per_block = i->max_threads_per_block,
                               .const_bytes = i->const_bytes,
                               .uses_heap = i->uses_heap,
                               .prints = i->prints,
                               .supported = !i->unsupported,
                               .why_bytes = (uint32_t)strlen(why),
                               .unsupported_code = i->unsupported_code};
    fwrite(&q, sizeof(q), 1, f);
    fwrite(why, 1, q.why_bytes, f);
}

static int load(const struct ws_wire_message *m, struct worker_object *o, struct ws_diags *diags)
{
    int r = m->head.value == WS_WIRE_CODE_MACHINE
                ? ws_cubin_module(&o->module.ptx, m->body, m->head.bytes, NULL, diags)
                : ws_ptx_parse(&o->module.ptx, (const char *)m->body, m->head.bytes, NULL, diags);
    if (!r) {
        o->module.ptx->fenced = m->head.value == WS_WIRE_CODE_FENCED;
        r = ws_device_module_load(worker.device, o->module.ptx, &o->module.code, diags);
    }
    if (!r && (r = worker_add(&worker.modules, o)))
        ws_device_module_unload(worker.device, o->module.code);
    if (r)
        ws_ptx_module_free(o->module.ptx);
    return r;
}

/* ---- what serves rows of calls.def: writes the contents of an answer, returns its value ---- */

/* The daemon may ask for a module that it has told this worker already, when the worker was
 * started: then a client waited for it. */
static int64_t on_load(const struct ws_wire_message *m, FILE *f)
{
    struct worker_object o = {.id = m->head.id};
    struct ws_diags diags = WS_DIAGS_NULL;
    int r = worker_known(&worker.modules, m->head.id, &o) ? 0 : load(m, &o, &diags);
    const struct ws_dmodule_info *info = r ? NULL : ws_dmodule_info(o.module.code);
    struct ws_wire_loaded l = {.n_kernels = info ? info->n_kernels : 0};
    fwrite(&l, sizeof(l), 1, f);
    for (uint32_t k = 0; k < l.n_kernels; k++)
        put_kernel(f, &info->kernels[k]);
    ws_wire_put_diags(f, &diags);
    ws_diags_deinit(&diags);
    return r > 0 && !m->head.value ? ws_fold(r) : r;
}

static int64_t on_occupancy(const struct ws_wire_message *m, FILE *f)
{
    struct ws_wire_occupancy a;
    struct ws_occupancy fits = {0};
    struct worker_object o;
    memcpy(&a, m->body, sizeof(a));
    int r = worker_known(&worker.modules, m->head.id, &o)
                ? ws_device_occupancy(worker.device, o.module.code, a.kernel, a.threads,
                                      a.shared_bytes, &fits)
                : -EINVAL;
    a.blocks_per_sm = fits.blocks_per_sm;
    for (uint32_t k = 0; !r && k < WS_ARRAY_SIZE(ws_wire_limits); k++)
        if (!strcmp(fits.limit, ws_wire_limits[k]))
            a.limit = k;
    fwrite(&a, sizeof(a), 1, f);
    return r;
}

static int64_t on_charge(const struct ws_wire_message *m, FILE *f)
{
    uint64_t uj = 0;
    bool can = ws_device_cuda_charge(worker.device, m->head.id, &uj);
    fwrite(&uj, sizeof(uj), 1, f);
    return can;
}

typedef int64_t handler(const struct ws_wire_message *m, FILE *f);
#define FOR_START(NAME, name)
#define FOR_OPS(NAME, name)
#define FOR_CALLS(NAME, name)
#define FOR_READER(NAME, name)
#define FOR_LOADER(NAME, name)                   [WS_WIRE_##NAME] = on_##name,
#define CALL(NAME, name, thread, out, back, end) FOR_##thread(NAME, name)
#define NOTICE(NAME, name, thread, out, end)     FOR_##thread(NAME, name)
static handler *const handlers[_WS_WIRE_TYPES] = {
#include "device/worker/calls.def"
};
#undef CALL
#undef NOTICE

/* Answers one message. Return: 0 or negative errno: the connection is broken. */
static int serve(int fd, struct ws_wire_message *m)
{
    char *text = NULL;
    size_t n = 0;
    if (!ws_wire_is_for(m, WS_WIRE_BY_LOADER)) {
        ws_log(WS_ERROR, "worker: the daemon sent a wrong question: type=%u (%s) bytes=%llu",
               m->head.type, ws_wire_name(m->head.type), (unsigned long long)m->head.bytes);
        _exit(1);
    }
    FILE *f = open_memstream(&text, &n);
    struct ws_wire_head head = {.type = m->head.type, .id = m->head.id, .value = -ENOMEM};
    if (f) {
        head.value = handlers[m->head.type](m, f);
        fclose(f);
        worker_no_answer_if_lost(m->head.type, head.value);
    }
    ws_wire_done_with(m);
    int r = ws_wire_send(fd, head, (struct ws_wire_part){text, n}, WS_PART_NONE, -1, 0);
    free(text);
    return r;
}

void *worker_loader_main(void *arg)
{
    int fd = (int)(intptr_t)arg;
    struct ws_wire_message *m = ws_alloc(sizeof(*m));
    bool on = m != NULL;
    while (on && !ws_wire_recv(fd, m)) {
        on = !serve(fd, m);
        worker_end_if_lost();
    }
    free(m);
    close(fd);
    return NULL;
}
