// SPDX-License-Identifier: Apache-2.0
/* Opening the driver. Every entry point comes from cuGetProcAddress with the version that the
 * declarations were written for. The symbol table is not used: plain names in it are those of
 * CUDA's first versions. */
#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef ws_cu_result get_proc_fn(const char *name, void **ret, int version,
                                 unsigned long long flags, int *status);

const char *ws_cu_result_name(ws_cu_result r, char *buf, size_t size)
{
    const char *name = "";
    switch (r) {
#define X(id, n)                                                                                   \
    case (n):                                                                                      \
        name = #id;                                                                                \
        break;
        WS_CU_RESULTS(X)
#undef X
    default:
        break;
    }
    snprintf(buf, size, "%s%s%d%s", name, *name ? " (" : "CUDA error ", r, *name ? ")" : "");
    return buf;
}

static void *get(get_proc_fn *proc, const char *name, bool needed)
{
    void *p = NULL;
    int status = 0;
    ws_cu_result r = proc(name, &p, WS_CU_VERSION, 0, &status);
    if ((r != WS_CU_SUCCESS || !p) && !needed)
        r = proc(name, &p, WS_CU_VERSION_LATER, 0, &status);
    return r == WS_CU_SUCCESS ? p : NULL;
}

static bool fill(struct ws_cu *cu, get_proc_fn *proc, const char *library, struct ws_diags *diags)
{
    const char *missing = NULL;
#define X(name, needed, args)                                                                      \
    {                                                                                              \
        void *p = get(proc, #name, (needed));                                                      \
        memcpy(&cu->name, &p, sizeof(p));                                                          \
        if (!p && (needed) && !missing)                                                            \
            missing = #name;                                                                       \
    }
    WS_CU_FUNCTIONS(X)
#undef X
    if (missing)
        ws_diags_add(diags, library, 0, 0, "has no %s: a driver for CUDA 12.4 or newer is needed",
                     missing);
    return !missing;
}

int ws_cu_open(struct ws_cu *ret, const char *library, struct ws_diags *diags)
{
    struct ws_cu cu = {0};
    char text[64];
    library = library ? library : "libcuda.so.1";
    cu.library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!cu.library) {
        ws_diags_add(diags, library, 0, 0, "NVIDIA's driver library cannot be opened: %s",
                     dlerror());
        return WS_CU_E_MISSING;
    }
    get_proc_fn *proc;
    void *sym = dlsym(cu.library, "cuGetProcAddress_v2");
    memcpy(&proc, &sym, sizeof(sym));
    if (!proc)
        ws_diags_add(diags, library, 0, 0,
                     "has no cuGetProcAddress_v2: a driver for CUDA 12.4 or newer is needed");
    if (!proc || !fill(&cu, proc, library, diags)) {
        ws_cu_close(&cu);
        return WS_CU_E_MISSING;
    }
    /* As many hardware queues as there are, so that streams wait for each other less; and a first
     * launch that does not wait for kernels while its code is loaded. */
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    ws_cu_result r = cu.cuInit(0);
    if (r == WS_CU_SUCCESS)
        r = cu.cuDriverGetVersion(&cu.version);
    if (r != WS_CU_SUCCESS) {
        ws_diags_add(diags, library, 0, 0, "the driver does not start: %s",
                     ws_cu_result_name(r, text, sizeof(text)));
    } else if (cu.version < WS_CU_VERSION) {
        ws_diags_add(diags, library, 0, 0, "the driver is for CUDA %d.%d; 12.4 or newer is needed",
                     cu.version / 1000, cu.version % 1000 / 10);
        r = WS_CU_NOT_SUPPORTED;
    }
    if (r != WS_CU_SUCCESS) {
        ws_cu_close(&cu);
        return WS_CU_E_MISSING;
    }
    *ret = cu;
    return 0;
}

void ws_cu_close(struct ws_cu *cu)
{
    if (cu->library)
        dlclose(cu->library);
    cu->library = NULL;
}
