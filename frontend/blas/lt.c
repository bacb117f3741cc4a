// SPDX-License-Identifier: Apache-2.0
/* frontend/blas/lt.c - cuBLASLt: products whose layouts, types and endings descriptions tell. There
 * is one algorithm, which needs no workspace. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "frontend/blas/blas.h"

/* ---- descriptions ---- */

/* cublasLtMatrixLayoutOpaque_t, cublasLtMatmulDescOpaque_t and so on: programs may have room for
 * them of their own, of 64 and 256 bytes. */
struct layout {
    uint32_t type;
    int32_t order; /* 0: columns, 1: rows */
    uint64_t rows, cols;
    int64_t ld;
    int32_t batches, batch_mode; /* batch_mode: 0: distances, 1: lists of addresses */
    int64_t step, plane;
};
struct matmul {
    int32_t compute, scale, pointers, op_a, op_b, op_c, fill;
    uint32_t epilogue;
    uint64_t bias;
    int64_t bias_step;
    uint64_t a_scale, b_scale, c_scale, d_scale, d_most;
    int32_t bias_type, sm_target;
    uint8_t fast;
    int32_t a_mode, b_mode, c_mode, d_mode;
};
struct preference {
    uint64_t workspace;
};
_Static_assert(sizeof(struct layout) <= 64 && sizeof(struct matmul) <= 256, "they fit");

struct lt_attribute {
    uint8_t id, bytes, at;
};
#define ATTRIBUTE(id, type, field)                                                                 \
    {                                                                                              \
        id, sizeof(((struct type *)NULL)->field), offsetof(struct type, field)                     \
    }
/* cublasLtMatrixLayoutAttribute_t, cublasLtMatmulDescAttributes_t,
 * cublasLtMatmulPreferenceAttributes_t */
static const struct lt_attribute of_layout[] = {
    ATTRIBUTE(0, layout, type),       ATTRIBUTE(1, layout, order),
    ATTRIBUTE(2, layout, rows),       ATTRIBUTE(3, layout, cols),
    ATTRIBUTE(4, layout, ld),         ATTRIBUTE(5, layout, batches),
    ATTRIBUTE(6, layout, step),       ATTRIBUTE(7, layout, plane),
    ATTRIBUTE(8, layout, batch_mode), {0},
};
static const struct lt_attribute of_matmul[] = {
    ATTRIBUTE(0, matmul, compute),
    ATTRIBUTE(1, matmul, scale),
    ATTRIBUTE(2, matmul, pointers),
    ATTRIBUTE(3, matmul, op_a),
    ATTRIBUTE(4, matmul, op_b),
    ATTRIBUTE(5, matmul, op_c),
    ATTRIBUTE(6, matmul, fill),
    ATTRIBUTE(7, matmul, epilogue),
    ATTRIBUTE(8, matmul, bias),
    ATTRIBUTE(10, matmul, bias_step),
    ATTRIBUTE(15, matmul, sm_target),
    ATTRIBUTE(17, matmul, a_scale),
    ATTRIBUTE(18, matmul, b_scale),
    ATTRIBUTE(19, matmul, c_scale),
    ATTRIBUTE(20, matmul, d_scale),
    ATTRIBUTE(21, matmul, d_most),
    ATTRIBUTE(25, matmul, fast),
    ATTRIBUTE(26, matmul, bias_type),
    ATTRIBUTE(31, matmul, a_mode),
    ATTRIBUTE(32, matmul, b_mode),
    ATTRIBUTE(33, matmul, c_mode),
    ATTRIBUTE(34, matmul, d_mode),
    {0},
};
static const struct lt_attribute of_preference[] = {ATTRIBUTE(1, preference, workspace), {0}};

static const struct lt_attribute *find(const struct lt_attribute *list, int id)
{
    for (; list->bytes; list++)
        if (list->id == id)
            return list;
    return NULL;
}

