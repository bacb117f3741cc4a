// SPDX-License-Identifier: Apache-2.0
/* Chapter "Library Management". A library belongs to no context. It is loaded at once on one
 * device, so that a wrong image is reported when its library is loaded, and on other devices when
 * something of it is used there. */
#include <stdlib.h>

#include "frontend/facade.h"
#include "frontend/module/jit.h"
#include "frontend/module/module.h"

enum { OPTION_HOST_TABLE = 0, OPTION_PRESERVED = 1 }; /* of cudaLibraryLoadData */

/* The driver's calls need no context: without one they work on the first device. */
static int begin(enum ws_api api, int *ret_device)
{
    const struct ws_cuda_context *c = ws_ctx_current();
    if (api == WS_RUNTIME)
        return ws_rt_enter(ret_device);
    *ret_device = c && ws_ctx_valid(c) ? c->device : 0;
    return ws_drv_check_init();
}

/* ---- loading ---- */

static int load(struct ws_library **ret, int device, const void *image, uint64_t bytes, bool copy,
                const int *jit_options, void **jit_values, unsigned n_jit)
{
    struct ws_jit jit;
    char *text;
    int code = ws_jit_read(&jit, n_jit, jit_options, jit_values);
    if (code)
        return code;
    code = ws_library_open(image, bytes, copy, device, ret, &text);
    ws_mod_report(&jit, code, text);
    free(text);
    return code;
}

static int check_options(enum ws_api api, const int *options, unsigned n)
{
    if (n && !options)
        return CUDA_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++) {
        if (options[i] == OPTION_HOST_TABLE) {
            ws_session_unsupported(api == WS_RUNTIME
                                       ? "cudaLibraryHostUniversalFunctionAndDataTable"
                                       : "CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE");
            return CUDA_NOT_SUPPORTED;
        }
        if (options[i] != OPTION_PRESERVED)
            return CUDA_INVALID_VALUE;
    }
    return CUDA_OK;
}

WS_BOTH_API(cudaLibraryLoadData, cuLibraryLoadData,
            (struct ws_library * *ret, const void *image, const int *jit_options, void **jit_values,
             unsigned n_jit, const int *options, void **values, unsigned n),
            (ret, image, jit_options, jit_values, n_jit, options, values, n))
{
    int device, code = begin(api, &device);
    if (!code && (!ret || !image))
        code = CUDA_INVALID_VALUE;
    if (!code)
        code = check_options(api, options, n);
    if (code)
        return code;
    bool preserved = n > 0; /* the only option that passes the check */
    return load(ret, device, image, 0, !preserved, jit_options, jit_values, n_jit);
}

WS_BOTH_API(cudaLibraryLoadFromFile, cuLibraryLoadFromFile,
            (struct ws_library * *ret, const char *path, const int *jit_options, void **jit_values,
             unsigned n_jit, const int *options, void **values, unsigned n),
            (ret, path, jit_options, jit_values, n_jit, options, values, n))
{
    char *data;
    uint64_t bytes;
    int device, code = begin(api, &device);
    if (code)
        return code;
    if (!ret || !path)
        return CUDA_INVALID_VALUE;
    code = ws_image_read_file(path, &data, &bytes);
    if (code)
        return code;
    code = load(ret, device, data, bytes, true, jit_options, jit_values, n_jit);
    free(data);
    return code;
}

WS_BOTH_API(cudaLibraryUnload, cuLibraryUnload, (struct ws_library * l), (l))
{
    int device, code = begin(api, &device);
    if (code || !ws_library_valid(l))
        return code ? code : CUDA_INVALID_HANDLE;
    ws_library_free(l);
    return CUDA_OK;
}

/* ---- what is in a library ---- */

WS_BOTH_API(cudaLibraryGetKernel, cuLibraryGetKernel,
            (struct ws_kernel * *ret, struct ws_library *l, const char *name), (ret, l, name))
{
    struct ws_fn *f;
    int device, code = begin(api, &device);
    if (code)
        return code;
    if (!ret || !name)
        return CUDA_INVALID_VALUE;
    if (!ws_library_valid(l))
        return CUDA_INVALID_HANDLE;
    struct ws_kernel *k = ws_library_kernel(l, name);
    code = k ? ws_kernel_fn(k, device, &f) : CUDA_OUT_OF_MEMORY;
    if (!code)
        *ret = k;
    return code;
}

/* The library's module on a device. Return: a CUDA code. */
static int module_of(struct ws_library *l, int device, struct ws_mod **ret)
{
    return ws_library_valid(l) ? ws_library_load(l, device, ret, NULL) : CUDA_INVALID_HANDLE;
}

WS_BOTH_API(cudaLibraryGetKernelCount, cuLibraryGetKernelCount,
            (unsigned *ret, struct ws_library *l), (ret, l))
{
    struct ws_mod *m;
    int device, code = begin(api, &device);
    if (code)
        return code;
    if (!ret)
        return CUDA_INVALID_VALUE;
    code = module_of(l, device, &m);
    if (!code)
        *ret = (unsigned)ws_mod_n_fns(m);
    return code;
}

WS_BOTH_API(cudaLibraryEnumerateKernels, cuLibraryEnumerateKernels,
            (struct ws_kernel * *ret, unsigned n, struct ws_library *l), (ret, n, l))
{
    struct ws_mod *m;
    struct ws_fn *f;
    int device, code = begin(api, &device);
    if (code)
        return code;
    if (!ret)
        return CUDA_INVALID_VALUE;
    code = module_of(l, device, &m);
    for (unsigned i = 0; i < n && !code; i++) {
        code = ws_mod_fn_at(m, i, &f);
        if (!code && !(ret[i] = ws_library_kernel(l, ws_function_info(f->function)->name)))
            code = CUDA_OUT_OF_MEMORY;
    }
    return code == CUDA_NOT_FOUND ? CUDA_OK : code;
}

static int variable_of(enum ws_api api, struct ws_library *l, int device, const char *name,
                       bool managed, uint64_t *ret_address, size_t *ret_bytes)
{
    struct ws_mod *m;
    uint64_t address, bytes;
    int code = name ? module_of(l, device, &m) : CUDA_INVALID_VALUE;
    if (!code)
        code = ws_api_error(api, ws_session_module_variable(m->module, name, &address, &bytes));
    if (!code && managed && !ws_session_module_variable_managed(m->module, name))
        code = CUDA_NOT_FOUND;
    if (code)
        return code;
    if (ret_address)
        *ret_address = address;
    if (ret_bytes)
        *ret_bytes = bytes;
    return CUDA_OK;
}

WS_BOTH_API(cudaLibraryGetGlobal, cuLibraryGetGlobal,
            (uint64_t * address, size_t *bytes, struct ws_library *l, const char *name),
            (address, bytes, l, name))
{
    WS_BOTH_ENTER(c);
    return variable_of(api, l, c->device, name, false, address, bytes);
}

WS_BOTH_API(cudaLibraryGetManaged, cuLibraryGetManaged,
            (uint64_t * address, size_t *bytes, struct ws_library *l, const char *name),
            (address, bytes, l, name))
{
    int device, code = begin(api, &device);
    return code ? code : variable_of(api, l, device, name, true, address, bytes);
}
