/* SPDX-License-Identifier: Apache-2.0 */
/* frontend/blas/blas.h - cuBLAS for programs whose GPU executes PTX. Private to this folder.
 *
 * Functions here return a status of cuBLAS. Sizes and distances are counted in elements, and
 * matrices stand in columns, as cuBLAS has them. Threads: any; one at a time uses a handle, as with
 * cuBLAS. */
#ifndef WS_FRONTEND_BLAS_BLAS_H
#define WS_FRONTEND_BLAS_BLAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/macros.h"
#include "frontend/blas/kernels.h"

/* cublasStatus_t, cublasOperation_t and so on (cublas_api.h). */
enum {
    BLAS_OK,
    BLAS_NOT_INITIALIZED,
    BLAS_NO_MEMORY = 3,
    BLAS_INVALID = 7,
    BLAS_FAILED = 13,
    BLAS_NOT_SUPPORTED = 15,
};
enum { BLAS_N, BLAS_T, BLAS_C };
enum { BLAS_FILL_LOWER, BLAS_FILL_UPPER };
enum { BLAS_NOT_UNIT, BLAS_UNIT };
enum { BLAS_LEFT, BLAS_RIGHT };
enum { BLAS_FROM_HOST, BLAS_FROM_DEVICE };

/* The kernels of each type, in rows K(constant, name). */
#define BLAS_KERNELS(K)                                                                            \
    K(BLAS_TILE, "tile")                                                                           \
    K(BLAS_PRODUCT, "product")                                                                     \
    K(BLAS_THIN, "thin")                                                                           \
    K(BLAS_FINISH, "finish")                                                                       \
    K(BLAS_PACK, "pack")                                                                           \
    K(BLAS_SOLVE, "solve")                                                                         \
    K(BLAS_BLEND, "blend")                                                                         \
    K(BLAS_AXPY, "axpy")                                                                           \
    K(BLAS_SCALE, "scale")                                                                         \
    K(BLAS_COPY, "copy")                                                                           \
    K(BLAS_EXCHANGE, "exchange")                                                                   \
    K(BLAS_ROTATE, "rotate")                                                                       \
    K(BLAS_DOT, "dot")                                                                             \
    K(BLAS_LENGTH, "length")                                                                       \
    K(BLAS_SUM, "sum")                                                                             \
    K(BLAS_AT, "at")
enum ws_blas_kernel {
#define K(constant, name) constant,
    BLAS_KERNELS(K)
#undef K
        _BLAS_N_KERNELS,
};

enum {
    WS_BLAS_MAGIC = 0x77736261,
    BLAS_BATCHES_MAX = 65535, /* of a launch */
};
/* cublasHandle_t, which is cublasLtHandle_t, too. */
struct ws_blas {
    uint32_t magic;
    void *stream;
    int scalars; /* BLAS_FROM_HOST, BLAS_FROM_DEVICE */
    int math, atomics, sm_target;
    uint64_t result; /* device memory for the result of a reduction */
    struct ws_blas_code *code;
};
/* What was loaded of the kernels, in the context in which the handle was made. Copies of a handle
 * share it. */
struct ws_blas_code {
    void *modules[_WS_BLAS_N_TYPES];
    void *kernels[_WS_BLAS_N_TYPES][_BLAS_N_KERNELS];
};

/* ---- run.c ---- */
static inline bool ws_blas_valid(const struct ws_blas *h)
{
    return h && h->magic == WS_BLAS_MAGIC;
}
/* The type's kernel with @params as its parameter, for @batches times @n elements, or tiles of a
 * product. */
WS_MUST_CHECK int ws_blas_run(struct ws_blas *h, enum ws_blas_type type, enum ws_blas_kernel kernel,
                              const void *params, int64_t n, int64_t batches);
/* Memory until what was given to the stream before ws_blas_free_later() is done. */
WS_MUST_CHECK int ws_blas_memory(struct ws_blas *h, int64_t bytes, uint64_t *ret);
void ws_blas_free_later(struct ws_blas *h, uint64_t memory);
/* Unloads what was loaded. */
void ws_blas_unload(struct ws_blas *h);
/* Waits for @bytes of a result. */
WS_MUST_CHECK int ws_blas_fetch(struct ws_blas *h, void *to, uint64_t from, size_t bytes);
/* The status that says what a code of CUDA's driver does. */
int ws_blas_status(int code);
/* Says once what a program asked for in vain. Return: BLAS_NOT_SUPPORTED. */
int ws_blas_not_supported(const char *what);

/* ---- product.c ---- */
size_t ws_blas_bytes(enum ws_blas_type type);
/* The type in which products of @type are computed. */
enum ws_blas_type ws_blas_sums(enum ws_blas_type type);
/* *p, of type @type, as the handle says where scalars are; NULL: 0. */
struct ws_blas_scalar ws_blas_scalar(const struct ws_blas *h, enum ws_blas_type type,
                                     const void *p);
/* The real type of complex ones; others are their own. */
static inline enum ws_blas_type ws_blas_real(enum ws_blas_type type)
{
    return type == WS_BLAS_C32 ? WS_BLAS_F32 : type == WS_BLAS_C64 ? WS_BLAS_F64 : type;
}
static inline bool ws_blas_is_op(int op)
{
    return op >= BLAS_N && op <= BLAS_C;
}
/* cudaDataType. Return: whether it is one that is known. */
bool ws_blas_type_of(int cuda, enum ws_blas_type *ret);
/* op(A), where A is at @at with columns @ld elements apart. */
struct ws_blas_matrix ws_blas_matrix(const void *at, int op, int64_t ld);
/* A vector as a matrix of one column. BLAS counts those with a negative step from their end. */
struct ws_blas_matrix ws_blas_column(const void *at, int64_t n, int64_t step);
/* Makes a whole matrix, which is not empty. *ret: it, in columns of @p.rows elements; its memory is
 * ret->at, for ws_blas_free_later(). */
WS_MUST_CHECK int ws_blas_packed(struct ws_blas *h, enum ws_blas_type type, struct ws_blas_pack p,
                                 struct ws_blas_matrix *ret);

struct ws_blas_factor {
    struct ws_blas_matrix matrix;
    enum ws_blas_type type;
    uint64_t scale; /* 0, or of a float in device memory that it is multiplied by */
};
/* d = f(alpha * a * b + beta * c + bias), where all but a and b is in @finish; a is m x k and b is
 * k x n. Their types may differ if both are real floats. */
WS_MUST_CHECK int ws_blas_multiply(struct ws_blas *h, int64_t k, int64_t batches,
                                   struct ws_blas_factor a, struct ws_blas_factor b,
                                   const struct ws_blas_finish *finish);

#define BLAS_API(name, params)                                                                     \
    WS_EXPORT int name params;                                                                     \
    int name params
/* Defines a function whose sizes are int, and the one whose name ends with _64, whose sizes are
 * int64_t. P is a macro that makes the list of parameters of the type of sizes. */
#define BLAS_BOTH(name, P, call)                                                                   \
    BLAS_API(name, P(int))                                                                         \
    {                                                                                              \
        return call;                                                                               \
    }                                                                                              \
    BLAS_API(name##_64, P(int64_t))                                                                \
    {                                                                                              \
        return call;                                                                               \
    }

#endif
