// SPDX-License-Identifier: Apache-2.0
/* backend/sdnotify.h - tells the service manager how we are (sd_notify(3): one datagram to NOTIFY_SOCKET). */
#ifndef WS_BACKEND_SDNOTIFY_H
#define WS_BACKEND_SDNOTIFY_H

/* @state: "READY=1", "STOPPING=1", …; without NOTIFY_SOCKET nothing happens. */
void ws_sd_notify(const char *state);

#endif
