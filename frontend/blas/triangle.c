// SPDX-License-Identifier: Apache-2.0
/* frontend/blas/triangle.c - products with a symmetric, Hermitian or triangular factor, of which
 * one triangle is stored; equations with triangular matrices; and sums of matrices. */
#include "frontend/blas/blas.h"

static bool is_fill(int fill)
{
    return fill == BLAS_FILL_LOWER || fill == BLAS_FILL_UPPER;
}

struct factor {
    enum ws_blas_type type;
    enum ws_blas_shape shape;
    int side, fill, op;
    bool unit;
    int64_t m, n; /* of the other factor, and of the result */
    const void *alpha, *beta;
    const void *a;
    int64_t lda;
    struct ws_blas_matrix b, d;
};

/* The whole of the factor, as it stands in the product. */
static int whole(struct ws_blas *h, const struct factor *f, struct ws_blas_matrix *ret)
{
    int64_t n = f->side == BLAS_LEFT ? f->m : f->n;
    struct ws_blas_matrix made;
    int r = ws_blas_packed(h, f->type,
                           (struct ws_blas_pack){
                               .from = ws_blas_matrix(f->a, BLAS_N, f->lda),
                               .shape = f->shape,
                               .part = f->fill == BLAS_FILL_LOWER ? WS_BLAS_LOWER : WS_BLAS_UPPER,
                               .unit = f->unit,
                               .rows = n,
                               .cols = n,
                           },
                           &made);
    *ret = ws_blas_matrix((void *)(uintptr_t)made.at, f->op, n);
    return r;
}

/* d = alpha a b + beta d, or alpha b a + beta d. */
static int multiply(struct ws_blas *h, const struct factor *f)
{
    int64_t n = f->side == BLAS_LEFT ? f->m : f->n;
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if ((f->side != BLAS_LEFT && f->side != BLAS_RIGHT) || !is_fill(f->fill) ||
        !ws_blas_is_op(f->op) || f->m < 0 || f->n < 0 || f->lda < WS_MAX(1, n) || !f->alpha ||
        f->b.row == 0 || f->d.row == 0 || f->b.col < 0 || f->d.col < 0)
        return BLAS_INVALID;
    if (!f->m || !f->n)
        return BLAS_OK;
    struct ws_blas_matrix a, b = f->b, copy = {0};
    int r = whole(h, f, &a);
    if (!r && f->b.at == f->d.at) { /* in place */
        r = ws_blas_packed(h, f->type,
                           (struct ws_blas_pack){.from = f->b, .rows = f->m, .cols = f->n}, &copy);
        b = copy;
    }
    bool left = f->side == BLAS_LEFT;
    if (!r)
        r = ws_blas_multiply(h, n, 1, (struct ws_blas_factor){left ? a : b, f->type, 0},
                             (struct ws_blas_factor){left ? b : a, f->type, 0},
                             &(struct ws_blas_finish){
                                 .m = f->m,
                                 .n = f->n,
                                 .c = f->d,
                                 .d = f->d,
                                 .alpha = ws_blas_scalar(h, f->type, f->alpha),
                                 .beta = ws_blas_scalar(h, f->type, f->beta),
                                 .c_type = f->type,
                                 .d_type = f->type,
                             });
    ws_blas_free_later(h, a.at);
    ws_blas_free_later(h, copy.at);
    return r;
}

#define SYMM(I)                                                                                    \
    (struct ws_blas * h, int side, int fill, I m, I n, const void *alpha, const void *a, I lda,    \
     const void *b, I ldb, const void *beta, void *c, I ldc)
#define SYMV(I)                                                                                    \
    (struct ws_blas * h, int fill, I n, const void *alpha, const void *a, I lda, const void *x,    \
     I incx, const void *beta, void *y, I incy)
