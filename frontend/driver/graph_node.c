// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API, "Graph Management": nodes by kind. For each kind there is adding one, changing one, changing one in an exec, and
 * asking; what the parameters mean is read by graph_params.c. */
#include "frontend/facade.h"
#include "frontend/graph/params.h"

#define FILL(call)                                                                                 \
    WS_DRV_ENTER(ctx_);                                                                            \
    struct ws_content c = {.device = ctx_->device};                                                \
    int code = call

#define WS_DRV_ADD_NODE(name, params, call)                                                        \
    WS_DRV_API(name, (struct ws_node * *ret, struct ws_graph * g, struct ws_node *const *deps,     \
                      size_t n_deps, WS_UNPACK params))                                            \
    {                                                                                              \
        FILL(call);                                                                                \
        return code ? code : ws_content_add(&c, g, deps, NULL, n_deps, ret);                       \
    }
#define WS_DRV_SET_NODE(name, params, call)                                                        \
    WS_DRV_API(name, (struct ws_node * n, WS_UNPACK params))                                       \
    {                                                                                              \
        FILL(call);                                                                                \
        return code ? code : ws_content_set(&c, n);                                                \
    }
#define WS_DRV_SET_EXEC_NODE(name, params, call)                                                   \
    WS_DRV_API(name, (struct ws_exec * e, struct ws_node * n, WS_UNPACK params))                   \
    {                                                                                              \
        FILL(call);                                                                                \
        return code ? code : ws_content_set_exec(&c, e, n);                                        \
    }
#define WS_DRV_ASK_NODE(name, type, call)                                                          \
    WS_DRV_API(name, (struct ws_node * n, type ret))                                               \
    {                                                                                              \
        WS_DRV_ENTER(ctx_);                                                                        \
        (void)ctx_;                                                                                \
        return call;                                                                               \
    }

/* ---- kernels: _v2 has a CUkernel and a context too ---- */

#define PKERNEL const struct cu_kernel_node *p
WS_DRV_ADD_NODE(cuGraphAddKernelNode_v2, (PKERNEL), ws_content_kernel_drv(&c, p, true))
WS_DRV_SET_NODE(cuGraphKernelNodeSetParams_v2, (PKERNEL), ws_content_kernel_drv(&c, p, true))
WS_DRV_SET_EXEC_NODE(cuGraphExecKernelNodeSetParams_v2, (PKERNEL),
                     ws_content_kernel_drv(&c, p, true))
WS_DRV_ASK_NODE(cuGraphKernelNodeGetParams_v2, struct cu_kernel_node *,
                ws_node_kernel_drv(n, ret, true))
WS_DRV_ADD_NODE(cuGraphAddKernelNode, (PKERNEL), ws_content_kernel_drv(&c, p, false))
WS_DRV_SET_NODE(cuGraphKernelNodeSetParams, (PKERNEL), ws_content_kernel_drv(&c, p, false))
WS_DRV_SET_EXEC_NODE(cuGraphExecKernelNodeSetParams, (PKERNEL), ws_content_kernel_drv(&c, p, false))
WS_DRV_ASK_NODE(cuGraphKernelNodeGetParams, struct cu_kernel_node *,
                ws_node_kernel_drv(n, ret, false))

WS_DRV_API(cuGraphKernelNodeSetAttribute,
           (struct ws_node * n, int id, const union cuda_launch_attribute_value *value))
{
    bool ok = ws_node_valid(n) && n->type == WS_NODE_KERNEL && value;
    return ok ? ws_node_set_attribute(n, id, value) : CUDA_INVALID_VALUE;
}
WS_DRV_API(cuGraphKernelNodeGetAttribute,
           (struct ws_node * n, int id, union cuda_launch_attribute_value *value))
{
    bool ok = ws_node_valid(n) && n->type == WS_NODE_KERNEL && value;
    return ok ? ws_node_get_attribute(n, id, value) : CUDA_INVALID_VALUE;
}
WS_DRV_API(cuGraphKernelNodeCopyAttributes, (struct ws_node * dst, struct ws_node *src))
{
    return ws_node_copy_attributes(dst, src);
}

/* ---- copies, fills ---- */

/* The context only says where a copy is done; but it must be one. */
static int in_ctx(struct ws_content *c, struct ws_ctx *ctx, int code)
{
    c->ctx = ctx;
    return !code && !ws_ctx_valid(ctx) ? CUDA_INVALID_VALUE : code;
}

#define P3D const struct cu_memcpy_3d *p
WS_DRV_ADD_NODE(cuGraphAddMemcpyNode, (P3D, struct ws_ctx *ctx),
                in_ctx(&c, ctx, ws_content_memcpy_drv(&c, p)))
WS_DRV_SET_NODE(cuGraphMemcpyNodeSetParams, (P3D), ws_content_memcpy_drv(&c, p))
WS_DRV_SET_EXEC_NODE(cuGraphExecMemcpyNodeSetParams, (P3D, struct ws_ctx *ctx),
                     in_ctx(&c, ctx, ws_content_memcpy_drv(&c, p)))
WS_DRV_ASK_NODE(cuGraphMemcpyNodeGetParams, struct cu_memcpy_3d *, ws_node_memcpy_drv(n, ret))

#define PSET const struct cuda_memset_node *p
WS_DRV_ADD_NODE(cuGraphAddMemsetNode, (PSET, struct ws_ctx *ctx),
                in_ctx(&c, ctx, ws_content_memset(&c, p)))
