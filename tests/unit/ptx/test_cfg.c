// SPDX-License-Identifier: Apache-2.0
/* ptx: blocks, successors and post-dominators, on drawn graphs and against a slow definition on
 * random ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <time.h>

#include "base/clock.h"
#include "ptx/ptx.h"
#include "tests/lib/cpu_time.h"

struct fixture {
    struct ws_ptx_module *m;
    struct ws_diags diags;
    struct ws_arena arena;
    char *text;
    size_t len;
};

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct fixture));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    ws_ptx_module_free(x->m);
    ws_diags_deinit(&x->diags);
    ws_arena_deinit(&x->arena);
    free(x->text);
    free(x);
    return 0;
}

#define HEAD                                                                                       \
    ".version 8.0\n.target sm_75\n.address_size 64\n.entry k() { .reg .pred p; .reg .b32 r;\n"

static void build(struct fixture *x, const char *text, struct ws_ptx_cfg *c)
{
    int r = ws_ptx_parse(&x->m, text, strlen(text), "t", &x->diags);
    if (r)
        print_error("%s", ws_diags_text(&x->diags));
    assert_int_equal(r, 0);
    assert_int_equal(ws_ptx_cfg_build(c, &x->m->funcs[0], &x->arena), 0);
}

static void check(const struct ws_ptx_cfg *c, size_t n, const struct ws_ptx_block *want)
{
    assert_int_equal(c->n_blocks, n);
    for (size_t k = 0; k < n; k++) {
        assert_int_equal(c->blocks[k].first, want[k].first);
        assert_int_equal(c->blocks[k].n, want[k].n);
        assert_int_equal(c->blocks[k].succ[0], want[k].succ[0]);
        assert_int_equal(c->blocks[k].succ[1], want[k].succ[1]);
        assert_int_equal(c->blocks[k].ipdom, want[k].ipdom);
        for (uint32_t i = 0; i < want[k].n; i++)
            assert_int_equal(c->block_of[want[k].first + i], k);
    }
}

static void test_if_else(void **state)
{
    struct fixture *x = *state;
    struct ws_ptx_cfg c;
    build(x,
          HEAD
          "mov.b32 r, 0; @p bra E; mov.b32 r, 1; bra J; E: mov.b32 r, 2; J: mov.b32 r, 3; ret; }",
          &c);
    check(&c, 4,
          (struct ws_ptx_block[]){
              {0, 2, {1, 2}, 3}, {2, 2, {3, -1}, 3}, {4, 1, {3, -1}, 3}, {5, 2, {-1, -1}, -1}});
}

static void test_loop_with_exit(void **state)
{
    struct fixture *x = *state;
    struct ws_ptx_cfg c;
    build(x, HEAD "L: mov.b32 r, 0; @p exit; @!p bra L; ret; }", &c);
    check(&c, 3,
          (struct ws_ptx_block[]){{0, 2, {1, -1}, -1}, {2, 1, {2, 0}, -1}, {3, 1, {-1, -1}, -1}});
}

static void test_endless_loop_has_no_post_dominator(void **state)
{
    struct fixture *x = *state;
    struct ws_ptx_cfg c;
    build(x, HEAD "@p bra X; L: mov.b32 r, 1; bra L; X: ret; }", &c);
    check(&c, 3,
          (struct ws_ptx_block[]){{0, 1, {1, 2}, 2}, {1, 2, {1, -1}, -1}, {3, 1, {-1, -1}, -1}});
}

static void test_empty_and_falling_off(void **state)
{
    struct fixture *x = *state;
    struct ws_ptx_cfg c;
    build(x, HEAD "}", &c);
    assert_int_equal(c.n_blocks, 0);
    x->m = ws_ptx_module_free(x->m);
    build(x, HEAD "@p bra E; mov.b32 r, 1; E: }", &c);
    check(&c, 2, (struct ws_ptx_block[]){{0, 1, {1, -1}, -1}, {1, 1, {-1, -1}, -1}});
}

static void test_branch_table(void **state)
{
    struct fixture *x = *state;
    struct ws_ptx_cfg c;
    build(x,
          HEAD
          "t: .branchtargets A, B, C; brx.idx r, t; A: bra J; B: bra J; C: mov.b32 r, 1; J: ret; }",
          &c);
    assert_int_equal(c.n_blocks, 5);
    assert_int_equal(c.blocks[0].ipdom, 4);
}

/* Whether every way from a to the exit leads over b: the exit cannot be reached from a without
 * b. */
