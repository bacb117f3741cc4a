// SPDX-License-Identifier: Apache-2.0
/* Copies and fills.
 *
 * device/check.c has checked both sides before a byte moves. The submitting thread does small ones
 * itself, which costs less than waking another thread. Large ones are cut into chunks, and workers
 * take one chunk a turn; so a copy uses all cores and takes turns with kernels. A chunk is long
 * enough for memcpy to reach its full speed. Rows of a box count as joined: a chunk may begin and
 * end inside a row. Rows of few bytes take longer than their bytes, so a chunk has not many.
 *
 * On the modelled GPU, a copy occupies the copy engine of its direction; a fill writes device
 * memory. */
#include <string.h>
#include <wchar.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/check.h"
#include "device/soft/inspect/inspect.h"
#include "device/soft/soft_private.h"

#define INLINE_BYTES    (UINT64_C(64) << 10)
#define INLINE_ROWS     UINT64_C(64) /* each may lie in another mapping */
#define CHUNK_MIN_BYTES (UINT64_C(1) << 20)
#define CHUNK_MAX_BYTES (UINT64_C(8) << 20)
#define CHUNK_ROWS      UINT64_C(8192) /* that take about as long */

struct ws_xfer {
    /* Tenant's xfers, while not all is taken; when ended: the list of the ended. */
    struct ws_list link;
    struct ws_soft *device;
    struct ws_op *op;
    unsigned epoch;
    enum ws_engine engine;
    uint64_t bytes, chunk_bytes;
    uint64_t taken_bytes; /* this and below: under the scheduler's lock */
    uint32_t n_active;
};

/* On the modelled device. */
static enum ws_engine engine_of(const struct ws_device *dst, const struct ws_device *src)
{
    if (dst && src)
        return WS_ENGINE_INSIDE;
    return dst ? WS_ENGINE_TO_DEVICE : WS_ENGINE_FROM_DEVICE;
}

/* ---- moving bytes ---- */

/* Host address of @va, and as many of @bytes as are mapped together. NULL: it is not mapped, or is
 * to be written and may only be read. */
static uint8_t *resolve(const struct ws_op *op, uint64_t va, bool writes, uint64_t *bytes)
{
    uint8_t *host;
    uint64_t n;
    uint32_t flags;
    struct ws_device *device;
    if (!ws_space_resolve(op->space, va, &host, &n, &flags, &device) ||
        (writes && flags & WS_MAP_READONLY))
        return NULL;
    *bytes = WS_MIN(*bytes, n);
    return host;
}

/* One side of a copy, with the stretch of host memory that was resolved last: most rows lie in the
 * same. */
struct soft_copy_side {
    const struct ws_op *op;
    uint8_t *host; /* of the whole, where it is given */
    uint64_t va;
    bool writes;
    const struct ws_pitches *pitch;
    uint64_t known_va, known_bytes;
    uint8_t *known;
};

/* Host address of the byte at @offset, and as many of @bytes as are mapped together. NULL: as for
 * resolve(). */
static uint8_t *side_at(struct soft_copy_side *s, uint64_t offset, uint64_t *bytes)
{
    uint64_t va = s->va + offset;
    if (s->host)
        return s->host + offset;
    if (va - s->known_va >= s->known_bytes) {
        s->known_bytes = UINT64_MAX;
        s->known_va = va;
        s->known = resolve(s->op, va, s->writes, &s->known_bytes);
        if (!s->known) {
            s->known_bytes = 0;
            return NULL;
        }
    }
    *bytes = WS_MIN(*bytes, s->known_bytes - (va - s->known_va));
    return s->known + (va - s->known_va);
}

/* @from: among the bytes copied, rows joined. */
static bool copy_part(const struct ws_soft *device, const struct ws_op *op, uint64_t from,
                      uint64_t bytes)
{
    struct soft_copy_side d = {.op = op,
                               .host = op->copy.dst_host,
                               .va = op->copy.dst_va,
                               .writes = true,
                               .pitch = &op->copy.dst};
    struct soft_copy_side s = {.op = op,
                               .host = (uint8_t *)op->copy.src_host,
                               .va = op->copy.src_va,
                               .pitch = &op->copy.src};
    uint64_t width = op->copy.bytes, height = WS_MAX(op->copy.height, UINT64_C(1));
    if (!bytes)
        return true;
    uint64_t row = from / width, x = from % width, y = row % height, z = row / height;
    while (bytes) {
        uint64_t n = WS_MIN(bytes, width - x);
        uint8_t *to = side_at(&d, z * d.pitch->slice + y * d.pitch->row + x, &n);
        const uint8_t *at = side_at(&s, z * s.pitch->slice + y * s.pitch->row + x, &n);
        if (!to || !at)
            return false;
        memmove(to, at, n);
        if (WS_UNLIKELY(device->inspect != NULL))
            ws_inspect_memory_written(to, n);
        bytes -= n;
        x += n;
        if (x == width) {
            x = 0;
            if (++y == height) {
                y = 0;
                z++;
            }
        }
    }
    return true;
}

