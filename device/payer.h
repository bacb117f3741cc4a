/* SPDX-License-Identifier: Apache-2.0 */
/* device/payer.h - for whom threads work that know nothing of clients and accounts.
 *
 * A payer stands for a user of the machine. What a thread does for that user is added to it, and
 * the user's account reads it from there. Whoever has work of several payers serves the one whose
 * turn is the longest ago.
 *
 * Blocks of kernels that run take memory of this process: registers, local and shared memory. All
 * payers share one pool for it, by the same rule as accounts (backend/accounts/account.h). A payer
 * that is refused has to wait until some of what it holds itself comes back. If it holds nothing,
 * it would wait in vain, so what it wanted to run has to fail. The first WS_PAYER_FLOOR bytes are
 * never refused, so that ordinary kernels run whatever the others hold.
 *
 * Launches take memory too: records of what their blocks have cost. They last until the launch has
 * ended, so nobody may wait for them. A payer may have a quarter of what it may have for blocks,
 * beside that. A launch for which there is no more fails, and one for which there is little keeps
 * fewer records, each of more blocks. Threads: any. */
#ifndef WS_DEVICE_PAYER_H
#define WS_DEVICE_PAYER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/macros.h"

struct ws_payer {
    _Atomic uint32_t n_refs;
    _Atomic uint64_t work_ns; /* processor time of what was done for the user */
    /* Of the one queue that uses payers, under its lock. */
    uint64_t turn; /* its last one; 0: it had none */
    uint32_t n_queued;
    /* Of soft/sched, under its lock: its tenants that have work, and its place among the payers
     * that have such. */
    struct ws_list tenants, in_ring;
    /* Under the lock of payer.c. */
    uint64_t for_blocks, for_records; /* bytes */
    uint64_t limit, n_refused;        /* limit: of its own; 0: none */
    /* Who waits for what the payer holds, counted by them (soft/sched/feed.c). */
    _Atomic uint32_t n_waiting;
};

/* One reference, the caller's. NULL: no memory. */
struct ws_payer *ws_payer_new(void);
struct ws_payer *ws_payer_ref(struct ws_payer *p);   /* NULL ok */
struct ws_payer *ws_payer_unref(struct ws_payer *p); /* NULL ok; returns NULL */
/* @p, or who pays for launches that are no single user's: the daemon itself. */
struct ws_payer *ws_payer_or_own(struct ws_payer *p);

/* What one may hold of @pool if @n_others hold @others of it: 1/(n + 2) of what is left, rounded
 * up. */
static inline uint64_t ws_payer_share(uint64_t pool, uint64_t others, uint64_t n_others)
{
    uint64_t left = pool > others ? pool - others : 0, parts = n_others + 2;
    return left / parts + (left % parts != 0);
}

enum { WS_PAYER_E_LATER = 1, WS_PAYER_FLOOR = 8 << 20 };
/* Takes @n bytes for a block. Return: 0; WS_PAYER_E_LATER: nothing was taken, and @p holds
 * something for other blocks; -ENOMEM: nothing was taken, and @p holds nothing for blocks. */
WS_MUST_CHECK int ws_payer_take(struct ws_payer *p, uint64_t n);
void ws_payer_give(struct ws_payer *p, uint64_t n); /* taken before */

/* What was taken for records, by whoever has them now. All zero: nothing. */
struct ws_bill {
    struct ws_payer *payer; /* reference */
    uint64_t bytes;
};
enum { WS_PAYER_RECORDS_PART = 4, WS_PAYER_GRANT_PART = 16 };
/* Takes @needed bytes, and of @wanted more as many as are no more than 1/16 of what is left then.
 * Return: false: @p may not have what is needed, and nothing was taken. */
WS_MUST_CHECK bool ws_bill_take(struct ws_bill *b, struct ws_payer *p, uint64_t needed,
                                uint64_t wanted);
void ws_bill_give(struct ws_bill *b); /* all of it; @b is zero then */

uint64_t ws_payer_held(const struct ws_payer *p); /* for blocks and records */
uint64_t ws_payer_held_for_blocks(const struct ws_payer *p);
uint64_t ws_payer_may_hold(const struct ws_payer *p);   /* for blocks, what it holds included */
uint64_t ws_payer_may_record(const struct ws_payer *p); /* the same for records */
uint64_t ws_payer_n_refused(const struct ws_payer *p);
void ws_payer_set_limit(struct ws_payer *p, uint64_t bytes); /* 0: none of its own */
/* The pool of all payers; UINT64_MAX, as it is at first: nobody is refused. */
void ws_payers_set_pool(uint64_t bytes);
uint64_t ws_payers_pool(void);
uint64_t ws_payers_held(void);

#endif
