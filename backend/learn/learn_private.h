// SPDX-License-Identifier: Apache-2.0
/* backend/learn/learn_private.h - what the learner's files share: learn.c (table, predictions),
 * learn_code.c (what the code tells), learn_power.c (power), learn_meter.c (a counter's
 * windows), learn_store.c (the thread that writes). */
#ifndef WS_BACKEND_LEARN_LEARN_PRIVATE_H
#define WS_BACKEND_LEARN_LEARN_PRIVATE_H

#include <pthread.h>
#include "backend/learn/learn.h"
#include "base/list.h"
#include "base/table.h"
#include "device/fitted.h"
#include "models/mwp_cwp.h"
#include "ptx/analysis/count.h"

enum {
    WS_LEARN_SHAPES_MAX = 8192,
    WS_LEARN_SHAPES_OF_KERNEL = 64,
    WS_LEARN_SPANS = 16,
    WS_LEARN_GPUS = 32,
    WS_LEARN_BATCH = 32,
    WS_LEARN_RECENT = 16,  /* runs that a time is the mean of; those before fade */
    WS_LEARN_WINDOWS = 16, /* of a counter that are open or wait */
    WS_LEARN_PARTS = 32    /* kinds of launches in a window */
};

struct ws_learn_kernel {
    char hash[WS_PROFILE_HASH_BYTES];
    char name[WS_PROFILE_NAME_BYTES]; /* no control characters */
    bool counted;
    struct ws_ptx_counts counts; /* per thread, from the text */
    uint32_t n_regs, static_shared_bytes;
};

/* ---- power: learn_power.c ---- */

struct ws_learn_watts {
    double w, var; /* var: variance of w; 0: not known */
};
/* How far the catalog's model of the power above idle is off: sum of log(measured / model). */
struct ws_learn_rating {
    double sum, n;
};
/* What most instructions of a kernel do. */
enum ws_learn_class {
    WS_LEARN_CLASS_OTHER,
    WS_LEARN_CLASS_INT,
    WS_LEARN_CLASS_FP32,
    WS_LEARN_CLASS_FP64,
    WS_LEARN_CLASS_SPECIAL,
    WS_LEARN_CLASS_TENSOR,
    WS_LEARN_CLASS_MEMORY,
    _WS_LEARN_CLASS_N
};
struct ws_learn_gpu { /* one kind */
    char name[WS_PROFILE_GPU_BYTES];
    struct ws_gpu_spec spec; /* as the catalog has it, which may be wrong */
    struct ws_fitted fitted; /* …the same */
    struct ws_learn_watts idle;
    struct ws_learn_rating classes[_WS_LEARN_CLASS_N]; /* of kernels */
    UT_hash_handle hh;
};

/* One shape on one number of SMs, as it is now: older runs fade. */
struct ws_learn_point {
    uint32_t n_sms, n_times;
    double ms;                   /* mean of the last runs; n_times 0: not known */
    struct ws_learn_watts watts; /* of the whole GPU meanwhile */
    double off;                  /* in its kernel's rating, if rated */
    bool rated;
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
    struct ws_learn_rating rating;             /* of points */
    struct ws_learn_gpu *gpu; /* NULL: none of its launches has ended since the start */
    enum ws_learn_class class;
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
    double own_j; /* by the catalog's model, for what a launch executes */
    uint32_t n_now;
    struct ws_learn_point *now; /* by n_sms; owned */
    size_t cap_now;
    double cold_error;
    bool dirty;
    struct ws_list node;   /* learn->dirty */
    struct ws_list recent; /* learn->recent */
    UT_hash_handle hh;
};

/* Whose launches added shapes. */
struct ws_learn_user {
    uint32_t uid, n_shapes;
    UT_hash_handle hh;
};

struct ws_learn_span { /* of a launch that ended lately */
    uint64_t start_ns, end_ns;
    struct ws_sm_set sms;
    bool all;
};

/* Launches of one kind in a window, together. */
struct ws_learn_part {
    struct ws_learn_shape *shape;
    uint32_t n_sms;
    double s;
};
/* Time in which a GPU took a known energy. */
struct ws_learn_window {
    uint64_t from_ns, to_ns; /* to_ns: once it is closed */
    double s, j;             /* time and energy, less those of launches that were measured alone */
    double slack_s;          /* how far off each end may be */
    double known_s, known_j; /* of these launches */
    double spoilt_s;         /* of launches that nothing is known of */
    bool is_launch;          /* a single one */
    uint32_t n_waits;        /* operations that may have run in it and have not ended */
    uint32_t n_parts;
    struct ws_learn_part parts[WS_LEARN_PARTS];
};
/* The counter of one GPU. Loop thread. */
struct ws_learn_meter {
    char name[WS_PROFILE_GPU_BYTES];
    uint32_t n_under_way;
    uint32_t first, open;        /* numbers of windows; open 0: none */
    uint64_t looked_ns, seen_uj; /* at the last look */
    uint64_t moved_uj;           /* at the beginning of the open window */
    struct ws_learn_window windows[WS_LEARN_WINDOWS];
};

