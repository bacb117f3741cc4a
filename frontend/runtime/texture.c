// SPDX-License-Identifier: Apache-2.0
/* Chapters "Texture Object Management" and "Surface Object Management". The runtime's descriptions
 * are translated to the driver's. */
#include <string.h>

#include "frontend/context/attributes.h"
#include "frontend/facade.h"
#include "frontend/runtime/before13.h"
#include "frontend/texture/texture.h"

/* ---- between the runtime's descriptions and the driver's ---- */

/* @bytes: so many has the caller's structure. */
static int resource_in(const struct cuda_resource_desc *r, size_t bytes,
                       struct cu_resource_desc *ret)
{
    struct ws_texel t = {0};
    int code = CUDA_OK;
    memset(ret, 0, sizeof(*ret));
    ret->resType = r->resType;
    if (bytes == sizeof(*r))
        ret->flags = r->flags;
    switch (r->resType) {
    case WS_RES_ARRAY:
    case WS_RES_MIPMAP:
        ret->res.array = r->res.array;
        return CUDA_OK;
    case WS_RES_LINEAR:
        code = ws_texel_of_channels(&r->res.linear.desc, &t);
        ret->res.linear.devPtr = (uintptr_t)r->res.linear.devPtr;
        ret->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
        if (!code)
            ret->res.linear.format = ws_texel_format(&t);
        ret->res.linear.numChannels = t.n_channels;
        return code;
    case WS_RES_PITCH2D:
        code = ws_texel_of_channels(&r->res.pitch2D.desc, &t);
        ret->res.pitch2D.devPtr = (uintptr_t)r->res.pitch2D.devPtr;
        ret->res.pitch2D.width = r->res.pitch2D.width;
        ret->res.pitch2D.height = r->res.pitch2D.height;
        ret->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
        if (!code)
            ret->res.pitch2D.format = ws_texel_format(&t);
        ret->res.pitch2D.numChannels = t.n_channels;
        return code;
    default:
        return CUDA_INVALID_VALUE;
    }
}

static void resource_out(const struct cu_resource_desc *r, struct cuda_resource_desc *ret,
                         size_t bytes)
{
    struct ws_texel t = {.n_channels = 1};
    memset(ret, 0, bytes);
    ret->resType = r->resType;
    if (bytes == sizeof(*ret))
        ret->flags = r->flags;
    if (r->resType == WS_RES_LINEAR) {
        ret->res.linear.devPtr = (void *)(uintptr_t)r->res.linear.devPtr;
        ret->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
        if (!ws_texel_of_format(r->res.linear.format, r->res.linear.numChannels, &t))
            ws_texel_channels(&t, &ret->res.linear.desc);
    } else if (r->resType == WS_RES_PITCH2D) {
        ret->res.pitch2D.devPtr = (void *)(uintptr_t)r->res.pitch2D.devPtr;
        ret->res.pitch2D.width = r->res.pitch2D.width;
        ret->res.pitch2D.height = r->res.pitch2D.height;
        ret->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
        if (!ws_texel_of_format(r->res.pitch2D.format, r->res.pitch2D.numChannels, &t))
            ws_texel_channels(&t, &ret->res.pitch2D.desc);
    } else {
        ret->res.array = r->res.array;
    }
}

static void texture_in(const struct cuda_texture_desc *t, size_t bytes, struct cu_texture_desc *ret)
{
    memset(ret, 0, sizeof(*ret));
    memcpy(ret->addressMode, t->addressMode, sizeof(ret->addressMode));
    memcpy(ret->borderColor, t->borderColor, sizeof(ret->borderColor));
    ret->filterMode = t->filterMode;
    ret->maxAnisotropy = t->maxAnisotropy;
    ret->mipmapFilterMode = t->mipmapFilterMode;
    ret->mipmapLevelBias = t->mipmapLevelBias;
    ret->minMipmapLevelClamp = t->minMipmapLevelClamp;
    ret->maxMipmapLevelClamp = t->maxMipmapLevelClamp;
    ret->flags = (t->readMode ? 0 : WS_TRSF_READ_AS_INTEGER) |
                 (t->normalizedCoords ? WS_TRSF_NORMALIZED_COORDINATES : 0) |
                 (t->sRGB ? WS_TRSF_SRGB : 0) |
                 (t->disableTrilinearOptimization ? WS_TRSF_NO_TRILINEAR_OPTIMIZATION : 0) |
                 (bytes == sizeof(*t) && t->seamlessCubemap ? WS_TRSF_SEAMLESS_CUBEMAP : 0);
}

static void texture_out(const struct cu_texture_desc *t, struct cuda_texture_desc *ret,
                        size_t bytes)
{
    memset(ret, 0, bytes);
    memcpy(ret->addressMode, t->addressMode, sizeof(ret->addressMode));
    memcpy(ret->borderColor, t->borderColor, sizeof(ret->borderColor));
    ret->filterMode = t->filterMode;
    ret->maxAnisotropy = t->maxAnisotropy;
    ret->mipmapFilterMode = t->mipmapFilterMode;
    ret->mipmapLevelBias = t->mipmapLevelBias;
    ret->minMipmapLevelClamp = t->minMipmapLevelClamp;
    ret->maxMipmapLevelClamp = t->maxMipmapLevelClamp;
    ret->readMode = !(t->flags & WS_TRSF_READ_AS_INTEGER);
    ret->normalizedCoords = !!(t->flags & WS_TRSF_NORMALIZED_COORDINATES);
    ret->sRGB = !!(t->flags & WS_TRSF_SRGB);
    ret->disableTrilinearOptimization = !!(t->flags & WS_TRSF_NO_TRILINEAR_OPTIMIZATION);
    if (bytes == sizeof(*ret))
        ret->seamlessCubemap = !!(t->flags & WS_TRSF_SEAMLESS_CUBEMAP);
}

