// SPDX-License-Identifier: Apache-2.0
/* device/soft/exec/async.c - mbarriers, and copies that PTX lets complete later.
 *
 * A copy is done at once, which PTX allows; so waiting for groups of copies has nothing to wait
 * for, and what a copy would tell an mbarrier when it completes is told right behind it.
 *
 * The 64 bits of an mbarrier are opaque to programs. Ours, from below: expected arrivals (20 bits),
 * pending arrivals (20), bytes expected but not there yet (23, signed), parity of the phase (1).
 * The phase completes when nothing is pending and no bytes are missing. A state, as arriving
 * returns it, is the mbarrier's bits before; it tells the phase, which has completed as soon as the
 * mbarrier's parity is another. The threads of a cluster's blocks run on one host thread at a time:
 * nothing here is atomic. */
#include "device/soft/exec/async.h"

#include <string.h>

#include "device/soft/decode/lane.h"
#include "device/soft/exec/shared.h"
#include "device/soft/exec/tensor.h"

#define COUNT_MAX ((UINT32_C(1) << 20) - 1)

struct mbarrier {
    uint32_t expected, pending, parity;
    int32_t missing;
};

static struct mbarrier unpack(uint64_t v)
{
    return (struct mbarrier){.expected = v & COUNT_MAX,
                             .pending = v >> 20 & COUNT_MAX,
                             .missing = (int32_t)((int64_t)(v << 1) >> 41),
                             .parity = (uint32_t)(v >> 63)};
}

static uint64_t pack(const struct mbarrier *b)
{
    return (uint64_t)b->parity << 63 | ((uint64_t)b->missing & 0x7fffff) << 40 |
           (uint64_t)b->pending << 20 | b->expected;
}

static void settle(const struct ws_core_ctx *c, struct mbarrier *b)
{
    if (b->pending || b->missing)
        return;
    b->parity ^= 1;
    b->pending = b->expected;
    c->b->cluster->n_opened++;
}

uint64_t ws_async_address(const struct ws_core_ctx *c, const struct ws_async_place *p,
                          unsigned lane)
{
    uint64_t va = 0;
    memcpy(&va, c->regs + p->row + lane * (p->a32 ? 4 : 8), p->a32 ? 4 : 8);
    va += (uint64_t)p->offset;
    if (p->moved)
        va = ws_exec_to_rank(c, va, p->rank);
    return p->a32 ? (uint32_t)va : va;
}

uint32_t ws_async_word(const struct ws_core_ctx *c, uint32_t row, unsigned lane, uint32_t otherwise)
{
    uint32_t v = otherwise;
    if (row)
        memcpy(&v, c->regs + row + lane * 4, 4);
    return v;
}

static bool fault(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane, uint64_t va,
                  enum ws_dev_error e, const char *what)
{
    ws_exec_fault(c, u, e, lane, va, what);
    return false;
}

uint8_t *ws_async_at(struct ws_core_ctx *c, const struct ws_uop *u, unsigned lane,
                     const struct ws_async_place *p, uint64_t bytes, uint64_t align, bool store)
{
    uint64_t va = ws_async_address(c, p, lane);
    if (va & (align - 1)) { /* a power of two */
        fault(c, u, lane, va, WS_DEV_E_MISALIGNED, NULL);
        return NULL;
    }
    return ws_exec_lane_ptr(c, u, lane, p->space, va, bytes, store);
}

static bool arrive(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                   unsigned lane, struct mbarrier *b)
{
    uint32_t n = ws_async_word(c, o->count, lane, 1);
    b->missing += (int32_t)ws_async_word(c, o->tx, lane, 0);
    if (n > b->pending || (o->what == WS_MBAR_ARRIVE_DROP && n > b->expected))
        return fault(c, u, lane, ws_async_address(c, &o->mbar, lane), WS_DEV_E_ILLEGAL_INSTRUCTION,
                     "more arrivals than the mbarrier waits for");
    if (o->what == WS_MBAR_ARRIVE_DROP)
        b->expected -= n;
    b->pending -= n;
    settle(c, b);
    return true;
}

/* One lane's step of one mbarrier. */
static bool step(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                 unsigned lane, struct mbarrier *b)
{
    uint32_t n = ws_async_word(c, o->count, lane, 0);
    switch (o->what) {
    case WS_MBAR_INIT:
        if (!n || n > COUNT_MAX)
            return fault(c, u, lane, n, WS_DEV_E_ILLEGAL_INSTRUCTION,
                         "count of an mbarrier is not 1 to 1048575");
        *b = (struct mbarrier){.expected = n, .pending = n};
        return true;
    case WS_MBAR_INVAL:
        *b = (struct mbarrier){0};
        return true;
    case WS_MBAR_EXPECT:
        b->missing += (int32_t)n;
        settle(c, b);
        return true;
    case WS_MBAR_COMPLETE:
        b->missing -= (int32_t)n;
        settle(c, b);
        return true;
    case WS_MBAR_COPIES: /* one arrival more, which comes at once */
        return true;
    case WS_MBAR_COPIES_NOINC:
    default:
        return arrive(c, u, o, lane, b);
    }
}

