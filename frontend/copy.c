// SPDX-License-Identifier: Apache-2.0
/* A box is copied in the fewest pieces that its layout allows: whole if it is contiguous on both sides, else slice by slice or row
 * by row. Reading rows into pageable memory would wait for each: then the stretch that holds all rows is read at once into a
 * buffer, and the rows are taken from there, as long as the stretch isn't much larger than what is wanted. */
#include "frontend/copy.h"

#include <stdlib.h>
#include <string.h>

enum { STRETCH_MAX = 4 }; /* times the bytes wanted */

static bool side_fits(const struct ws_copy_side *s, const struct ws_copy_box *b)
{
    uint64_t rows, slices, last;
    if ((b->height > 1 || b->depth > 1) && s->pitch_bytes < b->width_bytes)
        return false;
    if (__builtin_mul_overflow(s->pitch_bytes, b->height - 1, &rows) ||
        __builtin_add_overflow(rows, b->width_bytes, &rows))
        return false;
    if (b->depth > 1 && s->slice_bytes < rows)
        return false;
    return !__builtin_mul_overflow(s->slice_bytes, b->depth - 1, &slices) &&
           !__builtin_add_overflow(rows, slices, &last) &&
           !__builtin_add_overflow(s->address, last, &last);
}

static bool is_host(uint64_t address)
{
    struct ws_mem_info m;
    ws_session_mem_find(address, &m);
    return m.kind == WS_MEM_NONE;
}

static bool is_device(uint64_t address)
{
    struct ws_mem_info m;
    ws_session_mem_find(address, &m);
    return m.kind == WS_MEM_DEVICE || m.kind == WS_MEM_VARIABLE;
}

/* @src on the device, @dst pageable: one read. */
static ws_err read_stretch(uint64_t stream, uint8_t *dst, uint64_t dst_pitch, uint64_t src,
                           uint64_t src_pitch, uint64_t width, uint64_t height,
                           enum ws_copy_dir dir)
{
    uint64_t stretch = src_pitch * (height - 1) + width;
    uint8_t *buffer = malloc(stretch);
    if (!buffer)
        return WS__ERROR__OUT_OF_MEMORY;
    ws_err r = ws_session_copy(stream, buffer, (const void *)(uintptr_t)src, stretch, dir, false);
    for (uint64_t y = 0; !r && y < height; y++)
        memcpy(dst + y * dst_pitch, buffer + y * src_pitch, width);
    free(buffer);
    return r;
}

static ws_err copy_slice(uint64_t stream, uint64_t dst, uint64_t dst_pitch, uint64_t src,
                         uint64_t src_pitch, uint64_t width, uint64_t height, enum ws_copy_dir dir,
                         bool async)
{
    if (height > 1 && dst_pitch == width && src_pitch == width) {
        width *= height;
        height = 1;
    }
    if (height > 1 && src_pitch / STRETCH_MAX <= width && is_host(dst) && is_device(src))
        return read_stretch(stream, (uint8_t *)(uintptr_t)dst, dst_pitch, src, src_pitch, width,
                            height, dir);
    for (uint64_t y = 0; y < height; y++) {
        bool last = y == height - 1;
        ws_err r = ws_session_copy(stream, (void *)(uintptr_t)(dst + y * dst_pitch),
                                   (const void *)(uintptr_t)(src + y * src_pitch), width, dir,
                                   async || !last);
        if (r)
            return r;
    }
    return WS__ERROR__OK;
}

ws_err ws_copy_box(uint64_t stream, const struct ws_copy_side *dst, const struct ws_copy_side *src,
                   const struct ws_copy_box *box, enum ws_copy_dir dir, bool async)
{
    if (!box->width_bytes || !box->height || !box->depth)
        return ws_session_copy(stream, NULL, NULL, 0, dir, async); /* checks the stream */
    if (!side_fits(dst, box) || !side_fits(src, box))
        return WS__ERROR__INVALID_VALUE;
    uint64_t height = box->height, depth = box->depth;
    if (depth > 1 && dst->slice_bytes == dst->pitch_bytes * height &&
        src->slice_bytes == src->pitch_bytes * height) {
        height *= depth;
        depth = 1;
    }
    for (uint64_t z = 0; z < depth; z++) {
        ws_err r = copy_slice(stream, dst->address + z * dst->slice_bytes, dst->pitch_bytes,
                              src->address + z * src->slice_bytes, src->pitch_bytes,
                              box->width_bytes, height, dir, async || z < depth - 1);
        if (r)
            return r;
    }
    return WS__ERROR__OK;
}

ws_err ws_fill_box(uint64_t stream, const struct ws_copy_side *dst, uint32_t value,
                   uint32_t value_bytes, const struct ws_copy_box *box, bool async)
{
    if (!box->width_bytes || !box->height || !box->depth)
        return ws_session_fill(stream, dst->address, value, value_bytes, 0, 0, 0, async);
    if (!side_fits(dst, box))
        return WS__ERROR__INVALID_VALUE;
    for (uint64_t z = 0; z < box->depth; z++) {
        ws_err r = ws_session_fill(stream, dst->address + z * dst->slice_bytes, value, value_bytes,
                                   box->width_bytes, box->height, dst->pitch_bytes,
                                   async || z < box->depth - 1);
        if (r)
            return r;
    }
    return WS__ERROR__OK;
}
