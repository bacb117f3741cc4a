/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the CUDA Driver API that the C clients use, declared as NVIDIA's manual documents it,
 * so that no toolkit is needed. drv_load() fills the table; there is one drv_load_*.c for each way
 * in which a program can find the driver. */
#ifndef WS_TESTS_CUDA_DRV_H
#define WS_TESTS_CUDA_DRV_H

#include <stddef.h>
#include "work.h"

typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
enum { CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DISABLE_TIMING = 2 };
enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };
enum { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
enum { CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16 };

/* member, symbol, arguments */
#define DRV_FUNCTIONS(F)                                                                           \
    F(init, cuInit, (unsigned))                                                                    \
    F(device_get, cuDeviceGet, (CUdevice *, int))                                                  \
    F(device_get_count, cuDeviceGetCount, (int *))                                                 \
    F(device_get_name, cuDeviceGetName, (char *, int, CUdevice))                                   \
    F(device_get_attribute, cuDeviceGetAttribute, (int *, int, CUdevice))                          \
    F(ctx_retain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                               \
    F(ctx_release, cuDevicePrimaryCtxRelease_v2, (CUdevice))                                       \
    F(ctx_set_current, cuCtxSetCurrent, (CUcontext))                                               \
    F(ctx_synchronize, cuCtxSynchronize, (void))                                                   \
    F(module_load_data_ex, cuModuleLoadDataEx,                                                     \
      (CUmodule *, const void *, unsigned, int *, void **))                                        \
    F(module_unload, cuModuleUnload, (CUmodule))                                                   \
    F(module_get_function, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))            \
    F(module_get_global, cuModuleGetGlobal_v2, (CUdeviceptr *, size_t *, CUmodule, const char *))  \
    F(func_set_attribute, cuFuncSetAttribute, (CUfunction, int, int))                              \
    F(mem_alloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                           \
    F(mem_free, cuMemFree_v2, (CUdeviceptr))                                                       \
    F(mem_alloc_host, cuMemAllocHost_v2, (void **, size_t))                                        \
    F(mem_free_host, cuMemFreeHost, (void *))                                                      \
    F(memcpy_htod, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                           \
    F(memcpy_dtoh, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                 \
    F(memcpy_htod_async, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))      \
    F(memcpy_dtoh_async, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))            \
    F(memset_d8, cuMemsetD8_v2, (CUdeviceptr, unsigned char, size_t))                              \
    F(memset_d8_async, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))            \
    F(stream_create, cuStreamCreate, (CUstream *, unsigned))                                       \
    F(stream_destroy, cuStreamDestroy_v2, (CUstream))                                              \
    F(stream_synchronize, cuStreamSynchronize, (CUstream))                                         \
    F(stream_wait_event, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                         \
    F(event_create, cuEventCreate, (CUevent *, unsigned))                                          \
    F(event_destroy, cuEventDestroy_v2, (CUevent))                                                 \
    F(event_record, cuEventRecord, (CUevent, CUstream))                                            \
    F(event_synchronize, cuEventSynchronize, (CUevent))                                            \
    F(event_elapsed_time, cuEventElapsedTime, (float *, CUevent, CUevent))                         \
    F(get_error_name, cuGetErrorName, (CUresult, const char **))                                   \
    F(launch_kernel, cuLaunchKernel,                                                               \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
       void **, void **))

#define DRV_MEMBER(member, symbol, args) CUresult(*member) args;
struct drv {
    DRV_FUNCTIONS(DRV_MEMBER)
};
extern struct drv drv;

/* Fills the table or exits. */
void drv_load(void);

/* drv_load(), cuInit(), the primary context of device 0. */
void drv_begin(void);
void drv_end(void);

/* The module ptx/@name.ptx, of the directory in WATTSHARE_TEST_PTX or of the source tree. */
CUmodule drv_module(const char *name);
/* The text of a file, NUL-terminated; to be freed. Exits if it can't be read. */
char *drv_ptx_text(const char *name);
CUfunction drv_function(CUmodule m, const char *name);

/* As <<<>>>: one-dimensional; the argument list is of addresses. */
#define drv_launch(f, grid, block, shared, stream, ...)                                            \
    DRV(launch_kernel(f, grid, 1, 1, block, 1, 1, shared, stream, (void *[]){__VA_ARGS__}, NULL))

void drv_check(CUresult r, const char *call, const char *file, int line);
/* Calls a function of the table and exits with FAIL on an error. */
#define DRV(call) drv_check(drv.call, #call, __FILE__, __LINE__)

#endif
