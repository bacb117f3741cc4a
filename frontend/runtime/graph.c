// SPDX-License-Identifier: Apache-2.0
/* Chapter "Graph Management": graphs as a whole. What they do stands in graph.c, graph_exec.c and graph_launch.c. */
#include "frontend/facade.h"
#include "frontend/graph/params.h"
#include "frontend/stream/host.h"

#define CHECK(condition)                                                                           \
    if (!(condition))                                                                              \
    return ws_rt_record(CUDA_INVALID_VALUE)

/* ---- graphs ---- */

WS_RT_API(cudaGraphCreate, (struct ws_graph * *ret, unsigned flags))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ret && !flags);
    *ret = ws_graph_new();
    return ws_rt_record(*ret ? CUDA_OK : CUDA_OUT_OF_MEMORY);
}

WS_RT_API(cudaGraphDestroy, (struct ws_graph * g))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ws_graph_valid(g) && !g->owner && !g->of_exec);
    ws_graph_free(g);
    return CUDA_OK;
}

WS_RT_API(cudaGraphClone, (struct ws_graph * *ret, struct ws_graph *g))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ret && ws_graph_valid(g));
    return ws_rt_record(g->has_memory ? CUDA_NOT_SUPPORTED : ws_graph_clone(g, ret));
}

WS_RT_API(cudaGraphNodeFindInClone,
          (struct ws_node * *ret, struct ws_node *n, struct ws_graph *clone))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_graph_find_in_clone(n, clone, ret));
}

WS_RT_API(cudaGraphNodeGetType, (struct ws_node * n, int *ret))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ret && ws_node_valid(n));
    *ret = (int)n->type;
    return CUDA_OK;
}

WS_RT_API(cudaGraphGetNodes, (struct ws_graph * g, struct ws_node **ret, size_t *n))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_graph_list(g, WS_LIST_NODES, ret, n));
}

WS_RT_API(cudaGraphGetRootNodes, (struct ws_graph * g, struct ws_node **ret, size_t *n))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_graph_list(g, WS_LIST_ROOTS, ret, n));
}

/* Names with _v2 are CUDA 12's, with the parameters that the plain names have since CUDA 13. */
WS_RT_API(cudaGraphGetEdges_v2, (struct ws_graph * g, struct ws_node **from, struct ws_node **to,
                                 struct cuda_edge_data *data, size_t *n))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_graph_edges(g, from, to, data, n));
}

WS_RT_API(cudaGraphNodeGetDependencies_v2,
          (struct ws_node * n, struct ws_node **ret, struct cuda_edge_data *data, size_t *n_ret))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_node_neighbours(n, false, ret, data, n_ret));
}

WS_RT_API(cudaGraphNodeGetDependentNodes_v2,
          (struct ws_node * n, struct ws_node **ret, struct cuda_edge_data *data, size_t *n_ret))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_node_neighbours(n, true, ret, data, n_ret));
}

WS_RT_API(cudaGraphAddDependencies_v2,
          (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to,
           const struct cuda_edge_data *data, size_t n))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ws_graph_valid(g));
    return ws_rt_record(ws_graph_add_edges(g, from, to, data, n));
}

WS_RT_API(cudaGraphRemoveDependencies_v2,
          (struct ws_graph * g, struct ws_node *const *from, struct ws_node *const *to,
           const struct cuda_edge_data *data, size_t n))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ws_graph_valid(g));
    return ws_rt_record(ws_graph_remove_edges(g, from, to, data, n));
}

WS_RT_API(cudaGraphDestroyNode, (struct ws_node * n))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ws_node_valid(n));
    return ws_rt_record(ws_node_destroy(n));
}

WS_RT_API(cudaGraphDebugDotPrint, (struct ws_graph * g, const char *path, unsigned flags))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ws_graph_valid(g) && path);
    return ws_rt_record(ws_graph_dot(g, path, flags));
}

WS_RT_API(cudaGraphConditionalHandleCreate,
          (uint64_t * ret, struct ws_graph *g, unsigned value, unsigned flags))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ws_graph_valid(g) && !g->of_exec);
    return ws_rt_record(ws_graph_handle_new(g, value, flags, ret));
}

/* ---- execs ---- */

WS_RT_API(cudaGraphInstantiate,
          (struct ws_exec * *ret, struct ws_graph *g, unsigned long long flags))
{
    WS_RT_ENTER(device);
    CHECK(!(flags & WS_GRAPH_UPLOAD)); /* needs a stream to do it on */
    return ws_rt_record(ws_graph_instantiate(ret, g, device, flags, NULL));
}
WS_RT_ALIAS(cudaGraphInstantiateWithFlags, cudaGraphInstantiate)

