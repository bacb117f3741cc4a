// SPDX-License-Identifier: Apache-2.0
/* backend: device addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "backend/client/va.h"
#include "base/alloc.h"
#include "base/error.h"
#include "protocol/protocol.h"

struct fixture {
    struct ws_va_pool pool;
    struct ws_va a, b;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    *state = f;
    int r = ws_va_pool_init(&f->pool, WS_VA_FIRST, WS_VA_LAST, WS_VA_GRANULE_BYTES,
                            WS_RESOURCE_ADDRESS_BYTES);
    ws_va_init(&f->a, &f->pool, NULL);
    ws_va_init(&f->b, &f->pool, NULL);
    return r;
}

static unsigned n_taken(const struct ws_va_pool *p)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < p->n; i++)
        n += p->taken[i];
    return n;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    ws_alloc_fail_after(0);
    ws_va_deinit(&f->a);
    ws_va_deinit(&f->b);
    int left = (int)n_taken(&f->pool);
    ws_va_pool_deinit(&f->pool);
    free(f);
    return left;
}

static void test_aligned_apart_and_in_range(void **state)
{
    struct fixture *f = *state;
    uint64_t last = 0;
    for (int i = 1; i < 1000; i++) {
        uint64_t va;
        assert_int_equal(ws_va_alloc(i & 1 ? &f->a : &f->b, (uint64_t)i * 37, &va), 0);
        assert_int_equal(va % WS_VA_ALIGN_BYTES, 0);
        assert_true(va >= WS_VA_FIRST + WS_VA_GAP_BYTES && va + (uint64_t)i * 37 <= WS_VA_LAST);
        if (i & 1) {
            assert_true(va >= last + WS_VA_GAP_BYTES);
            last = va + (uint64_t)i * 37;
        }
    }
    assert_true(f->a.runs[0].va != f->b.runs[0].va);
}

/* Between small ones, and where freed room must be cut in the middle. */
static void test_big_ones_begin_at_large_pages(void **state)
{
    struct fixture *f = *state;
    uint64_t small, va, again;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(ws_va_alloc(&f->a, 700, &small), 0);
        assert_int_equal(ws_va_alloc(&f->a, WS_VA_BIG_BYTES + (uint64_t)i, &va), 0);
        assert_int_equal(va % WS_VA_BIG_ALIGN_BYTES, 0);
        if (i % 3 == 0)
            ws_va_free(&f->a, va, WS_VA_BIG_BYTES + (uint64_t)i);
    }
    for (size_t i = 1; i < f->a.n_free; i++)
        assert_true(f->a.free[i - 1].va + f->a.free[i - 1].bytes < f->a.free[i].va);
    /* Nearly all of the first granules: only room that begins elsewhere is left for the next
     * one. */
    assert_int_equal(ws_va_alloc(&f->b, WS_VA_GRANULE_BYTES - (4 << 20), &va), 0);
    assert_int_equal(ws_va_alloc(&f->b, UINT64_C(3) << 20, &again), 0);
    assert_int_equal(va % WS_VA_BIG_ALIGN_BYTES | again % WS_VA_BIG_ALIGN_BYTES, 0);
}

static void test_freed_addresses_come_back_late(void **state)
{
    struct fixture *f = *state;
    uint64_t first, va;
    assert_int_equal(ws_va_alloc(&f->a, 4096, &first), 0);
    ws_va_free(&f->a, first, 4096);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(ws_va_alloc(&f->a, 4096, &va), 0);
        ws_va_free(&f->a, va, 4096);
    }
    assert_int_equal(f->a.n_free, 1); /* all joined again */
    assert_int_equal(f->a.n_runs, 1);
}

static void test_reuse_within_one_granule(void **state)
{
    struct fixture *f = *state;
    uint64_t va, big = WS_VA_GRANULE_BYTES / 2;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(ws_va_alloc(&f->a, big, &va), 0);
        ws_va_free(&f->a, va, big);
    }
    assert_int_equal(f->a.n_runs, 1);
}

