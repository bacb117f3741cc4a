// SPDX-License-Identifier: Apache-2.0
/* The soft device whole, with PTX: right results, several clients, faults, limits, cancels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/alloc.h"
#include "device/catalog.h"
#include "device/space.h"

static const char ptx[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".func (.param .b32 r) twice(.param .b32 x)\n{\n.reg .b32 %r<3>;\nld.param.b32 %r1, [x]; "
    "add.s32 %r2, %r1, %r1;\nst.param.b32 [r], %r2;\nret;\n}\n"
    ".global .align 4 .u32 counter;\n"
    ".global .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
    ".global .align 8 .u64 pointer = table;\n"
    ".global .align 8 .u64 function = twice;\n"
    ".const .align 4 .u32 factor = 3;\n"
    ".global .align 4 .u32 sparse[100] = {7};\n"
    ".global .align 8 .u8 packed[4] = {1, 0xFF(table+2), 0xFF00(table), 0xFF0000(table)};\n"
    /* c[i] = a[i] + b[i] */
    ".visible .entry vecadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n{\n"
    ".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<8>; .reg .f32 %f<4>;\n"
    "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r5, "
    "[n];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, "
    "%r3;\n"
    "setp.ge.u32 %p, %r4, %r5;\n@%p bra END;\n"
    "mul.wide.u32 %rd4, %r4, 4; add.s64 %rd5, %rd1, %rd4; add.s64 %rd6, %rd2, %rd4; add.s64 %rd7, "
    "%rd3, %rd4;\n"
    "ld.global.f32 %f1, [%rd5]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f1, %f2; st.global.f32 "
    "[%rd7], %f3;\n"
    "END:\nret;\n}\n"
    /* adds 1 to the module's counter, for every thread */
    ".visible .entry count()\n{\n.reg .b32 %r<2>;\natom.global.add.u32 %r1, [counter], "
    "1;\nret;\n}\n"
    /* waits until *p is not 0 */
    ".visible .entry wait(.param .u64 p)\n{\n.reg .pred %p; .reg .b32 %r; .reg .b64 "
    "%rd;\nld.param.u64 %rd, [p];\n"
    "L: ld.volatile.global.u32 %r, [%rd];\nsetp.eq.u32 %p, %r, 0;\n@%p bra L;\nret;\n}\n"
    ".visible .entry set(.param .u64 p)\n{\n.reg .b64 %rd;\nld.param.u64 %rd, "
    "[p];\nst.volatile.global.u32 [%rd], 1;\nret;\n}\n"
    /* block i waits for block i + 1, the last one for nobody; p[i] = 1 */
    ".visible .entry chain(.param .u64 p)\n{\n.reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 "
    "%rd<4>;\n"
    "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; add.s32 %r3, %r1, 1;\n"
    "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\nsetp.ge.u32 %p1, %r3, %r2;\n@%p1 bra "
    "GO;\n"
    "L: ld.volatile.global.u32 %r4, [%rd3+4];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra L;\n"
    "GO: st.volatile.global.u32 [%rd3], 1;\nret;\n}\n"
    /* as chain, by loads that are not volatile with a fence each (as CUB's grid barrier waits) */
    ".visible .entry fences(.param .u64 p)\n{\n.reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 "
    "%rd<4>;\n"
    "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; add.s32 %r3, %r1, 1;\n"
    "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\nsetp.ge.u32 %p1, %r3, %r2;\n@%p1 bra "
    "GO;\n"
    "L: membar.cta; ld.cg.global.u32 %r4, [%rd3+4];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra L;\n"
    "GO: st.volatile.global.u32 [%rd3], 1;\nret;\n}\n"
    ".visible .entry endless()\n{\nL: bra L;\n}\n"
    ".visible .entry bad(.param .u64 p)\n{\n.reg .b64 %rd; .reg .b32 %r;\nld.param.u64 %rd, "
    "[p];\nld.global.u32 %r, [%rd];\nst.global.u32 [%rd], %r;\nret;\n}\n"
    ".visible .entry trap()\n{\ntrap;\nret;\n}\n"
    /* *p = table[1] through pointer, times factor, twice through function */
    ".visible .entry vars(.param .u64 p)\n{\n.reg .b32 %r<6>; .reg .b64 %rd<5>;\n"
    "ld.param.u64 %rd1, [p]; ld.global.u64 %rd2, [pointer]; ld.global.u32 %r1, [%rd2+4]; "
    "ld.const.u32 %r2, [factor];\n"
    "mul.lo.s32 %r3, %r1, %r2; ld.global.u64 %rd3, [function];\n"
    "{\n.param .b32 arg; .param .b32 res;\nst.param.b32 [arg], %r3;\n"
    "P: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (res), %rd3, (arg), "
    "P;\nld.param.b32 %r4, [res];\n}\n"
    "st.global.u32 [%rd1], %r4;\nret;\n}\n"
    /* a grid barrier as cooperative groups make it; then p[i] = number of blocks that had
     * arrived */
    ".visible .entry coop(.param .u64 p)\n{\n.reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<6>;\n"
    "ld.param.u64 %rd1, [p]; mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; mov.b64 %rd2, {%r2, "
    "%r1};\n"
    "mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ctaid.x; atom.add.release.gpu.global.u32 %r5, [%rd2+4], "
    "1;\n"
    "L: ld.acquire.gpu.global.u32 %r6, [%rd2+4];\nsetp.lt.u32 %p1, %r6, %r3;\n@%p1 bra L;\n"
    "mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; st.global.u32 [%rd4], %r6;\nret;\n}\n"
    /* p[i] mixed in place, 16 times and more, differently by block: neither twice nor not at all
     * gives the same */
    ".visible .entry mix(.param .u64 p)\n{\n.reg .pred %p; .reg .b32 %r<10>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.s32 %r4, %r1, %r2, %r3; mul.wide.u32 %rd2, %r4, 4; add.s64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r5, [%rd3]; rem.u32 %r6, %r1, 7; mad.lo.s32 %r6, %r6, 16, 16;\n"
    "L: mad.lo.s32 %r5, %r5, 1664525, 1013904223; shr.u32 %r7, %r5, 13; xor.b32 %r5, %r5, %r7;\n"
    "sub.s32 %r6, %r6, 1; setp.ne.s32 %p, %r6, 0;\n@%p bra L;\nst.global.u32 [%rd3], "
    "%r5;\nret;\n}\n";
