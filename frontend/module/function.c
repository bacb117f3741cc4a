// SPDX-License-Identifier: Apache-2.0
/* What is known of a kernel on a device: attributes, parameters, and how many of its blocks fit an
 * SM. */
#include "base/launch_check.h"
#include "frontend/context/attributes.h"
#include "frontend/errors.h"
#include "frontend/module/module.h"

static int largest_block(const Ws__Kernel *k, const Ws__Device *d)
{
    return k->max_threads_per_block ? (int)k->max_threads_per_block : (int)d->max_threads_per_block;
}

int ws_fn_attribute(const struct ws_fn *f, int attribute, int *ret)
{
    const Ws__Kernel *k = ws_function_info(f->function);
    const Ws__Device *d = ws_session_device(f->mod->device);
    switch (attribute) {
    case WS_FUNC_MAX_THREADS_PER_BLOCK:
        *ret = largest_block(k, d);
        break;
    case WS_FUNC_SHARED_SIZE_BYTES:
        *ret = (int)k->static_shared_bytes;
        break;
    case WS_FUNC_CONST_SIZE_BYTES:
        *ret = (int)k->const_bytes;
        break;
    case WS_FUNC_LOCAL_SIZE_BYTES:
        *ret = (int)k->local_bytes;
        break;
    case WS_FUNC_NUM_REGS:
        /* An estimate, so it must agree with the largest block, which isn't. */
        *ret = (int)WS_MIN(k->n_regs, d->regs_per_sm / largest_block(k, d));
        break;
    case WS_FUNC_PTX_VERSION: /* CUDA's word for it: is the architecture that the PTX is for */
        *ret = (int)k->sm;
        break;
    case WS_FUNC_BINARY_VERSION: /* of the code that runs: made for the device */
        *ret = (int)(d->cc_major * 10 + d->cc_minor);
        break;
    case WS_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *ret = f->max_dynamic_bytes;
        break;
    case WS_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *ret = f->carveout;
        break;
    case WS_FUNC_CACHE_MODE_CA:
        *ret = 0;
        break;
    case WS_FUNC_CLUSTER_SIZE_MUST_BE_SET:
        *ret = k->must_cluster;
        break;
    case WS_FUNC_REQUIRED_CLUSTER_WIDTH:
        *ret = k->cluster_x ? (int)k->cluster_x : f->cluster[0];
        break;
    case WS_FUNC_REQUIRED_CLUSTER_HEIGHT:
        *ret = k->cluster_x ? (int)k->cluster_y : f->cluster[1];
        break;
    case WS_FUNC_REQUIRED_CLUSTER_DEPTH:
        *ret = k->cluster_x ? (int)k->cluster_z : f->cluster[2];
        break;
    case WS_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *ret = f->non_portable_clusters;
        break;
    case WS_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *ret = f->cluster_scheduling;
        break;
    default:
        return CUDA_INVALID_VALUE;
    }
    return CUDA_OK;
}

int ws_fn_set_attribute(struct ws_fn *f, int attribute, int value)
{
    const Ws__Kernel *k = ws_function_info(f->function);
    const Ws__Device *d = ws_session_device(f->mod->device);
    switch (attribute) {
    case WS_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (uint64_t)value + k->static_shared_bytes > d->shared_bytes_per_block_optin)
            return CUDA_INVALID_VALUE;
        f->max_dynamic_bytes = value;
        return CUDA_OK;
    case WS_FUNC_PREFERRED_SHARED_MEMORY_CARVEOUT: /* a hint, in percent; -1: default */
        if (value < -1 || value > 100)
            return CUDA_INVALID_VALUE;
        f->carveout = value;
        return CUDA_OK;
    case WS_FUNC_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        f->non_portable_clusters = value != 0;
        return CUDA_OK;
    case WS_FUNC_CLUSTER_SCHEDULING_POLICY_PREFERENCE: /* a hint */
        if (value < 0 || value > WS_CUDA_CLUSTER_SCHEDULING_LAST)
            return CUDA_INVALID_VALUE;
        f->cluster_scheduling = value;
        return CUDA_OK;
    case WS_FUNC_REQUIRED_CLUSTER_WIDTH:
    case WS_FUNC_REQUIRED_CLUSTER_HEIGHT:
    case WS_FUNC_REQUIRED_CLUSTER_DEPTH:
        if (k->cluster_x) /* it was compiled for clusters of that size */
            return CUDA_NOT_PERMITTED;
        if (value < 0)
            return CUDA_INVALID_VALUE;
        f->cluster[attribute - WS_FUNC_REQUIRED_CLUSTER_WIDTH] = value;
        return CUDA_OK;
    default:
        return CUDA_INVALID_VALUE;
    }
}