static void test_large_and_absurd(void **state)
{
    struct fixture *f = *state;
    uint64_t va;
    assert_int_equal(ws_va_alloc(&f->a, 0, &va), -EINVAL);
    assert_int_equal(ws_va_alloc(&f->a, UINT64_MAX, &va), -EINVAL);
    assert_int_equal(ws_va_alloc(&f->a, WS_VA_LAST - WS_VA_FIRST, &va), -ENOMEM);
    assert_int_equal(ws_va_alloc(&f->a, 5 * WS_VA_GRANULE_BYTES, &va), 0);
    assert_int_equal(n_taken(&f->pool), 6);
    ws_va_free(&f->a, va, 5 * WS_VA_GRANULE_BYTES);
    ws_va_deinit(&f->a);
    assert_int_equal(n_taken(&f->pool), 0);
}

/* Against a model: no two live allocations overlap or touch. */
static void test_random_against_model(void **state)
{
    struct fixture *f = *state;
    enum { N = 300 };
    static uint64_t va[N], bytes[N];
    memset(va, 0, sizeof(va));
    srand(3);
    for (int step = 0; step < 20000; step++) {
        int i = rand() % N;
        if (va[i]) {
            ws_va_free(&f->a, va[i], bytes[i]);
            va[i] = 0;
            continue;
        }
        bytes[i] = UINT64_C(1) << (rand() % 34);
        assert_int_equal(ws_va_alloc(&f->a, bytes[i], &va[i]), 0);
        for (int k = 0; k < N; k++)
            if (k != i && va[k])
                assert_true(va[i] + bytes[i] + WS_VA_GAP_BYTES <= va[k] ||
                            va[k] + bytes[k] + WS_VA_GAP_BYTES <= va[i]);
    }
    for (int i = 0; i < N; i++)
        if (va[i])
            ws_va_free(&f->a, va[i], bytes[i]);
    assert_true(f->a.n_free <= f->a.n_runs);
}

static void test_out_of_memory(void **state)
{
    struct fixture *f = *state;
    uint64_t va;
    for (uint64_t n = 1; n <= 2; n++) {
        ws_alloc_fail_after(n);
        assert_int_equal(ws_va_alloc(&f->b, 100, &va), -ENOMEM);
        assert_int_equal(n_taken(&f->pool), 0);
    }
    ws_alloc_fail_after(0);
    assert_int_equal(ws_va_alloc(&f->b, 100, &va), 0);
}

static void test_mirror(void **state)
{
    (void)state;
    struct ws_va_pool pool;
    struct ws_va v, twin;
    uint64_t at[4];
    assert_int_equal(ws_va_pool_init(&pool, WS_VA_FIRST, WS_VA_LAST, WS_VA_GRANULE_BYTES,
                                     WS_RESOURCE_ADDRESS_BYTES),
                     0);
    ws_va_init(&v, &pool, NULL);
    for (int k = 0; k < 4; k++)
        assert_int_equal(ws_va_alloc(&v, k == 2 ? 2 * WS_VA_GRANULE_BYTES : 4096, &at[k]), 0);
    assert_int_equal(ws_va_mirror(&v, &twin), 0);
    assert_true(v.n_runs > 1 && v.n_runs == twin.n_runs);
    for (int k = 0; k < 4; k++) {
        uint64_t to = ws_va_mirrored(&v, &twin, at[k]);
        assert_int_not_equal(to, 0);
        assert_int_equal((to - at[k]) % WS_VA_GRANULE_BYTES, 0);
        for (size_t i = 0; i < v.n_runs; i++)
            assert_false(to >= v.runs[i].va && to - v.runs[i].va < v.runs[i].bytes);
    }
    uint64_t aligned;
    assert_int_equal(ws_va_alloc_at(&v, 512, 2 << 20, &aligned), 0);
    assert_int_equal(aligned % (2 << 20), 0);
    ws_va_deinit(&twin);
    ws_va_deinit(&v);
    for (uint32_t i = 0; i < pool.n; i++)
        assert_int_equal(pool.taken[i], 0);
    ws_va_pool_deinit(&pool);
}

