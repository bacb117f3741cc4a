// SPDX-License-Identifier: Apache-2.0
/* Preemption of launches at block boundaries: every block exactly once, and where device time
 * passes, the time of each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <sched.h>

#include "tests/unit/device/softdev_rig.h"

static int setup_functional(void **state)
{
    return rig_open(state,
                    &(struct ws_device_options){.clock = WS_CLOCK_FUNCTIONAL, .n_workers = 2});
}
/* The clock waits for kernels however slow the host is. */
static int setup(void **state)
{
    return rig_open(state, &(struct ws_device_options){.clock = WS_CLOCK_SCALED,
                                                       .scale = 20,
                                                       .stall_host_ns = 100 * WS_NS_PER_S,
                                                       .n_workers = 2});
}

/* Blocks that wait for each other wait in device time too, for as long as the host takes: not 20
 * times that. */
static int setup_unscaled(void **state)
{
    return rig_open(
        state, &(struct ws_device_options){.clock = WS_CLOCK_SCALED, .scale = 1, .n_workers = 2});
}

static uint64_t span(const struct ws_op *op)
{
    return op->end_ns - op->start_ns;
}

/* Asks a launch to stop after a random device time; its own end may come first. Time stands. */
static void stop_by_time(struct rig *f, struct ws_op *op, int device, uint64_t *seed)
{
    rig_run_until(f, ws_device_now_ns(f->device[0]) + 1 + rig_random(seed) % 75000);
    assert_int_equal(ws_device_preempt(f->device[device], op), 0);
    rig_run(f);
    rig_wait_op(f, op);
}

/* The same where no time passes: after so many more of its blocks as f->flag lets through
 * (DOUBLE_GATE). */
static void stop_by_count(struct rig *f, struct ws_op *op, int device)
{
    uint32_t let = WS_MIN((uint32_t)f->flag, op->launch.grid[0]);
    for (uint32_t i = 0; i < let; i++)
        while (!f->ran[i])
            sched_yield();
    assert_int_equal(ws_device_preempt(f->device[device], op), 0);
    f->flag = INT_MAX; /* those that have begun */
    rig_wait_op(f, op);
}

/* Preempts a launch again and again until it is through, on device 0 or either. Return: how often
 * it was stopped. */
static uint32_t run_in_pieces(struct rig *f, struct double_params p, uint32_t blocks,
                              uint64_t *seed, bool both)
{
    struct ws_op *op = NULL;
    bool by_time = p.kind == DOUBLE_WORK;
    uint32_t n_ran = 0;
    for (uint32_t n = 0;; n++) {
        int device = both && n ? (int)(rig_random(seed) & 1) : 0;
        if (by_time)
            (void)rig_stand(f);
        else
            f->flag = (int)(n_ran + rig_random(seed) % 200);
        op = op ? rig_resume(f, op, 0, device) : rig_launch(f, 0, device, blocks, p);
        if (by_time)
            stop_by_time(f, op, device, seed);
        else
            stop_by_count(f, op, device);
        assert_int_equal(op->error, WS_DEV_OK);
        if (!op->preempted) {
            assert_null(op->launch.progress);
            return n;
        }
        double part = ws_progress_part(op->launch.progress);
        assert_true(part >= 0 && part < 1);
        for (n_ran = 0; f->ran[n_ran];)
            n_ran++;
    }
}

static void pieces(struct rig *f, bool both, enum double_kind kind)
{
    uint64_t seed = 7;
    uint32_t n_stops = 0;
    for (int round = 0; round < 12; round++) {
        uint32_t blocks = 1 + rig_random(&seed) % 900;
        f->n_ops = f->n_done = 0;
        struct double_params p = rig_work(f);
        p.kind = kind;
        p.flag = &f->flag;
        n_stops += run_in_pieces(f, p, blocks, &seed, both);
        rig_ran_once(f, blocks);
    }
    assert_true(n_stops > 24);
}

static void test_every_block_once(void **state)
{
    pieces(*state, false, DOUBLE_WORK);
}
static void test_every_block_once_functional(void **state)
{
    pieces(*state, false, DOUBLE_GATE);
}
static void test_every_block_once_on_two_devices(void **state)
{
    pieces(*state, true, DOUBLE_WORK);
}
static void test_every_block_once_on_two_devices_functional(void **state)
{
    pieces(*state, true, DOUBLE_GATE);
}

