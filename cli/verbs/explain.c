// SPDX-License-Identifier: Apache-2.0
/* wattshare explain: prints why a job ran when, where and as it did, in the policy's own words. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/common/options.h"

enum { EXIT_UNKNOWN = 1 };

static bool job_number(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return text[0] >= '0' && text[0] <= '9' && !*end && !errno && *ret;
}

struct explain_options {
    const char *socket;
};

static const struct ws_option options[] = {WS_OPTION_SOCKET(struct explain_options, socket), {0}};
static const char *const arguments[] = {"[JOB]", NULL};
static const char *const examples[] = {"wattshare explain", "wattshare explain 17", NULL};

static int explain(int argc, char **argv);

const struct ws_verb ws_verb_explain = {
    .name = "explain",
    .purpose = "say why a job ran when, where and as it did",
    .about = "JOB is the job's number, from 1 on; without it the job that was decided on last.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .max_arguments = 1,
    .run = explain,
};

static bool is_explanation(const Ws__ServerMessage *m)
{
    return m->explain != NULL;
}

static int explain(int argc, char **argv)
{
    struct explain_options o = {0};
    char **rest;
    Ws__ClientMessage m = WS__CLIENT_MESSAGE__INIT;
    Ws__ExplainRequest q = WS__EXPLAIN_REQUEST__INIT;
    Ws__ServerMessage *a;
    int r = ws_verb_parse(&ws_verb_explain, argc, argv, &o, &rest);
    if (r >= 0)
        return r;
    if (*rest && !job_number(*rest, &q.job))
        return ws_verb_wrong(&ws_verb_explain,
                             "'%s' is no job's number; these are whole numbers "
                             "from 1 on",
                             *rest);
    q.version = WS_PROTOCOL_VERSION;
    m.explain = &q;
    r = ws_cli_ask(o.socket, &m, is_explanation, &a);
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
