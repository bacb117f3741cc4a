// SPDX-License-Identifier: Apache-2.0
/* Which bytes each lane touches.
 *
 * A module that is inspected has micro-ops as the decoder made them, but for those that touch
 * memory: their function is look(), which tells shared.c and global.c of each lane's access, and
 * then calls the function that the decoder had put there. So the interpreter has no second build,
 * and a module that is not inspected has nothing that asks. Accesses that are not allowed are left
 * to the interpreter, which stops the kernel for them.
 *
 * Textures and surfaces are not looked at, nor local memory, nor constants. */
#include "device/soft/inspect/private.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "device/soft/exec/async.h"
#include "device/soft/exec/tensor.h"
#include "device/soft/exec/matrix.h"
#include "device/soft/exec/shared.h"
#include "device/soft/jit/jit.h"

typedef void ws_look_fn(struct ws_core_ctx *c, const struct ws_uop *u,
                        const struct ws_inspect_op *op, uint32_t lanes);

static uint64_t address_in(const struct ws_core_ctx *c, uint32_t row, bool a32, int64_t offset,
                           unsigned lane)
{
    uint64_t va = 0;
    memcpy(&va, c->regs + row + lane * (a32 ? 4 : 8), a32 ? 4 : 8);
    va += (uint64_t)offset;
    return a32 ? (uint32_t)va : va;
}

/* Does the store leave the bytes at @host as they are? */
static bool is_idle(const struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane,
                    const uint8_t *host)
{
    const uint32_t rows[] = {(uint32_t)u->d, (uint32_t)u->b, (uint32_t)u->c, (uint32_t)u->e};
    uint32_t size = u->x >> WS_X_SIZE_SHIFT & 15, n = u->x >> WS_X_VEC_SHIFT & 7;
    for (uint32_t k = 0; k < n; k++)
        if (memcmp(host + k * size, c->regs + rows[k] + lane * size, size) != 0)
            return false;
    return true;
}

/* One lane's access of @bytes at @va. @store: a plain store, whose values are in registers. */
static void touch_with(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane, unsigned space,
                       uint64_t va, uint64_t bytes, unsigned does, bool store)
{
    uint64_t window = WS_WINDOW_OF(va), off = va & ~WS_WINDOW_OF(UINT64_MAX);
    struct ws_inspect_access a = {.who = ws_inspect_lane(c, u, lane), .bytes = bytes, .does = does};
    if (space == WS_SP_SHARED || (space == WS_SP_GENERIC && window == WS_WINDOW_SHARED)) {
        if (!window || window == WS_WINDOW_SHARED)
            a.of = ws_exec_shared_block(c, off, bytes, &a.at);
        if (a.of)
            (a.of == c->b ? ws_inspect_shared : ws_inspect_remote)(&a);
    } else if (space == WS_SP_GLOBAL || (space == WS_SP_GENERIC && !window)) {
        const struct ws_mapping *m = ws_exec_map(c, va, bytes);
        a.at = va;
        if (m) {
            a.host = m->host + (va - m->va);
            a.idle = store && is_idle(c, u, lane, a.host);
            ws_inspect_global(&a);
        }
    }
}

static void touch(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane, unsigned space,
                  uint64_t va, uint64_t bytes, unsigned does)
{
    touch_with(c, u, lane, space, va, bytes, does, false);
}

/* Loads, stores and atomics: x has the sizes. */
static void look_plain(struct ws_core_ctx *c, const struct ws_uop *u,
                       const struct ws_inspect_op *op, uint32_t lanes)
{
    uint32_t bytes = (u->x >> WS_X_SIZE_SHIFT & 15) * (u->x >> WS_X_VEC_SHIFT & 7);
    for (uint32_t m = lanes; m; m &= m - 1) {
        unsigned lane = (unsigned)__builtin_ctz(m);
        uint64_t va = address_in(c, (uint32_t)u->a, u->x & WS_X_A32, u->imm, lane);
        if (!(va & (bytes - 1)))
            touch_with(c, u, lane, u->x & WS_X_SPACE_MASK, va, bytes, op->does,
                       !(op->does & WS_INSPECT_READS));
    }
}

