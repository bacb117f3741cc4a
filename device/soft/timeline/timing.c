// SPDX-License-Identifier: Apache-2.0
/* The timeline: when the modelled GPU would have executed each operation, and with what energy.
 *
 * Kernels. Blocks are dealt in order to the SMs of the kernel's set, round-robin, as many to each
 * SM as fit. A block that ends makes room for the next. On an SM with k blocks of the kernel, of
 * whose capacity other kernels leave the part a,
 *     rate = 1 / max(latency_ns, k * issue_ns / a)            (of a block, per ns)
 * If the blocks that run at a moment would together move more bytes than the memory can (or than
 * other kernels leave of it), all are slowed by the same factor. So the simulation runs in a
 * slowed time tau, in which SMs are independent of each other, and stretches it: dt = dtau * slow.
 *
 * Other kernels. Earlier operations keep their places. They are a list of spans; each has its SMs,
 * the average part of these SMs and of the memory bandwidth that it uses, and the room that its
 * blocks take on each SM. A new kernel gets the rest, which is computed anew at each start and end
 * of a span. So the GPU never does more than it can, two kernels that leave room for each other
 * overlap, and the result depends only on the operations and on their order.
 *
 * Copies. There is one engine per direction. A copy takes the first gap after ready_ns that is
 * long enough.
 *
 * Memory of the timeline. The last N_SPANS spans, by their end, are kept. What a dropped span used
 * is unknown, so nothing starts before `floor_ns`, the latest end of a dropped span.
 *
 * Energy. The power of the GPU is Eq. 2 (power.h) while a kernel runs, static power while only
 * copies run, and nothing is counted while the GPU has no work, because the device clock then
 * stands still. At each moment it is shared out as the meter does it (meter.c), by the Shapley
 * value: static power equally by all owners of what runs, what idle SMs take by those with kernels,
 * and what an SM at work takes more by the operations on it. If a later operation turns out to have
 * run beside an earlier one, it takes over part of what the earlier one was charged. The earlier
 * operation has already ended, so its client gets a credit: its next operation is charged less.
 * Each client has an account with its due (its shares so far) and what it was charged. The due of
 * all accounts is exactly the GPU's energy. The difference is the credit. What a launch adds of its
 * own (power.h) is charged to its client alone; what SMs that issue take is shared as crowd.h says.
 *
 * The board's limit. As with the memory, the newest yields: while the board would draw more with it
 * and the kernels in its way than the limit allows, its clock is lower (power.h), and its client
 * pays so much less. For that it is simulated twice, the first time as if there were no limit: then
 * it is known what it draws at its full clock. A kernel that had to yield to one that is cut short
 * afterwards keeps its place, and draws what it draws at its full clock.
 *
 * Invariants: spans are sorted by end_ns; energy_pj only grows; scratch is used under the lock
 * only. */
#include "device/soft/timeline/timing.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "device/soft/timeline/power.h"
#include "device/soft/timeline/sms.h"

enum { N_SPANS = 256, N_ACCOUNTS = 2 * N_SPANS, MASK_WORDS = 4 };
enum { LOOKS_MOST = 4096 };          /* 64 edges, and about as many operations at each */
enum { KIND_KERNEL = _WS_ENGINE_N }; /* a span's kind: a copy engine, or this */
#define PJ_PER_UJ 1000000

struct account {
    uint64_t owner;                /* the client */
    uint32_t n_spans;              /* that belong to it and are kept */
    uint64_t last;                 /* counts up, for the choice of whom to forget */
    uint32_t n_now, n_kernels_now; /* scratch: its operations at a moment */
    __int128 due_pj, paid_pj;
};

struct timing_span {
    uint64_t start_ns, end_ns;
    int kind;
    uint32_t account, n_sms;
    uint64_t mask[MASK_WORDS]; /* SMs; empty for a copy */
    float issue_part, memory_part;
    uint32_t blocks; /* held on each SM */
    uint32_t own_mw; /* that it adds whatever its SMs add; like issue at its full clock */
    struct ws_issue issue;
    bool yields; /* its clock is lower where the sum would be above the limit */
    struct ws_need need;
    /* of reservations */
    uint64_t seq;     /* 0: entered for good */
    uint64_t from_ns; /* start of the simulation */
    bool held;
};

/* Of an SM, by kernels in the way. */
struct held {
    double part;
    int64_t blocks, warps, regs, shared_bytes;
};

