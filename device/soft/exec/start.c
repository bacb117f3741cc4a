// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/start.c - what device code calls to start kernels, copies and fills.
 *
 * A launch takes two calls. The first gives a buffer, into which the thread writes the parameters;
 * the second starts the kernel. The buffer is memory of the heap with a head before it that says
 * what is to be launched. A thread can spoil it; the head is checked again when the kernel is
 * started. */
#include "device/soft/exec/start.h"

#include <string.h>

#include "device/soft/exec/image.h"
#include "device/space.h"
#include "device/started.h"

enum {
    HEAD_BYTES = 64,
    TAIL_STREAM = 3, /* cudaStreamTailLaunch */
    HANDLE = 16,     /* that of all streams and events: none that has a meaning of its own */
};
/* CUDA's errors, which the calls return. */
enum {
    E_INVALID_VALUE = 1,
    E_MEMORY_ALLOCATION = 2,
    E_INVALID_CONFIGURATION = 9,
    E_MAX_DEPTH_EXCEEDED = 65,
    E_PENDING_COUNT_EXCEEDED = 69,
    E_INVALID_DEVICE_FUNCTION = 98,
    E_NOT_SUPPORTED = 801,
};

struct head {
    uint32_t kernel, grid[3], block[3], shared_bytes;
};
_Static_assert(sizeof(struct head) <= HEAD_BYTES, "it stands before the parameters");

struct start_call { /* of one lane */
    struct ws_core_ctx *c;
    const struct ws_uop *u;
    const struct ws_startop *o;
    unsigned lane;
    bool *faulted; /* set: the kernel was */
};

static uint32_t word(const struct start_call *x, unsigned k)
{
    uint32_t v;
    memcpy(&v, x->c->regs + x->o->arg[k] + x->lane * 4, sizeof(v));
    return v;
}

static uint64_t wide(const struct start_call *x, unsigned k)
{
    uint64_t v;
    memcpy(&v, x->c->regs + x->o->arg[k] + x->lane * 8, sizeof(v));
    return v;
}

/* Writes the value to where the first argument points, which the kernel may do or is faulted. */
static void store(const struct start_call *x, uint64_t value, unsigned bytes)
{
    uint8_t *p = ws_exec_lane_ptr(x->c, x->u, x->lane, WS_SP_GENERIC, wide(x, 0), bytes, true);
    if (p)
        memcpy(p, &value, bytes);
    else
        *x->faulted = true;
}

/* The kernel at an address; -1: there is none, or it can't run. */
static int64_t kernel_at(const struct ws_code *code, uint64_t va)
{
    for (uint32_t k = 0; k < code->n_kernels; k++)
        if (code->images[k] && ws_exec_func_va(code->images[k]->func) == va)
            return k;
    return -1;
}

static bool shape_ok(const struct ws_code *code, const struct head *h)
{
    uint64_t threads = (uint64_t)h->block[0] * h->block[1];
    return h->grid[0] && h->grid[1] && h->grid[2] && threads && threads <= 1024 && h->block[2] &&
           threads * h->block[2] <= code->infos[h->kernel].max_threads_per_block;
}

static uint32_t add(const struct ws_grid *g, const struct ws_start *w, const void *params)
{
    static const uint32_t errors[] = {[WS_STARTED_OK] = 0,
                                      [WS_STARTED_MANY] = E_PENDING_COUNT_EXCEEDED,
                                      [WS_STARTED_DEEP] = E_MAX_DEPTH_EXCEEDED};
    return g->started ? errors[ws_started_add(g->started, w, params)] : E_NOT_SUPPORTED;
}

static uint32_t take_buffer(const struct start_call *x, uint64_t *ret_va)
{
    const struct ws_grid *g = x->c->b->g;
    int64_t kernel = kernel_at(g->code, wide(x, 0));
    struct head h = {.kernel = (uint32_t)kernel, .shared_bytes = word(x, 7)};
    for (unsigned k = 0; k < 3; k++) {
        h.grid[k] = word(x, 1 + k);
        h.block[k] = word(x, 4 + k);
    }
    if (!g->started)
        return E_NOT_SUPPORTED;
    if (kernel < 0)
        return E_INVALID_DEVICE_FUNCTION;
    if (!shape_ok(g->code, &h))
        return E_INVALID_CONFIGURATION;
    uint64_t va = ws_space_heap_take(g->space, HEAD_BYTES + g->code->infos[kernel].param_bytes);
    const struct ws_mapping *m = va ? ws_exec_map(x->c, va, HEAD_BYTES) : NULL;
    if (!m)
        return E_MEMORY_ALLOCATION;
    memcpy(m->host + (va - m->va), &h, sizeof(h));
    *ret_va = va + HEAD_BYTES;
    return 0;
}

