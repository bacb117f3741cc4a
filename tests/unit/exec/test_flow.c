// SPDX-License-Identifier: Apache-2.0
/* Control flow, barriers, exchange between lanes, calls, memory spaces, faults: small kernels with
 * known answers, in every vector build that the processor has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
/* A kernel k(out) with %tid.x in %r0, out in %rd0, and the address of out[tid] in %rd1. */
#define KERNEL(body)                                                                               \
    ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 "       \
    "%r<40>; .reg .b64 %rd<20>; .reg .f32 %f<10>;\n"                                               \
    "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, "     \
    "%rd0, %rd2;\n" body "\n}\n"

/* Runs kernel k with one block of n threads; out has 1024 words. */
static uint32_t *run(struct fix *f, const char *ptx, unsigned n, enum ws_dev_error want)
{
    fix_must_load(f, ptx);
    uint64_t out = fix_alloc(f, 4096);
    fix_block(f, n, &out, want);
    return fix_host(f, out);
}

static void test_nested_divergence_meets_again(void **state)
{
    uint32_t *out = run(
        *state,
        HEAD KERNEL(
            "and.b32 %r1, %r0, 3; mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
            "LOOP: setp.ge.u32 %p1, %r3, %r0; @%p1 bra DONE;\n"
            "  setp.eq.u32 %p2, %r1, 0; @%p2 bra ZERO; setp.eq.u32 %p3, %r1, 1; @%p3 bra ONE;\n"
            "  add.u32 %r2, %r2, 100; bra NEXT;\n"
            "ZERO: add.u32 %r2, %r2, 1; bra NEXT;\n"
            "ONE: add.u32 %r2, %r2, 10;\n"
            "NEXT: add.u32 %r3, %r3, 1; bra LOOP;\n"
            "DONE: activemask.b32 %r4; setp.eq.u32 %p4, %r4, -1; @%p4 add.u32 %r2, %r2, 1000000;\n"
            "st.global.u32 [%rd1], %r2; ret;"),
        32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], i * ((i & 3) == 0 ? 1 : (i & 3) == 1 ? 10 : 100) + 1000000);
}

/* A block that stands last in the text and jumps back must not part the lanes for good. */
static void test_cold_block_meets_again(void **state)
{
    uint32_t *out = run(*state,
                        HEAD KERNEL("mov.u32 %r1, 1; setp.eq.u32 %p1, %r0, 7; @%p1 bra COLD;\n"
                                    "JOIN: activemask.b32 %r2; popc.b32 %r3, %r2; mad.lo.u32 %r4, "
                                    "%r1, 100, %r3; st.global.u32 [%rd1], %r4; ret;\n"
                                    "COLD: mov.u32 %r1, 2; bra JOIN;"),
                        32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], (i == 7 ? 200 : 100) + 32);
}

static void test_early_exit_and_barrier(void **state)
{
    uint32_t *out = run(*state,
                        HEAD ".shared .b32 sh[128];\n" KERNEL(
                            "setp.ge.u32 %p1, %r0, 100; @%p1 exit;\n"
                            "and.b32 %r1, %r0, 1; setp.eq.u32 %p2, %r1, 1; @%p2 bra ODD;\n"
                            "mov.u32 %r2, sh; shl.b32 %r3, %r0, 2; add.u32 %r2, %r2, %r3; "
                            "st.shared.u32 [%r2], %r0;\n"
                            "ODD: @%p2 ret;\n"
                            "bar.sync 0; xor.b32 %r4, %r0, 2; shl.b32 %r4, %r4, 2; mov.u32 %r5, "
                            "sh; add.u32 %r5, %r5, %r4; ld.shared.u32 %r6, [%r5];\n"
                            "st.global.u32 [%rd1], %r6; ret;"),
                        128, WS_DEV_OK);
    for (unsigned i = 0; i < 128; i++)
        assert_int_equal(out[i], i < 100 && !(i & 1) && (i ^ 2) < 100 ? i ^ 2 : 0);
}

/* A program with one barrier too few: each warp reads what the next one wrote about a hundred
 * instructions before, as Rodinia's heartwall does with several hundred. Hardware runs warps at
 * about the same pace, so the program works there. A warp that got twice as long a turn would read
 * before the next one has written. In the second row others could see what the loop does, so that
 * it does not belong to the turn. */
static void test_warps_keep_pace(void **state)
{
#define PACE(body)                                                                                 \
    HEAD ".shared .b32 sh[512];\n" KERNEL(                                                         \
        "shl.b32 %r1, %r0, 2; mov.u32 %r2, sh; add.u32 %r3, %r2, %r1;\n"                           \
        "mov.u32 %r4, 0; st.shared.u32 [%r3], %r4; bar.sync 0; st.shared.u32 [%r3], %r0;\n"        \
        "LOOP: add.u32 %r4, %r4, 1; " body "setp.lt.u32 %p1, %r4, 30; @%p1 bra LOOP;\n"            \
        "add.u32 %r5, %r1, 128; and.b32 %r5, %r5, 1023; add.u32 %r5, %r2, %r5;\n"                  \
        "ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd1], %r6; ret;")
    const char *const all[] = {PACE(""), PACE("st.shared.u32 [%r3+1024], %r4; ")};
#undef PACE
    for (size_t k = 0; k < WS_ARRAY_SIZE(all); k++) {
        uint32_t *out = run(*state, all[k], 256, WS_DEV_OK);
        for (unsigned i = 0; i < 256; i++)
            assert_int_equal(out[i], (i + 32) & 255);
    }
}

static void test_spin_lock_between_lanes_ends(void **state)
{
    uint32_t *out = run(
        *state,
        HEAD ".global .u32 lock; .global .u32 count;\n" KERNEL(
            "TRY: atom.global.cas.b32 %r1, [lock], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra TRY;\n"
            "ld.volatile.global.u32 %r2, [count]; add.u32 %r2, %r2, 1; st.volatile.global.u32 "
            "[count], %r2; membar.gl;\n"
            "atom.global.exch.b32 %r1, [lock], 0;\n"
            "st.global.u32 [%rd1], %r2; ret;"),
        64, WS_DEV_OK);
    uint64_t seen = 0;
    for (unsigned i = 0; i < 64; i++) {
        assert_in_range(out[i], 1, 64);
        seen |= UINT64_C(1) << (out[i] - 1);
    }
    assert_true(seen == ~UINT64_C(0));
}

