// SPDX-License-Identifier: Apache-2.0
/* What programs call of a driver and the daemon does not: the versioned names that cuda.h gives
 * functions, the default stream, launches with arrays of pointers. This is enough for the C clients
 * in tests/cuda, which run here behind the gate, but not for NVIDIA's runtime. Streams do not wait
 * for the default stream; waits for the context, and copies that wait, wait for all of its streams.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tests/mock/mock.h"

/* name, the name that cuGetProcAddress knows, arguments */
#define PROGRAM_FUNCTIONS(X)                                                                       \
    X(cuCtxGetCurrent, cuCtxGetCurrent, (ws_cu_ctx * ctx))                                         \
    X(cuCtxGetDevice, cuCtxGetDevice, (ws_cu_device * d))                                          \
    X(cuCtxSynchronize, cuCtxSynchronize, (void))                                                  \
    X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, (ws_cu_device d))                   \
    X(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState,                                      \
      (ws_cu_device d, unsigned *flags, int *active))                                              \
    X(cuModuleGetGlobal_v2, cuModuleGetGlobal,                                                     \
      (ws_cu_ptr * va, size_t * bytes, ws_cu_module m, const char *name))                          \
    X(cuMemAlloc_v2, cuMemAlloc, (ws_cu_ptr * va, size_t bytes))                                   \
    X(cuMemFree_v2, cuMemFree, (ws_cu_ptr va))                                                     \
    X(cuMemAllocHost_v2, cuMemAllocHost, (void **p, size_t bytes))                                 \
    X(cuMemcpyHtoD_v2, cuMemcpyHtoD, (ws_cu_ptr dst, const void *src, size_t bytes))               \
    X(cuMemcpyDtoH_v2, cuMemcpyDtoH, (void *dst, ws_cu_ptr src, size_t bytes))                     \
    X(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync,                                                     \
      (ws_cu_ptr dst, const void *src, size_t bytes, ws_cu_stream s))                              \
    X(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync,                                                     \
      (void *dst, ws_cu_ptr src, size_t bytes, ws_cu_stream s))                                    \
    X(cuMemsetD8_v2, cuMemsetD8, (ws_cu_ptr va, unsigned char v, size_t n))                        \
    X(cuStreamCreate, cuStreamCreate, (ws_cu_stream * s, unsigned flags))                          \
    X(cuStreamDestroy_v2, cuStreamDestroy, (ws_cu_stream s))                                       \
    X(cuStreamIsCapturing, cuStreamIsCapturing, (ws_cu_stream s, int *status))                     \
    X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *mode))           \
    X(cuEventDestroy_v2, cuEventDestroy, (ws_cu_event e))                                          \
    X(cuGetErrorName, cuGetErrorName, (ws_cu_result r, const char **name))                         \
    X(cuGetExportTable, cuGetExportTable, (const void **table, const struct ws_cu_uuid *id))       \
    X(cuLaunchKernel, cuLaunchKernel,                                                              \
      (ws_cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,          \
       unsigned bz, unsigned shared, ws_cu_stream s, void **params, void **extra))                 \
    X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel,                                        \
      (ws_cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,          \
       unsigned bz, unsigned shared, ws_cu_stream s, void **params))
#define X(name, asked, args) EXPORT ws_cu_result name args;
PROGRAM_FUNCTIONS(X)
#undef X

__attribute__((constructor)) static void begin(void)
{
    const char *e = getenv("WS_MOCK_PROGRAM");
    mock_program = e && atoi(e);
}

