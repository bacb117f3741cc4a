// SPDX-License-Identifier: Apache-2.0
/* Textures and surfaces in software: what ptx/passes/texture.c puts in place of the instructions. Compiled once, by tools/sampler.sh, to the PTX
 * in ptx/passes/sampler.inc; nothing here is built with the project.
 *
 * A handle is the address of a header in the client's memory (base/texture.h), and so are texels: everything is read by plain
 * loads, which the fence checks like all others. The header may hold anything; only what would make the code here go wrong is looked at.
 * The results are those of the software GPU (device/soft/exec/tex.inc), bit for bit: the same operations in the same order, without fused
 * multiply-adds. Weights have 8 fraction bits, as the CUDA C++ Programming Guide says ("Texture Fetching"). Levels that gradients
 * ask for may be one 256th off: the logarithm is the GPU's.
 *
 * Sizes matter more than speed: all of it is compiled with each module that uses a texture. */
#include "base/texture.h"
#include "ptx/passes/sampler.h"

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef float f32;

#define INLINE static __device__ __forceinline__
#define ENTRY  extern "C" __device__ __noinline__

/* ---- memory ---- */
INLINE u32 load8(u64 a)
{
    u32 v;
    asm volatile("ld.global.u8 %0, [%1];" : "=r"(v) : "l"(a));
    return v;
}
INLINE u32 load16(u64 a)
{
    u32 v;
    asm volatile("{.reg .u16 t;\nld.global.u16 t, [%1];\ncvt.u32.u16 %0, t;}" : "=r"(v) : "l"(a));
    return v;
}
INLINE u32 load32(u64 a)
{
    u32 v;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(a));
    return v;
}
INLINE u64 load64(u64 a)
{
    u64 v;
    asm volatile("ld.global.u64 %0, [%1];" : "=l"(v) : "l"(a));
    return v;
}
INLINE uint2 load32x2(u64 a)
{
    uint2 v;
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(a));
    return v;
}
INLINE f32 as_f32(u32 v) { return __uint_as_float(v); }
INLINE u32 as_u32(f32 v) { return __float_as_uint(v); }

/* Ends the thread: no client has memory there. */
INLINE void bad(int what)
{
    (void)load32(WS_SAMPLE_FAULT + 8 * (u64)what);
}

/* ---- headers ---- */
#define AT(field) ((u64) & ((struct ws_texture *)0)->field)
struct tex {
    u64 at, sampler;
    u32 shape, format, channels, levels, modes, flags, part, texel;
    bool is_float;
};
struct level {
    u64 address, slice;
    u32 row, w, h, d;
};

INLINE void open(tex &t, u64 handle, u64 sampler, u32 magic)
{
    t.at = handle;
    t.sampler = sampler ? sampler : handle;
    if ((handle | sampler) & 7)
        bad(WS_SAMPLE_NO_HANDLE);
    uint2 first = load32x2(handle), state;
    if (first.x != magic)
        bad(magic == WS_SURFACE_MAGIC ? WS_SAMPLE_NO_SURFACE : WS_SAMPLE_NO_TEXTURE);
    state = load32x2(handle + 8);
    t.shape = first.y & 255;
    t.format = first.y >> 8 & 255;
    t.channels = first.y >> 16 & 255;
    t.levels = first.y >> 24;
    bool size = t.channels == 1 || t.channels == 2 || t.channels == 4;
    if (t.shape > WS_TEX_CUBE || t.format > WS_TEX_F32 || !size || t.levels - 1 >= WS_TEXTURE_LEVELS)
        bad(WS_SAMPLE_DAMAGED);
    /* U8 U16 U32 S8 S16 S32 F16 F32 */
    t.part = 1u << (0x21210210u >> (4 * t.format) & 3);
    t.texel = t.part * t.channels;
    u32 flags = state.y;
    if (t.part == 4)
        flags &= ~(u32)WS_TEX_NORMALIZED_FLOAT;
    t.is_float = t.format >= WS_TEX_F16 || (flags & WS_TEX_NORMALIZED_FLOAT);
    if (sampler) {
        const u32 sampling = WS_TEX_NORMALIZED_COORDS | WS_TEX_FILTER_LINEAR | WS_TEX_MIPMAP_LINEAR | WS_TEX_SEAMLESS_CUBE;
        if (load32(sampler) != WS_TEXTURE_MAGIC)
            bad(WS_SAMPLE_NO_TEXTURE);
        state = load32x2(sampler + 8);
        flags = (flags & ~sampling) | (state.y & sampling);
    }
    t.flags = flags;
    t.modes = state.x;
}

