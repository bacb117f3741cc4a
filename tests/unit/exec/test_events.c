// SPDX-License-Identifier: Apache-2.0
/* What the models of energy are given: operations of threads, transactions of shared memory, and
 * what gets past L1 and L2, of small kernels whose counts are known by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/soft/exec/reuse.h"
#include "tests/unit/exec/fixture.h"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
#define CELL                                                                                       \
    "{\n.reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %x<9>; .reg .f32 %f<9>; .reg .f64 %d<9>;\n"   \
    "ld.param.u64 %x0, [data]; cvta.to.global.u64 %x0, %x0;\n"

static void run(struct fix *f, const char *ptx, uint32_t blocks, uint32_t threads, uint64_t data)
{
    fix_must_load(f, ptx);
    struct launch l = {
        .kernel = "k", .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .params = &data};
    fix_run(f, &l);
}

/* ---- operations ---- */

static void test_operations(void **state)
{
    struct fix *f = *state;
    /* by lane: mov of %tid: none; and, setp: 2 integer; 3 fp32 of lanes 0..15; 2 fp64, 1 special */
    run(f,
        HEAD ".visible .entry k(.param .u64 data)\n" CELL
             "mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; setp.ge.u32 %p0, %r1, 16;\n"
             "@%p0 bra SKIP;\n"
             "add.f32 %f0, %f1, %f2; mul.f32 %f0, %f0, %f1; fma.rn.f32 %f3, %f0, %f1, %f2;\n"
             "SKIP: add.f64 %d0, %d1, %d2; fma.rn.f64 %d0, %d0, %d1, %d2;\n"
             "rsqrt.approx.f32 %f0, %f1; ret;\n}\n",
        2, 64, fix_alloc(f, 4096));
    const uint64_t *n = f->work.n_unit_ops;
    assert_int_equal(n[WS_UNIT_INT], 2 * 128);
    assert_int_equal(n[WS_UNIT_FP32], 3 * 64);
    assert_int_equal(n[WS_UNIT_FP64], 2 * 128);
    assert_int_equal(n[WS_UNIT_SFU], 128);
    /* parameters and cvta are free; 8 instructions of each warp and the 3 */
    assert_int_equal(f->work.n_machine_insns, 4 * 11);
}

static void test_division_is_many_instructions(void **state)
{
    struct fix *f = *state;
    run(f, HEAD ".visible .entry k(.param .u64 data)\n" CELL "div.rn.f32 %f0, %f1, %f2; ret;\n}\n",
        1, 32, fix_alloc(f, 4096));
    assert_in_range(f->work.n_machine_insns, 6, 20);
    assert_int_equal(f->work.n_unit_ops[WS_UNIT_SFU], 32);
}

/* One instruction after the pointer's parameter; the machine instructions beside the return, of
 * which @n_others are not of integers. */
static void check_machine(struct fix *f, uint32_t hardware_cc, const char *insn, uint64_t n,
                          uint64_t n_others)
{
    char ptx[800];
    static const char begin[] = HEAD ".visible .entry k(.param .u64 data)\n" CELL;
    snprintf(ptx, sizeof(ptx), "%s%s ret;\n}\n", begin, insn);
    f->hardware_cc = hardware_cc;
    run(f, ptx, 1, 32, fix_alloc(f, 4096));
    assert_int_equal(f->work.n_machine_insns, n + 1);
    assert_int_equal(f->work.n_unit_ops[WS_UNIT_INT], (n - n_others) * 32);
}

