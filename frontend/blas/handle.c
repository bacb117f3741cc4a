// SPDX-License-Identifier: Apache-2.0
/* frontend/blas/handle.c - cuBLAS's handle and what is set in it, which is cuBLASLt's, too. */
#include <stdlib.h>

#include "base/alloc.h"
#include "frontend/blas/blas.h"

/* Of libwattshare.so. */
int cuCtxGetCurrent(void **ret);
int cuMemAlloc_v2(uint64_t *ret, size_t bytes);
int cuMemFree_v2(uint64_t at);
int cudaFree(void *at);

enum { VERSION = 130000, RESULT_BYTES = 16 };

static int create(struct ws_blas **ret)
{
    void *context = NULL;
    struct ws_blas *h;
    if (!ret)
        return BLAS_INVALID;
    /* The runtime makes a context at the first call that needs one. */
    if ((cuCtxGetCurrent(&context) || !context) && cudaFree(NULL))
        return BLAS_NOT_INITIALIZED;
    struct whole {
        struct ws_blas handle;
        struct ws_blas_code code;
    } *w = ws_alloc(sizeof(*w));
    if (!w)
        return BLAS_NO_MEMORY;
    h = &w->handle;
    h->magic = WS_BLAS_MAGIC;
    h->code = &w->code;
    int r = ws_blas_status(cuMemAlloc_v2(&h->result, RESULT_BYTES));
    if (r) {
        free(w);
        return r;
    }
    *ret = h;
    return BLAS_OK;
}

static int destroy(struct ws_blas *h)
{
    if (!ws_blas_valid(h))
        return BLAS_NOT_INITIALIZED;
    (void)cuMemFree_v2(h->result); /* waits for the handle's kernels */
    ws_blas_unload(h);
    h->magic = 0;
    free(h);
    return BLAS_OK;
}

BLAS_API(cublasCreate_v2, (struct ws_blas * *ret))
{
    return create(ret);
}
BLAS_API(cublasLtCreate, (struct ws_blas * *ret))
{
    return create(ret);
}
BLAS_API(cublasDestroy_v2, (struct ws_blas * h))
{
    return destroy(h);
}
BLAS_API(cublasLtDestroy, (struct ws_blas * h))
{
    return destroy(h);
}

/* A setting and the question for it. */
#define SETTING(set, get, type, field)                                                             \
    BLAS_API(set, (struct ws_blas * h, type value))                                                \
    {                                                                                              \
        if (!ws_blas_valid(h))                                                                     \
            return BLAS_NOT_INITIALIZED;                                                           \
        h->field = value;                                                                          \
        return BLAS_OK;                                                                            \
    }                                                                                              \
    BLAS_API(get, (struct ws_blas * h, type * ret))                                                \
    {                                                                                              \
        if (!ws_blas_valid(h))                                                                     \
            return BLAS_NOT_INITIALIZED;                                                           \
        if (!ret)                                                                                  \
            return BLAS_INVALID;                                                                   \
        *ret = h->field;                                                                           \
        return BLAS_OK;                                                                            \
    }
SETTING(cublasSetStream_v2, cublasGetStream_v2, void *, stream)
SETTING(cublasSetPointerMode_v2, cublasGetPointerMode_v2, int, scalars)
SETTING(cublasSetMathMode, cublasGetMathMode, int, math)
SETTING(cublasSetAtomicsMode, cublasGetAtomicsMode, int, atomics)
SETTING(cublasSetSmCountTarget, cublasGetSmCountTarget, int, sm_target)

/* Memory for work is taken from the device's pool. */
BLAS_API(cublasSetWorkspace_v2, (struct ws_blas * h, void *memory, size_t bytes))
{
    (void)memory;
    (void)bytes;
    return ws_blas_valid(h) ? BLAS_OK : BLAS_NOT_INITIALIZED;
}

BLAS_API(cublasGetVersion_v2, (struct ws_blas * h, int *ret))
{
    (void)h;
    if (!ret)
        return BLAS_INVALID;
    *ret = VERSION;
    return BLAS_OK;
}

/* @what: 0, 1, 2: major version, minor version, patch level. */
static int property(int what, int *ret)
{
    static const int values[] = {VERSION / 10000, VERSION / 100 % 100, VERSION % 100};
    if (what < 0 || what >= (int)WS_ARRAY_SIZE(values) || !ret)
        return BLAS_INVALID;
    *ret = values[what];
    return BLAS_OK;
}
BLAS_API(cublasGetProperty, (int what, int *ret))
{
    return property(what, ret);
}
BLAS_API(cublasLtGetProperty, (int what, int *ret))
{
    return property(what, ret);
}

WS_EXPORT size_t cublasGetCudartVersion(void);
size_t cublasGetCudartVersion(void)
{
    return VERSION / 10;
}
WS_EXPORT size_t cublasLtGetCudartVersion(void);
size_t cublasLtGetCudartVersion(void)
{
    return VERSION / 10;
}
WS_EXPORT size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    return VERSION;
}

/* ---- names of statuses ---- */
static const char *const statuses[][2] = {
    [BLAS_OK] = {"CUBLAS_STATUS_SUCCESS", "success"},
    [BLAS_NOT_INITIALIZED] = {"CUBLAS_STATUS_NOT_INITIALIZED", "there is no such handle"},
    [BLAS_NO_MEMORY] = {"CUBLAS_STATUS_ALLOC_FAILED", "out of memory"},
    [BLAS_INVALID] = {"CUBLAS_STATUS_INVALID_VALUE", "an argument is not valid"},
    [BLAS_FAILED] = {"CUBLAS_STATUS_EXECUTION_FAILED", "the GPU did not execute it"},
    [BLAS_NOT_SUPPORTED] = {"CUBLAS_STATUS_NOT_SUPPORTED", "not supported"},
};
static const char *status_text(int status, int which)
{
    bool known = status >= 0 && status < (int)WS_ARRAY_SIZE(statuses) && statuses[status][0];
    return known ? statuses[status][which] : "unknown status";
}
#define STATUS_TEXT(name, which)                                                                   \
    WS_EXPORT const char *name(int status);                                                        \
    const char *name(int status)                                                                   \
    {                                                                                              \
        return status_text(status, which);                                                         \
    }
STATUS_TEXT(cublasGetStatusName, 0)
STATUS_TEXT(cublasGetStatusString, 1)
STATUS_TEXT(cublasLtGetStatusName, 0)
STATUS_TEXT(cublasLtGetStatusString, 1)

/* There is no log. */
BLAS_API(cublasLoggerConfigure, (int on, int to_stdout, int to_stderr, const char *file))
{
    (void)on;
    (void)to_stdout;
    (void)to_stderr;
    (void)file;
    return BLAS_OK;
}
