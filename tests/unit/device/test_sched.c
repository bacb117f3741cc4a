// SPDX-License-Identifier: Apache-2.0
/* The soft device on a double of the interpreter: checks, dealing, fairness, stops, cancels,
 * copies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/payer.h"
#include "device/space.h"
#include "device/soft/timeline/events.h"
#include "device/soft/timeline/occupancy.h"
#include "tests/unit/device/softdev_rig.h"

enum { RESIDENT = RIG_RESIDENT, N_OPS = 64 };

struct fixture {
    struct ws_device *device;
    struct ws_space *space[2];
    struct ws_dmodule *module;
    struct ws_dinstance *instance[2];
    pthread_mutex_t lock;
    pthread_cond_t cond;
    uint32_t n_done;
    struct ws_op op[N_OPS];
    struct double_params params[N_OPS];
    _Atomic int flag[N_OPS], ran[4096];
    _Atomic uint32_t sm[4096];
    uint32_t n_ops;
    uint8_t *host;
};
#define VAR_VA UINT64_C(0x10000000)

static void on_done(struct ws_op *op)
{
    struct fixture *f = op->owner;
    pthread_mutex_lock(&f->lock);
    f->n_done++;
    op->owner = NULL;
    pthread_cond_broadcast(&f->cond);
    pthread_mutex_unlock(&f->lock);
}

/* Fails the test rather than hangs. */
static void wait_done(struct fixture *f, uint32_t n)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120;
    int r = 0;
    pthread_mutex_lock(&f->lock);
    while (f->n_done < n && !r)
        r = pthread_cond_timedwait(&f->cond, &f->lock, &until);
    pthread_mutex_unlock(&f->lock);
    assert_int_equal(r, 0);
}

static int open_with(struct fixture *f, struct ws_device_options o)
{
    if (ws_device_open_soft(&f->device, &rig_spec, 0, &o, NULL) ||
        ws_device_module_load(f->device, double_module(), &f->module, NULL))
        return -1;
    for (int i = 0; i < 2; i++) {
        uint64_t va[2] = {VAR_VA, VAR_VA + 4096};
        if (ws_space_new(&f->space[i]) ||
            ws_device_mem_alloc(f->device, f->space[i], VAR_VA, 8192) ||
            ws_device_instance_new(f->device, f->module, f->space[i], va, &f->instance[i]))
            return -1;
    }
    return 0;
}

static int setup_with(void **state, struct ws_device_options o)
{
    struct fixture *f = ws_alloc(sizeof(*f));
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->cond, NULL);
    *state = f;
    return open_with(f, o);
}
static int setup(void **state)
{
    return setup_with(state, (struct ws_device_options){.n_workers = 2});
}
static int setup_one_worker(void **state)
{
    return setup_with(state, (struct ws_device_options){.n_workers = 1});
}
static int setup_limit(void **state)
{
    return setup_with(state,
                      (struct ws_device_options){.n_workers = 2, .max_kernel_insns = 50000000});
}
static int setup_skip(void **state)
{
    return setup_with(state, (struct ws_device_options){.clock = WS_CLOCK_SKIP, .n_workers = 2});
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        ws_device_cancel(f->device, f->space[i]);
    }
    wait_done(f, f->n_ops);
    for (int i = 0; i < 2; i++) {
        ws_device_instance_free(f->device, f->instance[i]);
        ws_space_free(f->space[i]);
    }
    ws_device_module_unload(f->device, f->module);
    ws_device_close(f->device);
    if (f->host)
        munmap(f->host, 64 << 20);
    free(f);
    return double_n_states != 0; /* leaked states fail the test */
}

static struct ws_op *op_launch(struct fixture *f, int client, uint32_t blocks,
                               struct double_params p)
{
    uint32_t i = f->n_ops++;
    f->params[i] = p;
    f->op[i] = (struct ws_op){
        .kind = WS_OPK_LAUNCH,
        .space = f->space[client],
        .done = on_done,
        .owner = f,
        .launch = {.instance = f->instance[client],
                   .grid = {blocks, 1, 1},
                   .block = {256, 1, 1},
                   .params = &f->params[i],
                   .param_bytes = sizeof(p)},
    };
    return &f->op[i];
}

static struct ws_op *launch(struct fixture *f, int client, uint32_t blocks, struct double_params p)
{
    struct ws_op *op = op_launch(f, client, blocks, p);
    ws_device_submit(f->device, op);
    return op;
}

static void all_ran_once(struct fixture *f, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(f->ran[i], 1);
}

static void test_small_launch_completes_inside_submit(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op =
        launch(f, 0, 1, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 100, .ran = f->ran});
    assert_int_equal(f->n_done, 1);
    assert_int_equal(op->error, WS_DEV_OK);
    assert_int_equal(op->n_thread_insns, 3200);
    assert_true(op->end_ns > op->start_ns);
    assert_true(op->energy_uj > 0 || op->end_ns - op->start_ns < 1000);
    assert_int_equal(f->ran[0], 1);
}

static void test_each_block_runs_once(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op = launch(
        f, 0, 3000,
        (struct double_params){.kind = DOUBLE_WORK, .n_insns = 5000, .ran = f->ran, .sm = f->sm});
    wait_done(f, 1);
    assert_int_equal(op->error, WS_DEV_OK);
    all_ran_once(f, 3000);
    assert_int_equal(op->n_thread_insns, 3000u * 5000 * 32);
    assert_true(double_n_states_max <= 40); /* of 3000 blocks only those at work have state */
}

/* With one worker: where there are several, one that the host lets wait keeps its block's place on
 * an SM. */
static void test_blocks_go_to_all_sms_alike(void **state)
{
    struct fixture *f = *state;
    uint32_t per_sm[4] = {0};
    launch(
        f, 0, 3000,
        (struct double_params){.kind = DOUBLE_WORK, .n_insns = 5000, .ran = f->ran, .sm = f->sm});
    wait_done(f, 1);
    for (int i = 0; i < 3000; i++)
        per_sm[f->sm[i]]++;
    for (int i = 0; i < 4; i++)
        assert_int_equal(per_sm[i], 750);
}

static void test_sm_set_is_kept(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op = op_launch(
        f, 0, 500,
        (struct double_params){.kind = DOUBLE_WORK, .n_insns = 5000, .ran = f->ran, .sm = f->sm});
    op->launch.sms = (struct ws_sm_set){.n = 2, .bits = {0xa}};
    ws_device_submit(f->device, op);
    wait_done(f, 1);
    all_ran_once(f, 500);
    for (int i = 0; i < 500; i++)
        assert_true(f->sm[i] == 1 || f->sm[i] == 3);
}