/* Of dimension @d. Wrap and mirror are defined for normalised coordinates only. */
INLINE u32 mode_of(const tex &t, int d)
{
    u32 m = t.modes >> (8 * d) & 255;
    if (t.shape == WS_TEX_CUBE)
        return WS_TEX_CLAMP;
    return !(t.flags & WS_TEX_NORMALIZED_COORDS) && m != WS_TEX_BORDER ? (u32)WS_TEX_CLAMP : m;
}

INLINE void read_level(const tex &t, u32 k, level &l)
{
    u64 at = t.at + AT(level) + k * sizeof(struct ws_texture_level);
    l.address = load64(at);
    l.row = (u32)load64(at + 8);
    l.slice = load64(at + 16);
    uint2 wh = load32x2(at + 24);
    l.w = wh.x;
    l.h = wh.y;
    l.d = load32(at + 32);
    if ((l.address | l.row | l.slice) & (t.part - 1))
        bad(WS_SAMPLE_MISALIGNED);
}

INLINE bool fits(const tex &t, u32 geom, bool surface)
{
    bool layered = t.flags & WS_TEX_LAYERED;
    switch (geom) {
    case WS_GEOM_1D: return t.shape <= WS_TEX_1D && !layered;
    case WS_GEOM_2D: return t.shape == WS_TEX_2D && !layered;
    case WS_GEOM_3D: return t.shape == WS_TEX_3D;
    case WS_GEOM_A1D: return t.shape == WS_TEX_1D && layered;
    case WS_GEOM_A2D: return (t.shape == WS_TEX_2D && layered) || (t.shape == WS_TEX_CUBE && surface);
    case WS_GEOM_CUBE: return t.shape == WS_TEX_CUBE && !layered;
    default: return t.shape == WS_TEX_CUBE && layered;
    }
}

/* ---- texels ---- */
/* ((v + 0.055) / 1.055)^2.4 = b^2 b^(2/5): the fifth root by Newton's steps, which end well below half a float's last bit. */
ENTRY f32 ws_srgb(u32 v)
{
    double b = v / 255.0;
    if (v <= 10) /* 0.04045 */
        return (f32)(b / 12.92);
    b = (b + 0.055) / 1.055;
    double a = b * b, y = 0.35 + 0.65 * a;
#pragma unroll 1
    for (int k = 0; k < 12; k++) {
        double y2 = y * y;
        y = y - (y2 * y2 * y - a) / (5.0 * y2 * y2);
    }
    return (f32)(a * y);
}

INLINE f32 half(u32 v)
{
    f32 f;
    asm("{.reg .b16 t;\ncvt.u16.u32 t, %1;\ncvt.f32.f16 %0, t;}" : "=f"(f) : "r"(v));
    return f;
}

/* What channel @k of a texel with these bits is read as. */
INLINE u32 channel(const tex &t, u32 bits, u32 k)
{
    bool normal = t.flags & WS_TEX_NORMALIZED_FLOAT;
    f32 top;
    switch (t.format) {
    case WS_TEX_U8:
        if (!normal)
            return bits;
        return as_u32(k < 3 && (t.flags & WS_TEX_SRGB) ? ws_srgb(bits) : (f32)bits / 255.0f);
    case WS_TEX_U16: return normal ? as_u32((f32)bits / 65535.0f) : bits;
    case WS_TEX_S8:
        bits = (u32)((s32)(bits << 24) >> 24);
        top = 127.0f;
        break;
    case WS_TEX_S16:
        bits = (u32)((s32)(bits << 16) >> 16);
        top = 32767.0f;
        break;
    case WS_TEX_F16: return as_u32(half(bits));
    default: return bits;
    }
    f32 f = (f32)(s32)bits / top;
    return normal ? as_u32(f < -1.0f ? -1.0f : f) : bits;
}

INLINE u32 missing(const tex &t, u32 k)
{
    return k < 3 ? 0 : t.is_float ? 0x3f800000u : 1u;
}

INLINE u32 border_of(const tex &t, u32 k)
{
    return t.shape == WS_TEX_LINEAR ? 0 : load32(t.sampler + AT(border) + 4 * k);
}

