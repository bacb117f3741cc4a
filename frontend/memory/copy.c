// SPDX-License-Identifier: Apache-2.0
/* A box is brought to as few rows as possible: rows without a gap between them on both sides become
 * one row, and slices without a gap become more rows. So a copy of a whole image is mostly a copy
 * of one range. */
#include "frontend/memory/copy.h"

#include "frontend/session/box.h"

/* The sides were checked. */
static void simplify(struct ws_copy_side *dst, struct ws_copy_side *src, struct ws_copy_box *b)
{
    bool rows_join = b->height == 1 ||
                     (dst->pitch_bytes == b->width_bytes && src->pitch_bytes == b->width_bytes);
    if (rows_join) { /* the slices become the rows */
        b->width_bytes *= b->height;
        b->height = b->depth;
        b->depth = 1;
        dst->pitch_bytes = dst->slice_bytes;
        src->pitch_bytes = src->slice_bytes;
        if (b->height > 1 && dst->pitch_bytes == b->width_bytes &&
            src->pitch_bytes == b->width_bytes) {
            b->width_bytes *= b->height;
            b->height = 1;
        }
    } else if (b->depth > 1 && dst->slice_bytes == dst->pitch_bytes * b->height &&
               src->slice_bytes == src->pitch_bytes * b->height) {
        b->height *= b->depth;
        b->depth = 1;
    }
}

ws_err ws_copy_box(uint64_t stream, const struct ws_copy_side *dst, const struct ws_copy_side *src,
                   const struct ws_copy_box *box, enum ws_copy_dir dir, bool async)
{
    struct ws_copy_side d = *dst, s = *src;
    struct ws_copy_box b = *box;
    uint64_t reach;
    if (!box->width_bytes || !box->height || !box->depth)
        return ws_session_copy(stream, NULL, NULL, 0, dir, async); /* checks the stream */
    if (!ws_box_reach(dst, box, &reach) || !ws_box_reach(src, box, &reach) ||
        !ws_box_bytes(box, &reach))
        return WS__ERROR__INVALID_VALUE;
    simplify(&d, &s, &b);
    if (b.height == 1 && b.depth == 1)
        return ws_session_copy(stream, (void *)(uintptr_t)d.address,
                               (const void *)(uintptr_t)s.address, b.width_bytes, dir, async);
    return ws_session_copy_box(stream, &d, &s, &b, dir, async);
}

ws_err ws_fill_box(uint64_t stream, const struct ws_copy_side *dst, uint32_t value,
                   uint32_t value_bytes, const struct ws_copy_box *box, bool async)
{
    uint64_t reach;
    if (!box->width_bytes || !box->height || !box->depth)
        return ws_session_fill(stream, dst->address, value, value_bytes, 0, 0, 0, async);
    if (!ws_box_reach(dst, box, &reach))
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
