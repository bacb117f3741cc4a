// SPDX-License-Identifier: Apache-2.0
/* backend/process/notify.h - tells the service manager how we are (sd_notify(3), the protocol,
 * without the library). Nothing happens without NOTIFY_SOCKET. Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_NOTIFY_H
#define WS_BACKEND_PROCESS_NOTIFY_H

#include <stdint.h>

/* @state: "READY=1", "STOPPING=1"; several assignments are parted by newlines. */
void ws_notify(const char *state);
/* RELOADING=1 with the clock that the manager wants to see; READY=1 ends it. */
void ws_notify_reloading(void);
/* How often WATCHDOG=1 is to be said: half of what the manager waits (WATCHDOG_USEC, if it is
 * meant for this process).
 * Return: ns, 0: it does not watch. */
uint64_t ws_notify_watchdog_ns(void);

#endif
