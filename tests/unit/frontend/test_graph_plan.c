// SPDX-License-Identifier: Apache-2.0
/* Graphs and their plans, with a session that only records: whatever the graph, each edge must be
 * kept by the order on a branch and by waits, and the end must come behind all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "frontend/graph/graph.h"
#include "tests/unit/frontend/fake_session.h"

enum { MAX_STEPS = 400 };

static uint32_t seed;
static uint32_t random_below(uint32_t n)
{
    seed = seed * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)(seed >> 8) * n >> 24);
}

static int setup(void **state)
{
    fake_reset();
    return 0;
}

/* What the plan keeps in order: before[i] has bit k if step k is done before step i starts. Only
 * branches and waits count. */
static bool before[MAX_STEPS][MAX_STEPS];

static void find_order(const struct ws_plan *p)
{
    memset(before, 0, sizeof(before));
    assert_true(p->n_steps <= MAX_STEPS);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct ws_graph_step *s = &p->steps[i];
        for (uint32_t k = 0; k < i; k++) {
            bool direct = p->steps[k].branch == s->branch;
            for (uint32_t w = 0; w < s->n_waits; w++)
                direct |= s->waits[w] == k;
            if (!direct)
                continue;
            before[i][k] = true;
            for (uint32_t j = 0; j < k; j++)
                before[i][j] |= before[k][j];
        }
        for (uint32_t w = 0; w < s->n_waits; w++) {
            assert_true(s->waits[w] < i);
            assert_true(p->steps[s->waits[w]].signals);
            assert_int_not_equal(p->steps[s->waits[w]].branch, s->branch);
        }
    }
}

/* Steps of one graph, of which children are opened: only top-level nodes keep their own step. */
static void check_edges(const struct ws_graph *g, const struct ws_plan *p)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        for (size_t k = 0; k < g->nodes[i]->n_in; k++) {
            uint32_t from = g->nodes[i]->in[k].from->step, to = g->nodes[i]->step;
            if (!before[to][from])
                fail_msg("edge %zu -> %zu is not kept", g->nodes[i]->in[k].from->index, i);
        }
    for (uint32_t i = 0; i < p->n_steps; i++) { /* the end waits for all */
        bool seen = p->steps[i].last;
        for (uint32_t k = 0; k < p->n_steps && !seen; k++)
            seen = p->steps[k].last && before[k][i];
        if (!seen)
            fail_msg("the end does not wait for step %u", i);
        /* and all come behind the start */
        bool started = p->steps[i].first || p->steps[i].n_waits || p->steps[i].position > 1;
        assert_true(started);
    }
}

static struct ws_graph *random_graph(size_t n, uint32_t density, bool nested)
{
    struct ws_graph *g = ws_graph_new();
    struct ws_node *node;
    for (size_t i = 0; i < n; i++) {
        bool child = nested && random_below(6) == 0;
        assert_int_equal(
            ws_graph_add(g, child ? WS_NODE_GRAPH : WS_NODE_EMPTY, NULL, NULL, 0, &node), 0);
        if (child) {
            struct ws_graph *c = random_graph(random_below(6), density, false);
            assert_int_equal(ws_node_set_child(node, c, true), 0);
        }
    }
    for (size_t i = 0; i < n;
         i++) /* edges go up in a shuffled order: nodes aren't made in the order that they run */
        for (size_t k = 0; k < n; k++) {
            size_t a = i * 7919 % n, b = k * 7919 % n;
            if (a < b && random_below(100) < density)
                assert_int_equal(ws_graph_add_edges(g, &g->nodes[i], &g->nodes[k], NULL, 1), 0);
        }
    return g;
}

static void test_random_graphs_keep_their_edges(void **state)
{
    for (seed = 1; seed < 4000000000u; seed += 29999999) {
        uint32_t n = 1 + random_below(60), density = random_below(30);
        struct ws_graph *g = random_graph(n, density, random_below(2));
        struct ws_plan *p;
        assert_int_equal(ws_plan_new(g, 0, &p), 0);
        find_order(p);
        check_edges(g, p);
        ws_plan_free(p);
        ws_graph_free(g);
    }
}

