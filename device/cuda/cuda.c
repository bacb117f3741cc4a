// SPDX-License-Identifier: Apache-2.0
/* A real GPU: opening and closing, errors, and the table of functions.
 *
 * All clients share one context per GPU, the primary one. A sticky error destroys it, and with it
 * the contents of the GPU's memory. The device is then lost: it says which kernel is suspected, and
 * ends all operations with an error.
 *
 * Every thread that calls the driver makes the context current first. Each thread remembers which
 * device's context is current by the device's number, since the address of a context may be used
 * again. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/log.h"
#include "device/cuda/cuda_private.h"

enum { DRAIN_TRIES = 4 };

ws_cu_result ws_cuda_enter(struct ws_cuda *d)
{
    static _Thread_local uint64_t current;
    if (current == d->id)
        return WS_CU_SUCCESS;
    ws_cu_result r = WS_CU(d, cuCtxSetCurrent, d->context);
    current = r == WS_CU_SUCCESS ? d->id : 0;
    return r;
}

ws_cu_result ws_cuda_drain(struct ws_cuda *d, ws_cu_stream s)
{
    ws_cu_result r;
    int tries = 0;
    do {
        r = ws_cuda_enter(d);
        if (r == WS_CU_SUCCESS)
            r = WS_CU(d, cuStreamSynchronize, s);
    } while (r != WS_CU_SUCCESS && !d->lost && ++tries < DRAIN_TRIES);
    return r;
}

bool ws_cuda_is_sticky(ws_cu_result r)
{
    switch (r) {
    case WS_CU_ECC_UNCORRECTABLE:
    case WS_CU_NVLINK_UNCORRECTABLE:
    case WS_CU_CONTAINED:
    case WS_CU_ILLEGAL_ADDRESS:
    case WS_CU_LAUNCH_TIMEOUT:
    case WS_CU_CONTEXT_IS_DESTROYED:
    case WS_CU_ASSERT:
    case WS_CU_HARDWARE_STACK_ERROR:
    case WS_CU_ILLEGAL_INSTRUCTION:
    case WS_CU_MISALIGNED_ADDRESS:
    case WS_CU_INVALID_ADDRESS_SPACE:
    case WS_CU_INVALID_PC:
    case WS_CU_LAUNCH_FAILED:
    case WS_CU_TENSOR_MEMORY_LEAK:
    case WS_CU_MPS_CLIENT_TERMINATED:
        return true;
    default:
        return false;
    }
}

enum ws_dev_error ws_cuda_error(ws_cu_result r)
{
    switch (r) {
    case WS_CU_SUCCESS:
        return WS_DEV_OK;
    case WS_CU_OUT_OF_MEMORY:
        return WS_DEV_E_NO_MEMORY;
    case WS_CU_ILLEGAL_ADDRESS:
    case WS_CU_INVALID_ADDRESS_SPACE:
        return WS_DEV_E_ILLEGAL_ADDRESS;
    case WS_CU_MISALIGNED_ADDRESS:
        return WS_DEV_E_MISALIGNED;
    case WS_CU_ASSERT:
        return WS_DEV_E_ASSERT;
    case WS_CU_LAUNCH_TIMEOUT:
        return WS_DEV_E_TIMEOUT;
    case WS_CU_ILLEGAL_INSTRUCTION:
    case WS_CU_INVALID_PC:
        return WS_DEV_E_ILLEGAL_INSTRUCTION;
    case WS_CU_HARDWARE_STACK_ERROR:
        return WS_DEV_E_STACK_OVERFLOW;
    case WS_CU_LAUNCH_OUT_OF_RESOURCES:
        return WS_DEV_E_RESOURCES;
    case WS_CU_COOPERATIVE_LAUNCH_TOO_LARGE:
        return WS_DEV_E_COOPERATIVE_TOO_LARGE;
    case WS_CU_INVALID_CLUSTER_SIZE:
        return WS_DEV_E_INVALID_CLUSTER;
    case WS_CU_INVALID_VALUE:
        return WS_DEV_E_INVALID_VALUE;
    default:
        return WS_DEV_E_LAUNCH_FAILURE;
    }
}

static void lose(struct ws_cuda *d, ws_cu_result r, const char *what)
{
    char text[64];
    int none = 0;
    if (atomic_compare_exchange_strong(&d->lost, &none, r))
        ws_log(WS_ERROR, "cuda: gpu=%u lost its context: %s, seen by %s", d->base.index,
               ws_cu_result_name(r, text, sizeof(text)), what);
}

ws_cu_result ws_cuda_result(struct ws_cuda *d, ws_cu_result r, const char *what)
{
    if (ws_cuda_is_sticky(r))
        lose(d, r, what);
    return r;
}

ws_cu_result ws_cuda_end_of(struct ws_cuda *d, ws_cu_event e)
{
    ws_cu_result r = WS_CU(d, cuEventQuery, e);
    if (r == WS_CU_UNKNOWN || r == WS_CU_DEINITIALIZED)
        lose(d, r, "cuEventQuery");
    return r;
}

void ws_cuda_fail(struct ws_cuda *d, struct ws_op *op, ws_cu_result r, const char *what)
{
    char text[64];
    ws_check_fail(op, ws_cuda_error(r), "%s: %s", what, ws_cu_result_name(r, text, sizeof(text)));
}

void ws_cuda_say(struct ws_cuda *d, const char *name, bool yes, const char *fmt, ...)
{
    struct ws_cuda_capabilities *c = &d->capabilities;
    if (c->n == WS_CUDA_MAX_CAPABILITIES)
        return;
    struct ws_cuda_capability *v = &c->v[c->n++];
    va_list ap;
    v->name = name;
    v->yes = yes;
    va_start(ap, fmt);
    vsnprintf(v->how, sizeof(v->how), fmt, ap);
    va_end(ap);
}

static void cuda_telemetry(struct ws_device *dev, struct ws_device_telemetry *ret)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    ret->now_ns = ws_cuda_now_ns(d);
    ws_cuda_energy(d, &ret->energy_uj, &ret->power_mw);
    pthread_mutex_lock(&d->run_lock);
    ret->busy_ns = d->busy_ns;
    ret->sm_busy_ns = d->sm_busy_ns;
    pthread_mutex_unlock(&d->run_lock);
    ret->memory_used_bytes = d->memory_used;
    ret->n_kernels = d->n_kernels;
    ret->n_copies = d->n_copies;
    ret->copied_bytes = d->copied_bytes;
    ret->n_running = d->n_running;
}

/* In the opposite order of opening; each part knows how far its opening came. */
static void cuda_close(struct ws_device *dev)
{
    struct ws_cuda *d = ws_cuda_of(dev);
    if (d->retained)
        (void)ws_cuda_enter(d); /* a failure means that the context is destroyed */
    ws_alarms_close(&d->alarms);
    ws_cuda_run_close(d);
    ws_cuda_unload_close(d);
    ws_cuda_green_close(d);
    ws_cuda_meter_close(d);
    ws_cuda_clock_close(d);
    ws_cuda_memory_close(d);
    if (d->retained) {
        (void)d->cu.cuCtxSetCurrent(NULL);
        (void)d->cu.cuDevicePrimaryCtxRelease(d->device);
    }
    ws_cu_close(&d->cu);
    free(d);
}

