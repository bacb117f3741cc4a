/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/start.h - the device runtime, by which kernels start others: what the decoder
 * tells the micro-op "start". Private to the interpreter. Source: CUDA C++ Programming Guide, "CUDA
 * Dynamic Parallelism", "Device-side Launch from PTX"; cuda_device_runtime_api.h.
 *
 * What a thread starts is put into the launch's list (device/started.h). All streams and events of
 * device code are that one list, so creating and recording them does nothing. */
#ifndef WS_DEVICE_SOFT_EXEC_START_H
#define WS_DEVICE_SOFT_EXEC_START_H

#include "device/soft/exec/priv.h"

enum ws_start_what {
    WS_START_BUFFER, /* arguments: kernel, grid, block, shared bytes; result: address, or 0 */
    WS_START_LAUNCH, /* what BUFFER gave, stream */
    WS_START_COPY,   /* to, from, bytes, kind, stream */
    WS_START_FILL,   /* where, value, bytes, stream */
    /* BUFFER_OF, before CUDA 12.0: alignment, bytes; result: address, or 0. LAUNCH_OF: kernel, what
     * BUFFER_OF gave, grid, block, shared bytes, stream */
    WS_START_BUFFER_OF,
    WS_START_LAUNCH_OF,
    WS_START_COPY_2D, /* to, pitch, from, pitch, width, height, kind, stream */
    WS_START_FILL_2D, /* where, pitch, value, width, height, stream */
    WS_START_COPY_3D, /* struct cudaMemcpy3DParms, stream */
    WS_START_FILL_3D, /* struct cudaPitchedPtr, value, struct cudaExtent, stream */
    WS_START_ERROR,   /* cudaGetLastError() */
    WS_START_PEEK,    /* cudaPeekAtLastError() */
    WS_START_HANDLE,  /* where: a new stream or event */
    WS_START_DEVICE,  /* where: the number of the device */
    WS_START_COUNT,   /* where: how many devices there are */
    WS_START_VERSION, /* where: the runtime's version */
    WS_START_TAKE,    /* where, bytes: cudaMalloc() */
    WS_START_GIVE,    /* address: cudaFree() */
    WS_START_NOTHING,
};
enum { WS_START_ARGS_MAX = 16 };
struct ws_startop {
    uint8_t what;
    uint32_t d;                      /* row of the result: u64 of buffers, else u32 */
    uint32_t arg[WS_START_ARGS_MAX]; /* rows; a structure is a row of each of its words */
};
/* Whether its result has 8 bytes. */
bool ws_exec_start_gives_address(enum ws_start_what what);
/* Executes it for the lanes. An error is the call's result, and what the block's cudaGetLastError()
 * tells. Return: false: the kernel was faulted, for a pointer that it may not write through. */
bool ws_exec_start(struct ws_core_ctx *c, const struct ws_uop *u, uint32_t lanes);

#endif
