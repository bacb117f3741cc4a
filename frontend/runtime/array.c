// SPDX-License-Identifier: Apache-2.0
/* Chapter "Memory Management": arrays, and the copies that name them. (cudaMemcpy3D is in
 * memory.c.) */
#include <string.h>

#include "frontend/memory/copy_params.h"
#include "frontend/texture/array.h"
#include "frontend/facade.h"
#include "frontend/stream/work.h"

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
    if (!ret || !channels)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = describe(channels, &e, flags, &d);
    return ws_rt_record(code ? code : ws_mipmap_new(ws_ctx_current(), &d, n_levels, ret));
}

WS_RT_API(cudaGetMipmappedArrayLevel,
          (struct ws_array * *ret, const struct ws_mipmap *m, unsigned level))
{
    WS_RT_ENTER(device);
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
    if (!a)
        return CUDA_OK;
    return ws_rt_record(ws_array_valid(a) ? ws_array_free(a) : CUDA_INVALID_VALUE);
}
WS_RT_API(cudaFreeMipmappedArray, (struct ws_mipmap * m))
{
    WS_RT_ENTER(device);
    if (!m)
        return CUDA_OK;
    return ws_rt_record(ws_mipmap_valid(m) ? ws_mipmap_free(m) : CUDA_INVALID_VALUE);
}

/* ---- what an array is ---- */

WS_RT_API(cudaArrayGetInfo, (struct cuda_channel_desc * channels, struct cuda_extent *e,
                             unsigned *flags, const struct ws_array *a))
{
    WS_RT_ENTER(device);
    if (channels)
        memset(channels, 0, sizeof(*channels));
    if (e)
        memset(e, 0, sizeof(*e));
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
    if (!ret || !ws_array_valid(a))
        return ws_rt_record(CUDA_INVALID_VALUE);
    ws_texel_channels(&a->desc.texel, ret);
    return CUDA_OK;
}

