// SPDX-License-Identifier: Apache-2.0
/* frontend/memory/hostmem.h - host memory that programs have told CUDA of, with the flags that they
 * gave; the session knows only that it is pinned. Managed memory is pinned memory too: the host and
 * a software device share its pages. Threads: any. */
#ifndef WS_FRONTEND_MEMORY_HOSTMEM_H
#define WS_FRONTEND_MEMORY_HOSTMEM_H

#include <stdbool.h>
#include <stdint.h>
#include "frontend/session/session.h"

enum ws_hostmem_kind {
    WS_HOSTMEM_NONE,
    WS_HOSTMEM_PINNED,
    WS_HOSTMEM_MANAGED,
    WS_HOSTMEM_REGISTERED
};
struct ws_hostmem {
    uint64_t base, bytes;
    enum ws_hostmem_kind kind;
    unsigned flags;
    int device;  /* current when it was made */
    bool mapped; /* kernels can use it */
};

/* PINNED or MANAGED: allocates. Return: a CUDA code. */
int ws_hostmem_alloc(enum ws_hostmem_kind kind, int device, uint64_t bytes, unsigned flags,
                     void **ret);
/* Frees one of @kind that starts at @p. Return: a CUDA code, INVALID_VALUE if there is none. */
int ws_hostmem_free(enum ws_hostmem_kind kind, void *p);
/* Memory of the program, from now on usable by kernels where that can be. @must_map: NOT_SUPPORTED
 * where it can't; else such memory is only noted, which is enough for copies. Return: a CUDA code;
 * ALREADY_REGISTERED if it overlaps another. */
int ws_hostmem_register(void *p, uint64_t bytes, unsigned flags, int device, bool must_map);
int ws_hostmem_unregister(void *p); /* NOT_REGISTERED */
/* What @address lies in; kind NONE if nothing. */
void ws_hostmem_find(uint64_t address, struct ws_hostmem *ret);

#endif
