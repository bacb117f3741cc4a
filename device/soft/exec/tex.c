// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/tex.c - headers of textures and surfaces: read from the client's memory,
 * checked, and kept for a while.
 *
 * A header is client memory, so it may hold anything and change at any time. It is copied once,
 * the copy is checked, and only what was checked is kept, with each level's host address, so that
 * texels need no look-up. Invariant: any texel of a kept level, from (0, 0, 0) to (w - 1, h - 1, d
 * - 1), lies inside one mapping; the fetching code in tex.inc only has to keep indices inside
 * these bounds. What is kept lasts for one step of the block, like cached mappings. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "device/soft/exec/tex.h"

enum { TEXELS_MAX = 1 << 20, LINEAR_MAX = 1 << 30 };

/* Source: IEC 61966-2-1: v/12.92 up to 0.04045, else ((v + 0.055)/1.055)^2.4; made by
 * tests/unit/exec/test_tex.c's reference. */
const float ws_tex_srgb[256] = {
#include "device/soft/exec/tex_srgb.inc"
};

static const uint8_t format_bytes[] = {
    [WS_TEX_U8] = 1,  [WS_TEX_U16] = 2, [WS_TEX_U32] = 4, [WS_TEX_S8] = 1,
    [WS_TEX_S16] = 2, [WS_TEX_S32] = 4, [WS_TEX_F16] = 2, [WS_TEX_F32] = 4};

static bool format_is_float(unsigned format)
{
    return format == WS_TEX_F16 || format == WS_TEX_F32;
}

/* Bytes from a level's first to behind its last texel. false: it overflows. */
static bool extent(const struct ws_texture_level *l, unsigned texel_bytes, uint64_t *ret)
{
    uint64_t rows, slices;
    return !__builtin_mul_overflow(l->row_bytes, (uint64_t)(l->height - 1), &rows) &&
           !__builtin_mul_overflow(l->slice_bytes, (uint64_t)(l->depth - 1), &slices) &&
           !__builtin_add_overflow(rows, slices, ret) &&
           !__builtin_add_overflow(*ret, (uint64_t)l->width * texel_bytes, ret);
}

static const char *check_level(struct ws_core_ctx *c, const struct ws_texture *h, unsigned k,
                               unsigned texel_bytes, struct ws_tex_kept_level *ret)
{
    const struct ws_texture_level *l = &h->level[k];
    uint32_t max = h->shape == WS_TEX_LINEAR ? LINEAR_MAX : TEXELS_MAX;
    uint64_t bytes;
    struct ws_mapping m;
    if (l->width < 1 || l->height < 1 || l->depth < 1 || l->width > max || l->height > max ||
        l->depth > max)
        return "texture or surface header: size of a level";
    if (h->shape <= WS_TEX_1D && l->height != 1)
        return "texture or surface header: height of a 1-D level";
    if (h->shape == WS_TEX_CUBE && (l->width != l->height || l->depth % 6 != 0))
        return "texture or surface header: faces of a cube";
    if (h->shape <= WS_TEX_2D && !(h->flags & WS_TEX_LAYERED) && l->depth != 1)
        return "texture or surface header: depth of a level";
    if (k > 0 && h->flags & WS_TEX_LAYERED && l->depth != h->level[0].depth)
        return "texture or surface header: layers of a level";
    if (l->row_bytes > UINT32_MAX || !extent(l, texel_bytes, &bytes))
        return "texture or surface header: extent of a level";
    if (l->address > UINT64_MAX - bytes || WS_WINDOW_OF(l->address) ||
        !ws_space_find(ws_exec_own_space(c->b), l->address, bytes, &m))
        return "texture or surface header: texels outside of any allocation";
    *ret = (struct ws_tex_kept_level){.host = m.host + (l->address - m.va),
                                      .row = l->row_bytes,
                                      .slice = l->slice_bytes,
                                      .w = l->width,
                                      .h = l->height,
                                      .d = l->depth,
                                      .readonly = m.flags & WS_MAP_READONLY};
    return NULL;
}

static const char *check_sampling(const struct ws_texture *h)
{
    for (int k = 0; k < 3; k++)
        if (h->address_mode[k] > WS_TEX_BORDER)
            return "texture header: address mode";
    if (isnan(h->level_bias) || isnan(h->level_min) || isnan(h->level_max))
        return "texture header: mipmap levels";
    return NULL;
}