static void test_resident_blocks_wait_for_each_other(void **state)
{
    struct fixture *f = *state;
    launch(f, 0, RESIDENT,
           (struct double_params){.kind = DOUBLE_CHAIN, .n_insns = 100, .ran = f->ran});
    wait_done(f, 1);
    all_ran_once(f, RESIDENT);
}

static void test_launch_waits_for_another_launch(void **state)
{
    struct fixture *f = *state;
    struct ws_op *a =
        launch(f, 0, 8,
               (struct double_params){
                   .kind = DOUBLE_WAIT, .n_insns = 100, .flag = f->flag, .ran = f->ran});
    struct ws_op *b = launch(
        f, 0, 1, (struct double_params){.kind = DOUBLE_SET, .n_insns = 100, .flag = f->flag});
    wait_done(f, 2);
    assert_int_equal(a->error, WS_DEV_OK);
    assert_int_equal(b->error, WS_DEV_OK);
}

static void test_more_than_resident_would_deadlock_as_on_hardware(void **state)
{
    struct fixture *f = *state;
    launch(f, 0, RESIDENT + 1,
           (struct double_params){.kind = DOUBLE_CHAIN, .n_insns = 100, .ran = f->ran});
    struct timespec t = {0, 50000000};
    nanosleep(&t, NULL);
    assert_int_equal(f->n_done, 0);
    assert_int_equal(f->ran[RESIDENT], 0);
}

static void test_endless_client_starves_nobody(void **state)
{
    struct fixture *f = *state;
    launch(f, 0, 1000, (struct double_params){.kind = DOUBLE_ENDLESS});
    struct ws_op *op = launch(
        f, 1, 200, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 5000, .ran = f->ran});
    wait_done(f, 1);
    assert_null(op->owner);
    all_ran_once(f, 200);
}

static void test_endless_kernel_is_stopped(void **state)
{
    struct fixture *f = *state;
    struct ws_op *a = launch(f, 0, 1000, (struct double_params){.kind = DOUBLE_ENDLESS});
    struct ws_op *b = launch(
        f, 1, 100, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 1000, .ran = f->ran});
    wait_done(f, 2);
    assert_int_equal(a->error, WS_DEV_E_TIMEOUT);
    assert_non_null(strstr(a->text, "max_kernel_insns"));
    assert_true(a->n_thread_insns >= 50000000);
    assert_int_equal(b->error, WS_DEV_OK);
    all_ran_once(f, 100);
}

static void test_one_endless_block_is_stopped(void **state)
{
    struct fixture *f = *state;
    struct ws_op *a = launch(f, 0, 1, (struct double_params){.kind = DOUBLE_ENDLESS});
    wait_done(f, 1);
    assert_int_equal(a->error, WS_DEV_E_TIMEOUT);
}

static void test_fault_stops_its_kernel_only(void **state)
{
    struct fixture *f = *state;
    struct ws_op *b = launch(
        f, 1, 100, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 100000, .ran = f->ran});
    struct ws_op *c =
        launch(f, 0, 4,
               (struct double_params){.kind = DOUBLE_WORK, .n_insns = 100000, .ran = f->ran + 200});
    struct ws_op *a =
        launch(f, 0, 1000, (struct double_params){.kind = DOUBLE_FAULT, .n_insns = 7});
    wait_done(f, 3);
    assert_int_equal(a->error, WS_DEV_E_ILLEGAL_ADDRESS);
    assert_string_equal(a->text, "illegal address in block 7");
    assert_int_equal(b->error, WS_DEV_OK);
    assert_int_equal(c->error, WS_DEV_OK);
    all_ran_once(f, 100);
}

static void test_cancel_ends_all_of_one_client(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 5; i++)
        launch(f, 0, 1000, (struct double_params){.kind = DOUBLE_ENDLESS});
    struct ws_op *b = launch(
        f, 1, 100, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 100000, .ran = f->ran});
    ws_device_cancel(f->device, f->space[0]);
    wait_done(f, 6);
    for (int i = 0; i < 5; i++)
        assert_int_equal(f->op[i].error, WS_DEV_E_CANCELLED);
    assert_int_equal(b->error, WS_DEV_OK);
}

static uint64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * WS_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Whoever cancels does not do the work, however much there is of it. What the client starts
 * meanwhile is not cancelled. */
static void test_cancel_is_quick(void **state)
{
#ifdef __SANITIZE_THREAD__ /* for which so many blocks are the work of half a minute */
    enum { N = 2000, MOST_NS = 1000000 };
#else
    enum { N = 20000, MOST_NS = 1000000 };
#endif
    struct fixture *f = *state;
    struct ws_op *ops = ws_alloc_array(N, sizeof(*ops));
    /* The parameters of all are the same. */
    const struct ws_op *first = op_launch(f, 0, 1, (struct double_params){.kind = DOUBLE_ENDLESS});
    for (uint32_t i = 0; i < N; i++) {
        ops[i] = *first;
        ws_device_submit(f->device, &ops[i]);
    }
    uint64_t before = thread_ns();
    ws_device_cancel(f->device, f->space[0]);
    uint64_t took = thread_ns() - before;
    struct ws_op *later = launch(
        f, 0, 100, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 100000, .ran = f->ran});
    wait_done(f, N + 1);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(ops[i].error, WS_DEV_E_CANCELLED);
    assert_int_equal(later->error, WS_DEV_OK);
    assert_in_range(took, 0, MOST_NS);
    free(ops);
}

/* A kernel that has room waits behind 128 that have none, and not behind 127. */
static void test_kernels_at_a_time(void **state)
{
    enum { N = 131, MOST = 128 };
    struct fixture *f = *state;
    struct ws_op *ops = ws_alloc_array(N, sizeof(*ops));
    struct double_params work = {.kind = DOUBLE_WORK, .n_insns = 5000};
    for (uint32_t i = 0; i < N; i++) {
        bool has_room = i == MOST || i == N - 1;
        ops[i] = *op_launch(f, 0, i ? 100 : RESIDENT / 4,
                            i ? work : (struct double_params){.kind = DOUBLE_ENDLESS});
        f->n_ops = 1; /* the parameters of the others are the same */
        if (!has_room)
            ops[i].launch.sms = (struct ws_sm_set){.n = 1, .bits = {1}};
        ws_device_submit(f->device, &ops[i]);
        if (i == MOST)
            wait_done(f, 1);
    }
    struct timespec t = {0, 50000000};
    nanosleep(&t, NULL);
    assert_int_equal(f->n_done, 1);
    assert_null(ops[MOST].owner);
    ws_device_cancel(f->device, f->space[0]);
    wait_done(f, N);
    free(ops);
}

