// SPDX-License-Identifier: Apache-2.0
/* Chapter "Peer Device Memory Access": what the driver has in another form. */
#include "frontend/facade.h"
#include "frontend/memory/ipc.h"

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
