// SPDX-License-Identifier: Apache-2.0
/* frontend/both/graph_node.h - defines the calls about one kind of graph node. For each kind there
 * is adding a node, changing one, changing one in an exec, and asking. What the parameters mean is
 * read by graph/content.c.
 *
 * WS_RT_ADD_NODE(cudaX, (parameters), fill)           adds a node. @fill: an expression that puts
 * the parameters into `c`, a
 *                                                     struct ws_content, and returns a CUDA code
 * WS_RT_SET_NODE(cudaX, (parameters), fill)           changes node `n` of a graph
 * WS_RT_SET_EXEC_NODE(cudaX, (parameters), fill)      changes node `n` in exec `e`
 * WS_RT_ASK_NODE(cudaX, type, answer)                 asks node `n`. @answer: an expression that
 * fills `ret`, of the type given,
 *                                                     and returns a CUDA code
 *
 * WS_DRV_… define the driver's call, and WS_BOTH_…(cudaX, cuX, …) define both. */
#ifndef WS_FRONTEND_BOTH_GRAPH_NODE_H
#define WS_FRONTEND_BOTH_GRAPH_NODE_H

#include "frontend/facade.h"
#include "frontend/graph/params.h"

/* Enters the context, and begins a description of a node's content. Return: a CUDA code. */
static inline int ws_content_begin(enum ws_api api, struct ws_content *ret)
{
    WS_BOTH_ENTER(ctx);
    *ret = (struct ws_content){.runtime = api == WS_RUNTIME, .device = ctx->device};
    return CUDA_OK;
}
static inline int ws_node_ask_begin(enum ws_api api)
{
    WS_BOTH_ENTER(ctx);
    return CUDA_OK;
}

#define WS_NODE_FILL(api, fill)                                                                    \
    struct ws_content c;                                                                           \
    int code = ws_content_begin(api, &c);                                                          \
    if (!code)                                                                                     \
    code = fill
#define WS_ADD_NODE(api, name, params, fill)                                                       \
    WS_API(name, (struct ws_node * *ret, struct ws_graph * g, struct ws_node *const *deps,         \
                  size_t n_deps, WS_UNPACK params))                                                \
    {                                                                                              \
        WS_NODE_FILL(api, fill);                                                                   \
        return ws_api_record(api, code ? code : ws_content_add(&c, g, deps, NULL, n_deps, ret));   \
    }
#define WS_SET_NODE(api, name, params, fill)                                                       \
    WS_API(name, (struct ws_node * n, WS_UNPACK params))                                           \
    {                                                                                              \
        WS_NODE_FILL(api, fill);                                                                   \
        return ws_api_record(api, code ? code : ws_content_set(&c, n));                            \
    }
#define WS_SET_EXEC_NODE(api, name, params, fill)                                                  \
    WS_API(name, (struct ws_exec * e, struct ws_node * n, WS_UNPACK params))                       \
    {                                                                                              \
        WS_NODE_FILL(api, fill);                                                                   \
        return ws_api_record(api, code ? code : ws_content_set_exec(&c, e, n));                    \
    }
#define WS_ASK_NODE(api, name, type, answer)                                                       \
    WS_API(name, (struct ws_node * n, type ret))                                                   \
    {                                                                                              \
        int code = ws_node_ask_begin(api);                                                         \
        return ws_api_record(api, code ? code : answer);                                           \
    }

#define WS_RT_ADD_NODE(name, params, fill)       WS_ADD_NODE(WS_RUNTIME, name, params, fill)
#define WS_RT_SET_NODE(name, params, fill)       WS_SET_NODE(WS_RUNTIME, name, params, fill)
#define WS_RT_SET_EXEC_NODE(name, params, fill)  WS_SET_EXEC_NODE(WS_RUNTIME, name, params, fill)
#define WS_RT_ASK_NODE(name, type, answer)       WS_ASK_NODE(WS_RUNTIME, name, type, answer)
#define WS_DRV_ADD_NODE(name, params, fill)      WS_ADD_NODE(WS_DRIVER, name, params, fill)
#define WS_DRV_SET_NODE(name, params, fill)      WS_SET_NODE(WS_DRIVER, name, params, fill)
#define WS_DRV_SET_EXEC_NODE(name, params, fill) WS_SET_EXEC_NODE(WS_DRIVER, name, params, fill)
#define WS_DRV_ASK_NODE(name, type, answer)      WS_ASK_NODE(WS_DRIVER, name, type, answer)

#define WS_BOTH_ADD_NODE(rt, drv, params, fill)                                                    \
    WS_RT_ADD_NODE(rt, params, fill)                                                               \
    WS_DRV_ADD_NODE(drv, params, fill)
#define WS_BOTH_SET_NODE(rt, drv, params, fill)                                                    \
    WS_RT_SET_NODE(rt, params, fill)                                                               \
    WS_DRV_SET_NODE(drv, params, fill)
#define WS_BOTH_SET_EXEC_NODE(rt, drv, params, fill)                                               \
    WS_RT_SET_EXEC_NODE(rt, params, fill)                                                          \
    WS_DRV_SET_EXEC_NODE(drv, params, fill)
#define WS_BOTH_ASK_NODE(rt, drv, type, answer)                                                    \
    WS_RT_ASK_NODE(rt, type, answer)                                                               \
    WS_DRV_ASK_NODE(drv, type, answer)

#endif
