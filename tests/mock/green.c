// SPDX-License-Identifier: Apache-2.0
/* Green contexts. SMs are split into groups of at least MIN, in steps of STEP. A group has every
 * other pair of SMs, so that code that takes groups for neighbouring SMs fails. Descriptors are
 * made from groups of one split. */
#include <string.h>

#include "base/alloc.h"
#include "tests/mock/mock.h"

enum { MIN = 4, STEP = 2 };

/* What a resource is, in the part of it that is the driver's own. */
struct inside {
    uint32_t magic, split; /* 0: not split */
    int ordinal;
    struct ws_sm_set sms;
};
enum { MAGIC = 0x5aa5c33c };
_Static_assert(sizeof(struct inside) <= sizeof(((struct ws_cu_resource *)0)->own), "fits");

static _Atomic uint32_t n_splits;

static void put(struct ws_cu_resource *r, const struct inside *in)
{
    *r = (struct ws_cu_resource){.type = WS_CU_DEV_RESOURCE_TYPE_SM};
    r->sm.count = in->sms.n;
    r->sm.min_partition = MIN;
    r->sm.alignment = STEP;
    memcpy(r->own, in, sizeof(*in));
}

static bool get(const struct ws_cu_resource *r, struct inside *ret)
{
    memcpy(ret, r->own, sizeof(*ret));
    return r->type == WS_CU_DEV_RESOURCE_TYPE_SM && ret->magic == MAGIC &&
           ret->sms.n == r->sm.count;
}

ws_cu_result cuDeviceGetDevResource(ws_cu_device d, struct ws_cu_resource *r, int type)
{
    ENTER(MOCK_ANY);
    const struct mock_gpu *g = mock_gpu_of(d);
    struct inside in = {.magic = MAGIC, .ordinal = d};
    if (!g || !g->soft)
        return WS_CU_INVALID_DEVICE;
    if (type != WS_CU_DEV_RESOURCE_TYPE_SM)
        return WS_CU_INVALID_RESOURCE_TYPE;
    for (uint32_t sm = 0; sm < g->soft->spec.n_sms; sm++)
        ws_sm_set_add(&in.sms, sm);
    put(r, &in);
    return WS_CU_SUCCESS;
}

ws_cu_result cuDevSmResourceSplitByCount(struct ws_cu_resource *result, unsigned *n,
                                         const struct ws_cu_resource *input,
                                         struct ws_cu_resource *remaining, unsigned flags,
                                         unsigned count)
{
    ENTER(MOCK_ANY);
    struct inside in;
    if (!get(input, &in) || in.split) {
        mock_violation("cuDevSmResourceSplitByCount: of what is no device's resource");
        return WS_CU_INVALID_RESOURCE_TYPE;
    }
    if (!n || flags > 3 || count > in.sms.n)
        return WS_CU_INVALID_VALUE;
    uint32_t each = WS_ALIGN_UP(WS_MAX(count, (unsigned)MIN), (unsigned)STEP),
             most = in.sms.n / each, all = in.sms.n, pair = 0;
    if (!result) {
        *n = most;
        return WS_CU_SUCCESS;
    }
    *n = WS_MIN(*n, most);
    uint32_t split = ++n_splits;
    struct inside rest = {.magic = MAGIC, .split = split, .ordinal = in.ordinal, .sms = in.sms};
    for (uint32_t k = 0; k < *n; k++) {
        struct inside out = {.magic = MAGIC, .split = split, .ordinal = in.ordinal};
        for (pair = k; out.sms.n < each; pair += *n)
            for (uint32_t sm = pair * 2 % all; sm < pair * 2 % all + 2; sm++) {
                ws_sm_set_add(&out.sms, sm);
                rest.sms.bits[sm / 64] &= ~(UINT64_C(1) << sm % 64);
            }
        rest.sms.n -= out.sms.n;
        put(&result[k], &out);
    }
    if (remaining && rest.sms.n)
        put(remaining, &rest);
    else if (remaining)
        *remaining = (struct ws_cu_resource){0};
    return WS_CU_SUCCESS;
}

