// SPDX-License-Identifier: Apache-2.0
/* tests/lib/fakedev.h - a device whose operations end when the test says so. Memory is real;
 * copies and fills move bytes when they are completed; kernels do nothing. Modules: whatever the
 * PTX parser reads. Threads: none, but for loading modules. */
#ifndef WS_TESTS_FAKEDEV_H
#define WS_TESTS_FAKEDEV_H

#include <pthread.h>
#include "device/device.h"

enum { FAKEDEV_MAX_OPS = 4096 };
struct fakedev {
    struct ws_device base;
    bool inline_completion;             /* submit completes at once */
    struct ws_op *ops[FAKEDEV_MAX_OPS]; /* submitted, not completed, in order */
    unsigned n_ops, n_submitted, n_cancels;
    uint64_t now_ns, used_bytes;
    uint64_t energy_uj, idle_uj;                /* what its counter says; idle: part of it */
    unsigned n_preempts;                        /* asked for */
    const struct ws_op *urged;                  /* the last that was; NULL: it is not any more */
    uint64_t urged_ns;                          /* …with this limit */
    struct ws_alarm *alarm;                     /* the newest */
    uint64_t free_progresses;                   /* given out, not freed */
    _Atomic unsigned n_modules, n_module_loads; /* loads: begun; may be on another thread */
    unsigned n_instances;
    pthread_mutex_t *gate; /* module_load takes it, unless NULL */
};

/* Has its memory mapped by the device, as real GPUs do. */
void fakedev_set_far(struct fakedev *f);
/* Counts as a real GPU, which can be urged. */
void fakedev_set_real(struct fakedev *f);
void fakedev_init(struct fakedev *f, uint32_t index, const char *name, uint64_t memory_bytes);
/* Completes ops[i]: moves bytes, times [start, end], hands it back. */
void fakedev_complete(struct fakedev *f, unsigned i, uint64_t start_ns, uint64_t end_ns,
                      enum ws_dev_error e);
/* The operation ends with part of its blocks left. */
void fakedev_stop(struct fakedev *f, unsigned i, uint64_t start_ns, uint64_t end_ns, double part);
/* Moves the clock on and rings what is due. */
void fakedev_pass(struct fakedev *f, uint64_t now_ns);
/* Completes all there are, again and again until none is left; each lasts 1 us from its ready
 * time. */
void fakedev_complete_all(struct fakedev *f);

#endif
