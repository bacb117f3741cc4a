/* SPDX-License-Identifier: Apache-2.0 */
/* device/op.h - operations: what a device is given to do (a copy, a fill, a launch), how it ends,
 * and what is known of the modules whose kernels are launched. */
#ifndef WS_DEVICE_OP_H
#define WS_DEVICE_OP_H

#include <stdbool.h>
#include "base/sm_set.h"
#include "device/mapping.h"
#include "ptx/ptx.h"

/* Translated to CUDA codes at the frontend's edge, in one function. */
enum ws_dev_error {
    WS_DEV_OK,
    WS_DEV_E_ILLEGAL_ADDRESS,
    WS_DEV_E_MISALIGNED,
    WS_DEV_E_TRAP,
    WS_DEV_E_ASSERT,
    WS_DEV_E_TIMEOUT,
    WS_DEV_E_ILLEGAL_INSTRUCTION,
    WS_DEV_E_STACK_OVERFLOW,
    WS_DEV_E_LAUNCH_FAILURE, /* sticky: the client's context is lost */
    WS_DEV_E_INVALID_VALUE,
    WS_DEV_E_RESOURCES,
    WS_DEV_E_NO_MEMORY,
    WS_DEV_E_INVALID_CONFIGURATION,
    WS_DEV_E_COOPERATIVE_TOO_LARGE,
    WS_DEV_E_INVALID_CLUSTER,
    WS_DEV_E_CANCELLED,
    _WS_DEV_E_N
};
const char *ws_dev_error_name(enum ws_dev_error e); /* "illegal-address" */

struct ws_device;
struct ws_progress;  /* how far a launch had come when it was preempted */
struct ws_started;   /* what kernels start (started.h) */
struct ws_dmodule;   /* code: loaded once for each content, shared by clients; immutable */
struct ws_dinstance; /* its variables for one client on one device */

/* What a launch executed, all its blocks together, in warp instructions. All 0 where the device
 * can't count. */
struct ws_op_counts {
    uint64_t n_warp_insns;      /* all */
    uint64_t n_global_accesses; /* of them: to global, generic and local memory */
    uint64_t n_sectors;         /* 32-byte sectors that these asked for */
    uint64_t n_barriers;        /* as counted by each warp that came to one */
};

/* Bytes from one row to the next, and from one slice of rows to the next. */
struct ws_pitches {
    uint64_t row, slice;
};
enum ws_op_kind { WS_OPK_COPY, WS_OPK_FILL, WS_OPK_LAUNCH };
enum { WS_LAUNCH_COOPERATIVE = 1u << 0 };
/* A launch whose blocks are several clients' (ptx/passes/pass.h, ws_ptx_fuse()): in each round of
 * `round` blocks come part[0].share of the first part, part[1].share of the second, … A device that
 * can, keeps what goes wrong in one part to that part: its blocks end, the others continue, and
 * op.error stays WS_DEV_OK; and lets each part see its own space and the common one alone. One that
 * can't reports op.error, and 0 instructions for all parts. */
struct ws_launch_part {
    /* whose: ws_device_cancel() of it ends the part; what it prints goes there. */
    struct ws_space *space;
    uint32_t share;
    const char *kernel; /* and its own grid and block: for messages */
    uint32_t grid[3], block[3];
    /* out, valid in done; of a resumed launch (launch.progress) in, too: what has an error
     * stays ended */
    enum ws_dev_error error;
    char text[256];
    uint64_t n_thread_insns;
};
struct ws_launch_parts {
    struct ws_space *common; /* what all parts may read and write besides their own; or NULL */
    uint32_t n, round;       /* the sum of the shares */
    struct ws_launch_part part[];
};
struct ws_op {
    /* in; everything pointed to stays valid until done */
    enum ws_op_kind kind;
    struct ws_space *space;
    /* Device clock: the work may start then at the earliest (end of what it depends on). */
    uint64_t ready_ns;
    void (*done)(struct ws_op *op); /* exactly once; after it the device no longer knows the op */
    void *owner;                    /* the caller's */
    union {
        struct {
            uint64_t dst_va, src_va, bytes; /* bytes: of one row */
            void *dst_host;
            const void *src_host;   /* a non-NULL host pointer replaces the va */
            uint64_t height, depth; /* rows, slices; 0 means 1 */
            struct ws_pitches dst, src;
        } copy;
        struct {
            uint64_t va, width_bytes, height, pitch_bytes;
            uint32_t value, value_bytes; /* 1, 2, 4 */
        } fill;
        struct {
            struct ws_dinstance *instance;
            uint32_t kernel;
            uint32_t grid[3], block[3], shared_bytes, flags;
            /* Blocks of a cluster; 0: as the kernel says, which may be that there are none. */
            uint32_t cluster[3];
            const void *params;
            uint32_t param_bytes;
            struct ws_sm_set sms;
            /* in: what a preempted launch of the same kernel, grid, block and parameters left (on
             * any device of the kind): resume there; NULL: from the first block. The device
             * takes it. out, if preempted: the caller's */
            struct ws_progress *progress;
            struct ws_launch_parts *parts; /* NULL: all blocks are the space's */
            /* Where a kernel that starts others puts them; the caller's. NULL: it can start none.
             */
            struct ws_started *started;
        } launch;
    };
    /* out, valid in done */
    enum ws_dev_error error;
    char text[256];            /* what, kernel, block, thread, address, PTX line; "" on success */
    uint64_t start_ns, end_ns; /* device clock */
    /* This operation's share: its SMs' dynamic energy and its part of static and idle power, less
     * what earlier ones of the space turned out to share with others
     * (device/soft/timeline/timing.c). */
    uint64_t energy_uj;
    /* Of the whole GPU from start to end, if nothing else ran there meanwhile. 0: something did, or
     * nobody measured it. */
    uint64_t alone_uj;
    uint64_t n_thread_insns; /* executed (launch) */
    struct ws_op_counts counts;
    /* Error is OK, but blocks are left: see launch.progress. Times and energy are of this part
     * alone. */
    bool preempted;
    /* the device's own while it knows the op */
    struct ws_op *next;
    void *queued, *priv, *run;
};

