// SPDX-License-Identifier: Apache-2.0
/* The calls that are more than handed through: launches, waits, what ends contexts, and
 * cuGetProcAddress, whose answers are the real driver's but for these. Prototypes are the
 * interface's only as far as we look at arguments: what a wait or a copy is given goes on in the
 * same registers. */
#include "frontend/gate/gate.h"

#include <string.h>

/* The real function, looked up once. */
#define REAL(type, name)                                                                           \
    static _Atomic(type) real_;                                                                    \
    type real = real_;                                                                             \
    if (WS_UNLIKELY(!real)) {                                                                      \
        real = (type)ws_gate_real(name);                                                           \
        if (!real)                                                                                 \
            return 801; /* CUDA_ERROR_NOT_SUPPORTED: not in this driver */                         \
        real_ = real;                                                                              \
    }
#define EXPORT __attribute__((visibility("default")))

/* ---- launches ---- */

typedef int (*launch_kernel_fn)(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                unsigned by, unsigned bz, unsigned shared, void *stream,
                                void **params, void **extra);
#define LAUNCH_KERNEL(name, per_thread)                                                            \
    EXPORT int name(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,      \
                    unsigned bz, unsigned shared, void *stream, void **params, void **extra);      \
    int name(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,             \
             unsigned bz, unsigned shared, void *stream, void **params, void **extra)              \
    {                                                                                              \
        REAL(launch_kernel_fn, #name)                                                              \
        struct ws_gate_pass p;                                                                     \
        ws_gate_enter(&p, stream, per_thread);                                                     \
        int r = real(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);                    \
        ws_gate_leave(&p, !r);                                                                     \
        return r;                                                                                  \
    }
LAUNCH_KERNEL(cuLaunchKernel, false)
LAUNCH_KERNEL(cuLaunchKernel_ptsz, true)
typedef int (*launch_cooperative_fn)(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                     unsigned by, unsigned bz, unsigned shared, void *stream,
                                     void **params);
#define LAUNCH_COOPERATIVE(name, per_thread)                                                       \
    EXPORT int name(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,      \
                    unsigned bz, unsigned shared, void *stream, void **params);                    \
    int name(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,             \
             unsigned bz, unsigned shared, void *stream, void **params)                            \
    {                                                                                              \
        REAL(launch_cooperative_fn, #name)                                                         \
        struct ws_gate_pass p;                                                                     \
        ws_gate_enter(&p, stream, per_thread);                                                     \
        int r = real(f, gx, gy, gz, bx, by, bz, shared, stream, params);                           \
        ws_gate_leave(&p, !r);                                                                     \
        return r;                                                                                  \
    }
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

struct launch_config { /* CUlaunchConfig, as far as we look */
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
};
/* Calls of up to four arguments, of which @s is the stream. */
typedef int (*launch4_fn)(uint64_t a, uint64_t b, uint64_t c, uint64_t d);
#define LAUNCH4(name, s, per_thread)                                                               \
    EXPORT int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d);                               \
    int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d)                                       \
    {                                                                                              \
        REAL(launch4_fn, #name)                                                                    \
        struct ws_gate_pass p;                                                                     \
        ws_gate_enter(&p, (void *)(uintptr_t)(s), per_thread);                                     \
        int r = real(a, b, c, d);                                                                  \
        ws_gate_leave(&p, !r);                                                                     \
        return r;                                                                                  \
    }
static void *stream_of(uint64_t config)
{
    const struct launch_config *c = (const void *)(uintptr_t)config;
    return c ? c->stream : NULL;
}
LAUNCH4(cuLaunchKernelEx, stream_of(a), false)
LAUNCH4(cuLaunchKernelEx_ptsz, stream_of(a), true)
LAUNCH4(cuGraphLaunch, b, false)
LAUNCH4(cuGraphLaunch_ptsz, b, true)
LAUNCH4(cuLaunch, 0, false)
LAUNCH4(cuLaunchGrid, 0, false)
LAUNCH4(cuLaunchGridAsync, d, false)

struct launch_params { /* CUDA_LAUNCH_PARAMS, as far as we look */
    void *function;
    unsigned grid[3], block[3], shared_bytes;
    void *stream;
};
static void *first_stream(uint64_t list, uint64_t n)
{
    const struct launch_params *p = (const void *)(uintptr_t)list;
    return p && n ? p->stream : NULL;
}
/* Several GPUs at once: gated as a launch on the current one. */
LAUNCH4(cuLaunchCooperativeKernelMultiDevice, first_stream(a, (uint32_t)b), false)

/* ---- waits ---- */

typedef int (*call6_fn)(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);
#define WAIT(name)                                                                                 \
    EXPORT int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);       \
    int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)               \
    {                                                                                              \
        REAL(call6_fn, #name)                                                                      \
        int r = real(a, b, c, d, e, f);                                                            \
        if (!r)                                                                                    \
            ws_gate_waited();                                                                      \
        return r;                                                                                  \
    }
/* What ends a context: of its events nothing may be asked after it. @context: which; NULL: perhaps
 * all. */
#define END(name, context)                                                                         \
    EXPORT int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);       \
    int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)               \
    {                                                                                              \
        REAL(call6_fn, #name)                                                                      \
        if (ws_gate_state != WS_GATE_UNKNOWN)                                                      \
            ws_gate_ending((void *)(uintptr_t)(context), true);                                    \
        return real(a, b, c, d, e, f);                                                             \
    }
/* Ends the context if nobody else has retained it. */
#define RELEASE(name)                                                                              \
    EXPORT int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);       \
    int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)               \
    {                                                                                              \
        REAL(call6_fn, #name)                                                                      \
        bool known = ws_gate_state != WS_GATE_UNKNOWN;                                             \
        if (known)                                                                                 \
            ws_gate_ending(NULL, false);                                                           \
        int r = real(a, b, c, d, e, f);                                                            \
        if (!r && known)                                                                           \
            ws_gate_ended((int)a);                                                                 \
        return r;                                                                                  \
    }
/* Each with its per-thread variant and, behind it, the name that cuGetProcAddress knows. */
#define COPIES(X)                                                                                  \
    X(cuMemcpy, cuMemcpy_ptds, "cuMemcpy")                                                         \
    X(cuMemcpyPeer, cuMemcpyPeer_ptds, "cuMemcpyPeer")                                             \
    X(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, "cuMemcpyHtoD")                                       \
    X(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, "cuMemcpyDtoH")                                       \
    X(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, "cuMemcpyDtoD")                                       \
    X(cuMemcpyDtoA_v2, cuMemcpyDtoA_v2_ptds, "cuMemcpyDtoA")                                       \
    X(cuMemcpyAtoD_v2, cuMemcpyAtoD_v2_ptds, "cuMemcpyAtoD")                                       \
    X(cuMemcpyHtoA_v2, cuMemcpyHtoA_v2_ptds, "cuMemcpyHtoA")                                       \
    X(cuMemcpyAtoH_v2, cuMemcpyAtoH_v2_ptds, "cuMemcpyAtoH")                                       \
    X(cuMemcpyAtoA_v2, cuMemcpyAtoA_v2_ptds, "cuMemcpyAtoA")                                       \
    X(cuMemcpy2D_v2, cuMemcpy2D_v2_ptds, "cuMemcpy2D")                                             \
    X(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds, "cuMemcpy2DUnaligned")                  \
    X(cuMemcpy3D_v2, cuMemcpy3D_v2_ptds, "cuMemcpy3D")                                             \
    X(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, "cuMemcpy3DPeer")                                       \
    X(cuStreamSynchronize, cuStreamSynchronize_ptsz, "cuStreamSynchronize")                        \
    X(cuStreamQuery, cuStreamQuery_ptsz, "cuStreamQuery")
#define OTHER_WAITS(X) X(cuEventSynchronize, "cuEventSynchronize") X(cuEventQuery, "cuEventQuery")
#define ENDS(X)                                                                                    \
    X(cuCtxDestroy, a, "")                                                                         \
    X(cuCtxDestroy_v2, a, "cuCtxDestroy")                                                          \
    X(cuDevicePrimaryCtxReset, 0, "")                                                              \
    X(cuDevicePrimaryCtxReset_v2, 0, "cuDevicePrimaryCtxReset")
#define RELEASES(X)                                                                                \
    X(cuDevicePrimaryCtxRelease, "")                                                               \
    X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease")
#define X(name, per_thread, asked) WAIT(name) WAIT(per_thread)
COPIES(X)
#undef X
#define X(name, asked) WAIT(name)
OTHER_WAITS(X)
#undef X
WAIT(cuCtxSynchronize)
WAIT(cuCtxSynchronize_v2)
#define X(name, context, asked) END(name, context)
ENDS(X)
#undef X
#define X(name, asked) RELEASE(name)
RELEASES(X)
#undef X

/* ---- cuGetProcAddress ---- */

typedef int (*get_v1_fn)(const char *name, void **ret, int version, uint64_t flags);
typedef int (*get_v2_fn)(const char *name, void **ret, int version, uint64_t flags, int *status);
EXPORT int cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags);
EXPORT int cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags,
                               int *status);