struct ws_timing {
    struct ws_gpu_spec spec;
    uint64_t most_mw; /* the board's limit */
    _Atomic uint64_t now_ns;
    pthread_mutex_t lock;      /* all below */
    pthread_mutex_t next;      /* whoever holds it takes the lock next */
    struct timing_span *spans; /* ring */
    uint32_t head, n, cap;     /* cap: N_SPANS, more while reservations need it; a power of two */
    uint32_t n_held;
    uint64_t seq;
    uint64_t floor_ns, busy_ns, sm_busy_ns;
    unsigned __int128 energy_pj; /* mW * ns */
    struct account accounts[N_ACCOUNTS];
    uint64_t n_entered;
    uint32_t recent;       /* account used last */
    __int128 forgotten_pj; /* paid less due of accounts that are gone */
    uint32_t power_mw;
    /* of the kernel being simulated: */
    struct ws_sms sms;
    double memory_part;             /* that others leave */
    const struct timing_span *full; /* as it would be without a limit; NULL: it does not yield */
    double pace;                    /* as a share of that at its full clock */
    struct held held[WS_SM_MAX];
    uint64_t edges[2 * N_SPANS + 2];
    const struct timing_span **near, *beside[N_SPANS]; /* near: [cap] */
    struct ws_crowd crowd;
    double share_mw[N_SPANS];          /* of each beside, before one more came */
    uint32_t n_owners, n_with_kernels; /* of what met */
    uint16_t users[WS_SM_MAX];         /* operations on each SM */
};

/* Threads that price one operation after the other do not keep others from the lock: whoever gives
 * it back and wants it again stands behind those who wait. */
static void lock(struct ws_timing *t)
{
    pthread_mutex_lock(&t->next);
    pthread_mutex_lock(&t->lock);
    pthread_mutex_unlock(&t->next);
}

static void unlock(struct ws_timing *t)
{
    pthread_mutex_unlock(&t->lock);
}

int ws_timing_new(struct ws_timing **ret, const struct ws_gpu_spec *spec)
{
    struct ws_timing *t = ws_alloc(sizeof(*t));
    if (!t)
        return ws_raise(-ENOMEM);
    t->spec = *spec;
    t->most_mw = ws_power_most_mw(spec);
    t->cap = N_SPANS;
    t->spans = ws_alloc_array(t->cap, sizeof(t->spans[0]));
    t->near = ws_alloc_array(t->cap, sizeof(t->near[0]));
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->next, NULL);
    if (!t->spans || !t->near) {
        ws_timing_free(t);
        return ws_raise(-ENOMEM);
    }
    *ret = t;
    return 0;
}

struct ws_timing *ws_timing_free(struct ws_timing *t)
{
    if (!t)
        return NULL;
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->next);
    free(t->spans);
    free(t->near);
    free(t);
    return NULL;
}

uint64_t ws_timing_now_ns(struct ws_timing *t)
{
    return atomic_load_explicit(&t->now_ns, memory_order_relaxed);
}

void ws_timing_touch(struct ws_timing *t, uint64_t end_ns)
{
    uint64_t now = ws_timing_now_ns(t);
    while (now < end_ns && !atomic_compare_exchange_weak(&t->now_ns, &now, end_ns))
        ;
}

static struct timing_span *span_at(struct ws_timing *t, uint32_t i)
{
    return &t->spans[(t->head + i) & (t->cap - 1)];
}

/* Spans of @kind, or of any, that end after @from_ns and were reserved before @seq, latest first,
 * into t->near. */
static uint32_t spans_after(struct ws_timing *t, uint64_t from_ns, int kind, bool any_kind,
                            uint64_t seq)
{
    uint32_t n = 0;
    for (uint32_t i = t->n; i-- > 0;) {
        const struct timing_span *s = span_at(t, i);
        if (s->end_ns <= from_ns)
            break;
        if ((any_kind || s->kind == kind) && s->seq < seq)
            t->near[n++] = s;
    }
    return n;
}

static int u64_order(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Starts and ends of t->near[0, n) strictly inside (from, to), sorted, into t->edges. */
static uint32_t edges_between(struct ws_timing *t, uint32_t n, uint64_t from_ns, uint64_t to_ns)
{
    uint32_t n_edges = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t e[2] = {t->near[i]->start_ns, t->near[i]->end_ns};
        for (int j = 0; j < 2; j++)
            if (e[j] > from_ns && e[j] < to_ns)
                t->edges[n_edges++] = e[j];
    }
    if (n_edges > 1)
        qsort(t->edges, n_edges, sizeof(t->edges[0]), u64_order);
    return n_edges;
}

/* Where very many operations run beside one, not all of their @n edges are looked at: between two
 * of those that are left they count as what runs at the first. Energy is less exact then, and still
 * all of it is charged to somebody. Return: how many are left. */
static uint32_t edges_thin(struct ws_timing *t, uint32_t n)
{
    uint32_t each = n * n / LOOKS_MOST + 1, left = 0;
    for (uint32_t i = each - 1; i < n; i += each)
        t->edges[left++] = t->edges[i];
    return left;
}

/* ---- entering ---- */

/* The account of @owner, a new one if it has none; then the longest unused one that no span needs
 * makes room. */
