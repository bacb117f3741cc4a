// SPDX-License-Identifier: Apache-2.0
/* Loads, stores and atomics of every width: 128 bits, wide vectors, extension into wider registers,
 * vector and half atomics; special registers. Small kernels with known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

#define HEAD                                                                                       \
    ".version 9.0\n.target sm_100\n.address_size 64\n"                                             \
    ".const .align 16 .b8 fixed[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};\n"  \
    ".visible .entry k(.param .u64 p)\n{\n.reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<12>;\n"  \
    ".reg .f32 %f<12>; .reg .b64 %x<12>; .reg .b128 %q<4>;\n"                                      \
    ".shared .align 32 .b8 sh[1024]; .local .align 32 .b8 lo[64];\n"                               \
    "ld.param.u64 %x0, [p];\nmov.u32 %r0, %tid.x;\n"
#define TAIL "ret;\n}\n"

struct state {
    struct fix f;
    uint64_t va;
    uint8_t *h;
};
/* Runs a body with 4 KiB at [%x0], which the test has filled through s->h. */
static void run(struct state *s, const char *body, unsigned threads)
{
    char *ptx = malloc(strlen(body) + 2048);
    sprintf(ptx, "%s%s%s", HEAD, body, TAIL);
    fix_must_load(&s->f, ptx);
    free(ptx);
    fix_run(&s->f,
            &(struct launch){.kernel = "k", .grid = {1}, .block = {threads}, .params = &s->va});
}
static int setup(void **state)
{
    struct state *s = calloc(1, sizeof(*s));
    fix_init(&s->f);
    s->va = fix_alloc(&s->f, 4096);
    s->h = fix_host(&s->f, s->va);
    for (unsigned k = 0; k < 4096; k++)
        s->h[k] = (uint8_t)(k * 37 + k / 256);
    *state = s;
    return 0;
}
static int teardown(void **state)
{
    struct state *s = *state;
    fix_deinit(&s->f);
    free(s);
    return 0;
}

static void test_128_bits_through_every_space(void **state)
{
    struct state *s = *state;
    uint8_t want[32 * 16];
    for (unsigned k = 0; k < 32; k++)
        memcpy(want + 16 * k, s->h + 16 * (31 - k), 16);
    run(s,
        "mul.wide.u32 %x1, %r0, 16; add.u64 %x1, %x0, %x1;\n"
        "ld.global.b128 %q0, [%x1];\n"
        "st.local.b128 [lo+16], %q0; ld.local.b128 %q1, [lo+16];\n"
        "mov.u32 %r1, sh; mad.lo.u32 %r1, %r0, 16, %r1; st.shared.b128 [%r1], %q1; bar.sync 0;\n"
        "xor.b32 %r2, %r0, 31; mov.u32 %r3, sh; mad.lo.u32 %r3, %r2, 16, %r3;\n"
        "ld.relaxed.cta.shared.b128 %q2, [%r3]; st.release.gpu.global.b128 [%x1+1024], %q2;\n"
        "ld.const.b128 %q3, [fixed]; st.b128 [%x1+2048], %q3;\n",
        32);
    assert_memory_equal(s->h + 1024, want, sizeof(want));
    for (unsigned k = 0; k < 32 * 16; k++)
        assert_int_equal(s->h[2048 + k], k % 16 + 1);
}

static void test_vectors_of_32_bytes(void **state)
{
    struct state *s = *state;
    /* the address register is the second of those loaded; odd lanes do nothing */
    run(s,
        "mul.wide.u32 %x1, %r0, 32; add.u64 %x1, %x0, %x1; mov.u64 %x5, %x1;\n"
        "and.b32 %r1, %r0, 1; setp.eq.u32 %p1, %r1, 0;\n"
        "@%p1 ld.global.v4.b64 {%x2, %x1, %x3, %x4}, [%x1];\n"
        "@%p1 st.global.v4.b64 [%x5+1024], {%x4, %x3, %x1, %x2};\n"
        "ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%x5];\n"
        "st.global.v8.f32 [%x5+2048], {%r8, %r7, %r6, %r5, %r4, %r3, %r2, %r1};\n",
        32);
    for (unsigned k = 0; k < 32; k++)
        for (unsigned n = 0; n < 8; n++) {
            uint64_t got, want;
            if (n < 4) {
                memcpy(&got, s->h + 1024 + 32 * k + 8 * n, 8);
                memcpy(&want, s->h + 32 * k + 8 * (3 - n), 8);
                if (k % 2 == 0)
                    assert_int_equal(got, want);
            }
            assert_memory_equal(s->h + 2048 + 32 * k + 4 * n, s->h + 32 * k + 4 * (7 - n), 4);
        }
}

