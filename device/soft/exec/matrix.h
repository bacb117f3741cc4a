/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/matrix.h - warp-wide matrix instructions: what the decoder tells the micro-op
 * "matrix". Private to the interpreter. Source: PTX ISA 9.0, 9.7.14 "Warp Level Matrix
 * Multiply-Accumulate Instructions". */
#ifndef WS_DEVICE_SOFT_EXEC_MATRIX_H
#define WS_DEVICE_SOFT_EXEC_MATRIX_H

#include <string.h>

#include "device/soft/exec/priv.h"

/* Of a matrix. */
enum ws_elem {
    WS_ELEM_F16,
    WS_ELEM_BF16,
    WS_ELEM_TF32,
    WS_ELEM_F32,
    WS_ELEM_F64,
    WS_ELEM_E4M3,
    WS_ELEM_E5M2,
    WS_ELEM_S8,
    WS_ELEM_U8,
    WS_ELEM_S4,
    WS_ELEM_U4,
    WS_ELEM_B1,
    WS_ELEM_S32,
    _WS_ELEM_N
};
enum ws_frag { WS_FRAG_A, WS_FRAG_B, WS_FRAG_C }; /* C: also D */
enum ws_matrix_what {
    WS_MATRIX_LOAD,
    WS_MATRIX_STORE,
    WS_MATRIX_MULTIPLY,
    WS_MATRIX_LDMATRIX,
    WS_MATRIX_STMATRIX,
    WS_MATRIX_MOVMATRIX,
};
/* A cell is an element as matrices are worked on: one of 4 bits has a byte, and 32 of one bit are a
 * word. */
enum {
    WS_MATRIX_ROWS = 8,     /* registers of a fragment, at most */
    WS_MATRIX_CELLS = 1024, /* cells of its registers, or of four matrices; at most */
    WS_MATRIX_BYTES = 2048, /* the same in bytes */
};

/* A part of a matrix in the registers of a warp. Its places say how cells go from registers, one
 * after the other, lane by lane, into a matrix row by row (line by line of memory, if it is to be
 * stored), or the other way round if it is a result: unit k is copied from unit place[k]. */
struct ws_fragment {
    const uint16_t *place;
    uint16_t n_units;
    uint8_t unit_bytes; /* 1, 2, 4, 8, 16: one cell, or more where neighbours stay neighbours */
    uint8_t which;      /* enum ws_frag */
    uint8_t elem;       /* enum ws_elem */
    uint8_t n;          /* registers a lane */
    bool col;           /* in memory; A and B of mma.m8n8k4.f16: in registers */
    uint32_t row[WS_MATRIX_ROWS];
};
struct ws_matrixop {
    uint8_t what;
    bool wmma; /* fragments as wmma keeps them (ours to choose), else as mma defines them */
    bool satfinite, xor_popc, and_popc;
    bool trans; /* ldmatrix, stmatrix */
    uint8_t space, n_tiles;
    uint8_t n_products; /* four of mma.m8n8k4.f16, one after the other in the matrices */
    uint16_t m, n, k;
    struct ws_fragment a, b, c, d; /* load, store, …: d */
    uint32_t address, stride;      /* rows: u64; u32 in elements, or 0: the smallest */
    bool a32;                      /* the address row has 4-byte lanes */
    int64_t offset;
};

/* wgmma.mma_async, as one of its four warps executes it: sixteen of the 64 rows of A and D, all of
 * B. The products are made eight columns at a time. Matrices in memory are said by descriptors of
 * 64 bits (9.7.15.5.1). */
enum {
    WS_WGMMA_TILES = 32,   /* of eight columns, at most */
    WS_WGMMA_K_BYTES = 32, /* of a row of A, of a column of B: of all types */
};
struct ws_wgmmaop {
    struct ws_matrixop tile;
    uint8_t n_tiles;
    bool a_in_registers;
    bool a_by_rows, b_by_rows; /* in memory neighbours are of one k; else those of one row of A,
                                * column of B */
    bool minus_a, minus_b, adds_not;
    uint32_t a, b;                     /* rows u64: descriptors */
    uint32_t adds;                     /* predicate word: D is added to, else it begins at 0 */
    uint32_t rows[4 * WS_WGMMA_TILES]; /* of D, tile.d.n each */
};

uint32_t ws_elem_bits(enum ws_elem e);
/* Finds the places of the fragments of @o, in @a. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_matrix_plan(struct ws_matrixop *o, struct ws_arena *a);
/* Copies units from @from to @to, as the places of @f say. Both hold WS_MATRIX_BYTES. */
static inline void ws_matrix_move(const struct ws_fragment *f, const uint8_t *from, uint8_t *to)
{
#define WS_MOVE_(bytes)                                                                            \
    case bytes:                                                                                    \
        for (unsigned k = 0; k < f->n_units; k++)                                                  \
            memcpy(to + k * (bytes), from + f->place[k] * (bytes), bytes);                         \
        return
    switch (f->unit_bytes) {
        WS_MOVE_(1);
        WS_MOVE_(2);
        WS_MOVE_(4);
        WS_MOVE_(8);
        WS_MOVE_(16);
    }
#undef WS_MOVE_
}
/* Writes the registers of @f, of the lanes of a mask. No elements of 4 bits or 1 bit. */
void ws_matrix_set_registers(struct ws_core_ctx *c, const struct ws_fragment *f,
                             const uint8_t *from, uint32_t lanes);
/* Executes what is no product for the active lanes. Return: false if the kernel was faulted. */
bool ws_exec_matrix(struct ws_core_ctx *c, const struct ws_uop *u, uint32_t lanes);

#endif
