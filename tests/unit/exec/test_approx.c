// SPDX-License-Identifier: Apache-2.0
/* The approximations (.approx, .full) within the errors that the PTX ISA states in 9.7.3 and 9.7.4,
 * over a million floats spread evenly among all bit patterns, against long double; and their
 * special values, exactly. Every vector build. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

enum { N = 1 << 20, STEP = 4093 }; /* odd, so that every bit takes part */

static float from_bits(uint32_t v)
{
    float f;
    memcpy(&f, &v, 4);
    return f;
}
static uint32_t to_bits(float f)
{
    uint32_t v;
    memcpy(&v, &f, 4);
    return v;
}
static double from_bits64(uint64_t v)
{
    double f;
    memcpy(&f, &v, 8);
    return f;
}

/* What the true value is, and how far off the result may be; false: nothing is promised for x. */
typedef bool bound(float x, long double *want, long double *error);

#define WITHIN(name, condition, value, allowed)                                                    \
    static bool name(float x, long double *want, long double *error)                               \
    {                                                                                              \
        if (!(condition))                                                                          \
            return false;                                                                          \
        *want = (value);                                                                           \
        *error = (allowed);                                                                        \
        return true;                                                                               \
    }
#define NORMAL(x) (fabsf(x) >= 0x1p-126f && fabsf(x) <= 0x1p126f)
#define PI_       3.14159265358979323846L
WITHIN(b_rcp, NORMAL(x), 1.0L / x, fabsl(*want) * 0x1p-23L)
WITHIN(b_sqrt, x > 0 && x >= 0x1p-126f && isfinite(x), sqrtl(x), *want * 0x1p-23L)
WITHIN(b_rsqrt, x >= 0x1p-126f && isfinite(x), 1.0L / sqrtl(x), *want *exp2l(-22.9L))
WITHIN(b_sin, fabsl(x) <= 100 * PI_, sinl(x), fabsl(x) <= 2 * PI_ ? exp2l(-20.5L) : exp2l(-14.7L))
WITHIN(b_cos, fabsl(x) <= 100 * PI_, cosl(x), fabsl(x) <= 2 * PI_ ? exp2l(-20.5L) : exp2l(-14.7L))
WITHIN(b_lg2, x >= 0x1p-126f && isfinite(x), log2l(x),
       x > 0.5f && x < 2 ? 0x1p-22L : fabsl(*want) * 0x1p-22L)
WITHIN(b_ex2, x > -126 && x < 128, exp2l(x), *want *(0x1p-22L + 0x1p-24L))
WITHIN(b_tanh, isfinite(x), tanhl(x), fabsl(*want) * 0x1p-11L)
WITHIN(b_div3, NORMAL(x) && fabsf(x) < 0x1p125f, 3.0L / x, fabsl(*want) * 2 * 0x1p-23L)
WITHIN(b_full3, NORMAL(x) && fabsf(x) < 0x1p125f, 3.0L / x, fabsl(*want) * 2 * 0x1p-23L)
/* 20 bits of the mantissa are seen and given: cut off once, rounded once */
WITHIN(b_rcp64, NORMAL(x), 1.0L / x, fabsl(*want) * 0x1.8p-20L)
WITHIN(b_rsqrt64, x >= 0x1p-126f && isfinite(x), 1.0L / sqrtl(x), *want * 0x1p-20L)

struct special {
    uint32_t x, want;
};
#define INF  0x7f800000u
#define NINF 0xff800000u
#define QNAN 0x7fffffffu
#define Z    0x80000000u
/* @want QNAN: the canonical NaN; of each subnormal, as .ftz sees it where the row says so */
static const struct special s_rcp[] = {
    {NINF, Z}, {Z, NINF}, {0, INF}, {INF, 0}, {0x7fc00001, QNAN}, {0x3f800000, 0x3f800000}, {0, 0}};
static const struct special s_rcpz[] = {{NINF, Z}, {0x80000001, NINF}, {0x007fffff, INF},
                                        {INF, 0},  {0x7fc00001, QNAN}, {0, 0}};
static const struct special s_sqrt[] = {{NINF, QNAN}, {0xbf800000, QNAN},       {Z, Z},
                                        {INF, INF},   {0x40800000, 0x40000000}, {0, 0}};
static const struct special s_rsqrt[] = {{NINF, QNAN}, {0xbf800000, QNAN},       {Z, NINF},
                                         {INF, 0},     {0x40800000, 0x3f000000}, {0, 0}};
static const struct special s_sin[] = {
    {NINF, QNAN}, {Z, Z}, {INF, QNAN}, {0x7fc00001, QNAN}, {0, 0}};
static const struct special s_cos[] = {
    {NINF, QNAN}, {Z, 0x3f800000}, {1, 0x3f800000}, {INF, QNAN}, {0, 0}};
