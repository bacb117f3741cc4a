/* SPDX-License-Identifier: Apache-2.0 */
/* device/device.h - the one interface to a GPU, implemented by device/soft (a software GPU) and
 * later by device/cuda.
 *
 * Threads: the daemon loop calls every function here; a device works in threads of its own and
 * tells the loop only by ws_op.done, which may run on a device thread or inside ws_device_submit().
 * Locks: none held by the caller.
 * The device decides nothing: streams, order, dependencies and placement are the caller's; it runs
 * what is submitted, and submitted operations may overlap. Time is the device clock in ns (see
 * ws_device_now_ns()); power in mW; energy in uJ. */
#ifndef WS_DEVICE_DEVICE_H
#define WS_DEVICE_DEVICE_H

#include <stdbool.h>
#include "base/diag.h"
#include "base/sm_set.h"
#include "ptx/ptx.h"

/* ---- catalog entry: what a GPU is; all fields are set (conf/gpu.d/ *.conf) ---- */
struct ws_gpu_spec {
    char name[32];    /* "rtx3070" */
    char product[64]; /* "NVIDIA GeForce RTX 3070", reported to programs */
    uint32_t cc_major, cc_minor;
    uint32_t n_sms, max_threads_per_sm, max_blocks_per_sm, regs_per_sm, max_threads_per_block;
    uint32_t shared_bytes_per_sm, shared_bytes_per_block, shared_bytes_per_block_optin;
    uint32_t core_mhz, memory_mhz, memory_bus_bits, l2_bytes;
    uint64_t memory_bytes, memory_bytes_per_s;
    uint64_t copy_bytes_per_s; /* host link, one direction */
    uint32_t copy_latency_ns, launch_overhead_ns, memory_latency_ns;
    uint32_t schedulers_per_sm; /* warp instructions issued per SM and clock */
    uint32_t fp32_lanes_per_sm, int_lanes_per_sm, fp64_lanes_per_sm, sfu_lanes_per_sm,
        ldst_lanes_per_sm;
    uint32_t static_mw;      /* P^s: powered, nothing running */
    uint32_t idle_mw_per_sm; /* p^idle: per idle SM while any SM is active */
    /* 1: the host's own processor, described like a GPU: for policies, programs don't see it. */
    uint32_t host;
    /* p^dyn: per active SM (sBEET-mg Eq. 2; per-application values come with profiles). */
    uint32_t dynamic_mw_per_sm;
};

/* Design, "Software GPU". */
enum ws_device_clock {
    /* An operation completes as soon as it was executed; device time counts device work only. */
    WS_CLOCK_FUNCTIONAL,
    /* Device time passes with the host's, ws_device_options.scale times slower; while operations
     * are being executed it stands still, so that the speed of the host does not show. Work starts
     * when it was submitted at the earliest, and is done when its end has come. One clock for all
     * devices of the process. */
    WS_CLOCK_SCALED,
    /* Kernels are checked and priced as empty but not executed (benchmarks of the path). */
    WS_CLOCK_SKIP,
};

/* ---- address space of one client: what its kernels and copies may touch; shared by all its devices ---- */
struct ws_space;
enum { WS_MAP_READONLY = 1u << 0 }; /* nobody who asked may write */
#define WS_ACCESS_ALL UINT32_MAX
enum {
    WS_ACCESS_DEVICES = 32
}; /* masks of devices by ws_device.index; a device beyond has no bit */
/* A mapping: [va, va + bytes) is backed by host memory at @host of this process. */
struct ws_mapping {
    uint64_t va, bytes;
    uint8_t *host;
    uint32_t flags;
    uint32_t readers, writers; /* the devices whose kernels may read, write */
    /* Whose memory; NULL: the client's own host memory (pinned, staged). */
    struct ws_device *device;
};
WS_MUST_CHECK int ws_space_new(struct ws_space **ret);
/* No operation may be in flight. Does not free what is mapped by ws_space_map_host(). */
struct ws_space *ws_space_free(struct ws_space *s);
/* Maps host memory (a shared segment) at @va, which is the client's own address of it. @host:
 * borrowed until unmapped.
 * Return: 0, -EEXIST (overlaps a mapping), -EINVAL (empty, wraps), -ENOMEM. */
