// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "backend/scheduling/dispatch_private.h"

bool ws_dispatch_deadline(const struct ws_client *c, double *ret_left_ms)
{
    const struct ws_dispatch *d = c->server->dispatch;
    double nearest = INFINITY;
    for (uint32_t i = 0; i < c->n_contexts; i++)
        if (c->contexts[i].job)
            nearest = fmin(nearest, c->contexts[i].job->deadline_ms);
    if (!d || nearest == INFINITY)
        return false;
    *ret_left_ms = nearest - ws_dispatch_now_ms(d);
    return true;
}
