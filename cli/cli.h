// SPDX-License-Identifier: Apache-2.0
/* cli/cli.h - what the verbs of `wattshare` share: exit statuses, error messages, and how a
 * daemon is asked. Errors go to standard error as "wattshare: …" and say what would be right.
 * The verbs' tables of options: cli/common/options.h. */
#ifndef WS_CLI_CLI_H
#define WS_CLI_CLI_H

#include <stdbool.h>
#include <stdint.h>
#include "base/macros.h"
#include "protocol/protocol.h"

enum {
    WS_EXIT_USAGE = 2,
    WS_EXIT_UNAVAILABLE = 69,
    WS_EXIT_CANNOT_RUN = 126,
    WS_EXIT_NOT_FOUND = 127
};

/* How long a verb waits for a daemon's first answer, and for one in a series. */
enum { WS_CLI_TIMEOUT_MS = 2000, WS_CLI_NEXT_TIMEOUT_MS = 5000 };

/* "wattshare: text\n" on stderr. */
void ws_cli_error(const char *fmt, ...) WS_PRINTF(1, 2);

/* The endpoint to use: @option if not NULL, else WATTSHARE_SOCKET, else the default. Borrowed. */
const char *ws_cli_endpoint(const char *option);

/**
 * ws_cli_ask_status() - one StatusRequest to a daemon
 * @ret: freed with ws__server_message__free_unpacked(); its status field is set
 * Return: 0, -ETIMEDOUT (no answer within @timeout_ms), -EPROTO (the answer is no message of our
 * protocol), -EMSGSIZE (it is more than a daemon answers), -EPROTONOSUPPORT (another version of the
 * protocol, or an unknown kind of endpoint), -ENOENT or -ECONNREFUSED (no socket there), or another
 * negative errno.
 */
WS_MUST_CHECK int ws_cli_ask_status(const char *endpoint, int timeout_ms, Ws__ServerMessage **ret);
/* Says that no daemon could be asked at @endpoint, why, and what would help. @error: of asking it,
 * negative. @or_else: what helps instead of starting a daemon as a service; NULL: starting one by
 * hand. Return: the exit status. */
int ws_cli_no_daemon(const char *endpoint, int error, const char *or_else);
/* Sends a request to the daemon at ws_cli_endpoint(@socket). @ret: the first message that @accept
 * takes, freed with ws__server_message__free_unpacked(). Return: 0, or the exit status with the
 * error printed. */
WS_MUST_CHECK int ws_cli_ask(const char *socket, const Ws__ClientMessage *request,
                             bool (*accept)(const Ws__ServerMessage *m), Ws__ServerMessage **ret);

/* The path of a part of wattshare ("libwattshare.so", "wattshared"): what the environment
 * variable @env says, else the part beside this program in a build tree, else the installed one.
 * malloc'ed, or NULL with the error printed. */
char *ws_cli_find_part(const char *env, const char *build_path, const char *installed_path);

#endif
