// SPDX-License-Identifier: Apache-2.0
/* Chapters "Texture Reference Management" and "Surface Reference Management" (deprecated): what a
 * reference is stands in texture/texref.c. */
#include <string.h>

#include "frontend/facade.h"
#include "frontend/texture/texref.h"

enum { OVERRIDE_FORMAT = 1, PARAM_TR_DEFAULT = -1, ALIGNMENT = 512 };

static int of_module(bool surface, struct ws_texref **ret, struct ws_mod *m, const char *name)
{
    WS_DRV_ENTER(c);
    return ws_texref_of_module(c, surface, m, name, ret);
}

WS_DRV_API(cuModuleGetTexRef, (struct ws_texref * *ret, struct ws_mod *m, const char *name))
{
    return of_module(false, ret, m, name);
}
WS_DRV_API(cuModuleGetSurfRef, (struct ws_texref * *ret, struct ws_mod *m, const char *name))
{
    return of_module(true, ret, m, name);
}

WS_DRV_API(cuTexRefCreate, (struct ws_texref * *ret))
{
    WS_DRV_ENTER(c);
    if (!ret)
        return CUDA_INVALID_VALUE;
    struct ws_texref *t = ws_texref_new(c, false);
    if (!t)
        return CUDA_OUT_OF_MEMORY;
    *ret = t;
    return CUDA_OK;
}

/* Body of the calls: @t is a live texture reference, or the call returns. */
#define NEED_REF(t)                                                                                \
    WS_DRV_ENTER(c_);                                                                              \
    if (!ws_texref_valid(t) || (t)->surface)                                                       \
    return CUDA_INVALID_VALUE

WS_DRV_API(cuTexRefDestroy, (struct ws_texref * t))
{
    NEED_REF(t);
    if (t->mod)
        return CUDA_INVALID_VALUE;
    ws_texref_free(t);
    return CUDA_OK;
}

/* ---- what it reads ---- */

static int bind_array(struct ws_texref *t, int type, void *handle, const struct ws_texel *texel,
                      unsigned flags)
{
    if (!(flags & OVERRIDE_FORMAT))
        return CUDA_INVALID_VALUE;
    t->format = ws_texel_format(texel);
    t->n_channels = texel->n_channels;
    return ws_texref_bind(t, &(struct cu_resource_desc){.resType = type, .res.array = handle});
}

WS_DRV_API(cuTexRefSetArray, (struct ws_texref * t, struct ws_array *a, unsigned flags))
{
    NEED_REF(t);
    if (!ws_array_valid(a))
        return CUDA_INVALID_VALUE;
    return bind_array(t, WS_RES_ARRAY, a, &a->desc.texel, flags);
}
WS_DRV_API(cuTexRefSetMipmappedArray, (struct ws_texref * t, struct ws_mipmap *m, unsigned flags))
{
    NEED_REF(t);
    if (!ws_mipmap_valid(m))
        return CUDA_INVALID_VALUE;
    return bind_array(t, WS_RES_MIPMAP, m, &m->level[0]->desc.texel, flags);
}

/* An address between two that a texture may start at is rounded down, and the program told by how
 * much, if it asks. */
WS_DRV_API(cuTexRefSetAddress_v2,
           (size_t * ret_offset, struct ws_texref *t, uint64_t address, size_t bytes))
{
    NEED_REF(t);
    uint64_t offset = address % ALIGNMENT;
    if (!ret_offset && offset)
        return CUDA_INVALID_VALUE;
    if (ret_offset)
        *ret_offset = offset;
    if (!address) { /* CUDA's way to unbind */
        t->bound = false;
        return CUDA_OK;
    }
    return ws_texref_bind(
        t, &(struct cu_resource_desc){
               .resType = WS_RES_LINEAR,
               .res.linear = {.devPtr = address - offset, .sizeInBytes = bytes + offset}});
}

WS_DRV_API(cuTexRefSetAddress2D_v3,
           (struct ws_texref * t, const struct cu_array_desc *d, uint64_t address, size_t pitch))
{
    NEED_REF(t);
    if (!d)
        return CUDA_INVALID_VALUE;
    t->format = d->Format;
    t->n_channels = d->NumChannels;
    return ws_texref_bind(t, &(struct cu_resource_desc){.resType = WS_RES_PITCH2D,
                                                        .res.pitch2D = {.devPtr = address,
                                                                        .width = d->Width,
                                                                        .height = d->Height,
                                                                        .pitchInBytes = pitch}});
}
WS_DRV_ALIAS(cuTexRefSetAddress2D_v2, cuTexRefSetAddress2D_v3)

WS_DRV_API(cuTexRefSetFormat, (struct ws_texref * t, int format, int n_channels))
{
    struct ws_texel texel;
    NEED_REF(t);
    if (n_channels < 1 || ws_texel_of_format(format, (unsigned)n_channels, &texel))
        return CUDA_INVALID_VALUE;
    t->format = format;
    t->n_channels = (unsigned)n_channels;
    return ws_texref_update(t, false);
}

/* ---- how it is read ---- */

