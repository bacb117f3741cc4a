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
};
/* An address operand; row 0: not there. */
struct ws_async_place {
    uint32_t row;
    bool a32;
    uint8_t space;
    int64_t offset;
};
struct ws_asyncop {
    uint8_t what;
    struct ws_async_place dst, src, mbar;
    uint32_t bytes; /* row u32: size of a copy; 0: size_bytes */
    uint32_t size_bytes;
    uint8_t op, type;   /* of a reduction: enum ws_ptx_sub, enum ws_ptx_type */
    uint32_t src_bytes; /* row u32, or 0 */
    uint32_t ignore;    /* predicate word, or 0 */
    bool ignore_neg;
    uint32_t count, tx; /* rows u32, or 0 */
    uint32_t state;     /* row u64 that is read */
    uint32_t d;         /* row u64 or predicate word that is written, or 0 */
};
/* Executes it for the lanes. Return: false if the kernel was faulted. *ret_waits: a wait that was
 * in vain. */
bool ws_exec_async(struct ws_core_ctx *c, const struct ws_uop *u, uint32_t lanes, bool *ret_waits);

#endif