/* What is not known here is asked for in vain, unless it is a wish (@wishes). */
static int set(const struct lt_attribute *list, void *x, int id, const void *value, size_t bytes,
               bool wishes)
{
    const struct lt_attribute *a = find(list, id);
    if (!x || !value)
        return BLAS_INVALID;
    if (!a)
        return wishes ? BLAS_OK : ws_blas_not_supported("this attribute of cuBLASLt");
    if (bytes != a->bytes)
        return BLAS_INVALID;
    memcpy((uint8_t *)x + a->at, value, bytes);
    return BLAS_OK;
}

static int get(const struct lt_attribute *list, const void *x, int id, void *ret, size_t bytes,
               size_t *ret_bytes)
{
    const struct lt_attribute *a = find(list, id);
    if (!x || !a || (!ret && bytes))
        return BLAS_INVALID;
    if (ret_bytes)
        *ret_bytes = a->bytes;
    if (bytes && bytes < a->bytes)
        return BLAS_INVALID;
    if (bytes)
        memcpy(ret, (const uint8_t *)x + a->at, a->bytes);
    return BLAS_OK;
}

static int init_layout(struct layout *x, size_t room, int type, uint64_t rows, uint64_t cols,
                       int64_t ld)
{
    if (!x || room < sizeof(*x))
        return x ? BLAS_NO_MEMORY : BLAS_INVALID;
    *x =
        (struct layout){.type = (uint32_t)type, .rows = rows, .cols = cols, .ld = ld, .batches = 1};
    return BLAS_OK;
}

static int init_matmul(struct matmul *x, size_t room, int compute, int scale)
{
    if (!x || room < sizeof(*x))
        return x ? BLAS_NO_MEMORY : BLAS_INVALID;
    *x = (struct matmul){
        .compute = compute, .scale = scale, .fill = 2, .epilogue = 1, .bias_type = -1};
    return BLAS_OK;
}

/* Makes one in new memory. */
#define CREATE(name, type, params, init)                                                           \
    BLAS_API(name, params)                                                                         \
    {                                                                                              \
        struct type *x;                                                                            \
        if (!ret)                                                                                  \
            return BLAS_INVALID;                                                                   \
        if (!(x = ws_alloc(sizeof(*x))))                                                           \
            return BLAS_NO_MEMORY;                                                                 \
        int r = init;                                                                              \
        if (r)                                                                                     \
            free(x);                                                                               \
        else                                                                                       \
            *ret = x;                                                                              \
        return r;                                                                                  \
    }
#define DESTROY(name, type)                                                                        \
    BLAS_API(name, (struct type * x))                                                              \
    {                                                                                              \
        free(x);                                                                                   \
        return BLAS_OK;                                                                            \
    }
#define ATTRIBUTES(set_name, get_name, type, list, wishes)                                         \
    BLAS_API(set_name, (struct type * x, int id, const void *value, size_t bytes))                 \
    {                                                                                              \
        return set(list, x, id, value, bytes, wishes);                                             \
    }                                                                                              \
    BLAS_API(get_name,                                                                             \
             (const struct type *x, int id, void *value, size_t bytes, size_t *ret_bytes))         \
    {                                                                                              \
        return get(list, x, id, value, bytes, ret_bytes);                                          \
    }
CREATE(cublasLtMatrixLayoutCreate, layout,
       (struct layout * *ret, int type, uint64_t rows, uint64_t cols, int64_t ld),
       init_layout(x, sizeof(*x), type, rows, cols, ld))
CREATE(cublasLtMatmulDescCreate, matmul, (struct matmul * *ret, int compute, int scale),
       init_matmul(x, sizeof(*x), compute, scale))
CREATE(cublasLtMatmulPreferenceCreate, preference, (struct preference * *ret), BLAS_OK)
DESTROY(cublasLtMatrixLayoutDestroy, layout)
DESTROY(cublasLtMatmulDescDestroy, matmul)
DESTROY(cublasLtMatmulPreferenceDestroy, preference)
ATTRIBUTES(cublasLtMatrixLayoutSetAttribute, cublasLtMatrixLayoutGetAttribute, layout, of_layout,
           false)
