// SPDX-License-Identifier: Apache-2.0
/* Clusters on the double of the interpreter: their blocks are resident together, one thread at a
 * time runs them, and what stops a kernel stops them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <sched.h>

#include "device/payer.h"
#include "tests/unit/device/softdev_rig.h"

enum { BLOCK_BYTES = 8 << 20, FLAGS = 1 << 14 /* of ran[]: where blocks meet */ };

static int setup(void **state)
{
    struct ws_device_options o = {.n_workers = 3};
    struct ws_gpu_spec spec = rig_spec;
    spec.cc_major = 9;
    spec.cc_minor = 0;
    return rig_open_as(state, &o, &spec);
}
static int setup_old(void **state)
{
    struct ws_device_options o = {.n_workers = 1};
    return rig_open(state, &o);
}

static struct ws_op *prepare(struct rig *f, uint32_t blocks, uint32_t cluster, uint64_t n_insns)
{
    struct ws_op *op = rig_prepare(
        f, 0, 0, blocks,
        (struct double_params){
            .kind = DOUBLE_MEET, .n_insns = n_insns, .ran = f->ran, .flag = f->ran + FLAGS});
    op->launch.cluster[0] = cluster;
    op->launch.cluster[1] = op->launch.cluster[2] = 1;
    return op;
}

static void run(struct rig *f, struct ws_op *op, enum ws_dev_error want)
{
    ws_device_submit(f->device[0], op);
    rig_wait_op(f, op);
    if (op->error != want)
        fail_msg("%s: %s", ws_dev_error_name(op->error), op->text);
}

static void test_blocks_are_there_together(void **state)
{
    static const uint32_t sizes[] = {2, 3, 8, 16, 1};
    struct rig *f = *state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        struct ws_op *op = prepare(f, 20 * sizes[k], sizes[k], 3000);
        memset((void *)f->ran, 0, sizeof(f->ran));
        run(f, op, WS_DEV_OK);
        for (uint32_t b = 0; b < 20 * sizes[k]; b++)
            assert_int_equal(f->ran[b], 1);
        assert_int_equal(op->counts.n_warp_insns, 20 * sizes[k] * 3000);
    }
}

/* Kernels of a client whose clusters leave room are there beside each other; all end. */
static void test_among_others(void **state)
{
    struct rig *f = *state;
    for (int k = 0; k < 12; k++) {
        struct ws_op *op = prepare(f, 90, k % 3 ? 5 : 9, 2000);
        f->params[k].ran = f->ran + 100 * k;
        f->params[k].flag = f->ran + FLAGS + 200 * k;
        op->launch.flags = k % 4 ? 0 : WS_LAUNCH_COOPERATIVE;
        if (op->launch.flags)
            op->launch.grid[0] = op->launch.cluster[0];
        ws_device_submit(f->device[0], op);
    }
    rig_wait(f, 12);
    for (int k = 0; k < 12; k++) {
        if (f->op[k].error)
            fail_msg("%d: %s", k, f->op[k].text);
        for (uint32_t b = 0; b < f->op[k].launch.grid[0]; b++)
            assert_int_equal(f->ran[100 * k + b], 1);
    }
}

static void test_wrong_clusters(void **state)
{
    static const struct {
        const char *description;
        uint32_t grid, cluster[3];
        enum ws_dev_error want;
    } rows[] = {
        {"the grid is not made of clusters", 10, {4, 1, 1}, WS_DEV_E_INVALID_CLUSTER},
        {"one extent is missing", 8, {4, 1, 0}, WS_DEV_E_INVALID_CLUSTER},
        {"too large", 34, {17, 1, 1}, WS_DEV_E_INVALID_CLUSTER},
        {"too large together", 32, {16, 2, 1}, WS_DEV_E_INVALID_CLUSTER},
        {"y", 8, {4, 2, 1}, WS_DEV_E_INVALID_CLUSTER},
        {"one block", 8, {1, 1, 1}, WS_DEV_OK},
        {"said by nobody", 8, {0, 0, 0}, WS_DEV_OK},
        {"the largest", 32, {16, 1, 1}, WS_DEV_OK},
    };
    struct rig *f = *state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        struct ws_op *op = prepare(f, rows[k].grid, 1, 10);
        memset((void *)f->ran, 0, sizeof(f->ran));
        memcpy(op->launch.cluster, rows[k].cluster, sizeof(op->launch.cluster));
        ws_device_submit(f->device[0], op);
        rig_wait_op(f, op);
        if (op->error != rows[k].want)
            fail_msg("%s: %s (%s)", rows[k].description, ws_dev_error_name(op->error), op->text);
    }
}

/* Of 16 blocks that are resident here, 4 are with the shared memory that this one asks for. */
static void test_a_cluster_that_does_not_fit(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = prepare(f, 16, 8, 10);
    op->launch.shared_bytes = 40000;
    run(f, op, WS_DEV_E_INVALID_CLUSTER);
    assert_non_null(strstr(op->text, "a cluster of 8 blocks, 4 can be resident"));
    op = prepare(f, 8, 4, 10);
    op->launch.shared_bytes = 40000;
    run(f, op, WS_DEV_OK);
    op = prepare(f, 16, 8, 10);
    op->launch.sms = (struct ws_sm_set){.n = 1, .bits = {4}};
    run(f, op, WS_DEV_E_INVALID_CLUSTER);
}

static void test_gpus_without_clusters(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = prepare(f, 4, 2, 10);
    run(f, op, WS_DEV_E_INVALID_CLUSTER);
    assert_non_null(strstr(op->text, "up to 1 blocks are possible on small"));
    run(f, prepare(f, 4, 1, 10), WS_DEV_OK);
}