static bool mbarrier_lane(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                          unsigned lane, bool *ret_waits)
{
    uint64_t v;
    uint8_t *p = ws_async_at(c, u, lane, &o->mbar, 8, 8, true);
    if (!p)
        return false;
    memcpy(&v, p, 8);
    struct mbarrier b = unpack(v);
    if (o->what == WS_MBAR_TEST || o->what == WS_MBAR_TEST_PARITY) {
        uint64_t state = 0;
        uint32_t *d = (uint32_t *)(void *)(c->regs + o->d), parity;
        if (o->what == WS_MBAR_TEST) {
            memcpy(&state, c->regs + o->state + lane * 8, 8);
            parity = (uint32_t)(state >> 63);
        } else {
            parity = ws_async_word(c, o->count, lane, 0) & 1;
        }
        bool done = b.parity != parity;
        *d = (*d & ~(1u << lane)) | (uint32_t)done << lane;
        *ret_waits |= !done;
        return true;
    }
    if (!step(c, u, o, lane, &b))
        return false;
    if (o->d)
        memcpy(c->regs + o->d + lane * 8, &v, 8);
    v = pack(&b);
    memcpy(p, &v, 8);
    return true;
}

/* From @src what there is of it, the rest zeros. */
static bool copy_lane(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                      unsigned lane)
{
    uint32_t n = o->size_bytes, have = ws_async_word(c, o->src_bytes, lane, n);
    if (o->ignore) {
        uint32_t word_of;
        memcpy(&word_of, c->regs + o->ignore, 4);
        if ((word_of >> lane & 1) != o->ignore_neg)
            have = 0;
    }
    have = have < n ? have : n;
    uint8_t *to = ws_async_at(c, u, lane, &o->dst, n, n, true);
    const uint8_t *from = to && have ? ws_async_at(c, u, lane, &o->src, have, 1, false) : NULL;
    if (!to || (have && !from))
        return false;
    if (have)
        memmove(to, from, have);
    memset(to + have, 0, n - have);
    c->work->n_global_loads++;
    c->work->n_load_sectors++;
    return true;
}

static uint64_t reduced(const struct ws_asyncop *o, uint64_t old, uint64_t v)
{
    bool is_signed = o->type == WS_T_S32 || o->type == WS_T_S64;
    bool wide = ws_ptx_type_bytes((enum ws_ptx_type)o->type) == 8, bf = o->type == WS_T_BF16;
    int64_t a = wide ? (int64_t)old : (int32_t)old, b = wide ? (int64_t)v : (int32_t)v;
    bool below = is_signed ? b < a : v < old;
    float fa, fb;
    double da, db;
    if (bf || o->type == WS_T_F16)
        return ws_lane_half(old, v, 0,
                            (o->op == WS_SUB_ADD   ? WS_HALF_ADD
                             : o->op == WS_SUB_MIN ? WS_HALF_MIN
                                                   : WS_HALF_MAX) |
                                (bf ? WS_HALF_BF16 : 0));
    switch (o->type) {
    case WS_T_F32:
        memcpy(&fa, &old, 4);
        memcpy(&fb, &v, 4);
        fa += fb;
        memcpy(&old, &fa, 4);
        return old;
    case WS_T_F64:
        memcpy(&da, &old, 8);
        memcpy(&db, &v, 8);
        da += db;
        memcpy(&old, &da, 8);
        return old;
    default:
        break;
    }
    switch (o->op) {
    case WS_SUB_ADD:
        return old + v;
    case WS_SUB_AND:
        return old & v;
    case WS_SUB_OR:
        return old | v;
    case WS_SUB_XOR:
        return old ^ v;
    case WS_SUB_INC:
        return old >= v ? 0 : old + 1;
    case WS_SUB_DEC:
        return old == 0 || old > v ? v : old - 1;
    case WS_SUB_MIN:
        return below ? v : old;
    default:
        return below ? old : v;
    }
}

#define REDUCE_INTO(T)                                                                             \
    do {                                                                                           \
        T *p = (T *)(void *)to, old = __atomic_load_n(p, __ATOMIC_RELAXED), v;                     \
        memcpy(&v, from, sizeof(v));                                                               \
        while (!__atomic_compare_exchange_n(p, &old, (T)reduced(o, old, v), true,                  \
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))                   \
            ;                                                                                      \
    } while (0)

