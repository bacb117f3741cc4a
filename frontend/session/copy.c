// SPDX-License-Identifier: Apache-2.0
/* Copies and fills. What the two addresses are decides how a copy is done; the direction that the
 * program named is only checked. A range is a box of one row, so there is one mechanism. If the
 * daemon can reach both sides, the copy is one command. Otherwise the data travels in pieces
 * (box.h) with their rows joined: inside commands, through the staging segment, or over TCP in
 * frames. */
#include <stdlib.h>
#include <string.h>

#include "frontend/session/box.h"
#include "frontend/session/private.h"

enum side { SIDE_BAD, SIDE_HOST, SIDE_PINNED, SIDE_DEVICE };

static enum side side_of(uint64_t address, uint64_t bytes, bool write)
{
    struct ws_mem_info m;
    ws_session_mem_find(address, &m);
    bool inside = m.kind != WS_MEM_NONE && bytes <= m.bytes - (address - m.base);
    if (m.kind == WS_MEM_PINNED)
        return inside ? SIDE_PINNED : SIDE_HOST;
    while (m.kind == WS_MEM_VIRTUAL && !inside && !(write && m.readonly)) { /* it may go on */
        bytes -= m.bytes - (address - m.base);
        address = m.base + m.bytes;
        ws_session_mem_find(address, &m);
        inside = m.kind == WS_MEM_VIRTUAL && bytes <= m.bytes;
    }
    if (m.kind != WS_MEM_NONE)
        return inside && !(write && m.readonly) ? SIDE_DEVICE : SIDE_BAD;
    return address >= WS_VA_FIRST && address < WS_VA_LAST ? SIDE_BAD : SIDE_HOST;
}

static bool direction_fits(enum ws_copy_dir dir, enum side dst, enum side src)
{
    switch (dir) {
    case WS_COPY_AUTO:
        return true;
    case WS_COPY_H2H:
        return dst != SIDE_DEVICE && src != SIDE_DEVICE;
    case WS_COPY_H2D:
        return dst != SIDE_HOST && src != SIDE_DEVICE;
    case WS_COPY_D2H:
        return dst != SIDE_DEVICE && src != SIDE_HOST;
    case WS_COPY_D2D:
        return dst != SIDE_HOST && src != SIDE_HOST;
    }
    return false;
}

static void describe(Ws__Copy *m, uint64_t stream, const struct ws_copy_box *b)
{
    m->stream = stream;
    m->bytes = b->width_bytes;
    m->height = b->height > 1 ? b->height : 0;
    m->depth = b->depth > 1 ? b->depth : 0;
}

void ws_copy_to(Ws__Copy *m, uint64_t stream, const struct ws_copy_side *dst,
                const struct ws_box_piece *p)
{
    describe(m, stream, &p->box);
    m->dst = ws_box_address(dst, p);
    if (p->box.height > 1)
        m->dst_pitch = dst->pitch_bytes;
    if (p->box.depth > 1)
        m->dst_slice = dst->slice_bytes;
}

void ws_copy_from(Ws__Copy *m, uint64_t stream, const struct ws_copy_side *src,
                  const struct ws_box_piece *p)
{
    describe(m, stream, &p->box);
    m->src = ws_box_address(src, p);
    if (p->box.height > 1)
        m->src_pitch = src->pitch_bytes;
    if (p->box.depth > 1)
        m->src_slice = src->slice_bytes;
}

/* Both addresses are known to the daemon. */
static ws_err copy_plain(struct ws_channel *c, uint64_t stream, const struct ws_copy_side *dst,
                         const struct ws_copy_side *src, const struct ws_copy_box *box, bool wait)
{
    struct ws_box_piece all = {.box = *box};
    Ws__Copy copy = WS__COPY__INIT;
    ws_copy_to(&copy, stream, dst, &all);
    ws_copy_from(&copy, stream, src, &all);
    if (wait)
        return ws_channel_call(c, WS_COMMAND(COPY_SYNC, copy_sync, &copy), NULL);
    return ws_channel_post(c, WS_COMMAND(COPY, copy, &copy));
}

/* For few bytes. The channel has copied them before it returns. */
static ws_err copy_inline(struct ws_channel *c, uint64_t stream, const struct ws_copy_side *dst,
                          const struct ws_copy_side *src, const struct ws_copy_box *box,
                          uint64_t bytes)
{
    struct ws_box_piece all = {.box = *box};
    Ws__Copy copy = WS__COPY__INIT;
    uint8_t *packed = NULL;
    copy.bulk = WS__COPY__BULK__INLINE;
    copy.data.len = bytes;
    copy.data.data = (uint8_t *)(uintptr_t)src->address;
    if (box->height > 1 || box->depth > 1) {
        packed = malloc(bytes);
        if (!packed)
            return WS__ERROR__OUT_OF_MEMORY;
        ws_box_pack(packed, src, &all);
        copy.data.data = packed;
    }
    ws_copy_to(&copy, stream, dst, &all);
    ws_err r = ws_channel_post(c, WS_COMMAND(COPY, copy, &copy));
    free(packed);
    return r;
}

