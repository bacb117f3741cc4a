/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/priv.h - what decode.c, exec.c and the vector cores share. Private to the
 * interpreter.
 *
 * A kernel and all functions it can reach become one image: an array of micro-ops cut into segments
 * (straight-line runs that are entered only at their first micro-op). Every operand is a byte
 * offset into the warp's register file, where a register is a row of 32 lanes; constants, special
 * registers and addresses of variables are rows too, filled before the block runs, so a micro-op
 * has one form whatever its operands were. Functions have static rows (recursive ones save theirs
 * at a call). Order of micro-ops is the order in which diverged lanes of a warp are run: lowest
 * first (see decode.c, order of blocks). */
#ifndef WS_DEVICE_SOFT_EXEC_PRIV_H
#define WS_DEVICE_SOFT_EXEC_PRIV_H

#include "device/soft/exec/cluster.h"
#include "device/soft/exec/image.h"
#include "device/soft/exec/turns.h"

/* Windows of the 64-bit generic space; user addresses are below 2^47. The low half of a window
 * address is the offset. */
#define WS_WINDOW_SHARED (UINT64_C(0x01) << 56)
#define WS_WINDOW_LOCAL  (UINT64_C(0x02) << 56)
#define WS_WINDOW_PARAM  (UINT64_C(0x03) << 56)
#define WS_WINDOW_OF(va) ((va)&UINT64_C(0xff00000000000000))

struct ws_core_ctx;
struct ws_seg;

/* Micro-op. Offsets are bytes from the warp's register file. */
struct ws_uop {
    const struct ws_uop *(*fn)(
        struct ws_core_ctx *c,
        const struct ws_uop *u); /* returns the next one, or NULL to leave the core */
    int32_t d, a, b, c, e;       /* rows: destination and sources, as the handler has them */
    uint32_t guard,
        gneg;     /* predicate word and what to xor it with; unguarded: a word of all ones, 0 */
    uint16_t mx;  /* floating point: MXCSR it needs */
    uint16_t map; /* where the mapping that it used last is kept: ws_core_ctx.maps */
    uint32_t x;   /* handler's: modifiers */
    uint32_t src; /* index into the image's ws_srcref */
    union {
        int64_t imm;
        const struct ws_seg *to; /* control */
    };
    union {
        const struct ws_seg *fall; /* control: where lanes go that do not take it */
        /* others: lanes that take effect besides the active ones (see dead.c). */
        uint32_t all;
    };
};
_Static_assert(sizeof(struct ws_uop) == 64, "one cache line");

struct ws_seg {
    const struct ws_uop *first;
    uint32_t n_insns; /* PTX instructions in it */
    bool is_quiet;    /* nothing in it can be seen outside of the warp */
    uint32_t cls[8];  /* by enum ws_work_class; the last: WS_SEG_MACHINE */
    uint32_t unit[4]; /* operations of a lane, by enum ws_unit_op */
};
enum { WS_SEG_MACHINE = _WS_WORK_N }; /* warp instructions of the machine */
_Static_assert(_WS_WORK_N == 7 && _WS_UNIT_N == 4, "cls and unit have room");

struct ws_srcref {
    uint32_t func, insn;
};

/* Handlers */
enum ws_handler {
#define X(name) WS_H_##name,
#include "device/soft/exec/list.inc"
#undef X
    _WS_H_N
};

/* Why the core was left. */
enum ws_stop {
    /* At the end of a segment: budget used up, other lanes come first, or depth changed. */
    WS_STOP_RESCHED,
    WS_STOP_EXIT,     /* no lane of the split is left */
    WS_STOP_BAR,      /* at a block barrier; ctx.u is the barrier micro-op, lanes wait */
    WS_STOP_WARPSYNC, /* at a warp-synchronous micro-op whose named lanes are not all here */
    WS_STOP_YIELD,    /* nanosleep and spinning: let others run, go on at ctx.u */
    WS_STOP_FAULT,
};

enum { WS_N_BARRIERS = 16, WS_N_MAPS = 32 };
struct ws_barrier {
    uint32_t arrived;   /* threads */
    uint32_t expected;  /* 0: all live threads */
    uint32_t warps;     /* mask of warps with an arrival */
    uint32_t lanes[32]; /* of each of those warps: arrived */
    uint32_t red_popc;
    bool red_and, red_or;
};