static void test_products_before_volta(void **state)
{
    static const struct {
        const char *insn;
        uint64_t old, now;
    } rows[] = {{"mul.lo.s32 %r1, %r2, %r3;", 3, 1}, {"mad.lo.s32 %r1, %r2, %r3, %r4;", 3, 1},
                {"mul.lo.s32 %r1, %r2, 12;", 3, 1},  {"mul.lo.s32 %r1, %r2, 8;", 1, 1},
                {"mul.wide.s32 %x1, %r2, 4;", 2, 1}, {"mul.wide.s32 %x1, %r2, %r3;", 7, 1},
                {"add.s64 %x1, %x2, %x3;", 2, 1},    {"add.s32 %r1, %r2, %r3;", 1, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_machine(*state, 52, rows[i].insn, rows[i].old, 0);
        check_machine(*state, 61, rows[i].insn, rows[i].old, 0);
        check_machine(*state, 70, rows[i].insn, rows[i].now, 0);
        check_machine(*state, 0, rows[i].insn, rows[i].now, 0);
    }
}

static void test_quotients(void **state)
{
    static const struct {
        const char *insn;
        uint64_t old, now;
    } rows[] = {{"div.s32 %r1, %r2, %r3;", 32, 25},
                {"rem.s32 %r1, %r2, %r3;", 29, 23},
                {"div.u32 %r1, %r2, %r3;", 27, 19},
                {"rem.u32 %r1, %r2, %r3;", 26, 17}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_machine(*state, 60, rows[i].insn, rows[i].old, 3);
        check_machine(*state, 75, rows[i].insn, rows[i].now, 3);
    }
}

/* ---- shared memory ---- */

#define SHARED(index)                                                                              \
    HEAD ".visible .entry k(.param .u64 data)\n" CELL ".shared .align 16 .b8 s[16384];\n"          \
         "mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 31; mov.u32 %r2, s;\n" index "ret;\n}\n"

static void check_shared(struct fix *f, const char *ptx, uint64_t accesses, uint64_t transactions)
{
    run(f, ptx, 1, 32, fix_alloc(f, 4096));
    assert_int_equal(f->work.n_shared_accesses, accesses);
    assert_int_equal(f->work.n_shared_loads, accesses);
    assert_int_equal(f->work.n_shared_transactions, transactions);
}

static void test_shared_consecutive(void **state)
{
    check_shared(*state,
                 SHARED("shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %r2; ld.shared.u32 %r3, "
                        "[%r1]; ld.shared.u32 %r3, [%r1+128];"),
                 2, 2);
}
static void test_shared_broadcast(void **state)
{
    check_shared(*state, SHARED("ld.shared.u32 %r3, [%r2];"), 1, 1);
}
static void test_shared_strides(void **state)
{
    /* of 2 words: 2 ways; of 32: 32; of 33: none */
    check_shared(*state,
                 SHARED("mul.lo.u32 %r3, %r1, 8; add.u32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3];\n"
                        "mul.lo.u32 %r3, %r1, 128; add.u32 %r3, %r3, %r2; ld.shared.u32 %r4, "
                        "[%r3];\n"
                        "mul.lo.u32 %r3, %r1, 132; add.u32 %r3, %r3, %r2; ld.shared.u32 %r4, "
                        "[%r3];\n"),
                 3, 2 + 32 + 1);
}
static void test_shared_doubles(void **state)
{
    /* two halves; all lanes two words apart: each half conflicts twice */
    check_shared(*state,
                 SHARED("mul.lo.u32 %r3, %r1, 8; add.u32 %r3, %r3, %r2; ld.shared.u64 %x4, [%r3];\n"
                        "mul.lo.u32 %r3, %r1, 16; add.u32 %r3, %r3, %r2; ld.shared.u64 %x4, "
                        "[%r3];\n"),
                 2, 2 + 4);
}
static void test_shared_one_lane(void **state)
{
    check_shared(*state,
                 SHARED("setp.eq.u32 %p0, %r1, 3; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %r2;\n"
                        "@%p0 ld.shared.u32 %r3, [%r1];"),
                 1, 1);
}

static void test_shared_many(void **state)
{
    /* 1000 times a broadcast and two ways: a sample stands for them */
    struct fix *f = *state;
    run(f,
        SHARED("mov.u32 %r5, 0; and.b32 %r4, %r1, 3; shl.b32 %r4, %r4, 5; add.u32 %r4, %r4, %r2;\n"
               "shl.b32 %r3, %r1, 3; add.u32 %r3, %r3, %r2;\n"
               "AGAIN: ld.shared.u32 %r6, [%r3]; ld.shared.u32 %r6, [%r4];\n"
               "add.u32 %r5, %r5, 1; setp.lt.u32 %p0, %r5, 1000; @%p0 bra AGAIN;\n"),
        1, 32, fix_alloc(f, 4096));
    assert_int_equal(f->work.n_shared_accesses, 2000);
    assert_in_range(f->work.n_shared_transactions, 2970, 3030);
}

/* ---- caches ---- */

enum { SMS = 4, BLOCKS_PER_SM = 2, THREADS = 128 };
static const struct ws_reuse_cache small = {
    .l1_bytes = 16384, .l2_bytes = 65536, .n_sms = SMS, .blocks_per_sm = BLOCKS_PER_SM};

/* Sectors of a launch of @blocks blocks that get past L1 and L2. */
static void check_caches(struct fix *f, const char *ptx, const struct ws_reuse_cache *cache,
                         uint32_t blocks, size_t bytes, double l2, double dram, double tolerance)
{
    f->reuse = ws_reuse_new(cache, blocks);
    assert_non_null(f->reuse);
    run(f, ptx, blocks, THREADS, fix_alloc(f, bytes));
    struct ws_reuse_shares s = ws_reuse_shares(f->reuse, cache, &f->work);
    free(f->reuse);
    f->reuse = NULL;
    ws_reuse_settle(&s, &f->work);
    double got_l2 = (double)f->work.n_l2_sectors, got_dram = (double)f->work.n_dram_sectors;
    if (got_l2 < l2 * (1 - tolerance) || got_l2 > l2 * (1 + tolerance) ||
        got_dram < dram * (1 - tolerance) || got_dram > dram * (1 + tolerance))
        fail_msg("L2 %.0f (%.0f by hand), DRAM %.0f (%.0f)", got_l2, l2, got_dram, dram);
}

/* %r0: the thread's number in the grid; %x1: its offset of 4 bytes */
#define MEMORY(body)                                                                               \
    HEAD ".visible .entry k(.param .u64 data)\n" CELL                                              \
         "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"                     \
         "mad.lo.u32 %r0, %r1, %r2, %r3; mul.wide.u32 %x1, %r0, 4;\n" body "ret;\n}\n"
/* Each thread loads a word, and stores it again. */
#define STREAM                                                                                     \
    MEMORY("add.u64 %x2, %x0, %x1; ld.global.u32 %r4, [%x2]; st.global.u32 [%x2], %r4;\n")

static void test_stream(void **state)
{
    double sectors = 8 * THREADS / 8;
    check_caches(*state, STREAM, &small, 8, 8 * THREADS * 4, 2 * sectors, 2 * sectors, 0.12);
}
static void test_large_stream(void **state)
{
    double sectors = 4096 * THREADS / 8; /* 2 MiB, of which a sample is recorded */
    check_caches(*state, STREAM, &small, 4096, 4096 * THREADS * 4, 2 * sectors, 2 * sectors, 0.12);
}
static void test_stride(void **state)
{
    /* 32 bytes apart: each thread a sector */
    check_caches(*state,
                 MEMORY("mul.wide.u32 %x1, %r0, 32; add.u64 %x2, %x0, %x1; ld.global.u32 %r4, "
                        "[%x2];\n"),
                 &small, 8, 8 * THREADS * 32, 8 * THREADS, 8 * THREADS, 0.12);
}
static void test_reuse_in_a_block(void **state)
{
    /* the same 512 bytes again: L1 has them */
    const char *again = MEMORY("add.u64 %x2, %x0, %x1; ld.global.u32 %r4, [%x2]; ld.global.u32 "
                               "%r5, [%x2]; ld.global.u32 %r6, [%x2];\n");
    double sectors = 8 * THREADS / 8;
    check_caches(*state, again, &small, 8, 8 * THREADS * 4, sectors, sectors, 0.12);
    struct ws_reuse_cache past = small;
    past.l1_bytes = 0; /* loads go past L1: L2 is asked each time */
    check_caches(*state, again, &past, 8, 8 * THREADS * 4, 3 * sectors, sectors, 0.12);
}
static void test_too_large_for_l1(void **state)
{
    /* a block loads 64 KiB twice, line by line; L1 has 4 KiB for it */
    const char *twice =
        MEMORY("mov.u32 %r6, 0; BEGIN: and.b32 %r5, %r6, 127; mad.lo.u32 %r5, %r5, 128, %r3;\n"
               "mul.wide.u32 %x1, %r5, 4; add.u64 %x2, %x0, %x1; ld.global.u32 %r4, [%x2];\n"
               "bar.sync 0;\n"
               "add.u32 %r6, %r6, 1; setp.lt.u32 %p0, %r6, 256; @%p0 bra BEGIN;\n");
    struct ws_reuse_cache few = small;
    few.l1_bytes = 4096;
    double sectors = 65536 / 32;
    check_caches(*state, twice, &few, 1, 65536, 2 * sectors, sectors, 0.15);
    few.l1_bytes = 262144;
    check_caches(*state, twice, &few, 1, 65536, sectors, sectors, 0.15);
}
static void test_waves(void **state)
{
    /* each block loads all of 256 KiB; 8 blocks run at a time, 64 in all: 8 waves */
    const char *all =
        MEMORY("mov.u32 %r6, 0; BEGIN: mad.lo.u32 %r5, %r6, 128, %r3;\n"
               "mul.wide.u32 %x1, %r5, 4; add.u64 %x2, %x0, %x1; ld.global.u32 %r4, [%x2];\n"
               "add.u32 %r6, %r6, 1; setp.lt.u32 %p0, %r6, 512; @%p0 bra BEGIN;\n");
    double sectors = 262144 / 32;
    /* L2 keeps a quarter of it from wave to wave */
    check_caches(*state, all, &small, 64, 262144, 64 * sectors, sectors + 7 * sectors * 0.75, 0.15);
    struct ws_reuse_cache large = small;
    large.l2_bytes = 1 << 20;
    check_caches(*state, all, &large, 64, 262144, 64 * sectors, sectors, 0.15);
}

/* ---- atomics ---- */

static void check_atomics(struct fix *f, const char *ptx, uint64_t sectors, int places)
{
    run(f, ptx, 8, THREADS, fix_alloc(f, 1 << 20));
    assert_int_equal(f->work.n_atomic_sectors, sectors);
    /* one more if memory begins within a place */
    assert_in_range(__builtin_popcountll(f->work.atomic_places), places, places + !!places);
}

static void test_atomics(void **state)
{
    uint64_t warps = 8 * THREADS / 32;
    /* all in one word; each warp on four sectors of its own; lanes 1 KiB apart; shared memory */
    check_atomics(*state, MEMORY("red.global.add.u32 [%x0], 1;\n"), warps, 1);
    check_atomics(*state, MEMORY("add.u64 %x2, %x0, %x1; atom.global.add.u32 %r4, [%x2], 1;\n"),
                  4 * warps, 8 * THREADS * 4 / 512);
    check_atomics(
        *state,
        MEMORY("and.b32 %r5, %r3, 31; mul.wide.u32 %x3, %r5, 1024; add.u64 %x2, %x0, %x3;\n"
               "red.global.add.u32 [%x2], 1;\n"),
        32 * warps, 2);
    check_atomics(*state,
                  HEAD ".visible .entry k(.param .u64 data)\n{\n.shared .b32 n;\n"
                       "red.shared.add.u32 [n], 1;\nret;\n}\n",
                  0, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(test_##name, fix_setup, fix_teardown)
    const struct CMUnitTest tests[] = {
        T(operations),
        T(atomics),
        T(division_is_many_instructions),
        T(products_before_volta),
        T(quotients),
        T(shared_consecutive),
        T(shared_broadcast),
        T(shared_strides),
        T(shared_doubles),
        T(shared_one_lane),
        T(shared_many),
        T(stream),
        T(large_stream),
        T(stride),
        T(reuse_in_a_block),
        T(too_large_for_l1),
        T(waves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
