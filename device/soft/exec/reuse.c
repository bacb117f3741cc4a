// SPDX-License-Identifier: Apache-2.0
/* Caches, estimated from a sample.
 *
 * L1. Some blocks are watched: the first ones and one in 64, or all of a small grid. Their loads of
 * some lines go through a model of L1: a table of lines, each with the number of lines that had
 * been filled when it was last touched. A load hits if fewer were filled since than the block's
 * part of L1 holds. The share of the sectors that miss there is taken for the whole launch. Each
 * block has L1 to itself, as much as the blocks beside it leave, and does not find what an earlier
 * one has left. Stores go through to L2.
 *
 * L2. Of all blocks the lines are recorded whose hash is small (a sample by address, as in SHARDS,
 * Waldspurger et al., FAST 2015), in sets that only grow, so that they do not depend on the order.
 * The size of a set follows from how full it is (linear counting, Whang et al., 1990), at the
 * lowest level that is not too full. Blocks that run at the same time (a wave: as many as fit) go
 * through memory side by side and share what they load. So a wave loads each of its sectors once,
 * and what several waves load is loaded again, unless L2 still has it:
 *
 *     DRAM = loaded + (Σ of waves - loaded)·(1 - L2 / touched) + stored
 *
 * with the numbers of different sectors; Σ is extrapolated from three waves. What earlier launches
 * left in L2 is not known. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "device/soft/exec/priv.h"
#include "device/soft/exec/reuse.h"

enum {
    SECTOR_BYTES = 32,
    LINE_BYTES = 128,
    L1_SETS = 512, /* of the model's table, a power of two */
    L1_WAYS = 4,
    ALL_WATCHED = 32, /* blocks of a grid in which each is watched, and all of its lines */
    FIRST_WATCHED = 4,
    WATCHED_SHIFT = 26, /* of 32: one in 64 */
    WATCHED_LINES = 4,  /* of a watched block: one line in so many */
    SAMPLED_LEVEL = 6,  /* where of larger grids the recording begins: one line in 64 */
    SECTORS = WS_REUSE_LINES * 4,
    FULL = SECTORS * 6 / 10,
    TOO_FULL = SECTORS * 8 / 10,
};

struct ws_l1 {
    uint16_t epoch;
    uint32_t n_filled;
    struct l1_line {
        uint64_t line;
        uint32_t filled; /* n_filled when it was last touched */
        uint16_t epoch;  /* of another block: empty */
        uint16_t sectors;
    } v[L1_SETS][L1_WAYS];
};

/* Bits that have nothing to do with those of ws_reuse_hash(). */
static uint32_t mix(uint64_t line)
{
    line = (line ^ line >> 17) * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(((line ^ line >> 32) * UINT64_C(0xc4ceb9fe1a85ec53)) >> 40);
}

/* Hashes of a level and those behind it are not more. */
static uint32_t below_of(uint32_t level)
{
    return UINT32_MAX >> level;
}

struct ws_reuse *ws_reuse_new(const struct ws_reuse_cache *cache, uint64_t n_blocks)
{
    struct ws_reuse *r = ws_alloc(sizeof(*r));
    if (!r)
        return NULL;
    uint64_t beside = (n_blocks + cache->n_sms - 1) / cache->n_sms;
    beside = WS_MAX(WS_MIN(beside, cache->blocks_per_sm), UINT64_C(1));
    r->l1_sample = n_blocks > ALL_WATCHED ? WATCHED_LINES : 1;
    r->l1_lines = (uint32_t)(cache->l1_bytes / LINE_BYTES / beside / r->l1_sample);
    r->n_blocks = n_blocks;
    r->wave = WS_MAX((uint64_t)cache->n_sms * cache->blocks_per_sm, UINT64_C(1));
    r->n_waves = (uint32_t)WS_MIN(n_blocks / r->wave, (uint64_t)WS_REUSE_WAVES);
    for (uint64_t i = 0; i < r->n_waves; i++)
        r->wave_at[i] = n_blocks / r->wave * i / r->n_waves * r->wave;
    r->first_level = n_blocks > ALL_WATCHED ? SAMPLED_LEVEL : 0;
    r->below[0] = r->below[1] = below_of(r->first_level);
    return r;
}

/* ---- recording ---- */