WS_DRV_API(cuTexRefSetAddressMode, (struct ws_texref * t, int dim, int mode))
{
    NEED_REF(t);
    if (dim < 0 || dim > 2 || mode < 0 || mode > 3)
        return CUDA_INVALID_VALUE;
    t->texture.addressMode[dim] = mode;
    return ws_texref_update(t, false);
}
WS_DRV_API(cuTexRefSetFilterMode, (struct ws_texref * t, int mode))
{
    NEED_REF(t);
    if (mode < 0 || mode > 1)
        return CUDA_INVALID_VALUE;
    t->texture.filterMode = mode;
    return ws_texref_update(t, false);
}
WS_DRV_API(cuTexRefSetMipmapFilterMode, (struct ws_texref * t, int mode))
{
    NEED_REF(t);
    if (mode < 0 || mode > 1)
        return CUDA_INVALID_VALUE;
    t->texture.mipmapFilterMode = mode;
    return ws_texref_update(t, false);
}
WS_DRV_API(cuTexRefSetMipmapLevelBias, (struct ws_texref * t, float bias))
{
    NEED_REF(t);
    t->texture.mipmapLevelBias = bias;
    return ws_texref_update(t, false);
}
WS_DRV_API(cuTexRefSetMipmapLevelClamp, (struct ws_texref * t, float low, float high))
{
    NEED_REF(t);
    t->texture.minMipmapLevelClamp = low;
    t->texture.maxMipmapLevelClamp = high;
    return ws_texref_update(t, false);
}
WS_DRV_API(cuTexRefSetMaxAnisotropy, (struct ws_texref * t, unsigned n))
{
    NEED_REF(t);
    t->texture.maxAnisotropy = n;
    return ws_texref_update(t, false);
}
WS_DRV_API(cuTexRefSetBorderColor, (struct ws_texref * t, const float *color))
{
    NEED_REF(t);
    if (!color)
        return CUDA_INVALID_VALUE;
    memcpy(t->texture.borderColor, color, sizeof(t->texture.borderColor));
    return ws_texref_update(t, false);
}
WS_DRV_API(cuTexRefSetFlags, (struct ws_texref * t, unsigned flags))
{
    NEED_REF(t);
    if (flags & ~(unsigned)WS_TRSF_ALL)
        return CUDA_INVALID_VALUE;
    t->texture.flags = flags;
    return ws_texref_update(t, false);
}

/* ---- questions ---- */

#define NEED_ANSWER(ret, t)                                                                        \
    NEED_REF(t);                                                                                   \
    if (!(ret))                                                                                    \
    return CUDA_INVALID_VALUE

WS_DRV_API(cuTexRefGetAddress_v2, (uint64_t * ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    if (!t->bound ||
        (t->resource.resType != WS_RES_LINEAR && t->resource.resType != WS_RES_PITCH2D))
        return CUDA_INVALID_VALUE;
    *ret = t->resource.res.linear.devPtr;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetArray, (void **ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    if (!t->bound || t->resource.resType != WS_RES_ARRAY)
        return CUDA_INVALID_VALUE;
    *ret = t->resource.res.array;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetMipmappedArray, (void **ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    if (!t->bound || t->resource.resType != WS_RES_MIPMAP)
        return CUDA_INVALID_VALUE;
    *ret = t->resource.res.mipmap;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetAddressMode, (int *ret, struct ws_texref *t, int dim))
{
    NEED_ANSWER(ret, t);
    if (dim < 0 || dim > 2)
        return CUDA_INVALID_VALUE;
    *ret = t->texture.addressMode[dim];
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetFilterMode, (int *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    *ret = t->texture.filterMode;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetFormat, (int *ret_format, int *ret_channels, struct ws_texref *t))
{
    NEED_REF(t);
    if (ret_format)
        *ret_format = t->format;
    if (ret_channels)
        *ret_channels = (int)t->n_channels;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetMipmapFilterMode, (int *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    *ret = t->texture.mipmapFilterMode;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetMipmapLevelBias, (float *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    *ret = t->texture.mipmapLevelBias;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetMipmapLevelClamp, (float *low, float *high, struct ws_texref *t))
{
    NEED_REF(t);
    if (low)
        *low = t->texture.minMipmapLevelClamp;
    if (high)
        *high = t->texture.maxMipmapLevelClamp;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetMaxAnisotropy, (int *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    *ret = (int)t->texture.maxAnisotropy;
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetBorderColor, (float *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    memcpy(ret, t->texture.borderColor, sizeof(t->texture.borderColor));
    return CUDA_OK;
}
WS_DRV_API(cuTexRefGetFlags, (unsigned *ret, struct ws_texref *t))
{
    NEED_ANSWER(ret, t);
    *ret = t->texture.flags;
    return CUDA_OK;
}

/* The kernel finds its references by itself; this only checks. */
WS_DRV_API(cuParamSetTexRef, (struct ws_fn * f, int unit, struct ws_texref *t))
{
    NEED_REF(t);
    if (!ws_fn_valid(f))
        return CUDA_INVALID_HANDLE;
    return unit == PARAM_TR_DEFAULT ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* ---- surface references ---- */

#define NEED_SURFACE(t)                                                                            \
    WS_DRV_ENTER(c_);                                                                              \
    if (!ws_texref_valid(t) || !(t)->surface)                                                      \
    return CUDA_INVALID_VALUE

WS_DRV_API(cuSurfRefSetArray, (struct ws_texref * t, struct ws_array *a, unsigned flags))
{
    NEED_SURFACE(t);
    if (flags || !ws_array_valid(a))
        return CUDA_INVALID_VALUE;
    return ws_texref_bind(t, &(struct cu_resource_desc){.resType = WS_RES_ARRAY, .res.array = a});
}
WS_DRV_API(cuSurfRefGetArray, (void **ret, struct ws_texref *t))
{
    NEED_SURFACE(t);
    if (!ret || !t->bound)
        return CUDA_INVALID_VALUE;
    *ret = t->resource.res.array;
    return CUDA_OK;
}
