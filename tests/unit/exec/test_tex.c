// SPDX-License-Identifier: Apache-2.0
/* Texture fetches against a reference in C: the formulas of the CUDA C++ Programming Guide
 * ("Texture Fetching"), in double precision, one texel at a time. Random shapes, formats, address
 * modes and filters; random coordinates and edge ones; every vector build that the processor has.
 * Coordinates of power-of-two textures are multiples of 1/1024 of a texel, so that the result is
 * exact but for the rounding of sums; others are allowed one step of the weights (1/256). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/soft/exec/reuse.h"
#include "tests/unit/exec/texture.h"

/* ---- the reference ---- */
static const unsigned channel_bytes[] = {1, 2, 4, 1, 2, 4, 2, 4};
static unsigned texel_bytes(const struct ws_texture *h)
{
    return channel_bytes[h->format] * h->n_channels;
}
static double half(uint16_t v)
{
    int e = v >> 10 & 31, m = v & 1023;
    double r = e == 0 ? ldexp(m, -24) : e == 31 ? (m ? NAN : INFINITY) : ldexp(1024 + m, e - 25);
    return v & 0x8000 ? -r : r;
}
static double srgb(double v)
{
    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}
static bool reads_float(const struct ws_texture *h)
{
    return h->format >= WS_TEX_F16 ||
           ((h->flags & WS_TEX_NORMALIZED_FLOAT) && channel_bytes[h->format] < 4);
}

/* Channel @ch of texel (i, j, slice) of a level, as a number. */
static double ref_texel(const struct tx *t, unsigned level, int64_t i, int64_t j, int64_t k, int ch)
{
    const struct ws_texture *h = t->h;
    const struct ws_texture_level *l = &h->level[level];
    if (ch >= h->n_channels)
        return ch == 3 ? 1 : 0;
    const uint8_t *p = t->mem + (l->address - t->texels) + (uint64_t)k * l->slice_bytes +
                       (uint64_t)j * l->row_bytes + (uint64_t)i * texel_bytes(h) +
                       (unsigned)ch * channel_bytes[h->format];
    bool norm = h->flags & WS_TEX_NORMALIZED_FLOAT;
    uint16_t u16;
    uint32_t u32;
    memcpy(&u16, p, 2);
    memcpy(&u32, p, 4);
    switch (h->format) {
    case WS_TEX_U8:
        if (norm && (h->flags & WS_TEX_SRGB) && ch < 3)
            return (float)srgb(*p / 255.0);
        return norm ? *p / 255.0 : *p;
    case WS_TEX_S8:
        return norm ? fmax((int8_t)*p / 127.0, -1) : (int8_t)*p;
    case WS_TEX_U16:
        return norm ? u16 / 65535.0 : u16;
    case WS_TEX_S16:
        return norm ? fmax((int16_t)u16 / 32767.0, -1) : (int16_t)u16;
    case WS_TEX_U32:
        return u32;
    case WS_TEX_S32:
        return (int32_t)u32;
    case WS_TEX_F16:
        return half(u16);
    default:
        return f_of(u32);
    }
}

/* A coordinate in texels, folded as the guide says; indices outside are dealt with texel by
 * texel. */
static double ref_fold(const struct ws_texture *h, int dim, double x, uint32_t n)
{
    if (!(h->flags & WS_TEX_NORMALIZED_COORDS))
        return x;
    if (h->address_mode[dim] == WS_TEX_WRAP)
        x = x - floor(x);
    else if (h->address_mode[dim] == WS_TEX_MIRROR)
        x = fmod(fabs(floor(x)), 2) == 0 ? x - floor(x) : 1 - (x - floor(x));
    return x * n;
}
static double ref_border(const struct ws_texture *h, unsigned ch)
{
    int32_t integer;
    memcpy(&integer, &h->border[ch], 4);
    if (reads_float(h))
        return h->border[ch];
    return h->format < WS_TEX_S8 ? (double)(uint32_t)integer : (double)integer;
}
/* Index after the address mode; -1: border. */
static int64_t ref_index(const struct ws_texture *h, int dim, double i, uint32_t n)
{
    unsigned mode = h->address_mode[dim];
    if (!(h->flags & WS_TEX_NORMALIZED_COORDS) && mode != WS_TEX_BORDER)
        mode = WS_TEX_CLAMP;
    if (i >= 0 && i < n)
        return (int64_t)i;
    if (mode == WS_TEX_BORDER)
        return -1;
    if (mode == WS_TEX_WRAP)
        return (((int64_t)i % n) + n) % n;
    return i < 0 ? 0 : n - 1;
}
static double ref_at(const struct tx *t, unsigned level, unsigned nd, const double *i,
                     int64_t slice, int ch)
{
    const struct ws_texture_level *l = &t->h->level[level];
    uint32_t n[3] = {l->width, l->height, l->depth};
    int64_t k[3] = {0, 0, 0};
    for (unsigned d = 0; d < nd; d++) {
        k[d] = ref_index(t->h, (int)d, i[d], n[d]);
        if (k[d] < 0)
            return ch < t->h->n_channels ? ref_border(t->h, ch) : ch == 3;
    }
    return ref_texel(t, level, k[0], k[1], nd == 3 ? k[2] : slice, ch);
}
/* tex(x, y, z) of one level. */
static double ref_level(const struct tx *t, unsigned level, unsigned nd, const double *x,
                        int64_t slice, int ch)
{
    const struct ws_texture *h = t->h;
    const struct ws_texture_level *l = &h->level[level];
    uint32_t n[3] = {l->width, l->height, l->depth};
    double b[3], i[3], w[3], sum = 0;
    for (unsigned d = 0; d < nd; d++)
        b[d] = ref_fold(h, (int)d, x[d], n[d]);
    if (!(h->flags & WS_TEX_FILTER_LINEAR) || !reads_float(h)) {
        for (unsigned d = 0; d < nd; d++)
            i[d] = floor(b[d]);
        return ref_at(t, level, nd, i, slice, ch);
    }
    for (unsigned d = 0; d < nd; d++) {
        i[d] = floor(b[d] - 0.5);
        w[d] = floor((b[d] - 0.5 - i[d]) * 256 + 0.5) / 256;
    }
    for (unsigned c = 0; c < 1u << nd; c++) {
        double at[3], weight = 1;
        for (unsigned d = 0; d < nd; d++) {
            at[d] = i[d] + (c >> d & 1);
            weight *= c >> d & 1 ? w[d] : 1 - w[d];
        }
        sum += weight == 0 ? 0 : weight * ref_at(t, level, nd, at, slice, ch);
    }
    return sum;
}

