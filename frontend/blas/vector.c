// SPDX-License-Identifier: Apache-2.0
/* frontend/blas/vector.c - vectors: sums, scalings, rotations, and what is one number of them. */
#include "frontend/blas/blas.h"

/* Where a vector begins: one with a negative step is counted from its end. */
static uint64_t start(const void *at, int64_t n, int64_t step, enum ws_blas_type type)
{
    int64_t first = ws_blas_column(at, n, step).first;
    return (uint64_t)(uintptr_t)at + (uint64_t)(first * (int64_t)ws_blas_bytes(type));
}

/* ---- element by element ---- */

static int vector(struct ws_blas *h, enum ws_blas_type type, enum ws_blas_kernel kernel, int64_t n,
                  struct ws_blas_scalar alpha, struct ws_blas_scalar s, void *x, int64_t incx,
                  void *y, int64_t incy)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    struct ws_blas_vector p = {.n = n,
                               .x_step = incx,
                               .y_step = incy,
                               .x = start(x, n, incx, type),
                               .y = start(y, n, incy, type),
                               .alpha = alpha,
                               .s = s};
    return n > 0 ? ws_blas_run(h, type, kernel, &p, n, 1) : BLAS_OK;
}
static const struct ws_blas_scalar none;

static int scale(struct ws_blas *h, enum ws_blas_type type, bool real, int64_t n, const void *alpha,
                 void *x, int64_t incx)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (!alpha)
        return BLAS_INVALID;
    if (incx <= 0)
        return BLAS_OK;
    struct ws_blas_scalar by = ws_blas_scalar(h, real ? ws_blas_real(type) : type, alpha);
    by.real = real;
    return vector(h, type, BLAS_SCALE, n, by, none, x, incx, x, incx);
}

static int axpy(struct ws_blas *h, enum ws_blas_type type, int64_t n, const void *alpha,
                const void *x, int64_t incx, void *y, int64_t incy)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (!alpha)
        return BLAS_INVALID;
    return vector(h, type, BLAS_AXPY, n, ws_blas_scalar(h, ws_blas_sums(type), alpha), none,
                  (void *)(uintptr_t)x, incx, y, incy);
}

/* The cosine is real; the sine, too, if @real_sine. */
static int rotate(struct ws_blas *h, enum ws_blas_type type, bool real_sine, int64_t n, void *x,
                  int64_t incx, void *y, int64_t incy, const void *c, const void *s)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (!c || !s)
        return BLAS_INVALID;
    struct ws_blas_scalar cosine = ws_blas_scalar(h, ws_blas_real(type), c),
                          sine = ws_blas_scalar(h, real_sine ? ws_blas_real(type) : type, s);
    cosine.real = true;
    sine.real = real_sine;
    return vector(h, type, BLAS_ROTATE, n, cosine, sine, x, incx, y, incy);
}

#define SCAL(I) (struct ws_blas * h, I n, const void *alpha, void *x, I incx)
#define AXPY(I) (struct ws_blas * h, I n, const void *alpha, const void *x, I incx, void *y, I incy)
#define COPY(I) (struct ws_blas * h, I n, const void *x, I incx, void *y, I incy)
#define SWAP(I) (struct ws_blas * h, I n, void *x, I incx, void *y, I incy)
#define ROT(I)                                                                                     \
    (struct ws_blas * h, I n, void *x, I incx, void *y, I incy, const void *c, const void *s)
#define VECTORS(scal, axpy_name, copy, swap, rot, type)                                            \
    BLAS_BOTH(scal, SCAL, scale(h, type, false, n, alpha, x, incx))                                \
    BLAS_BOTH(axpy_name, AXPY, axpy(h, type, n, alpha, x, incx, y, incy))                          \
    BLAS_BOTH(copy, COPY,                                                                          \
              vector(h, type, BLAS_COPY, n, none, none, (void *)(uintptr_t)x, incx, y, incy))      \
    BLAS_BOTH(swap, SWAP, vector(h, type, BLAS_EXCHANGE, n, none, none, x, incx, y, incy))         \
    BLAS_BOTH(rot, ROT, rotate(h, type, false, n, x, incx, y, incy, c, s))
VECTORS(cublasSscal_v2, cublasSaxpy_v2, cublasScopy_v2, cublasSswap_v2, cublasSrot_v2, WS_BLAS_F32)
VECTORS(cublasDscal_v2, cublasDaxpy_v2, cublasDcopy_v2, cublasDswap_v2, cublasDrot_v2, WS_BLAS_F64)
VECTORS(cublasCscal_v2, cublasCaxpy_v2, cublasCcopy_v2, cublasCswap_v2, cublasCrot_v2, WS_BLAS_C32)
VECTORS(cublasZscal_v2, cublasZaxpy_v2, cublasZcopy_v2, cublasZswap_v2, cublasZrot_v2, WS_BLAS_C64)
BLAS_BOTH(cublasCsscal_v2, SCAL, scale(h, WS_BLAS_C32, true, n, alpha, x, incx))
BLAS_BOTH(cublasZdscal_v2, SCAL, scale(h, WS_BLAS_C64, true, n, alpha, x, incx))
BLAS_BOTH(cublasCsrot_v2, ROT, rotate(h, WS_BLAS_C32, true, n, x, incx, y, incy, c, s))
BLAS_BOTH(cublasZdrot_v2, ROT, rotate(h, WS_BLAS_C64, true, n, x, incx, y, incy, c, s))

