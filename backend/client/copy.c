// SPDX-License-Identifier: Apache-2.0
/* Copies and fills. Everything that the client names is checked here against what it owns; the
 * device then moves the bytes. The device checks addresses again when the operation runs,
 * because memory may have been freed in between, and because ranges of very many mappings are
 * checked here in part. */
#include "backend/backend.h"
#include "backend/client/submit.h"
#include "backend/client/segment.h"
#include "backend/client/stream.h"

#include <string.h>

#include "base/alloc.h"

/* The client's numbers, checked: what a copy moves, and how far each side reaches. */
struct extent {
    uint64_t height, depth, bytes, dst_reach, src_reach;
};

static bool reach(const Ws__Copy *m, const struct extent *x, uint64_t pitch, uint64_t slice,
                  uint64_t *ret)
{
    uint64_t rows = 0, slices = 0;
    if (x->height > 1 && (pitch < m->bytes || __builtin_mul_overflow(pitch, x->height - 1, &rows)))
        return false;
    if (__builtin_add_overflow(rows, m->bytes, &rows))
        return false;
    if (x->depth > 1 && (slice < rows || __builtin_mul_overflow(slice, x->depth - 1, &slices)))
        return false;
    return !__builtin_add_overflow(rows, slices, ret);
}

/* A bulk side's pitches count nothing: it reaches as far as there are bytes. */
static bool measure(const Ws__Copy *m, struct extent *x)
{
    x->height = m->height ? m->height : 1;
    x->depth = m->depth ? m->depth : 1;
    if (__builtin_mul_overflow(m->bytes, x->height, &x->bytes) ||
        __builtin_mul_overflow(x->bytes, x->depth, &x->bytes))
        return false;
    x->dst_reach = x->src_reach = x->bytes;
    switch (m->bulk) {
    case WS__COPY__BULK__NONE:
        return reach(m, x, m->dst_pitch, m->dst_slice, &x->dst_reach) &&
               reach(m, x, m->src_pitch, m->src_slice, &x->src_reach);
    case WS__COPY__BULK__INLINE:
    case WS__COPY__BULK__STAGED_SRC:
    case WS__COPY__BULK__FRAME_SRC:
        return reach(m, x, m->dst_pitch, m->dst_slice, &x->dst_reach);
    default:
        return reach(m, x, m->src_pitch, m->src_slice, &x->src_reach);
    }
}

static bool readable(struct ws_client *c, uint64_t va, uint64_t bytes)
{
    return ws_space_covers(c->memory.space, va, bytes, false);
}

static bool writable(struct ws_client *c, uint64_t va, uint64_t bytes)
{
    return ws_space_covers(c->memory.space, va, bytes, true);
}

/* The segment of a staged copy, if its stretch lies inside one chunk. */
static struct ws_segment *staged(struct ws_client *c, const Ws__Copy *m, uint64_t bytes,
                                 uint32_t *ret_chunk)
{
    struct ws_segment *g = ws_segment_find(c, m->segment);
    if (!g || g->kind != WS_HANDOFF_STAGING || m->segment_offset >= g->bytes ||
        !ws_segment_settle(c, g))
        return NULL;
    uint32_t chunk = (uint32_t)(m->segment_offset / g->chunk_bytes);
    if (bytes > g->chunk_bytes - m->segment_offset % g->chunk_bytes)
        return NULL;
    *ret_chunk = chunk;
    return g;
}

/* Ends a staged copy that does not reach the device. @state: for a chunk that was to be written. */
static void copy_end_chunk(struct ws_client *c, const Ws__Copy *m, uint32_t state)
{
    uint32_t chunk;
    struct extent x;
    bool from = m->bulk == WS__COPY__BULK__STAGED_SRC, to = m->bulk == WS__COPY__BULK__STAGED_DST;
    struct ws_segment *g = (from || to) && measure(m, &x) ? staged(c, m, x.bytes, &chunk) : NULL;
    if (g)
        ws_segment_chunk_done(g, chunk, to ? state : WS_CHUNK_FREE);
}

void ws_copy_refuse(struct ws_client *c, const Ws__Copy *m)
{
    copy_end_chunk(c, m, WS_CHUNK_FAILED);
}

