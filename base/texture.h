// SPDX-License-Identifier: Apache-2.0
/* base/texture.h - what a texture or surface object is: a header in the client's device memory.
 *
 * The handle that a program passes to a kernel (cudaTextureObject_t, CUsurfObject, .texref) is the
 * address of a ws_texture that the frontend wrote there. The device reads and checks it at each
 * use, as it checks every address: nothing in it is trusted, a damaged one only faults the kernel
 * that used it (ptx/passes/sampler.cu does the same on GPUs that know nothing of it). The daemon
 * knows nothing of arrays: an array is linear memory, rows of row_bytes, slices of slice_bytes, for
 * each mipmap level; only the frontend knows that it is one. A module's variable of type .texref,
 * .samplerref or .surfref (8 bytes in global memory) holds a handle: who binds it writes the
 * header's address there; its name, in an instruction or a mov, stands for that handle. A sampler
 * is a texture header of which only address modes, border, levels and the flags of filters and
 * coordinates count. A handle is a multiple of 8. All texels of a level lie in one allocation;
 * sizes are at most 2^20 texels (linear: 2^30), rows below 4 GiB. Source: CUDA Runtime API,
 * "Texture Object Management"; CUDA C++ Programming Guide, "Texture and Surface Memory", "Texture
 * Fetching"; PTX ISA, "Texture Instructions", "Surface Instructions". */
#ifndef WS_BASE_TEXTURE_H
#define WS_BASE_TEXTURE_H

#include <stdint.h>

#define WS_TEXTURE_MAGIC UINT32_C(0x77747831) /* "1xtw": a texture */
#define WS_SURFACE_MAGIC UINT32_C(0x77736631) /* "1fsw": a surface */
enum { WS_TEXTURE_LEVELS = 16 };

enum ws_texture_shape {
    WS_TEX_LINEAR /* 1-D linear memory: integer coordinates only, no filter, outside reads 0 */,
    WS_TEX_1D,
    WS_TEX_2D, /* also pitched linear memory */
    WS_TEX_3D,
    WS_TEX_CUBE /* depth: 6 * number of cubes; layers as slices */
};
enum ws_texture_format { /* of one channel */
                         WS_TEX_U8,
                         WS_TEX_U16,
                         WS_TEX_U32,
                         WS_TEX_S8,
                         WS_TEX_S16,
                         WS_TEX_S32,
                         WS_TEX_F16,
                         WS_TEX_F32
};
enum ws_texture_address { WS_TEX_WRAP, WS_TEX_CLAMP, WS_TEX_MIRROR, WS_TEX_BORDER };
enum {
    WS_TEX_NORMALIZED_COORDS = 1u << 0, /* coordinates run from 0 to 1 */
    WS_TEX_NORMALIZED_FLOAT = 1u << 1,  /* integers are read as floats in [0, 1] or [-1, 1] */
    WS_TEX_FILTER_LINEAR = 1u << 2,     /* within a level */
    WS_TEX_MIPMAP_LINEAR = 1u << 3,     /* between levels */
    WS_TEX_LAYERED = 1u << 4,           /* depth counts layers, which are never filtered across */
    WS_TEX_SRGB = 1u << 5,              /* 8-bit channels but alpha are sRGB */
    WS_TEX_SEAMLESS_CUBE = 1u << 6,
};

struct ws_texture_level {
    uint64_t address;
    uint64_t row_bytes, slice_bytes;
    uint32_t width, height, depth; /* in texels; 1-D: height 1; no depth: 1 */
    uint32_t reserved;
};
struct ws_texture {
    uint32_t magic;
    uint8_t shape, format, n_channels /* 1, 2, 4 */, n_levels;
    uint8_t address_mode[3]; /* x, y, z: enum ws_texture_address */
    uint8_t max_anisotropy;
    uint32_t flags;
    float border[4]; /* textures read as integers: the bits of an integer (cudaTextureDesc) */
    float level_bias, level_min, level_max;
    uint32_t reserved;
    struct ws_texture_level level[WS_TEXTURE_LEVELS];
};

/* ---- tensor maps ---- */

/* What a tensor map (CUtensorMap) is here: 128 bytes that the frontend or a
 * kernel writes, and that the device reads and checks at each copy, as it checks every address. On
 * hardware they are opaque. A tensor of up to five dimensions is cut into boxes; a copy moves one
 * box between global and shared memory. All zeros is no map: who sets a field of it makes it one.
 * Source: CUDA Driver API, "Tensor Map Object Management"; PTX ISA 9.0, 5.5 "Tensors". */
#define WS_TENSOR_MAGIC UINT32_C(0x77746d31) /* "1mtw" */
enum { WS_TENSOR_DIMS = 5, WS_TENSOR_BOX_MAX = 256, WS_TENSOR_STEP_MAX = 8, WS_TENSOR_ALIGN = 16 };

enum ws_tensor_type { /* of an element, as CUtensorMapDataType numbers them */
                      WS_TENSOR_U8,
                      WS_TENSOR_U16,
                      WS_TENSOR_U32,
                      WS_TENSOR_S32,
                      WS_TENSOR_U64,
                      WS_TENSOR_S64,
                      WS_TENSOR_F16,
                      WS_TENSOR_F32,
                      WS_TENSOR_F64,
                      WS_TENSOR_BF16,
                      WS_TENSOR_F32_FTZ,
                      WS_TENSOR_TF32,
                      WS_TENSOR_TF32_FTZ,
                      _WS_TENSOR_TYPE_N
};
enum ws_tensor_swizzle { /* a row of shared memory, whose chunks of 16 bytes change places */
                         WS_TENSOR_STRAIGHT,
                         WS_TENSOR_SWIZZLE_32,
                         WS_TENSOR_SWIZZLE_64,
                         WS_TENSOR_SWIZZLE_128
};

/* The innermost dimension comes first. */
struct ws_tensor_map {
    uint64_t address;
    uint32_t magic;
    uint8_t type, rank, swizzle;
    uint8_t nan;                          /* outside of the tensor is NaN instead of 0 */
    uint32_t last[WS_TENSOR_DIMS];        /* elements less one */
    uint32_t box[WS_TENSOR_DIMS];         /* elements that a box spans */
    uint64_t stride[WS_TENSOR_DIMS - 1];  /* bytes, from the second dimension on */
    uint8_t step[WS_TENSOR_DIMS], pad[3]; /* each so many'th element of the span */
    uint64_t reserved[4];
};

static inline uint32_t ws_tensor_element_bytes(unsigned type)
{
    static const uint8_t bytes[_WS_TENSOR_TYPE_N] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return type < _WS_TENSOR_TYPE_N ? bytes[type] : 0;
}

#endif
