// SPDX-License-Identifier: Apache-2.0
/* Writes a graph as text for Graphviz: a cluster for each graph, with child graphs and bodies
 * inside their parent's. */
#include <inttypes.h>
#include <stdio.h>

#include "frontend/graph/graph.h"
#include "frontend/module/module.h"

static const char *const type_names[] = {
    "KERNEL",       "MEMCPY",       "MEMSET",           "HOST",           "GRAPH",     "EMPTY",
    "EVENT_WAIT",   "EVENT_RECORD", "SEMAPHORE_SIGNAL", "SEMAPHORE_WAIT", "MEM_ALLOC", "MEM_FREE",
    "BATCH_MEM_OP", "CONDITIONAL"};

static void print_content(FILE *f, const struct ws_node *n)
{
    const struct ws_stream_work *w = &n->work;
    switch (w->kind) {
    case WS_WORK_LAUNCH:
        fprintf(f, "\\n%s\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>",
                ws_function_info(w->launch.l.function)->name, w->launch.l.grid[0],
                w->launch.l.grid[1], w->launch.l.grid[2], w->launch.l.block[0],
                w->launch.l.block[1], w->launch.l.block[2], w->launch.l.shared_bytes);
        break;
    case WS_WORK_COPY:
        fprintf(f, "\\n0x%" PRIx64 " <- 0x%" PRIx64 "\\n%" PRIu64 " x %" PRIu64 " x %" PRIu64,
                w->copy.dst.address, w->copy.src.address, w->copy.box.width_bytes,
                w->copy.box.height, w->copy.box.depth);
        break;
    case WS_WORK_FILL:
        fprintf(f, "\\n0x%" PRIx64 " = 0x%x\\n%" PRIu64 " x %" PRIu64, w->fill.dst.address,
                w->fill.value, w->fill.box.width_bytes, w->fill.box.height);
        break;
    case WS_WORK_ALLOC:
    case WS_WORK_FREE:
        fprintf(f, "\\n0x%" PRIx64, w->memory.address);
        break;
    default:
        break;
    }
}

static void print_graph(FILE *f, const struct ws_graph *g, bool verbose)
{
    fprintf(f, "subgraph cluster_%" PRIu64 " {\nlabel=\"graph_%" PRIu64 "\"\n", g->id, g->id);
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct ws_node *n = g->nodes[i];
        fprintf(f, "\"node_%" PRIu64 "\" [shape=%s,label=\"%zu\\n%s", n->id,
                n->type == WS_NODE_KERNEL ? "octagon" : "rectangle", i, type_names[n->type]);
        if (verbose || n->type == WS_NODE_KERNEL)
            print_content(f, n);
        fprintf(f, "\"];\n");
        if (n->child)
            print_graph(f, n->child, verbose);
        for (unsigned k = 0; k < n->cond.size; k++)
            print_graph(f, n->cond.bodies[k], verbose);
        for (size_t k = 0; k < n->n_in; k++)
            fprintf(f, "\"node_%" PRIu64 "\" -> \"node_%" PRIu64 "\";\n", n->in[k].from->id, n->id);
    }
    fprintf(f, "}\n");
}

int ws_graph_dot(const struct ws_graph *g, const char *path, unsigned flags)
{
    FILE *f = path ? fopen(path, "we") : NULL;
    /* Also for a file that cannot be written: CUDA does not document a code for that. */
    if (!f)
        return CUDA_INVALID_VALUE;
    fprintf(f, "digraph dot {\n");
    print_graph(f, g, flags != 0);
    fprintf(f, "}\n");
    return fclose(f) ? CUDA_INVALID_VALUE : CUDA_OK;
}
