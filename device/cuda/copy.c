// SPDX-License-Identifier: Apache-2.0
/* Copies and fills.
 *
 * Each side is host memory (given by the caller, or mapped by the client) or a GPU's memory. If all
 * rows lie in one stretch on each side, one call of the driver copies them. Where a side's mappings
 * adjoin in the client's addresses but not in the daemon's, the copy is made row by row and piece
 * by piece.
 *
 * The driver copies asynchronously only from and to pinned memory; with other memory a call may
 * take as long as the copy. Small copies use a bounce buffer of the queue. The starter thread does
 * larger ones, and those between two places of the host.
 *
 * This GPU may be unable to reach the memory of another GPU. The driver finds the way for copies
 * between two GPUs. Copies between the host and the other GPU, and fills, are done by that GPU
 * while the starter thread waits. */
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/alloc.h"
#include "device/cuda/cuda_private.h"

struct cuda_side {
    struct ws_cuda *device;
    const struct ws_op *op;
    uint8_t *given; /* host memory of the caller; NULL: the side is at @va */
    uint64_t va;
    struct ws_pitches pitch;
};

/* Memory that is contiguous: @bytes from @host or @va on. */
struct stretch {
    uint8_t *host; /* NULL: it is the memory of @device, at @va */
    struct ws_cuda *device;
    uint64_t va, bytes;
};

/* Finds byte @offset of a side, and how many of @bytes are contiguous from there. Return: false: it
 * was unmapped meanwhile. */
static bool locate(const struct cuda_side *s, uint64_t offset, uint64_t bytes, struct stretch *ret)
{
    *ret = (struct stretch){.va = s->va + offset, .bytes = bytes};
    if (s->given) {
        ret->host = s->given + offset;
        return true;
    }
    uint8_t *host;
    uint64_t n, done = 0;
    uint32_t flags;
    struct ws_device *device, *first;
    if (!ws_space_resolve(s->op->space, ret->va, &host, &n, &flags, &device))
        return false;
    if (!device) {
        ret->host = host;
        ret->bytes = WS_MIN(n, bytes);
        return true;
    }
    first = device;
    ret->device = ws_cuda_of(first);
    /* Mappings of a GPU that adjoin are one range for the driver. */
    while (device == first && done < bytes) {
        done += WS_MIN(n, bytes - done);
        if (done == bytes ||
            !ws_space_resolve(s->op->space, ret->va + done, &host, &n, &flags, &device))
            break;
    }
    ret->bytes = done;
    return done > 0;
}

/* Waits for work in another GPU's stream, and makes this GPU's context current again. @r: the
 * result of queueing the work. */
static ws_cu_result back(struct ws_cuda *d, struct ws_cuda *on, ws_cu_result r)
{
    if (r == WS_CU_SUCCESS)
        r = ws_cuda_drain(on, on->memory_stream);
    ws_cu_result e = ws_cuda_enter(d);
    return r == WS_CU_SUCCESS ? e : r;
}

static bool is_far(const struct ws_cuda *d, const struct stretch *s)
{
    return !s->host && s->device != d;
}

static ws_cu_result move(struct ws_cuda *d, struct stretch to, struct stretch from, uint64_t bytes,
                         ws_cu_stream s)
{
    if (to.host && from.host) {
        memmove(to.host, from.host, bytes);
        return WS_CU_SUCCESS;
    }
    struct ws_cuda *on = to.host ? from.device : to.device;
    if (!to.host && !from.host && (to.device != d || from.device != d))
        return WS_CU(d, cuMemcpyPeerAsync, to.va, to.device->context, from.va, from.device->context,
                     bytes, s);
    ws_cu_result r = on == d ? WS_CU_SUCCESS : ws_cuda_enter(on);
    if (r != WS_CU_SUCCESS)
        return back(d, on, r);
    s = on == d ? s : on->memory_stream;
    if (to.host)
        r = WS_CU(on, cuMemcpyDtoHAsync, to.host, from.va, bytes, s);
    else if (from.host)
        r = WS_CU(on, cuMemcpyHtoDAsync, to.va, from.host, bytes, s);
    else
        r = WS_CU(on, cuMemcpyDtoDAsync, to.va, from.va, bytes, s);
    return on == d ? r : back(d, on, r);
}

struct copy_box {
    struct cuda_side to, from;
    uint64_t width, height, depth;
};

/* Finds one side with all its rows and slices. Return: whether it is one stretch. */
static bool in_one(const struct copy_box *b, const struct cuda_side *s, struct stretch *ret)
{
    uint64_t reach = b->width + (b->height - 1) * s->pitch.row + (b->depth - 1) * s->pitch.slice;
    return locate(s, 0, reach, ret) && ret->bytes == reach;
}