static void test_deadlock(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = prepare(f, 6, 3, 10);
    f->params[0].kind = DOUBLE_STUCK;
    run(f, op, WS_DEV_E_LAUNCH_FAILURE);
    assert_non_null(strstr(op->text, "deadlock"));
}

static void test_cancel(void **state)
{
    struct rig *f = *state;
    for (int k = 0; k < 4; k++) {
        struct ws_op *op = prepare(f, 64, 8, 10);
        f->params[k].kind = k % 2 ? DOUBLE_ENDLESS : DOUBLE_POLL;
        f->params[k].flag = &f->flag;
        ws_device_submit(f->device[0], op);
    }
    while (double_n_states < 8)
        sched_yield();
    ws_device_cancel(f->device[0], f->space[0]);
    rig_wait(f, 4);
    for (int k = 0; k < 4; k++)
        assert_int_equal(f->op[k].error, WS_DEV_E_CANCELLED);
}

static void resume(struct rig *f, struct ws_op *op)
{
    struct ws_op *next = rig_prepare(f, 0, 0, op->launch.grid[0], f->params[0]);
    memcpy(next->launch.cluster, op->launch.cluster, sizeof(next->launch.cluster));
    next->launch.progress = op->launch.progress;
    op->launch.progress = NULL;
    run(f, next, WS_DEV_OK);
}

/* It stops between clusters, and goes on there. */
static void test_preemption(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = prepare(f, 200, 5, 1000);
    uint32_t n = 0;
    f->params[0].kind = DOUBLE_GATE; /* the blocks that have begun hold their threads */
    f->params[0].flag = &f->flag;
    ws_device_submit(f->device[0], op);
    while (double_n_states < 5)
        sched_yield();
    assert_int_equal(ws_device_preempt(f->device[0], op), 0);
    f->flag = 200;
    rig_wait_op(f, op);
    assert_int_equal(op->error, 0);
    assert_true(op->preempted);
    while (f->ran[n])
        n++;
    assert_true(n % 5 == 0 && n >= 5 && n < 200);
    resume(f, op);
    rig_ran_once(f, 200);
}

/* Wherever it is. */
static void test_preemption_at_random(void **state)
{
    struct rig *f = *state;
    uint64_t seed = 7;
    for (int round = 0; round < 20; round++) {
        memset((void *)f->ran, 0, sizeof(f->ran));
        f->n_ops = f->n_done = 0;
        struct ws_op *op = prepare(f, 200, 5, 5000);
        ws_device_submit(f->device[0], op);
        for (uint32_t k = rig_random(&seed) % 20; k; k--)
            sched_yield();
        assert_int_equal(ws_device_preempt(f->device[0], op), 0);
        rig_wait_op(f, op);
        assert_int_equal(op->error, 0);
        if (op->preempted)
            resume(f, op);
        for (uint32_t b = 0; b < 200; b++)
            assert_int_equal(f->ran[b], 1);
    }
}

/* An endless cluster is ended when others wait for the GPU; others are not. */
static void test_urged(void **state)
{
    struct rig *f = *state;
    struct ws_op *op = prepare(f, 4, 4, 10);
    f->params[0].kind = DOUBLE_ENDLESS;
    ws_device_submit(f->device[0], op);
    while (!double_n_states)
        sched_yield();
    assert_int_equal(ws_device_urge(f->device[0], op, 3 * WS_NS_PER_MS), 0);
    rig_wait_op(f, op);
    assert_int_equal(op->error, WS_DEV_E_TIMEOUT);
}

/* All blocks of a cluster get memory, or none: of seven that there are for two kernels, each takes
 * three at a time. */
static void test_memory(void **state)
{
    struct rig *f = *state;
    struct ws_payer *p = ws_payer_new();
    double_block_bytes = BLOCK_BYTES;
    double_n_states_max = 0;
    ws_payers_set_pool(2 * 7 * BLOCK_BYTES);
    for (int k = 0; k < 2; k++)
        ws_space_set_payer(f->space[k], p);
    assert_null(ws_payer_unref(p));
    for (int k = 0; k < 4; k++) {
        struct ws_op *op = prepare(f, 60, 3, 5000);
        op->space = f->space[k % 2];
        op->launch.instance = f->instance[k % 2][0];
        f->params[k].ran = f->ran + 100 * k;
        f->params[k].flag = f->ran + FLAGS + 200 * k;
        ws_device_submit(f->device[0], op);
    }
    rig_wait(f, 4);
    for (int k = 0; k < 4; k++) {
        if (f->op[k].error)
            fail_msg("%s", f->op[k].text);
        for (int b = 0; b < 60; b++)
            assert_int_equal(f->ran[100 * k + b], 1);
    }
    assert_in_range(double_n_states_max, 3, 7);
    struct ws_op *op = prepare(f, 8, 8, 10);
    run(f, op, WS_DEV_E_NO_MEMORY);
    assert_non_null(strstr(op->text, "max_block_bytes"));
    double_block_bytes = 0;
    ws_payers_set_pool(UINT64_MAX);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, rig_close)
    const struct CMUnitTest tests[] = {
        T(test_blocks_are_there_together),
        T(test_among_others),
        T(test_wrong_clusters),
        T(test_a_cluster_that_does_not_fit),
        cmocka_unit_test_setup_teardown(test_gpus_without_clusters, setup_old, rig_close),
        T(test_deadlock),
        T(test_cancel),
        T(test_preemption),
        T(test_preemption_at_random),
        T(test_urged),
        T(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
