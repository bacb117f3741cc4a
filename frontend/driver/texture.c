// SPDX-License-Identifier: Apache-2.0
/* Chapters "Texture Object Management", "Surface Object Management" and "Tensor Map Object
 * Management". */
#include <string.h>

#include "base/texture.h"
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

/* ---- tensor maps ----
 * A map is written into the program's own memory, and goes to kernels as a parameter or a constant
 * (base/texture.h). Interleaved tensors, those of 4 and 6 bits, im2col and swizzles of larger
 * atoms are not supported. */
enum { MAP_ALIGN = 64, STRIDE_BITS = 40 };
_Static_assert(sizeof(struct ws_tensor_map) == 128, "as CUtensorMap");

static bool is_float(unsigned type)
{
    return type >= WS_TENSOR_F16;
}

/* CUDA's rules about what @m says of dimension @i. */
static bool dimension_fits(const struct ws_tensor_map *m, unsigned i)
{
    if (!m->box[i] || m->box[i] > WS_TENSOR_BOX_MAX || !m->step[i] ||
        m->step[i] > WS_TENSOR_STEP_MAX)
        return false;
    return !i || (!(m->stride[i - 1] % WS_TENSOR_ALIGN) && !(m->stride[i - 1] >> STRIDE_BITS));
}

static bool fits(const struct ws_tensor_map *m)
{
    uint32_t row = m->box[0] * ws_tensor_element_bytes(m->type);
    for (unsigned i = 0; i < m->rank; i++)
        if (!dimension_fits(m, i))
            return false;
    return !(m->address % WS_TENSOR_ALIGN) && !(row % 16) &&
           (m->swizzle == WS_TENSOR_STRAIGHT || row <= 16u << m->swizzle) &&
           (!m->nan || is_float(m->type));
}

/* Return: false where a number is out of range. */
static bool fill(struct ws_tensor_map *m, const uint64_t *dims, const uint64_t *strides,
                 const uint32_t *box, const uint32_t *steps)
{
    for (unsigned i = 0; i < m->rank; i++) {
        if (!dims[i] || dims[i] > UINT64_C(1) << 32 || steps[i] > WS_TENSOR_STEP_MAX)
            return false;
        m->last[i] = (uint32_t)(dims[i] - 1);
        m->box[i] = box[i];
        m->step[i] = (uint8_t)steps[i];
        if (i)
            m->stride[i - 1] = strides[i - 1];
    }
    return true;
}

WS_DRV_API(cuTensorMapEncodeTiled,
           (void *ret, int type, uint32_t rank, void *address, const uint64_t *dims,
            const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
            int swizzle, int l2_promotion, int fill_nan))
{
    struct ws_tensor_map m = {.address = (uintptr_t)address,
                              .magic = WS_TENSOR_MAGIC,
                              .type = (uint8_t)type,
                              .rank = (uint8_t)rank,
                              .swizzle = (uint8_t)swizzle,
                              .nan = fill_nan == 1};
    if (!ret || (uintptr_t)ret % MAP_ALIGN || !rank || rank > WS_TENSOR_DIMS || !dims || !box ||
        !steps || (rank > 1 && !strides) || type < 0 || interleave < 0 || swizzle < 0)
        return CUDA_INVALID_VALUE;
    if (type >= _WS_TENSOR_TYPE_N || interleave || swizzle > WS_TENSOR_SWIZZLE_128) {
        ws_session_unsupported("tensor map: interleaved, of 4 or 6 bits, or with large atoms");
        return CUDA_NOT_SUPPORTED;
    }
    if (!fill(&m, dims, strides, box, steps) || !fits(&m))
        return CUDA_INVALID_VALUE;
    memcpy(ret, &m, sizeof(m));
    return CUDA_OK;
}

WS_DRV_API(cuTensorMapReplaceAddress, (void *map, void *address))
{
    struct ws_tensor_map m;
    if (!map || (uintptr_t)map % MAP_ALIGN || (uintptr_t)address % WS_TENSOR_ALIGN)
        return CUDA_INVALID_VALUE;
    memcpy(&m, map, sizeof(m));
    if (m.magic != WS_TENSOR_MAGIC)
        return CUDA_INVALID_VALUE;
    m.address = (uintptr_t)address;
    memcpy(map, &m, sizeof(m));
    return CUDA_OK;
}
