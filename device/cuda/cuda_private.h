// SPDX-License-Identifier: Apache-2.0
/* device/cuda/cuda_private.h - the CUDA device's own structures, shared by its files.
 *
 * Threads: the loop's (everything of device.h), loaders' (module_load), and the device's own: one that waits for what runs and
 * calls op->done, one that starts what may block (pageable copies), one that has code compiled, and one that reads NVML.
 * Locks, in this order: images, memory, run; none is held while op->done runs. */
#ifndef WS_DEVICE_CUDA_PRIVATE_H
#define WS_DEVICE_CUDA_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "device/alarms.h"
#include "device/check.h"
#include "device/cuda/cuda.h"
#include "device/cuda/driver.h"
#include "device/cuda/keep.h"
#include "device/cuda/nvml.h"
#include "device/progress.h"
#include "device/space.h"
#include "ptx/passes/pass.h"

#define WS_CUDA_GRANULE_BYTES (UINT64_C(2) << 20)
enum {
    WS_CUDA_CONTROL_BYTES = 64, /* of one launch: below */
    WS_CUDA_BOUNCE_BYTES = 64 << 10,
};

struct ws_cuda_green;
struct ws_cuda_greens;

/* What a rewritten launch works with, in device memory; the host has a copy of each in pinned memory. */
struct ws_cuda_control {
    uint32_t ticket, flag;
    uint32_t mask[8];
    uint32_t reserved[6];
};
_Static_assert(sizeof(struct ws_cuda_control) == WS_CUDA_CONTROL_BYTES, "one cache line each");

/* Where a fenced kernel notes an access outside its client's memory; pinned memory of the host. */
struct ws_cuda_fault {
    uint64_t happened, va;
};

/* A hardware queue: a stream and what goes with it. It carries one operation at a time. */
struct ws_cuda_queue {
    struct ws_cuda_queue *next; /* free */
    uint32_t index;
    ws_cu_stream stream;            /* plain or green: of the operation it has */
    ws_cu_stream plain, green;      /* green.c: in green_of's context, or NULL */
    struct ws_cuda_green *green_of; /* borrowed */
    ws_cu_event begin, end;
    struct ws_cuda_control *control; /* pinned; its twin is at control_va */
    ws_cu_ptr control_va;
    struct ws_cuda_fault *fault; /* behind control, in the same memory */
    /* fence.c: the ranges of a space; ranges (pinned) and its twin at ranges_va */
    struct ws_ptx_ranges *ranges;
    ws_cu_ptr ranges_va;
    uint32_t cap_ranges, largest, ranges_version;
    uint64_t ranges_space; /* id; 0: of none */
    uint64_t ranges_box;   /* bytes of the box among them; 0: it isn't */
    /* devlib.c: pinned, with room for records behind it; of the space it was last used for. NULL until first used */
    struct ws_ptx_lib *box;
    uint64_t box_space, box_bytes, box_shown; /* shown: to that space's kernels, at most */
    uint8_t *bounce; /* pinned, WS_CUDA_BOUNCE_BYTES; NULL until first used */
};

/* Where a run is, and so whose: see run.c. */
enum ws_cuda_state {
    WS_CUDA_IS_STARTING, /* nowhere: in a thread's hands */
    WS_CUDA_IS_WAITING,  /* for a queue */
    WS_CUDA_IS_BLOCKING, /* for a starter */
    WS_CUDA_IS_COMPILING,
    WS_CUDA_IS_RUNNING, /* on the GPU; the waiter's */
    WS_CUDA_IS_ENDED,   /* to be reported; then in the waiter's hands until it is freed */
    _WS_CUDA_STATES
};

struct ws_cuda_run { /* an operation the device knows */
    /* run lock: of d->in[state], or of none while it is in a thread's hands; of d->runs */
    struct ws_list node, of_device;
    enum ws_cuda_state state; /* run lock */
    struct ws_op *op;
    struct ws_cuda_queue *queue; /* NULL: not started */
    unsigned epoch;
    bool entered;            /* op->space, as of epoch */
    bool cancelled, preempt; /* run lock */
    bool timed;              /* queue->begin and queue->end were recorded, and it did not fail */
    uint64_t started_ns;     /* host clock */
    uint64_t first_ns;       /* device clock: of an earlier part; UINT64_MAX: none */
    void *bounce_to;         /* host address that bounce_bytes go to at the end */
    uint64_t bounce_bytes;
    /* launches kept to SMs, or that can be stopped */
    ws_cu_function function;
    struct ws_ptx_ctl ctl;
    uint8_t *params; /* malloc'ed */
    bool loops;      /* a block does the work of several */
    uint32_t params_bytes;
    uint32_t last_ticket; /* when it was started last */
    uint32_t workers;     /* blocks that the GPU holds at once */
    uint32_t n_sms;       /* that it may use */
    bool rewritten, fenced;
    bool untouched;     /* the context was lost before it began */
    uint64_t box_bytes; /* of the queue's box; 0: it has none */
    uint64_t heap_va, heap_bytes;
    bool uses_heap, heap_empty; /* counted by ws_space_heap_begin(); all of it was given back */
};