static void look_fence(struct ws_core_ctx *c, const struct ws_uop *u,
                       const struct ws_inspect_op *op, uint32_t lanes)
{
    ws_inspect_fence(c->b, c->w->index);
}

/* Rows of eight tiles: lane 8 t + r has the address of row r of tile t. */
static void look_tiles(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_matrixop *o)
{
    unsigned does = o->what == WS_MATRIX_STMATRIX ? WS_INSPECT_WRITES : WS_INSPECT_READS;
    for (unsigned lane = 0; lane < 8u * o->n_tiles; lane++)
        touch(c, u, lane, o->space, address_in(c, o->address, o->a32, o->offset, lane), 16, does);
}

/* wmma's loads and stores: the warp touches each line of the matrix. */
static void look_lines(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_matrixop *o,
                       unsigned lane)
{
    const struct ws_fragment *f = &o->d;
    uint32_t rows = f->which == WS_FRAG_B ? o->k : o->m, cols = f->which == WS_FRAG_A ? o->k : o->n;
    uint32_t n = f->col ? cols : rows, length = f->col ? rows : cols, stride = length;
    uint64_t bits = ws_elem_bits((enum ws_elem)f->elem);
    uint64_t at = address_in(c, o->address, o->a32, o->offset, lane);
    if (o->stride)
        memcpy(&stride, c->regs + o->stride + lane * 4, 4);
    for (uint32_t k = 0; k < n; k++)
        touch(c, u, lane, o->space, at + (uint64_t)k * stride * bits / 8, length * bits / 8,
              o->what == WS_MATRIX_STORE ? WS_INSPECT_WRITES : WS_INSPECT_READS);
}

static void look_matrix(struct ws_core_ctx *c, const struct ws_uop *u,
                        const struct ws_inspect_op *op, uint32_t lanes)
{
    const struct ws_matrixop *o = (const struct ws_matrixop *)(uintptr_t)u->imm;
    if (o->what == WS_MATRIX_LDMATRIX || o->what == WS_MATRIX_STMATRIX)
        look_tiles(c, u, o);
    else if (o->what == WS_MATRIX_LOAD || o->what == WS_MATRIX_STORE)
        look_lines(c, u, o, (unsigned)__builtin_ctz(lanes));
}

/* A box in shared memory is taken as a whole, also what is outside of the tensor. */
static void look_tensor(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                        unsigned lane)
{
    bool loads = o->what == WS_TENSOR_LOAD;
    struct ws_tensor_box b;
    struct ws_tensor_row r;
    if (!ws_tensor_box(c, o, lane, &b) || b.n_rows * b.pitch > c->shared_bytes)
        return; /* it faults */
    touch(c, u, lane, WS_SP_SHARED, ws_async_address(c, loads ? &o->dst : &o->src, lane),
          b.n_rows * b.pitch, loads ? WS_INSPECT_WRITES : WS_INSPECT_READS);
    while (ws_tensor_next(&b, &r))
        if (r.bytes)
            touch(c, u, lane, WS_SP_GLOBAL, r.va, r.bytes,
                  loads ? WS_INSPECT_READS
                  : o->what == WS_TENSOR_STORE
                      ? WS_INSPECT_WRITES
                      : WS_INSPECT_READS | WS_INSPECT_WRITES | WS_INSPECT_STRONG);
}

/* Copies are made at once, by the thread that asks for them; whoever waits at an mbarrier comes
 * after all that were there before. */
