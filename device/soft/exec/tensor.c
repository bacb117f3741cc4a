// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/tensor.c - copies of boxes of a tensor between global and shared memory.
 *
 * In shared memory the rows of a box stand one behind the other. With a swizzle each row has the
 * swizzle's width, and the number of a chunk of 16 bytes within it is xored with bits of its
 * address: of 128 bytes with address bits 7 to 9, of 64 with 7 and 8, of 32 with 7. What is outside
 * of the tensor is read as zeros or NaN, and not written. An mbarrier is told the bytes of the
 * whole box.
 *
 * A map may come from anyone: it is read anew and checked for each copy. */
#include "device/soft/exec/tensor.h"

#include <string.h>

static const uint8_t *map_at(struct ws_core_ctx *c, const struct ws_asyncop *o, unsigned lane)
{
    uint64_t va = ws_async_address(c, &o->map, lane);
    return va % 64
               ? NULL
               : ws_exec_lane_try(c, lane, WS_SP_GENERIC, va, sizeof(struct ws_tensor_map), false);
}

/* The address and the strides must be aligned as CUDA wants them, so that every element is, too: a
 * reduction's atomic accesses rest on that. */
static bool is_map(const struct ws_tensor_map *m)
{
    bool ok = m->magic == WS_TENSOR_MAGIC && m->type < _WS_TENSOR_TYPE_N &&
              m->rank <= WS_TENSOR_DIMS && m->swizzle <= WS_TENSOR_SWIZZLE_128 &&
              !(m->address % WS_TENSOR_ALIGN);
    for (unsigned i = 0; ok && i < m->rank; i++)
        ok = m->box[i] && m->box[i] <= WS_TENSOR_BOX_MAX && m->step[i] &&
             m->step[i] <= WS_TENSOR_STEP_MAX && !(i && m->stride[i - 1] % WS_TENSOR_ALIGN);
    return ok;
}

bool ws_tensor_box(struct ws_core_ctx *c, const struct ws_asyncop *o, unsigned lane,
                   struct ws_tensor_box *ret)
{
    struct ws_tensor_box b = {.n_rows = 1};
    const uint8_t *p = map_at(c, o, lane);
    if (!p)
        return false;
    memcpy(&b.map, p, sizeof(b.map));
    if (!is_map(&b.map) || b.map.rank != o->n_at)
        return false;
    for (unsigned i = 0; i < o->n_at; i++) {
        uint32_t step = i ? b.map.step[i] : 1;
        b.at[i] = (int32_t)ws_async_word(c, o->at[i], lane, 0);
        b.n[i] = (b.map.box[i] + step - 1) / step;
        if (i)
            b.n_rows *= b.n[i];
    }
    b.each = ws_tensor_element_bytes(b.map.type);
    b.row_bytes = b.n[0] * b.each;
    b.pitch = b.map.swizzle ? 16u << b.map.swizzle : b.row_bytes;
    *ret = b;
    return !(b.row_bytes % 16) && b.row_bytes <= b.pitch;
}

bool ws_tensor_next(struct ws_tensor_box *b, struct ws_tensor_row *ret)
{
    const struct ws_tensor_map *m = &b->map;
    uint64_t k = b->done, va = m->address;
    int64_t first = b->at[0] < 0 ? -b->at[0] : 0, end = (int64_t)m->last[0] + 1 - b->at[0];
    end = end < b->n[0] ? end : b->n[0];
    if (b->done == b->n_rows)
        return false;
    for (unsigned i = 1; i < m->rank; i++) {
        int64_t at = b->at[i] + (int64_t)(k % b->n[i]) * m->step[i];
        k /= b->n[i];
        if (at < 0 || at > (int64_t)m->last[i])
            end = 0;
        va += (uint64_t)at * m->stride[i - 1];
    }
    *ret = (struct ws_tensor_row){.shared = b->done++ * b->pitch};
    if (first < end) {
        ret->skip = (uint32_t)first * b->each;
        ret->bytes = (uint32_t)(end - first) * b->each;
        ret->va = va + (uint64_t)(b->at[0] + first) * b->each;
    }
    return true;
}

