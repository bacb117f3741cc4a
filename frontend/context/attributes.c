// SPDX-License-Identifier: Apache-2.0
/* Attributes and properties of a device. The values stand in device_attributes.def; a device's
 * properties (cudaDeviceProp) are the same values under other names. */
#include "frontend/context/attributes.h"

#include <stdio.h>
#include <string.h>

enum { KIB = 1024, KHZ_PER_MHZ = 1000 };

/* Of the L2 cache, three quarters may be set aside for persisting accesses from compute capability
 * 8.0 on; a hint here. */
static int persisting_l2_bytes(const Ws__Device *d)
{
    return d->cc_major >= 8 ? (int)(d->l2_bytes / 4 * 3) : 0;
}

static int single_to_double(const Ws__Device *d)
{
    if (d->cc_major == 6 || d->cc_major == 7 || d->cc_major == 8 || d->cc_major == 9 ||
        d->cc_major == 10)
        return d->cc_minor == 0 ? 2 : 32;
    return d->cc_major < 3 ? 8 : 32;
}

static int access_window_bytes(const Ws__Device *d)
{
    return d->cc_major >= 8 ? 128 * KIB * KIB - 4 * KIB : 0;
}

/* Shared memory that the system uses in each block. */
static int reserved_shared_bytes(const Ws__Device *d)
{
    return d->cc_major >= 8 ? KIB : 0;
}

bool ws_device_attribute(const Ws__Device *d, int attribute, int *ret)
{
    bool host = ws_session_maps_host();
    switch (attribute) {
#define WS_DEVICE_ATTRIBUTE(number, name, value)                                                   \
    case number:                                                                                   \
        *ret = (int)(value);                                                                       \
        return true;
#include "frontend/context/device_attributes.def"
#undef WS_DEVICE_ATTRIBUTE
    default:
        return false;
    }
}

void ws_device_pci_id(const Ws__Device *d, char *text, size_t bytes)
{
    snprintf(text, bytes, "0000:%02x:00.0", (d->gpu + 1) & 0xff);
}

bool ws_stream_attribute_known(int attribute)
{
    return attribute == WS_CUDA_ATTR_ACCESS_POLICY_WINDOW ||
           attribute == WS_CUDA_ATTR_SYNCHRONIZATION_POLICY || attribute == WS_CUDA_ATTR_PRIORITY ||
           attribute == WS_CUDA_ATTR_MEM_SYNC_DOMAIN_MAP ||
           attribute == WS_CUDA_ATTR_MEM_SYNC_DOMAIN;
}

void ws_stream_attribute(int attribute, int priority, union cuda_launch_attribute_value *ret)
{
    enum { SYNCHRONIZE_AUTOMATICALLY = 1 };
    memset(ret, 0, sizeof(*ret));
    if (attribute == WS_CUDA_ATTR_PRIORITY)
        ret->priority = priority;
    else if (attribute == WS_CUDA_ATTR_SYNCHRONIZATION_POLICY)
        ret->policy = SYNCHRONIZE_AUTOMATICALLY;
}

static int get(const Ws__Device *d, int attribute)
{
    int v = 0;
    ws_device_attribute(d, attribute, &v);
    return v;
}

static void copy_uuid(const Ws__Device *d, char *ret)
{
    if (d->uuid.len)
        memcpy(ret, d->uuid.data, WS_MIN(d->uuid.len, sizeof(struct cuda_uuid)));
}

/* Attributes whose numbers follow each other. */
static void copy_sizes(const Ws__Device *d, int *to, int attribute, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = get(d, attribute + i);
}