static uint64_t cuda_now_ns(struct ws_device *dev)
{
    return ws_cuda_now_ns(ws_cuda_of(dev));
}

static int cuda_alarm(struct ws_device *dev, struct ws_alarm *a)
{
    return ws_alarms_add(&ws_cuda_of(dev)->alarms, a);
}

static const struct ws_cuda_capabilities *cuda_capabilities(const struct ws_device *d)
{
    return &WS_CONTAINER_OF(d, const struct ws_cuda, base)->capabilities;
}

static void cuda_uuid(const struct ws_device *d, uint8_t ret[16])
{
    memcpy(ret, WS_CONTAINER_OF(d, const struct ws_cuda, base)->uuid.bytes, 16);
}

static bool cuda_charge(struct ws_device *d, uint64_t ns, uint64_t *ret_uj)
{
    struct ws_cuda *c = ws_cuda_of(d);
    if (!c->has_counter && !c->has_power)
        return false;
    *ret_uj = ws_cuda_energy_share(c, ns, 1);
    return true;
}

static const char *cuda_lost(const struct ws_device *d)
{
    return ws_cuda_lost_text(WS_CONTAINER_OF(d, struct ws_cuda, base)); /* for its lock */
}

static const struct ws_real_ops real_ops = {cuda_capabilities, cuda_uuid, cuda_charge, cuda_lost};

static const struct ws_device_ops cuda_ops = {
    .name = "cuda",
    .close = cuda_close,
    .mem_alloc = ws_cuda_mem_alloc,
    .map = ws_cuda_map,
    .unmap = ws_cuda_unmap,
    .set_access = ws_cuda_set_access,
    .peers = ws_cuda_peers,
    .place = ws_cuda_place,
    .host_register = ws_cuda_host_register,
    .host_unregister = ws_cuda_host_unregister,
    .module_load = ws_cuda_module_load,
    .module_unload = ws_cuda_module_unload,
    .instance_new = ws_cuda_instance_new,
    .instance_free = ws_cuda_instance_free,
    .instance_vars = ws_cuda_instance_vars,
    .submit = ws_cuda_submit,
    .cancel = ws_cuda_cancel,
    .telemetry = cuda_telemetry,
    .occupancy = ws_cuda_occupancy,
    .preempt = ws_cuda_preempt,
    .alarm = cuda_alarm,
    .now_ns = cuda_now_ns,
    .real = &real_ops,
};