/* Planes and sparse properties are of formats and arrays that can't be made here. */
static int answer_none(bool valid)
{
    WS_RT_ENTER(device);
    return ws_rt_record(valid ? CUDA_NOT_SUPPORTED : CUDA_INVALID_VALUE);
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
struct array_place {
    const struct ws_array *array;
    size_t x, y; /* in bytes, rows; of arrays */
    const void *p;
    size_t pitch;
};

static int side(const struct array_place *e, const struct ws_copy_box *b, struct ws_copy_side *ret)
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

static int copy_2d(const struct array_place *dst, const struct array_place *src, size_t width,
                   size_t height, int kind, void *stream, bool per_thread, bool async)
{
    struct ws_copy_box box = {width, height, 1};
    struct ws_copy_side d, s;
    enum ws_copy_dir dir;
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    int code = ws_copy_direction(kind, &dir);
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

static int to_array_2d(const struct ws_array *dst, size_t x, size_t y, const void *src,
                       size_t pitch, size_t width, size_t height, int kind, void *stream,
                       bool per_thread, bool async)
{
    NEED(dst);
    return copy_2d(&(struct array_place){.array = dst, .x = x, .y = y},
                   &(struct array_place){.p = src, .pitch = pitch}, width, height, kind, stream,
                   per_thread, async);
}
WS_RT_STREAM_API(cudaMemcpy2DToArray, _ptds,
                 (const struct ws_array *dst, size_t x, size_t y, const void *src, size_t pitch,
                  size_t width, size_t height, int kind),
                 (dst, x, y, src, pitch, width, height, kind))
{
    return to_array_2d(dst, x, y, src, pitch, width, height, kind, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemcpy2DToArrayAsync, _ptsz,
                 (const struct ws_array *dst, size_t x, size_t y, const void *src, size_t pitch,
                  size_t width, size_t height, int kind, void *stream),
                 (dst, x, y, src, pitch, width, height, kind, stream))
{
    return to_array_2d(dst, x, y, src, pitch, width, height, kind, stream, per_thread, true);
}

static int from_array_2d(void *dst, size_t pitch, const struct ws_array *src, size_t x, size_t y,
                         size_t width, size_t height, int kind, void *stream, bool per_thread,
                         bool async)
{
    NEED(src);
    return copy_2d(&(struct array_place){.p = dst, .pitch = pitch},
                   &(struct array_place){.array = src, .x = x, .y = y}, width, height, kind, stream,
                   per_thread, async);
}
WS_RT_STREAM_API(cudaMemcpy2DFromArray, _ptds,
                 (void *dst, size_t pitch, const struct ws_array *src, size_t x, size_t y,
                  size_t width, size_t height, int kind),
                 (dst, pitch, src, x, y, width, height, kind))
{
    return from_array_2d(dst, pitch, src, x, y, width, height, kind, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemcpy2DFromArrayAsync, _ptsz,
                 (void *dst, size_t pitch, const struct ws_array *src, size_t x, size_t y,
                  size_t width, size_t height, int kind, void *stream),
                 (dst, pitch, src, x, y, width, height, kind, stream))
{
    return from_array_2d(dst, pitch, src, x, y, width, height, kind, stream, per_thread, true);
}

WS_RT_STREAM_API(cudaMemcpy2DArrayToArray, _ptds,
                 (const struct ws_array *dst, size_t dst_x, size_t dst_y,
                  const struct ws_array *src, size_t src_x, size_t src_y, size_t width,
                  size_t height, int kind),
                 (dst, dst_x, dst_y, src, src_x, src_y, width, height, kind))
{
    NEED(dst);
    NEED(src);
    return copy_2d(&(struct array_place){.array = dst, .x = dst_x, .y = dst_y},
                   &(struct array_place){.array = src, .x = src_x, .y = src_y}, width, height, kind,
                   NULL, per_thread, false);
}

/* ---- copies of so many bytes, running on from row to row ---- */

/* @e: its first byte's address in @ret. */
static int stretch(const struct array_place *e, size_t bytes, uint64_t *ret)
{
    uint64_t offset;
    if (!e->array) {
        *ret = (uintptr_t)e->p;
        return CUDA_OK;
    }
    if (!ws_array_valid(e->array))
        return CUDA_INVALID_HANDLE;
    if (e->x > e->array->memory.row_bytes || e->y > e->array->memory.height)
        return CUDA_INVALID_VALUE;
    offset = e->y * e->array->memory.row_bytes + e->x;
    *ret = ws_array_stretch(e->array, offset, bytes);
    return *ret ? CUDA_OK : CUDA_INVALID_VALUE;
}

static int copy_bytes(const struct array_place *dst, const struct array_place *src, size_t bytes,
                      int kind, void *stream, bool per_thread, bool async)
{
    uint64_t d, s;
    enum ws_copy_dir dir;
    WS_RT_ENTER(device);
    WS_RT_STREAM(id, stream, per_thread, device);
    int code = ws_copy_direction(kind, &dir);
    if (!code)
        code = stretch(dst, bytes, &d);
    if (!code)
        code = stretch(src, bytes, &s);
    if (code)
        return ws_rt_record(code);
    return WS_RT_DONE(
        ws_work_copy(id, (void *)(uintptr_t)d, (const void *)(uintptr_t)s, bytes, dir, async));
}

WS_RT_STREAM_API(cudaMemcpyToArray, _ptds,
                 (const struct ws_array *dst, size_t x, size_t y, const void *src, size_t bytes,
                  int kind),
                 (dst, x, y, src, bytes, kind))
{
    NEED(dst);
    return copy_bytes(&(struct array_place){.array = dst, .x = x, .y = y},
                      &(struct array_place){.p = src}, bytes, kind, NULL, per_thread, false);
}
WS_RT_STREAM_API(cudaMemcpyToArrayAsync, _ptsz,
                 (const struct ws_array *dst, size_t x, size_t y, const void *src, size_t bytes,
                  int kind, void *stream),
                 (dst, x, y, src, bytes, kind, stream))
{
    NEED(dst);
    return copy_bytes(&(struct array_place){.array = dst, .x = x, .y = y},
                      &(struct array_place){.p = src}, bytes, kind, stream, per_thread, true);
}
WS_RT_STREAM_API(cudaMemcpyFromArray, _ptds,
                 (void *dst, const struct ws_array *src, size_t x, size_t y, size_t bytes,
                  int kind),
                 (dst, src, x, y, bytes, kind))
{
    NEED(src);
    return copy_bytes(&(struct array_place){.p = dst},
                      &(struct array_place){.array = src, .x = x, .y = y}, bytes, kind, NULL,
                      per_thread, false);
}
WS_RT_STREAM_API(cudaMemcpyFromArrayAsync, _ptsz,
                 (void *dst, const struct ws_array *src, size_t x, size_t y, size_t bytes, int kind,
                  void *stream),
                 (dst, src, x, y, bytes, kind, stream))
{
    NEED(src);
    return copy_bytes(&(struct array_place){.p = dst},
                      &(struct array_place){.array = src, .x = x, .y = y}, bytes, kind, stream,
                      per_thread, true);
}
WS_RT_STREAM_API(cudaMemcpyArrayToArray, _ptds,
                 (const struct ws_array *dst, size_t dst_x, size_t dst_y,
                  const struct ws_array *src, size_t src_x, size_t src_y, size_t bytes, int kind),
                 (dst, dst_x, dst_y, src, src_x, src_y, bytes, kind))
{
    NEED(dst);
    NEED(src);
    return copy_bytes(&(struct array_place){.array = dst, .x = dst_x, .y = dst_y},
                      &(struct array_place){.array = src, .x = src_x, .y = src_y}, bytes, kind,
                      NULL, per_thread, false);
}