/* What the vector core works on; one per block run. */
struct ws_core_ctx {
    uint8_t *regs;
    uint32_t active;
    uint32_t mx;                /* MXCSR now */
    int64_t budget, penalty;    /* penalty: taken from the budget for no work */
    const struct ws_uop *limit; /* another split stands at or after this one */
    uint8_t *shared;
    uint64_t shared_bytes;
    struct ws_mapping maps[WS_N_MAPS];
    uint32_t n_maps, spin;
    const uint8_t *looked[16]; /* where the block's last strong loads were */
    uint64_t n_looked;         /* how often that was somewhere else */
    /* Headers of textures that were checked (exec_tex.h); NULL: none yet. */
    struct ws_tex_cache *tex;
    bool granted; /* a warp-synchronous micro-op resumes with the lanes that are here */
    uint32_t cls[8], unit[4];
    uint64_t n_thread_insns;
    /* Lines of memory whose hash is less are recorded (reuse.h); 0: none. */
    uint32_t record_below;
    /* Patterns of accesses to shared memory: distances of the lanes' offsets from the first, the
     * width and alignment, and how many transactions that is (mem.inc). */
    struct ws_banks {
        uint32_t apart[32], kind, n;
    } banks[16];
    uint32_t n_patterns; /* accesses of the block that are not to consecutive places */
    struct ws_exec_work *work, *work_before; /* work_before: when compiled code was left */
    struct ws_warp *w;
    struct ws_blockrun *b;
    uint8_t *local; /* lane 0 of this warp */
    uint64_t local_stride;
    const uint8_t *params;
    uint64_t param_bytes;
    uint32_t depth;
    enum ws_stop stop;
    const struct ws_uop *u; /* where the core was left, or is to be entered */
    const struct ws_seg *enter;
    uint32_t n_entered; /* how often compiled code went on with another split */
};

/* Compute capability 8.0 and later keep that much of a block's shared memory for NVIDIA's own code,
 * zero when the block starts: cooperative groups' tiles of several warps meet there. Not part of
 * what the program asked for. */
enum { WS_RESERVED_SHARED_BYTES = 1024 };

struct ws_jit_code;
struct ws_blockrun {
    struct ws_grid *g;
    const struct ws_exec_image *img;
    struct ws_jit_code *jit; /* NULL: kernels are not compiled */
    bool settled;            /* whether blocks run as machine code does not change any more */
    bool compiled;           /* this block runs as machine code */
    uint32_t maps_version;   /* of the space that ctx.maps are of; odd: of none */
    bool timed;              /* how long it runs is wanted; said at its start, to time all of it */
    uint64_t ticks;          /* of the processor's clock that it has run, if so */
    struct ws_core_ctx ctx;
    struct ws_round round;
    uint32_t n_warps, n_threads, next_warp;
    struct ws_warp *warps;
    uint8_t *regs;
    uint8_t *local;
    uint64_t local_bytes; /* per thread */
    uint32_t depth_max;
    uint8_t *shared_alloc;
    /* Behind it WS_RESERVED_SHARED_BYTES, if the kernel asks where they are. */
    uint64_t user_shared_bytes;
    struct ws_retaddr *rets;
    uint8_t *saves;
    struct ws_l1 *l1; /* NULL: its loads are not watched, or go past L1 */
    struct ws_l1 *l1_alloc;
    struct ws_reuse_map *wave;  /* of the blocks that would run with this one, if recorded */
    uint64_t wave_from, wave_n; /* those blocks, or those around it that are not recorded so */
    struct ws_barrier bars[WS_N_BARRIERS];
    uint32_t bars_used; /* mask of those that something has arrived at; and the cluster's bit */
    struct ws_block_cluster *cluster, own_cluster; /* own_cluster: alone, or of rank 0 */
    uint32_t rank, stuck_at; /* stuck_at: see ws_blockrun_is_stuck(): 1 + phase, or 0 */
    /* Of the image's fills, those that differ from block to block, what they are in this one, and
     * what their rows hold: compiled code does without these. */
    uint32_t *block_fills, *filled, *in_rows, n_block_fills;
    uint32_t n_live; /* threads not exited */
    uint32_t n_done_warps;
    uint64_t linear, number;   /* number: in its part */
    struct ws_grid_part *part; /* NULL: the grid has none */
    uint32_t ctaid[3], smid, slot;
    uint64_t n_insns; /* warp instructions run since start */
    uint64_t n_clock_reads;
    uint32_t start_error; /* of what the block started last and could not; a CUDA error */
    int64_t quantum_start;
    struct ws_block_ask *ask; /* of ws_blockrun_run(): the one that runs, and how many follow */
    uint32_t n_asks;
    /* Of those that follow, how many differ from it only by where they are along x: compiled code
     * may begin them by itself (../jit/blocks.c). */
    uint32_t n_alike;
    uint64_t ask_insns;               /* warp instructions that each may have in its step, */
    int64_t asks_left;                /* and that may have been executed when one begins */
    struct ws_inspect_block *inspect; /* NULL: its shared memory is not watched */
};

/* What the block's client holds, without the others of the launch. */
static inline const struct ws_space *ws_exec_own_space(const struct ws_blockrun *b)
{
    return b->part ? b->part->space : b->g->space;
}

/* Whether the row is filled anew for each block. */
static inline bool ws_exec_is_blocks_own(const struct ws_fill *f)
{
    return f->kind == WS_FILL_SREG &&
           (f->sreg == WS_SR_CTAID || f->sreg == WS_SR_SMID || f->sreg == WS_SR_CLUSTERID ||
            f->sreg == WS_SR_CLUSTER_CTAID || f->sreg == WS_SR_CLUSTER_CTARANK);
}

/* ---- asks.c ---- */
enum { WS_DEPTH_ALONE = 2 /* depth_max of a kernel that calls nothing */ };
/* Adds what the interpreter counted to the work; compiled code adds its own. */
void ws_exec_flush_work(struct ws_core_ctx *c);

