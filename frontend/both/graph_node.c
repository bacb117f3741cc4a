// SPDX-License-Identifier: Apache-2.0
/* Chapter "Graph Management": nodes whose parameters are the same in the runtime and in the
 * driver. */
#include "frontend/both/graph_node.h"

/* ---- kernels ---- */

WS_BOTH_API(cudaGraphKernelNodeSetAttribute, cuGraphKernelNodeSetAttribute,
            (struct ws_node * n, int id, const union cuda_launch_attribute_value *value),
            (n, id, value))
{
    bool ok = ws_node_valid(n) && n->type == WS_NODE_KERNEL && value;
    return ok ? ws_node_set_attribute(n, id, value) : CUDA_INVALID_VALUE;
}

WS_BOTH_API(cudaGraphKernelNodeGetAttribute, cuGraphKernelNodeGetAttribute,
            (struct ws_node * n, int id, union cuda_launch_attribute_value *value), (n, id, value))
{
    bool ok = ws_node_valid(n) && n->type == WS_NODE_KERNEL && value;
    return ok ? ws_node_get_attribute(n, id, value) : CUDA_INVALID_VALUE;
}

WS_BOTH_API(cudaGraphKernelNodeCopyAttributes, cuGraphKernelNodeCopyAttributes,
            (struct ws_node * dst, struct ws_node *src), (dst, src))
{
    return ws_node_copy_attributes(dst, src);
}

/* ---- fills: the driver's calls that add a node have a context too ---- */

#define FILL const struct cuda_memset_node *p
WS_BOTH_SET_NODE(cudaGraphMemsetNodeSetParams, cuGraphMemsetNodeSetParams, (FILL),
                 ws_content_memset(&c, p))
WS_BOTH_ASK_NODE(cudaGraphMemsetNodeGetParams, cuGraphMemsetNodeGetParams,
                 struct cuda_memset_node *, ws_node_memset(n, ret))

/* ---- host functions, events ---- */

#define HOST const struct cuda_host_node *p
WS_BOTH_ADD_NODE(cudaGraphAddHostNode, cuGraphAddHostNode, (HOST), ws_content_host(&c, p))
WS_BOTH_SET_NODE(cudaGraphHostNodeSetParams, cuGraphHostNodeSetParams, (HOST),
                 ws_content_host(&c, p))
WS_BOTH_SET_EXEC_NODE(cudaGraphExecHostNodeSetParams, cuGraphExecHostNodeSetParams, (HOST),
                      ws_content_host(&c, p))
WS_BOTH_ASK_NODE(cudaGraphHostNodeGetParams, cuGraphHostNodeGetParams, struct cuda_host_node *,
                 ws_node_host(n, ret))

WS_BOTH_ADD_NODE(cudaGraphAddEventRecordNode, cuGraphAddEventRecordNode, (void *event),
                 ws_content_event(&c, WS_NODE_EVENT_RECORD, event))
WS_BOTH_SET_NODE(cudaGraphEventRecordNodeSetEvent, cuGraphEventRecordNodeSetEvent, (void *event),
                 ws_content_event(&c, WS_NODE_EVENT_RECORD, event))
WS_BOTH_SET_EXEC_NODE(cudaGraphExecEventRecordNodeSetEvent, cuGraphExecEventRecordNodeSetEvent,
                      (void *event), ws_content_event(&c, WS_NODE_EVENT_RECORD, event))
WS_BOTH_ASK_NODE(cudaGraphEventRecordNodeGetEvent, cuGraphEventRecordNodeGetEvent, void **,
                 ws_node_event(n, WS_NODE_EVENT_RECORD, ret))

WS_BOTH_ADD_NODE(cudaGraphAddEventWaitNode, cuGraphAddEventWaitNode, (void *event),
                 ws_content_event(&c, WS_NODE_WAIT_EVENT, event))
WS_BOTH_SET_NODE(cudaGraphEventWaitNodeSetEvent, cuGraphEventWaitNodeSetEvent, (void *event),
                 ws_content_event(&c, WS_NODE_WAIT_EVENT, event))
