// SPDX-License-Identifier: Apache-2.0
/* Device attributes and properties. Numbers come from the device's description where it has them; the others are CUDA's limits
 * that all devices of these generations share, and 0 for what we don't do (clusters of several blocks, page tables). */
#include "frontend/context/attributes.h"

#include <stdio.h>
#include <string.h>

enum { KIB = 1024, ATTRIBUTE_LAST = 147, ATTRIBUTE_GAP = 139, MEMORY_CLOCK_KHZ_PER_MHZ = 1000 };

/* What all devices of the generations at hand share: sizes of textures and surfaces, in elements. Source: CUDA C++ Programming
 * Guide, "Technical Specifications per Compute Capability". */
static const int sizes[][2] = {
    {21, 131072},                              /* 1-D texture */
    {22, 131072},  {23, 65536},                /* 2-D */
    {24, 16384},   {25, 16384}, {26, 16384},   /* 3-D */
    {27, 32768},   {28, 32768}, {29, 2048},    /* 2-D layered */
    {42, 32768},   {43, 2048},                 /* 1-D layered */
    {44, 1},       {45, 32768}, {46, 32768},   /* gather */
    {47, 8192},    {48, 8192},  {49, 32768},   /* 3-D, the other shape */
    {52, 32768},   {53, 32768}, {54, 2046},    /* cube map; layered */
    {55, 32768},                               /* 1-D surface */
    {56, 131072},  {57, 65536},                /* 2-D */
    {58, 16384},   {59, 16384}, {60, 16384},   /* 3-D */
    {61, 32768},   {62, 2048},                 /* 1-D layered */
    {63, 32768},   {64, 32768}, {65, 2048},    /* 2-D layered */
    {66, 32768},   {67, 32768}, {68, 2046},    /* cube map; layered */
    {69, 1 << 28},                             /* 1-D linear */
    {70, 131072},  {71, 65000}, {72, 2097120}, /* 2-D linear: width, height, pitch */
    {73, 32768},   {74, 32768}, {77, 32768},   /* mipmapped: 2-D, 1-D */
};

static int size_of(int attribute)
{
    for (size_t i = 0; i < WS_ARRAY_SIZE(sizes); i++)
        if (sizes[i][0] == attribute)
            return sizes[i][1];
    return 0;
}

/* Of the L2 cache, three quarters may be set aside for persisting accesses from compute capability 8.0 on; a hint here. */
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

