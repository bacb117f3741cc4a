// SPDX-License-Identifier: Apache-2.0
/* Advice about managed memory (chapter "Memory Management" of the runtime, "Unified Addressing" of
 * the driver). */
#include "frontend/facade.h"
#include "frontend/memory/advice.h"

WS_BOTH_API(cudaMemAdvise_v2, cuMemAdvise_v2,
            (uint64_t address, size_t bytes, int advice, struct cuda_mem_location l),
            (address, bytes, advice, l))
{
    WS_BOTH_ENTER(c);
    return ws_advice_set(address, bytes, advice, &l);
}

WS_DRV_API(cuMemAdvise, (uint64_t address, size_t bytes, int advice, int device))
{
    return cuMemAdvise_v2(address, bytes, advice, ws_location_of_device(device));
}

WS_BOTH_API(cudaMemRangeGetAttribute, cuMemRangeGetAttribute,
            (void *ret, size_t ret_bytes, int attribute, uint64_t address, size_t bytes),
            (ret, ret_bytes, attribute, address, bytes))
{
    WS_BOTH_ENTER(c);
    return ws_advice_get(ret, ret_bytes, attribute, address, bytes);
}

WS_BOTH_API(cudaMemRangeGetAttributes, cuMemRangeGetAttributes,
            (void **ret, size_t *ret_bytes, int *attributes, size_t n, uint64_t address,
             size_t bytes),
            (ret, ret_bytes, attributes, n, address, bytes))
{
    WS_BOTH_ENTER(c);
    int code = ret && ret_bytes && attributes && n ? CUDA_OK : CUDA_INVALID_VALUE;
    for (size_t i = 0; !code && i < n; i++)
        code = ws_advice_get(ret[i], ret_bytes[i], attributes[i], address, bytes);
    return code;
}

static int batch(enum ws_api api, const struct ws_advice_batch *b, unsigned long long flags,
                 void *stream, bool per_thread)
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    return flags ? CUDA_INVALID_VALUE : ws_advice_batch(b, id);
}

WS_BOTH_STREAM_API(cudaMemPrefetchBatchAsync, cuMemPrefetchBatchAsync, _ptsz,
                   (uint64_t * p, size_t *sizes, size_t n, struct cuda_mem_location *l,
                    size_t *first, size_t n_locations, unsigned long long flags, void *stream),
                   (p, sizes, n, l, first, n_locations, flags, stream))
{
    struct ws_advice_batch b = {p, sizes, n, l, first, n_locations, false};
    return batch(api, &b, flags, stream, per_thread);
}

WS_BOTH_STREAM_API(cudaMemDiscardBatchAsync, cuMemDiscardBatchAsync, _ptsz,
                   (uint64_t * p, size_t *sizes, size_t n, unsigned long long flags, void *stream),
                   (p, sizes, n, flags, stream))
{
    struct ws_advice_batch b = {.addresses = p, .sizes = sizes, .n = n, .discard = true};
    return batch(api, &b, flags, stream, per_thread);
}

WS_BOTH_STREAM_API(cudaMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync, _ptsz,
                   (uint64_t * p, size_t *sizes, size_t n, struct cuda_mem_location *l,
                    size_t *first, size_t n_locations, unsigned long long flags, void *stream),
                   (p, sizes, n, l, first, n_locations, flags, stream))
{
    struct ws_advice_batch b = {p, sizes, n, l, first, n_locations, false};
    return batch(api, &b, flags, stream, per_thread);
}