WS_RT_API(cudaGraphInstantiateWithParams,
          (struct ws_exec * *ret, struct ws_graph *g, struct cuda_instantiate_params *p))
{
    WS_RT_ENTER(device);
    CHECK(p);
    return ws_rt_record(ws_graph_instantiate(ret, g, device, p->flags, p));
}
WS_RT_ALIAS(cudaGraphInstantiateWithParams_ptsz, cudaGraphInstantiateWithParams)

WS_RT_API(cudaGraphExecUpdate,
          (struct ws_exec * e, struct ws_graph *g, struct cuda_update_result *ret))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_exec_update_checked(e, g, ret));
}

WS_RT_API(cudaGraphExecGetFlags, (struct ws_exec * e, unsigned long long *ret))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ret && ws_exec_valid(e));
    *ret = e->flags;
    return CUDA_OK;
}

WS_RT_API(cudaGraphExecDestroy, (struct ws_exec * e))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ws_exec_valid(e));
    return ws_rt_record(ws_exec_destroy(e));
}

WS_RT_STREAM_API(cudaGraphUpload, _ptsz, (struct ws_exec * e, void *stream), (e, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    CHECK(ws_exec_valid(e));
    return WS_RT_DONE(ws_session_stream_info(id, NULL, NULL, NULL)); /* it is where it is needed */
}

WS_RT_STREAM_API(cudaGraphLaunch, _ptsz, (struct ws_exec * e, void *stream), (e, stream))
{
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    CHECK(ws_exec_valid(e));
    return WS_RT_DONE(ws_exec_launch(e, id));
}

WS_RT_API(cudaGraphNodeSetEnabled, (struct ws_exec * e, struct ws_node *n, unsigned enabled))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ws_exec_valid(e) && ws_node_valid(n));
    return ws_rt_record(ws_exec_set_enabled(e, n, enabled));
}

WS_RT_API(cudaGraphNodeGetEnabled, (struct ws_exec * e, struct ws_node *n, unsigned *ret))
{
    WS_RT_ENTER(device);
    (void)device;
    CHECK(ws_exec_valid(e) && ws_node_valid(n) && ret);
    const struct ws_node *mine = ws_exec_node(e, n);
    CHECK(mine);
    *ret = !mine->disabled;
    return CUDA_OK;
}

/* ---- memory of graphs ---- */

WS_RT_API(cudaDeviceGetGraphMemAttribute, (int device, int attribute, uint64_t *ret))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : ws_graphmem_get(device, attribute, ret));
}

WS_RT_API(cudaDeviceSetGraphMemAttribute, (int device, int attribute, const uint64_t *value))
{
    int code = ws_facade_open();
    if (!code && (!value || *value)) /* only 0: start anew */
        code = CUDA_INVALID_VALUE;
    return ws_rt_record(code ? code : ws_graphmem_reset_high(device, attribute));
}

/* What no graph holds has been given back already. */
WS_RT_API(cudaDeviceGraphMemTrim, (int device))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : ws_session_device(device) ? CUDA_OK : CUDA_INVALID_DEVICE);
}

/* ---- user objects ---- */

WS_RT_API(cudaUserObjectCreate, (struct ws_user_object * *ret, void *ptr, void (*destroy)(void *),
                                 unsigned refs, unsigned flags))
{
    return ws_rt_record(ws_user_object_new(ptr, destroy, refs, flags, ret));
}

WS_RT_API(cudaUserObjectRetain, (struct ws_user_object * o, unsigned n))
{
    return ws_rt_record(ws_user_object_retain(o, n));
}

WS_RT_API(cudaUserObjectRelease, (struct ws_user_object * o, unsigned n))
{
    return ws_rt_record(ws_user_object_release(o, n));
}

WS_RT_API(cudaGraphRetainUserObject,
          (struct ws_graph * g, struct ws_user_object *o, unsigned n, unsigned flags))
{
    CHECK(ws_graph_valid(g));
    return ws_rt_record(ws_graph_retain_user(g, o, n, flags));
}

WS_RT_API(cudaGraphReleaseUserObject, (struct ws_graph * g, struct ws_user_object *o, unsigned n))
{
    CHECK(ws_graph_valid(g));
    return ws_rt_record(ws_graph_release_user(g, o, n));
}