/* The consumer stands before the producer in the text. */
static void test_lane_waits_for_lane(void **state)
{
    uint32_t *out = run(*state,
                        HEAD ".shared .u32 flag;\n" KERNEL(
                            "setp.eq.u32 %p2, %r0, 0; @%p2 st.shared.u32 [flag], 0; bar.sync 0;\n"
                            "setp.ne.u32 %p1, %r0, 31; @!%p1 bra PRODUCE;\n"
                            "WAIT: ld.volatile.shared.u32 %r1, [flag]; setp.eq.u32 %p1, %r1, 0; "
                            "@%p1 bra WAIT; bra OUT;\n"
                            "PRODUCE: st.volatile.shared.u32 [flag], 5; mov.u32 %r1, 6;\n"
                            "OUT: st.global.u32 [%rd1], %r1; ret;"),
                        32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], i == 31 ? 6 : 5);
}

/* The same with nothing that looks like waiting: only that it takes long. */
static void test_lane_waits_for_lane_by_adding_zero(void **state)
{
    struct fix *f = *state;
    f->max_warp_insns = 2000000;
    uint32_t *out =
        run(f,
            HEAD ".global .u32 flag;\n" KERNEL("setp.ne.u32 %p1, %r0, 31; @!%p1 bra PRODUCE;\n"
                                               "WAIT: atom.global.add.u32 %r1, [flag], 0; "
                                               "setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; bra OUT;\n"
                                               "PRODUCE: st.global.u32 [flag], 5; mov.u32 %r1, 6;\n"
                                               "OUT: st.global.u32 [%rd1], %r1; ret;"),
            32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], i == 31 ? 6 : 5);
}

static void test_shuffles(void **state)
{
    uint32_t *out = run(
        *state,
        HEAD KERNEL(
            "mul.lo.u32 %r1, %r0, 3;\n"
            "shfl.sync.bfly.b32 %r2|%p1, %r1, 1, 0x1f, -1; shfl.sync.up.b32 %r3|%p2, %r1, 2, 0, "
            "-1; shfl.sync.down.b32 %r4|%p3, %r1, 4, 0x181f, -1;\n"
            "shfl.sync.idx.b32 %r5, %r1, 9, 0x1f, -1;\n"
            "st.global.u32 [%rd1], %r2; st.global.u32 [%rd1+128], %r3; st.global.u32 [%rd1+256], "
            "%r4; st.global.u32 [%rd1+384], %r5;\n"
            "selp.u32 %r6, 1, 0, %p1; selp.u32 %r7, 2, 0, %p2; selp.u32 %r8, 4, 0, %p3; add.u32 "
            "%r6, %r6, %r7; add.u32 %r6, %r6, %r8; st.global.u32 [%rd1+512], %r6; ret;"),
        32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++) {
        assert_int_equal(out[i], 3 * (i ^ 1));
        assert_int_equal(out[32 + i], 3 * (i >= 2 ? i - 2 : i));
        assert_int_equal(out[64 + i], 3 * ((i & 7) + 4 <= 7 ? i + 4 : i)); /* width 8 */
        assert_int_equal(out[96 + i], 27);
        assert_int_equal(out[128 + i], 1 + (i >= 2 ? 2 : 0) + ((i & 7) < 4 ? 4 : 0));
    }
}

/* Eight lanes add up what they have, and ask for those of a whole warp. The others have something
 * else in that register. */
static void test_shuffle_from_lanes_that_are_not_there(void **state)
{
    uint32_t *out =
        run(*state,
            HEAD KERNEL("mov.u32 %r1, 1000; setp.ge.u32 %p1, %r0, 8; @%p1 bra OUT;\n"
                        "add.u32 %r1, %r0, 1;\n"
                        "shfl.sync.down.b32 %r2|%p2, %r1, 16, 0x1f, 0xff; add.u32 %r1, %r1, %r2;\n"
                        "shfl.sync.down.b32 %r2, %r1, 8, 0x1f, 0xff; add.u32 %r1, %r1, %r2;\n"
                        "shfl.sync.down.b32 %r2, %r1, 4, 0x1f, 0xff; add.u32 %r1, %r1, %r2;\n"
                        "shfl.sync.down.b32 %r2, %r1, 2, 0x1f, 0xff; add.u32 %r1, %r1, %r2;\n"
                        "shfl.sync.down.b32 %r2, %r1, 1, 0x1f, 0xff; add.u32 %r1, %r1, %r2;\n"
                        "@!%p2 mov.u32 %r1, 7;\n"
                        "OUT: st.global.u32 [%rd1], %r1; ret;"),
            32, WS_DEV_OK);
    assert_int_equal(out[0], 36); /* and the predicate says that lane 16 is in range */
    assert_int_equal(out[8], 1000);
}

/* Lanes arrive at one shfl.sync by two ways, one of them longer. */
static void test_shuffle_waits_for_its_lanes(void **state)
{
    uint32_t *out =
        run(*state,
            HEAD KERNEL(
                "mov.u32 %r1, %r0; setp.lt.u32 %p1, %r0, 16; @%p1 bra MEET;\n"
                "mov.u32 %r3, 0; SPIN: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 5000; @%p2 bra "
                "SPIN; add.u32 %r1, %r1, %r3;\n"
                "MEET: shfl.sync.bfly.b32 %r2, %r1, 16, 0x1f, -1; st.global.u32 [%rd1], %r2; ret;"),
            32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], i < 16 ? i + 16 + 5000 : i - 16);
}