static bool is_watched(const struct ws_reuse *r, uint64_t linear)
{
    return r->n_blocks <= ALL_WATCHED || linear < FIRST_WATCHED ||
           (uint32_t)linear * 0x85ebca6bu >> WATCHED_SHIFT == 0;
}

/* The block's wave, if it is recorded, and the blocks for which this answer is the same. */
static void find_wave(struct ws_blockrun *b, struct ws_reuse *r, uint64_t linear)
{
    uint64_t from = 0, end = UINT64_MAX;
    b->wave = NULL;
    for (uint32_t i = 0; i < r->n_waves && !b->wave; i++) {
        uint64_t first = r->wave_at[i], behind = first + r->wave;
        if (linear >= first && linear < behind) {
            b->wave = &r->waves[i];
            from = first;
            end = behind;
        } else if (linear >= behind) {
            from = WS_MAX(from, behind);
        } else {
            end = WS_MIN(end, first);
        }
    }
    b->wave_from = from;
    b->wave_n = end - from;
}

void ws_reuse_block(struct ws_blockrun *b, uint64_t linear)
{
    struct ws_reuse *r = b->g->reuse;
    b->ctx.record_below = 0;
    b->l1 = NULL;
    if (!r)
        return;
    if (linear - b->wave_from >= b->wave_n)
        find_wave(b, r, linear);
    uint32_t loads = atomic_load_explicit(&r->below[0], memory_order_relaxed),
             stores = atomic_load_explicit(&r->below[1], memory_order_relaxed);
    b->ctx.record_below = b->wave ? below_of(r->first_level) : WS_MAX(loads, stores);
    if (!r->l1_lines || !is_watched(r, linear))
        return;
    if (!b->l1_alloc)
        b->l1_alloc = ws_alloc(sizeof(*b->l1_alloc));
    b->l1 = b->l1_alloc;
    if (!b->l1) /* no memory: it is not watched */
        return;
    if (!++b->l1->epoch) { /* what the first blocks left would be ours */
        memset(b->l1->v, 0, sizeof(b->l1->v));
        b->l1->epoch = 1;
    }
    b->l1->n_filled = 0;
    b->ctx.record_below = UINT32_MAX / r->l1_sample;
}

uint64_t ws_reuse_n_alike(const struct ws_blockrun *b, uint64_t linear, uint64_t n)
{
    const struct ws_reuse *r = b->g->reuse;
    uint64_t k = 0;
    if (!r)
        return n;
    n = WS_MIN(n, b->wave_n - (linear - b->wave_from) - 1);
    while (k < n && !(r->l1_lines && is_watched(r, linear + k + 1)))
        k++;
    return k;
}

static void through_l1(struct ws_l1 *l1, uint32_t l1_lines, uint64_t line, uint32_t sectors,
                       struct ws_exec_work *work)
{
    struct l1_line *set = l1->v[mix(line) % L1_SETS], *at = &set[0];
    uint32_t missed = sectors;
    for (int i = 0; i < L1_WAYS; i++) {
        bool ours = set[i].epoch == l1->epoch;
        if (ours && set[i].line == line) {
            at = &set[i];
            break;
        }
        /* else the one that would be replaced */
        if (!ours || (at->epoch == l1->epoch && set[i].filled < at->filled))
            at = &set[i];
    }
    if (at->epoch == l1->epoch && at->line == line && l1->n_filled - at->filled < l1_lines) {
        missed &= ~at->sectors;
        at->sectors |= (uint16_t)sectors;
    } else {
        *at = (struct l1_line){.line = line, .epoch = l1->epoch, .sectors = (uint16_t)sectors};
        l1->n_filled++;
    }
    at->filled = l1->n_filled;
    work->n_watched_sectors += (uint32_t)__builtin_popcount(sectors);
    work->n_missed_sectors += (uint32_t)__builtin_popcount(missed);
}

/* Bits of a word that are set: without the processor's instruction, which not all have, the
 * compiler calls a function. */
