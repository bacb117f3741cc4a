// SPDX-License-Identifier: Apache-2.0
/* Chapters "Device Management" (what processes share) and "Peer Device Memory Access". */
#include "frontend/facade.h"
#include "frontend/memory/ipc.h"

WS_RT_API(cudaIpcGetMemHandle, (struct cuda_ipc_handle * ret, void *p))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_ipc_memory_handle(ret, (uintptr_t)p));
}

WS_RT_API(cudaIpcOpenMemHandle, (void **ret, struct cuda_ipc_handle handle, unsigned flags))
{
    uint64_t address;
    WS_RT_ENTER(device);
    int code = ret ? ws_ipc_memory_open(device, &address, &handle, flags) : CUDA_INVALID_VALUE;
    if (!code)
        *ret = (void *)(uintptr_t)address;
    return ws_rt_record(code);
}

WS_RT_API(cudaIpcCloseMemHandle, (void *p))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_ipc_memory_close((uintptr_t)p));
}

WS_RT_API(cudaIpcGetEventHandle, (struct cuda_ipc_handle * ret, void *event))
{
    WS_RT_ENTER(device);
    (void)device;
    return ws_rt_record(ws_ipc_event_handle(ret, (uintptr_t)event));
}

WS_RT_API(cudaIpcOpenEventHandle, (void **ret, struct cuda_ipc_handle handle))
{
    uint64_t event;
    WS_RT_ENTER(device);
    int code = ret ? ws_ipc_event_open(&event, &handle, device) : CUDA_INVALID_VALUE;
    if (!code)
        *ret = (void *)(uintptr_t)event;
    return ws_rt_record(code);
}

/* ---- peers ---- */

WS_RT_API(cudaDeviceCanAccessPeer, (int *can, int device, int peer))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : ws_peer_can(device, peer, can));
}

WS_RT_API(cudaDeviceEnablePeerAccess, (int peer, unsigned flags))
{
    WS_RT_ENTER(device);
    return ws_rt_record(flags ? CUDA_INVALID_VALUE : ws_peer_enable(device, peer));
}

WS_RT_API(cudaDeviceDisablePeerAccess, (int peer))
{
    WS_RT_ENTER(device);
    return ws_rt_record(ws_peer_disable(device, peer));
}

WS_RT_API(cudaDeviceGetP2PAttribute, (int *ret, int attribute, int device, int peer))
{
    int code = ws_facade_open();
    return ws_rt_record(code ? code : ws_peer_attribute(attribute, device, peer, ret));
}
