// SPDX-License-Identifier: Apache-2.0
/* Kernels in the interpreter and compiled: the same memory, counts, faults and words. Skipped where
 * LLVM's library is not installed. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "device/payer.h"
#include "device/soft/exec/reuse.h"
#include "device/soft/jit/code.h"
#include "device/soft/jit/jit.h"
#include "device/soft/jit/llvm.h"
#include "tests/unit/exec/fixture.h"

#define HEAD                                                                                       \
    ".version 8.0\n.target sm_80\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n"                                         \
    ".reg .pred %p<8>; .reg .b32 %r<32>; .reg .f32 %f<16>; .reg .b64 %x<24>;\n"                    \
    ".shared .align 16 .b8 sh[4096];\n"                                                            \
    "ld.param.u64 %x0, [p]; cvta.to.global.u64 %x0, %x0; ld.param.u32 %r0, [n];\n"                 \
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x;\n"                          \
    "mad.lo.s32 %r4, %r3, %r2, %r1; mul.wide.s32 %x1, %r4, 4; add.s64 %x2, %x0, %x1;\n"
#define TAIL "ret;\n}\n"
enum { BYTES = 1 << 16 };

struct outcome {
    uint8_t memory[BYTES];
    struct ws_exec_work work;
    enum ws_dev_error error;
    char text[192];
};

/* For the next run. */
static struct ws_exec_work *works_of_blocks;
static bool blocks_one_by_one;
static struct ws_reuse *recorded;

static void run(const char *how, const char *body, const struct launch *l, uint32_t n,
                struct outcome *ret)
{
    struct fix f;
    char ptx[8192];
    setenv("WS_SOFT_JIT", how, 1);
    fix_init(&f);
    f.unordered = true;
    f.works = works_of_blocks;
    f.one_by_one = blocks_one_by_one;
    f.reuse = recorded;
    snprintf(ptx, sizeof(ptx), "%s%s%s", HEAD, body, TAIL);
    fix_must_load(&f, ptx);
    struct {
        uint64_t va;
        uint32_t n;
    } params = {fix_alloc(&f, BYTES), n};
    uint32_t *words = fix_host(&f, params.va);
    for (uint32_t k = 0; k < BYTES / 4; k++)
        words[k] = k * 2654435761u >> 7;
    struct launch with = *l;
    with.kernel = "k";
    with.params = &params;
    memset(ret, 0, sizeof(*ret));
    fix_launch(&f, &with);
    memcpy(ret->memory, words, BYTES);
    ret->work = f.work;
    ret->error = f.error;
    snprintf(ret->text, sizeof(ret->text), "%s", f.text);
    fix_deinit(&f);
    unsetenv("WS_SOFT_JIT");
}

static void compare(const char *body, const struct launch *l, uint32_t n)
{
    if (!ws_llvm_open())
        skip();
    struct outcome *want = calloc(1, sizeof(*want)), *is = calloc(1, sizeof(*is));
    struct ws_jit_totals before = ws_jit_totals();
    assert_true(want && is);
    run("never", body, l, n, want);
    assert_int_equal(ws_jit_totals().n_compiled, before.n_compiled);
    run("always", body, l, n, is);
    assert_int_equal(ws_jit_totals().n_compiled, before.n_compiled + 1);
    assert_int_equal(ws_jit_totals().n_refused, before.n_refused);
    assert_int_equal(is->error, want->error);
    assert_string_equal(is->text, want->text);
    assert_memory_equal(is->memory, want->memory, BYTES);
    assert_memory_equal(&is->work, &want->work, sizeof(is->work));
    free(want);
    free(is);
}

#define ROW(blocks, threads)                                                                       \
    &(struct launch)                                                                               \
    {                                                                                              \
        .grid = {blocks, 1, 1}, .block = { threads, 1, 1 }                                         \
    }

static void test_consecutive_addresses(void **state)
{
    static const char body[] = "setp.ge.u32 %p0, %r4, %r0; @%p0 bra done;\n"
                               "ld.global.f32 %f0, [%x2]; ld.global.f32 %f1, [%x2+8192];\n"
                               "fma.rn.f32 %f2, %f0, 0f40000000, %f1;\n"
                               "st.global.f32 [%x2+16384], %f2;\ndone:\n";
    (void)state;
    compare(body, ROW(8, 64), 500);
    compare(body, ROW(5, 96), 1000);
    compare(body, ROW(3, 40), 1000); /* a warp with eight lanes */
}

/* Lanes that part from each other in groups: alone, in fours, in eights, in halves. Each group has
 * a row that tells its lanes apart, rows of each width, predicates and its own number of turns. */
static void test_groups_of_lanes(void **state)
{
    static const char body[] =
        ".reg .f64 %d<4>; .reg .b16 %h<4>;\n"
        "mov.u32 %r5, %laneid; mov.u32 %r10, %lanemask_lt; mov.u32 %r6, 0; mov.u64 %x5, 3;\n"
        "cvt.rn.f64.u32 %d1, %r4; cvt.u16.u32 %h1, %r4; mul.wide.s32 %x3, %r4, 8;\n"
        "add.s64 %x3, %x0, %x3; shr.u32 %r7, %r5, %r0; mov.u32 %r8, 0;\nagain:\n"
        "setp.ne.u32 %p1, %r7, %r8; @%p1 bra next; and.b32 %r9, %r5, 3;\nloop:\n"
        "mad.lo.s32 %r6, %r6, 5, %r1; xor.b32 %r6, %r6, %r10; mul.wide.u32 %x6, %r6, %r4;\n"
        "add.s64 %x5, %x5, %x6; mul.lo.s16 %h1, %h1, 9; add.s16 %h1, %h1, 1;\n"
        "setp.lt.u32 %p2, %r6, %r10; selp.b32 %r11, %r6, %r9, %p2; add.s32 %r6, %r6, %r11;\n"
        "setp.gt.s64 %p3, %x5, %x6; xor.pred %p3, %p3, %p2; @%p3 add.s32 %r6, %r6, 77;\n"
        "fma.rn.f64 %d1, %d1, %d1, 0d3ff0000000000000; setp.gt.f64 %p6, %d1, 0d4090000000000000;\n"
        "@%p6 sqrt.rn.f64 %d1, %d1; ld.global.u32 %r12, [%x2]; add.s32 %r6, %r6, %r12;\n"
        "sub.s32 %r9, %r9, 1; setp.ge.s32 %p4, %r9, 0; @%p4 bra loop;\nnext:\n"
        "add.s32 %r8, %r8, 1; setp.lt.u32 %p5, %r8, 32; @%p5 bra again;\n"
        "st.global.u32 [%x2+16384], %r6; st.global.u64 [%x3+32768], %x5;\n"
        "st.global.f64 [%x3+40960], %d1; cvt.u32.u16 %r13, %h1; st.global.u32 [%x2+57344], %r13;\n";
    (void)state;
    compare(body, ROW(2, 64), 0);
    compare(body, ROW(2, 64), 2);
    compare(body, ROW(1, 40), 3);
    compare(body, ROW(1, 32), 4);
    compare(body, ROW(2, 8), 1);
}

/* One lane alone: what it reads of the warp's own rows, predicates that other lanes have beside its
 * own, rows of each width, a store, and a number of turns. With n = 40 no lane goes there; with
 * blocks of 33 threads one has a warp for itself. */
static void test_a_lane_alone(void **state)
{
    static const char body[] =
        ".reg .b16 %h<4>; .reg .f64 %d<4>;\n"
        "and.b32 %r5, %r4, 31; and.b32 %r6, %r4, 5; setp.gt.u32 %p2, %r6, 1; mov.u32 %r7, %r4;\n"
        "xor.b32 %r8, %r4, 2; and.b32 %r8, %r8, 2; setp.ne.u32 %p3, %r8, 0; cvt.u16.u32 %h1, %r4;\n"
        "cvt.rn.f64.u32 %d1, %r4; mul.wide.u32 %x3, %r4, 8; mov.u64 %x5, %x3; mov.u32 %r9, %r4;\n"
        "setp.eq.u32 %p1, %r5, %r0; @!%p1 bra met;\nagain:\n"
        "mov.u32 %r10, %tid.x; mov.u32 %r11, %laneid; mov.u32 %r12, %lanemask_lt;\n"
        "mad.lo.u32 %r7, %r7, %r10, %r11; xor.b32 %r7, %r7, %r12; xor.pred %p2, %p2, %p3;\n"
        "@%p2 add.u32 %r7, %r7, 13; @!%p2 mul.lo.u32 %r7, %r7, 17; selp.b32 %r13, %r7, %r9, %p3;\n"
        "setp.lt.u32 %p3, %r13, %r7; mul.lo.u16 %h1, %h1, 7; add.s64 %x5, %x5, %x5;\n"
        "cvt.u64.u32 %x6, %r13; xor.b64 %x5, %x5, %x6; fma.rn.f64 %d1, %d1, %d1, %d1;\n"
        "st.global.u32 [%x2+8192], %r7; ld.global.u32 %r14, [%x2]; add.u32 %r7, %r7, %r14;\n"
        "add.u32 %r9, %r9, 5; and.b32 %r15, %r9, 63; setp.gt.u32 %p4, %r15, 4; @%p4 bra again;\n"
        "met:\nadd.u32 %r7, %r7, %r9; selp.b32 %r16, 1, 0, %p2; selp.b32 %r17, 2, 0, %p3; or.b32 "
        "%r16, %r16, %r17;\n"
        "cvt.u32.u16 %r18, %h1; mad.lo.u32 %r16, %r18, 4, %r16; st.global.u32 [%x2+16384], %r16;\n"
        "st.global.u32 [%x2+24576], %r7; add.s64 %x3, %x0, %x3; st.global.u64 [%x3+32768], %x5;\n"
        "st.global.f64 [%x3+49152], %d1;\n";
    (void)state;
    compare(body, ROW(2, 64), 0);
    compare(body, ROW(2, 64), 31);
    compare(body, ROW(3, 40), 7);
    compare(body, ROW(2, 33), 0);
    compare(body, ROW(2, 64), 40);
    compare(body, ROW(2, 16), 9);
}

