// SPDX-License-Identifier: Apache-2.0
/* Global memory: races between the warps of a launch.
 *
 * Each word remembers the last access that wrote to it and two that read it since, with the block,
 * thread and instruction that made them. Two accesses of the same block are ordered as in shared.c,
 * by the clocks of its warps. Those of two blocks are ordered if the first block, after its access,
 * has fenced and then made a strong write (an atomic operation, a volatile or relaxed store, or a
 * release), and the second block has made a strong read since. After a read no fence is needed. It
 * is not asked whether both meant the same place, nor whether the reader has fenced. So what is
 * told is a race; what is not told may be one. Launches are not held against each other. At a
 * cluster's barrier a block leaves and finds, too, and with its mbarriers those of other blocks.
 *
 * A write that leaves the bytes as they are counts as none: that many threads store the same flag
 * is common, and harmless. So is a plain read of what others change by compare-and-swap, with which
 * such loops begin.
 *
 * Order of events: a count, `now`, rises with each access. A write is noted before it is made, and
 * what a strong read finds after it was made, so that on other host threads, too, a reader that saw
 * a value comes after the writer.
 *
 * Words are found by the host's addresses, which all who share memory have in common, in pages that
 * are made when they are touched. There are at most PAGES_MAX of them; then pages of other launches
 * are used again, and if there are none, words go unwatched. */
#include "device/soft/inspect/private.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

enum {
    WORD_BYTES = 4,
    PAGE_BYTES = 4096,
    WORDS = PAGE_BYTES / WORD_BYTES,
    READERS = 2,
    PAGES_MAX = 13000, /* about 1 GiB */
    SHELVES = 64,      /* parts of the pages, with a lock each */
    ROWS = 256,        /* of a shelf */
    LEFT = 4,          /* strong writes of a block that are remembered */
    BLOCKS_MAX = 1 << 20,
};