static void test_pieces_take_the_time_of_the_whole(void **state)
{
    struct rig *f = *state;
    struct ws_op *whole = rig_launch(f, 0, 0, 800, rig_work(f));
    rig_wait_op(f, whole);
    rig_ran_once(f, 800);
    uint64_t at = rig_stand(f), sum = 0, energy = 0;
    struct ws_op *op = rig_launch(f, 0, 0, 800, rig_work(f));
    uint32_t n = 0;
    for (;; n++) {
        rig_run_until(f, at += 313000);
        assert_int_equal(ws_device_preempt(f->device[0], op), 0);
        rig_run(f);
        rig_wait_op(f, op);
        sum += span(op);
        energy += op->energy_uj;
        if (!op->preempted)
            break;
        /* what ran is finished: no sooner than it was asked for, and within one block */
        assert_in_range(op->end_ns, at, at + RIG_BLOCK_NS + 1);
        double part = (double)sum / (double)span(whole);
        double said = ws_progress_part(op->launch.progress);
        assert_true(said > part - 0.06 && said < part + 0.06);
        at = rig_stand(f);
        op = rig_resume(f, op, 0, 0);
    }
    rig_ran_once(f, 800);
    /* each piece took the time until it was asked for, and at most a block more; the last one found
     * nothing to stop */
    assert_in_range(n, span(whole) / (313000 + RIG_BLOCK_NS), span(whole) / 310000);
    assert_true(n > 1);
    /* each piece may end with SMs idle for part of a block */
    assert_in_range(sum, span(whole) - 1000, span(whole) + n * RIG_BLOCK_NS);
    assert_in_range(energy, whole->energy_uj * 98 / 100, whole->energy_uj * (100 + 4 * n) / 100);
}

static void test_urgent_work_waits_for_one_block(void **state)
{
    struct rig *f = *state;
    uint64_t at = rig_stand(f) + 500000;
    struct ws_op *op = rig_launch(f, 0, 0, 1600, rig_work(f));
    rig_run_until(f, at);
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    struct ws_op *urgent = rig_launch(f, 1, 0, 16, rig_work(f)); /* finds the room that was made */
    rig_run(f);
    rig_wait_op(f, urgent);
    rig_wait_op(f, op);
    assert_true(op->preempted);
    assert_in_range(urgent->start_ns, at, at + RIG_BLOCK_NS + 2000);
    op = rig_resume(f, op, 0, 0);
    rig_wait_op(f, op);
    assert_false(op->preempted);
    for (uint32_t i = 16; i < 1600; i++)
        assert_int_equal(f->ran[i], 1);
}

static void test_before_it_begins(void **state)
{
    struct rig *f = *state;
    (void)rig_stand(f);
    struct ws_op *first = rig_launch(f, 0, 0, 320, rig_work(f));
    struct ws_op *op = rig_launch(f, 1, 0, 320, rig_work(f)); /* behind it */
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    rig_run(f);
    rig_wait_op(f, op);
    assert_true(op->preempted);
    assert_true(ws_progress_part(op->launch.progress) == 0);
    assert_int_equal(op->end_ns, op->start_ns);
    assert_int_equal(op->energy_uj, 0);
    op = rig_resume(f, op, 1, 0);
    rig_wait_op(f, op);
    rig_wait_op(f, first);
    assert_ptr_equal(f->order[1], first); /* it was still running */
    assert_false(op->preempted);
    for (int i = 0; i < 320; i++)
        assert_int_equal(f->ran[i], 2);
}

static void test_one_block(void **state)
{
    struct rig *f = *state;
    struct double_params p = rig_work(f);
    p.n_insns *= 50; /* 1 ms */
    uint64_t at = rig_stand(f) + 100000;
    struct ws_op *op = rig_launch(f, 0, 0, 1, p);
    rig_run_until(f, at);
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    assert_int_equal(ws_device_preempt(f->device[0], op), 0); /* again */
    rig_run(f);
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

/* A long launch, preempted so long after it was submitted. */
static struct ws_op *stopped_at(struct rig *f, uint64_t after_ns)
{
    uint64_t at = rig_stand(f) + after_ns;
    struct ws_op *op = rig_launch(f, 0, 0, 1600, rig_work(f));
    rig_run_until(f, at);
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    rig_run(f);
    rig_wait_op(f, op);
    assert_true(op->preempted);
    return op;
}

static void test_progress_of_another_launch(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = stopped_at(f, 150000);
    struct ws_op *other = rig_prepare(f, 0, 0, 1599, rig_work(f));
    other->launch.progress = op->launch.progress;
    ws_device_submit(f->device[0], other);
    rig_wait_op(f, other);
    assert_int_equal(other->error, WS_DEV_E_INVALID_VALUE);
}

static void test_freed_without_going_on(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = stopped_at(f, 150000);
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