/* Addresses that a program asks for: taken exactly, refused when somebody has them, and free again
 * for everybody. */
static void test_fixed(void **state)
{
    struct fixture *f = *state;
    const uint64_t G = WS_VA_GRANULE_BYTES, at = WS_VA_FIRST + 8 * G, MIB2 = 2 << 20;
    uint64_t whole, taken[3], va;
    assert_int_equal(ws_va_alloc_fixed(&f->a, at, G, &whole), 0);
    assert_int_equal(whole, G); /* its neighbours are free for others */
    assert_int_equal(ws_va_alloc_fixed(&f->b, at, MIB2, taken), -ENOMEM);
    assert_int_equal(ws_va_alloc_fixed(&f->a, at + G / 2, MIB2, taken), -ENOMEM);
    assert_int_equal(ws_va_alloc_fixed(&f->b, at - G / 2, G, taken), -ENOMEM);
    assert_int_equal(ws_va_alloc_fixed(&f->b, at + G, G, taken), 0);
    ws_va_give(&f->b, at + G, taken[0]);
    ws_va_give(&f->a, at, whole);
    /* within one granule: a gap behind each */
    assert_int_equal(ws_va_alloc_fixed(&f->a, at, MIB2, &taken[0]), 0);
    assert_int_equal(taken[0], MIB2 + WS_VA_GAP_BYTES);
    assert_int_equal(ws_va_alloc_fixed(&f->a, at + MIB2, MIB2, &taken[1]), -ENOMEM);
    assert_int_equal(ws_va_alloc_fixed(&f->a, at + 2 * MIB2, MIB2, &taken[1]), 0);
    assert_int_equal(ws_va_alloc_fixed(&f->a, at + G - MIB2, MIB2, &taken[2]), 0);
    assert_int_equal(taken[2], MIB2);
    for (int i = 0; i < 100; i++) { /* others go between them */
        assert_int_equal(ws_va_alloc(&f->a, MIB2, &va), 0);
        assert_true(va >= at + 3 * MIB2 || va < at);
        assert_true(va + MIB2 + WS_VA_GAP_BYTES <= at + G - MIB2 || va >= at + G);
    }
    assert_int_equal(ws_va_alloc_fixed(&f->a, at + 1, MIB2, taken), -EINVAL);
    assert_int_equal(ws_va_alloc_fixed(&f->a, WS_VA_LAST - MIB2, 2 * MIB2, taken), -EINVAL);
    assert_int_equal(ws_va_alloc_fixed(&f->a, WS_VA_FIRST - MIB2, MIB2, taken), -EINVAL);
    ws_va_deinit(&f->a);
    ws_va_deinit(&f->b);
    assert_int_equal(n_taken(&f->pool), 0);
}

/* Nobody gets all granules by asking for a page of each. */
static void test_fixed_has_a_limit(void **state)
{
    struct fixture *f = *state;
    uint64_t taken, n = 0;
    for (uint32_t i = 0; i < f->pool.n; i++)
        n += !ws_va_alloc_fixed(&f->a, WS_VA_FIRST + i * WS_VA_GRANULE_BYTES, 2 << 20, &taken);
    assert_int_equal(n, WS_VA_FIXED_MAX_BYTES / WS_VA_GRANULE_BYTES);
}

int main(int argc, char **argv)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_aligned_apart_and_in_range),
        T(test_big_ones_begin_at_large_pages),
        T(test_freed_addresses_come_back_late),
        T(test_reuse_within_one_granule),
        T(test_large_and_absurd),
        T(test_random_against_model),
        T(test_out_of_memory),
        T(test_fixed),
        T(test_fixed_has_a_limit),
        cmocka_unit_test(test_mirror),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
