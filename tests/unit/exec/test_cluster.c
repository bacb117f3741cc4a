// SPDX-License-Identifier: Apache-2.0
/* Clusters of several blocks: kernels with known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/soft/exec/tensor.h"
#include "tests/unit/exec/fixture.h"

/* k(out, in): %t: thread, %c: rank, %n: blocks of the cluster, %p: the thread's word of out, whose
 * blocks follow one another; s, b: shared memory and mbarriers; %s, %b: their addresses. */
#define HEAD                                                                                       \
    ".version 8.6\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"                                      \
    ".reg .pred %q<4>; .reg .b16 %h; .reg .b32 %r<16>, %t, %c, %n, %s, %b;\n"                      \
    ".reg .b64 %x<8>, %o, %i, %p;\n"                                                               \
    ".shared .align 128 .b8 s[2048]; .shared .align 8 .b64 b[2];\n"                                \
    "ld.param.u64 %o, [out]; ld.param.u64 %i, [in]; mov.u32 %t, %tid.x;\n"                         \
    "mov.u32 %c, %cluster_ctarank; mov.u32 %n, %cluster_nctarank; mov.u32 %s, s; mov.u32 %b, b;\n" \
    "mov.u32 %r14, %ctaid.x; mov.u32 %r15, %ntid.x; mad.lo.u32 %r14, %r14, %r15, %t;\n"            \
    "mul.wide.u32 %p, %r14, 4; add.u64 %p, %o, %p;\n"
#define KERNEL(body) HEAD body "\nret;\n}\n"
#define SYNC         "barrier.cluster.arrive; barrier.cluster.wait;\n"

enum { BYTES = 65536 };

/* @n blocks in clusters of @cluster, with @threads each. */
static uint32_t *run(struct fix *f, const char *ptx, uint32_t n, uint32_t cluster, uint32_t threads,
                     enum ws_dev_error want)
{
    uint64_t p[2];
    fix_must_load(f, ptx);
    p[0] = fix_alloc(f, BYTES);
    p[1] = fix_alloc(f, BYTES);
    uint32_t *in = fix_host(f, p[1]);
    for (unsigned i = 0; i < BYTES / 4; i++)
        in[i] = 1000 + i;
    struct launch l = {
        .grid = {n, 1, 1}, .block = {threads, 1, 1}, .cluster = {cluster, 1, 1}, .params = p};
    f->max_warp_insns = 1000000;
    if (fix_launch(f, &l) != want)
        fail_msg("%s", f->text);
    return fix_host(f, p[0]);
}

static void test_another_blocks_memory(void **state)
{
    uint32_t *out =
        run(*state,
            KERNEL("shl.b32 %r0, %t, 2; add.u32 %r0, %r0, %s; mad.lo.u32 %r1, %c, 100, %t;\n"
                   "st.shared.u32 [%r0], %r1;\n" SYNC
                   "add.u32 %r2, %c, 1; rem.u32 %r2, %r2, %n; mapa.shared::cluster.u32 %r3, %r0, "
                   "%r2; ld.shared::cluster.u32 %r4, [%r3];\n"
                   "cvt.u64.u32 %x0, %r0; cvta.shared.u64 %x0, %x0; mapa.u64 %x1, %x0, %r2;\n"
                   "ld.u32 %r5, [%x1]; setp.ne.u32 %q0, %r4, %r5; @%q0 trap;\n"
                   "getctarank.u64 %r6, %x1; setp.ne.u32 %q0, %r6, %r2; @%q0 trap;\n"
                   "getctarank.shared::cluster.u32 %r6, %r0; setp.ne.u32 %q0, %r6, %c; @%q0 trap;\n"
                   "isspacep.shared::cluster %q1, %x1; @!%q1 trap; isspacep.shared::cta %q1, %x1;\n"
                   "@%q1 trap; isspacep.shared::cta %q1, %x0; @!%q1 trap;\n"
                   "mapa.shared::cluster.u32 %r7, %r0, %c; ld.shared::cluster.u32 %r8, [%r7];\n"
                   "setp.ne.u32 %q0, %r8, %r1; @%q0 trap;\n" SYNC "st.global.u32 [%p], %r4;"),
            12, 4, 64, WS_DEV_OK);
    for (uint32_t b = 0; b < 12; b++)
        for (uint32_t t = 0; t < 64; t++)
            assert_int_equal(out[b * 64 + t], (b % 4 + 1) % 4 * 100 + t);
}

