// SPDX-License-Identifier: Apache-2.0
/* Chapter "Stream Management": what only the driver has. Calls that the runtime has too stand in
 * both/stream.c. */
#include "frontend/facade.h"

WS_DRV_STREAM_API(cuStreamGetCtx, _ptsz, (void *stream, struct ws_cuda_context **ret),
                  (stream, ret))
{
    int device;
    WS_DRV_ENTER(c);
    WS_DRV_STREAM(id, stream, per_thread, c->device);
    int code = ws_drv_error(ws_session_stream_info(id, &device, NULL, NULL));
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    *ret = ws_ctx_owner(WS_OWNED_STREAM, id, device);
    return CUDA_OK;
}

/* With green contexts the second answer would be one of those. */
WS_DRV_STREAM_API(cuStreamGetCtx_v2, _ptsz,
                  (void *stream, struct ws_cuda_context **ret, void **ret_green),
                  (stream, ret, ret_green))
{
    int code = per_thread ? cuStreamGetCtx_ptsz(stream, ret) : cuStreamGetCtx(stream, ret);
    if (!code && ret_green)
        *ret_green = NULL;
    return code;
}

/* No stream is a green context's: none can be made. cuDNN asks for that of each stream. */
WS_DRV_API(cuStreamGetGreenCtx, (void *stream, void **ret))
{
    struct ws_cuda_context *of;
    int code = cuStreamGetCtx(stream, &of);
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    *ret = NULL;
    return CUDA_OK;
}
