/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/monitor.h - what a monitor shows of a GPU: figures in the host's time, from one status
 * of the daemon or two. NVML (frontend/nvml) and `wattshare smi` show the same.
 *
 * A software GPU whose clock does not pass by itself (clock = functional, skip) has spent energy on
 * its work only; with clock = scaled its clock stands still while the host executes a kernel. A
 * monitor takes power times its own time for energy, so here the GPU takes idle power in all time
 * of the host that the GPU's own clock has not counted. Energy is then the integral of power.
 * Threads: any; the functions keep nothing. */
#ifndef WS_PROTOCOL_MONITOR_H
#define WS_PROTOCOL_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include "protocol/protocol.h"

/* A GPU in two statuses of one daemon. @was, @before: the earlier; NULL: there is none. */
struct ws_monitored {
    const Ws__StatusReply *status, *was;
    const Ws__GpuStatus *now, *before;
};

/* Since the daemon's start, in uJ: of a real GPU what it counts. Grows with time. */
uint64_t ws_monitor_energy_uj(const Ws__StatusReply *s, const Ws__GpuStatus *g);
/* In mW: of a software GPU the mean between the two statuses, and idle power without an earlier
 * one; of a real GPU what it says now. */
uint32_t ws_monitor_power_mw(const struct ws_monitored *m);
/* Mean share of the GPU's own time in which it computed, in %; without an earlier status 0. */
unsigned ws_monitor_busy_percent(const struct ws_monitored *m);
/* What clients' copies took over the link to the host, in bytes a second of the host's time;
 * without an earlier status 0. @out: to the host. */
uint64_t ws_monitor_link_bytes_per_s(const struct ws_monitored *m, bool out);

#endif