/* ---- comparing ---- */
static double value_of(const struct ws_texture *h, uint32_t bits)
{
    if (reads_float(h))
        return f_of(bits);
    return h->format >= WS_TEX_S8 ? (double)(int32_t)bits : (double)bits;
}
static double largest(const struct ws_texture *h)
{
    return h->format >= WS_TEX_F16 ? 2 : reads_float(h) ? 1 : 0;
}
static void expect(const struct tx *t, unsigned thread, int ch, double want, double tolerance,
                   const char *what)
{
    double got = value_of(t->h, t->got[thread * 4 + (unsigned)ch]);
    if (fabs(got - want) <= tolerance)
        return;
    const struct ws_texture *h = t->h;
    const float *x = (const float *)&t->x[thread * 8];
    print_error(
        "%s: thread %u channel %d: got %.9g, want %.9g (format %d channels %d shape %d flags "
        "%x modes %d %d %d size %u %u %u, x %.9g %.9g %.9g %.9g)\n",
        what, thread, ch, got, want, h->format, h->n_channels, h->shape, h->flags,
        h->address_mode[0], h->address_mode[1], h->address_mode[2], h->level[0].width,
        h->level[0].height, h->level[0].depth, x[0], x[1], x[2], x[3]);
    fail();
}

/* ---- making textures ---- */
static void fill_texels(struct tx *t)
{
    const struct ws_texture *h = t->h;
    for (unsigned k = 0; k < TEXEL_BYTES / 4; k++) {
        uint32_t v = rnd() << 8 ^ rnd();
        if (h->format == WS_TEX_F32) {
            float f = ((int)below(4001) - 2000) / 1000.0f;
            memcpy(&v, &f, 4);
        } else if (h->format == WS_TEX_F16) { /* below 2 */
            v = (v & 0x80008000) | (rnd() % 0x4000) | (rnd() % 0x4000) << 16;
        }
        memcpy(t->mem + 4 * k, &v, 4);
    }
}

static void make_level(struct tx *t, unsigned k, uint64_t *at, uint32_t w, uint32_t hh, uint32_t d)
{
    struct ws_texture_level *l = &t->h->level[k];
    unsigned tb = texel_bytes(t->h);
    *l = (struct ws_texture_level){.address = t->texels + *at,
                                   .row_bytes = w * tb + tb * below(3),
                                   .width = w,
                                   .height = hh,
                                   .depth = d};
    l->slice_bytes = l->row_bytes * hh + tb * below(3);
    *at += l->slice_bytes * d;
    assert_true(*at <= TEXEL_BYTES);
}

struct geom {
    const char *name;
    uint8_t shape, nd;
    bool layered;
};
static const struct geom geoms[] = {
    {"1d", WS_TEX_1D, 1, false},     {"2d", WS_TEX_2D, 2, false}, {"3d", WS_TEX_3D, 3, false},
    {"a1d", WS_TEX_1D, 1, true},     {"a2d", WS_TEX_2D, 2, true}, {"cube", WS_TEX_CUBE, 2, false},
    {"acube", WS_TEX_CUBE, 2, true},
};
static const char *const coords[] = {"{%f0}",
                                     "{%f0, %f1}",
                                     "{%f0, %f1, %f2, %f2}",
                                     "{%r4, %f0}",
                                     "{%r4, %f0, %f1, %f1}",
                                     "{%f0, %f1, %f2, %f2}",
                                     "{%r4, %f0, %f1, %f2}"};

static void random_texture(struct tx *t, const struct geom *g, bool pow2, unsigned levels)
{
    struct ws_texture *h = t->h;
    static const uint8_t channels[] = {1, 2, 4};
    uint64_t at = 0;
    *h = (struct ws_texture){.magic = WS_TEXTURE_MAGIC,
                             .shape = g->shape,
                             .format = (uint8_t)below(8),
                             .n_channels = channels[below(3)],
                             .n_levels = (uint8_t)levels,
                             .level_max = 15};
    if (g->layered)
        h->flags |= WS_TEX_LAYERED;
    if (below(2) || g->shape == WS_TEX_CUBE)
        h->flags |= WS_TEX_NORMALIZED_COORDS;
    if (channel_bytes[h->format] < 4 && h->format != WS_TEX_F16 && below(2))
        h->flags |= WS_TEX_NORMALIZED_FLOAT;
    if (h->format == WS_TEX_U8 && h->n_channels == 4 && below(2))
        h->flags |= WS_TEX_SRGB;
    if (reads_float(h) && below(3))
        h->flags |= WS_TEX_FILTER_LINEAR;
    for (int d = 0; d < 3; d++)
        h->address_mode[d] = g->shape == WS_TEX_CUBE ? WS_TEX_CLAMP : (uint8_t)below(4);
    for (int k = 0; k < 4; k++) {
        int32_t integer = (int32_t)below(100) - (h->format >= WS_TEX_S8 ? 50 : 0);
        h->border[k] = (float)below(1000) / 1000;
        if (!reads_float(h))
            memcpy(&h->border[k], &integer, 4);
    }
    uint32_t w = pow2 ? 1u << below(levels > 1 ? 4 : 6) : 1 + below(40),
             hh = pow2 ? 1u << below(levels > 1 ? 4 : 5) : 1 + below(20),
             d = g->nd == 3   ? (pow2 ? 1u << below(levels > 1 ? 2 : 4) : 1 + below(9))
                 : g->layered ? 1 + below(5)
                              : 1;
    if (g->shape == WS_TEX_CUBE) {
        hh = w;
        d *= 6;
    }
    if (g->nd == 1)
        hh = 1;
    if (levels > 1) {
        w *= 1u << (levels - 1);
        hh *= g->nd == 1 ? 1 : 1u << (levels - 1);
        d *= g->nd == 3 ? 1u << (levels - 1) : 1;
    }
    for (unsigned k = 0; k < levels; k++) {
        make_level(t, k, &at, w, hh, d);
        w = w > 1 ? w / 2 : 1;
        hh = hh > 1 ? hh / 2 : 1;
        d = g->nd == 3 && d > 1 ? d / 2 : d;
    }
    fill_texels(t);
}

/* A coordinate around [0, n) texels, exact in binary if pow2; else inside of a texel, away from
 * edges. */
static float random_coord(const struct ws_texture *h, uint32_t n, bool pow2)
{
    double x =
        pow2 ? ((int)below(n * 3 * 1024) - (int)n * 1024) / 1024.0
             : (int)below(n * 3) - (int)n + 0.05 + 0.4 * below(1000) / 1000 + (below(2) ? 0.5 : 0);
    return (float)(h->flags & WS_TEX_NORMALIZED_COORDS ? x / n : x);
}

static void random_coords(struct tx *t, const struct geom *g, bool pow2)
{
    const struct ws_texture_level *l = &t->h->level[0];
    uint32_t n[3] = {l->width, l->height, l->depth};
    for (unsigned k = 0; k < THREADS; k++) {
        for (unsigned d = 0; d < g->nd; d++)
            put_f(t, k, d, random_coord(t->h, n[d], pow2));
        t->x[k * 8 + 4] = g->layered ? below(7) : 0;
    }
}

static int64_t layer_of(const struct tx *t, unsigned thread)
{
    uint32_t layers = t->h->level[0].depth, v = t->x[thread * 8 + 4];
    return v < layers ? v : layers - 1;
}

