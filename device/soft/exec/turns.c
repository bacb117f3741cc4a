// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/turns.c - which lanes of which warp run next.
 *
 * The warps of a block take turns of TURN warp instructions, in rounds, and of what they can go on
 * with unseen after those (ws_exec_turn_ends()). In its turn a warp runs one split after another.
 * Whoever runs the core (block.c, or compiled code, which goes from one split and one warp to the
 * next without being left) asks here what comes next, so that the order is the same for both. A
 * block in which no warp can run, and not all have ended, is deadlocked: that is a fault.
 *
 * A warp is a set of splits. A split is the lanes that stand at the same micro-op. One split runs
 * at a time in the vector core, and the others wait. The split that is deepest in calls runs
 * first, and among those the one at the lowest micro-op, because blocks are laid out so that lanes
 * that are behind then catch up (../decode/flow.c). A running split stops where another one stands
 * (ctx.limit), and splits at the same place become one. This order only matters for speed.
 * Progress does not depend on it: a split that has run long, or that does again and again what
 * waiting loops do, lets the split that waited longest run for a while. So a loop that waits for
 * another lane of the warp ends (forward progress of sm_70 and later).
 * Invariants: the masks of a warp's splits are disjoint and, with the running one, make up its
 * live lanes; all lanes of a split have the same call depth; each lane has its own return
 * addresses (ws_warp.rets). */
#include "device/soft/exec/priv.h"

enum {
    /* Warp instructions of a turn. They are few, because hardware runs the warps of a block at
     * about the same pace, and programs with a barrier too few rely on it. */
    TURN = 64,
    ROTATE = 1 << 15, /* instructions after which the split that waited longest gets a turn */
    /* Instructions of that turn. Calls and branches don't end it, so that a lane that holds a lock
     * gets to free it. */
    FAVOUR = 1 << 10,
};
#define NO_LIMIT ((const struct ws_uop *)UINTPTR_MAX)

/* No warp can run and not all have ended. */
void ws_exec_deadlock(struct ws_blockrun *b)
{
    for (uint32_t k = 0; k < b->n_warps; k++) {
        struct ws_warp *w = &b->warps[k];
        if (w->n_splits == 0)
            continue;
        b->ctx.w = w;
        ws_exec_fault(&b->ctx, w->splits[0].u, WS_DEV_E_LAUNCH_FAILURE,
                      (unsigned)__builtin_ctz(w->splits[0].mask), 0,
                      "deadlock: waits for threads that wait elsewhere");
        return;
    }
}

/* What the warps of a block wait for is in another one. */
static enum ws_step let_others_run(struct ws_blockrun *b)
{
    for (uint32_t k = 0; k < b->n_warps; k++)
        b->warps[k].waits = false;
    return WS_STEP_MORE;
}

/* ---- splits ---- */
/* Member by member: a load that reaches over what was just written by parts waits until all that
 * was written before is in the cache, and the compiler would make such loads. */
static inline struct ws_split read_split(const volatile struct ws_split *s)
{
    return (struct ws_split){.u = s->u,
                             .enter = s->enter,
                             .mask = s->mask,
                             .depth = s->depth,
                             .state = s->state,
                             .bar_id = s->bar_id,
                             .granted = s->granted,
                             .last_run = s->last_run,
                             .spent = s->spent,
                             .favour = s->favour};
}

/* Takes one of the splits out of the warp. */
static inline void drop_split(struct ws_warp *w, struct ws_split *s)
{
    const struct ws_split *last = &w->splits[--w->n_splits];
    if (s != last)
        *s = read_split(last);
}

/* A bit for the place of a split; few places share one. */
static inline uint64_t place_of(const struct ws_uop *u)
{
    return UINT64_C(1) << ((uintptr_t)u / sizeof(struct ws_uop) % 64);
}

/* Whether two splits may be at the same place: mostly none are, and this is asked often. */
static bool may_meet(const struct ws_warp *w)
{
    uint64_t seen = 0, twice = 0;
    for (uint32_t k = 0; k < w->n_splits; k++) {
        uint64_t place = place_of(w->splits[k].u);
        twice |= seen & place;
        seen |= place;
    }
    return twice != 0;
}

