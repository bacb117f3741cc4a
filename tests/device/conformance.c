// SPDX-License-Identifier: Apache-2.0
/* One suite for everything that implements device/device.h. It runs against the software GPU,
 * against the CUDA device on the mock driver, and on hardware (tests/gpu/run). It fails if a device
 * does not keep a promise of device.h. References are computed in plain C. Nothing here depends on
 * how long anything takes.
 *
 * Usage: conformance soft | cuda [DRIVER [NVML]] | cuda-tickets [DRIVER [NVML]] | cuda-unfenced
 * [DRIVER [NVML]]. With cuda-tickets launches can be preempted; cuda-unfenced runs without
 * isolation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/launch_check.h"
#include "base/packet.h"
#include "device/cuda/driver.h"
#include "device/space.h"
#include "tests/device/suite.h"
#include "tests/device/lib.h"

static struct suite S;
/* The driver is made to forget work that goes on, so that nobody can wait for it before what it
 * uses is released. */
static bool work_is_forgotten;

static int setup(void **state)
{
    return suite_begin(&S);
}
static int teardown(void **state)
{
    suite_end(&S);
    if (work_is_forgotten)
        return 0;
    uint32_t (*violations)(const char **) = NULL;
    void *p = suite_mock("ws_mock_violations");
    memcpy(&violations, &p, sizeof(p));
    const char *first = "";
    if (violations && violations(&first))
        fail_msg("the driver was used wrongly: %s", first);
    return 0;
}

static uint32_t random_state = 12345;
static uint32_t random_u32(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 4;
}
static uint8_t *random_bytes(size_t n)
{
    uint8_t *p = malloc(n);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(random_u32() >> 8);
    return p;
}

/* ---- memory ---- */

static void check_filled(int c, uint64_t va, uint64_t bytes, uint8_t with)
{
    uint8_t *p = malloc(bytes);
    assert_non_null(p);
    memset(p, with + 1, bytes);
    suite_get(&S, c, p, va, bytes);
    for (uint64_t i = 0; i < bytes; i++)
        if (p[i] != with)
            fail_msg("byte %llu of %llu is %u, not %u", (unsigned long long)i,
                     (unsigned long long)bytes, p[i], with);
    free(p);
}

static void fill(int c, uint64_t va, uint64_t bytes, uint8_t with)
{
    struct suite_op o = {
        .op = {.kind = WS_OPK_FILL,
               .space = S.space[c],
               .fill = {
                   .va = va, .width_bytes = bytes, .height = 1, .value = with, .value_bytes = 1}}};
    suite_run(&S, &o, WS_DEV_OK);
}

static void test_memory_is_zero_each_time(void **state)
{
    static const uint64_t sizes[] = {512, 4096, 65536, (1 << 20) + 512, 2 << 20, (5 << 20) + 1024};
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        uint64_t va = SUITE_VA(0) + (UINT64_C(1) << 32);
        for (int round = 0; round < 3; round++) {
            assert_int_equal(ws_device_mem_alloc(S.device, S.space[0], va, sizes[k]), 0);
            check_filled(0, va, sizes[k], 0);
            fill(0, va, sizes[k], 0xa5);
            check_filled(0, va, sizes[k], 0xa5);
            assert_int_equal(ws_space_unmap(S.space[0], va), 0);
        }
    }
}

static void test_many_small_allocations(void **state)
{
    enum { N = 300 };
    uint64_t va[N];
    for (int i = 0; i < N; i++) {
        uint32_t v[128];
        va[i] = suite_alloc(&S, i % 2, 512);
        for (int k = 0; k < 128; k++)
            v[k] = (uint32_t)(i * 1000 + k);
        suite_put(&S, i % 2, va[i], v, sizeof(v));
    }
    for (int i = 0; i < N; i += 3)
        assert_int_equal(ws_space_unmap(S.space[i % 2], va[i]), 0);
    for (int i = 0; i < N; i++) {
        uint32_t v[128];
        if (i % 3 == 0)
            continue;
        suite_get(&S, i % 2, v, va[i], sizeof(v));
        for (int k = 0; k < 128; k++)
            assert_int_equal(v[k], i * 1000 + k);
    }
}

static void test_memory_that_is_refused(void **state)
{
    uint64_t va = suite_alloc(&S, 0, 4096);
    struct ws_memory *m;
    assert_int_equal(ws_device_mem_alloc(S.device, S.space[0], va, 512), -EEXIST);
    assert_int_equal(ws_device_mem_alloc(S.device, S.space[0], va + 512, 512), -EEXIST);
    assert_int_equal(ws_device_mem_alloc(S.device, S.space[0], va + 8192 + 1, 512), -EINVAL);
    assert_int_equal(ws_device_mem_alloc(S.device, S.space[0], va + 8192, 100), -EINVAL);
    assert_int_equal(ws_device_mem_alloc(S.device, S.space[0], 0, 512), -EINVAL);
    assert_int_equal(ws_device_memory_new(S.device, 0, &m), -EINVAL);
    assert_int_equal(ws_device_memory_new(S.device, S.device->spec.memory_bytes + 512, &m),
                     WS_DEV_E_NO_MEMORY);
    assert_int_equal(ws_space_unmap(S.space[0], va + 512), -ENOENT);
    check_filled(0, va, 4096, 0);
}

/* All of it, piece by piece; freed, it is there again. */
static void test_memory_runs_out(void **state)
{
    enum { N = 64 };
    struct ws_memory *m[N];
    uint64_t bytes = S.device->spec.memory_bytes / N / 4 >> 21 << 21;
    for (int round = 0; round < 2; round++) {
        int n = 0, r = 0;
        uint64_t big = S.device->spec.memory_bytes / 2 >> 21 << 21;
        while (n < N && !(r = ws_device_memory_new(S.device, n < 1 ? big : bytes * 4, &m[n])))
            n++;
        assert_int_equal(r, WS_DEV_E_NO_MEMORY);
        assert_true(n > 1);
        while (n)
            ws_memory_unref(m[--n]);
    }
}

/* What small memory gave back is there for large memory. */
static void test_small_memory_given_back(void **state)
{
    enum { N = 48, MAX = 256 };
    static struct ws_memory *m[MAX];
    uint64_t va[N], mib = UINT64_C(1) << 20, sum = 0;
    for (int k = 0; k < N; k++) {
        va[k] = WS_ALIGN_UP(S.next_va[0], 2 * mib);
        assert_int_equal(ws_device_mem_alloc(S.device, S.space[0], va[k], 512), 0);
        S.next_va[0] = va[k] + 65536;
    }
    for (int k = 0; k < N; k++)
        assert_int_equal(ws_space_unmap(S.space[0], va[k]), 0);
    uint64_t limit = S.device->spec.memory_bytes, each = WS_ALIGN_UP(limit / 200, 2 * mib);
    int n = 0;
    while (n < MAX && !ws_device_memory_new(S.device, each, &m[n]))
        n++;
    sum = (uint64_t)n * each;
    while (n)
        ws_memory_unref(m[--n]);
    if (suite_target.mock || !suite_target.cuda)
        assert_true(sum + 64 * mib >= limit);
}

static void test_memory_keeps_its_content_between_mappings(void **state)
{
    enum { BYTES = 4 << 20 };
    struct ws_memory *m;
    uint8_t *p = random_bytes(BYTES), *q = malloc(BYTES);
    uint64_t a = SUITE_VA(0) + (UINT64_C(2) << 32), b = SUITE_VA(1) + (UINT64_C(2) << 32);
    assert_int_equal(ws_device_memory_new(S.device, BYTES, &m), 0);
    assert_int_equal(ws_space_map_memory(S.space[0], a, BYTES, m, 0, WS_ACCESS_ALL, WS_ACCESS_ALL),
                     0);
    suite_put(&S, 0, a, p, BYTES);
    /* at a second place, in another client */
    assert_int_equal(ws_space_map_memory(S.space[1], b, BYTES, m, 0, WS_ACCESS_ALL, WS_ACCESS_ALL),
                     0);
    suite_get(&S, 1, q, b, BYTES);
    assert_memory_equal(p, q, BYTES);
    fill(1, b + 100, 50, 7);
    suite_get(&S, 0, q, a, BYTES);
    memset(p + 100, 7, 50);
    assert_memory_equal(p, q, BYTES);
    assert_int_equal(ws_space_unmap(S.space[0], a), 0);
    assert_int_equal(ws_space_unmap(S.space[1], b), 0);
    assert_int_equal(ws_space_map_memory(S.space[0], a, BYTES, m, 0, WS_ACCESS_ALL, WS_ACCESS_ALL),
                     0);
    ws_memory_unref(m);
    suite_get(&S, 0, q, a, BYTES);
    assert_memory_equal(p, q, BYTES);
    assert_int_equal(ws_space_unmap(S.space[0], a), 0);
    free(p);
    free(q);
}

/* Small memory at a second place: the same memory, or an error; never another. */
static void test_small_memory_at_a_second_place(void **state)
{
    struct ws_memory *m;
    uint64_t a = SUITE_VA(0) + (UINT64_C(2) << 32), b = SUITE_VA(1) + (UINT64_C(2) << 32);
    assert_int_equal(ws_device_memory_new(S.device, 4096, &m), 0);
    assert_int_equal(ws_space_map_memory(S.space[0], a, 4096, m, 0, WS_ACCESS_ALL, WS_ACCESS_ALL),
                     0);
    fill(0, a, 4096, 9);
    if (!ws_space_map_memory(S.space[1], b, 4096, m, 0, WS_ACCESS_ALL, WS_ACCESS_ALL)) {
        check_filled(1, b, 4096, 9);
        assert_int_equal(ws_space_unmap(S.space[1], b), 0);
    } else {
        assert_true(suite_target.cuda);
    }
    check_filled(0, a, 4096, 9);
    assert_int_equal(ws_space_unmap(S.space[0], a), 0);
    ws_memory_unref(m);
}

/* Memory of the client's own, shared as the daemon shares it, and used by a kernel at the client's
 * address. */
