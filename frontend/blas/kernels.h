/* SPDX-License-Identifier: Apache-2.0 */
/* frontend/blas/kernels.h - what the kernels of kernels.cu are given, each one structure as its
 * only parameter. Included by C and by CUDA C++.
 *
 * Sizes and distances are counted in elements. A matrix has a distance from a row to the next and
 * one from a column to the next, so that columns, rows, transposed matrices and vectors are all the
 * same to a kernel. */
#ifndef WS_FRONTEND_BLAS_KERNELS_H
#define WS_FRONTEND_BLAS_KERNELS_H

#include <stdint.h>

/* Of elements in memory. */
enum ws_blas_type {
    WS_BLAS_F32,
    WS_BLAS_F64,
    WS_BLAS_C32, /* complex: two of F32 */
    WS_BLAS_C64,
    WS_BLAS_F16,
    WS_BLAS_BF16,
    WS_BLAS_S8,
    WS_BLAS_S32,
    WS_BLAS_E4M3, /* 8 bits */
    WS_BLAS_E5M2,
    _WS_BLAS_N_TYPES,
};

struct ws_blas_scalar {
    double re, im;
    uint64_t at;         /* if not 0: it is in device memory, of the type in which is computed, */
    uint32_t real, conj; /* or the real one of it, or its conjugate counts */
};

struct ws_blas_matrix {
    uint64_t at;                    /* or of a list of addresses, one for each batch */
    int64_t first, row, col, batch; /* first: from there to the first element */
    uint32_t listed, conj;
};

/* Which elements of a square matrix count: all; or those of one triangle, with its diagonal. */
enum ws_blas_part { WS_BLAS_ALL, WS_BLAS_LOWER, WS_BLAS_UPPER };

/* Tiles of a factor, one after another: of each, @tile elements of one column (of one row, where it
 * is the second factor) stand together, then those of the next. What is outside of the matrix is 0.
 * @from has @n rows and @k columns. */
enum { WS_BLAS_TILE = 64, WS_BLAS_TILE_COMPLEX = 32 };
struct ws_blas_tile {
    struct ws_blas_matrix from;
    uint32_t type;
    int64_t n, k;
    uint64_t to, scale; /* scale: as d_scale */
};

/* d = alpha * a * b of two factors in tiles. Blocks of 32 x 8 threads; blockIdx.x: tiles of d;
 * blockIdx.z: batches. */
struct ws_blas_product {
    int64_t m, n, k;
    uint64_t a, b;
    struct ws_blas_matrix d;
    struct ws_blas_scalar alpha;
};

/* The same of two matrices as they are, by a thread for each element of d: where one of them is a
 * vector, or a few. */
struct ws_blas_thin {
    int64_t m, n, k;
    struct ws_blas_matrix a, b, d;
    struct ws_blas_scalar alpha;
};

/* d = f(alpha * sums + beta * c + bias), with @sums in the type in which was computed. Where beta
 * is 0, c is not read. */
enum ws_blas_bend { WS_BLAS_AS_IS, WS_BLAS_RELU, WS_BLAS_GELU };
struct ws_blas_finish {
    int64_t m, n;
    struct ws_blas_matrix sums, c, d, bias;
    struct ws_blas_scalar alpha, beta;
    uint32_t c_type, d_type, bias_type; /* real ones; complex and double: as the sums */
    uint32_t part;                      /* of d that is written */
    uint32_t real_diagonal;             /* the imaginary parts there become 0 */
    uint32_t bend;
    uint32_t has_bias;
    uint64_t d_scale; /* if not 0: of a number in device memory that d is multiplied by */
};

/* Makes a whole matrix, in columns without gaps, of one of which a triangle is stored. */
enum ws_blas_shape { WS_BLAS_WHOLE, WS_BLAS_SYMMETRIC, WS_BLAS_HERMITIAN, WS_BLAS_TRIANGLE };
struct ws_blas_pack {
    struct ws_blas_matrix from;
    uint32_t shape, part, unit; /* part: that is stored; unit: its diagonal counts as ones */
    uint64_t to;
    int64_t rows, cols;
};

/* Solves a * x = alpha * b for each column of b, which x takes the place of; a is a lower triangle.
 * An upper one is one with its rows and columns counted from the end. */
struct ws_blas_solve {
    int64_t n, columns;
    struct ws_blas_matrix a, b;
    struct ws_blas_scalar alpha;
    uint32_t unit; /* a's diagonal counts as ones */
};

/* d = alpha * a + beta * b, or a * b, element by element; each matrix is read if its scalar is not
 * 0. */
struct ws_blas_blend {
    int64_t rows, cols;
    struct ws_blas_matrix a, b, d;
    struct ws_blas_scalar alpha, beta;
    uint32_t multiply;
};

/* Of vectors: y += alpha * x; x *= alpha; y = x; both exchanged; both rotated, with alpha as the
 * cosine and s as the sine. */
struct ws_blas_vector {
    int64_t n, x_step, y_step;
    uint64_t x, y;
    struct ws_blas_scalar alpha, s;
};
/* One block of 256 threads. The result is of the type in which is computed (dot), or the real one
 * of it (length, sum), or an index that begins with 1 (at). */
struct ws_blas_reduce {
    int64_t n, x_step, y_step;
    uint64_t x, y, result;
    uint32_t conj;        /* dot: x is conjugated */
    uint32_t least;       /* at: of the least, not of the greatest */
    uint32_t wide;        /* at: the index has 64 bits */
    uint32_t result_type; /* dot of 16-bit floats: which type */
};

#endif