static const struct special s_lg2[] = {{NINF, QNAN}, {0xbf800000, QNAN},       {Z, NINF},
                                       {INF, INF},   {0x41000000, 0x40400000}, {0, 0}};
static const struct special s_ex2[] = {{NINF, 0},  {Z, 0x3f800000},    {1, 0x3f800000},
                                       {INF, INF}, {0x7fc00001, QNAN}, {0x40400000, 0x41000000},
                                       {0, 0}};
static const struct special s_tanh[] = {
    {NINF, 0xbf800000}, {Z, Z}, {INF, 0x3f800000}, {0x7fc00001, QNAN}, {0, 0}};
static const struct special s_div[] = {{0x7f000001, 0}, {0xff000001, Z},    {INF, 0},
                                       {0x7f7fffff, 0}, {0x7fc00001, QNAN}, {0, 0}};
static const struct special s_none[] = {{0, 0}};

static const struct op {
    const char *name, *text; /* from %f1 to %f2 */
    bound *within;
    const struct special *specials;
} ops[] = {
    {"rcp", "rcp.approx.f32 %f2, %f1;", b_rcp, s_rcp},
    {"rcp.ftz", "rcp.approx.ftz.f32 %f2, %f1;", b_rcp, s_rcpz},
    {"sqrt", "sqrt.approx.f32 %f2, %f1;", b_sqrt, s_sqrt},
    {"sqrt.ftz", "sqrt.approx.ftz.f32 %f2, %f1;", b_sqrt, s_sqrt},
    {"rsqrt", "rsqrt.approx.f32 %f2, %f1;", b_rsqrt, s_rsqrt},
    {"rsqrt.ftz", "rsqrt.approx.ftz.f32 %f2, %f1;", b_rsqrt, s_rsqrt},
    {"sin", "sin.approx.f32 %f2, %f1;", b_sin, s_sin},
    {"sin.ftz", "sin.approx.ftz.f32 %f2, %f1;", b_sin, s_sin},
    {"cos", "cos.approx.f32 %f2, %f1;", b_cos, s_cos},
    {"lg2", "lg2.approx.f32 %f2, %f1;", b_lg2, s_lg2},
    {"lg2.ftz", "lg2.approx.ftz.f32 %f2, %f1;", b_lg2, s_lg2},
    {"ex2", "ex2.approx.f32 %f2, %f1;", b_ex2, s_ex2},
    {"ex2.ftz", "ex2.approx.ftz.f32 %f2, %f1;", b_ex2, s_ex2},
    {"tanh", "tanh.approx.f32 %f2, %f1;", b_tanh, s_tanh},
    {"div.approx", "div.approx.f32 %f2, 0f40400000, %f1;", b_div3, s_div},
    {"div.approx.ftz", "div.approx.ftz.f32 %f2, 0f40400000, %f1;", b_div3, s_div},
    {"div.full", "div.full.f32 %f2, 0f40400000, %f1;", b_full3, s_none},
    {"rcp.f64", "cvt.f64.f32 %d1, %f1; rcp.approx.ftz.f64 %d2, %d1; cvt.rn.f32.f64 %f2, %d2;",
     b_rcp64, s_none},
    {"rsqrt.f64", "cvt.f64.f32 %d1, %f1; rsqrt.approx.ftz.f64 %d2, %d1; cvt.rn.f32.f64 %f2, %d2;",
     b_rsqrt64, s_none},
};

static char *ptx_of_ops(void)
{
    char *t = malloc(WS_ARRAY_SIZE(ops) * 1024 + 256), *p = t;
    p += sprintf(p, ".version 9.0\n.target sm_90\n.address_size 64\n");
    for (unsigned k = 0; k < WS_ARRAY_SIZE(ops); k++)
        p += sprintf(
            p,
            ".visible .entry k%u(.param .u64 pa, .param .u64 pd)\n{\n.reg .b32 %%r<4>; .reg .f32 "
            "%%f<4>; .reg .f64 %%d<4>; .reg .b64 %%x<4>;\n"
            "mov.u32 %%r0, %%ctaid.x; mov.u32 %%r1, %%tid.x; mad.lo.u32 %%r0, %%r0, 256, %%r1;\n"
            "ld.param.u64 %%x0, [pa]; ld.param.u64 %%x1, [pd];\n"
            "mad.wide.u32 %%x0, %%r0, 4, %%x0; mad.wide.u32 %%x1, %%r0, 4, %%x1;\n"
            "ld.global.f32 %%f1, [%%x0];\n%s\nst.global.f32 [%%x1], %%f2;\nret;\n}\n",
            k, ops[k].text);
    return t;
}

