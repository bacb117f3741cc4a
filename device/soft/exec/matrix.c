// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/matrix.c - warp-wide matrices: wmma, mma, ldmatrix, stmatrix, movmatrix.
 *
 * A multiplication takes all lanes' registers apart into matrices of doubles (or of 64-bit
 * integers), multiplies, and puts the result together again. Products of the narrow formats are
 * exact in double, and so is nearly every sum of them; the result is rounded once to its format,
 * which is at least as close as PTX asks ("accumulation at single precision or better"). f64 uses
 * fused multiply-adds in order of k.
 *
 * PTX leaves open which lane holds what of a wmma fragment, except that equal fragments agree.
 * Ours: elements row by row, lane 0 the first few, then lane 1; where registers are more than
 * elements, the elements repeat. */
#include "device/soft/exec/matrix.h"

#include <math.h>
#include <string.h>

#include "device/soft/decode/lane.h"

enum { LANES = 32, MAX_ELEMS = 64 * 256 };

uint32_t ws_elem_bits(enum ws_elem e)
{
    static const uint8_t bits[_WS_ELEM_N] = {
        [WS_ELEM_F16] = 16, [WS_ELEM_BF16] = 16, [WS_ELEM_TF32] = 32, [WS_ELEM_F32] = 32,
        [WS_ELEM_F64] = 64, [WS_ELEM_E4M3] = 8,  [WS_ELEM_E5M2] = 8,  [WS_ELEM_S8] = 8,
        [WS_ELEM_U8] = 8,   [WS_ELEM_S4] = 4,    [WS_ELEM_U4] = 4,    [WS_ELEM_B1] = 1,
        [WS_ELEM_S32] = 32};
    return bits[e];
}

static bool is_int(enum ws_elem e)
{
    return e >= WS_ELEM_S8;
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
    unsigned e = (lane * f->n * per_reg + r * per_reg + i) % (rows * cols);
    *ret_row = e / cols;
    *ret_col = e % cols;
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
static double f16_value(uint16_t bits)
{
    double d;
    uint64_t wide = ws_lane_cvt(bits, 0, 0,
                                WS_FMT_F64 << WS_CVT_DST_SHIFT | WS_FMT_F16 << WS_CVT_SRC_SHIFT |
                                    WS_RND_RN << WS_CVT_RND_SHIFT);
    memcpy(&d, &wide, sizeof(d));
    return d;
}
static double f32_value(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof(f));
    return (double)f;
}
static double e4m3_value(uint8_t b)
{
    int exponent = b >> 3 & 15, fraction = b & 7;
    double v = (b & 0x7f) == 0x7f ? NAN
               : exponent         ? ldexp(8 + fraction, exponent - 10)
                                  : ldexp(fraction, -9);
    return b & 0x80 ? -v : v;
}

static double value(enum ws_elem e, uint64_t bits)
{
    double d;
    switch (e) {
    case WS_ELEM_F16:
        return f16_value((uint16_t)bits);
    case WS_ELEM_BF16:
        return f32_value((uint32_t)(bits & 0xffff) << 16);
    case WS_ELEM_TF32: /* the low 13 bits are not looked at */
        return f32_value((uint32_t)bits & 0xffffe000u);
    case WS_ELEM_F32:
        return f32_value((uint32_t)bits);
    case WS_ELEM_E4M3:
        return e4m3_value((uint8_t)bits);
    case WS_ELEM_E5M2:
        return f16_value((uint16_t)((bits & 0xff) << 8));
    default:
        memcpy(&d, &bits, sizeof(d));
        return d;
    }
}

static int64_t integer(enum ws_elem e, uint64_t bits)
{
    switch (e) {
    case WS_ELEM_S8:
        return (int8_t)bits;
    case WS_ELEM_S4:
        return (int8_t)(bits << 4) >> 4;
    case WS_ELEM_S32:
        return (int32_t)bits;
    default:
        return (int64_t)bits;
    }
}

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

/* ---- multiplication ---- */
union cell {
    double f;
    int64_t i;
};
#define EACH_ELEMENT(o, f, lane, r, i)                                                             \
    for (unsigned lane = 0; lane < LANES; lane++)                                                  \
        for (unsigned r = 0; r < (f)->n; r++)                                                      \
            for (unsigned i = 0;                                                                   \
                 i < reg_bits((enum ws_elem)(f)->elem) / ws_elem_bits((enum ws_elem)(f)->elem);    \
                 i++)

static bool in_quads(unsigned lane, unsigned quads)
{
    return quads == UINT32_MAX || lane % 16 / 4 == quads;
}

