// SPDX-License-Identifier: Apache-2.0
/* Tests two devices of one kind and one client's space: copies and fills of each other's memory,
 * kernels that may or may not reach it, and memory that moves from one to the other at its address.
 * It fails if a byte is wrong or if a kernel reaches what it may not.
 *
 * Usage: pair KIND [DRIVER NVML], as tests/device/conformance; a driver needs two GPUs. Exit status
 * 77: it has one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "tests/device/suite.h"

#define MIB (UINT64_C(1) << 20)
enum { BYTES = 300000, ALLOC = 300032 + 512 };

/* The second one sees the first one's spaces, module and client. */
static struct suite A, B;
static uint64_t a, b; /* memory of each */
static uint8_t pattern[BYTES], got[BYTES];

static void set_pattern(unsigned seed)
{
    for (unsigned i = 0; i < BYTES; i++)
        pattern[i] = (uint8_t)(i * 7 + (i >> 8) * 13 + seed);
}

static void expect(struct suite *by, uint64_t va, uint64_t bytes)
{
    memset(got, 0, sizeof(got));
    suite_get(by, 0, got, va, bytes);
    assert_memory_equal(got, pattern, bytes);
}

static void copy(struct suite *by, uint64_t to, uint64_t from, uint64_t bytes)
{
    struct suite_op o = {.op = {.kind = WS_OPK_COPY,
                                .space = A.space[0],
                                .copy = {.dst_va = to, .src_va = from, .bytes = bytes}}};
    suite_run(by, &o, WS_DEV_OK);
}

static void test_copies_between(void **state)
{
    struct suite *by[] = {&A, &B};
    for (unsigned k = 0; k < 4; k++) {
        uint64_t to = k & 1 ? a : b, from = k & 1 ? b : a;
        set_pattern(k);
        suite_put(k & 1 ? &B : &A, 0, from, pattern, BYTES);
        copy(by[k >> 1], to, from, BYTES);
        expect(k & 1 ? &A : &B, to, BYTES);
    }
}

/* By the device whose memory it is not. */
static void test_copies_by_the_other(void **state)
{
    static const uint64_t sizes[] = {1, 4096, 65537, BYTES};
    for (unsigned k = 0; k < 4; k++) {
        set_pattern(10 + k);
        suite_put(&A, 0, b, pattern, sizes[k]);
        expect(&B, b, sizes[k]);
        expect(&A, b, sizes[k]);
    }
    ws_device_host_register(A.device, pattern, BYTES, -1);
    set_pattern(20);
    suite_put(&A, 0, b + 256, pattern, BYTES);
    expect(&B, b + 256, BYTES);
    ws_device_host_unregister(A.device, pattern, BYTES);
    /* rows */
    struct suite_op o = {.op = {.kind = WS_OPK_COPY,
                                .space = A.space[0],
                                .copy = {.dst_va = b,
                                         .src_va = a,
                                         .bytes = 100,
                                         .height = 9,
                                         .dst = {.row = 128},
                                         .src = {.row = 512}}}};
    suite_put(&A, 0, a, pattern, BYTES);
    suite_run(&A, &o, WS_DEV_OK);
    suite_get(&B, 0, got, b, 9 * 128);
    for (unsigned y = 0; y < 9; y++)
        assert_memory_equal(got + (size_t)y * 128, pattern + (size_t)y * 512, 100);
    o.op.copy.src_host = pattern + 64;
    suite_run(&A, &o, WS_DEV_OK);
    suite_get(&B, 0, got, b, 9 * 128);
    for (unsigned y = 0; y < 9; y++)
        assert_memory_equal(got + (size_t)y * 128, pattern + 64 + (size_t)y * 512, 100);
}

static void test_fills_by_the_other(void **state)
{
    for (unsigned unit = 1; unit <= 4; unit *= 2) {
        struct suite_op o = {.op = {.kind = WS_OPK_FILL,
                                    .space = A.space[0],
                                    .fill = {.va = b,
                                             .width_bytes = 400,
                                             .height = 3,
                                             .pitch_bytes = 1024,
                                             .value = 0x01020304,
                                             .value_bytes = unit}}};
        set_pattern(30 + unit);
        suite_put(&B, 0, b, pattern, BYTES);
        suite_run(&A, &o, WS_DEV_OK);
        for (unsigned y = 0; y < 3; y++)
            for (unsigned x = 0; x < 400; x++)
                pattern[y * 1024 + x] = (uint8_t)(0x01020304 >> x % unit * 8);
        expect(&B, b, BYTES);
    }
}

static void vecadd(enum ws_dev_error e)
{
    enum { N = 1000 };
    float in[N], out[N];
    for (int i = 0; i < N; i++)
        in[i] = (float)i * 0.5f;
    suite_put(&A, 0, a, in, sizeof(in));
    struct suite_op o = suite_launch(&B, 0, K_VECADD, 8, 128, a, a, b, N);
    suite_run(&B, &o, e);
    if (e)
        return;
    suite_get(&B, 0, out, b, sizeof(out));
    for (int i = 0; i < N; i++)
        assert_true(out[i] == (float)i);
}