static void test_mapped_host_memory(void **state)
{
    enum { BYTES = 8192, N = BYTES / 4 };
    int fd = ws_packet_memfd("suite", BYTES);
    assert_true(fd >= 0);
    float *host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    uint64_t at = SUITE_HOST_VA, c = suite_alloc(&S, 0, BYTES);
    assert_ptr_not_equal(host, MAP_FAILED);
    for (int i = 0; i < N; i++)
        host[i] = (float)i;
    ws_device_host_register(S.device, host, BYTES, fd);
    assert_int_equal(ws_space_map_host(S.space[0], at, BYTES, host), 0);
    struct suite_op o = suite_launch(&S, 0, K_VECADD, N / 256, 256, at, at, c, N);
    suite_run(&S, &o, WS_DEV_OK);
    float out[N];
    suite_get(&S, 0, out, c, sizeof(out));
    for (int i = 0; i < N; i++)
        assert_true(out[i] == (float)(2 * i));
    /* copies to and from it, by its address */
    struct suite_op back = {.op = {.kind = WS_OPK_COPY,
                                   .space = S.space[0],
                                   .copy = {.src_va = c, .dst_va = at, .bytes = BYTES}}};
    suite_run(&S, &back, WS_DEV_OK);
    assert_memory_equal(host, out, BYTES);
    fill(0, at + 4, 8, 0);
    assert_true(host[1] == 0 && host[2] == 0 && host[3] == 6);
    assert_int_equal(ws_space_unmap(S.space[0], at), 0);
    ws_device_host_unregister(S.device, host, BYTES);
    munmap(host, BYTES);
    close(fd);
}

static int setup_other_addresses(void **state)
{
    setenv("WS_MOCK_NO_HOST_POINTERS", "1", 1);
    int r = suite_begin(&S);
    unsetenv("WS_MOCK_NO_HOST_POINTERS");
    return r;
}

/* A GPU that sees the host's memory at other addresses than programs do: it is said, not tried. */
static void test_no_mapped_host_memory(void **state)
{
    enum { BYTES = 8192 };
    if (!suite_target.mock)
        skip();
    int fd = ws_packet_memfd("suite", BYTES);
    assert_true(fd >= 0);
    void *host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(host, MAP_FAILED);
    ws_device_host_register(S.device, host, BYTES, fd);
    assert_int_equal(ws_space_map_host(S.space[0], SUITE_HOST_VA, BYTES, host), -ENOTSUP);
    ws_device_host_unregister(S.device, host, BYTES);
    munmap(host, BYTES);
    close(fd);
}

/* ---- copies ---- */

/* A copy that needs the driver's staging goes by while code is being compiled. */
static void test_copies_pass_compilers(void **state)
{
    void (*hold)(bool) = NULL;
    void *p = suite_mock("ws_mock_hold_modules");
    struct ws_dinstance *fresh;
    enum { BYTES = 300000 };
    memcpy(&hold, &p, sizeof(p));
    if (!hold || suite_target.options.preemptible) /* then all forms are compiled ahead */
        skip();
    uint64_t a = suite_alloc(&S, 0, BYTES), where = suite_alloc(&S, 0, 4096);
    uint8_t *from = random_bytes(BYTES), *to = calloc(1, BYTES);
    assert_int_equal(ws_device_instance_borrow(S.device, S.module, S.space[0], S.vars[0], &fresh),
                     0);
    struct suite_op o = suite_launch(&S, 0, K_SMID, 4, 32, where, where + 2048, 0, 0);
    o.op.launch.instance = fresh;
    ws_sm_set_add(&o.op.launch.sms, 1); /* in a form that nobody has asked for yet */
    hold(true);
    suite_submit(&S, &o);
    suite_put(&S, 0, a, from, BYTES);
    suite_get(&S, 0, to, a, BYTES);
    assert_memory_equal(from, to, BYTES);
    assert_false(o.done);
    hold(false);
    suite_wait(&o);
    assert_int_equal(o.op.error, WS_DEV_OK);
    ws_device_instance_free(S.device, fresh);
    free(from);
    free(to);
}

static void test_copies_of_all_sizes(void **state)
{
    static const uint32_t sizes[] = {1, 2, 3, 7, 64, 511, 4096, 65535, 65536, 65537, 1000003};
    enum { BYTES = 1 << 20 };
    uint64_t a = suite_alloc(&S, 0, BYTES), b = suite_alloc(&S, 0, BYTES);
    uint8_t *p = random_bytes(BYTES), *q = malloc(BYTES), *ref = calloc(1, BYTES);
    uint8_t *ref_b = calloc(1, BYTES);
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        uint32_t n = sizes[k], at = random_u32() % (BYTES - n + 1),
                 to = random_u32() % (BYTES - n + 1);
        suite_put(&S, 0, a + at, p + to, n);
        memcpy(ref + at, p + to, n);
        struct suite_op o = {.op = {.kind = WS_OPK_COPY,
                                    .space = S.space[0],
                                    .copy = {.src_va = a + at, .dst_va = b + to, .bytes = n}}};
        suite_run(&S, &o, WS_DEV_OK);
        memcpy(ref_b + to, ref + at, n);
        suite_get(&S, 0, q, b, BYTES);
        assert_memory_equal(q, ref_b, BYTES);
    }
    suite_get(&S, 0, q, a, BYTES);
    assert_memory_equal(q, ref, BYTES);
    free(p);
    free(q);
    free(ref);
    free(ref_b);
}

struct box {
    uint64_t width, height, depth, row, slice; /* row, slice: the device's pitches */
    uint64_t host_row, host_slice;
};

static void box_in_and_out(const struct box *b)
{
    enum { BYTES = 1 << 18 };
    uint64_t va = suite_alloc(&S, 0, BYTES), va2 = suite_alloc(&S, 0, BYTES);
    uint8_t *p = random_bytes(BYTES), *ref = calloc(1, BYTES), *q = malloc(BYTES);
    struct suite_op in = {.op = {.kind = WS_OPK_COPY,
                                 .space = S.space[0],
                                 .copy = {.dst_va = va + 3,
                                          .src_host = p,
                                          .bytes = b->width,
                                          .height = b->height,
                                          .depth = b->depth,
                                          .dst = {b->row, b->slice},
                                          .src = {b->host_row, b->host_slice}}}};
    suite_run(&S, &in, WS_DEV_OK);
    for (uint64_t z = 0; z < b->depth; z++)
        for (uint64_t y = 0; y < b->height; y++)
            memcpy(ref + 3 + z * b->slice + y * b->row, p + z * b->host_slice + y * b->host_row,
                   b->width);
    suite_get(&S, 0, q, va, BYTES);
    assert_memory_equal(q, ref, BYTES);
    /* from device to device with the pitches exchanged, and out again */
    struct suite_op across = {.op = {.kind = WS_OPK_COPY,
                                     .space = S.space[0],
                                     .copy = {.dst_va = va2,
                                              .src_va = va + 3,
                                              .bytes = b->width,
                                              .height = b->height,
                                              .depth = b->depth,
                                              .dst = {b->host_row, b->host_slice},
                                              .src = {b->row, b->slice}}}};
    suite_run(&S, &across, WS_DEV_OK);
    memset(q, 0, BYTES);
    struct suite_op out = {.op = {.kind = WS_OPK_COPY,
                                  .space = S.space[0],
                                  .copy = {.src_va = va2,
                                           .dst_host = q,
                                           .bytes = b->width,
                                           .height = b->height,
                                           .depth = b->depth,
                                           .dst = {b->row, b->slice},
                                           .src = {b->host_row, b->host_slice}}}};
    suite_run(&S, &out, WS_DEV_OK);
    assert_memory_equal(q, ref + 3, BYTES - 3 - (BYTES > 3));
    free(p);
    free(ref);
    free(q);
}

static void test_boxes(void **state)
{
    static const struct box boxes[] = {
        {100, 7, 1, 128, 0, 100, 0},
        {1, 50, 1, 33, 0, 1, 0},
        {64, 5, 4, 80, 400, 64, 320},
        {64, 5, 4, 80, 555, 70, 351}, /* slices that are no whole rows */
        {17, 1, 9, 17, 100, 17, 17},
        {300, 30, 3, 512, 512 * 40, 301, 301 * 31},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(boxes); k++)
        box_in_and_out(&boxes[k]);
}

static void expect(struct ws_op op, enum ws_dev_error e)
{
    struct suite_op o = {.op = op};
    o.op.space = S.space[0];
    suite_run(&S, &o, e);
}

static void test_copies_that_are_refused(void **state)
{
    uint8_t host[4096] = {0};
    uint64_t a = suite_alloc(&S, 0, 4096);
#define COPY(...) ((struct ws_op){.kind = WS_OPK_COPY, .copy = {__VA_ARGS__}})
    expect(COPY(.dst_va = a, .src_host = host, .bytes = 0), WS_DEV_OK);
    expect(COPY(.dst_va = a + 1, .src_host = host, .bytes = 4096), WS_DEV_E_INVALID_VALUE);
    expect(COPY(.dst_va = a - 1, .src_host = host, .bytes = 1), WS_DEV_E_INVALID_VALUE);
    expect(COPY(.dst_host = host, .src_va = SUITE_VA(5), .bytes = 1), WS_DEV_E_INVALID_VALUE);
    expect(COPY(.dst_host = host, .src_va = a, .bytes = UINT64_MAX), WS_DEV_E_INVALID_VALUE);
    expect(COPY(.dst_host = host, .src_va = a, .bytes = 16, .height = 4, .src = {8, 0},
                .dst = {16, 0}),
           WS_DEV_E_INVALID_VALUE);
    expect(COPY(.dst_host = host, .src_va = a, .bytes = 16, .height = UINT64_MAX, .src = {16, 0},
                .dst = {16, 0}),
           WS_DEV_E_INVALID_VALUE);
    /* another client's */
    expect(COPY(.dst_host = host, .src_va = S.vars[1][0], .bytes = 4), WS_DEV_E_INVALID_VALUE);
#undef COPY
#define FILL(...) ((struct ws_op){.kind = WS_OPK_FILL, .fill = {__VA_ARGS__}})
    expect(FILL(.va = a, .width_bytes = 4097, .height = 1, .value_bytes = 1),
           WS_DEV_E_INVALID_VALUE);
    expect(FILL(.va = a + 2, .width_bytes = 8, .height = 1, .value_bytes = 4),
           WS_DEV_E_INVALID_VALUE);
    expect(FILL(.va = a, .width_bytes = 8, .height = 1, .value_bytes = 3), WS_DEV_E_INVALID_VALUE);
    expect(FILL(.va = a, .width_bytes = 0, .height = 5, .value_bytes = 4), WS_DEV_OK);
#undef FILL
    check_filled(0, a, 4096, 0);
}

