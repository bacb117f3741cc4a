// SPDX-License-Identifier: Apache-2.0
/* Chapters "Primary Context Management" and "Context Management". What a context is stands in
 * context/context.c. */
#include "frontend/context/attributes.h"
#include "frontend/facade.h"
#include "frontend/context/limits.h"
#include "frontend/stream/work.h"

enum { CTX_FLAGS = 0xff };

static int check_device(int device)
{
    int code = ws_drv_check_init();
    if (code)
        return code;
    return ws_session_device(device) ? CUDA_OK : CUDA_INVALID_DEVICE;
}

/* @c as given, or the current context for NULL. */
static int ctx_or_current(struct ws_cuda_context **c)
{
    if (!*c)
        return ws_drv_enter(c);
    int code = ws_drv_check_init();
    if (code)
        return code;
    return ws_ctx_valid(*c) ? CUDA_OK : CUDA_INVALID_CONTEXT;
}

/* ---- contexts of the program's own ---- */

static int create(struct ws_cuda_context **ret, unsigned flags, int device, unsigned version)
{
    int code = check_device(device);
    if (code)
        return code;
    if (!ret || flags & ~(unsigned)CTX_FLAGS)
        return CUDA_INVALID_VALUE;
    struct ws_cuda_context *c = ws_ctx_new(device, flags, version);
    if (!c)
        return CUDA_OUT_OF_MEMORY;
    code = ws_ctx_push(c);
    if (code) {
        ws_ctx_destroy(c);
        return code;
    }
    *ret = c;
    return CUDA_OK;
}

WS_DRV_API(cuCtxCreate, (struct ws_cuda_context * *ret, unsigned flags, int device))
{
    return create(ret, flags, device, 2000);
}
WS_DRV_API(cuCtxCreate_v2, (struct ws_cuda_context * *ret, unsigned flags, int device))
{
    return create(ret, flags, device, 3020);
}

WS_DRV_API(cuCtxCreate_v3, (struct ws_cuda_context * *ret, const void *affinity, int n_affinity,
                            unsigned flags, int device))
{
    if (affinity || n_affinity) {
        ws_session_unsupported("cuCtxCreate with execution affinity");
        return CUDA_NOT_SUPPORTED;
    }
    return create(ret, flags, device, 11040);
}

WS_DRV_API(cuCtxCreate_v4, (struct ws_cuda_context * *ret, const struct cu_ctx_create_params *p,
                            unsigned flags, int device))
{
    if (p && (p->numExecAffinityParams || p->cigParams)) {
        ws_session_unsupported("cuCtxCreate with execution affinity or graphics");
        return CUDA_NOT_SUPPORTED;
    }
    return create(ret, flags, device, 12050);
}

WS_DRV_API(cuCtxDestroy_v2, (struct ws_cuda_context * c))
{
    int code = ws_drv_check_init();
    if (code)
        return code;
    return ws_ctx_valid(c) && !c->primary ? ws_ctx_destroy(c) : CUDA_INVALID_CONTEXT;
}
WS_DRV_ALIAS(cuCtxDestroy, cuCtxDestroy_v2)

/* The old count of uses: a context is destroyed with the last. */
WS_DRV_API(cuCtxAttach, (struct ws_cuda_context * *ret, unsigned flags))
{
    WS_DRV_ENTER(c);
    if (!ret || flags)
        return CUDA_INVALID_VALUE;
    c->n_refs++;
    *ret = c;
    return CUDA_OK;
}
WS_DRV_API(cuCtxDetach, (struct ws_cuda_context * c))
{
    int code = ws_drv_check_init();
    if (code)
        return code;
    if (!ws_ctx_valid(c) || c->primary)
        return CUDA_INVALID_CONTEXT;
    return --c->n_refs == 0 ? ws_ctx_destroy(c) : CUDA_OK;
}

/* ---- the thread's stack ---- */

WS_DRV_API(cuCtxPushCurrent_v2, (struct ws_cuda_context * c))
{
    int code = ws_drv_check_init();
    if (code)
        return code;
    return c && ws_ctx_valid(c) ? ws_ctx_push(c) : CUDA_INVALID_CONTEXT;
}

WS_DRV_API(cuCtxPopCurrent_v2, (struct ws_cuda_context * *ret))
{
    int code = ws_drv_check_init();
    struct ws_cuda_context *c = ws_ctx_current();
    if (code || !c)
        return code ? code : CUDA_INVALID_CONTEXT;
    ws_thread.depth--;
    if (ret)
        *ret = c;
    return CUDA_OK;
}

WS_DRV_ALIAS(cuCtxPushCurrent, cuCtxPushCurrent_v2)
WS_DRV_ALIAS(cuCtxPopCurrent, cuCtxPopCurrent_v2)

WS_DRV_API(cuCtxSetCurrent, (struct ws_cuda_context * c))
{
    int code = ws_drv_check_init();
    if (code)
        return code;
    return !c || ws_ctx_valid(c) ? ws_ctx_set_current(c) : CUDA_INVALID_CONTEXT;
}

WS_DRV_API(cuCtxGetCurrent, (struct ws_cuda_context * *ret))
{
    int code = ws_drv_check_init();
    if (code)
        return code;
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = ws_ctx_current();
    return CUDA_OK;
}

/* ---- questions and work ---- */

WS_DRV_API(cuCtxGetDevice, (int *ret))
{
    WS_DRV_ENTER(c);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = c->device;
    return CUDA_OK;
}

WS_DRV_API(cuCtxGetDevice_v2, (int *ret, struct ws_cuda_context *c))
{
    int code = ctx_or_current(&c);
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    *ret = c->device;
    return CUDA_OK;
}