/* Each thread of each block adds to each block's counters; floats and vectors, too. */
static void test_atomics_and_vectors(void **state)
{
    uint32_t *out = run(
        *state,
        KERNEL("shl.b32 %r0, %t, 4; add.u32 %r0, %r0, %s; mov.u32 %r1, 0;\n"
               "st.shared.v4.u32 [%r0], {%r1, %r1, %r1, %r1};\n" SYNC
               "NEXT: mapa.shared::cluster.u32 %r2, %r0, %r1; add.u32 %r3, %c, 1;\n"
               "atom.shared::cluster.add.u32 %r4, [%r2], %r3; red.shared::cluster.add.f32 "
               "[%r2+4], 0f40000000;\n"
               "atom.shared::cluster.max.u32 %r4, [%r2+8], %r3;\n"
               "add.u32 %r1, %r1, 1; setp.lt.u32 %q0, %r1, %n; @%q0 bra NEXT;\n" SYNC
               "xor.b32 %r2, %c, 1; mapa.shared::cluster.u32 %r2, %r0, %r2;\n"
               "ld.shared::cluster.v4.u32 {%r4, %r5, %r6, %r7}, [%r2]; cvt.rzi.u32.f32 %r5, "
               "%r5;\n" SYNC "mad.lo.u32 %r4, %r5, 1000, %r4; mad.lo.u32 %r4, %r6, 100000, %r4;\n"
               "st.global.u32 [%p], %r4;"),
        8, 8, 96, WS_DEV_OK);
    for (uint32_t k = 0; k < 8 * 96; k++)
        assert_int_equal(out[k], 8 * 100000 + 16 * 1000 + 36);
}

/* Numbers of blocks and clusters in three dimensions. */
static void test_places(void **state)
{
    struct fix *f = *state;
    static const uint32_t grid[3] = {6, 4, 3}, cluster[3] = {3, 2, 1};
    fix_must_load(
        f,
        ".version 8.6\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<16>; .reg .b64 %x<4>; .reg .pred %q;\n"
        "ld.param.u64 %x0, [out]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mov.u32 %r2, "
        "%ctaid.z;\n"
        "mad.lo.u32 %r3, %r2, 4, %r1; mad.lo.u32 %r3, %r3, 6, %r0; mul.wide.u32 %x1, %r3, 32; "
        "add.u64 %x0, %x0, %x1;\n"
        "mov.u32 %r4, %clusterid.x; mov.u32 %r5, %clusterid.y; mov.u32 %r6, %nclusterid.x; "
        "mov.u32 %r7, %nclusterid.y; st.global.v4.u32 [%x0], {%r4, %r5, %r6, %r7};\n"
        "mov.u32 %r4, %cluster_ctaid.x; mov.u32 %r5, %cluster_ctaid.y; mov.u32 %r6, "
        "%cluster_ctarank; mov.u32 %r7, %cluster_nctaid.y; mov.pred %q, %is_explicit_cluster;\n"
        "@%q add.u32 %r7, %r7, 10; st.global.v4.u32 [%x0+16], {%r4, %r5, %r6, %r7};\nret;\n}\n");
    uint64_t p = fix_alloc(f, 6 * 4 * 3 * 32);
    struct launch l = {.grid = {6, 4, 3}, .block = {1, 1, 1}, .cluster = {3, 2, 1}, .params = &p};
    fix_run(f, &l);
    const uint32_t(*out)[8] = fix_host(f, p);
    for (uint32_t k = 0; k < grid[0] * grid[1] * grid[2]; k++) {
        uint32_t x = k % 6, y = k / 6 % 4, cx = x % cluster[0], cy = y % cluster[1];
        const uint32_t want[8] = {x / 3, y / 2, 2, 2, cx, cy, cx + 3 * cy, 12};
        assert_memory_equal(out[k], want, sizeof(want));
    }
}