static void test_fills(void **state)
{
    enum { BYTES = 65536 };
    uint64_t a = suite_alloc(&S, 0, BYTES);
    uint8_t *ref = calloc(1, BYTES), *q = malloc(BYTES);
    for (int k = 0; k < 40; k++) {
        uint32_t unit = 1u << k % 3, value = random_u32() * 9, rows = 1 + k % 5;
        uint64_t width = (1 + random_u32() % 900) * unit,
                 pitch = width + unit * (random_u32() % 50);
        uint64_t at = random_u32() % 1000 * unit;
        struct suite_op o = {.op = {.kind = WS_OPK_FILL,
                                    .space = S.space[0],
                                    .fill = {.va = a + at,
                                             .width_bytes = width,
                                             .height = rows,
                                             .pitch_bytes = pitch,
                                             .value = value,
                                             .value_bytes = unit}}};
        suite_run(&S, &o, WS_DEV_OK);
        for (uint32_t y = 0; y < rows; y++)
            for (uint64_t x = 0; x < width; x += unit)
                memcpy(ref + at + y * pitch + x, &value, unit);
    }
    suite_get(&S, 0, q, a, BYTES);
    assert_memory_equal(q, ref, BYTES);
    free(ref);
    free(q);
}

/* ---- kernels ---- */

static void test_vecadd(void **state)
{
    enum { N = 100000, LESS = N - 77 };
    uint64_t a = suite_alloc(&S, 0, N * 4), b = suite_alloc(&S, 0, N * 4),
             c = suite_alloc(&S, 0, N * 4);
    float *p = malloc(N * 4), *q = malloc(N * 4), *sum = malloc(N * 4);
    for (int i = 0; i < N; i++) {
        p[i] = (float)(random_u32() % 100000) / 7;
        q[i] = (float)(random_u32() % 100000) / 3;
    }
    suite_put(&S, 0, a, p, N * 4);
    suite_put(&S, 0, b, q, N * 4);
    struct suite_op o = suite_launch(&S, 0, K_VECADD, (LESS + 255) / 256, 256, a, b, c, LESS);
    suite_run(&S, &o, WS_DEV_OK);
    suite_get(&S, 0, sum, c, N * 4);
    for (int i = 0; i < N; i++)
        assert_true(sum[i] == (i < LESS ? p[i] + q[i] : 0));
    free(p);
    free(q);
    free(sum);
}

static void test_variables_and_initial_values(void **state)
{
    uint64_t p = suite_alloc(&S, 0, 512);
    struct suite_op o = suite_launch(&S, 0, K_VARS, 1, 1, p, 0, 0, 0);
    suite_run(&S, &o, WS_DEV_OK);
    uint32_t v, sparse[100];
    suite_get(&S, 0, &v, p, 4);
    assert_int_equal(v, 20 * 3 * 2);
    suite_get(&S, 0, sparse, S.vars[0][5], sizeof(sparse));
    assert_int_equal(sparse[0], 7);
    for (int i = 1; i < 100; i++)
        assert_int_equal(sparse[i], 0);
    /* constant memory is the client's to write, between launches */
    uint32_t eleven = 11;
    suite_put(&S, 0, S.vars[0][4], &eleven, 4);
    suite_run(&S, &o, WS_DEV_OK);
    suite_get(&S, 0, &v, p, 4);
    assert_int_equal(v, 20 * 11 * 2);
}

static void test_clients_have_their_own_variables(void **state)
{
    struct suite_op o[] = {suite_launch(&S, 0, K_COUNT, 300, 96, 0, 0, 0, 0),
                           suite_launch(&S, 1, K_COUNT, 7, 32, 0, 0, 0, 0),
                           suite_launch(&S, 0, K_COUNT, 1, 1, 0, 0, 0, 0)};
    for (int k = 0; k < 3; k++)
        suite_submit(&S, &o[k]);
    for (int k = 0; k < 3; k++) {
        suite_wait(&o[k]);
        assert_int_equal(o[k].op.error, WS_DEV_OK);
    }
    uint32_t n[2];
    suite_get(&S, 0, &n[0], S.vars[0][0], 4);
    suite_get(&S, 1, &n[1], S.vars[1][0], 4);
    assert_int_equal(n[0], 300 * 96 + 1);
    assert_int_equal(n[1], 7 * 32);
}

static void check_ids(const uint32_t g[3], const uint32_t b[3], const struct ws_sm_set *sms)
{
    uint32_t per = b[0] * b[1] * b[2], n = g[0] * g[1] * g[2] * per;
    uint64_t p = suite_alloc(&S, 0, n * 4);
    uint32_t *out = malloc(n * 4);
    struct suite_op o = suite_launch(&S, 0, K_IDS, 1, 1, p, 0, 0, 0);
    memcpy(o.op.launch.grid, g, sizeof(o.op.launch.grid));
    memcpy(o.op.launch.block, b, sizeof(o.op.launch.block));
    if (sms)
        o.op.launch.sms = *sms;
    suite_run(&S, &o, WS_DEV_OK);
    suite_get(&S, 0, out, p, n * 4);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t block = i / per, thread = i % per;
        uint32_t want = block % g[0] | block / g[0] % g[1] << 8 | block / g[0] / g[1] << 16 |
                        thread / (b[0] * b[1]) << 24;
        if (out[i] != want)
            fail_msg("thread %u wrote %x, not %x", i, out[i], want);
    }
    free(out);
}

static void test_grids_of_three_dimensions(void **state)
{
    static const uint32_t g[][3] = {{1, 1, 1}, {7, 5, 3}, {1, 20, 11}, {33, 1, 2}},
                          b[][3] = {{1, 1, 1}, {4, 3, 2}, {32, 2, 4}, {5, 1, 7}};
    for (int k = 0; k < 4; k++)
        check_ids(g[k], b[k], NULL);
}

static void test_dynamic_shared_memory(void **state)
{
    enum { N = 1024 };
    uint32_t v[N], most = S.device->spec.shared_bytes_per_block_optin;
    uint64_t p = suite_alloc(&S, 0, sizeof(v));
    const uint32_t sizes[] = {N * 4, 40000, most};
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        for (int i = 0; i < N; i++)
            v[i] = (uint32_t)i;
        suite_put(&S, 0, p, v, sizeof(v));
        struct suite_op o = suite_launch(&S, 0, K_SHARED, 1, N, p, 0, 0, 0);
        o.op.launch.shared_bytes = sizes[k];
        suite_run(&S, &o, WS_DEV_OK);
        suite_get(&S, 0, v, p, sizeof(v));
        for (int i = 0; i < N; i++)
            assert_int_equal(v[i], N - 1 - i);
    }
    struct suite_op o = suite_launch(&S, 0, K_SHARED, 1, N, p, 0, 0, 0);
    o.op.launch.shared_bytes = most + 1;
    suite_run(&S, &o, WS_DEV_E_INVALID_VALUE);
}

/* What a launch may have of shared memory is allowed when its code is loaded: launches that allowed
 * what they need could take it from each other. */
static void test_shared_memory_is_allowed_once(void **state)
{
    enum { N = 256 };
    uint64_t (*calls)(const char *);
    void *f = suite_target.worker ? NULL : suite_mock("ws_mock_calls");
    memcpy(&calls, &f, sizeof(f));
    if (!f)
        skip();
    uint32_t most = S.device->spec.shared_bytes_per_block_optin;
    const uint32_t sizes[] = {most, 4096, most / 2, most};
    uint64_t p[SUITE_CLIENTS], before;
    for (unsigned c = 0; c < SUITE_CLIENTS; c++) { /* code is loaded beside launches, too */
        p[c] = suite_alloc(&S, c, N * 4);
        struct suite_op o = suite_launch(&S, c, K_SHARED, 1, N, p[c], 0, 0, 0);
        o.op.launch.shared_bytes = most;
        suite_run(&S, &o, WS_DEV_OK);
    }
    before = calls("cuFuncSetAttribute");
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        struct suite_op o = suite_launch(&S, 0, K_SHARED, 1, N, p[0], 0, 0, 0);
        o.op.launch.shared_bytes = sizes[k];
        suite_run(&S, &o, WS_DEV_OK);
    }
    assert_int_equal(calls("cuFuncSetAttribute"), before);
}

static void test_cooperative_grid(void **state)
{
    struct ws_occupancy fit;
    assert_int_equal(ws_device_occupancy(S.device, S.module, K_BARRIER, 1, 0, &fit), 0);
    uint32_t most = fit.blocks_per_sm * S.device->spec.n_sms;
    uint64_t p = suite_alloc(&S, 0, 512), q = suite_alloc(&S, 0, most * 4);
    struct suite_op o = suite_launch(&S, 0, K_BARRIER, most, 1, p, q, 0, 0);
    o.op.launch.flags = WS_LAUNCH_COOPERATIVE;
    suite_run(&S, &o, WS_DEV_OK);
    uint32_t *v = malloc(most * 4);
    suite_get(&S, 0, v, q, most * 4);
    for (uint32_t i = 0; i < most; i++)
        assert_int_equal(v[i], most);
    free(v);
    o.op.launch.grid[0] = most + 1;
    suite_run(&S, &o, WS_DEV_E_COOPERATIVE_TOO_LARGE);
}

