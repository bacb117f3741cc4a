// SPDX-License-Identifier: Apache-2.0
/* Chapters "Library Management" and "Driver Entry Point Access". */
#include <stdlib.h>

#include "frontend/interpose/entrypoints.h"
#include "frontend/facade.h"
#include "frontend/module/jit.h"
#include "frontend/module/module.h"
#include "frontend/module/registry.h"

enum { OPTION_PRESERVED = 1 };

static int load(struct ws_library **ret, int device, const void *image, uint64_t bytes, bool copy,
                const int *jit_options, void **jit_values, unsigned n_jit)
{
    struct ws_jit jit;
    char *text;
    int code = ws_jit_read(&jit, n_jit, jit_options, jit_values);
    if (code)
        return ws_rt_record(code);
    code = ws_library_open(image, bytes, copy, device, ret, &text);
    ws_jit_report(&jit, text);
    free(text);
    return ws_rt_record(code);
}

WS_RT_API(cudaLibraryLoadData,
          (struct ws_library * *ret, const void *image, const int *jit_options, void **jit_values,
           unsigned n_jit, const int *options, void **values, unsigned n))
{
    WS_RT_ENTER(device);
    if (!ret || !image || (n && !options))
        return ws_rt_record(CUDA_INVALID_VALUE);
    for (unsigned i = 0; i < n; i++) {
        if (options[i] != OPTION_PRESERVED) {
            ws_session_unsupported("cudaLibraryHostUniversalFunctionAndDataTable");
            return ws_rt_record(CUDA_NOT_SUPPORTED);
        }
    }
    return load(ret, device, image, 0, n == 0, jit_options, jit_values, n_jit);
}

WS_RT_API(cudaLibraryLoadFromFile,
          (struct ws_library * *ret, const char *path, const int *jit_options, void **jit_values,
           unsigned n_jit, const int *options, void **values, unsigned n))
{
    char *data;
    uint64_t bytes;
    WS_RT_ENTER(device);
    if (!ret || !path)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = ws_image_read_file(path, &data, &bytes);
    if (code)
        return ws_rt_record(code);
    code = load(ret, device, data, bytes, true, jit_options, jit_values, n_jit);
    free(data);
    return code;
}

WS_RT_API(cudaLibraryUnload, (struct ws_library * l))
{
    WS_RT_ENTER(device);
    (void)device;
    if (!ws_library_valid(l))
        return ws_rt_record(CUDA_INVALID_HANDLE);
    ws_library_free(l);
    return CUDA_OK;
}

WS_RT_API(cudaLibraryGetKernel, (struct ws_kernel * *ret, struct ws_library *l, const char *name))
{
    struct ws_fn *f;
    WS_RT_ENTER(device);
    if (!ret || !name)
        return ws_rt_record(CUDA_INVALID_VALUE);
    if (!ws_library_valid(l))
        return ws_rt_record(CUDA_INVALID_HANDLE);
    struct ws_kernel *k = ws_library_kernel(l, name);
    int code = k ? ws_kernel_fn(k, device, &f) : CUDA_OUT_OF_MEMORY;
    if (!code)
        *ret = k;
    return ws_rt_record(code);
}

/* The library's module on the current device. Return: a CUDA code. */
static int module_of(struct ws_library *l, int device, struct ws_mod **ret)
{
    return ws_library_valid(l) ? ws_library_load(l, device, ret, NULL) : CUDA_INVALID_HANDLE;
}

WS_RT_API(cudaLibraryGetKernelCount, (unsigned *ret, struct ws_library *l))
{
    struct ws_mod *m;
    WS_RT_ENTER(device);
    if (!ret)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = module_of(l, device, &m);
    if (!code)
        *ret = (unsigned)ws_mod_n_fns(m);
    return ws_rt_record(code);
}

WS_RT_API(cudaLibraryEnumerateKernels, (struct ws_kernel * *ret, unsigned n, struct ws_library *l))
{
    struct ws_mod *m;
    struct ws_fn *f;
    WS_RT_ENTER(device);
    if (!ret)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = module_of(l, device, &m);
    for (unsigned i = 0; i < n && !code; i++) {
        code = ws_mod_fn_at(m, i, &f);
        if (!code && !(ret[i] = ws_library_kernel(l, ws_function_info(f->function)->name)))
            code = CUDA_OUT_OF_MEMORY;
    }
    return ws_rt_record(code == CUDA_NOT_FOUND ? CUDA_OK : code);
}

WS_RT_API(cudaLibraryGetGlobal,
          (void **address, size_t *bytes, struct ws_library *l, const char *name))
{
    struct ws_mod *m;
    uint64_t a, n;
    WS_RT_ENTER(device);
    if (!name)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = module_of(l, device, &m);
    if (!code)
        code = ws_rt_error(ws_session_module_variable(m->module, name, &a, &n));
    if (code)
        return ws_rt_record(code);
    if (address)
        *address = (void *)(uintptr_t)a;
    if (bytes)
        *bytes = n;
    return CUDA_OK;
}

WS_RT_API(cudaLibraryGetManaged,
          (void **address, size_t *bytes, struct ws_library *l, const char *name))
{
    struct ws_mod *m;
    uint64_t a, n;
    WS_RT_ENTER(device);
    if (!name)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = module_of(l, device, &m);
    if (!code)
        code = ws_rt_error(ws_session_module_variable(m->module, name, &a, &n));
    if (!code && !ws_session_module_variable_managed(m->module, name))
        code = CUDA_NOT_FOUND;
    if (code)
        return ws_rt_record(code);
    if (address)
        *address = (void *)(uintptr_t)a;
    if (bytes)
        *bytes = n;
    return CUDA_OK;
}

/* ---- entry points of the driver ---- */

enum {
    FLAG_LEGACY_STREAM = 1,
    FLAG_PER_THREAD_STREAM = 2,
    FOUND = 0,
    SYMBOL_NOT_FOUND = 1,
    VERSION_NOT_SUFFICIENT = 2
};

static int entry_point(const char *name, void **ret, unsigned version, unsigned long long flags,
                       int *status, bool per_thread)
{
    bool known;
    if (!name || !ret || flags > FLAG_PER_THREAD_STREAM)
        return ws_rt_record(CUDA_INVALID_VALUE);
    int code = ws_facade_open(); /* as any runtime call it initialises the driver */
    if (code && code != CUDA_NO_DEVICE)
        return ws_rt_record(code);
    ws_drv_set_init();
    if (flags)
        per_thread = flags == FLAG_PER_THREAD_STREAM;
    *ret = ws_entrypoint_driver(name, (int)version, per_thread, &known);
    if (status)
        *status = *ret ? FOUND : known ? VERSION_NOT_SUFFICIENT : SYMBOL_NOT_FOUND;
    return CUDA_OK; /* what was not found is told by the status */
}

WS_RT_STREAM_API(cudaGetDriverEntryPoint, _ptsz,
                 (const char *name, void **ret, unsigned long long flags, int *status),
                 (name, ret, flags, status))
{
    return entry_point(name, ret, WS_CUDA_VERSION, flags, status, per_thread);
}

WS_RT_STREAM_API(cudaGetDriverEntryPointByVersion, _ptsz,
                 (const char *name, void **ret, unsigned version, unsigned long long flags,
                  int *status),
                 (name, ret, version, flags, status))
{
    return entry_point(name, ret, version, flags, status, per_thread);
}