/* Groups that have parted meet again while other lanes have ended: the warp is not whole then. */
static void test_groups_without_the_rest(void **state)
{
    static const char body[] =
        "mov.u32 %r5, %laneid; and.b32 %r6, %r5, 1; setp.ne.u32 %p1, %r6, 0; @%p1 ret;\n"
        "mov.u32 %r7, %r4; setp.gt.u32 %p2, %r5, %r0; @%p2 bra met;\n"
        "mad.lo.s32 %r7, %r7, 7, %r5; and.b32 %r8, %r7, 64; setp.eq.u32 %p3, %r8, 0;\n"
        "@%p3 add.s32 %r7, %r7, 9;\nmet:\n"
        "mad.lo.s32 %r7, %r7, 3, %r5; setp.lt.u32 %p4, %r7, 90; selp.b32 %r8, %r7, %r5, %p4;\n"
        "st.global.u32 [%x2], %r8;\n";
    (void)state;
    compare(body, ROW(2, 64), 6);
    compare(body, ROW(2, 64), 20);
}

/* What both ways record of the memory that is touched. */
static void compare_recorded(const char *body, const struct launch *l, uint32_t n)
{
    static const struct ws_reuse_cache cache = {
        .l1_bytes = 65536, .l2_bytes = 1 << 22, .n_sms = 1, .blocks_per_sm = 1};
    static const char *const hows[] = {"never", "always"};
    struct ws_reuse *r[2];
    struct outcome *unused = calloc(1, sizeof(*unused));
    assert_non_null(unused);
    if (!ws_llvm_open())
        skip();
    for (int k = 0; k < 2; k++) {
        recorded = r[k] = ws_reuse_new(&cache, l->grid[0]);
        assert_non_null(r[k]);
        run(hows[k], body, l, n, unused);
    }
    recorded = NULL;
    assert_memory_equal(r[0], r[1], sizeof(*r[0]));
    free(r[0]);
    free(r[1]);
    free(unused);
}

/* Loads and stores of one lane alone, of each width; by n / 32 some are misaligned, or outside of
 * shared or of global memory. */
static void test_memory_of_a_lane_alone(void **state)
{
    static const char body[] =
        ".reg .b16 %h<6>;\n"
        "and.b32 %r5, %r0, 31; shr.u32 %r6, %r0, 5; mov.u32 %r7, sh; shl.b32 %r8, %r1, 4;\n"
        "add.u32 %r7, %r7, %r8; cvt.u64.u32 %x3, %r1; st.shared.v2.u64 [%r7], {%x1, %x3};\n"
        "mul.wide.u32 %x4, %r4, 8; add.s64 %x4, %x0, %x4; mov.u32 %r9, 3; bar.sync 0;\n"
        "and.b32 %r10, %r1, 31; setp.ne.u32 %p1, %r10, %r5; @%p1 bra met;\n"
        "setp.lt.u32 %p2, %r6, 64; selp.b32 %r11, %r6, 0, %p2; add.u32 %r7, %r7, %r11;\n"
        "cvt.u64.u32 %x5, %r6; sub.s64 %x6, %x5, 64; selp.b64 %x5, 0, %x6, %p2;\n"
        "add.s64 %x4, %x4, %x5;\nagain:\n"
        "ld.shared.u32 %r12, [%r7+4]; ld.shared.u8 %h1, [%r7+3]; ld.shared.u16 %h2, [%r7+2];\n"
        "ld.shared.u64 %x7, [%r7+8]; cvt.u32.u16 %r13, %h1; cvt.u32.u16 %r14, %h2;\n"
        "add.u32 %r12, %r12, %r13; add.u32 %r12, %r12, %r14; cvt.u64.u32 %x8, %r12;\n"
        "add.s64 %x7, %x7, %x8; st.shared.u64 [%r7+8], %x7; st.shared.u32 [%r7+4], %r12;\n"
        "st.shared.u8 [%r7+1], %h2; st.shared.u16 [%r7+2], %h1; ld.global.u64 %x9, [%x4+8192];\n"
        "ld.global.u8 %h3, [%x4+8193]; ld.global.u16 %h4, [%x4+2]; ld.global.u32 %r15, [%x4+4];\n"
        "cvt.u32.u16 %r16, %h3; add.u32 %r15, %r15, %r16; add.s64 %x9, %x9, %x7;\n"
        "st.global.u64 [%x4+8192], %x9; st.global.u32 [%x4+16384], %r15;\n"
        "st.global.u8 [%x4+24576], %h4; st.global.u16 [%x4+24578], %h3;\n"
        "sub.u32 %r9, %r9, 1; setp.ne.u32 %p3, %r9, 0; @%p3 bra again;\nmet:\n"
        "bar.sync 0; ld.shared.v2.u64 {%x7, %x8}, [%r7]; xor.b64 %x7, %x7, %x8;\n"
        "st.global.u64 [%x4+32768], %x7;\n";
    (void)state;
    compare(body, ROW(2, 64), 3);
    compare(body, ROW(3, 33), 0);
    compare(body, ROW(2, 16), 9);
    compare(body, ROW(2, 64), 2 << 5);        /* misaligned in shared memory */
    compare(body, ROW(1, 64), 8 << 5 | 1);    /* the next lane's, aligned */
    compare(body, ROW(1, 256), 56 << 5 | 31); /* outside of it, unless it is larger */
    compare(body, ROW(2, 64), (64 + 4) << 5); /* misaligned in global memory */
    compare(body, ROW(2, 64), (64 + 50000) << 5);
    compare_recorded(body, ROW(4, 256), 3);
}

/* Without an instruction for it a multiply-add is rounded twice: sums that are nearly halfway
 * between two floats, of usual size and below, above and beside zero; then anything. */
static void test_multiply_add_without_its_instruction(void **state)
{
    static const char body[] =
        "mul.lo.u32 %r5, %r4, -1640531535; and.b32 %r6, %r5, 0x007ff800; shl.b32 %r7, %r5, 11;\n"
        "and.b32 %r7, %r7, 0x007ff000; or.b32 %r6, %r6, 0x3f800000; or.b32 %r7, %r7, 0x3f800000;\n"
        "and.b32 %r8, %r5, 0x80000000; or.b32 %r8, %r8, 0x20000000; mov.b32 %f0, %r6;\n"
        "mov.b32 %f1, %r7; mov.b32 %f2, %r8; fma.rn.f32 %f3, %f0, %f1, %f2;\n"
        "sub.s32 %r6, %r6, %r0; sub.s32 %r7, %r7, 0x23000000; and.b32 %r9, %r5, 0x8000007f;\n"
        "mov.b32 %f4, %r6; mov.b32 %f5, %r7; mov.b32 %f6, %r9; fma.rn.f32 %f7, %f4, %f5, %f6;\n"
        "neg.f32 %f8, %f3; fma.rn.f32 %f8, %f0, %f1, %f8; ld.global.f32 %f9, [%x2];\n"
        "mov.b32 %f10, %r5; ld.global.f32 %f11, [%x2+4]; fma.rn.f32 %f12, %f9, %f10, %f11;\n"
        "and.b32 %r10, %r5, 0x800000ff; or.b32 %r10, %r10, 0x00400000; mov.b32 %f13, %r10;\n"
        "fma.rn.f32 %f14, 0f1a000001, 0f19fffffe, %f13; st.global.f32 [%x2+49152], %f14;\n"
        "st.global.f32 [%x2+8192], %f3; st.global.f32 [%x2+16384], %f7;\n"
        "st.global.f32 [%x2+24576], %f8; st.global.f32 [%x2+32768], %f12;\n"
        "setp.lt.u32 %p1, %r1, 9; @!%p1 bra done; fma.rn.f32 %f12, %f0, %f1, %f2;\n"
        "setp.eq.u32 %p1, %r1, 5; @!%p1 bra few; fma.rn.f32 %f12, %f12, %f1, %f2; few:\n"
        "st.global.f32 [%x2+40960], %f12; done:\n";
    (void)state;
    setenv("WS_SOFT_ISA", "sse2", 1);
    compare(body, ROW(8, 256), 0x20000000);
    compare(body, ROW(8, 256), 0x27800000);
    compare(body, ROW(8, 256), 0x28000000);
    unsetenv("WS_SOFT_ISA");
}

static void test_uniform_loop_and_tile(void **state)
{
    static const char body[] =
        "mov.u32 %r5, %tid.y; shl.b32 %r6, %r5, 6; shl.b32 %r7, %r1, 2; add.s32 %r8, %r6, %r7;\n"
        "mov.u32 %r9, sh; add.s32 %r10, %r9, %r8; add.s32 %r11, %r9, %r6; add.s32 %r12, %r9, %r7;\n"
        "mov.f32 %f0, 0f00000000; mov.u32 %r13, 0;\nagain:\n"
        "cvt.rn.f32.u32 %f1, %r8; st.shared.f32 [%r10], %f1; st.shared.f32 [%r10+1024], %f1;\n"
        "bar.sync 0;\n"
        "ld.shared.f32 %f2, [%r11]; ld.shared.f32 %f3, [%r12+1024]; fma.rn.f32 %f0, %f2, %f3, "
        "%f0;\n"
        "ld.shared.f32 %f2, [%r11+4]; ld.shared.f32 %f3, [%r12+1088]; fma.rn.f32 %f0, %f2, %f3, "
        "%f0;\n"
        "bar.sync 0; add.s32 %r13, %r13, 1; setp.lt.u32 %p0, %r13, %r0; @%p0 bra again;\n"
        "mad.lo.s32 %r14, %r5, 16, %r1; mad.lo.s32 %r14, %r3, 256, %r14;\n"
        "cvt.u64.u32 %x5, %r7; add.s64 %x6, %x0, %x5; ld.global.f32 %f5, [%x6+4096];\n"
        "cvt.rn.f32.u32 %f5, %r7; add.f32 %f0, %f0, %f5; ld.global.u32 %r15, [%x6+8];\n"
        "st.global.u32 [%x6+32768], %r15;\n"
        "mul.wide.u32 %x3, %r14, 4; add.s64 %x4, %x0, %x3; st.global.f32 [%x4], %f0;\n";
    (void)state;
    compare(body, &(struct launch){.grid = {4, 1, 1}, .block = {16, 16, 1}}, 40);
}

/* Addresses of which the code knows nothing: in a random order, at distances with gaps, and of one
 * place several times. */
