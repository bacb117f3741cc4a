// SPDX-License-Identifier: Apache-2.0
/* frontend/context/context.h - contexts, and what belongs to a thread: its stack of contexts, its
 * current device, its last error. The session has neither. The runtime and the driver share both: a
 * runtime call works in the context that the driver's calls made current, and the other way round.
 * Threads: any. */
#ifndef WS_FRONTEND_CONTEXT_CONTEXT_H
#define WS_FRONTEND_CONTEXT_CONTEXT_H

#include <stdbool.h>
#include "frontend/session/session.h"
#include "frontend/context/slab.h"

enum { WS_CTX_STACK = 32, WS_CTX_LIMITS = 8, WS_LAST_ERRORS = 8 };

struct ws_cuda_context {
    struct ws_slot slot;
    int device;
    bool primary;
    _Atomic bool active;     /* a primary context that is in use */
    _Atomic bool of_runtime; /* …by the runtime, which gives it up with a reset */
    _Atomic unsigned flags;  /* CU_CTX_… */
    _Atomic int n_refs;      /* primary: retains; others: attaches */
    uint64_t id;
    unsigned version;               /* of the API that made it */
    uint64_t limits[WS_CTX_LIMITS]; /* by CUlimit */
    int cache_config, shared_config;
};

/* Each library that has the runtime linked into it has a copy of its own, with its own last
 * error. */
struct ws_last_error {
    uintptr_t runtime; /* which copy: redirect.h */
    int code;
};

struct ws_thread {
    struct ws_last_error last_errors[WS_LAST_ERRORS]; /* the first n_last_errors */
    unsigned n_last_errors;
    /* Launches of kernels that can't run, since the program last asked for the last error. */
    unsigned n_refused;
    int device; /* what cudaSetDevice said; counts while the stack is empty */
    int depth;
    struct ws_cuda_context *stack[WS_CTX_STACK];
    int capture_mode; /* cudaThreadExchangeStreamCaptureMode */
    bool in_callback; /* runs a host function of a stream: CUDA is not for it */
};
extern __thread struct ws_thread ws_thread __attribute__((tls_model("initial-exec")));

/* Remembers @code as the calling thread's last error, of the copy of the runtime that the program
 * called (runtime/last_error.c). */
void ws_rt_failed(int code);
/* That error, or CUDA_OK; with @forget there is none any more. */
int ws_rt_last_error(bool forget);

enum ws_facade_state { WS_FACADE_NEW, WS_FACADE_OPEN, WS_FACADE_FORKED };
enum ws_facade_state ws_facade_state(void);
/* Connects the session if not yet done. This also initialises the driver, for cuInit() and for the
 * runtime alike. Return: a CUDA code; NO_DEVICE if the daemon shows none. */
int ws_facade_open(void);

/* The context that a runtime call works in: the current one, or the primary one of the thread's
 * device, made current. Return: a CUDA code. */
int ws_rt_enter(int *ret_device);
/* The current context. Return: as ws_drv_check_init(), INVALID_CONTEXT without one,
 * CONTEXT_IS_DESTROYED. */
int ws_drv_enter(struct ws_cuda_context **ret);
/* Before cuInit() and before any call of the runtime that needs a device: NOT_INITIALIZED. */
int ws_drv_check_init(void);

/* ---- contexts ---- */
struct ws_cuda_context *ws_ctx_primary(int device); /* @device: checked by the caller */
struct ws_cuda_context *ws_ctx_new(int device, unsigned flags, unsigned version);
bool ws_ctx_valid(const struct ws_cuda_context *c); /* live; looks at no memory but our own */
/* Frees what belongs to it. Not for a primary context. Return: a CUDA code. */
int ws_ctx_destroy(struct ws_cuda_context *c);
/* Resets the device: all contexts on it lose what they had. Return: a CUDA code. */
int ws_ctx_reset_device(int device);
/* The last user of a primary context has released it. The runtime counts as a user. Return: a CUDA
 * code. */
int ws_ctx_release_primary(struct ws_cuda_context *primary);
/* The primary context is in use from now on. */
void ws_ctx_activate(struct ws_cuda_context *primary);
/* Makes @c (or none) the top of the thread's stack. Return: a CUDA code. */
int ws_ctx_set_current(struct ws_cuda_context *c);
int ws_ctx_push(struct ws_cuda_context *c);
/* The top, or NULL. */
static inline struct ws_cuda_context *ws_ctx_current(void)
{
    return ws_thread.depth ? ws_thread.stack[ws_thread.depth - 1] : NULL;
}

/* ---- for calls that the runtime and the driver both have: as the one or as the other ---- */
enum ws_api { WS_RUNTIME, WS_DRIVER };
/* For calls that need no context: ws_facade_open() or ws_drv_check_init(). */
static inline int ws_api_open(enum ws_api api)
{
    return api == WS_RUNTIME ? ws_facade_open() : ws_drv_check_init();
}
/* The context that a call works in: ws_rt_enter() or ws_drv_enter(). */
static inline int ws_api_enter(enum ws_api api, struct ws_cuda_context **ret)
{
    int device;
    if (api == WS_DRIVER)
        return ws_drv_enter(ret);
    int code = ws_rt_enter(&device);
    *ret = code ? NULL : ws_ctx_current();
    return code;
}

/* ---- what belongs to contexts other than the primary ones, to be freed with them ---- */
enum ws_owned { WS_OWNED_MEMORY, WS_OWNED_HOST, WS_OWNED_STREAM, WS_OWNED_EVENT, WS_OWNED_MODULE };
void ws_ctx_own(struct ws_cuda_context *c, enum ws_owned kind,
                uint64_t id); /* nothing to do for a primary one */
void ws_ctx_disown(enum ws_owned kind, uint64_t id);
/* The context that @id belongs to; the primary one of @device if to no other. */
struct ws_cuda_context *ws_ctx_owner(enum ws_owned kind, uint64_t id, int device);

/* ---- handles of streams: the program's pointer is the session's id; 0, 1 and 2 are CUDA's names
 * for default streams ---- */
/* @per_thread: what stream 0 means to the call. Return: a CUDA code (INVALID_HANDLE; whether
 * another id lives is the session's
 * to say). */
int ws_stream_of(const void *handle, bool per_thread, int device, uint64_t *ret);

#endif