/* Clusters reach the GPU, if it has any, also where other launches take their blocks by tickets. */
static void test_clusters(void **state)
{
    static const uint32_t sizes[] = {1, 2, 8, 16};
    bool has = S.device->spec.cc_major >= 9;
    /* Then the driver takes portable ones only, by which it is seen what reaches a worker's. */
    bool small = getenv("WS_MOCK_SMALL_CLUSTERS") != NULL;
    uint64_t p = suite_alloc(&S, 0, 64 * 4), (*blocks)(const char *);
    void *f = suite_target.worker ? NULL : suite_mock("ws_mock_cluster_blocks");
    memcpy(&blocks, &f, sizeof(f));
    for (size_t k = 0; k < WS_ARRAY_SIZE(sizes); k++) {
        struct suite_op o = suite_launch(&S, 0, K_IDS, 64, 1, p, 0, 0, 0);
        memcpy(o.op.launch.cluster, (uint32_t[]){sizes[k], 1, 1}, sizeof(o.op.launch.cluster));
        bool takes = has && (!small || sizes[k] <= WS_CLUSTER_PORTABLE_MAX);
        suite_run(&S, &o, takes || sizes[k] == 1 ? WS_DEV_OK : WS_DEV_E_INVALID_CLUSTER);
        if (takes && f)
            assert_int_equal(blocks(NULL), sizes[k]);
        o.op.launch.cluster[1] = 3; /* of which the grid is not made */
        suite_run(&S, &o, WS_DEV_E_INVALID_CLUSTER);
    }
}

static void test_launches_that_are_refused(void **state)
{
    struct suite_op o = suite_launch(&S, 0, K_COUNT, 1, 1, 0, 0, 0, 0);
    const struct ws_op good = o.op;
#define BAD(field, value, e)                                                                       \
    do {                                                                                           \
        o.op = good;                                                                               \
        o.op.launch.field = (value);                                                               \
        suite_run(&S, &o, (e));                                                                    \
    } while (0)
    BAD(kernel, _K_N, WS_DEV_E_INVALID_VALUE);
    BAD(grid[0], 0, WS_DEV_E_INVALID_CONFIGURATION);
    BAD(grid[1], 65536, WS_DEV_E_INVALID_CONFIGURATION);
    BAD(block[2], 0, WS_DEV_E_INVALID_CONFIGURATION);
    BAD(block[2], 65, WS_DEV_E_INVALID_CONFIGURATION);
    BAD(block[0], 1025, WS_DEV_E_INVALID_CONFIGURATION);
#undef BAD
    o = suite_launch(&S, 0, K_VECADD, 1, 1, 0, 0, 0, 0);
    o.op.launch.param_bytes = 27;
    suite_run(&S, &o, WS_DEV_E_INVALID_VALUE);
    o = suite_launch(&S, 0, K_COUNT, 1, 1, 0, 0, 0, 0);
    o.op.space = S.space[1];
    suite_run(&S, &o, WS_DEV_E_INVALID_VALUE);
    o = suite_launch(&S, 0, K_COUNT, 1, 1, 0, 0, 0, 0);
    if (S.device->spec.n_sms < WS_SM_MAX) {
        ws_sm_set_add(&o.op.launch.sms, S.device->spec.n_sms);
        suite_run(&S, &o, WS_DEV_E_INVALID_VALUE);
    }
    uint32_t n;
    suite_get(&S, 0, &n, S.vars[0][0], 4);
    assert_int_equal(n, 0);
}

static void check_sms(const struct ws_sm_set *set, uint32_t blocks)
{
    uint64_t where = suite_alloc(&S, 0, blocks * 4), times = suite_alloc(&S, 0, blocks * 4);
    uint32_t *v = malloc(blocks * 4);
    struct suite_op o = suite_launch(&S, 0, K_SMID, blocks, 64, where, times, 0, 0);
    o.op.launch.sms = *set;
    suite_run(&S, &o, WS_DEV_OK);
    suite_get(&S, 0, v, times, blocks * 4);
    for (uint32_t i = 0; i < blocks; i++)
        if (v[i] != 1)
            fail_msg("block %u of %u ran %u times", i, blocks, v[i]);
    suite_get(&S, 0, v, where, blocks * 4);
    for (uint32_t i = 0; i < blocks; i++)
        if (!ws_sm_set_has(set, v[i]))
            fail_msg("block %u ran on SM %u, which is not in the set", i, v[i]);
    free(v);
}

static void test_sm_sets(void **state)
{
    uint32_t n = S.device->spec.n_sms;
    for (uint32_t m = 1; m < n; m = m * 3 + 1) {
        struct ws_sm_set low = {0}, odd = {0};
        for (uint32_t i = 0; i < m; i++)
            ws_sm_set_add(&low, i);
        for (uint32_t i = 1; i < n; i += 2)
            ws_sm_set_add(&odd, i);
        check_sms(&low, 1);
        check_sms(&low, 1000);
        check_sms(&odd, 100);
    }
    struct ws_sm_set last = {0};
    ws_sm_set_add(&last, n - 1);
    check_sms(&last, 77);
    static const uint32_t g[3] = {9, 6, 4}, b[3] = {8, 2, 2};
    check_ids(g, b, &last);
}

/* A set of whole groups is held by a green context: the launch is made once, with no mask to be
 * copied and no counter to be read. */
static void test_sm_sets_of_whole_groups(void **state)
{
    static const unsigned group[4] = {0, 1, 4, 5}; /* the mock driver's */
    struct suite_op o = suite_launch(&S, 0, K_COUNT, 1000, 32, 0, 0, 0, 0);
    uint64_t (*calls)(const char *);
    void *p = suite_target.worker ? NULL : suite_mock("ws_mock_calls");
    memcpy(&calls, &p, sizeof(p));
    if (!p)
        skip();
    for (unsigned k = 0; k < 4; k++)
        ws_sm_set_add(&o.op.launch.sms, group[k]);
    for (int k = 0; k < 3; k++) {
        uint64_t launches = calls("cuLaunchKernelEx");
        suite_run(&S, &o, WS_DEV_OK);
        if (k) /* before the first one, its ranges are carried to the GPU */
            assert_int_equal(calls("cuLaunchKernelEx"), launches + 1);
    }
    check_sms(&o.op.launch.sms, 1000);
}

/* A kernel that isn't rewritten keeps to a set in as far as green contexts can: whole groups of
 * it. */
static void test_sm_sets_of_cooperative_launches(void **state)
{
    uint32_t n = S.device->spec.n_sms, v[4];
    static const unsigned group[2][4] = {{0, 1, 4, 5}, {2, 3, 6, 7}}; /* the mock driver's */
    uint64_t where = suite_alloc(&S, 0, 512), times = suite_alloc(&S, 0, 512);
    for (uint32_t round = 0; round < 6; round++) {
        struct ws_sm_set set = {0};
        for (unsigned k = 0; k < 4; k++)
            ws_sm_set_add(&set, round < 4 ? group[round % 2][k] : k);
        struct suite_op o = suite_launch(&S, 0, K_SMID, 4, 64, where, times, 0, 0);
        o.op.launch.flags = WS_LAUNCH_COOPERATIVE;
        o.op.launch.sms = set;
        suite_run(&S, &o, WS_DEV_OK);
        suite_get(&S, 0, v, times, sizeof(v));
        for (int k = 0; k < 4; k++)
            assert_int_equal(v[k], round + 1);
        suite_get(&S, 0, v, where, sizeof(v));
        bool exactly = !suite_target.cuda || (suite_target.mock && round < 4);
        for (int k = 0; k < 4; k++)
            assert_true(v[k] < n && (!exactly || ws_sm_set_has(&set, v[k])));
    }
    /* more blocks than the group has room for, not more than the GPU */
    struct ws_occupancy fit;
    assert_int_equal(ws_device_occupancy(S.device, S.module, K_BARRIER, 1, 0, &fit), 0);
    uint32_t most = fit.blocks_per_sm * n;
    uint64_t p = suite_alloc(&S, 0, 512), q = suite_alloc(&S, 0, most * 4);
    struct suite_op o = suite_launch(&S, 0, K_BARRIER, most, 1, p, q, 0, 0);
    o.op.launch.flags = WS_LAUNCH_COOPERATIVE;
    for (unsigned k = 0; suite_target.cuda && k < 4; k++)
        ws_sm_set_add(&o.op.launch.sms, group[0][k]);
    suite_run(&S, &o, WS_DEV_OK);
}

/* The stack that a client asks for is there before its next launch, and is asked for once. */
static void test_stack(void **state)
{
    uint64_t (*calls)(const char *);
    void *p = suite_target.worker ? NULL : suite_mock("ws_mock_calls");
    memcpy(&calls, &p, sizeof(p));
    if (!p)
        skip();
    struct suite_op o = suite_launch(&S, 0, K_COUNT, 1, 32, 0, 0, 0, 0);
    uint64_t before = calls("cuCtxSetLimit");
    suite_run(&S, &o, WS_DEV_OK);
    assert_int_equal(calls("cuCtxSetLimit"), before);
    ws_space_set_stack_bytes(S.space[0], 64 << 10);
    for (int k = 0; k < 2; k++) {
        suite_run(&S, &o, WS_DEV_OK);
        assert_int_equal(calls("cuCtxSetLimit"), before + 1);
    }
    ws_space_set_stack_bytes(S.space[0], 1 << 20); /* more than there is */
    suite_run(&S, &o, WS_DEV_E_INVALID_VALUE);
}

/* A driver that has calls and refuses them (values written in streams; events in streams of green
 * contexts; alignments of addresses) serves all the same; what it cannot do is said. */