ATTRIBUTES(cublasLtMatmulDescSetAttribute, cublasLtMatmulDescGetAttribute, matmul, of_matmul, false)
ATTRIBUTES(cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreferenceGetAttribute, preference,
           of_preference, true)
BLAS_API(cublasLtMatrixLayoutInit_internal,
         (struct layout * x, size_t room, int type, uint64_t rows, uint64_t cols, int64_t ld))
{
    return init_layout(x, room, type, rows, cols, ld);
}
BLAS_API(cublasLtMatmulDescInit_internal, (struct matmul * x, size_t room, int compute, int scale))
{
    return init_matmul(x, room, compute, scale);
}
BLAS_API(cublasLtMatmulPreferenceInit_internal, (struct preference * x, size_t room))
{
    if (!x || room < sizeof(*x))
        return BLAS_INVALID;
    *x = (struct preference){0};
    return BLAS_OK;
}

/* ---- products ---- */

enum { EPILOGUE_AS_IS = 1, EPILOGUE_RELU = 2, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32 };

struct multiplication {
    struct ws_blas_finish p;
    int64_t k, batches;
    enum ws_blas_type type_a, type_b;
};

static struct ws_blas_matrix laid(const struct layout *l, const void *at, int op)
{
    bool by_rows = l->order == 1;
    struct ws_blas_matrix m =
        ws_blas_matrix(at, (op == BLAS_N) != by_rows ? BLAS_N : BLAS_T, l->ld);
    m.conj = op == BLAS_C;
    m.batch = l->step;
    m.listed = l->batch_mode == 1;
    return m;
}

/* Sizes fit together, and layouts are those of columns or rows. */
static bool fits(const struct matmul *o, const struct layout *a, const struct layout *b,
                 const struct layout *c, const struct layout *d)
{
    const struct layout *all[] = {a, b, c, d};
    for (unsigned i = 0; i < WS_ARRAY_SIZE(all); i++)
        if (all[i]->order < 0 || all[i]->order > 1 || all[i]->plane ||
            all[i]->batches != d->batches || all[i]->batch_mode != d->batch_mode)
            return false;
    uint64_t k = o->op_a == BLAS_N ? a->cols : a->rows;
    return d->rows == (o->op_a == BLAS_N ? a->rows : a->cols) &&
           d->cols == (o->op_b == BLAS_N ? b->cols : b->rows) &&
           k == (o->op_b == BLAS_N ? b->rows : b->cols) && c->rows == d->rows &&
           c->cols == d->cols && d->batches >= 0;
}

static bool is_real(enum ws_blas_type t)
{
    return t == WS_BLAS_F32 || t == WS_BLAS_F16 || t == WS_BLAS_BF16 || t == WS_BLAS_E4M3 ||
           t == WS_BLAS_E5M2;
}

static bool take_types(const struct matmul *o, const struct layout *a, const struct layout *b,
                       const struct layout *c, const struct layout *d, struct multiplication *m)
{
    enum ws_blas_type type_c, type_d, type_bias;
    if (!ws_blas_type_of((int)a->type, &m->type_a) || !ws_blas_type_of((int)b->type, &m->type_b) ||
        !ws_blas_type_of((int)c->type, &type_c) || !ws_blas_type_of((int)d->type, &type_d) ||
        !ws_blas_type_of(o->bias_type < 0 ? (int)d->type : o->bias_type, &type_bias))
        return false;
    m->p.c_type = type_c;
    m->p.d_type = type_d;
    m->p.bias_type = o->bias_type < 0 && type_d >= WS_BLAS_E4M3 ? type_c : type_bias;
    if (is_real(m->type_a))
        return is_real(m->type_b) && is_real(type_c) && is_real(type_d) && is_real(m->p.bias_type);
    enum ws_blas_type sums = ws_blas_sums(m->type_a);
    return m->type_a == m->type_b && m->type_a < WS_BLAS_S32 && type_c == sums && type_d == sums &&
           o->epilogue == EPILOGUE_AS_IS && !o->a_scale && !o->b_scale && !o->d_scale;
}

