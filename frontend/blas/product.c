// SPDX-License-Identifier: Apache-2.0
/* frontend/blas/product.c - products of general matrices, one or many at a time. */
#include <math.h>

#include "frontend/blas/blas.h"

/* ---- parts of a product ---- */

size_t ws_blas_bytes(enum ws_blas_type type)
{
    static const uint8_t bytes[] = {
        [WS_BLAS_F32] = 4,  [WS_BLAS_F64] = 8,  [WS_BLAS_C32] = 8, [WS_BLAS_C64] = 16,
        [WS_BLAS_F16] = 2,  [WS_BLAS_BF16] = 2, [WS_BLAS_S8] = 1,  [WS_BLAS_S32] = 4,
        [WS_BLAS_E4M3] = 1, [WS_BLAS_E5M2] = 1};
    return bytes[type];
}

enum ws_blas_type ws_blas_sums(enum ws_blas_type type)
{
    return type <= WS_BLAS_C64 ? type : type == WS_BLAS_S8 ? WS_BLAS_S32 : WS_BLAS_F32;
}

static double half(uint16_t bits)
{
    int e = bits >> 10 & 31, f = bits & 1023;
    double v = e ? ldexp(1024 + f, e - 25) : ldexp(f, -24);
    if (e == 31)
        v = f ? NAN : INFINITY;
    return bits >> 15 ? -v : v;
}

struct ws_blas_scalar ws_blas_scalar(const struct ws_blas *h, enum ws_blas_type type, const void *p)
{
    struct ws_blas_scalar s = {0};
    const float *f = p;
    const double *d = p;
    if (!p)
        return s;
    if (h->scalars == BLAS_FROM_DEVICE)
        s.at = (uint64_t)(uintptr_t)p;
    else if (type == WS_BLAS_F64 || type == WS_BLAS_C64)
        s = (struct ws_blas_scalar){.re = d[0], .im = type == WS_BLAS_C64 ? d[1] : 0};
    else if (type == WS_BLAS_S32)
        s.re = *(const int32_t *)p;
    else if (type == WS_BLAS_F16)
        s.re = half(*(const uint16_t *)p);
    else
        s = (struct ws_blas_scalar){.re = f[0], .im = type == WS_BLAS_C32 ? f[1] : 0};
    return s;
}

bool ws_blas_type_of(int cuda, enum ws_blas_type *ret)
{
    /* cudaDataType, library_types.h; 1 + the type. */
    static const uint8_t types[] = {
        [0] = 1 + WS_BLAS_F32,  [1] = 1 + WS_BLAS_F64,   [2] = 1 + WS_BLAS_F16,
        [3] = 1 + WS_BLAS_S8,   [4] = 1 + WS_BLAS_C32,   [5] = 1 + WS_BLAS_C64,
        [10] = 1 + WS_BLAS_S32, [14] = 1 + WS_BLAS_BF16, [28] = 1 + WS_BLAS_E4M3,
        [29] = 1 + WS_BLAS_E5M2};
    if (cuda < 0 || cuda >= (int)WS_ARRAY_SIZE(types) || !types[cuda])
        return false;
    *ret = (enum ws_blas_type)(types[cuda] - 1);
    return true;
}

struct ws_blas_matrix ws_blas_matrix(const void *at, int op, int64_t ld)
{
    return (struct ws_blas_matrix){.at = (uint64_t)(uintptr_t)at,
                                   .row = op == BLAS_N ? 1 : ld,
                                   .col = op == BLAS_N ? ld : 1,
                                   .conj = op == BLAS_C};
}

struct ws_blas_matrix ws_blas_column(const void *at, int64_t n, int64_t step)
{
    return (struct ws_blas_matrix){
        .at = (uint64_t)(uintptr_t)at, .first = step < 0 ? (1 - n) * step : 0, .row = step};
}

/* Nothing is to be done with the sums but to multiply them by alpha. */
static bool is_plain(enum ws_blas_type sums, const struct ws_blas_finish *f)
{
    return !f->beta.at && f->beta.re == 0 && f->beta.im == 0 && f->d_type == sums &&
           f->part == WS_BLAS_ALL && !f->has_bias && f->bend == WS_BLAS_AS_IS && !f->d_scale &&
           !f->real_diagonal;
}