void ws_async_reduce(const struct ws_asyncop *o, uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    uint32_t each = ws_ptx_type_bytes((enum ws_ptx_type)o->type);
    for (uint32_t k = 0; k < bytes; k += each, to += each, from += each)
        if (each == 2)
            REDUCE_INTO(uint16_t);
        else if (each == 4)
            REDUCE_INTO(uint32_t);
        else
            REDUCE_INTO(uint64_t);
}

bool ws_async_tell(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                   unsigned lane, uint32_t bytes)
{
    uint64_t v;
    if (!o->mbar.row)
        return true;
    uint8_t *p = ws_async_at(c, u, lane, &o->mbar, 8, 8, true);
    if (!p)
        return false;
    memcpy(&v, p, 8);
    struct mbarrier b = unpack(v);
    b.missing -= (int32_t)bytes;
    settle(c, &b);
    v = pack(&b);
    memcpy(p, &v, 8);
    return true;
}

static bool bulk_lane(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                      unsigned lane)
{
    uint32_t n = ws_async_word(c, o->bytes, lane, 0);
    if (n % 16)
        return fault(c, u, lane, n, WS_DEV_E_MISALIGNED,
                     "size of a bulk copy is no multiple of 16");
    if (n) {
        uint8_t *to = ws_async_at(c, u, lane, &o->dst, n, 16, true);
        const uint8_t *from = to ? ws_async_at(c, u, lane, &o->src, n, 16, false) : NULL;
        if (!from)
            return false;
        if (o->what == WS_ASYNC_REDUCE)
            ws_async_reduce(o, to, from, n);
        else
            memmove(to, from, n);
        c->work->n_global_loads++;
        c->work->n_load_sectors += n / 32;
    }
    return ws_async_tell(c, u, o, lane, n);
}

/* Return: false if the kernel was faulted. */
static bool one_lane(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                     unsigned lane, bool *ret_waits)
{
    uint64_t state;
    switch (o->what) {
    case WS_MBAR_PENDING:
        memcpy(&state, c->regs + o->state + lane * 8, 8);
        memcpy(c->regs + o->d + lane * 4, &(uint32_t){unpack(state).pending}, 4);
        return true;
    case WS_ASYNC_COPY:
        return copy_lane(c, u, o, lane);
    case WS_ASYNC_BULK:
    case WS_ASYNC_REDUCE:
        return bulk_lane(c, u, o, lane);
    case WS_TENSOR_LOAD:
    case WS_TENSOR_STORE:
    case WS_TENSOR_REDUCE:
        return ws_exec_tensor(c, u, o, lane);
    case WS_TENSOR_MAP_REPLACE:
    case WS_TENSOR_MAP_COPY:
        return ws_exec_tensor_map(c, u, o, lane);
    default:
        return mbarrier_lane(c, u, o, lane, ret_waits);
    }
}

struct ws_asyncop ws_async_for_rank(const struct ws_asyncop *o, uint32_t rank)
{
    struct ws_asyncop one = *o;
    one.mask = 0;
    one.dst.moved = one.mbar.moved = true;
    one.dst.rank = one.mbar.rank = (uint8_t)rank;
    return one;
}

uint32_t ws_async_ranks(const struct ws_core_ctx *c, const struct ws_asyncop *o, unsigned lane)
{
    uint16_t ranks;
    memcpy(&ranks, c->regs + o->mask + lane * sizeof(ranks), sizeof(ranks));
    return ranks;
}

/* The same to several blocks of the cluster, each of which finds it, and is told of it, at the same
 * place. */
static bool multicast(struct ws_core_ctx *c, const struct ws_uop *u, const struct ws_asyncop *o,
                      unsigned lane, bool *ret_waits)
{
    for (uint32_t m = ws_async_ranks(c, o, lane); m; m &= m - 1) {
        struct ws_asyncop one = ws_async_for_rank(o, (uint32_t)__builtin_ctz(m));
        if (!one_lane(c, u, &one, lane, ret_waits))
            return false;
    }
    return true;
}

bool ws_exec_async(struct ws_core_ctx *c, const struct ws_uop *u, uint32_t lanes, bool *ret_waits)
{
    const struct ws_asyncop *o = (const struct ws_asyncop *)(uintptr_t)u->imm;
    for (uint32_t m = lanes; m; m &= m - 1)
        if (!(o->mask ? multicast : one_lane)(c, u, o, (unsigned)__builtin_ctz(m), ret_waits))
            return false;
    c->work->n_shared_accesses++;
    c->work->n_shared_transactions++;
    return true;
}
