// SPDX-License-Identifier: Apache-2.0
/* Chapters "Device Management" and "Version Management": what the driver has in another form. */
#include <stdio.h>
#include <string.h>

#include "frontend/context/attributes.h"
#include "frontend/facade.h"
#include "frontend/runtime/before13.h"
#include "frontend/context/limits.h"
#include "frontend/stream/work.h"
#include "frontend/memory/hostmem.h"

enum { FLAGS_MASK = 0xff & ~0x60, FLAG_SCHEDULE_MASK = 7, FLAG_MAP_HOST = 8 };

/* A device by number. Return: a CUDA code. */
static int device_at(int device, const Ws__Device **ret)
{
    int code = ws_facade_open();
    if (code)
        return code;
    *ret = ws_session_device(device);
    return *ret ? CUDA_OK : CUDA_INVALID_DEVICE;
}

WS_RT_API(cudaGetDeviceCount, (int *count))
{
    if (!count)
        return ws_rt_record(CUDA_INVALID_VALUE);
    *count = 0;
    int code = ws_facade_open();
    if (!code)
        code = ws_rt_error(ws_session_device_count(count));
    return ws_rt_record(code);
}

static int choose(int device)
{
    const Ws__Device *d;
    int code = device_at(device, &d);
    if (code)
        return ws_rt_record(code);
    ws_thread.device = device;
    ws_ctx_activate(ws_ctx_primary(device));
    return ws_rt_record(ws_ctx_set_current(ws_ctx_primary(device)));
}

WS_RT_API(cudaSetDevice, (int device))
{
    return choose(device);
}

WS_RT_API(cudaInitDevice, (int device, unsigned device_flags, unsigned flags))
{
    const Ws__Device *d;
    int code = device_at(device, &d);
    if (!code && (flags > 1 || (flags && (device_flags & ~(unsigned)FLAGS_MASK))))
        code = CUDA_INVALID_VALUE;
    if (code)
        return ws_rt_record(code);
    ws_ctx_activate(ws_ctx_primary(device));
    if (flags)
        ws_ctx_primary(device)->flags = device_flags;
    return ws_rt_record(CUDA_OK);
}

WS_RT_API(cudaGetDevice, (int *device))
{
    if (!device)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = ws_facade_open();
    if (code)
        return ws_rt_record(code);
    struct ws_cuda_context *c = ws_ctx_current();
    *device = c ? c->device : ws_thread.device;
    return CUDA_OK;
}

WS_RT_API(cudaSetValidDevices, (int *devices, int n))
{
    int code = ws_facade_open(), count = 0;
    if (!code)
        code = ws_rt_error(ws_session_device_count(&count));
    if (!code && (n < 0 || n > count || (n && !devices)))
        code = CUDA_INVALID_VALUE;
    for (int i = 0; !code && i < n; i++)
        if (devices[i] < 0 || devices[i] >= count)
            code = CUDA_INVALID_DEVICE;
    if (!code && n && !ws_thread.depth)
        ws_thread.device = devices[0]; /* the one that a thread which chooses none begins with */
    return ws_rt_record(code);
}

WS_RT_API(cudaDeviceGetAttribute, (int *value, int attribute, int device))
{
    const Ws__Device *d;
    int code = device_at(device, &d);
    if (!code && (!value || !ws_device_attribute(d, attribute, value)))
        code = CUDA_INVALID_VALUE;
    return ws_rt_record(code);
}

WS_RT_API(cudaGetDeviceProperties, (struct cuda_device_prop * prop, int device))
{
    const Ws__Device *d;
    int code = device_at(device, &d);
    if (!code && !prop)
        code = CUDA_INVALID_VALUE;
    if (!code && WS_RT_OLDER()) { /* CUDA 11's, with which CUDA 12's begins */
        struct cuda_device_prop_12 p;
        ws_device_prop_12(d, &p);
        memcpy(prop, &p, WS_RT_11_DEVICE_PROP);
    } else if (!code) {
        ws_device_prop(d, prop);
    }
    return ws_rt_record(code);
}

WS_RT_API(cudaGetDeviceProperties_v2, (struct cuda_device_prop_12 * prop, int device))
{
    const Ws__Device *d;
    int code = device_at(device, &d);
    if (!code && !prop)
        code = CUDA_INVALID_VALUE;
    if (!code)
        ws_device_prop_12(d, prop);
    return ws_rt_record(code);
}

/* The first device that has what is asked for and of which there is most. */
WS_RT_API(cudaChooseDevice, (int *device, const struct cuda_device_prop *want))
{
    int code = ws_facade_open(), count = 0, best = -1, best_score = -1;
    if (!code && (!device || !want))
        code = CUDA_INVALID_VALUE;
    if (!code)
        code = ws_rt_error(ws_session_device_count(&count));
    for (int i = 0; !code && i < count; i++) {
        const Ws__Device *d = ws_session_device(i);
        int score = ((int)d->cc_major > want->major ||
                     ((int)d->cc_major == want->major && (int)d->cc_minor >= want->minor)) +
                    (d->memory_bytes >= want->totalGlobalMem) +
                    ((int)d->n_sms >= want->multiProcessorCount);
        if (score > best_score) {
            best = i;
            best_score = score;
        }
    }
    if (!code)
        *device = best;
    return ws_rt_record(code);
}

WS_RT_API(cudaDeviceSynchronize, (void))
{
    WS_RT_ENTER(device);
    int code = ws_work_wait_device(device);
    return code ? ws_rt_record(code) : WS_RT_DONE(ws_session_device_sync(device));
}
WS_RT_ALIAS(cudaThreadSynchronize, cudaDeviceSynchronize)