/* Two splits at the same place are one. */
static void merge(struct ws_warp *w)
{
    if (!may_meet(w))
        return;
    for (uint32_t k = 0; k < w->n_splits; k++) {
        struct ws_split *s = &w->splits[k];
        for (uint32_t n = k + 1; n < w->n_splits && s->state == WS_SPLIT_RUN;) {
            struct ws_split *t = &w->splits[n];
            if (t->state != WS_SPLIT_RUN || t->u != s->u || t->depth != s->depth) {
                n++;
                continue;
            }
            if (!t->enter) /* counted already; let it be counted once */
                s->enter = NULL;
            s->mask |= t->mask;
            s->spent = WS_MIN(s->spent, t->spent);
            s->favour = WS_MIN(s->favour, t->favour);
            s->granted &= t->granted;
            drop_split(w, t);
        }
    }
}

/* Waiting for lanes that can't come (they wait for these in another place): all go on with whom
 * they have. */
static bool grant(struct ws_warp *w)
{
    uint32_t here = 0;
    bool any = false;
    for (uint32_t k = 0; k < w->n_splits; k++)
        if (w->splits[k].state == WS_SPLIT_WARPSYNC)
            here |= w->splits[k].mask;
    for (uint32_t k = 0; k < w->n_splits; k++) {
        struct ws_split *s = &w->splits[k];
        if (s->state != WS_SPLIT_WARPSYNC)
            continue;
        const uint32_t *masks = (const uint32_t *)(const void *)(w->regs + s->u->e);
        uint32_t want = 0;
        for (uint32_t m = s->mask; m; m &= m - 1)
            want |= masks[__builtin_ctz(m)];
        if (want & w->live & ~here)
            continue;
        s->state = WS_SPLIT_RUN;
        s->granted = true;
        any = true;
    }
    return any;
}

/* One of several splits, taken out of the warp to run next. Return: false: none can. */
static bool pick_of_several(struct ws_warp *w, struct ws_split *ret,
                            const struct ws_uop **ret_limit)
{
    merge(w);
    uint32_t best = UINT32_MAX, oldest = UINT32_MAX, favoured = UINT32_MAX, n = 0;
    for (uint32_t k = 0; k < w->n_splits; k++) {
        const struct ws_split *s = &w->splits[k], *t = best == UINT32_MAX ? NULL : &w->splits[best];
        if (s->state != WS_SPLIT_RUN)
            continue;
        n++;
        if (s->favour > 0)
            favoured = k;
        if (!t || s->depth > t->depth || (s->depth == t->depth && s->u < t->u))
            best = k;
        if (oldest == UINT32_MAX || (int32_t)(s->last_run - w->splits[oldest].last_run) < 0)
            oldest = k;
    }
    if (n == 0)
        return grant(w) && pick_of_several(w, ret, ret_limit);
    if (favoured != UINT32_MAX) {
        best = favoured;
    } else if (n > 1 && w->splits[best].spent >= ROTATE) {
        w->splits[best].spent = 0;
        if (oldest == best) /* it ran last, so another one is older, unless stamps are equal */
            for (uint32_t k = 0; k < w->n_splits; k++)
                if (k != best && w->splits[k].state == WS_SPLIT_RUN)
                    oldest = k;
        best = oldest;
        w->splits[best].favour = FAVOUR;
    }
    *ret = read_split(&w->splits[best]);
    drop_split(w, &w->splits[best]);
    for (uint32_t k = 0; k < w->n_splits; k++) {
        const struct ws_split *s = &w->splits[k];
        if (s->state == WS_SPLIT_RUN && s->depth == ret->depth && s->u > ret->u &&
            s->u < *ret_limit)
            *ret_limit = s->u;
    }
    return true;
}

/* Waits for its lanes, or takes up those that wait at the same place and tries again. */
static void warpsync_arrive(struct ws_warp *w, const struct ws_split *left)
{
    struct ws_split arrived = *left, *s = &arrived;
    bool met = false;
    for (uint32_t k = 0; k < w->n_splits;) {
        struct ws_split *t = &w->splits[k];
        if (t->state != WS_SPLIT_WARPSYNC || t->u != s->u || t->depth != s->depth) {
            k++;
            continue;
        }
        s->mask |= t->mask;
        met = true;
        drop_split(w, t);
    }
    s->state = met ? WS_SPLIT_RUN : WS_SPLIT_WARPSYNC;
    w->splits[w->n_splits++] = *s;
}

