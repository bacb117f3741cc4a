// SPDX-License-Identifier: Apache-2.0
/* frontend/graph/graph.h - graphs, their nodes (stream/work.h) and edges, and the plans that are
 * made of them to be launched. The runtime and the driver share it; they only translate parameters
 * (params.h).
 *
 * As in CUDA, a graph may be used by one thread at a time. The same holds for an exec, whose
 * launches are kept in order. All functions return a CUDA code unless they say otherwise. */
#ifndef WS_FRONTEND_GRAPH_GRAPH_H
#define WS_FRONTEND_GRAPH_GRAPH_H

#include "frontend/graph/types.h"
#include "frontend/context/slab.h"
#include "frontend/stream/work.h"

struct ws_graph;
struct ws_node;
struct ws_user_object;

/* ---- memory that alloc nodes own (memory.c) ---- */
struct ws_graph_block;
int ws_block_new(int device, uint64_t bytes, struct ws_graph_block **ret); /* with one reference */
struct ws_graph_block *ws_block_ref(struct ws_graph_block *b);
void ws_block_unref(struct ws_graph_block *b); /* NULL ok */
bool ws_block_fits(const struct ws_graph_block *b, int device, uint64_t bytes);
/* The block that starts at @address, borrowed; NULL if there is none. */
struct ws_graph_block *ws_block_find(uint64_t address);
uint64_t ws_block_address(const struct ws_graph_block *b);
/* True if a launch has allocated it and nothing has freed it since. */
bool ws_block_live(const struct ws_graph_block *b);
void ws_block_set_live(struct ws_graph_block *b, bool live);
/* Frees @address outside of graphs. Return: -1: it is not a graph's. */
int ws_block_free_outside(uint64_t address);
enum { WS_GRAPHMEM_USED, WS_GRAPHMEM_USED_HIGH, WS_GRAPHMEM_RESERVED, WS_GRAPHMEM_RESERVED_HIGH };
int ws_graphmem_get(int device, int attribute, uint64_t *ret);
int ws_graphmem_reset_high(int device, int attribute);

/* ---- nodes ---- */
struct ws_edge {
    struct ws_node *from;
    struct cuda_edge_data data;
};
struct ws_condition {
    uint64_t handle;
    int type;
    unsigned size;
    struct ws_graph **bodies;
};
enum { WS_COND_IF, WS_COND_WHILE, WS_COND_SWITCH };
enum { WS_N_ATTRIBUTES = 32 };
struct ws_node {
    struct ws_slot slot;
    struct ws_graph *graph;
    uint64_t id;     /* never used again */
    uint64_t origin; /* id of the node that it was cloned from; 0: none */
    enum ws_node_type type;
    size_t index; /* in the graph's nodes */
    struct ws_edge *in;
    size_t n_in, cap_in;
    struct ws_node **out;
    size_t n_out, cap_out;

    struct ws_stream_work work; /* what it points to is owned: */
    uint8_t *params;            /* LAUNCH: packed arguments */
    void **param_ptrs;          /* LAUNCH: addresses in params, for those who ask */
    struct ws_value_op *ops;
    union cu_batch_op *raw_ops; /* BATCH_MEM_OP: what was last told of it */
    const void *function;       /* LAUNCH: as the program named it */
    struct ws_graph *child;     /* GRAPH: owned */
    struct ws_condition cond;
    struct ws_graph_block *block; /* MEM_ALLOC; MEM_FREE: reference */
    struct cuda_launch_attribute *attributes;
    unsigned n_attributes;
    union { /* MEMCPY: as the program gave it, to be told again */
        struct cuda_memcpy_3d_parms rt;
        struct cu_memcpy_3d drv;
    } raw;
    enum { WS_RAW_NONE, WS_RAW_RT, WS_RAW_DRV } raw_kind;
    void *ctx;
    bool disabled; /* in an exec */

    uint32_t step; /* scratch of plan building */
    uint32_t mark; /* scratch of walks */
};

struct ws_graph {
    struct ws_slot slot;
    uint64_t id, origin; /* origin: id of the graph that it was cloned from */
    struct ws_node **nodes;
    size_t n_nodes, cap_nodes;
    struct ws_node *owner; /* of a child graph or a body; NULL: the program's */
    bool of_exec;
    bool has_memory; /* holds alloc or free nodes */
    int n_execs;     /* instantiated from it */
    struct ws_graph_handle {
        uint64_t handle;
        uint32_t value;
        bool assign, used;
    } * handles; /* conditional handles */
    size_t n_handles, cap_handles;
    struct ws_user_ref {
        struct ws_user_object *object;
        unsigned count;
    } * users;
    size_t n_users, cap_users;
};

struct ws_graph *ws_graph_new(void); /* NULL: no memory */
void ws_graph_free(struct ws_graph *g);
bool ws_graph_valid(const void *g);
bool ws_node_valid(const void *n);
/* A copy with all child graphs and bodies. Its nodes remember the nodes that they were copied
 * from. */
int ws_graph_clone(const struct ws_graph *g, struct ws_graph **ret);
/* An empty one of @type behind @deps (@data: NULL, or the edges'). */
int ws_graph_add(struct ws_graph *g, enum ws_node_type type, struct ws_node *const *deps,
                 const struct cuda_edge_data *data, size_t n_deps, struct ws_node **ret);
int ws_graph_add_edges(struct ws_graph *g, struct ws_node *const *from, struct ws_node *const *to,
                       const struct cuda_edge_data *data, size_t n);
int ws_graph_remove_edges(struct ws_graph *g, struct ws_node *const *from,
                          struct ws_node *const *to, const struct cuda_edge_data *data, size_t n);