INLINE u32 read_channel(const tex &t, u64 a, u32 k)
{
    if (k >= t.channels)
        return missing(t, k);
    u32 bits = t.part == 1 ? load8(a + k) : t.part == 2 ? load16(a + 2 * k) : load32(a + 4 * k);
    return channel(t, bits, k);
}

struct values {
    u32 v[4];
};
INLINE values read_texel(const tex &t, u64 a, bool inside)
{
    values r;
#pragma unroll
    for (u32 k = 0; k < 4; k++)
        r.v[k] = inside || k >= t.channels ? read_channel(t, a, k) : border_of(t, k);
    return r;
}

INLINE void lerp(const tex &t, values &v, const values &q, f32 w)
{
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
        f32 a = as_f32(v.v[k]), b = as_f32(q.v[k]);
        if (k < t.channels)
            v.v[k] = as_u32(a + w * (b - a));
    }
}

/* ---- coordinates ---- */
struct axis {
    s32 i0, i1;
    f32 w;
    bool in0, in1;
};

INLINE s32 bound(s32 i, s32 n, bool wrap)
{
    if (wrap)
        i = i < 0 ? i + n : i >= n ? i - n : i;
    i = i < n ? i : n - 1;
    return i > 0 ? i : 0;
}

INLINE void bound_axis(axis &a, u32 n, u32 mode)
{
    bool wrap = mode == WS_TEX_WRAP;
    if (mode == WS_TEX_BORDER) {
        a.in0 = (u32)a.i0 < n;
        a.in1 = (u32)a.i1 < n;
    }
    a.i0 = bound(a.i0, (s32)n, wrap);
    a.i1 = bound(a.i1, (s32)n, wrap);
}

/* From a coordinate to texels: unbounded indices and weight. */
INLINE void place(axis &a, f32 x, u32 n, u32 mode, bool norm, bool linear)
{
    f32 size = (f32)n, top = size + 4, v = x;
    if (norm && mode == WS_TEX_WRAP) {
        v = (x - floorf(x)) * size;
    } else if (norm && mode == WS_TEX_MIRROR) {
        f32 k = floorf(x), r = x - k;
        v = (k - 2.0f * floorf(k * 0.5f) != 0.0f ? 1.0f - r : r) * size;
    } else if (norm) {
        v = x * size;
    }
    v = v > -4.0f ? v : -4.0f; /* NaN goes left */
    v = v < top ? v : top;
    if (linear) {
        s32 k = (s32)floorf(v * 256.0f - 127.5f); /* (x - 0.5) in 256ths, rounded */
        a.i0 = k >> 8;
        a.i1 = (k >> 8) + 1;
        a.w = (f32)(k & 255) * (1.0f / 256.0f);
    } else {
        a.i0 = a.i1 = (s32)floorf(v);
        a.w = 0;
    }
}

struct fetch {
    u32 nd;
    bool ints, norm, linear, seamless;
    u32 x[3];
    u32 slice; /* layer, face; not of 3-D */
};

INLINE void fetch_axis(const tex &t, const fetch &f, u32 d, u32 x, u32 n, bool linear, axis &a)
{
    u32 mode = mode_of(t, (int)d);
    a.in0 = a.in1 = true;
    if (f.ints) {
        a.i0 = a.i1 = (s32)x;
        a.w = 0;
        mode = t.shape == WS_TEX_LINEAR || mode == WS_TEX_BORDER ? WS_TEX_BORDER : WS_TEX_CLAMP;
    } else if (t.shape == WS_TEX_LINEAR) {
        place(a, as_f32(x), n, WS_TEX_BORDER, false, false);
        mode = WS_TEX_BORDER;
    } else {
        place(a, as_f32(x), n, f.norm ? mode : (u32)WS_TEX_CLAMP, f.norm, linear);
    }
    if (!f.seamless)
        bound_axis(a, n, mode);
}