static void test_votes_and_matches(void **state)
{
    uint32_t *out = run(
        *state,
        HEAD KERNEL(
            "setp.lt.u32 %p1, %r0, 8; vote.sync.ballot.b32 %r1, %p1, -1; st.global.u32 [%rd1], "
            "%r1;\n"
            "vote.sync.any.pred %p2, %p1, -1; vote.sync.all.pred %p3, %p1, -1; vote.sync.uni.pred "
            "%p4, !%p1, -1; selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 2, 0, %p3; selp.u32 %r4, 4, 0, "
            "%p4;\n"
            "add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; st.global.u32 [%rd1+128], %r2;\n"
            "shr.u32 %r5, %r0, 3; match.any.sync.b32 %r6, %r5, -1; st.global.u32 [%rd1+256], %r6;\n"
            "match.all.sync.b32 %r7|%p5, %r5, -1; selp.u32 %r8, 1, 0, %p5; add.u32 %r7, %r7, %r8; "
            "st.global.u32 [%rd1+384], %r7; \n"
            "redux.sync.add.s32 %r9, %r0, -1; st.global.u32 [%rd1+512], %r9; vote.ballot.b32 %r10, "
            "!%p1; st.global.u32 [%rd1+640], %r10; ret;"),
        32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++) {
        assert_int_equal(out[i], 0xff);
        assert_int_equal(out[32 + i], 1);
        assert_int_equal(out[64 + i], 0xffu << (i & ~7u));
        assert_int_equal(out[96 + i], 0);
        assert_int_equal(out[128 + i], 496);
        assert_int_equal(out[160 + i], 0xffffff00);
    }
}

static void test_named_barriers_and_reductions(void **state)
{
    uint32_t *out = run(
        *state,
        HEAD ".shared .b32 v;\n" KERNEL(
            "setp.lt.u32 %p1, %r0, 32; @!%p1 bra CONSUME;\n"
            "mov.u32 %r1, 77; st.shared.u32 [v], %r1; bar.arrive 3, 64; mov.u32 %r2, 1; bra OUT;\n"
            "CONSUME: bar.sync 3, 64; ld.shared.u32 %r2, [v];\n"
            "OUT: setp.lt.u32 %p2, %r0, 5; barrier.red.popc.u32 %r3, 1, %p2; barrier.red.and.pred "
            "%p3, 1, %p2; barrier.red.or.pred %p4, 2, !%p2;\n"
            "selp.u32 %r4, 1000, 0, %p3; selp.u32 %r5, 2000, 0, %p4; mad.lo.u32 %r2, %r3, 100, "
            "%r2; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r5; st.global.u32 [%rd1], %r2; ret;"),
        64, WS_DEV_OK);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(out[i], 500 + 2000 + (i < 32 ? 1 : 77));
}

static void test_atomics(void **state)
{
    struct fix *f = *state;
    uint32_t *out =
        run(f,
            HEAD ".shared .b32 sh;\n" KERNEL(
                "setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [sh], 0; bar.sync 0;\n"
                "atom.shared.add.u32 %r1, [sh], 2; bar.sync 0; ld.shared.u32 %r2, [sh]; "
                "st.global.u32 [%rd1+512], %r2; bar.sync 0;\n"
                "red.global.add.u32 [%rd0], %r0; red.global.max.s32 [%rd0+4], %r0; "
                "atom.global.or.b32 %r3, [%rd0+8], %r0; red.global.add.f32 [%rd0+12], 0f3F000000;\n"
                "atom.global.inc.u32 %r4, [%rd0+16], 9; red.global.min.u32 [%rd0+20], %r0; "
                "atom.global.add.u64 %rd5, [%rd0+24], 0x100000000; atom.add.release.gpu.u32 %r5, "
                "[%rd0+32], 1;\n"
                "cvta.shared.u64 %rd6, sh; atom.add.u32 %r6, [%rd6], 1; bar.sync 0; ld.shared.u32 "
                "%r2, [sh]; st.global.u32 [%rd1+1024], %r2; ret;"),
            64, WS_DEV_OK);
    float fl;
    memcpy(&fl, &out[3], 4);
    assert_int_equal(out[0], 2016);
    assert_int_equal(out[1], 63);
    assert_int_equal(out[2], 63);
    assert_true(fl == 32.0f);
    assert_int_equal(out[4], 4); /* 64 mod 10 */
    assert_int_equal(out[5], 0);
    assert_int_equal(out[7], 64);
    assert_int_equal(out[8], 64);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(out[128 + i], 128);
        assert_int_equal(out[256 + i], 192);
    }
    if (f->rewrite == WS_REWRITE_NONE)
        assert_true(f->work.n_atomics > 0 && f->work.n_barriers == 8);
}

#define FIB                                                                                        \
    ".func (.param .b32 r) fib(.param .b32 n)\n{\n.reg .pred %p<2>; .reg .b32 %r<8>;\n"            \
    "ld.param.b32 %r1, [n]; setp.lt.u32 %p1, %r1, 2; @%p1 bra BASE;\n"                             \
    "{ .param .b32 a; .param .b32 b; sub.u32 %r2, %r1, 1; st.param.b32 [a], %r2; call.uni (b), "   \
    "fib, (a); ld.param.b32 %r3, [b]; }\n"                                                         \
    "{ .param .b32 a; .param .b32 b; sub.u32 %r2, %r1, 2; st.param.b32 [a], %r2; call.uni (b), "   \
    "fib, (a); ld.param.b32 %r4, [b]; }\n"                                                         \
    "add.u32 %r5, %r3, %r4; st.param.b32 [r], %r5; ret;\nBASE: st.param.b32 [r], %r1; ret;\n}\n"
static void test_recursion(void **state)
{
    uint32_t *out =
        run(*state,
            HEAD ".func (.param .b32 r) fib(.param .b32 n);\n" FIB KERNEL(
                "and.b32 %r1, %r0, 7; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call "
                "(b), fib, (a); ld.param.b32 %r2, [b]; } st.global.u32 [%rd1], %r2; ret;"),
            32, WS_DEV_OK);
    static const unsigned fib[8] = {0, 1, 1, 2, 3, 5, 8, 13};
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], fib[i & 7]);
}

