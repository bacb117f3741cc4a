// SPDX-License-Identifier: Apache-2.0
/* backend: what it takes to load PTX that is hard to compile (tests/lib/hard_text.h). Work is
 * counted in the steps of a budget (base/budget.h), not in seconds, so that the test says the same
 * on every machine: twice as much text is about twice as much work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "backend/learn/learn.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/macros.h"
#include "device/soft/exec/exec.h"
#include "tests/lib/hard_text.h"

/* Parses, decodes and counts as the daemon does. */
static int load(const char *text, size_t len, struct ws_budget *b)
{
    struct ws_ptx_module *m = NULL;
    struct ws_code *c = NULL;
    struct ws_learn_code *l = NULL;
    struct ws_dmodule_info info = {0};
    struct ws_budget *before = ws_budget_enter(b);
    int r = ws_ptx_parse(&m, text, len, NULL, NULL);
    if (!r)
        r = ws_code_new(&c, m, 0, NULL);
    if (!r) {
        info.kernels = ws_code_kernels(c, &info.n_kernels);
        r = ws_learn_code_new(&l, m, &info, info.n_kernels);
    }
    ws_learn_code_free(l);
    ws_code_free(c);
    ws_ptx_module_free(m);
    ws_budget_leave(before);
    return r;
}

static uint64_t steps(const struct hard_text *kind, uint32_t n)
{
    struct ws_budget b = {0};
    size_t len;
    char *text = hard_text_make(kind, n, &len);
    assert_non_null(text);
    int r = load(text, len, &b);
    free(text);
    if (r || b.end)
        fail_msg("%s %u: %d", kind->name, n, r);
    return b.steps;
}

static void test_work_grows_with_the_text(void **state)
{
    (void)state;
    for (const struct hard_text *k = hard_texts; k->name; k++) {
        if (k->growth)
            continue;
        uint64_t one = steps(k, 1500), two = steps(k, 3000);
        if (two * 10 > one * 22)
            fail_msg("%s: %llu steps, of twice the text %llu", k->name, (unsigned long long)one,
                     (unsigned long long)two);
    }
}

static void test_what_grows_faster_meets_a_limit(void **state)
{
    (void)state;
    for (const struct hard_text *k = hard_texts; k->name; k++) {
        struct ws_budget bytes = {.max_bytes = 16 << 20}, time = {.max_steps = 100000};
        size_t len;
        char *text = hard_text_make(k, 1500, &len);
        assert_non_null(text);
        if (k->growth == HARD_MEMORY) {
            assert_int_equal(load(text, len, &bytes), -ENOMEM);
            assert_int_equal(bytes.end, WS_BUDGET_BYTES);
        }
        if (k->growth) {
            assert_int_equal(load(text, len, &time), -ENOMEM);
            assert_int_equal(time.end, WS_BUDGET_TIME);
            assert_in_range(time.steps, 100000, 200000); /* it ends soon */
        }
        free(text);
    }
}

/* Wherever a budget ends, nothing is lost, and nothing is made of what was left out. */
static void test_may_end_anywhere(void **state)
{
    (void)state;
    for (const struct hard_text *k = hard_texts; k->name; k++) {
        size_t len;
        char *text = hard_text_make(k, 40, &len);
        assert_non_null(text);
        struct ws_budget all = {0};
        int whole = load(text, len, &all);
        for (uint64_t at = 0; at < all.steps; at += WS_MAX(all.steps / 50, UINT64_C(1))) {
            struct ws_budget b = {.max_steps = at + 1};
            int r = load(text, len, &b);
            if (r != whole && r != -ENOMEM)
                fail_msg("%s after %llu steps: %d", k->name, (unsigned long long)at, r);
            if (r == -ENOMEM)
                assert_int_equal(b.end, WS_BUDGET_TIME);
        }
        free(text);
    }
}

static void test_stops_at_once(void **state)
{
    (void)state;
    struct ws_budget b = {0};
    size_t len;
    char *text = hard_text_make(hard_text_find("kernels"), 2000, &len);
    assert_non_null(text);
    ws_budget_stop(&b);
    assert_int_equal(load(text, len, &b), -ENOMEM);
    assert_int_equal(b.end, WS_BUDGET_STOPPED);
    assert_in_range(b.steps, 0, 100);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_grows_with_the_text),
        cmocka_unit_test(test_what_grows_faster_meets_a_limit),
        cmocka_unit_test(test_may_end_anywhere),
        cmocka_unit_test(test_stops_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
