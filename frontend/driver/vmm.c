// SPDX-License-Identifier: Apache-2.0
/* Chapter "Virtual Memory Management". */
#include "frontend/facade.h"
#include "frontend/memory/vmm.h"

/* All functions of the chapter work with or without a current context. */
#define ENTER()                                                                                    \
    do {                                                                                           \
        int code_ = ws_drv_check_init();                                                           \
        if (code_)                                                                                 \
            return code_;                                                                          \
    } while (0)

WS_DRV_API(cuMemGetAllocationGranularity,
           (size_t * ret, const struct cu_mem_allocation_prop *prop, int option))
{
    ENTER();
    if (!ret || !prop || option < 0 || option > 1 || prop->type != WS_CUDA_ALLOCATION_PINNED ||
        prop->location.type == WS_CUDA_LOCATION_NONE ||
        prop->location.type > WS_CUDA_LOCATION_HOST_NUMA_CURRENT)
        return CUDA_INVALID_VALUE;
    if (prop->location.type == WS_CUDA_LOCATION_DEVICE && !ws_session_device(prop->location.id))
        return CUDA_INVALID_DEVICE;
    *ret = WS_MEM_GRANULE_BYTES;
    return CUDA_OK;
}

WS_DRV_API(cuMemCreate, (uint64_t * ret, size_t bytes, const struct cu_mem_allocation_prop *prop,
                         unsigned long long flags))
{
    ENTER();
    return flags ? CUDA_INVALID_VALUE : ws_vmm_create(ret, bytes, prop);
}

WS_DRV_API(cuMemRelease, (uint64_t handle))
{
    ENTER();
    return ws_vmm_release(handle);
}

WS_DRV_API(cuMemRetainAllocationHandle, (uint64_t * ret, void *address))
{
    ENTER();
    return ws_vmm_retain(ret, (uintptr_t)address);
}

WS_DRV_API(cuMemGetAllocationPropertiesFromHandle,
           (struct cu_mem_allocation_prop * ret, uint64_t handle))
{
    ENTER();
    return ws_vmm_properties(ret, handle);
}

/* @hint: where the program would like it, or 0. If somebody has that, it is elsewhere. */
WS_DRV_API(cuMemAddressReserve, (uint64_t * ret, size_t bytes, size_t alignment, uint64_t hint,
                                 unsigned long long flags))
{
    ENTER();
    return flags ? CUDA_INVALID_VALUE : ws_vmm_reserve(ret, bytes, alignment, hint);
}

WS_DRV_API(cuMemAddressFree, (uint64_t address, size_t bytes))
{
    ENTER();
    return ws_vmm_unreserve(address, bytes);
}

/* The offset is for later: CUDA wants 0. */
WS_DRV_API(cuMemMap, (uint64_t address, size_t bytes, size_t offset, uint64_t handle,
                      unsigned long long flags))
{
    ENTER();
    return flags || offset ? CUDA_INVALID_VALUE : ws_vmm_map(address, bytes, handle);
}

WS_DRV_API(cuMemUnmap, (uint64_t address, size_t bytes))
{
    ENTER();
    return ws_vmm_unmap(address, bytes);
}

static int check_location(const struct cuda_mem_location *l)
{
    if (l->type != WS_CUDA_LOCATION_DEVICE) {
        if (l->type < WS_CUDA_LOCATION_HOST || l->type > WS_CUDA_LOCATION_HOST_NUMA_CURRENT)
            return CUDA_INVALID_VALUE;
        ws_session_unsupported("access from the host to memory of a device");
        return CUDA_NOT_SUPPORTED;
    }
    return ws_session_device(l->id) ? CUDA_OK : CUDA_INVALID_DEVICE;
}

WS_DRV_API(cuMemSetAccess,
           (uint64_t address, size_t bytes, const struct cuda_mem_access_desc *d, size_t n))
{
    ENTER();
    int code = d && n ? CUDA_OK : CUDA_INVALID_VALUE;
    for (size_t i = 0; !code && i < n; i++)
        code = check_location(&d[i].location);
    for (size_t i = 0; !code && i < n; i++)
        code = ws_vmm_set_access(address, bytes, d[i].location.id, d[i].flags);
    return code;
}

WS_DRV_API(cuMemGetAccess,
           (unsigned long long *ret, const struct cuda_mem_location *l, uint64_t address))
{
    int flags;
    ENTER();
    int code = ret && l ? check_location(l) : CUDA_INVALID_VALUE;
    if (!code)
        code = ws_vmm_get_access(address, l->id, &flags);
    if (!code)
        *ret = (unsigned long long)flags;
    return code;
}

static int check_type(int type)
{
    if (type == WS_CUDA_HANDLE_FD)
        return CUDA_OK;
    if (type != WS_CUDA_HANDLE_WIN32 && type != WS_CUDA_HANDLE_WIN32_KMT &&
        type != WS_CUDA_HANDLE_FABRIC)
        return CUDA_INVALID_VALUE;
    ws_session_unsupported("shareable memory handles other than POSIX file descriptors");
    return CUDA_NOT_SUPPORTED;
}

WS_DRV_API(cuMemExportToShareableHandle,
           (void *ret, uint64_t handle, int type, unsigned long long flags))
{
    ENTER();
    int code = check_type(type);
    return code ? code : flags ? CUDA_INVALID_VALUE : ws_vmm_export(ret, handle);
}

/* The descriptor is passed as the pointer's value. */
WS_DRV_API(cuMemImportFromShareableHandle, (uint64_t * ret, void *os_handle, int type))
{
    ENTER();
    int code = check_type(type);
    return code ? code : ws_vmm_import(ret, (int)(intptr_t)os_handle);
}
