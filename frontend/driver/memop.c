// SPDX-License-Identifier: Apache-2.0
/* Chapter "Stream Memory Operations". The first versions of these functions have the same
 * parameters as the second. */
#include <stdlib.h>

#include "frontend/facade.h"
#include "frontend/graph/params.h"

enum { WAIT_COMPARE = 3, WAIT_FLUSH = 1 << 30, WRITE_NO_BARRIER = 1 };

static int put(void *stream, bool per_thread, const struct ws_value_op *ops, size_t n)
{
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    struct ws_stream_work w = {.kind = WS_WORK_VALUES, .values = {.ops = ops, .n = n}};
    return ws_drv_error(ws_work_put(id, &w, true));
}

static int wait(void *stream, bool per_thread, uint64_t address, uint64_t value, uint8_t bytes,
                unsigned flags)
{
    struct ws_value_op op = {
        .address = address, .value = value, .flags = flags & WAIT_COMPARE, .bytes = bytes};
    op.is_wait = true;
    return flags & ~(unsigned)(WAIT_COMPARE | WAIT_FLUSH) ? CUDA_INVALID_VALUE
                                                          : put(stream, per_thread, &op, 1);
}

static int write_value(void *stream, bool per_thread, uint64_t address, uint64_t value,
                       uint8_t bytes, unsigned flags)
{
    struct ws_value_op op = {.address = address, .value = value, .bytes = bytes};
    return flags & ~(unsigned)WRITE_NO_BARRIER ? CUDA_INVALID_VALUE
                                               : put(stream, per_thread, &op, 1);
}

WS_DRV_STREAM_API(cuStreamWaitValue32_v2, _ptsz,
                  (void *stream, uint64_t address, uint32_t value, unsigned flags),
                  (stream, address, value, flags))
{
    return wait(stream, per_thread, address, value, sizeof(value), flags);
}
WS_DRV_STREAM_API(cuStreamWaitValue64_v2, _ptsz,
                  (void *stream, uint64_t address, uint64_t value, unsigned flags),
                  (stream, address, value, flags))
{
    return wait(stream, per_thread, address, value, sizeof(value), flags);
}
WS_DRV_STREAM_API(cuStreamWriteValue32_v2, _ptsz,
                  (void *stream, uint64_t address, uint32_t value, unsigned flags),
                  (stream, address, value, flags))
{
    return write_value(stream, per_thread, address, value, sizeof(value), flags);
}
WS_DRV_STREAM_API(cuStreamWriteValue64_v2, _ptsz,
                  (void *stream, uint64_t address, uint64_t value, unsigned flags),
                  (stream, address, value, flags))
{
    return write_value(stream, per_thread, address, value, sizeof(value), flags);
}
WS_DRV_STREAM_API(cuStreamBatchMemOp_v2, _ptsz,
                  (void *stream, unsigned n, union cu_batch_op *p, unsigned flags),
                  (stream, n, p, flags))
{
    struct ws_value_op *ops = NULL;
    int code = flags ? CUDA_INVALID_VALUE : ws_batch_ops(p, n, &ops);
    if (!code)
        code = put(stream, per_thread, ops, n);
    free(ops);
    return code;
}
WS_DRV_ALIAS(cuStreamWaitValue32, cuStreamWaitValue32_v2)
WS_DRV_ALIAS(cuStreamWaitValue32_ptsz, cuStreamWaitValue32_v2_ptsz)
WS_DRV_ALIAS(cuStreamWaitValue64, cuStreamWaitValue64_v2)
WS_DRV_ALIAS(cuStreamWaitValue64_ptsz, cuStreamWaitValue64_v2_ptsz)
WS_DRV_ALIAS(cuStreamWriteValue32, cuStreamWriteValue32_v2)
WS_DRV_ALIAS(cuStreamWriteValue32_ptsz, cuStreamWriteValue32_v2_ptsz)
WS_DRV_ALIAS(cuStreamWriteValue64, cuStreamWriteValue64_v2)
WS_DRV_ALIAS(cuStreamWriteValue64_ptsz, cuStreamWriteValue64_v2_ptsz)
WS_DRV_ALIAS(cuStreamBatchMemOp, cuStreamBatchMemOp_v2)
WS_DRV_ALIAS(cuStreamBatchMemOp_ptsz, cuStreamBatchMemOp_v2_ptsz)
