// SPDX-License-Identifier: Apache-2.0
/* frontend/entrypoints.h - every entry point this library stands in for, by name. Read by the redirect of static runtimes,
 * cuGetProcAddress and the tests; filled from frontend/entrypoints.def. Threads: any. */
#ifndef WS_FRONTEND_ENTRYPOINTS_H
#define WS_FRONTEND_ENTRYPOINTS_H

#include <stddef.h>

struct ws_entrypoint {
    const char *name; /* as exported: "cudaMalloc", "cuMemAlloc_v2", "__cudaRegisterFatBinary" */
    void *fn;
};

/* Sorted by name (strcmp). */
const struct ws_entrypoint *ws_entrypoints(size_t *ret_n);
/* The façade's function, or NULL. */
void *ws_entrypoint_find(const char *name);

#endif
