/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/soft_private.h - the soft device's own structures, shared by soft.c, sched.c,
 * launch.c and copy.c. */
#ifndef WS_DEVICE_SOFT_PRIVATE_H
#define WS_DEVICE_SOFT_PRIVATE_H

#include "device/soft/timeline/flight.h"
#include "device/soft/mem.h"
#include "device/soft/sched/sched.h"
#include "device/soft/timeline/timing.h"
#include "device/space.h"

struct ws_soft {
    struct ws_device base;
    struct ws_device_options options;
    struct ws_sched *sched;
    struct ws_mem *mem;
    struct ws_timing *timing;
    struct ws_inspect *inspect;               /* NULL: it doesn't inspect kernels */
    struct ws_tenant *tenants, *free_tenants; /* sched->lock */
    struct ws_list parted;                    /* kernels of several clients; sched->lock */
    _Atomic uint64_t n_kernels, n_copies, copied_bytes, n_thread_insns, grid_id;
    _Atomic uint32_t n_running;
    _Atomic uint64_t seen_ns; /* latest time that a kernel was told */
    _Atomic bool clocks_changed;
    struct ws_fitted fitted; /* of the catalog's entry */
    pthread_mutex_t clocks_lock;
    struct ws_power_clocks clocks; /* clocks_lock */
    /* WS_CLOCK_SCALED only; vclock is NULL otherwise */
    struct ws_vclock *vclock;
    struct ws_meter *meter;
    pthread_mutex_t flights_lock;
    struct ws_list flights; /* all, in any order; this and below: flights_lock */
    uint32_t n_flights;
    struct ws_list unpriced; /* of them, in the order in which they are to be priced */
    bool on, pricing;
    uint32_t n_inside; /* threads in flight.c on their own account */
    pthread_cond_t left;
    uint64_t n_overruns;
};

struct ws_dkernel {
    _Atomic uint32_t block_insns; /* warp instructions of a block, running mean; 0: never ran */
};
struct ws_dmodule {
    struct ws_dmodule_info info; /* first: ws_dmodule_info() */
    const struct ws_ptx_module *ptx;
    struct ws_code *code;
    struct ws_dkernel *kernels;
};
struct ws_dinstance {
    struct ws_dmodule *module;
    struct ws_space *space;
    uint64_t *var_va;
    struct ws_inspect *inspect; /* the device's, or NULL */
};

/* What a launch's units cost, the part of their bytes that gets past L2, and what they draw, at the
 * clocks of now. @spec: as the timeline has it. */
struct ws_priced {
    double dram_share;
    struct ws_draw draw;
};
void ws_soft_price(struct ws_soft *d, const struct ws_gpu_spec *spec, const struct ws_op *op,
                   const struct ws_fit *fit, const struct ws_unit *units, uint32_t n_units,
                   struct ws_cost *ret_costs, struct ws_priced *ret);

/* Ends an operation: counters, then op->done. No locks held. */
void ws_soft_done(struct ws_soft *d, struct ws_op *op);
WS_PRINTF(3, 4) void ws_soft_fail(struct ws_op *op, enum ws_dev_error e, const char *fmt, ...);

/* ---- launch.c ---- */
void ws_soft_launch(struct ws_soft *d, struct ws_op *op);
/* Blocks for one turn of @t. Return: false if there are none. */
bool ws_launch_take_locked(struct ws_sched *s, struct ws_tenant *t, struct ws_turn *turn);
bool ws_launch_has_work_locked(const struct ws_tenant *t);
/* Executes a turn's blocks. No locks held. */
void ws_launch_turn(struct ws_turn *turn);
/* Takes a turn's results back; kernels that ended are appended to @ended (by ws_run's own link). */
void ws_launch_give_back_locked(struct ws_sched *s, struct ws_turn *turn, struct ws_list *ended);
/* Ends the parts of @space in launches of several clients. */
void ws_launch_cancel_parts_locked(struct ws_soft *d, const struct ws_space *space);
/* Ends up to @n kernels of a cancelled tenant, or drops as many blocks. Return: there may be more.
 */
bool ws_launch_cancel_some_locked(struct ws_sched *s, struct ws_tenant *t, unsigned n,
                                  struct ws_list *ended);
/* Deals no more blocks of @op. If it ends thereby, workers finish it. */
void ws_launch_preempt_locked(struct ws_sched *s, const struct ws_op *op);
/* As ws_device_urge(). Return: whether @op is being executed. */
bool ws_launch_urge_locked(struct ws_sched *s, const struct ws_op *op, uint64_t limit_ns);
/* Prices and completes the kernels in @ended. No locks held. */
void ws_launch_finish(struct ws_list *ended);

/* ---- copy.c ---- */
void ws_soft_copy(struct ws_soft *d, struct ws_op *op); /* copies and fills */
bool ws_copy_take_locked(struct ws_tenant *t, struct ws_turn *turn);
bool ws_copy_has_work_locked(const struct ws_tenant *t);
void ws_copy_turn(struct ws_turn *turn);
void ws_copy_give_back_locked(struct ws_turn *turn, struct ws_list *ended);
bool ws_copy_cancel_some_locked(struct ws_tenant *t, unsigned n, struct ws_list *ended);
void ws_copy_finish(struct ws_list *ended);

#endif
