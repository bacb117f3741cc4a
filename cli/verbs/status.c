// SPDX-License-Identifier: Apache-2.0
/* wattshare status: what the daemon says of itself, its GPUs and its clients; tables for people,
 * JSON for programs. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "cli/verbs/status.h"

struct status_options {
    const char *socket;
    bool json;
};

static const struct ws_option options[] = {
    {"json", NULL, "Print JSON; times are in nanoseconds, energy in microjoules, sizes in bytes.",
     WS_FLAG(struct status_options, json)},
    WS_OPTION_SOCKET(struct status_options, socket),
    {0}};
static const char *const examples[] = {
    "wattshare status", "wattshare status --json | jq '.clients[] | {task, energy_uj}'", NULL};

static int status(int argc, char **argv);

const struct ws_verb ws_verb_status = {
    .name = "status",
    .purpose = "show the daemon, its GPUs and its clients",
    .options = options,
    .examples = examples,
    .run = status,
};

static int status(int argc, char **argv)
{
    struct status_options o = {0};
    Ws__ServerMessage *m = NULL;
    char **rest;
    int r = ws_verb_parse(&ws_verb_status, argc, argv, &o, &rest);
    if (r >= 0)
        return r;
    const char *endpoint = ws_cli_endpoint(o.socket);
    r = ws_cli_ask_status(endpoint, WS_CLI_TIMEOUT_MS, &m);
    if (r)
        return ws_cli_no_daemon(endpoint, r, NULL);
    (o.json ? ws_cli_status_json : ws_cli_status_text)(stdout, m->status);
    ws__server_message__free_unpacked(m, NULL);
    return 0;
}