/* Whether it is one that is done here, and then what it is, but for addresses. */
static bool take(const struct matmul *o, const struct layout *a, const struct layout *b,
                 const struct layout *c, const struct layout *d, struct multiplication *m)
{
    uint32_t bends = o->epilogue & ~(uint32_t)EPILOGUE_BIAS;
    *m = (struct multiplication){0};
    if (!fits(o, a, b, c, d) || !ws_blas_is_op(o->op_a) || !ws_blas_is_op(o->op_b) || o->op_c ||
        o->fill != 2 || o->pointers < BLAS_FROM_HOST || o->pointers > BLAS_FROM_DEVICE ||
        o->a_mode || o->b_mode || o->c_mode || o->d_mode || o->c_scale || o->d_most ||
        (o->epilogue != EPILOGUE_AS_IS && bends && bends != EPILOGUE_RELU &&
         bends != EPILOGUE_GELU) ||
        (d->batch_mode == 1 && o->epilogue & EPILOGUE_BIAS) || !take_types(o, a, b, c, d, m))
        return false;
    m->p.m = (int64_t)d->rows;
    m->p.n = (int64_t)d->cols;
    m->k = (int64_t)(o->op_a == BLAS_N ? a->cols : a->rows);
    m->batches = d->batches;
    m->p.has_bias = o->epilogue & EPILOGUE_BIAS;
    if (bends == EPILOGUE_RELU)
        m->p.bend = WS_BLAS_RELU;
    if (bends == EPILOGUE_GELU)
        m->p.bend = WS_BLAS_GELU;
    m->p.d_scale = o->d_scale;
    return true;
}

/* The type of alpha and beta: cudaDataType. */
static enum ws_blas_type scalars(const struct matmul *o, enum ws_blas_type type)
{
    return o->scale == 2 ? WS_BLAS_F16 : ws_blas_sums(type);
}

static int matmul(struct ws_blas *h, const struct matmul *o, const void *alpha, const void *a,
                  const struct layout *la, const void *b, const struct layout *lb, const void *beta,
                  const void *c, const struct layout *lc, void *d, const struct layout *ld,
                  void *stream)
{
    struct multiplication m;
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (!o || !la || !lb || !lc || !ld || !alpha || !beta)
        return BLAS_INVALID;
    if (!take(o, la, lb, lc, ld, &m) ||
        (scalars(o, m.type_a) == WS_BLAS_F16 && o->pointers == BLAS_FROM_DEVICE))
        return ws_blas_not_supported("this product (cublasLtMatmul)");
    struct ws_blas on = *h;
    on.stream = stream;
    on.scalars = o->pointers;
    m.p.alpha = ws_blas_scalar(&on, scalars(o, m.type_a), alpha);
    m.p.beta = ws_blas_scalar(&on, scalars(o, m.type_a), beta);
    m.p.c = laid(lc, c, BLAS_N);
    m.p.d = laid(ld, d, BLAS_N);
    m.p.bias = (struct ws_blas_matrix){.at = o->bias, .row = 1, .batch = o->bias_step};
    return ws_blas_multiply(
        &on, m.k, m.batches, (struct ws_blas_factor){laid(la, a, o->op_a), m.type_a, o->a_scale},
        (struct ws_blas_factor){laid(lb, b, o->op_b), m.type_b, o->b_scale}, &m.p);
}