/* One compiled form of a module on one device. */
struct ws_cuda_image {
    struct ws_cuda_image *next;
    struct ws_cuda *device;
    ws_cu_module module;
    ws_cu_function *functions; /* [n_kernels]; NULL: not in it */
    uint8_t *kinds;            /* [n_kernels] enum ws_ptx_rewrite */
    bool *flat;                /* [n_kernels] */
    uint32_t *dynamic_bytes;   /* [n_kernels]: shared memory allowed so far */
    uint32_t *fence_at;        /* [n_kernels]: of struct ws_ptx_fence among the parameters */
    uint32_t *ctl_at;          /* [n_kernels]: of struct ws_ptx_ctl */
    uint32_t *lib_at;          /* [n_kernels]: of the address of struct ws_ptx_lib */
    uint32_t *lib_uses;        /* [n_kernels]: ptx/passes/devlib.h; 0: there is no such parameter */
};

struct ws_dmodule { /* begins with its info */
    struct ws_dmodule_info info;
    const struct ws_ptx_module *ptx;
    char *text; /* as printed; parsed again where a form of it is made */
    size_t text_len;
    struct ws_kernel_info *kernels;
    char **why;     /* [n_kernels]: backing of info.unsupported, or NULL */
    uint32_t *func; /* [n_kernels]: index among ptx->funcs */
    uint32_t *uses; /* [n_kernels]: ptx/passes/devlib.h, done by functions of ours */
    bool
        uses_vars; /* code names variables in memory: each instance is compiled for its addresses */
    uint32_t n_function_refs;
    pthread_mutex_t lock;
    struct ws_cuda_image
        *images; /* of instances without variables of their own: [kept to SMs or not] by device */
    struct ws_cuda_image *sm_images;
};
struct ws_dinstance {
    struct ws_dmodule *module;
    struct ws_cuda *device;
    struct ws_space *space;
    uint64_t *var_va;
    /* [kept to SMs or not]: the module's, or own; made when first needed; under module->lock */
    struct ws_cuda_image *image[2];
    bool failed[2];
    bool own;
    struct ws_cuda_machine *machine; /* machine.c: of machine code with variables; else NULL */
};

/* piece.c: physical memory, whole granules */
struct ws_cuda_piece {
    uint64_t id, bytes;
    ws_cu_handle handle;
    uint32_t n_refs;      /* memory_lock: addresses it is at, memories that have it */
    struct ws_list parts; /* memory_lock: of memories that share it */
    bool adopted;         /* another process made it */
};

struct ws_cuda_place;
struct ws_cuda_region;
/* Threads that start what may block: by how long it may. */
enum { WS_CUDA_STARTER, WS_CUDA_COMPILER, _WS_CUDA_STARTERS };

struct ws_cuda {
    struct ws_device base;
    struct ws_cuda_options options;
    struct ws_cuda_capabilities capabilities;
    uint64_t id; /* never given twice */
    struct ws_cu cu;
    int ordinal;
    ws_cu_device device;
    struct ws_cu_uuid uuid;
    ws_cu_ctx context;
    bool retained, can_register;
    uint64_t memory_limit;

    /* memory.c */
    pthread_mutex_t memory_lock;
    _Atomic uint64_t memory_used;
    struct ws_cuda_place *places; /* uthash by address */
    uint32_t peers, peers_known;  /* reserve_lock */
    pthread_mutex_t spare_lock;   /* the innermost */
    ws_cu_handle spare[64];       /* granules */
    uint32_t n_spare;
    _Atomic uint64_t n_pieces;
    bool can_export, maps_host;
    struct ws_cuda_keep keep;
    ws_cu_stream memory_stream;
    struct ws_cuda_region *registered; /* list */