static void look_async_lane(struct ws_core_ctx *c, const struct ws_uop *u,
                            const struct ws_asyncop *o, unsigned lane)
{
    bool copies = o->what == WS_ASYNC_COPY || o->what == WS_ASYNC_BULK;
    uint32_t bytes = o->size_bytes, have;
    if (o->n_at)
        look_tensor(c, u, o, lane);
    if (o->bytes)
        memcpy(&bytes, c->regs + o->bytes + lane * 4, 4);
    have = bytes;
    if (o->src_bytes)
        memcpy(&have, c->regs + o->src_bytes + lane * 4, 4);
    if (copies && have && !o->ignore)
        touch(c, u, lane, o->src.space, ws_async_address(c, &o->src, lane), WS_MIN(have, bytes),
              WS_INSPECT_READS);
    if ((copies || o->what == WS_ASYNC_REDUCE) && bytes)
        touch(c, u, lane, o->dst.space, ws_async_address(c, &o->dst, lane), bytes,
              copies ? WS_INSPECT_WRITES
                     : WS_INSPECT_READS | WS_INSPECT_WRITES | WS_INSPECT_STRONG);
    if (o->mbar.row)
        touch(c, u, lane, o->mbar.space, ws_async_address(c, &o->mbar, lane), 8,
              WS_INSPECT_WRITES | WS_INSPECT_STRONG | WS_INSPECT_MEETS);
}

static void look_async(struct ws_core_ctx *c, const struct ws_uop *u,
                       const struct ws_inspect_op *op, uint32_t lanes)
{
    const struct ws_asyncop *o = (const struct ws_asyncop *)(uintptr_t)u->imm;
    for (uint32_t m = lanes; m; m &= m - 1) {
        unsigned lane = (unsigned)__builtin_ctz(m);
        uint32_t ranks = o->mask ? ws_async_ranks(c, o, lane) : 0;
        if (!o->mask)
            look_async_lane(c, u, o, lane);
        for (; ranks; ranks &= ranks - 1) {
            struct ws_asyncop one = ws_async_for_rank(o, (uint32_t)__builtin_ctz(ranks));
            look_async_lane(c, u, &one, lane);
        }
    }
}

/* ---- which micro-ops ---- */

static const struct ws_touching {
    uint16_t handler; /* enum ws_handler */
    uint8_t does;
    ws_look_fn *look;
} touching[] = {
#define READS(name)                                                                                \
    {                                                                                              \
        WS_H_##name, WS_INSPECT_READS, look_plain                                                  \
    }
#define WRITES(name)                                                                               \
    {                                                                                              \
        WS_H_##name, WS_INSPECT_WRITES, look_plain                                                 \
    }
#define CHANGES(name)                                                                              \
    {                                                                                              \
        WS_H_##name, WS_INSPECT_READS | WS_INSPECT_WRITES | WS_INSPECT_STRONG, look_plain          \
    }
    READS(ld_x),
    READS(ld_g_8),
    READS(ld_g_16),
    READS(ld_g_32),
    READS(ld_g_64),
    READS(ld_g_32v2),
    READS(ld_g_32v4),
    READS(ld_g_64v2),
    READS(ld_s_8),
    READS(ld_s_16),
    READS(ld_s_32),
    READS(ld_s_64),
    READS(ld_s_32v2),
    READS(ld_s_32v4),
    READS(ld_s_64v2),
    WRITES(st_x),
    WRITES(st_g_8),
    WRITES(st_g_16),
    WRITES(st_g_32),
    WRITES(st_g_64),
    WRITES(st_g_32v2),
    WRITES(st_g_32v4),
    WRITES(st_g_64v2),
    WRITES(st_s_8),
    WRITES(st_s_16),
    WRITES(st_s_32),
    WRITES(st_s_64),
    WRITES(st_s_32v2),
    WRITES(st_s_32v4),
    WRITES(st_s_64v2),
    CHANGES(atom_16),
    CHANGES(atom_32),
    CHANGES(atom_64),
    CHANGES(atom_128),
    {WS_H_membar, 0, look_fence},
    {WS_H_matrix, 0, look_matrix},
    {WS_H_async, 0, look_async},
#undef READS
#undef WRITES
#undef CHANGES
};

/* The row of a micro-op of the decoder's, or NULL: it touches nothing. */
static const struct ws_touching *touching_of(const struct ws_isa *isa, const struct ws_uop *u)
{
    for (size_t k = 0; k < WS_ARRAY_SIZE(touching); k++)
        if (isa->handlers[touching[k].handler] == u->fn)
            return &touching[k];
    return NULL;
}

enum { FINDS = WS_INSPECT_READS | WS_INSPECT_STRONG };

