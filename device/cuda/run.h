// SPDX-License-Identifier: Apache-2.0
/* device/cuda/run.h - operations on the GPU: the hardware queue that each runs in, how it is
 * started, and what follows its end.
 *
 * run.c decides which thread has an operation; copy.c and launch.c start it; fence.c, devlib.c and
 * green.c are what a launch needs besides. Threads and locks: see run.c and cuda_private.h. */
#ifndef WS_DEVICE_CUDA_RUN_H
#define WS_DEVICE_CUDA_RUN_H

#include "base/list.h"
#include "device/cuda/driver.h"
#include "device/device.h"
#include "ptx/passes/pass.h"

struct ws_cuda;
struct ws_cuda_green;

enum {
    WS_CUDA_CONTROL_BYTES = 64, /* of struct ws_cuda_control */
    WS_CUDA_BOUNCE_BYTES = 64 << 10,
    WS_CUDA_TABLE_BYTES = 4096,  /* of a queue's first table of ranges */
    WS_CUDA_CONTROL_ROOM = 4096, /* of a queue's control line in the stock */
};

/* What a rewritten launch works with, in device memory; the host has a copy of ticket and mask in
 * pinned memory. Of the flags, a launch looks at one. One that was raised is lowered by the next
 * launch in the queue, which looks at the other; so none is ever lowered for a launch that is still
 * to be stopped. */
struct ws_cuda_control {
    uint32_t ticket, flag[2];
    uint32_t first; /* on the host: the ticket that a launch begins with, until it has arrived */
    uint32_t reserved[4];
    uint32_t mask[8];
};
_Static_assert(sizeof(struct ws_cuda_control) == WS_CUDA_CONTROL_BYTES, "one cache line each");

/* Where a fenced kernel notes an access outside its client's memory; pinned memory of the host. */
struct ws_cuda_fault {
    uint64_t happened, va;
};

/* A hardware queue: a stream and what goes with it. It carries one operation at a time. */
struct ws_cuda_queue {
    struct ws_cuda_queue *next; /* in the list of free queues */
    uint32_t index;
    ws_cu_stream stream;            /* plain or green: the one that its operation uses */
    ws_cu_stream plain, green;      /* green.c: green is in green_of's context, or NULL */
    struct ws_cuda_green *green_of; /* borrowed */
    ws_cu_event begin, end;
    struct ws_cuda_control *control; /* pinned; its twin is at control_va */
    uint32_t flag;                   /* which one the present launch looks at */
    bool raised;                     /* it was raised; run lock, or the thread that starts a run */
    ws_cu_ptr control_va;
    struct ws_cuda_fault *fault; /* behind control, in the same memory */
    /* fence.c: the ranges of a space; ranges (pinned) and its twin at ranges_va */
    struct ws_ptx_ranges *ranges;
    ws_cu_ptr ranges_va;
    uint64_t table_bytes; /* of each of the two; 0: there are none */
    uint32_t cap_ranges, largest, ranges_version;
    uint64_t ranges_space; /* id of the space; 0: none */
    uint64_t ranges_box;   /* bytes of the box among the ranges; 0: it is not among them */
    /* devlib.c: pinned, with room for records behind it. It belongs to the space that used it last.
     * NULL until first used */
    struct ws_ptx_lib *box;
    uint64_t box_space, box_bytes;
    uint64_t box_shown; /* how much of it kernels of that space have seen, at most */
    uint8_t *bounce;    /* pinned, WS_CUDA_BOUNCE_BYTES */
};

/* Where a run is, and so which thread owns it: see run.c. */
enum ws_cuda_state {
    WS_CUDA_IS_STARTING, /* on no list: a thread has it */
    WS_CUDA_IS_WAITING,  /* for a queue */
    WS_CUDA_IS_BLOCKING, /* for the starter thread */
    WS_CUDA_IS_COMPILING,
    WS_CUDA_IS_RUNNING, /* on the GPU; the waiter owns it */
    WS_CUDA_IS_ENDED,   /* to be reported; then the waiter has it until it is freed */
    _WS_CUDA_STATES
};

