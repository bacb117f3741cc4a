// SPDX-License-Identifier: Apache-2.0
/* Chapter "Driver Entry Point Access". */
#include "frontend/facade.h"
#include "frontend/runtime/before13.h"
#include "frontend/interpose/entrypoints.h"

enum {
    FLAG_LEGACY_STREAM = 1,
    FLAG_PER_THREAD_STREAM = 2,
    FOUND = 0,
    SYMBOL_NOT_FOUND = 1,
    VERSION_NOT_SUFFICIENT = 2
};

static int entry_point(const char *name, void **ret, unsigned version, unsigned long long flags,
                       int *status, bool per_thread)
{
    bool known;
    if (!name || !ret || flags > FLAG_PER_THREAD_STREAM)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = ws_facade_open(); /* as any runtime call it initialises the driver */
    if (code && code != CUDA_NO_DEVICE)
        return ws_rt_record(code);
    if (flags)
        per_thread = flags == FLAG_PER_THREAD_STREAM;
    *ret = ws_entrypoint_driver(name, (int)version, per_thread, &known);
    if (status)
        *status = *ret ? FOUND : known ? VERSION_NOT_SUFFICIENT : SYMBOL_NOT_FOUND;
    return CUDA_OK; /* what was not found is told by the status */
}

/* Before CUDA 12 it has no status. */
#define STATUS_OF(status) (WS_RT_BEFORE_12() ? NULL : (status))
WS_RT_API(cudaGetDriverEntryPoint,
          (const char *name, void **ret, unsigned long long flags, int *status))
{
    return entry_point(name, ret, WS_CUDA_VERSION, flags, STATUS_OF(status), false);
}
WS_RT_API(cudaGetDriverEntryPoint_ptsz,
          (const char *name, void **ret, unsigned long long flags, int *status))
{
    return entry_point(name, ret, WS_CUDA_VERSION, flags, STATUS_OF(status), true);
}

WS_RT_STREAM_API(cudaGetDriverEntryPointByVersion, _ptsz,
                 (const char *name, void **ret, unsigned version, unsigned long long flags,
                  int *status),
                 (name, ret, version, flags, status))
{
    return entry_point(name, ret, version, flags, status, per_thread);
}
