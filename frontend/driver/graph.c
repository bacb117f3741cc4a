// SPDX-License-Identifier: Apache-2.0
/* Chapter "Graph Management": the driver's forms of calls about a whole graph that the runtime has
 * in another form. */
#include "frontend/facade.h"
#include "frontend/graph/params.h"
#include "frontend/stream/host.h"

#define CHECK(condition)                                                                           \
    if (!(condition))                                                                              \
    return CUDA_INVALID_VALUE

/* ---- graphs ---- */

WS_DRV_API(cuGraphGetEdges,
           (struct ws_graph * g, struct ws_node **from, struct ws_node **to, size_t *n))
{
    WS_DRV_ENTER(c);
    return ws_graph_edges(g, from, to, NULL, n);
}

WS_DRV_API(cuGraphNodeGetDependencies, (struct ws_node * n, struct ws_node **ret, size_t *n_ret))
{
    WS_DRV_ENTER(c);
    return ws_node_neighbours(n, false, ret, NULL, n_ret);
}

WS_DRV_API(cuGraphNodeGetDependentNodes, (struct ws_node * n, struct ws_node **ret, size_t *n_ret))
{
    WS_DRV_ENTER(c);
    return ws_node_neighbours(n, true, ret, NULL, n_ret);
}

WS_DRV_API(cuGraphAddDependencies,
           (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to, size_t n))
{
    WS_DRV_ENTER(c);
    CHECK(ws_graph_valid(g));
    return ws_graph_add_edges(g, from, to, NULL, n);
}

WS_DRV_API(cuGraphRemoveDependencies,
           (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to, size_t n))
{
    WS_DRV_ENTER(c);
    CHECK(ws_graph_valid(g));
    return ws_graph_remove_edges(g, from, to, NULL, n);
}

WS_DRV_API(cuGraphConditionalHandleCreate,
           (uint64_t * ret, struct ws_graph *g, struct ws_cuda_context *ctx, unsigned value,
            unsigned flags))
{
    WS_DRV_ENTER(c);
    CHECK(ws_graph_valid(g) && !g->of_exec && (!ctx || ws_ctx_valid(ctx)));
    return ws_graph_handle_new(g, value, flags, ret);
}

/* ---- execs ---- */

/* The first two versions tell of a bad node, and have a buffer for words about it. */
WS_DRV_API(cuGraphInstantiate_v2, (struct ws_exec * *ret, struct ws_graph *g, struct ws_node **bad,
                                   char *log, size_t log_bytes))
{
    struct cuda_instantiate_params p = {0};
    WS_DRV_ENTER(c);
    int code = ws_graph_instantiate(ret, g, c->device, 0, &p);
    if (bad)
        *bad = p.errNode_out;
    if (log && log_bytes)
        *log = '\0';
    return code;
}
WS_DRV_ALIAS(cuGraphInstantiate, cuGraphInstantiate_v2)

WS_DRV_API(cuGraphExecUpdate_v2,
           (struct ws_exec * e, struct ws_graph *g, struct cuda_update_result *ret))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_exec_update_checked(e, g, ret);
}

WS_DRV_API(cuGraphExecUpdate,
           (struct ws_exec * e, struct ws_graph *g, struct ws_node **bad, int *ret))
{
    struct cuda_update_result r;
    WS_DRV_ENTER(c);
    int code = ws_exec_update_checked(e, g, &r);
    if (code && code != CUDA_GRAPH_UPDATE_FAILURE)
        return code;
    if (bad)
        *bad = r.errorNode;
    if (ret)
        *ret = r.result;
    return code;
}