    /* clock.c */
    pthread_mutex_t clock_lock;
    ws_cu_event reference;
    ws_cu_stream clock_stream;
    uint64_t reference_ns, reference_host_ns, last_ns;

    /* run.c */
    pthread_mutex_t run_lock;
    pthread_cond_t waiter_wake;
    pthread_t waiter;
    bool waiter_on, stop;
    struct ws_cuda_starter {
        struct ws_cuda *device;
        enum ws_cuda_state state; /* of what it is to start */
        pthread_cond_t wake;
        pthread_t thread;
        bool on;
    } starters[_WS_CUDA_STARTERS];
    /* run_lock: all; and, but for those in a thread's hands, by where they are */
    struct ws_list runs, in[_WS_CUDA_STATES];
    struct ws_cuda_queue *free_queues, **queues;
    uint32_t n_queues;
    ws_cu_stream flag_stream;
    /* The ws_cu_result that destroyed the context: set once, by any thread, without a lock */
    _Atomic int lost;
    char lost_text[192]; /* run_lock; read by ws_cuda_lost_text() */
    _Atomic uint32_t n_running;
    _Atomic uint64_t n_kernels, n_copies, copied_bytes;
    uint64_t busy_ns, sm_busy_ns, busy_until_ns; /* run_lock */

    struct ws_cuda_greens *greens; /* green.c; NULL: the driver has none */

    struct ws_alarms alarms;

    /* meter, clock.c */
    pthread_t meter;
    bool meter_on;
    pthread_cond_t meter_wake; /* run_lock */
    pthread_mutex_t energy_lock;
    struct ws_nvml *nvml;
    uint64_t counter_mj, window_mj, window_ns, sampled_ns;
    uint64_t energy_uj, given_uj; /* in all since opened; of it, given to operations */
    uint64_t power_mw;
    bool has_counter, has_power;
};

static inline struct ws_cuda *ws_cuda_of(struct ws_device *d)
{
    return WS_CONTAINER_OF(d, struct ws_cuda, base);
}

/* Makes the context current on this thread. */
ws_cu_result ws_cuda_enter(struct ws_cuda *d);
/* Takes note of a result: one that destroys the context marks the device lost. @what: for the log. Return: r. */
ws_cu_result ws_cuda_result(struct ws_cuda *d, ws_cu_result r, const char *what);
#define WS_CU(d, call, ...) ws_cuda_result((d), (d)->cu.call(__VA_ARGS__), #call)
/* Until nothing is left in the stream, as far as the driver says: before what its work uses goes. Leaves the context current. */
ws_cu_result ws_cuda_drain(struct ws_cuda *d, ws_cu_stream s);
bool ws_cuda_is_sticky(ws_cu_result r);
enum ws_dev_error ws_cuda_error(ws_cu_result r);
/* Ends an operation with the error of a driver call. */
void ws_cuda_fail(struct ws_cuda *d, struct ws_op *op, ws_cu_result r, const char *what);
void ws_cuda_say(struct ws_cuda *d, const char *name, bool yes, const char *fmt, ...)
    WS_PRINTF(4, 5);

/* spec.c */
int ws_cuda_read_spec(struct ws_cuda *d, struct ws_diags *diags);

/* memory.c */
int ws_cuda_memory_open(struct ws_cuda *d, struct ws_diags *diags);
void ws_cuda_memory_close(struct ws_cuda *d);
int ws_cuda_mem_alloc(struct ws_device *dev, uint64_t bytes, struct ws_backing *ret);
int ws_cuda_map(struct ws_device *dev, void *arg, struct ws_space *s, uint64_t va, uint64_t bytes,
                uint64_t offset, uint32_t readers, uint32_t writers);
void ws_cuda_unmap(struct ws_device *dev, void *arg, struct ws_space *s, uint64_t va,
                   uint64_t bytes);
void ws_cuda_set_access(struct ws_device *dev, struct ws_space *s, uint64_t va, uint64_t bytes,
                        uint32_t readers, uint32_t writers);
/* Whether it is one that this process has opened itself. */
static inline bool ws_cuda_is(const struct ws_device *dev)
{
    return dev->ops->mem_alloc == ws_cuda_mem_alloc;
}
uint32_t ws_cuda_peers(struct ws_device *dev);
void ws_cuda_place(struct ws_device *dev, void *arg, uint64_t *ret_granule, uint64_t *ret_offset);
void ws_cuda_host_register(struct ws_device *dev, void *host, uint64_t bytes, int fd);
void ws_cuda_host_unregister(struct ws_device *dev, void *host, uint64_t bytes);
/* Whether copies to and from it run without the driver's staging. */
bool ws_cuda_is_pinned(struct ws_cuda *d, const void *host, uint64_t bytes);