WS_MUST_CHECK int ws_space_map_host(struct ws_space *s, uint64_t va, uint64_t bytes, void *host);
/* The mapping whose range holds [va, va + bytes) whole. Return: true with a copy in *ret. Any
 * thread. */
bool ws_space_find(const struct ws_space *s, uint64_t va, uint64_t bytes, struct ws_mapping *ret);
/* Whether [va, va + bytes) is mapped without a hole, by one mapping or several, and may be written
 * if asked. Any thread. */
bool ws_space_covers(const struct ws_space *s, uint64_t va, uint64_t bytes, bool write);
/* Who may read and write the mapping that starts at @va, from now on. Return: 0 or -ENOENT. */
WS_MUST_CHECK int ws_space_set_access(struct ws_space *s, uint64_t va, uint32_t readers,
                                      uint32_t writers);
/* Removes the mapping that starts at @va; its memory goes back to its device. Kernels still running
 * may not use it any more (the caller makes sure, or they fault). Return: 0 or -ENOENT. */
WS_MUST_CHECK int ws_space_unmap(struct ws_space *s, uint64_t va);

/* A space that holds what all of @members hold at the moment of each access, for one launch of
 * several clients. Nothing is mapped in it itself; kernels that use malloc() can't run in it. The
 * members must outlive it; one may stand there twice. Where two members come to hold one address
 * later, the older mapping is the one that is seen: a fence keeps each client to its own.
 * Return: 0, -EEXIST (two of them hold the same address), -EINVAL (n not 1…WS_SPACE_JOIN_MAX, or a
 * joint space among them), -ENOMEM. */
enum { WS_SPACE_JOIN_MAX = 32 };
WS_MUST_CHECK int ws_space_join(struct ws_space **ret, struct ws_space *const *members, uint32_t n);

/* ---- physical memory: made by a device, mapped into any number of spaces at any number of places ---- */
struct ws_memory;
/* Where a device has put it. @release is called once nobody can see the memory any more, on any
 * thread, without locks. */
struct ws_backing {
    uint8_t *host; /* NULL: out of the host's reach; then the device has map and unmap */
    void (*release)(void *arg, uint8_t *host, uint64_t bytes);
    void *arg;
};
struct ws_memory *ws_memory_ref(struct ws_memory *m);   /* any thread */
struct ws_memory *ws_memory_unref(struct ws_memory *m); /* NULL ok; returns NULL. Any thread */
/* Maps [offset, offset + bytes) of @m at @va; the mapping holds a reference. Return: 0, -EEXIST,
 * -EINVAL (empty, wraps, beyond the memory's end), -ENOMEM. Ends with ws_space_unmap(). */
WS_MUST_CHECK int ws_space_map_memory(struct ws_space *s, uint64_t va, uint64_t bytes,
                                      struct ws_memory *m, uint64_t offset, uint32_t readers,
                                      uint32_t writers);

/* Where @m can be mapped a second time: at addresses that are *ret_offset more than a multiple of
 * *ret_granule, while nothing else lies in the granules of addresses that it is in then. */
void ws_memory_place(const struct ws_memory *m, uint64_t *ret_granule, uint64_t *ret_offset);

/* ---- operations ---- */
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
    WS_DEV_E_CANCELLED,
    _WS_DEV_E_N
};
const char *ws_dev_error_name(enum ws_dev_error e); /* "illegal-address" */

struct ws_device;
struct ws_real_ops;
struct ws_clocks;
struct ws_progress;  /* how far a launch had come when it was preempted */
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
 * can, keeps what goes wrong in one part to that part: its blocks end, the others go on, and
 * op.error stays WS_DEV_OK; and lets each part see its own space and the common one alone. One that
 * can't reports op.error, and 0 instructions for all parts. */
