// SPDX-License-Identifier: Apache-2.0
/* Chapter "Stream Management": capture of a stream's work into a graph. */
#include "frontend/facade.h"
#include "frontend/graph/capture.h"

WS_BOTH_STREAM_API(cudaStreamBeginCapture, cuStreamBeginCapture_v2, _ptsz, (void *stream, int mode),
                   (stream, mode))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    return ws_capture_begin(id, mode, NULL, NULL, NULL, 0);
}

/* The first version knew one mode. */
WS_DRV_STREAM_API(cuStreamBeginCapture, _ptsz, (void *stream), (stream))
{
    return (per_thread ? cuStreamBeginCapture_v2_ptsz : cuStreamBeginCapture_v2)(stream,
                                                                                 WS_CAPTURE_GLOBAL);
}

WS_BOTH_STREAM_API(cudaStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, _ptsz,
                   (void *stream, struct ws_graph *graph, struct ws_node *const *deps,
                    const struct cuda_edge_data *data, size_t n, int mode),
                   (stream, graph, deps, data, n, mode))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    return graph ? ws_capture_begin(id, mode, graph, deps, data, n) : CUDA_INVALID_VALUE;
}

WS_BOTH_STREAM_API(cudaStreamEndCapture, cuStreamEndCapture, _ptsz,
                   (void *stream, struct ws_graph **ret), (stream, ret))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    return ws_capture_end(id, ret);
}

static int info_of(enum ws_api api, void *stream, bool per_thread, struct ws_capture_info *ret)
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    return ws_capture_info(id, ret);
}

WS_BOTH_STREAM_API(cudaStreamIsCapturing, cuStreamIsCapturing, _ptsz, (void *stream, int *status),
                   (stream, status))
{
    struct ws_capture_info i;
    if (!status)
        return CUDA_INVALID_VALUE;
    int code = info_of(api, stream, per_thread, &i);
    if (!code)
        *status = i.status;
    return code;
}

WS_BOTH_STREAM_API(cudaStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3, _ptsz,
                   (void *stream, int *status, uint64_t *id, struct ws_graph **graph,
                    struct ws_node *const **deps, const struct cuda_edge_data **data, size_t *n),
                   (stream, status, id, graph, deps, data, n))
{
    struct ws_capture_info i;
    if (!status)
        return CUDA_INVALID_VALUE;
    int code = info_of(api, stream, per_thread, &i);
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

WS_BOTH_STREAM_API(cudaStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2, _ptsz,
                   (void *stream, int *status, uint64_t *id, struct ws_graph **graph,
                    struct ws_node *const **deps, size_t *n),
                   (stream, status, id, graph, deps, n))
{
    return cudaStreamGetCaptureInfo_v3_both(api, per_thread, stream, status, id, graph, deps, NULL,
                                            n);
}

WS_DRV_STREAM_API(cuStreamGetCaptureInfo, _ptsz, (void *stream, int *status, uint64_t *id),
                  (stream, status, id))
{
    return (per_thread ? cuStreamGetCaptureInfo_v3_ptsz
                       : cuStreamGetCaptureInfo_v3)(stream, status, id, NULL, NULL, NULL, NULL);
}

WS_BOTH_STREAM_API(cudaStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2,
                   _ptsz,
                   (void *stream, struct ws_node *const *deps, const struct cuda_edge_data *data,
                    size_t n, unsigned flags),
                   (stream, deps, data, n, flags))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    return ws_capture_update(id, deps, data, n, flags);
}

WS_DRV_STREAM_API(cuStreamUpdateCaptureDependencies, _ptsz,
                  (void *stream, struct ws_node *const *deps, size_t n, unsigned flags),
                  (stream, deps, n, flags))
{
    return (per_thread ? cuStreamUpdateCaptureDependencies_v2_ptsz
                       : cuStreamUpdateCaptureDependencies_v2)(stream, deps, NULL, n, flags);
}

WS_BOTH_API(cudaThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode),
            (mode))
{
    return ws_capture_exchange_mode(mode);
}