static void test_scattered(void **state)
{
    static const char random_order[] =
        "mul.lo.u32 %r5, %r4, 2654435761; and.b32 %r5, %r5, 4095; mul.wide.u32 %x3, %r5, 4;\n"
        "add.s64 %x4, %x0, %x3; ld.global.u32 %r6, [%x4]; ld.global.u32 %r7, [%x4+16384];\n"
        "add.u32 %r8, %r6, %r7; st.global.u32 [%x4+32768], %r8; st.global.u32 [%x2+49152], %r6;\n";
    static const char apart[] =
        "mul.wide.u32 %x3, %r4, 24; add.s64 %x4, %x0, %x3; ld.global.u64 %x5, [%x4];\n"
        "ld.global.u32 %r6, [%x4+8]; st.global.u64 [%x4+32768], %x5;\n"
        "st.global.u32 [%x4+32776], %r6;\n";
    static const char places[] =
        "ld.global.u32 %r5, [%x2]; and.b32 %r5, %r5, 31; mul.wide.u32 %x3, %r5, 68;\n"
        "add.s64 %x4, %x0, %x3; ld.global.u32 %r6, [%x4]; st.global.u32 [%x2+32768], %r6;\n";
    (void)state;
    compare(random_order, ROW(8, 256), 0);
    compare(random_order, ROW(9, 40), 0); /* a warp with eight lanes */
    compare(apart, ROW(8, 128), 0);
    compare(places, ROW(8, 256), 0);
}

static void test_diverged_lanes(void **state)
{
    static const char body[] =
        "add.s32 %r5, %r4, 1; mov.u32 %r6, 0;\nagain:\n"
        "setp.eq.s32 %p0, %r5, 1; @%p0 bra done;\n"
        "and.b32 %r7, %r5, 1; setp.eq.s32 %p1, %r7, 0; @%p1 bra even;\n"
        "mad.lo.s32 %r5, %r5, 3, 1; xor.b32 %r6, %r6, %r5; bra next;\neven:\n"
        "shr.u32 %r5, %r5, 1;\n@%p1 add.s32 %r6, %r6, 7;\nnext:\n"
        "add.s32 %r6, %r6, 1; bra again;\ndone:\n"
        "selp.b32 %r8, %r6, %r5, %p1; st.global.u32 [%x2], %r6; st.global.u32 [%x2+8192], %r8;\n";
    (void)state;
    compare(body, ROW(4, 128), 0);
}

/* The lanes' values wrap in the middle of a warp, where the code counts on distances. */
static void test_wrapping_lanes(void **state)
{
    static const char body[] =
        "add.s32 %r5, %r1, %r0; cvt.s64.s32 %x3, %r5; mul.wide.s32 %x4, %r5, 12;\n"
        "cvt.u64.u32 %x5, %r5; mul.wide.u32 %x6, %r5, 12; add.s64 %x7, %x3, %x4;\n"
        "add.s64 %x8, %x5, %x6; shl.b64 %x9, %x1, 2; add.s64 %x10, %x0, %x9;\n"
        "st.global.v2.u64 [%x10], {%x7, %x8};\n";
    (void)state;
    compare(body, ROW(2, 64), 0x7fffffe0u + 9);
    compare(body, ROW(2, 64), 0xffffffe0u + 9);
    compare(body, ROW(2, 64), 1000);
}

static void test_warp_operations(void **state)
{
    static const char body[] =
        "shfl.sync.bfly.b32 %r5|%p0, %r4, 5, 31, -1; shfl.sync.down.b32 %r6, %r5, 3, 31, -1;\n"
        "and.b32 %r7, %r5, 2; setp.ne.u32 %p1, %r7, 0; vote.sync.ballot.b32 %r8, %p1, -1;\n"
        "add.u32 %r9, %r6, %r8; atom.global.add.u32 %r10, [%x0+60000], %r7;\n"
        "red.shared.add.u32 [sh], %r9; bar.sync 0; ld.shared.u32 %r11, [sh];\n"
        "st.global.u32 [%x2], %r9; st.global.u32 [%x2+16384], %r11;\n";
    (void)state;
    compare(body, ROW(2, 96), 0);
}

/* All lanes on one place, which is done at once, and what each lane finds; in memory and shared
 * memory, of both widths. Then the same where some lanes do it, and by address that is no multiple
 * of the width, which is a fault. */
static void test_atomics_on_one_place(void **state)
{
#define ONE(op, at, r) "atom.global." op " " r ", [%x0+" at "], "
#define OWN(op, at, r) "atom.shared." op " " r ", [sh+" at "], "
#define KEEP32(r)      "mad.lo.u32 %r9, %r9, 31, " r ";\n"
#define KEEP64(x)      "mad.lo.u64 %x9, %x9, 31, " x ";\n"
    static const char body[] =
        "mul.lo.u32 %r7, %r4, -1640531535; cvt.s64.s32 %x6, %r7; mul.lo.u64 %x6, %x6, %x6;\n"
        "mov.u32 %r9, 0; mov.u64 %x9, 0;\n" ONE("add.u32", "60000", "%r10") "%r7;" KEEP32(
            "%r10") ONE("min.u32", "60004", "%r10") "%r7;" KEEP32("%r10")
            ONE("max.u32", "60008", "%r10") "%r7;" KEEP32("%r10") ONE(
                "min.s32", "60012", "%r10") "%r7;" KEEP32("%r10") ONE("max.s32", "60016",
                                                                      "%r10") "%r7;" KEEP32("%r10")
                ONE("and.b32", "60020", "%r10") "%r7;" KEEP32("%r10") ONE(
                    "or.b32", "60024", "%r10") "%r7;" KEEP32("%r10") ONE("add.u64", "60032",
                                                                         "%x8") "%x6;" KEEP64("%x8")
                    ONE("min.u64", "60040", "%x8") "%x6;" KEEP64("%x8") ONE(
                        "max.u64", "60048", "%x8") "%x6;" KEEP64("%x8")
                        ONE("min.s64", "60056", "%x8") "%x6;" KEEP64("%x8") ONE(
                            "max.s64", "60064", "%x8") "%x6;" KEEP64("%x8")
                            OWN("add.u32", "0", "%r10") "%r7;" KEEP32("%r10") OWN(
                                "max.s32", "4", "%r10") "%r7;" KEEP32("%r10")
                                OWN("add.u64", "8", "%x8") "%x6;" KEEP64(
                                    "%x8") "red.global.add.u32 [%x0+60072], %r7; cvt.u32.u64 %r10, "
                                           "%x9;\n" KEEP32(
                                               "%r10") "setp.lt.u32 %p1, %r1, 11; @%p1 "
                                                       "red.global.add.u32 [%x0+60076], "
                                                       "1;\n"
                                                       "st.global.u32 [%x2], %r9; "
                                                       "setp.ne.u32 %p1, %r0, 0; @!%p1 bra "
                                                       "done;\n"
                                                       "cvt.u64.u32 %x8, %r0; add.s64 %x8, "
                                                       "%x0, %x8; atom.global.add.u32 "
                                                       "%r10, [%x8], 1;\n"
                                                       "done:\n";
#undef ONE
#undef OWN
#undef KEEP32
#undef KEEP64
    (void)state;
    compare(body, ROW(2, 64), 0);
    compare(body, ROW(2, 8), 0);
    compare(body, ROW(2, 41), 60080);
    compare(body, ROW(1, 32), 60081);      /* misaligned */
    compare(body, ROW(1, 32), 0x7ffffffc); /* outside */
}

/* Each lane on a place of its own, some on the same one; with n = 4 all on one, which only shows
 * when it runs. */
static void test_atomics_on_several_places(void **state)
{
    static const char body[] =
        "mul.lo.u32 %r7, %r4, -1640531535; cvt.s64.s32 %x6, %r7; mul.lo.u64 %x6, %x6, %x6;\n"
        "setp.eq.u32 %p0, %r0, 4; selp.b32 %r12, 0, 63, %p0; shr.u32 %r8, %r7, 25;\n"
        "and.b32 %r8, %r8, %r12; shl.b32 %r8, %r8, 5; mov.u32 %r6, sh; add.u32 %r6, %r6, %r8;\n"
        "setp.eq.u32 %p1, %r1, 5; selp.b32 %r11, %r0, 0, %p1; @%p0 mov.u32 %r11, 0;\n"
        "add.u32 %r8, %r8, %r11; cvt.u64.u32 %x3, %r8; add.s64 %x3, %x0, %x3; mov.u32 %r9, 0;\n"
        "red.global.add.u32 [%x3+49152], %r7; red.global.and.b32 [%x3+49156], %r7;\n"
        "red.global.or.b32 [%x3+49160], %r7; red.global.min.u32 [%x3+49164], %r7;\n"
        "red.global.max.s32 [%x3+49168], %r7; red.global.min.u64 [%x3+49176], %x6;\n"
        "red.global.max.s64 [%x3+53248], %x6; atom.global.min.s32 %r10, [%x3+53256], %r7;\n"
        "red.global.max.u32 [%x3+53260], %r7; red.global.max.u64 [%x3+53272], %x6;\n"
        "red.global.min.s64 [%x3+57352], %x6; atom.global.add.u32 %r10, [%x3+49172], %r7;\n"
        "mad.lo.u32 %r9, %r9, 31, %r10; atom.global.max.u32 %r10, [%x3+53264], %r7;\n"
        "mad.lo.u32 %r9, %r9, 31, %r10; atom.global.add.u64 %x8, [%x3+57344], %x6;\n"
        "cvt.u32.u64 %r10, %x8; mad.lo.u32 %r9, %r9, 31, %r10; st.shared.u64 [%r6], %x6;\n"
        "st.shared.u64 [%r6+8], %x6; st.shared.u64 [%r6+16], %x6; bar.sync 0;\n"
        "add.u32 %r6, %r6, %r11; red.shared.add.u32 [%r6], %r7; red.shared.max.u64 [%r6+8], %x6;\n"
        "atom.shared.min.s32 %r10, [%r6+4], %r7; mad.lo.u32 %r9, %r9, 31, %r10;\n"
        "atom.shared.and.b32 %r10, [%r6+16], %r7; mad.lo.u32 %r9, %r9, 31, %r10;\n"
        "atom.shared.or.b32 %r10, [%r6+20], %r7; mad.lo.u32 %r9, %r9, 31, %r10;\n"
        "atom.shared.add.u32 %r10, [%r6], %r7; mad.lo.u32 %r9, %r9, 31, %r10; bar.sync 0;\n"
        "ld.shared.u32 %r10, [%r6]; add.u32 %r9, %r9, %r10; st.global.u32 [%x2], %r9;\n";
    (void)state;
    compare(body, ROW(3, 64), 0);
    compare(body, ROW(3, 64), 4);
    compare(body, ROW(3, 96), 32);
    compare(body, ROW(3, 50), 0);
    compare(body, ROW(1, 16), 0);
    compare(body, ROW(2, 32), 1);          /* misaligned in one lane */
    compare(body, ROW(2, 32), 0x7ffffffc); /* outside */
    compare(body, ROW(2, 32), 2080);       /* of shared memory only, with what is added there */
}