/* The two layouts have these fields under the same names. */
#define COMMON_FIELDS(d, p)                                                                        \
    do {                                                                                           \
        memset(p, 0, sizeof(*p));                                                                  \
        snprintf((p)->name, sizeof((p)->name), "%s",                                               \
                 (d)->product && (d)->product[0] ? (d)->product : (d)->name);                      \
        copy_uuid(d, (p)->uuid.bytes);                                                             \
        (p)->totalGlobalMem = (d)->memory_bytes;                                                   \
        (p)->sharedMemPerBlock = (d)->shared_bytes_per_block;                                      \
        (p)->regsPerBlock = (int)(d)->regs_per_sm;                                                 \
        (p)->warpSize = get(d, WS_ATTR_WARP_SIZE);                                                 \
        (p)->memPitch = (size_t)get(d, WS_ATTR_MAX_PITCH);                                         \
        (p)->maxThreadsPerBlock = (int)(d)->max_threads_per_block;                                 \
        for (int i_ = 0; i_ < 3; i_++) {                                                           \
            (p)->maxThreadsDim[i_] = get(d, WS_ATTR_MAX_BLOCK_DIM_X + i_);                         \
            (p)->maxGridSize[i_] = get(d, WS_ATTR_MAX_GRID_DIM_X + i_);                            \
        }                                                                                          \
        (p)->totalConstMem = (size_t)get(d, WS_ATTR_TOTAL_CONSTANT_MEMORY);                        \
        (p)->major = (int)(d)->cc_major;                                                           \
        (p)->minor = (int)(d)->cc_minor;                                                           \
        (p)->textureAlignment = (size_t)get(d, WS_ATTR_TEXTURE_ALIGNMENT);                         \
        (p)->texturePitchAlignment = (size_t)get(d, WS_ATTR_TEXTURE_PITCH_ALIGNMENT);              \
        (p)->multiProcessorCount = (int)(d)->n_sms;                                                \
        (p)->canMapHostMemory = get(d, WS_ATTR_CAN_MAP_HOST_MEMORY);                               \
        (p)->surfaceAlignment = (size_t)get(d, WS_ATTR_SURFACE_ALIGNMENT);                         \
        (p)->concurrentKernels = get(d, WS_ATTR_CONCURRENT_KERNELS);                               \
        (p)->pciBusID = get(d, WS_ATTR_PCI_BUS_ID);                                                \
        (p)->asyncEngineCount = get(d, WS_ATTR_ASYNC_ENGINE_COUNT);                                \
        (p)->unifiedAddressing = get(d, WS_ATTR_UNIFIED_ADDRESSING);                               \
        (p)->memoryBusWidth = (int)(d)->memory_bus_bits;                                           \
        (p)->l2CacheSize = (int)(d)->l2_bytes;                                                     \
        (p)->maxThreadsPerMultiProcessor = (int)(d)->max_threads_per_sm;                           \
        (p)->streamPrioritiesSupported = get(d, WS_ATTR_STREAM_PRIORITIES_SUPPORTED);              \
        (p)->globalL1CacheSupported = get(d, WS_ATTR_GLOBAL_L1_CACHE_SUPPORTED);                   \
        (p)->localL1CacheSupported = get(d, WS_ATTR_LOCAL_L1_CACHE_SUPPORTED);                     \
        (p)->sharedMemPerMultiprocessor = (d)->shared_bytes_per_sm;                                \
        (p)->regsPerMultiprocessor = (int)(d)->regs_per_sm;                                        \
        (p)->managedMemory = get(d, WS_ATTR_MANAGED_MEMORY);                                       \
        (p)->concurrentManagedAccess = get(d, WS_ATTR_CONCURRENT_MANAGED_ACCESS);                  \
        (p)->cooperativeLaunch = get(d, WS_ATTR_COOPERATIVE_LAUNCH);                               \
        (p)->sharedMemPerBlockOptin = (d)->shared_bytes_per_block_optin;                           \
        (p)->maxBlocksPerMultiProcessor = (int)(d)->max_blocks_per_sm;                             \
        (p)->hostRegisterSupported = get(d, WS_ATTR_HOST_REGISTER_SUPPORTED);                      \
        (p)->memoryPoolsSupported = get(d, WS_ATTR_MEMORY_POOLS_SUPPORTED);                        \
        (p)->integrated = get(d, WS_ATTR_INTEGRATED);                                              \
        (p)->ECCEnabled = get(d, WS_ATTR_ECC_ENABLED);                                             \
        (p)->pciDeviceID = get(d, WS_ATTR_PCI_DEVICE_ID);                                          \
        (p)->pciDomainID = get(d, WS_ATTR_PCI_DOMAIN_ID);                                          \
        (p)->tccDriver = get(d, WS_ATTR_TCC_DRIVER);                                               \
        (p)->persistingL2CacheMaxSize = get(d, WS_ATTR_MAX_PERSISTING_L2_CACHE_SIZE);              \
        (p)->isMultiGpuBoard = get(d, WS_ATTR_MULTI_GPU_BOARD);                                    \
        (p)->multiGpuBoardGroupID = get(d, WS_ATTR_MULTI_GPU_BOARD_GROUP_ID);                      \
        (p)->hostNativeAtomicSupported = get(d, WS_ATTR_HOST_NATIVE_ATOMIC_SUPPORTED);             \
        (p)->pageableMemoryAccess = get(d, WS_ATTR_PAGEABLE_MEMORY_ACCESS);                        \
        (p)->computePreemptionSupported = get(d, WS_ATTR_COMPUTE_PREEMPTION_SUPPORTED);            \
        (p)->canUseHostPointerForRegisteredMem =                                                   \
            get(d, WS_ATTR_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM);                               \
        (p)->pageableMemoryAccessUsesHostPageTables =                                              \
            get(d, WS_ATTR_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);                          \
        (p)->directManagedMemAccessFromHost = get(d, WS_ATTR_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST); \
        (p)->accessPolicyMaxWindowSize = get(d, WS_ATTR_MAX_ACCESS_POLICY_WINDOW_SIZE);            \
        (p)->reservedSharedMemPerBlock = (size_t)get(d, WS_ATTR_RESERVED_SHARED_MEMORY_PER_BLOCK); \
        (p)->sparseCudaArraySupported = get(d, WS_ATTR_SPARSE_CUDA_ARRAY_SUPPORTED);               \
        (p)->hostRegisterReadOnlySupported = get(d, WS_ATTR_READ_ONLY_HOST_REGISTER_SUPPORTED);    \
        (p)->timelineSemaphoreInteropSupported =                                                   \
            get(d, WS_ATTR_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED);                                  \
        (p)->gpuDirectRDMASupported = get(d, WS_ATTR_GPU_DIRECT_RDMA_SUPPORTED);                   \
        (p)->gpuDirectRDMAFlushWritesOptions =                                                     \
            (uint32_t)get(d, WS_ATTR_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);                        \
        (p)->gpuDirectRDMAWritesOrdering = get(d, WS_ATTR_GPU_DIRECT_RDMA_WRITES_ORDERING);        \
        (p)->memoryPoolSupportedHandleTypes =                                                      \
            (uint32_t)get(d, WS_ATTR_MEMPOOL_SUPPORTED_HANDLE_TYPES);                              \
        (p)->clusterLaunch = get(d, WS_ATTR_CLUSTER_LAUNCH);                                       \
        (p)->deferredMappingCudaArraySupported =                                                   \
            get(d, WS_ATTR_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED);                                 \
        (p)->ipcEventSupported = get(d, WS_ATTR_IPC_EVENT_SUPPORTED);                              \
        (p)->unifiedFunctionPointers = get(d, WS_ATTR_UNIFIED_FUNCTION_POINTERS);                  \
        copy_sizes(d, (p)->maxTexture1DLayered, WS_ATTR_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 2);       \
        copy_sizes(d, &(p)->maxTexture1D, WS_ATTR_MAXIMUM_TEXTURE1D_WIDTH, 1);                     \
        copy_sizes(d, &(p)->maxTexture1DMipmap, WS_ATTR_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 1);     \
        copy_sizes(d, (p)->maxTexture2D, WS_ATTR_MAXIMUM_TEXTURE2D_WIDTH, 2);                      \
        copy_sizes(d, (p)->maxTexture2DMipmap, WS_ATTR_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 2);      \
        copy_sizes(d, (p)->maxTexture2DLinear, WS_ATTR_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 3);         \
        copy_sizes(d, (p)->maxTexture2DGather, WS_ATTR_MAXIMUM_TEXTURE2D_GATHER_WIDTH, 2);         \
        copy_sizes(d, (p)->maxTexture3D, WS_ATTR_MAXIMUM_TEXTURE3D_WIDTH, 3);                      \
        copy_sizes(d, (p)->maxTexture3DAlt, WS_ATTR_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 3);         \
        copy_sizes(d, &(p)->maxTextureCubemap, WS_ATTR_MAXIMUM_TEXTURECUBEMAP_WIDTH, 1);           \
        copy_sizes(d, (p)->maxTexture2DLayered, WS_ATTR_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 3);       \
        copy_sizes(d, (p)->maxTextureCubemapLayered, WS_ATTR_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, \
                   2);                                                                             \
        copy_sizes(d, &(p)->maxSurface1D, WS_ATTR_MAXIMUM_SURFACE1D_WIDTH, 1);                     \
        copy_sizes(d, (p)->maxSurface2D, WS_ATTR_MAXIMUM_SURFACE2D_WIDTH, 2);                      \
        copy_sizes(d, (p)->maxSurface3D, WS_ATTR_MAXIMUM_SURFACE3D_WIDTH, 3);                      \
        copy_sizes(d, (p)->maxSurface1DLayered, WS_ATTR_MAXIMUM_SURFACE1D_LAYERED_WIDTH, 2);       \
        copy_sizes(d, (p)->maxSurface2DLayered, WS_ATTR_MAXIMUM_SURFACE2D_LAYERED_WIDTH, 3);       \
        copy_sizes(d, &(p)->maxSurfaceCubemap, WS_ATTR_MAXIMUM_SURFACECUBEMAP_WIDTH, 1);           \
        copy_sizes(d, (p)->maxSurfaceCubemapLayered, WS_ATTR_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, \
                   2);                                                                             \
    } while (0)

