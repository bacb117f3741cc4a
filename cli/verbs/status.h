// SPDX-License-Identifier: Apache-2.0
/* cli/verbs/status.h - a daemon's status, as people and as programs read it. Threads: any. */
#ifndef WS_CLI_VERBS_STATUS_H
#define WS_CLI_VERBS_STATUS_H

#include <stdio.h>

#include "protocol/protocol.h"

void ws_cli_status_text(FILE *f, const Ws__StatusReply *s);
void ws_cli_status_json(FILE *f, const Ws__StatusReply *s);
/* "run", "ended", or where a gated client stands. */
const char *ws_cli_client_state(const Ws__ClientStatus *c);

#endif
