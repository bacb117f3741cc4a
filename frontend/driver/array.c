// SPDX-License-Identifier: Apache-2.0
/* Chapter "Memory Management": arrays, and the copies that name them. (cuMemcpy2D and cuMemcpy3D
 * are in memory.c.) Of the first versions, whose sizes have 32 bits, those exist that need no
 * device address of 32 bits. */
#include <string.h>

#include "frontend/texture/array.h"
#include "frontend/facade.h"
#include "frontend/stream/work.h"

enum { ALIGNMENT = 512 };

/* The driver has no codes of their own for these. */
static int drv_code(int code)
{
    return code == CUDA_INVALID_CHANNEL_DESCRIPTOR ? CUDA_INVALID_VALUE : code;
}

/* ---- arrays ---- */

static int describe(const struct cu_array3d_desc *d, struct ws_array_desc *ret)
{
    *ret = (struct ws_array_desc){
        .width = d->Width, .height = d->Height, .depth = d->Depth, .flags = d->Flags};
    return drv_code(ws_texel_of_format(d->Format, d->NumChannels, &ret->texel));
}

static int create(struct ws_array **ret, const struct cu_array3d_desc *d)
{
    struct ws_array_desc ours;
    WS_DRV_ENTER(c);
    if (!ret)
        return CUDA_INVALID_VALUE;
    int code = describe(d, &ours);
    return code ? code : ws_array_new(c, &ours, ret);
}

WS_DRV_API(cuArray3DCreate_v2, (struct ws_array * *ret, const struct cu_array3d_desc *d))
{
    return d ? create(ret, d) : CUDA_INVALID_VALUE;
}
WS_DRV_API(cuArrayCreate_v2, (struct ws_array * *ret, const struct cu_array_desc *d))
{
    if (!d)
        return CUDA_INVALID_VALUE;
    return create(ret, &(struct cu_array3d_desc){.Width = d->Width,
                                                 .Height = d->Height,
                                                 .Format = d->Format,
                                                 .NumChannels = d->NumChannels});
}
WS_DRV_API(cuArray3DCreate, (struct ws_array * *ret, const struct cu_array3d_desc_v1 *d))
{
    if (!d)
        return CUDA_INVALID_VALUE;
    return create(ret, &(struct cu_array3d_desc){.Width = d->Width,
                                                 .Height = d->Height,
                                                 .Depth = d->Depth,
                                                 .Format = d->Format,
                                                 .NumChannels = d->NumChannels,
                                                 .Flags = d->Flags});
}
WS_DRV_API(cuArrayCreate, (struct ws_array * *ret, const struct cu_array_desc_v1 *d))
{
    if (!d)
        return CUDA_INVALID_VALUE;
    return create(ret, &(struct cu_array3d_desc){.Width = d->Width,
                                                 .Height = d->Height,
                                                 .Format = d->Format,
                                                 .NumChannels = d->NumChannels});
}

WS_DRV_API(cuArrayDestroy, (struct ws_array * a))
{
    WS_DRV_ENTER(c);
    if (!ws_array_valid(a))
        return CUDA_INVALID_HANDLE;
    return ws_array_free(a);
}

/* Body of a question: @a is live, or the call returns. */
#define NEED_ARRAY(ret, a)                                                                         \
    WS_DRV_ENTER(c_);                                                                              \
    (void)c_;                                                                                      \
    if (!ws_array_valid(a))                                                                        \
        return CUDA_INVALID_HANDLE;                                                                \
    if (!(ret))                                                                                    \
    return CUDA_INVALID_VALUE

WS_DRV_API(cuArray3DGetDescriptor_v2, (struct cu_array3d_desc * ret, const struct ws_array *a))
{
    NEED_ARRAY(ret, a);
    *ret = (struct cu_array3d_desc){a->desc.width,
                                    a->desc.height,
                                    a->desc.depth,
                                    ws_texel_format(&a->desc.texel),
                                    a->desc.texel.n_channels,
                                    a->desc.flags};
    return CUDA_OK;
}
/* Of a 3-D array this shows width and height only. */
WS_DRV_API(cuArrayGetDescriptor_v2, (struct cu_array_desc * ret, const struct ws_array *a))
{
    NEED_ARRAY(ret, a);
    *ret = (struct cu_array_desc){a->desc.width, a->desc.height, ws_texel_format(&a->desc.texel),
                                  a->desc.texel.n_channels};
    return CUDA_OK;
}
WS_DRV_API(cuArray3DGetDescriptor, (struct cu_array3d_desc_v1 * ret, const struct ws_array *a))
{
    NEED_ARRAY(ret, a);
    *ret = (struct cu_array3d_desc_v1){(unsigned)a->desc.width,  (unsigned)a->desc.height,
                                       (unsigned)a->desc.depth,  ws_texel_format(&a->desc.texel),
                                       a->desc.texel.n_channels, a->desc.flags};
    return CUDA_OK;
}
WS_DRV_API(cuArrayGetDescriptor, (struct cu_array_desc_v1 * ret, const struct ws_array *a))
{
    NEED_ARRAY(ret, a);
    *ret = (struct cu_array_desc_v1){(unsigned)a->desc.width, (unsigned)a->desc.height,
                                     ws_texel_format(&a->desc.texel), a->desc.texel.n_channels};
    return CUDA_OK;
}

