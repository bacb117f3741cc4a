// SPDX-License-Identifier: Apache-2.0
#include "device/payer.h"

#include <stdlib.h>

#include "base/alloc.h"

struct ws_payer *ws_payer_new(void)
{
    return ws_payer_ref(ws_alloc(sizeof(struct ws_payer)));
}

struct ws_payer *ws_payer_ref(struct ws_payer *p)
{
    if (p)
        atomic_fetch_add_explicit(&p->n_refs, 1, memory_order_relaxed);
    return p;
}

struct ws_payer *ws_payer_unref(struct ws_payer *p)
{
    if (p && atomic_fetch_sub(&p->n_refs, 1) == 1)
        free(p);
    return NULL;
}