void ws_device_prop(const Ws__Device *d, struct cuda_device_prop *ret)
{
    COMMON_FIELDS(d, ret);
    ret->deviceNumaConfig = get(d, WS_ATTR_NUMA_CONFIG);
    ret->deviceNumaId = get(d, WS_ATTR_NUMA_ID);
    ret->mpsEnabled = get(d, WS_ATTR_MPS_ENABLED);
    ret->gpuPciSubsystemID = (uint32_t)get(d, WS_ATTR_GPU_PCI_SUBSYSTEM_ID);
    ret->hostNumaMultinodeIpcSupported = get(d, WS_ATTR_HOST_NUMA_MULTINODE_IPC_SUPPORTED);
    ret->hostNumaId = get(d, WS_ATTR_HOST_NUMA_ID);
}

void ws_device_prop_12(const Ws__Device *d, struct cuda_device_prop_12 *ret)
{
    COMMON_FIELDS(d, ret);
    ret->clockRate = get(d, WS_ATTR_CLOCK_RATE);
    ret->memoryClockRate = get(d, WS_ATTR_MEMORY_CLOCK_RATE);
    ret->deviceOverlap = get(d, WS_ATTR_GPU_OVERLAP);
    ret->singleToDoublePrecisionPerfRatio = get(d, WS_ATTR_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
    ret->kernelExecTimeoutEnabled = get(d, WS_ATTR_KERNEL_EXEC_TIMEOUT);
    ret->computeMode = get(d, WS_ATTR_COMPUTE_MODE);
    ret->maxTexture1DLinear = get(d, WS_ATTR_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    ret->cooperativeMultiDeviceLaunch = get(d, WS_ATTR_COOPERATIVE_MULTI_DEVICE_LAUNCH);
}