/* Whether the driver takes the pitches: a slice is a whole number of rows. */
static bool plain_pitch(const struct copy_box *b, const struct cuda_side *s, uint64_t max)
{
    return s->pitch.row <= max && s->pitch.row >= b->width &&
           (b->depth == 1 || (s->pitch.row && s->pitch.slice % s->pitch.row == 0));
}

static ws_cu_result box_at_once(struct ws_cuda *d, const struct copy_box *b, struct stretch to,
                                struct stretch from, ws_cu_stream s)
{
    struct ws_cu_copy3d c = {
        .src_type = from.host ? WS_CU_MEMORYTYPE_HOST : WS_CU_MEMORYTYPE_DEVICE,
        .src_host = from.host,
        .src_device = from.host ? 0 : from.va,
        .src_pitch = b->from.pitch.row,
        .src_height = b->depth > 1 ? b->from.pitch.slice / b->from.pitch.row : b->height,
        .dst_type = to.host ? WS_CU_MEMORYTYPE_HOST : WS_CU_MEMORYTYPE_DEVICE,
        .dst_host = to.host,
        .dst_device = to.host ? 0 : to.va,
        .dst_pitch = b->to.pitch.row,
        .dst_height = b->depth > 1 ? b->to.pitch.slice / b->to.pitch.row : b->height,
        .width_bytes = b->width,
        .height = b->height,
        .depth = b->depth};
    return WS_CU(d, cuMemcpy3DAsync, &c, s);
}

/* *ret_gone: a side was unmapped meanwhile. */
static ws_cu_result row_by_row(struct ws_cuda *d, const struct copy_box *b, ws_cu_stream s,
                               bool *ret_gone)
{
    ws_cu_result r = WS_CU_SUCCESS;
    for (uint64_t z = 0; z < b->depth; z++)
        for (uint64_t y = 0; y < b->height; y++)
            for (uint64_t x = 0; r == WS_CU_SUCCESS && x < b->width;) {
                struct stretch to, from;
                uint64_t left = b->width - x;
                if (!locate(&b->to, z * b->to.pitch.slice + y * b->to.pitch.row + x, left, &to) ||
                    !locate(&b->from, z * b->from.pitch.slice + y * b->from.pitch.row + x, left,
                            &from)) {
                    *ret_gone = true;
                    return WS_CU_SUCCESS;
                }
                uint64_t n = WS_MIN(to.bytes, from.bytes);
                r = move(d, to, from, n, s);
                x += n;
            }
    return r;
}

static enum ws_cuda_start finish(struct ws_cuda *d, struct ws_cuda_run *r, ws_cu_result e,
                                 bool gone)
{
    if (e != WS_CU_SUCCESS)
        ws_cuda_fail(d, r->op, e, "copy");
    else if (gone)
        ws_check_fail(r->op, WS_DEV_E_ILLEGAL_ADDRESS,
                      "copy: the memory was unmapped during the copy");
    /* Part of the copy may be under way: only the end of the stream's work tells. */
    return WS_CUDA_STARTED;
}

static enum ws_cuda_start copy(struct ws_cuda *d, struct ws_cuda_run *r, struct copy_box *b,
                               uint64_t bytes, bool may_block)
{
    struct stretch to = {0}, from = {0};
    bool gone = false, flat = b->height == 1 && b->depth == 1;
    bool whole = in_one(b, &b->to, &to) && in_one(b, &b->from, &from);
    ws_cu_stream s = r->queue->stream;
    uint8_t *host = NULL; /* of the one side that is host memory */
    if (whole && !to.host != !from.host)
        host = to.host ? to.host : from.host;
    uint64_t reach = to.host ? to.bytes : from.bytes;
    bool far = whole && (is_far(d, &to) || is_far(d, &from));
    bool bounced =
        host && !far && flat && bytes <= WS_CUDA_BOUNCE_BYTES && !ws_cuda_is_pinned(d, host, bytes);
    bool blocks = !whole || (to.host && from.host) || (host && far) ||
                  (host && !bounced && !ws_cuda_is_pinned(d, host, reach));
    if (blocks && !may_block)
        return WS_CUDA_BLOCKS;
    ws_cu_result e = WS_CU(d, cuEventRecord, r->queue->begin, s);
    if (e != WS_CU_SUCCESS) {
        ws_cuda_fail(d, r->op, e, "copy");
        return WS_CUDA_DONE;
    }
    if (bounced && from.host) {
        memcpy(r->queue->bounce, from.host, bytes);
        from.host = r->queue->bounce;
    } else if (bounced) {
        r->bounce_to = to.host;
        r->bounce_bytes = bytes;
        to.host = r->queue->bounce;
    }
    if (whole && flat)
        e = move(d, to, from, bytes, s);
    else if (whole && !far && !(to.host && from.host) && plain_pitch(b, &b->to, INT32_MAX) &&
             plain_pitch(b, &b->from, INT32_MAX))
        e = box_at_once(d, b, to, from, s);
    else
        e = row_by_row(d, b, s, &gone);
    return finish(d, r, e, gone);
}

