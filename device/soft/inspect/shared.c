// SPDX-License-Identifier: Apache-2.0
/* Shared memory of one block: races between its warps, and reads of what no thread has written.
 *
 * Idea: vector clocks, with a clock for each warp. Each byte remembers who wrote it last, and two
 * who read it since, with the clock that their warps had. An access is ordered after an earlier one
 * if its warp has since heard of that clock: at a barrier each warp hears what all others have
 * heard that were there. Atomic operations and other strong accesses (PTX's memory model: volatile
 * ones, too) do not race with each other. They pass on what their warp knew at its last fence, and
 * what they find counts from the reader's next fence; mbarriers, acquire and release do both at
 * once.
 *
 * What blocks of a cluster do to each other's shared memory is not held against anybody: it counts
 * as written, and as known to all. What a warp tells others there may come back by any of its own
 * block's mbarriers, so that whoever waits at one of these has heard of it.
 *
 * A warp is one: accesses of lanes of the same warp are not held against each other. Of more than
 * two warps that read a byte, two are remembered. A warp that has ended counts as being at each
 * later barrier. So what is told is a race; what is not told may be one. */
#include "device/soft/inspect/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"

enum { WARPS = 32, READERS = 2, N_PLACES = 64 };

struct clocks {
    uint32_t v[WARPS];
};
struct mark { /* an access */
    uint32_t clock, src;
    uint16_t thread;
    bool strong, there;
};
struct cell {
    uint32_t round; /* the block's number among those that this state was used for */
    struct mark write, read[READERS];
};
/* What strong accesses left at a place. */
struct place {
    uint64_t at;
    struct clocks left;
};
struct block_places {
    struct place v[N_PLACES];
    uint32_t n;
};
struct ws_inspect_block {
    uint32_t round;
    bool races, unwritten;
    struct clocks now[WARPS];    /* what each warp has heard of the others; of itself: its clock */
    struct clocks fenced[WARPS]; /* the same at its last fence */
    struct clocks found[WARPS];  /* by strong reads since its last fence */
    uint64_t fenced_at[WARPS];   /* when that was (ws_inspect_now()); 0: never */
    struct clocks gathered[WS_N_BARRIERS + 2], ended; /* the last two: the cluster's, by turns */
    struct clocks abroad;          /* what its warps have told other blocks of the cluster */
    struct block_places places[2]; /* in shared memory, in global memory */
    struct cell *cells;            /* of each byte */
};

static void hear(struct clocks *to, const struct clocks *from)
{
    for (int k = 0; k < WARPS; k++)
        to->v[k] = WS_MAX(to->v[k], from->v[k]);
}

/* ---- a block's life ---- */

int ws_inspect_block_new(struct ws_blockrun *b)
{
    struct ws_inspect *s = b->g->inspect;
    if (!ws_inspect_has(s, WS_INSPECT_RACES) && !ws_inspect_has(s, WS_INSPECT_UNWRITTEN_SHARED))
        return 0;
    b->inspect = ws_alloc(sizeof(*b->inspect));
    if (!b->inspect)
        return ws_raise(-ENOMEM);
    b->inspect->races = ws_inspect_has(s, WS_INSPECT_RACES);
    b->inspect->unwritten = ws_inspect_has(s, WS_INSPECT_UNWRITTEN_SHARED);
    b->inspect->cells = ws_alloc_array(b->ctx.shared_bytes + 1, sizeof(struct cell));
    return b->inspect->cells ? 0 : ws_raise(-ENOMEM);
}

void ws_inspect_block_free(struct ws_blockrun *b)
{
    if (b->inspect)
        free(b->inspect->cells);
    free(b->inspect);
}

void ws_inspect_block_start(struct ws_blockrun *b)
{
    struct ws_inspect_block *s = b->inspect;
    s->round++;
    memset(s->now, 0, sizeof(s->now));
    memset(s->found, 0, sizeof(s->found));
    memset(s->fenced_at, 0, sizeof(s->fenced_at));
    memset(s->gathered, 0, sizeof(s->gathered));
    memset(&s->ended, 0, sizeof(s->ended));
    memset(&s->abroad, 0, sizeof(s->abroad));
    s->places[0].n = s->places[1].n = 0;
    for (int w = 0; w < WARPS; w++)
        s->now[w].v[w] = 1;
}

