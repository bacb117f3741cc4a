// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/matrix.c - warp-wide matrices: where their elements are, and wmma's loads and
 * stores, ldmatrix, stmatrix, movmatrix. Products are in matrix.inc.
 *
 * PTX leaves open which lane holds what of a wmma fragment, except that equal fragments agree.
 * Ours, so that whole rows of registers are rows of the matrix: A and B row by row (a B of single
 * bits column by column, as mma has them) through a register of all lanes, then through the next
 * one; where registers are more than elements, the elements repeat. C and D: the first element of
 * each lane, then the second one. Programs count on accumulators of f16 and of f32 having their
 * elements in the same order. */
#include "device/soft/exec/matrix.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"

enum { LANES = 32 };

uint32_t ws_elem_bits(enum ws_elem e)
{
    static const uint8_t bits[_WS_ELEM_N] = {
        [WS_ELEM_F16] = 16, [WS_ELEM_BF16] = 16, [WS_ELEM_TF32] = 32, [WS_ELEM_F32] = 32,
        [WS_ELEM_F64] = 64, [WS_ELEM_E4M3] = 8,  [WS_ELEM_E5M2] = 8,  [WS_ELEM_S8] = 8,
        [WS_ELEM_U8] = 8,   [WS_ELEM_S4] = 4,    [WS_ELEM_U4] = 4,    [WS_ELEM_B1] = 1,
        [WS_ELEM_S32] = 32};
    return bits[e];
}

static uint32_t reg_bits(enum ws_elem e)
{
    return e == WS_ELEM_F64 ? 64 : 32;
}

/* ---- places ---- */
static unsigned cols_of(const struct ws_matrixop *o, const struct ws_fragment *f)
{
    return f->which == WS_FRAG_A ? o->k : o->n;
}
static unsigned rows_of(const struct ws_matrixop *o, const struct ws_fragment *f)
{
    return f->which == WS_FRAG_B ? o->k : o->m;
}

static void place_wmma(const struct ws_matrixop *o, const struct ws_fragment *f, unsigned lane,
                       unsigned r, unsigned i, unsigned *ret_row, unsigned *ret_col)
{
    unsigned per_reg = reg_bits((enum ws_elem)f->elem) / ws_elem_bits((enum ws_elem)f->elem);
    unsigned rows = rows_of(o, f), cols = cols_of(o, f);
    unsigned e = f->which == WS_FRAG_C ? (r * per_reg + i) * LANES + lane
                                       : ((r * LANES + lane) * per_reg + i) % (rows * cols);
    bool by_cols = f->elem == WS_ELEM_B1 && f->which == WS_FRAG_B;
    *ret_row = by_cols ? e % rows : e / cols;
    *ret_col = by_cols ? e / rows : e % cols;
}

/* mma.m8n8k4 of f16: four products at once, each by the lanes of one quad pair (9.7.14.5.1). */
static void place_quads(const struct ws_fragment *f, unsigned lane, unsigned r, unsigned i,
                        unsigned *ret_row, unsigned *ret_col)
{
    unsigned high = lane >= 16 ? 4 : 0, x;
    switch (f->which) {
    case WS_FRAG_A:
        x = r * 2 + i;
        *ret_row = (f->col ? x : lane % 4) + high;
        *ret_col = f->col ? lane % 4 : x;
        return;
    case WS_FRAG_B:
        x = r * 2 + i;
        *ret_row = f->col ? x : lane % 4;
        *ret_col = (f->col ? lane % 4 : x) + high;
        return;
    default:
        if (f->elem == WS_ELEM_F16) {
            *ret_row = lane % 4 + high;
            *ret_col = r * 2 + i;
        } else {
            *ret_row = (lane & 1) + (r & 2) + high;
            *ret_col = (r & 4) + (lane & 2) + (r & 1);
        }
    }
}

static bool by_quads(const struct ws_matrixop *o)
{
    return o->what == WS_MATRIX_MULTIPLY && !o->wmma && o->k == 4 && o->a.elem == WS_ELEM_F16;
}

/* Where a register's element is: PTX's fragments of mma. @r: register, @i: element in it. */
static void place(const struct ws_matrixop *o, const struct ws_fragment *f, unsigned lane,
                  unsigned r, unsigned i, unsigned *ret_row, unsigned *ret_col)
{
    if (o->wmma) {
        place_wmma(o, f, lane, r, i, ret_row, ret_col);
        return;
    }
    if (by_quads(o)) {
        place_quads(f, lane, r, i, ret_row, ret_col);
        return;
    }
    unsigned group = lane / 4, in_group = lane % 4;
    unsigned per_reg = reg_bits((enum ws_elem)f->elem) / ws_elem_bits((enum ws_elem)f->elem);
    if (f->which == WS_FRAG_A) {
        unsigned block = o->m == 16 ? r / 2 : r;
        *ret_row = group + (o->m == 16 && r % 2 ? 8 : 0);
        *ret_col = (block * 4 + in_group) * per_reg + i;
    } else if (f->which == WS_FRAG_B) {
        *ret_row = (r * 4 + in_group) * per_reg + i;
        *ret_col = group;
    } else {
        unsigned x = r * per_reg + i; /* two neighbours in a row, then eight rows below */
        *ret_row = group + x / 2 * 8;
        *ret_col = in_group * 2 + x % 2;
    }
}

