// SPDX-License-Identifier: Apache-2.0
/* frontend/blas/matrix.c - products with matrices that are vectors, symmetric, Hermitian or
 * triangular, and equations with triangular ones.
 *
 * All products are those of general matrices: a symmetric or triangular factor is first made a
 * whole matrix, and of a symmetric result one triangle is written. */
#include "frontend/blas/blas.h"

/* Names of arguments are those of BLAS. */
static bool is_fill(int fill)
{
    return fill == BLAS_FILL_LOWER || fill == BLAS_FILL_UPPER;
}
static enum ws_blas_part part_of(int fill)
{
    return fill == BLAS_FILL_LOWER ? WS_BLAS_LOWER : WS_BLAS_UPPER;
}
static struct ws_blas_matrix turned(struct ws_blas_matrix x)
{
    return (struct ws_blas_matrix){.at = x.at,
                                   .row = x.col,
                                   .col = x.row,
                                   .batch = x.batch,
                                   .listed = x.listed,
                                   .conj = x.conj};
}
static struct ws_blas_matrix conjugate(struct ws_blas_matrix x)
{
    x.conj = !x.conj;
    return x;
}
static const struct ws_blas_scalar one = {.re = 1};

/* The scalar of Hermitian updates is real. */
static struct ws_blas_scalar real_scalar(const struct ws_blas *h, enum ws_blas_type type,
                                         const void *p)
{
    struct ws_blas_scalar s = ws_blas_scalar(h, ws_blas_real(type), p);
    s.real = true;
    return s;
}
static struct ws_blas_scalar conj_scalar(struct ws_blas_scalar s)
{
    s.im = -s.im;
    s.conj = true;
    return s;
}

/* ---- a matrix and vectors ---- */

struct gemv {
    enum ws_blas_type type, out;
    int op;
    int64_t m, n, lda, incx, incy, batches, step_a, step_x, step_y;
    const void *alpha, *beta, *a, *x;
    void *y;
    bool listed;
};

/* y = alpha op(A) x + beta y */
static int gemv(struct ws_blas *h, const struct gemv *g)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (!ws_blas_is_op(g->op) || g->m < 0 || g->n < 0 || g->lda < WS_MAX(1, g->m) || !g->incx ||
        !g->incy || g->batches < 0 || !g->alpha || !g->beta)
        return BLAS_INVALID;
    int64_t rows = g->op == BLAS_N ? g->m : g->n, cols = g->op == BLAS_N ? g->n : g->m;
    struct ws_blas_matrix a = ws_blas_matrix(g->a, g->op, g->lda),
                          x = ws_blas_column(g->x, cols, g->incx),
                          y = ws_blas_column(g->y, rows, g->incy);
    a.batch = g->step_a;
    x.batch = g->step_x;
    y.batch = g->step_y;
    a.listed = x.listed = y.listed = g->listed;
    return ws_blas_multiply(h, cols, g->batches, (struct ws_blas_factor){a, g->type, 0},
                            (struct ws_blas_factor){x, g->type, 0},
                            &(struct ws_blas_finish){
                                .m = rows,
                                .n = 1,
                                .c = y,
                                .d = y,
                                .alpha = ws_blas_scalar(h, ws_blas_sums(g->type), g->alpha),
                                .beta = ws_blas_scalar(h, ws_blas_sums(g->type), g->beta),
                                .c_type = g->out,
                                .d_type = g->out,
                            });
}

#define GEMV(I)                                                                                    \
    (struct ws_blas * h, int op, I m, I n, const void *alpha, const void *a, I lda, const void *x, \
     I incx, const void *beta, void *y, I incy)
#define GEMV_LISTED(I)                                                                             \
    (struct ws_blas * h, int op, I m, I n, const void *alpha, const void *a, I lda, const void *x, \
     I incx, const void *beta, void *y, I incy, I batches)
#define GEMV_STRIDED(I)                                                                            \
    (struct ws_blas * h, int op, I m, I n, const void *alpha, const void *a, I lda,                \
     long long step_a, const void *x, I incx, long long step_x, const void *beta, void *y, I incy, \
     long long step_y, I batches)
