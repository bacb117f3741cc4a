// SPDX-License-Identifier: Apache-2.0
/* device/soft/timeline: kernels that follow measured times and powers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/soft/timeline/follow.h"
#include "device/soft/timeline/meter.h"
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
    struct ws_unit units[16] = {0};
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
    int32_t own_mw = 5;
    assert_false(ws_follow_own_mw(kernels, &gpu, 4, &own_mw));
    assert_false(ws_follow_own_mw(kernels, &gpu, 5, &own_mw));
    assert_int_equal(own_mw, 5);
}

static int64_t own_mw(uint32_t n_sms)
{
    int32_t mw = 0;
    assert_true(ws_follow_own_mw(kernels, &gpu, n_sms, &mw));
    return mw;
}

/* More than Eq. 2 says, and less. */
static void the_board_draws_what_was_measured(void **state)
{
    assert_int_equal((int64_t)ws_power_mw(&gpu, 1) + own_mw(1), 20000);
    assert_int_equal((int64_t)ws_power_mw(&gpu, 2) + own_mw(2), 15000);
    assert_true(own_mw(2) < 0);
}

/* @n kernels, each on one SM, that were measured to draw 2 W alone. Eq. 2 says so much more that
 * the sum for several would be negative. */
static void together(uint32_t n, bool one_owner, bool one_sm)
{
    struct ws_meter *m;
    struct ws_meter_load loads[6];
    struct ws_meter_totals t;
    uint64_t sum_uj = 0, alone_uj;
    int32_t own_mw = 2000 - (int32_t)ws_power_mw(&gpu, 1);
    assert_int_equal(ws_meter_new(&m, &gpu, &(struct ws_device_options){0}, 0), 0);
    for (uint32_t i = 0; i < n; i++) {
        loads[i] = (struct ws_meter_load){.end_ns = 1000000000,
                                          .owner = one_owner ? 1 : i + 1,
                                          .dynamic_mw_per_sm = gpu.dynamic_mw_per_sm,
                                          .own_mw = own_mw};
        ws_sm_set_add(&loads[i].sms, one_sm ? 0 : i);
        ws_meter_begin(m, 0, &loads[i]);
    }
    ws_meter_totals(m, 500000000, &t);
    assert_in_range(t.power_mw, 2000, ws_power_mw(&gpu, n));
    for (uint32_t i = 0; i < n; i++) {
        uint64_t uj = ws_meter_end(m, &loads[i], &alone_uj);
        if (!one_owner)
            assert_in_range(uj, 2000000 / n - 1, 2000000 / n + 1);
        sum_uj += uj;
    }
    ws_meter_totals(m, 1000000000, &t);
    assert_in_range(t.energy_uj, 2000000, ws_power_mw(&gpu, n) * 1000);
    /* what some of them paid too much is taken off the next */
    struct ws_meter_load next = {.start_ns = 1000000000, .end_ns = 9000000000};
    ws_meter_begin(m, 1000000000, &next);
    sum_uj += ws_meter_end(m, &next, &alone_uj);
    assert_int_equal(alone_uj, 8 * gpu.static_mw * 1000);
    ws_meter_totals(m, 9000000000, &t);
    assert_in_range(t.energy_uj - t.idle_energy_uj - sum_uj, 0, 1);
    ws_meter_free(m);
}

static void together_they_draw_no_less_than_one(void **state)
{
    for (uint32_t n = 1; n <= 6; n++)
        for (int how = 0; how < 4; how++)
            together(n, how & 1, how & 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_found_by_name),
        cmocka_unit_test(the_waves_take_the_measured_time),
        cmocka_unit_test(what_was_not_measured_is_modelled),
        cmocka_unit_test(the_board_draws_what_was_measured),
        cmocka_unit_test(together_they_draw_no_less_than_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
