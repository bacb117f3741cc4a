// SPDX-License-Identifier: Apache-2.0
/* frontend/runtime/before13.h - what CUDA 12 and 13 have changed under an old name. The façade
 * functions are those that before13.c calls: CUDA 13's forms under CUDA 12's names for them, each
 * defined in the file of its chapter. */
#ifndef WS_FRONTEND_RUNTIME_BEFORE13_H
#define WS_FRONTEND_RUNTIME_BEFORE13_H

#include "frontend/cuda_types.h"
#include "frontend/facade.h"
#include "frontend/graph/graph.h"
#include "frontend/graph/params.h"
#include "frontend/interpose/toolkit.h"

/* In a façade function: was the code that calls it built before CUDA 13, or before CUDA 12? */
#define WS_RT_OLDER()     ws_toolkit_before(__builtin_return_address(0), 13)
#define WS_RT_BEFORE_12() ws_toolkit_before(__builtin_return_address(0), 12)

/* Structures to whose ends CUDA 13 has added, or CUDA 12 (…_11): how many bytes of them a caller
 * has. What is behind these bytes in an older program is not the structure's. */
enum {
    WS_RT_OLDER_POINTER_ATTRIBUTES = 24,
    WS_RT_OLDER_RESOURCE_DESC = 64,
    WS_RT_OLDER_VIEW_DESC = 48,
    WS_RT_11_TEXTURE_DESC = 68,
    WS_RT_11_FUNC_ATTRIBUTES = 52,
    WS_RT_11_DEVICE_PROP = 728, /* of CUDA 12's */
};
#define WS_RT_SIZEOF(structure, older_size) (WS_RT_OLDER() ? (older_size) : sizeof(structure))
#define WS_RT_SIZEOF_12(structure, older_size)                                                     \
    (WS_RT_BEFORE_12() ? (older_size) : sizeof(structure))

#define DECLARE_EDGES_V2(name)                                                                     \
    WS_EXPORT int name(struct ws_graph *g, struct ws_node *const *from, struct ws_node *const *to, \
                       const struct cuda_edge_data *data, size_t n);
DECLARE_EDGES_V2(cudaGraphAddDependencies_v2)
DECLARE_EDGES_V2(cudaGraphRemoveDependencies_v2)
WS_EXPORT int cudaGraphGetEdges_v2(struct ws_graph *g, struct ws_node **from, struct ws_node **to,
                                   struct cuda_edge_data *data, size_t *n);
WS_EXPORT int cudaGraphNodeGetDependencies_v2(struct ws_node *n, struct ws_node **ret,
                                              struct cuda_edge_data *data, size_t *n_ret);
WS_EXPORT int cudaGraphNodeGetDependentNodes_v2(struct ws_node *n, struct ws_node **ret,
                                                struct cuda_edge_data *data, size_t *n_ret);
WS_EXPORT int cudaGraphAddNode_v2(struct ws_node **ret, struct ws_graph *g,
                                  struct ws_node *const *deps, const struct cuda_edge_data *data,
                                  size_t n_deps, struct cuda_node_params *p);
#define DECLARE_CAPTURE_INFO_V3(name)                                                              \
    WS_EXPORT int name(void *stream, int *status, unsigned long long *id, struct ws_graph **graph, \
                       struct ws_node *const **deps, const struct cuda_edge_data **data,           \
                       size_t *n);
DECLARE_CAPTURE_INFO_V3(cudaStreamGetCaptureInfo_v3)
DECLARE_CAPTURE_INFO_V3(cudaStreamGetCaptureInfo_v3_ptsz)
#define DECLARE_CAPTURE_UPDATE_V2(name)                                                            \
    WS_EXPORT int name(void *stream, struct ws_node *const *deps,                                  \
                       const struct cuda_edge_data *data, size_t n, unsigned flags);
DECLARE_CAPTURE_UPDATE_V2(cudaStreamUpdateCaptureDependencies_v2)
DECLARE_CAPTURE_UPDATE_V2(cudaStreamUpdateCaptureDependencies_v2_ptsz)
WS_EXPORT int cudaGraphInstantiateWithFlags(struct ws_exec **ret, struct ws_graph *g,
                                            unsigned long long flags);
WS_EXPORT int cudaMemAdvise_v2(uint64_t address, size_t bytes, int advice,
                               struct cuda_mem_location l);
#define DECLARE_PREFETCH_V2(name)                                                                  \
    WS_EXPORT int name(const void *p, size_t bytes, struct cuda_mem_location l, unsigned flags,    \
                       void *stream);
DECLARE_PREFETCH_V2(cudaMemPrefetchAsync_v2)
DECLARE_PREFETCH_V2(cudaMemPrefetchAsync_v2_ptsz)

#endif
