// SPDX-License-Identifier: Apache-2.0
/* Every arithmetic opcode against a reference in C: all pairs of edge values, then random ones, in
 * every vector build that the processor has, whose results must be the same bits. A row is one PTX
 * text with $d $a $b $c, the C types of these, the value that must come out, and how exactly
 * (EXACT, or how far a float may be off in units of the last place). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/exec/fixture.h"

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef unsigned __int128 u128;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef __int128 s128;
typedef float f32;
typedef double f64;
typedef u16 h16; /* half: bits */
enum { N = 4096 };

/* ---- reference helpers ---- */
static f32 fz(f32 x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}
/* flushed where the sum, before it is rounded, is subnormal */
static f32 fma_fz(f32 a, f32 b, f32 c)
{
    f64 e = (f64)a * b + c;
    return fabs(e) < 0x1p-126 ? copysignf(0, (f32)copysign(1, e)) : fmaf(a, b, c);
}
static u32 bits32(f32 x)
{
    u32 v;
    memcpy(&v, &x, 4);
    return x != x ? 0x7fffffff : v;
}
static f32 from32(u32 v)
{
    f32 x;
    memcpy(&x, &v, 4);
    return x;
}
#define ROUNDED(mode, T, expr)                                                                     \
    ({                                                                                             \
        fesetround(mode);                                                                          \
        volatile T va_ = a, vb_ = b, vc_ = c;                                                      \
        (void)va_;                                                                                 \
        (void)vb_;                                                                                 \
        (void)vc_;                                                                                 \
        volatile T r_ = (expr);                                                                    \
        fesetround(FE_TONEAREST);                                                                  \
        r_;                                                                                        \
    })
