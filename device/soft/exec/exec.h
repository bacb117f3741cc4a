/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/exec.h - the interpreter: executes blocks of a grid, knows nothing of devices,
 * SM counts or time.
 *
 * exec decodes a PTX module once (ws_code), then runs blocks of a grid a quantum at a time. The
 * soft device (above) decides which block runs when, on which virtual SM, on which host thread, and
 * prices the work that the block reports.
 * Threads: ws_code and ws_grid are read-only while blocks run, but for the atomics marked below; a
 * ws_blockrun, with all others of its cluster, belongs to one thread at a time and may move between
 * steps. */
#ifndef WS_DEVICE_SOFT_EXEC_EXEC_H
#define WS_DEVICE_SOFT_EXEC_EXEC_H

#include <stdatomic.h>
#include "device/device.h"

struct ws_code;
struct ws_inspect;
struct ws_inspect_launch;
struct ws_reuse;
/* Decodes all kernels of @m (borrowed, outlives the code) and what they reach. One that can't be is
 * marked in its ws_kernel_info, and must not be run; diags name opcode and line. @hardware_cc: of
 * the GPU whose instructions are counted, times 10; 0: any from Volta on. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_code_new(struct ws_code **ret, const struct ws_ptx_module *m,
                              uint32_t hardware_cc, struct ws_diags *diags);
struct ws_code *ws_code_free(struct ws_code *c);
/* Whoever holds a reference may read what was decoded. The module goes with ws_code_free(). */
void ws_code_ref(struct ws_code *c);
void ws_code_put(struct ws_code *c);
/* One thing that can't be run, in the image of kernel @entry: @in is the function that holds it
 * (the kernel, or one that it calls), @i the instruction, or NULL where it is none. @text is
 * borrowed. What two kernels share is told for each. */
typedef void ws_code_lack(void *arg, const struct ws_ptx_func *entry, const struct ws_ptx_func *in,
                          const struct ws_ptx_insn *i, const char *text);
/* Tells @each everything that ws_code_new() marks kernels of @m as unsupported for (all of it, not
 * the first only); nothing can be run afterwards. Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_code_audit(const struct ws_ptx_module *m, ws_code_lack *each, void *arg);
/* Kernels in the module's order. The array lives as long as the code. */
const struct ws_kernel_info *ws_code_kernels(const struct ws_code *c, uint32_t *ret_n);
/* Bytes that the code may grow by once its kernels run: they are compiled (device/soft/jit). */
uint64_t ws_code_later_bytes(const struct ws_code *c);
/* Bytes of this process that each block of @n_threads has while it runs: registers, local and
 * shared memory. @sm and @local_bytes_max as in struct ws_grid. */
uint64_t ws_code_block_bytes(const struct ws_code *c, uint32_t kernel, uint32_t n_threads,
                             uint32_t dyn_shared_bytes, uint32_t sm, uint32_t local_bytes_max);

/* Makes the code tell of each access to memory (device/soft/inspect), before anything of it runs.
 * Return: 0 or -ENOMEM. */
WS_MUST_CHECK int ws_code_inspect(struct ws_code *c);

/* What the executed work was, by the classes the timing model prices. Counts are of warp
 * instructions unless said. */
enum ws_work_class {
    WS_WORK_FP32,
    WS_WORK_INT,
    WS_WORK_FP64,
    WS_WORK_SFU,
    WS_WORK_LDST,
    WS_WORK_CTRL,
    WS_WORK_HALF,
    _WS_WORK_N
};
/* What a GPU's units do for the machine instructions that the PTX becomes (decode/machine.c). */
enum ws_unit_op { WS_UNIT_INT, WS_UNIT_FP32, WS_UNIT_FP64, WS_UNIT_SFU, _WS_UNIT_N };
struct ws_exec_work {
    uint64_t n_warp_insns[_WS_WORK_N];
    uint64_t n_thread_insns;         /* active lanes summed */
    uint64_t n_machine_insns;        /* warp instructions of the machine */
    uint64_t n_unit_ops[_WS_UNIT_N]; /* active lanes summed */
    uint64_t n_global_loads,
        n_global_stores; /* warp instructions to global/generic-global/local memory */
    uint64_t n_load_sectors, n_store_sectors; /* 32-byte sectors they touched */
    uint64_t n_texture_quads;                 /* groups of four lanes that fetched */
    uint64_t n_shared_accesses, n_atomics, n_barriers;
    uint64_t n_atomic_sectors; /* of the atomics of memory: about how many they changed */
    uint64_t atomic_places;    /* a bit for each place of 512 bytes that they are in, by its hash */
    uint64_t n_shared_loads;   /* of the accesses */
    uint64_t n_shared_transactions; /* more than one an access where banks conflict */
    /* Of the loaded sectors, those of blocks that were watched, and those that L1 did not have. */
    uint64_t n_watched_sectors, n_missed_sectors;
    /* Set once the launch is over (reuse.h). */
    uint64_t n_l2_sectors, n_dram_sectors;
};

