// SPDX-License-Identifier: Apache-2.0
/* base/runtimes/static_runtime.h - where the functions of NVIDIA's static CUDA runtime are in a
 * file that has no symbols. Known are the runtimes of static_runtimes.def. Threads: any. */
#ifndef WS_BASE_RUNTIMES_STATIC_RUNTIME_H
#define WS_BASE_RUNTIMES_STATIC_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ws_elf;

/* A runtime that was found in a file. */
struct ws_static_runtime {
    const char *version; /* "12.9.79": of NVIDIA's package */
    uint64_t address;    /* where its code begins, as a symbol would say */
    uint64_t bytes;      /* of its code */
    unsigned column;     /* private */
};
struct ws_static_function {
    const char *name; /* "cudaMalloc" */
    uint64_t address; /* as a symbol would say */
    uint64_t bytes;   /* its size if that is less than 14, or else 14: it has at least as many */
};

/* Searches the sections of @e that hold code. Return: false if no known runtime is there. */
bool ws_static_runtime_find(const struct ws_elf *e, struct ws_static_runtime *ret);
/* The functions are numbered from 0, sorted by name. Return: the first at or after *@i that @rt
 * has, with *@i moved behind it; false if there is none. */
bool ws_static_runtime_next(const struct ws_static_runtime *rt, size_t *i,
                            struct ws_static_function *ret);

#endif