struct ws_launch_part {
    /* whose: ws_device_cancel() of it ends the part; what it prints goes there. */
    struct ws_space *space;
    uint32_t share;
    const char *kernel; /* and its own grid and block: for messages */
    uint32_t grid[3], block[3];
    /* out, valid in done; of a launch that goes on (launch.progress) in, too: what has an error
     * stays ended */
    enum ws_dev_error error;
    char text[192];
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
            const void *params;
            uint32_t param_bytes;
            struct ws_sm_set sms;
            /* in: what a preempted launch of the same kernel, grid, block and parameters left (on
             * any device of the kind): go on from there; NULL: from the first block. The device
             * takes it. out, if preempted: the caller's */
            struct ws_progress *progress;
            struct ws_launch_parts *parts; /* NULL: all blocks are the space's */
        } launch;
    };
    /* out, valid in done */
    enum ws_dev_error error;
    char text[192];            /* what, kernel, block, thread, address, PTX line; "" on success */
    uint64_t start_ns, end_ns; /* device clock */
    /* This operation's share: its SMs' dynamic energy and its part of static and idle power, less
     * what earlier ones of the space turned out to share with others
     * (device/soft/timeline/timing.c). */
    uint64_t energy_uj;
    uint64_t n_thread_insns; /* executed (launch) */
    struct ws_op_counts counts;
    /* Error is OK, but blocks are left: see launch.progress. Times and energy are of this part
     * alone. */
    bool preempted;
    /* the device's own while it knows the op */
    struct ws_op *next;
    void *priv;
};

/* All bytes that a copy moves; not for one whose sizes nobody has checked. */
static inline uint64_t ws_op_copy_bytes(const struct ws_op *op)
{
    return op->copy.bytes * (op->copy.height ? op->copy.height : 1) *
           (op->copy.depth ? op->copy.depth : 1);
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
    /* NULL, or why it can't be launched; then only name and parameters are true. */
    const char *unsupported;
    bool uses_heap; /* calls malloc() or free() */
    /* WS_PTX_E_NOTFOUND: what it calls or uses is nowhere defined; WS_PTX_E_UNSUPPORTED. */
    int unsupported_code;
};
/* What its text says of kernel @f of @m: name, parameters, target; the rest is 0. Texts and arrays
 * are the module's. */
static inline struct ws_kernel_info ws_kernel_info_of(const struct ws_ptx_module *m,
                                                      const struct ws_ptx_func *f)
{
    return (struct ws_kernel_info){.name = f->name,
                                   .n_params = f->n_params,
                                   .param_bytes = (uint32_t)f->param_bytes,
                                   .params = f->params,
                                   .ptx_version = m->version,
                                   .sm = m->sm};
}
struct ws_dmodule_info {
    bool own_vars; /* each instance has its variables where it wants: ws_device_instance_vars() */
    uint32_t n_kernels;
    const struct ws_kernel_info *kernels;
    uint32_t n_vars;
    /* The module's; .global and .const have an address in each instance. */
    const struct ws_ptx_var *vars;
};
struct ws_occupancy {
    uint32_t blocks_per_sm;
    const char *limit; /* "threads", "blocks", "regs", "shared" */
};

struct ws_device_telemetry {
    uint64_t now_ns;              /* device clock */
    uint64_t busy_ns, sm_busy_ns; /* at least one SM active; sum over SMs */
    uint64_t energy_uj;
    /* Over the last busy stretch (WS_CLOCK_SCALED: now), by Eq. 2 of sBEET-mg, cases as corrected.
     */
    uint32_t power_mw;
    uint64_t memory_used_bytes, n_kernels, n_copies, copied_bytes, n_thread_insns;
    uint32_t n_running; /* operations submitted and not done */
    /* WS_CLOCK_SCALED; else 0 */
    /* Of energy_uj: static power while nothing ran, charged to no operation. */
    uint64_t idle_energy_uj;
    /* Operations whose execution took so long that the clock went on, past their end. */
    uint64_t n_overruns;
    uint64_t stalled_host_ns; /* host time for which the clock stood, of all devices */
};

/* Relative to the catalog's: 1 is the default. EDL's V, f^c, f^m. */
struct ws_device_clocks {
    double volt, core, memory;
};

/* A call at a device time. */
struct ws_alarm {
    uint64_t at_ns;
    /* On a device thread, or inside ws_device_alarm(); exactly once. */
    void (*ring)(struct ws_alarm *a);
    void *priv[2]; /* the device's */
};

/* Const table; instances embed struct ws_device first. Contracts as at the functions below, which
 * check and call them. */