/* ---- cube maps: the guide, "Cubemap Textures" ---- */
INLINE u32 cube_face(f32 x, f32 y, f32 z)
{
    f32 ax = fabsf(x), ay = fabsf(y), az = fabsf(z);
    if (az >= ax && az >= ay)
        return z < 0 ? 5 : 4;
    if (ay >= ax)
        return y < 0 ? 3 : 2;
    return x < 0 ? 1 : 0;
}
INLINE f32 dot(s32 a, s32 b, s32 c, f32 x, f32 y, f32 z)
{
    return (f32)a * x + (f32)b * y + (f32)c * z;
}
/* Component @k of row @r (s, t, m) of a face: two bits for each, in a word that the compiler makes. */
INLINE s32 cube_axis(u32 face, int r, int k)
{
    constexpr s32 table[3][3][6] = {
        {{0, 0, 1, 1, 1, -1}, {0, 0, 0, 0, 0, 0}, {-1, 1, 0, 0, 0, 0}},
        {{0, 0, 0, 0, 0, 0}, {-1, -1, 0, 0, -1, -1}, {0, 0, 1, -1, 0, 0}},
        {{1, -1, 0, 0, 0, 0}, {0, 0, 1, -1, 0, 0}, {0, 0, 0, 0, 1, -1}},
    };
    u32 bits = 0;
#pragma unroll
    for (int i = 0; i < 6; i++)
        bits |= (u32)(table[r][k][i] & 3) << (2 * i);
    return (s32)(bits >> (2 * face) << 30) >> 30;
}
INLINE f32 along(u32 face, int r, f32 x, f32 y, f32 z)
{
    return dot(cube_axis(face, r, 0), cube_axis(face, r, 1), cube_axis(face, r, 2), x, y, z);
}

struct cube {
    u32 face;
    f32 s, t, m;
};
/* Direction to face and coordinates in it, from 0 to 1. */
INLINE void cube_place(f32 x, f32 y, f32 z, cube &c)
{
    u32 f = c.face = cube_face(x, y, z);
    c.m = along(f, 2, x, y, z);
    c.s = (along(f, 0, x, y, z) / c.m + 1.0f) / 2.0f;
    c.t = (along(f, 1, x, y, z) / c.m + 1.0f) / 2.0f;
}

/* A texel next to an edge of a face, outside of it, is the nearest one of the neighbouring face. */
INLINE void cube_wrap(u32 &face, s32 &si, s32 &ti, s32 n)
{
    s32 k = si, j = ti;
    if ((u32)k < (u32)n && (u32)j < (u32)n)
        return;
    if ((u32)k >= (u32)n && (u32)j >= (u32)n) /* at a corner three faces meet; no texel is there */
        j = bound(j, n, false);
    f32 s = (f32)(2 * k + 1) / (f32)n - 1.0f, t = (f32)(2 * j + 1) / (f32)n - 1.0f, d[3];
#pragma unroll
    for (int a = 0; a < 3; a++)
        d[a] = (f32)cube_axis(face, 0, a) * s + (f32)cube_axis(face, 1, a) * t + (f32)cube_axis(face, 2, a);
    u32 f = cube_face(d[0], d[1], d[2]);
    f32 m = along(f, 2, d[0], d[1], d[2]);
    face = f;
    si = bound((s32)floorf((along(f, 0, d[0], d[1], d[2]) / m + 1.0f) * 0.5f * (f32)n), n, false);
    ti = bound((s32)floorf((along(f, 1, d[0], d[1], d[2]) / m + 1.0f) * 0.5f * (f32)n), n, false);
}

/* ---- a fetch ---- */
INLINE values tap(const tex &t, const fetch &f, const level &l, const axis a[3], u32 x, u32 y, u32 z)
{
    s32 i = x ? a[0].i1 : a[0].i0, j = f.nd < 2 ? 0 : y ? a[1].i1 : a[1].i0, k = f.nd < 3 ? 0 : z ? a[2].i1 : a[2].i0;
    bool in = x ? a[0].in1 : a[0].in0;
    u32 slice = f.slice;
    if (f.nd >= 2)
        in = in && (y ? a[1].in1 : a[1].in0);
    if (f.nd == 3) {
        in = in && (z ? a[2].in1 : a[2].in0);
        slice = (u32)k;
    }
    if (f.seamless) {
        u32 face = slice % 6, first = slice - face;
        cube_wrap(face, i, j, (s32)l.w);
        slice = first + face;
    }
    if (f.nd < 3)
        slice = slice < l.d ? slice : l.d - 1;
    return read_texel(t, l.address + slice * l.slice + (u64)(u32)j * l.row + (u64)(u32)i * t.texel, in);
}

INLINE void axes_of(const tex &t, const fetch &f, const level &l, bool linear, axis a[3])
{
    fetch_axis(t, f, 0, f.x[0], l.w, linear, a[0]);
    if (f.nd >= 2)
        fetch_axis(t, f, 1, f.x[1], l.h, linear, a[1]);
    if (f.nd == 3)
        fetch_axis(t, f, 2, f.x[2], l.d, linear, a[2]);
}

