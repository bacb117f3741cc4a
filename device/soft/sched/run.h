/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/sched/run.h - one kernel that the software GPU runs, shared by the files that deal
 * its blocks, execute and complete it.
 * Lock: the scheduler's for functions named …_locked and for the fields that say so. */
#ifndef WS_DEVICE_SOFT_SCHED_RUN_H
#define WS_DEVICE_SOFT_SCHED_RUN_H

#include "device/soft/soft_private.h"

/* In warp instructions. */
enum {
    WS_TURN_INSNS = 1 << 15,    /* what a worker executes between two holds of the lock */
    WS_STEP_INSNS = 1 << 11,    /* between two looks at what the block does */
    WS_WAITING_INSNS = 1 << 10, /* turn of a block that waits */
    WS_SLICE_INSNS = 1 << 20,   /* what a block executes before others of its client go first */
};
enum { WS_RUN_FEW_UNITS = 4, WS_RUN_SPARE_MAX = 8 };

struct ws_coop_place {
    uint16_t sm, slot;
};
struct ws_run {
    struct ws_list link;      /* tenant's runs; when ended: the list of the ended */
    struct ws_list deal_link; /* tenant's dealing, while blocks are left */
    struct ws_list parted;    /* the device's, if it has parts, while it is one of the tenant's */
    struct ws_soft *device;
    struct ws_tenant *tenant; /* NULL while the submitting thread runs it alone */
    struct ws_op *op;
    struct ws_dkernel *stats;
    struct ws_fit fit;
    unsigned epoch; /* of the space */
    uint64_t started_host_ns, started_device_ns;
    _Atomic uint64_t limit_ns; /* of a block's own time; 0: nobody waits. Set under the lock */
    _Atomic uint64_t n_thread_insns;
    struct ws_grid grid;
    /* under the scheduler's lock, once there is a tenant */
    uint64_t n_blocks, n_dealt, /* n_blocks: to be dealt: all, or, stopped, those that are */
        n_live;                 /* a cluster counts as one */
    uint64_t n_ended;           /* blocks */
    struct ws_op_counts counts; /* of ended blocks */
    uint32_t n_cluster;         /* blocks of a cluster; 1: there are none */
    bool coop, aborted;
    bool stopping;                 /* preempted */
    uint64_t n_waiting, n_polling; /* of its live blocks, as they were when they were given back */
    uint64_t waits_ns; /* of the host's processor, while others wait and all live blocks do too */
    bool idle;         /* the clock knows that all of them poll */
    /* Of a launch that is resumed, or to be filled when it is preempted; else NULL. */
    struct ws_soft_progress *progress;
    struct ws_coop_place *coop_at; /* [n_blocks], once a cooperative kernel is placed */
    struct ws_payer *payer; /* of the space: who pays for the blocks' memory, and for records */
    struct ws_bill bill;    /* for this structure and what it refers to */
    uint64_t state_bytes;   /* of a block */
    uint64_t coop_bytes;   /* that a cooperative kernel has taken, less what its ended blocks had */
    uint64_t starved_at;   /* ws_run_starves_locked() */
    struct ws_list spares; /* blocks that have ended, whose states others may use */
    struct ws_list spared; /* the tenant's, while there are any */
    uint32_t n_spare;
    uint64_t n_all, n_before; /* blocks of the grid; executed before it was preempted */
    /* Neighbours priced as one, for grids of many blocks, and where its user has little memory for
     * records. */
    uint64_t blocks_per_unit;
    uint32_t n_owed;       /* the first units: executed before, but not paid with time */
    struct ws_unit *units; /* [n_owed + n_units] */
    struct ws_cost *costs; /* as many */
    struct ws_unit few_units[WS_RUN_FEW_UNITS];
    struct ws_cost few_costs[WS_RUN_FEW_UNITS];
};

/* ---- run.c ---- */
/* A kernel that is to run; takes @progress if it succeeds. NULL: no memory; @op says which. */
struct ws_run *ws_run_new(struct ws_soft *d, struct ws_op *op, const struct ws_fit *fit,
                          struct ws_soft_progress *progress);
/* Maps the memory of a cooperative kernel's grid barrier. Return: 0 or an error of the device's
 * memory. */
int ws_run_map_barrier(struct ws_run *r);
/* Stops the kernel, or one client's part of it. The first caller decides error and text. Any
 * thread, with or without the lock. */
WS_PRINTF(3, 4) void ws_run_stop(struct ws_run *r, enum ws_dev_error e, const char *fmt, ...);
WS_PRINTF(3, 4)
void ws_run_stop_part(struct ws_grid_part *p, enum ws_dev_error e, const char *fmt, ...);
bool ws_run_stopped(const struct ws_run *r);
const char *ws_run_name(const struct ws_run *r);
/* Adds an ended block to what the kernel has executed. Locked, unless the submitting thread still
 * runs the kernel alone. */
void ws_run_count(struct ws_run *r, struct ws_dealt_block *b);
void ws_work_add(struct ws_exec_work *sum, const struct ws_exec_work *w);
/* Prices and completes a kernel that has ended, and frees it. No locks held. */
void ws_run_finish(struct ws_run *r);

/* ---- deal.c ---- */
bool ws_run_allows_sm(const struct ws_run *r, uint32_t sm); /* of the launch's SM set */
/* A block of the kernel takes its share of an SM, or gives it back. Locked. Return: the block's
 * slot there. */
uint32_t ws_run_occupy_locked(const struct ws_run *r, struct ws_sm_use *u);
void ws_run_vacate_locked(const struct ws_run *r, struct ws_sm_use *u, uint32_t slot);

/* ---- feed.c ---- */
/* Memory for the state of a block that has none, or of all of its cluster. Return: 0;
 * WS_PAYER_E_LATER: it has to wait; -ENOMEM: the kernel is stopped. No locks held. */
int ws_state_new(struct ws_dealt_block *b);
/* A state that nobody will use again; NULL ok. Whoever waits for memory is to be fed afterwards. No
 * locks held. */
void ws_state_free(const struct ws_run *r, struct ws_blockrun *state);
/* For all blocks of a cooperative kernel. Return: false: it has to wait. True: it has the memory,
 * or is stopped. */
bool ws_run_take_all_locked(struct ws_run *r);
/* A block of the kernel has ended. Its state is kept for others, or freed soon. */
void ws_block_put_locked(struct ws_sched *s, struct ws_run *r, struct ws_dealt_block *b);
/* A state that was kept, or NULL. */
struct ws_blockrun *ws_run_spare_locked(struct ws_sched *s, struct ws_run *r);
void ws_run_bury_spares_locked(struct ws_sched *s, struct ws_run *r);
/* Whether the kernel waits for memory for a block, or for all. */
bool ws_run_starves_locked(const struct ws_run *r);
/* The kernel, of @t, waits until memory of its payer comes back. */
void ws_tenant_starve_locked(struct ws_sched *s, struct ws_tenant *t, struct ws_run *r);

/* ---- turn.c; no locks held ---- */
/* Return: as ws_state_new(). */
int ws_block_begin(struct ws_dealt_block *b);
/* Runs a block for about @budget warp instructions at most; *ret_used: what it took. */
enum ws_step ws_block_run(struct ws_dealt_block *b, uint64_t budget, uint64_t *ret_used);

#endif
