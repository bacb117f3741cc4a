// SPDX-License-Identifier: Apache-2.0
/* Chapter "Graph Management": nodes whose parameters are other ones in the driver than in the
 * runtime. */
#include "frontend/both/graph_node.h"

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

/* ---- copies, fills ---- */

/* The context only says where a copy is done; but it must be one. */
static int in_ctx(struct ws_content *c, struct ws_cuda_context *ctx, int code)
{
    c->ctx = ctx;
    return !code && !ws_ctx_valid(ctx) ? CUDA_INVALID_VALUE : code;
}

#define P3D const struct cu_memcpy_3d *p
WS_DRV_ADD_NODE(cuGraphAddMemcpyNode, (P3D, struct ws_cuda_context *ctx),
                in_ctx(&c, ctx, ws_content_memcpy_drv(&c, p)))
WS_DRV_SET_NODE(cuGraphMemcpyNodeSetParams, (P3D), ws_content_memcpy_drv(&c, p))
WS_DRV_SET_EXEC_NODE(cuGraphExecMemcpyNodeSetParams, (P3D, struct ws_cuda_context *ctx),
                     in_ctx(&c, ctx, ws_content_memcpy_drv(&c, p)))
WS_DRV_ASK_NODE(cuGraphMemcpyNodeGetParams, struct cu_memcpy_3d *, ws_node_memcpy_drv(n, ret))

#define PSET const struct cuda_memset_node *p
WS_DRV_ADD_NODE(cuGraphAddMemsetNode, (PSET, struct ws_cuda_context *ctx),
                in_ctx(&c, ctx, ws_content_memset(&c, p)))
WS_DRV_SET_EXEC_NODE(cuGraphExecMemsetNodeSetParams, (PSET, struct ws_cuda_context *ctx),
                     in_ctx(&c, ctx, ws_content_memset(&c, p)))

/* ---- memory operations ---- */

#define PBATCH const struct cu_batch_node *p
WS_DRV_ADD_NODE(cuGraphAddBatchMemOpNode, (PBATCH), ws_content_batch(&c, p))
WS_DRV_SET_NODE(cuGraphBatchMemOpNodeSetParams, (PBATCH), ws_content_batch(&c, p))
WS_DRV_SET_EXEC_NODE(cuGraphExecBatchMemOpNodeSetParams, (PBATCH), ws_content_batch(&c, p))
WS_DRV_ASK_NODE(cuGraphBatchMemOpNodeGetParams, struct cu_batch_node *, ws_node_batch(n, ret))