static double tolerance_of(const struct tx *t, unsigned nd, bool pow2)
{
    bool linear = (t->h->flags & WS_TEX_FILTER_LINEAR) && reads_float(t->h);
    if (!reads_float(t->h))
        return 0;
    return largest(t->h) * (1e-6 + (linear && !pow2 ? nd * 2.02 / 256 : 0));
}

/* ---- tests ---- */
static void fetches(void)
{
    struct tx t;
    tx_init(&t);
    for (unsigned g = 0; g < 5; g++) {
        char insn[200];
        snprintf(insn, sizeof(insn), "tex.%s.v4.f32.f32 {%%r8, %%r9, %%r10, %%r11}, [%%d0, %s];",
                 geoms[g].name, coords[g]);
        load(&t, insn);
        for (unsigned round = 0; round < rounds(160); round++) {
            bool pow2 = round % 4 != 0;
            random_texture(&t, &geoms[g], pow2, 1);
            random_coords(&t, &geoms[g], pow2);
            must_launch(&t);
            for (unsigned k = 0; k < THREADS; k++)
                for (int ch = 0; ch < 4; ch++) {
                    double x[3];
                    for (unsigned d = 0; d < geoms[g].nd; d++)
                        x[d] = f_of(t.x[k * 8 + d]);
                    double want = ref_level(&t, 0, geoms[g].nd, x, layer_of(&t, k), ch);
                    expect(&t, k, ch, want, tolerance_of(&t, geoms[g].nd, pow2), insn);
                }
        }
    }
    fix_deinit(&t.f);
}
static void test_fetches(void **state)
{
    (void)state;
    each_isa(fetches);
}

/* Coordinates that no program should use, and no program may be hurt by; and the ones at the very
 * edges. */
static void test_odd_coordinates(void **state)
{
    (void)state;
    static const float odd[] = {0,
                                -0.0f,
                                1,
                                -1,
                                0.5f,
                                -0.5f,
                                1e-30f,
                                -1e-30f,
                                INFINITY,
                                -INFINITY,
                                NAN,
                                3.4e38f,
                                -3.4e38f,
                                1e10f,
                                -1e10f,
                                16777216,
                                8,
                                7.999999f,
                                0.99999994f,
                                -1e-8f,
                                2147483648.0f,
                                -2147483648.0f,
                                4294967296.0f,
                                1e-45f};
    struct tx t;
    tx_init(&t);
    for (unsigned g = 0; g < 7; g++) {
        char insn[200];
        snprintf(insn, sizeof(insn), "tex.%s.v4.f32.f32 {%%r8, %%r9, %%r10, %%r11}, [%%d0, %s];",
                 geoms[g].name, coords[g]);
        load(&t, insn);
        for (unsigned round = 0; round < rounds(64); round++) {
            random_texture(&t, &geoms[g], true, 1);
            if (geoms[g].shape == WS_TEX_CUBE && round % 2)
                t.h->flags |= WS_TEX_SEAMLESS_CUBE;
            for (unsigned k = 0; k < THREADS; k++) {
                for (unsigned d = 0; d < 3; d++)
                    put_f(&t, k, d, odd[below(WS_ARRAY_SIZE(odd))]);
                t.x[k * 8 + 4] = round % 3 ? rnd() << 8 : UINT32_MAX;
            }
            must_launch(&t);
            for (unsigned k = 0; k < THREADS && geoms[g].shape != WS_TEX_CUBE; k++) {
                double x[3];
                bool finite = true;
                for (unsigned d = 0; d < geoms[g].nd; d++) {
                    x[d] = f_of(t.x[k * 8 + d]);
                    finite &= fabs(x[d]) < 1e6 && (x[d] == 0 || fabs(x[d]) > 1e-6);
                }
                for (int ch = 0; finite && ch < 4; ch++)
                    expect(&t, k, ch, ref_level(&t, 0, geoms[g].nd, x, layer_of(&t, k), ch),
                           tolerance_of(&t, geoms[g].nd, false), insn);
            }
        }
    }
    fix_deinit(&t.f);
}

static void test_integer_coordinates(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    load(&t, "tex.1d.v4.u32.s32 {%r8, %r9, %r10, %r11}, [%d0, {%r0}];");
    for (unsigned round = 0; round < rounds(100); round++) {
        random_texture(&t, &geoms[0], false, 1);
        t.h->shape = WS_TEX_LINEAR;
        t.h->flags &= ~(uint32_t)WS_TEX_FILTER_LINEAR;
        uint32_t n = t.h->level[0].width;
        for (unsigned k = 0; k < THREADS; k++)
            t.x[k * 8] = k == 0 ? 0x80000000 : k == 1 ? 0x7fffffff : below(3 * n) - n;
        must_launch(&t);
        for (unsigned k = 0; k < THREADS; k++)
            for (int ch = 0; ch < t.h->n_channels; ch++)
                expect(&t, k, ch, t.x[k * 8] < n ? ref_texel(&t, 0, t.x[k * 8], 0, 0, ch) : 0, 1e-6,
                       "linear");
    }
    load(&t, "tex.2d.v4.s32.s32 {%r8, %r9, %r10, %r11}, [%d0, {%r0, %r1}];");
    for (unsigned round = 0; round < 50; round++) {
        random_texture(&t, &geoms[1], false, 1);
        t.h->flags &= ~(uint32_t)(WS_TEX_NORMALIZED_COORDS | WS_TEX_FILTER_LINEAR);
        for (unsigned k = 0; k < THREADS; k++) {
            t.x[k * 8] = below(3 * t.h->level[0].width) - t.h->level[0].width;
            t.x[k * 8 + 1] = below(3 * t.h->level[0].height) - t.h->level[0].height;
        }
        must_launch(&t);
        for (unsigned k = 0; k < THREADS; k++)
            for (int ch = 0; ch < 4; ch++) {
                double at[2] = {(int32_t)t.x[k * 8], (int32_t)t.x[k * 8 + 1]};
                expect(&t, k, ch, ref_at(&t, 0, 2, at, 0, ch), 1e-6, "2d, integers");
            }
    }
    fix_deinit(&t.f);
}

/* ---- what fetches cost ---- */

/* Fetches the thread's own texel of 4 bytes three times. L1 has it after the first. */
static void test_traffic(void **state)
{
    (void)state;
    if (replaced())
        return;
    static const struct ws_reuse_cache cache = {
        .l1_bytes = 65536, .l2_bytes = 1 << 20, .n_sms = 1, .blocks_per_sm = 1};
    struct tx t;
    tx_init(&t);
    t.f.reuse = ws_reuse_new(&cache, 1);
    assert_non_null(t.f.reuse);
#define FETCH "tex.1d.v4.u32.s32 {%r8, %r9, %r10, %r11}, [%d0, {%r0}];\n"
    load(&t, FETCH FETCH FETCH);
    *t.h = (struct ws_texture){.magic = WS_TEXTURE_MAGIC,
                               .shape = WS_TEX_LINEAR,
                               .format = WS_TEX_U32,
                               .n_channels = 1,
                               .n_levels = 1,
                               .level = {{.address = t.texels,
                                          .row_bytes = 4096,
                                          .slice_bytes = 4096,
                                          .width = 1024,
                                          .height = 1,
                                          .depth = 1}}};
    for (unsigned k = 0; k < THREADS; k++)
        t.x[k * 8] = k;
    must_launch(&t);
    struct ws_reuse_shares shares = ws_reuse_shares(t.f.reuse, &cache, &t.f.work);
    ws_reuse_settle(&shares, &t.f.work);
    uint64_t texels = THREADS * 4 / 32, others = THREADS * (32 + 16) / 32;
    assert_int_equal(t.f.work.n_texture_quads, 3 * THREADS / 4);
    assert_in_range(t.f.work.n_l2_sectors, texels + others - 1, texels + others + 1);
    assert_in_range(t.f.work.n_dram_sectors, 0.9 * (double)(texels + others),
                    1.1 * (double)(texels + others));
    free(t.f.reuse);
    t.f.reuse = NULL;
    fix_deinit(&t.f);
}

