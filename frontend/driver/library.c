// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API: "Library Management". A library belongs to no context; here it is loaded at once on the current device (or the
 * first), so that a wrong image is told with its library, and on others when something of it is used there. */
#include <stdlib.h>

#include "frontend/facade.h"
#include "frontend/module/jit.h"
#include "frontend/module/module.h"

enum { OPTION_HOST_TABLE = 0, OPTION_PRESERVED = 1 };

/* The device that a call without a context works on. */
static int some_device(void)
{
    const struct ws_ctx *c = ws_ctx_current();
    return c && ws_ctx_valid(c) ? c->device : 0;
}

static int load(struct ws_library **ret, const void *image, uint64_t bytes, bool copy,
                const int *jit_options, void **jit_values, unsigned n_jit)
{
    struct ws_jit jit;
    char *text;
    int code = ws_jit_read(&jit, n_jit, jit_options, jit_values);
    if (code)
        return code;
    code = ws_library_open(image, bytes, copy, some_device(), ret, &text);
    ws_jit_report(&jit, text);
    free(text);
    return code;
}

WS_DRV_API(cuLibraryLoadData,
           (struct ws_library * *ret, const void *image, const int *jit_options, void **jit_values,
            unsigned n_jit, const int *options, void **values, unsigned n))
{
    bool preserved = false;
    int code = ws_drv_check_init();
    if (code)
        return code;
    if (!ret || !image || (n && !options))
        return CUDA_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        if (options[i] == OPTION_HOST_TABLE) {
            ws_session_unsupported("CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE");
            return CUDA_NOT_SUPPORTED;
        }
        if (options[i] != OPTION_PRESERVED)
            return CUDA_INVALID_VALUE;
        preserved = true;
    }
    return load(ret, image, 0, !preserved, jit_options, jit_values, n_jit);
}

WS_DRV_API(cuLibraryLoadFromFile,
           (struct ws_library * *ret, const char *path, const int *jit_options, void **jit_values,
            unsigned n_jit, const int *options, void **values, unsigned n))
{
    char *data;
    uint64_t bytes;
    int code = ws_drv_check_init();
    if (code)
        return code;
    if (!ret || !path)
        return CUDA_INVALID_VALUE;
    code = ws_image_read_file(path, &data, &bytes);
    if (code)
        return code;
    code = load(ret, data, bytes, true, jit_options, jit_values, n_jit);
    free(data);
    return code;
}

/* Body of a function about a library: returns unless it is one. */
#define CHECK_LIBRARY(l)                                                                           \
    do {                                                                                           \
        int code_ = ws_drv_check_init();                                                           \
        if (code_)                                                                                 \
            return code_;                                                                          \
        if (!ws_library_valid(l))                                                                  \
            return CUDA_INVALID_HANDLE;                                                            \
    } while (0)
#define CHECK_KERNEL(k)                                                                            \
    do {                                                                                           \
        int code_ = ws_drv_check_init();                                                           \
        if (code_)                                                                                 \
            return code_;                                                                          \
        if (!ws_kernel_valid(k))                                                                   \
            return CUDA_INVALID_HANDLE;                                                            \
    } while (0)

WS_DRV_API(cuLibraryUnload, (struct ws_library * l))
{
    CHECK_LIBRARY(l);
    ws_library_free(l);
    return CUDA_OK;
}

WS_DRV_API(cuLibraryGetModule, (struct ws_mod * *ret, struct ws_library *l))
{
    WS_DRV_ENTER(c);
    CHECK_LIBRARY(l);
    return ret ? ws_library_load(l, c->device, ret, NULL) : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuLibraryGetKernel, (struct ws_kernel * *ret, struct ws_library *l, const char *name))
{
    struct ws_fn *f;
    CHECK_LIBRARY(l);
    if (!ret || !name)
        return CUDA_INVALID_VALUE;
    struct ws_kernel *k = ws_library_kernel(l, name);
    if (!k)
        return CUDA_OUT_OF_MEMORY;
    int code = ws_kernel_fn(k, some_device(), &f);
    if (!code)
        *ret = k;
    return code;
}

WS_DRV_API(cuLibraryGetKernelCount, (unsigned *ret, struct ws_library *l))
{
    struct ws_mod *m;
    CHECK_LIBRARY(l);
    if (!ret)
        return CUDA_INVALID_VALUE;
    int code = ws_library_load(l, some_device(), &m, NULL);
    if (!code)
        *ret = (unsigned)ws_mod_n_fns(m);
    return code;
}