/* The batches of a matrix from the one of number @first on. */
static struct ws_blas_matrix from_batch(struct ws_blas_matrix x, int64_t first,
                                        enum ws_blas_type type)
{
    x.at +=
        (uint64_t)first * (x.listed ? sizeof(uint64_t) : (uint64_t)x.batch * ws_blas_bytes(type));
    return x;
}

/* One product, of some of the batches. */
struct work {
    struct ws_blas_factor a, b; /* of all batches */
    int64_t k, first, batches;
    enum ws_blas_type sums;
    bool plain; /* the sums are d */
    struct ws_blas_finish finish;
};

static int64_t tile_of(enum ws_blas_type sums)
{
    return sums == WS_BLAS_C32 || sums == WS_BLAS_C64 ? WS_BLAS_TILE_COMPLEX : WS_BLAS_TILE;
}
static int64_t in_tiles(enum ws_blas_type sums, int64_t n)
{
    return (n + tile_of(sums) - 1) / tile_of(sums);
}
/* Of a factor with @n rows, or columns. */
static int64_t tiled_bytes(const struct work *w, int64_t n)
{
    return in_tiles(w->sums, n) * tile_of(w->sums) * w->k * (int64_t)ws_blas_bytes(w->sums);
}

/* Where a tile would be mostly empty each element of the result has a thread. */
static bool is_thin(const struct work *w)
{
    return (w->finish.m <= 8 || w->finish.n <= 8) && w->a.type == w->b.type && !w->a.scale &&
           !w->b.scale && w->a.type < WS_BLAS_S32;
}

static int thin(struct ws_blas *h, const struct work *w, struct ws_blas_matrix d,
                struct ws_blas_scalar alpha)
{
    struct ws_blas_thin p = {.m = w->finish.m,
                             .n = w->finish.n,
                             .k = w->k,
                             .a = from_batch(w->a.matrix, w->first, w->a.type),
                             .b = from_batch(w->b.matrix, w->first, w->b.type),
                             .d = d,
                             .alpha = alpha};
    return ws_blas_run(h, w->a.type, BLAS_THIN, &p, p.m * p.n, w->batches);
}

static int put_into_tiles(struct ws_blas *h, const struct work *w, const struct ws_blas_factor *f,
                          struct ws_blas_matrix from, int64_t n, uint64_t to)
{
    struct ws_blas_tile p = {.from = from_batch(from, w->first, f->type),
                             .type = f->type,
                             .n = n,
                             .k = w->k,
                             .to = to,
                             .scale = f->scale};
    return w->k ? ws_blas_run(h, w->sums, BLAS_TILE, &p,
                              in_tiles(w->sums, n) * tile_of(w->sums) * w->k, w->batches)
                : BLAS_OK;
}

static int tiled(struct ws_blas *h, const struct work *w, struct ws_blas_matrix d,
                 struct ws_blas_scalar alpha)
{
    int64_t m = w->finish.m, n = w->finish.n, a_bytes = tiled_bytes(w, m) * w->batches;
    struct ws_blas_product p = {.m = m, .n = n, .k = w->k, .d = d, .alpha = alpha};
    struct ws_blas_matrix across = w->b.matrix; /* its columns are in tiles */
    across.row = w->b.matrix.col;
    across.col = w->b.matrix.row;
    int r = w->k ? ws_blas_memory(h, a_bytes + tiled_bytes(w, n) * w->batches, &p.a) : BLAS_OK;
    if (r)
        return r;
    p.b = p.a + (uint64_t)a_bytes;
    r = put_into_tiles(h, w, &w->a, w->a.matrix, m, p.a);
    if (!r)
        r = put_into_tiles(h, w, &w->b, across, n, p.b);
    if (!r)
        r = ws_blas_run(h, w->sums, BLAS_PRODUCT, &p, in_tiles(w->sums, m) * in_tiles(w->sums, n),
                        w->batches);
    ws_blas_free_later(h, p.a);
    return r;
}