#define SYMS(mm, mv, type_, shape_)                                                                \
    BLAS_BOTH(mm, SYMM,                                                                            \
              ldb < WS_MAX(1, m) || ldc < WS_MAX(1, m) || !beta                                    \
                  ? BLAS_INVALID                                                                   \
                  : multiply(h, &(struct factor){.type = type_,                                    \
                                                 .shape = shape_,                                  \
                                                 .side = side,                                     \
                                                 .fill = fill,                                     \
                                                 .m = m,                                           \
                                                 .n = n,                                           \
                                                 .alpha = alpha,                                   \
                                                 .beta = beta,                                     \
                                                 .a = a,                                           \
                                                 .lda = lda,                                       \
                                                 .b = ws_blas_matrix(b, BLAS_N, ldb),              \
                                                 .d = ws_blas_matrix(c, BLAS_N, ldc)}))            \
    BLAS_BOTH(mv, SYMV,                                                                            \
              !beta ? BLAS_INVALID                                                                 \
                    : multiply(h, &(struct factor){.type = type_,                                  \
                                                   .shape = shape_,                                \
                                                   .fill = fill,                                   \
                                                   .m = n,                                         \
                                                   .n = 1,                                         \
                                                   .alpha = alpha,                                 \
                                                   .beta = beta,                                   \
                                                   .a = a,                                         \
                                                   .lda = lda,                                     \
                                                   .b = ws_blas_column(x, n, incx),                \
                                                   .d = ws_blas_column(y, n, incy)}))
SYMS(cublasSsymm_v2, cublasSsymv_v2, WS_BLAS_F32, WS_BLAS_SYMMETRIC)
SYMS(cublasDsymm_v2, cublasDsymv_v2, WS_BLAS_F64, WS_BLAS_SYMMETRIC)
SYMS(cublasCsymm_v2, cublasCsymv_v2, WS_BLAS_C32, WS_BLAS_SYMMETRIC)
SYMS(cublasZsymm_v2, cublasZsymv_v2, WS_BLAS_C64, WS_BLAS_SYMMETRIC)
SYMS(cublasChemm_v2, cublasChemv_v2, WS_BLAS_C32, WS_BLAS_HERMITIAN)
SYMS(cublasZhemm_v2, cublasZhemv_v2, WS_BLAS_C64, WS_BLAS_HERMITIAN)

static const double ones[2] = {1, 0};
static const float ones_f[2] = {1, 0};
static const void *one_of(enum ws_blas_type type)
{
    return type == WS_BLAS_F32 || type == WS_BLAS_C32 ? (const void *)ones_f : ones;
}

/* x = op(A) x: the scalar is the host's, whatever the handle says. */
static int trmv(struct ws_blas *h, enum ws_blas_type type, int fill, int op, int unit, int64_t n,
                const void *a, int64_t lda, void *x, int64_t incx)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    struct ws_blas host = *h;
    host.scalars = BLAS_FROM_HOST;
    return multiply(&host, &(struct factor){.type = type,
                                            .shape = WS_BLAS_TRIANGLE,
                                            .fill = fill,
                                            .op = op,
                                            .unit = unit == BLAS_UNIT,
                                            .m = n,
                                            .n = 1,
                                            .alpha = one_of(type),
                                            .a = a,
                                            .lda = lda,
                                            .b = ws_blas_column(x, n, incx),
                                            .d = ws_blas_column(x, n, incx)});
}

/* ---- equations ---- */

struct solve {
    enum ws_blas_type type;
    int side, fill, op, unit;
    int64_t m, n, lda, batches;
    const void *alpha; /* NULL: 1 */
    const void *a;
    struct ws_blas_matrix b;
    bool listed;
};