ws_cu_result cuDevResourceGenerateDesc(ws_cu_desc *desc, struct ws_cu_resource *r, unsigned n)
{
    ENTER(MOCK_ANY);
    struct inside first, in;
    if (!n || !r || !get(&r[0], &first))
        return WS_CU_INVALID_RESOURCE_TYPE;
    struct ws_sm_set all = {0};
    for (unsigned k = 0; k < n; k++) {
        if (!get(&r[k], &in) || in.split != first.split || in.ordinal != first.ordinal) {
            mock_violation("cuDevResourceGenerateDesc: resources of several splits");
            return WS_CU_INVALID_RESOURCE_CONFIGURATION;
        }
        for (unsigned sm = 0; sm < WS_SM_MAX; sm++)
            if (ws_sm_set_has(&in.sms, sm)) {
                if (ws_sm_set_has(&all, sm))
                    mock_violation("cuDevResourceGenerateDesc: SM %u twice", sm);
                ws_sm_set_add(&all, sm);
            }
    }
    struct mock_green *g = ws_alloc(sizeof(*g)); /* a descriptor lives as long as its process */
    if (!g)
        return WS_CU_OUT_OF_MEMORY;
    g->sms = all;
    pthread_mutex_lock(&mock_lock);
    mock_object_add(&g->o, MOCK_DESC, mock_gpu_of(first.ordinal));
    pthread_mutex_unlock(&mock_lock);
    *desc = (ws_cu_desc)(void *)g;
    return WS_CU_SUCCESS;
}

ws_cu_result cuGreenCtxCreate(ws_cu_green *ret, ws_cu_desc desc, ws_cu_device d, unsigned flags)
{
    ENTER(MOCK_ANY);
    const struct mock_green *from = mock_object_of(desc, MOCK_DESC, __func__);
    if (!from)
        return WS_CU_INVALID_HANDLE;
    if (flags != WS_CU_GREEN_CTX_DEFAULT_STREAM || from->o.gpu != mock_gpu_of(d)) {
        mock_violation("cuGreenCtxCreate: without CU_GREEN_CTX_DEFAULT_STREAM, or of another GPU");
        return WS_CU_INVALID_VALUE;
    }
    struct mock_green *g = ws_alloc(sizeof(*g));
    if (!g)
        return WS_CU_OUT_OF_MEMORY;
    g->sms = from->sms;
    pthread_mutex_lock(&mock_lock);
    mock_object_add(&g->o, MOCK_GREEN, from->o.gpu);
    pthread_mutex_unlock(&mock_lock);
    *ret = (ws_cu_green)(void *)g;
    return WS_CU_SUCCESS;
}

ws_cu_result cuGreenCtxDestroy(ws_cu_green h)
{
    int r = mock_enter(__func__, MOCK_ANY);
    struct mock_green *g = mock_object_of(h, MOCK_GREEN, __func__);
    if (!g)
        return WS_CU_INVALID_HANDLE;
    if (g->n_streams && !r)
        mock_violation("cuGreenCtxDestroy: %u streams are left in it", g->n_streams);
    pthread_mutex_lock(&mock_lock);
    g->o.alive = false;
    pthread_mutex_unlock(&mock_lock);
    return r;
}

ws_cu_result cuGreenCtxStreamCreate(ws_cu_stream *s, ws_cu_green h, unsigned flags, int priority)
{
    ENTER(MOCK_ANY);
    struct mock_green *g = mock_object_of(h, MOCK_GREEN, __func__);
    if (!g)
        return WS_CU_INVALID_HANDLE;
    if (flags != WS_CU_STREAM_NON_BLOCKING) {
        mock_violation("cuGreenCtxStreamCreate: without CU_STREAM_NON_BLOCKING");
        return WS_CU_INVALID_VALUE;
    }
    struct mock_stream *st = mock_stream_new(g->o.gpu);
    if (!st)
        return WS_CU_OUT_OF_MEMORY;
    st->green = g;
    g->n_streams++;
    *s = (ws_cu_stream)(void *)st;
    return WS_CU_SUCCESS;
}