/* ---- elements ---- */
static uint64_t element(const struct ws_core_ctx *c, const struct ws_fragment *f, unsigned lane,
                        unsigned r, unsigned i)
{
    const uint8_t *row = c->regs + f->row[r];
    uint32_t bits = ws_elem_bits((enum ws_elem)f->elem), word;
    uint64_t wide;
    if (bits == 64) {
        memcpy(&wide, row + lane * 8, 8);
        return wide;
    }
    memcpy(&word, row + lane * 4, 4);
    return bits == 32 ? word : word >> i * bits & ((UINT32_C(1) << bits) - 1);
}

static void set_element(struct ws_core_ctx *c, const struct ws_fragment *f, unsigned lane,
                        unsigned r, unsigned i, uint64_t v)
{
    uint8_t *row = c->regs + f->row[r];
    uint32_t bits = ws_elem_bits((enum ws_elem)f->elem), word;
    if (bits == 64) {
        memcpy(row + lane * 8, &v, 8);
        return;
    }
    memcpy(&word, row + lane * 4, 4);
    if (bits == 32) {
        word = (uint32_t)v;
    } else {
        uint32_t mask = ((UINT32_C(1) << bits) - 1) << i * bits;
        word = (word & ~mask) | ((uint32_t)(v << i * bits) & mask);
    }
    memcpy(row + lane * 4, &word, 4);
}

#define EACH_ELEMENT(o, f, lane, r, i)                                                             \
    for (unsigned lane = 0; lane < LANES; lane++)                                                  \
        for (unsigned r = 0; r < (f)->n; r++)                                                      \
            for (unsigned i = 0;                                                                   \
                 i < reg_bits((enum ws_elem)(f)->elem) / ws_elem_bits((enum ws_elem)(f)->elem);    \
                 i++)

/* ---- places ---- */
static unsigned cell_bytes(const struct ws_fragment *f)
{
    uint32_t bits = ws_elem_bits((enum ws_elem)f->elem);
    return f->elem == WS_ELEM_B1 ? 4 : bits < 8 ? 1 : bits / 8;
}
static unsigned cells_per_reg(const struct ws_fragment *f)
{
    return f->elem == WS_ELEM_B1
               ? 1
               : reg_bits((enum ws_elem)f->elem) / ws_elem_bits((enum ws_elem)f->elem);
}

/* Which cell of the matrices (or, for loads and stores, of memory's lines) a register's is. */
static unsigned cell_at(const struct ws_matrixop *o, const struct ws_fragment *f, unsigned lane,
                        unsigned r, unsigned i)
{
    unsigned rows = rows_of(o, f), cols = cols_of(o, f), row, col;
    place(o, f, lane, r, i, &row, &col);
    if (f->elem == WS_ELEM_B1 && f->which == WS_FRAG_A) {
        col /= 32;
        cols /= 32;
    } else if (f->elem == WS_ELEM_B1) {
        row /= 32;
        rows /= 32;
    }
    if (o->what != WS_MATRIX_MULTIPLY && f->col)
        return col * rows + row;
    unsigned product = by_quads(o) ? lane % 16 / 4 : 0;
    return product * rows * cols + row * cols + col;
}

/* Whether units of twice as many cells do: each begins at a whole one, and all are pairs. */
static bool in_pairs(const uint16_t *at, unsigned n)
{
    for (unsigned k = 0; k < n; k += 2)
        if (n % 2 || at[k] % 2 || at[k + 1] != at[k] + 1)
            return false;
    return true;
}

static int find_places(const struct ws_matrixop *o, struct ws_fragment *f, bool to_registers,
                       struct ws_arena *a)
{
    uint16_t at[WS_MATRIX_CELLS];
    unsigned per = cells_per_reg(f), n = 0;
    for (unsigned r = 0; r < f->n; r++)
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned i = 0; i < per; i++) {
                unsigned here = (r * LANES + lane) * per + i, cell = cell_at(o, f, lane, r, i);
                at[to_registers ? here : cell] = (uint16_t)(to_registers ? cell : here);
                n = WS_MAX(n, (to_registers ? here : cell) + 1);
            }
    unsigned bytes = cell_bytes(f);
    for (; bytes < 16 && in_pairs(at, n); bytes *= 2, n /= 2)
        for (unsigned k = 0; k < n; k += 2)
            at[k / 2] = at[k] / 2;
    uint16_t *kept = ws_arena_array(a, n, sizeof(*kept));
    if (!kept)
        return -ENOMEM;
    memcpy(kept, at, n * sizeof(*kept));
    f->place = kept;
    f->n_units = (uint16_t)n;
    f->unit_bytes = (uint8_t)bytes;
    return 0;
}