enum { VECADD, COUNT, WAIT, SET, CHAIN, FENCES, ENDLESS, BAD, TRAP, VARS, COOP, MIX, N_KERNELS };

enum { N_CLIENTS = 2, N_OPS = 64, N = 1 << 18 };
#define VARS_VA UINT64_C(0x700000000)
#define A       UINT64_C(0x800000000)
#define B       UINT64_C(0x801000000)
#define C       UINT64_C(0x802000000)
#define FLAG    UINT64_C(0x803000000)

struct fixture {
    struct ws_ptx_module *ptx;
    struct ws_catalog catalog;
    struct ws_device *device[2]; /* rtx3070, t400 */
    struct ws_dmodule *module;
    struct ws_space *space[N_CLIENTS];
    struct ws_dinstance *instance[N_CLIENTS];
    pthread_mutex_t lock;
    pthread_cond_t cond;
    uint32_t n_done, n_ops;
    struct ws_op op[N_OPS];
    uint64_t params[N_OPS][4];
    float *a, *b, *c;
};

static void on_done(struct ws_op *op)
{
    struct fixture *f = op->owner;
    pthread_mutex_lock(&f->lock);
    f->n_done++;
    op->owner = NULL;
    pthread_cond_broadcast(&f->cond);
    pthread_mutex_unlock(&f->lock);
}

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