static int multiply_some(struct ws_blas *h, const struct work *w)
{
    struct ws_blas_finish f = w->finish;
    f.sums = from_batch(f.sums, w->first, w->sums);
    f.c = from_batch(f.c, w->first, f.c_type);
    f.d = from_batch(f.d, w->first, f.d_type);
    f.bias = from_batch(f.bias, w->first, f.bias_type);
    int r = (is_thin(w) ? thin : tiled)(h, w, w->plain ? f.d : f.sums,
                                        w->plain ? f.alpha : (struct ws_blas_scalar){.re = 1});
    return r || w->plain ? r : ws_blas_run(h, w->sums, BLAS_FINISH, &f, f.m * f.n, w->batches);
}

int ws_blas_multiply(struct ws_blas *h, int64_t k, int64_t batches, struct ws_blas_factor a,
                     struct ws_blas_factor b, const struct ws_blas_finish *finish)
{
    enum { MOST_BYTES = 64 << 20 /* of factors in tiles, if there is more than one batch */ };
    struct work w = {.a = a, .b = b, .sums = ws_blas_sums(a.type), .finish = *finish};
    const struct ws_blas_scalar *alpha = &finish->alpha;
    int64_t n = finish->m * finish->n;
    if (!n || !batches)
        return BLAS_OK;
    w.k = !alpha->at && alpha->re == 0 && alpha->im == 0 ? 0 : k; /* or the factors are not read */
    w.plain = is_plain(w.sums, finish);
    w.finish.sums = (struct ws_blas_matrix){.row = 1, .col = finish->m, .batch = n};
    int r = w.plain ? BLAS_OK
                    : ws_blas_memory(h, n * batches * (int64_t)ws_blas_bytes(w.sums),
                                     &w.finish.sums.at);
    int64_t each = tiled_bytes(&w, finish->m) + tiled_bytes(&w, finish->n),
            most = WS_MIN(BLAS_BATCHES_MAX, is_thin(&w) ? INT64_MAX : 1 + MOST_BYTES / (1 + each));
    for (; !r && w.first < batches; w.first += w.batches) {
        w.batches = WS_MIN(batches - w.first, most);
        r = multiply_some(h, &w);
    }
    ws_blas_free_later(h, w.finish.sums.at);
    return r;
}

int ws_blas_packed(struct ws_blas *h, enum ws_blas_type type, struct ws_blas_pack p,
                   struct ws_blas_matrix *ret)
{
    int64_t n = p.rows * p.cols;
    *ret = (struct ws_blas_matrix){0};
    int r = ws_blas_memory(h, n * (int64_t)ws_blas_bytes(type), &p.to);
    if (r)
        return r;
    if ((r = ws_blas_run(h, type, BLAS_PACK, &p, n, 1))) {
        ws_blas_free_later(h, p.to);
        return r;
    }
    *ret = (struct ws_blas_matrix){.at = p.to, .row = 1, .col = p.rows};
    return BLAS_OK;
}

/* ---- cublas<t>gemm and its kin ---- */

/* What all of them say. Steps between batches, and lists of addresses, are in the matrices. */
struct gemm {
    int op_a, op_b;
    int64_t m, n, k, batches;
    const void *alpha, *beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc, step_a, step_b, step_c;
    bool listed;
    enum ws_blas_type type, out, scalars;
};