/* ---- cube maps. Source: the guide's table of faces ---- */
static int ref_face(const double *v, double *s, double *tt)
{
    double x = v[0], y = v[1], z = v[2], m;
    int face;
    if (fabs(x) > fabs(y) && fabs(x) > fabs(z)) {
        face = x >= 0 ? 0 : 1;
        m = fabs(x);
        *s = x >= 0 ? -z : z;
        *tt = -y;
    } else if (fabs(y) > fabs(x) && fabs(y) > fabs(z)) {
        face = y >= 0 ? 2 : 3;
        m = fabs(y);
        *s = x;
        *tt = y >= 0 ? z : -z;
    } else {
        face = z >= 0 ? 4 : 5;
        m = fabs(z);
        *s = z >= 0 ? x : -x;
        *tt = -y;
    }
    *s = (*s / m + 1) / 2;
    *tt = (*tt / m + 1) / 2;
    return face;
}

static void cubes(void)
{
    struct tx t;
    tx_init(&t);
    for (unsigned g = 5; g < 7; g++) {
        char insn[200];
        snprintf(insn, sizeof(insn), "tex.%s.v4.f32.f32 {%%r8, %%r9, %%r10, %%r11}, [%%d0, %s];",
                 geoms[g].name, coords[g]);
        load(&t, insn);
        for (unsigned round = 0; round < rounds(60); round++) {
            random_texture(&t, &geoms[g], true, 1);
            for (unsigned k = 0; k < THREADS; k++) {
                for (unsigned d = 0; d < 3; d++)
                    put_f(&t, k, d, ((int)below(2001) - 1000) / 377.0f);
                t.x[k * 8 + 4] = below(7);
            }
            must_launch(&t);
            for (unsigned k = 0; k < THREADS; k++) {
                double v[3], x[2], frac[2];
                for (unsigned d = 0; d < 3; d++)
                    v[d] = f_of(t.x[k * 8 + d]);
                int face = ref_face(v, &x[0], &x[1]);
                uint32_t n_cubes = t.h->level[0].depth / 6, cube = t.x[k * 8 + 4];
                cube = g == 5 ? 0 : cube < n_cubes ? cube : n_cubes - 1;
                for (unsigned d = 0; d < 2; d++)
                    frac[d] = x[d] * t.h->level[0].width - floor(x[d] * t.h->level[0].width);
                double a[3] = {fabs(v[0]), fabs(v[1]), fabs(v[2])};
                if (a[0] == a[1] || a[0] == a[2] || a[1] == a[2] ||
                    fmin(fmin(frac[0], 1 - frac[0]), fmin(frac[1], 1 - frac[1])) < 1e-3)
                    continue; /* rounding decides; on an edge, either face will do */
                for (int ch = 0; ch < 4; ch++)
                    expect(&t, k, ch, ref_level(&t, 0, 2, x, (int64_t)cube * 6 + face, ch),
                           tolerance_of(&t, 2, false), insn);
            }
        }
    }
    fix_deinit(&t.f);
}
static void test_cubes(void **state)
{
    (void)state;
    each_isa(cubes);
}

/* Across an edge nothing jumps: both sides mix the same texels. Without seamless filtering they do
 * not. */
static void test_seamless_cube(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    load(&t, "tex.cube.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1, %f2, %f2}];");
    for (unsigned seamless = 0; seamless < 2; seamless++) {
        double worst = 0;
        for (unsigned round = 0; round < 20; round++) {
            do
                random_texture(&t, &geoms[5], true, 1);
            while (t.h->level[0].width < 8);
            t.h->format = WS_TEX_F32;
            t.h->n_channels = 1;
            t.h->level[0].row_bytes = t.h->level[0].width * 4;
            t.h->level[0].slice_bytes = t.h->level[0].row_bytes * t.h->level[0].width;
            t.h->flags = WS_TEX_NORMALIZED_COORDS | WS_TEX_FILTER_LINEAR |
                         (seamless ? WS_TEX_SEAMLESS_CUBE : 0);
            fill_texels(&t);
            for (unsigned k = 0; k < THREADS; k += 2) { /* pairs, left and right of an edge */
                unsigned a = below(3), b = (a + 1 + below(2)) % 3, c = 3 - a - b;
                float sa = below(2) ? 1 : -1, sb = below(2) ? 1 : -1;
                float along = ((int)below(1400) - 700) / 1000.0f;
                for (unsigned side = 0; side < 2; side++) {
                    put_f(&t, k + side, a, side ? sa * 0.9999f : sa);
                    put_f(&t, k + side, b, side ? sb : sb * 0.9999f);
                    put_f(&t, k + side, c, along);
                }
            }
            must_launch(&t);
            for (unsigned k = 0; k < THREADS; k += 2)
                worst = fmax(worst, fabs((double)f_of(t.got[4 * k]) - f_of(t.got[4 * k + 4])));
        }
        if (seamless)
            assert_true(worst < 0.07); /* a step of the weights, twice */
        else
            assert_true(worst > 1);
    }
    fix_deinit(&t.f);
}