/* After a turn. A waiting loop may be longer than a turn, so that its looks are counted over
 * several turns; a turn without any ends that. */
static void note_turn(struct ws_warp *w, const struct ws_core_ctx *c)
{
    bool looked = c->spin != w->spin;
    w->waits = c->penalty || (w->waits && looked);
    w->spin = c->penalty || !looked ? 0 : c->spin;
}

/* ---- turns ---- */
/* The split is out of the warp whose turn it is, and runs. */
static inline void take_up(struct ws_blockrun *b, const struct ws_split *s)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_round *r = &b->round;
    r->before = c->budget;
    r->spent = s->spent;
    r->favour = s->favour;
    r->turn = WS_TURN_RAN;
    c->active = s->mask;
    c->depth = s->depth;
    c->granted = s->granted;
    c->u = s->u;
    c->enter = s->enter;
    c->w->stamp++;
}

/* The lowest of splits and the one above it. */
struct order {
    const struct ws_uop *low, *second;
    uint32_t at;   /* which one is the lowest */
    uint64_t seen; /* where there are some (place_of()) */
};

/* Looks in one go for the split that runs next, if all are as they mostly are: they can run, are as
 * deep in calls, none is favoured, no two are at the same place, and the lowest has not run long.
 * Return: false: it is otherwise, or there is none. */
static inline bool find_lowest(const struct ws_warp *w, uint32_t depth, struct order *ret)
{
    struct order o = {NO_LIMIT, NO_LIMIT, 0, 0};
    uint64_t twice = 0;
    uint32_t other = 0;
    for (uint32_t k = 0; k < w->n_splits; k++) {
        const struct ws_split *s = &w->splits[k];
        uint64_t place = place_of(s->u);
        twice |= o.seen & place;
        o.seen |= place;
        other |= (s->state ^ WS_SPLIT_RUN) | (s->depth ^ depth) | (uint32_t)s->favour;
        o.second = s->u < o.low ? o.low : WS_MIN(o.second, s->u);
        o.at = s->u < o.low ? k : o.at;
        o.low = WS_MIN(o.low, s->u);
    }
    *ret = o;
    return o.seen && !twice && !other && w->splits[o.at].spent < ROTATE;
}

/* Whether the turn is over before the split runs. @enter: the segment that it enters; NULL: it goes
 * on within one. */
static inline bool is_over(const struct ws_core_ctx *c, const struct ws_seg *enter)
{
    return c->budget <= 0 && (!enter || ws_exec_turn_ends(c->budget, enter->is_quiet));
}

/* Takes the next split out of a warp of several, or of one that waits. Return: false: none can
 * run, or the turn is over. */
static __attribute__((noinline)) bool begin_one_of(struct ws_blockrun *b)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_warp *w = c->w;
    struct order o;
    if (find_lowest(w, w->splits[0].depth, &o)) {
        struct ws_split next = read_split(&w->splits[o.at]);
        if (is_over(c, next.enter))
            return false;
        drop_split(w, &w->splits[o.at]);
        c->limit = o.second;
        take_up(b, &next);
        return true;
    }
    if (!pick_of_several(w, &b->round.picked, &c->limit))
        return false;
    if (is_over(c, b->round.picked.enter)) {
        w->splits[w->n_splits++] = b->round.picked;
        return false;
    }
    take_up(b, &b->round.picked);
    return true;
}

/* Takes the next split out of the warp whose turn it is. Return: false: its turn is over. */
static inline bool begin_split(struct ws_blockrun *b)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_warp *w = c->w;
    const struct ws_split *s = &w->splits[0];
    if (!w->live || (w->n_splits == 1 && s->state == WS_SPLIT_BAR))
        return false;
    c->limit = NO_LIMIT;
    if (w->n_splits != 1 || s->state != WS_SPLIT_RUN)
        return begin_one_of(b);
    if (is_over(c, s->enter))
        return false;
    w->n_splits = 0; /* what it was is there still */
    take_up(b, s);
    return true;
}