/* ---- mipmapped arrays ---- */

WS_DRV_API(cuMipmappedArrayCreate,
           (struct ws_mipmap * *ret, const struct cu_array3d_desc *d, unsigned n_levels))
{
    struct ws_array_desc ours;
    WS_DRV_ENTER(c);
    if (!ret || !d)
        return CUDA_INVALID_VALUE;
    int code = describe(d, &ours);
    return code ? code : ws_mipmap_new(c, &ours, n_levels, ret);
}
WS_DRV_API(cuMipmappedArrayDestroy, (struct ws_mipmap * m))
{
    WS_DRV_ENTER(c);
    return ws_mipmap_valid(m) ? ws_mipmap_free(m) : CUDA_INVALID_HANDLE;
}
WS_DRV_API(cuMipmappedArrayGetLevel,
           (struct ws_array * *ret, const struct ws_mipmap *m, unsigned level))
{
    WS_DRV_ENTER(c);
    if (!ws_mipmap_valid(m))
        return CUDA_INVALID_HANDLE;
    if (!ret || level >= m->n_levels)
        return CUDA_INVALID_VALUE;
    *ret = m->level[level];
    return CUDA_OK;
}

/* ---- what can't be: planes and sparse arrays ---- */

WS_DRV_API(cuArrayGetPlane, (struct ws_array * *ret, const struct ws_array *a, unsigned plane))
{
    (void)plane;
    NEED_ARRAY(ret, a);
    return CUDA_INVALID_VALUE;
}
WS_DRV_API(cuArrayGetSparseProperties, (void *ret, const struct ws_array *a))
{
    NEED_ARRAY(ret, a);
    return CUDA_INVALID_VALUE;
}
WS_DRV_API(cuMipmappedArrayGetSparseProperties, (void *ret, const struct ws_mipmap *m))
{
    (void)ret;
    WS_DRV_ENTER(c);
    return ws_mipmap_valid(m) ? CUDA_INVALID_VALUE : CUDA_INVALID_HANDLE;
}

static int memory_needed(struct cuda_array_memory *ret, uint64_t bytes, int device)
{
    if (!ret || !ws_session_device(device))
        return CUDA_INVALID_VALUE;
    *ret = (struct cuda_array_memory){.size = bytes, .alignment = ALIGNMENT};
    return CUDA_OK;
}
WS_DRV_API(cuArrayGetMemoryRequirements,
           (struct cuda_array_memory * ret, const struct ws_array *a, int device))
{
    NEED_ARRAY(ret, a);
    return memory_needed(ret, ws_array_bytes(a), device);
}
WS_DRV_API(cuMipmappedArrayGetMemoryRequirements,
           (struct cuda_array_memory * ret, const struct ws_mipmap *m, int device))
{
    WS_DRV_ENTER(c);
    return ws_mipmap_valid(m) ? memory_needed(ret, m->bytes, device) : CUDA_INVALID_HANDLE;
}

/* ---- copies of so many bytes, running on from row to row ---- */

/* One end: byte @offset of an array, or an address. */
struct copy_end {
    bool is_array;
    const struct ws_array *array;
    uint64_t at;
};
#define ARRAY(a, offset) (&(struct copy_end){true, a, offset})
#define MEMORY(address)  (&(struct copy_end){false, NULL, (uint64_t)(address)})

static int stretch(const struct copy_end *e, size_t bytes, uint64_t *ret)
{
    if (!e->is_array) {
        *ret = e->at;
        return CUDA_OK;
    }
    if (!ws_array_valid(e->array))
        return CUDA_INVALID_HANDLE;
    *ret = ws_array_stretch(e->array, e->at, bytes);
    return *ret ? CUDA_OK : CUDA_INVALID_VALUE;
}