static uint32_t account_of(struct ws_timing *t, uint64_t owner)
{
    struct account *a = &t->accounts[t->recent];
    if (a->last && a->owner == owner)
        return t->recent;
    uint32_t oldest = N_ACCOUNTS;
    for (uint32_t i = 0; i < N_ACCOUNTS; i++) {
        a = &t->accounts[i];
        if (a->owner == owner && a->last) {
            a->last = ++t->n_entered;
            return t->recent = i;
        }
        if (!a->n_spans && (oldest == N_ACCOUNTS || a->last < t->accounts[oldest].last))
            oldest = i;
        if (!a->last)
            break; /* accounts are used from the first on */
    }
    a = &t->accounts[oldest];
    t->forgotten_pj += a->paid_pj - a->due_pj;
    *a = (struct account){.owner = owner, .last = ++t->n_entered};
    return t->recent = oldest;
}

static void span_drop_first(struct ws_timing *t)
{
    const struct timing_span *s = span_at(t, 0);
    t->floor_ns = WS_MAX(t->floor_ns, s->end_ns);
    if (!s->seq)
        t->accounts[s->account].n_spans--;
    t->head = (t->head + 1) & (t->cap - 1);
    t->n--;
}

static void span_insert(struct ws_timing *t, const struct timing_span *s)
{
    if (t->n == t->cap) /* only where nothing is reserved, see make_room() */
        span_drop_first(t);
    uint32_t i = t->n++;
    for (; i && span_at(t, i - 1)->end_ns > s->end_ns; i--)
        *span_at(t, i) = *span_at(t, i - 1);
    *span_at(t, i) = *s;
    if (!s->seq)
        t->accounts[s->account].n_spans++;
}

static void join_mask(uint64_t *mask, const uint64_t *more)
{
    for (int w = 0; w < MASK_WORDS; w++)
        mask[w] |= more[w];
}

static uint32_t popcount(const uint64_t *mask)
{
    uint32_t n = 0;
    for (int w = 0; w < MASK_WORDS; w++)
        n += (uint32_t)__builtin_popcountll(mask[w]);
    return n;
}

static bool runs(const struct timing_span *s, uint64_t at_ns)
{
    return s->start_ns <= at_ns && s->end_ns > at_ns;
}

/* ---- what operations beside each other pay ---- */

static void meet(struct ws_timing *t, const struct timing_span *s)
{
    struct account *a = &t->accounts[s->account];
    t->n_owners += !a->n_now++;
    if (!s->n_sms)
        return;
    t->n_with_kernels += !a->n_kernels_now++;
    WS_SM_BITS_EACH(sm, s->mask)
    t->users[sm]++;
}

static void part(struct ws_timing *t, const struct timing_span *s)
{
    t->accounts[s->account].n_now = t->accounts[s->account].n_kernels_now = 0;
}

/* Of Eq. 2, of those that met. */
static double share_mw(const struct ws_timing *t, const struct timing_span *s)
{
    const struct account *a = &t->accounts[s->account];
    const struct ws_gpu_spec *spec = &t->spec;
    double sms = 0, mw = (double)spec->static_mw / t->n_owners / a->n_now;
    if (!s->n_sms)
        return mw;
    WS_SM_BITS_EACH(sm, s->mask)
    sms += 1.0 / t->users[sm];
    mw += (double)spec->n_sms * spec->idle_mw_per_sm / t->n_with_kernels / a->n_kernels_now;
    return mw + sms * ((double)spec->dynamic_mw_per_sm - spec->idle_mw_per_sm);
}

/* @s comes to the @n beside, and with it @more_pj in @ns: what they pay less, it pays. */
static void account_sms(struct ws_timing *t, const struct timing_span *s, uint32_t n, uint64_t ns,
                        __int128 more_pj)
{
    if (!n) {
        t->accounts[s->account].due_pj += more_pj;
        return;
    }
    memset(t->users, 0, sizeof(t->users));
    t->n_owners = t->n_with_kernels = 0;
    for (uint32_t i = 0; i < n; i++)
        meet(t, t->beside[i]);
    for (uint32_t i = 0; i < n; i++)
        t->share_mw[i] = share_mw(t, t->beside[i]);
    meet(t, s);
    for (uint32_t i = 0; i < n; i++) {
        const struct timing_span *o = t->beside[i];
        __int128 more = llround((share_mw(t, o) - t->share_mw[i]) * (double)ns);
        t->accounts[o->account].due_pj += more;
        more_pj -= more;
    }
    t->accounts[s->account].due_pj += more_pj;
    part(t, s);
    for (uint32_t i = 0; i < n; i++)
        part(t, t->beside[i]);
}

/* The same for the SMs that issue, with the @n beside. Return: mW of all, with @s. @ret_before_mw:
 * without it. */