static void test_cooperative(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op = op_launch(f, 0, RESIDENT + 1,
                                 (struct double_params){.kind = DOUBLE_BARRIER, .flag = f->flag});
    op->launch.flags = WS_LAUNCH_COOPERATIVE;
    ws_device_submit(f->device, op);
    assert_int_equal(f->n_done, 1);
    assert_int_equal(op->error, WS_DEV_E_COOPERATIVE_TOO_LARGE);
    /* behind a kernel that takes half the room: it must wait until that is gone, and must not be
     * overtaken */
    launch(f, 0, 8,
           (struct double_params){
               .kind = DOUBLE_WAIT, .n_insns = 1000, .flag = f->flag, .ran = f->ran});
    op = op_launch(
        f, 0, RESIDENT,
        (struct double_params){
            .kind = DOUBLE_BARRIER, .n_insns = 10, .flag = f->flag + 1, .ran = f->ran + 100});
    op->launch.flags = WS_LAUNCH_COOPERATIVE;
    ws_device_submit(f->device, op);
    launch(f, 0, 100,
           (struct double_params){.kind = DOUBLE_WORK, .n_insns = 3000, .ran = f->ran + 200});
    struct timespec t = {0, 20000000};
    nanosleep(&t, NULL);
    assert_int_equal(f->n_done, 1);
    assert_int_equal(f->flag[1], 0);
    f->flag[0] = 1;
    wait_done(f, 4);
    assert_int_equal(op->error, WS_DEV_OK);
    for (int i = 0; i < RESIDENT; i++)
        assert_int_equal(f->ran[100 + i], 1);
    for (int i = 0; i < 100; i++)
        assert_int_equal(f->ran[200 + i], 1);
    assert_int_equal(ws_space_device_bytes(f->space[0]), 8192); /* the barrier's memory is gone */
}

/* A kernel of small blocks, which so many fill the device with as it has places for. */
enum { SMALL_RESIDENT = 64 };
static struct ws_op *launch_small(struct fixture *f, uint32_t blocks, struct double_params p,
                                  uint32_t flags)
{
    struct ws_op *op = op_launch(f, 0, blocks, p);
    op->launch.block[0] = 32;
    op->launch.flags = flags;
    ws_device_submit(f->device, op);
    return op;
}

/* A cooperative kernel that does not fit takes nobody's place: not where blocks that have ended
 * were below others that go on. */
static void test_cooperative_takes_nothing(void **state)
{
    struct fixture *f = *state;
    for (int k = 0; k < 2; k++)
        launch_small(
            f, SMALL_RESIDENT / 2,
            (struct double_params){
                .kind = DOUBLE_WAIT, .n_insns = 1000, .flag = f->flag + k, .ran = f->ran + 100 * k},
            0);
    f->flag[0] = 1;
    wait_done(f, 1);
    struct ws_op *op = launch_small(
        f, SMALL_RESIDENT,
        (struct double_params){
            .kind = DOUBLE_BARRIER, .n_insns = 10, .flag = f->flag + 2, .ran = f->ran + 200},
        WS_LAUNCH_COOPERATIVE);
    assert_int_equal(f->n_done, 1);
    f->flag[1] = 1;
    wait_done(f, 3);
    assert_int_equal(op->error, WS_DEV_OK);
}

static void test_wrong_launches(void **state)
{
    static const struct {
        const char *description;
        uint32_t grid[3], block[3], shared_bytes, param_bytes, kernel;
        struct ws_sm_set sms;
        enum ws_dev_error want;
    } rows[] = {
        {"empty grid", {0, 1, 1}, {1, 1, 1}, 0, 56, 0, {0}, WS_DEV_E_INVALID_CONFIGURATION},
        {"grid y", {1, 65536, 1}, {1, 1, 1}, 0, 56, 0, {0}, WS_DEV_E_INVALID_CONFIGURATION},
        {"grid x", {0x80000000u, 1, 1}, {1, 1, 1}, 0, 56, 0, {0}, WS_DEV_E_INVALID_CONFIGURATION},
        {"empty block", {1, 1, 1}, {1, 0, 1}, 0, 56, 0, {0}, WS_DEV_E_INVALID_CONFIGURATION},
        {"block threads", {1, 1, 1}, {1024, 2, 1}, 0, 56, 0, {0}, WS_DEV_E_INVALID_CONFIGURATION},
        {"block wraps",
         {1, 1, 1},
         {65536, 65536, 1},
         0,
         56,
         0,
         {0},
         WS_DEV_E_INVALID_CONFIGURATION},
        {"block z", {1, 1, 1}, {1, 1, 65}, 0, 56, 0, {0}, WS_DEV_E_INVALID_CONFIGURATION},
        {"shared", {1, 1, 1}, {1, 1, 1}, 65536, 56, 0, {0}, WS_DEV_E_INVALID_VALUE},
        {"shared wraps", {1, 1, 1}, {1, 1, 1}, UINT32_MAX, 56, 0, {0}, WS_DEV_E_INVALID_VALUE},
        {"params", {1, 1, 1}, {1, 1, 1}, 0, 55, 0, {0}, WS_DEV_E_INVALID_VALUE},
        {"kernel", {1, 1, 1}, {1, 1, 1}, 0, 56, 1, {0}, WS_DEV_E_INVALID_VALUE},
        {"SM that is not there", {1, 1, 1}, {1, 1, 1}, 0, 56, 0, {1, {16}}, WS_DEV_E_INVALID_VALUE},
        {"SM far off", {1, 1, 1}, {1, 1, 1}, 0, 56, 0, {1, {0, 1}}, WS_DEV_E_INVALID_VALUE},
        {"SM count", {1, 1, 1}, {1, 1, 1}, 0, 56, 0, {2, {1}}, WS_DEV_E_INVALID_VALUE},
    };
    struct fixture *f = *state;
    _Static_assert(sizeof(struct double_params) == 56, "as in the table");
    for (unsigned i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        print_message("  %s\n", rows[i].description);
        struct ws_op *op = op_launch(f, 0, 1, (struct double_params){.kind = DOUBLE_WORK});
        memcpy(op->launch.grid, rows[i].grid, sizeof(rows[i].grid));
        memcpy(op->launch.block, rows[i].block, sizeof(rows[i].block));
        op->launch.shared_bytes = rows[i].shared_bytes;
        op->launch.param_bytes = rows[i].param_bytes;
        op->launch.kernel = rows[i].kernel;
        op->launch.sms = rows[i].sms;
        ws_device_submit(f->device, op);
        assert_int_equal(f->n_done, f->n_ops);
        assert_int_equal(op->error, rows[i].want);
        assert_true(op->text[0]);
    }
    struct ws_op *op = op_launch(f, 0, 1, (struct double_params){.kind = DOUBLE_WORK});
    op->launch.instance = f->instance[1];
    ws_device_submit(f->device, op);
    assert_int_equal(op->error, WS_DEV_E_INVALID_VALUE);
}