WS_BOTH_SET_EXEC_NODE(cudaGraphExecEventWaitNodeSetEvent, cuGraphExecEventWaitNodeSetEvent,
                      (void *event), ws_content_event(&c, WS_NODE_WAIT_EVENT, event))
WS_BOTH_ASK_NODE(cudaGraphEventWaitNodeGetEvent, cuGraphEventWaitNodeGetEvent, void **,
                 ws_node_event(n, WS_NODE_WAIT_EVENT, ret))

/* ---- child graphs, memory, nothing ---- */

WS_BOTH_ADD_NODE(cudaGraphAddChildGraphNode, cuGraphAddChildGraphNode, (struct ws_graph * child),
                 ws_content_child(&c, child, 0))
WS_BOTH_SET_EXEC_NODE(cudaGraphExecChildGraphNodeSetParams, cuGraphExecChildGraphNodeSetParams,
                      (struct ws_graph * child), ws_content_child(&c, child, 0))
WS_BOTH_ASK_NODE(cudaGraphChildGraphNodeGetGraph, cuGraphChildGraphNodeGetGraph, struct ws_graph **,
                 ws_node_child(n, ret))

WS_BOTH_ADD_NODE(cudaGraphAddMemAllocNode, cuGraphAddMemAllocNode, (struct cuda_alloc_node * p),
                 ws_content_alloc(&c, p))
WS_BOTH_ASK_NODE(cudaGraphMemAllocNodeGetParams, cuGraphMemAllocNodeGetParams,
                 struct cuda_alloc_node *, ws_node_alloc(n, ret))
WS_BOTH_ADD_NODE(cudaGraphAddMemFreeNode, cuGraphAddMemFreeNode, (uint64_t address),
                 ws_content_free(&c, address))
WS_BOTH_ASK_NODE(cudaGraphMemFreeNodeGetParams, cuGraphMemFreeNodeGetParams, uint64_t *,
                 ws_node_free_address(n, ret))

WS_BOTH_API(cudaGraphAddEmptyNode, cuGraphAddEmptyNode,
            (struct ws_node * *ret, struct ws_graph *g, struct ws_node *const *deps, size_t n_deps),
            (ret, g, deps, n_deps))
{
    struct ws_content c;
    int code = ws_content_begin(api, &c);
    c.type = WS_NODE_EMPTY;
    return code ? code : ws_content_add(&c, g, deps, NULL, n_deps, ret);
}

/* ---- any kind ---- */

WS_BOTH_API(cudaGraphAddNode_v2, cuGraphAddNode_v2,
            (struct ws_node * *ret, struct ws_graph *g, struct ws_node *const *deps,
             const struct cuda_edge_data *data, size_t n_deps, struct cuda_node_params *p),
            (ret, g, deps, data, n_deps, p))
{
    WS_NODE_FILL(api, ws_content_any(&c, p));
    return code ? code : ws_content_add(&c, g, deps, data, n_deps, ret);
}
/* Of CUDA 13.4: the same, if a kernel and its context belong together, as they do here. */
WS_DRV_ALIAS(cuGraphAddNode_v3, cuGraphAddNode_v2)
WS_DRV_API(cuGraphAddNode, (struct ws_node * *ret, struct ws_graph *g, struct ws_node *const *deps,
                            size_t n_deps, struct cuda_node_params *p))
{
    return cuGraphAddNode_v2(ret, g, deps, NULL, n_deps, p);
}
WS_BOTH_SET_NODE(cudaGraphNodeSetParams, cuGraphNodeSetParams, (struct cuda_node_params * p),
                 ws_content_any(&c, p))
WS_DRV_ALIAS(cuGraphNodeSetParams_v2, cuGraphNodeSetParams)
WS_BOTH_SET_EXEC_NODE(cudaGraphExecNodeSetParams, cuGraphExecNodeSetParams,
                      (struct cuda_node_params * p), ws_content_any(&c, p))
