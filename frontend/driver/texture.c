// SPDX-License-Identifier: Apache-2.0
/* Chapters "Texture Object Management" and "Surface Object Management". */
#include "frontend/context/attributes.h"
#include "frontend/facade.h"
#include "frontend/texture/texture.h"

/* The driver knows fewer codes than the runtime, and documents one. */
static int drv_code(int code)
{
    switch (code) {
    case CUDA_INVALID_CHANNEL_DESCRIPTOR:
    case CUDA_INVALID_FILTER_SETTING:
    case CUDA_INVALID_HANDLE:
        return CUDA_INVALID_VALUE;
    default:
        return code;
    }
}

static int create(bool surface, uint64_t *ret, const struct cu_resource_desc *r,
                  const struct cu_texture_desc *t, const struct cuda_view_desc *view)
{
    WS_DRV_ENTER(c);
    if (!ret || !r || (!surface && !t))
        return CUDA_INVALID_VALUE;
    return drv_code(ws_texobj_new(c, surface, r, t, view, ret));
}

static int destroy(bool surface, uint64_t object)
{
    WS_DRV_ENTER(c);
    return ws_texobj_free(object, surface);
}

static int get(bool surface, uint64_t object, const void *ret, struct ws_texobj *o)
{
    WS_DRV_ENTER(c);
    return ret ? ws_texobj_get(object, surface, o) : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuTexObjectCreate, (uint64_t * ret, const struct cu_resource_desc *r,
                               const struct cu_texture_desc *t, const struct cuda_view_desc *view))
{
    return create(false, ret, r, t, view);
}
WS_DRV_API(cuTexObjectDestroy, (uint64_t object))
{
    return destroy(false, object);
}
WS_DRV_API(cuTexObjectGetResourceDesc, (struct cu_resource_desc * ret, uint64_t object))
{
    struct ws_texobj o;
    int code = get(false, object, ret, &o);
    if (!code)
        *ret = o.resource;
    return code;
}
WS_DRV_API(cuTexObjectGetTextureDesc, (struct cu_texture_desc * ret, uint64_t object))
{
    struct ws_texobj o;
    int code = get(false, object, ret, &o);
    if (!code)
        *ret = o.texture;
    return code;
}
/* INVALID_VALUE if it was made without a view. */
WS_DRV_API(cuTexObjectGetResourceViewDesc, (struct cuda_view_desc * ret, uint64_t object))
{
    struct ws_texobj o;
    int code = get(false, object, ret, &o);
    if (!code && !o.has_view)
        return CUDA_INVALID_VALUE;
    if (!code)
        *ret = o.view;
    return code;
}

WS_DRV_API(cuSurfObjectCreate, (uint64_t * ret, const struct cu_resource_desc *r))
{
    return create(true, ret, r, NULL, NULL);
}
WS_DRV_API(cuSurfObjectDestroy, (uint64_t object))
{
    return destroy(true, object);
}
WS_DRV_API(cuSurfObjectGetResourceDesc, (struct cu_resource_desc * ret, uint64_t object))
{
    struct ws_texobj o;
    int code = get(true, object, ret, &o);
    if (!code)
        *ret = o.resource;
    return code;
}

WS_DRV_API(cuDeviceGetTexture1DLinearMaxWidth,
           (size_t * ret, int format, unsigned n_channels, int device))
{
    struct ws_texel t;
    int v = 0, code = ws_drv_check_init();
    if (code)
        return code;
    if (!ws_session_device(device))
        return CUDA_INVALID_DEVICE;
    if (!ret || ws_texel_of_format(format, n_channels, &t))
        return CUDA_INVALID_VALUE;
    ws_device_attribute(ws_session_device(device), WS_ATTR_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, &v);
    *ret = (size_t)v;
    return CUDA_OK;
}