#define COMMON                                                                                     \
    .op = op, .m = m, .n = n, .lda = lda, .incx = incx, .incy = incy, .alpha = alpha,              \
    .beta = beta, .a = a, .x = x, .y = y
#define GEMVS(list_name, strided_name, type_, out_)                                                \
    BLAS_BOTH(list_name, GEMV_LISTED,                                                              \
              gemv(h, &(struct gemv){COMMON, .type = type_, .out = out_, .batches = batches,       \
                                     .listed = true}))                                             \
    BLAS_BOTH(strided_name, GEMV_STRIDED,                                                          \
              gemv(h, &(struct gemv){COMMON, .type = type_, .out = out_, .batches = batches,       \
                                     .step_a = step_a, .step_x = step_x, .step_y = step_y}))
#define GEMV_ALONE(name, type_)                                                                    \
    BLAS_BOTH(name, GEMV,                                                                          \
              gemv(h, &(struct gemv){COMMON, .type = type_, .out = type_, .batches = 1}))
GEMV_ALONE(cublasSgemv_v2, WS_BLAS_F32)
GEMV_ALONE(cublasDgemv_v2, WS_BLAS_F64)
GEMV_ALONE(cublasCgemv_v2, WS_BLAS_C32)
GEMV_ALONE(cublasZgemv_v2, WS_BLAS_C64)
GEMVS(cublasSgemvBatched, cublasSgemvStridedBatched, WS_BLAS_F32, WS_BLAS_F32)
GEMVS(cublasDgemvBatched, cublasDgemvStridedBatched, WS_BLAS_F64, WS_BLAS_F64)
GEMVS(cublasCgemvBatched, cublasCgemvStridedBatched, WS_BLAS_C32, WS_BLAS_C32)
GEMVS(cublasZgemvBatched, cublasZgemvStridedBatched, WS_BLAS_C64, WS_BLAS_C64)
GEMVS(cublasHSHgemvBatched, cublasHSHgemvStridedBatched, WS_BLAS_F16, WS_BLAS_F16)
GEMVS(cublasHSSgemvBatched, cublasHSSgemvStridedBatched, WS_BLAS_F16, WS_BLAS_F32)
GEMVS(cublasTSTgemvBatched, cublasTSTgemvStridedBatched, WS_BLAS_BF16, WS_BLAS_BF16)
GEMVS(cublasTSSgemvBatched, cublasTSSgemvStridedBatched, WS_BLAS_BF16, WS_BLAS_F32)

/* A = alpha x op(y) + A, where op(y) is a row. */
static int ger(struct ws_blas *h, enum ws_blas_type type, int op, int64_t m, int64_t n,
               const void *alpha, const void *x, int64_t incx, const void *y, int64_t incy, void *a,
               int64_t lda)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (m < 0 || n < 0 || !incx || !incy || lda < WS_MAX(1, m) || !alpha)
        return BLAS_INVALID;
    struct ws_blas_matrix row = turned(ws_blas_column(y, n, incy)),
                          c = ws_blas_matrix(a, BLAS_N, lda);
    row.conj = op == BLAS_C;
    return ws_blas_multiply(h, 1, 1, (struct ws_blas_factor){ws_blas_column(x, m, incx), type, 0},
                            (struct ws_blas_factor){row, type, 0},
                            &(struct ws_blas_finish){
                                .m = m,
                                .n = n,
                                .c = c,
                                .d = c,
                                .alpha = ws_blas_scalar(h, type, alpha),
                                .beta = one,
                                .c_type = type,
                                .d_type = type,
                            });
}
#define GER(I)                                                                                     \
    (struct ws_blas * h, I m, I n, const void *alpha, const void *x, I incx, const void *y,        \
     I incy, void *a, I lda)
#define GERS(name, type, op)                                                                       \
    BLAS_BOTH(name, GER, ger(h, type, op, m, n, alpha, x, incx, y, incy, a, lda))
