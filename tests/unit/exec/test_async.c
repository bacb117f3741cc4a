// SPDX-License-Identifier: Apache-2.0
/* mbarriers, asynchronous copies, clusters of one block: kernels with known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

/* k(out, in): %t is tid, %o + 4 tid is out[tid] (in %p); s: 2048 bytes of shared memory, b: two
 * mbarriers. */
#define KERNEL(body)                                                                               \
    ".version 8.6\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"                                      \
    ".reg .pred %q<4>; .reg .b32 %r<16>, %t; .reg .b64 %x<16>, %o, %i, %p;\n"                      \
    ".shared .align 16 .b8 s[2048]; .shared .align 8 .b64 b[2];\n"                                 \
    "ld.param.u64 %o, [out]; ld.param.u64 %i, [in]; mov.u32 %t, %tid.x; mul.wide.u32 %p, %t, 4;\n" \
    "add.u64 %p, %o, %p;\n" body "\nret;\n}\n"

static uint32_t *run(struct fix *f, const char *ptx, unsigned n, enum ws_dev_error want)
{
    uint64_t p[2];
    fix_must_load(f, ptx);
    p[0] = fix_alloc(f, 8192);
    p[1] = fix_alloc(f, 8192);
    uint32_t *in = fix_host(f, p[1]);
    for (unsigned i = 0; i < 2048; i++)
        in[i] = 1000 + i;
    fix_block(f, n, p, want);
    return fix_host(f, p[0]);
}

/* A barrier for all 96 threads, used for three phases: what was written before is seen after. */
static void test_phases(void **state)
{
    uint32_t *out =
        run(*state,
            KERNEL("setp.eq.u32 %q0, %t, 0; @%q0 mbarrier.init.shared.b64 [b], 96; bar.sync 0;\n"
                   "mov.u32 %r0, 0; mov.u32 %r5, 0;\n"
                   "LOOP: add.u32 %r1, %t, 1; rem.u32 %r2, %r1, 96;\n"
                   "mad.lo.u32 %r3, %r0, 1000, %t; shl.b32 %r4, %t, 2; mov.u32 %r6, s; add.u32 "
                   "%r4, %r4, %r6;\n"
                   "st.shared.u32 [%r4], %r3;\n"
                   "mbarrier.arrive.shared.b64 %x0, [b];\n"
                   "WAIT: mbarrier.try_wait.shared.b64 %q1, [b], %x0; @!%q1 bra WAIT;\n"
                   "shl.b32 %r7, %r2, 2; add.u32 %r7, %r7, %r6; ld.shared.u32 %r8, [%r7]; add.u32 "
                   "%r5, %r5, %r8;\n"
                   "mbarrier.arrive.shared.b64 _, [b];\n"
                   "and.b32 %r9, %r0, 0; or.b32 %r9, %r9, 1;\n"
                   "WAIT2: mbarrier.test_wait.parity.shared.b64 %q1, [b], %r9; @!%q1 bra WAIT2;\n"
                   "add.u32 %r0, %r0, 1; setp.lt.u32 %q2, %r0, 3; @%q2 bra LOOP;\n"
                   "st.global.u32 [%p], %r5;"),
            96, WS_DEV_OK);
    for (uint32_t t = 0; t < 96; t++)
        assert_int_equal(out[t], 3 * ((t + 1) % 96) + 3000);
}

/* One producer copies in bulk and says how many bytes are to come; the consumers wait for the
 * phase. */
