// SPDX-License-Identifier: Apache-2.0
/* device/soft/timeline: kernels that follow measured times and powers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/soft/timeline/follow.h"
#include "device/soft/timeline/power.h"

static const double time_ns[] = {8000, 4000, 0, 2100}, power_mw[] = {20000, 15000, 0, 0};
static const struct ws_followed kernels[] = {{"a", 4, time_ns, power_mw},
                                             {"ab", 4, time_ns, power_mw}};
static const struct ws_gpu_spec gpu = {.n_sms = 6,
                                       .launch_overhead_ns = 100,
                                       .static_mw = 10000,
                                       .dynamic_mw_per_sm = 3000,
                                       .idle_mw_per_sm = 500};

static void kernels_are_found_by_name(void **state)
{
    assert_ptr_equal(ws_follow_find(kernels, 2, "ab"), &kernels[1]);
    assert_null(ws_follow_find(kernels, 2, "b"));
    assert_null(ws_follow_find(NULL, 0, "a"));
}

static void price(uint32_t n_sms, uint64_t n_blocks, uint32_t per_sm, uint32_t n_units,
                  uint32_t blocks_of_unit, double want_ns)
{
    struct ws_unit units[16];
    struct ws_cost costs[16];
    for (uint32_t i = 0; i < n_units; i++)
        units[i] = (struct ws_unit){.n_blocks = blocks_of_unit};
    assert_true(ws_follow_price(kernels, &gpu, n_sms, n_blocks, per_sm, units, n_units, costs));
    for (uint32_t i = 0; i < n_units; i++) {
        assert_float_equal(costs[i].latency_ns, want_ns, 1e-6);
        assert_true(costs[i].issue_ns <= 0 && costs[i].bytes <= 0);
    }
}

static void the_waves_take_the_measured_time(void **state)
{
    price(1, 8, 1, 8, 1, 7900.0 / 8);  /* eight waves */
    price(1, 8, 4, 8, 1, 7900.0 / 2);  /* four blocks on the SM: two */
    price(2, 8, 1, 4, 1, 3900.0 / 4);  /* half of the blocks is left: each as long as before */
    price(4, 64, 1, 8, 8, 2000.0 / 2); /* eight units of eight blocks: two waves of units */
}

static void what_was_not_measured_is_modelled(void **state)
{
    struct ws_unit unit = {.n_blocks = 1};
    struct ws_cost cost = {.issue_ns = 5};
    assert_false(ws_follow_price(kernels, &gpu, 3, 1, 1, &unit, 1, &cost));
    assert_false(ws_follow_price(kernels, &gpu, 5, 1, 1, &unit, 1, &cost));
    assert_false(ws_follow_price(kernels, &gpu, 0, 1, 1, &unit, 1, &cost));
    assert_true(cost.issue_ns > 0);
    assert_int_equal(ws_follow_own_mw(kernels, &gpu, 4), 0);
    assert_int_equal(ws_follow_own_mw(kernels, &gpu, 5), 0);
}

/* More than Eq. 2 says, and less. */
static void the_board_draws_what_was_measured(void **state)
{
    assert_int_equal((int64_t)ws_power_mw(&gpu, 1) + ws_follow_own_mw(kernels, &gpu, 1), 20000);
    assert_int_equal((int64_t)ws_power_mw(&gpu, 2) + ws_follow_own_mw(kernels, &gpu, 2), 15000);
    assert_true(ws_follow_own_mw(kernels, &gpu, 2) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_found_by_name),
        cmocka_unit_test(the_waves_take_the_measured_time),
        cmocka_unit_test(what_was_not_measured_is_modelled),
        cmocka_unit_test(the_board_draws_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
