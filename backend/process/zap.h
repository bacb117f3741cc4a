// SPDX-License-Identifier: Apache-2.0
/* backend/process/zap.h - who may connect over tcp (ZAP, rfc.zeromq.org/spec/27): those whose
 * keys are in the list of allowed keys. libzmq asks over a socket inside the process, and is
 * answered here. Threads: the loop. */
#ifndef WS_BACKEND_PROCESS_ZAP_H
#define WS_BACKEND_PROCESS_ZAP_H

#include "backend/config/access.h"

#define WS_ZAP_DOMAIN "wattshare"
/* What a message that came over tcp is asked for (zmq_msg_gets()): the user's number. */
#define WS_ZAP_USER "User-Id"

/* The socket that answers; before any endpoint is bound. NULL: errno. */
void *ws_zap_open(void *zmq);
/* Answers all that is asked. */
void ws_zap_answer(void *socket, const struct ws_access *access);
/* Makes @router take only clients with a key, by the daemon's @keys. Return: 0 or negative
 * errno. */
WS_MUST_CHECK int ws_zap_guard(void *router, const struct ws_curve_keys *keys);

#endif
