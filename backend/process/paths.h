// SPDX-License-Identifier: Apache-2.0
/* backend/process/paths.h - where the daemon finds and puts its files. Threads: none. */
#ifndef WS_BACKEND_PROCESS_PATHS_H
#define WS_BACKEND_PROCESS_PATHS_H

#include <stdbool.h>
#include "base/macros.h"

/* The GPU catalog: the installed one; for a program run from its build tree the one of the
 * sources. malloc'ed; NULL: no memory. */
WS_MUST_CHECK char *ws_path_catalog(void);

/* Takes a Unix socket's path for this process: makes its directory (mode 0755), locks PATH.lock,
 * and makes sure that nobody serves the socket. A file left behind by a daemon that died is
 * removed. *ret_lock: descriptor to give to ws_path_release(). Return: 0, WS_PATH_E_SERVED, or
 * negative errno of the directory or the lock file. */
enum { _WS_PATH_OK, WS_PATH_E_SERVED };
WS_MUST_CHECK int ws_path_claim(const char *socket_path, int *ret_lock);
/* Removes the socket and the lock file. */
void ws_path_release(const char *socket_path, int lock);

#endif