/* ---- fills ---- */

static void fill_host(uint8_t *p, uint64_t bytes, uint32_t value, uint32_t unit)
{
    for (uint64_t k = 0; k < bytes; k += unit)
        memcpy(p + k, &value, WS_MIN(bytes - k, (uint64_t)unit));
}

static ws_cu_result fill_here(struct ws_cuda *d, const struct ws_op *op, uint64_t va,
                              uint64_t bytes, uint64_t rows, ws_cu_stream s)
{
    uint32_t v = op->fill.value;
    uint64_t pitch = rows > 1 ? op->fill.pitch_bytes : bytes;
    switch (op->fill.value_bytes) {
    case 1:
        return WS_CU(d, cuMemsetD2D8Async, va, pitch, (unsigned char)v, bytes, rows, s);
    case 2:
        return WS_CU(d, cuMemsetD2D16Async, va, pitch, (unsigned short)v, bytes / 2, rows, s);
    default:
        return WS_CU(d, cuMemsetD2D32Async, va, pitch, v, bytes / 4, rows, s);
    }
}

/* The GPU that has the memory, @on, fills it. */
static ws_cu_result fill_device(struct ws_cuda *d, struct ws_cuda *on, const struct ws_op *op,
                                uint64_t va, uint64_t bytes, uint64_t rows, ws_cu_stream s)
{
    if (on == d)
        return fill_here(d, op, va, bytes, rows, s);
    ws_cu_result r = ws_cuda_enter(on);
    if (r == WS_CU_SUCCESS)
        r = fill_here(on, op, va, bytes, rows, on->memory_stream);
    return back(d, on, r);
}

static enum ws_cuda_start fill(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block)
{
    const struct ws_op *op = r->op;
    uint64_t width = op->fill.width_bytes, height = op->fill.height;
    struct cuda_side s = {
        .device = d, .op = op, .va = op->fill.va, .pitch = {op->fill.pitch_bytes, 0}};
    struct stretch at;
    uint64_t reach = width + (height - 1) * (height > 1 ? op->fill.pitch_bytes : 0);
    bool whole = locate(&s, 0, reach, &at) && at.bytes == reach && !at.host;
    if ((!whole || is_far(d, &at)) && !may_block)
        return WS_CUDA_BLOCKS;
    ws_cu_result e = WS_CU(d, cuEventRecord, r->queue->begin, r->queue->stream);
    if (e != WS_CU_SUCCESS) {
        ws_cuda_fail(d, r->op, e, "fill");
        return WS_CUDA_DONE;
    }
    if (whole)
        return finish(d, r,
                      fill_device(d, at.device, op, op->fill.va, width, height, r->queue->stream),
                      false);
    for (uint64_t y = 0; y < height; y++)
        for (uint64_t x = 0; e == WS_CU_SUCCESS && x < width; x += at.bytes) {
            if (!locate(&s, y * op->fill.pitch_bytes + x, width - x, &at))
                return finish(d, r, e, true);
            if (at.host)
                fill_host(at.host, at.bytes, op->fill.value, op->fill.value_bytes);
            else
                e = fill_device(d, at.device, op, at.va, at.bytes, 1, r->queue->stream);
        }
    return finish(d, r, e, false);
}

enum ws_cuda_start ws_cuda_copy(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block)
{
    struct ws_op *op = r->op;
    struct ws_device *to, *from;
    uint64_t bytes;
    bool ok =
        op->kind == WS_OPK_COPY ? ws_check_copy(op, &to, &from, &bytes) : ws_check_fill(op, &bytes);
    if (!ok || !bytes)
        return WS_CUDA_DONE;
    r->n_sms = 0;
    if (op->kind == WS_OPK_FILL)
        return fill(d, r, may_block);
    struct copy_box b = {
        .to = {d, op, op->copy.dst_host, op->copy.dst_va, op->copy.dst},
        .from = {d, op, (uint8_t *)op->copy.src_host, op->copy.src_va, op->copy.src},
        .width = op->copy.bytes,
        .height = WS_MAX(op->copy.height, UINT64_C(1)),
        .depth = WS_MAX(op->copy.depth, UINT64_C(1))};
    if (b.height == 1) {
        b.to.pitch.row = b.from.pitch.row = b.width;
        if (b.depth == 1)
            b.to.pitch.slice = b.from.pitch.slice = b.width;
    }
    enum ws_cuda_start s = copy(d, r, &b, bytes, may_block);
    if (s == WS_CUDA_STARTED)
        d->copied_bytes += bytes;
    return s;
}
