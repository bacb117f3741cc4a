// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/pool_private.h - what pool.c and pool_share.c share: pools and their blocks. */
#ifndef WS_FRONTEND_MEMORY_POOL_PRIVATE_H
#define WS_FRONTEND_MEMORY_POOL_PRIVATE_H

#include <pthread.h>

#include "base/table.h"
#include "frontend/memory/pool.h"

enum { /* attributes of a pool: cudaMemPoolAttr = CUmemPool_attribute */
       WS_POOL_REUSE_FOLLOW_EVENTS = 1,
       WS_POOL_REUSE_OPPORTUNISTIC = 2,
       WS_POOL_REUSE_INTERNAL = 3,
       WS_POOL_RELEASE_THRESHOLD = 4,
       WS_POOL_RESERVED_CURRENT = 5,
       WS_POOL_RESERVED_HIGH = 6,
       WS_POOL_USED_CURRENT = 7,
       WS_POOL_USED_HIGH = 8,
};
enum { WS_POOL_ID_BYTES = 16 };

struct ws_pool_block {
    uint64_t address, bytes;
    struct ws_memory_pool *pool;
    bool live, imported;
    uint64_t stream; /* free: where it was freed; 0: it may be used at once */
    uint64_t event;  /* free: recorded there; 0: none was made yet */
    int event_device;
    struct ws_pool_block *next; /* of the pool's free ones, oldest first */
    UT_hash_handle hh;
};
struct ws_memory_pool {
    struct ws_slot slot;
    int device, types; /* WS_CUDA_HANDLE_… */
    bool is_default, imported, destroyed;
    int reuse[WS_POOL_REUSE_INTERNAL + 1];
    uint64_t threshold_bytes, max_bytes; /* max: 0: none */
    uint64_t used_bytes, used_high_bytes, reserved_bytes, reserved_high_bytes;
    uint32_t readers, writers; /* devices that were given access */
    size_t n_blocks;
    struct ws_pool_block *free, **last;
    uint8_t id[WS_POOL_ID_BYTES];
};
/* Held where a function below says so, and for every use of a pool's or a block's fields. */
extern pthread_mutex_t ws_pool_lock;

/* ---- lock held ---- */
/* An empty pool of a device. NULL: out of memory. */
struct ws_memory_pool *ws_pool_new(int device);
/* The pool that a program's handle stands for. NULL: none. */
struct ws_memory_pool *ws_pool_checked(void *pool);
/* A block of @p for memory that the session has. NULL: out of memory. */
struct ws_pool_block *ws_pool_block_add(struct ws_memory_pool *p, uint64_t address, uint64_t bytes);
/* The block that begins at @address, of any pool. NULL: none. */
struct ws_pool_block *ws_pool_block_find(uint64_t address);
/* The block is in use by the program from now on, or no more. */
void ws_pool_block_set_live(struct ws_pool_block *b, bool live);

#endif