int ws_fn_param(const struct ws_fn *f, size_t i, size_t *offset, size_t *bytes)
{
    const Ws__Kernel *k = ws_function_info(f->function);
    if (!offset || i >= k->n_param_offsets)
        return CUDA_INVALID_VALUE;
    *offset = k->param_offsets[i];
    if (bytes)
        *bytes = k->param_sizes[i];
    return CUDA_OK;
}

int ws_fn_n_params(const struct ws_fn *f, size_t *n)
{
    if (!n)
        return CUDA_INVALID_VALUE;
    *n = ws_function_info(f->function)->n_param_offsets;
    return CUDA_OK;
}

int ws_fn_max_blocks(const struct ws_fn *f, int block_threads, size_t shared_bytes, int *ret_blocks)
{
    uint32_t n;
    if (block_threads <= 0)
        return CUDA_INVALID_VALUE;
    if (shared_bytes > UINT32_MAX) {
        *ret_blocks = 0;
        return CUDA_OK;
    }
    ws_err r =
        ws_session_occupancy(f->function, (uint32_t)block_threads, (uint32_t)shared_bytes, &n);
    if (r)
        return ws_drv_error(r);
    *ret_blocks = (int)n;
    return CUDA_OK;
}

/* Blocks of a cluster: as the launch says, the kernel, or the program of the function; 0: nobody
 * does. */
static uint64_t cluster_blocks(const struct ws_fn *f, const struct ws_launch_means *m)
{
    const Ws__Kernel *k = ws_function_info(f->function);
    const int *set = f->cluster;
    if (m->cluster[0])
        return (uint64_t)m->cluster[0] * m->cluster[1] * m->cluster[2];
    return k->cluster_x ? (uint64_t)k->cluster_x * k->cluster_y * k->cluster_z
                        : (uint64_t)set[0] * (uint64_t)set[1] * (uint64_t)set[2];
}

/* How many blocks of a launch are resident at once. Return: a CUDA code. */
static int resident_blocks(const struct ws_fn *f, const struct ws_launch_config *s, int *ret)
{
    uint64_t threads = (uint64_t)s->block[0] * s->block[1] * s->block[2];
    int per_sm = 0;
    if (!threads || threads > INT32_MAX)
        return CUDA_INVALID_CONFIGURATION;
    int code = ws_fn_max_blocks(f, (int)threads, s->shared_bytes, &per_sm);
    *ret = per_sm * (int)ws_session_device(f->mod->device)->n_sms;
    return code;
}

int ws_fn_max_clusters(const struct ws_fn *f, const struct ws_launch_config *s, int *ret_size,
                       int *ret_clusters)
{
    struct ws_launch_means means = {.cooperative = false};
    int resident, most = (int)ws_launch_max_cluster(ws_session_device(f->mod->device)->cc_major,
                                                    f->non_portable_clusters);
    if (s->n_attributes && !s->attributes)
        return CUDA_INVALID_VALUE;
    int code = ws_launch_attributes(s->attributes, s->n_attributes, &means);
    if (!code)
        code = resident_blocks(f, s, &resident);
    if (code)
        return code;
    uint64_t n = cluster_blocks(f, &means);
    if (ret_clusters && (n > (uint64_t)most))
        return CUDA_INVALID_CLUSTER_SIZE;
    if (ret_clusters)
        *ret_clusters = resident / (int)WS_MAX(n, 1u);
    if (ret_size)
        *ret_size = WS_MIN(most, resident);
    return CUDA_OK;
}

int ws_fn_available_shared(const struct ws_fn *f, int n_blocks, int block_threads,
                           size_t *ret_bytes)
{
    enum { GRANULE_BYTES = 128 };
    const Ws__Kernel *k = ws_function_info(f->function);
    const Ws__Device *d = ws_session_device(f->mod->device);
    int n = 0;
    if (n_blocks <= 0)
        return CUDA_INVALID_VALUE;
    int code = ws_fn_max_blocks(f, block_threads, 0, &n);
    if (code)
        return code;
    size_t room = n < n_blocks
                      ? 0
                      : d->shared_bytes_per_sm / (size_t)n_blocks / GRANULE_BYTES * GRANULE_BYTES;
    int reserved = 0; /* the system's, in each block */
    ws_device_attribute(d, WS_ATTR_RESERVED_SHARED_MEMORY_PER_BLOCK, &reserved);
    room -= WS_MIN(room, (size_t)reserved);
    room = WS_MIN(room, (size_t)d->shared_bytes_per_block_optin);
    *ret_bytes = room > k->static_shared_bytes ? room - k->static_shared_bytes : 0;
    return CUDA_OK;
}