/* ---- order ---- */

static bool is_others(const struct ws_blockrun *b, uint32_t bar)
{
    return bar >= WS_CLUSTER_BARRIER && b->cluster->n > 1;
}

void ws_inspect_arrive(struct ws_blockrun *b, uint32_t warp, uint32_t bar)
{
    struct ws_inspect_block *s = b->inspect;
    hear(&s->gathered[bar], &s->now[warp]);
    s->now[warp].v[warp]++;
    if (is_others(b, bar))
        ws_inspect_left(b);
}

void ws_inspect_pass(struct ws_blockrun *b, uint32_t warp, uint32_t bar)
{
    if (is_others(b, bar))
        ws_inspect_found(b);
    hear(&b->inspect->now[warp], &b->inspect->gathered[bar]);
    hear(&b->inspect->now[warp], &b->inspect->ended);
}

void ws_inspect_open(struct ws_blockrun *b, uint32_t bar)
{
    memset(&b->inspect->gathered[bar], 0, sizeof(b->inspect->gathered[bar]));
}

void ws_inspect_exit(struct ws_blockrun *b, uint32_t warp)
{
    hear(&b->inspect->ended, &b->inspect->now[warp]);
}

void ws_inspect_fence(struct ws_blockrun *b, uint32_t warp)
{
    struct ws_inspect_block *s = b->inspect;
    if (!s)
        return;
    hear(&s->now[warp], &s->found[warp]);
    s->fenced[warp] = s->now[warp];
    s->fenced_at[warp] = ws_inspect_now();
    s->now[warp].v[warp]++;
}

/* The place at @at; a fresh one if @make. NULL: there is none. Of too many places, the last one
 * stands for all others: then more counts as ordered than is. */
static struct place *place_at(struct block_places *s, uint64_t at, bool make)
{
    for (uint32_t k = 0; k < s->n; k++)
        if (s->v[k].at == at || k == N_PLACES - 1)
            return &s->v[k];
    if (!make)
        return NULL;
    s->v[s->n] = (struct place){.at = at};
    return &s->v[s->n++];
}

uint64_t ws_inspect_order(const struct ws_inspect_access *a, bool global)
{
    struct ws_inspect_block *s = a->who.c->b->inspect;
    uint32_t warp = a->who.thread / 32;
    bool meets = a->does & WS_INSPECT_MEETS;
    const struct clocks *known = meets ? &s->now[warp] : &s->fenced[warp];
    bool leaves = a->does & WS_INSPECT_WRITES && (meets || s->fenced_at[warp]);
    if (!global)
        hear(meets ? &s->now[warp] : &s->found[warp], &s->abroad);
    struct place *p = place_at(&s->places[global], a->at, leaves);
    if (!p)
        return 0;
    if (a->does & WS_INSPECT_READS || meets)
        hear(meets ? &s->now[warp] : &s->found[warp], &p->left);
    if (!leaves)
        return 0;
    hear(&p->left, known);
    s->now[warp].v[warp]++;
    return meets ? ws_inspect_now() : s->fenced_at[warp];
}

bool ws_inspect_knows(const struct ws_blockrun *b, uint32_t warp, uint32_t other, uint32_t clock)
{
    return warp == other || b->inspect->now[warp].v[other] >= clock;
}

uint32_t ws_inspect_clock(const struct ws_blockrun *b, uint32_t warp)
{
    return b->inspect->now[warp].v[warp];
}

/* ---- bytes ---- */

static bool races_with(const struct ws_inspect_access *a, const struct mark *m)
{
    return m->there && !(m->strong && a->does & WS_INSPECT_STRONG) &&
           !ws_inspect_knows(a->who.c->b, a->who.thread / 32, m->thread / 32, m->clock);
}

