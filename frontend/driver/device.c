// SPDX-License-Identifier: Apache-2.0
/* Chapter "Device Management". */
#include <stdio.h>
#include <string.h>

#include "frontend/context/attributes.h"
#include "frontend/facade.h"

/* Body of a function about a device: @d is what the daemon said of it. */
#define ENTER(d, device)                                                                           \
    int code_ = ws_drv_check_init();                                                               \
    const Ws__Device *d = code_ ? NULL : ws_session_device(device);                                \
    if (!d)                                                                                        \
    return code_ ? code_ : CUDA_INVALID_DEVICE

WS_DRV_API(cuDeviceGetCount, (int *ret))
{
    int code = ws_drv_check_init();
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    return ws_drv_error(ws_session_device_count(ret));
}

WS_DRV_API(cuDeviceGet, (int *ret, int ordinal))
{
    ENTER(d, ordinal);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = ordinal;
    return CUDA_OK;
}

WS_DRV_API(cuDeviceGetName, (char *name, int n, int device))
{
    ENTER(d, device);
    if (!name || n <= 0)
        return CUDA_INVALID_VALUE;
    snprintf(name, (size_t)n, "%s", d->product[0] ? d->product : d->name);
    return CUDA_OK;
}

WS_DRV_API(cuDeviceGetUuid_v2, (uint8_t * uuid, int device))
{
    ENTER(d, device);
    if (!uuid)
        return CUDA_INVALID_VALUE;
    memset(uuid, 0, 16);
    if (d->uuid.data)
        memcpy(uuid, d->uuid.data, WS_MIN(d->uuid.len, (size_t)16));
    return CUDA_OK;
}
WS_DRV_ALIAS(cuDeviceGetUuid, cuDeviceGetUuid_v2)

WS_DRV_API(cuDeviceTotalMem_v2, (size_t * ret, int device))
{
    ENTER(d, device);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = d->memory_bytes;
    return CUDA_OK;
}

WS_DRV_API(cuDeviceGetAttribute, (int *ret, int attribute, int device))
{
    ENTER(d, device);
    return ret && ws_device_attribute(d, attribute, ret) ? CUDA_OK : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuDeviceComputeCapability, (int *major, int *minor, int device))
{
    ENTER(d, device);
    if (!major || !minor)
        return CUDA_INVALID_VALUE;
    *major = (int)d->cc_major;
    *minor = (int)d->cc_minor;
    return CUDA_OK;
}

static int value_of(const Ws__Device *d, int attribute)
{
    int v = 0;
    ws_device_attribute(d, attribute, &v);
    return v;
}

WS_DRV_API(cuDeviceGetProperties, (struct cu_dev_prop * p, int device))
{
    ENTER(d, device);
    if (!p)
        return CUDA_INVALID_VALUE;
    *p = (struct cu_dev_prop){
        .maxThreadsPerBlock = value_of(d, WS_ATTR_MAX_THREADS_PER_BLOCK),
        .sharedMemPerBlock = value_of(d, WS_ATTR_MAX_SHARED_MEMORY_PER_BLOCK),
        .totalConstantMemory = value_of(d, WS_ATTR_TOTAL_CONSTANT_MEMORY),
        .SIMDWidth = 32,
        .memPitch = value_of(d, WS_ATTR_MAX_PITCH),
        .regsPerBlock = (int)d->regs_per_sm,
        .clockRate = value_of(d, WS_ATTR_CLOCK_RATE),
        .textureAlign = WS_PITCH_ALIGNMENT,
    };
    for (int i = 0; i < 3; i++) {
        p->maxThreadsDim[i] = value_of(d, WS_ATTR_MAX_BLOCK_DIM_X + i);
        p->maxGridSize[i] = value_of(d, WS_ATTR_MAX_GRID_DIM_X + i);
    }
    return CUDA_OK;
}

WS_DRV_API(cuDeviceGetPCIBusId, (char *id, int n, int device))
{
    ENTER(d, device);
    if (!id || n <= 0)
        return CUDA_INVALID_VALUE;
    ws_device_pci_id(d, id, (size_t)n);
    return CUDA_OK;
}

WS_DRV_API(cuDeviceGetByPCIBusId, (int *ret, const char *id))
{
    char known[16];
    int code = ws_drv_check_init();
    if (code)
        return code;
    if (!ret || !id)
        return CUDA_INVALID_VALUE;
    for (int i = 0; ws_session_device(i); i++) {
        ws_device_pci_id(ws_session_device(i), known, sizeof(known));
        if (!strcasecmp(known, id) ||
            !strcasecmp(known + sizeof("0000"), id)) { /* the domain may be left out */
            *ret = i;
            return CUDA_OK;
        }
    }
    return CUDA_INVALID_DEVICE;
}

WS_DRV_API(cuDeviceGetExecAffinitySupport, (int *ret, int type, int device))
{
    ENTER(d, device);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = 0;
    return CUDA_OK;
}
