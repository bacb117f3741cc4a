// SPDX-License-Identifier: Apache-2.0
/* frontend/both/function.h - from what a program names a kernel by to the kernel on a device. */
#ifndef WS_FRONTEND_BOTH_FUNCTION_H
#define WS_FRONTEND_BOTH_FUNCTION_H

#include "frontend/facade.h"
#include "frontend/module/module.h"
#include "frontend/module/registry.h"

/* @function: for the runtime the address of the kernel's stub in the program; for the driver a
 * CUfunction, or a CUkernel as CUDA takes
 * it since version 12. Return: a CUDA code. */
static inline int ws_api_function(enum ws_api api, const void *function, int device,
                                  struct ws_fn **ret)
{
    void *handle = (void *)function;
    if (api == WS_RUNTIME)
        return ws_registry_fn(function, device, ret);
    *ret = handle;
    if (ws_fn_valid(handle))
        return CUDA_OK;
    return ws_kernel_valid(handle) ? ws_kernel_fn(handle, device, ret) : CUDA_INVALID_HANDLE;
}

/* For the body of a function with an `api`: @f is the kernel on the current device, or the function
 * returns. */
#define WS_BOTH_ENTER_FUNCTION(f, function)                                                        \
    struct ws_fn *f;                                                                               \
    do {                                                                                           \
        WS_BOTH_ENTER(c_);                                                                         \
        int found_ = ws_api_function(api, function, c_->device, &f);                               \
        if (found_)                                                                                \
            return found_;                                                                         \
    } while (0)

#endif