static void wait_op(struct fixture *f, const struct ws_op *op)
{
    pthread_mutex_lock(&f->lock);
    while (op->owner)
        pthread_cond_wait(&f->cond, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static int client_new(struct fixture *f, int i)
{
    uint64_t va[8] = {0};
    const struct ws_dmodule_info *info = ws_dmodule_info(f->module);
    if (info->n_vars > 8 || info->n_kernels != N_KERNELS)
        return -1;
    for (uint32_t v = 0; v < info->n_vars; v++)
        va[v] = VARS_VA + v * 512;
    return ws_space_new(&f->space[i]) ||
           ws_device_mem_alloc(f->device[0], f->space[i], VARS_VA, 8192) ||
           ws_device_mem_alloc(f->device[0], f->space[i], A, N * 4) ||
           ws_device_mem_alloc(f->device[0], f->space[i], B, N * 4) ||
           ws_device_mem_alloc(f->device[0], f->space[i], C, N * 4) ||
           ws_device_mem_alloc(f->device[0], f->space[i], FLAG, 512 * 16) ||
           ws_device_instance_new(f->device[0], f->module, f->space[i], va, &f->instance[i]);
}

static int setup_clock(void **state, uint64_t max_insns, enum ws_device_clock clock)
{
    struct fixture *f = ws_alloc(sizeof(*f));
    struct ws_diags diags = WS_DIAGS_NULL;
    *state = f;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->cond, NULL);
    const char *dir = getenv("srcdir");
    char path[512];
    snprintf(path, sizeof(path), "%s/conf/gpu.d", dir ? dir : ".");
    struct ws_device_options o = {.clock = clock, .n_workers = 2, .max_kernel_insns = max_insns};
    int r =
        ws_catalog_load(&f->catalog, path, NULL) ||
        ws_ptx_parse(&f->ptx, ptx, sizeof(ptx) - 1, "test.ptx", &diags) ||
        ws_device_open_soft(&f->device[0], ws_catalog_find(&f->catalog, "rtx3070"), 0, &o, NULL) ||
        ws_device_open_soft(&f->device[1], ws_catalog_find(&f->catalog, "t400"), 1, &o, NULL) ||
        ws_device_module_load(f->device[0], f->ptx, &f->module, &diags) || client_new(f, 0) ||
        client_new(f, 1);
    char *text = ws_diags_text(&diags);
    if (text && *text)
        print_message("%s", text);
    free(text);
    ws_diags_deinit(&diags);
    f->a = ws_alloc_array(N, 4);
    f->b = ws_alloc_array(N, 4);
    f->c = ws_alloc_array(N, 4);
    for (int i = 0; i < N; i++) {
        f->a[i] = (float)i;
        f->b[i] = (float)(3 * i % 1000);
    }
    return r;
}
static int setup_with(void **state, uint64_t max_insns)
{
    return setup_clock(state, max_insns, WS_CLOCK_FUNCTIONAL);
}
static int setup_scaled(void **state)
{
    return setup_clock(state, 0, WS_CLOCK_SCALED);
}
static int setup(void **state)
{
    return setup_with(state, 0);
}
static int setup_limit(void **state)
{
    return setup_with(state, 20000000);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (int d = 0; d < 2; d++)
        for (int i = 0; i < N_CLIENTS; i++)
            ws_device_cancel(f->device[d], f->space[i]);
    wait_done(f, f->n_ops);
    for (int i = 0; i < N_CLIENTS; i++) {
        ws_device_instance_free(f->device[0], f->instance[i]);
        ws_space_free(f->space[i]);
    }
    ws_device_module_unload(f->device[0], f->module);
    ws_device_close(f->device[1]);
    ws_device_close(f->device[0]);
    ws_ptx_module_free(f->ptx);
    ws_catalog_deinit(&f->catalog);
    free(f->a);
    free(f->b);
    free(f->c);
    free(f);
    return 0;
}

static struct ws_op *op_new(struct fixture *f, int client, int kernel, uint32_t blocks,
                            uint32_t threads, uint64_t p0, uint64_t p1, uint64_t p2, uint64_t p3)
{
    uint32_t i = f->n_ops++;
    memcpy(f->params[i], (uint64_t[]){p0, p1, p2, p3}, 32);
    f->op[i] = (struct ws_op){
        .kind = WS_OPK_LAUNCH,
        .space = f->space[client],
        .done = on_done,
        .owner = f,
        .launch = {.instance = f->instance[client],
                   .kernel = (uint32_t)kernel,
                   .grid = {blocks, 1, 1},
                   .block = {threads, 1, 1},
                   .params = f->params[i],
                   .param_bytes = 32},
    };
    return &f->op[i];
}

static struct ws_op *launch(struct fixture *f, int client, int kernel, uint32_t blocks,
                            uint32_t threads, uint64_t p0)
{
    struct ws_op *op = op_new(f, client, kernel, blocks, threads, p0, 0, 0, 0);
    ws_device_submit(f->device[0], op);
    return op;
}

static struct ws_op *vecadd(struct fixture *f, int device, int client, uint32_t n, uint32_t threads)
{
    struct ws_op *op = op_new(f, client, VECADD, (n + threads - 1) / threads, threads, A, B, C, n);
    ws_device_submit(f->device[device], op);
    return op;
}

static struct ws_op *copy(struct fixture *f, int client, uint64_t dst, const void *src_host,
                          void *dst_host, uint64_t src, uint64_t bytes)
{
    struct ws_op *op = &f->op[f->n_ops++];
    *op = (struct ws_op){.kind = WS_OPK_COPY,
                         .space = f->space[client],
                         .done = on_done,
                         .owner = f,
                         .copy = {.dst_va = dst,
                                  .src_host = src_host,
                                  .dst_host = dst_host,
                                  .src_va = src,
                                  .bytes = bytes}};
    ws_device_submit(f->device[0], op);
    wait_op(f, op);
    assert_int_equal(op->error, WS_DEV_OK);
    return op;
}

static void load(struct fixture *f, int client)
{
    copy(f, client, A, f->a, NULL, 0, N * 4);
    copy(f, client, B, f->b, NULL, 0, N * 4);
}

static void check_sum(struct fixture *f, int client, uint32_t n)
{
    copy(f, client, 0, NULL, f->c, C, N * 4);
    for (uint32_t i = 0; i < N; i++)
        if (f->c[i] != (i < n ? f->a[i] + f->b[i] : 0))
            fail_msg("c[%u] = %g", i, (double)f->c[i]);
}

static void ok(struct ws_op *op)
{
    if (op->error)
        fail_msg("%s: %s", ws_dev_error_name(op->error), op->text);
}

static void test_vecadd(void **state)
{
    struct fixture *f = *state;
    load(f, 0);
    struct ws_op *op = vecadd(f, 0, 0, N - 77, 256);
    wait_op(f, op);
    ok(op);
    check_sum(f, 0, N - 77);
    assert_true(op->n_thread_insns >= (uint64_t)N * 10);
    assert_true(op->energy_uj > 0);
}

static void test_both_gpus_and_both_clients_at_once(void **state)
{
    struct fixture *f = *state;
    load(f, 0);
    load(f, 1);
    struct ws_op *fast = vecadd(f, 0, 0, N, 128), *slow = vecadd(f, 1, 1, N, 128);
    wait_done(f, f->n_ops);
    ok(fast);
    ok(slow);
    check_sum(f, 0, N);
    check_sum(f, 1, N);
    assert_true(slow->end_ns - slow->start_ns > 2 * (fast->end_ns - fast->start_ns));
}

static void test_fewer_sms_take_longer(void **state)
{
    struct fixture *f = *state;
    uint64_t before = 0;
    for (uint32_t m = 46; m; m /= 4) {
        struct ws_op *op = op_new(f, 0, COUNT, 2000, 256, 0, 0, 0, 0);
        op->launch.sms = (struct ws_sm_set){.n = m, .bits = {(UINT64_C(1) << m) - 1}};
        ws_device_submit(f->device[0], op);
        wait_op(f, op);
        ok(op);
        assert_true(op->end_ns - op->start_ns > before);
        before = op->end_ns - op->start_ns;
    }
}

static void test_instances_have_their_own_variables(void **state)
{
    struct fixture *f = *state;
    launch(f, 0, COUNT, 300, 96, 0);
    launch(f, 1, COUNT, 7, 32, 0);
    launch(f, 0, COUNT, 1, 1, 0);
    wait_done(f, 3);
    uint32_t n[2];
    copy(f, 0, 0, NULL, &n[0], VARS_VA, 4);
    copy(f, 1, 0, NULL, &n[1], VARS_VA, 4);
    assert_int_equal(n[0], 300 * 96 + 1);
    assert_int_equal(n[1], 7 * 32);
}

static void test_initialisers(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op = launch(f, 0, VARS, 1, 1, FLAG);
    wait_op(f, op);
    ok(op);
    uint32_t v;
    copy(f, 0, 0, NULL, &v, FLAG, 4);
    assert_int_equal(v, 20 * 3 * 2);
    /* the text gives fewer values than the variable has, and an address byte by byte */
    uint32_t sparse[100];
    uint8_t packed[4];
    uint64_t table = VARS_VA + 1 * 512;
    copy(f, 0, 0, NULL, sparse, VARS_VA + 5 * 512, sizeof(sparse));
    assert_int_equal(sparse[0], 7);
    for (int i = 1; i < 100; i++)
        assert_int_equal(sparse[i], 0);
    copy(f, 0, 0, NULL, packed, VARS_VA + 6 * 512, sizeof(packed));
    assert_int_equal(packed[0], 1);
    assert_int_equal(packed[1], (table + 2) & 0xff);
    assert_int_equal(packed[2], table >> 8 & 0xff);
    assert_int_equal(packed[3], table >> 16 & 0xff);
}

static void test_launch_waits_for_another_client_s_copy_or_launch(void **state)
{
    struct fixture *f = *state;
    struct ws_op *a = launch(f, 0, WAIT, 64, 64, FLAG), *b = launch(f, 1, WAIT, 1, 32, FLAG);
    launch(f, 0, SET, 1, 1, FLAG);
/* A program may race with its own kernel; the sanitizer does not know that. */
#ifdef __SANITIZE_THREAD__
    launch(f, 1, SET, 1, 1, FLAG);
#else
    uint32_t one = 1;
    copy(f, 1, FLAG, &one, NULL, 0, 4);
#endif
    wait_done(f, f->n_ops);
    ok(a);
    ok(b);
}

static void test_blocks_of_a_grid_wait_for_each_other(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op = launch(f, 0, CHAIN, 46 * 16, 32, A);
    wait_op(f, op);
    ok(op);
}

/* Each waiting block gives its turn away soon; else this takes most of a million instructions a
 * block. */
static void test_waiting_with_fences_gives_turns_away(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op = launch(f, 0, FENCES, 46 * 16, 32, A);
    wait_op(f, op);
    ok(op);
    assert_true(op->n_thread_insns < UINT64_C(46) * 16 * 32 * 200000);
}

static void test_cooperative_grid_barrier(void **state)
{
    struct fixture *f = *state;
    for (int round = 0; round < 3; round++) {
        struct ws_op *op = op_new(f, 0, COOP, 46 * 12, 1, A, 0, 0, 0);
        op->launch.flags = WS_LAUNCH_COOPERATIVE;
        ws_device_submit(f->device[0], op);
        wait_op(f, op);
        ok(op);
        uint32_t v[46 * 12];
        copy(f, 0, 0, NULL, v, A, sizeof(v));
        for (int i = 0; i < 46 * 12; i++)
            assert_int_equal(v[i], 46 * 12);
    }
}

static void test_endless_kernel_is_stopped_and_hurts_nobody(void **state)
{
    struct fixture *f = *state;
    load(f, 1);
    struct ws_op *e = launch(f, 0, ENDLESS, 2000, 256, 0), *v = vecadd(f, 0, 1, N, 256);
    wait_op(f, v);
    ok(v);
    wait_op(f, e);
    assert_int_equal(e->error, WS_DEV_E_TIMEOUT);
    assert_non_null(strstr(e->text, "endless"));
    check_sum(f, 1, N);
}

static void test_faults_are_isolated(void **state)
{
    struct fixture *f = *state;
    load(f, 1);
    struct ws_op *v = vecadd(f, 0, 1, N, 64);
    struct ws_op *bad = launch(f, 0, BAD, 500, 64, 0x10), *odd = launch(f, 0, BAD, 1, 1, A + 2),
                 *trap = launch(f, 0, TRAP, 3, 64, 0), *beyond = launch(f, 0, BAD, 1, 1, C + N * 4);
    wait_done(f, f->n_ops);
    assert_int_equal(bad->error, WS_DEV_E_ILLEGAL_ADDRESS);
    print_message("  %s\n", bad->text);
    assert_non_null(strstr(bad->text, "0x10"));
    assert_int_equal(odd->error, WS_DEV_E_MISALIGNED);
    assert_int_equal(trap->error, WS_DEV_E_TRAP);
    assert_int_equal(beyond->error, WS_DEV_E_ILLEGAL_ADDRESS);
    ok(v);
    check_sum(f, 1, N);
}

static void test_cancel_in_the_middle(void **state)
{
    struct fixture *f = *state;
    load(f, 1);
    for (int i = 0; i < 4; i++)
        launch(f, 0, i & 1 ? ENDLESS : WAIT, 1 + 100 * (uint32_t)i, 64, FLAG);
    struct ws_op *v = vecadd(f, 0, 1, N, 64);
    struct timespec t = {0, 3000000};
    nanosleep(&t, NULL);
    ws_device_cancel(f->device[0], f->space[0]);
    wait_done(f, f->n_ops);
    for (int i = 2; i < 6; i++)
        assert_int_equal(f->op[i].error, WS_DEV_E_CANCELLED);
    ok(v);
    check_sum(f, 1, N);
}

static void test_unmapping_under_a_running_kernel(void **state)
{
    struct fixture *f = *state;
    struct ws_op *op = launch(f, 0, WAIT, 100, 64, FLAG);
    assert_int_equal(ws_space_unmap(f->space[0], FLAG), 0);
    struct timespec t = {0, 2000000};
    nanosleep(&t, NULL);
    ws_device_cancel(f->device[0], f->space[0]);
    wait_op(f, op);
    assert_true(op->error == WS_DEV_E_CANCELLED || op->error == WS_DEV_E_ILLEGAL_ADDRESS);
}

static void test_random_work(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = 11;
    for (int round = 0; round < 25; round++) {
        f->n_ops = f->n_done = 0;
        for (int i = 0; i < 40; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t r = (uint32_t)(seed >> 33), client = r & 1, blocks = 1 + r % 90,
                     threads = 1 + r % 200;
            switch (r >> 1 & 15) {
            case 0:
                ws_device_cancel(f->device[0], f->space[client]);
                break;
            case 1:
                launch(f, (int)client, ENDLESS, blocks, threads, 0);
                break;
            case 2:
                launch(f, (int)client, BAD, blocks, threads, 0x10);
                break;
            case 3:
                launch(f, (int)client, WAIT, blocks, threads, FLAG);
                break;
            default:
                launch(f, (int)client, COUNT, blocks, threads, 0);
            }
        }
        ws_device_cancel(f->device[0], f->space[0]);
        ws_device_cancel(f->device[0], f->space[1]);
        wait_done(f, f->n_ops);
        for (uint32_t i = 0; i < f->n_ops; i++) {
            enum ws_dev_error e = f->op[i].error;
            assert_true(e == WS_DEV_OK || e == WS_DEV_E_CANCELLED ||
                        (e == WS_DEV_E_ILLEGAL_ADDRESS && f->op[i].launch.kernel == BAD));
        }
    }
    struct ws_device_telemetry t;
    ws_device_telemetry(f->device[0], &t);
    assert_int_equal(t.n_running, 0);
}

static void test_energy_of_operations_is_the_device_s(void **state)
{
    struct fixture *f = *state;
    load(f, 0);
    uint64_t ready = ws_device_now_ns(f->device[0]); /* one after another: nothing to share */
    for (int i = 0; i < 6; i++) {
        struct ws_op *op = op_new(f, i & 1, VECADD, N / 64, 64, A, B, C, N);
        op->ready_ns = ready;
        ws_device_submit(f->device[0], op);
        wait_op(f, op);
        ready = WS_MAX(ready, op->end_ns);
    }
    struct ws_device_telemetry t;
    ws_device_telemetry(f->device[0], &t);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < f->n_ops; i++)
        sum += f->op[i].energy_uj;
    assert_true(sum + 2 >= t.energy_uj && sum <= t.energy_uj + 2);
    assert_true(t.now_ns >= ready);
    assert_int_equal(t.n_kernels, 6);
    assert_int_equal(t.copied_bytes, 2 * N * 4);
}