struct ws_learn_writer;
struct ws_learn {
    pthread_mutex_t lock; /* held for moments, never while the disk is waited for */
    struct ws_learn_known *known;
    struct ws_learn_shape *shapes;
    uint32_t n_shapes;
    struct ws_learn_user *users;
    struct ws_list recent; /* shapes that ran, the latest last */
    uint64_t n_not_kept;
    bool log;           /* WS_DEBUG=learn: each launch beside its prediction */
    struct ws_stat off; /* as in known; of all kernels */
    struct ws_stat squares[_WS_LEARN_BASIS_N];
    struct ws_list dirty;
    struct ws_learn_span spans[WS_LEARN_GPUS][WS_LEARN_SPANS];
    uint32_t next_span[WS_LEARN_GPUS];
    struct ws_learn_gpu *gpus;
    struct ws_learn_meter meters[WS_LEARN_GPUS];
    struct ws_learn_writer *writer; /* NULL: nothing is written */
};

/* Takes what a store holds of a shape; @p's points are moved. A profile of no use here is left. */
void ws_learn_adopt(struct ws_learn *l, struct ws_profile *p);
/* Copies up to @max changed profiles and calls them unchanged; the caller deinits. Return: how
 * many. */
uint32_t ws_learn_take_dirty(struct ws_learn *l, struct ws_profile *ret, uint32_t max);

/* learn_power.c; under the lock. */
enum ws_learn_class ws_learn_class_of(const struct ws_learn_kernel *k);
/* NULL: out of memory. */
struct ws_learn_gpu *ws_learn_gpu_of(struct ws_learn *l, const struct ws_gpu_spec *spec);
/* A launch, for the catalog's model. */
struct ws_learn_load {
    uint64_t n_blocks;
    double own_j; /* ws_learn_own_j() */
    double ms;    /* on as many SMs as are asked for; 0: not known */
};
/* The energy of what a launch executes, by its text. 0: the catalog has no fitted model, or the
 * text was not counted. */
double ws_learn_own_j(const struct ws_learn_gpu *g, const struct ws_learn_key *key);
/* Power of the whole GPU while a shape of kernel @k runs on @n_sm SMs. @s, @k: NULL: not known. */
struct ws_learn_watts ws_learn_watts_of(const struct ws_learn_gpu *g,
                                        const struct ws_learn_known *k,
                                        const struct ws_learn_shape *s, enum ws_learn_class class,
                                        const struct ws_learn_load *load, uint32_t n_sm);
static inline uint64_t ws_learn_blocks(const struct ws_learn_shape *s)
{
    return (uint64_t)s->key.grid[0] * s->key.grid[1] * s->key.grid[2];
}
/* NULL: there is none. Valid until another is made. */
struct ws_learn_point *ws_learn_point_at(const struct ws_learn_shape *s, uint32_t n_sms);
/* Makes it where there is none, with what the profile has. NULL: out of memory. */
struct ws_learn_point *ws_learn_point_get(struct ws_learn_shape *s, uint32_t n_sms);
/* Learns from a window whose parts are complete; the points of all parts exist. */
void ws_learn_window_take(struct ws_learn_gpu *g, struct ws_learn_window *w);

/* learn_meter.c. A launch has ended: it is a part of the windows that it ran in. @s: with a point
 * for @n_sms; NULL: nothing is known of it. */
void ws_learn_meter_ran(struct ws_learn *l, const struct ws_learn_run *run,
                        struct ws_learn_shape *s, uint32_t n_sms);

/* learn_store.c. Opens the store, reads it, and has a thread write to it from now on. Return: 0;
 * outcomes and errors are logged by the caller. */
WS_MUST_CHECK int ws_learn_writer_new(struct ws_learn *l, const char *path, struct ws_diags *diags);
void ws_learn_writer_free(struct ws_learn *l); /* writes what is left */
void ws_learn_writer_wake(struct ws_learn *l); /* something is dirty; l->lock is held */

#endif