static void chain_done(struct ws_op *op)
{
    struct fixture *f = op->owner;
    if (++f->ran[0] < 100000) {
        ws_device_submit(f->device, op);
        return;
    }
    on_done(op);
}

static void test_long_chain_from_done_keeps_the_stack_flat(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op =
        op_launch(f, 0, 1, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 1});
    op->done = chain_done;
    ws_device_submit(f->device, op);
    assert_int_equal(f->n_done, 1);
    assert_int_equal(f->ran[0], 100000);
}

static void test_skip_completes_at_once(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op = launch(f, 0, 100000, (struct double_params){.kind = DOUBLE_ENDLESS});
    assert_int_equal(f->n_done, 1);
    assert_int_equal(op->error, WS_DEV_OK);
    assert_int_equal(op->energy_uj, 0);
    assert_int_equal(ws_device_now_ns(f->device), op->end_ns);
}

/* ---- copies ---- */

#define A UINT64_C(0x200000000)
#define B UINT64_C(0x300000000)

static struct ws_op *copy(struct fixture *f, uint64_t dst, uint64_t src, uint64_t bytes,
                          void *dst_host, const void *src_host)
{
    struct ws_op *op = &f->op[f->n_ops++];
    *op = (struct ws_op){.kind = WS_OPK_COPY,
                         .space = f->space[0],
                         .done = on_done,
                         .owner = f,
                         .copy = {.dst_va = dst,
                                  .src_va = src,
                                  .bytes = bytes,
                                  .dst_host = dst_host,
                                  .src_host = src_host}};
    ws_device_submit(f->device, op);
    return op;
}

static struct ws_op *fill(struct fixture *f, uint64_t va, uint64_t width, uint64_t height,
                          uint64_t pitch, uint32_t value, uint32_t unit)
{
    struct ws_op *op = &f->op[f->n_ops++];
    *op = (struct ws_op){.kind = WS_OPK_FILL,
                         .space = f->space[0],
                         .done = on_done,
                         .owner = f,
                         .fill = {.va = va,
                                  .width_bytes = width,
                                  .height = height,
                                  .pitch_bytes = pitch,
                                  .value = value,
                                  .value_bytes = unit}};
    ws_device_submit(f->device, op);
    return op;
}

static int setup_copy(void **state)
{
    if (setup(state))
        return -1;
    struct fixture *f = *state;
    f->host = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return ws_device_mem_alloc(f->device, f->space[0], A, 10 << 20) ||
           ws_device_mem_alloc(f->device, f->space[0], A + (10 << 20), 10 << 20) ||
           ws_device_mem_alloc(f->device, f->space[0], B, 20 << 20);
}

static void test_copies_of_all_sizes(void **state)
{
    static const uint64_t sizes[] = {0,     1,       511,           65536,
                                     65537, 1 << 20, (1 << 20) + 1, (20 << 20) - 3};
    struct fixture *f = *state;
    uint8_t *in = f->host, *out = f->host + (32 << 20);
    for (size_t i = 0; i < 20 << 20; i++)
        in[i] = (uint8_t)(i * 2654435761u >> 13);
    for (unsigned i = 0; i < WS_ARRAY_SIZE(sizes); i++) {
        memset(out, 0x55, (20 << 20) + 8);
        copy(f, A + 3, 0, sizes[i], NULL, in); /* crosses two allocations that adjoin */
        wait_done(f, f->n_ops);
        copy(f, B, A + 3, sizes[i], NULL, NULL);
        wait_done(f, f->n_ops);
        struct ws_op *op = copy(f, 0, B, sizes[i], out, NULL);
        wait_done(f, f->n_ops);
        assert_int_equal(op->error, WS_DEV_OK);
        assert_memory_equal(in, out, sizes[i]);
        assert_int_equal(out[sizes[i]], 0x55);
        if (sizes[i])
            assert_int_equal(op->end_ns - op->start_ns,
                             1000 + (sizes[i] + 9) / 10); /* latency, 10 bytes a ns */
    }
}

static void test_copies_are_bounds_checked(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op = copy(f, A + (20 << 20) - 10, 0, 11, NULL, f->host);
    assert_int_equal(op->error, WS_DEV_E_INVALID_VALUE);
    assert_non_null(strstr(op->text, "0x201400000"));
    assert_int_equal(copy(f, 0, 0x1234, 1, f->host, NULL)->error, WS_DEV_E_INVALID_VALUE);
    assert_int_equal(copy(f, A, 0, UINT64_MAX, NULL, f->host)->error, WS_DEV_E_INVALID_VALUE);
    assert_int_equal(fill(f, B, 20 << 20, 2, 20 << 20, 1, 1)->error, WS_DEV_E_INVALID_VALUE);
    assert_int_equal(fill(f, B, 8, UINT64_MAX / 4, 8, 1, 4)->error, WS_DEV_E_INVALID_VALUE);
    assert_int_equal(fill(f, B, 8, 2, 4, 1, 4)->error, WS_DEV_E_INVALID_VALUE);
    assert_int_equal(fill(f, B + 1, 8, 1, 8, 1, 4)->error, WS_DEV_E_INVALID_VALUE);
    assert_int_equal(fill(f, B, 8, 1, 8, 1, 3)->error, WS_DEV_E_INVALID_VALUE);
    assert_int_equal(f->n_done, f->n_ops);
    assert_int_equal(
        ws_space_map(f->space[0],
                     &(struct ws_mapping){
                         .va = 0x4000, .bytes = 4096, .host = f->host, .readers = WS_ACCESS_ALL},
                     NULL, NULL),
        0);
    assert_int_equal(copy(f, 0x4000, B, 8, NULL, NULL)->error, WS_DEV_E_INVALID_VALUE);
    assert_int_equal(copy(f, B, 0x4000, 8, NULL, NULL)->error, WS_DEV_OK);
}

