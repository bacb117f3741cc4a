// SPDX-License-Identifier: Apache-2.0
/* device/cuda/keep.h - device memory that outlives the process which made it.
 *
 * A GPU's context ends with its process, or by a fault. Physical memory lives as long as there is a
 * handle of it, or a file descriptor that it was exported to. A process that keeps these
 * descriptors can have the memory, with its contents, adopted by another process that opens the GPU
 * later.
 *
 * Physical memory comes in pieces: the whole granules (2 MiB) of one memory are a piece, and each
 * granule that small memories share is another. A granule may be mapped at several addresses
 * (memory that is shared by handles), and is reported once for each.
 *
 * To restore all memory: open the device; call ws_cuda_adopt_granule() for every granule and
 * address, and ws_cuda_adopt_memory() for each memory; map the memories where they were; call
 * ws_cuda_adopt_end(). Nothing else may be mapped before. Source: CUDA Driver API, "Virtual Memory
 * Management", cuMemExportToShareableHandle(). */
#ifndef WS_DEVICE_CUDA_KEEP_H
#define WS_DEVICE_CUDA_KEEP_H

#include "device/device.h"

struct ws_cuda_kept {
    /* The number of the piece: never 0, and never that of another piece that the device has made or
     * adopted. */
    uint64_t id;
    uint64_t bytes; /* of the piece: whole granules */
    uint64_t va;    /* of a granule: its address. 0: the whole granules of one memory */
};

struct ws_cuda_keep {
    /* There is a new piece, or a granule is mapped at another address. @fd: the callee closes it;
     * close-on-exec; -1: the piece cannot be exported, and is lost with the process. For the whole
     * granules of a memory this is called inside ws_device_memory_new(), on its thread; for a
     * granule when memory is mapped. It is not called for adopted pieces. */
    void (*made)(void *arg, const struct ws_cuda_kept *k, int fd);
    /* The piece was released, or is not mapped at that address any more; also for adopted pieces.
     * On any thread. */
    void (*gone)(void *arg, const struct ws_cuda_kept *k);
    void *arg;
};
/* Sets the functions to call; before any memory is made. They are called with locks of the device
 * held, and must not call the device. If they are never set, nothing is exported. @k: copied.
 * Return: false: @d is not a CUDA device, or its memory cannot be exported (the capability "memory
 * kept" says why); the functions are then never called. */
bool ws_device_cuda_keep(struct ws_device *d, const struct ws_cuda_keep *k);

/* Adopts memory of @bytes that another process made, with its contents. @whole and @fd: what made()
 * was told of its whole granules; NULL if it has less than one granule. Its share of granules is
 * there once it is mapped where it was, in a granule that was adopted. @fd: borrowed. Return: 0,
 * WS_DEV_E_NO_MEMORY (the driver does not accept it, or there is no room), -EINVAL (the sizes
 * disagree), -ENOMEM. */
WS_MUST_CHECK int ws_cuda_adopt_memory(struct ws_device *d, uint64_t bytes,
                                       const struct ws_cuda_kept *whole, int fd,
                                       struct ws_memory **ret);
/* Maps a granule at @g->va again; to be called for each address that it was at. @fd: borrowed.
 * Return: 0, WS_DEV_E_NO_MEMORY, -EINVAL, -EEXIST (something is mapped there), -ENOMEM. */
WS_MUST_CHECK int ws_cuda_adopt_granule(struct ws_device *d, const struct ws_cuda_kept *g, int fd);
/* Releases the adopted granules that nothing was mapped into. */
void ws_cuda_adopt_end(struct ws_device *d);

#endif