enum { FRAME_BYTES = 1024 * 1024, FRAMES_AHEAD = 16, ROOM_BYTES = 4096 }; /* beside the data */

static uint64_t frame_bytes(void)
{
    uint32_t limit = ws_session_limits()->max_message_bytes;
    return limit > FRAME_BYTES + ROOM_BYTES ? FRAME_BYTES
           : limit > 2 * ROOM_BYTES         ? limit - ROOM_BYTES
                                            : WS_MAX(limit / 2, 2048u);
}

static ws_err frames_write(struct ws_channel *c, uint64_t stream, const struct ws_copy_side *dst,
                           const struct ws_copy_side *src, const struct ws_copy_box *box)
{
    uint64_t part = frame_bytes();
    unsigned n_sent = 0;
    struct ws_box_cursor at = {.box = *box};
    struct ws_box_piece p;
    uint8_t *packed = NULL;
    ws_err r = WS__ERROR__OK;
    while (!r && ws_box_next(&at, part, &p)) {
        Ws__Copy copy = WS__COPY__INIT;
        const uint8_t *data = (const uint8_t *)(uintptr_t)ws_box_address(src, &p);
        if (p.box.height > 1 || p.box.depth > 1) {
            if (!packed && !(packed = malloc(part)))
                return WS__ERROR__OUT_OF_MEMORY;
            ws_box_pack(packed, src, &p);
            data = packed;
        }
        ws_copy_to(&copy, stream, dst, &p);
        copy.bulk = WS__COPY__BULK__FRAME_SRC;
        r = ws_channel_post_bulk(c, WS_COMMAND(COPY, copy, &copy), data, p.bytes);
        if (!r &&
            ++n_sent % FRAMES_AHEAD ==
                0) { /* an answer shows that they have arrived: bounds what lies in our memory */
            r = ws_session_stream_query(stream);
            if (r == WS__ERROR__NOT_READY)
                r = WS__ERROR__OK;
        }
    }
    free(packed);
    return r;
}

static ws_err frames_read(struct ws_channel *c, uint64_t stream, const struct ws_copy_side *dst,
                          const struct ws_copy_side *src, const struct ws_copy_box *box)
{
    struct ws_box_cursor at = {.box = *box};
    struct ws_box_piece p;
    ws_err r = WS__ERROR__OK;
    while (!r && ws_box_next(&at, frame_bytes(), &p)) {
        Ws__Copy copy = WS__COPY__INIT;
        Ws__Reply *reply = NULL;
        ws_copy_from(&copy, stream, src, &p);
        copy.bulk = WS__COPY__BULK__REPLY_DST;
        r = ws_channel_call(c, WS_COMMAND(COPY_SYNC, copy_sync, &copy), &reply);
        if (!r && reply->data.len != p.bytes)
            r = WS__ERROR__INTERNAL;
        if (!r)
            ws_box_unpack(dst, reply->data.data, &p);
        ws_channel_reply_free(reply);
    }
    return r;
}

static ws_err copy_on_host(uint64_t stream, const struct ws_copy_side *dst,
                           const struct ws_copy_side *src, const struct ws_copy_box *box)
{
    struct ws_box_piece p;
    struct ws_box_cursor rows = {.box = *box};
    ws_err r = ws_session_stream_sync(stream);
    while (!r && ws_box_next(&rows, box->width_bytes, &p))
        memmove((void *)(uintptr_t)ws_box_address(dst, &p),
                (const void *)(uintptr_t)ws_box_address(src, &p), p.bytes);
    return r;
}

/* A copy to the device may return while the data is on its way (CUDA Driver API, "API
 * synchronization behavior"). Streams in order with @stream come after it all the same; programs
 * that use others count on the speed of a wire, which a queue hasn't. So it is waited for where
 * such streams are; one that is created later waits for it. */
static ws_err returned_early(uint64_t stream)
{
    return stream >= WS_STREAM_FIRST || ws_session_any_non_blocking()
               ? ws_session_stream_sync(stream)
               : ws_session_note_copy(stream);
}