static void test_narrow_loads_extend(void **state)
{
    struct state *s = *state;
    run(s,
        "cvt.u64.u32 %x1, %r0; add.u64 %x1, %x0, %x1; shl.b64 %x2, %x1, 0;\n"
        "mul.wide.u32 %x3, %r0, 32; add.u64 %x3, %x0, %x3;\n"
        "ld.global.s8 %r1, [%x1]; ld.global.u8 %h1, [%x1]; ld.global.s8 %x4, [%x1]; ld.u8 %x5, "
        "[%x1+1];\n"
        "mul.wide.u32 %x6, %r0, 4; add.u64 %x6, %x0, %x6; ld.global.v4.s8 {%r4, %r5, %r6, %r7}, "
        "[%x6];\n"
        "ld.global.v2.u16 {%r8, %r9}, [%x6]; ld.global.s16 %x7, [%x6+2];\n"
        "bar.sync 0; st.global.u32 [%x3+1024], %r1; cvt.s32.s16 %r1, %h1; st.global.u32 "
        "[%x3+1028], %r1;\n"
        "st.global.v2.u64 [%x3+1032+8], {%x4, %x5};\n"
        "add.s32 %r4, %r4, %r5; add.s32 %r6, %r6, %r7; add.s32 %r4, %r4, %r6; st.global.s32 "
        "[%x3+1032], %r4;\n"
        "add.u32 %r8, %r8, %r9; cvt.u32.u64 %r9, %x7; add.u32 %r8, %r8, %r9; st.global.u32 "
        "[%x3+1036], %r8;\n",
        32);
    for (unsigned k = 0; k < 32; k++) {
        uint8_t in[128 + 4];
        for (unsigned n = 0; n < sizeof(in); n++)
            in[n] = (uint8_t)(n * 37);
        int32_t *o = (int32_t *)(void *)(s->h + 1024 + 32 * k), sum = 0;
        for (unsigned n = 0; n < 4; n++)
            sum += (int8_t)in[4 * k + n];
        assert_int_equal(o[0], (int8_t)in[k]);
        assert_int_equal(o[1], in[k]);
        assert_int_equal(o[2], sum);
        uint16_t a = (uint16_t)(in[4 * k] | in[4 * k + 1] << 8),
                 b = (uint16_t)(in[4 * k + 2] | in[4 * k + 3] << 8);
        assert_int_equal((uint32_t)o[3], (uint32_t)(a + b + (int16_t)b));
        assert_int_equal(((int64_t *)(void *)o)[2], (int8_t)in[k]);
        assert_int_equal(((int64_t *)(void *)o)[3], in[k + 1]);
    }
}

static void test_vector_and_half_atomics(void **state)
{
    struct state *s = *state;
    memset(s->h, 0, 4096);
    float *f = (float *)(void *)s->h;
    uint16_t *h = (uint16_t *)(void *)s->h;
    run(s,
        "cvt.rn.f32.u32 %f1, %r0; add.f32 %f2, %f1, %f1; neg.f32 %f3, %f1; mov.f32 %f4, "
        "0f3f800000;\n"
        "atom.global.add.v2.f32 {%f5, %f6}, [%x0], {%f1, %f2};\n"
        "red.global.add.v4.f32 [%x0+16], {%f1, %f2, %f3, %f4};\n"
        "mul.wide.u32 %x1, %r0, 8; add.u64 %x1, %x0, %x1; st.global.v2.f32 [%x1+1024], {%f5, "
        "%f6};\n"
        /* halves: largest and smallest of the lanes, sums of ones */
        "cvt.rn.f16.f32 %h1, %f1; mov.b16 %h2, 0x3c00; mov.b16 %h3, 0xbc00; cvt.rn.bf16.f32 %h4, "
        "%f3;\n"
        "red.global.max.noftz.v2.f16 [%x0+64], {%h1, %h2};\n"
        "red.global.add.noftz.v4.f16 [%x0+72], {%h2, %h3, %h2, %h2};\n"
        "atom.global.min.noftz.v2.bf16 {%h5, %h6}, [%x0+80], {%h4, %h4};\n"
        "mov.b32 %r1, {%h2, %h3}; red.global.add.noftz.v2.f16x2 [%x0+88], {%r1, %r1};\n"
        "atom.global.add.noftz.f16x2 %r2, [%x0+96], %r1; red.global.add.noftz.bf16 [%x0+100], "
        "%h4;\n",
        32);
    assert_true(f[0] == 496 && f[1] == 992);
    assert_true(f[4] == 496 && f[5] == 992 && f[6] == -496 && f[7] == 32);
    for (unsigned k = 0; k < 32; k++) /* what each lane found: the sums before it */
        assert_true(f[256 + 2 * k] == (float)(k * (k - 1.0) / 2) &&
                    f[257 + 2 * k] == (float)(k * (k - 1.0)));
    assert_int_equal(h[32], 0x4fc0); /* 31 */
    assert_int_equal(h[33], 0x3c00);
    for (unsigned k = 0; k < 4; k++)
        assert_int_equal(h[36 + k], k == 1 ? 0xd000 : 0x5000); /* 32 */
    assert_int_equal(h[40], 0xc1f8);                           /* -31 */
    for (unsigned k = 44; k < 50; k += 2)
        assert_true(h[k] == 0x5000 && h[k + 1] == 0xd000);
    /* -0 - 1 - 2 … in bfloat16, rounded each time */
    float sum = 0;
    for (unsigned k = 0; k < 32; k++) {
        uint32_t v;
        sum -= (float)k;
        memcpy(&v, &sum, 4);
        v = (v + 0x7fff + (v >> 16 & 1)) & 0xffff0000;
        memcpy(&sum, &v, 4);
    }
    uint32_t bits;
    memcpy(&bits, &sum, 4);
    assert_int_equal(h[50], bits >> 16);
}

