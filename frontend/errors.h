// SPDX-License-Identifier: Apache-2.0
/* frontend/errors.h - from the session's errors to CUDA's codes. Only this file and errors.c know
 * both. Threads: any. */
#ifndef WS_FRONTEND_ERRORS_H
#define WS_FRONTEND_ERRORS_H

#include <stdbool.h>
#include "frontend/session/session.h"

/* CUDA's codes by our short names; values shared by the runtime (cudaError_t) and the driver
 * (CUresult). */
enum ws_cuda_code {
    CUDA_OK = 0,
    CUDA_INVALID_VALUE = 1,
    CUDA_OUT_OF_MEMORY = 2,
    CUDA_NOT_INITIALIZED = 3,
    CUDA_DEINITIALIZED = 4,
    CUDA_INVALID_CONFIGURATION = 9,       /* runtime only */
    CUDA_INVALID_PITCH = 12,              /* runtime only */
    CUDA_INVALID_SYMBOL = 13,             /* runtime only */
    CUDA_INVALID_CHANNEL_DESCRIPTOR = 20, /* runtime only */
    CUDA_INVALID_DIRECTION = 21,          /* runtime only */
    CUDA_INVALID_FILTER_SETTING = 26,     /* runtime only */
    CUDA_INSUFFICIENT_DRIVER = 35,        /* runtime only */
    CUDA_DEVICE_UNAVAILABLE = 46,
    CUDA_MISSING_CONFIGURATION = 52,   /* runtime only */
    CUDA_INVALID_DEVICE_FUNCTION = 98, /* runtime only */
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_DEVICE = 101,
    CUDA_INVALID_IMAGE = 200,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_NO_BINARY_FOR_GPU = 209,
    CUDA_UNSUPPORTED_LIMIT = 215,
    CUDA_UNSUPPORTED_EXEC_AFFINITY = 224,
    CUDA_PEER_UNSUPPORTED = 217, /* driver only */
    CUDA_INVALID_PTX = 218,
    CUDA_UNSUPPORTED_PTX = 222,
    CUDA_INVALID_SOURCE = 300,
    CUDA_FILE_NOT_FOUND = 301,
    CUDA_INVALID_HANDLE = 400,
    CUDA_ILLEGAL_STATE = 401,
    CUDA_NOT_FOUND = 500,
    CUDA_NOT_READY = 600,
    CUDA_ILLEGAL_ADDRESS = 700,
    CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_LAUNCH_TIMEOUT = 702,
    CUDA_PEER_ALREADY_ENABLED = 704,
    CUDA_PEER_NOT_ENABLED = 705,
    CUDA_CONTEXT_ACTIVE = 708, /* CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE */
    CUDA_CONTEXT_IS_DESTROYED = 709,
    CUDA_ASSERT = 710,
    CUDA_ALREADY_REGISTERED = 712,
    CUDA_NOT_REGISTERED = 713,
    CUDA_STACK_ERROR = 714,
    CUDA_ILLEGAL_INSTRUCTION = 715,
    CUDA_MISALIGNED = 716,
    CUDA_LAUNCH_FAILED = 719,
    CUDA_COOPERATIVE_TOO_LARGE = 720,
    CUDA_NOT_PERMITTED = 800,
    CUDA_NOT_SUPPORTED = 801,
    CUDA_SYSTEM_NOT_READY = 802,
    CUDA_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_CAPTURE_UNSUPPORTED = 900,
    CUDA_CAPTURE_INVALIDATED = 901,
    CUDA_CAPTURE_MERGE = 902,
    CUDA_CAPTURE_UNMATCHED = 903,
    CUDA_CAPTURE_UNJOINED = 904,
    CUDA_CAPTURE_ISOLATION = 905,
    CUDA_CAPTURE_IMPLICIT = 906,
    CUDA_CAPTURED_EVENT = 907,
    CUDA_CAPTURE_WRONG_THREAD = 908,
    CUDA_GRAPH_UPDATE_FAILURE = 910,
    CUDA_INVALID_CLUSTER_SIZE = 912,
    CUDA_UNKNOWN = 999,
};

/* A ws_err of the façades' own making: CUDA's code as it is. */
#define WS_ERR_CUDA(code) ((code) ? 1 << 16 | (code) : 0)

/* For the runtime and for the driver. Where a call documents another code for the same cause, the
 * call says so itself. */
int ws_rt_error(ws_err e);
int ws_drv_error(ws_err e);
/* True for the codes after which the context is lost. */
bool ws_cuda_sticky(int code);

/* NULL if there is no such code (for the driver: that the driver doesn't have). */
const char *ws_rt_error_name(int code);
const char *ws_drv_error_name(int code);
const char *ws_cuda_error_text(int code);

#endif
