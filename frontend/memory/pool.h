// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/pool.h - memory pools (cudaMemPool_t, CUmemoryPool) and stream-ordered
 * allocation. Functions return a CUDA code unless they say otherwise. Threads: any. */
#ifndef WS_FRONTEND_MEMORY_POOL_H
#define WS_FRONTEND_MEMORY_POOL_H

#include "frontend/context/context.h"
#include "frontend/cuda_types.h"

int ws_pool_default(int device, void **ret);
int ws_pool_current(int device, void **ret);
int ws_pool_set_current(int device, void *pool);
/* The default or the current pool of a place. @set: NULL, or the pool to be its current one. */
int ws_pool_at(const struct cuda_mem_location *l, int type, bool current, void **ret, void *set);
int ws_pool_create(void **ret, const struct cuda_mem_pool_props *props);
int ws_pool_destroy(void *pool);
int ws_pool_trim(void *pool, uint64_t keep_bytes);
/* @pool: NULL: the device's current one. @stream must live. 0 bytes give a null address. */
int ws_pool_alloc(void *pool, int device, uint64_t bytes, uint64_t stream, uint64_t *ret_address);
/* In stream order; memory that is no pool's, too. */
int ws_pool_free(uint64_t address, uint64_t stream);
/* cudaFree() and the like of memory from a pool. Return: a CUDA code, or -1: it is not a pool's. */
int ws_pool_free_now(uint64_t address);
/* The pool of memory that starts at @address, or NULL. */
void *ws_pool_of(uint64_t address);
static inline bool ws_pool_has(uint64_t address)
{
    return ws_pool_of(address) != NULL;
}
int ws_pool_set(void *pool, int attribute, const void *value);
int ws_pool_get(void *pool, int attribute, void *ret);
int ws_pool_set_access(void *pool, const struct cuda_mem_access_desc *d, size_t n);
int ws_pool_get_access(void *pool, const struct cuda_mem_location *l, int *ret_flags);
/* Gives back to the daemon what the pools of @device keep and nobody uses. Return: true if there
 * was something. */
bool ws_pool_give_back(int device);
void ws_pool_reset_device(int device);

/* Between processes. */
int ws_pool_export(void *pool, int type, unsigned long long flags, int *ret_fd);
int ws_pool_import(void **ret, int fd, int type, unsigned long long flags);
int ws_pool_export_pointer(struct cuda_ipc_handle *ret, uint64_t address);
int ws_pool_import_pointer(void *pool, const struct cuda_ipc_handle *h, uint64_t *ret_address);

#endif
