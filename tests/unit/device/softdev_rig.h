// SPDX-License-Identifier: Apache-2.0
/* tests/unit/device/softdev_rig.h - two small soft devices and two clients on the double of the
 * interpreter, for tests of time. */
#ifndef TESTS_SOFTDEV_RIG_H
#define TESTS_SOFTDEV_RIG_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "device/space.h"
#include "tests/unit/device/exec_double.h"

/* 4 SMs of 4 blocks (256 threads each): 16 resident blocks */
static const struct ws_gpu_spec rig_spec = {
    .name = "small",
    .product = "Small",
    .cc_major = 7,
    .cc_minor = 5,
    .n_sms = 4,
    .max_threads_per_sm = 1024,
    .max_blocks_per_sm = 16,
    .regs_per_sm = 65536,
    .max_threads_per_block = 1024,
    .shared_bytes_per_sm = 65536,
    .shared_bytes_per_block = 49152,
    .shared_bytes_per_block_optin = 65536,
    .core_mhz = 1000,
    .memory_mhz = 5000,
    .memory_bus_bits = 64,
    .l2_bytes = 1 << 19,
    .memory_bytes = 64 << 20,
    .memory_bytes_per_s = 100000000000,
    .copy_bytes_per_s = 10000000000,
    .copy_latency_ns = 1000,
    .launch_overhead_ns = 1000,
    .memory_latency_ns = 400,
    .schedulers_per_sm = 4,
    .fp32_lanes_per_sm = 128,
    .int_lanes_per_sm = 64,
    .fp64_lanes_per_sm = 2,
    .sfu_lanes_per_sm = 16,
    .ldst_lanes_per_sm = 16,
    .static_mw = 8000,
    .idle_mw_per_sm = 600,
    .dynamic_mw_per_sm = 1300,
};
/* Blocks of WORK_INSNS take 10 us of an SM's issue capacity each, 40 us where four share it. */
enum { RIG_RESIDENT = 16, RIG_INSNS = 40000, RIG_BLOCK_NS = 40000, RIG_OPS = 512 };
#define RIG_VAR_VA UINT64_C(0x10000000)

struct rig;
struct rig_stop {
    struct ws_alarm alarm;
    struct rig *rig;
};

struct rig {
    struct ws_device *device[2]; /* the second has twice the clock and half the SMs */
    struct ws_space *space[2];
    struct ws_dmodule *module;
    struct ws_dinstance *instance[2][2]; /* [client][device] */
    pthread_mutex_t lock;
    pthread_cond_t cond;
    uint32_t n_done, n_ops;
    struct ws_op op[RIG_OPS];
    struct double_params params[RIG_OPS];
    struct ws_op *order[RIG_OPS]; /* in which they were done */
    uint64_t done_at_ns[RIG_OPS]; /* device time */
    _Atomic int flag, ran[1 << 15];
    struct rig_stop stop[2]; /* used in turn: the one before may still be ringing */
    uint32_t n_stops;
    pthread_t tester;
    bool stands, missed; /* lock */
};

static inline void rig_on_done(struct ws_op *op)
{
    struct rig *f = op->owner;
    uint64_t now = ws_device_now_ns(f->device[0]);
    pthread_mutex_lock(&f->lock);
    f->order[f->n_done] = op;
    f->done_at_ns[f->n_done++] = now;
    op->owner = NULL;
    pthread_cond_broadcast(&f->cond);
    pthread_mutex_unlock(&f->lock);
}

/* Fails the test rather than hangs. */
static inline void rig_wait(struct rig *f, uint32_t n)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120;
    int r = 0;
    pthread_mutex_lock(&f->lock);
    while (f->n_done < n && !r)
        r = pthread_cond_timedwait(&f->cond, &f->lock, &until);
    pthread_mutex_unlock(&f->lock);
    assert_int_equal(r, 0);
}

static inline bool rig_is_done(struct rig *f, const struct ws_op *op)
{
    pthread_mutex_lock(&f->lock);
    bool done = !op->owner;
    pthread_mutex_unlock(&f->lock);
    return done;
}