/* ---- mipmaps ---- */
static void mipmaps(void)
{
    struct tx t;
    tx_init(&t);
    static const unsigned use[] = {0, 1, 2, 4};
    for (unsigned n = 0; n < 4; n++) {
        const struct geom *g = &geoms[use[n]];
        char insn[200];
        snprintf(insn, sizeof(insn),
                 "tex.level.%s.v4.f32.f32 {%%r8, %%r9, %%r10, %%r11}, [%%d0, %s], %%f5;", g->name,
                 coords[use[n]]);
        load(&t, insn);
        for (unsigned round = 0; round < rounds(60); round++) {
            unsigned levels = 2 + below(2);
            do
                random_texture(&t, g, true, levels);
            while (!reads_float(t.h));
            t.h->flags |= WS_TEX_NORMALIZED_COORDS;
            if (below(2))
                t.h->flags |= WS_TEX_MIPMAP_LINEAR;
            t.h->level_bias = below(2) ? 0 : 0.25f;
            t.h->level_min = below(2) ? 0 : 0.5f;
            t.h->level_max = below(2) ? 15 : 1.25f;
            random_coords(&t, g, true);
            for (unsigned k = 0; k < THREADS; k++)
                put_f(&t, k, 5, ((int)below(6 * 256) - 256) / 256.0f + (below(8) ? 0 : 1e6f));
            must_launch(&t);
            for (unsigned k = 0; k < THREADS; k++) {
                double x[3], lod = (double)f_of(t.x[k * 8 + 5]) + t.h->level_bias;
                lod = fmax(fmin(lod, t.h->level_max), t.h->level_min);
                lod = fmax(fmin(lod, levels - 1), 0);
                unsigned l0 = t.h->flags & WS_TEX_MIPMAP_LINEAR ? (unsigned)floor(lod)
                                                                : (unsigned)floor(lod + 0.5);
                unsigned l1 = l0 + 1 < levels ? l0 + 1 : l0;
                double w = t.h->flags & WS_TEX_MIPMAP_LINEAR ? lod - l0 : 0;
                for (unsigned d = 0; d < g->nd; d++)
                    x[d] = f_of(t.x[k * 8 + d]);
                for (int ch = 0; ch < 4; ch++) {
                    double want =
                        (1 - w) * ref_level(&t, l0, g->nd, x, layer_of(&t, k), ch) +
                        (w > 0 ? w * ref_level(&t, l1, g->nd, x, layer_of(&t, k), ch) : 0);
                    expect(&t, k, ch, want, tolerance_of(&t, g->nd, true) + 1e-6, insn);
                }
            }
        }
    }
    fix_deinit(&t.f);
}
static void test_mipmaps(void **state)
{
    (void)state;
    each_isa(mipmaps);
}

/* Gradients choose the level; .base takes level 0 whatever the bias. */
static void test_gradients(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    load(&t, "tex.grad.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1}], {%f2, %f3}, {%f4, "
             "%f5};");
    do
        random_texture(&t, &geoms[1], true, 3);
    while (t.h->format != WS_TEX_F32 || (t.h->flags & WS_TEX_FILTER_LINEAR));
    t.h->flags |= WS_TEX_NORMALIZED_COORDS;
    const struct ws_texture_level *l = &t.h->level[0];
    for (unsigned k = 0; k < THREADS; k++) {
        unsigned step = k % 5; /* texels: 1/2, 1, 2, 4, 8 */
        double texels = ldexp(1.0, (int)step - 1);
        memset(&t.x[k * 8], 0, 32);
        put_f(&t, k, 0, random_coord(t.h, l->width, true));
        put_f(&t, k, 1, random_coord(t.h, l->height, true));
        put_f(&t, k, 2 + k % 4, (float)(texels / (k % 2 ? l->height : l->width)));
    }
    must_launch(&t);
    for (unsigned k = 0; k < THREADS; k++) {
        double x[2] = {f_of(t.x[k * 8]), f_of(t.x[k * 8 + 1])};
        static const unsigned level[] = {0, 0, 1, 2, 2};
        for (int ch = 0; ch < 4; ch++)
            expect(&t, k, ch, ref_level(&t, level[k % 5], 2, x, 0, ch), 1e-6, "gradient");
    }
    load(&t, "tex.base.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1}];");
    t.h->level_bias = 1.5f;
    must_launch(&t);
    for (unsigned k = 0; k < THREADS; k++) {
        double x[2] = {f_of(t.x[k * 8]), f_of(t.x[k * 8 + 1])};
        expect(&t, k, 0, ref_level(&t, 0, 2, x, 0, 0), 1e-6, "base");
    }
    /* a cube's gradient of a texel of level 1 along the face */
    load(&t, "tex.grad.cube.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1, %f2, %f2}], "
             "{%f3, %f4, %f5, %f5}, {%f6, %f6, %f6, %f6};");
    do
        random_texture(&t, &geoms[5], true, 3);
    while (t.h->format != WS_TEX_F32 || (t.h->flags & WS_TEX_FILTER_LINEAR));
    for (unsigned k = 0; k < THREADS; k++) {
        memset(&t.x[k * 8], 0, 32);
        put_f(&t, k, 0, 2);
        put_f(&t, k, 1, 0.13f);
        put_f(&t, k, 2, -0.3f);
        put_f(&t, k, 4, ldexpf(4.0f / (float)t.h->level[0].width, (int)(k % 3)));
    }
    must_launch(&t);
    for (unsigned k = 0; k < THREADS; k++) {
        double v[3] = {2, f_of(t.x[k * 8 + 1]), f_of(t.x[k * 8 + 2])}, x[2];
        int face = ref_face(v, &x[0], &x[1]);
        expect(&t, k, 0, ref_level(&t, k % 3, 2, x, face, 0), 1e-6, "cube gradient");
    }
    fix_deinit(&t.f);
}

/* ---- other forms of the instruction ---- */
static void test_gather(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    static const char *const comps[] = {"r", "g", "b", "a"};
    for (int ch = 0; ch < 4; ch++) {
        char insn[200];
        snprintf(insn, sizeof(insn),
                 "tld4.%s.2d.v4.f32.f32 {%%r8, %%r9, %%r10, %%r11}, [%%d0, {%%f0, %%f1}];",
                 comps[ch]);
        load(&t, insn);
        for (unsigned round = 0; round < rounds(40); round++) {
            random_texture(&t, &geoms[1], true, 1);
            random_coords(&t, &geoms[1], true);
            for (unsigned k = 0; k < THREADS; k++) /* away from where weights round */
                for (unsigned d = 0; d < 2; d++) {
                    uint32_t n = d ? t.h->level[0].height : t.h->level[0].width;
                    double x = below(3 * n) - (double)n + 0.25 + 0.5 * below(2);
                    put_f(&t, k, d, (float)(t.h->flags & WS_TEX_NORMALIZED_COORDS ? x / n : x));
                }
            must_launch(&t);
            for (unsigned k = 0; k < THREADS; k++) {
                static const int dx[] = {0, 1, 1, 0}, dy[] = {1, 1, 0, 0};
                double x = ref_fold(t.h, 0, f_of(t.x[k * 8]), t.h->level[0].width),
                       y = ref_fold(t.h, 1, f_of(t.x[k * 8 + 1]), t.h->level[0].height);
                for (int c = 0; c < 4; c++) {
                    double at[2] = {floor(x - 0.5) + dx[c], floor(y - 0.5) + dy[c]};
                    expect(&t, k, c, ref_at(&t, 0, 2, at, 0, ch), 1e-6 * (largest(t.h) + 1e-9),
                           insn);
                }
            }
        }
    }
    fix_deinit(&t.f);
}