/* ---- texture objects ---- */

WS_RT_API(cudaCreateTextureObject,
          (uint64_t * ret, const struct cuda_resource_desc *r, const struct cuda_texture_desc *t,
           const struct cuda_view_desc *view))
{
    struct cu_resource_desc resource;
    struct cu_texture_desc texture;
    struct cuda_view_desc v = {0};
    WS_RT_ENTER(device);
    if (!ret || !r || !t || (unsigned)t->readMode > 1)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = resource_in(r, WS_RT_SIZEOF(*r, WS_RT_OLDER_RESOURCE_DESC), &resource);
    if (code)
        return ws_rt_record(code);
    texture_in(t, WS_RT_SIZEOF_12(*t, WS_RT_11_TEXTURE_DESC), &texture);
    if (view)
        memcpy(&v, view, WS_RT_SIZEOF(v, WS_RT_OLDER_VIEW_DESC));
    return ws_rt_record(
        ws_texobj_new(ws_ctx_current(), false, &resource, &texture, view ? &v : NULL, ret));
}

WS_RT_API(cudaDestroyTextureObject, (uint64_t object))
{
    WS_RT_ENTER(device);
    return ws_rt_record(ws_texobj_free(object, false));
}

/* Body of the questions: @o is the object, or the call returns. */
#define OBJECT(o, ret, handle, surface)                                                            \
    struct ws_texobj o;                                                                            \
    WS_RT_ENTER(device);                                                                           \
    (void)device;                                                                                  \
    if (!(ret) || ws_texobj_get(handle, surface, &o))                                              \
    return ws_rt_record(CUDA_INVALID_VALUE)

WS_RT_API(cudaGetTextureObjectResourceDesc, (struct cuda_resource_desc * ret, uint64_t object))
{
    OBJECT(o, ret, object, false);
    resource_out(&o.resource, ret, WS_RT_SIZEOF(*ret, WS_RT_OLDER_RESOURCE_DESC));
    return CUDA_OK;
}
WS_RT_API(cudaGetTextureObjectTextureDesc, (struct cuda_texture_desc * ret, uint64_t object))
{
    OBJECT(o, ret, object, false);
    texture_out(&o.texture, ret, WS_RT_SIZEOF_12(*ret, WS_RT_11_TEXTURE_DESC));
    return CUDA_OK;
}
/* INVALID_VALUE if the object was made without a view. */
WS_RT_API(cudaGetTextureObjectResourceViewDesc, (struct cuda_view_desc * ret, uint64_t object))
{
    OBJECT(o, ret, object, false);
    if (!o.has_view)
        return ws_rt_record(CUDA_INVALID_VALUE);
    memcpy(ret, &o.view, WS_RT_SIZEOF(*ret, WS_RT_OLDER_VIEW_DESC));
    return CUDA_OK;
}

/* ---- surface objects ---- */

WS_RT_API(cudaCreateSurfaceObject, (uint64_t * ret, const struct cuda_resource_desc *r))
{
    struct cu_resource_desc resource;
    WS_RT_ENTER(device);
    if (!ret || !r)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = resource_in(r, WS_RT_SIZEOF(*r, WS_RT_OLDER_RESOURCE_DESC), &resource);
    if (code)
        return ws_rt_record(code);
    return ws_rt_record(ws_texobj_new(ws_ctx_current(), true, &resource, NULL, NULL, ret));
}
WS_RT_API(cudaDestroySurfaceObject, (uint64_t object))
{
    WS_RT_ENTER(device);
    return ws_rt_record(ws_texobj_free(object, true));
}
WS_RT_API(cudaGetSurfaceObjectResourceDesc, (struct cuda_resource_desc * ret, uint64_t object))
{
    OBJECT(o, ret, object, true);
    resource_out(&o.resource, ret, WS_RT_SIZEOF(*ret, WS_RT_OLDER_RESOURCE_DESC));
    return CUDA_OK;
}

WS_RT_API(cudaDeviceGetTexture1DLinearMaxWidth,
          (size_t * ret, const struct cuda_channel_desc *desc, int of))
{
    struct ws_texel t;
    int v = 0;
    WS_RT_ENTER(device);
    if (!ret || !desc)
        return ws_rt_record(CUDA_INVALID_VALUE);
    if (!ws_session_device(of))
        return ws_rt_record(CUDA_INVALID_DEVICE);
    int code = ws_texel_of_channels(desc, &t);
    if (code)
        return ws_rt_record(CUDA_INVALID_VALUE);
    ws_device_attribute(ws_session_device(of), WS_ATTR_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, &v);
    *ret = (size_t)v;
    return CUDA_OK;
}
