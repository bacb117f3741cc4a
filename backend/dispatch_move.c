// SPDX-License-Identifier: Apache-2.0
/* Moving a context's memory to another GPU. */
#include "backend/dispatch_private.h"

bool ws_context_move(struct ws_context *x, uint32_t gpu)
{
    return x->gpu->device->index == gpu;
}
