/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/tex.h - textures and surfaces inside the interpreter: what the decoder tells a
 * micro-op, and a header as it is kept after it was checked. Private to the interpreter. The
 * header's contract: base/texture.h. */
#ifndef WS_DEVICE_SOFT_EXEC_TEX_H
#define WS_DEVICE_SOFT_EXEC_TEX_H

#include "base/texture.h"
#include "device/soft/exec/priv.h"
#include "ptx/passes/sampler.h"

/* One texture or surface instruction; rows are byte offsets into the warp's registers, 0: not
 * there. uop.imm points to it. */
struct ws_texop {
    uint8_t geom, lod, mode;       /* sampler.h; mode: of a surface */
    uint8_t dtype, ctype, n, size; /* element type and count of the data, bytes of an element */
    uint8_t comp;                  /* tld4: channel */
    uint8_t query, op;             /* sured: enum ws_ptx_sub */
    bool formatted;                /* .p: x counts texels, data is converted */
    uint32_t handle, sampler;      /* u64 */
    uint32_t d[4];                 /* destinations, or data to store */
    uint32_t pred;                 /* predicate word of d|p */
    uint32_t layer, coord[3], level, gx[3], gy[3];
};

/* A header that was checked: every texel of every level lies inside one mapping. */
struct ws_tex_kept_level {
    uint8_t *host;
    uint64_t row, slice;
    uint32_t w, h, d;
    bool readonly;
};
struct ws_tex {
    bool valid;
    uint64_t handle, sampler;
    uint32_t magic;
    uint8_t shape, format, n_channels, n_levels, texel_bytes, mode[3];
    uint32_t flags;
    bool is_float;       /* a texel reads as floats: may be filtered */
    uint32_t border[4];  /* bits, in the form texels are read in */
    uint32_t missing[4]; /* value of channels that the texture has not */
    float bias, lod_min, lod_max;
    struct ws_tex_kept_level level[WS_TEXTURE_LEVELS];
};
enum { WS_TEX_KEPT = 8 };
struct ws_tex_cache {
    struct ws_tex kept[WS_TEX_KEPT];
};

/* Headers differ in high bits or low ones, whatever allocator they came from. */
static inline unsigned ws_tex_slot(uint64_t handle, uint64_t sampler)
{
    return (unsigned)(((handle ^ sampler * 3) * UINT64_C(0x9e3779b97f4a7c15)) >> 61);
}

extern const float ws_tex_srgb[256]; /* 8-bit sRGB to linear */

/* Reads, checks and keeps the header at @handle, with the sampler's state if @sampler is not 0,
 * until the step ends.
 * @magic: what it must be. NULL: the kernel was faulted; the text says what is wrong. */
const struct ws_tex *ws_exec_tex_load(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane,
                                      uint64_t handle, uint64_t sampler, uint32_t magic);
/* Forgets what is kept: mappings may have changed. */
void ws_exec_tex_forget(struct ws_core_ctx *c);
/* txq, suq; level: of width, height, depth. */
uint32_t ws_exec_tex_query(const struct ws_tex *t, enum ws_tex_query q, uint32_t level);
/* istypep: enum ws_ptx_type. Faults nothing. */
bool ws_exec_tex_is(struct ws_core_ctx *c, uint64_t handle, unsigned type);
/* Does the instruction's geometry fit the header? NULL: yes; else what is wrong. */
const char *ws_exec_tex_misfit(const struct ws_tex *t, const struct ws_texop *o);

#endif
