// SPDX-License-Identifier: Apache-2.0
/* Unlike kernels in one launch: each gives what it gives alone. Block shapes, grids, parameters and
 * shared memory differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "tests/unit/exec/fixture.h"

/* sums: each block adds its threads' numbers by a tree in shared memory:
 *       out[block] = scale * n (n - 1) / 2.
 * plane: out[((bz * gy + by) * gx + bx) * threads + thread] = thread's x, y, z in decimal places,
 *        after a barrier and a turn through shared memory.
 * byte: one byte parameter, so that the next member's parameters want a gap. */
static const char text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry sums(.param .u64 out, .param .u32 scale)\n{\n"
    ".reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<4>; .shared .align 4 .b8 sh[512];\n"
    "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, sh; add.u32 %r2, %r2, %r3; "
    "st.shared.u32 [%r2], %r1; mov.u32 %r4, %ntid.x;\n"
    "LOOP: bar.sync 0; shr.u32 %r4, %r4, 1; setp.eq.u32 %p1, %r4, 0; @%p1 bra DONE; setp.ge.u32 "
    "%p2, "
    "%r1, %r4; @%p2 bra LOOP;\n"
    "shl.b32 %r5, %r4, 2; add.u32 %r5, %r5, %r2; ld.shared.u32 %r6, [%r5]; ld.shared.u32 %r7, "
    "[%r2]; "
    "add.u32 %r7, %r7, %r6; st.shared.u32 [%r2], %r7; bra LOOP;\n"
    "DONE: setp.ne.u32 %p3, %r1, 0; @%p3 ret; ld.shared.u32 %r8, [sh]; ld.param.u32 %r9, [scale]; "
    "mul.lo.u32 %r8, %r8, %r9; mov.u32 %r10, %ctaid.x; ld.param.u64 %rd1, [out]; mul.wide.u32 "
    "%rd2, "
    "%r10, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r8; ret;\n}\n"
    ".visible .entry plane(.param .u64 out)\n{\n"
    ".reg .b32 %r<24>; .reg .b64 %rd<4>; .shared .align 8 .b8 a[8]; .shared .align 16 .b8 "
    "sh[2048];\n"
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 "
    "%r5, "
    "%ntid.y; mov.u32 %r6, %ntid.z;\n"
    "mad.lo.u32 %r7, %r3, %r5, %r2; mad.lo.u32 %r7, %r7, %r4, %r1; mad.lo.u32 %r8, %r3, 10, %r2; "
    "mad.lo.u32 %r8, %r8, 10, %r1;\n"
    "mul.lo.u32 %r9, %r4, %r5; mul.lo.u32 %r9, %r9, %r6; sub.u32 %r10, %r9, %r7; sub.u32 %r10, "
    "%r10, 1; "
    "mov.u32 %r11, sh; mad.lo.u32 %r12, %r10, 4, %r11; st.shared.u32 [%r12], %r8; st.shared.u32 "
    "[a+4], 77; bar.sync 0; ld.shared.u32 %r20, [a+4];\n"
    "mad.lo.u32 %r12, %r10, 4, %r11; ld.shared.u32 %r13, [%r12]; add.u32 %r13, %r13, %r20; sub.u32 "
    "%r13, %r13, 77;\n"
    "mov.u32 %r14, %ctaid.x; mov.u32 %r15, %ctaid.y; mov.u32 %r16, %ctaid.z; mov.u32 %r17, "
    "%nctaid.x; "
    "mov.u32 %r18, %nctaid.y; mad.lo.u32 %r19, %r16, %r18, %r15; mad.lo.u32 %r19, %r19, %r17, "
    "%r14; "
    "mad.lo.u32 %r19, %r19, %r9, %r7; ld.param.u64 %rd1, [out]; mul.wide.u32 %rd2, %r19, 4; "
    "add.u64 "
    "%rd1, %rd1, %rd2; st.global.u32 [%rd1], %r13; ret;\n}\n"
    ".visible .entry byte(.param .u64 out, .param .u8 what)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %rd<4>; ld.param.u64 %rd1, [out]; ld.param.u8 %r1, [what]; "
    "cvta.to.global.u64 %rd2, %rd1; red.global.add.u32 [%rd2], %r1; ret;\n}\n";

enum { SUMS, PLANE, BYTE, _N_KINDS };

struct member {
    int kind;
    uint32_t grid[3], block[3], value;
    uint64_t out;
};

static uint64_t seed = 7;
static uint32_t rnd(uint32_t n) /* 1…n */
{
    seed = seed * UINT64_C(6364136223846793005) + 1;
    return (uint32_t)(seed >> 33) % n + 1;
}

static void random_member(struct fix *f, struct member *w)
{
    *w = (struct member){.kind = (int)rnd(_N_KINDS) - 1,
                         .grid = {rnd(9), 1, 1},
                         .block = {1, 1, 1},
                         .value = rnd(200)};
    w->block[0] = w->kind == SUMS ? 1u << (rnd(8) - 1) : rnd(40);
    if (w->kind == PLANE)
        for (int d = 0; d < 3; d++) {
            w->grid[d] = rnd(3);
            w->block[d] = rnd(9);
        }
    while (w->block[0] * w->block[1] * w->block[2] > 512)
        w->block[2] /= 2;
    w->out = fix_alloc(f, 3 * 3 * 9 * 512 * 4);
}

static void check(struct fix *f, const struct member *w)
{
    const uint32_t *out = fix_host(f, w->out), *b = w->block;
    uint32_t threads = b[0] * b[1] * b[2], blocks = w->grid[0] * w->grid[1] * w->grid[2];
    if (w->kind == BYTE)
        assert_int_equal(out[0], (uint32_t)(w->value & 0xff) * threads * blocks);
    for (uint32_t k = 0; w->kind == SUMS && k < blocks; k++)
        assert_int_equal(out[k], w->value * (threads * (threads - 1) / 2));
    for (uint32_t k = 0; w->kind == PLANE && k < blocks * threads; k++) {
        uint32_t t = k % threads;
        assert_int_equal(out[k], t / (b[0] * b[1]) * 100 + t / b[0] % b[1] * 10 + t % b[0]);
    }
}

/* Parameters of member @k, in order. */
static void member_params(const struct member *w, uint8_t ret[16])
{
    memset(ret, 0, 16);
    memcpy(ret, &w->out, 8);
    memcpy(ret + 8, &w->value, w->kind == SUMS ? 4 : w->kind == BYTE ? 1 : 0);
}

static void fuse_and_run(struct fix *f, struct member *w, uint32_t n, bool same_block)
{
    struct ws_ptx_module *m = NULL;
    struct ws_ptx_fused made;
    struct ws_ptx_fuse_work work[5] = {0};
    struct ws_ptx_fuse_launch l;
    uint8_t own[5][16];
    uint32_t funcs[5];
    assert_int_equal(ws_ptx_parse(&m, text, strlen(text), "fuse.ptx", NULL), 0);
    bool plane = false, sums = false;
    for (uint32_t k = 0; k < n; k++) {
        funcs[k] = (uint32_t)w[k].kind;
        member_params(&w[k], own[k]);
        work[k].params = own[k];
        memcpy(work[k].grid, w[k].grid, sizeof(w[k].grid));
        memcpy(work[k].block, w[k].block, sizeof(w[k].block));
        plane |= w[k].kind == PLANE;
        sums |= w[k].kind == SUMS;
    }
    assert_int_equal(ws_ptx_fuse_make(m, funcs, n, same_block, "all", &made), 0);
    /* one place for all: the largest member's */
    assert_int_equal(made.shared_bytes, plane ? 16 + 2048 : sums ? 512 : 0);
    char *fused = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&fused, &len);
    assert_int_equal(ws_ptx_print(m, file), 0);
    fclose(file);
    ws_ptx_module_free(m);
    fix_must_load(f, fused);
    free(fused);
    uint32_t index;
    const struct ws_kernel_info *info = fix_kernel(f, "all", &index);
    assert_int_equal(info->param_bytes, made.param_bytes);
    assert_int_equal(info->static_shared_bytes, made.shared_bytes);
    uint8_t *params = malloc(made.param_bytes);
    assert_non_null(params);
    assert_int_equal(ws_ptx_fuse_launch(&made, work, params, &l), 0);
    fix_run(f, &(struct launch){.kernel = "all",
                                .grid = {l.grid[0], l.grid[1], l.grid[2]},
                                .block = {l.block[0], l.block[1], l.block[2]},
                                .params = params,
                                .co_resident = rnd(6)});
    for (uint32_t k = 0; k < n; k++)
        check(f, &w[k]);
    free(params);
}