static void test_half_results(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    for (int packed = 0; packed < 2; packed++) {
        load(&t, packed ? "tex.2d.v2.f16x2.f32 {%r8, %r9}, [%d0, {%f0, %f1}];"
                        : "tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%d0, {%f0, %f1}];\n"
                          "mov.b32 %r8, {%h0, %h1};\nmov.b32 %r9, {%h2, %h3};");
        do
            random_texture(&t, &geoms[1], true, 1);
        while (t.h->format != WS_TEX_F32);
        random_coords(&t, &geoms[1], true);
        must_launch(&t);
        for (unsigned k = 0; k < THREADS; k++)
            for (int ch = 0; ch < 4; ch++) {
                double x[2] = {f_of(t.x[k * 8]), f_of(t.x[k * 8 + 1])};
                double want = ref_level(&t, 0, 2, x, 0, ch),
                       got = half((uint16_t)(t.got[k * 4 + (unsigned)ch / 2] >> 16 * (ch % 2)));
                assert_true(fabs(got - want) <= ldexp(1, -10));
            }
    }
    fix_deinit(&t.f);
}

/* Lanes with handles of their own, guards, a sampler of its own, the predicate of residency. */
static void test_lanes(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    struct ws_texture *s = fix_host(&t.f, t.sampler);
    load(&t, "and.b32 %r15, %r16, 1;\nsetp.eq.u32 %p0, %r15, 1;\nselp.b64 %d5, %d1, %d0, %p0;\n"
             "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}|%p1, [%d5, {%f0, %f1}];\nselp.b32 %r11, 1, "
             "0, %p1;");
    for (unsigned round = 0; round < 20; round++) {
        random_texture(&t, &geoms[1], true, 1);
        *s = *t.h;
        s->level[0].address += 64; /* the other one lies elsewhere */
        random_coords(&t, &geoms[1], true);
        must_launch(&t);
        for (unsigned k = 0; k < THREADS; k++) {
            double x[2] = {f_of(t.x[k * 8]), f_of(t.x[k * 8 + 1])};
            t.h->level[0].address = s->level[0].address - (k % 2 ? 0 : 64);
            expect(&t, k, 0, ref_level(&t, 0, 2, x, 0, 0), tolerance_of(&t, 2, true), "handles");
            assert_int_equal(t.got[k * 4 + 3], 1);
        }
    }
    load(&t, "setp.lt.u32 %p0, %r16, 77;\n@!%p0 tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, "
             "{%f0, %f1}];");
    random_texture(&t, &geoms[1], true, 1);
    random_coords(&t, &geoms[1], true);
    must_launch(&t);
    for (unsigned k = 0; k < THREADS; k++) {
        double x[2] = {f_of(t.x[k * 8]), f_of(t.x[k * 8 + 1])};
        if (k < 77)
            assert_int_equal(t.got[k * 4], UINT32_MAX);
        else
            expect(&t, k, 0, ref_level(&t, 0, 2, x, 0, 0), tolerance_of(&t, 2, true), "guard");
    }
    /* four coordinates may be written whatever the geometry: old PTX does */
    load(&t, "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1, %f3, %f3}];");
    must_launch(&t);
    for (unsigned k = 0; k < THREADS; k++) {
        double x[2] = {f_of(t.x[k * 8]), f_of(t.x[k * 8 + 1])};
        expect(&t, k, 0, ref_level(&t, 0, 2, x, 0, 0), tolerance_of(&t, 2, true), "four");
    }
    /* destinations that are coordinates, too */
    load(&t, "tex.2d.v4.f32.f32 {%f1, %f0, %f2, %f3}, [%d0, {%f0, %f1}];\nmov.b32 %r8, %f1;");
    must_launch(&t);
    for (unsigned k = 0; k < THREADS; k++) {
        double x[2] = {f_of(t.x[k * 8]), f_of(t.x[k * 8 + 1])};
        expect(&t, k, 0, ref_level(&t, 0, 2, x, 0, 0), tolerance_of(&t, 2, true), "overlap");
    }
    load(&t, "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, %d1, {%f0, %f1}];");
    for (unsigned round = 0; round < 20; round++) { /* the sampler's state counts */
        random_texture(&t, &geoms[1], true, 1);
        *s = *t.h;
        memset(s->level, 0, sizeof(s->level));
        memset(t.h->address_mode, round & 1 ? WS_TEX_BORDER : WS_TEX_CLAMP, 3);
        t.h->flags ^= WS_TEX_NORMALIZED_COORDS;
        random_coords(&t, &geoms[1], true);
        must_launch(&t);
        memcpy(t.h->address_mode, s->address_mode, 3);
        t.h->flags ^= WS_TEX_NORMALIZED_COORDS;
        for (unsigned k = 0; k < THREADS; k++) {
            double x[2] = {f_of(t.x[k * 8]), f_of(t.x[k * 8 + 1])};
            expect(&t, k, 0, ref_level(&t, 0, 2, x, 0, 0), tolerance_of(&t, 2, true), "sampler");
        }
    }
    fix_deinit(&t.f);
}

/* Variables of type .texref and .samplerref hold handles; their names stand for these. */
static void test_variables(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    static const char *const forms[] = {
        "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [image, {%f0, %f1}];",
        "mov.u64 %d6, image;\ntex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d6, {%f0, %f1}];",
        "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [image, how, {%f0, %f1}];",
    };
    for (unsigned n = 0; n < 3; n++) {
        fix_must_load(&t.f,
                      kernel_text(".global .texref image;\n.global .samplerref how;", forms[n]));
        for (uint32_t k = 0; k < t.f.m->n_vars; k++)
            memcpy(fix_host(&t.f, t.f.var_va[k]),
                   strcmp(t.f.m->vars[k].name, "image") == 0 ? &t.header : &t.sampler, 8);
        random_texture(&t, &geoms[1], true, 1);
        memcpy(fix_host(&t.f, t.sampler), t.h, sizeof(*t.h));
        random_coords(&t, &geoms[1], true);
        must_launch(&t);
        for (unsigned k = 0; k < THREADS; k++) {
            double x[2] = {f_of(t.x[k * 8]), f_of(t.x[k * 8 + 1])};
            expect(&t, k, 0, ref_level(&t, 0, 2, x, 0, 0), tolerance_of(&t, 2, true), forms[n]);
        }
    }
    fix_deinit(&t.f);
}

