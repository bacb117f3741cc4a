// SPDX-License-Identifier: Apache-2.0
/* Chapter "Graph Management": graphs as a whole. What the calls do stands in graph/. */
#include "frontend/facade.h"
#include "frontend/graph/params.h"
#include "frontend/stream/host.h"

#define CHECK(condition)                                                                           \
    if (!(condition))                                                                              \
    return CUDA_INVALID_VALUE

/* ---- graphs ---- */

WS_BOTH_API(cudaGraphCreate, cuGraphCreate, (struct ws_graph * *ret, unsigned flags), (ret, flags))
{
    WS_BOTH_ENTER(c);
    CHECK(ret && !flags);
    *ret = ws_graph_new();
    return *ret ? CUDA_OK : CUDA_OUT_OF_MEMORY;
}

WS_BOTH_API(cudaGraphDestroy, cuGraphDestroy, (struct ws_graph * g), (g))
{
    WS_BOTH_ENTER(c);
    CHECK(ws_graph_valid(g) && !g->owner && !g->of_exec);
    ws_graph_free(g);
    return CUDA_OK;
}

WS_BOTH_API(cudaGraphClone, cuGraphClone, (struct ws_graph * *ret, struct ws_graph *g), (ret, g))
{
    WS_BOTH_ENTER(c);
    CHECK(ret && ws_graph_valid(g));
    return g->has_memory ? CUDA_NOT_SUPPORTED : ws_graph_clone(g, ret);
}

WS_BOTH_API(cudaGraphNodeFindInClone, cuGraphNodeFindInClone,
            (struct ws_node * *ret, struct ws_node *n, struct ws_graph *clone), (ret, n, clone))
{
    WS_BOTH_ENTER(c);
    return ws_graph_find_in_clone(n, clone, ret);
}

WS_BOTH_API(cudaGraphNodeGetType, cuGraphNodeGetType, (struct ws_node * n, int *ret), (n, ret))
{
    WS_BOTH_ENTER(c);
    CHECK(ret && ws_node_valid(n));
    *ret = (int)n->type;
    return CUDA_OK;
}

WS_BOTH_API(cudaGraphGetNodes, cuGraphGetNodes,
            (struct ws_graph * g, struct ws_node **ret, size_t *n), (g, ret, n))
{
    WS_BOTH_ENTER(c);
    return ws_graph_list(g, WS_LIST_NODES, ret, n);
}

WS_BOTH_API(cudaGraphGetRootNodes, cuGraphGetRootNodes,
            (struct ws_graph * g, struct ws_node **ret, size_t *n), (g, ret, n))
{
    WS_BOTH_ENTER(c);
    return ws_graph_list(g, WS_LIST_ROOTS, ret, n);
}

/* Names with _v2 are CUDA 12's, with the parameters that the plain names have since CUDA 13. */
WS_BOTH_API(cudaGraphGetEdges_v2, cuGraphGetEdges_v2,
            (struct ws_graph * g, struct ws_node **from, struct ws_node **to,
             struct cuda_edge_data *data, size_t *n),
            (g, from, to, data, n))
{
    WS_BOTH_ENTER(c);
    return ws_graph_edges(g, from, to, data, n);
}

WS_BOTH_API(cudaGraphNodeGetDependencies_v2, cuGraphNodeGetDependencies_v2,
            (struct ws_node * n, struct ws_node **ret, struct cuda_edge_data *data, size_t *n_ret),
            (n, ret, data, n_ret))
{
    WS_BOTH_ENTER(c);
    return ws_node_neighbours(n, false, ret, data, n_ret);
}

WS_BOTH_API(cudaGraphNodeGetDependentNodes_v2, cuGraphNodeGetDependentNodes_v2,
            (struct ws_node * n, struct ws_node **ret, struct cuda_edge_data *data, size_t *n_ret),
            (n, ret, data, n_ret))
{
    WS_BOTH_ENTER(c);
    return ws_node_neighbours(n, true, ret, data, n_ret);
}

WS_BOTH_API(cudaGraphAddDependencies_v2, cuGraphAddDependencies_v2,
            (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to,
             const struct cuda_edge_data *data, size_t n),
            (g, from, to, data, n))
{
    WS_BOTH_ENTER(c);
    CHECK(ws_graph_valid(g));
    return ws_graph_add_edges(g, from, to, data, n);
}

WS_BOTH_API(cudaGraphRemoveDependencies_v2, cuGraphRemoveDependencies_v2,
            (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to,
             const struct cuda_edge_data *data, size_t n),
            (g, from, to, data, n))
{
    WS_BOTH_ENTER(c);
    CHECK(ws_graph_valid(g));
    return ws_graph_remove_edges(g, from, to, data, n);
}

WS_BOTH_API(cudaGraphDestroyNode, cuGraphDestroyNode, (struct ws_node * n), (n))
{
    WS_BOTH_ENTER(c);
    CHECK(ws_node_valid(n));
    return ws_node_destroy(n);
}

WS_BOTH_API(cudaGraphDebugDotPrint, cuGraphDebugDotPrint,
            (struct ws_graph * g, const char *path, unsigned flags), (g, path, flags))
{
    WS_BOTH_ENTER(c);
    CHECK(ws_graph_valid(g) && path);
    return ws_graph_dot(g, path, flags);
}

/* ---- execs ---- */