static int copy(const struct copy_end *dst, const struct copy_end *src, size_t bytes,
                enum ws_copy_dir dir, void *stream, bool per_thread, bool async)
{
    uint64_t d, s;
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    int code = stretch(dst, bytes, &d);
    if (!code)
        code = stretch(src, bytes, &s);
    if (code)
        return code;
    return ws_drv_error(
        ws_work_copy(id, (void *)(uintptr_t)d, (const void *)(uintptr_t)s, bytes, dir, async));
}

WS_DRV_STREAM_API(cuMemcpyHtoA_v2, _ptds,
                  (struct ws_array * dst, size_t at, const void *src, size_t bytes),
                  (dst, at, src, bytes))
{
    return copy(ARRAY(dst, at), MEMORY((uintptr_t)src), bytes, WS_COPY_H2D, NULL, per_thread,
                false);
}
WS_DRV_STREAM_API(cuMemcpyHtoAAsync_v2, _ptsz,
                  (struct ws_array * dst, size_t at, const void *src, size_t bytes, void *stream),
                  (dst, at, src, bytes, stream))
{
    return copy(ARRAY(dst, at), MEMORY((uintptr_t)src), bytes, WS_COPY_H2D, stream, per_thread,
                true);
}
WS_DRV_STREAM_API(cuMemcpyAtoH_v2, _ptds,
                  (void *dst, struct ws_array *src, size_t at, size_t bytes), (dst, src, at, bytes))
{
    return copy(MEMORY((uintptr_t)dst), ARRAY(src, at), bytes, WS_COPY_D2H, NULL, per_thread,
                false);
}
WS_DRV_STREAM_API(cuMemcpyAtoHAsync_v2, _ptsz,
                  (void *dst, struct ws_array *src, size_t at, size_t bytes, void *stream),
                  (dst, src, at, bytes, stream))
{
    return copy(MEMORY((uintptr_t)dst), ARRAY(src, at), bytes, WS_COPY_D2H, stream, per_thread,
                true);
}
WS_DRV_STREAM_API(cuMemcpyDtoA_v2, _ptds,
                  (struct ws_array * dst, size_t at, uint64_t src, size_t bytes),
                  (dst, at, src, bytes))
{
    return copy(ARRAY(dst, at), MEMORY(src), bytes, WS_COPY_D2D, NULL, per_thread, false);
}
WS_DRV_STREAM_API(cuMemcpyAtoD_v2, _ptds,
                  (uint64_t dst, struct ws_array *src, size_t at, size_t bytes),
                  (dst, src, at, bytes))
{
    return copy(MEMORY(dst), ARRAY(src, at), bytes, WS_COPY_D2D, NULL, per_thread, false);
}
WS_DRV_STREAM_API(cuMemcpyAtoA_v2, _ptds,
                  (struct ws_array * dst, size_t dst_at, struct ws_array *src, size_t src_at,
                   size_t bytes),
                  (dst, dst_at, src, src_at, bytes))
{
    return copy(ARRAY(dst, dst_at), ARRAY(src, src_at), bytes, WS_COPY_D2D, NULL, per_thread,
                false);
}

WS_DRV_API(cuMemcpyHtoA, (struct ws_array * dst, unsigned at, const void *src, unsigned bytes))
{
    return cuMemcpyHtoA_v2(dst, at, src, bytes);
}
WS_DRV_API(cuMemcpyHtoAAsync,
           (struct ws_array * dst, unsigned at, const void *src, unsigned bytes, void *stream))
{
    return cuMemcpyHtoAAsync_v2(dst, at, src, bytes, stream);
}
WS_DRV_API(cuMemcpyAtoH, (void *dst, struct ws_array *src, unsigned at, unsigned bytes))
{
    return cuMemcpyAtoH_v2(dst, src, at, bytes);
}
WS_DRV_API(cuMemcpyAtoHAsync,
           (void *dst, struct ws_array *src, unsigned at, unsigned bytes, void *stream))
{
    return cuMemcpyAtoHAsync_v2(dst, src, at, bytes, stream);
}
WS_DRV_API(cuMemcpyAtoA, (struct ws_array * dst, unsigned dst_at, struct ws_array *src,
                          unsigned src_at, unsigned bytes))
{
    return cuMemcpyAtoA_v2(dst, dst_at, src, src_at, bytes);
}
