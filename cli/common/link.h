// SPDX-License-Identifier: Apache-2.0
/* cli/common/link.h - a connection that asks a daemon and gets answers, without being its
 * client. Threads: one for each link. */
#ifndef WS_CLI_COMMON_LINK_H
#define WS_CLI_COMMON_LINK_H

#include "cli/cli.h"

struct ws_cli_link;

/* Return: 0; -ENOENT, -ECONNREFUSED and the like if nobody listens at an ipc socket; -EPERM: the
 * keys for tcp are missing (printed); another negative errno. */
WS_MUST_CHECK int ws_cli_link_open(struct ws_cli_link **ret, const char *endpoint);
void ws_cli_link_close(struct ws_cli_link *l); /* NULL ok */
/* Sends @question and waits for the answer, that is, the first message that @accept takes;
 * others are skipped. @ret: freed with ws__server_message__free_unpacked(). Return: 0,
 * -ETIMEDOUT, -EPROTO (the answer is no message of our protocol), or another negative errno. */
WS_MUST_CHECK int ws_cli_link_ask(struct ws_cli_link *l, const Ws__ClientMessage *question,
                                  bool (*accept)(const Ws__ServerMessage *m), int timeout_ms,
                                  Ws__ServerMessage **ret);

/* Asks for the status over an open link. Return: as ws_cli_ask_status(). */
WS_MUST_CHECK int ws_cli_link_status(struct ws_cli_link *l, int timeout_ms,
                                     Ws__ServerMessage **ret);

#endif