static void test_endless_recursion_overflows(void **state)
{
    struct fix *f = *state;
    run(f,
        HEAD ".func f(.param .b32 n)\n{\n.reg .b32 %r<2>; .local .b32 x[4]; ld.param.b32 %r1, [n]; "
             "st.local.b32 [x], %r1; { .param .b32 a; st.param.b32 [a], %r1; call f, (a); } "
             "ret;\n}\n" KERNEL("{ .param .b32 a; st.param.b32 [a], %r0; call f, (a); } ret;"),
        32, WS_DEV_E_STACK_OVERFLOW);
    assert_non_null(strstr(f->text, "call"));
}

static void test_indirect_calls(void **state)
{
    uint32_t *out =
        run(*state,
            HEAD ".func (.param .b32 r) add1(.param .b32 n, .param .b64 m) { .reg .b32 %r<3>; "
                 "ld.param.b32 %r1, [n]; add.u32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }\n"
                 ".func (.param .b32 r) times(.param .b32 n, .param .b64 m) { .reg .b32 %r<4>; "
                 ".reg .b64 %x; ld.param.b32 %r1, [n]; ld.param.b64 %x, [m]; cvt.u32.u64 %r3, %x; "
                 "mul.lo.u32 %r2, %r1, %r3; st.param.b32 [r], %r2; ret; }\n"
                 ".global .u64 table[2] = {add1, times};\n" KERNEL(
                     "and.b32 %r1, %r0, 1; mul.wide.u32 %rd3, %r1, 8; mov.u64 %rd4, table; add.u64 "
                     "%rd4, %rd4, %rd3; ld.global.u64 %rd5, [%rd4];\n"
                     "{ .param .b32 a; .param .b64 m; .param .b32 b; st.param.b32 [a], %r0; "
                     "st.param.b64 [m], 10; P: .callprototype (.param .b32 _) _ (.param .b32 _, "
                     ".param .b64 _); call (b), %rd5, (a, m), P; ld.param.b32 %r2, [b]; }\n"
                     "activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.u32 %r2, %r3, 1000, %r2; "
                     "st.global.u32 [%rd1], %r2; ret;"),
            32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], 32000 + (i & 1 ? i * 10 : i + 1));
}

static void test_struct_arguments_and_local_memory(void **state)
{
    uint32_t *out = run(
        *state,
        HEAD ".func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 s[16]) { .reg .b64 %x<4>; "
             ".reg .b32 %r<4>; ld.param.b64 %x1, [s]; ld.param.v2.b32 {%r1, %r2}, [s+8]; "
             "st.param.v2.b32 [r+0], {%r1, %r2}; st.param.b64 [r+8], %x1; ret; }\n" KERNEL(
                 ".local .align 16 .b8 depot[64];\n"
                 "mov.u64 %rd3, depot; cvta.local.u64 %rd4, %rd3; and.b32 %r1, %r0, 7; "
                 "mul.wide.u32 %rd5, %r1, 4; add.u64 %rd6, %rd4, %rd5; add.u64 %rd7, %rd3, %rd5; "
                 "st.local.u32 [%rd7], %r0; ld.u32 %r2, [%rd6]; add.u32 %r2, %r2, 5; st.u32 "
                 "[%rd6], %r2; ld.local.u32 %r3, [%rd7];\n"
                 "{ .param .align 8 .b8 a[16]; .param .align 8 .b8 b[16]; st.param.b64 [a], 7; "
                 "st.param.b32 [a+8], %r3; st.param.b32 [a+12], %r0; call (b), swap, (a); "
                 "ld.param.b32 %r4, [b]; ld.param.b32 %r5, [b+4]; ld.param.b64 %rd8, [b+8]; }\n"
                 "cvt.u32.u64 %r6, %rd8; mad.lo.u32 %r7, %r6, 1000, %r4; mad.lo.u32 %r7, %r5, "
                 "100000, %r7; st.global.u32 [%rd1], %r7; ret;"),
        32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], 7000 + i + 5 + 100000 * i);
}

static void test_constants_and_initialised_variables(void **state)
{
    uint32_t *out =
        run(*state,
            HEAD ".const .align 4 .b32 c[4] = {10, 20, 30, 40}; .global .align 8 .u64 p = "
                 "generic(c); .global .align 2 .b16 h[3] = {1, 2, 3};\n" KERNEL(
                     "and.b32 %r1, %r0, 3; mul.wide.u32 %rd3, %r1, 4; mov.u64 %rd4, c; add.u64 "
                     "%rd4, %rd4, %rd3; ld.const.u32 %r2, [%rd4]; ld.const.u32 %r3, [c+8]; "
                     "ld.global.u64 %rd5, [p]; ld.u32 %r4, [%rd5+4]; ld.global.u16 %r5, [h+4];\n"
                     "add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r4; add.u32 %r2, %r2, %r5; "
                     "st.global.u32 [%rd1], %r2; ret;"),
            32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], 10 + (i & 3) * 10 + 30 + 20 + 3);
}

static void test_brx(void **state)
{
    uint32_t *out =
        run(*state,
            HEAD KERNEL("rem.u32 %r1, %r0, 3; T: .branchtargets A, B, C; brx.idx %r1, T;\n"
                        "A: mov.u32 %r2, 11; bra END; B: mov.u32 %r2, 22; bra END; C: mov.u32 %r2, "
                        "33; END: activemask.b32 %r3; popc.b32 %r3, %r3; mad.lo.u32 %r2, %r3, 100, "
                        "%r2; st.global.u32 [%rd1], %r2; ret;"),
            32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], 3200 + 11 * (1 + i % 3));
}

