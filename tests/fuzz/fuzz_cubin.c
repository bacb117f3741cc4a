// SPDX-License-Identifier: Apache-2.0
/* Machine code of any kind: no crash, no overrun; what is read lies within bounds, what is not is
 * said. */
#include <stdlib.h>
#include <string.h>

#include "ptx/images/cubin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct ws_cubin *c, const uint8_t *data, size_t size)
{
    volatile size_t sum = 0;
    for (uint32_t k = 0; k < c->n_kernels; k++) {
        const struct ws_cubin_kernel *x = &c->kernels[k];
        uint64_t end = 0;
        sum += strlen(x->name);
        for (uint32_t p = 0; p < x->n_params; p++) {
            if (x->params[p].offset < end || !x->params[p].bytes)
                abort();
            end = (uint64_t)x->params[p].offset + x->params[p].bytes;
        }
        if (end > x->param_bytes || x->param_bytes > 32764)
            abort();
    }
    for (uint32_t k = 0; k < c->n_vars; k++) {
        const struct ws_cubin_var *v = &c->vars[k];
        sum += strlen(v->name);
        if (v->init && (v->init < data || v->bytes > size - (size_t)(v->init - data)))
            abort();
        for (uint64_t i = 0; v->init && i < v->bytes; i++)
            sum += v->init[i];
    }
    for (uint32_t k = 0; k < c->n_calls; k++)
        sum += strlen(c->calls[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ws_cubin c;
    struct ws_ptx_module *m = NULL;
    struct ws_diags d = WS_DIAGS_NULL;
    int r = ws_cubin_read(&c, data, size, "fuzz", &d);
    if (r < 0 || (r && !d.n))
        abort();
    if (!r) {
        look(&c, data, size);
        ws_cubin_deinit(&c);
    }
    if (ws_cubin_module(&m, data, size, "fuzz", NULL) != r)
        abort();
    ws_ptx_module_free(m);
    ws_diags_deinit(&d);
    return 0;
}