/* piece.c. One reference of what is new; the last one gives it back. */
ws_cu_result ws_cuda_piece_new(struct ws_cuda *d, uint64_t bytes, struct ws_cuda_piece **ret);
ws_cu_result ws_cuda_piece_import(struct ws_cuda *d, uint64_t id, uint64_t bytes, int fd,
                                  struct ws_cuda_piece **ret);
struct ws_cuda_piece *ws_cuda_piece_unref(struct ws_cuda *d, struct ws_cuda_piece *p);
/* Tells who keeps memory; @va: as in struct ws_cuda_kept. */
void ws_cuda_piece_made(struct ws_cuda *d, const struct ws_cuda_piece *p, uint64_t va);
void ws_cuda_piece_gone(struct ws_cuda *d, const struct ws_cuda_piece *p, uint64_t va);
void ws_cuda_pieces_close(struct ws_cuda *d);

/* clock.c */
int ws_cuda_clock_open(struct ws_cuda *d);
void ws_cuda_clock_close(struct ws_cuda *d);
void ws_cuda_clock_renew(struct ws_cuda *d); /* nothing runs */
bool ws_cuda_event_ns(struct ws_cuda *d, ws_cu_event e, uint64_t *ret);
uint64_t ws_cuda_now_ns(struct ws_cuda *d);
uint64_t ws_cuda_host_ns(void);
int ws_cuda_meter_open(struct ws_cuda *d);
void ws_cuda_meter_close(struct ws_cuda *d);
/* What an operation took, of what the meter has seen and nobody was given. */
uint64_t ws_cuda_energy_share(struct ws_cuda *d, uint64_t ns, uint32_t n_running);
void ws_cuda_energy(struct ws_cuda *d, uint64_t *ret_uj, uint32_t *ret_mw);

/* bake.c */
/* Whether code of @m names a variable in global or constant memory; variables whose initial value holds addresses of functions. */
bool ws_cuda_names_vars(const struct ws_ptx_module *m);
/* Puts addresses where the code of @m names variables of its own in memory, and takes those variables out. @m is changed.
 * Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_cuda_bake(struct ws_ptx_module *m, const uint64_t *var_va);
/* Leaves functions that can't be linked without a body, and says for each (index: function) why: borrowed text, or NULL. */
WS_MUST_CHECK int ws_cuda_prune(struct ws_ptx_module *m, const char **why);
/* A variable "ws$functions" with the addresses of all functions that initial values name. *ret_n: how many. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_cuda_add_function_table(struct ws_ptx_module *m, uint32_t *ret_n);

/* machine.c */
/* Return: 0, or WS_PTX_E_UNSUPPORTED, said in @diags. */
WS_MUST_CHECK int ws_cuda_machine_check(const struct ws_ptx_module *m, struct ws_diags *diags);
/* The variables of i->image[0], where the driver has put them, become the space's; the image is the variables' from then on, whatever is
 * returned. Return: 0, -ENOMEM, -EIO, -EEXIST. */
WS_MUST_CHECK int ws_cuda_machine_place(struct ws_dinstance *i);
void ws_cuda_machine_free(struct ws_dinstance *i);
void ws_cuda_instance_vars(const struct ws_dinstance *i, uint64_t *ret_va);

/* module.c */
struct ws_cuda_image *ws_cuda_image_free(struct ws_cuda_image *i); /* NULL ok; returns NULL */
int ws_cuda_module_load(struct ws_device *dev, const struct ws_ptx_module *m,
                        struct ws_dmodule **ret, struct ws_diags *diags);
void ws_cuda_module_unload(struct ws_dmodule *m);
int ws_cuda_instance_new(struct ws_device *dev, struct ws_dmodule *m, struct ws_space *s,
                         const uint64_t *var_va, bool write, struct ws_dinstance **ret);
void ws_cuda_instance_free(struct ws_dinstance *i);
/* The form that kernels are launched in; @sms: the one whose kernels can be kept to SMs and stopped. Compiles it if it is not there
 * yet, which takes a while. NULL: not to be had. */
