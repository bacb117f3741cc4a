// SPDX-License-Identifier: Apache-2.0
/* cli/cli.h - what the verbs of `wattshare` share. Each verb is a function of its own arguments (argv[0] is the verb) that
 * returns the exit status. Errors go to stderr as "wattshare: …" with what would be right. */
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

#define WS_VERB(name, function, help) int function(int argc, char **argv);
#include "cli/verbs.def"
#undef WS_VERB

/* "wattshare: text\n" on stderr. */
void ws_cli_error(const char *fmt, ...) WS_PRINTF(1, 2);

/* The value of --jobs. Return: 0, or negative with a message printed. */
WS_MUST_CHECK int ws_cli_jobs(const char *text, int *ret);

/* The endpoint to use: @option if not NULL, else WATTSHARE_SOCKET, else the default. Borrowed. */
const char *ws_cli_endpoint(const char *option);

/**
 * ws_cli_ask_status() - one StatusRequest to a daemon
 * @ret: freed with ws__server_message__free_unpacked(); its status field is set
 * Return: 0, -ETIMEDOUT (nobody answered within @timeout_ms), -EPROTO (not our language),
 * -EPROTONOSUPPORT (another version of it, or of the endpoint), -ENOENT and -ECONNREFUSED (no socket there), or another negative errno.
 */
WS_MUST_CHECK int ws_cli_ask_status(const char *endpoint, int timeout_ms, Ws__ServerMessage **ret);
/* A policy or explain request to the daemon at ws_cli_endpoint(@socket). @ret: freed with ws__server_message__free_unpacked().
 * Return: 0, or the exit status, with a message printed. */
WS_MUST_CHECK int ws_cli_ask(const char *socket, const Ws__ClientMessage *request,
                             Ws__ServerMessage **ret);

/* Path of a part of wattshare ("libwattshare.so", "wattshared"): in the environment variable @env if set, beside this program
 * in a build tree, or where it was installed. malloc'ed, or NULL with an error printed. */
char *ws_cli_find_part(const char *env, const char *build_path, const char *installed_path);

#endif