/* Each lane anywhere in its own memory, of which there are 48 bytes. */
static void test_local_memory(void **state)
{
    static const char body[] =
        "{ .local .align 16 .b8 lm[40]; .reg .b16 %h<2>; mov.u64 %x4, lm; mov.u32 %r6, lm;\n"
        "mul.lo.u32 %r7, %r4, -1640531535; shr.u32 %r8, %r7, 30; shl.b32 %r8, %r8, 3;\n"
        "setp.eq.u32 %p1, %r1, 5; selp.b32 %r11, %r0, 0, %p1; cvt.u64.u32 %x6, %r11;\n"
        "cvt.u64.u32 %x5, %r8; add.s64 %x5, %x4, %x5; add.u32 %r6, %r6, %r8; mov.u32 %r9, 0;\n"
        "mov.u64 %x7, 0; st.local.u64 [%x4], %x7; st.local.u64 [%x4+8], %x7;\n"
        "st.local.u64 [%x4+16], %x7; st.local.u64 [%x4+24], %x7; st.local.u64 [%x4+32], %x7;\n"
        "st.local.u64 [%x5], %x1; st.local.u32 [%x5+4], %r7; ld.local.u32 %r10, [%x4+8];\n"
        "xor.b32 %r9, %r9, %r10; cvt.u16.u32 %h0, %r7; st.local.u16 [%x5+6], %h0;\n"
        "st.local.u8 [%x5+1], %r7; ld.local.u16 %h1, [%r6]; cvt.u32.u16 %r10, %h1;\n"
        "add.u32 %r9, %r9, %r10; ld.local.u64 %x7, [%r6]; cvt.u32.u64 %r10, %x7;\n"
        "xor.b32 %r9, %r9, %r10; shr.u64 %x7, %x7, 32; cvt.u32.u64 %r10, %x7;\n"
        "mad.lo.u32 %r9, %r9, 31, %r10; add.s64 %x5, %x5, %x6; ld.local.u32 %r10, [%x5+8];\n"
        "add.u32 %r9, %r9, %r10; st.local.u32 [%x5+4], %r9; ld.local.s8 %r10, [%x5+5];\n"
        "add.u32 %r9, %r9, %r10; st.global.u32 [%x2], %r9; }\n";
    (void)state;
    compare(body, ROW(3, 64), 0);
    compare(body, ROW(3, 40), 0);
    compare(body, ROW(2, 8), 4);
    compare(body, ROW(2, 32), 2);          /* misaligned in one lane */
    compare(body, ROW(2, 32), 64);         /* outside */
    compare(body, ROW(2, 32), 0xffffff00); /* far outside */
}

/* What a program counts by itself. */
static struct ws_exec_work work_of(const char *how, const char *body, uint32_t n)
{
    struct outcome *o = calloc(1, sizeof(*o));
    assert_non_null(o);
    run(how, body, ROW(16, 64), n, o);
    struct ws_exec_work w = o->work;
    assert_int_equal(o->error, 0);
    free(o);
    return w;
}

/* One lane has a way of its own; two on the same place count the same. */
static void test_one_lane(void **state)
{
    static const char body[] =
        "and.b32 %r5, %r1, 31; setp.lt.u32 %p0, %r5, %r0; shr.u32 %r6, %r4, 5;\n"
        "mul.wide.u32 %x3, %r6, 68; add.s64 %x3, %x0, %x3; shl.b32 %r6, %r6, 4; and.b32 %r6, %r6, "
        "1023;\n"
        "mov.u32 %r7, sh; add.u32 %r7, %r7, %r6; mov.u32 %r8, 7; mov.u64 %x5, 9;\n"
        "@%p0 st.global.u32 [%x3], %r8; @%p0 ld.global.u8 %r8, [%x3+70];\n"
        "@%p0 st.shared.u32 [%r7], %r8; @%p0 ld.shared.u64 %x5, [%r7+8];\n"
        "@%p0 st.volatile.shared.u64 [%r7], %x5; @%p0 red.global.xor.b32 [%x3+128], %r8;\n";
    (void)state;
    for (int k = 0; k < 2; k++) {
        const char *how = k ? "always" : "never";
        struct ws_exec_work one = work_of(how, body, 1), two = work_of(how, body, 2);
        assert_int_equal(one.n_global_loads, 32);
        assert_int_equal(one.n_load_sectors, 32);
        assert_int_equal(one.n_global_stores, two.n_global_stores);
        assert_int_equal(one.n_store_sectors, two.n_store_sectors);
        assert_int_equal(one.n_shared_accesses, 3 * 32);
        assert_int_equal(one.n_shared_loads, 32);
        assert_int_equal(one.n_shared_transactions, two.n_shared_transactions);
        assert_int_equal(one.n_atomics, 32);
        assert_int_equal(one.n_atomic_sectors, two.n_atomic_sectors);
    }
}

static uint64_t count_sectors(uint32_t mask, uint32_t shift)
{
    uint64_t n = 0;
    for (uint32_t warp = 0; warp < 32; warp++) {
        bool touched[BYTES / 32] = {false};
        for (uint32_t i = 0; i < 32; i++) {
            uint32_t at = (((warp * 32 + i) * 2654435761u >> 7 & mask) << shift) % BYTES / 32;
            n += !touched[at];
            touched[at] = true;
        }
    }
    return n;
}

/* Sectors that the lanes of scattered loads touch together, against a count of another kind. */
static void test_sectors(void **state)
{
    static const char body[] =
        "ld.global.u32 %r5, [%x2]; and.b32 %r6, %r0, 0xffffff; shr.u32 %r7, %r0, 24;\n"
        "and.b32 %r5, %r5, %r6; shl.b32 %r5, %r5, %r7; and.b32 %r5, %r5, 0xffff;\n"
        "cvt.u64.u32 %x3, %r5; add.s64 %x3, %x0, %x3; ld.global.u32 %r8, [%x3];\n";
    static const uint32_t masks[] = {0xffff, 0x3fff, 0x7ff, 0xff, 0x1f, 3, 0xff00, 0xf0f, 0};
    (void)state;
    for (size_t k = 0; k < sizeof(masks) / sizeof(masks[0]); k++)
        for (uint32_t shift = 2; shift < 10; shift++) {
            uint64_t want = count_sectors(masks[k], shift) + 32 * 4;
            assert_int_equal(work_of("never", body, masks[k] | shift << 24).n_load_sectors, want);
            if (k == 1 && ws_llvm_open())
                assert_int_equal(work_of("always", body, masks[k] | shift << 24).n_load_sectors,
                                 want);
        }
}

/* In all lanes and in some. */
static void test_sums_of_bytes(void **state)
{
    static const char body[] =
        "ld.global.u32 %r5, [%x2]; mul.lo.u32 %r6, %r4, -1640531535; add.u32 %r7, %r6, %r5;\n"
        "dp4a.u32.u32 %r8, %r5, %r6, %r7; dp4a.s32.u32 %r9, %r6, %r7, %r8;\n"
        "dp4a.u32.s32 %r10, %r7, %r9, %r5; dp4a.s32.s32 %r11, %r10, %r8, %r6;\n"
        "dp4a.u32.u32 %r12, %r11, 0x1d964d, 0; setp.lt.u32 %p0, %r1, 11; @%p0 bra few;\n"
        "bra end; few: dp4a.s32.u32 %r12, %r12, %r11, %r10; end: xor.b32 %r12, %r12, %r11;\n"
        "st.global.u32 [%x2], %r12;\n";
    (void)state;
    compare(body, ROW(4, 64), 0);
    compare(body, ROW(3, 40), 0);
}

/* Which lane asks which is known, or not; all and some lanes; votes in each way. */
static void test_shuffles_and_votes(void **state)
{
    static const char shuffles[] =
        "shfl.sync.up.b32 %r5|%p0, %r4, 5, 0, -1; shfl.sync.down.b32 %r6|%p1, %r4, 3, 0x181f, -1;\n"
        "shfl.sync.bfly.b32 %r7|%p2, %r5, 9, 0x081f, -1; shfl.sync.idx.b32 %r8|%p3, %r6, 7, "
        "0x1007, "
        "-1;\n"
        "mov.u32 %r20, 2; mov.u32 %r21, 0x1c1f; mov.u32 %r22, -1; mov.u32 %r23, 1;\n"
        "shfl.sync.idx.b32 %r9, %r4, %r6, 31, -1; bar.warp.sync %r22;\n"
        "shfl.sync.down.b32 %r9, %r9, %r20, %r21, %r22; setp.lt.u32 %p4, %r1, 7;\n"
        "@%p4 mov.u32 %r23, 3; shfl.sync.up.b32 %r9, %r9, %r23, 0, %r22;\n"
        "selp.b32 %r10, 1, 2, %p0; @%p1 add.u32 %r10, %r10, 4; @%p2 add.u32 %r10, %r10, 8;\n"
        "@!%p3 add.u32 %r10, %r10, 16; xor.b32 %r5, %r5, %r7; xor.b32 %r8, %r8, %r9;\n"
        "st.global.u32 [%x2], %r5; st.global.u32 [%x2+8192], %r8; st.global.u32 [%x2+16384], "
        "%r10;\n";
    static const char votes[] =
        "mul.lo.u32 %r5, %r4, 0x9e3779b1; setp.gt.s32 %p0, %r5, 0; setp.ge.u32 %p1, %r5, %r0;\n"
        "vote.sync.ballot.b32 %r6, %p0, -1; vote.sync.any.pred %p2, !%p1, -1;\n"
        "vote.sync.all.pred %p3, %p1, -1; vote.sync.uni.pred %p4, %p1, -1;\n"
        "vote.sync.ballot.b32 %r7, %p1, 0xff; popc.b32 %r8, %r6; mov.u32 %r9, 0;\n"
        "@%p2 add.u32 %r9, %r9, 1; @!%p3 add.u32 %r9, %r9, 2; @%p4 bra even;\n"
        "add.u32 %r9, %r9, 4;\neven: mad.lo.u32 %r9, %r8, 8, %r9; @!%p4 xor.b32 %r9, %r9, %r7;\n"
        "setp.lt.u32 %p5, %r1, 5; @%p5 bra out; vote.sync.ballot.b32 %r10, %p0, 0xffffffe0;\n"
        "add.u32 %r9, %r9, %r10;\nout: st.global.u32 [%x2], %r9; st.global.u32 [%x2+8192], %r6;\n";
    static const uint32_t threads[] = {8, 16, 24, 72};
    (void)state;
    for (size_t k = 0; k < sizeof(threads) / sizeof(threads[0]); k++) {
        compare(shuffles, ROW(3, threads[k]), 0);
        compare(votes, ROW(3, threads[k]), 0);
        compare(votes, ROW(3, threads[k]), 0x80000000u);
    }
}