WS_RT_API(cudaDeviceReset, (void))
{
    int code = ws_facade_open();
    if (code)
        return ws_rt_record(code);
    struct ws_cuda_context *c = ws_ctx_current();
    code = ws_ctx_reset_device(c ? c->device : ws_thread.device);
    (void)ws_rt_last_error(true);
    return ws_rt_record(code);
}
WS_RT_ALIAS(cudaThreadExit, cudaDeviceReset)

/* ---- flags, limits, preferences: kept and told; nothing of a software device depends on them
 * ---- */

WS_RT_API(cudaSetDeviceFlags, (unsigned flags))
{
    unsigned schedule = flags & FLAG_SCHEDULE_MASK;
    if ((flags & ~(unsigned)FLAGS_MASK) || (schedule & (schedule - 1)))
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = ws_facade_open();
    if (code)
        return ws_rt_record(code);
    struct ws_cuda_context *c = ws_ctx_current();
    (c ? c : ws_ctx_primary(ws_thread.device))->flags = flags;
    return CUDA_OK;
}

WS_RT_API(cudaGetDeviceFlags, (unsigned *flags))
{
    int code = ws_facade_open();
    if (!code && !flags)
        code = CUDA_INVALID_VALUE;
    if (code)
        return ws_rt_record(code);
    struct ws_cuda_context *c = ws_ctx_current();
    *flags = (c ? c : ws_ctx_primary(ws_thread.device))->flags | FLAG_MAP_HOST;
    return CUDA_OK;
}

WS_RT_API(cudaDeviceSetLimit, (int limit, size_t value))
{
    WS_RT_ENTER(device);
    return ws_rt_record(ws_ctx_set_limit(ws_ctx_current(), limit, value));
}
WS_RT_ALIAS(cudaThreadSetLimit, cudaDeviceSetLimit)

WS_RT_API(cudaDeviceGetLimit, (size_t * value, int limit))
{
    WS_RT_ENTER(device);
    uint64_t v;
    int code = ws_ctx_get_limit(ws_ctx_current(), limit, value ? &v : NULL);
    if (!code)
        *value = v;
    return ws_rt_record(code);
}
WS_RT_ALIAS(cudaThreadGetLimit, cudaDeviceGetLimit)

enum { CACHE_CONFIGS = 4, SHARED_CONFIGS = 3 };

WS_RT_API(cudaDeviceSetCacheConfig, (int config))
{
    WS_RT_ENTER(device);
    if (config < 0 || config >= CACHE_CONFIGS)
        return ws_rt_record(CUDA_INVALID_VALUE);
    ws_ctx_current()->cache_config = config;
    return CUDA_OK;
}
WS_RT_ALIAS(cudaThreadSetCacheConfig, cudaDeviceSetCacheConfig)

WS_RT_API(cudaDeviceGetCacheConfig, (int *config))
{
    WS_RT_ENTER(device);
    if (!config)
        return ws_rt_record(CUDA_INVALID_VALUE);
    *config = ws_ctx_current()->cache_config;
    return CUDA_OK;
}
WS_RT_ALIAS(cudaThreadGetCacheConfig, cudaDeviceGetCacheConfig)

WS_RT_API(cudaDeviceSetSharedMemConfig, (int config))
{
    WS_RT_ENTER(device);
    if (config < 0 || config >= SHARED_CONFIGS)
        return ws_rt_record(CUDA_INVALID_VALUE);
    ws_ctx_current()->shared_config = config;
    return CUDA_OK;
}

WS_RT_API(cudaDeviceGetSharedMemConfig, (int *config))
{
    WS_RT_ENTER(device);
    if (!config)
        return ws_rt_record(CUDA_INVALID_VALUE);
    *config = ws_ctx_current()->shared_config ? ws_ctx_current()->shared_config : 1;
    return CUDA_OK;
}

WS_RT_API(cudaCtxResetPersistingL2Cache, (void))
{
    WS_RT_ENTER(device);
    return CUDA_OK;
}

WS_RT_API(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest))
{
    WS_RT_ENTER(device);
    if (least)
        *least = WS_PRIORITY_LEAST;
    if (greatest)
        *greatest = WS_PRIORITY_GREATEST;
    return CUDA_OK;
}

WS_RT_API(cudaDeviceGetPCIBusId, (char *text, int bytes, int device))
{
    const Ws__Device *d;
    char id[16];
    int code = device_at(device, &d);
    if (!code && (!text || bytes <= 0))
        code = CUDA_INVALID_VALUE;
    if (code)
        return ws_rt_record(code);
    ws_device_pci_id(d, id, sizeof(id));
    if ((size_t)bytes <= strlen(id))
        return ws_rt_record(CUDA_INVALID_VALUE);
    strcpy(text, id);
    return CUDA_OK;
}

WS_RT_API(cudaDeviceGetByPCIBusId, (int *device, const char *text))
{
    int code = ws_facade_open(), count = 0;
    unsigned domain = 0, bus = 0, slot = 0;
    if (!code && (!device || !text ||
                  (sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
                   (domain = 0, sscanf(text, "%x:%x", &bus, &slot) != 2))))
        code = CUDA_INVALID_VALUE;
    if (!code)
        code = ws_rt_error(ws_session_device_count(&count));
    for (int i = 0; !code && i < count; i++) {
        if (!domain && !slot && bus == ws_session_device(i)->gpu + 1) {
            *device = i;
            return CUDA_OK;
        }
    }
    return ws_rt_record(code ? code : CUDA_INVALID_DEVICE);
}
