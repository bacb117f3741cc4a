// SPDX-License-Identifier: Apache-2.0
/* Two tables: from the session's errors to CUDA's codes, and from CUDA's codes to their names.
 *
 * The session reports three causes as DISCONNECTED. A daemon that was never reached becomes "system
 * not yet ready" (CUDA's advice for that code is to check that all required driver daemons run). A
 * daemon that went away makes the devices unavailable. In the child of a process that had used
 * CUDA, CUDA is not initialised. */
#include "frontend/errors.h"

#include <string.h>

#include "base/macros.h"
#include "frontend/context/context.h"

static int disconnected(void)
{
    switch (ws_facade_state()) {
    case WS_FACADE_NEW:
        return CUDA_SYSTEM_NOT_READY;
    case WS_FACADE_FORKED:
        return CUDA_NOT_INITIALIZED;
    default:
        return CUDA_DEVICE_UNAVAILABLE;
    }
}

int ws_drv_error(ws_err e)
{
    if (WS_UNLIKELY(e & 1 << 16))
        return e & 0xffff;
    switch ((Ws__Error)e) {
    case WS__ERROR__OK:
        return CUDA_OK;
    case WS__ERROR__INVALID_VALUE:
    case WS__ERROR__INVALID_CONFIGURATION:
        return CUDA_INVALID_VALUE;
    case WS__ERROR__INVALID_HANDLE:
        return CUDA_INVALID_HANDLE;
    case WS__ERROR__OUT_OF_RESOURCES:
        return CUDA_LAUNCH_OUT_OF_RESOURCES;
    case WS__ERROR__OUT_OF_MEMORY:
        return CUDA_OUT_OF_MEMORY;
    case WS__ERROR__NOT_READY:
        return CUDA_NOT_READY;
    case WS__ERROR__NOT_FOUND:
        return CUDA_NOT_FOUND;
    case WS__ERROR__INVALID_IMAGE:
        return CUDA_INVALID_IMAGE;
    case WS__ERROR__NO_BINARY_FOR_GPU:
        return CUDA_NO_BINARY_FOR_GPU;
    case WS__ERROR__INVALID_PTX:
        return CUDA_INVALID_PTX;
    case WS__ERROR__UNSUPPORTED_PTX:
        return CUDA_UNSUPPORTED_PTX;
    case WS__ERROR__COOPERATIVE_TOO_LARGE:
        return CUDA_COOPERATIVE_TOO_LARGE;
    case WS__ERROR__INVALID_CLUSTER:
        return CUDA_INVALID_CLUSTER_SIZE;
    case WS__ERROR__NOT_SUPPORTED:
        return CUDA_NOT_SUPPORTED;
    case WS__ERROR__INVALID_DEVICE:
        return CUDA_INVALID_DEVICE;
    case WS__ERROR__ILLEGAL_ADDRESS:
        return CUDA_ILLEGAL_ADDRESS;
    case WS__ERROR__MISALIGNED_ADDRESS:
        return CUDA_MISALIGNED;
    case WS__ERROR__TRAP:
    case WS__ERROR__LAUNCH_FAILURE:
        return CUDA_LAUNCH_FAILED;
    case WS__ERROR__ASSERT:
        return CUDA_ASSERT;
    case WS__ERROR__LAUNCH_TIMEOUT:
        return CUDA_LAUNCH_TIMEOUT;
    case WS__ERROR__ILLEGAL_INSTRUCTION:
        return CUDA_ILLEGAL_INSTRUCTION;
    case WS__ERROR__STACK_OVERFLOW:
        return CUDA_STACK_ERROR;
    case WS__ERROR__VERSION_MISMATCH:
        return CUDA_SYSTEM_DRIVER_MISMATCH;
    case WS__ERROR__DRAINING:
    case WS__ERROR__DENIED:
        return CUDA_DEVICE_UNAVAILABLE;
    case WS__ERROR__DISCONNECTED:
        return disconnected();
    default:
        return CUDA_UNKNOWN;
    }
}

int ws_rt_error(ws_err e)
{
    return e == WS__ERROR__INVALID_CONFIGURATION ? CUDA_INVALID_CONFIGURATION : ws_drv_error(e);
}

bool ws_cuda_sticky(int code)
{
    return code == CUDA_ILLEGAL_ADDRESS || code == CUDA_LAUNCH_TIMEOUT || code == CUDA_ASSERT ||
           (code >= CUDA_STACK_ERROR && code <= CUDA_LAUNCH_FAILED);
}

static const struct error_row {
    int code;
    const char *rt, *drv, *text;
} rows[] = {
/* ascending */
#define WS_CUDA_ERROR(value, rt_name, drv_name, words) {value, #rt_name, #drv_name, words},
#include "frontend/errors.def"
#undef WS_CUDA_ERROR
};

static const struct error_row *row(int code)
{
    for (size_t lo = 0, hi = WS_ARRAY_SIZE(rows); lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        if (rows[mid].code == code)
            return &rows[mid];
        if (rows[mid].code < code)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

static const char *unless_none(const char *name)
{
    return strcmp(name, "NONE") ? name : NULL;
}

const char *ws_rt_error_name(int code)
{
    const struct error_row *r = row(code);
    return r ? unless_none(r->rt) : NULL;
}
const char *ws_drv_error_name(int code)
{
    const struct error_row *r = row(code);
    return r ? unless_none(r->drv) : NULL;
}
const char *ws_cuda_error_text(int code)
{
    const struct error_row *r = row(code);
    return r ? r->text : NULL;
}