static inline uint32_t n_bits(uint64_t v)
{
    v -= v >> 1 & UINT64_C(0x5555555555555555);
    v = (v & UINT64_C(0x3333333333333333)) + (v >> 2 & UINT64_C(0x3333333333333333));
    v = (v + (v >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint32_t)((v * UINT64_C(0x0101010101010101)) >> 56);
}

static uint32_t n_set(const struct ws_reuse_map *m, uint32_t level)
{
    uint32_t n = 0;
    for (uint32_t w = 0; w < WS_REUSE_WORDS; w++)
        n += n_bits(atomic_load_explicit(&m->bits[level][w], memory_order_relaxed));
    return n;
}

/* Return: the level of which a sector is new; WS_REUSE_LEVELS: none is. */
static uint32_t put(struct ws_reuse_map *m, uint64_t line, uint32_t hash, uint32_t sectors)
{
    uint32_t level = hash ? (uint32_t)__builtin_clz(hash) : 31;
    level = WS_MIN(level, (uint32_t)WS_REUSE_LEVELS - 1);
    uint32_t at = mix(line) % WS_REUSE_LINES;
    _Atomic uint64_t *word = &m->bits[level][at / 16];
    uint64_t bits = (uint64_t)sectors << (at % 16 * 4);
    if ((atomic_load_explicit(word, memory_order_relaxed) & bits) == bits)
        return WS_REUSE_LEVELS;
    atomic_fetch_or_explicit(word, bits, memory_order_relaxed);
    return level;
}

/* A level that is too full tells nothing: it is not recorded any more, so that less is to do. It
 * stays too full, so that the estimate, which begins behind it, is the same whoever was first. */
static void thin(struct ws_reuse *r, bool store, uint32_t level)
{
    uint32_t below = below_of(level);
    if (below != atomic_load_explicit(&r->below[store], memory_order_relaxed))
        return; /* it is not the first level that is recorded */
    if (level + 1 < WS_REUSE_LEVELS && n_set(&r->touched[store], level) >= TOO_FULL)
        atomic_compare_exchange_strong(&r->below[store], &below, below_of(level + 1));
}

void ws_reuse_touch(struct ws_core_ctx *c, uint64_t line, uint32_t sectors, bool store)
{
    struct ws_blockrun *b = c->b;
    struct ws_reuse *r = b->g->reuse;
    uint32_t hash = ws_reuse_hash(line);
    if (b->l1 && !store)
        through_l1(b->l1, r->l1_lines, line, sectors, c->work);
    if (b->wave && !store && hash <= below_of(r->first_level))
        (void)put(b->wave, line, hash, sectors);
    if (hash > atomic_load_explicit(&r->below[store], memory_order_relaxed))
        return;
    uint32_t level = put(&r->touched[store], line, hash, sectors);
    if (level < WS_REUSE_LEVELS)
        thin(r, store, level);
}

/* ---- the estimate ---- */

/* Different sectors of a set. */
static double n_sectors(const struct ws_reuse *r, const struct ws_reuse_map *m)
{
    uint32_t level = r->first_level;
    while (level + 1 < WS_REUSE_LEVELS && n_set(m, level) > FULL)
        level++;
    double n = 0;
    for (uint32_t k = level; k < WS_REUSE_LEVELS; k++)
        n += -(double)SECTORS * log1p(-(double)WS_MIN(n_set(m, k), SECTORS - 1) / SECTORS);
    return ldexp(n, (int)level);
}

struct ws_reuse_shares ws_reuse_shares(const struct ws_reuse *r, const struct ws_reuse_cache *cache,
                                       const struct ws_exec_work *work)
{
    struct ws_reuse_shares s = {1, 1};
    if (work->n_watched_sectors)
        s.missed = (double)work->n_missed_sectors / (double)work->n_watched_sectors;
    double l2 = s.missed * (double)work->n_load_sectors + (double)work->n_store_sectors;
    double loaded = n_sectors(r, &r->touched[0]), stored = n_sectors(r, &r->touched[1]), waves = 0;
    double touched = (loaded + stored) * SECTOR_BYTES;
    for (uint32_t i = 0; i < r->n_waves; i++)
        waves += n_sectors(r, &r->waves[i]) / r->n_waves;
    double again = waves * (double)r->n_blocks / (double)r->wave - loaded;
    if (again > 0 && touched > (double)cache->l2_bytes)
        loaded += again * (1 - (double)cache->l2_bytes / touched);
    if (l2 > 0)
        s.dram = fmin((loaded + stored) / l2, 1);
    return s;
}

void ws_reuse_settle(const struct ws_reuse_shares *s, struct ws_exec_work *part)
{
    double l2 = s->missed * (double)part->n_load_sectors + (double)part->n_store_sectors;
    part->n_l2_sectors = (uint64_t)llround(l2);
    part->n_dram_sectors = (uint64_t)llround(l2 * s->dram);
}
