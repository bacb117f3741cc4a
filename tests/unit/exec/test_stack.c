// SPDX-License-Identifier: Apache-2.0
/* alloca, stacksave, stackrestore; registers that are vectors (.reg .v2, .v4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
#define KERNEL(body)                                                                               \
    ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %x<20>;" \
    " .reg .f32 %f<9>;\nld.param.u64 %x0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %x2, %r0, 16; " \
    "add.u64 %x1, %x0, %x2;\n" body "\nret;\n}\n"

static uint32_t *run(struct fix *f, const char *ptx, enum ws_dev_error want)
{
    fix_must_load(f, ptx);
    uint64_t out = fix_alloc(f, 4096);
    fix_block(f, 32, &out, want);
    return fix_host(f, out);
}

static void test_saved_stack_is_restored(void **state)
{
    uint32_t *out =
        run(*state,
            HEAD KERNEL("stacksave.u64 %x3; cvt.u64.u32 %x4, %r0; alloca.u64 %x5, %x4;\n"
                        "alloca.u64 %x6, 100, 64; stacksave.u64 %x7; setp.eq.u64 %p0, %x6, %x7;\n"
                        "selp.u32 %r1, 1, 0, %p0; and.b64 %x8, %x6, 63; cvt.u32.u64 %r2, %x8;\n"
                        "sub.u64 %x9, %x3, %x5; cvt.u32.u64 %r3, %x9;\n"
                        "stackrestore.u64 %x3; alloca.u64 %x10, %x4; setp.eq.u64 %p1, %x10, %x5;\n"
                        "selp.u32 %r4, 1, 0, %p1; st.global.v4.u32 [%x1], {%r1, %r2, %r3, %r4};"),
            WS_DEV_OK);
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(out[4 * i], 1);     /* what alloca gave is the new stack pointer */
        assert_int_equal(out[4 * i + 1], 0); /* aligned as asked */
        assert_true(out[4 * i + 2] >= i && out[4 * i + 2] < i + 16);
        assert_int_equal(out[4 * i + 3], 1); /* the same place again */
    }
}

static void test_blocks_of_memory_are_apart(void **state)
{ /* three pieces, written in turn, read afterwards; the guarded one by some lanes only */
    uint32_t *out =
        run(*state,
            HEAD KERNEL(
                "alloca.u64 %x3, 8; setp.gt.u32 %p0, %r0, 15; mov.u64 %x4, %x3; @%p0 alloca.u64 "
                "%x4, 4;\n"
                "alloca.u64 %x5, 4; st.local.u32 [%x3], %r0; add.u32 %r1, %r0, 100; st.local.u32 "
                "[%x4+4], 7;\n"
                "@%p0 st.local.u32 [%x4], %r1; st.local.u32 [%x5], 55; ld.local.u32 %r2, [%x3];\n"
                "ld.local.u32 %r3, [%x4]; ld.local.u32 %r4, [%x5]; cvta.local.u64 %x6, %x5; ld.u32 "
                "%r5, [%x6];\n"
                "st.global.v4.u32 [%x1], {%r2, %r3, %r4, %r5};"),
            WS_DEV_OK);
    for (uint32_t i = 0; i < 32; i++) {
        assert_int_equal(out[4 * i], i);
        assert_int_equal(out[4 * i + 1], i > 15 ? i + 100 : i);
        assert_int_equal(out[4 * i + 2], 55);
        assert_int_equal(out[4 * i + 3], 55);
    }
}

static void test_too_much_is_a_fault(void **state)
{
    static const char *const bodies[] = {"mov.u64 %x3, 0x7fffffffffffffff; alloca.u64 %x4, %x3;",
                                         "alloca.u64 %x4, 1000000;",
                                         "mov.u64 %x3, -1; alloca.u64 %x4, %x3, 1;"};
    for (size_t k = 0; k < WS_ARRAY_SIZE(bodies); k++) {
        char ptx[1024];
        struct fix f;
        fix_init(&f);
        strcpy(ptx, HEAD KERNEL("BODY"));
        char *at = strstr(ptx, "BODY"), tail[64];
        strcpy(tail, at + 4);
        strcpy(at, bodies[k]);
        strcat(at, tail);
        run(&f, ptx, WS_DEV_E_STACK_OVERFLOW);
        assert_non_null(strstr(f.text, "alloca"));
        fix_deinit(&f);
    }
    run(*state, HEAD KERNEL("mov.u64 %x3, 0x123456789; stackrestore.u64 %x3;"),
        WS_DEV_E_ILLEGAL_ADDRESS);
}

