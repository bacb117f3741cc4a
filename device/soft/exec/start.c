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
    TAIL_STREAM = 3,      /* cudaStreamTailLaunch */
    CUDA_VERSION = 13000, /* as the host's runtime says */
    HANDLE = 16,          /* that of all streams and events: none that has a meaning of its own */
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

#define NO_KERNEL UINT32_MAX /* a buffer for any, of `room` bytes */
struct head {
    uint32_t kernel, grid[3], block[3], shared_bytes;
    uint64_t room;
};
struct parms { /* cudaMemcpy3DParms */
    struct end {
        uint64_t array, pos[3], va, pitch, width, height;
    } src, dst;
    uint64_t extent[3];
    uint32_t kind;
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

/* Memory of the heap behind a head. *ret_va: where the parameters go. */
static uint32_t new_buffer(const struct start_call *x, const struct head *h, uint64_t bytes,
                           uint64_t *ret_va)
{
    bool huge = bytes > UINT64_MAX - HEAD_BYTES;
    uint64_t va = huge ? 0 : ws_space_heap_take(x->c->b->g->space, HEAD_BYTES + bytes);
    const struct ws_mapping *m = va ? ws_exec_map(x->c, va, HEAD_BYTES) : NULL;
    if (!m)
        return E_MEMORY_ALLOCATION;
    memcpy(m->host + (va - m->va), h, sizeof(*h));
    *ret_va = va + HEAD_BYTES;
    return 0;
}

/* The shape of a launch in @h, whose words begin with argument @k. */
static void read_shape(const struct start_call *x, unsigned k, struct head *h)
{
    for (unsigned dim = 0; dim < 3; dim++) {
        h->grid[dim] = word(x, k + dim);
        h->block[dim] = word(x, k + 3 + dim);
    }
    h->shared_bytes = word(x, k + 6);
}

static uint32_t take_buffer(const struct start_call *x, uint64_t *ret_va)
{
    const struct ws_grid *g = x->c->b->g;
    int64_t kernel = kernel_at(g->code, wide(x, 0));
    struct head h = {.kernel = (uint32_t)kernel};
    read_shape(x, 1, &h);
    if (!g->started)
        return E_NOT_SUPPORTED;
    if (kernel < 0)
        return E_INVALID_DEVICE_FUNCTION;
    if (!shape_ok(g->code, &h))
        return E_INVALID_CONFIGURATION;
    return new_buffer(x, &h, g->code->infos[kernel].param_bytes, ret_va);
}

static uint32_t take_buffer_of(const struct start_call *x, uint64_t *ret_va)
{
    struct head h = {.kernel = NO_KERNEL, .room = wide(x, 1)};
    return x->c->b->g->started ? new_buffer(x, &h, h.room, ret_va) : E_NOT_SUPPORTED;
}

/* What stands before the parameters at @params_va. Return: false: nothing can stand there. */
static bool read_head(const struct start_call *x, uint64_t params_va, struct head *ret)
{
    uint64_t va = params_va - HEAD_BYTES;
    const struct ws_mapping *m = params_va ? ws_exec_map(x->c, va, HEAD_BYTES) : NULL;
    if (m)
        memcpy(ret, m->host + (va - m->va), sizeof(*ret));
    return m;
}

/* Starts the kernel that @h says, with the parameters at @params_va, whose buffer is given back. */
static uint32_t start_kernel(const struct start_call *x, const struct head *h, uint64_t params_va,
                             uint64_t stream)
{
    const struct ws_grid *g = x->c->b->g;
    uint64_t va = params_va - HEAD_BYTES;
    struct ws_start w = {.kind = WS_OPK_LAUNCH,
                         .tail = stream == TAIL_STREAM,
                         .launch = {.kernel = h->kernel, .shared_bytes = h->shared_bytes},
                         .param_bytes = g->code->infos[h->kernel].param_bytes};
    memcpy(w.launch.grid, h->grid, sizeof(h->grid));
    memcpy(w.launch.block, h->block, sizeof(h->block));
    const struct ws_mapping *m = ws_exec_map(x->c, va, HEAD_BYTES + w.param_bytes);
    if (!m)
        return E_INVALID_VALUE;
    uint32_t error = add(g, &w, m->host + (va - m->va) + HEAD_BYTES);
    ws_space_heap_give(g->space, va);
    return error;
}

static uint32_t launch(const struct start_call *x)
{
    const struct ws_code *code = x->c->b->g->code;
    struct head h;
    if (!read_head(x, wide(x, 0), &h) || h.kernel >= code->n_kernels || !code->images[h.kernel] ||
        !shape_ok(code, &h))
        return E_INVALID_VALUE;
    return start_kernel(x, &h, wide(x, 0), wide(x, 1));
}

static uint32_t launch_of(const struct start_call *x)
{
    const struct ws_code *code = x->c->b->g->code;
    int64_t kernel = kernel_at(code, wide(x, 0));
    struct head h;
    if (kernel < 0)
        return E_INVALID_DEVICE_FUNCTION;
    if (!read_head(x, wide(x, 1), &h) || h.kernel != NO_KERNEL ||
        h.room < code->infos[kernel].param_bytes)
        return E_INVALID_VALUE;
    h.kernel = (uint32_t)kernel;
    read_shape(x, 2, &h);
    if (!shape_ok(code, &h))
        return E_INVALID_CONFIGURATION;
    return start_kernel(x, &h, wide(x, 1), wide(x, 9));
}

/* A copy of boxes; the widths of rows must fit their pitches, where there are several. */
static uint32_t add_copy(const struct start_call *x, const struct ws_start *w)
{
    uint64_t width = w->copy.bytes, height = w->copy.height, depth = w->copy.depth;
    if (!width || !height || !depth)
        return 0;
    if (height * depth > 1 && (w->copy.dst.row < width || w->copy.src.row < width))
        return E_INVALID_VALUE;
    return add(x->c->b->g, w, NULL);
}

/* A copy of rows. @arg: which arguments are to, from, width, pitches of both, stream. */
static uint32_t copy_rows(const struct start_call *x, const unsigned arg[6], uint64_t height)
{
    const struct ws_start w = {.kind = WS_OPK_COPY,
                               .tail = wide(x, arg[5]) == TAIL_STREAM,
                               .copy = {.dst_va = wide(x, arg[0]),
                                        .src_va = wide(x, arg[1]),
                                        .bytes = wide(x, arg[2]),
                                        .height = height,
                                        .depth = 1,
                                        .dst.row = wide(x, arg[3]),
                                        .src.row = wide(x, arg[4])}};
    return add_copy(x, &w);
}

static uint32_t copy(const struct start_call *x)
{
    return copy_rows(x, (const unsigned[]){0, 1, 2, 2, 2, 4}, 1);
}

static uint32_t copy_2d(const struct start_call *x)
{
    return copy_rows(x, (const unsigned[]){0, 2, 4, 1, 3, 7}, wide(x, 5));
}

/* Where an end of a copy begins. */
static uint64_t end_va(const struct end *e)
{
    return e->va + e->pos[0] + e->pitch * (e->pos[1] + e->height * e->pos[2]);
}

static uint32_t copy_3d(const struct start_call *x)
{
    struct parms p;
    const uint8_t *at =
        ws_exec_lane_ptr(x->c, x->u, x->lane, WS_SP_GENERIC, wide(x, 0), sizeof(p), false);
    if (!at) {
        *x->faulted = true;
        return 0;
    }
    memcpy(&p, at, sizeof(p));
    if (p.src.array || p.dst.array)
        return E_NOT_SUPPORTED;
    const struct ws_start w = {.kind = WS_OPK_COPY,
                               .tail = wide(x, 1) == TAIL_STREAM,
                               .copy = {.dst_va = end_va(&p.dst),
                                        .src_va = end_va(&p.src),
                                        .bytes = p.extent[0],
                                        .height = p.extent[1],
                                        .depth = p.extent[2],
                                        .dst = {p.dst.pitch, p.dst.pitch * p.dst.height},
                                        .src = {p.src.pitch, p.src.pitch * p.src.height}}};
    return add_copy(x, &w);
}

static uint32_t add_fill(const struct start_call *x, const struct ws_start *w)
{
    if (!w->fill.width_bytes || !w->fill.height)
        return 0;
    if (w->fill.height > 1 && w->fill.pitch_bytes < w->fill.width_bytes)
        return E_INVALID_VALUE;
    return add(x->c->b->g, w, NULL);
}

/* A fill of rows. @arg: which arguments are address, width, pitch, value, stream. */
static uint32_t fill_rows(const struct start_call *x, const unsigned arg[5], uint64_t height)
{
    const struct ws_start w = {.kind = WS_OPK_FILL,
                               .tail = wide(x, arg[4]) == TAIL_STREAM,
                               .fill = {.va = wide(x, arg[0]),
                                        .width_bytes = wide(x, arg[1]),
                                        .height = height,
                                        .pitch_bytes = wide(x, arg[2]),
                                        .value = (uint8_t)word(x, arg[3])}};
    return add_fill(x, &w);
}

static uint32_t fill(const struct start_call *x)
{
    return fill_rows(x, (const unsigned[]){0, 2, 2, 1, 3}, 1);
}

static uint32_t fill_2d(const struct start_call *x)
{
    return fill_rows(x, (const unsigned[]){0, 3, 1, 2, 5}, wide(x, 4));
}

static uint64_t of_words(const struct start_call *x, unsigned k)
{
    return word(x, k) | (uint64_t)word(x, k + 1) << 32;
}

/* A fill for each slice, or one where rows follow on each other throughout. */
static uint32_t fill_3d(const struct start_call *x)
{
    uint64_t pitch = of_words(x, 2), slice_rows = of_words(x, 6), height = of_words(x, 11),
             depth = of_words(x, 13), rows;
    bool whole = height == slice_rows && !__builtin_mul_overflow(height, depth, &rows);
    struct ws_start w = {.kind = WS_OPK_FILL,
                         .tail = wide(x, 15) == TAIL_STREAM,
                         .fill = {.va = of_words(x, 0),
                                  .width_bytes = of_words(x, 9),
                                  .height = whole ? rows : height,
                                  .pitch_bytes = pitch,
                                  .value = (uint8_t)word(x, 8)}};
    uint32_t error = 0;
    if (whole || !w.fill.width_bytes || !height)
        return add_fill(x, &w);
    for (uint64_t z = 0; !error && z < depth; z++, w.fill.va += pitch * slice_rows)
        error = add_fill(x, &w);
    return error;
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
    case WS_START_BUFFER_OF:
        *ret_error = take_buffer_of(x, &v);
        return v;
    case WS_START_LAUNCH:
        return *ret_error = launch(x);
    case WS_START_LAUNCH_OF:
        return *ret_error = launch_of(x);
    case WS_START_COPY:
        return *ret_error = copy(x);
    case WS_START_COPY_2D:
        return *ret_error = copy_2d(x);
    case WS_START_COPY_3D:
        return *ret_error = copy_3d(x);
    case WS_START_FILL:
        return *ret_error = fill(x);
    case WS_START_FILL_2D:
        return *ret_error = fill_2d(x);
    case WS_START_FILL_3D:
        return *ret_error = fill_3d(x);
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
    case WS_START_VERSION:
        store(x, CUDA_VERSION, 4);
        return 0;
    case WS_START_NOTHING:
        return 0;
    }
    return 0;
}

bool ws_exec_start_gives_address(enum ws_start_what what)
{
    return what == WS_START_BUFFER || what == WS_START_BUFFER_OF;
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
        if (ws_exec_start_gives_address((enum ws_start_what)x.o->what))
            memcpy(c->regs + x.o->d + x.lane * 8, &v, 8);
        else
            memcpy(c->regs + x.o->d + x.lane * 4, &v, 4);
    }
    return !faulted;
}
