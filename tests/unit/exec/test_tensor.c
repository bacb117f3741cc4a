// SPDX-License-Identifier: Apache-2.0
/* Copies of boxes of tensors: what stands where in shared memory, at the edges of the tensor, and
 * with each swizzle; maps in parameters, and maps that kernels write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/texture.h"
#include "tests/unit/exec/fixture.h"

enum { SHARED = 16384, TENSOR = 1 << 16 };

/* k(map, out, at0 … at4): s is shared memory, b an mbarrier, %m the map, %o out, %c0 … the
 * coordinates. */
#define KERNEL(body)                                                                               \
    ".version 8.6\n.target sm_90a\n.address_size 64\n"                                             \
    ".visible .entry k(.param .u64 map, .param .u64 out, .param .b32 a0, .param .b32 a1,\n"        \
    ".param .b32 a2, .param .b32 a3, .param .b32 a4)\n{\n"                                         \
    ".reg .pred %q<4>; .reg .b32 %r<16>, %c<5>; .reg .b64 %x<16>, %m, %o; .reg .f32 %f<2>;\n"      \
    ".shared .align 1024 .b8 s[16384]; .shared .align 8 .b64 b;\n"                                 \
    "ld.param.u64 %m, [map]; ld.param.u64 %o, [out]; ld.param.b32 %c0, [a0];\n"                    \
    "ld.param.b32 %c1, [a1]; ld.param.b32 %c2, [a2]; ld.param.b32 %c3, [a3];\n"                    \
    "ld.param.b32 %c4, [a4]; mov.u32 %r0, s; mov.u32 %r1, b;\n" body "\nret;\n}\n"
/* Shared memory is 0x55, then the box is loaded, then all of it goes out. */
#define LOAD(dims, at)                                                                             \
    KERNEL("mov.u32 %r2, 0; FILL: add.u32 %r3, %r0, %r2; mov.u32 %r4, 0x55555555;\n"               \
           "st.shared.u32 [%r3], %r4; add.u32 %r2, %r2, 4; setp.lt.u32 %q0, %r2, 16384;\n"         \
           "@%q0 bra FILL;\n"                                                                      \
           "mbarrier.init.shared::cta.b64 [%r1], 1; ld.global.u32 %r5, [%o];\n"                    \
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r5;\n"                            \
           "cp.async.bulk.tensor." dims                                                            \
           ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r0], [%m, {" at            \
           "}], [%r1];\n"                                                                          \
           "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %q1, [%r1], 0; @!%q1 bra WAIT;\n"       \
           "cp.async.bulk.global.shared::cta.bulk_group [%o], [%r0], 16384;\n"                     \
           "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;")

static const char *const loads[] = {LOAD("1d", "%c0"), LOAD("2d", "%c0, %c1"),
                                    LOAD("3d", "%c0, %c1, %c2"), LOAD("4d", "%c0, %c1, %c2, %c3"),
                                    LOAD("5d", "%c0, %c1, %c2, %c3, %c4")};

struct params {
    uint64_t map, out;
    int32_t at[5];
};

static const struct row {
    const char *what;
    unsigned rank, type, swizzle;
    uint64_t dims[5];
    uint32_t box[5], step[5];
    int32_t at[5];
    bool nan;
} rows[] = {
    {"a line", 1, WS_TENSOR_U8, 0, {1000}, {64}, {1}, {32}, false},
    {"a line's end", 1, WS_TENSOR_U16, 0, {100}, {64}, {1}, {90}, false},
    {"before the line", 1, WS_TENSOR_F32, 0, {100}, {16}, {1}, {-5}, true},
    {"inside", 2, WS_TENSOR_U32, 0, {64, 40}, {16, 8}, {1, 1}, {8, 3}, false},
    {"over all edges", 2, WS_TENSOR_F16, 0, {20, 10}, {32, 16}, {1, 1}, {-4, -3}, true},
    {"beside it", 2, WS_TENSOR_F64, 0, {20, 10}, {4, 4}, {1, 1}, {20, 2}, false},
    {"32 bytes",
     2,
     WS_TENSOR_U8,
     WS_TENSOR_SWIZZLE_32,
     {256, 64},
     {32, 40},
     {1, 1},
     {16, 5},
     false},
    {"64 bytes",
     2,
     WS_TENSOR_U16,
     WS_TENSOR_SWIZZLE_64,
     {256, 64},
     {32, 40},
     {1, 1},
     {16, 5},
     false},
    {"128 bytes",
     2,
     WS_TENSOR_F32,
     WS_TENSOR_SWIZZLE_128,
     {64, 64},
     {32, 40},
     {1, 1},
     {9, 50},
     false},
    {"a narrow row",
     2,
     WS_TENSOR_F16,
     WS_TENSOR_SWIZZLE_128,
     {64, 64},
     {32, 9},
     {1, 1},
     {3, 2},
     false},
    {"steps", 3, WS_TENSOR_U32, 0, {32, 16, 12}, {8, 8, 6}, {3, 2, 4}, {2, 1, 3}, false},
    {"four", 4, WS_TENSOR_S32, 0, {12, 6, 5, 4}, {4, 3, 2, 2}, {1, 1, 1, 1}, {1, 4, -1, 3}, false},
    {"five",
     5,
     WS_TENSOR_BF16,
     0,
     {8, 4, 3, 3, 2},
     {8, 2, 2, 2, 2},
     {1, 1, 1, 1, 1},
     {0, 1, 2, 0, 1},
     true},
};