/* @bytes: a multiple of the value's, unless a mapping ends inside one (mappings are aligned to more
 *   than that). */
static void fill_bytes(uint8_t *p, uint64_t bytes, uint32_t value, uint32_t value_bytes)
{
    if (value_bytes == 1) {
        memset(p, (int)(value & 0xff), bytes);
        return;
    }
    if (value_bytes == 2)
        value = (value & 0xffff) * 0x10001u;
    while (bytes && (uintptr_t)p % 4) { /* client memory need not be aligned here as it is there */
        uint64_t n = WS_MIN(bytes, value_bytes);
        memcpy(p, &value, n);
        p += n;
        bytes -= n;
        if (value_bytes == 4)
            break;
    }
    if ((uintptr_t)p % 4 == 0) {
        wmemset((wchar_t *)p, (wchar_t)value, bytes / 4);
        p += bytes & ~UINT64_C(3);
        bytes &= 3;
    }
    for (; bytes; p += WS_MIN(bytes, value_bytes), bytes -= WS_MIN(bytes, value_bytes))
        memcpy(p, &value, WS_MIN(bytes, value_bytes));
}

/* @from: among the bytes written, rows joined. */
static bool fill_part(const struct ws_soft *device, const struct ws_op *op, uint64_t from,
                      uint64_t bytes)
{
    uint64_t width = op->fill.width_bytes;
    while (bytes) {
        uint64_t row = from / width, col = from % width, n = WS_MIN(bytes, width - col);
        uint64_t va = op->fill.va + row * (op->fill.height > 1 ? op->fill.pitch_bytes : 0) + col;
        uint8_t *p = resolve(op, va, true, &n);
        if (!p)
            return false;
        fill_bytes(p, n, op->fill.value, op->fill.value_bytes);
        if (WS_UNLIKELY(device->inspect != NULL))
            ws_inspect_memory_written(p, n);
        from += n;
        bytes -= n;
    }
    return true;
}

static bool part(const struct ws_soft *d, const struct ws_op *op, uint64_t from, uint64_t bytes)
{
    return op->kind == WS_OPK_COPY ? copy_part(d, op, from, bytes) : fill_part(d, op, from, bytes);
}

/* ---- the operation ---- */

/* Behind the tenant's other copies that have bytes left, before those that are all taken. */
static void xfer_insert(struct ws_tenant *t, struct ws_xfer *x)
{
    struct ws_list *at = &t->xfers;
    while (x->taken_bytes < x->bytes && at->prev != &t->xfers) {
        const struct ws_xfer *before = ws_list_entry(at->prev, struct ws_xfer, link);
        if (before->taken_bytes < before->bytes)
            break;
        at = at->prev;
    }
    ws_list_append(at, &x->link);
}

/* All bytes were moved: what time and energy that takes on the device. */
static void finish(struct ws_soft *d, struct ws_op *op, enum ws_engine engine, uint64_t bytes)
{
    if (op->kind == WS_OPK_COPY)
        atomic_fetch_add_explicit(&d->copied_bytes, bytes, memory_order_relaxed);
    else
        engine = WS_ENGINE_INSIDE;
    if (d->vclock) {
        ws_flight_copy(op, engine, bytes);
        return;
    }
    struct ws_timed timed;
    ws_timing_copy(d->timing, engine, op->space ? ws_space_id(op->space) : 0, op->ready_ns, bytes,
                   &timed);
    op->start_ns = timed.start_ns;
    op->end_ns = timed.end_ns;
    op->energy_uj = timed.energy_uj;
    ws_soft_done(d, op);
}

static uint64_t n_rows(const struct ws_op *op)
{
    return op->kind == WS_OPK_COPY
               ? WS_MAX(op->copy.height, UINT64_C(1)) * WS_MAX(op->copy.depth, UINT64_C(1))
               : op->fill.height;
}

static uint64_t chunk_bytes(const struct ws_op *op, uint64_t bytes, uint32_t n_threads)
{
    uint64_t width = op->kind == WS_OPK_COPY ? op->copy.bytes : op->fill.width_bytes,
             chunk = WS_ALIGN_UP(bytes / n_threads, UINT64_C(4096));
    chunk = WS_MIN(WS_MAX(chunk, CHUNK_MIN_BYTES), CHUNK_MAX_BYTES);
    return width < chunk / CHUNK_ROWS ? width * CHUNK_ROWS : chunk;
}