static void gather(const struct ws_core_ctx *c, const struct ws_matrixop *o,
                   const struct ws_fragment *f, unsigned quads, union cell *m)
{
    unsigned cols = cols_of(o, f), row, col;
    EACH_ELEMENT(o, f, lane, r, i)
    {
        if (!in_quads(lane, quads))
            continue;
        uint64_t bits = element(c, f, lane, r, i);
        place(o, f, lane, r, i, &row, &col);
        if (is_int((enum ws_elem)f->elem))
            m[row * cols + col].i = integer((enum ws_elem)f->elem, bits);
        else
            m[row * cols + col].f = value((enum ws_elem)f->elem, bits);
    }
}

static int64_t dot_int(const struct ws_matrixop *o, const union cell *a, const union cell *b,
                       int64_t sum)
{
    for (unsigned k = 0; k < o->k; k++) {
        int64_t x = a[k].i, y = b[(size_t)k * o->n].i;
        sum += o->xor_popc ? (x ^ y) & 1 : x * y; /* and: bits multiply */
    }
    return sum;
}

static double dot_float(const struct ws_matrixop *o, const union cell *a, const union cell *b,
                        double sum)
{
    for (unsigned k = 0; k < o->k; k++)
        sum = fma(a[k].f, b[(size_t)k * o->n].f, sum);
    return sum;
}

static uint64_t result_bits(enum ws_elem e, union cell v, bool satfinite)
{
    uint64_t bits = 0;
    float f;
    switch (e) {
    case WS_ELEM_S32:
        if (satfinite)
            v.i = v.i < INT32_MIN ? INT32_MIN : v.i > INT32_MAX ? INT32_MAX : v.i;
        return (uint32_t)v.i;
    case WS_ELEM_F16:
        if (v.f != v.f)
            return 0x7fff;
        memcpy(&bits, &v.f, 8);
        return ws_lane_cvt(bits, 0, 0,
                           WS_FMT_F16 << WS_CVT_DST_SHIFT | WS_FMT_F64 << WS_CVT_SRC_SHIFT |
                               WS_RND_RN << WS_CVT_RND_SHIFT);
    case WS_ELEM_F64:
        memcpy(&bits, &v.f, 8);
        return bits;
    default:
        if (v.f != v.f)
            return 0x7fffffff;
        f = (float)v.f;
        memcpy(&bits, &f, 4);
        return bits;
    }
}

static void multiply_part(struct ws_core_ctx *c, const struct ws_matrixop *o, uint32_t lanes,
                          unsigned quads)
{
    union cell a[32 * 256], b[256 * 32], s[32 * 32];
    unsigned row, col;
    gather(c, o, &o->a, quads, a);
    gather(c, o, &o->b, quads, b);
    gather(c, o, &o->c, quads, s);
    for (unsigned i = 0; i < o->m; i++)
        for (unsigned j = 0; j < o->n; j++) {
            union cell *to = &s[i * o->n + j];
            if (is_int((enum ws_elem)o->a.elem))
                to->i = dot_int(o, a + i * o->k, b + j, to->i);
            else
                to->f = dot_float(o, a + i * o->k, b + j, to->f);
        }
    EACH_ELEMENT(o, &o->d, lane, r, i)
    {
        if (!(lanes >> lane & 1) || !in_quads(lane, quads))
            continue;
        place(o, &o->d, lane, r, i, &row, &col);
        set_element(c, &o->d, lane, r, i,
                    result_bits((enum ws_elem)o->d.elem, s[row * o->n + col], o->satfinite));
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

/* wmma.load and store: element (row, col) at row * stride + col, or the other way round. Below a
 * byte: packed. */
static bool load_store(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_matrixop *o,
                       uint32_t lanes)
{
    const struct ws_fragment *f = &o->d;
    uint32_t bits = ws_elem_bits((enum ws_elem)f->elem), bytes = bits < 8 ? 1 : bits / 8, stride;
    bool store = o->what == WS_MATRIX_STORE;
    unsigned row, col;
    EACH_ELEMENT(o, f, lane, r, i)
    {
        if (!(lanes >> lane & 1))
            continue;
        stride = f->col ? rows_of(o, f) : cols_of(o, f);
        if (o->stride)
            memcpy(&stride, c->regs + o->stride + lane * 4, 4);
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
    case WS_MATRIX_MOVMATRIX:
        transpose(c, o, lanes);
        return true;
    default:
        if (!by_quads(o)) {
            multiply_part(c, o, lanes, UINT32_MAX);
        } else {
            for (unsigned q = 0; q < 4; q++)
                multiply_part(c, o, lanes, q);
        }
        return true;
    }
}