void ws_node_free(struct ws_node *n); /* with its edges */
/* Removes a node that the program names. */
int ws_node_destroy(struct ws_node *n);
/* Nodes in an order that respects the edges. @ret: n_nodes long, malloc'ed by the caller. False:
 * there is a cycle. */
bool ws_graph_order(const struct ws_graph *g, struct ws_node **ret);
/* True if each of @n_first nodes is one of the @n_then, or comes before one of them. */
bool ws_graph_before(const struct ws_graph *g, struct ws_node *const *first, size_t n_first,
                     struct ws_node *const *then, size_t n_then);
/* Gives the node work; what @w points to is copied. LAUNCH: arguments are packed now, shape and
 * resources checked. */
ws_err ws_node_set_work(struct ws_node *n, const struct ws_stream_work *w);
/* GRAPH: a clone of @child, or @child itself. */
int ws_node_set_child(struct ws_node *n, struct ws_graph *child, bool move);
int ws_node_copy_content(struct ws_node *to, const struct ws_node *from);
/* MEM_ALLOC: gives the node memory, and sets work.memory.address. If an alloc node is freed earlier
 * in the graph and its memory fits, the node takes that memory. */
int ws_node_set_alloc(struct ws_node *n, int device, uint64_t bytes);
/* CONDITIONAL: makes the bodies. */
int ws_node_set_condition(struct ws_node *n, uint64_t handle, int type, unsigned size);
int ws_node_set_attribute(struct ws_node *n, int id, const union cuda_launch_attribute_value *v);
int ws_node_get_attribute(const struct ws_node *n, int id, union cuda_launch_attribute_value *ret);

int ws_graph_handle_new(struct ws_graph *g, uint32_t value, unsigned flags, uint64_t *ret);
/* Makes a word for a handle, and reads one. */
int ws_handle_new(uint64_t *ret);
void ws_handle_ref(uint64_t handle);
void ws_handle_unref(uint64_t handle);
uint32_t ws_handle_read(uint64_t handle);
bool ws_handle_valid(uint64_t handle);

int ws_graph_dot(const struct ws_graph *g, const char *path, unsigned flags);

/* ---- user objects (userobject.c) ---- */
int ws_user_object_new(void *ptr, void (*destroy)(void *), unsigned refs, unsigned flags,
                       struct ws_user_object **ret);
int ws_user_object_retain(struct ws_user_object *o, unsigned n);
int ws_user_object_release(struct ws_user_object *o, unsigned n);
int ws_graph_retain_user(struct ws_graph *g, struct ws_user_object *o, unsigned n, unsigned flags);
int ws_graph_release_user(struct ws_graph *g, struct ws_user_object *o, unsigned n);

/* ---- plans (exec.c): a graph as streams and events ---- */
struct ws_graph_step {
    struct ws_node *node; /* NULL: only a point where branches meet */
    uint32_t branch, position;
    uint32_t *waits; /* indices of steps on other branches */
    uint32_t n_waits;
    bool first;     /* of its branch, and waits for nothing: for the start then */
    bool signals;   /* others wait for it */
    bool last;      /* the end waits for it */
    uint64_t event; /* made at first use */
    unsigned n_bodies;
    struct ws_plan **bodies; /* CONDITIONAL */
};
struct ws_branch {
    int device; /* -1: any */
    uint64_t stream;
};
struct ws_plan {
    struct ws_graph_step *steps;
    uint32_t n_steps, cap_steps;
    struct ws_branch *branches;
    uint32_t n_branches;
    int device;     /* where it was instantiated */
    uint64_t start; /* event */
};
/* @g is borrowed, and must not change except in the content of its nodes. */
int ws_plan_new(struct ws_graph *g, int device, struct ws_plan **ret);
void ws_plan_free(struct ws_plan *p);

/* ---- execs (exec.c, launch.c) ---- */
struct ws_exec {
    struct ws_slot slot;
    struct ws_graph *graph;  /* its own */
    struct ws_graph *source; /* may be gone: then its id is another */
    struct ws_plan *plan;
    uint64_t flags;
    int device;
    pthread_mutex_t launching;
    uint64_t last_stream, done; /* stream of the last launch; event after it */
    _Atomic int n_refs;         /* the program's, and tasks under way */
    struct ws_exec *next;       /* to be freed */
    struct ws_node **by_origin; /* all nodes at all depths, by origin */
    size_t n_by_origin, cap_by_origin;
    struct ws_graph_handle *handles; /* of all depths, those with a default */
    size_t n_handles, cap_handles;
};
int ws_exec_new(struct ws_graph *g, int device, uint64_t flags, struct ws_exec **ret,
                enum ws_instantiate_result *ret_result, struct ws_node **ret_node);
bool ws_exec_valid(const void *e);
int ws_exec_destroy(struct ws_exec *e);
void ws_exec_unref(struct ws_exec *e);
/* The exec's copy of a node of the graph that the exec was made from; NULL if there is none. */
struct ws_node *ws_exec_node(const struct ws_exec *e, const struct ws_node *n);
int ws_exec_set_child(struct ws_exec *e, struct ws_node *n, struct ws_graph *child);
int ws_exec_update(struct ws_exec *e, const struct ws_graph *g, struct cuda_update_result *ret);
int ws_exec_set_enabled(struct ws_exec *e, struct ws_node *n, bool enabled);
/* Launches the exec. In a capture its graph becomes a child graph. */
ws_err ws_exec_launch(struct ws_exec *e, uint64_t stream);

#endif
