// SPDX-License-Identifier: Apache-2.0
/* Modules that are machine code, without PTX (ptx/images/cubin.h).
 *
 * The driver gets the file as it is, so it cannot be rewritten as PTX is. Its kernels are not
 * fenced, and so such a module is accepted only where isolation is off. They do not take their
 * blocks from a counter, so they run to their end, and only green contexts keep them to SMs. The
 * driver chooses the addresses of its variables: each client that uses variables has a load of its
 * own, and the variables are mapped into the client's space at the driver's addresses. These
 * mappings hold a reference of the load, so a copy that is under way when the module is unloaded
 * still finds the memory. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/cuda/cuda_private.h"

const char ws_cuda_no_machine_code[] =
    "machine code cannot be kept to its client's memory: build with PTX (nvcc -gencode "
    "arch=compute_XX,code=compute_XX), or set isolation = none in wattshared.conf";

/* One load of a module. The instance and each mapping of a variable have a reference. */
struct ws_cuda_machine {
    _Atomic uint32_t n_refs;
    struct ws_cuda_image *image;
    uint32_t n_mapped;
    uint64_t mapped[];
};

static void put(struct ws_cuda_machine *m)
{
    if (atomic_fetch_sub_explicit(&m->n_refs, 1, memory_order_acq_rel) == 1) {
        ws_cuda_image_free(m->image);
        free(m);
    }
}

static void unmapped(void *arg, uint8_t *host, uint64_t bytes)
{
    put(arg);
}

static bool has_address(const struct ws_ptx_var *v)
{
    return (v->space == WS_SP_GLOBAL || v->space == WS_SP_CONST) && v->size_bytes;
}

int ws_cuda_machine_check(const struct ws_ptx_module *m, struct ws_diags *diags)
{
    for (uint32_t v = 0; v < m->n_vars; v++)
        if (m->vars[v].managed) {
            ws_diags_add(diags, NULL, 0, 0,
                         "variable %s: managed variables of machine code are not supported; build "
                         "with PTX",
                         m->vars[v].name);
            return WS_PTX_E_UNSUPPORTED;
        }
    return 0;
}

static int map_var(struct ws_dinstance *i, struct ws_cuda_machine *m, uint32_t v)
{
    const struct ws_ptx_var *var = &i->module->info.vars[v];
    ws_cu_ptr va = 0;
    size_t bytes = 0;
    struct ws_mapping there;
    ws_cu_result r = WS_CU(i->device, cuModuleGetGlobal, &va, &bytes, m->image->module, var->name);
    if (r == WS_CU_NOT_FOUND) /* programs cannot name it */
        return 0;
    if (r != WS_CU_SUCCESS || !va || bytes < var->size_bytes)
        return ws_raise(-EIO);
    i->var_va[v] = va;
    for (uint32_t k = 0; k < m->n_mapped; k++) /* two names of one variable */
        if (m->mapped[k] == va && ws_space_find(i->space, va, var->size_bytes, &there))
            return 0;
    struct ws_mapping map = {.va = va,
                             .bytes = var->size_bytes,
                             .host = (uint8_t *)(uintptr_t)va,
                             .readers = WS_ACCESS_ALL,
                             .writers = WS_ACCESS_ALL,
                             .device = &i->device->base};
    int e = ws_space_map(i->space, &map, unmapped, m);
    if (e)
        return e;
    m->mapped[m->n_mapped++] = va;
    atomic_fetch_add_explicit(&m->n_refs, 1, memory_order_relaxed);
    return 0;
}

int ws_cuda_machine_place(struct ws_dinstance *i)
{
    uint32_t n = i->module->info.n_vars;
    struct ws_cuda_machine *m = ws_alloc(sizeof(*m) + n * sizeof(m->mapped[0]));
    if (!m)
        return ws_raise(-ENOMEM);
    m->n_refs = 1;
    m->image = i->image[0];
    i->machine = m;
    int e = 0;
    for (uint32_t v = 0; !e && v < n; v++)
        if (has_address(&i->module->info.vars[v]))
            e = map_var(i, m, v);
    return e;
}

void ws_cuda_machine_free(struct ws_dinstance *i)
{
    struct ws_cuda_machine *m = i->machine;
    for (uint32_t k = 0; k < m->n_mapped; k++)
        (void)!ws_space_unmap(i->space, m->mapped[k]); /* it cannot fail: the mapping is there */
    put(m);
}

void ws_cuda_instance_vars(const struct ws_dinstance *i, uint64_t *ret_va)
{
    for (uint32_t v = 0; v < i->module->info.n_vars; v++)
        ret_va[v] = i->var_va[v];
}