static inline int32_t favour_left(const struct ws_round *r, int64_t ran)
{
    return r->favour > ran ? r->favour - (int32_t)ran : 0;
}

static inline uint32_t spent_with(const struct ws_round *r, int64_t ran)
{
    return r->spent + (uint32_t)WS_MIN(ran, (int64_t)ROTATE);
}

/* What a split keeps when the core is left, however: @ran is what it has spent. */
static inline void note_left(const struct ws_blockrun *b, struct ws_split *s, int64_t ran)
{
    s->depth = b->ctx.depth;
    s->granted = false;
    s->last_run = b->ctx.w->stamp;
    s->spent = spent_with(&b->round, ran);
    s->favour = favour_left(&b->round, ran);
}

/* The split that ran, as it stands now, behind those that wait, and not yet one of them. It is
 * written where it is to stay: a copy would wait for its parts to be written. */
static struct ws_split *left_split(struct ws_blockrun *b)
{
    const struct ws_core_ctx *c = &b->ctx;
    struct ws_split *s = &c->w->splits[c->w->n_splits];
    int64_t ran = b->round.before - c->budget; /* with the penalty, if it spins */
    s->u = c->u;
    s->enter = c->enter;
    s->mask = c->active;
    s->state = WS_SPLIT_RUN;
    s->bar_id = 0;
    note_left(b, s, ran);
    return s;
}

/* The core was left. Return: false: the warp's turn is over. */
static inline bool end_split(struct ws_blockrun *b)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_round *r = &b->round;
    struct ws_warp *w = c->w;
    struct ws_split *s;
    switch (c->stop) {
    case WS_STOP_EXIT:
        return true;
    case WS_STOP_RESCHED:
        (void)left_split(b);
        w->n_splits++;
        return true;
    case WS_STOP_BAR:
        if (ws_exec_bar_arrive(b, left_split(b)))
            return true;
        break;
    case WS_STOP_WARPSYNC:
        warpsync_arrive(w, left_split(b));
        return true;
    case WS_STOP_YIELD:
        s = left_split(b);
        s->spent = ROTATE;
        s->favour = 0;
        w->n_splits++;
        r->turn = WS_TURN_WAITS;
        return false;
    case WS_STOP_FAULT:
        break;
    }
    r->turn = WS_TURN_FAULT;
    return false;
}

/* The running split stops where others of its warp come first, or stand, too: what
 * pick_of_several() would do, if the others are usual. Return: false: nothing was done. */
static inline bool swap_split(struct ws_blockrun *b)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_round *r = &b->round;
    struct ws_warp *w = c->w;
    struct order o;
    int64_t ran = r->before - c->budget;
    uint32_t spent = spent_with(r, ran);
    if (!find_lowest(w, c->depth, &o) || favour_left(r, ran) || spent >= ROTATE ||
        (c->u > o.low && o.seen & place_of(c->u)))
        return false;
    struct ws_split *s = &w->splits[o.at], next = read_split(s);
    if (c->u == o.low)
        next.enter = c->enter ? s->enter : NULL;
    else if (c->u < o.low)
        next.enter = c->enter;
    if (is_over(c, next.enter))
        return false;
    c->limit = o.second;
    if (c->u == o.low) {
        next.mask |= c->active;
        next.granted = false;
        next.spent = WS_MIN(s->spent, spent);
        drop_split(w, s);
    } else if (c->u > o.low) {
        c->limit = WS_MIN(o.second, c->u);
        *s = (struct ws_split){.u = c->u, .enter = c->enter, .mask = c->active};
        note_left(b, s, ran);
    } else {
        next.u = c->u;
        next.mask = c->active;
        next.granted = false;
        next.spent = spent;
        c->limit = o.low;
    }
    take_up(b, &next);
    return true;
}

static bool is_stopped(const struct ws_blockrun *b)
{
    return atomic_load_explicit(&b->g->stop, memory_order_relaxed) ||
           (b->part && atomic_load_explicit(&b->part->stop, memory_order_relaxed));
}

/* Return: false: the step is over. */
static bool end_step(struct ws_blockrun *b, enum ws_step how)
{
    b->round.over = true;
    b->round.step = how;
    return false;
}