#define VA va_
#define VB vb_
#define VC vc_
static u64 sat_u(s128 v, unsigned n)
{
    return v < 0 ? 0 : v > (s128)(((u128)1 << n) - 1) ? (u64)(((u128)1 << n) - 1) : (u64)v;
}
static s64 sat_s(s128 v, unsigned n)
{
    s128 m = (s128)1 << (n - 1);
    return v < -m ? (s64)-m : v > m - 1 ? (s64)(m - 1) : (s64)v;
}
static s128 wide(f64 x)
{
    return x != x ? 0 : x >= 1e30 ? (s128)1 << 100 : x <= -1e30 ? -((s128)1 << 100) : (s128)x;
}
static f64 rnd(f64 x, int mode)
{
    return mode == FE_TOWARDZERO ? trunc(x)
           : mode == FE_DOWNWARD ? floor(x)
           : mode == FE_UPWARD   ? ceil(x)
                                 : rint(x);
}
static f32 minf(f32 a, f32 b)
{
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
static f32 maxf(f32 a, f32 b)
{
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
static f64 mind(f64 a, f64 b)
{
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? a : b) : a < b ? a : b;
}
static f64 maxd(f64 a, f64 b)
{
    return a != a ? b : b != b ? a : a == b ? (signbit(a) ? b : a) : a > b ? a : b;
}
static u32 clz(u64 v, unsigned n)
{
    u32 k = 0;
    while (k < n && !(v >> (n - 1 - k) & 1))
        k++;
    return k;
}
static u64 rev(u64 v, unsigned n)
{
    u64 r = 0;
    for (unsigned k = 0; k < n; k++)
        r |= (v >> k & 1) << (n - 1 - k);
    return r;
}
static u32 popc(u64 v)
{
    u32 n = 0;
    for (; v; v >>= 1)
        n += v & 1;
    return n;
}
static u64 bfe_ref(u64 a, u32 pos, u32 len, unsigned n, bool s) /* PTX ISA, 9.7.1: bfe */
{
    pos &= 0xff;
    len &= 0xff;
    unsigned msb = n - 1;
    u64 sbit = (!s || len == 0) ? 0 : a >> (pos + len - 1 < msb ? pos + len - 1 : msb) & 1, d = 0;
    for (unsigned i = 0; i <= msb; i++)
        d |= ((i < len && pos + i <= msb) ? a >> (pos + i) & 1 : sbit) << i;
    return d;
}
static u64 bfi_ref(u64 a, u64 b, u32 pos, u32 len, unsigned n)
{
    pos &= 0xff;
    len &= 0xff;
    u64 f = b;
    for (unsigned i = 0; i < len && pos + i <= n - 1; i++)
        f = (f & ~((u64)1 << (pos + i))) | (a >> i & 1) << (pos + i);
    return f;
}
static u32 prmt_ref(u32 a, u32 b, u32 c)
{
    u8 by[8];
    u32 r = 0;
    memcpy(by, &a, 4);
    memcpy(by + 4, &b, 4);
    for (int k = 0; k < 4; k++) {
        u32 sel = c >> 4 * k & 15, v = by[sel & 7];
        if (sel & 8)
            v = v & 0x80 ? 0xff : 0;
        r |= v << 8 * k;
    }
    return r;
}
static f64 half(u16 h)
{
    s32 e = h >> 10 & 31, m = h & 1023;
    f64 v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -v : v;
}
static u16 to_half(f64 x) /* nearest of all halves, ties to even; slow and obvious */
{
    if (x != x)
        return 0x7fff;
    u16 s = signbit(x) ? 0x8000 : 0;
    f64 y = fabs(x);
    if (y >= 65520.0)
        return s | 0x7c00;
    u32 lo = 0, hi = 0x7bff;
    while (lo < hi) {
        u32 mid = (lo + hi + 1) / 2;
        if (half((u16)mid) <= y)
            lo = mid;
        else
            hi = mid - 1;
    }
    f64 below = y - half((u16)lo), above = (lo == 0x7bff ? 65536.0 : half((u16)(lo + 1))) - y;
    if (above < below || (above == below && (lo & 1)))
        lo++;
    return s | (u16)lo;
}
static u16 to_bf(f32 x)
{
    u32 v;
    memcpy(&v, &x, 4);
    if (x != x)
        return 0x7fff;
    return (u16)((v + 0x7fff + (v >> 16 & 1)) >> 16);
}

#include "tests/unit/exec/format_ref.inc"

/* ---- rows ---- */
#define EXACT 0
#define NONE  u32
struct row {
    const char *text;
    unsigned db, ab, bb, cb;
    void (*ref)(const void *, const void *, const void *, void *);
    double ulp;
    char kind;
};
#define KIND(T) _Generic((T)0, f32 : 'f', f64 : 'd', default : 'i')
/* OP(name, text, types, value); FOP with a tolerance */
#define FOP(name, text_, TD, TA, TB, TC, ulp_, expr)                                               \
    static void ref_##name(const void *pa, const void *pb, const void *pc, void *pd)               \
    {                                                                                              \
        TA a;                                                                                      \
        TB b;                                                                                      \
        TC c;                                                                                      \
        TD d;                                                                                      \
        memcpy(&a, pa, sizeof(a));                                                                 \
        memcpy(&b, pb, sizeof(b));                                                                 \
        memcpy(&c, pc, sizeof(c));                                                                 \
        (void)b;                                                                                   \
        (void)c;                                                                                   \
        d = (TD)(expr);                                                                            \
        memcpy(pd, &d, sizeof(d));                                                                 \
    }
#define OP(name, text_, TD, TA, TB, TC, expr) FOP(name, text_, TD, TA, TB, TC, EXACT, expr)
#include "tests/unit/exec/op_rows.inc"
#include "tests/unit/exec/more_rows.inc"
#undef FOP
#undef OP
static const struct row rows[] = {
#define FOP(name, text_, TD, TA, TB, TC, ulp_, expr)                                               \
    {text_, sizeof(TD), sizeof(TA), sizeof(TB), sizeof(TC), ref_##name, ulp_, KIND(TD)},
#define OP(name, text_, TD, TA, TB, TC, expr) FOP(name, text_, TD, TA, TB, TC, EXACT, expr)
#include "tests/unit/exec/op_rows.inc"
#include "tests/unit/exec/more_rows.inc"
};
enum { N_ROWS = WS_ARRAY_SIZE(rows) };

/* ---- inputs ---- */
static const u64 edges8[] = {
    0,
    1,
    2,
    3,
    31,
    32,
    33,
    63,
    64,
    65,
    255,
    256,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    0x7fffffffffffffff,
    0x8000000000000000,
    0xffffffffffffffff,
    0x3ff0000000000000,
    0xbff0000000000000,
    0x7ff0000000000000,
    0xfff0000000000000,
    0x7ff8000000000000,
    0x000fffffffffffff,
    0x0010000000000000,
    0x7fefffffffffffff,
    0x3fe0000000000000,
    0x3ff8000000000000,
    0x4004000000000000,
    0x41e0000000000000,
    0xc1e0000000000000,
    0x43e0000000000000,
    0x43f0000000000000,
    0x4330000000000001,
    0xc3e0000000000000,
    0x3fefffffffffffff,
    0x41dfffffffc00000,
    0x40effc0000000000,
};
static const u32 edges4[] = {
    0,          1,          2,          3,          15,         31,         32,         33,
    127,        128,        255,        256,        32767,      32768,      65535,      65536,
    0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
    0x7fc00000, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0x3f000000, 0xbf000000, 0x3fc00000,
    0x40200000, 0xc0200000, 0x4b000000, 0x4b000001, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000,
    0x5f800000, 0x3f7fffff, 0x40490fdb, 0x00000003, 0x33800000, 0x477fe000, 0x477ff000,
};
static const u16 edges2[] = {0,      1,      2,      15,     16,     17,     127,
                             128,    255,    0x7fff, 0x8000, 0xffff, 0x3c00, 0xbc00,
                             0x7c00, 0xfc00, 0x7e00, 0x03ff, 0x0400, 0x7bff, 0x3800,
                             0x3e00, 0x4100, 0x3f80, 0x7f80, 0x4000, 0x64d2};

static u64 seed = 12345;
static u64 random64(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    u64 v = seed ^ seed >> 29;
    return v * 0x9e3779b97f4a7c15u ^ v >> 31;
}
static u64 random_of(unsigned bytes)
{
    u64 r = random64(), k = random64() % 4;
    if (bytes == 4 && k == 0) {
        f32 x = (f32)(s32)(r >> 32) / (f32)(1u << (r & 31));
        u32 v;
        memcpy(&v, &x, 4);
        return v;
    } /* sizes that floats have */
    if (bytes == 8 && k == 0) {
        f64 x = (f64)(s64)r / (f64)((u64)1 << (r & 63));
        u64 v;
        memcpy(&v, &x, 8);
        return v;
    }
    if (k == 1)
        return r % 300;
    if (k == 2)
        return 0 - r % 300;
    return r;
}
static u64 edge(unsigned bytes, unsigned k)
{
    return bytes == 8   ? edges8[k % WS_ARRAY_SIZE(edges8)]
           : bytes == 4 ? edges4[k % WS_ARRAY_SIZE(edges4)]
                        : edges2[k % WS_ARRAY_SIZE(edges2)];
}
static unsigned n_edges(unsigned bytes)
{
    return bytes == 8   ? WS_ARRAY_SIZE(edges8)
           : bytes == 4 ? WS_ARRAY_SIZE(edges4)
                        : WS_ARRAY_SIZE(edges2);
}

static char *ptx_of(void)
{
    char *t = malloc(N_ROWS * 2048 + 1024), *p = t;
    p += sprintf(p, ".version 9.0\n.target sm_90\n.address_size 64\n");
    for (unsigned k = 0; k < N_ROWS; k++) {
        static const char reg[9] = "..h.r...x", *const type[9] = {
                                                    [2] = "b16", [4] = "b32", [8] = "b64"};
        const struct row *r = &rows[k];
        p += sprintf(
            p,
            ".visible .entry k%u(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 "
            "pd)\n{\n.reg .pred %%p<4>; .reg .b16 %%h<8>; .reg .b32 %%r<12>; .reg .b64 %%x<12>;\n"
            "mov.u32 %%r9, %%ctaid.x; mov.u32 %%r8, %%tid.x; mad.lo.u32 %%r8, %%r9, 256, %%r8;\n",
            k);
        const unsigned size[4] = {r->ab, r->bb, r->cb, r->db};
        for (unsigned n = 0; n < 4; n++)
            p += sprintf(p,
                         "ld.param.u64 %%x%u, [p%c]; mul.wide.u32 %%x10, %%r8, %u; add.u64 %%x%u, "
                         "%%x%u, %%x10;\n",
                         n + 6, "abcd"[n], size[n], n + 6, n + 6);
        for (unsigned n = 0; n < 3; n++)
            p += sprintf(p, "ld.global.%s %%%c%u, [%%x%u];\n", type[size[n]], reg[size[n]], n,
                         n + 6);
        p += sprintf(p, "mov.%s %%%c3, 0;\n", type[r->db], reg[r->db]);
        for (const char *q = r->text; *q; q++) {
            if (*q == '$' && q[1] >= 'a' && q[1] <= 'd') {
                unsigned n = (unsigned)(q[1] - 'a');
                p += sprintf(p, "%%%c%u", reg[size[n]], n);
                q++;
            } else {
                *p++ = *q;
            }
        }
        p += sprintf(p, "\nst.global.%s [%%x9], %%%c3;\nret;\n}\n", type[r->db], reg[r->db]);
    }
    return t;
}

static bool close_enough(const struct row *r, const void *got, const void *want)
{
    if (memcmp(got, want, r->db) == 0)
        return true;
    if (r->kind == 'f') {
        f32 g, w;
        u32 gb;
        memcpy(&g, got, 4);
        memcpy(&w, want, 4);
        memcpy(&gb, got, 4);
        if (w != w)
            return gb == 0x7fffffff; /* the canonical NaN */
        return r->ulp > 0 &&
               (g == w || fabs((f64)g - (f64)w) <=
                              r->ulp * fmax(fabs((f64)nextafterf(w, INFINITY) - w), 1e-38));
    }
    if (r->kind == 'd') {
        f64 g, w;
        memcpy(&g, got, 8);
        memcpy(&w, want, 8);
        return (w != w && g != g) ||
               (r->ulp > 0 && (g == w || fabs(g - w) <= r->ulp * fabs(nextafter(w, INFINITY) - w)));
    }
    return false;
}

static void run_all(struct fix *f, const char *ptx, const u8 *in[3], u8 *out)
{
    fix_must_load(f, ptx);
    uint64_t va[4];
    for (unsigned n = 0; n < 4; n++)
        va[n] = fix_alloc(f, N * 8);
    for (unsigned k = 0; k < N_ROWS; k++) {
        const struct row *r = &rows[k];
        const unsigned size[3] = {r->ab, r->bb, r->cb};
        for (unsigned n = 0; n < 3; n++)
            memcpy(fix_host(f, va[n]), in[n] + (size_t)k * N * 8, N * size[n]);
        char name[16];
        snprintf(name, sizeof(name), "k%u", k);
        fix_run(f,
                &(struct launch){.kernel = name, .grid = {N / 256}, .block = {256}, .params = va});
        memcpy(out + (size_t)k * N * 8, fix_host(f, va[3]), N * r->db);
    }
}

struct state {
    struct fix f;
    char *ptx;
    u8 *in[3], *out[3];
};
static int setup(void **state)
{
    struct state *s = calloc(1, sizeof(*s));
    s->ptx = ptx_of();
    for (unsigned n = 0; n < 3; n++) {
        s->in[n] = malloc((size_t)N_ROWS * N * 8);
        s->out[n] = malloc((size_t)N_ROWS * N * 8);
    }
    for (unsigned k = 0; k < N_ROWS; k++) {
        const struct row *r = &rows[k];
        const unsigned size[3] = {r->ab, r->bb, r->cb};
        for (unsigned i = 0; i < N; i++) {
            u64 v[3];
            unsigned na = n_edges(size[0]), nb = n_edges(size[1]);
            bool e = i < na * nb;
            for (unsigned n = 0; n < 3; n++)
                v[n] = e && n == 0      ? edge(size[0], i % na)
                       : e && n == 1    ? edge(size[1], i / na)
                       : random64() % 2 ? edge(size[n], (unsigned)random64())
                                        : random_of(size[n]);
            for (unsigned n = 0; n < 3; n++)
                memcpy(s->in[n] + (size_t)k * N * 8 + i * size[n], &v[n], size[n]);
        }
    }
    *state = s;
    return 0;
}
static int teardown(void **state)
{
    struct state *s = *state;
    for (unsigned n = 0; n < 3; n++) {
        free(s->in[n]);
        free(s->out[n]);
    }
    free(s->ptx);
    free(s);
    unsetenv("WS_SOFT_ISA");
    return 0;
}

static void test_ops_match_the_reference(void **state)
{
    struct state *s = *state;
    static const char *const isas[] = {"sse2", "avx2", "avx512"};
    unsigned bad = 0;
    fix_init(&s->f);
    fix_deinit(&s->f);
    for (unsigned v = 0; v < 3; v++) {
        setenv("WS_SOFT_ISA", isas[v], 1);
        if (strcmp(ws_exec_isa(), isas[v]) != 0) {
            memcpy(s->out[v], s->out[0], (size_t)N_ROWS * N * 8);
            continue; /* the processor lacks it */
        }
        fix_init(&s->f);
        run_all(&s->f, s->ptx, (const u8 **)s->in, s->out[v]);
        fix_deinit(&s->f);
    }
    for (unsigned k = 0; k < N_ROWS; k++) {
        const struct row *r = &rows[k];
        unsigned wrong = 0, differ = 0;
        for (unsigned i = 0; i < N; i++) {
            const u8 *a = s->in[0] + (size_t)k * N * 8 + i * r->ab,
                     *b = s->in[1] + (size_t)k * N * 8 + i * r->bb,
                     *c = s->in[2] + (size_t)k * N * 8 + i * r->cb;
            u8 want[8] = {0};
            u64 av = 0, bv = 0, cv = 0, wv = 0, gv[3] = {0};
            r->ref(a, b, c, want);
            memcpy(&av, a, r->ab);
            memcpy(&bv, b, r->bb);
            memcpy(&cv, c, r->cb);
            memcpy(&wv, want, r->db);
            for (unsigned v = 0; v < 3; v++) {
                const u8 *got = s->out[v] + (size_t)k * N * 8 + i * r->db;
                memcpy(&gv[v], got, r->db);
                bool nan64 = r->kind == 'd' && (gv[v] << 1) > 0xffe0000000000000 &&
                             (gv[0] << 1) > 0xffe0000000000000;
                if (!close_enough(r, got, want) && wrong++ < 3)
                    print_error("%s [%s]: a=%llx b=%llx c=%llx: %llx, want %llx\n", r->text,
                                isas[v], (unsigned long long)av, (unsigned long long)bv,
                                (unsigned long long)cv, (unsigned long long)gv[v],
                                (unsigned long long)wv);
                if (gv[v] != gv[0] && !nan64 && differ++ < 3)
                    print_error("%s: a=%llx b=%llx c=%llx: %s gives %llx, sse2 %llx\n", r->text,
                                (unsigned long long)av, (unsigned long long)bv,
                                (unsigned long long)cv, isas[v], (unsigned long long)gv[v],
                                (unsigned long long)gv[0]);
            }
        }
        bad += wrong || differ;
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ops_match_the_reference, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
