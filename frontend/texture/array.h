// SPDX-License-Identifier: Apache-2.0
/* frontend/texture/array.h - CUDA arrays and mipmapped arrays. The runtime and the driver share the
 * handles: cudaArray_t and CUarray are struct ws_array *, and cudaMipmappedArray_t and
 * CUmipmappedArray are struct ws_mipmap *. An array is linear device memory, with rows without
 * gaps; only the frontend knows that it is an array. Threads: any. Functions return CUDA codes. */
#ifndef WS_FRONTEND_TEXTURE_ARRAY_H
#define WS_FRONTEND_TEXTURE_ARRAY_H

#include "base/texture.h"
#include "frontend/context/context.h"
#include "frontend/texture/cuda_texture.h"

/* What a texel is. */
struct ws_texel {
    uint8_t format; /* enum ws_texture_format */
    uint8_t n_channels;
    bool normalized; /* an integer format that is always read as a float */
    uint8_t bytes;
};
/* From CUDA's descriptions. INVALID_CHANNEL_DESCRIPTOR; NOT_SUPPORTED (named) for compressed and
 * planar formats. */
int ws_texel_of_channels(const struct cuda_channel_desc *d, struct ws_texel *ret);
int ws_texel_of_format(int format, unsigned n_channels, struct ws_texel *ret);
int ws_texel_of_view(int view_format, struct ws_texel *ret);
/* Back to them: exact for what ws_texel_of_… took. */
void ws_texel_channels(const struct ws_texel *t, struct cuda_channel_desc *ret);
int ws_texel_format(const struct ws_texel *t);

/* As CUDA describes an array: height and depth are 0 where it lacks that dimension. */
struct ws_array_desc {
    struct ws_texel texel;
    uint64_t width, height, depth;
    uint32_t flags;
};
struct ws_mipmap;
struct ws_array {
    struct ws_slot slot;
    struct ws_cuda_context *ctx;
    int device;
    enum ws_texture_shape shape;
    struct ws_array_desc desc;
    struct ws_texture_level memory;
    struct ws_mipmap *mipmap; /* NULL, or what it is a level of: not to be destroyed by itself */
};
struct ws_mipmap {
    struct ws_slot slot;
    struct ws_cuda_context *ctx;
    int device;
    uint64_t address, bytes;
    unsigned n_levels;
    struct ws_array *level[WS_TEXTURE_LEVELS];
};
/* All four change memory: not during captures that forbid it (work.h). INVALID_VALUE: extents that
 * CUDA's rules or the device's limits exclude; OUT_OF_MEMORY; NOT_SUPPORTED: sparse and the
 * like. */
int ws_array_new(struct ws_cuda_context *c, const struct ws_array_desc *d, struct ws_array **ret);
int ws_mipmap_new(struct ws_cuda_context *c, const struct ws_array_desc *d, unsigned n_levels,
                  struct ws_mipmap **ret);
bool ws_array_valid(const struct ws_array *a);
bool ws_mipmap_valid(const struct ws_mipmap *m);
/* Waits for the work that uses it. INVALID_VALUE for a level of a mipmapped array. */
int ws_array_free(struct ws_array *a);
int ws_mipmap_free(struct ws_mipmap *m);
uint64_t ws_array_bytes(const struct ws_array *a);

/* The array as one side of a copy whose first byte is @x_bytes, @y, @z. False: the box leaves the
 * array, or begins inside a texel. */
bool ws_array_side(const struct ws_array *a, uint64_t x_bytes, uint64_t y, uint64_t z,
                   const struct ws_copy_box *box, struct ws_copy_side *ret);
/* Address of byte @offset of the array's memory if @bytes from there are inside; 0 if not. */
uint64_t ws_array_stretch(const struct ws_array *a, uint64_t offset, uint64_t bytes);

/* Arrays, mipmapped arrays, textures and surfaces of a context or of a device are gone. @gone: so
 * is their memory. */
void ws_array_drop(const struct ws_cuda_context *c, int device, bool gone);

#endif
