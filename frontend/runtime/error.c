// SPDX-License-Identifier: Apache-2.0
/* Chapter "Error Handling". An error that lost the context remains, for every call returns it until
 * the device is reset; others are cleared when the program reads them. */
#include "base/log.h"
#include "frontend/facade.h"

/* Asynchronous errors that have arrived in the meantime count as last errors too. */
static int last_error(bool forget)
{
    ws_thread.n_refused = 0;
    int code = ws_rt_last_error(forget);
    if (ws_facade_state() != WS_FACADE_OPEN)
        return code;
    int lost = ws_rt_error(ws_session_connect());
    return ws_cuda_sticky(lost) ? lost : code;
}

/* A launch as kernel<<<>>>() returns nothing, so a program that does not ask may take its results
 * for complete. */
__attribute__((destructor)) static void tell_refused(void)
{
    if (ws_thread.n_refused)
        ws_log(
            WS_ERROR,
            "launch: launches of kernels that can't run were refused (%u), and the program never "
            "asked cudaGetLastError(): its results lack their work",
            ws_thread.n_refused);
}

WS_RT_API(cudaGetLastError, (void))
{
    return last_error(true);
}

WS_RT_API(cudaPeekAtLastError, (void))
{
    return last_error(false);
}

WS_RT_TYPED_API(cudaGetErrorName, const char *, (int error))
{
    const char *s = ws_rt_error_name(error);
    return s ? s : "unrecognized error code";
}

WS_RT_TYPED_API(cudaGetErrorString, const char *, (int error))
{
    const char *s = ws_rt_error_name(error) ? ws_cuda_error_text(error) : NULL;
    return s ? s : "unrecognized error code";
}