static void test_fills(void **state)
{
    static const uint32_t values[] = {0, 0x11, 0x2233, 0, 0x44556677};
    struct fixture *f = *state;
    uint8_t *out = f->host;
    for (uint32_t unit = 1; unit <= 4; unit *= 2)
        for (int big = 0; big < 2; big++) {
            uint64_t width = big ? 200 * 1024 : 36, height = big ? 20 : 5, pitch = width + 64,
                     total = height * pitch;
            fill(f, A, total, 1, 0, 0, 1);
            wait_done(f, f->n_ops);
            struct ws_op *op = fill(f, A, width, height, pitch, values[unit], unit);
            wait_done(f, f->n_ops);
            assert_int_equal(op->error, WS_DEV_OK);
            copy(f, 0, A, total, out, NULL);
            wait_done(f, f->n_ops);
            for (uint64_t i = 0; i < total; i++)
                if (out[i] != (i % pitch < width ? (uint8_t)(values[unit] >> 8 * (i % unit)) : 0))
                    fail_msg("unit %u byte %llu: %x", unit, (unsigned long long)i, out[i]);
        }
}

/* However many rows a fill has, another client's kernel that is there already has its turns. */
static void test_rows_take_turns(void **state)
{
    struct fixture *f = *state;
    struct ws_op *kernel = launch(
        f, 1, 2000, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 1000, .ran = f->ran});
    struct ws_op *rows = fill(f, B, 1, 8 << 20, 2, 0x77, 1);
    wait_done(f, 1);
    assert_null(kernel->owner);
    assert_non_null(rows->owner);
    wait_done(f, 2);
    assert_int_equal(rows->error, WS_DEV_OK);
    copy(f, 0, B, 20 << 20, f->host, NULL);
    wait_done(f, 3);
    for (uint32_t i = 0; i < 20 << 20; i++)
        assert_int_equal(f->host[i], i % 2 == 0 && i < 16 << 20 ? 0x77 : 0);
}

static void test_unmapped_memory_lives_while_a_kernel_runs(void **state)
{
    struct fixture *f = *state;
    launch(f, 0, 8,
           (struct double_params){
               .kind = DOUBLE_WAIT, .n_insns = 100, .flag = f->flag, .ran = f->ran});
    struct ws_device_telemetry t;
    ws_device_telemetry(f->device, &t);
    uint64_t before = t.memory_used_bytes;
    assert_int_equal(ws_space_unmap(f->space[0], B), 0);
    ws_device_telemetry(f->device, &t);
    assert_int_equal(t.memory_used_bytes, before);
    assert_int_equal(copy(f, B, A, 8, NULL, NULL)->error, WS_DEV_E_INVALID_VALUE);
    f->flag[0] = 1;
    wait_done(f, f->n_ops);
    ws_device_telemetry(f->device, &t);
    assert_int_equal(t.memory_used_bytes, before - (20 << 20));
    assert_int_equal(t.n_running, 0);
}

static void test_memory_limit_and_zeroing(void **state)
{
    struct fixture *f = *state;
    static const uint64_t sizes[] = {512, 1024, 100 * 1024 + 512, 4 << 20};
    assert_int_equal(ws_device_mem_alloc(f->device, f->space[1], A, 64 << 20), WS_DEV_E_NO_MEMORY);
    for (unsigned i = 0; i < WS_ARRAY_SIZE(sizes); i++) {
        struct ws_mapping m;
        assert_int_equal(ws_device_mem_alloc(f->device, f->space[0], 0x10000000000, sizes[i]), 0);
        assert_true(ws_space_find(f->space[0], 0x10000000000, sizes[i], &m));
        assert_false(ws_space_find(f->space[0], 0x10000000000, sizes[i] + 1, &m));
        memset(m.host, 0xaa, sizes[i]);
        uint8_t *old = m.host;
        assert_int_equal(ws_space_unmap(f->space[0], 0x10000000000), 0);
        assert_int_equal(ws_device_mem_alloc(f->device, f->space[1], 0x10000000000, sizes[i]), 0);
        assert_true(ws_space_find(f->space[1], 0x10000000000, sizes[i], &m));
        if (sizes[i] <= 128 * 1024)
            assert_ptr_equal(m.host, old); /* reused; a larger one is cleared first */
        for (uint64_t k = 0; k < sizes[i]; k++)
            assert_int_equal(m.host[k], 0);
        assert_int_equal(ws_space_unmap(f->space[1], 0x10000000000), 0);
    }
    assert_int_equal(ws_device_mem_alloc(f->device, f->space[0], A + 512, 512), -EEXIST);
    assert_int_equal(ws_device_mem_alloc(f->device, f->space[0], 0x1001, 512), -EINVAL);
    assert_int_equal(ws_device_mem_alloc(f->device, f->space[0], 0x1000, 0), -EINVAL);
    assert_int_equal(ws_device_mem_alloc(f->device, f->space[0], UINT64_MAX - 511, 1024), -EINVAL);
}

static void test_instance_initialises_variables(void **state)
{
    struct fixture *f = *state;
    struct ws_mapping m;
    assert_true(ws_space_find(f->space[0], VAR_VA, 8192, &m));
    assert_int_equal(m.host[2], 3);
    uint64_t p;
    memcpy(&p, m.host + 8, 8);
    assert_int_equal(p, VAR_VA + 4096 + 4);
    struct ws_dinstance *i;
    uint64_t va[2] = {VAR_VA, 0}; /* a variable without memory */
    assert_int_equal(ws_device_instance_new(f->device, f->module, f->space[0], va, &i), -EINVAL);
    va[1] = 0x999999000;
    assert_int_equal(ws_device_instance_new(f->device, f->module, f->space[0], va, &i), -EINVAL);
}