/* ---- one number ---- */

/* @bytes: the result's. */
static int reduce(struct ws_blas *h, enum ws_blas_type type, enum ws_blas_kernel kernel,
                  struct ws_blas_reduce p, void *result, size_t bytes)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (!result)
        return BLAS_INVALID;
    bool there = h->scalars == BLAS_FROM_DEVICE;
    p.n = p.n > 0 ? p.n : 0;
    p.result = there ? (uint64_t)(uintptr_t)result : h->result;
    int r = ws_blas_run(h, type, kernel, &p, 1, 1);
    return r || there ? r : ws_blas_fetch(h, result, h->result, bytes);
}

static int dot(struct ws_blas *h, enum ws_blas_type type, bool conj, enum ws_blas_type out,
               int64_t n, const void *x, int64_t incx, const void *y, int64_t incy, void *result)
{
    return reduce(h, type, BLAS_DOT,
                  (struct ws_blas_reduce){.n = n,
                                          .x_step = incx,
                                          .y_step = incy,
                                          .x = start(x, n, incx, type),
                                          .y = start(y, n, incy, type),
                                          .conj = conj,
                                          .result_type = out},
                  result, ws_blas_bytes(out));
}

/* Of one vector; one with a step that is not positive counts as empty, as in BLAS. */
static int of_one(struct ws_blas *h, enum ws_blas_type type, enum ws_blas_kernel kernel,
                  struct ws_blas_reduce p, int64_t n, const void *x, int64_t incx, void *result,
                  size_t bytes)
{
    p.n = incx > 0 ? n : 0;
    p.x_step = incx;
    p.x = (uint64_t)(uintptr_t)x;
    return reduce(h, type, kernel, p, result, bytes);
}
static int real_of(struct ws_blas *h, enum ws_blas_type type, enum ws_blas_kernel kernel, int64_t n,
                   const void *x, int64_t incx, void *result)
{
    return of_one(h, type, kernel, (struct ws_blas_reduce){0}, n, x, incx, result,
                  ws_blas_bytes(ws_blas_real(ws_blas_sums(type))));
}
static int place_of(struct ws_blas *h, enum ws_blas_type type, bool least, int64_t n, const void *x,
                    int64_t incx, void *result, size_t bytes)
{
    return of_one(h, type, BLAS_AT,
                  (struct ws_blas_reduce){.least = least, .wide = bytes == sizeof(int64_t)}, n, x,
                  incx, result, bytes);
}

#define DOT(I)    (struct ws_blas * h, I n, const void *x, I incx, const void *y, I incy, void *result)
#define OF_ONE(I) (struct ws_blas * h, I n, const void *x, I incx, void *result)
#define AT(I)     (struct ws_blas * h, I n, const void *x, I incx, I *result)
BLAS_BOTH(cublasSdot_v2, DOT, dot(h, WS_BLAS_F32, false, WS_BLAS_F32, n, x, incx, y, incy, result))
BLAS_BOTH(cublasDdot_v2, DOT, dot(h, WS_BLAS_F64, false, WS_BLAS_F64, n, x, incx, y, incy, result))
BLAS_BOTH(cublasCdotu_v2, DOT, dot(h, WS_BLAS_C32, false, WS_BLAS_C32, n, x, incx, y, incy, result))
BLAS_BOTH(cublasCdotc_v2, DOT, dot(h, WS_BLAS_C32, true, WS_BLAS_C32, n, x, incx, y, incy, result))
BLAS_BOTH(cublasZdotu_v2, DOT, dot(h, WS_BLAS_C64, false, WS_BLAS_C64, n, x, incx, y, incy, result))
BLAS_BOTH(cublasZdotc_v2, DOT, dot(h, WS_BLAS_C64, true, WS_BLAS_C64, n, x, incx, y, incy, result))
#define REDUCTIONS(nrm2, asum, amax, amin, type)                                                   \
    BLAS_BOTH(nrm2, OF_ONE, real_of(h, type, BLAS_LENGTH, n, x, incx, result))                     \
    BLAS_BOTH(asum, OF_ONE, real_of(h, type, BLAS_SUM, n, x, incx, result))                        \
    BLAS_BOTH(amax, AT, place_of(h, type, false, n, x, incx, result, sizeof(*result)))             \
    BLAS_BOTH(amin, AT, place_of(h, type, true, n, x, incx, result, sizeof(*result)))