INLINE values fetch_level(const tex &t, const fetch &f, u32 k)
{
    level l;
    axis a[3];
    values v, row, plane;
    read_level(t, k, l);
    axes_of(t, f, l, f.linear, a);
    u32 nx = f.linear ? 2 : 1, ny = f.linear && f.nd >= 2 ? 2 : 1, nz = f.linear && f.nd == 3 ? 2 : 1;
#pragma unroll 1
    for (u32 n = 0; n < nx * ny * nz; n++) { /* x fastest */
        u32 x = n & (nx - 1), y = nx == 2 ? n >> 1 & (ny - 1) : 0, z = ny == 2 ? n >> 2 : 0;
        values q = tap(t, f, l, a, x, y, z);
        if (x == 0)
            v = q;
        else
            lerp(t, v, q, a[0].w);
        if (x + 1 < nx)
            continue;
        if (y == 0)
            row = v;
        else
            lerp(t, row, v, a[1].w);
        if (y + 1 < ny)
            continue;
        if (z == 0)
            plane = row;
        else
            lerp(t, plane, row, a[2].w);
    }
    return plane;
}

/* What the instruction's words say of a fetch, and where it is. */
INLINE void begin(const tex &t, u32 op, u32 x, u32 y, u32 z, u32 layer, fetch &f, cube &c)
{
    u32 geom = op & 7;
    if (!fits(t, geom, false))
        bad(WS_SAMPLE_SHAPE);
    f.nd = geom == WS_GEOM_1D || geom == WS_GEOM_A1D ? 1 : geom == WS_GEOM_3D ? 3 : 2;
    f.ints = op & WS_SAMPLE_INTS;
    f.norm = t.flags & WS_TEX_NORMALIZED_COORDS;
    f.linear = (t.flags & WS_TEX_FILTER_LINEAR) && t.is_float && t.shape != WS_TEX_LINEAR && !f.ints;
    f.slice = geom >= WS_GEOM_A1D ? layer : 0;
    f.seamless = false;
    f.x[0] = x;
    f.x[1] = y;
    f.x[2] = z;
    if (geom >= WS_GEOM_CUBE) {
        u32 cubes = load32(t.at + AT(level[0].depth)) / 6;
        cube_place(as_f32(x), as_f32(y), as_f32(z), c);
        f.slice = (f.slice < cubes ? f.slice : cubes - 1) * 6 + c.face;
        f.x[0] = as_u32(c.s);
        f.x[1] = as_u32(c.t);
        f.norm = true;
        f.seamless = t.flags & WS_TEX_SEAMLESS_CUBE;
    }
}

INLINE f32 clamp_lod(const tex &t, f32 lod)
{
    f32 most = (f32)(t.levels - 1), high = as_f32(load32(t.sampler + AT(level_max))), low = as_f32(load32(t.sampler + AT(level_min)));
    lod += as_f32(load32(t.sampler + AT(level_bias)));
    lod = lod > high ? high : lod;
    lod = lod > low ? lod : low;
    lod = lod < most ? lod : most;
    return lod > 0 ? lod : 0;
}

/* tex. @lod: bits of a float, or of an integer where coordinates are; nothing that matters where the texture has one level. */
ENTRY uint4 ws_tex(u64 handle, u64 sampler, u32 op, u32 x, u32 y, u32 z, u32 layer, u32 lod)
{
    tex t;
    fetch f;
    cube c;
    u32 lower = 0, upper = 0;
    f32 w = 0;
    open(t, handle, sampler, WS_TEXTURE_MAGIC);
    begin(t, op, x, y, z, layer, f, c);
    f.seamless = f.seamless && f.linear; /* one texel is always inside */
    if (t.levels > 1 && !(op & WS_SAMPLE_BASE)) {
        bool between = t.is_float && (t.flags & WS_TEX_MIPMAP_LINEAR);
        f32 at = clamp_lod(t, f.ints ? (f32)(s32)lod : as_f32(lod));
        s32 k = (s32)floorf(at * 256.0f + 0.5f);
        lower = upper = between ? (u32)k >> 8 : (u32)(s32)floorf(at + 0.5f);
        if (between && lower + 1u < t.levels)
            upper++;
        w = (f32)(k & 255) * (1.0f / 256.0f);
    }
    values v;
    if (!f.linear && lower == upper) { /* one texel: the loops below cost as much again */
        level l;
        axis a[3];
        read_level(t, lower, l);
        axes_of(t, f, l, false, a);
        v = tap(t, f, l, a, 0, 0, 0);
        return make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
    }
#pragma unroll 1
    for (u32 k = lower; k <= upper; k++) {
        values q = fetch_level(t, f, k);
        if (k == lower)
            v = q;
        else
            lerp(t, v, q, w);
    }
    return make_uint4(v.v[0], v.v[1], v.v[2], v.v[3]);
}