/* One client's blocks of a grid that has blocks of several (struct ws_launch_parts). */
struct ws_grid_part {
    const struct ws_space *space;
    const char *kernel;
    uint32_t share, grid[3], block[3];
    /* as in struct ws_grid, for its blocks */
    _Atomic int stop, fault_claimed;
    char text[256];
    _Atomic uint64_t n_thread_insns; /* the caller's */
};

/* Shared memory is given to blocks in units of so many bytes. @sm: compute capability * 10. */
static inline uint32_t ws_exec_shared_unit(uint32_t sm)
{
    return sm >= 80 ? 128 : 256;
}

struct ws_grid {
    /* set by the caller */
    const struct ws_code *code;
    uint32_t kernel;
    uint32_t grid[3], block[3], dyn_shared_bytes;
    uint32_t cluster[3];   /* blocks of a cluster; 0: 1. The grid is made of whole ones */
    bool explicit_cluster; /* the launch, or the kernel, says how large they are */
    const uint8_t *params; /* param_bytes of the kernel */
    const struct ws_space *space;
    uint32_t who;           /* mask of the device whose access to the space counts; 0: of all */
    const uint64_t *var_va; /* [module n_vars] */
    uint32_t n_sms, sm;     /* %nsmid; compute capability *10 */
    uint64_t grid_id;
    /* 64-bit value of %envreg1 (high half) and %envreg2 (low half): cooperative-groups workspace.
     */
    uint64_t envreg12;
    uint64_t (*clock)(
        void *
            /* Device cycles for %clock64, advanced also by the block's own instructions; may be
             * NULL. */
            arg);
    uint64_t (*globaltimer)(void *arg);
    void *clock_arg;
    uint32_t local_bytes_max;
    uint32_t n_parts, round;
    struct ws_grid_part *parts; /* NULL: it has none */
    const struct ws_space *common;
    struct ws_started *started; /* where it puts what it starts; NULL: it can start nothing */
    struct ws_reuse *reuse;     /* records which memory is touched; NULL: nothing does (reuse.h) */
    struct ws_inspect *inspect; /* is told what the kernel does wrong; NULL: nobody is */
    struct ws_inspect_launch *inspect_launch; /* for races in global memory; may be NULL */
    /* shared while blocks run */
    _Atomic int stop; /* enum ws_dev_error: non-zero ends every block soon (fault, cancel, limit) */
    _Atomic int fault_claimed; /* first faulting block writes text, then sets stop */
    char text[256];
};
/* How many blocks a cluster has, along one dimension and in all. */
static inline uint32_t ws_grid_cluster(const struct ws_grid *g, unsigned dim)
{
    return WS_MAX(g->cluster[dim], 1u);
}
static inline uint32_t ws_grid_cluster_blocks(const struct ws_grid *g)
{
    return ws_grid_cluster(g, 0) * ws_grid_cluster(g, 1) * ws_grid_cluster(g, 2);
}
/* Blocks counted cluster by cluster, each by rank: the linear number (x fastest) of the @k'th. */
uint64_t ws_grid_in_clusters(const struct ws_grid *g, uint64_t k);
/* The part of @g that block @linear is of, and which of its blocks it is. NULL: the grid has no
 * parts. */
