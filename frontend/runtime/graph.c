// SPDX-License-Identifier: Apache-2.0
/* Chapter "Graph Management": nodes whose parameters are other ones in the runtime than in the
 * driver. */
#include "frontend/both/graph_node.h"

/* ---- kernels ---- */

WS_RT_ADD_NODE(cudaGraphAddKernelNode, (const struct cuda_kernel_node *p),
               ws_content_kernel_rt(&c, p))
WS_RT_SET_NODE(cudaGraphKernelNodeSetParams, (const struct cuda_kernel_node *p),
               ws_content_kernel_rt(&c, p))
WS_RT_SET_EXEC_NODE(cudaGraphExecKernelNodeSetParams, (const struct cuda_kernel_node *p),
                    ws_content_kernel_rt(&c, p))
WS_RT_ASK_NODE(cudaGraphKernelNodeGetParams, struct cuda_kernel_node *, ws_node_kernel_rt(n, ret))
WS_RT_ALIAS(cudaGraphKernelNodeGetParams_v2, cudaGraphKernelNodeGetParams)

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

/* ---- fills ---- */

#define PSET const struct cuda_memset_node *p
WS_RT_ADD_NODE(cudaGraphAddMemsetNode, (PSET), ws_content_memset(&c, p))
WS_RT_SET_EXEC_NODE(cudaGraphExecMemsetNodeSetParams, (PSET), ws_content_memset(&c, p))

/* ---- conditional nodes ---- */

WS_RT_API(cudaGraphConditionalHandleCreate,
          (uint64_t * ret, struct ws_graph *g, unsigned value, unsigned flags))
{
    WS_RT_ENTER(device);
    if (!ws_graph_valid(g) || g->of_exec)
        return ws_rt_record(CUDA_INVALID_VALUE);
    return ws_rt_record(ws_graph_handle_new(g, value, flags, ret));
}
