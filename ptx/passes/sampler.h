/* SPDX-License-Identifier: Apache-2.0 */
/* ptx/passes/sampler.h - words of texture and surface instructions, and how the pass that replaces
 * them (texture.c) tells the functions of sampler.cu which instruction they stand for. Plain enough
 * for a CUDA compiler: no other header of this room. */
#ifndef WS_PTX_PASSES_SAMPLER_H
#define WS_PTX_PASSES_SAMPLER_H

enum ws_tex_geom {
    WS_GEOM_1D,
    WS_GEOM_2D,
    WS_GEOM_3D,
    WS_GEOM_A1D,
    WS_GEOM_A2D,
    WS_GEOM_CUBE,
    WS_GEOM_ACUBE,
    _WS_GEOM_N
};
enum ws_tex_lod { WS_LOD_NONE, WS_LOD_BASE, WS_LOD_LEVEL, WS_LOD_GRAD };
enum ws_surf_mode { WS_SURF_TRAP, WS_SURF_CLAMP, WS_SURF_ZERO };
enum ws_tex_query {
    WS_TXQ_WIDTH,
    WS_TXQ_HEIGHT,
    WS_TXQ_DEPTH,
    WS_TXQ_CHANNEL_DATA_TYPE,
    WS_TXQ_CHANNEL_ORDER,
    WS_TXQ_NORMALIZED_COORDS,
    WS_TXQ_ARRAY_SIZE,
    WS_TXQ_NUM_MIPMAP_LEVELS,
    WS_TXQ_NUM_SAMPLES,
    WS_TXQ_FORCE_UNNORMALIZED_COORDS,
    WS_TXQ_FILTER_MODE,
    WS_TXQ_ADDR_MODE_0,
    WS_TXQ_ADDR_MODE_1,
    WS_TXQ_ADDR_MODE_2,
    WS_TXQ_MEMORY_LAYOUT,
    _WS_TXQ_N
};

/* The word that tells a function of sampler.cu its instruction: a sum of these. */
enum {
    WS_SAMPLE_GEOM = 1u << 0, /* times enum ws_tex_geom */
    WS_SAMPLE_INTS = 1u << 3, /* coordinates count texels */
    WS_SAMPLE_BASE = 1u << 4, /* level 0, whatever the texture says */
    WS_SAMPLE_COMP = 1u << 5, /* times tld4's channel */
    WS_SAMPLE_MODE = 1u << 3, /* surfaces: times enum ws_surf_mode */
    WS_SAMPLE_TEXELS = 1u << 5 /* surfaces: x counts texels */,
    WS_SAMPLE_SIZE =
        1u
        << 6, /* surfaces: times what an address must be a multiple of; 0: a channel. 1, 2, 4, 8 */
    WS_SAMPLE_BYTES =
        1u << 10,            /* surfaces: times the bytes that are accessed; 0: a texel. Up to 16 */
    WS_SAMPLE_OP = 1u << 15, /* sured: times: 0 add, 1 min, 2 max, 3 and, 4 or */
    WS_SAMPLE_SIGNED = 1u << 18, /* sured: of signed numbers */
    WS_SAMPLE_N = 1u << 20,      /* sust.p: times the channels that are given, 1 to 4 */
};

/* What is wrong with a handle or an access shows in the address that faults: WS_SAMPLE_FAULT + 8 *
 * one of these. No memory is there. */
#define WS_SAMPLE_FAULT 0xfffffffffffff000
enum {
    WS_SAMPLE_NO_HANDLE,
    WS_SAMPLE_NO_TEXTURE,
    WS_SAMPLE_NO_SURFACE,
    WS_SAMPLE_DAMAGED,
    WS_SAMPLE_SHAPE,
    WS_SAMPLE_TOO_WIDE,
    WS_SAMPLE_OUTSIDE,
    WS_SAMPLE_MISALIGNED,
    _WS_SAMPLE_FAULT_N
};

#endif