static int gemm(struct ws_blas *h, const struct gemm *g)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (!ws_blas_is_op(g->op_a) || !ws_blas_is_op(g->op_b) || g->m < 0 || g->n < 0 || g->k < 0 ||
        g->batches < 0 || g->lda < WS_MAX(1, g->op_a == BLAS_N ? g->m : g->k) ||
        g->ldb < WS_MAX(1, g->op_b == BLAS_N ? g->k : g->n) || g->ldc < WS_MAX(1, g->m) ||
        !g->alpha || !g->beta)
        return BLAS_INVALID;
    if (g->scalars == WS_BLAS_F16 && h->scalars == BLAS_FROM_DEVICE)
        return ws_blas_not_supported("scalars of 16 bits in device memory");
    struct ws_blas_matrix a = ws_blas_matrix(g->a, g->op_a, g->lda),
                          b = ws_blas_matrix(g->b, g->op_b, g->ldb),
                          c = ws_blas_matrix(g->c, BLAS_N, g->ldc);
    a.batch = g->step_a;
    b.batch = g->step_b;
    c.batch = g->step_c;
    a.listed = b.listed = c.listed = g->listed;
    return ws_blas_multiply(h, g->k, g->batches, (struct ws_blas_factor){a, g->type, 0},
                            (struct ws_blas_factor){b, g->type, 0},
                            &(struct ws_blas_finish){
                                .m = g->m,
                                .n = g->n,
                                .c = c,
                                .d = c,
                                .alpha = ws_blas_scalar(h, g->scalars, g->alpha),
                                .beta = ws_blas_scalar(h, g->scalars, g->beta),
                                .c_type = g->out,
                                .d_type = g->out,
                            });
}

#define GEMM(I)                                                                                    \
    (struct ws_blas * h, int op_a, int op_b, I m, I n, I k, const void *alpha, const void *a,      \
     I lda, const void *b, I ldb, const void *beta, void *c, I ldc)
#define GEMM_LISTED(I)                                                                             \
    (struct ws_blas * h, int op_a, int op_b, I m, I n, I k, const void *alpha, const void *a,      \
     I lda, const void *b, I ldb, const void *beta, void *c, I ldc, I batches)
#define GEMM_STRIDED(I)                                                                            \
    (struct ws_blas * h, int op_a, int op_b, I m, I n, I k, const void *alpha, const void *a,      \
     I lda, long long step_a, const void *b, I ldb, long long step_b, const void *beta, void *c,   \
     I ldc, long long step_c, I batches)
#define COMMON                                                                                     \
    .op_a = op_a, .op_b = op_b, .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .a = a,      \
    .b = b, .c = c, .lda = lda, .ldb = ldb, .ldc = ldc
#define GEMMS(name, list_name, strided_name, type_, scalars_)                                      \
    BLAS_BOTH(name, GEMM,                                                                          \
              gemm(h, &(struct gemm){COMMON, .batches = 1, .type = type_, .out = type_,            \
                                     .scalars = scalars_}))                                        \
    BLAS_BOTH(list_name, GEMM_LISTED,                                                              \
              gemm(h, &(struct gemm){COMMON, .batches = batches, .listed = true, .type = type_,    \
                                     .out = type_, .scalars = scalars_}))                          \
    BLAS_BOTH(strided_name, GEMM_STRIDED,                                                          \
              gemm(h, &(struct gemm){COMMON, .batches = batches, .step_a = step_a,                 \
                                     .step_b = step_b, .step_c = step_c, .type = type_,            \
                                     .out = type_, .scalars = scalars_}))
GEMMS(cublasSgemm_v2, cublasSgemmBatched, cublasSgemmStridedBatched, WS_BLAS_F32, WS_BLAS_F32)
GEMMS(cublasDgemm_v2, cublasDgemmBatched, cublasDgemmStridedBatched, WS_BLAS_F64, WS_BLAS_F64)
GEMMS(cublasCgemm_v2, cublasCgemmBatched, cublasCgemmStridedBatched, WS_BLAS_C32, WS_BLAS_C32)
GEMMS(cublasZgemm_v2, cublasZgemmBatched, cublasZgemmStridedBatched, WS_BLAS_C64, WS_BLAS_C64)
GEMMS(cublasCgemm3m, cublasCgemm3mBatched, cublasCgemm3mStridedBatched, WS_BLAS_C32, WS_BLAS_C32)
GEMMS(cublasHgemm, cublasHgemmBatched, cublasHgemmStridedBatched, WS_BLAS_F16, WS_BLAS_F16)
BLAS_BOTH(cublasZgemm3m, GEMM,
          gemm(h, &(struct gemm){COMMON, .batches = 1, .type = WS_BLAS_C64, .out = WS_BLAS_C64,
                                 .scalars = WS_BLAS_C64}))

