// SPDX-License-Identifier: Apache-2.0
/* wgmma: products of random matrices, laid out in shared memory in each way that a descriptor can
 * say (PTX ISA 9.7.15.5.1), against sums of products. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

enum { M = 64, N = 24, K_MAX = 32, AT_B = 8192, IMAGE_BYTES = 20480, THREADS = 128 };

/* A way to lay out a matrix: how much is permuted, and whether neighbours are of one k. */
struct layout {
    unsigned mode; /* 0: nothing, 1: 128 bytes, 2: 64, 3: 32 */
    bool by_rows;
};
struct product {
    const char *shape, *types, *tail; /* tail: the operands behind the predicate */
    unsigned k, bytes;                /* of an element */
    struct layout a, b;
    bool a_in_registers, starts_at_zero;
    int factor;
};

static unsigned width_of(const struct layout *l)
{
    static const unsigned widths[] = {16, 128, 64, 32};
    return widths[l->mode];
}

/* Bytes between groups of eight rows, and between the parts that the width cuts a matrix into. */
static void distances(const struct layout *l, unsigned rows, unsigned *ret_leading,
                      unsigned *ret_stride)
{
    unsigned atom = 8 * width_of(l), per_atom = width_of(l) / 2;
    if (!l->by_rows) {
        *ret_leading = 128;
        *ret_stride = l->mode ? atom : 256;
    } else if (!l->mode) {
        *ret_stride = 128;
        *ret_leading = rows / 8 * 128;
    } else {
        *ret_leading = atom;
        *ret_stride = (rows + per_atom - 1) / per_atom * atom;
    }
}

static unsigned byte_of(const struct product *p, const struct layout *l, unsigned rows,
                        unsigned row, unsigned k)
{
    unsigned leading, stride, width = width_of(l), at;
    distances(l, rows, &leading, &stride);
    if (!l->by_rows) {
        unsigned in_row = k * p->bytes;
        at = row / 8 * stride + row % 8 * width + in_row / 16 * (l->mode ? 16 : leading) +
             in_row % 16;
    } else if (!l->mode) {
        at = row / 8 * stride + row % 8 * 2 + k / 8 * leading + k % 8 * 16;
    } else {
        unsigned per_atom = width / 2;
        at = row / per_atom * leading + row % per_atom * 2 + k / 8 * stride + k % 8 * width;
    }
    return at ^ (at / 128 % (width / 16)) << 4;
}

static uint64_t descriptor(const struct layout *l, unsigned rows, unsigned at)
{
    unsigned leading, stride;
    distances(l, rows, &leading, &stride);
    return at / 16 | (uint64_t)(leading / 16) << 16 | (uint64_t)(stride / 16) << 32 |
           (uint64_t)l->mode << 62;
}

/* The few numbers that are used, as f16, as bytes, and as a float's bits. */
static uint32_t bits_of(const struct product *p, int v)
{
    static const uint16_t halves[] = {0x4200, 0x4000, 0x3c00, 0, 0x3c00, 0x4000, 0x4200};
    float f = (float)v;
    uint32_t w;
    memcpy(&w, &f, 4);
    return p->bytes == 4 ? w : p->bytes == 1 ? (uint8_t)v : halves[v + 3] | (v < 0 ? 0x8000u : 0);
}

static const char *kernel_of(const struct product *p, char *text, size_t size)
{
    char d[200] = "", a[80] = "%x0", c[600] = "";
    for (unsigned k = 0; k < N / 2; k++) {
        snprintf(d + strlen(d), sizeof(d) - strlen(d), "%s%%d%u", k ? ", " : "", k);
        snprintf(c + strlen(c), sizeof(c) - strlen(c), "st.global.b32 [%%p+%u], %%d%u;\n", 4 * k,
                 k);
    }
    if (p->a_in_registers)
        snprintf(a, sizeof(a), "{%%a0, %%a1, %%a2, %%a3}");
    snprintf(
        text, size,
        ".version 8.6\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 out, .param .u64 in, .param .u64 da, .param .u64 db)\n{\n"
        ".reg .pred %%q<4>; .reg .b32 %%r<8>, %%t, %%a<4>, %%d<16>; .reg .b64 %%x<4>, %%o, %%i, "
        "%%p;\n.shared .align 1024 .b8 s[%d];\n"
        "ld.param.u64 %%o, [out]; ld.param.u64 %%i, [in]; mov.u32 %%t, %%tid.x;\n"
        "ld.param.u64 %%x0, [da]; ld.param.u64 %%x1, [db]; mul.wide.u32 %%x2, %%t, 4; add.u64 %%i, "
        "%%i, %%x2;\nmov.u32 %%r1, s; mad.lo.u32 %%r1, %%t, 4, %%r1; mov.u32 %%r0, 0;\n"
        "L: ld.global.b32 %%r2, [%%i]; st.shared.b32 [%%r1], %%r2; add.u64 %%i, %%i, %d;\n"
        "add.u32 %%r1, %%r1, %d; add.u32 %%r0, %%r0, 1; setp.lt.u32 %%q0, %%r0, %d; @%%q0 bra L;\n"
        "mul.wide.u32 %%x2, %%t, 16; ld.param.u64 %%i, [in]; add.u64 %%x2, %%x2, %%i;\n"
        "ld.global.v4.b32 {%%a0, %%a1, %%a2, %%a3}, [%%x2+%d];\n"
        "mul.wide.u32 %%p, %%t, %d; add.u64 %%p, %%o, %%p; setp.ne.u32 %%q1, %d, 0;\n"
        "mov.u32 %%d0, %%d0;\n"
        "bar.sync 0; fence.proxy.async.shared::cta; wgmma.fence.sync.aligned;\n"
        "setmaxnreg.inc.sync.aligned.u32 240;\n"
        "wgmma.mma_async.sync.aligned.%s.%s {%s}, %s, %%x1, 0%s;\n"
        "wgmma.mma_async.sync.aligned.%s.%s {%s}, %s, %%x1, %%q1%s;\n"
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n%sret;\n}\n",
        IMAGE_BYTES, 4 * THREADS, 4 * THREADS, IMAGE_BYTES / 4 / THREADS, IMAGE_BYTES, 2 * N,
        !p->starts_at_zero, p->shape, p->types, d, a, p->tail, p->shape, p->types, d, a, p->tail,
        c);
    return text;
}

