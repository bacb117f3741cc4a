// SPDX-License-Identifier: Apache-2.0
/* Chapter "Graph Management": nodes by kind. For each kind there is adding one, changing one, changing one in an exec, and asking;
 * what the parameters mean is read by graph_params.c. */
#include "frontend/facade.h"
#include "frontend/graph/params.h"

#define FILL(call)                                                                                 \
    WS_RT_ENTER(device);                                                                           \
    struct ws_content c = {.runtime = true, .device = device};                                     \
    int code = call

#define WS_RT_ADD_NODE(name, params, call)                                                         \
    WS_RT_API(name, (struct ws_node * *ret, struct ws_graph * g, struct ws_node *const *deps,      \
                     size_t n_deps, WS_UNPACK params))                                             \
    {                                                                                              \
        FILL(call);                                                                                \
        return ws_rt_record(code ? code : ws_content_add(&c, g, deps, NULL, n_deps, ret));         \
    }
#define WS_RT_SET_NODE(name, params, call)                                                         \
    WS_RT_API(name, (struct ws_node * n, WS_UNPACK params))                                        \
    {                                                                                              \
        FILL(call);                                                                                \
        return ws_rt_record(code ? code : ws_content_set(&c, n));                                  \
    }
#define WS_RT_SET_EXEC_NODE(name, params, call)                                                    \
    WS_RT_API(name, (struct ws_exec * e, struct ws_node * n, WS_UNPACK params))                    \
    {                                                                                              \
        FILL(call);                                                                                \
        return ws_rt_record(code ? code : ws_content_set_exec(&c, e, n));                          \
    }
#define WS_RT_ASK_NODE(name, type, call)                                                           \
    WS_RT_API(name, (struct ws_node * n, type ret))                                                \
    {                                                                                              \
        WS_RT_ENTER(device);                                                                       \
        (void)device;                                                                              \
        return ws_rt_record(call);                                                                 \
    }

/* ---- kernels ---- */

WS_RT_ADD_NODE(cudaGraphAddKernelNode, (const struct cuda_kernel_node *p),
               ws_content_kernel_rt(&c, p))
WS_RT_SET_NODE(cudaGraphKernelNodeSetParams, (const struct cuda_kernel_node *p),
               ws_content_kernel_rt(&c, p))
WS_RT_SET_EXEC_NODE(cudaGraphExecKernelNodeSetParams, (const struct cuda_kernel_node *p),
                    ws_content_kernel_rt(&c, p))
WS_RT_ASK_NODE(cudaGraphKernelNodeGetParams, struct cuda_kernel_node *, ws_node_kernel_rt(n, ret))
WS_RT_ALIAS(cudaGraphKernelNodeGetParams_v2, cudaGraphKernelNodeGetParams)

WS_RT_API(cudaGraphKernelNodeSetAttribute,
          (struct ws_node * n, int id, const union cuda_launch_attribute_value *value))
{
    bool ok = ws_node_valid(n) && n->type == WS_NODE_KERNEL && value;
    return ws_rt_record(ok ? ws_node_set_attribute(n, id, value) : CUDA_INVALID_VALUE);
}
WS_RT_API(cudaGraphKernelNodeGetAttribute,
          (struct ws_node * n, int id, union cuda_launch_attribute_value *value))
{
    bool ok = ws_node_valid(n) && n->type == WS_NODE_KERNEL && value;
    return ws_rt_record(ok ? ws_node_get_attribute(n, id, value) : CUDA_INVALID_VALUE);
}
WS_RT_API(cudaGraphKernelNodeCopyAttributes, (struct ws_node * dst, struct ws_node *src))
{
    return ws_rt_record(ws_node_copy_attributes(dst, src));
}

/* ---- copies ---- */

#define P3D   const struct cuda_memcpy_3d_parms *p
#define P1D   void *dst, const void *src, size_t bytes, int kind
#define PTO   const void *symbol, const void *src, size_t bytes, size_t offset, int kind
#define PFROM void *dst, const void *symbol, size_t bytes, size_t offset, int kind
WS_RT_ADD_NODE(cudaGraphAddMemcpyNode, (P3D), ws_content_memcpy_rt(&c, p))
WS_RT_SET_NODE(cudaGraphMemcpyNodeSetParams, (P3D), ws_content_memcpy_rt(&c, p))
WS_RT_SET_EXEC_NODE(cudaGraphExecMemcpyNodeSetParams, (P3D), ws_content_memcpy_rt(&c, p))
WS_RT_ASK_NODE(cudaGraphMemcpyNodeGetParams, struct cuda_memcpy_3d_parms *,
               ws_node_memcpy_rt(n, ret))

WS_RT_ADD_NODE(cudaGraphAddMemcpyNode1D, (P1D), ws_content_memcpy_1d(&c, dst, src, bytes, kind))
WS_RT_SET_NODE(cudaGraphMemcpyNodeSetParams1D, (P1D),
               ws_content_memcpy_1d(&c, dst, src, bytes, kind))
WS_RT_SET_EXEC_NODE(cudaGraphExecMemcpyNodeSetParams1D, (P1D),
                    ws_content_memcpy_1d(&c, dst, src, bytes, kind))

WS_RT_ADD_NODE(cudaGraphAddMemcpyNodeToSymbol, (PTO),
               ws_content_symbol(&c, symbol, (void *)src, bytes, offset, kind, true))
WS_RT_SET_NODE(cudaGraphMemcpyNodeSetParamsToSymbol, (PTO),
               ws_content_symbol(&c, symbol, (void *)src, bytes, offset, kind, true))
