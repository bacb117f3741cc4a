// SPDX-License-Identifier: Apache-2.0
/* Warp-wide matrices against products computed here: wmma for every shape, format and layout; mma
 * with fragments packed as the PTX ISA's figures have them (9.7.14); ldmatrix, stmatrix, movmatrix
 * with known answers. Elements are small integers, so that products and sums are exact in every
 * format. */
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

/* ---- elements as bits ---- */
static unsigned bits_of(const char *e)
{
    static const struct {
        const char *name;
        unsigned bits;
    } known[] = {{"b1", 1},   {"s4", 4},   {"u4", 4},   {"s8", 8},    {"u8", 8},
                 {"e4m3", 8}, {"e5m2", 8}, {"f16", 16}, {"bf16", 16}, {"f64", 64}};
    for (size_t k = 0; k < WS_ARRAY_SIZE(known); k++)
        if (!strcmp(known[k].name, e))
            return known[k].bits;
    return 32;
}
static bool is_float(const char *e)
{
    return e[0] != 's' && e[0] != 'u' && strcmp(e, "b1");
}
/* Small integers only. */
static uint64_t encode(const char *e, int v)
{
    uint64_t b = 0;
    float f = (float)v;
    double d = v;
    uint32_t w;
    if (!is_float(e))
        return (uint64_t)(int64_t)v &
               (bits_of(e) == 64 ? UINT64_MAX : (UINT64_C(1) << bits_of(e)) - 1);
    if (!strcmp(e, "f64")) {
        memcpy(&b, &d, 8);
        return b;
    }
    memcpy(&w, &f, 4);
    if (!strcmp(e, "f32") || !strcmp(e, "tf32"))
        return w;
    if (!strcmp(e, "bf16"))
        return w >> 16;
    unsigned sign = w >> 31, exponent = w >> 23 & 255, fraction = w >> 13 & 1023; /* of f16 */
    uint32_t h = v ? sign << 15 | (exponent - 112) << 10 | fraction : 0;
    if (!strcmp(e, "f16"))
        return h;
    if (!strcmp(e, "e5m2"))
        return h >> 8;
    return v ? sign << 7 | (exponent - 120) << 3 | fraction >> 7 : 0; /* e4m3 */
}
static double decode(const char *e, uint64_t b)
{
    float f;
    double d;
    uint32_t w = (uint32_t)b;
    if (!strcmp(e, "s32"))
        return (int32_t)b;
    if (!strcmp(e, "f64")) {
        memcpy(&d, &b, 8);
        return d;
    }
    if (!strcmp(e, "f16")) {
        unsigned h = (unsigned)b & 0xffff;
        w = h & 0x7fff ? (h >> 15) << 31 | ((h >> 10 & 31) + 112) << 23 | (h & 1023) << 13 : 0;
    }
    memcpy(&f, &w, 4);
    return f;
}
static int random_of(const char *e)
{
    int r = rand() >> 4;
    if (!strcmp(e, "b1"))
        return r & 1;
    if (!strcmp(e, "u4"))
        return r & 15;
    if (!strcmp(e, "s4"))
        return (r & 15) - 8;
    if (!strcmp(e, "u8"))
        return r & 255;
    if (!strcmp(e, "s8"))
        return (r & 255) - 128;
    return r % 7 - 3; /* few bits: exact also in e5m2, and sums in f16 */
}

static int a_of[64 * 256], b_of[256 * 64], c_of[64 * 64];
static double want_of[64 * 64];
static void make_matrices(unsigned m, unsigned n, unsigned k, const char *ea, const char *eb,
                          bool x)
{
    for (unsigned i = 0; i < m * k; i++)
        a_of[i] = random_of(ea);
    for (unsigned i = 0; i < k * n; i++)
        b_of[i] = random_of(eb);
    for (unsigned i = 0; i < m; i++)
        for (unsigned j = 0; j < n; j++) {
            int c = c_of[i * n + j] = rand() % 9 - 4;
            long sum = c;
            for (unsigned q = 0; q < k; q++)
                sum += x ? (a_of[i * k + q] != b_of[q * n + j])
                         : (long)a_of[i * k + q] * b_of[q * n + j];
            want_of[i * n + j] = (double)sum;
        }
}