REDUCTIONS(cublasSnrm2_v2, cublasSasum_v2, cublasIsamax_v2, cublasIsamin_v2, WS_BLAS_F32)
REDUCTIONS(cublasDnrm2_v2, cublasDasum_v2, cublasIdamax_v2, cublasIdamin_v2, WS_BLAS_F64)
REDUCTIONS(cublasScnrm2_v2, cublasScasum_v2, cublasIcamax_v2, cublasIcamin_v2, WS_BLAS_C32)
REDUCTIONS(cublasDznrm2_v2, cublasDzasum_v2, cublasIzamax_v2, cublasIzamin_v2, WS_BLAS_C64)

/* ---- types that are chosen when the program runs ---- */

/* Vectors of one type, which has these kernels. */
static bool known(int x, int y, enum ws_blas_type *ret)
{
    return x == y && ws_blas_type_of(x, ret) && *ret <= WS_BLAS_BF16;
}

static int dot_ex(struct ws_blas *h, bool conj, int64_t n, const void *x, int type_x, int64_t incx,
                  const void *y, int type_y, int64_t incy, void *result, int type_result)
{
    enum ws_blas_type type, out;
    if (!known(type_x, type_y, &type) || !ws_blas_type_of(type_result, &out) ||
        (out != type && out != ws_blas_sums(type)))
        return ws_blas_not_supported("products of vectors of these types (cublasDotEx)");
    return dot(h, type, conj, out, n, x, incx, y, incy, result);
}
/* Scalars are of the type in which is computed, or real ones of it are not known here. */
static bool fits(int cuda, enum ws_blas_type type)
{
    enum ws_blas_type scalar;
    return ws_blas_type_of(cuda, &scalar) && scalar == ws_blas_sums(type);
}
#define DOT_EX(I)                                                                                  \
    (struct ws_blas * h, I n, const void *x, int type_x, I incx, const void *y, int type_y,        \
     I incy, void *result, int type_result, int compute)
#define SCAL_EX(I)                                                                                 \
    (struct ws_blas * h, I n, const void *alpha, int type_alpha, void *x, int type_x, I incx,      \
     int compute)
#define AXPY_EX(I)                                                                                 \
    (struct ws_blas * h, I n, const void *alpha, int type_alpha, const void *x, int type_x,        \
     I incx, void *y, int type_y, I incy, int compute)
#define NRM2_EX(I)                                                                                 \
    (struct ws_blas * h, I n, const void *x, int type_x, I incx, void *result, int type_result,    \
     int compute)

static int scal_ex(struct ws_blas *h, int64_t n, const void *alpha, int type_alpha, void *x,
                   int type_x, int64_t incx)
{
    enum ws_blas_type type;
    if (!known(type_x, type_x, &type) || !fits(type_alpha, type))
        return ws_blas_not_supported("a scaling of these types (cublasScalEx)");
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    return incx <= 0 ? BLAS_OK
                     : vector(h, type, BLAS_SCALE, n, ws_blas_scalar(h, ws_blas_sums(type), alpha),
                              none, x, incx, x, incx);
}
static int axpy_ex(struct ws_blas *h, int64_t n, const void *alpha, int type_alpha, const void *x,
                   int type_x, int64_t incx, void *y, int type_y, int64_t incy)
{
    enum ws_blas_type type;
    if (!known(type_x, type_y, &type) || !fits(type_alpha, type))
        return ws_blas_not_supported("a sum of these types (cublasAxpyEx)");
    return axpy(h, type, n, alpha, x, incx, y, incy);
}
static int nrm2_ex(struct ws_blas *h, int64_t n, const void *x, int type_x, int64_t incx,
                   void *result, int type_result)
{
    enum ws_blas_type type, out;
    if (!known(type_x, type_x, &type) || !ws_blas_type_of(type_result, &out) ||
        out != ws_blas_real(ws_blas_sums(type)))
        return ws_blas_not_supported("a norm of these types (cublasNrm2Ex)");
    return real_of(h, type, BLAS_LENGTH, n, x, incx, result);
}
BLAS_BOTH(cublasDotEx, DOT_EX,
          ((void)compute,
           dot_ex(h, false, n, x, type_x, incx, y, type_y, incy, result, type_result)))
BLAS_BOTH(cublasDotcEx, DOT_EX,
          ((void)compute,
           dot_ex(h, true, n, x, type_x, incx, y, type_y, incy, result, type_result)))
BLAS_BOTH(cublasScalEx, SCAL_EX, ((void)compute, scal_ex(h, n, alpha, type_alpha, x, type_x, incx)))
BLAS_BOTH(cublasAxpyEx, AXPY_EX,
          ((void)compute, axpy_ex(h, n, alpha, type_alpha, x, type_x, incx, y, type_y, incy)))
BLAS_BOTH(cublasNrm2Ex, NRM2_EX,
          ((void)compute, nrm2_ex(h, n, x, type_x, incx, result, type_result)))