int ws_matrix_plan(struct ws_matrixop *o, struct ws_arena *a)
{
    int r = 0;
    switch (o->what) {
    case WS_MATRIX_LOAD:
        return find_places(o, &o->d, true, a);
    case WS_MATRIX_STORE:
        return find_places(o, &o->d, false, a);
    case WS_MATRIX_MULTIPLY:
        o->n_products = by_quads(o) ? 4 : 1;
        if ((r = find_places(o, &o->a, false, a)) < 0 ||
            (r = find_places(o, &o->b, false, a)) < 0 || (r = find_places(o, &o->c, false, a)) < 0)
            return r;
        return find_places(o, &o->d, true, a);
    default:
        return 0;
    }
}

void ws_matrix_set_registers(struct ws_core_ctx *c, const struct ws_fragment *f,
                             const uint8_t *from, uint32_t lanes)
{
    unsigned bytes = reg_bits((enum ws_elem)f->elem) / 8;
    for (unsigned r = 0; r < f->n; r++, from += LANES * bytes) {
        uint8_t *row = c->regs + f->row[r];
        if (lanes == UINT32_MAX)
            memcpy(row, from, LANES * bytes);
        else
            for (uint32_t m = lanes; m; m &= m - 1) {
                unsigned lane = (unsigned)__builtin_ctz(m);
                memcpy(row + lane * bytes, from + lane * bytes, bytes);
            }
    }
}

/* ---- memory ---- */
static uint64_t address_of(const struct ws_core_ctx *c, const struct ws_matrixop *o, unsigned lane)
{
    uint64_t va = 0;
    memcpy(&va, c->regs + o->address + lane * (o->a32 ? 4 : 8), o->a32 ? 4 : 8);
    va += (uint64_t)o->offset;
    return o->a32 ? (uint32_t)va : va;
}

/* The stride of lane @lane, in elements. */
static uint32_t stride_of(const struct ws_core_ctx *c, const struct ws_matrixop *o, unsigned lane)
{
    uint32_t stride = o->d.col ? rows_of(o, &o->d) : cols_of(o, &o->d);
    if (o->stride)
        memcpy(&stride, c->regs + o->stride + lane * 4, 4);
    return stride;
}

/* As load_store(), for the usual case: all lanes name the same matrix, and each of its lines is in
 * memory. Return: false: it is another case, and nothing was done. */
static bool load_store_lines(struct ws_core_ctx *c, const struct ws_matrixop *o, uint32_t lanes)
{
    const struct ws_fragment *f = &o->d;
    uint8_t registers[WS_MATRIX_BYTES], memory[WS_MATRIX_BYTES], *line[LANES];
    uint32_t bits = ws_elem_bits((enum ws_elem)f->elem), stride = stride_of(c, o, 0);
    uint32_t n = f->col ? cols_of(o, f) : rows_of(o, f),
             length = f->col ? rows_of(o, f) : cols_of(o, f);
    uint64_t at = address_of(c, o, 0);
    bool store = o->what == WS_MATRIX_STORE;
    if (lanes != UINT32_MAX || bits < 8 || n > LANES)
        return false;
    for (unsigned lane = 1; lane < LANES; lane++)
        if (address_of(c, o, lane) != at || stride_of(c, o, lane) != stride)
            return false;
    length *= bits / 8;
    for (unsigned k = 0; k < n; k++) {
        uint64_t va = at + (uint64_t)k * stride * (bits / 8);
        if (!(line[k] = ws_exec_lane_try(c, 0, o->space, va, length, store)))
            return false;
    }
    if (store) {
        for (unsigned r = 0, bytes = LANES * reg_bits((enum ws_elem)f->elem) / 8; r < f->n; r++)
            memcpy(registers + r * bytes, c->regs + f->row[r], bytes);
        ws_matrix_move(f, registers, memory);
        for (unsigned k = 0; k < n; k++)
            memcpy(line[k], memory + k * length, length);
    } else {
        for (unsigned k = 0; k < n; k++)
            memcpy(memory + k * length, line[k], length);
        ws_matrix_move(f, memory, registers);
        ws_matrix_set_registers(c, f, registers, lanes);
    }
    return true;
}

/* wmma.load and store: element (row, col) at row * stride + col, or the other way round. Below a
 * byte: packed. */
