// SPDX-License-Identifier: Apache-2.0
/* CUDA Driver API: "Module Management", "Library Management" as far as it loads and finds. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "frontend/facade.h"
#include "frontend/module.h"

/* ---- options of the just-in-time compiler: only the logs matter here ---- */
enum { JIT_INFO_LOG = 3, JIT_INFO_LOG_BYTES = 4, JIT_ERROR_LOG = 5, JIT_ERROR_LOG_BYTES = 6, JIT_OPTIONS_MAX = 64 };

struct jit {
    char *error_log;
    size_t error_bytes;
    void **error_bytes_slot, **info_bytes_slot; /* the compiler says there how much it wrote */
    char *info_log;
    size_t info_bytes;
};

/* An option's value is the pointer itself (manual, cuModuleLoadDataEx). */
static int jit_read(struct jit *j, unsigned n, const int *options, void **values)
{
    *j = (struct jit){0};
    if (n && (!options || !values))
        return CUDA_INVALID_VALUE;
    for (unsigned i = 0; i < n && i < JIT_OPTIONS_MAX; i++) {
        switch (options[i]) {
        case JIT_INFO_LOG:
            j->info_log = values[i];
            break;
        case JIT_INFO_LOG_BYTES:
            j->info_bytes = (unsigned)(uintptr_t)values[i];
            j->info_bytes_slot = &values[i];
            break;
        case JIT_ERROR_LOG:
            j->error_log = values[i];
            break;
        case JIT_ERROR_LOG_BYTES:
            j->error_bytes = (unsigned)(uintptr_t)values[i];
            j->error_bytes_slot = &values[i];
            break;
        default: /* optimisation levels and the like: nothing depends on them */
            break;
        }
    }
    return CUDA_OK;
}

static void log_write(char *log, size_t bytes, void **slot, const char *text)
{
    size_t n = 0;
    if (log && bytes) {
        n = WS_MIN(strlen(text), bytes - 1);
        memcpy(log, text, n);
        log[n] = 0;
    }
    if (slot)
        *slot = (void *)(uintptr_t)n;
}

static int load(struct ws_mod **ret, const void *image, uint64_t bytes, const char *name, struct jit *j)
{
    char *text = NULL;
    WS_DRV_ENTER(c);
    if (!ret || !image)
        return CUDA_INVALID_VALUE;
    int code = ws_mod_load(c->device, image, bytes, name, ret, &text);
    log_write(j->info_log, j->info_bytes, j->info_bytes_slot, "");
    log_write(j->error_log, j->error_bytes, j->error_bytes_slot, text ? text : "");
    free(text);
    if (!code)
        ws_ctx_own(c, WS_OWNED_MODULE, (uintptr_t)*ret);
    return code;
}

WS_DRV_API(cuModuleLoadData, (struct ws_mod **ret, const void *image))
{
    struct jit none = {0};
    return load(ret, image, 0, NULL, &none);
}

WS_DRV_API(cuModuleLoadDataEx, (struct ws_mod **ret, const void *image, unsigned n, const int *options, void **values))
{
    struct jit j;
    int code = jit_read(&j, n, options, values);
    return code ? code : load(ret, image, 0, NULL, &j);
}

WS_DRV_API(cuModuleLoadFatBinary, (struct ws_mod **ret, const void *image))
{
    return cuModuleLoadData(ret, image);
}

/* A file as one zero-terminated text or image. */
static int file_read(const char *path, char **ret, uint64_t *ret_bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return CUDA_FILE_NOT_FOUND;
    size_t n = 0, size = !fstat(fd, &st) && S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
    char *data = size ? ws_alloc(size + 1) : NULL;
    while (data && n < size) {
        ssize_t r = read(fd, data + n, size - n);
        if (r <= 0)
            break;
        n += (size_t)r;
    }
    close(fd);
    if (!data || n < size) {
        free(data);
        return size ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_IMAGE;
    }
    *ret = data;
    *ret_bytes = size;
    return CUDA_OK;
}

WS_DRV_API(cuModuleLoad, (struct ws_mod **ret, const char *path))
{
    struct jit none = {0};
    char *data;
    uint64_t bytes;
    WS_DRV_ENTER(c);
    (void)c;
    if (!ret || !path)
        return CUDA_INVALID_VALUE;
    int code = file_read(path, &data, &bytes);
    if (code)
        return code;
    code = load(ret, data, bytes, path, &none);
    free(data);
    return code;
}

WS_DRV_API(cuModuleUnload, (struct ws_mod * m))
{
    WS_DRV_ENTER(c);
    (void)c;
    if (!ws_mod_valid(m) || m->library)
        return CUDA_INVALID_HANDLE;
    ws_ctx_disown(WS_OWNED_MODULE, (uintptr_t)m);
    return ws_mod_unload(m);
}

WS_DRV_API(cuModuleGetFunction, (struct ws_fn * *ret, struct ws_mod *m, const char *name))
{
    WS_DRV_ENTER(c);
    (void)c;
    if (!ret || !name)
        return CUDA_INVALID_VALUE;
    return ws_mod_valid(m) ? ws_mod_fn(m, name, ret) : CUDA_INVALID_HANDLE;
}

