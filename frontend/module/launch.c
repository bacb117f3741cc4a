// SPDX-License-Identifier: Apache-2.0
/* What the runtime's and the driver's launches have in common: the arguments' two forms, the checks
 * that CUDA documents, and launch attributes. */
#include <string.h>

#include "frontend/context/attributes.h"
#include "frontend/errors.h"
#include "frontend/module/module.h"
#include "frontend/stream/work.h"

/* Whether all blocks of a cooperative launch can run at once: CUDA says so at the launch, so the
 * daemon must be asked before. The answer for a shape of block is kept, for the next launch mostly
 * has the same. */
static ws_err fits_at_once(struct ws_fn *f, const struct ws_launch_request *r)
{
    const Ws__Device *d = ws_session_device(f->mod->device);
    uint64_t threads = (uint64_t)r->block[0] * r->block[1] * r->block[2],
             blocks = (uint64_t)r->grid[0] * r->grid[1] * r->grid[2];
    uint64_t shape = threads << 40 | (uint64_t)r->shared_bytes << 16, known = f->resident;
    if (!threads || threads > d->max_threads_per_block)
        return WS__ERROR__OK; /* the launch has another word for it */
    if (!known || known >> 16 != shape >> 16) {
        uint32_t per_sm;
        ws_err e = ws_session_occupancy(f->function, (uint32_t)threads, (uint32_t)r->shared_bytes,
                                        &per_sm);
        if (e)
            return e;
        f->resident = known = shape | WS_MIN(per_sm, (uint32_t)UINT16_MAX);
    }
    return blocks > (known & UINT16_MAX) * d->n_sms ? WS__ERROR__COOPERATIVE_TOO_LARGE
                                                    : WS__ERROR__OK;
}

/* CU_LAUNCH_PARAM_*, the keys in @extra */
enum { PARAM_END, PARAM_BUFFER_POINTER, PARAM_BUFFER_SIZE, PARAM_WORDS_MAX = 8 };

ws_err ws_launch_set_args(struct ws_launch_request *r, void **args, void **extra)
{
    const size_t *bytes = NULL;
    if (args && extra)
        return WS__ERROR__INVALID_VALUE;
    r->args = args;
    for (int i = 0; extra && (uintptr_t)extra[i] != PARAM_END; i += 2) {
        if (i >= PARAM_WORDS_MAX)
            return WS__ERROR__INVALID_VALUE;
        if ((uintptr_t)extra[i] == PARAM_BUFFER_POINTER)
            r->packed = extra[i + 1];
        else if ((uintptr_t)extra[i] == PARAM_BUFFER_SIZE)
            bytes = extra[i + 1];
        else
            return WS__ERROR__INVALID_VALUE;
    }
    if (extra && (!r->packed || !bytes))
        return WS__ERROR__INVALID_VALUE;
    r->packed_bytes = bytes ? *bytes : 0;
    return WS__ERROR__OK;
}

ws_err ws_fn_prepare(struct ws_fn *f, const struct ws_launch_request *r, struct ws_launch *ret)
{
    *ret = (struct ws_launch){
        .function = f->function,
        .grid = {r->grid[0], r->grid[1], r->grid[2]},
        .block = {r->block[0], r->block[1], r->block[2]},
        .shared_bytes = (uint32_t)r->shared_bytes,
        .flags = r->means.cooperative,
        .non_portable = f->non_portable_clusters,
        .args = r->args,
        .packed = r->packed,
        .packed_bytes = (uint32_t)r->packed_bytes,
    };
    bool says = r->means.cluster[0] || r->means.cluster[1] || r->means.cluster[2];
    for (int i = 0; i < 3; i++)
        ret->cluster[i] = says ? r->means.cluster[i] : (uint32_t)f->cluster[i];
    if (r->shared_bytes > (size_t)f->max_dynamic_bytes || r->packed_bytes > UINT32_MAX)
        return WS__ERROR__INVALID_VALUE;
    return r->means.cooperative ? fits_at_once(f, r) : WS__ERROR__OK;
}

ws_err ws_fn_launch(struct ws_fn *f, const struct ws_launch_request *r)
{
    struct ws_launch l;
    uint64_t stream;
    if (ws_stream_of(r->stream, r->per_thread, f->mod->device, &stream))
        return WS__ERROR__INVALID_HANDLE;
    ws_err e = ws_fn_prepare(f, r, &l);
    l.stream = stream;
    return e ? e : ws_work_launch(&l, f);
}

int ws_launch_attributes(const struct cuda_launch_attribute *v, unsigned n,
                         struct ws_launch_means *ret)
{
    for (unsigned i = 0; i < n; i++) {
        const struct cuda_dim3 *c = &v[i].val.cluster;
        switch (v[i].id) {
        case WS_CUDA_ATTR_COOPERATIVE:
            ret->cooperative = v[i].val.cooperative != 0;
            break;
        case WS_CUDA_ATTR_CLUSTER_DIMENSION:
            memcpy(ret->cluster, (const uint32_t[]){c->x, c->y, c->z}, sizeof(ret->cluster));
            break;
        case WS_CUDA_ATTR_PROGRAMMATIC_EVENT:
            ws_session_unsupported("launch attribute: programmatic event");
            return CUDA_NOT_SUPPORTED;
        case WS_CUDA_ATTR_LAUNCH_COMPLETION_EVENT:
            ws_session_unsupported("launch attribute: launch completion event");
            return CUDA_NOT_SUPPORTED;
        case WS_CUDA_ATTR_DEVICE_UPDATABLE_NODE:
            if (!v[i].val.cooperative) /* its first member says whether it is wanted */
                break;
            ws_session_unsupported("launch attribute: device updatable kernel node");
            return CUDA_NOT_SUPPORTED;
        case WS_CUDA_ATTR_IGNORE:
        case WS_CUDA_ATTR_ACCESS_POLICY_WINDOW:
        case WS_CUDA_ATTR_SYNCHRONIZATION_POLICY:
        case WS_CUDA_ATTR_CLUSTER_SCHEDULING:
        case WS_CUDA_ATTR_PROGRAMMATIC_SERIALIZATION: /* the kernel may begin early; it needn't */
        case WS_CUDA_ATTR_PRIORITY:
        case WS_CUDA_ATTR_MEM_SYNC_DOMAIN_MAP:
        case WS_CUDA_ATTR_MEM_SYNC_DOMAIN:
        case WS_CUDA_ATTR_PREFERRED_CLUSTER_DIMENSION:
        case WS_CUDA_ATTR_SHARED_CARVEOUT:
        case WS_CUDA_ATTR_NVLINK_SCHEDULING:
            break;
        default:
            return CUDA_INVALID_VALUE;
        }
    }
    return CUDA_OK;
}