static inline void begin_turn(struct ws_blockrun *b, struct ws_warp *w)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_round *r = &b->round;
    c->w = w;
    c->regs = w->regs;
    c->local = b->local + (uint64_t)w->index * 32 * b->local_bytes;
    c->budget = b->quantum_start = WS_MIN(r->left, TURN);
    c->penalty = 0;
    c->spin = w->spin;
    r->turn = WS_TURN_NONE;
    r->has_turn = true;
}

/* The turn of a warp is over in which something ran. What mostly follows: it waits for nothing but
 * a barrier, and the next warp can run, which has its turn then. Return: false: it is otherwise,
 * and nothing was done. */
static inline __attribute__((always_inline)) bool hand_turn(struct ws_blockrun *b,
                                                            struct ws_warp *next, int64_t budget)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_round *r = &b->round;
    struct ws_warp *w = c->w;
    int64_t n = b->quantum_start - budget;
    bool new_round = r->n_had >= b->n_warps;
    if (!next->n_splits || next->splits[0].state != WS_SPLIT_RUN || n >= r->left || c->penalty ||
        w->waits || is_stopped(b))
        return false;
    w->spin = c->spin != w->spin ? c->spin : 0; /* as note_turn() does */
    b->n_insns += (uint64_t)n;
    r->left -= n;
    r->n_had = new_round ? 1 : r->n_had + 1;
    r->ran = !new_round;
    r->all_wait = new_round;
    begin_turn(b, next);
    c->limit = NO_LIMIT;
    return true;
}

/* The same in one go, with the first of the next warp's splits. */
static inline bool pass_turn(struct ws_blockrun *b, int64_t budget)
{
    const struct ws_warp *w = b->ctx.w;
    struct ws_warp *next = w->index + 1 < b->n_warps ? b->ctx.w + 1 : b->warps;
    if (!hand_turn(b, next, budget))
        return false;
    if (next->n_splits > 1)
        return begin_one_of(b); /* the first one can run */
    next->n_splits = 0;
    take_up(b, &next->splits[0]);
    return true;
}

/* As ws_exec_exit() of all lanes of the warp, where nobody waits for them. */
static inline void end_warp(struct ws_blockrun *b, struct ws_warp *w)
{
    w->live = 0;
    b->n_live -= 32;
    b->n_done_warps++;
}

static inline bool is_fresh(const struct ws_blockrun *b, const struct ws_warp *w)
{
    return w->n_splits == 1 && w->splits[0].enter == b->img->entry && w->splits[0].mask == ~0u;
}

int64_t ws_exec_end_warp(struct ws_core_ctx *c, int64_t budget)
{
    struct ws_blockrun *b = c->b;
    struct ws_warp *w = c->w;
    if (b->bars_used || b->inspect)
        return 0;
    if (w->index + 1 == b->n_warps)
        return ws_exec_begin_alike(b, budget) ? -c->budget : 0;
    struct ws_warp *next = w + 1;
    if (!is_fresh(b, next) || !hand_turn(b, next, budget))
        return 0;
    struct ws_split first = {.u = b->img->entry->first,
                             .enter = b->img->entry,
                             .mask = ~0u,
                             .spent = next->splits[0].spent,
                             .favour = next->splits[0].favour};
    next->n_splits = 0;
    take_up(b, &first);
    end_warp(b, w);
    c->n_entered++;
    return c->budget;
}

/* Return: false: the step is over. */
static bool end_turn(struct ws_blockrun *b)
{
    struct ws_core_ctx *c = &b->ctx;
    struct ws_round *r = &b->round;
    struct ws_warp *w = c->w;
    int64_t n = r->turn == WS_TURN_FAULT ? 0 : b->quantum_start - c->budget - c->penalty;
    r->has_turn = false;
    if (r->turn != WS_TURN_FAULT)
        note_turn(w, c);
    if (r->turn == WS_TURN_RAN && w->waits)
        r->turn = WS_TURN_WAITS;
    b->n_insns += (uint64_t)n;
    b->quantum_start = 0;
    c->budget = c->penalty = 0;
    r->left -= n;
    if (r->turn == WS_TURN_FAULT)
        return end_step(b, WS_STEP_STOPPED);
    r->ran |= r->turn != WS_TURN_NONE;
    r->all_wait &= r->turn != WS_TURN_RAN;
    if (r->left <= 0 && b->n_done_warps < b->n_warps) {
        b->next_warp = w->index + 1 < b->n_warps ? w->index + 1 : 0;
        return end_step(b, WS_STEP_MORE);
    }
    return true;
}