#define ROW(asked, name, per_thread, from, before)                                                 \
    {                                                                                              \
        asked, (void *)(name), (void *)(per_thread), #name, #per_thread, from, before              \
    }
static const struct {
    const char *asked;
    void *fn, *per_thread;
    const char *name, *per_thread_name; /* as the real one exports them */
    int from, before;                   /* versions of CUDA that are answered with these */
} wrappers[] = {
#define X(name, per_thread, asked)                                                                 \
    {asked, (void *)(name), (void *)(per_thread), #name, #per_thread, 4000, INT32_MAX},
    COPIES(X)
#undef X
#define X(name, asked) {asked, (void *)(name), (void *)(name), #name, #name, 4000, INT32_MAX},
        OTHER_WAITS(X) RELEASES(X)
#undef X
#define X(name, context, asked)                                                                    \
    {asked, (void *)(name), (void *)(name), #name, #name, 4000, INT32_MAX},
            ENDS(X)
#undef X
                ROW("cuLaunchKernel", cuLaunchKernel, cuLaunchKernel_ptsz, 0, INT32_MAX),
    ROW("cuLaunchKernelEx", cuLaunchKernelEx, cuLaunchKernelEx_ptsz, 0, INT32_MAX),
    ROW("cuLaunchCooperativeKernel", cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, 0,
        INT32_MAX),
    ROW("cuLaunchCooperativeKernelMultiDevice", cuLaunchCooperativeKernelMultiDevice,
        cuLaunchCooperativeKernelMultiDevice, 0, INT32_MAX),
    ROW("cuGraphLaunch", cuGraphLaunch, cuGraphLaunch_ptsz, 0, INT32_MAX),
    ROW("cuLaunch", cuLaunch, cuLaunch, 0, INT32_MAX),
    ROW("cuLaunchGrid", cuLaunchGrid, cuLaunchGrid, 0, INT32_MAX),
    ROW("cuLaunchGridAsync", cuLaunchGridAsync, cuLaunchGridAsync, 0, INT32_MAX),
    ROW("cuCtxSynchronize", cuCtxSynchronize, cuCtxSynchronize, 0, 13000),
    ROW("cuCtxSynchronize", cuCtxSynchronize_v2, cuCtxSynchronize_v2, 13000, INT32_MAX),
    ROW("cuGetProcAddress", cuGetProcAddress, cuGetProcAddress, 0, 12000),
    ROW("cuGetProcAddress", cuGetProcAddress_v2, cuGetProcAddress_v2, 12000, INT32_MAX),
};

/* Our function for what cuGetProcAddress was asked, or NULL. */
static void *wrapper_of(const char *name, int version, bool per_thread)
{
    for (size_t i = 0; name && i < WS_ARRAY_SIZE(wrappers); i++) {
        if (strcmp(wrappers[i].asked, name) != 0 || version < wrappers[i].from ||
            version >= wrappers[i].before)
            continue;
        if (!ws_gate_real(per_thread ? wrappers[i].per_thread_name : wrappers[i].name))
            return NULL; /* we could not hand the call on */
        return per_thread ? wrappers[i].per_thread : wrappers[i].fn;
    }
    return NULL;
}

static void put_ours(const char *name, void **ret, int version, uint64_t flags)
{
    enum { PER_THREAD = 2 };
    void *ours = ret && *ret ? wrapper_of(name, version, flags & PER_THREAD) : NULL;
    if (ours)
        *ret = ours;
}

int cuGetProcAddress(const char *name, void **ret, int version, uint64_t flags)
{
    REAL(get_v1_fn, "cuGetProcAddress")
    int r = real(name, ret, version, flags);
    if (!r)
        put_ours(name, ret, version, flags);
    return r;
}

int cuGetProcAddress_v2(const char *name, void **ret, int version, uint64_t flags, int *status)
{
    REAL(get_v2_fn, "cuGetProcAddress_v2")
    int r = real(name, ret, version, flags, status);
    if (!r)
        put_ours(name, ret, version, flags);
    return r;
}