/* Who has arrived may do other things before it waits, also what lets the others come. */
static void test_arrive_then_work(void **state)
{
    uint32_t *out = run(
        *state,
        KERNEL("setp.eq.u32 %q0, %t, 0; @%q0 mbarrier.init.shared.b64 [b], 1;\n"
               "@%q0 st.shared.u32 [%s], 0;\n" SYNC
               /* the last block tells the first by its mbarrier, having passed the barrier that the
                * first arrived at and waits behind */
               "barrier.cluster.arrive.relaxed; setp.ne.u32 %q1, %c, 0; @%q1 bra OTHERS;\n"
               "WAIT: mbarrier.try_wait.parity.shared.b64 %q2, [b], 0; @!%q2 bra WAIT;\n"
               "OTHERS: barrier.cluster.wait.acquire; sub.u32 %r0, %n, 1; setp.ne.u32 %q1, %c, "
               "%r0; setp.ne.u32 %q3, %t, 0; or.pred %q1, %q1, %q3; @%q1 bra END;\n"
               "mapa.shared::cluster.u32 %r1, %b, 0; mapa.shared::cluster.u32 %r2, %s, 0;\n"
               "st.shared::cluster.u32 [%r2], 77; mbarrier.arrive.release.cluster.shared::cluster"
               ".b64 _, [%r1];\n"
               "END: " SYNC "ld.shared.u32 %r3, [%s]; st.global.u32 [%p], %r3;"),
        3, 3, 64, WS_DEV_OK);
    for (uint32_t k = 0; k < 3 * 64; k++)
        assert_int_equal(out[k], k < 64 ? 77 : 0);
}

/* Lanes of a warp come one after another, again and again. */
static void test_diverged_barriers(void **state)
{
    uint32_t *out = run(
        *state,
        KERNEL("mov.u32 %r0, 0; mov.u32 %r5, 0; setp.eq.u32 %q0, %t, 0;\n"
               "@%q0 st.shared.u32 [%s], 0;\n" SYNC
               "LOOP: and.b32 %r1, %t, 1; setp.eq.u32 %q1, %r1, 0; @%q1 bra EVEN;\n"
               "barrier.cluster.arrive; barrier.cluster.wait; bra BOTH;\n"
               "EVEN: nanosleep.u32 1; barrier.cluster.arrive; add.u32 %r5, %r5, 1;\n"
               "barrier.cluster.wait;\n"
               "BOTH: mapa.shared::cluster.u32 %r2, %s, 0; @%q0 atom.shared::cluster.add.u32 %r3, "
               "[%r2], 1;\n" SYNC "ld.shared::cluster.u32 %r4, [%r2]; add.u32 %r0, %r0, 1;\n"
               "mul.lo.u32 %r3, %r0, %n; setp.ne.u32 %q2, %r3, %r4; @%q2 trap;\n" SYNC
               "setp.lt.u32 %q2, %r0, 5; @%q2 bra LOOP; st.global.u32 [%p], %r4;"),
        8, 4, 96, WS_DEV_OK);
    for (uint32_t k = 0; k < 8 * 96; k++)
        assert_int_equal(out[k], 20);
}

/* Threads, warps and blocks that end count as arrived, before and after they do. */
static void test_who_ends_has_arrived(void **state)
{
    uint32_t *out =
        run(*state,
            KERNEL("setp.eq.u32 %q0, %c, 1; @%q0 bra END; setp.lt.u32 %q0, %t, 40; @%q0 bra END;\n"
                   "barrier.cluster.arrive; setp.lt.u32 %q0, %t, 50; @%q0 bra END;\n"
                   "barrier.cluster.wait;\n" SYNC "st.global.u32 [%p], 5;\nEND:"),
            3, 3, 96, WS_DEV_OK);
    for (uint32_t k = 0; k < 3 * 96; k++)
        assert_int_equal(out[k], k / 96 != 1 && k % 96 >= 50 ? 5 : 0);
}

/* Who arrived and ended counts once: the others still wait for the block that comes late. */
static void test_who_ends_counts_once(void **state)
{
    uint32_t *out =
        run(*state,
            KERNEL("setp.eq.u32 %q0, %t, 90; @%q0 st.shared.u32 [%s], 0;\n" SYNC
                   "setp.eq.u32 %q1, %c, 1; @%q1 bra LATE;\n"
                   "barrier.cluster.arrive; setp.lt.u32 %q1, %t, 90; @%q1 bra END;\n"
                   "barrier.cluster.wait; ld.shared.u32 %r3, [%s]; st.global.u32 [%p], %r3; bra "
                   "END;\n"
                   "LATE: setp.lt.u32 %q1, %t, 90; @%q1 bra END; mov.u32 %r0, 0;\n"
                   "LOOP: add.u32 %r0, %r0, 1; setp.lt.u32 %q1, %r0, 1000; @%q1 bra LOOP;\n"
                   "mapa.shared::cluster.u32 %r1, %s, 0; st.shared::cluster.u32 [%r1], 77;\n" SYNC
                   "END:"),
            2, 2, 96, WS_DEV_OK);
    for (uint32_t t = 90; t < 96; t++)
        assert_int_equal(out[t], 77);
}

