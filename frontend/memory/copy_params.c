// SPDX-License-Identifier: Apache-2.0
/* From the two ways in which CUDA's programs describe a copy of a box (cudaMemcpy3DParms,
 * CUDA_MEMCPY3D) to the sides, the box and the direction that the session knows. */
#include "frontend/memory/copy_params.h"

#include "frontend/errors.h"
#include "frontend/texture/array.h"

int ws_copy_direction(int kind, enum ws_copy_dir *ret)
{
    static const enum ws_copy_dir dirs[] = {
        [WS_CUDA_COPY_H2H] = WS_COPY_H2H,      [WS_CUDA_COPY_H2D] = WS_COPY_H2D,
        [WS_CUDA_COPY_D2H] = WS_COPY_D2H,      [WS_CUDA_COPY_D2D] = WS_COPY_D2D,
        [WS_CUDA_COPY_DEFAULT] = WS_COPY_AUTO,
    };
    if (kind < WS_CUDA_COPY_H2H || kind > WS_CUDA_COPY_DEFAULT)
        return CUDA_INVALID_DIRECTION;
    *ret = dirs[kind];
    return CUDA_OK;
}

/* ---- the runtime's description ---- */

/* A side of a copy of boxes in linear memory: its first byte. */
static int pitched_side(const struct cuda_pitched_ptr *p, const struct cuda_pos *pos,
                        const struct ws_copy_box *box, struct ws_copy_side *ret)
{
    size_t slice, y, z, at;
    if (box->width_bytes > p->pitch)
        return CUDA_INVALID_PITCH;
    if (__builtin_mul_overflow(p->pitch, p->ysize, &slice) ||
        __builtin_mul_overflow(p->pitch, pos->y, &y) || __builtin_mul_overflow(slice, pos->z, &z) ||
        __builtin_add_overflow(y, z, &at) || __builtin_add_overflow(at, pos->x, &at) ||
        __builtin_add_overflow(at, (size_t)(uintptr_t)p->ptr, &at))
        return CUDA_INVALID_VALUE;
    *ret = (struct ws_copy_side){at, p->pitch, slice};
    return CUDA_OK;
}

/* In an array, positions count texels. */
static int array_side(const struct ws_array *a, const struct cuda_pos *pos,
                      const struct ws_copy_box *box, struct ws_copy_side *ret)
{
    size_t x;
    bool ok = !__builtin_mul_overflow(pos->x, (size_t)a->desc.texel.bytes, &x) &&
              ws_array_side(a, x, pos->y, pos->z, box, ret);
    return ok ? CUDA_OK : CUDA_INVALID_VALUE;
}

/* The extent's width counts bytes, or texels as soon as an array takes part. */
int ws_copy_sides_rt(const struct cuda_memcpy_3d_parms *p, struct ws_copy_side *dst,
                     struct ws_copy_side *src, struct ws_copy_box *box, enum ws_copy_dir *dir)
{
    const struct ws_array *da = p->dstArray, *sa = p->srcArray;
    *box = (struct ws_copy_box){p->extent.width, p->extent.height, p->extent.depth};
    int code = ws_copy_direction(p->kind, dir);
    if (code)
        return code;
    if ((da && !ws_array_valid(da)) || (sa && !ws_array_valid(sa)))
        return CUDA_INVALID_HANDLE;
    if ((da && p->dstPtr.ptr) || (sa && p->srcPtr.ptr) ||
        (da && sa && da->desc.texel.bytes != sa->desc.texel.bytes))
        return CUDA_INVALID_VALUE;
    uint64_t unit = da ? da->desc.texel.bytes : sa ? sa->desc.texel.bytes : 1;
    if (__builtin_mul_overflow(box->width_bytes, unit, &box->width_bytes))
        return CUDA_INVALID_VALUE;
    code =
        da ? array_side(da, &p->dstPos, box, dst) : pitched_side(&p->dstPtr, &p->dstPos, box, dst);
    if (code)
        return code;
    return sa ? array_side(sa, &p->srcPos, box, src)
              : pitched_side(&p->srcPtr, &p->srcPos, box, src);
}

/* ---- the driver's description ---- */

/* One side of a 2-D or 3-D copy. */
static int box_side(int type, const void *host, uint64_t device, const struct ws_array *array,
                    size_t pitch, size_t height, size_t x, size_t y, size_t z, size_t lod,
                    const struct ws_copy_box *box, struct ws_copy_side *ret)
{
    if (type < WS_CU_MEMORY_HOST || type > WS_CU_MEMORY_UNIFIED || lod)
        return CUDA_INVALID_VALUE;
    if (type == WS_CU_MEMORY_ARRAY) {
        if (!ws_array_valid(array))
            return CUDA_INVALID_HANDLE;
        return ws_array_side(array, x, y, z, box, ret) ? CUDA_OK : CUDA_INVALID_VALUE;
    }
    uint64_t slice, at, row, first = type == WS_CU_MEMORY_HOST ? (uintptr_t)host : device;
    if (__builtin_mul_overflow(pitch, height, &slice) || __builtin_mul_overflow(slice, z, &at) ||
        __builtin_mul_overflow(pitch, y, &row) || __builtin_add_overflow(at, row, &at) ||
        __builtin_add_overflow(at, x, &at) || __builtin_add_overflow(at, first, &at))
        return CUDA_INVALID_VALUE;
    *ret = (struct ws_copy_side){at, pitch, slice};
    return CUDA_OK;
}

static enum ws_copy_dir box_dir(int dst, int src)
{
    if (dst == WS_CU_MEMORY_UNIFIED || src == WS_CU_MEMORY_UNIFIED)
        return WS_COPY_AUTO;
    if (dst == WS_CU_MEMORY_HOST)
        return src == WS_CU_MEMORY_HOST ? WS_COPY_H2H : WS_COPY_D2H;
    return src == WS_CU_MEMORY_HOST ? WS_COPY_H2D : WS_COPY_D2D;
}

int ws_copy_sides_drv(const struct cu_memcpy_3d *m, struct ws_copy_side *dst,
                      struct ws_copy_side *src, struct ws_copy_box *box, enum ws_copy_dir *dir)
{
    *box = (struct ws_copy_box){m->WidthInBytes, m->Height, m->Depth};
    *dir = box_dir(m->dstMemoryType, m->srcMemoryType);
    int code = box_side(m->dstMemoryType, m->dstHost, m->dstDevice, m->dstArray, m->dstPitch,
                        m->dstHeight, m->dstXInBytes, m->dstY, m->dstZ, m->dstLOD, box, dst);
    return code ? code
                : box_side(m->srcMemoryType, m->srcHost, m->srcDevice, m->srcArray, m->srcPitch,
                           m->srcHeight, m->srcXInBytes, m->srcY, m->srcZ, m->srcLOD, box, src);
}
