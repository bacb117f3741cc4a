// SPDX-License-Identifier: Apache-2.0
/* wattshare status: what the daemon says of itself, its GPUs and its clients; tables for people,
 * JSON for programs. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/verbs/status.h"

int ws_cli_status(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'}, {"socket", required_argument, NULL, 's'}, {0}};
    const char *socket = NULL;
    bool json = false;
    Ws__ServerMessage *m = NULL;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'j')
            json = true;
        else if (c == 's')
            socket = optarg;
        else
            return WS_EXIT_USAGE;
    }
    if (optind < argc) {
        ws_cli_error("status takes no '%s'; usage: wattshare status [--json] [--socket ENDPOINT]",
                     argv[optind]);
        return WS_EXIT_USAGE;
    }
    const char *endpoint = ws_cli_endpoint(socket);
    int r = ws_cli_ask_status(endpoint, 2000, &m);
    if (r) {
        ws_cli_error("no answer from a daemon at %s (%s); start one: systemctl start wattshared, "
                     "or wattshared --socket %s",
                     endpoint, strerror(-r), endpoint);
        return WS_EXIT_UNAVAILABLE;
    }
    (json ? ws_cli_status_json : ws_cli_status_text)(stdout, m->status);
    ws__server_message__free_unpacked(m, NULL);
    return 0;
}
