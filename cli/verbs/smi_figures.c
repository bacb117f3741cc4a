// SPDX-License-Identifier: Apache-2.0
/* wattshare smi: figures that the status does not have as such. */
#include "config.h"

#include "cli/verbs/smi.h"

bool ws_smi_memory(const Ws__ClientStatus *c, uint64_t *ret_bytes)
{
    *ret_bytes = c->memory_bytes;
    return c->n_gpus == 1;
}

bool ws_smi_uses(const Ws__ClientStatus *c, const Ws__GpuStatus *g)
{
    bool uses = false;
    for (size_t i = 0; c->connected && i < c->n_gpus; i++)
        uses |= c->gpus[i] == g->gpu;
    return uses;
}
