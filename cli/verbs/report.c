// SPDX-License-Identifier: Apache-2.0
/* wattshare report: makes a page from a trace that people read in a browser. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/common/options.h"
#include "cli/common/text.h"
#include "cli/report/replay.h"

struct report_options {
    const char *out;
};

static const struct ws_option options[] = {{"out", "FILE",
                                            "The page to write; without it standard output.",
                                            WS_TEXT(struct report_options, out)},
                                           {0}};
static const char *const arguments[] = {"TRACE-FILE", NULL};
static const char *const examples[] = {"wattshare trace --out now.json --duration 10",
                                       "wattshare report now.json --out now.html", NULL};

static int report(int argc, char **argv);

const struct ws_verb ws_verb_report = {
    .name = "report",
    .purpose = "make a page for a browser from a trace",
    .about = "TRACE-FILE is what wattshare trace has written.",
    .options = options,
    .arguments = arguments,
    .examples = examples,
    .min_arguments = 1,
    .max_arguments = 1,
    .missing = "report needs the file of a trace",
    .run = report,
};

/* Return: the exit status. */
static int write_page(const struct ws_report *r, const struct ws_replay *other, const char *source,
                      const char *out)
{
    FILE *f = out ? fopen(out, "we") : stdout;
    if (f)
        ws_report_html(r, other, source, f);
    bool bad = !f || ferror(f);
    if ((f && (f == stdout ? fflush(f) : fclose(f))) || bad) {
        ws_cli_error("cannot write '%s': %s", out ? out : "standard output", strerror(errno));
        return 1;
    }
    return 0;
}

static int report(int argc, char **argv)
{
    struct report_options o = {0};
    struct ws_report r;
    struct ws_replay other;
    char **rest;
    int status = ws_verb_parse(&ws_verb_report, argc, argv, &o, &rest);
    if (status >= 0)
        return status;
    status = ws_report_read(&r, rest[0]) ? 1 : 0;
    if (!status && ws_replay(&r, &other)) {
        ws_cli_error("out of memory");
        status = 1;
    }
    if (!status)
        status = write_page(&r, &other, ws_cli_base_name(rest[0]), o.out);
    ws_report_deinit(&r);
    return status;
}
