// SPDX-License-Identifier: Apache-2.0
/* Peer access: permission for one device to use another's memory. Any device of this client may
 * have it for any other that it can reach. All can reach each other, except real GPUs of some
 * machines. Copies between devices need no permission. */
#include <pthread.h>

#include "frontend/errors.h"
#include "frontend/memory/ipc.h"

static uint32_t enabled[WS_MAX_DEVICES]; /* by device: the peers whose memory it may use */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int two_devices(int device, int peer)
{
    return ws_session_device(device) && ws_session_device(peer) ? CUDA_OK : CUDA_INVALID_DEVICE;
}

bool ws_peer_reaches(int device, int peer)
{
    return !(ws_session_device(device)->unreachable >> peer & 1);
}

int ws_peer_can(int device, int peer, int *ret)
{
    int code = two_devices(device, peer);
    if (!code && !ret)
        code = CUDA_INVALID_VALUE;
    if (!code)
        *ret = device != peer && ws_peer_reaches(device, peer);
    return code;
}

/* Makes it so, unless it is so already: then @same. */
static int change(int device, int peer, bool on, int same)
{
    int code = two_devices(device, peer);
    if (code || device == peer)
        return CUDA_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    if ((enabled[device] >> peer & 1) == on)
        code = same;
    else if (on && !ws_peer_reaches(device, peer))
        code = CUDA_PEER_UNSUPPORTED;
    else
        code = ws_drv_error(ws_session_peer_access(device, peer, on));
    if (!code)
        enabled[device] ^= UINT32_C(1) << peer;
    pthread_mutex_unlock(&lock);
    return code;
}

int ws_peer_enable(int device, int peer)
{
    return change(device, peer, true, CUDA_PEER_ALREADY_ENABLED);
}

int ws_peer_disable(int device, int peer)
{
    return change(device, peer, false, CUDA_PEER_NOT_ENABLED);
}

int ws_peer_attribute(int attribute, int device, int peer, int *ret)
{
    enum { PERFORMANCE_RANK = 1, ONLY_PARTIAL_ATOMICS = 5 };
    if (two_devices(device, peer) || device == peer)
        return CUDA_INVALID_DEVICE;
    if (!ret || attribute < PERFORMANCE_RANK || attribute > ONLY_PARTIAL_ATOMICS)
        return CUDA_INVALID_VALUE;
    *ret = attribute != PERFORMANCE_RANK && attribute != ONLY_PARTIAL_ATOMICS &&
           ws_peer_reaches(device, peer);
    return CUDA_OK;
}

void ws_peer_reset_device(int device)
{
    pthread_mutex_lock(&lock);
    enabled[device] = 0;
    for (int i = 0; i < WS_MAX_DEVICES; i++)
        enabled[i] &= ~(UINT32_C(1) << device);
    pthread_mutex_unlock(&lock);
}