static uint64_t account_issue(struct ws_timing *t, const struct timing_span *s, uint32_t n,
                              uint64_t ns, uint64_t *ret_before_mw)
{
    struct ws_crowd *c = &t->crowd;
    ws_crowd_init(c, t->spec.n_sms);
    for (uint32_t i = 0; i < n; i++)
        ws_crowd_join(c, t->beside[i]->mask, &t->beside[i]->issue);
    int64_t before_mw = llround(ws_crowd_mw(c));
    for (uint32_t i = 0; i < n; i++)
        t->share_mw[i] = ws_crowd_share_mw(c, t->beside[i]->mask, &t->beside[i]->issue);
    ws_crowd_join(c, s->mask, &s->issue);
    int64_t mw = llround(ws_crowd_mw(c));
    __int128 rest = (__int128)(mw - before_mw) * ns;
    t->energy_pj += (unsigned __int128)rest;
    for (uint32_t i = 0; i < n; i++) {
        const struct timing_span *o = t->beside[i];
        double more_mw = ws_crowd_share_mw(c, o->mask, &o->issue) - t->share_mw[i];
        __int128 more = llround(more_mw * (double)ns);
        t->accounts[o->account].due_pj += more;
        rest -= more;
    }
    t->accounts[s->account].due_pj += rest;
    *ret_before_mw = (uint64_t)before_mw;
    return (uint64_t)mw;
}

static uint64_t over_limit(const struct ws_timing *t, uint64_t mw)
{
    return mw > t->most_mw ? mw - t->most_mw : 0;
}

/* Adds what @s changes to the device's and the clients' accounts between two edges. Return: mW of
 * all, with @s. */
static uint64_t account(struct ws_timing *t, const struct timing_span *s, uint32_t n_near,
                        uint64_t from_ns, uint64_t to_ns)
{
    uint64_t mask[MASK_WORDS] = {0}, ns = to_ns - from_ns, own_mw = s->own_mw;
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_near; i++) {
        const struct timing_span *o = t->near[i];
        if (!runs(o, from_ns))
            continue;
        t->beside[n++] = o;
        own_mw += o->own_mw;
        join_mask(mask, o->mask);
    }
    uint32_t n_before = popcount(mask);
    join_mask(mask, s->mask);
    uint32_t n_after = popcount(mask);
    uint64_t mw_before = n ? ws_power_mw(&t->spec, n_before) : 0;
    uint64_t mw_after = ws_power_mw(&t->spec, n_after);
    __int128 more = ((__int128)mw_after - mw_before) * ns, own = (__int128)s->own_mw * ns;
    t->energy_pj += (unsigned __int128)(more + own);
    t->accounts[s->account].due_pj += own;
    account_sms(t, s, n, ns, more);
    t->sm_busy_ns += (n_after - n_before) * ns;
    if (n_after && !n_before)
        t->busy_ns += ns;
    uint64_t issue_before;
    mw_after += own_mw + account_issue(t, s, n, ns, &issue_before);
    mw_before += own_mw - s->own_mw;
    uint64_t over = over_limit(t, mw_after);
    __int128 yielded = (__int128)(over - over_limit(t, mw_before + issue_before)) * ns;
    t->energy_pj -= (unsigned __int128)yielded;
    t->accounts[s->account].due_pj -= yielded;
    return mw_after - over;
}

/* Whether one of the first @n_near of near runs while @s does. */
static bool has_company(const struct ws_timing *t, const struct timing_span *s, uint32_t n_near)
{
    for (uint32_t i = 0; i < n_near; i++)
        if (t->near[i]->start_ns < s->end_ns && t->near[i]->end_ns > s->start_ns)
            return true;
    return false;
}

/* Lock held. */
static void enter(struct ws_timing *t, struct timing_span *s, uint64_t owner, struct ws_timed *ret)
{
    *ret = (struct ws_timed){.start_ns = s->start_ns, .end_ns = s->end_ns};
    ws_timing_touch(t, s->end_ns);
    if (s->end_ns == s->start_ns)
        return;
    s->account = account_of(t, owner);
    uint32_t n_near = spans_after(t, s->start_ns, 0, true, UINT64_MAX),
             n = edges_between(t, n_near, s->start_ns, s->end_ns);
    n = edges_thin(t, n);
    unsigned __int128 pj = 0;
    uint64_t from = s->start_ns;
    for (uint32_t i = 0; i <= n; i++) {
        uint64_t to = i < n ? t->edges[i] : s->end_ns;
        if (to > from)
            pj += (unsigned __int128)account(t, s, n_near, from, to) * (to - from);
        from = to;
    }
    t->power_mw = (uint32_t)(pj / (s->end_ns - s->start_ns));
    if (!has_company(t, s, n_near))
        ret->alone_uj = (uint64_t)(pj / PJ_PER_UJ);
    struct account *a = &t->accounts[s->account];
    if (a->due_pj > a->paid_pj)
        ret->energy_uj = (uint64_t)((a->due_pj - a->paid_pj) / PJ_PER_UJ);
    a->paid_pj += (__int128)ret->energy_uj * PJ_PER_UJ;
    span_insert(t, s);
}

