/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/async.h - mbarriers and asynchronous copies: what the decoder tells the micro-op
 * "async". Private to the interpreter. Source: PTX ISA 9.0, 9.7.9.25 "Data Movement and Conversion:
 * Asynchronous copy", 9.7.13.15 "mbarrier". */
#ifndef WS_DEVICE_SOFT_EXEC_ASYNC_H
#define WS_DEVICE_SOFT_EXEC_ASYNC_H

#include "device/soft/exec/priv.h"

enum ws_async_what {
    WS_ASYNC_COPY,   /* cp.async with a source size or a predicate */
    WS_ASYNC_BULK,   /* cp.async.bulk */
    WS_ASYNC_REDUCE, /* cp.reduce.async.bulk */
    WS_MBAR_INIT,    /* count */
    WS_MBAR_INVAL,
    WS_MBAR_EXPECT,   /* count: bytes */
    WS_MBAR_COMPLETE, /* count: bytes */
    WS_MBAR_ARRIVE,   /* count, bytes expected; result: state */
    WS_MBAR_ARRIVE_DROP,
    WS_MBAR_TEST, /* state, or parity; result: predicate */
    WS_MBAR_TEST_PARITY,
    WS_MBAR_PENDING, /* of a state */
    WS_MBAR_COPIES,  /* cp.async.mbarrier.arrive */
    WS_MBAR_COPIES_NOINC,
    WS_TENSOR_LOAD, /* cp.async.bulk.tensor, cp.reduce.async.bulk.tensor (tensor.h) */
    WS_TENSOR_STORE,
    WS_TENSOR_REDUCE,
    WS_TENSOR_MAP_REPLACE, /* op: the field; size_bytes: which of several; count, state: of what */
    WS_TENSOR_MAP_COPY,
};
/* What tensormap.replace changes. */
enum ws_tensor_field {
    WS_TENSOR_ADDRESS,
    WS_TENSOR_RANK,
    WS_TENSOR_BOX,
    WS_TENSOR_DIM,
    WS_TENSOR_STRIDE,
    WS_TENSOR_STEP,
    WS_TENSOR_TYPE,
    WS_TENSOR_INTERLEAVE,
    WS_TENSOR_SWIZZLE,
    WS_TENSOR_FILL,
    WS_TENSOR_ATOM,
    _WS_TENSOR_FIELD_N
};
/* An address operand; row 0: not there. */
struct ws_async_place {
    uint32_t row;
    bool a32;
    uint8_t space;
    bool moved; /* to the same place in the block of rank `rank` */
    uint8_t rank;
    int64_t offset;
};
struct ws_asyncop {
    uint8_t what;
    struct ws_async_place dst, src, mbar, map;
    uint32_t at[5], n_at; /* rows u32: where a box of a tensor begins */
    uint32_t bytes;       /* row u32: size of a copy; 0: size_bytes */
    uint32_t size_bytes;
    uint8_t op, type;   /* of a reduction: enum ws_ptx_sub, enum ws_ptx_type */
    uint32_t src_bytes; /* row u32, or 0 */
    uint32_t ignore;    /* predicate word, or 0 */
    bool ignore_neg;
    uint32_t count, tx; /* rows u32, or 0 */
    uint32_t state;     /* row u64 that is read */
    uint32_t d;         /* row u64 or predicate word that is written, or 0 */
    uint32_t mask;      /* row u16: ranks of the blocks that get the copy; 0: the address says */
};
/* Executes it for the lanes. Return: false if the kernel was faulted. *ret_waits: a wait that was
 * in vain. */
bool ws_exec_async(struct ws_core_ctx *c, const struct ws_uop *u, uint32_t lanes, bool *ret_waits);

/* Of a copy to several blocks (mask): their ranks, a bit for each, and the copy to one of them. */
uint32_t ws_async_ranks(const struct ws_core_ctx *c, const struct ws_asyncop *o, unsigned lane);
struct ws_asyncop ws_async_for_rank(const struct ws_asyncop *o, uint32_t rank);

/* For tensor.c. */
uint64_t ws_async_address(const struct ws_core_ctx *c, const struct ws_async_place *p,
                          unsigned lane);
/* Of a row u32; @otherwise where there is no row. */
uint32_t ws_async_word(const struct ws_core_ctx *c, uint32_t row, unsigned lane,
                       uint32_t otherwise);
/* Aligned memory of one lane. NULL: faulted. */
uint8_t *ws_async_at(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane,
                     const struct ws_async_place *p, uint64_t bytes, uint64_t align, bool store);
/* Each element by itself is atomic, as PTX has it. */
void ws_async_reduce(const struct ws_asyncop *o, uint8_t *to, const uint8_t *from, uint32_t bytes);
/* Tells the mbarrier, if there is one, that so many bytes have come. Return: false: faulted. */
bool ws_async_tell(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                   unsigned lane, uint32_t bytes);

#endif
