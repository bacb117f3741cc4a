// SPDX-License-Identifier: Apache-2.0
/* A batch is done as its copies, one after the other; CUDA allows any order. If the source must
 * have been read when the call returns, the copy is a synchronous one. All copies are checked
 * before the first is put on the stream. */
#include "frontend/memory/batch.h"

#include "frontend/texture/array.h"
#include "frontend/errors.h"
#include "frontend/stream/work.h"

enum { ORDER_STREAM = 1, ORDER_DURING_CALL = 2, ORDER_ANY = 3, FLAGS = 1 };
enum { OPERAND_POINTER = 1, OPERAND_ARRAY = 2 };

static int fail(size_t *ret_fail, size_t which, int code)
{
    if (ret_fail)
        *ret_fail = which;
    return code;
}

static bool good_order(int order)
{
    return order >= ORDER_STREAM && order <= ORDER_ANY;
}

static int check_stream(uint64_t stream)
{
    if (ws_session_stream_info(stream, NULL, NULL, NULL))
        return CUDA_INVALID_HANDLE;
    return stream < WS_STREAM_FIRST ? CUDA_INVALID_VALUE
                                    : CUDA_OK; /* not a legacy default stream */
}

static int check(const struct ws_batch *b)
{
    if (!b->n || !b->dst || !b->src || !b->sizes || !b->attributes || !b->first ||
        !b->n_attributes || b->n_attributes > b->n || b->first[0])
        return CUDA_INVALID_VALUE;
    for (size_t k = 0; k < b->n_attributes; k++)
        if (!good_order(b->attributes[k].srcAccessOrder) ||
            b->attributes[k].flags & ~(unsigned)FLAGS ||
            (k && (b->first[k] <= b->first[k - 1] || b->first[k] >= b->n)))
            return CUDA_INVALID_VALUE;
    return CUDA_OK;
}

int ws_batch_copy(uint64_t stream, const struct ws_batch *b, size_t *ret_fail)
{
    int code = check_stream(stream);
    if (!code)
        code = check(b);
    if (code)
        return fail(ret_fail, SIZE_MAX, code);
    for (size_t i = 0; i < b->n; i++)
        if (!b->dst[i] || !b->src[i] || !b->sizes[i])
            return fail(ret_fail, i, CUDA_INVALID_VALUE);
    for (size_t i = 0, k = 0; i < b->n; i++) {
        while (k + 1 < b->n_attributes && b->first[k + 1] <= i)
            k++;
        bool now = b->attributes[k].srcAccessOrder == ORDER_DURING_CALL;
        code = ws_drv_error(
            ws_work_copy(stream, b->dst[i], b->src[i], b->sizes[i], WS_COPY_AUTO, !now));
        if (code)
            return fail(ret_fail, i, code);
    }
    return CUDA_OK;
}

/* Bytes of an element: an array says so; between pointers elements are bytes. */
static uint64_t element_bytes(const struct cuda_memcpy_3d_operand *o)
{
    const struct ws_array *a = o->op.array.array;
    return o->type == OPERAND_ARRAY && ws_array_valid(a) ? a->desc.texel.bytes : 0;
}

static bool side(const struct cuda_memcpy_3d_operand *o, uint64_t element,
                 const struct ws_copy_box *box, struct ws_copy_side *ret)
{
    uint64_t x;
    if (o->type == OPERAND_ARRAY)
        return !__builtin_mul_overflow(o->op.array.offset.x, element, &x) &&
               ws_array_side(o->op.array.array, x, o->op.array.offset.y, o->op.array.offset.z, box,
                             ret);
    uint64_t pitch = box->width_bytes, slice,
             height = o->op.ptr.layerHeight ? o->op.ptr.layerHeight : box->height;
    if (o->op.ptr.rowLength && __builtin_mul_overflow(o->op.ptr.rowLength, element, &pitch))
        return false;
    if (!o->op.ptr.ptr || __builtin_mul_overflow(pitch, height, &slice))
        return false;
    *ret = (struct ws_copy_side){(uintptr_t)o->op.ptr.ptr, pitch, slice};
    return true;
}

static bool sides(const struct cuda_memcpy_3d_batch_op *p, struct ws_copy_side *dst,
                  struct ws_copy_side *src, struct ws_copy_box *box)
{
    uint64_t d = element_bytes(&p->dst), s = element_bytes(&p->src), element = d ? d : s ? s : 1;
    bool good = (p->dst.type == OPERAND_POINTER || d) && (p->src.type == OPERAND_POINTER || s) &&
                (!d || !s || d == s) && good_order(p->srcAccessOrder) &&
                !(p->flags & ~(unsigned)FLAGS) && p->extent.width && p->extent.height &&
                p->extent.depth;
    *box = (struct ws_copy_box){0, p->extent.height, p->extent.depth};
    return good && !__builtin_mul_overflow(p->extent.width, element, &box->width_bytes) &&
           side(&p->dst, element, box, dst) && side(&p->src, element, box, src);
}

int ws_batch_copy_3d(uint64_t stream, size_t n, const struct cuda_memcpy_3d_batch_op *ops,
                     unsigned long long flags, size_t *ret_fail)
{
    struct ws_copy_side d, s;
    struct ws_copy_box box;
    int code = check_stream(stream);
    if (!code && (!n || !ops || flags))
        code = CUDA_INVALID_VALUE;
    if (code)
        return fail(ret_fail, SIZE_MAX, code);
    for (size_t i = 0; i < n; i++)
        if (!sides(&ops[i], &d, &s, &box))
            return fail(ret_fail, i, CUDA_INVALID_VALUE);
    for (size_t i = 0; i < n; i++) {
        bool now = ops[i].srcAccessOrder == ORDER_DURING_CALL;
        (void)sides(&ops[i], &d, &s, &box);
        code = ws_drv_error(ws_work_copy_box(stream, &d, &s, &box, WS_COPY_AUTO, !now));
        if (code)
            return fail(ret_fail, i, code);
    }
    return CUDA_OK;
}