static void test_special_registers_in_three_dimensions(void **state)
{
    struct fix *f = *state;
    fix_must_load(
        f, HEAD
        ".extern .shared .align 16 .b8 dyn[]; .shared .align 4 .b8 st[20];\n"
        ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<40>; .reg .b64 %rd<9>;\nld.param.u64 "
        "%rd0, [out];\n"
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; "
        "mov.u32 %r5, %ntid.y; mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;\n"
        "mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z; mov.u32 %r10, "
        "%nctaid.x; mov.u32 %r11, %nctaid.y; mad.lo.u32 %r12, %r9, %r11, %r8; mad.lo.u32 %r12, "
        "%r12, %r10, %r7;\n"
        "mov.u32 %r13, %ntid.z; mul.lo.u32 %r14, %r4, %r5; mul.lo.u32 %r14, %r14, %r13; mad.lo.u32 "
        "%r15, %r12, %r14, %r6; mul.wide.u32 %rd1, %r15, 4; add.u64 %rd1, %rd0, %rd1;\n"
        "mov.u32 %r16, dyn; mov.u32 %r17, %dynamic_smem_size; mov.u32 %r18, st; st.shared.u32 "
        "[st+16], 1; mov.u32 %r19, %laneid; mov.u32 %r20, %lanemask_lt; popc.b32 %r20, %r20; "
        "sub.u32 %r21, %r19, %r20;\n"
        "mul.lo.u32 %r22, %r16, 1000; add.u32 %r22, %r22, %r17; add.u32 %r22, %r22, %r21; "
        "mad.lo.u32 %r22, %r15, 100000, %r22; st.global.u32 [%rd1], %r22; ret;\n}\n");
    uint64_t out = fix_alloc(f, 4 * 2 * 3 * 2 * 5 * 3 * 3);
    fix_run(f, &(struct launch){.kernel = "k",
                                .grid = {2, 3, 2},
                                .block = {5, 3, 3},
                                .shared = 48,
                                .params = &out,
                                .co_resident = 5});
    for (unsigned i = 0; i < 12 * 45; i++)
        assert_int_equal(((uint32_t *)fix_host(f, out))[i], i * 100000 + 32 * 1000 + 48);
    uint32_t index;
    assert_int_equal(fix_kernel(f, "k", &index)->static_shared_bytes, 20);
    assert_int_equal(fix_kernel(f, "k", &index)->max_threads_per_block, 1024);
}

static void test_vector_loads_of_all_widths(void **state)
{
    uint32_t *out =
        run(*state,
            HEAD KERNEL(
                "mul.wide.u32 %rd3, %r0, 16; add.u64 %rd3, %rd3, %rd0; mov.u32 %r9, 0x81; "
                "st.global.v4.u32 [%rd3], {%r0, 0xff80fe7f, %r9, 4}; bar.sync 0; ld.global.v4.u8 "
                "{%h1, %h2, %h3, %h4}, [%rd3+4]; ld.global.s8 %r3, [%rd3+5]; ld.global.v2.s16 "
                "{%r4, %r5}, [%rd3+4]; ld.global.v2.u64 {%rd4, %rd5}, [%rd3];\n"
                "cvt.u32.u16 %r6, %h1; cvt.u32.u16 %r7, %h4; add.u32 %r6, %r6, %r7; add.u32 %r6, "
                "%r6, %r3; add.u32 %r6, %r6, %r4; cvt.u32.u64 %r8, %rd5; add.u32 %r6, %r6, %r8; "
                "bar.sync 0; st.global.u32 [%rd1], %r6; ret;"),
            32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], (uint32_t)(0x7f + 0xff - 2 + (int16_t)0xfe7f + 0x81));
}

static void test_asynchronous_copies(void **state)
{
    uint32_t *out = run(
        *state,
        ".version 9.0\n.target sm_90\n.address_size 64\n.shared .align 16 .b8 sh[1024];\n" KERNEL(
            "mul.wide.u32 %rd3, %r0, 16; add.u64 %rd3, %rd3, %rd0; st.global.v4.u32 [%rd3], {%r0, "
            "1, 2, 3}; mov.u32 %r1, sh; shl.b32 %r2, %r0, 4; add.u32 %r1, %r1, %r2;\n"
            "cp.async.cg.shared.global [%r1], [%rd3], 16; cp.async.commit_group; "
            "cp.async.wait_group 0; bar.sync 0; ld.shared.u32 %r3, [%r1]; ld.shared.u32 %r4, "
            "[%r1+12]; mad.lo.u32 %r3, %r3, 10, %r4; bar.sync 0; st.global.u32 [%rd1], %r3; ret;"),
        32, WS_DEV_OK);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(out[i], i * 10 + 3);
}

