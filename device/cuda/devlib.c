// SPDX-License-Identifier: Apache-2.0
/* The host's part of printf, assert, trap, malloc and free in kernels (ptx/passes/devlib.c is the
 * kernels' part).
 *
 * A kernel that may print or stop gets a box: struct ws_ptx_lib and room for records behind it, in
 * pinned memory of the queue. The box is among the ranges of the launch's fence (fence.c), so the
 * kernel may have written anything to it: each length in it is checked before it is used. When the
 * kernel has ended, the records are read, reported to the client, and wiped. A box is wiped as a
 * whole before another client's launch uses it.
 *
 * The first thread that stopped gives the operation its error. In a merged launch each text goes to
 * the client whose block wrote it, and a thread that stopped is an error of that client alone.
 *
 * The host knows where the heap is, and, when a launch has ended, how much of it is in use. The
 * heap's book is wiped when all of it was given back and no launch is under way, since free blocks
 * are never joined. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "device/cuda/cuda_private.h"
#include "device/text.h"
#include "ptx/passes/devlib.h"

/* A record takes several times the bytes of its text. A launch that does not print needs little
 * room, which costs little to wipe. */
enum { RECORD_TIMES = 4, FEW_BYTES = 64 << 10 };
#define FIFO_BYTES_MAX (UINT64_C(16) << 20)

static uint64_t wanted_bytes(const struct ws_space *s, uint32_t uses)
{
    uint64_t room = FEW_BYTES;
    if (uses & WS_LIB_PRINTS)
        room = WS_MAX(room, RECORD_TIMES * WS_MIN(ws_space_print_bytes(s), FIFO_BYTES_MAX));
    return sizeof(struct ws_ptx_lib) + WS_ALIGN_UP(room, UINT64_C(4096));
}

void ws_cuda_lib_free(struct ws_cuda *d, struct ws_cuda_queue *q)
{
    ws_cuda_stock_give(d, WS_CUDA_STOCK_PINNED, (uintptr_t)q->box, q->box_bytes);
    q->box = NULL;
    q->box_bytes = 0;
    q->box_space = 0;
}

/* Nothing runs on the queue. Return: false: the stock has no room for a box of @bytes. */
static bool make_box(struct ws_cuda *d, struct ws_cuda_queue *q, uint64_t bytes, bool may_block)
{
    if (q->box_bytes >= bytes)
        return true;
    ws_cuda_lib_free(d, q);
    q->box = (void *)(uintptr_t)ws_cuda_stock_find(d, WS_CUDA_STOCK_PINNED, bytes, may_block);
    if (q->box)
        q->box_bytes = q->box_shown = bytes;
    return q->box;
}

/* All of the heap was given back: from here on its blocks may be of any size again. */
static void wipe_book(struct ws_cuda *d, struct ws_space *s)
{
    uint64_t va, bytes;
    if (ws_space_heap(s, &va, &bytes))
        (void)ws_cuda_clear(d, va, WS_LIB_HEAP_BOOK_BYTES);
    ws_space_heap_wiped(s);
}

static enum ws_cuda_start prepare_heap(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block)
{
    struct ws_space *s = r->op->space;
    uint64_t va, bytes;
    if (!may_block && !ws_space_heap(s, &va, &bytes))
        return WS_CUDA_BLOCKS;
    if (ws_space_open_heap(s, &d->base)) {
        ws_check_fail(r->op, WS_DEV_E_NO_MEMORY, "no memory for malloc() in kernels");
        return WS_CUDA_DONE;
    }
    enum ws_heap_turn t;
    while ((t = ws_space_heap_begin(s, may_block)) == WS_HEAP_WAIT && may_block)
        usleep(50); /* a thread of another GPU is wiping the book */
    if (t == WS_HEAP_WAIT)
        return WS_CUDA_BLOCKS;
    r->uses_heap = true;
    if (t == WS_HEAP_WIPE) /* only where it may block */
        wipe_book(d, s);
    return WS_CUDA_STARTED;
}

enum ws_cuda_start ws_cuda_lib_prepare(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block)
{
    const struct ws_op *op = r->op;
    uint32_t uses = op->launch.instance->module->uses[op->launch.kernel];
    if (uses && !make_box(d, r->queue, wanted_bytes(op->space, uses), may_block)) {
        if (!may_block)
            return WS_CUDA_BLOCKS;
        ws_check_fail(r->op, WS_DEV_E_NO_MEMORY, "no memory for what the kernel prints");
        return WS_CUDA_DONE;
    }
    return uses & WS_LIB_HEAP && !r->uses_heap ? prepare_heap(d, r, may_block) : WS_CUDA_STARTED;
}

ws_cu_result ws_cuda_lib_behind(struct ws_cuda *d, struct ws_cuda_run *r)
{
    struct ws_ptx_lib *box = r->queue->box;
    if (!r->uses_heap)
        return WS_CU_SUCCESS;
    return WS_CUDA_NOTED(d, ws_cuda_carry(d, r->queue->stream, (uintptr_t)&box->book, r->heap_va,
                                          sizeof(box->book)));
}

