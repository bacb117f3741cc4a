// SPDX-License-Identifier: Apache-2.0
/* device/soft/timeline/readings.h: when the counter moves and by how much, the mean power, the
 * noise; and what a device with such a meter tells. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/soft/timeline/readings.h"
#include "tests/unit/device/softdev_rig.h"

#define UPDATE_NS UINT64_C(100000000)

/* Without noise: 50 W are 5 J at each update, and nothing in between. */
static void moves_at_intervals(void **state)
{
    (void)state;
    struct ws_readings r;
    ws_readings_init(&r, UPDATE_NS, 0, 1);
    ws_readings_pass(&r, UPDATE_NS - 1, 50000);
    assert_int_equal(ws_readings_energy_uj(&r), 0);
    assert_int_equal(ws_readings_power_mw(&r), 0);
    ws_readings_pass(&r, 1, 50000);
    assert_int_equal(ws_readings_energy_uj(&r), 5000000);
    ws_readings_pass(&r, UPDATE_NS / 2, 50000);
    ws_readings_late(&r, UINT64_C(1000000000000)); /* 1 J that was not known in time */
    assert_int_equal(ws_readings_energy_uj(&r), 5000000);
    ws_readings_pass(&r, 2 * UPDATE_NS, 30000); /* two updates at once: 2.5 + 1 + 1.5 J, 3 J */
    assert_int_equal(ws_readings_energy_uj(&r), 13000000);
}

static void counts_whole_mj(void **state)
{
    (void)state;
    struct ws_readings r;
    ws_readings_init(&r, UPDATE_NS, 0, 1);
    ws_readings_pass(&r, UPDATE_NS, 6); /* .6 mJ */
    assert_int_equal(ws_readings_energy_uj(&r), 0);
    ws_readings_pass(&r, UPDATE_NS, 6);
    assert_int_equal(ws_readings_energy_uj(&r), 1000);
}

static void power_is_a_mean(void **state)
{
    (void)state;
    struct ws_readings r;
    ws_readings_init(&r, UPDATE_NS, 0, 1);
    ws_readings_pass(&r, 20 * UPDATE_NS, 40000);
    assert_int_equal(ws_readings_power_mw(&r), 40000);
    ws_readings_pass(&r, 3 * UPDATE_NS, 90000);
    assert_int_equal(ws_readings_power_mw(&r), 55000); /* of ten, seven at 40 W */
    ws_readings_pass(&r, 7 * UPDATE_NS, 90000);
    assert_int_equal(ws_readings_power_mw(&r), 90000);
}

/* The noise is that which is asked for, with mean 0, the same for the same seed and another one for
 * another. */
static void noise(void **state)
{
    (void)state;
    enum { N = 2000 };
    struct ws_readings r[3];
    double sum = 0, squares = 0;
    uint64_t before = 0, n_other = 0;
    for (int i = 0; i < 3; i++)
        ws_readings_init(&r[i], UPDATE_NS, 0.05, i < 2 ? 7 : 8);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 3; k++)
            ws_readings_pass(&r[k], UPDATE_NS, 50000);
        uint64_t now = ws_readings_energy_uj(&r[0]);
        double e = (double)(now - before) / 5e6 - 1;
        before = now;
        sum += e;
        squares += e * e;
        assert_int_equal(now, ws_readings_energy_uj(&r[1]));
        n_other += now != ws_readings_energy_uj(&r[2]);
    }
    assert_true(fabs(sum / N) < 4 * 0.05 / sqrt(N));
    assert_true(fabs(sqrt(squares / N) - 0.05) < 0.005);
    assert_true(n_other > N - 10);
}

static int setup_nvml(void **state)
{
    return rig_open(state, &(struct ws_device_options){.clock = WS_CLOCK_SCALED,
                                                       .scale = 20,
                                                       .n_workers = 2,
                                                       .meter = WS_METER_NVML,
                                                       .meter_update_ns = 200000,
                                                       .meter_noise = 0});
}

/* Of a device nothing is told but what the meter shows: no exact energy of a launch, none of idle
 * time, and a counter that comes to what the power gives. */
static void device_tells_readings(void **state)
{
    struct rig *f = *state;
    struct ws_device_telemetry a, b;
    assert_int_equal(f->device[0]->meter_update_ns, 200000);
    rig_sleep_until(f, 450000);
    ws_device_telemetry(f->device[0], &a);
    uint64_t idle_uj = rig_spec.static_mw * 200000 / 1000000; /* of an update */
    idle_uj -= idle_uj % 1000;
    assert_true(a.now_ns >= 450000);
    assert_true(a.energy_uj % 1000 == 0 && a.energy_uj >= 2 * idle_uj);
    assert_true(a.energy_uj <= a.now_ns * rig_spec.static_mw / 1000000);
    assert_int_equal(a.idle_energy_uj, 0);
    assert_in_range(a.power_mw, rig_spec.static_mw - 1, rig_spec.static_mw);
    struct ws_op *op = rig_launch(f, 0, 0, 640, rig_work(f));
    rig_wait_op(f, op);
    assert_int_equal(op->alone_uj, 0);
    ws_device_telemetry(f->device[0], &b);
    uint64_t ns = op->end_ns - op->start_ns, busy_mw = rig_spec.static_mw + 4 * 1300;
    assert_true(ns > 800000);
    assert_true(op->energy_uj > 0 && op->energy_uj < busy_mw * ns / 1000000);
    uint64_t least = (ns - 200000) * busy_mw / 1000000, most = b.now_ns * busy_mw / 1000000;
    assert_in_range(b.energy_uj - a.energy_uj, least, most);
}

static void refused(void **state)
{
    struct rig *f = *state;
    struct ws_diags diags = WS_DIAGS_NULL;
    struct ws_device *d = NULL;
    struct ws_device_options o = {
        .clock = WS_CLOCK_FUNCTIONAL, .meter = WS_METER_NVML, .meter_update_ns = 1};
    (void)f;
    assert_int_equal(ws_device_open_soft(&d, &rig_spec, 2, &o, &diags), -EINVAL);
    o.clock = WS_CLOCK_SCALED;
    o.meter_noise = 0.3;
    assert_int_equal(ws_device_open_soft(&d, &rig_spec, 2, &o, &diags), -EINVAL);
    o.meter_noise = 0;
    o.meter_update_ns = 0;
    assert_int_equal(ws_device_open_soft(&d, &rig_spec, 2, &o, &diags), -EINVAL);
    ws_diags_deinit(&diags);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_at_intervals),
        cmocka_unit_test(counts_whole_mj),
        cmocka_unit_test(power_is_a_mean),
        cmocka_unit_test(noise),
        cmocka_unit_test_setup_teardown(device_tells_readings, setup_nvml, rig_close),
        cmocka_unit_test_setup_teardown(refused, setup_nvml, rig_close),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
