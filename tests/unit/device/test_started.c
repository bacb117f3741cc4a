// SPDX-License-Identifier: Apache-2.0
/* Lists of what kernels start: their order, and their bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "device/space.h"
#include "device/started.h"

static struct ws_space *space;

static int begin(void **state)
{
    (void)state;
    return ws_space_new(&space);
}

static int end(void **state)
{
    (void)state;
    /* All that was counted was given back. */
    assert_true(ws_space_started_take(space, WS_STARTED_BYTES_MAX, WS_STARTED_BYTES_MAX));
    ws_space_free(space);
    return 0;
}

static bool add(struct ws_started *l, uint32_t kernel, bool tail)
{
    struct ws_start w = {.kind = WS_OPK_LAUNCH,
                         .tail = tail,
                         .launch = {.kernel = kernel},
                         .param_bytes = sizeof(kernel)};
    return ws_started_add(l, &w, &kernel) == WS_STARTED_OK;
}

static void is_next(struct ws_started *l, uint32_t kernel)
{
    assert_true(ws_started_any(l));
    const struct ws_start *w = ws_started_next(l);
    assert_non_null(w);
    assert_int_equal(w->launch.kernel, kernel);
    assert_memory_equal(w->params, &kernel, sizeof(kernel));
}

/* What a launch started comes before what was there before it, and its tails behind the rest of
 * it. */
static void test_order(void **state)
{
    (void)state;
    struct ws_started *l = ws_started_new(space);
    assert_non_null(l);
    assert_false(ws_started_any(l));
    assert_null(ws_started_next(l));
    assert_true(add(l, 9, true) && add(l, 1, false) && add(l, 5, false) && add(l, 10, true));
    is_next(l, 1);
    assert_true(add(l, 4, true) && add(l, 2, false) && add(l, 3, false));
    is_next(l, 2);
    is_next(l, 3);
    is_next(l, 4);
    is_next(l, 5);
    assert_true(add(l, 6, false));
    is_next(l, 6);
    assert_true(add(l, 7, true));
    is_next(l, 7);
    assert_true(add(l, 8, false));
    is_next(l, 8);
    is_next(l, 9);
    is_next(l, 10);
    assert_false(ws_started_any(l));
    assert_null(ws_started_next(l));
    assert_null(ws_started_next(l));
    ws_started_free(l);
}

/* A space's lists are bounded together, and what was begun makes room. */
static void test_bound(void **state)
{
    (void)state;
    struct ws_started *l = ws_started_new(space), *other = ws_started_new(space);
    assert_true(l && other);
    uint32_t n = 0;
    while (n < 1000000 && add(n % 2 ? other : l, n, n % 3 == 0))
        n++;
    assert_in_range(n, 2048, WS_STARTED_BYTES_MAX / sizeof(struct ws_start));
    assert_false(add(l, n, false));
    assert_non_null(ws_started_next(other));
    assert_false(add(l, n, false)); /* it exists until the next is asked for */
    assert_non_null(ws_started_next(other));
    assert_true(add(l, n, false));
    assert_false(add(l, n, false));
    ws_started_free(l);
    ws_started_free(other);
}

/* Kernels nest to a depth; a tail is no deeper than who started it. */
static void test_depth(void **state)
{
    (void)state;
    struct ws_started *l = ws_started_new(space);
    uint32_t depth = 0;
    for (; depth < 100 && add(l, depth, false); depth++)
        is_next(l, depth);
    assert_int_equal(depth, WS_STARTED_DEPTH_MAX);
    for (; depth < 100; depth++) {
        assert_true(add(l, depth, true));
        is_next(l, depth);
    }
    assert_int_equal(
        ws_started_add(l, &(struct ws_start){.kind = WS_OPK_COPY, .copy = {.bytes = 1}}, NULL),
        WS_STARTED_DEEP);
    ws_started_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, begin, end),
        cmocka_unit_test_setup_teardown(test_bound, begin, end),
        cmocka_unit_test_setup_teardown(test_depth, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