struct ws_device_ops {
    const char *name; /* "soft" */
    void (*close)(struct ws_device *d);
    int (*mem_alloc)(struct ws_device *d, uint64_t bytes, struct ws_backing *ret);
    /* Makes [offset, offset + bytes) of what mem_alloc gave, whose release argument @arg is, seen
     * at @va of @s by the devices of the masks; and the opposite. NULL: the host sees the memory,
     * and mappings need no device. Return: 0, -EEXIST, -EINVAL, -ENOMEM. */
    int (*map)(struct ws_device *d, void *arg, struct ws_space *s, uint64_t va, uint64_t bytes,
               uint64_t offset, uint32_t readers, uint32_t writers);
    void (*unmap)(struct ws_device *d, void *arg, struct ws_space *s, uint64_t va, uint64_t bytes);
    void (*set_access)(struct ws_device *d, struct ws_space *s, uint64_t va, uint64_t bytes,
                       uint32_t readers,
                       uint32_t writers); /* of a mapping; NULL: needs no device */
    /* Mask of the devices whose kernels can reach this one's memory, this one too. NULL: all. */
    uint32_t (*peers)(struct ws_device *d);
    /* As ws_memory_place(). NULL: anywhere. */
    void (*place)(struct ws_device *d, void *arg, uint64_t *ret_granule, uint64_t *ret_offset);
    /* Memory of this process that copies will use: may make them faster. NULL: makes no difference.
     */
    void (*host_register)(struct ws_device *d, void *host, uint64_t bytes, int fd);
    void (*host_unregister)(struct ws_device *d, void *host, uint64_t bytes);
    int (*module_load)(struct ws_device *d, const struct ws_ptx_module *m, struct ws_dmodule **ret,
                       struct ws_diags *diags);
    void (*module_unload)(struct ws_dmodule *m);
    int (*instance_new)(struct ws_device *d, struct ws_dmodule *m, struct ws_space *s,
                        const uint64_t *var_va, bool write, struct ws_dinstance **ret);
    void (*instance_free)(struct ws_dinstance *i);
    void (*instance_vars)(const struct ws_dinstance *i,
                          uint64_t *ret_va); /* NULL: no module has own_vars */
    void (*submit)(struct ws_device *d, struct ws_op *op);
    void (*cancel)(struct ws_device *d, struct ws_space *s);
    void (*telemetry)(struct ws_device *d, struct ws_device_telemetry *ret);
    int (*occupancy)(struct ws_device *d, const struct ws_dmodule *m, uint32_t kernel,
                     uint32_t block_threads, uint32_t shared_bytes, struct ws_occupancy *ret);
    /* Optional; NULL: the device can't. */
    int (*preempt)(struct ws_device *d, struct ws_op *op);
    int (*set_clocks)(struct ws_device *d, const struct ws_device_clocks *want,
                      struct ws_device_clocks *ret);
    int (*set_power)(struct ws_device *d, bool on);
    int (*alarm)(struct ws_device *d, struct ws_alarm *a);
    uint64_t (*now_ns)(struct ws_device *d); /* NULL: telemetry's */
    const struct ws_real_ops *real;          /* device/cuda/cuda.h; NULL: no real GPU */
};
struct ws_device {
    const struct ws_device_ops *ops;
    struct ws_gpu_spec spec;
    uint32_t index;
    /* NULL: takes modules that are machine code; else why not, and what would be right. */
    const char *no_machine_code;
    /* Textures and constants are plain memory to its kernels: who fences one for it makes them that
     * before. */
    bool plain_memory;
    bool clocked; /* its clocks are not the default ones. Loop thread */
    /* Who sets them, of a real GPU (device/cuda/clocks.h); NULL: ops do, or nobody. */
    struct ws_clocks *clocks;
};

struct ws_device_options {
    enum ws_device_clock clock;
    /* WS_CLOCK_SCALED: host time for each unit of device time, 1…10000; 0: 20. The first device's
     * counts. */
    double scale;
    uint64_t wake_ns; /* WS_CLOCK_SCALED: from off to ready, when work comes */
    /* Host threads for all soft devices of the process together; 0: host cores. */
    uint32_t n_workers;
    /* Thread instructions after which a kernel is endless (WS_DEV_E_TIMEOUT); 0: no limit. */
    uint64_t max_kernel_insns;
    uint32_t local_bytes_per_thread_max;
    uint64_t heap_bytes;
};
/* The catalog spec is copied. Return: 0, -EINVAL (a spec field out of range, named in diags),
 * -ENOMEM, -EAGAIN (no thread). */
