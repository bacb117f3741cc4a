// SPDX-License-Identifier: Apache-2.0
/* CUDA Runtime, "Memory Management": arrays, and the copies that name them (cudaMemcpy3D is in rt_memory.c). */
#include <string.h>

#include "frontend/array.h"
#include "frontend/facade.h"
#include "frontend/work.h"

enum { ALIGNMENT = 512 };

/* ---- arrays ---- */

static int describe(const struct cuda_channel_desc *channels, const struct cuda_extent *e,
                    unsigned flags, struct ws_array_desc *ret)
{
    *ret = (struct ws_array_desc){
        .width = e->width, .height = e->height, .depth = e->depth, .flags = flags};
    return ws_texel_of_channels(channels, &ret->texel);
}

static int array_new(struct ws_array **ret, const struct cuda_channel_desc *channels,
                     const struct cuda_extent *e, unsigned flags)
{
    struct ws_array_desc d;
    WS_RT_ENTER(device);
    (void)device;
    if (!ret || !channels)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = describe(channels, e, flags, &d);
    return ws_rt_record(code ? code : ws_array_new(ws_ctx_current(), &d, ret));
}

WS_RT_API(cudaMallocArray, (struct ws_array * *ret, const struct cuda_channel_desc *channels,
                            size_t width, size_t height, unsigned flags))
{
    if (flags & (WS_ARRAY_LAYERED | WS_ARRAY_CUBEMAP))
        return ws_rt_record(CUDA_INVALID_VALUE);
    return array_new(ret, channels, &(struct cuda_extent){width, height, 0}, flags);
}

WS_RT_API(cudaMalloc3DArray, (struct ws_array * *ret, const struct cuda_channel_desc *channels,
                              struct cuda_extent e, unsigned flags))
{
    return array_new(ret, channels, &e, flags);
}

WS_RT_API(cudaMallocMipmappedArray,
          (struct ws_mipmap * *ret, const struct cuda_channel_desc *channels, struct cuda_extent e,
           unsigned n_levels, unsigned flags))
{
    struct ws_array_desc d;
    WS_RT_ENTER(device);
    (void)device;
    if (!ret || !channels)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = describe(channels, &e, flags, &d);
    return ws_rt_record(code ? code : ws_mipmap_new(ws_ctx_current(), &d, n_levels, ret));
}

WS_RT_API(cudaGetMipmappedArrayLevel,
          (struct ws_array * *ret, const struct ws_mipmap *m, unsigned level))
{
    WS_RT_ENTER(device);
    (void)device;
    if (!ws_mipmap_valid(m))
        return ws_rt_record(CUDA_INVALID_HANDLE);
    if (!ret || level >= m->n_levels)
        return ws_rt_record(CUDA_INVALID_VALUE);
    *ret = m->level[level];
    return CUDA_OK;
}

WS_RT_API(cudaFreeArray, (struct ws_array * a))
{
    WS_RT_ENTER(device);
    (void)device;
    if (!a)
        return CUDA_OK;
    return ws_rt_record(ws_array_valid(a) ? ws_array_free(a) : CUDA_INVALID_VALUE);
}
WS_RT_API(cudaFreeMipmappedArray, (struct ws_mipmap * m))
{
    WS_RT_ENTER(device);
    (void)device;
    if (!m)
        return CUDA_OK;
    return ws_rt_record(ws_mipmap_valid(m) ? ws_mipmap_free(m) : CUDA_INVALID_VALUE);
}

/* ---- what an array is ---- */

WS_RT_API(cudaArrayGetInfo, (struct cuda_channel_desc * channels, struct cuda_extent *e,
                             unsigned *flags, const struct ws_array *a))
{
    WS_RT_ENTER(device);
    (void)device;
    if (channels)
        memset(channels, 0, sizeof *channels);
    if (e)
        memset(e, 0, sizeof *e);
    if (flags)
        *flags = 0;
    if (!ws_array_valid(a))
        return ws_rt_record(CUDA_INVALID_VALUE);
    if (channels)
        ws_texel_channels(&a->desc.texel, channels);
    if (e)
        *e = (struct cuda_extent){a->desc.width, a->desc.height, a->desc.depth};
    if (flags)
        *flags = a->desc.flags;
    return CUDA_OK;
}

WS_RT_API(cudaGetChannelDesc, (struct cuda_channel_desc * ret, const struct ws_array *a))
{
    WS_RT_ENTER(device);
    (void)device;
    if (!ret || !ws_array_valid(a))
        return ws_rt_record(CUDA_INVALID_VALUE);
    ws_texel_channels(&a->desc.texel, ret);
    return CUDA_OK;
}