/* ---- faults ---- */
struct fault {
    const char *description, *body;
    enum ws_dev_error error;
    const char *text;
};
static const struct fault faults[] = {
    {"beyond the end", "setp.eq.u32 %p1, %r0, 5; @%p1 st.global.u32 [%rd0+4096], %r0; ret;",
     WS_DEV_E_ILLEGAL_ADDRESS,
     "thread (5,0,0) address 0x7f0000001000, 0 bytes behind the 4096 bytes at 0x7f0000000000, "
     "PTX line 8: @%p1 st.global.u32 [%rd0+4096], %r0"},
    {"consecutive, last lane out", "st.global.u32 [%rd1+3972], %r0; ret;", WS_DEV_E_ILLEGAL_ADDRESS,
     "thread (31,0,0) address 0x7f0000001000"},
    {"before the start", "ld.global.u32 %r1, [%rd0+-4]; ret;", WS_DEV_E_ILLEGAL_ADDRESS,
     "illegal address: kernel k block (0,0,0)"},
    {"null", "mov.u64 %rd3, 0; ld.u32 %r1, [%rd3]; ret;", WS_DEV_E_ILLEGAL_ADDRESS, "address 0x0"},
    {"straddles the end", "ld.global.u64 %rd3, [%rd0+4092]; ret;", WS_DEV_E_MISALIGNED,
     "misaligned"},
    {"wraps", "mov.u64 %rd3, -4; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd3+-12]; ret;",
     WS_DEV_E_ILLEGAL_ADDRESS, "address 0xfffffffffffffff0"},
    {"misaligned", "ld.global.u32 %r1, [%rd1+2]; ret;", WS_DEV_E_MISALIGNED, "misaligned address"},
    {"misaligned vector", "ld.global.v2.u32 {%r1, %r2}, [%rd0+4]; ret;", WS_DEV_E_MISALIGNED,
     "misaligned address"},
    {"misaligned shared",
     ".shared .b32 s[32]; mov.u32 %r1, s; add.u32 %r1, %r1, 1; ld.shared.u32 %r2, [%r1]; ret;",
     WS_DEV_E_MISALIGNED, "misaligned address"},
    {"shared out of bounds",
     ".shared .b32 s[32]; shl.b32 %r1, %r0, 2; mov.u32 %r2, s; add.u32 %r2, %r2, %r1; "
     "st.shared.u32 [%r2+132], %r0; ret;",
     WS_DEV_E_ILLEGAL_ADDRESS, "thread (31,0,0) address 0x100"},
    {"shared from below", ".shared .b32 s[32]; mov.u32 %r2, s; ld.shared.u32 %r1, [%r2+-4]; ret;",
     WS_DEV_E_ILLEGAL_ADDRESS, "address 0xfffffffc"},
    {"local out of bounds", ".local .b32 l[4]; mov.u64 %rd3, l; st.local.u32 [%rd3+64], %r0; ret;",
     WS_DEV_E_ILLEGAL_ADDRESS, "illegal address"},
    {"shared window beyond its end",
     ".shared .b32 s[32]; mov.u64 %rd3, s; cvta.shared.u64 %rd3, %rd3; ld.u32 %r1, [%rd3+256]; "
     "ret;",
     WS_DEV_E_ILLEGAL_ADDRESS, "illegal address"},
    {"atomic out of bounds", "red.global.add.u32 [%rd0+8192], 1; ret;", WS_DEV_E_ILLEGAL_ADDRESS,
     "illegal address"},
    {"atomic misaligned", "atom.global.add.u64 %rd3, [%rd0+4], 1; ret;", WS_DEV_E_MISALIGNED,
     "misaligned"},
    {"param store", "mov.b64 %rd3, out; cvta.param.u64 %rd4, %rd3; st.u32 [%rd4], %r0; ret;",
     WS_DEV_E_ILLEGAL_ADDRESS, "illegal address"},
    {"trap", "setp.gt.u32 %p1, %r0, 3; @%p1 trap; ret;", WS_DEV_E_TRAP, "thread (4,0,0) trap"},
    {"endless loop", "LOOP: bra LOOP;", WS_DEV_E_TIMEOUT, ""},
    {"endless divergent loop", "setp.gt.u32 %p1, %r0, 3; LOOP: @%p1 bra LOOP; ret;",
     WS_DEV_E_TIMEOUT, ""},
    {"warp waits for lanes at a block barrier",
     "setp.gt.u32 %p1, %r0, 3; @%p1 bra B; bar.warp.sync -1; B: bar.sync 0; ret;",
     WS_DEV_E_LAUNCH_FAILURE, "deadlock"},
    {"barrier with too few threads", "bar.sync 1, 64; ret;", WS_DEV_E_ILLEGAL_INSTRUCTION,
     "barrier"},
    {"barrier number", "bar.sync 16; ret;", WS_DEV_E_ILLEGAL_INSTRUCTION, "barrier"},
    {"call of no function", "{ P: .callprototype _ (); call %rd0, (), P; } ret;",
     WS_DEV_E_ILLEGAL_INSTRUCTION, "function"},
};
static void test_faults(void **state)
{
    if (((struct fix *)*state)->rewrite != WS_REWRITE_NONE || ((struct fix *)*state)->fence ||
        ((struct fix *)*state)->fuse)
        skip(); /* lines and counts are the rewritten text\'s */
    struct fix *f = *state;
    f->max_warp_insns = 1000000;
    for (size_t k = 0; k < WS_ARRAY_SIZE(faults); k++) {
        char ptx[4096];
        snprintf(ptx, sizeof(ptx),
                 "%s.visible .entry k(.param .u64 out)\n{\n.reg .pred %%p<10>; .reg .b16 %%h<10>; "
                 ".reg .b32 %%r<40>; .reg .b64 %%rd<20>;\n"
                 "ld.param.u64 %%rd0, [out]; mov.u32 %%r0, %%tid.x; mul.wide.u32 %%rd2, %%r0, 4; "
                 "add.u64 %%rd1, %%rd0, %%rd2;\n%s\n}\n",
                 HEAD, faults[k].body);
        fix_deinit(f);
        fix_init(f);
        f->max_warp_insns = 1000000;
        fix_must_load(f, ptx);
        uint64_t out = fix_alloc(f, 4096);
        enum ws_dev_error e = fix_launch(
            f, &(struct launch){.kernel = "k", .grid = {1}, .block = {32}, .params = &out});
        if (e != faults[k].error || !strstr(f->text, faults[k].text)) {
            print_error("%s: error %d, want %d: %s\n", faults[k].description, e, faults[k].error,
                        f->text);
            fail();
        }
    }
}

static void test_assertion_names_itself(void **state)
{
    struct fix *f = *state;
    run(f,
        HEAD ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 "
             "d, .param .b64 e);\n"
             ".global .align 1 .b8 msg[6] = {120, 32, 60, 32, 51, 0}; .global .align 1 .b8 file[5] "
             "= {97, 46, 99, 117, 0};\n" KERNEL(
                 "setp.lt.u32 %p1, %r0, 3; @%p1 bra FINE; mov.u64 %rd3, msg; mov.u64 %rd4, file; { "
                 ".param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; "
                 "st.param.b64 [a], %rd3; st.param.b64 [b], %rd4; st.param.b32 [c], 42; "
                 "st.param.b64 [d], %rd4; st.param.b64 [e], 1;\n"
                 "call.uni __assertfail, (a, b, c, d, e); } FINE: ret;"),
        32, WS_DEV_E_ASSERT);
    assert_non_null(strstr(f->text, "x < 3"));
    assert_non_null(strstr(f->text, "a.cu:42"));
    assert_non_null(strstr(f->text, "thread (3,0,0)"));
}