BLAS_API(cublasLtMatmul,
         (struct ws_blas * h, const struct matmul *o, const void *alpha, const void *a,
          const struct layout *la, const void *b, const struct layout *lb, const void *beta,
          const void *c, const struct layout *lc, void *d, const struct layout *ld,
          const void *algorithm, void *workspace, size_t workspace_bytes, void *stream))
{
    (void)algorithm;
    (void)workspace;
    (void)workspace_bytes;
    return matmul(h, o, alpha, a, la, b, lb, beta, c, lc, d, ld, stream);
}

/* ---- the one algorithm ---- */

#define UNUSED __attribute__((unused))

struct algorithm {
    uint64_t data[8];
};
struct lt_found { /* cublasLtMatmulHeuristicResult_t */
    struct algorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

static int look(const struct matmul *o, const struct layout *la, const struct layout *lb,
                const struct layout *lc, const struct layout *ld, struct lt_found *ret)
{
    struct multiplication m;
    if (!o || !la || !lb || !lc || !ld || !ret)
        return BLAS_INVALID;
    memset(ret, 0, sizeof(*ret));
    ret->waves = 1;
    ret->state = take(o, la, lb, lc, ld, &m) ? BLAS_OK : BLAS_NOT_SUPPORTED;
    return ret->state;
}

BLAS_API(cublasLtMatmulAlgoGetHeuristic,
         (struct ws_blas * h, const struct matmul *o, const struct layout *la,
          const struct layout *lb, const struct layout *lc, const struct layout *ld,
          const struct preference *wishes, int n, struct lt_found *ret, int *ret_n))
{
    (void)wishes;
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    if (n < 1 || !ret_n)
        return BLAS_INVALID;
    int r = look(o, la, lb, lc, ld, ret);
    *ret_n = r == BLAS_OK;
    return r == BLAS_NOT_SUPPORTED ? ws_blas_not_supported("this product (cublasLtMatmul)") : r;
}
BLAS_API(cublasLtMatmulAlgoCheck,
         (struct ws_blas * h, const struct matmul *o, const struct layout *la,
          const struct layout *lb, const struct layout *lc, const struct layout *ld,
          const struct algorithm *algorithm, struct lt_found *ret))
{
    (void)algorithm;
    return ws_blas_valid(h) ? look(o, la, lb, lc, ld, ret) : BLAS_NOT_INITIALIZED;
}
/* For any types, which are known when a product is asked for. */
BLAS_API(cublasLtMatmulAlgoGetIds,
         (struct ws_blas * h, int compute UNUSED, int scale UNUSED, int a UNUSED, int b UNUSED,
          int c UNUSED, int d UNUSED, int n, int *ret, int *ret_n))
{
    if (!ws_blas_valid(h) || n < 1 || !ret || !ret_n)
        return BLAS_INVALID;
    ret[0] = 0;
    *ret_n = 1;
    return BLAS_OK;
}
BLAS_API(cublasLtMatmulAlgoInit,
         (struct ws_blas * h, int compute UNUSED, int scale UNUSED, int a UNUSED, int b UNUSED,
          int c UNUSED, int d UNUSED, int id, struct algorithm *ret))
{
    if (!ws_blas_valid(h) || !ret || id)
        return BLAS_INVALID;
    memset(ret, 0, sizeof(*ret));
    return BLAS_OK;
}
/* Its tiles, stages and so on are what they are. */
BLAS_API(cublasLtMatmulAlgoConfigSetAttribute,
         (struct algorithm * x, int id, const void *value, size_t bytes))
{
    (void)id;
    (void)bytes;
    return x && value ? BLAS_OK : BLAS_INVALID;
}
BLAS_API(cublasLtMatmulAlgoConfigGetAttribute,
         (const struct algorithm *x, int id, void *ret, size_t bytes, size_t *ret_bytes))
{
    (void)id;
    if (!x || (bytes && !ret))
        return BLAS_INVALID;
    if (bytes)
        memset(ret, 0, bytes);
    if (ret_bytes)
        *ret_bytes = sizeof(int32_t);
    return BLAS_OK;
}
