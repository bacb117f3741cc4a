// SPDX-License-Identifier: Apache-2.0
/* device/cuda/keep.h - device memory that outlives the process which made it.
 *
 * A GPU's context dies with its process, or by a fault; physical memory lives as long as anything holds it: a handle, or a file
 * descriptor that it was exported to. Whoever keeps these descriptors in another process can have the memory adopted, with what is in
 * it, by a process that opens the GPU later.
 *
 * Physical memory comes in pieces: the whole granules (2 MiB) of one memory are a piece, each granule that small memory shares is
 * another. A granule may be seen at several addresses (memory that is shared by handles), and is told once for each.
 *
 * To bring all back: open the device, ws_cuda_adopt_granule() for every granule and address, ws_cuda_adopt_memory() for each memory,
 * map the memories where they were, ws_cuda_adopt_end(). Nothing else may be mapped before. Source: CUDA Driver API,
 * "Virtual Memory Management", cuMemExportToShareableHandle(). */
#ifndef WS_DEVICE_CUDA_KEEP_H
#define WS_DEVICE_CUDA_KEEP_H

#include "device/device.h"

struct ws_cuda_kept {
    uint64_t
        id; /* of the piece; never 0, never given twice by a device, nor given again of those it has adopted */
    uint64_t bytes; /* of the piece: whole granules */
    uint64_t va;    /* of a granule: its address. 0: the whole granules of one memory */
};

struct ws_cuda_keep {
    /* A piece is there, or is seen at one more address. @fd: the callee's, close-on-exec; -1: it can't be exported, and is lost with the
     * process. For the whole granules of a memory it is called inside ws_device_memory_new(), on its thread; for a granule when memory is
     * mapped. Not for what was adopted. */
    void (*made)(void *arg, const struct ws_cuda_kept *k, int fd);
    /* It is not there any more, or not at that address; adopted ones too. On any thread. */
    void (*gone)(void *arg, const struct ws_cuda_kept *k);
    void *arg;
};
/* Both functions are called with locks of the device held and must not call it. To be set before any memory is made; never set, nothing
 * is exported. @k: copied. Return: false: not a CUDA device, or its memory can't be exported (the capability "memory kept" says why):
 * nothing is called then. */
bool ws_device_cuda_keep(struct ws_device *d, const struct ws_cuda_keep *k);

/* Memory of @bytes that another process made: @whole and @fd are what made() was told of its whole granules; NULL where it has less than
 * one granule. Its contents are kept. What it has in shared granules is there once it is mapped where it was: in one that was adopted.
 * @fd: borrowed. Return: 0, WS_DEV_E_NO_MEMORY (the driver does not take it, or there is no room), -EINVAL (sizes that do not fit),
 * -ENOMEM. */
WS_MUST_CHECK int ws_cuda_adopt_memory(struct ws_device *d, uint64_t bytes,
                                       const struct ws_cuda_kept *whole, int fd,
                                       struct ws_memory **ret);
/* Has a granule at @g->va once more; of one that was at several addresses, each. @fd: borrowed.
 * Return: 0, WS_DEV_E_NO_MEMORY, -EINVAL, -EEXIST (something is at the address), -ENOMEM. */
WS_MUST_CHECK int ws_cuda_adopt_granule(struct ws_device *d, const struct ws_cuda_kept *g, int fd);
/* Gives back the adopted granules that nothing was mapped into. */
void ws_cuda_adopt_end(struct ws_device *d);

#endif
