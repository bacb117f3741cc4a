// SPDX-License-Identifier: Apache-2.0
/* frontend/texture/cuda_texture.h - the layouts of CUDA's descriptions of arrays, textures and
 * surfaces; cuda_types.h has the others. */
#ifndef WS_FRONTEND_TEXTURE_CUDA_TEXTURE_H
#define WS_FRONTEND_TEXTURE_CUDA_TEXTURE_H

#include "frontend/cuda_types.h"

enum { WS_RES_ARRAY, WS_RES_MIPMAP, WS_RES_LINEAR, WS_RES_PITCH2D };

struct cuda_resource_desc {
    int resType;
    union {
        void *array, *mipmap;
        struct {
            void *devPtr;
            struct cuda_channel_desc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void *devPtr;
            struct cuda_channel_desc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
        int reserved[32];
    } res;
    unsigned flags;
};
_Static_assert(sizeof(struct cuda_resource_desc) == 144, "ABI");
struct cu_resource_desc { /* CUDA_RESOURCE_DESC */
    int resType;
    union {
        void *array, *mipmap;
        struct {
            uint64_t devPtr;
            int format;
            unsigned numChannels;
            size_t sizeInBytes;
        } linear;
        struct {
            uint64_t devPtr;
            int format;
            unsigned numChannels;
            size_t width, height, pitchInBytes;
        } pitch2D;
        int reserved[32];
    } res;
    unsigned flags;
};
_Static_assert(sizeof(struct cu_resource_desc) == 144, "ABI");

struct cuda_texture_desc {
    int addressMode[3], filterMode, readMode, sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned maxAnisotropy;
    int mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization, seamlessCubemap;
};
_Static_assert(sizeof(struct cuda_texture_desc) == 72, "ABI");
struct cu_texture_desc { /* CUDA_TEXTURE_DESC */
    int addressMode[3], filterMode;
    unsigned flags, maxAnisotropy;
    int mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp, borderColor[4];
    int reserved[12];
};
_Static_assert(sizeof(struct cu_texture_desc) == 104, "ABI");
enum { /* CU_TRSF_… */
       WS_TRSF_READ_AS_INTEGER = 1,
       WS_TRSF_NORMALIZED_COORDINATES = 2,
       WS_TRSF_SRGB = 0x10,
       WS_TRSF_NO_TRILINEAR_OPTIMIZATION = 0x20,
       WS_TRSF_SEAMLESS_CUBEMAP = 0x40,
       WS_TRSF_ALL = 0x73,
};

struct cuda_view_desc { /* cudaResourceViewDesc and CUDA_RESOURCE_VIEW_DESC */
    int format;
    size_t width, height, depth;
    unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer, reserved[16];
};
_Static_assert(sizeof(struct cuda_view_desc) == 112, "ABI");

struct cu_array_desc { /* CUDA_ARRAY_DESCRIPTOR */
    size_t Width, Height;
    int Format;
    unsigned NumChannels;
};
struct cu_array_desc_v1 {
    unsigned Width, Height;
    int Format;
    unsigned NumChannels;
};
struct cu_array3d_desc { /* CUDA_ARRAY3D_DESCRIPTOR */
    size_t Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
};
struct cu_array3d_desc_v1 {
    unsigned Width, Height, Depth;
    int Format;
    unsigned NumChannels, Flags;
};
enum { /* cudaArray…, CUDA_ARRAY3D_… */
       WS_ARRAY_LAYERED = 1,
       WS_ARRAY_SURFACE = 2,
       WS_ARRAY_CUBEMAP = 4,
       WS_ARRAY_GATHER = 8,
       WS_ARRAY_DEPTH_TEXTURE = 0x10,
       WS_ARRAY_COLOR_ATTACHMENT = 0x20,
       WS_ARRAY_SPARSE = 0x40,
       WS_ARRAY_DEFERRED = 0x80,
       WS_ARRAY_VIDEO = 0x100,
};
struct cuda_array_memory { /* cudaArrayMemoryRequirements */
    size_t size, alignment;
    unsigned reserved[4];
};

#endif
