// SPDX-License-Identifier: Apache-2.0
/* frontend/graph/capture.h - stream capture. All functions return a CUDA code. Threads: any. */
#ifndef WS_FRONTEND_GRAPH_CAPTURE_H
#define WS_FRONTEND_GRAPH_CAPTURE_H

#include "frontend/graph/graph.h"

enum ws_capture_mode { WS_CAPTURE_GLOBAL, WS_CAPTURE_THREAD_LOCAL, WS_CAPTURE_RELAXED };
enum ws_capture_status { WS_CAPTURE_NONE, WS_CAPTURE_ACTIVE, WS_CAPTURE_INVALIDATED };

/* @graph: NULL, or the one to add to, behind @deps. */
int ws_capture_begin(uint64_t stream, int mode, struct ws_graph *graph, struct ws_node *const *deps,
                     const struct cuda_edge_data *data, size_t n_deps);
/* @ret: may be NULL if the graph was given to ws_capture_begin(). */
int ws_capture_end(uint64_t stream, struct ws_graph **ret);
struct ws_capture_info {
    int status;
    uint64_t id;
    struct ws_graph *graph;
    /* until the next call about this stream: */
    struct ws_node *const *deps;
    const struct cuda_edge_data *data;
    size_t n_deps;
};
int ws_capture_info(uint64_t stream, struct ws_capture_info *ret);
enum { WS_CAPTURE_ADD_DEPS, WS_CAPTURE_SET_DEPS };
int ws_capture_update(uint64_t stream, struct ws_node *const *deps,
                      const struct cuda_edge_data *data, size_t n_deps, unsigned flags);
/* cudaThreadExchangeStreamCaptureMode */
int ws_capture_exchange_mode(int *mode);

#endif