void *mock_program_function(const char *name)
{
#define X(exported, asked, args)                                                                   \
    if (!strcmp(#asked, name))                                                                     \
        return (void *)(exported);
    PROGRAM_FUNCTIONS(X)
#undef X
    return NULL;
}

ws_cu_result cuCtxGetCurrent(ws_cu_ctx *ctx)
{
    ENTER(MOCK_ANY);
    *ctx = (ws_cu_ctx)(void *)mock_current();
    return WS_CU_SUCCESS;
}

ws_cu_result cuCtxGetDevice(ws_cu_device *d)
{
    ENTER(MOCK_CTX);
    *d = mock_ordinal();
    return WS_CU_SUCCESS;
}

ws_cu_result cuCtxSynchronize(void)
{
    ENTER(MOCK_CTX);
    mock_drain_all();
    return mock_sticky(mock_current());
}

ws_cu_result cuDevicePrimaryCtxRelease_v2(ws_cu_device d)
{
    if (mock_current())
        mock_drain_all();
    return cuDevicePrimaryCtxRelease(d);
}

ws_cu_result cuDevicePrimaryCtxGetState(ws_cu_device d, unsigned *flags, int *active)
{
    ENTER(MOCK_ANY);
    const struct mock_gpu *g = mock_gpu_of(d);
    if (!g)
        return WS_CU_INVALID_DEVICE;
    *flags = 0;
    *active = g->n_retained > 0;
    return WS_CU_SUCCESS;
}

ws_cu_result cuModuleGetGlobal_v2(ws_cu_ptr *va, size_t *bytes, ws_cu_module m, const char *name)
{
    return cuModuleGetGlobal(va, bytes, m, name);
}

ws_cu_result cuMemAlloc_v2(ws_cu_ptr *va, size_t bytes)
{
    return cuMemAlloc(va, bytes);
}

ws_cu_result cuMemFree_v2(ws_cu_ptr va)
{
    mock_drain_all();
    return cuMemFree(va);
}

ws_cu_result cuMemAllocHost_v2(void **p, size_t bytes)
{
    return cuMemHostAlloc(p, bytes, 0);
}

ws_cu_result cuMemcpyHtoD_v2(ws_cu_ptr dst, const void *src, size_t bytes)
{
    mock_drain_all();
    return cuMemcpyHtoD(dst, src, bytes);
}

ws_cu_result cuMemcpyDtoH_v2(void *dst, ws_cu_ptr src, size_t bytes)
{
    mock_drain_all();
    return cuMemcpyDtoH(dst, src, bytes);
}

ws_cu_result cuMemcpyHtoDAsync_v2(ws_cu_ptr dst, const void *src, size_t bytes, ws_cu_stream s)
{
    return cuMemcpyHtoDAsync(dst, src, bytes, s);
}

ws_cu_result cuMemcpyDtoHAsync_v2(void *dst, ws_cu_ptr src, size_t bytes, ws_cu_stream s)
{
    return cuMemcpyDtoHAsync(dst, src, bytes, s);
}

ws_cu_result cuMemsetD8_v2(ws_cu_ptr va, unsigned char v, size_t n)
{
    return cuMemsetD8Async(va, v, n, NULL);
}

ws_cu_result cuStreamCreate(ws_cu_stream *s, unsigned flags)
{
    ENTER(MOCK_CTX);
    return flags > 1 ? WS_CU_INVALID_VALUE : mock_program_stream(s);
}

ws_cu_result cuStreamDestroy_v2(ws_cu_stream s)
{
    (void)cuStreamSynchronize(s); /* the real one lets work go on; it is not our business here */
    return cuStreamDestroy(s);
}

ws_cu_result cuStreamIsCapturing(ws_cu_stream s, int *status)
{
    ENTER(MOCK_CTX);
    const char *e = getenv("WS_MOCK_CAPTURING");
    *status = e && s;
    return WS_CU_SUCCESS;
}

ws_cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    ENTER(MOCK_ANY);
    static _Thread_local int is;
    int was = is;
    is = *mode;
    *mode = was;
    return WS_CU_SUCCESS;
}

ws_cu_result cuEventDestroy_v2(ws_cu_event e)
{
    return cuEventDestroy(e);
}

ws_cu_result cuGetErrorName(ws_cu_result r, const char **name)
{
    *name = r ? "CUDA_ERROR_OF_THE_MOCK" : "CUDA_SUCCESS";
    return WS_CU_SUCCESS;
}

/* What the real one hands out under keys is its own business; tests see that the question arrives
 * here untouched. */
ws_cu_result cuGetExportTable(const void **table, const struct ws_cu_uuid *id)
{
    *table = id;
    return WS_CU_SUCCESS;
}

static ws_cu_result launch(ws_cu_function f, const struct ws_cu_launch_config *c, void **params,
                           void **extra)
{
    uint8_t buffer[4096];
    size_t offset, bytes, end = 0;
    if (!params)
        return cuLaunchKernelEx(c, f, NULL, extra);
    for (size_t i = 0; !cuFuncGetParamInfo(f, i, &offset, &bytes); i++) {
        if (offset + bytes > sizeof(buffer))
            return WS_CU_INVALID_VALUE;
        memcpy(buffer + offset, params[i], bytes);
        end = offset + bytes;
    }
    void *packed[] = {WS_CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, WS_CU_LAUNCH_PARAM_BUFFER_SIZE,
                      &end, WS_CU_LAUNCH_PARAM_END};
    return cuLaunchKernelEx(c, f, NULL, packed);
}

ws_cu_result cuLaunchKernel(ws_cu_function f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                            unsigned by, unsigned bz, unsigned shared, ws_cu_stream s,
                            void **params, void **extra)
{
    ENTER(MOCK_CTX);
    struct ws_cu_launch_config c = {
        .grid = {gx, gy, gz}, .block = {bx, by, bz}, .shared_bytes = shared, .stream = s};
    return launch(f, &c, params, extra);
}

ws_cu_result cuLaunchCooperativeKernel(ws_cu_function f, unsigned gx, unsigned gy, unsigned gz,
                                       unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                       ws_cu_stream s, void **params)
{
    ENTER(MOCK_CTX);
    struct ws_cu_launch_attribute a = {.id = WS_CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                       .value.cooperative = 1};
    struct ws_cu_launch_config c = {.grid = {gx, gy, gz},
                                    .block = {bx, by, bz},
                                    .shared_bytes = shared,
                                    .stream = s,
                                    .attrs = &a,
                                    .n_attrs = 1};
    return launch(f, &c, params, NULL);
}