/* A box of 3 x 100 rows inside the device, large enough for a worker. */
static void test_box_copies(void **state)
{
    struct fixture *f = *state;
    enum {
        W = 3001,
        H = 100,
        D = 3,
        PITCH_A = 3100,
        SLICE_A = 311000,
        PITCH_B = 3001,
        SLICE_B = 300107
    };
    static uint8_t got[D * SLICE_B], src[D * SLICE_A];
    for (size_t i = 0; i < sizeof(src); i++)
        src[i] = (uint8_t)(i * 2654435761u >> 13);
    copy(f, 0, A, src, NULL, 0, sizeof(src));
    struct ws_op *op = &f->op[f->n_ops++];
    *op = (struct ws_op){.kind = WS_OPK_COPY,
                         .space = f->space[0],
                         .done = on_done,
                         .owner = f,
                         .copy = {.dst_va = B,
                                  .src_va = A + 7,
                                  .bytes = W,
                                  .height = H,
                                  .depth = D,
                                  .dst = {PITCH_B, SLICE_B},
                                  .src = {PITCH_A, SLICE_A}}};
    ws_device_submit(f->device[0], op);
    wait_op(f, op);
    ok(op);
    copy(f, 0, 0, NULL, got, B, (D - 1) * SLICE_B + H * PITCH_B);
    for (int z = 0; z < D; z++)
        for (int y = 0; y < H; y++)
            assert_memory_equal(got + z * SLICE_B + y * PITCH_B,
                                src + 7 + z * SLICE_A + y * PITCH_A, W);
    static const struct ws_pitches bad[] = {{W - 1, SLICE_B}, {PITCH_B, PITCH_B}, {1ull << 62, 0}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(bad); i++) {
        f->op[f->n_ops] = *op;
        op = &f->op[f->n_ops++];
        op->copy.dst = bad[i];
        op->error = WS_DEV_OK;
        op->owner = f;
        ws_device_submit(f->device[0], op);
        wait_op(f, op);
        assert_int_equal(op->error, WS_DEV_E_INVALID_VALUE);
    }
    static const uint64_t rows[][2] = {{UINT64_MAX, 1}, {1ull << 40, 1ull << 40}, {H, 400}};
    for (size_t i = 0; i < WS_ARRAY_SIZE(rows); i++) {
        f->op[f->n_ops] = *op;
        op = &f->op[f->n_ops++];
        op->copy.dst = (struct ws_pitches){PITCH_B, SLICE_B};
        op->copy.height = rows[i][0];
        op->copy.depth = rows[i][1];
        op->error = WS_DEV_OK;
        op->owner = f;
        ws_device_submit(f->device[0], op);
        wait_op(f, op);
        assert_int_equal(op->error, WS_DEV_E_INVALID_VALUE);
    }
}

