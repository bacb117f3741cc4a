// SPDX-License-Identifier: Apache-2.0
/* device/cuda/driver.h - the part of NVIDIA's driver interface that this device uses. It is
 * declared here, so that no toolkit is needed to build, and opened at run time, so that no driver
 * is needed to start.
 *
 * Names, values and layouts are those of CUDA 12.4, the oldest driver that is supported; every
 * later driver has them behind cuGetProcAddress(…, 12040, …). tests/device/test_cuda_abi.c compares
 * all of it with the toolkit's cuda.h. Threads: the table is read-only once opened. Source: CUDA
 * Driver API reference. */
#ifndef WS_DEVICE_CUDA_DRIVER_H
#define WS_DEVICE_CUDA_DRIVER_H

#include <stdbool.h>
#include "base/diag.h"
#include "device/cuda/driver_numbers.h"

/* VERSION_LATER: of optional functions that 12.4 did not have. */
enum { WS_CU_VERSION = 12040, WS_CU_VERSION_LATER = 12050 };

typedef int ws_cu_result;
typedef int ws_cu_device;
typedef unsigned long long ws_cu_ptr, ws_cu_handle;
typedef struct ws_cu_ctx_st *ws_cu_ctx;
typedef struct ws_cu_module_st *ws_cu_module;
typedef struct ws_cu_function_st *ws_cu_function;
typedef struct ws_cu_stream_st *ws_cu_stream;
typedef struct ws_cu_event_st *ws_cu_event;
typedef struct ws_cu_green_st *ws_cu_green;
typedef struct ws_cu_desc_st *ws_cu_desc;

/* For the list extra of cuLaunchKernelEx(). */
#define WS_CU_LAUNCH_PARAM_END            ((void *)0)
#define WS_CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define WS_CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *)2)

struct ws_cu_uuid {
    char bytes[16];
};
struct ws_cu_location {
    int type, id;
};
struct ws_cu_alloc_prop {
    int type, handle_types;
    struct ws_cu_location location;
    void *win32;
    struct {
        unsigned char compression, rdma;
        unsigned short usage;
        unsigned char reserved[4];
    } flags;
};
struct ws_cu_access {
    struct ws_cu_location location;
    int flags;
};
struct ws_cu_copy3d {
    size_t src_x_bytes, src_y, src_z, src_lod;
    int src_type;
    const void *src_host;
    ws_cu_ptr src_device;
    void *src_array, *reserved0;
    size_t src_pitch, src_height;
    size_t dst_x_bytes, dst_y, dst_z, dst_lod;
    int dst_type;
    void *dst_host;
    ws_cu_ptr dst_device;
    void *dst_array, *reserved1;
    size_t dst_pitch, dst_height;
    size_t width_bytes, height, depth;
};
/* The SMs of a context. The fields behind count are 0 before CUDA 13. */
struct ws_cu_resource {
    int type;
    unsigned char own[92];
    union {
        struct {
            unsigned count, min_partition, alignment;
        } sm;
        unsigned char oversize[48];
    };
};
struct ws_cu_launch_attribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int cooperative;
        unsigned cluster[3];
    } value;
};
struct ws_cu_launch_config {
    unsigned grid[3], block[3], shared_bytes;
    ws_cu_stream stream;
    struct ws_cu_launch_attribute *attrs;
    unsigned n_attrs;
};

/* X(name, needed, arguments): a driver without a needed function is refused; another function is
 * NULL where the driver has none. */