/* ---- wmma ---- */
struct wmma {
    const char *shape;
    unsigned m, n, k;
    const char *a, *c; /* formats of A and B, and of C and D */
    unsigned na, nb, nc;
    const char *multiply; /* between the layouts and the operands */
    bool row_col_only, xor;
};
static const struct wmma wmmas[] = {
    {"m16n16k16", 16, 16, 16, "f16", "f32", 8, 8, 8, "f32.f32", 0, 0},
    {"m16n16k16", 16, 16, 16, "f16", "f16", 8, 8, 4, "f16.f16", 0, 0},
    {"m8n32k16", 8, 32, 16, "f16", "f32", 8, 8, 8, "f32.f32", 0, 0},
    {"m32n8k16", 32, 8, 16, "f16", "f32", 8, 8, 8, "f32.f32", 0, 0},
    {"m16n16k16", 16, 16, 16, "bf16", "f32", 4, 4, 8, "f32.bf16.bf16.f32", 0, 0},
    {"m8n32k16", 8, 32, 16, "bf16", "f32", 2, 8, 8, "f32.bf16.bf16.f32", 0, 0},
    {"m32n8k16", 32, 8, 16, "bf16", "f32", 8, 2, 8, "f32.bf16.bf16.f32", 0, 0},
    {"m16n16k8", 16, 16, 8, "tf32", "f32", 4, 4, 8, "f32.tf32.tf32.f32", 0, 0},
    {"m8n8k4", 8, 8, 4, "f64", "f64", 1, 1, 2, "f64.f64.f64.f64", 0, 0},
    {"m16n16k16", 16, 16, 16, "s8", "s32", 2, 2, 8, "s32.s8.s8.s32", 0, 0},
    {"m16n16k16", 16, 16, 16, "u8", "s32", 2, 2, 8, "s32.u8.u8.s32.satfinite", 0, 0},
    {"m8n32k16", 8, 32, 16, "s8", "s32", 1, 4, 8, "s32.s8.s8.s32", 0, 0},
    {"m32n8k16", 32, 8, 16, "u8", "s32", 4, 1, 8, "s32.u8.u8.s32", 0, 0},
    {"m8n8k32", 8, 8, 32, "s4", "s32", 1, 1, 2, "s32.s4.s4.s32", 1, 0},
    {"m8n8k32", 8, 8, 32, "u4", "s32", 1, 1, 2, "s32.u4.u4.s32", 1, 0},
    {"m8n8k128", 8, 8, 128, "b1", "s32", 1, 1, 2, "s32.b1.b1.s32", 1, 1},
    {"m8n8k128", 8, 8, 128, "b1", "s32", 1, 1, 2, "s32.b1.b1.s32", 1, 0},
};

static const char *list(char *to, const char *reg, unsigned n)
{
    size_t at = (size_t)sprintf(to, "{");
    for (unsigned i = 0; i < n; i++)
        at += (size_t)sprintf(to + at, "%s%%%s%u", i ? "," : "", reg, i);
    strcpy(to + at, "}");
    return to;
}

/* In memory, with a stride larger than it must be. */
static uint64_t put(struct fix *f, const int *v, unsigned rows, unsigned cols, const char *e,
                    bool col, unsigned stride)
{
    unsigned bits = bits_of(e);
    uint64_t va = fix_alloc(f, 32768);
    uint8_t *host = fix_host(f, va);
    for (unsigned r = 0; r < rows; r++)
        for (unsigned c = 0; c < cols; c++) {
            uint64_t at = col ? (uint64_t)c * stride + r : (uint64_t)r * stride + c,
                     x = encode(e, v[r * cols + c]);
            if (bits < 8)
                host[at * bits / 8] |= (uint8_t)(x << at * bits % 8);
            else
                memcpy(host + at * bits / 8, &x, bits / 8);
        }
    return va;
}

