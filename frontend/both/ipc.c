// SPDX-License-Identifier: Apache-2.0
/* What processes share, and memory of peer devices (chapters "Device Management" and "Peer Device
 * Memory Access" of the runtime). */
#include "frontend/facade.h"
#include "frontend/memory/ipc.h"

WS_BOTH_API(cudaIpcGetMemHandle, cuIpcGetMemHandle,
            (struct cuda_ipc_handle * ret, uint64_t address), (ret, address))
{
    WS_BOTH_ENTER(c);
    return ws_ipc_memory_handle(ret, address);
}

WS_BOTH_API(cudaIpcOpenMemHandle, cuIpcOpenMemHandle_v2,
            (uint64_t * ret, struct cuda_ipc_handle handle, unsigned flags), (ret, handle, flags))
{
    WS_BOTH_ENTER(c);
    return ws_ipc_memory_open(c->device, ret, &handle, flags);
}
WS_DRV_ALIAS(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2)

WS_BOTH_API(cudaIpcCloseMemHandle, cuIpcCloseMemHandle, (uint64_t address), (address))
{
    WS_BOTH_ENTER(c);
    return ws_ipc_memory_close(address);
}

WS_BOTH_API(cudaIpcGetEventHandle, cuIpcGetEventHandle, (struct cuda_ipc_handle * ret, void *event),
            (ret, event))
{
    WS_BOTH_ENTER(c);
    return ws_ipc_event_handle(ret, (uintptr_t)event);
}

WS_BOTH_API(cudaIpcOpenEventHandle, cuIpcOpenEventHandle,
            (void **ret, struct cuda_ipc_handle handle), (ret, handle))
{
    uint64_t event;
    WS_BOTH_ENTER(c);
    int code = ret ? ws_ipc_event_open(&event, &handle, c->device) : CUDA_INVALID_VALUE;
    if (!code)
        *ret = (void *)(uintptr_t)event;
    return code;
}

WS_BOTH_API(cudaDeviceCanAccessPeer, cuDeviceCanAccessPeer, (int *ret, int device, int peer),
            (ret, device, peer))
{
    int code = ws_api_open(api);
    return code ? code : ws_peer_can(device, peer, ret);
}

WS_BOTH_API(cudaDeviceGetP2PAttribute, cuDeviceGetP2PAttribute,
            (int *ret, int attribute, int device, int peer), (ret, attribute, device, peer))
{
    int code = ws_api_open(api);
    return code ? code : ws_peer_attribute(attribute, device, peer, ret);
}
