// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API: what processes share (of "Memory Management"), and "Peer Context Memory Access". */
#include "frontend/facade.h"
#include "frontend/memory/ipc.h"

WS_DRV_API(cuIpcGetMemHandle, (struct cuda_ipc_handle * ret, uint64_t address))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_ipc_memory_handle(ret, address);
}

WS_DRV_API(cuIpcOpenMemHandle_v2, (uint64_t * ret, struct cuda_ipc_handle handle, unsigned flags))
{
    WS_DRV_ENTER(c);
    return ws_ipc_memory_open(c->device, ret, &handle, flags);
}
WS_DRV_ALIAS(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2)

WS_DRV_API(cuIpcCloseMemHandle, (uint64_t address))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_ipc_memory_close(address);
}

WS_DRV_API(cuIpcGetEventHandle, (struct cuda_ipc_handle * ret, void *event))
{
    WS_DRV_ENTER(c);
    (void)c;
    return ws_ipc_event_handle(ret, (uintptr_t)event);
}

WS_DRV_API(cuIpcOpenEventHandle, (void **ret, struct cuda_ipc_handle handle))
{
    uint64_t event;
    WS_DRV_ENTER(c);
    int code = ret ? ws_ipc_event_open(&event, &handle, c->device) : CUDA_INVALID_VALUE;
    if (!code)
        *ret = (void *)(uintptr_t)event;
    return code;
}

/* ---- peers ---- */

WS_DRV_API(cuDeviceCanAccessPeer, (int *ret, int device, int peer))
{
    int code = ws_drv_check_init();
    return code ? code : ws_peer_can(device, peer, ret);
}

WS_DRV_API(cuDeviceGetP2PAttribute, (int *ret, int attribute, int device, int peer))
{
    int code = ws_drv_check_init();
    return code ? code : ws_peer_attribute(attribute, device, peer, ret);
}

/* Access is of devices: contexts on the same device have it together, and to each other's memory anyway. */
WS_DRV_API(cuCtxEnablePeerAccess, (struct ws_ctx * peer, unsigned flags))
{
    WS_DRV_ENTER(c);
    if (flags)
        return CUDA_INVALID_VALUE;
    if (!ws_ctx_valid(peer) || peer == c)
        return CUDA_INVALID_CONTEXT;
    return peer->device == c->device ? CUDA_PEER_UNSUPPORTED
                                     : ws_peer_enable(c->device, peer->device);
}

WS_DRV_API(cuCtxDisablePeerAccess, (struct ws_ctx * peer))
{
    WS_DRV_ENTER(c);
    if (!ws_ctx_valid(peer) || peer == c)
        return CUDA_INVALID_CONTEXT;
    return peer->device == c->device ? CUDA_PEER_NOT_ENABLED
                                     : ws_peer_disable(c->device, peer->device);
}
