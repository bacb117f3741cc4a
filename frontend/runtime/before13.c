// SPDX-License-Identifier: Apache-2.0
/* Runtime functions that have other parameters in CUDA 12 or 13 than before, under one name. A
 * program's calls are read as the toolkit meant them that the calling code was built with
 * (frontend/interpose/toolkit.h); here the older form is made the newer one.
 *
 * One definition receives both: integers and pointers of the two forms lie in the same registers
 * and stack slots, one after the other, so parameter k of the older form is our parameter k,
 * whatever its name says in the newer one. A parameter that only one form has, or that is wider in
 * one, is declared so that nothing of it is lost. */
#include "frontend/memory/advice.h"
#include "frontend/memory/batch.h"
#include "frontend/facade.h"
#include "frontend/graph/graph.h"
#include "frontend/graph/params.h"
#include "frontend/runtime/before13.h"

/* ---- graphs: the data of edges is new ---- */

WS_RT_API(cudaGraphAddDependencies,
          (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to,
           const struct cuda_edge_data *data, size_t n))
{
    if (WS_RT_OLDER())
        return cudaGraphAddDependencies_v2(g, from, to, NULL, (size_t)data);
    return cudaGraphAddDependencies_v2(g, from, to, data, n);
}

WS_RT_API(cudaGraphRemoveDependencies,
          (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to,
           const struct cuda_edge_data *data, size_t n))
{
    if (WS_RT_OLDER())
        return cudaGraphRemoveDependencies_v2(g, from, to, NULL, (size_t)data);
    return cudaGraphRemoveDependencies_v2(g, from, to, data, n);
}

WS_RT_API(cudaGraphGetEdges, (struct ws_graph * g, struct ws_node **from, struct ws_node **to,
                              struct cuda_edge_data *data, size_t *n))
{
    if (WS_RT_OLDER())
        return cudaGraphGetEdges_v2(g, from, to, NULL, (size_t *)data);
    return cudaGraphGetEdges_v2(g, from, to, data, n);
}

WS_RT_API(cudaGraphNodeGetDependencies,
          (struct ws_node * n, struct ws_node **ret, struct cuda_edge_data *data, size_t *n_ret))
{
    if (WS_RT_OLDER())
        return cudaGraphNodeGetDependencies_v2(n, ret, NULL, (size_t *)data);
    return cudaGraphNodeGetDependencies_v2(n, ret, data, n_ret);
}

WS_RT_API(cudaGraphNodeGetDependentNodes,
          (struct ws_node * n, struct ws_node **ret, struct cuda_edge_data *data, size_t *n_ret))
{
    if (WS_RT_OLDER())
        return cudaGraphNodeGetDependentNodes_v2(n, ret, NULL, (size_t *)data);
    return cudaGraphNodeGetDependentNodes_v2(n, ret, data, n_ret);
}

WS_RT_API(cudaGraphAddNode,
          (struct ws_node * *ret, struct ws_graph *g, struct ws_node *const *deps,
           const struct cuda_edge_data *data, size_t n_deps, struct cuda_node_params *p))
{
    if (WS_RT_OLDER())
        return cudaGraphAddNode_v2(ret, g, deps, NULL, (size_t)data,
                                   (struct cuda_node_params *)n_deps);
    return cudaGraphAddNode_v2(ret, g, deps, data, n_deps, p);
}

/* ---- execs: before CUDA 12 they tell of a bad node, and have a buffer for words about it ---- */

WS_RT_API(cudaGraphInstantiate,
          (struct ws_exec * *ret, struct ws_graph *g, unsigned long long flags))
{
    return cudaGraphInstantiateWithFlags(ret, g, WS_RT_BEFORE_12() ? 0 : flags);
}

/* Older: @ret is the bad node's place, and @result what its structure's first field is now. */
WS_RT_API(cudaGraphExecUpdate, (struct ws_exec * e, struct ws_graph *g, void *ret, int *result))
{
    struct cuda_update_result r;
    bool older = WS_RT_BEFORE_12();
    WS_RT_ENTER(device);
    (void)device;
    if (!older)
        return ws_rt_record(ws_exec_update_checked(e, g, ret));
    int code = ws_exec_update_checked(e, g, &r);
    if (code && code != CUDA_GRAPH_UPDATE_FAILURE)
        return ws_rt_record(code);
    if (ret)
        *(struct ws_node **)ret = r.errorNode;
    if (result)
        *result = r.result;
    return ws_rt_record(code);
}

/* ---- capture ---- */

/* Before CUDA 13, this name had three parameters; _v2 and _v3 have what came later. */
WS_RT_API(cudaStreamGetCaptureInfo,
          (void *stream, int *status, unsigned long long *id, struct ws_graph **graph,
           struct ws_node *const **deps, const struct cuda_edge_data **data, size_t *n))
{
    if (WS_RT_OLDER())
        return cudaStreamGetCaptureInfo_v3(stream, status, id, NULL, NULL, NULL, NULL);
    return cudaStreamGetCaptureInfo_v3(stream, status, id, graph, deps, data, n);
}
WS_RT_API(cudaStreamGetCaptureInfo_ptsz,
          (void *stream, int *status, unsigned long long *id, struct ws_graph **graph,
           struct ws_node *const **deps, const struct cuda_edge_data **data, size_t *n))
{
    if (WS_RT_OLDER())
        return cudaStreamGetCaptureInfo_v3_ptsz(stream, status, id, NULL, NULL, NULL, NULL);
    return cudaStreamGetCaptureInfo_v3_ptsz(stream, status, id, graph, deps, data, n);
}