static void test_occupancy(void **state)
{
    struct fixture *f = *state;
    struct ws_occupancy o;
    assert_int_equal(ws_device_occupancy(f->device, f->module, 0, 256, 0, &o), 0);
    assert_int_equal(o.blocks_per_sm, 4);
    assert_string_equal(o.limit, "threads");
    assert_int_equal(ws_device_occupancy(f->device, f->module, 0, 32, 0, &o), 0);
    assert_int_equal(o.blocks_per_sm, 16);
    assert_string_equal(o.limit, "blocks");
    assert_int_equal(ws_device_occupancy(f->device, f->module, 0, 256, 20000, &o), 0);
    assert_int_equal(o.blocks_per_sm, 3); /* 1024 + 20000 -> 21248, of 65536 */
    assert_string_equal(o.limit, "shared");
    assert_int_equal(ws_device_occupancy(f->device, f->module, 0, 256, 20821, &o), 0);
    assert_int_equal(o.blocks_per_sm, 2); /* 21845, a third of 65536, is rounded up */
    assert_int_equal(ws_device_occupancy(f->device, f->module, 0, 2048, 0, &o), 0);
    assert_int_equal(o.blocks_per_sm, 0);
    assert_int_equal(ws_device_occupancy(f->device, f->module, 1, 32, 0, &o), -EINVAL);
}

/* 72 registers of 32 lanes are 9 units of 256: each quarter of the SM's 65536 has room for 7 warps.
 */
static void test_blocks_of_two_warps_by_registers(void **state)
{
    struct ws_gpu_spec s = rig_spec;
    struct ws_fit fit;
    ws_occupancy_fit(&s, 64, 72, 0, &fit);
    assert_string_equal(fit.limit, "regs");
    assert_int_equal(fit.blocks_per_sm, 14);
    assert_true(fit.need.regs * 14 <= s.regs_per_sm);
}

/* What nvprof counted for loads of 1, 4, 8 and 16 sectors. */
static void test_l1_transactions(void **state)
{
    static const struct {
        uint64_t sectors, pascal;
    } rows[] = {{1, 4}, {4, 8}, {8, 8}, {16, 16}};
    struct ws_gpu_spec s = rig_spec;
    struct ws_need need = {.warps = 1};
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++)
        for (s.hardware_cc = 61; s.hardware_cc <= 70; s.hardware_cc += 9) {
            struct ws_unit unit = {.n_blocks = 1,
                                   .work = {.n_global_loads = 100,
                                            .n_load_sectors = 100 * rows[i].sectors,
                                            .n_store_sectors = 30}};
            struct ws_events e;
            ws_units_events(&s, &need, 1, &unit, 1, &e);
            uint64_t each = s.hardware_cc < 70 ? rows[i].pascal : rows[i].sectors;
            assert_int_equal((uint64_t)e.l1_sectors, 100 * each + 30);
        }
}

static void test_wrong_specs_are_refused(void **state)
{
    struct ws_device *d = NULL;
    struct ws_diags diags = WS_DIAGS_NULL;
    struct ws_gpu_spec s = rig_spec;
    struct ws_device_options o = {.n_workers = 1};
    s.n_sms = 257;
    assert_int_equal(ws_device_open_soft(&d, &s, 0, &o, &diags), -EINVAL);
    assert_int_equal(diags.n, 1);
    assert_non_null(strstr(diags.v[0].text, "sms is 257, must be 1 to 256"));
    ws_diags_deinit(&diags);
    assert_null(d);
}

/* ---- memory of blocks ---- */

enum { BLOCK_BYTES = 8 << 20, BLOCKS = 4 };

static int setup_memory(void **state)
{
    double_block_bytes = BLOCK_BYTES;
    double_n_states_max = 0;
    ws_payers_set_pool(2 * BLOCKS * BLOCK_BYTES); /* a user alone may have half of it */
    if (setup(state))
        return -1;
    struct fixture *f = *state;
    struct ws_payer *p = ws_payer_new();
    for (int i = 0; i < 2; i++)
        ws_space_set_payer(f->space[i], p);
    return ws_payer_unref(p) != NULL;
}

static int teardown_memory(void **state)
{
    int r = teardown(state);
    r |= double_n_states != 0 || ws_payers_held() != 0;
    double_block_bytes = 0;
    ws_payers_set_pool(UINT64_MAX);
    return r;
}

static struct ws_payer *payer_of(struct fixture *f)
{
    return ws_space_payer(f->space[0]);
}

/* Until @count says that something was taken or refused. If nothing is charged, more blocks than
 * have memory begin, and the test fails at once instead of waiting for ever. */
static void wait_charged(struct fixture *f, uint64_t (*count)(const struct ws_payer *))
{
    while (!count(payer_of(f))) {
        assert_true(double_n_states <= BLOCKS);
        sched_yield();
    }
}

/* All blocks could be resident, but no more than four may have memory at a time. */
static void test_blocks_wait_for_memory_of_their_user(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 6; i++)
        launch(f, i % 2, 200,
               (struct double_params){
                   .kind = DOUBLE_WAIT, .n_insns = 1000, .flag = &f->flag[0], .ran = f->ran});
    wait_charged(f, ws_payer_n_refused);
    f->flag[0] = 1;
    wait_done(f, 6);
    for (int i = 0; i < 6; i++)
        assert_int_equal(f->op[i].error, 0);
    for (int i = 0; i < 200; i++)
        assert_int_equal(f->ran[i], 6);
    assert_int_equal(double_n_states_max, BLOCKS);
}

/* A client's endless blocks hold all memory of their user. What another user asks for is granted,
 * and cancelling that client lets the user's other client go on. */
static void test_starved_launches_can_be_cancelled(void **state)
{
    struct fixture *f = *state;
    launch(f, 0, 16, (struct double_params){.kind = DOUBLE_ENDLESS});
    wait_charged(f, ws_payer_n_refused);
    launch(f, 1, 16, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 5000, .ran = f->ran});
    struct ws_payer *other = ws_payer_new();
    assert_int_equal(ws_payer_take(other, BLOCK_BYTES), 0);
    ws_payer_give(other, BLOCK_BYTES);
    ws_payer_unref(other);
    ws_device_cancel(f->device, f->space[0]);
    wait_done(f, 2);
    assert_int_equal(f->op[0].error, WS_DEV_E_CANCELLED);
    assert_int_equal(f->op[1].error, 0);
    for (int i = 0; i < 16; i++)
        assert_int_equal(f->ran[i], 1);
    launch(f, 0, 16, (struct double_params){.kind = DOUBLE_ENDLESS});
    launch(f, 1, 16, (struct double_params){.kind = DOUBLE_ENDLESS});
    ws_device_cancel(f->device, f->space[1]);
    ws_device_cancel(f->device, f->space[0]);
    wait_done(f, 4);
}