static void test_bulk_copy(void **state)
{
    uint32_t *out =
        run(*state,
            KERNEL("setp.ne.u32 %q0, %t, 0; mov.u32 %r0, s; mov.u32 %r1, b;\n"
                   "@!%q0 mbarrier.init.shared::cta.b64 [%r1], 1; bar.sync 0; @%q0 bra WAIT;\n"
                   "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 1024;\n"
                   "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%i], "
                   "512, [%r1];\n"
                   "add.u32 %r2, %r0, 512; add.u64 %x1, %i, 512;\n"
                   "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], "
                   "[%x1], 512, [%r1];\n"
                   "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %q1, [%r1], 0; @!%q1 bra WAIT;\n"
                   "mad.lo.u32 %r4, %t, 4, %r0; ld.shared.u32 %r5, [%r4]; add.u32 %r5, %r5, 1; "
                   "st.shared.u32 [%r4], %r5;\n"
                   "bar.sync 0; @%q0 bra END;\n"
                   "cp.async.bulk.global.shared::cta.bulk_group [%o], [%r0], 1024;\n"
                   "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;\nEND:"),
            256, WS_DEV_OK);
    for (uint32_t t = 0; t < 256; t++)
        assert_int_equal(out[t], 1001 + t);
}

/* The phase must not complete while bytes are missing, nor while arrivals are. */
static void test_incomplete(void **state)
{
    uint32_t *out = run(*state,
                        KERNEL("mbarrier.init.shared.b64 [b], 3;\n"
                               "mbarrier.arrive.expect_tx.shared.b64 %x0, [b], 64; "
                               "mbarrier.arrive.shared.b64 %x1, [b], 2;\n"
                               "mbarrier.test_wait.shared.b64 %q0, [b], %x0; selp.u32 %r0, 1, 0, "
                               "%q0; st.global.u32 [%o], %r0;\n"
                               "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [b], 32;\n"
                               "mbarrier.test_wait.shared.b64 %q0, [b], %x0; selp.u32 %r0, 1, 0, "
                               "%q0; st.global.u32 [%o+4], %r0;\n"
                               "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [b], 32;\n"
                               "mbarrier.test_wait.shared.b64 %q0, [b], %x0; selp.u32 %r0, 1, 0, "
                               "%q0; st.global.u32 [%o+8], %r0;\n"
                               "mbarrier.pending_count.b64 %r1, %x1; st.global.u32 [%o+12], %r1;\n"
                               "mbarrier.arrive_drop.shared.b64 %x2, [b]; "
                               "mbarrier.arrive.shared.b64 %x3, [b], 2;\n" /* second phase */
                               "mbarrier.arrive.shared.b64 %x4, [b], 2;\n" /* third: expects two */
                               "mbarrier.test_wait.shared.b64 %q0, [b], %x4; selp.u32 %r0, 1, 0, "
                               "%q0; st.global.u32 [%o+16], %r0;"),
                        1, WS_DEV_OK);
    assert_int_equal(out[0], 0);
    assert_int_equal(out[1], 0);
    assert_int_equal(out[2], 1);
    assert_int_equal(out[3], 2);
    assert_int_equal(out[4], 1);
}

static void test_too_many_arrivals(void **state)
{
    run(*state, KERNEL("mbarrier.init.shared.b64 [b], 2; mbarrier.arrive.shared.b64 %x0, [b], 3;"),
        1, WS_DEV_E_ILLEGAL_INSTRUCTION);
}

/* Copies with fewer bytes at the source, and with a predicate that ignores it: zeros. */
static void test_copy_zfill(void **state)
{
    uint32_t *out = run(
        *state,
        KERNEL("mov.u32 %r0, s; mad.lo.u32 %r1, %t, 16, %r0; mul.wide.u32 %x0, %t, 16; add.u64 "
               "%x0, %i, %x0;\n"
               "mov.u32 %r2, 77; st.shared.v4.u32 [%r1], {%r2,%r2,%r2,%r2};\n"
               "and.b32 %r3, %t, 3; shl.b32 %r3, %r3, 2; setp.ge.u32 %q0, %t, 16;\n"
               "@!%q0 cp.async.ca.shared.global [%r1], [%x0], 16, %r3; setp.eq.u32 %q1, %r3, 4;\n"
               "@%q0 cp.async.cg.shared.global [%r1], [%x0], 16, %q1;\n"
               "cp.async.commit_group; cp.async.wait_group 0;\n"
               "mul.wide.u32 %x1, %t, 16; add.u64 %x1, %o, %x1; ld.shared.v4.u32 "
               "{%r4,%r5,%r6,%r7}, [%r1];\n"
               "st.global.v4.u32 [%x1], {%r4,%r5,%r6,%r7};"),
        32, WS_DEV_OK);
    for (uint32_t t = 0; t < 32; t++)
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t there = t < 16 ? t % 4 : t % 4 == 1 ? 0 : 4;
            assert_int_equal(out[4 * t + k], k < there ? 1000 + 4 * t + k : 0);
        }
}