static void plain_fix(struct fix *f)
{
    fix_init(f);
    f->rewrite = WS_REWRITE_NONE;
    f->fence = f->fuse = false;
}

static void unlike_kernels(void **state)
{
    for (int round = 0; round < 60; round++) {
        struct fix f;
        plain_fix(&f);
        uint32_t n = rnd(5);
        struct member w[5];
        for (uint32_t k = 0; k < n; k++)
            random_member(&f, &w[k]);
        fuse_and_run(&f, w, n, false);
        fix_deinit(&f);
    }
}

static void blocks_of_one_shape(void **state)
{
    for (int round = 0; round < 60; round++) {
        struct fix f;
        plain_fix(&f);
        uint32_t n = rnd(5), flat[3] = {1u << (rnd(8) - 1), 1, 1},
                 solid[3] = {rnd(8), rnd(8), rnd(8)}, *block = round % 2 ? flat : solid;
        struct member w[5];
        for (uint32_t k = 0; k < n; k++) {
            do
                random_member(&f, &w[k]);
            while (w[k].kind == SUMS && block == solid);
            memcpy(w[k].block, block, sizeof(w[k].block));
        }
        fuse_and_run(&f, w, n, true);
        fix_deinit(&f);
    }
}

static void what_does_not_go_together(void **state)
{
    struct ws_ptx_module *m = NULL;
    struct ws_ptx_fused made, same;
    struct ws_ptx_fuse_launch l;
    assert_int_equal(ws_ptx_parse(&m, text, strlen(text), "fuse.ptx", NULL), 0);
    uint32_t funcs[2] = {SUMS, PLANE};
    assert_int_equal(ws_ptx_fuse_make(m, funcs, 2, false, "any", &made), 0);
    assert_int_equal(ws_ptx_fuse_make(m, funcs, 2, true, "same", &same), 0);
    assert_true(made.member[0].flat_grid && made.member[0].flat_block);
    assert_false(made.member[1].flat_grid || made.member[1].flat_block);
    assert_true(same.member[0].flat_grid && !same.member[0].flat_block);
    uint8_t own[16] = {0}, params[1000];
    assert_true(made.param_bytes <= sizeof(params));
    static const struct {
        const char *description;
        uint32_t grid[2][3], block[2][3];
        bool idle[2];
        int any, same;
    } rows[] = {
        {"alike", {{3, 1, 1}, {2, 2, 2}}, {{8, 1, 1}, {8, 1, 1}}, {0}, 0, 0},
        {"blocks differ", {{3, 1, 1}, {2, 2, 2}}, {{8, 1, 1}, {4, 2, 1}}, {0}, 0, 2},
        {"rows of threads", {{3, 1, 1}, {2, 1, 1}}, {{4, 2, 1}, {4, 2, 1}}, {0}, 2, 0},
        {"rows of blocks", {{3, 2, 1}, {2, 1, 1}}, {{4, 1, 1}, {4, 1, 1}}, {0}, 2, 2},
        {"none", {{0}}, {{0}}, {true, true}, 2, 2},
        {"one", {{0}, {2, 1, 1}}, {{0}, {4, 1, 1}}, {true, false}, 0, 0},
        {"empty", {{3, 0, 1}, {2, 1, 1}}, {{4, 1, 1}, {4, 1, 1}}, {0}, 2, 2},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        struct ws_ptx_fuse_work work[2] = {0};
        for (int i = 0; i < 2; i++) {
            memcpy(work[i].grid, rows[k].grid[i], sizeof(work[i].grid));
            memcpy(work[i].block, rows[k].block[i], sizeof(work[i].block));
            work[i].params = rows[k].idle[i] ? NULL : own;
        }
        int any = ws_ptx_fuse_launch(&made, work, params, &l),
            one = ws_ptx_fuse_launch(&same, work, params, &l);
        if (any != rows[k].any || one != rows[k].same)
            fail_msg("%s: %d, %d", rows[k].description, any, one);
    }
    ws_ptx_module_free(m);
}