#define WS_CU_FUNCTIONS(X)                                                                         \
    X(cuInit, 1, (unsigned flags))                                                                 \
    X(cuDriverGetVersion, 1, (int *version))                                                       \
    X(cuDeviceGetCount, 1, (int *n))                                                               \
    X(cuDeviceGet, 1, (ws_cu_device * d, int ordinal))                                             \
    X(cuDeviceGetName, 1, (char *name, int len, ws_cu_device d))                                   \
    X(cuDeviceGetUuid, 1, (struct ws_cu_uuid * uuid, ws_cu_device d))                              \
    X(cuDeviceTotalMem, 1, (size_t * bytes, ws_cu_device d))                                       \
    X(cuDeviceGetAttribute, 1, (int *value, int attribute, ws_cu_device d))                        \
    X(cuDevicePrimaryCtxRetain, 1, (ws_cu_ctx * ctx, ws_cu_device d))                              \
    X(cuDevicePrimaryCtxRelease, 1, (ws_cu_device d))                                              \
    X(cuDevicePrimaryCtxReset, 1, (ws_cu_device d))                                                \
    X(cuCtxSetCurrent, 1, (ws_cu_ctx ctx))                                                         \
    X(cuCtxGetStreamPriorityRange, 1, (int *least, int *greatest))                                 \
    X(cuCtxSetLimit, 1, (int limit, size_t value))                                                 \
    X(cuMemGetInfo, 1, (size_t * free, size_t * total))                                            \
    X(cuMemGetAllocationGranularity, 1,                                                            \
      (size_t * bytes, const struct ws_cu_alloc_prop *prop, int option))                           \
    X(cuMemAddressReserve, 1,                                                                      \
      (ws_cu_ptr * va, size_t bytes, size_t align, ws_cu_ptr hint, unsigned long long flags))      \
    X(cuMemAddressFree, 1, (ws_cu_ptr va, size_t bytes))                                           \
    X(cuMemCreate, 1,                                                                              \
      (ws_cu_handle * h, size_t bytes, const struct ws_cu_alloc_prop *prop,                        \
       unsigned long long flags))                                                                  \
    X(cuMemRelease, 1, (ws_cu_handle h))                                                           \
    X(cuMemMap, 1,                                                                                 \
      (ws_cu_ptr va, size_t bytes, size_t offset, ws_cu_handle h, unsigned long long flags))       \
    X(cuMemUnmap, 1, (ws_cu_ptr va, size_t bytes))                                                 \
    X(cuMemSetAccess, 1,                                                                           \
      (ws_cu_ptr va, size_t bytes, const struct ws_cu_access *access, size_t n))                   \
    X(cuMemExportToShareableHandle, 0,                                                             \
      (void *shareable, ws_cu_handle h, int type, unsigned long long flags))                       \
    X(cuMemImportFromShareableHandle, 0, (ws_cu_handle * h, void *shareable, int type))            \
    X(cuDeviceCanAccessPeer, 1, (int *can, ws_cu_device d, ws_cu_device peer))                     \
    X(cuMemcpyPeerAsync, 1,                                                                        \
      (ws_cu_ptr dst, ws_cu_ctx dst_ctx, ws_cu_ptr src, ws_cu_ctx src_ctx, size_t bytes,           \
       ws_cu_stream s))                                                                            \
    X(cuMemAlloc, 1, (ws_cu_ptr * va, size_t bytes))                                               \
    X(cuMemFree, 1, (ws_cu_ptr va))                                                                \
    X(cuMemHostAlloc, 1, (void **p, size_t bytes, unsigned flags))                                 \
    X(cuMemFreeHost, 1, (void *p))                                                                 \
    X(cuMemHostRegister, 1, (void *p, size_t bytes, unsigned flags))                               \
    X(cuMemHostUnregister, 1, (void *p))                                                           \
    X(cuMemcpyHtoD, 1, (ws_cu_ptr dst, const void *src, size_t bytes))                             \
    X(cuMemcpyDtoH, 1, (void *dst, ws_cu_ptr src, size_t bytes))                                   \
    X(cuMemcpyHtoDAsync, 1, (ws_cu_ptr dst, const void *src, size_t bytes, ws_cu_stream s))        \
    X(cuMemcpyDtoHAsync, 1, (void *dst, ws_cu_ptr src, size_t bytes, ws_cu_stream s))              \
    X(cuMemcpyDtoDAsync, 1, (ws_cu_ptr dst, ws_cu_ptr src, size_t bytes, ws_cu_stream s))          \
    X(cuMemcpy3DAsync, 1, (const struct ws_cu_copy3d *c, ws_cu_stream s))                          \
    X(cuMemsetD8Async, 1, (ws_cu_ptr va, unsigned char v, size_t n, ws_cu_stream s))               \
    X(cuMemsetD2D8Async, 1,                                                                        \
      (ws_cu_ptr va, size_t pitch, unsigned char v, size_t width, size_t height, ws_cu_stream s))  \
    X(cuMemsetD2D16Async, 1,                                                                       \
      (ws_cu_ptr va, size_t pitch, unsigned short v, size_t width, size_t height, ws_cu_stream s)) \
    X(cuMemsetD2D32Async, 1,                                                                       \
      (ws_cu_ptr va, size_t pitch, unsigned v, size_t width, size_t height, ws_cu_stream s))       \
    X(cuModuleLoadDataEx, 1,                                                                       \
      (ws_cu_module * m, const void *image, unsigned n, int *options, void **values))              \
    X(cuModuleUnload, 1, (ws_cu_module m))                                                         \
    X(cuModuleGetFunction, 1, (ws_cu_function * f, ws_cu_module m, const char *name))              \
    X(cuModuleGetGlobal, 1, (ws_cu_ptr * va, size_t * bytes, ws_cu_module m, const char *name))    \
    X(cuFuncGetAttribute, 1, (int *value, int attribute, ws_cu_function f))                        \
    X(cuFuncSetAttribute, 1, (ws_cu_function f, int attribute, int value))                         \
    X(cuFuncGetParamInfo, 0, (ws_cu_function f, size_t index, size_t * offset, size_t * bytes))    \
    X(cuLaunchKernelEx, 1,                                                                         \
      (const struct ws_cu_launch_config *c, ws_cu_function f, void **params, void **extra))        \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 1,                                              \
      (int *blocks, ws_cu_function f, int threads, size_t shared_bytes))                           \
    X(cuStreamCreateWithPriority, 1, (ws_cu_stream * s, unsigned flags, int priority))             \
    X(cuStreamDestroy, 1, (ws_cu_stream s))                                                        \
    X(cuStreamSynchronize, 1, (ws_cu_stream s))                                                    \
    X(cuStreamWaitEvent, 1, (ws_cu_stream s, ws_cu_event e, unsigned flags))                       \
    X(cuStreamWriteValue32, 0, (ws_cu_stream s, ws_cu_ptr va, uint32_t value, unsigned flags))     \
    X(cuEventCreate, 1, (ws_cu_event * e, unsigned flags))                                         \
    X(cuEventDestroy, 1, (ws_cu_event e))                                                          \
    X(cuEventRecord, 1, (ws_cu_event e, ws_cu_stream s))                                           \
    X(cuEventQuery, 1, (ws_cu_event e))                                                            \
    X(cuEventSynchronize, 1, (ws_cu_event e))                                                      \
    X(cuEventElapsedTime, 1, (float *ms, ws_cu_event from, ws_cu_event to))                        \
    X(cuDeviceGetDevResource, 0, (ws_cu_device d, struct ws_cu_resource * r, int type))            \
    X(cuDevSmResourceSplitByCount, 0,                                                              \
      (struct ws_cu_resource * result, unsigned *n, const struct ws_cu_resource *input,            \
       struct ws_cu_resource *remaining, unsigned flags, unsigned count))                          \
    X(cuDevResourceGenerateDesc, 0, (ws_cu_desc * desc, struct ws_cu_resource * r, unsigned n))    \
    X(cuGreenCtxCreate, 0, (ws_cu_green * ret, ws_cu_desc desc, ws_cu_device d, unsigned flags))   \
    X(cuGreenCtxDestroy, 0, (ws_cu_green g))                                                       \
    X(cuGreenCtxStreamCreate, 0, (ws_cu_stream * s, ws_cu_green g, unsigned flags, int priority))

struct ws_cu {
    void *library;
    int version; /* what the driver says it supports: 12040, 13000, … */
#define X(name, needed, args) ws_cu_result(*name) args;
    WS_CU_FUNCTIONS(X)
#undef X
};

enum { WS_CU_E_MISSING = 1 /* no driver, too old, or no GPU; diags say which */ };
/* Opens @library (NULL: libcuda.so.1) and initialises the driver. Return: 0, WS_CU_E_MISSING. */
WS_MUST_CHECK int ws_cu_open(struct ws_cu *ret, const char *library, struct ws_diags *diags);
void ws_cu_close(struct ws_cu *cu);
/* "ILLEGAL_ADDRESS (700)"; @buf is used where there is no constant name. */
const char *ws_cu_result_name(ws_cu_result r, char *buf, size_t size);

#endif
