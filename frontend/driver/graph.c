// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API, "Graph Management": graphs as a whole. What they do stands in graph.c, graph_exec.c and graph_launch.c. */
#include "frontend/facade.h"
#include "frontend/graph/params.h"
#include "frontend/stream/host.h"

#define CHECK(condition)                                                                           \
    if (!(condition))                                                                              \
    return CUDA_INVALID_VALUE

/* ---- graphs ---- */

WS_DRV_API(cuGraphCreate, (struct ws_graph * *ret, unsigned flags))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ret && !flags);
    *ret = ws_graph_new();
    return *ret ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

WS_DRV_API(cuGraphDestroy, (struct ws_graph * g))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_graph_valid(g) && !g->owner && !g->of_exec);
    ws_graph_free(g);
    return CUDA_OK;
}

WS_DRV_API(cuGraphClone, (struct ws_graph * *ret, struct ws_graph *g))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ret && ws_graph_valid(g));
    return g->has_memory ? CUDA_NOT_SUPPORTED : ws_graph_clone(g, ret);
}

WS_DRV_API(cuGraphNodeFindInClone,
           (struct ws_node * *ret, struct ws_node *n, struct ws_graph *clone))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_graph_find_in_clone(n, clone, ret);
}

WS_DRV_API(cuGraphNodeGetType, (struct ws_node * n, int *ret))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ret && ws_node_valid(n));
    *ret = (int)n->type;
    return CUDA_OK;
}

WS_DRV_API(cuGraphGetNodes, (struct ws_graph * g, struct ws_node **ret, size_t *n))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_graph_list(g, WS_LIST_NODES, ret, n);
}

WS_DRV_API(cuGraphGetRootNodes, (struct ws_graph * g, struct ws_node **ret, size_t *n))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_graph_list(g, WS_LIST_ROOTS, ret, n);
}

WS_DRV_API(cuGraphGetEdges_v2, (struct ws_graph * g, struct ws_node **from, struct ws_node **to,
                                struct cuda_edge_data *data, size_t *n))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_graph_edges(g, from, to, data, n);
}

WS_DRV_API(cuGraphNodeGetDependencies_v2,
           (struct ws_node * n, struct ws_node **ret, struct cuda_edge_data *data, size_t *n_ret))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_node_neighbours(n, false, ret, data, n_ret);
}

WS_DRV_API(cuGraphNodeGetDependentNodes_v2,
           (struct ws_node * n, struct ws_node **ret, struct cuda_edge_data *data, size_t *n_ret))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_node_neighbours(n, true, ret, data, n_ret);
}

WS_DRV_API(cuGraphAddDependencies_v2,
           (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to,
            const struct cuda_edge_data *data, size_t n))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_graph_valid(g));
    return ws_graph_add_edges(g, from, to, data, n);
}

WS_DRV_API(cuGraphRemoveDependencies_v2,
           (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to,
            const struct cuda_edge_data *data, size_t n))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_graph_valid(g));
    return ws_graph_remove_edges(g, from, to, data, n);
}

WS_DRV_API(cuGraphGetEdges,
           (struct ws_graph * g, struct ws_node **from, struct ws_node **to, size_t *n))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_graph_edges(g, from, to, NULL, n);
}

WS_DRV_API(cuGraphNodeGetDependencies, (struct ws_node * n, struct ws_node **ret, size_t *n_ret))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_node_neighbours(n, false, ret, NULL, n_ret);
}

WS_DRV_API(cuGraphNodeGetDependentNodes, (struct ws_node * n, struct ws_node **ret, size_t *n_ret))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_node_neighbours(n, true, ret, NULL, n_ret);
}

WS_DRV_API(cuGraphAddDependencies,
           (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to, size_t n))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_graph_valid(g));
    return ws_graph_add_edges(g, from, to, NULL, n);
}

WS_DRV_API(cuGraphRemoveDependencies,
           (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to, size_t n))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_graph_valid(g));
    return ws_graph_remove_edges(g, from, to, NULL, n);
}

WS_DRV_API(cuGraphDestroyNode, (struct ws_node * n))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_node_valid(n));
    return ws_node_destroy(n);
}

WS_DRV_API(cuGraphDebugDotPrint, (struct ws_graph * g, const char *path, unsigned flags))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_graph_valid(g) && path);
    return ws_graph_dot(g, path, flags);
}

WS_DRV_API(cuGraphConditionalHandleCreate,
           (uint64_t * ret, struct ws_graph *g, struct ws_ctx *ctx, unsigned value, unsigned flags))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_graph_valid(g) && !g->of_exec && (!ctx || ws_ctx_valid(ctx)));
    return ws_graph_handle_new(g, value, flags, ret);
}

