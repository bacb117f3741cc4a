// SPDX-License-Identifier: Apache-2.0
/* Preemption of launches at block boundaries: every block exactly once, and where device time passes, the time of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "tests/unit/device/softdev_rig.h"

static int setup_functional(void **state)
{
    return rig_open(state,
                    &(struct ws_device_options){.clock = WS_CLOCK_FUNCTIONAL, .n_workers = 2});
}
static int setup(void **state)
{
    return rig_open(
        state, &(struct ws_device_options){.clock = WS_CLOCK_SCALED, .scale = 20, .n_workers = 2});
}

/* Blocks that wait for each other wait in device time too, for as long as the host takes: not 20 times that. */
static int setup_unscaled(void **state)
{
    return rig_open(
        state, &(struct ws_device_options){.clock = WS_CLOCK_SCALED, .scale = 1, .n_workers = 2});
}

static uint64_t span(const struct ws_op *op)
{
    return op->end_ns - op->start_ns;
}

static void sleep_us(uint32_t us)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

/* Preempts @op after a random time until it is through, on device 0 or either. Return: how often it was stopped. */
static uint32_t run_in_pieces(struct rig *f, struct ws_op *op, uint32_t blocks, uint64_t *seed,
                              bool both)
{
    uint32_t n = 0;
    int device = 0;
    for (;;) {
        sleep_us(rig_random(seed) % 1500);
        assert_int_equal(ws_device_preempt(f->device[device], op), 0);
        rig_wait_op(f, op);
        assert_int_equal(op->error, WS_DEV_OK);
        if (!op->preempted) {
            assert_null(op->launch.progress);
            return n;
        }
        n++;
        double part = ws_progress_part(op->launch.progress);
        assert_true(part >= 0 && part < 1);
        if (both)
            device = (int)(rig_random(seed) & 1);
        op = rig_resume(f, op, 0, device);
    }
}

static void pieces(struct rig *f, bool both, uint64_t n_insns)
{
    uint64_t seed = 7;
    uint32_t n_stops = 0;
    /* on a busy machine one may be through each time before it is asked: go on until enough were not */
    for (int round = 0; round < 12 || (n_stops <= 12 && round < 500); round++) {
        uint32_t blocks = 1 + rig_random(&seed) % 900;
        f->n_ops = f->n_done = 0;
        struct double_params p = rig_work(f);
        p.n_insns = n_insns;
        struct ws_op *op = rig_launch(f, 0, 0, blocks, p);
        n_stops += run_in_pieces(f, op, blocks, &seed, both);
        rig_ran_once(f, blocks);
    }
    assert_true(n_stops > 12);
}

static void test_every_block_once(void **state)
{
    pieces(*state, false, RIG_INSNS);
}
static void test_every_block_once_functional(void **state)
{
    pieces(*state, false, 100 * RIG_INSNS); /* so that there is time to preempt it */
}
static void test_every_block_once_on_two_devices(void **state)
{
    pieces(*state, true, RIG_INSNS);
}
static void test_every_block_once_on_two_devices_functional(void **state)
{
    pieces(*state, true, 100 * RIG_INSNS);
}

static void test_pieces_take_the_time_of_the_whole(void **state)
{
    struct rig *f = *state;
    struct ws_op *whole = rig_launch(f, 0, 0, 800, rig_work(f));
    rig_wait_op(f, whole);
    rig_ran_once(f, 800);
    uint64_t t0 = ws_device_now_ns(f->device[0]), sum = 0, energy = 0;
    struct ws_op *op = rig_launch(f, 0, 0, 800, rig_work(f));
    uint32_t n = 0;
    for (;; n++) {
        uint64_t at = t0 + 313000;
        rig_sleep_until(f, at);
        uint64_t before = ws_device_now_ns(f->device[0]);
        assert_int_equal(ws_device_preempt(f->device[0], op), 0);
        uint64_t after = ws_device_now_ns(f->device[0]);
        rig_wait_op(f, op);
        sum += span(op);
        energy += op->energy_uj;
        if (!op->preempted)
            break;
        /* what ran is finished: no sooner than it was asked for, and within one block */
        assert_in_range(op->end_ns, before, after + RIG_BLOCK_NS + 1);
        double part = (double)sum / (double)span(whole);
        double said = ws_progress_part(op->launch.progress);
        assert_true(said > part - 0.06 && said < part + 0.06);
        t0 = ws_device_now_ns(f->device[0]);
        op = rig_resume(f, op, 0, 0);
    }
    rig_ran_once(f, 800);
    assert_in_range(n, 1, 12); /* fewer than 3 where the host was late to ask */
    /* each piece may end with SMs idle for part of a block */
    assert_in_range(sum, span(whole) - 1000, span(whole) + n * RIG_BLOCK_NS);
    assert_in_range(energy, whole->energy_uj * 98 / 100, whole->energy_uj * (100 + 4 * n) / 100);
}

static void test_urgent_work_waits_for_one_block(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = rig_launch(f, 0, 0, 1600, rig_work(f));
    rig_sleep_until(f, ws_device_now_ns(f->device[0]) + 500000);
    uint64_t at = ws_device_now_ns(f->device[0]);
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    uint64_t asked = ws_device_now_ns(f->device[0]) - at;
    struct ws_op *urgent = rig_launch(f, 1, 0, 16, rig_work(f)); /* finds the room that was made */
    rig_wait_op(f, urgent);
    rig_wait_op(f, op);
    assert_true(op->preempted);
    assert_in_range(urgent->start_ns, at, at + asked + RIG_BLOCK_NS + 2000 + asked);
    op = rig_resume(f, op, 0, 0);
    rig_wait_op(f, op);
    assert_false(op->preempted);
    for (uint32_t i = 16; i < 1600; i++)
        assert_int_equal(f->ran[i], 1);
}

