// SPDX-License-Identifier: Apache-2.0
/* Chapter "Peer Context Memory Access": what the runtime has in another form. */
#include "frontend/facade.h"
#include "frontend/memory/ipc.h"

/* Access is of devices: contexts on the same device have it together, and to each other's memory
 * anyway. */
WS_DRV_API(cuCtxEnablePeerAccess, (struct ws_cuda_context * peer, unsigned flags))
{
    WS_DRV_ENTER(c);
    if (flags)
        return CUDA_INVALID_VALUE;
    if (!ws_ctx_valid(peer) || peer == c)
        return CUDA_INVALID_CONTEXT;
    return peer->device == c->device ? CUDA_PEER_UNSUPPORTED
                                     : ws_peer_enable(c->device, peer->device);
}

WS_DRV_API(cuCtxDisablePeerAccess, (struct ws_cuda_context * peer))
{
    WS_DRV_ENTER(c);
    if (!ws_ctx_valid(peer) || peer == c)
        return CUDA_INVALID_CONTEXT;
    return peer->device == c->device ? CUDA_PEER_NOT_ENABLED
                                     : ws_peer_disable(c->device, peer->device);
}