struct race_mark { /* an access */
    uint64_t time;
    uint32_t block, src, clock;
    uint16_t thread;
    uint8_t bytes; /* mask of the word's bytes; 0: there is none */
    bool strong;
};
struct word {
    uint32_t launch;
    struct race_mark write, read[READERS];
};
struct race_page {
    struct race_page *next;
    uintptr_t number;
    uint32_t launch; /* the last one that used it */
    struct word words[WORDS];
};
static struct shelf {
    pthread_mutex_t lock;
    struct race_page *rows[ROWS];
} shelves[SHELVES] = {[0 ... SHELVES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};
static _Atomic uint32_t n_pages, last_launch;
static _Atomic uint64_t now;

/* What a block has left for others, and when it last found what others left. */
struct block_sync {
    uint64_t found;
    struct {
        uint64_t fenced, at;
    } left[LEFT]; /* the newest ones; place n_left % LEFT is the next */
    uint32_t n_left;
};
struct ws_inspect_launch {
    uint32_t id;
    uint64_t n_blocks;
    pthread_mutex_t lock;
    struct block_sync *blocks; /* NULL: no strong access yet; under the lock */
};

int ws_inspect_launch_new(struct ws_inspect_launch **ret, const struct ws_inspect *s,
                          uint64_t n_blocks)
{
    struct ws_inspect_launch *l;
    *ret = NULL;
    if (!ws_inspect_has(s, WS_INSPECT_RACES) || n_blocks > BLOCKS_MAX)
        return 0;
    l = ws_alloc(sizeof(*l));
    if (!l)
        return ws_raise(-ENOMEM);
    l->id = atomic_fetch_add(&last_launch, 1) + 1;
    l->n_blocks = n_blocks;
    pthread_mutex_init(&l->lock, NULL);
    *ret = l;
    return 0;
}

void ws_inspect_launch_free(struct ws_inspect_launch *l)
{
    if (!l)
        return;
    pthread_mutex_destroy(&l->lock);
    free(l->blocks);
    free(l);
}

uint64_t ws_inspect_now(void)
{
    return atomic_fetch_add(&now, 1) + 1;
}

/* ---- pages ---- */

static struct shelf *shelf_of(uintptr_t number)
{
    return &shelves[number % SHELVES];
}

/* A page of another launch, taken from its row. */
static struct race_page *page_reuse(struct shelf *s, uint32_t launch)
{
    for (int k = 0; k < ROWS; k++)
        for (struct race_page **at = &s->rows[k]; *at; at = &(*at)->next) {
            struct race_page *p = *at;
            if (p->launch == launch)
                continue;
            *at = p->next;
            memset(p, 0, sizeof(*p));
            return p;
        }
    return NULL;
}

/* Lock of the shelf held. NULL: the word goes unwatched. */
static struct race_page *page_at(struct shelf *s, uintptr_t number, uint32_t launch)
{
    struct race_page **row = &s->rows[number / SHELVES % ROWS], *p = *row;
    while (p && p->number != number)
        p = p->next;
    if (!p) {
        bool full = atomic_load(&n_pages) >= PAGES_MAX;
        p = full ? page_reuse(s, launch) : ws_alloc(sizeof(*p));
        if (!p)
            return NULL;
        if (!full)
            atomic_fetch_add(&n_pages, 1);
        p->number = number;
        p->next = *row;
        *row = p;
    }
    p->launch = launch;
    return p;
}

void ws_inspect_races_forget(const uint8_t *host, uint64_t bytes)
{
    for (uintptr_t at = (uintptr_t)host, end = at + bytes; at < end;) {
        uintptr_t number = at / PAGE_BYTES, stop = WS_MIN(end, (number + 1) * PAGE_BYTES);
        struct shelf *s = shelf_of(number);
        pthread_mutex_lock(&s->lock);
        struct race_page *p = s->rows[number / SHELVES % ROWS];
        while (p && p->number != number)
            p = p->next;
        for (uintptr_t w = at; p && w < stop; w += WORD_BYTES)
            p->words[w % PAGE_BYTES / WORD_BYTES].launch = 0;
        pthread_mutex_unlock(&s->lock);
        at = stop;
    }
}

/* ---- order of blocks ---- */

/* The block's; NULL: there is no memory for it. Lock of the launch held. */
static struct block_sync *sync_of(struct ws_inspect_launch *l, uint64_t block)
{
    if (!l->blocks)
        l->blocks = ws_alloc_array(l->n_blocks, sizeof(*l->blocks));
    return l->blocks && block < l->n_blocks ? &l->blocks[block] : NULL;
}

/* A strong write shows others what the block wrote before @fenced, and that its reads are over. */
static void leave(struct ws_inspect_launch *l, uint64_t block, uint64_t fenced)
{
    pthread_mutex_lock(&l->lock);
    struct block_sync *b = sync_of(l, block);
    if (b) {
        b->left[b->n_left % LEFT].fenced = fenced;
        b->left[b->n_left % LEFT].at = ws_inspect_now();
        b->n_left++;
    }
    pthread_mutex_unlock(&l->lock);
}

void ws_inspect_left(struct ws_blockrun *b)
{
    if (b->g->inspect_launch)
        leave(b->g->inspect_launch, b->linear, ws_inspect_now());
}

void ws_inspect_found(struct ws_blockrun *b)
{
    struct ws_inspect_launch *l = b->g->inspect_launch;
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    struct block_sync *s = sync_of(l, b->linear);
    if (s)
        s->found = ws_inspect_now();
    pthread_mutex_unlock(&l->lock);
}

/* Has @block heard of what @other did at @time? @of_write: it was a write, which needs a fence. Of
 * more than LEFT strong writes the older ones are taken for early enough. */
static bool heard(struct ws_inspect_launch *l, uint64_t block, uint64_t other, uint64_t time,
                  bool of_write)
{
    bool yes = false;
    pthread_mutex_lock(&l->lock);
    if (l->blocks) {
        const struct block_sync *from = &l->blocks[other];
        uint64_t found = l->blocks[block].found;
        yes = from->n_left > LEFT && found > time;
        for (uint32_t k = 0; !yes && k < WS_MIN(from->n_left, LEFT); k++)
            yes = (of_write ? from->left[k].fenced : from->left[k].at) > time &&
                  from->left[k].at < found;
    }
    pthread_mutex_unlock(&l->lock);
    return yes;
}

/* ---- words ---- */

/* The thread of a mark of the same launch as @a. */
static struct ws_inspect_who who_of(const struct ws_inspect_access *a, const struct race_mark *m)
{
    return (struct ws_inspect_who){
        .c = a->who.c, .block = m->block, .thread = m->thread, .src = m->src};
}

/* Loops of compare-and-swap begin with a plain read, and do not mind what that finds. */
static bool is_guess(const struct ws_inspect_access *a, const struct race_mark *m)
{
    struct ws_inspect_who other = who_of(a, m);
    return a->does & WS_INSPECT_STRONG ? ws_inspect_is_cas(&a->who)
                                       : a->does == WS_INSPECT_READS && ws_inspect_is_cas(&other);
}

static bool races_with(const struct ws_inspect_access *a, const struct race_mark *m, uint8_t bytes,
                       bool of_write)
{
    struct ws_blockrun *b = a->who.c->b;
    if (!(m->bytes & bytes) || (m->strong && a->does & WS_INSPECT_STRONG))
        return false;
    if (m->block == b->linear)
        return !ws_inspect_knows(b, a->who.thread / 32, m->thread / 32, m->clock);
    return !heard(b->g->inspect_launch, b->linear, m->block, m->time, of_write);
}

struct race {
    struct race_mark with;
    const char *kind; /* NULL: there is none */
};

static void look_for_race(const struct word *w, const struct ws_inspect_access *a, uint8_t bytes,
                          struct race *ret)
{
    bool writes = a->does & WS_INSPECT_WRITES;
    if (races_with(a, &w->write, bytes, true) && (writes || !is_guess(a, &w->write)))
        *ret = (struct race){w->write, writes ? "write after write" : "read after write"};
    for (unsigned k = 0; writes && !ret->kind && k < READERS; k++)
        if (races_with(a, &w->read[k], bytes, false) && !is_guess(a, &w->read[k]))
            *ret = (struct race){w->read[k], "write after read"};
}

static void note_read(struct word *w, const struct ws_inspect_access *a, const struct race_mark *m)
{
    unsigned k = 0;
    while (k < READERS && w->read[k].bytes &&
           (w->read[k].block != m->block || w->read[k].thread / 32 != m->thread / 32) &&
           races_with(a, &w->read[k], UINT8_MAX, false))
        k++;
    if (k < READERS)
        w->read[k] = *m;
}

static void tell_race(const struct ws_inspect_access *a, const struct race *r)
{
    char headline[64], did[64], after[96];
    struct ws_inspect_who other = who_of(a, &r->with);
    ws_inspect_access_words(&other, did, sizeof(did) - 16);
    snprintf(headline, sizeof(headline), "race in global memory (%s)", r->kind);
    snprintf(after, sizeof(after), "after a %s by", did);
    ws_inspect_tell(&a->who, headline, &other, after, a->at,
                    other.block == a->who.block
                        ? "with no barrier between the two"
                        : "in the same launch, whose blocks run in any order");
}

/* The words of one page that hold bytes [from, to) of it. */
static void visit_page(const struct ws_inspect_access *a, uintptr_t number, uint64_t from,
                       uint64_t to, struct race *race)
{
    struct ws_inspect_launch *l = a->who.c->b->g->inspect_launch;
    struct shelf *s = shelf_of(number);
    struct race_mark m = {.time = ws_inspect_now(),
                          .block = (uint32_t)a->who.block,
                          .src = a->who.src,
                          .clock = ws_inspect_clock(a->who.c->b, a->who.thread / 32),
                          .thread = (uint16_t)a->who.thread,
                          .strong = a->does & WS_INSPECT_STRONG};
    pthread_mutex_lock(&s->lock);
    struct race_page *p = page_at(s, number, l->id);
    for (uint64_t at = from; p && at < to; at = (at | (WORD_BYTES - 1)) + 1) {
        struct word *w = &p->words[at / WORD_BYTES];
        uint64_t first = at % WORD_BYTES, n = WS_MIN(to - at, WORD_BYTES - first);
        m.bytes = (uint8_t)(((1u << n) - 1) << first);
        if (w->launch != l->id)
            *w = (struct word){.launch = l->id};
        if (!race->kind)
            look_for_race(w, a, m.bytes, race);
        if (a->does & WS_INSPECT_WRITES)
            *w = (struct word){.launch = l->id, .write = m};
        else
            note_read(w, a, &m);
    }
    pthread_mutex_unlock(&s->lock);
}

void ws_inspect_race(const struct ws_inspect_access *a)
{
    struct ws_blockrun *b = a->who.c->b;
    struct race race = {.kind = NULL};
    if (!b->inspect || !b->g->inspect_launch || a->idle)
        return;
    for (uintptr_t at = (uintptr_t)a->host, end = at + a->bytes; at < end;) {
        uintptr_t number = at / PAGE_BYTES, stop = WS_MIN(end, (number + 1) * PAGE_BYTES);
        visit_page(a, number, at % PAGE_BYTES, stop - number * PAGE_BYTES, &race);
        at = stop;
    }
    if (race.kind)
        tell_race(a, &race);
    if (a->does & WS_INSPECT_STRONG) {
        uint64_t fenced = ws_inspect_order(a, true);
        if (a->does & WS_INSPECT_WRITES)
            leave(b->g->inspect_launch, b->linear, fenced);
    }
}