bool ws_device_attribute(const Ws__Device *d, int attribute, int *ret)
{
    bool host = ws_session_maps_host();
    int v = 0;
    switch (attribute) {
    case WS_ATTR_MAX_THREADS_PER_BLOCK:
        v = (int)d->max_threads_per_block;
        break;
    case 2:
    case 3:
        v = (int)d->max_threads_per_block;
        break; /* block x, y */
    case 4:
        v = 64;
        break; /* block z */
    case 5:
        v = INT32_MAX;
        break; /* grid x */
    case 6:
    case 7:
        v = 65535;
        break; /* grid y, z */
    case WS_ATTR_SHARED_PER_BLOCK:
        v = (int)d->shared_bytes_per_block;
        break;
    case WS_ATTR_CONSTANT_BYTES:
        v = 64 * KIB;
        break;
    case 10:
        v = 32;
        break; /* warp */
    case WS_ATTR_MAX_PITCH:
        v = INT32_MAX;
        break;
    case 12:
    case 82:
        v = (int)d->regs_per_sm;
        break; /* registers per block, per SM */
    case WS_ATTR_CLOCK_KHZ:
        v = (int)d->core_mhz * 1000;
        break;
    case 14:
        v = 512;
        break; /* texture alignment */
    case 15:
        v = 1;
        break; /* copies overlap kernels */
    case 16:
        v = (int)d->n_sms;
        break;
    case 19:
        v = host;
        break; /* pinned memory is mapped */
    case 30:
        v = 512;
        break; /* surface alignment */
    case 31:
        v = 1;
        break; /* concurrent kernels */
    case 33:
        v = (int)d->gpu + 1;
        break; /* PCI bus */
    case 36:
        v = (int)d->memory_mhz * MEMORY_CLOCK_KHZ_PER_MHZ;
        break;
    case 37:
        v = (int)d->memory_bus_bits;
        break;
    case 38:
        v = (int)d->l2_bytes;
        break;
    case 39:
        v = (int)d->max_threads_per_sm;
        break;
    case 40:
        v = 2;
        break; /* copy engines */
    case 41:
        v = 1;
        break; /* unified addressing */
    case 51:
        v = 32;
        break; /* texture pitch alignment */
    case 75:
        v = (int)d->cc_major;
        break;
    case 76:
        v = (int)d->cc_minor;
        break;
    case 78:
        v = 1;
        break; /* stream priorities */
    case 79:
    case 80:
        v = 1;
        break; /* L1 caches */
    case 81:
        v = (int)d->shared_bytes_per_sm;
        break;
    case 83:
        v = host;
        break; /* managed memory */
    case 87:
        v = single_to_double(d);
        break;
    case 89:
        v = host;
        break; /* managed memory from both sides at once */
    case 95:
        v = 1;
        break; /* cooperative launch */
    case 97:
        v = (int)d->shared_bytes_per_block_optin;
        break;
    case 98:
        v = 0;
        break;
    case 99:
        v = 1;
        break; /* host memory can be registered, */
    case 91:
        v = host;
        break; /* and used on the device by its host address */
    case 102:
        v = 1;
        break; /* virtual memory management, */
    case 103:
    case 119:
    case 125:
        v = host;
        break; /* its handles as descriptors; those of pools; events between processes */
    case 106:
        v = (int)d->max_blocks_per_sm;
        break;
    case 115:
        v = 1;
        break; /* memory pools */
    case 129:
        v = 0;
        break;
    case 130:
        v = 0;
        break; /* NUMA: none */
    case 131:
    case 134:
        v = -1;
        break;
    case 90:
        v = d->cc_major >= 6;
        break; /* preemption */
    case 108:
        v = persisting_l2_bytes(d);
        break;
    case 109: /* largest access policy window */
        v = d->cc_major >= 8 ? 128 * KIB * KIB - 4 * KIB : 0;
        break;
    case 111:
        v = d->cc_major >= 8 ? KIB : 0;
        break; /* shared memory of the system's in each block */
    case 126:
        v = d->cc_major >= 9 ? 4 : 1;
        break; /* memory synchronisation domains */
    default:
        if (attribute < 1 || attribute > ATTRIBUTE_LAST || attribute == ATTRIBUTE_GAP)
            return false;
        v = size_of(attribute);
    }
    *ret = v;
    return true;
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
    memset(ret, 0, sizeof *ret);
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
        memset(p, 0, sizeof *p);                                                                   \
        snprintf((p)->name, sizeof(p)->name, "%s",                                                 \
                 (d)->product && (d)->product[0] ? (d)->product : (d)->name);                      \
        copy_uuid(d, (p)->uuid.bytes);                                                             \
        (p)->totalGlobalMem = (d)->memory_bytes;                                                   \
        (p)->sharedMemPerBlock = (d)->shared_bytes_per_block;                                      \
        (p)->regsPerBlock = (int)(d)->regs_per_sm;                                                 \
        (p)->warpSize = get(d, 10);                                                                \
        (p)->memPitch = (size_t)get(d, WS_ATTR_MAX_PITCH);                                         \
        (p)->maxThreadsPerBlock = (int)(d)->max_threads_per_block;                                 \
        for (int i_ = 0; i_ < 3; i_++) {                                                           \
            (p)->maxThreadsDim[i_] = get(d, WS_ATTR_MAX_BLOCK_X + i_);                             \
            (p)->maxGridSize[i_] = get(d, WS_ATTR_MAX_GRID_X + i_);                                \
        }                                                                                          \
        (p)->totalConstMem = (size_t)get(d, WS_ATTR_CONSTANT_BYTES);                               \
        (p)->major = (int)(d)->cc_major;                                                           \
        (p)->minor = (int)(d)->cc_minor;                                                           \
        (p)->textureAlignment = (size_t)get(d, 14);                                                \
        (p)->texturePitchAlignment = (size_t)get(d, 51);                                           \
        (p)->multiProcessorCount = (int)(d)->n_sms;                                                \
        (p)->canMapHostMemory = get(d, 19);                                                        \
        (p)->surfaceAlignment = (size_t)get(d, 30);                                                \
        (p)->concurrentKernels = get(d, 31);                                                       \
        (p)->pciBusID = get(d, 33);                                                                \
        (p)->asyncEngineCount = get(d, 40);                                                        \
        (p)->unifiedAddressing = get(d, 41);                                                       \
        (p)->memoryBusWidth = (int)(d)->memory_bus_bits;                                           \
        (p)->l2CacheSize = (int)(d)->l2_bytes;                                                     \
        (p)->maxThreadsPerMultiProcessor = (int)(d)->max_threads_per_sm;                           \
        (p)->streamPrioritiesSupported = get(d, 78);                                               \
        (p)->globalL1CacheSupported = get(d, 79);                                                  \
        (p)->localL1CacheSupported = get(d, 80);                                                   \
        (p)->sharedMemPerMultiprocessor = (d)->shared_bytes_per_sm;                                \
        (p)->regsPerMultiprocessor = (int)(d)->regs_per_sm;                                        \
        (p)->managedMemory = get(d, 83);                                                           \
        (p)->concurrentManagedAccess = get(d, 89);                                                 \
        (p)->cooperativeLaunch = get(d, 95);                                                       \
        (p)->sharedMemPerBlockOptin = (d)->shared_bytes_per_block_optin;                           \
        (p)->maxBlocksPerMultiProcessor = (int)(d)->max_blocks_per_sm;                             \
        (p)->hostRegisterSupported = get(d, 99);                                                   \
        (p)->memoryPoolsSupported = get(d, 115);                                                   \
        (p)->integrated = get(d, 18);                                                              \
        (p)->ECCEnabled = get(d, 32);                                                              \
        (p)->pciDeviceID = get(d, 34);                                                             \
        (p)->pciDomainID = get(d, 50);                                                             \
        (p)->tccDriver = get(d, 35);                                                               \
        (p)->persistingL2CacheMaxSize = get(d, 108);                                               \
        (p)->isMultiGpuBoard = get(d, 84);                                                         \
        (p)->multiGpuBoardGroupID = get(d, 85);                                                    \
        (p)->hostNativeAtomicSupported = get(d, 86);                                               \
        (p)->pageableMemoryAccess = get(d, 88);                                                    \
        (p)->computePreemptionSupported = get(d, 90);                                              \
        (p)->canUseHostPointerForRegisteredMem = get(d, 91);                                       \
        (p)->pageableMemoryAccessUsesHostPageTables = get(d, 100);                                 \
        (p)->directManagedMemAccessFromHost = get(d, 101);                                         \
        (p)->accessPolicyMaxWindowSize = get(d, 109);                                              \
        (p)->reservedSharedMemPerBlock = (size_t)get(d, 111);                                      \
        (p)->sparseCudaArraySupported = get(d, 112);                                               \
        (p)->hostRegisterReadOnlySupported = get(d, 113);                                          \
        (p)->timelineSemaphoreInteropSupported = get(d, 114);                                      \
        (p)->gpuDirectRDMASupported = get(d, 116);                                                 \
        (p)->gpuDirectRDMAFlushWritesOptions = (uint32_t)get(d, 117);                              \
        (p)->gpuDirectRDMAWritesOrdering = get(d, 118);                                            \
        (p)->memoryPoolSupportedHandleTypes = (uint32_t)get(d, 119);                               \
        (p)->clusterLaunch = get(d, 120);                                                          \
        (p)->deferredMappingCudaArraySupported = get(d, 121);                                      \
        (p)->ipcEventSupported = get(d, 125);                                                      \
        (p)->unifiedFunctionPointers = get(d, 129);                                                \
        copy_sizes(d, (p)->maxTexture1DLayered, 42, 2);                                            \
        copy_sizes(d, &(p)->maxTexture1D, 21, 1);                                                  \
        copy_sizes(d, &(p)->maxTexture1DMipmap, 77, 1);                                            \
        copy_sizes(d, (p)->maxTexture2D, 22, 2);                                                   \
        copy_sizes(d, (p)->maxTexture2DMipmap, 73, 2);                                             \
        copy_sizes(d, (p)->maxTexture2DLinear, 70, 3);                                             \
        copy_sizes(d, (p)->maxTexture2DGather, 45, 2);                                             \
        copy_sizes(d, (p)->maxTexture3D, 24, 3);                                                   \
        copy_sizes(d, (p)->maxTexture3DAlt, 47, 3);                                                \
        copy_sizes(d, &(p)->maxTextureCubemap, 52, 1);                                             \
        copy_sizes(d, (p)->maxTexture2DLayered, 27, 3);                                            \
        copy_sizes(d, (p)->maxTextureCubemapLayered, 53, 2);                                       \
        copy_sizes(d, &(p)->maxSurface1D, 55, 1);                                                  \
        copy_sizes(d, (p)->maxSurface2D, 56, 2);                                                   \
        copy_sizes(d, (p)->maxSurface3D, 58, 3);                                                   \
        copy_sizes(d, (p)->maxSurface1DLayered, 61, 2);                                            \
        copy_sizes(d, (p)->maxSurface2DLayered, 63, 3);                                            \
        copy_sizes(d, &(p)->maxSurfaceCubemap, 66, 1);                                             \
        copy_sizes(d, (p)->maxSurfaceCubemapLayered, 67, 2);                                       \
    } while (0)

void ws_device_prop(const Ws__Device *d, struct cuda_device_prop *ret)
{
    COMMON_FIELDS(d, ret);
    ret->deviceNumaConfig = get(d, 130);
    ret->deviceNumaId = get(d, 131);
    ret->mpsEnabled = get(d, 133);
    ret->gpuPciSubsystemID = (uint32_t)get(d, 140);
    ret->hostNumaMultinodeIpcSupported = get(d, 143);
    ret->hostNumaId = get(d, 134);
}

void ws_device_prop_12(const Ws__Device *d, struct cuda_device_prop_12 *ret)
{
    COMMON_FIELDS(d, ret);
    ret->clockRate = get(d, WS_ATTR_CLOCK_KHZ);
    ret->memoryClockRate = get(d, 36);
    ret->deviceOverlap = get(d, 15);
    ret->singleToDoublePrecisionPerfRatio = get(d, 87);
    ret->kernelExecTimeoutEnabled = get(d, 17);
    ret->computeMode = get(d, 20);
    ret->maxTexture1DLinear = get(d, 69);
    ret->cooperativeMultiDeviceLaunch = get(d, 96);
}