/* Points the op at the bulk end that is not an address. */
static Ws__Error attach_bulk(struct ws_command *j, const Ws__Copy *m, const struct extent *x,
                             bool replies, const struct ws_message *msg)
{
    struct ws_client *c = j->client;
    const struct ws_limits *l = &c->limits;
    struct ws_frame frame;
    void *p;
    switch (m->bulk) {
    case WS__COPY__BULK__NONE:
        return readable(c, m->src, x->src_reach) && writable(c, m->dst, x->dst_reach)
                   ? WS__ERROR__OK
                   : WS__ERROR__INVALID_VALUE;
    case WS__COPY__BULK__INLINE:
        if (m->data.len != x->bytes || x->bytes > l->max_inline_bytes ||
            !writable(c, m->dst, x->dst_reach))
            return WS__ERROR__INVALID_VALUE;
        p = ws_command_bytes(j, x->bytes);
        if (!p)
            return WS__ERROR__OUT_OF_MEMORY;
        j->op.copy.src_host = memcpy(p, m->data.data, x->bytes);
        return WS__ERROR__OK;
    case WS__COPY__BULK__STAGED_SRC:
    case WS__COPY__BULK__STAGED_DST:
        j->segment = staged(c, m, x->bytes, &j->chunk);
        if (!j->segment)
            return WS__ERROR__INVALID_VALUE;
        j->segment->n_copies++;
        if (m->bulk == WS__COPY__BULK__STAGED_SRC ? !writable(c, m->dst, x->dst_reach)
                                                  : !readable(c, m->src, x->src_reach))
            return WS__ERROR__INVALID_VALUE;
        p = j->segment->data + m->segment_offset;
        if (m->bulk == WS__COPY__BULK__STAGED_SRC)
            j->op.copy.src_host = p;
        else
            j->op.copy.dst_host = p;
        return WS__ERROR__OK;
    case WS__COPY__BULK__FRAME_SRC:
        if (!m->frame || m->frame >= msg->n_frames || msg->frames[m->frame].n != x->bytes ||
            !writable(c, m->dst, x->dst_reach))
            return WS__ERROR__INVALID_VALUE;
        frame = msg->frames[m->frame];
        if ((!frame.buffer && ws_command_charge(j, frame.n)) || ws_frame_keep(&frame))
            return WS__ERROR__OUT_OF_MEMORY;
        j->frame = frame.buffer;
        j->op.copy.src_host = frame.data;
        return WS__ERROR__OK;
    case WS__COPY__BULK__REPLY_DST:
        if (!replies || x->bytes > WS_MIN(l->max_message_bytes, (uint32_t)WS_FAR_MESSAGE_BYTES) ||
            !readable(c, m->src, x->src_reach))
            return WS__ERROR__INVALID_VALUE;
        if (!ws_command_charge(j, x->bytes))
            j->op.copy.dst_host = j->buffer = malloc(x->bytes);
        return j->buffer ? WS__ERROR__OK : WS__ERROR__OUT_OF_MEMORY;
    default:
        return WS__ERROR__INVALID_VALUE;
    }
}

Ws__Error ws_copy_submit(struct ws_client *c, const Ws__Copy *m, uint64_t seq, bool replies,
                         const struct ws_message *msg, bool *ret_queued)
{
    struct ws_stream *s = ws_stream_find(c, m->stream);
    struct extent x;
    if (!s)
        return WS__ERROR__INVALID_HANDLE;
    if (!measure(m, &x))
        return WS__ERROR__INVALID_VALUE;
    if (!x.bytes) {
        copy_end_chunk(c, m, WS_CHUNK_READY);
        return WS__ERROR__OK;
    }
    struct ws_command *j = ws_command_new(c, WS_COMMAND_OP);
    if (!j)
        return WS__ERROR__INTERNAL;
    j->seq = seq;
    j->replies = replies;
    j->bulk = (uint8_t)m->bulk;
    j->op.kind = WS_OPK_COPY;
    j->op.copy.dst_va = m->dst;
    j->op.copy.src_va = m->src;
    j->op.copy.bytes = m->bytes;
    j->op.copy.height = x.height;
    j->op.copy.depth = x.depth;
    j->op.copy.dst = (struct ws_pitches){m->dst_pitch, m->dst_slice};
    j->op.copy.src = (struct ws_pitches){m->src_pitch, m->src_slice};
    j->op.copy.dst_host = NULL;
    j->op.copy.src_host = NULL;
    Ws__Error e = attach_bulk(j, m, &x, replies, msg);
    if (j->op.copy.dst_host)
        j->op.copy.dst = (struct ws_pitches){m->bytes, m->bytes * x.height};
    if (j->op.copy.src_host)
        j->op.copy.src = (struct ws_pitches){m->bytes, m->bytes * x.height};
    if (e) {
        ws_command_free(j);
        return e;
    }
    *ret_queued = true;
    ws_stream_push(s, j);
    return WS__ERROR__OK;
}

static bool fill_owned(struct ws_client *c, const Ws__Fill *m)
{
    uint64_t height = m->height ? m->height : 1, span;
    if (m->width_bytes % m->value_bytes || m->dst % m->value_bytes)
        return false;
    if (height > 1 && (m->pitch_bytes < m->width_bytes || m->pitch_bytes % m->value_bytes))
        return false;
    if (__builtin_mul_overflow(height - 1, m->pitch_bytes, &span) ||
        __builtin_add_overflow(span, m->width_bytes, &span))
        return false;
    return writable(c, m->dst, height > 1 ? span : m->width_bytes);
}

Ws__Error ws_fill_submit(struct ws_client *c, const Ws__Fill *m, uint64_t seq, bool *ret_queued)
{
    struct ws_stream *s = ws_stream_find(c, m->stream);
    if (!s)
        return WS__ERROR__INVALID_HANDLE;
    if ((m->value_bytes != 1 && m->value_bytes != 2 && m->value_bytes != 4) || !m->width_bytes ||
        !fill_owned(c, m))
        return WS__ERROR__INVALID_VALUE;
    struct ws_command *j = ws_command_new(c, WS_COMMAND_OP);
    if (!j)
        return WS__ERROR__INTERNAL;
    j->seq = seq;
    j->op.kind = WS_OPK_FILL;
    j->op.fill.va = m->dst;
    j->op.fill.width_bytes = m->width_bytes;
    j->op.fill.height = m->height ? m->height : 1;
    j->op.fill.pitch_bytes = m->height > 1 ? m->pitch_bytes : m->width_bytes;
    j->op.fill.value = m->value;
    j->op.fill.value_bytes = m->value_bytes;
    *ret_queued = true;
    ws_stream_push(s, j);
    return WS__ERROR__OK;
}