/* Rows of global memory have gaps. */
static struct ws_tensor_map map_of(const struct row *r, uint64_t address)
{
    struct ws_tensor_map m = {.address = address,
                              .magic = WS_TENSOR_MAGIC,
                              .type = (uint8_t)r->type,
                              .rank = (uint8_t)r->rank,
                              .swizzle = (uint8_t)r->swizzle,
                              .nan = r->nan};
    uint64_t stride = (r->dims[0] * ws_tensor_element_bytes(r->type) + 31) / 16 * 16;
    for (unsigned i = 0; i < r->rank; i++) {
        m.last[i] = (uint32_t)r->dims[i] - 1;
        m.box[i] = r->box[i];
        m.step[i] = (uint8_t)r->step[i];
        if (i) {
            m.stride[i - 1] = stride;
            stride *= r->dims[i];
        }
    }
    return m;
}

/* One element: where it is in the tensor (-1: outside) and in shared memory. */
struct place {
    int64_t global;
    uint32_t shared;
};

static struct place place_of(const struct row *r, const struct ws_tensor_map *m, uint32_t k)
{
    static const uint32_t widths[] = {0, 32, 64, 128};
    uint32_t each = ws_tensor_element_bytes(r->type), row = r->box[0] * each, left = k / r->box[0];
    uint32_t width = r->swizzle ? widths[r->swizzle] : row;
    int64_t at = r->at[0] + (int64_t)(k % r->box[0]), global = at * each;
    bool in = at >= 0 && at < (int64_t)r->dims[0];
    uint32_t shared = left * width + k % r->box[0] * each;
    for (unsigned i = 1; i < r->rank; i++) {
        uint32_t n = (r->box[i] + r->step[i] - 1) / r->step[i];
        at = r->at[i] + (int64_t)(left % n) * r->step[i];
        in = in && at >= 0 && at < (int64_t)r->dims[i];
        global += at * (int64_t)m->stride[i - 1];
        left /= n;
    }
    if (r->swizzle) { /* in lines of 128 bytes, of which eight follow each other */
        uint32_t line = shared / 128 % (width / 16), chunk = shared % width / 16;
        shared = shared / width * width + (chunk ^ line) * 16 + shared % 16;
    }
    return (struct place){in ? global : -1, shared};
}

static uint32_t n_elements(const struct row *r)
{
    uint32_t n = r->box[0];
    for (unsigned i = 1; i < r->rank; i++)
        n *= (r->box[i] + r->step[i] - 1) / r->step[i];
    return n;
}

static uint8_t byte_of(uint64_t k)
{
    return (uint8_t)(k * 37 + k / 256 * 11 + 1);
}

static void begin(struct fix *f, const char *ptx, const struct row *r, struct params *ret,
                  uint8_t **ret_tensor)
{
    fix_must_load(f, ptx);
    *ret = (struct params){.map = fix_alloc(f, 192), .out = fix_alloc(f, SHARED)};
    ret->map = (ret->map + 63) / 64 * 64;
    uint64_t tensor = fix_alloc(f, TENSOR);
    struct ws_tensor_map m = map_of(r, tensor);
    memcpy(fix_host(f, ret->map), &m, sizeof(m));
    memcpy(ret->at, r->at, sizeof(ret->at));
    *ret_tensor = fix_host(f, tensor);
    for (uint32_t k = 0; k < TENSOR; k++)
        (*ret_tensor)[k] = byte_of(k);
}

static bool is_nan(const uint8_t *p, unsigned type)
{
    uint64_t v = 0;
    memcpy(&v, p, ws_tensor_element_bytes(type));
    switch (type) {
    case WS_TENSOR_F16:
        return (v & 0x7fff) > 0x7c00;
    case WS_TENSOR_BF16:
        return (v & 0x7fff) > 0x7f80;
    default:
        return (v & 0x7fffffff) > 0x7f800000;
    }
}