static void test_queries(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    random_texture(&t, &geoms[4], false, 1);
    t.h->format = WS_TEX_F32;
    t.h->n_channels = 4;
    t.h->level[0] = (struct ws_texture_level){t.texels, 640, 6400, 40, 10, 5, 0};
    t.h->flags = WS_TEX_LAYERED | WS_TEX_NORMALIZED_COORDS | WS_TEX_FILTER_LINEAR;
    t.h->address_mode[0] = WS_TEX_WRAP;
    t.h->address_mode[1] = WS_TEX_CLAMP;
    t.h->address_mode[2] = WS_TEX_BORDER;
    t.h->n_levels = 2;
    t.h->level[1] = (struct ws_texture_level){t.texels + 32000, 320, 1600, 20, 5, 5, 0};
    static const struct {
        const char *insn;
        uint32_t want;
    } rows[] = {
        {"txq.width.b32 %r8, [%d0];", 40},
        {"txq.height.b32 %r8, [%d0];", 10},
        {"txq.depth.b32 %r8, [%d0];", 1},
        {"txq.array_size.b32 %r8, [%d0];", 5},
        {"mov.u32 %r7, 1;\ntxq.level.width.b32 %r8, [%d0], %r7;", 20},
        {"txq.level.height.b32 %r8, [%d0], 1;", 5},
        {"txq.num_mipmap_levels.b32 %r8, [%d0];", 2},
        {"txq.num_samples.b32 %r8, [%d0];", 1},
        {"txq.channel_data_type.b32 %r8, [%d0];", 0x10de},
        {"txq.channel_order.b32 %r8, [%d0];", 0x10b5},
        {"txq.normalized_coords.b32 %r8, [%d0];", 1},
        {"txq.force_unnormalized_coords.b32 %r8, [%d0];", 0},
        {"txq.filter_mode.b32 %r8, [%d0];", 1},
        {"txq.addr_mode_0.b32 %r8, [%d0];", 0},
        {"txq.addr_mode_1.b32 %r8, [%d0];", 3},
        {"txq.addr_mode_2.b32 %r8, [%d0];", 4},
        {"istypep.texref %p0, %d0;\nselp.b32 %r8, 1, 0, %p0;", 1},
        {"istypep.samplerref %p0, %d0;\nselp.b32 %r8, 1, 0, %p0;", 1},
        {"istypep.surfref %p0, %d0;\nselp.b32 %r8, 1, 0, %p0;", 0},
        {"istypep.texref %p0, %d2;\nselp.b32 %r8, 1, 0, %p0;", 0},
        {"mov.u64 %d6, 0;\nistypep.texref %p0, %d6;\nselp.b32 %r8, 1, 0, %p0;", 0},
    };
    for (size_t k = 0; k < WS_ARRAY_SIZE(rows); k++) {
        load(&t, rows[k].insn);
        must_launch(&t);
        if (t.got[0] != rows[k].want || t.got[4 * (THREADS - 1)] != rows[k].want)
            fail_msg("%s: got %u, want %u", rows[k].insn, t.got[0], rows[k].want);
    }
    fix_deinit(&t.f);
}

/* ---- what must be refused ---- */
static void test_refused(void **state)
{
    (void)state;
    static const char *const insns[] = {
        "tex.2dms.v4.f32.s32 {%r8, %r9, %r10, %r11}, [%d0, {%r0, %r1, %r2, %r3}];",
        "tex.a2dms.v4.f32.s32 {%r8, %r9, %r10, %r11}, [%d0, {%r0, %r1, %r2, %r3}];",
        "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1}], {%r0, %r1};",
        "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1}], %f2;",
        "tex.cube.v4.f32.s32 {%r8, %r9, %r10, %r11}, [%d0, {%r0, %r1, %r2, %r3}];",
        "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1, %f2}];",
        "tex.2d.v4.f32.f32 {%r8, %r9}, [%d0, {%f0, %f1}];",
        "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0+8, {%f0, %f1}];",
        "tex.4d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1}];",
        "tex.2d.v4.u8.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1}];",
        "tld4.r.3d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1, %f2, %f2}];",
        "tld4.r.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1}], {%r0, %r1};",
        "txq.size.b32 %r8, [%d0];",
        "txq.memory_layout.b32 %r8, [%d0];",
        "suq.filter_mode.b32 %r8, [%d0];",
        "suld.p.2d.b32.trap {%r8}, [%d0, {%r0, %r1}];",
        "suld.b.cube.b32.trap {%r8}, [%d0, {%r0, %r1, %r2, %r3}];",
        "suld.b.2d.v4.b64.trap {%d8, %d9, %d10, %d11}, [%d0, {%r0, %r1}];",
        "suld.b.2d.b32 {%r8}, [%d0, {%r0, %r1}];",
        "sust.b.2d.v2.b32.trap [%d0, {%r0, %r1}], {%r2};",
        "sured.b.xor.2d.u32.trap [%d0, {%r0, %r1}], %r2;",
        "sured.b.add.2d.u8.trap [%d0, {%r0, %r1}], %r2;",
        "istypep.image %p0, %d0;",
    };
    struct tx t;
    tx_init(&t);
    for (size_t k = 0; k < WS_ARRAY_SIZE(insns); k++) {
        if (fix_load(&t.f, kernel_text("", insns[k])) == 0)
            fail_msg("loaded: %s", insns[k]);
        char *text = ws_diags_text(&t.f.diags), op[8];
        sscanf(insns[k], "%7[a-z4]", op);
        if (!strstr(text, op) || !strstr(text, ": ") ||
            !(atoi(text) > 30 || strstr(text, "test.ptx:3")))
            fail_msg("%s: %s", insns[k], text);
        free(text);
    }
    fix_deinit(&t.f);
}

/* What is looked at where instructions are replaced, and by what address it shows
 * (ptx/passes/sampler.h); NULL: only that nothing worse happens than a fault. */
static const char *hostile_replaced(const char *what, uint64_t handle, const char *reason)
{
    static const char *const shows[][2] = {{"is of no texture", "xfffffffffffff008"},
                                           {"is of no surface", "xfffffffffffff010"},
                                           {": shape", "xfffffffffffff018"},
                                           {"format", "xfffffffffffff018"},
                                           {"channels", "xfffffffffffff018"},
                                           {"number of levels", "xfffffffffffff018"},
                                           {"another shape", "xfffffffffffff020"},
                                           {"height of a 1-D", "xfffffffffffff020"},
                                           {"faces", "xfffffffffffff020"}};
    if (!strcmp(what, "end of space"))
        return "";
    if (!strncmp(reason, "no such", 7))
        return handle % 8 ? "xfffffffffffff000" : "0x";
    for (size_t k = 0; k < WS_ARRAY_SIZE(shows); k++)
        if (!strcmp(reason, shows[k][0]))
            return shows[k][1];
    return NULL;
}

/* Headers that a program may have damaged: each faults with the documented kind, and none gets
 * further. */