/* ---- copies ---- */

static struct timing_span place_copy(struct ws_timing *t, enum ws_engine e, uint64_t ready_ns,
                                     uint64_t bytes)
{
    /* inside the device each byte is read and written */
    double per_s = e == WS_ENGINE_INSIDE ? (double)t->spec.memory_bytes_per_s / 2
                                         : (double)t->spec.copy_bytes_per_s;
    uint64_t ns = bytes ? t->spec.copy_latency_ns + (uint64_t)ceil((double)bytes * 1e9 / per_s) : 0;
    uint64_t start = WS_MAX(ready_ns, t->floor_ns);
    for (uint32_t i = spans_after(t, start, (int)e, false, UINT64_MAX);
         i-- > 0;) { /* by end: engine spans do not overlap */
        if (t->near[i]->start_ns >= start + ns)
            break;
        start = WS_MAX(start, t->near[i]->end_ns);
    }
    return (struct timing_span){.start_ns = start, .end_ns = start + ns, .kind = (int)e};
}

void ws_timing_copy(struct ws_timing *t, enum ws_engine e, uint64_t owner, uint64_t ready_ns,
                    uint64_t bytes, struct ws_timed *ret)
{
    lock(t);
    struct timing_span s = place_copy(t, e, ready_ns, bytes);
    enter(t, &s, owner, ret);
    unlock(t);
}

/* ---- the simulation of one kernel ---- */

/* Room on one SM for blocks of this kernel beside what is held there. */
static uint32_t cap_of(const struct ws_gpu_spec *spec, const struct ws_timing_kernel *k,
                       const struct held *h)
{
    const struct ws_need *need = &k->need;
    int64_t cap = WS_MIN((int64_t)k->blocks_per_sm, WS_SMS_BLOCKS);
    cap = WS_MIN(cap, (int64_t)spec->max_blocks_per_sm - h->blocks);
    cap = WS_MIN(cap, ((int64_t)spec->max_threads_per_sm / 32 - h->warps) / WS_MAX(need->warps, 1));
    cap = WS_MIN(cap, ((int64_t)spec->regs_per_sm - h->regs) / WS_MAX(need->regs, 1));
    if (need->shared_bytes)
        cap = WS_MIN(cap,
                     ((int64_t)spec->shared_bytes_per_sm - h->shared_bytes) / need->shared_bytes);
    return cap < 0 ? 0 : (uint32_t)cap;
}

/* How fast the kernel is beside those in the way at @now_ns. */
static double pace_beside(struct ws_timing *t, uint32_t n_near, uint64_t now_ns)
{
    const struct timing_span *s = t->full;
    struct ws_crowd *c = &t->crowd;
    uint64_t mask[MASK_WORDS], mw = s->own_mw;
    memcpy(mask, s->mask, sizeof(mask));
    ws_crowd_init(c, t->spec.n_sms);
    ws_crowd_join(c, s->mask, &s->issue);
    for (uint32_t j = 0; j < n_near; j++) {
        const struct timing_span *o = t->near[j];
        if (!runs(o, now_ns))
            continue;
        mw += o->own_mw;
        join_mask(mask, o->mask);
        ws_crowd_join(c, o->mask, &o->issue);
    }
    mw += ws_power_mw(&t->spec, popcount(mask)) + (uint64_t)llround(ws_crowd_mw(c));
    uint64_t over = over_limit(t, mw);
    return over ? ws_draw_pace(t->sms.k->draw, s->end_ns - s->start_ns, s->n_sms, over) : 1;
}

/* What the kernels in the way leave at @now_ns, on every SM of the set, of the memory, and of the
 * power. Return: when that changes next. */
static uint64_t set_rest(struct ws_timing *t, uint32_t n_near, uint64_t now_ns)
{
    struct ws_sms *m = &t->sms;
    uint64_t next = UINT64_MAX;
    memset(t->held, 0, t->spec.n_sms * sizeof(t->held[0]));
    t->memory_part = 1;
    for (uint32_t j = 0; j < n_near; j++) {
        const struct timing_span *o = t->near[j];
        next = WS_MIN(next, o->start_ns > now_ns ? o->start_ns
                            : o->end_ns > now_ns ? o->end_ns
                                                 : UINT64_MAX);
        if (!runs(o, now_ns))
            continue;
        t->memory_part -= o->memory_part;
        for (int w = 0; w < MASK_WORDS; w++)
            for (uint64_t bits = o->mask[w]; bits; bits &= bits - 1) {
                struct held *h = &t->held[64 * w + __builtin_ctzll(bits)];
                h->part += o->issue_part;
                h->blocks += o->blocks;
                h->warps += (int64_t)o->blocks * o->need.warps;
                h->regs += (int64_t)o->blocks * o->need.regs;
                h->shared_bytes += (int64_t)o->blocks * o->need.shared_bytes;
            }
    }
    t->memory_part = WS_MAX(t->memory_part, WS_PART_MIN);
    t->pace = t->full ? pace_beside(t, n_near, now_ns) : 1;
    for (uint32_t i = 0; i < m->n_sms; i++) {
        const struct held *h = &t->held[m->id[i]];
        m->sm[i].part = 1 - h->part < WS_PART_MIN ? 0 : 1 - h->part;
        m->sm[i].cap = cap_of(&t->spec, m->k, h);
    }
    return next;
}