static void wmma_case(const struct wmma *w, bool a_col, bool b_col, bool d_col)
{
    static char ptx[8192], ra[128], rb[128], rc[128], rd[128];
    struct fix f = {0};
    fix_init(&f);
    const char *cr = !strcmp(w->c, "f64")   ? "fd"
                     : !strcmp(w->c, "f32") ? "f"
                                            : "r",
               *ar = !strcmp(w->a, "f64") ? "ad" : "a", *br = !strcmp(w->a, "f64") ? "bd" : "b",
               *dr = !strcmp(w->c, "f64")   ? "gd"
                     : !strcmp(w->c, "f32") ? "g"
                                            : "s";
    unsigned sa = 256, sb = 256, sc = 64;
    snprintf(ptx, sizeof(ptx),
             ".version 7.8\n.target sm_90\n.address_size 64\n"
             ".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)\n{\n"
             ".reg .b32 %%a<8>, %%b<8>, %%r<8>, %%s<8>, %%w<4>; .reg .f32 %%f<8>, %%g<8>;\n"
             ".reg .f64 %%ad<2>, %%bd<2>, %%fd<2>, %%gd<2>; .reg .b64 %%p<8>;\n"
             "ld.param.u64 %%p0, [a]; ld.param.u64 %%p1, [b]; ld.param.u64 %%p2, [c]; ld.param.u64 "
             "%%p3, [d];\n"
             "mov.u32 %%w0, %u; mov.u32 %%w1, %u; mov.u32 %%w2, %u;\n"
             "wmma.load.a.sync.aligned.%s.%s.global.%s %s, [%%p0], %%w0;\n"
             "wmma.load.b.sync.aligned.%s.%s.global.%s %s, [%%p1], %%w1;\n"
             "wmma.load.c.sync.aligned.row.%s.global.%s %s, [%%p2], %%w2;\n"
             "wmma.mma%s.sync.aligned.%s.%s.%s.%s %s, %s, %s, %s;\n"
             "wmma.store.d.sync.aligned.%s.%s.global.%s [%%p3], %s, %%w2;\nret;\n}\n",
             sa, sb, sc, a_col ? "col" : "row", w->shape, w->a, list(ra, ar, w->na),
             b_col ? "col" : "row", w->shape, w->a, list(rb, br, w->nb), w->shape, w->c,
             list(rc, cr, w->nc),
             strcmp(w->a, "b1") ? ""
             : w->xor           ? ".xor.popc"
                                : ".and.popc",
             a_col ? "col" : "row", b_col ? "col" : "row", w->shape, w->multiply,
             list(rd, dr, w->nc), ra, rb, rc, d_col ? "col" : "row", w->shape, w->c, rd);
    make_matrices(w->m, w->n, w->k, w->a, w->a, w->xor);
    fix_must_load(&f, ptx);
    uint64_t p[4] = {put(&f, a_of, w->m, w->k, w->a, a_col, sa),
                     put(&f, b_of, w->k, w->n, w->a, b_col, sb),
                     put(&f, c_of, w->m, w->n, w->c, false, sc), fix_alloc(&f, 32768)};
    fix_run(&f, &(struct launch){.kernel = "k", .grid = {1}, .block = {32}, .params = p});
    const uint8_t *d = fix_host(&f, p[3]);
    for (unsigned i = 0; i < w->m; i++)
        for (unsigned j = 0; j < w->n; j++) {
            uint64_t x = 0;
            unsigned bytes = bits_of(w->c) / 8;
            memcpy(&x, d + (d_col ? j * sc + i : i * sc + j) * bytes, bytes);
            if (decode(w->c, x) != want_of[i * w->n + j])
                fail_msg("wmma %s %s: d[%u][%u] is %g, not %g", w->shape, w->multiply, i, j,
                         decode(w->c, x), want_of[i * w->n + j]);
        }
    fix_deinit(&f);
}

static void test_wmma(void **state)
{
    (void)state;
    for (size_t i = 0; i < WS_ARRAY_SIZE(wmmas); i++)
        for (unsigned layouts = 0; layouts < 8; layouts++)
            if (!wmmas[i].row_col_only || (layouts & 3) == 2)
                wmma_case(&wmmas[i], layouts & 1, layouts & 2, layouts & 4);
}