/* op(A) X = alpha B, or X op(A) = alpha B, which is the first one with all matrices transposed. */
static int solve(struct ws_blas *h, const struct solve *s)
{
    bool left = s->side == BLAS_LEFT;
    int64_t n = left ? s->m : s->n, columns = left ? s->n : s->m;
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if ((!left && s->side != BLAS_RIGHT) || !is_fill(s->fill) || !ws_blas_is_op(s->op) ||
        s->m < 0 || s->n < 0 || s->lda < WS_MAX(1, n) || s->batches < 0 || !s->b.row)
        return BLAS_INVALID;
    if (!n || !columns || !s->batches)
        return BLAS_OK;
    struct ws_blas_matrix a = ws_blas_matrix(s->a, s->op, s->lda), b = s->b;
    bool lower = (s->fill == BLAS_FILL_LOWER) == (s->op == BLAS_N);
    if (!left) {
        a = (struct ws_blas_matrix){.at = a.at, .row = a.col, .col = a.row, .conj = a.conj};
        b.row = s->b.col;
        b.col = s->b.row;
        lower = !lower;
    }
    if (!lower) { /* from the end */
        a = (struct ws_blas_matrix){.at = a.at,
                                    .first = (n - 1) * (a.row + a.col),
                                    .row = -a.row,
                                    .col = -a.col,
                                    .conj = a.conj};
        b.first += (n - 1) * b.row;
        b.row = -b.row;
    }
    a.listed = b.listed = s->listed;
    struct ws_blas_solve p = {.n = n,
                              .columns = columns,
                              .a = a,
                              .b = b,
                              .alpha = s->alpha ? ws_blas_scalar(h, s->type, s->alpha)
                                                : (struct ws_blas_scalar){.re = 1},
                              .unit = s->unit == BLAS_UNIT};
    return ws_blas_run(h, s->type, BLAS_SOLVE, &p, columns, s->batches);
}

#define TRMV(I)                                                                                    \
    (struct ws_blas * h, int fill, int op, int unit, I n, const void *a, I lda, void *x, I incx)
#define TRMM(I)                                                                                    \
    (struct ws_blas * h, int side, int fill, int op, int unit, I m, I n, const void *alpha,        \
     const void *a, I lda, const void *b, I ldb, void *c, I ldc)
#define TRSM(I)                                                                                    \
    (struct ws_blas * h, int side, int fill, int op, int unit, I m, I n, const void *alpha,        \
     const void *a, I lda, void *b, I ldb)
#define TRSM_LISTED(I)                                                                             \
    (struct ws_blas * h, int side, int fill, int op, int unit, I m, I n, const void *alpha,        \
     const void *a, I lda, void *b, I ldb, I batches_)
#define TRSM_COMMON                                                                                \
    .side = side, .fill = fill, .op = op, .unit = unit, .m = m, .n = n, .lda = lda,                \
    .alpha = alpha, .a = a, .b = ws_blas_matrix(b, BLAS_N, ldb)
#define TRIANGLES(mv, sv, mm, sm, sm_listed, type_)                                                \
    BLAS_BOTH(mv, TRMV, trmv(h, type_, fill, op, unit, n, a, lda, x, incx))                        \
    BLAS_BOTH(sv, TRMV,                                                                            \
              solve(h, &(struct solve){.type = type_,                                              \
                                       .fill = fill,                                               \
                                       .op = op,                                                   \
                                       .unit = unit,                                               \
                                       .m = n,                                                     \
                                       .n = 1,                                                     \
                                       .lda = lda,                                                 \
                                       .batches = 1,                                               \
                                       .a = a,                                                     \
                                       .b = ws_blas_column(x, n, incx)}))                          \
    BLAS_BOTH(mm, TRMM,                                                                            \
              ldb < WS_MAX(1, m) || ldc < WS_MAX(1, m)                                             \
                  ? BLAS_INVALID                                                                   \
                  : multiply(h, &(struct factor){.type = type_,                                    \
                                                 .shape = WS_BLAS_TRIANGLE,                        \
                                                 .side = side,                                     \
                                                 .fill = fill,                                     \
                                                 .op = op,                                         \
                                                 .unit = unit == BLAS_UNIT,                        \
                                                 .m = m,                                           \
                                                 .n = n,                                           \
                                                 .alpha = alpha,                                   \
                                                 .a = a,                                           \
                                                 .lda = lda,                                       \
                                                 .b = ws_blas_matrix(b, BLAS_N, ldb),              \
                                                 .d = ws_blas_matrix(c, BLAS_N, ldc)}))            \
    BLAS_BOTH(sm, TRSM,                                                                            \
              ldb < WS_MAX(1, m) || !alpha                                                         \
                  ? BLAS_INVALID                                                                   \
                  : solve(h, &(struct solve){TRSM_COMMON, .type = type_, .batches = 1}))           \
    BLAS_BOTH(sm_listed, TRSM_LISTED,                                                              \
              ldb < WS_MAX(1, m) || !alpha                                                         \
                  ? BLAS_INVALID                                                                   \
                  : solve(h, &(struct solve){TRSM_COMMON, .type = type_, .batches = batches_,      \
                                             .listed = true}))
