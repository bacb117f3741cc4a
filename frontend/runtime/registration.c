// SPDX-License-Identifier: Apache-2.0
/* What nvcc's start-up code calls, and the calls that a launch with <<<…>>> becomes.
 *
 * Each translation unit registers its image (fatbin) and gets a handle. With the handle it
 * registers its kernels and variables, as pairs of an address in the program and a name on the
 * device. Launches and copies of symbols give the address only. What was registered is kept by
 * module/registry.c. */
#include "frontend/facade.h"
#include "frontend/module/registry.h"

/* ---- registration ---- */

WS_RT_TYPED_API(__cudaRegisterFatBinary, void **, (void *wrapper))
{
    return (void **)ws_registry_open(wrapper);
}

WS_RT_TYPED_API(__cudaRegisterFatBinaryEnd, void, (void **handle))
{
}

WS_RT_TYPED_API(__cudaUnregisterFatBinary, void, (void **handle))
{
    ws_registry_close((struct ws_registration *)handle);
}

WS_RT_TYPED_API(__cudaRegisterFunction, void,
                (void **handle, const char *host, char *device, const char *name, int thread_limit,
                 void *tid, void *bid, void *block, void *grid, int *warp_size))
{
    ws_registry_add((struct ws_registration *)handle, host, name, WS_REGISTERED_KERNEL);
}

WS_RT_TYPED_API(__cudaRegisterVar, void,
                (void **handle, char *host, char *address, const char *name, int external,
                 size_t bytes, int constant, int global))
{
    ws_registry_add((struct ws_registration *)handle, host, name, WS_REGISTERED_VARIABLE);
}

/* The program reads the variable's address from *@host, after __cudaInitModule(). */
WS_RT_TYPED_API(__cudaRegisterManagedVar, void,
                (void **handle, void **host, char *address, const char *name, int external,
                 size_t bytes, int constant, int global))
{
    ws_registry_add((struct ws_registration *)handle, host, name, WS_REGISTERED_MANAGED);
}

WS_RT_TYPED_API(__cudaRegisterHostVar, void,
                (void **handle, const char *name, char *host, size_t bytes))
{
    ws_session_unsupported("__cudaRegisterHostVar");
}

WS_RT_TYPED_API(__cudaRegisterUnifiedTable, void, (void **handle, void *table))
{
    ws_session_unsupported("__cudaRegisterUnifiedTable");
}

/* Called before the program first touches a managed variable of this image. */
WS_RT_TYPED_API(__cudaInitModule, char, (void **handle))
{
    int device;
    return !ws_rt_enter(&device) &&
           ws_registry_init_managed((struct ws_registration *)handle, device);
}

/* ---- <<<…>>> ---- */

enum { PUSHED_MAX = 16 }; /* a launch inside of another's arguments inside of … */
struct pushed {
    struct cuda_dim3 grid, block;
    size_t shared_bytes;
    void *stream;
};
static __thread struct {
    int n;
    struct pushed v[PUSHED_MAX];
} pushed __attribute__((tls_model("initial-exec")));

WS_RT_TYPED_API(__cudaPushCallConfiguration, unsigned,
                (struct cuda_dim3 grid, struct cuda_dim3 block, size_t shared_bytes, void *stream))
{
    if (pushed.n == PUSHED_MAX)
        return (unsigned)ws_rt_record(CUDA_MISSING_CONFIGURATION);
    pushed.v[pushed.n++] = (struct pushed){grid, block, shared_bytes, stream};
    return CUDA_OK;
}

WS_RT_API(__cudaPopCallConfiguration,
          (struct cuda_dim3 * grid, struct cuda_dim3 *block, size_t *shared_bytes, void *stream))
{
    if (!pushed.n)
        return ws_rt_record(CUDA_MISSING_CONFIGURATION);
    const struct pushed *p = &pushed.v[--pushed.n];
    *grid = p->grid;
    *block = p->block;
    *shared_bytes = p->shared_bytes;
    *(void **)stream = p->stream;
    return CUDA_OK;
}

/* A host address that nobody registered is handed back as it is: launching it says what is
 * wrong. */
WS_RT_API(__cudaGetKernel, (void **kernel, const void *host))
{
    struct ws_kernel *k = ws_registry_kernel(host);
    *kernel = k ? (void *)k : (void *)host;
    return k ? CUDA_OK : CUDA_INVALID_DEVICE_FUNCTION;
}
