// SPDX-License-Identifier: Apache-2.0
/* Chapter "Unified Addressing": prefetches of managed memory; and copies in batches. The first
 * versions have a device's number (-1: the host) where later ones have a location. */
#include "frontend/memory/advice.h"
#include "frontend/memory/batch.h"
#include "frontend/facade.h"

static int prefetch(uint64_t address, size_t bytes, struct cuda_mem_location l, unsigned flags,
                    void *stream, bool per_thread)
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    if (ws_session_stream_info(id, NULL, NULL, NULL))
        return CUDA_INVALID_HANDLE;
    return flags ? CUDA_INVALID_VALUE : ws_advice_prefetch(address, bytes, &l);
}
WS_DRV_STREAM_API(cuMemPrefetchAsync, _ptsz,
                  (uint64_t address, size_t bytes, int device, void *stream),
                  (address, bytes, device, stream))
{
    return prefetch(address, bytes, ws_location_of_device(device), 0, stream, per_thread);
}
WS_DRV_STREAM_API(cuMemPrefetchAsync_v2, _ptsz,
                  (uint64_t address, size_t bytes, struct cuda_mem_location l, unsigned flags,
                   void *stream),
                  (address, bytes, l, flags, stream))
{
    return prefetch(address, bytes, l, flags, stream, per_thread);
}

static int copies(const struct ws_batch *b, size_t *ret_fail, void *stream, bool per_thread)
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    return ws_batch_copy(id, b, ret_fail);
}
/* Device addresses have the size of pointers. */
#define BATCH(dst, src)                                                                            \
    {                                                                                              \
        (void *const *)(void *)(dst), (const void *const *)(void *)(src), sizes, n, attributes,    \
            first, n_attributes                                                                    \
    }
WS_DRV_STREAM_API(cuMemcpyBatchAsync, _ptsz,
                  (uint64_t * dst, uint64_t *src, size_t *sizes, size_t n,
                   struct cuda_memcpy_attributes *attributes, size_t *first, size_t n_attributes,
                   size_t *ret_fail, void *stream),
                  (dst, src, sizes, n, attributes, first, n_attributes, ret_fail, stream))
{
    struct ws_batch b = BATCH(dst, src);
    return copies(&b, ret_fail, stream, per_thread);
}
WS_DRV_STREAM_API(cuMemcpyBatchAsync_v2, _ptsz,
                  (uint64_t * dst, uint64_t *src, size_t *sizes, size_t n,
                   struct cuda_memcpy_attributes *attributes, size_t *first, size_t n_attributes,
                   void *stream),
                  (dst, src, sizes, n, attributes, first, n_attributes, stream))
{
    struct ws_batch b = BATCH(dst, src);
    return copies(&b, NULL, stream, per_thread);
}

static int copies_3d(size_t n, const struct cuda_memcpy_3d_batch_op *ops, unsigned long long flags,
                     size_t *ret_fail, void *stream, bool per_thread)
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    return ws_batch_copy_3d(id, n, ops, flags, ret_fail);
}
WS_DRV_STREAM_API(cuMemcpy3DBatchAsync, _ptsz,
                  (size_t n, struct cuda_memcpy_3d_batch_op *ops, size_t *ret_fail,
                   unsigned long long flags, void *stream),
                  (n, ops, ret_fail, flags, stream))
{
    return copies_3d(n, ops, flags, ret_fail, stream, per_thread);
}
WS_DRV_STREAM_API(cuMemcpy3DBatchAsync_v2, _ptsz,
                  (size_t n, struct cuda_memcpy_3d_batch_op *ops, unsigned long long flags,
                   void *stream),
                  (n, ops, flags, stream))
{
    return copies_3d(n, ops, flags, NULL, stream, per_thread);
}