static bool load_store_elements(struct ws_core_ctx *c, const struct ws_uop *u,
                                const struct ws_matrixop *o, uint32_t lanes)
{
    const struct ws_fragment *f = &o->d;
    uint32_t bits = ws_elem_bits((enum ws_elem)f->elem), bytes = bits < 8 ? 1 : bits / 8;
    bool store = o->what == WS_MATRIX_STORE;
    unsigned row, col;
    EACH_ELEMENT(o, f, lane, r, i)
    {
        if (!(lanes >> lane & 1))
            continue;
        uint32_t stride = stride_of(c, o, lane);
        place(o, f, lane, r, i, &row, &col);
        uint64_t at = f->col ? (uint64_t)col * stride + row : (uint64_t)row * stride + col;
        uint64_t va = address_of(c, o, lane) + at * bits / 8, v = 0;
        uint8_t *p = ws_exec_lane_ptr(c, u, lane, o->space, va, bytes, store);
        if (!p)
            return false;
        if (store) {
            v = element(c, f, lane, r, i);
            memcpy(p, &v, bytes);
        } else {
            memcpy(&v, p, bytes);
            if (bits < 8)
                v = v >> at * bits % 8 & ((1u << bits) - 1);
            set_element(c, f, lane, r, i, v);
        }
    }
    return true;
}

static bool load_store(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_matrixop *o,
                       uint32_t lanes)
{
    const struct ws_fragment *f = &o->d;
    uint32_t bits = ws_elem_bits((enum ws_elem)f->elem);
    bool store = o->what == WS_MATRIX_STORE;
    if (!load_store_lines(c, o, lanes) && !load_store_elements(c, u, o, lanes))
        return false;
    uint64_t sectors = (uint64_t)rows_of(o, f) * cols_of(o, f) * bits / 8 / 32;
    if (o->space == WS_SP_SHARED) {
        c->work->n_shared_accesses += f->n;
        c->work->n_shared_transactions += f->n;
    } else if (store) {
        c->work->n_global_stores += f->n;
        c->work->n_store_sectors += sectors;
    } else {
        c->work->n_global_loads += f->n;
        c->work->n_load_sectors += sectors;
    }
    return true;
}

/* Tiles of 8 x 8 halves; lane 8 t + r has the address of row r of tile t. */
static bool tiles(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_matrixop *o,
                  uint32_t lanes)
{
    bool store = o->what == WS_MATRIX_STMATRIX;
    for (unsigned t = 0; t < o->n_tiles; t++) {
        uint8_t *rows[8];
        for (unsigned r = 0; r < 8; r++) {
            unsigned lane = 8 * t + r;
            rows[r] = ws_exec_lane_ptr(c, u, lane, o->space, address_of(c, o, lane), 16, store);
            if (!rows[r])
                return false;
        }
        if (lanes == UINT32_MAX && !o->trans) { /* its rows, one after the other */
            for (unsigned r = 0; r < 8; r++) {
                uint8_t *half_row = c->regs + o->d.row[t] + 16 * r;
                memcpy(store ? rows[r] : half_row, store ? half_row : rows[r], 16);
            }
            continue;
        }
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned i = 0; i < 2 && (lanes >> lane & 1); i++) {
                unsigned row = lane / 4, col = lane % 4 * 2 + i;
                uint8_t *p = o->trans ? rows[col] + 2 * row : rows[row] + 2 * col;
                uint16_t *half = (uint16_t *)(void *)(c->regs + o->d.row[t] + lane * 4) + i;
                if (store)
                    memcpy(p, half, 2);
                else
                    memcpy(half, p, 2);
            }
    }
    c->work->n_shared_accesses += o->n_tiles;
    c->work->n_shared_transactions += o->n_tiles; /* eight rows of 16 bytes each */
    return true;
}

static void transpose(struct ws_core_ctx *c, const struct ws_matrixop *o, uint32_t lanes)
{
    uint16_t from[LANES * 2];
    memcpy(from, c->regs + o->a.row[0], sizeof(from));
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned i = 0; i < 2 && (lanes >> lane & 1); i++)
            memcpy(c->regs + o->d.row[0] + lane * 4 + i * 2,
                   &from[(lane % 4 * 2 + i) * 8 + lane / 4], 2);
}

bool ws_exec_matrix(struct ws_core_ctx *c, const struct ws_uop *u, uint32_t lanes)
{
    const struct ws_matrixop *o = (const struct ws_matrixop *)(uintptr_t)u->imm;
    switch (o->what) {
    case WS_MATRIX_LOAD:
    case WS_MATRIX_STORE:
        return load_store(c, u, o, lanes);
    case WS_MATRIX_LDMATRIX:
    case WS_MATRIX_STMATRIX:
        return tiles(c, u, o, lanes);
    default:
        transpose(c, o, lanes);
        return true;
    }
}