/* Kernels of B that use A's memory: if they may, and if they can. */
static void test_kernels_reach(void **state)
{
    uint32_t bits = 1u << A.device->index | 1u << B.device->index;
    assert_int_equal(ws_device_peers(A.device) & 1, 1);
    bool can = ws_device_peers(A.device) >> B.device->index & 1;
    assert_int_equal(can, !getenv("WS_MOCK_NO_PEERS"));
    vecadd(can ? WS_DEV_OK : WS_DEV_E_ILLEGAL_ADDRESS);
    assert_int_equal(ws_space_set_access(A.space[0], a, 1, 1), 0);
    if (!suite_target.options.unfenced)
        vecadd(WS_DEV_E_ILLEGAL_ADDRESS);
    assert_int_equal(ws_space_set_access(A.space[0], a, bits, bits), 0);
    vecadd(can ? WS_DEV_OK : WS_DEV_E_ILLEGAL_ADDRESS);
}

/* Memory goes from A to B: the same addresses, the contents by a second place of the old. */
static void test_memory_changes_device(void **state)
{
    enum { N = 3 };
    static const uint64_t at[N] = {65536, 131072, 4 << 20}, bytes[N] = {4096, 5120, 300032};
    uint64_t base = SUITE_VA(0) + 64 * MIB, twin = SUITE_VA(1) + 64 * MIB;
    struct ws_memory *old[N], *fresh[N];
    set_pattern(50);
    for (int k = 0; k < N; k++) {
        uint64_t granule, offset;
        assert_int_equal(ws_device_memory_new(A.device, bytes[k], &old[k]), 0);
        assert_int_equal(ws_space_map_memory(A.space[0], base + at[k], bytes[k], old[k], 0, 1, 1),
                         0);
        suite_put(&A, 0, base + at[k], pattern + k, bytes[k] - 512);
        ws_memory_place(old[k], &granule, &offset);
        assert_int_equal((twin + at[k] - offset) % granule, 0);
        assert_int_equal(ws_space_map_memory(A.space[0], twin + at[k], bytes[k], old[k], 0, 1, 1),
                         0);
        assert_int_equal(ws_device_memory_new(B.device, bytes[k], &fresh[k]), 0);
    }
    for (int k = 0; k < N; k++)
        assert_int_equal(ws_space_unmap(A.space[0], base + at[k]), 0);
    for (int k = 0; k < N; k++) {
        assert_int_equal(ws_space_map_memory(A.space[0], base + at[k], bytes[k], fresh[k], 0, 2, 2),
                         0);
        copy(&B, base + at[k], twin + at[k], bytes[k]);
        assert_int_equal(ws_space_unmap(A.space[0], twin + at[k]), 0);
        ws_memory_unref(old[k]);
        ws_memory_unref(fresh[k]);
    }
    for (int k = 0; k < N; k++) {
        struct suite_op o = suite_launch(&B, 0, K_READ, 1, 1, base + at[k], 0, 0, 0);
        suite_run(&B, &o, WS_DEV_OK);
        suite_get(&B, 0, got, base + at[k], bytes[k] - 512);
        assert_memory_equal(got, pattern + k, bytes[k] - 512);
        assert_int_equal(ws_space_unmap(A.space[0], base + at[k]), 0);
    }
}

/* B's memory is unmapped while a kernel of A runs, and so goes when that ends, on a thread of A's;
 * which then continues with A's work. */
static void test_memory_goes_by_the_other(void **state)
{
    uint64_t va = SUITE_VA(0) + 128 * MIB;
    uint32_t no = 0, yes = 1;
    assert_int_equal(ws_device_mem_alloc(B.device, A.space[0], va, ALLOC), 0);
    suite_put(&A, 0, a, &no, sizeof(no));
    struct suite_op waits = suite_launch(&A, 0, K_WAIT, 1, 1, a, 0, 0, 0);
    suite_submit(&A, &waits);
    assert_int_equal(ws_space_unmap(A.space[0], va), 0);
    suite_put(&A, 0, a, &yes, sizeof(yes));
    suite_wait(&waits);
    assert_int_equal(waits.op.error, WS_DEV_OK);
    set_pattern(60);
    suite_put(&A, 0, a, pattern, BYTES);
    expect(&A, a, BYTES);
}

static int setup(void **state)
{
    struct ws_diags diags = WS_DIAGS_NULL;
    int r = suite_begin(&A);
    if (r)
        return r;
    B = A;
    r = suite_open_second(&B.device, &diags);
    ws_diags_deinit(&diags);
    if (r)
        return r;
    /* each allocation alone in its granules */
    a = SUITE_VA(0) + 16 * MIB;
    b = SUITE_VA(0) + 32 * MIB;
    return ws_device_mem_alloc(A.device, A.space[0], a, ALLOC) ||
           ws_device_mem_alloc(B.device, A.space[0], b, ALLOC) ||
           ws_device_instance_borrow(B.device, A.module, A.space[0], A.vars[0], &B.instance[0]);
}

static int teardown(void **state)
{
    ws_device_instance_free(B.device, B.instance[0]);
    if (ws_space_unmap(A.space[0], b))
        return 1;
    ws_device_close(B.device);
    suite_end(&A);
    uint32_t (*violations)(const char **) = NULL;
    void *p = suite_mock("ws_mock_violations");
    memcpy(&violations, &p, sizeof(p));
    return violations && violations(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_between),
        cmocka_unit_test(test_copies_by_the_other),
        cmocka_unit_test(test_fills_by_the_other),
        cmocka_unit_test(test_kernels_reach),
        cmocka_unit_test(test_memory_changes_device),
        cmocka_unit_test(test_memory_goes_by_the_other),
    };
    if (!suite_target_parse(argc, argv)) {
        fprintf(stderr, "usage: pair KIND [DRIVER NVML]\n");
        return 2;
    }
    if (suite_target.cuda && ws_cuda_count(&suite_target.options, NULL) < 2) {
        fprintf(stderr, "there is one GPU\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
