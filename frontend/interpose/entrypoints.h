// SPDX-License-Identifier: Apache-2.0
/* frontend/interpose/entrypoints.h - every entry point that this library has, by name. It is read
 * by the redirect of static runtimes, by cuGetProcAddress and by the tests, and made from
 * entrypoints.def. Threads: any. */
#ifndef WS_FRONTEND_INTERPOSE_ENTRYPOINTS_H
#define WS_FRONTEND_INTERPOSE_ENTRYPOINTS_H

#include <stdbool.h>
#include <stddef.h>

struct ws_entrypoint {
    const char *name; /* as exported: "cudaMalloc", "cuMemAlloc_v2", "__cudaRegisterFatBinary" */
    void *fn;
};

/* Sorted by name (strcmp). */
const struct ws_entrypoint *ws_entrypoints(size_t *ret_n);
/* The façade's function, or NULL. */
void *ws_entrypoint_find(const char *name);

struct ws_driver_version {
    const char *name; /* as cuGetProcAddress is asked: "cuMemAlloc" */
    void *fn;
    int version;     /* the first of CUDA that answers with this one: 1000 * major + 10 * minor */
    bool per_thread; /* stream 0 is the per-thread default stream */
};
/* The newest variant of a driver function that CUDA @version knows; per-thread variants only if
 * wanted, and then rather than others. NULL: none; @ret_known says whether newer versions have
 * one. */
void *ws_entrypoint_driver(const char *name, int version, bool per_thread, bool *ret_known);

#endif
