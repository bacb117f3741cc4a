// SPDX-License-Identifier: Apache-2.0
/* Formats of texels. CUDA names them in three ways: by the bits of each channel (runtime), by an
 * enumeration and a number of channels (driver), and by another enumeration (views).
 * Block-compressed and planar formats are recognised, and refused. */
#include "frontend/texture/array.h"
#include "frontend/errors.h"

static const uint8_t channel_bytes[] = {1, 2, 4, 1, 2, 4, 2, 4}; /* by enum ws_texture_format */
static const uint8_t drv_formats[] = {0x01, 0x02, 0x03, 0x08, 0x09, 0x0a, 0x10, 0x20};

enum {
    KIND_SIGNED,
    KIND_UNSIGNED,
    KIND_FLOAT,
    KIND_NORMALIZED_FIRST = 5,
    KIND_NORMALIZED_LAST = 16
};
enum { DRV_NORMALIZED_FIRST = 0xc0, DRV_NORMALIZED_LAST = 0xcb, DRV_COMPRESSED_FIRST = 0x91 };
enum { VIEW_FLOAT32_LAST = 0x18, VIEW_LAST = 0x22, VIEW_FORMATS = 3 };

static void set(struct ws_texel *t, int format, unsigned n, bool normalized)
{
    *t = (struct ws_texel){(uint8_t)format, (uint8_t)n, normalized,
                           (uint8_t)(channel_bytes[format] * n)};
}

/* The rows of the runtime's table of normalised formats; its columns are 1, 2 and 4 channels. */
static const uint8_t normalized_formats[] = {WS_TEX_U8, WS_TEX_U16, WS_TEX_S8, WS_TEX_S16};

/* The normalised formats in the order of both enumerations: U8, U16, S8, S16, each with 1, 2 and 4
 * channels. */
static void set_normalized(struct ws_texel *t, int index)
{
    set(t, normalized_formats[index / 3], 1u << index % 3, true);
}

static int normalized_index(const struct ws_texel *t)
{
    static const uint8_t columns[] = {[1] = 0, [2] = 1, [4] = 2}; /* by the number of channels */
    int row = 0;
    while (row < (int)WS_ARRAY_SIZE(normalized_formats) - 1 && normalized_formats[row] != t->format)
        row++;
    return row * 3 + columns[t->n_channels];
}

static int not_supported(void)
{
    ws_session_unsupported("arrays and textures of compressed and planar formats");
    return CUDA_NOT_SUPPORTED;
}

int ws_texel_of_channels(const struct cuda_channel_desc *d, struct ws_texel *ret)
{
    const int bits[] = {d->x, d->y, d->z, d->w};
    unsigned n = 0;
    while (n < 4 && bits[n])
        n++;
    for (unsigned i = 0; i < 4; i++)
        if (bits[i] != (i < n ? bits[0] : 0))
            return CUDA_INVALID_CHANNEL_DESCRIPTOR;
    if (d->f >= KIND_NORMALIZED_FIRST && d->f <= KIND_NORMALIZED_LAST) {
        set_normalized(ret, d->f - KIND_NORMALIZED_FIRST);
        return ret->n_channels == n && ret->bytes * 8 == bits[0] * (int)n
                   ? CUDA_OK
                   : CUDA_INVALID_CHANNEL_DESCRIPTOR;
    }
    if (d->f > KIND_NORMALIZED_LAST && d->f <= 31)
        return not_supported();
    if ((n != 1 && n != 2 && n != 4) || (bits[0] != 8 && bits[0] != 16 && bits[0] != 32))
        return CUDA_INVALID_CHANNEL_DESCRIPTOR;
    int size = bits[0] == 8 ? 0 : bits[0] == 16 ? 1 : 2;
    switch (d->f) {
    case KIND_SIGNED:
        set(ret, WS_TEX_S8 + size, n, false);
        return CUDA_OK;
    case KIND_UNSIGNED:
        set(ret, WS_TEX_U8 + size, n, false);
        return CUDA_OK;
    case KIND_FLOAT:
        if (!size)
            return CUDA_INVALID_CHANNEL_DESCRIPTOR;
        set(ret, size == 1 ? WS_TEX_F16 : WS_TEX_F32, n, false);
        return CUDA_OK;
    default:
        return CUDA_INVALID_CHANNEL_DESCRIPTOR;
    }
}

void ws_texel_channels(const struct ws_texel *t, struct cuda_channel_desc *ret)
{
    int bits = t->bytes / t->n_channels * 8, n = t->n_channels;
    *ret = (struct cuda_channel_desc){
        .x = bits, .y = n > 1 ? bits : 0, .z = n > 2 ? bits : 0, .w = n > 2 ? bits : 0};
    if (t->normalized)
        ret->f = KIND_NORMALIZED_FIRST + normalized_index(t);
    else
        ret->f = t->format >= WS_TEX_F16  ? KIND_FLOAT
                 : t->format >= WS_TEX_S8 ? KIND_SIGNED
                                          : KIND_UNSIGNED;
}

int ws_texel_of_format(int format, unsigned n_channels, struct ws_texel *ret)
{
    if (format >= DRV_NORMALIZED_FIRST && format <= DRV_NORMALIZED_LAST) {
        set_normalized(ret, format - DRV_NORMALIZED_FIRST);
        return ret->n_channels == n_channels ? CUDA_OK : CUDA_INVALID_CHANNEL_DESCRIPTOR;
    }
    for (int f = 0; f < (int)sizeof(drv_formats); f++) {
        if (drv_formats[f] != format)
            continue;
        if (n_channels != 1 && n_channels != 2 && n_channels != 4)
            return CUDA_INVALID_CHANNEL_DESCRIPTOR;
        set(ret, f, n_channels, false);
        return CUDA_OK;
    }
    if (format == 0x50 || (format >= DRV_COMPRESSED_FIRST && format < DRV_NORMALIZED_FIRST))
        return not_supported();
    return CUDA_INVALID_CHANNEL_DESCRIPTOR;
}

int ws_texel_format(const struct ws_texel *t)
{
    return t->normalized ? DRV_NORMALIZED_FIRST + normalized_index(t) : drv_formats[t->format];
}

int ws_texel_of_view(int view_format, struct ws_texel *ret)
{
    static const uint8_t order[] = {WS_TEX_U8,  WS_TEX_S8,  WS_TEX_U16, WS_TEX_S16,
                                    WS_TEX_U32, WS_TEX_S32, WS_TEX_F16, WS_TEX_F32};
    if (view_format < 1 || view_format > VIEW_LAST)
        return CUDA_INVALID_VALUE;
    if (view_format > VIEW_FLOAT32_LAST)
        return not_supported();
    set(ret, order[(view_format - 1) / VIEW_FORMATS], 1u << (view_format - 1) % VIEW_FORMATS,
        false);
    return CUDA_OK;
}