static void test_a_driver_that_refuses(void **state)
{
    uint32_t v[4], said = 0;
    if (suite_target.worker || !suite_target.mock)
        skip();
    suite_end(&S);
    setenv("WS_MOCK_REFUSES", "all", 1);
    assert_int_equal(suite_begin(&S), 0);
    const struct ws_cuda_capabilities *c = ws_device_cuda_capabilities(S.device);
    for (uint32_t k = 0; k < c->n; k++)
        said += !c->v[k].yes && (!strcmp(c->v[k].name, "green contexts") ||
                                 !strcmp(c->v[k].name, "stop between blocks"));
    assert_int_equal(said, 2);
    uint64_t where = suite_alloc(&S, 0, 512), times = suite_alloc(&S, 0, 512);
    struct suite_op o = suite_launch(&S, 0, K_SMID, 4, 64, where, times, 0, 0);
    ws_sm_set_add(&o.op.launch.sms, 1);
    ws_sm_set_add(&o.op.launch.sms, 5);
    suite_run(&S, &o, WS_DEV_OK);
    suite_get(&S, 0, v, where, sizeof(v));
    for (int k = 0; k < 4; k++)
        assert_true(ws_sm_set_has(&o.op.launch.sms, v[k]));
    for (int k = 0; k < 3; k++) {
        struct suite_op n = suite_launch(&S, 1, K_COUNT, 10, 32, 0, 0, 0, 0);
        suite_submit(&S, &n);
        int r = suite_preempt(&S, &n);
        assert_true(r == -ENOTSUP || r == 1);
        suite_wait(&n);
        assert_true(!n.op.error && !n.op.preempted);
    }
    suite_get(&S, 1, v, S.vars[1][0], sizeof(*v));
    assert_int_equal(v[0], 3 * 10 * 32);
    unsetenv("WS_MOCK_REFUSES");
}

/* What the device itself runs on the GPU has code for every GPU that drivers of today have. */
static void test_an_older_gpu(void **state)
{
    struct ws_device *d;
    if (suite_target.worker || !suite_target.mock)
        skip();
    setenv("WS_MOCK_CC", "60", 1);
    int r = suite_open(&d, NULL);
    unsetenv("WS_MOCK_CC");
    assert_int_equal(r, 0);
    const struct ws_cuda_capabilities *c = ws_device_cuda_capabilities(d);
    for (uint32_t k = 0; k < c->n; k++)
        assert_true(c->v[k].yes || strcmp(c->v[k].name, "green contexts") != 0);
    assert_int_equal(d->spec.cc_major, 6);
    ws_device_close(d);
}

/* A process that has lost its context gets no other one from the driver. So where the context is
 * this process's, such tests are run before the others, by a process each. */
static const char *const losing[] = {"test_illegal_address", "test_misaligned_address",
                                     "test_a_driver_that_does_not_know"};
static int losing_status[WS_ARRAY_SIZE(losing)];

static bool run_elsewhere(void)
{
    return suite_target.cuda && !suite_target.worker && !getenv("WS_SUITE_ONLY");
}

static void run_losing(char **argv)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(losing); i++) {
        pid_t pid;
        setenv("WS_SUITE_ONLY", losing[i], 1);
        losing_status[i] = -1;
        if (!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ))
            waitpid(pid, &losing_status[i], 0);
    }
    unsetenv("WS_SUITE_ONLY");
}

/* The driver does not know what became of an operation: the GPU is lost, and says so. */
static void test_a_driver_that_does_not_know(void **state)
{
    int (*fail_call)(const char *, uint64_t, int);
    void *p = suite_target.worker ? NULL : suite_mock("ws_mock_fail");
    memcpy(&fail_call, &p, sizeof(p));
    if (!p)
        skip();
    if (run_elsewhere()) {
        assert_int_equal(losing_status[2], 0);
        return;
    }
    work_is_forgotten = true;
    struct suite_op o = suite_launch(&S, 0, K_COUNT, 1, 32, 0, 0, 0, 0);
    suite_run(&S, &o, WS_DEV_OK);
    fail_call("cuEventQuery", 1, 999 /* UNKNOWN */);
    suite_run(&S, &o, WS_DEV_E_LAUNCH_FAILURE);
    const char *lost = ws_device_cuda_lost(S.device);
    assert_non_null(lost);
    assert_non_null(strstr(lost, "UNKNOWN"));
}

/* A group of SMs of which the driver makes no context when the device is opened costs only that
 * group. */
static void test_a_green_context_that_fails(void **state)
{
    uint32_t v[4];
    static const unsigned second[4] = {2, 3, 6, 7}; /* the mock driver's group */
    int (*fail_call)(const char *, uint64_t, int);
    void *p = suite_target.worker ? NULL : suite_mock("ws_mock_fail");
    memcpy(&fail_call, &p, sizeof(p));
    if (!p)
        skip();
    suite_end(&S);
    fail_call("cuGreenCtxCreate", 1, 2 /* OUT_OF_MEMORY */);
    assert_int_equal(suite_begin(&S), 0);
    uint64_t where = suite_alloc(&S, 0, 512), times = suite_alloc(&S, 0, 512);
    struct suite_op o = suite_launch(&S, 0, K_SMID, 4, 64, where, times, 0, 0);
    o.op.launch.flags = WS_LAUNCH_COOPERATIVE;
    for (unsigned k = 0; k < 4; k++)
        ws_sm_set_add(&o.op.launch.sms, second[k]);
    suite_run(&S, &o, WS_DEV_OK);
    suite_get(&S, 0, v, where, sizeof(v));
    for (int k = 0; k < 4; k++)
        assert_true(ws_sm_set_has(&o.op.launch.sms, v[k]));
}

static void test_occupancy(void **state)
{
    struct ws_occupancy o;
    const struct ws_gpu_spec *s = &S.device->spec;
    assert_int_equal(ws_device_occupancy(S.device, S.module, K_COUNT, 32, 0, &o), 0);
    assert_true(o.blocks_per_sm >= 1 && o.blocks_per_sm <= s->max_blocks_per_sm);
    assert_int_equal(ws_device_occupancy(S.device, S.module, K_COUNT, 1024, 0, &o), 0);
    assert_true(o.blocks_per_sm >= 1 && o.blocks_per_sm <= s->max_threads_per_sm / 1024);
    assert_int_equal(ws_device_occupancy(S.device, S.module, K_SHARED, 32, 40000, &o), 0);
    assert_int_equal(o.blocks_per_sm, s->shared_bytes_per_sm / (40000 + 1024));
    assert_string_equal(o.limit, "shared");
    assert_int_equal(ws_device_occupancy(S.device, S.module, K_COUNT, 1025, 0, &o), 0);
    assert_int_equal(o.blocks_per_sm, 0);
    assert_int_equal(ws_device_occupancy(S.device, S.module, _K_N, 32, 0, &o), -EINVAL);
    assert_int_equal(ws_device_occupancy(S.device, S.module, K_COUNT, 0, 0, &o), -EINVAL);
}

static void test_module_info(void **state)
{
    const struct ws_dmodule_info *i = ws_dmodule_info(S.module);
    assert_int_equal(i->n_kernels, _K_N);
    assert_int_equal(i->n_vars, 7);
    assert_string_equal(i->kernels[K_VECADD].name, "vecadd");
    assert_int_equal(i->kernels[K_VECADD].n_params, 4);
    assert_int_equal(i->kernels[K_VECADD].param_bytes, 28);
    assert_int_equal(i->kernels[K_VECADD].params[3].param_offset, 24);
    for (uint32_t k = 0; k < i->n_kernels; k++) {
        assert_null(i->kernels[k].unsupported);
        assert_true(i->kernels[k].n_regs > 0 && i->kernels[k].n_regs <= 255);
    }
}

static void test_a_module_with_a_bad_kernel(void **state)
{
    static const char ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
                              ".extern .func nobody(.param .b32 x);\n"
                              ".visible .entry lost()\n{\n{\n.param .b32 a;\nst.param.b32 [a], 0;\n"
                              "call nobody, (a);\n}\nret;\n}\n"
                              ".visible .entry fine(.param .u64 p)\n{\n.reg .b64 %rd;\n"
                              "ld.param.u64 %rd, [p];\nst.global.u32 [%rd], 5;\nret;\n}\n";
    struct ws_ptx_module *m;
    struct ws_dmodule *code;
    struct ws_dinstance *inst;
    struct ws_diags diags = WS_DIAGS_NULL;
    assert_int_equal(ws_ptx_parse(&m, ptx, sizeof(ptx) - 1, "bad.ptx", NULL), 0);
    assert_int_equal(ws_device_module_load(S.device, m, &code, &diags), 0);
    const struct ws_dmodule_info *i = ws_dmodule_info(code);
    assert_int_equal(i->n_kernels, 2);
    assert_non_null(i->kernels[0].unsupported);
    assert_non_null(strstr(i->kernels[0].unsupported, "nobody"));
    assert_int_equal(i->kernels[0].unsupported_code, WS_PTX_E_NOTFOUND);
    assert_null(i->kernels[1].unsupported);
    assert_true(diags.n > 0);
    ws_diags_deinit(&diags);
    assert_int_equal(ws_device_instance_new(S.device, code, S.space[0], NULL, &inst), 0);
    uint64_t p = suite_alloc(&S, 0, 512);
    struct suite_op o = suite_launch(&S, 0, 0, 1, 1, p, 0, 0, 0);
    o.op.launch.instance = inst;
    suite_run(&S, &o, WS_DEV_E_INVALID_VALUE);
    o.op.launch.kernel = 1;
    suite_run(&S, &o, WS_DEV_OK);
    uint32_t v;
    suite_get(&S, 0, &v, p, 4);
    assert_int_equal(v, 5);
    ws_device_instance_free(S.device, inst);
    ws_device_module_unload(S.device, code);
    ws_ptx_module_free(m);
}

/* Code for a client's variables is compiled once, which takes a while. The daemon does not wait for
 * it when it makes an instance. */