/* ---- blocks one after another ---- */
enum { RUN_BLOCKS = 70 };
struct works {
    struct ws_exec_work of[RUN_BLOCKS];
    struct outcome all;
};

static void run_blocks(const char *how, bool one_by_one, const char *body, const struct launch *l,
                       uint32_t n, struct works *ret)
{
    static const struct ws_reuse_cache cache = {
        .l1_bytes = 65536, .l2_bytes = 1 << 22, .n_sms = 3, .blocks_per_sm = 4};
    memset(ret, 0, sizeof(*ret));
    works_of_blocks = ret->of;
    blocks_one_by_one = one_by_one;
    recorded = ws_reuse_new(&cache, RUN_BLOCKS);
    assert_non_null(recorded);
    run(how, body, l, n, &ret->all);
    free(recorded);
    recorded = NULL;
    works_of_blocks = NULL;
    blocks_one_by_one = false;
}

/* Each block by itself, several at a time, and those compiled. */
static void compare_blocks(const char *body, const struct launch *l, uint32_t n)
{
    if (!ws_llvm_open())
        skip();
    struct works *want = calloc(1, sizeof(*want)), *is = calloc(1, sizeof(*is));
    assert_true(want && is);
    run_blocks("never", true, body, l, n, want);
    for (int k = 0; k < 2; k++) {
        run_blocks(k ? "always" : "never", false, body, l, n, is);
        assert_int_equal(is->all.error, want->all.error);
        assert_string_equal(is->all.text, want->all.text);
        assert_memory_equal(is->all.memory, want->all.memory, BYTES);
        for (int b = 0; b < RUN_BLOCKS; b++)
            assert_memory_equal(&is->of[b], &want->of[b], sizeof(is->of[b]));
    }
    free(want);
    free(is);
}

#define BANK(at)  "ld.shared.u32 %r8, [%r6+" #at "]; xor.b32 %r7, %r7, %r8;\n"
#define BANKS(at) BANK(at) BANK(at + 4) BANK(at + 8) BANK(at + 12)
static void test_blocks_one_after_another(void **state)
{
    static const char *const bodies[] = {
        "ld.global.u32 %r5, [%x2]; add.u32 %r5, %r5, %r3; st.global.u32 [%x2], %r5;\n",
        /* the clock counts what the block has executed; each second block reads it, and of the
         * others each second one is longer than a turn */
        "mov.u32 %r5, 0; and.b32 %r6, %r3, 3; setp.eq.u32 %p0, %r6, 0; selp.b32 %r6, 40, 2, %p0;\n"
        "again: add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, %r6; @%p1 bra again;\n"
        "and.b32 %r7, %r3, 1; setp.eq.u32 %p2, %r7, 0; @%p2 bra end; mov.u32 %r5, %clock;\n"
        "ld.global.u32 %r6, [%x2]; mov.u32 %r7, %clock; shl.b32 %r7, %r7, 16; add.u32 %r5, %r5, "
        "%r7;\n"
        "end: st.global.u32 [%x2], %r5;\n",
        /* each fourth block is longer than a turn, each eighth has lanes that part */
        "mov.u32 %r5, 0; and.b32 %r6, %r3, 3; setp.eq.u32 %p0, %r6, 3; selp.b32 %r6, 40, 2, %p0;\n"
        "and.b32 %r7, %r3, 7; mul.lo.u32 %r8, %r1, %r7; shr.u32 %r8, %r8, 3;\n"
        "setp.eq.u32 %p1, %r7, 7; @%p1 add.u32 %r6, %r6, %r8; mov.u32 %r9, %r4;\n"
        "again: mad.lo.u32 %r9, %r9, 1664525, %r5; add.u32 %r5, %r5, 1;\n"
        "setp.lt.u32 %p2, %r5, %r6; @%p2 bra again; st.global.u32 [%x2], %r9;\n",
        /* shared memory, barriers, strong loads, atomics that the handler does */
        "shl.b32 %r5, %r1, 2; mov.u32 %r6, sh; add.u32 %r6, %r6, %r5; st.shared.u32 [%r6], %r3;\n"
        "bar.sync 0; ld.shared.u32 %r7, [%r6]; ld.volatile.global.u32 %r8, [%x0+32768];\n"
        "add.u32 %r7, %r7, %r8; atom.global.xor.b32 %r9, [%x2], %r3; add.u32 %r7, %r7, %r9;\n"
        "atom.global.cas.b32 %r10, [%x2], %r9, %r7; st.global.u32 [%x2+16384], %r10;\n"
        "atom.global.exch.b32 %r10, [%x2+24576], %ctaid.x; st.global.u32 [%x2+40960], %r10;\n",
        /* where the block is; nothing else is read */
        "mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z; mov.u32 %r7, %smid; mov.u32 %r8, "
        "%nctaid.x;\n"
        "mad.lo.u32 %r9, %r6, 7, %r5; mad.lo.u32 %r9, %r9, %r8, %r3; mad.lo.u32 %r9, %r9, %r2, "
        "%r1;\n"
        "mul.wide.u32 %x3, %r9, 4; add.s64 %x3, %x0, %x3; shl.b32 %r9, %r9, 8; add.u32 %r9, %r9, "
        "%r5;\n"
        "shl.b32 %r6, %r6, 4; add.u32 %r9, %r9, %r6; add.u32 %r9, %r9, %r3; add.u32 %r9, %r9, "
        "%r7;\n"
        "st.global.u32 [%x3], %r9;\n",
        /* banks of shared memory, which are looked at each time in the first accesses only */
        "shl.b32 %r5, %r1, 3; mov.u32 %r6, sh; add.u32 %r6, %r6, %r5; st.shared.u32 [%r6], %r3;\n"
        "mov.u32 %r7, 0;\n" BANKS(0) BANKS(64) BANKS(128) BANKS(192) "st.global.u32 [%x2], %r3;\n",
        /* block 40 may not do what it does */
        "setp.eq.u32 %p0, %r3, 40; selp.b32 %r5, 1073741824, 0, %p0; cvt.u64.u32 %x3, %r5;\n"
        "add.s64 %x3, %x3, %x2; st.global.u32 [%x3], %r3;\n",
    };
#ifdef __SANITIZE_ADDRESS__ /* LLVM takes most of the time, and takes three times as long */
    static const uint32_t threads[] = {8, 20, 64};
#else
    static const uint32_t threads[] = {1, 8, 20, 32, 64, 96};
#endif
    (void)state;
    for (size_t k = 0; k < sizeof(bodies) / sizeof(bodies[0]); k++)
        for (size_t t = 0; t < sizeof(threads) / sizeof(threads[0]); t++) {
            struct launch in_rows = {.grid = {5, 7, 2}, .block = {threads[t], 1, 1}};
            compare_blocks(bodies[k], ROW(RUN_BLOCKS, threads[t]), 0);
            if (k % 2 == 0)
                compare_blocks(bodies[k], &in_rows, 0);
        }
}

/* Blocks that are less than a warp, in which the lanes that exist are all of a whole one. */
/* Wide accesses to shared memory are made by a part of the warp at a time, also where the block has
 * no lanes for the other part. */
static void test_shared_memory_of_small_blocks(void **state)
{
    static const char body[] =
        "mov.u32 %r6, sh; mad.lo.u32 %r7, %r1, 8, %r6; mul.wide.s32 %x3, %r4, 8;\n"
        "add.s64 %x3, %x0, %x3; cvt.u64.u32 %x5, %r4; st.shared.u64 [%r7], %x5;\n"
        "mad.lo.u32 %r8, %r1, 16, %r6; ld.shared.u64 %x6, [%r7]; st.shared.u64 [%r8], %x6;\n"
        "ld.shared.v2.u64 {%x7, %x8}, [%r8]; ld.shared.u32 %r9, [%r7];\n"
        "cvt.u64.u32 %x9, %r9; add.s64 %x7, %x7, %x9; st.global.u64 [%x3+8192], %x7;\n";
    static const uint32_t threads[] = {1, 4, 8, 16, 20, 32, 40};
    (void)state;
    for (size_t k = 0; k < WS_ARRAY_SIZE(threads); k++)
        compare(body, ROW(3, threads[k]), 0);
}

static void test_small_blocks(void **state)
{
    static const char body[] =
        "shl.b32 %r5, %r1, 2; mov.u32 %r6, sh; add.u32 %r7, %r6, %r5; add.u32 %r8, %r2, -1;\n"
        "sub.u32 %r9, %r8, %r1; shl.b32 %r9, %r9, 2; add.u32 %r9, %r9, %r6; mov.u32 %r11, 0;\n"
        "again: ld.global.u32 %r10, [%x2]; st.volatile.shared.u32 [%r7], %r10; bar.sync 0;\n"
        "ld.volatile.shared.u32 %r12, [%r9]; bar.sync 0; add.u32 %r12, %r12, %r11;\n"
        "setp.gt.u32 %p0, %r11, 2; @!%p0 add.u32 %r12, %r12, 100; selp.b32 %r13, 5, 6, %p0;\n"
        "add.u32 %r12, %r12, %r13; st.global.u32 [%x2], %r12; add.u32 %r11, %r11, 1;\n"
        "setp.lt.u32 %p1, %r11, %r0; @%p1 bra again;\n"
        "setp.lt.u32 %p2, %r1, 3; @%p2 st.global.u32 [%x2+8192], %r12;\n";
    static const char beyond[] = "add.s64 %x2, %x2, 65504; st.global.u32 [%x2], %r4;\n";
    static const uint32_t threads[] = {1, 4, 8, 16, 20};
    (void)state;
    for (size_t k = 0; k < sizeof(threads) / sizeof(threads[0]); k++) {
        compare(body, ROW(6, threads[k]), 7);
        compare(beyond, ROW(6, threads[k]), 0);
    }
}