static const char *check(struct ws_core_ctx *c, const struct ws_texture *h, struct ws_tex *t)
{
    const char *wrong;
    if (h->shape > WS_TEX_CUBE)
        return "texture or surface header: shape";
    if (h->format > WS_TEX_F32)
        return "texture or surface header: format";
    if (h->n_channels != 1 && h->n_channels != 2 && h->n_channels != 4)
        return "texture or surface header: channels";
    if (h->n_levels < 1 || h->n_levels > WS_TEXTURE_LEVELS ||
        (h->n_levels > 1 && h->shape == WS_TEX_LINEAR))
        return "texture or surface header: number of levels";
    if ((wrong = check_sampling(h)))
        return wrong;
    t->texel_bytes = (uint8_t)(h->n_channels * format_bytes[h->format]);
    for (unsigned k = 0; k < h->n_levels; k++)
        if ((wrong = check_level(c, h, k, t->texel_bytes, &t->level[k])))
            return wrong;
    return NULL;
}

/* The header at @handle, copied. */
static const char *read_header(struct ws_core_ctx *c, uint64_t handle, uint32_t magic,
                               struct ws_texture *ret)
{
    struct ws_mapping m;
    if (handle % 8 != 0 || WS_WINDOW_OF(handle) ||
        !ws_space_find(ws_exec_own_space(c->b), handle, sizeof(*ret), &m))
        return magic == WS_SURFACE_MAGIC ? "no such surface handle" : "no such texture handle";
    memcpy(ret, m.host + (handle - m.va), sizeof(*ret));
    if (magic && ret->magic != magic)
        return magic == WS_SURFACE_MAGIC ? "handle is of no surface" : "handle is of no texture";
    return NULL;
}

static void keep_sampling(struct ws_tex *t, const struct ws_texture *h)
{
    enum {
        SAMPLING = WS_TEX_NORMALIZED_COORDS | WS_TEX_FILTER_LINEAR | WS_TEX_MIPMAP_LINEAR |
                   WS_TEX_SEAMLESS_CUBE
    };
    memcpy(t->mode, h->address_mode, sizeof(t->mode));
    t->flags = (t->flags & ~(uint32_t)SAMPLING) | (h->flags & SAMPLING);
    t->bias = h->level_bias;
    t->lod_min = h->level_min;
    t->lod_max = h->level_max;
    /* wrap and mirror are defined for normalised coordinates only */
    for (int k = 0; k < 3; k++)
        if (!(h->flags & WS_TEX_NORMALIZED_COORDS) && t->mode[k] != WS_TEX_BORDER)
            t->mode[k] = WS_TEX_CLAMP;
    for (int k = 0; k < 4; k++)
        if (t->shape == WS_TEX_LINEAR)
            t->border[k] = 0;
        else
            memcpy(&t->border[k], &h->border[k], 4);
}

const struct ws_tex *ws_exec_tex_load(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane,
                                      uint64_t handle, uint64_t sampler, uint32_t magic)
{
    struct ws_texture h, s;
    const char *wrong;
    if (!c->tex && !(c->tex = ws_alloc(sizeof(*c->tex)))) {
        ws_exec_fault(c, u, WS_DEV_E_LAUNCH_FAILURE, lane, handle, "out of memory");
        return NULL;
    }
    struct ws_tex *t = &c->tex->kept[ws_tex_slot(handle, sampler)];
    if (t->valid && t->handle == handle && t->sampler == sampler && t->magic == magic)
        return t;
    t->valid = false;
    if ((wrong = read_header(c, handle, magic, &h)) || (wrong = check(c, &h, t)))
        goto bad;
    if (sampler &&
        ((wrong = read_header(c, sampler, WS_TEXTURE_MAGIC, &s)) || (wrong = check_sampling(&s)))) {
        handle = sampler;
        goto bad;
    }
    t->handle = handle;
    t->sampler = sampler;
    t->magic = magic;
    t->shape = h.shape;
    t->format = h.format;
    t->n_channels = h.n_channels;
    t->n_levels = h.n_levels;
    t->flags = h.flags;
    if (format_bytes[h.format] == 4)
        t->flags &= ~(uint32_t)WS_TEX_NORMALIZED_FLOAT;
    t->is_float = format_is_float(h.format) || (t->flags & WS_TEX_NORMALIZED_FLOAT);
    t->missing[3] = t->is_float ? 0x3f800000 : 1;
    keep_sampling(t, sampler ? &s : &h);
    t->valid = true;
    return t;
bad:
    ws_exec_fault(c, u, WS_DEV_E_ILLEGAL_ADDRESS, lane, handle, wrong);
    return NULL;
}

void ws_exec_tex_forget(struct ws_core_ctx *c)
{
    for (int k = 0; c->tex && k < WS_TEX_KEPT; k++)
        c->tex->kept[k].valid = false;
}