static void test_code_is_compiled_off_the_loop(void **state)
{
    static const char ptx[] = ".version 7.5\n.target sm_75\n.address_size 64\n"
                              ".global .u32 n = 41;\n"
                              ".visible .entry up()\n{\n.reg .b32 %r<2>;\natom.global.add.u32 %r1, "
                              "[n], 1;\nret;\n}\n";
    uint64_t (*calls)(const char *) = NULL;
    void (*hold)(bool) = NULL;
    void *sym = suite_mock("ws_mock_calls"), *held = suite_mock("ws_mock_hold_modules");
    memcpy(&calls, &sym, sizeof(sym));
    memcpy(&hold, &held, sizeof(held));
    struct ws_ptx_module *m;
    struct ws_dmodule *code;
    struct ws_dinstance *inst;
    uint64_t vars[1] = {suite_alloc(&S, 0, 512)}, before = 0;
    assert_int_equal(ws_ptx_parse(&m, ptx, sizeof(ptx) - 1, "up.ptx", NULL), 0);
    assert_int_equal(ws_device_module_load(S.device, m, &code, NULL), 0);
    for (int c = 0; c < SUITE_CLIENTS; c++) { /* their own code is there */
        struct suite_op first = suite_launch(&S, c, K_COUNT, 1, 32, 0, 0, 0, 0);
        suite_run(&S, &first, WS_DEV_OK);
    }
    before = calls ? calls("cuModuleLoadDataEx") : 0;
    if (hold) /* whoever loads code now waits */
        hold(true);
    assert_int_equal(ws_device_instance_new(S.device, code, S.space[0], vars, &inst), 0);
    if (hold)
        hold(false);
    for (uint32_t k = 0; k < 3; k++) {
        struct suite_op o = suite_launch(&S, 0, 0, 1, 1, 0, 0, 0, 0);
        o.op.launch.instance = inst;
        suite_run(&S, &o, WS_DEV_OK);
        uint32_t v;
        suite_get(&S, 0, &v, vars[0], 4);
        assert_int_equal(v, 42 + k);
    }
    if (calls && !suite_target.options.preemptible)
        assert_int_equal(calls("cuModuleLoadDataEx"), before + 1);
    ws_device_instance_free(S.device, inst);
    ws_device_module_unload(S.device, code);
    ws_ptx_module_free(m);
}

/* ---- many at once ---- */

struct chain {
    struct suite_op o;
    int left;
    struct chain *self;
};
static void chain_next(struct ws_op *op)
{
    struct chain *c = op->owner;
    if (op->error || !--c->left)
        __atomic_store_n(&c->self, NULL, __ATOMIC_RELEASE);
    else
        ws_device_submit(S.device, op);
}

/* done submits the next, a thousand times, in several chains. */
static void test_operations_submitted_from_done(void **state)
{
    enum { N_CHAINS = 6, LENGTH = 300 };
    static struct chain c[N_CHAINS];
    for (int k = 0; k < N_CHAINS; k++) {
        c[k] = (struct chain){.o = suite_launch(&S, k % 2, K_COUNT, 2, 32, 0, 0, 0, 0),
                              .left = LENGTH};
        c[k].self = &c[k];
        c[k].o.op.owner = &c[k];
        c[k].o.op.done = chain_next;
        c[k].o.op.launch.params = c[k].o.params;
        ws_device_submit(S.device, &c[k].o.op);
    }
    for (int k = 0; k < N_CHAINS; k++)
        for (int i = 0; __atomic_load_n(&c[k].self, __ATOMIC_ACQUIRE); i++) {
            usleep(1000);
            assert_true(i < 60000);
        }
    uint32_t n;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(c[k].o.op.error, WS_DEV_OK);
        suite_get(&S, k, &n, S.vars[k][0], 4);
        assert_int_equal(n, N_CHAINS / 2 * LENGTH * 64);
    }
    struct ws_device_telemetry t;
    ws_device_telemetry(S.device, &t);
    assert_int_equal(t.n_running, 0);
}

/* More than there are streams; small copies among kernels. */
static void test_many_at_once(void **state)
{
    enum { N = 200 };
    static struct suite_op o[N];
    static uint32_t in[N], out[N];
    uint64_t p[2] = {suite_alloc(&S, 0, N * 4), suite_alloc(&S, 1, N * 4)};
    for (int k = 0; k < N; k++) {
        in[k] = random_u32();
        o[k] =
            k % 4 == 3
                ? suite_launch(&S, k % 2, K_COUNT, 1, 32, 0, 0, 0, 0)
                : (struct suite_op){
                      .op = {.kind = WS_OPK_COPY,
                             .space = S.space[k % 2],
                             .copy = {.dst_va = p[k % 2] + k * 4, .src_host = &in[k], .bytes = 4}}};
        suite_submit(&S, &o[k]);
    }
    for (int k = 0; k < N; k++) {
        suite_wait(&o[k]);
        assert_int_equal(o[k].op.error, WS_DEV_OK);
    }
    for (int c = 0; c < 2; c++) {
        suite_get(&S, c, out, p[c], N * 4);
        for (int k = c; k < N; k += 2)
            if (k % 4 != 3)
                assert_int_equal(out[k], in[k]);
    }
}

/* A kernel that waits for what another operation brings: both run at once. */
static void test_a_kernel_waits_for_a_copy(void **state)
{
    uint32_t one = 1;
    uint64_t p = suite_alloc(&S, 0, 512);
    struct suite_op o = suite_launch(&S, 0, K_WAIT, 2, 32, p, 0, 0, 0);
    suite_submit(&S, &o);
    suite_put(&S, 0, p, &one, 4);
    suite_wait(&o);
    assert_int_equal(o.op.error, WS_DEV_OK);
}

/* ---- cancelling; what the device says of itself ---- */

static void test_cancel(void **state)
{
    enum { N = 40 };
    static struct suite_op o[N];
    uint32_t one = 1;
    uint64_t p = suite_alloc(&S, 1, 512);
    for (int k = 0; k < N; k++) {
        o[k] = suite_launch(&S, 0, K_COUNT, 2000, 64, 0, 0, 0, 0);
        suite_submit(&S, &o[k]);
    }
    struct suite_op other = suite_launch(&S, 1, K_WAIT, 1, 1, p, 0, 0, 0);
    suite_submit(&S, &other);
    ws_device_cancel(S.device, S.space[0]);
    int n_cancelled = 0;
    for (int k = 0; k < N; k++) {
        suite_wait(&o[k]);
        n_cancelled += o[k].op.error == WS_DEV_E_CANCELLED;
        assert_true(!o[k].op.error || o[k].op.error == WS_DEV_E_CANCELLED);
    }
    assert_true(n_cancelled > 0);
    suite_put(&S, 1, p, &one, 4);
    suite_wait(&other);
    assert_int_equal(other.op.error, WS_DEV_OK);
    ws_device_cancel(S.device, S.space[0]);
    struct suite_op after = suite_launch(&S, 0, K_COUNT, 1, 1, 0, 0, 0, 0);
    suite_run(&S, &after, WS_DEV_OK);
}

/* Until it is through. Return: how often it was stopped. */
static int run_in_parts(struct suite_op *o)
{
    double part = 0;
    int n_stopped = 0;
    for (int round = 0;; round++, n_stopped++) {
        suite_submit(&S, o);
        if (round % 3)
            usleep(random_u32() % 300);
        if (round < 400) {
            int r = suite_preempt(&S, o);
            assert_true(!r || r == -ENOTSUP || r == 1);
        }
        suite_wait(o);
        assert_int_equal(o->op.error, WS_DEV_OK);
        if (!o->op.preempted)
            break;
        assert_non_null(o->op.launch.progress);
        assert_true(ws_progress_part(o->op.launch.progress) >= part);
        part = ws_progress_part(o->op.launch.progress);
        assert_true(part <= 1);
    }
    assert_null(o->op.launch.progress);
    return n_stopped;
}

/* Stopped between blocks as often as possible, and resumed: each block ran exactly once. */
/* A fenced kernel, or one that takes its blocks from a counter, needs more registers than its
 * program knows of: its blocks may be as large as before. */
static void test_large_blocks(void **state)
{
    struct ws_dmodule *m = NULL;
    struct ws_dinstance *i = NULL;
    uint64_t va = suite_alloc(&S, 0, 8192), vars[16] = {0};
    uint32_t n = 0;
    if (suite_target.worker || (suite_target.cuda && !suite_target.mock) ||
        (suite_target.options.unfenced && !suite_target.options.preemptible))
        skip();
    const char *usual = getenv("WS_MOCK_REGS");
    char *before = usual ? strdup(usual) : NULL;
    setenv("WS_MOCK_REGS", "68", 1);
    assert_int_equal(ws_device_module_load(S.device, S.ptx, &m, NULL), 0);
    for (uint32_t v = 0; v < ws_dmodule_info(m)->n_vars && v < 16; v++)
        vars[v] = S.vars[0][v] ? va + v * 512 : 0;
    assert_int_equal(ws_device_instance_new(S.device, m, S.space[0], vars, &i), 0);
    assert_int_equal(ws_dmodule_info(m)->kernels[K_COUNT].max_threads_per_block % 1024, 0);
    for (uint32_t threads = 1024; threads >= 64; threads /= 4) {
        struct suite_op o = suite_launch(&S, 0, K_COUNT, 3, threads, 0, 0, 0, 0);
        o.op.launch.instance = i;
        suite_run(&S, &o, WS_DEV_OK);
        n += 3 * threads;
    }
    uint32_t got = 0;
    suite_get(&S, 0, &got, vars[0], sizeof(got));
    unsetenv("WS_MOCK_REGS");
    if (before)
        setenv("WS_MOCK_REGS", before, 1);
    free(before);
    assert_int_equal(got, n);
    ws_device_instance_free(S.device, i);
    ws_device_module_unload(S.device, m);
}

