// SPDX-License-Identifier: Apache-2.0
/* Chapter "Memory Management": advice about managed memory, and copies in batches. The names that
 * changed their parameters in CUDA 13 are in rt_before13.c. */
#include "frontend/memory/advice.h"
#include "frontend/memory/batch.h"
#include "frontend/facade.h"

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

WS_RT_API(cudaMemAdvise_v2, (const void *p, size_t bytes, int advice, struct cuda_mem_location l))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_advice_set((uintptr_t)p, bytes, advice, &l));
}

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