const char *ws_exec_tex_misfit(const struct ws_tex *t, const struct ws_texop *o)
{
    bool layered = t->flags & WS_TEX_LAYERED, fits = false;
    switch (o->geom) {
    case WS_GEOM_1D:
        fits = t->shape <= WS_TEX_1D && !layered;
        break;
    case WS_GEOM_2D:
        fits = t->shape == WS_TEX_2D && !layered;
        break;
    case WS_GEOM_3D:
        fits = t->shape == WS_TEX_3D;
        break;
    case WS_GEOM_A1D:
        fits = t->shape == WS_TEX_1D && layered;
        break;
    case WS_GEOM_A2D: /* a surface's faces are layers */
        fits = (t->shape == WS_TEX_2D && layered) ||
               (t->shape == WS_TEX_CUBE && t->magic == WS_SURFACE_MAGIC);
        break;
    case WS_GEOM_CUBE:
        fits = t->shape == WS_TEX_CUBE && !layered;
        break;
    default:
        fits = t->shape == WS_TEX_CUBE && layered;
        break;
    }
    return fits                           ? NULL
           : t->magic == WS_SURFACE_MAGIC ? "surface has another shape than the instruction"
                                          : "texture has another shape than the instruction";
}

/* Values of channel types and orders are OpenCL's. Source: PTX ISA, "Channel Data Type and Channel
 * Order Fields". */
static uint32_t channel_type(const struct ws_tex *t)
{
    static const uint16_t plain[] = {
        [WS_TEX_U8] = 0x10da,  [WS_TEX_U16] = 0x10db, [WS_TEX_U32] = 0x10dc, [WS_TEX_S8] = 0x10d7,
        [WS_TEX_S16] = 0x10d8, [WS_TEX_S32] = 0x10d9, [WS_TEX_F16] = 0x10dd, [WS_TEX_F32] = 0x10de};
    static const uint16_t normal[] = {
        [WS_TEX_U8] = 0x10d2, [WS_TEX_U16] = 0x10d3, [WS_TEX_S8] = 0x10d0, [WS_TEX_S16] = 0x10d1};
    if (t->is_float && !format_is_float(t->format))
        return normal[t->format];
    return plain[t->format];
}

static uint32_t addr_mode(unsigned mode)
{
    /* PTX: wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border */
    static const uint8_t number[] = {
        [WS_TEX_WRAP] = 0, [WS_TEX_MIRROR] = 1, [WS_TEX_CLAMP] = 3, [WS_TEX_BORDER] = 4};
    return number[mode];
}

uint32_t ws_exec_tex_query(const struct ws_tex *t, enum ws_tex_query q, uint32_t level)
{
    static const uint16_t orders[] = {[1] = 0x10b0, [2] = 0x10b2, [4] = 0x10b5};
    bool array = t->flags & WS_TEX_LAYERED;
    const struct ws_tex_kept_level *l = &t->level[WS_MIN(level, t->n_levels - 1u)];
    switch (q) {
    case WS_TXQ_WIDTH:
        return l->w;
    case WS_TXQ_HEIGHT:
        return l->h;
    case WS_TXQ_DEPTH:
        return t->shape == WS_TEX_3D ? l->d : 1;
    case WS_TXQ_CHANNEL_DATA_TYPE:
        return channel_type(t);
    case WS_TXQ_CHANNEL_ORDER:
        return orders[t->n_channels];
    case WS_TXQ_NORMALIZED_COORDS:
        return t->flags & WS_TEX_NORMALIZED_COORDS ? 1 : 0;
    case WS_TXQ_FORCE_UNNORMALIZED_COORDS:
        return t->flags & WS_TEX_NORMALIZED_COORDS ? 0 : 1;
    case WS_TXQ_ARRAY_SIZE:
        return !array ? 1 : t->shape == WS_TEX_CUBE ? l->d / 6 : l->d;
    case WS_TXQ_NUM_MIPMAP_LEVELS:
        return t->n_levels;
    case WS_TXQ_NUM_SAMPLES:
        return 1;
    case WS_TXQ_FILTER_MODE:
        return t->flags & WS_TEX_FILTER_LINEAR ? 1 : 0;
    case WS_TXQ_ADDR_MODE_0:
    case WS_TXQ_ADDR_MODE_1:
    case WS_TXQ_ADDR_MODE_2:
        return addr_mode(t->mode[q - WS_TXQ_ADDR_MODE_0]);
    case WS_TXQ_MEMORY_LAYOUT:
        return t->shape == WS_TEX_LINEAR;
    default:
        return 0;
    }
}

bool ws_exec_tex_is(struct ws_core_ctx *c, uint64_t handle, unsigned type)
{
    struct ws_texture h;
    return !read_header(c, handle, 0, &h) &&
           h.magic == (type == WS_T_SURFREF ? WS_SURFACE_MAGIC : WS_TEXTURE_MAGIC);
}