GERS(cublasSger_v2, WS_BLAS_F32, BLAS_T)
GERS(cublasDger_v2, WS_BLAS_F64, BLAS_T)
GERS(cublasCgeru_v2, WS_BLAS_C32, BLAS_T)
GERS(cublasCgerc_v2, WS_BLAS_C32, BLAS_C)
GERS(cublasZgeru_v2, WS_BLAS_C64, BLAS_T)
GERS(cublasZgerc_v2, WS_BLAS_C64, BLAS_C)

/* ---- updates of symmetric and Hermitian matrices ---- */

struct update {
    enum ws_blas_type type;
    bool hermitian, twice; /* twice: alpha a b' + alpha' b a' */
    int fill;
    int64_t n, k, ldc;
    struct ws_blas_matrix a, b; /* n x k */
    struct ws_blas_scalar alpha, beta;
    void *c;
};

/* a b' */
static int outer(struct ws_blas *h, const struct update *u, struct ws_blas_matrix a,
                 struct ws_blas_matrix b, const struct ws_blas_finish *f)
{
    return ws_blas_multiply(
        h, u->k, 1, (struct ws_blas_factor){a, u->type, 0},
        (struct ws_blas_factor){turned(u->hermitian ? conjugate(b) : b), u->type, 0}, f);
}

/* C = alpha a b' + beta C, of which one triangle is written; ' transposes, and takes the conjugate
 * if it is Hermitian. */
static int update(struct ws_blas *h, const struct update *u)
{
    struct ws_blas_matrix c = ws_blas_matrix(u->c, BLAS_N, u->ldc);
    struct ws_blas_finish f = {.m = u->n,
                               .n = u->n,
                               .c = c,
                               .d = c,
                               .alpha = u->alpha,
                               .beta = u->beta,
                               .c_type = u->type,
                               .d_type = u->type,
                               .part = part_of(u->fill),
                               .real_diagonal = u->hermitian};
    int r = outer(h, u, u->a, u->b, &f);
    if (r || !u->twice)
        return r;
    f.alpha = u->hermitian ? conj_scalar(u->alpha) : u->alpha;
    f.beta = one;
    return outer(h, u, u->b, u->a, &f);
}

static int rank_1(struct ws_blas *h, enum ws_blas_type type, bool hermitian, int fill, int64_t n,
                  const void *alpha, const void *x, int64_t incx, const void *y, int64_t incy,
                  void *a, int64_t lda)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (!is_fill(fill) || n < 0 || !incx || !incy || lda < WS_MAX(1, n) || !alpha)
        return BLAS_INVALID;
    bool twice = y;
    return update(h, &(struct update){
                         .type = type,
                         .hermitian = hermitian,
                         .twice = twice,
                         .fill = fill,
                         .n = n,
                         .k = 1,
                         .ldc = lda,
                         .a = ws_blas_column(x, n, incx),
                         .b = ws_blas_column(twice ? y : x, n, incy),
                         .alpha = hermitian && !twice ? real_scalar(h, type, alpha)
                                                      : ws_blas_scalar(h, type, alpha),
                         .beta = one,
                         .c = a,
                     });
}
#define RANK_1(I)                                                                                  \
    (struct ws_blas * h, int fill, I n, const void *alpha, const void *x, I incx, void *a, I lda)
#define RANK_2(I)                                                                                  \
    (struct ws_blas * h, int fill, I n, const void *alpha, const void *x, I incx, const void *y,   \
     I incy, void *a, I lda)
#define RANKS(name1, name2, type, hermitian)                                                       \
    BLAS_BOTH(name1, RANK_1,                                                                       \
              rank_1(h, type, hermitian, fill, n, alpha, x, incx, NULL, incx, a, lda))             \
    BLAS_BOTH(name2, RANK_2, rank_1(h, type, hermitian, fill, n, alpha, x, incx, y, incy, a, lda))
RANKS(cublasSsyr_v2, cublasSsyr2_v2, WS_BLAS_F32, false)
RANKS(cublasDsyr_v2, cublasDsyr2_v2, WS_BLAS_F64, false)
RANKS(cublasCsyr_v2, cublasCsyr2_v2, WS_BLAS_C32, false)
RANKS(cublasZsyr_v2, cublasZsyr2_v2, WS_BLAS_C64, false)
RANKS(cublasCher_v2, cublasCher2_v2, WS_BLAS_C32, true)
RANKS(cublasZher_v2, cublasZher2_v2, WS_BLAS_C64, true)