void ws_cuda_lib_done(struct ws_cuda_run *r)
{
    if (r->uses_heap)
        ws_space_heap_end(r->op->space, r->heap_empty);
}

ws_cu_result ws_cuda_lib(struct ws_cuda *d, struct ws_cuda_run *r, uint32_t uses, uint64_t *ret)
{
    struct ws_cuda_queue *q = r->queue;
    struct ws_space *s = r->op->space;
    uint64_t bytes = wanted_bytes(s, uses);
    if (q->box_bytes < bytes) /* the client's limit was raised since ws_cuda_lib_prepare() */
        return WS_CU_NOT_READY;
    if (q->box_space != ws_space_id(s)) {
        memset(q->box, 0, q->box_shown);
        q->box_shown = 0;
    } else if (q->box->head) /* its records were not read */
        memset(q->box + 1, 0, q->box_shown - sizeof(*q->box));
    q->box_space = ws_space_id(s);
    q->box_shown = WS_MAX(q->box_shown, bytes);
    *q->box =
        (struct ws_ptx_lib){.room_bytes = bytes - sizeof(*q->box), .room = (uintptr_t)(q->box + 1)};
    if (uses & WS_LIB_HEAP && !ws_space_heap(s, &q->box->heap, &q->box->heap_bytes))
        return WS_CU_OUT_OF_MEMORY;
    r->heap_va = q->box->heap; /* kept here, since the kernel may change the box */
    r->heap_bytes = q->box->heap_bytes;
    r->box_bytes = bytes;
    *ret = (uintptr_t)q->box;
    return WS_CU_SUCCESS;
}

/* ---- records ---- */

/* A record. Its head is a copy, which no kernel can change. */
struct lib_record {
    struct ws_lib_record head;
    const uint8_t *bytes; /* head.bytes of them */
};

/* Copies the record's string at @offset. Return: false: there is none, or it does not end in the
 * record. */
static bool string_at(const struct lib_record *r, uint64_t offset, char *to, size_t size)
{
    size_t left = offset < r->head.bytes ? r->head.bytes - (size_t)offset : 0;
    if (offset < sizeof(r->head) || !left || !memchr(r->bytes + offset, 0, left))
        return false;
    size_t n = WS_MIN(strlen((const char *)r->bytes + offset), size - 1);
    memcpy(to, r->bytes + offset, n);
    to[n] = 0;
    return true;
}

static uint64_t arg_of(const struct lib_record *r, uint32_t k)
{
    uint64_t v = 0, at = sizeof(r->head) + (uint64_t)k * sizeof(v);
    if (k < r->head.n_args && at + sizeof(v) <= r->head.bytes)
        memcpy(&v, r->bytes + at, sizeof(v));
    return v;
}

struct record_args {
    struct ws_text_args base;
    const struct lib_record *record;
    uint32_t n;
};

static uint64_t next_arg(struct ws_text_args *base, unsigned bytes)
{
    struct record_args *a = WS_CONTAINER_OF(base, struct record_args, base);
    (void)bytes; /* each is written as 8 bytes */
    return arg_of(a->record, a->n++);
}

static bool string_arg(struct ws_text_args *base, uint64_t value, char *to, size_t size)
{
    return string_at(WS_CONTAINER_OF(base, struct record_args, base)->record, value, to, size);
}

/* The part of a merged launch that @block belongs to. @block: becomes its place in that part's own
 * grid. NULL: it is not a merged launch. */
static struct ws_launch_part *part_of(const struct ws_op *op, uint32_t block[3])
{
    struct ws_launch_parts *p = op->launch.parts;
    const uint32_t *g = op->launch.grid;
    if (!p || !p->round)
        return NULL;
    uint64_t linear = block[0] + (uint64_t)g[0] * (block[1] + (uint64_t)g[1] * block[2]);
    uint32_t place = (uint32_t)(linear % p->round), k = 0;
    while (k < p->n && place >= p->part[k].share)
        place -= p->part[k++].share;
    if (k == p->n)
        return NULL;
    const uint32_t *own = p->part[k].grid;
    uint64_t number = linear / p->round * p->part[k].share + place;
    block[0] = (uint32_t)(number % WS_MAX(own[0], 1u));
    number /= WS_MAX(own[0], 1u);
    block[1] = (uint32_t)(number % WS_MAX(own[1], 1u));
    block[2] = (uint32_t)(number / WS_MAX(own[1], 1u));
    return &p->part[k];
}

/* Turns a thread's place in the merged launch's block into its place in the part's own block. */
static void own_thread(const struct ws_op *op, const struct ws_launch_part *p, uint32_t thread[3])
{
    const uint32_t *b = op->launch.block, *own = p->block;
    uint64_t n = thread[0] + (uint64_t)b[0] * (thread[1] + (uint64_t)b[1] * thread[2]);
    thread[0] = (uint32_t)(n % WS_MAX(own[0], 1u));
    n /= WS_MAX(own[0], 1u);
    thread[1] = (uint32_t)(n % WS_MAX(own[1], 1u));
    thread[2] = (uint32_t)(n / WS_MAX(own[1], 1u));
}