/* @full: as in struct ws_timing. */
static void sim_init(struct ws_timing *t, const struct ws_timing_kernel *k,
                     const struct timing_span *full)
{
    t->full = full;
    ws_sms_init(&t->sms, k);
    for (uint32_t i = 0; i < t->spec.n_sms; i++)
        if (!k->sms.n || ws_sm_set_has(&k->sms, i))
            ws_sms_add(&t->sms, i);
}

static uint64_t memory_rate(const struct ws_timing *t, const struct ws_timing_kernel *k)
{
    return k->memory_bytes_per_s ? k->memory_bytes_per_s : t->spec.memory_bytes_per_s;
}

/* Runs the simulation from @start_ns; no block is dealt from @cut_ns on. *ret_first_ns: when the
 * first block was dealt, negative if none was. Return: end. */
static double simulate(struct ws_timing *t, uint64_t start_ns, uint64_t cut_ns, uint32_t n_near,
                       double *ret_first_ns)
{
    struct ws_sms *m = &t->sms;
    double now = 0, first = -1,
           per_ns = (double)memory_rate(t, m->k) / 1e9; /* now: ns since start_ns */
    uint64_t edge_ns = set_rest(t, n_near, start_ns);
    ws_sms_deal(m);
    ws_sms_rates(m);
    while (m->done < m->n_blocks) {
        if (first < 0 && m->dealt)
            first = now;
        double demand = m->bytes_rate / (per_ns * t->memory_part), slow = WS_MAX(demand, 1);
        slow /= t->pace;
        uint16_t sm = m->heap[0];
        double next = now + (m->sm[sm].next - m->tau) * slow;
        uint64_t halt_ns = WS_MIN(edge_ns, cut_ns);
        if (halt_ns != UINT64_MAX && !(next <= (double)(halt_ns - start_ns))) {
            double at = (double)(halt_ns - start_ns);
            m->tau += (at - now) / slow;
            now = at;
            if (edge_ns == halt_ns)
                edge_ns = set_rest(t, n_near, edge_ns);
            ws_sms_advance(m);
            if (cut_ns == halt_ns) {
                cut_ns = UINT64_MAX;
                ws_sms_stop(m);
            }
            ws_sms_deal(m);
            ws_sms_rates(m);
            continue;
        }
        if (!isfinite(next)) /* cannot be: with no span in the way one block fits */
            break;
        now = next;
        m->tau = m->sm[sm].next;
        ws_sms_complete(m, sm);
    }
    *ret_first_ns = first;
    return now;
}

/* What a kernel that was simulated, begun at @first_ns and ended at @end_ns after @start_ns, takes
 * of the machine. @left: of each block not run, NULL: none. */
static struct timing_span span_of(const struct ws_timing *t, const struct ws_timing_kernel *k,
                                  uint64_t start_ns, double first_ns, double end_ns,
                                  const double *left)
{
    const struct ws_sms *m = &t->sms;
    struct timing_span s = {.start_ns = start_ns + (uint64_t)WS_MAX(first_ns, 0),
                            .from_ns = start_ns,
                            .kind = KIND_KERNEL,
                            .need = k->need};
    s.end_ns = WS_MAX(start_ns + (uint64_t)ceil(end_ns), s.start_ns + 1);
    double issue = 0, bytes = 0;
    uint64_t n_blocks = 0;
    for (uint64_t b = 0; b < k->n_blocks; b++) {
        double run = left ? 1 - left[b] : 1;
        issue += run * k->blocks[b].issue_ns;
        bytes += run * k->blocks[b].bytes * k->dram_share;
        n_blocks += run > 0;
    }
    uint32_t n_used = 0;
    for (uint32_t i = 0; i < m->n_sms; i++)
        if (m->sm[i].used) {
            s.mask[m->id[i] / 64] |= UINT64_C(1) << (m->id[i] % 64);
            n_used++;
        }
    double ns = (double)(s.end_ns - s.start_ns);
    s.issue_part = n_used ? (float)WS_MIN(issue / n_used / ns, 1) : 0;
    s.memory_part = (float)WS_MIN(bytes * 1e9 / (double)memory_rate(t, k) / ns, 1);
    s.blocks =
        n_used ? (uint32_t)WS_MIN((uint64_t)k->blocks_per_sm, (n_blocks + n_used - 1) / n_used) : 0;
    s.n_sms = n_used;
    s.own_mw = k->draw ? ws_draw_mw(k->draw, s.end_ns - s.start_ns, n_used, &s.issue) : k->own_mw;
    return s;
}