WS_DRV_API(cuModuleGetGlobal_v2, (uint64_t * address, size_t *bytes, struct ws_mod *m, const char *name))
{
    uint64_t a, n;
    WS_DRV_ENTER(c);
    (void)c;
    if (!name)
        return CUDA_INVALID_VALUE;
    if (!ws_mod_valid(m))
        return CUDA_INVALID_HANDLE;
    ws_err e = ws_session_module_variable(m->module, name, &a, &n);
    if (e)
        return ws_drv_error(e);
    if (address)
        *address = a;
    if (bytes)
        *bytes = n;
    return CUDA_OK;
}

WS_DRV_API(cuModuleGetLoadingMode, (int *ret))
{
    enum { LAZY = 2 };
    int code = ws_drv_check_init();
    if (code || !ret)
        return code ? code : CUDA_INVALID_VALUE;
    *ret = LAZY;
    return CUDA_OK;
}

/* ---- libraries: images that are loaded on a device when something of them is used there ---- */

static int library_load(struct ws_library **ret, const void *image, uint64_t bytes, bool copy)
{
    WS_DRV_ENTER(c);
    struct ws_mod *m;
    char *text = NULL;
    int code = ws_library_new(image, bytes, copy, ret);
    if (code)
        return code;
    code = ws_library_load(*ret, c->device, &m, &text); /* so that wrong images are found out now */
    free(text);
    if (code)
        ws_library_free(*ret);
    return code;
}

WS_DRV_API(cuLibraryLoadData, (struct ws_library **ret, const void *image, const int *jit_options, void **jit_values, unsigned n_jit,
                               const int *options, void **values, unsigned n))
{
    /* The image must stay where it is until the library is unloaded only if the program says so; PTX text and fatbins are sent to
     * the daemon by the load below, so no copy is needed for this device; others load when they are used, from the program's own. */
    return ret && image ? library_load(ret, image, 0, false) : CUDA_INVALID_VALUE;
}

WS_DRV_API(cuLibraryLoadFromFile, (struct ws_library **ret, const char *path, const int *jit_options, void **jit_values, unsigned n_jit,
                                   const int *options, void **values, unsigned n))
{
    char *data;
    uint64_t bytes;
    if (!ret || !path)
        return CUDA_INVALID_VALUE;
    int code = file_read(path, &data, &bytes);
    if (code)
        return code;
    code = library_load(ret, data, bytes, true);
    free(data);
    return code;
}

WS_DRV_API(cuLibraryUnload, (struct ws_library * l))
{
    int code = ws_drv_check_init();
    if (code)
        return code;
    if (!ws_library_valid(l))
        return CUDA_INVALID_HANDLE;
    ws_library_free(l);
    return CUDA_OK;
}

WS_DRV_API(cuLibraryGetModule, (struct ws_mod **ret, struct ws_library *l))
{
    WS_DRV_ENTER(c);
    if (!ret)
        return CUDA_INVALID_VALUE;
    return ws_library_valid(l) ? ws_library_load(l, c->device, ret, NULL) : CUDA_INVALID_HANDLE;
}

WS_DRV_API(cuLibraryGetKernel, (struct ws_kernel * *ret, struct ws_library *l, const char *name))
{
    struct ws_fn *f;
    WS_DRV_ENTER(c);
    if (!ret || !name)
        return CUDA_INVALID_VALUE;
    if (!ws_library_valid(l))
        return CUDA_INVALID_HANDLE;
    struct ws_kernel *k = ws_library_kernel(l, name);
    if (!k)
        return CUDA_OUT_OF_MEMORY;
    int code = ws_kernel_fn(k, c->device, &f);
    if (!code)
        *ret = k;
    return code;
}

WS_DRV_API(cuLibraryGetGlobal, (uint64_t * address, size_t *bytes, struct ws_library *l, const char *name))
{
    struct ws_mod *m;
    WS_DRV_ENTER(c);
    if (!ws_library_valid(l))
        return CUDA_INVALID_HANDLE;
    int code = ws_library_load(l, c->device, &m, NULL);
    return code ? code : cuModuleGetGlobal_v2(address, bytes, m, name);
}

WS_DRV_API(cuKernelGetFunction, (struct ws_fn **ret, struct ws_kernel *k))
{
    WS_DRV_ENTER(c);
    if (!ret)
        return CUDA_INVALID_VALUE;
    return ws_kernel_valid(k) ? ws_kernel_fn(k, c->device, ret) : CUDA_INVALID_HANDLE;
}

WS_DRV_API(cuKernelGetName, (const char **ret, struct ws_kernel *k))
{
    if (!ret)
        return CUDA_INVALID_VALUE;
    if (!ws_kernel_valid(k))
        return CUDA_INVALID_HANDLE;
    *ret = k->name;
    return CUDA_OK;
}

WS_DRV_API(cuKernelGetLibrary, (struct ws_library **ret, struct ws_kernel *k))
{
    if (!ret)
        return CUDA_INVALID_VALUE;
    if (!ws_kernel_valid(k))
        return CUDA_INVALID_HANDLE;
    *ret = k->library;
    return CUDA_OK;
}
