/* SPDX-License-Identifier: Apache-2.0 */
/* device/soft/exec/reuse.h - how much of what a launch loads and stores its caches would have had.
 *
 * All accesses are counted. Which memory they touch is recorded of a sample only: what it costs
 * must be little beside the interpreter. The estimate depends on the launch alone, not on the order
 * in which host threads execute its blocks. Sectors have 32 bytes, lines 128. */
#ifndef WS_DEVICE_SOFT_EXEC_REUSE_H
#define WS_DEVICE_SOFT_EXEC_REUSE_H

#include "device/soft/exec/exec.h"

struct ws_core_ctx;

/* A set of lines, of which the sectors are known that were touched. */
enum { WS_REUSE_LEVELS = 20, WS_REUSE_LINES = 256, WS_REUSE_WORDS = WS_REUSE_LINES / 16 };
struct ws_reuse_map {
    /* Level k has the lines whose hash begins with k zeros: a 2^-(k+1)-th of all. 4 bits a line. */
    _Atomic uint64_t bits[WS_REUSE_LEVELS][WS_REUSE_WORDS];
};

enum { WS_REUSE_WAVES = 3 };
struct ws_reuse {
    uint32_t l1_sample; /* a watched block's L1 is modelled of one line in so many */
    uint32_t l1_lines;  /* of these, how many L1 holds for one block; 0: loads go past it */
    uint64_t n_blocks;  /* of the grid */
    uint64_t wave;      /* blocks that run at a time */
    uint32_t n_waves;   /* of waves[] */
    uint64_t wave_at[WS_REUSE_WAVES]; /* their first blocks */
    uint32_t first_level;             /* of which all lines are recorded, and of those behind it */
    /* 0: loads, 1: stores; those whose hash is not more are recorded still */
    _Atomic uint32_t below[2];
    struct ws_reuse_map touched[2], waves[WS_REUSE_WAVES];
};

struct ws_reuse_cache {
    uint64_t l1_bytes, l2_bytes; /* l1_bytes: of an SM */
    uint32_t n_sms, blocks_per_sm;
};
/* NULL: no memory. Freed with free(). */
struct ws_reuse *ws_reuse_new(const struct ws_reuse_cache *cache, uint64_t n_blocks);

/* What the launch's loads and stores asked of L2 and of the memory, as shares. */
struct ws_reuse_shares {
    double missed; /* of the loaded sectors: L1 did not have them */
    double dram;   /* of the sectors that L2 was asked for */
};
/* @work: of all blocks. The launch is over. */
struct ws_reuse_shares ws_reuse_shares(const struct ws_reuse *r, const struct ws_reuse_cache *cache,
                                       const struct ws_exec_work *work);
/* Sets n_l2_sectors and n_dram_sectors of a part of the launch. */
void ws_reuse_settle(const struct ws_reuse_shares *s, struct ws_exec_work *part);

/* ---- the interpreter's side ---- */
/* @b starts block @linear. */
void ws_reuse_block(struct ws_blockrun *b, uint64_t linear);
/* Of so many blocks behind that one, which has been started and is not watched: those of which the
 * same is recorded. */
uint64_t ws_reuse_n_alike(const struct ws_blockrun *b, uint64_t linear, uint64_t n);
/* A line of which the sectors of the mask are touched by one access. */
void ws_reuse_touch(struct ws_core_ctx *c, uint64_t line, uint32_t sectors, bool store);
static inline uint32_t ws_reuse_hash(uint64_t line)
{
    return (uint32_t)line * 0x9e3779b1u;
}
/* A bit for the place of 512 bytes that an address is in (ws_exec_work.atomic_places). */
static inline uint64_t ws_reuse_place(uint64_t va)
{
    return (uint64_t)1 << (ws_reuse_hash(va >> 9) & 63);
}

#endif
