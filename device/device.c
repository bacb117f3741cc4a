// SPDX-License-Identifier: Apache-2.0
/* The checked way into a device: what any implementation would have to refuse is refused here,
 * once. What is checked of operations is in device/check.c. */
#include "device/device.h"

#include <string.h>

#include "base/error.h"
#include "device/cuda/clocks.h"
#include "device/progress.h"

const char *ws_dev_error_name(enum ws_dev_error e)
{
    static const char *const names[_WS_DEV_E_N] = {
        [WS_DEV_OK] = "ok",
        [WS_DEV_E_ILLEGAL_ADDRESS] = "illegal-address",
        [WS_DEV_E_MISALIGNED] = "misaligned",
        [WS_DEV_E_TRAP] = "trap",
        [WS_DEV_E_ASSERT] = "assert",
        [WS_DEV_E_TIMEOUT] = "timeout",
        [WS_DEV_E_ILLEGAL_INSTRUCTION] = "illegal-instruction",
        [WS_DEV_E_STACK_OVERFLOW] = "stack-overflow",
        [WS_DEV_E_LAUNCH_FAILURE] = "launch-failure",
        [WS_DEV_E_INVALID_VALUE] = "invalid-value",
        [WS_DEV_E_RESOURCES] = "resources",
        [WS_DEV_E_NO_MEMORY] = "no-memory",
        [WS_DEV_E_INVALID_CONFIGURATION] = "invalid-configuration",
        [WS_DEV_E_COOPERATIVE_TOO_LARGE] = "cooperative-too-large",
        [WS_DEV_E_INVALID_CLUSTER] = "invalid-cluster",
        [WS_DEV_E_CANCELLED] = "cancelled",
    };
    return (unsigned)e < _WS_DEV_E_N ? names[e] : "unknown";
}

void ws_device_close(struct ws_device *d)
{
    if (!d)
        return;
    d->clocks = ws_clocks_close(d->clocks); /* its own clocks come back */
    d->ops->close(d);
}

int ws_device_mem_alloc(struct ws_device *d, struct ws_space *s, uint64_t va, uint64_t bytes)
{
    if (!va || va % WS_DEVICE_PAGE_BYTES || !bytes || bytes % WS_DEVICE_PAGE_BYTES ||
        va + bytes < va)
        return ws_raise(-EINVAL);
    struct ws_memory *m;
    int r = ws_device_memory_new(d, bytes, &m);
    if (r)
        return r;
    r = ws_space_map_memory(s, va, bytes, m, 0, WS_ACCESS_ALL, WS_ACCESS_ALL);
    ws_memory_unref(m);
    return r;
}

uint32_t ws_device_peers(struct ws_device *d)
{
    return d->ops->peers ? d->ops->peers(d) : WS_ACCESS_ALL;
}

/* Every device's own structure begins with it. */
const struct ws_dmodule_info *ws_dmodule_info(const struct ws_dmodule *m)
{
    return (const struct ws_dmodule_info *)m;
}

int ws_device_module_load(struct ws_device *d, const struct ws_ptx_module *m,
                          struct ws_dmodule **ret, struct ws_diags *diags)
{
    if (m->code && d->no_machine_code) {
        ws_diags_add(diags, NULL, 0, 0, "machine code: %s", d->no_machine_code);
        return WS_PTX_E_UNSUPPORTED;
    }
    return d->ops->module_load(d, m, ret, diags);
}

void ws_device_module_unload(struct ws_device *d, struct ws_dmodule *m)
{
    if (m)
        d->ops->module_unload(m);
}

int ws_device_instance_new(struct ws_device *d, struct ws_dmodule *m, struct ws_space *s,
                           const uint64_t *var_va, struct ws_dinstance **ret)
{
    const struct ws_dmodule_info *info = ws_dmodule_info(m);
    if (!var_va && info->n_vars && !info->own_vars)
        return ws_raise(-EINVAL);
    return d->ops->instance_new(d, m, s, var_va, WS_WRITE_ALL, ret);
}

int ws_device_instance_again(struct ws_device *d, struct ws_dmodule *m, struct ws_space *s,
                             const uint64_t *var_va, struct ws_dinstance **ret)
{
    if ((!var_va && ws_dmodule_info(m)->n_vars) || ws_dmodule_info(m)->own_vars)
        return ws_raise(-EINVAL);
    return d->ops->instance_new(d, m, s, var_va, WS_WRITE_UNMANAGED, ret);
}