/* ---- mma: fragments as in the figures ---- */
struct mma {
    const char *op; /* behind "mma.sync.aligned" */
    unsigned m, n, k;
    const char *a, *b, *c, *d;
    unsigned na, nb, nc, nd;
    bool quads, a_col, b_row, xor;
};
static const struct mma mmas[] = {
    {".m16n8k16.row.col.f32.f16.f16.f32", 16, 8, 16, "f16", "f16", "f32", "f32", 4, 2, 4, 4, 0, 0,
     0, 0},
    {".m16n8k16.row.col.f16.f16.f16.f16", 16, 8, 16, "f16", "f16", "f16", "f16", 4, 2, 2, 2, 0, 0,
     0, 0},
    {".m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 8, "f16", "f16", "f32", "f32", 2, 1, 4, 4, 0, 0, 0,
     0},
    {".m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, 8, "bf16", "bf16", "f32", "f32", 2, 1, 4, 4, 0, 0,
     0, 0},
    {".m16n8k16.row.col.f32.bf16.bf16.f32", 16, 8, 16, "bf16", "bf16", "f32", "f32", 4, 2, 4, 4, 0,
     0, 0, 0},
    {".m16n8k4.row.col.f32.tf32.tf32.f32", 16, 8, 4, "tf32", "tf32", "f32", "f32", 2, 1, 4, 4, 0, 0,
     0, 0},
    {".m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 8, "tf32", "tf32", "f32", "f32", 4, 2, 4, 4, 0, 0,
     0, 0},
    {".m8n8k4.row.col.f64.f64.f64.f64", 8, 8, 4, "f64", "f64", "f64", "f64", 1, 1, 2, 2, 0, 0, 0,
     0},
    {".m16n8k4.row.col.rn.f64.f64.f64.f64", 16, 8, 4, "f64", "f64", "f64", "f64", 2, 1, 4, 4, 0, 0,
     0, 0},
    {".m16n8k8.row.col.f64.f64.f64.f64", 16, 8, 8, "f64", "f64", "f64", "f64", 4, 2, 4, 4, 0, 0, 0,
     0},
    {".m16n8k16.row.col.f64.f64.f64.f64", 16, 8, 16, "f64", "f64", "f64", "f64", 8, 4, 4, 4, 0, 0,
     0, 0},
    {".m8n8k16.row.col.s32.s8.u8.s32", 8, 8, 16, "s8", "u8", "s32", "s32", 1, 1, 2, 2, 0, 0, 0, 0},
    {".m16n8k16.row.col.satfinite.s32.u8.s8.s32", 16, 8, 16, "u8", "s8", "s32", "s32", 2, 1, 4, 4,
     0, 0, 0, 0},
    {".m16n8k32.row.col.s32.s8.s8.s32", 16, 8, 32, "s8", "s8", "s32", "s32", 4, 2, 4, 4, 0, 0, 0,
     0},
    {".m8n8k32.row.col.s32.s4.u4.s32", 8, 8, 32, "s4", "u4", "s32", "s32", 1, 1, 2, 2, 0, 0, 0, 0},
    {".m16n8k64.row.col.s32.u4.s4.s32", 16, 8, 64, "u4", "s4", "s32", "s32", 4, 2, 4, 4, 0, 0, 0,
     0},
    {".m8n8k128.row.col.s32.b1.b1.s32.xor.popc", 8, 8, 128, "b1", "b1", "s32", "s32", 1, 1, 2, 2, 0,
     0, 0, 1},
    {".m16n8k256.row.col.s32.b1.b1.s32.and.popc", 16, 8, 256, "b1", "b1", "s32", "s32", 4, 2, 4, 4,
     0, 0, 0, 0},
    {".m16n8k32.row.col.f32.e4m3.e5m2.f32", 16, 8, 32, "e4m3", "e5m2", "f32", "f32", 4, 2, 4, 4, 0,
     0, 0, 0},
    {".m8n8k4.row.col.f32.f16.f16.f32", 8, 8, 4, "f16", "f16", "f32", "f32", 2, 2, 8, 8, 1, 0, 0,
     0},
    {".m8n8k4.col.row.f32.f16.f16.f16", 8, 8, 4, "f16", "f16", "f16", "f32", 2, 2, 4, 8, 1, 1, 1,
     0},
    {".m8n8k4.col.col.f16.f16.f16.f16", 8, 8, 4, "f16", "f16", "f16", "f16", 2, 2, 4, 4, 1, 1, 0,
     0},
};

