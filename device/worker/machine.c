// SPDX-License-Identifier: Apache-2.0
/* Variables of modules that are machine code. The worker's driver chooses their addresses, and the
 * daemon maps them into the client's space there as long as the instance lives. A new worker's
 * driver would choose others, so what uses them ends with the worker (tables.c). */
#include "base/alloc.h"
#include "base/error.h"
#include "device/worker/proxy.h"

int ws_proxy_vars_map(struct ws_dinstance *i)
{
    struct ws_proxy *p = i->proxy;
    uint32_t n = i->module->info.n_vars;
    int r = 0;
    i->mapped = ws_alloc_array(n + (size_t)1, sizeof(*i->mapped));
    if (!i->mapped)
        return ws_raise(-ENOMEM);
    for (uint32_t v = 0; !r && v < n; v++) {
        struct ws_mapping there;
        uint64_t va = i->var_va[v], bytes = i->module->info.vars[v].size_bytes;
        if (!va || !bytes ||
            ws_space_find(i->of, va, bytes, &there)) /* two names of one variable */
            continue;
        r = ws_space_map(i->of,
                         &(const struct ws_mapping){.va = va,
                                                    .bytes = bytes,
                                                    .host = (uint8_t *)(uintptr_t)va,
                                                    .readers = WS_ACCESS_ALL,
                                                    .writers = WS_ACCESS_ALL,
                                                    .device = &p->base},
                         NULL, NULL);
        if (!r)
            i->mapped[i->n_mapped++] = va;
    }
    return r;
}

void ws_proxy_vars_unmap(struct ws_dinstance *i)
{
    while (i->n_mapped)
        (void)!ws_space_unmap(i->of, i->mapped[--i->n_mapped]);
    free(i->mapped);
    i->mapped = NULL;
}

void ws_proxy_instance_vars(const struct ws_dinstance *i, uint64_t *ret_va)
{
    for (uint32_t v = 0; v < i->module->info.n_vars; v++)
        ret_va[v] = i->var_va[v];
}
