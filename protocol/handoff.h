// SPDX-License-Identifier: Apache-2.0
/* protocol/handoff.h - the handoff socket and the shared segments that it passes: what both ends
 * need. Sockets are SOCK_SEQPACKET, paths are file names. Threads: any. Errors: negative errno. */
#ifndef WS_PROTOCOL_HANDOFF_H
#define WS_PROTOCOL_HANDOFF_H

#include <stdbool.h>
#include <sys/types.h>
#include "base/macros.h"
#include "base/packet.h"

/* The path of the handoff socket of an ipc:// endpoint: its path with ".side" appended. Return: 0;
 * -EINVAL (no ipc:// endpoint of a file), -ENAMETOOLONG (more than a Unix socket address or
 * @size holds). */
WS_MUST_CHECK int ws_handoff_path(const char *endpoint, char *buf, size_t size);

/* A new, non-blocking, close-on-exec listener of @type (SOCK_STREAM, …) at @path with file mode
 * @mode. There must be no file. Return: descriptor or negative errno. */
WS_MUST_CHECK int ws_unix_listen(const char *path, int type, mode_t mode);
/* That of handoff connections; replaces a file that is there. */
WS_MUST_CHECK int ws_handoff_listen(const char *path, mode_t mode);
/* Return: a blocking, close-on-exec descriptor. */
WS_MUST_CHECK int ws_handoff_connect(const char *path);

#endif
