// SPDX-License-Identifier: Apache-2.0
/* Chapters "Device Management", "Version Management" and "Profiler Control": the few calls that are
 * the same in both. */
#include <string.h>

#include "frontend/facade.h"

/* No atomic operation is native over a link to the host, or between devices. */
static int no_atomics(unsigned *capabilities, const int *operations, unsigned n)
{
    if (!capabilities || !operations || !n)
        return CUDA_INVALID_VALUE;
    memset(capabilities, 0, n * sizeof(*capabilities));
    return CUDA_OK;
}

WS_BOTH_API(cudaDeviceGetHostAtomicCapabilities, cuDeviceGetHostAtomicCapabilities,
            (unsigned *capabilities, const int *operations, unsigned n, int device),
            (capabilities, operations, n, device))
{
    int code = ws_api_open(api);
    if (code)
        return code;
    return ws_session_device(device) ? no_atomics(capabilities, operations, n)
                                     : CUDA_INVALID_DEVICE;
}

WS_DRV_API(cuDeviceGetP2PAtomicCapabilities,
           (unsigned *capabilities, const int *operations, unsigned n, int src, int dst))
{
    int code = ws_drv_check_init();
    if (code)
        return code;
    if (!ws_session_device(src) || !ws_session_device(dst) || src == dst)
        return CUDA_INVALID_DEVICE;
    return no_atomics(capabilities, operations, n);
}

static int tell_version(int *ret, int version)
{
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = version;
    return CUDA_OK;
}

WS_BOTH_API(cudaDriverGetVersion, cuDriverGetVersion, (int *version), (version))
{
    return tell_version(version, WS_CUDA_DRIVER_VERSION);
}

WS_RT_API(cudaRuntimeGetVersion, (int *version))
{
    return ws_rt_record(tell_version(version, WS_CUDA_VERSION));
}

/* There is no profiler to start. */
WS_DRV_API(cuProfilerStart, (void))
{
    return CUDA_OK;
}
WS_DRV_ALIAS(cuProfilerStop, cuProfilerStart)
WS_RT_ALIAS(cudaProfilerStart, cuProfilerStart)
WS_RT_ALIAS(cudaProfilerStop, cuProfilerStart)
