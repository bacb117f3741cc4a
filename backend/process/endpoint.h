// SPDX-License-Identifier: Apache-2.0
/* backend/process/endpoint.h - the sockets that listen at the configuration's endpoints. Threads:
 * the loop, before it serves. */
#ifndef WS_BACKEND_PROCESS_ENDPOINT_H
#define WS_BACKEND_PROCESS_ENDPOINT_H

#include "base/macros.h"

/* A new listener at @path with file mode @mode, non-blocking and close-on-exec. There must be no
 * file. Return: descriptor or negative errno. */
WS_MUST_CHECK int ws_endpoint_listen_unix(const char *path, unsigned mode);
/* The same at "ADDRESS:PORT", where "*" stands for all addresses, and an IPv6 address may stand in
 * brackets. *ret_why: what the resolver says, if it is that, else NULL. Return: -EADDRNOTAVAIL for
 * what the resolver does not know. */
WS_MUST_CHECK int ws_endpoint_listen_tcp(const char *address, const char **ret_why);

#endif