WS_DRV_API(cuLibraryEnumerateKernels, (struct ws_kernel * *ret, unsigned n, struct ws_library *l))
{
    struct ws_mod *m;
    struct ws_fn *f;
    CHECK_LIBRARY(l);
    if (!ret)
        return CUDA_INVALID_VALUE;
    int code = ws_library_load(l, some_device(), &m, NULL);
    for (unsigned i = 0; i < n && !code; i++) {
        code = ws_mod_fn_at(m, i, &f);
        if (!code && !(ret[i] = ws_library_kernel(l, ws_function_info(f->function)->name)))
            code = CUDA_OUT_OF_MEMORY;
    }
    return code == CUDA_NOT_FOUND ? CUDA_OK : code;
}

static int variable_of(struct ws_library *l, int device, const char *name, bool managed,
                       uint64_t *address, size_t *bytes)
{
    struct ws_mod *m;
    uint64_t a, n;
    int code = ws_library_load(l, device, &m, NULL);
    if (!code)
        code = ws_drv_error(ws_session_module_variable(m->module, name, &a, &n));
    if (!code && managed && !ws_session_module_variable_managed(m->module, name))
        code = CUDA_NOT_FOUND;
    if (code)
        return code;
    if (address)
        *address = a;
    if (bytes)
        *bytes = n;
    return CUDA_OK;
}

WS_DRV_API(cuLibraryGetGlobal,
           (uint64_t * address, size_t *bytes, struct ws_library *l, const char *name))
{
    WS_DRV_ENTER(c);
    CHECK_LIBRARY(l);
    return name ? variable_of(l, c->device, name, false, address, bytes) : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuLibraryGetManaged,
           (uint64_t * address, size_t *bytes, struct ws_library *l, const char *name))
{
    CHECK_LIBRARY(l);
    return name ? variable_of(l, some_device(), name, true, address, bytes) : CUDA_INVALID_VALUE;
}

/* ---- kernels ---- */

WS_DRV_API(cuKernelGetFunction, (struct ws_fn * *ret, struct ws_kernel *k))
{
    WS_DRV_ENTER(c);
    CHECK_KERNEL(k);
    return ret ? ws_kernel_fn(k, c->device, ret) : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuKernelGetName, (const char **ret, struct ws_kernel *k))
{
    CHECK_KERNEL(k);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = k->name;
    return CUDA_OK;
}

WS_DRV_API(cuKernelGetLibrary, (struct ws_library * *ret, struct ws_kernel *k))
{
    CHECK_KERNEL(k);
    if (!ret)
        return CUDA_INVALID_VALUE;
    *ret = k->library;
    return CUDA_OK;
}

/* A kernel on a device by number. Return: a CUDA code. */
static int kernel_on(struct ws_kernel *k, int device, struct ws_fn **ret)
{
    CHECK_KERNEL(k);
    return ws_session_device(device) ? ws_kernel_fn(k, device, ret) : CUDA_INVALID_DEVICE;
}

WS_DRV_API(cuKernelGetAttribute, (int *ret, int attribute, struct ws_kernel *k, int device))
{
    struct ws_fn *f;
    int code = kernel_on(k, device, &f);
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    return ws_fn_attribute(f, attribute, ret);
}

WS_DRV_API(cuKernelSetAttribute, (int attribute, int value, struct ws_kernel *k, int device))
{
    struct ws_fn *f;
    int code = kernel_on(k, device, &f);
    return code ? code : ws_fn_set_attribute(f, attribute, value);
}

WS_DRV_API(cuKernelSetCacheConfig, (struct ws_kernel * k, int config, int device))
{
    struct ws_fn *f;
    int code = kernel_on(k, device, &f);
    if (code || config < 0 || config > 3)
        return code ? code : CUDA_INVALID_VALUE;
    f->cache_config = config;
    return CUDA_OK;
}

WS_DRV_API(cuKernelGetParamInfo, (struct ws_kernel * k, size_t i, size_t *offset, size_t *bytes))
{
    struct ws_fn *f;
    int code = kernel_on(k, some_device(), &f);
    return code ? code : ws_fn_param(f, i, offset, bytes);
}