static void test_a_block_that_never_fits_fails(void **state)
{
    struct fixture *f = *state;
    double_block_bytes = 5 * BLOCK_BYTES;
    launch(f, 0, 2, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 1});
    launch(f, 1, 200, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 1});
    wait_done(f, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f->op[i].error, WS_DEV_E_NO_MEMORY);
        assert_non_null(strstr(f->op[i].text, "max_block_bytes"));
    }
    double_block_bytes = WS_PAYER_FLOOR; /* that much is never refused */
    ws_payers_set_pool(1);
    launch(f, 0, 20, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 1});
    wait_done(f, 3);
    assert_int_equal(f->op[2].error, 0);
}

/* All blocks of a cooperative kernel get memory, or none. */
static void test_cooperative_memory(void **state)
{
    struct fixture *f = *state;
    struct double_params p = {.kind = DOUBLE_BARRIER, .n_insns = 1000, .flag = &f->flag[0]};
    launch(f, 0, 16,
           (struct double_params){.kind = DOUBLE_WAIT, .n_insns = 1, .flag = &f->flag[1]});
    wait_charged(f, ws_payer_held_for_blocks);
    struct ws_op *op = op_launch(f, 1, 4, p);
    op->launch.flags = WS_LAUNCH_COOPERATIVE;
    ws_device_submit(f->device, op);
    f->flag[1] = 1;
    wait_done(f, 2);
    assert_int_equal(op->error, 0);
    op = op_launch(f, 1, 5, p);
    op->launch.flags = WS_LAUNCH_COOPERATIVE;
    ws_device_submit(f->device, op);
    wait_done(f, 3);
    assert_int_equal(op->error, WS_DEV_E_NO_MEMORY);
}

/* A kernel for which others wait does not wait for memory. */
static void test_urged_kernels_do_not_wait_for_memory(void **state)
{
    struct fixture *f = *state;
    launch(f, 0, 16, (struct double_params){.kind = DOUBLE_ENDLESS});
    wait_charged(f, ws_payer_n_refused);
    struct ws_op *op =
        launch(f, 1, 16, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 5000});
    while (ws_device_urge(f->device, op, WS_NS_PER_MS) == WS_DEVICE_EXECUTED)
        sched_yield();
    wait_done(f, 1);
    assert_int_equal(op->error, WS_DEV_E_NO_MEMORY);
    ws_device_cancel(f->device, f->space[0]);
    wait_done(f, 2);
}

static uint64_t held_for_records(struct fixture *f)
{
    return ws_payer_held(payer_of(f)) - ws_payer_held_for_blocks(payer_of(f));
}

/* Very many launches that do not end share a quarter of what their user may have for blocks. What
 * they leave to another launch is enough if it has few records; if it is not, that one fails. */
static void test_records_are_paid_for(void **state)
{
    enum { FLOOR = WS_PAYER_FLOOR / WS_PAYER_RECORDS_PART, LITTLE = 8 << 10, MANY = 30 };
    struct fixture *f = *state;
    struct ws_bill rest, other;
    double_block_bytes = 1;
    ws_payers_set_pool(1);
    for (int i = 0; i < MANY; i++) {
        launch(f, 0, 100000, (struct double_params){.kind = DOUBLE_ENDLESS});
        assert_in_range(held_for_records(f), 1, FLOOR);
    }
    struct ws_payer *p = ws_payer_new();
    assert_true(ws_bill_take(&other, p, FLOOR, 0));
    ws_bill_give(&other);
    ws_payer_unref(p);
    assert_true(ws_bill_take(&rest, payer_of(f), FLOOR - held_for_records(f) - LITTLE, 0));
    struct ws_op *op =
        launch(f, 1, 200, (struct double_params){.kind = DOUBLE_WORK, .ran = f->ran});
    wait_done(f, 1);
    assert_int_equal(op->error, 0);
    all_ran_once(f, 200);
    ws_bill_give(&rest);
    assert_true(ws_bill_take(&rest, payer_of(f), FLOOR - held_for_records(f), 0));
    op = launch(f, 1, 200, (struct double_params){.kind = DOUBLE_WORK, .ran = f->ran});
    ws_bill_give(&rest);
    assert_int_equal(op->error, WS_DEV_E_NO_MEMORY);
    assert_non_null(strstr(op->text, "max_block_bytes"));
}

static void test_random_kernels_of_a_poor_user(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 3;
    uint32_t n_preempted = 0;
    for (int i = 0; i < N_OPS; i++) {
        struct double_params p = {.kind = rig_random(&seed) % 4 ? DOUBLE_WORK : DOUBLE_ENDLESS,
                                  .n_insns = rig_random(&seed) % 60000};
        struct ws_op *op = op_launch(f, i % 2, 1 + rig_random(&seed) % 30, p);
        if (rig_random(&seed) % 4 == 0) {
            op->launch.flags = WS_LAUNCH_COOPERATIVE;
            op->launch.grid[0] = 1 + rig_random(&seed) % 4;
        }
        ws_device_submit(f->device, op);
        if (rig_random(&seed) % 3 == 0)
            ws_device_cancel(f->device, f->space[rig_random(&seed) % 2]);
        if (rig_random(&seed) % 3 == 0)
            n_preempted += !ws_device_preempt(f->device, &f->op[rig_random(&seed) % (i + 1)]);
    }
    for (int i = 0; i < 2; i++)
        ws_device_cancel(f->device, f->space[i]);
    wait_done(f, N_OPS);
    for (int i = 0; i < N_OPS; i++)
        f->op[i].launch.progress = ws_progress_free(f->op[i].launch.progress);
    assert_true(n_preempted > 0);
    assert_true(double_n_states_max <= BLOCKS);
}