static void dealing(void **state)
{
    uint8_t space[sizeof(struct ws_ptx_fuse) + 3 * sizeof(struct ws_ptx_fuse_member)];
    struct ws_ptx_fuse *f = (struct ws_ptx_fuse *)space;
    static const struct {
        uint32_t total[3], share[3], blocks;
    } rows[] = {
        {{30, 10, 10}, {3, 1, 1}, 50},
        {{10, 25, 0}, {1, 3, 0}, 40}, /* rounds of 1 + 3 until the first is through */
        {{0, 0, 7}, {0, 0, 1}, 7},
        {{65535, 0, 131070}, {1, 0, 2}, 3 * 65535},
        {{65536, 0, 65536}, {2, 0, 2}, 4 * 32768}, /* no more rounds than a grid has rows */
        {{INT32_MAX, INT32_MAX, 0}, {65536, 65536, 0}, 0},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        memset(space, 0, sizeof(space));
        for (int i = 0; i < 3; i++)
            f->member[i].grid.total = rows[k].total[i];
        assert_int_equal(ws_ptx_fuse_deal(f, 3), rows[k].blocks);
        for (int i = 0; i < 3; i++)
            assert_int_equal(f->member[i].share, rows[k].share[i]);
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *body, *why;
    } rows[] = {
        {"mov.u32 %r1, %warpid; ret;", "%warpid is another one"},
        {"call f, (); ret;", "a function reads %tid"},
        {"mov.u32 %r1, %envreg1; ret;", "%envreg"},
        {"ret;", NULL},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        char t[600], why[160];
        snprintf(t, sizeof(t),
                 ".version 8.0\n.target sm_75\n.address_size 64\n.func f() { .reg .b32 %%r<2>; "
                 "mov.u32 %%r1, %%tid.x; ret; }\n"
                 ".entry k() { .reg .b32 %%r<2>; %s }\n",
                 rows[k].body);
        struct ws_ptx_module *m = NULL;
        assert_int_equal(ws_ptx_parse(&m, t, strlen(t), "k.ptx", NULL), 0);
        int r = ws_ptx_fuse_refused(m, 1, why, sizeof(why));
        if (rows[k].why ? r != WS_PTX_E_UNSUPPORTED || !strstr(why, rows[k].why) : r != 0)
            fail_msg("%s: %d %s", rows[k].body, r, why);
        ws_ptx_module_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unlike_kernels),
        cmocka_unit_test(blocks_of_one_shape),
        cmocka_unit_test(what_does_not_go_together),
        cmocka_unit_test(dealing),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
