// SPDX-License-Identifier: Apache-2.0
/* Chapter "Stream Management", capture. Where versions of CUDA differ in parameters under one name, those of CUDA 13 hold. */
#include "frontend/graph/capture.h"
#include "frontend/facade.h"

WS_RT_STREAM_API(cudaStreamBeginCapture, _ptsz, (void *stream, int mode), (stream, mode))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(ws_capture_begin(id, mode, NULL, NULL, NULL, 0));
}

WS_RT_STREAM_API(cudaStreamBeginCaptureToGraph, _ptsz,
                 (void *stream, struct ws_graph *graph, struct ws_node *const *deps,
                  const struct cuda_edge_data *data, size_t n, int mode),
                 (stream, graph, deps, data, n, mode))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(graph ? ws_capture_begin(id, mode, graph, deps, data, n)
                              : CUDA_INVALID_VALUE);
}

WS_RT_STREAM_API(cudaStreamEndCapture, _ptsz, (void *stream, struct ws_graph **ret), (stream, ret))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(ws_capture_end(id, ret));
}

/* Return: recorded code. */
static int info(void *stream, bool per_thread, struct ws_capture_info *ret)
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(ws_capture_info(id, ret));
}

WS_RT_STREAM_API(cudaStreamIsCapturing, _ptsz, (void *stream, int *status), (stream, status))
{
    struct ws_capture_info i;
    if (!status)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = info(stream, per_thread, &i);
    if (!code)
        *status = i.status;
    return code;
}

WS_RT_STREAM_API(cudaStreamGetCaptureInfo_v3, _ptsz,
                 (void *stream, int *status, unsigned long long *id, struct ws_graph **graph,
                  struct ws_node *const **deps, const struct cuda_edge_data **data, size_t *n),
                 (stream, status, id, graph, deps, data, n))
{
    struct ws_capture_info i;
    if (!status)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = info(stream, per_thread, &i);
    if (code)
        return code;
    *status = i.status;
    if (i.status != WS_CAPTURE_ACTIVE)
        return code;
    if (id)
        *id = i.id;
    if (graph)
        *graph = i.graph;
    if (deps)
        *deps = i.deps;
    if (data)
        *data = i.data;
    if (n)
        *n = i.n_deps;
    return code;
}
WS_RT_STREAM_API(cudaStreamGetCaptureInfo_v2, _ptsz,
                 (void *stream, int *status, unsigned long long *id, struct ws_graph **graph,
                  struct ws_node *const **deps, size_t *n),
                 (stream, status, id, graph, deps, n))
{
    return (per_thread ? cudaStreamGetCaptureInfo_v3_ptsz
                       : cudaStreamGetCaptureInfo_v3)(stream, status, id, graph, deps, NULL, n);
}

WS_RT_STREAM_API(cudaStreamUpdateCaptureDependencies_v2, _ptsz,
                 (void *stream, struct ws_node *const *deps, const struct cuda_edge_data *data,
                  size_t n, unsigned flags),
                 (stream, deps, data, n, flags))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    return ws_rt_record(ws_capture_update(id, deps, data, n, flags));
}

WS_RT_API(cudaThreadExchangeStreamCaptureMode, (int *mode))
{
    return ws_rt_record(ws_capture_exchange_mode(mode));
}
