/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/sched/sched.h - the worker threads of all soft devices of the process, and who gets
 * them next.
 *
 * A tenant is one client on one device. Users with work stand in a ring, and the tenants with work
 * of each user (payer) in a ring of its own. A worker takes the first user's first tenant, takes
 * one turn's work from it, and puts both at the ends. What a turn is made of is launch.c's and
 * copy.c's.
 * Lock: one for all; functions named …_locked want it held. */
#ifndef WS_DEVICE_SOFT_SCHED_H
#define WS_DEVICE_SOFT_SCHED_H

#include <pthread.h>
#include "base/list.h"
#include "device/soft/exec/exec.h"
#include "device/soft/timeline/occupancy.h"

struct ws_payer;
struct ws_soft;
struct ws_run;
struct ws_xfer;

/* Of one tenant, what its resident blocks hold of an SM. */
struct ws_sm_use {
    uint32_t slots; /* bit mask */
    uint32_t warps, regs, shared_bytes;
};

/* Residency is counted per tenant: clients do not see each other's blocks, as contexts that take
 * turns on hardware, so that one that fills the GPU with endless blocks keeps nobody else out. All
 * under the scheduler's lock. What a client starts while its cancelled operations still end belongs
 * to another tenant. */
struct ws_tenant {
    struct ws_tenant *next; /* in the device's tenants or free_tenants */
    struct ws_space *space;
    struct ws_soft *device;
    struct ws_payer *payer; /* reference */
    struct ws_list ring;    /* in the payer's tenants, while in_ring */
    bool in_ring;
    bool cancelled;           /* nothing more of it is executed, and nothing is added to it */
    struct ws_list to_cancel; /* the scheduler's, while there is something to end */
    bool deal_blocked;        /* nothing more fits until a block leaves or a kernel comes */
    uint32_t n_ops;           /* the tenant lives while there are any */
    uint32_t n_turns;         /* alternates between kernels and copies */
    uint32_t n_choices;       /* … between new and rotated blocks */
    struct ws_list runs;      /* all kernels */
    struct ws_list dealing; /* kernels with blocks that are not dealt yet, in order of submission */
    struct ws_list front;   /* blocks in the middle of their slice */
    struct ws_list rotated; /* blocks that had their slice, or wait for something */
    struct ws_list all;     /* in the scheduler's tenants */
    struct ws_list starved; /* blocks for which there was no memory */
    struct ws_list spared;  /* kernels that keep states of blocks that have ended */
    bool hungry;            /* waits for memory of its payer: it has starved blocks or kernels */
    uint64_t n_feeds;       /* how often it tried again; begins with 1 */
    struct ws_list xfers;
    uint32_t cursor;        /* SM after the one that got a block last */
    struct ws_sm_use sms[]; /* [n_sms] */
};

/* Of a grid, from being dealt to its end. */
struct ws_dealt_block {
    struct ws_list link; /* front, rotated, starved; afterwards: spares, dead or free */
    /* The next block of its cluster. The first one stands for all of them, in lists and turns, and
     * what is said of how it waits, and of its time, is of the cluster. */
    struct ws_dealt_block *mate;
    bool ended; /* while others of its cluster have not */
    struct ws_run *run;
    struct ws_blockrun *state; /* NULL until it first runs */
    bool started;
    bool starved;    /* in its last turn there was no memory for its state */
    uint64_t linear; /* in the order of dealing: cluster by cluster */
    uint32_t sm, slot;
    uint64_t slice_insns; /* warp instructions used of its slice */
    /* Of the host's processor, while other clients waited: in all, and in its last turn. */
    uint64_t host_ns, turn_ns;
    bool waits;    /* all its warps spun in its last turn */
    bool may_wait; /* or it looked as if */
    bool waiting;  /* counted in run->n_waiting: so it was when it was given back */
    bool polls;    /* in its last turn it did nothing but look where it had looked before */
    bool polling;  /* counted in run->n_polling: so it was when it was given back */
    uint64_t n_looked;
    struct ws_exec_work work, polled; /* polled: while it polls */
    /* Of a dead one: who paid for its state, a reference, and how much. */
    struct ws_payer *payer;
    uint64_t bytes;
};

enum { WS_TURN_BLOCKS_MAX = 32 };
/* What a worker does between two holds of the lock. */
struct ws_turn {
    struct ws_tenant *tenant;
    struct ws_xfer *xfer; /* a chunk of it, or: */
    uint64_t from, bytes;
    struct ws_run *refused; /* no memory even for its first block: it ends; or: */
    uint32_t n;             /* blocks */
    struct ws_dealt_block *blocks[WS_TURN_BLOCKS_MAX];
    uint8_t outcome[WS_TURN_BLOCKS_MAX]; /* enum ws_step */
};

struct ws_sched {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct ws_list ring; /* payers */
    uint32_t n_idle, n_threads;
    bool stop;
    struct ws_list tenants; /* all that have work */
    struct ws_list free_blocks;
    struct ws_list dead;        /* blocks that have ended, whose states are to be freed */
    struct ws_list to_cancel;   /* tenants that were cancelled, until all that they have is ended */
    struct ws_list runs, xfers; /* cancelled or preempted kernels and copies, yet to be finished */
    uint32_t n_devices;
    pthread_t *threads;
};

/* The process's scheduler; started with @n_workers (0: host cores) by the first device, stopped
 * when the last one left.
 * Return: 0, -ENOMEM, -EAGAIN. */
WS_MUST_CHECK int ws_sched_join(struct ws_sched **ret, uint32_t n_workers);
void ws_sched_leave(struct ws_sched *s);

/* Has workers end all that a tenant has: ending and pricing very many takes long. */
void ws_tenant_cancel_locked(struct ws_sched *s, struct ws_tenant *t);
/* Work was added to a tenant: puts it into the ring and wakes a worker. */
void ws_sched_ready_locked(struct ws_sched *s, struct ws_tenant *t);

/* The tenant of @space on @d, made when there is none, with one operation more. NULL: no memory. */
struct ws_tenant *ws_tenant_get_locked(struct ws_soft *d, struct ws_space *space);
/* One operation less. */
void ws_tenant_put_locked(struct ws_tenant *t);

/* ---- feed.c ---- */
/* Frees the state of a block that has ended; gives up the lock meanwhile. Return: whether there was
 * one. */
bool ws_sched_reap(struct ws_sched *s);
/* Memory of @p has come back: its tenants that wait try again. */
void ws_sched_feed_locked(struct ws_sched *s, struct ws_payer *p);
void ws_tenant_not_hungry_locked(struct ws_tenant *t);

#endif
