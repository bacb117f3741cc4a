// SPDX-License-Identifier: Apache-2.0
#include "backend/backend.h"

#include "base/alloc.h"

Ws__Error ws_memory_alloc(struct ws_context *x, uint64_t bytes, bool internal,
                          struct ws_allocation **ret)
{
    struct ws_client *c = x->client;
    uint64_t quota = c->server->config->limits.memory_quota_bytes;
    if (!bytes)
        return WS__ERROR__INVALID_VALUE;
    if (bytes > x->gpu->device->spec.memory_bytes)
        return WS__ERROR__OUT_OF_MEMORY;
    bytes = WS_ALIGN_UP(bytes, WS_DEVICE_PAGE_BYTES);
    if (quota && (bytes > quota || c->stats.memory_bytes > quota - bytes))
        return WS__ERROR__OUT_OF_MEMORY;
    struct ws_allocation *a = ws_alloc(sizeof *a);
    if (!a)
        return WS__ERROR__OUT_OF_MEMORY;
    if (ws_va_alloc(&c->va, bytes, &a->va)) {
        free(a);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    if (ws_device_mem_alloc(x->gpu->device, c->space, a->va, bytes)) {
        ws_va_free(&c->va, a->va, bytes);
        free(a);
        return WS__ERROR__OUT_OF_MEMORY;
    }
    a->bytes = bytes;
    a->context = x;
    a->internal = internal;
    HASH_ADD(hh, c->allocations, va, sizeof a->va, a);
    c->stats.memory_bytes += bytes;
    c->stats.peak_memory_bytes = WS_MAX(c->stats.peak_memory_bytes, c->stats.memory_bytes);
    c->stats.used_gpus |= 1u << x->gpu->device->index;
    *ret = a;
    return WS__ERROR__OK;
}

struct ws_allocation *ws_memory_find(struct ws_client *c, uint64_t va)
{
    struct ws_allocation *a;
    HASH_FIND(hh, c->allocations, &va, sizeof va, a);
    return a;
}

void ws_memory_free(struct ws_allocation *a)
{
    struct ws_client *c = a->context->client;
    int r = ws_space_unmap(c->space, a->va);
    if (r)
        ws_log(WS_ERROR, "memory: unmap failed client=%u va=0x%llx r=%d", c->id,
               (unsigned long long)a->va, r);
    ws_va_free(&c->va, a->va, a->bytes);
    c->stats.memory_bytes -= a->bytes;
    HASH_DEL(c->allocations, a);
    free(a);
}

void ws_memory_info(struct ws_context *x, uint64_t *ret_free, uint64_t *ret_total)
{
    struct ws_client *c = x->client;
    struct ws_device_telemetry t;
    uint64_t quota = c->server->config->limits.memory_quota_bytes;
    ws_device_telemetry(x->gpu->device, &t);
    *ret_total = x->gpu->device->spec.memory_bytes;
    *ret_free = *ret_total > t.memory_used_bytes ? *ret_total - t.memory_used_bytes : 0;
    if (quota) {
        *ret_total = WS_MIN(*ret_total, quota);
        *ret_free =
            WS_MIN(*ret_free, quota > c->stats.memory_bytes ? quota - c->stats.memory_bytes : 0);
    }
}