/* tld4: counter-clockwise from the lower left: (0, 1), (1, 1), (1, 0), (0, 0). */
ENTRY uint4 ws_tld4(u64 handle, u64 sampler, u32 op, u32 x, u32 y, u32 z, u32 layer, u32 unused)
{
    tex t;
    fetch f;
    cube c;
    level l;
    axis a[3];
    u32 r[4], comp = op / WS_SAMPLE_COMP & 3;
    open(t, handle, sampler, WS_TEXTURE_MAGIC);
    begin(t, op, x, y, z, layer, f, c);
    read_level(t, 0, l);
    axes_of(t, f, l, true, a);
    r[0] = r[1] = r[2] = r[3] = 0;
#pragma unroll 1
    for (u32 k = 0; k < 4; k++) {
        values q = tap(t, f, l, a, k == 1 || k == 2, k < 2, 0);
        u32 v = comp == 0 ? q.v[0] : comp == 1 ? q.v[1] : comp == 2 ? q.v[2] : q.v[3];
        r[0] = k == 0 ? v : r[0];
        r[1] = k == 1 ? v : r[1];
        r[2] = k == 2 ? v : r[2];
        r[3] = k == 3 ? v : r[3];
    }
    return make_uint4(r[0], r[1], r[2], r[3]);
}

/* The level that gradients ask for: the length of the longer one, in texels of level 0. Anisotropy is not modelled. */
struct gradient {
    f32 x, y, z;
};
INLINE f32 length_of(gradient g, const tex &t, const fetch &f, const cube &c, bool is_cube, f32 w, f32 h, f32 d)
{
    if (is_cube) { /* along the face */
        f32 dm = along(c.face, 2, g.x, g.y, g.z), s, u;
        s = (along(c.face, 0, g.x, g.y, g.z) - (2 * c.s - 1) * dm) / (2 * c.m);
        u = (along(c.face, 1, g.x, g.y, g.z) - (2 * c.t - 1) * dm) / (2 * c.m);
        g.x = s;
        g.y = u;
    }
    f32 v = g.x * (f.norm ? w : 1.0f), sum = v * v;
    if (f.nd >= 2) {
        v = g.y * (f.norm ? h : 1.0f);
        sum += v * v;
    }
    if (f.nd == 3) {
        v = g.z * (f.norm ? d : 1.0f);
        sum += v * v;
    }
    return sum;
}
ENTRY u32 ws_gradients(u64 handle, u64 sampler, u32 op, u32 x, u32 y, u32 z, u32 x0, u32 x1, u32 x2, u32 y0, u32 y1, u32 y2)
{
    tex t;
    fetch f;
    cube c;
    level l;
    open(t, handle, sampler, WS_TEXTURE_MAGIC);
    if (t.levels == 1)
        return 0;
    begin(t, op, x, y, z, 0, f, c);
    read_level(t, 0, l);
    f32 longest = 0, lod, w = (f32)l.w, h = (f32)l.h, d = (f32)l.d;
    gradient g = {as_f32(x0), as_f32(x1), as_f32(x2)};
#pragma unroll 1
    for (int k = 0; k < 2; k++) {
        f32 sum = length_of(g, t, f, c, (op & 7) >= WS_GEOM_CUBE, w, h, d);
        longest = sum > longest ? sum : longest;
        g.x = as_f32(y0);
        g.y = as_f32(y1);
        g.z = as_f32(y2);
    }
    asm("lg2.approx.f32 %0, %1;" : "=f"(lod) : "f"(longest));
    return as_u32(longest > 0 ? 0.5f * lod : 0.0f);
}