TRIANGLES(cublasStrmv_v2, cublasStrsv_v2, cublasStrmm_v2, cublasStrsm_v2, cublasStrsmBatched,
          WS_BLAS_F32)
TRIANGLES(cublasDtrmv_v2, cublasDtrsv_v2, cublasDtrmm_v2, cublasDtrsm_v2, cublasDtrsmBatched,
          WS_BLAS_F64)
TRIANGLES(cublasCtrmv_v2, cublasCtrsv_v2, cublasCtrmm_v2, cublasCtrsm_v2, cublasCtrsmBatched,
          WS_BLAS_C32)
TRIANGLES(cublasZtrmv_v2, cublasZtrsv_v2, cublasZtrmm_v2, cublasZtrsm_v2, cublasZtrsmBatched,
          WS_BLAS_C64)

/* ---- element by element ---- */

/* C = alpha op(A) + beta op(B) */
static int geam(struct ws_blas *h, enum ws_blas_type type, int op_a, int op_b, int64_t m, int64_t n,
                const void *alpha, const void *a, int64_t lda, const void *beta, const void *b,
                int64_t ldb, void *c, int64_t ldc)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (!ws_blas_is_op(op_a) || !ws_blas_is_op(op_b) || m < 0 || n < 0 || ldc < WS_MAX(1, m) ||
        !alpha || !beta)
        return BLAS_INVALID;
    struct ws_blas_blend p = {.rows = m,
                              .cols = n,
                              .a = ws_blas_matrix(a, op_a, lda),
                              .b = ws_blas_matrix(b, op_b, ldb),
                              .d = ws_blas_matrix(c, BLAS_N, ldc),
                              .alpha = ws_blas_scalar(h, type, alpha),
                              .beta = ws_blas_scalar(h, type, beta)};
    return m && n ? ws_blas_run(h, type, BLAS_BLEND, &p, m * n, 1) : BLAS_OK;
}

/* C = A diag(x), or diag(x) A */
static int dgmm(struct ws_blas *h, enum ws_blas_type type, int side, int64_t m, int64_t n,
                const void *a, int64_t lda, const void *x, int64_t incx, void *c, int64_t ldc)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if ((side != BLAS_LEFT && side != BLAS_RIGHT) || m < 0 || n < 0 || lda < WS_MAX(1, m) ||
        ldc < WS_MAX(1, m))
        return BLAS_INVALID;
    struct ws_blas_matrix along = ws_blas_column(x, side == BLAS_LEFT ? m : n, incx);
    struct ws_blas_blend p = {.rows = m,
                              .cols = n,
                              .a = ws_blas_matrix(a, BLAS_N, lda),
                              .b = {.at = along.at,
                                    .first = along.first,
                                    .row = side == BLAS_LEFT ? incx : 0,
                                    .col = side == BLAS_LEFT ? 0 : incx},
                              .d = ws_blas_matrix(c, BLAS_N, ldc),
                              .alpha = {.re = 1},
                              .beta = {.re = 1},
                              .multiply = true};
    return m && n ? ws_blas_run(h, type, BLAS_BLEND, &p, m * n, 1) : BLAS_OK;
}

#define GEAM(I)                                                                                    \
    (struct ws_blas * h, int op_a, int op_b, I m, I n, const void *alpha, const void *a, I lda,    \
     const void *beta, const void *b, I ldb, void *c, I ldc)
#define DGMM(I)                                                                                    \
    (struct ws_blas * h, int side, I m, I n, const void *a, I lda, const void *x, I incx, void *c, \
     I ldc)
#define SUMS(ea, dg, type)                                                                         \
    BLAS_BOTH(ea, GEAM, geam(h, type, op_a, op_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc))      \
    BLAS_BOTH(dg, DGMM, dgmm(h, type, side, m, n, a, lda, x, incx, c, ldc))
SUMS(cublasSgeam, cublasSdgmm, WS_BLAS_F32)
SUMS(cublasDgeam, cublasDdgmm, WS_BLAS_F64)
SUMS(cublasCgeam, cublasCdgmm, WS_BLAS_C32)
SUMS(cublasZgeam, cublasZdgmm, WS_BLAS_C64)