WS_MUST_CHECK int ws_device_open_soft(struct ws_device **ret, const struct ws_gpu_spec *spec,
                                      uint32_t index, const struct ws_device_options *options,
                                      struct ws_diags *diags);
/* Nothing may be in flight, no instance and no module alive. NULL ok. */
void ws_device_close(struct ws_device *d);

/* The devices (mask by index) whose kernels can use memory of @d, which is one of them. What masks
 * of readers and writers name beyond these is left out of them when memory of @d is mapped. Copies
 * go between all. */
uint32_t ws_device_peers(struct ws_device *d);

enum { WS_DEVICE_PAGE_BYTES = 512 };
/* Zeroed memory of @d. @bytes: a multiple of WS_DEVICE_PAGE_BYTES. The caller owns a reference.
 * Return: 0, WS_DEV_E_NO_MEMORY (catalog's memory_bytes reached), -EINVAL, -ENOMEM. */
WS_MUST_CHECK int ws_device_memory_new(struct ws_device *d, uint64_t bytes, struct ws_memory **ret);
/* Both at once: backs [va, va+bytes) of @s with zeroed memory of @d. @va, @bytes: multiples of
 * WS_DEVICE_PAGE_BYTES.
 * Return: 0, WS_DEV_E_NO_MEMORY (catalog's memory_bytes reached), -EEXIST, -EINVAL, -ENOMEM. Freed
 * by ws_space_unmap(). */
WS_MUST_CHECK int ws_device_mem_alloc(struct ws_device *d, struct ws_space *s, uint64_t va,
                                      uint64_t bytes);

/* Decodes. @m: borrowed, must outlive the module. A module may be instantiated on any device of the
 * same kind ("soft"). What the device lacks, or is not defined, and a kernel reaches is named with
 * its PTX line in diags and in that kernel's info; the other kernels work. Any thread. @m with
 * machine code (m->code): see no_machine_code.
 * Return: 0, WS_PTX_E_UNSUPPORTED and WS_PTX_E_NOTFOUND (machine code that the device, or its
 * driver, doesn't take; diags say why), -ENOMEM. */
WS_MUST_CHECK int ws_device_module_load(struct ws_device *d, const struct ws_ptx_module *m,
                                        struct ws_dmodule **ret, struct ws_diags *diags);
void ws_device_module_unload(struct ws_device *d, struct ws_dmodule *m);
const struct ws_dmodule_info *ws_dmodule_info(const struct ws_dmodule *m);

/* @var_va[n_vars]: address of each .global/.const variable, memory the caller has backed on @d; 0
 *   for others and for sizeless
 * ones. The instance writes the initial values (blocking, at once). Where the module has own_vars,
 * @var_va is not looked at, and the variables are mapped into @s by the instance, until it is
 * freed. Return: 0, -EINVAL, -ENOMEM. */
WS_MUST_CHECK int ws_device_instance_new(struct ws_device *d, struct ws_dmodule *m,
                                         struct ws_space *s, const uint64_t *var_va,
                                         struct ws_dinstance **ret);
/* Where the variables of an instance with own_vars lie; 0: programs can't name it. @ret_va:
 * [n_vars]. */
void ws_device_instance_vars(struct ws_device *d, const struct ws_dinstance *i, uint64_t *ret_va);
/* The same for code that stands for other code, whose variables are there already: nothing is
 * written. Not for own_vars. */
WS_MUST_CHECK int ws_device_instance_borrow(struct ws_device *d, struct ws_dmodule *m,
                                            struct ws_space *s, const uint64_t *var_va,
                                            struct ws_dinstance **ret);
/* No launch of it may be in flight. */
void ws_device_instance_free(struct ws_device *d, struct ws_dinstance *i);

/* Starts an operation; never blocks. Wrong arguments complete it with an error. op->done may be
 * called before return. */
void ws_device_submit(struct ws_device *d, struct ws_op *op);
/* Asks every operation of @s on @d to end soon with WS_DEV_E_CANCELLED (running kernels too); done
 * is still called for each. */
