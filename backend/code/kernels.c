// SPDX-License-Identifier: Apache-2.0
/* A module may have 100,000 kernels, and a client may load it again and again: so what is said of
 * them is made once, by the thread that makes the code. */
#include "backend/code/kernels.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/error.h"

Ws__Error ws_error_of_kernel(const struct ws_kernel_info *k)
{
    return k->unsupported_code == WS_PTX_E_NOTFOUND ? WS__ERROR__NOT_FOUND
                                                    : WS__ERROR__UNSUPPORTED_PTX;
}

static Ws__Kernel *kernel_message(struct ws_arena *a, const struct ws_kernel_info *k)
{
    Ws__Kernel *out = ws_arena_alloc(a, sizeof(*out));
    uint32_t *offsets = ws_arena_array(a, k->n_params, sizeof(*offsets)),
             *sizes = ws_arena_array(a, k->n_params, sizeof(*sizes));
    if (!out || !offsets || !sizes)
        return NULL;
    ws__kernel__init(out);
    for (uint32_t i = 0; i < k->n_params; i++) {
        offsets[i] = (uint32_t)k->params[i].param_offset;
        sizes[i] = (uint32_t)k->params[i].size_bytes;
    }
    out->name = (char *)k->name;
    out->param_offsets = offsets;
    out->param_sizes = sizes;
    out->n_param_offsets = out->n_param_sizes = k->n_params;
    out->param_bytes = k->param_bytes;
    out->static_shared_bytes = k->static_shared_bytes;
    out->local_bytes = k->local_bytes;
    out->n_regs = k->n_regs;
    out->max_threads_per_block = k->max_threads_per_block;
    out->const_bytes = k->const_bytes;
    out->ptx_version = k->ptx_version;
    out->sm = k->sm;
    if (k->unsupported) {
        out->unsupported = (char *)k->unsupported;
        out->unsupported_error = ws_error_of_kernel(k);
    }
    return out;
}

static bool pack(struct ws_code_entry *code, struct ws_arena *a)
{
    Ws__ModuleInfo all = WS__MODULE_INFO__INIT;
    all.kernels = ws_arena_array(a, code->n_kernels, sizeof(*all.kernels));
    if (!all.kernels)
        return false;
    for (uint32_t i = 0; i < code->n_kernels; i++)
        if (!(all.kernels[all.n_kernels++] = kernel_message(a, &code->info->kernels[i])))
            return false;
    code->packed.n = ws__module_info__get_packed_size(&all);
    code->packed.bytes = malloc(WS_MAX(code->packed.n, (size_t)1));
    if (!code->packed.bytes)
        return false;
    ws__module_info__pack(&all, code->packed.bytes);
    return true;
}

int ws_kernels_pack(struct ws_code_entry *code)
{
    struct ws_arena a = WS_ARENA_NULL;
    bool ok = pack(code, &a);
    ws_arena_deinit(&a);
    return ok ? 0 : ws_raise(-ENOMEM);
}