/* ---- execs ---- */

WS_DRV_API(cuGraphInstantiateWithFlags,
           (struct ws_exec * *ret, struct ws_graph *g, unsigned long long flags))
{
    WS_DRV_ENTER(c);
    CHECK(!(flags & WS_GRAPH_UPLOAD)); /* needs a stream to do it on */
    return ws_graph_instantiate(ret, g, c->device, flags, NULL);
}

WS_DRV_API(cuGraphInstantiateWithParams,
           (struct ws_exec * *ret, struct ws_graph *g, struct cuda_instantiate_params *p))
{
    WS_DRV_ENTER(c);
    CHECK(p);
    return ws_graph_instantiate(ret, g, c->device, p->flags, p);
}
WS_DRV_ALIAS(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams)

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
    (void)c;
    int code = ws_exec_update_checked(e, g, &r);
    if (code && code != CUDA_GRAPH_UPDATE_FAILURE)
        return code;
    if (bad)
        *bad = r.errorNode;
    if (ret)
        *ret = r.result;
    return code;
}

WS_DRV_API(cuGraphExecGetFlags, (struct ws_exec * e, unsigned long long *ret))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ret && ws_exec_valid(e));
    *ret = e->flags;
    return CUDA_OK;
}

WS_DRV_API(cuGraphExecDestroy, (struct ws_exec * e))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_exec_valid(e));
    return ws_exec_destroy(e);
}

WS_DRV_STREAM_API(cuGraphUpload, _ptsz, (struct ws_exec * e, void *stream), (e, stream))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    CHECK(ws_exec_valid(e));
    return ws_drv_error(
        ws_session_stream_info(id, NULL, NULL, NULL)); /* it is where it is needed */
}

WS_DRV_STREAM_API(cuGraphLaunch, _ptsz, (struct ws_exec * e, void *stream), (e, stream))
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    CHECK(ws_exec_valid(e));
    return ws_drv_error(ws_exec_launch(e, id));
}

WS_DRV_API(cuGraphNodeSetEnabled, (struct ws_exec * e, struct ws_node *n, unsigned enabled))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_exec_valid(e) && ws_node_valid(n));
    return ws_exec_set_enabled(e, n, enabled);
}

WS_DRV_API(cuGraphNodeGetEnabled, (struct ws_exec * e, struct ws_node *n, unsigned *ret))
{
    WS_DRV_ENTER(c);
    (void)c;
    CHECK(ws_exec_valid(e) && ws_node_valid(n) && ret);
    const struct ws_node *mine = ws_exec_node(e, n);
    CHECK(mine);
    *ret = !mine->disabled;
    return CUDA_OK;
}

/* ---- memory of graphs ---- */

WS_DRV_API(cuDeviceGetGraphMemAttribute, (int device, int attribute, uint64_t *ret))
{
    int code = ws_drv_check_init();
    return code ? code : ws_graphmem_get(device, attribute, ret);
}

WS_DRV_API(cuDeviceSetGraphMemAttribute, (int device, int attribute, const uint64_t *value))
{
    int code = ws_drv_check_init();
    if (!code && (!value || *value)) /* only 0: start anew */
        code = CUDA_INVALID_VALUE;
    return code ? code : ws_graphmem_reset_high(device, attribute);
}

/* What no graph holds has been given back already. */
WS_DRV_API(cuDeviceGraphMemTrim, (int device))
{
    int code = ws_drv_check_init();
    return code ? code : ws_session_device(device) ? CUDA_OK : CUDA_INVALID_DEVICE;
}

/* ---- user objects ---- */

WS_DRV_API(cuUserObjectCreate, (struct ws_user_object * *ret, void *ptr, void (*destroy)(void *),
                                unsigned refs, unsigned flags))
{
    return ws_user_object_new(ptr, destroy, refs, flags, ret);
}

WS_DRV_API(cuUserObjectRetain, (struct ws_user_object * o, unsigned n))
{
    return ws_user_object_retain(o, n);
}

WS_DRV_API(cuUserObjectRelease, (struct ws_user_object * o, unsigned n))
{
    return ws_user_object_release(o, n);
}

WS_DRV_API(cuGraphRetainUserObject,
           (struct ws_graph * g, struct ws_user_object *o, unsigned n, unsigned flags))
{
    CHECK(ws_graph_valid(g));
    return ws_graph_retain_user(g, o, n, flags);
}

WS_DRV_API(cuGraphReleaseUserObject, (struct ws_graph * g, struct ws_user_object *o, unsigned n))
{
    CHECK(ws_graph_valid(g));
    return ws_graph_release_user(g, o, n);
}
