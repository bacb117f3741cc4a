// SPDX-License-Identifier: Apache-2.0
/* device/worker/state.h - records of the state that is replayed to a new worker: tables.c, host.c
 * and module.c keep them. Lock: tables_lock; for regions, regions_lock. */
#ifndef WS_DEVICE_WORKER_STATE_H
#define WS_DEVICE_WORKER_STATE_H

#include <pthread.h>

#include "base/list.h"
#include "base/table.h"
#include "device/space.h"
#include "device/worker/wire.h"

struct ws_proxy;

/* A granule that small memories share, as keep.h reports it. */
struct ws_proxy_kept {
    struct ws_cuda_kept is;
    int fd; /* -1: lost with the worker */
    UT_hash_handle hh;
};
/* What ws_backing.arg is. */
struct ws_proxy_memory {
    struct ws_list node;
    struct ws_proxy *proxy;
    uint64_t id, bytes;
    struct ws_cuda_kept whole; /* id 0: none */
    int fd;
    bool is_sure;   /* it was promised: its mappings are posted, too */
    bool used;      /* it was mapped once, so it may have contents */
    bool has_place; /* the loop's: */
    uint64_t at;    /* where in a granule it was first mapped */
};
/* A mapping of memory, or of a region of host memory. */
struct ws_proxy_map {
    struct ws_wire_map is;
    bool host;
    uint64_t key[2]; /* space, va */
    UT_hash_handle hh;
};
struct ws_proxy_region {
    struct ws_list node;
    uint64_t id;
    uint8_t *host;
    uint64_t bytes;
    int fd;
    bool gone; /* the loop has unregistered it */
};
/* This device's modules and instances; the other devices complete these types of device.h in their
 * own way. A module is one for all proxies of the process. */
struct ws_dmodule { /* begins with its info */
    struct ws_dmodule_info info;
    _Atomic uint32_t n_refs; /* the daemon's, and one for each instance */
    struct ws_kernel_info *kernels;
    char **why;         /* [n_kernels] */
    uint8_t *addresses; /* [n_kernels]: as ws_ptx_function_addresses() says */
    bool machine;       /* text is machine code */
    char *text;         /* as printed */
    size_t text_len;
    bool fenced; /* ws_ptx_module.fenced, which the text does not say */
    uint64_t id;
    pthread_mutex_t lock; /* held while a worker is told the module */
    struct ws_proxy *_Atomic loaded[WS_ACCESS_DEVICES];
    _Atomic uint32_t generation[WS_ACCESS_DEVICES]; /* of the worker that has it */
};
struct ws_dinstance {
    struct ws_list node;
    struct ws_proxy *proxy;
    struct ws_dmodule *module;
    uint64_t id, space;
    uint64_t *var_va;
    /* It was made for an older worker, whose functions had other addresses */
    _Atomic bool is_restored;
    /* machine.c: of modules whose instances have variables of their own */
    struct ws_space *of;
    uint64_t *mapped;
    uint32_t n_mapped;
};

#endif
