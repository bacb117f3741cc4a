// SPDX-License-Identifier: Apache-2.0
/* backend/client/ledger.h - how often which thing was answered "not supported", for the status.
 * Names come from clients: their number and length are bounded, what goes beyond is counted as
 * "others". Threads: daemon loop. */
#ifndef WS_BACKEND_CLIENT_LEDGER_H
#define WS_BACKEND_CLIENT_LEDGER_H

#include <stdint.h>
#include "base/arena.h"
#include "protocol/protocol.h"

enum { WS_LEDGER_NAME_MAX = 160, WS_LEDGER_CLIENT_MAX = 64, WS_LEDGER_SERVER_MAX = 512 };

struct ws_ledger {
    struct ws_ledger_row *rows; /* in the order of their first use */
    size_t n, cap;
    uint64_t n_others;
};

void ws_ledger_add(struct ws_ledger *l, size_t max_rows, const char *name, uint64_t count);
uint64_t ws_ledger_total(const struct ws_ledger *l);
void ws_ledger_deinit(struct ws_ledger *l);
/* Rows as messages in @a, with the names still in the ledger. *ret is NULL and *ret_n 0 if there
 * are none, or no memory. */
void ws_ledger_message(const struct ws_ledger *l, struct ws_arena *a, Ws__NotSupported ***ret,
                       size_t *ret_n);

#endif