/* Older: (stream, deps, n, flags). */
WS_RT_API(cudaStreamUpdateCaptureDependencies,
          (void *stream, struct ws_node *const *deps, const struct cuda_edge_data *data, size_t n,
           unsigned flags))
{
    if (WS_RT_OLDER())
        return cudaStreamUpdateCaptureDependencies_v2(stream, deps, NULL, (size_t)data,
                                                      (unsigned)n);
    return cudaStreamUpdateCaptureDependencies_v2(stream, deps, data, n, flags);
}
WS_RT_API(cudaStreamUpdateCaptureDependencies_ptsz,
          (void *stream, struct ws_node *const *deps, const struct cuda_edge_data *data, size_t n,
           unsigned flags))
{
    if (WS_RT_OLDER())
        return cudaStreamUpdateCaptureDependencies_v2_ptsz(stream, deps, NULL, (size_t)data,
                                                           (unsigned)n);
    return cudaStreamUpdateCaptureDependencies_v2_ptsz(stream, deps, data, n, flags);
}

/* ---- advice: a location was a device number, -1 the host ---- */

WS_RT_API(cudaMemAdvise, (uint64_t address, size_t bytes, int advice, struct cuda_mem_location l))
{
    return cudaMemAdvise_v2(address, bytes, advice,
                            WS_RT_OLDER() ? ws_location_of_device(l.type) : l);
}

/* Older: (p, bytes, device, stream); @flags as wide as a stream. */
WS_RT_API(cudaMemPrefetchAsync,
          (const void *p, size_t bytes, struct cuda_mem_location l, uintptr_t flags, void *stream))
{
    if (WS_RT_OLDER())
        return cudaMemPrefetchAsync_v2(p, bytes, ws_location_of_device(l.type), 0, (void *)flags);
    return cudaMemPrefetchAsync_v2(p, bytes, l, (unsigned)flags, stream);
}
WS_RT_API(cudaMemPrefetchAsync_ptsz,
          (const void *p, size_t bytes, struct cuda_mem_location l, uintptr_t flags, void *stream))
{
    if (WS_RT_OLDER())
        return cudaMemPrefetchAsync_v2_ptsz(p, bytes, ws_location_of_device(l.type), 0,
                                            (void *)flags);
    return cudaMemPrefetchAsync_v2_ptsz(p, bytes, l, (unsigned)flags, stream);
}

/* ---- copies in batches: before CUDA 13 they tell which one failed ---- */

static int batch_copy(bool per_thread, const struct ws_batch *b, size_t *failed, void *stream)
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(ws_batch_copy(id, b, failed));
}

/* Older: (…, n_attributes, failed, stream). */
#define WS_RT_BATCH_COPY(name, per_thread)                                                         \
    WS_API(name, (void *const *dst, const void *const *src, const size_t *sizes, size_t n,         \
                  struct cuda_memcpy_attributes *attributes, size_t *first, size_t n_attributes,   \
                  void *stream_or_failed, void *older_stream))                                     \
    {                                                                                              \
        bool older = WS_RT_OLDER();                                                                \
        struct ws_batch b = {dst, src, sizes, n, attributes, first, n_attributes};                 \
        return batch_copy(per_thread, &b, older ? stream_or_failed : NULL,                         \
                          older ? older_stream : stream_or_failed);                                \
    }
WS_RT_BATCH_COPY(cudaMemcpyBatchAsync, false)
WS_RT_BATCH_COPY(cudaMemcpyBatchAsync_ptsz, true)

static int batch_copy_3d(bool per_thread, size_t n, struct cuda_memcpy_3d_batch_op *ops,
                         unsigned long long flags, size_t *failed, void *stream)
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(ws_batch_copy_3d(id, n, ops, flags, failed));
}

/* Older: (n, ops, failed, flags, stream). */
#define WS_RT_BATCH_COPY_3D(name, per_thread)                                                      \
    WS_API(name, (size_t n, struct cuda_memcpy_3d_batch_op * ops, unsigned long long flags,        \
                  void *stream_or_flags, void *older_stream))                                      \
    {                                                                                              \
        if (WS_RT_OLDER())                                                                         \
            return batch_copy_3d(per_thread, n, ops, (uintptr_t)stream_or_flags,                   \
                                 (size_t *)(uintptr_t)flags, older_stream);                        \
        return batch_copy_3d(per_thread, n, ops, flags, NULL, stream_or_flags);                    \
    }
WS_RT_BATCH_COPY_3D(cudaMemcpy3DBatchAsync, false)
WS_RT_BATCH_COPY_3D(cudaMemcpy3DBatchAsync_ptsz, true)
