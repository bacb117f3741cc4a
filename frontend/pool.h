// SPDX-License-Identifier: Apache-2.0
/* frontend/pool.h - the devices' default memory pools (cudaMemPool_t, CUmemoryPool). All return a CUDA code. Threads: any. */
#ifndef WS_FRONTEND_POOL_H
#define WS_FRONTEND_POOL_H

#include "frontend/context.h"

int ws_pool_of_device(int device, void **ret);
/* The device of a pool; -1: not a pool. */
int ws_pool_device(const void *pool);
/* @stream must live. Memory of 0 bytes: NULL if @zero_ok, else INVALID_VALUE. */
int ws_pool_alloc(struct ws_ctx *c, int device, uint64_t bytes, uint64_t stream, bool zero_ok,
                  uint64_t *ret_address);
int ws_pool_free(uint64_t address, uint64_t stream);
int ws_pool_set(void *pool, int attribute, const void *value);
int ws_pool_get(void *pool, int attribute, void *ret);

#endif