static void hostile_at(struct tx *t, const char *what, uint64_t handle, const char *reason)
{
    uint64_t params[4] = {handle, t->in, t->out, t->sampler};
    fix_launch(&t->f, &(struct launch){.grid = {1}, .block = {THREADS}, .params = params});
    if (replaced())
        reason = hostile_replaced(what, handle, reason);
    if (!reason)
        return;
    if (t->f.error != WS_DEV_E_ILLEGAL_ADDRESS || !strstr(t->f.text, "0x") ||
        !strstr(t->f.text, reason))
        fail_msg("%s: error %d %s", what, t->f.error, t->f.text);
}
static void params_ok(struct tx *t, uint64_t handle)
{
    uint64_t params[4] = {handle, t->in, t->out, t->sampler};
    assert_int_equal(
        fix_launch(&t->f, &(struct launch){.grid = {1}, .block = {THREADS}, .params = params}),
        WS_DEV_OK);
}
#define HOSTILE(reason, ...)                                                                       \
    do {                                                                                           \
        *t.h = good;                                                                               \
        __VA_ARGS__;                                                                               \
        hostile_at(&t, #__VA_ARGS__, t.header, reason);                                            \
    } while (0)
static void test_hostile(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    random_texture(&t, &geoms[1], true, 1);
    random_coords(&t, &geoms[1], true);
    struct ws_texture good = *t.h;
    good.level[1] = good.level[0];
    load(&t, "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1}];");
    must_launch(&t);
    HOSTILE("is of no texture", t.h->magic = 0);
    HOSTILE("is of no texture", t.h->magic = WS_SURFACE_MAGIC);
    HOSTILE(": shape", t.h->shape = 99);
    HOSTILE("height of a 1-D", t.h->shape = WS_TEX_1D);
    HOSTILE("another shape", t.h->shape = WS_TEX_3D);
    HOSTILE("faces", t.h->shape = WS_TEX_CUBE);
    HOSTILE("another shape", t.h->flags |= WS_TEX_LAYERED);
    HOSTILE("format", t.h->format = 8);
    HOSTILE("channels", t.h->n_channels = 0);
    HOSTILE("channels", t.h->n_channels = 3);
    HOSTILE("channels", t.h->n_channels = 255);
    HOSTILE("number of levels", t.h->n_levels = 0);
    HOSTILE("number of levels", t.h->n_levels = 17);
    HOSTILE("number of levels", t.h->n_levels = 200);
    HOSTILE("address mode", t.h->address_mode[2] = 4);
    HOSTILE("mipmap levels", t.h->level_bias = NAN);
    HOSTILE("size of a level", t.h->level[0].width = 0);
    HOSTILE("size of a level", t.h->level[0].height = 0);
    HOSTILE("size of a level", t.h->level[0].depth = 0);
    HOSTILE("depth", t.h->level[0].depth = 2);
    HOSTILE("size of a level", t.h->level[0].width = UINT32_MAX);
    HOSTILE("size of a level", t.h->level[0].height = UINT32_MAX);
    HOSTILE("extent", t.h->level[0].row_bytes = UINT64_MAX; t.h->level[0].height = 2);
    HOSTILE("extent", t.h->level[0].row_bytes = UINT64_MAX / 2; t.h->level[0].height = 3);
    HOSTILE("outside of any", t.h->level[0].row_bytes = UINT32_MAX; t.h->level[0].height = 2);
    HOSTILE("extent", t.h->flags |= WS_TEX_LAYERED; t.h->level[0].depth = 5;
            t.h->level[0].slice_bytes = UINT64_MAX / 2);
    HOSTILE("extent", t.h->flags |= WS_TEX_LAYERED; t.h->level[0].depth = 2;
            t.h->level[0].height = 2; t.h->level[0].row_bytes = 256;
            t.h->level[0].slice_bytes = UINT64_MAX - 100);
    HOSTILE("outside of any", t.h->level[0].address = 0);
    HOSTILE("outside of any", t.h->level[0].address = t.texels - 1);
    HOSTILE("outside of any", t.h->level[0].address = t.texels + TEXEL_BYTES - 1);
    HOSTILE("outside of any", t.h->level[0].address = UINT64_MAX - 7);
    HOSTILE("outside of any", t.h->level[0].address = UINT64_C(1) << 56);
    HOSTILE("outside of any", t.h->n_levels = 2; t.h->level[1].address = 64);
    *t.h = good;
    memcpy(t.x + 1, &good, sizeof(good)); /* whole and right, but for where it is */
    hostile_at(&t, "misaligned", t.in + 4, "no such texture handle");
    memcpy(t.x, &good, sizeof(good));
    params_ok(&t, t.in);
    hostile_at(&t, "null", 0, "no such texture handle");
    hostile_at(&t, "not mapped", t.header + 4096, "no such texture handle");
    hostile_at(&t, "cut off", t.header + sizeof(good) - 8, "no such texture handle");
    hostile_at(&t, "shared window", UINT64_C(1) << 56, "no such texture handle");
    hostile_at(&t, "end of space", UINT64_MAX - 7, "no such texture handle");
    hostile_at(&t, "a buffer", t.out, "is of no texture");
    load(&t, "tex.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, %d1, {%f0, %f1}];");
    hostile_at(&t, "no sampler", t.header, "is of no texture");
    load(&t, "txq.width.b32 %r8, [%d0];");
    HOSTILE("number of levels", t.h->n_levels = 200);
    load(&t, "suld.b.2d.b32.zero {%r8}, [%d0, {%r0, %r1}];");
    HOSTILE("is of no surface", ;);
    HOSTILE("outside of any", t.h->magic = WS_SURFACE_MAGIC; t.h->level[0].address = 8);
    fix_deinit(&t.f);
}

/* Any bytes whatever: a fault or a value, and nothing that ASan would see. */
static void test_random_headers(void **state)
{
    (void)state;
    struct tx t;
    tx_init(&t);
    static const char *const insns[] = {
        "tex.level.2d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1}], %f3;",
        "tex.3d.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%f0, %f1, %f2, %f2}];",
        "tex.acube.v4.f32.f32 {%r8, %r9, %r10, %r11}, [%d0, {%r4, %f0, %f1, %f2}];",
        "tex.1d.v4.f32.s32 {%r8, %r9, %r10, %r11}, [%d0, {%r0}];",
        "sust.b.a2d.v4.b32.clamp [%d0, {%r4, %r0, %r1, %r1}], {%r0, %r1, %r2, %r3};",
        "suld.b.1d.v2.b16.zero {%h0, %h1}, [%d0, {%r0}];",
    };
    unsigned n_ok = 0, n_fault = 0;
    for (unsigned n = 0; n < WS_ARRAY_SIZE(insns); n++) {
        bool surface = insns[n][0] == 's';
        t.f.unordered = !strncmp(insns[n], "sust", 4);
        load(&t, insns[n]);
        for (unsigned round = 0; round < rounds(400); round++) {
            static const uint8_t of[] = {1, 2, 6, 0, 4, 0};
            random_texture(&t, &geoms[of[n]], below(2), 1 + (n == 0 ? below(3) : 0));
            if (n == 3)
                t.h->shape = WS_TEX_LINEAR;
            t.h->magic = surface ? WS_SURFACE_MAGIC : WS_TEXTURE_MAGIC;
            uint8_t *raw = (uint8_t *)t.h;
            for (unsigned k = below(4); k; k--) /* mostly in what counts */
                raw[4 + below(below(2) ? 100 : 12)] = (uint8_t)(below(3) ? below(8) : rnd());
            for (unsigned k = 0; k < THREADS * 8; k++)
                t.x[k] = rnd() << 8 ^ rnd();
            if (launch(&t) == WS_DEV_OK)
                n_ok++;
            else if (t.f.error == WS_DEV_E_ILLEGAL_ADDRESS || t.f.error == WS_DEV_E_MISALIGNED)
                n_fault++;
            else
                fail_msg("%s", t.f.text);
        }
    }
    assert_true(n_ok > rounds(200) && n_fault > rounds(200));
    fix_deinit(&t.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fetches),
        cmocka_unit_test(test_odd_coordinates),
        cmocka_unit_test(test_integer_coordinates),
        cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_cubes),
        cmocka_unit_test(test_seamless_cube),
        cmocka_unit_test(test_mipmaps),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_half_results),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_random_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