/* i-th element of a lane, all its registers in a row; the figures' formulas. */
static void at_a(const struct mma *w, unsigned lane, unsigned i, unsigned *row, unsigned *col)
{
    unsigned group = lane >> 2, in = lane % 4, per = WS_MAX(32 / bits_of(w->a), 1u);
    if (w->quads) {
        *row = w->a_col ? i % 4 + (lane < 16 ? 0 : 4) : lane % 4 + (lane < 16 ? 0 : 4);
        *col = w->a_col ? lane % 4 : i;
        return;
    }
    unsigned reg = i / per; /* rows take turns; then the next four registers' worth of columns */
    *row = w->m == 8 || reg % 2 == 0 ? group : group + 8;
    *col = in * per + i % per + (w->m == 8 ? 0 : reg / 2 * 4 * per);
}
static void at_b(const struct mma *w, unsigned lane, unsigned i, unsigned *row, unsigned *col)
{
    unsigned per = WS_MAX(32 / bits_of(w->b), 1u);
    if (w->quads) {
        *row = w->b_row ? lane % 4 : i;
        *col = w->b_row ? i + (lane < 16 ? 0 : 4) : lane % 4 + (lane < 16 ? 0 : 4);
        return;
    }
    *row = lane % 4 * per + i % per + i / per * 4 * per;
    *col = lane >> 2;
}
static void at_c(const struct mma *w, const char *e, unsigned lane, unsigned i, unsigned *row,
                 unsigned *col)
{
    if (w->quads && !strcmp(e, "f16")) {
        *row = lane < 16 ? lane % 4 : lane % 4 + 4;
        *col = i;
    } else if (w->quads) {
        unsigned x = (lane & 1) + (i & 2);
        *row = lane < 16 ? x : x + 4;
        *col = (i & 4) + (lane & 2) + (i & 1);
    } else {
        *row = i < 2 ? lane >> 2 : (lane >> 2) + 8;
        *col = lane % 4 * 2 + (i & 1);
    }
}

static unsigned elems(const char *e, unsigned n)
{
    return n * WS_MAX(32 / bits_of(e), 1u);
}
static void pack(uint8_t *to, const char *e, unsigned i, uint64_t v)
{
    unsigned bits = bits_of(e);
    if (bits < 8)
        to[i * bits / 8] |= (uint8_t)(v << i * bits % 8);
    else
        memcpy(to + i * bits / 8, &v, bits / 8);
}