static char printed[4096];
static void keep_text(void *arg, enum ws_output to, const char *text, size_t n)
{
    size_t at = strlen(printed);
    if (n < sizeof(printed) - at)
        memcpy(printed + at, text, n), printed[at + n] = 0;
}
static void test_printf(void **state)
{
    struct fix *f = *state;
    char ptx[4096], bytes[512] = "", *p = bytes;
    static const char format[] = "%d|%5.2f|%-4u|%s|%c|%llx|%%|%n%p\n", str[] = "hey";
    for (size_t k = 0; k < sizeof(format); k++)
        p += sprintf(p, "%s%d", k ? ", " : "", format[k]);
    snprintf(ptx, sizeof(ptx),
             "%s.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n.global "
             ".align 1 .b8 fmt[%zu] = {%s}; .global .align 1 .b8 str[4] = {%d, %d, %d, 0};\n",
             HEAD, sizeof(format), bytes, str[0], str[1], str[2]);
    strcat(
        ptx,
        KERNEL(".local .align 8 .b8 depot[64]; setp.gt.u32 %p1, %r0, 1; @%p1 bra OUT;\n"
               "mov.u64 %rd3, depot; cvta.local.u64 %rd4, %rd3; sub.u32 %r1, %r0, 5; st.local.u32 "
               "[depot], %r1; st.local.f64 [depot+8], 0d400921FB54442D18; st.local.u32 [depot+16], "
               "7; mov.u64 %rd5, str; st.local.u64 [depot+24], %rd5; st.local.u32 [depot+32], 65; "
               "st.local.u64 [depot+40], 0x123456789a; st.local.u64 [depot+48], 16;\n"
               "mov.u64 %rd6, fmt; { .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 "
               "[a], %rd6; st.param.b64 [b], %rd4; call.uni (r), vprintf, (a, b); ld.param.b32 "
               "%r2, [r]; } st.global.u32 [%rd1], %r2; OUT: ret;"));
    printed[0] = 0;
    ws_space_set_print(f->space, keep_text, NULL);
    uint32_t *out = run(f, ptx, 32, WS_DEV_OK);
    assert_string_equal(
        printed,
        "-5| 3.14|7   |hey|A|123456789a|%|n0x10\n-4| 3.14|7   |hey|A|123456789a|%|n0x10\n");
    assert_int_equal(out[0], 7);
}

static void test_what_is_missing_is_named(void **state)
{
    if (((struct fix *)*state)->rewrite != WS_REWRITE_NONE || ((struct fix *)*state)->fence ||
        ((struct fix *)*state)->fuse)
        skip(); /* lines and counts are the rewritten text\'s */
    struct fix *f = *state;
    assert_int_equal(
        fix_load(
            f,
            HEAD KERNEL(
                "tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd0, {%r0, %r0, %r0, %r0}];\nret;")),
        WS_PTX_E_UNSUPPORTED);
    assert_true(f->diags.n >= 1);
    assert_non_null(strstr(f->diags.v[0].text, "tex"));
    assert_int_equal(f->diags.v[0].line, 8);
    assert_int_equal(
        fix_load(f, HEAD ".extern .func (.param .b32 r) vprintg(.param .b64 a);\n" KERNEL(
                        "{ .param .b64 a; .param .b32 b; st.param.b64 [a], %rd0; call (b), "
                        "vprintg, (a); } ret;")),
        WS_PTX_E_NOTFOUND);
    assert_non_null(strstr(f->diags.v[0].text, "vprintg"));
}

/* Blocks that wait for each other all go on, in whatever steps they are run. */
static void test_blocks_wait_for_each_other(void **state)
{
    struct fix *f = *state;
    fix_must_load(f, HEAD ".global .u32 here;\n.visible .entry k(.param .u64 out)\n{\n.reg .pred "
                          "%p<3>; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n"
                          "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra SYNC; "
                          "atom.global.add.u32 %r2, [here], 1; WAIT: ld.acquire.gpu.global.u32 "
                          "%r3, [here]; setp.lt.u32 %p2, %r3, 8; @%p2 bra WAIT;\n"
                          "SYNC: bar.sync 0; mov.u64 %rd2, %clock64; mov.u64 %rd3, %clock64; "
                          "setp.lt.u64 %p2, %rd2, %rd3; @!%p2 trap; ret;\n}\n");
    uint64_t out = 0;
    fix_run(f, &(struct launch){
                   .kernel = "k", .grid = {8}, .block = {64}, .params = &out, .co_resident = 8});
    f->step = 10;
    memset(fix_host(f, f->var_va[0]), 0, 4);
    fix_run(f, &(struct launch){
                   .kernel = "k", .grid = {8}, .block = {64}, .params = &out, .co_resident = 8});
}

/* Seven blocks of two warps wait for the eighth, in a loop of which a turn holds only a few rounds.
 * They must be seen to wait, long before their share of 100,000 instructions is used up. */
static void test_long_waiting_loop_is_seen(void **state)
{
    struct fix *f = *state;
    if (f->rewrite != WS_REWRITE_NONE || f->fence || f->fuse)
        skip(); /* counts are the rewritten text's */
    f->step = 100000;
    fix_must_load(
        f, HEAD ".global .u32 flag;\n" KERNEL(
               "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 7; @%p1 bra RAISE;\n"
               "WAIT: ld.volatile.global.u32 %r2, [flag];\n"
               "xor.b32 %r3, %r2, %r0; xor.b32 %r4, %r3, %r1; xor.b32 %r5, %r4, %r0; xor.b32 %r6, "
               "%r5, %r1; xor.b32 %r7, %r6, %r0; xor.b32 %r8, %r7, %r1; xor.b32 %r9, %r8, %r3;\n"
               "setp.eq.u32 %p1, %r2, 0; @%p1 bra WAIT; st.global.u32 [%rd1], %r9; ret;\n"
               "RAISE: st.volatile.global.u32 [flag], 1; ret;"));
    uint64_t out = fix_alloc(f, 4096), sum = 0;
    fix_run(f, &(struct launch){
                   .kernel = "k", .grid = {8}, .block = {64}, .params = &out, .co_resident = 8});
    for (int k = 0; k < _WS_WORK_N; k++)
        sum += f->work.n_warp_insns[k];
    assert_in_range(sum, 100, 10000);
}