/* All warps have had their turn. Return: false: the step is over. */
static bool end_round(struct ws_blockrun *b)
{
    struct ws_round *r = &b->round;
    if (b->n_done_warps == b->n_warps)
        return end_step(b, WS_STEP_DONE);
    if (!r->ran && ws_exec_waits_for_cluster(b)) {
        b->stuck_at = b->cluster->phase + 1;
        return end_step(b, let_others_run(b));
    }
    if (!r->ran) {
        ws_exec_deadlock(b);
        return end_step(b, WS_STEP_STOPPED);
    }
    if (r->all_wait)
        return end_step(b, let_others_run(b));
    r->n_had = 0;
    r->ran = false;
    r->all_wait = true;
    return true;
}

/* The next warp that is to have a turn has it. Return: false: the step is over. */
static bool next_turn(struct ws_blockrun *b)
{
    struct ws_round *r = &b->round;
    for (;;) {
        while (r->n_had < b->n_warps) {
            uint32_t at = b->next_warp + r->n_had++;
            struct ws_warp *w = &b->warps[at < b->n_warps ? at : at - b->n_warps];
            if (is_stopped(b))
                return end_step(b, WS_STEP_STOPPED);
            if (!w->live)
                continue;
            begin_turn(b, w);
            return true;
        }
        if (!end_round(b))
            return false;
    }
}

/* Member by member: what a turn begins with is written when it begins, and clearing the rest takes
 * longer than a small block may. */
void ws_exec_begin_step(struct ws_blockrun *b, int64_t n_warp_insns)
{
    struct ws_round *r = &b->round;
    r->left = n_warp_insns;
    r->n_had = 0;
    r->has_turn = r->ran = r->over = false;
    b->stuck_at = 0;
    r->all_wait = true;
}

bool ws_exec_next(struct ws_blockrun *b)
{
    struct ws_round *r = &b->round;
    if (r->over)
        return false;
    if (r->has_turn && b->ctx.stop == WS_STOP_RESCHED && swap_split(b))
        return true;
    if (r->has_turn && end_split(b) && (begin_split(b) || pass_turn(b, b->ctx.budget)))
        return true;
    do {
        if ((r->has_turn && !end_turn(b)) || !next_turn(b))
            return false;
    } while (!begin_split(b));
    return true;
}

enum ws_bar_way ws_exec_bar_whole(struct ws_core_ctx *c, const struct ws_uop *u, int64_t budget)
{
    struct ws_blockrun *b = c->b;
    struct ws_round *r = &b->round;
    struct ws_warp *w = c->w;
    uint32_t id = *(const uint32_t *)(const void *)(w->regs + u->a);
    int64_t ran = r->before - budget;
    if (u->x & WS_X_CLUSTER || id >= WS_N_BARRIERS || b->inspect || b->bars[id].expected ||
        c->penalty)
        return WS_BAR_LONG;
    if (b->bars[id].arrived + 32 >= b->n_live) {
        if (budget <= 0)
            return WS_BAR_LONG;
        ws_exec_bar_count(b, w, u, id, ~0u);
        ws_exec_bar_open(b, id);
        r->before = budget;
        r->spent = 0;
        r->favour = favour_left(r, ran);
        w->stamp++;
        return WS_BAR_OPEN;
    }
    struct ws_split *s = &w->splits[0];
    s->u = u;
    s->enter = NULL;
    s->mask = ~0u;
    s->state = WS_SPLIT_BAR;
    s->bar_id = (uint8_t)id;
    note_left(b, s, ran);
    if (!pass_turn(b, budget))
        return WS_BAR_LONG;
    w->n_splits = 1;
    ws_exec_bar_count(b, w, u, id, ~0u);
    return WS_BAR_PASSED;
}