/* Each row of 16 threads reads one place, which the code finds when it runs; then one that is not
 * there, for the second row only. */
static void test_rows_of_threads(void **state)
{
    static const char body[] =
        "mov.u32 %r5, %tid.y; mul.lo.u32 %r6, %r5, %r0; mul.wide.u32 %x3, %r6, 4;\n"
        "add.s64 %x4, %x0, %x3; ld.global.u32 %r7, [%x4+4]; ld.global.f64 %fd0, [%x4+8];\n"
        "mov.b64 {%r8, %r9}, %fd0; add.u32 %r7, %r7, %r8; xor.b32 %r7, %r7, %r9;\n"
        "mad.lo.u32 %r10, %r5, 16, %r1; mul.wide.u32 %x5, %r10, 4; add.s64 %x5, %x0, %x5;\n"
        "st.global.u32 [%x5+32768], %r7;\n";
    static const char with_double[] = ".reg .f64 %fd<2>;\n";
    const struct launch tile = {.grid = {2, 1, 1}, .block = {16, 4, 1}};
    char all[2048];
    (void)state;
    snprintf(all, sizeof(all), "%s%s", with_double, body);
    compare(all, &tile, 0);
    compare(all, &tile, 2);
    compare(all, &tile, 6);
    compare(all, &tile, 1000);
    compare(all, &tile, 16383); /* the second row's 64-bit value is misaligned */
    compare(all, &tile, 1 << 20);
}

/* More warp instructions than the counts have bits for, if these were not written in between. */
static void test_turns(void **state)
{
    static const char body[] =
        "mov.u32 %r5, 0; mov.u32 %r6, %r4;\nagain:\n"
        "mad.lo.u32 %r6, %r6, 1664525, 1013904223; add.u32 %r5, %r5, 1;\n"
        "setp.lt.u32 %p0, %r5, %r0; @%p0 bra again;\nst.global.u32 [%x2], %r6;\n";
    (void)state;
    compare(body, ROW(2, 256), 200000);
}

static void test_faults(void **state)
{
    static const char beyond[] = "add.s64 %x2, %x2, 65336; st.global.u32 [%x2], %r4;\n";
    static const char odd[] = "add.s64 %x2, %x2, 2; ld.global.u32 %r5, [%x2]; "
                              "st.global.u32 [%x0], %r5;\n";
    static const char shared[] = "shl.b32 %r5, %r1, 6; st.shared.u32 [%r5], %r1;\n";
    static const char behind[] = "shl.b32 %r5, %r1, 2; st.shared.u32 [%r5+3904], %r1;\n";
    static const char before[] = "shl.b32 %r5, %r1, 2; ld.shared.u32 %r6, [%r5+-8];\n"
                                 "st.global.u32 [%x2], %r6;\n";
    static const char trapped[] = "setp.gt.u32 %p0, %r1, 40; @%p0 trap;\n";
    (void)state;
    compare(beyond, ROW(2, 64), 0);
    compare(odd, ROW(1, 64), 0);
    compare(shared, ROW(1, 128), 0);
    compare(behind, ROW(1, 64), 0);
    compare(before, ROW(1, 64), 0);
    compare(trapped, ROW(1, 64), 0);
}

static bool some_page_is_both(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    bool both = false;
    while (f && fgets(line, sizeof(line), f))
        both |= strstr(line, " rwx") != NULL;
    assert_non_null(f);
    fclose(f);
    return both;
}

static void test_no_page_is_writable_and_executable(void **state)
{
    struct outcome *o = calloc(1, sizeof(*o));
    (void)state;
    if (!ws_llvm_open())
        skip();
    run("always", "st.global.u32 [%x2], %r4;\n", ROW(1, 32), 0, o);
    assert_int_equal(o->error, WS_DEV_OK);
    assert_false(some_page_is_both());
    free(o);
}

enum { RIGHT = 42, NO_FILTER };

/* As MemoryDenyWriteExecute= in the daemon's unit: no memory may become executable that was not
 * when it was mapped (systemd.exec(5)). @no_files: nor are there files in memory. */
static bool enter_sandbox(bool no_files)
{
    struct sock_filter deny[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, no_files ? SYS_memfd_create : -1, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = WS_ARRAY_SIZE(deny), .filter = deny};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int run_in_sandbox(bool no_files, uint64_t n_compiled)
{
    struct outcome *o = calloc(1, sizeof(*o));
    uint32_t last;
    signal(SIGSEGV, SIG_DFL);
    if (!o || !enter_sandbox(no_files))
        return NO_FILTER;
    struct ws_jit_totals before = ws_jit_totals();
    run("always", "st.global.u32 [%x2], %r4;\n", ROW(1, 32), 0, o);
    memcpy(&last, o->memory + 31 * sizeof(last), sizeof(last));
    bool right = o->error == WS_DEV_OK && last == 31 &&
                 ws_jit_totals().n_compiled == before.n_compiled + n_compiled;
    free(o);
    return right ? RIGHT : 1;
}

static void check_in_sandbox(bool no_files, uint64_t n_compiled)
{
    int status;
    if (!ws_llvm_open())
        skip();
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(run_in_sandbox(no_files, n_compiled));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER)
        skip();
    assert_int_equal(WEXITSTATUS(status), RIGHT);
}

static void test_compiles_where_memory_must_not_become_executable(void **state)
{
    (void)state;
    check_in_sandbox(false, 1);
}

static void test_interprets_where_no_memory_can_be_executable(void **state)
{
    (void)state;
    check_in_sandbox(true, 0);
}

/* ---- tiers ---- */
static const uint32_t tier_block[3] = {64, 1, 1};

static void tiers_begin(struct fix *f, uint32_t **ret_words, struct ws_jit_code **ret)
{
    static const char ptx[] = HEAD
        "mov.u32 %r5, 0; mov.u32 %r6, %r4;\nagain:\n"
        "mad.lo.s32 %r6, %r6, 1664525, 1013904223; xor.b32 %r6, %r6, %r5; add.u32 %r5, %r5, 1;\n"
        "setp.lt.u32 %p0, %r5, %r0; @%p0 bra again;\nmov.u32 %r7, %ctaid.y;\n"
        "mul.wide.u32 %x3, %r7, 512; add.s64 %x2, %x2, %x3; st.global.u32 [%x2], %r6;\n"
        "atom.global.cas.b32 %r7, [%x2+16384], 0, %ctaid.x;\n" TAIL;
    setenv("WS_SOFT_JIT", "tiers", 1);
    fix_init(f);
    fix_must_load(f, ptx);
    *ret_words = fix_host(f, fix_alloc(f, BYTES));
    *ret = ws_jit_of(f->code, 0, tier_block, NULL);
    assert_non_null(*ret);
}

/* Launches the kernel, and sees that each of its threads has the right number, and the right place.
 * While the compiler is tried, each second block is interpreted: those have one %ctaid.x, and the
 * others another one. */
static void tiers_launch(struct fix *f, uint32_t *words)
{
    enum { TURNS = 2000, WIDTH = 2, HEIGHT = 4, ROW_THREADS = WIDTH * 64, PLACES = 4096 };
    struct {
        uint64_t va;
        uint32_t n;
    } params = {f->bufs[0].va, TURNS};
    memset(words, 0, BYTES);
    fix_launch(
        f, &(struct launch){
               .kernel = "k", .grid = {WIDTH, HEIGHT, 1}, .block = {64, 1, 1}, .params = &params});
    assert_int_equal(f->error, WS_DEV_OK);
    for (uint32_t i = 0; i < ROW_THREADS * HEIGHT; i++) {
        uint32_t v = i % ROW_THREADS;
        for (uint32_t n = 0; n < TURNS; n++)
            v = (v * 1664525u + 1013904223u) ^ n;
        assert_int_equal(words[i], v);
        assert_int_equal(words[PLACES + i], i % ROW_THREADS / 64);
    }
}

/* From the interpreter to the compiler while it is launched again and again, right at each time. */
static void test_tiers(void **state)
{
    struct fix f;
    uint32_t *words;
    struct ws_jit_code *j;
    (void)state;
    if (!ws_llvm_open())
        skip();
    tiers_begin(&f, &words, &j);
    assert_int_equal(ws_compiled_counts().n_cold, 1);
    int last = WS_JIT_COLD, seen = 1 << WS_JIT_COLD;
    while (last < WS_JIT_COMPILED) {
        tiers_launch(&f, words);
        int now = atomic_load(&j->tier);
        assert_true(now >= last);
        seen |= 1 << (last = now);
    }
    assert_true(seen >> WS_JIT_QUEUED & 1 || seen >> WS_JIT_TRIED & 1);
    assert_int_equal(last, WS_JIT_COMPILED);
    assert_true(j->score[0].n >= 8 && j->score[1].n >= 8);
    tiers_launch(&f, words);
    assert_int_equal(ws_compiled_counts().n_compiled, 1);
    assert_int_equal(ws_compiled_counts().n_cold, 0);
    fix_deinit(&f);
    assert_int_equal(ws_compiled_counts().n_compiled, 0);
    unsetenv("WS_SOFT_JIT");
}

/* A module that goes while its kernel is in the compiler's hands. */
static void test_unloaded_while_it_is_compiled(void **state)
{
    struct fix f;
    uint32_t *words;
    struct ws_jit_code *j;
    (void)state;
    if (!ws_llvm_open())
        skip();
    struct ws_jit_totals before = ws_jit_totals();
    tiers_begin(&f, &words, &j);
    while (atomic_load(&j->tier) == WS_JIT_COLD)
        tiers_launch(&f, words);
    fix_deinit(&f); /* the kernel waits for the thread, or the thread has it */
    tiers_begin(&f, &words, &j);
    while (atomic_load(&j->tier) < WS_JIT_TRIED)
        tiers_launch(&f, words);
    assert_in_range(ws_jit_totals().n_compiled, before.n_compiled + 1, before.n_compiled + 2);
    fix_deinit(&f);
    unsetenv("WS_SOFT_JIT");
}

