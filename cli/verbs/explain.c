// SPDX-License-Identifier: Apache-2.0
/* wattshare explain: why a job ran when, where and as it did, in the policy's own words. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

enum { EXIT_UNKNOWN = 1 };

static bool job_number(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno && *ret;
}

int ws_cli_explain(int argc, char **argv)
{
    static const struct option options[] = {{"socket", required_argument, NULL, 's'}, {0}};
    const char *socket = NULL;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__ExplainRequest q = WS__EXPLAIN_REQUEST__INIT;
    Ws__ServerMessage *a;
    bool ok = true;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 's')
            socket = optarg;
        else
            ok = false;
    }
    if (!ok || argc - optind > 1 || (optind < argc && !job_number(argv[optind], &q.job))) {
        ws_cli_error(
            "usage: wattshare explain [JOB] [--socket ENDPOINT]; JOB: its number, from 1 on");
        return WS_EXIT_USAGE;
    }
    q.version = WS_PROTOCOL_VERSION;
    m.explain = &q;
    int r = ws_cli_ask(socket, &m, &a);
    if (r)
        return r;
    if (a->explain->error) {
        ws_cli_error("%s", a->explain->text);
        r = EXIT_UNKNOWN;
    } else {
        fputs(a->explain->text, stdout);
    }
    ws__server_message__free_unpacked(a, NULL);
    return r;
}