static void test_preempt_and_resume(void **state)
{
    enum { BLOCKS = 10000 };
    if (!S.device->ops->preempt || (suite_target.cuda && !suite_target.options.preemptible))
        skip(); /* cuda-tickets has it */
    uint64_t where = suite_alloc(&S, 0, BLOCKS * 4), times = suite_alloc(&S, 0, BLOCKS * 4);
    uint32_t *v = malloc(BLOCKS * 4);
    struct suite_op o = suite_launch(&S, 0, K_SMID, BLOCKS, 64, where, times, 0, 0);
    int n_stopped = 0;
    uint32_t n = 0;
    while (n++ < 50 && !n_stopped)
        n_stopped = run_in_parts(&o);
    n--;
    assert_true(n_stopped > 0);
    suite_get(&S, 0, v, times, BLOCKS * 4);
    for (int i = 0; i < BLOCKS; i++)
        if (v[i] != n)
            fail_msg("block %d ran %u times, not %u; stopped %d times", i, v[i], n, n_stopped);
    free(v);
}

struct ringing {
    struct ws_alarm a;
    bool rung;
};
static void on_ring(struct ws_alarm *a)
{
    __atomic_store_n(&WS_CONTAINER_OF(a, struct ringing, a)->rung, true, __ATOMIC_RELEASE);
}

static void test_alarms(void **state)
{
    struct ringing r[3];
    if (!S.device->ops->alarm)
        skip();
    uint64_t now = ws_device_now_ns(S.device);
    for (int k = 0; k < 3; k++) {
        r[k] = (struct ringing){{.at_ns = k ? now + (uint64_t)k * 20000000 : 0, .ring = on_ring},
                                false};
        assert_int_equal(ws_device_alarm(S.device, &r[k].a), 0);
    }
    for (int k = 0; k < 3; k++) {
        for (int i = 0; !__atomic_load_n(&r[k].rung, __ATOMIC_ACQUIRE); i++) {
            usleep(1000);
            assert_true(i < 60000);
        }
        assert_true(ws_device_now_ns(S.device) >= r[k].a.at_ns);
    }
}

static void test_telemetry(void **state)
{
    struct ws_device_telemetry before, now;
    uint64_t energy_uj = 0, used;
    ws_device_telemetry(S.device, &before);
    used = before.memory_used_bytes;
    const struct ws_device_telemetry first = before;
    uint64_t p = suite_alloc(&S, 0, 3 << 20);
    for (int k = 0; k < 60; k++) {
        struct suite_op o = suite_launch(&S, 0, K_COUNT, 500, 128, 0, 0, 0, 0);
        suite_run(&S, &o, WS_DEV_OK);
        energy_uj += o.op.energy_uj;
        ws_device_telemetry(S.device, &now);
        assert_true(now.now_ns >= before.now_ns && now.now_ns >= o.op.end_ns);
        assert_true(now.energy_uj >= before.energy_uj && now.busy_ns >= before.busy_ns);
        assert_true(now.sm_busy_ns >= before.sm_busy_ns);
        before = now;
    }
    assert_true(now.busy_ns > first.busy_ns && now.sm_busy_ns > first.sm_busy_ns);
    assert_int_equal(now.n_kernels - first.n_kernels, 60);
    assert_int_equal(now.memory_used_bytes - used, 3 << 20);
    fill(0, p, 3 << 20, 1);
    uint8_t byte = 3;
    suite_put(&S, 0, p, &byte, 1);
    ws_device_telemetry(S.device, &now);
    assert_int_equal(now.copied_bytes - first.copied_bytes, 1);
    /* What operations were given is never more than the device has taken since it was opened. In a
     * shorter time it may be more: an operation may be given what was taken before it. */
    ws_device_telemetry(S.device, &now);
    assert_true(energy_uj <= now.energy_uj + 1);
    assert_true(ws_device_now_ns(S.device) >= now.now_ns);
    /* NVML's counter steps, that of a software GPU is up to date */
    assert_int_equal(S.device->meter_update_ns, S.device->ops->real ? 100 * WS_NS_PER_MS : 0);
}

static void test_machine_code(void **state)
{
    suite_machine_code(&S);
}

/* ---- isolation ---- */

enum { MINE = 600, FLOATS = 1000 };

/* Client 0 accesses memory outside of its own. It alone is told so; client 1, which runs
 * meanwhile, continues with all that it had. */
static void goes_outside(struct suite_op *o, uint64_t theirs)
{
    uint32_t one = 1;
    uint64_t gate = suite_alloc(&S, 1, 512);
    struct suite_op other = suite_launch(&S, 1, K_WAIT, 1, 32, gate, 0, 0, 0);
    suite_submit(&S, &other);
    suite_run(&S, o, WS_DEV_E_ILLEGAL_ADDRESS);
    suite_put(&S, 1, gate, &one, 4);
    suite_wait(&other);
    assert_int_equal(other.op.error, WS_DEV_OK);
    check_filled(1, theirs, FLOATS * 4, 0x5a);
    assert_null(suite_target.cuda ? ws_device_cuda_lost(S.device) : NULL);
}

static void test_isolation(void **state)
{
    if (suite_target.options.unfenced)
        skip(); /* that is what isolation is for */
    /* Code that a launch needs first is loaded now: later the driver may wait until the other
     * client's kernel has ended, which waits for us. */
    for (int sms = 0; sms < 2; sms++) {
        struct suite_op first = suite_launch(&S, 0, K_COUNT, 1, 32, 0, 0, 0, 0);
        if (sms)
            ws_sm_set_add(&first.op.launch.sms, 1);
        suite_run(&S, &first, WS_DEV_OK);
    }
    uint64_t theirs = suite_alloc(&S, 1, FLOATS * 4), mine[MINE], n = FLOATS;
    fill(1, theirs, FLOATS * 4, 0x5a);
    for (int k = 0; k < MINE; k++) /* that don't adjoin: many ranges */
        mine[k] = suite_alloc(&S, 0, FLOATS * 4);
    for (int k = 0; k < 4; k++)
        fill(0, mine[k * 100], FLOATS * 4, 1);
    struct ws_sm_set some = {0};
    ws_sm_set_add(&some, 1);
    ws_sm_set_add(&some, 3);
    for (int sms = 0; sms < 2; sms++) {
        struct suite_op bad[] = {
            suite_launch(&S, 0, K_VECADD, 4, 256, mine[0], mine[100], theirs, n),    /* writes */
            suite_launch(&S, 0, K_VECADD, 4, 256, theirs, mine[100], mine[599], n),  /* reads */
            suite_launch(&S, 0, K_VECADD, 4, 256, mine[0], mine[1] + 512, mine[599], /* its end */
                         n - 100),
            suite_launch(&S, 0, K_VECADD, 1, 32, 0, mine[100], mine[599], 32),
            suite_launch(&S, 0, K_SMID, 40, 32, theirs, theirs + 2000, 0, 0), /* atomics */
            suite_launch(&S, 0, K_READ, 1, 1, mine[0] - 4, 0, 0, 0),
        };
        for (size_t k = 0; k < WS_ARRAY_SIZE(bad); k++) {
            if (sms)
                bad[k].op.launch.sms = some;
            goes_outside(&bad[k], theirs);
        }
        /* to the byte: all of its own it may use, the last of 600 ranges too */
        struct suite_op good =
            suite_launch(&S, 0, K_VECADD, 4, 256, mine[200], mine[300], mine[599], n);
        if (sms)
            good.op.launch.sms = some;
        suite_run(&S, &good, WS_DEV_OK);
        uint32_t v[FLOATS];
        suite_get(&S, 0, v, mine[599], sizeof(v));
        for (int k = 0; k < FLOATS; k++)
            assert_int_equal(v[k], 0x01810101); /* as a float, twice 0x01010101 */
        fill(0, mine[599], FLOATS * 4, 0);
    }
    /* what it had and gave back */
    assert_int_equal(ws_space_unmap(S.space[0], mine[599]), 0);
    struct suite_op late = suite_launch(&S, 0, K_READ, 1, 1, mine[599], 0, 0, 0);
    goes_outside(&late, theirs);
    /* and has anew */
    assert_int_equal(ws_device_mem_alloc(S.device, S.space[0], mine[599], 4096), 0);
    suite_run(&S, &late, WS_DEV_OK);
}

/* Constant memory is global memory on the CUDA device: who reads it through a pointer is looked at
 * as well. And what can't be checked is refused, by name. */