static void check_load(struct fix *f, const struct row *r)
{
    struct params p;
    uint8_t *tensor, want[SHARED];
    begin(f, loads[r->rank - 1], r, &p, &tensor);
    struct ws_tensor_map m = map_of(r, 0);
    uint32_t each = ws_tensor_element_bytes(r->type), n = n_elements(r);
    uint8_t *out = fix_host(f, p.out);
    memcpy(out, &(uint32_t){n * each}, 4);
    fix_block(f, 1, &p, WS_DEV_OK);
    memset(want, 0x55, sizeof(want));
    for (uint32_t k = 0; k < n; k++) {
        struct place at = place_of(r, &m, k);
        assert_true(at.shared + each <= SHARED && at.global + each <= TENSOR);
        memset(want + at.shared, 0, each);
        if (at.global >= 0)
            memcpy(want + at.shared, tensor + at.global, each);
        else if (r->nan && is_nan(out + at.shared, r->type))
            memcpy(want + at.shared, out + at.shared, each);
        else if (r->nan)
            fail_msg("%s: element %u is outside and not NaN", r->what, k);
    }
    for (uint32_t k = 0; k < SHARED; k++)
        if (out[k] != want[k])
            fail_msg("%s: byte %u of shared memory is %u, not %u", r->what, k, out[k], want[k]);
}

static void test_loads(void **state)
{
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        struct fix f;
        fix_init(&f);
        check_load(&f, &rows[k]);
        fix_deinit(&f);
    }
}

/* Shared memory is its own offsets in words; the box goes to the tensor, or is added to it. */
#define OUTGO(copy)                                                                                \
    KERNEL("mov.u32 %r2, 0; FILL: add.u32 %r3, %r0, %r2; st.shared.u32 [%r3], %r2;\n"              \
           "add.u32 %r2, %r2, 4; setp.lt.u32 %q0, %r2, 16384; @%q0 bra FILL;\n" copy               \
           "\ncp.async.bulk.commit_group; cp.async.bulk.wait_group 0;")

static void check_store(struct fix *f, const char *ptx, const struct row *r, bool adds)
{
    struct params p;
    uint8_t *tensor;
    static uint32_t want[TENSOR / 4];
    begin(f, ptx, r, &p, &tensor);
    struct ws_tensor_map m = map_of(r, 0);
    memcpy(want, tensor, sizeof(want));
    fix_block(f, 1, &p, WS_DEV_OK);
    for (uint32_t k = 0; k < n_elements(r); k++) {
        struct place at = place_of(r, &m, k);
        if (at.global >= 0)
            want[at.global / 4] = at.shared + (adds ? want[at.global / 4] : 0);
    }
    assert_memory_equal(tensor, want, sizeof(want));
}

static const struct row outgoing = {.rank = 2,
                                    .type = WS_TENSOR_U32,
                                    .swizzle = WS_TENSOR_SWIZZLE_64,
                                    .dims = {20, 12},
                                    .box = {16, 8},
                                    .step = {1, 1},
                                    .at = {-3, 7}};

static void test_store(void **state)
{
    check_store(*state,
                OUTGO("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%m, {%c0, "
                      "%c1}], [%r0];"),
                &outgoing, false);
}

static void test_reduction(void **state)
{
    check_store(*state,
                OUTGO("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%m, "
                      "{%c0, %c1}], [%r0];"),
                &outgoing, true);
}

/* The kernel writes the map itself: in shared memory, from zeros; then it goes to global memory. */
static void test_replace(void **state)
{
    static const char ptx[] = KERNEL(
        "mov.u32 %r2, 0; mov.b64 %x0, 0;\n"
        "ZERO: add.u32 %r3, %r0, %r2; st.shared.u64 [%r3], %x0; add.u32 %r2, %r2, 8;\n"
        "setp.lt.u32 %q0, %r2, 128; @%q0 bra ZERO; add.u64 %x1, %m, 128; ld.global.u64 %x1, "
        "[%x1];\n"
        "cvt.u64.u32 %x2, %r0; cvta.shared.u64 %x2, %x2; mov.u64 %x3, 96; mov.u32 %r4, 16;\n"
        "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r0], %x1;\n"
        "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r0], 1;\n"
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r0], 0, %r4;\n"
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r0], 1, 8;\n"
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r0], 0, 20;\n"
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r0], 1, 12;\n"
        "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r0], 0, %x3;\n"
        "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r0], 0, 1;\n"
        "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r0], 1, 1;\n"
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r0], 2;\n"
        "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r0], 0;\n"
        "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r0], 2;\n"
        "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r0], 0;\n"
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
        "[%m], [%r0], 128;\n"
        "fence.proxy.tensormap::generic.acquire.gpu [%m], 128;\n"
        "mov.u32 %r2, 0; FILL: add.u32 %r3, %r0, %r2; st.shared.u32 [%r3], %r2;\n"
        "add.u32 %r2, %r2, 4; setp.lt.u32 %q0, %r2, 16384; @%q0 bra FILL;\n"
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%m, {%c0, %c1}], [%r0];\n"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
    struct fix *f = *state;
    struct params p;
    uint8_t *tensor;
    static uint32_t want[TENSOR / 4];
    begin(f, ptx, &outgoing, &p, &tensor);
    p.map = (fix_alloc(f, 512) + 127) / 128 * 128;
    struct ws_tensor_map m = map_of(&outgoing, 0);
    assert_int_equal(m.stride[0], 96);
    memcpy(want, tensor, sizeof(want));
    uint64_t address = 0;
    for (unsigned k = 0; k < f->n_bufs; k++)
        if (f->bufs[k].host == tensor)
            address = f->bufs[k].va;
    memcpy((uint8_t *)fix_host(f, p.map) + 128, &address, 8);
    fix_block(f, 1, &p, WS_DEV_OK);
    for (uint32_t k = 0; k < n_elements(&outgoing); k++) {
        struct place at = place_of(&outgoing, &m, k);
        if (at.global >= 0)
            want[at.global / 4] = at.shared;
    }
    assert_memory_equal(tensor, want, sizeof(want));
}