WS_DRV_SET_NODE(cuGraphMemsetNodeSetParams, (PSET), ws_content_memset(&c, p))
WS_DRV_SET_EXEC_NODE(cuGraphExecMemsetNodeSetParams, (PSET, struct ws_ctx *ctx),
                     in_ctx(&c, ctx, ws_content_memset(&c, p)))
WS_DRV_ASK_NODE(cuGraphMemsetNodeGetParams, struct cuda_memset_node *, ws_node_memset(n, ret))

/* ---- host functions, events, memory operations ---- */

#define PHOST const struct cuda_host_node *p
WS_DRV_ADD_NODE(cuGraphAddHostNode, (PHOST), ws_content_host(&c, p))
WS_DRV_SET_NODE(cuGraphHostNodeSetParams, (PHOST), ws_content_host(&c, p))
WS_DRV_SET_EXEC_NODE(cuGraphExecHostNodeSetParams, (PHOST), ws_content_host(&c, p))
WS_DRV_ASK_NODE(cuGraphHostNodeGetParams, struct cuda_host_node *, ws_node_host(n, ret))

WS_DRV_ADD_NODE(cuGraphAddEventRecordNode, (void *event),
                ws_content_event(&c, WS_NODE_EVENT_RECORD, event))
WS_DRV_SET_NODE(cuGraphEventRecordNodeSetEvent, (void *event),
                ws_content_event(&c, WS_NODE_EVENT_RECORD, event))
WS_DRV_SET_EXEC_NODE(cuGraphExecEventRecordNodeSetEvent, (void *event),
                     ws_content_event(&c, WS_NODE_EVENT_RECORD, event))
WS_DRV_ASK_NODE(cuGraphEventRecordNodeGetEvent, void **,
                ws_node_event(n, WS_NODE_EVENT_RECORD, ret))
WS_DRV_ADD_NODE(cuGraphAddEventWaitNode, (void *event),
                ws_content_event(&c, WS_NODE_WAIT_EVENT, event))
WS_DRV_SET_NODE(cuGraphEventWaitNodeSetEvent, (void *event),
                ws_content_event(&c, WS_NODE_WAIT_EVENT, event))
WS_DRV_SET_EXEC_NODE(cuGraphExecEventWaitNodeSetEvent, (void *event),
                     ws_content_event(&c, WS_NODE_WAIT_EVENT, event))
WS_DRV_ASK_NODE(cuGraphEventWaitNodeGetEvent, void **, ws_node_event(n, WS_NODE_WAIT_EVENT, ret))

#define PBATCH const struct cu_batch_node *p
WS_DRV_ADD_NODE(cuGraphAddBatchMemOpNode, (PBATCH), ws_content_batch(&c, p))
WS_DRV_SET_NODE(cuGraphBatchMemOpNodeSetParams, (PBATCH), ws_content_batch(&c, p))
WS_DRV_SET_EXEC_NODE(cuGraphExecBatchMemOpNodeSetParams, (PBATCH), ws_content_batch(&c, p))
WS_DRV_ASK_NODE(cuGraphBatchMemOpNodeGetParams, struct cu_batch_node *, ws_node_batch(n, ret))

/* ---- child graphs, memory, nothing ---- */

WS_DRV_ADD_NODE(cuGraphAddChildGraphNode, (struct ws_graph * child), ws_content_child(&c, child, 0))
WS_DRV_SET_EXEC_NODE(cuGraphExecChildGraphNodeSetParams, (struct ws_graph * child),
                     ws_content_child(&c, child, 0))
WS_DRV_ASK_NODE(cuGraphChildGraphNodeGetGraph, struct ws_graph **, ws_node_child(n, ret))

WS_DRV_ADD_NODE(cuGraphAddMemAllocNode, (struct cuda_alloc_node * p), ws_content_alloc(&c, p))
WS_DRV_ASK_NODE(cuGraphMemAllocNodeGetParams, struct cuda_alloc_node *, ws_node_alloc(n, ret))
WS_DRV_ADD_NODE(cuGraphAddMemFreeNode, (uint64_t p), ws_content_free(&c, p))
WS_DRV_ASK_NODE(cuGraphMemFreeNodeGetParams, uint64_t *, ws_node_free_address(n, ret))

WS_DRV_API(cuGraphAddEmptyNode,
           (struct ws_node * *ret, struct ws_graph *g, struct ws_node *const *deps, size_t n_deps))
{
    WS_DRV_ENTER(ctx_);
    struct ws_content c = {.device = ctx_->device, .type = WS_NODE_EMPTY};
    return ws_content_add(&c, g, deps, NULL, n_deps, ret);
}

/* ---- any kind ---- */

WS_DRV_API(cuGraphAddNode_v2,
           (struct ws_node * *ret, struct ws_graph *g, struct ws_node *const *deps,
            const struct cuda_edge_data *data, size_t n_deps, struct cuda_node_params *p))
{
    FILL(ws_content_any(&c, p));
    return code ? code : ws_content_add(&c, g, deps, data, n_deps, ret);
}
WS_DRV_API(cuGraphAddNode, (struct ws_node * *ret, struct ws_graph *g, struct ws_node *const *deps,
                            size_t n_deps, struct cuda_node_params *p))
{
    return cuGraphAddNode_v2(ret, g, deps, NULL, n_deps, p);
}
WS_DRV_SET_NODE(cuGraphNodeSetParams, (struct cuda_node_params * p), ws_content_any(&c, p))
WS_DRV_SET_EXEC_NODE(cuGraphExecNodeSetParams, (struct cuda_node_params * p), ws_content_any(&c, p))