static void test_isolation_of_other_accesses(void **state)
{
    static const char ptx[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".const .align 4 .u32 c[4] = {4, 5, 6, 7};\n"
        ".visible .entry constant(.param .u64 p, .param .u64 q)\n{\n.reg .b64 %rd<4>; .reg .b32 "
        "%r;\nld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u64 %rd3, c;\n"
        "add.s64 %rd1, %rd1, %rd3;\nld.const.u32 %r, [%rd1+4];\nst.global.u32 [%rd2], "
        "%r;\nret;\n}\n"
        ".visible .entry discards(.param .u64 p)\n{\n.reg .b64 %rd;\nld.param.u64 %rd, [p];\n"
        "discard.global.L2 [%rd], 128;\nret;\n}\n";
    struct ws_ptx_module *m;
    struct ws_dmodule *code;
    struct ws_dinstance *inst;
    if (suite_target.options.unfenced)
        skip();
    uint64_t vars[1] = {suite_alloc(&S, 0, 512)}, q = suite_alloc(&S, 0, 512);
    uint64_t theirs = suite_alloc(&S, 1, FLOATS * 4);
    fill(1, theirs, FLOATS * 4, 0x5a);
    assert_int_equal(ws_ptx_parse(&m, ptx, sizeof(ptx) - 1, "other.ptx", NULL), 0);
    assert_int_equal(ws_device_module_load(S.device, m, &code, NULL), 0);
    assert_int_equal(ws_device_instance_new(S.device, code, S.space[0], vars, &inst), 0);
    const struct ws_dmodule_info *i = ws_dmodule_info(code);
    assert_null(i->kernels[0].unsupported);
    struct suite_op o = suite_launch(&S, 0, 0, 1, 1, 0, q, 0, 0);
    o.op.launch.instance = inst;
    suite_run(&S, &o, WS_DEV_OK);
    uint32_t v;
    suite_get(&S, 0, &v, q, 4);
    assert_int_equal(v, 5);
    o.params[0] = theirs - vars[0];
    goes_outside(&o, theirs);
    suite_get(&S, 0, &v, q, 4);
    assert_int_equal(v, 5);
    if (suite_target.cuda) {
        assert_non_null(i->kernels[1].unsupported);
        assert_non_null(strstr(i->kernels[1].unsupported, "isolation"));
        o = suite_launch(&S, 0, 1, 1, 1, q, 0, 0, 0);
        o.op.launch.instance = inst;
        suite_run(&S, &o, WS_DEV_E_INVALID_VALUE);
        assert_non_null(strstr(o.op.text, "discard"));
    }
    ws_device_instance_free(S.device, inst);
    ws_device_module_unload(S.device, code);
    ws_ptx_module_free(m);
}

/* A grid that synchronises has a page of the driver's, at the address in %envreg1 and 2: it may use
 * that, and through it nothing else. */
static void test_isolation_and_the_grids_own_page(void **state)
{
#define PAGE_ADDRESS                                                                               \
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %envreg2; cvt.u64.u32 %rd3, "    \
    "%r1; "                                                                                        \
    "mov.u32 %r2, %envreg1; cvt.u64.u32 %rd4, %r2; bfi.b64 %rd5, %rd4, %rd3, 32, 32;\n"
    static const char ptx[] =
        ".version 7.5\n.target sm_75\n.address_size 64\n"
        ".visible .entry own(.param .u64 p, .param .u64 q)\n{\n.reg .b64 %rd<8>; .reg .b32 "
        "%r<4>;\n" PAGE_ADDRESS "add.s64 %rd6, %rd5, 4;\nld.global.u32 %r3, [%rd6];\n"
        "ld.volatile.global.u32 %r3, [%rd5+4];\nst.global.u32 [%rd1], 7;\nret;\n}\n"
        ".visible .entry beyond(.param .u64 p, .param .u64 q)\n{\n.reg .b64 %rd<8>; .reg .b32 "
        "%r<4>;\n" PAGE_ADDRESS "add.s64 %rd6, %rd5, %rd2;\nld.global.u32 %r3, "
        "[%rd6];\nst.global.u32 [%rd1], 8;\nret;\n}\n";
    struct ws_ptx_module *m;
    struct ws_dmodule *code;
    struct ws_dinstance *inst;
    uint32_t v = 0;
    uint64_t p = suite_alloc(&S, 0, 512);
    assert_int_equal(ws_ptx_parse(&m, ptx, sizeof(ptx) - 1, "page.ptx", NULL), 0);
    assert_int_equal(ws_device_module_load(S.device, m, &code, NULL), 0);
    assert_int_equal(ws_device_instance_new(S.device, code, S.space[0], NULL, &inst), 0);
    for (uint32_t k = 0; k < 2; k++) {
        struct suite_op o = suite_launch(&S, 0, 0, 2, 32, p, 4, 0, 0);
        o.op.launch.instance = inst;
        o.op.launch.kernel = k;
        o.op.launch.flags = WS_LAUNCH_COOPERATIVE;
        bool outside = k && suite_target.cuda && !suite_target.options.unfenced;
        suite_run(&S, &o, outside ? WS_DEV_E_ILLEGAL_ADDRESS : WS_DEV_OK);
        suite_get(&S, 0, &v, p, 4);
        assert_int_equal(v, outside ? 7 : 7 + k);
    }
    assert_null(suite_target.cuda ? ws_device_cuda_lost(S.device) : NULL);
    ws_device_instance_free(S.device, inst);
    ws_device_module_unload(S.device, code);
    ws_ptx_module_free(m);
}

/* ---- faults: each on a device of its own, since a context may be lost ---- */

static void faults(enum suite_kernel k, uint64_t p0, enum ws_dev_error want)
{
    struct suite_op o = suite_launch(&S, 0, k, 1, 32, p0, 0, 0, 0);
    suite_run(&S, &o, want);
    struct suite_op other = suite_launch(&S, 1, K_COUNT, 1, 32, 0, 0, 0, 0);
    suite_submit(&S, &other);
    suite_wait(&other);
    if (!suite_target.cuda || suite_target.worker || want == WS_DEV_E_TRAP ||
        (want == WS_DEV_E_ILLEGAL_ADDRESS && !suite_target.options.unfenced)) {
        assert_int_equal(other.op.error, WS_DEV_OK);
        return;
    }
    /* one context for all: its loss is told to the others, and who is to blame to whoever asks */
    assert_int_equal(other.op.error, WS_DEV_E_LAUNCH_FAILURE);
    const char *lost = ws_device_cuda_lost(S.device);
    assert_non_null(lost);
    assert_non_null(strstr(lost, ws_dmodule_info(S.module)->kernels[k].name));
    uint64_t va = S.next_va[0];
    assert_int_not_equal(ws_device_mem_alloc(S.device, S.space[0], va, 512), 0);
}

static void test_illegal_address(void **state)
{
    if (run_elsewhere())
        assert_int_equal(losing_status[0], 0);
    else
        faults(K_READ, SUITE_VA(9), WS_DEV_E_ILLEGAL_ADDRESS);
}
static void test_misaligned_address(void **state)
{
    if (run_elsewhere())
        assert_int_equal(losing_status[1], 0);
    else
        faults(K_READ, suite_alloc(&S, 0, 512) + 2, WS_DEV_E_MISALIGNED);
}
static void test_trap(void **state)
{
    faults(K_TRAP, 0, WS_DEV_E_TRAP);
}

/* ---- printf, assert, trap, malloc: lib.c ---- */
static void test_formats(void **state)
{
    suite_lib_formats(&S);
}
static void test_any_format(void **state)
{
    suite_lib_any_format(&S);
}
static void test_many_prints(void **state)
{
    suite_lib_many_prints(&S);
}
static void test_assert(void **state)
{
    suite_lib_assert(&S);
}
static void test_trap_in_a_function(void **state)
{
    suite_lib_trap(&S);
}
static void test_parts_of_a_launch(void **state)
{
    if (suite_target.worker) /* which refuses them */
        skip();
    suite_lib_parts(&S);
}
static void test_heap(void **state)
{
    suite_lib_heap(&S);
}
static void test_giving_back(void **state)
{
    suite_lib_free(&S);
}

static void test_textures(void **state)
{
    suite_textures(&S);
}

static void test_textures_are_isolated(void **state)
{
    if (suite_target.options.unfenced)
        skip();
    suite_textures_isolated(&S);
}

/* Each test opens the device. On hardware a context takes a good part of a second to make, so this
 * process keeps the GPU's from the first test to the last. The mock driver wants it back each time.
 * */
static struct ws_cu kept;
static void keep_context(void)
{
    ws_cu_device gpu;
    ws_cu_ctx ctx;
    if (!suite_target.cuda || suite_target.worker || suite_target.mock)
        return;
    if (ws_cu_open(&kept, suite_target.options.driver_library, NULL) ||
        kept.cuDeviceGet(&gpu, suite_target.ordinal) != WS_CU_SUCCESS ||
        kept.cuDevicePrimaryCtxRetain(&ctx, gpu) != WS_CU_SUCCESS)
        fprintf(stderr, "no context is kept between tests\n");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        T(test_memory_is_zero_each_time),
        T(test_many_small_allocations),
        T(test_memory_that_is_refused),
        T(test_memory_runs_out),
        T(test_memory_keeps_its_content_between_mappings),
        T(test_small_memory_at_a_second_place),
        T(test_small_memory_given_back),
        T(test_mapped_host_memory),
        cmocka_unit_test_setup_teardown(test_no_mapped_host_memory, setup_other_addresses,
                                        teardown),
        T(test_copies_pass_compilers),
        T(test_copies_of_all_sizes),
        T(test_boxes),
        T(test_copies_that_are_refused),
        T(test_fills),
        T(test_vecadd),
        T(test_variables_and_initial_values),
        T(test_clients_have_their_own_variables),
        T(test_grids_of_three_dimensions),
        T(test_dynamic_shared_memory),
        T(test_shared_memory_is_allowed_once),
        T(test_cooperative_grid),
        T(test_clusters),
        T(test_launches_that_are_refused),
        T(test_sm_sets),
        T(test_sm_sets_of_whole_groups),
        T(test_sm_sets_of_cooperative_launches),
        T(test_a_green_context_that_fails),
        T(test_stack),
        T(test_a_driver_that_refuses),
        cmocka_unit_test(test_an_older_gpu),
        T(test_a_driver_that_does_not_know),
        T(test_occupancy),
        T(test_module_info),
        T(test_a_module_with_a_bad_kernel),
        T(test_code_is_compiled_off_the_loop),
        T(test_operations_submitted_from_done),
        T(test_many_at_once),
        T(test_a_kernel_waits_for_a_copy),
        T(test_cancel),
        T(test_large_blocks),
        T(test_preempt_and_resume),
        T(test_alarms),
        T(test_telemetry),
        T(test_machine_code),
        T(test_isolation),
        T(test_isolation_of_other_accesses),
        T(test_isolation_and_the_grids_own_page),
        T(test_textures),
        T(test_textures_are_isolated),
        T(test_trap),
        T(test_formats),
        T(test_any_format),
        T(test_many_prints),
        T(test_assert),
        T(test_trap_in_a_function),
        T(test_parts_of_a_launch),
        T(test_heap),
        T(test_giving_back),
        T(test_illegal_address), /* in processes of their own: contexts may be lost */
        T(test_misaligned_address),
    };
    if (!suite_target_parse(argc, argv)) {
        fprintf(stderr, "usage: conformance soft | cuda | cuda-tickets | cuda-unfenced | worker "
                        "[DRIVER [NVML]]\n");
        return 2;
    }
    if (getenv("WS_SUITE_ONLY"))
        cmocka_set_test_filter(getenv("WS_SUITE_ONLY"));
    if (run_elsewhere())
        run_losing(argv);
    keep_context();
    if (!suite_machine_code_begin())
        return 1;
    int r = cmocka_run_group_tests_name(suite_target.cuda ? "cuda" : "soft", tests, NULL, NULL);
    suite_machine_code_end();
    return r;
}
