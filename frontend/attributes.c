// SPDX-License-Identifier: Apache-2.0
/* Device attributes and properties. Numbers come from the device's description where it has them; the others are CUDA's limits
 * that all devices of these generations share, and 0 for what we don't do (clusters, IPC, page tables). */
#include "frontend/attributes.h"

#include "frontend/array.h"

#include <stdio.h>
#include <string.h>

enum { KIB = 1024, ATTRIBUTE_LAST = 147, MEMORY_CLOCK_KHZ_PER_MHZ = 1000 };

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
        v = 0;
        break; /* but not used on the device by its host address */
    case 106:
        v = (int)d->max_blocks_per_sm;
        break;
    case 115:
        v = 1;
        break; /* memory pools: the default one */
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
    default:
        if (ws_texture_limit(d, attribute, &v))
            break;
        if (attribute < 1 || attribute > ATTRIBUTE_LAST)
            return false;
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

static void several(const Ws__Device *d, const int *attributes, int *ret, int n)
{
    for (int i = 0; i < n; i++)
        ret[i] = get(d, attributes[i]);
}

static void copy_uuid(const Ws__Device *d, char *ret)
{
    if (d->uuid.len)
        memcpy(ret, d->uuid.data, WS_MIN(d->uuid.len, sizeof(struct cuda_uuid)));
}

#define TEXTURE_FIELDS(d, p)                                                                       \
    do {                                                                                           \
        (p)->maxTexture1D = get(d, 21);                                                            \
        (p)->maxTexture1DMipmap = get(d, 77);                                                      \
        several(d, (int[]){22, 23}, (p)->maxTexture2D, 2);                                         \
        several(d, (int[]){73, 74}, (p)->maxTexture2DMipmap, 2);                                   \
        several(d, (int[]){70, 71, 72}, (p)->maxTexture2DLinear, 3);                               \
        several(d, (int[]){45, 46}, (p)->maxTexture2DGather, 2);                                   \
        several(d, (int[]){24, 25, 26}, (p)->maxTexture3D, 3);                                     \
        several(d, (int[]){47, 48, 49}, (p)->maxTexture3DAlt, 3);                                  \
        (p)->maxTextureCubemap = get(d, 52);                                                       \
        several(d, (int[]){42, 43}, (p)->maxTexture1DLayered, 2);                                  \
        several(d, (int[]){27, 28, 29}, (p)->maxTexture2DLayered, 3);                              \
        several(d, (int[]){53, 54}, (p)->maxTextureCubemapLayered, 2);                             \
        (p)->maxSurface1D = get(d, 55);                                                            \
        several(d, (int[]){56, 57}, (p)->maxSurface2D, 2);                                         \
        several(d, (int[]){58, 59, 60}, (p)->maxSurface3D, 3);                                     \
        several(d, (int[]){61, 62}, (p)->maxSurface1DLayered, 2);                                  \
        several(d, (int[]){63, 64, 65}, (p)->maxSurface2DLayered, 3);                              \
        (p)->maxSurfaceCubemap = get(d, 66);                                                       \
        several(d, (int[]){67, 68}, (p)->maxSurfaceCubemapLayered, 2);                             \
    } while (0)

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
    } while (0)

void ws_device_prop(const Ws__Device *d, struct cuda_device_prop *ret)
{
    COMMON_FIELDS(d, ret);
    TEXTURE_FIELDS(d, ret);
    ret->deviceNumaId = get(d, 131);
    ret->hostNumaId = get(d, 134);
}

void ws_device_prop_12(const Ws__Device *d, struct cuda_device_prop_12 *ret)
{
    COMMON_FIELDS(d, ret);
    TEXTURE_FIELDS(d, ret);
    ret->maxTexture1DLinear = get(d, 69);
    ret->clockRate = get(d, WS_ATTR_CLOCK_KHZ);
    ret->memoryClockRate = get(d, 36);
    ret->deviceOverlap = get(d, 15);
    ret->singleToDoublePrecisionPerfRatio = get(d, 87);
}