static void test_copies_arrive(void **state)
{
    uint32_t *out = run(
        *state,
        KERNEL(
            "setp.eq.u32 %q0, %t, 0; @%q0 mbarrier.init.shared.b64 [b], 64; bar.sync 0;\n"
            "mov.u32 %r0, s; mad.lo.u32 %r1, %t, 4, %r0; mul.wide.u32 %x0, %t, 4; add.u64 %x0, %i, "
            "%x0;\n"
            "cp.async.ca.shared.global [%r1], [%x0], 4; cp.async.mbarrier.arrive.shared.b64 [b];\n"
            "cp.async.mbarrier.arrive.noinc.shared.b64 [b];\n"
            "WAIT: mbarrier.test_wait.parity.shared.b64 %q1, [b], 0; @!%q1 bra WAIT;\n"
            "xor.b32 %r2, %t, 63; mad.lo.u32 %r2, %r2, 4, %r0; ld.shared.u32 %r3, [%r2]; "
            "st.global.u32 [%p], %r3;"),
        64, WS_DEV_OK);
    for (uint32_t t = 0; t < 64; t++)
        assert_int_equal(out[t], 1000 + (t ^ 63));
}

/* 16 words of shared memory reduced into global ones, and into shared ones with an mbarrier
 * told. */
static void test_bulk_reductions(void **state)
{
    static const struct {
        const char *word;
        uint32_t want;
    } ops[] = {{"add.u32", 5 + 12}, {"and.b32", 5 & 12}, {"or.b32", 5 | 12},  {"xor.b32", 5 ^ 12},
               {"inc.u32", 6},      {"dec.u32", 4},      {"min.s32", 5},      {"max.u32", 12},
               {"add.f32", 17},     {"add.u64", 17},     {"add.noftz.f16", 1}};
    (void)state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(ops); k++) {
        bool real = strstr(ops[k].word, ".f32"), wide = strstr(ops[k].word, "64"),
             half = strstr(ops[k].word, ".f16");
        struct fix f;
        char ptx[2048], body[1024];
        fix_init(&f);
        /* a word of 5 in out, of 12 in shared memory; as floats, as the low words of 64 bits, as
         * two halves 1.0 and 2.0 */
        snprintf(body, sizeof(body),
                 "mov.u32 %%r0, s; mad.lo.u32 %%r1, %%t, 4, %%r0; and.b32 %%r4, %%t, %d; mov.u32 "
                 "%%r2, %s; mov.u32 %%r3, %s;\n"
                 "setp.ne.u32 %%q2, %%r4, 0; selp.b32 %%r2, 0, %%r2, %%q2; selp.b32 %%r3, 0, %%r3, "
                 "%%q2;\n"
                 "st.shared.u32 [%%r1], %%r2; st.global.u32 [%%p], %%r3; bar.sync 0; setp.ne.u32 "
                 "%%q1, %%t, 0; @%%q1 bra OUT;\n"
                 "cp.reduce.async.bulk.global.shared::cta.bulk_group.%s [%%o], [%%r0], 64; "
                 "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\nOUT:",
                 wide,
                 real   ? "0x41400000"
                 : half ? "0x40003c00"
                        : "12",
                 real   ? "0x40a00000"
                 : half ? "0x3c003c00"
                        : "5",
                 ops[k].word);
        static const char around[] = KERNEL("BODY");
        const char *at = strstr(around, "BODY");
        snprintf(ptx, sizeof(ptx), "%.*s%s%s", (int)(at - around), around, body, at + 4);
        uint32_t *out = run(&f, ptx, 16, WS_DEV_OK);
        for (uint32_t t = 0; t < 16; t++) {
            float v;
            memcpy(&v, &out[t], 4);
            if (real)
                assert_true(v == 17.0f);
            else if (half)
                assert_int_equal(out[t], 0x42004000); /* 3.0, 2.0 */
            else
                assert_int_equal(out[t], wide && t % 2 ? 0 : ops[k].want);
        }
        fix_deinit(&f);
    }
}