/* A parameter that is a map, by its generic address. */
static void test_parameter(void **state)
{
    static const char ptx[] =
        ".version 8.6\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .align 64 .b8 map[128])\n{\n"
        ".reg .b32 %r<4>; .reg .b64 %x<2>; .shared .align 128 .b8 s[1024];\n"
        "mov.u32 %r0, s; mov.u32 %r1, 4711; st.shared.u32 [%r0], %r1;\n"
        "mov.b64 %x0, map; cvta.param.u64 %x0, %x0;\n"
        "prefetch.param.tensormap [%x0];\n"
        "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%x0, {4}], [%r0];\nret;\n}\n";
    static const struct row line = {
        .rank = 1, .type = WS_TENSOR_U32, .dims = {5}, .box = {4}, .step = {1}};
    struct fix *f = *state;
    fix_must_load(f, ptx);
    uint64_t tensor = fix_alloc(f, 64);
    struct ws_tensor_map m = map_of(&line, tensor);
    fix_block(f, 1, &m, WS_DEV_OK);
    uint32_t *got = fix_host(f, tensor);
    assert_int_equal(got[4], 4711);
    assert_int_equal(got[5], 0);
}

static void faults(struct fix *f, const struct row *r, size_t at, uint8_t value,
                   enum ws_dev_error want)
{
    struct params p;
    uint8_t *tensor;
    begin(f, loads[1], r, &p, &tensor);
    ((uint8_t *)fix_host(f, p.map))[at] = value;
    fix_block(f, 1, &p, want);
}

static void test_no_map(void **state)
{
    faults(*state, &rows[3], offsetof(struct ws_tensor_map, magic), 0,
           WS_DEV_E_ILLEGAL_INSTRUCTION);
}
static void test_other_rank(void **state)
{
    faults(*state, &rows[3], offsetof(struct ws_tensor_map, rank), 1, WS_DEV_E_ILLEGAL_INSTRUCTION);
}
static void test_no_type(void **state)
{
    faults(*state, &rows[3], offsetof(struct ws_tensor_map, type), 200,
           WS_DEV_E_ILLEGAL_INSTRUCTION);
}
static void test_address_not_aligned(void **state)
{
    faults(*state, &rows[3], offsetof(struct ws_tensor_map, address), 4,
           WS_DEV_E_ILLEGAL_INSTRUCTION);
}
static void test_stride_not_aligned(void **state)
{
    faults(*state, &rows[3], offsetof(struct ws_tensor_map, stride), 4,
           WS_DEV_E_ILLEGAL_INSTRUCTION);
}
static void test_too_large_for_shared_memory(void **state)
{
    static const struct row large = {
        .rank = 2, .type = WS_TENSOR_U64, .dims = {4, 4}, .box = {256, 256}, .step = {1, 1}};
    faults(*state, &large, offsetof(struct ws_tensor_map, reserved), 0, WS_DEV_E_ILLEGAL_ADDRESS);
}
static void test_no_memory(void **state)
{
    faults(*state, &rows[3], offsetof(struct ws_tensor_map, address) + 5, 0x70,
           WS_DEV_E_ILLEGAL_ADDRESS);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),
        T(test_store),
        T(test_reduction),
        T(test_replace),
        T(test_parameter),
        T(test_no_map),
        T(test_other_rank),
        T(test_no_type),
        T(test_address_not_aligned),
        T(test_stride_not_aligned),
        T(test_too_large_for_shared_memory),
        T(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