/* An operation that the device knows. */
struct ws_cuda_run {
    struct ws_list node;      /* run lock: in d->in[state]; in no list while a thread has it */
    struct ws_list of_device; /* run lock: in d->runs */
    enum ws_cuda_state state; /* run lock */
    struct ws_op *op;
    struct ws_cuda_queue *queue; /* NULL: not started */
    unsigned epoch;
    bool entered;            /* op->space was entered, in epoch */
    bool cancelled, preempt; /* run lock */
    bool timed;              /* queue->begin and queue->end were recorded, and it did not fail */
    uint64_t started_ns;     /* host clock */
    uint64_t first_ns; /* device clock: when an earlier part began; UINT64_MAX: there is none */
    void *bounce_to;   /* host address that bounce_bytes go to at the end */
    uint64_t bounce_bytes;
    /* launches that are kept to SMs, or that can be stopped */
    ws_cu_function function;
    struct ws_ptx_ctl ctl;
    uint8_t *params; /* allocated */
    bool loops;      /* a block does the work of several */
    uint32_t params_bytes;
    uint32_t last_ticket; /* the ticket when it was started last */
    uint32_t workers;     /* blocks that the GPU holds at once */
    uint32_t n_sms;       /* SMs that it may use */
    bool rewritten, fenced;
    bool kept;          /* to a set of SMs by its mask; then its blocks may need several launches */
    bool reads_ticket;  /* after it was stopped */
    bool untouched;     /* the context was lost before it began */
    uint64_t box_bytes; /* of the queue's box; 0: it has none */
    uint64_t heap_va, heap_bytes;
    bool uses_heap;  /* counted by ws_space_heap_begin() */
    bool heap_empty; /* all of the heap was given back */
};

/* ---- stock.c ---- */
enum ws_cuda_stock { WS_CUDA_STOCK_PINNED, WS_CUDA_STOCK_DEVICE, _WS_CUDA_STOCKS };
/* Makes the memory for @n_queues queues, and some more. */
ws_cu_result ws_cuda_stock_open(struct ws_cuda *d, uint32_t n_queues);
void ws_cuda_stock_close(struct ws_cuda *d);
/* A stretch of @bytes, with any contents; never calls the driver. Any thread. Return: its address,
 * of pinned memory both the host's and the GPU's; 0: the stock has no such stretch. */
uint64_t ws_cuda_stock_take(struct ws_cuda *d, enum ws_cuda_stock kind, uint64_t bytes);
/* Takes back a stretch that no operation uses any more. @at: 0 ok. */
void ws_cuda_stock_give(struct ws_cuda *d, enum ws_cuda_stock kind, uint64_t at, uint64_t bytes);
/* Makes a stretch of @bytes more. The driver may wait for all kernels that run. The caller notes
 * the result, and that of opening (ws_cuda_result()). */
ws_cu_result ws_cuda_stock_grow(struct ws_cuda *d, enum ws_cuda_stock kind, uint64_t bytes);

/* ---- carry.c ---- */
/* @priority: of what cannot wait. */
ws_cu_result ws_cuda_carry_open(struct ws_cuda *d, int priority);
void ws_cuda_carry_close(struct ws_cuda *d);
/* Copies @bytes, a multiple of 4, in stream @s, and waits for no other copy. One of the two places
 * is the GPU's memory, the other one pinned memory. */
ws_cu_result ws_cuda_carry(struct ws_cuda *d, ws_cu_stream s, uint64_t to, uint64_t from,
                           uint64_t bytes);
/* The same before what other streams wait to start; @s waits for it. What is copied does not change
 * any more. The waiter thread only. */
ws_cu_result ws_cuda_carry_first(struct ws_cuda *d, ws_cu_stream s, uint64_t to, uint64_t from,
                                 uint64_t bytes);

/* ---- run.c ---- */
/* ws_cuda_stock_take(); if there is no such stretch, idle queues give back theirs. Run lock not
 * held. @may_block: the stock may grow. Return: as ws_cuda_stock_take(). */
uint64_t ws_cuda_stock_find(struct ws_cuda *d, enum ws_cuda_stock kind, uint64_t bytes,
                            bool may_block);
int ws_cuda_run_open(struct ws_cuda *d);
void ws_cuda_run_close(struct ws_cuda *d);
/* What destroyed the context, and which kernel did as far as it can be told. The text stays as it
 * is until the device is closed. Any thread; run lock not held. Return: NULL: the context is not
 * lost. */
const char *ws_cuda_lost_text(struct ws_cuda *d);
void ws_cuda_submit(struct ws_device *dev, struct ws_op *op);
void ws_cuda_cancel(struct ws_device *dev, struct ws_space *s);
int ws_cuda_preempt(struct ws_device *dev, struct ws_op *op);