/* ---- exec.c ---- */
/* The split behind those that wait, which is to be one of them, stands at a barrier micro-op.
 * Return: false after a fault. */
bool ws_exec_bar_arrive(struct ws_blockrun *b, struct ws_split *s);

/* ---- exec.c and text.c, called by the cores ---- */
/* Claims the grid's fault: text names kernel, block, thread (lane of the warp; 32: none), address,
 * line and instruction. Returns NULL. */
const struct ws_uop *ws_exec_fault(struct ws_core_ctx *c, const struct ws_uop *u,
                                   enum ws_dev_error e, unsigned lane, uint64_t addr,
                                   const char *what);
/* Splits lanes off to continue at seg, later. */
void ws_exec_split(struct ws_core_ctx *c, uint32_t mask, const struct ws_seg *seg, uint32_t depth);
/* Lanes of the split end. */
void ws_exec_exit(struct ws_core_ctx *c, uint32_t mask);
/* The mapping of global memory holding [va, va+bytes), cached. NULL: none. */
const struct ws_mapping *ws_exec_map(struct ws_core_ctx *c, uint64_t va, uint64_t bytes);
/* Zeros for a read that goes a little too far, as far as the client's space allows; NULL: it is a
 * fault. */
const uint8_t *ws_exec_margin(struct ws_core_ctx *c, uint64_t va, uint64_t bytes);
/* Host address of one lane's access to @space (enum ws_ptx_space). NULL: it may not be made. */
uint8_t *ws_exec_lane_try(struct ws_core_ctx *c, unsigned lane, unsigned space, uint64_t va,
                          uint64_t bytes, bool store);
/* The same; where it returns NULL, the kernel was faulted. */
uint8_t *ws_exec_lane_ptr(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane,
                          unsigned space, uint64_t va, uint64_t bytes, bool store);
/* All active lanes call seg to and come back to cont. Return: true to go there now; false: leave
 * the core (stop is set). */
bool ws_exec_call(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_seg *to,
                  const struct ws_seg *cont);
/* Lanes m return. Return: where all active lanes go on now, or NULL to leave the core. */
const struct ws_seg *ws_exec_ret(struct ws_core_ctx *c, const struct ws_uop *u, uint32_t m);
/* text.c: what device code has to say. Those named …_va are rows of addresses. */
const struct ws_uop *ws_exec_assertfail(struct ws_core_ctx *c, const struct ws_uop *u,
                                        uint32_t lanes, const uint64_t *message_va,
                                        const uint64_t *file_va, const uint32_t *line,
                                        const uint64_t *function_va);
int ws_exec_vprintf(struct ws_core_ctx *c, unsigned lane, uint64_t format_va, uint64_t args_va);
uint64_t ws_exec_clock(struct ws_core_ctx *c);
uint64_t ws_exec_globaltimer(struct ws_core_ctx *c);

/* Something that a waiting loop must do was done; too often, and others get their turn. */
enum { WS_SPIN_LIMIT = 16 }; /* of a warp, see ws_warp.spin */
#define WS_SPIN_PENALTY (INT64_C(1) << 40)
static inline void ws_exec_note_spin(struct ws_core_ctx *c)
{
    if (++c->spin == WS_SPIN_LIMIT) {
        c->budget -= WS_SPIN_PENALTY;
        c->penalty += WS_SPIN_PENALTY;
    }
}
/* Each of @lanes does what takes as long as @each instructions: the turn ends the sooner. */
enum { WS_COST_HEAP = 16, WS_COST_START = 32, WS_COST_TEXT = 128 };
static inline void ws_exec_note_cost(struct ws_core_ctx *c, uint32_t lanes, int64_t each)
{
    c->budget -= __builtin_popcount(lanes) * each;
}
/* A strong load: where it was tells waiting for something, in a few places, from reading many
 * things, as often as that may be. */
static inline void ws_exec_note_look(struct ws_core_ctx *c, const uint8_t *at)
{
    const uint8_t **seen = &c->looked[((uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15)) >> 60];
    _Static_assert(sizeof(c->looked) / sizeof(c->looked[0]) == 16, "four bits");
    ws_exec_note_spin(c);
    if (*seen != at) {
        *seen = at;
        c->n_looked++;
    }
}

/* Modifiers in uop.x of memory micro-ops */
enum {
    WS_X_SPACE_MASK = 7,   /* enum ws_ptx_space */
    WS_X_A32 = 1 << 3,     /* the address row has 4-byte lanes */
    WS_X_NOCOUNT = 1 << 4, /* const and param: no global traffic */
    WS_X_STRONG = 1 << 5,  /* volatile, relaxed, acquire, release: one access a lane */
    WS_X_ACQUIRE = 1 << 6,
    WS_X_RELEASE = 1 << 7,
    WS_X_SC = 1 << 8,
    WS_X_CLUSTER = 1 << 11, /* bar, isspacep: the cluster's */
    WS_X_PLAIN = 1 << 12,   /* bar: its number is a constant */
    WS_X_SIZE_SHIFT = 12,   /* bytes of an element */
    WS_X_VEC_SHIFT = 16,
};

#endif
