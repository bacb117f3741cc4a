// SPDX-License-Identifier: Apache-2.0
/* device/cuda/memory.h - device memory (memory.c), the physical memory under it (piece.c), and
 * pinned host memory. */
#ifndef WS_DEVICE_CUDA_MEMORY_H
#define WS_DEVICE_CUDA_MEMORY_H

#include "base/list.h"
#include "device/cuda/driver.h"
#include "device/device.h"

struct ws_cuda;

#define WS_CUDA_GRANULE_BYTES (UINT64_C(2) << 20)
enum { WS_CUDA_ZEROS_BYTES = 2 << 20 };

/* Physical memory: whole granules. */
struct ws_cuda_piece {
    uint64_t id, bytes;
    ws_cu_handle handle;
    uint32_t n_refs;       /* memory_lock: addresses that it is at, memories that have it */
    struct ws_list shares; /* memory_lock: of memories that share it */
    bool adopted;          /* another process made it */
};

/* ---- memory.c ---- */
int ws_cuda_memory_open(struct ws_cuda *d, struct ws_diags *diags);
void ws_cuda_memory_close(struct ws_cuda *d);
int ws_cuda_mem_alloc(struct ws_device *dev, uint64_t bytes, struct ws_backing *ret);
int ws_cuda_map(struct ws_device *dev, void *arg, struct ws_space *s, uint64_t va, uint64_t bytes,
                uint64_t offset, uint32_t readers, uint32_t writers);
void ws_cuda_unmap(struct ws_device *dev, void *arg, struct ws_space *s, uint64_t va,
                   uint64_t bytes);
void ws_cuda_set_access(struct ws_device *dev, struct ws_space *s, uint64_t va, uint64_t bytes,
                        uint32_t readers, uint32_t writers);
/* Whether @dev is a GPU that this process has opened itself. */
static inline bool ws_cuda_is(const struct ws_device *dev)
{
    return dev->ops->mem_alloc == ws_cuda_mem_alloc;
}
uint32_t ws_cuda_peers(struct ws_device *dev);
void ws_cuda_place(struct ws_device *dev, void *arg, uint64_t *ret_granule, uint64_t *ret_offset);
void ws_cuda_host_register(struct ws_device *dev, void *host, uint64_t bytes, int fd);
void ws_cuda_host_unregister(struct ws_device *dev, void *host, uint64_t bytes);
/* Whether copies to and from it run without the driver's staging. */
bool ws_cuda_is_pinned(struct ws_cuda *d, const void *host, uint64_t bytes);

/* Clears memory that no operation uses, and waits until it is clear, but not for kernels. No lock
 * held. Not on a thread that starts operations, the starter excepted. */
ws_cu_result ws_cuda_clear(struct ws_cuda *d, uint64_t va, uint64_t bytes);
/* Whether no kernel may be started now, since the GPU is filling memory. To be asked after the
 * operation was counted as running. @may_block: waits until it has done so, and returns false. */
bool ws_cuda_awaits_clearing(struct ws_cuda *d, bool may_block);

/* ---- piece.c ---- */
/* A new piece has one reference; the last one releases it. */
ws_cu_result ws_cuda_piece_new(struct ws_cuda *d, uint64_t bytes, struct ws_cuda_piece **ret);
ws_cu_result ws_cuda_piece_import(struct ws_cuda *d, uint64_t id, uint64_t bytes, int fd,
                                  struct ws_cuda_piece **ret);
struct ws_cuda_piece *ws_cuda_piece_unref(struct ws_cuda *d, struct ws_cuda_piece *p);
/* Tell whoever keeps memory (keep.h); @va: as in struct ws_cuda_kept. */
void ws_cuda_piece_made(struct ws_cuda *d, const struct ws_cuda_piece *p, uint64_t va);
void ws_cuda_piece_gone(struct ws_cuda *d, const struct ws_cuda_piece *p, uint64_t va);
void ws_cuda_pieces_close(struct ws_cuda *d);

#endif