static void stopped(struct ws_op *op, struct ws_launch_part *part, uint32_t kind,
                    const uint32_t b[3], const uint32_t t[3], uint64_t va, const char *what)
{
    static const struct {
        enum ws_dev_error error;
        const char *word;
    } kinds[] = {[WS_LIB_ASSERT] = {WS_DEV_E_ASSERT, "assert"},
                 [WS_LIB_TRAP] = {WS_DEV_E_TRAP, "trap"},
                 [WS_LIB_FREE] = {WS_DEV_E_ILLEGAL_ADDRESS, "illegal address"}};
    char text[sizeof(part->text)], where[96] = "";
    if (kind < WS_LIB_ASSERT || kind > WS_LIB_FREE || (part ? part->error : op->error))
        return;
    if (kind == WS_LIB_FREE)
        snprintf(where, sizeof(where),
                 " free() of 0x%llx, which malloc() did not give or which was given back already",
                 (unsigned long long)va);
    snprintf(text, sizeof(text), "%s: kernel %.48s block (%u,%u,%u) thread (%u,%u,%u)%s%s%s",
             kinds[kind].word,
             part ? part->kernel
                  : op->launch.instance->module->info.kernels[op->launch.kernel].name,
             b[0], b[1], b[2], t[0], t[1], t[2], *what ? " " : "", what, where);
    if (!part) {
        ws_check_fail(op, kinds[kind].error, "%s", text);
        return;
    }
    part->error = kinds[kind].error;
    memcpy(part->text, text, sizeof(part->text));
}

static void tell(struct ws_op *op, const struct lib_record *r)
{
    uint32_t block[3], thread[3];
    char text[WS_TEXT_MAX], s[3][WS_TEXT_STRING_MAX], what[96] = "";
    size_t n = 0;
    ws_lib_unpack(r->head.block, r->head.thread, block, thread);
    struct ws_launch_part *part = part_of(op, block);
    const struct ws_space *space = part ? part->space : op->space;
    if (part)
        own_thread(op, part, thread);
    if (r->head.kind == WS_LIB_TEXT) {
        struct record_args a = {.base = {.next = next_arg, .string = string_arg}, .record = r};
        if (string_at(r, sizeof(r->head) + UINT64_C(8) * r->head.n_args, s[0], sizeof(s[0])))
            n = ws_text_format(s[0], &a.base, text, sizeof(text));
        ws_space_print(space, WS_OUTPUT_PRINTF, text, n);
        return;
    }
    for (uint32_t k = 0; r->head.kind == WS_LIB_ASSERT && k < 3; k++)
        if (!string_at(r, arg_of(r, k), s[k], sizeof(s[k])))
            strcpy(s[k], "?");
    if (r->head.kind == WS_LIB_ASSERT) {
        struct ws_text_assert a = {
            .message = s[0], .file = s[1], .function = s[2], .line = r->head.line};
        memcpy(a.block, block, sizeof(block));
        memcpy(a.thread, thread, sizeof(thread));
        n = ws_text_assert(&a, text, sizeof(text));
        ws_space_print(space, WS_OUTPUT_ASSERT, text, n);
        snprintf(what, sizeof(what), "assertion `%.40s' failed at %.30s:%u", s[0], s[1],
                 r->head.line);
        ws_text_make_printable(what);
    }
    stopped(op, part, r->head.kind, block, thread, arg_of(r, 0), what);
}

void ws_cuda_lib_read(struct ws_op *op, const void *room, uint64_t bytes)
{
    uint64_t at = 0;
    for (struct lib_record r; at + sizeof(r.head) <= bytes; at += r.head.bytes) {
        r.bytes = (const uint8_t *)room + at;
        memcpy(&r.head, r.bytes, sizeof(r.head));
        if (r.head.bytes < sizeof(r.head) || r.head.bytes % 8 || r.head.bytes > bytes - at)
            break;
        tell(op, &r);
    }
}

void ws_cuda_lib_end(struct ws_cuda_run *r)
{
    struct ws_ptx_lib *box = r->queue->box;
    struct ws_op *op = r->op;
    if (!r->box_bytes)
        return;
    uint64_t head = __atomic_load_n(&box->head, __ATOMIC_ACQUIRE), /* written by the GPU */
        used = WS_MIN(head, r->box_bytes - sizeof(*box));
    ws_cuda_lib_read(op, box + 1, used);
    if (box->stopped) { /* also where there was no room for its record */
        uint32_t block[3], thread[3];
        ws_lib_unpack(box->block, (uint32_t)box->thread, block, thread);
        struct ws_launch_part *part = part_of(op, block);
        if (part)
            own_thread(op, part, thread);
        stopped(op, part, (uint32_t)box->stopped, block, thread, box->va, "");
    }
    uint64_t book = WS_LIB_HEAP_BOOK_OF(box->book.unused), taken = box->book.taken;
    r->heap_empty =
        r->uses_heap && !WS_LIB_HEAP_BOOK_OF(taken) && (book > r->heap_bytes / 2 || taken);
    memset(box + 1, 0, used);
    box->head = 0;
    box->stopped = 0;
}