/* All bytes that a copy moves; not for one whose sizes nobody has checked. */
static inline uint64_t ws_op_copy_bytes(const struct ws_op *op)
{
    return op->copy.bytes * (op->copy.height ? op->copy.height : 1) *
           (op->copy.depth ? op->copy.depth : 1);
}

/* Whether blocks of a launch must be there at once: all, or those of a cluster. */
static inline bool ws_op_is_together(const struct ws_op *op)
{
    const uint32_t *c = op->launch.cluster;
    return op->launch.flags & WS_LAUNCH_COOPERATIVE || c[0] > 1 || c[1] > 1 || c[2] > 1;
}

/* The space that a launch's instance is of: a launch of several clients has its code in what is
 * common to them. */
static inline struct ws_space *ws_op_code_space(const struct ws_op *op)
{
    const struct ws_launch_parts *p = op->launch.parts;
    return p && p->common ? p->common : op->space;
}

struct ws_kernel_info {
    const char *name;
    uint32_t n_params, param_bytes;
    const struct ws_ptx_var *params; /* param_offset, size_bytes of each */
    uint32_t static_shared_bytes, local_bytes, n_regs /* per thread, estimated from the PTX */,
        max_threads_per_block, const_bytes;
    uint32_t ptx_version, sm;
    uint32_t cluster[3];  /* blocks of a cluster that it was compiled for; 0: any */
    uint32_t max_cluster; /* the most blocks of a cluster; 0: not said */
    bool must_cluster;    /* a launch has to say how large clusters are, where the kernel doesn't */
    /* NULL, or why it can't be launched; then only name and parameters are true. */
    const char *unsupported;
    bool uses_heap; /* calls malloc() or free(), or starts others */
    bool starts;    /* launches kernels itself, or copies and fills as a launch does (started.h) */
    bool prints;    /* calls printf(), or assert() where each thread that fails says so */
    /* WS_PTX_E_NOTFOUND: what it calls or uses is nowhere defined; WS_PTX_E_UNSUPPORTED. */
    int unsupported_code;
};
/* What its text says of kernel @f of @m: name, parameters, target; the rest is 0. Texts and arrays
 * are the module's. */
static inline struct ws_kernel_info ws_kernel_info_of(const struct ws_ptx_module *m,
                                                      const struct ws_ptx_func *f)
{
    return (struct ws_kernel_info){
        .name = f->name,
        .n_params = f->n_params,
        .param_bytes = (uint32_t)f->param_bytes,
        .params = f->params,
        .ptx_version = m->version,
        .sm = m->sm,
        .cluster = {f->reqnctapercluster[0], f->reqnctapercluster[1], f->reqnctapercluster[2]},
        .max_cluster = f->maxclusterrank,
        .must_cluster = f->explicitcluster};
}
/* A launch that does not say how large its clusters are has those of its kernel, if there are
 * any. */
static inline void ws_op_take_cluster(struct ws_op *op, const struct ws_kernel_info *k)
{
    uint32_t *c = op->launch.cluster;
    bool says = c[0] || c[1] || c[2];
    for (int i = 0; !says && i < 3; i++)
        c[i] = k->cluster[i];
}
struct ws_dmodule_info {
    uint64_t later_bytes; /* of memory of this process that the device may take for it later */
    bool own_vars; /* each instance has its variables where it wants: ws_device_instance_vars() */
    uint32_t n_kernels;
    const struct ws_kernel_info *kernels;
    uint32_t n_vars;
    /* The module's; .global and .const have an address in each instance. */
    const struct ws_ptx_var *vars;
};

#endif