static uint32_t mixed(uint32_t x, uint32_t block)
{
    for (uint32_t k = block % 7 * 16 + 16; k; k--) {
        x = x * 1664525 + 1013904223;
        x ^= x >> 13;
    }
    return x;
}

/* A kernel that works in place, stopped at random points and resumed on either GPU: as if it
 * had run at once. */
static void test_preempted_at_random(void **state)
{
    struct fixture *f = *state;
    enum { THREADS = 64, BLOCKS = N / THREADS };
#ifdef __SANITIZE_ADDRESS__ /* each round then takes a second, of some fifty stops */
    enum { ROUNDS = 6 };
#else
    enum { ROUNDS = 20 };
#endif
    uint32_t *v = (uint32_t *)f->c, n_stops = 0, seed = 5;
    /* On a busy machine a kernel may be through before we wake: then more of them, and stopped
     * sooner. */
    for (uint32_t round = 0; round < ROUNDS || (n_stops < 20 && round < 500); round++) {
        uint32_t longest_ns = 2000000 >> WS_MIN(round / 20, 12u);
        f->n_ops = f->n_done = 0;
        copy(f, 0, A, f->a, NULL, 0, N * 4);
        struct ws_op *op = launch(f, 0, MIX, BLOCKS, THREADS, A);
        int device = 0;
        for (;;) {
            seed = seed * 1664525 + 1013904223;
            nanosleep(&(struct timespec){.tv_nsec = seed % longest_ns}, NULL);
            assert_int_equal(ws_device_preempt(f->device[device], op), 0);
            wait_op(f, op);
            ok(op);
            if (!op->preempted)
                break;
            n_stops++;
            if (f->n_ops > 50) /* let it come to an end */
                seed = 3;
            struct ws_op *rest = op_new(f, 0, MIX, BLOCKS, THREADS, A, 0, 0, 0);
            rest->launch.progress = op->launch.progress;
            device = (int)(seed >> 20 & 1);
            ws_device_submit(f->device[device], rest);
            if (f->n_ops > 50)
                wait_op(f, rest);
            op = rest;
        }
        copy(f, 0, 0, NULL, v, A, N * 4);
        const uint32_t *from = (const uint32_t *)f->a;
        for (uint32_t i = 0; i < N; i++)
            if (v[i] != mixed(from[i], i / THREADS))
                fail_msg("round %u: v[%u] = %x", round, i, v[i]);
    }
    assert_true(n_stops >= 20);
}