static void test_work_is_counted(void **state)
{
    if (((struct fix *)*state)->rewrite != WS_REWRITE_NONE || ((struct fix *)*state)->fence ||
        ((struct fix *)*state)->fuse)
        skip(); /* lines and counts are the rewritten text\'s */
    struct fix *f = *state;
    run(f,
        HEAD KERNEL("setp.lt.u32 %p1, %r0, 8; @!%p1 bra OUT; ld.global.f32 %f1, [%rd1]; add.f32 "
                    "%f1, %f1, %f1; st.global.f32 [%rd1], %f1; OUT: ret;"),
        40, WS_DEV_OK);
    /* warp 0: 4 + 2 + 3 + 1, warp 1: 4 + 2 + 1; lanes: 40 * 7 + 8 * 3 */
    assert_int_equal(f->work.n_thread_insns, 40 * 7 + 8 * 3);
    uint64_t sum = 0;
    for (int k = 0; k < _WS_WORK_N; k++)
        sum += f->work.n_warp_insns[k];
    assert_int_equal(sum, 10 + 7);
    assert_int_equal(f->work.n_warp_insns[WS_WORK_FP32], 1);
    assert_int_equal(f->work.n_global_loads, 1);
    assert_int_equal(f->work.n_load_sectors, 1);
    assert_int_equal(f->work.n_store_sectors, 1);
    run(f,
        HEAD KERNEL("mul.wide.u32 %rd3, %r0, 128; add.u64 %rd3, %rd3, %rd0; ld.global.u32 %r1, "
                    "[%rd3]; ld.global.u32 %r1, [%rd0]; xor.b32 %r2, %r0, 31; mul.wide.u32 %rd3, "
                    "%r2, 64; add.u64 %rd3, %rd3, %rd0; ld.global.u32 %r1, [%rd3]; ret;"),
        32, WS_DEV_OK);
    assert_int_equal(f->work.n_load_sectors, 32 + 1 + 32);
}

static int group_setup(void **state)
{
    (void)state;
    return 0;
}

/* Lanes 0 to 6 wait in f for lane 7, which exits last; meanwhile the others come to the same place
 * for another meeting. */
static void test_two_meetings_at_one_place(void **state)
{
    uint32_t *out =
        run(*state,
            ".version 7.5\n.target sm_80\n.address_size 64\n"
            ".func (.param .b32 s) f(.param .b32 x, .param .b32 m)\n{\n.reg .b32 %r<4>;\n"
            "ld.param.b32 %r0, [x]; ld.param.b32 %r1, [m]; redux.sync.add.s32 %r2, %r0, %r1; "
            "st.param.b32 [s], %r2; ret;\n}\n" KERNEL(
                "mov.u32 %r5, 0; setp.gt.u32 %p1, %r0, 7; @%p1 bra ALL; setp.eq.u32 %p2, %r0, 7; "
                "@%p2 bra OUT;\n"
                "{ .param .b32 x, m, s; st.param.b32 [x], %r0; st.param.b32 [m], 0xff; call (s), "
                "f, (x, m); ld.param.b32 %r5, [s]; }\n"
                "ALL: { .param .b32 x, m, s; st.param.b32 [x], %r0; st.param.b32 [m], -1; call "
                "(s), f, (x, m); ld.param.b32 %r6, [s]; }\n"
                "mad.lo.u32 %r5, %r5, 1000, %r6; OUT: st.global.u32 [%rd1], %r5; ret;"),
            32, WS_DEV_OK);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], i == 7 ? 0 : i < 7 ? 21 * 1000 + 489 : 489);
}

int main(void)
{
    static const char *const isas[] = {"sse2", "avx2", "avx512"};
    int bad = 0;
    for (unsigned v = 0; v < 3; v++) {
        setenv("WS_SOFT_ISA", isas[v], 1);
        if (strcmp(ws_exec_isa(), isas[v]) != 0)
            continue; /* the processor lacks it */
#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)
        const struct CMUnitTest tests[] = {
            T(test_nested_divergence_meets_again),
            T(test_cold_block_meets_again),
            T(test_early_exit_and_barrier),
            T(test_warps_keep_pace),
            T(test_spin_lock_between_lanes_ends),
            T(test_lane_waits_for_lane),
            T(test_lane_waits_for_lane_by_adding_zero),
            T(test_shuffles),
            T(test_shuffle_from_lanes_that_are_not_there),
            T(test_shuffle_waits_for_its_lanes),
            T(test_two_meetings_at_one_place),
            T(test_votes_and_matches),
            T(test_named_barriers_and_reductions),
            T(test_atomics),
            T(test_recursion),
            T(test_endless_recursion_overflows),
            T(test_indirect_calls),
            T(test_struct_arguments_and_local_memory),
            T(test_constants_and_initialised_variables),
            T(test_brx),
            T(test_special_registers_in_three_dimensions),
            T(test_vector_loads_of_all_widths),
            T(test_asynchronous_copies),
            T(test_faults),
            T(test_assertion_names_itself),
            T(test_printf),
            T(test_what_is_missing_is_named),
            T(test_blocks_wait_for_each_other),
            T(test_long_waiting_loop_is_seen),
            T(test_work_is_counted),
        };
        bad += cmocka_run_group_tests_name(isas[v], tests, group_setup, NULL);
    }
    return bad;
}
