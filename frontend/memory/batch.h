// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/batch.h - copies in batches (cudaMemcpyBatchAsync, cudaMemcpy3DBatchAsync, and
 * the driver's). Threads: any. Both functions return a CUDA code. *ret_fail, unless NULL, is the
 * index of the copy that failed, or SIZE_MAX if all of them did. */
#ifndef WS_FRONTEND_MEMORY_BATCH_H
#define WS_FRONTEND_MEMORY_BATCH_H

#include "frontend/context/context.h"
#include "frontend/cuda_types.h"

struct ws_batch {
    void *const *dst;
    const void *const *src;
    const size_t *sizes;
    size_t n;
    const struct cuda_memcpy_attributes *attributes;
    const size_t *first; /* [n_attributes]: index of the first copy that the attributes are for */
    size_t n_attributes;
};
int ws_batch_copy(uint64_t stream, const struct ws_batch *b, size_t *ret_fail);
int ws_batch_copy_3d(uint64_t stream, size_t n, const struct cuda_memcpy_3d_batch_op *ops,
                     unsigned long long flags, size_t *ret_fail);

#endif
