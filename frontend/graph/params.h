// SPDX-License-Identifier: Apache-2.0
/* frontend/graph/params.h - what programs write and ask about nodes and graphs: parameters to a
 * node's content (content.c), content back to parameters (node_params.c), and lists (query.c). All
 * functions return a CUDA code. */
#ifndef WS_FRONTEND_GRAPH_PARAMS_H
#define WS_FRONTEND_GRAPH_PARAMS_H

#include "frontend/context/context.h"
#include "frontend/graph/graph.h"

/* What a node is to do. */
struct ws_content {
    bool runtime; /* which façade asks: its codes, its names */
    int device;   /* current */
    enum ws_node_type type;
    struct ws_stream_work work;
    const void *function;
    void *ctx;
    union {
        struct cuda_memcpy_3d_parms rt;
        struct cu_memcpy_3d drv;
    } raw;
    int raw_kind;
    struct ws_graph *child;
    bool move;
    struct cuda_conditional_node *condition; /* out too */
    struct cuda_alloc_node *alloc;           /* out too */
    struct ws_value_op *ops;                 /* malloc'ed */
};
/* Fill in a content. @p: the program's, checked here for NULL and all values. */
int ws_content_kernel_rt(struct ws_content *c, const struct cuda_kernel_node *p);
int ws_content_kernel_drv(struct ws_content *c, const struct cu_kernel_node *p, bool has_kern);
int ws_content_memcpy_rt(struct ws_content *c, const struct cuda_memcpy_3d_parms *p);
int ws_content_memcpy_drv(struct ws_content *c, const struct cu_memcpy_3d *p);
int ws_content_memcpy_1d(struct ws_content *c, void *dst, const void *src, size_t bytes, int kind);
int ws_content_symbol(struct ws_content *c, const void *symbol, void *other, size_t bytes,
                      size_t offset, int kind, bool to_symbol);
int ws_content_memset(struct ws_content *c, const struct cuda_memset_node *p);
int ws_content_host(struct ws_content *c, const struct cuda_host_node *p);
int ws_content_event(struct ws_content *c, enum ws_node_type type, void *event);
int ws_content_child(struct ws_content *c, struct ws_graph *child, int ownership);
int ws_content_alloc(struct ws_content *c, struct cuda_alloc_node *p);
int ws_content_free(struct ws_content *c, uint64_t address);
int ws_content_batch(struct ws_content *c, const struct cu_batch_node *p);
int ws_content_any(struct ws_content *c, struct cuda_node_params *p);
/* CUstreamBatchMemOpParams to ours; @ret: malloc'ed. */
int ws_batch_ops(const union cu_batch_op *p, unsigned n, struct ws_value_op **ret);

/* What is done with one: each frees what it holds. */
int ws_content_add(struct ws_content *c, struct ws_graph *g, struct ws_node *const *deps,
                   const struct cuda_edge_data *data, size_t n_deps, struct ws_node **ret);
int ws_content_set(struct ws_content *c, struct ws_node *n);
int ws_content_set_exec(struct ws_content *c, struct ws_exec *e, struct ws_node *n);

/* ---- what a node holds; INVALID_VALUE if it is of another type ---- */
int ws_node_kernel_rt(struct ws_node *n, struct cuda_kernel_node *ret);
int ws_node_kernel_drv(struct ws_node *n, struct cu_kernel_node *ret, bool has_kern);
int ws_node_memcpy_rt(struct ws_node *n, struct cuda_memcpy_3d_parms *ret);
int ws_node_memcpy_drv(struct ws_node *n, struct cu_memcpy_3d *ret);
int ws_node_memset(struct ws_node *n, struct cuda_memset_node *ret);
int ws_node_host(struct ws_node *n, struct cuda_host_node *ret);
int ws_node_event(struct ws_node *n, enum ws_node_type type, void **ret);
int ws_node_alloc(struct ws_node *n, struct cuda_alloc_node *ret);
int ws_node_child(struct ws_node *n, struct ws_graph **ret);
int ws_node_batch(struct ws_node *n, struct cu_batch_node *ret);
int ws_node_copy_attributes(struct ws_node *dst, const struct ws_node *src);
int ws_node_free_address(struct ws_node *n, uint64_t *ret);

/* ---- lists, as cudaGraphGetNodes() & co. answer: @n in: room, out: how many; the rest of the room
 * is zeroed ---- */
enum ws_list_kind { WS_LIST_NODES, WS_LIST_ROOTS };
int ws_graph_list(struct ws_graph *g, enum ws_list_kind kind, struct ws_node **ret, size_t *n);
int ws_graph_edges(struct ws_graph *g, struct ws_node **from, struct ws_node **to,
                   struct cuda_edge_data *data, size_t *n);
int ws_node_neighbours(struct ws_node *n, bool dependents, struct ws_node **ret,
                       struct cuda_edge_data *data, size_t *n_ret);
int ws_graph_find_in_clone(struct ws_node *n, struct ws_graph *clone, struct ws_node **ret);
/* Instantiation, with CUDA's answers in @p (may be NULL). */
int ws_graph_instantiate(struct ws_exec **ret, struct ws_graph *g, int device, uint64_t flags,
                         struct cuda_instantiate_params *p);
int ws_exec_update_checked(struct ws_exec *e, struct ws_graph *g, struct cuda_update_result *ret);

#endif