/* With four quads, each has its own matrices; they are tried one after another. */
static void mma_case(const struct mma *w)
{
    static char ptx[8192], loads[4096];
    struct fix f = {0};
    fix_init(&f);
    bool wide = !strcmp(w->a, "f64");
    char l[4][128];
    const char *names[4] = {"a", "b", "c", "d"};
    const char *fmts[4] = {w->a, w->b, w->c, w->d};
    unsigned n[4] = {w->na, w->nb, w->nc, w->nd};
    size_t at = 0;
    for (int o = 0; o < 3; o++)
        for (unsigned r = 0; r < n[o]; r++)
            at += (size_t)sprintf(loads + at, "ld.global.%s %%%s%u, [%%q%d+%u];\n",
                                  wide                                ? "f64"
                                  : o == 2 && !strcmp(fmts[o], "f32") ? "f32"
                                                                      : "b32",
                                  names[o], r, o, r * (wide ? 8 : 4));
    at += (size_t)sprintf(loads + at, "mma.sync.aligned%s %s, %s, %s, %s;\n", w->op,
                          list(l[3], "d", n[3]), list(l[0], "a", n[0]), list(l[1], "b", n[1]),
                          list(l[2], "c", n[2]));
    for (unsigned r = 0; r < n[3]; r++)
        at += (size_t)sprintf(loads + at, "st.global.%s [%%q3+%u], %%d%u;\n",
                              wide                   ? "f64"
                              : !strcmp(w->d, "f32") ? "f32"
                                                     : "b32",
                              r * (wide ? 8 : 4), r);
    snprintf(
        ptx, sizeof(ptx),
        ".version 8.4\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)\n{\n"
        ".reg .%s %%a<8>, %%b<8>; .reg .%s %%c<8>; .reg .%s %%d<8>; .reg .b64 %%p<4>, %%q<4>, %%o; "
        ".reg .b32 %%t;\n"
        "ld.param.u64 %%p0, [pa]; ld.param.u64 %%p1, [pb]; ld.param.u64 %%p2, [pc]; ld.param.u64 "
        "%%p3, [pd];\n"
        "mov.u32 %%t, %%laneid; mul.wide.u32 %%o, %%t, 64;\n"
        "add.u64 %%q0, %%p0, %%o; add.u64 %%q1, %%p1, %%o; add.u64 %%q2, %%p2, %%o; add.u64 %%q3, "
        "%%p3, %%o;\n"
        "%sret;\n}\n",
        wide ? "f64" : "b32",
        wide                   ? "f64"
        : !strcmp(w->c, "f32") ? "f32"
                               : "b32",
        wide                   ? "f64"
        : !strcmp(w->d, "f32") ? "f32"
                               : "b32",
        loads);
    fix_must_load(&f, ptx);
    for (unsigned quad = 0; quad < (w->quads ? 4u : 1u); quad++) {
        uint64_t p[4];
        uint8_t *h[4];
        unsigned row, col;
        for (int o = 0; o < 4; o++) {
            p[o] = fix_alloc(&f, 2048);
            h[o] = fix_host(&f, p[o]);
        }
        make_matrices(w->m, w->n, w->k, w->a, w->b, w->xor);
        for (unsigned lane = 0; lane < 32; lane++) {
            if (w->quads && lane % 16 / 4 != quad)
                continue;
            for (unsigned i = 0; i < elems(w->a, w->na); i++) {
                at_a(w, lane, i, &row, &col);
                pack(h[0] + lane * 64, w->a, i, encode(w->a, a_of[row * w->k + col]));
            }
            for (unsigned i = 0; i < elems(w->b, w->nb); i++) {
                at_b(w, lane, i, &row, &col);
                pack(h[1] + lane * 64, w->b, i, encode(w->b, b_of[row * w->n + col]));
            }
            for (unsigned i = 0; i < elems(w->c, w->nc); i++) {
                at_c(w, w->c, lane, i, &row, &col);
                pack(h[2] + lane * 64, w->c, i, encode(w->c, c_of[row * w->n + col]));
            }
        }
        fix_run(&f, &(struct launch){.kernel = "k", .grid = {1}, .block = {32}, .params = p});
        for (unsigned lane = 0; lane < 32; lane++)
            for (unsigned i = 0; i < elems(w->d, w->nd); i++) {
                uint64_t x = 0;
                unsigned bytes = bits_of(w->d) / 8;
                if (w->quads && lane % 16 / 4 != quad)
                    continue;
                at_c(w, w->d, lane, i, &row, &col);
                memcpy(&x, h[3] + lane * 64 + i * bytes, bytes);
                if (decode(w->d, x) != want_of[row * w->n + col])
                    fail_msg("mma%s: lane %u element %u is %g, not %g", w->op, lane, i,
                             decode(w->d, x), want_of[row * w->n + col]);
            }
    }
    fix_deinit(&f);
}

static void test_mma(void **state)
{
    (void)state;
    for (size_t i = 0; i < WS_ARRAY_SIZE(mmas); i++)
        mma_case(&mmas[i]);
}

static void test_saturation(void **state)
{
    struct fix *f = *state;
    fix_must_load(
        f,
        ".version 7.8\n.target sm_80\n.address_size 64\n"
        ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %a, %b, %c, %d<4>, %t; .reg .b64 %p, "
        "%o;\n"
        "ld.param.u64 %p, [out]; mov.u32 %t, %laneid; mul.wide.u32 %o, %t, 16; add.u64 %p, %p, "
        "%o;\n"
        "mov.u32 %a, 0x7f7f7f7f; mov.u32 %b, 0x7f7f7f7f; mov.u32 %c, 0x7fffffff;\n"
        "mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32 {%d0,%d1}, {%a}, {%b}, {%c,%c};\n"
        "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%d2,%d3}, {%a}, {%b}, {%c,%c};\n"
        "st.global.v4.b32 [%p], {%d0,%d1,%d2,%d3}; ret;\n}\n");
    uint64_t out = fix_alloc(f, 512);
    fix_run(f, &(struct launch){.kernel = "k", .grid = {1}, .block = {32}, .params = &out});
    const uint32_t *d = fix_host(f, out);
    for (int i = 0; i < 32; i++) {
        assert_int_equal(d[4 * i], 0x7fffffff);
        assert_int_equal(d[4 * i + 3], (uint32_t)(0x7fffffff + 16u * 127 * 127));
    }
}

