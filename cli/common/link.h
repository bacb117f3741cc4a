// SPDX-License-Identifier: Apache-2.0
/* cli/common/link.h - talking to a daemon without being its client: one message, one answer. Threads: one for each link. */
#ifndef WS_CLI_COMMON_LINK_H
#define WS_CLI_COMMON_LINK_H

#include "cli/cli.h"

struct ws_cli_link;

/* Return: 0; -ENOENT, -ECONNREFUSED and the like of an ipc socket nobody listens at; -EPERM (the keys for tcp are not there; said so
 * already); another negative errno. */
WS_MUST_CHECK int ws_cli_link_open(struct ws_cli_link **ret, const char *endpoint);
void ws_cli_link_close(struct ws_cli_link *l); /* NULL ok */
/* @accept: whether a message is the answer; others are skipped. @ret: freed with ws__server_message__free_unpacked().
 * Return: 0, -ETIMEDOUT, -EPROTO (not our language), or another negative errno. */
WS_MUST_CHECK int ws_cli_link_ask(struct ws_cli_link *l, const Ws__ClientMessage *question,
                                  bool (*accept)(const Ws__ServerMessage *m), int timeout_ms,
                                  Ws__ServerMessage **ret);

/* The status, asked for over an open link. Return: as ws_cli_ask_status(). */
WS_MUST_CHECK int ws_cli_link_status(struct ws_cli_link *l, int timeout_ms,
                                     Ws__ServerMessage **ret);

#endif