static void test_stores_that_tell(void **state)
{
    uint32_t *out = run(
        *state,
        KERNEL(
            "mov.u32 %r0, s; mov.u32 %r1, b; setp.eq.u32 %q1, %t, 0; @%q1 mbarrier.init.shared.b64 "
            "[b], 1; bar.sync 0;\n"
            "@%q1 mbarrier.arrive.expect_tx.shared.b64 _, [b], 1280; mad.lo.u32 %r2, %t, 16, %r0; "
            "bar.sync 0;\n"
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r2], {%t, %r0, 7, 8}, "
            "[%r1];\n"
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 "
            "[%r0+1028], %t, [%r1];\n"
            "WAIT: mbarrier.try_wait.parity.shared.b64 %q2, [b], 0; @!%q2 bra WAIT;\n"
            "ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r2]; ld.shared.u32 %r7, [%r0+1028];\n"
            "mul.lo.u32 %r3, %r3, %r6; mad.lo.u32 %r3, %r7, 1000, %r3; st.global.u32 [%p], %r3;"),
        64, WS_DEV_OK);
    for (uint32_t t = 0; t < 64; t++) /* %t * 8, and the sum of 0 to 63 */
        assert_int_equal(out[t], 2016 * 1000 + 8 * t);
}

static void test_cluster_of_one(void **state)
{
    uint32_t *out = run(
        *state,
        KERNEL("mov.u32 %r0, s; mad.lo.u32 %r1, %t, 4, %r0; mapa.shared::cluster.u32 %r2, %r1, 0;\n"
               "st.shared::cluster.u32 [%r2], %t; getctarank.shared::cluster.u32 %r4, %r2;\n"
               "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;\n"
               "sub.u32 %r3, 255, %t; mad.lo.u32 %r3, %r3, 4, %r0; ld.shared.u32 %r5, [%r3];\n"
               "mov.u32 %r6, %cluster_nctarank; mad.lo.u32 %r5, %r6, 1000, %r5; mov.u32 %r7, "
               "%cluster_ctarank;\n"
               "add.u32 %r5, %r5, %r7; add.u32 %r5, %r5, %r4; st.global.u32 [%p], %r5;"),
        256, WS_DEV_OK);
    for (uint32_t t = 0; t < 256; t++)
        assert_int_equal(out[t], 1000 + 255 - t);
}

static void test_the_clusters_barrier_has_no_number(void **state)
{
    run(*state, KERNEL("mov.u32 %r0, 16; bar.sync %r0;"), 32, WS_DEV_E_ILLEGAL_INSTRUCTION);
}

static void test_faults(void **state)
{
    run(*state,
        KERNEL("mov.u32 %r0, s; cp.async.bulk.global.shared::cta.bulk_group [%o], [%r0], 20;"), 1,
        WS_DEV_E_MISALIGNED);
}
static void test_faults_outside(void **state)
{
    run(*state,
        KERNEL("mov.u32 %r0, s; cp.async.bulk.global.shared::cta.bulk_group [%o], [%r0], 65536;"),
        1, WS_DEV_E_ILLEGAL_ADDRESS);
}
static void test_faults_mbarrier(void **state)
{
    run(*state, KERNEL("mov.u32 %r0, b; mbarrier.init.shared.b64 [%r0+4], 1;"), 1,
        WS_DEV_E_MISALIGNED);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)
    const struct CMUnitTest tests[] = {
        T(test_phases),           T(test_bulk_copy),
        T(test_incomplete),       T(test_too_many_arrivals),
        T(test_copy_zfill),       T(test_bulk_reductions),
        T(test_stores_that_tell), T(test_copies_arrive),
        T(test_cluster_of_one),   T(test_the_clusters_barrier_has_no_number),
        T(test_faults),           T(test_faults_outside),
        T(test_faults_mbarrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