static void tell_race(const struct ws_inspect_access *a, uint64_t at, const struct mark *m,
                      const char *kind)
{
    char headline[64], did[64], where[96];
    struct ws_inspect_who other = a->who;
    other.thread = m->thread;
    other.src = m->src;
    ws_inspect_access_words(&other, did, sizeof(did) - 16);
    snprintf(headline, sizeof(headline), "race in shared memory (%s)", kind);
    snprintf(where, sizeof(where),
             "at shared memory + %" PRIu64 ", with no barrier between the two", at);
    char after[96];
    snprintf(after, sizeof(after), "after a %s by", did);
    ws_inspect_tell(&a->who, headline, &other, after, 0, where);
}

static void note_read(struct cell *c, const struct ws_inspect_access *a, const struct mark *m)
{
    unsigned k = 0;
    while (k < READERS && c->read[k].there && c->read[k].thread / 32 != m->thread / 32 &&
           !ws_inspect_knows(a->who.c->b, m->thread / 32, c->read[k].thread / 32, c->read[k].clock))
        k++;
    if (k < READERS)
        c->read[k] = *m;
}

static bool check_byte(struct cell *c, const struct ws_inspect_access *a, uint64_t at)
{
    const struct mark *bad = NULL;
    const char *kind = "";
    if (races_with(a, &c->write)) {
        bad = &c->write;
        kind = a->does & WS_INSPECT_WRITES ? "write after write" : "read after write";
    }
    for (unsigned k = 0; !bad && k < READERS && a->does & WS_INSPECT_WRITES; k++)
        if (races_with(a, &c->read[k])) {
            bad = &c->read[k];
            kind = "write after read";
        }
    if (bad)
        tell_race(a, at, bad, kind);
    return !bad;
}

static void tell_unwritten(const struct ws_inspect_access *a)
{
    char did[48], headline[96], where[64];
    if (a->at >= a->who.c->b->user_shared_bytes)
        return;
    ws_inspect_access_words(&a->who, did, sizeof(did));
    snprintf(headline, sizeof(headline), "%s that no thread has written", did);
    snprintf(where, sizeof(where), "at shared memory + %" PRIu64, a->at);
    ws_inspect_tell(&a->who, headline, NULL, "", 0, where);
}

void ws_inspect_shared(const struct ws_inspect_access *a)
{
    struct ws_inspect_block *s = a->who.c->b->inspect;
    uint32_t warp = a->who.thread / 32;
    if (!s)
        return;
    struct mark m = {.clock = s->now[warp].v[warp],
                     .src = a->who.src,
                     .thread = (uint16_t)a->who.thread,
                     .strong = a->does & WS_INSPECT_STRONG,
                     .there = true};
    bool quiet_race = !s->races, written = false;
    for (uint64_t at = a->at; at < a->at + a->bytes; at++) {
        struct cell *c = &s->cells[at];
        if (c->round != s->round)
            *c = (struct cell){.round = s->round};
        if (!quiet_race)
            quiet_race = !check_byte(c, a, at);
        written |= c->write.there;
        if (a->does & WS_INSPECT_WRITES)
            *c = (struct cell){.round = s->round, .write = m};
        else
            note_read(c, a, &m);
    }
    if (s->unwritten && a->does & WS_INSPECT_READS && !written)
        tell_unwritten(a);
    if (a->does & WS_INSPECT_STRONG)
        (void)ws_inspect_order(a, false);
}

void ws_inspect_remote(const struct ws_inspect_access *a)
{
    struct ws_inspect_block *s = a->of->inspect, *own = a->who.c->b->inspect;
    uint32_t warp = a->who.thread / 32;
    bool written = false;
    struct mark m = {.src = a->who.src, .there = true}; /* all have heard of clock 0 */
    if (!s || !own)
        return;
    for (uint64_t at = a->at; at < a->at + a->bytes; at++) {
        struct cell *c = &s->cells[at];
        if (c->round != s->round)
            *c = (struct cell){.round = s->round};
        written |= c->write.there;
        if (a->does & WS_INSPECT_WRITES)
            *c = (struct cell){.round = s->round, .write = m};
    }
    if (s->unwritten && a->does & WS_INSPECT_READS && !written)
        tell_unwritten(a);
    if (!(a->does & WS_INSPECT_STRONG))
        return;
    hear(&own->abroad, &own->now[warp]);
    own->now[warp].v[warp]++;
    ws_inspect_left(a->who.c->b);
}