static inline void rig_wait_op(struct rig *f, const struct ws_op *op)
{
    pthread_mutex_lock(&f->lock);
    while (op->owner)
        pthread_cond_wait(&f->cond, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static inline int rig_open_as(void **state, const struct ws_device_options *o,
                              const struct ws_gpu_spec *spec)
{
    struct rig *f = ws_alloc(sizeof(*f));
    struct ws_gpu_spec other = *spec;
    other.n_sms = 2;
    other.core_mhz *= 2;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->cond, NULL);
    *state = f;
    if (ws_device_open_soft(&f->device[0], spec, 0, o, NULL) ||
        ws_device_open_soft(&f->device[1], &other, 1, o, NULL) ||
        ws_device_module_load(f->device[0], double_module(), &f->module, NULL))
        return -1;
    for (int i = 0; i < 2; i++) {
        if (ws_space_new(&f->space[i]))
            return -1;
        for (int j = 0; j < 2; j++) {
            uint64_t va[2] = {RIG_VAR_VA + (uint64_t)j * 65536,
                              RIG_VAR_VA + (uint64_t)j * 65536 + 4096};
            if (ws_device_mem_alloc(f->device[j], f->space[i], va[0], 8192) ||
                ws_device_instance_new(f->device[j], f->module, f->space[i], va,
                                       &f->instance[i][j]))
                return -1;
        }
    }
    return 0;
}

static inline int rig_open(void **state, const struct ws_device_options *o)
{
    return rig_open_as(state, o, &rig_spec);
}

/* ---- device time that stands (WS_CLOCK_SCALED) ----
 *
 * From rig_stand() or rig_run_until() to the next rig_run() or rig_run_until() device time stands
 * where the test wanted it to. What the test submits, preempts and asks meanwhile comes at exactly
 * that time, however slow the host is. */

static inline void rig_on_stop(struct ws_alarm *a)
{
    struct rig *f = WS_CONTAINER_OF(a, struct rig_stop, alarm)->rig;
    pthread_mutex_lock(&f->lock);
    if (pthread_equal(pthread_self(), f->tester)) {
        f->missed = true; /* its time was past */
    } else {
        f->stands = true;
        pthread_cond_broadcast(&f->cond);
        while (f->stands)
            pthread_cond_wait(&f->cond, &f->lock);
    }
    pthread_mutex_unlock(&f->lock);
}

/* Return: false: that time is past. */
static inline bool rig_stop_at(struct rig *f, uint64_t at_ns)
{
    struct rig_stop *s = &f->stop[f->n_stops++ % 2];
    *s = (struct rig_stop){.alarm = {.at_ns = at_ns, .ring = rig_on_stop}, .rig = f};
    f->tester = pthread_self();
    f->missed = false;
    assert_int_equal(ws_device_alarm(f->device[0], &s->alarm), 0);
    return !f->missed;
}

static inline void rig_run(struct rig *f)
{
    pthread_mutex_lock(&f->lock);
    f->stands = false;
    pthread_cond_broadcast(&f->cond);
    pthread_mutex_unlock(&f->lock);
}

static inline void rig_wait_stop(struct rig *f)
{
    pthread_mutex_lock(&f->lock);
    while (!f->stands)
        pthread_cond_wait(&f->cond, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

/* Time passes. Stops it, soon. Return: the time. */
static inline uint64_t rig_stand(struct rig *f)
{
    uint64_t soon = 1000;
    while (!rig_stop_at(f, ws_device_now_ns(f->device[0]) + soon))
        soon *= 2;
    rig_wait_stop(f);
    return ws_device_now_ns(f->device[0]);
}

/* Time stands. Lets it pass until @at_ns, which is later. */
static inline void rig_run_until(struct rig *f, uint64_t at_ns)
{
    assert_true(rig_stop_at(f, at_ns));
    rig_run(f);
    rig_wait_stop(f);
    assert_int_equal(ws_device_now_ns(f->device[0]), at_ns);
}

static inline int rig_close(void **state)
{
    struct rig *f = *state;
    rig_run(f);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            ws_device_cancel(f->device[j], f->space[i]);
    for (uint32_t i = 0; i < f->n_ops; i++)
        rig_wait_op(f, &f->op[i]);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++)
            ws_device_instance_free(f->device[j], f->instance[i][j]);
        ws_space_free(f->space[i]);
    }
    ws_device_module_unload(f->device[0], f->module);
    ws_device_close(f->device[0]);
    ws_device_close(f->device[1]);
    free(f);
    return double_n_states != 0; /* leaked states fail the test */
}

static inline struct ws_op *rig_prepare(struct rig *f, int client, int device, uint32_t blocks,
                                        struct double_params p)
{
    uint32_t i = f->n_ops++;
    f->params[i] = p;
    f->op[i] = (struct ws_op){
        .kind = WS_OPK_LAUNCH,
        .space = f->space[client],
        .done = rig_on_done,
        .owner = f,
        .launch = {.instance = f->instance[client][device],
                   .grid = {blocks, 1, 1},
                   .block = {256, 1, 1},
                   .params = &f->params[i],
                   .param_bytes = sizeof(p)},
    };
    return &f->op[i];
}

static inline struct ws_op *rig_launch(struct rig *f, int client, int device, uint32_t blocks,
                                       struct double_params p)
{
    struct ws_op *op = rig_prepare(f, client, device, blocks, p);
    ws_device_submit(f->device[device], op);
    return op;
}

/* What is left of @op, as an operation of its own on @device. */
static inline struct ws_op *rig_resume(struct rig *f, struct ws_op *op, int client, int device)
{
    const struct double_params *p = op->launch.params;
    struct ws_op *next = rig_prepare(f, client, device, op->launch.grid[0], *p);
    next->launch.sms = op->launch.sms;
    next->launch.progress = op->launch.progress;
    op->launch.progress = NULL;
    ws_device_submit(f->device[device], next);
    return next;
}

static inline struct double_params rig_work(struct rig *f)
{
    return (struct double_params){.kind = DOUBLE_WORK, .n_insns = RIG_INSNS, .ran = f->ran};
}

static inline void rig_ran_once(struct rig *f, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(f->ran[i], 1);
    memset(f->ran, 0, sizeof(f->ran));
}

static inline uint32_t rig_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*seed >> 33);
}

/* Waits for a device time. */
static inline void rig_sleep_until(struct rig *f, uint64_t at_ns)
{
    while (ws_device_now_ns(f->device[0]) < at_ns)
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

#endif
