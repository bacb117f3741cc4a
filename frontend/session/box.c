// SPDX-License-Identifier: Apache-2.0
#include "frontend/session/box.h"

#include <string.h>

bool ws_box_bytes(const struct ws_copy_box *b, uint64_t *ret)
{
    return !__builtin_mul_overflow(b->width_bytes, b->height, ret) &&
           !__builtin_mul_overflow(*ret, b->depth, ret);
}

bool ws_box_reach(const struct ws_copy_side *s, const struct ws_copy_box *b, uint64_t *ret)
{
    uint64_t rows = 0, slices = 0, end;
    if (b->height > 1 && (s->pitch_bytes < b->width_bytes ||
                          __builtin_mul_overflow(s->pitch_bytes, b->height - 1, &rows)))
        return false;
    if (__builtin_add_overflow(rows, b->width_bytes, &rows))
        return false;
    if (b->depth > 1 &&
        (s->slice_bytes < rows || __builtin_mul_overflow(s->slice_bytes, b->depth - 1, &slices)))
        return false;
    return !__builtin_add_overflow(rows, slices, ret) &&
           !__builtin_add_overflow(s->address, *ret, &end);
}

bool ws_box_next(struct ws_box_cursor *c, uint64_t limit, struct ws_box_piece *ret)
{
    uint64_t width = c->box.width_bytes, height = c->box.height, slice = width * height;
    if (c->z == c->box.depth)
        return false;
    *ret = (struct ws_box_piece){.x = c->x, .y = c->y, .z = c->z, .box = {width, 1, 1}};
    if (!c->x && !c->y && slice <= limit) {
        ret->box.height = height;
        ret->box.depth = WS_MIN(c->box.depth - c->z, limit / slice);
        c->z += ret->box.depth;
    } else if (!c->x && width <= limit) {
        ret->box.height = WS_MIN(height - c->y, limit / width);
        c->y += ret->box.height;
    } else {
        ret->box.width_bytes = WS_MIN(width - c->x, limit);
        c->x += ret->box.width_bytes;
        if (c->x == width) {
            c->x = 0;
            c->y++;
        }
    }
    if (c->y == height) {
        c->y = 0;
        c->z++;
    }
    ret->bytes = ret->box.width_bytes * ret->box.height * ret->box.depth;
    return true;
}

void ws_box_pack(uint8_t *dst, const struct ws_copy_side *src, const struct ws_box_piece *p)
{
    uint64_t width = p->box.width_bytes;
    const uint8_t *from = (const uint8_t *)(uintptr_t)ws_box_address(src, p);
    for (uint64_t z = 0; z < p->box.depth; z++)
        for (uint64_t y = 0; y < p->box.height; y++, dst += width)
            memcpy(dst, from + z * src->slice_bytes + y * src->pitch_bytes, width);
}

void ws_box_unpack(const struct ws_copy_side *dst, const uint8_t *src, const struct ws_box_piece *p)
{
    uint64_t width = p->box.width_bytes;
    uint8_t *to = (uint8_t *)(uintptr_t)ws_box_address(dst, p);
    for (uint64_t z = 0; z < p->box.depth; z++)
        for (uint64_t y = 0; y < p->box.height; y++, src += width)
            memcpy(to + z * dst->slice_bytes + y * dst->pitch_bytes, src, width);
}