static inline struct ws_grid_part *ws_grid_part_of(const struct ws_grid *g, uint64_t linear,
                                                   uint64_t *ret_number)
{
    uint64_t rest = g->parts ? linear % g->round : 0;
    for (uint32_t k = 0; k < g->n_parts; k++) {
        if (rest < g->parts[k].share) {
            *ret_number = linear / g->round * g->parts[k].share + rest;
            return &g->parts[k];
        }
        rest -= g->parts[k].share;
    }
    return NULL;
}

struct ws_blockrun;
/* State of one block of @g (registers, shared and local memory), reusable for blocks of the same
 * grid shape. -ENOMEM. */
WS_MUST_CHECK int ws_blockrun_new(struct ws_blockrun **ret, struct ws_grid *g);
struct ws_blockrun *ws_blockrun_free(struct ws_blockrun *b);
/* Makes @b ready to run block @linear (x fastest) on virtual SM @smid, in slot @slot of it; zeroes
 * what the PTX machine does not leave undefined. */
void ws_blockrun_start(struct ws_blockrun *b, uint64_t linear, uint32_t smid, uint32_t slot);

/* The blocks of a cluster, by rank, all of which have been started: from now on each may use the
 * shared memory of the others, and they meet at the cluster's barrier. One thread at a time may run
 * any of them, and none is freed or started again before all have ended. */
void ws_blockrun_join(struct ws_blockrun *const *blocks, uint32_t n);
/* Whether the block can only go on once others of its cluster have come to its barrier. If that is
 * so of all that have not ended, the cluster is deadlocked: ws_blockrun_deadlock() of one of them
 * is the fault. */
bool ws_blockrun_is_stuck(const struct ws_blockrun *b);
void ws_blockrun_deadlock(struct ws_blockrun *b);
/* How often something has opened that blocks of the cluster wait at: its barrier or an mbarrier. */
uint64_t ws_blockrun_n_opened(const struct ws_blockrun *b);

enum ws_step {
    WS_STEP_DONE,
    WS_STEP_MORE /* the budget is used up */,
    WS_STEP_STOPPED /* the grid or the block's part is to stop: fault, cancel, limit */
};
/* Runs about @max_warp_insns warp instructions, fairly over the block's warps, and adds to *work. A
 * block whose warps all spin returns WS_STEP_MORE, well before its budget is used up where the spin
 * was seen, so co-resident blocks make progress. */
enum ws_step ws_blockrun_step(struct ws_blockrun *b, uint64_t max_warp_insns,
                              struct ws_exec_work *work);

/* A block to be run by ws_blockrun_run(). */
struct ws_block_ask {
    uint64_t linear;
    uint32_t smid, slot;
    struct ws_exec_work *work; /* is added to; several may have the same */
    enum ws_step step;         /* set: how the block's step has ended */
};
/* Runs blocks of the grid (which has no parts) one after another, each as ws_blockrun_start() and
 * one ws_blockrun_step() of @max_warp_insns would, until one does not end in its step, or they have
 * had more than @max_all warp instructions together. None begins once the grid is to stop. Return:
 * how many have begun; all but the last one of these have ended. */
uint32_t ws_blockrun_run(struct ws_blockrun *b, struct ws_block_ask *asks, uint32_t n,
                         uint64_t max_warp_insns, uint64_t max_all);

/* How often the block, since it was started, has looked (volatile and stronger loads) where it
 * hadn't lately; 0: it hasn't looked. What waits for a value looks at the same few places again and
 * again. */
uint64_t ws_blockrun_n_looked(const struct ws_blockrun *b);

/* Value of a pointer to function @func (index into the module's funcs): what mov gives and
 * initialisers hold. */
#define WS_EXEC_FUNC_WINDOW (UINT64_C(0x04) << 56)
static inline uint64_t ws_exec_func_va(uint32_t func)
{
    return WS_EXEC_FUNC_WINDOW + (uint64_t)func * 16;
}

/* "sse2", "avx2", "avx512": the vector build picked at run time; WS_SOFT_ISA in the environment
 * forces one (tests). */
const char *ws_exec_isa(void);

#endif