WS_BOTH_API(cudaGraphInstantiateWithFlags, cuGraphInstantiateWithFlags,
            (struct ws_exec * *ret, struct ws_graph *g, unsigned long long flags), (ret, g, flags))
{
    WS_BOTH_ENTER(c);
    CHECK(!(flags & WS_GRAPH_UPLOAD)); /* needs a stream to do it on */
    return ws_graph_instantiate(ret, g, c->device, flags, NULL);
}

WS_BOTH_API(cudaGraphInstantiateWithParams, cuGraphInstantiateWithParams,
            (struct ws_exec * *ret, struct ws_graph *g, struct cuda_instantiate_params *p),
            (ret, g, p))
{
    WS_BOTH_ENTER(c);
    CHECK(p);
    return ws_graph_instantiate(ret, g, c->device, p->flags, p);
}
WS_DRV_ALIAS(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiateWithParams)
WS_RT_ALIAS(cudaGraphInstantiateWithParams_ptsz, cudaGraphInstantiateWithParams)

WS_BOTH_API(cudaGraphExecGetFlags, cuGraphExecGetFlags,
            (struct ws_exec * e, unsigned long long *ret), (e, ret))
{
    WS_BOTH_ENTER(c);
    CHECK(ret && ws_exec_valid(e));
    *ret = e->flags;
    return CUDA_OK;
}

WS_BOTH_API(cudaGraphExecDestroy, cuGraphExecDestroy, (struct ws_exec * e), (e))
{
    WS_BOTH_ENTER(c);
    CHECK(ws_exec_valid(e));
    return ws_exec_destroy(e);
}

WS_BOTH_STREAM_API(cudaGraphUpload, cuGraphUpload, _ptsz, (struct ws_exec * e, void *stream),
                   (e, stream))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    CHECK(ws_exec_valid(e));
    /* It is where it is needed: there is nothing to do but to check the stream. */
    return ws_api_error(api, ws_session_stream_info(id, NULL, NULL, NULL));
}

WS_BOTH_STREAM_API(cudaGraphLaunch, cuGraphLaunch, _ptsz, (struct ws_exec * e, void *stream),
                   (e, stream))
{
    WS_BOTH_ENTER(c);
    WS_BOTH_STREAM(id, stream, per_thread, c->device);
    CHECK(ws_exec_valid(e));
    return ws_api_error(api, ws_exec_launch(e, id));
}

WS_BOTH_API(cudaGraphNodeSetEnabled, cuGraphNodeSetEnabled,
            (struct ws_exec * e, struct ws_node *n, unsigned enabled), (e, n, enabled))
{
    WS_BOTH_ENTER(c);
    CHECK(ws_exec_valid(e) && ws_node_valid(n));
    return ws_exec_set_enabled(e, n, enabled);
}

WS_BOTH_API(cudaGraphNodeGetEnabled, cuGraphNodeGetEnabled,
            (struct ws_exec * e, struct ws_node *n, unsigned *ret), (e, n, ret))
{
    WS_BOTH_ENTER(c);
    CHECK(ws_exec_valid(e) && ws_node_valid(n) && ret);
    const struct ws_node *mine = ws_exec_node(e, n);
    CHECK(mine);
    *ret = !mine->disabled;
    return CUDA_OK;
}

/* ---- memory of graphs ---- */

WS_BOTH_API(cudaDeviceGetGraphMemAttribute, cuDeviceGetGraphMemAttribute,
            (int device, int attribute, uint64_t *ret), (device, attribute, ret))
{
    int code = ws_api_open(api);
    return code ? code : ws_graphmem_get(device, attribute, ret);
}

WS_BOTH_API(cudaDeviceSetGraphMemAttribute, cuDeviceSetGraphMemAttribute,
            (int device, int attribute, const uint64_t *value), (device, attribute, value))
{
    int code = ws_api_open(api);
    if (!code && (!value || *value)) /* only 0: start anew */
        code = CUDA_INVALID_VALUE;
    return code ? code : ws_graphmem_reset_high(device, attribute);
}

/* What no graph holds has been given back already. */
WS_BOTH_API(cudaDeviceGraphMemTrim, cuDeviceGraphMemTrim, (int device), (device))
{
    int code = ws_api_open(api);
    if (code)
        return code;
    return ws_session_device(device) ? CUDA_OK : CUDA_INVALID_DEVICE;
}

/* ---- user objects ---- */

WS_BOTH_API(cudaUserObjectCreate, cuUserObjectCreate,
            (struct ws_user_object * *ret, void *ptr, void (*destroy)(void *), unsigned refs,
             unsigned flags),
            (ret, ptr, destroy, refs, flags))
{
    return ws_user_object_new(ptr, destroy, refs, flags, ret);
}

WS_BOTH_API(cudaUserObjectRetain, cuUserObjectRetain, (struct ws_user_object * o, unsigned n),
            (o, n))
{
    return ws_user_object_retain(o, n);
}

WS_BOTH_API(cudaUserObjectRelease, cuUserObjectRelease, (struct ws_user_object * o, unsigned n),
            (o, n))
{
    return ws_user_object_release(o, n);
}

WS_BOTH_API(cudaGraphRetainUserObject, cuGraphRetainUserObject,
            (struct ws_graph * g, struct ws_user_object *o, unsigned n, unsigned flags),
            (g, o, n, flags))
{
    CHECK(ws_graph_valid(g));
    return ws_graph_retain_user(g, o, n, flags);
}

WS_BOTH_API(cudaGraphReleaseUserObject, cuGraphReleaseUserObject,
            (struct ws_graph * g, struct ws_user_object *o, unsigned n), (g, o, n))
{
    CHECK(ws_graph_valid(g));
    return ws_graph_release_user(g, o, n);
}