static unsigned check_op(const struct op *op, const char *isa, const float *in, const float *out)
{
    unsigned n = 0;
    long double worst = 0;
    float at = 0;
    for (unsigned i = 0; i < N; i++) {
        long double want, error;
        if (!op->within(in[i], &want, &error))
            continue;
        n++;
        long double off = fabsl((long double)out[i] - want) / error;
        if (!(off <= worst)) {
            worst = off;
            at = in[i];
        }
    }
    assert_true(n > 1000);
    if (worst <= 1)
        return 0;
    print_error("%s [%s] of %a: %.3Lg times the error allowed\n", op->name, isa, (double)at, worst);
    return 1;
}

static void test_within_the_stated_error(void **state)
{
    static const char *const isas[] = {"sse2", "avx2", "avx512"};
    char *ptx = ptx_of_ops();
    unsigned bad = 0;
    (void)state;
    for (unsigned v = 0; v < 3; v++) {
        struct fix f;
        setenv("WS_SOFT_ISA", isas[v], 1);
        if (strcmp(ws_exec_isa(), isas[v]) != 0)
            continue; /* the processor lacks it */
        fix_init(&f);
        fix_must_load(&f, ptx);
        uint64_t va[2] = {fix_alloc(&f, N * 4), fix_alloc(&f, N * 4)};
        float *in = fix_host(&f, va[0]), *out = fix_host(&f, va[1]);
        for (unsigned k = 0; k < WS_ARRAY_SIZE(ops); k++) {
            char name[16];
            unsigned n = 0;
            for (unsigned i = 0; i < N; i++)
                in[i] = from_bits(i * STEP);
            for (unsigned i = 0; i < N / 8; i++) /* more where sines are promised */
                in[8 * i] = (float)((double)i * (1300.0 / N) - 81);
            for (; ops[k].specials[n].x || ops[k].specials[n].want; n++)
                in[n] = from_bits(ops[k].specials[n].x);
            snprintf(name, sizeof(name), "k%u", k);
            fix_run(&f, &(struct launch){
                            .kernel = name, .grid = {N / 256}, .block = {256}, .params = va});
            bad += check_op(&ops[k], isas[v], in, out);
            for (unsigned s = 0; s < n; s++) {
                uint32_t got = to_bits(out[s]);
                if (got == ops[k].specials[s].want)
                    continue;
                print_error("%s [%s] of %08x: %08x, not %08x\n", ops[k].name, isas[v],
                            ops[k].specials[s].x, got, ops[k].specials[s].want);
                bad++;
            }
        }
        fix_deinit(&f);
    }
    unsetenv("WS_SOFT_ISA");
    free(ptx);
    assert_int_equal(bad, 0);
}

/* Special values of the approximations that work on the high half of a double (9.7.3.12,
 * 9.7.3.17). */
static void test_special_doubles(void **state)
{
    static const struct {
        uint64_t x, rcp, rsqrt;
    } rows[] = {
        {0xfff0000000000000, 0x8000000000000000, 0x7fffffff00000000},
        {0x800fffffffffffff, 0xfff0000000000000, 0xfff0000000000000},
        {0x0000000000000001, 0x7ff0000000000000, 0x7ff0000000000000},
        {0x7ff0000000000000, 0x0000000000000000, 0x0000000000000000},
        {0x7ff8000000000000, 0x7fffffff00000000, 0x7fffffff00000000},
        {0x40100000ffffffff, 0x3fd0000000000000,
         0x3fe0000000000000}, /* the low half does not count */
        {0x7fefffff00000000, 0x0000000000000000, 0x1ff0000000000000 + 0},
    };
    struct fix f;
    (void)state;
    fix_init(&f);
    fix_must_load(
        &f,
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r1; .reg .f64 %d<4>; .reg .b64 %x<4>;\n"
        "mov.u32 %r1, %tid.x; ld.param.u64 %x0, [p]; mad.wide.u32 %x0, %r1, 24, %x0;\n"
        "ld.global.f64 %d0, [%x0]; rcp.approx.ftz.f64 %d1, %d0; rsqrt.approx.ftz.f64 %d2, %d0;\n"
        "st.global.f64 [%x0+8], %d1; st.global.f64 [%x0+16], %d2; ret;\n}\n");
    uint64_t va = fix_alloc(&f, WS_ARRAY_SIZE(rows) * 24), *h = fix_host(&f, va);
    for (unsigned k = 0; k < WS_ARRAY_SIZE(rows); k++)
        h[3 * k] = rows[k].x;
    fix_run(&f, &(struct launch){
                    .kernel = "k", .grid = {1}, .block = {WS_ARRAY_SIZE(rows)}, .params = &va});
    for (unsigned k = 0; k < WS_ARRAY_SIZE(rows) - 1; k++) {
        assert_int_equal(h[3 * k + 1], rows[k].rcp);
        assert_int_equal(h[3 * k + 2], rows[k].rsqrt);
    }
    assert_true(from_bits64(h[3 * 6 + 1]) == 0); /* a subnormal result is flushed */
    fix_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_within_the_stated_error),
        cmocka_unit_test(test_special_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