static void test_atomics_of_128_bits(void **state)
{
    struct state *s = *state;
    memset(s->h, 0, 4096);
    run(s,
        /* lanes in order: each gets what the one before left */
        "cvt.u64.u32 %x1, %r0; not.b64 %x2, %x1; mov.b128 %q0, {%x1, %x2};\n"
        "atom.global.exch.b128 %q1, [%x0], %q0;\n"
        "mov.b128 {%x3, %x4}, %q1; mul.wide.u32 %x5, %r0, 16; add.u64 %x5, %x0, %x5; "
        "st.global.v2.u64 [%x5+1024], {%x3, %x4};\n"
        /* counts up by compare and swap in shared memory, one lane after another */
        "mov.u64 %x6, 0; mov.b128 %q2, {%x6, %x6}; st.shared.b128 [sh], %q2;\n"
        "AGAIN: ld.shared.b128 %q2, [sh]; mov.b128 {%x6, %x7}, %q2; add.u64 %x8, %x6, 1; sub.u64 "
        "%x9, %x7, 3; mov.b128 %q3, {%x8, %x9};\n"
        "atom.shared.cas.b128 %q1, [sh], %q2, %q3; mov.b128 {%x3, %x4}, %q1;\n"
        "setp.ne.u64 %p1, %x3, %x6; @%p1 bra AGAIN;\n"
        "bar.warp.sync 0xffffffff; ld.shared.v2.u64 {%x6, %x7}, [sh]; st.global.v2.u64 [%x0+16], "
        "{%x6, %x7};\n",
        32);
    uint64_t *h = (uint64_t *)(void *)s->h;
    assert_int_equal(h[0], 31);
    assert_int_equal(h[1], ~(uint64_t)31);
    for (unsigned k = 1; k < 32; k++) {
        assert_int_equal(h[128 + 2 * k], k - 1);
        assert_int_equal(h[129 + 2 * k], ~(uint64_t)(k - 1));
    }
    assert_int_equal(h[2], 32);
    assert_int_equal(h[3], (uint64_t)-96);
}

static void test_misaligned_is_a_fault(void **state)
{
    struct state *s = *state;
    static const char *const bodies[] = {
        "ld.global.b128 %q0, [%x0+8];\n", "st.global.v4.f32 [%x0+4], {%f1, %f1, %f1, %f1};\n",
        "atom.global.exch.b128 %q0, [%x0+8], %q1;\n", "ld.global.u16 %h0, [%x0+1];\n"};
    for (unsigned k = 0; k < WS_ARRAY_SIZE(bodies); k++) {
        char ptx[2048];
        sprintf(ptx, "%s%s%s", HEAD, bodies[k], TAIL);
        fix_must_load(&s->f, ptx);
        assert_int_equal(
            fix_launch(
                &s->f,
                &(struct launch){.kernel = "k", .grid = {1}, .block = {32}, .params = &s->va}),
            WS_DEV_E_MISALIGNED);
    }
}