void ws_soft_copy(struct ws_soft *d, struct ws_op *op)
{
    uint64_t bytes;
    struct ws_device *to = NULL, *from = NULL;
    bool ok =
        op->kind == WS_OPK_COPY ? ws_check_copy(op, &to, &from, &bytes) : ws_check_fill(op, &bytes);
    enum ws_engine engine = engine_of(to, from);
    if (!ok) {
        ws_soft_done(d, op);
        return;
    }
    atomic_fetch_add_explicit(&d->n_copies, 1, memory_order_relaxed);
    if (bytes <= INLINE_BYTES && n_rows(op) <= INLINE_ROWS) {
        unsigned epoch = op->space ? ws_space_enter(op->space) : 0;
        if (!part(d, op, 0, bytes))
            ws_soft_fail(op, WS_DEV_E_ILLEGAL_ADDRESS, "copy: memory was unmapped meanwhile");
        if (op->space)
            ws_space_leave(op->space, epoch);
        finish(d, op, engine, bytes);
        return;
    }
    struct ws_xfer *x = ws_alloc(sizeof(*x));
    struct ws_sched *s = d->sched;
    struct ws_tenant *t = NULL;
    pthread_mutex_lock(&s->lock);
    if (x && (t = ws_tenant_get_locked(d, op->space))) {
        *x = (struct ws_xfer){.device = d, .op = op, .bytes = bytes, .engine = engine};
        x->chunk_bytes = chunk_bytes(op, bytes, s->n_threads);
        if (op->space)
            x->epoch = ws_space_enter(op->space);
        xfer_insert(t, x);
        ws_sched_ready_locked(s, t);
    }
    pthread_mutex_unlock(&s->lock);
    if (!t) {
        free(x);
        ws_soft_fail(op, WS_DEV_E_NO_MEMORY, "copy: the host has no memory for it");
        ws_soft_done(d, op);
    }
}

bool ws_copy_has_work_locked(const struct ws_tenant *t)
{
    if (ws_list_empty(&t->xfers))
        return false;
    const struct ws_xfer *first = ws_list_entry(t->xfers.next, struct ws_xfer, link);
    return first->taken_bytes < first->bytes;
}

bool ws_copy_take_locked(struct ws_tenant *t, struct ws_turn *turn)
{
    if (!ws_copy_has_work_locked(t))
        return false;
    struct ws_xfer *x = ws_list_entry(t->xfers.next, struct ws_xfer, link);
    turn->xfer = x;
    turn->from = x->taken_bytes;
    turn->bytes = WS_MIN(x->chunk_bytes, x->bytes - x->taken_bytes);
    x->taken_bytes += turn->bytes;
    x->n_active++;
    ws_list_remove(&x->link);
    xfer_insert(t, x);
    return true;
}

void ws_copy_turn(struct ws_turn *turn)
{
    turn->n = part(turn->xfer->device, turn->xfer->op, turn->from, turn->bytes);
}

static void settle(struct ws_xfer *x, struct ws_list *ended)
{
    if (x->n_active || x->taken_bytes < x->bytes)
        return;
    ws_list_remove(&x->link);
    ws_list_append(ended, &x->link);
}

void ws_copy_give_back_locked(struct ws_turn *turn, struct ws_list *ended)
{
    struct ws_xfer *x = turn->xfer;
    x->n_active--;
    if (!turn->n && !x->op->error)
        ws_soft_fail(x->op, WS_DEV_E_ILLEGAL_ADDRESS, "copy: memory was unmapped meanwhile");
    settle(x, ended);
}

bool ws_copy_cancel_some_locked(struct ws_tenant *t, unsigned n, struct ws_list *ended)
{
    ws_list_for_each_safe (it, &t->xfers) {
        struct ws_xfer *x = ws_list_entry(it, struct ws_xfer, link);
        if (x->taken_bytes == x->bytes) /* it ends as soon as workers are done with its last part */
            continue;
        if (!n--)
            return true;
        if (!x->op->error)
            ws_soft_fail(x->op, WS_DEV_E_CANCELLED, "copy: cancelled");
        x->taken_bytes = x->bytes;
        settle(x, ended);
    }
    return false;
}

void ws_copy_finish(struct ws_list *ended)
{
    ws_list_for_each_safe (l, ended) {
        struct ws_xfer *x = ws_list_entry(l, struct ws_xfer, link);
        struct ws_soft *d = x->device;
        struct ws_op *op = x->op;
        enum ws_engine engine = x->engine;
        uint64_t bytes = x->bytes;
        if (op->space)
            ws_space_leave(op->space, x->epoch);
        free(x);
        finish(d, op, engine, bytes);
    }
}