static bool post_dominates(uint32_t n, const uint32_t (*succ)[2], uint32_t b, uint32_t a)
{
    bool seen[65] = {false};
    uint32_t stack[256], top = 0;
    if (a == b)
        return true;
    stack[top++] = a;
    seen[a] = true;
    while (top) {
        uint32_t v = stack[--top];
        if (v == n)
            return false;
        for (int k = 0; k < 2; k++)
            if (succ[v][k] != b && !seen[succ[v][k]]) {
                seen[succ[v][k]] = true;
                stack[top++] = succ[v][k];
            }
    }
    return true;
}

static bool reaches_exit(uint32_t n, const uint32_t (*succ)[2], uint32_t a)
{
    return !post_dominates(n, succ, UINT32_MAX, a);
}

static void test_random_graphs_against_the_definition(void **state)
{
    struct fixture *x = *state;
    uint64_t seed = 88172645463325252u;
    for (int round = 0; round < 300; round++) {
        uint32_t succ[64][2], n = 2 + round % 30;
        struct ws_ptx_cfg c;
        FILE *f = open_memstream(&x->text, &x->len);
        assert_non_null(f);
        fputs(HEAD, f);
        for (uint32_t k = 0; k < n; k++) { /* block k: two instructions, to anywhere or on */
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            uint32_t to = seed % (n + 1);
            bool sure = seed >> 40 & 1 && seed >> 41 & 1;
            fprintf(f, "B%u: mov.b32 r, 1; %s bra B%u;\n", k, sure ? "" : "@p", to);
            succ[k][0] = to;
            succ[k][1] = sure ? to : k + 1;
        }
        fprintf(f, "B%u: }", n);
        fclose(f);
        build(x, x->text, &c);
        assert_int_equal(c.n_blocks, n);
        for (uint32_t a = 0; a < n; a++) {
            int32_t p = c.blocks[a].ipdom;
            if (!reaches_exit(n, (const uint32_t(*)[2])succ, a)) {
                assert_int_equal(p, -1);
                continue;
            }
            /* The immediate one: it post-dominates a, and every other post-dominator of a
             * post-dominates it. */
            uint32_t ip = p < 0 ? n : (uint32_t)p;
            assert_int_not_equal(ip, a);
            assert_true(ip == n || post_dominates(n, (const uint32_t(*)[2])succ, ip, a));
            for (uint32_t b = 0; b < n; b++)
                if (b != a && post_dominates(n, (const uint32_t(*)[2])succ, b, a)) {
                    assert_true(ip != n);
                    assert_true(post_dominates(n, (const uint32_t(*)[2])succ, b, ip));
                }
        }
        x->m = ws_ptx_module_free(x->m);
        free(x->text);
        x->text = NULL;
    }
}

static void test_bad_graphs_take_no_long_time(void **state)
{
    struct fixture *x = *state;
    struct ws_ptx_cfg c;
    FILE *f = open_memstream(&x->text, &x->len);
    assert_non_null(f);
    fputs(HEAD, f); /* many branches into both ends of a long chain */
    for (int k = 0; k < 20000; k++)
        fputs("@p bra END; @p bra START;\n", f);
    fputs("START:\n", f);
    for (int k = 0; k < 20000; k++)
        fprintf(f, "L%d: mov.b32 r, 1;\n", k);
    fputs("END: ret; }", f);
    fclose(f);
    uint64_t start = cpu_ns();
    build(x, x->text, &c);
    assert_true(cpu_ns() - start < 2 * WS_NS_PER_S);
    assert_int_equal(c.blocks[0].ipdom, c.n_blocks - 1);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_if_else),
        T(test_loop_with_exit),
        T(test_endless_loop_has_no_post_dominator),
        T(test_empty_and_falling_off),
        T(test_branch_table),
        T(test_random_graphs_against_the_definition),
        T(test_bad_graphs_take_no_long_time),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