/* Halves of any bits: subnormal ones, infinities and NaNs, too. The sums are those of doubles, in
 * order, rounded once. Accumulators of both formats have their elements in the same order, so that
 * one can be converted into the other. */
static void test_any_halves(void **state)
{
    static const char regs[] = "{%%%s0,%%%s1,%%%s2,%%%s3,%%%s4,%%%s5,%%%s6,%%%s7}";
    struct fix *f = *state;
    char ptx[4096], a[80], b[80], r[80];
    snprintf(a, sizeof(a), regs, "a", "a", "a", "a", "a", "a", "a", "a");
    snprintf(b, sizeof(b), regs, "b", "b", "b", "b", "b", "b", "b", "b");
    snprintf(r, sizeof(r), regs, "f", "f", "f", "f", "f", "f", "f", "f");
    int at = snprintf(ptx, sizeof(ptx),
                      ".version 7.8\n.target sm_80\n.address_size 64\n"
                      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
                      ".reg .b32 %%a<8>, %%b<8>, %%h<4>; .reg .f32 %%f<8>; .reg .b64 %%p, %%q;\n"
                      ".reg .b16 %%x, %%y;\n"
                      "ld.param.u64 %%p, [in]; ld.param.u64 %%q, [out];\n"
                      "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 %s, [%%p];\n"
                      "wmma.load.b.sync.aligned.row.m16n16k16.global.f16 %s, [%%p+512];\n"
                      "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 %s, [%%p+1024];\n"
                      "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 %s, %s, %s, %s;\n"
                      "wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%%q], %s;\n",
                      a, b, r, r, a, b, r, r);
    for (int k = 0; k < 4; k++)
        at += snprintf(ptx + at, sizeof(ptx) - (size_t)at,
                       "cvt.rn.f16.f32 %%x, %%f%d; cvt.rn.f16.f32 %%y, %%f%d;\n"
                       "mov.b32 %%h%d, {%%x, %%y};\n",
                       2 * k, 2 * k + 1, k);
    snprintf(ptx + at, sizeof(ptx) - (size_t)at,
             "wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%%q+1024], "
             "{%%h0,%%h1,%%h2,%%h3};\nret;\n}\n");
    fix_must_load(f, ptx);
    uint64_t p[2] = {fix_alloc(f, 2048), fix_alloc(f, 2048)};
    uint16_t *halves = fix_host(f, p[0]);
    float *sums = (float *)(void *)(halves + 512);
    for (int round = 0; round < 20; round++) {
        for (int k = 0; k < 512; k++) /* few that are not finite, or every sum is a NaN */
            do
                halves[k] = (uint16_t)(rand() >> 3);
            while ((halves[k] & 0x7c00) == 0x7c00 && rand() % 64);
        for (int k = 0; k < 256; k++)
            sums[k] = (float)(rand() % 2000 - 1000) * 0.37f;
        fix_run(f, &(struct launch){.kernel = "k", .grid = {1}, .block = {32}, .params = p});
        const uint32_t *d = fix_host(f, p[1]);
        const uint16_t *rounded = (const uint16_t *)(const void *)(d + 256);
        for (int k = 0; k < 256; k++) {
            double sum = sums[k];
            for (int q = 0; q < 16; q++) {
                _Float16 x, y;
                memcpy(&x, &halves[k / 16 * 16 + q], 2);
                memcpy(&y, &halves[256 + q * 16 + k % 16], 2);
                sum += (double)x * (double)y;
            }
            float want = (float)sum;
            _Float16 half = (_Float16)want;
            uint32_t bits;
            uint16_t half_bits;
            memcpy(&bits, &want, 4);
            memcpy(&half_bits, &half, 2);
            assert_int_equal(d[k], want != want ? 0x7fffffff : bits);
            assert_int_equal(rounded[k], want != want ? 0x7fff : half_bits);
        }
    }
}

/* Shared memory holds 0, 1, 2, … as halves: four tiles of 8 x 8, row r of tile t at byte 128 t + 16
 * r. */