WS_RT_SET_EXEC_NODE(cudaGraphExecMemcpyNodeSetParamsToSymbol, (PTO),
                    ws_content_symbol(&c, symbol, (void *)src, bytes, offset, kind, true))

WS_RT_ADD_NODE(cudaGraphAddMemcpyNodeFromSymbol, (PFROM),
               ws_content_symbol(&c, symbol, dst, bytes, offset, kind, false))
WS_RT_SET_NODE(cudaGraphMemcpyNodeSetParamsFromSymbol, (PFROM),
               ws_content_symbol(&c, symbol, dst, bytes, offset, kind, false))
WS_RT_SET_EXEC_NODE(cudaGraphExecMemcpyNodeSetParamsFromSymbol, (PFROM),
                    ws_content_symbol(&c, symbol, dst, bytes, offset, kind, false))

/* ---- fills, host functions, events ---- */

#define PSET const struct cuda_memset_node *p
WS_RT_ADD_NODE(cudaGraphAddMemsetNode, (PSET), ws_content_memset(&c, p))
WS_RT_SET_NODE(cudaGraphMemsetNodeSetParams, (PSET), ws_content_memset(&c, p))
WS_RT_SET_EXEC_NODE(cudaGraphExecMemsetNodeSetParams, (PSET), ws_content_memset(&c, p))
WS_RT_ASK_NODE(cudaGraphMemsetNodeGetParams, struct cuda_memset_node *, ws_node_memset(n, ret))

#define PHOST const struct cuda_host_node *p
WS_RT_ADD_NODE(cudaGraphAddHostNode, (PHOST), ws_content_host(&c, p))
WS_RT_SET_NODE(cudaGraphHostNodeSetParams, (PHOST), ws_content_host(&c, p))
WS_RT_SET_EXEC_NODE(cudaGraphExecHostNodeSetParams, (PHOST), ws_content_host(&c, p))
WS_RT_ASK_NODE(cudaGraphHostNodeGetParams, struct cuda_host_node *, ws_node_host(n, ret))

WS_RT_ADD_NODE(cudaGraphAddEventRecordNode, (void *event),
               ws_content_event(&c, WS_NODE_EVENT_RECORD, event))
WS_RT_SET_NODE(cudaGraphEventRecordNodeSetEvent, (void *event),
               ws_content_event(&c, WS_NODE_EVENT_RECORD, event))
WS_RT_SET_EXEC_NODE(cudaGraphExecEventRecordNodeSetEvent, (void *event),
                    ws_content_event(&c, WS_NODE_EVENT_RECORD, event))
WS_RT_ASK_NODE(cudaGraphEventRecordNodeGetEvent, void **,
               ws_node_event(n, WS_NODE_EVENT_RECORD, ret))
WS_RT_ADD_NODE(cudaGraphAddEventWaitNode, (void *event),
               ws_content_event(&c, WS_NODE_WAIT_EVENT, event))
WS_RT_SET_NODE(cudaGraphEventWaitNodeSetEvent, (void *event),
               ws_content_event(&c, WS_NODE_WAIT_EVENT, event))
WS_RT_SET_EXEC_NODE(cudaGraphExecEventWaitNodeSetEvent, (void *event),
                    ws_content_event(&c, WS_NODE_WAIT_EVENT, event))
WS_RT_ASK_NODE(cudaGraphEventWaitNodeGetEvent, void **, ws_node_event(n, WS_NODE_WAIT_EVENT, ret))

/* ---- child graphs, memory, nothing ---- */

WS_RT_ADD_NODE(cudaGraphAddChildGraphNode, (struct ws_graph * child),
               ws_content_child(&c, child, 0))
WS_RT_SET_EXEC_NODE(cudaGraphExecChildGraphNodeSetParams, (struct ws_graph * child),
                    ws_content_child(&c, child, 0))
WS_RT_ASK_NODE(cudaGraphChildGraphNodeGetGraph, struct ws_graph **, ws_node_child(n, ret))

WS_RT_ADD_NODE(cudaGraphAddMemAllocNode, (struct cuda_alloc_node * p), ws_content_alloc(&c, p))
WS_RT_ASK_NODE(cudaGraphMemAllocNodeGetParams, struct cuda_alloc_node *, ws_node_alloc(n, ret))
WS_RT_ADD_NODE(cudaGraphAddMemFreeNode, (void *p), ws_content_free(&c, (uintptr_t)p))
WS_RT_ASK_NODE(cudaGraphMemFreeNodeGetParams, uint64_t *, ws_node_free_address(n, ret))

WS_RT_API(cudaGraphAddEmptyNode,
          (struct ws_node * *ret, struct ws_graph *g, struct ws_node *const *deps, size_t n_deps))
{
    WS_RT_ENTER(device);
    struct ws_content c = {.runtime = true, .device = device, .type = WS_NODE_EMPTY};
    return ws_rt_record(ws_content_add(&c, g, deps, NULL, n_deps, ret));
}

/* ---- any kind ---- */

WS_RT_API(cudaGraphAddNode_v2,
          (struct ws_node * *ret, struct ws_graph *g, struct ws_node *const *deps,
           const struct cuda_edge_data *data, size_t n_deps, struct cuda_node_params *p))
{
    FILL(ws_content_any(&c, p));
    return ws_rt_record(code ? code : ws_content_add(&c, g, deps, data, n_deps, ret));
}
WS_RT_SET_NODE(cudaGraphNodeSetParams, (struct cuda_node_params * p), ws_content_any(&c, p))
WS_RT_SET_EXEC_NODE(cudaGraphExecNodeSetParams, (struct cuda_node_params * p),
                    ws_content_any(&c, p))