static ws_err copy_box(uint64_t stream, const struct ws_copy_side *dst,
                       const struct ws_copy_side *src, const struct ws_copy_box *box,
                       enum ws_copy_dir dir, bool async)
{
    struct ws_channel *c;
    uint64_t bytes, dst_reach, src_reach;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    if (ws_stream_device(stream) < 0)
        return WS__ERROR__INVALID_HANDLE;
    if (!box->width_bytes || !box->height || !box->depth)
        return WS__ERROR__OK;
    if (!dst->address || !src->address || !ws_box_bytes(box, &bytes) ||
        !ws_box_reach(dst, box, &dst_reach) || !ws_box_reach(src, box, &src_reach))
        return WS__ERROR__INVALID_VALUE;
    enum side ds = side_of(dst->address, dst_reach, true),
              ss = side_of(src->address, src_reach, false);
    if (ds == SIDE_BAD || ss == SIDE_BAD || !direction_fits(dir, ds, ss))
        return WS__ERROR__INVALID_VALUE;
    if (ds == SIDE_DEVICE && ss == SIDE_DEVICE)
        return copy_plain(c, stream, dst, src, box, false);
    /* Pinned memory that the daemon has mapped too; over tcp it has not. */
    bool local = ws_session_local(), shared = local && ds != SIDE_HOST && ss != SIDE_HOST;
    if (shared && (ds == SIDE_DEVICE || ss == SIDE_DEVICE || async))
        return copy_plain(c, stream, dst, src, box, !async);
    if (ds == SIDE_DEVICE) {
        r = bytes <= ws_session_limits()->max_inline_bytes
                ? copy_inline(c, stream, dst, src, box, bytes)
                : (local ? ws_staging_write : frames_write)(c, stream, dst, src, box);
        return r || async ? r : returned_early(stream);
    }
    if (ss == SIDE_DEVICE)
        return (local ? ws_staging_read : frames_read)(c, stream, dst, src, box);
    return copy_on_host(stream, dst, src, box);
}

ws_err ws_session_copy_box(uint64_t stream, const struct ws_copy_side *dst,
                           const struct ws_copy_side *src, const struct ws_copy_box *box,
                           enum ws_copy_dir dir, bool async)
{
    ws_err r = copy_box(stream, dst, src, box, dir, async);
    if (!async)
        ws_session_output();
    return r;
}

ws_err ws_session_copy(uint64_t stream, void *dst, const void *src, uint64_t bytes,
                       enum ws_copy_dir dir, bool async)
{
    struct ws_copy_side d = {.address = (uintptr_t)dst}, s = {.address = (uintptr_t)src};
    struct ws_copy_box box = {bytes, 1, 1};
    return ws_session_copy_box(stream, &d, &s, &box, dir, async);
}

ws_err ws_session_fill(uint64_t stream, uint64_t dst, uint32_t value, uint32_t value_bytes,
                       uint64_t width_bytes, uint64_t height, uint64_t pitch_bytes, bool async)
{
    struct ws_channel *c;
    Ws__Fill f = WS__FILL__INIT;
    uint64_t span = width_bytes;
    ws_err r = ws_session_enter(&c);
    if (r)
        return r;
    if (ws_stream_device(stream) < 0)
        return WS__ERROR__INVALID_HANDLE;
    if ((value_bytes != 1 && value_bytes != 2 && value_bytes != 4) || width_bytes % value_bytes ||
        dst % value_bytes)
        return WS__ERROR__INVALID_VALUE;
    if (!width_bytes || !height)
        return WS__ERROR__OK;
    if (height > 1 &&
        (pitch_bytes < width_bytes || __builtin_mul_overflow(pitch_bytes, height - 1, &span) ||
         __builtin_add_overflow(span, width_bytes, &span)))
        return WS__ERROR__INVALID_VALUE;
    enum side side = dst && span <= UINT64_MAX - dst ? side_of(dst, span, true) : SIDE_BAD;
    if (side == SIDE_BAD || side == SIDE_HOST)
        return WS__ERROR__INVALID_VALUE;
    if (side == SIDE_PINNED && !ws_session_local())
        return WS__ERROR__NOT_SUPPORTED;
    f.stream = stream;
    f.dst = dst;
    f.value = value;
    f.value_bytes = value_bytes;
    f.width_bytes = width_bytes;
    f.height = height;
    f.pitch_bytes = height > 1 ? pitch_bytes : width_bytes;
    r = ws_channel_post(c, WS_COMMAND(FILL, fill, &f));
    /* Filling device memory is asynchronous in CUDA, filling host memory is not. */
    if (!r && !async && side == SIDE_PINNED)
        r = ws_session_stream_sync(stream);
    return r;
}