/* Takes over of @old what @s draws at its full clock. */
static void draw_as(struct timing_span *s, const struct timing_span *old)
{
    s->own_mw = old->own_mw;
    s->issue = old->issue;
    s->yields = old->yields;
}

static struct timing_span place_at(struct ws_timing *t, const struct ws_timing_kernel *k,
                                   uint64_t start, uint32_t n_near, const struct timing_span *full)
{
    sim_init(t, k, full);
    double first = 0, end = 0;
    if (!n_near && !full && k->n_blocks == 1) {
        end = WS_MAX(k->blocks[0].latency_ns, k->blocks[0].issue_ns);
        end = WS_MAX(end, k->blocks[0].bytes * k->dram_share * 1e9 / (double)memory_rate(t, k));
        t->sms.sm[0].used = true;
    } else {
        end = simulate(t, start, UINT64_MAX, n_near, &first);
    }
    return span_of(t, k, start, first, end, NULL);
}

/* Whether @s might draw more than the limit with the first @n_near of near: if all ran at once. */
static bool may_exceed(const struct ws_timing *t, const struct timing_span *s, uint32_t n_near)
{
    double mw = s->own_mw + ws_issue_mw(&s->issue, s->n_sms);
    uint64_t mask[MASK_WORDS];
    memcpy(mask, s->mask, sizeof(mask));
    for (uint32_t i = 0; i < n_near; i++) {
        const struct timing_span *o = t->near[i];
        if (o->start_ns >= s->end_ns || o->end_ns <= s->start_ns)
            continue;
        mw += o->own_mw + ws_issue_mw(&o->issue, o->n_sms);
        join_mask(mask, o->mask);
    }
    return mw + (double)ws_power_mw(&t->spec, popcount(mask)) > (double)t->most_mw;
}

static struct timing_span place_kernel(struct ws_timing *t, const struct ws_timing_kernel *k)
{
    uint64_t start = WS_MAX(k->ready_ns, t->floor_ns) + t->spec.launch_overhead_ns;
    uint32_t n_near = spans_after(t, start, KIND_KERNEL, false, UINT64_MAX);
    struct timing_span full = place_at(t, k, start, n_near, NULL), s = full;
    full.yields = k->draw && may_exceed(t, &full, n_near);
    if (full.yields) {
        s = place_at(t, k, start, n_near, &full);
        draw_as(&s, &full);
    }
    return s;
}

void ws_timing_kernel(struct ws_timing *t, const struct ws_timing_kernel *k, struct ws_timed *ret)
{
    lock(t);
    struct timing_span s = place_kernel(t, k);
    enter(t, &s, k->owner, ret);
    unlock(t);
}

/* ---- reservations ---- */

/* Whether the span that ended first can be forgotten: it is over, and nothing that is not began
 * while it ran. */
static bool first_is_past(const struct ws_timing *t)
{
    const struct timing_span *first = &t->spans[t->head];
    if (first->held)
        return false;
    for (uint32_t i = 0, left = t->n_held; left && i < t->n; i++) {
        const struct timing_span *s = &t->spans[(t->head + i) & (t->cap - 1)];
        if (s->held && s->from_ns < first->end_ns)
            return false;
        left -= s->held;
    }
    return true;
}

static int make_room(struct ws_timing *t)
{
    if (t->n < t->cap)
        return 0;
    if (first_is_past(t)) {
        span_drop_first(t);
        return 0;
    }
    struct timing_span *spans = ws_alloc_array(2 * (size_t)t->cap, sizeof(spans[0]));
    const struct timing_span **near = ws_alloc_array(2 * (size_t)t->cap, sizeof(near[0]));
    if (!spans || !near) {
        free(spans);
        free(near);
        return ws_raise(-ENOMEM);
    }
    for (uint32_t i = 0; i < t->n; i++)
        spans[i] = *span_at(t, i);
    free(t->spans);
    free(t->near);
    t->spans = spans;
    t->near = near;
    t->head = 0;
    t->cap *= 2;
    return 0;
}

static struct ws_reserved reserved_of(const struct timing_span *s)
{
    struct ws_reserved r = {.id = s->seq,
                            .start_ns = s->start_ns,
                            .end_ns = s->end_ns,
                            .own_mw = s->own_mw,
                            .issue = s->issue};
    memcpy(r.sms.bits, s->mask, sizeof(s->mask));
    r.sms.n = popcount(s->mask);
    return r;
}