/* LLVM gives up, which by itself would end the process: the kernel stays in the interpreter, and so
 * do those that come later. In a process of its own, in which nothing else is compiled. */
static __typeof__(ws_llvm.TargetMachineEmitToMemoryBuffer) emit_really;

/* Code for 64 bits on a processor that has 32: that ends LLVM. */
static llvm_bool give_up(llvm_machine t, llvm_module m, int kind, char **text, llvm_buffer *ret)
{
    static const char triple[] = "x86_64-pc-linux-gnu";
    llvm_context cx = ws_llvm.ContextCreate();
    llvm_module module = ws_llvm.ModuleCreateWithNameInContext("none", cx);
    llvm_type type = ws_llvm.FunctionType(ws_llvm.VoidTypeInContext(cx), NULL, 0, 0);
    llvm_value f = ws_llvm.AddFunction(module, "f", type);
    llvm_builder b = ws_llvm.CreateBuilderInContext(cx);
    llvm_target target;
    ws_llvm.PositionBuilderAtEnd(b, ws_llvm.AppendBasicBlockInContext(cx, f, ""));
    ws_llvm.BuildUnreachable(b);
    if (ws_llvm.GetTargetFromTriple(triple, &target, text))
        _exit(1);
    t = ws_llvm.CreateTargetMachine(target, triple, "i386", "", LLVM_OPTIMIZE_DEFAULT,
                                    LLVM_RELOC_STATIC, LLVM_CODE_MODEL_JIT);
    (void)emit_really(t, module, kind, text, ret);
    _exit(2); /* it did not give up */
}

static int go_on_without_llvm(void)
{
    struct fix f;
    uint32_t *words;
    struct ws_jit_code *j;
    if (!ws_llvm_open())
        return 1;
    emit_really = ws_llvm.TargetMachineEmitToMemoryBuffer;
    ws_llvm.TargetMachineEmitToMemoryBuffer = give_up;
    tiers_begin(&f, &words, &j);
    while (atomic_load(&j->tier) == WS_JIT_COLD)
        tiers_launch(&f, words);
    for (uint32_t n = 32; n >= 16;
         n /= 2) { /* one that may wait already, and one that comes later */
        struct ws_jit_code *other = ws_jit_of(f.code, 0, (const uint32_t[3]){n, 1, 1}, NULL);
        while (atomic_load(&other->tier) != WS_JIT_INTERPRETED) {
            ws_jit_ran(other, NULL, false, 1, UINT64_C(1) << 40);
            tiers_launch(&f, words);
        }
    }
    fix_deinit(&f);
    return 0;
}

static void test_llvm_gives_up(void **state)
{
    char *args[] = {"test_jit", "--llvm-gives-up", NULL};
    (void)state;
    if (!ws_llvm_open())
        skip();
    fix_run_again(args, 0);
}

/* Kernels of two users, which say of themselves that they have run for long. */
struct hot {
    struct fix f;
    struct ws_payer *payer[2];
};

static void hot_begin(struct hot *h, const char *ptx)
{
    setenv("WS_SOFT_JIT", "tiers", 1);
    fix_init(&h->f);
    fix_must_load(&h->f, ptx);
    for (int k = 0; k < 2; k++)
        assert_non_null(h->payer[k] = ws_payer_new());
}

static void hot_end(struct hot *h)
{
    fix_deinit(&h->f);
    for (int k = 0; k < 2; k++)
        ws_payer_unref(h->payer[k]);
    unsetenv("WS_SOFT_JIT");
}

static struct ws_jit_code *hot_kernel(struct hot *h, uint32_t kernel, uint32_t n, int user)
{
    struct ws_jit_code *j =
        ws_jit_of(h->f.code, kernel, (const uint32_t[3]){n, 1, 1}, h->payer[user]);
    assert_non_null(j);
    ws_jit_ran(j, h->payer[user], false, 1, UINT64_C(1) << 40);
    return j;
}

static void wait_for(struct ws_jit_code *j)
{
    while (atomic_load(&j->tier) <= WS_JIT_QUEUED)
        usleep(1000);
}

