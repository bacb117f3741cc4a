// SPDX-License-Identifier: Apache-2.0
/* Loading modules: each connection that the daemon opens for it has a thread, so that several
 * modules are compiled at once. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/error.h"
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
                               .supported = !i->unsupported,
                               .why_bytes = (uint32_t)strlen(why),
                               .unsupported_code = i->unsupported_code};
    fwrite(&q, sizeof(q), 1, f);
    fwrite(why, 1, q.why_bytes, f);
}

/* Loads the module that is in @m and writes the answer's contents to @f. Return: the answer's
 * value. */
static int load(const struct ws_wire_message *m, FILE *f)
{
    struct worker_object o = {.id = m->head.id};
    struct ws_diags diags = WS_DIAGS_NULL;
    int r = m->head.value == WS_WIRE_CODE_MACHINE
                ? ws_cubin_module(&o.module.ptx, m->body, m->head.bytes, NULL, &diags)
                : ws_ptx_parse(&o.module.ptx, (const char *)m->body, m->head.bytes, NULL, &diags);
    if (!r) {
        o.module.ptx->fenced = m->head.value == WS_WIRE_CODE_FENCED;
        r = ws_device_module_load(worker.device, o.module.ptx, &o.module.code, &diags);
    }
    const struct ws_dmodule_info *info = r ? NULL : ws_dmodule_info(o.module.code);
    struct ws_wire_loaded l = {.n_kernels = info ? info->n_kernels : 0};
    fwrite(&l, sizeof(l), 1, f);
    for (uint32_t k = 0; k < l.n_kernels; k++)
        put_kernel(f, &info->kernels[k]);
    ws_wire_put_diags(f, &diags);
    ws_diags_deinit(&diags);
    if (!r && (r = worker_add(&worker.modules, &o)))
        ws_device_module_unload(worker.device, o.module.code);
    if (r)
        ws_ptx_module_free(o.module.ptx);
    return r;
}

/* Answers one message. Return: 0 or negative errno: the connection is broken. */
static int serve(int fd, struct ws_wire_message *m)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    int r = f ? load(m, f) : -ENOMEM;
    if (f)
        fclose(f);
    struct ws_wire_head head = {
        .type = WS_WIRE_LOAD, .id = m->head.id, .value = r > 0 && !m->head.value ? ws_fold(r) : r};
    ws_wire_done_with(m);
    r = ws_wire_send(fd, head, (struct ws_wire_part){text, n}, WS_PART_NONE, -1, 0);
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