static void test_vector_registers(void **state)
{
    uint32_t *out = run(
        *state,
        HEAD KERNEL(
            ".reg .v4 .u32 %v<2>; .reg .v2 .u32 %w; .reg .v4 .f32 %g;\n"
            "mov.u32 %v0.x, %r0; add.u32 %v0.y, %r0, 1; mul.lo.u32 %v0.z, %v0.y, 3; mov.b32 %v0.w, "
            "9;\n"
            "setp.lt.u32 %p0, %r0, 8; @%p0 add.u32 %v0.r, %v0.r, 1000; mov.v4.u32 %v1, {%v0.w, "
            "%v0.z, %v0.y, %v0.x};\n"
            "mov.v4.u32 %v1, {%v1.a, %v1.b, %v1.g, %v1.r}; st.global.v4.u32 [%x1], %v1;\n"
            "ld.global.v4.u32 %v0, [%x1]; mov.v2.u32 %w, {%v0.z, %v0.x}; st.global.v2.u32 "
            "[%x1+512], %w;\n"
            "cvt.rn.f32.u32 %g.x, %w.y; cvt.rzi.u32.f32 %r1, %g.x; st.global.u32 [%x1+520], %r1;"),
        WS_DEV_OK);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t x = i < 8 ? i + 1000 : i, want[4] = {x, i + 1, 3 * (i + 1), 9};
        assert_memory_equal(out + 4 * i, want, 16);
        assert_int_equal(out[128 + 4 * i], want[2]);
        assert_int_equal(out[128 + 4 * i + 1], x);
        assert_int_equal(out[128 + 4 * i + 2], x);
    }
}

/* f(n) = (n ? f(n - 1) : 0) * 2 + a + b of its own vector, plus what lies in its own piece of
 * stack */
static void test_recursion_keeps_vectors_and_stacks(void **state)
{
    uint32_t *out =
        run(*state,
            HEAD ".func (.param .b32 ret) f(.param .b32 n)\n{\n.reg .v2 .u32 %v; .reg .b32 %r<9>; "
                 ".reg .b64 %x<4>; .reg .pred %p;\n"
                 "ld.param.b32 %r0, [n]; mov.u32 %v.x, %r0; add.u32 %v.y, %r0, 5; cvt.u64.u32 %x0, "
                 "%r0; add.u64 %x0, %x0, 4;\n"
                 "alloca.u64 %x1, %x0; mul.lo.u32 %r4, %r0, 7; st.local.u32 [%x1], %r4; mov.u32 "
                 "%r1, 0; setp.eq.u32 %p, %r0, 0; @%p bra DONE;\n"
                 "sub.u32 %r2, %r0, 1; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r2; call "
                 "(b), f, (a); ld.param.b32 %r1, [b]; }\n"
                 "DONE: shl.b32 %r1, %r1, 1; add.u32 %r1, %r1, %v.x; add.u32 %r1, %r1, %v.y; "
                 "ld.local.u32 %r5, [%x1]; add.u32 %r1, %r1, %r5;\n"
                 "st.param.b32 [ret], %r1; ret;\n}\n" KERNEL(
                     "and.b32 %r1, %r0, 7; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; "
                     "call (b), f, (a); ld.param.b32 %r2, [b]; }\n"
                     "stacksave.u64 %x3; { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; "
                     "call (b), f, (a); ld.param.b32 %r3, [b]; }\n"
                     "stacksave.u64 %x4; sub.u64 %x5, %x3, %x4; cvt.u32.u64 %r4, %x5; "
                     "st.global.v4.u32 [%x1], {%r2, %r3, %r4, 1};"),
            WS_DEV_OK);
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t want = 0;
        for (uint32_t n = 0; n <= (i & 7); n++)
            want = 2 * want + n + n + 5 + 7 * n;
        assert_int_equal(out[4 * i], want);
        assert_int_equal(out[4 * i + 1], want);
        assert_int_equal(out[4 * i + 2], 0); /* given back on return */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_saved_stack_is_restored, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_blocks_of_memory_are_apart, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_too_much_is_a_fault, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_vector_registers, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_recursion_keeps_vectors_and_stacks, fix_setup,
                                        fix_teardown),
    };
    return cmocka_run_group_tests_name("exec_stack", tests, NULL, NULL);
}