static void test_special_registers(void **state)
{
    struct state *s = *state;
    uint32_t *h = (uint32_t *)(void *)s->h;
    run(s,
        "mul.wide.u32 %x1, %r0, 64; add.u64 %x1, %x0, %x1; st.shared.u32 [sh], %r0;\n"
        "mov.u32 %r1, %lanemask_lt; mov.u32 %r2, %lanemask_ge; mov.u32 %r3, %laneid; mov.u32 %r4, "
        "%warpid;\n"
        "st.global.v4.u32 [%x1], {%r1, %r2, %r3, %r4};\n"
        "mov.u32 %r1, %pm0; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %cluster_nctarank; mov.u32 %r4, "
        "%cluster_ctarank;\n"
        "st.global.v4.u32 [%x1+16], {%r1, %r2, %r3, %r4};\n"
        "mov.pred %p1, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p1; mov.u64 %x2, %clock64; "
        "mov.u64 %x3, %clock64;\n"
        "setp.ge.u64 %p2, %x3, %x2; selp.u32 %r2, 1, 0, %p2; mov.u32 %r3, %total_smem_size; "
        "mov.u32 %r4, WARP_SZ;\n"
        "st.global.v4.u32 [%x1+32], {%r1, %r2, %r3, %r4};\n"
        "mov.u64 %x4, %globaltimer_lo; shr.u64 %x4, %x4, 32; cvt.u32.u64 %r1, %x4; mov.u16 %h1, "
        "%tid.x; cvt.u32.u16 %r2, %h1;\n"
        "st.global.v2.u32 [%x1+48], {%r1, %r2};\n",
        64);
    for (unsigned k = 0; k < 64; k++) {
        uint32_t *o = h + 16 * k, l = k % 32;
        assert_int_equal(o[0], (1u << l) - 1);
        assert_int_equal(o[1], ~((1u << l) - 1));
        assert_int_equal(o[2], l);
        assert_int_equal(o[3], k / 32);
        assert_int_equal(o[4], 0);
        assert_int_equal(o[5], 1);
        assert_int_equal(o[6], 1);
        assert_int_equal(o[7], 0);
        assert_int_equal(o[8], 0);
        assert_int_equal(o[9], 1);
        assert_int_equal(o[10], 1024);
        assert_int_equal(o[11], 32);
        assert_int_equal(o[12], 0);
        assert_int_equal(o[13], k);
    }
}

/* Hardware gives shared memory in units, here of 256 bytes, and checks no closer than that. */
static void test_dynamic_shared_memory_is_whole_units(void **state)
{
    struct state *s = *state;
    uint32_t *h = (uint32_t *)(void *)s->h;
    const char *const ptx =
        ".version 7.8\n.target sm_75\n.address_size 64\n.extern .shared .align 4 .b8 dyn[];\n"
        ".visible .entry k(.param .u64 p, .param .u32 at)\n{ .reg .b32 %r<3>; .reg .b64 %rd1;\n"
        "ld.param.u64 %rd1, [p]; ld.param.u32 %r0, [at]; mov.u32 %r1, dyn; add.u32 %r0, %r1, %r0;\n"
        "st.shared.u32 [%r0], 5; ld.shared.u32 %r2, [%r0]; st.global.u32 [%rd1], %r2; ret; }\n";
    fix_must_load(&s->f, ptx);
    struct {
        uint64_t p;
        uint32_t at;
    } params = {s->va, 0};
    struct launch l = {.kernel = "k", .grid = {1}, .block = {1}, .params = &params, .shared = 8};
    params.at = 252;
    fix_run(&s->f, &l);
    assert_int_equal(h[0], 5);
    params.at = 256;
    assert_int_not_equal(fix_launch(&s->f, &l), WS_DEV_OK);
}

/* Reads a little too far give zeros where the space allows it; what is further away, and writes,
 * are faults that say where they were. */