/* Where a chunk of 16 bytes at @address of shared memory is put. */
static uint64_t swizzled(unsigned swizzle, uint64_t address)
{
    uint64_t chunks = (UINT64_C(1) << swizzle) - 1; /* of a row, less one */
    return address ^ (address >> 7 & chunks) << 4;
}

/* NaN as the type has it; as hardware does, the same bits for all floats of a size are not
 * promised by PTX. */
static void fill_outside(const struct ws_tensor_box *b, uint8_t *row)
{
    static const uint16_t half = 0x7fff;
    static const uint32_t single = 0x7fffffff;
    static const uint64_t twice = UINT64_C(0x7fffffffffffffff);
    memset(row, 0, b->row_bytes);
    for (uint32_t k = 0; b->map.nan && k < b->row_bytes; k += b->each)
        memcpy(row + k,
               b->each == 2   ? (const void *)&half
               : b->each == 4 ? (const void *)&single
                              : (const void *)&twice,
               b->each);
}

static void flush_denormals(const struct ws_tensor_box *b, uint8_t *row)
{
    if (b->map.type != WS_TENSOR_F32_FTZ && b->map.type != WS_TENSOR_TF32_FTZ)
        return;
    for (uint32_t k = 0; k < b->row_bytes; k += 4) {
        uint32_t v;
        memcpy(&v, row + k, 4);
        if (!(v & 0x7f800000))
            v &= 0x80000000;
        memcpy(row + k, &v, 4);
    }
}

static const uint8_t types[_WS_TENSOR_TYPE_N] = {WS_T_U8,  WS_T_U16, WS_T_U32, WS_T_S32, WS_T_U64,
                                                 WS_T_S64, WS_T_F16, WS_T_F32, WS_T_F64, WS_T_BF16,
                                                 WS_T_F32, WS_T_F32, WS_T_F32};

/* @row holds what shared memory has, or gets what it shall have. Return: false: faulted. */
static bool move(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                 unsigned lane, const struct ws_tensor_box *b, const struct ws_tensor_row *r,
                 uint8_t *row)
{
    bool loads = o->what == WS_TENSOR_LOAD;
    uint8_t *p =
        r->bytes ? ws_exec_lane_ptr(c, u, lane, WS_SP_GLOBAL, r->va, r->bytes, !loads) : NULL;
    if (r->bytes && !p)
        return false;
    if (loads) {
        fill_outside(b, row);
        if (p)
            memcpy(row + r->skip, p, r->bytes);
        flush_denormals(b, row);
    } else if (p && o->what == WS_TENSOR_REDUCE) {
        struct ws_asyncop as = *o;
        as.type = types[b->map.type];
        ws_async_reduce(&as, p, row + r->skip, r->bytes);
    } else if (p) {
        memcpy(p, row + r->skip, r->bytes);
    }
    return true;
}

static bool refuse(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane, uint64_t va,
                   const char *what)
{
    ws_exec_fault(c, u, WS_DEV_E_ILLEGAL_INSTRUCTION, lane, va, what);
    return false;
}