static const struct ws_uop *look(struct ws_core_ctx *c, const struct ws_uop *u)
{
    const struct ws_exec_image *img = c->b->img;
    const struct ws_inspect_op *op = &img->inspected[u - img->uops];
    uint32_t guard;
    memcpy(&guard, c->regs + u->guard, sizeof(guard));
    uint32_t lanes = c->active & (guard ^ u->gneg);
    if (lanes)
        touching[op->row].look(c, u, op, lanes);
    const struct ws_uop *next = op->plain(c, u);
    bool waits = touching[op->row].look == look_async && c->b->cluster->n > 1;
    if (lanes && ((op->does & FINDS) == FINDS || waits))
        ws_inspect_found(c->b);
    return next;
}

/* malloc() in a kernel: what it gives may have been another thread's. */
static const struct ws_uop *look_heap_take(struct ws_core_ctx *c, const struct ws_uop *u)
{
    const struct ws_inspect_op *op = &c->b->img->inspected[u - c->b->img->uops];
    uint64_t bytes[32], at[32];
    uint32_t guard;
    memcpy(&guard, c->regs + u->guard, sizeof(guard));
    memcpy(bytes, c->regs + u->a, sizeof(bytes));
    const struct ws_uop *next = op->plain(c, u);
    memcpy(at, c->regs + u->d, sizeof(at));
    for (uint32_t m = c->active & (guard ^ u->gneg); m; m &= m - 1) {
        unsigned lane = (unsigned)__builtin_ctz(m);
        const struct ws_mapping *map = at[lane] ? ws_exec_map(c, at[lane], bytes[lane]) : NULL;
        if (map)
            ws_inspect_races_forget(map->host + (at[lane] - map->va), bytes[lane]);
    }
    return next;
}

/* What a load or store does beside touching bytes: PTX's memory model has the order that it makes
 * in the instruction. */
static unsigned order_of(const struct ws_code *c, const struct ws_exec_image *img,
                         const struct ws_uop *u)
{
    const struct ws_srcref *s = &img->srcs[u->src];
    const struct ws_ptx_func *f = &c->m->funcs[s->func];
    unsigned does = 0;
    if (s->insn >= f->n_insns)
        return 0;
    uint8_t sem = f->insns[s->insn].sem;
    if (sem == WS_SEM_ACQUIRE || sem == WS_SEM_RELEASE || sem == WS_SEM_ACQ_REL || sem == WS_SEM_SC)
        does |= WS_INSPECT_MEETS;
    /* Loads and stores past L1 (__ldcg(), __stcg() and the like) are used as if they were strong.
     */
    uint8_t cache = f->insns[s->insn].cache;
    const char *past_l1 = cache ? ws_ptx_cache_names[cache - 1] : "";
    if ((sem != WS_SEM_NONE && sem != WS_SEM_WEAK) || !strcmp(past_l1, "cg") ||
        !strcmp(past_l1, "cv") || !strcmp(past_l1, "wt"))
        does |= WS_INSPECT_STRONG;
    return does;
}

static int inspect_image(struct ws_code *c, struct ws_exec_image *img)
{
    struct ws_inspect_op *ops = ws_arena_array(&c->arena, img->n_uops + (size_t)1, sizeof(*ops));
    if (!ops)
        return ws_raise(-ENOMEM);
    for (uint32_t k = 0; k < img->n_uops; k++) {
        struct ws_uop *u = &img->uops[k];
        const struct ws_touching *t = touching_of(c->isa, u);
        if (u->fn == c->isa->handlers[WS_H_heap_take]) {
            ops[k].plain = u->fn;
            u->fn = look_heap_take;
        }
        if (!t)
            continue;
        ops[k].plain = u->fn;
        ops[k].row = (uint8_t)(t - touching);
        ops[k].does = t->does;
        if (t->look == look_plain)
            ops[k].does |= (uint8_t)order_of(c, img, u);
        u->fn = look;
    }
    img->inspected = ops;
    return 0;
}

int ws_code_inspect(struct ws_code *c)
{
    int r = 0;
    c->jit = ws_jit_images_free(c->jit); /* machine code would not tell */
    for (uint32_t k = 0; !r && k < c->n_kernels; k++)
        if (c->images[k])
            r = inspect_image(c, c->images[k]);
    return r;
}