static int missing(struct ws_diags *diags, int ordinal, const char *what, ws_cu_result r)
{
    char text[64];
    ws_diags_add(diags, NULL, 0, 0, "cuda:%d: %s: %s", ordinal, what,
                 ws_cu_result_name(r, text, sizeof(text)));
    return WS_CUDA_E_MISSING;
}

static int open_context(struct ws_cuda *d, struct ws_diags *diags)
{
    int n = 0;
    ws_cu_result r = d->cu.cuDeviceGetCount(&n);
    if (r == WS_CU_SUCCESS && d->ordinal >= n) {
        ws_diags_add(diags, NULL, 0, 0, "cuda:%d: the driver has %d GPU%s; numbers begin at 0",
                     d->ordinal, n, n == 1 ? "" : "s");
        return WS_CUDA_E_MISSING;
    }
    if (r == WS_CU_SUCCESS)
        r = d->cu.cuDeviceGet(&d->device, d->ordinal);
    if (r == WS_CU_SUCCESS)
        r = d->cu.cuDeviceGetUuid(&d->uuid, d->device);
    if (r != WS_CU_SUCCESS)
        return missing(diags, d->ordinal, "the driver does not give the GPU", r);
    r = d->cu.cuDevicePrimaryCtxRetain(&d->context, d->device);
    if (r != WS_CU_SUCCESS)
        return missing(diags, d->ordinal, "no context", r);
    d->retained = true;
    r = ws_cuda_enter(d);
    return r == WS_CU_SUCCESS ? 0 : missing(diags, d->ordinal, "no context", r);
}

int ws_device_open_cuda(struct ws_device **ret, int ordinal, uint32_t index,
                        const struct ws_cuda_options *options, struct ws_diags *diags)
{
    static _Atomic uint64_t n_devices;
    struct ws_cuda *d = ws_alloc(sizeof(*d));
    if (!d)
        return ws_raise(-ENOMEM);
    if (options)
        d->options = *options;
    d->base.ops = &cuda_ops;
    d->base.plain_memory = true;
    d->base.index = index;
    d->base.no_machine_code = d->options.unfenced ? NULL : ws_cuda_no_machine_code;
    d->ordinal = ordinal;
    d->id = ++n_devices;
    pthread_mutex_init(&d->memory_lock, NULL);
    pthread_mutex_init(&d->registered_lock, NULL);
    pthread_mutex_init(&d->spare_lock, NULL);
    pthread_mutex_init(&d->clearing_lock, NULL);
    pthread_cond_init(&d->cleared, NULL);
    pthread_mutex_init(&d->stock_lock, NULL);
    pthread_mutex_init(&d->run_lock, NULL);
    pthread_mutex_init(&d->energy_lock, NULL);
    int r = ordinal < 0 ? WS_CUDA_E_MISSING : ws_cu_open(&d->cu, d->options.driver_library, diags);
    d->capabilities.cuda_version = d->cu.version;
    if (!r)
        r = open_context(d, diags);
    if (!r)
        r = ws_cuda_read_spec(d, diags);
    if (!r)
        r = ws_cuda_memory_open(d, diags);
    if (!r)
        r = ws_cuda_clock_open(d);
    if (!r)
        r = ws_cuda_meter_open(d);
    if (!r)
        r = ws_cuda_unload_open(d);
    if (!r)
        r = ws_cuda_run_open(d);
    if (!r)
        r = ws_cuda_green_open(d);
    if (!r)
        r = ws_alarms_open(&d->alarms, &d->base);
    if (r) {
        if (diags && !diags->n)
            ws_diags_add(diags, NULL, 0, 0, "cuda:%d: cannot be opened (%s)", ordinal,
                         r < 0 ? strerror(-r) : "driver error");
        cuda_close(&d->base);
        return r < 0 ? r : WS_CUDA_E_MISSING;
    }
    *ret = &d->base;
    return 0;
}

uint32_t ws_cuda_count(const struct ws_cuda_options *options, struct ws_diags *diags)
{
    struct ws_cu cu = {0};
    int n = 0;
    if (ws_cu_open(&cu, options ? options->driver_library : NULL, diags))
        return 0;
    if (cu.cuDeviceGetCount(&n) != WS_CU_SUCCESS)
        n = 0;
    ws_cu_close(&cu);
    return (uint32_t)WS_MAX(n, 0);
}

const struct ws_cuda_capabilities *ws_device_cuda_capabilities(const struct ws_device *d)
{
    return d->ops->real ? d->ops->real->capabilities(d) : NULL;
}

const char *ws_device_cuda_lost(const struct ws_device *d)
{
    return d->ops->real ? d->ops->real->lost(d) : NULL;
}

bool ws_device_cuda_uuid(const struct ws_device *d, uint8_t ret[16])
{
    if (d->ops->real)
        d->ops->real->uuid(d, ret);
    return d->ops->real != NULL;
}

bool ws_device_cuda_charge(struct ws_device *d, uint64_t ns, uint64_t *ret_uj)
{
    return d->ops->real && d->ops->real->charge(d, ns, ret_uj);
}