static int a_of[M][K_MAX], b_of[N][K_MAX];

static void fill(const struct product *p, uint8_t *image)
{
    for (unsigned k = 0; k < p->k; k++) {
        for (unsigned m = 0; m < M; m++) {
            uint32_t v = bits_of(p, a_of[m][k] = rand() % 7 - 3);
            unsigned per = 4 / p->bytes, reg = m / 8 % 2 + k / (4 * per) * 2,
                     lane = m % 8 * 4 + k / per % 4;
            memcpy(image + byte_of(p, &p->a, M, m, k), &v, p->bytes);
            memcpy(image + IMAGE_BYTES + (m / 16 * 32 + lane) * 16 + reg * 4 + k % per * p->bytes,
                   &v, p->bytes);
        }
        for (unsigned n = 0; n < N; n++) {
            uint32_t v = bits_of(p, b_of[n][k] = rand() % 7 - 3);
            memcpy(image + AT_B + byte_of(p, &p->b, N, n, k), &v, p->bytes);
        }
    }
}

static double want_of(const struct product *p, unsigned m, unsigned n)
{
    int sum = 0;
    for (unsigned k = 0; k < p->k; k++)
        sum += a_of[m][k] * b_of[n][k];
    return sum * p->factor * (p->starts_at_zero ? 1 : 2);
}

static void check_product(struct fix *f, const struct product *p)
{
    char text[6000];
    uint64_t args[4];
    fix_must_load(f, kernel_of(p, text, sizeof(text)));
    args[0] = fix_alloc(f, THREADS * N * 2);
    args[1] = fix_alloc(f, IMAGE_BYTES + THREADS * 16);
    args[2] = descriptor(&p->a, M, 0);
    args[3] = descriptor(&p->b, N, AT_B);
    fill(p, fix_host(f, args[1]));
    fix_block(f, THREADS, args, WS_DEV_OK);
    const uint32_t *out = fix_host(f, args[0]);
    for (unsigned m = 0; m < M; m++)
        for (unsigned n = 0; n < N; n++) {
            unsigned thread = m / 16 * 32 + m % 8 * 4 + n % 8 / 2;
            uint32_t w = out[thread * (N / 2) + n / 8 * 4 + m / 8 % 2 * 2 + n % 2];
            float real;
            memcpy(&real, &w, 4);
            double got = p->bytes == 1 ? (int32_t)w : real;
            if (got != want_of(p, m, n))
                fail_msg("%s.%s modes %u %u: row %u, column %u: %g, should be %g", p->shape,
                         p->types, p->a.mode, p->b.mode, m, n, got, want_of(p, m, n));
        }
}

static void check_once(const struct product *p)
{
    void *state = NULL;
    assert_int_equal(fix_setup(&state), 0);
    check_product(state, p);
    assert_int_equal(fix_teardown(&state), 0);
}

/* Halves in all layouts, both ways round. */
static void test_halves(void **state)
{
    for (unsigned n = 0; n < 64; n++) {
        char tail[20];
        struct product p = {.shape = "m64n24k16",
                            .types = "f32.f16.f16",
                            .k = 16,
                            .bytes = 2,
                            .a = {n % 4, n / 16 % 2},
                            .b = {n / 4 % 4, n / 32 % 2},
                            .factor = 1};
        snprintf(tail, sizeof(tail), ", 1, 1, %d, %d", p.a.by_rows, p.b.by_rows);
        p.tail = tail;
        check_once(&p);
    }
}

static void test_other_types(void **state)
{
    static const struct product rows[] = {
        {"m64n24k8", "f32.tf32.tf32", ", 1, 1", 8, 4, {1, false}, {2, false}, .factor = 1},
        {"m64n24k8", "f32.tf32.tf32", ", 1, -1", 8, 4, {0, false}, {3, false}, .factor = -1},
        {"m64n24k16", "f32.f16.f16", ", -1, 1, 0, 0", 16, 2, {3, false}, {1, false}, .factor = -1},
        {.shape = "m64n24k16",
         .types = "f32.f16.f16",
         .tail = ", 1, 1, 1",
         .k = 16,
         .bytes = 2,
         .b = {1, true},
         .a_in_registers = true,
         .starts_at_zero = true,
         .factor = 1},
        {"m64n24k32", "s32.s8.s8", "", 32, 1, {1, false}, {3, false}, .factor = 1},
        {.shape = "m64n24k8",
         .types = "f32.tf32.tf32",
         .tail = ", 1, 1",
         .k = 8,
         .bytes = 4,
         .b = {1, false},
         .a_in_registers = true,
         .factor = 1},
    };
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
        check_once(&rows[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_other_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