static void test_chain_needs_no_event(void **state)
{
    struct ws_graph *g = ws_graph_new();
    struct ws_node *n = NULL;
    struct ws_plan *p;
    for (int i = 0; i < 100; i++)
        assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, &n, NULL, n != NULL, &n), 0);
    assert_int_equal(ws_plan_new(g, 0, &p), 0);
    assert_int_equal(p->n_branches, 1);
    for (uint32_t i = 0; i < p->n_steps; i++)
        assert_false(p->steps[i].signals);
    ws_plan_free(p);
    ws_graph_free(g);
}

/* @wide branches between a node and another: as many branches, and one wait for each that isn't
 *   branch 0. */
static void test_branches_are_parallel(void **state)
{
    enum { WIDE = 8 };
    struct ws_graph *g = ws_graph_new();
    struct ws_node *first, *branch[WIDE], *last;
    struct ws_plan *p;
    assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, NULL, NULL, 0, &first), 0);
    for (int i = 0; i < WIDE; i++)
        assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, &first, NULL, 1, &branch[i]), 0);
    assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, branch, NULL, WIDE, &last), 0);
    assert_int_equal(ws_plan_new(g, 0, &p), 0);
    assert_int_equal(p->n_branches, WIDE);
    find_order(p);
    for (int i = 0; i < WIDE; i++)
        for (int k = 0; k < i; k++)
            assert_false(before[branch[i]->step][branch[k]->step] ||
                         before[branch[k]->step][branch[i]->step]);
    assert_int_equal(p->steps[last->step].n_waits, WIDE - 1);
    /* a second fork behind the join uses the same branches again */
    struct ws_plan *q;
    for (int i = 0; i < WIDE; i++)
        assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, &last, NULL, 1, &branch[i]), 0);
    assert_int_equal(ws_plan_new(g, 0, &q), 0);
    assert_int_equal(q->n_branches, WIDE);
    find_order(q);
    check_edges(g, q);
    ws_plan_free(p);
    ws_plan_free(q);
    ws_graph_free(g);
}

static void test_more_branches_than_branches(void **state)
{
    struct ws_graph *g = ws_graph_new();
    struct ws_node *n;
    struct ws_plan *p;
    for (int i = 0; i < 300; i++)
        assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, NULL, NULL, 0, &n), 0);
    assert_int_equal(ws_plan_new(g, 0, &p), 0);
    assert_true(p->n_branches > 8 && p->n_branches <= 32);
    find_order(p);
    check_edges(g, p);
    ws_plan_free(p);
    ws_graph_free(g);
}

static void test_cycles_are_found(void **state)
{
    struct ws_graph *g = ws_graph_new();
    struct ws_node *n[3];
    struct ws_exec *e;
    enum ws_instantiate_result result;
    struct ws_node *bad;
    for (int i = 0; i < 3; i++)
        assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, i ? &n[i - 1] : NULL, NULL, i != 0, &n[i]),
                         0);
    assert_int_equal(ws_graph_add_edges(g, &n[2], &n[1], NULL, 1), 0);
    assert_int_equal(ws_exec_new(g, 0, 0, &e, &result, &bad), CUDA_INVALID_VALUE);
    assert_int_equal(result, WS_INSTANTIATE_INVALID_STRUCTURE);
    assert_true(bad == n[1] || bad == n[2]);
    assert_int_equal(ws_graph_remove_edges(g, &n[2], &n[1], NULL, 1), 0);
    assert_int_equal(ws_exec_new(g, 0, 0, &e, &result, &bad), 0);
    assert_int_equal(ws_exec_destroy(e), 0);
    ws_graph_free(g);
}

