// SPDX-License-Identifier: Apache-2.0
/* backend/process/endpoint.h - the sockets that listen at the configuration's endpoints over tcp.
 * Threads: the loop, before it serves. */
#ifndef WS_BACKEND_PROCESS_ENDPOINT_H
#define WS_BACKEND_PROCESS_ENDPOINT_H

#include "base/macros.h"

/* A new listener, non-blocking and close-on-exec, at "ADDRESS:PORT", where "*" stands for all
 * addresses, and an IPv6 address may stand in brackets. *ret_why: what the resolver says, if it is
 * that, else NULL. Return: descriptor or negative errno, -EADDRNOTAVAIL for what the resolver does
 * not know. */
WS_MUST_CHECK int ws_endpoint_listen_tcp(const char *address, const char **ret_why);

#endif