struct ws_cuda_image *ws_cuda_image_of(struct ws_dinstance *i, bool sms);
/* Whether that takes no while: it is there, or known not to be had. */
bool ws_cuda_image_ready(struct ws_dinstance *i, bool sms);
int ws_cuda_occupancy(struct ws_device *dev, const struct ws_dmodule *m, uint32_t kernel,
                      uint32_t block_threads, uint32_t shared_bytes, struct ws_occupancy *ret);

/* run.c */
int ws_cuda_run_open(struct ws_cuda *d);
void ws_cuda_run_close(struct ws_cuda *d);
/* What destroyed the context, and which kernel did as far as it can be told; the text stays as it is until the device is closed. Any
 * thread; run lock not held. Return: NULL: it is not lost. */
const char *ws_cuda_lost_text(struct ws_cuda *d);
void ws_cuda_submit(struct ws_device *dev, struct ws_op *op);
void ws_cuda_cancel(struct ws_device *dev, struct ws_space *s);
int ws_cuda_preempt(struct ws_device *dev, struct ws_op *op);

/* What starting an operation came to. */
enum ws_cuda_start {
    WS_CUDA_STARTED, /* work is queued on the queue, or may be: if it failed midway (op->error), there is still its end to wait for */
    WS_CUDA_DONE,    /* nothing to wait for: all is done, or it failed (op->error) */
    WS_CUDA_BLOCKS,  /* would block: for the starter thread */
    WS_CUDA_COMPILES, /* would block for long: for the compiler thread */
};
/* copy.c, launch.c: @may_block: false on the loop's thread. */
enum ws_cuda_start ws_cuda_copy(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block);
enum ws_cuda_start ws_cuda_launch(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block);
/* After a launch ended: whether something was queued once more, for the blocks that are left; op->error says if that failed. Run lock
 * held. */
bool ws_cuda_launch_again(struct ws_cuda *d, struct ws_cuda_run *r);
/* At the very end: if blocks are left because it was asked to stop, says so in the operation. */
void ws_cuda_launch_stopped(struct ws_cuda_run *r);

/* fence.c */
/* What a fenced launch gets; its table of ranges is under way on the queue. */
ws_cu_result ws_cuda_fence(struct ws_cuda *d, struct ws_cuda_run *r, struct ws_ptx_fence *ret);
/* After a launch ended: whether it went outside; then the operation has its error. */
bool ws_cuda_fence_hit(struct ws_cuda_run *r);
void ws_cuda_fence_free(struct ws_cuda *d, struct ws_cuda_queue *q);

/* devlib.c */
/* A box for a launch that uses (ptx/passes/devlib.h) such things; *ret: what it gets as its parameter. Before ws_cuda_fence(). The heap is open. */
ws_cu_result ws_cuda_lib(struct ws_cuda *d, struct ws_cuda_run *r, uint32_t uses, uint64_t *ret);
/* The heap and what else a launch needs of this before it is started. @may_block: else it says WS_CUDA_BLOCKS where memory has to be made.
 * Return: WS_CUDA_STARTED: go on; WS_CUDA_DONE: the operation has its error. */
enum ws_cuda_start ws_cuda_lib_prepare(struct ws_cuda *d, struct ws_cuda_run *r, bool may_block);
/* Behind its kernel, on the queue's stream. */
ws_cu_result ws_cuda_lib_behind(struct ws_cuda *d, struct ws_cuda_run *r);
/* At the very end, whatever came of it. */
void ws_cuda_lib_done(struct ws_cuda_run *r);
/* After a launch ended: tells what it printed, and who stopped. */
void ws_cuda_lib_end(struct ws_cuda_run *r);
/* The same for records that lie in @bytes of memory. */
void ws_cuda_lib_read(struct ws_op *op, const void *room, uint64_t bytes);
void ws_cuda_lib_free(struct ws_cuda *d, struct ws_cuda_queue *q);

/* green.c */
int ws_cuda_green_open(struct ws_cuda *d);
void ws_cuda_green_close(struct ws_cuda *d); /* no queue is left */
bool ws_cuda_green_may(const struct ws_cuda *d);
/* The queue's stream becomes one in a green context of SMs in @set; may block. Return: how many SMs that has; 0: there is none, the
 * stream is as it was. */
uint32_t ws_cuda_green_enter(struct ws_cuda *d, struct ws_cuda_queue *q,
                             const struct ws_sm_set *set);
/* Back to the plain stream. Nothing runs on the queue. */
void ws_cuda_green_leave(struct ws_cuda_queue *q);

#endif