static void test_out_of_memory_ends_operations_only(void **state)
{
    struct fixture *f = *state;
    uint32_t n_failed = 0;
    for (uint64_t n = 1; n <= 16; n++) { /* the n-th allocation, on whichever thread */
        f->n_ops = f->n_done = 0;
        ws_alloc_fail_after(n);
        struct ws_op *a =
            launch(f, 0, 1, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 10});
        struct ws_op *b =
            launch(f, 1, 40, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 3000});
        struct ws_op *c = op_launch(
            f, 0, RESIDENT, (struct double_params){.kind = DOUBLE_BARRIER, .flag = f->flag + n});
        c->launch.flags = WS_LAUNCH_COOPERATIVE;
        ws_device_submit(f->device, c);
        struct ws_op *d = copy(f, A, B, 1 << 20, NULL, NULL);
        wait_done(f, 4);
        ws_alloc_fail_after(0);
        struct ws_op *all[] = {a, b, c, d};
        for (int i = 0; i < 4; i++) {
            assert_true(all[i]->error == WS_DEV_OK || all[i]->error == WS_DEV_E_NO_MEMORY);
            n_failed += all[i]->error != WS_DEV_OK;
        }
    }
    assert_true(n_failed >= 4);
    struct ws_device_telemetry t;
    ws_device_telemetry(f->device, &t);
    assert_int_equal(t.n_running, 0);
    f->n_ops = f->n_done = 0;
    launch(f, 0, 40, (struct double_params){.kind = DOUBLE_WORK, .ran = f->ran});
    wait_done(f, 1);
    all_ran_once(f, 40);
}

/* On GPUs that have never run a block: each allocation of the first kernel is the one that fails,
 * those of workers that deal its blocks too. */
static void test_first_kernel_out_of_memory(void **state)
{
    for (uint64_t n = 1; n <= 24; n++) {
        assert_int_equal(setup_one_worker(state), 0);
        struct fixture *f = *state;
        struct ws_op *op =
            op_launch(f, 0, RESIDENT, (struct double_params){.kind = DOUBLE_WORK, .n_insns = 3000});
        op->launch.flags = n & 1 ? WS_LAUNCH_COOPERATIVE : 0;
        ws_alloc_fail_after((n + 1) / 2);
        ws_device_submit(f->device, op);
        wait_done(f, 1);
        ws_alloc_fail_after(0);
        assert_true(op->error == WS_DEV_OK || op->error == WS_DEV_E_NO_MEMORY);
        assert_int_equal(teardown(state), 0);
    }
}

static void test_random_submits_and_cancels(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 1;
    struct ws_op *op = f->op;
    for (int round = 0; round < 25; round++) {
        f->n_ops = f->n_done = 0;
        for (int i = 0; i < 40; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t r = (uint32_t)(seed >> 33);
            int client = r & 1;
            switch (r >> 1 & 7) {
            case 0:
                ws_device_cancel(f->device, f->space[client]);
                break;
            case 1:
                launch(f, client, 1 + r % 50, (struct double_params){.kind = DOUBLE_ENDLESS});
                break;
            case 2:
                launch(f, client, 1 + r % 50,
                       (struct double_params){.kind = DOUBLE_FAULT, .n_insns = r % 60});
                break;
            case 3:
                copy(f, A + ((uint64_t)i << 19), B, (1 + r % 8) << 16, NULL, NULL);
                break;
            default:
                launch(f, client, 1 + r % 100,
                       (struct double_params){.kind = DOUBLE_WORK, .n_insns = r % 3000});
            }
        }
        ws_device_cancel(f->device, f->space[0]);
        ws_device_cancel(f->device, f->space[1]);
        wait_done(f, f->n_ops);
        for (uint32_t i = 0; i < f->n_ops; i++)
            assert_true(op[i].error == WS_DEV_OK || op[i].error == WS_DEV_E_CANCELLED ||
                        op[i].error == WS_DEV_E_ILLEGAL_ADDRESS);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_small_launch_completes_inside_submit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_each_block_runs_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_blocks_go_to_all_sms_alike, setup_one_worker,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_sm_set_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_resident_blocks_wait_for_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_launch_waits_for_another_launch, setup, teardown),
        cmocka_unit_test_setup_teardown(test_more_than_resident_would_deadlock_as_on_hardware,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_endless_client_starves_nobody, setup, teardown),
        cmocka_unit_test_setup_teardown(test_endless_kernel_is_stopped, setup_limit, teardown),
        cmocka_unit_test_setup_teardown(test_one_endless_block_is_stopped, setup_limit, teardown),
        cmocka_unit_test_setup_teardown(test_fault_stops_its_kernel_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel_ends_all_of_one_client, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel_is_quick, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kernels_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cooperative, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cooperative_takes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_launches, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_chain_from_done_keeps_the_stack_flat, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_skip_completes_at_once, setup_skip, teardown),
        cmocka_unit_test_setup_teardown(test_copies_of_all_sizes, setup_copy, teardown),
        cmocka_unit_test_setup_teardown(test_copies_are_bounds_checked, setup_copy, teardown),
        cmocka_unit_test_setup_teardown(test_fills, setup_copy, teardown),
        cmocka_unit_test_setup_teardown(test_rows_take_turns, setup_copy, teardown),
        cmocka_unit_test_setup_teardown(test_unmapped_memory_lives_while_a_kernel_runs, setup_copy,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_memory_limit_and_zeroing, setup_copy, teardown),
        cmocka_unit_test_setup_teardown(test_instance_initialises_variables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_occupancy, setup, teardown),
        cmocka_unit_test(test_blocks_of_two_warps_by_registers),
        cmocka_unit_test(test_l1_transactions),
        cmocka_unit_test(test_wrong_specs_are_refused),
        cmocka_unit_test_setup_teardown(test_blocks_wait_for_memory_of_their_user, setup_memory,
                                        teardown_memory),
        cmocka_unit_test_setup_teardown(test_starved_launches_can_be_cancelled, setup_memory,
                                        teardown_memory),
        cmocka_unit_test_setup_teardown(test_a_block_that_never_fits_fails, setup_memory,
                                        teardown_memory),
        cmocka_unit_test_setup_teardown(test_cooperative_memory, setup_memory, teardown_memory),
        cmocka_unit_test_setup_teardown(test_urged_kernels_do_not_wait_for_memory, setup_memory,
                                        teardown_memory),
        cmocka_unit_test_setup_teardown(test_records_are_paid_for, setup_memory, teardown_memory),
        cmocka_unit_test_setup_teardown(test_random_kernels_of_a_poor_user, setup_memory,
                                        teardown_memory),
        cmocka_unit_test_setup_teardown(test_out_of_memory_ends_operations_only, setup_copy,
                                        teardown),
        cmocka_unit_test(test_first_kernel_out_of_memory),
        cmocka_unit_test_setup_teardown(test_random_submits_and_cancels, setup_copy, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
