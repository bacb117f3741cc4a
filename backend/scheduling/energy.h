// SPDX-License-Identifier: Apache-2.0
/* backend/scheduling/energy.h - which client took how much of a GPU's energy. Every uJ that the
 * GPU's counter has counted is on exactly one account. For each GPU, at every moment:
 *
 *     the accounts of all connected clients (busy and idle)
 *   + the account of all former clients
 *   + the account of the system (idle energy while nobody was connected)
 *   + what is under way (counted, but no operation has reported it yet)
 *   = the counter.
 *
 * Threads: the loop's, but for ws_energy_charge(). */
#ifndef WS_BACKEND_SCHEDULING_ENERGY_H
#define WS_BACKEND_SCHEDULING_ENERGY_H

#include <stdint.h>
#include "backend/process/config.h"
#include "base/macros.h"

struct ws_client;
struct ws_energy_log;
struct ws_server;

struct ws_energy_of {              /* one client on one GPU */
    _Atomic uint64_t charged_uj;   /* by its operations, as the device reported them; only grows */
    uint64_t taken_uj, pending_uj; /* of that: seen; and not yet matched by the counter */
    uint64_t busy_uj, idle_uj;     /* its account */
    uint32_t fraction;             /* of a uJ of idle energy, in 2^-32: not yet in it */
};
struct ws_energy { /* of a client */
    struct ws_energy_of gpu[WS_MAX_GPUS_CONFIGURED];
};
struct ws_energy_sum {
    uint64_t busy_uj, idle_uj;
};

struct ws_gpu_energy {
    uint64_t raw_uj, raw_idle_uj;  /* as the device said last */
    uint64_t counter_uj, idle_uj;  /* since the daemon's start; idle: part of it */
    uint64_t unmatched_uj;         /* counted, and no operation has reported it yet */
    uint64_t carry_uj;             /* idle, in the clients' fractions of a uJ */
    uint64_t system_uj, former_uj; /* idle with nobody there; accounts of clients that are gone */
    /* What these were charged and the counter has not matched; 0 where the counter does not lag. */
    uint64_t former_pending_uj;
    uint64_t quiet_since_ns; /* host time; nothing has been under way since; 0: something is */
};
static inline uint64_t ws_gpu_energy_under_way(const struct ws_gpu_energy *g)
{
    return g->unmatched_uj + g->carry_uj;
}

/* An operation of @c's on GPU @gpu has reported @uj. Any thread that has the operation. */
void ws_energy_charge(struct ws_client *c, uint32_t gpu, uint64_t uj);
/* Reads all counters and brings the accounts up to date: before clients come or go, before
 * anybody looks. */
void ws_energy_settle(struct ws_server *s);
struct ws_energy_sum ws_energy_of_client(const struct ws_client *c);
/* The client is freed: its account goes to the former ones, as ws_energy_settle() left it. There
 * must be no other ws_energy_settle() since its account was read for the last time, or its job
 * would miss what that adds. */
void ws_energy_forget(struct ws_client *c);

/* The log: conf "energy_log". Return: 0; NULL in *ret if there is none; negative errno of the
 * file. */
WS_MUST_CHECK int ws_energy_log_open(struct ws_energy_log **ret, const struct ws_config *c);
void ws_energy_log_close(struct ws_energy_log *l,
                         struct ws_server *s); /* with a last entry; NULL ok */
/* Writes an entry when it is time. Return: ms until the next; -1: there is no log. */
int ws_energy_log_turn(struct ws_energy_log *l, struct ws_server *s);

#endif