/* ---- types that are chosen when the program runs ---- */

/* cublasComputeType_t: 64 and 65 are of halfs, 72 and 73 of integers. Others say how exact a sum
 * must be at least, and each is more exact than that. */
enum { COMPUTE_16F = 64, COMPUTE_16F_PEDANTIC = 65 };

static int gemm_ex(struct ws_blas *h, struct gemm g, int a, int b, int c, int compute)
{
    enum ws_blas_type type_b;
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (!ws_blas_type_of(a, &g.type) || !ws_blas_type_of(b, &type_b) ||
        !ws_blas_type_of(c, &g.out) || g.type != type_b || g.type >= WS_BLAS_S32)
        return ws_blas_not_supported("products of these types (cublasGemmEx)");
    enum ws_blas_type sums = ws_blas_sums(g.type);
    bool narrow = g.out == WS_BLAS_F16 || g.out == WS_BLAS_BF16;
    if (sums == WS_BLAS_F32 ? g.out != WS_BLAS_F32 && !narrow : g.out != sums)
        return ws_blas_not_supported("products of these types (cublasGemmEx)");
    g.scalars = compute == COMPUTE_16F || compute == COMPUTE_16F_PEDANTIC ? WS_BLAS_F16 : sums;
    return gemm(h, &g);
}

#define GEMM_EX(I)                                                                                 \
    (struct ws_blas * h, int op_a, int op_b, I m, I n, I k, const void *alpha, const void *a,      \
     int type_a, I lda, const void *b, int type_b, I ldb, const void *beta, void *c, int type_c,   \
     I ldc, int compute, int algorithm)
#define GEMM_LISTED_EX(I)                                                                          \
    (struct ws_blas * h, int op_a, int op_b, I m, I n, I k, const void *alpha, const void *a,      \
     int type_a, I lda, const void *b, int type_b, I ldb, const void *beta, void *c, int type_c,   \
     I ldc, I batches, int compute, int algorithm)
#define GEMM_STRIDED_EX(I)                                                                         \
    (struct ws_blas * h, int op_a, int op_b, I m, I n, I k, const void *alpha, const void *a,      \
     int type_a, I lda, long long step_a, const void *b, int type_b, I ldb, long long step_b,      \
     const void *beta, void *c, int type_c, I ldc, long long step_c, I batches, int compute,       \
     int algorithm)
#define OLD_EX(I)                                                                                  \
    (struct ws_blas * h, int op_a, int op_b, I m, I n, I k, const void *alpha, const void *a,      \
     int type_a, I lda, const void *b, int type_b, I ldb, const void *beta, void *c, int type_c,   \
     I ldc)
enum { COMPUTE_AS_TYPED = 68 };
BLAS_BOTH(cublasGemmEx, GEMM_EX,
          ((void)algorithm,
           gemm_ex(h, (struct gemm){COMMON, .batches = 1}, type_a, type_b, type_c, compute)))
BLAS_BOTH(cublasGemmBatchedEx, GEMM_LISTED_EX,
          ((void)algorithm, gemm_ex(h, (struct gemm){COMMON, .batches = batches, .listed = true},
                                    type_a, type_b, type_c, compute)))
BLAS_BOTH(cublasGemmStridedBatchedEx, GEMM_STRIDED_EX,
          ((void)algorithm, gemm_ex(h,
                                    (struct gemm){COMMON, .batches = batches, .step_a = step_a,
                                                  .step_b = step_b, .step_c = step_c},
                                    type_a, type_b, type_c, compute)))
BLAS_BOTH(cublasSgemmEx, OLD_EX,
          gemm_ex(h, (struct gemm){COMMON, .batches = 1}, type_a, type_b, type_c, COMPUTE_AS_TYPED))
BLAS_BOTH(cublasCgemmEx, OLD_EX,
          gemm_ex(h, (struct gemm){COMMON, .batches = 1}, type_a, type_b, type_c, COMPUTE_AS_TYPED))