/* Whether LLVM's library is in the memory of this process. */
static bool has_library(void)
{
    char line[512];
    bool has = false;
    FILE *f = fopen("/proc/self/maps", "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        has |= strstr(line, "libLLVM") != NULL;
    fclose(f);
    return has;
}

/* In a process that has compiled nothing yet. Return: the step at which it was otherwise, or 0. */
static int open_library_late(void)
{
    static const char ptx[] = HEAD "st.global.u32 [%x2], %r4;\n" TAIL;
    struct hot h;
    hot_begin(&h, ptx);
    struct ws_jit_code *j = ws_jit_of(h.f.code, 0, tier_block, h.payer[0]);
    if (!j || ws_code_later_bytes(h.f.code) == 0)
        return 1;
    ws_jit_ran(j, h.payer[0], false, 1, 1);
    if (has_library())
        return 2;
    ws_jit_ran(j, h.payer[0], false, 1, UINT64_C(1) << 40);
    wait_for(j);
    bool is_there = ws_llvm_open();
    if (has_library() != is_there)
        return 3;
    if (atomic_load(&j->tier) != (is_there ? WS_JIT_TRIED : WS_JIT_INTERPRETED) ||
        (ws_compiled_counts().n_not[WS_NOT_COMPILER] == 0) != is_there)
        return 4;
    hot_end(&h);
    hot_begin(&h, ptx);
    if ((ws_code_later_bytes(h.f.code) > 0) != is_there)
        return 5;
    wait_for(hot_kernel(&h, 0, 32, 0));
    return (ws_compiled_counts().n_not[WS_NOT_COMPILER] == 0) == is_there ? 0 : 6;
}

/* The library takes memory, so that it is opened only for kernels that have run for long. What a
 * module is charged for its code is known before that. */
static void test_library_is_opened_late(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(open_library_late());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* A user whose kernels fill the queue keeps nobody waiting for more than one of them, and pays for
 * them. */
static void test_users_take_turns(void **state)
{
    struct hot h;
    struct ws_jit_code *many[8], *one;
    (void)state;
    if (!ws_llvm_open())
        skip();
    hot_begin(&h, HEAD "st.global.u32 [%x2], %r4;\n" TAIL);
    for (uint32_t n = 0; n < 8; n++)
        many[n] = hot_kernel(&h, 0, 8 + n, 0);
    one = hot_kernel(&h, 0, 32, 1);
    wait_for(one);
    assert_int_equal(atomic_load(&many[7]->tier), WS_JIT_QUEUED);
    assert_int_equal(atomic_load(&many[6]->tier), WS_JIT_QUEUED);
    wait_for(many[7]);
    assert_true(atomic_load(&h.payer[0]->work_ns) > 4 * atomic_load(&h.payer[1]->work_ns));
    assert_true(atomic_load(&h.payer[1]->work_ns) > 0);
    hot_end(&h);
}

/* A user has so many kernels in the queue; another one gets in. A module that is unloaded leaves no
 * kernel in the counts, though one of them is just being compiled. */
static void test_a_user_s_queue_is_bounded(void **state)
{
    enum { KERNELS = 80, STEPS = 20, ROOM = 65536, QUEUED = 64 };
    static char text[ROOM];
    struct hot h;
    (void)state;
    if (!ws_llvm_open())
        skip();
    int at = snprintf(text, sizeof(text), ".version 8.0\n.target sm_80\n.address_size 64\n");
    for (int k = 0; k < KERNELS; k++) {
        at += snprintf(text + at, sizeof(text) - (size_t)at,
                       ".visible .entry k%d() { .reg .b32 %%r;\nmov.u32 %%r, %%tid.x;\n", k);
        for (int n = 0; n < STEPS; n++)
            at += snprintf(text + at, sizeof(text) - (size_t)at, "popc.b32 %%r, %%r;\n");
        at += snprintf(text + at, sizeof(text) - (size_t)at, "ret; }\n");
    }
    hot_begin(&h, text);
    unsigned n_queued = 0;
    for (uint32_t k = 0; k < KERNELS - 1; k++)
        n_queued += atomic_load(&hot_kernel(&h, k, 32, 0)->tier) == WS_JIT_QUEUED;
    assert_in_range(n_queued, QUEUED / 2, QUEUED + 2);
    assert_int_equal(atomic_load(&hot_kernel(&h, KERNELS - 1, 32, 1)->tier), WS_JIT_QUEUED);
    hot_end(&h);
    assert_int_equal(ws_compiled_counts().n_waiting, 0);
}

/* Those that wait, those that have an operation without code, and those that were faster before. */
static void test_kernels_are_counted(void **state)
{
    struct hot h;
    (void)state;
    if (!ws_llvm_open())
        skip();
    hot_begin(&h, HEAD "trap;\n" TAIL
                       ".visible .entry b() { brkpt; ret; }\n.visible .entry c() { ret; }\n");
    struct ws_jit_code *odd = hot_kernel(&h, 1, 32, 0), *slow = hot_kernel(&h, 2, 32, 0);
    struct ws_compiled_counts c = ws_compiled_counts();
    assert_true(c.n_waiting + c.n_compiled <= 2);
    wait_for(odd);
    wait_for(slow);
    c = ws_compiled_counts();
    assert_int_equal(c.n_waiting, 0);
    assert_int_equal(c.n_compiled, 1);
    assert_int_equal(c.n_not[WS_NOT_OPERATION], 1);
    for (unsigned k = 0; k < 16; k++)
        ws_jit_ran(slow, NULL, k % 2, 1, k % 2 ? 2000 : 1000);
    c = ws_compiled_counts();
    assert_int_equal(c.n_compiled, 0);
    assert_int_equal(c.n_not[WS_NOT_FASTER], 1);
    hot_end(&h);
    c = ws_compiled_counts();
    assert_int_equal(c.n_not[WS_NOT_FASTER] + c.n_not[WS_NOT_OPERATION] + c.n_cold, 0);
}

/* What exceeds the memory that was told when the module was loaded is not kept. */
static void test_memory_of_a_module_is_bounded(void **state)
{
    struct hot h;
    (void)state;
    if (!ws_llvm_open())
        skip();
    hot_begin(&h, HEAD "st.global.u32 [%x2], %r4;\n" TAIL);
    uint64_t most = ws_code_later_bytes(h.f.code), held = 0;
    unsigned n_kept = 0;
    assert_true(most > 0);
    for (uint32_t n = 1; n <= WS_JIT_KERNEL_SHAPES; n++) {
        struct ws_jit_code *j = hot_kernel(&h, 0, 32 * n, 0);
        wait_for(j);
        held += ws_jit_code_bytes(j);
        if (atomic_load(&j->tier) != WS_JIT_TRIED)
            break;
        n_kept++;
    }
    assert_in_range(n_kept, 1, WS_JIT_KERNEL_SHAPES - 1);
    assert_in_range(held, 1, most);
    assert_int_equal(ws_compiled_counts().n_compiled, n_kept);
    assert_int_equal(ws_compiled_counts().n_not[WS_NOT_ROOM], 1);
    hot_end(&h);
    assert_int_equal(ws_compiled_counts().n_not[WS_NOT_ROOM], 0);
}

/* LLVM may take the square of a function's length, and cannot be stopped. */
static void test_long_kernels_are_not_taken(void **state)
{
    enum { ROOM = 32768, ACCESSES = 300 };
    static char text[ROOM];
    struct hot h;
    (void)state;
    if (!ws_llvm_open())
        skip();
    int at = snprintf(text, sizeof(text), "%s", HEAD);
    for (int k = 0; k < ACCESSES; k++)
        at += snprintf(text + at, sizeof(text) - (size_t)at,
                       "ld.global.u32 %%r5, [%%x2]; st.global.u32 [%%x2], %%r5;\n");
    snprintf(text + at, sizeof(text) - (size_t)at, "%s", TAIL);
    hot_begin(&h, text);
    struct ws_jit_code *j = hot_kernel(&h, 0, 64, 0);
    wait_for(j);
    assert_int_equal(atomic_load(&j->tier), WS_JIT_INTERPRETED);
    assert_in_range(j->compile_ns, 0, 1000000000);
    assert_int_equal(ws_compiled_counts().n_not[WS_NOT_SIZE], 1);
    hot_end(&h);
    assert_int_equal(ws_compiled_counts().n_not[WS_NOT_SIZE], 0);
}

/* A kernel of jumps through long lists, each to the segment before: what is live has to be handed
 * on from one to the next, and each time all lists are looked through. */
static void write_lists(char *text, size_t room)
{
    enum { LABELS = 16000, LISTS = 250 };
    size_t at = (size_t)snprintf(
        text, room, "%smov.u32 %%r5, %%tid.y;\nbra L%u;\nT: .branchtargets ", HEAD, LISTS - 1);
    for (unsigned k = 0; k < LABELS; k++)
        at += (size_t)snprintf(text + at, room - at, k ? ",E" : "E");
    at += (size_t)snprintf(text + at, room - at, ";\n");
    for (unsigned k = 0; k < LISTS; k++)
        at += (size_t)snprintf(text + at, room - at,
                               "L%u: setp.eq.u32 %%p0, %%r4, 77;\n@%%p0 bra L%u;\n"
                               "brx.idx %%r4, T;\n",
                               k, k ? k - 1 : 0);
    snprintf(text + at, room - at, "E: st.global.u32 [%%x2], %%r5;\n" TAIL);
}

/* Nobody waits for a kernel that is hard to look at, neither who unloads another module meanwhile,
 * nor who unloads that of this kernel; and it does not keep the thread for long. */
static void test_hard_kernels_keep_nobody_waiting(void **state)
{
    static char text[1 << 16];
    struct hot hard, other;
    (void)state;
    if (!ws_llvm_open())
        skip();
    write_lists(text, sizeof(text));
    hot_begin(&hard, text);
    hot_begin(&other, HEAD "st.global.u32 [%x2], %r4;\n" TAIL);
    struct ws_jit_code *j = hot_kernel(&hard, 0, 32, 0);
    assert_non_null(ws_jit_of(other.f.code, 0, tier_block, NULL));
    hot_end(&other);
    assert_int_equal(atomic_load(&j->tier), WS_JIT_QUEUED);
    wait_for(j);
    assert_int_equal(atomic_load(&j->tier), WS_JIT_INTERPRETED);
    assert_int_equal(j->why_not, WS_NOT_SIZE);
    assert_in_range(j->compile_ns, 0, 2000000000);
    (void)hot_kernel(&hard, 0, 64, 0);
    usleep(20000); /* the thread looks at it now */
    hot_end(&hard);
    hot_begin(&other, HEAD "st.global.u32 [%x2], %r4;\n" TAIL);
    wait_for(hot_kernel(&other, 0, 32, 0));
    hot_end(&other);
}

static int told_fd; /* whoever ends with all that an end has to do writes here */

static void tell(void)
{
    if (write(told_fd, "", 1) != 1)
        abort();
}

/* The process does not wait for a kernel that is being compiled, and ends with its own status. */
static void test_the_process_ends_while_it_compiles(void **state)
{
    struct hot h;
    int status, pipes[2];
    char byte;
    (void)state;
    if (!ws_llvm_open())
        skip();
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        hot_begin(&h, HEAD "st.global.u32 [%x2], %r4;\n" TAIL);
        told_fd = pipes[1];
        atexit(tell); /* before the first kernel, so that it would be called last */
        for (uint32_t n = 1; n <= WS_JIT_KERNEL_SHAPES; n++)
            hot_kernel(&h, 0, 32 * n, 0);
        exit(7);
    }
    close(pipes[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(read(pipes[0], &byte, 1), 0);
    close(pipes[0]);
}

/* Nobody makes launches slow, of users who share a module, by launching it in very many shapes. */
static void test_shapes_are_bounded(void **state)
{
    struct fix f;
    uint32_t *words;
    struct ws_jit_code *j;
    (void)state;
    if (!ws_llvm_open())
        skip();
    tiers_begin(&f, &words, &j);
    for (uint32_t n = 1; n < WS_JIT_KERNEL_SHAPES; n++)
        assert_non_null(ws_jit_of(f.code, 0, (const uint32_t[3]){n, 1, 1}, NULL));
    assert_null(ws_jit_of(f.code, 0, (const uint32_t[3]){1000, 1, 1}, NULL));
    assert_ptr_equal(ws_jit_of(f.code, 0, tier_block, NULL), j);
    fix_deinit(&f);
    unsetenv("WS_SOFT_JIT");
}

/* So for a module that has very many kernels. */
static void test_shapes_of_a_module_are_bounded(void **state)
{
    enum { KERNELS = WS_JIT_MODULE_SHAPES / WS_JIT_KERNEL_SHAPES, ROOM = 4096 };
    struct fix f;
    char text[ROOM];
    (void)state;
    if (!ws_llvm_open())
        skip();
    int at = snprintf(text, sizeof(text), ".version 8.0\n.target sm_80\n.address_size 64\n");
    for (int k = 0; k <= KERNELS; k++)
        at += snprintf(text + at, sizeof(text) - (size_t)at, ".visible .entry k%d() { ret; }\n", k);
    setenv("WS_SOFT_JIT", "tiers", 1);
    fix_init(&f);
    fix_must_load(&f, text);
    for (uint32_t k = 0; k < KERNELS; k++)
        for (uint32_t n = 1; n <= WS_JIT_KERNEL_SHAPES; n++)
            assert_non_null(ws_jit_of(f.code, k, (const uint32_t[3]){n, 1, 1}, NULL));
    assert_null(ws_jit_of(f.code, KERNELS, (const uint32_t[3]){1, 1, 1}, NULL));
    fix_deinit(&f);
    unsetenv("WS_SOFT_JIT");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--llvm-gives-up") == 0)
        return go_on_without_llvm();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library_is_opened_late),             /* before all that open it */
        cmocka_unit_test(test_the_process_ends_while_it_compiles), /* before the first kernel */
        cmocka_unit_test(test_consecutive_addresses),
        cmocka_unit_test(test_uniform_loop_and_tile),
        cmocka_unit_test(test_scattered),
        cmocka_unit_test(test_diverged_lanes),
        cmocka_unit_test(test_groups_of_lanes),
        cmocka_unit_test(test_groups_without_the_rest),
        cmocka_unit_test(test_a_lane_alone),
        cmocka_unit_test(test_memory_of_a_lane_alone),
        cmocka_unit_test(test_multiply_add_without_its_instruction),
        cmocka_unit_test(test_wrapping_lanes),
        cmocka_unit_test(test_warp_operations),
        cmocka_unit_test(test_atomics_on_one_place),
        cmocka_unit_test(test_atomics_on_several_places),
        cmocka_unit_test(test_local_memory),
        cmocka_unit_test(test_one_lane),
        cmocka_unit_test(test_sectors),
        cmocka_unit_test(test_sums_of_bytes),
        cmocka_unit_test(test_shuffles_and_votes),
        cmocka_unit_test(test_blocks_one_after_another),
        cmocka_unit_test(test_small_blocks),
        cmocka_unit_test(test_shared_memory_of_small_blocks),
        cmocka_unit_test(test_rows_of_threads),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_no_page_is_writable_and_executable),
        cmocka_unit_test(test_compiles_where_memory_must_not_become_executable),
        cmocka_unit_test(test_interprets_where_no_memory_can_be_executable),
        cmocka_unit_test(test_tiers),
        cmocka_unit_test(test_llvm_gives_up),
        cmocka_unit_test(test_unloaded_while_it_is_compiled),
        cmocka_unit_test(test_users_take_turns),
        cmocka_unit_test(test_a_user_s_queue_is_bounded),
        cmocka_unit_test(test_kernels_are_counted),
        cmocka_unit_test(test_memory_of_a_module_is_bounded),
        cmocka_unit_test(test_long_kernels_are_not_taken),
        cmocka_unit_test(test_hard_kernels_keep_nobody_waiting),
        cmocka_unit_test(test_shapes_are_bounded),
        cmocka_unit_test(test_shapes_of_a_module_are_bounded),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("exec_jit", tests, NULL, NULL);
}