void ws_device_cancel(struct ws_device *d, struct ws_space *s);
/* Asks a launch to stop between two blocks: those that have begun are finished, then done is called
 * with op->preempted, or as always if it was through before. The loop thread only, op->done not yet
 * called.
 * Return: 0, -ENOTSUP (cooperative, or the kernel or the device doesn't allow it: it goes on to its
 * end). */
WS_MUST_CHECK int ws_device_preempt(struct ws_device *d, struct ws_op *op);
/* How much of the launch's work, in device time, was done before it was preempted: 0…1. */
double ws_progress_part(const struct ws_progress *p);
struct ws_progress *ws_progress_free(struct ws_progress *p); /* NULL ok; returns NULL */
/* Sets clocks for what starts from now on. @ret: what they are now (a GPU has steps). Return: 0,
 * -ENOTSUP, -EINVAL (out of range). */
WS_MUST_CHECK int ws_device_set_clocks(struct ws_device *d, const struct ws_device_clocks *want,
                                       struct ws_device_clocks *ret);
/* Off: takes no power; nothing may be in flight. Work submitted while it is off turns it on.
 * Return: 0, -ENOTSUP, -EBUSY. */
WS_MUST_CHECK int ws_device_set_power(struct ws_device *d, bool on);
/* Calls a->ring when the device's clock reaches a->at_ns; at once if it has, or if its time does
 * not pass by itself (WS_CLOCK_FUNCTIONAL, WS_CLOCK_SKIP: then the clock moves on to it). @a: the
 * caller's until it rings; there is no taking back. Closing the device rings what is left. Return:
 * 0, -ENOMEM. */
WS_MUST_CHECK int ws_device_alarm(struct ws_device *d, struct ws_alarm *a);
void ws_device_telemetry(struct ws_device *d, struct ws_device_telemetry *ret);
uint64_t ws_device_now_ns(struct ws_device *d);
/* Host memory that many copies will come from or go to, and its end; hints, which never fail. No
 * copy may be using it at the end.
 * @fd: of what is mapped there, from its beginning, shared; borrowed; -1: of nothing that has one.
 */
void ws_device_host_register(struct ws_device *d, void *host, uint64_t bytes, int fd);
void ws_device_host_unregister(struct ws_device *d, void *host, uint64_t bytes);
/* Blocks of a kernel that fit one SM at once (CUDA occupancy). Return: 0 or -EINVAL. */
WS_MUST_CHECK int ws_device_occupancy(struct ws_device *d, const struct ws_dmodule *m,
                                      uint32_t kernel, uint32_t block_threads,
                                      uint32_t shared_bytes, struct ws_occupancy *ret);
/* What kernels write: of one printf, or of one failed assertion; called on a device thread. NULL:
 * dropped. */
enum ws_output {
    WS_OUTPUT_PRINTF = 1,
    WS_OUTPUT_ASSERT = 2
}; /* the numbers of stdout and stderr */
void ws_space_set_print(struct ws_space *s,
                        void (*print)(void *arg, enum ws_output to, const char *text, size_t n),
                        void *arg);

/* Bytes of text of what a launch prints that shall not be lost (cudaLimitPrintfFifoSize): a device
 * that keeps it until the launch has ended makes room for about as much. */
void ws_space_set_print_bytes(struct ws_space *s, uint64_t bytes);

/* Bytes that malloc() in device code may give out (cudaLimitMallocHeapSize). Kernels that call
 * malloc() or free() find the heap mapped, in memory of the device that first ran one. Once it is,
 * only ws_space_drop_heap() lets the size change.
 * Return: 0, or -EBUSY. */
WS_MUST_CHECK int ws_space_set_heap_bytes(struct ws_space *s, uint64_t bytes);
/* Where it will be: of a device whose addresses are real ones (ws_device_ops.map), all clients' lie
 * in different places. 0: anywhere, as at first. *ret_bytes: how large it will be, which stays from
 * then on. Return: 0, or -EBUSY: it is there. */
WS_MUST_CHECK int ws_space_place_heap(struct ws_space *s, uint64_t va, uint64_t *ret_bytes);
/* Gives the heap back, with all that was allocated in it (cudaDeviceReset). @d: only if it lies in
 * this device's memory; NULL: in any case. No kernel of the space may be running. */
void ws_space_drop_heap(struct ws_space *s, const struct ws_device *d);

#endif
