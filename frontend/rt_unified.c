// SPDX-License-Identifier: Apache-2.0
/* Chapter "Memory Management": advice about managed memory, and copies in batches. Signatures are CUDA 13's; CUDA 12 has a device
 * number where the location is now, in the same register: told apart by what locations can be. */
#include "frontend/advice.h"
#include "frontend/batch.h"
#include "frontend/facade.h"

/* CUDA 12's device number: -1 is the host. */
static struct cuda_mem_location place(struct cuda_mem_location l)
{
    if (l.type >= WS_CUDA_LOCATION_DEVICE && l.type <= WS_CUDA_LOCATION_HOST_NUMA_CURRENT)
        return l;
    if (l.type == -1)
        return (struct cuda_mem_location){WS_CUDA_LOCATION_HOST, 0};
    return l.type ? l : (struct cuda_mem_location){WS_CUDA_LOCATION_DEVICE, 0};
}

WS_RT_STREAM_API(cudaMemPrefetchAsync, _ptsz,
                 (const void *p, size_t bytes, struct cuda_mem_location l), (p, bytes, l))
{
    WS_RT_ENTER(device);
    (void)device;
    (void)per_thread;
    l = place(l);
    return ws_rt_record(ws_advice_prefetch((uintptr_t)p, bytes, &l));
}
WS_RT_STREAM_API(cudaMemPrefetchAsync_v2, _ptsz,
                 (const void *p, size_t bytes, struct cuda_mem_location l, unsigned flags,
                  void *stream),
                 (p, bytes, l, flags, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    (void)id;
    return ws_rt_record(flags ? CUDA_INVALID_VALUE : ws_advice_prefetch((uintptr_t)p, bytes, &l));
}

WS_RT_API(cudaMemAdvise, (const void *p, size_t bytes, int advice, struct cuda_mem_location l))
{
    WS_RT_ENTER(device);
    (void)device;
    l = place(l);
    return ws_rt_record(ws_advice_set((uintptr_t)p, bytes, advice, &l));
}
WS_RT_ALIAS(cudaMemAdvise_v2, cudaMemAdvise)

WS_RT_API(cudaMemRangeGetAttribute,
          (void *ret, size_t ret_bytes, int attribute, const void *p, size_t bytes))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_advice_get(ret, ret_bytes, attribute, (uintptr_t)p, bytes));
}

WS_RT_API(cudaMemRangeGetAttributes,
          (void **ret, size_t *ret_bytes, int *attributes, size_t n, const void *p, size_t bytes))
{
    WS_RT_ENTER(device);
    (void)device;
    int code = ret && ret_bytes && attributes && n ? CUDA_OK : CUDA_INVALID_VALUE;
    for (size_t i = 0; !code && i < n; i++)
        code = ws_advice_get(ret[i], ret_bytes[i], attributes[i], (uintptr_t)p, bytes);
    return ws_rt_record(code);
}

static int batch(const struct ws_advice_batch *b, unsigned long long flags, void *stream,
                 bool per_thread)
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(flags ? CUDA_INVALID_VALUE : ws_advice_batch(b, id));
}

WS_RT_STREAM_API(cudaMemPrefetchBatchAsync, _ptsz,
                 (void **p, size_t *sizes, size_t n, struct cuda_mem_location *l, size_t *first,
                  size_t n_locations, unsigned long long flags, void *stream),
                 (p, sizes, n, l, first, n_locations, flags, stream))
{
    struct ws_advice_batch b = {
        (const uint64_t *)(void *)p, sizes, n, l, first, n_locations, false};
    return batch(&b, flags, stream, per_thread);
}
WS_RT_STREAM_API(cudaMemDiscardBatchAsync, _ptsz,
                 (void **p, size_t *sizes, size_t n, unsigned long long flags, void *stream),
                 (p, sizes, n, flags, stream))
{
    struct ws_advice_batch b = {
        .addresses = (const uint64_t *)(void *)p, .sizes = sizes, .n = n, .discard = true};
    return batch(&b, flags, stream, per_thread);
}
WS_RT_STREAM_API(cudaMemDiscardAndPrefetchBatchAsync, _ptsz,
                 (void **p, size_t *sizes, size_t n, struct cuda_mem_location *l, size_t *first,
                  size_t n_locations, unsigned long long flags, void *stream),
                 (p, sizes, n, l, first, n_locations, flags, stream))
{
    struct ws_advice_batch b = {
        (const uint64_t *)(void *)p, sizes, n, l, first, n_locations, false};
    return batch(&b, flags, stream, per_thread);
}

WS_RT_STREAM_API(cudaMemcpyBatchAsync, _ptsz,
                 (void *const *dst, const void *const *src, const size_t *sizes, size_t n,
                  struct cuda_memcpy_attributes *attributes, size_t *first, size_t n_attributes,
                  void *stream),
                 (dst, src, sizes, n, attributes, first, n_attributes, stream))
{
    struct ws_batch b = {dst, src, sizes, n, attributes, first, n_attributes};
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(ws_batch_copy(id, &b, NULL));
}

WS_RT_STREAM_API(cudaMemcpy3DBatchAsync, _ptsz,
                 (size_t n, struct cuda_memcpy_3d_batch_op *ops, unsigned long long flags,
                  void *stream),
                 (n, ops, flags, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(ws_batch_copy_3d(id, n, ops, flags, NULL));
}