/* All but one thread wait for it; what it stores before it comes, they find. */
static void test_one_thread_comes_late(void **state)
{
    uint32_t *out =
        run(*state,
            KERNEL("setp.eq.u32 %q0, %t, 0; @%q0 st.shared.u32 [%s], 0;\n" SYNC
                   "setp.eq.u32 %q1, %c, 1; setp.eq.u32 %q2, %t, 40; and.pred %q1, %q1, %q2;\n"
                   "@%q1 bra LATE;\n" SYNC "bra READ;\n"
                   "LATE: mov.u32 %r0, 0;\n"
                   "LOOP: add.u32 %r0, %r0, 1; setp.lt.u32 %q1, %r0, 1000; @%q1 bra LOOP;\n"
                   "mapa.shared::cluster.u32 %r1, %s, 0; st.shared::cluster.u32 [%r1], 77;\n" SYNC
                   "READ: ld.shared.u32 %r3, [%s]; st.global.u32 [%p], %r3;"),
            2, 2, 64, WS_DEV_OK);
    for (uint32_t t = 0; t < 64; t++)
        assert_int_equal(out[t], 77);
}

/* Lanes of a warp that come to a wait together, some of them a phase ahead of the others. */
static void test_some_lanes_pass(void **state)
{
    for (uint32_t late = 1; late < 90; late++) {
        char text[4096];
        snprintf(text, sizeof(text), "%s%u%s",
                 HEAD "mov.u32 %r0, 0; and.b32 %r1, %t, 1; setp.eq.u32 %q1, %r1, 0;\n"
                      "barrier.cluster.arrive; @!%q1 bra ODD; mov.u32 %r2, 0;\n"
                      "LOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %q2, %r2, ",
                 late,
                 "; @%q2 bra LOOP; bra W;\n"
                 "ODD: barrier.cluster.wait; barrier.cluster.arrive; mov.u32 %r0, 1;\n"
                 "W: barrier.cluster.wait; setp.eq.u32 %q2, %r0, 1; @%q2 bra END; mov.u32 %r0, 1;\n"
                 "barrier.cluster.arrive; bra W;\nEND: st.global.u32 [%p], 3;\nret;\n}\n");
        fix_teardown(state);
        fix_setup(state);
        uint32_t *out = run(*state, text, 2, 2, 32, WS_DEV_OK);
        for (uint32_t k = 0; k < 64; k++)
            assert_int_equal(out[k], 3);
    }
}

/* The last ones that end open the barrier for the others, who wait. */
static void test_the_last_ends(void **state)
{
    uint32_t *out =
        run(*state,
            KERNEL("setp.eq.u32 %q0, %c, 1; @%q0 bra LATE;\n" SYNC "st.global.u32 [%p], 5; ret;\n"
                   "LATE: mov.u32 %r0, 0;\n"
                   "LOOP: add.u32 %r0, %r0, 1; setp.lt.u32 %q1, %r0, 1000; @%q1 bra "
                   "LOOP;"),
            2, 2, 64, WS_DEV_OK);
    assert_int_equal(out[0], 5);
    assert_int_equal(out[63], 5);
}