/* CUDA answers this for arrays made with cudaArrayDeferredMapping only, which there are none of here; and planes and sparse
 * properties only for formats and arrays that can't be made. */
static int answer_none(bool valid)
{
    WS_RT_ENTER(device);
    (void)device;
    (void)valid;
    return ws_rt_record(CUDA_INVALID_VALUE);
}
WS_RT_API(cudaArrayGetPlane, (void *ret, const struct ws_array *a, unsigned plane))
{
    return answer_none(ret && plane < 3 && ws_array_valid(a));
}
WS_RT_API(cudaArrayGetSparseProperties, (void *ret, const struct ws_array *a))
{
    return answer_none(ret && ws_array_valid(a));
}
WS_RT_API(cudaMipmappedArrayGetSparseProperties, (void *ret, const struct ws_mipmap *m))
{
    return answer_none(ret && ws_mipmap_valid(m));
}

static int memory_needed(struct cuda_array_memory *ret, bool valid, uint64_t bytes, int of)
{
    WS_RT_ENTER(device);
    (void)device;
    if (!ret || !valid)
        return ws_rt_record(CUDA_INVALID_VALUE);
    if (!ws_session_device(of))
        return ws_rt_record(CUDA_INVALID_DEVICE);
    *ret = (struct cuda_array_memory){.size = bytes, .alignment = ALIGNMENT};
    return CUDA_OK;
}
WS_RT_API(cudaArrayGetMemoryRequirements,
          (struct cuda_array_memory * ret, const struct ws_array *a, int device))
{
    bool valid = ws_array_valid(a);
    return memory_needed(ret, valid, valid ? ws_array_bytes(a) : 0, device);
}
WS_RT_API(cudaMipmappedArrayGetMemoryRequirements,
          (struct cuda_array_memory * ret, const struct ws_mipmap *m, int device))
{
    bool valid = ws_mipmap_valid(m);
    return memory_needed(ret, valid, valid ? m->bytes : 0, device);
}

/* ---- copies of boxes ---- */

/* A side of a copy: an array, or else pitched memory. */
struct end {
    const struct ws_array *array;
    size_t x, y; /* in bytes, rows; of arrays */
    const void *p;
    size_t pitch;
};

static int side(const struct end *e, const struct ws_copy_box *b, struct ws_copy_side *ret)
{
    if (e->array) {
        if (!ws_array_valid(e->array))
            return CUDA_INVALID_HANDLE;
        return ws_array_side(e->array, e->x, e->y, 0, b, ret) ? CUDA_OK : CUDA_INVALID_VALUE;
    }
    if (b->height && b->width_bytes > e->pitch)
        return CUDA_INVALID_PITCH;
    *ret = (struct ws_copy_side){(uintptr_t)e->p, e->pitch, 0};
    return CUDA_OK;
}

static int copy_2d(const struct end *dst, const struct end *src, size_t width, size_t height,
                   int kind, void *stream, bool per_thread, bool async)
{
    struct ws_copy_box box = {width, height, 1};
    struct ws_copy_side d, s;
    enum ws_copy_dir dir;
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    int code = ws_rt_direction(kind, &dir);
    if (!code)
        code = side(dst, &box, &d);
    if (!code)
        code = side(src, &box, &s);
    if (code)
        return ws_rt_record(code);
    return WS_RT_DONE(ws_work_copy_box(id, &d, &s, &box, dir, async));
}

/* A null array is no array, and not the memory that side() would take it for. */
#define NEED(array)                                                                                \
    if (!(array))                                                                                  \
    return ws_rt_record(CUDA_INVALID_VALUE)

#define TO_ARRAY_2D(name, suffix, stream_param, stream_arg, stream, async)                         \
    WS_STREAM_API(name, suffix,                                                                    \
                  (const struct ws_array *dst, size_t x, size_t y, const void *src, size_t pitch,  \
                   size_t width, size_t height, int kind stream_param),                            \
                  (dst, x, y, src, pitch, width, height, kind stream_arg))                         \
    {                                                                                              \
        NEED(dst);                                                                                 \
        return copy_2d(&(struct end){.array = dst, .x = x, .y = y},                                \
                       &(struct end){.p = src, .pitch = pitch}, width, height, kind, stream,       \
                       per_thread, async);                                                         \
    }