static uint32_t launch(const struct start_call *x)
{
    const struct ws_grid *g = x->c->b->g;
    uint64_t va = wide(x, 0) - HEAD_BYTES;
    const struct ws_mapping *m = wide(x, 0) ? ws_exec_map(x->c, va, HEAD_BYTES) : NULL;
    struct head h;
    if (!m)
        return E_INVALID_VALUE;
    memcpy(&h, m->host + (va - m->va), sizeof(h));
    if (h.kernel >= g->code->n_kernels || !g->code->images[h.kernel] || !shape_ok(g->code, &h))
        return E_INVALID_VALUE;
    struct ws_start w = {.kind = WS_OPK_LAUNCH,
                         .tail = wide(x, 1) == TAIL_STREAM,
                         .launch = {.kernel = h.kernel, .shared_bytes = h.shared_bytes},
                         .param_bytes = g->code->infos[h.kernel].param_bytes};
    memcpy(w.launch.grid, h.grid, sizeof(h.grid));
    memcpy(w.launch.block, h.block, sizeof(h.block));
    m = ws_exec_map(x->c, va, HEAD_BYTES + w.param_bytes);
    if (!m)
        return E_INVALID_VALUE;
    uint32_t error = add(g, &w, m->host + (va - m->va) + HEAD_BYTES);
    ws_space_heap_give(g->space, va);
    return error;
}

static uint32_t copy(const struct start_call *x)
{
    struct ws_start w = {.kind = WS_OPK_COPY,
                         .tail = wide(x, 4) == TAIL_STREAM,
                         .copy = {.dst_va = wide(x, 0), .src_va = wide(x, 1), .bytes = wide(x, 2)}};
    return w.copy.bytes ? add(x->c->b->g, &w, NULL) : 0;
}

static uint32_t fill(const struct start_call *x)
{
    struct ws_start w = {
        .kind = WS_OPK_FILL,
        .tail = wide(x, 3) == TAIL_STREAM,
        .fill = {.va = wide(x, 0), .bytes = wide(x, 2), .value = (uint8_t)word(x, 1)}};
    return w.fill.bytes ? add(x->c->b->g, &w, NULL) : 0;
}

static uint32_t take(const struct start_call *x)
{
    uint64_t va = ws_space_heap_take(x->c->b->g->space, wide(x, 1));
    store(x, va, 8);
    return va ? 0 : E_MEMORY_ALLOCATION;
}

static uint32_t give(const struct start_call *x)
{
    uint64_t va = wide(x, 0);
    return !va || ws_space_heap_give(x->c->b->g->space, va) ? 0 : E_INVALID_VALUE;
}

/* Return: what the call returns; of a buffer its address, and *ret_error. */
static uint64_t one(const struct start_call *x, uint32_t *ret_error)
{
    struct ws_blockrun *b = x->c->b;
    uint64_t v = 0;
    switch ((enum ws_start_what)x->o->what) {
    case WS_START_BUFFER:
        *ret_error = take_buffer(x, &v);
        return v;
    case WS_START_LAUNCH:
        return *ret_error = launch(x);
    case WS_START_COPY:
        return *ret_error = copy(x);
    case WS_START_FILL:
        return *ret_error = fill(x);
    case WS_START_TAKE:
        return *ret_error = take(x);
    case WS_START_GIVE:
        return *ret_error = give(x);
    case WS_START_ERROR:
        v = b->start_error;
        b->start_error = 0;
        return v;
    case WS_START_PEEK:
        return b->start_error;
    case WS_START_HANDLE:
        store(x, HANDLE, 8);
        return 0;
    case WS_START_DEVICE:
        store(x, 0, 4);
        return 0;
    case WS_START_COUNT:
        store(x, 1, 4);
        return 0;
    case WS_START_NOTHING:
        return 0;
    }
    return 0;
}

bool ws_exec_start(struct ws_core_ctx *c, const struct ws_uop *u, uint32_t lanes)
{
    bool faulted = false;
    struct start_call x = {
        .c = c, .u = u, .o = (const struct ws_startop *)(uintptr_t)u->imm, .faulted = &faulted};
    for (uint32_t m = lanes; m && !faulted; m &= m - 1) {
        uint32_t error = 0;
        x.lane = (unsigned)__builtin_ctz(m);
        uint64_t v = one(&x, &error);
        if (error)
            c->b->start_error = error;
        if (x.o->what == WS_START_BUFFER)
            memcpy(c->regs + x.o->d + x.lane * 8, &v, 8);
        else
            memcpy(c->regs + x.o->d + x.lane * 4, &v, 4);
    }
    return !faulted;
}