/* A copy to the blocks that the mask names, each told by its own mbarrier. */
static void test_multicast(void **state)
{
    uint32_t *out =
        run(*state,
            KERNEL("setp.eq.u32 %q0, %t, 0; @%q0 mbarrier.init.shared.b64 [b], 1;\n"
                   "shl.b32 %r0, %t, 2; add.u32 %r0, %r0, %s; st.shared.u32 [%r0], 7;\n" SYNC
                   "@%q0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 256;\n"
                   "setp.ne.u32 %q1, %c, 2; setp.ne.u32 %q3, %t, 0; or.pred %q1, %q1, %q3; @%q1 "
                   "bra WAIT; mov.u16 %h, 5;\n"
                   "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                   ".multicast::cluster [%s], [%i], 256, [%b], %h;\n"
                   "WAIT: and.b32 %r2, %c, 1; setp.eq.u32 %q2, %r2, 1; @%q2 bra READ;\n"
                   "AGAIN: mbarrier.try_wait.parity.shared.b64 %q2, [b], 0; @!%q2 bra AGAIN;\n"
                   "READ: ld.shared.u32 %r3, [%r0]; st.global.u32 [%p], %r3;\n" SYNC),
            4, 4, 64, WS_DEV_OK);
    for (uint32_t k = 0; k < 4 * 64; k++)
        assert_int_equal(out[k], k / 64 % 2 ? 7 : 1000 + k % 64);
}

/* The same of a tensor's box, and of a block's shared memory to another's. */
static void test_tensor_multicast(void **state)
{
    struct fix *f = *state;
    fix_must_load(
        f,
        KERNEL("setp.eq.u32 %q0, %t, 0; @%q0 mbarrier.init.shared.b64 [b], 1;\n" SYNC
               "@%q0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 1024;\n"
               "setp.ne.u32 %q1, %c, 0; setp.ne.u32 %q3, %t, 0; or.pred %q1, %q1, %q3; @%q1 bra "
               "WAIT; mov.u16 %h, 3;\n"
               "mov.u32 %r1, 8; mov.u32 %r2, 4; mov.u64 %x0, in;\n"
               "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
               ".multicast::cluster [%s], [%i, {%r1, %r2}], [%b], %h;\n"
               "WAIT: mbarrier.try_wait.parity.shared.b64 %q2, [b], 0; @!%q2 bra WAIT;\n"
               "bar.sync 0; @%q0 mbarrier.inval.shared.b64 [b]; @%q0 mbarrier.init.shared.b64 [b], "
               "1;\n" SYNC
               /* 512 bytes of the other block's, behind what came */
               "xor.b32 %r3, %c, 1; mapa.shared::cluster.u32 %r4, %s, %r3; mapa.shared::cluster.u32"
               " %r5, %b, %r3; @!%q0 bra LAST; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], "
               "512;\n"
               "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r4+1024], "
               "[%s], 512, [%r5];\n"
               "LAST: mbarrier.try_wait.parity.shared.b64 %q2, [b], 0; @!%q2 bra LAST;\n"
               "shl.b32 %r6, %t, 2; add.u32 %r6, %r6, %s; ld.shared.u32 %r7, [%r6];\n"
               "ld.shared.u32 %r8, [%r6+1024]; setp.lt.u32 %q3, %t, 128; @!%q3 mov.u32 %r8, %r7;\n"
               "setp.ne.u32 %q3, %r7, %r8; @%q3 trap; st.global.u32 [%p], %r7;\n" SYNC));
    uint64_t p[2] = {fix_alloc(f, BYTES), fix_alloc(f, 128)}, tensor = fix_alloc(f, BYTES);
    uint32_t *in = fix_host(f, tensor);
    for (uint32_t k = 0; k < BYTES / 4; k++)
        in[k] = k;
    struct ws_tensor_map m = {.address = tensor,
                              .magic = WS_TENSOR_MAGIC,
                              .type = WS_TENSOR_U32,
                              .rank = 2,
                              .last = {63, 63},
                              .box = {16, 16},
                              .step = {1, 1},
                              .stride = {256}};
    memcpy(fix_host(f, p[1]), &m, sizeof(m));
    struct launch l = {.grid = {2, 1, 1}, .block = {256, 1, 1}, .cluster = {2, 1, 1}, .params = p};
    f->max_warp_insns = 1000000;
    if (fix_launch(f, &l))
        fail_msg("%s", f->text);
    const uint32_t *out = fix_host(f, p[0]);
    for (uint32_t k = 0; k < 512; k++)
        assert_int_equal(out[k], (4 + k % 256 / 16) * 64 + 8 + k % 16);
}

