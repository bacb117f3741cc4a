// SPDX-License-Identifier: Apache-2.0
/* What is asked of no particular GPU: versions, texts of errors, and events, of which none ever
 * happen here. */
#include "config.h"

#include <limits.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/macros.h"
#include "frontend/cuda_types.h"
#include "frontend/nvml/nvml.h"

/* Of a real GPU, that of NVIDIA's driver; else wattshare's. */
WS_NVML_API int nvmlSystemGetDriverVersion(char *buf, unsigned size)
{
    char version[64] = PACKAGE_VERSION;
    struct ws_nvml_view v;
    int r = ws_nvml_hold(&v);
    if (r)
        return r;
    const char *driver = ws_nvml_n_gpus(v.status) ? v.status->gpus[0]->driver : "";
    size_t n = strcspn(driver, " ");
    if (n && n < sizeof(version)) {
        memcpy(version, driver, n);
        version[n] = 0;
    }
    ws_nvml_release();
    return ws_nvml_put_text(version, buf, size);
}

WS_NVML_API int nvmlSystemGetNVMLVersion(char *buf, unsigned size)
{
    return ws_nvml_put_text("13." PACKAGE_VERSION, buf, size);
}

WS_NVML_API int nvmlSystemGetCudaDriverVersion_v2(int *ret)
{
    if (!ret)
        return WS_NVML_INVALID_ARGUMENT;
    *ret = WS_CUDA_DRIVER_VERSION;
    return WS_NVML_SUCCESS;
}

WS_NVML_API int nvmlSystemGetCudaDriverVersion(int *ret)
{
    return nvmlSystemGetCudaDriverVersion_v2(ret);
}

WS_NVML_API const char *nvmlErrorString(int code)
{
    static const struct {
        int code;
        const char *text;
    } table[] = {
        {WS_NVML_SUCCESS, "success"},
        {WS_NVML_UNINITIALIZED, "nvmlInit() has not been called"},
        {WS_NVML_INVALID_ARGUMENT, "invalid argument"},
        {WS_NVML_NOT_SUPPORTED, "not supported by wattshare"},
        {WS_NVML_NO_PERMISSION, "no permission to use the daemon's socket"},
        {WS_NVML_NOT_FOUND, "not found"},
        {WS_NVML_INSUFFICIENT_SIZE, "the buffer is too small"},
        {WS_NVML_DRIVER_NOT_LOADED, "no wattshared runs: start it, or set " WS_ENV_SOCKET},
        {WS_NVML_TIMEOUT, "timeout"},
        {WS_NVML_GPU_IS_LOST, "wattshared has ended"},
        {WS_NVML_VERSION_MISMATCH, "wattshared has another version than this library"},
        {WS_NVML_MEMORY, "out of memory"},
        {WS_NVML_ARGUMENT_VERSION, "unknown version of the structure"},
    };
    for (size_t i = 0; i < WS_ARRAY_SIZE(table); i++)
        if (table[i].code == code)
            return table[i].text;
    return "unknown error";
}

/* Racks of GPUs that are managed together. */
WS_NVML_API int nvmlUnitGetCount(unsigned *ret)
{
    if (!ret)
        return WS_NVML_INVALID_ARGUMENT;
    *ret = 0;
    return WS_NVML_SUCCESS;
}

/* ---- events ---- */

struct event_set {
    char none;
};

WS_NVML_API int nvmlEventSetCreate(struct event_set **ret)
{
    if (!ret)
        return WS_NVML_INVALID_ARGUMENT;
    *ret = ws_alloc(sizeof(**ret));
    return *ret ? WS_NVML_SUCCESS : WS_NVML_MEMORY;
}

WS_NVML_API int nvmlEventSetFree(struct event_set *s)
{
    free(s);
    return WS_NVML_SUCCESS;
}

WS_NVML_API int nvmlDeviceRegisterEvents(struct ws_nvml_device *d, uint64_t types,
                                         struct event_set *s)
{
    struct ws_nvml_view v;
    int r = ws_nvml_hold_gpu(d, s, &v);
    if (r)
        return r;
    ws_nvml_release();
    return types ? WS_NVML_NOT_SUPPORTED : WS_NVML_SUCCESS;
}

/* Nothing happens: this waits for as long as it may. */
WS_NVML_API int nvmlEventSetWait_v2(struct event_set *s, void *data, unsigned timeout_ms)
{
    if (!s || !data)
        return WS_NVML_INVALID_ARGUMENT;
    struct timespec t = {timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000};
    nanosleep(&t, NULL);
    return WS_NVML_TIMEOUT;
}

WS_NVML_API int nvmlEventSetWait(struct event_set *s, void *data, unsigned timeout_ms)
{
    return nvmlEventSetWait_v2(s, data, timeout_ms);
}