static void test_wrong_edges(void **state)
{
    struct ws_graph *g = ws_graph_new(), *h = ws_graph_new();
    struct ws_node *a, *b, *other, *n, *twice[2];
    struct cuda_edge_data port = {.from_port = 1};
    assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, NULL, NULL, 0, &a), 0);
    assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, &a, NULL, 1, &b), 0);
    assert_int_equal(ws_graph_add(h, WS_NODE_EMPTY, NULL, NULL, 0, &other), 0);
    twice[0] = twice[1] = a;
    assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, twice, NULL, 2, &n), CUDA_INVALID_VALUE);
    assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, &other, NULL, 1, &n), CUDA_INVALID_VALUE);
    assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, NULL, NULL, 1, &n), CUDA_INVALID_VALUE);
    assert_int_equal(ws_graph_add(g, WS_NODE_EMPTY, &a, &port, 1, &n), CUDA_INVALID_VALUE);
    assert_int_equal(ws_graph_add_edges(g, &a, &b, NULL, 1),
                     CUDA_INVALID_VALUE); /* there already */
    assert_int_equal(ws_graph_add_edges(g, &a, &a, NULL, 1), CUDA_INVALID_VALUE);
    assert_int_equal(ws_graph_add_edges(g, &a, &other, NULL, 1), CUDA_INVALID_VALUE);
    assert_int_equal(ws_graph_remove_edges(g, &b, &a, NULL, 1), CUDA_INVALID_VALUE);
    assert_int_equal(g->n_nodes, 2);
    assert_int_equal(b->n_in, 1);
    assert_int_equal(ws_node_destroy(a), 0);
    assert_false(ws_node_valid(a));
    assert_int_equal(b->n_in, 0);
    assert_int_equal(b->index, 0);
    ws_graph_free(h);
    assert_false(ws_node_valid(other));
    assert_false(ws_graph_valid(h));
    assert_false(ws_graph_valid(NULL));
    assert_false(ws_node_valid((void *)64));
    ws_graph_free(g);
}

static void test_clone_knows_its_origin(void **state)
{
    seed = 5;
    struct ws_graph *g = random_graph(30, 20, true), *clone;
    struct ws_exec *e;
    enum ws_instantiate_result result;
    struct ws_node *bad;
    struct cuda_update_result update;
    assert_int_equal(ws_graph_clone(g, &clone), 0);
    assert_int_equal(clone->n_nodes, 30);
    for (size_t i = 0; i < 30; i++) {
        assert_int_equal(clone->nodes[i]->origin, g->nodes[i]->id);
        assert_int_equal(clone->nodes[i]->n_in, g->nodes[i]->n_in);
        for (size_t k = 0; k < g->nodes[i]->n_in; k++)
            assert_int_equal(clone->nodes[i]->in[k].from->index, g->nodes[i]->in[k].from->index);
    }
    assert_int_equal(ws_exec_new(g, 0, 0, &e, &result, &bad), 0);
    assert_ptr_equal(ws_exec_node(e, g->nodes[7])->graph, e->graph);
    assert_null(ws_exec_node(e, clone->nodes[7]));
    /* the clone has the same shape; with a node or an edge less it has not */
    assert_int_equal(ws_exec_update(e, clone, &update), 0);
    for (size_t i = 0; i < 30; i++)
        if (clone->nodes[i]->n_in) {
            struct ws_node *to = clone->nodes[i], *from = to->in[0].from;
            assert_int_equal(ws_graph_remove_edges(clone, &from, &to, NULL, 1), 0);
            assert_int_equal(ws_exec_update(e, clone, &update), CUDA_GRAPH_UPDATE_FAILURE);
            assert_int_equal(update.result, WS_UPDATE_TOPOLOGY_CHANGED);
            break;
        }
    ws_node_free(clone->nodes[29]);
    assert_int_equal(ws_exec_update(e, clone, &update), CUDA_GRAPH_UPDATE_FAILURE);
    ws_graph_free(g); /* before the exec made from it */
    ws_exec_destroy(e);
    ws_graph_free(clone);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, setup)
    const struct CMUnitTest tests[] = {
        T(test_random_graphs_keep_their_edges),
        T(test_chain_needs_no_event),
        T(test_branches_are_parallel),
        T(test_more_branches_than_branches),
        T(test_cycles_are_found),
        T(test_wrong_edges),
        T(test_clone_knows_its_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