static void test_before_it_begins(void **state)
{
    struct rig *f = *state;
    struct ws_op *first = rig_launch(f, 0, 0, 320, rig_work(f));
    struct ws_op *op = rig_launch(f, 1, 0, 320, rig_work(f)); /* behind it */
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    rig_wait_op(f, op);
    assert_true(op->preempted);
    assert_true(ws_progress_part(op->launch.progress) == 0);
    assert_int_equal(op->end_ns, op->start_ns);
    assert_int_equal(op->energy_uj, 0);
    assert_non_null(first->owner); /* still running */
    op = rig_resume(f, op, 1, 0);
    rig_wait_op(f, op);
    rig_wait_op(f, first);
    assert_false(op->preempted);
    for (int i = 0; i < 320; i++)
        assert_int_equal(f->ran[i], 2);
}

static void test_one_block(void **state)
{
    struct rig *f = *state;
    struct double_params p = rig_work(f);
    p.n_insns *= 50; /* 1 ms */
    struct ws_op *op = rig_launch(f, 0, 0, 1, p);
    rig_sleep_until(f, ws_device_now_ns(f->device[0]) + 100000);
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    assert_int_equal(ws_device_preempt(f->device[0], op), 0); /* again */
    rig_wait_op(f, op);
    assert_false(op->preempted); /* it had begun */
    assert_int_equal(f->ran[0], 1);
    assert_int_equal(ws_device_preempt(f->device[0], op), 0); /* too late */
}

static void test_not_possible(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = rig_prepare(f, 0, 0, 8, rig_work(f));
    op->launch.flags = WS_LAUNCH_COOPERATIVE;
    ws_device_submit(f->device[0], op);
    assert_int_equal(ws_device_preempt(f->device[0], op), -ENOTSUP);
    rig_wait_op(f, op);
    assert_false(op->preempted);
    struct ws_op fill = {.kind = WS_OPK_FILL};
    assert_int_equal(ws_device_preempt(f->device[0], &fill), -ENOTSUP);
}

static void test_progress_of_another_launch(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = rig_launch(f, 0, 0, 1600, rig_work(f));
    sleep_us(3000);
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    rig_wait_op(f, op);
    assert_true(op->preempted);
    struct ws_op *other = rig_prepare(f, 0, 0, 1599, rig_work(f));
    other->launch.progress = op->launch.progress;
    ws_device_submit(f->device[0], other);
    rig_wait_op(f, other);
    assert_int_equal(other->error, WS_DEV_E_INVALID_VALUE);
}

static void test_freed_without_going_on(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = rig_launch(f, 0, 0, 1600, rig_work(f));
    sleep_us(3000);
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    rig_wait_op(f, op);
    assert_true(op->preempted);
    assert_null(ws_progress_free(op->launch.progress));
}

static void test_blocks_that_wait_for_later_ones_go_on(void **state)
{
    struct rig *f = *state;
    struct double_params p = {.kind = DOUBLE_CHAIN, .n_insns = 100, .ran = f->ran};
    for (int i = 0; i < 20; i++) {
        f->n_ops = f->n_done = 0;
        struct ws_op *op = rig_launch(f, 0, 0, RIG_RESIDENT, p);
        assert_int_equal(ws_device_preempt(f->device[0], op), 0);
        rig_wait(f, 1);
        while (op->preempted) {
            op = rig_resume(f, op, 0, 0);
            rig_wait_op(f, op);
        }
        rig_ran_once(f, RIG_RESIDENT);
    }
}

static void test_cancel_and_fault_win(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = rig_launch(f, 0, 0, 1600, rig_work(f));
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    ws_device_cancel(f->device[0], f->space[0]);
    rig_wait_op(f, op);
    if (op->error)
        assert_int_equal(op->error, WS_DEV_E_CANCELLED);
    else if (!op->preempted) /* it was through before */
        rig_ran_once(f, 1600);
    if (op->preempted)
        ws_progress_free(op->launch.progress);
    struct ws_op *bad =
        rig_launch(f, 0, 0, 40, (struct double_params){.kind = DOUBLE_FAULT, .n_insns = 0});
    assert_int_equal(ws_device_preempt(f->device[0], bad), 0);
    rig_wait_op(f, bad);
    if (!bad->preempted)
        assert_int_equal(bad->error, WS_DEV_E_ILLEGAL_ADDRESS);
    else
        ws_progress_free(bad->launch.progress);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_block_once, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_every_block_once_functional, setup_functional,
                                        rig_close),
        cmocka_unit_test_setup_teardown(test_every_block_once_on_two_devices, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_every_block_once_on_two_devices_functional,
                                        setup_functional, rig_close),
        cmocka_unit_test_setup_teardown(test_pieces_take_the_time_of_the_whole, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_urgent_work_waits_for_one_block, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_before_it_begins, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_one_block, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_not_possible, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_progress_of_another_launch, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_freed_without_going_on, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_blocks_that_wait_for_later_ones_go_on, setup_unscaled,
                                        rig_close),
        cmocka_unit_test_setup_teardown(test_blocks_that_wait_for_later_ones_go_on,
                                        setup_functional, rig_close),
        cmocka_unit_test_setup_teardown(test_cancel_and_fault_win, setup, rig_close),
        cmocka_unit_test_setup_teardown(test_cancel_and_fault_win, setup_functional, rig_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
