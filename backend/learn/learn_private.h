// SPDX-License-Identifier: Apache-2.0
/* backend/learn/learn_private.h - what the learner's files share: learn.c (table, predictions),
 * learn_code.c (what the code tells), learn_store.c (the thread that writes). */
#ifndef WS_BACKEND_LEARN_LEARN_PRIVATE_H
#define WS_BACKEND_LEARN_LEARN_PRIVATE_H

#include <pthread.h>
#include <uthash.h>
#include "backend/learn/learn.h"
#include "base/list.h"
#include "models/mwp_cwp.h"
#include "ptx/analysis/count.h"

enum {
    WS_LEARN_SHAPES_MAX = 8192,
    WS_LEARN_SHAPES_OF_KERNEL = 64,
    WS_LEARN_SPANS = 16,
    WS_LEARN_GPUS = 32,
    WS_LEARN_BATCH = 32
};

struct ws_learn_kernel {
    char hash[WS_PROFILE_HASH_BYTES];
    char name[WS_PROFILE_NAME_BYTES]; /* no control characters */
    bool counted;
    struct ws_ptx_counts counts; /* per thread, from the text */
    uint32_t n_regs, static_shared_bytes;
};

/* One kernel on one kind of GPU. */
struct ws_learn_known_key {
    char hash[WS_PROFILE_HASH_BYTES], gpu[WS_PROFILE_GPU_BYTES]; /* zero behind the text */
};
struct ws_learn_known {
    struct ws_learn_known_key key;
    struct ws_mwp_kernel mix; /* per thread, mean of its runs; threads_per_block 0: it never ran */
    uint64_t n_mixes;
    struct ws_stat off;                        /* log(measured / modelled) of its runs */
    struct ws_stat squares[_WS_LEARN_BASIS_N]; /* of relative errors */
    uint32_t n_shapes;
    UT_hash_handle hh;
};
/* …and one shape of it. */
struct ws_learn_shape_key {
    const struct ws_learn_known *known;
    uint32_t grid[3], block[3];
};
struct ws_learn_shape {
    struct ws_learn_shape_key key;
    struct ws_learn_known *known;
    struct ws_profile profile;
    double cold_error;
    bool dirty;
    struct ws_list node;   /* learn->dirty */
    struct ws_list recent; /* learn->recent */
    UT_hash_handle hh;
};

struct ws_learn_span { /* of a launch that ended lately */
    uint64_t start_ns, end_ns;
    struct ws_sm_set sms;
    bool all;
};

struct ws_learn_writer;
struct ws_learn {
    pthread_mutex_t lock; /* held for moments, never while the disk is waited for */
    struct ws_learn_known *known;
    struct ws_learn_shape *shapes;
    uint32_t n_shapes;
    struct ws_list recent; /* shapes that ran, the latest last */
    uint64_t n_not_kept;
    bool log;           /* WS_DEBUG=learn: each launch beside its prediction */
    struct ws_stat off; /* as in known; of all kernels */
    struct ws_stat squares[_WS_LEARN_BASIS_N];
    struct ws_list dirty;
    struct ws_learn_span spans[WS_LEARN_GPUS][WS_LEARN_SPANS];
    uint32_t next_span[WS_LEARN_GPUS];
    struct ws_learn_writer *writer; /* NULL: nothing is written */
};

/* Takes what a store holds of a shape; @p's points are moved. A profile of no use here is left. */
void ws_learn_adopt(struct ws_learn *l, struct ws_profile *p);
/* Copies up to @max changed profiles and calls them unchanged; the caller deinits. Return: how
 * many. */
uint32_t ws_learn_take_dirty(struct ws_learn *l, struct ws_profile *ret, uint32_t max);

/* learn_store.c. Opens the store, reads it, and has a thread write to it from now on. Return: 0;
 * outcomes and errors are logged by the caller. */
WS_MUST_CHECK int ws_learn_writer_new(struct ws_learn *l, const char *path, struct ws_diags *diags);
void ws_learn_writer_free(struct ws_learn *l); /* writes what is left */
void ws_learn_writer_wake(struct ws_learn *l); /* something is dirty; l->lock is held */

#endif