/* st.async into a ring of blocks: each waits for its neighbour's word. */
static void test_stores_that_tell(void **state)
{
    uint32_t *out = run(
        *state,
        KERNEL("setp.eq.u32 %q0, %t, 0; @%q0 mbarrier.init.shared.b64 [b], 1;\n"
               "@%q0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 128;\n" SYNC
               "add.u32 %r0, %c, 1; rem.u32 %r0, %r0, %n; shl.b32 %r1, %t, 2; add.u32 %r1, %r1, "
               "%s;\n"
               "mapa.shared::cluster.u32 %r2, %r1, %r0; mapa.shared::cluster.u32 %r3, %b, %r0;\n"
               "mad.lo.u32 %r4, %c, 100, %t;\n"
               "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2], %r4, [%r3];\n"
               "WAIT: mbarrier.try_wait.parity.shared.b64 %q2, [b], 0; @!%q2 bra WAIT;\n"
               "ld.shared.u32 %r5, [%r1]; st.global.u32 [%p], %r5;\n" SYNC),
        8, 8, 32, WS_DEV_OK);
    for (uint32_t b = 0; b < 8; b++)
        for (uint32_t t = 0; t < 32; t++)
            assert_int_equal(out[b * 32 + t], (b + 7) % 8 * 100 + t);
}

static void expect_fault(struct fix *f, const char *ptx, enum ws_dev_error want, const char *words)
{
    run(f, ptx, 2, 2, 32, want);
    if (!strstr(f->text, words))
        fail_msg("\"%s\" does not say \"%s\"", f->text, words);
}

static void test_faults(void **state)
{
    expect_fault(*state,
                 KERNEL("setp.ne.u32 %q0, %c, 1; @%q0 bra END; mapa.shared::cluster.u32 %r0, %s, "
                        "2; st.shared::cluster.u32 [%r0], 1;\nEND: " SYNC),
                 WS_DEV_E_ILLEGAL_ADDRESS, "block (1,0,0)");
}
static void test_beyond_its_end(void **state)
{
    expect_fault(*state,
                 KERNEL("mapa.shared::cluster.u32 %r0, %s, 1; ld.shared::cluster.u32 %r1, "
                        "[%r0+4096];\n" SYNC),
                 WS_DEV_E_ILLEGAL_ADDRESS, "illegal address");
}
static void test_nobody_is_there(void **state)
{
    expect_fault(*state,
                 KERNEL("setp.eq.u32 %q0, %t, 0; @%q0 mbarrier.init.shared.b64 [b], 1;\n" SYNC
                        "mov.u16 %h, 9; cp.async.bulk.shared::cluster.global.mbarrier::"
                        "complete_tx::bytes.multicast::cluster [%s], [%i], 256, [%b], %h;"),
                 WS_DEV_E_ILLEGAL_ADDRESS, "illegal address");
}
static void test_arrives_twice(void **state)
{
    expect_fault(*state, KERNEL("barrier.cluster.arrive; barrier.cluster.arrive;"),
                 WS_DEV_E_ILLEGAL_INSTRUCTION, "without having waited");
}
/* One block waits at the cluster's barrier, the other, in part, at its own. */
static void test_deadlock(void **state)
{
    expect_fault(*state,
                 KERNEL("setp.eq.u32 %q0, %c, 0; @%q0 bra SYNC; setp.lt.u32 %q1, %t, 3;\n"
                        "@%q1 bra SYNC; bar.sync 0; bra END;\nSYNC: " SYNC "END:"),
                 WS_DEV_E_LAUNCH_FAILURE, "deadlock");
}
static void test_the_barrier_has_no_number(void **state)
{
    run(*state, KERNEL("mov.u32 %r0, 16; bar.sync %r0;"), 2, 2, 32, WS_DEV_E_ILLEGAL_INSTRUCTION);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fix_setup, fix_teardown)
    const struct CMUnitTest tests[] = {
        T(test_another_blocks_memory),
        T(test_atomics_and_vectors),
        T(test_places),
        T(test_arrive_then_work),
        T(test_diverged_barriers),
        T(test_who_ends_has_arrived),
        T(test_who_ends_counts_once),
        T(test_one_thread_comes_late),
        T(test_some_lanes_pass),
        T(test_the_last_ends),
        T(test_multicast),
        T(test_tensor_multicast),
        T(test_stores_that_tell),
        T(test_faults),
        T(test_beyond_its_end),
        T(test_nobody_is_there),
        T(test_arrives_twice),
        T(test_deadlock),
        T(test_the_barrier_has_no_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