struct rank_k {
    enum ws_blas_type type;
    bool hermitian, twice, alpha_is_real;
    int fill, op;
    int64_t n, k, lda, ldb, ldc;
    const void *alpha, *a, *b, *beta;
    void *c;
};

static int rank_k(struct ws_blas *h, const struct rank_k *u)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    int64_t rows = u->op == BLAS_N ? u->n : u->k;
    if (!is_fill(u->fill) || !ws_blas_is_op(u->op) || u->n < 0 || u->k < 0 ||
        u->lda < WS_MAX(1, rows) || u->ldb < WS_MAX(1, rows) || u->ldc < WS_MAX(1, u->n) ||
        !u->alpha || !u->beta)
        return BLAS_INVALID;
    return update(h, &(struct update){
                         .type = u->type,
                         .hermitian = u->hermitian,
                         .twice = u->twice,
                         .fill = u->fill,
                         .n = u->n,
                         .k = u->k,
                         .ldc = u->ldc,
                         .a = ws_blas_matrix(u->a, u->op, u->lda),
                         .b = ws_blas_matrix(u->b, u->op, u->ldb),
                         .alpha = u->alpha_is_real ? real_scalar(h, u->type, u->alpha)
                                                   : ws_blas_scalar(h, u->type, u->alpha),
                         .beta = u->hermitian ? real_scalar(h, u->type, u->beta)
                                              : ws_blas_scalar(h, u->type, u->beta),
                         .c = u->c,
                     });
}
#define RANK_K(I)                                                                                  \
    (struct ws_blas * h, int fill, int op, I n, I k, const void *alpha, const void *a, I lda,      \
     const void *beta, void *c, I ldc)
#define RANK_2K(I)                                                                                 \
    (struct ws_blas * h, int fill, int op, I n, I k, const void *alpha, const void *a, I lda,      \
     const void *b, I ldb, const void *beta, void *c, I ldc)
#define RANK_COMMON                                                                                \
    .fill = fill, .op = op, .n = n, .k = k, .lda = lda, .ldc = ldc, .alpha = alpha, .a = a,        \
    .beta = beta, .c = c
#define RANKS_K(name, name2, namex, type_, hermitian_)                                             \
    BLAS_BOTH(name, RANK_K,                                                                        \
              rank_k(h, &(struct rank_k){RANK_COMMON, .b = a, .ldb = lda, .type = type_,           \
                                         .hermitian = hermitian_, .alpha_is_real = hermitian_}))   \
    BLAS_BOTH(name2, RANK_2K,                                                                      \
              rank_k(h, &(struct rank_k){RANK_COMMON, .b = b, .ldb = ldb, .type = type_,           \
                                         .hermitian = hermitian_, .twice = true}))                 \
    BLAS_BOTH(namex, RANK_2K,                                                                      \
              rank_k(h, &(struct rank_k){RANK_COMMON, .b = b, .ldb = ldb, .type = type_,           \
                                         .hermitian = hermitian_}))
RANKS_K(cublasSsyrk_v2, cublasSsyr2k_v2, cublasSsyrkx, WS_BLAS_F32, false)
RANKS_K(cublasDsyrk_v2, cublasDsyr2k_v2, cublasDsyrkx, WS_BLAS_F64, false)
RANKS_K(cublasCsyrk_v2, cublasCsyr2k_v2, cublasCsyrkx, WS_BLAS_C32, false)
RANKS_K(cublasZsyrk_v2, cublasZsyr2k_v2, cublasZsyrkx, WS_BLAS_C64, false)
RANKS_K(cublasCherk_v2, cublasCher2k_v2, cublasCherkx, WS_BLAS_C32, true)
RANKS_K(cublasZherk_v2, cublasZher2k_v2, cublasZherkx, WS_BLAS_C64, true)
