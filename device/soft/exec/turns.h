/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/turns.h - the warps of a block, the splits of a warp, and which of them run next
 * (turns.c). Private to the interpreter and to compiled code. */
#ifndef WS_DEVICE_SOFT_EXEC_TURNS_H
#define WS_DEVICE_SOFT_EXEC_TURNS_H

#include "device/soft/exec/exec.h"

struct ws_core_ctx;
struct ws_seg;
struct ws_uop;

enum ws_split_state { WS_SPLIT_RUN, WS_SPLIT_BAR, WS_SPLIT_WARPSYNC };
struct ws_split {
    const struct ws_uop *u;
    /* Not NULL: enters this segment (u == enter->first), still to be counted. */
    const struct ws_seg *enter;
    uint32_t mask, depth;
    uint8_t state, bar_id;
    bool granted;             /* WARPSYNC: go on although not all lanes are here */
    uint32_t last_run, spent; /* fairness between splits */
    int32_t favour;           /* instructions for which it runs before all others */
};

struct ws_retaddr {
    const struct ws_seg *to;
    uint32_t frame_bytes;
};

struct ws_warp {
    uint8_t *regs;
    uint32_t live, index; /* lanes that exist and have not exited */
    uint32_t exists;
    bool shaped; /* compiled code left it, and its rows have the shapes that this code counts on */
    /* What it did that waiting loops do, in turns one after another that each had some of it; and
     * whether that was so often that it counts as waiting. */
    uint32_t spin;
    bool waits;
    uint32_t at_cluster; /* lanes that have arrived at the cluster's barrier, until it opens */
    uint32_t n_splits, stamp;
    struct ws_split splits[32];
    struct ws_retaddr *rets; /* [depth_max][32] */
    uint8_t *saves;          /* [depth_max][image.save_bytes] */
};

/* How a warp's turn goes. */
enum ws_warp_turn {
    WS_TURN_NONE, /* no lane could run */
    WS_TURN_RAN,
    WS_TURN_WAITS, /* ran, and waits for something */
    WS_TURN_FAULT,
};
/* Whether a warp with so much of its turn left must not enter a segment now. What nobody else sees
 * (@quiet) belongs to the turn: so a warp that only computes is not left for others all the time,
 * and none gets ahead of them by anything that they could notice. */
enum { WS_OVERRUN = 1 << 10 /* warp instructions */ };
static inline bool ws_exec_turn_ends(int64_t budget, bool quiet)
{
    return budget <= (quiet ? -WS_OVERRUN : 0);
}
/* A step of a block, while it lasts (turns.c). */
struct ws_round {
    int64_t before; /* the budget when the split that runs was taken up */
    uint32_t spent; /* spent and favour of that split then */
    int32_t favour;
    struct ws_split picked; /* that split, if it was one of several */
    int64_t left;           /* warp instructions of the step */
    uint32_t n_had;         /* warps whose turn in this round was or is */
    bool has_turn;          /* a warp has, and it runs */
    enum ws_warp_turn turn;
    bool ran, all_wait; /* of the round: something ran; all that ran wait */
    bool over;
    enum ws_step step; /* once it is over */
};

/* A step of about so many warp instructions begins. */
void ws_exec_begin_step(struct ws_blockrun *b, int64_t n_warp_insns);
/* The block waits for what cannot come: a fault. */
void ws_exec_deadlock(struct ws_blockrun *b);
/* Before the first split of a step runs, and whenever the core was left: what comes next. Then the
 * core is to be entered at ctx.u, or into segment ctx.enter. Return: false: the step is over, and
 * has ended as round.step says. */
bool ws_exec_next(struct ws_blockrun *b);
/* All 32 lanes of the warp that has its turn end, in compiled code with @budget left. If there is
 * nothing to do but to go on with a warp that begins, that one has its turn now. Return: the budget
 * it has; less than zero: its negative, and it is of the next block (ws_exec_begin_alike()); 0:
 * nothing was done. */
int64_t ws_exec_end_warp(struct ws_core_ctx *c, int64_t budget);
/* All 32 lanes of the warp that has its turn come, in compiled code with @budget left, to a barrier
 * of all threads with a constant number. */
enum ws_bar_way {
    WS_BAR_LONG,   /* nothing was done */
    WS_BAR_OPEN,   /* it is open, and they go on */
    WS_BAR_PASSED, /* they wait, and another warp has its turn, as after ws_exec_next() */
};
enum ws_bar_way ws_exec_bar_whole(struct ws_core_ctx *c, const struct ws_uop *u, int64_t budget);

/* ---- exec.c ---- */
/* The two parts of ws_exec_bar_arrive(): lanes of a warp are counted, and all who wait go on. */
void ws_exec_bar_count(struct ws_blockrun *b, struct ws_warp *w, const struct ws_uop *u,
                       uint32_t id, uint32_t lanes);
void ws_exec_bar_open(struct ws_blockrun *b, uint32_t id);

/* ---- block.c ---- */
/* All lanes of the block's last warp end, in compiled code with @budget left. If the next block
 * that was asked for differs from it only by where it is along x, that one begins, and its first
 * warp has its turn; what compiled code counted belongs to ctx.work_before. Return: false: nothing
 * was done. */
bool ws_exec_begin_alike(struct ws_blockrun *b, int64_t budget);

/* Before the interpreter runs: makes rows that are the block's own (ws_exec_is_blocks_own()) hold
 * what they are to. */
void ws_exec_fill_rows(struct ws_blockrun *b);
/* Before compiled code runs, which writes to such rows where a handler reads them. */
void ws_exec_forget_rows(struct ws_blockrun *b);

/* ---- asks.c ---- */
/* Starts the block that b->ask is. */
void ws_exec_begin_asked(struct ws_blockrun *b);
/* The step of that block is over. Return: another one that was asked for is to begin; b->ask is
 * it. */
bool ws_exec_end_asked(struct ws_blockrun *b);
/* The step is over. Begins the next block that ws_blockrun_run() was asked for, if that runs as
 * machine code like the one before; its work is ctx.work from now on. Return: false: there is
 * none. */
bool ws_exec_next_block(struct ws_blockrun *b);

#endif