/* ---- surfaces ---- */
/* Where an access to a surface goes, or 0: nowhere (.zero). */
INLINE u64 surface(const tex &t, u32 op, s32 x, s32 y, s32 z, u32 layer)
{
    u32 geom = op & 7, mode = op / WS_SAMPLE_MODE & 3, size = op / WS_SAMPLE_SIZE & 15, bytes = op / WS_SAMPLE_BYTES & 31;
    level l;
    read_level(t, 0, l);
    bytes = bytes ? bytes : t.texel;
    s64 width = (s64)l.w * t.texel, last = width - bytes;
    if (!fits(t, geom, true))
        bad(WS_SAMPLE_SHAPE);
    if (last < 0)
        bad(WS_SAMPLE_TOO_WIDE);
    s64 sx = op & WS_SAMPLE_TEXELS ? (s64)x * t.texel : x;
    s64 sy = geom == WS_GEOM_1D || geom == WS_GEOM_A1D ? 0 : y, sz = geom == WS_GEOM_3D ? z : geom >= WS_GEOM_A1D ? (s64)layer : 0;
    bool inside = sx >= 0 && sx <= last && sy >= 0 && sy < l.h && sz >= 0 && sz < l.d;
    if (!inside && mode == WS_SURF_ZERO)
        return 0;
    if (!inside && mode == WS_SURF_TRAP)
        bad(WS_SAMPLE_OUTSIDE);
    if (!inside) {
        sx = sx < 0 ? 0 : sx > last ? (size ? last & -(s64)size : last) : sx;
        sy = sy < 0 ? 0 : sy >= l.h ? l.h - 1 : sy;
        sz = sz < 0 ? 0 : sz >= l.d ? l.d - 1 : sz;
    }
    u64 a = l.address + (u64)sz * l.slice + (u64)sy * l.row + (u64)sx;
    if (a & ((size ? size : t.part) - 1))
        bad(WS_SAMPLE_MISALIGNED);
    return a;
}

/* suld.b, sust.b: the caller makes the access. */
ENTRY u64 ws_surface(u64 handle, u32 op, u32 x, u32 y, u32 z, u32 layer)
{
    tex t;
    open(t, handle, 0, WS_SURFACE_MAGIC);
    return surface(t, op, (s32)x, (s32)y, (s32)z, layer);
}

/* A component for sust.p as bits of the surface's format; it comes as f32 for formats that read as float, else as an integer. */
INLINE u32 component(const tex &t, u32 v)
{
    bool is_signed = t.format >= WS_TEX_S8, wide = t.part == 2;
    s32 top = wide ? (is_signed ? 32767 : 65535) : is_signed ? 127 : 255, s = (s32)v;
    u32 r;
    if (t.format == WS_TEX_F16) {
        asm("{.reg .b16 t;\ncvt.rn.f16.f32 t, %1;\ncvt.u32.u16 %0, t;}" : "=r"(r) : "f"(as_f32(v)));
        return r;
    }
    if (t.part == 4)
        return v;
    if (t.is_float) {
        f32 f = as_f32(v), low = is_signed ? -1.0f : 0.0f;
        f = f != f ? 0.0f : f < low ? low : f > 1.0f ? 1.0f : f;
        return (u32)(s32)rintf(f * (f32)top);
    }
    if (!is_signed)
        return v < (u32)top ? v : (u32)top;
    return (u32)(s > top ? top : s < -top - 1 ? -top - 1 : s);
}

/* sust.p */
ENTRY void ws_sust_p(u64 handle, u32 op, u32 x, u32 y, u32 z, u32 layer, u32 v0, u32 v1, u32 v2, u32 v3)
{
    tex t;
    u32 n = op / WS_SAMPLE_N & 7;
    open(t, handle, 0, WS_SURFACE_MAGIC);
    u64 a = surface(t, op, (s32)x, (s32)y, (s32)z, layer);
    if (!a)
        return;
#pragma unroll 1
    for (u32 k = 0; k < t.channels; k++) {
        u32 bits = k < n ? component(t, v0) : 0;
        if (t.part == 1)
            asm volatile("st.global.u8 [%0], %1;" ::"l"(a), "r"(bits) : "memory");
        else if (t.part == 2)
            asm volatile("{.reg .u16 t;\ncvt.u16.u32 t, %1;\nst.global.u16 [%0], t;}" ::"l"(a), "r"(bits) : "memory");
        else
            asm volatile("st.global.u32 [%0], %1;" ::"l"(a), "r"(bits) : "memory");
        a += t.part;
        v0 = v1;
        v1 = v2;
        v2 = v3;
    }
}

/* sured */
#define REDUCE(op, type, r, v)                                                                     \
    asm volatile("red.global." op "." type " [%0], %1;" ::"l"(a), r(v) : "memory");                \
    break