static void hold(struct ws_timing *t, struct timing_span *s)
{
    s->seq = ++t->seq;
    s->held = true;
    t->n_held++;
    span_insert(t, s);
}

int ws_timing_reserve_kernel(struct ws_timing *t, const struct ws_timing_kernel *k,
                             struct ws_reserved *ret)
{
    lock(t);
    int r = make_room(t);
    if (!r) {
        struct timing_span s = place_kernel(t, k);
        hold(t, &s);
        *ret = reserved_of(&s);
    }
    unlock(t);
    return r;
}

int ws_timing_reserve_copy(struct ws_timing *t, enum ws_engine e, uint64_t ready_ns, uint64_t bytes,
                           struct ws_reserved *ret)
{
    lock(t);
    int r = make_room(t);
    if (!r) {
        struct timing_span s = place_copy(t, e, ready_ns, bytes);
        if (s.end_ns > s.start_ns)
            hold(t, &s);
        *ret = reserved_of(&s);
    }
    unlock(t);
    return r;
}

/* Takes a reservation out of the ring. */
static struct timing_span take_out(struct ws_timing *t, uint64_t id)
{
    uint32_t i = t->n;
    while (i-- > 0 && span_at(t, i)->seq != id)
        ;
    struct timing_span s = *span_at(t, i);
    for (t->n--; i < t->n; i++)
        *span_at(t, i) = *span_at(t, i + 1);
    return s;
}

void ws_timing_cut(struct ws_timing *t, const struct ws_timing_kernel *k, uint64_t at_ns,
                   struct ws_reserved *r, double *ret_left)
{
    lock(t);
    struct timing_span old = take_out(t, r->id), s;
    double first = -1, end = 0;
    memset(ret_left, 0, k->n_blocks * sizeof(ret_left[0]));
    sim_init(t, k, old.yields ? &old : NULL);
    if (at_ns > old.from_ns) {
        t->sms.left = ret_left;
        uint32_t n_near = spans_after(t, old.from_ns, KIND_KERNEL, false, old.seq);
        end = simulate(t, old.from_ns, at_ns, n_near, &first);
        t->sms.left = NULL;
    }
    if (first >= 0) {
        s = span_of(t, k, old.from_ns, first, end, ret_left);
        s.end_ns = WS_MAX(s.end_ns, at_ns);
    } else { /* not begun */
        for (uint64_t b = 0; b < k->n_blocks; b++)
            ret_left[b] = 1;
        s = old;
        memset(s.mask, 0, sizeof(s.mask));
        s.start_ns = s.end_ns = at_ns;
        s.blocks = 0;
        s.issue_part = s.memory_part = 0;
        s.n_sms = 0;
    }
    draw_as(&s, &old);
    s.seq = old.seq;
    s.held = true;
    span_insert(t, &s);
    *r = reserved_of(&s);
    unlock(t);
}

void ws_timing_break(struct ws_timing *t, uint64_t at_ns, struct ws_reserved *r)
{
    if (!r->id || r->end_ns <= at_ns)
        return;
    lock(t);
    struct timing_span s = take_out(t, r->id);
    s.end_ns = at_ns;
    s.start_ns = WS_MIN(s.start_ns, at_ns);
    span_insert(t, &s);
    *r = reserved_of(&s);
    unlock(t);
}

void ws_timing_release(struct ws_timing *t, const struct ws_reserved *r)
{
    if (!r->id)
        return;
    lock(t);
    for (uint32_t i = t->n; i-- > 0;)
        if (span_at(t, i)->seq == r->id) {
            span_at(t, i)->held = false;
            t->n_held--;
            break;
        }
    unlock(t);
}

void ws_timing_set_spec(struct ws_timing *t, const struct ws_gpu_spec *spec)
{
    lock(t);
    t->spec = *spec;
    unlock(t);
}

void ws_timing_spec(struct ws_timing *t, struct ws_gpu_spec *ret)
{
    lock(t);
    *ret = t->spec;
    unlock(t);
}

void ws_timing_totals(struct ws_timing *t, struct ws_timing_totals *ret)
{
    lock(t);
    __int128 stored_pj = t->forgotten_pj;
    for (uint32_t i = 0; i < N_ACCOUNTS && t->accounts[i].last; i++)
        stored_pj += t->accounts[i].paid_pj - t->accounts[i].due_pj;
    *ret = (struct ws_timing_totals){
        .stored_uj = (int64_t)(stored_pj / PJ_PER_UJ),
        .now_ns = ws_timing_now_ns(t),
        .busy_ns = t->busy_ns,
        .sm_busy_ns = t->sm_busy_ns,
        .energy_uj = (uint64_t)(t->energy_pj / PJ_PER_UJ),
        .power_mw = t->power_mw,
    };
    unlock(t);
}
