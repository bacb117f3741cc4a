/* SPDX-License-Identifier: Apache-2.0 */
/* device/payer.h - for whom threads work that know nothing of clients and accounts.
 *
 * A payer stands for a user of the machine. What a thread does for that user is added to it, and
 * the user's account reads it from there. Whoever has work of several payers serves the one whose
 * turn is the longest ago. Threads: any. */
#ifndef WS_DEVICE_PAYER_H
#define WS_DEVICE_PAYER_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/macros.h"

struct ws_payer {
    _Atomic uint32_t n_refs;
    _Atomic uint64_t work_ns; /* processor time of what was done for the user */
    /* Of the one queue that uses payers, under its lock. */
    uint64_t turn; /* its last one; 0: it had none */
    uint32_t n_queued;
};

/* One reference, the caller's. NULL: no memory. */
struct ws_payer *ws_payer_new(void);
struct ws_payer *ws_payer_ref(struct ws_payer *p);   /* NULL ok */
struct ws_payer *ws_payer_unref(struct ws_payer *p); /* NULL ok; returns NULL */

#endif