static void test_margin(void **state)
{
    enum { APART = 64 << 20 };
    struct state *s = *state;
    static const struct {
        const char *description;
        int64_t at;
        uint64_t margin;
        bool store;
        const char *text; /* of the fault; NULL: there is none */
    } rows[] = {
        {"inside", WS_DEVICE_PAGE_BYTES - 8, 0, false, NULL},
        {"behind, strict", WS_DEVICE_PAGE_BYTES, 0, false, "0 bytes behind the 512 bytes at 0x"},
        {"behind", WS_DEVICE_PAGE_BYTES + 4088, 4096, false, NULL},
        {"too far behind", WS_DEVICE_PAGE_BYTES + 4096, 4096, false, "4096 bytes behind the 512"},
        {"before", -4088, 4096, false, NULL},
        {"too far before", -4096, 4096, false, "4096 bytes before the 512"},
        {"a store", WS_DEVICE_PAGE_BYTES + 8, 4096, true, "8 bytes behind the 512"},
        {"far away", 8 << 20, 4096, false, "address 0x"},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char ptx[1024];
        snprintf(ptx, sizeof(ptx),
                 ".version 7.8\n.target sm_75\n.address_size 64\n"
                 ".visible .entry over(.param .u64 from, .param .u64 to)\n{ .reg .b64 %%x<9>;\n"
                 "ld.param.u64 %%x1, [from]; ld.param.u64 %%x2, [to]; mov.u64 %%x3, 9;\n"
                 "%s st.global.u64 [%%x2], %%x3; ret; }\n",
                 rows[k].store ? "st.global.u64 [%x1], %x3;" : "ld.global.u64 %x3, [%x1];");
        fix_deinit(&s->f);
        fix_init(&s->f);
        fix_must_load(&s->f, ptx);
        s->f.next_va += APART;
        uint64_t from = fix_alloc(&s->f, WS_DEVICE_PAGE_BYTES);
        s->f.next_va += APART;
        uint64_t to = fix_alloc(&s->f, 64);
        memset(fix_host(&s->f, from), 1, WS_DEVICE_PAGE_BYTES);
        ws_space_set_margin(s->f.space, rows[k].margin);
        uint64_t params[] = {from + (uint64_t)rows[k].at, to};
        enum ws_dev_error e = fix_launch(
            &s->f, &(struct launch){.kernel = "over", .grid = {1}, .block = {1}, .params = params});
        bool as_wanted = rows[k].text
                             ? e == WS_DEV_E_ILLEGAL_ADDRESS && strstr(s->f.text, rows[k].text) &&
                                   strstr(s->f.text, "kernel over")
                             : e == WS_DEV_OK && *(uint64_t *)fix_host(&s->f, to) ==
                                                     (k ? 0 : UINT64_C(0x0101010101010101));
        if (!as_wanted)
            fail_msg("%s: %d: %s", rows[k].description, e, s->f.text);
    }
}

/* Cooperative groups' tiles of several warps meet in reserved shared memory: it is there, apart
 * from the program's, and zero when each block starts. */
static void test_reserved_shared_memory(void **state)
{
    struct state *s = *state;
    uint32_t *h = (uint32_t *)(void *)s->h;
    char *ptx = malloc(8192);
    snprintf(ptx, 8192, "%s%s%s", HEAD,
             "mov.u32 %r1, %reserved_smem_offset_1; cvt.u64.u32 %x1, %r1; cvta.shared.u64 %x1, "
             "%x1;\n"
             "st.shared.u32 [sh], %r0; add.u64 %x1, %x1, 4; atom.add.u32 %r2, [%x1], 1; bar.sync "
             "0;\n"
             "ld.u32 %r2, [%x1]; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r3, %r3, 32, %r0;\n"
             "mul.wide.u32 %x2, %r3, 32; add.u64 %x2, %x0, %x2; st.global.u32 [%x2], %r2;\n"
             "mov.u32 %r2, %reserved_smem_offset_begin; mov.u32 %r3, %reserved_smem_offset_end;\n"
             "mov.u32 %r4, %reserved_smem_offset_cap; mov.u32 %r5, %total_smem_size;\n"
             "st.global.u32 [%x2+4], %r2; st.global.u32 [%x2+8], %r3; st.global.u32 [%x2+12], "
             "%r4; st.global.u32 [%x2+16], %r5; st.global.u32 [%x2+20], %r1;\n",
             TAIL);
    fix_must_load(&s->f, ptx);
    free(ptx);
    fix_run(&s->f, &(struct launch){.kernel = "k", .grid = {4}, .block = {32}, .params = &s->va});
    for (unsigned k = 0; k < 4 * 32; k++) {
        const uint32_t *o = h + 8 * k;
        assert_int_equal(o[0], 32); /* of this block alone */
        assert_int_equal(o[4], 1024);
        assert_true(o[1] >= o[4] && o[2] == o[1] + o[3] && o[3] >= 512);
        assert_true(o[5] >= o[1] && o[5] + 288 <= o[2]); /* what cooperative groups use */
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_128_bits_through_every_space),
        T(test_vectors_of_32_bytes),
        T(test_narrow_loads_extend),
        T(test_vector_and_half_atomics),
        T(test_atomics_of_128_bits),
        T(test_misaligned_is_a_fault),
        T(test_margin),
        T(test_reserved_shared_memory),
        T(test_dynamic_shared_memory_is_whole_units),
        T(test_special_registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