void ws_device_instance_vars(struct ws_device *d, const struct ws_dinstance *i, uint64_t *ret_va)
{
    d->ops->instance_vars(i, ret_va);
}

int ws_device_instance_borrow(struct ws_device *d, struct ws_dmodule *m, struct ws_space *s,
                              const uint64_t *var_va, struct ws_dinstance **ret)
{
    if ((!var_va && ws_dmodule_info(m)->n_vars) || ws_dmodule_info(m)->own_vars)
        return ws_raise(-EINVAL);
    return d->ops->instance_new(d, m, s, var_va, WS_WRITE_NONE, ret);
}

void ws_device_instance_free(struct ws_device *d, struct ws_dinstance *i)
{
    if (i)
        d->ops->instance_free(i);
}

void ws_device_submit(struct ws_device *d, struct ws_op *op)
{
    op->error = WS_DEV_OK;
    op->text[0] = 0;
    op->start_ns = op->end_ns = op->ready_ns;
    op->energy_uj = op->n_thread_insns = 0;
    op->counts = (struct ws_op_counts){0};
    op->next = NULL;
    op->queued = op->priv = op->run = NULL;
    op->preempted = false;
    d->ops->submit(d, op);
}

int ws_device_preempt(struct ws_device *d, struct ws_op *op)
{
    if (op->kind != WS_OPK_LAUNCH || !d->ops->preempt)
        return -ENOTSUP;
    return d->ops->preempt(d, op);
}

int ws_device_urge(struct ws_device *d, struct ws_op *op, uint64_t limit_ns)
{
    if (op->kind != WS_OPK_LAUNCH || !d->ops->urge)
        return -ENOTSUP;
    return d->ops->urge(d, op, limit_ns);
}

double ws_progress_part(const struct ws_progress *p)
{
    return p->part;
}

struct ws_progress *ws_progress_free(struct ws_progress *p)
{
    if (p)
        p->free(p);
    return NULL;
}

int ws_device_set_clocks(struct ws_device *d, const struct ws_device_clocks *want,
                         struct ws_device_clocks *ret)
{
    if (!d->clocks && !d->ops->set_clocks)
        return -ENOTSUP;
    if (!(want->volt > 0) || !(want->core > 0) || !(want->memory > 0))
        return ws_raise(-EINVAL);
    int r = d->clocks ? ws_clocks_set(d->clocks, want, ret) : d->ops->set_clocks(d, want, ret);
    if (!r) {
        d->clocked = ret->volt != 1 || ret->core != 1 || ret->memory != 1;
        d->clocks_now = *ret;
    }
    return r;
}

int ws_device_set_power(struct ws_device *d, bool on)
{
    return d->ops->set_power ? d->ops->set_power(d, on) : -ENOTSUP;
}

int ws_device_alarm(struct ws_device *d, struct ws_alarm *a)
{
    if (d->ops->alarm)
        return d->ops->alarm(d, a);
    a->ring(a);
    return 0;
}

void ws_device_cancel(struct ws_device *d, struct ws_space *s)
{
    d->ops->cancel(d, s);
}

void ws_device_telemetry(struct ws_device *d, struct ws_device_telemetry *ret)
{
    memset(ret, 0, sizeof(*ret));
    d->ops->telemetry(d, ret);
}

uint64_t ws_device_now_ns(struct ws_device *d)
{
    struct ws_device_telemetry t;
    if (d->ops->now_ns)
        return d->ops->now_ns(d);
    ws_device_telemetry(d, &t);
    return t.now_ns;
}

void ws_device_host_register(struct ws_device *d, void *host, uint64_t bytes, int fd)
{
    if (d->ops->host_register)
        d->ops->host_register(d, host, bytes, fd);
}

void ws_device_host_unregister(struct ws_device *d, void *host, uint64_t bytes)
{
    if (d->ops->host_unregister)
        d->ops->host_unregister(d, host, bytes);
}

int ws_device_occupancy(struct ws_device *d, const struct ws_dmodule *m, uint32_t kernel,
                        uint32_t block_threads, uint32_t shared_bytes, struct ws_occupancy *ret)
{
    if (kernel >= ws_dmodule_info(m)->n_kernels || !block_threads)
        return ws_raise(-EINVAL);
    return d->ops->occupancy(d, m, kernel, block_threads, shared_bytes, ret);
}