/* ---- copy.c, launch.c ---- */
/* The outcome of starting an operation. */
enum ws_cuda_start {
    /* Work is in the queue, or may be: if starting failed midway (op->error), its end is still to
     * be waited for. */
    WS_CUDA_STARTED,
    WS_CUDA_DONE,     /* nothing to wait for: all is done, or it failed (op->error) */
    WS_CUDA_BLOCKS,   /* it would block: the starter thread must do it */
    WS_CUDA_COMPILES, /* it would block for long: the compiler thread must do it */
};
/* @may_block: false on the loop's thread. */
enum ws_cuda_start ws_cuda_copy(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block);
enum ws_cuda_start ws_cuda_launch(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block);
/* After a launch ended. Return: whether something was queued once more, for the blocks that are
 * left; op->error says if that failed. Run lock held. */
bool ws_cuda_launch_again(struct ws_cuda *d, struct ws_cuda_run *r);
/* At the very end: if blocks are left because the launch was asked to stop, says so in the
 * operation. */
void ws_cuda_launch_stopped(struct ws_cuda_run *r);

/* ---- fence.c ---- */
/* Room for the queue's table of ranges; to be called before ws_cuda_fence(). @may_block: if false,
 * WS_CUDA_BLOCKS is returned where memory has to be made. Return: WS_CUDA_STARTED: the launch can
 * be started; WS_CUDA_DONE: the operation has its error. */
enum ws_cuda_start ws_cuda_fence_prepare(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block);
/* What a fenced launch gets as its parameter; its table of ranges is on its way in the queue.
 * Return: NOT_READY: there are more ranges meanwhile than ws_cuda_fence_prepare() has made room
 * for, and nothing is in the queue. */
ws_cu_result ws_cuda_fence(struct ws_cuda *d, struct ws_cuda_run *r, struct ws_ptx_fence *ret);
/* After a launch ended. Return: whether it accessed memory outside its ranges; the operation then
 * has its error. */
bool ws_cuda_fence_hit(struct ws_cuda_run *r);
void ws_cuda_fence_free(struct ws_cuda *d, struct ws_cuda_queue *q);

/* ---- devlib.c ---- */
/* A box for a launch that has @uses (ptx/passes/devlib.h); *ret: the parameter that the launch gets
 * for it. To be called before ws_cuda_fence(), with the heap open. Return: NOT_READY: the box that
 * ws_cuda_lib_prepare() has made is too small meanwhile. */
ws_cu_result ws_cuda_lib(struct ws_cuda *d, struct ws_cuda_run *r, uint32_t uses, uint64_t *ret);
/* Prepares the heap and whatever else of this a launch needs before it is started. @may_block: if
 * false, WS_CUDA_BLOCKS is returned where memory has to be made. Return: WS_CUDA_STARTED: the
 * launch can be started; WS_CUDA_DONE: the operation has its error. */
enum ws_cuda_start ws_cuda_lib_prepare(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block);
/* What is queued behind the kernel, in the queue's stream. */
ws_cu_result ws_cuda_lib_behind(struct ws_cuda *d, struct ws_cuda_run *r);
/* At the very end, whatever the outcome was. */
void ws_cuda_lib_done(struct ws_cuda_run *r);
/* After a launch ended: reports what it printed, and which thread stopped. */
void ws_cuda_lib_end(struct ws_cuda_run *r);
/* The same for records that lie in @bytes of memory. */
void ws_cuda_lib_read(struct ws_op *op, const void *room, uint64_t bytes);
void ws_cuda_lib_free(struct ws_cuda *d, struct ws_cuda_queue *q);

/* ---- green.c ---- */
int ws_cuda_green_open(struct ws_cuda *d);
void ws_cuda_green_close(struct ws_cuda *d); /* after all queues were freed */
/* The queue's stream becomes one in a green context of SMs in @set. @exactly: only if the context
 * has all of them. *ret_n: how many SMs it has; 0: there is none, and the stream is as it was.
 * Return: false: a context or a stream has to be made, and @may_block is false. */
bool ws_cuda_green_enter(struct ws_cuda *d, struct ws_cuda_queue *q, const struct ws_sm_set *set,
                         bool exactly, bool may_block, uint32_t *ret_n);
/* The queue's stream is the plain one again. Nothing runs in the queue. */
void ws_cuda_green_leave(struct ws_cuda_queue *q);

#endif
