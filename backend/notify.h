// SPDX-License-Identifier: Apache-2.0
/* backend/notify.h - tells the service manager how we are (sd_notify(3), the protocol, without the library).
 * @state: "READY=1", "STOPPING=1". Nothing happens without NOTIFY_SOCKET. Threads: any. */
#ifndef WS_BACKEND_NOTIFY_H
#define WS_BACKEND_NOTIFY_H
void ws_notify(const char *state);
#endif