WS_DRV_API(cuCtxSynchronize, (void))
{
    WS_DRV_ENTER(c);
    int code = ws_work_wait_device(c->device);
    return code ? code : ws_drv_error(ws_session_device_sync(c->device));
}

WS_DRV_API(cuCtxSynchronize_v2, (struct ws_cuda_context * c))
{
    int code = ctx_or_current(&c);
    if (!code)
        code = ws_work_wait_device(c->device);
    return code ? code : ws_drv_error(ws_session_device_sync(c->device));
}

WS_DRV_API(cuCtxGetFlags, (unsigned *ret))
{
    WS_DRV_ENTER(c);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = c->flags;
    return CUDA_OK;
}

WS_DRV_API(cuCtxSetFlags, (unsigned flags))
{
    WS_DRV_ENTER(c);
    if (flags & ~(unsigned)CTX_FLAGS)
        return CUDA_INVALID_VALUE;
    c->flags = flags;
    return CUDA_OK;
}

WS_DRV_API(cuCtxGetId, (struct ws_cuda_context * c, unsigned long long *ret))
{
    int code = ctx_or_current(&c);
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    *ret = c->id;
    return CUDA_OK;
}

WS_DRV_API(cuCtxGetApiVersion, (struct ws_cuda_context * c, unsigned *ret))
{
    int code = ctx_or_current(&c);
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    *ret = c->version;
    return CUDA_OK;
}

WS_DRV_API(cuCtxGetStreamPriorityRange, (int *least, int *greatest))
{
    WS_DRV_ENTER(c);
    if (least)
        *least = WS_PRIORITY_LEAST;
    if (greatest)
        *greatest = WS_PRIORITY_GREATEST;
    return CUDA_OK;
}

WS_DRV_API(cuCtxGetLimit, (uint64_t * ret, int limit))
{
    WS_DRV_ENTER(c);
    return ws_ctx_get_limit(c, limit, ret);
}

WS_DRV_API(cuCtxSetLimit, (int limit, uint64_t value))
{
    WS_DRV_ENTER(c);
    return ws_ctx_set_limit(c, limit, value);
}

/* Hints: kept, without effect. */
WS_DRV_API(cuCtxSetCacheConfig, (int config))
{
    WS_DRV_ENTER(c);
    if (config < 0 || config > WS_CUDA_CACHE_CONFIG_LAST)
        return CUDA_INVALID_VALUE;
    c->cache_config = config;
    return CUDA_OK;
}

WS_DRV_API(cuCtxGetCacheConfig, (int *ret))
{
    WS_DRV_ENTER(c);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = c->cache_config;
    return CUDA_OK;
}

WS_DRV_API(cuCtxSetSharedMemConfig, (int config))
{
    WS_DRV_ENTER(c);
    if (config < 0 || config > WS_CUDA_SHARED_CONFIG_LAST)
        return CUDA_INVALID_VALUE;
    c->shared_config = config;
    return CUDA_OK;
}

WS_DRV_API(cuCtxGetSharedMemConfig, (int *ret))
{
    WS_DRV_ENTER(c);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = c->shared_config;
    return CUDA_OK;
}

WS_DRV_API(cuCtxResetPersistingL2Cache, (void))
{
    WS_DRV_ENTER(c);
    return CUDA_OK;
}

/* ---- primary contexts ---- */

WS_DRV_API(cuDevicePrimaryCtxRetain, (struct ws_cuda_context * *ret, int device))
{
    int code = check_device(device);
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    *ret = ws_ctx_primary(device);
    (*ret)->n_refs++;
    ws_ctx_activate(*ret);
    return CUDA_OK;
}

WS_DRV_API(cuDevicePrimaryCtxRelease_v2, (int device))
{
    int code = check_device(device);
    if (code)
        return code;
    struct ws_cuda_context *c = ws_ctx_primary(device);
    int n = c->n_refs;
    do {
        if (n == 0)
            return CUDA_INVALID_CONTEXT;
    } while (!atomic_compare_exchange_weak(&c->n_refs, &n, n - 1));
    return n == 1 ? ws_ctx_release_primary(c) : CUDA_OK;
}
WS_DRV_ALIAS(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)

WS_DRV_API(cuDevicePrimaryCtxReset_v2, (int device))
{
    int code = check_device(device);
    return code ? code : ws_ctx_reset_device(device);
}
WS_DRV_ALIAS(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2)

WS_DRV_API(cuDevicePrimaryCtxGetState, (int device, unsigned *flags, int *active))
{
    int code = check_device(device);
    if (code)
        return code;
    const struct ws_cuda_context *c = ws_ctx_primary(device);
    if (flags)
        *flags = c->flags;
    if (active)
        *active = c->active;
    return CUDA_OK;
}

WS_DRV_API(cuDevicePrimaryCtxSetFlags_v2, (int device, unsigned flags))
{
    int code = check_device(device);
    if (code)
        return code;
    if (flags & ~(unsigned)CTX_FLAGS)
        return CUDA_INVALID_VALUE;
    ws_ctx_primary(device)->flags = flags;
    return CUDA_OK;
}
WS_DRV_ALIAS(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2)

/* No part of a device is set aside for a context: it has all SMs. */
WS_DRV_API(cuCtxGetExecAffinity, (int *param, int type))
{
    enum { SM_COUNT = 0 };
    WS_DRV_ENTER(c);
    if (!param)
        return CUDA_INVALID_VALUE;
    if (type != SM_COUNT)
        return CUDA_UNSUPPORTED_EXEC_AFFINITY;
    param[0] = SM_COUNT;
    param[1] = (int)ws_session_device(c->device)->n_sms;
    return CUDA_OK;
}
