/* SPDX-License-Identifier: Apache-2.0 */
/* device/device.h - the one interface to a GPU. device/soft implements it in software, device/cuda
 * through NVIDIA's driver, and device/worker by a process of its own that uses device/cuda.
 *
 * A device decides nothing. Streams, order, dependencies and placement are the caller's; the device
 * runs what is submitted, and submitted operations may overlap. Time is the device clock in ns (see
 * ws_device_now_ns()), power is in mW, energy in uJ.
 * Threads: the daemon's loop calls every function here. A device works in threads of its own and
 * tells the loop only by ws_op.done, which may run on a device thread or inside ws_device_submit().
 * Locks: the caller holds none. */
#ifndef WS_DEVICE_DEVICE_H
#define WS_DEVICE_DEVICE_H

#include <stdbool.h>
#include "base/diag.h"
#include "device/follow.h"
#include "device/mapping.h"
#include "device/op.h"
#include "device/spec.h"

struct ws_real_ops;
struct ws_clocks;

/* How device time passes on a software GPU. */
enum ws_device_clock {
    /* An operation completes as soon as it was executed. Device time counts device work only. */
    WS_CLOCK_FUNCTIONAL,
    /* Device time passes with the host's, ws_device_options.scale times slower. It stands still
     * while operations are being executed, so that results do not depend on the speed of the host.
     * Work starts no earlier than it was submitted, and is done when device time has come to its
     * end. All devices of the process share one clock. */
    WS_CLOCK_SCALED,
    /* Kernels are checked and priced as empty but not executed (benchmarks of the path). */
    WS_CLOCK_SKIP,
};

struct ws_occupancy {
    uint32_t blocks_per_sm;
    const char *limit;    /* "threads", "blocks", "regs", "shared" */
    uint64_t block_bytes; /* of this process, that a block takes while it runs; 0: none */
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
enum ws_instance_write { /* which variables a new instance gives their initial values */
                         WS_WRITE_NONE,
                         WS_WRITE_ALL,
                         WS_WRITE_UNMANAGED
};
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
                        const uint64_t *var_va, enum ws_instance_write write,
                        struct ws_dinstance **ret);
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
    int (*urge)(struct ws_device *d, struct ws_op *op, uint64_t limit_ns);
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
    bool clocked;                       /* its clocks are not the default ones. Loop thread */
    struct ws_device_clocks clocks_now; /* where it is clocked. Loop thread */
    /* Its counter of energy moves no more often than this; 0: at every moment. */
    uint64_t meter_update_ns;
    /* Who sets them, of a real GPU (device/cuda/clocks.h); NULL: ops do, or nobody. */
    struct ws_clocks *clocks;
};

/* What is told of a software GPU's energy. */
enum ws_device_meter {
    WS_METER_EXACT, /* all, at every moment */
    /* What NVML tells of a real one: a counter that moves at intervals, and a mean power, both with
     * noise; of operations an estimate. Needs WS_CLOCK_SCALED. */
    WS_METER_NVML,
};

/* Which kernels software GPUs compile to machine code (doc/jit.md). Where the compiler's library is
 * not installed, and what it does not take, is interpreted. */
enum ws_device_compile {
    WS_COMPILE_NEVER,
    WS_COMPILE_ALWAYS, /* all, before their first block */
    WS_COMPILE_TIERS,  /* what has run for a while, on a thread, if it is faster then */
};

/* What software GPUs look for in kernels, as a mask: invalid accesses, races, and reads of global
 * and of shared memory that nobody has written. */
enum ws_inspect_tool {
    WS_INSPECT_MEMORY = 1,
    WS_INSPECT_RACES = 2,
    WS_INSPECT_UNWRITTEN = 4,
    WS_INSPECT_UNWRITTEN_SHARED = 8
};

struct ws_device_options {
    enum ws_device_clock clock;
    /* WS_CLOCK_SCALED: host time for each unit of device time, 1…10000; 0: 20. The first device's
     * counts. */
    double scale;
    /* WS_CLOCK_SCALED: host time for which the clock waits for a kernel; 0: 2 s. As with scale. */
    uint64_t stall_host_ns;
    uint64_t wake_ns; /* WS_CLOCK_SCALED: from off to ready, when work comes */
    /* Host threads for all soft devices of the process together; 0: host cores. */
    uint32_t n_workers;
    /* Thread instructions after which a kernel is endless (WS_DEV_E_TIMEOUT); 0: no limit. */
    uint64_t max_kernel_insns;
    uint32_t local_bytes_per_thread_max;
    uint64_t heap_bytes;
    enum ws_device_meter meter;
    uint64_t meter_update_ns; /* WS_METER_NVML: the interval, in device time */
    double meter_noise;       /* …and the noise, 0 to 0.2: standard deviation of an update */
    /* WS_CLOCK_SCALED: kernels that take measured times and powers; the device borrows them */
    const struct ws_followed *followed;
    uint32_t n_followed;
    uint32_t inspect;               /* mask of enum ws_inspect_tool; the first device's counts */
    enum ws_device_compile compile; /* of modules loaded from now on; the last device's counts */
    struct ws_events *ret_events;   /* what the last launch did (power: fitted); NULL: not wanted */
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
/* The same after managed variables were moved to where they have values, which they keep. */
WS_MUST_CHECK int ws_device_instance_again(struct ws_device *d, struct ws_dmodule *m,
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
/* Asks a launch to stop at a block boundary: blocks that have begun are finished, then done is
 * called with op->preempted, or as always if the launch has ended before. The loop thread only;
 * op->done must not have been called yet.
 * Return: 0, -ENOTSUP (cooperative, or the kernel or the device doesn't allow it: the launch runs
 * to its end). A device in a process of its own does not wait for that process, and returns 0 also
 * where the kernel does not allow it. */
WS_MUST_CHECK int ws_device_preempt(struct ws_device *d, struct ws_op *op);
/* Other clients wait for what a launch has; with @limit_ns 0 they no longer do. While they wait,
 * the device counts time of the host's processor: once a single block of the launch has run for
 * @limit_ns, or all its blocks together have only waited for that long, the launch ends with
 * WS_DEV_E_TIMEOUT. Of a launch of several clients only that client's part ends. A launch whose
 * blocks end is never ended. If the launch was also asked to stop (ws_device_preempt()), its blocks
 * are finished one after another.
 * The loop thread only, until the loop has been told of the launch's end.
 * Return: 0; WS_DEVICE_EXECUTED: the launch has been executed, and only its time has to pass, or
 * it has ended; -ENOTSUP: the device can't end a launch. */
enum { WS_DEVICE_EXECUTED = 1 };
WS_MUST_CHECK int ws_device_urge(struct ws_device *d, struct ws_op *op, uint64_t limit_ns);
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

#endif
