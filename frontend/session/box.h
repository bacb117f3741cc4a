// SPDX-License-Identifier: Apache-2.0
/* frontend/session/box.h - cuts a box of rows and slices into pieces that fit a buffer, where their
 * rows lie one after the other. Threads: any. */
#ifndef WS_FRONTEND_SESSION_BOX_H
#define WS_FRONTEND_SESSION_BOX_H

#include "frontend/session/session.h"

struct ws_box_cursor { /* initialise .box; at least one byte */
    struct ws_copy_box box;
    uint64_t x, y, z;
};
struct ws_box_piece {
    uint64_t x, y, z; /* where it starts: bytes, rows, slices */
    struct ws_copy_box box;
    uint64_t bytes;
};
/* The next piece of at most @limit > 0 bytes: whole slices, else rows of a slice, else a part of a
 * row. Return: false at the end. */
bool ws_box_next(struct ws_box_cursor *c, uint64_t limit, struct ws_box_piece *ret);
/* Address of the piece's first byte. */
static inline uint64_t ws_box_address(const struct ws_copy_side *s, const struct ws_box_piece *p)
{
    return s->address + p->z * s->slice_bytes + p->y * s->pitch_bytes + p->x;
}
/* Between a side in this process's memory and a buffer of the piece's bytes. */
void ws_box_pack(uint8_t *dst, const struct ws_copy_side *src, const struct ws_box_piece *p);
void ws_box_unpack(const struct ws_copy_side *dst, const uint8_t *src,
                   const struct ws_box_piece *p);
/* Bytes from a side's first to behind its last. Return: false if rows or slices overlap or wrap. */
bool ws_box_reach(const struct ws_copy_side *s, const struct ws_copy_box *b, uint64_t *ret);
bool ws_box_bytes(const struct ws_copy_box *b, uint64_t *ret);

#endif