#define TILES(body)                                                                                \
    ".version 7.8\n.target sm_90\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %r<8>, %t, %u, %w; .reg .b64 %p, %o;\n"      \
    ".shared .align 16 .b8 s[1024];\n"                                                             \
    "ld.param.u64 %p, [out]; mov.u32 %t, %laneid; mul.wide.u32 %o, %t, 16; add.u64 %p, %p, %o;\n"  \
    "mov.u32 %u, s; mad.lo.u32 %w, %t, 16, %u;\n"                                                  \
    "shl.b32 %r0, %t, 3; mad.lo.u32 %r0, %r0, 0x10001, 0x10000;\n"                                 \
    "add.u32 %r1, %r0, 0x20002; add.u32 %r2, %r0, 0x40004; add.u32 %r3, %r0, 0x60006;\n"           \
    "st.shared.v4.b32 [%w], {%r0,%r1,%r2,%r3}; bar.sync 0;\n" body                                 \
    "st.global.v4.b32 [%p], {%r4,%r5,%r6,%r7}; ret;\n}\n"

static void tiles_case(struct fix *f, const char *ptx, bool trans)
{
    fix_must_load(f, ptx);
    uint64_t out = fix_alloc(f, 512);
    fix_run(f, &(struct launch){.kernel = "k", .grid = {1}, .block = {32}, .params = &out});
    const uint16_t *d = fix_host(f, out);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned t = 0; t < 4; t++)
            for (unsigned i = 0; i < 2; i++) {
                unsigned row = lane / 4, col = lane % 4 * 2 + i;
                assert_int_equal(d[lane * 8 + t * 2 + i],
                                 trans ? t * 64 + col * 8 + row : t * 64 + row * 8 + col);
            }
}

static void test_ldmatrix(void **state)
{
    tiles_case(*state, TILES("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%w];\n"),
               false);
}
static void test_ldmatrix_trans(void **state)
{
    tiles_case(
        *state,
        TILES("ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 {%r4,%r5,%r6,%r7}, [%w];\n"),
        true);
}

/* As CUTLASS writes it. */
static void test_ldmatrix_other_order(void **state)
{
    tiles_case(
        *state,
        TILES("ldmatrix.sync.aligned.x4.trans.m8n8.shared::cta.b16 {%r4,%r5,%r6,%r7}, [%w];\n"),
        true);
}
static void
test_stmatrix(void **state) /* there and back by ordinary loads, transposed on the way */
{
    tiles_case(
        *state,
        TILES(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%w]; bar.sync 0;\n"
            "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%w], {%r4,%r5,%r6,%r7}; bar.sync 0;\n"
            "shl.b32 %t, %t, 2; add.u32 %w, %u, %t; ld.shared.b32 %r4, [%w]; ld.shared.b32 %r5, "
            "[%w+128];\n"
            "ld.shared.b32 %r6, [%w+256]; ld.shared.b32 %r7, [%w+384];\n"),
        true);
}
static void test_movmatrix(void **state)
{
    tiles_case(*state,
               TILES("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r4,%r5,%r6,%r7}, [%w];\n"
                     "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r4; "
                     "movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r5;\n"
                     "movmatrix.sync.aligned.m8n8.trans.b16 %r6, %r6; "
                     "movmatrix.sync.aligned.m8n8.trans.b16 %r7, %r7;\n"),
               true);
}

static void test_faults(void **state)
{
    struct fix *f = *state;
    fix_must_load(f, ".version 7.8\n.target sm_80\n.address_size 64\n"
                     ".visible .entry k(.param .u64 out)\n{\n.reg .b32 %a<8>; .reg .b64 %p;\n"
                     "ld.param.u64 %p, [out];\n"
                     "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 "
                     "{%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, [%p], 16; ret;\n}\n");
    uint64_t out = fix_alloc(f, 500); /* 512 are read */
    assert_int_equal(
        fix_launch(f, &(struct launch){.kernel = "k", .grid = {1}, .block = {32}, .params = &out}),
        WS_DEV_E_ILLEGAL_ADDRESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wmma),
        cmocka_unit_test(test_mma),
        cmocka_unit_test_setup_teardown(test_saturation, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_any_halves, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_ldmatrix, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_ldmatrix_trans, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_ldmatrix_other_order, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_stmatrix, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_movmatrix, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(test_faults, fix_setup, fix_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