#define CASES(number, op)                                                                          \
    case number: REDUCE(op, "u32", "r", (u32)value);                                               \
    case number + 8: REDUCE(op, "s32", "r", (u32)value);                                           \
    case number + 16: REDUCE(op, "u64", "l", value);                                               \
    case number + 24: REDUCE(op, "s64", "l", value)
ENTRY void ws_sured(u64 handle, u32 op, u32 x, u32 y, u32 z, u32 layer, u64 value)
{
    tex t;
    open(t, handle, 0, WS_SURFACE_MAGIC);
    u64 a = surface(t, op, (s32)x, (s32)y, (s32)z, layer);
    u32 which = op / WS_SAMPLE_OP & 7, wide = (op / WS_SAMPLE_SIZE & 15) == 8;
    bool is_signed = op & WS_SAMPLE_TEXELS ? t.format >= WS_TEX_S8 && t.format <= WS_TEX_S32 : op & WS_SAMPLE_SIGNED;
    if (!a)
        return;
    switch (which + 8 * is_signed + 16 * wide) {
    case 0:
    case 8: REDUCE("add", "u32", "r", (u32)value);
    case 16:
    case 24: REDUCE("add", "u64", "l", value);
    CASES(1, "min");
    CASES(2, "max");
    case 3:
    case 11: REDUCE("and", "b32", "r", (u32)value);
    case 19:
    case 27: REDUCE("and", "b64", "l", value);
    case 4:
    case 12: REDUCE("or", "b32", "r", (u32)value);
    default: REDUCE("or", "b64", "l", value);
    }
}

/* ---- questions: txq, suq ---- */
/* Values of channel types and orders are OpenCL's. Source: PTX ISA, "Channel Data Type and Channel Order Fields". */
INLINE u32 channel_type(const tex &t)
{
    /* the last digit, by format: plain, then normalised */
    u32 digits = t.is_float && t.format < WS_TEX_F16 ? 0x00010032u : 0xed987cbau;
    return 0x10d0 + (digits >> (4 * t.format) & 15);
}

ENTRY u32 ws_query(u64 handle, u32 magic, u32 what, u32 k)
{
    tex t;
    level l;
    u32 mode;
    open(t, handle, 0, magic);
    read_level(t, k < t.levels ? k : t.levels - 1, l);
    switch (what) {
    case WS_TXQ_WIDTH: return l.w;
    case WS_TXQ_HEIGHT: return l.h;
    case WS_TXQ_DEPTH: return t.shape == WS_TEX_3D ? l.d : 1;
    case WS_TXQ_CHANNEL_DATA_TYPE: return channel_type(t);
    case WS_TXQ_CHANNEL_ORDER: return t.channels == 1 ? 0x10b0 : t.channels == 2 ? 0x10b2 : 0x10b5;
    case WS_TXQ_NORMALIZED_COORDS: return t.flags & WS_TEX_NORMALIZED_COORDS ? 1 : 0;
    case WS_TXQ_FORCE_UNNORMALIZED_COORDS: return t.flags & WS_TEX_NORMALIZED_COORDS ? 0 : 1;
    case WS_TXQ_ARRAY_SIZE: return !(t.flags & WS_TEX_LAYERED) ? 1 : t.shape == WS_TEX_CUBE ? l.d / 6 : l.d;
    case WS_TXQ_NUM_MIPMAP_LEVELS: return t.levels;
    case WS_TXQ_NUM_SAMPLES: return 1;
    case WS_TXQ_FILTER_MODE: return t.flags & WS_TEX_FILTER_LINEAR ? 1 : 0;
    case WS_TXQ_ADDR_MODE_0:
    case WS_TXQ_ADDR_MODE_1:
    case WS_TXQ_ADDR_MODE_2:
        /* PTX: wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border */
        mode = t.modes >> (8 * (what - WS_TXQ_ADDR_MODE_0)) & 255;
        if (!(t.flags & WS_TEX_NORMALIZED_COORDS) && mode != WS_TEX_BORDER)
            mode = WS_TEX_CLAMP;
        return mode == WS_TEX_WRAP ? 0 : mode == WS_TEX_MIRROR ? 1 : mode == WS_TEX_CLAMP ? 3 : 4;
    case WS_TXQ_MEMORY_LAYOUT: return t.shape == WS_TEX_LINEAR;
    default: return 0;
    }
}
