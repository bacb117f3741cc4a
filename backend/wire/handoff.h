/* SPDX-License-Identifier: Apache-2.0 */
/* backend/wire/handoff.h - the handoff socket, through which descriptors are passed. Threads: the loop. */
#ifndef WS_BACKEND_WIRE_HANDOFF_H
#define WS_BACKEND_WIRE_HANDOFF_H

#include "backend/client/client.h"

struct ws_handoff_conn;

/* Listens at @path with @mode; ws_server_handoff_fd() is readable when ws_server_handoff_turn() (process/server.h) has work. */
WS_MUST_CHECK int ws_server_handoff_listen(struct ws_server *s, const char *path, uint32_t mode);
/* The same on a listener that was passed, whose file is left alone; @fd is taken. */
WS_MUST_CHECK int ws_server_handoff_adopt(struct ws_server *s, const char *path, int fd);
int ws_server_handoff_fd(const struct ws_server *s);

void ws_handoff_close(struct ws_server *s, struct ws_handoff_conn *k);
void ws_handoff_end(struct ws_server *s);
/* Serves what is due on the connections; rings that were signalled are only noted (wire/ring.h). */
void ws_handoff_turn(struct ws_server *s);

#endif