/* Of a launch of several clients that goes on, a part that had ended in an earlier piece does not
 * begin again. */
static void test_ended_part_stays_ended(void **state)
{
    struct fixture *f = *state;
    enum { THREADS = 64, BLOCKS = N / THREADS };
    struct ws_launch_parts *p = ws_alloc(sizeof(*p) + 2 * sizeof(p->part[0]));
    uint32_t *v = (uint32_t *)f->c, ran[2] = {0}, tries = 0;
    struct ws_op *op;
    do { /* until some is left */
        assert_true(++tries < 50);
        f->n_ops = f->n_done = 0;
        copy(f, 0, A, f->a, NULL, 0, N * 4);
        p->n = p->round = 2;
        for (int k = 0; k < 2; k++)
            p->part[k] = (struct ws_launch_part){.space = f->space[0],
                                                 .share = 1,
                                                 .kernel = "mix",
                                                 .grid = {BLOCKS / 2, 1, 1},
                                                 .block = {THREADS, 1, 1}};
        op = op_new(f, 0, MIX, BLOCKS, THREADS, A, 0, 0, 0);
        op->launch.parts = p;
        ws_device_submit(f->device[0], op);
        assert_int_equal(ws_device_preempt(f->device[0], op), 0);
        wait_op(f, op);
        ok(op);
    } while (!op->preempted);
    p->part[1].error = WS_DEV_E_TRAP;
    strcpy(p->part[1].text, "trapped before");
    struct ws_op *rest = op_new(f, 0, MIX, BLOCKS, THREADS, A, 0, 0, 0);
    rest->launch.progress = op->launch.progress;
    rest->launch.parts = p;
    ws_device_submit(f->device[0], rest);
    wait_op(f, rest);
    ok(rest);
    assert_int_equal(p->part[0].error, WS_DEV_OK);
    assert_int_equal(p->part[1].error, WS_DEV_E_TRAP);
    assert_string_equal(p->part[1].text, "trapped before");
    copy(f, 0, 0, NULL, v, A, N * 4);
    const uint32_t *from = (const uint32_t *)f->a;
    for (uint32_t i = 0; i < N; i++)
        ran[i / THREADS % 2] += v[i] == mixed(from[i], i / THREADS);
    assert_int_equal(ran[0], N / 2);
    assert_true(ran[1] < N / 2);
    free(p);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_vecadd, setup, teardown),
        cmocka_unit_test_setup_teardown(test_both_gpus_and_both_clients_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fewer_sms_take_longer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_instances_have_their_own_variables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_initialisers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_launch_waits_for_another_client_s_copy_or_launch,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_blocks_of_a_grid_wait_for_each_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_waiting_with_fences_gives_turns_away, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cooperative_grid_barrier, setup, teardown),
        cmocka_unit_test_setup_teardown(test_endless_kernel_is_stopped_and_hurts_nobody,
                                        setup_limit, teardown),
        cmocka_unit_test_setup_teardown(test_faults_are_isolated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_box_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel_in_the_middle, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unmapping_under_a_running_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_work, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_work, setup_scaled, teardown),
        cmocka_unit_test_setup_teardown(test_preempted_at_random, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ended_part_stays_ended, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ended_part_stays_ended, setup_scaled, teardown),
        cmocka_unit_test_setup_teardown(test_preempted_at_random, setup_scaled, teardown),
        cmocka_unit_test_setup_teardown(test_energy_of_operations_is_the_device_s, setup, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
