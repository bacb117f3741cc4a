// SPDX-License-Identifier: Apache-2.0
/* frontend/context/limits.h - cudaDeviceSetLimit(), cuCtxSetLimit() and their relatives. Threads:
 * any. */
#ifndef WS_FRONTEND_CONTEXT_LIMITS_H
#define WS_FRONTEND_CONTEXT_LIMITS_H

#include "frontend/context/context.h"

/* The limits of a new context, by CUlimit. */
extern const uint64_t ws_limits_default[WS_CTX_LIMITS];

/* After a reset of the device they are as at first. */
void ws_ctx_reset_limits(struct ws_cuda_context *c);
/* Return: a CUDA code: UNSUPPORTED_LIMIT, INVALID_VALUE, OUT_OF_MEMORY. */
int ws_ctx_set_limit(struct ws_cuda_context *c, int limit, uint64_t value);
int ws_ctx_get_limit(const struct ws_cuda_context *c, int limit, uint64_t *ret);

#endif