bool ws_exec_tensor(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                    unsigned lane)
{
    struct ws_tensor_box b;
    struct ws_tensor_row r;
    uint8_t row[WS_TENSOR_BOX_MAX * 8];
    const struct ws_async_place *box = o->what == WS_TENSOR_LOAD ? &o->dst : &o->src;
    uint64_t va = ws_async_address(c, box, lane);
    if (!ws_tensor_box(c, o, lane, &b))
        return refuse(c, u, lane, ws_async_address(c, &o->map, lane), "this is no tensor map");
    if (o->what == WS_TENSOR_REDUCE && b.each < 2)
        return refuse(c, u, lane, va, "reduction of bytes");
    uint64_t bytes = b.n_rows * b.pitch, shared = va & ~WS_WINDOW_OF(UINT64_MAX);
    if (va % 128) {
        ws_exec_fault(c, u, WS_DEV_E_MISALIGNED, lane, va, NULL);
        return false;
    }
    uint8_t *base = ws_exec_lane_ptr(c, u, lane, WS_SP_SHARED, va, bytes, true);
    while (base && ws_tensor_next(&b, &r)) {
        uint8_t *to = base - shared;
        for (uint32_t k = 0; o->what != WS_TENSOR_LOAD && k < b.row_bytes; k += 16)
            memcpy(row + k, to + swizzled(b.map.swizzle, shared + r.shared + k), 16);
        if (!move(c, u, o, lane, &b, &r, row))
            return false;
        for (uint32_t k = 0; o->what == WS_TENSOR_LOAD && k < b.row_bytes; k += 16)
            memcpy(to + swizzled(b.map.swizzle, shared + r.shared + k), row + k, 16);
    }
    c->work->n_global_loads++;
    c->work->n_load_sectors += b.n_rows * b.row_bytes / 32;
    return base && ws_async_tell(c, u, o, lane, (uint32_t)(b.n_rows * b.row_bytes));
}

/* ---- maps that kernels write ---- */

/* PTX numbers types in an order of its own. */
static const uint8_t type_of[] = {WS_TENSOR_U8,      WS_TENSOR_U16, WS_TENSOR_U32,  WS_TENSOR_S32,
                                  WS_TENSOR_U64,     WS_TENSOR_S64, WS_TENSOR_F16,  WS_TENSOR_F32,
                                  WS_TENSOR_F32_FTZ, WS_TENSOR_F64, WS_TENSOR_BF16, WS_TENSOR_TF32,
                                  WS_TENSOR_TF32_FTZ};

/* Return: false: the field cannot have that value here. */
static bool replace(struct ws_tensor_map *m, const struct ws_asyncop *o, uint64_t v)
{
    uint32_t i = o->size_bytes;
    m->magic = WS_TENSOR_MAGIC;
    switch (o->op) {
    case WS_TENSOR_ADDRESS:
        m->address = v;
        return true;
    case WS_TENSOR_RANK:
        m->rank = (uint8_t)(v + 1);
        return v < WS_TENSOR_DIMS;
    case WS_TENSOR_BOX:
        m->box[i] = (uint32_t)v;
        return true;
    case WS_TENSOR_DIM:
        m->last[i] = (uint32_t)v - 1;
        return true;
    case WS_TENSOR_STRIDE:
        m->stride[i] = v;
        return i + 1 < WS_TENSOR_DIMS;
    case WS_TENSOR_STEP:
        m->step[i] = (uint8_t)v;
        return v <= WS_TENSOR_STEP_MAX;
    case WS_TENSOR_TYPE:
        m->type = v < sizeof(type_of) ? type_of[v] : _WS_TENSOR_TYPE_N;
        return v < sizeof(type_of);
    case WS_TENSOR_SWIZZLE:
        m->swizzle = (uint8_t)v;
        return v <= WS_TENSOR_SWIZZLE_128;
    case WS_TENSOR_FILL:
        m->nan = v & 1;
        return v <= 1;
    default: /* interleaved, larger atoms */
        return !v;
    }
}

bool ws_exec_tensor_map(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                        unsigned lane)
{
    struct ws_tensor_map m;
    bool copies = o->what == WS_TENSOR_MAP_COPY;
    uint64_t v = 0;
    uint8_t *to = ws_async_at(c, u, lane, &o->dst, sizeof(m), copies ? 128 : 8, true);
    const uint8_t *from =
        to && copies ? ws_async_at(c, u, lane, &o->src, sizeof(m), 128, false) : to;
    if (!from)
        return false;
    memcpy(&m, from, sizeof(m));
    if (o->state)
        memcpy(&v, c->regs + o->state + lane * 8, 8);
    else if (!copies)
        v = ws_async_word(c, o->count, lane, 0);
    if (!copies && !replace(&m, o, v))
        return refuse(c, u, lane, v, "a tensor map that is not supported");
    memcpy(to, &m, sizeof(m));
    return true;
}
